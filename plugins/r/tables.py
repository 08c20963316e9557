"""Codes of R's serialization, from "R Internals" 1.8 and serialize.c, and the words for them."""

from __future__ import annotations

MAGIC_X, MAGIC_A, MAGIC_B = b"X\n", b"A\n", b"B\n"
GZIP_MAGIC, BZIP2_MAGIC, XZ_MAGIC = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0"
PACKED = ((0, GZIP_MAGIC), (0, BZIP2_MAGIC), (0, XZ_MAGIC))
RDATA = {b"RDX2\n": 2, b"RDX3\n": 3, b"RDA2\n": 2, b"RDA3\n": 3, b"RDB2\n": 2, b"RDB3\n": 3}
RDATA_OLD = (b"RDX1\n", b"RDA1\n", b"RDB1\n")
VERSIONS = (2, 3)

# Types of objects.
NIL, SYM, LIST, CLO, ENV, PROM, LANG, SPECIAL, BUILTIN, CHAR, LGL = range(11)
INT, REAL, CPLX, STR, DOT, ANY, VEC, EXPR, BCODE, EXTPTR, WEAKREF, RAW, S4 = range(13, 26)
# What stands for an object without being one.
REF, NIL_VALUE, GLOBAL, UNBOUND, MISSING, BASE, NAMESPACE, PACKAGE, PERSIST = range(255, 246, -1)
BC_REP_DEF, BC_REP_REF, EMPTY_ENV, BASE_ENV, ATTR_LANG, ATTR_LIST, ALTREP = range(244, 237, -1)

IS_OBJECT, HAS_ATTRIBUTES, HAS_TAG = 0x100, 0x200, 0x400
BYTES_BIT, LATIN1_BIT, UTF8_BIT, ASCII_BIT = 0x2000, 0x4000, 0x8000, 0x40000

WIDTHS = {LGL: 4, INT: 4, REAL: 8, CPLX: 16, RAW: 1}  # bytes of an element
TYPE_NAMES = {LGL: "logical", INT: "integer", REAL: "double", CPLX: "complex", STR: "character",
              RAW: "raw", VEC: "list", LIST: "pairlist", S4: "S4"}  # fmt: skip
NO_DATA = {SYM: "a symbol", CLO: "a function", ENV: "an environment", PROM: "a promise",
           LANG: "a call", SPECIAL: "a function", BUILTIN: "a function", DOT: "arguments",
           EXPR: "expressions", BCODE: "bytecode", EXTPTR: "an external pointer",
           WEAKREF: "a weak reference", GLOBAL: "an environment", UNBOUND: "no value",
           MISSING: "a missing argument", BASE: "an environment", NAMESPACE: "an environment",
           PACKAGE: "an environment", PERSIST: "a persistent object", REF: "a reference",
           EMPTY_ENV: "an environment", BASE_ENV: "an environment",
           CHAR: "a string outside of a vector"}  # fmt: skip

NA_INTEGER = -(1 << 31)
NA_INTEGER64 = -(1 << 63)
NA_REAL_BITS = 0x7FF00000000007A2
NA_REAL_LOW = 1954  # the lower half of the bits of NA_real_

# The encodings that R names as native, by Python's names.
NATIVE = {"UTF-8": "utf-8", "ISO-8859-1": "latin-1", "ISO8859-1": "latin-1", "LATIN1": "latin-1",
          "CP1252": "cp1252", "ISO-8859-15": "iso8859-15", "ISO8859-15": "iso8859-15",
          "ANSI_X3.4-1968": "ascii", "US-ASCII": "ascii", "ASCII": "ascii", "C": "ascii",
          "CP1250": "cp1250", "CP1251": "cp1251", "KOI8-R": "koi8-r", "CP932": "cp932",
          "CP936": "gbk", "GBK": "gbk", "CP949": "cp949", "CP950": "cp950", "EUC-JP": "euc-jp",
          "GB2312": "gb2312", "GB18030": "gb18030", "BIG5": "big5"}  # fmt: skip

DATE, TIME, FACTOR, INTEGER64, FRAME = "Date", "POSIXct", "factor", "integer64", "data.frame"
# Units of datetime64 that are tried, coarsest first, and how many of them are one of R's.
UNITS = {DATE: (("D", 1),), TIME: (("s", 1), ("ms", 1000), ("us", 1_000_000))}
MOST_EXACT = 1 << 53

OWN = "rds"  # the namespace of both formats
NULLS = "NA"  # the ending of the name of an array that says which values are missing
NO_NULLS = "raconvert.NA"  # attribute of a vector that has such an array, and no missing value
ROW_NAMES = "row.names"
# Attributes with a meaning of their own, which become something else than attributes.
RESERVED = frozenset({"names", "dim", "dimnames", "class", "levels", ROW_NAMES, NO_NULLS})

REMEDY_XDR = "in R: saveRDS(readRDS(FILE), 'x.rds')"
