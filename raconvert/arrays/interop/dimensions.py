"""Axes as dimensions of netCDF, with coordinates: for netCDF-4 in HDF5 and netCDF classic.

A dimension has a name and a length, and arrays share it. The array of one axis that has the name of
the dimension is its coordinate. Where an axis says what stands along it and no array does, the
writer makes a coordinate of the values of the axis.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.dtypes import Element
    from raconvert.arrays.metadata import Axis

MISSING = "_FillValue"  # the attribute for elements that are not there
MOST_WRITTEN = 1 << 22  # values at most of a coordinate made from an axis
# The fill values of netCDF (NC_FILL_BYTE and so on), by kind and bytes of the elements.
_FILLS = {
    ("int", 1): -127, ("int", 2): -32767, ("int", 4): -(2**31) + 1, ("int", 8): -(2**63) + 2,
    ("uint", 1): 255, ("uint", 2): 65535, ("uint", 4): 2**32 - 1, ("uint", 8): 2**64 - 2,
    ("float", 4): 9.969209968386869e36, ("float", 8): 9.969209968386869e36,
}  # fmt: skip


def usual_fill(element: Element) -> int | float | None:
    """Return the fill value that netCDF gives to elements of a type; None for other types."""
    return _FILLS.get((element.kind, element.nbytes))


def values_of(axis: Axis, length: int) -> Any:
    """Return the values of the coordinate of an axis: an array, a list of texts, or None."""
    import numpy as np

    if not 1 <= length <= MOST_WRITTEN:
        return None
    labels = axis.labels
    if labels is not None and len(labels) == length:
        if all(type(label) is int and abs(label) < 1 << 63 for label in labels):
            return np.array(labels, np.int64)
        if all(type(label) in (int, float) for label in labels):
            return np.array(labels, np.float64)
        if all(isinstance(label, str) and "\0" not in label for label in labels):
            return list(labels)
    if axis.spacing is not None:
        return axis.values(length)
    return None


def shared_name(axis: Axis, before: Sequence[Axis]) -> str:
    """Return the name of the dimension that an axis shares with others; empty if it has none.

    It is the name of the axis, with a number where the array has several of that name; `before` are
    the axes of the same array before it.
    """
    name = axis.name or ""
    if not name or "/" in name:
        return ""
    number = 1 + sum(other.name == name for other in before)
    return name if number == 1 else f"{name}_{number}"


def is_own(array: Array, link: str) -> bool:
    """True for an array of the name of its one axis: to netCDF it has the values of that."""
    axes = array.meta.axes
    return array.ndim == 1 and bool(axes) and axes[0].name == link.rpartition("/")[2]


def says(axis: Axis, length: int) -> tuple[int, str]:
    """Return the coordinate of an axis as a key; axes with equal ones share it."""
    return length, repr(axis.to_dict())
