"""Deflate, bounded: nothing is inflated further than was asked for.

RFC 1951 (deflate), RFC 1950 (zlib), RFC 1952 (gzip).
"""

from __future__ import annotations

import zlib
from functools import partial

from raconvert.errors import Corrupt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# The most that one byte becomes: 258 bytes from a pair of codes of one bit each (RFC 1951, 3.2.5).
MAX_RATIO = 1032
RAW, ZLIB, GZIP = -zlib.MAX_WBITS, zlib.MAX_WBITS, zlib.MAX_WBITS | 16  # what is around the blocks
PIECE_BYTES = 1 << 18
SLACK_BYTES = 512  # zlib decodes fast while 258 bytes of output are free, slowly after that
LIBDEFLATE_FROM = 2048  # inflated bytes; for less, zlib is as fast


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
                raise Corrupt("deflated data is cut off: it has no end", path=self._path)
            try:
                piece = self._decoder.decompress(more, max_bytes)
            except zlib.error as error:
                raise Corrupt(f"data cannot be inflated ({error})", path=self._path) from error
            self._produced = bool(piece)
            if piece:
                return piece
        return b""


def inflater(most: int, *, strict: bool = False) -> Callable[[bytes], bytes]:
    """A function that inflates as `inflated` does, by libdeflate where that is worth it."""
    inflate = partial(inflated, most=most, strict=strict)
    if most < LIBDEFLATE_FROM:
        return inflate
    try:
        from deflate import DeflateError, adler32, zlib_decompress
    except ImportError:  # not built for this machine; zlib does the same, more slowly
        return inflate

    def faster(data: bytes) -> bytes:
        try:
            found: bytes = zlib_decompress(data, most)  # type: ignore[assignment, unused-ignore]
        except DeflateError:
            return inflate(data)  # which says what is wrong
        # libdeflate does not mind bytes behind the stream, which ends with its checksum.
        if strict and bytes(data[-4:]) != adler32(found).to_bytes(4, "big"):
            return inflate(data)
        return found

    return faster


def inflated(data: bytes, most: int, *, strict: bool = False) -> bytes:
    """The content of one whole zlib stream, at most `most` bytes; `ValueError` says what is wrong.

    `strict`: no bytes may stand behind the stream.
    """
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(data, most + SLACK_BYTES)
    except zlib.error as error:
        raise ValueError(f"it is damaged ({error})") from error
    if len(found) > most:
        raise ValueError(f"it inflates to more than {most} bytes")
    if not stream.eof:
        raise ValueError("it is cut off")
    if strict and stream.unused_data:
        raise ValueError("bytes follow it that are not its checksum")
    return found
