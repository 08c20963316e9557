"""Types, words and limits of Zarr: the rows by which metadata of both versions is understood."""

from __future__ import annotations

from raconvert.arrays.dtypes import FLOAT8, float8
from raconvert.declared import Record
from raconvert.plugin import Element, element

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OWN = "zarr"  # the namespace
V3_FILE = "zarr.json"
V2_ARRAY, V2_GROUP, V2_ATTRIBUTES, V2_ALL = ".zarray", ".zgroup", ".zattrs", ".zmetadata"
MARKS = (V3_FILE, V2_GROUP, V2_ARRAY)  # files that mark a folder as a node
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

# Registered extensions whose elements have a width, as zarr-python writes them.
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

SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


class CodecRow(Record):
    """Facts of a codec; `codecs.py` has the functions, under the same name.

    `levels` are the least, the most and the default one of a codec that is written; its settings
    are functions of the options and, in version 3, of the bytes of an element.
    """

    name: str
    versions: str = "23"
    levels: tuple[int, int, int] | None = None
    settings_3: Any = None
    settings_2: Any = None


# One row for each codec that is read; those with `levels` are written, too.
CODECS = (
    *map(CodecRow, ("crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3")),
    *map(CodecRow, ("shuffle", "delta", "fixedscaleoffset", "quantize", "bitround", "packbits")),
    *map(CodecRow, ("astype", "vlen-utf8", "vlen-bytes", "zlib", "bz2", "lzma", "lz4")),
    CodecRow("bytes", "3"), CodecRow("transpose", "3"), CodecRow("sharding_indexed", "3"),
    CodecRow(
        "zstd", levels=(0, 22, 0),
        settings_3=lambda options, _: {"level": options.level, "checksum": False},
        settings_2=lambda options: {"level": options.level},
    ),
    CodecRow(
        "gzip", levels=(0, 9, 6),
        settings_3=lambda options, _: {"level": options.level},
        settings_2=lambda options: {"level": options.level},
    ),
    CodecRow(
        "blosc", levels=(0, 9, 5),
        settings_3=lambda options, width: {
            "typesize": width, "cname": options.inner, "clevel": options.level,
            "shuffle": "shuffle", "blocksize": 0,
        },
        settings_2=lambda options: {
            "cname": options.inner, "clevel": options.level, "shuffle": SHUFFLES["shuffle"],
            "blocksize": 0,
        },
    ),
)  # fmt: skip
KNOWN_2 = frozenset(row.name for row in CODECS if "2" in row.versions)
KNOWN_3 = frozenset(row.name for row in CODECS)
NAMED_BY_NUMCODECS = KNOWN_2  # in version 3 also with "numcodecs." before the name
WRITTEN = {row.name: row for row in CODECS if row.levels is not None}
# Codecs that make objects of bytes.
UNSAFE = frozenset(("pickle", "json2", "msgpack2", "categorize", "vlen-array"))

# Stores of one file each: arrays without chunks.
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

# Programs that read an array of a group: FILE and NAME are filled in for each language, AXES in
# Julia.
PROGRAMS = {
    "Python": """\
import zarr
x = zarr.open(FILE, mode="r")[NAME][...]""",
    "Julia": """\
using Zarr
x = zopen(FILE)[NAME][AXES]""",
}
