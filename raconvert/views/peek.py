"""A look at a file for the terminal: what it is, its tree, and one array as a picture or plot."""

from __future__ import annotations

import numpy as np

from raconvert.arrays.dtypes import FLOATS
from raconvert.arrays.layout import COLUMNS, EMPTY, LINE, SCALAR, layout_of
from raconvert.arrays.summary import tree
from raconvert.declared import Record
from raconvert.errors import RaconvertError, quoted
from raconvert.inspect.info import describe_array, plain, type_text
from raconvert.registry import by_name
from raconvert.views import terminal
from raconvert.views.filmstrip import strips_of, titles_of
from raconvert.views.fitting import folded_all, is_drawn, rows_of, within
from raconvert.views.numbers import MOST_CLASSES, all_numbers, comparable, numbers_of
from raconvert.views.picture import enlarged
from raconvert.views.roles import main_array
from raconvert.views.sample import (
    FRAMES,
    REMOTE_BUDGET,
    known_scale,
    places_text,
    shown_of,
    value_at,
)
from raconvert.views.terminal import bar, bars_of, envelope, line_plot, number_text, sparkline
from raconvert.workers.interrupts import raise_interruption

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.arrays.layout import Layout
    from raconvert.views.filmstrip import Labels, Strip
    from raconvert.views.numbers import Numbers
    from raconvert.views.picture import Picture
    from raconvert.views.sample import Sample


MOST_ROWS = 8  # rows shown of text, records and classes
_CELL = 24  # characters shown of a value of a record
_MOST_LINES = 40  # lines shown of a tree
_MOST_TEXT = 60  # characters shown of a text
_PLOT_ROWS = 6
_PLOT_MOST = 12  # in a window
_LEAST_ROWS = 4  # rows of each part of the lines about an array, however low the window is
_LINES_OF_ERROR = 4
_WIDE = 60  # columns that hold a title
_BESIDE = 8  # rows of the words about a picture
_TRACE = 26  # columns of the words before a trace
_SHEET_CELLS = 14  # width of one picture on a contact sheet, in characters
_SHEET_ROWS = 2
_SMALL = REMOTE_BUDGET  # bytes; a smaller array is read whole


class Screen(Record):
    """The screen of `peek`: width in characters, way of showing pictures, and characters.

    `rows` is its height, or what is left of it; 0 for an endless one, as a file is.
    """

    columns: int = 80
    way: str = terminal.CHARACTERS
    unicode: bool = True
    true_color: bool = True
    rows: int = 0

    @property
    def width(self) -> int:
        """The width at which lines are folded; 0 if they stay as long as they are."""
        return self.columns if self.rows else 0

    def without(self, lines: Iterable[str]) -> Screen:
        """Return the part of the screen below some lines, which will be indented."""
        if not self.rows:
            return self
        taken = rows_of(folded_all((f"  {line}" for line in lines), self.width), self.width)
        return self._replace(rows=max(_LEAST_ROWS, self.rows - taken))


def tree_lines(bundle: Bundle, rows: int = 0) -> list[str]:
    """The arrays and groups of a bundle as a tree: the first ones, in a fifth of `rows`."""
    most = min(_MOST_LINES, max(_LEAST_ROWS, rows // 5)) if rows else _MOST_LINES
    lines = tree("", {array.name: array for array in bundle.arrays}, bundle.groups, most)
    return lines.split("\n")[1:]  # without the line of the empty name; `tree` quotes all names


def lines_of(
    array: Array, screen: Screen, *, full: bool = False, labels: Labels | None = None
) -> Iterator[str]:
    """Yield the lines of one array: its picture or plot, and its numbers.

    `labels` are those of its pictures. Raises what reading elements raises; for a damaged array,
    after the lines about its readable part.
    """
    frames = _frames_within(screen, layout_of(array), array)
    array, sampled, problem = shown_of(array, frames=frames, sheet=_sheet_within(screen))
    if problem is not None and not full:
        yield f"no picture: {problem.what}" + (f"; {problem.remedy}" if problem.remedy else "")
        return
    if sampled is not None and sampled.form == EMPTY:
        yield sampled.text
        return
    if sampled is not None and sampled.damage is not None:
        screen = screen.without([""] * _LINES_OF_ERROR)
    numbers = list(number_lines(array, sampled, screen, full=full))
    width = screen.columns - 2  # each line will be indented
    most = max(_LEAST_ROWS, screen.rows * 2 // 5) if screen.rows else 0
    room = screen.without(within(folded_all(numbers, width * bool(most)), most, width))
    picture = [] if sampled is None else list(shown(array, sampled, room, labels))
    yield from picture
    if most:
        taken = room.rows if any(map(is_drawn, picture)) else 0
        taken = max(taken, rows_of(folded_all(picture, width), width))
        numbers = within(folded_all(numbers, width), max(most, screen.rows - taken), width)
    yield from numbers
    if sampled is not None and sampled.damage is not None:
        raise sampled.damage


def _frames_within(screen: Screen, layout: Layout, array: Array) -> int:
    """The number of planes in a row: fewer in a window in which they would be very small."""
    if not screen.rows or layout.rows < 0:
        return FRAMES if screen.columns >= _WIDE else 3
    axes = sorted((layout.rows, layout.columns), reverse=array.index_order == "F")
    down, right = (array.dims[::-1][axis] for axis in axes)
    half = max(_LEAST_ROWS, screen.rows - _BESIDE)  # of the pixels down: a line shows two of them
    for count in (FRAMES, 3):
        cells = (screen.columns - 2 * count) // count
        if min(down, cells * down // right) >= half:
            return count
    return 3 if screen.columns >= _WIDE or down <= half else 1


def _sheet_within(screen: Screen) -> int:
    """Return the number of small pictures that fit the screen."""
    if screen.way == terminal.NONE:
        return 0
    return _sheet_rows(screen) * _in_a_row(screen)


def _sheet_rows(screen: Screen) -> int:
    """Return the number of rows of small pictures, each of half its width and a line."""
    if not screen.rows:
        return _SHEET_ROWS
    return max(1, min(4, (screen.rows - 8) // (_SHEET_CELLS // 2 + 1)))


def _in_a_row(screen: Screen) -> int:
    """Return the number of small pictures in a row."""
    return max(2, screen.columns // (_SHEET_CELLS + 2))


def shown(
    array: Array, sampled: Sample, screen: Screen, labels: Labels | None = None
) -> Iterator[str]:
    """Yield the picture, plot or table of a sample. Raises nothing."""
    values = sampled.values[0]
    without_numbers = values.dtype.kind == "V" and not comparable(values).size
    if without_numbers or values.dtype.kind in "SUmM" or sampled.form == SCALAR:
        yield from _listed(values.reshape(-1), array.count, screen)
    elif sampled.form == LINE:
        along = along_text(array)
        about = [quoted(along)] if along else []
        yield from _line(values.reshape(-1), screen.without(about))
        yield from about
    elif sampled.form == COLUMNS:
        yield from _columns(values, screen)
    elif sampled.pictures and screen.way != terminal.NONE:
        yield from _sheet(array, sampled, screen, labels)
    elif screen.way != terminal.NONE:
        may_mix = array.ndim > 2 and array.described
        mixed = list(_channels(array, screen)) if may_mix else []
        yield from mixed or _pictures(array, sampled, screen)


def _listed(values: Any, count: int, screen: Screen) -> Iterator[str]:
    """Yield the first of `count` values, one in a line, and the number of the others."""
    most = min(MOST_ROWS, screen.rows - 1) if screen.rows else MOST_ROWS
    if values.dtype.names is not None:
        most = max(1, most - 1)  # the first line has the names of the fields
        yield from _records(values[:most], screen)
        values = values[:0]
    for value in values[:most]:
        text = quoted(str(value.item() if value.dtype.kind not in "mM" else value))
        yield text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}… ({len(text)} characters)"
    if count > most:
        yield f"… {count - most} more"


def _records(values: Any, screen: Screen) -> Iterator[str]:
    """Yield records as a table below the names of their fields, as far as the width goes."""
    from raconvert.views.pages.table import columns_of, in_a_cell

    columns = []
    for name, column in columns_of(values):
        cells = [quoted(cell) for cell in (name, *map(in_a_cell, column))]
        width = min(_CELL, max(map(len, cells)))
        columns.append([cell[:width].ljust(width) for cell in cells])
    for row in zip(*columns, strict=True):
        yield "  ".join(row)[: screen.columns - 2].rstrip()


def names_text(array: Array) -> str:
    """The names of axes with their lengths, ``T: 1, C: 3``, if `labels_text` does not name them."""
    if not 2 <= array.ndim <= MOST_ROWS or not array.described or labels_text(array):
        return ""
    pairs = [*zip(array.axes, array.shape, strict=True)]
    if not any(axis.name for axis, _ in pairs):
        return ""
    return ", ".join(
        f"{axis.name[:_CELL]}: {length}" if axis.name else str(length) for axis, length in pairs
    )


def labels_text(array: Array) -> str:
    """The first labels of the axes of a table or cube: ``REG: EU, USA, … RoW; COMM: food, cars``.

    Empty for other arrays, and where the axes of channels have the labels.
    """
    if array.ndim < 2 or not array.described or any(axis.direction for axis in array.axes):
        return ""
    parts = []
    for axis, length in zip(array.axes, array.shape, strict=True):
        labels = None if axis.kind == "list" else axis.labels
        if labels and axis.name and length > 1 and all(isinstance(one, str) for one in labels):
            texts = [label[:_CELL] for label in labels[:MOST_ROWS]]
            more = [f"… {labels[-1][:_CELL]}"] if len(labels) > MOST_ROWS else []
            parts.append(f"{axis.name}: {', '.join([*texts, *more])}")
    return "; ".join(parts[:3])


def along_text(array: Array) -> str:
    """The ends of the coordinates along a line: ``along time from 0 to 30 s``."""
    for axis, length in zip(array.axes, array.shape, strict=True):
        if length > 1 and axis:
            from raconvert.views.pages.table import value_text

            values = [value_at(axis, at, length) for at in (0, length - 1)]
            name = axis.name or ""
            if values[0] is None:
                return f"along {name}" if name else ""
            ends = " to ".join(value_text(value) for value in values)
            return " ".join(filter(None, ("along", name, "from", ends, axis.units)))
    return ""


def _line(values: Any, screen: Screen) -> Iterator[str]:
    """Yield the plot of numbers of one axis: for complex ones, of magnitude and phase."""
    numbers = numbers_of([values])
    if numbers.classes is not None and len(numbers.classes) * 2 < numbers.count:
        return  # the counts of the classes are the picture
    if values.dtype.kind == "c":
        half = screen._replace(rows=max(1, screen.rows // 2 - 1)) if screen.rows else screen
        yield "magnitude"
        yield from _plotted(np.abs(values), half)
        yield "phase, -π to π" if screen.unicode else "phase, -pi to pi"
        yield from _plotted(np.angle(values), half)
    else:
        yield from _plotted(comparable(values), screen)


def _plotted(values: Any, screen: Screen) -> Iterator[str]:
    """Yield a plot of numbers, with the largest and the least at its left edge."""
    low, high = envelope(values, 1)
    if not np.isfinite(low[0]):
        return
    width = max(8, screen.columns - 14) if screen.rows else max(8, min(72, screen.columns - 14))
    if not screen.unicode:
        _, highs = envelope(values, width)
        yield sparkline(highs.tolist(), float(low[0]), float(high[0]), unicode=False)
        return
    lines = line_plot(values, width, min(_PLOT_MOST, screen.rows) if screen.rows else _PLOT_ROWS)
    if len(lines) == 1:
        lines = [*lines, ""]
    ends = [number_text(high[0]), *[""] * (len(lines) - 2), number_text(low[0])]
    margin = max(map(len, ends))
    for end, line in zip(ends, lines, strict=True):
        yield f"{end:>{margin}} {line}"


def _columns(values: Any, screen: Screen) -> Iterator[str]:
    """Yield one line for each of a few columns: its course and its ends."""
    down = values.shape[0] >= values.shape[1]
    values = values if down else values.T
    values = comparable(values)
    width = max(8, min(48, screen.columns - 40))
    for number in range(values.shape[1]):
        key = f"[:, {number}]" if down else f"[{number}, :]"
        lows, highs = envelope(values[:, number], width)
        finite = np.isfinite(lows)
        if not finite.any():
            yield f"{key} no finite values"
            continue
        low, high = float(lows[finite].min()), float(highs[finite].max())
        middle = (lows / 2 + highs / 2).tolist()
        line = sparkline(middle, low, high, unicode=screen.unicode)
        yield f"{key} {line} {number_text(low)} … {number_text(high)}"


# Pictures ----------------------------------------------------------------------------------------


def _pictures(array: Array, sampled: Sample, screen: Screen) -> Iterator[str]:
    """Yield planes as pictures in a row below their keys; complex ones are two rows."""
    about = []
    named = [frame for frame in sampled.frames if frame.key]
    if array.ndim > 2 and named:
        keys = " ".join(frame.key for frame in named)
        about.append(f"planes {keys}" if len(named) > 1 else f"plane {keys}")
        if any(frame.where for frame in named):
            about.append(quoted(places_text([frame.where for frame in named])))
    yield from about
    screen = screen.without(about)
    count = 2 if sampled.values[0].dtype.kind == "c" else 1  # magnitude and phase
    lines = terminal.ROWS
    if screen.rows:
        titles = count * (1 + (screen.columns < _WIDE))  # lines; a low width folds each once
        lines = max(_LEAST_ROWS, screen.rows - titles) // count
    rows, columns = terminal.room(screen.columns, len(sampled.frames), way=screen.way, rows=lines)
    for strip in strips_of(array, sampled, rows, columns):
        pictures = strip.pictures
        yield from _title(strip, screen)
        if screen.way in (terminal.BLOCKS, terminal.CHARACTERS):
            pictures = [_larger(picture, rows, columns) for picture in pictures]
        yield from _drawn(pictures, screen, lines)


def _channels(array: Array, screen: Screen) -> Iterator[str]:
    """Yield one plane of a micrograph, all channels in their colours; nothing of other arrays."""
    from raconvert.views.channels import channel_axis, mixed, names_of, scales_of, seen_at

    axis = channel_axis(array)
    try:
        seen = None if axis is None else seen_at(array, axis)
    except RaconvertError as error:
        raise_interruption(error)
        return  # the sample is shown instead
    lines = max(_LEAST_ROWS, screen.rows - 2) if screen.rows else terminal.ROWS
    rows, columns = terminal.room(screen.columns, 1, way=screen.way, rows=lines)
    made = None if seen is None else mixed(seen, scales_of([seen]), min(rows, columns))
    if made is not None:
        names = names_of(made.channels)
        yield quoted(f"plane {made.key}: {names}, each from its dark to its bright")
        yield from _drawn(made.together.pictures, screen, lines)


def _title(strip: Strip, screen: Screen) -> Iterator[str]:
    """Yield the title of some pictures, if they have one."""
    title = quoted(strip.legend(terminal.looks_of_signs(screen.way)))  # its units are of the file
    if title:
        yield title if screen.unicode else title.replace("π", "pi")


def _drawn(pictures: list[Picture], screen: Screen, rows: int) -> list[str]:
    return terminal.drawn(
        pictures,
        screen.way,
        columns=screen.columns,
        true_color=screen.true_color,
        rows=rows,
    )


def _larger(picture: Picture, rows: int, columns: int) -> Picture:
    """A small picture as large as fits, each pixel a square."""
    height, width = picture.pixels.shape[:2]
    return enlarged(picture, max(1, min(rows // height, columns // width)))


def _sheet(array: Array, sampled: Sample, screen: Screen, labels: Labels | None) -> Iterator[str]:
    """Yield rows of small pictures, below each its number and its label."""
    lines, most = _SHEET_CELLS, _in_a_row(screen)
    if screen.rows:  # two lines are for the number of pictures and the title
        rows_of_pictures = -(-len(sampled.frames) // most)
        lines = max(2, min(lines, (screen.rows - 2) // rows_of_pictures - 1))
    rows, columns = 2 * lines, _SHEET_CELLS
    if screen.way not in (terminal.BLOCKS, terminal.CHARACTERS):
        columns *= terminal.CELL[0]
        rows = min(columns, lines * terminal.CELL[1])
    yield f"{len(sampled.frames)} of {sampled.pictures} pictures"
    titles = titles_of(sampled, labels)
    for strip in strips_of(array, sampled, rows, columns):
        yield from _title(strip, screen)
        for at in range(0, len(strip.pictures), most):
            pictures = strip.pictures[at : at + most]
            yield from _drawn(pictures, screen, lines)
            step = terminal.pitch(pictures, screen.way, screen.columns, lines)
            yield _captions(titles[at : at + most], step, unicode=screen.unicode)


def _captions(titles: list[str], step: float, *, unicode: bool) -> str:
    """The line of titles below a row of pictures, `step` apart; each is cut to its picture."""
    line = ""
    for number, title in enumerate(titles):
        text, most = quoted(title), int(step) - 2
        if len(text) > most:
            text = f"{text[: most - 1]}{'…' if unicode else '.'}"
        line = f"{line:<{round(number * step)}}{text}"
    return line


# Numbers -----------------------------------------------------------------------------------------


class Counted(Record):
    """The numbers of an array, or of a sample of it; `sampled` are those of the sample."""

    numbers: Numbers
    sampled: Numbers
    whole: bool  # True if all elements were counted
    by_blocks: bool  # True if they were read block by block


def counted(array: Array, part: Sample | None, *, full: bool = False) -> Counted | None:
    """The numbers of all of an array, if it is small or with `full`, else of its sample.

    None for records, and without any value. Raises what reading elements raises.
    """
    is_part = part is not None and not part.whole and part.damage is None
    whole = all_numbers(array) if full or (is_part and array.nbytes <= _SMALL) else None
    parts = [] if part is None else part.values
    if parts and parts[0].dtype.names is not None:
        return None
    sampled = numbers_of(parts)
    numbers = whole or sampled
    if not numbers.count:
        return None
    is_whole = whole is not None or (part is not None and part.whole)
    return Counted(numbers, sampled, is_whole, whole is not None)


def has_classes(array: Array, numbers: Numbers) -> bool:
    """True if the counts of the different values say more than a histogram."""
    return numbers.classes is not None and (
        array.element.kind in ("bool", "user") or 2 * len(numbers.classes) < numbers.count
    )


def number_lines(
    array: Array, part: Sample | None, screen: Screen, *, full: bool = False
) -> Iterator[str]:
    """Yield lines on the numbers of an array, and whether they are those of all or of a sample.

    Raises what reading elements raises.
    """
    made = counted(array, part, full=full)
    if made is None or array.count == 1:
        return
    numbers, sampled = made.numbers, made.sampled
    which = f"all {numbers.count} values"
    if not made.whole:
        which = f"sample of {numbers.count} of {array.count} values"
        which += f": {part.text}" if part is not None and part.text else ""
        which += "; --full: all"
    if has_classes(array, numbers):
        yield from _classes(array, numbers, screen)
    is_bool = array.element.kind == "bool"
    if numbers.least is not None and not is_bool:
        measure = "|x| " if array.element.kind == "complex" else ""
        mean = numbers.mean
        ends = [f"min {measure}{number_text(numbers.least)}"]
        ends += [f"mean {measure}{number_text(mean)}"] if mean is not None else []
        ends += [f"max {measure}{number_text(numbers.most)}"]
        yield ",  ".join(ends)
    specials = "" if is_bool else _specials(array, numbers)
    yield f"{specials}  ({which})" if specials else which
    has_few_classes = numbers.classes is not None and len(numbers.classes) <= 16
    if sampled.histogram and not has_few_classes:
        histogram = sampled.histogram
        if screen.columns < _WIDE:
            histogram = [
                low + high for low, high in zip(histogram[::2], histogram[1::2], strict=True)
            ]
        drawn = bars_of(histogram, unicode=screen.unicode)
        first, last = number_text(sampled.least), number_text(sampled.most)
        some = "" if numbers is sampled or part is None or part.whole else " of a sample"
        yield f"histogram{some} {first} {drawn} {last}"
    varies = numbers.least is not None and numbers.mean is not None and not is_bool
    if varies and len(numbers.trace) > 2 and numbers.most != numbers.least:
        low, high = float(numbers.least), float(numbers.most)
        for word, side in (("max", 1), ("min", 0)):
            course = [extremes[side] for extremes in numbers.trace]
            if len(course) > screen.columns - _TRACE:
                course = envelope(np.array(course), screen.columns - _TRACE)[side].tolist()
            line = sparkline(course, low, high, unicode=screen.unicode)
            yield f"{word} {'along the array' if made.by_blocks else 'of each plane'}  {line}"


def _specials(array: Array, numbers: Numbers) -> str:
    """Describe how many values are missing, infinite and zero."""
    parts = []
    if array.element.kind in (*FLOATS, "complex"):
        parts.append(f"NaN {numbers.nan}")
        parts.append(f"inf {numbers.above}")
        parts += [f"-inf {numbers.below}"] if numbers.below else []
    elif numbers.nan:
        parts.append(f"NaT {numbers.nan}")
    if numbers.finite and array.element.kind != "user":
        parts.append(f"zeros {100 * numbers.zeros / numbers.count:.3g} %")
    return ",  ".join(parts)


def class_name(array: Array, value: Any) -> str | None:
    """Return the label of a class, by its number; None if the array has no such label."""
    names = array.meta.attributes.get("labels")
    if isinstance(names, list) and isinstance(value, int) and 0 <= value < len(names):
        return str(names[value])
    return None


def _classes(array: Array, numbers: Numbers, screen: Screen) -> Iterator[str]:
    """Yield a table of the classes, with their names where the array has them."""
    classes: dict[Any, int] = dict(numbers.classes or {})
    count = max(3, screen.rows // 5) if screen.rows else 2 * MOST_ROWS
    most = sorted(classes.items(), key=lambda item: -item[1])[:count]
    if array.element.kind != "user":
        most.sort()
    texts = []
    for value, _ in most:
        text = quoted(str(value))[:_MOST_TEXT]
        if (name := class_name(array, value)) is not None:
            text += f" {quoted(name)[:_MOST_TEXT]}"
        texts.append(text)
    wide = max(map(len, texts), default=0)
    highest = max((count for _, count in most), default=1)
    for text, (_, count) in zip(texts, most, strict=True):
        drawn = bar(count / highest, 24, unicode=screen.unicode)
        yield f"{text:<{wide}}  {count:>{len(str(highest))}}  {drawn}"
    if len(classes) > len(most):
        yield f"… {len(classes) - len(most)} more"


# A look at a file for programs: what `peek` shows, in the types of JSON --------------------------


_PICTURES = 10  # pictures on a contact sheet; so many fit a terminal of 80 columns
MOST_ARRAYS = 1000  # arrays listed per container


def facts_of(bundle: Bundle, path: str, reason: str, *, full: bool = False) -> dict[str, Any]:
    """Return the facts for `peek`: the file, its arrays, and statistics of the main array.

    Raises what reading elements raises.
    """
    row = by_name(bundle.format)
    array = main_array(bundle)
    return {
        "path": path,
        "format": row.name,
        "title": row.title,
        "reason": reason,
        "container": row.many,
        "count": len(bundle.arrays),
        "tree": [_leaf(one) for one in bundle.arrays[:MOST_ARRAYS]],
        "array": None if array is None else describe_array(array, bundle),
        "numbers": None if array is None else _numbers(array, full=full),
    }


def _leaf(array: Array) -> dict[str, Any]:
    """The facts about one of the arrays of a container."""
    return {
        "name": array.name,
        "type": type_text(array.element),
        "shape": list(array.shape),
        "index_order": array.index_order,
        "problem": None if array.problem is None else str(array.problem),
    }


def _numbers(array: Array, *, full: bool) -> dict[str, Any] | None:
    """The facts about the numbers of an array, and what part they are of; None without any."""
    stored = array
    array, sampled, problem = shown_of(array, sheet=_PICTURES)
    if problem is not None and not full:
        return {"of": "nothing", "count": 0, "total": array.count, "problem": problem.what}
    if sampled is not None and sampled.form == EMPTY:
        return None
    made = counted(array, sampled, full=full)
    if made is None:
        return None
    numbers = made.numbers
    parts = [] if made.by_blocks or sampled is None else sampled.frames
    return {
        "of": "all" if made.whole else "sample",
        "count": numbers.count,
        "total": array.count,
        "parts": [frame.key for frame in parts if frame.key],
        "text": "" if made.whole or sampled is None else sampled.text,
        "problem": None if sampled is None or sampled.damage is None else sampled.damage.what,
        "measure": "magnitude" if array.element.kind == "complex" else "value",
        "values": "stored" if known_scale(stored) is None else "physical",
        "min": _number(numbers.least),
        "mean": _number(numbers.mean if numbers.least is not None else None),
        "max": _number(numbers.most),
        "nan": numbers.nan,
        "inf": numbers.above,
        "-inf": numbers.below,
        "zeros": numbers.zeros,
        "classes": _class_facts(array, numbers) if has_classes(array, numbers) else None,
        "histogram": {
            "of": "all" if sampled is not None and sampled.whole else "sample",
            "from": _number(made.sampled.least),
            "to": _number(made.sampled.most),
            "counts": made.sampled.histogram,
        }
        if made.sampled.histogram
        else None,
    }


def _number(value: Any) -> Any:
    """A number in the types of JSON; a time as text."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return str(value) if kind in ("m", "M") else plain(value)


def _class_facts(array: Array, numbers: Numbers) -> list[dict[str, Any]]:
    """The different values with their names and counts, the most frequent first."""
    counts = (numbers.classes or {}).items()
    return [
        {"value": plain(value), "name": class_name(array, value), "count": count}
        for value, count in sorted(counts, key=lambda item: -item[1])[:MOST_CLASSES]
    ]
