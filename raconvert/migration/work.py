"""Carry out a batch: convert its units, sync once, return the outcomes."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from hashlib import sha256
from math import inf
from stat import S_IMODE, S_ISDIR
from time import time

from raconvert import registry
from raconvert.conversion.batch import convert_stack
from raconvert.conversion.converter import Converter, Folders
from raconvert.conversion.each import arrays_of_one, holds_several
from raconvert.conversion.options import Settings
from raconvert.conversion.outputs import last_change, prepare_target
from raconvert.conversion.read import open_spec
from raconvert.conversion.report import Conversion, Report, few
from raconvert.conversion.write import write_bundle
from raconvert.errors import RaconvertError, TargetExists, name_flags
from raconvert.files.paths import (
    CREATE_FLAGS,
    PERMISSIONS,
    exchanged,
    exists,
    make_folders,
    mark_temporaries,
    marked_temporaries,
    rename_by_way_of,
    rename_new_folder,
    temporary,
    walk,
    write_failed,
)
from raconvert.files.source import open_regular
from raconvert.files.target import sync_files_below
from raconvert.migration import killpoints
from raconvert.migration.checksums import text_of
from raconvert.migration.records import DONE, FAILED, LOST, PLANNED, SKIPPED, Outcome, target_of
from raconvert.workers.interrupts import raise_interruption
from raconvert.workers.worker import encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from raconvert.catalogue import Row
    from raconvert.conversion.converter import Listed
    from raconvert.conversion.read import Opened
    from raconvert.migration.records import Batch, Job, Unit


# A container as a folder of arrays: a file for each array, a folder for each group ----------------
# The folder appears only when it is complete. A container of one array becomes a file, unless a
# folder is asked for.


STACK_NAMES = "images", "labels"


def converted(source: str, target: str, folder: str, settings: Settings) -> tuple[Report, str]:
    """Convert a container to a file `target`, or to a `folder`; return the report and that path.

    It becomes a folder if it has several arrays, or if `target` is the folder itself. Raises
    `TargetExists` for a folder with files that are not written now, and if an earlier run has made
    a file of a container that becomes a folder now, or the other way round.
    """
    row = registry.target_row(target, settings.to)
    report = Report([source])
    kept = _not_replaced(source, (target, folder), settings)
    if kept:
        report.skipped.append(kept)
        return report, kept[0]
    with open_spec(source, settings) as opened:
        always = folder == target and bool(opened.bundle.arrays)
        if always or holds_several(opened.bundle, row, settings):
            if folder != target:
                _refuse_other(target, folder)
            _write_folder(opened, source, folder, row, settings, report)
            return report, folder
        _refuse_other(folder, target)
        if prepare_target(target, row, [source], settings, report):
            run = Conversion(target, row, settings, report, opened=opened)
            write_bundle(run, opened.bundle)
        return report, target


def _not_replaced(
    source: str, targets: tuple[str, str], settings: Settings
) -> tuple[str, str] | None:
    """The first existing path that may not be replaced, and the reason; None if there is none."""
    for path in filter(os.path.lexists, targets):
        if settings.skip_existing:
            return path, "exists already"
        if settings.update and os.path.getmtime(path) >= last_change(source):
            return path, "is not older than its source"
    return None


def _refuse_other(other: str, target: str) -> None:
    """Raise `TargetExists` if `other` exists: one container would have a file and a folder."""
    if os.path.isfile(other) or (os.path.isdir(other) and os.listdir(other)):
        raise TargetExists(
            f"would be left beside '{target}', which the container becomes now",
            path=other,
            remedy="remove it if an earlier run made it",
        )


def labelled(sources: list[str], folder: str, settings: Settings) -> Report:
    """Convert files in folders of their classes to a folder with a stack and its labels.

    A format of many arrays gets one file: the images, their labels and the classes.
    """
    row = registry.target_row(folder, settings.to)
    if row.many:
        return convert_stack(sources, folder, settings.replace(labels=STACK_NAMES[1]))
    report = Report(few(sources))
    report.source_count = len(sources)
    latest = max(sources, key=last_change) if settings.update else sources[0]
    kept = _not_replaced(latest, (folder, folder), settings)
    if kept:
        report.skipped.append(kept)
        return report

    def write(temp: str, inner: Settings) -> Report:
        stack, labels = (os.path.join(temp, name + row.suffixes[0]) for name in STACK_NAMES)
        if not inner.dry_run:
            inner = inner.replace(labels=labels)
        return convert_stack(sources, stack, inner)

    return _in_new_folder(folder, settings, write)


def _write_folder(
    opened: Opened, source: str, folder: str, row: Row, settings: Settings, report: Report
) -> None:
    def write(temp: str, inner: Settings) -> Report:
        arrays_of_one(opened, temp, source, row, inner, report, {})
        return report

    _in_new_folder(folder, settings, write)


def _in_new_folder(
    folder: str, settings: Settings, write: Callable[[str, Settings], Report]
) -> Report:
    """Have `write` fill a temporary folder, which then gets its name; return its report.

    `write` gets the path of the folder, and settings that fit an empty one.
    """
    replaces = settings.overwrite or settings.update
    _check(folder, replaces=replaces)
    if settings.dry_run:
        return write(folder, settings.replace(overwrite=True))
    temp = temporary(folder)
    os.mkdir(temp)
    try:
        mode = S_IMODE(os.stat(temp).st_mode) & PERMISSIONS  # the mode that the umask leaves
        os.chmod(temp, 0o700)
        report = write(temp, settings.replace(overwrite=False, update=False, skip_existing=False))
        os.chmod(temp, mode)
        _appear(temp, folder, replaces=replaces)
    except RaconvertError as error:
        if error.path is not None:
            error.path = error.path.replace(temp, folder, 1)
        raise
    finally:  # removes the folder that was replaced, or an unfinished one
        shutil.rmtree(temp, ignore_errors=True)
    report.written = [path.replace(temp, folder, 1) for path in report.written]
    return report


def _check(folder: str, *, replaces: bool) -> None:
    """Raise `TargetExists` unless a path is free, an empty folder, or one that may be replaced."""
    if not os.path.lexists(folder):
        return
    if not os.path.isdir(folder) or os.path.islink(folder):
        raise TargetExists("exists already, and is not a folder as the result is", path=folder)
    if os.listdir(folder) and not replaces:
        raise exists(folder)


def _appear(temp: str, folder: str, *, replaces: bool) -> None:
    """Give a finished folder its name; raise `TargetExists` if one it replaces has other files."""
    try:
        rename_new_folder(temp, folder)
    except FileExistsError as error:
        if not replaces:
            raise exists(folder, "appeared while it was written") from error
        others = _files(folder) - _files(temp)
        if others:
            raise TargetExists(
                f"holds other files than its container has, such as '{min(others)}', and is left "
                "as it was",
                path=folder,
                remedy="move that elsewhere, or remove the folder if an earlier run made it",
            ) from error
        if not exchanged(temp, folder):
            aside = f"{temp.removesuffix('.tmp')}-old.tmp"
            rename_by_way_of(temp, folder, aside)
            shutil.rmtree(aside, ignore_errors=True)


def _files(folder: str) -> set[str]:
    return {
        os.path.relpath(os.path.join(above, name), folder)
        for above, _, names in walk(folder)
        for name in names
    }


_BLOCK = 1 << 20  # bytes read at a time for a digest
_LARGE = 16 << 20  # bytes; progress within larger sources is reported


class Worker:
    """Converts the batches of one job; the same in this process, a pool or a cluster."""

    def __init__(
        self,
        job: Job,
        within: Callable[[int, int], object] | None = None,
        at: Callable[[int], object] = bool,
    ) -> None:
        self._job = job
        # Called with the bytes done and in all of a large file, or of any file of a timed job.
        self._within = within
        self._at = at  # called with the index of each unit before it, and with -1 after the last
        self._made_folders: set[str] = set()  # those that exist by now
        self._planning = bool(job.options.get("dry_run"))
        self._to_url = "://" in job.target
        self._local = not self._to_url and "://" not in job.source
        registry.target_row("", job.to)  # raises for an unknown format
        settings = Settings(**job.options, to=job.to, sync=False)
        self._converter = Converter(settings, learns=self._local)
        self._above: tuple[str, str] = ("", "")  # paths of the open folders below the roots
        self._open: Folders | None = None
        self._listed: Listed | None = None

    def carry_out(self, batch: Batch) -> list[Outcome]:
        """Convert the units of a batch; return an outcome for each, in order.

        A failure of a unit is its outcome, not raised. All that is DONE is on the disk then.
        """
        before = mark_temporaries(self._job.mark)
        named = name_flags(self._job.flags)
        try:
            return self._carried_out(batch)
        finally:
            self._leave()
            mark_temporaries(before)
            name_flags(named)

    def _carried_out(self, batch: Batch) -> list[Outcome]:
        killpoints.reached("worker-begun", batch.number)
        outcomes = []
        for number, unit in enumerate(batch.units):
            self._at(number)
            outcomes.append(self._outcome(unit, batch))
        self._at(-1)
        if self._job.certified:
            outcomes = [
                self._with_source(*pair) for pair in zip(batch.units, outcomes, strict=True)
            ]
        killpoints.reached("worker-written", batch.number)
        if not (self._planning or self._to_url) and any(
            outcome.state == DONE for outcome in outcomes
        ):
            outcomes = self._synced(batch.units, outcomes)
        killpoints.reached("worker-synced", batch.number)
        return outcomes

    def _synced(self, units: list[Unit], outcomes: list[Outcome]) -> list[Outcome]:
        """Wait for the disk; if that fails, all DONE units have failed, with the mark LOST."""
        done = [pair for pair in zip(units, outcomes, strict=True) if pair[1].state == DONE]
        try:
            paths = [path for pair in done for path in _paths_of(*pair)]
            sync_files_below(self._job.target, paths)
        except OSError as error:
            lost = {**encoded(write_failed(self._job.target, error)), LOST: True}
            return [
                Outcome(FAILED, error=lost) if outcome.state == DONE else outcome
                for outcome in outcomes
            ]
        return outcomes

    def _outcome(self, unit: Unit, batch: Batch) -> Outcome:
        killpoints.reading(unit.source)
        if self._local and not self._planning and not (unit.members or unit.replaces):
            outcome = None if unit.folder else self._by_shortcut(unit)
            if outcome is not None:
                return outcome
        return self._usual(unit, _ours_since(unit, batch, self._job))

    def _by_shortcut(self, unit: Unit) -> Outcome | None:
        """Convert a file as an earlier one that begins alike; None if the converter cannot."""
        source, _, name = unit.source.rpartition("/")
        target, _, new = unit.target.rpartition("/")
        folders = self._open
        if folders is None or self._above != (source, target):
            folders = self._enter(source, target)
        made = self._converter.tried(folders, name, new)
        if made is None:
            return None
        content, mtime, _ = made
        return Outcome(DONE, len(content), mtime, sha256(content).hexdigest())

    def _enter(self, source: str, target: str) -> Folders:
        """Open the folders of a source and of a target, which is made, until others are entered."""
        self._leave()
        self._above = source, target
        folder = os.path.join(self._job.target, target)
        with suppress(OSError):  # the usual way reports it
            make_folders(folder)
        self._open = folders = Folders(os.path.join(self._job.source, source), folder)
        with suppress(OSError):  # without the list, each file is asked for its sidecar
            self._listed = folders.list_sidecars(self._listed)
        return folders

    def _leave(self) -> None:
        """Close the open folders."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _usual(self, unit: Unit, since: float) -> Outcome:
        """Convert a unit by the usual way."""
        target = os.path.join(self._job.target, unit.target)
        try:
            try:
                return self._converted(unit, target, ours=self._is_ours(unit, since))
            except TargetExists:
                if not self._is_ours(unit, since):
                    raise
            # Just now, a worker that was believed to be dead has finished the same unit.
            return self._converted(unit, target, ours=True)
        except RaconvertError as error:
            return Outcome(FAILED, error=encoded(error))
        except OSError as error:
            return Outcome(FAILED, error=encoded(write_failed(target, error)))
        except MemoryError:
            failure = RaconvertError("needs more memory than there is", path=unit.source)
            return Outcome(FAILED, error=encoded(failure))
        except Exception as error:  # noqa: BLE001 - a mistake of ours, or of a plugin, stops no tree
            raise_interruption(error)
            what = f"failed in a way that is a mistake in the program: {error!r}"
            return Outcome(FAILED, error=encoded(RaconvertError(what, path=unit.source)))

    def _with_source(self, unit: Unit, outcome: Outcome) -> Outcome:
        """Return the outcome with the digest of the source, unless that has changed since."""
        source = os.path.join(self._job.source, unit.source)
        if outcome.state != DONE or "://" in source:
            return outcome
        try:
            if unit.members:
                files = [
                    (name, *_digest_of_file(os.path.join(source, name), self._goes_on))
                    for name in unit.members
                ]
                digest = _digest_of_lines(files)
            elif os.path.isdir(source):
                files = _files_in(source)
                digest = _digest_of_lines(files)
            else:
                files, digest = [], _digest_of_file(source, self._goes_on)[1]
            paths = [os.path.join(source, name) for name, _, _ in files] or [source]
            return outcome._replace(source=digest) if _is_as_planned(unit, paths) else outcome
        except (OSError, RaconvertError):  # no digest of a source that is gone or unreadable by now
            return outcome

    def _is_ours(self, unit: Unit, since: float) -> bool:
        """True if the target of a unit was made after the time `since`."""
        if self._to_url:  # the upload compares an existing object with the new bytes
            return since < inf
        return _is_made(unit, self._job.target, since)

    def _report(self, unit: Unit, target: str, *, ours: bool) -> tuple[Report, str]:
        """Convert a unit; return the report and the path of its result."""
        job = self._job
        source = os.path.join(job.source, unit.source)
        folder = os.path.dirname(target)
        if folder not in self._made_folders and not self._planning:
            make_folders(folder)
            self._made_folders.add(folder)
        options: dict[str, Any] = dict(job.options, to=job.to, sync=False)
        if self._within is not None and (unit.size >= _LARGE or job.timed):
            options["progress"] = self._within
        members = [os.path.join(source, name) for name in unit.members]
        if unit.replaces == 1 or ours:
            options.update(overwrite=True, update=False, skip_existing=False)
        if unit.folder and unit.members:
            return labelled(members, target, Settings(**options)), target
        if unit.folder:
            container_folder = os.path.join(job.target, unit.folder)
            return converted(source, target, container_folder, Settings(**options))
        if members:
            return convert_stack(members, target, Settings(**options)), target
        return self._converter.ordinary(source, target, settings=Settings(**options)), target

    def _converted(self, unit: Unit, target: str, *, ours: bool) -> Outcome:
        if self._to_url and not self._planning:
            from raconvert.migration import remote

            return remote.converted(self._job, unit, self._made_here, ours=ours)
        report, result = self._report(unit, target, ours=ours)
        if report.planned:
            return Outcome(PLANNED, said=_remarks(report))
        if report.skipped and not report.written:
            return Outcome(SKIPPED, said={"notes": [report.skipped[0][1]]})
        status = os.stat(result)
        below = unit.folder if result != target else unit.target
        if S_ISDIR(status.st_mode):
            files = _files_in(result)
            size, digest = _size_of(files), _digest_of_lines(files)
            files = [(f"{below}/{path}", nbytes, one) for path, nbytes, one in files]
        else:
            size, digest = _digest_of_file(result, self._goes_on)
            files = self._with_partners(report)
        other = below if below != unit.target else ""
        return Outcome(
            DONE, size, status.st_mtime_ns, digest, said=_remarks(report), target=other, files=files
        )

    def _made_here(self, job: Job, unit: Unit) -> Outcome:
        """Convert a unit into another tree, one on this machine."""
        target = os.path.join(job.target, unit.target)
        return Worker(job, self._within)._converted(unit, target, ours=False)

    def _goes_on(self) -> None:
        """Report progress to the driver of a timed job, without a number of bytes."""
        if self._within is not None and self._job.timed:
            self._within(0, 0)

    def _with_partners(self, report: Report) -> list[tuple[str, int, str]]:
        """List the files of a target that has partner files; empty for a single file."""
        if len(report.written) < 2:
            return []
        root = self._job.target
        return [
            (os.path.relpath(path, root).replace(os.sep, "/"), *_digest_of_file(path))
            for path in report.written
        ]


def _is_as_planned(unit: Unit, paths: list[str]) -> bool:
    """True if the files of a unit still have the size in all, and the last change, of the plan."""
    statuses = [os.stat(path) for path in paths]
    size = sum(status.st_size for status in statuses)
    return (size, max(status.st_mtime_ns for status in statuses)) == (unit.size, unit.mtime)


def _paths_of(unit: Unit, outcome: Outcome) -> list[str]:
    """Return the paths of a unit's result below the root: a file with its partners, or a folder."""
    target = target_of(unit, outcome)
    return [target, *(path for path, _, _ in outcome.files if not path.startswith(f"{target}/"))]


def _ours_since(unit: Unit, batch: Batch, job: Job) -> float:
    """Return the time since which a target can only be ours, left by a dead run or worker.

    Infinity if nobody has tried the unit before: an existing target is not ours.
    """
    if unit.replaces == 2:
        return job.since
    return batch.since or inf


def ended_by(unit: Unit, job: Job, since: float, error: RaconvertError) -> Outcome:
    """The outcome of a unit whose workers ended: `error`, unless one of them made its target.

    A target that appeared after `since` is complete, but not recorded: the unit is marked LOST, and
    the next run looks at it again.
    """
    if "://" not in job.target and _is_made(unit, job.target, since):
        error = RaconvertError(
            "was converted, but its workers ended before that was recorded",
            path=os.path.join(job.source, unit.source),
            remedy="run the same command again: the file is converted once more",
        )
        return Outcome(FAILED, error={**encoded(error), LOST: True})
    return Outcome(FAILED, error=encoded(error))


def _is_made(unit: Unit, root: str, since: float) -> bool:
    """True if the target of a unit, a file or a folder, was made after a time."""
    targets = {unit.target, unit.folder or unit.target}
    return any(_made_since(os.path.join(root, target), since) for target in targets)


def _made_since(target: str, since: float) -> bool:
    try:
        return since < inf and os.lstat(target).st_ctime >= since
    except OSError:
        return False


def _remarks(report: Report) -> dict[str, list[Any]] | None:
    """The notes of a report and the changes that it names, as plain values; None if it has none."""
    remarks: dict[str, list[Any]] = {
        "notes": list(report.notes),
        "equivalent": [list(fit) for fit in report.equivalent],
        "allowed": [list(fit) for fit in report.allowed],
    }
    return {name: items for name, items in remarks.items() if items} or None


def digest_of(path: str) -> tuple[int, str]:
    """The size of a target in bytes and its SHA-256.

    The digest of a folder is that of the lines that `sha256sum` prints for the files in it, in the
    order of their names.
    """
    if not os.path.isdir(path):
        return _digest_of_file(path)
    files = _files_in(path)
    return _size_of(files), _digest_of_lines(files)


def _digest_of_file(path: str, progress: Callable[[], object] = bool) -> tuple[int, str]:
    digest, total = sha256(), 0
    with os.fdopen(open_regular(path), "rb", buffering=0) as file:
        while piece := file.read(_BLOCK):
            digest.update(piece)
            total += len(piece)
            progress()
    return total, digest.hexdigest()


def _files_in(folder: str) -> list[tuple[str, int, str]]:
    """Path below the folder, size and SHA-256 of each file in it, in the order of their names."""
    files = []
    for above, _, names in walk(folder):
        for name in names:
            path = os.path.join(above, name)
            below = os.path.relpath(path, folder).replace(os.sep, "/")
            files.append((below, *_digest_of_file(path)))
    return sorted(files)


def _size_of(files: list[tuple[str, int, str]]) -> int:
    return sum(size for _, size, _ in files)


def _digest_of_lines(files: list[tuple[str, int, str]]) -> str:
    return sha256(text_of({path: digest for path, _, digest in files})).hexdigest()


# The clock of a destination: a file server has its own, and gives files its times ----------------


_STEP = 0.02  # seconds that times of files may lag behind, as kernels count in ticks


def clock_of(folder: str) -> Callable[[], float]:
    """Return the clock of the file system of a folder, in seconds since 1970.

    It is never ahead of the times that files get there: a file made after a reading is not older.
    """
    path = temporary(os.path.join(folder, "clock"))
    try:
        descriptor = os.open(path, CREATE_FLAGS, 0o600)
    except OSError:  # writing into the folder reports the error
        return time
    try:
        skew = os.fstat(descriptor).st_ctime - time() - _STEP
    finally:
        os.close(descriptor)
        os.unlink(path)
    return lambda: time() + skew


# Temporary files of processes that died, on whatever machine: found by a mark in their names -----
# The mark belongs to a journal, and only one run at a time has that open: files with the mark are
# left over when a run begins, or when all its batches are done.


def new_mark() -> str:
    """A mark that no other journal has."""
    return os.urandom(4).hex()


def clear(target: str, mark: str, units: Iterable[Unit]) -> None:
    """Remove the temporary files of dead processes in a tree, beside the targets of `units`."""
    if "://" in target:
        from raconvert.migration.remote import give_up_uploads

        give_up_uploads(target, [unit.target for unit in units])
        return
    folders = {os.path.dirname(os.path.join(target, unit.target)) for unit in units}
    for folder in {target, *folders} if mark else ():
        for path in marked_temporaries(folder, mark):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    os.unlink(path)
