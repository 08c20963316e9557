"""A table as it is read: columns of one type each, in which values may be missing, row by row.

A format has a subclass of `Table`: it knows the columns once the file was read, and yields their
values in pieces. Everything else (`reader`) is the same for all formats.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.memory import check_memory
from raconvert.declared import Record
from raconvert.errors import RaconvertError, TooLarge, UsageError, WouldLose

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from raconvert.plugin import Axis, Source

    Values = np.ndarray[Any, Any]
    Piece = tuple[Values, Values | None]  # values of some rows, and the mask of missing ones

NAMESPACE = "table"
MASK = ".null"  # ending of the name of the mask of an array's missing values
INDEX = "dim_"  # with a number, the name of a column of the indices of an axis without a name


class Column(Record):
    """A column: `dtype` and `shape` are those of the value in each row.

    `nullable` is True if values are missing, `problem` is the error of a column that cannot be
    read. `axes` are those of the value in a row, `attributes` those of the column.
    """

    name: str
    dtype: np.dtype[Any]
    nullable: bool = False
    shape: tuple[int, ...] = ()
    problem: RaconvertError | None = None
    axes: tuple[Axis, ...] = ()
    attributes: dict[str, Any] = {}  # noqa: RUF012 - never changed

    @property
    def nbytes(self) -> int:
        """The bytes of the value of a row."""
        return self.dtype.itemsize * prod(self.shape)


class Table:
    """A table of a file: `columns`, and `rows`, the number of its rows.

    A subclass implements `pieces`. `name` is that of the table, `label` its name in messages.
    `record` is the record of its arrays (`record`), None for a file of another program. `headed` is
    False for a table whose columns have no names of their own.
    """

    headed: bool = True
    cheap: bool = False  # True if a column can be read without the others

    def __init__(self, source: Source, name: str, columns: list[Column], rows: int) -> None:
        self.source: Source = source
        self.name: str = name
        self.columns: list[Column] = columns
        self.rows: int = rows
        self.record: dict[str, Any] | None = None
        self.notes: list[str] = []
        self._cached: list[Piece] | None = None
        self._passes: int = 0

    @property
    def label(self) -> str:
        """The table in messages."""
        return f"'{self.source.path}': the table"

    def pieces(self, numbers: Sequence[int], max_bytes: int) -> Iterator[list[Piece]]:
        """Yield the values of these columns, in pieces of about `max_bytes`."""
        raise NotImplementedError

    def read(self, numbers: Sequence[int], max_bytes: int = 4 << 20) -> Iterator[list[Piece]]:
        """Yield the values of columns, piece by piece, with few passes over the file.

        If a format has to read the whole file for one column, all columns are cached if they need
        at most half of the memory. Else the file is read again, at most `Limits.table_passes`
        times; more raise `TooLarge`.
        """
        if self.cheap or self._cached is None:
            whole = self.rows * sum(column.nbytes + column.nullable for column in self.columns)
            if self.cheap or whole > self.source.max_memory // 2:
                self._count_pass()
                yield from self.pieces(numbers, max_bytes)
                return
            self._cached = self._whole()
        width = sum(self.columns[n].nbytes for n in numbers)
        step = max(1, max_bytes // max(1, width))
        for start in range(0, self.rows, step):
            part = slice(start, start + step)
            cached = [self._cached[n] for n in numbers]
            yield [(v[part], None if mask is None else mask[part]) for v, mask in cached]

    def _count_pass(self) -> None:
        """Count a pass over the file; raise `TooLarge` for too many."""
        self._passes += 1
        most = self.source.limits.table_passes
        if not self.cheap and self._passes > most:
            raise TooLarge(
                "a table that is larger than memory would be read again for each column",
                path=self.source.path, expected=f"at most {most} times",
                remedy="read all columns as records (`--in-opt layout=records`), or give it more "
                "memory (`--max-memory`)",
            )  # fmt: skip

    def _whole(self) -> list[Piece]:
        """Read all columns into memory."""
        whole: list[Piece] = [
            (
                np.empty((self.rows, *column.shape), column.dtype),
                np.zeros(self.rows, np.bool_) if column.nullable else None,
            )
            for column in self.columns
        ]
        done = 0
        for pieces in self.pieces(range(len(self.columns)), 4 << 20):
            count = len(pieces[0][0]) if pieces else 0
            for (values, mask), (piece, missing) in zip(whole, pieces, strict=True):
                values[done : done + count] = piece
                if mask is not None and missing is not None:
                    mask[done : done + count] = missing
            done += count
        return whole

    def column(self, number: int) -> Values:
        """Read all values of a column. Raises `TooLarge` if they are above the memory allowed."""
        column = self.columns[number]
        check_memory(self.rows * column.nbytes, self.source.max_memory,
                     f"{self.label}, column '{column.name[:60]}',")  # fmt: skip
        values = np.empty((self.rows, *column.shape), column.dtype)
        done = 0
        for ((piece, _),) in self.read([number]):
            values[done : done + len(piece)] = piece
            done += len(piece)
        return values


def unique_names(names: Sequence[str]) -> list[str]:
    """Return names of columns, each once: a second ``x`` is ``x_2``, an empty one ``column_N``.

    >>> unique_names(["x", "", "x", "x_2"])
    ['x', 'column_2', 'x_2', 'x_2_2']
    """
    taken: set[str] = set()
    following: dict[str, int] = {}
    unique: list[str] = []
    for position, name in enumerate(names, 1):
        base = name or f"column_{position}"
        free, number = base, following.get(base, 1)
        while free in taken:
            number += 1
            free = f"{base}_{number}"
        following[base] = number
        taken.add(free)
        unique.append(free)
    return unique


def check_columns(count: int, source: Source) -> None:
    """Raise `TooLarge` for more columns than `Limits.table_columns`."""
    most = source.limits.table_columns
    if count > most:
        raise TooLarge("a table has too many columns", path=source.path,
                       expected=f"at most {most}", got=count)  # fmt: skip


def no_column(table: Table, name: str, option: str) -> UsageError:
    """Return the error for an option that names a column which the table does not have."""
    names = [column.name for column in table.columns]
    return UsageError(
        f"{table.label} has no column '{name[:60]}'",
        got=", ".join(names[:10]) + (", …" if len(names) > 10 else ""),
        remedy=f"`--in-opt {option}=NAME,NAME` names columns",
    )


def missing_value(dtype: np.dtype[Any]) -> Any:
    """The value that stands where one is missing: NaN, NaT, 0, False or no text."""
    if dtype.kind in "fc":
        return np.array(np.nan).astype(dtype)[()]
    if dtype.kind in "mM":
        return np.array("NaT", dtype)[()]
    return np.zeros((), dtype)[()]


def incomplete(table: Table, what: str, remedy: str) -> WouldLose:
    """Return the error for a table that is not a grid of its axes."""
    return WouldLose(f"{table.label} {what}", remedy=remedy)
