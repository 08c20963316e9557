"""`migrate` over small trees: what becomes of each file, and of an interrupted run."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert.errors import TargetExists, UsageError
from raconvert.migration.journal import NAME, Journal
from tests.chaos.trees import contents

pytestmark = pytest.mark.disk


def test_a_tree_is_mirrored_and_one_bad_file_stops_nothing(tree: Path, tmp_path: Path) -> None:
    result = raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)

    assert result.done == 60
    assert [path for path, _ in result.failed] == ["bad.npy"]
    assert "not an NPY file" in str(result.failed[0][1])
    assert result.left_out == [("readme.txt", "no format claims it")]
    made = contents(tmp_path / "out")
    assert made.pop("SHA256SUMS")
    assert sorted(made) == sorted(f"{('a', 'b/c', 'd')[n % 3]}/x{n}.ra" for n in range(60))
    for name in made:
        there = raconvert.read(tmp_path / "out" / name)
        assert np.array_equal(there, np.load(tree / name.replace(".ra", ".npy")))


def test_digests_are_those_of_sha256sum(
    tree: Path, tmp_path: Path, tool: Callable[..., str]
) -> None:
    result = raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)

    unit, outcome = result.outcomes[-1]
    said = subprocess.run(
        [tool("sha256sum"), tmp_path / "out" / unit.target],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split()[0] == outcome.digest


@pytest.mark.parametrize("phase", ["planned:0", "begun:2", "worker-begun:2", "worker-written:1",
                                   "worker-synced:2", "synced:1", "recorded:1"])  # fmt: skip
def test_a_killed_run_goes_on_and_ends_as_a_whole_one(
    phase: str, tree: Path, tmp_path: Path
) -> None:
    raconvert.migrate(tree, tmp_path / "whole", to="ra", jobs=1)
    words = [sys.executable, "-m", "raconvert", "migrate", str(tree), str(tmp_path / "out"),
             "--to", "ra", "--jobs", "1", "--batch-seconds", "0.001"]  # fmt: skip

    killed = subprocess.run(
        words, env={**os.environ, "RACONVERT_TEST_KILL": phase}, capture_output=True, check=False
    )
    again = subprocess.run(words, capture_output=True, text=True, check=False)

    assert killed.returncode == -signal.SIGKILL
    assert again.returncode == 1, again.stderr  # the damaged file
    assert "1 failed" in again.stdout
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_what_is_finished_is_not_done_again(tree: Path, tmp_path: Path) -> None:
    raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)
    before = os.stat(tmp_path / "out/b/c/x1.ra").st_ino

    again = raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)

    assert len(again.before) == 60
    assert os.stat(tmp_path / "out/b/c/x1.ra").st_ino == before


def test_a_flipped_bit_is_found_by_paranoid_and_written_again(tree: Path, tmp_path: Path) -> None:
    raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)
    place = tmp_path / "out/b/c/x7.ra"
    times, whole = os.stat(place), place.read_bytes()
    place.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))

    usual = raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)
    paranoid = raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, paranoid=True)

    assert len(usual.before) == 60
    assert paranoid.notes == ["'b/c/x7.ra' is damaged, and is written again"]
    assert place.read_bytes() == whole


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_target_that_cannot_be_looked_at_is_not_called_missing(
    tree: Path, tmp_path: Path
) -> None:
    raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)
    path = tmp_path / "out/b/c/x7.ra"
    path.unlink()
    path.symlink_to(path.name)

    again = raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)

    assert again.notes == []
    assert "symbolic links" in str(dict(again.failed)["b/c/x7.npy"])


def test_a_target_that_was_edited_is_left_alone(tree: Path, tmp_path: Path) -> None:
    raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)
    place = tmp_path / "out/b/c/x7.ra"
    place.write_bytes(place.read_bytes() + b"mine")

    again = raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)

    assert sorted(path for path, _ in again.failed) == ["b/c/x7.npy", "bad.npy"]
    assert place.read_bytes().endswith(b"mine")


def test_a_changed_source_is_converted_again_with_update(tree: Path, tmp_path: Path) -> None:
    raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)
    np.save(tree / "b/c/x7.npy", np.ones(3))

    refused = raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)
    updated = raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, update=True)

    assert "b/c/x7.npy" in dict(refused.failed)
    assert "update=True" in str(dict(refused.failed)["b/c/x7.npy"].remedy)
    assert [path for path, _ in updated.failed] == ["bad.npy"]
    assert raconvert.read(tmp_path / "out/b/c/x7.ra").tolist() == [1, 1, 1]


def test_other_options_are_refused_and_named(tree: Path, tmp_path: Path) -> None:
    raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)

    with pytest.raises(UsageError, match="other options: dtype"):
        raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, dtype="float32")


def test_a_second_run_at_once_says_so(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with Journal(str(tmp_path / "out" / NAME)), pytest.raises(TargetExists, match="another run"):
        raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)


def test_trees_that_overlap_are_refused(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tree)
    for target in (tree, tree / "a/new", tmp_path, tmp_path / "link"):
        with pytest.raises(UsageError, match="(same folder|one in the other)"):
            raconvert.migrate(tree, target, to="ra", jobs=1)


def test_a_file_that_was_there_before_is_not_replaced(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "out/b/c").mkdir(parents=True)
    (tmp_path / "out/b/c/x1.ra").write_bytes(b"mine")

    result = raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)

    assert isinstance(dict(result.failed)["b/c/x1.npy"], TargetExists)
    assert (tmp_path / "out/b/c/x1.ra").read_bytes() == b"mine"


def test_two_sources_with_one_target_fail_alone(tree: Path, tmp_path: Path) -> None:
    np.savez(tree / "b/c/x1.npz", np.arange(2.0))

    result = raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)

    assert "as 'b/c/x1.npy' does" in str(dict(result.failed)["b/c/x1.npz"])
    assert result.done == 60


def test_folders_become_stacks(tmp_path: Path) -> None:
    for folder in ("s/x", "s/y"):
        (tmp_path / folder).mkdir(parents=True)
        for number in range(3):
            np.save(tmp_path / folder / f"{number}.npy", np.full((2, 2), number))

    raconvert.migrate(tmp_path / "s", tmp_path / "out", to="ra", jobs=1, stack_folders=True)

    assert sorted(contents(tmp_path / "out")) == ["SHA256SUMS", "x.ra", "y.ra"]
    assert raconvert.read(tmp_path / "out/x.ra")[:, 0, 0].tolist() == [0, 1, 2]


def test_a_source_that_is_not_there_and_a_destination_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "x.ra").write_bytes(b"")
    raconvert.write(tmp_path / "there" / "y.ra", [1])
    with pytest.raises(raconvert.RaconvertError):
        raconvert.migrate(tmp_path / "nothing", tmp_path / "there", to="npy")
    with pytest.raises(raconvert.RaconvertError):
        raconvert.migrate(tmp_path / "there", tmp_path / "x.ra", to="npy")


@pytest.mark.parametrize("fails", [False, True])
def test_the_collector_of_garbage_is_as_it_was(tree: Path, tmp_path: Path, fails: bool) -> None:
    def migrate(name: str) -> None:
        if fails:
            with pytest.raises(UsageError):
                raconvert.migrate(tree, tree / name, to="ra", jobs=1)
        else:
            raconvert.migrate(tree, tmp_path / name, to="ra", jobs=1)

    gc.unfreeze()
    try:
        thresholds = gc.get_threshold()
        migrate("one")
        assert gc.get_freeze_count() == 0
        assert gc.get_threshold() == thresholds
    finally:
        gc.freeze()
    count = gc.get_freeze_count()
    migrate("two")
    assert gc.get_freeze_count() >= count - 100  # some of them are not used any more
