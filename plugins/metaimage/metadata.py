"""What of the metadata a MetaImage holds, both ways.

The namespace ``metaimage`` may have been edited, or made by anybody: a field of a wrong form is
left out, and named.
"""

from __future__ import annotations

import re
from math import isfinite

from raconvert.metadata.reals import are_reals, is_real
from raconvert.plugin import Array, Axis, Metadata

from .tables import ALIASES, BLANKS, NAMESPACE, ORDER, STRUCTURE, UNITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .header import Header

_KEY = re.compile("[^=:\\x00-\\x1f]{1,255}")
MAX_TEXT = 1 << 14
# List in the namespace -> field
_VECTORS = {"offset": "Offset", "center": "CenterOfRotation"}
SPACING, SIZE, MATRIX = "ElementSpacing", "ElementSize", "TransformMatrix"
_NUMBERS = (SPACING, SIZE, MATRIX, *_VECTORS.values())


def metadata_of(header: Header, notes: list[str]) -> Metadata:
    """Return the metadata of an array; fields that say nothing are left out, wrong ones noted."""
    fields = {_text(k): _text(v) for k, v in header.fields.items() if k not in STRUCTURE}
    rank = header.rank
    step = 1 if header.fields.get(ORDER) == "F" else -1  # axes in the order of the shape
    own: dict[str, Any] = {}
    known = {name: _numbers(fields.pop(name, ""), name, rank, notes) for name in _NUMBERS}
    for name, field in _VECTORS.items():
        if any(known[field]):
            own[name] = known[field]
    # A size of elements alone is their spacing to MetaIO; a negative spacing turns the direction.
    steps, matrix = known[SPACING] or known[SIZE], known[MATRIX]
    rows = [matrix[n * rank : (n + 1) * rank] for n in range(rank)] if matrix else _identity(rank)
    rows = [[0 - n for n in row] if steps and steps[k] < 0 else row for k, row in enumerate(rows)]
    channels = len(header.dims) - rank
    of_axes: list[dict[str, Any]] = [{} for _ in header.dims]
    for place in range(rank):
        if rows != _identity(rank):
            of_axes[channels + place]["direction"] = rows[place]
        if known[SIZE] and known[SIZE] != steps:
            of_axes[channels + place]["size"] = known[SIZE][place]
    if channels:
        of_axes[0]["channels"] = True
    if any(of_axes):
        own["axes"] = of_axes[::step]
    if 0 in steps:
        notes.append("a spacing of 0 was ignored")
    units = fields.pop("DistanceUnits", None)
    comment = fields.pop("Comment", "")
    if rest := {key: value for key, value in fields.items() if value not in ("", "??")}:
        own["fields"] = rest
    axes = _axes(steps, units if units in UNITS else None, channels)
    return Metadata(comment or None, axes=axes[::step], formats={NAMESPACE: own} if own else None)


def _axes(steps: list[float], unit: str | None, channels: int) -> list[Axis]:
    """The spacings, which are positive; none if they say nothing."""
    if not steps or (all(abs(step) == 1 for step in steps) and not unit):
        return []
    more = [Axis()] * channels
    return [*more, *(Axis(spacing=abs(step) or None, units=unit) for step in steps)]


def _identity(rank: int) -> list[list[float]]:
    return [[float(row == column) for column in range(rank)] for row in range(rank)]


def _numbers(text: str, name: str, rank: int, notes: list[str]) -> list[float]:
    """The numbers of a field, one for each axis, or a matrix; none, and a note, if it is wrong."""
    if not text:
        return []
    count, found = rank * rank if name == MATRIX else rank, _reals(text)
    if len(found) == count:
        return found
    notes.append(f"{name} was ignored, as it is not {count} numbers: {text[:40]}")
    return []


def _text(raw: str) -> str:
    """Text as it is meant: UTF-8, or Latin-1 if it cannot be that."""
    try:
        return raw.encode("latin-1").decode()
    except UnicodeDecodeError:
        return raw


def _reals(text: str) -> list[float]:
    """Finite numbers; none if a word is something else."""
    try:
        found = [float(word) for word in text.split() if len(word) < 400]
    except ValueError:
        return []
    return found if all(map(isfinite, found)) else []


# --- writing --------------------------------------------------------------------------------------


def has_channels(array: Array) -> bool:
    """True if the fastest axis was one of channels, and still is."""
    axes = _entries(array)
    fine = isinstance(axes, list) and len(axes) == array.ndim > 1 and isinstance(axes[0], dict)
    return bool(fine and axes[0].get("channels") is True and array.dims[0] > 1)


def _entries(array: Array) -> Any:
    """The entries of the namespace for each axis, the fastest first."""
    listed = _own(array).get("axes")
    return listed[::-1] if isinstance(listed, list) and array.index_order != "F" else listed


def _own(array: Array) -> Mapping[str, Any]:
    own = array.meta.formats.get(NAMESPACE) if array.described else None
    return own if isinstance(own, dict) else {}


def fields_of(array: Array) -> tuple[dict[str, str], list[str]]:
    """The fields of a header beside those of the structure, and what is lost. Raises nothing."""
    lost: list[str] = []
    found: dict[str, str] = {}
    if not array.described:
        return found, lost
    meta, own = array.meta, _own(array)
    first = has_channels(array)
    rank = max(array.ndim - first, 1)
    _take_axes(array, first, found, lost)
    for name, field in _VECTORS.items():
        if name in own:
            _take_numbers(own[name], rank, field, found, lost, name)
    _take_directions(_entries(array), array, first, found, lost)
    for key, value in _texts(own.get("fields"), lost).items():
        if key not in found:
            found[_line(key)] = _line(value)
    if meta.description:
        if _is_line(meta.description):
            found["Comment"] = _line(meta.description)
        else:
            lost.append("description")
    lost += [f"metaimage {key}" for key in own.keys() - {"fields", "axes", *_VECTORS}]
    lost += [name for name in ("units", "encoding", "attributes") if getattr(meta, name)]
    lost += ["items"] * (meta.items is not None)
    lost += [name for name, space in meta.formats.items() if space and name != NAMESPACE]
    return found, lost


def _take_axes(array: Array, first: bool, found: dict[str, str], lost: list[str]) -> None:
    axes = array.ra_axes
    spatial = axes[first:]
    spacings = [axis.spacing for axis in spatial]
    if any(spacing is not None for spacing in spacings):
        if all(is_real(spacing) and float(spacing or 0) > 0 for spacing in spacings):
            found[SPACING] = " ".join(repr(float(s or 0)) for s in spacings)
        else:
            lost.append("axes (spacing)")
    units = {axis.units for axis in axes[first:]}
    if units - {None}:
        (unit, *others) = units
        if unit in UNITS and not others and SPACING in found:
            found["DistanceUnits"] = str(unit)
        else:
            lost.append("axes (units)")
    rest = ["name", "labels", "origin", "kind"]
    lost += [f"axes ({f})" for f in rest if any(getattr(axis, f) is not None for axis in axes)]
    if first and axes and (axes[0].spacing is not None or axes[0].units is not None):
        lost.append("axes (of channels)")


def _take_directions(
    axes: Any, array: Array, first: bool, found: dict[str, str], lost: list[str]
) -> None:
    if not isinstance(axes, list):
        lost += ["metaimage axes"] * (axes is not None)
        return
    rows = [axis.get("direction") if isinstance(axis, dict) else None for axis in axes]
    if any(row is not None for row in rows):
        spatial = rows[first:] if len(rows) == array.ndim else []
        rank = array.ndim - first
        if len(spatial) == rank and all(are_reals(row, rank) for row in spatial):
            numbers = [float(n) for row in spatial for n in row]
            found[MATRIX] = " ".join(map(repr, numbers))
        else:
            lost.append("metaimage axes (direction)")
    sizes = [axis.get("size") if isinstance(axis, dict) else None for axis in axes][first:]
    if any(size is not None for size in sizes):
        _take_numbers(sizes, array.ndim - first, SIZE, found, lost, "axes (size)")
    if not first and any(isinstance(axis, dict) and axis.get("channels") for axis in axes):
        lost.append("metaimage axes (channels)")


def _take_numbers(
    value: Any, count: int, field: str, found: dict[str, str], lost: list[str], name: str
) -> None:
    if are_reals(value, count):
        found[field] = " ".join(repr(float(number)) for number in value)
    else:
        lost.append(f"metaimage {name}")


def _texts(value: Any, lost: list[str]) -> dict[str, str]:
    """Fields that a header can say; the others are named."""
    if not isinstance(value, dict):
        lost += ["metaimage fields"] * (value is not None)
        return {}
    taken = STRUCTURE | {*ALIASES, *_NUMBERS, "Comment", "DistanceUnits"}
    fine = {  # empty values, and ??, say nothing
        key: text for key, text in value.items()
        if isinstance(key, str) and _KEY.fullmatch(key) and key.strip() == key
        and key not in taken and _is_line(key) and _is_line(text) and text != "??"
    }  # fmt: skip
    lost += [f"metaimage {key}"[:80] for key in value if key not in fine]
    return fine


def _is_line(text: object) -> bool:
    """True if a text is one line of UTF-8 that comes back as it was."""
    if not isinstance(text, str) or not text or len(text) > MAX_TEXT:
        return False
    try:
        line = _line(text)
    except UnicodeEncodeError:
        return False
    return line.strip(BLANKS) == line and not {"\n", "\r", "\0"} & {*line}


def _line(text: str) -> str:
    """A text as a header has it: a letter for each byte. Raises `UnicodeEncodeError`."""
    return text.encode().decode("latin-1")
