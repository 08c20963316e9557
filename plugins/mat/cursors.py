"""Cursors of level 5: positions in the file, or in the decoded bytes of a variable."""

from __future__ import annotations

from math import prod

from raconvert.errors import Corrupt
from raconvert.files.copy import handle_of, read_at
from raconvert.files.source import read_up_to

from .parts import HeldPart, InflatedPart, Inflater

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from typing import Any

    from raconvert.files.source import Source

WINDOW_BYTES = 4096  # how much of the file is read at once while it is walked
EAGER_BYTES = 1 << 20  # compressed variables up to this are walked at once
HELD_BYTES = EAGER_BYTES  # numbers up to this are kept while a compressed variable is walked


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
    def __init__(self, part: FilePart) -> None:
        self.dtype = part.dtype
        self._path = part.source.path
        self._place = part.offset
        self._opened = part.source.open()
        self._file = handle_of(self._opened)

    def read_into(self, view: memoryview) -> None:
        """Fill the view; `Corrupt` where the file ends."""
        while view:
            got = read_at(self._file, view[: 1 << 20], self._place)
            if not got:
                raise Corrupt("file became shorter while it was read", path=self._path)
            self._place += got
            view = view[got:]

    def finish(self) -> None:
        """Do nothing: these bytes have no checksum."""

    def close(self) -> None:
        """Close the file."""
        self._opened.close()


class FileCursor:
    """A place in the file, up to the end of one element."""

    def __init__(self, source: Source, file: FileIO, offset: int, end: int) -> None:
        self.path = source.path
        self._source = source
        self.place = offset
        self.end = end
        self._file = file
        self._window, self._window_place = b"", 0

    def take(self, nbytes: int) -> bytes:
        """The next bytes; goes on behind them."""
        start = self.place - self._window_place
        if start < 0 or start + nbytes > len(self._window):
            self._file.seek(self.place)
            self._window = read_up_to(self._file, max(nbytes, WINDOW_BYTES))
            self._window_place, start = self.place, 0
        self.place += nbytes
        return self._window[start : start + nbytes]

    def skip(self, nbytes: int) -> None:
        """Go on behind so many bytes."""
        self.place += nbytes

    def part(self, dtype: str, nbytes: int) -> Any:
        """The numbers in the next bytes; goes on behind them where they are taken."""
        piece = FilePart(self._source, self.place, dtype, nbytes // int(dtype[2:]))
        self.place += nbytes
        return piece

    broken = False

    @property
    def where(self) -> str:
        """The place, as messages name it."""
        return f"byte {self.place}"


class InflateCursor:
    """A place in the decoded bytes of a compressed variable."""

    lazy = True  # nothing behind the numbers that come first is looked at

    def __init__(self, inflater: Inflater, room: int) -> None:
        self.variable = inflater.variable
        self.path = self.variable.path
        self.end = self.variable.total
        self.room = room  # bytes that may still be kept
        self.inflater = inflater

    @property
    def place(self) -> int:
        """The number of bytes that were decoded and taken."""
        return self.inflater.position

    @property
    def broken(self) -> bool:
        """True if nothing can be inflated any more."""
        return self.inflater.broken

    def take(self, nbytes: int) -> bytes:
        """The next bytes; goes on behind them."""
        return self.inflater.read(nbytes)

    def skip(self, nbytes: int) -> None:
        """Go on behind so many bytes."""
        self.inflater.skip(nbytes)

    def part(self, dtype: str, nbytes: int) -> Any:
        """The numbers in the next bytes; goes on behind them where they are taken."""
        if nbytes <= min(HELD_BYTES, self.room):
            self.room -= nbytes
            return HeldPart(self.inflater.read(nbytes), dtype)
        piece = InflatedPart(self.variable, self.place, dtype, nbytes // int(dtype[2:]))
        if not self.lazy:
            self.inflater.skip(nbytes)
        return piece

    @property
    def where(self) -> str:
        """The place, as messages name it."""
        return f"byte {self.variable.offset}, decoded byte {self.place}"


class DecodedCursor(InflateCursor):
    """A place in the decoded bytes of a small compressed variable, which are all there."""

    lazy = False
    broken = False
    place = 0

    def __init__(self, inflater: Inflater, data: bytes, room: int) -> None:
        super().__init__(inflater, room)
        self._data = data

    def take(self, nbytes: int) -> bytes:
        """The next bytes; goes on behind them."""
        data = self._data[self.place : self.place + nbytes]
        if len(data) < nbytes:
            raise Corrupt("compressed variable ends inside its data", path=self.path,
                          where=self.where)  # fmt: skip
        self.place += nbytes
        return data

    def skip(self, nbytes: int) -> None:
        """Go on behind so many bytes."""
        self.place += nbytes

    def part(self, dtype: str, nbytes: int) -> Any:
        """The numbers in the next bytes; goes on behind them where they are taken."""
        if nbytes <= self.room:
            self.room -= nbytes
            return HeldPart(self.take(nbytes), dtype)
        piece = InflatedPart(self.variable, self.place, dtype, nbytes // int(dtype[2:]))
        self.place += nbytes
        return piece


Cursor = FileCursor | InflateCursor
