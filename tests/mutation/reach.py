"""A plugin of pytest: which tests reach which lines, and which tests run, how long.

`--reached FILE` writes, as JSON, per test its seconds and the marked lines that it runs. `--only-tests FILE` takes names with seconds, runs these tests in that order, and ends the
process with SIGALRM where one needs far longer.
"""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .lines import REACHED

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 10  # times what a test needs on the code as it is …
GRACE = 20  # … and so many seconds: the machine is shared


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--reached", type=Path)
    parser.addoption("--only-tests", type=Path)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--reached"):
        config.pluginmanager.register(Recorder(config))
    if config.getoption("--only-tests"):
        config.pluginmanager.register(Only(config))


class Recorder:
    """Notes the seconds of every test, and the marked lines that it runs in its own process."""

    def __init__(self, config: pytest.Config) -> None:
        self.path: Path = config.getoption("--reached")
        self.found: dict[str, tuple[float, list[tuple[str, int, int]]]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        REACHED.clear()
        start = time.monotonic()
        try:
            return (yield)
        finally:
            self.found[item.nodeid] = time.monotonic() - start, sorted(REACHED)

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps(self.found))


class Only:
    """Runs the tests in the order given, each within its limit."""

    def __init__(self, config: pytest.Config) -> None:
        self.seconds: dict[str, float] = json.loads(config.getoption("--only-tests").read_text())

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        found = {item.nodeid: item for item in items}
        items[:] = [found[name] for name in self.seconds]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        signal.alarm(int(PATIENCE * self.seconds[item.nodeid]) + GRACE)
        try:
            return (yield)
        finally:
            signal.alarm(0)
