"""Physical values: slope, intercept and missing values as nibabel, xarray and netCDF4 apply them."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest

import raconvert
from raconvert import Array, Metadata, Unsupported, WouldLose
from raconvert.arrays.blocks import blocks
from raconvert.arrays.scales import Scale, scale_of
from raconvert.arrays.unscale import NOTHING, unscaled
from raconvert.cli import main

netcdf4 = pytest.importorskip("netCDF4")
xarray = pytest.importorskip("xarray")
h5netcdf = pytest.importorskip("h5netcdf")

TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8"]


# NIfTI, against nibabel ---------------------------------------------------------------------------


def nifti(path: Path, values: np.ndarray, slope: float, inter: float) -> Path:
    """A file with this very slope and intercept in its header."""
    kind = nibabel.Nifti2Image if "2" in path.stem else nibabel.Nifti1Image
    nibabel.save(kind(values, np.eye(4), dtype=values.dtype), path)
    header = bytearray(path.read_bytes())
    place, code = (176, "<f8") if kind is nibabel.Nifti2Image else (112, "<f4")
    header[place : place + 2 * int(code[-1])] = np.array([slope, inter], code).tobytes()
    path.write_bytes(header)
    return path


@pytest.mark.parametrize("seed", range(24))
def test_nifti_as_nibabel(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    dtype = np.dtype(chance.choice(["u1", "i2", "u2", "i4", "f4", "f8"]))
    values = (np.random.default_rng(seed).standard_normal((4, 3, 2)) * 100).astype(dtype)
    slope = chance.choice([1, 0.5, -0.1, 1e-3, 3.7, 0, np.nan])
    inter = chance.choice([0, 10, -0.25, 1e4])
    path = nifti(tmp_path / f"a{1 + seed % 2}.nii", values, slope, inter)

    wanted = nibabel.load(path)
    got = raconvert.read(path, unscale=True)

    if slope and np.isfinite(slope) and (slope, inter) != (1, 0):
        assert got.dtype == np.float64
        assert np.array_equal(got, wanted.get_fdata())
    else:  # no scale is said
        assert got.dtype == dtype
        assert np.array_equal(got, wanted.dataobj.get_unscaled())
    report = raconvert.convert(path, tmp_path / "physical.nii", unscale=True)
    assert np.array_equal(nibabel.load(tmp_path / "physical.nii").get_fdata(), wanted.get_fdata())
    assert not any("as stored" in note for note in report.notes)
    assert (NOTHING in report.notes) == (got.dtype == dtype and (values == got).all())


def test_an_intercept_that_is_no_number_is_refused(tmp_path: Path) -> None:
    """As nibabel refuses it."""
    path = nifti(tmp_path / "a.nii", np.zeros((2, 2, 2), "i2"), 2, np.nan)
    with pytest.raises(nibabel.spatialimages.HeaderDataError):
        nibabel.load(path)
    with pytest.raises(Unsupported, match="scl_inter"):
        raconvert.read(path, unscale=True)
    assert not raconvert.read(path).any()


def test_each_file_of_a_stack_has_its_own_slope(tmp_path: Path) -> None:
    paths = [
        nifti(tmp_path / f"{n}.nii", np.full((2, 2, 2), 3, "i2"), n + 0.5, n) for n in range(3)
    ]
    raconvert.convert(paths, tmp_path / "all.npy", unscale=True)
    wanted = np.stack([nibabel.load(path).get_fdata() for path in paths])
    assert np.array_equal(np.load(tmp_path / "all.npy"), wanted)
    assert np.array_equal(raconvert.read(paths, unscale=True), wanted)


# netCDF and Zarr, against xarray ------------------------------------------------------------------


def packed(seed: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Elements as stored, and the attributes that say what they stand for."""
    chance = random.Random(seed)
    dtype = np.dtype(chance.choice(TYPES))
    numbers = np.random.default_rng(seed)
    if dtype.kind == "f":
        values = numbers.standard_normal((5, 7)).astype(dtype)
    else:
        values = numbers.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (5, 7), dtype, True)
    attributes: dict[str, Any] = {"units": "K", "long_name": "a field"}
    # xarray rounds elements that float32 does not hold, if that is the type of the factors.
    wide = dtype.itemsize > (4 if dtype.kind == "f" else 2)
    factor = np.dtype("f8" if wide else chance.choice(["f4", "f8"])).type
    if chance.random() < 0.7:
        attributes["scale_factor"] = factor(chance.choice([0.1, 0.5, -2, 1e-4]))
    if chance.random() < 0.5:
        attributes["add_offset"] = factor(chance.choice([10, -0.3, 273.15]))
    if dtype.kind != "f" and dtype.itemsize < 4 and chance.random() < 0.3:
        attributes["_Unsigned"] = "true" if dtype.kind == "i" else "false"
    fill = chance.choice([None, "_FillValue", "missing_value"])
    if fill == "missing_value" and "_Unsigned" in attributes:
        fill = "_FillValue"  # xarray does not take the other one so
    if fill is not None:
        attributes[fill] = values[2, 3]
    return values, attributes


def written(path: Path, values: np.ndarray, attributes: dict[str, Any], engine: str) -> Path:
    """The elements as they are, by the library that the engine is of."""
    fill = attributes.get("_FillValue")
    rest = {key: value for key, value in attributes.items() if key != "_FillValue"}
    if engine == "netcdf4":
        with netcdf4.Dataset(path, "w") as file:
            file.createDimension("y", 5)
            file.createDimension("x", 7)
            made = file.createVariable("t", values.dtype, ("y", "x"), fill_value=fill)
            made.set_auto_maskandscale(False)
            made.setncatts(rest)
            made[...] = values
    elif engine == "h5netcdf":
        with h5netcdf.File(path, "w") as file:
            file.dimensions = {"y": 5, "x": 7}
            made = file.create_variable("t", ("y", "x"), values.dtype, data=values, fillvalue=fill)
            made.attrs.update(rest)
            if fill is not None:
                made.attrs["_FillValue"] = fill
    else:
        made = xarray.Dataset({"t": (("y", "x"), values, attributes)})
        made.to_zarr(path, zarr_format=int(engine[-1]), consolidated=False)
    return path


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf", "zarr2", "zarr3"])
@pytest.mark.parametrize("seed", range(16))
@pytest.mark.filterwarnings("ignore")
def test_packed_values_as_xarray(tmp_path: Path, engine: str, seed: int) -> None:
    values, attributes = packed(seed)
    path = written(
        tmp_path / ("a.zarr" if "zarr" in engine else "a.nc"), values, attributes, engine
    )
    options: Any = {"engine": engine.rstrip("23")}
    if "zarr" in engine:
        options["consolidated"] = False
    with xarray.open_dataset(path, mask_and_scale=True, **options) as made:
        wanted = made.t.load()
    with raconvert.open(path, "t", unscale=True) as array:
        got = np.asarray(array)
        assert got.dtype == wanted.dtype
        assert np.array_equal(got, wanted, equal_nan=True)
        assert array.meta.units == "K"
        assert array.meta.description == "a field"
        changed = {*attributes} - {"units", "long_name"}
        if scale_of(raconvert.open(path, "t")) is not None:
            assert not changed & array.meta.attributes.keys()
        key = (slice(1, 4), slice(None, None, -2))
        assert np.array_equal(array.slicer[key], got[key], equal_nan=True)
        assert np.array_equal(array[key], got[key], equal_nan=True)
    # The file that is written says so too, to a reader that knows nothing of raconvert.
    for name in ("b.nc", "b.zarr"):
        raconvert.convert(path, tmp_path / name, unscale=True, arrays=["t"])
        with xarray.open_dataset(tmp_path / name, engine="zarr" if "z" in name else None) as made:
            assert np.array_equal(made.t, got, equal_nan=True)
            assert made.t.attrs["units"] == "K"
        with raconvert.open(tmp_path / name, "t") as again:
            assert scale_of(again) is None


@pytest.mark.parametrize("dtype", ["i4", "f8"])
def test_factors_of_float32_round_no_elements(tmp_path: Path, dtype: str) -> None:
    values = np.array([[2**24 + 1, 2**30 + 3]] * 5, dtype)
    values = np.hstack([values] * 4)[:, :7]
    said = {"scale_factor": np.float32(0.5), "add_offset": np.float32(1)}
    path = written(tmp_path / "a.nc", values, said, "netcdf4")
    got = raconvert.read(path, "t", unscale=True)
    assert got.dtype == np.float64
    assert np.array_equal(got, values * 0.5 + 1)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.filterwarnings("ignore")
def test_ranges_as_netcdf4(tmp_path: Path, seed: int) -> None:
    """What lies outside the valid range is missing, as in masked arrays of netCDF4."""
    chance = random.Random(seed)
    dtype = np.dtype(chance.choice(["i2", "u2", "i4", "f4"]))
    values = np.arange(35).reshape(5, 7).astype(dtype)
    low, high = dtype.type(chance.randrange(15)), dtype.type(chance.randrange(15, 35))
    attributes: dict[str, Any] = chance.choice(
        [{"valid_range": np.array([low, high])}, {"valid_min": low}, {"valid_max": high},
         {"valid_min": low, "valid_max": high, "missing_value": dtype.type(20)}]
    )  # fmt: skip
    if chance.random() < 0.5:
        attributes |= {"scale_factor": 0.5, "add_offset": -3.0}
    path = written(tmp_path / "a.nc", values, attributes, "netcdf4")
    with netcdf4.Dataset(path) as file:
        wanted = np.ma.filled(file["t"][...].astype("f8"), np.nan)
    assert np.isnan(wanted).any()
    assert np.array_equal(raconvert.read(path, "t", unscale=True), wanted, equal_nan=True)


def test_a_range_of_floats_is_one_of_physical_values() -> None:
    """As the user's guide of netCDF has it, for packed integers."""
    said = {"scale_factor": 0.5, "valid_range": [1.0, 2.0]}
    array = Array(np.arange(6, dtype="i2"), meta=Metadata(attributes=said))
    assert scale_of(array) == Scale(0.5, low=1.0, high=2.0, of_physical=True)


def test_classic_files_are_unsigned_by_an_attribute(tmp_path: Path) -> None:
    values = np.arange(-128, 128, dtype="i1").reshape(16, 16)
    for name, fill in (("signed", -1), ("unsigned", 255)):
        said = {"_Unsigned": "true", "_FillValue": fill}
        raconvert.write(
            tmp_path / f"{name}.h5", {"t": Array(values, meta=Metadata(attributes=said))}
        )
        got = raconvert.read(tmp_path / f"{name}.h5", "t", unscale=True)
        assert got.dtype == np.float32
        assert np.array_equal(got[values != -1], values.view("u1")[values != -1])
        assert np.isnan(got[values == -1]).all()


# As it is asked for -------------------------------------------------------------------------------


SAID = {"scale_factor": 0.5, "add_offset": 10.0, "_FillValue": 3}


def stored(path: Path, **said: Any) -> Path:
    values = np.arange(24, dtype="i2").reshape(4, 6)
    meta = Metadata(units="K", attributes=SAID | said)
    raconvert.write(path, {"t": Array(values, meta=meta)})
    return path


def test_parts_orders_and_types_come_after(tmp_path: Path) -> None:
    path = stored(tmp_path / "a.h5", _FillValue=0)
    physical = np.arange(24.0).reshape(4, 6) * 0.5 + 10
    raconvert.convert(
        path, tmp_path / "a.npy", unscale=True, slice="1:, ::2", axes="1,0", dtype="float32"
    )
    got = np.load(tmp_path / "a.npy")
    assert got.dtype == np.float32
    assert np.array_equal(got, physical[1:, ::2].T)
    raconvert.convert(f"{path}#t[2]", tmp_path / "row.npy", unscale=True)
    assert np.array_equal(np.load(tmp_path / "row.npy"), physical[2])
    with pytest.raises(WouldLose, match=r"value 10\.5"):
        raconvert.convert(path, tmp_path / "no.npy", unscale=True, dtype="int32", slice="0, 1:")


@pytest.mark.parametrize("suffix", ["h5", "zarr", "ra"])
def test_without_it_elements_stay_and_the_scale_is_told(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "values are as stored; the header says: value * 0.5 + 10, in K"
    path = stored(tmp_path / "a.h5")
    if suffix != "h5":
        report = raconvert.convert(path, tmp_path / f"a.{suffix}")
        assert told in report.notes
        path = tmp_path / f"a.{suffix}"
    assert raconvert.info(path)["notes"] == [told]
    assert main(["info", str(path), "--html", "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    shown = "physical values are shown: value * 0.5 + 10, in K"  # a look is at those
    assert (page.count(shown), page.count(told)) == (1, 0)
    assert main(["peek", str(path)]) == 0
    assert shown in capsys.readouterr().out
    with raconvert.open(f"{path}" if suffix == "ra" else f"{path}#t") as array:
        assert array.dtype == np.int16
        assert array.meta.attributes["scale_factor"] == 0.5
    assert main([str(path), "-o", str(tmp_path / "b.npy"), "--unscale"]) == 0
    assert "as stored" not in capsys.readouterr().err
    wanted = np.where(np.arange(24) == 3, np.nan, np.arange(24) * 0.5 + 10).reshape(4, 6)
    assert np.array_equal(np.load(tmp_path / "b.npy"), wanted, equal_nan=True)


def test_notes_of_many_arrays_are_few(tmp_path: Path) -> None:
    arrays = {
        f"a{n}": Array(np.zeros(2, "i2"), meta=Metadata(attributes={"scale_factor": n + 0.5}))
        for n in range(30)
    }
    raconvert.write(tmp_path / "two.h5", {"plain": np.zeros(2), "a0": arrays["a0"]})
    raconvert.write(tmp_path / "many.h5", arrays)
    (two,) = raconvert.info(tmp_path / "two.h5")["notes"]
    (many,) = raconvert.info(tmp_path / "many.h5")["notes"]
    assert two == "array 'a0': values are as stored; the header says: value * 0.5"
    assert many.startswith("30 arrays: values are as stored; ")


def test_nothing_to_apply_changes_nothing(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(6, dtype="i2"))
    report = raconvert.convert(tmp_path / "a.npy", tmp_path / "b.npy", unscale=True)
    assert report.notes == [NOTHING]
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


def test_texts_beside_stay_what_they_are(tmp_path: Path) -> None:
    text = Array(np.array([b"a", b"b"]), meta=Metadata(attributes={"_FillValue": "b"}))
    number = Array(np.arange(2, dtype="i2"), meta=Metadata(attributes={"scale_factor": 2.0}))
    raconvert.write(tmp_path / "a.h5", {"text": text, "number": number})
    with raconvert.open(tmp_path / "a.h5", unscale=True) as bundle:
        assert bundle["text"].meta.attributes == {"_FillValue": "b"}
        assert bundle["text"][...].tolist() == [b"a", b"b"]
        assert bundle["number"][...].tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    "said",
    [{"scale_factor": "0.1"}, {"scale_factor": [1.0, 2.0]}, {"add_offset": float("nan")},
     {"_FillValue": "n/a"}, {"valid_range": [1]}, {"scale_factor": True}],
)  # fmt: skip
def test_what_cannot_be_understood_is_refused(tmp_path: Path, said: dict[str, Any]) -> None:
    path = stored(tmp_path / "a.h5", **said)
    (name,) = said
    with pytest.raises(Unsupported, match=name):
        raconvert.convert(path, tmp_path / "b.npy", unscale=True)
    assert not (tmp_path / "b.npy").exists()
    assert np.array_equal(raconvert.read(path, "t").ravel(), np.arange(24))
    (note,) = raconvert.info(path)["notes"]
    assert note.startswith("values are as stored; ")


def test_large_integers_are_not_rounded_unasked(tmp_path: Path) -> None:
    """Where only missing values make them floats; these themselves may be anything."""
    last = np.iinfo("i8").max
    values = np.array([1, 2**53 + 1, last])
    meta = Metadata(attributes={"_FillValue": int(last)})
    raconvert.write(tmp_path / "a.h5", {"t": Array(values, meta=meta)})
    with pytest.raises(WouldLose, match=r"9007199254740993.*float64"):
        raconvert.convert(tmp_path / "a.h5", tmp_path / "b.npy", unscale=True)
    raconvert.convert(tmp_path / "a.h5", tmp_path / "b.npy", unscale=True, allow="precision")
    assert np.array_equal(np.load(tmp_path / "b.npy"), [1, 2.0**53, np.nan], equal_nan=True)
    raconvert.convert(tmp_path / "a.h5", tmp_path / "c.npy", unscale=True, slice="::2")
    assert np.array_equal(np.load(tmp_path / "c.npy"), [1, np.nan], equal_nan=True)


def test_blocks_are_as_large_as_is_asked_for(tmp_path: Path) -> None:
    values = np.zeros((64, 1024), "i1")
    meta = Metadata(attributes={"scale_factor": 2.0})
    raconvert.write(tmp_path / "a.h5", {"t": Array(values, meta=meta)})
    with raconvert.open(tmp_path / "a.h5", "t", unscale=True) as array:
        assert array.dtype == np.float64
        assert max(block.nbytes for block in blocks(array, 1 << 16)) <= 1 << 16


def test_small_files_alike_in_a_row(tmp_path: Path) -> None:
    """The quick way of many small files makes what the usual one makes."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(8):
            path = nifti(tmp_path / f"{n}.nii", np.full((2, 2, 2), n, "i2"), 0.5, 1)
            raconvert.convert(path, tmp_path / f"{n}.npy", unscale=True)
            assert (np.load(tmp_path / f"{n}.npy") == n * 0.5 + 1).all()
    (tmp_path / "all").mkdir()
    raconvert.convert(str(tmp_path / "*.nii"), out_dir=tmp_path / "all", to="npy", unscale=True)
    for n in range(8):
        (path,) = (tmp_path / "all").rglob(f"{n}.npy")
        assert (np.load(path) == n * 0.5 + 1).all()


def test_physical_values_are_not_mapped_and_the_reason_is_said(tmp_path: Path) -> None:
    image = nibabel.Nifti1Image(np.arange(8, dtype="i2").reshape(2, 2, 2), np.eye(4))
    image.header.set_slope_inter(2, 1)
    nibabel.save(image, tmp_path / "x.nii")
    with pytest.raises(Unsupported, match="physical values are computed.*\n.*unscale=True"):
        raconvert.open(tmp_path / "x.nii", mmap=True, unscale=True)
    assert raconvert.read(tmp_path / "x.nii", mmap=True).ravel("F").tolist()[:2] == [0, 4]


def test_a_tree_in_physical_values(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        image = nibabel.Nifti1Image(np.arange(8, dtype="i2").reshape(2, 2, 2), np.eye(4))
        image.header.set_slope_inter(2, number)
        nibabel.save(image, tmp_path / f"in/{number}.nii")
    raconvert.migrate(tmp_path / "in", tmp_path / "out", to="npy", unscale=True, jobs=1)
    for number in range(2):
        wanted = nibabel.load(tmp_path / f"in/{number}.nii").get_fdata()
        assert np.array_equal(np.load(tmp_path / f"out/{number}.npy"), wanted)
    assert main(["migrate", f"{tmp_path}/in", f"{tmp_path}/ra", "--to", "ra", "--unscale"]) == 0
    assert raconvert.read(tmp_path / "ra/1.ra").dtype.kind == "f"


@pytest.mark.parametrize("key", [..., 0, (2, 3), slice(1, 3), (slice(None, None, 2), slice(1, 5))])
@pytest.mark.parametrize("parts", [1, 2, 4, 8, 24])
def test_regions_of_parts_that_are_not_whole_indices(parts: int, key: Any) -> None:
    slopes = [float(n + 1) for n in range(parts)]
    meta = Metadata(formats={"nrrd": {"scl_slope": slopes, "scl_inter": [0.5] * parts}})
    array = Array(np.arange(24).reshape(4, 6), name="x", meta=meta)
    scale = scale_of(array)
    assert scale is not None
    physical = unscaled(array, scale)

    expected = np.arange(24).reshape(parts, -1) * np.array(slopes)[:, None] + 0.5
    assert np.array_equal(physical[key], expected.reshape(4, 6)[key])
