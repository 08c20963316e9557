"""The axes of a stack as ImageJ and OME describe them in ImageDescription.

ImageJ (``ij.io.FileInfo``, ``FileSaver``): lines ``name=value``; ``frames``, ``slices`` and
``channels`` are the axes of the pages from the slowest to the fastest, ``spacing`` is the distance
of the slices and ``finterval`` the seconds between frames. X and Y are pixels per ``unit`` in the
resolution tags.

OME (https://docs.openmicroscopy.org/ome-model/, OME-TIFF): XML with one ``Pixels`` for each image;
``DimensionOrder`` lists the axes from the fastest, ``SizeC`` counts the samples of a page as well;
``TiffData`` says which plane a page is. Used only where there is one image in one file, with its
pages in the order of the axes.
"""

from __future__ import annotations

from collections import namedtuple
from math import isfinite, prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# `lead`: (name, size, spacing, units) of the axes of the pages, slowest first; `x` and `y`:
# (spacing, units). Spacing and units are None where nothing is said.
Described = namedtuple("Described", "lead y x")
Size = namedtuple("Size", "name size spacing units")

# What is looked at of a description. Real ones have a few hundred characters for each page.
MAX_IMAGEJ_CHARS = 1 << 20
MAX_XML_CHARS = 16 << 20
MAX_XML_PARTS = 1 << 19  # elements and attributes
MAX_XML_TAG_BYTES = 1 << 20
MAX_XML_DEPTH = 256
_XML_PIECE = 1 << 16  # characters that are parsed at once
_UNKNOWN: tuple[float | None, str | None] = (None, None)
_IMAGEJ = {"T": "frames", "Z": "slices", "C": "channels"}
_NO_UNITS = {"pixel", "pixels", "inch"}  # inches are ImageJ's word for dots per inch
# As written by ImageJ (escaped), by others with the micro sign, and with the Greek letter.
_MICRONS = {"um", "micron", "microns", "\\u00B5m", "\N{MICRO SIGN}m", "\N{GREEK SMALL LETTER MU}m"}


def described_axes(
    text: str, pages: int, samples: int, resolution: tuple[float, float] | None
) -> Described | None:
    """Return what ImageJ or OME says of this number of pages; None if nothing, or of other ones.

    `resolution` is the number of pixels per unit, x and y, as in the tags.
    """
    if text.startswith("ImageJ="):
        found: Described | None = _imagej(text, resolution)
    elif "<OME" in text[:4096] and len(text) <= MAX_XML_CHARS:
        found = _ome(text, pages, samples)
    else:
        return None
    if found is None or prod(size.size for size in found.lead) != pages:
        return None
    return found._replace(lead=[size for size in found.lead if size.size > 1])


def _imagej(text: str, resolution: tuple[float, float] | None) -> Described:
    fields = imagej_fields(text)
    units = _units(fields.get("unit"))
    steps = {"Z": (_step(fields.get("spacing")), units), "T": (_step(fields.get("finterval")), "s")}
    lead = []
    for name, field in _IMAGEJ.items():
        spacing, unit = steps.get(name, _UNKNOWN)
        lead.append(Size(name, _size(fields.get(field, "1")), spacing, unit if spacing else None))
    y = x = _UNKNOWN
    if units and resolution:
        x, y = ((1 / pixels, units) for pixels in resolution)
    return Described(lead, y, x)


def imagej_fields(text: str) -> dict[str, str]:
    """Return the lines ``name=value`` at the beginning of a description of ImageJ."""
    return dict(line.partition("=")[::2] for line in text[:MAX_IMAGEJ_CHARS].splitlines())


def _units(name: str | None) -> str | None:
    """Return the name of a unit, None if there is none."""
    if not name or name in _NO_UNITS:
        return None
    return "um" if name in _MICRONS else name


def _size(text: str | None) -> int:
    """Return a positive whole number; 0 for everything else."""
    text = text or ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else 0


def _step(text: str | None) -> float | None:
    """Return a positive distance; None for everything else."""
    try:
        step = float(text or "")
    except ValueError:
        return None
    return step if isfinite(step) and step > 0 else None


# ------------------------------------------------------------------------------------------ OME


def _ome(text: str, pages: int, samples: int) -> Described | None:
    found = _pixels_of(text, pages)
    if found is None:
        return None
    pixels, planes = found
    order = pixels.get("DimensionOrder", "")
    if sorted(order) != sorted("XYZCT") or order[:2] != "XY":
        return None
    sizes = {name: _size(pixels.get(f"Size{name}")) for name in "ZCT"}
    channels, odd = divmod(sizes["C"], samples)
    if odd or not channels:
        return None
    sizes["C"] = channels
    if not _in_order(planes, order[2:], sizes):
        return None
    lead = []
    for name in order[:1:-1]:
        field = "TimeIncrement" if name == "T" else f"PhysicalSize{name}"
        lead.append(Size(name, sizes[name], *_physical(pixels, field)))
    y, x = (_physical(pixels, f"PhysicalSize{name}") for name in "YX")
    return Described(lead, y, x)


def _physical(pixels: dict[str, str], field: str) -> tuple[float | None, str | None]:
    spacing = _step(pixels.get(field))
    if spacing is None:
        return _UNKNOWN
    default = "s" if field == "TimeIncrement" else "um"
    return spacing, _units(pixels.get(f"{field}Unit", default))


def _pixels_of(text: str, pages: int) -> tuple[dict[str, str], list[dict[str, str]]] | None:
    """Return the attributes of the only Pixels, and of its TiffData; None if there is no such."""
    from xml.parsers import expat

    found = _Elements(pages)
    parser = expat.ParserCreate()
    parser.StartElementHandler = found.start
    parser.EndElementHandler = found.end
    parser.StartDoctypeDeclHandler = found.doctype
    given = 0
    try:
        for at in range(0, len(text), _XML_PIECE):
            piece = text[at : at + _XML_PIECE].encode()
            parser.Parse(piece, False)
            given += len(piece)
            if given - parser.CurrentByteIndex > MAX_XML_TAG_BYTES:
                return None
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError):
        return None
    return (found.pixels[0], found.planes) if found.pixels else None


class _Elements:
    """What a parser has met; `ValueError` ends it where that cannot describe so many pages.

    Each TiffData names at least one page, so that there are never more of them. The parser keeps
    every name and every open element: their number is bounded, too.
    """

    def __init__(self, pages: int) -> None:
        self.pixels: list[dict[str, str]] = []
        self.planes: list[dict[str, str]] = []
        self._pages = pages
        self._parts = self._depth = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._parts += 1 + len(attributes)
        self._depth += 1
        local = name.rpartition(":")[2]
        if local == "Pixels":
            self.pixels.append(attributes)
        elif local == "TiffData":
            self.planes.append(attributes)
        if len(self.pixels) > 1 or len(self.planes) > self._pages:
            raise ValueError("this is not the description of these pages")
        if self._parts > MAX_XML_PARTS or self._depth > MAX_XML_DEPTH:
            raise ValueError("has more elements than pages need")

    def end(self, _: str) -> None:
        self._depth -= 1

    def doctype(self, *_: Any) -> None:
        raise ValueError("OME has no document type, and so no entities")


def _in_order(planes: list[dict[str, str]], order: str, sizes: dict[str, int]) -> bool:
    """Tell whether the pages follow each other as the axes do, the first of `order` fastest."""
    total = prod(sizes.values())
    following = 0
    for plane in planes:
        page = _size(plane.get("IFD", "0"))
        number, stride = 0, 1
        for name in order:
            number += stride * _size(plane.get(f"First{name}", "0"))
            stride *= sizes[name]
        # Without PlaneCount: one plane if a page is named, else all.
        count = _size(plane.get("PlaneCount", "1" if "IFD" in plane else str(total)))
        if (page, number) != (following, following):
            return False
        following += count
    return not planes or following == total
