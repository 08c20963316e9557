"""Floats of one byte: every bit pattern of each kind, in every format that can name it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from raconvert.plugins.hdf5.tables import FLOAT8_LAYOUTS

import raconvert
from raconvert.arrays.dtypes import FLOAT8
from raconvert.catalogue import ROWS
from raconvert.errors import UsageError, WouldLose

if TYPE_CHECKING:
    from pathlib import Path

ml_dtypes = pytest.importorskip("ml_dtypes")
HOLDERS = {row.name: row for row in ROWS if row.float8}
PLACES = {"bundle": "b", "zip": "b.zip", "tar": "b.tar", "hdf5": "b.h5"}
KINDS = [name for name in FLOAT8 if hasattr(ml_dtypes, name)]


def every(kind: str) -> Any:
    """Return all bit patterns of a kind, in two rows."""
    return np.arange(256, dtype="u1").view(kind).reshape(2, 128)


def place(folder: Path, name: str) -> Path:
    """Return the path of a file of a format."""
    return folder / PLACES.get(name, f"b.{name}")


def read(path: Path) -> Any:
    """Return the one array of a file."""
    found = raconvert.read(path)
    return next(iter(found.values())) if isinstance(found, dict) else found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOLDERS)
def test_all_bit_patterns_arrive(tmp_path: Path, name: str, kind: str) -> None:
    if kind not in HOLDERS[name].float8:
        pytest.skip("refused: see below")
    values = every(kind)
    path = place(tmp_path, name)
    raconvert.write(path, values, to=name)
    got = read(path)
    assert got.dtype == values.dtype
    assert got.tobytes() == values.tobytes()
    with raconvert.open(path) as opened:
        array = opened if isinstance(opened, raconvert.Array) else next(iter(opened.values()))
        assert array.dtype == values.dtype
        assert array[1:, ::2].tobytes() == values[1:, ::2].tobytes()
    assert kind in str(raconvert.info(path))

    raconvert.convert(path, tmp_path / "again.ra")
    assert read(tmp_path / "again.ra").dtype == values.dtype
    assert read(tmp_path / "again.ra").tobytes() == values.tobytes()
    raconvert.convert(path, tmp_path / "wide.npy", dtype="float32")
    wide = np.load(tmp_path / "wide.npy")
    assert np.array_equal(wide, values.astype("f4"), equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row", [row.name for row in ROWS if row.writes])
def test_others_refuse_them_and_name_who_holds_them(tmp_path: Path, row: str, kind: str) -> None:
    found = next(one for one in ROWS if one.name == row)
    if kind in found.float8 or found.needs or not found.suffixes:
        pytest.skip("holds it, or needs a package")
    raconvert.write(tmp_path / "a.ra", every(kind))
    path = tmp_path / f"b{found.suffixes[0]}"
    with pytest.raises(WouldLose, match='dtype="float32"') as caught:
        raconvert.convert(tmp_path / "a.ra", path, to=row)
    assert kind in str(caught.value)
    assert "bundle" in str(caught.value)
    assert not path.exists()


@pytest.mark.parametrize("kind", FLOAT8_LAYOUTS)
def test_hdf5_has_a_float_of_its_layout(tmp_path: Path, kind: str) -> None:
    """The library itself converts the finite values, as ml_dtypes does."""
    values = every(kind)
    raconvert.write(tmp_path / "x.h5", values)
    with h5py.File(tmp_path / "x.h5") as file:
        dataset = next(iter(file.values())).id
        assert dataset.get_type().get_size() == 1
        assert dataset.get_type().get_class() == h5py.h5t.FLOAT
        wide = np.zeros(values.shape, "f8")
        dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, wide, h5py.h5t.IEEE_F64LE)
    exponents = (np.arange(256).reshape(2, 128) >> FLOAT8_LAYOUTS[kind][0]) & (
        (1 << FLOAT8_LAYOUTS[kind][1]) - 1
    )
    ours = values.astype("f8")
    usual = (exponents < exponents.max()) & np.isfinite(ours)
    assert usual.sum() > 200
    assert np.array_equal(wide[usual], ours[usual])


@pytest.mark.parametrize("kind", KINDS)
def test_zarr_names_it(tmp_path: Path, kind: str) -> None:
    raconvert.write(tmp_path / "x.zarr", every(kind))
    found = [json.loads(one.read_text()) for one in (tmp_path / "x.zarr").rglob("zarr.json")]
    assert kind in [one.get("data_type") for one in found]
    with pytest.raises(WouldLose, match="version 3"):
        raconvert.write(tmp_path / "y.zarr", every(kind), out_opts={"format": "2"})


def test_safetensors_of_the_library(tmp_path: Path) -> None:
    header = {
        name: {"dtype": name, "shape": [256], "data_offsets": [256 * at, 256 * at + 256]}
        for at, name in enumerate(["F8_E4M3", "F8_E5M2"])
    }
    text = json.dumps(header).encode()
    raw = bytes(range(256)) * 2
    (tmp_path / "x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + raw)
    found = raconvert.read(tmp_path / "x.safetensors")
    assert found["F8_E4M3"].dtype == ml_dtypes.float8_e4m3fn
    assert found["F8_E5M2"].dtype == ml_dtypes.float8_e5m2
    assert found["F8_E5M2"].tobytes() == bytes(range(256))


@pytest.mark.parametrize("name", KINDS)
def test_no_view_and_no_cast_takes_it_for_something_else(name: str, tmp_path: Path) -> None:
    """Zarr 2 has no such type, so that a view of kerchunk has none, and nothing is rounded to it."""
    values = np.arange(4, dtype="u1").view(getattr(ml_dtypes, name))
    raconvert.write(tmp_path / "x.ra", values)
    with pytest.raises(WouldLose, match=f"has no {name}"):
        raconvert.refs(tmp_path / "x.ra", tmp_path / "v.json")
    np.save(tmp_path / "f.npy", np.ones(3))
    with pytest.raises(UsageError, match="is not offered"):
        raconvert.convert(tmp_path / "f.npy", tmp_path / "f.ra", dtype=name)
    for number in range(4):  # the shortcut refuses it as the usual way does
        with pytest.raises(WouldLose, match=f"has no {name}"):
            raconvert.convert(tmp_path / "x.ra", tmp_path / f"{number}.npy")
    assert [path.name for path in tmp_path.glob("?.npy")] == ["f.npy"]
