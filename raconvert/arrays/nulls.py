"""Missing values: what a mask, an array of bools, says of the elements of another array."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy as np

    from raconvert.arrays.array import Array

    Values = np.ndarray[Any, Any]


def none_missing(mask: Array) -> bool:
    """True if a mask says of no value that it is missing. Raises what reading it does."""
    from raconvert.arrays.blocks import blocks

    return not any(block.any() for block in blocks(mask))


def without_missing(array: Array, mask: Array) -> Iterator[Values]:
    """Yield the elements in stored order, with zero bytes in place of those that are missing."""
    from raconvert.arrays.blocks import runs

    count = max(1, (1 << 20) // max(1, array.element.nbytes))
    pairs = zip(runs(array, count, 4 << 20), runs(mask, count, 4 << 20), strict=True)
    for values, missing in pairs:
        known = values.copy()
        known.reshape(-1).view(f"V{known.dtype.itemsize}")[missing.reshape(-1)] = b""
        yield known
