"""Metadata: what becomes attributes of HDF5, and what has no place there.

The latter is one attribute `raconvert` of JSON text. On a dataset: the fields of a sidecar that are
not in HDF5 by themselves (axes, other formats' namespaces, values that no attribute can be), `name`
where the link has another one, and `axis_of` on scales made from an axis. On a group: `attributes`.
On the root: `formats`, `order`, and `groups` that no link can name.
"""

from __future__ import annotations

from raconvert.errors import Corrupt
from raconvert.metadata.json import dumps, loads

from . import scales
from .attributes import Attributes, write_attribute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REST = "raconvert"  # the name of the attribute
VERSION = 1


def write_rest(oid: Any, **fields: Any) -> None:
    """Write the attribute of what has no other place, if there is anything."""
    if fields:
        write_attribute(oid, REST, dumps({REST: VERSION, **fields}))


def take_rest(attributes: Attributes, path: str) -> dict[str, Any]:
    """Take the fields out of attributes; none if the attribute is another program's."""
    text = attributes.values.get(REST)
    if not isinstance(text, str) or not text.startswith(f'{{"{REST}":'):
        return {}
    del attributes.values[REST]
    attributes.types.pop(REST, None)
    try:
        fields = loads(text)
    except ValueError as error:
        raise Corrupt(f"attribute '{REST}' is not JSON of ours: {error}", path=path) from error
    if not isinstance(fields, dict) or fields.pop(REST, None) != VERSION:
        raise Corrupt(f"attribute '{REST}' has another version", path=path, expected=VERSION)
    for name, kind in _FORMS:
        if name in fields and not isinstance(fields[name], kind):
            raise Corrupt(f"field '{name}' of attribute '{REST}' has the wrong form", path=path)
    return fields


_FORMS = (
    ("attributes", dict),
    ("formats", dict),
    ("groups", dict),
    ("name", str),
    ("order", list),
)


def write_each(oid: Any, values: dict[str, Any], types: dict[str, Any]) -> dict[str, Any]:
    """Write attributes in order; return those that HDF5 has no place for."""
    return {
        name: value
        for name, value in values.items()
        if not write_attribute(oid, name, value, types.get(name))
    }


def common_names(fields: dict[str, Any], own: dict[str, Any]) -> dict[str, str]:
    """The names of the attributes that stand for common fields which are set."""
    text = "long_name" if own.get("description") == "long_name" else "description"
    names = {"units": "units", text: "description"}
    return {name: field for name, field in names.items() if fields.get(field)}


def divided(
    fields: dict[str, Any], common: dict[str, str], scale: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split attributes into those that are read back as such, and those that would be no more."""
    reserved = scales.ALWAYS | {REST} | (scales.ON_SCALES if scale else frozenset())
    values: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in fields.get("attributes", {}).items():
        lost = name in reserved or name in common or _is_field(name, value, fields)
        (rest if lost else values)[name] = value
    return {**values, **{name: fields[field] for name, field in common.items()}}, rest


def _is_field(name: str, value: Any, fields: dict[str, Any]) -> bool:
    """True if reading would take this attribute for a common field."""
    if not isinstance(value, str) or not value:
        return False
    if name == "long_name":
        return not fields.get("description")
    return name in ("units", "description")
