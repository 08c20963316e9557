"""netCDF classic by a reader of its own, after the specification, for the suites over all pairs.

netCDF4 brings another HDF5 library than h5py has, and scipy reads no CDF-5; both judge the files in
`test_netcdf3_write.py`.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pairs import FLOATS, GREY, NAME, Facts, Pairs, of_axes, of_png, quiet

LETTERS = {1: "i1", 2: "S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8",
           7: "u1", 8: ">u2", 9: ">u4", 10: ">i8", 11: ">u8"}  # fmt: skip


class Variable(NamedTuple):
    """A variable as it lies in a file."""

    dims: list[str]
    attributes: dict[str, Any]
    values: np.ndarray


class File:
    """A file of any version: dimensions, attributes of the file, variables."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 4
        self.version = data[3]
        self._wide = self.version == 5
        records = self._count()
        self.dims: dict[str, int] = {}
        for _ in range(self._entries(10)):
            name = self._text()
            self.dims[name] = self._count()
        self.attributes = self._attributes()
        names, raw = list(self.dims), []
        for _ in range(self._entries(11)):
            name = self._text()
            dims = [names[self._count()] for _ in range(self._count())]
            attributes, code = self._attributes(), LETTERS[self._number(4)]
            self._count()
            raw.append((name, dims, attributes, code, self._number(4 if self.version == 1 else 8)))
        self.unlimited = next((name for name, length in self.dims.items() if not length), None)
        inside = [one for one in raw if one[1][:1] == [self.unlimited]]
        rows = [self._row(one[1], one[3]) for one in inside]
        record = rows[0] if len(rows) == 1 else sum(row + -row % 4 for row in rows)
        self.variables: dict[str, Variable] = {}
        for name, dims, attributes, code, begin in raw:
            row, times = self._row(dims, code), records if dims[:1] == [self.unlimited] else 1
            parts = (data[begin + n * record :][:row] for n in range(times))
            shape = [records if dim == self.unlimited else self.dims[dim] for dim in dims]
            values = np.frombuffer(b"".join(parts), code).reshape(shape)
            self.variables[name] = Variable(dims, attributes, values)

    def _row(self, dims: list[str], code: str) -> int:
        lengths = [self.dims[dim] for dim in dims if dim != self.unlimited]
        return math.prod(lengths) * np.dtype(code).itemsize

    def _number(self, width: int) -> int:
        self._at += width
        return int.from_bytes(self._data[self._at - width : self._at], "big")

    def _count(self) -> int:
        return self._number(8 if self._wide else 4)

    def _bytes(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        self._at += count + -count % 4
        return found

    def _text(self) -> str:
        return self._bytes(self._count()).decode()

    def _entries(self, tag: int) -> int:
        found, count = self._number(4), self._count()
        assert found in (0, tag)
        return count

    def _attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(self._entries(12)):
            name = self._text()
            code, count = LETTERS[self._number(4)], self._count()
            raw = self._bytes(count * np.dtype(code).itemsize)
            if code == "S1":
                found[name] = raw.decode()
            else:
                values = np.frombuffer(raw, code).tolist()
                found[name] = values[0] if count == 1 else values
        return found


def load(path: Path) -> File:
    """Read a file."""
    return File(path.read_bytes())


def read(path: Path) -> np.ndarray:
    """Return the array `vals`; chars with an encoding are text, as netCDF4 and xarray take them."""
    one = load(path).variables[NAME]
    values = one.values
    if one.attributes.get("dtype") == "bool":
        return values.astype(bool)
    if one.dims and one.dims[-1] == "ri":
        return (
            np.ascontiguousarray(values)
            .astype(values.dtype.newbyteorder("="))
            .view(f"c{2 * values.dtype.itemsize}")[..., 0]
        )
    if values.dtype.kind == "S" and one.dims and one.dims[-1].startswith("string"):
        texts = np.ascontiguousarray(values).view(f"S{values.shape[-1]}")[..., 0]
        return np.char.decode(texts, "utf-8") if "_Encoding" in one.attributes else texts
    said = json.loads(one.attributes.get("raconvert", "{}")).get("was", {}).get("type", "")
    if str(said)[1:2] in ("M", "m"):
        return values.astype("<i8").view(f"<{said[1:]}")
    return values


def say(path: Path, generator: random.Random) -> Facts:
    """Write a file with scipy that says something of its array."""
    from scipy.io import netcdf_file

    facts: Facts = {"names": ["row", "column"]}
    values = generator.choice([GREY.astype("i2"), FLOATS])
    with netcdf_file(path, "w", version=generator.choice([1, 2])) as file:
        for name, length in zip(facts["names"], values.shape, strict=True):
            file.createDimension(name, length)
        one = file.createVariable(NAME, values.dtype, tuple(facts["names"]))
        one[:] = values
        if generator.random() < 0.6:
            facts["attributes"] = {"title": "text", "half": 0.5}
            one.title, one.half = "text", 0.5
        if generator.random() < 0.4:
            one.units = facts["units"] = "K"
    return facts  # no coordinates: their variables are arrays, too


def said(path: Path) -> Facts:
    """Return what a file says of its array."""
    file = load(path)
    one = file.variables[NAME]
    kept = json.loads(one.attributes.get("raconvert", "{}"))
    axes = kept.get("axes", [])[::-1]
    facts = of_axes(axes or [{}] * len(one.dims))
    unnamed = [f"{NAME}.{place}" for place in range(len(one.dims))]
    names = [None if dim in unnamed else dim for dim in one.dims]
    facts["names"] = [a or b for a, b in zip(facts["names"], names, strict=True)]
    for place, dim in enumerate(one.dims):
        scale = file.variables.get(dim)
        if scale is None:
            continue
        values = scale.values
        if values.dtype.kind == "S":
            texts = np.ascontiguousarray(values).view(f"S{values.shape[-1]}")[..., 0]
            facts["labels"][place] = np.char.decode(texts, "utf-8").tolist()
        else:
            facts["labels"][place] = facts["labels"][place] or values.tolist()
            if facts["spacings"][place] is None and len(values) > 1:
                facts["spacings"][place] = float(values[1] - values[0])
    attributes = {**one.attributes, **kept.get("attributes", {})}
    return {
        **facts, **of_png(kept), "attributes": attributes, "units": attributes.get("units"),
        "description": kept.get("description") or attributes.get("long_name"),
    }  # fmt: skip


def write(path: Path, values: np.ndarray) -> None:
    """Write an array with scipy, which has the types of CDF-1 and CDF-2."""
    from scipy.io import netcdf_file

    with quiet(), netcdf_file(path, "w", version=2) as file:
        dims = [f"{NAME}.{place}" for place in range(values.ndim)]
        for dim, length in zip(dims, values.shape, strict=True):
            file.createDimension(dim, length)
        one = file.createVariable(NAME, values.dtype.newbyteorder("="), tuple(dims))
        one[...] = values


def can_write(values: np.ndarray) -> bool:
    """True for the numbers that scipy writes."""
    return values.dtype.str[1:] in ("i1", "i2", "i4", "f4", "f8") and 0 not in values.shape


# The dimension of length 0 is the unlimited one: there is one, and it is the slowest.
IN_PAIRS = (
    Pairs(
        name="netcdf3",
        suffix=".cdf",
        read=read,
        write=write,
        can_write=can_write,
        order="C",
        guest=True,
        keeps=True,
        usual="float32",
        types="""
            = int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64
              int16_big uint16_big int64_big float32_big
            ~ bool complex64 complex128 complex128_big bytes text text_big datetime seconds timedelta
            x float16 bfloat16 structured void
        """,
        shapes="x 4,0 2,0,3 3,0,2 = *",
        most_axes={"float32": 64},
        say=say,
        said=said,
    ),
)
