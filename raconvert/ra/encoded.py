"""The elements of an RA file with an encoded data segment, decoded front to back."""

from __future__ import annotations

from math import prod

import numpy as np

from raconvert.arrays.dtypes import dtype_of, little
from raconvert.arrays.memory import check_memory
from raconvert.arrays.sources import Decoded
from raconvert.errors import TooLarge
from raconvert.files.copy import swap_in_place
from raconvert.files.inflate import note_once
from raconvert.plugin import trailing_note
from raconvert.ra.header import BITARRAY, LEB128, LZ4, data_offset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from typing import Any

    from raconvert.arrays.dtypes import Element
    from raconvert.files.source import Source
    from raconvert.ra.header import Header

    Values = np.ndarray[Any, Any]


class Encoded(Decoded):
    """Elements in a data segment that has to be decoded; a subclass for each encoding.

    `element`, `dims` and `swap` are those of `raconvert.ra.header.carrier`; `notes` are those of
    the bundle, and may grow while data is decoded.
    """

    decoding_bytes = 0  # memory that decoding takes at once, beside the pieces that it yields

    def __init__(
        self, source: Source, header: Header, element: Element, dims: tuple[int, ...], swap: int,
        notes: list[str],
    ) -> None:  # fmt: skip
        super().__init__(
            dims[::-1],
            dtype_of(little(element)),
            what=f"'{source.path}': decoding it",
            max_memory=source.max_memory,
        )
        self._source = source
        self._header = header
        self._element = element
        self._swap = swap
        self._notes = notes

    def load(self) -> Values:
        """Decode all elements into memory of their own."""
        need = self.nbytes + self.decoding_bytes
        check_memory(need, self.max_memory, f"{self.what} whole in memory")
        return super().load()

    @property
    def _offset(self) -> int:
        """The offset of the data segment in the file."""
        return data_offset(len(self._header.dims))

    def _open(self) -> FileIO:
        """Open the file at the begin of the data segment."""
        file = self._source.open()
        file.seek(self._offset)
        return file


class Lz4(Encoded):
    """One LZ4 block, which is decoded whole."""

    def __init__(
        self, source: Source, header: Header, element: Element, dims: tuple[int, ...], swap: int,
        notes: list[str],
    ) -> None:  # fmt: skip
        from raconvert.ra import lz4

        super().__init__(source, header, element, dims, swap, notes)
        self._plain_bytes = prod(header.dims) * header.elbyte
        self.decoding_bytes: int = lz4.memory_to_decode(header.size, self._plain_bytes)

    def stream(self, max_bytes: int) -> Iterator[Values]:  # noqa: ARG002 - it comes whole
        """Yield all elements as one piece."""
        from raconvert.ra import lz4

        need = self.decoding_bytes
        if need > self.max_memory:
            raise TooLarge(
                f"an LZ4 block must be decoded whole, which needs {need} bytes",
                path=self._source.path,
                expected=f"at most {self.max_memory} (`--max-memory`)",
                remedy=f"allow it with `--max-memory {-(-need // (1 << 20))}M`",
            )
        path, offset = self._source.path, self._offset
        block = self._source.read_exact(offset, self._header.size, "the LZ4 block")
        decoded = lz4.decode(block, self._plain_bytes, path=path, offset=offset)
        if self._swap > 1:
            swap_in_place(memoryview(decoded), self._swap)
        yield np.frombuffer(decoded, self.dtype)


class Leb128(Encoded):
    """Whole numbers of variable length."""

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield little-endian pieces in stored order; a note counts the bytes that follow them."""
        from raconvert.ra import leb128

        with self._open() as file:
            decoded = leb128.decode_blocks(
                file.read,
                prod(self._header.dims),
                self._element.kind,
                self._element.nbytes,
                path=self._source.path,
                offset=self._offset,
                max_bytes=max_bytes,
            )
            yield from decoded
        trailing = self._source.size - self._offset - decoded.consumed
        if trailing > 0:  # only the decoder knows where they begin
            note_once(self._notes, trailing_note(trailing))


class Bits(Encoded):
    """Bools of one bit."""

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces of bools in stored order."""
        from raconvert.ra import bits

        with self._open() as file:
            yield from bits.decode_blocks(
                file.read,
                prod(self._header.dims),
                path=self._source.path,
                offset=self._offset,
                max_bytes=max_bytes,
            )


BY_ENCODING: dict[str, type[Encoded]] = {LZ4: Lz4, LEB128: Leb128, BITARRAY: Bits}
