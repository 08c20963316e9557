"""A folder as destination: a conversion that fails or is killed leaves the old bundle, or the new.

The archives are among the files of `test_atomic`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundles import save, small
from test_atomic import file_size_limit, noise, unchanged

import raconvert
from raconvert import convert
from raconvert.api import array_of
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.metadata import Metadata
from raconvert.bundle import folder
from raconvert.errors import TargetExists, WouldLose, WriteFailed
from raconvert.files import folder_target

ROOT = Path(__file__).resolve().parents[1]
KILLS = 200


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return a folder with an old bundle `scan`, apart from the sources in tmp_path."""
    (tmp_path / "out").mkdir()
    save(tmp_path / "out" / "scan", small())
    return tmp_path / "out"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    np.savez(tmp_path / "in.npz", **{"x": noise((400, 1000)), "g/y": noise((10, 10))})
    return tmp_path / "in.npz"


# Kills -------------------------------------------------------------------------------------------

# As in test_atomic: converts in a forked child onto one folder, kills it at a random moment, and
# looks at the folder; prints what was found as JSON.
DRIVER = """
import json, os, random, shutil, signal, sys, time
import raconvert

sources, target, kills = json.loads(sys.argv[1])
rng = random.Random(20240229)
folder = os.path.dirname(target)

def tree():
    found = {}
    for place, _, names in os.walk(target):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                found[os.path.relpath(os.path.join(place, name), target)] = file.read()
    return found

def run(source):
    raconvert.convert(source, target, to="bundle", overwrite=True, sync=False)

whole = []
for source in sources:
    run(source)
    whole.append(tree())
started = time.perf_counter()
for source in sources:
    run(source)
run_time = (time.perf_counter() - started) / len(sources)
found = {"seen": [0] * len(sources), "temporary": 0, "errors": []}
for kill in range(10 * kills):
    if kill >= kills and found["temporary"] and sum(map(bool, found["seen"])) > 1:
        break
    child = os.fork()
    if not child:
        while True:
            for number in range(len(sources)):
                run(sources[(number + kill) % len(sources)])
    time.sleep(rng.uniform(0, 2 * run_time))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    now = tree()
    if now not in whole:
        found["errors"].append(f"kill {kill}: neither of the whole bundles: {sorted(now)}")
        break
    found["seen"][whole.index(now)] += 1
    for name in os.listdir(folder):
        if name == os.path.basename(target):
            continue
        if name.startswith(".raconvert-"):
            found["temporary"] += 1
        else:
            found["errors"].append(f"kill {kill}: left {name}")
        shutil.rmtree(os.path.join(folder, name))
run(sources[0])
found["recovered"] = tree() == whole[0]
print(json.dumps(found))
"""


def can_exchange(place: Path) -> bool:
    for name in ("a", "b"):
        (place / name).mkdir()
    done = folder_target.exchanged(str(place / "a"), str(place / "b"))
    for name in ("a", "b"):
        (place / name).rmdir()
    return done


def test_a_killed_conversion_leaves_the_old_bundle_or_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    if not can_exchange(tmp_path):
        pytest.skip("this system cannot exchange two folders in one step")
    sources = []
    for number in range(3):  # other arrays, other groups, other sidecars in each
        arrays = [array_of(noise((300, 300), seed), f"g{number}/{seed}") for seed in range(4)]
        arrays[0].meta = Metadata(description=f"source {number}")
        save(tmp_path / f"{number}.zip", Bundle(arrays, attributes={"number": number}))
        sources.append(str(tmp_path / f"{number}.zip"))

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            DRIVER,
            json.dumps([sources, str(tmp_path / "out" / "scan"), KILLS]),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["errors"] == []
    assert sum(found["seen"]) >= KILLS
    assert sum(count > 0 for count in found["seen"]) > 1, "kills came before any conversion"
    assert found["temporary"] > 0, "no kill came while a bundle was written"
    assert found["recovered"]


DIES = """
import os, sys
import raconvert
from raconvert.files import folder_target as folder
real = os.rename
def rename(*paths):
    real(*paths)
    os._exit(9)
os.rename = rename
exchanged = folder.exchanged
def exchange(*paths):
    if exchanged(*paths):
        os._exit(9)
    return False
folder.exchanged = exchange
raconvert.convert(sys.argv[1], sys.argv[2], to="bundle", overwrite=True)
"""


def test_there_is_no_moment_without_a_bundle(tmp_path: Path, out: Path, source: Path) -> None:
    if not can_exchange(tmp_path):
        pytest.skip("this system cannot exchange two folders in one step")
    done = subprocess.run(
        [sys.executable, "-c", DIES, str(source), str(out / "scan")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 9
    assert list(raconvert.read(out / "scan")) == ["x", "g/y"]
    left = [name for name in os.listdir(out) if name != "scan"]
    assert len(left) == 1
    assert left[0].startswith(".")


# Systems that cannot exchange two folders --------------------------------------------------------


@pytest.fixture
def no_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_target, "exchanged", lambda *_: False)


@pytest.mark.usefixtures("no_exchange")
def test_two_renames_do_the_same(out: Path, source: Path) -> None:
    convert(source, out / "scan", to="bundle", overwrite=True)
    assert list(raconvert.read(out / "scan")) == ["x", "g/y"]
    assert os.listdir(out) == ["scan"]


@pytest.mark.usefixtures("no_exchange")
@pytest.mark.parametrize("failing", [0, 1], ids=["first", "second"])
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()], ids=repr)
def test_a_rename_that_fails_puts_the_old_bundle_back(
    out: Path, source: Path, failing: int, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, count = os.rename, iter(range(100))

    def rename(*paths: Any) -> None:
        if "scan" in str(paths) and next(count) == failing:
            raise error
        real(*paths)

    monkeypatch.setattr(os, "rename", rename)
    expected = WriteFailed if isinstance(error, OSError) else KeyboardInterrupt
    with unchanged(out), pytest.raises(expected):
        convert(source, out / "scan", to="bundle", overwrite=True)


# Failures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("nbytes", [10, 100_000], ids=["in-the-header", "in-the-data"])
def test_a_limit_of_the_file_size_leaves_everything_as_it_was(
    out: Path, source: Path, nbytes: int
) -> None:
    with unchanged(out), file_size_limit(nbytes), pytest.raises(WriteFailed) as caught:
        convert(source, out / "scan", to="bundle", overwrite=True)
    assert "File too large" in str(caught.value)
    with unchanged(out), file_size_limit(nbytes), pytest.raises(WriteFailed):
        convert(source, out / "new", to="bundle")


def test_a_manifest_that_cannot_be_written_leaves_everything_as_it_was(out: Path) -> None:
    bundle = Bundle([array_of(np.ones(2), "x")], attributes={"x": "y" * 200_000})
    with unchanged(out), file_size_limit(100_000), pytest.raises(WriteFailed):
        save(out / "scan", bundle, overwrite=True)


@pytest.mark.parametrize("place", range(0, 8, 2))
def test_interrupts_leave_everything_as_it_was(
    out: Path, source: Path, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C when the n-th of the files is to be made."""
    real, count = folder.FolderTarget.member, iter(range(100))

    def member(self: folder.FolderTarget, file: str) -> Any:
        if next(count) == place:
            raise KeyboardInterrupt
        return real(self, file)

    monkeypatch.setattr(folder.FolderTarget, "member", member)
    bundle = Bundle([array_of(np.ones(2), name) for name in "abcdefgh"])
    for name in ("scan", "new"):
        with unchanged(out), pytest.raises(KeyboardInterrupt):
            save(out / name, bundle, overwrite=True)
        count = iter(range(100))


def test_a_source_that_turns_out_to_be_damaged_leaves_everything_as_it_was(
    tmp_path: Path, out: Path
) -> None:
    np.savez(tmp_path / "in.npz", a=np.ones(1000), b=np.full(1000, 7.0))
    data = bytearray((tmp_path / "in.npz").read_bytes())
    data[data.rindex(np.full(3, 7.0).tobytes()) + 3] ^= 1
    (tmp_path / "in.npz").write_bytes(data)
    for name in ("scan", "new", "new.zip", "new.tar"):
        form = None if "." in name else "bundle"
        with unchanged(out), pytest.raises(WouldLose, match="array 'b': cannot be read"):
            convert(tmp_path / "in.npz", out / name, to=form, overwrite=True)


def test_a_value_that_does_not_fit_leaves_everything_as_it_was(out: Path, source: Path) -> None:
    for name in ("scan", "new", "new.zip", "new.tar"):
        form = None if "." in name else "bundle"
        with unchanged(out), pytest.raises(WouldLose):
            convert(source, out / name, to=form, dtype="int8", overwrite=True)


def test_a_stranger_that_comes_meanwhile_is_not_replaced(
    out: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = folder.FolderTarget.finish

    def late(self: folder.FolderTarget, *, sync: bool = True) -> None:
        finish(self, sync=sync)
        (out / "scan" / "notes.txt").write_text("mine")

    monkeypatch.setattr(folder.FolderTarget, "finish", late)
    with pytest.raises(TargetExists):
        convert(source, out / "scan", to="bundle", overwrite=True)
    assert (out / "scan" / "notes.txt").read_text() == "mine"
    assert os.listdir(out) == ["scan"]


FULL_DISK = """
import json, sys
import raconvert
source, target = sys.argv[1:]
try:
    raconvert.convert(source, target, to="bundle", overwrite=True)
except raconvert.RaconvertError as error:
    print(json.dumps([type(error).__name__, error.exit_code, str(error)]))
"""


def test_a_full_disk_leaves_everything_as_it_was(
    tmp_path: Path, out: Path, source: Path, mounting: list[str]
) -> None:
    (tmp_path / "disk").mkdir()
    script = (
        'mount -t tmpfs -o size=256k tmpfs "$1" && cp -r "$2" "$1/scan" && "$3" -c "$4" "$5" "$1/scan";'
        ' diff -r "$2" "$1/scan" && ls -A "$1"'
    )
    words = [tmp_path / "disk", out / "scan", sys.executable, FULL_DISK, source]
    done = subprocess.run(
        [*mounting, "sh", "-c", script, "sh", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told, *names = done.stdout.splitlines()
    assert json.loads(told)[:2] == ["WriteFailed", 1]
    assert "No space left on device" in told
    assert names == ["scan"]


# Where it is put ---------------------------------------------------------------------------------


def test_the_mode_of_new_folders_is_the_usual(tmp_path: Path, source: Path) -> None:
    old = os.umask(0o027)
    try:
        convert(source, tmp_path / "new", to="bundle")
    finally:
        os.umask(old)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "new" / "x.ra").stat().st_mode & 0o777 == 0o640


def test_nothing_is_written_into_a_folder_that_is_not_there(tmp_path: Path, source: Path) -> None:
    with unchanged(tmp_path), pytest.raises(WriteFailed):
        convert(source, tmp_path / "none" / "scan", to="bundle")


def test_skipped_and_planned_conversions_touch_nothing(out: Path, source: Path) -> None:
    for options in ({"skip_existing": True}, {"dry_run": True, "overwrite": True}):
        with unchanged(out):
            convert(source, out / "scan", to="bundle", **options)


# Durable in one wait ------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="syncfs is a system call of Linux")
@pytest.mark.parametrize("count", [3, 100])
def test_a_bundle_waits_for_the_disk_once(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of few files for each of them; of many once, for the file system that they are on."""
    waits = []
    really = os.fsync

    def counting(descriptor: int) -> None:
        waits.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        really(descriptor)

    monkeypatch.setattr(os, "fsync", counting)
    arrays = {f"a{n}": np.arange(3) for n in range(count)}
    raconvert.write(tmp_path / "x", arrays, to="bundle", sync=True)
    files = [path for path in waits if path.endswith(".ra")]
    assert len(files) == (count if count < 10 else 0)
    assert len(waits) < 10
    assert raconvert.read(tmp_path / "x", "a1").tolist() == [0, 1, 2]


def test_a_wait_for_the_disk_that_fails_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raconvert.files import target

    def failing(_: str) -> bool:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(target, "_sync_file_system", failing)
    arrays = {f"a{n}": np.arange(3) for n in range(100)}
    with pytest.raises(WriteFailed, match="Input/output error"):
        raconvert.write(tmp_path / "x", arrays, to="bundle", sync=True)
    assert list(tmp_path.iterdir()) == []
