"""Dialect of the encoded data of an RA file, if size and type alone do not decide it.

Flag bit 1 with a `size` of elbyte times the dimensions has three meanings: Julia writes it for
LEB128 data, whatever its length, and for raw floats; the C tool for an LZ4 block that is exactly as
long as the decoded data. An LZ4 block is recognised by its structure: it must decode to exactly
that length.
"""

from __future__ import annotations

from math import prod

from raconvert.errors import Corrupt, Unsupported, worded
from raconvert.ra.header import AUTO, LEB128, LZ4, RAW, Header, data_offset, unknown_dialect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.files.source import Source

WINDOW_BYTES = 1 << 16
_MIN_MATCH = 4  # bytes of the shortest copy (LZ4 block format)
_MORE = 15  # in half a token: further bytes of the length follow
_READ_AS = {RAW: "as plain numbers (Julia)", LEB128: "as LEB128 (Julia)"}


def decide(
    source: Source, header: Header, candidates: tuple[str, ...], asked: str, notes: list[str]
) -> str:
    """Choose the encoding of the data; a note names the other candidates that fit, too.

    `asked` is the choice of the user, or `AUTO`. Raises `Unsupported` if no candidate fits.
    """
    if asked != AUTO:
        if asked not in candidates:
            raise Unsupported(
                f"RA data cannot be in encoding {asked}",
                path=source.path,
                where="byte 8 (flags)",
                expected=" or ".join(candidates),
                remedy="leave out `--in-opt encoding`",
            )
        return asked
    if len(candidates) == 1 and candidates != (LZ4,):
        return candidates[0]
    decoded = prod(header.dims) * header.elbyte
    if header.size != decoded:
        return LZ4
    others = candidates[1:]
    if is_lz4(source, data_offset(len(header.dims)), header.size, decoded):
        notes += [
            worded(
                "the data fits two encodings: it is read as an LZ4 block (C tool), and could be "
                f"read {_READ_AS[other]} with `--in-opt encoding={other}`"
            )
            for other in others
            if other == RAW or _is_leb128(source, header)
        ]
        return LZ4
    if not others:
        raise unknown_dialect(header, source.path)
    return others[0]


def is_lz4(source: Source, offset: int, size: int, nbytes: int) -> bool:
    """True if the `size` bytes at `offset` are one LZ4 block of exactly `nbytes` bytes.

    Only the structure is read, in bounded memory: nothing is decoded.
    """
    block = _Bytes(source, offset, size)
    decoded = 0  # bytes that the sequences so far become
    while True:
        token = block.byte()
        if token < 0:
            return False
        literals = block.length(token >> 4)
        block.position += literals
        decoded += literals
        if literals < 0 or block.position > size or decoded > nbytes:
            return False
        if block.position == size:  # the last sequence is literals only
            return decoded == nbytes
        distance = block.byte() | block.byte() << 8
        if not 0 < distance <= decoded:
            return False
        match = block.length(token & 15)
        decoded += match + _MIN_MATCH
        if match < 0 or decoded > nbytes:
            return False


class _Bytes:
    """A reader of the bytes of a block, one after the other."""

    def __init__(self, source: Source, offset: int, size: int) -> None:
        self.position = 0
        self._source = source
        self._offset = offset
        self._size = size
        self._window = b""
        self._begin = 0

    def byte(self) -> int:
        """Return the next byte, -1 at the end of the block."""
        index = self.position - self._begin
        if index >= len(self._window):
            self._begin, index = self.position, 0
            room = max(0, min(WINDOW_BYTES, self._size - self.position))
            self._window = self._source.read_at(self._offset + self.position, room)
            if not self._window:
                return -1
        self.position += 1
        return self._window[index]

    def length(self, half: int) -> int:
        """Return a length that begins with `half` a token; negative if the block ends within it."""
        total = half
        more = 255 if half == _MORE else 0
        while more == 255:
            more = self.byte()
            if more < 0:
                return -self._size - 1
            total += more
        return total


def _is_leb128(source: Source, header: Header) -> bool:
    """True if the data is as many LEB128 groups as there are elements, to the end of the file."""
    from raconvert.arrays.dtypes import KINDS
    from raconvert.ra import leb128

    offset = data_offset(len(header.dims))
    with source.open() as file:
        file.seek(offset)
        decoded = leb128.decode_blocks(
            file.read, prod(header.dims), KINDS[header.eltype], header.elbyte,
            path=source.path, offset=offset, max_bytes=1 << 20,
        )  # fmt: skip
        try:
            for _ in decoded:
                pass
        except Corrupt:
            return False
    return offset + decoded.consumed == source.size
