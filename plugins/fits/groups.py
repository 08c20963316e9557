"""Random groups: a structure for each group, of its parameters and its array."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.dtypes import dtype_of, element_of
from raconvert.errors import Corrupt
from raconvert.plugin import Array, Metadata, element

from .columns import Rows
from .header import whole
from .metadata import attributes_of, namespace_of
from .packed import elements_at
from .tables import ELEMENTS, MAX_COLUMNS, MAX_RANK, NAMESPACE

if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Source

    from .header import Unit

    Values = np.ndarray[Any, Any]

__all__ = ["groups_of"]

DATA = "DATA"


def groups_of(source: Source, unit: Unit, name: str, notes: list[str], where: str) -> Array:
    """The array of the groups of the primary HDU, as stored. Raises `Corrupt`."""
    values, shape = unit.values, unit.shape[:-1]  # NAXIS1 is 0
    count, rows = whole(source, values, "PCOUNT", where), whole(source, values, "GCOUNT", where)
    stored = dtype_of(ELEMENTS[values["BITPIX"]])
    width = (count + prod(shape)) * stored.itemsize
    if not (0 <= count < MAX_COLUMNS and len(shape) < MAX_RANK // 2 and 0 < width <= unit.nbytes):
        raise Corrupt(
            "groups hold nothing, or have too many parameters or axes", path=source.path,
            where=where, got=f"PCOUNT {count}, {len(shape)} axes of {unit.nbytes} bytes",
        )  # fmt: skip
    names = _names(values, count)
    little = stored.newbyteorder("<")
    dtype = np.dtype([*((parameter, little) for parameter in names), (DATA, little, shape)])
    own = namespace_of(unit, notes, name)
    if scales := _scales(values, names):
        own = own | {"columns": scales}
        notes.append(
            f"array '{name}': groups are as stored, and the header has a scale of them: "
            f"{', '.join([*scales][:6])}"
        )
    raw = Array(
        element("uint", 1), (width, rows), name=name, index_order="C",
        **elements_at(source, unit.offset, (rows, width), element("uint", 1)),
    )  # fmt: skip

    def decode(block: Values) -> Values:
        numbers = np.ascontiguousarray(block).view(stored)
        out = np.empty(len(block), dtype)
        for index, parameter in enumerate(names):
            out[parameter] = numbers[:, index]
        out[DATA] = numbers[:, count:].reshape(len(block), *shape)
        return out

    return Array(
        element_of(dtype), (rows,), name=name, index_order="C",
        meta=Metadata(attributes=attributes_of(unit), formats={NAMESPACE: own} if own else None),
        data=lambda: Rows(raw, dtype, decode),
    )  # fmt: skip


def _names(values: dict[str, Any], count: int) -> list[str]:
    """The names of the parameters; a repeated name gets the number of its parameter."""
    names: list[str] = []
    taken = {DATA}
    for n in range(1, count + 1):
        title = values.get(f"PTYPE{n}")
        name = title if isinstance(title, str) and title else f"par{n}"
        name = name if name not in taken else f"{name}_{n}"
        taken.add(name)
        names.append(name)
    return names


def _scales(values: dict[str, Any], names: list[str]) -> dict[str, dict[str, Any]]:
    """Slope and zero of the parameters and of the data that have one."""
    scales = {}
    keywords = {name: [f"PSCAL{n}", f"PZERO{n}"] for n, name in enumerate(names, 1)}
    for name, (slope, zero) in {**keywords, DATA: ["BSCALE", "BZERO"]}.items():
        own = {"TSCAL": values.get(slope, 1), "TZERO": values.get(zero, 0)}
        if own != {"TSCAL": 1, "TZERO": 0}:
            scales[name] = own
    return scales
