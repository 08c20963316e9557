"""What `migrate` says of files that fail: before the work, and at the end."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert.cli import main
from raconvert.errors import Corrupt, RaconvertError, TargetExists, TooLarge, Unsafe, WouldLose
from raconvert.migration.records import Job, Unit
from raconvert.migration.report import advice, alike, flags_of, probed
from raconvert.plugin import refused


def would_lose(name: str, *fits: tuple[str, str]) -> WouldLose:
    lines = [
        refused(name, "type", reason, flag).as_written()
        + ("" if flag else " (no option allows this)")
        for reason, flag in fits
    ]
    return WouldLose("har cannot hold this as it is", path=f"{name}.har", remedy="\n".join(lines))


def test_failures_are_alike_whatever_the_names_and_numbers_in_them() -> None:
    failed: list[tuple[str, RaconvertError]] = [
        ("a.npy", would_lose("a", ("3 values are too large", "--allow precision"))),
        ("b.npy", Corrupt("is cut off", path="b.npy")),
        ("c.npy", would_lose("c", ("17 values are too large", "--allow precision"))),
    ]

    groups = alike(failed)

    assert [one.sources for one in groups] == [["a.npy", "c.npy"], ["b.npy"]]
    assert groups[0].error is failed[0][1]


@pytest.mark.parametrize(
    ("error", "flags"),
    [
        (would_lose("x", ("float64", "--dtype float32")), "`--dtype float32`"),
        (
            would_lose("x", ("a", "--allow names"), ("b", "--allow nulls"), ("c", "--allow names")),
            "`--allow names` and `--allow nulls`",
        ),
        (would_lose("x", ("a", "--allow names"), ("b", "")), ""),
        (WouldLose("x", remedy="metadata: y (refused by `--strict`)\n  nothing was written"), ""),
        (TargetExists("x", remedy="use `--overwrite` to replace it, or `--skip-existing` to keep it"),
         "`--overwrite`"),
        (TargetExists("x", remedy="use `--update` to convert it again"), "`--update`"),
        (Unsafe("x", remedy="read it nevertheless with `--trust external`, if you know"),
         "`--trust external`"),
        (TooLarge("x", remedy="allow it with `--max-memory 12M`"), "`--max-memory 12M`"),
        (WouldLose("2 of its 3 arrays", remedy="`--allow arrays` leaves them out"), "`--allow arrays`"),
        (TargetExists("x", remedy="rename one of them, or leave one out with `--exclude`"), ""),
        (would_lose("x", ("too deep", "--planes")), ""),  # none of `migrate`
        (Corrupt("x"), ""),
    ],
)  # fmt: skip
def test_the_flags_that_would_allow_it(error: RaconvertError, flags: str) -> None:
    assert flags_of(error) == flags


def test_flags_are_counted_the_most_helpful_first() -> None:
    failed: list[tuple[str, RaconvertError]] = [
        ("a", TargetExists("x", remedy="use `--overwrite` to replace it")),
        *((str(n), would_lose(str(n), ("y", "--allow precision"))) for n in range(37)),
        ("b", Corrupt("z")),
    ]

    assert list(advice(failed).items()) == [("`--allow precision`", 37), ("`--overwrite`", 1)]


def test_the_advice_is_right(tmp_path: Path) -> None:
    """What is counted for a flag passes with that flag, and the rest does not."""
    (tmp_path / "s").mkdir()
    for number in range(4):
        np.save(tmp_path / f"s/{number}.npy", np.full((2, 3), number))
    np.save(tmp_path / "s/deep.npy", np.zeros((2, 2, 2, 2), np.uint8))
    (tmp_path / "s/bad.npy").write_bytes(b"?")

    first = raconvert.migrate(tmp_path / "s", tmp_path / "a", to="png", jobs=1)
    again = raconvert.migrate(tmp_path / "s", tmp_path / "b", to="png", jobs=1, dtype="uint8")

    ((flags, count),) = advice(first.failed).items()
    assert flags.startswith("`--dtype uint8`")
    assert len(first.failed) - len(again.failed) == count == 4


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "raconvert", "migrate", *map(str, words), "--jobs", "1"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_failure_is_named_with_its_reason_and_its_flag(tmp_path: Path) -> None:
    (tmp_path / "s/sub").mkdir(parents=True)
    for number in range(30):
        np.save(tmp_path / f"s/sub/x{number}.npy", np.full((2, 3), number))
    (tmp_path / "s/odd\nname.npy").write_bytes(b"?")
    (tmp_path / "s/notes.txt").write_text("x")

    said = run(tmp_path / "s", tmp_path / "out", "--to", "png")

    assert said.returncode == 1
    assert said.stderr.count("PNG holds bool, uint8 and uint16, not int64") == 2  # plan, and end
    assert "raconvert: 30 files would pass with --dtype uint8, " in said.stderr
    assert all(f"sub/x{number}.npy\n" in said.stderr for number in range(30))
    assert r"odd\nname.npy" in said.stderr
    assert "plan: 1 left out: no format claims it" in said.stderr
    assert "notes.txt" not in said.stderr
    assert "left out: notes.txt: no format claims it" in run(
        tmp_path / "s", tmp_path / "out", "--to", "png", "-v"
    ).stderr  # fmt: skip


def test_a_systematic_refusal_is_said_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    for number in range(40):
        np.save(tmp_path / f"s/{number}.npy", np.zeros((2, 3 + number % 2)))
    (tmp_path / "s/bad.npy").write_bytes(b"?")

    said = run(tmp_path / "s", tmp_path / "out", "--to", "png", "--jobs", "1")

    lines = [line for line in said.stderr.splitlines() if line.startswith("plan: ")]
    # One file of each size: two sizes of arrays, and that of the damaged file.
    assert any("plan: 2 of 3 files looked at cannot be converted: " in line for line in lines)
    assert any("(allow with --dtype uint8" in line for line in lines)
    assert any("plan: 1 of 3 files looked at" in line and "bad.npy" in line for line in lines)


def test_few_files_are_looked_at_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    units = []
    for number in range(2000):
        if number < 300:
            np.save(tmp_path / f"s/{number}.npy", np.zeros(number))
        units.append(Unit(f"{number}.npy", f"{number}.ra", number, 0))
    job = Job(str(tmp_path / "s"), str(tmp_path / "out"), "ra", {"allow": ()})

    found = probed(job, units)

    assert found == {"looked_at": 31, "refusals": []}
    assert not (tmp_path / "out").exists()


def test_arrays_that_are_left_out_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tree").mkdir()
    for name in ("one", "two"):
        with zipfile.ZipFile(tmp_path / "tree" / f"{name}.npz", "w") as file:
            for worn in ("worn", "torn"):
                file.writestr(f"{worn}.npy", b"\x93NUMPY\1\0\x10\0{broken}       \n")
            with file.open("whole.npy", "w") as member:
                np.save(member, np.arange(3))
    words = ["migrate", str(tmp_path / "tree"), str(tmp_path / "out"), "--to", "npz"]
    assert main([*words, "--allow", "arrays"]) == 0
    said = capsys.readouterr().err
    for worn in ("worn", "torn"):
        assert f"(and 1 more files): allowed: array '{worn}': elements: cannot be read" in said
    assert "allow with" not in said
