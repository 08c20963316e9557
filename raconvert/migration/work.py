"""What a worker does with a batch: convert its units, wait for the disk once, say what became."""

from __future__ import annotations

import os
from math import inf
from stat import S_ISDIR

from raconvert.conversion.batch import convert_stack
from raconvert.conversion.lane import Expected
from raconvert.conversion.options import Settings
from raconvert.conversion.pipeline import convert_file
from raconvert.errors import RaconvertError, TargetExists, name_flags
from raconvert.files.folders import walk
from raconvert.files.places import make_folders, mark_temporaries, write_failed
from raconvert.files.processes import encoded
from raconvert.files.source import open_regular
from raconvert.files.syncing import sync_files_below
from raconvert.migration import killpoints
from raconvert.migration.containers import converted, labelled
from raconvert.migration.fast import Fast
from raconvert.migration.records import DONE, FAILED, LOST, PLANNED, SKIPPED, Outcome, target_of
from raconvert.migration.sums import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.conversion.report import Report
    from raconvert.migration.records import Batch, Job, Unit

_BLOCK = 1 << 20
_LARGE = 16 << 20  # bytes of a source, of whose progress is told


class Worker:
    """Carries out batches of one job; the same in this process, a pool or a cluster."""

    def __init__(
        self,
        job: Job,
        within: Callable[[int, int], object] | None = None,
        at: Callable[[int], object] = bool,
    ) -> None:
        self._job = job
        self._within = within  # told of the bytes of a large file, or of any if the job is timed
        self._at = at  # told of the unit that is next; of -1 when all are done
        self._folders: set[str] = set()  # that are there
        self._planning = bool(job.options.get("dry_run"))
        self._fast = Fast(job)
        self._away = "://" in job.target  # at a URL
        self._local = not self._away and "://" not in job.source

    def carry_out(self, batch: Batch) -> list[Outcome]:
        """Convert the units of a batch; an outcome for each, in order. What fails raises nothing.

        When this returns, everything that is DONE is on the disk.
        """
        before = mark_temporaries(self._job.mark)
        named = name_flags(self._job.flags)
        try:
            return self._carried_out(batch)
        finally:
            self._fast.leave()
            mark_temporaries(before)
            name_flags(named)

    def _carried_out(self, batch: Batch) -> list[Outcome]:
        killpoints.reached("worker-begun", batch.number)
        outcomes = []
        for number, unit in enumerate(batch.units):
            self._at(number)
            outcomes.append(self._one(unit, batch))
        self._at(-1)
        if self._job.certified:
            outcomes = [
                self._with_source(*pair) for pair in zip(batch.units, outcomes, strict=True)
            ]
        killpoints.reached("worker-written", batch.number)
        if not (self._planning or self._away) and any(
            outcome.state == DONE for outcome in outcomes
        ):
            outcomes = self._synced(batch.units, outcomes)
        killpoints.reached("worker-synced", batch.number)
        return outcomes

    def _synced(self, units: list[Unit], outcomes: list[Outcome]) -> list[Outcome]:
        """Wait for the disk; what it may have lost has failed."""
        done = [pair for pair in zip(units, outcomes, strict=True) if pair[1].state == DONE]
        try:
            sync_files_below(
                self._job.target, [path for pair in done for path in _places_of(*pair)]
            )
        except OSError as error:
            lost = {**encoded(write_failed(self._job.target, error)), LOST: True}
            return [Outcome(FAILED, error=lost) if o.state == DONE else o for o in outcomes]
        return outcomes

    def _one(self, unit: Unit, batch: Batch) -> Outcome:
        killpoints.reading(unit.source)
        found = None
        if self._local and not self._planning:
            found = self._fast.tried(unit)
            if isinstance(found, Outcome):
                return found
        outcome = self._usual(unit, _ours_since(unit, batch, self._job))
        if isinstance(found, Expected):
            self._fast.learn(found, outcome)
        return outcome

    def _usual(self, unit: Unit, since: float) -> Outcome:
        """Convert a unit by the usual way."""
        target = os.path.join(self._job.target, unit.target)
        try:
            try:
                return self._converted(unit, target, ours=self._is_ours(unit, since))
            except TargetExists:
                if not self._is_ours(unit, since):
                    raise
            # A worker that was given up has finished it at this moment.
            return self._converted(unit, target, ours=True)
        except RaconvertError as error:
            return Outcome(FAILED, error=encoded(error))
        except OSError as error:
            return Outcome(FAILED, error=encoded(write_failed(target, error)))
        except MemoryError:
            what = RaconvertError("needs more memory than there is", path=unit.source)
            return Outcome(FAILED, error=encoded(what))
        except Exception as error:  # noqa: BLE001 - a mistake of ours, or of a plugin, stops no tree
            what = RaconvertError(f"failed in a way that is a mistake in the program: {error!r}",
                                  path=unit.source)  # fmt: skip
            return Outcome(FAILED, error=encoded(what))

    def _with_source(self, unit: Unit, outcome: Outcome) -> Outcome:
        """The outcome with the digest of the source, if that is still what it was."""
        place = os.path.join(self._job.source, unit.source)
        if outcome.state != DONE or "://" in place:
            return outcome
        try:
            if not unit.members and not os.path.isdir(place):
                digest = _digest_of_file(place, self._goes_on)[1]
                status = os.stat(place)
                same = (status.st_size, status.st_mtime_ns) == (unit.size, unit.mtime)
                return outcome._replace(source=digest) if same else outcome
            files = [
                (name, *_digest_of_file(os.path.join(place, name), self._goes_on))
                for name in unit.members
            ]
            return outcome._replace(source=_digest_of_lines(files or _files_in(place)))
        except (OSError, RaconvertError):  # gone, or odd, by now; what was made of it stays
            return outcome

    def _is_ours(self, unit: Unit, since: float) -> bool:
        """True if what is there in the place of a unit was made since then."""
        if self._away:  # what is there is compared with what would be sent
            return since < inf
        places = {unit.target, unit.folder or unit.target}
        return any(_made_since(os.path.join(self._job.target, place), since) for place in places)

    def _report(self, unit: Unit, target: str, *, ours: bool) -> tuple[Report, str]:
        """What the conversion of a unit reports, and where its result is."""
        job = self._job
        source = os.path.join(job.source, unit.source)
        folder = os.path.dirname(target)
        if folder not in self._folders and not self._planning:
            make_folders(folder)
            self._folders.add(folder)
        options: dict[str, Any] = dict(job.options, to=job.to, sync=False)
        if self._within is not None and (unit.size >= _LARGE or job.timed):
            options["progress"] = self._within
        words = [os.path.join(source, name) for name in unit.members]
        if unit.replaces == 1 or ours:
            options.update(overwrite=True, update=False, skip_existing=False)
        if unit.folder and unit.members:
            return labelled(words, target, Settings(**options)), target
        if unit.folder:
            inside = os.path.join(job.target, unit.folder)
            return converted(source, target, inside, Settings(**options))
        if words:
            return convert_stack(words, target, Settings(**options)), target
        return convert_file(source, target, Settings(**options)), target

    def _converted(self, unit: Unit, target: str, *, ours: bool) -> Outcome:
        if self._away and not self._planning:
            from raconvert.migration import remote

            return remote.converted(self._job, unit, self._made_here, ours=ours)
        report, place = self._report(unit, target, ours=ours)
        if report.planned:
            return Outcome(PLANNED, said=_said(report))
        if report.skipped and not report.written:
            return Outcome(SKIPPED, said={"notes": [report.skipped[0][1]]})
        status = os.stat(place)
        below = unit.folder if place != target else unit.target
        if S_ISDIR(status.st_mode):
            files = _files_in(place)
            size, digest = _size_of(files), _digest_of_lines(files)
            files = [(f"{below}/{path}", nbytes, one) for path, nbytes, one in files]
        else:
            size, digest = _digest_of_file(place, self._goes_on)
            files = self._with_partners(report)
        other = below if below != unit.target else ""
        return Outcome(
            DONE, size, status.st_mtime_ns, digest, said=_said(report), target=other, files=files
        )

    def _made_here(self, job: Job, unit: Unit) -> Outcome:
        """Convert a unit into another tree, which is one of this machine."""
        target = os.path.join(job.target, unit.target)
        return Worker(job, self._within)._converted(unit, target, ours=False)

    def _goes_on(self) -> None:
        """Let the driver know that there is progress, without bytes that count."""
        if self._within is not None and self._job.timed:
            self._within(0, 0)

    def _with_partners(self, report: Report) -> list[tuple[str, int, str]]:
        """All files of a target that is more than one file."""
        if len(report.written) < 2:
            return []
        root = self._job.target
        return [
            (os.path.relpath(path, root).replace(os.sep, "/"), *_digest_of_file(path))
            for path in report.written
        ]


def _places_of(unit: Unit, outcome: Outcome) -> list[str]:
    """What a unit became, below the root: a file with its partners, or a folder."""
    target = target_of(unit, outcome)
    return [target, *(path for path, _, _ in outcome.files if not path.startswith(f"{target}/"))]


def _ours_since(unit: Unit, batch: Batch, job: Job) -> float:
    """Since when a target that is there can only be ours, left by a run or a worker that died.

    Infinity where nobody was at it before: what is there is another's.
    """
    if unit.replaces == 2:
        return job.since
    return batch.since or inf


def _made_since(target: str, since: float) -> bool:
    try:
        return since < inf and os.lstat(target).st_ctime >= since
    except OSError:
        return False


def _said(report: Report) -> dict[str, list[Any]] | None:
    found: dict[str, list[Any]] = {
        "notes": list(report.notes),
        "equivalent": [list(fit) for fit in report.equivalent],
        "allowed": [list(fit) for fit in report.allowed],
    }
    return {name: items for name, items in found.items() if items} or None


def digest_of(path: str) -> tuple[int, str]:
    """The size of a target in bytes and its SHA-256.

    That of a folder is the one of the lines that `sha256sum` prints for the files in it, in the
    order of their names.
    """
    if not os.path.isdir(path):
        return _digest_of_file(path)
    files = _files_in(path)
    return _size_of(files), _digest_of_lines(files)


def _digest_of_file(path: str, progress: Callable[[], object] = bool) -> tuple[int, str]:
    from hashlib import sha256

    digest, total = sha256(), 0
    with os.fdopen(open_regular(path), "rb", buffering=0) as file:
        while piece := file.read(_BLOCK):
            digest.update(piece)
            total += len(piece)
            progress()
    return total, digest.hexdigest()


def _files_in(folder: str) -> list[tuple[str, int, str]]:
    """Path below the folder, size and SHA-256 of each file in it, in the order of their names."""
    found = []
    for place, _, names in walk(folder):
        for name in names:
            path = os.path.join(place, name)
            below = os.path.relpath(path, folder).replace(os.sep, "/")
            found.append((below, *_digest_of_file(path)))
    return sorted(found)


def _size_of(files: list[tuple[str, int, str]]) -> int:
    return sum(size for _, size, _ in files)


def _digest_of_lines(files: list[tuple[str, int, str]]) -> str:
    from hashlib import sha256

    return sha256(text_of({path: digest for path, _, digest in files})).hexdigest()
