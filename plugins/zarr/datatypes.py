"""Data types of both versions as elements."""

from __future__ import annotations

import re

from raconvert.arrays.dtypes import element_of_code, frozen
from raconvert.errors import Corrupt, RaconvertError, Unsafe, Unsupported
from raconvert.plugin import Element

from .tables import BYTES_TYPES, DATE_TYPES, ELEMENTS, MAX_RANK, STRUCTURED, TEXT_TYPE, VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.limits import Limits


# The fields of a metadata document ---------------------------------------------------------------


def short(value: Any) -> str:
    """A value as a message shows it."""
    return repr(value)[:80]


class Fields:
    """Checks of the fields of a document; `where` is the path of fields to it, for messages."""

    def __init__(self, fields: Any, path: str, where: str = "") -> None:
        if not isinstance(fields, dict):
            raise Corrupt(
                f"metadata of {where or 'the array'} is not a JSON object", path=path,
                got=short(fields),
            )  # fmt: skip
        self.fields: dict[str, Any] = fields
        self.path = path
        self.where = where

    def wrong(self, name: str, expected: str) -> Corrupt:
        """The error for a field of another form."""
        return Corrupt(
            f"metadata field '{self.where}{name}' is wrong", path=self.path, expected=expected,
            got=short(self.fields.get(name)),
        )  # fmt: skip

    def lengths(self, name: str, least: int) -> tuple[int, ...]:
        """A field that is a list of lengths, each at least `least`, for at most `MAX_RANK` axes."""
        value = self.fields.get(name)
        good = isinstance(value, list) and all(
            type(n) is int and least <= n < 1 << 63 for n in value
        )
        if not good:
            raise self.wrong(name, f"a list of whole numbers of at least {least}")
        if len(value or ()) > MAX_RANK:
            raise Unsupported(
                f"array has {len(value or ())} axes", path=self.path, expected=f"at most {MAX_RANK}"
            )
        return tuple(value or ())

    def named(self, name: str) -> tuple[str, dict[str, Any]]:
        """The name and the configuration of a field that is an extension point of version 3."""
        value = self.fields.get(name)
        if isinstance(value, str):
            return value, {}
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            raise self.wrong(name, "a name, with its configuration")
        settings = value.get("configuration", {})
        if not isinstance(settings, dict):
            raise self.wrong(name, "a configuration that is a mapping")
        return value["name"], settings


# Names of types of NumPy that elements can have; not the texts of several fields that NumPy parses.
_CODE = re.compile(
    r"[<>|=]?(?:[biufcSUVmM][0-9]{0,10}(?:\[[0-9]{0,10}[A-Za-z\u03bc]{1,8}\])?|\?)"
    r"|bool|u?int[0-9]{0,2}|float[0-9]{0,2}|complex[0-9]{0,3}"
)


def type_of_3(declared: Any, path: str, limits: Limits) -> tuple[Element, str]:
    """The element type of version 3, and the form of elements of variable length, else empty."""
    if isinstance(declared, str) and declared in ELEMENTS:
        return ELEMENTS[declared], ""
    name, settings = Fields({"data_type": declared}, path).named("data_type")
    if name in VARIABLE:
        return Element("user", 0, "|"), VARIABLE[name]
    checks = Fields(settings, path, "data_type.")
    if name in BYTES_TYPES or name == TEXT_TYPE:
        unit = 4 if name == TEXT_TYPE else 1
        nbytes = settings.get("length_bytes")
        if type(nbytes) is not int or not 0 < nbytes < 1 << 31 or nbytes % unit:
            raise checks.wrong("length_bytes", "a number of bytes")
        letter = BYTES_TYPES.get(name)
        code = f"|{letter}{nbytes}" if letter else f"<U{nbytes // 4}"
        return Element("user", nbytes, "|", code), ""
    if name[:1] == "r" and name[1:].isdecimal() and name.isascii() and len(name) < 12:
        bits = int(name[1:])
        if bits and bits % 8 == 0:
            return Element("user", bits // 8, "|", f"|V{bits // 8}"), ""
    if name in DATE_TYPES:
        return _date(name, settings, checks), ""
    if name in STRUCTURED:
        return _structure_of_3(settings, path, limits), ""
    raise Unsupported(f"array has elements of type '{name[:80]}'", path=path)


def _date(name: str, settings: dict[str, Any], checks: Fields) -> Element:
    unit, factor = settings.get("unit"), settings.get("scale_factor", 1)
    units = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as", "generic")
    if unit not in units or type(factor) is not int or not 0 < factor < 1 << 31:
        raise checks.wrong("unit", "a unit of time and a factor")
    unit = "us" if unit == "μs" else unit
    step = "" if unit == "generic" else f"[{factor if factor != 1 else ''}{unit}]"
    return Element("user", 8, "|", f"<{DATE_TYPES[name]}8{step}")


def _structure_of_3(settings: dict[str, Any], path: str, limits: Limits) -> Element:
    fields = settings.get("fields")
    members, nbytes = [], 0
    if isinstance(fields, list) and len(fields) > limits.structure_fields:
        raise Unsupported(
            f"array has structures of {len(fields)} fields", path=path,
            expected=f"at most {limits.structure_fields}",
        )  # fmt: skip
    for entry in fields if isinstance(fields, list) else ():
        field = entry
        if isinstance(entry, dict):
            field = [entry.get("name"), entry.get("data_type")]
        if not isinstance(field, list) or len(field) != 2 or not isinstance(field[0], str):
            raise Corrupt("a field of a structure is wrong", path=path, got=short(field))
        inner, variable = type_of_3(field[1], path, limits)
        if variable or inner.kind == "bfloat":
            raise Unsupported("array has structures of unknown width", path=path)
        members.append((field[0], code_of_element(inner)))
        nbytes += inner.nbytes
    if not members or len({name for name, _ in members}) != len(members):
        raise Corrupt("a structure has no fields, or two of one name", path=path)
    return Element("user", nbytes, "|", tuple(members))


def code_of_element(element: Element) -> Any:
    """The type of a field in the notation of the NPY header."""
    from raconvert.arrays.dtypes import code_of

    return frozen(code_of(element))


def type_of_2(declared: Any, names: set[str], path: str, limits: Limits) -> tuple[Element, str]:
    """The element type of version 2, and the form of elements of variable length, else empty.

    `names` are the ids of the codecs.
    """
    if declared in ("|O", "O", "<O", ">O"):
        for name, form in (("vlen-utf8", "utf8"), ("vlen-bytes", "bytes")):
            if name in names:
                return Element("user", 0, "|"), form
        raise Unsafe(
            "array has elements that are Python objects", path=path,
            expected="numbers, texts, dates, bytes or structures",
            remedy="no option allows this; write it with a type of its own, such as text",
        )  # fmt: skip
    if declared == "bfloat16":  # tensorstore's
        return ELEMENTS["bfloat16"], ""
    try:
        if isinstance(declared, str) and is_code(declared, limits):
            element = element_of_code(declared)
            if element is not None:
                return element, ""
        return _by_numpy(declared, limits), ""
    except RaconvertError as error:
        error.path = path
        raise
    except (TypeError, ValueError, SyntaxError, KeyError, IndexError, RecursionError) as error:
        raise Corrupt(
            "metadata field 'dtype' is wrong", path=path, expected="a type of NumPy",
            got=short(declared),
        ) from error  # fmt: skip


def is_code(declared: str, limits: Limits) -> bool:
    """True for the name of one type, which is safe for NumPy to parse."""
    return len(declared) <= limits.type_name_characters and _CODE.fullmatch(declared) is not None


def _by_numpy(declared: Any, limits: Limits) -> Element:
    """The element of a type of NumPy, or of a list of fields; raises ValueError or TypeError."""
    import numpy as np

    from raconvert.arrays.dtypes import element_of

    left = limits.structure_fields

    def fields(value: Any) -> Any:
        nonlocal left
        if isinstance(value, str) and is_code(value, limits):
            return value
        if not isinstance(value, list):
            raise TypeError("no type")
        left -= len(value)
        if left < 0:
            raise ValueError("too many fields")
        element = []
        for field in value:
            if not isinstance(field, list) or len(field) not in (2, 3):
                raise ValueError("a field")
            shape = (tuple(field[2]),) if len(field) == 3 else ()
            if shape and (
                len(shape[0]) > MAX_RANK
                or not all(type(n) is int and 0 < n < 1 << 31 for n in shape[0])
            ):
                raise ValueError("a shape")
            if not isinstance(field[0], str) or not field[0]:
                raise ValueError("a name")
            element.append((field[0], fields(field[1]), *shape))
        return element

    dtype = np.dtype(fields(declared))
    if dtype.itemsize >= 1 << 31:
        raise ValueError("elements of 2 GiB")
    return element_of(dtype)
