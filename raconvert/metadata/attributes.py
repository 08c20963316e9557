"""Attributes of a file as the metadata of an array: common fields, a record of ours, the others."""

from __future__ import annotations

from raconvert.errors import Corrupt
from raconvert.metadata import roundtrip
from raconvert.metadata.roundtrip import KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Any

    from raconvert.files.limits import Limits

FIELDS = {"units": "units", "long_name": "description"}  # attributes that are common fields


def take_record(attributes: dict[str, Any], path: str, limits: Limits) -> dict[str, Any]:
    """Take our record out of attributes; empty if the attribute is another program's.

    Raises `Corrupt` for a text that begins as a record of ours and is not one.
    """
    text = attributes.get(KEY)
    if text is None or not roundtrip.is_marked(text):
        return {}
    del attributes[KEY]
    try:
        record = roundtrip.record_in(text, limits)
    except ValueError as error:
        raise Corrupt(f"attribute '{KEY}' is not a record of ours: {error}", path=path) from error
    roundtrip.check_form(record, path)
    if not isinstance(record.get("order", []), list):
        raise Corrupt(f"field 'order' of attribute '{KEY}' has the wrong form", path=path)
    return record


def take_common(attributes: dict[str, Any]) -> dict[str, str]:
    """Remove the attributes that are common fields; return them as such fields."""
    return {
        field: attributes.pop(name)
        for name, field in FIELDS.items()
        if is_field(name, attributes.get(name))
    }


def common_names(fields: dict[str, Any]) -> dict[str, str]:
    """Return the names of the attributes that stand for common fields which are set."""
    return {name: field for name, field in FIELDS.items() if fields.get(field)}


def divided(
    fields: dict[str, Any], common: dict[str, str], reserved: Container[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split attributes into those that a reader finds again, and those that only a record keeps.

    `fields` are those of the record, `reserved` the names that the format uses itself.
    """
    values: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in fields.get("attributes", {}).items():
        lost = name == KEY or name in reserved or name in common or is_field(name, value)
        (rest if lost else values)[name] = value
    return {**values, **{name: fields[field] for name, field in common.items()}}, rest


def is_field(name: str, value: Any) -> bool:
    """True if reading would take this attribute for a common field."""
    return name in FIELDS and isinstance(value, str) and bool(value)
