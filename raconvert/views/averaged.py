"""Photos made smaller by means over all of their pixels, in pieces, within bounds of memory."""

from __future__ import annotations

import numpy as np

from raconvert.arrays.blocks import blocks
from raconvert.arrays.dtypes import dtype_of, little
from raconvert.views.sample import chunk_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.layout import Layout

    Values = np.ndarray[Any, Any]

MOST = 40 << 20  # bytes of a photo that is averaged; of a larger one, some rows are read
_PIECE = 1 << 20  # bytes read at once
_MOST_CHUNKS = 512


def averaged(array: Array, layout: Layout, most: int) -> Values | None:
    """Shrink a photo to at most `most` rows and columns, by the means of its pixels.

    None if it is too large, or not a single plane of whole numbers whose colours lie together.
    Raises what reading elements raises.
    """
    seen = array.dims[::-1]
    axes = [at for at, length in enumerate(seen) if length > 1]
    color = [layout.color] * (layout.color >= 0)
    if axes != [layout.rows, layout.columns, *color] or array.index_order == "F":
        return None
    if array.element.kind != "uint" or array.element.nbytes > 2 or array.nbytes > MOST:
        return None
    if chunk_count(array) > _MOST_CHUNKS:
        return None
    high, wide, depth = seen[layout.rows], seen[layout.columns], seen[layout.color] if color else 1
    factor = min(1.0, most / max(high, wide))
    rows, columns = max(1, round(high * factor)), max(1, round(wide * factor))
    tops = np.arange(rows + 1) * high // rows
    lefts = np.arange(columns) * wide // columns
    row_of = np.repeat(np.arange(rows), np.diff(tops))  # the row of the result, for each row
    sums = np.zeros((rows, columns, depth), np.uint32)
    dtype, done = dtype_of(little(array.element)), 0
    rest = np.zeros(0, dtype)  # the beginning of a row whose end is in the next block
    for block in blocks(array, _PIECE):
        flat = block.reshape(-1)
        flat = np.concatenate([rest, flat.view(dtype) if flat.dtype != dtype else flat])
        count = len(flat) // (wide * depth)
        lines = flat[: count * wide * depth].reshape(count, wide, depth)
        rest = flat[count * wide * depth :]
        if count:
            across = np.add.reduceat(lines, lefts, axis=1, dtype=np.uint32)
            targets = row_of[done : done + count]
            first = np.flatnonzero(np.diff(targets, prepend=-1))
            sums[targets[first]] += np.add.reduceat(across, first, axis=0)
            done += count
    areas = np.diff(tops)[:, None] * np.diff(np.append(lefts, wide))[None, :]
    means: Values = np.rint(sums / areas[..., None]).astype(dtype)
    return means if color else means[..., 0]
