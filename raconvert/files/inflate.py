"""Deflate, bounded: nothing is inflated further than was asked for.

RFC 1951 (deflate), RFC 1950 (zlib), RFC 1952 (gzip).
"""

from __future__ import annotations

import zlib

from raconvert.errors import Corrupt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# The most that one byte becomes: 258 bytes from a pair of codes of one bit each (RFC 1951, 3.2.5).
MAX_RATIO = 1032
RAW, ZLIB, GZIP = -zlib.MAX_WBITS, zlib.MAX_WBITS, zlib.MAX_WBITS | 16  # what is around the blocks
PIECE_BYTES = 1 << 18


class Inflater:
    """The bytes of one deflated stream, front to back, in pieces of bounded size.

    `compressed` yields its bytes in order. `eof` is True once the stream has ended, checksum
    included; `behind` are bytes that came after that.
    """

    def __init__(self, compressed: Iterable[bytes], wrapping: int, path: str) -> None:
        self._compressed = iter(compressed)
        self._decoder = zlib.decompressobj(wrapping)
        self._path = path
        self._produced = True  # the decoder may hold more output than it gave

    @property
    def eof(self) -> bool:
        """True once the stream has ended."""
        return self._decoder.eof

    @property
    def behind(self) -> bytes:
        """What was read behind the end of the stream."""
        return self._decoder.unused_data

    def pieces(self, max_bytes: int = PIECE_BYTES) -> Iterator[bytes]:
        """Yield what is left, in pieces of at most `max_bytes`, none of them empty."""
        while piece := self.read(max_bytes):
            yield piece

    def read(self, max_bytes: int) -> bytes:
        """Up to `max_bytes` of what comes next; empty only at the end of the stream.

        Raises `Corrupt` for damaged data, and where the input ends before the stream does.
        """
        while not self._decoder.eof:
            more = self._decoder.unconsumed_tail or next(self._compressed, b"")
            if not more and not self._produced:
                raise Corrupt("deflated data is cut off", path=self._path)
            try:
                piece = self._decoder.decompress(more, max_bytes)
            except zlib.error as error:
                raise Corrupt(f"data cannot be inflated ({error})", path=self._path) from error
            self._produced = bool(piece)
            if piece:
                return piece
        return b""


def inflated(data: bytes, nbytes: int, wrapping: int, path: str) -> bytes:
    """The `nbytes` bytes that one whole stream holds; `Corrupt` if it holds fewer or more."""
    inflater = Inflater([data], wrapping, path)
    found = b"".join(_bounded(inflater, nbytes + 1))
    if len(found) == nbytes and not inflater.eof:
        inflater.read(1)  # the checksum, if nothing else is left
    if len(found) != nbytes or not inflater.eof:
        raise Corrupt(
            "deflated data has not the size that it should",
            path=path,
            expected=f"{nbytes} bytes",
            got="more" if len(found) > nbytes else len(found),
        )
    return found


def _bounded(inflater: Inflater, most: int) -> Iterator[bytes]:
    while most:
        piece = inflater.read(most)
        if not piece:
            return
        most -= len(piece)
        yield piece
