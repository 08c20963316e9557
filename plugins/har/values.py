"""The data of a header as an array source: decoded from its records when it is asked for.

Values that follow each other in Fortran order are streamed record by record into one buffer, also
sparse ones; parts in any other order need the whole array in memory.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.lazy import Decoded
from raconvert.errors import Corrupt, ReadFailed
from raconvert.plugin import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Element, Source

    from .walk import Header

    Values = np.ndarray[Any, Any]

BATCH_BYTES = 1 << 18  # of sparse data, read at once: several records, within a processor's cache


class Stored(Decoded):
    """Array source over the data of one header, seen slowest axis first."""

    def __init__(self, source: Source, header: Header, element: Element) -> None:
        super().__init__(
            header.dims[::-1],
            dtype_of(element),
            what=f"'{source.path}': header '{header.name}'",
            max_memory=source.max_memory,
        )
        self.parts = header.parts
        self._source = source
        self._name = header.name

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
        """Read all values, into their places at once."""
        values = np.empty(self.count, self.dtype)
        if self.count:
            with self._opened() as file:
                if self.parts.boxes is not None:
                    self._place(file, values.reshape(self.shape))
                else:
                    self._filler(file)(values, 0)
        return values

    def _filler(self, file: Any) -> Any:
        """A function that fills a piece of the values which begins at an element."""
        return _Full(self, file)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open the file, which must be as long as it was when it was indexed."""
        with self._source.open() as file:
            size = file.seek(0, 2)
            if size != self._source.size:
                self.refuse("file changed since it was opened", 0, self._source.size, size)
            yield file

    def _place(self, file: Any, values: Values) -> None:
        """Read parts that are in no particular order; every element must be met once."""
        parts = self.parts
        met = np.zeros(values.shape, bool)
        pairs = 2 * (len(parts.boxes) // (2 * len(parts.offsets)))
        for n, (offset, count) in enumerate(zip(parts.offsets, parts.counts, strict=True)):
            box = parts.boxes[n * pairs : (n + 1) * pairs]
            ends = list(zip(box[::2], box[1::2], strict=True))[: len(self.shape)]
            key = tuple(slice(first - 1, last) for first, last in reversed(ends))
            if met[key].any():
                self.refuse("two parts hold the same values", offset, "each value once", list(box))
            met[key] = True
            raw = np.empty(count, self.dtype)
            self.read(file, offset, raw)
            values[key] = raw.reshape(values[key].shape)

    def read(self, file: Any, offset: int, values: Values) -> None:
        """Fill contiguous values with the bytes at this offset of the file."""
        view = values.view(np.uint8).data
        try:
            file.seek(offset)
            while view:
                got = file.readinto(view)
                if not got:
                    self.refuse("file became shorter while it was read", offset, len(view), 0)
                view = view[got:]
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            raise ReadFailed(reason, path=self._source.path) from error

    def refuse(self, what: str, offset: int, expected: object, got: object) -> None:
        """Raise `Corrupt` about this header."""
        place = f"header '{self._name}', byte {offset}"
        raise Corrupt(what, path=self._source.path, where=place, expected=expected, got=got)


class Texts(Stored):
    """Array source over strings: the blanks and NULs behind them are padding, shown as NULs."""

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces as `Stored` does, without padding."""
        for piece in super().stream(max_bytes):
            yield _unpadded(piece)

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
        self._done = 0  # values of that part that were read

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

    def _filler(self, file: Any) -> Any:
        return _Scatter(self, file)


class _Scatter:
    """Fills pieces with zeros and the values among them; pieces are asked for in order."""

    def __init__(self, stored: Sparse, file: Any) -> None:
        self._batches = _batches(stored, file)
        self._places: Values = np.empty(0, np.int64)
        self._values: Values = np.empty(0, stored.dtype)

    def __call__(self, piece: Values, start: int) -> None:
        piece.view("V4")[:] = np.zeros((), "V4")
        stop = start + len(piece)
        while True:
            inside = int(np.searchsorted(self._places, stop))
            piece[self._places[:inside] - start] = self._values[:inside]
            self._places, self._values = self._places[inside:], self._values[inside:]
            if len(self._places):
                return
            batch = next(self._batches, None)
            if batch is None:
                return
            self._places, self._values = batch


def _check_places(stored: Stored, places: Values, last: int, offset: int) -> None:
    """Refuse positions that do not increase from `last`, or lie outside the array."""
    if places[0] <= last or not (places[1:] > places[:-1]).all():
        before = np.concatenate([[last], places[:-1]])
        odd = int(np.flatnonzero(places <= before)[0])
        what = "the positions of sparse data do not increase"
        stored.refuse(what, offset, f"more than {before[odd]}", int(places[odd]))
    if places[-1] > stored.count:
        what = "a position of sparse data lies outside the array"
        stored.refuse(what, offset, f"1 to {stored.count}", int(places[-1]))


def _batches(stored: Sparse, file: Any) -> Iterator[tuple[Values, Values]]:
    """Yield positions, from 0 and increasing, and values, of some records at once."""
    parts = stored.parts
    kind = f"{stored.dtype.str[0]}i4"
    last = 0
    n = 0
    while n < len(parts.offsets):
        count = parts.counts[n]
        stride = parts.offsets[n + 1] - parts.offsets[n] if n + 1 < len(parts.offsets) else 0
        alike = 1
        most = max(1, BATCH_BYTES // (8 * count + 1))
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
        places = np.ndarray(shape, kind, raw, 0, strides).astype(np.int64).reshape(-1)
        values = np.ndarray(shape, stored.dtype, raw, 4 * count, strides).reshape(-1)
        if len(places):
            _check_places(stored, places, last, parts.offsets[n])
            last = int(places[-1])
        places -= 1
        yield places, values
        n += alike
