"""Arrays to tables: which arrays are columns of one table, and the cells in each of its rows.

Arrays of one shape over the same axes are columns of one long table: a column for each axis (its
labels, its regular numbers or its indices from 0), and one for the values of each array, row by row
in row-major order. An array with a mask of missing values (`companions`) has empty cells for them,
and the mask no column. A one-dimensional array of structures is a table of its fields; a field
``x.null`` of bools behind ``x`` is its mask. With `wide` the labels of one axis are columns.
"""

from __future__ import annotations

import re
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.bundle import masks_of
from raconvert.arrays.reinterpret import check_characters
from raconvert.declared import Record
from raconvert.errors import WouldLose
from raconvert.plugin import Array, Fit, dtype_of, equivalent, first_of, refused

from .model import INDEX, MASK, missing_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from raconvert.plugin import Axis, Bundle

    Values = np.ndarray[Any, Any]

WIDE_LABELS = 16_000  # most columns that an axis may become
_HALVES = re.compile("[\ud800-\udfff]")  # of surrogate pairs, which no file can hold
LONGEST = 1 << 27  # elements of an axis whose regular numbers are kept: 1 GiB


class Indices:
    """The numbers from 0 along an axis, made for the rows that are written: they may be many."""

    dtype = np.dtype(np.int64)

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, indices: Values) -> Values:
        return np.asarray(indices, self.dtype)


class Key(Record):
    """A column of an axis: `values` are along the axis, `labelled` if they are its labels."""

    header: str
    values: Values | Indices
    labelled: bool


class Value(Record):
    """A column, or with `wide` the columns, of an array; `mask` is true for missing values."""

    header: str
    array: Array
    mask: Array | None


class Planned:
    """A table that will be written.

    `form` is as in a record (`record`). `wide` is the number of the axis whose labels are columns,
    `labels` their names. `fits` list the changes and refusals.
    """

    def __init__(self, form: str, keys: list[Key], values: list[Value]) -> None:
        self.form = form
        self.keys = keys
        self.values = values
        self.first: Array = values[0].array
        self.wide: int | None = None
        self.labels: list[str] = []
        self.wide_name: str | None = None
        self.fits: list[Fit] = []

    @property
    def name(self) -> str:
        """The name of the table: that of its first array."""
        return self.first.name

    @property
    def rows(self) -> int:
        """The number of rows."""
        if self.form == "rows":
            return self.first.shape[0] if self.first.ndim else 1
        return self.first.count // (max(1, len(self.labels)) if self.wide is not None else 1)

    @property
    def headers(self) -> list[str]:
        """The names of all columns, in order."""
        keys = [key.header for key in self.keys]
        if self.wide is not None:
            return keys + self.labels
        if self.form == "records":
            return [name for name, _ in fields_of(dtype_of(self.first.element))]
        return keys + [value.header for value in self.values]

    def key_cells(self, start: int, stop: int) -> Iterator[Values]:
        """Yield the values of some rows of each column of an axis."""
        rows = np.arange(start, stop)
        stride = self.rows
        for key in self.keys:
            stride //= max(1, len(key.values))
            yield key.values[rows // max(1, stride) % max(1, len(key.values))]

    def pieces(
        self, max_memory: int, path: str
    ) -> Iterator[tuple[int, list[Values], list[Values | None]]]:
        """Yield the number of the first row, and the values and masks of some rows, in order.

        A piece has an element, or a row of them, for each row; it is valid until the next one is
        made. Raises `WouldLose` for text of the file `path` with numbers that are not characters.
        """
        if not self.first.count:
            return
        inner = [value.array.count // self.rows for value in self.values]
        nbytes = sum(
            (value.array.element.nbytes + 1) * count
            for value, count in zip(self.values, inner, strict=True)
        )
        step = max(1, min(max(1 << 16, max_memory // 32), 4 << 20) // max(1, nbytes))
        pairs = [*zip(self.values, inner, strict=True)]
        streams = [self._stream(value.array, step, count) for value, count in pairs]
        masks = [
            self._stream(value.mask, step, count) if value.mask is not None else None
            for value, count in pairs
        ]
        start = 0
        for first in streams[0]:
            others = [next(stream) for stream in streams[1:]]
            for block, (value, count) in zip((first, *others), pairs, strict=True):
                check_characters(block, value.array, start * count, path)
            absent = [None if mask is None else next(mask) for mask in masks]
            yield start, [first, *others], absent
            start += len(first)

    def _stream(self, array: Array, rows: int, inner: int) -> Iterator[Values]:
        """Yield the elements of `rows` rows; several elements of a row lie along a second axis."""
        from raconvert.arrays.blocks import runs

        for run in runs(array, rows * inner, 4 << 20):
            yield run.reshape(-1, inner) if inner > 1 else run

    def columns_of(
        self, values: Values, mask: Values | None
    ) -> Iterator[tuple[Values, Values | None]]:
        """Yield the columns of a piece of an array: fields, labels of the wide axis, or itself."""
        if self.form == "records":
            yield from columns_of(values)
        elif self.wide is not None:
            count = len(self.labels)
            table = values.reshape(-1, count)
            absent = None if mask is None else mask.reshape(-1, count)
            for number in range(count):
                yield table[:, number], None if absent is None else absent[:, number]
        else:
            yield values, mask


def fields_of(dtype: np.dtype[Any]) -> list[tuple[str, str | None]]:
    """The fields that are columns, each with the one behind it that tells where it has no value.

    >>> fields_of(np.dtype([("x", "f8"), ("x.null", "?"), ("y", "i4")]))
    [('x', 'x.null'), ('y', None)]
    """
    fields: list[tuple[str, str | None]] = []
    for name in dtype.names or ():
        if fields and name == fields[-1][0] + MASK and dtype[name] == np.bool_:
            fields[-1] = fields[-1][0], name
        else:
            fields.append((name, None))
    return fields


def columns_of(values: Values) -> Iterator[tuple[Values, Values | None]]:
    """The columns of structures: the values of each, and where they are missing.

    Raises `WouldLose` if there is a value where it is said to be missing.
    """
    for name, mask in fields_of(values.dtype):
        if mask is not None:
            hidden = np.ascontiguousarray(values[name][values[mask]])
            if hidden.tobytes() != np.full_like(hidden, missing_value(hidden.dtype)).tobytes():
                raise WouldLose(
                    f"field '{name}' has a value where '{mask}' says that it is missing",
                    remedy="give one of them another name; nothing was written",
                )
        yield values[name], None if mask is None else values[mask]


def tables_of(
    bundle: Bundle, title: str, *, wide: str = "", rows: Callable[[Array], bool] | None = None
) -> tuple[list[Planned], list[Fit]]:
    """Return the tables that hold the arrays of a bundle, and the fits for their names.

    `rows` returns True for an array with a row for each index of its first axis. Raises nothing.
    """
    arrays = [*bundle.arrays]
    masks = masks_of(arrays)
    are_masks = {id(mask) for mask in masks.values()}
    made: list[Planned] = []
    by_axes: dict[Any, Planned] = {}
    fits = name_fits(bundle, title)
    for array in arrays:
        if id(array) in are_masks:
            continue
        mask = masks.get(id(array))
        if array.element.kind == "user" and isinstance(array.element.descr, tuple):
            made.append(_of_structures(array, mask))
            continue
        form = "rows" if rows is not None and not wide and rows(array) else "long"
        axes = _shared_facts(array, form)
        planned = by_axes.get(axes)
        if planned is not None and not wide:
            planned.values.append(Value(array.name, array, mask))
            continue
        planned = _planned(array, mask, form, wide)
        by_axes[axes] = planned
        made.append(planned)
    for planned in made:
        _name_keys(planned)
    return made, fits


def name_fits(bundle: Bundle, title: str) -> list[Fit]:
    """The refusals of names that no column can have. Raises nothing."""
    fits, seen = [], set()
    for name in bundle.names:
        reason = None
        if not name:
            reason = "an empty name"
        elif name in seen:
            reason = "the name is used twice"
        elif len(name) > 4096:
            reason = "a name of more than 4096 characters"
        elif _HALVES.search(name):
            reason = "the name is not valid text"
        if reason:
            fits.append(refused(name[:80], "names", f"{title}: {reason}"))
        seen.add(name)
    return fits


def _shared_facts(array: Array, form: str) -> Any:
    """The facts that arrays in one table share: form, shape and axes."""
    axes = array.axes if array.described else ()
    facts: tuple[Any, ...] = tuple(
        (axis.name, axis.labels, axis.origin, axis.spacing, axis.direction is None) if axis else ()
        for axis in axes
    )
    try:
        hash(facts)
    except TypeError:
        facts = (id(array),)
    if form == "rows":
        return form, array.shape[:1], facts[:1] if any(facts[:1]) else ()
    return form, array.shape, facts if any(facts) else ()


def _of_structures(array: Array, mask: Array | None) -> Planned:
    """The table of the fields of structures."""
    planned = Planned("records", [], [Value(array.name, array, mask)])
    fields = array.element.descr
    nested = [field[0] for field in fields if len(field) > 2 or not isinstance(field[1], str)]
    if nested:
        reason = f"a field that is an array or a structure has no column: {first_of(nested)}"
        planned.fits.append(refused(array.name, "type", reason))
    elif any(not field[0] for field in fields):
        planned.fits.append(refused(array.name, "type", "a field without a name has no column"))
    return planned


def _planned(array: Array, mask: Array | None, form: str, wide: str) -> Planned:
    """The table of an array, with columns for its axes."""
    planned = Planned(form, [], [Value(array.name, array, mask)])
    axes = list(array.axes)
    if wide:
        number = _wide_axis(axes, wide)
        if number is None:
            names = first_of([axis.name or f"{INDEX}{n}" for n, axis in enumerate(axes)])
            reason = f"wide={wide[:40]}: its axes are {names}"
            planned.fits.append(refused(array.name, "shape", reason))
        elif not array.count or array.shape[number] > WIDE_LABELS:
            planned.fits.append(
                refused(array.name, "shape", f"wide: an axis of 1 to {WIDE_LABELS} labels only")
            )
        else:
            _pivot(planned, number, axes[number])
            axes = [axis for n, axis in enumerate(axes) if n != number]
    if form == "rows":
        axes = []
    if planned.first.count or array.ndim == 1:
        lengths = planned.first.shape[: len(axes)]
        for axis, length in zip(axes, lengths, strict=True):
            if length > LONGEST and _is_regular(axis):
                reason = f"its regular numbers are kept along {LONGEST} elements, not {length}"
                planned.fits.append(refused(array.name, "shape", reason))
                return planned
        planned.keys = [
            _key(planned, axis, number, length)
            for number, (axis, length) in enumerate(zip(axes, lengths, strict=True))
        ]
    return planned


def _wide_axis(axes: list[Axis], wide: str) -> int | None:
    """The number of the axis with this name or number; None if there is no such axis."""
    names = [axis.name or f"{INDEX}{n}" for n, axis in enumerate(axes)]
    if wide in names:
        return names.index(wide)
    return int(wide) if wide.isdecimal() and int(wide) < len(axes) else None


def _pivot(planned: Planned, number: int, axis: Axis) -> None:
    """Make the labels of an axis columns; the axis is moved to the end of the array."""
    from raconvert.arrays.transpose import permuted

    array, mask = planned.first, planned.values[0].mask
    order = [n for n in range(array.ndim) if n != number] + [number]
    moved = permuted(array, tuple(order))
    absent = None if mask is None else permuted(mask, tuple(order))
    planned.values, planned.first = [Value(array.name, moved, absent)], moved
    planned.wide, planned.wide_name = number, axis.name
    labels = axis.labels if axis.labels is not None else range(array.shape[number])
    names = [str(label) for label in labels]
    planned.labels = names if len({*names}) == len(names) else [str(n) for n in range(len(names))]
    if planned.labels != names:
        reason = f"labels of axis {axis.name or number} are not unique: indices in their place"
        planned.fits.append(equivalent(array.name, "metadata", reason))


def _key(planned: Planned, axis: Axis, number: int, length: int) -> Key:
    """The column of an axis; adds a fit if its labels are changed."""
    header = axis.name or f"{INDEX}{number}"
    name = planned.first.name
    if axis.labels is not None and len(axis.labels) == length:
        values, same = label_values(axis.labels)
        if len({*values.tolist()}) == length and _is_text(values):
            if not same:
                reason = f"labels of axis {header} are of several types: written as text"
                planned.fits.append(equivalent(name, "metadata", reason))
            return Key(header, values, True)
        reason = f"labels of axis {header} are not unique: indices in their place"
        planned.fits.append(equivalent(name, "metadata", reason))
        return Key(header, Indices(length), False)
    if not _is_regular(axis):
        return Key(header, Indices(length), False)
    return Key(header, numbers_along(axis, length), False)


def _is_regular(axis: Axis) -> bool:
    """True for an axis with regular numbers, which are not positions in space."""
    return (axis.spacing, axis.origin) != (None, None) and axis.direction is None


def numbers_along(axis: Axis, length: int) -> Values:
    """The numbers in the column of an axis without labels: regular ones, else indices from 0.

    The positions along a spatial axis are points in the world, which single numbers cannot be.
    """
    regular = axis.values(length) if axis.direction is None else None
    if regular is None or regular.dtype.kind not in "if" or len(np.unique(regular)) < length:
        return np.arange(length)
    return regular


def _is_text(values: Values) -> bool:
    """False for text with halves of surrogate pairs, which no file can hold."""
    return values.dtype.kind != "U" or not any(map(_HALVES.search, values.tolist()))


def label_values(labels: tuple[Any, ...]) -> tuple[Values, bool]:
    """Return labels as values of one type, and True if that is their own type. Raises nothing."""
    kinds = set(map(type, labels))
    if kinds <= {int} and all(-(1 << 63) <= label < 1 << 63 for label in labels):
        return np.array(labels, np.int64), True
    if kinds <= {float} and not any(isnan(label) for label in labels):
        return np.array(labels, np.float64), True
    if kinds <= {bool}:
        return np.array(labels, np.bool_), True
    texts = [x.decode("latin-1") if isinstance(x, bytes) else str(x) for x in labels]
    is_exact = kinds <= {str} and not any(text.endswith("\0") for text in texts)
    return np.array(texts, f"U{max([1, *map(len, texts)])}"), is_exact


def _name_keys(planned: Planned) -> None:
    """Rename the columns of axes that have the name of another column."""
    taken = {value.header for value in planned.values} | {*planned.labels}
    keys = []
    for key in planned.keys:
        header, number = key.header, 1
        while header in taken:
            number += 1
            header = f"{key.header}_{number}" if number > 2 else f"{key.header}_axis"
        taken.add(header)
        keys.append(key._replace(header=header))
    planned.keys = keys


def one_table(made: list[Planned], title: str, more: str) -> list[Fit]:
    """The refusal of several tables by a format that holds one; `more` is the remedy."""
    if len(made) < 2:
        return []
    first, second = made[0].first, made[1].first
    reason = (
        f"{title} holds arrays over the same axes in one file: '{first.name}' has the shape "
        f"{first.shape}, '{second.name}' {second.shape}; {more}"
    )
    return [refused(second.name, "shape", reason)]
