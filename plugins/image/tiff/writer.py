"""Writing: pages through imageio with tifffile pinned."""

from __future__ import annotations

import json
from math import prod
from typing import TYPE_CHECKING

from raconvert.arrays.blocks import block_bytes, check_memory, runs
from raconvert.files.places import name_of_open

from ..metadata import fields_of, part
from ..reader import guarded
from .tables import UNITS

if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Array, Target

BIG_FROM = 0xF0000000  # bytes; above it the offsets of a classic TIFF may not be enough
MAX_SAMPLES = 4  # a last axis that is longer is never taken for the samples
OF_EVERY_PAGE = ("metadata", "software", "photometric", "planarconfig", "extrasamples",
                 "compression", "contiguous", "colormap")  # fmt: skip


def kept_fields(array: Array) -> set[str]:
    """The metadata that come back: the axes only if the description tells them."""
    fields = fields_of(array)
    kept = {"description", "series", "icc", "xmp", "orientation", "software", "shaped"}
    kept |= {"axes"} if _tells_axes(array) else set()
    kept |= {"resolution"} if _resolution(fields) else set()
    kept |= {"photometric", "colormap"} if 0 not in array.dims and _colors(array, fields) else set()
    return kept


def page_shape(array: Array) -> tuple[int, ...]:
    """(height, width, samples) of the pages of an array."""
    shape = array.shape
    if len(shape) < 2:
        return (1, prod(shape), 1)
    samples = len(shape) > 2 and shape[-1] <= MAX_SAMPLES and array.element.kind != "bool"
    return shape[-3:] if samples else (*shape[-2:], 1)


def write_pages(array: Array, target: Target, compression: str) -> None:
    """Write the pages of an array; one page at a time is in memory."""
    import imageio.v3 as iio

    height, width, samples = page = page_shape(array)
    what = f"a page of array '{array.name}'"
    check_memory(3 * prod(page) * array.element.nbytes, target.max_memory, what)
    first = _options(array, samples, compression)
    others = {name: first[name] for name in OF_EVERY_PAGE if name in first}
    shape = (height, width) + (samples,) * (samples > 1)
    big = array.nbytes > BIG_FROM
    pages = target.counted(runs(array, prod(page), block_bytes(target.max_memory)))
    open_tiff: Any = iio.imopen  # whose types do not know of the options that it hands on

    def backend() -> Any:
        return guarded(target.path, "the TIFF to write", writing=True)

    name = name_of_open(target.open(), target.temp)
    with open(name, "r+b") as file:  # tifffile wants a file with a name
        with backend():
            opened = open_tiff(file, "w", plugin="tifffile", byteorder="<", bigtiff=big)
        try:
            for number, values in enumerate(pages):
                with backend():
                    opened.write(values.reshape(shape), **(others if number else first))
        finally:
            with backend():
                opened.close()


def _options(array: Array, samples: int, compression: str) -> dict[str, Any]:
    """Tifffile's arguments for the first page; those that are None are left out."""
    fields = fields_of(array)
    resolution = _resolution(fields) or (None, None)
    options: dict[str, Any] = {
        "compression": "zlib" if compression == "deflate" else None,
        "contiguous": compression == "none" and array.element.kind != "bool",
        "photometric": "rgb" if samples in (3, 4) else "minisblack",
        "planarconfig": "contig" if samples > 1 else None,
        "extrasamples": [2] if samples in (2, 4) else None,
        "description": _description(array) or None,
        "resolution": resolution[0],
        "resolutionunit": resolution[1],
        "iccprofile": part(fields, "icc", bytes),
        "extratags": _tags(fields),
        "software": part(fields, "software", str) or False,
        **_colors(array, fields),
    }
    # No description of tifffile's own.
    return {"metadata": None} | {name: v for name, v in options.items() if v is not None}


def _colors(array: Array, fields: dict[str, Any]) -> dict[str, Any]:
    """White is zero, or a colour map, where they fit the array."""
    word, table = part(fields, "photometric", str), part(fields, "colormap", bytes) or b""
    bits, grey = 8 * array.element.nbytes, page_shape(array)[2] == 1
    if grey and word == "miniswhite" and not table:
        return {"photometric": word}
    if (
        grey
        and word == "palette"
        and array.element.kind == "uint"
        and len(table) == 6 << min(bits, 16)
    ):
        import numpy as np

        return {"photometric": word, "colormap": np.frombuffer(table, "<u2").reshape(3, -1)}
    return {}


def _tells_axes(array: Array) -> bool:
    """True if the description tells shape and axes: both are as they were read."""
    series = part(fields_of(array), "series", dict) or {}
    axes = [axis.to_dict() for axis in array.meta.axes]
    return series.get("shape") == list(array.shape) and series.get("axes") == axes


def _description(array: Array) -> bytes:
    """The text of the metadata, and the shape where pages do not say it."""
    text, page = array.meta.description or "", page_shape(array)
    pages = prod(array.shape) // prod(page)
    plain = (pages,) * (pages > 1) + (*page[:2], *page[2:] * (page[2] > 1))
    speaks = text.startswith(("ImageJ=", '{"shape":')) or "<OME" in text[:4096]
    shaped = part(fields_of(array), "shaped", dict) or {} if _tells_axes(array) else {}
    if (_tells_axes(array) and not shaped) or (plain == array.shape and not speaks):
        return text.encode()
    content = {"shape": list(array.shape), **shaped} | ({"description": text} if text else {})
    return json.dumps(content).encode()


def _resolution(fields: dict[str, Any]) -> tuple[Any, int] | None:
    """The resolution as two fractions, and the number of its unit, if a TIFF can have them."""
    match part(fields, "resolution", list):
        case [int() | [int(), int()] as x, int() | [int(), int()] as y, unit]:
            pairs = [value if isinstance(value, list) else [value, 1] for value in (x, y)]
            if unit == "m":  # as per centimetre
                unit, pairs = "cm", [[pair[0], 100 * pair[1]] for pair in pairs]
            codes = [code for code, word in UNITS.items() if word == unit]
            if codes and 0 <= min(map(min, pairs)) <= max(map(max, pairs)) < 1 << 32:
                return tuple(map(tuple, pairs)), codes[0]
    return None


def _tags(fields: dict[str, Any]) -> list[tuple[int, int, int, Any, bool]]:
    """Tifffile's extra tags: XMP and orientation."""
    xmp, orientation = part(fields, "xmp", bytes), part(fields, "orientation", int)
    found = [(700, 1, len(xmp), xmp, True)] if xmp else []
    return found + ([(274, 3, 1, orientation, True)] if orientation in range(2, 9) else [])
