"""Array sources over data in one compressed stream, and the way of such data into a file.

Data is decoded front to back, in pieces of a bounded size, and never further than the array needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import DEFLATED, compressobj

from raconvert.arrays.blocks import block_bytes, blocks
from raconvert.arrays.parts import DecodedParts
from raconvert.arrays.prefetch import ahead
from raconvert.files import inflate
from raconvert.files.compressed import MEMBERS, decompressed
from raconvert.files.copy import write_all
from raconvert.files.places import write_failed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.files.compressed import Part
    from raconvert.files.target import Target

AHEAD_BYTES = 8 << 20  # data below this is decompressed without a thread
AHEAD_CHUNKS = 8
LEVEL = 6  # of zlib: its default


class Inflated(DecodedParts):
    """Array source: the elements of `array` in a stream encoded by gzip, bzip2 or zlib.

    `part` says where; numbers of `swap` bytes are reversed. `notes` takes what is found behind.
    """

    def __init__(
        self, array: Array, part: Part, swap: int, *, encoding: str, notes: list[str]
    ) -> None:
        super().__init__(
            array, [part], part.source.path, swap, encoding=encoding,
            decode=lambda file, part: inflated(file, part, encoding, notes),
        )  # fmt: skip


def inflated(file: Any, part: Part, encoding: str, notes: list[str]) -> Iterator[Any]:
    """The bytes of a part of a stream encoded by gzip, bzip2 or zlib, in pieces of any size."""
    chunks = decompressed(file, MEMBERS[encoding], part, notes)
    return ahead(chunks, AHEAD_CHUNKS) if part.nbytes >= AHEAD_BYTES else chunks


def write_deflated(
    target: Target, header: bytes, array: Array, wrapping: int = inflate.GZIP, level: int = LEVEL
) -> None:
    """Write `header` and the elements, as `write_raw` does, in one gzip member or zlib stream.

    Equal arrays give equal files: a member has neither time nor name. Raises what `write_raw` does.
    """
    made = compressobj(level, DEFLATED, wrapping)
    file = target.open()
    try:
        write_all(file, [made.compress(header)])
        for block in target.counted(blocks(array, block_bytes(target.max_memory))):
            write_all(file, [made.compress(block.reshape(-1).view("u1").data)])
        write_all(file, [made.flush()])
    except OSError as error:
        raise write_failed(target.path, error) from error
