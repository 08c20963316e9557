"""RA files built byte by byte from the layout table, independently of the code under test.

Layout: the RawArray README, "File Structure". Dialects: the C tool (davidssmith/ra), RawArray.jl,
LittleEndianBase128.jl, the LZ4 block format. Nothing here imports raconvert, and every encoding is
a plain scalar loop; numpy only states the expected arrays.

`SAMPLES` are valid files of kinds that have no public sample; `HOSTILE` are files to be refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

BIG_ENDIAN, ENCODED, BITS = 1, 2, 4
USER, INT, UINT, FLOAT, COMPLEX, BOOL = range(6)
BFLOAT = BOOL  # the same code, told apart by its two bytes


def ra_file(
    eltype: int,
    elbyte: int,
    dims: Sequence[int],
    data: bytes,
    *,
    flags: int = 0,
    size: int | None = None,
    magic: bytes = b"rawarray",
    ndims: int | None = None,
    trailer: bytes = b"",
) -> bytes:
    """Return a file; `size` and `ndims` are true to `data` and `dims` unless given."""
    fields = (
        flags,  # 8
        eltype,  # 16
        elbyte,  # 24
        len(data) if size is None else size,  # 32
        len(dims) if ndims is None else ndims,  # 40
        *dims,  # 48
    )
    return magic + struct.pack(f"<{len(fields)}Q", *fields) + data + trailer


# scalar encodings


def zigzag(value: int) -> int:
    """Return the zigzag number of a signed value: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return 2 * value if value >= 0 else -2 * value - 1


def unzigzag(number: int) -> int:
    """Return the signed value of a zigzag number."""
    return number // 2 if number % 2 == 0 else -(number + 1) // 2


def leb128(values: Iterable[int]) -> bytes:
    """Return the shortest LEB128 groups of unsigned values."""
    out = bytearray()
    for value in values:
        rest = value
        while rest >= 128:
            out.append(128 + rest % 128)
            rest //= 128
        out.append(rest)
    return bytes(out)


def unleb128(data: bytes) -> list[int]:
    """Return the unsigned values of whole LEB128 groups."""
    values, value, weight = [], 0, 1
    for byte in data:
        value += byte % 128 * weight
        weight *= 128
        if byte < 128:
            values.append(value)
            value, weight = 0, 1
    return values


def bit_chunks(bits: Sequence[bool]) -> bytes:
    """Return the 64-bit chunks of a Julia BitArray; element k is bit k mod 64 of chunk k div 64."""
    chunks = [0] * ((len(bits) + 63) // 64)
    for k, bit in enumerate(bits):
        if bit:
            chunks[k // 64] += 1 << k % 64
    return struct.pack(f"<{len(chunks)}Q", *chunks)


def lz4_literals(data: bytes) -> bytes:
    """Return an LZ4 block that holds `data` as literals only."""
    token, rest = min(len(data), 15), len(data) - 15
    out = bytearray([token << 4])
    if rest >= 0:
        while rest >= 255:
            out.append(255)
            rest -= 255
        out.append(rest)
    return bytes(out) + data


# One literal 00, a match 1 byte back of 14 bytes (4 are implied), then five literals 00.
LZ4_TWENTY_ZEROS = bytes([0x1A, 0x00, 0x01, 0x00, 0x50, 0, 0, 0, 0, 0])


# valid files; a function returns (file, expected), the expected array in C order (dims reversed),
# or a description where numpy has no such type


def leb128_unsigned() -> tuple[bytes, np.ndarray | str]:
    """Julia ``rawrite(::Array{UInt32,2}, compress=true)``: groups of every length, 1 to 5."""
    values = [0, 1, 127, 128, 624485, 2**14 - 1, 2**14, 2**21, 2**28 - 1, 2**28, 2**31, 2**32 - 1]
    data = leb128(values)
    return (
        ra_file(UINT, 4, (4, 3), data, flags=ENCODED, size=48),
        np.array(values, "<u4").reshape(3, 4),
    )


def leb128_wide() -> tuple[bytes, np.ndarray | str]:
    """The same for UInt64: groups of up to ten bytes."""
    values = [2**k for k in range(64)] + [2**k - 1 for k in range(1, 65)]
    return (
        ra_file(UINT, 8, (128,), leb128(values), flags=ENCODED, size=1024),
        np.array(values, "<u8"),
    )


def leb128_signed(nbytes: int = 8) -> tuple[bytes, np.ndarray | str]:
    """The same for signed integers of `nbytes`, which are zigzag-mapped first."""
    top = 1 << 8 * nbytes - 1
    values = [0, -1, 1, -2, 63, -64, 64, -65, top - 1, -top + 1, -top, 5]
    data = leb128(map(zigzag, values))
    return (
        ra_file(INT, nbytes, (3, 4), data, flags=ENCODED, size=12 * nbytes),
        np.array(values, f"<i{nbytes}").reshape(4, 3),
    )


def leb128_bool() -> tuple[bytes, np.ndarray | str]:
    """The same for Array{Bool}, which Julia encodes as UInt8."""
    values = [True, False, False, True, True, False]
    return (
        ra_file(BOOL, 1, (2, 3), leb128(map(int, values)), flags=ENCODED, size=6),
        np.array(values).reshape(3, 2),
    )


def leb128_overlong() -> tuple[bytes, np.ndarray | str]:
    """Groups longer than needed: 80 00 is 0, ff 80 80 00 is 127, ten bytes for 5."""
    data = bytes([0x80, 0x00, 0xFF, 0x80, 0x80, 0x00, 0x85, *[0x80] * 8, 0x00])
    return ra_file(UINT, 2, (3,), data, flags=ENCODED, size=6), np.array([0, 127, 5], "<u2")


def leb128_trailer() -> tuple[bytes, np.ndarray | str]:
    """Bytes after the last group, among them an unfinished one: not data."""
    data = leb128([300, 2])
    return (
        ra_file(UINT, 8, (2,), data, flags=ENCODED, size=16, trailer=b"note\x80\xff"),
        np.array([300, 2], "<u8"),
    )


def leb128_empty() -> tuple[bytes, np.ndarray | str]:
    """No elements, so no bytes."""
    return ra_file(INT, 8, (0, 3), b"", flags=ENCODED), np.empty((3, 0), "<i8")


def bit_array() -> tuple[bytes, np.ndarray | str]:
    """Julia BitArray of 5 x 20: two chunks, 28 unused bits."""
    bits = [k % 3 == 0 or k > 90 for k in range(100)]
    return (
        ra_file(BOOL, 8, (5, 20), bit_chunks(bits), flags=ENCODED | BITS),
        np.array(bits).reshape(20, 5),
    )


def bit_array_full_chunk() -> tuple[bytes, np.ndarray | str]:
    """Julia BitArray of 64: one chunk without unused bits."""
    bits = [k in (0, 1, 62, 63) for k in range(64)]
    return ra_file(BOOL, 8, (64,), bit_chunks(bits), flags=ENCODED | BITS), np.array(bits)


def bit_array_empty() -> tuple[bytes, np.ndarray | str]:
    """Julia BitArray without elements: no chunk."""
    return ra_file(BOOL, 8, (0,), b"", flags=ENCODED | BITS), np.empty(0, np.bool_)


def bool_bytes() -> tuple[bytes, np.ndarray | str]:
    """Julia Array{Bool}: code 5 of one byte."""
    return ra_file(BOOL, 1, (4,), bytes([1, 0, 0, 1])), np.array([True, False, False, True])


def bfloat16() -> tuple[bytes, np.ndarray | str]:
    """The Rust crate's bfloat16: code 5 of two bytes, the upper half of a float32.

    The expected array is float32, which holds the values exactly.
    """
    values = (0.0, 1.0, -2.5, 3.140625, float("inf"), -0.0)
    data = b"".join(struct.pack("<f", value)[2:] for value in values)
    return ra_file(BFLOAT, 2, (3, 2), data), np.array(values, "<f4").reshape(2, 3)


def bfloat16_big_endian() -> tuple[bytes, np.ndarray | str]:
    """The same with swapped bytes."""
    values = (1.0, -2.5, 3.140625)
    data = b"".join(struct.pack(">f", value)[:2] for value in values)
    return ra_file(BFLOAT, 2, (3,), data, flags=BIG_ENDIAN), np.array(values, "<f4")


def _big_endian(
    eltype: int, elbyte: int, code: str, values: Sequence[complex]
) -> Callable[[], tuple[bytes, np.ndarray | str]]:
    def sample() -> tuple[bytes, np.ndarray | str]:
        """Data in big-endian order (flag bit 0) behind a little-endian header."""
        numbers = (
            [part for v in values for part in (v.real, v.imag)] if eltype == COMPLEX else values
        )
        data = struct.pack(f">{len(numbers)}{code}", *numbers)
        little = {INT: "<i", UINT: "<u", FLOAT: "<f", COMPLEX: "<c"}[eltype]
        expected = np.array(values, f"{little}{elbyte}").reshape(-1, 2)
        return ra_file(eltype, elbyte, (2, len(values) // 2), data, flags=BIG_ENDIAN), expected

    return sample


def trailer() -> tuple[bytes, np.ndarray | str]:
    """Plain data followed by "volatile metadata", which readers skip."""
    data = struct.pack("<3h", 1, -2, 3)
    return ra_file(INT, 2, (3,), data, trailer=b"scanner: 7T\n"), np.array([1, -2, 3], "<i2")


def user_type() -> tuple[bytes, np.ndarray | str]:
    """Code 0: structures of 12 bytes whose inside the file does not tell."""
    data = b"".join(struct.pack("<Id", k, k / 2) for k in range(4))
    return ra_file(USER, 12, (2, 2), data), np.frombuffer(data, "V12").reshape(2, 2)


def zero_dimensional() -> tuple[bytes, np.ndarray | str]:
    """No dimensions at all: one element."""
    return ra_file(FLOAT, 8, (), struct.pack("<d", -1.5)), np.array(-1.5, "<f8")


def empty() -> tuple[bytes, np.ndarray | str]:
    """A zero-length dimension: no data."""
    return ra_file(FLOAT, 4, (3, 0, 2), b""), np.empty((2, 0, 3), "<f4")


def string() -> tuple[bytes, np.ndarray | str]:
    """A string is (2, 1), its length the size (README)."""
    return ra_file(UINT, 1, (5,), b"hello"), np.frombuffer(b"hello", "u1")


def int128() -> tuple[bytes, np.ndarray | str]:
    """Julia Int128: 16 bytes, which numpy does not have."""
    values = (1, -1, 2**100)
    data = b"".join(value.to_bytes(16, "little", signed=True) for value in values)
    return ra_file(INT, 16, (3,), data), "128-bit integers 1, -1, 2**100"


def float128() -> tuple[bytes, np.ndarray | str]:
    """IEEE quadruple precision: 1.0 and -2.0."""
    data = (0x3FFF << 112).to_bytes(16, "little") + (0xC000 << 112).to_bytes(16, "little")
    return ra_file(FLOAT, 16, (2,), data), "128-bit IEEE floats 1, -2"


def complex32() -> tuple[bytes, np.ndarray | str]:
    """Pairs of float16: 1+2j and -0.5+0j."""
    data = struct.pack("<4e", 1, 2, -0.5, 0)
    return ra_file(COMPLEX, 4, (2,), data), "complex of two float16: 1+2j, -0.5+0j"


def julia_float_quirk() -> tuple[bytes, np.ndarray | str]:
    """Julia ``rawrite(::Array{Float64}, compress=true)``: flag 2 and plain data."""
    values = (0.5, -1.25, 1e300, 0.0)
    data = struct.pack("<4d", *values)
    return (
        ra_file(FLOAT, 8, (2, 2), data, flags=ENCODED),
        np.array(values, "<f8").reshape(2, 2),
    )


def julia_complex_quirk() -> tuple[bytes, np.ndarray | str]:
    """The same for Complex{Float32}."""
    data = struct.pack("<4f", 1, 2, 3, -4)
    return ra_file(COMPLEX, 8, (2,), data, flags=ENCODED), np.array([1 + 2j, 3 - 4j], "<c8")


def lz4_matches() -> tuple[bytes, np.ndarray | str]:
    """C ``ra compress``: one LZ4 block, `size` is its own length."""
    return ra_file(INT, 4, (5,), LZ4_TWENTY_ZEROS, flags=ENCODED), np.zeros(5, "<i4")


def lz4_longer_than_plain() -> tuple[bytes, np.ndarray | str]:
    """A block of literals only, which is longer than what it decodes to."""
    data = bytes(range(40))
    block = lz4_literals(data)
    return (
        ra_file(UINT, 2, (5, 4), block, flags=ENCODED, trailer=b"tail"),
        np.frombuffer(data, "<u2").reshape(4, 5),
    )


def lz4_big_endian() -> tuple[bytes, np.ndarray | str]:
    """A block of big-endian data."""
    block = lz4_literals(struct.pack(">3i", 1, -2, 70000))
    return (
        ra_file(INT, 4, (3,), block, flags=ENCODED | BIG_ENDIAN),
        np.array([1, -2, 70000], "<i4"),
    )


SAMPLES: dict[str, Callable[[], tuple[bytes, np.ndarray | str]]] = {
    "leb128_unsigned": leb128_unsigned,
    "leb128_wide": leb128_wide,
    "leb128_int8": lambda: leb128_signed(1),
    "leb128_int16": lambda: leb128_signed(2),
    "leb128_int32": lambda: leb128_signed(4),
    "leb128_int64": lambda: leb128_signed(8),
    "leb128_bool": leb128_bool,
    "leb128_overlong": leb128_overlong,
    "leb128_trailer": leb128_trailer,
    "leb128_empty": leb128_empty,
    "bit_array": bit_array,
    "bit_array_full_chunk": bit_array_full_chunk,
    "bit_array_empty": bit_array_empty,
    "bool_bytes": bool_bytes,
    "bfloat16": bfloat16,
    "bfloat16_big_endian": bfloat16_big_endian,
    "int8_big_endian": _big_endian(INT, 1, "b", (1, -2, 127, -128)),
    "int16_big_endian": _big_endian(INT, 2, "h", (1, -2, 300, -30000)),
    "uint32_big_endian": _big_endian(UINT, 4, "I", (1, 2, 70000, 2**32 - 1)),
    "int64_big_endian": _big_endian(INT, 8, "q", (1, -2, 2**40, -(2**63))),
    "float16_big_endian": _big_endian(FLOAT, 2, "e", (1, -2, 0.5, 65504)),
    "float32_big_endian": _big_endian(FLOAT, 4, "f", (1, -2, 0.5, 1e10)),
    "float64_big_endian": _big_endian(FLOAT, 8, "d", (1, -2, 0.1, 1e300)),
    "complex64_big_endian": _big_endian(COMPLEX, 8, "f", (1 + 2j, -3.5j, 4, -1 - 1j)),
    "complex128_big_endian": _big_endian(COMPLEX, 16, "d", (1 + 2j, -0.1j, 4, -1 - 1e300j)),
    "trailer": trailer,
    "user_type": user_type,
    "zero_dimensional": zero_dimensional,
    "empty": empty,
    "string": string,
    "int128": int128,
    "float128": float128,
    "complex32": complex32,
    "julia_float_quirk": julia_float_quirk,
    "julia_complex_quirk": julia_complex_quirk,
    "lz4_matches": lz4_matches,
    "lz4_longer_than_plain": lz4_longer_than_plain,
    "lz4_big_endian": lz4_big_endian,
}


class Hostile(NamedTuple):
    """A file to be refused."""

    contents: bytes
    field: str  # what is wrong: a header field, "header" (cut off) or "data"
    why: str


_PLAIN = struct.pack("<6i", *range(6))
_GOOD = ra_file(INT, 4, (3, 2), _PLAIN)
_CHUNK = bit_chunks([True] * 10)


def _encoded(data: bytes, dims: Sequence[int] = (3,), eltype: int = UINT, elbyte: int = 2) -> bytes:
    """Return a LEB128 file whose size is right, whatever `data` is."""
    return ra_file(
        eltype, elbyte, dims, data, flags=ENCODED, size=elbyte * int(np.prod(dims, dtype=object))
    )


HOSTILE: dict[str, Hostile] = {
    # magic
    "no_bytes": Hostile(b"", "magic", "an empty file"),
    "magic_cut": Hostile(b"rawarr", "magic", "6 bytes"),
    "magic_bad": Hostile(ra_file(INT, 4, (3, 2), _PLAIN, magic=b"RAWARRAY"), "magic", "upper case"),
    "magic_pairs_swapped": Hostile(
        ra_file(INT, 4, (3, 2), _PLAIN, magic=b"arawrrya"),
        "magic",
        "the byte-swapped magic that a registry of formats carries",
    ),
    "magic_reversed": Hostile(
        ra_file(INT, 4, (3, 2), _PLAIN, magic=b"yarrawar"), "magic", "a big-endian writer"
    ),
    "magic_realaudio": Hostile(
        b".ra\xfd\x00\x04" + bytes(58), "magic", "RealAudio, suffix .ra too"
    ),
    # the header's length
    "header_cut_in_fixed_part": Hostile(_GOOD[:40], "header", "40 of 48 bytes"),
    "header_cut_in_dims": Hostile(_GOOD[:60], "header", "one dimension and a half of two"),
    "ndims_2_to_60": Hostile(
        ra_file(INT, 4, (3, 2), _PLAIN, ndims=2**60), "ndims", "must cost nothing"
    ),
    "ndims_2_to_61_plus_1": Hostile(
        ra_file(INT, 4, (3, 2), _PLAIN, ndims=2**61 + 1), "ndims", "8 ndims wraps to 8 in 64 bits"
    ),
    "ndims_largest": Hostile(ra_file(INT, 4, (3, 2), _PLAIN, ndims=2**64 - 1), "ndims", "2**64-1"),
    "ndims_beyond_file": Hostile(
        ra_file(INT, 4, (3, 2), _PLAIN, ndims=6), "ndims", "needs 96 bytes of a file of 88"
    ),
    # type codes
    "eltype_77": Hostile(ra_file(77, 4, (3, 2), _PLAIN), "eltype", "unknown"),
    "eltype_largest": Hostile(ra_file(2**64 - 1, 4, (3, 2), _PLAIN), "eltype", "unknown"),
    "elbyte_0": Hostile(ra_file(INT, 0, (3, 2), b""), "elbyte", "elements of no bytes"),
    "elbyte_0_user": Hostile(ra_file(USER, 0, (3, 2), b""), "elbyte", "structures of no bytes"),
    "elbyte_3": Hostile(ra_file(INT, 3, (3, 2), bytes(18)), "elbyte", "no integer of three bytes"),
    "elbyte_largest": Hostile(
        ra_file(USER, 2**64 - 1, (1,), b"", size=2**64 - 1), "elbyte", "2**64-1"
    ),
    "elbyte_bool_4": Hostile(ra_file(BOOL, 4, (3, 2), _PLAIN), "elbyte", "no code 5 of 4 bytes"),
    # flags
    "flag_bit_3": Hostile(ra_file(INT, 4, (3, 2), _PLAIN, flags=8), "flags", "reserved"),
    "flag_bit_63": Hostile(ra_file(INT, 4, (3, 2), _PLAIN, flags=1 << 63), "flags", "reserved"),
    # dimensions
    "dims_overflow_64_bits": Hostile(
        ra_file(INT, 4, (2**32, 2**32), _PLAIN, size=0), "dims", "the product is 2**64, wraps to 0"
    ),
    "dims_times_elbyte_overflow": Hostile(
        ra_file(INT, 8, (2**61 + 3,), _PLAIN, size=24), "dims", "times 8 wraps to the 24 there are"
    ),
    "dims_many_factors": Hostile(
        ra_file(INT, 4, (2,) * 70, _PLAIN, size=0), "dims", "2**70 elements in small dimensions"
    ),
    "dims_huge_with_zero": Hostile(
        ra_file(INT, 4, (2**64 - 1, 0), b""), "dims", "no elements, but an impossible dimension"
    ),
    # size
    "size_too_small": Hostile(ra_file(INT, 4, (3, 2), _PLAIN, size=20), "size", "20, not 24"),
    "size_too_large": Hostile(
        ra_file(INT, 4, (3, 2), _PLAIN, size=28, trailer=bytes(4)), "size", "28, not 24"
    ),
    "size_0": Hostile(ra_file(INT, 4, (3, 2), _PLAIN, size=0), "size", "0, not 24"),
    "size_largest": Hostile(ra_file(INT, 4, (3, 2), _PLAIN, size=2**64 - 1), "size", "2**64-1"),
    # data
    "data_cut": Hostile(_GOOD[:-7], "data", "7 bytes are missing"),
    "data_missing": Hostile(_GOOD[:64], "data", "24 bytes are missing"),
    "data_declared_2_to_50": Hostile(
        ra_file(INT, 4, (2**48,), _PLAIN, size=2**50), "data", "2**50 - 24 bytes are missing"
    ),
    "julia_float_quirk_cut": Hostile(
        ra_file(FLOAT, 8, (3,), bytes(20), flags=ENCODED, size=24), "data", "4 bytes are missing"
    ),
    # LEB128
    "leb128_missing": Hostile(_encoded(b""), "data", "no group of three"),
    "leb128_cut_between_groups": Hostile(_encoded(leb128([1, 300])), "data", "2 groups of 3"),
    "leb128_cut_inside_group": Hostile(
        _encoded(leb128([1, 300]) + b"\x80"), "data", "the third group has no end"
    ),
    "leb128_declared_2_to_60": Hostile(
        _encoded(leb128([1, 2, 3]), dims=(2**60,), elbyte=1), "data", "3 groups of 2**60"
    ),
    "leb128_group_of_11": Hostile(
        _encoded(b"\x01" + b"\x80" * 10 + b"\x00\x01", elbyte=8), "data", "a group of 11 bytes"
    ),
    "leb128_endless_group": Hostile(
        _encoded(b"\x01" + b"\xff" * 200_000, elbyte=8), "data", "longer than any slab"
    ),
    "leb128_tenth_byte_2": Hostile(
        _encoded(b"\x01\x01" + b"\x80" * 9 + b"\x02", elbyte=8), "data", "a 65th bit"
    ),
    "leb128_over_uint16": Hostile(_encoded(leb128([1, 65535, 65536])), "data", "65536"),
    "leb128_over_int8": Hostile(
        _encoded(leb128([zigzag(-128), zigzag(127), zigzag(128)]), eltype=INT, elbyte=1),
        "data",
        "128",
    ),
    "leb128_over_bool": Hostile(
        _encoded(bytes([0, 1, 2]), eltype=BOOL, elbyte=1), "data", "neither 0 nor 1"
    ),
    # LZ4
    "lz4_too_short": Hostile(
        ra_file(INT, 4, (6,), LZ4_TWENTY_ZEROS, flags=ENCODED), "data", "20 bytes of 24"
    ),
    "lz4_too_long": Hostile(
        ra_file(INT, 4, (4,), LZ4_TWENTY_ZEROS, flags=ENCODED), "data", "20 bytes for 16"
    ),
    "lz4_cut": Hostile(
        ra_file(INT, 4, (5,), LZ4_TWENTY_ZEROS[:-1], flags=ENCODED), "data", "one byte is gone"
    ),
    "lz4_file_cut": Hostile(
        ra_file(INT, 4, (5,), LZ4_TWENTY_ZEROS[:-3], flags=ENCODED, size=10),
        "data",
        "3 bytes are missing",
    ),
    "lz4_match_before_start": Hostile(
        ra_file(INT, 4, (5,), b"\x1a\x00\x09\x00\x50" + bytes(5), flags=ENCODED),
        "data",
        "a match 9 bytes back of 1",
    ),
    "lz4_bomb": Hostile(
        ra_file(UINT, 1, (2**40,), b"\x1f\x00\x01\x00" + b"\xff" * 96, flags=ENCODED),
        "data",
        "100 bytes that declare 1 TiB",
    ),
    "lz4_bomb_small": Hostile(
        ra_file(UINT, 1, (25_501,), b"\x1f\x00\x01\x00" + b"\xff" * 96, flags=ENCODED),
        "data",
        "100 bytes that declare 255 times as much and 1 more",
    ),
    "lz4_no_bytes": Hostile(
        ra_file(INT, 4, (5,), b"", flags=ENCODED), "data", "a block of 0 bytes"
    ),
    # BitArray
    "bits_elbyte_1": Hostile(
        ra_file(BOOL, 1, (10,), _CHUNK, flags=ENCODED | BITS), "elbyte", "1, not 8"
    ),
    "bits_eltype_uint": Hostile(
        ra_file(UINT, 8, (10,), _CHUNK, flags=ENCODED | BITS), "eltype", "2, not 5"
    ),
    "bits_size": Hostile(
        ra_file(BOOL, 8, (65,), _CHUNK, flags=ENCODED | BITS), "size", "one chunk for 65 elements"
    ),
    "bits_cut": Hostile(
        ra_file(BOOL, 8, (10,), _CHUNK[:5], flags=ENCODED | BITS, size=8),
        "data",
        "3 bytes are missing",
    ),
    "bits_unused_set": Hostile(
        ra_file(BOOL, 8, (9,), _CHUNK, flags=ENCODED | BITS), "data", "bit 9 of 9 elements is set"
    ),
}
