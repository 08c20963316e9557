"""The engine of one machine: batches are carried out by worker processes under our supervision.

A worker that dies costs its batch, which is queued again, and in the end cut until one file is
left that no worker survives; a new worker takes its place. If there is so little to do that this
process alone is as fast, no workers are started.
"""

from __future__ import annotations

import gc
import json
import os
from itertools import starmap
from math import inf
from time import perf_counter

from raconvert.errors import RaconvertError, ReadFailed
from raconvert.files.threads import processors
from raconvert.migration.batches import carried_out_here, looked_at_seldom
from raconvert.migration.records import FAILED, Batch, Job, Outcome, Outcomes, Unit, text_of
from raconvert.migration.work import Worker as Converter
from raconvert.migration.work import ended_by
from raconvert.workers.worker import Worker, can_fork, clear, death, encoded, end, ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Self

    from raconvert.migration.batches import Batches
    from raconvert.workers.worker import Tell


# The worker process: takes batches, and answers with their outcomes ------------------------------
# To the worker goes ``[number, max_memory, deaths, since, units]``; from it comes ``{}`` when it is
# ready, ``{"within": [done, all]}`` now and then with the bytes of a large file,
# ``{"at": number}`` for each unit of a batch if the job is timed, and for each batch
# ``{"seconds": …, "outcomes": …}``.


_NOW_AND_THEN = 0.2  # seconds between two reports of the progress within a file
BEFORE = ',"outcomes":'  # the text before the outcomes in an answer


def serve(
    requests: Iterator[Any], tell: Tell, fields: Sequence[Any], threshold: tuple[int, int, int]
) -> None:
    """Carry out batches as they arrive, each with the memory that its request allows.

    `fields`: those of the job; `threshold`: the thresholds of the garbage collector.
    """
    gc.set_threshold(*threshold)
    job = Job(*fields)
    converters: dict[int, Converter] = {}
    last = 0.0

    def within(done: int, total: int) -> None:
        nonlocal last
        now = perf_counter()
        if now - last > _NOW_AND_THEN:
            last = now
            tell(f'{{"within":[{done},{total}]}}')

    def at(number: int) -> None:
        tell(f'{{"at":{number}}}')

    tell("{}")
    for number, max_memory, deaths, since, units in requests:
        converter = converters.get(max_memory)
        if converter is None:
            options = {**job.options, "max_memory": max_memory}
            listeners = (within, at) if job.timed else (within,)
            converter = converters[max_memory] = Converter(
                job._replace(options=options), *listeners
            )
        batch = Batch(number, [Unit(*unit) for unit in units], deaths, since)
        begin = perf_counter()
        outcomes = converter.carry_out(batch)
        seconds = perf_counter() - begin
        tell(f'{{"seconds":{seconds!r}{BEFORE}{text_of(outcomes)}}}')


# The driver --------------------------------------------------------------------------------------


WORTH = 0.2  # seconds of work for one process, above which workers are started
LEAST = 64 << 20  # bytes of --max-memory for each worker, if their number is ours to choose
_AT_ONCE = 2  # batches that a worker has at a time: one at work, one waiting
_TICK = 1.0  # seconds between two reports of progress
_FAILED_STARTS = 3  # workers in a row that may end before they are ready


def carried_out(
    job: Job, batches: Batches, jobs: int | None, file_timeout: float | None = None
) -> Iterator[tuple[Batch, list[Outcome]]]:
    """Yield each batch with the outcomes of its units.

    `jobs`: the number of workers; None: as many as there are processors and memory for, or none if
    this process alone is as fast. `file_timeout`: seconds without progress after which a file is
    given up, and its worker ended.
    """
    count = jobs or max(1, min(processors(), job.options["max_memory"] // LEAST))
    if os.name == "nt":  # pipes cannot be waited for
        count = 1
    if file_timeout is None and (jobs is None or count == 1):
        yield from carried_out_here(job, batches, most=None if count == 1 else WORTH)
    if batches.waiting:
        with looked_at_seldom() as before, Pool(job, count, before, file_timeout) as pool:
            yield from pool.carried_out(batches)


class Pool:
    """Worker processes for one job; a context manager.

    `threshold`: the thresholds of the garbage collector in the workers; `file_timeout`: as for
    `carried_out`.
    """

    def __init__(
        self,
        job: Job,
        count: int,
        threshold: tuple[int, int, int] | None = None,
        file_timeout: float | None = None,
    ) -> None:
        self._threshold = threshold or gc.get_threshold()
        self._whole: int = job.options["max_memory"]
        self._share = self._whole // count
        self._job = job
        self._count = count
        self._hands: list[_Hand] = []
        self._failed_starts = 0
        self._timeout = file_timeout or inf

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers: those at work are interrupted; remove what they began."""
        for hand in end(self._hands):
            self._clear(hand)
        self._hands = []

    def carried_out(self, batches: Batches) -> Iterator[tuple[Batch, list[Outcome]]]:
        """Yield each batch with the outcomes of its units, in the order in which they are ready."""
        batches.workers = self._count
        while batches.waiting:
            self._hand_out(batches)
            for hand in self._ready(batches):
                lines: list[bytes] | list[None] = hand.receive() or [None]
                for line in lines:
                    outcomes = self._processed(line, hand, batches)
                    if outcomes is None:
                        continue
                    # At once, so that workers go on while the outcomes are recorded.
                    self._hand_out(batches)
                    yield outcomes
            for hand in self._late():
                yield self._given_up(hand, batches)

    def _hand_out(self, batches: Batches) -> None:
        """Give every worker a batch, and a second one that it can begin without waiting for us.

        A batch that needs all memory is handed out only when no worker is at work.
        """
        while len(self._hands) < min(self._count, self._busy() + batches.waiting):
            self._hands.append(_Hand(self._job, self._threshold))
        # One batch per worker until the time of a batch is known.
        for most in range(_AT_ONCE if batches.seconds_left else 1):
            for hand in self._hands:
                if not hand.was_ready or len(hand.asked) > most:
                    continue
                if self._one_has_all_memory():
                    return
                batch, memory = batches.take(), self._share
                if batch is None and not self._busy():
                    batch, memory = batches.take_alone(), self._whole
                if batch is None:
                    return
                hand.give(batch, memory)

    def _one_has_all_memory(self) -> bool:
        return any(hand.asked and hand.memory > self._share for hand in self._hands)

    def _busy(self) -> int:
        """The number of workers that have batches."""
        return sum(bool(hand.asked) for hand in self._hands)

    def _late(self) -> list[_Hand]:
        """Return the workers that are silent and have been at one file for too long."""
        late = [hand for hand in self._hands if hand.at >= 0 and hand.quiet > self._timeout]
        heard = ready(late, 0)
        return [hand for hand in late if hand not in heard]

    def _given_up(self, hand: _Hand, batches: Batches) -> tuple[Batch, list[Outcome]]:
        """End a worker that is at a file for too long; return that file's batch and its outcome."""
        hand.kill()
        [batch] = self._without(hand, batches)
        alone = batches.given_up(batch, hand.at)
        error = ReadFailed(
            f"was given up after {self._timeout:g} seconds without progress (`--file-timeout`)",
            path=os.path.join(self._job.source, alone.units[0].source),
            remedy="the disk or the network does not answer, or it takes longer: convert it alone "
            "to see more; nothing was written for it",
        )
        return alone, [Outcome(FAILED, error=encoded(error))]

    def _ready(self, batches: Batches) -> list[_Hand]:
        """Wait until workers answer, end, or are late; return those that answered or ended."""
        tick = min(_TICK, self._timeout / 4)
        while not (waiting := ready(self._hands, tick)) and not self._late():
            if batches.within is not None:
                batches.within(0, 0)
        return waiting

    def _processed(
        self, line: bytes | None, hand: _Hand, batches: Batches
    ) -> tuple[Batch, list[Outcome]] | None:
        """Process a worker's line (None: it ended); return a batch with outcomes, or None."""
        if line is None:
            return self._buried(hand, batches)
        answer = _parsed(line)
        self._failed_starts = 0
        hand.note(answer)
        if "within" in answer and batches.within is not None:
            batches.within(*answer["within"])
        if "outcomes" not in answer:
            return None
        batch = hand.asked.popleft()
        outcomes = Outcomes(starmap(Outcome, answer["outcomes"]), answer["text"])
        batches.done(batch, answer["seconds"])
        if hand.memory == self._whole:
            return batch, outcomes
        return batches.without_too_large(batch, outcomes)

    def _buried(self, hand: _Hand, batches: Batches) -> tuple[Batch, list[Outcome]] | None:
        """Remove a worker that has ended; return the outcome of its batch if that is to blame."""
        at_work = self._without(hand, batches)
        if not hand.was_ready:
            self._failed_starts += 1
            if self._failed_starts >= _FAILED_STARTS:
                raise RaconvertError("worker processes cannot be started", got=hand.how)
        if not at_work:
            return None
        [batch] = at_work
        since = batches.since(batch)
        unit = batches.lost(batch)
        if unit is None:
            return None
        batches.done(batch, None)
        error = death(os.path.join(self._job.source, unit.source), hand.how)
        return batch, [ended_by(unit, self._job, since, error)]

    def _without(self, hand: _Hand, batches: Batches) -> list[Batch]:
        """Remove a worker; return the batch that it was at, if any, and queue the waiting one."""
        self._hands.remove(hand)
        end([hand])
        self._clear(hand)
        asked = [*hand.asked]
        for batch in asked[1:]:
            batches.handed_back(batch)
        return asked[:1]

    def _clear(self, hand: _Hand) -> None:
        """Remove the temporary files that a worker has left."""
        units = hand.asked[0].units if hand.asked else ()
        root = self._job.target
        for folder in {os.path.dirname(os.path.join(root, unit.target)) for unit in units}:
            clear(folder, hand.pid)


class _Hand(Worker):
    """A worker process, seen from its driver."""

    def __init__(self, job: Job, threshold: tuple[int, int, int]) -> None:
        self.memory = 0  # bytes of memory that the worker may use
        self.was_ready = False
        self.at = -1  # index of the current unit in its batch, if the job is timed; -1: none
        super().__init__(serve, job, threshold, spawn=not can_fork())

    def give(self, batch: Batch, memory: int) -> None:
        """Hand a batch to the process; if it has died, `receive` returns no lines."""
        self.asked.append(batch)
        self.memory = memory
        number, units, deaths, since = batch
        self.send_text(f"[{number},{memory},{deaths},{since!r},{text_of(units)}]")

    def note(self, answer: dict[str, Any]) -> None:
        """Record that the worker is ready, and its current unit."""
        self.was_ready = True
        if "outcomes" in answer:
            self.at = -1
        self.at = answer.get("at", self.at)


def _parsed(line: bytes) -> dict[str, Any]:
    """Parse an answer of a worker; if it has outcomes, `text` is their JSON for the journal."""
    answer: dict[str, Any] = json.loads(line)
    if "outcomes" in answer:
        answer["text"] = line.decode().partition(BEFORE)[2][:-1]
    return answer
