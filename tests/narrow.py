"""A format of a third party that can hold little, so that much must come back from sidecars.

Column-major matrices of float64, complex128, uint8 and text in Latin-1; names of capital letters.
The file is a magic and an NPZ, read and written by numpy alone.
"""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np

from raconvert.api import array_of
from raconvert.arrays.blocks import as_ndarray
from raconvert.plugin import (
    NO,
    SURE,
    Bundle,
    Fit,
    Format,
    Metadata,
    Plan,
    Source,
    equivalent,
    refused,
)

MAGIC = b"NARROW\n"
FORMAT = Format(
    name="narrow",
    title="Narrow matrices",
    suffixes=(".narrow",),
    magic=((0, MAGIC),),
    proof=True,
    many=True,
    lazy=False,
    meta="some",
    index_orders="F",
)
HELD = {"int": "f8", "uint": "f8", "float": "f8", "complex": "c16", "bool": "u1", "bfloat": "f8"}


def sniff(source: Source) -> int:
    return SURE if source.head.startswith(MAGIC) else NO


def names_of(bundle: Bundle) -> list[str]:
    return [re.sub("[^A-Z]", "X", array.name.upper()) for array in bundle.arrays]


def plan(bundle: Bundle) -> Plan:
    names = names_of(bundle)
    return Plan(fits_of(bundle, names), lambda target: _write(bundle, target), names=names)


def fits_of(bundle: Bundle, names: list[str]) -> list[Fit]:
    found = []
    for array, name in zip(bundle.arrays, names, strict=True):
        if array.name != name:
            reason = f"it is called {name} there"
            found.append(refused(array.name, "names", reason, "--allow names"))
        if array.element.kind != "user" and array.dtype != HELD[array.element.kind]:
            found.append(equivalent(array.name, "type", "becomes a wider one"))
        if array.ndim < 2:
            found.append(equivalent(array.name, "shape", "becomes a matrix"))
        if array.meta:
            found.append(equivalent(array.name, "metadata", "only attributes are kept"))
    if bundle.attributes or bundle.groups:
        found.append(equivalent("", "metadata", "what the file says of itself is left out"))
    return found


def _write(bundle: Bundle, target: Any) -> None:
    kept: dict[str, np.ndarray] = {}
    for array, name in sorted(
        zip(bundle.arrays, names_of(bundle), strict=True), key=lambda pair: pair[1]
    ):
        values = as_ndarray(array)
        values = values.T if array.index_order == "F" else values
        if array.element.kind != "user":
            values = values.astype(HELD[array.element.kind])
        elif values.dtype.kind == "U":
            values = np.char.encode(values, "latin-1")
        kept[name] = np.asfortranarray(values.reshape(values.shape or (1,)))
        if values.ndim < 2:
            kept[name] = values.reshape(1, values.size)
    packed = io.BytesIO()
    np.savez(packed, **kept)
    with target.open() as file:
        file.write(MAGIC + packed.getvalue())


def read(source: Source) -> Bundle:
    packed = source.read_exact(0, source.size, "the whole")[len(MAGIC) :]
    with np.load(io.BytesIO(packed)) as file:
        arrays = []
        for name, values in file.items():
            array = array_of(np.ascontiguousarray(values.T), name)
            array.meta = Metadata(attributes={"from the file": True})
            arrays.append(array.listed("F"))
    return Bundle(arrays)
