"""`python -m tests.sweep`: files of other programs against readers that are not ours."""

from __future__ import annotations

import warnings
from pathlib import Path

import h5py
import nibabel
import nrrd
import numpy as np
import pytest
import scipy.io
import sweep
import tifffile
from PIL import Image

VALUES = np.arange(24, dtype="i2").reshape(2, 3, 4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of files that other libraries wrote."""
    np.save(tmp_path / "a.npy", VALUES)
    np.savez(tmp_path / "a.npz", x=VALUES, y=VALUES[0])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/x"] = VALUES
    scipy.io.savemat(tmp_path / "a.mat", {"x": VALUES})
    nrrd.write(str(tmp_path / "a.nrrd"), VALUES)
    nibabel.save(nibabel.Nifti1Image(VALUES, np.eye(4)), tmp_path / "a.nii")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tifffile.imwrite(tmp_path / "a.tif", VALUES)
    (tmp_path / "deeper").mkdir()
    Image.fromarray(VALUES[0].astype("u1")).save(tmp_path / "deeper" / "a.png")
    (tmp_path / "notes.txt").write_text("nothing")
    return tmp_path


def test_files_of_others_are_equal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep.main([str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = {line.split()[0]: line.split()[1:3] for line in lines[1:]}
    formats = {"npy", "npz", "hdf5", "mat", "nrrd", "nifti", "tiff", "png"}
    assert {name: tuple(found[name]) for name in formats} == dict.fromkeys(formats, ("1", "1"))
    assert "unknown" in found


def test_a_wrong_number_is_found(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sweep.READERS, "npy", lambda path: {"": np.load(path) + 1})
    assert sweep.main([str(folder)]) == 1
    assert f"{folder / 'a.npy'}: different" in capsys.readouterr().out
