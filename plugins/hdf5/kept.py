"""What HDF5 has no place for, as one attribute `raconvert` with JSON text, and back.

On a dataset: the fields of a sidecar that are not in HDF5 by themselves (axes, other formats'
namespaces, values that no attribute can be), `name` where the link has another one, and `axis_of`
on scales made from an axis. On a group: `attributes`. On the root: `formats`,
`order`, and `groups` that no link can name.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64

from raconvert.errors import Corrupt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .attributes import Attributes

KEPT = "raconvert"  # the name of the attribute
VERSION = 1
# How values that JSON lacks are kept: a mapping with this one key.
BYTES, DATE, TIME, MAPPING = "$bytes", "$date", "$time", "$mapping"
MAX_DEPTH = 64


def packed(fields: dict[str, Any]) -> str:
    """Return fields as JSON text; pure ASCII, so that any text survives."""
    return json.dumps({KEPT: VERSION, **_encoded(fields)}, separators=(",", ":"))


def _encoded(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return {BYTES: b2a_base64(value, newline=False).decode("ascii")}
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value) and not _is_marked(value):
            return {key: _encoded(item) for key, item in value.items()}
        return {MAPPING: [[_encoded(key), _encoded(item)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_encoded(item) for item in value]
    if hasattr(value, "isoformat"):  # a date, with or without the time of day
        return {TIME if hasattr(value, "hour") else DATE: value.isoformat()}
    return value


def _is_marked(value: dict[Any, Any]) -> bool:
    return len(value) == 1 and next(iter(value)).startswith("$")


def unpacked(attributes: Attributes, path: str) -> dict[str, Any]:
    """Take the fields out of attributes; none if the attribute is another program's."""
    text = attributes.values.get(KEPT)
    if not isinstance(text, str) or not text.startswith(f'{{"{KEPT}":'):
        return {}
    del attributes.values[KEPT]
    attributes.types.pop(KEPT, None)
    try:
        fields = _decoded(json.loads(text), 0)
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise Corrupt(f"attribute '{KEPT}' is no JSON of ours: {error}", path=path) from error
    if not isinstance(fields, dict) or fields.pop(KEPT, None) != VERSION:
        raise Corrupt(f"attribute '{KEPT}' has another version", path=path, expected=VERSION)
    for name, kind in _FORMS:
        if name in fields and not isinstance(fields[name], kind):
            raise Corrupt(f"field '{name}' of attribute '{KEPT}' has the wrong form", path=path)
    return fields


_FORMS = (
    ("attributes", dict),
    ("formats", dict),
    ("groups", dict),
    ("name", str),
    ("order", list),
)


def _decoded(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError("nested too deep")
    if isinstance(value, dict):
        if _is_marked(value):
            return _unmarked(*next(iter(value.items())), depth)
        return {key: _decoded(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_decoded(item, depth + 1) for item in value]
    return value


def _unmarked(mark: str, value: Any, depth: int) -> Any:
    """Return the value that JSON lacks."""
    from datetime import date, datetime

    if mark == BYTES:
        return a2b_base64(value, strict_mode=True)
    if mark == DATE:
        return date.fromisoformat(value)
    if mark == TIME:
        return datetime.fromisoformat(value)
    if mark == MAPPING:
        return {_decoded(key, depth + 1): _decoded(item, depth + 1) for key, item in value}
    raise ValueError(f"unknown mark {mark!r}")
