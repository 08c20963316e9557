"""Deflate, bounded: nothing is inflated further than was asked for.

RFC 1951 (deflate), RFC 1950 (zlib), RFC 1952 (gzip).
"""

from __future__ import annotations

import zlib
from functools import partial
from itertools import chain
from os import SEEK_END
from struct import Struct

from raconvert.declared import Record
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from io import FileIO
    from typing import Any

    from raconvert.files.source import Source

    Member = Any  # of `raconvert.files.zips`


# The most that one byte becomes: 258 bytes from a pair of codes of one bit each (RFC 1951, 3.2.5).
MAX_RATIO = 1032
RAW_WBITS, ZLIB_WBITS, GZIP_WBITS = -zlib.MAX_WBITS, zlib.MAX_WBITS, zlib.MAX_WBITS | 16
PIECE_BYTES = 1 << 18
SLACK_BYTES = 512  # zlib decodes fast while 258 bytes of output are free, slowly after that
LIBDEFLATE_FROM = 2048  # inflated bytes; for less, zlib is as fast


class Inflater:
    """Decoder of one deflated stream, front to back, in pieces of bounded size.

    `compressed` yields the bytes of the stream in order. `eof` is True once the stream has ended,
    checksum included; `behind` are the bytes that were read after that.
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
        """The bytes that were read behind the end of the stream."""
        return self._decoder.unused_data

    def pieces(self, max_bytes: int = PIECE_BYTES) -> Iterator[bytes]:
        """Yield the rest of the content, in pieces of 1 to `max_bytes` bytes."""
        while piece := self.read(max_bytes):
            yield piece

    def read(self, max_bytes: int) -> bytes:
        """Read up to `max_bytes` of decoded data; empty only at the end of the stream.

        Raises `Corrupt` for damaged data, and if the input ends before the stream does.
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
    """Return a function that inflates as `inflated` does, by libdeflate if that is faster."""
    inflate = partial(inflated, most=most, strict=strict)
    if most < LIBDEFLATE_FROM:
        return inflate
    try:
        from deflate import DeflateError, adler32, zlib_decompress
    except ImportError:  # not built for this machine; zlib does the same, more slowly
        return inflate

    def faster(data: bytes) -> bytes:
        try:
            content: bytes = zlib_decompress(data, most)  # type: ignore[assignment, unused-ignore]
        except DeflateError:
            return inflate(data)  # zlib names the error
        # libdeflate does not mind bytes behind the stream, which ends with its checksum.
        if strict and bytes(data[-4:]) != adler32(content).to_bytes(4, "big"):
            return inflate(data)
        return content

    return faster


def inflated(data: bytes, most: int, *, strict: bool = False) -> bytes:
    """Return the content of one whole zlib stream.

    Raises `ValueError` for a damaged stream, for more than `most` bytes of content, and, if
    `strict`, for bytes behind the stream.
    """
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(data, most + SLACK_BYTES)
    except zlib.error as error:
        raise ValueError(f"it is damaged ({error})") from error
    if len(content) > most:
        raise ValueError(f"it inflates to more than {most} bytes")
    if not stream.eof:
        raise ValueError("it is cut off")
    if strict and stream.unused_data:
        raise ValueError("bytes follow it that are not its checksum")
    return content


# Compressed streams in files, piece by piece: gzip and bzip2 members, zlib streams ---------------
# Each gives exactly the bytes that an array needs, or raises `Corrupt`; what follows is counted
# up to `Limits.surplus_bytes` and named in a note, so that a damaged end is found and a
# decompression bomb is not followed. Every checksum that the array touches is checked, and that of
# the last member too.


GZIP, BZIP2, ZLIB = "gzip", "bzip2", "zlib"
CHUNK_BYTES = 1 << 19  # bytes decoded at once: enough for two threads, small enough for caches
READ_BYTES = 1 << 17  # bytes read at once; a decompressor copies any input that it does not use


class Part(Record):
    """The part of one file that belongs to an array: `nbytes` stored bytes from `offset` on.

    `skip` decoded bytes come before the array (negative: the array is counted from the end).
    """

    source: Source
    offset: int
    nbytes: int
    skip: int


def decompressed(
    file: Any, members: Callable[..., Iterator[bytes]], part: Part, notes: list[str]
) -> Generator[Any, None, None]:
    """Yield exactly the bytes of the array in a compressed part, and check the end of the stream.

    `members` yields the decoded bytes of an open file. Raises `Corrupt` and `Unsafe`.
    """
    skip = part.skip
    if skip < 0:
        # The array is counted from the end of the stream, which is decoded once to know its length.
        behind = -skip - 1
        total = sum(_limited(members(file, []), part, part.nbytes + behind))
        skip = total - part.nbytes - behind
        if skip < 0:
            raise too_short(part.nbytes + behind, total)
        file.seek(part.offset)
    chunks = members(file, notes)
    for chunk in chunks:
        if len(chunk) > skip:
            yield from _array_bytes(memoryview(chunk)[skip:], chunks, part, notes)
            return
        skip -= len(chunk)
    decoded = part.skip - skip
    raise too_short(part.nbytes + part.skip, decoded)


def _array_bytes(
    chunk: memoryview, chunks: Iterator[bytes], part: Part, notes: list[str]
) -> Iterator[Any]:
    """Yield the bytes of the array, which begin with `chunk`, and decode the rest of the stream."""
    left = part.nbytes
    while True:
        yield chunk[:left]
        if len(chunk) >= left:
            break
        left -= len(chunk)
        more = next(chunks, None)
        if more is None:
            raise too_short(part.nbytes, part.nbytes - left)
        chunk = memoryview(more)
    extra = len(chunk) - left
    extra += sum(_limited(chunks, part, extra=extra))
    if extra and part.skip >= 0:
        note_once(notes, f"{extra} decompressed bytes after the data were ignored")


def _limited(chunks: Iterable[bytes], part: Part, wanted: int = 0, extra: int = 0) -> Iterator[int]:
    """Yield the lengths of chunks; raises `Unsafe` once they are many more bytes than `wanted`.

    `extra` bytes have been counted before.
    """
    total, most = extra, part.source.limits.surplus_bytes
    for chunk in chunks:
        total += len(chunk)
        if total > wanted + most:
            raise Unsafe(
                "compressed data goes on for much longer than the array (a decompression bomb?)",
                expected=f"at most {most} bytes that do not belong to the array",
                got="more",
                remedy="correct the sizes in the header, or decompress the data by other means",
            )
        yield len(chunk)


def too_short(expected: int, got: int) -> Corrupt:
    """Return the error for a stream that holds fewer bytes than its array needs."""
    return Corrupt(
        "data is cut off: its encoded bytes hold too few",
        expected=f"{expected} bytes",
        got=f"{got} ({expected - got} missing)",
    )


def _gzip_members(file: Any, notes: list[str]) -> Iterator[bytes]:
    """Yield the inflated bytes of all consecutive gzip members of the file."""
    data = b""
    while True:
        compressed = chain((data,), iter(lambda: file.read(READ_BYTES) or b"", b""))
        member = Inflater(compressed, GZIP_WBITS, "")
        try:
            yield from member.pieces(CHUNK_BYTES)
        except Corrupt as error:
            error.what, error.where = f"gzip: {error.what}", _position(file)
            raise
        data = _next_member(file, member.behind, b"\x1f\x8b", notes)
        if not data:
            return


def _zlib_stream(file: Any, notes: list[str]) -> Iterator[bytes]:
    """Yield the decoded bytes of the zlib stream at the position of the file."""
    compressed = iter(lambda: file.read(READ_BYTES) or b"", b"")
    stream = Inflater(compressed, ZLIB_WBITS, "")
    try:
        yield from stream.pieces(CHUNK_BYTES)
    except Corrupt as error:
        error.what, error.where = f"zlib: {error.what}", _position(file)
        raise
    _next_member(file, stream.behind, b"", notes)


def _bzip2_members(file: Any, notes: list[str]) -> Iterator[bytes]:
    """Yield the decoded bytes of all consecutive bzip2 streams of the file."""
    from bz2 import BZ2Decompressor

    data = file.read(READ_BYTES) or b""
    while True:
        decoder = BZ2Decompressor()
        while not decoder.eof:
            try:
                piece = decoder.decompress(data, CHUNK_BYTES)
            except (OSError, ValueError) as error:
                raise Corrupt(f"bzip2 data is damaged ({error})", where=_position(file)) from error
            if piece:
                yield piece
            data = b""
            if not decoder.eof and decoder.needs_input:
                data = file.read(READ_BYTES) or b""
                if not data:
                    raise Corrupt("bzip2 data is cut off", where=_position(file))
        data = _next_member(file, decoder.unused_data, b"BZh", notes)
        if not data:
            return


def _next_member(file: Any, data: bytes, start: bytes, notes: list[str]) -> bytes:
    """Return the first bytes of the next member; empty, with a note, if something else follows."""
    while len(data) < len(start):
        more = file.read(READ_BYTES)
        if not more:
            break
        data += more
    if start and data.startswith(start):
        return data
    if rest := len(data) + left_in(file):
        note_once(notes, f"{rest} bytes after the compressed data were ignored")
    return b""


def left_in(file: Any) -> int:
    """Return the number of bytes from the position of an open file to its end."""
    offset = file.tell()
    left: int = file.seek(0, SEEK_END) - offset
    file.seek(offset)
    return left


def note_once(notes: list[str], note: str) -> None:
    """Add a note, unless it is there: data may be decoded more than once."""
    if note not in notes:
        notes.append(note)


MEMBERS: dict[str, Callable[..., Iterator[bytes]]] = {
    GZIP: _gzip_members,
    BZIP2: _bzip2_members,
    ZLIB: _zlib_stream,
}


def _position(file: Any) -> str:
    """Return the position of an open file as messages have it."""
    return f"byte {file.tell()}"


def start_of(source: Source, nbytes: int) -> bytes:
    """Return the first `nbytes` decompressed bytes of a gzip file; fewer if it ends or is damaged.

    Only its first 64 KiB are read. Raises what `Source.read_at` does.
    """
    data, start = source.read_at(0, source.limits.short_header_bytes), b""
    while data and len(start) < nbytes:
        decoder = zlib.decompressobj(GZIP_WBITS)
        try:
            start += decoder.decompress(data, nbytes - len(start))
        except zlib.error:
            break  # reading the whole reports it
        data = decoder.unused_data if decoder.eof else b""
    return start


def length_mod_32(source: Source) -> int:
    """Read the length of the last member of a gzip file, modulo 2**32, from the end of the file."""
    return int.from_bytes(source.read_at(max(0, source.size - 4), 4), "little")


# Compression methods of ZIP members: decoders that yield pieces in bounded memory ----------------


ZIP_STORED, ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA = 0, 8, 12, 14  # PKWARE APPNOTE 4.4.5
MEMBER_CHUNK_BYTES = 1 << 18  # bytes of a member decoded at once
LZMA_HEADER = Struct("<HHBI")  # version, length of what follows: lc, lp and pb in one, dictionary


def _stored(_: Source, file: FileIO, member: Member) -> Iterator[bytes]:
    """Return the bytes of a stored member, in pieces."""
    return _raw(file, member.compressed)


def _raw(file: FileIO, nbytes: int) -> Iterator[bytes]:
    """Yield the next `nbytes` bytes of a file, in pieces; fewer if the file ends."""
    while nbytes:
        piece = file.read(min(MEMBER_CHUNK_BYTES, nbytes))
        if not piece:
            return
        nbytes -= len(piece)
        yield piece


def _inflated(source: Source, file: FileIO, member: Member) -> Iterator[bytes]:
    """Yield the content of a deflated member, in pieces of at most `MEMBER_CHUNK_BYTES`."""
    stored = _raw(file, member.compressed)
    inflater = Inflater(stored, RAW_WBITS, source.path)
    yield from inflater.pieces(MEMBER_CHUNK_BYTES)
    if inflater.behind or next(stored, b""):
        raise Corrupt("deflated data does not end where its member ends", path=source.path)


def _bunzipped(source: Source, file: FileIO, member: Member) -> Iterator[bytes]:
    """Return the content of a bzip2 member, in pieces."""
    from bz2 import BZ2Decompressor

    decoder = BZ2Decompressor()
    return _decoded(source, _raw(file, member.compressed), decoder, member.size)


def _unlzma(source: Source, file: FileIO, member: Member) -> Iterator[bytes]:
    """Return the content of an LZMA member in pieces (APPNOTE 5.8.8: a header, a raw stream)."""
    import lzma

    raw = _raw(file, member.compressed)
    head = next(raw, b"")
    if len(head) < LZMA_HEADER.size:
        raise Corrupt("LZMA data ends inside its header", path=source.path)
    _, length, code, dictionary = LZMA_HEADER.unpack_from(head)
    if length != 5:
        raise Corrupt("LZMA header is damaged", path=source.path, expected=5, got=length)
    room = min(dictionary, member.size)  # nothing refers further back
    if room > source.max_memory:
        raise TooLarge(
            f"LZMA member needs a dictionary of {room} bytes",
            path=source.path,
            expected=f"at most {source.max_memory} (`--max-memory`)",
        )
    rest, lc = divmod(code, 9)
    pb, lp = divmod(rest, 5)
    filters = [{"id": lzma.FILTER_LZMA1, "lc": lc, "lp": lp, "pb": pb, "dict_size": room}]
    try:
        decoder = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters)
    except (lzma.LZMAError, ValueError) as error:
        raise Corrupt(f"LZMA header is damaged ({error})", path=source.path) from error
    return _decoded(source, chain([head[LZMA_HEADER.size :]], raw), decoder, member.size)


def _decoded(source: Source, raw: Iterator[bytes], decoder: Any, size: int) -> Iterator[bytes]:
    """Yield the content that a decoder object makes of raw bytes, `MEMBER_CHUNK_BYTES` at a time.

    `size` is the number of bytes that the content should have.
    """
    total = 0
    try:
        # LZMA data need not have an end of its own: it ends with the size.
        while not decoder.eof and total <= size:
            more = next(raw, b"") if decoder.needs_input else b""
            piece = decoder.decompress(more, MEMBER_CHUNK_BYTES)
            total += len(piece)
            if piece:
                yield piece
            elif not more and decoder.needs_input:
                break
    except (OSError, ValueError, EOFError, lzma_error()) as error:
        if isinstance(error, RaconvertError):
            raise
        raise Corrupt(f"data cannot be decoded ({error})", path=source.path) from error
    if (decoder.eof and decoder.unused_data) or next(raw, b""):
        raise Corrupt("encoded data does not end where its member ends", path=source.path)


def lzma_error() -> type[Exception]:
    """Return the error class of the lzma module, which is imported only when it is needed."""
    import lzma

    return lzma.LZMAError


DECODERS: dict[int, Callable[[Source, FileIO, Member], Iterator[bytes]]] = {
    ZIP_STORED: _stored, ZIP_DEFLATED: _inflated, ZIP_BZIP2: _bunzipped, ZIP_LZMA: _unlzma,
}  # fmt: skip
