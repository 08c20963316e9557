"""BitArray: the RA files with one bit per element that Julia writes (flag bits 1 and 2).

Source: RawArray.jl (``src/RawArray.jl``, ``rawrite(a::BitArray, …)``), which writes the field
``chunks`` of Julia's BitArray as it lies in memory.

The data is a row of 64-bit little-endian chunks. Element k, counted in memory order (fastest axis
first), is bit k mod 64 of chunk k div 64, bit 0 being the lowest; little-endian chunks make that
bit k mod 8 of byte k div 8. The header says elbyte 8 (of a chunk) and eltype 5, and `size` is 8
times the number of chunks, not of elements.

The bits of the last chunk above the last element are zero: Julia keeps them so at all times and
relies on it. They are written as zero, and a file where one is set is refused as corrupt: no
writer of BitArrays makes it, and its dimensions are probably wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raconvert.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["CHUNK_BYTES", "decode_blocks", "encode_blocks", "encoded_bytes"]

CHUNK_BITS = 64
CHUNK_BYTES = 8
SLAB_BYTES = 1 << 16  # encoded bytes at a time, 512 Ki elements


def encoded_bytes(count: int) -> int:
    """Return the number of bytes of the chunks of `count` elements: the `size` of the header."""
    return -(-count // CHUNK_BITS) * CHUNK_BYTES


def decode_blocks(
    read: Callable[[int], bytes],
    count: int,
    *,
    path: object,
    offset: int,
    max_bytes: int,
) -> Iterator[np.ndarray]:
    """Yield the `count` elements as 1-D bool blocks of at most `max_bytes` (at least 64 elements).

    `read(n)` returns up to `n` further bytes, and ``b""`` only at the end of the file; exactly
    `encoded_bytes(count)` bytes are asked for. `offset`, where the first chunk lies in the file
    `path`, is for messages. Raises `Corrupt` when the file ends early or a bit above the last
    element is set.
    """
    slab_bytes = min(SLAB_BYTES, max(1, max_bytes // CHUNK_BITS) * CHUNK_BYTES)
    size = encoded_bytes(count)
    for start in range(0, size, slab_bytes):
        wanted = min(slab_bytes, size - start)
        chunks = _read_exactly(read, wanted)
        if len(chunks) < wanted:
            raise Corrupt(
                "the BitArray data ends early",
                path=path,
                where=f"byte {offset + start + len(chunks)}",
                expected=f"{size} bytes for {count} elements",
                got=f"{start + len(chunks)} bytes",
                remedy="the file is cut off; get a complete copy",
            )
        elements = np.unpackbits(np.frombuffer(chunks, np.uint8), bitorder="little")
        unused = elements[count - 8 * start :]
        if unused.any():
            first = count + int(unused.argmax())
            raise Corrupt(
                "a bit above the last element of the BitArray is set",
                path=path,
                where=f"bit {first % 8} of byte {offset + first // 8}",
                expected=f"zero bits after {count} elements",
                got=f"{int(unused.sum())} bits set",
                remedy="the data is damaged, or the header gives the wrong dimensions",
            )
        yield elements[: count - 8 * start].view(np.bool_)


def _read_exactly(read: Callable[[int], bytes], wanted: int) -> bytearray:
    """Return `wanted` bytes, or fewer where the file ends."""
    data = bytearray()
    while len(data) < wanted:
        piece = read(wanted - len(data))
        if not piece:
            break
        data += piece
    return data


def encode_blocks(blocks: Iterable[np.ndarray]) -> Iterator[bytes]:
    """Yield the chunks of bool blocks of any sizes, which follow each other without gaps.

    A block of several dimensions is taken in C order.
    """
    rest = np.empty(0, np.bool_)  # fewer than 64 elements, which do not fill a chunk yet
    for block in blocks:
        flat = block.reshape(-1)
        for first in range(0, flat.size, 8 * SLAB_BYTES):
            part = flat[first : first + 8 * SLAB_BYTES]
            elements = np.concatenate((rest, part)) if rest.size else part
            whole = elements.size - elements.size % CHUNK_BITS
            rest = elements[whole:].copy()
            if whole:
                yield np.packbits(elements[:whole], bitorder="little").tobytes()
    if rest.size:
        yield np.packbits(rest, bitorder="little").tobytes().ljust(CHUNK_BYTES, b"\0")
