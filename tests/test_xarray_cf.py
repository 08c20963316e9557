"""Packed values, dates and attributes of CF in xarray's engine and back, as its own engines do."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raconvert
from raconvert.api import array_of
from raconvert.errors import UsageError

xr = pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")
HOURS = np.datetime64("2020-01-01T00", "ns") + 6 * np.arange(5).astype("m8[h]")
ODD = np.array(["2020-01-01", "2020-01-04", "2021-02-03"], "M8[ns]")
PACKED = {
    "t": {"dtype": "i2", "scale_factor": np.float32(0.5), "add_offset": np.float32(5),
          "_FillValue": np.int16(-1)},
    "time": {"units": "hours since 2019-12-31"},
}  # fmt: skip


def weather() -> xr.Dataset:
    values = np.arange(10, dtype="f4").reshape(5, 2)
    values[1, 1] = np.nan
    notes = {f"note{number}": "text" for number in range(7)}  # so many that they lie elsewhere
    return xr.Dataset(
        {
            "t": (("time", "lat"), values, {"units": "K", "long_name": "T", **notes}),
            "n": ("lat", [1, 2], {"units": "days"}),
        },
        coords={"time": HOURS, "lat": [10.0, 20.0], "month": ("lat", [1, 2])},
        attrs={"title": "weather"},
    )


# In a process of its own: netCDF4 brings another HDF5 library (see test_xarray.py).
MAKE = """
import pickle, sys
dataset, path, options = pickle.load(sys.stdin.buffer)
dataset.to_netcdf(path, engine="netcdf4", encoding=options)
"""
LOOK = """
import pickle, sys, xarray
path, options = pickle.load(sys.stdin.buffer)
with xarray.open_dataset(path, engine="netcdf4", **options) as found:
    sys.stdout.buffer.write(pickle.dumps(found.load().to_dict(data="array")))
"""


def apart(program: str, *given: Any) -> bytes:
    pytest.importorskip("netCDF4")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=pickle.dumps(given), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def write(path: Path, dataset: xr.Dataset, engine: str) -> None:
    if engine == "netcdf4":
        apart(MAKE, dataset, path, PACKED)
    else:
        dataset.to_netcdf(path, engine=engine, encoding=PACKED)


def seen(path: Path, engine: str, **options: Any) -> xr.Dataset:
    if engine == "netcdf4":
        return xr.Dataset.from_dict(pickle.loads(apart(LOOK, path, options)))
    with xr.open_dataset(path, engine=engine, **options) as found:
        return found.load()


@pytest.mark.parametrize("decode", [True, False])
@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_packed_values_and_dates_as_other_engines_give_them(
    tmp_path: Path, engine: str, decode: bool
) -> None:
    write(tmp_path / "x.nc", weather(), engine)
    options = {"decode_cf": decode, **({"decode_timedelta": False} if decode else {})}

    ours = seen(tmp_path / "x.nc", "raconvert", **options)

    theirs = seen(tmp_path / "x.nc", engine, **options)
    assert set(ours.coords) == set(theirs.coords)
    for name in theirs.variables:
        assert ours[name].dims == theirs[name].dims
        assert ours[name].dtype == theirs[name].dtype or ours[name].dtype.kind == "M"
        assert np.array_equal(ours[name], theirs[name], equal_nan=ours[name].dtype == "f4")
    assert ours["t"].attrs.keys() == theirs["t"].attrs.keys()
    assert ours.attrs == theirs.attrs


def test_some_is_decoded(tmp_path: Path) -> None:
    write(tmp_path / "x.nc", weather(), "h5netcdf")

    raw = seen(tmp_path / "x.nc", "raconvert", mask_and_scale=False)
    assert raw["t"].dtype == "i2"
    assert raw["time"].dtype.kind == "M"
    with xr.open_datatree(tmp_path / "x.nc", engine="raconvert") as tree:
        assert tree["t"].dtype == "f4"


def test_what_is_open_is_decoded_the_same_way(tmp_path: Path) -> None:
    write(tmp_path / "x.nc", weather(), "h5netcdf")

    with raconvert.open(tmp_path / "x.nc") as bundle:
        whole = bundle.to_xarray().load()
        one = bundle["t"].to_xarray().load()

    xr.testing.assert_identical(whole, seen(tmp_path / "x.nc", "raconvert"))
    xr.testing.assert_identical(one.variable, whole["t"].variable)


def test_an_option_that_decodes_nothing_is_named(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.npy", np.arange(3))

    with pytest.raises(UsageError, match="no option 'mask'"):
        xr.open_groups(tmp_path / "x.npy", engine="raconvert", mask=True)
    with pytest.raises(UsageError, match="no option 'mask'"):
        xr.open_dataset(tmp_path / "x.npy", engine="raconvert", mask=True)
    with pytest.raises(UsageError, match="argument max_memory"):
        xr.open_dataset(tmp_path / "x.npy", engine="raconvert", max_memory="1G")


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_packed_values_edited_and_written(tmp_path: Path, engine: str) -> None:
    write(tmp_path / "x.nc", weather(), engine)
    edited = seen(tmp_path / "x.nc", "raconvert")
    edited["t"][0, 0] = 41.25

    raconvert.write(tmp_path / "y.nc", edited)

    found = seen(tmp_path / "y.nc", engine, decode_cf=False)
    assert found["time"].attrs["units"] == "hours since 2019-12-31"
    assert found["time"].values.tolist() == [24, 30, 36, 42, 48]
    found = xr.decode_cf(found, decode_timedelta=False)
    xr.testing.assert_equal(found, edited)
    assert found["t"].attrs.items() >= edited["t"].attrs.items()


@pytest.mark.parametrize("suffix", ["nc", "h5", "ra", "nrrd", "zarr"])
@pytest.mark.parametrize("dates", [HOURS, ODD, HOURS - HOURS[0]], ids=["regular", "odd", "lengths"])
def test_dates_along_an_axis(tmp_path: Path, suffix: str, dates: np.ndarray) -> None:
    array = xr.DataArray(np.arange(len(dates)), {"time": dates}, name="x")
    path = tmp_path / f"x.{suffix}"

    report = raconvert.write(path, array)

    assert any(str(dates.dtype) in str(fit) for fit in report.equivalent)
    for engine in ["raconvert"] + (["h5netcdf"] if suffix in ("nc", "h5") else []):
        found = seen(path, engine, decode_timedelta=True)
        assert (found["time"].values == dates).all()
        assert found["time"].dtype.kind == dates.dtype.kind
        assert found["x"].values.tolist() == list(range(len(dates)))


@pytest.mark.parametrize(
    "dates", [["NaT", "2020-01-01"], ["1066-10-14", "1066-10-15"]], ids=["missing", "Julian"]
)
def test_dates_that_no_numbers_say_become_texts(tmp_path: Path, dates: list[str]) -> None:
    array = xr.DataArray([1, 2], {"time": np.array(dates, "M8[s]")}, name="x")

    report = raconvert.write(tmp_path / "x.nc", array)

    assert "become texts" in str(report.equivalent[0])
    with xr.open_dataset(tmp_path / "x.nc", engine="h5netcdf") as found:
        assert [
            text[: len(date)] for text, date in zip(found["time"].values, dates, strict=True)
        ] == dates


def test_a_copy_of_netcdf_is_the_same(tmp_path: Path) -> None:
    write(tmp_path / "x.nc", weather(), "netcdf4")

    raconvert.convert(tmp_path / "x.nc", tmp_path / "y.nc")

    assert raconvert.diff(tmp_path / "x.nc", tmp_path / "y.nc")["same"]
    found = seen(tmp_path / "y.nc", "netcdf4", decode_timedelta=False)
    xr.testing.assert_equal(found, weather())


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    "options",
    [{}, {"format": "2"}, {"format": "2", "compress": "none", "endian": "big"},
     {"compress": "blosc", "endian": "big", "checksum": True}],
    ids=["3", "2", "2-big", "3-big"],
)  # fmt: skip
def test_zarr_has_its_coordinates_in_xarray(tmp_path: Path, options: dict[str, Any]) -> None:
    pytest.importorskip("zarr")
    given = weather()
    given["zeros"] = (("region", "lat"), np.zeros((2, 2), "i4"))
    given = given.assign_coords(
        region=["EU", "Ünited"], lat=("lat", [10.0, 25.5], {"units": "deg"})
    )
    raconvert.write(tmp_path / "x.nc", given)

    raconvert.convert(tmp_path / "x.nc", tmp_path / "x.zarr", out_opts=options)

    for consolidated in (True, False):
        with xr.open_dataset(
            tmp_path / "x.zarr", engine="zarr", consolidated=consolidated, decode_timedelta=False
        ) as found:
            xr.testing.assert_equal(found, given)
            assert found["lat"].attrs["units"] == "deg"
    with raconvert.open(tmp_path / "x.zarr") as bundle, raconvert.open(tmp_path / "x.nc") as before:
        assert bundle.names == before.names
        assert repr(bundle["zeros"].axes) == repr(before["zeros"].axes)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_zarr_has_no_coordinate_where_axes_disagree(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    values = np.arange(3, dtype="i4")
    arrays = {
        "a": xr.DataArray(values, {"x": [1.0, 2.0, 4.0], "Y": 1}, ["x"]).drop_vars("Y"),
        "b": xr.DataArray(values[:2], {"x": [5.0, 6.0]}, ["x"]),
        "c": xr.DataArray(values, {"c": [7.0, 8.0, 10.0]}, ["c"]),
        "g/d": xr.DataArray(values, {"x": [1.0, 2.0, 5.0]}, ["x"]),
        "g/B": xr.DataArray(values, {"b": [1.0, 2.0, 5.0]}, ["b"]),
    }

    report = raconvert.write(tmp_path / "x.zarr", arrays)

    (fit,) = report.equivalent
    assert (fit.array, "which has another length" in fit.reason) == ("b", True)
    group = zarr.open_group(tmp_path / "x.zarr", mode="r")
    assert sorted(group.array_keys()) == ["a", "b", "c", "x"]
    found = xr.open_zarr(tmp_path / "x.zarr", consolidated=False)
    assert (found["a"].dims, found["b"].dims, [*found["x"].values]) == (
        ("x",),
        ("b_dim_0",),
        [1, 2, 4],
    )
    assert sorted(group["g"].array_keys()) == ["B", "d", "x"]
    assert group["g/x"][:].tolist() == [1, 2, 5]
    with raconvert.open(tmp_path / "x.zarr") as bundle:
        assert bundle.names == list(arrays)
        assert [*bundle["c"].axes[0].labels] == [7.0, 8.0, 10.0]
        assert [*bundle["g/B"].axes[0].labels] == [1.0, 2.0, 5.0]


# Names in attributes, of arrays that have other names now ------------------------------------------

CF = {
    "t": {"coordinates": "lat lon", "cell_measures": "area: cell", "grid_mapping": "crs: lat lon"},
    "lat": {"bounds": "/lat_bnds"},
    "lon": {"comment": "lat lon"},
    "cell": {}, "lat_bnds": {}, "crs": {},
}  # fmt: skip


def named_file(path: Path, *names: str) -> Path:
    bundle = raconvert.Bundle([array_of(np.zeros(2), name) for name in names or CF])
    for array in bundle.arrays:
        array.meta = raconvert.Metadata(attributes=CF[array.name])
    raconvert.write(path, bundle)
    return path


def attributes_in(path: Path) -> dict[str, dict[str, Any]]:
    with raconvert.open_bundle(path) as bundle:
        return {array.name: dict(array.meta.attributes) for array in bundle.arrays}


@pytest.mark.parametrize("suffix", [".nc", ".h5", ".zarr", ".zip"])
def test_attributes_name_arrays_by_the_names_they_are_given(suffix: str, tmp_path: Path) -> None:
    target = tmp_path / f"y{suffix}"
    with raconvert.open_bundle(named_file(tmp_path / "x.zip")) as bundle:
        given = {"T": "t", "LAT": "lat", "lon": "lon", "g/area": "cell", "crs": "crs"}
        raconvert.write(target, {new: bundle[name] for new, name in given.items()})
    found = attributes_in(target)
    assert found["T"] == {
        "coordinates": "LAT lon", "cell_measures": "area: /g/area", "grid_mapping": "crs: LAT lon"
    }  # fmt: skip
    assert found["LAT"] == CF["lat"]  # its bounds are not here: the name stays what it was
    assert found["lon"] == CF["lon"]  # which names nothing


def test_attributes_of_several_files_in_one_container(tmp_path: Path) -> None:
    sources = [named_file(tmp_path / f"{name}.zip") for name in ("a", "b")]
    raconvert.convert(sources, tmp_path / "y.h5")
    found = attributes_in(tmp_path / "y.h5")
    assert [found[f"{file}/t"] for file in "ab"] == [CF["t"]] * 2  # in the same group
    assert [found[f"{file}/lat"] for file in "ab"] == [{"bounds": "lat_bnds"}] * 2

    alone = [named_file(tmp_path / f"my_{name}.zip", name) for name in ("t", "lat", "cell")]
    raconvert.convert(alone, tmp_path / "z.h5")
    found = attributes_in(tmp_path / "z.h5")
    assert found["my_t"] == {
        "coordinates": "my_lat lon", "cell_measures": "area: my_cell",
        "grid_mapping": "crs: my_lat lon",
    }  # fmt: skip


def test_a_name_of_two_arrays_is_not_guessed_about(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    sources = [named_file(tmp_path / "t1.zip", "t"), named_file(tmp_path / "a/l1.zip", "lat"),
               named_file(tmp_path / "b/l2.zip", "lat")]  # fmt: skip
    raconvert.convert(sources, tmp_path / "z.h5")
    assert attributes_in(tmp_path / "z.h5")["t1"] == CF["t"]
