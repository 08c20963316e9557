"""What is special to IDX: a reader after the page of MNIST is the oracle, and so is gzip."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from pairs import Pairs, little, nothing_said

import raconvert
from raconvert.errors import Corrupt, NotSupportedYet, Unsupported, WouldLose

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "learning"

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def load(path: Path) -> np.ndarray:
    """Read as the page of MNIST says."""
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    zero, code, rank = struct.unpack_from(">HBB", data)
    shape = struct.unpack_from(f">{rank}I", data, 4)
    values = np.frombuffer(data, TYPES[code], offset=4 + 4 * rank).reshape(shape)
    assert zero == 0
    return little(values)


def save(path: Path, values: np.ndarray) -> None:
    """Write as the page of MNIST says."""
    code = next(c for c, t in TYPES.items() if t[-2:] == values.dtype.str[-2:])
    head = struct.pack(f">HBB{values.ndim}I", 0, code, values.ndim, *values.shape)
    data = head + values.astype(TYPES[code]).tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


IN_PAIRS = (
    Pairs(
        name="idx",
        suffix=".idx",
        read=load,
        write=save,
        can_write=lambda values: (
            values.ndim > 0 and values.dtype.str[-2:] in ("u1", "i1", "i2", "i4", "f4", "f8")
            and values.dtype.kind in "uif"
        ),
        order="C",
        guest=True,
        types="= uint8 int8 int16 int16_big int32 float32 float32_big float64 x *",
        shapes="= * ~ ()",
        said=nothing_said,
    ),
)  # fmt: skip


def mnist(folder: Path, packed: bool) -> tuple[Path, Path, np.ndarray, np.ndarray]:
    """Images and labels under the names of the files of MNIST."""
    images = np.random.default_rng(1).integers(0, 256, (60, 28, 28), "u1")
    labels = (np.arange(60) % 10).astype("u1")
    ends = ["-images-idx3-ubyte", "-labels-idx1-ubyte"]
    one, two = (folder / f"train{end}{'.gz' if packed else ''}" for end in ends)
    save(one, images)
    save(two, labels)
    return one, two, images, labels


@pytest.mark.parametrize("packed", [False, True])
def test_files_of_mnist_are_known_by_their_content(packed: bool, tmp_path: Path) -> None:
    one, two, images, labels = mnist(tmp_path, packed)

    assert raconvert.info(one)["format"] == "idx"
    assert np.array_equal(raconvert.read(one), images)
    assert np.array_equal(raconvert.read(two), labels)
    raconvert.convert(one, tmp_path / "x.npy", strict=True)
    assert np.array_equal(np.load(tmp_path / "x.npy"), images)


def test_a_name_that_ends_with_gz_is_written_as_gzip(tmp_path: Path) -> None:
    values = np.arange(12, dtype="<i4").reshape(3, 4) - 5
    np.save(tmp_path / "x.npy", values)
    raconvert.convert(tmp_path / "x.npy", tmp_path / "t10k-images.idx2-ubyte.gz", strict=True)
    raconvert.convert(tmp_path / "x.npy", tmp_path / "y.idx", out_opts={"gzip": "yes"})
    raconvert.convert(tmp_path / "x.npy", tmp_path / "t10k-images-idx3-ubyte.gz", strict=True)
    raconvert.convert(tmp_path / "x.npy", tmp_path / "t10k-images-idx3-ubyte", strict=True)
    as_named = (tmp_path / "t10k-images-idx3-ubyte.gz").read_bytes()
    assert gzip.decompress(as_named) == (tmp_path / "t10k-images-idx3-ubyte").read_bytes()
    assert np.array_equal(load(tmp_path / "t10k-images-idx3-ubyte.gz"), values)

    packed = (tmp_path / "t10k-images.idx2-ubyte.gz").read_bytes()
    assert gzip.decompress(packed)[:12].hex() == "00000c020000000300000004"
    assert np.array_equal(load(tmp_path / "t10k-images.idx2-ubyte.gz"), values)
    assert (tmp_path / "y.idx").read_bytes() == packed


@pytest.mark.parametrize("order", "CF")
def test_big_endian_from_every_source(order: str, tmp_path: Path) -> None:
    """An extent in either byte order, blocks, and a file that is written again byte for byte."""
    values = np.linspace(-1, 1, 12, dtype=">f4").reshape(3, 4)
    np.save(tmp_path / "big.npy", np.asarray(values, order=order))
    np.save(tmp_path / "little.npy", np.asarray(values.astype("<f4"), order=order))
    for name in ("big", "little"):
        raconvert.convert(tmp_path / f"{name}.npy", tmp_path / f"{name}.idx", strict=True)
        assert np.array_equal(load(tmp_path / f"{name}.idx"), values)
    raconvert.convert(tmp_path / "big.idx", tmp_path / "again.idx", strict=True)
    assert (tmp_path / "again.idx").read_bytes() == (tmp_path / "big.idx").read_bytes()


def test_damage_inside_gzip_is_found(tmp_path: Path) -> None:
    one, *_ = mnist(tmp_path, packed=True)
    data = bytearray(one.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "x.idx.gz").write_bytes(data)

    with pytest.raises(Corrupt, match="gzip|inflated|cut off"):
        raconvert.convert(tmp_path / "x.idx.gz", tmp_path / "x.npy")
    assert not (tmp_path / "x.npy").exists()


def test_two_members_and_bytes_behind(tmp_path: Path) -> None:
    save(tmp_path / "x.idx", np.arange(40, dtype="u1"))
    data = (tmp_path / "x.idx").read_bytes()
    packed = gzip.compress(data[:20]) + gzip.compress(data[20:] + b"more")
    (tmp_path / "x.idx.gz").write_bytes(packed)
    report = raconvert.convert(tmp_path / "x.idx.gz", tmp_path / "x.npy")
    assert np.array_equal(np.load(tmp_path / "x.npy"), np.arange(40))
    assert any("4 decompressed bytes after the data" in note for note in report.notes)


def test_a_length_that_cannot_be_in_the_file(tmp_path: Path) -> None:
    head = b"\0\0\x08\x02" + struct.pack(">2I", 1 << 31, 1 << 31)
    (tmp_path / "x.idx").write_bytes(head + b"1234")
    (tmp_path / "x.idx.gz").write_bytes(gzip.compress(head + b"1234"))
    for name, words in (("x.idx", "cut off"), ("x.idx.gz", "cannot hold")):
        with pytest.raises(Corrupt, match=words):
            raconvert.read(tmp_path / name)


def test_other_types_are_refused_with_the_flag_that_helps(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3, dtype="u2"))
    with pytest.raises(WouldLose, match='dtype="int32"'):
        raconvert.convert(tmp_path / "x.npy", tmp_path / "x.idx")
    raconvert.convert(tmp_path / "x.npy", tmp_path / "x.idx", dtype="int32")
    assert np.array_equal(load(tmp_path / "x.idx"), [0, 1, 2])


def test_no_axes_and_other_gzip_files(tmp_path: Path) -> None:
    (tmp_path / "x.idx").write_bytes(b"\0\0\x08\0\1")
    with pytest.raises(Unsupported, match="no axes"):
        raconvert.read(tmp_path / "x.idx")
    (tmp_path / "y.gz").write_bytes(gzip.compress(b"text"))
    with pytest.raises(NotSupportedYet, match="gzip"):
        raconvert.read(tmp_path / "y.gz")
    (tmp_path / "z.gz").write_bytes(b"\x1f\x8b\x08" + zlib.compress(b"x"))
    with pytest.raises(NotSupportedYet, match="gzip"):
        raconvert.read(tmp_path / "z.gz")


def test_fixtures() -> None:
    images = raconvert.read(FIXTURES / "images-idx3-ubyte")
    assert np.array_equal(images, np.arange(3 * 784).reshape(3, 28, 28) * 7 % 256)
    assert raconvert.read(FIXTURES / "labels-idx1-ubyte.gz").tolist() == [0, 4, 8]
    for code in ("i1", "i2", "i4", "f4", "f8"):
        got = raconvert.read(FIXTURES / f"ramp_{code}.idx")
        assert got.dtype == code
        wanted = np.arange(-100, 200, 50).astype(code).reshape(2, 3)
        assert np.array_equal(got, wanted)
        assert np.array_equal(load(FIXTURES / f"ramp_{code}.idx"), wanted)
