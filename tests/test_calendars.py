"""The calendar of a time axis goes with an array that is taken without its coordinate."""

from __future__ import annotations

from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr

import raconvert

FORMATS = ["NETCDF3_CLASSIC", "NETCDF4"]


def made(path: Path, form: str, calendar: str) -> Path:
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.createDimension("time", None)
        file.createDimension("x", 2)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar = "days since 2000-01-01", calendar
        time[:] = [0, 31, 59]
        file.createVariable("tas", "f4", ("time", "x"))[:] = np.arange(6).reshape(3, 2)
    return path


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("calendar", ["noleap", "360_day"])
@pytest.mark.parametrize("target", ["a.nc", "a.nc3", "a.zarr", "a.nrrd"])
def test_days_are_those_of_the_file(form: str, calendar: str, target: str, tmp_path: Path) -> None:
    source = made(tmp_path / "in.nc", form, calendar)
    raconvert.convert(f"{source}#tas", tmp_path / target, verify=True)
    last = tmp_path / target
    if target.endswith(".nrrd"):  # which keeps the attribute for the file after it
        last = tmp_path / "b.nc"
        raconvert.convert(tmp_path / target, last)
    options = {"engine": "zarr", "consolidated": False} if target.endswith(".zarr") else {}
    with xr.open_dataset(source) as dataset, xr.open_dataset(last, **options) as again:
        assert again["time"].values.tolist() == dataset["time"].values.tolist()
        assert again["time"].dt.calendar == calendar


@pytest.mark.parametrize("form", FORMATS)
def test_the_usual_calendar_and_one_that_is_chosen_add_nothing(form: str, tmp_path: Path) -> None:
    usual = made(tmp_path / "usual.nc", form, "standard")
    raconvert.convert(f"{usual}#tas", tmp_path / "a.nc")
    odd = made(tmp_path / "odd.nc", form, "noleap")
    raconvert.convert(odd, tmp_path / "b.nc", arrays=["tas", "time"])
    for name in ("a.nc", "b.nc"):
        with netCDF4.Dataset(tmp_path / name) as file:
            assert "calendar" not in file["tas"].ncattrs()


def test_a_format_without_attributes_says_that_it_is_lost(tmp_path: Path) -> None:
    source = made(tmp_path / "in.nc", "NETCDF3_CLASSIC", "noleap")
    report = raconvert.convert(f"{source}#tas", tmp_path / "a.npy")
    assert any("calendar" in fit.reason for fit in report.equivalent)
