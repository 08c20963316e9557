"""Memory: bounded whatever the array's size, measured as the peak of a process of its own.

The bound is far below the size of the data; a conversion that held it whole would break it.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import raconvert
from raconvert import convert
from raconvert.errors import TooLarge

ROOT = Path(__file__).resolve().parents[1]
MB = 1 << 20
GB = 1 << 30
BOUND = 200 * MB  # the interpreter with numpy and Pillow takes 40 to 60 of them
BIG = 512 * MB

# Runs one conversion; prints the peak of the resident memory in bytes, or the error.
# ru_maxrss of a child can start at its parent's peak (fork before exec), VmHWM cannot.
DRIVER = """
import json, sys
import raconvert
source, target, options = json.loads(sys.argv[1])
raconvert.convert(source, target, sync=False, **options)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) * 1024)
"""


def peak_of(source: object, target: Path, **options: object) -> int:
    """Return the peak resident memory of a conversion."""
    source = [str(s) for s in source] if isinstance(source, list) else str(source)
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps([source, str(target), options])],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peaks are read from /proc"
)


def npy_header(path: Path, dtype: str, shape: tuple[int, ...], *, fortran: bool = False) -> None:
    """Write only the header of an NPY file."""
    with path.open("wb") as file:
        fields = {"descr": dtype, "fortran_order": fortran, "shape": shape}
        np.lib.format.write_array_header_1_0(file, fields)


def big_npy(path: Path, dtype: str, shape: tuple[int, ...], *, fortran: bool = False) -> Path:
    """Write an NPY file of real data (no holes), a row of 1 MiB at a time."""
    npy_header(path, dtype, shape, fortran=fortran)
    width = np.dtype(dtype).itemsize
    left = int(np.prod(shape, dtype=object)) * width
    with path.open("ab") as file:
        number = 0
        while left:
            piece = np.arange(number, number + MB // width).astype(dtype).tobytes()[:left]
            left -= file.write(piece)
            number += MB // width
    return path


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a file of 512 MiB, int32 of shape (8192, 16384), whose values count up."""
    path = big_npy(tmp_path_factory.mktemp("big") / "big.npy", "<i4", (8192, 16384))
    yield path
    path.unlink()


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    """Give a folder whose files are removed as soon as the test ends, for they are large."""
    folder = tmp_path / "out"
    folder.mkdir()
    yield folder
    for path in folder.iterdir():
        path.unlink()


# Sparse files ----------------------------------------------------------------------------------


def test_8_gib_of_holes_stay_holes_there_and_back(tmp_path: Path) -> None:
    source = tmp_path / "x.npy"
    npy_header(source, "<f8", (GB,))
    places = {0: 1.5, 123_456_789: -2.5, GB - 1: 3.5}
    with source.open("r+b") as file:
        header = file.seek(0, os.SEEK_END)
        file.truncate(header + 8 * GB)
        for index, value in places.items():
            file.seek(header + 8 * index)
            file.write(struct.pack("<d", value))
    if source.stat().st_blocks * 512 > MB:
        pytest.skip("this file system has no sparse files")

    there = peak_of(source, tmp_path / "x.ra")
    back = peak_of(tmp_path / "x.ra", tmp_path / "back.npy")

    assert there < BOUND
    assert back < BOUND
    for path in (tmp_path / "x.ra", tmp_path / "back.npy"):
        assert path.stat().st_size > 8 * GB
        assert path.stat().st_blocks * 512 < MB
    for path in (tmp_path / "x.ra", tmp_path / "back.npy"):
        with raconvert.open(path) as array:
            assert array.shape == (GB,)
            assert {index: float(array.data[index]) for index in places} == places
            assert float(array.data[1]) == 0.0


# 512 MiB of data -------------------------------------------------------------------------------


def test_c_order_to_ra_and_back(big: Path, out: Path) -> None:
    assert peak_of(big, out / "x.ra") < BOUND
    assert (out / "x.ra").stat().st_size == 64 + BIG
    assert peak_of(out / "x.ra", out / "back.npy") < BOUND
    with (out / "back.npy").open("rb") as one, big.open("rb") as other:
        for _ in range(0, BIG + 128, 16 * MB):
            assert one.read(16 * MB) == other.read(16 * MB)


def test_fortran_order(tmp_path: Path, out: Path) -> None:
    source = big_npy(tmp_path / "f.npy", "<i4", (8192, 16384), fortran=True)
    assert peak_of(source, out / "x.ra") < BOUND
    with raconvert.open(out / "x.ra") as array:
        assert (array.shape, array.index_order) == ((8192, 16384), None)
        assert array.data[5000, 10000] == 5000 + 8192 * 10000  # moved to row-major
    source.unlink()


def test_fortran_order_to_c_order(tmp_path: Path, out: Path) -> None:
    """Every element moves, blockwise."""
    source = big_npy(tmp_path / "f.npy", "<i4", (8192, 16384), fortran=True)
    assert peak_of(source, out / "x.npy", axes="c") < BOUND
    values = np.load(out / "x.npy", mmap_mode="r")
    assert values.flags.c_contiguous
    assert values.shape == (8192, 16384)
    assert values[5000, 10000] == 5000 + 8192 * 10000
    assert values[-1, -1] == BIG // 4 - 1
    source.unlink()


def test_big_endian(tmp_path: Path, out: Path) -> None:
    source = big_npy(tmp_path / "b.npy", ">i4", (8192, 16384))
    assert peak_of(source, out / "x.ra") < BOUND
    with raconvert.open(out / "x.ra") as array:
        assert array.data[-1, -1] == BIG // 4 - 1
        assert array.data[1, 0] == 16384
    source.unlink()


def test_cast(big: Path, out: Path) -> None:
    assert peak_of(big, out / "x.ra", dtype="float64") < BOUND
    with raconvert.open(out / "x.ra") as array:
        assert array.dtype == np.float64
        assert array.data[-1, -1] == BIG // 4 - 1


@pytest.mark.parametrize("target", ["x.ra", "x.npy"])
def test_transposed(big: Path, out: Path, target: str) -> None:
    assert peak_of(big, out / target, axes="1,0") < BOUND
    with raconvert.open(out / target) as array:
        assert array.shape == (16384, 8192)
        assert array.data[10000, 5000] == 5000 * 16384 + 10000
        assert array.data[-1, -1] == BIG // 4 - 1


def test_three_axes_turned_round(tmp_path: Path, out: Path) -> None:
    source = big_npy(tmp_path / "c.npy", "<i4", (256, 256, 1024))
    assert peak_of(source, out / "x.ra", axes="2,1,0") < BOUND
    with raconvert.open(out / "x.ra") as array:
        assert array.shape == (1024, 256, 256)
        assert array.data[1000, 30, 20] == 20 * 256 * 1024 + 30 * 1024 + 1000
    source.unlink()


def test_npz_there_and_back(big: Path, out: Path) -> None:
    assert peak_of(big, out / "x.npz") < BOUND
    assert peak_of(out / "x.npz", out / "x.ra") < BOUND
    assert (out / "x.ra").stat().st_size == 64 + BIG


def test_stack_of_many_files(tmp_path: Path, out: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(64):
        np.save(tmp_path / "in" / f"{number}.npy", np.full((1024, 1024), number, "f8"))
    assert peak_of(tmp_path / "in", out / "x.ra") < BOUND
    with raconvert.open(out / "x.ra") as array:
        assert array.shape == (64, 1024, 1024)
        assert [float(array.data[n, 1000, 1000]) for n in range(64)] == list(range(64))


def test_planes_of_a_big_array(tmp_path: Path, out: Path) -> None:
    source = tmp_path / "z.npy"
    npy_header(source, "|u1", (32, 2048, 4096))
    os.truncate(source, source.stat().st_size + BIG // 2)
    assert peak_of(source, out / "{:03d}.png", out_opts={"level": 1, "filter": "none"}) < BOUND
    assert len(list(out.iterdir())) == 32


@pytest.mark.parametrize("encoding", ["leb128", "bits"])
def test_encoded_data_is_written_and_read_in_blocks(
    tmp_path: Path, out: Path, encoding: str
) -> None:
    source = tmp_path / "z.npy"
    npy_header(source, "|b1", (128 * MB,))
    os.truncate(source, source.stat().st_size + 128 * MB)
    assert peak_of(source, out / "x.ra", out_opts={"encoding": encoding}) < BOUND // 2
    assert peak_of(out / "x.ra", out / "y.ra") < BOUND // 2
    assert (out / "y.ra").stat().st_size == 56 + 128 * MB


def test_the_limit_makes_blocks_smaller(tmp_path: Path, out: Path) -> None:
    """What a cast takes above the start of the program goes with --max-memory."""
    source = big_npy(tmp_path / "x.npy", "<i4", (64 * MB // 4,))
    small = peak_of(source, out / "small.ra", dtype="int64", max_memory=8 * MB)
    large = peak_of(source, out / "large.ra", dtype="int64")
    assert small < large - 16 * MB


# Many small files ------------------------------------------------------------------------------


def chunk(kind: bytes, payload: bytes) -> bytes:
    """Return one chunk of a PNG file."""
    return struct.pack(">I", len(payload)) + kind + payload + struct.pack(
        ">I", zlib.crc32(kind + payload)
    )  # fmt: skip


def png_files(folder: Path, count: int, *, text: bool) -> None:
    """Write small PNG files, each with a text of its own if asked for."""
    folder.mkdir()
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0))
    for number in range(count):
        rows = (b"\0" + bytes([number % 256]) * 28) * 28
        texts = chunk(b"tEXt", b"Comment\0number %d" % number) if text else b""
        folder.joinpath(f"{number}.png").write_bytes(
            start + texts + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")
        )


@pytest.mark.parametrize("text", [False, True], ids=["alike", "each-with-its-own-metadata"])
def test_a_stack_of_4_times_the_images_takes_the_same_memory(text: bool) -> None:
    with TemporaryDirectory() as short:  # pytest's own names are so long that they count
        folder = Path(short)
        png_files(folder / "few", 3_000, text=text)
        png_files(folder / "many", 12_000, text=text)

        few = peak_of(folder / "few", folder / "few.ra", max_memory=16 * MB)
        many = peak_of(folder / "many", folder / "many.ra", max_memory=16 * MB)

        assert many < BOUND
        assert many - few < 6 * MB  # 9,000 more paths in a list are some 2 MB
        with raconvert.open(folder / "many.ra") as array:
            assert array.shape == (12_000, 28, 28)
            assert [int(array.data[n, 5, 5]) for n in (0, 300, 11_999)] == [0, 44, 223]
        assert (folder / "many.ra.items.jsonl").exists() == text


# What cannot be done in blocks is refused first ------------------------------------------------


def test_an_lz4_block_above_the_limit_is_refused_and_the_need_is_named(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.npy", np.zeros(4 * MB, "u1"))
    convert(tmp_path / "x.npy", tmp_path / "x.ra", out_opts={"encoding": "lz4"})

    with pytest.raises(TooLarge) as caught:
        convert(tmp_path / "x.ra", tmp_path / "y.ra", max_memory=4 * MB)

    block = (tmp_path / "x.ra").stat().st_size - 56
    need = block + 2 * 4 * MB  # the block, what it decodes to, and the package's own copy
    assert str(need) in str(caught.value)
    assert str(tmp_path / "x.ra") in str(caught.value)
    assert "max_memory=9437184" in str(caught.value)
    assert caught.value.exit_code == 4
    assert not (tmp_path / "y.ra").exists()
    convert(tmp_path / "x.ra", tmp_path / "y.ra", max_memory=9 * MB)


def test_the_need_that_is_named_for_lz4_is_enough(tmp_path: Path, out: Path) -> None:
    source = tmp_path / "z.npy"
    npy_header(source, "|u1", (128 * MB,))
    os.truncate(source, source.stat().st_size + 128 * MB)
    convert(source, out / "x.ra", out_opts={"encoding": "lz4"}, sync=False)
    base = peak_of(out / "x.ra", out / "none.ra", dry_run=True)
    peak = peak_of(out / "x.ra", out / "y.ra")
    assert peak - base < 2 * 128 * MB + (out / "x.ra").stat().st_size + 40 * MB


def test_an_lz4_block_above_the_limit_is_not_written(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.npy", np.zeros(4 * MB, "u1"))
    with pytest.raises(TooLarge, match=str(tmp_path / "x.ra")):
        convert(
            tmp_path / "x.npy", tmp_path / "x.ra", out_opts={"encoding": "lz4"}, max_memory=4 * MB
        )
    assert not (tmp_path / "x.ra").exists()


def test_an_image_above_the_limit_is_refused(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.png", np.zeros((2048, 2048), "u1"))
    with pytest.raises(TooLarge, match="max_memory"):
        convert(tmp_path / "x.png", tmp_path / "x.ra", max_memory=2 * MB)
    assert not (tmp_path / "x.ra").exists()


@pytest.mark.parametrize("key", [0, slice(0, 1), (0, 0)], ids=["one", "slice", "element"])
def test_a_region_of_a_deflated_array_above_the_limit_is_refused(
    tmp_path: Path, key: object
) -> None:
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros((2048, 2048)))
    with (
        raconvert.open(tmp_path / "x.npz", "x", max_memory=8 * MB) as array,
        pytest.raises(TooLarge, match="needs 33554432 bytes"),
    ):
        array[key]


def test_a_region_of_a_mapped_file_needs_no_memory(big: Path) -> None:
    with raconvert.open(big, max_memory=MB) as array:
        assert array[5000, 10000] == 5000 * 16384 + 10000


@pytest.mark.parametrize(
    "options",
    [{}, {"axes": "1,0"}, {"dtype": "float64"}, {"scale": "minmax"}],
    ids=["copy", "transpose", "cast", "scale"],
)
def test_everything_done_in_blocks_works_with_very_little(
    tmp_path: Path, options: dict[str, object]
) -> None:
    values = np.random.default_rng(0).integers(0, 9999, (300, 500)).astype("f4")
    np.save(tmp_path / "x.npy", values)
    convert(tmp_path / "x.npy", tmp_path / "small.npy", max_memory=MB // 8, **options)
    convert(tmp_path / "x.npy", tmp_path / "large.npy", **options)
    assert (tmp_path / "small.npy").read_bytes() == (tmp_path / "large.npy").read_bytes()
