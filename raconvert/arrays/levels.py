"""Long tables of pandas: which element each row is, and what stands along each axis."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.errors import WouldLose

if TYPE_CHECKING:
    from typing import Any

    Values = np.ndarray[Any, Any]


def levels_of(table: Any, orders: list[list[Any]]) -> tuple[Values, list[Any]]:
    """Return the place of each row in row-major order, and the labels of each level of the index.

    Rows may be in any order; labels are in that of `orders`, if they are all in it, else in the
    order in which they come first. `WouldLose` unless there is one row for each combination.
    """
    places = np.zeros(len(table), np.int64)
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
        places = places * len(labels) + codes
        levels.append(labels)
    _refuse_gaps(table, places, levels)
    return places, levels


def _refuse_gaps(table: Any, places: Values, levels: list[Any]) -> None:
    """Refuse a table in which a combination of labels is missing, or there more than once."""
    shape = tuple(map(len, levels))
    seen = np.unique(places)
    cells = prod(shape)
    if len(seen) == len(places) == cells:
        return
    twice = len(seen) < len(places)
    if twice:
        order = np.sort(places)
        odd = int(order[1:][order[1:] == order[:-1]][0])
    else:
        gaps = np.flatnonzero(seen != np.arange(len(seen)))
        odd = int(gaps[0]) if len(gaps) else len(seen)
    names = [f"level {n}" if name is None else name for n, name in enumerate(table.index.names)]
    found = zip(names, levels, np.unravel_index(odd, shape), strict=True)
    where = ", ".join(f"{name}={labels[int(place)]!r}" for name, labels, place in found)
    raise WouldLose(
        f"{type(table).__name__} has {'two rows' if twice else 'no row'} for {where}",
        expected=f"each of the {cells} combinations of its index once",
        got=f"{len(places)} rows, {len(seen)} combinations",
        remedy="combine such rows first (groupby); nothing was written"
        if twice
        else "say what is missing, as NaN or 0: table.reindex(pandas.MultiIndex.from_product("
        "table.index.remove_unused_levels().levels)); nothing was written",
    )
