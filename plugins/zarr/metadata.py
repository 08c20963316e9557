"""Metadata: what becomes attributes and dimension names, and what has no place there.

The latter is one attribute, the text of a record (`raconvert.metadata.roundtrip`). On an array:
what its names of dimensions and JSON do not hold, and its own `name` where no folder can have it.
On a group: such attributes, and its `name`. On the root: the record of the file, and the `order` of
the arrays.
"""

from __future__ import annotations

from math import isfinite

from raconvert.errors import Corrupt
from raconvert.metadata import roundtrip
from raconvert.metadata.roundtrip import KEY
from raconvert.plugin import Axis

from .tables import AXES_OF_V2, OWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from raconvert.plugin import Array

    from .header import Node

NOT_A_TIME = -(1 << 63)
FIELDS = {"units": "units", "long_name": "description", "description": "description"}


# Reading ------------------------------------------------------------------------------------------


def take_record(attributes: dict[str, Any], path: str) -> dict[str, Any]:
    """Take our record out of attributes; none if the attribute is another program's."""
    text = attributes.get(KEY)
    if text is None or not roundtrip.is_marked(text):
        return {}
    del attributes[KEY]
    try:
        record = roundtrip.record_in(text)
    except ValueError as error:
        raise Corrupt(f"attribute '{KEY}' is not a record of ours: {error}", path=path) from error
    roundtrip.check_form(record, path)
    if not isinstance(record.get("order", []), list) or not isinstance(record.get("name", ""), str):
        raise Corrupt(f"attribute '{KEY}' has the wrong form", path=path)
    return record


def describe(array: Array, node: Node, stem: str, path: str) -> Array:
    """The array with what its metadata says; `stem` is the last part of its key."""
    attributes = dict(node.attributes)
    record = take_record(attributes, path)
    names = _names(node, attributes)
    changes: dict[str, Any] = {}
    if names and any(_is_name(name, stem, axis) for axis, name in enumerate(names)):
        changes["axes"] = [
            Axis(name=name if _is_name(name, stem, axis) else None)
            for axis, name in enumerate(names)
        ]
    own = _own(node)
    for key in ("units", "long_name", "description"):
        value = attributes.get(key)
        field = FIELDS[key]
        if isinstance(value, str) and value and field not in changes:
            changes[field] = value
            del attributes[key]
            if key == "description":
                own["description"] = key
    array.meta = array.meta.replace(attributes=attributes, **changes)
    if own:
        array.meta = array.meta.with_format(OWN, **own)
    if record:
        array = roundtrip.apply(record, array, path)
        array.name = record.get("name", array.name)
    return array


def _is_name(name: str | None, stem: str, axis: int) -> bool:
    """True unless a dimension has no name, or the one that stands for none."""
    return bool(name) and name != placeholder(stem, axis)


def placeholder(stem: str, axis: int) -> str:
    """The name of a dimension that has none: xarray opens no array without names."""
    return f"{stem}_dim_{axis}"


def dimension_names(node: Node) -> list[str]:
    """The names of the dimensions of an array, in the order of its shape; empty if it has none."""
    return [name or "" for name in _names(node, dict(node.attributes)) or ()]


def _names(node: Node, attributes: dict[str, Any]) -> list[str | None] | None:
    """The names of the axes, in the order of the shape."""
    if node.names is not None:
        return node.names
    found = attributes.get(AXES_OF_V2)
    if (
        isinstance(found, list)
        and len(found) == len(node.shape)
        and all(isinstance(name, str) for name in found)
    ):
        del attributes[AXES_OF_V2]
        return list(found)
    return None


def _own(node: Node) -> dict[str, Any]:
    """What only Zarr knows of the array: its fill value, and texts of variable length."""
    own: dict[str, Any] = {}
    usual = (None, 0, "", False, NOT_A_TIME, [0, 0])
    if node.fill not in usual and isinstance(node.fill, (int, float, str, list)):
        own["fill_value"] = node.fill
    if node.variable:
        own["variable"] = True
    return own


# Writing ------------------------------------------------------------------------------------------


def divided(
    array: Array, stem: str, apart: Collection[str] = ()
) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    """What of an array becomes attributes, names of dimensions, and the record of the rest.

    `apart` are names of axes that are not those of dimensions.
    """
    fields = roundtrip.record_of(array)
    fields.pop("items", None)
    own = fields.get("formats", {}).pop(OWN, {})
    if "formats" in fields and not fields["formats"]:
        del fields["formats"]
    attributes: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in fields.pop("attributes", {}).items():
        lost = name in (*FIELDS, KEY, AXES_OF_V2) or not _is_json(value)
        (rest if lost else attributes)[name] = value
    text = "description" if own.get("description") == "description" else "long_name"
    for key, field in (("units", "units"), (text, "description")):
        if fields.get(field):
            attributes[key] = fields.pop(field)
    if rest:
        fields["attributes"] = rest
    more = {k: v for k, v in own.items() if k not in ("fill_value", "variable", "description")}
    if more:
        fields.setdefault("formats", {})[OWN] = more
    names = _dimensions(array, stem, fields, apart)
    return attributes, names, fields


def _dimensions(
    array: Array, stem: str, fields: dict[str, Any], apart: Collection[str]
) -> list[str]:
    """The names of the dimensions; what they do not tell of the axes stays in the record."""
    names = [placeholder(stem, axis) for axis in range(array.ndim)]
    if "axes" not in fields:
        return names
    axes = [dict(axis) for axis in fields["axes"]][::-1]  # as listed in C order
    for axis, known in enumerate(axes):
        name = known.get("name")
        if name and name != names[axis] and name not in apart and _is_text(name):
            names[axis] = known.pop("name")
    if any(axes):
        fields["axes"] = axes[::-1]
    else:
        del fields["axes"]
    return names


def json_and_rest(attributes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes of a group that JSON holds, and the others."""
    held = {k: v for k, v in attributes.items() if k != KEY and _is_text(k) and _is_json(v)}
    return held, {k: v for k, v in attributes.items() if k not in held}


def _is_text(text: str) -> bool:
    return text.isprintable() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _is_json(value: Any, depth: int = 0) -> bool:
    """True for a value that JSON gives back as it was."""
    if depth > 16:
        return False
    if isinstance(value, dict):
        return all(
            isinstance(k, str) and _is_text(k) and _is_json(v, depth + 1) for k, v in value.items()
        )
    if type(value) is list:
        return all(_is_json(item, depth + 1) for item in value)
    if type(value) is float:
        return isfinite(value)
    if type(value) is str:
        return _is_text(value)
    return value is None or type(value) in (bool, int)
