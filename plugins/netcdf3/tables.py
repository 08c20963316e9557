"""Types, tags and bounds of netCDF classic.

Source: "The NetCDF Classic Format Specification" and "NetCDF Users Guide", Unidata: the types, the
characters of names, the fill values that pad data.
"""

from __future__ import annotations

from raconvert.plugin import Element, Option, element

NAMESPACE = "netcdf3"  # of the metadata, for an exact way back
TITLE = "netCDF classic"
VERSIONS = {b"CDF\x01": 1, b"CDF\x02": 2, b"CDF\x05": 5}
DIMENSION, VARIABLE, ATTRIBUTE = 10, 11, 12  # tags of lists; 0 with a count of 0: none
PADDED = 4  # bytes of which names, attributes and parts of records are multiples

CHAR, INT, DOUBLE = 2, 4, 6
CLASSIC = 6  # the last type that CDF-1 and CDF-2 have
ELEMENTS = {
    1: element("int", 1), CHAR: Element("user", 1, "|", "|S1"), 3: element("int", 2, ">"),
    INT: element("int", 4, ">"), 5: element("float", 4, ">"), DOUBLE: element("float", 8, ">"),
    7: element("uint", 1), 8: element("uint", 2, ">"), 9: element("uint", 4, ">"),
    10: element("int", 8, ">"), 11: element("uint", 8, ">"),
}  # fmt: skip
CODES = {1: "i1", 3: "i2", INT: "i4", 5: "f4", DOUBLE: "f8",
         7: "u1", 8: "u2", 9: "u4", 10: "i8", 11: "u8"}  # fmt: skip
TYPES = {code: number for number, code in CODES.items()}
NUMBERS = {(kind.kind, kind.nbytes): number for number, kind in ELEMENTS.items()
           if number != CHAR}  # fmt: skip
FILLS = {1: b"\x81", CHAR: b"\0", 3: b"\x80\x01", 7: b"\xff", 8: b"\xff\xff"}  # of narrow types

# What the fields of a version hold, as the library of Unidata has it: the length of a dimension,
# the bytes of a variable (in a record) that others follow, and where a variable begins.
MOST_LENGTH = {1: (1 << 31) - 4, 2: (1 << 31) - 4, 5: (1 << 63) - 4}
MOST_BYTES = {1: (1 << 31) - 4, 2: (1 << 32) - 4, 5: (1 << 63) - 4}
MOST_BEGIN = {1: (1 << 31) - 1, 2: (1 << 63) - 1, 5: (1 << 63) - 1}
UNSAID = (1 << 32) - 1  # written for the size of a variable that its field has no room for
NAME_BYTES = 256  # of a name, for the library of Unidata

ENCODING = "_Encoding"  # attribute of chars that are text, whose letters are the fastest dimension
UTF8_WORDS = ("utf-8", "utf8", "ascii", "us-ascii")
BOOL = {"dtype": "bool"}  # attribute of bytes that are bools, as xarray writes them
PARTS = "ri"  # dimension of the real and imaginary parts of complex numbers

WRITE_OPTIONS = (
    Option("version", "auto", ("auto", "1", "2", "5"), "auto: the smallest that holds the data"),
    Option("unlimited", "auto", str, "dimension of the records; auto: as it was; none: no records"),
)

# CDF-1: int x(n = 2) = 1, 2
SAMPLE = (
    b"CDF\1" + bytes(4) + b"\0\0\0\x0a\0\0\0\1\0\0\0\1n\0\0\0\0\0\0\2" + bytes(8)
    + b"\0\0\0\x0b\0\0\0\1\0\0\0\1x\0\0\0\0\0\0\1\0\0\0\0" + bytes(8)
    + b"\0\0\0\4\0\0\0\x08\0\0\0\x50\0\0\0\1\0\0\0\2"
)  # fmt: skip
# CDF-2: short r(t = 2 records, n = 3), without padding, with units = "m"
RECORDS = (
    b"CDF\2\0\0\0\2\0\0\0\x0a\0\0\0\2\0\0\0\1t\0\0\0\0\0\0\0\0\0\0\1n\0\0\0\0\0\0\3"
    + bytes(8) + b"\0\0\0\x0b\0\0\0\1\0\0\0\1r\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1"
    + b"\0\0\0\x0c\0\0\0\1\0\0\0\5units\0\0\0\0\0\0\2\0\0\0\1m\0\0\0"
    + b"\0\0\0\3\0\0\0\x08\0\0\0\0\0\0\0\x7c\0\1\0\2\0\3\0\4\0\5\0\6"
)  # fmt: skip
