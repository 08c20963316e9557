"""The types of SciDB, the element types that carry them, and the columns of records.

SciDB 19.11, `include/query/TypeSystem.h` and the type table of the binary load documentation.
User-defined types have the size that their plug-in gives them; files do not hold it, so it is
declared (``types=point=16``), and the values stay opaque.
"""

from __future__ import annotations

from collections import namedtuple

from raconvert.plugin import Element, element

# `items` numbers of `element` make one value; a value of datetimetz is two.
Native = namedtuple("Native", "element items", defaults=(1,))

_UINT8 = element("uint", 1)
NATIVE = {
    "bool": Native(_UINT8),  # SciDB keeps bytes other than 0 and 1; any but 0 is true
    "char": Native(_UINT8),
    **{f"int{bits}": Native(element("int", bits // 8)) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": Native(element("uint", bits // 8)) for bits in (8, 16, 32, 64)},
    "float": Native(element("float", 4)),
    "double": Native(element("float", 8)),
    "datetime": Native(element("int", 8)),  # seconds since 1970, no zone
    "datetimetz": Native(element("int", 8), 2),  # local clock in seconds since 1970, zone offset
}
VARIABLE = ("string", "binary")  # a 32-bit count before the bytes, or a declared width
SKIP = "skip"
SKIP_SYNONYMS = ("dummy", "void")  # SciDB 14.8
OPAQUE_SIZE_UNKNOWN = ("date", "time", "timestamp", "interval")  # plug-ins without a known size
MAX_SIZE = (1 << 31) - 1  # the server parses widths into a signed 32-bit number
COUNT_BYTES = 4
MAX_COUNT = (1 << 32) - 1
PRESENT = 0xFF  # the prefix byte of a value that is there; 0 to 127 are reasons for its absence

UNITS = {
    "datetime": "seconds since 1970-01-01",
    "datetimetz": "seconds",
}
PAIR_LABELS = ["seconds since 1970-01-01 by the local clock", "offset of the zone from UTC"]


# In the order of the arrays; a column has values, or offsets and bytes.
ROLES = ("values", "offsets", "bytes", "null")
CELLS = "cells"
RAW = "records"


# The location of one column: its span, and in it the offsets of the prefix byte (-1: none) and of
# the value or its count.
Location = namedtuple("Location", "span prefix value")


class Column(namedtuple("Column", "type size nullable")):
    """One column of a record: `size` in bytes, None if every value has its count in the file."""

    __slots__ = ()

    @property
    def is_skip(self) -> bool:
        """True if the column belongs to no attribute."""
        return bool(self.type == SKIP)

    @property
    def items(self) -> int:
        """The number of elements that make one value."""
        return NATIVE[self.type].items if self.type in NATIVE else 1

    @property
    def element(self) -> Element:
        """The element type of the values: bytes if SciDB's type is not a number."""
        if self.type in NATIVE:
            return NATIVE[self.type].element
        letter = "S" if self.type == "string" else "V"
        return Element("user", self.size, "|", f"|{letter}{self.size}")

    @property
    def type_text(self) -> str:
        """The type as a format string has it, without ``null``."""
        declared = self.size is not None and (self.type in VARIABLE or self.is_skip)
        return f"{self.type}({self.size})" if declared else str(self.type)

    def __str__(self) -> str:
        return self.type_text + (" null" if self.nullable else "")


def format_text(columns: list[Column]) -> str:
    """The format string of the columns."""
    return f"({', '.join(map(str, columns))})"


class Layout(namedtuple("Layout", "columns locations spans")):
    """The locations of the columns, and the bytes of each span, without its count."""

    __slots__ = ()

    @property
    def width(self) -> int | None:
        """The bytes of a record; None if records differ in length."""
        return self.spans[0] if len(self.spans) == 1 else None


def layout_of(columns: list[Column]) -> Layout:
    """The layout of records with these columns."""
    locations, spans = [], [0]
    for column in columns:
        prefix = spans[-1] if column.nullable else -1
        spans[-1] += column.nullable
        locations.append(Location(len(spans) - 1, prefix, spans[-1]))
        if column.size is None:
            spans.append(0)
        else:
            spans[-1] += column.size
    return Layout(columns, locations, spans)
