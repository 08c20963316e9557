"""A DataTree of xarray is written as it is read: groups, attributes and coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest

import raconvert
from raconvert.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

xr = pytest.importorskip("xarray")
if not hasattr(xr, "DataTree"):
    pytest.skip("this xarray has no DataTree", allow_module_level=True)

PRIVATE = ("raconvert", "DIMENSION_LABELS")  # attributes that are not of the tree
ENGINES = {"x.zarr": "zarr", "x.nc": "h5netcdf", "x.h5": "h5netcdf"}
OURS = ("x.zarr", "x.nc", "x.h5", "x.zip", "x.tar", "x")


def tree() -> Any:
    root = xr.Dataset(
        {"r": (("y", "x"), np.arange(6.0).reshape(2, 3), {"units": "K"})},
        coords={"y": [0.5, 0.75], "x": ("x", [10, 20, 40], {"units": "m"})},
        attrs={"title": "root"},
    )
    child = xr.Dataset(
        {"t": (("time", "x"), np.arange(12, dtype="i2").reshape(4, 3))},
        coords={"time": [1, 2, 5, 9]},
        attrs={"number": 1},
    )
    deep = xr.Dataset({"s": ((), 3.5), "k": (("k",), np.arange(2) + 5)}, attrs={"deep": "yes"})
    other = xr.Dataset({"t": (("time",), np.arange(2.0))}, coords={"time": [7, 8]})
    return xr.DataTree.from_dict(
        {"/": root, "/g": child, "/g/h": deep, "/other": other,
         "/empty": xr.Dataset(attrs={"e": "1"}), "/void": xr.Dataset()}
    )  # fmt: skip


def opened(path: Path, engine: str) -> Any:
    options = {"consolidated": False} if engine == "zarr" else {}
    with xr.open_datatree(path, engine=engine, **options) as found:
        found.load()
    for node in found.subtree:
        for one in (node, *node.variables.values()):
            for key in PRIVATE:
                one.attrs.pop(key, None)
    return found


@pytest.mark.parametrize("name", ENGINES)
def test_other_engines_open_the_same_tree(tmp_path: Path, name: str) -> None:
    pytest.importorskip(ENGINES[name])
    raconvert.write(tmp_path / name, tree())
    xr.testing.assert_identical(opened(tmp_path / name, ENGINES[name]), tree())


@pytest.mark.parametrize("name", OURS)
def test_the_way_back_is_the_same_tree(tmp_path: Path, name: str) -> None:
    raconvert.write(tmp_path / name, tree(), **({} if "." in name else {"to": "bundle"}))
    back = xr.open_datatree(tmp_path / name, engine="raconvert").load()
    xr.testing.assert_identical(back, tree())
    again = tmp_path / "again.zip"
    raconvert.write(again, back)
    xr.testing.assert_identical(xr.open_datatree(again, engine="raconvert").load(), tree())


def test_a_part_of_a_tree_takes_what_it_inherits(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.zip", tree()["g"])
    back = xr.open_datatree(tmp_path / "x.zip", engine="raconvert").load()
    assert back["t"].coords["x"].values.tolist() == [10, 20, 40]
    assert back["h"].attrs == {"deep": "yes"}
    assert back.attrs == {"number": 1}


def test_what_has_no_place_is_refused_or_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a DataTree is not a single array"):
        raconvert.write(tmp_path / "x.npz", {"a": tree()})
    with pytest.raises(UsageError, match="source has 5 arrays"):
        raconvert.write(tmp_path / "x.npy", tree())
    odd = tree()
    odd["g"].attrs["odd"] = object()
    report = raconvert.write(tmp_path / "x.zip", odd)
    assert any("odd" in str(fit) for fit in report.equivalent)
    assert [path.name for path in tmp_path.iterdir()] == ["x.zip"]


# What formats know of files and groups, besides what xarray has a place for -----------------------


def form(path: Path) -> dict[str, Any]:
    """Types and shapes of the datasets and attributes of an HDF5 file, by path."""
    found: dict[str, Any] = {}
    with h5py.File(path) as file:

        def look(name: str, one: Any) -> None:
            ids = {key: one.attrs.get_id(key) for key in one.attrs}
            attributes = {key: (own.dtype.str, own.shape) for key, own in ids.items()}
            own = (one.dtype.str, one.shape) if isinstance(one, h5py.Dataset) else ()
            found[name] = own, attributes

        look("/", file)
        file.visititems(look)
    return found


def test_types_of_attributes_of_groups_come_back(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number, path in enumerate(("/", "g", "g/h")):
            group = file.require_group(path)
            group.attrs["n"] = np.int16(3)
            group.attrs["s"] = np.bytes_("abc")
            group.attrs["v"] = np.arange(2, dtype=">f4")
            group["d"] = np.arange(6, dtype="<i2").reshape(2, 3)[:, number:]
            group["d"].attrs["k"] = np.uint8(1)
            group["e"] = np.arange(3 + number, dtype="f2")
        file["g/nothing"] = h5py.Empty("f4")

    tree = xr.open_datatree(tmp_path / "a.h5", engine="raconvert")
    report = raconvert.write(tmp_path / "b.h5", tree, strict=True)
    assert not report.equivalent
    assert form(tmp_path / "b.h5") == form(tmp_path / "a.h5")
    assert raconvert.diff(tmp_path / "a.h5", tmp_path / "b.h5")["same"]


def test_a_structure_of_matlab_comes_back(tmp_path: Path) -> None:
    """Axes without names have other lengths in each group, and xarray takes all of them."""
    scipy_io = pytest.importorskip("scipy.io")
    values = {"q": np.ones((2, 2)), "s": {"x": np.arange(3.0), "y": {"z": np.ones((4, 5), "u1")}}}
    scipy_io.savemat(tmp_path / "a.mat", values)
    tree = xr.open_datatree(tmp_path / "a.mat", engine="raconvert")
    assert tree["s/y/z"].shape == (4, 5)
    raconvert.write(tmp_path / "b.mat", tree)
    found = scipy_io.loadmat(tmp_path / "b.mat", simplify_cells=True)
    assert found["s"]["x"].tolist() == [0, 1, 2]
    assert found["s"]["y"]["z"].shape == (4, 5)
    diff = raconvert.diff(tmp_path / "a.mat", tmp_path / "b.mat")
    assert not diff["forms"]
    assert all(one["same"] for one in diff["arrays"])
