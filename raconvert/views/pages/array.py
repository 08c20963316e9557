"""Section of a page for one array: its picture, plot or table, and its numbers."""

from __future__ import annotations

from html import escape

import numpy as np

from raconvert.arrays.layout import COLOR, COLUMNS, EMPTY, IMAGE, LINE, SCALAR, layout_of
from raconvert.declared import Record
from raconvert.errors import quoted
from raconvert.views import terminal
from raconvert.views.averaged import averaged
from raconvert.views.channels import channel_axis, mixed, names_of, ramp_of, scales_of, seen_at
from raconvert.views.filmstrip import ends_of, strips_of, titles_of
from raconvert.views.numbers import comparable
from raconvert.views.pages import drawings, figures
from raconvert.views.pages.markup import TABLE_END, text_of
from raconvert.views.pages.table import (
    is_labelled,
    is_small,
    is_table,
    labelled,
    table_of,
    value_text,
)
from raconvert.views.pages.volume import stacks_of, volume
from raconvert.views.peek import Screen, along_text, class_name, number_lines
from raconvert.views.picture import CLASSES, PHASE
from raconvert.views.planes import middle_key, plane_at
from raconvert.views.sample import DECODED, Frame, shown_of, where_of
from raconvert.views.terminal import number_text
from raconvert.views.timeline import time_axis, time_indices, times_of, title_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.views.channels import Mixed, Seen
    from raconvert.views.filmstrip import Labels, Strip
    from raconvert.views.sample import Sample


_LEAD = 44_000  # bytes of the large picture of an array on a page
_PHOTO = 96_000  # the same of a photo
_MICROGRAPH = 470  # pixels: the names of its channels are on the first screen, too
_REST = 20_000  # bytes of all other pictures
_SIDE = 160  # side of a small picture on the page, in pixels
_TIME_SIDE = 134  # the same of a picture through time
_SMALL_SIDE = 84  # the same if there are many
_SHEET = 24  # small pictures per array
_SCREEN = Screen(columns=78, way=terminal.NONE)


def section_of(array: Array, *, full: bool = False, labels: Labels | None = None) -> Iterator[str]:
    """Yield the picture, plot or table of an array, with their labels, and its numbers.

    Raises what reading elements raises; for a damaged array, after its readable part.
    """
    array, sampled, problem = shown_of(array, sheet=_SHEET)
    if problem is not None:
        yield f"<p>No picture: {text_of(problem.what)}.</p>\n"
        if not full:
            return
    if sampled is not None and sampled.form == EMPTY:
        yield f"<p>{text_of(sampled.text)}</p>\n"
        return
    damage = None if sampled is None else sampled.damage
    if sampled is not None:
        yield from _picture(array, sampled, labels)
    words = sampled is not None and is_table(sampled.values[0])  # counted in the table
    lines = [] if words else list(number_lines(array, sampled, _SCREEN, full=full))
    if lines:
        yield f"<pre>{escape(chr(10).join(map(quoted, lines)))}</pre>\n"
    if damage is not None:
        raise damage


def _picture(array: Array, sampled: Sample, labels: Labels | None) -> Iterator[str]:
    """Yield the drawing of an array in the form that suits it best, and maybe its numbers."""
    values = sampled.values[0]
    sound = sampled.damage is None
    if is_table(values):
        yield from table_of(array, sampled)
    elif sampled.form == SCALAR:
        unit = f" {text_of(array.meta.units)}" if array.meta.units else ""
        yield f'<p class="value">{text_of(value_text(values.reshape(-1)[0]))}{unit}</p>\n'
    elif sampled.form == LINE:
        yield from _lines(array, values.reshape(-1))
    elif sampled.form == COLUMNS and values.dtype.kind not in "mM":
        yield from _columns(values)
    elif not comparable(values).size or values.dtype.kind in "mM":
        yield from table_of(array, sampled)
    else:
        seen = list(_micrograph(array)) if sound else []
        stacks = stacks_of(array) if sound and not seen and array.ndim > 2 else []
        if seen:
            yield from seen
        elif stacks:
            yield from volume(stacks, array.meta.units)
        else:
            yield from _strips(array, _whole(array, sampled), labels)
        if sound and not seen:
            yield from _through_time(array)
    yield from _numbers(array, sampled)


def _numbers(array: Array, sampled: Sample) -> Iterator[str]:
    """Yield a table of the numbers of an array, if it is small or has labels beside them."""
    values = sampled.values[0]
    if is_labelled(array, sampled):
        yield from labelled(array, sampled.frames[len(sampled.frames) // 2])
    elif not is_table(values) and (is_small(array, sampled) or values.dtype.kind in "mM"):
        yield from table_of(array, sampled)


# Lines ------------------------------------------------------------------------------------------


def _lines(array: Array, values: Any) -> Iterator[str]:
    """Yield the plot of an array of one axis: for complex values, of magnitude and phase."""
    parts = [("", comparable(values))]
    if values.dtype.kind == "c":
        parts = [("magnitude", np.abs(values)), ("phase, -π to π", np.angle(values))]
    elif values.dtype.kind in "mM":
        missing = np.isnat(values)
        parts = [("", np.where(missing, np.nan, values.astype(np.int64).astype(np.float64)))]
    words_of = _times_of(values) if values.dtype.kind in "mM" else None
    for title, part in parts:
        text = ", ".join(
            filter(None, (title, text_of(along_text(array)), text_of(array.meta.units or "")))
        )
        drawn = drawings.line(part, words_of=words_of)
        if drawn:
            caption = f"<figcaption>{text}</figcaption>" if text else ""
            yield f"<figure>\n{drawn}{caption}</figure>\n"


def _times_of(values: Any) -> Any:
    """Return the function that writes a number as a time of the type of these values."""
    return lambda number: value_text(np.int64(number).astype(values.dtype))


def _columns(values: Any) -> Iterator[str]:
    """Yield one line for each of a few columns, with its ends."""
    down = values.shape[0] >= values.shape[1]
    values = comparable(values if down else values.T)
    yield '<table class="lines">\n<tbody>\n'
    for number in range(values.shape[1]):
        key = f"[:, {number}]" if down else f"[{number}, :]"
        column = values[:, number]
        finite = column[np.isfinite(column)] if column.dtype.kind == "f" else column
        ends = "no finite values"
        if finite.size:
            ends = f"{number_text(finite.min())} … {number_text(finite.max())}"
        yield f'<tr><th scope="row"><code>{key}</code></th>'
        yield f'<td class="wide">{drawings.spark(column)}</td><td class="n">{ends}</td></tr>\n'
    yield TABLE_END


# Pictures ---------------------------------------------------------------------------------------


class _Files(Record):
    """Strips of pictures with their PNG files; `nbytes` is the size of all files."""

    strips: list[Strip]
    coded: list[figures.Coded]

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.coded)


def _files_of(array: Array, sampled: Sample, most: int, largest: int) -> _Files:
    """The strips of a sample with their files, as large as fits `most` bytes."""

    def make(side: int) -> _Files:
        strips = strips_of(array, sampled, side, side)
        return _Files(strips, [figures.coded(strip.pictures) for strip in strips])

    made: _Files = figures.within(make, most, largest)
    return made


def _whole(array: Array, sampled: Sample) -> Sample:
    """The sample of an array; that of a photo has means of all pixels if rows were left out."""
    if sampled.whole or sampled.damage is not None:
        return sampled
    values = averaged(array, layout_of(array), figures.WIDE)
    if values is None:
        return sampled
    layout = layout_of(array)
    size = array.dims[::-1][layout.rows], array.dims[::-1][layout.columns]
    key = sampled.frames[0].key if sampled.frames else "[:, :]"
    return sampled._replace(frames=(Frame(values, key, size),), form=layout.form)


def _strips(array: Array, sampled: Sample, labels: Labels | None) -> Iterator[str]:
    """Yield the pictures of a sample of planes: the middle one large, the others in a row."""
    if sampled.form not in (IMAGE, COLOR):
        return
    if sampled.pictures:
        yield from _sheet(array, sampled, labels)
        return
    middle = len(sampled.frames) // 2
    lead = sampled._replace(frames=(_central(array, sampled.frames[middle]),))
    photo = sampled.form == COLOR
    files = _files_of(array, lead, _PHOTO if photo else _LEAD, figures.WIDE)
    if len(files.strips) > 1:  # of complex numbers, magnitude and phase
        yield from _beside(files, _title_of(array, lead.frames[0]))
    else:
        yield _lead(files.strips[0], files.coded[0], _title_of(array, lead.frames[0]), array)
    rest = sampled.frames[:middle] + sampled.frames[middle + 1 :]
    if not rest:
        return
    files = _files_of(array, sampled._replace(frames=rest), _REST, 2 * _SIDE)
    for strip, coded in zip(files.strips, files.coded, strict=True):
        titles = [_title_of(array, frame) for frame in rest]
        name = strip.title.partition(",")[0] if len(files.strips) > 1 else ""
        yield _row(strip, coded, titles, _SIDE, name)


def _central(array: Array, frame: Frame) -> Frame:
    """The plane in the middle of all other axes, if they are several; else the given one."""
    layout = layout_of(array)
    if len(layout.outer) < 2 or layout.form != IMAGE:
        return frame
    key = middle_key(array, layout)
    plane = plane_at(array, key, DECODED // 4)
    if plane is None or plane.sampled.form != IMAGE:
        return frame
    index = {at: array.dims[::-1][at] // 2 for at in layout.outer}
    return plane.sampled.frames[0]._replace(key=plane.key, where=where_of(array, index))


def _title_of(array: Array, frame: Frame) -> str:
    """The title of a plane: its key with its coordinates, if there are several planes."""
    if not frame.key or array.ndim < 3 or not any(part.isdigit() for part in frame.key):
        return "the plane"
    return f"plane {frame.key}{f', {frame.where}' * bool(frame.where)}"


def _lead(strip: Strip, coded: figures.Coded, title: str, array: Array) -> str:
    """The large picture of an array, with its colours, unit and scale below."""
    (picture,), (data,) = coded
    photo = strip.scale is None
    width, height = figures.shown_size(
        _extent(strip, picture, photo=photo), width=figures.WIDE, height=560, enlarge=not photo
    )
    parts = _colors(array, strip)
    parts += [text_of(fact) for fact in _facts(strip, picture, width)]
    kind = " photo" * photo
    return (
        f'<figure class="lead{kind}">\n{figures.image(data, (width, height), title, strip)}'
        f"<figcaption>{_joined(parts)}</figcaption>\n</figure>\n"
    )


def _colors(array: Array, strip: Strip) -> list[str]:
    """The meaning of the colours of a picture: a bar with its unit, classes, and signs."""

    def named(number: int) -> str:
        if array.element.kind == "bool":
            return str(bool(number))
        name = class_name(array, number)
        return str(number) if name is None else f"{number} {name}"

    bar = figures.color_bar(strip.scale, array.meta.units)
    return [bar, figures.class_key(strip, named), figures.signs_of(strip)]


def _extent(strip: Strip, picture: Any, *, photo: bool) -> tuple[int, ...]:
    """The rows and columns by which a picture is sized: for a photo those of all its pixels."""
    rows, columns = picture.pixels.shape[:2]
    if not photo:
        return rows, columns
    factor = max(1.0, strip.shape[1] / columns)
    return round(rows * factor), round(columns * factor)


def _facts(strip: Strip, picture: Any, width: int) -> list[str]:
    """Describe how a picture is hung, what its colours are, and how large an element is."""
    scale = strip.scale
    parts = [strip.hanging.text]
    is_picked = scale is not None and scale.colors in (CLASSES, PHASE)  # not averaged
    if scale is not None and not is_picked and not scale.high > scale.low:
        parts.append(strip.title)
    rows, columns = picture.pixels.shape[:2]
    if columns < strip.shape[1] or rows < strip.shape[0]:
        how = "by one of each" if is_picked else "means"
        parts.append(
            f"{columns} × {rows} {how} of {strip.shape[1]:,} × {strip.shape[0]:,} elements"
        )
    else:
        parts.append(figures.stretch_text(strip, width))
    return parts


def _joined(parts: list[str]) -> str:
    """The parts of a caption, without empty ones, in one line."""
    return " · ".join(part.strip() for part in parts if part)


def _beside(files: _Files, title: str) -> Iterator[str]:
    """Yield magnitude and phase side by side."""
    yield '<div class="pair">\n'
    for strip, coded in zip(files.strips, files.coded, strict=True):
        (picture,), (data,) = coded
        width, height = figures.shown_size(
            picture.pixels.shape, width=figures.WIDE // 2 - 10, height=440, enlarge=True
        )
        name = strip.title.partition(",")[0]
        parts = [f"<b>{text_of(name)}</b>", figures.color_bar(strip.scale)]
        parts += [figures.signs_of(strip)]
        parts += [text_of(fact) for fact in _facts(strip, picture, width)]
        caption = f"<code>{text_of(title)}</code>"
        shown = figures.image(data, (width, height), f"{name}, {title}", strip, caption=caption)
        yield f"<figure>\n{shown}<figcaption>{_joined(parts)}</figcaption>\n</figure>\n"
    yield "</div>\n"


def _row(strip: Strip, coded: figures.Coded, titles: list[str], side: int, name: str = "") -> str:
    """A row of small pictures with their titles; `name` is that of the row."""
    photo = strip.scale is None
    cells = [
        figures.image(
            data, figures.small_size(picture, side, enlarge=not photo),
            f"{name}, {title}" if name else title, strip, caption=f"<code>{text_of(title)}</code>",
        )
        for picture, data, title in zip(coded.pictures, coded.files, titles, strict=True)
    ]  # fmt: skip
    kind = " photo" * photo
    caption = f"<figcaption>{text_of(name)}</figcaption>\n" if name else ""
    return f'<figure>\n<div class="strip{kind}">\n{"".join(cells)}</div>\n{caption}</figure>\n'


def _sheet(array: Array, sampled: Sample, labels: Labels | None) -> Iterator[str]:
    """Yield many small pictures, each with its number and its label."""
    files = _files_of(array, sampled, _LEAD, 128)
    titles = titles_of(sampled, labels)
    yield f"<p>{len(titles)} of {sampled.pictures:,} pictures, each with its number"
    yield f"{' and its label' * (labels is not None)}:</p>\n"
    for strip, coded in zip(files.strips, files.coded, strict=True):
        cells = [
            figures.image(data, figures.small_size(picture, _SMALL_SIDE), title, strip)
            for picture, data, title in zip(coded.pictures, coded.files, titles, strict=True)
        ]
        width = figures.small_size(coded.pictures[0], _SMALL_SIDE)[0]
        parts = _colors(array, strip)
        parts += [text_of(fact) for fact in _facts(strip, coded.pictures[0], width)]
        yield f'<figure>\n<div class="strip sheet">\n{"".join(cells)}</div>\n'
        yield f"<figcaption>{_joined(parts)}</figcaption>\n</figure>\n"


# Through time ------------------------------------------------------------------------------------


def _through_time(array: Array) -> Iterator[str]:
    """Yield the middle plane at a few times."""
    times = times_of(array) if array.ndim > 3 else None
    if times is None or len(times.titles) < 2:
        return
    files = _files_of(times.array, times.sampled, _REST, 2 * _SIDE)
    for strip, coded in zip(files.strips, files.coded, strict=True):
        name = strip.title.partition(",")[0] if len(files.strips) > 1 else ""
        yield f'<p class="part">{_joined([name.capitalize(), "Through time"])}</p>\n'
        yield _row(strip, coded, times.titles, _TIME_SIDE)
        keys = [frame.key for frame in times.sampled.frames]
        colors = "" if strip.scale is None else f"{ends_of(strip.scale)}, "
        more = text_of(f" {times.text}" * bool(times.text))
        yield f"<p class=soft>{text_of(colors)}planes <code>{text_of(keys[0])}</code> to "
        yield f"<code>{text_of(keys[-1])}</code>{more}</p>\n"


# Micrographs -------------------------------------------------------------------------------------


class _Mix(Record):
    """A plane of a micrograph with the files of its pictures; None if it is not a picture."""

    made: Mixed | None
    coded: figures.Coded

    @property
    def nbytes(self) -> int:
        return self.coded.nbytes


def _mix(seen: Seen, scales: list[Any], most: int, largest: int, *, alone: bool) -> _Mix:
    """The picture of all channels, or those of each alone, as large as fits `most` bytes."""

    def make(side: int) -> _Mix:
        made = mixed(seen, scales, side)
        if made is None:
            return _Mix(None, figures.coded([]))
        strips = made.alone if alone else [made.together]
        return _Mix(made, figures.coded([strip.pictures[0] for strip in strips]))

    mix: _Mix = figures.within(make, most, largest)
    return mix


def _micrograph(array: Array) -> Iterator[str]:
    """Yield all channels together, each alone, and all through time; nothing for other arrays."""
    axis = channel_axis(array) if array.described else None
    seen = None if axis is None else seen_at(array, axis)
    if axis is None or seen is None:
        return
    scales = scales_of([seen])
    lead = _mix(seen, scales, _PHOTO, figures.WIDE, alone=False)
    if lead.made is None:
        return
    strip = lead.made.together
    (picture,), (data,) = lead.coded
    width, height = figures.shown_size(
        picture.pixels.shape, width=figures.WIDE, height=_MICROGRAPH, enlarge=True
    )
    many = array.shape[axis]
    more = f"the first {len(seen.channels)} of {many} channels" if many > len(seen.channels) else ""
    parts = [
        f"{names_of(seen.channels)}{f' ({more})' * bool(more)}",
        lead.made.origin,
        *_facts(strip, picture, width),
    ]
    shown = figures.image(data, (width, height), f"plane {seen.key}", strip)
    yield f'<figure class="lead">\n{shown}'
    yield f"<figcaption>{text_of(' · '.join(filter(None, parts)))}</figcaption>\n</figure>\n"
    rest = _mix(seen, scales, _REST, 2 * _SIDE, alone=True)
    if rest.made is None:
        return
    yield '<figure>\n<div class="strip channels">\n'
    for strip, data, scale, channel in zip(
        rest.made.alone, rest.coded.files, scales, seen.channels, strict=True
    ):
        bar = figures.bar_of(ramp_of(channel.color), scale, array.meta.units)
        size = figures.small_size(strip.pictures[0], _SIDE + 50)
        caption = f"{text_of(channel.name)}<br>{bar}"
        yield figures.image(data, size, channel.name, strip, caption=caption)
    yield "</div>\n</figure>\n"
    yield from _mixed_times(array, axis, scales)


def _mixed_times(array: Array, axis: int, scales: list[Any]) -> Iterator[str]:
    """Yield a micrograph at a few times, in the same colours."""
    layout = layout_of(array)
    outer = tuple(at for at in layout.outer if at != _slowest_first(array, axis))
    times = time_axis(array, layout._replace(outer=outer)) if outer else None
    if times is None or times == axis or array.shape[times] < 2:
        return
    indices = time_indices(array.shape[times])
    budget = DECODED // len(indices)
    planes = [seen_at(array, axis, {times: at}, budget=budget) for at in indices]
    seen = [plane for plane in planes if plane is not None]
    if len(seen) < len(planes):
        yield "<p class=soft>No strip through time: too much would have to be decoded.</p>\n"
        return
    titles = [title_of(array.axes[times], at, array.shape[times]) for at in indices]

    def make(side: int) -> _Mix:
        made = [mixed(plane, scales, side) for plane in seen]
        together = [one.together.pictures[0] for one in made if one is not None]
        return _Mix(made[0], figures.coded(together))

    mix: _Mix = figures.within(make, _REST, _SIDE)
    if mix.made is None:
        return
    strip = mix.made.together._replace(scale=scales[0])
    yield '<p class="part">Through time</p>\n'
    yield _row(strip, mix.coded, titles, _TIME_SIDE)
    yield "<p class=soft>each channel in the same colours as above</p>\n"


def _slowest_first(array: Array, axis: int) -> int:
    """The number of an axis of `shape`, counted slowest first."""
    return array.ndim - 1 - axis if array.index_order == "F" else axis
