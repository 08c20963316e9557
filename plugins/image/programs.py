"""Programs to paste that read an image with Pillow or tifffile, with the same samples as here."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Array

_PILLOW = """\
import numpy as np
from PIL import Image  # pip install pillow
with Image.open(FILE) as image:
    x = np.asarray(imageCONVERTED)"""
_TIFFFILE = """\
import tifffile  # pip install tifffile
x = tifffile.imread(FILE).reshape(SHAPE)"""
_MODES = {("bool", 2): "", ("uint", 2): "L", ("uint", 3): "RGB", ("uint", 4): "RGBA"}


def pillow_programs(array: Array) -> dict[str, str]:
    """The lines that read one image of bool or uint8 with Pillow, else empty. Raises nothing."""
    channels = array.shape[2] if array.ndim == 3 else 2
    mode = _MODES.get((array.element.kind, channels))
    if mode is None or array.index_order != "C" or array.element.nbytes > 1 or array.ndim > 3:
        return {}
    if "frames" in array.storage:  # Pillow composes them in another way
        return {}
    return {"Python": _PILLOW.replace("CONVERTED", f'.convert("{mode}")' if mode else "")}


def tiff_programs(array: Array) -> dict[str, str]:
    """The lines that read all pages with tifffile, one page of 8 or 16 bits also in MATLAB.

    Raises nothing.
    """
    from .tiff.pages import Pages

    is_number = array.element.kind in ("bool", "int", "uint", "float", "complex")
    if not is_number or array.index_order != "C" or not isinstance(array.data, Pages):
        return {}
    pages = array.data
    if pages.planar and not pages.planes_first:  # tifffile has them in another order
        return {}
    lines = {"Python": _TIFFFILE.replace("SHAPE", str(array.shape))}
    is_one = array.storage.get("pages") == 1 and (array.ndim == 2 or array.shape[2:] == (3,))
    if is_one and not pages.planar and array.element.kind == "uint" and array.element.nbytes <= 2:
        lines["MATLAB"] = "x = imread(FILE);"
    return lines
