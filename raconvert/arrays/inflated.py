"""Array sources over data in one compressed stream, and the way of such data into a file.

Data is decoded front to back, in pieces of a bounded size, and never further than the array needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import DEFLATED, compressobj

import numpy as np

from raconvert.arrays.blocks import block_bytes, blocks, recut
from raconvert.arrays.dtypes import dtype_of, little
from raconvert.arrays.lazy import Decoded
from raconvert.arrays.prefetch import ahead
from raconvert.errors import RaconvertError
from raconvert.files import inflate
from raconvert.files.compressed import CHUNK_BYTES, MEMBERS, decompressed
from raconvert.files.copy import write_all
from raconvert.files.places import write_failed
from raconvert.files.swap import swap_in_place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.files.compressed import Part
    from raconvert.files.target import Target

    Values = np.ndarray[Any, Any]

AHEAD_BYTES = 8 << 20  # data below this is decompressed without a thread
AHEAD_CHUNKS = 8
LEVEL = 6  # of zlib: its default


class Inflated(Decoded):
    """Array source: the elements of `array` in a stream encoded by gzip, bzip2 or zlib.

    `part` says where; numbers of `swap` bytes are reversed. `notes` takes what is found behind.
    """

    def __init__(
        self, array: Array, part: Part, swap: int, *, encoding: str, notes: list[str]
    ) -> None:
        super().__init__(
            array.dims[::-1],
            dtype_of(little(array.element)),
            what=f"'{part.source.path}': the array, encoded by {encoding},",
            max_memory=part.source.max_memory,
        )
        self._part, self._swap, self._encoding, self._notes = part, swap, encoding, notes

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces of at most `max_bytes`, each valid until the next one."""
        width = self.dtype.itemsize
        step = max(1, min(max_bytes, CHUNK_BYTES) // width) * width
        chunks = (np.frombuffer(chunk, np.uint8) for chunk in self._decoded())
        for piece in recut(chunks, step, np.dtype(np.uint8)):
            if self._swap > 1:
                own = piece if piece.flags.writeable else piece.copy()
                swap_in_place(own.data, self._swap)
                yield own.view(self.dtype)
            else:
                yield piece.view(self.dtype)

    def _decoded(self) -> Iterator[Any]:
        with self._part.source.open() as file:
            file.seek(self._part.offset)
            try:
                chunks = decompressed(file, MEMBERS[self._encoding], self._part, self._notes)
                far = self._part.nbytes >= AHEAD_BYTES
                yield from ahead(chunks, AHEAD_CHUNKS) if far else chunks
            except RaconvertError as error:
                error.path = error.path or self._part.source.path
                raise


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
