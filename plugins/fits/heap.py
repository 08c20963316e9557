"""Columns of variable length: their cells, from the heap behind a table, as one array."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.dtypes import element_of
from raconvert.arrays.sources import Decoded
from raconvert.errors import Corrupt, TooLarge, Unsupported
from raconvert.plugin import Array, Metadata

from .packed import Packed, refuse_packed
from .tables import AS_TEXT, BITS_OF, CODES, NAMESPACE, OTHER_SIGN, Column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from raconvert.plugin import Source

    from .header import Unit

    Values = np.ndarray[Any, Any]

__all__ = ["Cells", "heap_array"]

ROWS_BYTES = 1 << 20  # bytes of rows that are read at once
NUMBERS = {"P": ">i4", "Q": ">i8"}


def heap_array(
    source: Source, unit: Unit, column: Column, table: str, where: str,
    flip: Callable[[Values], Values] | None,
) -> Array:  # fmt: skip
    """The array of all cells of a column, row after row; the table has their lengths.

    `flip` converts integers to the other signedness. Raises `Corrupt` for a cell outside the heap,
    `TooLarge` for many cells of the same bytes, and `Unsupported`.
    """
    code = column.form[:1]
    if code not in CODES and code not in "AL":
        raise Unsupported(
            f"column '{column.name[:80]}' has cells of variable length of bits or descriptors "
            f"({column.code}{column.form[:20]})", path=source.path, where=where,
            remedy=f"read it in Python: astropy.io.fits.getdata(FILE, {unit.number})",
        )  # fmt: skip
    stored = np.dtype({"A": "S1", "L": "u1"}.get(code) or ">" + CODES[code])
    cells = Cells(source, unit, column, stored, where)
    if isinstance(source, Packed) and not cells.are_in_order():
        refuse_packed(source, "has cells of variable length out of order")
    count = cells.total()
    limits = source.limits
    if count * stored.itemsize > max(limits.memory, limits.expansion_ratio * unit.nbytes):
        raise TooLarge(
            f"cells of column '{column.name[:80]}' lie in the same place again and again",
            path=source.path, where=where, expected=f"at most {limits.expansion_ratio} bytes for "
            f"each of {unit.nbytes}", got=count * stored.itemsize,
        )  # fmt: skip
    kind = np.dtype("?") if code == "L" else stored.newbyteorder("<")
    if flip is not None:
        kind = flip(np.zeros(0, stored)).dtype.newbyteorder("<")
    own = {"companions": {table: "elements"}, "heap": {"table": table, "column": column.name}}
    return Array(
        element_of(kind), (count,), name=f"{table}.{column.name}", index_order="C",
        meta=_metadata(column, own),
        data=lambda: _Joined(cells, count, kind, flip),
    )  # fmt: skip


def _metadata(column: Column, own: dict[str, Any]) -> Metadata:
    """The metadata of the elements of a column, from its keywords."""
    keywords = column.keywords
    attributes: dict[str, Any] = {}
    for key, name in (("TSCAL", "scale_factor"), ("TZERO", "add_offset"), ("TNULL", "_FillValue")):
        if key in keywords:
            attributes[name] = keywords[key]
    if column.flipped and type(attributes.get("_FillValue")) is int:
        attributes["_FillValue"] += OTHER_SIGN[BITS_OF[column.form[:1]]]
    units = keywords.get("TUNIT")
    units = units if isinstance(units, str) and units else None
    return Metadata(units=units, attributes=attributes, formats={NAMESPACE: own})


class Cells:
    """The cells of a column: their lengths, and their offsets in the heap."""

    def __init__(
        self, source: Source, unit: Unit, column: Column, stored: np.dtype[Any], where: str
    ) -> None:
        self.source = source
        self.stored = stored
        self.path, self.where = source.path, where
        self._unit = unit
        self._column = column
        values = unit.values
        self._width, self._rows = values["NAXIS1"], values["NAXIS2"]
        begin = values.get("THEAP", self._width * self._rows)
        if type(begin) is not int or not self._width * self._rows <= begin <= unit.nbytes:
            raise Corrupt(
                "heap is not behind the table", path=source.path, where=where,
                expected=f"THEAP of {self._width * self._rows} to {unit.nbytes}",
                got=f"{begin!r:.40}",
            )  # fmt: skip
        self.begin = unit.offset + begin
        self.nbytes = unit.nbytes - begin

    def extents(self) -> Iterator[tuple[Values, Values]]:
        """Yield the lengths of cells, in elements, and their offsets in the heap, in bytes."""
        step = max(1, ROWS_BYTES // self._width)
        start, width = self._column.start, self._column.width
        for first in range(0, self._rows, step):
            count = min(step, self._rows - first)
            at = self._unit.offset + first * self._width
            raw = self.source.read_exact(at, count * self._width, "rows of a table")
            rows = np.frombuffer(raw, np.uint8).reshape(count, self._width)
            pairs = np.ascontiguousarray(rows[:, start : start + width])
            entries = pairs.view(NUMBERS[self._column.code]).astype(np.int64)
            lengths, offsets = entries[:, 0], entries[:, 1]
            size = self.stored.itemsize
            wrong = (lengths < 0) | (offsets < 0) | (lengths > self.nbytes // size)
            wrong |= (offsets > self.nbytes - lengths * size) & (lengths > 0)
            if wrong.any():
                row = int(np.flatnonzero(wrong)[0])
                raise Corrupt(
                    f"cell of column '{self._column.name[:80]}' lies outside the heap",
                    path=self.path, where=f"{self.where}, row {first + row}",
                    expected=f"within {self.nbytes} bytes",
                    got=f"{lengths[row]} elements at {offsets[row]}",
                )  # fmt: skip
            yield lengths, offsets

    def are_in_order(self) -> bool:
        """True if each cell lies behind those of the rows before."""
        end = 0
        for lengths, offsets in self.extents():
            used = offsets[lengths > 0]
            if used.size and (used[0] < end or (np.diff(used) < 0).any()):
                return False
            end = int(used[-1]) if used.size else end
        return True

    def total(self) -> int:
        """The number of elements of all cells."""
        return sum(int(lengths.sum()) for lengths, _ in self.extents())


class _Joined(Decoded):
    """Array source over the cells of a column, row after row."""

    def __init__(
        self, cells: Cells, count: int, kind: np.dtype[Any],
        flip: Callable[[Values], Values] | None,
    ) -> None:  # fmt: skip
        what = f"'{cells.path}': a column of variable length"
        super().__init__((count,), kind, what=what, max_memory=cells.source.max_memory)
        self._cells = cells
        self._flip = flip

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in the order of the rows."""
        most = max(1, max_bytes // max(1, self._cells.stored.itemsize, self.dtype.itemsize))
        size = self._cells.stored.itemsize
        for lengths, offsets in self._cells.extents():
            used = lengths > 0
            for begin, count in _runs(lengths[used], offsets[used], size):
                for first in range(0, count, most):
                    here = min(most, count - first)
                    at = self._cells.begin + begin + first * size
                    raw = self._cells.source.read_exact(at, here * size, "a heap")
                    yield self._values(np.frombuffer(raw, self._cells.stored))

    def _values(self, stored: Values) -> Values:
        if self.dtype == np.bool_:
            if not np.isin(stored, (84, 70)).all():
                raise Unsupported(
                    "column of variable length has logical values that are neither T nor F",
                    path=self._cells.path, where=self._cells.where, expected="T or F",
                    remedy=AS_TEXT,
                )  # fmt: skip
            return np.asarray(stored == 84)
        return (stored if self._flip is None else self._flip(stored)).astype(self.dtype)


def _runs(lengths: Values, offsets: Values, size: int) -> Iterator[tuple[int, int]]:
    """Yield offset and number of elements of each run of cells that are adjacent in the heap."""
    if not lengths.size:
        return
    ends = offsets + lengths * size
    breaks = np.flatnonzero(offsets[1:] != ends[:-1]) + 1
    firsts = [0, *breaks.tolist()]
    totals = np.add.reduceat(lengths, firsts)
    yield from zip(offsets[firsts].tolist(), totals.tolist(), strict=True)
