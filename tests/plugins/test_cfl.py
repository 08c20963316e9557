"""What is special to CFL: the program of BART, and its cfl.py, are the oracles."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pairs import Pairs, nothing_said

import raconvert
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.errors import Corrupt, ReadFailed, TargetExists, Unsafe, WouldLose

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "volumes"

VALUES = (np.arange(24) + 1j * np.arange(24)[::-1]).astype("<c8").reshape(2, 3, 4)


def readcfl(path: Path) -> np.ndarray:
    """What BART's cfl.py does, but for the lengths of 1 at the end, which it drops."""
    lines = path.with_suffix(".hdr").read_text().splitlines()
    dims = [int(word) for word in lines[1].split()]
    return np.fromfile(path.with_suffix(".cfl"), "<c8").reshape(dims, order="F")


def writecfl(path: Path, values: np.ndarray) -> None:
    """What BART's cfl.py does."""
    path.with_suffix(".hdr").write_text(
        "# Dimensions\n" + "".join(f"{n} " for n in values.shape) + "\n"
    )
    values.T.astype("<c8").tofile(path.with_suffix(".cfl"))


def test_a_seal_that_is_not_text_says_nothing(tmp_path: Path) -> None:
    writecfl(tmp_path / "x", VALUES)
    header = tmp_path / "x.hdr"
    header.write_bytes(header.read_bytes() + b"# raconvert seal: \xa3\xff 96 00000000\n")

    for name in ("x.hdr", "x.cfl"):
        assert np.array_equal(raconvert.read(tmp_path / name), VALUES)


IN_PAIRS = (
    Pairs(
        name="cfl",
        suffix=".cfl",
        read=readcfl,
        write=writecfl,
        can_write=lambda values: values.dtype.str == "<c8" and values.ndim > 0 and values.size > 0,
        order="F",
        guest=True,
        usual="complex64",
        types="= complex64 x *",
        shapes="= * ~ () x 0 4,0 0,4 2,0,3 3,0,2",
        most_axes={"complex64": 16},
        said=nothing_said,
    ),
)


@pytest.fixture(scope="module")
def bart(tool: Callable[..., str]) -> Callable[..., str]:
    """Return `bart(*words, cwd)`, which runs the toolbox and returns its output."""

    def run(*words: str, cwd: Path) -> str:
        done = subprocess.run(
            [tool("bart"), *words], cwd=cwd, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    return run


def test_bart_writes_what_we_read(bart: Callable[..., str], tmp_path: Path) -> None:
    bart("phantom", "-x", "16", "-s", "2", "x", cwd=tmp_path)
    text = (tmp_path / "x.hdr").read_text()
    assert len(text.splitlines()[1].split()) == 16
    wanted = readcfl(tmp_path / "x.cfl")
    assert wanted.shape == (16, 16, 1, 2) + (1,) * 12

    for name in ("x.hdr", "x.cfl"):
        assert np.array_equal(raconvert.read(tmp_path / name), wanted.reshape(16, 16, 1, 2))
    values = raconvert.read(tmp_path / "x.cfl", in_opts={"dims": "all"})
    assert np.array_equal(values, wanted)
    with raconvert.open(tmp_path / "x.hdr") as array:
        assert "phantom" in array.meta.formats["cfl"]["sections"]
    raconvert.convert(tmp_path / "x.cfl", tmp_path / "y.cfl", strict=True)
    assert "phantom" in (tmp_path / "y.hdr").read_text()
    assert bart("nrmse", "-t", "0", "x", "y", cwd=tmp_path) is not None


def test_bart_reads_what_we_write(bart: Callable[..., str], tmp_path: Path) -> None:
    """Element [i,j,k] is where BART finds it, also of a real array in Fortran order."""
    np.save(tmp_path / "x.npy", VALUES)
    raconvert.convert(tmp_path / "x.npy", tmp_path / "x.cfl", strict=True)
    bart("slice", "0", "1", "1", "2", "2", "3", "x", "one", cwd=tmp_path)
    assert readcfl(tmp_path / "one.cfl").ravel().tolist() == [VALUES[1, 2, 3]]
    np.save(tmp_path / "r.npy", np.asfortranarray(VALUES.real))
    with pytest.raises(WouldLose, match='dtype="complex64"'):
        raconvert.convert(tmp_path / "r.npy", tmp_path / "r.cfl")
    raconvert.convert(tmp_path / "r.npy", tmp_path / "r.cfl", dtype="complex64")
    assert np.array_equal(readcfl(tmp_path / "r.cfl"), VALUES.real)


@pytest.mark.parametrize("suffix", [".hdr", ".cfl"])
def test_either_file_may_be_named(suffix: str, tmp_path: Path) -> None:
    report = raconvert.write(tmp_path / f"x{suffix}", VALUES)
    assert {Path(path).name for path in report.written} == {"x.hdr", "x.cfl"}
    assert np.array_equal(readcfl(tmp_path / "x.cfl"), VALUES)
    for name in ("x.hdr", "x.cfl"):
        assert np.array_equal(raconvert.read(tmp_path / name), VALUES)


def test_all_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.cfl").write_bytes(b"mine")
    with pytest.raises(TargetExists):
        raconvert.write(tmp_path / "x.hdr", VALUES)
    assert os.listdir(tmp_path) == ["x.cfl"]
    raconvert.write(tmp_path / "x.hdr", VALUES, overwrite=True)
    assert np.array_equal(readcfl(tmp_path / "x.cfl"), VALUES)


def test_a_partner_that_is_missing_cut_or_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    writecfl(folder / "x.cfl", VALUES)
    data = (folder / "x.cfl").read_bytes()
    (folder / "x.cfl").write_bytes(data[:-8])
    with pytest.raises(Corrupt, match="as long as its header"):
        raconvert.read(folder / "x.hdr")
    (folder / "x.cfl").unlink()
    with pytest.raises(ReadFailed, match="data of the header"):
        raconvert.read(folder / "x.hdr")
    (tmp_path / "secret").write_bytes(data)
    (folder / "x.cfl").symlink_to(tmp_path / "secret")
    with pytest.raises(Unsafe, match="outside"):
        raconvert.read(folder / "x.hdr")


@pytest.mark.parametrize(
    "text", ["# Dimensions\n", "# Dimensions\n2 0\n", "# Dimensions\n-2\n", "# Dimensions\n2 x\n",
             "# Dimensions\n" + "1 " * 17 + "\n", "# Dimensions\n" + "9" * 19 + "\n",
             "# Dimensions\n" + "9" * 99 + "\n", "# Command\nx\n"],
)  # fmt: skip
def test_odd_headers_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.hdr").write_text(text)
    (tmp_path / "x.cfl").write_bytes(bytes(16))
    with pytest.raises(Corrupt):
        raconvert.read(tmp_path / "x.cfl")


# .ra as BART reads it ----------------------------------------------------------------------------


@pytest.mark.parametrize("order", "CF")
def test_bart_reads_an_ra_of_16_axes(order: str, bart: Callable[..., str], tmp_path: Path) -> None:
    """RA lists the axes, the fastest first: the last index of NumPy is the first of BART."""
    np.save(tmp_path / "x.npy", np.asarray(VALUES, order=order))
    report = raconvert.convert(tmp_path / "x.npy", tmp_path / "x.ra", out_opts={"profile": "bart"})
    assert ["16" in str(fit) for fit in report.equivalent] == [True]
    bart("copy", "x.ra", "y", cwd=tmp_path)
    assert readcfl(tmp_path / "y.cfl").shape == (4, 3, 2) + (1,) * 13
    assert np.array_equal(readcfl(tmp_path / "y.cfl").squeeze().T, VALUES)
    bart("copy", "y", "z.ra", cwd=tmp_path)
    assert (tmp_path / "z.ra").read_bytes()[:192] == (tmp_path / "x.ra").read_bytes()[:192]
    assert (tmp_path / "z.ra").read_bytes() == (tmp_path / "x.ra").read_bytes()
    assert np.array_equal(raconvert.read(tmp_path / "z.ra").squeeze(), VALUES)


def test_what_bart_reads_not_is_refused(tmp_path: Path) -> None:
    bart_ra = {"profile": "bart"}
    path, odd = tmp_path / "x.ra", [np.zeros((2, 3), "f4"), np.zeros((2, 0), "c8")]
    for values, words in zip(odd, ('dtype="complex64"', "none of length 0"), strict=True):
        with pytest.raises(WouldLose, match=words):
            raconvert.write(path, values, out_opts=bart_ra)
    meta = Metadata(axes=[Axis(name="x"), Axis()][::-1])
    with pytest.raises(WouldLose, match='meta="drop"'):
        raconvert.write(path, np.zeros((2, 3), "c8"), meta=meta, out_opts=bart_ra)
    np.save(tmp_path / "r.npy", odd[0])
    raconvert.convert(tmp_path / "r.npy", path, dtype="complex64", out_opts=bart_ra)
    with raconvert.open(path) as array:
        assert array.dims == (3, 2) + (1,) * 14


def test_a_cfl_becomes_an_ra_for_bart_and_back(bart: Callable[..., str], tmp_path: Path) -> None:
    bart("phantom", "-x", "8", "x", cwd=tmp_path)
    raconvert.convert(tmp_path / "x.cfl", tmp_path / "x.ra", out_opts={"profile": "bart"})
    bart("nrmse", "-t", "0", "x", "x.ra", cwd=tmp_path)
    raconvert.convert(tmp_path / "x.ra", tmp_path / "y.cfl")
    bart("nrmse", "-t", "0", "x", "y", cwd=tmp_path)


def test_fixture() -> None:
    wanted = np.array([[1, 3, 5], [2, 4, 6]]) * (1 - 1j)
    for suffix in (".hdr", ".cfl"):
        with raconvert.open(FIXTURES / f"bart_matrix{suffix}") as array:
            assert np.array_equal(array, wanted)
            assert "reshape 3 2 3" in array.meta.formats["cfl"]["sections"]
