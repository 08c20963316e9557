"""Programs to paste in which Pillow and tifffile read an image, with the same samples as here."""

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
    """Pillow, of one image of bool or uint8. Raises nothing."""
    channels = array.shape[2] if array.ndim == 3 else 2
    mode = _MODES.get((array.element.kind, channels))
    if mode is None or array.index_order != "C" or array.element.nbytes > 1 or array.ndim > 3:
        return {}
    if "frames" in array.storage:  # composed here
        return {}
    return {"Python": _PILLOW.replace("CONVERTED", f'.convert("{mode}")' if mode else "")}


def tiff_programs(array: Array) -> dict[str, str]:
    """tifffile, of all pages; MATLAB, of one page of 8 or 16 bits. Raises nothing."""
    from .tiff.pages import Pages

    known = array.element.kind in ("bool", "int", "uint", "float", "complex")
    if not known or array.index_order != "C":
        return {}
    if not isinstance(array.data, Pages):
        return {}
    pages = array.data
    if pages.planar and not pages.planes_first:  # of another order to tifffile
        return {}
    lines = {"Python": _TIFFFILE.replace("SHAPE", str(array.shape))}
    one = array.storage.get("pages") == 1 and (array.ndim == 2 or array.shape[2:] == (3,))
    if one and not pages.planar and array.element.kind == "uint" and array.element.nbytes <= 2:
        lines["MATLAB"] = "x = imread(FILE);"
    return lines
