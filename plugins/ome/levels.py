"""The levels of a pyramid: each half as high and wide as the one before, computed for writing.

An element is the mean of a block of 2 × 2, or of its existing elements at an odd end; integers are
rounded, halves up. Bools, records and texts, and all elements with the filter ``nearest`` (for
labels), are the first one of the block.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.blocks import Feed, block_bytes, blocks, region_of
from raconvert.arrays.dtypes import ML_DTYPES, dtype_of, little
from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key, range_of
from raconvert.plugin import Array

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Values = np.ndarray[Any, Any]


def halved_shape(shape: tuple[int, ...], plane: int) -> tuple[int, ...]:
    """The shape of the next level; `plane` is the index of the axis of rows."""
    return tuple(-(-n // 2) if plane <= at < plane + 2 else n for at, n in enumerate(shape))


def halved(values: Values, how: str) -> Values:
    """Halve rows and columns, the first two axes, of some rows of a plane."""
    kind = values.dtype.kind
    if how == "nearest" or (kind not in "iufc" and values.dtype.name not in ML_DTYPES):
        return values[::2, ::2]
    odd = [(0, n % 2) if at < 2 else (0, 0) for at, n in enumerate(values.shape)]
    whole = np.pad(values, odd, mode="edge")
    block = np.stack([whole[y::2, x::2] for y in (0, 1) for x in (0, 1)])
    if kind in "iu":  # no wider type: there is none for 64 bits
        high = (block >> 2).sum(0, dtype=values.dtype)
        low = (block & 3).sum(0, dtype=np.uint8)
        mean: Values = high + ((low + 2) >> 2).astype(values.dtype)
        return mean
    wide = np.complex128 if kind == "c" else np.float64
    with np.errstate(all="ignore"):
        floats: Values = (block.astype(wide) * 0.25).sum(0).astype(values.dtype)
    return floats


class Level:
    """Array source of the next level of an array, which is decoded again for each pass.

    A level much smaller than `max_memory` is kept in memory, for the levels below it.
    """

    def __init__(self, above: Array, plane: int, how: str, max_memory: int) -> None:
        self.above = above
        self.plane = plane
        self.how = how
        self.max_memory = max_memory
        self.shape = halved_shape(above.dims[::-1], plane)
        self.dtype = dtype_of(little(above.element))
        self._whole: Values | None = None  # all elements, once a small level was streamed

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in stored order."""
        nbytes = prod(self.shape) * self.dtype.itemsize
        if self._whole is None and nbytes <= self.max_memory // 8:
            parts = [np.array(part) for part in self._parts(max_bytes)]
            self._whole = np.concatenate([*parts, np.empty(0, self.dtype)]).reshape(self.shape)
        if self._whole is not None:
            yield self._whole.reshape(-1)
            return
        yield from self._parts(max_bytes)

    def _parts(self, max_bytes: int) -> Iterator[Values]:
        """Yield the elements in stored order, from pairs of rows of the level above."""
        shape, plane = self.above.dims[::-1], self.plane
        rows, inner = shape[plane], shape[plane + 1 :]
        row = prod(inner)
        if not prod(shape):
            return
        nbytes = 2 * row * self.dtype.itemsize
        check_memory(4 * nbytes, self.max_memory, f"array '{self.above.name}': two of its rows")
        step = 2 * max(1, max_bytes // nbytes)
        budget = block_bytes(self.max_memory)
        feed = Feed(blocks(self.above, budget), self.dtype, f"array '{self.above.name}'")
        for _ in range(prod(shape[:plane])):
            for low in range(0, rows, step):
                count = min(step, rows - low)
                part = feed.take(count * row).reshape(count, *inner)
                yield np.ascontiguousarray(halved(part, self.how)).reshape(-1)

    def __getitem__(self, key: Any) -> Values:
        """A region: integers, slices and one Ellipsis."""
        box, wide, then = [], [], []
        above = self.above.dims[::-1]
        for at, part in enumerate(full_key(key, len(self.shape))):
            low, end, rest = range_of(part, self.shape[at])
            factor = 2 if self.plane <= at < self.plane + 2 else 1
            wide.append(slice(factor * low, min(factor * end, above[at])))
            box.append(slice(low, end))
            then.append(rest)
        if self._whole is not None:
            return self._whole[tuple(box)][(*then, ...)]
        values = np.asarray(region_of(self.above, tuple(wide)))
        front = np.moveaxis(values, (self.plane, self.plane + 1), (0, 1))
        out = np.moveaxis(halved(front, self.how), (0, 1), (self.plane, self.plane + 1))
        return out[(*then, ...)]


def levels_of(array: Array, count: int, plane: int, how: str, max_memory: int) -> list[Array]:
    """The array, and up to `count` - 1 lower levels, as long as rows or columns can be halved."""
    levels = [array]
    while len(levels) < count:
        above = levels[-1]
        shape = above.dims[::-1]
        if max(shape[plane : plane + 2]) < 2:
            break
        source = Level(above, plane, how, max_memory)
        levels.append(
            Array(
                little(above.element), source.shape[::-1], name=above.name, index_order="C",
                data=source,
            )
        )  # fmt: skip
    return levels
