"""A file that kills the process that reads it, among others: it alone fails, and is named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest

import raconvert
from raconvert import convert
from raconvert.conversion import isolated
from raconvert.conversion.isolated import Jobs, outcomes
from raconvert.errors import Corrupt, TooLarge
from raconvert.files.paths import temporary
from raconvert.workers import worker

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be copied here")

# Runs raconvert with an HDF5 plugin that dies as a crashing library would, of files called "bad".
DYING = """
import os, signal, sys
from raconvert.plugins import hdf5
from raconvert.plugins.hdf5 import reader
real = reader.read_file
def read_file(source, *rest, **more):
    bundle = real(source, *rest, **more)
    if "bad" in os.path.basename(source.path) and "header" in source.path:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "bad" in os.path.basename(source.path):
        class Dying:
            def __init__(self, data):
                self.shape, self.dtype = data.shape, data.dtype
            def __getitem__(self, key):
                os.kill(os.getpid(), signal.SIGSEGV)
        for array in bundle.arrays:
            array.extent, array._data = None, Dying(array.data)
    return bundle
reader.read_file = read_file
from raconvert.cli import main
sys.exit(main(sys.argv[1:]))
"""


def run(*words: Any, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", DYING, *map(str, words)],
        capture_output=True, text=True, timeout=120, check=False, **more,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _copies_may_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner of the tests has threads, which do nothing while a test runs."""
    monkeypatch.setattr(isolated, "can_fork", lambda: True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "in"
    place.mkdir()
    for name in ("a", "bad_data", "b", "bad_header", "c"):
        with h5py.File(place / f"{name}.h5", "w") as file:
            file["x"] = np.arange(10_000) + ord(name[0])
            file["y"] = np.eye(3)
    np.save(place / "d.npy", np.eye(2))
    return place


@pytest.mark.parametrize("verb", ["verify", "digest"])
def test_looking_at_many(folder: Path, verb: str) -> None:
    done = run(verb, folder)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 2 * 3 + 1
    for name in ("bad_data", "bad_header"):
        assert f"{folder}/{name}.h5" in done.stderr
    assert done.stderr.count("SIGSEGV") == 2


def test_info_as_json(folder: Path) -> None:
    done = run("info", "--json", *sorted(folder.iterdir()))
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert [Path(one["path"]).name for one in found if "error" in one] == ["bad_header.h5"]
    found = [one for one in found if "error" not in one]
    assert [Path(one["path"]).name for one in found] == ["a.h5", "b.h5", "bad_data.h5", "c.h5",
                                                         "d.npy"]  # fmt: skip
    for one in found[:2] + found[3:]:
        assert one == raconvert.info(one["path"])


@pytest.mark.parametrize("verb", ["info", "verify", "digest"])
def test_looking_at_one(folder: Path, verb: str) -> None:
    done = run(verb, folder / "bad_header.h5")
    assert done.returncode == 1
    assert f"{folder}/bad_header.h5" in done.stderr
    assert "SIGSEGV" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("to", ["npz", "npy", "ra", "hdf5", "mat"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_converting_each(folder: Path, to: str, overwrite: bool, tmp_path: Path) -> None:
    target = tmp_path / "out"
    if overwrite:
        assert run(folder / "a.h5", "--out-dir", target, "--to", to).returncode == 0
    options = ["--to", to, *(["--overwrite"] * overwrite)]
    done = run(folder, "--each", "--out-dir", target, *options)
    assert done.returncode == 1
    assert "2 of 6 files failed" in done.stderr
    files = [path for path in target.rglob("*") if path.is_file()]
    assert not [path for path in files if "tmp" in path.name or "bad" in str(path)]
    assert not list(target.rglob("*.tmp"))
    for name in "abc":
        values = np.arange(10_000) + ord(name)
        if to in ("npz", "mat", "hdf5"):
            suffix = "h5" if to == "hdf5" else to
            found = raconvert.read(target / f"{name}.{suffix}", "x")
        else:
            found = raconvert.read(target / name / f"x.{to}")
        assert np.array_equal(np.ravel(found), values)


def test_two_sources_that_become_one_file(tmp_path: Path) -> None:
    """What was claimed in a process that is no more is claimed in this one."""
    (tmp_path / "in" / "p").mkdir(parents=True)
    for name, arrays in (
        ("p.h5", ("a/b", "c")), ("p/a.h5", ("b", "z")), ("p/bad_header.h5", "x"),
        ("bad_header.h5", "x"), ("q_bad_header.h5", "x"),
    ):  # fmt: skip
        with h5py.File(tmp_path / "in" / name, "w") as file:
            file.update(dict.fromkeys(arrays, 1))
    done = run(
        tmp_path / "in", "--recursive", "--each", "--out-dir", tmp_path / "out", "--to", "npy"
    )
    assert done.returncode == 1
    assert "4 of 5 files failed" in done.stderr
    assert f"would both become '{tmp_path}/out/p/a/b.npy'" in done.stderr


def test_reports_are_the_same(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process and in another one, a run says the same."""
    sources = [folder / name for name in ("a.h5", "b.h5", "c.h5", "d.npy")]
    with h5py.File(folder / "b.h5", "a") as file:
        file["x"].attrs["units"] = "m"
        file["y"].attrs["strange"] = [1, 2]
    told = []
    for name in ("one", "two"):
        report = convert(sources, out_dir=str(tmp_path / name), to="npz", stack="each")
        told.append(json.loads(json.dumps(report.to_plain()).replace(f"/{name}/", "/x/")))
        monkeypatch.setattr(isolated, "can_fork", lambda: False)
    assert told[0] == told[1]
    assert told[0]["equivalent"]


def test_errors_come_across(folder: Path) -> None:
    paths = [str(folder / "a.h5")] * 4

    def job(number: int) -> Any:
        if number == 0:
            error = TooLarge("big", path="p\udcff", expected=3, got="4", remedy="less")
            error.add_note("by the way")
            raise error
        if number == 1:
            raise OSError(28, "No space left on device")
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"pid": os.getpid(), "text": "\udcff"}

    first, second, third, fourth = outcomes(paths, Jobs(job))
    assert isinstance(first, TooLarge)
    assert (first.path, first.expected, first.remedy) == ("p\udcff", "3", "less")
    assert first.__notes__ == ["by the way"]
    assert isinstance(second, OSError)
    assert second.errno == 28
    assert isinstance(third, Corrupt)
    assert "SIGKILL" in str(third)
    assert fourth["text"] == "\udcff"
    assert fourth["pid"] != os.getpid()


def test_a_bug_is_no_damage(folder: Path) -> None:
    def job(_: int) -> Any:
        return 1 // 0

    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        list(outcomes([str(folder / "a.h5")] * 2, Jobs(job)))
    with pytest.raises(RuntimeError, match="not JSON serializable"):
        list(outcomes([str(folder / "a.h5")] * 2, Jobs(lambda _: np.float32(1))))


def test_an_end_in_the_middle_leaves_no_process(folder: Path) -> None:
    found = outcomes([str(folder / "a.h5")] * 3, Jobs(lambda _: os.getpid()))
    child = next(found)
    found.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_other_formats_stay_in_this_process(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(2))
    paths = [str(tmp_path / "x.npy")] * 2
    assert set(outcomes(paths, Jobs(lambda _: os.getpid()))) == {os.getpid()}


def test_real_files_that_crash(corpus: Callable[..., Path], tmp_path: Path) -> None:
    names = ["bt2.h5", "bt2_bad.h5", "hdf5_segv.h5", "idx_bad.h5", "seed.h5"]
    paths = [str(corpus("review", "attack", name)) for name in names]
    done = subprocess.run(
        [sys.executable, "-m", "raconvert", *paths, "--each", "--out-dir", str(tmp_path / "out"),
         "--to", "npz"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in (1, 4)
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert {"bt2.npz", "seed.npz"} <= set(written) <= {"bt2.npz", "seed.npz", "idx_bad.npz"}


def test_a_copy_that_does_not_come_back_is_killed_and_cleared(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that hangs does not hold an interruption up, and what it began is removed."""
    monkeypatch.setattr(worker, "_PATIENCE", 0.0)

    class Hanging(Jobs):
        def folders(self, _: int) -> list[str]:
            return [str(folder)]

    def job(number: int) -> Any:
        if number:
            copy.write_text(str(os.getpid()))
            Path(temporary(str(folder / "x.npz"))).touch()
            os.kill(os.getppid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGSTOP)
        return os.getpid()

    copy = tmp_path / "number of the process"
    begun = set(os.listdir(folder))
    with pytest.raises(KeyboardInterrupt):
        list(outcomes([str(folder / "a.h5")] * 3, Hanging(job)))

    assert set(os.listdir(folder)) == begun
    with pytest.raises(ChildProcessError):
        os.waitpid(int(copy.read_text()), os.WNOHANG)


def test_an_error_that_came_of_an_interruption_ends_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated, "can_fork", lambda: False)
    done: list[int] = []

    def job(number: int) -> Any:
        done.append(number)
        error = Corrupt("cannot be read")
        error.__context__ = OSError(5, "read failed")
        error.__context__.__context__ = KeyboardInterrupt()
        raise error

    with pytest.raises(KeyboardInterrupt):
        list(outcomes([str(folder / "a.h5")] * 3, Jobs(job)))
    assert done == [0]
