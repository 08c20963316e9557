"""Runs of numbers as MAT files store them: in the file, inside a compressed variable, in memory.

A part is `count` numbers of one storage type. `open` gives a reader, front to back and in bounded
memory; `region` reads a part of them, where they lie in the file as they are.
"""

from __future__ import annotations

import os
from collections import namedtuple
from math import prod
from zlib import decompressobj
from zlib import error as zlib_error

from raconvert.errors import Corrupt

from .tables import ORDERS, STORED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.files.source import Source

CHUNK_BYTES = 1 << 18  # how much is inflated at once
INPUT_BYTES = 1 << 16
DEFLATE_RATIO = 1032  # deflate's limit: 258 bytes for two bits
MIN_POINT_BYTES = 4 << 20  # decoded bytes between two points from which inflating can go on
MAX_POINTS = 128  # each costs some 50 KB of memory

# Where inflating can go on: decoded position, position in the file, state of the decoder, the
# input that it has not used yet, decoded bytes that nobody has taken yet.
_Point = namedtuple("_Point", "position place decoder tail rest")


class FilePart:
    """Numbers that lie in the file as they are, from `offset`; `dtype` is a numpy type string."""

    __slots__ = ("count", "dtype", "nbytes", "offset", "source")

    def __init__(self, source: Source, offset: int, dtype: str, count: int) -> None:
        self.source = source
        self.offset = offset
        self.dtype = dtype
        self.count = count
        self.nbytes = count * int(dtype[2:])

    def open(self) -> _FileReader:
        """Return a reader of the bytes."""
        return _FileReader(self)

    def region(self, shape: tuple[int, ...], key: Any) -> Any:
        """Return what a key picks of the numbers in this shape, read and not mapped."""
        import numpy as np

        from raconvert.arrays.strided import region

        dtype = np.dtype(self.dtype)
        strides = tuple(dtype.itemsize * prod(shape[n + 1 :]) for n in range(len(shape)))
        with self.source.open() as file:
            return region(file.fileno(), self.source.path, self.offset, dtype, shape, strides, key)


class _FileReader:
    def __init__(self, part: FilePart) -> None:
        self.dtype = part.dtype
        self._path = part.source.path
        self._place = part.offset
        self._opened = part.source.open()
        self._file = self._opened.fileno()

    def read_into(self, view: memoryview) -> None:
        """Fill the view; `Corrupt` where the file ends."""
        os.lseek(self._file, self._place, os.SEEK_SET)
        self._place += len(view)
        while view:
            piece = os.read(self._file, min(len(view), 1 << 20))
            if not piece:
                raise Corrupt("file became shorter while it was read", path=self._path)
            view[: len(piece)] = piece
            view = view[len(piece) :]

    def finish(self) -> None:
        """Nothing follows that would have to be checked."""

    def close(self) -> None:
        """Close the file."""
        self._opened.close()


class HeldPart:
    """Numbers that are in memory already, since they are few."""

    __slots__ = ("count", "data", "dtype", "nbytes")

    def __init__(self, data: bytes, dtype: str) -> None:
        self.data = data
        self.dtype = dtype
        self.nbytes = len(data)
        self.count = len(data) // int(dtype[2:])

    def open(self) -> _HeldReader:
        """Return a reader of the bytes."""
        return _HeldReader(self)

    def region(self, shape: tuple[int, ...], key: Any) -> Any:
        """Return what a key picks of the numbers in this shape."""
        import numpy as np

        return np.frombuffer(self.data, self.dtype, prod(shape)).reshape(shape)[key]


class _HeldReader:
    def __init__(self, part: HeldPart) -> None:
        self.dtype = part.dtype
        self._rest = memoryview(part.data)

    def read_into(self, view: memoryview) -> None:
        """Fill the view."""
        view[:] = self._rest[: len(view)]
        self._rest = self._rest[len(view) :]

    def finish(self) -> None:
        """Nothing is left to check."""

    def close(self) -> None:
        """Nothing is open."""


class Compressed:
    """One compressed variable: `nbytes` bytes of zlib data at `offset` of the file.

    `total` is how many bytes it decodes to, its own tag included. `points` are where inflating
    can go on, once the variable was walked through. `stopped`, of which all variables of a file
    share one, holds at most one variable and where its reader stopped: what is read in the order
    of the file is inflated once.
    """

    __slots__ = ("checked", "nbytes", "offset", "path", "points", "source", "stopped", "total")

    def __init__(
        self, source: Source, offset: int, nbytes: int, stopped: dict[Compressed, _Point]
    ) -> None:
        self.source = source
        self.path = source.path
        self.offset = offset
        self.nbytes = nbytes
        self.total = 0
        self.points: list[_Point] = []
        self.stopped = stopped
        self.checked = False  # its end and its checksum were seen

    def inflater(self, position: int = 0) -> Inflater:
        """Return an inflater that stands at a decoded position."""
        stopped = self.stopped.get(self)
        before = [p for p in (*self.points, stopped) if p and p.position <= position]
        found = Inflater(self, max(before, key=lambda p: p.position, default=None))
        try:
            found.skip(position - found.position)
        except BaseException:
            found.close()
            raise
        return found

    def keep(self, point: _Point) -> None:
        """Remember where a reader stopped, unless another one of this variable came further."""
        last = self.stopped.get(self)
        if point.position < self.total and (last is None or last.position < point.position):
            self.stopped.clear()
            self.stopped[self] = point


class Inflater:
    """The decoded bytes of a compressed variable, front to back in bounded memory."""

    dtype = ""

    def __init__(
        self, variable: Compressed, point: _Point | None = None, *, mark: bool = False
    ) -> None:
        self.variable = variable
        self.position = 0
        self._place = variable.offset
        self._end = variable.offset + variable.nbytes
        self._rest = memoryview(b"")
        self._tail = b""
        self._mark = mark
        self.broken = False
        if point is None:
            self._decoder = decompressobj()
        else:
            self.position, self._place, decoder, self._tail, self._rest = point
            self._decoder = decoder.copy()
        self._opened = variable.source.open()
        self._file = self._opened.fileno()

    def read(self, nbytes: int) -> bytes:
        """Return exactly so many bytes; the caller knows that they are few."""
        found = bytearray(nbytes)
        self.read_into(memoryview(found))
        return bytes(found)

    def read_into(self, view: memoryview) -> None:
        """Fill the view; `Corrupt` where the variable ends."""
        while view:
            piece = self._next(len(view))
            view[: len(piece)] = piece
            view = view[len(piece) :]

    def skip(self, nbytes: int) -> None:
        """Leave out so many bytes."""
        while nbytes:
            nbytes -= len(self._next(nbytes))

    def _next(self, nbytes: int) -> memoryview:
        """Return the next bytes, at most so many."""
        if not self._rest:
            piece = self._inflate()
            if not piece:
                raise self._corrupt("compressed variable ends inside its data")
            self._rest = memoryview(piece)
        piece_view = self._rest[:nbytes]
        self._rest = self._rest[len(piece_view) :]
        self.position += len(piece_view)
        return piece_view

    def _inflate(self) -> bytes:
        """Return the next piece of decoded bytes; nothing at the end."""
        if self._mark:
            self._add_point()
        piece = b""
        try:
            while not piece and not self._decoder.eof:
                if not self._tail:
                    self._tail = self._input()
                ended = not self._tail
                piece = self._decoder.decompress(self._tail, CHUNK_BYTES)
                self._tail = self._decoder.unconsumed_tail
                if ended and not piece:
                    break
        except zlib_error as error:
            raise self._corrupt(f"compressed variable cannot be inflated ({error})") from error
        return piece

    def _input(self) -> bytes:
        os.lseek(self._file, self._place, os.SEEK_SET)
        data = os.read(self._file, min(INPUT_BYTES, self._end - self._place))
        self._place += len(data)
        return data

    def _add_point(self) -> None:
        points, total = self.variable.points, self.variable.total
        step = max(MIN_POINT_BYTES, total // MAX_POINTS)
        last = points[-1].position if points else 0
        if self.position >= last + step and len(points) < MAX_POINTS:
            points.append(self._point(self._decoder.copy()))

    def _point(self, decoder: Any) -> _Point:
        rest = self._rest or memoryview(b"")  # an empty slice would keep its whole piece
        return _Point(self.position, self._place, decoder, self._tail, rest)

    def finish(self) -> None:
        """Inflate to the end, so that length and checksum (Adler-32) are checked."""
        if not self.variable.checked:
            for _ in self._to_end():
                pass

    def everything(self) -> bytes:
        """Return all bytes to the end, of which the caller knows that they are few; as `finish`."""
        return b"".join(self._to_end())

    def _to_end(self) -> Iterator[memoryview]:
        variable = self.variable
        room = max(0, variable.total - self.position) + 8  # one element's padding
        while True:
            piece = self._rest or memoryview(self._inflate())
            self._rest = memoryview(b"")
            if not piece:
                break
            room -= len(piece)
            self.position += len(piece)
            if room < 0:
                raise self._corrupt("compressed variable is longer than its tag says")
            yield piece
        if not self._decoder.eof:
            inside = self.position < variable.total
            what = "ends inside its data" if inside else "is cut off"
            raise self._corrupt(f"compressed variable {what}")
        if self.position < variable.total - 8:  # Octave counts padding that it does not write
            raise self._corrupt("compressed variable is shorter than its tag says")
        variable.checked = True

    def _corrupt(self, what: str) -> Corrupt:
        self.broken = True
        where = f"byte {self.variable.offset}, decoded byte {self.position}"
        return Corrupt(what, path=self.variable.path, where=where)

    def close(self) -> None:
        """Close the file; the next reader may go on from here."""
        self._opened.close()
        if not self.broken:
            self.variable.keep(self._point(self._decoder))


def inflated_head(data: bytes, nbytes: int) -> bytes:
    """Return the first decoded bytes, as many as there are before the data is wrong or cut off."""
    decoder, found, tail = decompressobj(), b"", data
    try:
        while len(found) < nbytes and tail and not decoder.eof:
            found += decoder.decompress(tail, 64)
            tail = decoder.unconsumed_tail
    except zlib_error:
        pass
    return found


class InflatedPart:
    """Numbers at a decoded position of a compressed variable."""

    __slots__ = ("count", "dtype", "nbytes", "position", "variable")

    def __init__(self, variable: Compressed, position: int, dtype: str, count: int) -> None:
        self.variable = variable
        self.position = position
        self.dtype = dtype
        self.count = count
        self.nbytes = count * int(dtype[2:])

    def open(self) -> Inflater:
        """Return an inflater that stands where the numbers begin."""
        reader = self.variable.inflater(self.position)
        reader.dtype = self.dtype
        return reader

    def region(self, _: tuple[int, ...], __: Any) -> None:
        """Compressed numbers have no regions that could be read alone."""
        return


class LaterPart:
    """Numbers behind other compressed ones: their tag, at `position`, is read when it is needed."""

    __slots__ = ("count", "order", "position", "variable")

    def __init__(self, variable: Compressed, position: int, order: str, count: int) -> None:
        self.variable = variable
        self.position = position
        self.order = order
        self.count = count

    def open(self) -> Inflater:
        """Return an inflater that stands where the numbers begin; `Corrupt` for a wrong tag."""
        reader = self.variable.inflater(self.position)
        try:
            tag = reader.read(8)
            reader.dtype = self._stored(tag)
        except BaseException:
            reader.close()
            raise
        return reader

    def _stored(self, tag: bytes) -> str:
        """Return the numpy type that a tag gives; `Corrupt` where its length is another."""
        code, nbytes = (int.from_bytes(part, ORDERS[self.order]) for part in (tag[:4], tag[4:]))
        stored = STORED.get(code)
        if stored is None or nbytes != self.count * int(stored[1:]):
            raise Corrupt(
                "imaginary part does not have the length of the real part",
                path=self.variable.path,
                where=f"byte {self.variable.offset}, decoded byte {self.position}",
                expected=f"{self.count} numbers",
                got=f"{nbytes} bytes of type {code}",
            )
        return self.order + stored

    def region(self, _: tuple[int, ...], __: Any) -> None:
        """Compressed numbers have no regions that could be read alone."""
        return
