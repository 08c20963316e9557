"""Arrays of xarray and pandas: what they say of axes is kept, refused, or named in the report."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import h5py
import nibabel
import nrrd
import numpy as np
import pytest
import yaml
from pairs import quiet

import raconvert
import raconvert.imageio
from raconvert.arrays.array import Array
from raconvert.arrays.dtypes import Element
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.errors import UsageError, WouldLose

if TYPE_CHECKING:
    from pathlib import Path

xr = pytest.importorskip("xarray")
pd = pytest.importorskip("pandas")

VALUES = np.arange(6, dtype="<f4").reshape(2, 3)


def data_array(**changes: Any) -> Any:
    fields = {
        "dims": ("y", "x"),
        "coords": {"y": ("y", [0.5, 0.75], {"units": "m"}), "x": ["a", "b", "c"]},
        "attrs": {"units": "K", "title": "text", "number": np.float32(0.5), "list": np.arange(2)},
        "name": "temperature",
    }
    return xr.DataArray(VALUES, **{**fields, **changes})


def sidecar(path: Path) -> dict[str, Any]:
    fields: dict[str, Any] = yaml.safe_load(path.with_name(f"{path.name}.yaml").read_text())
    return fields


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_data_array_keeps_all(tmp_path: Path, order: str) -> None:
    array = data_array().copy(data=np.asarray(VALUES, order=order))
    report = raconvert.write(tmp_path / "x.ra", array)
    assert report.equivalent == []
    assert np.array_equal(raconvert.read(tmp_path / "x.ra"), VALUES)
    found = sidecar(tmp_path / "x.ra")
    assert found["axes"][::-1] == [
        {"name": "y", "units": "m", "spacing": 0.25, "origin": 0.5},
        {"name": "x", "labels": ["a", "b", "c"]},
    ]
    assert found["units"] == "K"
    assert found["attributes"] == {"title": "text", "number": 0.5, "list": [0, 1]}


def test_transposed_it_is_the_same(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", data_array().transpose("x", "y"))
    assert np.array_equal(raconvert.read(tmp_path / "x.ra"), VALUES.T)
    assert [axis["name"] for axis in sidecar(tmp_path / "x.ra")["axes"]] == ["y", "x"]


def test_a_data_array_in_hdf5_as_h5py_sees_it(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.h5", data_array())
    with h5py.File(tmp_path / "x.h5") as file:
        dataset = file["temperature"]
        assert np.array_equal(dataset[()], VALUES)
        assert [dim.label for dim in dataset.dims] == ["y", "x"]
        assert dataset.attrs["units"] == "K"
        assert dataset.attrs["title"] == "text"


def test_what_has_no_place_is_named(tmp_path: Path) -> None:
    report = raconvert.write(tmp_path / "x.npy", data_array())
    assert "every axis (name)" in " ".join(map(str, report.equivalent))
    odd = data_array(attrs={"odd": object(), "fine": 1})
    report = raconvert.write(tmp_path / "x.ra", odd)
    assert any("'odd'" in str(fit) for fit in report.equivalent)
    times = data_array(coords={"x": np.array(["2020-01-01", "2021-01-01", "2024-01-01"], "M8[ns]")})
    report = raconvert.write(tmp_path / "y.ra", times)
    assert any("axis 'x' become days since 2020-01-01" in str(fit) for fit in report.equivalent)
    kept = sidecar(tmp_path / "y.ra")["axes"][0]
    assert (kept["labels"], kept["units"]) == ([0, 366, 1461], "days since 2020-01-01")
    series = pd.Series([1, 2], pd.to_datetime(["2020-01-01", "2020-01-03"]))
    report = raconvert.write(tmp_path / "s.ra", series)
    assert any("become texts" in str(fit) for fit in report.equivalent)
    assert sidecar(tmp_path / "s.ra")["axes"][0]["labels"][1].startswith("2020-01-03")
    long = data_array(coords={"y": ("y", [0.0, 1.0], {"long_name": "height"})})
    report = raconvert.write(tmp_path / "z.ra", long)
    assert any("'long_name' of coordinate 'y'" in str(fit) for fit in report.equivalent)


COORDINATES = [
    ([0, 2, 4], {"origin": 0, "spacing": 2}),
    ([4, 2, 0], {"origin": 4, "spacing": -2}),
    ([0, 1, 3], {"labels": [0, 1, 3]}),
    ([1, 1, 1], {"labels": [1, 1, 1]}),
    ([0.0, 0.1, 0.30000000000000004], {"labels": [0.0, 0.1, 0.30000000000000004]}),
    ([2**63, 2**63 + 1, 2**63 + 2], {"origin": 2**63, "spacing": 1}),
    ([0.0, np.inf, np.inf], {"labels": [0.0, np.inf, np.inf]}),
    ([True, False, True], {"labels": [True, False, True]}),
]  # fmt: skip


@pytest.mark.parametrize(("coordinate", "told"), COORDINATES, ids=str)
def test_coordinates_are_regular_only_if_that_says_them_exactly(
    tmp_path: Path, coordinate: list[Any], told: dict[str, Any]
) -> None:
    kind = "u8" if coordinate[0] == 2**63 else None
    raconvert.write(tmp_path / "x.ra", data_array(coords={"x": np.array(coordinate, kind)}))
    assert sidecar(tmp_path / "x.ra")["axes"][0] == {"name": "x", **told}


def test_further_coordinates_need_a_container(tmp_path: Path) -> None:
    array = data_array().assign_coords(height=("y", [1.0, 2.0]), run=3)
    with pytest.raises(WouldLose, match="'height', 'run'"):
        raconvert.write(tmp_path / "x.ra", array)
    raconvert.write(tmp_path / "x.npz", array.to_dataset())
    assert sorted(np.load(tmp_path / "x.npz")) == ["height", "run", "temperature"]


def test_a_dataset_becomes_its_variables(tmp_path: Path) -> None:
    pressure = xr.DataArray(np.arange(3), dims="x", attrs={"units": "Pa"})
    dataset = xr.Dataset({"t": data_array(), "p": pressure}, attrs={"source": "model"})
    raconvert.write(tmp_path / "x.h5", dataset)
    with h5py.File(tmp_path / "x.h5") as file:
        assert {"t", "p"} <= set(file)
        assert file.attrs["source"] == "model"
        assert file["p"].attrs["units"] == "Pa"
        assert file["p"].dims[0].label == "x"
        assert np.array_equal(file["t"][()], VALUES)
    with raconvert.open(tmp_path / "x.h5") as bundle:
        for name in "tp":
            assert [*bundle[name].ra_axes[0].labels] == ["a", "b", "c"]
    with pytest.raises(UsageError, match="holds one"):
        raconvert.write(tmp_path / "x.ra", dataset)


def test_a_data_frame_becomes_its_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"a": np.arange(3, dtype="i2"), "b": [0.5, np.nan, -0.0], "c": ["x", "yy", ""]},
        index=pd.Index([10, 20, 40], name="key"),
    )
    frame["n"] = pd.array([1, 2, 3], dtype="Int64")
    frame.attrs = {"title": "text"}
    raconvert.write(tmp_path / "x.npz", frame)
    with np.load(tmp_path / "x.npz") as found:
        assert sorted(found) == ["a", "b", "c", "key", "n"]
        assert found["a"].dtype == np.int16
        assert found["b"].tobytes() == np.array([0.5, np.nan, -0.0]).tobytes()
        assert found["c"].tolist() == ["x", "yy", ""]
        assert found["key"].tolist() == [10, 20, 40]
        assert found["n"].tolist() == [1, 2, 3]
    raconvert.write(tmp_path / "y.npz", frame.reset_index(drop=True))
    assert "index" not in np.load(tmp_path / "y.npz")


# Long tables -------------------------------------------------------------------------------------


def trade() -> Array:
    values = np.arange(18, dtype="<f4").reshape(3, 2, 3)
    regions = Axis("REG", labels=["Row", "EU", "USA"])
    axes = [regions, Axis("COM", labels=["food", "mnfc"]), regions]
    return Array(values, name="TRAD", meta=Metadata("bilateral", "USD", axes))


@pytest.mark.parametrize("index", [True, False])
def test_an_array_as_a_long_table(index: bool) -> None:
    """A row for each element, under its labels; xarray makes the same of the same."""
    table = trade().to_dataframe(index=index)
    names = ["REG", "COM", "REG_2"]
    if not index:
        assert list(table.columns) == [*names, "TRAD"]
        table = table.set_index(names)
    assert table.index.names == names
    assert table.loc[("EU", "mnfc", "Row"), "TRAD"] == np.asarray(trade())[1, 1, 0]
    assert table["TRAD"].dtype == np.float32
    assert table.attrs["units"] == "USD"
    wanted = trade().to_xarray()
    assert table["TRAD"].to_xarray().sel(wanted.coords).drop_attrs().equals(wanted.drop_attrs())


def test_a_long_table_in_any_order_becomes_its_array_again(tmp_path: Path) -> None:
    from harpy import HarFileIO

    table = trade().to_dataframe()
    table.loc[("EU", "mnfc", "Row"), "TRAD"] = 99
    table = table.sample(frac=1, random_state=1)
    raconvert.write(tmp_path / "x.har", table)
    with quiet():
        [found] = HarFileIO.readHeaderArraysFromFile(str(tmp_path / "x.har"))
    wanted = np.array(trade())
    wanted[1, 1, 0] = 99
    assert np.array_equal(found["array"], wanted)
    assert [one["name"].strip() for one in found["sets"]] == ["REG", "COM", "REG"]
    assert [[word.strip() for word in one["dim_desc"]] for one in found["sets"]] == [
        ["Row", "EU", "USA"], ["food", "mnfc"], ["Row", "EU", "USA"],
    ]  # fmt: skip


def test_a_table_of_somebody_else_becomes_an_array(tmp_path: Path) -> None:
    """Labels in the order in which they come first; regular numbers as origin and spacing."""
    rows = [("USA", 2010, 1.5), ("USA", 2020, 2.5), ("EU", 2020, 4.5), ("EU", 2010, 3.5)]
    table = pd.DataFrame(rows, columns=["REG", "year", "gdp"]).set_index(["REG", "year"])
    for values in (table, table["gdp"]):
        raconvert.write(tmp_path / "x.h5", values, overwrite=True)
        with h5py.File(tmp_path / "x.h5") as file:
            assert file["gdp"][()].tolist() == [[1.5, 2.5], [3.5, 4.5]]
            assert [dim.label for dim in file["gdp"].dims] == ["REG", "year"]
        with raconvert.open(tmp_path / "x.h5", "gdp") as array:
            assert [*array.axes[0].labels] == ["USA", "EU"]
            assert (array.axes[1].origin, array.axes[1].spacing) == (2010, 10)
    two = table.assign(n=[1, 2, 4, 3])
    raconvert.write(tmp_path / "y.npz", two)
    assert np.load(tmp_path / "y.npz")["n"].tolist() == [[1, 2], [3, 4]]
    filled = table.iloc[:3].reindex(pd.MultiIndex.from_product([["USA", "EU"], [2010, 2020]]))
    raconvert.write(tmp_path / "z.npz", filled)
    found = np.load(tmp_path / "z.npz")["gdp"]
    assert np.array_equal(found, [[1.5, 2.5], [np.nan, 4.5]], equal_nan=True)


def test_rows_that_are_missing_or_there_twice_are_refused(tmp_path: Path) -> None:
    table = trade().to_dataframe()
    gap = "no row for REG='EU', COM='food', REG_2='USA'"
    with pytest.raises(WouldLose, match=gap) as caught:
        raconvert.write(tmp_path / "x.har", table.drop(("EU", "food", "USA")))
    assert "reindex" in str(caught.value)
    with pytest.raises(WouldLose, match="two rows for REG='Row', COM='food', REG_2='Row'"):
        raconvert.write(tmp_path / "x.har", pd.concat([table, table.iloc[:1]]))
    nameless = table.reset_index().replace("EU", None).set_index(["REG", "COM", "REG_2"])
    with pytest.raises(WouldLose, match="without a label"):
        raconvert.write(tmp_path / "x.har", nameless)
    assert not list(tmp_path.iterdir())


def test_combinations_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    numbers = np.arange(70_000)
    index = pd.MultiIndex.from_arrays([numbers] * 4, names=list("abcd"))
    with pytest.raises(WouldLose, match="no rows for most combinations.*70000 rows"):
        raconvert.write(tmp_path / "x.npy", pd.Series(numbers, index))
    assert not list(tmp_path.iterdir())


def test_tables_of_vectors_scalars_numbers_and_texts(tmp_path: Path) -> None:
    for made in (
        Array(np.arange(3.0), name="v", meta=Metadata(axes=[Axis("REG", labels=["b", "a", "c"])])),
        Array(np.arange(3.0), name="v", meta=Metadata(axes=[Axis("t", spacing=1, origin=0)])),
        Array(np.arange(6.0).reshape(2, 3), name="v", index_order="F"),
        Array(np.arange(6, dtype=">i2").reshape(2, 3), name="v"),
    ):
        table = made.to_dataframe()
        raconvert.write(tmp_path / "x.ra", table, overwrite=True)
        with raconvert.open(tmp_path / "x.ra") as again:
            assert np.array_equal(np.asarray(again), np.asarray(made))
            assert [a.to_dict() for a in again.axes] == [a.to_dict() for a in made.axes]
    assert Array(np.float32(7), name="s").to_dataframe()["s"].tolist() == [7]
    assert Array(np.array([b"a", b""]), name="s").to_dataframe()["s"].tolist() == ["a", ""]
    both = raconvert.Bundle([trade(), trade().replace(name="more")])
    assert list(both.to_dataframe().columns) == ["TRAD", "more"]
    with pytest.raises(UsageError, match="other axes"):
        raconvert.Bundle([trade(), made]).to_dataframe()
    with pytest.raises(UsageError, match="pandas has no "):
        Array(np.zeros(2, [("a", "i4")]), name="r").to_dataframe()


def test_a_series_keeps_its_index(tmp_path: Path) -> None:
    series = pd.Series([1.5, 2.5], index=pd.Index(["p", "q"], name="who"), name="x")
    raconvert.write(tmp_path / "x.ra", series)
    assert raconvert.read(tmp_path / "x.ra").tolist() == [1.5, 2.5]
    assert sidecar(tmp_path / "x.ra")["axes"] == [{"name": "who", "labels": ["p", "q"]}]
    raconvert.write(tmp_path / "x.npz", {"a": series, "b": data_array(), "c": VALUES})
    assert sorted(np.load(tmp_path / "x.npz")) == ["a", "b", "c"]


LEVELS = [(1, "a"), (2, "b")]
REFUSED = {
    "objects": pd.DataFrame({"a": [1, "text"]}, dtype=object),
    "missing": pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
    "missing-text": pd.DataFrame({"a": pd.array(["a", None], dtype="string")}),
    "categories": pd.DataFrame({"a": pd.Categorical(["x", "y"])}),
    "zones": pd.DataFrame({"a": pd.to_datetime(["2020-01-01"]).tz_localize("Europe/Berlin")}),
    "levels": pd.DataFrame({"a": [1, 2]}, index=pd.MultiIndex.from_tuples(LEVELS)),
    "twins": pd.DataFrame([[1, 2]], columns=["a", "a"]),
    "twin-texts": pd.DataFrame([[1, 2]], columns=["1", 1]),
    "objects-array": xr.DataArray(np.array([1, "a"], dtype=object), dims="x"),
    "levels-array": xr.DataArray([1, 2], coords={"x": pd.MultiIndex.from_tuples(LEVELS)}, dims="x"),
    "nul-text": pd.DataFrame({"a": ["x\0"]}),
    "missing-array": pd.array([1, None], dtype="Int64"),
    "levels-index": pd.MultiIndex.from_tuples(LEVELS),
    "categories-index": pd.CategoricalIndex(["x", "y"]),
    "list": [data_array(), data_array()],
    "tuple": (np.zeros(3), pd.Series([1, 2, 3])),
    "lists": [[1, 2], [3, xr.DataArray(4, attrs={"a": 1})]],
    "masks": [np.ma.array([1, 2], mask=[False, True]), np.zeros(2)],
    "arrays": [
        Array(Element("uint", 1, "|"), (2,), data=np.zeros(2, "u1"), meta=Metadata(units="m"))
    ],
    "list-among": {"a": [data_array(), data_array()]},
}


WITHOUT_PLACE = {
    "frame": {"a": pd.DataFrame({"b": [1, 2]})},
    "dataset": {"a": xr.Dataset({"b": ("x", [1, 2])}, attrs={"title": "text"})},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_lost_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WouldLose):
        raconvert.write(tmp_path / "x.npz", REFUSED[name])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", WITHOUT_PLACE)
def test_a_table_is_not_one_array_among_others(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is not a single array"):
        raconvert.write(tmp_path / "x.npz", WITHOUT_PLACE[name])
    assert not list(tmp_path.iterdir())


def test_a_variable_keeps_its_dimensions(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", data_array().variable)
    whole = sidecar(tmp_path / "x.ra")
    assert [axis["name"] for axis in whole["axes"]] == ["x", "y"]
    assert whole["units"] == "K"
    assert whole["attributes"] == {"title": "text", "number": 0.5, "list": [0, 1]}


def test_an_index_keeps_its_name(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.npz", pd.Index([3, 1], name="key"))
    with np.load(tmp_path / "x.npz") as found:
        assert {name: found[name].tolist() for name in found} == {"key": [3, 1]}
    raconvert.write(tmp_path / "y.npy", pd.array([3, 1], dtype="Int16"))
    assert np.load(tmp_path / "y.npy").dtype == np.int16


def test_the_name_of_columns_is_named_as_left_out(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2]}).rename_axis(columns="kind")
    report = raconvert.write(tmp_path / "x.h5", frame)
    assert any("'kind'" in fit.reason for fit in report.equivalent)


def test_imageio_hands_over_what_it_got(tmp_path: Path) -> None:
    iio = pytest.importorskip("imageio.v3")

    iio.imwrite(tmp_path / "x.ra", data_array())
    assert sidecar(tmp_path / "x.ra")["axes"]
    for lost in (np.ma.array([[1, 2]], mask=[[0, 1]]), [data_array(), data_array()]):
        with pytest.raises(raconvert.errors.RaconvertError, match="lose"):
            iio.imwrite(tmp_path / "y.ra", lost)
    assert not (tmp_path / "y.ra").exists()


def test_neither_library_is_imported_for_other_arrays(tmp_path: Path) -> None:
    code = (
        "import sys, numpy, raconvert; raconvert.write(sys.argv[1], numpy.ones(3));"
        "assert not {'xarray', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "x.ra")], check=True)


@pytest.mark.parametrize("form", ["har", "h5", "nc"])
@pytest.mark.parametrize("way", ["reversed", "rolled", "dropped"])
def test_labels_go_with_their_coordinate(tmp_path: Path, form: str, way: str) -> None:
    axes = [Axis(name="COM", labels=["a", "b"]), Axis(name="REG", labels=["us", "eu", "cn"])]
    array = raconvert.Array(VALUES, name="V", meta=Metadata(axes=axes))
    raconvert.write(tmp_path / f"x.{form}", array)
    with xr.open_dataset(tmp_path / f"x.{form}", engine="raconvert") as dataset:
        without = dataset.load().drop_vars("REG")
    moved = {
        "reversed": lambda: without.isel(REG=[2, 1, 0]),
        "rolled": lambda: without.roll(REG=1),
        "dropped": lambda: without,
    }[way]()

    raconvert.write(tmp_path / f"y.{form}", moved)

    with raconvert.open(tmp_path / f"y.{form}") as bundle:
        assert [axis.name for axis in bundle["V"].axes] == ["COM", "REG"]
        assert [axis.labels and [*axis.labels] for axis in bundle["V"].axes] == [["a", "b"], None]
        assert (np.asarray(bundle["V"]) == moved["V"].values).all()


def points_of(path: Path) -> dict[int, tuple[float, ...]]:
    """The point in space at which pynrrd or nibabel see each value of a scan."""
    if path.suffix == ".nrrd":
        values, header = nrrd.read(str(path))
        directions, origin = header["space directions"], header["space origin"]
    else:
        image = nibabel.load(path)
        values, directions, origin = image.dataobj, image.affine[:3, :3].T, image.affine[:3, 3]
    values = np.asarray(values)
    return {
        int(values[index]): tuple(np.asarray(origin) + np.asarray(index) @ directions)
        for index in np.ndindex(values.shape)
    }


@pytest.mark.parametrize("form", ["nrrd", "nii"])
@pytest.mark.parametrize("way", ["same", "values", "flipped", "half"])
def test_where_a_scan_lies_goes_with_its_coordinates(tmp_path: Path, form: str, way: str) -> None:
    values = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    path = tmp_path / f"x.{form}"
    if form == "nrrd":
        space = {
            "space": "LPS",
            "space directions": np.diag([1.0, 2, 3]),
            "space origin": [1.0] * 3,
        }
        nrrd.write(str(path), values, space)
    else:
        nibabel.save(nibabel.Nifti1Image(values, np.diag([1.0, 2, 3, 1])), path)
    with xr.open_dataset(path, engine="raconvert") as dataset:
        scan = dataset["x"].load()
    first = {scan.dims[0]: slice(None, None, -1)}
    last = {scan.dims[-1]: slice(0, scan.shape[-1] // 2)}
    changed = {
        "same": lambda: scan,
        "values": lambda: scan.copy(data=scan.values + 1),
        "flipped": lambda: scan.isel(first),
        "half": lambda: scan.isel(last),
    }[way]()

    report = raconvert.write(tmp_path / f"y.{form}", changed)

    assert not any("space" in str(line) for line in report.equivalent)
    points = points_of(tmp_path / f"y.{form}")
    first_of_all = 1 if way == "values" else 0
    expected = {value + first_of_all: point for value, point in points_of(path).items()}
    assert len(points) == changed.size
    assert points.items() <= expected.items()
