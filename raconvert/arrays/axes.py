"""Axes in another order: transposed, permuted or listed anew, each as a lazy array."""

from __future__ import annotations

from raconvert.arrays.array import Array
from raconvert.arrays.dtypes import little
from raconvert.arrays.metadata import RA, Metadata
from raconvert.arrays.transpose import Transposed
from raconvert.errors import UsageError
from raconvert.files.source import DEFAULT_MAX_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# Axis order ------------------------------------------------------------------------------------


def in_order(array: Array, order: str, max_memory: int = DEFAULT_MAX_MEMORY) -> Array:
    """Return the array with its elements stored in this index order (C or F), [i,j,k] kept.

    Nothing moves when it is so already, when the index order is unknown, or below two dimensions.
    """
    if array.index_order == order and array.ndim > 1 and not array.row_major:
        return array
    if array.index_order in (order, None) or array.ndim < 2:
        return array.replace(index_order=order, row_major=False)
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
        return moved.replace(index_order="C")
    if array.index_order == "F":
        # The data is seen with its axes reversed: logical axis i is data axis n-1-i.
        last = array.ndim - 1
        axes = tuple(last - axes[last - i] for i in range(array.ndim))
    return _moved(array, axes, max_memory)


def relisted(array: Array) -> Array:
    """Return the array with its axes listed in reverse; no element moves (keep-memory)."""
    order = {"C": "F", "F": "C", None: "F"}[array.index_order]
    return array.replace(index_order=order)


def _moved(array: Array, axes: tuple[int, ...], max_memory: int) -> Array:
    """Transpose the data, seen slowest axis first, and everything that is known per axis."""
    shape = array.dims[::-1]
    new_shape = tuple(shape[axis] for axis in axes)
    return array.replace(
        element=little(array.element),
        dims=new_shape[::-1],
        meta=_permuted_meta(array.meta, axes),
        extent=None,
        data=lambda: Transposed(array, axes, max_memory),
    )


def _permuted_meta(meta: Metadata, axes: tuple[int, ...]) -> Metadata:
    """Return metadata for an array whose axes, seen slowest first, are taken in this order."""
    meta = meta.copy()
    if axes[0] != 0:  # they belong to the slowest axis
        meta.items = None
    if axes[-1] != len(axes) - 1 and RA in meta.formats:
        from raconvert.arrays.namespace import split_pairs

        split_pairs(meta)
    if meta.axes:
        meta.axes = _permuted_list(meta.axes, axes)
    for space in meta.formats.values():
        listed = space.get("axes")
        if isinstance(listed, list) and len(listed) == len(axes):
            space["axes"] = _permuted_list(listed, axes)
    return meta


def meta_for(array: Array, meta: Metadata) -> Metadata:
    """Return metadata for an array, with every entry on the logical axis that it was about.

    `UsageError` where it is no `Metadata`, the entries are of another rank, or labels of another
    length.
    """
    if not isinstance(meta, Metadata):
        raise UsageError(
            f"the metadata for array '{array.name}' is of the wrong type",
            expected="raconvert.Metadata, such as array.meta",
            got=type(meta).__name__,
            remedy="keys and values of your own: raconvert.Metadata(attributes={...})",
        )
    described = [axis for axis in meta.axes if axis.to_dict()]
    if described and len(meta.axes) != array.ndim:
        raise _misfit(array, f"names {len(meta.axes)} axes", array.ndim)
    if (meta.index_order == "F") != (array.index_order == "F") and array.ndim > 1:
        if meta.items is not None:
            raise _misfit(array, "has items along the last axis", "the first")
        meta = _permuted_meta(meta, tuple(range(array.ndim))[::-1])
    else:
        meta = meta.copy()
    for axis, length in zip(meta.axes, array.dims, strict=False):
        if axis.labels is not None and len(axis.labels) != length:
            place = f"axis {axis.name!r}" if axis.name else "an axis"
            raise _misfit(array, f"has {len(axis.labels)} labels for {place}", length)
    return meta


def _misfit(array: Array, what: str, expected: Any) -> UsageError:
    return UsageError(
        f"the metadata for array '{array.name}' of shape {array.shape} {what}",
        expected=expected,
        remedy="change its `axes`, or leave them out: meta.axes = []",
    )


def _permuted_list(listed: list[Any], axes: tuple[int, ...]) -> list[Any]:
    """The axes of metadata, fastest first, for data whose axes `axes` permutes."""
    seen = listed[::-1]
    return [seen[axis] for axis in axes][::-1]
