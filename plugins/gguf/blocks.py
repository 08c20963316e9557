"""The values of quantised blocks: a scale of 16 bits for 32 small integers.

Q8_0: the scale, then 32 int8. Q4_0: the scale, then 16 bytes, whose low halves are the first 16
integers and whose high ones the others, each plus 8. Every product is a float32, exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.blocks import blocks, recut
from raconvert.arrays.regions import full_key
from raconvert.plugin import Array, element

from .tables import BLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Values = np.ndarray[Any, Any]

__all__ = ["values_of"]

COUNT = 32  # integers of a block
WIDTHS = {title: nbytes for title, _, nbytes in BLOCKS.values()}


def values_of(array: Array, title: str, order: str) -> Array:
    """Return the array of the float32 values of an array of bytes of quantised blocks."""
    dims = (array.dims[0] // WIDTHS[title] * COUNT, *array.dims[1:])
    return array.replace(
        element=element("float", 4), dims=dims, extent=None, storage={},
        data=lambda: _Dequantised(array, dims[::-1], title, order),
    )  # fmt: skip


def _decoded(raw: Values, title: str, order: str) -> Values:
    """Return the values of whole blocks, along the last axis."""
    parts = np.ascontiguousarray(raw).reshape(-1, WIDTHS[title])
    scale = np.ascontiguousarray(parts[:, :2]).view(f"{order}f2").astype(np.float32)
    if title == "Q8_0":
        integers = parts[:, 2:].view(np.int8)
    else:
        halves = [parts[:, 2:] & 15, parts[:, 2:] >> 4]
        integers = np.concatenate(halves, axis=1).astype(np.int8) - np.int8(8)
    with np.errstate(all="ignore"):  # infinite times 0, as the library has it
        values: Values = scale * integers.astype(np.float32)
    return values.reshape(*raw.shape[:-1], -1)


class _Dequantised:
    """Array source of the values of blocks; only blocks with an element asked for are decoded."""

    def __init__(self, raw: Array, shape: tuple[int, ...], title: str, order: str) -> None:
        self.shape = shape
        self.dtype = np.dtype("<f4")
        self._raw = raw
        self._title = title
        self._order = order

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces in stored order."""
        width = WIDTHS[self._title]
        count = max(1, max_bytes // (COUNT * 4 + width)) * width
        for piece in recut(blocks(self._raw, max(1, max_bytes)), count, np.dtype(np.uint8)):
            yield _decoded(piece, self._title, self._order)

    def __getitem__(self, key: Any) -> Any:
        *before, last = full_key(key, len(self.shape))
        indices = range(self.shape[-1])[last]
        if isinstance(indices, int):
            low, high = indices, indices + 1
        else:
            low, high = (min(indices), max(indices) + 1) if indices else (0, 0)
        width, first = WIDTHS[self._title], low // COUNT
        part = slice(first * width, -(-high // COUNT) * width)
        values = _decoded(np.asarray(self._raw[(*before, part)]), self._title, self._order)
        if isinstance(indices, int):
            return values[..., indices - first * COUNT]
        return values[..., [index - first * COUNT for index in indices]]
