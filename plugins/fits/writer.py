"""From HDUs to be to a file: headers, elements, what fills their last blocks, and sums."""

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

__all__ = ["Made", "write"]

GZ, LEVEL = ".gz", 6


class Made(Record):
    """An HDU to be: BITPIX, lengths, further cards, and an array; `columns` of a table."""

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


def write(target: Target, hdus: Sequence[Made | Extent], *, checksum: bool) -> None:
    """Write HDUs, made or copied as they lie; the first is the primary one."""
    packs = target.path.lower().endswith(GZ)
    file: Any = _Deflating(target.open()) if packs else target.open()
    try:
        for number, one in enumerate(hdus):
            if isinstance(one, Extent):
                copy_extent(b"", one, file)
                write_all(file, [bytes(-file.tell() % BLOCK)])
            else:
                _write_unit(file, one, number, target, checksum)
        if packs:
            file.finish()
    except OSError as error:
        raise write_failed(target.path, error) from error


class _Deflating:
    """A file of one gzip member, without time or name, that is written front to back."""

    def __init__(self, file: FileIO) -> None:
        import zlib

        self._file = file
        self._made = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_WBITS)
        self._at = 0

    def tell(self) -> int:
        """The number of bytes before they were compressed."""
        return self._at

    def write(self, data: Any) -> int:
        """Compress bytes and return how many they were."""
        count = memoryview(data).nbytes
        self._at += count
        write_all(self._file, [self._made.compress(data)])
        return count

    def finish(self) -> None:
        """Write what is left."""
        write_all(self._file, [self._made.flush()])


def _sum_of_data(made: Made, target: Target) -> int:
    """The sum of the data, made first for a stream, in which nobody can go back to the header."""
    total, rest = 0, b""
    for data in _pieces(made, target, counted=False):
        total, rest = added(total, rest, data)
    return added(total, rest + bytes(-len(rest) % 4), None)[0]


def _write_unit(file: Any, made: Made, number: int, target: Target, checksum: bool) -> None:
    start = file.tell()
    cards = made.header(number)
    ahead = checksum and isinstance(file, _Deflating)
    write_all(file, [_padded(cards, checksum, _sum_of_data(made, target) if ahead else None)])
    checksum = checksum and not ahead
    total, length, rest = 0, 0, b""
    for data in _pieces(made, target):
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


def _pieces(made: Made, target: Target, *, counted: bool = True) -> Iterator[Any]:
    """The bytes of the elements, as the file has them."""
    from raconvert.arrays.blocks import block_bytes, blocks
    from raconvert.arrays.reinterpret import big_endian

    array = made.array
    if array is None:
        return
    step = block_bytes(target.max_memory)
    if made.columns is None:
        kind = (array.element.kind, array.element.nbytes)
        stored = big_endian(other_sign(array, array.element) if kind in OTHERS else array)
        pieces = blocks(stored, step)
        for block in target.counted(pieces) if counted else pieces:
            yield block.reshape(-1).view("u1")
        return
    from .columns import packer

    pack = packer(made.columns)
    pieces = blocks(array, max(1, step // 2))
    for block in target.counted(pieces) if counted else pieces:
        yield pack(block)


def _padded(cards: list[str], checksum: bool, total: int | None) -> bytes:
    """The blocks of a header, with its checksums if `total`, the sum of the data, is given."""

    def made(letters: str) -> bytes:
        sums = [card("CHECKSUM", letters), card("DATASUM", f"{total or 0}")] if checksum else []
        lines = [line.ljust(CARD) for line in [*cards, *sums, "END"]]
        text = "".join(lines).encode("ascii")
        return text.ljust(-(-len(text) // BLOCK) * BLOCK)

    zero = made("0" * 16)
    if total is None or not checksum:
        return zero
    whole = added(total, zero, None)[0]
    return made(encoded(0xFFFFFFFF - whole))
