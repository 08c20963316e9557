"""A DataTree of xarray is written as it is read: groups, attributes and coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
