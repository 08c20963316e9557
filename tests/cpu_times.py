"""The time of each test file in seconds of the processor: `python -m pytest --cpu-times=FILE`.

User and system time, that of the test process and of all processes below it, alive or ended. Unlike
the time on a clock it says the same on a machine that does other work beside. FILE gets two tables:
test files, with what collecting each took in all workers together, and tests, the cases of a
parametrised one together. What a process below does later, for a test of another file, is that
file's.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
TIMES = slice(11, 15)  # in stat, behind the name: user, system, and both of children that ended
LEAST = 0.5  # seconds: cheaper tests are left out of the second table
Costs = dict[str, tuple[float, float, int]]  # a test: seconds, seconds to collect, cases


def spent() -> float:
    """Return the seconds that this process and all below it have had until now."""
    own = os.times()
    alive = sum(_of_living(child) for child in _children(os.getpid()))
    return own.user + own.system + own.children_user + own.children_system + alive


def _of_living(process: str) -> float:
    """Return the seconds of a child, those below it included; 0 for one that is gone."""
    try:
        stat = (PROC / process / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    own = sum(map(int, stat[TIMES])) / TICKS
    return own + sum(_of_living(child) for child in _children(process))


def _children(process: object) -> list[str]:
    """Return the ids of the processes that the threads of a process have started."""
    found: list[str] = []
    threads = PROC / str(process) / "task"
    with contextlib.suppress(OSError):  # one that ends just now
        for thread in os.listdir(threads):
            with contextlib.suppress(OSError):
                found += (threads / thread / "children").read_text().split()
    return found


class Times:
    """The plugin: each process counts, the one that started the workers writes the tables."""

    def __init__(self, target: str) -> None:
        self.target = Path(target)
        self.seconds: Counter[str] = Counter()
        self.collecting: Counter[str] = Counter()
        self.cases: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Count what it takes to import a test file."""
        began = spent() if isinstance(collector, pytest.Module) else 0.0
        report = yield
        if isinstance(collector, pytest.Module):
            self.collecting[collector.nodeid] += spent() - began
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Count a test with its fixtures; those of a session are the first one's."""
        began = spent()
        answer = yield
        name = item.nodeid.partition("[")[0]
        self.seconds[name] += spent() - began
        self.cases[name] += 1
        return answer

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker has counted."""
        counted = getattr(node, "workeroutput", {}).get("cpu_times", ({}, {}, {}))
        for mine, more in zip((self.seconds, self.collecting, self.cases), counted, strict=True):
            mine.update(more)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the counts on, or write them."""
        if hasattr(session.config, "workeroutput"):
            counted = (self.seconds, self.collecting, self.cases)
            session.config.workeroutput["cpu_times"] = [dict(one) for one in counted]
        else:
            self.target.write_text(self.text())

    def text(self) -> str:
        """Return both tables, the most expensive first."""
        files: Costs = {name: (0.0, seconds, 0) for name, seconds in self.collecting.items()}
        tests: dict[str, Costs] = defaultdict(dict)
        for name, seconds in self.seconds.items():
            file = name.partition("::")[0]
            before, collecting, cases = files.get(file, (0.0, 0.0, 0))
            files[file] = before + seconds, collecting, cases + self.cases[name]
            if seconds >= LEAST:
                tests[file][name] = seconds, 0.0, self.cases[name]
        files["total"] = tuple(map(sum, zip(*files.values(), strict=True))) or (0, 0, 0)  # type: ignore[assignment]
        lines = ["seconds  collecting  cases  test file", *_rows(files), ""]
        lines += [f"seconds  collecting  cases  test of at least {LEAST} s"]
        lines += _rows({name: one for costs in tests.values() for name, one in costs.items()})
        return "\n".join(lines) + "\n"


def _rows(costs: Costs) -> list[str]:
    ordered = sorted(costs.items(), key=lambda one: (-sum(one[1][:2]), one[0]))
    return [
        f"{seconds:7.1f} {collecting:11.1f} {cases:6}  {name}"
        for name, (seconds, collecting, cases) in ordered
    ]
