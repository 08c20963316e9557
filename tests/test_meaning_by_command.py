"""Meaning on the command line: one case of each kind, made and judged by other libraries alone.

Only the command and `raconvert.convert` are used, so that the file runs with any version:
`PYTHONPATH=TREE python -P -m pytest --noconftest tests/test_meaning_by_command.py`.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest

import raconvert
from raconvert.cli import main

if TYPE_CHECKING:
    from pathlib import Path

VALUES = np.arange(24, dtype="<f4").reshape(2, 3, 4)


def ran(*words: object) -> int:
    try:
        return main([str(word) for word in words])
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize("options", [[], ["--dtype", "float64"], ["--axes", "2,0,1"]])
def test_coordinates_stay_on_their_axis(tmp_path: Path, options: list[str]) -> None:
    nibabel = pytest.importorskip("nibabel")
    image = nibabel.Nifti1Image(VALUES, None)
    image.header.set_zooms((2.0, 3.0, 5.0))
    nibabel.save(image, tmp_path / "x.nii")
    assert ran(tmp_path / "x.nii", "-o", f"{tmp_path / 'y.h5'}#img", *options) == 0
    order = (2, 0, 1) if "--axes" in options else (0, 1, 2)
    with h5py.File(tmp_path / "y.h5") as file:
        assert np.array_equal(file["img"], VALUES.transpose(order))
        steps = [float(dim[0][1] - dim[0][0]) for dim in file["img"].dims]
    assert steps == [(2.0, 3.0, 5.0)[axis] for axis in order]


@pytest.mark.parametrize("suffix", ["nrrd", "mha"])
def test_an_oblique_image_is_where_it_was(tmp_path: Path, suffix: str) -> None:
    nibabel, itk = pytest.importorskip("nibabel"), pytest.importorskip("SimpleITK")
    turned = [[0.0, -1.6, 1.2, 7.0], [-2.0, 0.0, 0.0, -3.0], [0.0, 1.2, 1.6, 11.0], [0, 0, 0, 1]]
    image = nibabel.Nifti1Image(VALUES, np.array(turned))
    nibabel.save(image, tmp_path / "x.nii")
    assert ran(tmp_path / "x.nii", "-o", tmp_path / f"y.{suffix}") == 0
    found = itk.ReadImage(str(tmp_path / f"y.{suffix}"))
    for corner in itertools.product((0, 1), (0, 2), (0, 3)):
        at = image.affine @ [*corner, 1] * [-1, -1, 1, 1]  # RAS, ITK has LPS
        assert np.allclose(found.TransformIndexToPhysicalPoint(corner), at[:3], atol=1e-4)
        assert found[corner] == VALUES[corner]


@pytest.mark.filterwarnings("ignore")  # types of texts that Zarr has no specification for
@pytest.mark.parametrize(("first", "second"), [("nc", "zarr"), ("zarr", "nc")])
def test_a_dataset_is_identical(tmp_path: Path, first: str, second: str) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    pytest.importorskip("zarr")
    made = xarray.Dataset(
        {"t": (("time", "x"), np.arange(6.0).reshape(3, 2), {"long_name": "a", "units": "K"})},
        {"time": ("time", [0, 1, 5], {"units": "days since 2001-01-01"}), "x": ["p", "q"]},
        {"title": "a set"},
    )
    made["t"].encoding.update(dtype="i2", _FillValue=-9, scale_factor=0.5)

    def opened(name: str) -> Any:
        path = tmp_path / name
        if name.endswith("zarr"):
            found = xarray.open_zarr(path, consolidated=False, chunks=None).load()
        else:
            found = xarray.load_dataset(path, engine="h5netcdf")
        for one in (found, *found.variables.values()):
            one.attrs.pop("raconvert", None)  # the record for the way back
        return found.assign_coords(x=found["x"].astype(object))  # texts, of any type

    if first == "zarr":
        made.to_zarr(tmp_path / "x.zarr", consolidated=False)
    else:
        made.to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    assert ran(tmp_path / f"x.{first}", "-o", tmp_path / f"y.{second}") == 0
    xarray.testing.assert_identical(opened(f"y.{second}"), opened(f"x.{first}"))


def test_neighbours_in_a_container_stay(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file["a"], file["g/b"] = VALUES, [1, 2, 3]
    np.save(tmp_path / "x.npy", VALUES[0])
    target = f"{tmp_path / 'all.h5'}#a"
    assert ran(tmp_path / "x.npy", "-o", target) == 5
    assert ran(tmp_path / "x.npy", "-o", target, "--overwrite") == 0
    assert ran(tmp_path / "x.npy", "-o", f"{tmp_path / 'all.h5'}#new") == 0
    with h5py.File(tmp_path / "all.h5") as file:
        assert sorted(file) == ["a", "g", "new"]
        assert np.array_equal(file["a"], VALUES[0])
        assert np.array_equal(file["new"], VALUES[0])
        assert file["g/b"][()].tolist() == [1, 2, 3]


def test_a_bare_ra_says_how_it_is_indexed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", VALUES[0])
    assert ran(tmp_path / "x.npy", "-o", tmp_path / "x.ra") == 0
    assert ran(tmp_path / "x.ra", "-o", tmp_path / "y.mat", "--strict") == 4
    assert not (tmp_path / "y.mat").exists()
    capsys.readouterr()
    assert ran(tmp_path / "x.ra", "-o", tmp_path / "y.mat") == 0
    assert "--index-order" in capsys.readouterr().err
    strict = ["--strict", "--index-order", "C"]
    assert ran(tmp_path / "x.ra", "-o", tmp_path / "z.mat", *strict) == 0


def test_types_stay_what_they_are(tmp_path: Path) -> None:
    """Floats of one byte, which formats without them refuse; strings end where their padding is."""
    about = {"x": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}
    header = json.dumps(about).encode()
    data = len(header).to_bytes(8, "little") + header + bytes([0, 0x38, 0x40, 0xB8])
    (tmp_path / "x.safetensors").write_bytes(data)
    assert ran(tmp_path / "x.safetensors", "-o", tmp_path / "y.npy") == 4
    assert ran(tmp_path / "x.safetensors", "-o", tmp_path / "y.h5") == 0
    with h5py.File(tmp_path / "y.h5") as file:
        assert file["x"].dtype.kind == "f"
        assert file["x"].id.get_type().get_size() == 1
        values = np.empty(4, "f4")
        file["x"].id.read(h5py.h5s.ALL, h5py.h5s.ALL, values, h5py.h5t.NATIVE_FLOAT)
    assert values.tolist() == [0.0, 1.0, 2.0, -1.0]


def test_a_list_keeps_its_order(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("10.npy", "b.npy", "a.npy", "9.npy")]
    for number, path in enumerate(paths):
        np.save(path, VALUES + number)
    raconvert.convert(paths, tmp_path / "all.npy")
    assert np.load(tmp_path / "all.npy")[:, 0, 0, 0].tolist() == [0.0, 1.0, 2.0, 3.0]
