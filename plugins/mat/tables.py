"""Tables of numbers and words in MAT files: storage types, classes, names, limits.

MathWorks "MAT-File Format", version 5 chapters "Data Types" (table 1-1) and "MATLAB Array Data
Element" (table 1-3), level 4 chapter for MOPT.
"""

from __future__ import annotations

import re
from base64 import b85decode
from collections import namedtuple
from zlib import decompress

from raconvert.arrays.dtypes import element

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from raconvert.errors import RaconvertError


ORDERS: dict[str, Literal["little", "big"]] = {"<": "little", ">": "big"}
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
HDF5_OFFSET = 512  # the user block of every v7.3 file
# Our own attribute: v7.3 cannot say that a value without elements is complex.
EMPTY_COMPLEX = b"RACONVERT_complex"
# Version and byte order, at byte 124 of the header.
MARKS_5 = (b"\0\1IM", b"\1\0MI")
MARKS_73 = (b"\0\2IM", b"\2\0MI")

# Storage types of v5: code -> numpy type without byte order.
STORED = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
    16: "u1",
    17: "u2",
    18: "u4",
}
MI_INT8, MI_UINT8, MI_UINT16, MI_INT32, MI_UINT32 = 1, 2, 4, 5, 6
MI_MATRIX, MI_COMPRESSED = 14, 15
MI_UTF8, MI_UTF16, MI_UTF32 = 16, 17, 18
CODES = {code: number for number, code in STORED.items() if number < MI_UTF8}

# Classes of v5 by number.
CLASSES = {
    1: "cell",
    2: "struct",
    3: "object",
    4: "char",
    5: "sparse",
    6: "double",
    7: "single",
    8: "int8",
    9: "uint8",
    10: "int16",
    11: "uint16",
    12: "int32",
    13: "uint32",
    14: "int64",
    15: "uint64",
    16: "function_handle",
    17: "opaque",
}
NUMBERS = {name: number for number, name in CLASSES.items()}
COMPLEX, GLOBAL, LOGICAL = 0x0800, 0x0400, 0x0200  # array flags

# Numeric classes: what an element of them is.
ELEMENTS = {
    "double": element("float", 8),
    "single": element("float", 4),
    "logical": element("bool", 1),
    **{f"{kind}{8 * n}": element(kind, n) for kind in ("int", "uint") for n in (1, 2, 4, 8)},
}
COMPLEX_ELEMENTS = {"double": element("complex", 16), "single": element("complex", 8)}
# Complex integers have no element type of their own; up to 32 bits complex128 holds them.
WIDE_COMPLEX = frozenset(f"{kind}{n}" for kind in ("int", "uint") for n in (8, 16, 32))
TYPE_CODES = {"double": "f8", "single": "f4", "logical": "u1"} | {
    f"{kind}{8 * n}": f"{kind[0]}{n}" for kind in ("int", "uint") for n in (1, 2, 4, 8)
}

MAX_V5_BYTES = (1 << 31) - 1  # of one variable; what MATLAB reads and writes in v5, v6 and v7
MAX_DIM = (1 << 31) - 1
WIDEST = 16  # bytes of an element: a complex double
MAX_RANK = {"6": 64, "7": 64, "7.3": 32}  # numpy's limit, and HDF5's
VALUE_BYTES = 1 << 13  # memory of one value with its names and metadata, about

HIGH, LOW, SURROGATE_MASK = 0xD800, 0xDC00, 0xFC00  # the halves of surrogate pairs

MAX_NAME = 63
KEYWORDS = frozenset(
    ("break", "case", "catch", "classdef", "continue", "else", "elseif", "end", "for", "function",
     "global", "if", "otherwise", "parfor", "persistent", "return", "spmd", "switch", "try",
     "while")
)  # fmt: skip

# The facts in the header of a variable: class, MATLAB's dims, and three flags.
Facts = namedtuple("Facts", "cls dims complex logical is_global", defaults=(False, False, False))

# Programs that read a variable; FILE and NAME are filled in for each language.
PROGRAMS = {
    "Python": """\
from scipy.io import loadmat
x = loadmat(FILE, variable_names=[NAME], mat_dtype=True)[NAME]""",
    "Julia": """\
using MAT
x = matread(FILE)[NAME]""",
    "MATLAB": "x = getfield(load(FILE, NAME), NAME);",
    "R": """\
library(R.matlab)
x <- readMat(FILE, fixNames = FALSE)[[NAME]]""",
    "C": """\
#include <matio.h>  /* cc read.c -lmatio */

int main(void) {
    mat_t *file = Mat_Open(FILE, MAT_ACC_RDONLY);
    matvar_t *x = file ? Mat_VarRead(file, NAME) : NULL;
    return x ? 0 : 1;  /* x->data, x->rank, x->dims, x->class_type */
}""",
}
PROGRAMS_73 = {
    **PROGRAMS,
    "Python": """\
import h5py
with h5py.File(FILE, "r") as file:
    x = file[NAME][()].T""",
    "R": """\
library(rhdf5)
x <- h5read(FILE, NAME)""",
}
AFTER_73 = {"bool": ".astype(bool)", "complex": '\n    x = x["real"] + 1j * x["imag"]'}


# The variable in errors --------------------------------------------------------------------------


def in_variable(error: RaconvertError, name: str, path: str) -> None:
    """Add the names of variable and file to an error that does not have them."""
    if name and f"'{name}" not in f"{error.what} {error.where}":
        where = f"variable '{name}'"
        error.where = f"{where}, {error.where}" if error.where else where
    if f"'{path}'" not in error.what:
        error.path = error.path or path


# Small whole files, for `FORMAT.samples`: v4, v6 and v7 by scipy, v7.3 by this plugin ------------


_PACKED = {
    "scipy_v4.mat": (b"c-muNU|?VbVrB*iU;^R_22}9D9?Ebq#-h4}Au%Z#08=gl!2"),
    "scipy_v6.mat": (
        b"c-r%I4DoSvQZUssQ1EpO(M`+DNmU5QNi0drFUqx2D9A6)tk6+#E=o--Nlj76&$ChpPApOI%P&(fGE^`$"
        b"vobWXGBQ#yGB7e@AOkRZ`tkuO10ZGtVh$kYgi5hO`HVo!45k?wDu6T-"
        b"h{wpp0MZwLq>l|v9}^UV^i@L5Re)Rk!yZC&I6wssKqvtR0N7L-Vg"
    ),
    "scipy_v7.mat": (
        b"c-r%I4DoSvQZUssQ1EpO(M`+DNmU5QNi0drFUqx2D9A6)tk6+#E=o--Nlj76&$ChpPApOI%P&(fGE^`$"
        b"vobWXGBQ#yGB7e@AOkRZ`tk!QO(3qA^Ef#n!GIyjOyL<rk{=sKLhC2V#u<`6#zr9wnQ8+46FV6hBvv!L"
        b"1Zi-EYp`HAlH+iO@kkGkz=5tK=}eb<cuqRZ;_u*{aAos@5Pn7`hqxpmmw1**c4mBkepwu>GHhU8^@F`y"
        b"f}7!(8p~dgVODU%G@!PtL2Q3GW8y*yopVfKhdETd8%*Q{q!nI1PdT(yo@vGbHA4dihFQ~?7y#ZWR9X"
    ),
    "v73.mat": (
        b"c-"
        b"r%I4DoSvQZUyuR`7KU(M`+DN!3v(FUl+_NzGG8s#GXSOwP|MOD!r<@NjW6RVYr*NX<=DFw`?JP|#B#6E"
        b"MI4lcz7kC>T)C35-@=E-"
        b"5ZBhl7KGg+TxsHxTMS6fkq4@?rWD2$;_ZG?5WVKY&F!g9e1b%*cRhB07M`axri)Fd~`9#vlPPmj!M^MF"
        b"6q_hKd0VPez~%86gZPAL3s|CWrttTpa@rz5tjl02ku`ldRBiU}9usgosLj`M_Z0Ks5;hco+<z=JEm+a4"
        b"`6S^Lc!7PGWH}NL(0fCc@s*%)Al{Fw0{!Q;dR9FbYP&NC1pX0IR)D6#"
    ),
}

SAMPLES = {name: decompress(b85decode(packed)) for name, packed in _PACKED.items()}

# A linear index as this plugin writes it in names: 1, 2, 3 and so on.
INDEX = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
