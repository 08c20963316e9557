"""`--verify`: shape, type and metadata of what was written, besides its elements."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from cases import covering, every
from raconvert.plugins import nrrd

import raconvert
from raconvert.arrays.array import Array
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.catalogue import ROWS
from raconvert.errors import RaconvertError, UsageError, WouldLose, WriteFailed
from raconvert.migration.compare import compare_trees

VALUES = np.arange(12, dtype="i4").reshape(3, 4)
TOLD = Metadata("a text", units="K", attributes={"k": 1})


def turned(array: Array) -> Array:
    return array.replace(dims=array.dims[::-1])


FAULTS: dict[str, Callable[[Array], Array]] = {
    "shape": turned,
    "type": lambda array: array.replace(element=raconvert.plugin.element("uint", 4)),
    "units": lambda array: array.replace(meta=array.meta.replace(units="m")),
    "attributes": lambda array: array.replace(meta=array.meta.replace(attributes={"k": 2})),
    "axes": lambda array: array.replace(meta=array.meta.replace(axes=[])),
    "space": lambda array: array.replace(
        meta=array.meta.replace(space=raconvert.Space("RAS", (1.0, 2.0, 3.0)))
    ),
    "formats": lambda array: array.replace(
        meta=array.meta.replace(formats={"other": {"kind": "b"}})
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_writer_that_changes_more_than_it_says(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin reads something else than was written, as if its writer had a bug."""
    axes = [Axis("y", spacing=2.0, direction=(0, 1, 0))]
    axes.append(Axis("x", spacing=3.0, direction=(1, 0, 0)))
    place = raconvert.Space("RAS", (1.0, -2.0, 3.0))
    meta = TOLD.replace(axes=axes, space=place, formats={"other": {"kind": "a"}})
    raconvert.write(tmp_path / "x.ra", VALUES, meta=meta)
    raconvert.convert(tmp_path / "x.ra", tmp_path / "good.nrrd", verify=True)
    whole = nrrd.read

    def read(*words: Any, **options: Any) -> Any:
        bundle = whole(*words, **options)
        return bundle.like([FAULTS[fault](array) for array in bundle.arrays])

    monkeypatch.setattr(nrrd, "read", read)

    with pytest.raises(WriteFailed, match="does not read back as it was"):
        raconvert.convert(tmp_path / "x.ra", tmp_path / "y.nrrd", verify=True)

    assert not (tmp_path / "y.nrrd").exists()


SHAPES = [(), (1,), (3,), (1, 1), (5, 1), (2, 1, 3), (4, 3, 3), (3, 2, 2, 2)]
TYPES = ["u1", ">i4", "<i8", "f2", "<f4", "c8", "?", "S3", "<U2", "<M8[s]", "V5"]


@pytest.mark.parametrize("name", [row.name for row in ROWS if row.writes])
def test_every_writer_says_what_it_changes(name: str, tmp_path: Path) -> None:
    """Each shape and type, with and without metadata: written and verified, or refused."""
    row = next(row for row in ROWS if row.name == name)
    target, done = tmp_path / f"y{row.suffixes[0] if row.suffixes else ''}", 0
    for shape, code, described in covering(SHAPES, TYPES, (False, True), seed=name):
        values = np.frombuffer(bytes(np.dtype(code).itemsize * int(np.prod(shape))), code)
        values = values.reshape(shape)
        axes = [Axis(f"n{n}") for n in range(len(shape))]
        meta = TOLD.replace(axes=axes) if described else Metadata()
        raconvert.write(tmp_path / "x.ra", values, meta=meta, overwrite=True)
        try:
            raconvert.convert(tmp_path / "x.ra", target, to=name, verify=True, overwrite=True)
        except RaconvertError as error:
            assert "does not read back" not in str(error), (shape, code)  # noqa: PT017
        else:
            done += 1
    assert done or not row.writes or name in {"cifar", "har", "png", "jpeg"}


# Opaque elements, numbers of NumPy in metadata, options as numbers, casts -----------------------


@pytest.mark.parametrize("suffix", ["ra", "h5", "zarr", "zip", "npz", "nrrd"])
def test_opaque_elements_are_one_type(suffix: str, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.frombuffer(bytes(range(18)), "V9"))
    path = tmp_path / f"v.{suffix}"
    raconvert.convert(tmp_path / "v.npy", path)

    found = raconvert.diff(tmp_path / "v.npy", path, ignore_meta=True, bitwise=True)
    assert found["same"]
    assert raconvert.verify(path, against=[tmp_path / "v.npy"])["against"]["changed"] == 0


@every("suffix", ["zarr", "h5", "ra", "nrrd", "zip"])
@every(
    "value, plain",
    [
        (np.float32(1.5), 1.5), (np.float64(2.5), 2.5), (np.int16(3), 3), (np.bool_(True), True),
        (np.str_("x"), "x"), (np.bytes_(b"ab"), b"ab"), (np.arange(3), [0, 1, 2]),
        ({"a": [np.uint8(1)]}, {"a": [1]}),
        (np.datetime64("2020-01-01T00:00:00.123456789"), "2020-01-01T00:00:00.123456789"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_attributes_of_numpy(suffix: str, value: object, plain: object, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    raconvert.write(path, VALUES, meta=Metadata(attributes={"k": value}))

    with raconvert.open(path) as found:
        array = found if isinstance(found, Array) else found[found.names[0]]
        assert array.meta.attributes == {"k": plain}
        assert type(array.meta.attributes["k"]) is type(plain)


def test_options_are_numbers_too(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.zarr", {"x": VALUES}, out_opts={"format": 2})
    assert (tmp_path / "x.zarr" / ".zgroup").exists()
    raconvert.write(tmp_path / "x.mat", {"x": VALUES}, out_opts={"version": 7.3})
    assert b"MATLAB 7.3" in (tmp_path / "x.mat").read_bytes()[:128]
    for wrong in (4, 2.0, True, None):
        with pytest.raises(UsageError, match="is not allowed"):
            raconvert.write(tmp_path / "y.zarr", {"x": VALUES}, out_opts={"format": wrong})


def test_complex_numbers_are_rounded_to_whole_ones(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.array([1.5 + 0j, -2.7 + 0j, 3]))
    raconvert.convert(tmp_path / "c.npy", tmp_path / "c.ra", dtype="int16", allow=["precision"])
    assert raconvert.read(tmp_path / "c.ra").tolist() == [2, -3, 3]

    np.save(tmp_path / "d.npy", np.array([1.5 + 0.1j]))
    with pytest.raises(WouldLose, match="choose a complex type"):
        raconvert.convert(tmp_path / "d.npy", tmp_path / "d.ra", dtype="int16", allow=["precision"])


@pytest.mark.parametrize("code", ["f2", "f4", "f8", "c16"])
def test_the_sign_of_zero_is_lost_only_with_leave(code: str, tmp_path: Path) -> None:
    np.save(tmp_path / "z.npy", np.array([-0.0, 1], code))
    with pytest.raises(WouldLose, match=r'allow=\["precision"\]'):
        raconvert.convert(tmp_path / "z.npy", tmp_path / "z.ra", dtype="int8")
    raconvert.convert(tmp_path / "z.npy", tmp_path / "z.ra", dtype="int8", allow=["precision"])
    assert raconvert.read(tmp_path / "z.ra").tolist() == [0, 1]


# verify --against ------------------------------------------------------------------------------------

SAID = Metadata(
    "a text",
    units="K",
    axes=[
        Axis("y", spacing=2.0, direction=(0, 1, 0), units="mm"),
        Axis("x", spacing=3.0, direction=(1, 0, 0), units="mm"),
    ],
    space=raconvert.Space("LPS", (1.0, -2.0, 3.0)),
    attributes={"k": 1},
)
CHANGES: dict[str, dict[str, Any]] = {
    "description": {"description": "another"},
    "units": {"units": "mK"},
    "attributes": {"attributes": {"k": 2}},
    "axes": {"axes": [SAID.axes[0], SAID.axes[1].replace(name="z")]},
    "space": {"space": raconvert.Space("RAS", (1.0, -2.0, 3.0))},
}


@pytest.mark.parametrize("suffix", [".h5", ".nrrd", ".zarr", ".ra", ".zip"])
def test_verify_compares_what_is_known_of_an_array(suffix: str, tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", VALUES, meta=SAID)
    good = tmp_path / f"good{suffix}"
    raconvert.convert(tmp_path / "x.ra", good)
    assert raconvert.verify(good, against=tmp_path / "x.ra")["same"]
    for field, change in CHANGES.items():
        bad = tmp_path / f"{field}{suffix}"
        values = {"x": VALUES} if suffix in (".h5", ".zarr", ".zip") else VALUES
        raconvert.write(bad, values, meta=SAID.replace(**change))
        found = raconvert.verify(bad, against=tmp_path / "x.ra")
        assert not found["same"]
        assert field in found["against"]["examples"]["changed"].partition("differs in: ")[2]
        assert raconvert.verify(bad, against=tmp_path / "x.ra", meta="ignore")["same"]


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".nii", ".mha", ".mat", ".tif"])
def test_verify_allows_what_a_conversion_names(suffix: str, tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", VALUES, meta=SAID)
    report = raconvert.convert(tmp_path / "x.ra", tmp_path / f"y{suffix}")
    assert "metadata" in {fit.property for fit in report.equivalent}
    assert raconvert.verify(tmp_path / f"y{suffix}", against=tmp_path / "x.ra")["same"]


# Attributes that no format has a type for ----------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (np.datetime64("2020-01-02"), dt.date(2020, 1, 2)),
        (np.datetime64("2020-01"), dt.date(2020, 1, 1)),
        (np.datetime64("2020-01-02T03"), dt.datetime(2020, 1, 2, 3)),
        (np.datetime64("2020-01-02T03:04:05", "ns"), dt.datetime(2020, 1, 2, 3, 4, 5)),
        (
            np.array(["2020-01-01", "2021-01-01"], "M8[D]"),
            [dt.date(2020, 1, 1), dt.date(2021, 1, 1)],
        ),
        (np.datetime64("2020-01-02T03:04:05.123456789"), "2020-01-02T03:04:05.123456789"),
        (np.datetime64("NaT"), "NaT"),
        (np.timedelta64(5, "s"), "5 seconds"),
        (np.timedelta64(7, "ns"), "7 nanoseconds"),
        ({"in": [np.timedelta64(7, "D")]}, {"in": ["7 days"]}),
    ],
    ids=str,
)
def test_times_among_attributes(value: Any, kept: Any, tmp_path: Path) -> None:
    """A time that is equal to one of Python is that one; another becomes text, in one line."""
    meta = Metadata(attributes={"when": value})
    named = bool(kept != meta.attributes["when"])
    for suffix in (".ra", ".h5", ".zarr", ".nrrd", ".zip"):
        values = {"x": VALUES} if suffix in (".h5", ".zarr", ".zip") else VALUES
        report = raconvert.write(tmp_path / f"x{suffix}", values, meta=meta, verify=True)
        with raconvert.open(tmp_path / f"x{suffix}") as opened:
            array = opened if isinstance(opened, Array) else opened["x"]
            assert array.meta.attributes["when"] == kept
        said = [fit.reason for fit in report.equivalent if "is written as text" in fit.reason]
        assert said == [f"attribute 'when' is written as text: {kept}"] * named


@pytest.mark.parametrize("value", [1 + 2j, complex(np.inf, -0.0)])
def test_complex_attributes(value: complex, tmp_path: Path) -> None:
    for suffix in (".h5", ".zarr", ".nrrd"):
        path = tmp_path / f"x{suffix}"
        values = VALUES if suffix == ".nrrd" else {"x": VALUES}
        raconvert.write(path, values, meta=Metadata(attributes={"k": value}))
        with raconvert.open(path) as opened:
            array = opened if isinstance(opened, Array) else opened["x"]
            assert repr(array.meta.attributes["k"]) == repr(value)


@pytest.mark.parametrize("suffix", [".zarr", ".h5", ".ra", ".zip"])
@pytest.mark.parametrize("value", [{1}, object(), Fraction(1, 3)], ids=lambda v: type(v).__name__)
def test_attributes_of_no_format_are_an_error_of_ours(
    value: object, suffix: str, tmp_path: Path
) -> None:
    meta = Metadata(attributes={"k": value})
    values = {"x": VALUES} if suffix != ".ra" else VALUES
    with pytest.raises(RaconvertError, match="metadata cannot be kept"):
        raconvert.write(tmp_path / f"x{suffix}", values, meta=meta)
    assert list(tmp_path.iterdir()) == []
    raconvert.write(tmp_path / f"x{suffix}", values, meta=Metadata(units="K"))


# Stacks, their items, and trees --------------------------------------------------------------------

HOLDS = {".ra": "all", ".zip": "all", ".nrrd": "common", ".h5": "common", ".npy": "nothing"}


def save_items(folder: Path, changed: int | None = None, **change: Any) -> str:
    """Three files that say the same but for one attribute; one may say something else."""
    for number in range(3):
        meta = SAID.replace(attributes={"k": 1, "n": number})
        meta = meta.replace(**change) if number == changed or changed is None else meta
        raconvert.write(folder / f"p{number}.ra", VALUES + number, meta=meta, overwrite=True)
    return str(folder / "p*.ra")


@pytest.mark.parametrize("suffix", HOLDS)
def test_verify_compares_what_is_known_of_items(suffix: str, tmp_path: Path) -> None:
    target, pattern = tmp_path / f"s{suffix}", save_items(tmp_path)
    raconvert.convert(pattern, target, stack=True)

    def counts(**options: Any) -> tuple[int, int, int]:
        found = raconvert.verify(target, against=pattern, **options)["against"]
        return found["ok"], found["changed"], found["missing"]

    assert counts() == (3, 0, 0)

    save_items(tmp_path, units="mK")  # all of them
    assert counts() == ((3, 0, 0) if HOLDS[suffix] == "nothing" else (0, 3, 0))
    assert counts(meta="ignore") == (3, 0, 0)

    save_items(tmp_path, 1, attributes={"k": 1, "n": 7})  # one of them, its own
    found = raconvert.verify(target, against=pattern)["against"]
    if HOLDS[suffix] == "all":
        said = f"{tmp_path / 'p1.ra'}: metadata differs in: attributes"
        assert (found["ok"], found["examples"]) == (2, {"changed": said})
    else:
        assert found["ok"] == 3
    assert counts(meta="ignore") == (3, 0, 0)

    save_items(tmp_path)
    (tmp_path / "p1.ra").unlink()  # what the others have in common is not what all three have
    assert counts() == (2, 0, 1)


def test_verify_compares_the_place_of_slices(tmp_path: Path) -> None:
    for distance, name in ((5.0, "s.ra"), (4.0, "t.ra")):
        for number in range(3):
            place = raconvert.Space("LPS", (1.0, -2.0, distance * number))
            meta = SAID.replace(space=place)
            raconvert.write(tmp_path / f"p{number}.ra", VALUES, meta=meta, overwrite=True)
        raconvert.convert(tmp_path / "p*.ra", tmp_path / name, stack=True)

    assert raconvert.verify(tmp_path / "t.ra", against=tmp_path / "p*.ra")["same"]
    found = raconvert.verify(tmp_path / "s.ra", against=tmp_path / "p*.ra")["against"]
    assert found["changed"] == 3


def test_verify_trees_compares_what_is_known(tmp_path: Path) -> None:
    """A file, an array of a container, a file of a container, and a stack."""
    for folder, units in (("was", "K"), ("is", "mK")):
        root, meta = tmp_path / folder, SAID.replace(units=units)
        (root / "slices").mkdir(parents=True)
        save_items(root / "slices", units=units)
        raconvert.write(root / "file.ra", VALUES, meta=meta)
        raconvert.write(root / "parts.h5", {"a": VALUES, "b": VALUES}, meta=meta)
    said = {f"{name}: metadata differs in: units" for name in ("a", "b")}
    for to, odd in {
        "ra": {"file.ra", "parts/a.ra", "parts/b.ra", "slices.ra"},
        "hdf5": {"file.h5", "parts.h5", "slices.h5"},
        "nrrd": {"file.nrrd", "parts/a.nrrd", "parts/b.nrrd", "slices.nrrd"},
        "npy": set(),
    }.items():
        out = tmp_path / to
        raconvert.migrate(tmp_path / "was", out, to=to, jobs=1, stack_folders=True)
        assert {one.mark for one in compare_trees(str(out), str(tmp_path / "was"))} == {"="}
        found = [*compare_trees(str(out), str(tmp_path / "is"))]
        assert {one.path for one in found if one.mark == "*"} == odd
        assert all("metadata differs in: units" in one.reason for one in found if one.mark == "*")
        if to == "hdf5":
            assert {
                *next(one.reason for one in found if one.path == "parts.h5").split("; ")
            } == said
        ignored = compare_trees(str(out), str(tmp_path / "is"), meta="ignore")
        assert {one.mark for one in ignored} == {"="}


@pytest.mark.parametrize("suffix", [".zarr", ".zip", ".h5"])
def test_what_is_about_one_file_alone_is_not_expected_of_others(
    suffix: str, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "x.nc", "w") as file:
        file["t"] = VALUES.astype("f4")
        for axis, name in enumerate("yx"):
            file[name] = np.arange(VALUES.shape[axis], dtype="f8")
            file[name].make_scale(name)
            file["t"].dims[axis].attach_scale(file[name])
        file.attrs["_NCProperties"] = np.bytes_("version=2,netcdf=4.9.2,hdf5=1.14.3")

    raconvert.convert(tmp_path / "x.nc", tmp_path / f"y{suffix}", verify=True)
    assert raconvert.verify(tmp_path / f"y{suffix}", against=tmp_path / "x.nc")["same"]
