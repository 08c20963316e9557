"""Filters of chunks, in both directions: deflate, shuffle, fletcher32.

File format specification 3.0, IV.A.2.l "The Filter Pipeline Message". Fletcher32, as the library
computes it, is two sums modulo 65535 over 16-bit words: of the words, and of the first sum after
each word. It stands behind the chunk, little-endian; libraries before 1.6.3 wrote it with the bytes
of each half swapped, and the library takes both.
"""

from __future__ import annotations

import zlib

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Values = np.ndarray[Any, Any]

CHECKSUM_BYTES = 4
_MODULUS = 65535
_ROW = 4096  # words; the sums over rows and columns of so many need no larger numbers


# --- deflate: one zlib stream --------------------------------------------------------------------


def deflated(raw: Values, level: int) -> bytes:
    """The bytes as a zlib stream."""
    try:
        import deflate
    except ImportError:  # not built for this machine; zlib does the same, more slowly
        return zlib.compress(raw.data, level)
    return bytes(deflate.zlib_compress(raw.data, level))


# --- shuffle: all first bytes of the elements, then all second ones, ... --------------------------


def shuffled(raw: Values, width: int) -> Values:
    """The bytes of elements with all first bytes in front, then all second bytes, ..."""
    units = raw.reshape(-1, width)
    planes = np.empty(units.shape[::-1], np.uint8)
    for index in range(width):  # plane by plane: half the time of a transposed copy
        planes[index] = units[:, index]
    return planes.reshape(-1)


def unshuffled(raw: Any, width: int) -> Any:
    """The bytes of elements whose first bytes come first, then their second bytes, ..."""
    count = len(raw) // width
    if width == 1 or count < 2:
        return raw
    planes = np.frombuffer(raw, np.uint8, count * width).reshape(width, count)
    result = np.empty((count, width), np.uint8)
    for index in range(width):
        result[:, index] = planes[index]
    rest = bytes(raw[count * width :])
    return result.reshape(-1) if not rest else result.tobytes() + rest


# --- fletcher32 -----------------------------------------------------------------------------------


def fletcher32(raw: Any) -> int:
    """The checksum of bytes."""
    view = memoryview(raw).cast("B")
    odd = bytes(view[len(view) & ~1 :])
    words = np.frombuffer(view, "<u2", len(view) // 2)
    count = len(words) + len(odd)
    whole = len(words) // _ROW
    rows = words[: whole * _ROW].reshape(whole, _ROW)
    last = np.zeros(_ROW, "<u2")
    last[: len(words) - whole * _ROW] = words[whole * _ROW :]
    if odd:
        last[len(words) - whole * _ROW] = odd[0]
    down = rows.sum(axis=0, dtype=np.uint64) + last
    across = np.append(rows.sum(axis=1, dtype=np.uint64), last.sum(dtype=np.uint64))
    if not across.any():
        return 0
    # Word number i counts (count - i) times in the second sum; 256: the words are big-endian.
    left = (count - _ROW * np.arange(len(across), dtype=np.int64)) % _MODULUS
    before = np.arange(_ROW, dtype=np.int64)
    second = int((left * (across % _MODULUS).astype(np.int64)).sum())
    second -= int((before * (down % _MODULUS).astype(np.int64)).sum())
    first = int(across.sum())
    return _folded(256 * second) << 16 | _folded(256 * first)


def _folded(total: int) -> int:
    """A sum that is not 0 as the library's folding leaves it: 65535 in the place of 0."""
    return (total - 1) % _MODULUS + 1


def checks_out(raw: Any) -> bool:
    """True if the last four bytes are the checksum of those before them."""
    if len(raw) < CHECKSUM_BYTES:
        return False
    view = memoryview(raw).cast("B")
    stored = bytes(view[-CHECKSUM_BYTES:])
    found = fletcher32(view[:-CHECKSUM_BYTES]).to_bytes(CHECKSUM_BYTES, "little")
    return stored in (found, bytes((found[1], found[0], found[3], found[2])))
