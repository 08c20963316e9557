r"""Signatures, names and numbers of HDF5 that need no library.

Specification: "HDF5 File Format Specification Version 3.0"; the HDF Group's registry of filters.
"""

from __future__ import annotations

from collections import namedtuple

from raconvert.plugin import Option

NAMESPACE = "hdf5"  # namespace of the metadata for an exact way back
MAX_RANK = 32  # H5S_MAX_RANK
MAX_LENGTH = (1 << 63) - 1  # longest axis

SIGNATURE = b"\x89HDF\r\n\x1a\n"
PLACES = (0, 512, 1024, 2048)  # offsets of the signature; the library goes on doubling
# Byte 124 of a MAT file of version 7.3, in both byte orders: HDF5 too, with MATLAB's classes.
MAT_MARKS = (b"\0\2IM", b"\2\0MI")

READ_OPTIONS = (
    Option("bools", "auto", ("auto", "integers"), "integers: as the bytes that they are"),
    Option("anndata", "plain", ("plain", "labels"), "labels: X and others have obs and var"),
)
WRITE_OPTIONS = (
    Option("compress", "none", str, "none, gzip, gzip:0 to gzip:9, or lzf"),
    Option("chunks", "auto", str, "auto, none, or a length for each axis: 64,64"),
    Option("shuffle", True, bool, "sort the bytes of the elements before compressing"),
    Option("strings", "auto", ("auto", "fixed"), "fixed: null-padded, never of variable length"),
)

# Floats of one byte: exponent at and bits, mantissa at and bits, bias. Their kinds also differ in
# infinities and NaN, which HDF5 does not describe: of two with equal fields the first is read, and
# the record of an array names the other.
FLOAT8_LAYOUTS = {
    "float8_e4m3fn": (3, 4, 0, 3, 7),
    "float8_e4m3": (3, 4, 0, 3, 7),
    "float8_e4m3fnuz": (3, 4, 0, 3, 8),
    "float8_e4m3b11fnuz": (3, 4, 0, 3, 11),
    "float8_e5m2": (2, 5, 0, 2, 15),
    "float8_e5m2fnuz": (2, 5, 0, 2, 16),
    "float8_e3m4": (4, 3, 0, 4, 3),
}

# Numbers of filters; those below 256 are the library's own.
DEFLATE, SHUFFLE, FLETCHER32 = 1, 2, 3
FILTERS = {
    DEFLATE: "deflate", SHUFFLE: "shuffle", FLETCHER32: "fletcher32", 4: "szip", 5: "nbit",
    6: "scaleoffset", 305: "lzo", 307: "bzip2", 32000: "lzf", 32001: "blosc", 32004: "lz4",
    32008: "bitshuffle", 32012: "b3d", 32013: "zfp", 32015: "zstd", 32016: "sz-legacy", 32017: "sz",
    32018: "fcidecomp", 32019: "jpeg", 32024: "sz3", 32026: "blosc2", 32028: "sperr",
}  # fmt: skip
# Number of values that the library reads from the message of a filter without counting them.
FEWEST_VALUES = {4: 4, 5: 5, 6: 20}

# The attributes of one object: plain values and unusual types by name, and (name, reason) of those
# that cannot be read.
Attributes = namedtuple("Attributes", "values types problems")

# h5py with libver "v110", no times: x = [1, 2, 3] of uint8, compact
SAMPLE = (
    SIGNATURE + b"\x03\x08\x08" + bytes(9) + b"\xff" * 8 + b"\xc2\x01" + bytes(6) + b"0" + bytes(7)
    + b"\xdc\xa7\xa9\xd6OHDR\x02\x00x\x02\x12" + bytes(4) + b"\xff" * 16
    + b"\n\x02\x00\x01\x00\x00\x06\x0c\x00\x00\x01\x00\x01x\xb3" + bytes(8) + b"H" + bytes(74)
    + b"i\xf9\x1c|OHDR\x02\x01\x03\x01\x01\x14\x00\x00\x02\x01\x01\x01\x03" + bytes(7)
    + b"\x03" + bytes(7) + b"\x03\x0c\x00\x01\x10\x00\x00\x00\x01" + bytes(5)
    + b"\x08\x00\x05\x02\x00\x01\x03\t\x08\x07\x00\x00\x03\x00\x03\x00\x01\x02\x03\x00\xc6"
    + bytes(200) + b"\x1b\xc5\x92\xb7"
)  # fmt: skip

# Filters that every build of the library has.
USUAL_FILTERS = frozenset(("deflate", "shuffle", "fletcher32", "szip", "nbit", "scaleoffset"))
# Programs that read a dataset. FILE, NAME and PATH are filled in for each language, in C also TYPE,
# NATIVE and COUNT.
PROGRAMS = {
    "Python": """\
import h5py
with h5py.File(FILE, "r") as file:
    x = file[NAME][()]""",
    "Julia": """\
using HDF5
x = h5read(FILE, NAME)""",
    "MATLAB": "x = h5read(FILE, PATH);",
    "R": """\
library(rhdf5)
x <- h5read(FILE, NAME)""",
    "C": """\
#include <hdf5.h>  /* cc read.c -lhdf5, or h5cc read.c */
#include <stdint.h>
#include <stdlib.h>

int main(void) {
    hid_t file = H5Fopen(FILE, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t data = H5Dopen2(file, NAME, H5P_DEFAULT);
    size_t n = COUNT;
    TYPE *x = malloc(n * sizeof *x);
    if (!x || H5Dread(data, NATIVE, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) < 0)
        return 1;
    return 0;
}""",
}
C_TYPES = {
    **{("int", n): (f"int{8 * n}_t", f"H5T_NATIVE_INT{8 * n}") for n in (1, 2, 4, 8)},
    **{("uint", n): (f"uint{8 * n}_t", f"H5T_NATIVE_UINT{8 * n}") for n in (1, 2, 4, 8)},
    ("float", 4): ("float", "H5T_NATIVE_FLOAT"),
    ("float", 8): ("double", "H5T_NATIVE_DOUBLE"),
}
