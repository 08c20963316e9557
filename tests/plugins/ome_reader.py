"""How tifffile and zarr-python read the images of OME, for the suite over all pairs."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import tifffile
import zarr
from pairs import Pairs


def by_tifffile(path: Path) -> np.ndarray:
    """The first image; tifffile leaves out axes of length 1."""
    with tifffile.TiffFile(path) as file:
        assert file.series[0].kind == "ome"
        return np.asarray(file.series[0].asarray())


def by_zarr(path: Path) -> np.ndarray:
    """The whole image: the first level of the one multiscale."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(path, mode="r")
        [image] = group.attrs["ome"]["multiscales"]
        return np.asarray(group[image["datasets"][0]["path"]][...])


# The model of OME-XML (2016-06) has no integers of 64 bits, no half floats and no empty images; a
# third axis is one of T, C and Z, which an array without names does not say.
IN_PAIRS = (
    Pairs(
        name="ometiff",
        suffix=".ome.tif",
        read=by_tifffile,
        images={
            ("bool", (4, 6)): "=", ("uint8", (4, 6)): "=", ("uint16_big", (4, 6)): "=",
            ("float64", (4, 6)): "=", ("complex64", (4, 6)): "=", ("uint8", (4, 6, 3)): "~",
            ("float32", (2, 3, 4, 3)): "~", ("int64", (4, 6)): "x", ("float16", (4, 6)): "x",
            ("text", (4, 6)): "x", ("structured", (4, 6)): "x", ("uint8", (5,)): "x",
            ("uint8", ()): "x", ("uint8", (2, 0, 3)): "x",
        },
    ),
    Pairs(
        name="omezarr",
        suffix=".ome.zarr",
        read=by_zarr,
        images={
            ("bool", (4, 6)): "=", ("uint8", (4, 6)): "=", ("uint16_big", (4, 6)): "=",
            ("int64", (4, 6)): "=", ("float16", (4, 6)): "=", ("complex64", (4, 6)): "=",
            ("uint8", (1, 1)): "=", ("uint8", (4, 6, 3)): "~", ("float32", (2, 3, 4, 3)): "~",
            ("uint8", (2, 0, 3)): "~", ("structured", (4, 6)): "x", ("uint8", (5,)): "x",
            ("uint8", ()): "x",
        },
    ),
)  # fmt: skip
