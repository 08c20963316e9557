"""NRRD with pynrrd, which has no blocks, for the suites over all pairs of formats."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import nrrd
import numpy as np
from pairs import FLOATS, GREY, Facts, Pairs, of_axes, of_png, quiet


def write(path: Path, values: np.ndarray) -> None:
    """Write with pynrrd; the comments, with the time, are left out."""
    with quiet():
        nrrd.write(str(path), values, {"encoding": "raw"}, index_order="C")
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(line for line in lines if line[:1] != b"#" or b"\0" in line))


def read(path: Path) -> np.ndarray:
    """Return an array with its axes reversed, or as they stand where a pair of ours says F."""
    contents = path.read_bytes()
    header, _, data = contents.partition(b"\n\n")
    fields = dict(line.split(": ", 1) for line in header.decode().splitlines()[1:] if ": " in line)
    ours = re.search(rb"^raconvert:=(.*)$", header, re.MULTILINE)
    told = json.loads(ours[1].replace(b"\\\\", b"\\")) if ours else {}
    told |= told.get("was", {})
    if fields["type"] == "block":  # pynrrd has no blocks
        sizes = [int(size) for size in fields["sizes"].split()]
        values = np.frombuffer(data, f"V{fields['block size']}").reshape(sizes[::-1])
    else:
        with quiet():
            values, _ = nrrd.read(str(path), index_order="C")
    pairs = fields.get("kinds", "").startswith("complex")
    if told.get("index_order") == "F":
        axes = tuple(range(values.ndim - pairs))[::-1]
        values = values.transpose((*axes, values.ndim - 1) if pairs else axes)
    return values


def say(path: Path, generator: random.Random) -> Facts:
    facts: Facts = {}
    header: dict[str, Any] = {"encoding": "raw"}
    if generator.random() < 0.6:
        facts["names"] = ["row", "column"]
        header["labels"] = facts["names"][::-1]
    if generator.random() < 0.6:
        facts["spacings"] = [0.5, 2.0]
        header["spacings"] = facts["spacings"][::-1]
    if generator.random() < 0.5:
        facts["attributes"] = {"who": "text", "what": "more"}
        header |= facts["attributes"]
    nrrd.write(str(path), generator.choice([GREY, FLOATS]).T, header, index_order="F")
    return facts


def said(path: Path) -> Facts:
    header = nrrd.read_header(str(path))
    kept = json.loads(header["raconvert"]) if "raconvert" in header else {}
    kept |= kept.get("was", {})
    rank = header["dimension"]
    axes = kept.get("axes") or [{}] * rank
    step = 1 if kept.get("index_order") == "F" else -1
    facts = of_axes(axes[::step]) | of_png(kept)
    labels = header.get("labels")
    facts["names"] = list(labels[::step]) if labels else facts["names"]
    spacings = header.get("spacings")
    if spacings is not None:
        facts["spacings"] = [None if one != one else one for one in spacings[::step].tolist()]  # noqa: PLR0124
    attributes = {**header, **kept.get("attributes", {})}
    units = kept.get("units") or header.get("sample units")
    return {
        **facts, "attributes": attributes, "units": units,
        "description": kept.get("description") or header.get("content"),
    }  # fmt: skip


def can_write(values: np.ndarray) -> bool:
    dtype, shape = values.dtype, values.shape
    number = dtype.kind in "iuf" and dtype not in (np.float16, ml_dtypes.bfloat16)
    return number and 0 not in shape and bool(shape)


# bool is uint8, complex numbers are pairs on a new axis, all else is a block of bytes (which says no
# more than void does). One axis at least, none of them empty.
IN_PAIRS = (
    Pairs(
        name="nrrd",
        suffix=".nrrd",
        read=read,
        write=write,
        can_write=can_write,
        keeps=True,
        types="""
            = int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 int16_big
              uint16_big int64_big float32_big void
            ~ bool complex64 complex128 complex128_big bytes text text_big datetime seconds
              timedelta structured
            x float16 bfloat16
        """,
        shapes="""
            = 5 4,6 6,4 1,1 4,6,1 1,6,4 4,6,2 2,6,4 4,6,3 3,6,4 4,6,5 5,6,4 1,1,3,1 1,3,1,1
              2,3,4,3 3,4,3,2
            ~ ()
            x 0 4,0 0,4 2,0,3 3,0,2
        """,
        most_axes={"float32": 16, "complex64": 15},  # one more for the pairs
        say=say,
        said=said,
    ),
)
