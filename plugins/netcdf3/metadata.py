"""Attributes as plain values and back, and what of the metadata has no place among them.

The latter is one attribute, the text of a record (`raconvert.metadata.roundtrip`). On a variable:
what dimensions, coordinates and attributes do not hold, what the array `was`, and `axis_of` on
coordinates made from an axis. On the file: attributes of other types, groups, namespaces.

An attribute is a list of numbers of one type, or a text. Its type, which the value does not tell,
is remembered as that of the same attribute in netCDF-4, in the namespace and the words of `hdf5`:
a classic file and its copy by the library of netCDF say the same.
"""

from __future__ import annotations

from raconvert.arrays.interop.dimensions import MISSING
from raconvert.arrays.scales import type_of_attribute
from raconvert.metadata import roundtrip
from raconvert.metadata.roundtrip import KEY, LOCAL
from raconvert.metadata.yaml import alike
from raconvert.plugin import Metadata

from ..hdf5.tables import NAMESPACE as HDF5
from .header import Attribute, text_of
from .structure import key_of
from .tables import CHAR, CLASSIC, CODES, DOUBLE, ELEMENTS, INT, NAMESPACE, TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Types = dict[str, dict[str, Any]]  # of attributes, by name

_BY_THEMSELVES = (DOUBLE, TYPES["i8"])  # types that numbers have without being told
INT32, INT64, UINT64 = range(-(1 << 31), 1 << 31), range(-(1 << 63), 1 << 63), range(1 << 64)


# Reading ------------------------------------------------------------------------------------------


def values_of(
    attributes: list[Attribute], of: str, notes: list[str]
) -> tuple[dict[str, Any], Types]:
    """Return the plain values of attributes, and the types that are worth remembering."""
    return {one.name: value_of(one, of, notes) for one in attributes}, types_of(attributes)


def types_of(attributes: list[Attribute]) -> Types:
    """Return types in the words of `hdf5`; those that numbers have by themselves are left out."""
    types: Types = {}
    for one in attributes:
        if one.type == CHAR:
            text = {"class": "string", "size": max(1, one.length), "padding": "nullterm"}
            charset = "ascii" if one.raw.isascii() else "utf-8"
            types[one.name] = {"type": {**text, "charset": charset}, "shape": []}
        elif one.type not in _BY_THEMSELVES:
            order = "|" if ELEMENTS[one.type].nbytes == 1 else "<"
            shape = [one.length] if one.length != 1 else []  # one value is a number
            types[one.name] = {"type": order + CODES[one.type], "shape": shape}
    return types


def value_of(attribute: Attribute, of: str, notes: list[str]) -> Any:
    """Return a number, a list of numbers, or a text without the NULs at its end."""
    if attribute.type == CHAR:
        what = f"attribute '{attribute.name}' of {of}"
        return text_of(attribute.raw.rstrip(b"\0"), what, notes)
    import numpy as np

    from raconvert.metadata.reals import doubles

    values = np.frombuffer(attribute.raw, f">{CODES[attribute.type]}")
    listed: list[Any] = (doubles(values) if values.dtype.kind == "f" else values).tolist()
    return listed[0] if len(listed) == 1 else listed


def remembered(types: Types) -> dict[str, Any]:
    """Return the fields of the namespace `hdf5` that keep types of attributes.

    Texts, and integers of 32 bits, would be written as such again: no record of another format
    keeps their types alone.
    """
    if not types:
        return {}
    usual = all(isinstance(one["type"], dict) or one["type"] == "<i4" for one in types.values())
    return {"attributes": types, **({LOCAL: ["attributes"]} if usual else {})}


# Writing ------------------------------------------------------------------------------------------


class Writing:
    """The types that attributes may have: `most` of a remembered one, `large` of a number.

    `large`: integers of more than 32 bits may be attributes.
    """

    def __init__(self, most: int, *, large: bool) -> None:
        self.most = most
        self.large = large

    def attribute(
        self, name: str, value: Any, meta: Metadata, missing: int | None = None
    ) -> tuple[Attribute | None, bool]:
        """Return the attribute of a value, and if it is read back as that very value.

        None if it has no place. `meta` remembers types; `missing` is the type of the variable,
        which that of `_FillValue` has to be.
        """
        if name == KEY or key_of(name) != name:
            return None, False
        if isinstance(value, str):
            return _text(name, value, filling=name == MISSING and missing == CHAR)
        numbers = value if isinstance(value, list) else [value]
        kinds = {*map(type, numbers)}
        if len(kinds) > 1 or not kinds <= {int, float}:
            return None, False
        if name == MISSING and missing is not None:
            if CODES.get(missing, "")[:1] == "f":  # of elements that were integers before
                numbers = [_as_float(n) for n in numbers]
            made = _numbers(name, numbers, missing) if missing != CHAR else None
            return made, made is not None and _is_same(made, value)
        code = type_of_attribute(meta, name) or ""
        candidates = [TYPES.get(code, 0), *self._usual(numbers)]
        for number in candidates:
            made = _numbers(name, numbers, number) if 0 < number <= self._most(number) else None
            if made is not None:
                return made, _is_same(made, value)
        return None, False

    def _most(self, number: int) -> int:
        return max(self.most, number if self.large and number in (TYPES["i8"], TYPES["u8"]) else 0)

    def _usual(self, numbers: list[Any]) -> list[int]:
        if not numbers or type(numbers[0]) is float:
            return [DOUBLE]
        if all(number in INT32 for number in numbers):
            return [INT]
        if not self.large:
            return []
        wide = ((INT64, "i8"), (UINT64, "u8"))
        return [TYPES[code] for span, code in wide if all(number in span for number in numbers)]


def _text(name: str, value: str, *, filling: bool) -> tuple[Attribute | None, bool]:
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        return None, False
    if raw.endswith(b"\0"):
        return None, False
    raw = raw or b"\0" * filling  # the library of Unidata takes no fill value of no element
    return Attribute(name, CHAR, len(raw), raw, name.encode()), True


def _numbers(name: str, numbers: list[Any], number: int) -> Attribute | None:
    """Return an attribute of a type, if that holds the values."""
    import numpy as np

    from raconvert.metadata.reals import narrowed

    dtype = np.dtype(CODES[number])
    try:
        if dtype.kind == "f":
            values = narrowed(np.array(numbers, np.float64), dtype)
        else:
            values = np.array(numbers, dtype)
    except (OverflowError, ValueError, TypeError):  # other numbers than the type has
        return None
    raw = values.astype(dtype.newbyteorder(">")).tobytes()
    made = Attribute(name, number, len(numbers), raw, name.encode())
    found = value_of(made, "", [])
    found = found if isinstance(found, list) else [found]
    return made if repr(found) == repr(numbers) and alike(found, numbers) else None


def _as_float(number: Any) -> Any:
    """An integer as the float of its value, if there is one; any other number as it is."""
    exact = type(number) is int and abs(number) < 1 << 63 and float(number) == number
    return float(number) if exact else number


def _is_same(attribute: Attribute, value: Any) -> bool:
    return isinstance(value_of(attribute, "", []), list) == isinstance(value, list)


def record_attribute(record: dict[str, Any]) -> list[Attribute]:
    """Return the attribute with the text of a record; none if the record is empty."""
    if not record:
        return []
    raw = roundtrip.text_of(record).encode()
    return [Attribute(KEY, CHAR, len(raw), raw, KEY.encode())]


def without_types(
    formats: Mapping[str, Mapping[str, Any]], written: list[Attribute], own: int = 0
) -> dict[str, dict[str, Any]]:
    """Return namespaces without what reading the attributes tells; `own`: see `settled`."""
    rest = {name: dict(space) for name, space in formats.items() if name != NAMESPACE}
    types = rest.get(HDF5, {}).get("attributes")
    if types is not None and types == settled(types_of(written), own):
        del rest[HDF5]["attributes"]
    return {name: space for name, space in rest.items() if space}


def settled(types: Types, own: int) -> Types:
    """Return types without that of `_FillValue` where it is `own`, the type of the variable."""
    same = types.get(MISSING, {}).get("type", "")
    if own and isinstance(same, str) and same.lstrip("<|") == CODES.get(own):
        return {name: said for name, said in types.items() if name != MISSING}
    return types


def most_of(version: str, types: list[int]) -> int:
    """Return the last type that attributes may have that remember a type."""
    wide = version == "5" or (version == "auto" and any(one > CLASSIC for one in types))
    return max(CODES) if wide else CLASSIC
