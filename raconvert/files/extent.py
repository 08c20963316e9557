"""The RA core in memory: `Array`, `Bundle`, `Metadata`, `Axis`, `Extent`.

Two words that are never mixed: `dims` is what an RA header lists, fastest axis first; `shape` is
the logical shape in the array's index order (C or unknown: dims reversed; F: dims as they stand).
`Array.data` is always seen slowest axis first, in C order, whatever the index order is.

Plain classes with slots instead of dataclasses: the command line starts with this module, and
`import dataclasses` alone would cost half a bare interpreter start.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass


class Extent:
    """Where an array's bytes lie contiguous and in stored order inside one local file.

    `offset` and `nbytes` are bytes; `swap` is the width of the numbers that must be reversed to
    become little-endian (1: none). `identity` is what the file was when it was first opened
    (`raconvert.files.source`): it is refused when it is not the same any more. Made by
    `Source.extent`.
    """

    __slots__ = ("identity", "nbytes", "offset", "path", "swap")

    def __init__(
        self,
        path: str,
        offset: int,
        nbytes: int,
        swap: int = 1,
        identity: tuple[int, int, int, int] | None = None,
    ) -> None:
        self.path = path
        self.offset = offset
        self.nbytes = nbytes
        self.swap = swap
        self.identity = identity

    def part(self, start: int, nbytes: int) -> Extent:
        """Return a stretch of this extent that begins `start` bytes into it."""
        return Extent(self.path, self.offset + start, nbytes, self.swap, self.identity)

    def open(self) -> int:
        """Return a descriptor of the file; `Corrupt` if it is not the one that it was."""
        from raconvert.files.source import open_regular

        return open_regular(self.path, self.identity)
