"""Kills of workers, scheduler and driver of a Dask cluster on this machine."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import raconvert
from raconvert.declared import Record

from . import trees
from ._dask import Dask

_OF_WORKER = ("worker-begun", "worker-written", "worker-synced")
_OF_DRIVER = ("begun", "synced", "recorded")
_COUNT = 120
_SECONDS = 0.0001  # of a batch: but for the first four, they have few files


class Case(Record):
    """What is killed, and where."""

    what: str
    phase: str
    batch: int

    def __str__(self) -> str:
        return f"{self.what}:{self.phase}:{self.batch}"


def cases() -> list[Case]:
    """50 places at which a part of the cluster is killed."""
    found = [Case("worker", phase, batch) for batch in (2, 6) for phase in _OF_WORKER]
    found += [Case("driver", phase, batch) for batch in (2, 6) for phase in _OF_DRIVER]
    found += [Case("scheduler", "handed-out", batch) for batch in (1, 3, 5, 7)]
    found += [Case("poison", folder, 0) for folder in ("a", "b", "b/c")]
    found += [Case("worker", phase, batch) for batch in (1, 3, 4, 5) for phase in _OF_WORKER]
    found += [Case("driver", phase, batch) for batch in (1, 3, 5) for phase in _OF_DRIVER]
    found += [Case("driver", "planned", 0)]
    found += [Case("scheduler", "done", batch) for batch in (1, 2, 4, 6)]
    found += [Case("all", "handed-out", batch) for batch in (1, 2, 4, 6, 8)]
    return found


def wrong(case: Case, folder: Path) -> str:
    """Kill that there; let the run go on, or begin again; say how the end differs."""
    source, target = trees.make(folder / "source", _COUNT), folder / "target"
    _cluster().tell_workers("import raconvert.migration.killpoints as k; k._ASKED = ''")
    said = _RUNS[case.what](case, source, target)
    if said:
        return said
    return trees.difference(trees.contents(target), trees.clean(count=_COUNT))


def _worker(case: Case, source: Path, target: Path) -> str:
    reached = source.parent / "reached"
    _cluster().tell_workers(
        "import raconvert.migration.killpoints as k; "
        f"k._ASKED = {f'{case.phase}:{case.batch}:{reached}'!r}"
    )
    found = trees.run(_words(source, target))
    if not reached.exists():
        return "that place was never reached"
    return _unlike(found, [trees.BAD])


def _driver(case: Case, source: Path, target: Path) -> str:
    first = trees.run(_words(source, target), RACONVERT_TEST_KILL=f"{case.phase}:{case.batch}")
    if not trees.killed(first):
        return f"ended with {first.returncode}: {first.stderr}"
    return _unlike(trees.run(_words(source, target)), [trees.BAD])


def _poison(case: Case, source: Path, target: Path) -> str:
    poison = f"{case.phase}/poison.npy"
    shutil.copy(next(source.rglob("x0.npy")), source / poison)
    return _unlike(trees.run(_words(source, target)), [trees.BAD, poison])


def _scheduler(case: Case, source: Path, target: Path) -> str:
    """Kill the scheduler, or with it all workers, from within the driver, and start them again."""
    dask, kind, seen = _cluster(), {"handed-out": "batch", "done": "file"}[case.phase], [0]

    def listen(event: raconvert.migration.report.Event) -> None:
        seen[0] += event.kind == kind
        if event.kind == kind and seen[0] == case.batch:
            dask.kill_scheduler()
            if case.what == "all":
                dask.kill_workers()
            dask.start_scheduler()
            dask.start_workers()

    result = raconvert.migrate(
        source, target, to="ra", batch_seconds=_SECONDS, scheduler_file=str(dask.file),
        progress=listen,
    )  # fmt: skip
    if seen[0] < case.batch:
        return "that place was never reached"
    failed = [path for path, _ in result.failed]
    return "" if failed == [trees.BAD] else f"{failed} failed"


_RUNS = {"worker": _worker, "driver": _driver, "poison": _poison, "scheduler": _scheduler,
         "all": _scheduler}  # fmt: skip


def _unlike(found: object, failed: list[str]) -> str:
    """How a run ended, if not with exactly these failures."""
    said = f"ended with {found.returncode}: {found.stdout} {found.stderr}"
    if found.returncode != 1 or f"{len(failed)} failed" not in found.stdout:
        return said
    return "" if all(name in found.stderr for name in failed) else said


def _words(source: Path, target: Path) -> list[str]:
    return trees.command(source, target, "--batch-seconds", str(_SECONDS),
                         "--scheduler-file", str(_cluster().file))  # fmt: skip


@cache
def _cluster() -> Dask:
    """A scheduler with two workers, for all cases; files of the name `poison.npy` kill those."""
    folder = tempfile.mkdtemp()
    dask = Dask(Path(folder), RACONVERT_TEST_POISON="poison.npy")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(dask.__exit__)
    return dask.__enter__()
