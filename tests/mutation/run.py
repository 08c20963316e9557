"""The loop: a copy of the tree, one change at a time, and the tests of the changed module."""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from .mutants import Mutant, mutants
from .table import AREAS, EQUIVALENT, ROOT, Area

ADDRESS_SPACE = 8 << 30
PATIENCE = 3  # times what the tests need on the code as it is …
GRACE = 60  # … and so many seconds: the machine is shared
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
LEFT_OUT = {".git", ".venv", "venv", "build", "__pycache__", ".pytest_cache", ".ruff_cache"}


class Job(NamedTuple):
    """One change to be judged."""

    area: str
    module: Path  # relative to the root
    mutant: Mutant


class Judged(NamedTuple):
    """A module's tests on the code as it is: what fails there, and the seconds they take."""

    failing: list[str]
    seconds: float


def main(words: list[str]) -> int:
    """Measure; return 1 if less than the wanted share was noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--modules", nargs="+", choices=AREAS, default=list(AREAS), metavar="AREA",
                        help=f"of {', '.join(AREAS)}; default: all")  # fmt: skip
    parser.add_argument("--count", type=int, default=10, help="changes in each; default 10")
    parser.add_argument("--seed", type=int, help="of the choice; default: another each time")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree at work; default 1")
    parser.add_argument("--wanted", type=float, default=0.9, help="share that must be noticed")
    parser.add_argument("--list", action="store_true", help="print the changes and judge nothing")
    given = parser.parse_args(words)
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    jobs = [job for name in given.modules for job in chosen(name, given.count, seed)]
    if given.list:
        for job in jobs:
            print(_shown(job))
        return 0
    return 0 if _measure(jobs, given.jobs) >= given.wanted else 1


def chosen(name: str, count: int, seed: int) -> list[Job]:
    """Some changes of one area, the equivalent ones left out; the same for the same seed."""
    pool = []
    for path in AREAS[name].sources():
        module = path.relative_to(ROOT)
        pool += [
            Job(name, module, mutant)
            for mutant in mutants(path.read_text())
            if (str(module), mutant.new_line) not in EQUIVALENT
        ]
    return random.Random(f"{seed} {name}").sample(pool, min(count, len(pool)))


def _measure(jobs: list[Job], workers: int) -> float:
    copies: SimpleQueue[Path] = SimpleQueue()
    noticed: dict[str, list[bool]] = {}
    with tempfile.TemporaryDirectory(prefix="mutation") as scratch, \
            ThreadPoolExecutor(workers) as pool:  # fmt: skip
        for number in range(workers):
            copies.put(_copy(Path(scratch) / str(number)))
        for name, group in groupby(jobs, lambda job: job.area):
            before = _before(AREAS[name], copies)
            for job, verdict in pool.map(partial(_judge, before=before, copies=copies), group):
                print(f"{verdict:9} {_shown(job)}", flush=True)
                noticed.setdefault(name, []).append(verdict != "SURVIVED")
    for name, ones in noticed.items():
        print(f"{name}: {sum(ones)} of {len(ones)} noticed")
    total = [one for ones in noticed.values() for one in ones]
    share = sum(total) / len(total)
    print(f"all: {sum(total)} of {len(total)} noticed, {share:.0%}")
    return share


def _shown(job: Job) -> str:
    return f"{job.module}:{job.mutant.line}: {job.mutant.old_line}  ->  {job.mutant.new_line}"


def _copy(folder: Path) -> Path:
    shutil.copytree(ROOT, folder, ignore=lambda _, names: LEFT_OUT.intersection(names))
    return folder


def _before(area: Area, copies: SimpleQueue[Path]) -> Judged:
    """Run the tests on the code as it is; those that fail already judge nothing."""
    start = time.monotonic()
    copy = copies.get()
    code, text = _tested(area, copy, 3600, [])
    copies.put(copy)
    failing = [found[1] for found in FAILED.finditer(text)]
    if code and not failing:
        raise SystemExit(f"the tests do not run on the code as it is:\n{text}")
    if failing:
        print(
            f"fail on the code as it is, left out: {len(failing)} tests, as {failing[0]}",
            flush=True,
        )
    return Judged(failing, time.monotonic() - start)


def _judge(job: Job, before: Judged, copies: SimpleQueue[Path]) -> tuple[Job, str]:
    copy = copies.get()
    path = copy / job.module
    plain = path.read_text()
    path.write_text(job.mutant.applied(plain))
    try:
        skipped = [word for name in before.failing for word in ("--deselect", name)]
        limit = PATIENCE * before.seconds + GRACE
        code, _ = _tested(AREAS[job.area], copy, limit, ["-x", *skipped])
    finally:
        path.write_text(plain)
        copies.put(copy)
    return job, {0: "SURVIVED", None: "hung"}.get(code, "noticed")


def _tested(area: Area, copy: Path, seconds: float, more: list[str]) -> tuple[int | None, str]:
    judges = [str(copy / path.relative_to(ROOT)) for path in area.judges()]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("CI", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=no", "-rfE", "--color=no",
         "-p", "no:cacheprovider", "--hypothesis-seed=0", *more, *judges],
        cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    resource.prlimit(process.pid, resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    try:
        text, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""
    return process.returncode, text
