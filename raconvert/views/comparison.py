"""Two arrays side by side: the plane in which they differ most, and the difference, b - a.

Both are shown with the same limits. The plane is the one with most differences; if it is too large,
a window of it around the largest one. Where the difference is made smaller, the largest of the
values that share a pixel stands for them, so that no single element vanishes.
"""

from __future__ import annotations

from math import prod

import numpy as np

from raconvert.arrays.layout import COLOR, IMAGE, LINE, Layout, layout_of
from raconvert.arrays.reinterpret import for_showing
from raconvert.declared import Record
from raconvert.errors import RaconvertError
from raconvert.inspect.elements import order_of
from raconvert.inspect.where import Where
from raconvert.views.hanging import Hanging, hanging_of
from raconvert.views.numbers import comparable
from raconvert.views.one_scale import picture_of, shared_scale
from raconvert.views.picture import CLASSES, DIFFERENCE, Picture, Scale, colored, resized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array

    Values = np.ndarray[Any, Any]


_MOST = 1 << 20  # elements of a plane that are read of either
_WINDOW = 512  # rows and columns of the window of a plane that is too large
_LONGEST = 1 << 18  # elements of a line that are read of either


class Side(Record):
    """One of the pictures: what it shows, and its scale; None for a photo."""

    title: str
    picture: Picture
    scale: Scale | None


class Seen(Record):
    """The pictures of a plane of two arrays, or their lines, and which part of them it is."""

    key: str
    sides: list[Side]
    lines: list[Any]  # the values of both, and b - a, if they are lines
    shape: tuple[int, ...]
    problem: str = ""
    about: str = ""  # why this part
    is_size: bool = False  # True if the difference is |b - a|, of complex values


def where_of_pair(a: Array, b: Array) -> Where:
    """A place for what differs between two arrays, plane by plane as they are shown."""
    layout = layout_of(a)
    outer = [_logical(a, axis) for axis in layout.outer] if layout.form in (IMAGE, COLOR) else []
    return Where(a.shape, order_of(a, b), sorted(outer))


def seen_of(a: Array, b: Array, where: Where, largest: list[int] | None, side: int) -> Seen | None:
    """The pictures of two arrays of numbers of one shape; None for what has no picture.

    `largest` is the index of the largest difference, if there is one; a picture has at most `side`
    rows and columns.
    """
    if a.shape != b.shape or not a.count or "user" in (a.element.kind, b.element.kind):
        return None
    layout = layout_of(a)
    place = largest if largest is not None else where.low
    try:
        if layout.form == LINE:
            return _lines(a, b, place)
        if layout.form in (IMAGE, COLOR):
            return _planes(a, b, where, place, side, layout)
    except RaconvertError as error:
        return Seen("", [], [], (), error.what)
    return None


def _logical(array: Array, axis: int) -> int:
    """The number of an axis, counted slowest first, in the order of the shape."""
    return array.ndim - 1 - axis if array.index_order == "F" else axis


def _lines(a: Array, b: Array, place: list[int] | None) -> Seen:
    axis = next(number for number, length in enumerate(a.shape) if length > 1)
    length = a.shape[axis]
    start, stop = 0, length
    if length > _LONGEST:
        middle = place[axis] if place is not None else length // 2
        start = min(max(0, middle - _LONGEST // 2), length - _LONGEST)
        stop = start + _LONGEST
    key: list[int | slice] = [0] * a.ndim
    key[axis] = slice(start, stop) if stop - start < length else slice(None)
    x, y = (for_showing(np.asarray(one[tuple(key)])) for one in (a, b))
    lines = [comparable(x), comparable(y), _difference(x, y)]
    return Seen(_text(key), [], lines, a.shape, is_size=_is_complex(x, y))


def _planes(
    a: Array, b: Array, where: Where, place: list[int] | None, side: int, layout: Layout
) -> Seen:
    axes = sorted(_logical(a, axis) for axis in (layout.rows, layout.columns))
    key: list[int | slice] = [0] * a.ndim
    for axis in axes:
        key[axis] = slice(None)
    if layout.color >= 0:
        key[_logical(a, layout.color)] = slice(None)
    most = where.most
    for number, axis in enumerate(where.outer):
        key[axis] = most[0][0][number] if most else a.shape[axis] // 2
    about = ""
    if most and where.outer:
        about = f", with {most[0][1]:,} of the {where.count:,} differences"
    if prod(a.shape[axis] for axis in axes) > _MOST:
        _to_window(key, a.shape, axes, where, place)
        about = ", a window around the largest difference" if where.count else ", its middle"
    planes = [_plane(one, key, layout) for one in (a, b)]
    hanging = hanging_of(a, layout)
    x, y = (hanging.of(plane) for plane in planes)
    return Seen(
        _text(key), _sides(x, y, hanging, side), [], x.shape[:2], "", about, _is_complex(x, y)
    )


def _is_complex(x: Values, y: Values) -> bool:
    return "c" in (x.dtype.kind, y.dtype.kind)


def _to_window(
    key: list[int | slice],
    shape: tuple[int, ...],
    axes: list[int],
    where: Where,
    place: list[int] | None,
) -> None:
    """Cut a plane to a window around a difference, in the plane that it lies in."""
    for axis in where.outer:
        key[axis] = place[axis] if place is not None else shape[axis] // 2
    for axis in axes:
        middle = place[axis] if place is not None else shape[axis] // 2
        length = min(_WINDOW, shape[axis])
        start = min(max(0, middle - length // 2), shape[axis] - length)
        key[axis] = slice(start, start + length)


def _plane(array: Array, key: list[int | slice], layout: Layout) -> Values:
    """A plane in the order of its indices, colours behind."""
    values = for_showing(np.asarray(array[tuple(key)]))
    if layout.color < 0:
        return values
    there = [axis for axis, one in enumerate(key) if isinstance(one, slice)]
    return np.moveaxis(values, there.index(_logical(array, layout.color)), -1)


def _text(key: list[int | slice]) -> str:
    parts = [
        str(one)
        if isinstance(one, int)
        else ":"
        if one.start is None
        else f"{one.start}:{one.stop}"
        for one in key
    ]
    return f"[{', '.join(parts)}]"


def _sides(x: Values, y: Values, hanging: Hanging, side: int) -> list[Side]:
    """The pictures of both, of their difference, and of where they differ."""
    height, width = hanging.extent_of(x.shape)
    factor = min(1.0, side / height, side / width)
    size = max(1, round(height * factor)), max(1, round(width * factor))
    if x.ndim == 3 and x.dtype == y.dtype and x.dtype.kind == "u":
        scale = None
        small = [_photo(one, size) for one in (x, y)]
    else:
        scale = shared_scale([_flat(x), _flat(y)])
        small = [resized(_flat(one), *size) for one in (x, y)]
    signed = _difference(x, y)
    title = "|B - A|" if _is_complex(x, y) else "B - A"
    differs: Values = (signed != 0) | np.isnan(signed)
    if signed.ndim == 3:
        signed = np.take_along_axis(
            signed, np.abs(signed).argmax(axis=-1)[..., np.newaxis], axis=-1
        )[..., 0]
        differs = np.logical_or.reduce(differs, axis=-1)
    there = np.abs(signed[np.isfinite(signed)])
    limit = float(there.max()) if there.size else 0.0
    shown = Scale(-limit, limit, DIFFERENCE)
    sides = [
        Side(name, picture_of(one, scale), scale) for name, one in zip("AB", small, strict=True)
    ]
    return [
        *sides,
        Side(title, colored(_extremes(signed, size), shown), shown),
        Side(
            "where they differ",
            colored(_extremes(differs.astype(np.float64), size) > 0, Scale(0, 1, CLASSES)),
            Scale(0, 1, CLASSES),
        ),
    ]


def _flat(values: Values) -> Values:
    """A plane of numbers: magnitudes, and of what has colours, the mean of them."""
    return values.mean(axis=-1) if values.ndim == 3 else comparable(values)


def _photo(values: Values, size: tuple[int, int]) -> Values:
    colors = [resized(values[..., at], *size) for at in range(values.shape[-1])]
    return np.stack(colors, axis=-1)


def _difference(x: Values, y: Values) -> Values:
    """Return b - a as float64, of complex values its size.

    It is 0 for what is equal, NaN included, and NaN where one alone is NaN.
    """
    if _is_complex(x, y):
        with np.errstate(all="ignore"):
            size_of: Values = np.abs(y.astype(np.complex128) - x.astype(np.complex128))
            size_of[(x == y) | (np.isnan(x) & np.isnan(y))] = 0
        return size_of
    x, y = (comparable(one) for one in (x, y))
    if x.dtype.kind in "iub" and y.dtype.kind in "iub" and np.result_type(x, y).kind != "f":
        high, low = np.maximum(x, y), np.minimum(x, y)
        with np.errstate(over="ignore"):
            size = high.astype(np.uint64) - low.astype(np.uint64)  # exact, also below 0
        return np.where(y >= x, 1.0, -1.0) * size.astype(np.float64)
    with np.errstate(all="ignore"):
        signed: Values = y.astype(np.float64) - x.astype(np.float64)
        signed[(x == y) | (np.isnan(x) & np.isnan(y))] = 0
    return signed


def _extremes(values: Values, size: tuple[int, int]) -> Values:
    """A plane made smaller: of the values that share a pixel, the one furthest from 0, or NaN."""
    height, width = values.shape
    rows, columns = size
    if rows >= height and columns >= width:
        return resized(values, rows, columns, mean=False)
    tops = np.arange(min(rows, height)) * height // min(rows, height)
    lefts = np.arange(min(columns, width)) * width // min(columns, width)
    gone = np.isnan(values)
    high = _joined(np.maximum, np.where(gone, -np.inf, values), tops, lefts)
    low = _joined(np.minimum, np.where(gone, np.inf, values), tops, lefts)
    far: Values = np.where(np.abs(low) > np.abs(high), low, high)
    far[_joined(np.logical_or, gone, tops, lefts)] = np.nan
    return resized(far, rows, columns, mean=False)


def _joined(how: Any, values: Values, tops: Values, lefts: Values) -> Values:
    joined: Values = how.reduceat(how.reduceat(values, tops, axis=0), lefts, axis=1)
    return joined
