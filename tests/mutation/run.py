"""The loop: a copy of the tree, one change at a time, and the tests of the changed module."""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import cache_from_source
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from .lines import marked
from .mutants import Mutant, mutants
from .table import AREAS, EQUIVALENT, ROOT, Area

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDRESS_SPACE = 8 << 30
LIMIT = 3600  # seconds for all tests of an area
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
LEFT_OUT = {".git", ".venv", "venv", "build", "__pycache__", ".pytest_cache", ".ruff_cache"}


class Job(NamedTuple):
    """One change to be judged."""

    area: str
    module: Path  # relative to the root
    mutant: Mutant


class Before(NamedTuple):
    """A module's tests on the code as it is, those that fail there left out."""

    seconds: dict[str, float]  # of each test
    reaching: dict[tuple[str, int], list[str]]  # (module, line): tests

    def judges(self, job: Job) -> dict[str, float]:
        """The tests that reach the line, the quick ones first; all if it runs on import."""
        names = self.reaching.get((str(job.module), job.mutant.line), self.seconds)
        return {name: self.seconds[name] for name in sorted(names, key=self.seconds.__getitem__)}


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


def _before(area: Area, copies: SimpleQueue[Path]) -> Before:
    """Run the tests on the code as it is; those that fail already judge nothing."""
    copy = copies.get()
    reached = copy / "reached.json"
    with ExitStack() as stack:
        for path in area.sources(copy):
            text = marked(path.read_text(), str(path.relative_to(copy)))
            stack.enter_context(_changed(path, text))
        _, text = _tested(area, copy, ["--reached", str(reached)])
    found: dict[str, Any] = json.loads(reached.read_text()) if reached.exists() else {}
    if not found:
        raise SystemExit(f"the tests do not run on the code as it is:\n{text}")
    failing = FAILED.findall(text)
    if failing:  # some count calls, or the memory that they take: the marks may be the reason
        judges = {name: found[name][0] for name in failing}
        code, text = _tested(area, copy, _only(copy, judges))
        failing = FAILED.findall(text)
        if code:
            print(f"fail on the code as it is, left out: {failing}", flush=True)
    copies.put(copy)
    seconds, reaching = {}, defaultdict(list)
    for name, (needed, lines) in found.items():
        if name in failing:
            continue
        seconds[name] = needed
        for line in {(module, n) for module, a, b in lines for n in range(a, b + 1)}:
            reaching[line].append(name)
    return Before(seconds, reaching)


def _judge(job: Job, before: Before, copies: SimpleQueue[Path]) -> tuple[Job, str]:
    copy = copies.get()
    only = _only(copy, before.judges(job))
    path = copy / job.module
    with _changed(path, job.mutant.applied(path.read_text())):
        code, _ = _tested(AREAS[job.area], copy, ["-x", *only])
    copies.put(copy)
    return job, {0: "SURVIVED", None: "hung", -signal.SIGALRM: "hung"}.get(code, "noticed")


def _only(copy: Path, seconds: dict[str, float]) -> list[str]:
    """Words for pytest that choose these tests."""
    path = copy / "judges.json"
    path.write_text(json.dumps(seconds))
    return ["--only-tests", str(path)]


@contextmanager
def _changed(path: Path, text: str) -> Iterator[None]:
    """Change a module for a while; what was compiled of it may look as young as the change."""
    plain = path.read_text()
    compiled = Path(cache_from_source(str(path)))
    compiled.unlink(missing_ok=True)
    path.write_text(text)
    try:
        yield
    finally:
        path.write_text(plain)
        compiled.unlink(missing_ok=True)


def _tested(area: Area, copy: Path, more: list[str]) -> tuple[int | None, str]:
    judges = [str(path.relative_to(copy)) for path in area.judges(copy)]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    for name in ("CI", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=no", "-rfE", "--color=no",
         "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tests.mutation.reach", "--hypothesis-seed=0",
         *more, *judges],
        cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    resource.prlimit(process.pid, resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    try:
        text, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""
    return process.returncode, text
