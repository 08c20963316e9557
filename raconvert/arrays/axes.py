"""Axes in another order: transposed, permuted or listed anew, each as a lazy array."""

from __future__ import annotations

from raconvert.arrays.array import Array
from raconvert.arrays.dtypes import little
from raconvert.arrays.transpose import Transposed
from raconvert.errors import UsageError
from raconvert.files.source import DEFAULT_MAX_MEMORY

# Axis order ------------------------------------------------------------------------------------


def in_order(array: Array, order: str, max_memory: int = DEFAULT_MAX_MEMORY) -> Array:
    """Return the array with its elements stored in this index order (C or F), [i,j,k] kept.

    Nothing moves when it is so already, when the index order is unknown, or below two dimensions.
    """
    if array.index_order == order and array.ndim > 1 and not array.row_major:
        return array
    if array.index_order in (order, None) or array.ndim < 2:
        return array.listed(order, row_major=False)
    back = tuple(range(array.ndim))[::-1]
    moved = _moved(array, back, max_memory)
    moved.index_order = order
    return moved


def permuted(array: Array, axes: tuple[int, ...], max_memory: int = DEFAULT_MAX_MEMORY) -> Array:
    """Return the array with its logical axes in the order `axes` (as numpy.transpose)."""
    if sorted(axes) != list(range(array.ndim)):
        raise UsageError(
            f"--axes {','.join(map(str, axes))} does not permute the axes of '{array.name}'",
            expected=f"each of 0 to {array.ndim - 1} once",
        )
    if list(axes) == sorted(axes):
        return array
    if array.row_major:
        seen = tuple(array.ndim - 1 - axis for axis in axes)
        moved = array if list(seen) == sorted(seen) else _moved(array, seen, max_memory)
        return moved.listed("C")
    if array.index_order == "F":
        # The data is seen with its axes reversed: logical axis i is data axis n-1-i.
        last = array.ndim - 1
        axes = tuple(last - axes[last - i] for i in range(array.ndim))
    return _moved(array, axes, max_memory)


def relisted(array: Array) -> Array:
    """Return the array with its axes listed in reverse; no element moves (keep-memory)."""
    order = {"C": "F", "F": "C", None: "F"}[array.index_order]
    return array.listed(order)


def _moved(array: Array, axes: tuple[int, ...], max_memory: int) -> Array:
    """Transpose the data, seen slowest axis first, and everything that is known per axis."""
    shape = array.dims[::-1]
    new_shape = tuple(shape[axis] for axis in axes)
    return array.replace(
        element=little(array.element),
        dims=new_shape[::-1],
        meta=array.meta.permuted(axes),
        extent=None,
        data=lambda: Transposed(array, axes, max_memory),
    )
