"""Progress of `migrate`: what a listener is told, and what the command line shows."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert import Progress
from raconvert.cli.console import Console, duration
from raconvert.cli.console import Progress as Line
from raconvert.cli.migrate import Display, state_of
from raconvert.migration.report import Event


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Seven arrays in two folders, a damaged file and a text."""
    root = tmp_path / "source"
    for folder, count in (("a", 4), ("b", 3)):
        (root / folder).mkdir(parents=True)
        for number in range(count):
            np.save(root / folder / f"{number}.npy", np.arange(100.0))
    (root / "bad.npy").write_bytes(b"hello")
    (root / "readme.txt").write_text("hello")
    return root


def test_a_listener_is_told_of_the_plan_and_of_every_file(tree: Path, tmp_path: Path) -> None:
    events: list[Event] = []

    raconvert.migrate(
        tree, tmp_path / "out", to="ra", jobs=1, batch_seconds=1e-9, progress=events.append
    )

    kinds = [event.kind for event in events]
    assert kinds[:2] == ["begin", "plan"]
    assert kinds[-1] == "end"
    plan = events[1]
    assert plan.total == 8
    assert plan.nbytes_total == sum(path.stat().st_size for path in tree.rglob("*.npy"))
    assert plan.facts["formats"] == {"npy": 8}
    assert plan.facts["left_out"] == {"no format claims it": 1}
    files = [event for event in events if event.kind == "file"]
    assert sorted(event.file for event in files) == sorted(
        str(path.relative_to(tree)) for path in tree.rglob("*.npy")
    )
    assert [event.done for event in files] == list(range(1, 9))
    assert files[-1].failed == 1
    assert files[-1].nbytes == plan.nbytes_total
    assert [e.facts["error"]["class"] for e in files if e.facts["state"] == "failed"] == ["Corrupt"]


def test_what_was_done_before_is_counted_as_done(tree: Path, tmp_path: Path) -> None:
    (tree / "bad.npy").unlink()
    raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)
    np.save(tree / "new.npy", np.arange(3))
    events: list[Event] = []

    raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, progress=events.append)

    plan = next(event for event in events if event.kind == "plan")
    assert (plan.done, plan.total, plan.facts["before"]) == (7, 8, 7)
    assert plan.nbytes_total == (tree / "new.npy").stat().st_size


def test_batches_at_work_are_named_until_they_are_done(tree: Path, tmp_path: Path) -> None:
    events: list[Event] = []

    raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1, progress=events.append)

    handed_out = [event for event in events if event.kind == "batch"]
    assert handed_out[0].running == (handed_out[0].file,)
    assert events[-1].running == ()


def test_a_large_file_tells_how_far_it_is(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    np.save(tmp_path / "s/x.npy", np.zeros(3 << 20))
    events: list[Event] = []

    raconvert.migrate(tmp_path / "s", tmp_path / "out", to="ra", jobs=1, progress=events.append)

    within = [event.facts["nbytes"] for event in events if event.kind == "within"]
    assert within == sorted(within)
    assert within[-1] == 24 << 20


def run(*words: object) -> subprocess.CompletedProcess[str]:
    """`raconvert migrate` with these words."""
    command = [sys.executable, "-m", "raconvert", "migrate", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_plan_is_said_before_the_work(tree: Path, tmp_path: Path) -> None:
    said = run(tree, tmp_path / "out", "--to", "ra", "--jobs", "1")

    lines = said.stderr.splitlines()
    assert re.match(r"plan: 8 files \(8 npy\), 6\.5 kB; .* free", lines[0]), lines
    assert lines[1] == "plan: 1 left out: no format claims it"
    assert said.stdout == f"{tmp_path}/out: 7 converted, 1 failed, 1 left out\n"


def test_json_is_a_line_for_every_event(tree: Path, tmp_path: Path) -> None:
    said = run(tree, tmp_path / "out", "--to", "ra", "--jobs", "1", "--json")

    events = [json.loads(line) for line in said.stdout.splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds[:3] == ["begin", "plan", "batch"]
    assert kinds[-1] == "end"
    assert kinds.count("file") == 8
    assert events[-1]["done"] == 7
    assert [one["path"] for one in events[-1]["failures"]] == ["bad.npy"]
    made = {event["target"]: event["digest"] for event in events if event.get("digest")}
    for path in (tmp_path / "out").rglob("*.ra"):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert made[str(path.relative_to(tmp_path / "out"))] == digest


def event(**fields: object) -> Event:
    values = {
        "kind": "file", "file": "a/x", "done": 3, "total": 9, "failed": 1, "nbytes": 2_000_000,
        "nbytes_total": 6_000_000, "seconds": 4.0, "left": 3_725.0, "running": ("a/y", "b/z"),
        "facts": {},
    }  # fmt: skip
    return Event(**{**values, **fields})  # type: ignore[arg-type]


def test_a_terminal_has_one_line_and_a_log_a_line_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "out: 3 of 9 files, 1 failed, 2.0 MB of 6.0 MB, 500.0 kB/s, 1:02 h left, at a/y and 1 more"
    )
    times = {True: [0, 1, 5, 6, 9, 10], False: [0, 0.4, 0.5, 0.55, 0.6]}
    for log, lines in ((True, f"{text}\n" * 2), (False, f"\r{text[:79]}" * 2)):
        clock = iter(times[log])
        monkeypatch.setattr("time.monotonic", lambda clock=clock: next(clock))
        display = Display(Console(), Line("out", log=log))

        for _ in times[log][1:]:
            display(event())

        assert capsys.readouterr().err == lines


def test_a_large_file_says_how_much_of_it_is_done() -> None:
    within = event(kind="within", facts={"nbytes": 30, "nbytes_total": 60}, running=("a/y",))

    assert state_of(within).endswith("at a/y (50 %)")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (59, "59 s"), (60, "1:00 min"), (3725, "1:02 h")]
)
def test_times_are_said_as_people_read_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_conversion_says_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 6.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))

    Line("x.ra", log=True)(Progress("x.npy", 1_000_000, 4_000_000, 0, 1, 6.0, 1_000_000 / 6))

    assert capsys.readouterr().err == "x.ra: 25 % of 4.0 MB, 166.7 kB/s, 18 s left\n"
