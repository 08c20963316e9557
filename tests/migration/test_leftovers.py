"""Temporary files of processes that died are removed by the run that goes on, and no others."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import raconvert
from raconvert.files.paths import mark_temporaries, marked_temporaries, temporary
from raconvert.migration import work
from raconvert.migration.records import Unit


def hidden(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob(".raconvert-*.tmp"))


# A driver that dies while a file of its own, or of its worker, is half written, as by a power cut.
DIES = """
import os, signal, sys
driver = os.getpid()
die = lambda *a, **k: [os.kill(process, signal.SIGKILL) for process in (driver, os.getpid())]
os.link = os.rename = os.replace = die
from raconvert.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_half_written_file_of_a_killed_run_goes_when_it_goes_on(
    suffix: str, tmp_path: Path
) -> None:
    (tmp_path / "s/a").mkdir(parents=True)
    save = np.save if suffix == ".npy" else np.savez
    for number in range(3):
        save(tmp_path / f"s/a/{number}{suffix}", np.arange(3.0))
    words = ["migrate", str(tmp_path / "s"), str(tmp_path / "out"), "--to", "ra", "--jobs", "1",
             "--meta", "drop"]  # fmt: skip
    (tmp_path / "out/a").mkdir(parents=True)
    other = tmp_path / "out/a/.raconvert-4711-0123456789abcdef.tmp"
    other.write_bytes(b"of another program that is at work")

    died = subprocess.run([sys.executable, "-c", DIES, *words], capture_output=True, check=False)
    left = hidden(tmp_path / "out")
    again = subprocess.run([sys.executable, "-m", "raconvert", *words], check=False)

    assert died.returncode == -9, died.stderr
    assert len(left) == 2
    assert again.returncode == 0
    assert hidden(tmp_path / "out") == [other.name]
    assert raconvert.read(tmp_path / "out/a/2.ra").tolist() == [0, 1, 2]


def test_only_marked_ones_are_removed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    before = mark_temporaries("feedbeef")
    try:
        mine = [temporary(str(tmp_path / "a/x")), temporary(str(tmp_path / "x"))]
    finally:
        mark_temporaries(before)
    others = [temporary(str(tmp_path / "a/x")), str(tmp_path / "a/feedbeef.tmp")]
    for path in (*mine, *others):
        Path(path).touch()
    os.mkdir(mine[0] + "-folder.tmp")
    assert len(marked_temporaries(str(tmp_path / "a"), "feedbeef")) == 2

    work.clear(str(tmp_path), "feedbeef", [Unit("a/x", "a/x", 1, 1), Unit("b/x", "b/x", 1, 1)])
    work.clear(str(tmp_path), "", [Unit("a/x", "a/x", 1, 1)])

    assert sorted(os.listdir(tmp_path / "a")) == sorted(map(os.path.basename, others))
    assert sorted(os.listdir(tmp_path)) == ["a"]


def test_a_file_of_a_worker_that_is_done_by_another_leaves_nothing(tmp_path: Path) -> None:
    """The temporary file lies beside targets that are all recorded, and the driver died, too."""
    (tmp_path / "s/a").mkdir(parents=True)
    for number in range(3):
        np.save(tmp_path / f"s/a/{number}.npy", np.arange(3.0))
    words = [sys.executable, "-m", "raconvert", "migrate", str(tmp_path / "s"),
             str(tmp_path / "out"), "--to", "ra"]  # fmt: skip
    killed = {**os.environ, "RACONVERT_TEST_KILL": "recorded:1"}
    assert subprocess.run(words, env=killed, check=False).returncode == -9
    base = sqlite3.connect(tmp_path / "out/.raconvert-migration.sqlite")
    (mark,) = base.execute("SELECT value FROM run WHERE key = 'mark'").fetchone()
    base.close()
    left = tmp_path / f"out/a/.raconvert-4711-{json.loads(mark)}12345678.tmp"
    left.write_bytes(b"half")

    assert subprocess.run(words, check=False).returncode == 0
    assert hidden(tmp_path / "out") == []


@pytest.mark.parametrize("suffix", [".npy", ".zarr"])
def test_a_worker_that_ends_when_its_target_is_there_does_not_blame_the_source(
    tmp_path: Path, suffix: str
) -> None:
    (tmp_path / "s").mkdir()
    with h5py.File(tmp_path / "s/a.h5", "w") as file:
        file["x"] = np.arange(5)
    words = [sys.executable, "-m", "raconvert", "migrate", str(tmp_path / "s"),
             str(tmp_path / "out"), "--to", suffix[1:], "-j", "2"]  # fmt: skip
    killed = {**os.environ, "RACONVERT_TEST_KILL": "worker-synced:1"}
    first = subprocess.run(words, env=killed, capture_output=True, text=True, check=False)
    assert first.returncode == 1
    assert "was converted, but its workers ended before that was recorded" in first.stderr
    assert "damaged" not in first.stderr
    assert "nothing was written" not in first.stderr

    failing = {**os.environ, "RACONVERT_TEST_POISON": "a.h5"}  # a failure later hides nothing
    subprocess.run(words, env=failing, capture_output=True, check=False)
    again = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stderr.count("exists already")) == (0, 0), again.stderr
    made = "a#x" if suffix == ".zarr" else f"a{suffix}"
    assert np.array_equal(raconvert.read(f"{tmp_path}/out/{made}"), np.arange(5))
    assert hidden(tmp_path / "out") == []
