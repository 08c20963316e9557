"""The elements of one member of an NPZ file."""

from __future__ import annotations

from contextlib import closing

import numpy as np

from raconvert.arrays.lazy import Decoded
from raconvert.errors import Corrupt
from raconvert.files import zips
from raconvert.plugin import Source, dtype_of

from ..npy.header import Header
from .tables import in_member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["MemberValues"]


class MemberValues(Decoded):
    """Array source over one member: decoded front to back, its CRC-32 checked at the end."""

    def __init__(self, source: Source, member: zips.Member, header: Header) -> None:
        super().__init__(
            header.dims[::-1],
            dtype_of(header.element),
            what=f"'{source.path}': member {member.filename!r}",
            max_memory=source.max_memory,
        )
        self._source = source
        self._member = member
        self._offset = header.offset

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
