"""Bools as bytes: a file can hold others than 0 and 1, on their own or inside structures."""

from __future__ import annotations

from math import prod

import numpy as np

from raconvert.arrays.array import Array
from raconvert.arrays.blocks import index_of
from raconvert.arrays.cast import Converted
from raconvert.arrays.dtypes import dtype_of, little
from raconvert.errors import WouldLose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Dtype = np.dtype[Any]
    Values = np.ndarray[Any, Any]


def has_bools(dtype: Dtype) -> bool:
    """True if elements of this type are bools, or have bools in them at any depth."""
    base = dtype.base
    if base.names is not None:
        return any(has_bools(base[name]) for name in base.names)
    return base.kind == "b"


def bool_bytes(values: Values, field: str = "") -> Iterator[tuple[str, Values]]:
    """Yield the bytes of all bools, those of structures field by field: its name and the bytes."""
    if values.dtype.names is not None:
        for name in values.dtype.names:
            yield from bool_bytes(values[name], f"{field}.{name}" if field else name)
    elif values.dtype.kind == "b":
        yield field, values.view(np.uint8)


def checked_bools(array: Array) -> Array:
    """Return an array of which every bool must be 0 or 1, for a format that has no others.

    An NPY or RA file can hold any byte; other formats would make 1 of it, without a word.
    """
    dtype = dtype_of(little(array.element))
    if not has_bools(dtype):
        return array

    def check(block: Values, done: int) -> Values:
        for field, raw in bool_bytes(block):
            if raw.max(initial=0) > 1:
                first = int(np.flatnonzero(raw > 1)[0])
                per_element = prod(raw.shape[block.ndim :])  # of a field that is an array
                raise _is_odd(array, field, done + first // per_element, raw.reshape(-1)[first])
        return block

    return array.replace(extent=None, data=Converted(array, dtype, check))


def _is_odd(array: Array, field: str, number: int, got: Any) -> WouldLose:
    inside = f"in field '{field}' " if field else ""
    way = "no option allows this; .npy, .npz and .ra keep it" if field else ""
    return WouldLose(
        f"bool {inside}of array '{array.name}' is neither 0 nor 1",
        where=f"index {list(index_of(array, number))}",
        got=int(got),
        remedy=f"nothing was written; {way or '`--dtype uint8` keeps the numbers'}",
    )
