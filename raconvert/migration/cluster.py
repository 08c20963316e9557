"""The engine of clusters: batches are carried out by the workers of a Dask scheduler.

A scheduler and workers come and go. When a worker dies, its batch is queued again and in the end
cut, as in the pool (`Batches.lost`); what it had not begun is handed to another one. When the
scheduler is gone, it is waited for, at its address or at what its file names then, and all that was
at hand is handed out again. Sources and destination are on file systems that all of them see.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic

from raconvert import __version__
from raconvert.errors import (
    Corrupt,
    UsageError,
)
from raconvert.files.places import CREATE_FLAGS, remove
from raconvert.files.processes import encoded
from raconvert.migration.leftovers import clear
from raconvert.migration.schedulers import AT_FIRST, LATER, client_of, finder, load, local_cluster, local_count, require, silence
from raconvert.migration.serial import carried_out_here
from raconvert.migration.task import carry_out, sign_of_batch, sign_of_driver
from raconvert.migration.records import FAILED, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self

    from raconvert.migration.batches import Batches
    from raconvert.migration.records import Batch, Job, Unit

_LOG = logging.getLogger("raconvert")
WORTH = 2.0  # seconds of work, as this process does it, for which local workers are started
_IN_FLIGHT = 2  # batches for each worker: one at hand, one waiting
_LOOK = 1.0  # seconds after which workers are counted again
_UNBEGUN = 5  # times that the worker dies which has a batch, and not of it


def carried_out(
    job: Job, batches: Batches, scheduler: str | None, scheduler_file: str | None
) -> Iterator[tuple[Batch, list[Outcome]]]:
    """Yield each batch with the outcomes of its units, in the order in which they are ready.

    `scheduler`: an address, or ``local:N`` for N worker processes on this machine;
    `scheduler_file`: where the scheduler has written its address. Processes on this machine are
    started where this one alone would take longer than that.
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
            found = crew.next_outcomes()
            if found is not None:
                crew.hand_out()  # first, so that no worker waits for what is recorded
                yield found


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
        self._unshared: set[str] = set()  # keys of batches that have all memory
        self._unbegun: dict[int, int] = {}  # by number of batch, how often its worker died
        self._lost: list[Unit] = []  # what workers were at that died
        self._client: Any = None
        self._run = ""
        self._places = 0
        self._counted = 0.0
        self._workers = -1  # nobody has counted yet
        self._tasks = 0

    def __enter__(self) -> Self:
        self._connect(AT_FIRST)
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the workers: they end the batch at hand, and begin no other."""
        self._disconnect()
        if self._lost:
            clear(self._job.target, self._job.mark, self._lost)

    def hand_out(self) -> None:
        """Give the scheduler as many batches as its workers need, and one while it has none."""
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
        # The scheduler may run it again without a word: targets since now are then ours.
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
        """Wait a while for a batch to be ready; None if there is nothing to be recorded."""
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
        said = self._answer_of(future)
        if said is None:
            return None
        del self._at_hand[key]
        future.release()  # else it is run again when the worker dies that has the answer
        if said.get("died"):
            return self._died(batch)
        outcomes = [Outcome(*row) for row in said["outcomes"]]
        self._batches.done(batch, said["seconds"])
        if key in self._unshared:
            self._unshared.discard(key)
            return batch, outcomes
        return self._batches.without_too_large(batch, outcomes)

    def _answer_of(self, future: Any) -> dict[str, Any] | None:
        """What a worker said, or that it died; None if everything is handed out again."""
        from distributed import KilledWorker

        if future.status == "error":
            error = future.exception()
            if isinstance(error, KilledWorker):
                return {"died": True}
            raise _mistake(error)
        try:
            said: dict[str, Any] = json.loads(future.result(timeout=30))
        except (OSError, TimeoutError):  # the worker is gone that has the answer
            return None
        except BaseException as error:
            if not _is_cancelled(error):
                raise
            self._start_over()
            return None
        if said.get("refused"):
            raise UsageError(
                said["refused"],
                path=self._job.target,
                remedy="driver and workers need the same raconvert, and the same paths to the "
                "same files",
            )
        return {"died": True} if said.get("lost") else said

    def _died(self, batch: Batch) -> tuple[Batch, list[Outcome]] | None:
        """Queue a batch again whose worker died; its outcome, if that is to blame."""
        sign = sign_of_batch(self._job, self._run, batch)
        self._lost += batch.units
        deaths = self._unbegun.get(batch.number, 0) + 1
        if not os.path.exists(sign) and deaths < _UNBEGUN:
            self._unbegun[batch.number] = deaths
            self._batches.handed_back(batch)
            return None
        remove(sign)
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
        return batch, [Outcome(FAILED, error=encoded(error))]

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
        """Find the scheduler again; what was at hand is not known, and handed out again."""
        for batch, _ in self._at_hand.values():
            self._lost += batch.units
            self._batches.handed_back(batch._replace(since=self._batches.since(batch)))
        self._disconnect()
        self._connect(LATER)

    def _connect(self, seconds: float) -> None:
        """Connect to the scheduler, under a new name, so that old signs of batches say nothing."""
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
    if isinstance(error, ImportError | AttributeError):
        return UsageError(
            f"the workers have another raconvert, or none: {error}",
            remedy="install the same version where the workers run",
        )
    return RuntimeError(f"in a worker of the cluster: {type(error).__name__}: {error}")
