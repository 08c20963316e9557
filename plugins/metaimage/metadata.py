"""What of the metadata a MetaImage holds, both ways.

The namespace ``metaimage`` may have been edited, or made by anybody: a field of a wrong form is
left out, and named.
"""

from __future__ import annotations

import re
from math import isfinite

from raconvert.metadata.reals import are_reals, is_real
from raconvert.plugin import Array, Axis, Metadata

from .tables import ALIASES, NAMESPACE, STRUCTURE, UNITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .header import Header

_KEY = re.compile("[A-Za-z][A-Za-z0-9_ ]{0,79}")
MAX_TEXT = 4096
# List in the namespace -> field
_VECTORS = {"offset": "Offset", "center": "CenterOfRotation"}
_NUMBERS = ("ElementSpacing", "TransformMatrix", *_VECTORS.values())


def metadata_of(header: Header) -> Metadata:
    """The metadata of an array; what says nothing is left out."""
    fields = {k: v.strip() for k, v in header.fields.items() if k not in STRUCTURE}
    rank = len(header.dims) - (header.channels > 1)
    more: list[Axis] = [Axis()] * (header.channels > 1)
    own: dict[str, Any] = {}
    known = {name: _reals(fields.pop(name, "")) for name in _NUMBERS}
    spacing, matrix = known["ElementSpacing"], known["TransformMatrix"]
    for name, field in _VECTORS.items():
        if any(known[field]) and len(known[field]) == rank:
            own[name] = known[field]
    units = fields.pop("DistanceUnits", None)
    unit = units if units in UNITS else None
    said = len(spacing) == rank and (any(n != 1 for n in spacing) or unit)
    axes = [*more, *(Axis(spacing=n, units=unit) for n in spacing)] if said else []
    of_axes: list[dict[str, Any]] = [{} for _ in header.dims]
    if len(matrix) == rank * rank:
        rows = [matrix[n * rank : (n + 1) * rank] for n in range(rank)]
        if any(row[n] != 1 or sum(map(bool, row)) != 1 for n, row in enumerate(rows)):
            for place, row in enumerate(rows, len(more)):
                of_axes[place]["direction"] = row
    if more:
        of_axes[0]["channels"] = True
    if any(of_axes):
        own["axes"] = of_axes
    comment = fields.pop("Comment", "")
    if rest := {key: value for key, value in fields.items() if value not in ("", "??")}:
        own["fields"] = rest
    return Metadata(
        description=comment or None, ra_axes=axes, formats={NAMESPACE: own} if own else None
    )


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
    own = _own(array)
    axes = own.get("axes")
    fine = isinstance(axes, list) and len(axes) == array.ndim > 1 and isinstance(axes[0], dict)
    return bool(fine and axes[0].get("channels") is True and array.dims[0] > 1)


def _own(array: Array) -> dict[str, Any]:
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
    _take_directions(own.get("axes"), array, first, found, lost)
    for key, value in _texts(own.get("fields"), lost).items():
        if key not in found:
            found[key] = value
    if meta.description:
        if _is_line(meta.description):
            found["Comment"] = meta.description
        else:
            lost.append("description")
    lost += [f"metaimage {key}" for key in own.keys() - {"fields", "axes", *_VECTORS}]
    lost += [name for name in ("units", "encoding", "attributes") if getattr(meta, name)]
    lost += ["items"] * (meta.items is not None)
    lost += [name for name, space in meta.formats.items() if space and name != NAMESPACE]
    return found, lost


def _take_axes(array: Array, first: bool, found: dict[str, str], lost: list[str]) -> None:
    axes = array.meta.ra_axes
    spatial = axes[first:]
    spacings = [axis.spacing for axis in spatial]
    if any(spacing is not None for spacing in spacings):
        if all(is_real(spacing) and float(spacing or 0) > 0 for spacing in spacings):
            found["ElementSpacing"] = " ".join(repr(float(s or 0)) for s in spacings)
        else:
            lost.append("axes (spacing)")
    units = {axis.units for axis in axes[first:]}
    if units - {None}:
        (unit, *others) = units
        if unit in UNITS and not others and "ElementSpacing" in found:
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
            found["TransformMatrix"] = " ".join(map(repr, numbers))
        else:
            lost.append("metaimage axes (direction)")
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
    fine = {
        key: text for key, text in value.items()
        if isinstance(key, str) and _KEY.fullmatch(key) and key.strip() == key
        and key not in taken and _is_line(text)
    }  # fmt: skip
    lost += [f"metaimage {key}"[:80] for key in value if key not in fine]
    return fine


def _is_line(text: object) -> bool:
    """True if a text is one line of Latin-1 that comes back as it was."""
    if not isinstance(text, str) or not text or len(text) > MAX_TEXT or text.strip() != text:
        return False
    return len(text.splitlines()) == 1 and all(ord(letter) < 256 for letter in text)
