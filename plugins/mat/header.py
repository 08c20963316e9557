"""The header of a MAT file, and the tags and flags of level 5: bytes and back, from one layout.

MathWorks "MAT-File Format", version 5::

    header  text (116 bytes), offset of the data of classes (uint64), version (uint16), ``MI`` as
            uint16, which comes out as ``IM`` where the byte order is little-endian
    tag     uint32 type, uint32 bytes, then the data, padded to 8 bytes; or, for up to 4 bytes,
            uint16 bytes, uint16 type (as one uint32: bytes << 16 | type) and 4 bytes of data
    flags   uint32 class | complex, global and logical, uint32 elements of a sparse matrix

The header of v7.3 is the same. What is written is little-endian.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from struct import Struct, pack, unpack

from raconvert.arrays.dtypes import Element, element

from .tables import (
    CLASSES,
    COMPLEX,
    COMPLEX_ELEMENTS,
    ELEMENTS,
    GLOBAL,
    LOGICAL,
    MI_INT32,
    MI_UINT32,
    NUMBERS,
    WIDE_COMPLEX,
    Facts,
)

HEADER_BYTES = 128
VERSION_5, VERSION_73 = 0x0100, 0x0200

_HEADER = {order: Struct(f"{order}116sQH2s") for order in "<>"}
_WORDS = {order: Struct(f"{order}2I") for order in "<>"}
_ENDIANS = {"<": b"IM", ">": b"MI"}
SMALL_BYTES = 4  # most data that lies in its tag

Header = namedtuple("Header", "text subsystem version order")
# A tag: type, bytes of data, and the data itself if it lies in the tag, else None.
Tag = namedtuple("Tag", "code nbytes small")
# `cls` is None for an unknown number of a class.
Flags = namedtuple("Flags", "number cls is_complex is_global is_logical nzmax")


def header_bytes(text: bytes, version: int) -> bytes:
    """The 128 bytes at the beginning of a file: without a time, without data of classes."""
    return _HEADER["<"].pack(text.ljust(116), 0, version, _ENDIANS["<"])


def parse_header(raw: bytes) -> Header:
    """The header in the first 128 bytes of a file."""
    order = "<" if raw.endswith(_ENDIANS["<"]) else ">"
    text, subsystem, version, _ = _HEADER[order].unpack(raw)
    return Header(text.rstrip(b"\0 ").decode("latin-1"), subsystem, version, order)


def tag_bytes(code: int, nbytes: int) -> bytes:
    """The tag of data that lies behind it."""
    return _WORDS["<"].pack(code, nbytes)


def parse_words(raw: bytes, order: str) -> tuple[int, int]:
    """The two words of the tag of a variable, whose data always lies behind it."""
    code, nbytes = _WORDS[order].unpack(raw)
    return code, nbytes


def parse_tag(raw: bytes, order: str) -> Tag:
    """The tag in 8 bytes; data in it has 4 bytes at most, even if `nbytes` is more."""
    word, nbytes = _WORDS[order].unpack(raw)
    if word >> 16:
        return Tag(word & 0xFFFF, word >> 16, raw[4 : 4 + (word >> 16)])
    return Tag(word, nbytes, None)


def element_bytes(code: int, data: bytes) -> bytes:
    """The bytes of an element: up to 4 bytes of data in the tag, more behind it, padded."""
    if 0 < len(data) <= SMALL_BYTES:
        return tag_bytes(len(data) << 16 | code, int.from_bytes(data, "little"))
    return tag_bytes(code, len(data)) + data + bytes(-len(data) % 8)


def flags_bytes(flags: Flags) -> bytes:
    """The bytes of the element with the array flags."""
    word = flags.number | COMPLEX * flags.is_complex | GLOBAL * flags.is_global
    word |= LOGICAL * flags.is_logical
    return element_bytes(MI_UINT32, _WORDS["<"].pack(word, flags.nzmax))


def parse_flags(data: bytes, order: str) -> Flags:
    """The array flags in the 8 bytes of their element."""
    word, nzmax = _WORDS[order].unpack(data)
    number = word & 0xFF
    return Flags(
        number, CLASSES.get(number), word & COMPLEX != 0, word & GLOBAL != 0, word & LOGICAL != 0,
        nzmax,
    )  # fmt: skip


def class_number(cls: str) -> int:
    """The number of a class; logical has that of uint8."""
    return NUMBERS["uint8" if cls == "logical" else cls]


def dims_bytes(dims: tuple[int, ...]) -> bytes:
    """The bytes of the element with the dims."""
    return element_bytes(MI_INT32, pack(f"<{len(dims)}i", *dims))


def parse_dims(data: bytes, order: str) -> tuple[int, ...]:
    """The dims in the bytes of their element, two at least."""
    dims = unpack(f"{order}{len(data) // 4}i", data)
    return dims if len(dims) > 1 else (*dims, 1)


def element_of_class(facts: Facts, order: str = "<") -> Element | None:
    """The element type of a numeric class; None if the core has none for it."""
    return _element("logical" if facts.logical else facts.cls, facts.complex, order)


@cache
def _element(cls: str, is_complex: bool, order: str) -> Element | None:
    if not is_complex:
        row = ELEMENTS.get(cls)
        return row and element(row.kind, row.nbytes, order)
    if cls in WIDE_COMPLEX:
        return COMPLEX_ELEMENTS["double"]
    numbers = COMPLEX_ELEMENTS.get(cls)
    return numbers and element(numbers.kind, numbers.nbytes, order)
