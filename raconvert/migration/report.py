"""Reports of a migration: progress events, failures by reason, a look before, and the result."""

from __future__ import annotations

import os
import re
from time import monotonic

from raconvert.conversion.isolated import Jobs, outcomes
from raconvert.declared import Record
from raconvert.errors import RaconvertError, WouldLose, worded
from raconvert.files.paths import write_failed
from raconvert.migration.batches import guess
from raconvert.migration.options import FLAGS
from raconvert.migration.records import DONE, FAILED, PLANNED, SKIPPED, Batch, Outcome, target_of
from raconvert.migration.work import Worker
from raconvert.workers.worker import decoded, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from raconvert.migration.records import Job, Unit


# Kinds of events: the run begins; its plan is made; a batch is handed out; a file is done; some
# bytes of a large file are written; the run ends.
BEGIN, PLAN, BATCH, FILE, WITHIN, END = "begin", "plan", "batch", "file", "within", "end"


class Event(Record):
    """Something that happened in a migration, and how far it is by now."""

    kind: str
    file: str  # for FILE the source, for BATCH its first source, else empty
    done: int  # files with an outcome, those of earlier runs among them
    total: int  # files of the plan
    failed: int
    nbytes: int  # bytes of the sources finished in this run
    nbytes_total: int  # bytes of all sources of this run
    seconds: float  # seconds since the run began
    left: float | None  # estimated seconds until the end; None: unknown
    running: tuple[str, ...]  # first source of each batch at work
    facts: dict[str, Any]  # further facts of the kind, plain values

    @property
    def rate(self) -> float:
        """Bytes of sources a second."""
        return self.nbytes / max(self.seconds, 1e-9)


class Progress:
    """Counts what a run has done, and tells a listener; without one it does nothing.

    A listener whose attribute `files` is false gets no events of single files.
    """

    def __init__(self, listener: Callable[[Event], object] | None) -> None:
        self._listener = listener
        self._files = getattr(listener, "files", True)
        self._begin = monotonic()
        self._since = self._begin  # time when the first batch began
        self._done = self._total = self._failed = 0
        self._nbytes = self._nbytes_total = 0
        self._work = self._work_done = 0.0
        self._running: dict[str, None] = {}  # first sources of batches, in order

    @property
    def within(self) -> Callable[[int, int], object] | None:
        """The callback for an engine with a large file: bytes done, bytes in all; None if unneeded.

        An engine that waits calls it with two zeros, so that a display can show the time.
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
        """Announce the outcome of a unit; `work` is 0 for one that was refused."""
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
        now, done = monotonic(), self._work_done
        left = (self._work - done) * (now - self._since) / done if done else None
        self._listener(Event(
            kind, file, self._done, max(self._total, self._done), self._failed, self._nbytes,
            self._nbytes_total, now - self._begin, left, tuple(self._running), facts,
        ))  # fmt: skip


# Failures of a migration: grouped by reason, and the flags that would allow the files -----------


_OWN = re.compile(r"'[^']*'|\d+")  # names and numbers, which differ between equal reasons
_ALLOWED = re.compile(r"\(allow with ([^)]+)\)$", re.MULTILINE)
_NEVER = re.compile(r"\(no option allows this\)$|\(refused by `--strict`\)$", re.MULTILINE)
_NAMED = re.compile(
    r"`--(?:overwrite|update|trust external|allow arrays|containers file|max-memory \w+)`"
)
_FLAG = re.compile(r"--[a-z-]+")
_KNOWN = frozenset(FLAGS.values())


class Alike(Record):
    """Files that failed for the same reason: the error of the first one, and all of them."""

    error: RaconvertError
    sources: list[str]


def alike(failed: Iterable[tuple[str, RaconvertError]]) -> list[Alike]:
    """Group failures by reason, in order; reasons that differ in names and numbers are the same."""
    by_reason: dict[tuple[str, ...], Alike] = {}
    for source, error in failed:
        by_reason.setdefault(_reason(error), Alike(error, [])).sources.append(source)
    return list(by_reason.values())


def _reason(error: RaconvertError) -> tuple[str, ...]:
    texts = (error.what, error.expected, error.got, error.remedy)
    return (error.kind, *(masked(str(text)) for text in texts))


def masked(text: str) -> str:
    """A remark with ``*`` for the names and numbers in it, to compare it with others."""
    return _OWN.sub("*", text)


def flags_of(error: RaconvertError) -> str:
    """The options that would allow a refused file, as `worded` takes them; empty if none would."""
    text = error.as_written("remedy") or ""
    if _NEVER.search(text):
        return ""
    options = _ALLOWED.findall(text) if isinstance(error, WouldLose) else []
    options = options or _NAMED.findall(text)[:1]
    text = " and ".join(dict.fromkeys(options))
    flags = _FLAG.findall(text)
    return text if flags and _KNOWN.issuperset(flags) else ""


def advice(failed: Iterable[tuple[str, RaconvertError]]) -> dict[str, int]:
    """Count the files that each set of flags would allow, judged by headers; most files first."""
    counts: dict[str, int] = {}
    for _, error in failed:
        if flags := flags_of(error):
            counts[flags] = counts.get(flags, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


# A look at the headers of some files before the work: if one is refused, so are many --------------
# One file of each size and suffix is planned, since those are from the same instrument, and at most
# one of `_SHARE` files. Refusals are reported with the plan; the files themselves are refused when
# it is their turn.


_MOST, _FEW = 256, 16  # limits of the number of files that are looked at
_SHARE = 64  # between them, one of so many files is looked at


def probed(job: Job, units: Sequence[Unit]) -> dict[str, Any]:
    """Plan a sample of the files; return its size (``looked_at``) and the refusals by reason."""
    chosen = _chosen(units)
    worker = Worker(job._replace(options={**job.options, "dry_run": True, "verify": False}))
    jobs = Jobs(lambda number: list(worker.carry_out(Batch(0, [chosen[number]]))[0]))
    paths = [os.path.join(job.source, unit.source) for unit in chosen]
    failed = []
    for unit, answer in zip(chosen, outcomes(paths, jobs, fewest=1), strict=True):
        if isinstance(answer, OSError):
            failed.append((unit.source, write_failed(unit.source, answer)))
        elif isinstance(answer, RaconvertError):  # reading the file crashed the process
            failed.append((unit.source, answer))
        elif (outcome := Outcome(*answer)).state == FAILED:
            failed.append((unit.source, decoded(outcome.error or {})))
    refusals = [
        {"error": str(error), "flags": worded(flags_of(error)), "files": len(sources),
         "first": sources[0]}
        for error, sources in alike(failed)
    ]  # fmt: skip
    return {"looked_at": len(chosen), "refusals": refusals}


def _chosen(units: Sequence[Unit]) -> list[Unit]:
    """Choose one unit of each suffix and size, up to a limit; stacks are left out."""
    most = min(_MOST, max(_FEW, len(units) // _SHARE))
    by_suffix: dict[tuple[str, int], Unit] = {}
    for unit in units:
        if len(by_suffix) == most:
            break
        if not unit.members:
            by_suffix.setdefault((os.path.splitext(unit.source)[1], unit.size), unit)
    return list(by_suffix.values())


# The result of a migration -----------------------------------------------------------------------


class Migration:
    """The result of `migrate`: what became of the files of a tree.

    `source` and `target` are the roots; `outcomes` are (unit, outcome) of this run, `before` those
    of earlier runs whose targets still exist unchanged; `left_out` are (path, reason) of files that
    hold no array; `notes` are remarks on the run as a whole; `seconds` is the time that it took.
    """

    def __init__(self, source: str, target: str, to: str) -> None:
        self.source: str = source
        self.target: str = target
        self.to: str = to
        self.outcomes: list[tuple[Unit, Outcome]] = []
        self.before: list[tuple[Unit, Outcome]] = []
        self.left_out: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self.options: dict[str, Any] = {}
        self.planned: bool = False
        self.seconds: float = 0.0

    def of_state(self, state: str) -> list[tuple[Unit, Outcome]]:
        """List the units that ended in a state in this run: DONE, FAILED, SKIPPED or PLANNED."""
        return [(unit, outcome) for unit, outcome in self.outcomes if outcome.state == state]

    @property
    def failed(self) -> list[tuple[str, RaconvertError]]:
        """The sources that were not converted, each with its error."""
        return [
            (unit.source, decoded(outcome.error or {})) for unit, outcome in self.of_state(FAILED)
        ]

    @property
    def done(self) -> int:
        """The number of finished units, those of earlier runs included."""
        return len(self.of_state(DONE)) + len(self.before)

    def __str__(self) -> str:
        counts = [
            (len(self.of_state(DONE)), "converted"),
            (len(self.of_state(PLANNED)), "would be converted"),
            (len(self.before), "done before"),
            (len(self.of_state(SKIPPED)), "kept"),
            (len(self.of_state(FAILED)), "failed"),
            (len(self.left_out), "left out"),
        ]
        parts = [f"{count} {word}" for count, word in counts if count]
        return f"{self.target}: {', '.join(parts) or 'nothing to do'}"

    def to_plain(self) -> dict[str, Any]:
        """The result as values of JSON."""
        return {
            "source": self.source,
            "target": self.target,
            "to": self.to,
            "done": self.done,
            "planned": len(self.of_state(PLANNED)),
            "failures": [
                {"path": unit.source, "error": shown(outcome.error)}
                for unit, outcome in self.of_state(FAILED)
            ],
            "advice": {worded(flags): count for flags, count in advice(self.failed).items()},
            "left_out": [{"path": path, "reason": reason} for path, reason in self.left_out],
            "notes": self.notes,
            "seconds": round(self.seconds, 3),
        }
