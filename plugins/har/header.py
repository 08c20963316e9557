"""The layout of every kind of record, declared once for reading and writing.

All records but the name of a header begin with four blanks, which have no row here. Numbers are
int32 in the byte order of the file. A counter counts the records of a header (or list) down to 1
at the last one.
"""

from __future__ import annotations

from collections import namedtuple
from operator import itemgetter
from struct import Struct

from .tables import LONG_CHARS, MAX_RANK, SIZES, WORD_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

BLANKS = b"    "
MOST_BYTES = 512  # bytes; the fields of every record are shorter
INT = 0  # width that stands for an integer; for texts it is the number of characters

# `times`: the number of values, or a function of the fields before that returns it. A row of one
# value is that value, any other row is a list.
Row = namedtuple("Row", "name width times", defaults=(1,))


class Layout:
    """One kind of record: its rows, each of which begins where the one before ends."""

    def __init__(self, *rows: Row) -> None:
        self.fields: Any = namedtuple("Fields", [row.name for row in rows])  # type: ignore[misc]
        self._stages = _stages(rows)
        # Rows of one number each need no grouping: nearly all records.
        self._bare = all(row.width == INT and row.times == 1 for row in rows)
        self._first = {
            order: self._stages[0].struct(order, self._stages[0].counts) for order in "<>"
        }
        #: True if some rows are not always there.
        self.grows = any(callable(row.times) for row in rows)
        #: The bytes of the rows that are always there, blanks included.
        self.nbytes = len(BLANKS) + sum(
            (row.width or 4) * row.times for row in rows if isinstance(row.times, int)
        )

    @property
    def code(self) -> str:
        """The rows that are always there in the notation of `struct`, blanks included."""
        return f"{len(BLANKS)}s{self._stages[0].code}"

    def unpack(self, order: str, payload: bytes) -> tuple[Any, int]:
        """The fields of a record, and where they end in its payload; texts keep their blanks.

        Raises `struct.error` for a payload that is too short.
        """
        offset = len(BLANKS)
        if self._bare:
            layout = self._first[order]
            return self.fields._make(layout.unpack_from(payload, offset)), self.nbytes
        values: list[Any] = []
        for stage in self._stages:
            counts = stage.counts or stage.counted(values)
            layout = stage.struct(order, counts)
            values += stage.grouped(layout.unpack_from(payload, offset), counts)
            offset += layout.size
        return self.fields._make(values), offset

    def pack(self, order: str, *values: Any) -> bytes:
        """The payload of a record from one value for each row."""
        if self._bare:
            return BLANKS + self._first[order].pack(*values)
        payload = BLANKS
        start = 0
        for stage in self._stages:
            given = values[start : start + len(stage.rows)]
            start += len(given)
            flat: list[Any] = []
            for row, value in zip(stage.rows, given, strict=True):
                group = [value] if row.times == 1 else value
                flat += [_padded(word, row.width) for word in group] if row.width else group
            payload += stage.struct(order, stage.lengths(given)).pack(*flat)
        return payload


class _Stage:
    """Rows whose numbers of values are known once the stages before have been read."""

    def __init__(self, rows: list[Row], before: list[Row]) -> None:
        self.rows = rows
        fixed = [row.times for row in rows if isinstance(row.times, int)]
        self.counts = tuple(fixed) if len(fixed) == len(rows) else ()
        self.code = _code(rows, self.counts) if self.counts else ""
        self._before: Any = namedtuple("Before", [row.name for row in before])  # type: ignore[misc]
        self._times = [row.times for row in rows]
        self._texts = [n for n, row in enumerate(rows) if row.width]
        self._structs: dict[str, dict[tuple[int, ...], Struct]] = {"<": {}, ">": {}}
        self._groups: dict[tuple[int, ...], itemgetter[Any]] = {}

    def counted(self, values: list[Any]) -> tuple[int, ...]:
        """The number of values of each row, from the values of all stages before."""
        before = self._before._make(values)
        return tuple([1 if times == 1 else times(before) for times in self._times])

    def lengths(self, given: Sequence[Any]) -> tuple[int, ...]:
        """The number of values of each row in `given`, which is to be packed."""
        pairs = zip(self.rows, given, strict=True)
        return self.counts or tuple(1 if row.times == 1 else len(group) for row, group in pairs)

    def struct(self, order: str, counts: tuple[int, ...]) -> Struct:
        """The struct of `counts` values of each row, one after the other; cached."""
        cached = self._structs[order]
        codec = cached.get(counts)
        if codec is None:
            codec = cached[counts] = Struct(order + _code(self.rows, counts))
        return codec

    def grouped(self, flat: tuple[Any, ...], counts: tuple[int, ...]) -> list[Any]:
        """Group single values into one for each row; bytes become text."""
        group = self._groups.get(counts)
        if group is None:
            group = self._groups[counts] = itemgetter(*self._indices(counts), slice(0))
        values = list(group(flat))
        values.pop()
        for n in self._texts:
            value = values[n]
            if type(value) is bytes:
                values[n] = value.decode("latin-1")
            else:
                values[n] = [word.decode("latin-1") for word in value]
        return values

    def _indices(self, counts: tuple[int, ...]) -> list[int | slice]:
        """The index, or the slice, of each row's values in the flat tuple of values."""
        indices: list[int | slice] = []
        start = 0
        for row, count in zip(self.rows, counts, strict=True):
            indices.append(start if row.times == 1 else slice(start, start + count))
            start += count
        return indices


def _padded(word: str, width: int) -> bytes:
    return word.encode("latin-1").ljust(width)


def _stages(rows: Sequence[Row]) -> list[_Stage]:
    """Group rows into stages: the values of the stages before give the counts of the next one."""
    cuts = [0]
    for n, row in enumerate(rows):
        if n and callable(row.times) and not callable(rows[n - 1].times):
            cuts.append(n)
    ends = [*cuts[1:], len(rows)]
    return [_Stage(list(rows[a:b]), list(rows[:a])) for a, b in zip(cuts, ends, strict=True)]


def _code(rows: Sequence[Row], counts: Sequence[int]) -> str:
    return "".join(
        f"{row.width}s" * count if row.width else f"{count}i"
        for row, count in zip(rows, counts, strict=True)
    )


def _sizes(fields: Any) -> int:
    """The number of sizes that follow: that of the type; 0 if the record has another count."""
    return int(fields.count) if fields.count == SIZES.get(fields.type) else 0


def _sets(fields: Any) -> int:
    """The number of dimensions with name and status: all, or 0 if `second` is not set."""
    return int(fields.rank) if fields.second and fields.rank in range(MAX_RANK + 1) else 0


def _elements(fields: Any) -> int:
    return int(fields.extra) if fields.extra in range(MAX_RANK + 1) else 0


# What follows the name of a header. Sizes: 1C count, width; 2I 2R rows, columns; RE RL always
# seven, the unused ones 1. Storage is FULL or SPSE.
SECOND = Layout(
    Row("type", 2),
    Row("storage", 4),
    Row("long", LONG_CHARS),
    Row("count", INT),
    Row("sizes", INT, _sizes),
)

# RE only: names of sets, one letter of status for each (k: a label list follows; u: unlabelled;
# e: one explicit element), numbers that are always 0, and the names of the explicit elements.
LABELS = Layout(
    Row("lists", INT),
    Row("first", INT),  # a logical, as `second`
    Row("rank", INT),
    Row("coefficient", WORD_CHARS),
    Row("second", INT),
    Row("names", WORD_CHARS, _sets),
    Row("status", 1, _sets),
    Row("numbers", INT, _sets),
    Row("extra", INT),
    Row("elements", WORD_CHARS, _elements),
)

# 1C and label lists; `here` strings follow.
STRINGS = Layout(Row("counter", INT), Row("total", INT), Row("here", INT))

# 2I and 2R: first and last row, first and last column of this part; its values follow, in Fortran
# order.
MATRIX = Layout(Row("counter", INT), Row("sizes", INT, 2), Row("box", INT, 4))

# RE and RL, full: the dimensions once; then for each part its position, seven pairs of first and
# last, and a record of its values in Fortran order.
DIMENSIONS = Layout(Row("counter", INT), Row("rank", INT), Row("sizes", INT, MAX_RANK))
POSITION = Layout(Row("counter", INT), Row("box", INT, 2 * MAX_RANK))
DATA = Layout(Row("counter", INT))

# RE and RL, sparse: nonzero values in all and the bytes of a position and of a value; then parts,
# in which `here` positions (from 1, in Fortran order over all dimensions, increasing) and as many
# values follow.
SPARSE_START = Layout(
    Row("total", INT),
    Row("position_bytes", INT),
    Row("value_bytes", INT),
    Row("comment", 80),
)
SPARSE_PART = Layout(Row("counter", INT), Row("total", INT), Row("here", INT))
