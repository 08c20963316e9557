"""A page about what differs: between two files, with pictures, or between folders, as a list."""

from __future__ import annotations

import os
from itertools import repeat

import numpy as np

from raconvert.declared import Record
from raconvert.errors import counted
from raconvert.views.comparison import seen_of
from raconvert.views.one_scale import figure, legend
from raconvert.views.pages.figures import color_bar
from raconvert.views.pages.markup import cut, name_of, page, share_cell, table, text_of
from raconvert.views.picture import CLASSES, DIFFERENCE
from raconvert.views.sample import where_of
from raconvert.views.terminal import envelope, number_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.inspect.where import Where
    from raconvert.views.comparison import Seen, Side


_SIDE = 300  # rows and columns of the pictures of one array; of several, half as many
_LEAST_SIDE = 200  # pixels of a picture on the page
_MOST_SHOWN = 8  # arrays of containers with pictures
_MOST_ROWS = 200  # rows of a table
_WIDE, _HIGH = 720, 160  # of a drawing of lines


class Compared(Record):
    """Two arrays that were compared: the facts by `compare_arrays`, and where they differ."""

    a: Array
    b: Array
    facts: dict[str, Any]
    where: Where | None


def page_of(differences: dict[str, Any], pairs: list[Compared]) -> Iterator[str]:
    """Yield the page about two files, by the result of `diff`; their arrays are still open."""
    names = [os.path.basename(differences[side].rstrip("/")) or differences[side] for side in "ab"]
    yield from page("comparison", names, _lead(differences), _body_of(differences, pairs))


def _body_of(differences: dict[str, Any], pairs: list[Compared]) -> Iterator[str]:
    """Yield the sections of the page about two files."""
    paths = (f"{side.upper()} is {name_of(differences[side])}" for side in "ab")
    yield f"<p>{', '.join(paths)}.</p>\n"
    if len(pairs) == 1 and not (differences["only_in_a"] or differences["only_in_b"]):
        yield from _array(pairs[0], _SIDE, "")
    else:
        yield from _overview(differences)
        different = [pair for pair in pairs if not pair.facts["same"]]
        for pair in different[:_MOST_SHOWN]:
            yield from _array(pair, _SIDE // 2, pair.facts["name"])
        if len(different) > _MOST_SHOWN:
            more = len(different) - _MOST_SHOWN
            yield f"<p>{more:,} more arrays differ: see the table.</p>\n"
    yield from _about(differences)


def _lead(differences: dict[str, Any]) -> str:
    """Describe in a line what differs between two files."""
    if differences["same"]:
        return "the same"
    parts = ["different"]
    arrays = differences["arrays"]
    if len(arrays) == 1:
        data = arrays[0]["data"]
        if data is not None and data["differ"]:
            parts.append(f"{data['differ']:,} of {data['count']:,} elements differ")
            parts += _largest(data)
        elif data is not None:
            parts.append("all elements are equal")
        parts += ["type differs"] * (not arrays[0]["same_type"])
        parts += ["shape differs"] * (not arrays[0]["same_shape"])
        parts += ["metadata differs"] * bool(arrays[0]["metadata"] or arrays[0]["items"])
    else:
        different = sum(not facts["same"] for facts in arrays)
        parts.append(f"{different:,} of {counted(len(arrays), 'array')} in both differ")
    for side in "ab":
        alone = differences[f"only_in_{side}"]
        parts += [f"{counted(len(alone), 'array')} only in {side.upper()}"] * bool(alone)
    return " · ".join(parts)


def _largest(data: dict[str, Any]) -> list[str]:
    """Describe the largest difference, if there is one."""
    largest = _value_text(data["max_abs"])
    return [f"by {largest} at most"] if largest else []


def _value_text(value: float | str | None) -> str:
    """A number of the result of `diff` as text; empty without one."""
    if value is None:
        return ""
    return value if isinstance(value, str) else number_text(value)


# Arrays of containers -----------------------------------------------------------------------------


def _overview(differences: dict[str, Any]) -> Iterator[str]:
    """Yield the table of all arrays, those that differ first."""
    arrays = sorted(differences["arrays"], key=lambda facts: bool(facts["same"]))
    rows = [
        f"<tr><td>{name_of(facts['name'])}</td><td>{_verdict(facts['same'])}</td>"
        f"<td>{_form(facts)}</td>{_numbers(facts)}</tr>\n"
        for facts in arrays[:_MOST_ROWS]
    ]
    rows += [
        f'<tr><td>{name_of(name)}</td><td class="refused">only in {side.upper()}</td>'
        "<td></td><td></td><td></td></tr>\n"
        for side in "ab"
        for name in differences[f"only_in_{side}"][:_MOST_ROWS]
    ]
    yield "<h2>Arrays</h2>\n"
    heads = ("array", "verdict", "type and shape", ">differ", ">largest")
    yield from table(rows, *heads, kind="arrays")
    counts = [len(arrays), len(differences["only_in_a"]), len(differences["only_in_b"])]
    if more := sum(max(0, count - _MOST_ROWS) for count in counts):
        yield f"<p>and {more:,} more (<code>raconvert diff</code>)</p>\n"


def _verdict(same: bool) -> str:
    return '<span class="exact">same</span>' if same else '<span class="refused">different</span>'


def _form(facts: dict[str, Any]) -> str:
    """The types and shapes of an array on both sides, or why it cannot be read."""
    if any(facts["problems"]):
        why = "; ".join(problem for problem in facts["problems"] if problem)
        return f'<span class="bad">cannot be read: {text_of(cut(why))}</span>'
    types = [cut(text) for text in facts["type"]]
    shapes = [_shape(shape) for shape in facts["shape"]]
    return ", ".join(text_of(_both(pair)) for pair in (types, shapes))


def _both(pair: Sequence[str]) -> str:
    """Two texts with the sign between them, or the one text that both are."""
    return pair[0] if pair[0] == pair[1] else f"{pair[0]} ≠ {pair[1]}"


def _shape(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


def _numbers(facts: dict[str, Any]) -> str:
    """The cells with the number of elements that differ, and the largest difference."""
    data = facts["data"]
    if data is None:
        return "<td></td><td></td>"
    largest = text_of(_value_text(data["max_abs"]))
    return f'<td class="n">{data["differ"]:,}</td><td class="n">{largest}</td>'


# One array ----------------------------------------------------------------------------------------


def _array(pair: Compared, side: int, name: str) -> Iterator[str]:
    """Yield the section about one array: its pictures, and where, how much and how it differs."""
    facts, where = pair.facts, pair.where
    if name:
        yield f"<h2>{name_of(name)}</h2>\n"
    level = "h3" if name else "h2"
    data = facts["data"]
    if data is not None and where is not None and not any(facts["problems"]):
        seen = seen_of(pair.a, pair.b, where, data["max_abs_index"], side)
        if seen is not None:
            yield f"<{level}>Side by side</{level}>\n"
            yield from _pictures(pair.a, seen)
        if data["differ"]:
            yield f"<{level}>Where</{level}>\n"
            yield from _where(pair.a, where)
            yield f"<{level}>How much</{level}>\n"
            yield from _how_much(pair.a, data, where)
            yield from _examples(data, where)
    yield f"<{level}>Type, shape and metadata</{level}>\n"
    yield from _facts_table(facts)


def _pictures(array: Array, seen: Seen) -> Iterator[str]:
    """Yield the pictures of both sides and of their difference, or the drawing of lines."""
    if seen.problem:
        yield f"<p>No picture: {text_of(seen.problem)}.</p>\n"
        return
    if array.ndim > 2 or seen.key.replace(":", "").strip("[], "):
        yield f"<p>The part <code>{text_of(seen.key)}</code>{text_of(seen.about)}:</p>\n"
    if seen.lines:
        yield from _drawing(seen)
        return
    yield '<figure>\n<div class="four">\n'
    longest = max(max(side.picture.pixels.shape[:2]) for side in seen.sides)
    size = longest * max(1, -(-_LEAST_SIDE // longest))
    for side in seen.sides:
        below = f"<b>{text_of(side.title)}</b> {_colors(side)}"
        yield figure(side.picture, side.title, size, below)
    yield f"</div>\n<figcaption>{text_of(_caption(seen, size))}</figcaption>\n</figure>\n"


def _colors(side: Side) -> str:
    """Describe the colours of a picture."""
    scale = side.scale
    if scale is None:
        return ""
    if scale.colors == CLASSES:
        return "dark: equal, blue: different"
    words = legend(scale, [side.picture], ends=False)
    if scale.colors == DIFFERENCE and not scale.high:
        return text_of(", ".join(filter(None, ("0 everywhere", words))))
    return f"{color_bar(scale)}{text_of(words)}"


def _caption(seen: Seen, size: int) -> str:
    """Describe the limits and the size of the pictures, whose longer side has so many pixels."""
    parts = ["A and B have the same limits"]
    if not seen.is_size:
        parts.append("in B - A red is larger in B, blue is larger in A, white is equal")
    longest = max(seen.shape)
    shown = max(seen.sides[0].picture.pixels.shape[:2])
    if shown < longest:
        parts.append("A and B are averaged, of the differences in a pixel the largest one is shown")
    elif size > longest:
        parts.append(f"each element is {size // longest} pixels wide")
    return "; ".join(parts)


def _drawing(seen: Seen) -> Iterator[str]:
    """Yield both lines with one scale, and the difference below."""
    x, y, signed = seen.lines
    title = "|B - A|" if seen.is_size else "B - A"
    yield f"<figure>\n{_plot([x, y], 'A and B')}"
    yield '<figcaption><span class="key data"></span>A <span class="key header"></span>B, '
    yield f"with the same scale</figcaption>\n</figure>\n<figure>\n{_plot([signed], title)}"
    yield f"<figcaption>{title}</figcaption>\n</figure>\n"


def _plot(lines: list[Any], words: str) -> str:
    """Draw lines with one scale; a column that has many values shows their extremes."""
    ends = [envelope(line, _WIDE // 2) for line in lines]
    lows = np.concatenate([low for low, _ in ends])
    highs = np.concatenate([high for _, high in ends])
    if not np.isfinite(lows).any():
        return "<p>no finite values</p>\n"
    bottom, top = float(np.nanmin(lows)), float(np.nanmax(highs))
    span = (top / 2 - bottom / 2) or 1.0
    parts = []
    for (low, high), kind in zip(ends, ("data", "header"), strict=False):
        step = _WIDE / max(1, len(low))
        for at in np.flatnonzero(np.isfinite(low)).tolist():
            above, below = (
                _HIGH - 10 - (_HIGH - 30) * (float(value) / 2 - bottom / 2) / span
                for value in (high[at], low[at])
            )
            parts.append(
                f'<rect class="{kind} bare" x="{at * step:.1f}" y="{above - 1:.1f}" '
                f'width="{max(1.5, step):.1f}" height="{below - above + 2:.1f}"/>'
            )
    for y, value in ((12, top), (_HIGH + 12, bottom)):
        parts.append(f'<text class="soft" x="2" y="{y}">{text_of(number_text(value))}</text>')
    return (
        f'<svg class="plot" viewBox="0 0 {_WIDE} {_HIGH + 16}" role="img" '
        f'aria-label="{text_of(words)}">\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _where(array: Array, where: Where) -> Iterator[str]:
    """Yield the box around all differences, and the planes with most of them."""
    if where.low is None or where.high is None or not array.ndim:
        return
    axes = array.axes if array.described else ()
    ends = []
    for axis, bounds in enumerate(zip(where.low, where.high, strict=True)):
        coordinates = dict.fromkeys(_coordinate(array, axis, at) for at in bounds)
        ends.append(" to ".join(filter(None, coordinates)))
    rows = []
    for number, (low, high) in enumerate(zip(where.low, where.high, strict=True)):
        name = (axes[number].name or "") if len(axes) == array.ndim else ""
        label = f"{number} {name_of(name)}" if name else str(number)
        row = f'<tr><td>{label}</td><td class="n">{low:,}</td><td class="n">{high:,}</td>'
        row += f'<td class="n">{array.shape[number]:,}</td>'
        row += f"<td>{text_of(ends[number])}</td>" * any(ends)
        rows.append(f"{row}</tr>\n")
    yield from table(rows, "axis", ">from", ">to", ">of", *["coordinates"] * any(ends))
    yield from _planes(array, where)


def _planes(array: Array, where: Where) -> Iterator[str]:
    """Yield the planes with most of the differences."""
    most = where.most
    if not where.outer or len(most) < 2:
        return
    planes = int((where.planes > 0).sum()) if where.planes is not None else 0
    yield f"<p>{planes:,} planes differ; those with most differences:</p>\n"
    coordinates = [
        ", ".join(filter(None, map(_coordinate, repeat(array), where.outer, index)))
        for index, _ in most
    ]
    rows = []
    for (index, count), text in zip(most, coordinates, strict=True):
        key = [":"] * array.ndim
        for axis, at in zip(where.outer, index, strict=True):
            key[axis] = str(at)
        row = f"<tr><td><code>[{', '.join(key)}]</code></td>"
        row += f'<td class="n">{count:,}</td>{share_cell(count / most[0][1])}'
        row += f"<td>{text_of(text)}</td>" * any(coordinates)
        rows.append(f"{row}</tr>\n")
    yield from table(rows, "plane", ">differences", "share", *["coordinates"] * any(coordinates))


def _coordinate(array: Array, axis: int, at: int) -> str:
    """The coordinate or the label at an index of an axis; empty without one."""
    if not array.described:
        return ""
    slowest_first = array.ndim - 1 - axis if array.index_order == "F" else axis
    return where_of(array, {slowest_first: at})


def _how_much(array: Array, data: dict[str, Any], where: Where) -> Iterator[str]:
    """Yield the facts about the sizes of the differences, and their histogram."""
    units = f" {array.meta.units}" if array.described and array.meta.units else ""
    rows = [("elements that differ", f"{data['differ']:,} of {data['count']:,}")]
    for name, words in (("abs", "largest difference"), ("rel", "largest relative difference")):
        text = _value_text(data[f"max_{name}"])
        if text:
            unit = units if name == "abs" else ""
            rows.append((words, f"{text}{unit} at {data[f'max_{name}_index']}"))
    if where.larger or where.smaller:
        rows.append(("B is larger, A is larger", f"{where.larger:,}, {where.smaller:,}"))
    if where.finite and (where.larger or where.smaller):
        text = f"{number_text(where.total / where.finite)}{units}"
        rows.append(("mean of B - A, where they differ", text))
    for side in "ab":
        count = data[f"nan_only_in_{side}"]
        rows += [(f"NaN only in {side.upper()}", f"{count:,}")] * bool(count)
    yield '<dl class="facts">\n'
    yield from (f"<dt>{text_of(name)}</dt><dd>{text_of(text)}</dd>\n" for name, text in rows)
    yield "</dl>\n"
    if not where.sizes:
        return
    most = max(where.sizes.values())
    sizes = [
        f"<tr><td>from 1e{power} to 1e{power + 1}</td>"
        f'<td class="n">{count:,}</td>{share_cell(count / most)}</tr>\n'
        for power, count in sorted(where.sizes.items(), reverse=True)[:_MOST_ROWS]
    ]
    yield from table(sizes, "size of the difference", ">elements", "share")


def _examples(data: dict[str, Any], where: Where) -> Iterator[str]:
    """Yield the table of the first elements that differ."""
    if not where.examples:
        return
    which = "All of them" if len(where.examples) == data["differ"] else "The first of them"
    yield f"<p>{which}:</p>\n"
    rows = (
        f"<tr><td><code>{list(index)}</code></td>"
        f"<td>{text_of(_element(x))}</td><td>{text_of(_element(y))}</td></tr>\n"
        for index, x, y in where.examples
    )
    yield from table(rows, "at", "A", "B")


def _element(value: Any) -> str:
    """An element in full, as text."""
    value = value if value.dtype.kind in "mM" else value.item()
    return cut(repr(value) if isinstance(value, float | complex) else str(value))


def _facts_table(facts: dict[str, Any]) -> Iterator[str]:
    """Yield type, shape and metadata of both sides, what differs first."""
    if any(facts["problems"]):
        for side, problem in zip("AB", facts["problems"], strict=True):
            if problem:
                yield f'<p class="bad">{side} cannot be read: {text_of(cut(problem))}</p>\n'
        return
    shapes = [_shape(shape) for shape in facts["shape"]]
    rows = [
        _row("type", facts["type"], same=facts["same_type"]),
        _row("shape", shapes, same=facts["same_shape"]),
        *map(_field, facts["metadata"][:_MOST_ROWS]),
    ]
    items = facts["items"]
    if items:
        head = f"{items['differ']} items, the first [{items['first']}]"
        rows.append(_row(head, ["", ""], same=False))
        rows += map(_field, items["fields"][:_MOST_ROWS])
    yield from table(rows, "what", "A", "is", "B")
    if not facts["metadata"] and not items:
        yield "<p>No difference of metadata.</p>\n"


def _row(name: str, both: Sequence[str], *, same: bool) -> str:
    """A row of a table with a value of both sides, and the sign between them."""
    sign = "=" if same else '<span class="refused">≠</span>'
    return (
        f"<tr><td>{text_of(cut(name))}</td><td>{text_of(cut(both[0]))}</td><td>{sign}</td>"
        f"<td>{text_of(cut(both[1]))}</td></tr>\n"
    )


def _field(item: dict[str, Any]) -> str:
    """The row of a field that differs, with the types of values that look alike."""
    both = [repr(item[side]) if side in item else "absent" for side in "ab"]
    if "types" in item:
        both = [f"{text} ({kind})" for text, kind in zip(both, item["types"], strict=True)]
    return _row(item["field"], both, same=False)


# The files as a whole, and folders ----------------------------------------------------------------


def _about(differences: dict[str, Any]) -> Iterator[str]:
    """Yield the table of the differences of files as a whole, and of their groups."""
    rows = [
        _field(item) for item in [*differences["metadata"], *differences["groups"]][:_MOST_ROWS]
    ]
    for item in differences["forms"][:_MOST_ROWS]:
        forms = [str(item.get(side) or "a plain group") for side in "ab"]
        rows.append(_row(f"form of {item['field']}", forms, same=False))
    rows += [_field(item) for item in differences["aliases"][:_MOST_ROWS]]
    if differences["order"]:
        name = f"array {differences['order']['index']} in order"
        rows.append(_row(name, [differences["order"]["a"], differences["order"]["b"]], same=False))
    if rows:
        yield "<h2>The files</h2>\n"
        yield from table(rows, "what", "A", "is", "B")


def tree_page(
    a: str, b: str, counts: dict[str, int], lists: dict[str, list[tuple[str, str]]]
) -> Iterator[str]:
    """Yield the page about two folders: how many files of each verdict, and which of them.

    `lists` has paths with reasons by verdict; files of other verdicts are only counted.
    """
    names = [os.path.basename(os.path.abspath(path)) or path for path in (a, b)]
    verdicts = [f"{count:,} {word}" for word, count in counts.items() if count]
    lead = " · ".join([counted(sum(counts.values()), "file"), *verdicts])
    yield from page("comparison", names, lead, _body_of_tree(a, b, counts, lists))


def _body_of_tree(
    a: str, b: str, counts: dict[str, int], lists: dict[str, list[tuple[str, str]]]
) -> Iterator[str]:
    """Yield the sections of the page about two folders."""
    yield f"<p>a is {name_of(a)}, b is {name_of(b)}.</p>\n"
    total = sum(counts.values())
    if total:
        rows = [
            f'<tr><td>{text_of(word)}</td><td class="n">{count:,}</td>'
            f"{share_cell(count / total)}</tr>\n"
            for word, count in counts.items()
        ]
        yield from table(rows, "verdict", ">files", "share")
    for word, files in lists.items():
        if not files:
            continue
        yield f"<h2>{text_of(word.capitalize())}</h2>\n"
        has_reasons = any(reason for _, reason in files)
        rows = [
            f"<tr><td>{name_of(path)}</td>"
            + f"<td>{text_of(cut(reason))}</td>" * has_reasons
            + "</tr>\n"
            for path, reason in files[:_MOST_ROWS]
        ]
        yield from table(rows, "file", *["how"] * has_reasons)
        if len(files) > _MOST_ROWS:
            more = len(files) - _MOST_ROWS
            yield f"<p>and {more:,} more (<code>raconvert diff -v</code>)</p>\n"
