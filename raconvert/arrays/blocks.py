"""The only streaming code: an array as contiguous pieces in stored order, in bounded memory.

A data source may be an ndarray, anything that slices like one, or an object that also has
``stream(max_bytes)``, an iterator of one-dimensional pieces in stored order, for data that can
only be decoded front to back.
"""

from __future__ import annotations

import os
from itertools import product
from math import prod

import numpy as np

from raconvert.arrays.dtypes import dtype_of, little, needs_swap
from raconvert.arrays.memory import (
    MAX_RANK,
    check_memory,
    check_rank,
    out_of_memory,
    stored_bytes,
)
from raconvert.arrays.strided import region
from raconvert.errors import Corrupt
from raconvert.files.copy import check_extent, extent_slabs
from raconvert.files.source import DEFAULT_MAX_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.files.extent import Extent

__all__ = [
    "LARGEST_BLOCK",
    "MAX_RANK",
    "as_ndarray",
    "block_bytes",
    "blocks",
    "check_memory",
    "gathered",
    "index_of",
    "plain",
    "plain_dtype",
    "recut",
    "region_of",
    "runs",
    "slabs",
]

LARGEST_BLOCK = 16 << 20  # beyond this a larger block saves nothing measurable


def block_bytes(max_memory: int) -> int:
    """Return the size of a block that leaves room for the copies a codec makes of it."""
    return max(1 << 16, min(LARGEST_BLOCK, max_memory // 8))


def blocks(array: Array, max_bytes: int = LARGEST_BLOCK) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the elements as C-contiguous little-endian pieces in stored order.

    Each piece holds at most `max_bytes` (one element at least, and a whole codec block where a
    source streams such); its shape is a slab of the data seen slowest axis first, one-dimensional
    when the array is read from its extent. A piece is only valid until the next one is asked for.

    >>> [piece.shape for piece in blocks(array_of(np.zeros((3, 4))), 64)]
    [(2, 4), (1, 4)]

    Raises `Corrupt` or `ReadFailed` for data that cannot be read.
    """
    if array.problem is not None:
        raise array.problem
    if array.count == 0:
        return
    if array.extent is not None:
        yield from _extent_blocks(array, array.extent, max_bytes)
        return
    dtype = dtype_of(little(array.element))
    source = array.data
    if hasattr(source, "stream"):
        pieces = source.stream(max_bytes)
    else:
        pieces = (_region(source, key) for key in slabs(source.shape, dtype.itemsize, max_bytes))
    for piece in pieces:
        yield np.ascontiguousarray(plain(piece)).view(piece.dtype).astype(dtype, copy=False)


def plain_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that copies whole elements: void in the place of a structure.

    numpy copies structures field by field and leaves the padding between them as it was.
    """
    return np.dtype((np.void, dtype.itemsize)) if dtype.names is not None else dtype


def plain(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the same memory as elements that are copied whole, padding included."""
    return values.view(plain_dtype(values.dtype)) if values.dtype.names is not None else values


def _region(source: Any, key: tuple[Any, ...]) -> Any:
    return np.asarray(source[key])


def slabs(
    shape: tuple[int, ...], itemsize: int, max_bytes: int
) -> Iterator[tuple[int | slice, ...]]:
    """Yield index keys that cut `shape` (slowest axis first) into contiguous slabs, in order."""
    if not shape:
        yield ()
        return
    axis = 0
    while axis < len(shape) - 1 and prod(shape[axis + 1 :]) * itemsize > max_bytes:
        axis += 1
    row_bytes = max(1, prod(shape[axis + 1 :]) * itemsize)
    step = max(1, max_bytes // row_bytes)
    for outer in product(*(range(n) for n in shape[:axis])):
        for start in range(0, shape[axis], step):
            yield (*outer, slice(start, min(start + step, shape[axis])))


def _extent_blocks(array: Array, extent: Extent, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
    """Read an extent piece by piece into one buffer; nothing is mapped, so nothing piles up."""
    dtype = dtype_of(little(array.element))
    step = max(1, max_bytes // dtype.itemsize) * dtype.itemsize
    for slab in extent_slabs(extent, step):
        yield np.frombuffer(slab, dtype)


def region_of(array: Array, key: Any) -> np.ndarray[Any, Any]:
    """The elements that a key picks, slowest axis first: read, where they lie in a file.

    A conversion maps nothing: a file that is cut meanwhile would end the process.
    """
    extent = array.extent
    if extent is None or not array.nbytes or extent.swap != needs_swap(array.element):
        return np.asarray(array.data[key])
    check_extent(extent)
    shape, dtype = array.dims[::-1], array.dtype
    strides = tuple(dtype.itemsize * prod(shape[n + 1 :]) for n in range(len(shape)))
    file = extent.open()
    try:
        return np.asarray(region(file, extent.path, extent.offset, dtype, shape, strides, key))
    finally:
        os.close(file)


def index_of(array: Array, place: int) -> tuple[int, ...]:
    """Return the logical index of the element at this place in stored order."""
    if not array.dims:
        return ()
    seen = tuple(int(i) for i in np.unravel_index(place, array.dims[::-1]))
    return seen[::-1] if array.index_order == "F" else seen


def runs(array: Array, count: int, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the elements in pieces of `count`, each valid until the next is asked for."""
    return recut(blocks(array, max_bytes), count, dtype_of(little(array.element)))


def recut(
    pieces: Iterable[np.ndarray[Any, Any]], count: int, dtype: np.dtype[Any]
) -> Iterator[np.ndarray[Any, Any]]:
    """Cut pieces anew: each of `count` elements, the last of what is left.

    Each is valid until the next is asked for. Padding of structures is kept.
    """
    buffer = np.empty(count, plain_dtype(dtype))
    filled = 0
    for piece in pieces:
        rest = plain(piece.reshape(-1))
        while rest.size:
            take = min(count - filled, rest.size)
            if take == count:
                yield rest[:count].view(dtype)
            else:
                buffer[filled : filled + take] = rest[:take]
                filled += take
                if filled == count:
                    yield buffer.view(dtype)
                    filled = 0
            rest = rest[take:]
    if filled:
        yield buffer[:filled].view(dtype)


class Feed:
    """The elements of pieces in stored order, as many as are asked for at a time.

    `what` names the data in messages: it is `Corrupt` if it has fewer elements than asked for.
    """

    def __init__(
        self, pieces: Iterable[np.ndarray[Any, Any]], dtype: np.dtype[Any], what: str
    ) -> None:
        self._pieces = iter(pieces)
        self._dtype = dtype
        self._what = what
        self._rest = np.empty(0, dtype)

    def pieces(self, count: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield the next `count` elements as they come, each piece valid until the next."""
        while count:
            if not self.more():
                raise Corrupt(f"{self._what} ended early")
            piece, self._rest = self._rest[:count], self._rest[count:]
            count -= piece.size
            yield piece

    def take(self, count: int) -> np.ndarray[Any, Any]:
        """Take the next `count` elements in one piece, valid until the next call."""
        if self._rest.size >= count:
            found, self._rest = self._rest[:count], self._rest[count:]
            return found
        found = np.empty(count, self._dtype)
        filled = 0
        for piece in self.pieces(count):
            found[filled : filled + piece.size] = piece
            filled += piece.size
        return found

    def more(self) -> bool:
        """True if elements are left."""
        while not self._rest.size:
            piece = next(self._pieces, None)
            if piece is None:
                return False
            self._rest = piece.reshape(-1)
        return True


def gathered(
    pieces: Iterable[np.ndarray[Any, Any]], shape: tuple[int, ...], dtype: np.dtype[Any], what: str
) -> np.ndarray[Any, Any]:
    """Put pieces in stored order into one array; `Corrupt` if they are fewer or more than it has.

    Copied as bytes, so that the padding of structures is kept.
    """
    raw = np.empty(prod(shape) * dtype.itemsize, np.uint8)
    done = 0
    for piece in pieces:
        data = piece.reshape(-1).view(np.uint8)
        if done + data.size > raw.size:
            raise Corrupt(f"{what} has more elements than it should", expected=f"{raw.size} bytes")
        raw[done : done + data.size] = data
        done += data.size
    if done != raw.size:
        raise Corrupt(f"{what} ended early", expected=f"{raw.size} bytes", got=done)
    return raw.view(dtype).reshape(shape)


def as_ndarray(array: Array, max_memory: int = DEFAULT_MAX_MEMORY) -> np.ndarray[Any, Any]:
    """Return the whole array in its own memory: slowest axis first, C order, little-endian.

    >>> as_ndarray(array_of(np.arange(6, dtype=">i2").reshape(2, 3))).dtype
    dtype('int16')

    `TooLarge` names the need when it is above `max_memory` bytes; `Corrupt` or `ReadFailed` for
    data that cannot be read.
    """
    if array.problem is not None:
        raise array.problem
    check_rank(array.name, array.ndim, array.extent.path if array.extent else None)
    # What decodes whole needs its own room beside the result.
    more = 0 if array.extent is not None else getattr(array.data, "decoding_bytes", 0)
    what = f"array '{array.name}' whole in memory"
    check_memory(array.nbytes + more, max_memory, what, stored_bytes(array.storage))
    dtype = dtype_of(little(array.element))
    try:
        return gathered(blocks(array), array.dims[::-1], dtype, f"array '{array.name}'")
    except MemoryError as error:
        raise out_of_memory(array.name, array.nbytes, array.storage) from error
