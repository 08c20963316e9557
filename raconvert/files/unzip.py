"""What ZIP members are compressed by: decoders that yield pieces in bounded memory."""

from __future__ import annotations

from itertools import chain
from struct import Struct

from raconvert.errors import Corrupt, RaconvertError, TooLarge
from raconvert.files.inflate import RAW, Inflater

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import FileIO
    from typing import Any

    from raconvert.files.source import Source

    Member = Any  # of `raconvert.files.zips`

STORED, DEFLATED, BZIP2, LZMA = 0, 8, 12, 14  # PKWARE APPNOTE 4.4.5
CHUNK_BYTES = 1 << 18  # how much is decoded at once
LZMA_HEADER = Struct("<HHBI")  # version, length of what follows: lc, lp and pb in one, dictionary


def _stored(_: Source, file: FileIO, member: Member) -> Iterator[bytes]:
    return _raw(file, member.compressed)


def _raw(file: FileIO, nbytes: int) -> Iterator[bytes]:
    while nbytes:
        piece = file.read(min(CHUNK_BYTES, nbytes))
        if not piece:
            return
        nbytes -= len(piece)
        yield piece


def _inflated(source: Source, file: FileIO, member: Member) -> Iterator[bytes]:
    """Yield what a deflated member holds, in pieces of at most `CHUNK_BYTES`."""
    stored = _raw(file, member.compressed)
    inflater = Inflater(stored, RAW, source.path)
    yield from inflater.pieces(CHUNK_BYTES)
    if inflater.behind or next(stored, b""):
        raise Corrupt("deflated data does not end where its member ends", path=source.path)


def _bunzipped(source: Source, file: FileIO, member: Member) -> Iterator[bytes]:
    from bz2 import BZ2Decompressor

    decoder = BZ2Decompressor()
    return _decoded(source, _raw(file, member.compressed), decoder, member.size)


def _unlzma(source: Source, file: FileIO, member: Member) -> Iterator[bytes]:
    """Yield what an LZMA member holds (APPNOTE 5.8.8): a header of its own, then a raw stream."""
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
    """Yield what a decoder of Python's makes of the raw bytes, `CHUNK_BYTES` at a time."""
    made = 0
    try:
        # LZMA data need not have an end of its own: it ends with the size.
        while not decoder.eof and made <= size:
            more = next(raw, b"") if decoder.needs_input else b""
            piece = decoder.decompress(more, CHUNK_BYTES)
            made += len(piece)
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
    STORED: _stored, DEFLATED: _inflated, BZIP2: _bunzipped, LZMA: _unlzma,
}  # fmt: skip
