"""Two arrays side by side: the plane in which they differ most, and the difference, b - a.

Both are shown with the same limits. The plane is the one with most differences; if it is too large,
a window around the largest difference is shown. A pixel of the picture of the difference has the
largest of the values that share it, so that no single element vanishes.
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
from raconvert.views.picture import (
    CLASSES,
    DIFFERENCE,
    Picture,
    Scale,
    colored,
    resized,
    resized_photo,
)
from raconvert.views.planes import key_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array

    Values = np.ndarray[Any, Any]


_MOST = 1 << 20  # elements of a plane that are read of either
_WINDOW = 512  # rows and columns of the window of a plane that is too large
_LONGEST = 1 << 18  # elements of a line that are read of either


class Side(Record):
    """One of the pictures: its title, and its scale; None for a photo."""

    title: str
    picture: Picture
    scale: Scale | None


class Seen(Record):
    """The pictures of a plane of two arrays, or their lines, and the key of that part."""

    key: str
    sides: list[Side]
    lines: list[Any]  # the values of both, and b - a, if they are lines
    shape: tuple[int, ...]
    problem: str = ""
    about: str = ""  # the reason why this part is shown
    is_size: bool = False  # True if the difference is |b - a|, of complex values


def where_of_pair(a: Array, b: Array) -> Where:
    """An empty `Where` for two arrays, to count differences by the planes that are shown."""
    layout = layout_of(a)
    outer = [_logical(a, axis) for axis in layout.outer] if layout.form in (IMAGE, COLOR) else []
    return Where(a.shape, order_of(a, b), sorted(outer))


def seen_of(a: Array, b: Array, where: Where, largest: list[int] | None, side: int) -> Seen | None:
    """The pictures of two arrays of numbers of one shape; None for arrays of any other form.

    `largest` is the index of the largest difference, if there is one; a picture has at most `side`
    rows and columns.
    """
    if a.shape != b.shape or not a.count or "user" in (a.element.kind, b.element.kind):
        return None
    layout = layout_of(a)
    center = largest if largest is not None else where.low
    try:
        if layout.form == LINE:
            return _lines(a, b, center)
        if layout.form in (IMAGE, COLOR):
            return _planes(a, b, where, center, side, layout)
    except RaconvertError as error:
        return Seen("", [], [], (), error.what)
    return None


def _logical(array: Array, axis: int) -> int:
    """The number of an axis, counted slowest first, in the order of the shape."""
    return array.ndim - 1 - axis if array.index_order == "F" else axis


def _lines(a: Array, b: Array, center: list[int] | None) -> Seen:
    """The lines of two arrays of one axis; if they are too long, the part around an index."""
    axis = next(number for number, length in enumerate(a.shape) if length > 1)
    length = a.shape[axis]
    start, stop = 0, length
    if length > _LONGEST:
        middle = center[axis] if center is not None else length // 2
        start = min(max(0, middle - _LONGEST // 2), length - _LONGEST)
        stop = start + _LONGEST
    key: list[int | slice] = [0] * a.ndim
    key[axis] = slice(start, stop) if stop - start < length else slice(None)
    x, y = (for_showing(np.asarray(array[tuple(key)])) for array in (a, b))
    lines = [comparable(x), comparable(y), _difference(x, y)]
    return Seen(key_text(key), [], lines, a.shape, is_size=_is_complex(x, y))


def _planes(
    a: Array, b: Array, where: Where, center: list[int] | None, side: int, layout: Layout
) -> Seen:
    """The pictures of the plane with most differences, or of a window around an index."""
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
        _to_window(key, a.shape, axes, where, center)
        about = ", a window around the largest difference" if where.count else ", its middle"
    hanging = hanging_of(a, layout)
    x, y = (hanging.of(_plane(array, key, layout)) for array in (a, b))
    return Seen(
        key_text(key), _sides(x, y, hanging, side), [], x.shape[:2], "", about, _is_complex(x, y)
    )


def _is_complex(x: Values, y: Values) -> bool:
    """True if one of two parts has complex values."""
    return "c" in (x.dtype.kind, y.dtype.kind)


def _to_window(
    key: list[int | slice],
    shape: tuple[int, ...],
    axes: list[int],
    where: Where,
    center: list[int] | None,
) -> None:
    """Change a key to a window around an index, in the plane of that index; None: the middle."""
    for axis in where.outer:
        key[axis] = center[axis] if center is not None else shape[axis] // 2
    for axis in axes:
        middle = center[axis] if center is not None else shape[axis] // 2
        length = min(_WINDOW, shape[axis])
        start = min(max(0, middle - length // 2), shape[axis] - length)
        key[axis] = slice(start, start + length)


def _plane(array: Array, key: list[int | slice], layout: Layout) -> Values:
    """Read a plane in the order of its indices, with colours as the last axis."""
    values = for_showing(np.asarray(array[tuple(key)]))
    if layout.color < 0:
        return values
    left = [axis for axis, part in enumerate(key) if isinstance(part, slice)]
    return np.moveaxis(values, left.index(_logical(array, layout.color)), -1)


def _sides(x: Values, y: Values, hanging: Hanging, side: int) -> list[Side]:
    """The pictures of both, of their difference, and of where they differ."""
    height, width = hanging.extent_of(x.shape)
    factor = min(1.0, side / height, side / width)
    size = max(1, round(height * factor)), max(1, round(width * factor))
    if x.ndim == 3 and x.dtype == y.dtype and x.dtype.kind == "u":
        scale = None
        small = [resized_photo(plane, *size) for plane in (x, y)]
    else:
        flat = [_flat(x), _flat(y)]
        scale = shared_scale(flat)
        small = [resized(plane, *size) for plane in flat]
    signed = _difference(x, y)
    title = "|B - A|" if _is_complex(x, y) else "B - A"
    differs: Values = (signed != 0) | np.isnan(signed)
    if signed.ndim == 3:
        signed = np.take_along_axis(
            signed, np.abs(signed).argmax(axis=-1)[..., np.newaxis], axis=-1
        )[..., 0]
        differs = np.logical_or.reduce(differs, axis=-1)
    sizes = np.abs(signed[np.isfinite(signed)])
    limit = float(sizes.max()) if sizes.size else 0.0
    around_zero, of_classes = Scale(-limit, limit, DIFFERENCE), Scale(0, 1, CLASSES)
    mask = _extremes(differs.astype(np.float64), size) > 0
    return [
        Side("A", picture_of(small[0], scale), scale),
        Side("B", picture_of(small[1], scale), scale),
        Side(title, colored(_extremes(signed, size), around_zero), around_zero),
        Side("where they differ", colored(mask, of_classes), of_classes),
    ]


def _flat(values: Values) -> Values:
    """A plane of numbers: magnitudes of complex ones, the means of colours."""
    return values.mean(axis=-1) if values.ndim == 3 else comparable(values)


def _difference(x: Values, y: Values) -> Values:
    """Return b - a as float64; for complex values its magnitude.

    Equal values, two NaN among them, give 0; a NaN on one side only gives NaN.
    """
    if _is_complex(x, y):
        with np.errstate(all="ignore"):
            magnitude: Values = np.abs(y.astype(np.complex128) - x.astype(np.complex128))
            magnitude[(x == y) | (np.isnan(x) & np.isnan(y))] = 0
        return magnitude
    x, y = comparable(x), comparable(y)
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
    """Resize a plane: a pixel has the value that is furthest from 0, or NaN if one shares it."""
    height, width = values.shape
    rows, columns = size
    if rows >= height and columns >= width:
        return resized(values, rows, columns, mean=False)
    tops = np.arange(min(rows, height)) * height // min(rows, height)
    lefts = np.arange(min(columns, width)) * width // min(columns, width)
    missing = np.isnan(values)
    high = _reduced(np.maximum, np.where(missing, -np.inf, values), tops, lefts)
    low = _reduced(np.minimum, np.where(missing, np.inf, values), tops, lefts)
    far: Values = np.where(np.abs(low) > np.abs(high), low, high)
    far[_reduced(np.logical_or, missing, tops, lefts)] = np.nan
    return resized(far, rows, columns, mean=False)


def _reduced(function: Any, values: Values, tops: Values, lefts: Values) -> Values:
    """Reduce the boxes of a plane that begin at these rows and columns by a ufunc."""
    reduced: Values = function.reduceat(function.reduceat(values, tops, axis=0), lefts, axis=1)
    return reduced
