"""LZ4: the compressed data of RA files that the C tool's ``ra compress`` wrote.

Sources: davidssmith/ra (flag bit 1; the header's `size` is the compressed length) and the LZ4
project's ``doc/lz4_Block_format.md`` and ``lib/lz4.h``.

The data segment is one raw LZ4 block: no frame, no magic, no length in front. How many bytes it
decodes to is known from the RA header alone, elbyte times the product of the dimensions.

* A block needs its input and its output whole in memory. `memory_to_decode` and `memory_to_encode`
  say how much before anything is allocated.
* A byte of a block yields at most 255 bytes of output (a further length byte of 255), so a block
  that is to become more than that is refused without trying.
* A reader knows an LZ4 block by its length, which is not that of the decoded data (Julia's files
  with the same flag state the latter). So no block of that very length is written.
* One block holds at most 0x7E000000 bytes (``LZ4_MAX_INPUT_SIZE``), a little under 2 GiB.

The codec itself is the `lz4` package; this module is imported when the first block is met.
"""

from __future__ import annotations

from lz4.block import LZ4BlockError, compress, decompress  # type: ignore[import-untyped]

from raconvert.errors import Corrupt, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["MAX_BLOCK_BYTES", "decode", "encode", "memory_to_decode", "memory_to_encode"]

MAX_BLOCK_BYTES = 0x7E000000  # LZ4_MAX_INPUT_SIZE of lz4.h
MAX_RATIO = 255  # bytes of output per byte of a block
_DAMAGED = "the file is damaged, or its header gives the wrong dimensions or element type"


def memory_to_decode(compressed_bytes: int, nbytes: int) -> int:
    """Return the bytes of memory that `decode` takes at its peak, its input included.

    The package decodes into a buffer of its own and copies that into the result.
    """
    return compressed_bytes + 2 * nbytes


def memory_to_encode(nbytes: int) -> int:
    """Return the bytes of memory that `encode` takes at its peak, its input included.

    ``LZ4_compressBound`` is what data that cannot be compressed grows to; the package compresses
    into a buffer of that size and copies it into the result.
    """
    return nbytes + 2 * (nbytes + nbytes // 255 + 16)


def decode(compressed: Buffer, nbytes: int, *, path: object, offset: int) -> bytearray:
    """Return the `nbytes` bytes that one block decodes to.

    `offset`, where the block begins in the file `path`, is for messages. Raises `Corrupt`, before
    anything is allocated when the length alone is impossible, for a block that is damaged or
    decodes to any other length.
    """
    length = memoryview(compressed).nbytes
    where = f"byte {offset}"
    if nbytes > MAX_BLOCK_BYTES:
        raise Corrupt(
            "the LZ4 data cannot be as long as the header says",
            path=path,
            where=where,
            expected=f"at most {MAX_BLOCK_BYTES} bytes in one block",
            got=f"{nbytes} bytes",
            remedy=_DAMAGED,
        )
    if nbytes > MAX_RATIO * length:
        raise Corrupt(
            "the LZ4 block is too short for the array",
            path=path,
            where=where,
            expected=f"at least {-(-nbytes // MAX_RATIO)} bytes, which could become {nbytes}",
            got=f"{length} bytes",
            remedy=_DAMAGED,
        )
    try:
        decoded: bytearray = decompress(compressed, uncompressed_size=nbytes, return_bytearray=True)
    except (LZ4BlockError, OverflowError) as error:  # the latter: a block of 2 GiB and more
        raise Corrupt(
            "the LZ4 block is damaged or too long for the array",
            path=path,
            where=where,
            expected=f"{length} bytes that decode to {nbytes}",
            remedy=_DAMAGED,
        ) from error
    if len(decoded) != nbytes:
        raise Corrupt(
            "the LZ4 block does not fill the array",
            path=path,
            where=where,
            expected=f"{nbytes} bytes after decoding",
            got=f"{len(decoded)} bytes",
            remedy=_DAMAGED,
        )
    return decoded


def encode(data: Buffer) -> bytes:
    """Return `data` (C-contiguous) as one block, shorter or longer than `data` but never as long.

    Raises `Unsupported` above `MAX_BLOCK_BYTES`.
    """
    nbytes = memoryview(data).nbytes
    if nbytes > MAX_BLOCK_BYTES:
        raise Unsupported(
            "the array is too large for one LZ4 block, and RA has no other LZ4 form",
            expected=f"at most {MAX_BLOCK_BYTES} bytes",
            got=f"{nbytes} bytes",
            remedy="write it uncompressed",
        )
    block: bytes = compress(data, store_size=False)
    return block if len(block) != nbytes else _literals(data, nbytes)


def _literals(data: Buffer, nbytes: int) -> bytes:
    """Return the block that holds `data` as literals only, always longer than `data`.

    A token with the number of literals in its upper half; from 15 on, the excess follows as bytes
    that are added up, the last one below 255 (``lz4_Block_format.md``).
    """
    if nbytes < 15:
        return b"".join((bytes([nbytes << 4]), data))
    full, last = divmod(nbytes - 15, 255)
    return b"".join((b"\xf0", b"\xff" * full, bytes([last]), data))
