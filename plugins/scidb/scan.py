"""The offset pass over files whose records differ in width, and their blocks in memory."""

from __future__ import annotations

from collections import namedtuple
from itertools import cycle
from struct import Struct
from struct import error as struct_error

import numpy as np

from raconvert.arrays.memory import check_memory
from raconvert.errors import Corrupt

from .columns import COUNT_BYTES, Layout
from .record import Rows, numbers_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from typing import Any, NoReturn

    from raconvert.files.source import Source

    Values = np.ndarray[Any, Any]

READ_BYTES = 1 << 18  # a block of records that differ in width
_COUNT = Struct("<I")


def read_into(file: FileIO, offset: int, view: memoryview, path: str) -> None:
    """Fill the view with the bytes at `offset`. Raises `Corrupt` if the file became shorter."""
    file.seek(offset)
    done = 0
    while done < len(view):
        nbytes = file.readinto(view[done:])
        if not nbytes:
            raise Corrupt(
                "file became shorter while it was read", path=path, where=f"byte {offset + done}"
            )
        done += nbytes


def refuse_cut(source: Source, names: list[str], layout: Layout, record: int, at: int) -> NoReturn:
    """Raise `Corrupt` for the record that begins at `at` and goes beyond the end of the file."""
    begin = at

    def need(nbytes: int, what: str, name: str) -> None:
        if nbytes > source.size - at:
            raise Corrupt(
                f"file ends inside record {record} (counted from 0), in {what} of column '{name}'",
                path=source.path,
                where=f"byte {at} (the record begins at byte {begin})",
                expected=f"{nbytes} bytes",
                got=f"{source.size - at}",
                remedy="the file is cut off or damaged, or has another format than "
                f"({', '.join(map(str, layout.columns))})",
            )

    for name, column in zip(names, layout.columns, strict=True):
        if column.nullable:
            need(1, "the null prefix", name)
            at += 1
        nbytes = column.size
        if nbytes is None:
            need(COUNT_BYTES, "the count", name)
            (nbytes,) = _COUNT.unpack(source.read_at(at, COUNT_BYTES))
            at += COUNT_BYTES
        need(nbytes, "the value", name)
        at += nbytes
    raise Corrupt("file changed while it was read", path=source.path, where=f"byte {begin}")


# Some whole records of a file with variable columns: `begin` and `nbytes` in the file, `first` the
# index of the first record, `payloads` the bytes in each variable column.
Block = namedtuple("Block", "begin nbytes first count payloads")


class Scan:
    """The blocks of a file whose records differ in width, found in one pass over the counts.

    Only this pass works in Python record by record. It keeps the positions of counts (4 bytes each)
    of as many blocks as an eighth of `max_memory` holds; those of the others are looked up again
    when they are decoded. Raises `Corrupt` for a record that the file cuts off.
    """

    def __init__(self, source: Source, layout: Layout, names: list[str]) -> None:
        self.source = source
        self.layout = layout
        self.names = names
        self.blocks: list[Block] = []
        self.count = 0
        self.payloads = [0] * (len(layout.spans) - 1)
        self._positions: dict[int, Values] = {}  # by number of the block
        self._room = source.max_memory // 8
        self._pass()

    def _pass(self) -> None:
        size = self.source.size
        begin, room = 0, READ_BYTES
        with self.source.open() as file:
            while begin < size:
                data = bytearray(min(room, size - begin))
                read_into(file, begin, memoryview(data), self.source.path)
                at = counts_at(data, self.layout.spans)
                if not len(at):
                    room = self._enough_for_one(begin, data)
                    continue
                sizes = numbers_at(data, at)
                end = int(at[-1, -1]) + COUNT_BYTES + int(sizes[-1, -1]) + self.layout.spans[-1]
                payloads = [int(n) for n in sizes.sum(axis=0, dtype=np.int64)]
                self._keep(len(self.blocks), at)
                self.blocks.append(Block(begin, end, self.count, len(at), payloads))
                self.count += len(at)
                self.payloads = [a + b for a, b in zip(self.payloads, payloads, strict=True)]
                begin, room = begin + end, READ_BYTES

    def _enough_for_one(self, begin: int, data: bytearray) -> int:
        """The number of bytes to read for a record that is longer than the data read so far."""
        need = needed(data, self.layout.spans)
        left = self.source.size - begin
        if need > left or len(data) == left:
            refuse_cut(self.source, self.names, self.layout, self.count, begin)
        what = f"'{self.source.path}': record {self.count} at byte {begin}, whole in memory,"
        check_memory(4 * need, self.source.max_memory, what)  # as bytes, mask and result
        return max(need, 2 * len(data))

    def _keep(self, number: int, at: Values) -> None:
        """Keep the positions of the counts of a block, if there is room."""
        nbytes = 4 * at.size
        if nbytes <= self._room:
            self._room -= nbytes
            self._positions[number] = at.astype(np.uint32)

    def decoded(self) -> Iterator[Rows]:
        """Yield every block with its bytes; each is valid until the next one is asked for."""
        with self.source.open() as file:
            for number, block in enumerate(self.blocks):
                data = bytearray(block.nbytes)
                read_into(file, block.begin, memoryview(data), self.source.path)
                if number in self._positions:
                    at = self._positions[number].astype(np.int64)
                else:
                    at = counts_at(data, self.layout.spans)
                if not _is_whole(block, at, len(data), self.layout):
                    raise Corrupt("file changed while it was read", path=self.source.path)
                rows = Rows(self.layout, data, at, numbers_at(data, at))
                if not _is_chained(block, rows):
                    raise Corrupt("file changed while it was read", path=self.source.path)
                yield rows


def _is_whole(block: Block, at: Values, nbytes: int, layout: Layout) -> bool:
    """True if there are as many counts as the first pass saw, all of them inside the block."""
    inside = not at.size or int(at.max()) + COUNT_BYTES <= nbytes
    return at.shape == (block.count, len(layout.spans) - 1) and inside


def _is_chained(block: Block, rows: Rows) -> bool:
    """True if each record ends where the next one begins, with the counts of the first pass."""
    tail = rows.layout.spans[-1]
    ends = rows.starts(len(rows.layout.spans) - 1) + tail
    seen = [int(n) for n in rows.sizes.sum(axis=0, dtype=np.int64)]
    chained = bool((ends[:-1] == rows.starts(0)[1:]).all())
    return int(ends[-1]) == len(rows.data) and chained and seen == block.payloads


def counts_at(data: bytearray, spans: list[int]) -> Values:
    """The positions of the counts of all whole records in `data`, one row per record."""
    offsets: list[int] = []
    append, unpack = offsets.append, _COUNT.unpack_from
    tail = spans[-1]
    position = -tail
    try:
        for gap in cycle((spans[0] + tail, *spans[1:-1])):
            at = position + gap
            (size,) = unpack(data, at)
            append(at)
            position = at + COUNT_BYTES + size
    except struct_error:  # the end of the data
        pass
    width = len(spans) - 1
    whole = len(offsets) // width
    counts: Values = np.array(offsets[: whole * width], np.int64).reshape(whole, width)
    # Only the last of these records can go beyond the data.
    if whole:
        last = offsets[whole * width - 1]
        end = last + COUNT_BYTES + unpack(data, last)[0] + tail
        counts = counts[: whole - (end > len(data))]
    return counts


def needed(data: bytearray, spans: list[int]) -> int:
    """The bytes that the first record needs at least, as far as `data` shows its counts."""
    position = 0
    for span in spans[:-1]:
        position += span
        if position + COUNT_BYTES > len(data):
            return position + COUNT_BYTES
        position += COUNT_BYTES + _COUNT.unpack_from(data, position)[0]
    return position + spans[-1]
