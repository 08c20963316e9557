"""Array sources over data in many files, or encoded in one or several: piece after piece.

Raw parts are read where they are asked for. Encoded ones are decoded front to back, in pieces of
`CHUNK_BYTES` whatever the size of the array, and never further than the array needs. `shape` is
slowest axis first; elements are little-endian.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.blocks import recut
from raconvert.arrays.dtypes import dtype_of, little
from raconvert.arrays.indexing import full_key
from raconvert.arrays.lazy import Decoded
from raconvert.arrays.memory import check_memory
from raconvert.arrays.pieces import runs
from raconvert.arrays.strided import range_of
from raconvert.errors import RaconvertError
from raconvert.files.compressed import CHUNK_BYTES
from raconvert.files.copy import extent_slabs
from raconvert.files.references import of_header
from raconvert.files.swap import swap_in_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.pieces import Pieces
    from raconvert.files.compressed import Part
    from raconvert.files.source import Extent

    Values = np.ndarray[Any, Any]


class RawParts:
    """Array source: raw parts in many files, of which only those are read that are asked for.

    `header` is the path of the file that names them; numbers of `swap` bytes are reversed.
    """

    def __init__(self, array: Array, parts: list[Part], header: str, swap: int) -> None:
        self.shape: tuple[int, ...] = array.dims[::-1]
        self.dtype: np.dtype[Any] = dtype_of(little(array.element))
        self._header = header
        self._max_memory = parts[0].source.max_memory
        self._extents = [part.source.extent(part.offset, part.nbytes, swap) for part in parts]

    def in_pieces(self) -> Pieces | Extent | str:
        """Where the elements lie, if the parts are of one length."""
        return runs(self.shape, self.dtype.itemsize, self._extents)

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces of at most `max_bytes`, file after file."""
        step = max(1, max_bytes // self.dtype.itemsize) * self.dtype.itemsize
        for extent in self._extents:
            for slab in self._slabs(extent, step):
                yield np.frombuffer(slab, self.dtype)

    def _slabs(self, extent: Extent, step: int) -> Iterator[memoryview]:
        try:
            yield from extent_slabs(extent, step)
        except RaconvertError as error:
            raise of_header(error, self._header) from error.__cause__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        return np.array(self[...], dtype=dtype, copy=copy)

    def __getitem__(self, key: Any) -> Any:
        first, *rest = full_key(key, len(self.shape))
        start, stop, inside = range_of(first, self.shape[0])
        return self._rows(start, stop)[(inside, *rest)]

    def _rows(self, start: int, stop: int) -> Values:
        """These indices of the slowest axis; only files that hold some of them are read."""
        row_bytes = prod(self.shape[1:]) * self.dtype.itemsize
        begin, nbytes = start * row_bytes, (stop - start) * row_bytes
        check_memory(nbytes, self._max_memory, "this part of the array")
        raw = np.empty(nbytes, np.uint8)
        place = 0
        for extent in self._extents:
            low, high = max(begin - place, 0), min(begin + nbytes - place, extent.nbytes)
            if low < high:
                piece = extent.part(low, high - low)
                done = place + low - begin
                for slab in self._slabs(piece, CHUNK_BYTES):
                    raw[done : done + len(slab)] = slab
                    done += len(slab)
            place += extent.nbytes
        return raw.view(self.dtype).reshape(stop - start, *self.shape[1:])


class DecodedParts(Decoded):
    """Array source: encoded parts, decoded one after the other.

    `header` is the path of the file that names them, `encoding` the name of what `decode` undoes:
    it takes an open file, at the place of a part, and that part, and yields its bytes in pieces of
    any size. Numbers of `swap` bytes are reversed.
    """

    def __init__(
        self, array: Array, parts: list[Part], header: str, swap: int, *, encoding: str,
        decode: Callable[[Any, Part], Iterator[Any]],
    ) -> None:  # fmt: skip
        source = parts[0].source
        super().__init__(
            array.dims[::-1],
            dtype_of(little(array.element)),
            what=f"'{source.path}': the array, encoded by {encoding},",
            max_memory=source.max_memory,
        )
        self.parts: list[Part] = parts
        self.header: str = header
        self.swap: int = swap
        self.encoding: str = encoding
        self._decode = decode

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces of at most `max_bytes`, each valid until the next one."""
        width = self.dtype.itemsize
        step = max(1, min(max_bytes, CHUNK_BYTES) // width) * width
        for part in self.parts:
            chunks = (np.frombuffer(chunk, np.uint8) for chunk in self._decoded(part))
            for piece in recut(chunks, min(step, part.nbytes), np.dtype(np.uint8)):
                yield (self._swapped(piece) if self.swap > 1 else piece).view(self.dtype)

    def _swapped(self, piece: Values) -> Values:
        own = piece if piece.flags.writeable else piece.copy()
        swap_in_place(own.data, self.swap)
        return own

    def _decoded(self, part: Part) -> Iterator[Any]:
        """Yield the bytes of a part, in pieces of any size; an error says where it is."""
        with part.source.open() as file:
            file.seek(part.offset)
            try:
                yield from self._decode(file, part)
            except RaconvertError as error:
                error.path = error.path or part.source.path
                raise of_header(error, self.header) from error.__cause__
