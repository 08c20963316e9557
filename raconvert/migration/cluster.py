"""The engine of clusters: batches are carried out by the workers of a Dask scheduler.

A scheduler and workers come and go. When a worker dies, its batch is queued again and in the end
cut, as in the pool (`Batches.lost`); batches that it had not begun are handed to another one. When
the scheduler is gone, we wait for one at its address, or at the address that its file names by
then, and all batches at work are handed out again. Sources and destination are on file systems that
all workers see.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import warnings
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic, perf_counter, sleep

from raconvert import __version__
from raconvert.errors import Corrupt, MissingDependency, RaconvertError, ReadFailed, UsageError
from raconvert.files.paths import CREATE_FLAGS, remove
from raconvert.migration.batches import carried_out_here
from raconvert.migration.records import Batch, Job, Outcome, unit_of
from raconvert.migration.work import Worker, clear, ended_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self

    from raconvert.migration.batches import Batches
    from raconvert.migration.records import Unit


# Schedulers of Dask: finding one, reaching it, and starting one on this machine ------------------


AT_FIRST = 60.0  # seconds to wait for the first answer of a scheduler
LATER = 300.0  # seconds to wait for a scheduler that is gone
_SETTINGS = {
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.scheduler.allowed-failures": 0,  # `Batches.lost` decides what is tried again
    "distributed.admin.tick.limit": "1h",  # otherwise Dask warns of long batches
}


def require() -> None:
    """Raise `MissingDependency` if Dask is not installed; it is not imported to find out."""
    if find_spec("distributed") is None:
        raise _missing("it is not installed")


def load() -> None:
    """Import Dask. Raises `MissingDependency` if that fails."""
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
    """Raise `UsageError` if a text is neither the address of a scheduler nor ``local:N``."""
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
    """Return a function that gives the address of the scheduler, read anew at each call."""
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
    """Connect to the scheduler, waiting until it answers; return the client.

    Raises `ReadFailed` after so many seconds, `UsageError` if the address is not valid.
    """
    from distributed import Client

    connect: Any = Client
    until = monotonic() + seconds
    while True:
        address = "the file of the scheduler"
        try:
            address = find()
            timeout = max(1.0, min(10.0, until - monotonic()))
            return connect(address, timeout=timeout, set_as_default=False, name="raconvert")
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
    """Silence Dask's log of lost workers and schedulers; we report those ourselves."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    loggers = [*map(logging.getLogger, names), logging.getLogger("distributed")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="distributed")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


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
    """Start a scheduler and worker processes on this machine; gives its address."""
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
                memory_limit=0,  # --max-memory limits it instead
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


# What a cluster runs: one batch, in whatever process a scheduler has chosen for it ---------------
# Arguments and answers are texts of JSON, so that nothing but the name of a function is ever
# pickled.
#
# A scheduler may run a task again when its worker died, and tells nobody. So a file in the
# destination marks a batch while it is carried out: if there is one already, a worker died of this
# batch, and not of another one that was waiting for it.


_ONE_AT_A_TIME = Lock()  # a worker of Dask may have many threads
_WORKERS: dict[str, Worker] = {}  # the worker of the current job, reused for its batches


def carry_out(version: str, job: str, batch: str, run: str) -> str:
    """Carry out a batch; `run` is the name of the driver's connection (`sign_of_driver`).

    Returns ``{"outcomes": …, "seconds": …}``; or ``{"lost": true}`` if an earlier worker died of
    this batch; or ``{"refused": …}``, the reason why this worker cannot carry out any batch.
    """
    if version != __version__:
        return json.dumps(_refused(f"has raconvert {__version__}, the driver has {version}"))
    with _ONE_AT_A_TIME:
        return json.dumps(_carry_out(job, batch, run))


def _carry_out(job_text: str, batch_text: str, run: str) -> dict[str, Any]:
    job, batch = Job(*json.loads(job_text)), batch_of(json.loads(batch_text))
    for path in (job.source, sign_of_driver(job, run)):
        if "://" not in path and not os.path.exists(path):
            return _refused(f"does not see '{path}'")
    sign = sign_of_batch(job, run, batch)
    try:
        os.close(os.open(sign, CREATE_FLAGS, 0o600))
    except FileExistsError:
        return {"lost": True}
    except OSError as error:
        return _refused(f"cannot write to '{job.target}': {error.strerror}")
    try:
        if job_text not in _WORKERS:
            _WORKERS.clear()
            _WORKERS[job_text] = Worker(job)
        begin = perf_counter()
        outcomes = _WORKERS[job_text].carry_out(batch)
        return {"outcomes": outcomes, "seconds": perf_counter() - begin}
    finally:
        remove(sign)


def _refused(why: str) -> dict[str, Any]:
    return {"refused": f"worker {os.getpid()} on {socket.gethostname()} {why}"}


def batch_of(values: list[Any]) -> Batch:
    """Return a batch from the lists that JSON has made of it."""
    number, units, *rest = values
    return Batch(number, [unit_of(unit) for unit in units], *rest)


def sign_of_driver(job: Job, run: str) -> str:
    """The path of a file that shows workers that they see the destination of the driver."""
    return os.path.join(job.target, f".raconvert-0-{job.mark}{run}-driver.tmp")


def sign_of_batch(job: Job, run: str, batch: Batch) -> str:
    """The path of the file that exists while a batch is carried out."""
    name = f".raconvert-0-{job.mark}{run}-{batch.number}-{batch.deaths}.tmp"
    return os.path.join(job.target, name)


_LOG = logging.getLogger("raconvert")
WORTH = 2.0  # seconds of work for this process, above which local workers are started
_IN_FLIGHT = 2  # batches per worker: one at work, one waiting
_LOOK = 1.0  # seconds between two counts of the workers
_UNBEGUN = 5  # a batch is blamed after so many deaths of workers, even if it has not begun


def carried_out(
    job: Job, batches: Batches, scheduler: str | None, scheduler_file: str | None
) -> Iterator[tuple[Batch, list[Outcome]]]:
    """Yield each batch with the outcomes of its units, in the order in which they are ready.

    `scheduler`: an address, or ``local:N`` for N worker processes on this machine;
    `scheduler_file`: where the scheduler has written its address. Processes on this machine are
    started only if this process alone would take longer than their start.
    """
    if not batches.waiting:
        return
    require()
    if "://" in job.target:
        raise UsageError(
            "a cluster writes to a file system that all workers see",
            path=job.target,
            remedy="use `--jobs`, or `--shard`, for a destination that is a URL",
        )
    count = local_count(scheduler)
    if count:
        yield from carried_out_here(job, batches, most=WORTH, least=WORTH / 4)
        if not batches.waiting:
            return
    load()
    with silence():
        if count:
            with local_cluster(count) as address:
                yield from _carried_out(job, batches, lambda: address, count)
        else:
            yield from _carried_out(job, batches, finder(scheduler, scheduler_file), 1)


def _carried_out(
    job: Job, batches: Batches, find: Callable[[], str], sharing: int
) -> Iterator[tuple[Batch, list[Outcome]]]:
    with Crew(job, batches, find, sharing) as crew:
        while batches.waiting:
            crew.hand_out()
            outcomes = crew.next_outcomes()
            if outcomes is not None:
                crew.hand_out()  # before the outcomes are recorded, so that no worker waits
                yield outcomes


class Crew:
    """The workers of a scheduler, seen from the driver; a context manager.

    `sharing`: how many of them share the memory of one machine.
    """

    def __init__(self, job: Job, batches: Batches, find: Callable[[], str], sharing: int) -> None:
        self._job = job
        self._batches = batches
        self._find = find
        self._whole: int = job.options["max_memory"]
        self._share = self._whole // sharing
        self._ready: SimpleQueue[str] = SimpleQueue()
        self._at_hand: dict[str, tuple[Batch, Any]] = {}  # batch and future by key
        self._unshared: set[str] = set()  # keys of batches that need all memory of a worker
        self._unbegun: dict[int, int] = {}  # deaths of its worker, by number of batch
        self._lost: list[Unit] = []  # units at work when their worker died
        self._client: Any = None
        self._run = ""
        self._places = 0
        self._counted = 0.0
        self._workers = -1  # -1: not counted yet
        self._tasks = 0

    def __enter__(self) -> Self:
        self._connect(AT_FIRST)
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnect from the workers: they end their current batch, and begin no other."""
        self._disconnect()
        if self._lost:
            clear(self._job.target, self._job.mark, self._lost)

    def hand_out(self) -> None:
        """Give the scheduler as many batches as its workers need; one if it has no workers."""
        self._count()
        while len(self._at_hand) < self._places:
            batch, memory = self._batches.take(), self._share
            if batch is None and not self._at_hand:
                batch, memory = self._batches.take_alone(), self._whole
            if batch is None:
                return
            self._submit(batch, memory)

    def _submit(self, batch: Batch, memory: int) -> None:
        self._tasks += 1
        job = self._job._replace(options=dict(self._job.options, max_memory=memory))
        key = f"raconvert-{self._run}-{self._tasks}"
        # The scheduler may run it again without a message: targets made since now are then ours.
        sent = batch._replace(since=self._batches.since(batch))
        future = self._client.submit(
            carry_out, __version__, json.dumps(job), json.dumps(sent), self._run,
            key=key, pure=False,
        )  # fmt: skip
        self._at_hand[key] = batch, future
        if memory == self._whole:
            self._unshared.add(key)
        future.add_done_callback(lambda _: self._ready.put(key))

    def next_outcomes(self) -> tuple[Batch, list[Outcome]] | None:
        """Wait up to `_LOOK` seconds for a batch; None if there are no outcomes to record."""
        try:
            key = self._ready.get(timeout=_LOOK)
        except Empty:
            for key, (_, future) in self._at_hand.items():
                if future.done():
                    self._ready.put(key)
            if self._batches.within is not None:
                self._batches.within(0, 0)
            if self._client.status != "running":
                self._start_over()
            return None
        if key not in self._at_hand:
            return None
        batch, future = self._at_hand[key]
        answer = self._answer_of(future)
        if answer is None:
            return None
        del self._at_hand[key]
        future.release()  # otherwise Dask runs it again if the worker with the answer dies
        if answer.get("died"):
            return self._died(batch)
        outcomes = [Outcome(*row) for row in answer["outcomes"]]
        self._batches.done(batch, answer["seconds"])
        if key in self._unshared:
            self._unshared.discard(key)
            return batch, outcomes
        return self._batches.without_too_large(batch, outcomes)

    def _answer_of(self, future: Any) -> dict[str, Any] | None:
        """Return a worker's answer, or ``{"died": True}``; None if it has to be asked again."""
        from distributed import KilledWorker

        if future.status == "error":
            error = future.exception()
            if isinstance(error, KilledWorker):
                return {"died": True}
            raise _mistake(error)
        try:
            answer: dict[str, Any] = json.loads(future.result(timeout=30))
        except (OSError, TimeoutError):  # the worker with the answer is gone
            return None
        except BaseException as error:
            if not _is_cancelled(error):
                raise
            self._start_over()
            return None
        if answer.get("refused"):
            raise UsageError(
                answer["refused"],
                path=self._job.target,
                remedy="driver and workers need the same raconvert, and the same paths to the "
                "same files",
            )
        return {"died": True} if answer.get("lost") else answer

    def _died(self, batch: Batch) -> tuple[Batch, list[Outcome]] | None:
        """Queue a batch again whose worker died; return its outcome if the batch is to blame."""
        sign = sign_of_batch(self._job, self._run, batch)
        self._lost += batch.units
        deaths = self._unbegun.get(batch.number, 0) + 1
        if not os.path.exists(sign) and deaths < _UNBEGUN:
            self._unbegun[batch.number] = deaths
            self._batches.handed_back(batch)
            return None
        remove(sign)
        since = self._batches.since(batch)
        unit = self._batches.lost(batch)
        if unit is None:
            return None
        self._batches.done(batch, None)
        error = Corrupt(
            "ended the workers that read it: the file is damaged, in a way that crashes its "
            "library, or it needs more memory than they have",
            path=os.path.join(self._job.source, unit.source),
            remedy="convert it alone to see more; nothing was written for it",
        )
        return batch, [ended_by(unit, self._job, since, error)]

    def _count(self) -> None:
        """Count the workers from time to time: they come and go."""
        now = monotonic()
        if self._places and now - self._counted < _LOOK:
            return
        self._counted = now
        with suppress(OSError, TimeoutError):
            workers = self._client.sync(self._client.scheduler.ncores, callback_timeout=10)
            if not workers and self._workers:
                _LOG.warning("no workers at %s: waiting for some", self._client.scheduler.address)
            self._workers = len(workers)
            self._places = max(1, _IN_FLIGHT * len(workers))
            self._batches.workers = max(1, len(workers))

    # The connection ---------------------------------------------------------------------------

    def _start_over(self) -> None:
        """Connect to the scheduler again, and queue all batches at work: it has forgotten them."""
        for batch, _ in self._at_hand.values():
            self._lost += batch.units
            self._batches.handed_back(batch._replace(since=self._batches.since(batch)))
        self._disconnect()
        self._connect(LATER)

    def _connect(self, seconds: float) -> None:
        """Connect to the scheduler under a new name, so that earlier signs are ignored."""
        self._client = client_of(self._find, seconds)
        self._run = os.urandom(4).hex()
        self._places = 0
        os.close(os.open(sign_of_driver(self._job, self._run), CREATE_FLAGS, 0o600))

    def _disconnect(self) -> None:
        futures = [future for _, future in self._at_hand.values()]
        self._at_hand.clear()
        if self._client is not None:
            with suppress(Exception):
                if self._client.status == "running" and futures:
                    self._client.cancel(futures)
            with suppress(Exception):
                self._client.close(timeout=5)
        self._client = None
        remove(sign_of_driver(self._job, self._run))


def _is_cancelled(error: BaseException) -> bool:
    import asyncio
    import concurrent.futures

    kinds = (asyncio.CancelledError, concurrent.futures.CancelledError)
    return isinstance(error, kinds) or type(error).__name__ == "FutureCancelledError"


def _mistake(error: BaseException) -> BaseException:
    """The error to raise for one that a worker raised outside the conversion of a file."""
    if isinstance(error, ImportError | AttributeError):
        return UsageError(
            f"the workers have another raconvert, or none: {error}",
            remedy="install the same version where the workers run",
        )
    return RuntimeError(f"in a worker of the cluster: {type(error).__name__}: {error}")
