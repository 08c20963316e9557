"""The only streaming code: an array as contiguous pieces in stored order, in bounded memory.

`write_raw` writes them between a header and a trailer. It needs no numpy for a copy from file to
file, so numpy is imported where it is needed.

A data source may be an ndarray, anything that slices like one, or an object that also has
``stream(max_bytes)``, an iterator of one-dimensional pieces in stored order, for data that can
only be decoded front to back.
"""

from __future__ import annotations

from itertools import product
from math import prod

from raconvert.arrays.dtypes import dtype_of, flattened, little, needs_swap, opaque, opaque_dtype
from raconvert.arrays.memory import (
    MAX_RANK,
    check_memory,
    out_of_memory,
    stored_bytes,
    too_many_axes,
)
from raconvert.declared import Record
from raconvert.errors import Corrupt
from raconvert.files.copy import check_room, extent_slabs, write_all
from raconvert.files.paths import write_failed
from raconvert.files.source import DEFAULT_MAX_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from io import FileIO
    from typing import Any

    import numpy as np

    from raconvert.arrays.array import Array
    from raconvert.files.source import Extent
    from raconvert.files.target import Target


__all__ = [
    "LARGEST_BLOCK",
    "as_ndarray",
    "block_bytes",
    "blocks",
    "chunk_slabs",
    "gathered",
    "index_of",
    "recut",
    "region_of",
    "runs",
    "write_raw",
]

LARGEST_BLOCK = 16 << 20  # beyond this a larger block saves nothing measurable


def block_bytes(max_memory: int) -> int:
    """Return the size of a block that leaves room for the copies a codec makes of it."""
    return max(1 << 16, min(LARGEST_BLOCK, max_memory // 8))


def blocks(array: Array, max_bytes: int = LARGEST_BLOCK) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the elements as C-contiguous little-endian pieces in stored order.

    Each piece holds at most `max_bytes` (but at least one element, or a whole block of a codec if
    the source streams those). Its shape is a slab of the data seen slowest axis first; it is
    one-dimensional if the array is read from its extent. A piece is only
    valid until the next one is asked for.

    >>> [piece.shape for piece in blocks(array_of(np.zeros((3, 4))), 64)]
    [(2, 4), (1, 4)]

    Raises `Corrupt` or `ReadFailed` for data that cannot be read.
    """
    from raconvert.arrays.regions import slabs

    if array.problem is not None:
        raise array.problem
    if array.count == 0:
        return
    if array.extent is not None:
        yield from _extent_blocks(array, array.extent, max_bytes)
        return
    import numpy as np

    dtype = dtype_of(little(array.element))
    source = array.data
    if hasattr(source, "stream"):
        pieces = source.stream(max_bytes)
    else:
        pieces = (_region(source, key) for key in slabs(source.shape, dtype.itemsize, max_bytes))
    for piece in pieces:
        whole = np.ascontiguousarray(opaque(piece)).view(piece.dtype)
        yield flattened(whole).astype(dtype, copy=False)


def _region(source: Any, key: tuple[Any, ...]) -> Any:
    import numpy as np

    return np.asarray(source[key])


def chunk_slabs(
    shape: tuple[int, ...], chunk: tuple[int, ...], itemsize: int, max_bytes: int, budget: int
) -> Iterator[tuple[int | slice, ...]]:
    """Yield keys of slabs in stored order, on the borders of chunks if memory allows.

    Each has about `max_bytes`, or up to `budget` bytes if one row of chunks is larger. If a row
    does not fit into that either, chunks are decoded more than once.

    >>> [key[0].stop - key[0].start for key in chunk_slabs((10, 4), (3, 2), 1, 24, 64)]
    [6, 4]
    """
    from raconvert.arrays.regions import slabs

    budget = max(max_bytes, budget)
    axis = 0
    while axis < len(shape) - 1 and prod(shape[axis + 1 :]) * itemsize > budget:
        axis += 1
    row = max(1, prod(shape[axis + 1 :]) * itemsize)
    if not shape or chunk[axis] * row > budget:
        yield from slabs(shape, itemsize, budget)
        return
    step = max(chunk[axis], max_bytes // row // chunk[axis] * chunk[axis])
    inner = (slice(None),) * (len(shape) - axis - 1)
    for outer in product(*(range(n) for n in shape[:axis])):
        for start in range(0, shape[axis], step):
            yield (*outer, slice(start, min(start + step, shape[axis])), *inner)


def _extent_blocks(array: Array, extent: Extent, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
    """Read an extent piece by piece into one buffer; nothing is mapped, so nothing piles up."""
    import numpy as np

    dtype = dtype_of(little(array.element))
    step = max(1, max_bytes // dtype.itemsize) * dtype.itemsize
    for slab in extent_slabs(extent, step):
        yield np.frombuffer(slab, dtype)


def region_of(array: Array, key: Any) -> np.ndarray[Any, Any]:
    """Return the elements that a key picks, slowest axis first; those in a file are read.

    A conversion maps nothing: a file that is cut meanwhile would end the process.
    """
    import numpy as np

    from raconvert.arrays.regions import read_region

    extent = array.extent
    if extent is None or not array.nbytes or extent.swap != needs_swap(array.element):
        return np.asarray(array.data[key])
    return read_region(array.element, array.dims, extent, key)


def index_of(array: Array, position: int) -> tuple[int, ...]:
    """Return the logical index of the element with this number in stored order."""
    if not array.dims:
        return ()
    import numpy as np

    stored = tuple(int(i) for i in np.unravel_index(position, array.dims[::-1]))
    return stored[::-1] if array.index_order == "F" else stored


def runs(array: Array, count: int, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the elements in pieces of `count`, each valid until the next is asked for."""
    return recut(blocks(array, max_bytes), count, dtype_of(little(array.element)))


def recut(
    pieces: Iterable[np.ndarray[Any, Any]], count: int, dtype: np.dtype[Any]
) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the elements of pieces in pieces of `count` elements; the last may have fewer.

    Each is valid until the next is asked for. Padding of structures is kept.
    """
    import numpy as np

    buffer = np.empty(0, opaque_dtype(dtype))  # it grows, since many arrays are small
    filled = 0
    for piece in pieces:
        rest = opaque(piece.reshape(-1))
        while rest.size:
            take = min(count - filled, rest.size)
            if take == count:
                yield rest[:count].view(dtype)
            else:
                if filled + take > buffer.size:
                    size = min(count, max(2 * buffer.size, filled + take))
                    buffer, before = np.empty(size, buffer.dtype), buffer
                    buffer[:filled] = before[:filled]
                buffer[filled : filled + take] = rest[:take]
                filled += take
                if filled == count:
                    yield buffer.view(dtype)
                    filled = 0
            rest = rest[take:]
    if filled:
        yield buffer[:filled].view(dtype)


class Feed:
    """The elements of pieces in stored order, taken in any numbers.

    `what` names the data in messages. `Corrupt` is raised if fewer elements are left than taken.
    """

    def __init__(
        self, pieces: Iterable[np.ndarray[Any, Any]], dtype: np.dtype[Any], what: str
    ) -> None:
        import numpy as np

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
            taken, self._rest = self._rest[:count], self._rest[count:]
            return taken
        import numpy as np

        return self.into(np.empty(count, self._dtype))

    def into(self, out: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Take as many elements as `out` has, copy them there, and return it."""
        filled = 0
        for piece in self.pieces(out.size):
            opaque(out)[filled : filled + piece.size] = opaque(piece)
            filled += piece.size
        return out

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
    """Put pieces in stored order into one array; `Corrupt` if they have fewer or more elements.

    They are copied as bytes, so that the padding of structures is kept.
    """
    import numpy as np

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

    Raises `TooLarge` if it needs more than `max_memory` bytes, `Corrupt` or `ReadFailed` for data
    that cannot be read.
    """
    if array.problem is not None:
        raise array.problem
    if array.ndim > MAX_RANK:
        raise too_many_axes(array.name, array.ndim, array.extent.path if array.extent else None)
    # A source that decodes all at once needs memory of its own beside the result.
    decoding = 0 if array.extent is not None else getattr(array.data, "decoding_bytes", 0)
    what = f"array '{array.name}' whole in memory"
    check_memory(array.nbytes + decoding, max_memory, what, stored_bytes(array.storage))
    dtype = dtype_of(little(array.element))
    try:
        if array.extent is not None and array.extent.nbytes == array.nbytes > 0:
            return _read_whole(array.extent, dtype).reshape(array.dims[::-1])
        return gathered(blocks(array), array.dims[::-1], dtype, f"array '{array.name}'")
    except MemoryError as error:
        raise out_of_memory(array.name, array.nbytes, array.storage) from error


def _read_whole(extent: Extent, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Read an extent into the memory of the result: no byte of it is copied twice."""
    import numpy as np

    raw = np.empty(extent.nbytes, np.uint8)
    for _ in extent_slabs(extent, LARGEST_BLOCK, raw):
        pass
    return raw.view(dtype)


def write_raw(target: Target, header: bytes, array: Array, trailer: bytes = b"") -> FileIO:
    """Write `header`, the array's elements little-endian in stored order, and `trailer`.

    This is all that an exporter of raw data does. Elements in an extent are copied from file to
    file (numpy is imported only if bytes must be swapped), others written block by block, in
    bounded memory. Returns the open file.

    >>> with Target("raw.bin") as target:
    ...     file = write_raw(target, b"HEAD", array_of(np.arange(3, dtype=">u2")))
    ...     target.commit()
    >>> Path("raw.bin").read_bytes().hex(" ", 2)
    '4845 4144 0000 0100 0200'

    Raises `WriteFailed`, and what reading the data raises.
    """
    if array.extent is not None:
        return target.copied(header, array.extent, trailer)
    file = target.open()
    try:
        _write_blocks(target, file, header, array)
        write_all(file, [trailer])
    except OSError as error:
        raise write_failed(target.path, error) from error
    return file


def _write_blocks(target: Target, file: FileIO, header: bytes, array: Array) -> None:
    waiting = [header]
    for block in target.counted(blocks(array, block_bytes(target.max_memory))):
        if waiting:  # after the first block: data that cannot be read takes no room
            check_room(file, len(header) + array.nbytes)
            write_all(file, waiting)
            waiting.clear()
        # As bytes: dates and bfloat16 have no buffer of their own.
        write_all(file, [block.reshape(-1).view("u1")])
    write_all(file, waiting)


# Where the elements of an array source lie in files: what its method `in_pieces` returns ---------
# An array source has `in_pieces` if its elements lie in a file, as they are or encoded in ways
# that other programs know by name. It returns `Pieces`, or one `Extent`, or the reason in words if
# there are none; it reads no element.


class Pieces(Record):
    """Equal boxes of elements, each a stretch of a file.

    `chunk` is the shape of a box, slowest axis first; at the end of an axis it may reach beyond the
    array. `places` has the index of each stored box in the grid, and its stretch. `filters` are
    (name, options) in the order of writing, as numcodecs calls them. `fill` is the value of the
    elements in boxes that are not stored; None if all are.
    """

    chunk: tuple[int, ...]
    places: list[tuple[tuple[int, ...], Extent]]
    filters: tuple[tuple[str, dict[str, Any]], ...] = ()
    fill: Any = None


def pieces_of_runs(
    shape: Sequence[int], itemsize: int, extents: Sequence[Extent]
) -> Pieces | Extent | str:
    """Return stretches in stored order as pieces, or the reason (str) if they are not equal boxes.

    `shape` is slowest axis first; one stretch alone is returned as it is.
    """
    if len(extents) == 1:
        return extents[0]
    count = extents[0].nbytes // itemsize if extents else 0
    if not count or any(extent.nbytes != count * itemsize for extent in extents):
        return "it lies in parts of several lengths"
    chunk = [1] * len(shape)
    for axis in reversed(range(len(shape))):
        inside = prod(shape[axis + 1 :])
        chunk[axis] = min(shape[axis], count // inside) or 1
        if count <= inside * shape[axis]:
            break
    grid = [-(-n // c) for n, c in zip(shape, chunk, strict=True)]
    whole = all(n % c == 0 for n, c in zip(shape, chunk, strict=True))
    if prod(chunk) != count or not whole or prod(grid) != len(extents):
        return "it lies in parts that are not equal boxes of it"
    return Pieces(tuple(chunk), [(_index_in(grid, n), extent) for n, extent in enumerate(extents)])


def _index_in(grid: Sequence[int], number: int) -> tuple[int, ...]:
    """Return the index of the box with this number in a grid, the last axis fastest."""
    indices = []
    for length in reversed(grid):
        number, index = divmod(number, length)
        indices.append(index)
    return tuple(reversed(indices))
