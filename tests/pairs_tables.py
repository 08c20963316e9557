"""What has to become of every type and shape in every format: written from the formats' documents.

In the tables `=` is exact, `~` equivalent (every value is kept, in another form) and `x` refused.
Nothing here is derived from the plugins, or from what they answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from pairs import collected

EXACT, EQUIVALENT, REFUSED = "exact", "equivalent", "refused"
_OUTCOMES = {"=": EXACT, "~": EQUIVALENT, "x": REFUSED}

Shape = tuple[int, ...]
Case = tuple[str, Shape]  # the name of a type, and a shape

# Formats -----------------------------------------------------------------------------------------


class Format(NamedTuple):
    """What the tests need to know of a format."""

    suffix: str
    column: str  # in the tables below; empty: not in them, see `IMAGES`
    order: str = ""  # C or F: the index order that it defines, CF: both
    keeps: bool = False  # has a place for all metadata


FORMATS = {
    "ra": Format(".ra", "ra", keeps=True),
    "bundle": Format("", "ra", keeps=True),
    "zip": Format(".zip", "ra", keeps=True),
    "tar": Format(".tar", "ra", keeps=True),
    "png": Format(".png", "png", "C"),
    "mat": Format(".mat", "mat", "F"),
    "har": Format(".har", "har", "F"),
    "tiff": Format(".tif", "tiff", "C"),
    "jpeg": Format(".jpg", ""),
    "gif": Format(".gif", ""),
    "webp": Format(".webp", ""),
    "bmp": Format(".bmp", ""),
    "netpbm": Format(".pnm", ""),
    "nrrd": Format(".nrrd", "nrrd", keeps=True),
    "scidb": Format(".scidb", "scidb", "C"),
    "hdf5": Format(".h5", "hdf5", "C", keeps=True),
}
FORMATS |= {p.name: Format(p.suffix, p.name, p.order, p.keeps) for p in collected().values()}
IN_TABLES = tuple(name for name, row in FORMATS.items() if row.column)
# Forms of RA and TIFF: not every case is tried from them.
HOLDERS = ("bundle", "zip", "tar", "tiff", *(p.name for p in collected().values() if p.few))

# Types -------------------------------------------------------------------------------------------

DTYPES: dict[str, np.dtype[Any]] = {
    "bool": np.dtype("?"),
    **{np.dtype(code).name: np.dtype(f"<{code}") for code in
       ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    **{f"{np.dtype(code).name}_big": np.dtype(f">{code}") for code in
       ("i2", "u2", "i8", "f4", "c16")},
    "bytes": np.dtype("S3"),
    "text": np.dtype("<U2"),
    "text_big": np.dtype(">U2"),
    "datetime": np.dtype("<M8[ns]"),
    "seconds": np.dtype("<M8[s]"),
    "timedelta": np.dtype("<m8[D]"),
    "structured": np.dtype([("a", "<i4"), ("b", ">f8", (2,))]),
    "void": np.dtype("V3"),
}  # fmt: skip

# An array of two axes. Byte order is no part of a type: numbers are written as the format has them.
#
# - RA keeps what is inside user elements in its sidecar.
# - bfloat16: HDF5 has a description for its bits; double holds it.
# - HDF5 has no type for text of four bytes a letter, nor for dates: an encoding, and tagged bytes.
# - MAT: no half floats but double; strings are rows of char arrays; dates would be bare counts.
# - NRRD: bool is uint8, complex numbers are pairs on a new axis, all else is a block of bytes (which
#   says no more than void does).
# - SciDB: bool is a byte, complex numbers are pairs, float the smallest; datetime counts seconds.
# - HAR: float32 and int32, and what they hold; strings are padded with blanks instead of NULs.
# - PNG: 8 or 16 bits, and one bit, which every reader but Pillow gives as 0 and 255.
# - TIFF: numbers of every width, but for the element types that only a user knows.
_TYPES = """
                ra  hdf5  mat  nrrd  scidb  har  png  tiff
bool            =   =     =    ~     ~      ~    ~    =
int8            =   =     =    =     =      ~    x    =
int16           =   =     =    =     =      ~    x    =
int32           =   =     =    =     =      =    x    =
int64           =   =     =    =     =      x    x    =
uint8           =   =     =    =     =      ~    =    =
uint16          =   =     =    =     =      ~    =    =
uint32          =   =     =    =     =      x    x    =
uint64          =   =     =    =     =      x    x    =
float16         =   =     ~    x     ~      ~    x    =
float32         =   =     =    =     =      =    x    =
float64         =   =     =    =     =      x    x    =
complex64       =   =     =    ~     ~      x    x    =
complex128      =   =     =    ~     ~      x    x    =
bfloat16        =   =     ~    x     x      x    x    x
int16_big       =   =     =    =     =      ~    x    =
uint16_big      =   =     =    =     =      ~    =    =
int64_big       =   =     =    =     =      x    x    =
float32_big     =   =     =    =     =      =    x    =
complex128_big  =   =     =    ~     ~      x    x    =
bytes           =   =     ~    ~     ~      x    x    x
text            =   ~     ~    ~     x      x    x    x
text_big        =   ~     ~    ~     x      x    x    x
datetime        =   ~     x    ~     x      x    x    x
seconds         =   ~     x    ~     ~      x    x    x
timedelta       =   ~     x    ~     x      x    x    x
structured      =   =     x    ~     x      x    x    x
void            =   =     x    =     =      x    x    x
"""

# Shapes, in the order in which the format counts the indices.
#
# - MAT: two axes at least; MATLAB drops axes of one element at the end, from the third on.
# - NRRD and TIFF have no empty axes; NRRD and SciDB one axis at least.
# - HAR: of real numbers; integers are in a table of their own.
# - PNG: (height, width), or with a last axis of 1 to 4 channels; one channel needs no axis.
_SHAPES = """
            ra  hdf5  mat  nrrd  scidb  har  png  tiff
            =   =     ~    ~     ~      =    x    =
5           =   =     ~    =     =      =    x    =
0           =   =     ~    x     =      =    x    x
4,6         =   =     =    =     =      =    =    =
6,4         =   =     =    =     =      =    =    =
1,1         =   =     =    =     =      =    =    =
4,0         =   =     =    x     =      =    x    x
0,4         =   =     =    x     =      =    x    x
4,6,1       =   =     ~    =     =      =    ~    =
1,6,4       =   =     =    =     =      =    =    =
4,6,2       =   =     =    =     =      =    =    =
2,6,4       =   =     =    =     =      =    =    =
4,6,3       =   =     =    =     =      =    =    =
3,6,4       =   =     =    =     =      =    =    =
4,6,5       =   =     =    =     =      =    x    =
5,6,4       =   =     =    =     =      =    =    =
2,0,3       =   =     =    x     =      =    x    x
3,0,2       =   =     =    x     =      =    x    x
1,1,3,1     =   =     ~    =     =      =    x    =
1,3,1,1     =   =     ~    =     =      =    x    =
2,3,4,3     =   =     =    =     =      =    x    =
3,4,3,2     =   =     =    =     =      =    x    =
"""

# HAR holds integers as matrices of int32; small ones with more axes as real numbers. Strings are
# lists, so that those of two axes, as in the table of types, are refused.
_HAR_INTEGERS = """
        small  int32
0 axes  ~      ~
1 axis  ~      ~
2 axes  ~      =
more    ~      x
"""
_SMALL = ("bool", "int8", "int16", "uint8", "uint16", "int16_big", "uint16_big")


def _table(text: str) -> dict[str, dict[str, str]]:
    """Return outcomes by row and column; names of rows end where the first column begins."""
    head, *lines = text.strip("\n").splitlines()
    columns = head.split()
    start = head.index(columns[0])
    return {
        line[:start].strip(): dict(
            zip(columns, (_OUTCOMES[sign] for sign in line[start:].split()), strict=True)
        )
        for line in lines
    }


OF_TYPE = _table(_TYPES)
OF_SHAPE = {
    tuple(int(n) for n in name.split(",") if n): row for name, row in _table(_SHAPES).items()
}
OF_INTEGERS = list(_table(_HAR_INTEGERS).values())
assert list(OF_TYPE) == list(DTYPES)
for _pairs in collected().values():
    assert not {*_pairs.types} - {*OF_TYPE}
    assert not {*_pairs.shapes} - {*OF_SHAPE}
    for _type, _row in OF_TYPE.items():
        _row[_pairs.name] = _OUTCOMES[_pairs.types.get(_type, "=")]
    for _shape, _row in OF_SHAPE.items():
        _row[_pairs.name] = _OUTCOMES[_pairs.shapes.get(_shape, "=")]

PLAIN = (4, 6)


def seen_from(target: str, shape: Shape, order: str | None) -> Shape:
    """Return the shape that a target gives an array: a source may have no index order.

    Row-major formats read its axes reversed, column-major ones as they stand; `shape` is the former.
    """
    return shape[::-1] if order is None and FORMATS[target].order == "F" else shape


def expected(target: str, name: str, shape: Shape, order: str | None = "C") -> str:
    """Return what a conversion of this type and shape to this format has to be."""
    column = FORMATS[target].column
    shape = seen_from(target, shape, order)
    of_type, of_shape = OF_TYPE[name][column], OF_SHAPE[shape][column]
    if column == "har" and name in (*_SMALL, "int32"):
        row = OF_INTEGERS[min(len(shape), 3)]
        of_type = row["int32" if name == "int32" else "small"]
    if column == "har" and name == "bytes" and len(shape) < 2:
        of_type = EQUIVALENT
    if column == "png" and name == "bool" and len(shape) == 3 and shape[2] > 1:
        return REFUSED  # images of one bit have no channels
    found = {of_type, of_shape}
    return next(one for one in (REFUSED, EQUIVALENT, EXACT) if one in found)


# Cases -------------------------------------------------------------------------------------------

EVERY_TYPE: list[Case] = [(name, PLAIN) for name in DTYPES]
# The types of which the shape matters in some format
SHAPE_TYPES = ("uint8", "float32", "bool", "int32", "uint16_big", "complex64")
EVERY_SHAPE: list[Case] = [(name, shape) for name in SHAPE_TYPES for shape in OF_SHAPE]
FEW: list[Case] = [
    ("bool", PLAIN), ("uint8", (4, 6, 3)), ("int32", PLAIN), ("float32", (3, 6, 4)),
    ("complex64", (1, 1, 3, 1)), ("float64", ()), ("uint16", (5,)), ("float32", (2, 0, 3)),
    ("text", PLAIN), ("structured", PLAIN),
]  # fmt: skip


def cases(source: str) -> list[Case]:
    """Return what is tried from a format: all from NPY, which holds nearly all; some from others.

    What a target makes of an array does not depend on where it comes from.
    """
    if source in HOLDERS:
        return FEW
    name = "float32" if source == "har" else "uint8"
    shapes = EVERY_SHAPE if source == "npy" else [(name, shape) for shape in OF_SHAPE]
    return list(dict.fromkeys([*EVERY_TYPE, *shapes]))


# The law of the axis order: ranks 1 to 4, and what takes another form in some format
LAW: list[Case] = [
    ("uint8", (5,)), ("uint8", (4, 6)), ("uint8", (4, 6, 3)), ("float32", (1, 6, 4)),
    ("float32", (2, 3, 4, 3)), ("int32", (4, 6)), ("complex64", (3, 6, 4)), ("text_big", (4, 6)),
]  # fmt: skip

# The way back: from NPY every type, and shapes with and without another form; from others some.
_BACK_SHAPES: tuple[Shape, ...] = ((), (5,), (2, 3), (2, 3, 4), (2, 0, 3), (1, 1, 3, 1))
_BACK_TYPES = (
    "bool", "int32", "uint16_big", "float16", "float64", "complex64", "bfloat16", "bytes",
    "datetime", "structured", "void",
)  # fmt: skip
# shape -> one of the tables that every format treats alike
_LIKE: dict[Shape, Shape] = {(2, 3): (4, 6), (2, 3, 4): (5, 6, 4)}


def cases_back(source: str) -> list[Case]:
    """Return what is sent to another format and back."""
    if source in HOLDERS:
        return [("bool", (2, 3)), ("float32", (1, 1, 3, 1)), ("int32", ()), ("text", (5,))]
    if source == "npy":
        types = [(name, shape) for name in DTYPES for shape in ((2, 3), (1, 1, 3, 1))]
        more = [(name, ()) for name in ("bool", "float16", "complex64", "bytes", "text", "int32")]
        shapes = [(name, shape) for name in ("uint8", "float32") for shape in _BACK_SHAPES]
        return list(dict.fromkeys([*types, *more, *shapes]))
    name = "float32" if source == "har" else "uint8"
    types = [(one, (2, 3)) for one in _BACK_TYPES]
    return [*types, *((name, shape) for shape in _BACK_SHAPES)]


def expected_back(target: str, name: str, shape: Shape, order: str | None) -> str:
    """Return what the first half of the way is."""
    return expected(target, name, _LIKE.get(shape, shape), order)


# Images ------------------------------------------------------------------------------------------

# What the other image formats hold without loss: type and shape -> outcome. Of anything else they
# are only asked to refuse it. JPEG never is exact; WebP is written lossless.
IMAGES: dict[str, dict[Case, str]] = {
    "jpeg": {("uint8", (4, 6)): REFUSED, ("uint8", (4, 6, 3)): REFUSED,
             ("float32", (4, 6)): REFUSED},
    "gif": {("uint8", (4, 6)): EXACT, ("float32", (4, 6)): REFUSED, ("uint16", (4, 6)): REFUSED},
    "webp": {("uint8", (4, 6, 3)): EXACT, ("uint16", (4, 6, 3)): REFUSED},
    "bmp": {("uint8", (4, 6)): EXACT, ("uint8", (4, 6, 3)): EXACT, ("int16", (4, 6)): REFUSED},
    "netpbm": {("uint8", (4, 6)): EXACT, ("uint16", (4, 6, 3)): EXACT, ("float64", (4, 6)): REFUSED},
}  # fmt: skip
