"""Records of SciDB binary files: where every column is, and the offset pass over variable ones.

A record is a row of spans of fixed width with the bytes of a variable column after each span but
the last; a record without variable columns is one span. The count of a variable column is the end
of its span, not part of it. All places are relative to the start of their span.
"""

from __future__ import annotations

from collections import namedtuple
from itertools import cycle
from struct import Struct
from struct import error as struct_error

import numpy as np

from raconvert.arrays.blocks import check_memory
from raconvert.errors import Corrupt
from raconvert.files.source import Source

from .types import COUNT_BYTES, Column

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from typing import Any, NoReturn

    Values = np.ndarray[Any, Any]

READ_BYTES = 1 << 18  # a block of records that differ in width
_COUNT = Struct("<I")

# Where one column is: its span, the prefix byte in it (-1: none), and the value or its count.
Place = namedtuple("Place", "span prefix value")


class Layout(namedtuple("Layout", "columns places spans")):
    """The places of the columns, and the widths of the spans without counts."""

    __slots__ = ()

    @property
    def width(self) -> int | None:
        """The bytes of a record; None if that differs from record to record."""
        return self.spans[0] if len(self.spans) == 1 else None


def layout_of(columns: list[Column]) -> Layout:
    """Return the layout of records with these columns."""
    places, spans = [], [0]
    for column in columns:
        prefix = spans[-1] if column.nullable else -1
        spans[-1] += column.nullable
        places.append(Place(len(spans) - 1, prefix, spans[-1]))
        if column.size is None:
            spans.append(0)
        else:
            spans[-1] += column.size
    return Layout(columns, places, spans)


def numpy_type(column: Column) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return the dtype of one element of a fixed column, and the shape of a value."""
    from raconvert.arrays.dtypes import dtype_of

    return dtype_of(column.element), (column.items,) if column.items > 1 else ()


def read_into(file: FileIO, offset: int, view: memoryview, path: str) -> None:
    """Fill the view with the bytes at `offset`; `Corrupt` if the file became shorter."""
    file.seek(offset)
    done = 0
    while done < len(view):
        got = file.readinto(view[done:])
        if not got:
            raise Corrupt(
                "file became shorter while it was read", path=path, where=f"byte {offset + done}"
            )
        done += got


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

    The pass is the one place with work per record in Python; it keeps the positions of the counts
    (4 bytes each) as long as they take less than an eighth of `max_memory`, else the blocks are
    passed over again when they are decoded. Raises `Corrupt` for a record that the file cuts off.
    """

    def __init__(self, source: Source, layout: Layout, names: list[str]) -> None:
        self.source = source
        self.layout = layout
        self.names = names
        self.blocks: list[Block] = []
        self.count = 0
        self.payloads = [0] * (len(layout.spans) - 1)
        self._kept: dict[int, Values] = {}
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
        """Return how many bytes hold the record that is longer than the data read so far."""
        need = needed(data, self.layout.spans)
        left = self.source.size - begin
        if need > left or len(data) == left:
            refuse_cut(self.source, self.names, self.layout, self.count, begin)
        what = f"'{self.source.path}': record {self.count} at byte {begin}, whole in memory,"
        check_memory(4 * need, self.source.max_memory, what)  # as bytes, mask and result
        return max(need, 2 * len(data))

    def _keep(self, number: int, at: Values) -> None:
        nbytes = 4 * at.size
        if nbytes <= self._room:
            self._room -= nbytes
            self._kept[number] = at.astype(np.uint32)

    def decoded(self) -> Iterator[Decoded]:
        """Yield every block with its bytes; each is valid until the next one is asked for."""
        with self.source.open() as file:
            for number, block in enumerate(self.blocks):
                data = bytearray(block.nbytes)
                read_into(file, block.begin, memoryview(data), self.source.path)
                kept = self._kept.get(number)
                at = counts_at(data, self.layout.spans) if kept is None else kept.astype(np.int64)
                found = Decoded(data, at, self.layout, block)
                if not found.is_whole():
                    raise Corrupt("file changed while it was read", path=self.source.path)
                yield found


def counts_at(data: bytearray, spans: list[int]) -> Values:
    """Return the positions of the counts of all whole records in `data`, one row per record."""
    found: list[int] = []
    append, unpack = found.append, _COUNT.unpack_from
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
    whole = len(found) // width
    counts: Values = np.array(found[: whole * width], np.int64).reshape(whole, width)
    # Only the last of these records can go beyond the data.
    if whole:
        last = found[whole * width - 1]
        end = last + COUNT_BYTES + unpack(data, last)[0] + tail
        counts = counts[: whole - (end > len(data))]
    return counts


def needed(data: bytearray, spans: list[int]) -> int:
    """Return how many bytes the first record needs at least, as far as `data` shows its counts."""
    position = 0
    for span in spans[:-1]:
        position += span
        if position + COUNT_BYTES > len(data):
            return position + COUNT_BYTES
        position += COUNT_BYTES + _COUNT.unpack_from(data, position)[0]
    return position + spans[-1]


def everywhere(data: Any, dtype: np.dtype[Any], writeable: bool = False) -> Values:
    """Return the data as overlapping elements of `dtype`, one beginning at every byte."""
    count = max(0, len(data) - dtype.itemsize + 1)
    view = np.ndarray((count,), dtype, data, 0, (1,))
    view.flags.writeable = writeable
    return view


_UINT32 = np.dtype("<u4")


def numbers_at(data: bytearray, at: Values) -> Values:
    """Return the 32-bit numbers at these positions."""
    values: Values = everywhere(data, _UINT32)[at].astype(np.int64)
    return values


class Decoded:
    """Whole records with variable columns in memory: columns of them as arrays."""

    def __init__(self, data: bytearray, at: Values, layout: Layout, block: Block) -> None:
        self._data = data
        self._at = at
        self._layout = layout
        self._block = block
        self._sizes = numbers_at(data, at) if self._fits(at) else None

    def _fits(self, at: Values) -> bool:
        inside = not at.size or int(at.max()) + COUNT_BYTES <= len(self._data)
        return at.shape == (self._block.count, len(self._layout.spans) - 1) and inside

    def is_whole(self) -> bool:
        """Tell whether the records are still those that the first pass has seen."""
        if self._sizes is None:
            return False
        starts = self._starts(len(self._layout.spans) - 1)
        ends = self._starts(0)[1:]
        seen = [int(n) for n in self._sizes.sum(axis=0, dtype=np.int64)]
        last = int(starts[-1]) + self._layout.spans[-1] == len(self._data)
        chained = bool((starts[:-1] + self._layout.spans[-1] == ends).all())
        return last and chained and seen == self._block.payloads

    def _starts(self, span: int) -> Values:
        """Return where this span begins in every record."""
        if span == 0:
            starts: Values = self._at[:, 0] - self._layout.spans[0]
        else:
            starts = self._at[:, span - 1] + COUNT_BYTES + self.sizes(span - 1)
        return starts

    def sizes(self, variable: int) -> Values:
        """Return the counts of a variable column."""
        if self._sizes is None:
            raise AssertionError("is_whole was not asked")
        sizes: Values = self._sizes[:, variable]
        return sizes

    def prefixes(self, place: Place) -> Values:
        """Return the null prefixes of a column."""
        data = np.frombuffer(self._data, np.uint8)
        return data[self._starts(place.span) + place.prefix]

    def fixed(self, place: Place, column: Column) -> Values:
        """Return the values of a column of fixed width, flat."""
        dtype, items = numpy_type(column)
        one = np.dtype((np.void, dtype.itemsize * items[0])) if items else dtype
        found = everywhere(self._data, one)[self._starts(place.span) + place.value]
        return found.view(dtype)

    def payload(self, variable: int) -> Values:
        """Return the bytes of a variable column, one value after the other."""
        starts = self._at[:, variable] + COUNT_BYTES
        return np.frombuffer(self._data, np.uint8)[
            segments(starts, self.sizes(variable), len(self._data))
        ]


def segments(starts: Values, sizes: Values, total: int) -> Values:
    """Return a mask of `total` bytes that is true in the segments, which do not overlap."""
    lengths = np.empty(2 * len(starts) + 1, np.int64)
    lengths[1::2] = sizes
    lengths[0:-1:2] = starts
    lengths[2:-1:2] -= starts[:-1] + sizes[:-1]
    lengths[-1] = total - (int(starts[-1] + sizes[-1]) if len(starts) else 0)
    inside = np.zeros(len(lengths), bool)
    inside[1::2] = True
    return np.repeat(inside, lengths)
