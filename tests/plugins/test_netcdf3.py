"""netCDF classic: files of netCDF4 and scipy with the values they read, and hostile headers."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import rounds

import raconvert
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported
from raconvert.files.limits import Limits
from raconvert.files.source import Source
from raconvert.registry import by_name, load

netcdf4 = pytest.importorskip("netCDF4")
scipy_io = pytest.importorskip("scipy.io")
# Files that netCDF4 writes; more with the environment variable.
FILES = int(os.environ.get("RACONVERT_NETCDF3_FILES", str(rounds(40, 16))))
KINDS = {"NETCDF3_CLASSIC": 1, "NETCDF3_64BIT_OFFSET": 2, "NETCDF3_64BIT_DATA": 5}
CLASSIC = ("i1", "S1", "i2", "i4", "f4", "f8")
NEW = ("u1", "u2", "u4", "i8", "u8")
SAMPLE = load(by_name("netcdf3")).FORMAT.samples["x.cdf"]


def read(path: Path, **limits: int) -> raconvert.Bundle:
    return load(by_name("netcdf3")).read(Source(str(path), limits=Limits(**limits)))


def some(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    if kind == "S1":
        return rng.integers(97, 123, shape, np.uint8).view("S1").reshape(shape)
    if kind[0] == "f":
        return rng.normal(size=shape).astype(kind)
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, shape, kind, endpoint=True)


def random_file(path: Path, seed: int) -> None:
    """A file of netCDF4 with variables of any type, over fixed and unlimited dimensions."""
    rng = np.random.default_rng(seed)
    kind = list(KINDS)[seed % 3]
    with netcdf4.Dataset(path, "w", format=kind) as file:
        file.set_fill_off()
        file.title = "é" * int(rng.integers(1, 5))
        file.createDimension("t", None)
        lengths = [int(n) for n in rng.integers(1, 6, 3)]
        for name, length in zip("zyx", lengths, strict=True):
            file.createDimension(name, length)
        records = int(rng.integers(0, 5))
        in_records = int(rng.integers(0, 4))  # one alone has no padding
        types = CLASSIC + (NEW if KINDS[kind] == 5 else ())
        for number in range(in_records + int(rng.integers(1, 4))):
            axes = tuple("zyx"[3 - int(rng.integers(0, 4)) :])
            shape = tuple(dict(zip("zyx", lengths, strict=True))[axis] for axis in axes)
            if number < in_records:
                axes, shape = ("t", *axes), (records, *shape)
            one = file.createVariable(f"v{number}", str(rng.choice(types)), axes)
            one.set_auto_maskandscale(False)
            one.set_auto_chartostring(False)
            one.number = np.float64(rng.normal())
            one.list = rng.integers(-9, 9, 3).astype("i2")
            if 0 not in shape:
                one[...] = some(rng, one.dtype.str[1:], shape)


def test_a_name_that_is_filled_up_with_nuls(tmp_path: Path) -> None:
    """Old libraries wrote such; all readers end the name before them."""
    path = tmp_path / "x.cdf"
    path.write_bytes(SAMPLE.replace(b"\0\0\0\1n\0\0\0", b"\0\0\0\4n\0\0\0", 1))
    with netcdf4.Dataset(path) as file, read(path) as bundle:
        [name] = file.variables["x"].dimensions
        assert [axis.name for axis in bundle["x"].axes] == [name] == ["n"]


@pytest.mark.parametrize("seed", range(FILES))
def test_every_variable_is_what_netcdf4_reads(seed: int, tmp_path: Path) -> None:
    """Names, axes, types, bits and attributes; whole, by regions, and through a copy in RA."""
    path = tmp_path / "x.nc"
    random_file(path, seed)
    raconvert.convert(path, tmp_path / "x.zip")
    with netcdf4.Dataset(path) as file, read(path) as bundle:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        assert bundle.names == list(file.variables)
        assert bundle.attributes == {"title": file.title}
        for name, wanted in file.variables.items():
            array, values = bundle[name], np.asarray(wanted[...])
            assert (array.shape, array.dtype.str[1:]) == (values.shape, values.dtype.str[1:])
            assert np.array_equal(array[...], values)
            assert tuple(axis.name for axis in array.meta.axes) == wanted.dimensions
            assert array.meta.attributes["number"] == wanted.number
            assert array.meta.attributes["list"] == wanted.list.tolist()
            for key in (0, -1, slice(None, None, -2), (..., slice(1, 2))):
                if values.ndim and values.size:
                    assert np.array_equal(array[key], values[key])
    raconvert.convert(path, tmp_path / "y.nc3", strict=True, verify=True)
    with netcdf4.Dataset(path) as one, netcdf4.Dataset(tmp_path / "y.nc3") as two:
        for file in (one, two):
            file.set_auto_maskandscale(False)
            file.set_auto_chartostring(False)
        assert [*one.variables] == [*two.variables]
        for name in one.variables:
            assert one[name].dimensions == two[name].dimensions
            assert one[name].dtype == two[name].dtype
            assert np.array_equal(one[name][...], two[name][...])
            for key in one[name].ncattrs():
                before, after = (np.asarray(file[name].getncattr(key)) for file in (one, two))
                assert (before.dtype, before.tolist()) == (after.dtype, after.tolist())
    with raconvert.open(tmp_path / "x.zip") as copy, read(path) as bundle:
        copies = copy if isinstance(copy, raconvert.Bundle) else {bundle.names[0]: copy}
        for name in bundle.names:
            assert np.array_equal(copies[name][...], bundle[name][...])


def test_files_of_scipy_and_records_that_are_counted_by_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.cdf"
    values = np.arange(9, dtype="i2").reshape(3, 3)
    with scipy_io.netcdf_file(path, "w", version=2) as file:
        file.createDimension("t", None)
        file.createDimension("x", 3)
        file.createVariable("a", "i2", ("t", "x"))[:] = values
    raw = path.read_bytes()
    (tmp_path / "s.nc").write_bytes(raw[:4] + b"\xff" * 4 + raw[8:])
    for name in ("x.cdf", "s.nc"):
        with read(tmp_path / name) as bundle:
            assert np.array_equal(bundle["a"][...], values)
    assert "3 are in the file" in bundle.notes[0]


def climate(path: Path, kind: str) -> None:
    with netcdf4.Dataset(path, "w", format=kind) as file:
        file.Conventions = "CF-1.8"
        for name, length in (("time", None), ("lat", 3), ("lon", 4), ("bnds", 2)):
            file.createDimension(name, length)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar, time.bounds = "days since 2000-01-01", "standard", "time_bnds"
        lat = file.createVariable("lat", "f4", ("lat",))
        lat.units, lat.long_name = "degrees_north", "latitude"
        file.createVariable("lon", "f4", ("lon",)).units = "degrees_east"
        bounds = file.createVariable("time_bnds", "f8", ("time", "bnds"))
        axes = ("time", "lat", "lon")
        one = file.createVariable("t2m", "i2", axes, fill_value=np.int16(-999))
        one.set_auto_maskandscale(False)
        one.units, one.scale_factor, one.add_offset = "K", 0.5, 273.0
        file["lat"][:], file["lon"][:], time[:] = [10, 20, 30], [0, 1, 5, 6], [0.5, 1.5]
        bounds[:] = [[0, 1], [1, 2]]
        one[:] = np.arange(24).reshape(2, 3, 4)
        one[0, 0, 0] = -999


def test_the_model_is_that_of_netcdf4(tmp_path: Path) -> None:
    """Axes, units, labels, attributes and decoded values, as of the same file in HDF5."""
    pytest.importorskip("h5py")
    xarray = pytest.importorskip("xarray")
    climate(tmp_path / "new.nc", "NETCDF4")
    for kind in KINDS:
        path = tmp_path / f"{kind}.nc"
        climate(path, kind)
        with raconvert.open(path) as old, raconvert.open(tmp_path / "new.nc") as new:
            assert old.attributes == new.attributes
            assert sorted(old.names) == sorted(new.names)
            for name in old.names:
                said, wanted = (bundle[name].meta.to_dict() for bundle in (old, new))
                types = [one.pop("formats", {}).get("hdf5", {}) for one in (said, wanted)]
                assert said == wanted, name
                assert types[0].get("attributes") == types[1].get("attributes"), name
        raconvert.convert(path, tmp_path / f"{kind}.out.nc")
        wanted = xarray.load_dataset(path, engine="netcdf4")
        got = xarray.load_dataset(tmp_path / f"{kind}.out.nc", engine="netcdf4")
        xarray.testing.assert_equal(got, wanted)


def words(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}I", *numbers)


def dims(*lengths: int) -> bytes:
    each = [words(1) + bytes([97 + n, 0, 0, 0]) + words(length) for n, length in enumerate(lengths)]
    return words(10, len(lengths)) + b"".join(each)


def variable(
    name: bytes = b"x", ids: tuple[int, ...] = (0,), kind: int = 4, begin: int = 200
) -> bytes:
    padded = name + bytes(-len(name) % 4)
    shape = words(len(ids), *ids)
    return words(len(name)) + padded + shape + words(0, 0, kind, 8, begin)


def whole(*variables: bytes, lengths: tuple[int, ...] = (2,), records: int = 0) -> bytes:
    listed = words(11, len(variables)) + b"".join(variables)
    head = b"CDF\1" + words(records) + dims(*lengths) + words(0, 0) + listed
    return head.ljust(200, b"\0") + bytes(40)


HOSTILE: dict[str, tuple[bytes, type[RaconvertError]]] = {
    "magic_alone": (b"CDF\1", Corrupt),
    "zeros_behind_the_magic": (b"CDF\1" + bytes(40), Unsupported),
    "more_dimensions_than_bytes": (b"CDF\1" + words(0, 10, 100_000), Corrupt),
    "more_dimensions_than_allowed": (b"CDF\1" + words(0, 10, 1 << 30), TooLarge),
    "negative_count": (b"CDF\1" + words(0, 10, 1 << 31), Corrupt),
    "wrong_tag": (b"CDF\1" + words(0, 12, 1), Corrupt),
    "entries_of_no_list": (b"CDF\1" + words(0, 0, 1), Corrupt),
    "name_without_end": (b"CDF\1" + words(0, 10, 1, 1 << 30), Corrupt),
    "empty_name": (whole(variable(b"")), Corrupt),
    "name_with_a_slash": (whole(variable(b"../x")), Corrupt),
    "name_used_twice": (whole(variable(), variable()), Corrupt),
    "unknown_type": (whole(variable(kind=99)), Corrupt),
    "type_of_cdf5_in_cdf1": (whole(variable(kind=10)), Corrupt),
    "dimension_that_is_not_there": (whole(variable(ids=(1,))), Corrupt),
    "two_unlimited_dimensions": (whole(variable(), lengths=(0, 0)), Corrupt),
    "unlimited_dimension_behind_another": (whole(variable(ids=(0, 1)), lengths=(2, 0)), Corrupt),
    "too_many_dimensions": (whole(variable(ids=(0,) * 65)), Unsupported),
    "data_in_the_header": (whole(variable(begin=8)), Corrupt),
    "data_in_data": (whole(variable(), variable(b"y", begin=204)), Corrupt),
    "data_behind_the_end": (whole(variable(begin=1 << 31)), Corrupt),
    "larger_than_the_file": (whole(variable(), lengths=(1 << 30,)), Corrupt),
    "larger_than_any_file": (whole(variable(ids=(0,) * 8), lengths=(1 << 30,)), Corrupt),
    "more_records_than_the_file": (whole(variable(), lengths=(0,), records=1 << 30), Corrupt),
    "cut_off_in_the_header": (SAMPLE[:60], Corrupt),
    "cut_off_in_the_data": (SAMPLE[:-1], Corrupt),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name: str, tmp_path: Path) -> None:
    content, error = HOSTILE[name]
    (tmp_path / "x.nc").write_bytes(content)
    with pytest.raises(error, match=r"x\.nc"):
        raconvert.convert(tmp_path / "x.nc", tmp_path / "x.ra")
    assert [path.name for path in tmp_path.iterdir()] == ["x.nc"]


def test_a_variable_that_is_cut_off_leaves_the_others(tmp_path: Path) -> None:
    (tmp_path / "x.nc").write_bytes(whole(variable(), variable(b"y", begin=236)))
    with read(tmp_path / "x.nc") as bundle:
        values: Any = bundle["x"][...]
        assert values.tolist() == [0, 0]
        with pytest.raises(Corrupt, match="'y' is cut off"):
            bundle["y"][...]


def test_attributes_are_bounded(tmp_path: Path) -> None:
    climate(tmp_path / "x.nc", "NETCDF3_CLASSIC")
    with pytest.raises(TooLarge, match="attributes of the file need more"):
        read(tmp_path / "x.nc", attribute_bytes=9)
