r"""Header fields as metadata, and back.

================  ===================================================================
``content``       `Metadata.description`
``sample units``  `Metadata.units`
``key:=value``    `Metadata.attributes`, always texts
``labels``        `Axis.name` (an empty label: none)
``kinds``         `Axis.kind`, in the spelling of the definition
``units``         `Axis.units`; an axis along one axis of the space has that axis's units
``spacings``      `Axis.spacing` (``nan``: none); where it is not given, the length of the space
                  direction, or along one axis of the space its signed component; or, where it is
                  known whether samples are nodes or cells, what ``axis mins`` and ``axis maxs`` say
``axis mins``     `Axis.origin`, the position of the first sample: the minimum itself where samples
                  are nodes, half a spacing further where they are cells; with a space direction
                  along one axis of the space, that component of the ``space origin``
================  ===================================================================

Everything else of the header lies in the namespace ``nrrd``: ``space`` or ``space_dimension``,
``space_units``, ``space_origin``, ``measurement_frame``, ``old_min``, ``old_max``, ``number``,
``min``, ``max``, ``comments``, ``charset`` (``latin-1`` where the header is not UTF-8), ``endian``
(of blocks, whose bytes are kept as they are) and ``axes``: one mapping per axis, parallel to
`Metadata.axes`, of ``direction``, ``center``, ``min``, ``max``, ``thickness``, and ``spacing``
where it is given and minimum and maximum say the same. ``complex_axis`` is the mapping of the axis
that complex numbers were made of, with its ``name``, ``units``, ...

What NRRD has no field for travels in one key/value pair: see ``pair.py``.
"""

from __future__ import annotations

import re
from math import hypot, isfinite

from raconvert.plugin import Axis, Metadata

from .tables import KIND_SIZES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .header import Header

    Entry = dict[str, Any]

NAMESPACE = "nrrd"
KEY = "raconvert"  # of the one pair that is ours: see pair.py
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
        if axis.spacing == given("spacings") and "direction" not in entry:
            entry["spacing"] = axis.spacing
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
    low, high, center = entry.get("min"), entry.get("max"), entry.get("center")
    if low is None or center is None:
        return None, None, None
    step = _step(low, high, size - (center == "node")) if high is not None else None
    if center == "node":
        return step, low, None
    width = step if spacing is None else spacing
    return step, None if width is None else low + width / 2, None


def _step(low: float, high: float, count: int) -> float | None:
    """Return the spacing of so many steps between the ends of an axis, if it can be one."""
    step = (high - low) / count if count else 0.0
    return step if step and isfinite(step) else None


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


# --- metadata to header ---------------------------------------------------------------------------

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # all but the tab
_CONTROL_IN_PAIR = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")  # and but the newline, which is escaped


def is_line(text: Any, charset: str) -> bool:
    """Tell whether a text can be the rest of a header line and is read as it is."""
    return (
        isinstance(text, str)
        and not _CONTROL.search(text)
        and not text.startswith((" ", "\t"))
        and is_encodable(text, charset)
    )


def is_quotable(text: Any, charset: str) -> bool:
    r"""Tell whether a text can be put in quotes, where ``\"`` is the only escape."""
    return (
        isinstance(text, str)
        and not _CONTROL.search(text)
        and not text.endswith("\\")
        and is_encodable(text, charset)
    )


def is_pair(key: Any, value: Any, charset: str) -> bool:
    """Tell whether an attribute can be a key/value pair, also for Teem."""
    if not (isinstance(key, str) and isinstance(value, str)) or key in ("", KEY):
        return False
    odd_key = key.startswith("#") or ":=" in key or ": " in key or "\n" in key
    return (
        not odd_key
        and not _CONTROL_IN_PAIR.search(key + value)
        and is_encodable(key + value, charset)
    )


def is_encodable(text: str, charset: str) -> bool:
    """Tell whether this encoding has all characters of a text."""
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
