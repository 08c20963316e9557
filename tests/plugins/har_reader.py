"""HAR with harpy3, which has no scalars, and no signalling NaNs, for the suites over all pairs of formats."""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path

import numpy as np
from harpy import HarFileIO, HeaderArrayObj
from pairs import FLOATS, NAME, Facts, Pairs, little, quiet

import raconvert
from raconvert.arrays.metadata import Axis, Metadata


def write(path: Path, values: np.ndarray) -> None:
    """Write with harpy3: real numbers over sets, whose labels it needs, or a matrix of integers."""
    sets = [
        {"name": f"S{n}", "status": "k", "dim_type": "Set",
         "dim_desc": [f"e{i}" for i in range(length)]}
        for n, length in enumerate(values.shape)
    ]  # fmt: skip
    more = {"sets": sets} if values.dtype.kind == "f" else {}
    with quiet():
        made = HeaderArrayObj.HeaderArrayFromData(NAME, values, NAME, "", **more)
        HarFileIO.writeHeaders(str(path), [made])
    if values.dtype.kind == "f":  # harpy3 moves numbers through doubles: no signalling NaNs
        contents, data = path.read_bytes(), little(values).tobytes("F")
        path.write_bytes(contents[: -4 - len(data)] + data + contents[-4:])


def read(path: Path) -> np.ndarray:
    """Return an array as harpy3 gives it, which has no scalars, and no signalling NaNs."""
    with quiet():
        [found] = HarFileIO.readHeaderArraysFromFile(str(path))
    assert found["name"].strip() == NAME
    values = found["array"]
    if found["data_type"] != "RE":
        return values
    records = _records(path)
    if struct.unpack_from("<i", records[2], 12) == (0,):
        values = values.reshape(())
    if found["storage_type"] == "FULL":  # in one part: its numbers end the file
        bits = np.frombuffer(records[-1][8:], "<f4").reshape(values.shape, order="F")
        assert np.array_equal(bits, values, equal_nan=True)
        return bits
    return values


def _records(path: Path) -> list[bytes]:
    """Return the records of a file, without their marks."""
    file, records = io.BytesIO(path.read_bytes()), []
    while mark := file.read(4):
        records.append(file.read(struct.unpack("<i", mark)[0]))
        assert file.read(4) == mark
    return records


def say(path: Path, generator: random.Random) -> Facts:
    labels = [["a", "b"], ["x", "y", "z"]]
    axes = [Axis(name=name, labels=own) for name, own in zip(["ROW", "COL"], labels, strict=True)]
    raconvert.write(path, {NAME: FLOATS}, meta=Metadata(axes=axes))
    with quiet():
        [found] = HarFileIO.readHeaderArraysFromFile(str(path))
    told = [(one["name"], one["dim_desc"]) for one in found["sets"]]
    assert told == list(zip(["ROW", "COL"], labels, strict=True))
    return {"names": ["ROW", "COL"], "labels": labels}


def said(path: Path) -> Facts:
    with quiet():
        [found] = HarFileIO.readHeaderArraysFromFile(str(path))
    sets = found["sets"] or []
    facts = {"names": [one["name"] for one in sets], "labels": [one["dim_desc"] for one in sets]}
    return {**facts, "description": found["long_name"].strip()}


def can_write(values: np.ndarray) -> bool:
    code, shape = values.dtype.str, values.shape
    return 0 not in shape and (
        (code == "<f4" and bool(shape)) or (code == "<i4" and len(shape) == 2)
    )


# It holds integers as matrices of int32; small ones with more axes as real numbers.
INTEGERS = {  # by the number of axes; 3 is 3 and more
    "small": {0: "~", 1: "~", 2: "~", 3: "~"},
    "int32": {0: "~", 1: "~", 2: "=", 3: "x"},
}
SMALL = ("bool", "int8", "int16", "uint8", "uint16", "int16_big", "uint16_big")


def special(name: str, shape: tuple[int, ...]) -> str:
    """Strings are lists, so that those of two axes, as in the table of types, are refused."""
    if name == "bytes" and len(shape) < 2:
        return "~"
    kind = "small" if name in SMALL else name
    return INTEGERS[kind][min(len(shape), 3)] if kind in INTEGERS else ""


# float32 and int32, and what they hold; strings are padded with blanks instead of NULs. The shapes
# are those of real numbers.
IN_PAIRS = (
    Pairs(
        name="har",
        suffix=".har",
        read=read,
        write=write,
        can_write=can_write,
        order="F",
        says_more=True,  # sets with labels
        types="""
            = int32 float32 float32_big
            ~ bool int8 int16 uint8 uint16 float16 int16_big uint16_big
            x int64 uint32 uint64 float64 complex64 complex128 bfloat16 int64_big
              complex128_big bytes text text_big datetime seconds timedelta structured void
        """,
        shapes="= *",
        special=special,
        usual="float32",
        most_axes={"float32": 7},
        say=say,
        said=said,
    ),
)
