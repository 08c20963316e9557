"""The column that holds the values of an array, and what that changes."""

from __future__ import annotations

from raconvert.plugin import Array, Element

from .formatstring import parse_format
from .syntax import Fault
from .tables import NATIVE, VARIABLE, Column


def column_named(text: str, values: Array, null: Array | None) -> Column:
    """The column of the SciDB type that metadata names, if the values are of that type."""
    try:
        kind = text.partition("(")[0].strip()
        [column] = parse_format(f"({text})", {kind: values.element.nbytes})
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
