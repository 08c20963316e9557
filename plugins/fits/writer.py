"""HDUs written to a file: headers, elements, padding of their last blocks, and sums."""

from __future__ import annotations

from raconvert.declared import Record
from raconvert.files.copy import copy_extent, write_all
from raconvert.files.inflate import GZIP_WBITS
from raconvert.files.paths import write_failed
from raconvert.plugin import Extent

from .header import card
from .images import other_sign
from .sums import added, encoded
from .tables import BLOCK, CARD, OTHERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import FileIO
    from typing import Any

    from raconvert.plugin import Array, Target

__all__ = ["NewUnit", "write"]

GZ, LEVEL = ".gz", 6


class NewUnit(Record):
    """An HDU to write: BITPIX, lengths, further cards, and an array; `columns` if it is a table."""

    bits: int
    dims: tuple[int, ...]
    cards: list[str]
    array: Array | None = None
    columns: Any = None

    def header(self, number: int) -> list[str]:
        """The cards without the sums; `number` is the index of the HDU in the file."""
        kind = "IMAGE" if self.columns is None else "BINTABLE"
        rows: list[tuple[str, Any]] = [("XTENSION", kind) if number else ("SIMPLE", True)]
        rows += [("BITPIX", self.bits), ("NAXIS", len(self.dims))]
        rows += [(f"NAXIS{n}", length) for n, length in enumerate(self.dims, 1)]
        rows += [("PCOUNT", 0), ("GCOUNT", 1)] if number else [("EXTEND", True)]
        return [*(card(*row) for row in rows), *self.cards]


def write(target: Target, hdus: Sequence[NewUnit | Extent], *, checksum: bool) -> None:
    """Write HDUs, new ones or copies; the first is the primary one."""
    packs = target.path.lower().endswith(GZ)
    file: Any = _Deflating(target.open()) if packs else target.open()
    try:
        for number, hdu in enumerate(hdus):
            if isinstance(hdu, Extent):
                copy_extent(b"", hdu, file)
                write_all(file, [bytes(-file.tell() % BLOCK)])
            else:
                _write_unit(file, hdu, number, target, checksum)
        if packs:
            file.finish()
    except OSError as error:
        raise write_failed(target.path, error) from error


class _Deflating:
    """A file of one gzip member, without time or name, that is written front to back."""

    def __init__(self, file: FileIO) -> None:
        import zlib

        self._file = file
        self._deflater = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_WBITS)
        self._at = 0

    def tell(self) -> int:
        """The number of bytes written so far, before compression."""
        return self._at

    def write(self, data: Any) -> int:
        """Compress bytes, and return their number."""
        count = memoryview(data).nbytes
        self._at += count
        write_all(self._file, [self._deflater.compress(data)])
        return count

    def finish(self) -> None:
        """Write the end of the compressed data."""
        write_all(self._file, [self._deflater.flush()])


def _sum_of_data(new: NewUnit, target: Target) -> int:
    """The sum of the data, for a stream that cannot go back to the header; reads all data once."""
    total, rest = 0, b""
    for data in _pieces(new, target, counted=False):
        total, rest = added(total, rest, data)
    return added(total, rest + bytes(-len(rest) % 4), None)[0]


def _write_unit(file: Any, new: NewUnit, number: int, target: Target, checksum: bool) -> None:
    """Write a new HDU; its sums are filled in behind its data, or computed first in a stream."""
    start = file.tell()
    cards = new.header(number)
    ahead = checksum and isinstance(file, _Deflating)
    write_all(file, [_padded(cards, checksum, _sum_of_data(new, target) if ahead else None)])
    checksum = checksum and not ahead
    total, length, rest = 0, 0, b""
    for data in _pieces(new, target):
        write_all(file, [data])
        length += data.nbytes
        if checksum:
            total, rest = added(total, rest, data)
    write_all(file, [bytes(-length % BLOCK)])
    if checksum:
        total = added(total, rest + bytes(-len(rest) % 4), None)[0]
        end = file.tell()
        file.seek(start)
        write_all(file, [_padded(cards, checksum, total)])
        file.seek(end)


def _pieces(new: NewUnit, target: Target, *, counted: bool = True) -> Iterator[Any]:
    """Yield the bytes of the elements as the file holds them."""
    from raconvert.arrays.blocks import block_bytes, blocks
    from raconvert.arrays.reinterpret import big_endian

    array = new.array
    if array is None:
        return
    step = block_bytes(target.max_memory)
    if new.columns is None:
        kind = (array.element.kind, array.element.nbytes)
        stored = big_endian(other_sign(array, array.element) if kind in OTHERS else array)
        pieces = blocks(stored, step)
        for block in target.counted(pieces) if counted else pieces:
            yield block.reshape(-1).view("u1")
        return
    from .columns import packer

    pack = packer(new.columns)
    pieces = blocks(array, max(1, step // 2))
    for block in target.counted(pieces) if counted else pieces:
        yield pack(block)


def _padded(cards: list[str], checksum: bool, total: int | None) -> bytes:
    """The blocks of a header, with its checksums if `total`, the sum of the data, is given."""

    def header(letters: str) -> bytes:
        sums = [card("CHECKSUM", letters), card("DATASUM", f"{total or 0}")] if checksum else []
        lines = [line.ljust(CARD) for line in [*cards, *sums, "END"]]
        text = "".join(lines).encode("ascii")
        return text.ljust(-(-len(text) // BLOCK) * BLOCK)

    without_sum = header("0" * 16)
    if total is None or not checksum:
        return without_sum
    whole = added(total, without_sum, None)[0]
    return header(encoded(0xFFFFFFFF - whole))
