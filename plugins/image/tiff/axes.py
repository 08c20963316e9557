"""Shape and axes of the pages, as tifffile, ImageJ and OME note them in ImageDescription.

ImageJ (``ij.io.FileInfo``, ``FileSaver``): lines ``name=value``; ``frames``, ``slices`` and
``channels`` are the axes of the pages from the slowest to the fastest, ``spacing`` is the distance
of the slices and ``finterval`` the seconds between frames. X and Y are pixels per ``unit`` in the
resolution tags. OME (https://docs.openmicroscopy.org/ome-model/): one ``Pixels`` for each image;
``DimensionOrder`` lists the axes from the fastest, ``TiffData`` says which plane a page is. Used
only where there is one image in one file, with its pages in the order of the axes.
"""

from __future__ import annotations

import json
from math import isfinite, prod
from typing import TYPE_CHECKING, NamedTuple

from raconvert.plugin import Axis

if TYPE_CHECKING:
    from typing import Any

MAX_SAMPLES = 4  # a last axis that is longer is never taken for the samples
MAX_NOTED_RANK = 64  # as many as numpy has
# What is looked at of a description. Real ones have a few hundred characters for each page.
MAX_JSON_CHARS = 4 << 20
MAX_IMAGEJ_CHARS = 1 << 20
MAX_XML_CHARS = 16 << 20
MAX_XML_PARTS = 1 << 19  # elements and attributes
MAX_XML_TAG_BYTES = 1 << 20
MAX_XML_DEPTH = 256
_XML_PIECE = 1 << 16  # characters that are parsed at once
_NO_UNITS = {"pixel", "pixels", "inch"}  # inches are ImageJ's word for dots per inch
# As written by ImageJ (escaped), by others with the micro sign, and with the Greek letter.
_MICRONS = {"um", "micron", "microns", "\\u00B5m", "\N{MICRO SIGN}m", "\N{GREEK SMALL LETTER MU}m"}


class Described(NamedTuple):
    """The axes of the pages with their sizes, slowest first, and those of a page."""

    lead: list[tuple[Axis, int]]
    y: Axis
    x: Axis


def page_shape(shape: tuple[int, ...], kind: str) -> tuple[int, ...]:
    """(height, width, samples) of the pages of an array of this shape."""
    if len(shape) < 2:
        return (1, prod(shape), 1)
    has_samples = len(shape) > 2 and shape[-1] <= MAX_SAMPLES and kind != "bool"
    return shape[-3:] if has_samples else (*shape[-2:], 1)


def noted_shape(text: str) -> tuple[tuple[int, ...], dict[str, Any]] | None:
    """The shape that a description of tifffile's kind notes, and what else is in it.

    ``{"shape": [2, 3, 4, 5], ...}``; None for any other text.
    """
    if not text.startswith('{"shape":') or len(text) > MAX_JSON_CHARS:
        return None
    try:
        fields = json.loads(text)
        shape = fields.pop("shape")
        if len(shape) > MAX_NOTED_RANK or not all(type(n) is int and n > 0 for n in shape):
            return None
    except (ValueError, TypeError, RecursionError, KeyError, AttributeError):
        return None
    return tuple(shape), fields


def view(
    text: str, pages: int, page: tuple[int, ...], resolution: list[Any] | None
) -> tuple[tuple[int, ...], list[Axis]]:
    """The shape of all pages, and what is known of its axes, fastest first.

    `page` is (height, width, samples); `text` the description, which may say more of the pages
    than their number; `resolution` is the field of the namespace ``image``.
    """
    height, width, samples = page
    last = (samples,) * (samples > 1)
    shape, names = (pages,) * (pages > 1) + (height, width, *last), ""
    noted = noted_shape(text)
    if noted:
        text = str(noted[1].get("description", ""))
        tail = [n for n in shape[pages > 1 :] if n > 1]
        found = [n for n in noted[0] if n > 1]
        if prod(noted[0]) == prod(shape) and found[len(found) - len(tail) :] == tail:
            shape, names = noted[0], str(noted[1].get("axes", ""))
    said = described_axes(text, pages, samples, _pixels_per_unit(resolution))
    if said:
        whole = (*(size for _, size in said.lead), height, width, *last)
        if not noted or whole == shape:
            axes = [*(axis for axis, _ in said.lead), said.y, said.x, *[Axis(name="S")] * len(last)]
            return whole, axes[::-1]
    return shape, [Axis(name=name) for name in reversed(names)] if len(names) == len(shape) else []


def _pixels_per_unit(resolution: list[Any] | None) -> tuple[float, float] | None:
    """The resolution as two positive numbers; None if it is not that."""
    found = []
    for value in resolution[:2] if isinstance(resolution, list) and len(resolution) == 3 else []:
        pair = value if isinstance(value, list) and len(value) == 2 else [value, 1]
        if all(type(n) is int and n > 0 for n in pair):
            found.append(pair[0] / pair[1])
    return (found[0], found[1]) if len(found) == 2 else None


def described_axes(
    text: str, pages: int, samples: int, resolution: tuple[float, float] | None
) -> Described | None:
    """What ImageJ or OME says of this number of pages; None if nothing, or of other ones.

    `resolution` is the number of pixels per unit, x and y, as in the tags.
    """
    found = None
    if text.startswith("ImageJ="):
        found = _imagej(text, resolution)
    elif "<OME" in text[:4096] and len(text) <= MAX_XML_CHARS:
        found = _ome(text, pages, samples)
    if found is None or prod(size for _, size in found.lead) != pages:
        return None
    return found._replace(lead=[(axis, size) for axis, size in found.lead if size > 1])


def imagej_images(text: str) -> int:
    """The number of images in the description of an ImageJ file; 0 if it is none."""
    return _size(_imagej_fields(text).get("images")) if text.startswith("ImageJ=") else 0


def _imagej_fields(text: str) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in text[:MAX_IMAGEJ_CHARS].splitlines())


def _imagej(text: str, resolution: tuple[float, float] | None) -> Described:
    fields = _imagej_fields(text)
    units = _units(fields.get("unit"))
    steps = {"T": (_step(fields.get("finterval")), "s"), "Z": (_step(fields.get("spacing")), units)}
    lead = [
        (_axis(name, *steps.get(name, (None, None))), _size(fields.get(field, "1")))
        for name, field in (("T", "frames"), ("Z", "slices"), ("C", "channels"))
    ]
    x, y = (1 / n if units and resolution else None for n in resolution or (1, 1))
    return Described(lead, _axis("Y", y, units), _axis("X", x, units))


def _axis(name: str, spacing: float | None, units: str | None) -> Axis:
    return Axis(name=name, spacing=spacing, units=units if spacing else None)


def _units(name: str | None) -> str | None:
    return None if not name or name in _NO_UNITS else "um" if name in _MICRONS else name


def _size(text: str | None) -> int:
    """A positive whole number; 0 for everything else."""
    text = text or ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else 0


def _step(text: str | None) -> float | None:
    """A positive distance; None for everything else."""
    try:
        step = float(text or "")
    except ValueError:
        return None
    return step if isfinite(step) and step > 0 else None


# ------------------------------------------------------------------------------------------ OME


def _ome(text: str, pages: int, samples: int) -> Described | None:
    found = _Elements(pages)
    if not found.parse(text) or not found.pixels:
        return None
    pixels = found.pixels[0]
    order = pixels.get("DimensionOrder", "")
    sizes = {name: _size(pixels.get(f"Size{name}")) for name in "ZCT"}
    sizes["C"], odd = divmod(sizes["C"], samples)
    if sorted(order) != sorted("XYZCT") or order[:2] != "XY" or odd:
        return None
    if not _in_order(found.planes, order[2:], sizes):
        return None
    axes = {}
    for name in "ZCTYX":
        field = "TimeIncrement" if name == "T" else f"PhysicalSize{name}"
        default = "s" if name == "T" else "um"
        axes[name] = _axis(
            name, _step(pixels.get(field)), _units(pixels.get(f"{field}Unit", default))
        )
    return Described([(axes[n], sizes[n]) for n in order[:1:-1]], axes["Y"], axes["X"])


class _Elements:
    """The attributes of the only Pixels, and of its TiffData, of a text that describes no more.

    Each TiffData names at least one page, so that there are never more of them. The parser keeps
    every name and every open element: their number is bounded, too.
    """

    def __init__(self, pages: int) -> None:
        self.pixels: list[dict[str, str]] = []
        self.planes: list[dict[str, str]] = []
        self._pages = pages
        self._parts = self._depth = 0

    def parse(self, text: str) -> bool:
        """False if the text is damaged, or cannot describe so many pages."""
        from xml.parsers import expat

        parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.StartDoctypeDeclHandler = self._doctype
        given = 0
        try:
            for at in range(0, len(text), _XML_PIECE):
                piece = text[at : at + _XML_PIECE].encode()
                parser.Parse(piece, False)
                given += len(piece)
                if given - parser.CurrentByteIndex > MAX_XML_TAG_BYTES:
                    return False
            parser.Parse(b"", True)
        except (expat.ExpatError, ValueError):
            return False
        return True

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._parts += 1 + len(attributes)
        self._depth += 1
        local = name.rpartition(":")[2]
        if local in ("Pixels", "TiffData"):
            (self.pixels if local == "Pixels" else self.planes).append(attributes)
        many = len(self.pixels) > 1 or len(self.planes) > self._pages
        if many or self._parts > MAX_XML_PARTS or self._depth > MAX_XML_DEPTH:
            raise ValueError("has more elements than these pages need")

    def _end(self, _: str) -> None:
        self._depth -= 1

    def _doctype(self, *_: Any) -> None:
        raise ValueError("OME has no document type, and so no entities")


def _in_order(planes: list[dict[str, str]], order: str, sizes: dict[str, int]) -> bool:
    """True if the pages follow each other as the axes do, the first of `order` fastest."""
    total = prod(sizes.values())
    following = 0
    for plane in planes:
        number, stride = 0, 1
        for name in order:
            number += stride * _size(plane.get(f"First{name}", "0"))
            stride *= sizes[name]
        if (_size(plane.get("IFD", "0")), number) != (following, following):
            return False
        # Without PlaneCount: one plane if a page is named, else all.
        following += _size(plane.get("PlaneCount", "1" if "IFD" in plane else str(total)))
    return not planes or following == total
