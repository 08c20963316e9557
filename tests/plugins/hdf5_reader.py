"""HDF5 with h5py, for the suites over all pairs of formats."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import h5py
import ml_dtypes
import numpy as np
from pairs import FLOATS, GREY, NAME, Facts, Pairs, of_axes, of_png


def write(path: Path, values: np.ndarray) -> None:
    with h5py.File(path, "w") as file:
        if values.dtype.kind in "mM":  # opaque, with h5py's tag
            file[NAME] = values.astype(h5py.opaque_dtype(values.dtype))
        else:
            file[NAME] = values


def read(path: Path) -> np.ndarray:
    with h5py.File(path) as file:
        dataset = file[NAME]
        stored = dataset.id.get_type()
        if (stored.get_class(), stored.get_size()) == (h5py.h5t.FLOAT, 2):
            return _halves(dataset)
        values = np.array(dataset)
        text = h5py.check_string_dtype(dataset.dtype)
        if text is not None and text.encoding == "utf-8":
            return np.char.decode(values, "utf-8")
        # h5py notes in the dtype what it was in the file
        return values if values.dtype.names else values.view(values.dtype.str)


def _halves(dataset: Any) -> np.ndarray:
    """Return 16-bit floats: IEEE's, or bfloat16 as the library widens it, which loses no bit."""
    exponent_bits = dataset.id.get_type().get_fields()[2]
    if exponent_bits == 5:
        return np.array(dataset)
    assert exponent_bits == 8
    wide = np.empty(dataset.shape, "<f4")
    dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, wide, h5py.h5t.IEEE_F32LE)
    return (wide.view("<u4") >> 16).astype("<u2").view(ml_dtypes.bfloat16)


def say(path: Path, generator: random.Random) -> Facts:
    facts: Facts = {}
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset(NAME, data=generator.choice([GREY, FLOATS]))
        if generator.random() < 0.6:
            facts["attributes"] = {"title": "text", "number": 7, "half": 0.5, "list": [1, 2]}
            dataset.attrs.update(facts["attributes"])
        if generator.random() < 0.6:
            facts["names"] = ["row", "column"]
            dataset.dims[0].label, dataset.dims[1].label = facts["names"]
        if generator.random() < 0.4:
            dataset.attrs["units"] = facts["units"] = "K"
    return facts


def said(path: Path) -> Facts:
    with h5py.File(path) as file:
        dataset = file[NAME]
        found = {}
        for name, value in dataset.attrs.items():
            listed = value.tolist() if hasattr(value, "tolist") else value
            if isinstance(listed, list) and len(listed) == 1:  # a number, as netCDF stores it
                [listed] = listed
            found[name] = listed.decode() if isinstance(listed, bytes) else listed
        kept = json.loads(found.pop("raconvert", "{}"))
        axes = kept.get("axes", [])[::-1]
        facts = of_axes(axes or [{}] * dataset.ndim)
        facts["names"] = [
            dim.label or name for dim, name in zip(dataset.dims, facts["names"], strict=True)
        ]
        for place, dim in enumerate(dataset.dims):
            for scale in dim.values():
                listed = scale[()].tolist()
                texts = [one.decode() if isinstance(one, bytes) else one for one in listed]
                facts["labels"][place] = facts["labels"][place] or texts
                if facts["spacings"][place] is None and not isinstance(texts[0], str):
                    facts["spacings"][place] = texts[1] - texts[0]
        attributes = {**found, **kept.get("attributes", {})}
        facts["units"] = attributes.get("units")
        facts["description"] = (
            kept.get("description") or found.get("description") or (found.get("long_name"))
        )
        return {**facts, **of_png(kept), "attributes": attributes}


def can_write(values: np.ndarray) -> bool:
    return values.dtype.kind != "U" and values.dtype != ml_dtypes.bfloat16


# It has a description for the bits of bfloat16, but no type for text of four bytes a letter, nor for
# dates: an encoding, and tagged bytes.
IN_PAIRS = (
    Pairs(
        name="hdf5",
        suffix=".h5",
        read=read,
        write=write,
        can_write=can_write,
        order="C",
        keeps=True,
        types="""
            = bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
              complex64 complex128 bfloat16 int16_big uint16_big int64_big float32_big
              complex128_big bytes structured void
            ~ text text_big datetime seconds timedelta
        """,
        shapes="= *",
        most_axes={"float32": 32},
        say=say,
        said=said,
    ),
)
