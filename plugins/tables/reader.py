"""Tables to arrays: which columns are axes, their labels, and the index of each value.

A table is a *grid* if some of its first columns hold each combination of their values once; these
are the axes, and every other column is an array over them. Labels are in the order in which they
first come. ``axes=a,b`` says which columns are axes; by itself a table is taken for a grid

1. of the columns that its record names, or that are called ``dim_0``, ``dim_1``, …, with the
   numbers from 0;
2. of its first columns of text, whole numbers or times, if they are two axes of more than one label
   each; with one such axis it must be of text, and no further column may be.

Anything else is one array of structures, a record for each row, or a plain array if it has one
column. ``layout=columns`` makes an array of each column, ``layout=matrix`` one of all.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.dtypes import element_of
from raconvert.arrays.memory import check_memory
from raconvert.arrays.sources import Decoded
from raconvert.declared import Record
from raconvert.errors import RaconvertError, TooLarge, UsageError, worded
from raconvert.plugin import Array, Axis, Bundle, Metadata

from . import record as records
from .model import (
    INDEX,
    MASK,
    NAMESPACE,
    Column,
    Table,
    incomplete,
    missing_value,
    no_column,
    unique_names,
)
from .plan import Indices, fields_of, numbers_along

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Values = np.ndarray[Any, Any]

KEY_KINDS = "iuUMS"  # kinds of types of columns that are taken for axes


class Asked(Record):
    """The options of reading, as `options.READING` describes them."""

    layout: str = "auto"
    axes: str = "auto"
    wide: str = ""
    missing: str = "mask"
    fill: str = ""
    name: str = ""


class Grid(Record):
    """The axes of a table: their columns and labels, in the order of their first rows.

    `positions` are the row-major indices in the grid of all rows; None if they are in order.
    `absent` is the number of combinations without a row.
    """

    columns: list[int]
    labels: list[Values]
    positions: Values | None
    absent: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return tuple(map(len, self.labels))


def bundle_of(tables: Sequence[Table], asked: Asked) -> Bundle:
    """Read the arrays of the tables of a file. Raises as reading does, and `UsageError`.

    If there are several tables, arrays without a record lie in a group with the name of their
    table.
    """
    arrays: list[Array] = []
    notes: list[str] = []
    for table in tables:
        table.name = asked.name or table.name
        made = arrays_of(table, asked._replace(name=""))
        if len(tables) > 1 and table.record is None:
            made = [_in_group(array, table) for array in made]
        arrays += made
        notes += table.notes
    names = unique_names([array.name for array in arrays])
    for array, name in zip(arrays, names, strict=True):
        if array.name != name:
            array.name = name
    return Bundle(arrays, notes=notes)


def _in_group(array: Array, table: Table) -> Array:
    """Move an array, and the names of its companions, into the group of its table."""
    if array.name == table.name:
        return array
    own = array.meta.formats.get(NAMESPACE, {}).get("companions")
    if own:
        moved = {f"{table.name}/{name}": what for name, what in own.items()}
        array.meta = array.meta.with_format(NAMESPACE, companions=moved)
    array.name = f"{table.name}/{array.name}"
    return array


def arrays_of(table: Table, asked: Asked) -> list[Array]:
    """Return the arrays of one table; only values of axes are read."""
    if table.record is not None and asked == Asked():
        columns = table.columns
        table.columns = [*_with_masks(columns, table.record)]
        made = _as_recorded(table, table.record)
        if made is not None:
            return made
        table.columns = columns
        table.notes.append(
            "what the file says of its arrays is not so any more: the table is read anew"
        )
    table.record = None
    without_axes = asked.layout in ("records", "columns", "matrix") or asked.axes == "none"
    grid = _asked_grid(table, asked) if asked.axes not in ("auto", "none") else None
    if grid is None and not without_axes:
        grid = _own_grid(table, wide=bool(asked.wide))
    if asked.wide or asked.layout == "matrix" or (not table.headed and _is_matrix(table, grid)):
        return _wide(table, grid, asked)
    if grid is not None:
        return _along_grid(table, grid, asked)
    if asked.layout == "columns" or len(table.columns) == 1 or _has_problem(table):
        return _along_grid(table, Grid([], [], None), asked)
    return [_records(table, asked)]


def _has_problem(table: Table) -> bool:
    """True if a column cannot be read."""
    return any(column.problem is not None for column in table.columns)


def _is_matrix(table: Table, grid: Grid | None) -> bool:
    """True for several columns of numbers without axes and missing values."""
    types = {column.dtype.kind for column in table.columns}
    return grid is None and len(table.columns) > 1 and types <= set("if") and not any(
        column.nullable for column in table.columns
    )  # fmt: skip


# Axes --------------------------------------------------------------------------------------------


def _own_grid(table: Table, *, wide: bool) -> Grid | None:
    """The grid of a table by its own columns; None if it is not a grid."""
    indices = 0
    for column in table.columns[:-1] if not wide else table.columns:
        is_whole = column.dtype.kind in "iu" or not table.rows
        if column.name != f"{INDEX}{indices}" or not is_whole:
            break
        indices += 1
    if indices:
        return _of_indices(table, indices)
    numbers: list[int] = []
    labels: list[Values] = []
    codes: list[Values] = []
    for number, column in enumerate(table.columns[:-1]):
        factors = _factorized(table, number) if _may_be_key(column) else None
        if factors is None:
            return None
        numbers.append(number)
        codes.append(factors[0])
        labels.append(factors[1])
        cells = prod(map(len, labels))
        if cells > table.rows or not table.rows:
            return None
        if cells == table.rows:
            if not _looks_like_axes(table, numbers, labels, wide=wide):
                return None
            grid = _grid_of_codes(table, numbers, codes, labels)
            if grid is None:
                return None
            _note_axes(table, grid)
            return grid
    return None


def _may_be_key(column: Column) -> bool:
    """True for a column whose values may be labels of an axis."""
    is_scalar = not (column.nullable or column.shape or column.problem)
    return is_scalar and column.dtype.kind in KEY_KINDS


def _of_indices(table: Table, count: int) -> Grid | None:
    """The grid of columns of indices; None if they are not all indices of a grid."""
    numbers = list(range(count))
    if any(table.columns[n].nullable or table.columns[n].problem for n in numbers):
        return None
    most = [0] * count
    for pieces in table.read(numbers):
        for number, (values, _) in enumerate(pieces):
            if len(values) and (int(values.min()) < 0 or int(values.max()) >= table.rows):
                return None
            most[number] = max(most[number], int(values.max(initial=-1)) + 1)
    if prod(most) != table.rows:
        return None
    labels: list[Any] = [range(length) for length in most]
    if _is_in_order(table, numbers, most):
        return Grid(numbers, labels, None)
    check_memory(16 * table.rows, table.source.max_memory, f"{table.label}, axes,")
    positions = np.concatenate([*_index_positions(table, numbers, most)])
    whole = bool((np.sort(positions) == np.arange(table.rows)).all())
    return Grid(numbers, labels, positions) if whole else None


def _index_positions(table: Table, numbers: list[int], shape: list[int]) -> Iterator[Values]:
    """Yield the positions of rows in the grid by their indices, piece by piece."""
    for pieces in table.read(numbers):
        positions = np.zeros(len(pieces[0][0]), np.int64)
        for (values, _), length in zip(pieces, shape, strict=True):
            positions *= length
            positions += values.astype(np.int64)
        yield positions


def _is_in_order(table: Table, numbers: list[int], shape: list[int]) -> bool:
    """True if the rows are in row-major order of their indices."""
    done = 0
    for positions in _index_positions(table, numbers, shape):
        if (positions != np.arange(done, done + len(positions))).any():
            return False
        done += len(positions)
    return True


def _looks_like_axes(table: Table, numbers: list[int], labels: list[Values], *, wide: bool) -> bool:
    """True for two axes of more than one label; or for one of text beside columns of numbers."""
    if sum(len(own) > 1 for own in labels) > 1 or wide:
        return True
    longest = max(labels, key=len)
    others = [column for n, column in enumerate(table.columns) if n not in numbers]
    return longest.dtype.kind == "U" and len(longest) > 1 and not any(
        column.dtype.kind in "USV" for column in others
    )  # fmt: skip


def _note_axes(table: Table, grid: Grid) -> None:
    """Note the columns that were taken for axes."""
    names = [table.columns[n].name for n in grid.columns]
    sizes = " × ".join(map(str, grid.shape))
    note = (
        f"the columns {', '.join(names[:8])} are read as axes ({sizes}); with "
        "`--in-opt axes=none` the table is read as records"
    )
    table.notes.append(worded(note))


def _asked_grid(table: Table, asked: Asked) -> Grid:
    """The grid of the columns in the option `axes`. Raises `UsageError` or `WouldLose`."""
    names = [name.strip() for name in asked.axes.split(",") if name.strip()]
    numbers = {column.name: number for number, column in enumerate(table.columns)}
    for name in names:
        if name not in numbers:
            raise no_column(table, name, "axes")
    if not names or len(set(names)) < len(names):
        raise UsageError("`--in-opt axes` names no columns, or one twice", got=asked.axes[:60])
    grid = _grid(table, [numbers[name] for name in names], least=False, fill=bool(asked.fill))
    if grid is None:  # only for more cells than any array has
        raise UsageError("`--in-opt axes` names no axes", path=table.source.path)
    return grid


def _grid(table: Table, numbers: Sequence[int], *, least: bool, fill: bool = False) -> Grid | None:
    """The grid of some columns. If they are not a grid: None with `least`, else `WouldLose`."""
    codes, labels = [], []
    for number in numbers:
        column = table.columns[number]
        if column.problem is not None and not least:
            raise column.problem
        fits = not (column.nullable or column.shape) and column.dtype.kind in KEY_KINDS + "fb"
        factors = _factorized(table, number) if fits else None
        if factors is None:
            if least:
                return None
            reason = "has missing values" if column.nullable else "is not a column of labels"
            raise incomplete(table, f"has an axis '{column.name[:60]}' that {reason}",
                             "choose other columns: `--in-opt axes=NAME,NAME`")  # fmt: skip
        codes.append(factors[0])
        labels.append(factors[1])
    return _grid_of_codes(table, list(numbers), codes, labels, least=least, fill=fill)


def _factorized(table: Table, number: int) -> tuple[Values, Values] | None:
    """The code of each row, and the labels that the codes number, in the order of first rows.

    None if there are more labels than `Limits.table_labels`.
    """
    check_memory(8 * table.rows, table.source.max_memory, f"{table.label}, axes,")
    dtype = table.columns[number].dtype
    codes = np.empty(table.rows, np.int64)
    code_of: dict[Any, int] = {}
    firsts: list[Values] = []
    most = table.source.limits.table_labels
    done = 0
    for ((values, _),) in table.read([number]):
        keys = values.view(np.int64) if dtype.kind in "Mm" else values
        if dtype.kind == "f":
            keys = values.astype("f8").view(np.uint64)
        unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        own_codes = np.empty(len(unique), np.int64)
        for index in order.tolist():
            key = unique[index].item()
            code = code_of.get(key)
            if code is None:
                code = code_of[key] = len(code_of)
                firsts.append(values[first[index] : first[index] + 1].copy())
            own_codes[index] = code
        if len(code_of) > most:
            return None
        codes[done : done + len(values)] = own_codes[inverse.reshape(-1)]
        done += len(values)
    labels = np.concatenate(firsts) if firsts else np.empty(0, dtype)
    return codes, labels


def _grid_of_codes(
    table: Table, numbers: list[int], codes: list[Values], labels: list[Values],
    *, least: bool = True, fill: bool = False,
) -> Grid | None:  # fmt: skip
    """The grid, if each combination has one row; else None with `least`, or an error."""
    shape = tuple(map(len, labels))
    cells = prod(shape)
    if cells > 1 << 62 or (least and cells != table.rows):
        return None
    positions = np.zeros(table.rows, np.int64)
    for code, length in zip(codes, shape, strict=True):
        positions *= length
        positions += code
    # Sorted, not counted: the memory is that of the rows, even if the grid is much larger.
    ordered = np.sort(positions)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(twice) or (cells != table.rows and not fill):
        if least:
            return None
        raise _no_grid(table, numbers, labels, ordered, twice)
    in_order = cells == table.rows and bool(
        (positions[:1] == 0).all() and (np.diff(positions) == 1).all()
    )
    return Grid(numbers, labels, None if in_order else positions, cells - table.rows)


def _no_grid(
    table: Table, numbers: list[int], labels: list[Values], ordered: Values, twice: Values
) -> RaconvertError:
    """The error for a combination of labels that has two rows, or no row."""
    shape = tuple(map(len, labels))
    if len(twice):
        position = int(ordered[twice[0]])
    else:
        gaps = np.flatnonzero(ordered != np.arange(len(ordered)))
        position = int(gaps[0]) if len(gaps) else len(ordered)
    indices = np.unravel_index(position, shape) if prod(shape) else ()
    where = ", ".join(
        f"{table.columns[n].name}={own[int(index)]!s}"
        for n, own, index in zip(numbers, labels, indices, strict=False)
    )
    if len(twice):
        return incomplete(table, f"has two rows for {where}",
                          "name more columns: `--in-opt axes=NAME,NAME`, or read it as records: "
                          "`--in-opt axes=none`")  # fmt: skip
    return incomplete(
        table, f"has no row for {where}: {len(ordered)} rows of {prod(shape)}",
        "fill the gaps: `--in-opt fill=missing` or `--in-opt fill=0`, or read it as records: "
        "`--in-opt axes=none`",
    )  # fmt: skip


def _is_index(labels: Any) -> bool:
    """True if labels are the numbers from 0."""
    if isinstance(labels, range):
        return True
    whole = labels.dtype.kind in "iu" or not len(labels)
    return whole and bool((labels == np.arange(len(labels), dtype=labels.dtype)).all())


def axis_of(name: str, number: int, labels: Any, *, labelled: bool | None = None) -> Axis:
    """The axis of a column: its name, and labels, or origin and spacing of regular numbers."""
    named = None if name == f"{INDEX}{number}" else name
    if isinstance(labels, Indices):
        return Axis(named)
    if labelled is False or (labelled is None and _is_index(labels)):
        return Axis(named)
    if labels.dtype.kind in "Mm":
        return Axis(named, labels=[str(label) for label in labels])
    if labels.dtype.kind == "S":
        return Axis(named, labels=[label.decode("latin-1") for label in labels.tolist()])
    if labels.dtype.kind in "iuf" and not labelled and len(labels) > 1:
        regular = _regular(labels)
        if regular is not None:
            return Axis(named, origin=regular[0], spacing=regular[1])
    return Axis(named, labels=labels.tolist())


def _regular(labels: Values) -> tuple[Any, Any] | None:
    """The origin and the spacing that give these numbers exactly; None if there are none.

    The spacing is the one with the fewest digits: a difference of rounded numbers has too many.
    """
    first, second = labels[:2].tolist()
    step = second - first
    steps = [step]
    if labels.dtype.kind == "f":
        with np.errstate(all="ignore"):
            errors = np.diff(labels) - step
        if not np.isfinite(errors).all() or np.abs(errors).max() > abs(step) / 1000:
            return None
        steps = [*dict.fromkeys(float(f"{step:.{digits}g}") for digits in range(1, 18))]
    for spacing in steps:
        made: Any = Axis(origin=first, spacing=spacing).values(len(labels))
        if spacing and np.array_equal(made, labels):
            return first, spacing
    return None


# Arrays ------------------------------------------------------------------------------------------


class Cells(Decoded):
    """Array source: columns of a table, each value at its index in the grid.

    Several columns lie along a further axis, the last one. With `missing` the elements are the mask
    of missing values. `fill` is the value of combinations without a row.
    """

    def __init__(
        self, table: Table, numbers: list[int], grid: Grid, shape: tuple[int, ...],
        dtype: np.dtype[Any], *, missing: bool = False, fill: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(shape, dtype, what=table.label, max_memory=table.source.max_memory)
        self._table = table
        self._numbers = numbers
        self._positions = grid.positions
        self._missing = missing
        self._fill = fill

    @property
    def in_rows(self) -> bool:
        """True if the rows come in the order of the elements."""
        return self._positions is None

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in stored order. Raises `TooLarge` if memory cannot hold all to sort."""
        if not self.in_rows:
            flat = self.whole().reshape(-1)
            step = max(1, max_bytes // max(1, self.dtype.itemsize))
            for start in range(0, flat.size, step):
                yield flat[start : start + step]
            return
        for rows in self._rows(max_bytes):
            flat = rows.reshape(-1)
            step = max(1, max_bytes // max(1, self.dtype.itemsize))
            for start in range(0, flat.size, step):
                yield flat[start : start + step]

    def _rows(self, max_bytes: int) -> Iterator[Values]:
        """Yield the elements in the order of the rows."""
        for pieces in self._table.read(self._numbers, min(max_bytes, 4 << 20)):
            columns = [self._converted(values, mask) for values, mask in pieces]
            yield columns[0] if len(columns) == 1 else np.stack(columns, axis=1)

    def _converted(self, values: Values, mask: Values | None) -> Values:
        """Values in the type of the array, or their mask. Raises `WouldLose` for rounded ones."""
        if self._missing:
            return np.zeros(len(values), np.bool_) if mask is None else mask
        if values.dtype == self.dtype:
            return values
        converted = values.astype(self.dtype)
        if values.dtype.kind in "iu" and self.dtype.kind == "f":
            rounded = np.flatnonzero(converted.astype(object) != values.astype(object))
            if len(rounded):
                what = f"has {values[rounded[0]]}, which float64 cannot hold"
                raise incomplete(self._table, what,
                                 "read it as records: `--in-opt layout=records`")  # fmt: skip
        return converted

    def load(self) -> Values:
        """Read all elements into an array."""
        if self.in_rows:
            return super().load()
        inner = self.shape[len(self.shape) - 1 :] if len(self._numbers) > 1 else ()
        cells = prod(self.shape) // max(1, prod(inner))
        out = np.empty((cells, *inner), self.dtype)
        if self._positions is not None and cells != len(self._positions):
            out[...] = self._missing if self._fill is None else self._fill
        done = 0
        for rows in self._rows(4 << 20):
            positions = (
                self._positions[done : done + len(rows)] if self._positions is not None else ...
            )
            out[positions] = rows
            done += len(rows)
        return out.reshape(self.shape)


class Rows(Decoded):
    """Array source: all columns of a table as one array of structures."""

    def __init__(self, table: Table, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        super().__init__(shape, dtype, what=table.label, max_memory=table.source.max_memory)
        self._table = table

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield records in the order of the rows."""
        step = max(1, max_bytes // max(1, self.dtype.itemsize))
        for pieces in self._table.read(range(len(self._table.columns)), min(max_bytes, 4 << 20)):
            made = np.zeros(len(pieces[0][0]), self.dtype)
            fields = iter(self.dtype.names or ())
            for column, (values, mask) in zip(self._table.columns, pieces, strict=True):
                made[next(fields)] = values
                if column.nullable:
                    made[next(fields)] = False if mask is None else mask
            for start in range(0, len(made), step):
                yield made[start : start + step]


def _records(table: Table, asked: Asked) -> Array:
    """All columns as one array of structures; a field ``x.null`` is the mask of ``x``."""
    most = table.source.limits.structure_fields
    if len(table.columns) > most:
        raise TooLarge(
            f"{table.label} has more columns than a structure may have", expected=f"at most {most}",
            got=len(table.columns), remedy="read each as an array: `--in-opt layout=columns`",
        )  # fmt: skip
    names: list[str] = []
    fields: list[Any] = []
    for column in table.columns:
        names.append(column.name)
        fields.append((column.dtype, column.shape))
        if column.nullable:
            names.append(column.name + MASK)
            fields.append((np.dtype("?"), ()))
    names = unique_names(names)
    dtype = np.dtype([
        (name, kind, shape) if shape else (name, kind)
        for name, (kind, shape) in zip(names, fields, strict=True)
    ])  # fmt: skip
    data = Rows(table, dtype, (table.rows,))
    return Array(
        element_of(dtype), (table.rows,), name=table.name, index_order="C", data=lambda: data
    )


def _along_grid(table: Table, grid: Grid, asked: Asked) -> list[Array]:
    """An array for each column that is not an axis, with a mask if it has missing values."""
    axes = [
        axis_of(table.columns[number].name, index, labels)
        for index, (number, labels) in enumerate(zip(grid.columns, grid.labels, strict=True))
    ]
    fill = asked.fill if grid.absent else ""
    arrays: list[Array] = []
    for number, column in enumerate(table.columns):
        if number not in grid.columns:
            shape = (grid.shape if grid.columns else (table.rows,)) + column.shape
            inner = list(column.axes) or [Axis()] * len(column.shape)
            described = (axes or [Axis()]) + inner
            described = described if any(described) else []
            arrays += _with_mask(table, [number], grid, shape, described, asked, fill, column.name)
    return arrays


def _with_mask(
    table: Table, numbers: list[int], grid: Grid, shape: tuple[int, ...], axes: list[Axis],
    asked: Asked, fill: str, name: str, dtype: np.dtype[Any] | None = None, mask: str = "",
) -> list[Array]:  # fmt: skip
    """The array of some columns, and its mask, called `mask`, if it has missing values."""
    column = table.columns[numbers[0]]
    if column.problem is not None:
        return [Array.unreadable(name, column.problem)]
    dtype = column.dtype if dtype is None else dtype
    nullable = any(table.columns[n].nullable for n in numbers) or fill == "missing"
    nullable = nullable and not (asked.missing == "nan" and dtype.kind == "f")
    value = _fill_value(fill, dtype, table) if fill else None
    data = Cells(table, numbers, grid, shape, dtype, fill=value)
    meta = Metadata(axes=axes, attributes=column.attributes)
    mask = mask or f"{name}{MASK}"
    if nullable:
        meta = meta.with_format(NAMESPACE, companions={mask: "nulls"})
    array = Array(element_of(dtype), shape[::-1], name=name, index_order="C", meta=meta,
                  data=lambda: data)  # fmt: skip
    if not nullable:
        return [array]
    masked = Cells(table, numbers, grid, shape, np.dtype("?"), missing=True,
                   fill=fill == "missing")  # fmt: skip
    absent = Array(element_of(masked.dtype), shape[::-1], name=mask, index_order="C",
                 meta=Metadata(axes=axes), data=lambda: masked)  # fmt: skip
    return [array, absent]


def _fill_value(fill: str, dtype: np.dtype[Any], table: Table) -> Any:
    """The value of the option `fill` in a type. Raises `UsageError` if it is not of the type."""
    from .words import parsed

    if fill == "missing":
        return missing_value(dtype)
    try:
        return parsed([fill], dtype)[0]
    except ValueError as error:
        raise UsageError(
            f"`--in-opt fill={fill[:40]}` is not a value of the type {dtype.name}",
            path=table.source.path,
        ) from error


def _wide(table: Table, grid: Grid | None, asked: Asked) -> list[Array]:
    """One array of all columns that are not axes; they lie along its last axis."""
    own = grid if grid is not None else Grid([], [], None)
    numbers = [n for n in range(len(table.columns)) if n not in own.columns]
    columns = [table.columns[n] for n in numbers]
    dtype = _common_type([column.dtype for column in columns])
    if dtype is None or any(column.shape or column.problem for column in columns):
        kinds = ", ".join(dict.fromkeys(str(column.dtype) for column in columns[:50]))
        raise incomplete(table, f"has columns of different types ({kinds[:80]}), which are not one "
                         "array", "read it as records: `--in-opt layout=records`")  # fmt: skip
    keys = enumerate(zip(own.columns, own.labels, strict=True))
    axes = [axis_of(table.columns[n].name, index, labels) for index, (n, labels) in keys]
    axes = axes or [Axis()]
    shape = own.shape if own.columns else (table.rows,)
    last = Axis(asked.wide or None)
    if table.headed:
        last = last.replace(labels=_labels([column.name for column in columns]))
    axes = [*axes, last]
    if len(columns) == 1:
        return _with_mask(
            table, numbers, own, (*shape, 1), axes, asked, asked.fill, table.name, dtype
        )
    return _with_mask(table, numbers, own, (*shape, len(columns)), axes if any(axes) else [], asked,
                asked.fill if own.absent else "", table.name, dtype)  # fmt: skip


def _labels(names: list[str]) -> list[Any] | None:
    """The names of columns as labels: None for the numbers from 0, ints for whole numbers."""
    whole = all(name.isascii() and name.isdecimal() and len(name) < 10 for name in names)
    if whole and [str(int(name)) for name in names] == names:
        numbers = [int(name) for name in names]
        return None if numbers == list(range(len(names))) else numbers
    return list(names)


def _common_type(types: list[np.dtype[Any]]) -> np.dtype[Any] | None:
    """The type that holds all values of these types; None if there is no such type."""
    kinds = {dtype.kind for dtype in types}
    if not types or len(set(types)) == 1:
        return types[0] if types else None
    if kinds <= set("if") or kinds == {"u", "f"}:
        return np.dtype("f8") if "f" in kinds else max(types, key=lambda dtype: dtype.itemsize)
    if len(kinds) == 1 and kinds <= set("uSU"):
        return max(types, key=lambda dtype: dtype.itemsize)
    return None


# Arrays by a record -------------------------------------------------------------------------------


def _with_masks(columns: list[Column], said: dict[str, Any]) -> Iterator[Column]:
    """The columns, nullable where the record has a mask: also if no value is missing now."""
    masked = {array["column"] for array in said["arrays"] if array.get("mask")}
    if said["form"] == "records":
        dtypes = [records.dtype_in(array) for array in said["arrays"]]
        masked = {name for dtype in dtypes if dtype for name, mask in fields_of(dtype) if mask}
    elif said.get("wide") is not None and masked:
        masked = {column.name for column in columns} - {*said["axes"]}
    for column in columns:
        fits = column.name in masked and column.problem is None
        yield column._replace(nullable=True) if fits else column


def _as_recorded(table: Table, recorded: dict[str, Any]) -> list[Array] | None:
    """The arrays of a record; None if the table does not fit the record."""
    numbers = {column.name: number for number, column in enumerate(table.columns)}
    shape = tuple(recorded["shape"])
    if recorded["form"] == "records":
        return _recorded_structures(table, recorded, shape)
    if not all(name in numbers for name in recorded["axes"]):
        return None
    grid = Grid([], [], None)
    if recorded["form"] == "long" and recorded["axes"]:
        if 0 in shape and not table.rows:
            labels = [np.arange(n if n < 1 << 16 else 0) for n in shape]
            grid = Grid([numbers[name] for name in recorded["axes"]], labels, None)
        else:
            own = _grid(table, [numbers[name] for name in recorded["axes"]], least=True)
            if own is None:
                return None
            grid = own
    elif prod(shape) and recorded["form"] == "long" and table.rows != prod(shape):
        return None
    arrays: list[Array] = []
    for record in recorded["arrays"]:
        own_arrays = _recorded(table, recorded, record, grid, numbers)
        if own_arrays is None:
            return None
        arrays += own_arrays
    return arrays


def _recorded(
    table: Table,
    recorded: dict[str, Any],
    record: dict[str, Any],
    grid: Grid,
    by_name: dict[str, int],
) -> list[Array] | None:
    """The array of one record, and its mask; None if the table does not fit the record."""
    wide = recorded.get("wide")
    numbers = [n for n in range(len(table.columns)) if n not in grid.columns]
    if wide is None:
        if record["column"] not in by_name:
            return None
        numbers = [by_name[record["column"]]]
    column = table.columns[numbers[0]] if numbers else None
    if column is None:
        return None
    inner = column.shape + ((len(numbers),) if wide is not None else ())
    shape = tuple(record.get("shape", recorded["shape"]))
    full = _recorded_shape(table, recorded["form"], shape, grid, inner)
    if full is None or (wide is not None and wide["axis"] >= len(full)):
        return None
    meta = records.meta_in(record)
    axes = _recorded_axes(table, recorded, grid, full, meta)
    if meta is None or axes is None:
        return None
    # The columns lie along the last axis of the cells.
    asked, name, mask = Asked(), record["name"], record.get("mask", "")
    arrays = _with_mask(table, numbers, grid, full, axes, asked, "", name, column.dtype, mask)
    if wide is not None and len({table.columns[n].dtype for n in numbers}) > 1:
        return None
    arrays[0].meta = meta.replace(axes=axes if any(axes) else ()).merged(
        Metadata(formats=arrays[0].meta.formats)
    )
    if wide is not None and wide["axis"] != len(full) - 1:
        arrays = [_moved(array, wide["axis"]) for array in arrays]
    return arrays


def _recorded_shape(
    table: Table, form: str, shape: tuple[int, ...], grid: Grid, inner: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The shape by the cells, or the recorded one if cells do not tell it; None if they differ."""
    full = (grid.shape if grid.columns else (table.rows,)) + inner
    if not prod(shape) and not table.rows:
        return shape
    if form == "rows" and not shape and full == (1,):
        return ()
    if not grid.columns and prod(full) == prod(shape) and form == "long":
        return shape
    return full if len(full) == len(shape) else None


def _moved(array: Array, axis: int) -> Array:
    """The array with its last axis moved to another index."""
    from raconvert.arrays.transpose import permuted

    order = list(range(array.ndim - 1))
    order.insert(axis, array.ndim - 1)
    return permuted(array, tuple(order))


def _recorded_axes(
    table: Table, recorded: dict[str, Any], grid: Grid, full: tuple[int, ...], meta: Metadata | None
) -> list[Axis] | None:
    """The recorded axes in the order of the cells, with the labels that the cells have now."""
    wide = recorded.get("wide")
    listed = [*meta.axes] if meta is not None else []
    listed = listed if len(listed) == len(full) else [Axis()] * len(full)
    if wide is not None:
        listed.append(listed.pop(wide["axis"]))
    axes = []
    labelled = recorded.get("labelled", [])
    for index, before in enumerate(listed):
        now: Any = None
        if index < len(grid.columns):
            now = grid.labels[index]
        has_labels = index < len(labelled) and labelled[index]
        if now is None or _is_same(before, now, labelled=has_labels):
            axes.append(before)
            continue
        name = table.columns[grid.columns[index]].name
        made = axis_of(name, index, now, labelled=has_labels or None)
        own = before.replace(direction=None, labels=made.labels, spacing=made.spacing)
        axes.append(own.replace(name=before.name or made.name, origin=made.origin))
    if wide is not None and isinstance(wide.get("labels"), list):
        axes[-1] = axes[-1].replace(labels=wide["labels"])
    return axes


def _is_same(axis: Axis, now: Any, *, labelled: bool) -> bool:
    """True if the cells have the labels or numbers of a recorded axis."""
    if not labelled:
        return np.array_equal(numbers_along(axis, len(now)), now)
    return axis.labels is not None and list(axis.labels) == list(now.tolist())


def _recorded_structures(
    table: Table, recorded: dict[str, Any], shape: tuple[int, ...]
) -> list[Array] | None:
    if len(recorded["arrays"]) != 1 or prod(shape) != table.rows or _has_problem(table):
        return None
    record = recorded["arrays"][0]
    dtype, meta = records.dtype_in(record), records.meta_in(record)
    array = _records(table, Asked())
    if dtype is None or dtype.names is None or meta is None:
        return None
    stored = array.dtype
    same = stored.names == dtype.names and all(stored[n] == dtype[n] for n in dtype.names or ())
    if not same:
        return None
    data = Rows(table, dtype, shape)
    made = Array(element_of(dtype), shape[::-1], name=record["name"], index_order="C", meta=meta,
                 data=lambda: data)  # fmt: skip
    return [made]
