"""What of the metadata a NIfTI header holds, both ways.

The namespace ``nifti`` may have been edited, or made by anybody: a field of a wrong form is left
out, and named.
"""

from __future__ import annotations

import struct
from math import isfinite

from raconvert.metadata.reals import are_reals, is_real
from raconvert.plugin import Array, Axis, Metadata

from .header import Header, Start, extensions_of
from .tables import SPACE_CODES, SPACE_UNITS, TIME_CODES, TIME_UNITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMESPACE = "nifti"
# Fields that are kept as they are where they are not 0: how many numbers, or text
_NUMBERS = ("intent_code", "slice_start", "slice_end", "slice_code", "dim_info", "qform_code",
            "sform_code", "extents", "session_error", "glmax", "glmin")  # fmt: skip
_REALS = ("scl_slope", "scl_inter", "cal_max", "cal_min", "slice_duration", "toffset")
_LISTS = {"intent_p": 3, "quatern": 3, "qoffset": 3}
_TEXTS = {"aux_file": 24, "intent_name": 16, "data_type": 10, "db_name": 18}
_MOST = 1 << 15


def metadata_of(header: Header, start: Start, notes: list[str]) -> Metadata:
    """The metadata of an array, with all of the header that is not 0."""
    fields, own = header.fields, _own_fields(header, notes)
    if header.version == 2:
        own["version"] = 2
    slope, inter = own.get("scl_slope", 0), own.get("scl_inter", 0)
    if (slope, inter) == (1, 0):
        del own["scl_slope"]
    elif slope:
        notes.append(f"values are as stored; the header says: value * {slope:g} + {inter:g}")
    if extensions := extensions_of(header, start, notes):
        own["extensions"] = extensions
    meta = Metadata(description=_text(fields["descrip"]) or None, ra_axes=_axes(header))
    if own:
        if own.get("sform") or own.get("quatern") or own.get("qoffset"):
            own["axes"] = [{"place": place} for place in range(len(header.dims))]
        meta.formats[NAMESPACE] = own
    return meta


def _own_fields(header: Header, notes: list[str]) -> dict[str, Any]:
    fields, own = header.fields, {}
    wanted = {name: fields.get(name, 0) for name in (*_NUMBERS, *_REALS)}
    wanted |= {name: _text(fields[name]) for name in _TEXTS if name in fields}
    wanted |= {name: fields[name] for name in _LISTS}
    rows = fields["srow"]
    wanted["sform"] = [rows[:4], rows[4:8], rows[8:]] if any(rows) else []
    if rest := fields["xyzt_units"] & ~_said(header):
        own["xyzt_units"] = rest
    if fields["pixdim"][0] == -1:
        wanted["qfac"] = -1
    odd = []
    for name, value in wanted.items():
        numbers = [n for row in value for n in row] if name == "sform" else _numbers(value)
        if not all(map(isfinite, numbers)):
            odd += [name] * (name not in ("scl_slope", "scl_inter"))  # NaN: none
        elif any(numbers) or (isinstance(value, str) and value):
            own[name] = value
    if odd:
        notes.append(f"fields that are not finite were ignored: {', '.join(odd)}")
    return own


def _numbers(value: Any) -> list[float]:
    return value if isinstance(value, list) else [] if isinstance(value, str) else [value]


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("latin-1").rstrip(" ")


def _said(header: Header) -> int:
    """The bits of `xyzt_units` that units of axes tell."""
    units = header.fields["xyzt_units"]
    space = 7 if units & 7 in SPACE_UNITS else 0
    return space | (56 if len(header.dims) > 3 and units & 56 in TIME_UNITS else 0)


def _axes(header: Header) -> list[Axis]:
    """Spacing and units of each axis; none where nothing is said."""
    units = header.fields["xyzt_units"]
    space, time = SPACE_UNITS.get(units & 7), TIME_UNITS.get(units & 56)
    axes = []
    for place in range(len(header.dims)):
        unit = space if place < 3 else time if place == 3 else None
        spacing = header.fields["pixdim"][place + 1]
        said = isfinite(spacing) and spacing > 0 and (spacing != 1 or unit)
        axes.append(Axis(units=unit, spacing=spacing if said else None))
    return axes if any(axis.to_dict() for axis in axes) else []


# --- writing --------------------------------------------------------------------------------------


def fields_of(array: Array, real: str) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    """The fields of a header, the extensions, and what of the metadata is lost.

    `real` is the struct code of the numbers, which are rounded to it. Raises nothing.
    """
    lost: list[str] = []
    found: dict[str, Any] = {"pixdim": [1.0] * 8}
    if not array.described:
        return found, [], lost
    meta = array.meta
    own = meta.formats.get(NAMESPACE)
    own = own if isinstance(own, dict) else {}
    _take_own(own, array, found, lost, real)
    _take_axes(array, found, lost, real)
    _take_text(meta.description, "descrip", 80, found, lost, "description")
    lost += [name for name in ("units", "encoding", "attributes") if getattr(meta, name)]
    lost += ["items"] * (meta.items is not None)
    lost += [name for name, space in meta.formats.items() if space and name != NAMESPACE]
    extensions = own.get("extensions", [])
    if not _are_extensions(extensions):
        lost.append("extensions")
        extensions = []
    return found, extensions, lost


def _take_own(
    own: dict[str, Any], array: Array, found: dict[str, Any], lost: list[str], real: str
) -> None:
    for name, value in own.items():
        if name in _NUMBERS and type(value) is int and 0 <= value < (_MOST if name not in (
            "dim_info", "slice_code") else 256):  # fmt: skip
            found[name] = value
        elif name in _REALS and is_real(value):
            found[name] = _rounded(float(value), real, name, lost)
        elif name in _LISTS and are_reals(value, _LISTS[name]):
            found[name] = [_rounded(float(number), real, name, lost) for number in value]
        elif name in _TEXTS:
            _take_text(value, name, _TEXTS[name], found, lost, name)
        elif name == "xyzt_units" and type(value) is int and 0 <= value < 256:
            found[name] = value
        elif name == "qfac" and value == -1:
            found["pixdim"][0] = -1.0
        elif (
            name == "sform"
            and isinstance(value, list)
            and len(value) == 3
            and all(are_reals(row, 4) for row in value)
        ):
            found["srow"] = [_rounded(float(n), real, name, lost) for row in value for n in row]
        elif name not in ("axes", "version", "extensions"):
            lost.append(f"nifti {name}")
    _turn(own.get("axes"), array, found, lost)


def _turn(axes: Any, array: Array, found: dict[str, Any], lost: list[str]) -> None:
    """Follow axes that were permuted: columns of `sform` go with them, `qform` cannot."""
    if not axes:
        return
    listed = axes if isinstance(axes, list) else [None] * 3
    places = [one.get("place") if isinstance(one, dict) else None for one in listed]
    if places[:3] == [0, 1, 2][: array.ndim]:
        return
    rows = found.pop("srow", None)
    qform = [name for name in ("quatern", "qoffset", "qform_code") if found.pop(name, None)]
    lost += [f"nifti {name}" for name in qform]
    found["pixdim"][0] = 1.0
    three = places[:3] + [2] * (3 - len(places[:3]))
    if rows and sorted(three, key=str) == [0, 1, 2]:
        rows = [rows[4 * row : 4 * row + 4] for row in range(3)]
        found["srow"] = [n for row in rows for n in (*(row[place] for place in three), row[3])]
    elif rows:
        lost.append("nifti sform")
        found.pop("sform_code", None)


def _take_axes(array: Array, found: dict[str, Any], lost: list[str], real: str) -> None:
    axes, units = array.meta.ra_axes, 0
    rest = found.get("xyzt_units", 0)
    space = {axis.units for axis in axes[:3]} - {None}
    for place, axis in enumerate(axes[:7]):
        if axis.spacing is not None:
            if is_real(axis.spacing) and axis.spacing > 0:
                value = float(axis.spacing)
                found["pixdim"][place + 1] = _rounded(value, real, "spacing", lost)
            else:
                lost.append("axes (spacing)")
        codes = SPACE_CODES if place < 3 else TIME_CODES if place == 3 else {}
        if axis.units is None:
            continue
        if axis.units in codes and (place == 3 or len(space) == 1):
            units |= codes[axis.units]
        else:
            lost.append("axes (units)")
    if space and len(space) == 1 and any(axis.units is None for axis in axes[:3]):
        lost.append("axes (units)")  # an axis without units would get those of the others
    others = ("name", "labels", "origin", "kind")
    lost += [
        f"axes ({field})" for field in others if any(getattr(a, field) is not None for a in axes)
    ]
    rest &= ~(7 if units & 7 else 0) & ~(56 if units & 56 else 0)
    found["xyzt_units"] = units | rest


def _take_text(
    text: Any, name: str, nbytes: int, found: dict[str, Any], lost: list[str], what: str
) -> None:
    if not text:
        return
    raw = text.encode("latin-1", "replace") if isinstance(text, str) else b""
    if isinstance(text, str) and len(raw) <= nbytes and _text(raw) == text:
        found[name] = raw
    else:
        lost.append(what)


def _rounded(value: float, real: str, what: str, lost: list[str]) -> float:
    """The number that the header holds; what is rounded is named."""
    try:
        kept: float = struct.unpack(real, struct.pack(real, value))[0]
    except OverflowError:
        lost.append(what)
        return 0.0
    if kept != value and f"{what} (rounded to float32)" not in lost:
        lost.append(f"{what} (rounded to float32)")
    return kept


def _are_extensions(value: object) -> bool:
    if not isinstance(value, list):
        return False
    for one in value:
        if not isinstance(one, dict) or one.keys() != {"code", "data"}:
            return False
        fine = type(one["code"]) is int and 0 <= one["code"] < 1 << 31
        if not fine or not isinstance(one["data"], str):
            return False
        try:
            bytes.fromhex(one["data"])
        except ValueError:
            return False
    return True
