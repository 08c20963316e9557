"""Shape and axes of the pages, as tifffile finds them in ImageDescription.

tifffile notes a shape, ImageJ and OME (https://docs.openmicroscopy.org/ome-model/) the axes of the
pages. A description that tells them of other pages, or in another order, tells nothing.
"""

from __future__ import annotations

import logging
import re
from math import isfinite, prod
from typing import TYPE_CHECKING

from raconvert.plugin import Axis

if TYPE_CHECKING:
    from typing import Any

# What is looked at of a description; real ones have a few hundred characters for each page.
MAX_CHARS, MAX_CHARS_OF_A_PAGE = 1 << 20, 1 << 10
MAX_RANK = 64  # as many axes as numpy has
NO_UNITS = ("", "pixel", "pixels", "inch")  # inches are ImageJ's word for dots per inch
# As written by ImageJ (escaped), by others with the micro sign, and with the Greek letter.
MICRONS = ("um", "micron", "microns", "\\u00B5m", "\N{MICRO SIGN}m", "\N{GREEK SMALL LETTER MU}m")


def described(file: Any, text: str, pages: int, samples: int) -> Any:
    """Tifffile's series of all pages, if the description tells their shape; else None."""
    kind = "ome" if "<OME" in text[:4096] else "imagej" if text.startswith("ImageJ=") else "shaped"
    if kind == "shaped" and not text.startswith('{"shape":'):
        return None
    if len(text) > MAX_CHARS + MAX_CHARS_OF_A_PAGE * pages or "<!DOCTYPE" in text:
        return None
    if kind == "ome":  # tifffile believes whatever sizes there are
        sizes = [int(n) for n in re.findall(r'Size[ZCT]="([0-9]{1,9})"', text)]
        if len(sizes) != 3 or prod(sizes) not in (pages, pages * samples):
            return None
    log = logging.getLogger("tifffile")
    log.disabled = True  # a text that was copied from another file is no damage
    try:
        series = file.series
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return None
    finally:
        log.disabled = False
    found = series[0]
    if len(series) != 1 or found.kind != kind or len(found.shape) > MAX_RANK:
        return None
    in_order = all(page and page.index == number for number, page in enumerate(found.pages))
    return found if in_order else None


def announced(file: Any, series: Any, pixels: int) -> int:
    """The number of images of so many pixels that the description speaks of; 1 if of none."""
    said = (file.imagej_metadata or {}).get("images", 1)
    if series and series.kind == "shaped":
        shape = file.shaped_metadata[0].get("shape", ())
        said = prod(shape[:MAX_RANK]) // pixels
    return said if type(said) is int else 1


def axes_of(names: str, text: str, imagej: dict[str, Any], resolution: Any) -> list[Axis]:
    """The axes of these names, fastest first, with the spacing that a description tells.

    `imagej` is what tifffile found in one of ImageJ; `resolution` the field of the namespace.
    """
    steps: dict[str, tuple[Any, Any]] = {}
    if imagej:
        units = imagej.get("unit")
        steps = {"T": (imagej.get("finterval"), "s"), "Z": (imagej.get("spacing"), units)}
        for name, (pixels, unit) in zip("XY", resolution or (), strict=False):
            steps[name] = (unit / pixels if pixels else 0, units)
    elif "<OME" in text[:4096]:
        tag = re.search(r"<(?:\w+:)?Pixels\s([^>]*)>", text)
        fields = dict(re.findall(r'(\w+)="([^"]*)"', tag[1] if tag else ""))
        for name in "XYZT":
            word = "TimeIncrement" if name == "T" else f"PhysicalSize{name}"
            usual = "s" if name == "T" else "um"
            steps[name] = (fields.get(word), fields.get(f"{word}Unit", usual))
    return [_axis(name, *steps.get(name, (None, None))) for name in reversed(names)]


def _axis(name: str, spacing: Any, units: Any) -> Axis:
    """An axis; spacing and units only where both are known."""
    try:
        step = float(spacing or 0)
    except (TypeError, ValueError):
        step = 0.0
    units = "um" if units in MICRONS else str(units or "")
    if not isfinite(step) or step <= 0 or units in NO_UNITS:
        return Axis(name=name)
    return Axis(name=name, spacing=step, units=units)
