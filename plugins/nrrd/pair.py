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

The notation of values that JSON lacks is that of `raconvert.metadata.json`.
"""

from __future__ import annotations

from raconvert.arrays.dtypes import dtype_of, element, frozen
from raconvert.errors import RaconvertError
from raconvert.metadata import json
from raconvert.plugin import Array, Axis, Bundle, Element, Extent, Metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .header import Header

NAMESPACE = "nrrd"
KEY = "raconvert"
# Parsing costs up to 24 times the length in memory; escaped, it fits one line of the header.
MAX_JSON_BYTES = 1 << 20
_POSITIONAL = ("element", "dims", "index_order", "axes")  # these depend on type and sizes


# --- text -----------------------------------------------------------------------------------------


def extras_text(fields: dict[str, Any]) -> str:
    """The mapping as JSON in ASCII; ValueError for what it cannot hold."""
    text = json.dumps(fields)
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(f"it is longer than {MAX_JSON_BYTES} bytes")
    return text


def parse_extras(text: str) -> dict[str, Any]:
    """The mapping that `extras_text` made a text of; ValueError for any other text."""
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(f"it is longer than {MAX_JSON_BYTES} characters")
    fields = json.loads(text, strict=True)
    if not isinstance(fields, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - as every other fault in it
    for name, has_form in _FORMS.items():
        if name in fields and not has_form(fields[name]):
            raise ValueError(f"its field '{name}' has a wrong form")
    return fields


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
    """True if a value is a mapping of fields of `Axis`, each of its type."""
    return isinstance(value, dict) and all(Axis.takes(name, v) for name, v in value.items())


def without_extents(space: dict[str, Any]) -> dict[str, Any]:
    """Leave out bytes that are only referred to in their own file (trailers of RA files)."""
    return {key: value for key, value in space.items() if not isinstance(value, Extent)}


# --- the array as it was --------------------------------------------------------------------------


def taken(header: Header, meta: Metadata, notes: list[str], *, restore: bool) -> dict[str, Any]:
    """The mapping of our own key/value pair, which is then not an attribute any more.

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
        notes.append(
            "there are no complex numbers: the fastest axis is not two floats of kind complex"
        )
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
    """The element of a block with its description, if that describes it."""
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
