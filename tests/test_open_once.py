"""A source is opened once: what was replaced, changed or cut meanwhile is refused, never mixed."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import raconvert
from raconvert.conversion.read import open_bundle
from raconvert.errors import Changed, RaconvertError, ReadFailed, Unsafe
from raconvert.files import named, source
from raconvert.files.source import HELD_AT_MOST, Source

CHANGED = "changed while it was read|became shorter"
OLD = np.arange(300_000, dtype="<f8").reshape(500, 600)
NEW = OLD + 0.5
FORMATS = {
    "ra": {}, "npy": {}, "npz": {}, "h5": {}, "nrrd": {}, "mat": {}, "har": {"dtype": "f4"},
    "zip": {"to": "zip"}, "tar": {"to": "tar"}, "scidb": {}, "lz4.ra": {"encoding": "lz4"},
    "packed.npz": {"compress": "deflate"}, "gzip.h5": {"compress": "gzip"},
    "gzip.nrrd": {"encoding": "gzip"}, "v73.mat": {"version": "7.3"}, "png": {"dtype": "u1"},
    "tif": {"dtype": "u1"}, "bmp": {"dtype": "u1"},
}  # fmt: skip


@pytest.fixture(params=FORMATS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path, dict[str, Any]]:
    """Return a file, another of the same size with other values, and how they are written."""
    options = dict(FORMATS[request.param])
    dtype = options.pop("dtype", "f8")
    values = (OLD, NEW) if dtype[0] == "f" else (OLD % 200, OLD % 200 + 1)
    to = options.pop("to", None)
    values = tuple(array.astype(dtype) for array in values)
    paths = []
    for number, array in enumerate(values):
        place = tmp_path / str(number)
        place.mkdir()
        np.save(place / "x.npy", array)
        paths.append(place / f"x.{request.param}")
        if request.param != "npy":
            raconvert.convert(place / "x.npy", paths[-1], to=to, out_opts=options)
    return paths[0], paths[1], options


# The descriptor ----------------------------------------------------------------------------------


def test_a_source_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(bytes(range(256)) * 64)
    opened = []
    really = os.open

    def counting(path: Any, *more: Any) -> int:
        opened.append(path)
        return really(path, *more)

    monkeypatch.setattr(source.os, "open", counting)
    one = Source(str(tmp_path / "x"))
    assert one.size == 16384
    assert one.head == (bytes(range(256)) * 64)[:4096]
    assert [one.read_at(n, 2) for n in (5000, 9001, 16383)] == [b"\x88\x89", b"\x29\x2a", b"\xff"]
    assert len(opened) == 1
    one.close()


def test_a_source_lets_go_of_its_descriptor(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x" * 9000)
    before = sorted(os.listdir("/proc/self/fd"))
    one = Source(str(tmp_path / "x"))
    one.head  # noqa: B018 - opens it
    assert len(os.listdir("/proc/self/fd")) == len(before) + 1
    one.close()
    assert one.read_at(5000, 2) == b"xx"  # opened again, and the same
    del one
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_many_sources_keep_few_descriptors(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x" * 9000)
    many = [Source(str(tmp_path / "x")) for _ in range(3 * HELD_AT_MOST)]
    before = len(os.listdir("/proc/self/fd"))
    for one in many:
        assert one.read_at(5000, 2) == b"xx"
    assert len(os.listdir("/proc/self/fd")) <= before + HELD_AT_MOST


@pytest.mark.parametrize("how", ["replaced", "grown", "cut", "touched", "gone"])
def test_another_file_of_that_name_is_refused(tmp_path: Path, how: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old" * 5000)
    one = Source(str(path))
    assert one.size == 15000
    status = os.stat(path)
    if how == "replaced":
        (tmp_path / "y").write_bytes(b"new" * 5000)
        os.utime(tmp_path / "y", ns=(status.st_atime_ns, status.st_mtime_ns))
        os.replace(tmp_path / "y", path)
    elif how == "gone":
        path.unlink()
    elif how == "touched":
        os.utime(path, ns=(1, 1))
    else:
        os.truncate(path, 20000 if how == "grown" else 9000)
    with pytest.raises((Changed, ReadFailed), match="No such file" if how == "gone" else CHANGED):
        one.open()


# Replaced between opening and reading ------------------------------------------------------------


def test_replaced_after_it_was_opened(pair: tuple[Path, Path, dict[str, Any]]) -> None:
    """The old values, or an error; never those of the file that took its place."""
    path, other, _ = pair
    with open_bundle(path) as bundle:
        old = np.array(bundle.arrays[0])
    with open_bundle(path) as bundle:
        array = bundle.arrays[0]
        assert array.shape == OLD.shape
        os.replace(other, path)
        values, told = None, ""
        try:
            values = np.array(array)
        except Changed as error:
            told = str(error)
        assert "while it was read" in told or np.array_equal(values, old)


@pytest.mark.parametrize("how", ["replaced", "rewritten", "cut"])
@pytest.mark.parametrize("to", ["ra", "npy", "npz"])
def test_changed_during_a_conversion(
    pair: tuple[Path, Path, dict[str, Any]], tmp_path: Path, how: str, to: str
) -> None:
    """The first report of progress comes after the first bytes were read."""
    path, other, _ = pair
    out = tmp_path / f"out.{to}"
    done = []

    def change(*_: object) -> None:
        if done:
            return
        done.append(True)
        if how == "replaced":
            shutil.copyfile(other, tmp_path / "new")
            os.replace(tmp_path / "new", path)
        elif how == "rewritten":
            path.write_bytes(other.read_bytes())
        else:
            os.truncate(path, 5000)

    with pytest.raises(RaconvertError):
        raconvert.convert(path, out, progress=change)
    assert done
    assert not out.exists()


def test_an_item_of_a_stack_that_is_replaced(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{n}.npy") for n in range(4)]
    for path in paths:
        np.save(path, OLD)
    from raconvert.conversion.combine import open_sources

    with open_sources([str(tmp_path / "?.npy")]) as bundle:
        np.save(tmp_path / "new.npy", NEW)
        os.replace(tmp_path / "new.npy", paths[2])
        with pytest.raises(Changed, match=CHANGED):
            np.array(bundle.arrays[0].data[:])
        with pytest.raises(Changed, match=CHANGED):
            list(bundle.arrays[0].data.stream(1 << 20))


# Cut while it is read: no signal -----------------------------------------------------------------

CUT = """
import os, sys
import numpy as np
import raconvert
from raconvert.arrays.blocks import blocks
from raconvert.errors import RaconvertError
from raconvert.conversion.read import open_bundle
path, options = sys.argv[1], dict(pair.split("=", 1) for pair in sys.argv[2:])
bundle = open_bundle(path, in_opts=options)
array = bundle.arrays[0]
os.truncate(path, 4096)
for read in (lambda: [b.sum() for b in blocks(array, 1 << 16)], lambda: np.asarray(array.data[3:])):
    try:
        read()
    except RaconvertError:
        continue
    sys.exit("read from a file that was cut")
"""


@pytest.mark.parametrize("version", ["4", "5"])
def test_a_mat_file_that_is_cut(tmp_path: Path, version: str) -> None:
    scipy = pytest.importorskip("scipy.io")
    path = tmp_path / "x.mat"
    scipy.savemat(path, {"z": OLD + 1j * NEW}, format=version)
    done = subprocess.run([sys.executable, "-c", CUT, str(path)], capture_output=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)


@pytest.mark.parametrize("schema", ["<v:int64>[i=0:299999]", "<v:int64>[i=0:299999:0:1000]",
                                    "<v:int64,w:double>[i=0:149999]"])  # fmt: skip
def test_a_scidb_file_that_is_cut(tmp_path: Path, schema: str) -> None:
    path = tmp_path / "x.scidb"
    path.write_bytes(np.arange(300_000, dtype="<i8").tobytes())
    types = "(int64,double)" if "double" in schema else "(int64)"
    command = [sys.executable, "-c", CUT, str(path), f"schema={schema}", f"format={types}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)


# Files that a file names -------------------------------------------------------------------------


@pytest.fixture
def nrrd(tmp_path: Path) -> Path:
    """Return a detached header, its data in a folder below; a secret lies beside both."""
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "sub" / "x.raw").write_bytes(b"data")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "x.raw").write_bytes(b"SECR")
    header = tmp_path / "in" / "x.nhdr"
    header.write_text("NRRD0004\ntype: uint8\ndimension: 1\nsizes: 4\nencoding: raw\n"
                      "data file: sub/x.raw\n")  # fmt: skip
    return header


def test_a_link_swapped_in_after_the_check(nrrd: Path, tmp_path: Path) -> None:
    with open_bundle(nrrd) as bundle:
        os.rename(nrrd.parent / "sub", nrrd.parent / "old")
        os.symlink(tmp_path / "secret", nrrd.parent / "sub")
        with pytest.raises(Changed, match=CHANGED):
            np.array(bundle.arrays[0])
        with pytest.raises(Changed, match=CHANGED):
            raconvert.write(tmp_path / "out.ra", bundle.arrays[0])


@pytest.mark.parametrize("proc", [True, False])
def test_a_link_swapped_in_before_the_open(
    nrrd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proc: bool
) -> None:
    """A folder becomes a link between the look at the path and the open."""
    really = source.open_file

    def swapping(path: str) -> tuple[int, os.stat_result]:
        os.rename(nrrd.parent / "sub", nrrd.parent / "old")
        os.symlink(tmp_path / "secret", nrrd.parent / "sub")
        return really(path)

    readlink = os.readlink

    def no_proc(path: str, **more: Any) -> str:
        if path.startswith("/proc"):
            raise OSError
        return readlink(path, **more)

    monkeypatch.setattr(source, "open_file", swapping)
    if not proc:
        monkeypatch.setattr(named.os, "readlink", no_proc)
    with pytest.raises(Unsafe, match="outside the folder"):
        named.resolve(Source(str(nrrd)), "sub/x.raw", "the data file")


def test_a_data_file_that_is_written_to_during_the_conversion(nrrd: Path, tmp_path: Path) -> None:
    def change(*_: object) -> None:
        (nrrd.parent / "sub" / "x.raw").write_bytes(b"DATA")
        os.utime(nrrd.parent / "sub" / "x.raw", ns=(5, 5))

    with pytest.raises(Changed, match=CHANGED):
        raconvert.convert(nrrd, tmp_path / "out.ra", progress=change)
    assert not (tmp_path / "out.ra").exists()


# Thousands of sources ----------------------------------------------------------------------------


def _few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (150, 150))


def test_many_hdf5_files_become_one_npz(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for n in range(300):
        with h5py.File(tmp_path / "in" / f"{n:03}.h5", "w", libver="latest") as file:
            file["a"] = np.full((2, 3), n)
            file["b"] = [str(n)]
    script = "import raconvert, sys; raconvert.convert(sys.argv[1], sys.argv[2])"
    command = [sys.executable, "-c", script, str(tmp_path / "in" / "*.h5"), str(tmp_path / "o.npz")]
    subprocess.run(command, check=True, preexec_fn=_few_descriptors)
    with np.load(tmp_path / "o.npz") as found:
        assert len(found.files) == 600
        for n in range(300):
            assert (found[f"{n:03}/a"] == n).all()
            assert found[f"{n:03}/b"].tolist() == [str(n).encode()] or [str(n)]


def test_one_of_many_that_is_replaced_before_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raconvert.conversion import combine

    monkeypatch.setattr(combine, "OPEN_AT_ONCE", 1)
    for name in "abc":
        np.savez_compressed(tmp_path / f"{name}.npz", x=OLD)

    def change(*_: object) -> None:
        np.savez_compressed(tmp_path / "new.npy.npz", x=NEW)
        os.replace(tmp_path / "new.npy.npz", tmp_path / "c.npz")

    with pytest.raises(Changed, match=CHANGED):
        raconvert.convert(str(tmp_path / "?.npz"), tmp_path / "out.h5", progress=change)
    assert not (tmp_path / "out.h5").exists()


# --- regions of what `open` returns are read, not mapped ------------------------------------------


@pytest.mark.parametrize("suffix", ["ra", "npy", "npz", "zip", "h5", "mat", "nrrd"])
@pytest.mark.parametrize("key", ["...", "0", "(slice(None, None, 3), slice(5, 1, -2))", "(3, 4)"])
def test_a_file_cut_after_it_was_opened_is_an_error(tmp_path: Path, suffix: str, key: str) -> None:
    """In a process of its own: a map would end it (SIGBUS)."""
    path = tmp_path / f"x.{suffix}"
    raconvert.write(path, np.arange(1 << 18).reshape(512, 512))
    script = f"""
import os, raconvert
from raconvert.errors import RaconvertError
name = None if {suffix!r} in ("ra", "npy", "nrrd") else "x"
array = raconvert.open({str(path)!r}, name)
array[0, 0]
os.truncate({str(path)!r}, 1024)
try:
    array[{key}].sum()
except RaconvertError as error:
    print(type(error).__name__)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    assert done.stdout.strip() in ("Changed", "Corrupt", "ReadFailed")


@pytest.mark.parametrize("suffix", ["ra", "npy", "mat"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_regions_are_as_numpy_cuts_them(tmp_path: Path, suffix: str, order: str) -> None:
    path = tmp_path / f"x.{suffix}"
    values = np.asarray(np.arange(210).reshape(5, 6, 7), order=order).astype(">i4")  # type: ignore[call-overload]
    raconvert.write(path, values)
    chance = random.Random(3)

    def part() -> object:
        ends = [chance.choice([None, *range(-8, 9)]) for _ in range(2)]
        step = chance.choice([None, 1, 2, 3, -1, -2, -5])
        return chance.choice([chance.randrange(-5, 5), slice(*ends, step), slice(*ends, step)])

    with raconvert.open(path, "x" if suffix == "mat" else None) as array:
        for _ in range(300):
            key = tuple(part() for _ in range(chance.randint(0, 3)))
            got = array[key]
            assert got.dtype == array.dtype
            assert got.shape == values[key].shape
            assert np.array_equal(got, values[key])
