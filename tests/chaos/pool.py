"""Kills of the worker processes of one machine, and of their driver."""

from __future__ import annotations

from pathlib import Path

from raconvert.declared import Record

from . import trees

_COUNT = 200  # arrays: enough for eight batches and more
_OF_WORKER = ("worker-begun", "worker-written", "worker-synced")
_OF_DRIVER = ("begun", "synced", "recorded")


class Case(Record):
    """Where a process is killed, and whether once or each time that it comes there."""

    phase: str
    batch: int
    once: bool
    jobs: int

    def __str__(self) -> str:
        often = "once" if self.once else "always"
        return f"{self.phase}:{self.batch}:{often}:{self.jobs}"


def cases() -> list[Case]:
    """50 places at which a worker or the driver is killed."""
    found = [Case("planned", 0, True, 2), Case("planned", 0, True, 4)]
    found += [Case(phase, 1, False, 2) for phase in _OF_WORKER]  # has many files, and is cut
    found += [
        Case(phase, batch, True, jobs)
        for batch, jobs in ((2, 2), (1, 3), (3, 2), (4, 2), (5, 3), (2, 4), (6, 2))
        for phase in (*_OF_DRIVER, *_OF_WORKER)
    ]
    found += [Case(phase, 7, True, 2) for phase in _OF_DRIVER]
    return found


def wrong(case: Case, folder: Path) -> str:
    """Kill a migration there; if that was the driver, go on; say how the end differs."""
    source, target = trees.make(folder / "source", _COUNT), folder / "target"
    words = trees.command(source, target, "--jobs", str(case.jobs))
    place = f"{case.phase}:{case.batch}" + (f":{folder / 'reached'}" if case.once else "")
    first = trees.run(words, RACONVERT_TEST_KILL=place)
    if case.once and not (folder / "reached").exists():
        return "that place was never reached"
    driver = case.phase not in _OF_WORKER
    if trees.killed(first) != driver:
        return f"ended with {first.returncode}: {first.stderr}"
    last = trees.run(words) if driver else first
    if last.returncode != 1 or "1 failed" not in last.stdout or trees.BAD not in last.stderr:
        return f"ended with {last.returncode}: {last.stdout} {last.stderr}"
    return trees.difference(trees.contents(target), trees.clean(count=_COUNT))
