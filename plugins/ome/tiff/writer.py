"""Writing: pages with tifffile, lower levels below them as SubIFDs, and the OME-XML of all."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import tifffile

from raconvert.arrays.blocks import block_bytes, runs
from raconvert.arrays.memory import check_memory
from raconvert.files.paths import name_of_open
from raconvert.plugin import dtype_of

from ...image.tiff.writer import BIG_FROM
from ..axes import NAMESPACE
from ..levels import levels_of
from ..options import count_of
from .metadata import document_of, plate_of

if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Array, Bundle, Target


def write_images(
    bundle: Bundle, letters: list[str], target: Target, count: str, how: str, compression: str
) -> None:
    """Write all images of a bundle; one page at a time is in memory."""
    space = bundle.formats.get(NAMESPACE)
    plate = plate_of(bundle.names, space.get("plate") if isinstance(space, dict) else None)
    text = document_of(bundle.arrays, letters, plate).encode()
    total = sum(array.nbytes for array in bundle.arrays) * (1 if count == "1" else 2)
    with open(name_of_open(target.open(), target.temp), "r+b") as file:  # tifffile needs a name
        out = tifffile.TiffWriter(file, byteorder="<", bigtiff=total + len(text) > BIG_FROM)
        for array, own in zip(bundle.arrays, letters, strict=True):
            plane = len(own) - 2 - own.endswith("s")
            wanted = count_of(count, array.dims[::-1], plane)
            levels = levels_of(array, wanted, plane, how, target.max_memory)
            if len(levels) < wanted and count != "auto":
                target.notes.append(
                    f"image '{array.name}' has {len(levels)} levels: "
                    "the last one is a single element wide and high"
                )
            options: dict[str, Any] = {"description": text, "subifds": len(levels) - 1}
            for number, level in enumerate(levels):
                _write(out, level, plane, target, compression, options, counted=not number)
                options = {"subfiletype": 1}
            text = b""
        out.close()


def _write(
    out: Any, array: Array, plane: int, target: Target, compression: str,
    options: dict[str, Any], *, counted: bool,
) -> None:  # fmt: skip
    """Write a level of an image, page by page."""
    shape = array.dims[::-1]
    page, samples = shape[plane:], prod(shape[plane + 2 :])
    step, what = block_bytes(target.max_memory), f"a page of array '{array.name}'"
    check_memory(3 * prod(page) * array.element.nbytes, target.max_memory, what)
    pages = runs(array, prod(page), step)
    pages = target.counted(pages) if counted else pages
    options = {name: value for name, value in options.items() if value}
    out.write(
        (values.reshape(page) for values in pages),
        shape=(prod(shape[:plane]), *page), dtype=dtype_of(array.element), buffersize=step,
        photometric="rgb" if samples > 2 else "minisblack",
        planarconfig="contig" if samples > 1 else None,
        extrasamples=[2] if samples in (2, 4) else None,
        compression="zlib" if compression == "deflate" else None,
        software=False, metadata=None, **options,
    )  # fmt: skip
