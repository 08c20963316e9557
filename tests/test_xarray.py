"""All formats in xarray and back, with files that other programs wrote, read by other programs."""

from __future__ import annotations

import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from harpy import HarFileIO, HeaderArrayObj
from pairs import quiet

import raconvert
from raconvert.errors import Corrupt, RaconvertError, UsageError
from raconvert.plugin import Array, Axis, Metadata, Space

xr = pytest.importorskip("xarray")
nrrd = pytest.importorskip("nrrd")
scipy_io = pytest.importorskip("scipy.io")
Image = pytest.importorskip("PIL.Image")
PngInfo = pytest.importorskip("PIL.PngImagePlugin").PngInfo

SHAPE = (40, 50, 60)
VALUES = np.random.default_rng(0).integers(0, 255, SHAPE).astype("<f4")
SLICE = VALUES[:, :, 30]
REGIONS = ["EU", "USA", "Row"]


# Reading: one file of each format, written by another program -------------------------------------


def ra_file(path: Path) -> None:
    axes = [Axis("t"), Axis(), Axis("x", units="mm", spacing=0.5, origin=1)]
    meta = raconvert.Metadata("field", "T", axes, {"run": 7})
    raconvert.write(path, VALUES, meta=meta)


def npy_file(path: Path) -> None:
    np.save(path, np.asfortranarray(VALUES))


def npz_file(path: Path) -> None:
    np.savez(path, values=VALUES, other=np.arange(3))


def mat_file(path: Path) -> None:
    scipy_io.savemat(path, {"values": VALUES, "s": {"x": np.arange(3.0)}})


def hdf5_file(path: Path) -> None:
    with h5py.File(path, "w") as file:
        data = file.create_dataset("values", data=VALUES)
        data.attrs.update(units="T", long_name="field", run=7)
        scale = file.create_dataset("x", data=1 + 0.5 * np.arange(60))
        scale.make_scale()
        scale.attrs["units"] = "mm"
        data.dims[2].attach_scale(scale)
        data.dims[0].label = "t"
        file.attrs["title"] = "whole"
        file.create_group("g")["inner"] = np.arange(4)


def nrrd_file(path: Path) -> None:
    told = {"encoding": "raw", "spacings": [0.5, 1, 1], "content": "field",
            "labels": ["x", "y", "t"], "units": ["mm", "", ""], "run": "7"}  # fmt: skip
    nrrd.write(str(path), VALUES, told, index_order="C")


def scidb_file(path: Path) -> None:
    path.write_bytes(VALUES.tobytes())
    schema = "<values:float NOT NULL>[t=0:39:0:40; y=0:49:0:50; x=1:60:0:60]"
    path.with_name(f"{path.name}.schema").write_text(schema)


def har_file(path: Path) -> None:
    names = ("T", "Y", "X")
    sets = [
        {"name": name, "status": "k", "dim_type": "Set", "dim_desc": [f"{name}{i}" for i in range(n)]}
        for name, n in zip(names, SHAPE, strict=True)
    ]  # fmt: skip
    with quiet():
        made = HeaderArrayObj.HeaderArrayFromData("VALS", VALUES, "COEF", "field", sets=sets)
        HarFileIO.writeHeaders(str(path), [made])


def png_file(path: Path) -> None:
    text = PngInfo()
    text.add_text("Title", "field")
    Image.fromarray(VALUES[0].astype("u1")).save(path, pnginfo=text)


ALL: dict[str, tuple[Callable[[Path], None], str, tuple[str, ...], dict[str, Any], dict[str, Any]]]
ALL = {  # file -> who writes it, name, dimensions, coordinates, attributes
    "f.ra": (ra_file, "f", ("t", "dim_1", "x"), {"x": 1 + 0.5 * np.arange(60)},
             {"units": "T", "long_name": "field", "run": 7}),
    "x.npy": (npy_file, "x", ("dim_0", "dim_1", "dim_2"), {}, {}),
    "x.npz": (npz_file, "values", ("values_dim_0", "values_dim_1", "values_dim_2"), {}, {}),
    "x.mat": (mat_file, "values", ("values_dim_0", "values_dim_1", "values_dim_2"), {}, {}),
    "x.h5": (hdf5_file, "values", ("t", "values_dim_1", "x"), {"x": 1 + 0.5 * np.arange(60)},
             {"units": "T", "long_name": "field", "run": 7}),
    "f.nrrd": (nrrd_file, "f", ("t", "y", "x"), {"x": 0.5 * np.arange(60), "t": np.arange(40)},
               {"long_name": "field", "run": "7"}),
    "x.scidb": (scidb_file, "values", ("t", "y", "x"), {"x": np.arange(1, 61)}, {}),
    "x.har": (har_file, "VALS", ("T", "Y", "X"), {"X": [f"X{i}" for i in range(60)]},
              {"long_name": "field"}),
    "x.png": (png_file, "x", ("dim_0", "dim_1"), {}, {}),
}  # fmt: skip


@pytest.mark.parametrize("file", ALL)
def test_names_coordinates_and_attributes(tmp_path: Path, file: str) -> None:
    write, name, dims, coordinates, attributes = ALL[file]
    write(tmp_path / file)
    with xr.open_dataset(tmp_path / file, engine="raconvert") as dataset:
        found = dataset[name]
        assert found.dims == dims
        for key, values in coordinates.items():
            assert np.array_equal(found.coords[key], values)
        assert {key: found.attrs.get(key) for key in attributes} == attributes
        whole = VALUES[0] if file == "x.png" else VALUES
        assert np.array_equal(found.values, whole)
        assert np.array_equal(found[3:1:-1, ::7], whole[3:1:-1, ::7])
        assert np.array_equal(found[[5, 1]], whole[[5, 1]])
    if file == "x.png":
        assert found.encoding["raconvert"]["formats"]["png"]["text"][0][:2] == ["Title", "field"]
    if file in ("f.ra", "x.h5", "f.nrrd"):
        assert found.coords["x"].attrs["units"] == "mm"


def bytes_read() -> int:
    """What this process has read from files, as the kernel counts it."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


# Of compressed data, as in PNG, whatever is asked for is behind the rest.
LAZY = {
    "f.ra": 0,
    "x.npy": 2,
    "x.npz": 0,
    "x.mat": 2,
    "x.h5": 0,
    "f.nrrd": 0,
    "x.scidb": 0,
    "x.har": 2,
}


@pytest.mark.parametrize("file", LAZY)
def test_a_slice_reads_at_most_twice_its_bytes(tmp_path: Path, file: str) -> None:
    write, name, dims, *_ = ALL[file]
    write(tmp_path / file)
    with xr.open_dataset(tmp_path / file, engine="raconvert") as dataset:
        slowest = LAZY[file]
        part = dataset[name].isel({dims[slowest]: slice(10, 30)})
        part.isel({dims[slowest]: 0}).load()  # what is imported on first use
        before = bytes_read()
        values = part.values
        read = bytes_read() - before
    picked = [slice(None)] * 3
    picked[slowest] = slice(10, 30)
    assert np.array_equal(values, VALUES[tuple(picked)])
    assert values.nbytes // 2 < read <= 2 * values.nbytes


def test_a_slice_of_a_deflated_member_reads_that_member(tmp_path: Path) -> None:
    """No byte of it can be found without those before; the member beside it is not read."""
    noise = np.random.default_rng(1).random(SHAPE)
    np.savez_compressed(tmp_path / "x.npz", values=VALUES, noise=noise)
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        compressed = archive.getinfo("values.npy").compress_size
        assert compressed < VALUES.nbytes // 2
    np.savez_compressed(tmp_path / "first.npz", values=VALUES)
    with xr.open_dataset(tmp_path / "first.npz", engine="raconvert") as dataset:
        dataset["values"][10:12].load()  # what is imported on first use
    with xr.open_dataset(tmp_path / "x.npz", engine="raconvert") as dataset:
        before = bytes_read()
        found = dataset["values"][10:12].values
        read = bytes_read() - before
    assert np.array_equal(found, VALUES[10:12])
    assert compressed <= read <= compressed + 8192


def test_damage_in_a_stored_member_stops_all_but_slices(tmp_path: Path) -> None:
    npz_file(tmp_path / "x.npz")
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        assert archive.getinfo("values.npy").compress_type == zipfile.ZIP_STORED
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[4 * VALUES[:20].size] ^= 1
    (tmp_path / "x.npz").write_bytes(data)
    with raconvert.open(tmp_path / "x.npz", "values") as array:
        assert np.array_equal(array[30:], VALUES[30:])
        for all_or_most in (lambda: array[...], lambda: array[1:], lambda: np.asarray(array)):
            with pytest.raises(Corrupt, match="CRC-32"):
                all_or_most()
    for reads in (
        lambda: raconvert.digest(f"{tmp_path / 'x.npz'}#values"),
        lambda: raconvert.convert(f"{tmp_path / 'x.npz'}#values", tmp_path / "y.mat"),
        lambda: raconvert.convert(f"{tmp_path / 'x.npz'}#values", tmp_path / "y.ra"),
    ):
        with pytest.raises(Corrupt, match="CRC-32"):
            reads()


@pytest.mark.parametrize("storage", ["full", "sparse"])
def test_a_slice_of_har_reads_its_records(tmp_path: Path, storage: str) -> None:
    """Of either storage, in many records, with the values that harpy3 sees in them."""
    values = np.where(np.random.default_rng(2).random(SHAPE) < 0.3, VALUES, np.float32(0))
    raconvert.write(tmp_path / "x.har", {"VALS": values}, out_opts={"storage": storage})
    wanted = har_of(tmp_path / "x.har")["VALS"]["array"]
    assert np.array_equal(wanted, values)
    with raconvert.open(tmp_path / "x.har", "VALS") as array:
        array[..., 0]
        for key in (np.s_[..., 10:12], np.s_[:, 7:9, 30], np.s_[3, 4, 5], np.s_[..., ::-7]):
            before = bytes_read()
            found = array[key]
            read = bytes_read() - before
            assert np.array_equal(found, wanted[key])
            if key == np.s_[..., 10:12]:
                assert read <= 2 * found.nbytes + (storage == "sparse") * 32768  # of one record


def test_groups(tmp_path: Path) -> None:
    hdf5_file(tmp_path / "x.h5")
    with xr.open_dataset(tmp_path / "x.h5", engine="raconvert", group="g") as dataset:
        assert dataset["inner"].values.tolist() == [0, 1, 2, 3]
    with xr.open_dataset(tmp_path / "x.h5", engine="raconvert") as dataset:
        assert set(dataset.data_vars) == {"values", "g/inner"}
        assert dataset.attrs == {"title": "whole"}
    with xr.open_datatree(tmp_path / "x.h5", engine="raconvert") as tree:
        assert tree["g/inner"].values.tolist() == [0, 1, 2, 3]
        assert np.array_equal(tree["values"], VALUES)
    with pytest.raises(UsageError, match="group 'h' does not exist"):
        xr.open_dataset(tmp_path / "x.h5", engine="raconvert", group="h")


def test_the_engine_is_found_by_the_suffix(tmp_path: Path) -> None:
    mat_file(tmp_path / "x.mat")
    code = f"import xarray; print(xarray.open_dataset({str(tmp_path / 'x.mat')!r})['s/x'].sum().item())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "3.0\n"


def test_errors_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\1\0\0\0")
    with pytest.raises(Corrupt, match="x.npy"):
        xr.open_dataset(tmp_path / "x.npy", engine="raconvert")
    with pytest.raises(RaconvertError, match="missing.npy"):
        xr.open_dataset(tmp_path / "missing.npy", engine="raconvert")


def test_pickled_it_is_opened_again(tmp_path: Path) -> None:
    hdf5_file(tmp_path / "x.h5")
    with xr.open_dataset(tmp_path / "x.h5", engine="raconvert") as dataset:
        sent = pickle.dumps(dataset["values"])
    assert len(sent) < 16384
    assert np.array_equal(pickle.loads(sent)[:, :, 30], SLICE)


def test_one_name_for_two_axes(tmp_path: Path) -> None:
    bundle = raconvert.Bundle([])
    for name, labels in (("a", ["p", "q"]), ("b", ["p", "q"]), ("c", ["r", "s"]), ("d", ["p"])):
        array = raconvert.open(_labelled(tmp_path, f"{name}.ra", labels))
        bundle.arrays.append(array.replace(name=name))
    dataset = bundle.to_xarray()
    assert {name: one.dims for name, one in dataset.items()} == {
        "a": ("k",), "b": ("k",), "c": ("c_k",), "d": ("d_k",),
    }  # fmt: skip
    assert dataset["c"].coords["c_k"].values.tolist() == ["r", "s"]
    report = raconvert.write(tmp_path / "all.h5", dataset)
    assert [fit.array for fit in report.equivalent] == ["c", "d"]
    assert all("its axis 'k' is not the dimension 'k'" in str(fit) for fit in report.equivalent)
    with raconvert.open(tmp_path / "all.h5") as again:
        assert [again[name].axes[0].name for name in "abcd"] == ["k"] * 4


def _labelled(folder: Path, name: str, labels: list[str]) -> Path:
    values = np.arange(len(labels))
    raconvert.write(folder / name, xr.DataArray(values, coords={"k": labels}, dims="k"))
    return folder / name


@pytest.mark.parametrize("suffix", ["nc", "zarr", "arrow"])
def test_an_array_of_the_name_of_its_axis_keeps_what_stands_along_it(
    tmp_path: Path, suffix: str
) -> None:
    """Its values are not the coordinate, if the axis says another one."""
    axis = Axis("x", units="mm", spacing=-1.25, origin=5)
    raconvert.write(tmp_path / "x.zip", {"x": Array(np.arange(5), meta=Metadata(axes=[axis]))})
    with raconvert.open(tmp_path / "x.zip") as bundle:
        dataset = bundle.to_xarray()
        (dim,) = dataset["x"].dims
        np.testing.assert_array_equal(dataset[dim], [5, 3.75, 2.5, 1.25, 0])
        raconvert.write(tmp_path / f"y.{suffix}", dataset)
    with raconvert.open(tmp_path / f"y.{suffix}") as bundle:
        assert bundle["x"].meta.axes == (axis,)
        np.testing.assert_array_equal(bundle["x"], np.arange(5))


def test_to_xarray_reads_when_it_is_asked(tmp_path: Path) -> None:
    ra_file(tmp_path / "f.ra")
    with raconvert.open(tmp_path / "f.ra") as array:
        found = array.to_xarray()
        assert found.name == "f"
        found.isel(t=0).load()
        before = bytes_read()
        found.isel(t=7).load()
        assert VALUES[7].nbytes <= bytes_read() - before <= VALUES[7].nbytes + 512
        found[0, 0, 0] = -1.0
        assert found[0, 0, 0] == -1.0
    assert raconvert.read(tmp_path / "f.ra")[0, 0, 0] == VALUES[0, 0, 0]


# Back -------------------------------------------------------------------------------------------


def test_what_was_read_is_written_as_it_was(tmp_path: Path) -> None:
    nrrd_file(tmp_path / "f.nrrd")
    with xr.open_dataset(tmp_path / "f.nrrd", engine="raconvert") as dataset:
        report = raconvert.write(tmp_path / "y.nrrd", dataset["f"])
    assert report.equivalent == []
    values, told = nrrd.read(str(tmp_path / "y.nrrd"), index_order="C")
    assert np.array_equal(values, VALUES)
    _, before = nrrd.read(str(tmp_path / "f.nrrd"))
    for key in ("spacings", "labels", "units", "content", "run"):
        assert np.array_equal(told[key], before[key]), key


def har_of(path: Path) -> dict[str, Any]:
    with quiet():
        found = HarFileIO.readHeaderArraysFromFile(str(path))
    return {one["name"].strip(): one for one in found}


def test_har_edited_in_xarray_and_back(tmp_path: Path) -> None:
    trade = np.arange(18, dtype="f4").reshape(3, 2, 3)
    sets = [
        {"name": "REG", "status": "k", "dim_type": "Set", "dim_desc": REGIONS},
        {"name": "COM", "status": "k", "dim_type": "Set", "dim_desc": ["food", "mnfc"]},
        {"name": "REG", "status": "k", "dim_type": "Set", "dim_desc": REGIONS},
    ]
    with quiet():
        made = [
            HeaderArrayObj.HeaderArrayFromData("TRAD", trade, "VXMD", "bilateral", sets=sets),
            HeaderArrayObj.HeaderArrayFromData("INCM", trade[:, 0, 0], "Y", "income", sets=sets[:1]),
        ]  # fmt: skip
        HarFileIO.writeHeaders(str(tmp_path / "x.har"), made)
    with xr.open_dataset(tmp_path / "x.har", engine="raconvert") as dataset:
        dataset.load()
    assert dataset["TRAD"].dims == ("REG", "COM", "REG_2")
    dataset["TRAD"].loc[{"REG": "USA", "COM": "food", "REG_2": "EU"}] = 99
    dataset["INCM"] = dataset["INCM"] * np.float32(2)
    report = raconvert.write(tmp_path / "y.har", dataset)
    assert report.equivalent == []
    trade[1, 0, 0] = 99
    found = har_of(tmp_path / "y.har")
    assert np.array_equal(found["TRAD"]["array"], trade)
    assert found["TRAD"]["coeff_name"].strip() == "VXMD"
    assert found["TRAD"]["long_name"].strip() == "bilateral"
    assert [one["name"].strip() for one in found["TRAD"]["sets"]] == ["REG", "COM", "REG"]
    assert [[word.strip() for word in one["dim_desc"]] for one in found["TRAD"]["sets"]] == [
        REGIONS, ["food", "mnfc"], REGIONS,
    ]  # fmt: skip
    assert found["INCM"]["array"].tolist() == [0, 12, 24]
    assert [one["name"].strip() for one in found["INCM"]["sets"]] == ["REG"]


def test_har_as_a_long_table_and_back(tmp_path: Path) -> None:
    values = np.arange(6, dtype="f4").reshape(3, 2)
    sets = [
        {"name": name, "status": "k", "dim_type": "Set", "dim_desc": labels}
        for name, labels in (("REG", REGIONS), ("COM", ["food", "mnfc"]))
    ]
    with quiet():
        made = HeaderArrayObj.HeaderArrayFromData("INCM", values, "Y", "income", sets=sets)
        HarFileIO.writeHeaders(str(tmp_path / "x.har"), [made])
    with raconvert.open(tmp_path / "x.har") as bundle:
        table = bundle["INCM"].to_xarray().to_dataframe()
    assert table.index.names == ["REG", "COM"]
    assert table.loc[("USA", "mnfc"), "INCM"] == 3
    table.loc[("USA", "mnfc"), "INCM"] = 30
    raconvert.write(tmp_path / "y.har", table.sort_index(ascending=False)["INCM"].to_xarray())
    found = har_of(tmp_path / "y.har")["INCM"]
    labels = [[word.strip() for word in one["dim_desc"]] for one in found["sets"]]
    assert [one["name"].strip() for one in found["sets"]] == ["REG", "COM"]
    assert found["array"][labels[0].index("USA"), labels[1].index("mnfc")] == 30
    assert found["array"][labels[0].index("Row"), labels[1].index("food")] == 4


# HDF5 as netCDF ----------------------------------------------------------------------------------


def labelled() -> Any:
    height = ("height", [0.0, 0.5, 1.0, 1.5], {"units": "m"})
    field = np.arange(12, dtype="f4").reshape(3, 4)
    return xr.Dataset(
        {
            "field": (("REG", "height"), field, {"units": "K", "long_name": "the field"}),
            "count": ("height", np.arange(4)),
            "pairs": (("REG", "run"), np.ones((3, 2), "i2")),
        },
        {"REG": REGIONS, "height": height},
        {"title": "whole"},
    )


# In a process of its own: netCDF4 brings another HDF5 library, which plugins for filters take for
# that of h5py.
LOOK = """
import pickle, sys, xarray
seen = {}
for engine in ("h5netcdf", "netcdf4"):
    with xarray.open_dataset(sys.argv[1], engine=engine, group=sys.argv[2] or None) as found:
        seen[engine] = found.load().to_dict(data="array")
sys.stdout.buffer.write(pickle.dumps(seen))
"""
MAKE = "import pickle, sys; pickle.load(sys.stdin.buffer).to_netcdf(sys.argv[1], engine='netcdf4')"


def seen_in(path: Path, group: str = "") -> dict[str, Any]:
    """The dataset as the other engines read it, by engine."""
    pytest.importorskip("h5netcdf")
    done = subprocess.run(
        [sys.executable, "-c", LOOK, str(path), group], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    seen = pickle.loads(done.stdout)
    assert list(seen) == ["h5netcdf", "netcdf4"]
    return {engine: xr.Dataset.from_dict(one) for engine, one in seen.items()}


@pytest.mark.parametrize("suffix", [".nc", ".h5"])
def test_hdf5_of_labelled_arrays_is_netcdf(tmp_path: Path, suffix: str) -> None:
    dataset = labelled()
    report = raconvert.write(tmp_path / f"x{suffix}", dataset)
    assert report.equivalent == []
    for found in seen_in(tmp_path / f"x{suffix}").values():
        assert dict(found.sizes) == {"REG": 3, "height": 4, "run": 2}
        assert found.attrs == {"title": "whole"}
        assert set(found.variables) == set(dataset.variables)
        for name, one in dataset.variables.items():
            assert found[name].dims == one.dims
            assert np.array_equal(found[name], one)
            assert found[name].dtype.kind == one.dtype.kind or name == "REG"
        assert found["field"].attrs["units"] == "K"
        assert found["height"].attrs["units"] == "m"
        assert found["field"].attrs["long_name"] == "the field"
    with xr.open_dataset(tmp_path / f"x{suffix}", engine="raconvert") as again:
        assert again.identical(dataset)


def test_arrays_without_names_of_axes_in_netcdf(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.nc", {"a": VALUES, "g/b": np.arange(3)})
    for found in seen_in(tmp_path / "x.nc").values():
        assert np.array_equal(found["a"], VALUES)
        assert list(found.variables) == ["a"]
    for found in seen_in(tmp_path / "x.nc", "g").values():
        assert found["b"].values.tolist() == [0, 1, 2]


def test_netcdf_by_xarray_and_back(tmp_path: Path) -> None:
    dataset = labelled()
    command = [sys.executable, "-c", MAKE, str(tmp_path / "x.nc")]
    subprocess.run(command, input=pickle.dumps(dataset), check=True)
    with xr.open_dataset(tmp_path / "x.nc", engine="raconvert") as found:
        for name, one in dataset.variables.items():
            assert found[name].dims == one.dims
            assert np.array_equal(found[name], one)
        raconvert.write(tmp_path / "y.nc", found)
    for again in seen_in(tmp_path / "y.nc").values():
        for name, one in dataset.variables.items():
            assert again[name].dims == one.dims
            assert np.array_equal(again[name], one)


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_coordinates_of_xarray_stay_coordinates_in_netcdf(tmp_path: Path, suffix: str) -> None:
    given = xr.Dataset(
        {"T": (("time", "lat"), np.arange(6.0).reshape(2, 3), {"units": "K"}), "n": ("x", [1, 2])},
        {"time": np.array(["2020-01-01", "2020-01-02"], "M8[ns]"), "lat": [10.0, 25.0, 30.0],
         "height": ("lat", [1, 2, 3])},
    )  # fmt: skip
    source = tmp_path / f"x{suffix}"
    if suffix == ".nc":
        command = [sys.executable, "-c", MAKE, str(source)]
        subprocess.run(command, input=pickle.dumps(given), check=True)
    else:
        pytest.importorskip("zarr")
        given.to_zarr(source, consolidated=False)
    raconvert.convert(source, tmp_path / "y.nc")
    for found in seen_in(tmp_path / "y.nc").values():
        for one in found.variables.values():
            for own in ("raconvert", "DIMENSION_LABELS"):
                one.attrs.pop(own, None)
        xr.testing.assert_identical(found, given)
    with raconvert.open(source) as before, raconvert.open(tmp_path / "y.nc") as after:
        # HDF5 reads what stands along an axis from its scale; Zarr names the array that has it.
        assert [axis.name for axis in after["T"].axes] == [axis.name for axis in before["T"].axes]
        if suffix == ".nc":
            assert repr(after["T"].axes) == repr(before["T"].axes)
        assert after["T"].axes[1].labels == (10.0, 25.0, 30.0)


def test_one_label_of_what_was_opened_is_written(tmp_path: Path) -> None:
    meta = raconvert.Metadata(
        axes=[Axis("REG", labels=["EU", "US"]), Axis("COMM", labels=["a", "b"])]
    )
    raconvert.write(tmp_path / "x.har", {"V": np.arange(4, dtype="f4").reshape(2, 2)}, meta=meta)
    with xr.open_dataset(tmp_path / "x.har", engine="raconvert") as given:
        raconvert.write(tmp_path / "y.npz", given.sel(REG="US"))
        raconvert.write(tmp_path / "z.h5", given.rename(REG="R"))
    with raconvert.open(tmp_path / "z.h5") as renamed:
        assert [axis.name for axis in renamed["V"].axes] == ["R", "COMM"]
    found = np.load(tmp_path / "y.npz")
    assert found["V"].tolist() == [2, 3]
    assert found["REG"] == "US"


AROUND = np.array([[0, 0, 1], [-np.sqrt(0.75), 0.5, 0], [0.5, np.sqrt(0.75), 0]])  # oblique
PARTS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda d: d,
    "slices": lambda d: d.isel(z=slice(1, None), y=slice(0, 3, 2), x=slice(1, 4, 2)),
    "backward": lambda d: d.isel(z=slice(None, None, -1), x=slice(3, 0, -2)),
    "transposed": lambda d: d.transpose("x", "t", "z", "y"),
    "transposed part": lambda d: d.transpose("x", "t", "z", "y").isel(x=slice(2, 4), t=[1]),
    "list": lambda d: d.isel(x=[0, 3], y=[1]),
    "by value": lambda d: d.sel(y=d.y[1:].values),
    "index": lambda d: d.isel(x=2, t=0, drop=False).drop_vars("t", errors="ignore"),
    "computed": lambda d: d.isel(y=slice(1, 3)) * 1.0,
    "renamed": lambda d: d.isel(x=slice(1, 3)).rename(x="column"),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("oblique", [False, True])
def test_parts_of_what_lies_in_space_stay_where_they_are(
    tmp_path: Path, part: str, oblique: bool
) -> None:
    directions = AROUND if oblique else [(0, 0, 1), (0, -1, 0), (1, 0, 0)]
    steps = [step * np.array(one) for step, one in zip((3, 2, 1.5), directions, strict=True)]
    axes = [Axis("t")] + [
        Axis(name, spacing=float(step), direction=tuple(map(float, one)))
        for name, step, one in zip("zyx", (3, 2, 1.5), directions, strict=True)
    ]
    meta = Metadata(axes=axes, space=Space("LPS", (10.0, 20.0, 30.0)))
    values = np.arange(48.0).reshape(2, 2, 3, 4)
    raconvert.write(tmp_path / "a.ra", values, meta=meta)
    with raconvert.open(tmp_path / "a.ra") as array:
        opened = array.to_xarray()
        if not oblique:  # as every reader of CF sees them
            assert opened.coords["y"].values.tolist() == [20.0, 18.0, 16.0]
        given = PARTS[part](opened).load()
        report = raconvert.write(tmp_path / "b.ra", given.rename("v"))
    assert not any("place in the world" in fit.reason for fit in report.equivalent)
    with raconvert.open(tmp_path / "b.ra") as found:
        vectors = [axis.vector or (0, 0, 0) for axis in found.meta.axes]
        origin = np.array(found.meta.space.origin)
        for at, value in np.ndenumerate(np.asarray(found)):
            was = np.unravel_index(int(value), values.shape)[1:]
            wanted = np.array([10, 20, 30]) + sum(n * s for n, s in zip(was, steps, strict=True))
            place = origin + sum(n * np.array(s) for n, s in zip(at, vectors, strict=True))
            assert np.allclose(place, wanted)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.isel(x=2, drop=True),
        lambda d: d.assign_coords(x=[5.0, 6.0, 8.0, 9.0]),
        lambda d: d.drop_vars("x").isel(x=slice(1, None)),
        lambda d: d.isel(x=[0, 1, 3]),
    ],
)
def test_a_place_in_space_that_is_not_known_any_more_is_named(tmp_path: Path, change: Any) -> None:
    axes = [Axis(name, spacing=2.0, direction=one) for name, one in (("y", (0, 1)), ("x", (1, 0)))]
    meta = Metadata(axes=axes, space=Space(None, (1.0, 2.0)))
    raconvert.write(tmp_path / "a.ra", np.zeros((3, 4)), meta=meta)
    with raconvert.open(tmp_path / "a.ra") as array:
        report = raconvert.write(tmp_path / "b.ra", change(array.to_xarray().load()).rename("v"))
    assert any("place in the world" in fit.reason for fit in report.equivalent)
    with raconvert.open(tmp_path / "b.ra") as found:
        assert found.meta.space is None
        assert all(a.direction is None for a in found.meta.axes)


def test_an_axis_in_space_keeps_a_name_that_another_has(tmp_path: Path) -> None:
    """Its dimension is called otherwise, and its coordinates are those of the world."""
    vectors = {"row": (0.0, 1.0, 0.0), "column": (1.0, 0.0, 0.0), "depth": (0.0, 0.0, 1.0)}
    axes = [Axis(name, spacing=2.0, direction=vector) for name, vector in vectors.items()]
    meta = Metadata(axes=axes, space=Space("LPS", (5.0, -3.0, 1.0)))
    arrays = [
        raconvert.Array(np.zeros((n, 2, 2)), name=name, meta=meta)
        for name, n in (("a", 3), ("b", 4))
    ]
    dataset = raconvert.Bundle(arrays).to_xarray()
    assert dataset["b"].dims == ("b_row", "column", "depth")
    raconvert.write(tmp_path / "x.zip", dataset)
    with raconvert.open(tmp_path / "x.zip") as back:
        assert back["b"].axes == tuple(axes)


@pytest.mark.parametrize("suffix", ["h5", "nc", "zarr"])
def test_an_axis_without_a_name_has_none_afterwards(tmp_path: Path, suffix: str) -> None:
    """Also where a format needs a name for each dimension, and raconvert makes one up."""
    array = raconvert.Array(np.zeros((2, 3)), name="v", meta=Metadata(axes=[Axis(), Axis("x")]))
    raconvert.write(tmp_path / f"x.{suffix}", {"v": array})
    with raconvert.open(tmp_path / f"x.{suffix}") as back:
        assert [axis.name for axis in back["v"].axes] == [None, "x"]
