"""Translation of metadata to HDF5 attributes, and the record of the rest.

The latter is one attribute, the text of a record (`raconvert.metadata.roundtrip`). On a dataset:
what HDF5 does not hold (axes, other formats' namespaces, values that no attribute can be), what the
array `was`, and `axis_of` on scales made from an axis. On a group: `attributes`. On the root: the
record of the file, with `groups` that no link can name, and the `order` of the arrays.
"""

from __future__ import annotations

from raconvert.errors import Corrupt
from raconvert.metadata import roundtrip
from raconvert.metadata.roundtrip import KEY

from . import scales
from .attributes import write_attribute
from .tables import FIELDS, Attributes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.limits import Limits


def write_record(oid: Any, **record: Any) -> None:
    """Write the attribute of what has no other place, if there is anything."""
    if record:
        write_attribute(oid, KEY, roundtrip.text_of(record))


def take_record(attributes: Attributes, path: str, limits: Limits) -> dict[str, Any]:
    """Take the record out of attributes; none if the attribute is another program's."""
    text = attributes.values.get(KEY)
    if text is None or not roundtrip.is_marked(text):
        return {}
    del attributes.values[KEY]
    attributes.types.pop(KEY, None)
    try:
        record = roundtrip.record_in(text, limits)
    except ValueError as error:
        raise Corrupt(f"attribute '{KEY}' is not a record of ours: {error}", path=path) from error
    roundtrip.check_form(record, path)
    if not isinstance(record.get("order", []), list):
        raise Corrupt(f"field 'order' of attribute '{KEY}' has the wrong form", path=path)
    return record


def write_each(oid: Any, values: dict[str, Any], types: dict[str, Any]) -> dict[str, Any]:
    """Write attributes in order; return those that HDF5 has no place for."""
    return {
        name: value
        for name, value in values.items()
        if not write_attribute(oid, name, value, types.get(name))
    }


def common_names(fields: dict[str, Any]) -> dict[str, str]:
    """The names of the attributes that stand for common fields which are set."""
    return {name: field for name, field in FIELDS.items() if fields.get(field)}


def divided(
    fields: dict[str, Any], common: dict[str, str], scale: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split attributes into those that are read back as such, and those that would be no more."""
    reserved = scales.ALWAYS | {KEY} | (scales.ON_SCALES if scale else frozenset())
    values: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in fields.get("attributes", {}).items():
        lost = name in reserved or name in common or _is_field(name, value)
        (rest if lost else values)[name] = value
    return {**values, **{name: fields[field] for name, field in common.items()}}, rest


def _is_field(name: str, value: Any) -> bool:
    """True if reading would take this attribute for a common field."""
    return name in FIELDS and isinstance(value, str) and bool(value)
