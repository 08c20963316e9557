"""Types, words and limits of Zarr: the rows by which metadata of both versions is understood."""

from __future__ import annotations

from raconvert.arrays.dtypes import FLOAT8, float8
from raconvert.plugin import Element, element

OWN = "zarr"  # the namespace
V3_FILE = "zarr.json"
V2_ARRAY, V2_GROUP, V2_ATTRIBUTES, V2_ALL = ".zarray", ".zgroup", ".zattrs", ".zmetadata"
MARKS = (V3_FILE, V2_GROUP, V2_ARRAY)  # the files by which a folder is known
AXES_OF_V2 = "_ARRAY_DIMENSIONS"  # xarray's attribute

MAX_RANK = 64  # NumPy's

# name in version 3, kind, bytes
_ROWS = (
    ("bool", "bool", 1),
    ("int8", "int", 1), ("int16", "int", 2), ("int32", "int", 4), ("int64", "int", 8),
    ("uint8", "uint", 1), ("uint16", "uint", 2), ("uint32", "uint", 4), ("uint64", "uint", 8),
    ("float16", "float", 2), ("float32", "float", 4), ("float64", "float", 8),
    ("complex64", "complex", 8), ("complex128", "complex", 16), ("bfloat16", "bfloat", 2),
)  # fmt: skip
ELEMENTS: dict[str, Element] = {name: element(kind, nbytes) for name, kind, nbytes in _ROWS}
ELEMENTS |= {name: float8(name) for name in FLOAT8}
NAMES = {(kind, nbytes): name for name, kind, nbytes in _ROWS}

# Registered extensions whose elements have a width; what zarr-python writes.
BYTES_TYPES = {"null_terminated_bytes": "S", "raw_bytes": "V"}
TEXT_TYPE = "fixed_length_utf32"
DATE_TYPES = {"numpy.datetime64": "M", "numpy.timedelta64": "m"}
STRUCTURED = ("structured", "struct")
TEXT, TEXT_CODEC = "string", "vlen-utf8"  # texts of variable length, as we write them
# Elements of variable length, which take the width of the longest.
VARIABLE = {
    "string": "utf8", "variable_length_utf8": "utf8", "bytes": "bytes",
    "variable_length_bytes": "bytes",
}  # fmt: skip

# Codecs by name, known without importing what decodes them. `UNSAFE` ones make objects of bytes.
_OF_BOTH = frozenset((
    "crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3", "shuffle", "delta",
    "fixedscaleoffset", "quantize", "bitround", "packbits", "astype", "gzip", "zlib", "bz2", "lzma",
    "zstd", "blosc", "lz4", "vlen-utf8", "vlen-bytes",
))  # fmt: skip
KNOWN_2 = _OF_BOTH
KNOWN_3 = _OF_BOTH | {"bytes", "transpose", "sharding_indexed"}
NAMED_BY_NUMCODECS = _OF_BOTH  # in version 3 also with "numcodecs." before the name
UNSAFE = frozenset(("pickle", "json2", "msgpack2", "categorize", "vlen-array"))

# What of a v3 codec stands under another name in numcodecs.
COMPRESSORS = ("gzip", "zstd", "blosc", "zlib", "bz2", "lzma", "lz4")
SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}

# A whole store in one file each: arrays of which no chunk is there.
SAMPLE_3 = (
    b'{"zarr_format":3,"node_type":"array","shape":[2,3],"data_type":"int16",'
    b'"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,2]}},'
    b'"chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},'
    b'"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"fill_value":7,'
    b'"attributes":{"units":"m"},"dimension_names":["y",null]}'
)
SAMPLE_2 = (
    b'{"zarr_format":2,"shape":[2,3],"chunks":[2,2],"dtype":">f4","compressor":{"id":"zlib",'
    b'"level":1},"fill_value":"NaN","order":"F","filters":null}'
)

# How others read an array of a group: FILE and NAME are filled in for each language, AXES in Julia.
PROGRAMS = {
    "Python": """\
import zarr
x = zarr.open(FILE, mode="r")[NAME][...]""",
    "Julia": """\
using Zarr
x = zopen(FILE)[NAME][AXES]""",
}
