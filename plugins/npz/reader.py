"""The elements of one member of an NPZ file.

If all of them are asked for, as in every conversion, they are checked by the CRC-32 of the member.
A region of a stored member is read where it lies, and is not checked.
"""

from __future__ import annotations

from contextlib import closing, contextmanager

import numpy as np

from raconvert.arrays.dtypes import needs_swap
from raconvert.arrays.sources import InPlace, Placed
from raconvert.errors import Corrupt
from raconvert.files import zips
from raconvert.files.inflate import ZIP_STORED
from raconvert.plugin import Source, dtype_of

from ..npy.header import Header
from .tables import SUFFIX, in_member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Extent

__all__ = ["MemberValues"]


class MemberValues(InPlace):
    """Array source over one member: decoded front to back, its CRC-32 checked at the end."""

    def __init__(self, source: Source, member: zips.Member, header: Header) -> None:
        super().__init__(
            header.dims[::-1],
            dtype_of(header.element),
            what=f"'{source.path}': member {member.filename!r}",
            max_memory=source.max_memory,
        )
        self.path = source.path
        self.key = member.filename.removesuffix(SUFFIX)  # by which NumPy finds it
        self._source = source
        self._member = member
        self._offset = header.offset
        self._swap = needs_swap(header.element)

    @contextmanager
    def located(self) -> Iterator[tuple[Any, int]]:
        """Open the archive; give the file and the offset of a stored member's elements."""
        with self._source.open() as file:
            yield Placed(self.path, file), self._member.offset + self._offset

    def in_pieces(self) -> Extent | str:
        """Return the extent of the elements of a stored member; a reason if it is compressed."""
        if self._member.method != ZIP_STORED:
            return "its member of the archive is compressed"
        offset = self._member.offset + self._offset
        return self._source.extent(offset, self.nbytes, self._swap)

    @property
    def by_regions(self) -> bool:
        """True for a stored member; a compressed one is decoded whole."""
        return self._member.method == ZIP_STORED

    def part(self, key: Any) -> Any:
        """Read the region that a key picks; a compressed member is decoded whole."""
        return super().part(key) if self.by_regions else self[key]

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield one-dimensional pieces in stored order; the last one after the CRC-32 is checked.

        A piece is only valid until the next one is asked for.
        """
        nbytes = self.nbytes
        step = max(1, max_bytes // self.dtype.itemsize) * self.dtype.itemsize
        buffer = memoryview(bytearray(min(step, nbytes)))
        try:
            with closing(zips.Decoded(self._source, self._member)) as decoded:
                decoded.read_into(memoryview(bytearray(self._offset)))
                for start in range(0, nbytes, step):
                    piece = buffer[: min(step, nbytes - start)]
                    decoded.read_into(piece)
                    if start + step >= nbytes:
                        decoded.finish()
                    yield np.frombuffer(piece, self.dtype)
        except Corrupt as error:
            in_member(error, self._member)
            raise
