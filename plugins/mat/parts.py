"""Runs of numbers as MAT files store them: in the file, in a compressed variable, or in memory.

A part is `count` numbers of one storage type. `open` returns a reader, front to back and in bounded
memory; `region` reads some of them.
"""

from __future__ import annotations

from math import prod

from raconvert.errors import Corrupt
from raconvert.files import inflate
from raconvert.files.copy import handle_of, read_at

from .header import parse_words
from .tables import STORED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.files.source import Source

CHUNK_BYTES = 1 << 18  # decoded bytes of one step
INPUT_BYTES = 1 << 16  # compressed bytes that are read at once
MAX_STOPPED = 2  # cached readers of one variable: of a real and of an imaginary part


class MemoryPart:
    """A few numbers that are in memory already."""

    __slots__ = ("count", "data", "dtype", "nbytes")

    def __init__(self, data: bytes, dtype: str) -> None:
        self.data = data
        self.dtype = dtype
        self.nbytes = len(data)
        self.count = len(data) // int(dtype[2:])

    def open(self) -> _MemoryReader:
        """A reader of the bytes."""
        return _MemoryReader(self)

    def region(self, shape: tuple[int, ...], key: Any) -> Any:
        """The region that a key picks of the numbers in this shape."""
        import numpy as np

        return np.frombuffer(self.data, self.dtype, prod(shape)).reshape(shape)[key]


class _MemoryReader:
    """A reader of numbers in memory."""

    def __init__(self, part: MemoryPart) -> None:
        self.dtype = part.dtype
        self._rest = memoryview(part.data)

    def read_into(self, view: memoryview) -> None:
        """Fill the view."""
        view[:] = self._rest[: len(view)]
        self._rest = self._rest[len(view) :]

    def finish(self) -> None:
        """Do nothing: all was checked before."""

    def close(self) -> None:
        """Do nothing: no file is open."""


class Compressed:
    """One compressed variable: `nbytes` bytes of zlib data at `offset` of the file.

    `total` is the number of its decoded bytes, tag included. `stopped` is a list that all variables
    of a file share: the readers of the last variable, at the positions where they stopped, so that
    numbers that are read in the order of the file are inflated once.
    """

    __slots__ = ("checked", "nbytes", "offset", "path", "source", "stopped", "total")

    def __init__(self, source: Source, offset: int, nbytes: int, stopped: list[Inflater]) -> None:
        self.source = source
        self.path = source.path
        self.offset = offset
        self.nbytes = nbytes
        self.total = 0
        self.stopped = stopped
        self.checked = False  # True once its end and its checksum were reached

    def inflater(self, position: int = 0) -> Inflater:
        """An inflater at a decoded position: the nearest stopped one before it, else a new one."""
        before = [i for i in self.stopped if i.variable is self and i.position <= position]
        reader = None
        for stopped in sorted(before, key=lambda i: i.position, reverse=True):
            try:
                self.stopped.remove(stopped)
            except ValueError:  # another thread took it
                continue
            reader = stopped
            break
        reader = reader or Inflater(self)
        reader.skip(position - reader.position)
        return reader

    def keep(self, inflater: Inflater) -> None:
        """Cache a stopped reader; of those of this variable, the furthest `MAX_STOPPED` stay."""
        readers = [i for i in self.stopped if i.variable is self] + [inflater]
        readers.sort(key=lambda i: i.position, reverse=True)
        self.stopped[:] = readers[:MAX_STOPPED]


class Inflater:
    """The decoded bytes of a compressed variable, front to back in bounded memory."""

    dtype = ""

    def __init__(self, variable: Compressed) -> None:
        self.variable = variable
        self.position = 0
        self.broken = False
        self._rest = memoryview(b"")
        self._decoder = inflate.Inflater(_stored(variable), inflate.ZLIB_WBITS, variable.path)

    def read(self, nbytes: int) -> bytes:
        """Read exactly `nbytes` bytes; the caller knows that they are few."""
        data = bytearray(nbytes)
        self.read_into(memoryview(data))
        return bytes(data)

    def read_into(self, view: memoryview) -> None:
        """Fill the view. Raises `Corrupt` if the variable ends before."""
        while view:
            piece = self._next(len(view))
            view[: len(piece)] = piece
            view = view[len(piece) :]

    def skip(self, nbytes: int) -> None:
        """Skip the next `nbytes` bytes."""
        while nbytes:
            nbytes -= len(self._next(nbytes))

    def _next(self, nbytes: int) -> memoryview:
        """Return the next bytes, one at least and `nbytes` at most."""
        if not self._rest:
            self._rest = memoryview(self._inflated())
            if not self._rest:
                raise self._corrupt("compressed variable ends inside its data")
        piece = self._rest[:nbytes]
        self._rest = self._rest[len(piece) :]
        self.position += len(piece)
        return piece

    def _inflated(self) -> bytes:
        """Decode the next piece; empty at the end."""
        try:
            return self._decoder.read(CHUNK_BYTES)
        except Corrupt as error:
            raise self._corrupt(f"compressed variable: {error.what}") from error.__cause__

    def finish(self) -> None:
        """Inflate to the end, so that length and checksum (Adler-32) are checked."""
        if not self.variable.checked:
            for _ in self._to_end():
                pass

    def everything(self) -> bytes:
        """Read all bytes to the end, which the caller knows to be few; then `finish`."""
        return b"".join(self._to_end())

    def _to_end(self) -> Iterator[memoryview]:
        """Yield all bytes to the end. Raises `Corrupt` if they are not as many as the tag says."""
        variable = self.variable
        room = max(0, variable.total - self.position) + 8  # one element's padding
        while True:
            piece = self._rest or memoryview(self._inflated())
            self._rest = memoryview(b"")
            if not piece:
                break
            room -= len(piece)
            self.position += len(piece)
            if room < 0:
                raise self._corrupt("compressed variable is longer than its tag says")
            yield piece
        if self.position < variable.total - 8:  # Octave counts padding that it does not write
            raise self._corrupt("compressed variable is shorter than its tag says")
        variable.checked = True

    def _corrupt(self, what: str) -> Corrupt:
        self.broken = True
        where = f"byte {self.variable.offset}, decoded byte {self.position}"
        return Corrupt(what, path=self.variable.path, where=where)

    def close(self) -> None:
        """Cache this inflater, so that the next reader may go on from here."""
        if not self.broken and self.position < self.variable.total:
            self.variable.keep(self)


def _stored(variable: Compressed) -> Iterator[bytes]:
    """Yield the compressed bytes of a variable."""
    end = variable.offset + variable.nbytes
    for offset in range(variable.offset, end, INPUT_BYTES):
        yield variable.source.read_at(offset, min(INPUT_BYTES, end - offset))


def inflated_head(data: bytes, nbytes: int) -> bytes:
    """The first `nbytes` decoded bytes; fewer if the data is damaged or cut off before."""
    head = b""
    try:
        for piece in inflate.Inflater([data], inflate.ZLIB_WBITS, "").pieces(64):
            head += piece
            if len(head) >= nbytes:
                break
    except Corrupt:
        pass
    return head


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
        """An inflater at the beginning of the numbers."""
        reader = self.variable.inflater(self.position)
        reader.dtype = self.dtype
        return reader

    def region(self, _: tuple[int, ...], __: Any) -> None:
        """Return None: regions of compressed numbers cannot be read alone."""
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
        """An inflater at the beginning of the numbers. Raises `Corrupt` for a wrong tag."""
        reader = self.variable.inflater(self.position)
        try:
            tag = reader.read(8)
            reader.dtype = self._type_in(tag)
        except BaseException:
            reader.close()
            raise
        return reader

    def _type_in(self, tag: bytes) -> str:
        """The numpy type that a tag gives. Raises `Corrupt` for a wrong type or length."""
        code, nbytes = parse_words(tag, self.order)
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
        """Return None: regions of compressed numbers cannot be read alone."""
        return


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
        """A reader of the bytes."""
        return _FileReader(self)

    def region(self, shape: tuple[int, ...], key: Any) -> Any:
        """The region that a key picks of the numbers in this shape, read and not mapped."""
        import numpy as np

        from raconvert.arrays.regions import region

        dtype = np.dtype(self.dtype)
        strides = tuple(dtype.itemsize * prod(shape[n + 1 :]) for n in range(len(shape)))
        with self.source.open() as file:
            return region(
                handle_of(file), self.source.path, self.offset, dtype, shape, strides, key
            )


class _FileReader:
    """A reader of numbers in the file."""

    def __init__(self, part: FilePart) -> None:
        self.dtype = part.dtype
        self._path = part.source.path
        self._offset = part.offset
        self._opened = part.source.open()
        self._file = handle_of(self._opened)

    def read_into(self, view: memoryview) -> None:
        """Fill the view. Raises `Corrupt` if the file ends before."""
        while view:
            nbytes = read_at(self._file, view[: 1 << 20], self._offset)
            if not nbytes:
                raise Corrupt("file became shorter while it was read", path=self._path)
            self._offset += nbytes
            view = view[nbytes:]

    def finish(self) -> None:
        """Do nothing: these bytes have no checksum."""

    def close(self) -> None:
        """Close the file."""
        self._opened.close()
