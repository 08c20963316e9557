"""Readable files over bytes that are read at any place: the part of them that keeps a position."""

from __future__ import annotations

import io
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Positioned(io.RawIOBase):
    """Base of files of `nbytes` bytes with a position; a subclass has `fill`, and `close`."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes: int = nbytes
        self._place = 0

    def fill(self, memory: memoryview, place: int) -> int:
        """Fill memory from byte `place`, as far as one read does, and return how far."""
        raise NotImplementedError

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self.nbytes}[whence]
        self._place = max(0, start + offset)
        return self._place

    def tell(self) -> int:
        """The position."""
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as one read does, and go on by as much."""
        got = self.fill(memoryview(buffer).cast("B"), self._place)
        self._place += got
        return got
