"""Comparison of the descriptions of two arrays, or files, field by field."""

from __future__ import annotations

from itertools import groupby, zip_longest
from math import isnan

from raconvert.arrays.metadata import replaced_trailer, trailer_of
from raconvert.inspect.info import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle


def meta_of(array: Array) -> dict[str, Any]:
    """The metadata of an array as fields, with the digest of a trailer in its place."""
    fields = array.meta.to_dict()
    trailer = trailer_of(array.meta)
    if not hasattr(trailer, "offset"):
        return fields
    return replaced_trailer(fields, _trailer_digest(trailer))


def without_traces(
    a: dict[str, Any], b: dict[str, Any], formats: tuple[str, str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Leave out the namespaces of third formats that only one side has."""
    if not all(isinstance(fields.get("formats", {}), dict) for fields in (a, b)):
        return a, b
    names = set(a.get("formats", {})) & set(b.get("formats", {})) | set(formats)
    sides = []
    for fields in (a, b):
        spaces = {name: own for name, own in fields.get("formats", {}).items() if name in names}
        common = {name: value for name, value in fields.items() if name != "formats"}
        sides.append({**common, **({"formats": spaces} if spaces else {})})
    return sides[0], sides[1]


def item_differences(a: Array, b: Array, formats: tuple[str, str]) -> dict[str, Any] | None:
    """The differences of the metadata of single items of two stacks; None without any.

    ``differ`` is the number of items that differ, ``first`` the index of the first of them,
    ``fields`` its differences.
    """
    if a.meta.items is None and b.meta.items is None:
        return None
    sides = [array.meta.items() if array.meta.items is not None else () for array in (a, b)]
    differences: dict[str, Any] = {"differ": 0, "first": None, "fields": []}
    for index, (x, y) in enumerate(zip_longest(*sides, fillvalue={})):
        fields = meta_differences(*without_traces(x, y, formats))
        if fields:
            differences["differ"] += 1
            if differences["first"] is None:
                differences.update(first=index, fields=fields)
    return differences if differences["differ"] else None


def differences_about(a: Bundle, b: Bundle) -> dict[str, Any]:
    """The differences of two files in attributes, groups, aliases and the order of arrays."""
    return {
        "metadata": meta_differences(a.attributes, b.attributes),
        "groups": meta_differences(
            {"groups": a.explicit_groups()}, {"groups": b.explicit_groups()}
        ),
        "forms": _form_differences(a.forms, b.forms),
        "aliases": meta_differences(a.aliases, b.aliases),
        "order": _order_difference(a, b),
    }


def _form_differences(a: dict[str, str], b: dict[str, str]) -> list[dict[str, Any]]:
    """The groups whose forms differ, such as a struct array of MATLAB, with both forms."""
    sides = [("a", a), ("b", b)]
    return [
        {"field": path, **{side: forms[path] for side, forms in sides if path in forms}}
        for path in sorted({*a, *b})
        if a.get(path) != b.get(path)
    ]


def _order_difference(a: Bundle, b: Bundle) -> dict[str, Any] | None:
    """The first index at which the order of the arrays differs, and both names; else None."""
    both = set(a.names) & set(b.names)
    left = [name for name in a.names if name in both]
    right = [name for name in b.names if name in both]
    for index, (x, y) in enumerate(zip(left, right, strict=False)):
        if x != y:
            return {"index": index, "a": x, "b": y}
    return None


def _trailer_digest(trailer: Any) -> str:
    """Return the length and the SHA-256 of a trailer, as a text."""
    import hashlib

    from raconvert.inspect.digest import hash_extent

    state = hashlib.sha256()
    hash_extent(state, trailer)
    return f"{trailer.nbytes} bytes, SHA-256 {state.hexdigest()}"


def meta_differences(a: Any, b: Any, name: str = "") -> list[dict[str, Any]]:
    """Return the fields that differ: their dotted name and both values, or the one that exists.

    Values of different types are different; NaN equals NaN, and tuples are lists. A field has
    ``types`` if both values look alike, as NaN in JSON and the text ``nan`` do.
    """
    a, b = _settled(a), _settled(b)
    if _same_meta(a, b):
        return []
    if isinstance(a, dict) and isinstance(b, dict):
        return _part_differences(_by_key(a), _by_key(b), name)
    if isinstance(a, list) and isinstance(b, list) and (_has_mapping(a) or _has_mapping(b)):
        return _part_differences(_by_number(a), _by_number(b), name)
    if _is_leaf(a) and _is_leaf(b):
        return [_field_difference(name, a, b)]
    return [*_one_sided("a", a, name), *_one_sided("b", b, name)]


def _part_differences(a: dict[Any, Any], b: dict[Any, Any], name: str) -> list[dict[str, Any]]:
    """Return the fields that differ in two mappings or lists, made by `_by_key` or `_by_number`."""
    differences = []
    for key in [*a, *(key for key in b if key not in a)]:
        inner = _joined(name, key[1])
        if key in a and key in b:
            differences += meta_differences(a[key], b[key], inner)
        else:
            side, value = ("a", a[key]) if key in a else ("b", b[key])
            differences += _one_sided(side, value, inner)
    return differences


def _by_key(fields: dict[Any, Any]) -> dict[tuple[type, str], Any]:
    """Return the values by type and text of their keys, so that 1 and "1" are two keys."""
    return {(type(key), _key_text(key)): value for key, value in fields.items()}


def _by_number(items: list[Any]) -> dict[tuple[type, str], Any]:
    """Return the items of a list by their indices, as `_by_key` returns the values of a mapping."""
    return {(list, f"[{number}]"): item for number, item in enumerate(items)}


def _key_text(key: Any) -> str:
    """Return a key for a dotted name, in quotes where it could be read as more than one."""
    text = str(key)
    return repr(text) if "." in text or "[" in text or not text else text


def _joined(name: str, part: str) -> str:
    """Return the dotted name of a part, or that of an index in brackets."""
    return f"{name}{part}" if part.startswith("[") or not name else f"{name}.{part}"


def _field_difference(name: str, a: Any, b: Any) -> dict[str, Any]:
    """Return a field that differs, with the types of values that look alike."""
    field = {"field": name, "a": plain(a), "b": plain(b)}
    if field["a"] == field["b"]:
        field["types"] = [_meta_type(a), _meta_type(b)]
    return field


def _meta_type(value: Any) -> str:
    """Return the type of a value; for a list also those of its items, without repetitions."""
    if not isinstance(value, list):
        return type(value).__name__
    return (
        f"list of {', '.join(kind for kind, _ in groupby(map(_meta_type, map(_settled, value))))}"
    )


def _one_sided(side: str, value: Any, name: str) -> Iterator[dict[str, Any]]:
    """Yield one field for each plain value of nested metadata that only one side has."""
    value = _settled(value)
    if _is_leaf(value):
        yield {"field": name, side: plain(value)}
        return
    parts = _by_key(value) if isinstance(value, dict) else _by_number(value)
    for (_, key), item in parts.items():
        yield from _one_sided(side, item, _joined(name, key))


def _is_leaf(value: Any) -> bool:
    """True if a value is one field: plain, empty, or a list of plain values."""
    return not (value and isinstance(value, dict)) and not _has_mapping(value)


def _has_mapping(value: Any) -> bool:
    """True for a list in which there is a mapping."""
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def _same_meta(a: Any, b: Any) -> bool:
    """True if two values of metadata are equal, in type too; NaN equals NaN."""
    a, b = _settled(a), _settled(b)
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        left, right = _by_key(a), _by_key(b)
        return left.keys() == right.keys() and all(_same_meta(left[k], right[k]) for k in left)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_same_meta, a, b))
    if isinstance(a, (bool, int, str, bytes, type(None))):
        return bool(a == b)
    if isinstance(a, float):
        return a == b or (isnan(a) and isnan(b))
    return bool(plain(a) == plain(b))


def _settled(value: Any) -> Any:
    """Return a value of metadata in Python's own types, tuples as lists, bytearrays as bytes."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, tuple):
        return list(value)
    return bytes(value) if isinstance(value, bytearray) else value
