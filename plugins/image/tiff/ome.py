"""OME-XML in the description of a TIFF: letters, sizes and times of axes, read and written.

Specification: https://docs.openmicroscopy.org/ome-model/6.3.1/, schema 2016-06. A pixel has a size
along X, Y and Z, and time has an increment. OME cannot hold names of other axes, origins,
directions and frames. The plane of a page is Y and X; T, C and Z are the pages.
"""

from __future__ import annotations

import re
from math import isfinite, prod
from types import SimpleNamespace
from xml.sax.saxutils import escape, unescape

from raconvert.arrays.space import is_component
from raconvert.plugin import Axis, facts_of_axes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.plugin import Array

SCHEMA = "http://www.openmicroscopy.org/Schemas/OME/2016-06"
TYPES = {
    ("bool", 1): "bit", ("int", 1): "int8", ("int", 2): "int16", ("int", 4): "int32",
    ("uint", 1): "uint8", ("uint", 2): "uint16", ("uint", 4): "uint32",
    ("float", 4): "float", ("float", 8): "double", ("complex", 8): "complex",
    ("complex", 16): "double-complex",
}  # fmt: skip
# Units of the schema, with "u" for the micro sign
LENGTHS = frozenset({
    "Ym", "Zm", "Em", "Pm", "Tm", "Gm", "Mm", "km", "hm", "dam", "m", "dm", "cm", "mm", "um", "nm",
    "pm", "fm", "am", "zm", "ym", "thou", "in", "ft", "yd", "mi", "pt",
})  # fmt: skip
TIMES = frozenset({"s", "ds", "cs", "ms", "us", "ns", "ps", "fs", "min", "h", "d"})
MICRO = "\N{MICRO SIGN}"
ANY = "reference frame"  # the unit of sizes in an unknown unit
MOST_SAMPLES = 4
PAGES = "TCZ"
_SIZES = {"X": "PhysicalSizeX", "Y": "PhysicalSizeY", "Z": "PhysicalSizeZ", "T": "TimeIncrement"}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = {'"': "&quot;", "\r": "&#13;"}
# Description, the attributes of Pixels, samples of a pixel, and the letters of the axes
_OWN = re.compile(
    r'Creator="raconvert"><Image ID="Image:0">(?:<Description>([^<]*)</Description>)?'
    r'<Pixels ([^<>]*)><Channel ID="Channel:0:0" SamplesPerPixel="([1-4])"/>'
    r'(?:.*<M K="axes">([A-Z]+)</M>)?', re.DOTALL,
)  # fmt: skip


def letters_of(array: Array) -> tuple[str, list[str], str]:
    """The letters of the axes, slowest first; those that are made up; or why there are none.

    There are no letters if OME cannot hold any fact of the axes.
    """
    axes = array.ra_axes if array.described else ()
    if not any(axes):
        return "", [], ""
    if (array.element.kind, array.element.nbytes) not in TYPES:
        return "", [], "OME does not have its type"
    if _NO_XML.search(array.meta.description or ""):
        return "", [], "the description has characters that XML cannot have"
    samples = array.ndim > 2 and 1 < array.dims[0] <= MOST_SAMPLES and array.element.kind != "bool"
    samples = samples and (is_component(axes[0]) or axes[0].name == "S")
    plane, outer = axes[samples : samples + 2], axes[samples + 2 :]
    if len(plane) < 2 or len(outer) > len(PAGES):
        return "", [], "OME has two axes of a plane, and three of pages"
    if any(_is_time(axis) or is_component(axis) or axis.name in (*PAGES, "S") for axis in plane):
        reason = "its last two axes have to be those of the plane"
        return "", [], f"OME cannot say them: {reason}; `--axes` can move them"
    in_space = any(axis.direction is not None for axis in plane)
    letters: list[str | None] = [_letter(axis) for axis in outer]
    decided = [letter for letter in letters if letter]
    if len({*decided}) < len(decided):
        return "", [], f"OME has no two axes {max(decided, key=decided.count)}"
    made_up: list[list[str]] = [[] for _ in axes]
    for index, letter in enumerate(letters):
        if letter is None:
            free = [other for other in ("TCZ" if in_space else "ZTC") if other not in letters]
            letters[index] = free[0]
            made_up[index + samples + 2].append(f"sort unknown: written as {free[0]}")
    text = "".join(filter(None, ("S" * samples, "XY", *letters)))
    pairs = zip(written_axes(axes, text), axes, strict=True)
    if not any(other.spacing is not None or other.name == axis.name for other, axis in pairs):
        return "", [], ""
    return text[::-1], facts_of_axes(array, made_up), ""


def _is_time(axis: Axis) -> bool:
    """True if an axis has the kind or the units of time."""
    return axis.direction is None and (axis.kind == "time" or axis.units in TIMES)


def _letter(axis: Axis) -> str | None:
    """The letter of an axis of pages; None if nothing decides it."""
    if axis.direction is not None:
        return "Z"
    if _is_time(axis):
        return "T"
    name = (axis.name or "").upper()
    if name in {*PAGES}:
        return name
    if axis.labels is not None or is_component(axis):
        return "C"
    return "Z" if axis.units in LENGTHS else None


def written_axes(axes: Sequence[Axis], letters: str) -> list[Axis]:
    """The axes with the facts that OME holds, by these letters, in the same order."""
    return [_written_axis(axis, letter) for axis, letter in zip(axes, letters, strict=True)]


def _written_axis(axis: Axis, letter: str) -> Axis:
    """An axis with the facts that OME holds: the letter, a size or increment, its units."""
    step = axis.spacing
    if letter not in _SIZES or step is None or not (isfinite(step) and step > 0):
        return Axis(letter)
    if axis.units in (TIMES if letter == "T" else LENGTHS):
        return Axis(letter, spacing=step, units=axis.units)
    return Axis(letter) if letter == "T" else Axis(letter, spacing=step)


def lost_of(array: Array, letters: str) -> list[str]:
    """The fields of the axes and of their space that OME does not hold."""
    axes, space = array.ra_axes, array.meta.space
    written = written_axes(axes, letters[::-1])
    lost = facts_of_axes(array, [
        [name for name in Axis.FIELDS if getattr(axis, name) not in (None, getattr(other, name))]
        for axis, other in zip(axes, written, strict=True)
    ])  # fmt: skip
    if space is not None:
        lost += ["space (frame)"] * (space.frame is not None)
        lost += ["space (origin)"] * (space.origin is not None)
    return lost


# --- the text -------------------------------------------------------------------------------------


def text_of(array: Array, letters: str) -> str:
    """The OME-XML of an array whose axes have these letters, slowest first."""
    axes = written_axes(array.ra_axes, letters[::-1])
    sizes = dict(zip(letters[::-1], array.dims, strict=True))
    kind = TYPES[array.element.kind, array.element.nbytes]
    return _text(letters, sizes, kind, axes, array.meta.description or "")


def _text(
    letters: str, sizes: dict[str, int], kind: str, axes: Sequence[Axis], description: str
) -> str:
    """The OME-XML of axes with these letters and sizes, of pixels of a type of the schema."""
    samples, channels = sizes.get("S", 1), sizes.get("C", 1)
    pages = [letter for letter in letters[::-1] if letter in PAGES]
    order = "".join(["X", "Y", *pages, *(letter for letter in "ZCT" if letter not in pages)])
    fields = {"ID": "Pixels:0", "DimensionOrder": order, "Type": kind}
    fields |= {f"Size{letter}": str(sizes.get(letter, 1)) for letter in "XYZCT"}
    fields["SizeC"] = str(samples * channels)
    for axis in axes:
        if axis.spacing is not None:
            word = _SIZES[axis.name or ""]
            fields[word] = repr(float(axis.spacing))
            fields[f"{word}Unit"] = _unit_text(axis.units)
    # Readers leave out axes of length 1, so that a note lists all axes if there is such a one.
    hidden = any(sizes[letter] == 1 for letter in pages)
    note = (
        '<StructuredAnnotations><MapAnnotation ID="Annotation:0" Namespace="raconvert"><Value>'
        f'<M K="axes">{letters}</M></Value></MapAnnotation></StructuredAnnotations>'
    )
    inside = "".join(
        f'<Channel ID="Channel:0:{number}" SamplesPerPixel="{samples}"/>'
        for number in range(channels)
    )
    escaped = escape(description, _ESCAPES)
    described = f"<Description>{escaped}</Description>" if escaped else ""
    count = prod(sizes.get(letter, 1) for letter in PAGES)
    attributes = " ".join(f'{key}="{value}"' for key, value in fields.items())
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><OME xmlns="{SCHEMA}" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{SCHEMA} {SCHEMA}/ome.xsd" Creator="raconvert">'
        f'<Image ID="Image:0">{described}<Pixels {attributes}>{inside}'
        f'<TiffData IFD="0" PlaneCount="{count}"/></Pixels>'
        f"</Image>{note if hidden else ''}</OME>"
    )


def _unit_text(units: str | None) -> str:
    """A unit in the spelling of the schema."""
    if units is None:
        return ANY
    return units.replace("u", MICRO) if units in ("um", "us") else units


def own_series(text: str, itemsize: int) -> Any:
    """The shape, the axes with their steps, and the description in a text of this module.

    None for a text that this module would not write letter by letter.
    """
    match = _OWN.search(text)
    if match is None:
        return None
    description = unescape(match[1] or "", {value: key for key, value in _ESCAPES.items()})
    fields = dict(re.findall(r'(\w+)="([^"]*)"', match[2]))
    samples, listed = int(match[3]), match[4]
    try:
        sizes = {letter: int(fields[f"Size{letter}"]) for letter in "XYZCT"}
        kind, order = fields["Type"], fields["DimensionOrder"]
    except (LookupError, ValueError):
        return None
    sizes["C"] //= samples
    if samples > 1:
        sizes["S"] = samples
    usual = "".join(n for n in order[::-1] if n in "XY" or sizes.get(n, 1) > 1)
    letters = listed or usual + "S" * (samples > 1)
    steps = {
        name: (fields.get(word), read_units(fields.get(f"{word}Unit", "")))
        for name, word in _SIZES.items()
    }
    try:
        axes = [_axis_of(letter, *steps.get(letter, (None, None))) for letter in letters[::-1]]
        is_own = _text(letters, sizes, kind, axes, description) == text
        shape = tuple(sizes[letter] for letter in letters)
    except (LookupError, ValueError):
        return None
    if not is_own or len({*letters}) < len(letters):
        return None
    nbytes = prod(shape) * itemsize
    return SimpleNamespace(
        kind="ome", shape=shape, axes=letters, nbytes=nbytes, text=description, steps=steps
    )


def _axis_of(letter: str, step: str | None, units: str | None) -> Axis:
    """An axis with the texts of its step and units. Raises ValueError for another step."""
    return Axis(letter) if step is None else Axis(letter, spacing=float(step or 0), units=units)


def read_units(word: str) -> str | None:
    """A unit of the schema in the spelling of this package; None for an unknown unit."""
    if word == ANY:
        return None
    unit = word.replace(MICRO, "u").replace("\N{GREEK SMALL LETTER MU}", "u")
    return unit if unit in ("um", "us") else word
