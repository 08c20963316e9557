"""`migrate --shard I/N`: many runs at once into one destination, none of which knows the others."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert.errors import TargetExists, UsageError, WriteFailed
from raconvert.migration.journal import NAME, Journal
from raconvert.migration.shards import Shard, journal_of, journals, shard_of
from tests.chaos import shards as kills
from tests.chaos.trees import contents


def words(tree: Path, out: Path, shard: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "raconvert", "migrate", str(tree), str(out), "--to", "ra",
            "--jobs", "1", "--shard", shard, *more]  # fmt: skip


def told(out: Path, *more: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "raconvert", "migrate", "--status", str(out), "--json", *more],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_shards_together_are_the_whole_tree(count: int, tree: Path, tmp_path: Path) -> None:
    raconvert.migrate(tree, tmp_path / "whole", to="ra", jobs=1)
    results = [
        raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, shard=f"{number}/{count}")
        for number in range(1, count + 1)
    ]

    assert sum(result.done for result in results) == 60
    assert [path for result in results for path, _ in result.failed] == ["bad.npy"]
    assert [path for result in results for path, _ in result.left_out] == ["readme.txt"]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_all_shards_at_once(tree: Path, tmp_path: Path) -> None:
    raconvert.migrate(tree, tmp_path / "whole", to="ra", jobs=1)
    running = [
        subprocess.Popen(words(tree, tmp_path / "out", f"{number}/4"), stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True)
        for number in range(1, 5)
    ]  # fmt: skip
    said = [process.communicate()[1] for process in running]

    assert sorted(process.returncode for process in running) == [0, 0, 0, 1], said
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    facts = told(tmp_path / "out")
    assert facts["counts"] == {"done": 60, "failed": 1}
    assert facts["ended"]
    assert facts["shards"] == {"count": 4, "missing": [], "open": []}


def test_which_shard_a_file_is_in_never_changes(
    tree: Path, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """The numbers are those of `printf %s PATH | sha256sum`, first 16 digits modulo 3, plus 1."""
    raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, shard="2/3")

    for path in sorted(tree.rglob("x*.npy")):
        name = str(path.relative_to(tree))
        digest = subprocess.run(
            [tool("sha256sum")], input=name.encode(), capture_output=True, check=True
        ).stdout
        mine = int(digest[:16], 16) % 3 + 1 == 2
        assert (tmp_path / "out" / name).with_suffix(".ra").exists() == mine


def test_a_stack_is_in_one_shard(tmp_path: Path) -> None:
    for folder in "pqrstuvw":
        (tmp_path / "s" / folder).mkdir(parents=True)
        for number in range(3):
            np.save(tmp_path / "s" / folder / f"{number}.npy", np.full((2, 2), number))
    for number in (1, 2, 3):
        raconvert.migrate(tmp_path / "s", tmp_path / "out", to="ra", jobs=1, stack_folders=True,
                          shard=f"{number}/3")  # fmt: skip

    assert sorted(contents(tmp_path / "out")) == [
        "SHA256SUMS",
        *(f"{folder}.ra" for folder in "pqrstuvw"),
    ]
    assert raconvert.read(tmp_path / "out/w.ra").shape == (3, 2, 2)


def test_two_sources_with_one_target_collide_across_shards(tree: Path, tmp_path: Path) -> None:
    for number in range(10):
        np.savez(tree / f"a/x{3 * number}.npz", np.arange(2.0))
    raconvert.migrate(tree, tmp_path / "whole", to="ra", jobs=1)
    failed = []
    for number in range(1, 4):
        result = raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, shard=f"{number}/3")
        failed += [path for path, _ in result.failed]

    assert sorted(failed) == sorted([*(f"a/x{3 * n}.npz" for n in range(10)), "bad.npy"])
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_status_says_which_shards_never_ran(tree: Path, tmp_path: Path) -> None:
    for number in (2, 5):
        raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, shard=f"{number}/6")
    place = tmp_path / "out" / NAME
    with Journal(journal_of(str(place), Shard(5, 6))) as journal:
        journal.set({"ended": None})

    facts = told(tmp_path / "out")
    assert facts["shards"] == {"count": 6, "missing": [1, 3, 4, 6], "open": [5]}
    assert facts["ended"] is None
    assert "shards 1, 3-4, 6 of 6 never ran" in facts["lines"]
    assert "shard 5 of 6 not ended" in facts["lines"]


def test_the_certificate_is_of_all_shards_and_names_those_that_never_ran(
    tree: Path, tmp_path: Path, tool: Callable[..., str]
) -> None:
    for number in (1, 3):
        raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, shard=f"{number}/3")
    told(tmp_path / "out", "--report", str(tmp_path / "report"))

    report = json.loads((tmp_path / "report.json").read_text())
    listed = {made["path"] for one in report["files"] for made in one.get("written", ())}
    assert report["shards"] == {"count": 3, "missing": [2], "open": []}
    assert not report["complete"]
    assert listed == {name for name in contents(tmp_path / "out") if name.endswith(".ra")}
    checked = subprocess.run(
        [tool("sha256sum"), "--quiet", "-c", "SHA256SUMS"], cwd=tmp_path / "out", check=False
    )
    assert checked.returncode == 0


def test_journals_elsewhere_are_merged_too(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "j").mkdir()
    for number in (1, 2):
        raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, shard=f"{number}/2",
                          journal=str(tmp_path / "j/lab.db"))  # fmt: skip

    assert {"lab.1-of-2.db", "lab.2-of-2.db"} <= set(os.listdir(tmp_path / "j"))
    assert told(tmp_path / "out", "--journal", str(tmp_path / "j/lab.db"))["counts"]["done"] == 60


def test_the_same_shard_twice_at_once_is_refused(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    place = journal_of(str(tmp_path / "out" / NAME), Shard(2, 3))
    with Journal(place), pytest.raises(TargetExists, match="another run"):
        raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, shard="2/3")


def test_a_file_system_without_locks_is_said(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(WriteFailed, match="cannot be locked here: Function not implemented"):
        raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, shard="2/3")


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [("1/3", "1/4", "in 3 shards"), ("1/3", None, "in 3 shards"), (None, "1/3", "without shards")],
)
def test_another_number_of_shards_is_refused(
    before: str | None, now: str | None, said: str, tree: Path, tmp_path: Path
) -> None:
    raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, shard=before)
    there = contents(tmp_path / "out")

    with pytest.raises(UsageError, match=said):
        raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, shard=now)
    assert contents(tmp_path / "out") == there


def test_a_shard_with_other_options_is_refused(tree: Path, tmp_path: Path) -> None:
    raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, shard="1/2")

    with pytest.raises(UsageError, match="other options: dtype"):
        raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, shard="2/2", dtype="float32")


@pytest.mark.parametrize(
    "text", ["", "1", "0/4", "5/4", "1/0", "-1/4", "1/4/2", "a/b", "1 / 4", "٣/٤", "1/200000"]
)
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="shard"):
        shard_of(text)


def test_a_journal_that_is_just_being_made_stops_nobody(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    place = str(tmp_path / "out" / NAME)
    Path(place).touch()  # of a run without shards that was killed at once
    Path(journal_of(place, Shard(1, 5))).touch()
    with Journal(journal_of(place, Shard(2, 2))):  # which has nothing in it yet
        result = raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, shard="1/2")

    assert result.done > 0
    assert told(tmp_path / "out")["shards"] == {"count": 2, "missing": [2], "open": []}
    assert len(journals(place)) == 3


def test_a_killed_shard_is_told_of(tree: Path, tmp_path: Path) -> None:
    run = words(tree, tmp_path / "out", "1/2")
    killed = subprocess.run(
        run, env={**os.environ, "RACONVERT_TEST_KILL": "begun:1"}, capture_output=True, check=False
    )

    assert killed.returncode == -9
    assert told(tmp_path / "out")["shards"] == {"count": 2, "missing": [2], "open": [1]}


@pytest.mark.long
@pytest.mark.parametrize("case", kills.cases()[:7], ids=str)
def test_a_killed_shard_goes_on(case: kills.Case, tmp_path: Path) -> None:
    assert kills.wrong(case, tmp_path) == ""


def test_all_kills_are_fifty_different_ones() -> None:
    assert len(set(map(str, kills.cases()))) == 50
