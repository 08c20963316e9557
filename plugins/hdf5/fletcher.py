"""The checksum of filter 3 (fletcher32), as the HDF5 library computes it.

Two sums modulo 65535 over 16-bit words: of the words, and of the first sum after each word. It
stands behind the chunk, little-endian; libraries before 1.6.3 wrote it with the bytes of each half
swapped, and the library takes both.
"""

from __future__ import annotations

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHECKSUM_BYTES = 4
_MODULUS = 65535
_ROW = 4096  # words; the sums over rows and columns of so many need no larger numbers


def fletcher32(raw: Any) -> int:
    """Return the checksum of bytes."""
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
    """Return a sum that is not 0 as the library's folding leaves it: 65535 in the place of 0."""
    return (total - 1) % _MODULUS + 1


def checks_out(raw: Any) -> bool:
    """True if the last four bytes are the checksum of those before them."""
    if len(raw) < CHECKSUM_BYTES:
        return False
    view = memoryview(raw).cast("B")
    told = bytes(view[-CHECKSUM_BYTES:])
    found = fletcher32(view[:-CHECKSUM_BYTES]).to_bytes(CHECKSUM_BYTES, "little")
    return told in (found, bytes((found[1], found[0], found[3], found[2])))
