"""Arrays as long tables of pandas: a row for each element, in the order of the axes, last fastest.

The index has a level for each axis: its labels, its regular numbers, or the indices from 0. The
second axis of one name is ``NAME_2``, an axis without a name ``dim_0``.
`raconvert.arrays.interop.from_libraries` takes such tables back, and finds the axes with their
names and units in `attrs`.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from raconvert.arrays.memory import check_memory
from raconvert.errors import MissingDependency, UsageError, WouldLose
from raconvert.files.quoting import python
from raconvert.files.source import DEFAULT_MAX_MEMORY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandas import DataFrame

    Values = np.ndarray[Any, Any]


try:
    import pandas as pd
except ImportError as _error:
    raise MissingDependency(
        "tables need a package that is not installed: pandas",
        remedy="pip install 'raconvert[xarray]'",
    ) from _error

KEY = "raconvert"  # in the attributes of a table


_CELL_BYTES = 16  # memory of a level of the index for each row


def table_of(arrays: Sequence[Any], *, index: bool) -> DataFrame:
    """Return arrays over the same axes as one table, a column for each.

    Raises `UsageError` for arrays over other axes, `TooLarge` above the usual memory, and the
    `problem` of an array that cannot be read.
    """
    if not arrays:
        raise UsageError("a table needs an array at least")
    first = arrays[0]
    axis_names = [axis.name for axis in first.axes]
    names = _names(axis_names or [None] * first.ndim)
    for array in arrays[1:]:
        if array.shape != first.shape or _along(array) != _along(first):
            raise UsageError(
                f"arrays '{first.name}' and '{array.name}' are over other axes",
                got=f"{_shown(first)} and {_shown(array)}",
                remedy=f"make a table of each: bundle[{python(first.name)}].to_dataframe()",
            )
    array_names = {array.name for array in arrays}
    if len(array_names | set(names)) < len(arrays) + len(names):
        names = [f"{name}_axis" if name in array_names else name for name in names]
    nbytes = sum(array.nbytes for array in arrays) + first.count * _CELL_BYTES * first.ndim
    check_memory(nbytes, DEFAULT_MAX_MEMORY, f"a table of {first.count} rows")
    columns = {array.name or "values": _column(array) for array in arrays}
    table = pd.DataFrame(columns, index=_index(first, names))
    table.attrs = _attributes(first) if len(arrays) == 1 else {}
    axes = [axis.to_dict() for axis in first.axes] or [{} for _ in names]
    table.attrs[KEY] = {"dims": names, "shape": first.shape, "axes": axes}
    return table if index or not names else table.reset_index()


def _names(axis_names: list[str | None]) -> list[str]:
    """Return different names for the levels of an index, from the names of axes."""
    names: list[str] = []
    for number, axis_name in enumerate(axis_names):
        wanted = axis_name or f"dim_{number}"
        name, copies = wanted, 1
        while name in names:
            copies += 1
            name = f"{wanted}_{copies}"
        names.append(name)
    return names


def _along(array: Any) -> list[Any]:
    """Return the metadata of all axes as plain values, to be compared."""
    return [axis.to_dict() for axis in array.axes]


def _shown(array: Any) -> str:
    words = [f"{axis.name}: {n}" for axis, n in zip(array.axes, array.shape, strict=False)]
    return f"({', '.join(words) or ', '.join(map(str, array.shape))})"


def _index(array: Any, names: list[str]) -> Any:
    """Return the index of a table: levels in the order of their labels, not sorted."""
    levels = []
    for number, length in enumerate(array.shape):
        values = array.axes[number].values(length) if array.axes else None
        levels.append(pd.Index(np.arange(length) if values is None else values))
    if len(levels) == 1:
        return levels[0].rename(names[0])
    if not levels:
        return None
    shape = tuple(map(len, levels))
    codes = [
        np.tile(np.repeat(np.arange(n), prod(shape[k + 1 :])), prod(shape[:k]))
        for k, n in enumerate(shape)
    ]
    if all(level.is_unique for level in levels):
        return pd.MultiIndex(levels=levels, codes=codes, names=names)
    rows = [level.take(code) for level, code in zip(levels, codes, strict=True)]
    return pd.MultiIndex.from_arrays(rows, names=names)


def _column(array: Any) -> Any:
    """Return the elements in logical order, in a type that pandas has."""
    values = np.ascontiguousarray(np.asarray(array)).reshape(-1)
    if values.dtype.kind == "V":
        raise UsageError(
            f"array '{array.name}' cannot become a table: pandas has no {array.element.kind} type",
            got=str(values.dtype),
        )
    if values.dtype.kind == "S":
        encoding = "utf-8" if array.meta.encoding == "utf-8" else "latin-1"
        return np.char.decode(values, encoding).astype(object)
    return values.astype(values.dtype.newbyteorder("="), copy=True)


def _attributes(array: Any) -> dict[str, Any]:
    meta = array.meta
    attributes = dict(meta.attributes)
    for name, value in (("units", meta.units), ("long_name", meta.description)):
        if value:
            attributes.setdefault(name, value)
    return attributes


# Long tables of pandas: the element of each row, and the labels along each axis -------------------


def levels_of(table: Any, orders: list[list[Any]]) -> tuple[Values, list[Any]]:
    """Return the row-major number of the element of each row, and the labels of each index level.

    Rows may be in any order. The labels of a level have the order of its list in `orders`, if that
    has all of them, else that of their first rows. Raises `WouldLose` unless there is one row for
    each combination.
    """
    numbers = np.zeros(len(table), np.int64)
    levels = []
    for number, name in enumerate(table.index.names):
        values = table.index.get_level_values(number)
        if values.hasnans:
            raise WouldLose(
                f"{type(table).__name__} has rows without a label",
                where=f"level '{number if name is None else name}' of the index",
                remedy="fill or drop them first; nothing was written",
            )
        codes, labels = values.factorize()
        ranks = {label: rank for rank, label in enumerate(orders[number] if orders else ())}
        if all(label in ranks for label in labels):
            order = np.argsort([ranks[label] for label in labels])
            codes, labels = np.argsort(order)[codes], labels[order]
        numbers = numbers * len(labels) + codes
        levels.append(labels)
    _refuse_gaps(table, numbers, levels)
    return numbers, levels


def _refuse_gaps(table: Any, numbers: Values, levels: list[Any]) -> None:
    """Refuse (`WouldLose`) a table in which a combination of labels is missing, or comes twice."""
    shape = tuple(map(len, levels))
    cells = prod(shape)
    if cells > np.iinfo(np.int64).max:  # more than `numbers` can count
        raise WouldLose(
            f"{type(table).__name__} has no rows for most combinations of its index",
            expected=f"each of the {cells} combinations once",
            got=f"{len(table)} rows",
            remedy="write the levels as columns: table.reset_index(); nothing was written",
        )
    present = np.unique(numbers)
    if len(present) == len(numbers) == cells:
        return
    twice = len(present) < len(numbers)
    if twice:
        order = np.sort(numbers)
        wrong = int(order[1:][order[1:] == order[:-1]][0])
    else:
        gaps = np.flatnonzero(present != np.arange(len(present)))
        wrong = int(gaps[0]) if len(gaps) else len(present)
    names = [f"level {n}" if name is None else name for n, name in enumerate(table.index.names)]
    wrong_labels = zip(names, levels, np.unravel_index(wrong, shape), strict=True)
    where = ", ".join(f"{name}={labels[int(index)]!r}" for name, labels, index in wrong_labels)
    raise WouldLose(
        f"{type(table).__name__} has {'two rows' if twice else 'no row'} for {where}",
        expected=f"each of the {cells} combinations of its index once",
        got=f"{len(numbers)} rows, {len(present)} combinations",
        remedy="combine such rows first (groupby); nothing was written"
        if twice
        else "say what is missing, as NaN or 0: table.reindex(pandas.MultiIndex.from_product("
        "table.index.remove_unused_levels().levels)); nothing was written",
    )
