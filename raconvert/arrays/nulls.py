"""Missing values: the arrays of bools that tell which values of other arrays there are not."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    import numpy as np

    from raconvert.arrays.array import Array

    Values = np.ndarray[Any, Any]


def masks_of(arrays: Sequence[Array]) -> dict[int, Array]:
    """The mask of each array that has one here (`Metadata.companions`), by the array's identity."""
    by_name = {array.name: array for array in arrays}
    masks: dict[int, Array] = {}
    for array in arrays:
        if array.meta is None or not array.described:
            continue
        for name, what in array.meta.companions.items():
            groups = array.name.split("/")[:-1]
            ways = ("/".join([*groups[:n], name]) for n in range(len(groups), -1, -1))
            beside = "/".join([*groups, name.rpartition("/")[2]])
            mask = next((by_name[way] for way in (*ways, beside) if way in by_name), None)
            fits = mask is not None and mask.element.kind == "bool" and mask.dims == array.dims
            if what == "nulls" and fits and mask is not None:
                masks[id(array)] = mask
    return masks


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
