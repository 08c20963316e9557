"""Compressed streams in files, piece by piece: gzip and bzip2 members, zlib streams.

Each gives exactly the bytes that an array needs, or raises `Corrupt`; what follows is counted up to
`Limits.surplus` and named in a note, so that a damaged end is found and a decompression bomb is
not followed. Every checksum that the array touches is checked, and that of the last member too.
"""

from __future__ import annotations

import zlib
from bz2 import BZ2Decompressor
from itertools import chain
from os import SEEK_END

from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsafe
from raconvert.files import inflate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from typing import Any

    from raconvert.files.source import Source

__all__ = [
    "BZIP2", "CHUNK_BYTES", "GZIP", "MEMBERS", "READ_BYTES", "ZLIB", "Part", "decompressed",
    "left_in", "length_mod_32", "note_once", "start_of", "too_short",
]  # fmt: skip

GZIP, BZIP2, ZLIB = "gzip", "bzip2", "zlib"
CHUNK_BYTES = 1 << 19  # of decoded data: large enough for two threads, small enough for caches
READ_BYTES = 1 << 17  # what a decompressor does not take at once, it copies


class Part(Record):
    """What one file contributes to an array: `nbytes`, which begin at `offset` as it lies there.

    `skip` bytes of what is decoded come first (negative: count from the end).
    """

    source: Source
    offset: int
    nbytes: int
    skip: int


def decompressed(
    file: Any, members: Callable[..., Iterator[bytes]], part: Part, notes: list[str]
) -> Generator[Any, None, None]:
    """Yield the bytes of a compressed part: skip, exactly the array's, and a checked end."""
    skip = part.skip
    if skip < 0:
        # They are the last bytes of the stream; where they begin only its end tells.
        behind = -skip - 1
        total = sum(_limited(members(file, []), part, part.nbytes + behind))
        skip = total - part.nbytes - behind
        if skip < 0:
            raise too_short(part.nbytes + behind, total)
        file.seek(part.offset)
    chunks = members(file, notes)
    for chunk in chunks:
        if len(chunk) > skip:
            yield from _first(memoryview(chunk)[skip:], chunks, part, notes)
            return
        skip -= len(chunk)
    raise too_short(part.nbytes + part.skip, part.skip - skip)


def _first(
    chunk: memoryview, chunks: Iterator[bytes], part: Part, notes: list[str]
) -> Iterator[Any]:
    """Yield the first bytes of what is left of the stream, and look at its end."""
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
    """Yield the lengths of chunks; `Unsafe` once there are many more bytes than are wanted."""
    total, most = extra, part.source.limits.surplus
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
    """The error for a stream that holds fewer bytes than its array needs."""
    return Corrupt(
        "data is cut off: its encoded bytes hold too few",
        expected=f"{expected} bytes",
        got=f"{got} ({expected - got} missing)",
    )


def _gzip_members(file: Any, notes: list[str]) -> Iterator[bytes]:
    """Yield what all gzip members hold that follow each other in the file."""
    data = b""
    while True:
        compressed = chain((data,), iter(lambda: file.read(READ_BYTES) or b"", b""))
        member = inflate.Inflater(compressed, inflate.GZIP, "")
        try:
            yield from member.pieces(CHUNK_BYTES)
        except Corrupt as error:
            error.what, error.where = f"gzip: {error.what}", _place(file)
            raise
        data = _next_member(file, member.behind, b"\x1f\x8b", notes)
        if not data:
            return


def _zlib_stream(file: Any, notes: list[str]) -> Iterator[bytes]:
    """Yield what the zlib stream holds that begins here."""
    compressed = iter(lambda: file.read(READ_BYTES) or b"", b"")
    stream = inflate.Inflater(compressed, inflate.ZLIB, "")
    try:
        yield from stream.pieces(CHUNK_BYTES)
    except Corrupt as error:
        error.what, error.where = f"zlib: {error.what}", _place(file)
        raise
    _next_member(file, stream.behind, b"", notes)


def _bzip2_members(file: Any, notes: list[str]) -> Iterator[bytes]:
    """Yield what all bzip2 streams hold that follow each other in the file."""
    data = file.read(READ_BYTES) or b""
    while True:
        decoder = BZ2Decompressor()
        while not decoder.eof:
            try:
                piece = decoder.decompress(data, CHUNK_BYTES)
            except (OSError, ValueError) as error:
                raise Corrupt(f"bzip2 data is damaged ({error})", where=_place(file)) from error
            if piece:
                yield piece
            data = b""
            if not decoder.eof and decoder.needs_input:
                data = file.read(READ_BYTES) or b""
                if not data:
                    raise Corrupt("bzip2 data is cut off", where=_place(file))
        data = _next_member(file, decoder.unused_data, b"BZh", notes)
        if not data:
            return


def _next_member(file: Any, data: bytes, start: bytes, notes: list[str]) -> bytes:
    """The bytes behind a member, if they are another one; a note where they are not."""
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
    """The number of bytes that an open file has behind what was read of it."""
    place = file.tell()
    left: int = file.seek(0, SEEK_END) - place
    file.seek(place)
    return left


def note_once(notes: list[str], note: str) -> None:
    """Add a note; data may be decoded more than once."""
    if note not in notes:
        notes.append(note)


MEMBERS: dict[str, Callable[..., Iterator[bytes]]] = {
    GZIP: _gzip_members,
    BZIP2: _bzip2_members,
    ZLIB: _zlib_stream,
}


def _place(file: Any) -> str:
    return f"byte {file.tell()}"


def start_of(source: Source, nbytes: int) -> bytes:
    """The first bytes of a gzip file, decompressed: fewer where it ends, or is damaged there.

    They are looked for in the first 64 KiB. Raises what `Source.read_at` does.
    """
    data, found = source.read_at(0, source.limits.window), b""
    while data and len(found) < nbytes:
        decoder = zlib.decompressobj(inflate.GZIP)
        try:
            found += decoder.decompress(data, nbytes - len(found))
        except zlib.error:
            break  # whoever reads the whole hears of it
        data = decoder.unused_data if decoder.eof else b""
    return found


def length_mod_32(source: Source) -> int:
    """What the end of a gzip file says of its last member: its length, modulo 2**32."""
    return int.from_bytes(source.read_at(max(0, source.size - 4), 4), "little")
