"""How far a migration is: counts, rate and time left, told as events while it runs."""

from __future__ import annotations

from time import monotonic

from raconvert.declared import Record
from raconvert.files.processes import shown
from raconvert.migration.batches import guess
from raconvert.migration.records import FAILED, target_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from raconvert.migration.records import Batch, Outcome, Unit

# Kinds of events: the run begins; its plan is made; a batch is handed out; a file is done; some
# bytes of a large file are written; the run ends.
BEGIN, PLAN, BATCH, FILE, WITHIN, END = "begin", "plan", "batch", "file", "within", "end"


class Event(Record):
    """Something that happened in a migration, and how far it is by now."""

    kind: str
    file: str  # of FILE: the source; of BATCH: its first source; else empty
    done: int  # files with an outcome, those of earlier runs among them
    total: int  # files of the plan
    failed: int
    nbytes: int  # of the sources that are done with in this run
    nbytes_total: int  # of all that this run has to do
    seconds: float  # since the run began
    left: float | None  # seconds until it ends, as it seems; None: not known yet
    running: tuple[str, ...]  # the first source of every batch that is at work
    facts: dict[str, Any]  # more that belongs to the kind, plain values

    @property
    def rate(self) -> float:
        """Bytes of sources a second."""
        return self.nbytes / max(self.seconds, 1e-9)


class Progress:
    """Counts what a run has done, and tells a listener; without one it does nothing.

    A listener with an attribute `files` that is false is not told of single files.
    """

    def __init__(self, listener: Callable[[Event], object] | None) -> None:
        self._listener = listener
        self._files = getattr(listener, "files", True)
        self._begin = monotonic()
        self._since = self._begin  # of the first batch
        self._done = self._total = self._failed = 0
        self._nbytes = self._nbytes_total = 0
        self._work = self._work_done = 0.0
        self._running: dict[str, None] = {}  # first sources of batches, in order

    @property
    def within(self) -> Callable[[int, int], object] | None:
        """What an engine may call with the bytes done, and all bytes, of a large file at hand.

        With two zeros while it waits: then time goes on.
        """
        return None if self._listener is None else self._within

    def began(self, facts: dict[str, Any]) -> None:
        """Announce that the run begins."""
        self._tell(BEGIN, "", facts)

    def planned(
        self, units: Iterable[Unit], before: int, facts: Callable[[], dict[str, Any]]
    ) -> None:
        """Announce the plan: the units that are left to do, how many are done before."""
        if self._listener is None:
            return
        units = list(units)
        self._done += before
        self._total = self._done + len(units)
        self._nbytes_total = sum(unit.size for unit in units)
        self._work = sum(map(guess, units))
        self._since = monotonic()
        self._tell(PLAN, "", facts())

    def handed_out(self, batch: Batch) -> None:
        """Announce that a batch begins."""
        if self._listener is not None:
            first = batch.units[0].source
            self._running[first] = None
            self._tell(BATCH, first, {"number": batch.number, "files": len(batch.units)})

    def carried_out(self, batch: Batch, outcomes: list[Outcome]) -> None:
        """Announce what became of the units of a batch."""
        if self._listener is None:
            return
        self._running.pop(batch.units[0].source, None)
        for unit, outcome in zip(batch.units, outcomes, strict=True):
            self.file(unit, outcome, guess(unit))

    def file(self, unit: Unit, outcome: Outcome, work: float = 0.0) -> None:
        """Announce what became of a unit; refused ones have cost nothing."""
        if self._listener is None:
            return
        self._done += 1
        self._failed += outcome.state == FAILED
        if work:
            self._work_done += work
            self._nbytes += unit.size
        if self._files:
            self._tell(FILE, unit.source, {
                "target": target_of(unit, outcome), "state": outcome.state, "size": outcome.size,
                "digest": outcome.digest, "error": shown(outcome.error),
            })  # fmt: skip

    def ended(self, facts: Callable[[], dict[str, Any]]) -> None:
        """Announce that the run ends."""
        if self._listener is not None:
            self._tell(END, "", facts())

    def _within(self, done: int, total: int) -> None:
        self._tell(WITHIN, "", {"nbytes": done, "nbytes_total": total})

    def _tell(self, kind: str, file: str, facts: dict[str, Any]) -> None:
        if self._listener is None:
            return
        now = monotonic()
        work = self._work_done
        left = (self._work - work) * (now - self._since) / work if work else None
        self._listener(Event(
            kind, file, self._done, max(self._total, self._done), self._failed, self._nbytes,
            self._nbytes_total, now - self._begin, left, tuple(self._running), facts,
        ))  # fmt: skip
