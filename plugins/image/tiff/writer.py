"""Writing: pages with tifffile."""

from __future__ import annotations

import json
from math import prod
from typing import TYPE_CHECKING

import tifffile

from raconvert.arrays.blocks import block_bytes, runs
from raconvert.arrays.memory import check_memory
from raconvert.files.paths import name_of_open
from raconvert.plugin import Axis, dtype_of, facts_of_axes, fields_of_axes

from ..metadata import field
from .metadata import RESOLUTION_UNITS
from .ome import letters_of, lost_of, text_of

if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Array, Target

BIG_FROM = 0xF0000000  # bytes; above it the offsets of a classic TIFF may not be enough
MAX_SAMPLES = 4  # a last axis that is longer is never taken for the samples


def kept_fields(array: Array) -> tuple[set[str], list[str]]:
    """List the metadata that will be read back (axes only if described), and the metadata lost.

    What is lost are the fields of axes and of their space that OME has no word for.
    """
    kept = {"description", "series", "icc", "xmp", "orientation", "software"}
    kept |= {"resolution"} if _resolution(array) else set()
    if _tells_axes(array):
        return kept | {"axes"}, []
    letters, made_up, reason = letters_of(array)
    if letters:
        return kept | {"axes", "space"}, [*lost_of(array, letters), *made_up]
    if not reason:
        return kept, []
    said = [fields_of_axes([axis], *Axis.FIELDS) for axis in array.ra_axes]
    return kept | {"axes"}, [f"{', '.join(facts_of_axes(array, said))}: {reason}"]


def page_shape(array: Array) -> tuple[int, ...]:
    """(height, width, samples) of the pages of an array."""
    shape = (1,) * (2 - array.ndim) + array.shape
    samples = array.ndim > 2 and shape[-1] <= MAX_SAMPLES and array.element.kind != "bool"
    letters = "" if _tells_axes(array) else letters_of(array)[0]
    if letters:
        samples = letters.endswith("S")
    samples = samples and (not _tells_axes(array) or array.ra_axes[0].name == "S")
    return shape[-3:] if samples else (*shape[-2:], 1)


def write_pages(array: Array, target: Target, compression: str) -> None:
    """Write the pages of an array; one page at a time is in memory."""
    height, width, samples = page = page_shape(array)
    step, what = block_bytes(target.max_memory), f"a page of array '{array.name}'"
    check_memory(3 * prod(page) * array.element.nbytes, target.max_memory, what)
    shape = (array.count // prod(page), height, width) + (samples,) * (samples > 1)
    pages = target.counted(runs(array, prod(page), step))
    with open(name_of_open(target.open(), target.temp), "r+b") as file:  # tifffile wants a name
        out = tifffile.TiffWriter(file, byteorder="<", bigtiff=array.nbytes > BIG_FROM)
        out.write(
            (values.reshape(shape[1:]) for values in pages), shape=shape, buffersize=step,
            dtype=dtype_of(array.element), **_options(array, samples, compression),
        )  # fmt: skip
        out.close()


def _options(array: Array, samples: int, compression: str) -> dict[str, Any]:
    """Tifffile's arguments; those that are None are left out."""
    xmp, orientation = field(array, "xmp", bytes), field(array, "orientation", int)
    tags: list[tuple[int, int, int, Any, bool]] = [(700, 1, len(xmp), xmp, True)] if xmp else []
    tags += [(274, 3, 1, orientation, True)] if orientation in range(2, 9) else []
    options: dict[str, Any] = {
        "compression": "zlib" if compression == "deflate" else None,
        "photometric": "rgb" if samples > 2 else "minisblack",
        "planarconfig": "contig" if samples > 1 else None,
        "extrasamples": [2] if samples in (2, 4) else None,
        "description": _description(array) or None,
        **_resolution(array),
        "iccprofile": field(array, "icc", bytes),
        "extratags": tags,
        "software": (field(array, "software", str) or "").encode() or False,
    }
    # No description of tifffile's own.
    return {"metadata": None} | {name: v for name, v in options.items() if v is not None}


def _tells_axes(array: Array) -> bool:
    """True if the description tells shape and axes: both are as they were read."""
    axes = [axis.to_dict() for axis in array.ra_axes]
    return bool(field(array, "series", dict) == {"shape": list(array.shape), "axes": axes})


def _description(array: Array) -> bytes:
    """The text of the metadata, and the shape where pages do not say it."""
    letters = "" if _tells_axes(array) else letters_of(array)[0]
    if letters:
        return text_of(array, letters).encode()
    text, page = array.meta.description or "", page_shape(array)
    pages = prod(array.shape) // prod(page)
    as_pages = (pages,) * (pages > 1) + (*page[:2], *page[2:] * (page[2] > 1))
    speaks = text.startswith(("ImageJ=", '{"shape":')) or "<OME" in text[:4096]
    if _tells_axes(array) or (as_pages == array.shape and not speaks):
        return text.encode()
    return json.dumps({"shape": array.shape} | ({"description": text} if text else {})).encode()


def _resolution(array: Array) -> dict[str, Any]:
    """Tifffile's arguments for a resolution of two fractions, if a TIFF can have it."""
    units = {word: code for code, word in RESOLUTION_UNITS.items()}
    match field(array, "resolution", list):
        case [[int(), int()] as x, [int(), int()] as y, str(unit)] if unit in units:
            if 0 <= min(x + y) <= max(x + y) < 1 << 32:
                return {"resolution": (tuple(x), tuple(y)), "resolutionunit": units[unit]}
    return {}
