"""Axes in another order: transposed, permuted or listed anew, each as a lazy array."""

from __future__ import annotations

from raconvert.arrays.array import Array
from raconvert.arrays.dtypes import little
from raconvert.arrays.metadata import RA
from raconvert.arrays.namespace import without_pairs
from raconvert.arrays.transpose import Transposed
from raconvert.errors import UsageError
from raconvert.files.source import DEFAULT_MAX_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.arrays.metadata import Metadata

# Axis order ------------------------------------------------------------------------------------


def check_axes(axes: str) -> tuple[int, ...]:
    """Return the numbers that ``--axes`` lists, none for its words; `UsageError` for others."""
    if axes in ("c", "fortran", "keep-memory"):
        return ()
    try:
        return tuple(int(part) for part in axes.split(","))
    except ValueError as error:
        raise UsageError(
            f"`--axes {axes}` is not understood", expected="c | fortran | keep-memory | 2,0,1"
        ) from error


def in_order(array: Array, order: str, max_memory: int = DEFAULT_MAX_MEMORY) -> Array:
    """Return the array with its elements stored in this index order (C or F), [i,j,k] kept.

    Nothing moves when it is so already, when the index order is unknown, or below two dimensions.
    """
    if array.index_order == order and array.ndim > 1 and not array.row_major:
        return array
    if array.index_order in (order, None) or array.ndim < 2:
        return array.listed(order, row_major=False)
    back = tuple(range(array.ndim))[::-1]
    return _moved(array, back, max_memory, order, array.meta)


def permuted(array: Array, axes: tuple[int, ...], max_memory: int = DEFAULT_MAX_MEMORY) -> Array:
    """Return the array with its logical axes in the order `axes` (as numpy.transpose)."""
    if sorted(axes) != list(range(array.ndim)):
        raise UsageError(
            f"`--axes {','.join(map(str, axes))}` does not permute the axes of '{array.name}'",
            expected=f"each of 0 to {array.ndim - 1} once",
        )
    if list(axes) == sorted(axes):
        return array
    if array.row_major:
        array = array.listed("C")
        axes = tuple(array.ndim - 1 - axis for axis in axes)
        return (
            array
            if list(axes) == sorted(axes)
            else _moved(array, axes, max_memory, "C", array.meta.permuted(axes))
        )
    meta, moved = array.meta.permuted(axes), axes
    if array.index_order == "F":
        # The data is seen with its axes reversed: logical axis i is data axis n-1-i.
        last = array.ndim - 1
        moved = tuple(last - axes[last - i] for i in range(array.ndim))
    return _moved(array, moved, max_memory, array.index_order, meta)


def relisted(array: Array) -> Array:
    """Return the array with its axes listed in reverse; no element moves (keep-memory)."""
    order = {"C": "F", "F": "C", None: "F"}[array.index_order]
    return array.listed(order)


def _moved(
    array: Array,
    axes: tuple[int, ...],
    max_memory: int,
    index_order: str | None,
    meta: Metadata,
) -> Array:
    """Transpose the data, seen slowest axis first; `meta` is that of the logical axes after it."""
    shape = array.dims[::-1]
    new_shape = tuple(shape[axis] for axis in axes)
    if axes[-1] != len(axes) - 1 and RA in meta.formats:
        meta = without_pairs(meta)
    return array.replace(
        element=little(array.element),
        dims=new_shape[::-1],
        index_order=index_order,
        row_major=array.row_major and index_order == "F",
        meta=meta,
        extent=None,
        data=lambda: Transposed(array, axes, max_memory),
    )
