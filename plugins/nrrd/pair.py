"""Our own key/value pair, ``raconvert``: what NRRD has no field for, and the array as it was.

Its value is a mapping, in JSON, of

====================  ==============================================================================
``type, sizes``       of the file that it was written into; where they differ, the next four are
                      about another array
``element``           ``complex`` or ``bool``, or the NPY description of user elements
``dims``              ``[]``, of an array without axes
``index_order``       ``F``
``axes``              per axis, the fields of `Axis` that the header does not hold
``description``, ``units``, ``encoding``, ``attributes``, ``formats``
                      as in `Metadata`, where the header cannot hold them
``file``              attributes, groups and formats of the bundle
====================  ==============================================================================

Values that JSON lacks are mappings with one key: ``$bytes`` (base64), ``$float``, ``$date`` and
``$time`` (ISO 8601), ``$dict`` (a list of pairs, of a mapping with odd keys).
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from datetime import date, datetime
from math import isfinite

from raconvert.arrays.dtypes import dtype_of, element, frozen
from raconvert.errors import RaconvertError
from raconvert.metadata.yaml import MAX_KEY, is_key
from raconvert.plugin import Array, Axis, Bundle, Element, Extent, Metadata

from .meta import KEY, NAMESPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .header import Header

# Parsing costs up to 24 times the length in memory; escaped, it fits one line of the header.
MAX_JSON_BYTES = 1 << 20
_POSITIONAL = ("element", "dims", "index_order", "axes")  # these depend on type and sizes


# --- text -----------------------------------------------------------------------------------------


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


_FORMS = {
    "type": lambda v: isinstance(v, str),
    "sizes": lambda v: isinstance(v, list),
    "element": lambda v: isinstance(v, (str, list)),
    "dims": lambda v: v == [],
    "index_order": lambda v: v == "F",
    "axes": lambda v: isinstance(v, list) and all(map(is_axis, v)),
    "description": lambda v: isinstance(v, str),
    "units": lambda v: isinstance(v, str),
    "encoding": lambda v: isinstance(v, str),
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
    return isinstance(value, dict) and all(Axis.takes(name, v) for name, v in value.items())


def _plain(value: Any) -> Any:
    """Return what JSON can hold; ValueError for what even our notation cannot."""
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _plain(item) for key, item in value.items()}
        pairs = [_with_key(key, item) for key, item in value.items()]
        return {"$dict": [[_plain(key), _plain(item)] for key, item in pairs]}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return {"$bytes": b64encode(value).decode("ascii")}
    if isinstance(value, float) and not isfinite(value):
        return {"$float": str(value)}
    if type(value) in (date, datetime):
        return {"$date" if type(value) is date else "$time": value.isoformat()}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise ValueError(f"a value of type {type(value).__name__} has no place in JSON")


def _rich(value: dict[str, Any]) -> Any:
    """Return what a mapping stands for; what is in it is as it was already."""
    if len(value) != 1:
        return value
    ((key, inner),) = value.items()
    return _RICH[key](inner) if key in _RICH else value


_RICH: dict[str, Callable[[Any], Any]] = {
    "$bytes": lambda inner: b64decode(inner, validate=True),
    "$float": float,
    "$date": date.fromisoformat,
    "$time": datetime.fromisoformat,
    "$dict": lambda inner: dict(_with_key(key, item) for key, item in inner),
}


def _with_key(key: Any, item: Any) -> tuple[Any, Any]:
    if not is_key(key):
        raise ValueError(f"it has an integer beyond {MAX_KEY} as a key")
    return key, item


def without_extents(space: dict[str, Any]) -> dict[str, Any]:
    """Leave out bytes that are only referred to in their own file (trailers of RA files)."""
    return {key: value for key, value in space.items() if not isinstance(value, Extent)}


# --- the array as it was --------------------------------------------------------------------------


def taken(header: Header, meta: Metadata, notes: list[str], *, restore: bool) -> dict[str, Any]:
    """Return what our own key/value pair says, which is then no attribute any more.

    Without `restore` what it says of the array as it was is left out, as it is where the array is
    another one.
    """
    text = meta.attributes.get(KEY)
    if text is None:
        return {}
    try:
        extras = parse_extras(text)
    except ValueError as error:
        notes.append(f"the key/value pair '{KEY}' is not as raconvert writes it ({error})")
        return {}
    del meta.attributes[KEY]
    sizes = list(header.fields["sizes"])
    if (extras.get("type"), extras.get("sizes")) != (header.fields["type"], sizes):
        stale = [k for k in _POSITIONAL if extras.pop(k, None)]
        if stale:
            notes.append(
                f"the key/value pair '{KEY}' is about another array; not used: {', '.join(stale)}"
            )
    if not restore:
        extras = {name: value for name, value in extras.items() if name not in _POSITIONAL}
    return extras


def restore(array: Array, extras: dict[str, Any], bundle: Bundle, complex: str) -> None:
    """Make the array what it was before it was written, as far as the extras tell."""
    meta = array.meta
    marked = extras.get("element")
    if complex == "numbers" or (complex == "auto" and marked == "complex"):
        _join_pairs(array, bundle.notes)
    elif marked not in (None, "complex", "bool"):
        array.element = _described(array.element, frozen(marked), bundle.notes)
    if "dims" in extras and array.dims == (1,):
        array.dims, meta.axes = (), []
        meta.formats.get(NAMESPACE, {}).pop("axes", None)
    array.index_order = extras.get("index_order")
    meta.description = extras.get("description", meta.description)
    meta.units = extras.get("units", meta.units)
    meta.encoding = extras.get("encoding")
    meta.attributes.update(extras.get("attributes", {}))
    _restore_axes(array, extras.get("axes", []))
    for name, space in extras.get("formats", {}).items():
        meta.formats.setdefault(name, {}).update(space)
    file = extras.get("file", {})
    bundle.attributes.update(file.get("attributes", {}))
    bundle.groups.update(file.get("groups", {}))
    bundle.formats.update(file.get("formats", {}))


def _restore_axes(array: Array, axes: list[dict[str, Any]]) -> None:
    """Give the axes the fields that the header does not hold."""
    more = array.ndim - len(axes)  # one, where pairs were asked for
    if not axes or more < 0:
        return
    known = array.meta.axes or [Axis() for _ in range(array.ndim)]
    for axis, fields in zip(known[more:], axes, strict=True):
        for name, value in fields.items():
            setattr(axis, name, value)
    array.meta.axes = known


def _join_pairs(array: Array, notes: list[str]) -> None:
    """Make complex numbers of a fastest axis of kind complex."""
    kind, nbytes, order, _ = array.element
    meta = array.meta
    first = meta.axes[0] if meta.axes else Axis()
    if kind != "float" or array.dims[0] != 2 or first.kind != "complex":
        notes.append("there are no complex numbers: no fastest axis of kind complex, two floats")
        return
    array.element, array.dims = element("complex", 2 * nbytes, order), array.dims[1:]
    own = meta.formats.get(NAMESPACE, {})
    entry = own["axes"].pop(0) if "axes" in own else {}
    if "axes" in own and not any(own["axes"]):
        del own["axes"]
    fields = {key: value for key, value in first.to_dict().items() if key != "kind"}
    if entry.get("direction") is not None:  # it implies these
        fields = {key: fields[key] for key in fields if key == "name"}
    fields.pop("origin", None)
    if entry or fields:
        meta.formats.setdefault(NAMESPACE, own)["complex_axis"] = {**entry, **fields}
    meta.axes = meta.axes[1:] if any(axis.to_dict() for axis in meta.axes[1:]) else []


def _described(stored: Element, descr: Any, notes: list[str]) -> Element:
    """Return the element of a block with its description, if that describes it."""
    described = Element("user", stored.nbytes, "|", descr)
    try:
        dtype = dtype_of(described)
        fits_block = dtype.itemsize == stored.nbytes and not dtype.hasobject
    except (TypeError, ValueError, LookupError, AttributeError, RaconvertError, RecursionError):
        fits_block = False
    if stored.kind == "user" and fits_block:
        return described
    notes.append(f"the pair '{KEY}' describes other elements than the file has; not used")
    return stored
