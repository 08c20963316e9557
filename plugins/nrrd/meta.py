r"""Header fields as metadata, and back.

================  ===================================================================
``content``       `Metadata.description`
``sample units``  `Metadata.units`
``key:=value``    `Metadata.attributes`, always texts
``labels``        `Axis.name` (an empty label: none)
``kinds``         `Axis.kind`, in the spelling of the definition
``units``         `Axis.units`; an axis along one axis of the space has that axis's units
``spacings``      `Axis.spacing` (``nan``: none); with a space direction its length, or along one
                  axis of the space its signed component
``axis mins``     `Axis.origin`, the position of the first sample: the minimum itself where samples
                  are nodes, half a spacing further where they are cells; with a space direction
                  along one axis of the space, that component of the ``space origin``
================  ===================================================================

Everything else of the header lies in the namespace ``nrrd``: ``space`` or ``space_dimension``,
``space_units``, ``space_origin``, ``measurement_frame``, ``old_min``, ``old_max``, ``number``,
``min``, ``max``, ``comments``, ``charset`` (``latin-1`` where the header is not UTF-8), ``endian``
(of blocks, whose bytes are kept as they are) and ``axes``: one mapping per axis, parallel to
`Metadata.axes`, of ``direction``, ``center``, ``min``, ``max``, ``thickness``. ``complex_axis`` is
the mapping of the axis that complex numbers were made of, with its ``name``, ``units``, ...

What NRRD has no field for travels in one key/value pair, ``raconvert``, as JSON.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from math import hypot, isfinite

from raconvert.plugin import Axis, Extent, Metadata

from .tables import KIND_SIZES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .header import Header

    Entry = dict[str, Any]

NAMESPACE = "nrrd"
KEY = "raconvert"  # the key of the one pair that is ours
# Parsing costs up to 24 times the length in memory; escaped, it fits one line of the header.
MAX_JSON_BYTES = 1 << 20
# field of the header -> field of the entries in `axes`
AXIS_FIELDS = {
    "space directions": "direction",
    "centers": "center",
    "axis mins": "min",
    "axis maxs": "max",
    "thicknesses": "thickness",
}
# field of the header -> field of the namespace
OWN_FIELDS = {
    name: name.replace(" ", "_")
    for name in (
        "space", "space dimension", "space units", "space origin", "measurement frame",
        "old min", "old max", "number", "min", "max",
    )
}  # fmt: skip


# --- header to metadata ---------------------------------------------------------------------------


def metadata_of(header: Header) -> Metadata:
    """Return the metadata of a header, its axes parallel to `sizes`, our own pair still in it."""
    fields = header.fields
    own: dict[str, Any] = {
        key: fields[name] for name, key in OWN_FIELDS.items() if fields.get(name) is not None
    }
    if header.comments:
        own["comments"] = header.comments
    if header.charset != "utf-8":
        own["charset"] = header.charset
    if fields["type"] == "block" and fields.get("endian") == "big":
        own["endian"] = "big"
    rank = len(fields["sizes"])
    entries: list[Entry] = [{} for _ in range(rank)]
    for name, key in AXIS_FIELDS.items():
        for entry, value in zip(entries, fields.get(name, ()), strict=False):
            if value is not None:
                entry[key] = value
    axes = [_axis(header, at, entries[at], own) for at in range(rank)]
    if any(entries):
        own["axes"] = entries
    return Metadata(
        description=fields.get("content") or None,
        units=fields.get("sample units") or None,
        axes=axes if any(axis.to_dict() for axis in axes) else [],
        attributes=dict(header.attributes),
        formats={NAMESPACE: own} if own else {},
    )


def _axis(header: Header, at: int, entry: Entry, own: dict[str, Any]) -> Axis:
    def given(name: str) -> Any:
        values = header.fields.get(name)
        return values[at] if values else None

    axis = Axis(name=given("labels") or None, kind=given("kinds"))
    implied = implied_by(entry, own, given("spacings"), header.fields["sizes"][at])
    axis.spacing, axis.origin, axis.units = implied
    if given("spacings") is not None:
        axis.spacing = given("spacings")
    if given("units"):
        axis.units = given("units")
    if is_plain_node(entry):
        entry.clear()
    return axis


def is_plain_node(entry: Entry) -> bool:
    """Tell whether an entry says nothing but where the first sample is, as `Axis.origin` does."""
    return set(entry) == {"center", "min"} and entry["center"] == "node"


def implied_by(
    entry: Entry, own: dict[str, Any], spacing: float | None, size: int
) -> tuple[float | None, float | None, str | None]:
    """Return spacing, origin and units of an axis, as far as other fields tell them."""
    direction = entry.get("direction")
    if direction is not None:
        return _implied_by_direction(direction, own)
    low, high = entry.get("min"), entry.get("max")
    if low is None or entry.get("center") is None:
        return None, None, None
    if entry["center"] == "node":
        return None, low, None
    if spacing is None:
        if high is None:
            return None, None, None
        spacing = (high - low) / size
    return None, low + spacing / 2, None


def _implied_by_direction(
    direction: list[float], own: dict[str, Any]
) -> tuple[float | None, float | None, str | None]:
    units = own.get("space_units") or []
    along = [at for at, value in enumerate(direction) if value]
    if len(along) == 1:
        at = along[0]
        origin = own.get("space_origin")
        return direction[at], origin[at] if origin else None, units[at] or None if units else None
    one = units[0] or None if units and len(set(units)) == 1 else None
    return hypot(*direction) or None, None, one


# --- what NRRD has no field for -------------------------------------------------------------------


# The value of the pair `raconvert` is a mapping, in JSON, of
#
# type, sizes     of the file that it was written into; where they differ the next four are stale
# element         "complex" or "bool", or the NPY description of user elements
# dims            [], of an array without axes
# index_order     "F"
# axes            per axis, the fields of `Axis` that the header does not hold
# description, units, attributes, formats     as in `Metadata`, where the header cannot hold them
# file            attributes, groups and formats of the bundle
#
# Bytes, numbers that JSON lacks and mappings with odd keys are mappings with one key: $bytes
# (base64), $float, $dict (a list of pairs).


def extras_text(fields: dict[str, Any]) -> str:
    """Return the mapping as JSON in ASCII; ValueError for what it cannot hold."""
    try:
        text = json.dumps(_plain(fields), separators=(",", ":"), allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(f"it is longer than {MAX_JSON_BYTES} bytes")
    return text


def parse_extras(text: str) -> dict[str, Any]:
    """Return the mapping that `extras_text` made a text of; ValueError for any other text."""
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(f"it is longer than {MAX_JSON_BYTES} characters")
    try:
        fields = json.loads(text, object_hook=_rich, parse_constant=_refuse_constant)
    except (RecursionError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(str(error)) from error
    if not isinstance(fields, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - as every other fault in it
    for name, form in _FORMS.items():
        if name in fields and not form(fields[name]):
            raise ValueError(f"its field '{name}' has a wrong form")
    return fields


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _is_dict_of_dicts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(v, dict) for v in value.values())


_AXIS_FORMS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "kind": str,
    "units": str,
    "spacing": (int, float),
    "origin": (int, float),
    "labels": list,
}
_FORMS = {
    "type": lambda v: isinstance(v, str),
    "sizes": lambda v: isinstance(v, list),
    "element": lambda v: isinstance(v, (str, list)),
    "dims": lambda v: v == [],
    "index_order": lambda v: v == "F",
    "axes": lambda v: isinstance(v, list) and all(map(is_axis, v)),
    "description": lambda v: isinstance(v, str),
    "units": lambda v: isinstance(v, str),
    "attributes": lambda v: isinstance(v, dict),
    "formats": _is_dict_of_dicts,
    "file": lambda v: (
        _is_dict_of_dicts(v)
        and set(v) <= {"attributes", "groups", "formats"}
        and all(_is_dict_of_dicts(v.get(name, {})) for name in ("groups", "formats"))
    ),
}


def is_axis(value: Any) -> bool:
    """Tell whether a value is a mapping of fields of `Axis`, each of its type."""
    return isinstance(value, dict) and all(
        isinstance(v, _AXIS_FORMS.get(name, ())) and not isinstance(v, bool)
        for name, v in value.items()
    )


def _plain(value: Any) -> Any:
    """Return what JSON can hold; ValueError for what even our notation cannot."""
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _plain(item) for key, item in value.items()}
        return {"$dict": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return {"$bytes": b64encode(value).decode("ascii")}
    if isinstance(value, float) and not isfinite(value):
        return {"$float": str(value)}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise ValueError(f"a value of type {type(value).__name__} has no place in JSON")


def _rich(value: dict[str, Any]) -> Any:
    """Return what a mapping stands for; what is in it is as it was already."""
    if len(value) != 1:
        return value
    ((key, inner),) = value.items()
    if key == "$bytes":
        return b64decode(inner, validate=True)
    if key == "$float":
        return float(inner)
    return dict(inner) if key == "$dict" else value


def without_extents(space: dict[str, Any]) -> dict[str, Any]:
    """Leave out bytes that are only referred to in their own file (trailers of RA files)."""
    return {key: value for key, value in space.items() if not isinstance(value, Extent)}


# --- metadata to header ---------------------------------------------------------------------------

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # all but the tab
_CONTROL_IN_PAIR = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")  # and but the newline, which is escaped


def is_line(text: Any, charset: str) -> bool:
    """Tell whether a text can be the rest of a header line and is read as it is."""
    return (
        isinstance(text, str)
        and not _CONTROL.search(text)
        and not text.startswith((" ", "\t"))
        and _is_encodable(text, charset)
    )


def is_quotable(text: Any, charset: str) -> bool:
    r"""Tell whether a text can be put in quotes, where ``\"`` is the only escape."""
    return (
        isinstance(text, str)
        and not _CONTROL.search(text)
        and not text.endswith("\\")
        and _is_encodable(text, charset)
    )


def is_pair(key: Any, value: Any, charset: str) -> bool:
    """Tell whether an attribute can be a key/value pair, also for Teem."""
    if not (isinstance(key, str) and isinstance(value, str)) or key in ("", KEY):
        return False
    odd_key = key.startswith("#") or ":=" in key or ": " in key or "\n" in key
    return (
        not odd_key
        and not _CONTROL_IN_PAIR.search(key + value)
        and _is_encodable(key + value, charset)
    )


def _is_encodable(text: str, charset: str) -> bool:
    try:
        text.encode(charset)
    except UnicodeEncodeError:
        return False
    return True


def escaped(text: str) -> str:
    r"""Write a newline as ``\n`` and a backslash as two."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def flattened(text: str, charset: str) -> str:
    """Return a text on one line, for readers that know nothing of our pair."""
    line = _CONTROL.sub(" ", text).strip(" \t")
    return line.encode(charset, "replace").decode(charset)


def is_kind(kind: Any, size: int) -> bool:
    """Tell whether NRRD has this kind, for an axis of this size."""
    return isinstance(kind, str) and KIND_SIZES.get(kind, -1) in (0, size)
