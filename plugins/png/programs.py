"""How other libraries read an image: lines to paste, for files whose samples they do not change."""

from __future__ import annotations

from .tables import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Array

# channels -> the mode in which Pillow has the samples, expanded as they are here
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_PILLOW = """\
import numpy as np
from PIL import Image  # pip install pillow
with Image.open(FILE) as image:
    x = np.asarray(image.convert("MODE"))"""
_PYPNG = """\
import numpy as np
import png  # pip install pypng; Pillow keeps 8 of 16 bits of colours
with open(FILE, "rb") as file:
    x = np.vstack([*png.Reader(file).read()[2]]).reshape(SHAPE)"""
_MATLAB = "x = imread(FILE);"
_LIBPNG = """\
#include <stdio.h>
#include <png.h>  /* cc read.c -lpng */

int main(void) {
    png_FILE_p f = fopen(FILE, "rb");
    png_structp p = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop i = png_create_info_struct(p);
    if (!f || !i)
        return 1;
    png_init_io(p, f);
    png_read_png(p, i, PNG_TRANSFORM_TRANSFORMS, NULL);
    png_bytepp x = png_get_rows(p, i);  /* INDEX */
    return !x;
}"""


def programs(array: Array) -> dict[str, str]:
    """Pillow or pypng, MATLAB and libpng, of one image. Raises nothing.

    Left out are options of `read` that give another array, Julia's PNGFiles, which corrects the
    gamma, and R's png, which gives parts of 1.
    """
    channels = array.shape[2] if array.ndim == 3 else 1
    usual = array.element.kind == "uint" and array.index_order == "C" and array.ndim in (2, 3)
    fields = array.meta.formats.get(NAME, {})
    as_stored = "native" in fields or ("color_type" in fields and channels < 3)
    if not usual or channels not in _MODES or as_stored:
        return {}
    found = {"Python": _PILLOW.replace("MODE", _MODES[channels])}
    if array.element.nbytes > 1:
        found["Python"] = _PYPNG.replace("SHAPE", str(array.shape))
    usual_samples = fields.keys().isdisjoint(("bit_depth", "color_type", "trns"))
    if usual_samples and channels in (1, 3) and "sbit" not in fields:
        found["MATLAB"] = _MATLAB
    transforms = ["SWAP_ENDIAN"] * (array.element.nbytes > 1)
    if not usual_samples or channels in (2, 4):
        transforms.append("EXPAND")
    if usual_samples or "color_type" in fields or "trns" not in fields:
        found["C"] = _libpng(array, channels, transforms or ["IDENTITY"])
    return found


def _libpng(array: Array, channels: int, transforms: list[str]) -> str:
    row = "x[i]" if array.element.nbytes == 1 else "((png_uint_16p)x[i])"
    index = f"{row}[j] is element [i, j]"
    if channels > 1:
        index = f"{row}[j * {channels} + k] is element [i, j, k]"
    words = " | PNG_TRANSFORM_".join(transforms)
    return _LIBPNG.replace("TRANSFORMS", words).replace("INDEX", index)
