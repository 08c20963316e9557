"""The words of a NRRD header: types, encodings, kinds and spaces, with their aliases.

Sources: the format definition (teem.sourceforge.net/nrrd/format.html, sections 3 to 5) and Teem's
``enumsNrrd.c``, which has more aliases than the definition. Words are compared
without regard to case; ``LIST``, ``SKIPLIST``, ``none`` and ``???`` are not.
"""

from __future__ import annotations

from raconvert.arrays.dtypes import Element, element

MAGIC = b"NRRD"
VERSIONS = ("00.01", "0001", "0002", "0003", "0004", "0005", "0006")
MAX_RANK = 16  # NRRD_DIM_MAX
MAX_SPACE_RANK = 8  # NRRD_SPACE_DIM_MAX
MAX_BLOCK_BYTES = (1 << 31) - 1
MAX_ARRAY_BYTES = (1 << 63) - 1  # NumPy's limit for one array

# --- types ----------------------------------------------------------------------------------------

_TYPE_ROWS = (
    ("int8", "int", 1, ("signed char", "int8_t")),
    ("uint8", "uint", 1, ("uchar", "unsigned char", "uint8_t")),
    ("int16", "int", 2, ("short", "short int", "signed short", "signed short int", "int16_t")),
    ("uint16", "uint", 2, ("ushort", "unsigned short", "unsigned short int", "uint16_t")),
    ("int32", "int", 4, ("int", "signed int", "int32_t")),
    ("uint32", "uint", 4, ("uint", "unsigned int", "uint32_t")),
    ("int64", "int", 8, ("longlong", "long long", "long long int", "signed long long",
                         "signed long long int", "int64_t")),
    ("uint64", "uint", 8, ("ulonglong", "unsigned long long", "unsigned long long int",
                           "uint64_t")),
    ("float", "float", 4, ()),
    ("double", "float", 8, ()),
)  # fmt: skip
BLOCK = "block"
ELEMENTS: dict[str, Element] = {name: element(kind, n) for name, kind, n, _ in _TYPE_ROWS}
TYPE_OF = {
    alias: name for name, _, _, aliases in _TYPE_ROWS for alias in (name, *aliases)
} | {BLOCK: BLOCK}  # fmt: skip
# (kind, bytes) -> type to write
NAME_OF_TYPE = {(kind, nbytes): name for name, kind, nbytes, _ in _TYPE_ROWS}

# --- encodings ------------------------------------------------------------------------------------

RAW, TEXT, HEX, GZIP, BZIP2, ZRL = "raw", "text", "hex", "gzip", "bzip2", "zrl"
ENCODING_OF = {
    "raw": RAW, "txt": TEXT, "text": TEXT, "ascii": TEXT, "hex": HEX, "gz": GZIP, "gzip": GZIP,
    "bz2": BZIP2, "bzip2": BZIP2, "zrl": ZRL,
}  # fmt: skip
COMPRESSED = (GZIP, BZIP2)

# --- kinds ----------------------------------------------------------------------------------------

_KIND_ROWS: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("domain", 0, ()),
    ("space", 0, ()),
    ("time", 0, ()),
    ("list", 0, ()),
    ("point", 0, ()),
    ("vector", 0, ("contravariant-vector",)),
    ("covariant-vector", 0, ()),
    ("normal", 0, ()),
    ("stub", 1, ()),
    ("scalar", 1, ()),
    ("complex", 2, ()),
    ("2-vector", 2, ()),
    ("3-color", 3, ()),
    ("RGB-color", 3, ("RGBcolor", "RGB")),
    ("HSV-color", 3, ("HSVcolor", "HSV")),
    ("XYZ-color", 3, ()),
    ("4-color", 4, ()),
    ("RGBA-color", 4, ("RGBAcolor", "RGBA")),
    ("3-vector", 3, ()),
    ("3-gradient", 3, ()),
    ("3-normal", 3, ()),
    ("4-vector", 4, ()),
    ("quaternion", 4, ()),
    ("2D-symmetric-matrix", 3, ()),
    ("2D-masked-symmetric-matrix", 4, ()),
    ("2D-matrix", 4, ()),
    ("2D-masked-matrix", 5, ()),
    ("3D-symmetric-matrix", 6, ()),
    ("3D-masked-symmetric-matrix", 7, ()),
    ("3D-matrix", 9, ()),
    ("3D-masked-matrix", 10, ()),
)


def _spellings(kind: str) -> tuple[str, ...]:
    """Return the spellings of a kind: also with -sym- for -symmetric-, -tensor for -matrix."""
    words = (kind, kind.replace("-matrix", "-tensor"))
    return words + tuple(name.replace("symmetric", "sym") for name in words)


KIND_SIZES = {kind: size for kind, size, _ in _KIND_ROWS}  # 0: any size
KIND_OF = {
    spelling.lower(): kind
    for kind, _, aliases in _KIND_ROWS
    for name in (kind, *aliases)
    for spelling in _spellings(name)
}

# --- spaces ---------------------------------------------------------------------------------------

_SPACE_ROWS = (
    ("right-up", 2, ()),
    ("right-down", 2, ()),
    ("right-anterior-superior", 3, ("RAS",)),
    ("left-anterior-superior", 3, ("LAS",)),
    ("left-posterior-superior", 3, ("LPS",)),
    ("right-anterior-superior-time", 4, ("RAST",)),
    ("left-anterior-superior-time", 4, ("LAST",)),
    ("left-posterior-superior-time", 4, ("LPST",)),
    ("scanner-xyz", 3, ()),
    ("scanner-xyz-time", 4, ("scanner-xyzt",)),
    ("3D-right-handed", 3, ()),
    ("3D-left-handed", 3, ()),
    ("3D-right-handed-time", 4, ()),
    ("3D-left-handed-time", 4, ()),
)
SPACE_RANKS = {space: rank for space, rank, _ in _SPACE_ROWS}
SPACE_OF = {
    spelling.lower(): space
    for space, _, aliases in _SPACE_ROWS
    for name in (space, *aliases)
    for spelling in (name, name.replace("-", " "), name.replace("-", ""))
}

CENTERS = ("cell", "node")
UNKNOWN = ("???", "none")  # words for an unknown kind or centering
NO_VECTOR = "none"
LIST, SKIPLIST = "LIST", "SKIPLIST"

# How others read a file: FILE is filled in for each language.
PROGRAMS = {
    "Julia": """\
using FileIO, NRRD
x = load(FILE)""",
    "R": """\
library(nat)
x <- read.nrrd(FILE)""",
    "C": """\
#include <teem/nrrd.h>  /* cc read.c -lteem */

int main(void) {
    Nrrd *x = nrrdNew();
    return nrrdLoad(x, FILE, NULL);  /* x->data, x->dim, x->axis[0].size */
}""",
}
