"""The encodings of NRRD data: hex and zrl to bytes, and bytes back to all encodings.

Decoders take an open file and yield pieces of a bounded size. Each gives exactly the bytes that
the array needs, or raises `Corrupt`. gzip and bzip2 are read by `raconvert.files.inflate`, text
by `raconvert.arrays.numbers_in_text`.

* hex: two digits per byte, of either case, white space anywhere between them.
* zrl (Teem's ``encodingZRL.c``, the only description): bytes other than 0 stand for themselves,
  ``00 n`` for n zeros, ``00 00 lo hi`` for lo + 256 hi zeros.
"""

from __future__ import annotations

import re
from binascii import Error as HexError
from binascii import unhexlify
from bz2 import BZ2Compressor
from zlib import DEFLATED, compressobj

import numpy as np

from raconvert.arrays.numbers_in_text import TEXT_BYTES, number_dtype
from raconvert.errors import Corrupt
from raconvert.files import inflate
from raconvert.files.inflate import CHUNK_BYTES, READ_BYTES, note_once, too_short

from .tables import GZIP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

LINE_BYTES = 39  # of hexadecimal text: 78 digits, as Teem writes it


# --- reading hex and zrl --------------------------------------------------------------------------


def bounded(chunks: Iterator[Any], nbytes: int, notes: list[str]) -> Iterator[Any]:
    """Yield exactly `nbytes` bytes of the chunks; note if there are more."""
    left = nbytes
    for chunk in chunks:
        yield memoryview(chunk)[:left]
        left -= len(chunk)
        if left <= 0:
            if left < 0 or _more(chunks):
                note_once(notes, "values after the data were ignored")
            return
    raise too_short(nbytes, nbytes - left)


def _more(chunks: Iterator[Any]) -> bool:
    """True if anything follows that is not white space, whether it can be decoded or not."""
    try:
        return any(len(chunk) for chunk in chunks)
    except Corrupt:
        return True


def hexadecimal(file: Any) -> Iterator[bytes]:
    """Yield the bytes that hexadecimal text stands for."""
    odd = b""
    while data := file.read(CHUNK_BYTES):
        digits = odd + data.translate(None, b" \t\n\v\f\r")
        odd = digits[len(digits) & ~1 :]
        try:
            yield unhexlify(digits[: len(digits) & ~1])
        except HexError:
            match = re.search(rb"[^0-9A-Fa-f]", digits)
            bad = match.start() if match else 0
            yield unhexlify(digits[: bad & ~1])
            raise Corrupt(
                "text is not hexadecimal",
                where=f"one of the {len(data)} bytes before byte {file.tell()}",
                expected="digits and white space",
                got=repr(digits[bad : bad + 1]),
            ) from None
    if odd:
        raise Corrupt("hexadecimal text has an odd number of digits", where=f"byte {file.tell()}")


def zero_runs(file: Any) -> Iterator[Any]:
    """Yield the bytes that zero run lengths stand for."""
    data = b""
    while more := file.read(READ_BYTES):
        data += more
        out = bytearray()
        offset = 0
        while (zero := data.find(b"\0", offset)) >= 0:
            # 00 n, or 00 00 lo hi; a run that the piece cuts waits for the next piece
            end = zero + (2 if data[zero + 1 : zero + 2] != b"\0" else 4)
            if end > len(data):
                break
            count = data[zero + 1] or int.from_bytes(data[zero + 2 : end], "little")
            out += data[offset:zero]
            out += bytes(count)
            offset = end
            if len(out) > CHUNK_BYTES:
                yield out
                out = bytearray()
        cut = len(data) if zero < 0 else zero
        yield out + data[offset:cut]
        data = data[cut:]
    if data:
        raise Corrupt("data ends inside a run of zeros", where=f"byte {file.tell()}")


# --- writing --------------------------------------------------------------------------------------


def compressed(blocks: Iterable[np.ndarray[Any, Any]], encoding: str, level: int) -> Iterator[Any]:
    """Yield one gzip member, without time or name, or one bzip2 stream."""
    compressor: Any = BZ2Compressor(level)
    if encoding == GZIP:
        compressor = compressobj(level, DEFLATED, inflate.GZIP_WBITS)
    for block in blocks:
        yield compressor.compress(block.reshape(-1).view("u1").data)
    yield compressor.flush()


def as_hex(blocks: Iterable[np.ndarray[Any, Any]]) -> Iterator[bytes]:
    """Yield lines of hexadecimal text."""
    for block in blocks:
        raw = block.reshape(-1).view("u1").data
        for start in range(0, len(raw), CHUNK_BYTES):
            text = raw[start : start + CHUNK_BYTES].hex("\n", -LINE_BYTES)
            yield text.encode("ascii") + b"\n"


def as_text(blocks: Iterable[np.ndarray[Any, Any]], row: int) -> Iterator[bytes]:
    """Yield lines of `row` numbers each, written so that reading gives the same bits again."""
    done = 0
    for block in blocks:
        values = block.reshape(-1).view(number_dtype(block.dtype))
        for start in range(0, values.size, TEXT_BYTES // 8):
            piece = values[start : start + TEXT_BYTES // 8]
            # The shortest text of a single is not that of the double that it would become.
            words = piece if piece.dtype == "<f4" else piece.tolist()
            ends = [" "] * len(words)
            first = row - 1 - done % row
            ends[first::row] = ["\n"] * len(ends[first::row])
            both = [""] * (2 * len(words))
            both[0::2], both[1::2] = map(str, words), ends
            yield "".join(both).encode("ascii")
            done += len(words)
