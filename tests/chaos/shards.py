"""Kills of runs that share a destination, each with a part of the tree."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from raconvert.declared import Record

from . import trees

_PHASES = ("begun", "worker-begun", "worker-written", "worker-synced", "synced", "recorded")
_OF = 3
_COUNT = 120


class Case(Record):
    """Which shard is killed, and where."""

    phase: str
    batch: int
    shard: int

    def __str__(self) -> str:
        return f"{self.phase}:{self.batch}:{self.shard}"


def cases() -> list[Case]:
    """50 places at which one of three runs is killed."""
    found = [Case(phase, 2, 1) for phase in _PHASES]
    found += [Case("planned", 0, shard) for shard in (1, 2)]
    found += [Case(phase, 2, 2) for phase in _PHASES]
    found += [Case(p, batch, shard) for batch in (1, 3, 4) for shard in (1, 3) for p in _PHASES]
    return found


def wrong(case: Case, folder: Path) -> str:
    """Run all shards at once and kill one; let it go on; say how the end differs."""
    source, target = trees.make(folder / "source", _COUNT), folder / "target"
    place = f"{case.phase}:{case.batch}"
    running = []
    for number in range(1, _OF + 1):
        environment = {"RACONVERT_TEST_KILL": place} if number == case.shard else {}
        running.append(subprocess.Popen(
            _words(source, target, number), env={**os.environ, **environment},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        ))  # fmt: skip
    said = [process.communicate(timeout=120)[1] for process in running]
    codes = [process.returncode for process in running]
    if codes.pop(case.shard - 1) != -9 or not set(codes) <= {0, 1}:
        return f"ended with {[process.returncode for process in running]}: {said}"
    last = trees.run(_words(source, target, case.shard))
    if last.returncode not in (0, 1):
        return f"ended with {last.returncode}: {last.stderr}"
    status = trees.run([*_words(source, target, 1)[:4], "--status", str(target)])
    if f"{_COUNT} done" not in status.stdout or f"of {_OF} " in status.stdout:
        return f"status says: {status.stdout} {status.stderr}"
    return trees.difference(trees.contents(target), trees.clean(count=_COUNT))


def _words(source: Path, target: Path, number: int) -> list[str]:
    return trees.command(source, target, "--jobs", "1", "--batch-seconds", "0.0001",
                         "--shard", f"{number}/{_OF}")  # fmt: skip
