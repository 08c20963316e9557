"""What is special to plain bytes: numpy.fromfile is the oracle."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from cases import every
from pairs import Pairs, little

import raconvert
from raconvert.cli import main
from raconvert.errors import Corrupt, Unsupported, UsageError

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "learning"

IN_PAIRS = (
    Pairs(name="raw", suffix="", read=lambda path: np.fromfile(path, "u1"), reads_only=True),
)

TYPES = ["bool", "int8", "uint16", ">u2", "<i4", ">int64", "float16", "float32", ">f8", "complex64",
         ">c16", "S3", "<U2", "<M8[s]"]  # fmt: skip


@every("dtype", TYPES)
@every("order", "CF")
def test_types_orders_and_offsets(dtype: str, order: str, tmp_path: Path) -> None:
    values = np.zeros((4, 6), dtype.replace("int64", "i8"))
    values.view("u1")[...] = np.arange(values.nbytes).reshape(4, -1) % (
        2 if dtype == "bool" else 90
    )
    if dtype == "<U2":
        values = np.resize(["ab", "ß", ""], (4, 6)).astype(dtype)
    (tmp_path / "x.bin").write_bytes(b"header!" + values.tobytes(order) + b"end")
    in_opts = {"dtype": dtype, "shape": "4,6", "offset": 7, "order": order}
    report = raconvert.convert(tmp_path / "x.bin", tmp_path / "x.npy", from_="raw", in_opts=in_opts)
    got = np.load(tmp_path / "x.npy")
    assert got.dtype == little(values).dtype
    assert np.array_equal(got, values)
    assert any("3 bytes after the data" in note for note in report.notes)


def test_by_the_command_line(tmp_path: Path) -> None:
    values = np.arange(480 * 4, dtype=">u2").reshape(4, 480)
    values.tofile(tmp_path / "x.raw")
    words = ["--from", "raw", "--in-opt", "dtype=>u2", "--in-opt", "shape=-1x480"]
    assert main([*words, str(tmp_path / "x.raw"), "-o", str(tmp_path / "x.ra")]) == 0
    assert np.array_equal(raconvert.read(tmp_path / "x.ra"), values)
    assert main(["--from", "raw", str(tmp_path / "x.raw"), "-o", str(tmp_path / "y.ra")]) == 2


def test_bfloat16_and_no_shape(tmp_path: Path) -> None:
    values = np.linspace(-1, 1, 6).astype(ml_dtypes.bfloat16)
    values.tofile(tmp_path / "x.bin")
    got = raconvert.read(tmp_path / "x.bin", from_="raw", in_opts={"dtype": "bfloat16"})
    assert got.dtype == ml_dtypes.bfloat16
    assert np.array_equal(got, values)


@pytest.mark.parametrize(
    ("options", "error"),
    [({}, UsageError), ({"dtype": "O"}, UsageError), ({"dtype": "f3"}, UsageError),
     ({"dtype": "__import__"}, UsageError), ({"dtype": "V0"}, UsageError),
     ({"dtype": "S0"}, UsageError), ({"dtype": "u1", "shape": "2,x"}, UsageError),
     ({"dtype": "u1", "shape": "-1,-1"}, UsageError), ({"dtype": "u1", "shape": "-2"}, UsageError),
     ({"dtype": "u1", "offset": 11}, UsageError), ({"dtype": "u1", "offset": -1}, UsageError),
     ({"dtype": "u1", "shape": "11"}, Corrupt), ({"dtype": "u1", "shape": "-1,3"}, Corrupt),
     ({"dtype": "f8", "shape": "0,-1"}, Corrupt), ({"dtype": "u1", "shape": "9" * 19 + ",9"}, Corrupt)],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(
    options: dict[str, object], error: type[Exception], tmp_path: Path
) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(10))
    with pytest.raises(error):
        raconvert.read(tmp_path / "x.bin", from_="raw", in_opts=options)


def test_it_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="read only"):
        raconvert.write(tmp_path / "x.bin", np.zeros(3), to="raw")


def test_fixture() -> None:
    options = {"dtype": ">u2", "shape": "3,4", "offset": 8}
    got = raconvert.read(FIXTURES / "plain.raw", from_="raw", in_opts=options)
    assert np.array_equal(got, np.arange(0, 60000, 5000).reshape(3, 4))
