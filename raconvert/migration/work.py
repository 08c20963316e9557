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


# A container as a folder of arrays: a file for each, groups as folders. The folder appears whole
# A container of one array becomes a file, unless a folder is asked for.


STACK_NAMES = "images", "labels"


def converted(source: str, target: str, folder: str, settings: Settings) -> tuple[Report, str]:
    """Convert a container to a file `target`, or to a `folder`; return what was done, and which.

    A folder if there are several arrays in it, or if `target` is the folder itself. Raises
    `TargetExists` for a folder that holds what is not written now, and where an earlier run has
    made a file of what is a folder now, or the other way round.
    """
    row = registry.target_row(target, settings.to)
    report = Report([source])
    kept = _kept(source, (target, folder), settings)
    if kept:
        report.skipped.append(kept)
        return report, kept[0]
    with open_spec(source, settings) as opened:
        asked = folder == target and bool(opened.bundle.arrays)
        if asked or holds_several(opened.bundle, row, settings):
            if folder != target:
                _refuse_other(target, folder)
            _write_folder(opened, source, folder, row, settings, report)
            return report, folder
        _refuse_other(folder, target)
        if prepare_target(target, row, [source], settings, report):
            run = Conversion(target, row, settings, report, opened=opened)
            write_bundle(run, opened.bundle)
        return report, target


def _kept(source: str, places: tuple[str, str], settings: Settings) -> tuple[str, str] | None:
    """The path that is left as it is, and why, if one is."""
    for place in filter(os.path.lexists, places):
        if settings.skip_existing:
            return place, "exists already"
        if settings.update and os.path.getmtime(place) >= last_change(source):
            return place, "is not older than its source"
    return None


def _refuse_other(other: str, place: str) -> None:
    """Refuse to leave a file and a folder that both are of one container."""
    if os.path.isfile(other) or (os.path.isdir(other) and os.listdir(other)):
        raise TargetExists(
            f"would be left beside '{place}', which the container is now",
            path=other,
            remedy="remove it if it is of an earlier run",
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
    newest = max(sources, key=last_change) if settings.update else sources[0]
    kept = _kept(newest, (folder, folder), settings)
    if kept:
        report.skipped.append(kept)
        return report

    def write(place: str, one: Settings) -> Report:
        stack, labels = (os.path.join(place, name + row.suffixes[0]) for name in STACK_NAMES)
        if not one.dry_run:
            one = one.replace(labels=labels)
        return convert_stack(sources, stack, one)

    return _whole(folder, settings, write)


def _write_folder(
    opened: Opened, source: str, folder: str, row: Row, settings: Settings, report: Report
) -> None:
    def write(place: str, one: Settings) -> Report:
        arrays_of_one(opened, place, source, row, one, report, {})
        return report

    _whole(folder, settings, write)


def _whole(folder: str, settings: Settings, write: Callable[[str, Settings], Report]) -> Report:
    """Have files written into a folder that appears when it is finished; what `write` returns."""
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
    finally:  # what is there still is what was replaced, or what was not finished
        shutil.rmtree(temp, ignore_errors=True)
    report.written = [path.replace(temp, folder, 1) for path in report.written]
    return report


def _check(folder: str, *, replaces: bool) -> None:
    """Refuse a folder that is there, unless it is empty or may be replaced."""
    if not os.path.lexists(folder):
        return
    if not os.path.isdir(folder) or os.path.islink(folder):
        raise TargetExists("is there, where a folder is to be written", path=folder)
    if os.listdir(folder) and not replaces:
        raise exists(folder)


def _appear(temp: str, folder: str, *, replaces: bool) -> None:
    """Give a finished folder its name; what it replaces must have the same files."""
    try:
        rename_new_folder(temp, folder)
    except FileExistsError as error:
        if not replaces:
            raise exists(folder, "appeared while it was written") from error
        strange = _files(folder) - _files(temp)
        if strange:
            raise TargetExists(
                f"holds other files than its container has, such as '{min(strange)}', and is left "
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
        os.path.relpath(os.path.join(place, name), folder)
        for place, _, names in walk(folder)
        for name in names
    }


_BLOCK = 1 << 20
_LARGE = 16 << 20  # bytes; progress within larger sources is reported


class Worker:
    """Worker for batches of one job; the same in this process, a pool or a cluster."""

    def __init__(
        self,
        job: Job,
        within: Callable[[int, int], object] | None = None,
        at: Callable[[int], object] = bool,
    ) -> None:
        self._job = job
        # Called with bytes done of a large file, or of any file of a timed job.
        self._within = within
        self._at = at  # called with the index of the next unit, at last with -1
        self._folders: set[str] = set()  # folders that exist
        self._planning = bool(job.options.get("dry_run"))
        self._away = "://" in job.target  # at a URL
        self._local = not self._away and "://" not in job.source
        registry.target_row("", job.to)
        settings = Settings(**job.options, to=job.to, sync=False)
        self._converter = Converter(settings, learns=self._local)
        self._above: tuple[str, str] = ("", "")  # the folders that are open, below the roots
        self._open: Folders | None = None
        self._listed: Listed | None = None

    def carry_out(self, batch: Batch) -> list[Outcome]:
        """Convert the units of a batch; return an outcome for each, in order. Raises no failure.

        When this returns, everything that is DONE is on the disk.
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
        if self._local and not self._planning and not (unit.members or unit.replaces):
            outcome = None if unit.folder else self._by_shortcut(unit)
            if outcome is not None:
                return outcome
        return self._usual(unit, _ours_since(unit, batch, self._job))

    def _by_shortcut(self, unit: Unit) -> Outcome | None:
        """Convert a file in the folders that are open, if the converter knows files like it."""
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
        """Open other folders; that of the target is made. They stay open until others are."""
        self._leave()
        self._above = source, target
        folder = os.path.join(self._job.target, target)
        with suppress(OSError):  # the ordinary way will tell
            make_folders(folder)
        self._open = folders = Folders(os.path.join(self._job.source, source), folder)
        with suppress(OSError):  # each file is asked for
            self._listed = folders.list_sidecars(self._listed)
        return folders

    def _leave(self) -> None:
        """Close the folders."""
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
            raise_interruption(error)
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
        """True if the target of a unit was made after the time `since`."""
        if self._away:  # the upload compares an existing object with the new bytes
            return since < inf
        return _is_made(unit, self._job.target, since)

    def _report(self, unit: Unit, target: str, *, ours: bool) -> tuple[Report, str]:
        """Convert a unit; return the report and the path of its result."""
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
        return self._converter.ordinary(source, target, settings=Settings(**options)), target

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
        """List the files of a target that is more than one file; else nothing."""
        if len(report.written) < 2:
            return []
        root = self._job.target
        return [
            (os.path.relpath(path, root).replace(os.sep, "/"), *_digest_of_file(path))
            for path in report.written
        ]


def _places_of(unit: Unit, outcome: Outcome) -> list[str]:
    """Return the paths of a unit's result below the root: a file with its partners, or a folder."""
    target = target_of(unit, outcome)
    return [target, *(path for path, _, _ in outcome.files if not path.startswith(f"{target}/"))]


def _ours_since(unit: Unit, batch: Batch, job: Job) -> float:
    """Return the time since when a target can only be ours, left by a run or a worker that died.

    Infinity if nobody was at work on it before: an existing target is not ours.
    """
    if unit.replaces == 2:
        return job.since
    return batch.since or inf


def ended_by(unit: Unit, job: Job, since: float, error: RaconvertError) -> Outcome:
    """The outcome of a unit whose workers ended, by `error` if none of them made its target.

    A target that appeared since the time `since` is whole: the unit is lost, and the next run looks
    at it again.
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
    """True if the target of a unit was made after a time."""
    places = {unit.target, unit.folder or unit.target}
    return any(_made_since(os.path.join(root, place), since) for place in places)


def _made_since(target: str, since: float) -> bool:
    try:
        return since < inf and os.lstat(target).st_ctime >= since
    except OSError:
        return False


def _said(report: Report) -> dict[str, list[Any]] | None:
    said: dict[str, list[Any]] = {
        "notes": list(report.notes),
        "equivalent": [list(fit) for fit in report.equivalent],
        "allowed": [list(fit) for fit in report.allowed],
    }
    return {name: items for name, items in said.items() if items} or None


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
    files = []
    for place, _, names in walk(folder):
        for name in names:
            path = os.path.join(place, name)
            below = os.path.relpath(path, folder).replace(os.sep, "/")
            files.append((below, *_digest_of_file(path)))
    return sorted(files)


def _size_of(files: list[tuple[str, int, str]]) -> int:
    return sum(size for _, size, _ in files)


def _digest_of_lines(files: list[tuple[str, int, str]]) -> str:
    from hashlib import sha256

    return sha256(text_of({path: digest for path, _, digest in files})).hexdigest()


# The clock of a destination: a file server has its own, and files bear its times -----------------


_STEP = 0.02  # seconds that times of files may lag behind, as kernels count in ticks


def clock_of(folder: str) -> Callable[[], float]:
    """The clock of the file system of a folder, in seconds since 1970.

    Never ahead of the times that files get there: what is made after a reading is not older.
    """
    place = temporary(os.path.join(folder, "clock"))
    try:
        descriptor = os.open(place, CREATE_FLAGS, 0o600)
    except OSError:  # writing into the folder reports the error
        return time
    try:
        skew = os.fstat(descriptor).st_ctime - time() - _STEP
    finally:
        os.close(descriptor)
        os.unlink(place)
    return lambda: time() + skew


# Temporary files of processes that died, on whatever machine: found by a mark in their names -----
# The mark belongs to a journal, and only one run at a time has that open: what bears it when a run
# begins, or when all its batches are done, belongs to nobody any more.


def new_mark() -> str:
    """A mark that no other journal has."""
    return os.urandom(4).hex()


def clear(target: str, mark: str, units: Iterable[Unit]) -> None:
    """Remove the temporary files of dead processes in a tree, beside the targets of `units`."""
    if "://" in target:
        from raconvert.migration.remote import give_up_uploads

        give_up_uploads(target, [unit.target for unit in units])
        return
    places = {os.path.dirname(os.path.join(target, unit.target)) for unit in units}
    for folder in {target, *places} if mark else ():
        for path in marked_temporaries(folder, mark):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    os.unlink(path)
