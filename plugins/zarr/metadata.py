"""Metadata: as attributes and dimension names, and the rest as a record.

The record is one attribute, of text (`raconvert.metadata.roundtrip`). On an array it has what names
of dimensions and JSON do not hold, and its own `name` if no folder can have that. On a group: such
attributes, and its `name`. On the root: the record of the file, and the `order` of the arrays.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from math import isfinite, isnan

from raconvert.arrays.dtypes import element_of
from raconvert.arrays.interop.conventions import (
    MISSING,
    Coordinates,
    calendar_of,
    filled,
    unsaid,
)
from raconvert.arrays.interop.times import NOT_A_TIME
from raconvert.arrays.space import coordinates
from raconvert.errors import Corrupt
from raconvert.files.limits import DEFAULT
from raconvert.metadata import roundtrip
from raconvert.metadata.roundtrip import FIELDS, KEY, is_field, take_common, take_record
from raconvert.plugin import Array, Axis, Metadata

from .form import key_beside, same_on_disk
from .header import ODD_FLOATS
from .tables import AXES_OF_V2, OWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from raconvert.files.limits import Limits
    from raconvert.plugin import Bundle

    from .header import Node


# Reading ------------------------------------------------------------------------------------------


def take_named(attributes: dict[str, Any], path: str, limits: Limits) -> dict[str, Any]:
    """Remove our record, which may have a name, from attributes; return it. Raises `Corrupt`."""
    record = take_record(attributes, path, limits)
    if not isinstance(record.get("name", ""), str):
        raise Corrupt(f"attribute '{KEY}' has the wrong form", path=path)
    return record


def describe(array: Array, node: Node, stem: str, path: str, limits: Limits) -> Array:
    """Return the array with the metadata of its node; `stem` is the last part of its key."""
    attributes = dict(node.attributes)
    record = take_named(attributes, path, limits)
    names = _names(node, attributes)
    changes: dict[str, Any] = {}
    if names and any(_is_name(name, stem, axis) for axis, name in enumerate(names)):
        changes["axes"] = [
            Axis(name=name if _is_name(name, stem, axis) else None)
            for axis, name in enumerate(names)
        ]
    _take_missing(attributes, array, node, by_xarray=names is not None and node.version == 2)
    own = _own(node, attributes)
    changes |= take_common(attributes)
    array.meta = array.meta.replace(attributes=attributes, **changes)
    if own:
        array.meta = array.meta.with_format(OWN, **own)
    if record:
        array = roundtrip.apply(record, array, path, limits)
        array.name = record.get("name", array.name)
    return array


def complete(array: Array, key: str, coordinates: Coordinates) -> None:
    """Fill the axes of an array from the coordinates of their names."""
    if array.problem is None and any(axis.name for axis in array.meta.axes):
        order = 1 if array.index_order == "F" else -1
        pairs = zip(array.ra_axes, array.dims, strict=True)
        axes = [filled(axis, coordinates.along(key, axis, length)) for axis, length in pairs]
        if axes != list(array.ra_axes):
            array.meta = array.meta.replace(axes=axes[::order])


def _is_name(name: str | None, stem: str, axis: int) -> bool:
    """True unless a dimension has no name, or the placeholder for it."""
    return bool(name) and name != placeholder(stem, axis)


def placeholder(stem: str, axis: int) -> str:
    """The placeholder for the name of a dimension: xarray opens no array without names."""
    return f"{stem}_dim_{axis}"


def dimension_names(node: Node) -> list[str]:
    """The names of the dimensions of an array, in the order of its shape; empty if it has none."""
    return [name or "" for name in _names(node, dict(node.attributes)) or ()]


def _names(node: Node, attributes: dict[str, Any]) -> list[str | None] | None:
    """The names of the axes, in the order of the shape."""
    if node.names is not None:
        return node.names
    names = attributes.get(AXES_OF_V2)
    if (
        isinstance(names, list)
        and len(names) == len(node.shape)
        and all(isinstance(name, str) for name in names)
    ):
        del attributes[AXES_OF_V2]
        return list(names)
    return None


def _own(node: Node, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of our namespace: a fill value other than 0 or that of missing elements."""
    own: dict[str, Any] = {}
    usual = (None, 0, "", False, NOT_A_TIME, [0, 0])
    is_missing = MISSING in attributes and (
        json_number(attributes[MISSING]) == json_number(_number(node.fill))
    )
    if not is_missing and node.fill not in usual and isinstance(node.fill, (int, float, str, list)):
        own["fill_value"] = node.fill
    return own


# The value that stands for missing elements -------------------------------------------------------
#
# xarray's convention. Version 3: the attribute `_FillValue`; floats in it are the base64 of their 8
# bytes, as JSON has no NaN. Version 2: the `fill_value` of an array whose dimensions have names.


def _take_missing(attributes: dict[str, Any], array: Array, node: Node, *, by_xarray: bool) -> None:
    """Set the value for missing elements in the attributes as a number."""
    if node.variable:  # texts, whose width is not read yet
        return
    kind, missing = array.element.kind, attributes.get(MISSING)
    if missing is None and by_xarray and kind in ("int", "uint", "float"):
        number = _number(node.fill)
        if number is not None:
            attributes[MISSING] = number
    elif node.version == 3 and kind == "float" and isinstance(missing, str):
        number = _of_base64(missing)
        if number is not None:
            attributes[MISSING] = number


def _number(fill: Any) -> int | float | None:
    """Return a fill value of a document as a number; None if it is not one."""
    if type(fill) in (int, float):
        return fill  # type: ignore[no-any-return]
    return float(ODD_FLOATS[fill]) if isinstance(fill, str) and fill in ODD_FLOATS else None


def _of_base64(text: str) -> float | None:
    try:
        return float(struct.unpack("<d", b64decode(text, validate=True))[0])
    except (ValueError, struct.error):
        return None


def json_number(value: Any) -> Any:
    """Return a number as a document has it: floats that JSON lacks as their names."""
    if type(value) is not float or isfinite(value):
        return value
    if isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def missing_of(array: Array) -> Any:
    """Return the value for missing elements if an element can have it; else None."""
    value, element = array.meta.attributes.get(MISSING), array.element
    if element.kind == "float" and type(value) in (int, float):
        return float(value)
    if element.kind in ("int", "uint") and type(value) in (int, float) and value == value // 1:
        bits = 8 * element.nbytes - (element.kind == "int")
        low = -(1 << bits) if element.kind == "int" else 0
        return int(value) if low <= value < 1 << bits else None
    return None


def _encoded_missing(array: Array, version: int) -> dict[str, Any] | None:
    """Return the attribute for missing elements as a dict; None if readers would fail by it."""
    value = missing_of(array)
    if value is None:
        return None
    if version == 2:  # it is the fill value
        return {}
    if type(value) is float:
        value = b64encode(struct.pack("<d", value)).decode()
    return {MISSING: value}


# Writing ------------------------------------------------------------------------------------------


def divided(
    array: Array, key: str, version: int, coordinates: Coordinates, apart: Collection[str] = ()
) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    """Divide an array's metadata: attributes, names of dimensions, and the record of the rest.

    `coordinates` are those that are read back with the array; `apart` are names of axes that are
    not names of dimensions.
    """
    fields = roundtrip.record_of(array)
    fields.pop("items", None)
    own = fields.get("formats", {}).pop(OWN, {})
    if "formats" in fields and not fields["formats"]:
        del fields["formats"]
    attributes: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in fields.pop("attributes", {}).items():
        encoded = _encoded_missing(array, version) if name == MISSING else None
        if encoded is not None:
            attributes.update(encoded)
        elif _is_held(name, value, array):
            attributes[name] = value
        else:
            rest[name] = value
    for name, field in FIELDS.items():
        text = fields.get(field)
        if text and name not in attributes:
            attributes[name] = fields.pop(field)
    if rest:
        fields["attributes"] = rest
    other = {k: v for k, v in own.items() if k not in ("fill_value", "variable", "description")}
    if other:
        fields.setdefault("formats", {})[OWN] = other
    names = _dimensions(array, key, fields, coordinates, apart)
    return attributes, names, fields


def _is_held(name: str, value: Any, array: Array) -> bool:
    """True for an attribute that is read back as it is."""
    if name in (KEY, AXES_OF_V2, MISSING) or not _is_json(value):
        return False
    # A text would be read as the common field, which is written under this name, too.
    return not is_field(name, value)


def unheld(array: Array) -> list[str]:
    """Return the names of attributes that only the record has, which other programs do not read."""
    return [
        name
        for name, value in array.meta.attributes.items()
        if name not in (KEY, *FIELDS)
        and not (name == MISSING and missing_of(array) is not None)
        and not _is_held(name, value, array)
    ]


def _dimensions(
    array: Array, key: str, fields: dict[str, Any], coordinates: Coordinates,
    apart: Collection[str],
) -> list[str]:  # fmt: skip
    """The names of the dimensions; removes from the record what names and coordinates hold."""
    stem = key.rpartition("/")[2]
    names = [placeholder(stem, axis) for axis in range(array.ndim)]
    if "axes" not in fields:
        return names
    axes = [dict(axis) for axis in fields["axes"]][::-1]  # as listed in C order
    for axis, facts_of_axis in enumerate(axes):
        name = facts_of_axis.get("name")
        if name and name != names[axis] and name not in apart and _is_text(name):
            whole = Axis(**facts_of_axis)
            facts = coordinates.along(key, whole, array.dims[::-1][axis])
            facts_of_axis = unsaid(whole, facts).to_dict()  # noqa: PLW2901
            names[axis] = name
            facts_of_axis.pop("name", None)
            axes[axis] = facts_of_axis
    if any(axes):
        fields["axes"] = axes[::-1]
    else:
        del fields["axes"]
    return names


def json_and_rest(attributes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide the attributes of a group: those that JSON holds, and the others."""
    held = {k: v for k, v in attributes.items() if k != KEY and _is_text(k) and _is_json(v)}
    return held, {k: v for k, v in attributes.items() if k not in held}


def _is_text(text: str) -> bool:
    """True for a text without surrogates, which UTF-8 cannot have."""
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


# Coordinates for other readers: an array for the values along an axis -----------------------------
# To xarray, a one-dimensional array with the name of a dimension is its coordinate. Those that we
# make have a record ``axis_of``, and are not read as arrays: the axes have all of it.


MOST = 1 << 20  # values of a coordinate
OF = "axis_of"  # field in its record


def is_scale(node: Node, limits: Limits) -> bool:
    """True for an array that `scales_of` has made from an axis."""
    text = node.attributes.get(KEY)
    if text is None or len(node.shape) != 1 or not roundtrip.is_marked(text):
        return False
    try:
        return isinstance(roundtrip.record_in(text, limits).get(OF), str)
    except ValueError:
        return False


def scales_of(
    bundle: Bundle,
    keys: Sequence[str],
    groups: Mapping[str, str],
    around: Coordinates | None = None,
) -> list[tuple[str, str, Array]]:
    """List (key, name of the array with the axis, coordinate) for each axis with values.

    `keys` are those of the arrays, `groups` maps the names of groups to theirs. An axis gets no
    coordinate if another array or group has the key, if axes of this name in one group differ, and
    if no folder can have its name. `around`: the coordinates that are read back with the arrays.
    """
    scales: dict[str, tuple[str, str, Array, dict[str, Any], int] | None] = {}
    apart = apart_of(bundle, keys)
    around = around or Coordinates(bundle.arrays, keys, DEFAULT)
    for array, array_key in zip(bundle.arrays, keys, strict=True):
        if array.problem is not None:
            continue
        axes = coordinates(array.ra_axes, array.meta.space)
        for axis, length in zip(axes, array.dims, strict=False):
            name = axis.name or ""
            shared = name and name not in apart.get(array.name, ())
            key = key_beside(array_key, name) if shared else None
            if key is None:
                continue
            if around.at(array_key, name, length) and _is_said(
                axis, around.along(array_key, axis, length)
            ):
                continue  # an array of a group around it is already its coordinate
            folded = same_on_disk(key)
            calendar = calendar_of(array, axis)
            made = _coordinate(axis, length, calendar)
            facts = {k: v for k, v in axis.to_dict().items() if k != "kind"} | calendar
            earlier = scales.get(folded)
            if folded not in scales:
                scales[folded] = None if made is None else (key, array.name, made, facts, length)
            elif earlier is not None and (earlier[0], *earlier[3:]) != (key, facts, length):
                scales[folded] = None
    used = {same_on_disk(key) for key in (*keys, *groups.values())}
    return [row[:3] for folded, row in scales.items() if row is not None and folded not in used]


def apart_of(bundle: Bundle, keys: Sequence[str]) -> dict[str, set[str]]:
    """Map each array to its axis names that cannot be dimensions, as lengths in its group differ.

    xarray opens no group in which a dimension has two lengths. The length of the array named as the
    dimension counts, else that of the first array.
    """
    names_by_array: dict[str, set[str]] = {}
    lengths: dict[tuple[str, str], int] = {}
    located = [
        (array, *key.rpartition("/")[::2]) for array, key in zip(bundle.arrays, keys, strict=True)
    ]
    for own in (True, False):
        for array, group, last in located:
            for axis, length in zip(array.ra_axes, array.dims, strict=False):
                name = axis.name or ""
                if not name or (own and (name != last or array.ndim != 1)):
                    continue
                if lengths.setdefault((group, name), length) != length:
                    names_by_array.setdefault(array.name, set()).add(name)
    return names_by_array


def _is_said(axis: Axis, facts: Mapping[str, Any]) -> bool:
    """True if a coordinate has all facts of an axis but its name."""
    return not unsaid(axis.replace(kind=None), facts).replace(name=None)


def _coordinate(axis: Axis, length: int, attributes: dict[str, str]) -> Array | None:
    """Return the values along an axis as an array; None if it has none, or not numbers or texts."""
    values = axis.values(length) if 1 <= length <= MOST else None
    if values is None or values.dtype.kind not in "ifU":
        return None
    values = values.astype(values.dtype.newbyteorder("<"))
    meta = Metadata(units=axis.units, axes=[Axis(axis.name)], attributes=attributes)
    return Array(
        element_of(values.dtype), (length,), name=axis.name or "", index_order="C", data=values,
        meta=meta,
    )  # fmt: skip
