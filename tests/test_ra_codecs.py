"""The encoded-data dialects of RA: LEB128, LZ4 blocks and BitArray chunks, one codec at a time.

Expected values come from the corpus, from the Julia package's own tests, or from the scalar
loops of `ra_bytes`, which share no code with the codecs.
"""

from __future__ import annotations

import io
import itertools
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import ra_bytes
from cases import every
from hypothesis import given
from hypothesis import strategies as st

from raconvert.errors import Corrupt, Unsupported
from raconvert.ra import bits, leb128, lz4

HERE = {"path": "x.ra", "offset": 64}


def short_reads(data: bytes, seed: int = 0, longest: int = 10_000) -> Callable[[int], bytes]:
    """Return a `read` that gives random-sized pieces, as a pipe or a socket would."""
    stream, rng = io.BytesIO(data), random.Random(seed)
    return lambda n: stream.read(min(n, rng.randint(1, longest)))


def leb128_decode(
    data: bytes,
    count: int,
    dtype: str,
    *,
    read: Callable[[int], bytes] | None = None,
    max_bytes: int = 1 << 20,
) -> tuple[np.ndarray, int]:
    """Return the decoded array and the number of bytes it took."""
    kind = {"i": "int", "u": "uint", "b": "bool"}[dtype[0]]
    nbytes = int(dtype[1:])
    decoded = leb128.decode_blocks(
        read or io.BytesIO(data).read, count, kind, nbytes, max_bytes=max_bytes, **HERE
    )
    blocks = list(decoded)
    for block in blocks:
        assert block.ndim == 1
        assert block.dtype == leb128.DTYPES[kind, nbytes]
        assert 0 < block.nbytes <= max(max_bytes, nbytes)
    return np.concatenate([np.empty(0, leb128.DTYPES[kind, nbytes]), *blocks]), decoded.consumed


def leb128_encode(*blocks: np.ndarray) -> bytes:
    return b"".join(leb128.encode_blocks(blocks))


def scalar_leb128(values: np.ndarray) -> bytes:
    numbers = values.ravel().tolist()
    return ra_bytes.leb128(map(ra_bytes.zigzag if values.dtype.kind == "i" else int, numbers))


# LEB128: known values

JULIA = [  # the tests of LittleEndianBase128.jl and RawArray.jl
    ("u4", 624485, "e58e26"),
    ("i8", -1, "01"),
    ("i8", 0, "00"),
    ("u8", 0, "00"),
    ("i8", 2147483647, "feffffff0f"),
    ("i8", -2147483647, "fdffffff0f"),
    ("i4", 2147483647, "feffffff0f"),
    ("i4", -2147483647, "fdffffff0f"),
]


@pytest.mark.parametrize(("dtype", "value", "encoded"), JULIA)
def test_leb128_julia_values(dtype: str, value: int, encoded: str) -> None:
    assert leb128_encode(np.array([value], dtype)).hex() == encoded
    decoded, consumed = leb128_decode(bytes.fromhex(encoded), 1, dtype)
    assert (decoded.tolist(), consumed) == ([value], len(encoded) // 2)


@pytest.mark.parametrize(
    "name",
    ["u64_0_to_300", "u64_powers", "i64_zigzag_pm1000", "u64_lognormal_20000", "u64_empty"],
)
@pytest.mark.parametrize("reads", ["whole", "short"])
def test_leb128_corpus(corpus: Callable[..., Path], name: str, reads: str) -> None:
    data = corpus("ra", "leb128", f"{name}.leb128").read_bytes()
    expected = np.load(corpus("ra", "leb128", f"{name}.expected.npy"))
    read = short_reads(data) if reads == "short" else None
    decoded, consumed = leb128_decode(data, expected.size, expected.dtype.str[1:], read=read)
    assert decoded.dtype == expected.dtype
    assert np.array_equal(decoded, expected)
    assert consumed == len(data)
    assert leb128_encode(expected) == data


@pytest.mark.parametrize("name", [name for name in ra_bytes.SAMPLES if name.startswith("leb128")])
def test_leb128_samples(name: str) -> None:
    contents, expected = ra_bytes.SAMPLES[name]()
    data = contents[48 + 8 * expected.ndim :]
    decoded, consumed = leb128_decode(data, expected.size, expected.dtype.str[1:])
    assert decoded.dtype == expected.dtype
    assert np.array_equal(decoded, expected.ravel())
    assert len(data) - consumed == (6 if name == "leb128_trailer" else 0)


# LEB128: properties

NUMBERS = [f"{kind}{nbytes}" for kind in "iu" for nbytes in (1, 2, 4, 8)]


@st.composite
def integer_arrays(draw: st.DrawFn) -> np.ndarray:
    """Integers of every width, of which many are small, as in real data."""
    info = np.iinfo(draw(st.sampled_from(NUMBERS)))
    small = st.integers(max(-70, info.min), 127)
    powers = st.sampled_from([2**k + d for k in range(info.bits) for d in (-1, 0)]).filter(
        lambda value: value <= info.max
    )
    values = st.lists(small | powers | st.integers(info.min, info.max), max_size=200)
    return np.array(draw(values), info.dtype)


@given(integer_arrays(), st.integers(1, 2000), st.integers(0, 99), st.booleans())
def test_leb128_round_trip(values: np.ndarray, max_bytes: int, seed: int, big: bool) -> None:
    data = scalar_leb128(values)
    given_order = values.astype(values.dtype.newbyteorder(">")) if big else values
    cut = seed % (values.size + 1)
    assert leb128_encode(given_order[:cut], given_order[cut:]) == data

    decoded, consumed = leb128_decode(
        data,
        values.size,
        values.dtype.str[1:],
        read=short_reads(data + b"\x80tail", seed, longest=7),
        max_bytes=max_bytes,
    )
    assert np.array_equal(decoded, values)
    assert consumed == len(data)


@every("dtype", NUMBERS)
@every("bits_used", [1, 6, 7, 8, 14, 15, 28, 29, 56, 57, 63, 64])
def test_leb128_many_slabs(dtype: str, bits_used: int) -> None:
    rng = np.random.default_rng(bits_used)
    raw = rng.integers(0, 2**64 - 1, 40_000, dtype=np.uint64, endpoint=True)
    raw >>= (64 - rng.integers(0, bits_used, raw.size, endpoint=True)).clip(0, 63).astype("u8")
    values = raw.astype(f"u{dtype[1:]}").view(dtype)
    data = scalar_leb128(values)
    assert leb128_encode(values) == data
    decoded, consumed = leb128_decode(data, values.size, dtype, read=short_reads(data))
    assert np.array_equal(decoded, values)
    assert consumed == len(data)


@pytest.mark.parametrize("lead", range(12))
def test_leb128_groups_across_slab_borders(lead: int) -> None:
    """A ten-byte group and its neighbours at every position relative to the first slab's end."""
    values = np.array([1] * (leb128.SLAB_BYTES - lead) + [2**64 - 1, 300, 2**63] * 3, "u8")
    data = scalar_leb128(values)
    decoded, consumed = leb128_decode(data, values.size, "u8")
    assert np.array_equal(decoded, values)
    assert consumed == len(data)


def test_leb128_bool() -> None:
    values = np.array([True, False, True, True])
    assert leb128_encode(values) == bytes([1, 0, 1, 1])
    decoded, _ = leb128_decode(bytes([1, 0x80, 0x00, 1, 0x81, 0x00]), 4, "b1")
    assert decoded.tolist() == values.tolist()


@pytest.mark.parametrize(
    ("group", "value"),
    [("8000", 0), ("ff8000", 127), ("85808080808080808000", 5), ("e58ea68000", 624485)],
)
def test_leb128_overlong_groups_decode_and_shrink(group: str, value: int) -> None:
    decoded, consumed = leb128_decode(bytes.fromhex(group), 1, "u8")
    assert (decoded.tolist(), consumed) == ([value], len(group) // 2)
    assert leb128_encode(decoded) == ra_bytes.leb128([value])


def test_leb128_strided_blocks() -> None:
    values = np.arange(100_000, dtype="u4")[::3]
    assert leb128_encode(values) == scalar_leb128(values)


def test_leb128_blocks_of_any_rank() -> None:
    values = np.arange(24_000, dtype="i4").reshape(20, 30, 40) - 9000
    blocks = [values[0], values[1:19], values[19, :29], values[19, 29]]
    assert leb128_encode(*blocks, np.array(7)) == scalar_leb128(values) + b"\x0e"
    assert leb128_encode(values[:, :0]) == b""


def test_leb128_writing_leaves_the_array_alone() -> None:
    values = np.array([2**63, 2**40, 200, 3], "u8")
    for view in (values, values[1:], values[2:], values.view("i8")):
        before = view.copy()
        leb128_encode(view)
        assert np.array_equal(view, before)


def test_leb128_nothing_is_read_for_no_elements() -> None:
    decoded = leb128.decode_blocks(pytest.fail, 0, "int", 8, max_bytes=1, **HERE)
    assert list(decoded) == []
    assert decoded.consumed == 0


def test_leb128_memory_does_not_grow_with_the_data() -> None:
    groups = itertools.cycle(b"\xff" * 9 + b"\x01")
    decoded = leb128.decode_blocks(
        lambda n: bytes(itertools.islice(groups, n)), 2**50, "uint", 8, max_bytes=1 << 20, **HERE
    )
    blocks = iter(decoded)
    tracemalloc.start()
    try:
        for _ in range(10):
            assert next(blocks).max() == 2**64 - 1
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


# LEB128: faults. Data, count, type; then what, element, byte (of the file: data begins at 64), got

FAULTS = {
    "nothing": (b"", 3, "u2", "ends early", 0, 64, "0 elements"),
    "between_groups": (b"\x01\xac\x02", 3, "u2", "ends early", 2, 67, "2 elements"),
    "inside_group": (
        b"\x01\xac\x02\x80",
        3,
        "u2",
        "ends early",
        2,
        68,
        "2 elements and 1 bytes of the next",
    ),
    "cut_after_slabs": (
        b"\x01" * 200_000 + b"\x80" * 4,
        200_001,
        "i8",
        "ends early",
        200_000,
        200_068,
        "200000 elements and 4 bytes of the next",
    ),
    "group_of_11": (
        b"\x01" + b"\x80" * 10 + b"\x00",
        2,
        "u8",
        "over 10 bytes",
        1,
        65,
        "80 80 80 80 80 80 80 80 80 80",
    ),
    "group_of_11_unfinished": (
        b"\x01\x01" + b"\x80" * 10,
        3,
        "u8",
        "over 10 bytes",
        2,
        66,
        "80 80 80 80 80 80 80 80 80 80",
    ),
    "group_endless": (
        b"\x80" * 300_000,
        3,
        "u1",
        "over 10 bytes",
        0,
        64,
        "80 80 80 80 80 80 80 80 80 80",
    ),
    "group_endless_across_slabs": (
        b"\x01" * 65_530 + b"\xff" * 300_000,
        65_532,
        "i2",
        "over 10 bytes",
        65_530,
        65_594,
        "ff ff ff ff ff ff ff ff ff ff",
    ),
    "tenth_byte": (b"\x01" + b"\x80" * 9 + b"\x02", 2, "u8", "more than 64 bits", 1, 65, "2"),
    "tenth_byte_127": (b"\xff" * 9 + b"\x7f", 1, "i8", "more than 64 bits", 0, 64, "127"),
    "tenth_byte_in_narrow_type": (
        b"\x80" * 9 + b"\x04",
        1,
        "u1",
        "more than 64 bits",
        0,
        64,
        "4",
    ),
    "over_uint8": (ra_bytes.leb128([255, 0, 256]), 3, "u1", "uint8", 2, 67, "256"),
    "over_uint16": (ra_bytes.leb128([65535, 65536]), 2, "u2", "uint16", 1, 67, "65536"),
    "over_uint32": (ra_bytes.leb128([2**32 - 1, 2**32]), 2, "u4", "uint32", 1, 69, str(2**32)),
    "over_int8": (ra_bytes.leb128([255, 256]), 2, "i1", "int8", 1, 66, "128"),
    "under_int8": (ra_bytes.leb128([254, 257]), 2, "i1", "int8", 1, 66, "-129"),
    "over_int16": (ra_bytes.leb128([2**16]), 1, "i2", "int16", 0, 64, "32768"),
    "over_int32": (ra_bytes.leb128([2**32 + 1]), 1, "i4", "int32", 0, 64, str(-(2**31) - 1)),
    "over_bool": (b"\x01\x00\x02", 3, "b1", "bool", 2, 66, "2"),
    "over_bool_long": (b"\x80\x00\x80\x01", 2, "b1", "bool", 1, 66, "128"),
    "first_of_several": (
        b"\x05\x80\x02" + b"\x80" * 9 + b"\x02" + b"\x80" * 11 + b"\x00",
        4,
        "u1",
        "uint8",
        1,
        65,
        "256",
    ),
    "narrow_after_slabs": (
        b"\x01" * 100_000 + b"\x80\x80\x04",
        100_001,
        "u2",
        "uint16",
        100_000,
        100_064,
        "65536",
    ),
}


@every("name", FAULTS)
@every("reads", ["whole", "short"])
def test_leb128_faults(name: str, reads: str) -> None:
    data, count, dtype, what, element, byte, got = FAULTS[name]
    read = short_reads(data) if reads == "short" else None
    with pytest.raises(Corrupt, match=what) as caught:
        leb128_decode(data, count, dtype, read=read)
    assert caught.value.path == "x.ra"
    assert caught.value.where == f"element {element} of {count}, byte {byte}"
    assert str(caught.value.got) == got
    assert caught.value.expected
    assert caught.value.remedy


def test_leb128_blocks_before_a_fault_are_handed_out() -> None:
    decoded = leb128.decode_blocks(
        io.BytesIO(b"\x01" * 70_000).read, 2**60, "uint", 1, max_bytes=1 << 20, **HERE
    )
    blocks = iter(decoded)
    assert next(blocks).size == leb128.SLAB_BYTES
    assert next(blocks).size == 70_000 - leb128.SLAB_BYTES
    assert decoded.consumed == 70_000
    with pytest.raises(Corrupt, match="ends early"):
        next(blocks)


@pytest.mark.parametrize("tail", [b"\x80" * 40, b"\x80" * 9 + b"\x7f", b"\xff\xff\x7f", b"\x80"])
def test_leb128_trailer_is_not_judged(tail: bytes) -> None:
    decoded, consumed = leb128_decode(b"\x01\x82\x01" + tail, 2, "u1")
    assert (decoded.tolist(), consumed) == ([1, 130], 3)


@given(st.binary(max_size=60), st.integers(0, 20), st.sampled_from([*NUMBERS, "b1"]))
def test_leb128_any_bytes(data: bytes, count: int, dtype: str) -> None:
    """Arbitrary bytes give what the scalar loop gives, or `Corrupt`, and nothing else."""
    try:
        decoded, consumed = leb128_decode(data, count, dtype)
    except Corrupt:
        return
    assert len(decoded) == count
    expected = ra_bytes.unleb128(data[:consumed])
    if dtype[0] == "i":
        expected = [ra_bytes.unzigzag(number) for number in expected]
    assert decoded.tolist() == expected


# LZ4


def test_lz4_corpus(corpus: Callable[..., Path]) -> None:
    """The C tool's block decodes to its plain twin, and ours to itself."""
    packed = corpus("ra", "mnist_8_z.ra").read_bytes()
    plain = corpus("ra", "mnist_8.ra").read_bytes()[72:]
    assert lz4.decode(packed[72:], len(plain), **HERE) == plain
    assert lz4.decode(lz4.encode(plain), len(plain), **HERE) == plain


@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview, np.array])
def test_lz4_known_blocks(buffer: Callable[[bytes], object]) -> None:
    data = bytes(range(256)) * 3
    for block, plain in (
        (ra_bytes.LZ4_TWENTY_ZEROS, bytes(20)),
        (ra_bytes.lz4_literals(data), data),
    ):
        given_buffer = np.frombuffer(block, np.uint8) if buffer is np.array else buffer(block)
        decoded = lz4.decode(given_buffer, len(plain), **HERE)
        assert isinstance(decoded, bytearray)
        assert decoded == plain


@given(
    st.binary(max_size=3000)
    | st.builds(lambda b, n: b * n, st.binary(max_size=9), st.integers(0, 900))
)
def test_lz4_round_trip(data: bytes) -> None:
    block = lz4.encode(data)
    assert lz4.decode(block, len(data), **HERE) == data
    assert lz4.memory_to_encode(len(data)) >= len(data) + len(block)
    assert lz4.memory_to_decode(len(block), len(data)) >= len(data) + len(block)


def test_lz4_encodes_arrays_of_any_type() -> None:
    values = np.arange(12, dtype="f8").reshape(3, 4)
    assert lz4.decode(lz4.encode(values), 96, **HERE) == values.tobytes()


@pytest.mark.parametrize("nbytes", [0, 1, 13, 14, 15, 16, 269, 270, 271, 525, 526, 5000])
def test_lz4_block_is_never_as_long_as_the_data(nbytes: int) -> None:
    """The lengths around 13 and 270 meet: a run of zeros saves what the rest costs."""
    noise = random.Random(nbytes).randbytes(nbytes)
    for zeros in range(min(nbytes, 40) + 1):
        data = bytes(zeros) + noise[zeros:]
        block = lz4.encode(data)
        assert len(block) != nbytes
        assert lz4.decode(block, nbytes, **HERE) == data


def test_lz4_literals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lz4, "compress", lambda data, **_: bytes(data))
    for nbytes in (1, 14, 15, 16, 269, 270, 271, 524, 525, 526, 5000):
        data = random.Random(nbytes).randbytes(nbytes)
        assert lz4.encode(data) == ra_bytes.lz4_literals(data)
        assert lz4.decode(lz4.encode(np.frombuffer(data, "u1")), nbytes, **HERE) == data


LZ4_FAULTS = {
    "too_short": (ra_bytes.LZ4_TWENTY_ZEROS, 24, "does not fill"),
    "too_long": (ra_bytes.LZ4_TWENTY_ZEROS, 16, "damaged or too long"),
    "something_for_nothing": (ra_bytes.LZ4_TWENTY_ZEROS, 0, "damaged or too long"),
    "cut": (ra_bytes.LZ4_TWENTY_ZEROS[:-1], 20, "damaged or too long"),
    "match_before_start": (b"\x1a\x00\x09\x00\x50" + bytes(5), 20, "damaged or too long"),
    "no_bytes": (b"", 20, "too short for the array"),
    "bomb": (b"\x1f\x00\x01\x00" + b"\xff" * 96, 25_501, "too short for the array"),
    "bomb_1_gib": (b"\x1f\x00\x01\x00" + b"\xff" * 96, 1 << 30, "too short for the array"),
    "beyond_lz4": (b"\x1f\x00\x01\x00" + b"\xff" * 96, 1 << 40, "cannot be as long"),
}


def test_lz4_block_longer_than_the_library_takes() -> None:
    with pytest.raises(Corrupt, match="damaged or too long"):
        lz4.decode(np.zeros(1 << 31, np.uint8), 100, **HERE)


@pytest.mark.parametrize("name", LZ4_FAULTS)
def test_lz4_faults(name: str) -> None:
    block, nbytes, what = LZ4_FAULTS[name]
    tracemalloc.start()
    try:
        with pytest.raises(Corrupt, match=what) as caught:
            lz4.decode(block, nbytes, **HERE)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert (caught.value.path, caught.value.where) == ("x.ra", "byte 64")
    assert caught.value.expected
    assert caught.value.remedy


def test_lz4_highest_ratio_is_decoded() -> None:
    """Real blocks of zeros stay below the ratio at which a block is refused unseen."""
    zeros = bytes(1 << 20)
    block = lz4.encode(zeros)
    assert len(zeros) / len(block) > 250
    assert lz4.decode(block, len(zeros), **HERE) == zeros


def test_lz4_block_limit() -> None:
    too_long = np.broadcast_to(np.uint8(0), lz4.MAX_BLOCK_BYTES + 1)
    with pytest.raises(Unsupported, match="too large for one LZ4 block") as caught:
        lz4.encode(too_long)
    assert caught.value.got == f"{lz4.MAX_BLOCK_BYTES + 1} bytes"


# BitArray


def bits_decode(
    data: bytes,
    count: int,
    *,
    read: Callable[[int], bytes] | None = None,
    max_bytes: int = 1 << 20,
) -> np.ndarray:
    blocks = list(
        bits.decode_blocks(read or io.BytesIO(data).read, count, max_bytes=max_bytes, **HERE)
    )
    for block in blocks:
        assert block.ndim == 1
        assert block.dtype == np.bool_
        assert 0 < block.nbytes <= max(max_bytes, 64)
    return np.concatenate([np.empty(0, np.bool_), *blocks])


def test_bits_order() -> None:
    """Element 0 is the lowest bit of the first byte, element 64 that of the second chunk."""
    decoded = bits_decode(b"\x01\x00\x00\x00\x00\x00\x00\x80\x02" + bytes(7), 70)
    assert np.flatnonzero(decoded).tolist() == [0, 63, 65]


@pytest.mark.parametrize("name", ["bit_array", "bit_array_full_chunk", "bit_array_empty"])
def test_bits_samples(name: str) -> None:
    contents, expected = ra_bytes.SAMPLES[name]()
    data = contents[48 + 8 * expected.ndim :]
    assert np.array_equal(bits_decode(data, expected.size), expected.ravel())
    assert b"".join(bits.encode_blocks([expected.ravel()])) == data
    assert bits.encoded_bytes(expected.size) == len(data)


@given(st.lists(st.booleans(), max_size=400), st.integers(1, 300), st.randoms())
def test_bits_round_trip(values: list[bool], max_bytes: int, rng: random.Random) -> None:
    data = ra_bytes.bit_chunks(values)
    read = short_reads(data + b"tail", rng.randint(0, 99), longest=11)
    assert bits_decode(data, len(values), read=read, max_bytes=max_bytes).tolist() == values

    borders = sorted(rng.choices(range(len(values) + 1), k=4))
    blocks = np.split(np.array(values, np.bool_), borders)
    assert b"".join(bits.encode_blocks(blocks)) == data


def test_bits_blocks_of_any_rank() -> None:
    values = np.arange(60).reshape(3, 4, 5) % 7 == 0
    data = b"".join(bits.encode_blocks([values[0], values[1:, :0], values[1:], np.array(True)]))
    assert data == ra_bytes.bit_chunks([*values.ravel().tolist(), True])


@pytest.mark.parametrize("excess", [-1, 0, 1, 63, 64, 65])
def test_bits_many_slabs(excess: int) -> None:
    count = 2 * 8 * bits.SLAB_BYTES + excess
    values = np.random.default_rng(0).random(count) < 0.5
    data = b"".join(bits.encode_blocks([values[:1000], values[1000:]]))
    assert len(data) == bits.encoded_bytes(count)
    assert data.rstrip(b"\0") == np.packbits(values, bitorder="little").tobytes().rstrip(b"\0")
    assert np.array_equal(bits_decode(data, count, read=short_reads(data)), values)


def test_bits_reads_no_further_than_the_chunks() -> None:
    stream = io.BytesIO(bytes(16) + b"trailer")
    list(bits.decode_blocks(stream.read, 65, max_bytes=1 << 20, **HERE))
    assert stream.read() == b"trailer"


BITS_FAULTS = {
    "nothing": (b"", 10, "ends early", "byte 64"),
    "inside_chunk": (bytes(13), 100, "ends early", "byte 77"),
    "between_chunks": (bytes(8), 65, "ends early", "byte 72"),
    "after_slabs": (bytes(70_000), 10**6, "ends early", "byte 70064"),
    "unused_bit": (b"\xff\x05" + bytes(6), 9, "above the last element", "bit 2 of byte 65"),
    "unused_top_bit": (bytes(15) + b"\x80", 65, "above the last element", "bit 7 of byte 79"),
}


@pytest.mark.parametrize("name", BITS_FAULTS)
@pytest.mark.parametrize("max_bytes", [1, 100, 1 << 20])
def test_bits_faults(name: str, max_bytes: int) -> None:
    data, count, what, where = BITS_FAULTS[name]
    with pytest.raises(Corrupt, match=what) as caught:
        bits_decode(data, count, max_bytes=max_bytes)
    assert (caught.value.path, caught.value.where) == ("x.ra", where)
    assert caught.value.expected
    assert caught.value.remedy
