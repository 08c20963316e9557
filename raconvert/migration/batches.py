"""Batches: a plan cut into pieces of about the same time, and what is done when a worker dies."""

from __future__ import annotations

import gc
import os
from collections import deque
from contextlib import contextmanager
from time import perf_counter, time

from raconvert import registry
from raconvert.migration.records import Batch, Units
from raconvert.migration.work import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from raconvert.migration.records import Job, Outcome, Unit


_FIRST = 16  # files in the first batches, whose time is unknown
_MOST = 4096  # files in a batch, so that a crash costs little
_LEAST = 0.02  # seconds of work in the smallest batch
_OPEN = 100e-6  # initial guess: seconds per file, whatever its size
_READ = 1e-9  # initial guess: seconds per byte
DEATHS = 2  # deaths of workers with the same batch before it is cut in two


class Batches:
    """The units that are left to do, handed out in batches of about `seconds` of work.

    `begin` is called with each batch before it is handed out. The time of a unit is guessed from
    its size; every batch that is done corrects the guess. `clock` is that of the destination
    (`work.clock_of`).
    """

    def __init__(
        self,
        units: Sequence[Unit],
        seconds: float,
        begin: Callable[[Batch], object],
        clock: Callable[[], float] = time,
    ) -> None:
        self._units = units
        self._next = 0
        self._seconds = seconds
        self._begin = begin
        self._clock = clock
        self._began: dict[int, float] = {}
        self._again: deque[Batch] = deque()
        self._number = 0
        self._pace = 0.0  # measured seconds per guessed second; 0: unknown
        self._guesses = [guess(unit) for unit in units]
        self._guessed: dict[int, float] = {}  # guessed seconds by number of batch
        self._uncut = sum(self._guesses)  # guessed seconds that are in no batch yet
        self._alone: deque[Batch] = deque()
        self.waiting: int = len(units)  # units without an outcome
        self.workers: int = 1
        # Called with the bytes done and the bytes in all of a large file that is being converted.
        self.within: Callable[[int, int], object] | None = None

    def take(self) -> Batch | None:
        """Hand out the next batch; None if no batch is ready."""
        if self._again:
            return self._again.popleft()
        units, guessed = self._cut()
        if not units:
            return None
        batch = self._made(units)
        self._guessed[batch.number] = guessed
        self._began[batch.number] = self._clock()
        self._begin(batch)
        return batch

    def since(self, batch: Batch) -> float:
        """Return the time when the units of a batch were handed out first."""
        return batch.since or self._began.get(batch.number, 0.0)

    @property
    def seconds_left(self) -> float:
        """The seconds that one process takes for the units in no batch yet; 0 if unknown."""
        return self._uncut * self._pace

    def alone(self, unit: Unit) -> None:
        """Queue a unit again that needs all memory, in a batch of its own for `take_alone`."""
        self.waiting += 1
        batch = self._made([unit])
        self._begin(batch)
        self._alone.append(batch)

    def take_alone(self) -> Batch | None:
        """The next batch that must have all memory; None if there is none at the moment."""
        return self._alone.popleft() if self._alone else None

    def without_too_large(
        self, batch: Batch, outcomes: list[Outcome]
    ) -> tuple[Batch, list[Outcome]] | None:
        """Queue units again, alone, that need more memory than the share of one worker.

        Returns the batch of the others and their outcomes; None if there are no others.
        """
        if not any(map(_is_too_large, outcomes)):
            return batch, outcomes
        pairs = list(zip(batch.units, outcomes, strict=True))
        kept = [pair for pair in pairs if not _is_too_large(pair[1])]
        for unit, outcome in pairs:
            if _is_too_large(outcome):
                self.alone(unit)
        rest = batch._replace(units=[unit for unit, _ in kept])
        return (rest, [outcome for _, outcome in kept]) if kept else None

    def done(self, batch: Batch, seconds: float | None) -> None:
        """Note that a batch was carried out; `seconds`, unless None, correct the guess."""
        self.waiting -= len(batch.units)
        self._began.pop(batch.number, None)
        guessed = self._guessed.pop(batch.number, 0.0) or sum(map(guess, batch.units))
        if seconds is None:
            return
        pace = max(seconds, 1e-6) / guessed
        self._pace = (self._pace + pace) / 2 if self._pace else pace

    def lost(self, batch: Batch) -> Unit | None:
        """Queue a batch again whose worker died; return the one unit that no worker survives."""
        batch = batch._replace(since=self.since(batch))
        deaths = batch.deaths + 1
        if deaths < DEATHS:
            self._again.append(batch._replace(deaths=deaths))
            return None
        if len(batch.units) == 1:
            return batch.units[0]
        # One half is harmless, perhaps: one more death is enough to cut it again. A single file is
        # blamed only after two deaths of its own.
        middle = len(batch.units) // 2
        for part in (batch.units[:middle], batch.units[middle:]):
            deaths = DEATHS - 1 if len(part) > 1 else 0
            self._again.append(self._made(part)._replace(deaths=deaths, since=batch.since))
        return None

    def given_up(self, batch: Batch, number: int) -> Batch:
        """Return a batch of the unit `number`, which was given up; queue the other units again."""
        since = self.since(batch)
        others = [*batch.units[:number], *batch.units[number + 1 :]]
        if others:
            self._again.append(self._made(others)._replace(since=since))
        self._began.pop(batch.number, None)
        alone = self._made([batch.units[number]])._replace(since=since)
        self.done(alone, None)
        return alone

    def handed_back(self, batch: Batch) -> None:
        """Queue a batch again that no worker has begun."""
        self._again.append(batch)

    def _made(self, units: list[Unit]) -> Batch:
        self._number += 1
        return Batch(self._number, Units(units))

    def _cut(self) -> tuple[list[Unit], float]:
        """The units of the next batch, and the guessed seconds that they take."""
        first = end = self._next
        left = aim = self._aim()
        while end < len(self._units) and end - first < _MOST:
            seconds = self._guesses[end]
            if seconds > left and end > first:
                break
            left -= seconds
            end += 1
        self._next = end
        self._uncut -= aim - left
        return list(self._units[first:end]), aim - left

    def _aim(self) -> float:
        """The guessed seconds of the next batch: less at the end, so that all end together."""
        if not self._pace:
            return _FIRST * _OPEN
        seconds = self._seconds
        if self.workers > 1:
            seconds = min(seconds, max(_LEAST, self.seconds_left / (2 * self.workers)))
        return seconds / self._pace


def _is_too_large(outcome: Outcome) -> bool:
    return outcome.error is not None and outcome.error["class"] == "TooLarge"


def guess(unit: Unit) -> float:
    """The seconds that a unit may take, from its size alone."""
    return _OPEN * max(1, len(unit.members)) + _READ * unit.size


# Garbage collection: made rare, since each pass over a plan of 80,000 files is slow --------------


_SELDOM = 20_000  # new objects before the collector looks at them; Python's default is 700


@contextmanager
def left_alone() -> Iterator[Callable[[], object]]:
    """A ``with`` block in which the collector leaves out all objects that exist at its start.

    It gives a function that adds those made since. A program that has frozen objects itself is not
    disturbed: nothing is done then.
    """
    if gc.get_freeze_count():
        yield bool
        return
    gc.freeze()
    try:
        yield gc.freeze
    finally:
        gc.unfreeze()


@contextmanager
def looked_at_seldom() -> Iterator[tuple[int, int, int]]:
    """A ``with`` block in which the collector runs seldom: its work makes objects, but no garbage.

    It gives the thresholds of the collector from before.
    """
    before = gc.get_threshold()
    if before[0]:  # 0 switches the collector off
        gc.set_threshold(max(before[0], _SELDOM), *before[1:])
    try:
        yield before
    finally:
        gc.set_threshold(*before)


# The engine without workers: batches are carried out one after the other in this process ---------


def carried_out_here(
    job: Job, batches: Batches, most: float | None, least: float = 0.0
) -> Iterator[tuple[Batch, list[Outcome]]]:
    """Yield each batch with the outcomes of its units, in their order.

    Ends before a batch that could crash this process, and when the work left takes more than `most`
    seconds by an estimate, which is trusted after `least` seconds of work.
    """
    worker = Worker(job, batches.within)
    safe = _Safe(job.options["from_"])
    spent = 0.0
    while most is None or spent < least or batches.seconds_left < most:
        batch = batches.take()
        if batch is None:
            return
        if not safe(batch):
            batches.handed_back(batch)
            return
        begin = perf_counter()
        outcomes = worker.carry_out(batch)
        seconds = perf_counter() - begin
        spent += seconds
        batches.done(batch, seconds)
        yield batch, outcomes


class _Safe:
    """Predicate: True if no unit of a batch can crash the process; cached for each suffix."""

    def __init__(self, from_: str | None) -> None:
        self._cached: dict[str, bool] = {}
        self._row = registry.by_name(from_) if from_ else None

    def __call__(self, batch: Batch) -> bool:
        return os.name == "nt" or all(
            self._is_safe(name) for unit in batch.units for name in unit.members or (unit.source,)
        )

    def _is_safe(self, name: str) -> bool:
        ending = os.path.splitext(name)[1].lower()
        safe = self._cached.get(ending)
        if safe is None:
            row = self._row or registry.by_suffix("x" + ending)
            safe = row is not None and not row.native and not row.many
            self._cached[ending] = safe
        return safe
