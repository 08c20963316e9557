"""``FILE#NAME`` adds an array to a container that exists: all others stay as they are.

The containers are made by other libraries where these write the format (NumPy, zipfile, tarfile,
h5py, netCDF4, SciPy, harpy3, safetensors, zarr-python), and looked at by them before and after.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import threading
import warnings
import zipfile
from collections import namedtuple
from pathlib import Path
from typing import Any

import h5py
import mat_bytes
import numpy as np
import pytest
from cases import rounds, some

import raconvert
from raconvert import Axis, Metadata
from raconvert.api import array_of
from raconvert.cli import main
from raconvert.conversion import addition
from raconvert.errors import (
    Changed,
    RaconvertError,
    TargetExists,
    Unsupported,
    UsageError,
    WouldLose,
)

OLD = np.arange(12, dtype="f4").reshape(3, 4)
MORE = np.linspace(-1, 1, 10, dtype="f4").reshape(2, 5)
OTHER = np.full((4, 2), 7, "f4")


# Containers by others, and what they see in them ---------------------------------------------------


def make_npz(path: Path) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, aaaa=OLD, bbbb=np.arange(5, dtype="f4"))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", "not an array")
        archive.comment = b"a comment"


def look_npz(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.comment in (b"a comment", b"")
        return {
            info.filename.removesuffix(".npy"): (
                archive.read(info), info.date_time, info.external_attr, info.compress_type
            )
            for info in archive.infolist()
        }  # fmt: skip


def make_bundle(path: Path) -> None:
    meta = Metadata(units="m", attributes={"k": [1, "two"]})
    pairs = {"aaaa": OLD, "bbbb": np.arange(5, dtype="f4")}
    arrays = [array_of(values, name) for name, values in pairs.items()]
    bundle = raconvert.Bundle(arrays, attributes={"title": "t"}, groups={"empty": {"n": 1}})
    bundle.arrays[0] = bundle.arrays[0].replace(meta=meta)
    raconvert.write(path, bundle, to="bundle")


def make_zip(path: Path) -> None:
    make_bundle(path.with_suffix(".dir"))
    raconvert.convert(path.with_suffix(".dir"), path)
    shutil.rmtree(path.with_suffix(".dir"))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("notes/readme.txt", "not an array")


def make_tar(path: Path) -> None:
    folder = path.with_suffix(".dir")
    make_bundle(folder)
    (folder / "readme.txt").write_text("not an array")
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        archive.add(folder, "scan")
    shutil.rmtree(folder)


def look_bundle(path: Path) -> dict[str, Any]:
    found = {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}
    assert found.pop("bundle.yaml")
    return _by_array(found)


def _by_array(files: dict[str, Any]) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for name, content in files.items():
        key = name.partition(".ra")[0] + ":" * (".ra" not in name)
        arrays.setdefault(key, {})[name] = content
    return arrays


def look_zip(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.infolist()[0].filename == "bundle.yaml"
        found = {i.filename: (archive.read(i), i.date_time) for i in archive.infolist()}
    found.pop("bundle.yaml")
    return _by_array(found)


def look_tar(path: Path) -> dict[str, Any]:
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isreg():
                file = archive.extractfile(member)
                assert file is not None
                found[member.name] = file.read(), member.mtime, member.uid
    found.pop("scan/bundle.yaml")
    return {name.removeprefix("scan/"): own for name, own in _by_array(found).items()}


def make_h5(path: Path) -> None:
    with h5py.File(path, "w", track_order=True) as file:
        file["aaaa"] = OLD
        file["aaaa"].attrs["units"] = "m"
        file.create_dataset("bbbb", data=np.arange(5, dtype="f4"), chunks=(2,), compression="gzip")
        file["references"] = np.array([file["aaaa"].ref, file["bbbb"].ref], h5py.ref_dtype)
        file["sequences"] = np.array([np.arange(2), np.arange(3)], object).astype(
            h5py.vlen_dtype("i4")
        )
        group = file.create_group("group")
        group.attrs["who"] = "somebody"
        file["soft"] = h5py.SoftLink("/nowhere")


def look_h5(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def look(name: str, item: Any) -> None:
        own = {key: str(value) for key, value in item.attrs.items()}
        if isinstance(item, h5py.Group):
            found[name + "/"] = own
            return
        values = item[()]
        if h5py.check_ref_dtype(item.dtype) is not None:
            values = np.array([item.file[ref].name for ref in values.ravel()], "S")
        elif item.dtype.kind == "O":
            values = np.array([str(value) for value in values], "S")
        place = item.id.get_offset(), item.chunks, item.compression, h5py.h5o.get_info(item.id).addr
        found[name] = item.dtype.str, values.shape, values.tobytes(), own, place

    with h5py.File(path) as file:
        file.visititems(look)
        links = {name: file.get(name, getlink=True) for name in file}
        found["links"] = sorted(n for n, link in links.items() if isinstance(link, h5py.SoftLink))
    return found


def make_nc(path: Path) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(path, "w") as file:
        file.title = "by netCDF"
        file.createDimension("y", 3)
        file.createDimension("x", 4)
        file.createDimension("five", 5)
        file.createVariable("x", "f8", ("x",))[:] = [10, 20, 30, 40]
        variable = file.createVariable("aaaa", "f4", ("y", "x"), fill_value=-1)
        variable.units = "m"
        variable[:] = OLD
        file.createVariable("bbbb", "f4", ("five",), zlib=True)[:] = np.arange(5)


def look_nc(path: Path) -> dict[str, Any]:
    netCDF4 = pytest.importorskip("netCDF4")
    found = {}
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        for name, variable in file.variables.items():
            own = {key: str(variable.getncattr(key)) for key in variable.ncattrs()}
            values = variable[...]
            found[name] = variable.dimensions, values.shape, values.tobytes(), own
    return found


def make_cdf(path: Path) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.title = "by netCDF"
        for name, length in (("t", None), ("x", 4), ("five", 5), ("unused", 9)):
            file.createDimension(name, length)
        file.createVariable("x", "f8", ("x",))[:] = [10, 20, 30, 40]
        variable = file.createVariable("aaaa", "f4", ("t", "x"), fill_value=-1)
        variable.units = "m"
        variable[:] = OLD
        file.createVariable("bbbb", "f4", ("five",))[:] = np.arange(5)
        file.createVariable("flag", "i1", ("t",))[:] = [1, 2, 3]


def make_mat(path: Path, compressed: bool = False) -> None:
    scipy_io = pytest.importorskip("scipy.io")
    held = {"aaaa": OLD, "bbbb": np.arange(5, dtype="f4"), "s": {"t": "text", "c": OLD}}
    scipy_io.savemat(path, held, do_compression=compressed)
    handle = mat_bytes.matrix(16, (1, 1), b"handle", mat_bytes.doubles(1))  # a function handle
    with path.open("ab") as file:
        place = file.tell()
        file.write(handle)
        file.write(mat_bytes.matrix(9, (1, 8), b"", mat_bytes.element(2, b"classes!")))
    data = bytearray(path.read_bytes())
    data[116:124] = (place + len(handle)).to_bytes(8, "little")  # where the data of classes is
    path.write_bytes(data)


def make_mat7(path: Path) -> None:
    make_mat(path, compressed=True)


MAT_NAMES = [
    "cccc", "dddd", "con", "AAAA", "group", "links", "soft", "references", "sequences", "cell",
    "object", "XXCD", "y", "five", *(f"n{number:02}" for number in range(20)),
]  # fmt: skip


def look_mat(path: Path) -> dict[str, Any]:
    scipy_io = pytest.importorskip("scipy.io")
    data = path.read_bytes()
    place = int.from_bytes(data[116:124], "little")
    assert data[place:].endswith(b"classes!")
    assert len(data) - place == 8 + 16 + 16 + 8 + 16  # it is the last one still
    found = scipy_io.loadmat(path, variable_names=["aaaa", "bbbb", "s", *MAT_NAMES])
    values = {name: found[name] for name in ("aaaa", "bbbb", *MAT_NAMES) if name in found}
    seen: dict[str, Any] = {n: (v.dtype.str, v.shape, v.tobytes()) for n, v in values.items()}
    handle = data.find(b"handle")
    inner = found["s"][0, 0]
    seen["s"] = str(inner["t"]), inner["c"].tobytes()
    seen["handle"] = data[handle - 56 : handle + 24]
    return seen


def make_mat73(path: Path) -> None:
    raconvert.write(path, {"aaaa": OLD, "bbbb": np.arange(5, dtype="f4")},
                    out_opts={"version": "7.3"})  # fmt: skip
    with h5py.File(path, "r+") as file:
        cells = file.create_group("#refs#")
        cells["a"] = np.array([[104]], "u2")
        mat_bytes.tagged(cells["a"], b"char", MATLAB_int_decode=np.int32(2))
        file["cell"] = np.array([[cells["a"].ref]], h5py.ref_dtype)
        mat_bytes.tagged(file["cell"], b"cell")
        file["object"] = np.zeros((1, 6), "u4")
        mat_bytes.tagged(file["object"], b"string", MATLAB_object_decode=np.int32(3))


def make_har(path: Path) -> None:
    hidden = {"before": 1, "name": "XXCD", "text": ["made by hand"], "width": 20}
    arrays = [
        array_of(OLD, "AAAA"),
        array_of(np.arange(5, dtype="f4"), "BBBB"),
    ]
    raconvert.write(path, raconvert.Bundle(arrays, formats={"har": {"hidden": [hidden]}}))


def look_har(path: Path) -> dict[str, Any]:
    harpy = pytest.importorskip("harpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        headers = harpy.HarFileIO.readHeaderArraysFromFile(str(path))
    return {
        header["name"].strip().lower(): (header["array"].tobytes(), header["long_name"])
        for header in headers
    }


def make_safetensors(path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    held = {"aaaa": OLD, "bbbb": np.arange(5, dtype="f4"), "tiny": np.array([1, 2, 3], "u1")}
    numpy.save_file(held, path, metadata={"format": "np"})


def look_safetensors(path: Path) -> dict[str, Any]:
    safetensors = pytest.importorskip("safetensors")
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata() == {"format": "np"}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return {name: (v.dtype.str, v.shape, v.tobytes()) for name, v in tensors.items()}


def make_zarr(path: Path, version: int = 3) -> None:
    zarr = pytest.importorskip("zarr")
    warnings.simplefilter("ignore", zarr.errors.ZarrUserWarning)  # of what is beside arrays
    root = zarr.open_group(path, mode="w", zarr_format=version, attributes={"title": "t"})
    root.create_array("aaaa", data=OLD, chunks=(2, 2), attributes={"k": [1, {"a": None}]})
    root.create_array("bbbb", shape=(5,), dtype="f4", chunks=(2,), fill_value=3)
    root.create_group("group").create_array("inner", data=np.arange(3))
    zarr.consolidate_metadata(path)
    (path / "readme.txt").write_text("not an array")


def make_zarr2(path: Path) -> None:
    make_zarr(path, 2)


def look_zarr(path: Path) -> dict[str, Any]:
    zarr = pytest.importorskip("zarr")
    warnings.simplefilter("ignore", zarr.errors.ZarrUserWarning)
    assert (path / "readme.txt").exists()
    found: dict[str, Any] = {}
    for listed in (True, False):
        root = zarr.open_group(path, mode="r", use_consolidated=listed)
        assert dict(root.attrs) == {"title": "t"}
        arrays = dict(root.members(max_depth=None))
        for name, array in arrays.items():
            if isinstance(array, zarr.Array):
                seen = str(array.dtype), array.shape, array[...].tobytes(), dict(array.attrs)
                assert found.setdefault(name, seen) == seen, "listed otherwise than it is"
                folder = path / name
                files = {str(f): f.read_bytes() for f in folder.rglob("*") if f.is_file()}
                found[name + " files"] = files
    return found


Kind = namedtuple("Kind", "path make look to")
KINDS = {
    "npz": Kind("c.npz", make_npz, look_npz, None),
    "bundle": Kind("c", make_bundle, look_bundle, "bundle"),
    "zip": Kind("c.zip", make_zip, look_zip, None),
    "tar": Kind("c.tar", make_tar, look_tar, None),
    "hdf5": Kind("c.h5", make_h5, look_h5, None),
    "netcdf": Kind("c.nc", make_nc, look_nc, None),
    "classic": Kind("c.nc", make_cdf, look_nc, None),
    "mat6": Kind("c.mat", make_mat, look_mat, None),
    "mat7": Kind("c.mat", make_mat7, look_mat, None),
    "mat73": Kind("c.mat", make_mat73, look_h5, None),
    "har": Kind("c.har", make_har, look_har, None),
    "safetensors": Kind("c.safetensors", make_safetensors, look_safetensors, None),
    "zarr2": Kind("c.zarr", make_zarr2, look_zarr, None),
    "zarr3": Kind("c.zarr", make_zarr, look_zarr, None),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """A container of two arrays, ``aaaa`` and ``bbbb``, in the working directory."""
    monkeypatch.chdir(tmp_path)
    found = KINDS[request.param]
    found.make(Path(found.path))
    return found


def names_in(kind: Kind) -> dict[str, str]:
    """The names as the container has them, by those in small letters."""
    with raconvert.open(kind.path) as opened:
        assert isinstance(opened, raconvert.Bundle)
        return {name.lower(): name for name in opened.names}


def values_of(kind: Kind, name: str) -> np.ndarray[Any, Any]:
    found = raconvert.read(kind.path, names_in(kind)[name])
    assert isinstance(found, np.ndarray)
    return found


def unlike(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """The names that are gone, new, or not what they were."""
    left = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return {name.removesuffix(" files").strip() for name in left}


def everything(folder: str = ".") -> dict[str, bytes]:
    return {str(f): f.read_bytes() for f in Path(folder).rglob("*") if f.is_file()}


# Added, refused, replaced --------------------------------------------------------------------------


def test_an_array_is_added_and_the_others_stay(kind: Kind) -> None:
    before = kind.look(Path(kind.path))
    names = [*names_in(kind)]
    report = raconvert.write(f"{kind.path}#cccc", MORE)
    assert np.array_equal(values_of(kind, "cccc"), MORE)
    assert unlike(before, kind.look(Path(kind.path))) == {"cccc"}
    assert [name for name in names_in(kind) if name != "cccc"] == names
    assert report.written == [kind.path]
    assert sorted(os.listdir()) == [kind.path]


def test_an_array_that_is_there_is_refused(kind: Kind) -> None:
    before = everything()
    np.save("x.npy", MORE)
    name = names_in(kind)["aaaa"]
    with pytest.raises(TargetExists, match=rf"array '{name}'.*\n.*overwrite=True"):
        raconvert.convert("x.npy", f"{kind.path}#{name}")
    assert main(["x.npy", "-o", f"{kind.path}#{name}", "-q"]) == 5
    if kind.to is None:  # a folder without a suffix is one for many files
        assert main(["x.npy", "-o", kind.path, "--name", name, "-q"]) == 5
    os.remove("x.npy")
    assert everything() == before


def test_only_the_named_array_is_replaced(kind: Kind) -> None:
    before = kind.look(Path(kind.path))
    names = names_in(kind)
    raconvert.write(f"{kind.path}#{names['aaaa']}", OTHER, overwrite=True)
    assert np.array_equal(values_of(kind, "aaaa"), OTHER)
    assert unlike(before, kind.look(Path(kind.path))) == {"aaaa"}
    assert set(names_in(kind)) == set(names)
    assert sorted(os.listdir()) == [kind.path]


def test_the_file_is_replaced_without_a_name(kind: Kind) -> None:
    for stranger in (Path(kind.path, "readme.txt"),):
        if stranger.exists():  # which keeps a folder from being replaced
            stranger.unlink()
    np.save("cccc.npy", MORE)
    with pytest.raises(TargetExists):
        raconvert.convert("cccc.npy", kind.path, to=kind.to, **_where(kind))
    raconvert.convert("cccc.npy", kind.path, to=kind.to, overwrite=True, **_where(kind))
    assert set(names_in(kind)) == {"cccc"}


def _where(kind: Kind) -> dict[str, Any]:
    if kind.to == "bundle":  # an existing folder is one for many files
        pytest.skip("a folder without a suffix takes a file for each source")
    return {}


def test_skip_existing_and_update(kind: Kind) -> None:
    np.save("x.npy", MORE)
    name = names_in(kind)["aaaa"]
    before = everything(kind.path) if os.path.isdir(kind.path) else Path(kind.path).read_bytes()
    report = raconvert.convert("x.npy", f"{kind.path}#{name}", skip_existing=True)
    assert report.skipped == [(f"{kind.path}#{name}", "exists already")]
    os.utime("x.npy", (1, 1))
    report = raconvert.convert("x.npy", f"{kind.path}#{name}", update=True)
    assert report.skipped == [(f"{kind.path}#{name}", "is not older than its source")]
    after = everything(kind.path) if os.path.isdir(kind.path) else Path(kind.path).read_bytes()
    assert after == before
    os.utime("x.npy", (1 << 33, 1 << 33))
    raconvert.convert("x.npy", f"{kind.path}#{name}", update=True)
    assert np.array_equal(values_of(kind, "aaaa"), MORE)
    raconvert.convert("x.npy", f"{kind.path}#cccc", skip_existing=True)
    assert np.array_equal(values_of(kind, "cccc"), MORE)


def test_a_dry_run_says_what_is_written_anew(
    kind: Kind, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save("x.npy", MORE)
    before = everything()
    assert main(["x.npy", "-o", f"{kind.path}#cccc", "--dry-run"]) == 0
    said = capsys.readouterr()
    assert ("written anew" in said.err + said.out) == os.path.isfile(kind.path)
    assert main(["x.npy", "-o", f"{kind.path}#{names_in(kind)['aaaa']}", "--dry-run"]) == 5
    assert everything() == before


def test_everything_is_compared(kind: Kind) -> None:
    np.save("x.npy", MORE)
    raconvert.convert("x.npy", f"{kind.path}#cccc", verify=True)
    with raconvert.open(kind.path) as opened:
        for array in opened.values():
            np.asarray(array)
    assert main(["verify", kind.path, "-q"]) == 0


def test_digests_of_the_others_are_what_they_were(kind: Kind) -> None:
    def digests() -> dict[str, str]:
        with raconvert.open(kind.path) as opened:
            return {name: np.asarray(a).tobytes().hex() for name, a in opened.items()}

    before = digests()
    raconvert.write(f"{kind.path}#cccc", MORE)
    after = digests()
    assert {name: after[name] for name in before} == before


def test_a_stack_is_added(kind: Kind) -> None:
    for number in range(3):
        np.save(f"{number}.npy", MORE[:1] + number)
    before = kind.look(Path(kind.path))
    words = ["0.npy", "1.npy", "2.npy", "--stack", "-q"]
    assert main([*words, "-o", f"{kind.path}#cccc"]) == 0
    assert values_of(kind, "cccc").shape == (3, 1, 5)
    assert unlike(before, kind.look(Path(kind.path))) == {"cccc"}


def test_twenty_arrays_in_any_order(kind: Kind) -> None:
    rng = random.Random(20)
    before = kind.look(Path(kind.path))
    wanted: dict[str, Any] = {}
    names = [f"n{number:02}" for number in range(20)]
    for name in [*names, *rng.sample(names, 10)]:
        values = np.full((rng.randrange(1, 40), 3), rng.random(), "f4")
        raconvert.write(f"{kind.path}#{name}", values, overwrite=name in wanted)
        wanted[name] = values
    for name, values in wanted.items():
        assert np.array_equal(values_of(kind, name), values), name
    assert unlike(before, kind.look(Path(kind.path))) == set(names)


HOSTILE = [
    "..", "../x", "/x", "a/../b", "a//b", " ", "x y", "a\\b", "con", "x.ra", "x.ra.yaml", "zarr.json",
    ".zgroup", "__metadata__", "bundle.yaml", "#refs#", "é", "\U0001f600", "-o", "$(touch x)", "`x`",
    "'", '"', "\n", "\x1b[31m", "a" * 300, "aaaa/inner", "group", "readme.txt", "AAAA", "x#y",
    "*", "{}", "%41", "links", "soft", "references", "s", "handle", "cell", "object", "__header__",
]  # fmt: skip


@pytest.mark.parametrize("name", some(HOSTILE, 21))
def test_hostile_names(kind: Kind, name: str) -> None:
    """Added under that name, or refused; the others stay, and nothing is written elsewhere."""
    if (kind.path, name[:1]) in (("c.nc", "a"), ("c.har", "é")) and len(name) in (1, 300):
        pytest.skip("netCDF takes no names above 256 bytes, harpy3 no letters beyond ASCII")
    before = kind.look(Path(kind.path))
    files = everything()
    there = names_in(kind).values()
    try:
        report = raconvert.write(f"{kind.path}#{name}", MORE)
    except (TargetExists, WouldLose, UsageError):
        assert everything() == files
        return
    assert {k for k in unlike(before, kind.look(Path(kind.path))) if k in before} == set()
    assert sorted(os.listdir()) == [kind.path]
    with raconvert.open(kind.path) as opened:
        assert isinstance(opened, raconvert.Bundle)
        new = [found for found in opened.names if found not in there]
        assert len(new) == 1
        assert np.array_equal(np.asarray(opened[new[0]]), MORE)
    exact = [fit for fit in report.equivalent if fit.property == "names"]
    assert exact or new == [name.lstrip("/") or name] or kind.path.endswith(".har")


def test_nothing_but_arrays_is_replaced(kind: Kind) -> None:
    """What is no array is no array with --overwrite either."""
    files = everything()
    for name in ("references", "sequences", "group", "soft", "s", "s/t", "handle", "cell", "object",
                 "#refs#", "readme.txt", "zarr.json", "XXCD", "notes/readme.txt", "y", "five"):  # fmt: skip
        before = kind.look(Path(kind.path))
        try:
            raconvert.write(f"{kind.path}#{name}", MORE, overwrite=True)
        except (TargetExists, WouldLose):
            assert everything() == files
            continue
        assert {k for k in unlike(before, kind.look(Path(kind.path))) if k in before} <= {
            name,
            name[:4].lower(),
        }
        files = everything()


# Together with what else happens --------------------------------------------------------------------


def test_two_at_once_lose_nothing(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container that changes while it is copied is not replaced."""
    plan_of = addition.plan_of

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr("raconvert.conversion.addition.plan_of", plan_of)
        plan = plan_of(*arguments)
        raconvert.write(f"{kind.path}#dddd", OTHER)
        return plan

    monkeypatch.setattr("raconvert.conversion.addition.plan_of", late)
    with pytest.raises(Changed):
        raconvert.write(f"{kind.path}#cccc", MORE)
    assert set(names_in(kind)) >= {"aaaa", "bbbb", "dddd"}
    assert "cccc" not in names_in(kind)
    assert sorted(os.listdir()) == [kind.path]
    raconvert.write(f"{kind.path}#cccc", MORE)
    assert {"cccc", "dddd"} <= set(names_in(kind))


def test_a_failure_in_the_middle(kind: Kind) -> None:
    class Failing:
        shape, dtype, ndim = (4, 2), np.dtype("f4"), 2

        def __array__(self, *_: Any, **__: Any) -> Any:
            raise OSError(5, "Input/output error")

    from raconvert.arrays.array import Array
    from raconvert.arrays.dtypes import element_of

    def source() -> Any:
        raise OSError(5, "Input/output error")

    array = Array(element_of(np.dtype("f4")), (2, 4), name="cccc", index_order="C", data=source)
    files = everything()
    with pytest.raises((RaconvertError, OSError)):
        raconvert.write(f"{kind.path}#cccc", array)
    assert everything() == files


KILLED = """
import os, sys
import numpy as np
import raconvert
path, number = sys.argv[1], 0
print("ready", flush=True)
while True:
    number += 1
    values = np.full((300, 300), number, "f4")
    raconvert.write(f"{path}#cccc", values, overwrite=True)
"""


@pytest.mark.disk
def test_a_kill_leaves_the_old_container_or_the_new_one(kind: Kind) -> None:
    rng = random.Random(7)
    before = kind.look(Path(kind.path))
    for _ in range(rounds(8, 3)):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, kind.path], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        killer = threading.Timer(rng.random() / 5, child.kill)
        killer.start()
        child.wait()
        child.stdout.close()
        killer.join()
        assert unlike(before, kind.look(Path(kind.path))) <= {"cccc"}
        if "cccc" in names_in(kind):
            values = values_of(kind, "cccc")
            assert values.shape == (300, 300)
            assert (values == values[0, 0]).all()
        assert all(n == kind.path or n.startswith(".raconvert-") for n in os.listdir())


@pytest.mark.parametrize("name", ["npz", "safetensors", "mat6", "har"])
def test_the_sidecar_of_a_container_goes_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = KINDS[name].path
    upper = name == "har"
    old, new = ("AAAA", "CCCC") if upper else ("aaaa", "cccc")
    told = Metadata(description="told", attributes={"k": [1, 2]})
    raconvert.write("x.ra", OLD, meta=told)
    raconvert.convert("x.ra", f"{path}#{old}", meta="sidecar")
    raconvert.write(f"{path}#{new}", MORE)
    with raconvert.open(path) as opened:
        assert opened[old].meta.attributes == {"k": [1, 2]}
        assert opened[old].meta.description == "told"
    assert main(["verify", path, "-q"]) == 0
    raconvert.write("y.ra", OTHER, meta=Metadata(attributes={"n": 7}))
    raconvert.convert("y.ra", f"{path}#{new}", meta="sidecar", overwrite=True)
    with raconvert.open(path) as opened:
        assert opened[old].meta.attributes == {"k": [1, 2]}
        assert opened[new].meta.attributes == {"n": 7}
    raconvert.write(f"{path}#{old}", OTHER, overwrite=True)
    with raconvert.open(path) as opened:
        assert not opened[old].meta.attributes
        assert opened[new].meta.attributes == {"n": 7}


# What cannot be added to -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["scidb", "cifar"])
def test_formats_that_take_no_further_array(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    images = np.zeros((2, 3, 32, 32), "u1")
    held = {"images": images, "labels": np.zeros(2, "u1")} if name == "cifar" else {"a": OLD}
    raconvert.write("c.bin", held, to=name)
    files = everything()
    np.save("x.npy", MORE)
    for more in ({}, {"overwrite": True}):
        with pytest.raises(Unsupported, match=name):
            raconvert.convert("x.npy", "c.bin#x", to=name, **more)
    os.remove("x.npy")
    assert everything() == files


def test_a_file_of_another_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_npz(Path("c.h5"))
    files = everything()
    with pytest.raises(Unsupported, match="format npz"):
        raconvert.write("c.h5#x", MORE, overwrite=True)
    Path("empty.npz").touch()
    with pytest.raises(RaconvertError):
        raconvert.write("empty.npz#x", MORE, overwrite=True)
    os.mkdir("c.npz")
    with pytest.raises(TargetExists):
        raconvert.write("c.npz#x", MORE, overwrite=True)
    os.rmdir("c.npz")
    os.remove("empty.npz")
    assert everything() == files


def test_the_source_is_not_its_own_destination(kind: Kind) -> None:
    files = everything()
    name = names_in(kind)["aaaa"]
    with pytest.raises(TargetExists, match="same file|lies in"):
        raconvert.convert(f"{kind.path}#{name}", f"{kind.path}#cccc")
    assert everything() == files


def test_big_endian_and_version_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.mat").write_bytes(mat_bytes.level4(0, 1, 2, 0, b"a\0", np.ones(2).tobytes()))
    big = b"MATLAB 5.0 MAT-file".ljust(124) + b"\1\0MI"
    Path("big.mat").write_bytes(big)
    for path in ("old.mat", "big.mat"):
        with pytest.raises(Unsupported):
            raconvert.write(f"{path}#x", MORE)


def test_an_array_of_zarr_is_no_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zarr = pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    for version in (2, 3):
        zarr.save_array(f"{version}.zarr", OLD, zarr_format=version)
        with pytest.raises(Unsupported, match="single array"):
            raconvert.write(f"{version}.zarr#x", MORE)


# Dimensions that are shared --------------------------------------------------------------------------


def along(*axes: Axis) -> Metadata:
    return Metadata(axes=list(axes))


@pytest.mark.parametrize("path", ["c.nc", "c.zarr", "c.h5"])
def test_equal_axes_are_one_dimension(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xarray = pytest.importorskip("xarray")
    monkeypatch.chdir(tmp_path)
    y, x = Axis("y", units="m", spacing=2.0, origin=1.0), Axis("x", labels=[1, 5, 7, 8])
    raconvert.write(f"{path}#aaaa", OLD, meta=along(y, x))
    engine = "zarr" if path.endswith("zarr") else "h5netcdf"
    before = xarray.load_dataset(path, engine=engine)
    raconvert.write(f"{path}#cccc", OLD * 2, meta=along(y, x))
    after = xarray.load_dataset(path, engine=engine)
    xarray.testing.assert_identical(after.drop_vars("cccc"), before)
    assert after["cccc"].dims == before["aaaa"].dims
    assert (after["cccc"]["x"] == [1, 5, 7, 8]).all()
    with raconvert.open(path) as opened:
        for name in ("aaaa", "cccc"):
            assert [axis.to_dict() for axis in opened[name].meta.axes] == [
                axis.to_dict() for axis in (y, x)
            ]


@pytest.mark.parametrize("path", ["c.nc", "c.zarr", "c.h5"])
@pytest.mark.parametrize(
    "other", [Axis("x", labels=[1, 5, 7, 9]), Axis("x", spacing=3.0, origin=0.0)]
)
@pytest.mark.parametrize("length", [4, 6])
def test_other_axes_of_the_name_stay_apart(
    path: str, other: Axis, length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xarray = pytest.importorskip("xarray")
    monkeypatch.chdir(tmp_path)
    if other.labels and length == 6:
        other = Axis("x", labels=[*range(6)])
    y, x = Axis("y", units="m", spacing=2.0, origin=1.0), Axis("x", labels=[1, 5, 7, 8])
    raconvert.write(f"{path}#aaaa", OLD, meta=along(y, x))
    engine = "zarr" if path.endswith("zarr") else "h5netcdf"
    before = xarray.load_dataset(path, engine=engine)
    report = raconvert.write(f"{path}#cccc", np.ones((3, length), "f4"), meta=along(y, other))
    assert any("axis 'x'" in str(fit) for fit in report.equivalent)
    after = xarray.load_dataset(path, engine=engine)
    apart = [name for name in after.variables if name not in before.variables]
    xarray.testing.assert_identical(after.drop_vars(apart), before)
    assert after["cccc"].dims[0] == "y"
    assert after["cccc"].dims[1] != "x"
    with raconvert.open(path) as opened:
        assert opened["cccc"].meta.axes[1].to_dict() == other.to_dict()
        assert opened["aaaa"].meta.axes[1].to_dict() == x.to_dict()
    raconvert.write(f"{path}#cccc", np.ones((3, 4), "f4"), meta=along(y, x), overwrite=True)
    again = xarray.load_dataset(path, engine=engine)
    assert again["cccc"].dims == before["aaaa"].dims


def test_a_variable_of_netcdf_shares_its_dimensions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    monkeypatch.chdir(tmp_path)
    make_nc(Path("c.nc"))
    before = look_nc(Path("c.nc"))
    x = Axis("x", spacing=10.0, origin=10.0)
    raconvert.write("c.nc#cccc", OLD, meta=along(Axis("y"), x))
    raconvert.write("c.nc#dddd", MORE, meta=along(Axis("two"), Axis("five")))
    assert unlike(before, look_nc(Path("c.nc"))) == {"cccc", "dddd"}
    with netCDF4.Dataset("c.nc", "a") as file:
        assert file["cccc"].dimensions == ("y", "x")
        assert file["dddd"].dimensions == ("two", "five")
        file.createVariable("more", "f4", ("two", "x"))[:] = 1
    raconvert.write("c.nc#cccc", MORE, overwrite=True)
    with netCDF4.Dataset("c.nc") as file:
        assert file["cccc"].shape == MORE.shape
        assert file["aaaa"].dimensions == ("y", "x")
    with pytest.raises(TargetExists, match="dimension scale"):
        raconvert.write("c.nc#x", MORE, overwrite=True)


def test_attributes_of_the_source_file_have_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_h5(Path("c.h5"))
    with h5py.File("from.h5", "w") as file:
        file.attrs["title"] = "of the source"
        file["x"] = MORE
        file["x"].attrs["own"] = 1
    report = raconvert.convert("from.h5#x", "c.h5#cccc")
    assert any("title" in str(fit) for fit in report.equivalent)
    with h5py.File("c.h5") as file:
        assert dict(file["cccc"].attrs) == {"own": 1}
        assert "title" not in file.attrs


def test_a_link_to_a_container_is_written_through(kind: Kind) -> None:
    os.mkdir("there")
    os.rename(kind.path, f"there/{kind.path}")
    os.symlink(f"there/{kind.path}", kind.path)
    before = kind.look(Path(kind.path))
    if os.path.isdir(kind.path):
        return
    raconvert.write(f"{kind.path}#cccc", MORE)
    assert os.path.islink(kind.path)
    assert unlike(before, kind.look(Path(kind.path))) == {"cccc"}


def test_the_mode_of_the_file_stays(kind: Kind) -> None:
    os.chmod(kind.path, 0o750)
    raconvert.write(f"{kind.path}#cccc", MORE)
    assert os.stat(kind.path).st_mode & 0o777 == 0o750


def test_the_report_of_a_command_is_json(kind: Kind, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", MORE)
    assert main(["x.npy", "-o", f"{kind.path}#cccc", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] == [kind.path]


def test_a_stack_with_labels_is_not_added(kind: Kind) -> None:
    for label in ("1", "2"):
        os.mkdir(label)
        np.save(f"{label}/a.npy", MORE)
    files = everything()
    words = ["1/a.npy", "2/a.npy", "--stack", "--labels", "labels", "--overwrite", "-q"]
    assert main([*words, "-o", f"{kind.path}#images"]) == 5
    assert everything() == files
