"""Stretches of a file, and bytes in memory, seen as files of their own."""

from __future__ import annotations

import io

from raconvert.files.source import HEAD_BYTES, Checksum, Source
from raconvert.files.streams import Positioned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from typing import Any

    from raconvert.files.limits import Limits
    from raconvert.files.source import Extent, Identity


class Window(Source):
    """A stretch of a file seen as a file of its own: a stored member of an archive.

    `path` is the archive's, so that data can be copied and mapped out of it; `name` the member's.
    """

    __slots__ = ("_crc", "_name", "_size", "_whole")

    def __init__(
        self, whole: Source, name: str, base: int, size: int, crc: int | None = None
    ) -> None:
        super().__init__(whole.path, limits=whole.limits)
        self.seen: dict[str, Identity] = whole.seen
        self.used: set[str] = whole.used
        self._whole = whole
        self._name = name
        self._size = size
        self._crc = crc  # CRC-32 of all bytes of the window
        self.base = base

    def extent(self, offset: int, nbytes: int, swap: int = 1) -> Extent:
        """Return a stretch of the member, under its checksum if it has one."""
        stretch = super().extent(offset, nbytes, swap)
        if self._crc is not None:
            end, where = self.base + self._size, f"member '{self._name}'"
            stretch.checksum = Checksum(self.base, end, self._crc, where)
        return stretch

    @property
    def name(self) -> str:
        """The last part of the member's path."""
        return self._name.rsplit("/", 1)[-1]

    @property
    def size(self) -> int:
        """The member's size in bytes."""
        return self._size

    @property
    def identity(self) -> Identity:
        """The identity of the archive when it was first opened."""
        return self._whole.identity

    @property
    def head(self) -> bytes:
        """The first 4 KiB of the member."""
        if self._head is None:
            self._head = self._whole.read_at(self.base, min(HEAD_BYTES, self._size))
        return self._head

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Return up to `nbytes` bytes from `offset`: fewer only where the member ends."""
        return self._whole.read_at(self.base + offset, max(0, min(nbytes, self._size - offset)))

    def open(self) -> Any:
        """Open the member for reading, unbuffered; it ends where the member does."""
        return io.BufferedReader(_Part(self._whole.open(), self.base, self._size))


class Held(Source):
    """Bytes in memory seen as a file: a file that was just written, or inflated data."""

    __slots__ = ("_data",)

    def __init__(self, path: str, data: bytes, limits: Limits | None = None) -> None:
        super().__init__(path, limits=limits)
        self._data = data

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self._data)

    @property
    def head(self) -> bytes:
        """The first 4 KiB."""
        return self._data[:HEAD_BYTES]

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Return up to `nbytes` bytes from `offset`."""
        return self._data[offset : offset + nbytes]

    def open(self) -> Any:
        """Open the bytes for reading."""
        return io.BytesIO(self._data)


class _Part(Positioned):
    """The bytes of a window, as a file."""

    def __init__(self, file: FileIO, base: int, size: int) -> None:
        super().__init__(size)
        self._file = file
        self._base = base

    def fill(self, memory: memoryview, offset: int) -> int:
        self._file.seek(self._base + offset)
        return self._file.readinto(memory[: max(0, self.nbytes - offset)]) or 0

    def close(self) -> None:
        self._file.close()
        super().close()
