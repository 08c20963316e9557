"""Translation of a page's tags to metadata; shape and axes by tifffile's ImageDescription.

tifffile notes a shape, ImageJ and OME (https://docs.openmicroscopy.org/ome-model/) the axes of the
pages. A description that does not fit the pages and their order is not used.
"""

from __future__ import annotations

import json
import logging
import re
from html import unescape
from math import isfinite, prod
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from raconvert.plugin import Axis

from ..metadata import NAMESPACE, metadata_of
from .ome import own_series, read_units

if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.metadata import Metadata
    from raconvert.files.limits import Limits

RESOLUTION_UNITS = {1: "none", 2: "inch", 3: "cm"}  # TIFF 6.0, tag 296
# Tags that describe the storage of pixels, or that are metadata here.
KNOWN = {*range(254, 260), *range(262, 267), 270, 273, 274, *range(277, 285), 288, 289, 292, 293,
         296, 305, 306, 317, 320, *range(322, 326), 330, *range(338, 342), 347, *range(512, 516),
         530, 532, 700, 32996, 34675, 50674}  # fmt: skip
TAGS = (("icc", 34675, bytes), ("xmp", 700, bytes), ("software", 305, str))
RGB = 2  # of the photometric interpretation
# Samples, and the meaning of those beyond the colours (tag 338), as kinds of an axis
COLORS = {(3, ()): "RGB-color", (4, (1,)): "RGBA-color", (4, (2,)): "RGBA-color"}
MAX_RANK = 64  # as many axes as numpy has
NO_UNITS = ("", "pixel", "pixels", "inch")  # inches are ImageJ's word for dots per inch
# As written by ImageJ (escaped), by others with the micro sign, and with the Greek letter.
MICRONS = ("um", "micron", "microns", "\\u00B5m", "\N{MICRO SIGN}m", "\N{GREEK SMALL LETTER MU}m")


def metadata_of_page(page: Any) -> Metadata:
    """The metadata in the tags of a page, the description unchanged."""
    value, table = page.tags.valueof, page.colormap
    fields = {name: value(code) for name, code, kind in TAGS if isinstance(value(code), kind)}
    pairs, unit = [value(282), value(283)], RESOLUTION_UNITS.get(value(296, 2))
    usual = unit == "none" and set(pairs) <= {(0, 1), (1, 1)}
    if all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs) and unit and not usual:
        fields["resolution"] = [*([int(n) for n in pair] for pair in pairs), unit]
    if value(274) in range(2, 9):
        fields["orientation"] = int(value(274))
    if not (_is_decoded_to_rgb(page) or page.photometric == 1 + (page.samplesperpixel in (3, 4))):
        fields["photometric"] = getattr(page.photometric, "name", str(page.photometric)).lower()
    if table is not None:
        fields["colormap"] = np.array(table, "<u2").tobytes()
    if page.extrasamples != (2,):
        fields["extra_samples"] = [int(n) for n in page.extrasamples]
    return metadata_of(fields, page.description or None)


def _is_decoded_to_rgb(page: Any) -> bool:
    """True if the pixels are YCbCr that libjpeg decodes to RGB."""
    kind = page.compression, page.photometric, page.planarconfig
    return kind == (7, 6, 1) and not page.extrasamples


def planar_axes(page: Any, rank: int) -> list[Axis]:
    """The axes of pages with each sample in a plane of its own: samples, rows, columns."""
    rgb = page.photometric == RGB and COLORS.get((page.samplesperpixel, page.extrasamples))
    return sample_planes(rgb or "list", rank)


def sample_planes(kind: str, rank: int) -> list[Axis]:
    """The axes S (of a kind), Y and X of planes of samples, behind unnamed axes."""
    return [*[Axis()] * (rank - 3), Axis("S", kind=kind), Axis("Y"), Axis("X")]


def described(file: Any, text: str, pages: int, page: Any, limits: Limits) -> Any:
    """The series of all pages, as tifffile has it, if the description fits them; else None.

    Its field `text` is the rest of the description. Tifffile parses ImageJ and OME; its own note of
    a shape is parsed here, since it cannot name the axes of all shapes.
    """
    if len(text) > limits.record_bytes + limits.page_characters * pages or "<!DOCTYPE" in text:
        return None
    if text.startswith('{"shape":'):
        return _shaped(text, page.dtype.itemsize)
    if file is None:
        return None
    if "<OME" in text[:4096]:  # tifffile believes whatever sizes there are
        sizes = [int(n) for n in re.findall(r'\bSize[ZCT]="([0-9]{1,9})"', text)]
        if len(sizes) != 3 or prod(sizes) not in (pages, pages * page.samplesperpixel):
            return None
        if own := own_series(text, page.dtype.itemsize):
            return own
    if not (file.is_imagej or file.is_ome):
        return None
    log = logging.getLogger("tifffile")
    log.disabled = True  # its warnings about a text from another file do not matter
    try:
        first, *others = file.series
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return None
    finally:
        log.disabled = False
    if others or first.kind not in ("ome", "imagej") or len(first.shape) > MAX_RANK:
        return None
    first.text = text
    in_order = all(page and page.index == number for number, page in enumerate(first.pages))
    return first if in_order else None


def _shaped(text: str, itemsize: int) -> Any:
    """Parse a note of tifffile: ``{"shape": [...], "axes": "...", "description": ...}``."""
    try:
        note = json.loads(text)
        shape, axes = tuple(note["shape"]), note.get("axes", "")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    is_valid = all(type(n) is int and 0 < n < 1 << 63 for n in shape)
    if len(shape) > MAX_RANK or not is_valid or not isinstance(axes, str):
        return None
    rest = note.get("description") if note.keys() <= {"shape", "description"} else text
    nbytes = prod(shape) * itemsize
    return SimpleNamespace(kind="", shape=shape, axes=axes, nbytes=nbytes, text=rest)


def with_axes(meta: Metadata, file: Any, series: Any, shape: tuple[int, ...]) -> Metadata:
    """Add the axes of a description, with the shape and axes that let it be written again."""
    steps = getattr(series, "steps", None)
    if steps is not None:  # a description that was written here; it is not written as it is
        if series.shape != shape:
            return meta
        axes = [_axis(letter, *steps.get(letter, (None, ""))) for letter in series.axes]
        return meta.replace(axes=axes, description=series.text or None)
    text, meta = meta.description or "", meta.replace(description=series.text)
    if series.shape == shape and len(series.axes) == len(shape) > 0:
        resolution = meta.formats.get(NAMESPACE, {}).get("resolution")
        steps = _steps(text, file and file.imagej_metadata, resolution)
        axes = [_axis(name, *steps.get(name, (None, None))) for name in series.axes]
        as_read = {"shape": list(shape), "axes": [axis.to_dict() for axis in axes][::-1]}
        meta = meta.replace(axes=axes).with_format(NAMESPACE, series=as_read)
    return meta


def _steps(text: str, imagej: Any, resolution: Any) -> dict[str, tuple[Any, Any]]:
    """The spacing and units of axes in a description of ImageJ or OME, by their letters."""
    if imagej:
        units = imagej.get("unit") or ""
        dots = zip("XY", resolution or (), strict=False)
        steps = {name: (unit / pixels if pixels else 0, units) for name, (pixels, unit) in dots}
        return steps | {"T": (imagej.get("finterval"), "s"), "Z": (imagej.get("spacing"), units)}
    tag = re.search(r"<(?:\w+:)?Pixels\s([^>]*)>", text) if "<OME" in text[:4096] else None
    fields = dict(re.findall(r'(\w+)="([^"]*)"', tag[1] if tag else ""))
    words = {"T": "TimeIncrement"} | {name: f"PhysicalSize{name}" for name in "XYZ"}
    return {
        name: (
            fields.get(word),
            read_units(unescape(fields.get(f"{word}Unit", "s" if name == "T" else "um"))),
        )
        for name, word in words.items()
    }


def _axis(name: str, spacing: Any, units: Any) -> Axis:
    """An axis; its spacing is only used with units, or if these are declared unknown (None)."""
    try:
        step = float(spacing or 0)
    except (TypeError, ValueError):
        step = 0.0
    units = "um" if units in MICRONS else units and str(units)
    if not isfinite(step) or step <= 0 or units in NO_UNITS:
        return Axis(name=name)
    return Axis(name=name, spacing=step, units=units)
