"""Compare arrays by index, whatever file format and memory order they are stored in.

Shape, element type (with its description) and every element by logical index count; byte order and
memory order do not. Data is read in blocks, side by side, so that memory stays bounded. Metadata is
compared by structure, and values in it by type: 1, 1.0 and True are three values.
"""

from __future__ import annotations

import os
from itertools import groupby, zip_longest
from math import isnan

import numpy as np

from raconvert import registry
from raconvert.arrays.axes import in_order
from raconvert.arrays.blocks import block_bytes, blocks
from raconvert.arrays.dtypes import little, type_name
from raconvert.conversion.read import open_bundle
from raconvert.conversion.unreadable import FAILURES, find, why
from raconvert.errors import Corrupt, UsageError, listed
from raconvert.files.source import DEFAULT_MAX_MEMORY
from raconvert.inspect.info import plain
from raconvert.metadata.roundtrip import as_characters, units_of
from raconvert.ra.namespace import replaced_trailer, trailer_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle

    Values = np.ndarray[Any, Any]

    Mask = Any  # an array of bool: numpy types what its operators give so

_NUMBERS = ("int", "uint", "float", "complex", "bool", "bfloat")
_LARGEST_EXACT = 2.0**63  # floats from here on are not an int64


# Two files -------------------------------------------------------------------------------------


def diff(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str],
    *,
    atol: float = 0.0,
    rtol: float = 0.0,
    bitwise: bool = False,
    ignore_meta: bool = False,
    max_memory: int = DEFAULT_MAX_MEMORY,
    **reading: Any,
) -> dict[str, Any]:
    """The differences of two files; ``same`` is True if there are none.

    NaN equals NaN at the same place. Two numbers differ if ``abs(x - y) > atol + rtol * max(abs(x),
    abs(y))``; `bitwise` compares bytes instead, so that -0.0 is not 0.0 and NaN payloads count.
    Containers are compared by name, two single arrays whatever their names are. ``metadata`` has
    what the files say of themselves, ``groups`` what they say of their groups, and which empty ones
    only one side has; ``aliases`` the further names that the files have for arrays and groups;
    ``order`` is the first place at which the arrays that both have come in another order, or None.
    Of what a format keeps about a file as a whole for its own way back (`Bundle.formats`), only the
    forms of groups count. `reading` as in `raconvert.conversion.read.open_bundle`.

    Files whose arrays cannot be paired raise `UsageError`, and so do two single arrays whose
    elements cannot be compared (text with numbers); among several such arrays only differ in type.
    """
    if bitwise and (atol or rtol):
        raise UsageError("a bitwise comparison has no tolerance")
    if not (atol >= 0 and rtol >= 0):
        raise UsageError("a tolerance is not negative", got=f"atol {atol}, rtol {rtol}")
    rule = Rule(atol, rtol, bitwise, max_memory)
    with (
        open_bundle(a, max_memory=max_memory, **reading) as left,
        open_bundle(b, max_memory=max_memory, **reading) as right,
    ):
        pairs, only_a, only_b = pair_arrays(left, right)
        formats = left.format, right.format
        alone = len(pairs) == 1
        arrays = [
            compare_arrays(x, y, rule, ignore_meta=ignore_meta, formats=formats, alone=alone)
            for x, y in pairs
        ]
        about = {} if ignore_meta else _about(left, right)
        same = all(item["same"] for item in arrays) and not (only_a or only_b)
        return {
            "a": os.fspath(a),
            "b": os.fspath(b),
            "same": same and not any(about.values()),
            "arrays": arrays,
            "only_in_a": only_a,
            "only_in_b": only_b,
            "metadata": about.get("metadata", []),
            "groups": about.get("groups", []),
            "aliases": about.get("aliases", []),
            "order": about.get("order"),
        }


class Rule:
    """How elements are compared: tolerances, or bytes, and how much memory that may take."""

    __slots__ = ("atol", "bitwise", "max_memory", "rtol")

    def __init__(
        self,
        atol: float = 0.0,
        rtol: float = 0.0,
        bitwise: bool = False,
        max_memory: int = DEFAULT_MAX_MEMORY,
    ) -> None:
        self.atol: float = atol
        self.rtol: float = rtol
        self.bitwise: bool = bitwise
        self.max_memory: int = max_memory


def pair_arrays(a: Bundle, b: Bundle) -> tuple[list[tuple[Array, Array]], list[str], list[str]]:
    """The pairs of arrays to compare, and the names that only one side has."""
    many = [registry.by_name(bundle.format).many for bundle in (a, b)]
    if not all(many) and len(a.arrays) == len(b.arrays) == 1:
        return [(a.arrays[0], b.arrays[0])], [], []
    names_a, names_b = set(a.names), set(b.names)  # their own: an alias is not another array
    pairs = [(array, b[array.name]) for array in a.arrays if array.name in names_b]
    if not all(many) and not pairs:
        single, other = (b, a) if many[0] else (a, b)
        raise UsageError(
            f"has {len(other.arrays)} arrays, none of them called '{single.names[0]}'",
            path=other.path,
            remedy=f"choose with FILE#NAME: {listed(other.names)}",
        )
    only_a = [name for name in a.names if name not in names_b]
    only_b = [name for name in b.names if name not in names_a]
    return pairs, only_a, only_b


def compare_arrays(
    a: Array,
    b: Array,
    rule: Rule,
    *,
    ignore_meta: bool = True,
    formats: tuple[str, str] = ("", ""),
    alone: bool = True,
) -> dict[str, Any]:
    """The differences of two arrays in type, shape, elements and, unless ignored, metadata.

    What a third format than the two `formats` keeps for its own way back is compared only where
    both sides have it: it says through which files the data came, not what it is.
    ``data`` is None where the shapes differ, so that elements cannot be compared by index, and
    where the elements cannot be compared at all; `alone`, the latter raises `UsageError`.
    ``problems`` are the reasons why either cannot be read, mostly None; such arrays are never the
    same.
    ``items`` tells how what the items of two stacks have of their own differs, or is None.
    """
    if alone:
        for one in (a, b):
            if one.problem is not None:
                raise one.problem
    broken = _problems(a, b)
    same_type = little(a.element) == little(b.element)
    same_shape = a.shape == b.shape
    data: dict[str, Any] | None = None
    differ = 0
    odd = _incomparable(a, b, rule) if same_shape else None
    if odd is not None and alone:
        raise odd
    if same_shape and odd is None and not any(broken):
        try:
            data = compare_data(a, b, rule)
            differ = data["differ"]
        except FAILURES:
            if alone or not find([a, b], rule.max_memory):
                raise
            broken = _problems(a, b)
    left, right = _without_traces(_meta_of(a), _meta_of(b), formats)
    metadata = [] if ignore_meta else meta_differences(left, right)
    items = None if ignore_meta else _item_differences(a, b, formats)
    return {
        "name": a.name,
        "name_b": b.name,
        "type": [type_text(a), type_text(b)],
        "same_type": same_type,
        "shape": [list(a.shape), list(b.shape)],
        "same_shape": same_shape,
        "data": data,
        "metadata": metadata,
        "items": items,
        "problems": broken,
        "same": same_type and same_shape and not (differ or metadata or items or any(broken)),
    }


def _problems(a: Array, b: Array) -> list[str | None]:
    return [None if x.problem is None else why(x.problem) for x in (a, b)]


def type_text(array: Array) -> str:
    """Return the type with its description where the plain name hides it."""
    element = little(array.element)
    return str(element.descr) if isinstance(element.descr, tuple) else type_name(element)


def _incomparable(a: Array, b: Array, rule: Rule) -> UsageError | None:
    """The reason why the elements of two arrays cannot be compared; None if they can."""
    got = f"{type_text(a)} and {type_text(b)}"
    if not _are_alike(a, b):
        return UsageError(
            f"elements of '{a.name}' and '{b.name}' cannot be compared",
            expected="two numeric types, or two other types of one kind",
            got=got,
        )
    if rule.bitwise and little(a.element) != little(b.element):
        return UsageError(
            f"elements of '{a.name}' cannot be compared bit by bit",
            expected="one type on both sides",
            got=got,
        )
    return None


def _are_alike(a: Array, b: Array) -> bool:
    kinds = a.element.kind, b.element.kind
    if kinds != ("user", "user"):
        return all(kind in _NUMBERS for kind in kinds)
    letters = {_letter(a), _letter(b)}
    if a.element.nbytes == b.element.nbytes and ("V" in letters or len(letters) == 1):
        return True
    return letters == {"S", "U"} or (len(letters) == 1 and "V" not in letters)


def _letter(array: Array) -> str:
    """Return numpy's letter for what user elements are: S, U, M, m or V."""
    descr = array.element.descr
    return descr[1] if isinstance(descr, str) else "V"


# Elements --------------------------------------------------------------------------------------


def compare_data(a: Array, b: Array, rule: Rule) -> dict[str, Any]:
    """Compare elements that can be compared, block by block; both sides in one stored order."""
    if _letter(a) != _letter(b):
        a, b = as_characters(a), as_characters(b)
    order: Literal["C", "F"] = "F" if a.index_order == b.index_order == "F" else "C"
    sides = in_order(a, order, rule.max_memory), in_order(b, order, rule.max_memory)
    equal = _same_bytes if _by_bytes(a, b, rule) else _same_values
    found = _Findings(a.shape, order)
    for start, x, y in _side_by_side(*sides, block_bytes(rule.max_memory)):
        if x.dtype == y.dtype and _same_bytes_all(x, y):
            continue
        odd = np.flatnonzero(~equal(x, y))
        if odd.size:
            found.add(start, odd, x[odd], y[odd], rule)
    return found.to_dict()


def _by_bytes(a: Array, b: Array, rule: Rule) -> bool:
    """True if elements are equal only if their bytes are; always so for user types."""
    return rule.bitwise or (
        a.element.kind == "user"
        and a.element.nbytes == b.element.nbytes
        and (a.element.descr == b.element.descr or "V" in (_letter(a), _letter(b)))
    )


def _side_by_side(a: Array, b: Array, max_bytes: int) -> Iterator[tuple[int, Values, Values]]:
    """Yield (first element, values of a, values of b): flat pieces of equal length, in order."""
    if a.count == 0:
        return
    left, right = blocks(a, max_bytes), blocks(b, max_bytes)
    x = y = np.empty(0)
    done = 0
    while done < a.count:
        if not x.size:
            x = _next(left, a, done)
        if not y.size:
            y = _next(right, b, done)
        count = min(x.size, y.size)
        yield done, x[:count], y[:count]
        x, y = x[count:], y[count:]
        done += count


def _next(pieces: Iterator[Values], array: Array, done: int) -> Values:
    for piece in pieces:
        if piece.size:
            return piece.reshape(-1)
    raise Corrupt(f"array '{array.name}' ended early", expected=f"{array.count} elements", got=done)


def _as_bytes(values: Values) -> Values:
    """Return the bytes of each element as one row."""
    values = np.ascontiguousarray(values)
    return values.view(np.uint8).reshape(values.size, values.itemsize)


def _same_bytes_all(x: Values, y: Values) -> bool:
    return np.array_equal(
        np.ascontiguousarray(x).view(np.uint8), np.ascontiguousarray(y).view(np.uint8)
    )


def _same_bytes(x: Values, y: Values) -> Mask:
    return (_as_bytes(x) == _as_bytes(y)).all(axis=1)


def _same_values(x: Values, y: Values) -> Mask:
    """True for each element that is equal in both, exactly, NaN with NaN.

    numpy compares integers with floats in float64, which rounds beyond 2**53: there the float is
    turned into an integer instead, if it is one.
    """
    if {x.dtype.kind, y.dtype.kind} == {"S", "U"}:
        return _same_text(x, y)
    x, y = _widened(x), _widened(y)
    if x.dtype.kind in "iu" and y.dtype.kind in "fc":
        return _same_integer(x, y)
    if y.dtype.kind in "iu" and x.dtype.kind in "fc":
        return _same_integer(y, x)
    if "c" in (x.dtype.kind, y.dtype.kind):
        return _same_float(x.real, y.real) & _same_float(x.imag, y.imag)
    if x.dtype.kind == y.dtype.kind == "f":
        return _same_float(x, y)
    same = x == y
    if x.dtype.kind in "mM" and y.dtype.kind in "mM":
        same |= np.isnat(x) & np.isnat(y)
    return same


def _same_text(x: Values, y: Values) -> Mask:
    """Compare bytes with text: each byte is the character of its number."""
    units = [units_of(values) for values in (x, y)]
    width = max(unit.shape[-1] for unit in units)
    left, right = (
        np.pad(unit.astype(np.uint32), ((0, 0), (0, width - unit.shape[-1]))) for unit in units
    )
    return (left == right).all(axis=-1)


def _widened(values: Values) -> Values:
    """Return bfloat16 as float32 and bool as uint8; anything else as it is."""
    if values.dtype.name == "bfloat16":
        return values.astype(np.float32)
    return values.view(np.uint8) if values.dtype.kind == "b" else values


def _same_float(x: Values, y: Values) -> Mask:
    return (x == y) | (np.isnan(x) & np.isnan(y))


def _same_integer(integers: Values, floats: Values) -> Mask:
    real = floats.real.astype(np.float64)
    top = _LARGEST_EXACT * (2 if integers.dtype.kind == "u" else 1)
    low = 0.0 if integers.dtype.kind == "u" else -_LARGEST_EXACT
    whole = (real >= low) & (real < top) & (np.floor(real) == real)
    wide = np.uint64 if integers.dtype.kind == "u" else np.int64
    return whole & (np.where(whole, real, 0).astype(wide) == integers) & (floats.imag == 0)


class _Findings:
    """Counts what differs, and keeps the largest difference and where it is."""

    def __init__(self, shape: tuple[int, ...], order: Literal["C", "F"]) -> None:
        self._shape = shape
        self._order = order
        self.differ = 0
        self.nan_only = [0, 0]
        self.first: list[int] | None = None
        self.largest: dict[str, tuple[float, list[int]] | None] = {"abs": None, "rel": None}

    def add(self, start: int, odd: Values, x: Values, y: Values, rule: Rule) -> None:
        """Take in the elements at `start` + `odd`, whose values `x` and `y` are not equal."""
        beyond = np.ones(odd.size, bool)
        x, y = _widened(x), _widened(y)
        if x.dtype.kind in "iufc" and y.dtype.kind in "iufc":
            with np.errstate(all="ignore"):
                distance, scale = _distance(x, y), np.maximum(np.abs(_real(x)), np.abs(_real(y)))
                if rule.atol or rule.rtol:  # a distance may round to 0 between unequal values
                    close = distance <= rule.atol + rule.rtol * scale
                    beyond = ~close | np.isinf(distance)
                self._keep_largest("abs", distance, start, odd)
                self._keep_largest("rel", distance / scale, start, odd)
            nan_x, nan_y = np.isnan(x), np.isnan(y)
            self.nan_only[0] += int((nan_x & ~nan_y).sum())
            self.nan_only[1] += int((nan_y & ~nan_x).sum())
        self.differ += int(beyond.sum())
        if self.first is None and beyond.any():
            self.first = self._index(start + int(odd[beyond][0]))

    def _keep_largest(self, name: str, values: Values, start: int, odd: Values) -> None:
        numbers = np.where(np.isnan(values), -1.0, values)
        place = int(numbers.argmax())
        best = self.largest[name]
        if numbers[place] >= 0 and (best is None or numbers[place] > best[0]):
            self.largest[name] = float(numbers[place]), self._index(start + int(odd[place]))

    def _index(self, flat: int) -> list[int]:
        """Return the logical index of the element at this place in the compared order."""
        return [int(i) for i in np.unravel_index(flat, self._shape, order=self._order)]

    def to_dict(self) -> dict[str, Any]:
        count = 1
        for length in self._shape:
            count *= length
        found: dict[str, Any] = {"count": count, "differ": self.differ, "first": self.first}
        for name, best in self.largest.items():
            found[f"max_{name}"] = None if best is None else plain(best[0])
            found[f"max_{name}_index"] = None if best is None else best[1]
        found["nan_only_in_a"], found["nan_only_in_b"] = self.nan_only
        return found


def _real(values: Values) -> Values:
    """Return values in which a magnitude fits: float64, or complex128."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _distance(x: Values, y: Values) -> Any:
    """Return abs(x - y) as float64; between integers of one signedness it is exact first."""
    if x.dtype.kind == y.dtype.kind and x.dtype.kind in "iu":
        wide = np.int64 if x.dtype.kind == "i" else np.uint64
        x, y = x.astype(wide), y.astype(wide)
        high, low = np.maximum(x, y).view(np.uint64), np.minimum(x, y).view(np.uint64)
        return (high - low).astype(np.float64)
    return np.abs(_real(x) - _real(y))


# Metadata --------------------------------------------------------------------------------------


def _meta_of(array: Array) -> dict[str, Any]:
    fields = array.meta.to_dict()
    trailer = trailer_of(array.meta)
    if not hasattr(trailer, "offset"):
        return fields
    return replaced_trailer(fields, _trailer_digest(trailer))


def _without_traces(
    a: dict[str, Any], b: dict[str, Any], formats: tuple[str, str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Leave out the namespaces of third formats that only one side has."""
    if not all(isinstance(fields.get("formats", {}), dict) for fields in (a, b)):
        return a, b
    names = set(a.get("formats", {})) & set(b.get("formats", {})) | set(formats)
    found = []
    for fields in (a, b):
        spaces = {name: own for name, own in fields.get("formats", {}).items() if name in names}
        plain_fields = {name: value for name, value in fields.items() if name != "formats"}
        found.append({**plain_fields, **({"formats": spaces} if spaces else {})})
    return found[0], found[1]


def _item_differences(a: Array, b: Array, formats: tuple[str, str]) -> dict[str, Any] | None:
    """The differences of the metadata of single items of two stacks; None if there are none.

    ``differ`` counts the items, ``first`` is the index of the first, ``fields`` how that differs.
    """
    if a.meta.items is None and b.meta.items is None:
        return None
    sides = [array.meta.items() if array.meta.items is not None else () for array in (a, b)]
    found: dict[str, Any] = {"differ": 0, "first": None, "fields": []}
    for index, (x, y) in enumerate(zip_longest(*sides, fillvalue={})):
        fields = meta_differences(*_without_traces(x, y, formats))
        if fields:
            found["differ"] += 1
            if found["first"] is None:
                found.update(first=index, fields=fields)
    return found if found["differ"] else None


def _about(a: Bundle, b: Bundle) -> dict[str, Any]:
    """The differences of two files in their own metadata, that of groups, and in order."""
    return {
        "metadata": meta_differences(a.attributes, b.attributes),
        "groups": meta_differences({"groups": _groups(a)}, {"groups": _groups(b)}),
        "aliases": meta_differences(a.aliases, b.aliases),
        "order": _order_difference(a, b),
    }


def _groups(bundle: Bundle) -> dict[str, Any]:
    """The attributes of a file's groups, and their forms where their members do not show them."""
    found = bundle.telling_groups()
    for path, form in bundle.forms.items():
        found[path] = {**found.get(path, {}), "form": form}
    return found


def _order_difference(a: Bundle, b: Bundle) -> dict[str, Any] | None:
    """The first place where the arrays of both files differ in order: index and names."""
    both = set(a.names) & set(b.names)
    left = [name for name in a.names if name in both]
    right = [name for name in b.names if name in both]
    for index, (x, y) in enumerate(zip(left, right, strict=False)):
        if x != y:
            return {"index": index, "a": x, "b": y}
    return None


def _trailer_digest(trailer: Any) -> str:
    """The identity of bytes that stay in their file."""
    import hashlib

    from raconvert.inspect.digest import hash_extent

    state = hashlib.sha256()
    hash_extent(state, trailer)
    return f"{trailer.nbytes} bytes, SHA-256 {state.hexdigest()}"


def meta_differences(a: Any, b: Any, name: str = "") -> list[dict[str, Any]]:
    """Return the fields that differ: their dotted name, and both values (absent: only one).

    Values are equal only in one type, NaN to NaN; tuples are lists. ``types`` is there where both
    values read alike, as NaN does in JSON and the text ``nan``.
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
    """Compare what lies inside two mappings or two lists, as `_by_key` and `_by_number` give it."""
    found = []
    for key in [*a, *(key for key in b if key not in a)]:
        inner = _joined(name, key[1])
        if key in a and key in b:
            found += meta_differences(a[key], b[key], inner)
        else:
            side, value = ("a", a[key]) if key in a else ("b", b[key])
            found += _one_sided(side, value, inner)
    return found


def _by_key(fields: dict[Any, Any]) -> dict[tuple[type, str], Any]:
    """Return the values under what tells their keys apart: 1 and "1" are two of them."""
    return {(type(key), _key_text(key)): value for key, value in fields.items()}


def _by_number(items: list[Any]) -> dict[tuple[type, str], Any]:
    return {(list, f"[{number}]"): item for number, item in enumerate(items)}


def _key_text(key: Any) -> str:
    """Return a key for a dotted name, in quotes where it could be read as more than one."""
    text = str(key)
    return repr(text) if "." in text or "[" in text or not text else text


def _joined(name: str, part: str) -> str:
    return f"{name}{part}" if part.startswith("[") or not name else f"{name}.{part}"


def _field_difference(name: str, a: Any, b: Any) -> dict[str, Any]:
    found = {"field": name, "a": plain(a), "b": plain(b)}
    if found["a"] == found["b"]:
        found["types"] = [_meta_type(a), _meta_type(b)]
    return found


def _meta_type(value: Any) -> str:
    """Return the type of a value; of a list that of its items too, each run of one type once."""
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
    """Return a value of metadata as Python's own type: numpy's have one, and tuples are lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, tuple):
        return list(value)
    return bytes(value) if isinstance(value, bytearray) else value
