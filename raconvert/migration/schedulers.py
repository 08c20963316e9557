"""Schedulers of Dask: finding one, reaching it, and starting one on this machine."""

from __future__ import annotations

import json
import logging
import os
import re
import warnings
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from time import monotonic, sleep

from raconvert.errors import MissingDependency, RaconvertError, ReadFailed, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

AT_FIRST = 60.0  # seconds in which a scheduler must answer
LATER = 300.0  # seconds that a scheduler which is gone is waited for
_SETTINGS = {
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.scheduler.allowed-failures": 0,  # we know better what to do
    "distributed.admin.tick.limit": "1h",  # else it complains of long batches
}


def require() -> None:
    """Raise `MissingDependency` where Dask is not installed; it is not imported for that."""
    if find_spec("distributed") is None:
        raise _missing("it is not installed")


def load() -> None:
    """Import Dask. Raises `MissingDependency` where that fails."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise _missing(str(error)) from error


def _missing(why: str) -> MissingDependency:
    return MissingDependency(
        f"`--scheduler` needs Dask, which cannot be imported: {why}",
        remedy="pip install 'raconvert[distributed]'",
    )


def check_address(scheduler: str) -> None:
    """Raise `UsageError` for what is not the address of a scheduler."""
    kind, _, rest = scheduler.partition(":")
    if kind == "local" and not (re.fullmatch("[0-9]{1,4}", rest, re.ASCII) and int(rest)):
        raise UsageError(
            "is not a number of processes",
            where="`--scheduler`",
            expected="local:N, for example local:4",
            got=scheduler,
        )
    if kind != "local" and not re.fullmatch(r"[a-z]+://[^\s/]+:[0-9]+/?", scheduler, re.ASCII):
        raise UsageError(
            "is not the address of a scheduler",
            where="`--scheduler`",
            expected="tcp://HOST:PORT, as the scheduler says when it starts, or local:N",
            got=scheduler,
        )


def local_count(scheduler: str | None) -> int:
    """The number of processes of ``local:N``, 0 for an address."""
    kind, _, rest = (scheduler or "").partition(":")
    return int(rest) if kind == "local" else 0


def finder(scheduler: str | None, scheduler_file: str | None) -> Callable[[], str]:
    """What tells the address of the scheduler, each time that it is needed."""
    if scheduler_file is None:
        return lambda: scheduler or ""

    def from_file() -> str:
        with open(scheduler_file, encoding="utf-8") as file:
            address = json.load(file)["address"]
        if not isinstance(address, str):
            raise TypeError(f"its address is {address!r}")
        return address

    return from_file


def client_of(find: Callable[[], str], seconds: float) -> Any:
    """A connection to the scheduler as soon as there is one."""
    from distributed import Client

    connect: Any = Client
    until = monotonic() + seconds
    while True:
        address = "the file of the scheduler"
        try:
            address = find()
            left = max(1.0, min(10.0, until - monotonic()))
            return connect(address, timeout=left, set_as_default=False, name="raconvert")
        except RaconvertError:
            raise
        except (OSError, TimeoutError, KeyError, ValueError, TypeError) as error:
            if isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError):
                raise UsageError(
                    f"is not the address of a scheduler: {error}", got=address
                ) from error
            if monotonic() > until:
                raise ReadFailed(
                    f"scheduler cannot be reached: {error}",
                    path=address,
                    remedy="when it runs, give the same command again: it goes on where it was",
                ) from error
        sleep(0.2)


@contextmanager
def silence() -> Iterator[None]:
    """Keep what Dask has to say of lost workers and schedulers, which is our matter here."""
    logger = logging.getLogger("distributed")
    before = logger.level, logger.disabled
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    children = [(logging.getLogger(name), logging.getLogger(name).level) for name in names]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="distributed")
        for one, _ in (*children, (logger, 0)):
            one.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            for one, level in (*children, (logger, before[0])):
                one.setLevel(level)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Have new processes of Python import nothing from the working directory."""
    name = "PYTHONSAFEPATH"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextmanager
def local_cluster(count: int) -> Iterator[str]:
    """Start a scheduler and worker processes on this machine; their address."""
    import dask
    from distributed import LocalCluster

    start: Any = LocalCluster
    with dask.config.set(_SETTINGS), _safe_path():
        try:
            cluster = start(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=None,
                memory_limit=0,  # what --max-memory says holds
                silence_logs=logging.CRITICAL,
            )
        except (OSError, RuntimeError, TimeoutError) as error:
            raise RaconvertError(
                f"processes of Dask cannot be started: {error}",
                remedy='in a program of your own, call migrate below: if __name__ == "__main__":',
            ) from error
        try:
            yield cluster.scheduler_address
        finally:
            with suppress(OSError, RuntimeError, TimeoutError):
                cluster.close(timeout=5)
