"""RA against bytes that our writer did not make, and our writer against readers that are not ours.

Sources: the files of the public implementations (corpus), files built from the layout table
(`ra_bytes`), GNU Octave. What we write is decoded by `decode` below, which follows the layout
table and shares no code with the reader under test.
"""

from __future__ import annotations

import hashlib
import re
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lz4.block
import ml_dtypes
import numpy as np
import pytest
import yaml
from cases import every
from ra_bytes import HOSTILE, SAMPLES, bit_chunks, leb128, ra_file, unleb128, unzigzag, zigzag

import raconvert
import raconvert.ra
from raconvert.arrays.blocks import as_ndarray
from raconvert.arrays.metadata import Metadata
from raconvert.errors import (
    Corrupt,
    RaconvertError,
    ReadFailed,
    TooLarge,
    Unsafe,
    Unsupported,
    UsageError,
    WouldLose,
)
from raconvert.testing import CASES, filled, same

CORPUS = {
    "test.ra": ("<c8", (4, 3)),
    "randi8.ra": ("i1", (4, 4)),
    "randi32.ra": ("<i4", (4, 4)),
    "randu8.ra": ("u1", (4, 4)),
    "randu32.ra": ("<u4", (4, 4)),
    "randf16.ra": ("<f2", (4, 4)),
    "randf32.ra": ("<f4", (4, 4)),
    "randf64.ra": ("<f8", (4, 4)),
    "randc32.ra": ("<c8", (4, 4)),
    "randc64.ra": ("<c16", (4, 4)),
    "rand100.ra": ("<i8", (8, 8)),
    "shepplogan.ra": ("<f8", (256, 256)),
    "mnist_8.ra": ("u1", (3, 28, 28)),
    "cifar_airplane.ra": ("u1", (3, 32, 32)),
}
DTYPES = {
    (1, 1): "i1", (1, 2): "<i2", (1, 4): "<i4", (1, 8): "<i8",
    (2, 1): "u1", (2, 2): "<u2", (2, 4): "<u4", (2, 8): "<u8",
    (3, 2): "<f2", (3, 4): "<f4", (3, 8): "<f8", (4, 8): "<c8", (4, 16): "<c16",
    (5, 1): "?", (5, 2): ml_dtypes.bfloat16, (5, 8): "?",
}  # fmt: skip


def decode(contents: bytes) -> tuple[np.ndarray, bytes]:
    """Return the array of an RA file of any dialect, shape = dims reversed, and its trailer."""
    magic, flags, eltype, elbyte, size, ndims = struct.unpack_from("<8s5Q", contents)
    assert magic == b"rawarray"
    assert flags & 1 == 0
    dims = struct.unpack_from(f"<{ndims}Q", contents, 48)
    rest = contents[48 + 8 * ndims :]
    dtype = np.dtype(DTYPES.get((eltype, elbyte), f"V{elbyte}"))
    count = int(np.prod(dims))
    data, trailer = rest[:size], rest[size:]
    if flags == 0:
        assert size == count * elbyte == len(data)
        values = np.frombuffer(data, dtype)
    elif flags == 6:
        assert (eltype, elbyte) == (5, 8)
        assert size == -(-count // 64) * 8
        bits = [byte >> k & 1 for byte in data for k in range(8)]
        assert not any(bits[count:])
        values = np.array(bits[:count], "?")
    elif size != count * elbyte:
        values = np.frombuffer(lz4.block.decompress(data, count * elbyte), dtype)
    else:
        numbers = unleb128(rest)
        trailer = b""
        values = np.array([unzigzag(n) for n in numbers] if eltype == 1 else numbers, dtype)
    return values.reshape(dims[::-1]), trailer


def put(path: Path, contents: bytes) -> Path:
    path.write_bytes(contents)
    return path


# The public files --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CORPUS)
def test_corpus_reads_as_the_layout_table_says(name: str, corpus: Callable[..., Path]) -> None:
    dtype, shape = CORPUS[name]

    values = raconvert.ra.read(corpus("ra", name))

    assert values.dtype == dtype
    assert values.shape == shape
    assert same(decode(corpus("ra", name).read_bytes())[0], values)


@every("name", CORPUS)
@every("way", ["convert", "fast", "read_write"])
def test_corpus_is_written_again_byte_for_byte(
    name: str, way: str, corpus: Callable[..., Path], tmp_path: Path
) -> None:
    source, copy = corpus("ra", name), tmp_path / name
    if way == "convert":
        raconvert.convert(source, copy)
    elif way == "fast":
        raconvert.ra.write(copy, raconvert.ra.read(source))
    else:
        raconvert.write(copy, raconvert.read(source))

    assert copy.read_bytes() == source.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_copies_have_the_published_checksums(corpus: Callable[..., Path], tmp_path: Path) -> None:
    published = {}
    for line in corpus("ra", "checksums.txt").read_text().splitlines():
        name, digits = line.removeprefix("MD5 (").split(") = ")
        published[name] = digits
    assert len(published) == 11

    for name in published:
        raconvert.convert(corpus("ra", name), tmp_path / name)

    found = {n: hashlib.md5((tmp_path / n).read_bytes()).hexdigest() for n in published}
    assert found == published


@pytest.mark.parametrize("name", CORPUS)
def test_digest_is_what_sha256sum_says(name: str, corpus: Callable[..., Path]) -> None:
    path = corpus("ra", name)

    assert raconvert.digest(path) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_lz4_of_the_c_tool_becomes_its_plain_twin(
    corpus: Callable[..., Path], tmp_path: Path
) -> None:
    raconvert.convert(corpus("ra", "mnist_8_z.ra"), tmp_path / "x.ra")

    assert (tmp_path / "x.ra").read_bytes() == corpus("ra", "mnist_8.ra").read_bytes()
    assert raconvert.digest(corpus("ra", "mnist_8_z.ra")) == raconvert.digest(tmp_path / "x.ra")


def test_od_reads_the_header(tool: Callable[..., str], tmp_path: Path) -> None:
    """The README of the format: ``od -t u8 -N 48 test.ra``."""
    raconvert.write(tmp_path / "x.ra", np.zeros((4, 3), "<c8"))

    done = subprocess.run(
        [tool("od"), "-A", "d", "-t", "u8", "-N", "48", tmp_path / "x.ra"],
        capture_output=True,
        text=True,
        check=True,
    )

    magic = int.from_bytes(b"rawarray", "little")
    assert done.stdout.split() == list(
        map(str, ["0000000", magic, 0, "0000016", 4, 8, "0000032", 96, 2, "0000048"])
    )


def test_the_example_of_the_readme(corpus: Callable[..., Path]) -> None:
    """``od -t f4 -j 64 test.ra`` there: 0 -inf 1 -1 2 -0.5 … 11 -0.0909091."""
    values = raconvert.ra.read(corpus("ra", "test.ra")).ravel()

    assert values.real.tolist() == list(range(12))
    assert values.imag[:3].tolist() == [-np.inf, -1, -0.5]
    assert values.imag[11] == np.float32(-1 / 11)


# Files built from the layout table ---------------------------------------------------------------

PLAIN_SAMPLES = [name for name, sample in SAMPLES.items() if not isinstance(sample()[1], str)]
READERS: dict[str, Callable[[Path], Any]] = {
    "fast": raconvert.ra.read,
    "read": raconvert.read,
    "open": lambda path, **options: np.asarray(raconvert.open(path, **options)),
    "region": lambda path: raconvert.open(path)[...],
}


@every("reader", READERS)
@every("name", PLAIN_SAMPLES)
def test_sample(name: str, reader: str, tmp_path: Path) -> None:
    contents, expected = SAMPLES[name]()
    values = READERS[reader](put(tmp_path / "x.ra", contents))

    if "bfloat16" in name:
        assert values.dtype.name == "bfloat16"
        values = values.astype(expected.dtype)
    assert same(expected, values)


@every("name", PLAIN_SAMPLES)
def test_sample_becomes_canonical(name: str, tmp_path: Path) -> None:
    """Converted, it is flags 0, little-endian, not encoded; only a trailer stays."""
    contents, expected = SAMPLES[name]()
    raconvert.convert(put(tmp_path / "x.ra", contents), tmp_path / "y.ra")

    written = (tmp_path / "y.ra").read_bytes()
    values, trailer = decode(written)

    assert written[8:16] == bytes(8)
    assert same(expected, values.astype(expected.dtype) if "bfloat16" in name else values)
    assert trailer == {"trailer": b"scanner: 7T\n", "lz4_longer_than_plain": b"tail"}.get(name, b"")


@pytest.mark.parametrize("name", ["int128", "float128", "complex32"])
@pytest.mark.parametrize("reader", READERS)
def test_type_that_numpy_lacks_travels_as_bytes(name: str, reader: str, tmp_path: Path) -> None:
    contents, _ = SAMPLES[name]()
    values = READERS[reader](put(tmp_path / "x.ra", contents))

    assert values.dtype == ("<f2" if name == "complex32" else "V16")
    assert values.tobytes() == contents[56:]


@pytest.mark.parametrize("name", ["int128", "float128", "complex32"])
def test_type_that_numpy_lacks_is_written_back(name: str, tmp_path: Path) -> None:
    contents, _ = SAMPLES[name]()
    raconvert.convert(put(tmp_path / "x.ra", contents), tmp_path / "y.ra")

    assert (tmp_path / "y.ra").read_bytes() == contents


@pytest.mark.parametrize(
    ("eltype", "elbyte", "unit"), [(1, 16, 16), (2, 16, 16), (3, 16, 16), (4, 32, 16), (4, 4, 2)]
)
def test_big_endian_of_a_type_that_numpy_lacks(
    eltype: int, elbyte: int, unit: int, tmp_path: Path
) -> None:
    data = bytes(range(2 * elbyte))
    swapped = b"".join(data[i : i + unit][::-1] for i in range(0, len(data), unit))
    put(tmp_path / "x.ra", ra_file(eltype, elbyte, (2,), swapped, flags=1))

    raconvert.convert(tmp_path / "x.ra", tmp_path / "y.ra")

    assert (tmp_path / "y.ra").read_bytes() == ra_file(eltype, elbyte, (2,), data)
    assert raconvert.read(tmp_path / "x.ra").tobytes() == data


@pytest.mark.parametrize(("eltype", "elbyte"), [code for code in DTYPES if code != (5, 8)], ids=str)
def test_every_type_code_and_width(eltype: int, elbyte: int, tmp_path: Path) -> None:
    expected = filled(np.dtype(DTYPES[eltype, elbyte]), (2, 3))
    contents = ra_file(eltype, elbyte, (3, 2), expected.tobytes())

    values = raconvert.ra.read(put(tmp_path / "x.ra", contents))
    raconvert.write(tmp_path / "y.ra", expected)

    assert same(expected, values)
    assert (tmp_path / "y.ra").read_bytes() == contents


def test_code_5_is_told_apart_by_its_width(tmp_path: Path) -> None:
    """Julia and the README: bool. Rust: bfloat16. Julia's BitArray: one bit each."""
    files = {
        "bool": ra_file(5, 1, (2,), b"\1\0"),
        "bfloat16": ra_file(5, 2, (2,), b"\x80\x3f\0\0"),
        "bits": ra_file(5, 8, (2,), bit_chunks([True, False]), flags=6),
    }
    found = {name: raconvert.ra.read(put(tmp_path / name, data)) for name, data in files.items()}

    assert {name: values.dtype.name for name, values in found.items()} == {
        "bool": "bool",
        "bfloat16": "bfloat16",
        "bits": "bool",
    }
    assert all(values.astype(int).tolist() == [1, 0] for values in found.values())


def test_unknown_flags_are_read_on_request(tmp_path: Path) -> None:
    put(tmp_path / "x.ra", ra_file(2, 1, (3,), b"abc", flags=8 | 1 << 40))

    with pytest.raises(Unsupported, match="unknown flag bits: 3, 40"):
        raconvert.read(tmp_path / "x.ra")
    values = raconvert.read(tmp_path / "x.ra", in_opts={"unknown_flags": "yes"})

    assert values.tolist() == list(b"abc")


@pytest.mark.parametrize("ndims", [32, 64])
def test_many_dimensions(ndims: int, tmp_path: Path) -> None:
    dims = (1,) * (ndims - 1) + (3,)
    put(tmp_path / "x.ra", ra_file(2, 1, dims, b"abc"))

    assert raconvert.ra.read(tmp_path / "x.ra").shape == dims[::-1]


def test_header_longer_than_the_first_page(tmp_path: Path) -> None:
    """1000 dimensions are legal; numpy has no such array, but the file can be copied."""
    contents = put(tmp_path / "x.ra", ra_file(2, 1, (1,) * 999 + (3,), b"abc")).read_bytes()

    raconvert.convert(tmp_path / "x.ra", tmp_path / "y.ra")

    assert (tmp_path / "y.ra").read_bytes() == contents


@pytest.mark.parametrize("reader", READERS)
def test_more_dimensions_than_numpy_has(reader: str, tmp_path: Path) -> None:
    put(tmp_path / "x.ra", ra_file(2, 1, (1,) * 64 + (3,), b"abc"))

    with pytest.raises(Unsupported, match="too many axes"):
        READERS[reader](tmp_path / "x.ra")


# Hostile files -----------------------------------------------------------------------------------

# field of the table -> what a message about it says
WORDS = {
    "magic": "wrong magic",
    "header": r"inside the RA header|more dimensions than the file",
    "ndims": "more dimensions than the file can hold",
    "eltype": r"element type|form of a BitArray",
    "elbyte": r"zero bytes|no numpy counterpart|too wide|form of a BitArray|beyond",
    "flags": "unknown flag bits",
    "dims": r"overflows 64 bits|dimension is too large",
    "size": r"contradicts the dimensions",
    "data": r"cut off|LZ4|LEB128|varint|group|BitArray|bit",
}


def refusal(path: Path, reader: Callable[[Path], Any]) -> RaconvertError:
    with pytest.raises((Corrupt, Unsupported)) as caught:
        reader(path)
    return caught.value


@every("reader", ["fast", "read", "open"])
@every("name", HOSTILE)
def test_hostile_file_is_refused_for_its_own_reason(name: str, reader: str, tmp_path: Path) -> None:
    path = put(tmp_path / "x.ra", HOSTILE[name].contents)
    options = {} if reader == "fast" else {"from_": "ra"}
    error = refusal(path, partial(READERS[reader], **options))

    assert str(path) in str(error)
    assert re.search(WORDS[HOSTILE[name].field], error.what), (HOSTILE[name].why, str(error))


# field -> offset of the field in the file, which the message gives
WHERE = {"flags": 8, "eltype": 16, "elbyte": 24, "size": 32, "ndims": 40}


@pytest.mark.parametrize("name", [n for n, h in HOSTILE.items() if h.field in WHERE])
def test_hostile_header_names_where_expected_and_got(name: str, tmp_path: Path) -> None:
    error = refusal(put(tmp_path / "x.ra", HOSTILE[name].contents), raconvert.ra.read)
    field = HOSTILE[name].field

    place = 16 if name.startswith("bits_elbyte") else WHERE[field]  # (eltype, elbyte) as one
    assert f"byte {place}" in str(error.where)
    assert error.got is not None
    assert error.expected is not None or name == "elbyte_largest"


@every("name", HOSTILE)
def test_hostile_file_is_not_converted(name: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    path = put(tmp_path / "x.ra", HOSTILE[name].contents)

    with pytest.raises(RaconvertError):
        raconvert.convert(path, tmp_path / "out" / "x.npy", from_="ra")
    assert list((tmp_path / "out").iterdir()) == []


def test_missing_bytes_are_counted(tmp_path: Path) -> None:
    put(tmp_path / "x.ra", HOSTILE["data_cut"].contents)

    with pytest.raises(Corrupt, match="7 bytes are missing"):
        raconvert.ra.read(tmp_path / "x.ra")


def test_data_longer_than_size_is_a_trailer(tmp_path: Path) -> None:
    put(tmp_path / "x.ra", ra_file(2, 1, (3,), b"abc", trailer=b"defg"))

    assert raconvert.ra.read(tmp_path / "x.ra").tolist() == list(b"abc")
    assert raconvert.read(tmp_path / "x.ra").tolist() == list(b"abc")


def test_decoding_more_than_allowed_is_refused_first(tmp_path: Path) -> None:
    data = lz4.block.compress(bytes(1 << 20), store_size=False)
    put(tmp_path / "x.ra", ra_file(2, 1, (1 << 20,), data, flags=2))

    with pytest.raises(TooLarge, match="max_memory"):
        raconvert.convert(tmp_path / "x.ra", tmp_path / "y.npy", max_memory=1 << 19)
    assert [path.name for path in tmp_path.iterdir()] == ["x.ra"]


@pytest.mark.parametrize("name", ["x.ra", "x.npy", "x.npz", "x.png"])
def test_more_memory_than_allowed_names_the_file(name: str, tmp_path: Path) -> None:
    raconvert.write(tmp_path / name, np.zeros((50, 50), "u1"))

    with pytest.raises(TooLarge, match="max_memory") as error:
        raconvert.read(tmp_path / name, max_memory=100)
    assert str(tmp_path / name) in str(error.value)


# LZ4 blocks that are exactly as long as the plain data ----------------------------------------------


def alike(dtype: np.dtype, seed: int) -> tuple[np.ndarray, bytes]:
    """Return values and the LZ4 block of them, which is as long as they are."""
    rng = np.random.default_rng(seed)
    for _ in range(100_000):
        count = int(rng.integers(24, 400)) // dtype.itemsize
        raw = bytearray(rng.integers(0, 256, count * dtype.itemsize, np.uint8).tobytes())
        copied = int(rng.integers(4, 12))
        begin = int(rng.integers(0, max(1, len(raw) - copied - 14)))
        place = int(rng.integers(begin + 1, max(begin + 2, len(raw) - 12 - copied)))
        raw[place : place + copied] = raw[begin : begin + copied]
        if dtype.kind == "b":
            raw = bytearray(n & 1 for n in raw)
        block = lz4.block.compress(bytes(raw), store_size=False)
        if len(block) == len(raw):
            return np.frombuffer(bytes(raw), dtype), block
    raise AssertionError("no such block was found")


LZ4_TYPES = {"<i4": (1, 4), "<u2": (2, 2), "<u1": (2, 1), "<f2": (3, 2), "<f4": (3, 4),
             "<f8": (3, 8), "<c8": (4, 8), "|V12": (0, 12)}  # fmt: skip


@pytest.mark.parametrize("trailer", [b"", b"tail"], ids=["", "trailer"])
@pytest.mark.parametrize("code", LZ4_TYPES)
def test_an_lz4_block_as_long_as_the_data(code: str, trailer: bytes, tmp_path: Path) -> None:
    for seed in range(8):
        values, block = alike(np.dtype(code), seed)
        file = ra_file(*LZ4_TYPES[code], values.shape, block, flags=2, trailer=trailer)
        path = put(tmp_path / "x.ra", file)

        assert raconvert.ra.read(path).tobytes() == values.tobytes()
        assert raconvert.read(path).tobytes() == values.tobytes()
        report = raconvert.convert(path, tmp_path / "y.ra", overwrite=True)
        told = code not in ("<f2", "<f4", "<f8", "<c8")  # integers: only if LEB128 fits, too
        assert told or "the data fits two encodings" in " ".join(report.notes)


@pytest.mark.parametrize("name", ["f4", "i4"])
def test_blocks_of_the_authors_tool(name: str, corpus: Callable[..., Path], tmp_path: Path) -> None:
    wrong = corpus("review", "wrong")
    raconvert.convert(wrong / f"ra_{name}_compressed_by_author_tool.ra", tmp_path / "x.ra")
    assert (tmp_path / "x.ra").read_bytes() == (wrong / f"ra_{name}_plain.ra").read_bytes()


def test_data_that_fits_two_encodings_can_be_read_either_way(tmp_path: Path) -> None:
    values, block = alike(np.dtype("<f4"), 1)
    path = put(tmp_path / "x.ra", ra_file(3, 4, values.shape, block, flags=2))
    plain = raconvert.read(path, in_opts={"encoding": "none"})
    assert plain.tobytes() == block
    with pytest.raises(Unsupported, match="cannot be in encoding leb128"):
        raconvert.read(path, in_opts={"encoding": "leb128"})
    whole = put(tmp_path / "y.ra", ra_file(3, 4, values.shape, values.tobytes()))
    with pytest.raises(Unsupported, match="cannot be in encoding lz4"):
        raconvert.read(whole, in_opts={"encoding": "lz4"})


@pytest.mark.parametrize("code", ["<f4", "<f8", "<c8"])
def test_what_is_no_lz4_block_stays_what_it_was(code: str, tmp_path: Path) -> None:
    """Julia's raw floats; 200 cases, and none of them is a block by chance."""
    rng = np.random.default_rng(5)
    dtype = np.dtype(code)
    for _ in range(200):
        raw = rng.integers(0, 1 << int(rng.integers(1, 9)), 8 * int(rng.integers(0, 60)), np.uint8)
        values = np.frombuffer(raw.tobytes(), dtype)
        path = put(
            tmp_path / "x.ra", ra_file(*LZ4_TYPES[code], values.shape, raw.tobytes(), flags=2)
        )
        assert raconvert.ra.read(path).tobytes() == raw.tobytes()


def test_the_structure_of_a_block_is_judged_as_the_library_does(tmp_path: Path) -> None:
    """Every damage of one byte, and every cut: what is taken for a block, the library decodes."""
    values, block = alike(np.dtype("<f4"), 3)
    nbytes, taken = values.nbytes, 0
    for place in range(len(block)):
        for change in (1, 16, 128):
            odd = bytearray(block)
            odd[place] ^= change
            path = put(tmp_path / "x.ra", ra_file(3, 4, values.shape, bytes(odd), flags=2))
            try:
                expected = lz4.block.decompress(bytes(odd), uncompressed_size=nbytes)
            except lz4.block.LZ4BlockError:
                expected = b""
            expected = expected if len(expected) == nbytes else bytes(odd)
            taken += expected != bytes(odd)
            assert raconvert.ra.read(path).tobytes() == expected
    assert taken > 100


def test_lz4_above_the_memory_is_refused_before_it_is_allocated(tmp_path: Path) -> None:
    nbytes = 200 << 20
    block = lz4.block.compress(bytes(nbytes), store_size=False)
    path = put(tmp_path / "x.ra", ra_file(2, 1, (nbytes,), block, flags=2))
    for read in (raconvert.ra.read, raconvert.read):
        tracemalloc.start()
        with pytest.raises(TooLarge, match="max_memory"):
            read(path, max_memory=500 << 20)  # the result fits, what decoding needs does not
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
        tracemalloc.stop()
    with raconvert.open(path, max_memory=500 << 20) as array, pytest.raises(TooLarge):
        array[0]


# Dimensions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [[2**62 + 1] * 240, [3] * 100_000, [0, *[2**61] * 100_000],
                                  [2**63 - 1] * 100_000])  # fmt: skip
def test_many_dims_that_overflow(dims: list[int], tmp_path: Path) -> None:
    """Refused where the product overflows: multiplying on would take the square of their number."""
    path = put(tmp_path / "x.ra", ra_file(2, 1, dims, b"", size=0))
    with pytest.raises(Corrupt):  # what is imported for it does not count
        raconvert.ra.read(path)
    calls = []
    sys.setprofile(lambda *event: calls.append(event[1]))
    try:
        with pytest.raises(Corrupt, match="overflows 64 bits") as error:
            raconvert.ra.read(path)
    finally:
        sys.setprofile(None)
    assert len(str(error.value)) < 2000
    assert len(calls) < 2000


def test_many_dims_of_one(tmp_path: Path) -> None:
    path = put(tmp_path / "x.ra", ra_file(2, 1, [1] * 100_000, b"x"))
    with pytest.raises(Unsupported, match="too many axes"):
        raconvert.ra.read(path)
    raconvert.convert(path, tmp_path / "y.ra")
    assert (tmp_path / "y.ra").read_bytes() == path.read_bytes()


# raconvert.ra ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 100, 1 << 14, (1 << 16) + 3], ids=str)
def test_fast_read_is_writeable_and_own_memory(size: int, tmp_path: Path) -> None:
    """Below and above what is read with one call."""
    expected = filled(np.dtype("<i4"), (size,))
    path = put(tmp_path / "x.ra", ra_file(1, 4, (size,), expected.tobytes()))

    values = raconvert.ra.read(path)
    values += 1

    assert values.flags.writeable
    assert same(expected, raconvert.ra.read(path))


def test_fast_read_into_memory(tmp_path: Path) -> None:
    expected = filled(np.dtype("<f8"), (5, 7))
    path = put(tmp_path / "x.ra", ra_file(3, 8, (7, 5), expected.tobytes()))
    out = np.zeros(35)

    values = raconvert.ra.read(path, out=out)

    assert values.shape == (5, 7)
    assert np.shares_memory(values, out)
    assert same(expected, values)


@pytest.mark.parametrize(
    "out",
    [np.zeros(34), np.zeros(35, "f4"), np.zeros(70)[::2], np.zeros((7, 5), order="F")[::-1]],
    ids=["size", "type", "strided", "reversed"],
)
def test_fast_read_into_the_wrong_memory(out: np.ndarray, tmp_path: Path) -> None:
    path = put(tmp_path / "x.ra", ra_file(3, 8, (7, 5), bytes(280)))

    with pytest.raises(UsageError):
        raconvert.ra.read(path, out=out)
    assert not out.any()


@pytest.mark.parametrize("name", ["bool_bytes", "lz4_matches", "leb128_int32", "bit_array"])
def test_fast_read_of_encoded_data_into_memory(name: str, tmp_path: Path) -> None:
    contents, expected = SAMPLES[name]()
    out = np.empty_like(expected)

    values = raconvert.ra.read(put(tmp_path / "x.ra", contents), out=out)

    assert np.shares_memory(values, out)
    assert same(expected, values)


def test_fast_read_ignores_the_sidecar(tmp_path: Path) -> None:
    values = np.asfortranarray(filled(np.dtype("<i4"), (4, 6)))
    np.save(tmp_path / "x.npy", values)
    raconvert.convert(tmp_path / "x.npy", tmp_path / "x.ra", axes="fortran")

    assert raconvert.ra.read(tmp_path / "x.ra").shape == (6, 4)
    assert same(values, raconvert.read(tmp_path / "x.ra"))
    assert same(values, np.asarray(raconvert.open(tmp_path / "x.ra")))


FAST = [name for name, case in CASES.items() if case.shape in ((), (5,), (4, 6), (4, 0))]


@every("name", [n for n in FAST if n.endswith(("-C", "-strided"))])
def test_fast_write_makes_the_layout_table(name: str, tmp_path: Path) -> None:
    """Big-endian input is written little-endian; strings, dates and structures byte for byte."""
    expected = np.asarray(CASES[name].array())

    raconvert.ra.write(tmp_path / "x.ra", expected)

    values, trailer = decode((tmp_path / "x.ra").read_bytes())
    assert trailer == b""
    assert values.shape == expected.shape
    if values.dtype.type is np.void:
        assert values.tobytes() == np.ascontiguousarray(expected).tobytes()
    else:
        assert same(expected, values)


def test_column_major_input_keeps_its_index(tmp_path: Path) -> None:
    expected = np.asfortranarray(filled(np.dtype("<i4"), (4, 6)))
    plain = ra_file(1, 4, (6, 4), expected.tobytes(order="C"))

    raconvert.ra.write(tmp_path / "fast.ra", expected)
    raconvert.write(tmp_path / "full.ra", expected)

    assert (tmp_path / "fast.ra").read_bytes() == plain
    assert (tmp_path / "full.ra").read_bytes() == plain


@pytest.mark.parametrize("values", [[1, 2], 3.5, [[True]], np.float32(1)], ids=str)
def test_whatever_numpy_takes_can_be_written(values: Any, tmp_path: Path) -> None:
    raconvert.ra.write(tmp_path / "fast.ra", values)
    raconvert.write(tmp_path / "full.ra", values)

    assert same(np.asarray(values), raconvert.ra.read(tmp_path / "fast.ra"))
    assert (tmp_path / "fast.ra").read_bytes() == (tmp_path / "full.ra").read_bytes()


@pytest.mark.parametrize("write", [raconvert.ra.write, raconvert.write], ids=["fast", "full"])
@pytest.mark.parametrize(
    "dtype", ["O", np.longdouble, [], "V0", "S0"], ids=["object", "longdouble", "[]", "V0", "S0"]
)
def test_types_without_a_faithful_form(
    write: Callable[..., Any], dtype: Any, tmp_path: Path
) -> None:
    values = np.ndarray((3,), np.dtype(dtype), bytearray(64))
    if np.dtype(dtype) == object:
        values = np.array([None, 1, "x"], object)

    with pytest.raises(RaconvertError):
        write(tmp_path / "x.ra", values)
    assert list(tmp_path.iterdir()) == []


def test_masked_arrays_are_refused(tmp_path: Path) -> None:
    masked = np.ma.masked_array([1, 2, 3], [False, True, False])

    with pytest.raises(UsageError, match="mask"):
        raconvert.write(tmp_path / "x.ra", masked)
    with pytest.raises(UsageError, match="mask"):
        raconvert.ra.write(tmp_path / "x.ra", masked)


def test_fast_write_is_atomic(tmp_path: Path) -> None:
    raconvert.ra.write(tmp_path / "x.ra", [1, 2])
    before = (tmp_path / "x.ra").read_bytes()

    with pytest.raises(RaconvertError):
        raconvert.ra.write(tmp_path / "x.ra", np.array([None]))

    assert (tmp_path / "x.ra").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["x.ra"]


@pytest.mark.parametrize("call", [raconvert.ra.read, raconvert.read, raconvert.open])
def test_missing_file(call: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(ReadFailed, match=r"no\.ra"):
        call(tmp_path / "no.ra")


@pytest.mark.parametrize("call", [raconvert.ra.read, raconvert.read, raconvert.open])
def test_folder(call: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises((ReadFailed, Unsafe, Unsupported), match=str(tmp_path)):
        call(tmp_path)


QUERY = {
    "int64_big_endian": ("big", 0, 0, "Int64", [2, 2]),
    "bool_bytes": ("little", 0, 0, "Bool", [4]),
    "bit_array": ("little", 2, 4, "Bool", [5, 20]),
    "bfloat16": ("little", 0, 0, "BFloat16", [3, 2]),
    "lz4_matches": ("little", 2, 0, "Int32", [5]),
    "complex64_big_endian": ("big", 0, 0, "Complex{Float32}", [2, 2]),
    "user_type": ("little", 0, 0, "user96", [2, 2]),
    "int128": ("little", 0, 0, "Int128", [3]),
    "zero_dimensional": ("little", 0, 0, "Float64", None),
}


@pytest.mark.parametrize("name", QUERY)
def test_query_is_what_raquery_prints(name: str, tmp_path: Path) -> None:
    path = put(tmp_path / "x.ra", SAMPLES[name]()[0])
    endian, compressed, bits, type_name, shape = QUERY[name]

    text = raconvert.ra.query(path)

    size, ndims = struct.unpack_from("<2Q", path.read_bytes(), 32)
    assert text.splitlines()[0] == "---"
    assert yaml.safe_load(text) == {
        "name": str(path),
        "endian": endian,
        "compressed": compressed,
        "bits": bits,
        "type": type_name,
        "size": size,
        "dimension": ndims,
        "shape": shape,
    }


# read, open, write -------------------------------------------------------------------------------


def test_open_maps_and_reads_regions(tmp_path: Path) -> None:
    expected = filled(np.dtype("<i4"), (5, 6, 7))
    put(tmp_path / "x.ra", ra_file(1, 4, (7, 6, 5), expected.tobytes()))

    with raconvert.open(tmp_path / "x.ra") as array:
        assert (array.shape, array.dims, array.ndim) == ((5, 6, 7), (7, 6, 5), 3)
        assert same(expected[1:3, ..., ::2], array[1:3, ..., ::2])
        assert same(expected[-1], array[-1])


def test_sidecar_keeps_what_the_header_has_no_place_for(tmp_path: Path) -> None:
    meta = Metadata(description="é", units="K", attributes={"n": [1, 2.5]})
    raconvert.write(tmp_path / "x.ra", np.zeros((2, 3)), meta=meta)

    with raconvert.open(tmp_path / "x.ra") as array:
        assert array.meta.to_dict() == meta.to_dict()
    assert (tmp_path / "x.ra").read_bytes() == ra_file(3, 8, (3, 2), bytes(48))


def test_sidecar_of_another_file_is_an_error_that_names_both(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", np.zeros(3), meta=Metadata(description="zeros"))
    raconvert.ra.write(tmp_path / "x.ra", np.ones(3))

    with pytest.raises(Corrupt) as error:
        raconvert.read(tmp_path / "x.ra")
    assert str(tmp_path / "x.ra.yaml") in str(error.value)
    assert 'meta="ignore"' in str(error.value)
    assert raconvert.read(tmp_path / "x.ra", meta="ignore").tolist() == [1, 1, 1]


def test_left_over_sidecar_goes(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", np.zeros(3), meta=Metadata(description="zeros"))
    raconvert.write(tmp_path / "x.ra", np.ones(3), overwrite=True)

    assert [path.name for path in tmp_path.iterdir()] == ["x.ra"]


# Trailers ----------------------------------------------------------------------------------------


def test_trailer_is_kept_from_ra_to_ra(tmp_path: Path) -> None:
    contents = ra_file(2, 1, (3,), b"abc", trailer=bytes(range(256)) * 40)
    raconvert.convert(put(tmp_path / "x.ra", contents), tmp_path / "y.ra")

    assert (tmp_path / "y.ra").read_bytes() == contents


def test_trailer_is_dropped_on_request(tmp_path: Path) -> None:
    contents = ra_file(2, 1, (3,), b"abc", trailer=b"note")
    raconvert.convert(put(tmp_path / "x.ra", contents), tmp_path / "y.ra", meta="drop")

    assert (tmp_path / "y.ra").read_bytes() == contents[:-4]


def test_trailer_is_named_when_the_target_has_no_place(tmp_path: Path) -> None:
    put(tmp_path / "x.ra", ra_file(2, 1, (3,), b"abc", trailer=b"note"))

    report = raconvert.convert(tmp_path / "x.ra", tmp_path / "x.npy")

    assert [fit.property for fit in report.equivalent] == ["metadata"]


def test_metadata_in_a_trailer(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.asfortranarray(filled(np.dtype("<U3"), (4, 6))))
    raconvert.convert(tmp_path / "x.npy", tmp_path / "x.ra", meta="trailer", axes="fortran")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npy", "x.ra"]
    assert decode((tmp_path / "x.ra").read_bytes())[0].shape == (6, 4)
    assert same(np.load(tmp_path / "x.npy"), raconvert.read(tmp_path / "x.ra"))


def test_metadata_in_a_trailer_with_text(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", np.arange(3), meta=Metadata(description="é: 'x'"))
    raconvert.convert(tmp_path / "x.ra", tmp_path / "y.ra", meta="trailer")

    with raconvert.open(tmp_path / "y.ra") as array:
        assert array.meta.description == "é: 'x'"
    assert not (tmp_path / "y.ra.yaml").exists()


@pytest.mark.parametrize("encoding", ["lz4", "bits"])
def test_trailer_behind_encoded_data(encoding: str, tmp_path: Path) -> None:
    contents = ra_file(5, 1, (70,), bytes(70), trailer=b"note")
    put(tmp_path / "x.ra", contents)

    raconvert.convert(tmp_path / "x.ra", tmp_path / "y.ra", out_opts={"encoding": encoding})
    raconvert.convert(tmp_path / "y.ra", tmp_path / "z.ra")

    assert decode((tmp_path / "y.ra").read_bytes())[1] == b"note"
    assert (tmp_path / "z.ra").read_bytes() == contents


@pytest.mark.parametrize("tail", [b"", b"tail"])
def test_bytes_behind_leb128_are_noted(tail: bytes, tmp_path: Path) -> None:
    """They are lost, since a reader finds their beginning only when it has decoded the rest."""
    values = np.arange(-100_000, 100_000, dtype="<i4")
    raconvert.write(tmp_path / "x.ra", values, out_opts={"encoding": "leb128"})
    with (tmp_path / "x.ra").open("ab") as file:
        file.write(tail)
    report = raconvert.convert(tmp_path / "x.ra", tmp_path / "y.ra")
    assert list(report.notes) == ["4 bytes after the data were ignored"] * bool(tail)
    assert np.array_equal(raconvert.read(tmp_path / "y.ra"), values)


def test_trailer_behind_leb128_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "x.ra", ra_file(2, 1, (3,), b"abc", trailer=b"note"))

    with pytest.raises(WouldLose, match='meta="drop"'):
        raconvert.convert(tmp_path / "x.ra", tmp_path / "y.ra", out_opts={"encoding": "leb128"})
    assert not (tmp_path / "y.ra").exists()


# Encodings that we write -------------------------------------------------------------------------

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
ENCODINGS = [
    *(("leb128", name) for name in [*INTEGERS, "int32-big", "uint64-big", "bool"]),
    ("bits", "bool"),
    *(("lz4", name) for name in [*INTEGERS, "float16", "float64-big", "complex64", "bool", "void"]),
]
ENCODED_SHAPES = ("0d", "5", "0", "4x6", "5x6x3")


@every("shape", ENCODED_SHAPES)
@every("encoding, name", ENCODINGS, ids="-".join)
def test_encoding_is_read_by_an_independent_decoder(
    encoding: str, name: str, shape: str, tmp_path: Path
) -> None:
    expected = CASES[f"{name}-{shape}-C"].values
    raconvert.write(tmp_path / "x.ra", expected, out_opts={"encoding": encoding})
    contents = (tmp_path / "x.ra").read_bytes()

    values, trailer = decode(contents)

    assert struct.unpack_from("<Q", contents, 8)[0] == (6 if encoding == "bits" else 2)
    assert trailer == b""
    assert same(expected, values)


@every("shape", ENCODED_SHAPES)
@every("encoding, name", ENCODINGS, ids="-".join)
def test_encoding_is_read_back(encoding: str, name: str, shape: str, tmp_path: Path) -> None:
    expected = CASES[f"{name}-{shape}-C"].values
    raconvert.write(tmp_path / "x.ra", expected, out_opts={"encoding": encoding})

    assert same(expected, raconvert.ra.read(tmp_path / "x.ra"))
    with raconvert.open(tmp_path / "x.ra") as array:
        assert same(expected, as_ndarray(array))


@every("shape", ENCODED_SHAPES)
@every("name", ["text", "text-big", "bytes", "datetime-big", "structured", "aligned"])
def test_encoded_user_elements_are_what_their_sidecar_says(
    name: str, shape: str, tmp_path: Path
) -> None:
    expected = CASES[f"{name}-{shape}-C"].values
    raconvert.write(tmp_path / "x.ra", expected, out_opts={"encoding": "lz4"})

    assert same(expected, raconvert.read(tmp_path / "x.ra"))
    with raconvert.open(tmp_path / "x.ra") as array:
        assert same(expected, array[...])


@pytest.mark.parametrize(("eltype", "elbyte"), [(0, 4), (1, 16), (2, 16), (5, 2)])
def test_leb128_of_a_type_that_no_program_encodes(eltype: int, elbyte: int, tmp_path: Path) -> None:
    put(tmp_path / "x.ra", ra_file(eltype, elbyte, (3,), b"abc", flags=2, size=3 * elbyte))

    with pytest.raises(Unsupported, match="no known dialect"):
        raconvert.ra.read(tmp_path / "x.ra")


@pytest.mark.parametrize("order", ["C", "F"])
def test_leb128_is_in_memory_order(order: str, tmp_path: Path) -> None:
    values = np.asarray(np.array([[1, -2], [300, -70000]], "<i4"), order=order)
    np.save(tmp_path / "x.npy", values)
    axes = "fortran" if order == "F" else "c"
    options = {"encoding": "leb128"}
    raconvert.convert(tmp_path / "x.npy", tmp_path / "x.ra", axes=axes, out_opts=options)

    data = (tmp_path / "x.ra").read_bytes()[64:]

    assert data == leb128(zigzag(n) for n in values.ravel(order=order).tolist())


def test_bits_are_the_chunks_of_julia(tmp_path: Path) -> None:
    values = filled(np.dtype("?"), (10, 13))
    raconvert.write(tmp_path / "x.ra", values, out_opts={"encoding": "bits"})

    chunks = bit_chunks(values.ravel().tolist())

    assert (tmp_path / "x.ra").read_bytes() == ra_file(5, 8, (13, 10), chunks, flags=6)


@pytest.mark.parametrize(
    ("encoding", "dtype"), [("leb128", "<f8"), ("leb128", "<U2"), ("bits", "u1"), ("bits", "<f4")]
)
def test_encoding_that_does_not_suit_the_type(encoding: str, dtype: str, tmp_path: Path) -> None:
    with pytest.raises(WouldLose, match=f"encoding {encoding}"):
        raconvert.write(tmp_path / "x.ra", np.zeros(3, dtype), out_opts={"encoding": encoding})
    assert list(tmp_path.iterdir()) == []


# Octave ------------------------------------------------------------------------------------------

OCTAVE = {
    **{name: f"reshape ({name} (0:23) - {name} (5), [2, 3, 4])" for name in INTEGERS},
    "float32": "reshape (single (0:23) / 7, [2, 3, 4])",
    "float64": "reshape ((0:23) / 7, [2, 3, 4])",
    "complex64": "reshape (complex (single (0:23), single (-1)), [2, 3, 4])",
    "complex128": "reshape (complex ((0:23), -0.1), [2, 3, 4])",
    "bool": "reshape (mod (0:23, 3) == 0, [2, 3, 4])",
}


def octave_values(name: str) -> np.ndarray:
    """Return the same numbers, indexed as Octave does: [i, j, k] of 2 x 3 x 4."""
    dtype = np.dtype(name)
    flat = np.arange(24)
    numbers = {
        "i": np.clip(flat - 5, -5, None),
        "u": np.clip(flat - 5, 0, None),  # Octave's integers saturate
        "f": np.arange(24, dtype=dtype) / dtype.type(7) if dtype.kind == "f" else flat,
        "c": flat + (-1j if name == "complex64" else -0.1j),
        "b": flat % 3 == 0,
    }[dtype.kind]
    return numbers.astype(dtype).reshape((2, 3, 4), order="F")


@pytest.mark.parametrize("name", OCTAVE)
def test_octave_writes_and_we_read(name: str, octave: Callable[..., str], tmp_path: Path) -> None:
    octave(f'rawrite ({OCTAVE[name]}, "x.ra")', cwd=tmp_path)

    as_octave = raconvert.read(tmp_path / "x.ra", index_order="F")

    assert same(octave_values(name), as_octave)
    assert same(octave_values(name).T, raconvert.read(tmp_path / "x.ra"))


@pytest.mark.parametrize("name", OCTAVE)
def test_we_write_and_octave_reads(name: str, octave: Callable[..., str], tmp_path: Path) -> None:
    """Its size is our dims, and it writes the very same file again."""
    np.save(tmp_path / "x.npy", np.asfortranarray(octave_values(name)))
    raconvert.convert(tmp_path / "x.npy", tmp_path / "x.ra", axes="fortran")

    octave(
        f'a = raread ("x.ra"); assert (a, {OCTAVE[name]}); rawrite (a, "y.ra")',
        cwd=tmp_path,
    )

    assert (tmp_path / "y.ra").read_bytes() == (tmp_path / "x.ra").read_bytes()


def test_octave_reads_what_is_row_major_reversed(
    octave: Callable[..., str], tmp_path: Path
) -> None:
    raconvert.write(tmp_path / "x.ra", np.arange(6.0).reshape(2, 3))

    octave('assert (raread ("x.ra"), reshape (0:5, [3, 2]))', cwd=tmp_path)
