"""The header of an IDX file: bytes to element type and dims, and back."""

from __future__ import annotations

import struct
from math import prod

from raconvert.arrays.dtypes import MAX_SPAN, spanned
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported
from raconvert.files.compressed import length_mod_32, start_of
from raconvert.files.inflate import MAX_RATIO
from raconvert.plugin import Array, Element, Source, element

ELEMENTS = {
    0x08: element("uint", 1),
    0x09: element("int", 1),
    0x0B: element("int", 2, ">"),
    0x0C: element("int", 4, ">"),
    0x0D: element("float", 4, ">"),
    0x0E: element("float", 8, ">"),
}
CODES = {(e.kind, e.nbytes): code for code, e in ELEMENTS.items()}
MAGICS = tuple(bytes((0, 0, code)) for code in ELEMENTS)
GZIP_MAGIC = b"\x1f\x8b\x08"
MAX_LENGTH = (1 << 32) - 1
MAX_RANK = 64  # NumPy's; the header has room for 255
MOST_HEADER_BYTES = 4 + 4 * 255


class Header(Record):
    """What is before the data; `offset` and `nbytes` say where that is, decompressed."""

    element: Element
    dims: tuple[int, ...]
    offset: int
    nbytes: int


class Start:
    """The first bytes of the file, decompressed, and how long the whole is."""

    def __init__(self, source: Source) -> None:
        self.path = source.path
        self.stored = source.size
        self.gzip = source.head.startswith(GZIP_MAGIC)
        self.head = start_of(source, MOST_HEADER_BYTES) if self.gzip else source.head
        # Of gzip only what its end says, modulo 2**32
        self.length = length_mod_32(source) if self.gzip else source.size


def parsed(start: Start) -> Header | None:
    """The header, if the first bytes are one."""
    head = start.head
    if head[:3] not in MAGICS or len(head) < 4 or not 1 <= head[3] <= MAX_RANK:
        return None
    offset = 4 + 4 * head[3]
    if len(head) < offset:
        return None
    shape = struct.unpack_from(f">{head[3]}I", head, 4)
    kind = ELEMENTS[head[2]]
    return Header(kind, shape[::-1], offset, prod(shape) * kind.nbytes)


def read_header(start: Start) -> Header:
    """Return the header, checked against the length of the file where that is known.

    Raises `Corrupt` and `Unsupported`.
    """
    head = start.head
    if head[:3] not in MAGICS:
        raise Corrupt(
            "is not an IDX file", path=start.path, where="byte 0",
            expected="0 0 and a type: 08, 09, 0b, 0c, 0d or 0e", got=head[:4].hex(" ") or "nothing",
        )  # fmt: skip
    header = parsed(start)
    if header is None:
        if len(head) < 4 or len(head) < 4 + 4 * head[3]:
            raise Corrupt("file ends inside the header", path=start.path, where=f"byte {len(head)}")
        raise Unsupported(
            "has no axes, or too many", path=start.path, where="byte 3",
            expected=f"1 to {MAX_RANK}", got=head[3],
        )  # fmt: skip
    if spanned(header.dims, header.element.nbytes) > MAX_SPAN:
        raise Corrupt("array is too large", path=start.path, expected="fewer than 2**63 bytes")
    there = start.length - header.offset
    if not start.gzip and header.nbytes > there:
        raise Corrupt(
            "data is cut off",
            path=start.path,
            where=f"byte {start.length}",
            expected=f"{header.nbytes} bytes of data from byte {header.offset}",
            got=f"{there} ({header.nbytes - there} missing)",
        )
    if start.gzip and header.nbytes > MAX_RATIO * start.stored:
        raise Corrupt(
            "compressed data cannot hold the array", path=start.path,
            expected=f"{header.nbytes} bytes", got=f"at most {MAX_RATIO * start.stored}",
        )  # fmt: skip
    return header


def header_bytes(array: Array) -> bytes:
    """Everything before the data. Raises nothing for what `plan` lets pass."""
    shape = array.dims[::-1] or (1,)
    code = CODES[array.element.kind, array.element.nbytes]
    return struct.pack(f">2xBB{len(shape)}I", code, len(shape), *shape)


# 2 x 3 of uint8, and of int16 inside gzip (gzip.compress(..., mtime=0), level 9)
SAMPLES = {
    "two_by_three.idx": b"\0\0\x08\x02\0\0\0\x02\0\0\0\x03\x01\x02\x03\x04\x05\x06",
    "two_by_two.idx.gz": bytes.fromhex(
        "1f8b08000000000002036360e0666260608060c6ffff187518580055b7a55314000000"
    ),
}
