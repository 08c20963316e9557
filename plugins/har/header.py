"""The fields of every kind of record, said once: for unpacking what is read and for packing.

All records but the name of a header begin with four blanks, which are no row here. Numbers are
int32 in the byte order of the file. A counter counts the records of a header (or list) down to 1
at the last one.
"""

from __future__ import annotations

from collections import namedtuple
from itertools import islice
from struct import Struct

from .tables import LONG_CHARS, MAX_RANK, SIZES, WORD_CHARS, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

BLANKS = b"    "
INT = 0  # the width of numbers; that of texts is their characters

# `times`: how many there are, or a function of the fields before; one stands for itself, more are
# a list.
Row = namedtuple("Row", "name width times", defaults=(1,))


class Layout:
    """One kind of record: its rows, each of which begins where the one before ends."""

    def __init__(self, *rows: Row) -> None:
        self.fields = namedtuple("Fields", [row.name for row in rows])  # type: ignore[misc]
        self._stages = _stages(rows)
        self._structs: dict[tuple[Any, ...], Struct] = {}
        #: The bytes of the rows that are always there, blanks included.
        self.nbytes = len(BLANKS) + sum(
            (row.width or 4) * row.times for row in rows if isinstance(row.times, int)
        )

    @property
    def code(self) -> str:
        """The rows that are always there in the notation of `struct`, blanks included."""
        first = self._stages[0]
        return f"{len(BLANKS)}s{_code(first, [row.times for row in first])}"

    def unpack(self, order: str, fetch: Callable[[int, int], bytes]) -> tuple[Any, int]:
        """The fields of a record, and where they end in its payload.

        ``fetch(offset, nbytes)`` gives bytes of the payload. Texts keep their blanks.
        """
        found: list[Any] = []
        offset = len(BLANKS)
        for rows in self._stages:
            known = self._so_far(found)
            counts = [row.times if type(row.times) is int else row.times(known) for row in rows]
            layout = self._struct(order, rows, counts)
            flat = iter(layout.unpack(fetch(offset, layout.size)))
            found += [_taken(flat, row, count) for row, count in zip(rows, counts, strict=True)]
            offset += layout.size
        return self.fields._make(found), offset

    def pack(self, order: str, *values: Any) -> bytes:
        """The payload of a record from one value for each row."""
        found = BLANKS
        rest = iter(values)
        for rows in self._stages:
            given = [[next(rest)] if row.times == 1 else next(rest) for row in rows]
            flat = [
                value.encode("latin-1").ljust(row.width) if row.width else value
                for row, group in zip(rows, given, strict=True)
                for value in group
            ]
            found += self._struct(order, rows, [len(group) for group in given]).pack(*flat)
        return found

    def _so_far(self, found: list[Any]) -> Any:
        missing = len(self.fields._fields) - len(found)
        return self.fields._make([*found, *[None] * missing]) if found else None

    def _struct(self, order: str, rows: Sequence[Row], counts: Sequence[int]) -> Struct:
        key = (order, rows[0].name, *counts)
        found = self._structs.get(key)
        if found is None:
            found = self._structs[key] = Struct(order + _code(rows, counts))
        return found


def _stages(rows: Sequence[Row]) -> list[list[Row]]:
    """Cut rows so that how many there are of each is known from the stages before its own."""
    stages: list[list[Row]] = [[]]
    for row in rows:
        if callable(row.times) and stages[-1] and not callable(stages[-1][-1].times):
            stages.append([])
        stages[-1].append(row)
    return stages


def _code(rows: Sequence[Row], counts: Sequence[int]) -> str:
    return "".join(
        f"{row.width}s" * count if row.width else f"{count}i"
        for row, count in zip(rows, counts, strict=True)
    )


def _taken(flat: Any, row: Row, count: int) -> Any:
    """Take the value of a row from those of its record."""
    if row.times == 1:
        value = next(flat)
        return text(value) if row.width else value
    values = list(islice(flat, count))
    return [text(value) for value in values] if row.width else values


def _sizes(fields: Any) -> int:
    """How many sizes follow: what the type has; none where the record says otherwise."""
    return int(fields.count) if fields.count == SIZES.get(fields.type) else 0


def _sets(fields: Any) -> int:
    """How many dimensions have a name and a status: all, or none without the second logical."""
    return int(fields.rank) if fields.second and 0 <= fields.rank <= MAX_RANK else 0


def _elements(fields: Any) -> int:
    return int(fields.extra) if 0 <= fields.extra <= MAX_RANK else 0


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
