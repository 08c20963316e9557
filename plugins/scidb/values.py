"""Array sources over SciDB binary files: a column of records as an N-dimensional array.

Columns of records of one width are strided in the file: streamed by blocks of records, several at
once (`Together`), or read for a region. Nothing is mapped: a file that is cut meanwhile would end
the process. Columns of other records are decoded block by block after the offset pass.
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from raconvert.arrays.regions import fill, full_key, range_of, region, slabs
from raconvert.arrays.sources import Decoded
from raconvert.files.copy import handle_of

from .record import Field
from .scan import Scan
from .together import READ_BYTES, FileField

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Values = np.ndarray[Any, Any]


def split(pieces: Iterator[Values], max_bytes: int) -> Iterator[Values]:
    """Yield one-dimensional pieces, cut into ones of at most `max_bytes`."""
    for piece in pieces:
        step = max(1, max_bytes // piece.itemsize)
        for first in range(0, piece.size, step):
            yield piece[first : first + step]


class Dense:
    """Array source over a field whose cells come in row-major order, in N dimensions or one."""

    def __init__(self, field: FileField, shape: tuple[int, ...]) -> None:
        self.field = field
        self.cells = shape
        self.shape = (*shape, *field.items)
        self.dtype = field.dtype

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces in stored order."""
        return split(self.field.records(), max_bytes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        return np.array(self[...], dtype=dtype, copy=copy)

    def __getitem__(self, key: Any) -> Any:
        if prod(self.shape) == 0:
            return np.zeros(self.shape, self.dtype)[key]
        field = self.field
        strides = [field.width * prod(self.cells[n + 1 :]) for n in range(len(self.cells))]
        strides += [field.dtype.itemsize] * len(field.items)
        shape, path = self.shape, field.source.path
        with field.source.open() as file:
            key_of_field = (handle_of(file), path, field.offset)
            return _watched(field, region(*key_of_field, field.dtype, shape, tuple(strides), key))


def _watched(field: FileField, values: Any) -> Any:
    """A copy of a region, which the `watch` of the field has seen; an element if it is one."""
    copy = np.array(values)
    if field.watch is not None:
        field.watch(copy)
    return copy if copy.ndim else copy[()]


class Part:
    """A run of chunks, or of cells in one chunk, along one axis."""

    __slots__ = ("count", "height", "inner", "length", "out", "start")

    def __init__(
        self, out: int, start: int, count: int, inner: int, length: int, height: int
    ) -> None:
        self.out = out  # index of the first cell in the region
        self.start = start  # the first cell of the first chunk
        self.count = count  # chunks
        self.inner = inner  # the first cell in each chunk
        self.length = length  # cells in each chunk
        self.height = height  # all cells of each chunk


def parts_of(begin: int, end: int, length: int, chunk: int) -> list[Part]:
    """Cut the cells `begin` to `end` of an axis into runs in which all chunks are alike."""
    runs = []
    start = begin
    while start < end:
        number, inner = divmod(start, chunk)
        height = min(chunk, length - number * chunk)
        whole = (min(end, length - length % chunk) - start) // chunk if inner == 0 else 0
        if whole > 0:
            runs.append(Part(start - begin, start, whole, 0, chunk, chunk))
            start += whole * chunk
        else:
            count = min(end - start, height - inner)
            runs.append(Part(start - begin, number * chunk, 1, inner, count, height))
            start += count
    return runs


class Region:
    """A box of an array that is stored chunk after chunk, each chunk and the grid row-major.

    SciDB writes the cells in this order; chunks at the edges are clipped.
    """

    def __init__(
        self, shape: tuple[int, ...], chunks: tuple[int, ...], box: list[tuple[int, int]]
    ) -> None:
        self.shape = shape
        self.parts = [parts_of(*ends, n, c) for ends, n, c in zip(box, shape, chunks, strict=True)]
        self.chunks = chunks
        self.box = tuple(end - begin for begin, end in box)

    def read(self, values: Values, field: FileField) -> None:
        """Fill `values`, of the shape of the box, from the file of the field."""
        with field.source.open() as file:
            for outside, offset, strides in self._runs(values, field):
                fill(outside, handle_of(file), offset, strides, field.source.path)

    def take(self, values: Values, data: Any, field: Field) -> None:
        """Fill `values`, of the shape of the box, from the records in `data`."""
        for outside, offset, strides in self._runs(values, field):
            outside[...] = np.ndarray(outside.shape, field.dtype, data, offset, strides)

    def write(self, values: Values, data: Any, field: Field) -> None:
        """Put `values`, of the shape of the box, into the records in `data`."""
        for outside, offset, strides in self._runs(values, field):
            np.ndarray(outside.shape, field.dtype, data, offset, strides)[...] = outside

    def _runs(self, values: Values, field: Field) -> Iterator[tuple[Values, int, tuple[int, ...]]]:
        """Yield each run of chunks: a view of `values`, and offset and strides in the records."""
        for parts in product(*self.parts):
            first, counts, strides = self._records(parts)
            cut = values[tuple(slice(p.out, p.out + p.count * p.length) for p in parts)]
            outside = np.lib.stride_tricks.as_strided(
                cut, (*counts, *field.items), self._cut_strides(cut, parts)
            )
            inner = [field.dtype.itemsize] * len(field.items)
            offset = first * field.width + field.offset
            yield outside, offset, (*(n * field.width for n in strides), *inner)

    def _records(self, parts: tuple[Part, ...]) -> tuple[int, list[int], list[int]]:
        """The first record of a run; for each axis counts of chunks and cells, and their strides.

        Strides are in records. Before a chunk lie all chunks that precede it on a slower axis.
        """
        first, counts, strides = 0, [], []
        for axis, part in enumerate(parts):
            before = prod(other.height for other in parts[:axis]) * prod(self.shape[axis + 1 :])
            inside = prod(other.height for other in parts[axis + 1 :])
            first += part.start * before + part.inner * inside
            counts += [part.count, part.length]
            strides += [self.chunks[axis] * before, inside]
        return first, counts, strides

    @staticmethod
    def _cut_strides(cut: Values, parts: tuple[Part, ...]) -> tuple[int, ...]:
        """The strides of a view with two axes, chunks and cells, for each axis of `cut`."""
        strides = []
        for stride, part in zip(cut.strides, parts, strict=False):
            strides += [part.length * stride, stride]
        return (*strides, *cut.strides[len(parts) :])


class Chunked:
    """Array source over a field whose cells come chunk after chunk."""

    def __init__(self, field: FileField, shape: tuple[int, ...], chunks: tuple[int, ...]) -> None:
        self.field = field
        self.cells = shape
        self.chunks = chunks
        self.shape = (*shape, *field.items)
        self.dtype = field.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        return np.array(self[...], dtype=dtype, copy=copy)

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces in row-major order."""
        field = self.field
        with field.together.whole(field) as records:
            size = max_bytes if records is None else min(max_bytes, READ_BYTES)
            for key in slabs(self.shape, self.dtype.itemsize, size):
                yield np.asarray(self._region(key, records)).reshape(-1)

    def __getitem__(self, key: Any) -> Any:
        return self._region(key)

    def _region(self, key: Any, records: Values | None = None) -> Any:
        """The region that a key picks, from the values of all `records` or, if None, the file."""
        key = full_key(key, len(self.shape))
        ends, rest = [], []
        for part, length in zip(key, self.shape, strict=True):
            begin, end, left = range_of(part, length)
            ends.append((begin, end))
            rest.append(left)
        values = np.empty([end - begin for begin, end in ends], self.dtype)
        if values.size:
            rank = len(self.cells)
            for n, length in enumerate(self.field.items, rank):  # pairs are read whole
                ends[n] = (0, length)
            whole = np.empty([end - begin for begin, end in ends], self.dtype)
            box = Region(self.cells, self.chunks, ends[:rank])
            if records is None:
                box.read(whole, self.field)
            else:
                packed = Field(self.field.nbytes, 0, self.dtype, self.field.items)
                box.take(whole, records, packed)
            values = whole
            for n in range(rank, len(self.shape)):
                rest[n] = key[n]
        return _watched(self.field, values[tuple(rest)])


class Scattered(Decoded):
    """Array source over a field of records with coordinates, filled in memory.

    `cells` are the row-major indices of the cells of the records; other cells are zero.
    """

    def __init__(self, field: FileField, shape: tuple[int, ...], cells: Values) -> None:
        super().__init__(
            (*shape, *field.items),
            field.dtype,
            what=f"'{field.source.path}': an array of all cells",
            max_memory=field.source.max_memory,
        )
        self.field = field
        self.cells = cells

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces in stored order."""
        return split(iter([self.whole().reshape(-1)]), max_bytes)

    def load(self) -> Values:
        """Read the values of all records into their cells."""
        field = self.field
        values = np.zeros((self.count // prod(field.items), *field.items), self.dtype)
        done = 0
        for piece in field.records():
            rows = piece.reshape(-1, *field.items)
            values[self.cells[done : done + len(rows)]] = rows
            done += len(rows)
        return values


class Pieces(Decoded):
    """Array source over one column in the blocks of a scanned file.

    `pieces` begins to decode anew whenever it is called; `name` is that of the column.
    """

    def __init__(
        self,
        scan: Scan,
        pieces: Callable[[], Iterator[Values]],
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        name: str,
    ) -> None:
        source = scan.source
        what = f"'{source.path}': '{name}'"
        super().__init__(shape, dtype, what=what, max_memory=source.max_memory)
        self._pieces = pieces

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces in stored order."""
        return split(self._pieces(), max_bytes)
