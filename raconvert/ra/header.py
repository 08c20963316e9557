"""The RA header: one layout table used by reader and writer, and every check on it.

Layout (RawArray README, "File Structure"; every integer a little-endian u64, whatever the data):

======  =======  ==================================================================
offset  field    meaning
======  =======  ==================================================================
0       magic    the eight ASCII bytes ``rawarray``
8       flags    bit 0 data is big-endian; bit 1 data is encoded; bit 2 one bit per element
16      eltype   0 user, 1 int, 2 uint, 3 IEEE float, 4 complex, 5 bool (width 1) or
                 bfloat16 (width 2)
24      elbyte   bytes per element; for complex, of the pair
32      size     bytes of the data segment (dialects differ, see `Dialect`)
40      ndims    number of dimensions; 0 is legal: one element
48      dims     ndims numbers, fastest-varying dimension first
48+8·n  data     `size` bytes
after   trailer  anything; readers ignore it
======  =======  ==================================================================

Three dialects hide behind flag bit 1; they are told apart by size and type (`dialect`).
"""

from __future__ import annotations

import struct
from math import prod

from raconvert.arrays.dtypes import ELTYPES, KINDS, Element, element, little
from raconvert.arrays.metadata import RA
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from raconvert.arrays.array import Array

MAGIC = b"rawarray"
FIXED = struct.Struct("<8s5Q")  # magic, flags, eltype, elbyte, size, ndims: 48 bytes
BIG_ENDIAN, ENCODED, BITS = 1, 2, 4  # flags
KNOWN_FLAGS = BIG_ENDIAN | ENCODED | BITS
LARGEST = 2**63 - 1  # bytes or elements that any file system or numpy can address


class Header(Record):
    """The fixed fields and the dims of an RA header; `dims` lists the fastest axis first.

    `size` is that of the data in bytes, `elbyte` of an element; `eltype` is its code.

    >>> from raconvert.ra import Header
    >>> Header(flags=0, eltype=1, elbyte=4, size=48, dims=(4, 3)).dims
    (4, 3)
    """

    flags: int
    eltype: int
    elbyte: int
    size: int
    dims: tuple[int, ...]


SHOWN_DIMS = 32  # in messages

LZ4_RATIO = 255  # a byte of an LZ4 block adds at most 255 bytes to the output (LZ4 block format)

RAW, LZ4, LEB128, BITARRAY = "none", "lz4", "leb128", "bits"  # encodings, as users name them
AUTO = "auto"  # the encoding is found from header and data

_WIDTHS = {0: None, 1: (1, 2, 4, 8), 2: (1, 2, 4, 8), 3: (2, 4, 8), 4: (8, 16), 5: (1, 2)}
# Widths that exist in files and not in numpy: carried as bytes, the type kept in metadata.
_CARRIED = {(1, 16): 16, (2, 16): 16, (3, 16): 16, (4, 32): 16}  # -> width of one number
_LEB128_TYPES = {(1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 2), (2, 4), (2, 8), (5, 1)}
COMPLEX32 = (4, 4)  # carried as pairs of float16 on a new fastest axis


def data_offset(ndims: int) -> int:
    """Return the byte offset of the data behind a header of `ndims` dimensions."""
    return FIXED.size + 8 * ndims


def pack(header: Header) -> bytes:
    """Return the header's bytes."""
    flags, eltype, elbyte, size, dims = header
    fixed = FIXED.pack(MAGIC, flags, eltype, elbyte, size, len(dims))
    return fixed + struct.pack(f"<{len(dims)}Q", *dims)


def header_of(element: Element, dims: tuple[int, ...]) -> Header:
    """Return the header without flags of an array of this element type and dimensions."""
    return Header(0, ELTYPES[element.kind], element.nbytes, prod(dims) * element.nbytes, dims)


def unpack(head: bytes, file_size: int, path: str, *, unknown_flags: bool = False) -> Header:
    """Return the checked header at the start of `head` (the file's first bytes).

    `head` must hold the whole header or `file_size` bytes; a header beyond it raises `NeedMore`.
    Checks, each with its own error: magic, length, unknown flags (unless `unknown_flags`), `ndims`
    against the file's length before anything is allocated, element type and width, and the
    product of the dimensions in exact integers.
    """
    if head[:8] != MAGIC:
        raise Corrupt(
            "is not an RA file: wrong magic",
            path=path,
            where="byte 0",
            expected=f"{MAGIC!r}",
            got=f"{head[:8]!r}",
        )
    if file_size < FIXED.size:
        raise Corrupt(
            "file ends inside the RA header",
            path=path,
            where=f"byte {file_size}",
            expected=f"at least {FIXED.size} bytes",
            got=file_size,
        )
    _, flags, eltype, elbyte, size, ndims = FIXED.unpack_from(head)
    if flags & ~KNOWN_FLAGS and not unknown_flags:
        bits = ", ".join(str(bit) for bit in range(3, 64) if flags >> bit & 1)
        raise Unsupported(
            f"RA header has unknown flag bits: {bits}",
            path=path,
            where="byte 8",
            expected="bits 0 to 2",
            got=f"flags {flags:#x}",
            remedy="to read it as if they were clear: `--in-opt unknown_flags=yes`",
        )
    if data_offset(ndims) > file_size:
        raise Corrupt(
            "RA header promises more dimensions than the file can hold",
            path=path,
            where="byte 40 (ndims)",
            expected=f"at most {(file_size - FIXED.size) // 8}",
            got=ndims,
        )
    if data_offset(ndims) > len(head):
        raise NeedMore(data_offset(ndims))
    dims = struct.unpack_from(f"<{ndims}Q", head, FIXED.size)
    header = Header(flags, eltype, elbyte, size, dims)
    _check_type(header, path)
    _check_dims(header, path)
    return header


class NeedMore(Exception):
    """The header is longer than the bytes given; `args[0]` is how many are needed."""


def _check_type(header: Header, path: str) -> None:
    """Raise `Unsupported` or `Corrupt` for an element type, or a width, that no program writes."""
    flags, eltype, elbyte, _, _ = header
    if eltype not in _WIDTHS:
        raise Unsupported(
            "RA header has an unknown element type",
            path=path,
            where="byte 16 (eltype)",
            expected="0 to 5",
            got=eltype,
        )
    if elbyte == 0:
        raise Corrupt(
            "RA header has elements of zero bytes",
            path=path,
            where="byte 24 (elbyte)",
            expected="at least 1",
            got=0,
        )
    if flags & BITS:
        if flags & BIG_ENDIAN:
            raise Unsupported(
                "RA header has a big-endian BitArray, which no known program writes",
                path=path,
                where="byte 8 (flags)",
                expected=f"flags {ENCODED | BITS}",
                got=f"flags {flags}",
            )
        if (eltype, elbyte) != (5, 8):
            raise Corrupt(
                "RA header says one bit per element, but not in the form of a BitArray",
                path=path,
                where="byte 16 (eltype, elbyte)",
                expected="(5, 8)",
                got=f"({eltype}, {elbyte})",
            )
        return
    widths = _WIDTHS[eltype]
    if widths is None:
        if elbyte > LARGEST:
            raise Corrupt("RA element is too wide", path=path, where="byte 24", got=elbyte)
        return
    if elbyte not in widths and (eltype, elbyte) not in _CARRIED and (eltype, elbyte) != COMPLEX32:
        raise Unsupported(
            f"RA element type {KINDS[eltype]} of {elbyte} bytes has no numpy counterpart",
            path=path,
            where="byte 24 (elbyte)",
            expected=f"a width of {', '.join(map(str, widths))}",
            got=elbyte,
        )


def _check_dims(header: Header, path: str) -> None:
    """Raise `Corrupt` for dims that no array in memory can have."""
    for axis, length in enumerate(header.dims):
        if length > LARGEST:
            raise Corrupt(
                "RA dimension is too large",
                path=path,
                where=f"byte {FIXED.size + 8 * axis} (dims[{axis}])",
                expected=f"at most {LARGEST}",
                got=length,
            )
    # Zero-length dimensions are legal; the others must still be a shape that numpy can hold.
    nbytes = header.elbyte
    for axis, length in enumerate(header.dims):
        nbytes *= length or 1
        if nbytes > LARGEST:  # here, since the whole product may have a million digits
            shown = " x ".join(map(str, header.dims[: min(axis + 1, SHOWN_DIMS)]))
            raise Corrupt(
                "product of the RA dimensions overflows 64 bits",
                path=path,
                where=f"byte {FIXED.size} (dims)",
                expected=f"at most {LARGEST} bytes",
                got=f"{nbytes} bytes after {axis + 1} of {len(header.dims)} dims: {shown}"
                f"{' x ...' if len(header.dims) > min(axis + 1, SHOWN_DIMS) else ''}",
            )


def encodings_of(header: Header, file_size: int, path: str) -> tuple[str, ...]:
    """Return the encodings that the data segment can be in, after checking its length.

    C (`ra compress`): flag 2, one LZ4 block, `size` is the compressed length. Julia on integers
    and bools: flag 2, LEB128 varints to the end of the file, `size` is the uncompressed length.
    Julia on floats: flag 2 and raw data (a quirk). Julia BitArray: flags 6, `size` is 8 bytes per
    64 elements. An LZ4 block that is as long as the decoded data can also be one of Julia's
    (`raconvert.ra.dialect`).
    """
    flags, eltype, _, size, dims = header
    count = prod(dims)
    decoded = count * header.elbyte
    present = file_size - data_offset(len(dims))
    if flags & BITS:
        _check_size(size, -(-count // 64) * 8, "8 bytes per 64 elements", path)
        _check_present(size, present, path)
        return (BITARRAY,)
    if flags & ENCODED and size != decoded:
        _check_present(size, present, path)
        _check_expansion(decoded, size * LZ4_RATIO, "the LZ4 block", path)
        return (LZ4,)
    lz4 = (LZ4,) if flags & ENCODED and present >= size else ()
    if flags & ENCODED and (eltype, header.elbyte) in _LEB128_TYPES:
        _check_expansion(count, present, "the LEB128 data", path)
        return (*lz4, LEB128)
    if flags & ENCODED and eltype not in (3, 4):
        if lz4:
            return lz4
        raise unknown_dialect(header, path)
    _check_size(size, decoded, f"elbyte {header.elbyte} times {count} elements", path)
    _check_present(size, present, path)
    return (*lz4, RAW)


def unknown_dialect(header: Header, path: str) -> Unsupported:
    """Return the error for encoded data that no known program writes."""
    return Unsupported(
        "RA data is flagged as encoded, but no known dialect encodes this type this way",
        path=path,
        where="byte 8 (flags)",
        got=f"flags {header.flags}, size {header.size} = elbyte times the dimensions",
    )


def _check_size(size: int, wanted: int, why: str, path: str) -> None:
    """Raise `Corrupt` if the `size` of a header is not the one that its dims give."""
    if size != wanted:
        raise Corrupt(
            "RA data size contradicts the dimensions",
            path=path,
            where="byte 32 (size)",
            expected=f"{wanted} ({why})",
            got=size,
        )


def _check_expansion(wanted: int, most: int, what: str, path: str) -> None:
    """Raise `Corrupt` for encoded data (`what`) that cannot become as much as the header says."""
    if wanted > most:
        raise Corrupt(
            f"{what} is too short for the dimensions",
            path=path,
            where="byte 48 (dims)",
            expected=f"at most {most}",
            got=f"{wanted} {'bytes' if 'LZ4' in what else 'elements'} promised",
        )


def _check_present(size: int, present: int, path: str) -> None:
    """Raise `Corrupt` if the file has fewer bytes of data than the header says."""
    if present < size:
        raise Corrupt(
            f"RA data is cut off: {size - present} bytes are missing",
            path=path,
            expected=f"{size} bytes of data",
            got=present,
        )


def carrier(header: Header) -> tuple[Element, tuple[int, ...], int]:
    """Return (element, dims, swap) of the array that the data is read as.

    128-bit integers and floats and 256-bit complex become void bytes of their width, little-endian
    after a swap of `swap` bytes; complex32 becomes float16 with a new fastest axis of 2.
    """
    flags, eltype, elbyte, _, dims = header
    order = ">" if flags & BIG_ENDIAN else "<"
    if (eltype, elbyte) in _CARRIED:
        swap = _CARRIED[eltype, elbyte] if order == ">" else 1
        return Element("user", elbyte, "|", f"|V{elbyte}"), dims, swap
    if (eltype, elbyte) == COMPLEX32:
        return element("float", 2, order), (2, *dims), 2 if order == ">" else 1
    if flags & BITS:
        return element("bool", 1), dims, 1
    if (eltype, elbyte) == (5, 2):
        return element("bfloat", 2, order), dims, 2 if order == ">" else 1
    from raconvert.arrays.dtypes import needs_swap

    kind = element(KINDS[eltype], elbyte, order)
    return kind, dims, needs_swap(kind)


def is_carried(header: Header) -> bool:
    """True if `carrier` gives another type than the header's, which metadata must keep then."""
    code = (header.eltype, header.elbyte)
    return code in _CARRIED or code == COMPLEX32


def uncarried(header: Header, own: Mapping[str, Any]) -> Header:
    """Undo `carrier`: return a header with the type that the metadata of an RA source has.

    `own` is the RA namespace of the metadata; it counts only if it still describes the data (same
    width, or pairs of float16 for complex32).
    """
    code = (own.get("eltype"), own.get("elbyte"))
    if not all(isinstance(number, int) for number in code):  # a sidecar may say anything
        return header
    if code == COMPLEX32 and (header.eltype, header.elbyte) == (3, 2) and header.dims[:1] == (2,):
        return header._replace(eltype=4, elbyte=4, dims=header.dims[1:])
    if code in _CARRIED and (header.eltype, header.elbyte) == (0, code[1]):
        return header._replace(eltype=code[0])
    return header


def canonical_header(array: Array) -> bytes:
    """Return the header of the canonical .ra file that the array would become, as bytes."""
    return pack(canonical(array))


def canonical(array: Array) -> Header:
    """Return the header of the canonical .ra file that the array would become."""
    own: Mapping[str, Any] = {}
    if array.described and RA in array.meta.formats:
        from raconvert.arrays.metadata import own_of

        own = own_of(array.meta)
    return uncarried(header_of(little(array.element), array.dims), own)
