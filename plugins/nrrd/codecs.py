"""The encodings of NRRD data: hex, text and zrl to bytes, and bytes back to all encodings.

Decoders take an open file and yield pieces of a bounded size. Each gives exactly the bytes that
the array needs, or raises `Corrupt`. gzip and bzip2 are read by `raconvert.files.compressed`.

* text: numbers between white space and commas; integers must fit the type, as NRRD readers differ
  in what they make of others.
* hex: two digits per byte, of either case, white space anywhere between them.
* zrl (Teem's ``encodingZRL.c``, the only description): bytes other than 0 stand for themselves,
  ``00 n`` for n zeros, ``00 00 lo hi`` for lo + 256 hi zeros.
"""

from __future__ import annotations

import re
from binascii import Error as HexError
from binascii import unhexlify
from bz2 import BZ2Compressor
from decimal import Decimal
from itertools import islice
from zlib import DEFLATED, compressobj

import numpy as np

from raconvert.errors import Corrupt
from raconvert.files import inflate
from raconvert.files.compressed import CHUNK_BYTES, READ_BYTES, left_in, note_once, too_short
from raconvert.plugin import trailing_note

from .tables import GZIP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

TEXT_BYTES = 1 << 18
MAX_WORD_BYTES = 1 << 11  # of one number; the longest exact double has 1079 characters
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
            found = re.search(rb"[^0-9A-Fa-f]", digits)
            at = found.start() if found else 0
            yield unhexlify(digits[: at & ~1])
            raise Corrupt(
                "text is not hexadecimal",
                where=f"one of the {len(data)} bytes before byte {file.tell()}",
                expected="digits and white space",
                got=repr(digits[at : at + 1]),
            ) from None
    if odd:
        raise Corrupt("hexadecimal text has an odd number of digits", where=f"byte {file.tell()}")


def zero_runs(file: Any) -> Iterator[Any]:
    """Yield the bytes that zero run lengths stand for."""
    data = b""
    while more := file.read(READ_BYTES):
        data += more
        out = bytearray()
        place = 0
        while (zero := data.find(b"\0", place)) >= 0:
            # 00 n, or 00 00 lo hi; a run that the piece cuts waits for the next piece
            end = zero + (2 if data[zero + 1 : zero + 2] != b"\0" else 4)
            if end > len(data):
                break
            count = data[zero + 1] or int.from_bytes(data[zero + 2 : end], "little")
            out += data[place:zero]
            out += bytes(count)
            place = end
            if len(out) > CHUNK_BYTES:
                yield out
                out = bytearray()
        cut = len(data) if zero < 0 else zero
        yield out + data[place:cut]
        data = data[cut:]
    if data:
        raise Corrupt("data ends inside a run of zeros", where=f"byte {file.tell()}")


# --- reading text ---------------------------------------------------------------------------------


def numbers(file: Any, nbytes: int, dtype: np.dtype[Any], notes: list[str]) -> Iterator[Any]:
    """Yield the elements, as bytes, that numbers in text stand for."""
    dtype = _number_dtype(dtype)
    left = nbytes // dtype.itemsize
    total = left
    carry = b""
    while left:
        more = file.read(TEXT_BYTES) or b""
        text = (carry + more).replace(b",", b" ")
        # The last word may go on in the next piece.
        words = text.split()
        carry = words.pop() if more and words and not text[-1:].isspace() else b""
        if len(words) + bool(carry) > left:
            rest = next(islice(re.finditer(rb"\S+", text), left, None)).start()
            note_once(notes, trailing_note(len(text) - rest + left_in(file)))
            carry = b""
            del words[left:]
        if words:
            yield _values(words, dtype, total - left).view("u1").data
        left -= len(words)
        if left and len(carry) > MAX_WORD_BYTES:
            raise _no_number(carry, total - left, dtype)
        if left and not more:
            raise Corrupt(
                "text has too few values", expected=f"{total} values", got=f"{total - left}"
            )


def _number_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of the numbers in text: parts of complex ones; 0 and 1 for bools."""
    if dtype.kind == "c":
        return np.dtype(f"<f{dtype.itemsize // 2}")
    return np.dtype("u1") if dtype.kind == "b" else dtype


def _values(words: list[bytes], dtype: np.dtype[Any], done: int) -> np.ndarray[Any, Any]:
    """The numbers that the words stand for; `done` of them came before."""
    wide = np.dtype({"i": "<i8", "u": "<u8", "f": "<f8"}[dtype.kind])
    parse = _floats if dtype.kind == "f" else _integers
    try:
        values = parse(words, wide)
    except (ValueError, OverflowError):
        at, word = next((n, w) for n, w in enumerate(words) if not _is_number(w, wide))
        raise _no_number(word, done + at, dtype) from None
    if dtype.kind == "f":
        return values if dtype.itemsize == 8 else _as_single(values, words)
    limits = np.iinfo(dtype)
    if values.min() < limits.min or values.max() > limits.max:
        at = int(np.flatnonzero((values < limits.min) | (values > limits.max))[0])
        raise _no_number(words[at], done + at, dtype)
    return values.astype(dtype)


_OF_INTEGERS = re.compile(rb"[-+0-9 ]+")
_OF_FLOATS = re.compile(rb"[-+0-9.eEnaNAifIFtTyY ]+")


def _integers(words: list[bytes], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The integers; ValueError or OverflowError if one is none, or beyond 64 bits."""
    text = b" ".join(words)
    if not _OF_INTEGERS.fullmatch(text) or len(max(words, key=len)) > MAX_WORD_BYTES:
        raise ValueError
    return np.array(list(map(int, words)), dtype)


def _floats(words: list[bytes], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The doubles; ValueError if one is none."""
    # Python's float takes "1_0" and no digit but these letters' words: nan, inf, infinity.
    if not _OF_FLOATS.fullmatch(b" ".join(words)) or len(max(words, key=len)) > MAX_WORD_BYTES:
        raise ValueError
    return np.array(list(map(float, words)), dtype)


def _is_number(word: bytes, dtype: np.dtype[Any]) -> bool:
    parse = _floats if dtype.kind == "f" else _integers
    try:
        parse([word], dtype)
    except (ValueError, OverflowError):
        return False
    return True


def _no_number(word: bytes, index: int, dtype: np.dtype[Any]) -> Corrupt:
    shown = word if len(word) <= 40 else word[:37] + b"..."
    return Corrupt(
        f"text is not a number of type {dtype.name}", where=f"value {index}", got=repr(shown)
    )


def _as_single(values: np.ndarray[Any, Any], words: list[bytes]) -> np.ndarray[Any, Any]:
    """Round doubles to the nearest single, as the text says rather than the double.

    A double that lies exactly between two singles may have been rounded to there itself.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        single = values.astype("<f4")
        other = np.nextafter(single, np.where(values > single, np.inf, -np.inf).astype("<f4"))
        between = (single.astype("f8") + other) / 2 == values
    for at in np.flatnonzero(between & (values != single)):
        exact, middle = Decimal(words[at].decode()), Decimal(float(values[at]))
        if exact != middle:
            nearest = max if exact > middle else min
            single[at] = nearest(single[at], other[at])
    return single


# --- writing --------------------------------------------------------------------------------------


def compressed(blocks: Iterable[np.ndarray[Any, Any]], encoding: str, level: int) -> Iterator[Any]:
    """Yield one gzip member, without time or name, or one bzip2 stream."""
    made: Any = BZ2Compressor(level)
    if encoding == GZIP:
        made = compressobj(level, DEFLATED, inflate.GZIP)
    for block in blocks:
        yield made.compress(block.reshape(-1).view("u1").data)
    yield made.flush()


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
        values = block.reshape(-1).view(_number_dtype(block.dtype))
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
