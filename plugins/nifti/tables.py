"""Types, units and fields of both versions of NIfTI."""

from __future__ import annotations

import struct
import zlib
from math import isfinite

from raconvert.declared import Record
from raconvert.plugin import Element, element

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAGIC_1, MAGIC_2 = b"n+1\0", b"n+2\0\r\n\x1a\n"
PAIR_1, PAIR_2 = b"ni1\0", b"ni2\0\r\n\x1a\n"  # the data is in a file of its own
OLD_LITTLE, OLD_BIG = b"\x5c\x01\0\0", b"\0\0\x01\x5c"  # 348, as ANALYZE begins, too
GZIP_MAGIC = b"\x1f\x8b\x08"
GZIP_WBITS = 31
HEADER, DATA, GZ = ".hdr", ".img", ".gz"
MAX_RANK = 7
MAX_LENGTH_1 = (1 << 15) - 1
MOST_HEADER_BYTES = 544

RGB = Element("user", 3, "|", (("R", "|u1"), ("G", "|u1"), ("B", "|u1")))
RGBA = Element("user", 4, "|", (("R", "|u1"), ("G", "|u1"), ("B", "|u1"), ("A", "|u1")))
ELEMENTS = {
    2: element("uint", 1),
    4: element("int", 2),
    8: element("int", 4),
    16: element("float", 4),
    32: element("complex", 8),
    64: element("float", 8),
    128: RGB,
    256: element("int", 1),
    512: element("uint", 2),
    768: element("uint", 4),
    1024: element("int", 8),
    1280: element("uint", 8),
    1792: element("complex", 16),
    2304: RGBA,
}
CODES = {(e.kind, e.nbytes): code for code, e in ELEMENTS.items() if e.kind != "user"}
UNREAD = {1: "single bits", 1536: "long doubles", 2048: "complex long doubles"}

SPACE_UNITS = {1: "m", 2: "mm", 3: "um"}
TIME_UNITS = {8: "s", 16: "ms", 24: "us", 32: "Hz", 40: "ppm", 48: "rad/s"}
SPACE_CODES = {unit: code for code, unit in SPACE_UNITS.items()}
TIME_CODES = {unit: code for code, unit in TIME_UNITS.items()}
# The codes of sform and qform, and the frames that they name (`raconvert.arrays.space.FRAMES`).
FRAME_OF_CODE = {
    1: "scanner-RAS", 2: "aligned-RAS", 3: "talairach-RAS", 4: "MNI-RAS", 5: "template-RAS",
}  # fmt: skip
CODE_OF_FRAME = {frame: code for code, frame in FRAME_OF_CODE.items()} | {"RAS": 2}


class Layout(Record):
    """A version: its fields (name, struct code, how many) in order, and its sizes in bytes."""

    version: int
    fields: tuple[tuple[str, str, int], ...]
    nbytes: int
    least_offset: int
    magic: bytes
    pair: bytes  # the magic of a header whose data is beside it
    real: str  # the struct code of its numbers


_1 = (
    ("sizeof_hdr", "i", 1), ("data_type", "10s", 1), ("db_name", "18s", 1), ("extents", "i", 1),
    ("session_error", "h", 1), ("regular", "1s", 1), ("dim_info", "B", 1), ("dim", "h", 8),
    ("intent_p", "f", 3), ("intent_code", "h", 1), ("datatype", "h", 1), ("bitpix", "h", 1),
    ("slice_start", "h", 1), ("pixdim", "f", 8), ("vox_offset", "f", 1), ("scl_slope", "f", 1),
    ("scl_inter", "f", 1), ("slice_end", "h", 1), ("slice_code", "B", 1), ("xyzt_units", "B", 1),
    ("cal_max", "f", 1), ("cal_min", "f", 1), ("slice_duration", "f", 1), ("toffset", "f", 1),
    ("glmax", "i", 1), ("glmin", "i", 1), ("descrip", "80s", 1), ("aux_file", "24s", 1),
    ("qform_code", "h", 1), ("sform_code", "h", 1), ("quatern", "f", 3), ("qoffset", "f", 3),
    ("srow", "f", 12), ("intent_name", "16s", 1), ("magic", "4s", 1),
)  # fmt: skip
_2 = (
    ("sizeof_hdr", "i", 1), ("magic", "8s", 1), ("datatype", "h", 1), ("bitpix", "h", 1),
    ("dim", "q", 8), ("intent_p", "d", 3), ("pixdim", "d", 8), ("vox_offset", "q", 1),
    ("scl_slope", "d", 1), ("scl_inter", "d", 1), ("cal_max", "d", 1), ("cal_min", "d", 1),
    ("slice_duration", "d", 1), ("toffset", "d", 1), ("slice_start", "q", 1),
    ("slice_end", "q", 1), ("descrip", "80s", 1), ("aux_file", "24s", 1), ("qform_code", "i", 1),
    ("sform_code", "i", 1), ("quatern", "d", 3), ("qoffset", "d", 3), ("srow", "d", 12),
    ("slice_code", "i", 1), ("xyzt_units", "i", 1), ("intent_code", "i", 1),
    ("intent_name", "16s", 1), ("dim_info", "B", 1), ("unused", "15s", 1),
)  # fmt: skip
LAYOUTS = {
    1: Layout(1, _1, 348, 352, MAGIC_1, PAIR_1, "f"),
    2: Layout(2, _2, 540, 544, MAGIC_2, PAIR_2, "d"),
}


class Bits(float):
    """A number that is not finite, with its bytes, big-endian: there are many kinds of NaN."""

    raw: bytes = b""


def unpacked(order: str, code: str, count: int, data: bytes) -> list[Any]:
    """Return the values of one field; numbers that are not finite are `Bits`."""
    form = f"{order}{count}{code}" if count > 1 else f"{order}{code}"
    values = [*struct.unpack(form, data)]
    if code in "fd":
        size = len(data) // count
        for index, value in enumerate(values):
            if not isfinite(value):
                raw = data[index * size : (index + 1) * size]
                values[index] = bits(raw if order == ">" else raw[::-1])
    return values


def bits(raw: bytes) -> Bits:
    """Return the float of 4 or 8 big-endian bytes, with the bytes. Raises `struct.error`."""
    number = Bits(struct.unpack(">f" if len(raw) == 4 else ">d", raw)[0])
    number.raw = raw
    return number


def packed(code: str, values: list[Any]) -> bytes:
    """Return the bytes of one field, little-endian. Raises `struct.error`."""
    return b"".join(
        value.raw[::-1] if isinstance(value, Bits) else struct.pack(f"<{code}", value)
        for value in values
    )


def packed_field(code: str, count: int, value: Any) -> bytes:
    """Return the bytes of one field, little-endian; 0 for None. Raises `struct.error`."""
    if value is None:
        empty: Any = b"" if code[-1] == "s" else 0
        return packed(code, [empty] * count)
    return packed(code, value if count > 1 else [value])


def struct_of(layout: Layout, order: str) -> struct.Struct:
    """Return the struct of a header in a byte order, ``<`` or ``>``."""
    codes = (code if count == 1 else f"{count}{code}" for _, code, count in layout.fields)
    return struct.Struct(order + "".join(codes))


_ELEMENTS = (1, 2, 3, -4, 500, 6)


def _sample(version: int, order: str, *, pair: bool = False) -> bytes:
    """Return a file of 2 x 3 int16; only its header, if the data is beside it."""
    layout = LAYOUTS[version]
    known = {
        "sizeof_hdr": layout.nbytes, "datatype": 4, "bitpix": 16,
        "magic": layout.pair if pair else layout.magic,
        "vox_offset": 0 if pair else layout.least_offset,
    }  # fmt: skip
    values: list[object] = []
    for name, code, count in layout.fields:
        if name == "dim":
            values += [2, 2, 3, 1, 1, 1, 1, 1]
        elif count > 1:
            values += [1 if name == "pixdim" else 0] * count
        else:
            values.append(known.get(name, b"\0" if code[-1] in "sc" else 0))
    head = struct_of(layout, order).pack(*values)
    return head + bytes(4) + (b"" if pair else struct.pack(f"{order}6h", *_ELEMENTS))


SAMPLES = {
    "small.nii": _sample(1, "<"),
    "big.nii": _sample(1, ">"),
    "one.hdr": _sample(1, "<", pair=True),
    "one.img": struct.pack("<6h", *_ELEMENTS),
    "two.hdr": _sample(2, "<", pair=True),
    "two.img": struct.pack("<6h", *_ELEMENTS),
    "packed.nii.gz": zlib.compress(_sample(2, ">"), wbits=GZIP_WBITS),
}

# How others read a file: FILE is filled in for each language.
PROGRAMS = {
    "Python": """\
import nibabel
x = nibabel.load(FILE).dataobj.get_unscaled()""",
    "Julia": """\
using NIfTI
x = niread(FILE).raw""",
    "MATLAB": "x = niftiread(FILE);",
}
