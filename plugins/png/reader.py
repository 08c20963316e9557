"""A PNG file as a lazy array."""

from __future__ import annotations

from io import BufferedReader

from raconvert.plugin import Array, Bundle, Metadata, Source, element

from . import metadata
from .header import scan
from .tables import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from raconvert.arrays.bundle import Alike

    from .header import Png
    from .tables import Frame


def read_image(source: Source, *, frames: str, **options: str) -> Bundle:
    """The image of a file, or with ``frames=all`` all of them; see the package's `read`."""
    with BufferedReader(source.open()) as file:
        png = scan(file, source.size, source.path, source.limits)
    channels = png.array_channels(palette=options["palette"], trns=options["trns"])
    dims = (channels,) * (channels > 0) + (png.header.width, png.header.height)
    fields = {**metadata.pixel_fields(png, **options), **metadata.fields_of(png)}
    images = None
    if frames == "all":
        from .frames import animation_fields, images_of

        images = images_of(png)
        dims += (len(images),)
        fields.update(animation_fields(png, images))
    else:
        png.notes.extend(metadata.animation_notes(png))
    array = Array(
        element("uint", png.header.sample_bytes),
        dims,
        name=source.stem,
        index_order="C",
        meta=Metadata(formats={NAME: fields} if fields else None),
        data=_Pixels(source, png, images, options),
    )
    alike = (lambda: _alike(source, png, options)) if images is None else None
    return Bundle([array], notes=png.notes, alike=alike)


def _alike(source: Source, png: Png, options: dict[str, str]) -> Alike | None:
    from .alike import alike_of

    return alike_of(source, png, options)


class _Pixels:
    """Decoder of the default image, or of all `images` composed, to an ndarray."""

    def __init__(
        self, source: Source, png: Png, images: list[Frame] | None, options: dict[str, str]
    ) -> None:
        self._source = source
        self._png = png
        self._images = images
        self._options = options

    def __call__(self) -> Any:
        return self._decoded(None)

    @property
    def some_rows(self) -> Callable[[Sequence[int]], Any] | None:
        """The decoder that returns only some rows; None for interlaced or composed images.

        All rows are decoded and checked nevertheless.
        """
        simple = self._images is None and not self._png.header.interlace
        return self._decoded if simple else None

    def _decoded(self, rows: Sequence[int] | None) -> Any:
        from .pixels import Expansion, decode

        source, png = self._source, self._png
        expansion = Expansion(png, **self._options)
        limit = source.max_memory
        with BufferedReader(source.open()) as file:
            if self._images is None:
                return decode(
                    file, png.idat, png.header, expansion, png=png, max_memory=limit, rows=rows
                )
            from .frames import compose

            return compose(file, png, self._images, expansion, path=source.path, max_memory=limit)


# Programs that read an image by other libraries, if these do not change its samples -------------


# The mode in which Pillow has the samples that `read` gives, by number of channels.
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
    """Programs by language that read one image: Pillow or pypng, MATLAB, libpng. Raises nothing.

    Empty for options of `read` that give another array. Left out are Julia's PNGFiles, which
    corrects the gamma, and R's png, which gives parts of 1.
    """
    channels = array.shape[2] if array.ndim == 3 else 1
    usual = array.element.kind == "uint" and array.index_order == "C" and array.ndim in (2, 3)
    fields = array.meta.formats.get(NAME, {})
    as_stored = "native" in fields or ("color_type" in fields and channels < 3)
    if not usual or channels not in _MODES or as_stored:
        return {}
    lines = {"Python": _PILLOW.replace("MODE", _MODES[channels])}
    if array.element.nbytes > 1:
        lines["Python"] = _PYPNG.replace("SHAPE", str(array.shape))
    usual_samples = fields.keys().isdisjoint(("bit_depth", "color_type", "trns"))
    if usual_samples and channels in (1, 3) and "sbit" not in fields:
        lines["MATLAB"] = _MATLAB
    transforms = ["SWAP_ENDIAN"] * (array.element.nbytes > 1)
    if not usual_samples or channels in (2, 4):
        transforms.append("EXPAND")
    if usual_samples or "color_type" in fields or "trns" not in fields:
        lines["C"] = _libpng(array, channels, transforms or ["IDENTITY"])
    return lines


def _libpng(array: Array, channels: int, transforms: list[str]) -> str:
    row = "x[i]" if array.element.nbytes == 1 else "((png_uint_16p)x[i])"
    index = f"{row}[j] is element [i, j]"
    if channels > 1:
        index = f"{row}[j * {channels} + k] is element [i, j, k]"
    words = " | PNG_TRANSFORM_".join(transforms)
    return _LIBPNG.replace("TRANSFORMS", words).replace("INDEX", index)
