"""The bytes of a file of R, decompressed front to back in bounded memory."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from raconvert.errors import Corrupt, RaconvertError, TooLarge
from raconvert.files.inflate import BZIP2, CHUNK_BYTES, GZIP, MEMBERS, READ_BYTES, note_once

from .tables import BZIP2_MAGIC, GZIP_MAGIC, XZ_MAGIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from raconvert.files.limits import Limits
    from raconvert.plugin import Source

XZ = "xz"
PACKINGS = {GZIP_MAGIC: GZIP, BZIP2_MAGIC: BZIP2, XZ_MAGIC: XZ}
STEP = 1 << 18  # bytes taken at once
MOST_KEPT = 2  # cursors that stay open where they stopped: of values, and of missing ones


def packing_of(head: bytes) -> str:
    """Return the compression around a file, by its first bytes; empty without one."""
    return next((name for magic, name in PACKINGS.items() if head.startswith(magic)), "")


def start_of(source: Source, nbytes: int) -> bytes:
    """Return the first decoded bytes of a file; empty if it ends, or is damaged, before."""
    stream = Stream(source)
    cursor = stream.cursor()
    try:
        return cursor.take(nbytes)
    except RaconvertError:
        return b""
    finally:
        cursor.close()


class Cursor:
    """Reader of decoded bytes, front to back; `position` is the offset of the next one."""

    __slots__ = ("_at", "_buffer", "_chunks", "_file", "_size", "path", "position")

    def __init__(self, file: Any, chunks: Iterator[bytes] | None, source: Source) -> None:
        self._file = file
        self._chunks = chunks or iter(lambda: file.read(STEP) or b"", b"")
        self._size = -1 if chunks is not None else source.size
        self.path = source.path
        self.position = 0
        self._buffer = b""
        self._at = 0

    @property
    def skips(self) -> bool:
        """True if bytes can be skipped without reading them."""
        return self._size >= 0

    def take(self, nbytes: int) -> bytes:
        """Take exactly `nbytes` bytes, which the caller knows to be few; `Corrupt` at the end."""
        at, end = self._at, self._at + nbytes
        if end <= len(self._buffer):
            self._at = end
            self.position += nbytes
            return self._buffer[at:end]
        self._check(nbytes)
        parts, have = [self._buffer[at:]], len(self._buffer) - at
        while have < nbytes:
            chunk = self._next()
            if not chunk:
                raise self.cut_off()
            parts.append(chunk)
            have += len(chunk)
        self._buffer = b"".join(parts)
        self._at = nbytes
        self.position += nbytes
        return self._buffer[:nbytes]

    def pieces(self, nbytes: int) -> Iterator[bytes]:
        """Yield the next bytes in pieces of `STEP`, of which the last may be shorter."""
        while nbytes:
            piece = self.take(min(STEP, nbytes))
            nbytes -= len(piece)
            yield piece

    def skip(self, nbytes: int) -> None:
        """Skip so many bytes."""
        left = len(self._buffer) - self._at
        if nbytes <= left or not self.skips:
            for _ in self.pieces(nbytes):
                pass
            return
        self._check(nbytes)
        self._file.seek(nbytes - left, 1)
        self._buffer, self._at = b"", 0
        self.position += nbytes

    def rest(self, most: int) -> int:
        """Read to the end, and return how many bytes there were; stop behind `most` of them."""
        if self.skips:
            return self._size - self.position
        total = len(self._buffer) - self._at
        while total <= most and (chunk := self._next()):
            total += len(chunk)
        return total

    def _check(self, nbytes: int) -> None:
        """Raise `Corrupt` if a file that is not compressed ends before."""
        if self.skips and self.position + nbytes > self._size:
            raise self.cut_off()

    def _next(self) -> bytes:
        """Return the next piece; empty at the end."""
        try:
            return next(self._chunks, b"")
        except RaconvertError as error:
            error.path = error.path or self.path
            raise

    def cut_off(self) -> Corrupt:
        """Return the error for data that ends too early."""
        where = "byte" if self.skips else "decompressed byte"
        return Corrupt("is cut off", path=self.path, where=f"{where} {self.position}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Stream:
    """The decoded bytes of one file, from any offset; reading in order decodes them once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.packing = packing_of(source.head)
        self.notes: list[str] = []
        self._kept: list[Cursor] = []

    def cursor(self, position: int = 0) -> Cursor:
        """Return a cursor at a decoded position: one that was kept before it, or a new one."""
        before = [cursor for cursor in self._kept if cursor.position <= position]
        for cursor in sorted(before, key=_position, reverse=True):
            with suppress(ValueError):  # another thread took it
                self._kept.remove(cursor)
                break
        else:
            file = self.source.open()
            cursor = Cursor(file, self._chunks(file), self.source)
        try:
            cursor.skip(position - cursor.position)
        except BaseException:
            cursor.close()
            raise
        return cursor

    def keep(self, cursor: Cursor) -> None:
        """Keep a cursor open where it stopped; those that came furthest stay, others are closed."""
        kept = sorted([*self._kept, cursor], key=_position, reverse=True)
        self._kept = kept[:MOST_KEPT]
        for other in kept[MOST_KEPT:]:
            other.close()

    def close(self) -> None:
        """Close all files."""
        kept, self._kept = self._kept, []
        for cursor in kept:
            cursor.close()

    def _chunks(self, file: Any) -> Iterator[bytes] | None:
        """Return the decoded pieces of an open file; None if it is not compressed."""
        if not self.packing:
            return None
        unpack: Callable[..., Iterator[bytes]] = MEMBERS.get(
            self.packing, partial(_xz_members, self.source.limits)
        )
        return unpack(file, self.notes)


def _position(cursor: Cursor) -> int:
    return cursor.position


def _xz_members(limits: Limits, file: Any, notes: list[str]) -> Iterator[bytes]:
    """Yield the decoded pieces of all xz streams that follow each other in the file."""
    import lzma

    data = file.read(READ_BYTES) or b""
    while True:
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, limits.lzma_decoder_bytes)
        while not decoder.eof:
            if decoder.needs_input and not data and not (data := file.read(READ_BYTES)):
                raise Corrupt("xz data is cut off", where=f"byte {file.tell()}")
            try:
                piece = decoder.decompress(data, CHUNK_BYTES)
            except lzma.LZMAError as error:
                raise _xz_error(error, limits, file.tell()) from error
            data = b""
            if piece:
                yield piece
        data = (decoder.unused_data or file.read(READ_BYTES) or b"").lstrip(b"\0")
        if not data.startswith(XZ_MAGIC):
            break
    if data:
        note_once(notes, "bytes after the compressed data were ignored")


def _xz_error(error: Exception, limits: Limits, offset: int) -> RaconvertError:
    """Return our error for one of the decoder of xz."""
    if "memory" in str(error).lower():
        return TooLarge(
            "xz data needs too much memory to be decoded",
            expected=f"at most {limits.lzma_decoder_bytes} bytes",
        )
    return Corrupt(f"xz data is damaged ({error})", where=f"byte {offset}")
