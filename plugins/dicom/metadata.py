"""The metadata of an array: axes and space, scale, and the elements of ``keep-tags``.

No text of a header is taken over that may say who a patient is; `left_out` names the kinds of
elements that are left out.
"""

from __future__ import annotations

from importlib.util import find_spec
from math import hypot

from raconvert.arrays.space import directed
from raconvert.errors import MissingDependency, UsageError, listed
from raconvert.plugin import Axis, Metadata, Space

from .form import PALETTE
from .header import wants_items
from .modality import note_of
from .mosaic import is_mosaic
from .series import VOLUME
from .tables import (
    CHARSET,
    CHARSETS,
    CODES,
    CURVES_AND_OVERLAYS,
    DOSE_UNITS,
    KINDS,
    MODALITY_LUT,
    NAMESPACE,
    RESCALE_TYPE,
    RGB,
    UNITS,
    YBR,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .frames import File, Frame
    from .header import Data, Header
    from .series import Grid, Part

COLOUR = "RGB-color"
UNREADABLE = "\0"  # stands for the text of an element in an unknown encoding
EVEN = 1e-3  # tolerance of times that grow evenly, as a part of their distance
SECONDS = ("acquisition time", "content time")
UNIT_OF_KEY = {"echo time": "ms", "trigger time": "ms", "b-value": "s/mm^2"}
TEXT_UNITS = {"BQML": "Bq/ml", "GY": "Gy", "US": None, "NONE": None, "UNSPECIFIED": None}


def metadata_of(part: Part, grid: Grid, kept: dict[int, str]) -> tuple[Metadata, list[str]]:
    """The metadata of an array, and the notes on it."""
    notes: list[str] = [*grid.notes]
    first = grid.frames[0]
    header = part.files[first.file].header
    axes = [*_axes_of_frames(grid), *_axes_in_frame(first, part)]
    space = None
    if first.position is not None and axes[-1 if part.form.samples == 1 else -2].direction:
        space = Space("LPS", first.position) if _is_placed(grid) else None
    if space is None:
        axes = [axis.replace(direction=None) for axis in axes]
    own: dict[str, Any] = {}
    lut = part.files[first.file].lut
    attributes = {} if lut else _scale(grid.frames, own)
    notes += [*_photometric(part, own, header), *([note_of(lut)] if lut else []), *_drawn(part)]
    units = _units(header) if attributes or "scl_slope" in own or _is_hounsfield(header) else None
    attributes |= _kept(grid.frames, part, kept, notes)
    meta = Metadata(
        units=units, attributes=attributes, axes=axes if any(axes) else (), space=space,
        formats={NAMESPACE: own} if own else None,
    )  # fmt: skip
    return meta, notes


# Axes --------------------------------------------------------------------------------------------


def _is_placed(grid: Grid) -> bool:
    """True if the first frame's position is the array's origin: on a grid, or of a single slice."""
    return grid.step is not None or len(grid.frames) == 1 or grid.slices == 1


def _axes_of_frames(grid: Grid) -> list[Axis]:
    """The axes before those of a frame: of times, and of slices."""
    axes = []
    if grid.times > 1:
        axes.append(_axis_of_times(grid))
    if grid.slices > 1 or grid.times > 1:
        axis = Axis()
        if grid.step is not None:
            axis = directed(Axis(units="mm"), grid.step, hypot(*grid.step))
        axes.append(axis)
    return axes


def _axis_of_times(grid: Grid) -> Axis:
    """The axis along which frames of one position follow each other."""
    values, key = grid.values, grid.key
    if key == "temporal position":
        clock = [frame.keys.get(SECONDS[0]) for frame in grid.frames[:: grid.slices]]
        step = _even_step([seconds for seconds in clock if seconds is not None])
        if step is None or None in clock:
            return Axis("time", kind="time")
        return Axis("time", kind="time", units="s", spacing=step)
    if key in SECONDS:
        if (step := _even_step(values)) is not None:
            return Axis("time", kind="time", units="s", spacing=step)
        since = [round(value - values[0], 6) for value in values]
        return Axis("time", kind="time", units="s", labels=since)
    if key == VOLUME:
        return Axis(key)
    if " and " in key:
        return Axis(key, labels=[", ".join(filter(None, map(_label, pair))) for pair in values])
    if isinstance(values[0], str):
        return Axis(key, labels=values)
    labels = [int(value) if value == int(value) else value for value in values]
    return Axis(key, units=UNIT_OF_KEY.get(key), labels=labels)


def _label(value: Any) -> str:
    """The value of a key as a text.

    >>> _label((0.5, -1.0, 0.0))
    '0.5 -1 0'
    """
    if isinstance(value, str):
        return value
    numbers = value if isinstance(value, tuple) else (value,)
    return " ".join(f"{number:.10g}" for number in numbers)


def _even_step(values: Sequence[float]) -> float | None:
    """The step of numbers that grow evenly, else None."""
    if len(values) < 2:
        return None
    step = (values[-1] - values[0]) / (len(values) - 1)
    even = all(abs(v - values[0] - n * step) <= EVEN * step for n, v in enumerate(values))
    return round(step, 6) if even and step > 0 else None


def _axes_in_frame(frame: Frame, part: Part) -> list[Axis]:
    """The axes of rows, columns, and colours."""
    axes = [Axis(), Axis()]
    if frame.spacing is not None:
        axes = [Axis(units="mm", spacing=length) for length in frame.spacing]
        if frame.directions is not None and frame.position is not None:
            row, column = frame.directions
            axes = [
                directed(axis, [length * cosine for cosine in direction], length)
                for axis, length, direction in zip(axes, frame.spacing, (column, row), strict=True)
            ]
    if part.form.samples == 1:
        return axes
    if part.form.photometric == RGB:
        return [*axes, Axis(kind=COLOUR)]
    return [*axes, Axis(labels=YBR.get(part.form.photometric))]


# Values ------------------------------------------------------------------------------------------


def _scale(frames: Sequence[Frame], own: dict[str, Any]) -> dict[str, Any]:
    """The scale as attributes if all frames have the same, else as lists in the namespace."""
    slopes = {frame.slope for frame in frames}
    intercepts = {frame.intercept for frame in frames}
    if len(slopes) > 1 or len(intercepts) > 1:
        own["scl_slope"] = [frame.slope for frame in frames]
        own["scl_inter"] = [frame.intercept for frame in frames]
        return {}
    slope, intercept = frames[0].slope, frames[0].intercept
    attributes = {}
    if slope != 1:
        attributes["scale_factor"] = slope
    if intercept != 0:
        attributes["add_offset"] = intercept
    return attributes


def _photometric(part: Part, own: dict[str, Any], header: Header) -> list[str]:
    """Notes on values that other programs show in another way."""
    form, notes = part.form, []
    if form.photometric == "MONOCHROME1":
        own["photometric"] = form.photometric
        notes.append("MONOCHROME1: small values are bright; they are kept as stored")
    if form.photometric == PALETTE:
        own["photometric"] = form.photometric
        notes.append("values are indices of a palette, which is left out")
    if form.photometric in YBR:
        own["photometric"] = form.photometric
    if form.photometric == RGB and form.stored_as in YBR:
        notes.append(f"colours are converted from {form.stored_as} to RGB, and rounded")
    if is_mosaic(header) and not form.across:
        notes.append("slices are tiles of a mosaic: they stay there, and have no place")
    if header.items(MODALITY_LUT):
        notes.append("a table of the modality does not fit floats and colours: left out")
    return notes


def _drawn(part: Part) -> list[str]:
    """Notes on overlays and curves, which are left out."""
    headers = [part.files[number].header for number in {frame.file for frame in part.frames}]
    distinct = {id(header.tags): header.tags for header in headers}.values()  # most are shared
    groups = sorted({tag >> 16 for tags in distinct for tag in tags if tag >> 28 in (5, 6)})
    notes = []
    for what, its_groups in CURVES_AND_OVERLAYS.items():
        if drawn := [f"group {group:04X}" for group in groups if group in its_groups]:
            notes.append(f"{what} are left out: {listed(drawn)}")
    return notes


def _is_hounsfield(header: Header) -> bool:
    return header.text(RESCALE_TYPE) == "HU"


def _units(header: Header) -> str | None:
    """The unit of the physical values, or None."""
    for tag in (RESCALE_TYPE, UNITS, DOSE_UNITS):
        if text := header.text(tag)[:16]:
            return TEXT_UNITS.get(text, text)
    return None


# Elements of the header --------------------------------------------------------------------------


def tags_of(words: str) -> dict[int, str]:
    """The tags that ``keep-tags`` names, and the keyword of each.

    >>> tags_of("0018,0050")
    {1572944: '0018,0050'}

    Raises `UsageError`, and `MissingDependency` if a keyword needs pydicom's dictionary.
    """
    keywords = {}
    parts = words.replace(";", " ").replace("(", "").replace(")", "").split()
    for word in (word for part in parts for word in _words(part)):
        digits = word.replace(",", "")
        if len(digits) == 8 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
            keywords[int(digits, 16)] = _keyword_of(int(digits, 16), word)
            continue
        if find_spec("pydicom") is None:
            raise MissingDependency(
                f"the keyword {word!r} is looked up in the package pydicom, which is not installed",
                remedy="pip install pydicom, or give the tag as 0008,103E",
            )
        from pydicom.datadict import tag_for_keyword

        tag = tag_for_keyword(word)
        if tag is None:
            raise UsageError(f"no element of DICOM is called {word!r}", remedy="0008,103E is one")
        keywords[tag] = word
    return keywords


def _words(part: str) -> list[str]:
    """Cut keywords at commas, but not the halves of tags."""
    words: list[str] = []
    for word in part.split(","):
        halves = len(word) == 4 and words and len(words[-1]) == 4
        if halves and all(c in "0123456789abcdefABCDEF" for c in word + words[-1]):
            words[-1] += f",{word}"
        elif word:
            words.append(word)
    return words


def _keyword_of(tag: int, word: str) -> str:
    """The keyword of a tag by pydicom's dictionary, else `word`."""
    if find_spec("pydicom") is None:
        return word
    from pydicom.datadict import keyword_for_tag

    return keyword_for_tag(tag) or word


def _kept(
    frames: Sequence[Frame], part: Part, kept: dict[int, str], notes: list[str]
) -> dict[str, Any]:
    """The elements of ``keep-tags`` as attributes; lists if they differ between frames."""
    attributes = {}
    for tag, keyword in kept.items():
        by_file = {n: _value(part.files[n].header, tag) for n in {f.file for f in frames}}
        values = [by_file[frame.file] for frame in frames]
        if UNREADABLE in values:
            notes.append(f"element {keyword} has an unknown encoding and is left out")
            continue
        if all(value is None for value in values):
            notes.append(f"element {keyword} is missing and cannot be kept")
        elif all(value == values[0] for value in values):
            attributes[keyword] = values[0]
        elif any(isinstance(value, list) or value is None for value in values):
            notes.append(f"element {keyword} differs between slices, and is left out")
        else:
            attributes[keyword] = values
    return attributes


def _value(data: Data, tag: int) -> Any:
    """The value of an element as plain text or numbers; None if it is missing."""
    vr, value = data.values.get(tag, (b"", None))
    if value is None or value == b"":
        return None
    if vr == b"SQ":
        raise wants_items(tag)
    if vr in CODES or vr in (b"DS", b"IS"):
        numbers = [int(n) if n == int(n) and vr != b"FD" else n for n in data.numbers(tag)]
        return numbers[0] if len(numbers) == 1 else numbers
    if vr in (b"OB", b"OW", b"UN", b"OF", b"OD", b"OL"):
        return value.hex()
    return _text(bytes(value), CHARSETS.get(data.text(CHARSET).strip()))


def _text(raw: bytes, charset: str | None) -> str:
    """The text of an element; `UNREADABLE` if its encoding is unknown."""
    for encoding in ("ascii", charset):
        try:
            if encoding is not None and b"\x1b" not in raw:
                return raw.decode(encoding).strip(" \0")
        except UnicodeError:
            continue
    return UNREADABLE


def left_out(files: Iterable[File], kept: dict[int, str]) -> str:
    """A line on the elements left out, which may say who a patient is; empty without any."""
    tags = set[int]().union(*(file.header.tags for file in files)) - kept.keys()
    counts = {"patient": len([tag for tag in tags if tag >> 16 == 0x0010])}
    counts |= {kind: len(tags & of_kind) for kind, of_kind in KINDS.items()}
    counts["private elements"] = len([tag for tag in tags if (tag >> 16) % 2 and tag >> 16 > 8])
    kinds = [f"{kind} ({count})" for kind, count in counts.items() if count]
    if not kinds:
        return ""
    return f"left out of the headers: {', '.join(kinds)}; `--in-opt keep-tags=LIST` keeps some"
