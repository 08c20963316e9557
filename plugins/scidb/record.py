"""Records of SciDB binary files: access to their columns, for reading and for writing.

A record is a row of spans of fixed width with the bytes of a variable column after each span but
the last; a record without variable columns is one span. The count of a variable column is the end
of its span, not part of it. All offsets are relative to the start of their span.
"""

from __future__ import annotations

from math import prod

import numpy as np

from raconvert.arrays.dtypes import dtype_of

from .columns import COUNT_BYTES, Column, Layout, Location

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Values = np.ndarray[Any, Any]

_COUNT = np.dtype("<u4")


def numpy_type(column: Column) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The dtype of one element of a fixed column, and the shape of a value."""
    return dtype_of(column.element), (column.items,) if column.items > 1 else ()


# Records of one width -----------------------------------------------------------------------------


class Field:
    """One field of all records: `offset` in a record of `width` bytes, and its type.

    `items` is the shape of one value, () or (2,).
    """

    def __init__(self, width: int, offset: int, dtype: np.dtype[Any], items: tuple[int, ...]):
        self.width = width
        self.offset = offset
        self.dtype = dtype
        self.items = items

    @property
    def nbytes(self) -> int:
        """The bytes of one value."""
        return self.dtype.itemsize * prod(self.items)

    def rows(self, data: Any, count: int) -> Values:
        """The field of the first `count` records in `data`, as a view."""
        strides = (self.width, self.dtype.itemsize)[: 1 + len(self.items)]
        return np.ndarray((count, *self.items), self.dtype, data, self.offset, strides)


def field_of(layout: Layout, number: int) -> Field:
    """The field of the values of a column in records of one width."""
    field = layout.locations[number]
    return Field(layout.width or 0, field.value, *numpy_type(layout.columns[number]))


def prefix_of(layout: Layout, number: int) -> Field:
    """The field of the null prefixes of a nullable column in records of one width."""
    return Field(layout.width or 0, layout.locations[number].prefix, np.dtype(np.uint8), ())


# Records of any width -----------------------------------------------------------------------------


class Rows:
    """Whole records with variable columns in memory, read or filled column by column.

    `at` are the positions of their counts, a row for each record and a column for each variable
    column; `sizes`, of the same shape, are the counts.
    """

    def __init__(self, layout: Layout, data: Any, at: Values, sizes: Values) -> None:
        self.layout = layout
        self.data = data
        self.at = at
        self.sizes = sizes
        self._bytes = np.frombuffer(data, np.uint8)
        self._starts: dict[int, Values] = {}

    @classmethod
    def empty(cls, layout: Layout, sizes: Values) -> Rows:
        """Records with room for values of these sizes; all but the counts is zero."""
        gaps = np.array(layout.spans[:-1]) + COUNT_BYTES
        ends = np.cumsum(sizes + gaps, axis=1)
        total = ends[:, -1] + layout.spans[-1]
        starts = np.cumsum(total) - total
        at = ends - sizes - COUNT_BYTES + starts[:, None]
        data = bytearray(int(total.sum()))
        everywhere(data, _COUNT, writeable=True)[at] = sizes
        return cls(layout, data, at, sizes)

    def starts(self, span: int) -> Values:
        """The offset of a span in every record, in bytes."""
        offsets = self._starts.get(span)
        if offsets is None:
            if span == 0:
                offsets = self.at[:, 0] - self.layout.spans[0]
            else:
                offsets = self.at[:, span - 1] + COUNT_BYTES + self.sizes[:, span - 1]
            self._starts[span] = offsets
        return offsets

    def prefixes(self, field: Location) -> Values:
        """The null prefixes of a column."""
        return self._bytes[self.starts(field.span) + field.prefix]

    def set_prefixes(self, field: Location, prefixes: Values) -> None:
        """Write the null prefixes of a column."""
        self._bytes[self.starts(field.span) + field.prefix] = prefixes

    def values(self, field: Location, column: Column) -> Values:
        """The values of a column of fixed width, flat."""
        chosen = everywhere(self.data, _whole(column))[self.starts(field.span) + field.value]
        return chosen.view(numpy_type(column)[0])

    def set_values(self, field: Location, column: Column, values: Values) -> None:
        """Write the values of a column of fixed width."""
        opaque = _whole(column)
        at = self.starts(field.span) + field.value
        everywhere(self.data, opaque, writeable=True)[at] = values.reshape(-1).view(opaque)

    def payload(self, variable: int) -> Values:
        """The bytes of a variable column, one value after the other."""
        return self._bytes[self._inside(variable)]

    def set_payload(self, variable: int, payload: Values) -> None:
        """Write the bytes of a variable column."""
        self._bytes[self._inside(variable)] = payload

    def _inside(self, variable: int) -> Values:
        """A mask of the bytes that belong to a variable column."""
        starts = self.at[:, variable] + COUNT_BYTES
        return segments(starts, self.sizes[:, variable], len(self._bytes))


def _whole(column: Column) -> np.dtype[Any]:
    """The dtype of a value of a column as opaque bytes, which are copied whole."""
    return np.dtype((np.void, column.size))


def everywhere(data: Any, dtype: np.dtype[Any], writeable: bool = False) -> Values:
    """The data as overlapping elements of `dtype`, one beginning at every byte."""
    count = max(0, len(data) - dtype.itemsize + 1)
    view = np.ndarray((count,), dtype, data, 0, (1,))
    view.flags.writeable = writeable
    return view


def numbers_at(data: bytearray, at: Values) -> Values:
    """The 32-bit counts at these positions."""
    values: Values = everywhere(data, _COUNT)[at].astype(np.int64)
    return values


def segments(starts: Values, sizes: Values, total: int) -> Values:
    """A mask of `total` bytes that is true in the segments, which do not overlap."""
    lengths = np.empty(2 * len(starts) + 1, np.int64)
    lengths[1::2] = sizes
    lengths[0:-1:2] = starts
    lengths[2:-1:2] -= starts[:-1] + sizes[:-1]
    lengths[-1] = total - (int(starts[-1] + sizes[-1]) if len(starts) else 0)
    inside = np.zeros(len(lengths), bool)
    inside[1::2] = True
    return np.repeat(inside, lengths)
