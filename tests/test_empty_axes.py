"""Empty arrays with axes that no header can hold: refused before anything is written."""

from __future__ import annotations

import struct
from pathlib import Path

import h5py
import numpy as np
import pytest
from cases import every

from raconvert.cli import main

HUGE = ((2**40, 2**40, 0), (0, 2**62), (0, 2**31, 2**31), (2**60, 0, 8))
# Their readers count the bytes that the other axes span, or have axes of 31 or 32 bits.
TARGETS = (
    "x.ra", "x.zip", "x.tar", "x", "x.npy", "x.npz", "x.nrrd", "x.har", "x.mat", "x.scidb", "x.png",
)  # fmt: skip


def made(folder: Path, shape: tuple[int, ...], dtype: str = "<f8") -> Path:
    """An HDF5 file of one empty array, written by h5py."""
    path = folder / "source.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("an_array", shape, dtype)
    return path


@every("shape", HUGE, ids=str)
@every("target", TARGETS)
def test_it_is_refused_by_the_plan(
    target: str, shape: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = made(tmp_path, shape)
    to = ["--to", "bundle"] if target == "x" else []
    for more in ([], ["--dry-run"]):
        code = main([str(source), "-o", str(tmp_path / target), *to, *more])

        error = capsys.readouterr().err
        assert code == 4, error
        assert "array 'an_array': shape: " in error
        assert ".tmp" not in error
        assert [path.name for path in tmp_path.iterdir()] == ["source.h5"]


@pytest.mark.parametrize("shape", [(0, 2**32), (2**31, 0), (0, 2**60 - 1), (2**30, 2**29, 0, 1)])
def test_what_the_header_can_hold_is_written(shape: tuple[int, ...], tmp_path: Path) -> None:
    source = made(tmp_path, shape)

    assert main([str(source), "-o", str(tmp_path / "x.ra")]) == 0
    assert main([str(tmp_path / "x.ra"), "-o", str(tmp_path / "y.h5")]) == 0

    fixed = struct.unpack("<8s5Q", (tmp_path / "x.ra").read_bytes()[:48])
    assert fixed == (b"rawarray", 0, 3, 8, 0, len(shape))
    dims = struct.unpack(f"<{len(shape)}Q", (tmp_path / "x.ra").read_bytes()[48:])
    assert dims == shape[::-1]
    with h5py.File(tmp_path / "y.h5") as file:
        assert [found.shape for found in file.values()] == [shape]


def test_the_largest_empty_array_that_numpy_loads_is_written(tmp_path: Path) -> None:
    """NumPy itself is the judge of where the limit lies."""
    shape = (0, 2**60 - 1)
    assert main([str(made(tmp_path, shape)), "-o", str(tmp_path / "x.npy")]) == 0
    assert np.load(tmp_path / "x.npy").shape == shape
    with pytest.raises(ValueError, match="too big"):
        np.empty((0, 2**60))


@pytest.mark.parametrize("encoding", ["none", "bits"])
def test_the_words_of_a_bit_array_count(encoding: str, tmp_path: Path) -> None:
    """Its element is eight bytes wide in the header, whatever an element takes."""
    source = made(tmp_path, (0, 2**61), "?")

    code = main([str(source), "-o", str(tmp_path / "x.ra"), "--out-opt", f"encoding={encoding}"])

    assert code == {"none": 0, "bits": 4}[encoding]
