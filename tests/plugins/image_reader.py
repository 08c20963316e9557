"""TIFF with tifffile, other images with Pillow, for the suites over all pairs of formats."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
from pairs import Pairs, quiet


def write_tiff(path: Path, values: np.ndarray) -> None:
    """Write with tifffile, which notes the shape and, unless told otherwise, its own name."""
    import tifffile

    photometric = "rgb" if values.ndim == 3 and values.shape[-1] in (3, 4) else "minisblack"
    with quiet():
        tifffile.imwrite(path, values, photometric=photometric, software=False)


def read_tiff(path: Path) -> np.ndarray:
    import tifffile

    with quiet():
        return tifffile.imread(path)


def pillow(path: Path) -> np.ndarray:
    from PIL import Image

    with Image.open(path) as image:
        return np.array(image)


def netpbm(path: Path) -> np.ndarray:
    """Return a binary PGM or PPM, of which Pillow gives 16-bit colours as 8-bit ones."""
    magic, width, height, top, data = re.match(
        rb"P([56])\s+(\d+)\s+(\d+)\s+(\d+)\s(.*)", path.read_bytes(), re.DOTALL
    ).groups()  # type: ignore[union-attr]
    shape = (int(height), int(width), *([3] if magic == b"6" else []))
    return np.frombuffer(data, "u1" if int(top) < 256 else ">u2").reshape(shape)


def can_write_tiff(values: np.ndarray) -> bool:
    number = values.dtype.kind in "iufcb" and values.dtype != ml_dtypes.bfloat16
    return number and 0 not in values.shape and values.ndim > 1


# TIFF: numbers of every width, but for the element types that only a user knows; no empty axes.
# What the others hold without loss; of anything else they are only asked to refuse it. JPEG never is
# exact; WebP is written lossless.
IN_PAIRS = (
    Pairs(
        name="tiff",
        suffix=".tif",
        read=read_tiff,
        write=write_tiff,
        can_write=can_write_tiff,
        order="C",
        few=True,
        types="""
            = bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
              complex64 complex128 int16_big uint16_big int64_big float32_big complex128_big
            x bfloat16 bytes text text_big datetime seconds timedelta structured void
        """,
        shapes="""
            = () 5 4,6 6,4 1,1 4,6,1 1,6,4 4,6,2 2,6,4 4,6,3 3,6,4 4,6,5 5,6,4 1,1,3,1 1,3,1,1
              2,3,4,3 3,4,3,2
            x 0 4,0 0,4 2,0,3 3,0,2
        """,
    ),
    Pairs(
        name="jpeg",
        suffix=".jpg",
        read=pillow,
        images={("uint8", (4, 6)): "x", ("uint8", (4, 6, 3)): "x", ("float32", (4, 6)): "x"},
    ),
    Pairs(
        name="gif",
        suffix=".gif",
        read=pillow,
        images={("uint8", (4, 6)): "=", ("float32", (4, 6)): "x", ("uint16", (4, 6)): "x"},
    ),
    Pairs(
        name="webp",
        suffix=".webp",
        read=pillow,
        images={("uint8", (4, 6, 3)): "=", ("uint16", (4, 6, 3)): "x"},
    ),
    Pairs(
        name="bmp",
        suffix=".bmp",
        read=pillow,
        images={("uint8", (4, 6)): "=", ("uint8", (4, 6, 3)): "=", ("int16", (4, 6)): "x"},
    ),
    Pairs(
        name="netpbm",
        suffix=".pnm",
        read=netpbm,
        images={("uint8", (4, 6)): "=", ("uint16", (4, 6, 3)): "=", ("float64", (4, 6)): "x"},
    ),
)
