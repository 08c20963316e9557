"""What is done again when a worker was lost: which files are accused, which targets replaced."""

from __future__ import annotations

import json
import os
from pathlib import Path
from time import time

import numpy as np
import pytest

from raconvert.conversion.converter import Converter
from raconvert.conversion.options import Settings
from raconvert.files.paths import make_folders
from raconvert.migration import journal
from raconvert.migration.batches import Batches
from raconvert.migration.records import (
    DONE,
    FAILED,
    Batch,
    Job,
    Outcome,
    Outcomes,
    Unit,
    Units,
    text_of,
    unit_of,
)
from raconvert.migration.work import Worker, clock_of


def units(count: int) -> list[Unit]:
    return [Unit(f"{number}.npy", f"{number}.ra", 100, 1) for number in range(count)]


def accused_by(poison: str, count: int) -> tuple[list[str], dict[str, int]]:
    """The files that are named when each worker dies that has one of them, and deaths for each."""
    batches = Batches(units(count), 1.0, lambda batch: None)
    named, alone = [], {}
    while batch := batches.take():
        if poison not in [unit.source for unit in batch.units]:
            batches.done(batch, 0.1)
            continue
        if len(batch.units) == 1:
            alone[poison] = alone.get(poison, 0) + 1
        if guilty := batches.lost(batch):
            named.append(guilty.source)
            batches.done(batch, 0.1)
    assert batches.waiting == 0
    return named, alone


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17, 100])
def test_exactly_the_file_is_named_that_kills_twice_alone(count: int) -> None:
    for number in {0, count // 2, count - 1}:
        assert accused_by(f"{number}.npy", count) == ([f"{number}.npy"], {f"{number}.npy": 2})


def source(tmp_path: Path) -> Job:
    (tmp_path / "s").mkdir()
    (tmp_path / "t").mkdir()
    np.save(tmp_path / "s/x.npy", np.arange(3.0))
    return Job(str(tmp_path / "s"), str(tmp_path / "t"), "ra", {})


def test_what_a_lost_worker_has_finished_is_replaced(tmp_path: Path) -> None:
    job, unit = source(tmp_path), Unit("x.npy", "x.ra", 100, 1)
    batches = Batches([unit], 1.0, lambda batch: None, clock_of(str(tmp_path / "t")))
    batch = batches.take()
    (first,) = Worker(job).carry_out(batch)
    batches.lost(batch)
    (second,) = Worker(job).carry_out(batches.take())

    assert (first.state, second.state) == (DONE, DONE)
    assert first.digest == second.digest


def test_what_was_there_before_is_not_replaced_when_a_worker_was_lost(tmp_path: Path) -> None:
    job, unit = source(tmp_path), Unit("x.npy", "x.ra", 100, 1)
    (tmp_path / "t/x.ra").write_bytes(b"mine")
    clock = clock_of(str(tmp_path / "t"))
    while clock() <= os.stat(tmp_path / "t/x.ra").st_ctime:
        pass
    batches = Batches([unit], 1.0, lambda batch: None, clock)
    batches.lost(batches.take())
    (outcome,) = Worker(job).carry_out(batches.take())

    assert outcome.state == FAILED
    assert outcome.error["class"] == "TargetExists"
    assert (tmp_path / "t/x.ra").read_bytes() == b"mine"


def test_a_target_that_appears_while_a_lost_worker_ends_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = source(tmp_path)
    convert, calls = Converter.ordinary, []

    def late(converter: Converter, source: str, target: str, *, settings: Settings) -> object:
        if not calls:  # the worker that was given up renames its file just now
            Path(target).write_bytes(b"of the worker that was given up")
        calls.append(settings.overwrite)
        return convert(converter, source, target, settings=settings)

    monkeypatch.setattr(Converter, "ordinary", late)
    unit = Unit("x.npy", "x.ra", 100, 1, replaces=2)
    (outcome,) = Worker(job._replace(since=clock_of(job.target)())).carry_out(Batch(1, [unit]))

    assert outcome.state == DONE
    assert calls == [False, True]


def test_what_a_lost_worker_left_is_done_by_the_shortcut_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, calls = source(tmp_path), []
    ordinary = Converter.ordinary
    for number in range(20):
        np.save(tmp_path / "s" / f"{number}.npy", np.arange(3.0) + number)
    monkeypatch.setattr(
        Converter,
        "ordinary",
        lambda *words, **more: calls.append(words) or ordinary(*words, **more),
    )
    since = clock_of(job.target)()
    first = Worker(job).carry_out(Batch(1, units(20)[:10], since=since))
    usual = len(calls)
    second = Worker(job).carry_out(Batch(1, units(20), 1, since))

    assert [outcome.state for outcome in first + second] == [DONE] * 30
    assert usual < 5
    assert [o.digest for o in first] == [o.digest for o in second[:10]]
    assert len(calls) < 2 * usual + 12  # ten were there


def test_each_field_of_an_outcome_has_a_check() -> None:
    assert len(journal._OUTCOME) == len(Outcome._fields)


def test_units_and_outcomes_come_back_from_json() -> None:
    plain = Unit("a/x.npy", "a/x.ra", 100, 1)
    given = [plain, plain._replace(members=("0.png", "\udcff")), plain._replace(replaces=2),
             plain._replace(folder="a/x")]  # fmt: skip
    done = Outcome(DONE, 148, 5, "0" * 64)
    found = [done, Outcome(FAILED, error={"class": "Corrupt"}), done._replace(source="1" * 64),
             done._replace(said={"notes": ["x"]}), Outcome(DONE)]  # fmt: skip

    for units_ in (given, Units(given)):
        assert [unit_of(row) for row in json.loads(text_of(units_))] == given
    text = text_of(found)
    assert [Outcome(*row)._replace(files=()) for row in json.loads(text)] == found
    assert text_of(Outcomes(found, text)) == text
    assert len(text_of([done])) < len(json.dumps(done))


def test_the_clock_is_not_ahead_of_the_times_of_files(tmp_path: Path) -> None:
    clock = clock_of(str(tmp_path))
    for number in range(200):
        before = clock()
        (tmp_path / str(number)).touch()
        assert os.stat(tmp_path / str(number)).st_ctime >= before
    assert abs(clock() - time()) < 1
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_folders_that_another_process_makes_meanwhile_are_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def slow(path: str) -> None:
        mkdir(path)  # by the other process
        mkdir(path)

    monkeypatch.setattr(os, "mkdir", slow)
    assert make_folders(str(tmp_path / "a/b")) == []
    assert (tmp_path / "a/b").is_dir()
