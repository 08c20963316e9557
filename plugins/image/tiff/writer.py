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
from .metadata import COLORS, RESOLUTION_UNITS, sample_planes
from .ome import letters_of, lost_of, text_of

if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Array, Target

BIG_FROM = 0xF0000000  # bytes; above it the offsets of a classic TIFF may not be enough
MAX_PLANES = 0xFFFF  # of samples that each have a plane of a page
MAX_SAMPLES = 4  # a last axis that is longer is never taken for the samples


def written_fields(array: Array) -> tuple[set[str], list[str]]:
    """The fields of metadata that are written, and the facts of axes and space that OME lacks.

    "axes" and "space" are among the fields if the description, by tifffile or OME, has them.
    """
    kept = {"description", "series", "icc", "xmp", "orientation", "software"}
    kept |= {"resolution"} if _resolution(array) else set()
    if _tells_axes(array) or _is_planar(array):
        return kept | {"axes"}, []
    letters, made_up, reason = letters_of(array)
    if letters:
        return kept | {"axes", "space"}, [*lost_of(array, letters), *made_up]
    if not reason:
        return kept, []
    fields = [fields_of_axes([axis], *Axis.FIELDS) for axis in array.ra_axes]
    return kept | {"axes"}, [f"{', '.join(facts_of_axes(array, fields))}: {reason}"]


def page_shape(array: Array) -> tuple[int, ...]:
    """The shape of a page: (height, width, samples), with planes (samples, height, width)."""
    if _is_planar(array):
        return array.shape[-3:]
    shape = (1,) * (2 - array.ndim) + array.shape
    samples = array.ndim > 2 and shape[-1] <= MAX_SAMPLES and array.element.kind != "bool"
    letters = "" if _tells_axes(array) else letters_of(array)[0]
    if letters:
        samples = letters.endswith("S")
    samples = samples and (not _tells_axes(array) or array.ra_axes[0].name == "S")
    return shape[-3:] if samples else (*shape[-2:], 1)


def write_pages(array: Array, target: Target, compression: str) -> None:
    """Write the pages of an array; one page at a time is in memory."""
    page = page_shape(array)
    step, what = block_bytes(target.max_memory), f"a page of array '{array.name}'"
    check_memory(3 * prod(page) * array.element.nbytes, target.max_memory, what)
    shape = (array.count // prod(page), *page)
    shape = shape if shape[-1] > 1 or _is_planar(array) else shape[:-1]
    pages = target.counted(runs(array, prod(page), step))
    with open(name_of_open(target.open(), target.temp), "r+b") as file:  # tifffile needs a name
        out = tifffile.TiffWriter(file, byteorder="<", bigtiff=array.nbytes > BIG_FROM)
        out.write(
            (values.reshape(shape[1:]) for values in pages), shape=shape, buffersize=step,
            dtype=dtype_of(array.element), **_options(array, compression),
        )  # fmt: skip
        out.close()


def _options(array: Array, compression: str) -> dict[str, Any]:
    """The arguments of tifffile's `write`."""
    page, planar = page_shape(array), _is_planar(array)
    samples = page[0 if planar else -1]
    colours = array.ra_axes[2].kind in COLORS.values() if planar else samples > 2
    xmp, orientation = field(array, "xmp", bytes), field(array, "orientation", int)
    tags: list[tuple[int, int, int, Any, bool]] = [(700, 1, len(xmp), xmp, True)] if xmp else []
    tags += [(274, 3, 1, orientation, True)] if orientation in range(2, 9) else []
    options: dict[str, Any] = {
        "compression": "zlib" if compression == "deflate" else None,
        "photometric": "rgb" if colours else "minisblack",
        "planarconfig": "separate" if planar else "contig" if samples > 1 else None,
        "extrasamples": [2] if samples == (4 if colours else 2) else None,
        "description": _description(array) or None,
        **_resolution(array),
        "iccprofile": field(array, "icc", bytes),
        "extratags": tags,
        "software": (field(array, "software", str) or "").encode() or False,
    }
    given = {name: value for name, value in options.items() if value is not None}
    return {"metadata": None, **given}  # None, so that tifffile adds no description of its own


def _tells_axes(array: Array) -> bool:
    """True if the description tells shape and axes, since both are as they were read."""
    axes = [axis.to_dict() for axis in array.ra_axes]
    return bool(field(array, "series", dict) == {"shape": list(array.shape), "axes": axes})


def _is_planar(array: Array) -> bool:
    """True if the axes are those of pages with each sample in a plane of its own."""
    if array.ndim not in (3, 4) or not array.described or array.element.kind == "bool":
        return False
    if _tells_shape(array.meta.description or "") or len(array.ra_axes) != array.ndim:
        return False
    samples, kind = array.dims[2], array.ra_axes[2].kind or ""
    colours = any(kind == color and samples == n for (n, _), color in COLORS.items())
    fits = array.shape[:-3] != (1,) and 1 < samples <= MAX_PLANES
    if not (fits and (colours or kind == "list")):
        return False
    return list(array.ra_axes[::-1]) == sample_planes(kind, array.ndim)


def _description(array: Array) -> bytes:
    """The description in the metadata, with shape or axes if pages alone do not tell them."""
    letters = "" if _tells_axes(array) or _is_planar(array) else letters_of(array)[0]
    if letters:
        return text_of(array, letters).encode()
    text, page = array.meta.description or "", page_shape(array)
    pages = prod(array.shape) // prod(page)
    as_pages = (pages,) * (pages > 1) + (page if page[2] > 1 or _is_planar(array) else page[:2])
    if _tells_axes(array) or (as_pages == array.shape and not _tells_shape(text)):
        return text.encode()
    return json.dumps({"shape": array.shape} | ({"description": text} if text else {})).encode()


def _tells_shape(text: str) -> bool:
    """True if a reader would look for a shape in the description."""
    return text.startswith(("ImageJ=", '{"shape":')) or "<OME" in text[:4096]


def _resolution(array: Array) -> dict[str, Any]:
    """The arguments of tifffile's `write` for a resolution of two fractions, if it is valid."""
    units = {word: code for code, word in RESOLUTION_UNITS.items()}
    match field(array, "resolution", list):
        case [[int(), int()] as x, [int(), int()] as y, str(unit)] if unit in units:
            if 0 <= min(x + y) <= max(x + y) < 1 << 32:
                return {"resolution": (tuple(x), tuple(y)), "resolutionunit": units[unit]}
    return {}
