"""Array and metadata are turned together, once, whatever else happens on the way."""

from __future__ import annotations

import copy
import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import every

import raconvert
from raconvert import Array, Axis, Metadata

VALUES = np.arange(24, dtype="<f4").reshape(2, 3, 4)
AXES = [Axis("a", labels=["p", "q"]), Axis("b", spacing=0.5), Axis("c", units="mm", spacing=2.0)]
# What else is asked of a conversion: each of these makes another array of the one that was read.
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "cast": {"dtype": "float64"},
    "stored in the other order": {"axes": "fortran"},
    "stored row by row": {"axes": "c"},
    "cast and stored in the other order": {"dtype": "float64", "axes": "fortran"},
}


def one_of(path: Path | str) -> Array:
    found = raconvert.open(path)
    return found if isinstance(found, Array) else next(iter(found.values()))


def facts(axes: Any, fields: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return [tuple(getattr(axis, field) for field in fields) for axis in axes]


def written(path: Path, values: np.ndarray, axes: list[Axis]) -> Path:
    array = Array(values, name="x", meta=Metadata(axes=axes))
    several = path.suffix in (".h5", ".har", ".mat")
    raconvert.write(path, {"x": array} if several else array, meta=None)
    return path


@every("way", WAYS)
@every("named", [False, True], ids=["alone", "named"])
@every("kind", ["f4", "?"])
@every(
    "first, second",
    [
        pair
        for pair in itertools.product(["h5", "zarr", "ra", "nrrd", "zip"], repeat=2)
        if pair[0] != pair[1]
    ],
    ids="-".join,
)
def test_axes_stay_on_their_axis(
    tmp_path: Path, first: str, second: str, kind: str, named: bool, way: str
) -> None:
    options = dict(WAYS[way])
    if kind == "?":
        options.pop("dtype", None)
    source = written(tmp_path / f"in.{first}", (VALUES % 2).astype(kind), AXES)
    wanted = one_of(source)
    many = second in ("h5", "zarr", "zip")
    target = tmp_path / f"out.{second}"
    raconvert.convert(source, f"{target}#img" if named and many else target, **options)
    with one_of(target) as back:
        assert back.shape == wanted.shape
        assert np.array_equal(back, wanted)
        fields = ("name", "labels", "spacing", "units")
        assert facts(back.axes, fields) == facts(AXES, fields)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_axes_go_where_they_are_moved(tmp_path: Path, order: tuple[int, ...]) -> None:
    source = written(tmp_path / "in.h5", VALUES, AXES)
    for suffix in ("ra", "npz", "zarr", "h5"):
        target = tmp_path / f"out.{suffix}"
        words = ",".join(map(str, order))
        raconvert.convert(source, target, axes=words, dtype="float64", meta="sidecar")
        with one_of(target) as back:
            assert np.array_equal(back, VALUES.transpose(order))
            assert back.axes == tuple(AXES[axis] for axis in order)


@pytest.mark.parametrize("suffix", ["har", "mat", "nii"])
@pytest.mark.parametrize("dtype", [None, "float32"])
def test_column_major_formats_have_names_where_h5py_has_them(
    tmp_path: Path, suffix: str, dtype: str | None
) -> None:
    source = written(tmp_path / "in.h5", VALUES.astype("f4" if dtype is None else "f8"), AXES)
    target = tmp_path / f"out.{suffix}"
    raconvert.convert(source, target, dtype=dtype, meta="sidecar")
    raconvert.convert(target, tmp_path / "back.h5")
    import h5py

    with h5py.File(tmp_path / "back.h5") as file:
        (dataset,) = [d for d in file.values() if getattr(d, "ndim", 0) == 3]
        names = [dim.label or next(iter(dim.keys()), "") for dim in dataset.dims]
        assert np.array_equal(dataset[()], VALUES)
    assert names == ["a", "b", "c"]


@every("suffix", ["ra", "nrrd", "mha", "npy"])
@every("second", ["h5", "zarr", "tif", "safetensors", "npy", "ra", "mat"])
def test_an_order_in_memory_keeps_the_indices(tmp_path: Path, suffix: str, second: str) -> None:
    raconvert.write(tmp_path / f"a.{suffix}", VALUES)
    for axes in ("fortran", "c"):
        target = tmp_path / f"{axes}.{second}"
        raconvert.convert(tmp_path / f"a.{suffix}", target, axes=axes)
        with one_of(target) as back:
            assert np.array_equal(back, VALUES)


def test_metadata_is_a_value() -> None:
    meta = Metadata(axes=AXES, attributes={"a": 1}, formats={"nrrd": {"number": 1}})
    for change in (
        lambda: setattr(meta, "units", "m"),
        lambda: setattr(meta.axes[0], "name", "z"),
        lambda: meta.attributes.__setitem__("a", 2),
        lambda: meta.attributes.update(b=1),
        lambda: meta.formats["nrrd"].pop("number"),
        lambda: meta.formats.__delitem__("nrrd"),
        lambda: delattr(meta, "axes"),
    ):
        with pytest.raises((AttributeError, TypeError), match=r"replace|cannot be changed"):
            change()
    assert meta.replace(units="m").units == "m"
    assert meta.units is None
    for same in (copy.copy(meta), copy.deepcopy(meta), pickle.loads(pickle.dumps(meta))):
        assert same == meta
        assert hash(same.axes) == hash(meta.axes)


def test_metadata_of_an_array_fits_any_other_of_its_shape() -> None:
    """However either lies in memory: both are in the order of the shape."""
    row = Array(VALUES, index_order="C", meta=Metadata(axes=AXES))
    column = Array(VALUES, index_order="F", meta=row.meta)
    assert column.axes == row.axes
    assert column.ra_axes == row.ra_axes[::-1]
    assert column.T.axes == row.T.axes == row.axes[::-1]
    assert row.T.meta.permuted((2, 1, 0)) == row.meta
