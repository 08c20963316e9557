"""`Extent`: a stretch of a file that can be copied as it is, and the checksum that it is under."""

from __future__ import annotations

from raconvert.files.regular import open_regular
from raconvert.records import Record


class Checksum(Record):
    """The CRC-32 of the bytes `begin` to `end` of a file, in which an extent lies."""

    begin: int
    end: int
    expected: int
    where: str  # names the bytes in messages


class Extent:
    """Where an array's bytes lie contiguous and in stored order inside one local file.

    `offset` and `nbytes` are bytes; `swap` is the width of the numbers that must be reversed to
    become little-endian (1: none). `identity` is what the file was when it was first opened
    (`raconvert.files.source`): it is refused when it is not the same any more. Made by
    `Source.extent`. `checksum` is compared by whatever passes over all of the bytes.
    """

    __slots__ = ("checksum", "identity", "nbytes", "offset", "path", "swap")

    def __init__(
        self,
        path: str,
        offset: int,
        nbytes: int,
        swap: int = 1,
        identity: tuple[int, int, int, int] | None = None,
        checksum: Checksum | None = None,
    ) -> None:
        self.path: str = path
        self.offset: int = offset
        self.nbytes: int = nbytes
        self.swap: int = swap
        self.identity: tuple[int, int, int, int] | None = identity
        self.checksum: Checksum | None = checksum

    def part(self, start: int, nbytes: int) -> Extent:
        """Return a stretch of this extent that begins `start` bytes into it."""
        return Extent(self.path, self.offset + start, nbytes, self.swap, self.identity)

    def open(self) -> int:
        """Return a descriptor of the file; `Corrupt` if it is not the one that it was."""
        return open_regular(self.path, self.identity)
