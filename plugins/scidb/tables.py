"""The types of SciDB, the element types that carry them, and the roles of arrays.

SciDB 19.11, `include/query/TypeSystem.h` and the type table of the binary load documentation.
User-defined types have the size that their plug-in gives them; files do not tell it, so it is
declared (``types=point=16``), and the values stay opaque.
"""

from __future__ import annotations

from collections import namedtuple

from raconvert.plugin import element

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
