"""Workers of one machine: what they do is what one process does, however many of them die."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import raconvert
from raconvert.errors import RaconvertError, TooLarge, UsageError
from raconvert.migration import killpoints, pool
from tests.chaos import faults, trees
from tests.chaos import pool as kills

MB = 1 << 20
CONSTANT = 64 * MB  # of each worker: interpreter, numpy and what reads the format
FILES = 800  # of a tree that takes a while

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(os.name == "nt", reason="workers need POSIX")


def arrays(found: dict[str, bytes]) -> dict[str, bytes]:
    """What a migration has written, without the list of it."""
    return {name: data for name, data in found.items() if name.endswith(".ra")}


@pytest.mark.long
@pytest.mark.parametrize("case", kills.cases()[:10], ids=str)
def test_a_kill_changes_nothing_in_the_end(case: kills.Case, tmp_path: Path) -> None:
    assert kills.wrong(case, tmp_path) == ""


def test_there_are_fifty_kills() -> None:
    assert len({str(case) for case in kills.cases()}) == 50


@pytest.mark.parametrize("kind", ["SIGKILL", "SIGSEGV"])
def test_a_file_that_kills_its_worker_is_named_and_no_other(kind: str, tmp_path: Path) -> None:
    source, target = trees.make(tmp_path / "source"), tmp_path / "target"

    done = trees.run(
        [*trees.command(source, target, "--jobs", "2"), "--json"],
        RACONVERT_TEST_POISON=f"x19.png:{kind}",
    )

    assert done.returncode == 1, done.stderr
    failed = {
        one["path"]: one["error"] for one in json.loads(done.stdout.splitlines()[-1])["failures"]
    }
    assert set(failed) == {trees.BAD, "b/x19.png"}
    assert failed["b/x19.png"]["class"] == "Corrupt"
    assert failed["b/x19.png"]["got"] == f"signal {kind}"
    wanted = {n: b for n, b in trees.clean().items() if not n.startswith("b/x19.")}
    assert arrays(trees.contents(target)) == arrays(wanted)


def test_a_container_that_kills_is_named_though_no_workers_were_asked_for(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    source, target = trees.make(tmp_path / "source", 8), tmp_path / "target"
    with h5py.File(source / "a/poison.h5", "w") as file:
        file["x"] = np.arange(3)

    done = trees.run([*trees.command(source, target), "--json"], RACONVERT_TEST_POISON="poison.h5")

    assert done.returncode == 1, done.stderr
    failed = json.loads(done.stdout.splitlines()[-1])["failures"]
    assert {one["path"] for one in failed} == {trees.BAD, "a/poison.h5"}
    assert trees.contents(target) == trees.clean(count=8)


def _many(root: Path) -> Path:
    """A tree of as many files of 3 kB."""
    values = np.arange(3000, dtype="u1")
    for number in range(FILES):
        folder = root / f"d{number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        values[0] = number % 256
        np.save(folder / f"x{number}.npy", values)
    return root


def _begun(words: list[str], target: Path) -> subprocess.Popen[str]:
    """A migration that has written its first files."""
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert trees.eventually(lambda: any(target.rglob("*.ra")) or process.poll() is not None)
    assert process.poll() is None, "it has ended before it was disturbed"
    return process


@pytest.mark.parametrize("to_all", [True, False], ids=["from the terminal", "to the driver"])
def test_ctrl_c_ends_all_and_leaves_nothing_half_done(to_all: bool, tmp_path: Path) -> None:
    source, target = _many(tmp_path / "source"), tmp_path / "target"
    words = trees.command(source, target, "--jobs", "2")

    process = _begun(words, target)
    (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)

    assert process.returncode == 130, said
    assert trees.eventually(lambda: trees.is_gone(process.pid))
    assert trees.temporaries(target) == []
    again = trees.run(words)
    assert again.returncode == 0, again.stderr
    assert len(arrays(trees.contents(target))) == FILES


def test_workers_end_when_their_driver_is_killed(tmp_path: Path) -> None:
    source, target = _many(tmp_path / "source"), tmp_path / "target"
    words = trees.command(source, target, "--jobs", "2")

    process = _begun(words, target)
    process.kill()
    process.communicate(timeout=30)

    assert trees.eventually(lambda: trees.is_gone(process.pid))
    assert trees.temporaries(target) == []
    again = trees.run(words)
    assert again.returncode == 0, again.stderr
    assert len(arrays(trees.contents(target))) == FILES


def test_a_run_that_goes_on_waits_for_the_workers_of_a_killed_one(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("the children of a process are listed on Linux only")
    source, target = _many(tmp_path / "source"), tmp_path / "target"
    words = trees.command(source, target, "--jobs", "2")

    process = _begun(words, target)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:  # as in a library that does not come back for a while
        os.kill(int(child), signal.SIGSTOP)
    process.kill()
    process.wait()
    again = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with pytest.raises(subprocess.TimeoutExpired):
        again.wait(2)
    for child in children:
        os.kill(int(child), signal.SIGCONT)
    _, complaints = again.communicate(timeout=60)
    process.communicate(timeout=60)

    assert again.returncode == 0, complaints
    assert len(arrays(trees.contents(target))) == FILES
    assert trees.temporaries(target) == []


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_is_ended_from_outside_is_replaced(kind: int, tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("the children of a process are listed on Linux only")
    source, target = _many(tmp_path / "source"), tmp_path / "target"

    process = _begun(trees.command(source, target, "--jobs", "2"), target)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), kind)
    said, complaints = process.communicate(timeout=60)

    assert len(children) == 2
    assert process.returncode == 0, complaints
    assert f"{FILES} converted" in said
    assert trees.temporaries(target) == []


def test_workers_that_are_no_copies_do_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = trees.make(tmp_path / "source")
    monkeypatch.setattr(pool, "can_fork", lambda: False)

    result = raconvert.migrate(source, tmp_path / "target", to="ra", jobs=2)

    assert [path for path, _ in result.failed] == [trees.BAD]
    assert trees.contents(tmp_path / "target") == trees.clean()


def test_workers_that_cannot_start_are_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = trees.make(tmp_path / "source", 8)
    monkeypatch.setattr(pool, "can_fork", lambda: False)
    monkeypatch.setattr(sys, "executable", "/bin/false")

    with pytest.raises(RaconvertError, match="cannot be started"):
        raconvert.migrate(source, tmp_path / "target", to="ra", jobs=2)


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith(("T", "t"))


@pytest.fixture
def stopped_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is late when it is stopped, which no clock says."""
    if sys.platform != "linux":
        pytest.skip("whether a process is stopped is looked up on Linux only")
    monkeypatch.setattr(pool, "can_fork", lambda: True)
    monkeypatch.setattr(
        pool._Hand,
        "quiet",
        property(lambda hand: 9e9 if _is_stopped(hand.pid) else 0.0),
    )


@pytest.mark.parametrize("jobs", [1, 2, None])
@pytest.mark.parametrize("name", ["x0", "x29"])
def test_a_file_that_hangs_is_given_up_and_no_other(
    jobs: int | None,
    name: str,
    stopped_is_late: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, target = trees.make(tmp_path / "source"), tmp_path / "target"
    poison = next(source.rglob(f"{name}.*"))
    monkeypatch.setattr(killpoints, "_POISON", f"{poison.name}:SIGSTOP")
    began = set(_children())

    result = raconvert.migrate(source, target, to="ra", jobs=jobs, file_timeout=1)
    errors = dict(result.failed)
    hanging = str(poison.relative_to(source))
    monkeypatch.setattr(killpoints, "_POISON", "")
    again = raconvert.migrate(source, target, to="ra", jobs=jobs, file_timeout=1)

    assert set(errors) == {trees.BAD, hanging}
    assert "given up after 1 seconds without progress (file_timeout)" in str(errors[hanging])
    assert set(_children()) <= began
    assert [path for path, _ in again.failed] == [trees.BAD]
    assert again.done - len(again.before) == 1
    assert arrays(trees.contents(target)) == arrays(trees.clean())


def _children() -> list[str]:
    return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()


def test_the_clock_says_that_a_file_hangs(tmp_path: Path) -> None:
    source, target = trees.make(tmp_path / "source"), tmp_path / "target"

    done = trees.run(
        [*trees.command(source, target, "--jobs", "2", "--file-timeout", "4"), "--json"],
        RACONVERT_TEST_POISON="x19.png:SIGSTOP",
    )

    failures = json.loads(done.stdout.splitlines()[-1])["failures"]
    assert {one["path"] for one in failures} == {trees.BAD, "b/x19.png"}
    assert not trees.temporaries(target)


def test_what_goes_on_is_not_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is heard of at each file, while a large one is converted, and while it is proven."""
    monkeypatch.setattr("raconvert.migration.pool._NOW_AND_THEN", 0)
    monkeypatch.setattr(pool, "can_fork", lambda: True)
    source = tmp_path / "source"
    np.save(_folder(source) / "x.npy", np.zeros(1 << 20))
    np.save(source / "y.npy", np.zeros(1 << 20))
    said: list[dict[str, object]] = []
    really = pool._Hand.note

    def note(hand: pool._Hand, words: dict[str, object]) -> None:
        said.append(words)
        really(hand, words)

    monkeypatch.setattr(pool._Hand, "note", note)
    raconvert.migrate(source, tmp_path / "timed", to="ra", jobs=1, file_timeout=600)
    timed = [*said]
    said.clear()
    raconvert.migrate(source, tmp_path / "usual", to="ra", jobs=2)

    assert [words["at"] for words in timed if "at" in words] == [0, -1, 0, -1]
    assert sum(words.get("within") == [0, 0] for words in timed) >= 16  # MiB, for the digests
    assert any(words.get("within", [0])[0] > 1 << 20 for words in timed)  # type: ignore[index]
    assert not any("at" in words or "within" in words for words in said)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_times_that_are_none(seconds: float, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="file_timeout is not a valid time"):
        raconvert.migrate(tmp_path, tmp_path / "x", to="ra", file_timeout=seconds)


def test_a_cluster_ends_no_worker(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs worker processes that can be ended"):
        raconvert.migrate(tmp_path, tmp_path / "x", to="ra", scheduler="local:2", file_timeout=9)


def test_little_work_has_no_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = trees.make(tmp_path / "source", 8)
    monkeypatch.setattr(pool, "Pool", None)

    raconvert.migrate(source, tmp_path / "target", to="ra")

    assert trees.contents(tmp_path / "target") == trees.clean(count=8)


def test_what_needs_more_than_the_share_of_a_worker_runs_alone(tmp_path: Path) -> None:
    source, target = trees.make(tmp_path / "source", 8), tmp_path / "target"
    raconvert.write(source / "b/large.png", np.zeros((5000, 6000), "u1"))
    with pytest.raises(TooLarge):
        raconvert.convert(source / "b/large.png", tmp_path / "x.ra", max_memory=50 << 20)

    result = raconvert.migrate(source, target, to="ra", jobs=2, max_memory=100 << 20)
    smaller = raconvert.migrate(source, tmp_path / "few", to="ra", jobs=2, max_memory=50 << 20)

    assert [path for path, _ in result.failed] == [trees.BAD]
    assert not raconvert.read(target / "b/large.ra").any()
    assert {path for path, _ in smaller.failed} == {trees.BAD, "b/large.png"}
    assert isinstance(dict(smaller.failed)["b/large.png"], TooLarge)


def test_all_workers_together_stay_within_the_memory(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("the peak memory of a process that runs is known on Linux only")
    source, target = tmp_path / "source", tmp_path / "target"
    for number in range(200):
        np.save(_folder(source / f"d{number % 3}") / f"x{number}.npy", np.arange(100.0))
    for number in range(2):  # each of which needs more than half of what there is
        raconvert.write(source / f"d{number}/image.png", np.zeros((10_000, 10_000), "u1"))
    large = np.lib.format.open_memmap(source / "d2/large.npy", "w+", ">f4", (50_000_000,))
    del large  # sparse, and its bytes have to be swapped
    inflated(source / "d0", 150 * MB)

    process = subprocess.Popen(
        [*trees.command(source, target, "--jobs", "2", "--max-memory", "128M")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    peaks: dict[str, int] = {}
    trees.eventually(lambda: _note_peaks(process, peaks), 120)
    said, complaints = process.communicate(timeout=60)

    assert process.returncode == 0, complaints
    assert "206 converted" in said
    workers = list(peaks.values())[-2:]  # before them a process looked at a few headers
    assert 2 <= len(peaks) <= 3
    assert sum(workers) <= 128 * MB + 2 * CONSTANT
    assert max(workers) > 100 * MB  # or nothing was measured


def inflated(folder: Path, size: int) -> None:
    """Files of a few kilobytes that become as large as this: chunks, one chunk, a whole variable.

    The one chunk is of a third of the size, and counts twice: more than a worker's share, less than what there is.
    """
    h5py = pytest.importorskip("h5py")
    for name, length, chunk in (("chunks", size, MB), ("chunk", size // 3, size // 3)):
        with h5py.File(folder / f"{name}.h5", "w") as file:
            data = file.create_dataset("x", length, "u1", chunks=(chunk,), compression=1)
            for first in range(0, length, chunk):
                data[first : first + chunk] = 1
    np.lib.format.open_memmap(folder / "x.npy", "w+", "u1", (size,)).flush()
    raconvert.convert(folder / "x.npy", folder / "variable.mat", out_opts={"version": "7"})
    (folder / "x.npy").unlink()


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _note_peaks(process: subprocess.Popen[str], peaks: dict[str, int]) -> bool:
    """Note the most memory that each worker has had; True when the run has ended."""
    if process.poll() is not None:
        return True
    with contextlib.suppress(OSError):  # they end while they are looked at
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            for line in Path(f"/proc/{child}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    peaks[child] = int(line.split()[1]) << 10
    return False


@pytest.mark.parametrize("case", faults.cases()[:6], ids=str)
def test_a_disk_that_fails_once_costs_nothing_that_is_not_done_again(
    case: faults.Case, tmp_path: Path, tool: Callable[..., str]
) -> None:
    if sys.platform != "linux":
        pytest.skip("faults are injected on Linux only")
    tool("gcc")

    assert faults.wrong(case, tmp_path) == ""


@pytest.mark.usefixtures("mounting_here")
def test_a_full_disk_fails_what_is_left_and_a_later_run_goes_on(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    subprocess.run(mount, capture_output=True, check=True)
    try:
        source = trees.make(tmp_path / "source", 12)
        for number in range(8):  # of a kilobyte each, and 300 times that when they are decoded
            raconvert.write(source / f"large{number}.png", np.full((1000, 300), number, "u1"))
        words = trees.command(source, disk / "target", "--jobs", "2")

        full = trees.run(words)
        left = trees.temporaries(disk)
        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        again = trees.run(words)
        made = arrays(trees.contents(disk / "target"))
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)

    assert full.returncode == 1, full.stderr
    assert "No space left" in full.stderr or "disk is full" in full.stderr
    assert "bug" not in full.stderr
    assert left == []
    assert again.returncode == 1, again.stderr
    assert "1 failed" in again.stdout
    whole = {name for name in trees.clean(count=12) if name.endswith(".ra")}
    assert set(made) == whole | {f"large{number}.ra" for number in range(8)}
    assert all(made[f"large{n}.ra"].endswith(bytes([n]) * 300_000) for n in range(8))


@pytest.mark.parametrize("change", ["grows", "vanishes", "shrinks"])
def test_a_source_that_changes_while_it_runs_is_named_and_nothing_else(
    change: str, tmp_path: Path
) -> None:
    source, target = _many(tmp_path / "source"), tmp_path / "target"
    last = source / "d6/x797.npy"  # in the order in which they are read
    process = _begun(trees.command(source, target, "--jobs", "2"), target)
    if change == "vanishes":
        last.unlink()
    elif change == "grows":
        last.write_bytes(last.read_bytes() + b"more")
    else:
        last.write_bytes(last.read_bytes()[:-5])
    _, complaints = process.communicate(timeout=60)

    made = arrays(trees.contents(target))
    assert process.returncode in (0, 1), complaints
    assert len(made) >= FILES - 1
    if len(made) < FILES:
        assert last.name in complaints
    assert trees.temporaries(target) == []
