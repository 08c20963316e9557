"""The data of a header as an array source: decoded from its records when it is asked for.

Values that follow each other in Fortran order are streamed record by record into one buffer, also
sparse ones; parts in any other order need the whole array in memory. A region is read from the
records that hold it.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import contextmanager
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.blocks import pieces_of_runs
from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key, range_of
from raconvert.arrays.sources import InPlace, Placed
from raconvert.errors import Corrupt
from raconvert.files.source import read_failed
from raconvert.plugin import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.blocks import Pieces
    from raconvert.plugin import Element, Extent, Source

    from .walk import Header

    Values = np.ndarray[Any, Any]

# Bytes of sparse data read at once: several records, within a processor's cache.
BATCH_BYTES = 1 << 18


class Stored(InPlace):
    """Array source over the data of one header, slowest axis first."""

    def __init__(self, source: Source, header: Header, element: Element) -> None:
        super().__init__(
            header.dims[::-1],
            dtype_of(element),
            what=f"'{source.path}': header '{header.name}'",
            max_memory=source.max_memory,
        )
        self.parts = header.parts
        self.path = source.path
        self._source = source
        self._name = header.name
        self._ends: list[int] | None = None  # ends of the parts in bytes, once a region was read

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces in stored order, each valid until the next is asked for."""
        if self.count == 0:
            return
        step = max(1, max_bytes // self.dtype.itemsize)
        if self.parts.boxes is not None:
            whole = self.whole().reshape(-1)
            for start in range(0, self.count, step):
                yield whole[start : start + step]
            return
        buffer = np.empty(min(step, self.count), self.dtype)
        with self._opened() as file:
            fill = self._filler(file)
            for start in range(0, self.count, step):
                piece = buffer[: min(step, self.count - start)]
                fill(piece, start)
                yield piece

    def load(self) -> Values:
        """Read all values at once."""
        values = np.empty(self.count, self.dtype)
        if self.count:
            with self._opened() as file:
                if self.parts.boxes is not None:
                    self._load_boxes(file, values.reshape(self.shape))
                else:
                    self._filler(file)(values, 0)
        return values

    def _filler(self, file: Any) -> Any:
        """A function that fills a piece of the values, given the index of its first element."""
        return _Full(self, file)

    @property
    def by_regions(self) -> bool:
        """True if a region can be read alone; False if it takes reading everything."""
        return self.parts.boxes is None and self.count > 0

    def part(self, key: Any) -> Any:
        """The region that a key picks; if parts are in no order, everything is read for it."""
        return super().part(key) if self.by_regions else self[key]

    def in_pieces(self) -> Pieces | Extent | str:
        """The location of the values of full storage: one record, or records of one length."""
        if type(self) is not Stored:
            return "its values are not stored one after the other"
        if self.parts.boxes is not None:
            return "its records are in no order"
        width = self.dtype.itemsize
        swap = width if self.dtype.str[0] == ">" and self.dtype.kind != "S" else 1
        extents = [
            self._source.extent(offset, width * count, swap)
            for offset, count in zip(self.parts.offsets, self.parts.counts, strict=True)
        ]
        return pieces_of_runs(self.shape, width, extents)

    @contextmanager
    def located(self) -> Iterator[tuple[Any, int]]:
        """Open the file as if the parts followed each other in it."""
        with self._opened() as file:
            if self._ends is None:
                width = self.dtype.itemsize
                self._ends = [width * count for count in accumulate(self.parts.counts)]
            yield _Joined(self.path, file, self.parts.offsets, self._ends), 0

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open the file, which must be as long as it was when it was indexed."""
        with self._source.open() as file:
            size = file.seek(0, 2)
            if size != self._source.size:
                self.refuse("file changed since it was opened", 0, self._source.size, size)
            yield file

    def _load_boxes(self, file: Any, values: Values) -> None:
        """Read parts in no particular order. Raises `Corrupt` if two hold the same element."""
        parts = self.parts
        filled = np.zeros(values.shape, bool)
        pairs = 2 * (len(parts.boxes) // (2 * len(parts.offsets)))
        for n, (offset, count) in enumerate(zip(parts.offsets, parts.counts, strict=True)):
            box = parts.boxes[n * pairs : (n + 1) * pairs]
            ends = list(zip(box[::2], box[1::2], strict=True))[: len(self.shape)]
            key = tuple(slice(first - 1, last) for first, last in reversed(ends))
            if filled[key].any():
                self.refuse("two parts hold the same values", offset, "each value once", list(box))
            filled[key] = True
            raw = np.empty(count, self.dtype)
            self.read(file, offset, raw)
            values[key] = raw.reshape(values[key].shape)

    def read(self, file: Any, offset: int, values: Values) -> None:
        """Fill contiguous values with the bytes at this offset of the file."""
        view = values.view(np.uint8).data
        try:
            file.seek(offset)
            while view:
                nbytes = file.readinto(view)
                if not nbytes:
                    self.refuse("file became shorter while it was read", offset, len(view), 0)
                view = view[nbytes:]
        except OSError as error:
            raise read_failed(self._source.path, error) from error

    def refuse(self, what: str, offset: int, expected: object, got: object) -> None:
        """Raise `Corrupt` about this header."""
        where = f"header '{self._name}', byte {offset}"
        raise Corrupt(what, path=self._source.path, where=where, expected=expected, got=got)


class _Joined(Placed):
    """An open file in which the parts of the data follow each other."""

    def __init__(self, path: str, file: Any, offsets: Any, ends: list[int]) -> None:
        super().__init__(path, file)
        self._offsets = offsets
        self._ends = ends  # ends of the parts, in bytes

    def read_into(self, memory: memoryview, index: int) -> int:
        """Fill memory from byte `index` of the data, to the end of its part; return bytes read."""
        n = bisect_right(self._ends, index)
        if n == len(self._ends):
            return 0
        inside = index - (self._ends[n - 1] if n else 0)
        return super().read_into(memory[: self._ends[n] - index], self._offsets[n] + inside)


class Texts(Stored):
    """Array source over strings: the blanks and NULs behind them are padding, shown as NULs."""

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces as `Stored` does, without padding."""
        for piece in super().stream(max_bytes):
            yield _unpadded(piece)

    def part(self, key: Any) -> Any:
        """The strings that a key picks, without padding."""
        strings = np.array(super().part(key), self.dtype)
        return _unpadded(strings.reshape(-1)).reshape(strings.shape)

    def load(self) -> Values:
        """Read all strings, without padding."""
        return _unpadded(super().load())


def _unpadded(strings: Values) -> Values:
    """Make the padding of strings NULs, in place."""
    cells = strings.view(np.uint8).reshape(-1, strings.dtype.itemsize)
    padding = np.logical_and.accumulate(((cells == 0) | (cells == 32))[:, ::-1], axis=1)[:, ::-1]
    cells[padding] = 0
    return strings


class _Full:
    """Fills pieces from parts that follow each other; pieces are asked for in order."""

    def __init__(self, stored: Stored, file: Any) -> None:
        self._stored = stored
        self._file = file
        self._parts = stored.parts
        self._part = 0
        self._done = 0  # values read of that part

    def __call__(self, piece: Values, _: int) -> None:
        offsets, counts = self._parts.offsets, self._parts.counts
        width = piece.itemsize
        start, stop = 0, len(piece)
        while start < stop:
            offset = offsets[self._part] + self._done * width
            take = min(counts[self._part] - self._done, stop - start)
            self._stored.read(self._file, offset, piece[start : start + take])
            start += take
            self._done += take
            if self._done == counts[self._part]:
                self._part += 1
                self._done = 0


class Sparse(Stored):
    """Array source over sparse data: zeros, and the values at increasing positions."""

    @property
    def by_regions(self) -> bool:
        """False: a region is located only by the records before it."""
        return False

    def part(self, key: Any) -> Any:
        """The region that a key picks, from the records that have positions in its rows."""
        full = full_key(key, len(self.shape))
        if not self.shape or self.held() is not None:
            return self[key]
        begin, end, inside = range_of(full[0], self.shape[0])
        if 2 * (end - begin) > self.shape[0]:
            return self[key]
        cells = prod(self.shape[1:])
        check_memory(4 * cells * (end - begin), self.max_memory, f"this part of {self.what}")
        values = np.empty((end - begin, *self.shape[1:]), self.dtype)
        with self._opened() as file:
            scatter = _Scatter(self, file, self._record_of(file, begin * cells), 0)
            scatter.skip(begin * cells)
            scatter(values.reshape(-1), begin * cells)
        return values[(inside, *full[1:])]

    def _record_of(self, file: Any, index: int) -> int:
        """The index of the last record that begins at or before the element `index`; at least 0."""
        position = np.empty(1, f"{self.dtype.str[0]}i4")
        low, high = 0, len(self.parts.offsets)
        while high - low > 1:
            middle = (low + high) // 2
            self.read(file, self.parts.offsets[middle], position)
            low, high = (middle, high) if position[0] - 1 <= index else (low, middle)
        return low

    def _filler(self, file: Any) -> Any:
        return _Scatter(self, file)


class _Scatter:
    """Fills pieces with zeros and the values among them; pieces are asked for in order."""

    def __init__(
        self, stored: Sparse, file: Any, first: int = 0, nbytes: int = BATCH_BYTES
    ) -> None:
        self._batches = _batches(stored, file, first, nbytes)
        self._indices: Values = np.empty(0, np.int64)
        self._values: Values = np.empty(0, stored.dtype)

    def skip(self, index: int) -> None:
        """Drop the values of the first record before the element `index`."""
        indices, values = next(self._batches, (self._indices, self._values))
        wanted = indices >= index
        self._indices, self._values = indices[wanted], values[wanted]

    def __call__(self, piece: Values, start: int) -> None:
        piece.view("V4")[:] = np.zeros((), "V4")
        stop = start + len(piece)
        while True:
            inside = int(np.searchsorted(self._indices, stop))
            piece[self._indices[:inside] - start] = self._values[:inside]
            self._indices, self._values = self._indices[inside:], self._values[inside:]
            if len(self._indices):
                return
            batch = next(self._batches, None)
            if batch is None:
                return
            self._indices, self._values = batch


def _check_positions(stored: Stored, positions: Values, last: int, offset: int) -> None:
    """Raise `Corrupt` for positions that do not increase from `last`, or are outside the array."""
    if positions[0] <= last or not (positions[1:] > positions[:-1]).all():
        before = np.concatenate([[last], positions[:-1]])
        first = int(np.flatnonzero(positions <= before)[0])
        what = "the positions of sparse data do not increase"
        stored.refuse(what, offset, f"more than {before[first]}", int(positions[first]))
    if positions[-1] > stored.count:
        what = "a position of sparse data lies outside the array"
        stored.refuse(what, offset, f"1 to {stored.count}", int(positions[-1]))


def _batches(stored: Sparse, file: Any, first: int, nbytes: int) -> Iterator[tuple[Values, Values]]:
    """Yield increasing indices, from 0, and their values, from the record `first` on.

    Records of one length are read together, up to `nbytes` at once, but at least one.
    """
    parts = stored.parts
    kind = f"{stored.dtype.str[0]}i4"
    last = 0
    n = first
    while n < len(parts.offsets):
        count = parts.counts[n]
        stride = parts.offsets[n + 1] - parts.offsets[n] if n + 1 < len(parts.offsets) else 0
        alike = 1
        most = max(1, nbytes // (8 * count + 1))
        while (
            alike < most
            and n + alike < len(parts.offsets)
            and parts.counts[n + alike] == count
            and parts.offsets[n + alike] - parts.offsets[n + alike - 1] == stride
        ):
            alike += 1
        raw = np.empty((alike - 1) * stride + 8 * count, np.uint8)
        stored.read(file, parts.offsets[n], raw)
        shape, strides = (alike, count), (stride, 4)
        positions = np.ndarray(shape, kind, raw, 0, strides).astype(np.int64).reshape(-1)
        values = np.ndarray(shape, stored.dtype, raw, 4 * count, strides).reshape(-1)
        if len(positions):
            _check_positions(stored, positions, last, parts.offsets[n])
            last = int(positions[-1])
        yield positions - 1, values
        n += alike
