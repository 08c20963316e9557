"""Section of a page for one array: pictures of a sample, or a plot, and its numbers."""

from __future__ import annotations

from base64 import b64encode
from html import escape

import numpy as np

from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import few_lengths, size, type_name
from raconvert.arrays.layout import COLOR, EMPTY, IMAGE, LINE
from raconvert.conversion.report import Report
from raconvert.errors import RaconvertError, quoted
from raconvert.views import drawings, terminal
from raconvert.views.filmstrip import strips_of, titles_of
from raconvert.views.hanging import scale_bar
from raconvert.views.markup import name_of, text_of
from raconvert.views.numbers import comparable
from raconvert.views.peek import Screen, number_lines, shown
from raconvert.views.picture import CLASSES, PHASE, SIGNS, palette_of, png_of
from raconvert.views.sample import shown_of
from raconvert.views.terminal import number_text
from raconvert.views.volume import stacks_of, volume

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.views.filmstrip import Labels, Strip
    from raconvert.views.picture import Picture
    from raconvert.views.sample import Sample


_PICTURES = 60_000  # bytes of all pictures of an array on a page
_PIXELS = (224, 176, 128, 96, 72, 48, 32)  # sides in pixels, tried until the pictures fit _PICTURES
_SIDE = 150  # side of a small picture on the page, in pixels
_SMALL_SIDE = 84  # the same if there are many
_SHEET = 24  # small pictures per array
_SCREEN = Screen(columns=78, way=terminal.NONE)


def section_of(array: Array, *, full: bool = False, labels: Labels | None = None) -> Iterator[str]:
    """Yield the pictures or plots of an array, with their labels, and its numbers.

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
    lines: list[str] = []
    damage = None if sampled is None else sampled.damage
    stacks = stacks_of(array) if sampled is not None and damage is None else []
    if stacks:
        yield from volume(stacks, array.meta.units)
    elif sampled is not None:
        values = sampled.values[0]
        drawable = values.dtype.kind not in "SU" and bool(comparable(values).size)
        if sampled.form == LINE and drawable:
            yield from _lines(values.reshape(-1))
        else:
            yield from _strips(array, sampled, labels)
            lines += shown(array, sampled, _SCREEN)
    lines += number_lines(array, sampled, _SCREEN, full=full)
    if lines:
        yield f"<pre>{escape(chr(10).join(map(quoted, lines)))}</pre>\n"
    if damage is not None:
        raise damage


def _lines(values: Any) -> Iterator[str]:
    if values.dtype.kind == "c":
        for title, part in (("magnitude", np.abs(values)), ("phase", np.angle(values))):
            yield f"<figure>\n{drawings.line(part)}<figcaption>{title}</figcaption></figure>\n"
        return
    yield f"<figure>\n{drawings.line(comparable(values))}</figure>\n"


def _strips(array: Array, sampled: Sample, labels: Labels | None) -> Iterator[str]:
    values = sampled.values[0]
    if sampled.form not in (IMAGE, COLOR) or not _has_pixels(values):
        return
    for pixels in _PIXELS:
        strips = strips_of(array, sampled, pixels, pixels)
        coded = [[png_of(picture) for picture in strip.pictures] for strip in strips]
        if sum(len(one) for strip in coded for one in strip) <= _PICTURES:
            break
    keys = [frame.key for frame in sampled.frames]
    titles = [
        f"plane {frame.key}{f', {frame.where}' * bool(frame.where)}"
        if frame.key and array.ndim > 2
        else "the plane"
        for frame in sampled.frames
    ]
    side = _SIDE if len(keys) > 1 else 2 * _SIDE
    if sampled.pictures:
        titles, side = titles_of(sampled, labels), _SMALL_SIDE
        yield f"<p>{len(keys)} of {sampled.pictures:,} pictures, each with its number"
        yield f"{' and its label' * (labels is not None)}:</p>\n"
    for strip, files in zip(strips, coded, strict=True):
        yield '<figure>\n<div class="strip">\n'
        for picture, data, title in zip(strip.pictures, files, titles, strict=True):
            yield _image(strip, picture, data, title, side)
        yield f"</div>\n<figcaption>{_color_bar(strip)}{_caption(strip, side)}</figcaption>\n"
        yield "</figure>\n"


def _has_pixels(values: Any) -> bool:
    return values.dtype.kind not in "SUmM" and bool(comparable(values).size)


def _factor(picture: Picture, side: int) -> float:
    """Return the number of pixels of the page that a pixel of a picture takes."""
    height, width = picture.pixels.shape[:2]
    return float(max(1.0, side / max(height, width)))


def _caption(strip: Strip, side: int) -> str:
    """Describe the colours, how it is hung, and by how much it is larger than its elements."""
    picture = strip.pictures[0]
    factor = _factor(picture, side) * picture.pixels.shape[1] / strip.shape[1]
    parts = [strip.legend(terminal.looks_of_signs(terminal.NONE))]
    parts += [f"each element {factor:.3g} pixels wide"] if factor > 1 else []
    parts += [f"reduced to {100 * factor:.3g} %"] if factor < 1 else []
    return text_of(", ".join(part for part in parts if part))


def _color_bar(strip: Strip) -> str:
    """The colours from the least to the largest value that they show, with both."""
    scale = strip.scale
    if scale is None or scale.colors in (CLASSES, PHASE) or not scale.high > scale.low:
        return ""
    colors = palette_of(scale.colors)[len(SIGNS) :: 28].tolist()
    stops = ",".join(f"rgb({red},{green},{blue})" for red, green, blue in colors)
    low, high = number_text(scale.low), number_text(scale.high)
    return (
        f'<span class="bar"><code>{low}</code><i style="background:linear-gradient(90deg,{stops})">'
        f"</i><code>{high}</code></span> "
    )


def _image(strip: Strip, picture: Picture, data: bytes, title: str, side: int) -> str:
    height, width = picture.pixels.shape[:2]
    factor = _factor(picture, side)
    text = b64encode(data).decode("ascii")
    size = f'width="{width * factor:.0f}" height="{height * factor:.0f}"'
    return (
        f'<div><span class="hung"><img {size} alt="{text_of(title)}" '
        f'src="data:image/png;base64,{text}">{_edges(strip)}</span>'
        f"{_scale_bar(strip, width * factor)}<br><code>{text_of(title)}</code></div>\n"
    )


def _edges(strip: Strip) -> str:
    """The letters of the ends of the body at the edges of its picture."""
    names = zip(("left", "right", "top", "bottom"), strip.hanging.edges, strict=False)
    return "".join(f'<b class="{edge}">{letter}</b>' for edge, letter in names)


def _scale_bar(strip: Strip, width: float) -> str:
    bar = scale_bar(strip.hanging, strip.shape[1])
    if bar is None:
        return ""
    share, length = bar
    return f'<span class="ruler" style="width:{share * width:.0f}px">{text_of(length)}</span>'


# What a notebook shows: an array with its picture or plot, a bundle as a table, a report ---------


_MOST = 60  # rows shown of a table
_STYLE = """<style>
.raconvert { --one: #4a90d9; }
.raconvert .strip { display: flex; flex-wrap: wrap; gap: 10px; }
.raconvert img { image-rendering: pixelated; }
.raconvert figure { margin: 8px 0; }
.raconvert svg { display: block; max-width: 720px; width: 100%; fill: currentColor; }
.raconvert .line { fill: var(--one); stroke: var(--one); }
.raconvert figcaption { opacity: .7; }
.raconvert td, .raconvert th { text-align: left; }
.raconvert .hung { position: relative; display: inline-block; }
.raconvert .hung b { position: absolute; color: #fff; text-shadow: 0 0 3px #000; font-size: 12px; }
.raconvert .left { left: 3px; top: 42%; } .raconvert .right { right: 3px; top: 42%; }
.raconvert .top { top: 1px; left: 46%; } .raconvert .bottom { bottom: 1px; left: 46%; }
.raconvert .ruler { display: block; border-top: 2px solid; font-size: 11px; white-space: nowrap; }
.raconvert .bar i { display: inline-block; width: 9em; height: .8em; margin: 0 .4em; }
</style>"""


def cell_of(shown: Any) -> str:
    """The HTML of an array, a bundle or a report. Raises nothing for what cannot be read."""
    parts = _array(shown) if isinstance(shown, Array) else _report(shown)
    if isinstance(shown, Bundle):
        parts = _bundle(shown)
    return f'<div class="raconvert">{_STYLE}\n{"".join(parts)}</div>'


def _array(array: Array) -> Iterator[str]:
    yield f"<p>{name_of(array.name)} {_line(array)}</p>\n"
    if array.problem is not None:
        return
    try:
        yield from list(section_of(array))
    except RaconvertError as error:
        yield f"<p>The elements cannot be read: {text_of(error.what)}</p>\n"


def _line(array: Array) -> str:
    if array.problem is not None:
        return f"cannot be read: {text_of(array.problem.what)}"
    shape = f"({few_lengths(array.shape, ', ')}{',' if array.ndim == 1 else ''})"
    dims = few_lengths(array.dims, " × ") or "none"
    order = array.index_order or "C"
    text = f"{type_name(array.element)}, shape {shape} {order}, dims {dims}, {size(array.nbytes)}"
    return text_of(text)


def _bundle(bundle: Bundle) -> Iterator[str]:
    count = len(bundle.arrays)
    where = f", {name_of(bundle.path)}" if bundle.path else ""
    yield f"<p>Bundle of {count} array{'s' * (count != 1)}{where}</p>\n<table>\n"
    yield "<tr><th>name</th><th>what</th></tr>\n"
    for array in bundle.arrays[:_MOST]:
        yield f"<tr><td>{name_of(array.name)}</td><td>{_line(array)}</td></tr>\n"
    yield "</table>\n"
    if count > _MOST:
        yield f"<p>and {count - _MOST} more</p>\n"


def _report(report: Report) -> Iterator[str]:
    yield f"<p>{text_of(str(report))}</p>\n"
    rows = [("allowed", str(fit)) for fit in report.allowed]
    rows += [("equivalent", str(fit)) for fit in report.equivalent]
    rows += [("note", note) for note in report.notes]
    rows += [("failed", f"{path}: {error}") for path, error in report.failed]
    if rows:
        yield "<table>\n<tr><th>kind</th><th>what</th></tr>\n"
        yield from (f"<tr><td>{k}</td><td>{text_of(what)}</td></tr>\n" for k, what in rows[:_MOST])
        yield "</table>\n"
    if len(rows) > _MOST:
        yield f"<p>and {len(rows) - _MOST} more</p>\n"
