"""netCDF classic as it is written: netCDF4, scipy, xarray, ncdump, nccopy, CDO and NCO are judges."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import netcdf3_reader
import numpy as np
import pytest
from cases import rounds
from raconvert.plugins import netcdf3
from raconvert.plugins.netcdf3.header import Attribute, Dimension, Header, Variable, smallest
from raconvert.plugins.netcdf3.structure import key_of, keys_of

import raconvert
from raconvert.errors import Corrupt, TargetExists, UsageError, WouldLose
from raconvert.files.limits import DEFAULT
from raconvert.files.target import Target
from raconvert.plugin import Array, Axis, Bundle, Extent, Metadata, element

netcdf4 = pytest.importorskip("netCDF4")
scipy_io = pytest.importorskip("scipy.io")

# Files each way; more with the environment variable.
FILES = int(os.environ.get("RACONVERT_NETCDF3_FILES", str(rounds(40, 16))))
CLASSIC = ("i1", "i2", "i4", "f4", "f8")
NEW = ("u1", "u2", "u4", "i8", "u8")
WORDS = ("K", "a long text", "grüße", "", "x\ny", "degrees_north")
Facts = dict[str, Any]
Tool = Callable[[str], str]


def some(rng: np.random.Generator, code: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values of a type, infinities, NaN and the ends of integers among them."""
    if code == "S1":
        return rng.integers(97, 123, shape, np.uint8).view("S1").reshape(shape)
    if code[0] == "f":
        values = rng.normal(size=shape).astype(code)
        values[rng.random(shape) < 0.1] = rng.choice([np.nan, np.inf, -0.0])
        return values
    info = np.iinfo(code)
    return rng.integers(info.min, info.max, shape, code, endpoint=True)


# Files of ours -----------------------------------------------------------------------------------


def random_arrays(seed: int) -> tuple[dict[str, Array], dict[str, Any], dict[str, str]]:
    """Arrays over shared axes, attributes of the file, and options: by the seed."""
    rng = np.random.default_rng(seed)
    lengths = {name: int(rng.integers(1, 6)) for name in "tzyx"}
    codes = CLASSIC if seed % 2 else (*CLASSIC, *NEW)
    arrays: dict[str, Array] = {}
    for number in range(int(rng.integers(1, 6))):
        axes = list("tzyx")[int(rng.integers(0, 5)) :]
        shape = tuple(lengths[name] for name in axes)
        values = some(rng, str(rng.choice(codes)), shape)
        values = values.astype(values.dtype.newbyteorder(str(rng.choice(["<", ">"]))))
        meta = Metadata(
            axes=[Axis(name) for name in axes],
            units=str(rng.choice(WORDS)) or None,
            description=str(rng.choice(WORDS)) or None,
            attributes=random_attributes(rng),
        )
        arrays[f"v{number}"] = array_of(values, f"v{number}", meta)
    if rng.random() < 0.5:  # a coordinate that is an array
        values = np.sort(rng.normal(size=lengths["x"]))
        arrays["x"] = array_of(values, "x", Metadata(units="m", axes=[Axis("x")]))
    options = {"unlimited": "t"} if rng.random() < 0.6 and _has_t(arrays) else {}
    return arrays, random_attributes(rng), options


def _has_t(arrays: dict[str, Array]) -> bool:
    return any(axis.name == "t" for one in arrays.values() for axis in one.meta.axes)


def array_of(values: np.ndarray, name: str, meta: Metadata) -> Array:
    return Array(
        raconvert.plugin.element_of(values.dtype), values.shape[::-1], name=name, index_order="C",
        data=values, meta=meta,
    )  # fmt: skip


def random_attributes(rng: np.random.Generator) -> dict[str, Any]:
    known: dict[str, Any] = {
        "title": str(rng.choice(WORDS)), "whole": int(rng.integers(-9, 9)), "half": 0.5,
        "numbers": rng.integers(-9, 9, 3).tolist(), "halves": [0.5, float("inf"), 1e300],
        "odd name": "text",
    }  # fmt: skip
    return {name: known[name] for name in known if rng.random() < 0.4}


def by_netcdf4(path: Path) -> dict[str, Facts]:
    with netcdf4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        found: dict[str, Facts] = {
            "": {"attributes": {k: file.getncattr(k) for k in file.ncattrs()}}
        }
        for name, one in file.variables.items():
            attributes = {key: one.getncattr(key) for key in one.ncattrs()}
            found[name] = {"dims": one.dimensions, "attributes": attributes, "values": one[...]}
        return found


def by_scipy(path: Path) -> dict[str, Facts]:
    def plain(value: Any) -> Any:
        return value.decode() if isinstance(value, bytes) else value

    with scipy_io.netcdf_file(path, mmap=False) as file:
        found: dict[str, Facts] = {
            "": {"attributes": {k: plain(v) for k, v in file._attributes.items()}}
        }
        for name, one in file.variables.items():
            attributes = {key: plain(value) for key, value in one._attributes.items()}
            values = np.array(one[...])
            found[name] = {"dims": one.dimensions, "attributes": attributes, "values": values}
        return found


def by_ourselves(path: Path) -> dict[str, Facts]:
    file = netcdf3_reader.load(path)
    found: dict[str, Facts] = {"": {"attributes": file.attributes}}
    for name, one in file.variables.items():
        found[name] = {"dims": tuple(one.dims), "attributes": one.attributes, "values": one.values}
    return found


def same_values(one: Any, other: np.ndarray) -> bool:
    got = np.asarray(one)
    if (got.shape, got.dtype.str[1:]) != (other.shape, other.dtype.str[1:]):
        return False
    native = other.dtype.newbyteorder("=")
    return got.astype(native).tobytes() == other.astype(native).tobytes()


def same_attribute(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, str):
        return bool(got == wanted)
    return bool(np.array_equal(np.atleast_1d(got), np.atleast_1d(wanted), equal_nan=True))


@pytest.mark.parametrize("seed", range(FILES))
def test_judges_read_what_was_written(seed: int, tmp_path: Path) -> None:
    """Names, dimensions, types, bits and attributes; by every judge that knows the version."""
    arrays, attributes, options = random_arrays(seed)
    path = tmp_path / "x.nc3"
    raconvert.write(path, Bundle([*arrays.values()], attributes=attributes), out_opts=options)
    version = path.read_bytes()[3]
    wide = any(one.dtype.str[1:] in NEW for one in arrays.values())
    assert version == (5 if wide else 1)
    judges = [by_netcdf4, by_ourselves, *([by_scipy] if version < 5 else [])]
    for judge in judges:
        found = judge(path)
        assert [*found] == ["", *arrays], judge
        assert found[""]["attributes"].keys() == attributes.keys()
        for name, array in arrays.items():
            got, meta = found[name], array.meta
            assert tuple(got["dims"]) == tuple(axis.name for axis in meta.axes), judge
            assert same_values(got["values"], np.asarray(array)), (judge, name)
            wanted = {
                **meta.attributes, **({"units": meta.units} if meta.units else {}),
                **({"long_name": meta.description} if meta.description else {}),
            }  # fmt: skip
            assert got["attributes"].keys() == wanted.keys(), judge
            for key, value in wanted.items():
                assert same_attribute(got["attributes"][key], value), (judge, name, key)
    with netcdf4.Dataset(path) as file:
        growing = [name for name, one in file.dimensions.items() if one.isunlimited()]
        assert growing == [*options.values()]
    with raconvert.open_bundle(path) as back:
        assert back.attributes == attributes
        assert back.names == [*arrays]
        for name, array in arrays.items():
            assert same_values(back[name][...], np.asarray(array))
            assert back[name].meta.attributes == array.meta.attributes
            for key in (0, -1, slice(None, None, -2)):
                if array.ndim:
                    assert same_values(back[name][key], np.asarray(array)[key])
    raconvert.convert(path, tmp_path / "y.nc3", strict=True, verify=True)
    assert (tmp_path / "y.nc3").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("seed", range(0, FILES, 4))
def test_xarray_reads_what_was_written(seed: int, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    arrays, attributes, options = random_arrays(seed)
    path = tmp_path / "x.nc3"
    raconvert.write(path, Bundle([*arrays.values()], attributes=attributes), out_opts=options)
    engines = ["netcdf4", "scipy"] if path.read_bytes()[3] < 5 else ["netcdf4"]
    for engine in engines:
        with xarray.open_dataset(path, engine=engine, decode_cf=False) as found:
            assert {*found.variables} == {*arrays}
            for name, array in arrays.items():
                assert same_values(found[name].values, np.asarray(array)), engine


# Versions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", NEW)
@pytest.mark.parametrize("version", ["1", "2"])
def test_types_of_cdf5_are_refused_in_smaller_versions(
    code: str, version: str, tmp_path: Path
) -> None:
    values, name = np.arange(3, dtype=code), np.dtype(code).name
    with pytest.raises(WouldLose, match=rf"CDF-{version} has no {name}; CDF-5 has.*version.*5"):
        raconvert.write(tmp_path / "x.nc3", {"x": values}, out_opts={"version": version})
    assert [*tmp_path.iterdir()] == []
    raconvert.write(tmp_path / "x.nc3", {"x": values}, out_opts={"version": version}, dtype="int32")
    assert (tmp_path / "x.nc3").read_bytes()[:4] == b"CDF" + bytes([int(version)])


@pytest.mark.parametrize("version", ["1", "2", "5"])
def test_the_version_that_is_asked_for(version: str, tmp_path: Path) -> None:
    arrays, attributes, _ = random_arrays(1)
    bundle = Bundle([*arrays.values()], attributes=attributes)
    raconvert.write(tmp_path / "x.cdf", bundle, out_opts={"version": version})
    assert (tmp_path / "x.cdf").read_bytes()[3] == int(version)
    for name, array in arrays.items():
        assert same_values(by_netcdf4(tmp_path / "x.cdf")[name]["values"], np.asarray(array))
    with pytest.raises(UsageError, match="version"):
        raconvert.write(tmp_path / "y.cdf", bundle, out_opts={"version": "3"})


def a_header(*sizes: int, records: bool = False, kind: int = 1) -> Header:
    dims = [Dimension("t", None, b"t")] if records else []
    dims += [Dimension(f"n{n}", size, b"n%d" % n) for n, size in enumerate(sizes)]
    variables = [
        Variable(f"v{n}", ((0, n + 1) if records else (n,)), [], kind, 0, b"v%d" % n)
        for n in range(len(sizes))
    ]
    return Header(1, 3 if records else 0, dims, [], variables, 0)


G = 1 << 30
VERSIONS = {
    "small": (a_header(10, 10), 1),
    "one_large_array": (a_header(2 * G - 4), 1),
    "the_last_one_is_large": (a_header(10, 2 * G - 4, kind=6), 1),
    "data_behind_2_GiB": (a_header(2 * G - 8, 10), 2),
    "large_before_another": (a_header(2 * G - 4, 10, kind=3), 2),
    "4_GiB_before_another": (a_header(2 * G - 4, 10, kind=4), 5),
    "a_dimension_above_2_GiB": (a_header(2 * G), 5),
    "records_behind_a_large_one": (a_header(2 * G - 4, records=True, kind=6), 1),
    "two_large_parts_of_a_record": (a_header(2 * G - 4, 2 * G - 4, records=True, kind=6), 5),
    "unsigned": (a_header(4, kind=7), 5),
    "int64": (a_header(4, kind=10), 5),
}


@pytest.mark.parametrize("name", VERSIONS)
def test_the_smallest_version_that_has_room(name: str) -> None:
    header, version = VERSIONS[name]
    made = smallest(header)
    assert made.version == version
    assert made.variables[0].begin >= made.end


def test_an_attribute_of_64_bits_needs_cdf5(tmp_path: Path) -> None:
    attribute = Attribute("a", 10, 1, bytes(8), b"a")
    header = a_header(4)
    assert smallest(header._replace(attributes=[attribute])).version == 5
    meta = Metadata(attributes={"big": 1 << 40, "usual": 7})
    for version, place in (("auto", 5), ("1", 1)):
        path = tmp_path / f"{version}.nc3"
        report = raconvert.write(
            path, array_of(np.zeros(2), "x", meta), out_opts={"version": version}
        )
        assert path.read_bytes()[3] == place
        said = by_netcdf4(path)["x"]["attributes"]
        assert ("big" in said) == (version == "auto")
        assert any("'big'" in fit.reason for fit in report.equivalent) == (version == "1")
        with raconvert.open_bundle(path) as back:
            assert back["x"].meta.attributes == meta.attributes


def test_offsets_beyond_2_gib_are_read_by_netcdf4(tmp_path: Path) -> None:
    """Sparse files, in and out: a hole of more than 2 GiB before other variables."""
    nbytes = (1 << 31) + 8
    with open(tmp_path / "hole", "wb") as file:
        file.truncate(nbytes)
        file.seek(nbytes - 4)
        file.write(b"\1\2\3\4")
    hole = Array(
        element("int", 1), (nbytes // 4, 4), name="hole", index_order="C",
        extent=Extent(str(tmp_path / "hole"), 0, nbytes),
    )  # fmt: skip
    bundle = Bundle([hole, array_of(np.arange(3.0), "small", Metadata())])
    with Target(str(tmp_path / "x.nc3")) as target:
        planned = netcdf3.plan(bundle)
        assert planned.fits == []
        planned.write(target)
        target.commit()
    assert (tmp_path / "x.nc3").stat().st_blocks * 512 < 1 << 24
    with netcdf4.Dataset(tmp_path / "x.nc3") as file:
        assert file.data_model == "NETCDF3_64BIT_OFFSET"
        assert file["small"][:].tolist() == [0, 1, 2]
        assert file["hole"][3, -4:].tolist() == [1, 2, 3, 4]
    fits = netcdf3.plan(bundle, version="1").fits
    assert ["CDF-2 has" in fit.reason and fit.flag == "--out-opt version=2" for fit in fits] == [
        True
    ]


# Types -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["f2", "V5"])
def test_types_that_no_version_has(code: str, tmp_path: Path) -> None:
    with pytest.raises(WouldLose, match="netCDF classic has no"):
        raconvert.write(tmp_path / "x.nc3", {"x": np.zeros(3, code)})
    assert [*tmp_path.iterdir()] == []
    if code == "f2":
        raconvert.write(tmp_path / "x.nc3", {"x": np.ones(3, code)}, dtype="float32")
        assert by_scipy(tmp_path / "x.nc3")["x"]["values"].tolist() == [1, 1, 1]


OTHERS = {
    "bool": np.array([True, False, True]),
    "complex64": np.array([1 + 2j, 3], "c8"),
    "complex128": np.array([[1 + 2j, 3]], "c16"),
    "text": np.array(["a", "grüße", ""]),
    "text_big": np.array(["a", "grüße", ""]).astype(">U5"),
    "bytes": np.array([b"ab", b"c"]),
    "letters": np.array([b"a", b"c"]),
    "datetime": np.array(["2001-02-03T04", "NaT"], "M8[s]"),
    "datetime_big": np.array(["2001-02-03T04", "NaT"], ">M8[h]"),
    "durations": np.array([5, -7], "m8[ms]"),
    "months": np.array([5, -7], "M8[M]"),
    "float_big": np.arange(3, dtype=">f8"),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("records", [False, True])
def test_other_types_come_back(name: str, records: bool, tmp_path: Path) -> None:
    values = OTHERS[name]
    axes = [Axis(f"n{n}") for n in range(values.ndim)]
    both = [array_of(values, "x", Metadata(axes=axes)), array_of(values, "y", Metadata(axes=axes))]
    path = tmp_path / "x.nc3"
    options = {"unlimited": "n0"} if records else {}
    report = raconvert.write(path, Bundle(both), out_opts=options, verify=True)
    exact = name in ("letters", "float_big")
    assert bool([fit for fit in report.equivalent if fit.property == "type"]) != exact
    with raconvert.open_bundle(path) as back:
        got = np.asarray(back["x"])
        assert got.dtype.newbyteorder("=") == values.dtype.newbyteorder("=")
        assert np.array_equal(got, values, equal_nan=name.startswith("date"))
    raconvert.convert(path, tmp_path / "z.zip")
    with raconvert.open_bundle(tmp_path / "z.zip") as back:
        assert np.array_equal(np.asarray(back["y"]), values, equal_nan=name.startswith("date"))


def test_xarray_sees_bools_texts_and_dates(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    given = {name: OTHERS[name] for name in ("bool", "text", "datetime", "durations")}
    raconvert.write(tmp_path / "x.nc3", given)
    with xarray.open_dataset(tmp_path / "x.nc3", engine="netcdf4") as found:
        assert found["bool"].dtype == bool
        assert found["text"].values.tolist() == given["text"].tolist()
        assert np.array_equal(found["datetime"].values, given["datetime"], equal_nan=True)
        assert np.array_equal(found["durations"].values, given["durations"])
        assert {*found.variables} == {*given}


def test_chars_with_an_encoding_are_texts(tmp_path: Path) -> None:
    """As netCDF4 and xarray write them; the name of the dimension of the letters stays."""
    with netcdf4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        for name, length in (("t", None), ("x", 2), ("nchar", 8)):
            file.createDimension(name, length)
        texts = {"s": ["grüße".encode(), b"b"], "r": [b"a", b"gr\xfc\xdfe"]}
        for name, dim, encoding in (("s", "x", "UTF-8"), ("r", "t", "latin-1")):
            one = file.createVariable(name, "S1", (dim, "nchar"))
            one._Encoding = encoding
            one.set_auto_chartostring(False)
            one[:] = np.array(texts[name], "S8").view("S1").reshape(2, 8)
        file.createVariable("plain", "S1", ("x", "nchar"))[:] = b"z"
    with raconvert.open_bundle(tmp_path / "a.nc") as bundle:
        assert bundle["s"].meta.encoding == "utf-8"
        assert np.asarray(bundle["s"]).tolist() == ["grüße".encode(), b"b"]
        assert np.asarray(bundle["r"]).tolist() == [b"a", b"gr\xfc\xdfe"]
        assert bundle["r"].meta.attributes == {"_Encoding": "latin-1"}
        assert bundle["plain"].shape == (2, 8)
    raconvert.convert(tmp_path / "a.nc", tmp_path / "b.cdf", verify=True)
    one, two = (by_netcdf4(tmp_path / name) for name in ("a.nc", "b.cdf"))
    for name in ("s", "r", "plain"):
        assert one[name]["dims"] == two[name]["dims"]
        assert np.array_equal(one[name]["values"], two[name]["values"])
    assert two["s"]["attributes"]["_Encoding"] == "utf-8"


# Axes, names, the rest of the metadata -----------------------------------------------------------

AXES = [
    Axis("time", units="s", spacing=0.5, origin=2.0),
    Axis("y", labels=["Rome", "Łódź", ""]),
    Axis("x", labels=[1, 5, 7, 8], units="m"),
    Axis(None, spacing=2.0),
    Axis("left", labels=[None, "b"]),
    Axis("same", labels=[1.5, 2.0]),
]


def test_axes_become_coordinates_and_come_back(tmp_path: Path) -> None:
    shape = (3, 3, 4, 2, 2)
    values = np.arange(np.prod(shape), dtype="i2").reshape(shape)
    one = array_of(values, "one", Metadata(axes=AXES[:5]))
    two = array_of(values[0, 0].astype("f4"), "two", Metadata(axes=AXES[2:5]))
    other = array_of(np.zeros(4), "other", Metadata(axes=[Axis("x", labels=[0, 1, 2, 9])]))
    named = array_of(np.zeros(4), "named", Metadata(axes=[Axis("x")]))
    report = raconvert.write(tmp_path / "x.nc3", Bundle([one, two, other, named]))
    said = {fit.array for fit in report.equivalent}
    assert said == {"other", "named"}
    found = by_netcdf4(tmp_path / "x.nc3")
    assert found["one"]["dims"] == ("time", "y", "x", "one.3", "left")
    assert found["two"]["dims"] == ("x", "two.1", "left")
    assert found["other"]["dims"] == ("other.x",)
    assert np.asarray(found["time"]["values"]).tolist() == [2.0, 2.5, 3.0]
    assert found["time"]["attributes"]["units"] == "s"
    assert np.asarray(found["x"]["values"]).tolist() == [1, 5, 7, 8]
    assert np.asarray(found["other.x"]["values"]).tolist() == [0, 1, 2, 9]
    assert np.asarray(found["one.3"]["values"]).tolist() == [0, 2]
    with raconvert.open_bundle(tmp_path / "x.nc3") as back:
        assert back.names == ["one", "two", "other", "named"]
        for array in (one, two, other, named):
            assert back[array.name].meta.axes == array.meta.axes


def test_an_array_is_the_coordinate_of_its_axis(tmp_path: Path) -> None:
    x = array_of(np.array([1.0, 2.5, 3.0]), "x", Metadata(axes=[Axis("x")], units="m"))
    v = array_of(np.zeros(3), "v", Metadata(axes=[Axis("x", labels=[1.0, 2.5, 3.0], units="m")]))
    raconvert.write(tmp_path / "x.nc3", Bundle([v, x]), strict=True)
    file = netcdf3_reader.load(tmp_path / "x.nc3")
    assert [*file.variables] == ["v", "x"]
    assert all("raconvert" not in one.attributes for one in file.variables.values())
    with raconvert.open_bundle(tmp_path / "x.nc3") as back:
        assert back["v"].meta.axes == v.meta.axes


def test_a_variable_along_another_dimension_is_no_coordinate(tmp_path: Path) -> None:
    """It has the name of a dimension, and by chance its length."""
    with netcdf4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 3)
        file.createDimension("y", 3)
        file.createVariable("x", "f4", ("y",))[:] = [5, 6, 8]
        file.createVariable("v", "f4", ("x",))[:] = 0
    with raconvert.open_bundle(tmp_path / "a.nc") as bundle:
        assert bundle["v"].meta.axes == (Axis("x"),)
    raconvert.convert(tmp_path / "a.nc", tmp_path / "b.nc3", strict=True)
    one, two = (by_netcdf4(tmp_path / name) for name in ("a.nc", "b.nc3"))
    assert {name: fact["dims"] for name, fact in one.items() if name} == {
        name: fact["dims"] for name, fact in two.items() if name
    }


ODD_NAMES = [
    "g/v", "a b", "-first", "end ", "λ", "e\u0301", "x" * 300, "new\nline", ".", "é" * 200, "1st",
    "plain", "g%2Fv", "_g",
]  # fmt: skip


def test_names_that_no_variable_can_have(tmp_path: Path) -> None:
    bundle = Bundle(
        [array_of(np.full(2, n), name, Metadata()) for n, name in enumerate(ODD_NAMES)],
        groups={"g": {"about": "a group"}, "empty": {}},
    )
    report = raconvert.write(tmp_path / "x.nc3", bundle, verify=True)
    changed = {fit.array for fit in report.equivalent if fit.property == "names"}
    assert changed == {name for name in ODD_NAMES if key_of(name) != name}
    assert any("no groups" in fit.reason for fit in report.equivalent)
    with netcdf4.Dataset(tmp_path / "x.nc3") as file:
        assert len(file.variables) == len(ODD_NAMES)
        assert "g%2Fv" in file.variables
        for n, one in enumerate(file.variables.values()):
            assert one[:].tolist() == [n, n]
    with raconvert.open_bundle(tmp_path / "x.nc3") as back:
        assert back.names == ODD_NAMES
        assert back.groups["g"] == {"about": "a group"}
        assert "empty" in back.groups


def test_keys_are_names_that_the_library_takes(tmp_path: Path) -> None:
    keys = keys_of(ODD_NAMES)
    assert len({*keys}) == len(ODD_NAMES)
    with netcdf4.Dataset(tmp_path / "x.nc", "w", format="NETCDF3_CLASSIC") as file:
        for key in keys:
            file.createDimension(key, 2)
            assert len(key.encode()) <= 256
            file.createVariable(key, "i1", (key,))


def test_attributes_of_other_types_are_kept_for_raconvert(tmp_path: Path) -> None:
    attributes = {
        "yes": True, "nothing": None, "texts": ["a", "b"], "mixed": [1, 2.5], "one": [9],
        "nested": {"a": 1}, "empty list": [], "a/b": "slash", "end": "NUL\0", "number": 2,
    }  # fmt: skip
    array = array_of(np.zeros(2), "x", Metadata(attributes=attributes))
    report = raconvert.write(tmp_path / "x.nc3", Bundle([array], attributes=attributes))
    said = by_netcdf4(tmp_path / "x.nc3")
    for facts in (said[""], said["x"]):
        assert {*facts["attributes"]} == {"one", "number", "raconvert", "empty list"}
    reasons = [fit.reason for fit in report.equivalent]
    assert len(reasons) == 2
    assert all("'yes', 'nothing', 'texts', 'mixed', 'nested'" in one for one in reasons)
    with raconvert.open_bundle(tmp_path / "x.nc3") as back:
        assert back["x"].meta.attributes == attributes
        assert back.attributes == attributes


def test_types_of_attributes_are_those_of_netcdf4(tmp_path: Path) -> None:
    """Through CDF-1, netCDF-4 and Zarr and back: float32, int16 and the rest stay what they are."""
    with netcdf4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 2)
        one = file.createVariable("v", "i2", ("x",), fill_value=np.int16(-9))
        one.set_auto_maskandscale(False)
        one.scale_factor, one.add_offset = np.float32(0.1), np.float32(2)
        one.valid_range, one.byte = np.array([-5, 5], "i2"), np.int8(3)
        one.text, one.number, one.double = "é", np.int32(4), 0.1
        one[:] = [1, 2]
        file.version = np.int16(3)
    before = by_netcdf4(tmp_path / "a.nc")
    here = tmp_path / "a.nc"
    for name in ("b.nc", "c.cdf", "d.zarr", "e.nc3", "f.nc", "g.cdf"):
        raconvert.convert(here, tmp_path / name, verify=True)
        here = tmp_path / name
    for name in ("c.cdf", "e.nc3", "g.cdf"):
        after = by_netcdf4(tmp_path / name)
        for variable in ("", "v"):
            one, two = (facts[variable]["attributes"] for facts in (before, after))
            assert {*one} == {*two} - {"raconvert"}
            for key, value in one.items():
                assert np.asarray(value).dtype == np.asarray(two[key]).dtype, (name, key)
                assert np.array_equal(value, two[key])
    assert "raconvert" not in by_netcdf4(tmp_path / "c.cdf")["v"]["attributes"]


# Records -----------------------------------------------------------------------------------------


def records(path: Path, *kinds: str, count: int = 3, inner: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(len(kinds))
    made = {f"v{n}": some(rng, kind, (count, inner)) for n, kind in enumerate(kinds)}
    made["fixed"] = some(rng, "i2", (inner,))
    arrays = [
        array_of(one, name, Metadata(axes=[Axis("t"), Axis("x")][-one.ndim :]))
        for name, one in made.items()
    ]
    raconvert.write(path, Bundle(arrays), out_opts={"unlimited": "t"})
    return made


@pytest.mark.parametrize(
    "kinds", [("i1",), ("S1",), ("i2",), ("f8",), ("i1", "i2"), ("i1", "f8", "i2"), ("i2",) * 5],
    ids="-".join,
)  # fmt: skip
@pytest.mark.parametrize("inner", [1, 2, 3, 4])
def test_records_with_and_without_padding(
    kinds: tuple[str, ...], inner: int, tmp_path: Path
) -> None:
    """Exactly one variable of a narrow type has no padding; the fill value pads the others."""
    path = tmp_path / "x.nc3"
    made = records(path, *kinds, inner=inner)
    for judge in (by_netcdf4, by_scipy, by_ourselves):
        found = judge(path)
        for name, values in made.items():
            assert same_values(found[name]["values"], values), judge
    narrow = sum(np.dtype(kind).itemsize * inner + 3 & -4 for kind in kinds)
    record = np.dtype(kinds[0]).itemsize * inner if len(kinds) == 1 else narrow
    head = path.read_bytes()
    assert (len(head) - 3 * record) % 4 == 0
    raconvert.convert(path, tmp_path / "y.cdf", strict=True)
    assert (tmp_path / "y.cdf").read_bytes() == head


def test_large_records_are_written_piece_by_piece(tmp_path: Path) -> None:
    """A record above the memory of a block, and many small ones: the same file in any memory."""
    rng = np.random.default_rng(3)
    wide = {"a": some(rng, "i2", (3, 50_001)), "b": some(rng, "f8", (3, 40_000))}
    many = {"a": some(rng, "i1", (70_000, 3)), "b": some(rng, "f8", (70_000, 1))}
    for name, arrays in (("wide", wide), ("many", many)):
        source = tmp_path / f"{name}.npz"
        np.savez(source, **arrays)
        files = []
        for memory in (1 << 30, 600 << 10):
            path = tmp_path / f"{name}.{memory}.nc3"
            bundle = Bundle(
                [array_of(one, key, Metadata(axes=[Axis("t"), Axis(key + "x")]))
                 for key, one in arrays.items()]
            )  # fmt: skip
            raconvert.write(path, bundle, out_opts={"unlimited": "t"}, max_memory=memory)
            files.append(path.read_bytes())
            found = by_netcdf4(path)
            for key, values in arrays.items():
                assert np.array_equal(np.asarray(found[key]["values"]), values, equal_nan=True)
        assert files[0] == files[1]


def test_an_array_without_elements_is_one_of_no_records(tmp_path: Path) -> None:
    path = tmp_path / "x.nc3"
    empty = array_of(np.zeros((0, 3), "i2"), "empty", Metadata(axes=[Axis("t"), Axis("x")]))
    other = array_of(np.zeros((0,)), "other", Metadata(axes=[Axis("u")]))
    unnamed = array_of(np.zeros((0, 2)), "unnamed", Metadata())
    report = raconvert.write(path, Bundle([empty, other, unnamed]), verify=True)
    assert [fit.array for fit in report.equivalent] == ["other"]
    with netcdf4.Dataset(path) as file:
        assert file["empty"].shape == (0, 3)
        assert file["other"].dimensions == ("t",)
    with raconvert.open_bundle(path) as back:
        assert [one.shape for one in back.arrays] == [(0, 3), (0,), (0, 2)]
        assert [one.meta.axes for one in back.arrays] == [empty.meta.axes, other.meta.axes, ()]
    with pytest.raises(WouldLose, match="length 0"):
        raconvert.write(tmp_path / "y.nc3", {"x": np.zeros((3, 0))})


def test_the_unlimited_dimension_stays_or_is_chosen(tmp_path: Path) -> None:
    def growing(path: Path) -> list[str]:
        with netcdf4.Dataset(path) as file:
            return [name for name, one in file.dimensions.items() if one.isunlimited()]

    with netcdf4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 2)
        file.createVariable("v", "f4", ("time", "x"))[:] = np.zeros((3, 2))
        file.createVariable("time", "f8", ("time",))[:] = [1, 2, 4]
    raconvert.convert(tmp_path / "a.nc", tmp_path / "b.nc3")
    assert growing(tmp_path / "b.nc3") == ["time"]
    raconvert.convert(tmp_path / "b.nc3", tmp_path / "c.zarr")
    raconvert.convert(tmp_path / "c.zarr", tmp_path / "d.nc3")
    assert growing(tmp_path / "d.nc3") == ["time"]
    raconvert.convert(tmp_path / "b.nc3", tmp_path / "e.nc3", out_opts={"unlimited": "none"})
    assert growing(tmp_path / "e.nc3") == []
    with pytest.raises(WouldLose, match="not the slowest"):
        raconvert.convert(tmp_path / "b.nc3", tmp_path / "f.nc3", out_opts={"unlimited": "x"})
    with pytest.raises(UsageError, match="no array has the axis"):
        raconvert.convert(tmp_path / "b.nc3", tmp_path / "f.nc3", out_opts={"unlimited": "q"})


def test_nc_is_netcdf4_unless_classic_is_asked_for(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "a.nc", {"x": np.zeros(2)})
    raconvert.write(tmp_path / "b.nc", {"x": np.zeros(2)}, to="netcdf3")
    assert (tmp_path / "a.nc").read_bytes()[:4] == b"\x89HDF"
    assert (tmp_path / "b.nc").read_bytes()[:4] == b"CDF\1"


# Adding ------------------------------------------------------------------------------------------


@pytest.fixture
def container(tmp_path: Path) -> Path:
    path = tmp_path / "c.nc"
    with netcdf4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.title = "é"
        file.createDimension("unused", 7)
        file.createDimension("t", None)
        file.createDimension("x", 3)
        file.createVariable("x", "f4", ("x",))[:] = [1, 2, 4]
        one = file.createVariable("one", "i1", ("t", "x"))
        one[:] = np.arange(6).reshape(2, 3)
        one.units = "K"
        file.createVariable("chars", "S1", ("x",))[:] = [b"a", b"b", b"c"]
    return path


def add(path: Path, name: str, values: np.ndarray, axes: list[Axis], **options: Any) -> Any:
    meta = Metadata(axes=axes)
    return raconvert.write(f"{path}#{name}", array_of(values, name, meta), **options)


def test_an_array_is_added_to_the_records(container: Path) -> None:
    """What was alone in a record, without padding, has a neighbour now."""
    before = by_netcdf4(container)
    add(container, "two", np.arange(6.0).reshape(2, 3), [Axis("t"), Axis("x")])
    after = by_netcdf4(container)
    assert after.pop("two")["dims"] == ("t", "x")
    for name, facts in before.items():
        for key, value in facts.items():
            assert np.array_equal(np.asarray(after[name][key]), np.asarray(value)), (name, key)
    with netcdf4.Dataset(container) as file:
        assert len(file.dimensions["unused"]) == 7
        assert file.dimensions["t"].isunlimited()
        assert file["two"][:].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert file.data_model == "NETCDF3_CLASSIC"


def test_an_axis_that_says_something_else_has_a_dimension_of_its_own(container: Path) -> None:
    report = add(container, "v", np.zeros(3), [Axis("x", labels=[1.0, 2.0, 5.0])])
    assert "is not the dimension 'x'" in str(report.equivalent)
    report = add(container, "w", np.zeros(3), [Axis("x", labels=[1.0, 2.0, 4.0])])
    assert not report.equivalent
    report = add(container, "u", np.zeros(3), [Axis("t")])
    assert "is not the dimension 't'" in str(report.equivalent)
    found = by_netcdf4(container)
    assert [found[name]["dims"] for name in "vwu"] == [("v.x",), ("x",), ("u.t",)]
    with raconvert.open_bundle(container) as back:
        assert back["v"].meta.axes == (Axis("x", labels=[1.0, 2.0, 5.0]),)
        assert back["x"].meta.axes == (Axis("x"),)


def test_the_version_grows_with_the_array(container: Path) -> None:
    values = np.array([1 << 40, 2])
    with pytest.raises(WouldLose, match="CDF-1 has no int64; CDF-5 has"):
        add(container, "big", values, [Axis("n")], out_opts={"version": "1"})
    report = add(container, "big", values, [Axis("n")])
    assert "becomes CDF-5" in str(report.notes)
    assert container.read_bytes()[3] == 5
    assert by_netcdf4(container)["big"]["values"].tolist() == values.tolist()
    assert by_netcdf4(container)[""]["attributes"] == {"title": "é"}


def test_an_array_is_replaced_and_no_other(container: Path) -> None:
    add(container, "v", np.zeros(4), [Axis("q", spacing=0.5)])
    assert "q" in by_netcdf4(container)
    with pytest.raises(TargetExists, match="has an array 'v' already"):
        add(container, "v", np.ones(2), [Axis("q")])
    with pytest.raises(TargetExists, match="a coordinate, along which other arrays lie"):
        add(container, "x", np.ones(3), [Axis("x")], overwrite=True)
    with pytest.raises(TargetExists, match="a coordinate made from an axis"):
        add(container, "q", np.ones(3), [])
    add(container, "v", np.ones(2, "i2"), [Axis("q", spacing=2.0)], overwrite=True)
    found = by_netcdf4(container)
    assert found["v"]["values"].tolist() == [1, 1]
    assert found["v"]["dims"] == ("q",)
    assert np.asarray(found["q"]["values"]).tolist() == [0, 2]
    assert sorted(found) == ["", "chars", "one", "q", "v", "x"]


def test_nothing_is_added_to_a_file_that_is_cut_off(container: Path) -> None:
    whole = container.read_bytes()
    container.write_bytes(whole[:-2])
    with pytest.raises(raconvert.errors.RaconvertError, match="cut off"):
        add(container, "v", np.zeros(2), [])
    assert container.read_bytes() == whole[:-2]


def test_names_beyond_utf8_stay_as_they_are(tmp_path: Path) -> None:
    """A name and an attribute in Latin-1: their bytes are copied when an array is added."""
    path = tmp_path / "x.nc3"
    raconvert.write(path, array_of(np.zeros(2), "ab", Metadata(attributes={"note": "xy"})))
    path.write_bytes(path.read_bytes().replace(b"ab\0\0", b"\xe4\xf6\0\0").replace(b"xy", b"\xfcx"))
    with raconvert.open_bundle(path) as bundle:
        assert bundle.names == ["äö"]
        assert bundle.arrays[0].meta.attributes == {"note": "üx"}
        assert sum("Latin-1" in note for note in bundle.notes) >= 2
    add(path, "new", np.ones(2), [])
    assert b"\xe4\xf6\0\0" in path.read_bytes()
    assert b"\xfcx" in path.read_bytes()
    raconvert.convert(path, tmp_path / "y.nc3")
    assert "äö" in by_netcdf4(tmp_path / "y.nc3")


# Reading what streams and what is damaged ---------------------------------------------------------


@pytest.mark.parametrize("kinds", [("i1",), ("i1", "i2"), ("i2", "i1")], ids="-".join)
def test_records_that_nobody_counted(kinds: tuple[str, ...], tmp_path: Path) -> None:
    """Numrecs is all bits set while a file streams; the last padding need not be there."""
    path = tmp_path / "x.nc3"
    made = records(path, *kinds)
    raw = path.read_bytes()
    streams = raw[:4] + b"\xff" * 4 + raw[8:]
    for name, content in (
        ("whole", streams),
        ("short", streams[:-1] if len(kinds) > 1 else streams),
    ):
        (tmp_path / name).write_bytes(content)
        with raconvert.open_bundle(tmp_path / name, from_="netcdf3") as bundle:
            for key, values in made.items():
                assert np.array_equal(np.asarray(bundle[key]), values)
    (tmp_path / "cut").write_bytes(raw[: -len(kinds) * 4 - 1])
    with (
        raconvert.open_bundle(tmp_path / "cut", from_="netcdf3") as bundle,
        pytest.raises(Corrupt, match="cut off"),
    ):
        np.asarray(bundle[f"v{len(kinds) - 1}"])


def test_a_record_that_is_not_ours_leaves_the_others(tmp_path: Path) -> None:
    """A damaged record makes one array unreadable; two of one name are told apart."""
    path = tmp_path / "x.nc3"
    names = {"a/b": np.zeros(2), "c": np.ones(2)}
    raconvert.write(path, names)
    raw = path.read_bytes()
    (tmp_path / "bad.nc3").write_bytes(raw.replace(b'"name":"a/b"', b'"name":12345'))
    with raconvert.open_bundle(tmp_path / "bad.nc3") as bundle:
        assert np.asarray(bundle["c"]).tolist() == [1, 1]
        assert [one.problem is None for one in bundle.arrays] == [False, True]
    (tmp_path / "two.nc3").write_bytes(raw.replace(b'"name":"a/b"', b'"name":  "c"'))
    with raconvert.open_bundle(tmp_path / "two.nc3") as bundle:
        assert sum(one.problem is None for one in bundle.arrays) == 1


def test_limits_of_letters(tmp_path: Path) -> None:
    """Texts are not wider than a string may be: they stay chars then."""
    from raconvert.files.source import Source

    path = tmp_path / "x.nc3"
    meta = Metadata(encoding="utf-8")
    raconvert.write(path, array_of(np.array([b"abcdefgh"]), "s", meta))
    for most, letters in ((8, 8), (7, 1)):
        small = Source(str(path), limits=DEFAULT._replace(document_bytes=most))
        with netcdf3.read(small) as bundle:
            assert bundle.arrays[0].element.nbytes == letters


# Programs ----------------------------------------------------------------------------------------


def ran(*words: str | Path) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def weather(tmp_path: Path) -> Path:
    """A file of ours as CF has them, with records."""
    time = Metadata(
        axes=[Axis("time")], units="hours since 2001-01-01", attributes={"calendar": "standard"}
    )
    axes = [Axis("time"), Axis("lat", spacing=10.0, origin=-10.0, units="degrees_north"),
            Axis("lon", spacing=90.0, origin=0.0, units="degrees_east")]  # fmt: skip
    values = np.arange(24, dtype="f4").reshape(2, 3, 4)
    arrays = [
        array_of(np.array([0.0, 6.0]), "time", time),
        array_of(values, "t2m", Metadata(axes=axes, units="K", description="temperature")),
        array_of(values.astype("i2"), "cover", Metadata(axes=axes, attributes={"_FillValue": -9})),
    ]
    path = tmp_path / "w.nc3"
    attributes = {"Conventions": "CF-1.8"}
    raconvert.write(path, Bundle(arrays, attributes=attributes), out_opts={"unlimited": "time"})
    return path


def test_ncdump_and_nccopy(weather: Path, tmp_path: Path, tool: Tool) -> None:
    text = ran(tool("ncdump"), weather)
    for line in (
        "time = UNLIMITED ; // (2 currently)", "float t2m(time, lat, lon) ;",
        'lat:units = "degrees_north" ;', "cover:_FillValue = -9s ;", 'time:calendar = "standard" ;',
        " lon = 0, 90, 180, 270 ;", "  20, 21, 22, 23 ;",
    ):  # fmt: skip
        assert line in text, text
    for kind, magic in (("nc4", b"\x89HDF"), ("cdf5", b"CDF\5"), ("64-bit offset", b"CDF\2")):
        copy = tmp_path / f"{kind}.nc"
        ran(tool("nccopy"), "-k", kind, weather, copy)
        assert copy.read_bytes()[:4] == magic
        found = raconvert.diff(weather, copy, ignore_meta=True)
        assert found["same"], found
        back = tmp_path / f"{kind}.back.nc"
        raconvert.convert(copy, back, to="netcdf3")
        one, two = (ran(tool("ncdump"), "-n", "w", path).split("\n") for path in (back, copy))
        private = "raconvert"  # what HDF5 attaches, and coordinates of ours
        assert sorted(line for line in one if private not in line) == sorted(
            line for line in two if private not in line
        )


def test_nccopy_of_a_classic_file_says_the_same_to_us(
    weather: Path, tmp_path: Path, tool: Tool
) -> None:
    ran(tool("nccopy"), "-k", "nc4", weather, tmp_path / "c.nc")
    with raconvert.open_bundle(weather) as one, raconvert.open_bundle(tmp_path / "c.nc") as two:
        assert one.attributes == two.attributes
        for name in ("t2m", "cover", "time"):
            first, second = (bundle[name].meta.to_dict() for bundle in (one, two))
            types = [said.pop("formats", {}).get("hdf5", {}) for said in (first, second)]
            assert first == second
            assert types[0].get("attributes") == types[1].get("attributes")


def test_cdo(weather: Path, tool: Tool) -> None:
    cdo = tool("cdo")
    assert ran(cdo, "-s", "showname", weather).split() == ["t2m", "cover"]
    assert ran(cdo, "-s", "showtimestamp", weather).split() == [
        "2001-01-01T00:00:00",
        "2001-01-01T06:00:00",
    ]
    assert "12" in ran(cdo, "-s", "griddes", weather)
    found = ran(cdo, "-s", "outputf,%g", "-selname,t2m", weather).split()
    assert [float(one) for one in found] == list(range(24))


def test_nco(weather: Path, tmp_path: Path, tool: Tool) -> None:
    """Ncks takes a slab, ncrcat joins along the records, ncatted changes an attribute."""
    ran(tool("ncks"), "-O", "-d", "lon,1,2", weather, tmp_path / "slab.nc")
    with raconvert.open_bundle(tmp_path / "slab.nc") as bundle:
        wanted = np.arange(24).reshape(2, 3, 4)[..., 1:3]
        assert np.array_equal(np.asarray(bundle["t2m"]), wanted)
    ran(tool("ncrcat"), "-O", weather, weather, tmp_path / "joined.nc")
    with raconvert.open_bundle(tmp_path / "joined.nc") as bundle:
        assert bundle["t2m"].shape == (4, 3, 4)
        assert np.asarray(bundle["time"]).tolist() == [0, 6, 0, 6]
    raconvert.convert(tmp_path / "joined.nc", tmp_path / "again.nc3")
    ran(tool("ncks"), "-H", tmp_path / "again.nc3")


@pytest.mark.parametrize("fill", [7, 7.0])
def test_a_fill_value_follows_the_type_of_its_variable(fill: float, tmp_path: Path) -> None:
    """A cast leaves the number; netCDF wants it in the type of the elements."""
    meta = Metadata(attributes={"_FillValue": fill})
    array = raconvert.Array(np.arange(9.0), name="x", meta=meta)
    report = raconvert.write(tmp_path / "x.cdf", {"x": array})
    assert not list(report.equivalent)
    with netcdf4.Dataset(tmp_path / "x.cdf") as file:
        assert np.ma.getmaskarray(file["x"][:]).tolist() == (np.arange(9) == 7).tolist()
