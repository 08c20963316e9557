"""Groups of the arrays of a bundle that become one SciDB attribute.

Arrays that are marked as companions (by the namespace ``scidb`` in their metadata, or by their
names where asked) make an attribute nullable, or variable in length.
"""

from __future__ import annotations

from raconvert.files.limits import DEFAULT
from raconvert.plugin import Array, Bundle, Element

from .schema import Fault, parse_format
from .tables import NATIVE, ROLES, VARIABLE, Column

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# The column that holds the values of an array, and what that changes -----------------------------


def column_named(text: str, values: Array, null: Array | None) -> Column:
    """The column of the SciDB type that metadata names, if the values are of that type."""
    try:
        kind = text.partition("(")[0].strip()
        [column] = parse_format(f"({text})", {kind: values.element.nbytes}, DEFAULT)
    except Fault:
        return _derived(values, null)
    wanted = column.element if column.size is not None else None
    if wanted is None or column.is_skip or column.type not in (*NATIVE, *VARIABLE):
        return _derived(values, null)
    if (wanted.kind, wanted.nbytes) != values.element[:2]:
        return _derived(values, null)
    if column.items > 1 and (not values.dims or values.dims[0] != column.items):
        return _derived(values, null)
    return Column(column.type, column.size, null is not None)


_FLOATS = {2: ("float", 4), 4: ("float", 4), 8: ("double", 8)}


def _derived(values: Array, null: Array | None) -> Column:
    """The column for an element type."""
    kind, nbytes, _, descr = values.element
    nullable = null is not None
    if kind in ("int", "uint"):
        return Column(f"{kind}{8 * nbytes}", nbytes, nullable)
    if kind == "float":
        return Column(*_FLOATS[nbytes], nullable)
    if kind == "complex":
        return Column(*_FLOATS[nbytes // 2], nullable)
    if kind == "bool":
        return Column("bool", 1, nullable)
    if descr == "<M8[s]":
        return Column("datetime", 8, nullable)
    return Column("binary", nbytes, nullable)


def type_change(element: Element, column: Column) -> tuple[str, str] | None:
    """Property and reason where values take another form, ("lost", …) if one is lost."""
    kind, nbytes, _, descr = element
    if kind == "float" and nbytes == 2:
        return "type", "float16 becomes float (32 bits)"
    if kind == "complex":
        return "shape", "complex numbers become pairs (real, imaginary) on a new fastest axis"
    if kind == "bool":
        return "type", "SciDB's bool is read back as its bytes, uint8"
    if kind == "bfloat":
        return "lost", ""
    if kind != "user" or column.type not in ("binary", "datetime"):
        return None
    if column.type == "datetime":
        return "type", "SciDB's datetime is read back as int64, seconds since 1970"
    if descr is None or descr == f"|V{nbytes}":
        return None
    if isinstance(descr, str) and descr.startswith("|S"):
        return "type", f"bytes become {column.type_text}, without a mark that they are text"
    return "lost", ""


class Group:
    """The arrays of one attribute."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: Array | None = None
        self.null: Array | None = None
        self.offsets: Array | None = None
        self.bytes: Array | None = None
        self.type = ""
        self.column = -1

    @property
    def first(self) -> Array:
        """The array that stands for the attribute in messages."""
        return next(array for array in (self.values, self.offsets) if array is not None)

    @property
    def arrays(self) -> list[Array]:
        """All arrays of the attribute."""
        parts = (self.values, self.offsets, self.bytes, self.null)
        return [array for array in parts if array is not None]


def groups_of(bundle: Bundle, *, by_names: bool) -> tuple[list[Group], Array | None]:
    """The attributes that the arrays belong to, in order, and the array of cells."""
    names = set(bundle.names)
    of: dict[tuple[str, Any], Group] = {}
    cells = None
    for array in bundle.arrays:
        role, attribute, own = _mark(array, names if by_names else None)
        if role == "cells":
            cells = array
        elif role is not None:
            group = of.setdefault((attribute, own.get("column")), Group(attribute))
            if getattr(group, role) is None:
                setattr(group, role, array)
            if isinstance(own.get("type"), str):
                group.type = own["type"]
            if type(own.get("column")) is int:
                group.column = own["column"]
    return _complete(bundle, list(of.values()), cells), cells


def _mark(array: Array, names: set[str] | None) -> tuple[str | None, str, dict[str, Any]]:
    """Role, attribute and namespace of an array; with `names` also from its name."""
    own = array.meta.formats.get("scidb", {})
    role, attribute = own.get("role"), own.get("attribute")
    if role == "coordinate":
        role = "values"
    if names is not None and role is None:
        role, attribute = _role_by_name(array.name, names)
    if role == "cells" or (role in ROLES and isinstance(attribute, str)):
        return role, attribute or "", own
    return None, "", own


def _role_by_name(name: str, names: set[str]) -> tuple[str | None, str]:
    """Role and attribute by the name of an array."""
    base, _, role = name.rpartition(".")
    if role == "null" and (base in names or f"{base}.offsets" in names):
        return role, base
    if role in ("offsets", "bytes") and {f"{base}.offsets", f"{base}.bytes"} <= names:
        return role, base
    return "values", name


def _complete(bundle: Bundle, groups: list[Group], cells: Array | None) -> list[Group]:
    """Keep the groups that are attributes; what is left of others are attributes of their own."""
    sound = {id(array): group for group in groups if _is_sound(group) for array in group.arrays}
    complete: list[Group] = []
    for array in bundle.arrays:
        group = sound.get(id(array))
        if group is None and array is not cells:
            group = Group(array.name)
            group.values = array
            own = array.meta.formats.get("scidb", {})
            if own.get("role") == "values" and isinstance(own.get("type"), str):
                group.type = own["type"]
        if group is not None and group not in complete:
            if len(bundle.arrays) > 1 or group.column < 0:
                group.name = _base_name(group)
            complete.append(group)
    return complete


def _base_name(group: Group) -> str:
    """The name that the arrays of a group have in common."""
    if group.values is not None:
        return group.values.name
    return group.first.name.removesuffix(".offsets")


def _is_sound(group: Group) -> bool:
    """True if the arrays of a group fit each other."""
    values, null, offsets, data = group.values, group.null, group.offsets, group.bytes
    if values is not None:
        if offsets is not None or data is not None:
            return False
        dims = values.dims[1:] if column_named(group.type, values, null).items > 1 else values.dims
        return null is None or (is_of(null, "uint", 1) and null.dims == dims)
    if (
        offsets is None
        or data is None
        or not is_of(offsets, "int", 8)
        or not is_of(data, "uint", 1)
    ):
        return False
    if offsets.ndim != 1 or data.ndim != 1 or offsets.count < 1:
        return False
    return null is None or (is_of(null, "uint", 1) and null.count == offsets.count - 1)


def is_of(array: Array, kind: str, nbytes: int) -> bool:
    """True if the elements are of this kind and size."""
    return bool(array.element.kind == kind and array.element.nbytes == nbytes)
