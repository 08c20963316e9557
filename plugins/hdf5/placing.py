"""Which metadata become attributes that are read back as what they were, and which would not."""

from __future__ import annotations

from . import scales
from .attributes import write_attribute
from .kept import KEPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def write_each(oid: Any, values: dict[str, Any], types: dict[str, Any]) -> dict[str, Any]:
    """Write attributes in order; return those that HDF5 has no place for."""
    return {
        name: value
        for name, value in values.items()
        if not write_attribute(oid, name, value, types.get(name))
    }


def common_names(fields: dict[str, Any], own: dict[str, Any]) -> dict[str, str]:
    """Return the names of the attributes that stand for common fields which are set."""
    text = "long_name" if own.get("description") == "long_name" else "description"
    names = {"units": "units", text: "description"}
    return {name: field for name, field in names.items() if fields.get(field)}


def placed(
    fields: dict[str, Any], common: dict[str, str], scale: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split attributes into those that are read back as such, and those that would be no more."""
    reserved = scales.ALWAYS | {KEPT} | (scales.ON_SCALES if scale else frozenset())
    values: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    for name, value in fields.get("attributes", {}).items():
        lost = name in reserved or name in common or _is_field(name, value, fields)
        (kept if lost else values)[name] = value
    return {**values, **{name: fields[field] for name, field in common.items()}}, kept


def _is_field(name: str, value: Any, fields: dict[str, Any]) -> bool:
    """Tell whether reading would take this attribute for a common field."""
    if not isinstance(value, str) or not value:
        return False
    if name == "long_name":
        return not fields.get("description")
    return name in ("units", "description")
