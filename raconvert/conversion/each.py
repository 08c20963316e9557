"""One file for each source, or for each array of a container, in a folder or by a template."""

from __future__ import annotations

import os
from contextlib import suppress

from raconvert import registry
from raconvert.conversion.converter import Converter
from raconvert.conversion.inputs import roots_of
from raconvert.conversion.isolated import Jobs, outcomes
from raconvert.conversion.options import begin
from raconvert.conversion.outputs import (
    file_of,
    is_folder,
    prepare_target,
    refuse_sources,
    replaceable,
    stem_of,
    template_fields,
)
from raconvert.conversion.read import open_spec
from raconvert.conversion.report import Conversion, Report, few, judge
from raconvert.conversion.transaction import Staging
from raconvert.conversion.write import attempt, progress_of, write_bundle
from raconvert.errors import RaconvertError, TargetExists, UsageError, WriteFailed, counted
from raconvert.files.paths import identity, make_folders, refuse_used, write_failed
from raconvert.files.target import sync_files_below
from raconvert.files.unfinished import Unfinished
from raconvert.metadata.sidecar import items_path_of, path_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from raconvert.arrays.bundle import Bundle
    from raconvert.catalogue import Row
    from raconvert.conversion.inputs import Gathered
    from raconvert.conversion.options import Settings
    from raconvert.conversion.read import Opened
    from raconvert.plugin import Fit


# The destination of each source, if each becomes a file of its own -------------------------------


def each_target(
    words: list[str], gathered: Gathered, dst: str | None, settings: Settings
) -> Iterator[tuple[str, str]]:
    """Yield (source, destination): by a template, or with the source tree mirrored in a folder."""
    if dst is not None and not dst.endswith(("/", os.sep)) and not os.path.isdir(dst):
        fields = template_fields(dst)
        if fields - {"stem", "name"}:
            raise UsageError(
                "destination template names planes, not files",
                path=dst,
                expected="{stem} or {name}",
                got=" ".join(f"{{{field}}}" for field in sorted(fields)),
                remedy="use `-o '{stem}.npy'`",
            )
        if not fields:
            raise UsageError(
                "`--each` needs a folder or a template as destination",
                path=dst,
                remedy="use `--out-dir DIR --to FORMAT`, or `-o '{stem}.npy'`",
            )
        for path in gathered.paths:
            name = os.path.basename(path.rstrip("/" + os.sep))
            try:
                yield path, dst.format(stem=stem_of(path), name=name)
            except ValueError as error:
                raise UsageError(
                    f"destination template is not understood: {error}", path=dst
                ) from error
        return
    folder = settings.out_dir if settings.out_dir is not None else dst
    if settings.to is None:
        raise UsageError(
            "a folder as destination needs the format of its files",
            path=folder,
            remedy="name it with `--to`: ra or npy for one file each, bundle for one folder of all",
        )
    suffix = next(iter(registry.by_name(settings.to).suffixes), "")
    roots = roots_of(words)
    for path in gathered.paths:
        root = next((r for r in roots if path.startswith(os.path.join(r, ""))), None)
        above = os.path.dirname(os.path.relpath(path, root)) if root else ""
        yield path, os.path.join(folder or ".", above, stem_of(path) + suffix)


def claim(names: list[str], source: str, claimed: dict[str, str], *, once: bool = False) -> None:
    """Add the files that a source becomes to `claimed`, from each `real_path` to its source.

    Raises `UsageError` if another source has claimed one; with `once` also for the same source.
    """
    for name in names:
        path = real_path(name)
        other = claimed.get(path)
        if other is not None and (once or other != source):
            raise UsageError(
                f"two sources would both become '{name}'",
                path=source,
                got=f"'{other}' and this one",
            )
        claimed[path] = source


def real_path(path: str) -> str:
    """Return the one name of a file that has several, by links or by upper and lower case."""
    return os.path.normcase(os.path.realpath(path))


def convert_each(
    words: list[str], gathered: Gathered, dst: str | None, settings: Settings
) -> Report:
    """Convert every source to a file of its own; one bad file does not stop the others.

    Of two sources that would become one file, the second fails. Raises `TargetExists`, before
    anything is written, if a destination to be replaced is read by another source.
    """
    report = Report(few(gathered.paths))
    report.source_count = len(gathered.paths)
    targets: dict[str, str] = {}
    claimed: dict[str, str] = {}
    for source, target in each_target(words, gathered, dst, settings):
        try:
            claim([target], source, claimed, once=True)
            targets[target] = source
        except UsageError as error:
            if settings.fail_fast:
                raise
            report.failed.append((source, error))
    # Converting a file onto itself fails alone; writing onto another file's source would spoil
    # that one, so it is refused at once.
    others = [t for t, s in targets.items() if not (os.path.exists(t) and os.path.samefile(t, s))]
    refuse_sources(others, gathered.paths)
    if settings.overwrite or settings.update:
        _refuse_read_by_others(targets, gathered, dst, settings)
    jobs = _Conversions(targets, claimed, gathered, dst, settings)
    with Unfinished(targets) as unfinished:
        if not settings.dry_run:
            unfinished.begin()
        try:
            _convert_all(jobs, targets, settings, report)
        finally:
            if settings.sync:
                _wait_for_disk(jobs.unsynced)
    if len(report.failed) == len(gathered.paths) == 1:
        raise report.failed[0][1]
    return report


class _Conversions(Jobs):
    """The conversions of a run, one for each source; each makes a `Report`."""

    def __init__(
        self,
        targets: dict[str, str],
        claimed: dict[str, str],
        gathered: Gathered,
        dst: str | None,
        settings: Settings,
    ) -> None:
        super().__init__(self._convert)
        self.targets = list(targets)
        self.sources = list(targets.values())
        self._claimed = claimed
        self._claimed_before = 0  # number of files that earlier sources have claimed
        self._rest = gathered, dst, settings
        self.unsynced: list[str] = []  # destinations that may not be on the disk yet
        self._converter = Converter(settings, learns=len(targets) > 1, sync=False)

    def _convert(self, number: int) -> Report:
        source, target = self.sources[number], self.targets[number]
        self._claimed_before = len(self._claimed)
        begin(self._rest[2], source, number, len(self.sources))

        def ordinary() -> Report:
            part = Report([source])
            _one_of_each(source, target, *self._rest, part, self._claimed, self._converter)
            return part

        report = self._converter(source, target, ordinary=ordinary)
        if report.by_shortcut:
            self.unsynced.append(target)
        return report

    def folders(self, number: int) -> list[str]:
        """Return the folder of the destination, and those above it."""
        _, dst, settings = self._rest
        folders = []
        for path in (self.targets[number], os.path.join(settings.out_dir or dst or "", "x")):
            above = os.path.dirname(path)
            while above not in folders:
                folders.append(above)
                above = os.path.dirname(above)
        return folders

    def pack(self, part: Report) -> Any:
        """Return a report, and the files that its source has claimed."""
        claimed = []
        if len(self._claimed) > self._claimed_before:  # else no list of all files is made
            claimed = [*self._claimed][self._claimed_before :]
        return {"report": part.to_plain(), "claimed": claimed}

    def unpack(self, number: int, values: Any) -> Report:
        """Return the report; what was claimed in the other process is claimed here."""
        source = self.sources[number]
        self._claimed.update(dict.fromkeys(values["claimed"], source))
        return Report.from_plain([source], values["report"])


def _convert_all(
    jobs: _Conversions, targets: dict[str, str], settings: Settings, report: Report
) -> None:
    for part, (target, source) in zip(outcomes(jobs.sources, jobs), targets.items(), strict=True):
        if isinstance(part, Report):
            report.absorb(part, source=source if len(targets) > 1 else None)
            continue
        error = part if isinstance(part, RaconvertError) else write_failed(target, part)
        if settings.fail_fast:
            raise error from part
        _let_go(part)
        report.failed.append((source, error))


def _wait_for_disk(paths: list[str]) -> None:
    """Wait until these files are on the disk, once for each file system."""
    disks: dict[int, list[str]] = {}
    for path in paths:
        with suppress(OSError):  # somebody has removed it already
            disks.setdefault(os.stat(path).st_dev, []).append(os.path.abspath(path))
    for names in disks.values():
        try:
            sync_files_below(os.path.dirname(names[0]), names)
        except OSError as error:
            raise WriteFailed(
                f"cannot be written to the disk: {error.strerror}; the new data is in its "
                "place, as long as this system runs",
                path=names[0],
                got=counted(len(names), "file"),
                remedy="write them again with `--overwrite`",
            ) from error


def _let_go(error: BaseException) -> None:
    """Clear the frames of an error, which hold decoded values.

    The error itself, with its message, is in memory until the end of the run.
    """
    from traceback import clear_frames

    waiting: list[BaseException | None] = [error]
    cleared: set[int] = set()
    while waiting:
        part = waiting.pop()
        if part is not None and id(part) not in cleared:
            cleared.add(id(part))
            clear_frames(part.__traceback__)
            waiting += [part.__cause__, part.__context__]


def _one_of_each(
    source: str,
    target: str,
    gathered: Gathered,
    dst: str | None,
    settings: Settings,
    report: Report,
    claimed: dict[str, str],
    converter: Converter,
) -> None:
    """Convert one of the sources, or every array of a container if the target holds only one.

    `claimed` maps every file that is written in this run to the source that it is made from.
    """
    row = registry.target_row(target, settings.to)
    if not prepare_target(target, row, [source], settings, report):
        return
    made_folders: list[str] = []
    try:
        with open_spec(source, settings) as opened:
            if settings.overwrite or settings.update:
                other_files = opened.used - {opened.bundle.path}
                _refuse_destinations_of_others(source, other_files, claimed)
            if _becomes_many(opened.bundle, row, dst, settings):
                folder_of_arrays = _folder_of_arrays(target, row, gathered, dst, settings)
                arrays_of_one(opened, folder_of_arrays, source, row, settings, report, claimed)
                return
            if not settings.dry_run:
                made_folders = make_folders(os.path.dirname(target))
            converter.write(Conversion(target, row, settings, report, opened=opened), opened)
    except BaseException:
        for folder in reversed(made_folders):
            with suppress(OSError):  # it is not empty: somebody else has put a file into it
                os.rmdir(folder)
        raise


def _becomes_many(bundle: Bundle, row: Row, dst: str | None, settings: Settings) -> bool:
    """True if each array of a file becomes a file of its own."""
    return holds_several(bundle, row, settings) and is_folder(dst, settings)


def holds_several(bundle: Bundle, row: Row, settings: Settings) -> bool:
    """True if a file has several arrays to be written, and the format holds one."""
    left_out = len(bundle.unreadable) if settings.allows("arrays") else 0
    return len(bundle.arrays) - left_out > 1 and not row.many


def _folder_of_arrays(
    target: str, row: Row, gathered: Gathered, dst: str | None, settings: Settings
) -> str:
    """Return the folder for the arrays of a container; each of several containers has its own."""
    folder = target.removesuffix(row.suffixes[0]) if gathered.many else None
    return folder or settings.out_dir or dst or "."


def _names_of_arrays(bundle: Bundle, folder: str, row: Row) -> list[str]:
    """Return the destination of each array of a container; groups become folders."""
    from raconvert.bundle.members import files_of

    return [os.path.join(folder, file) for file in files_of(bundle.names, row.suffixes[0])]


def _refuse_read_by_others(
    targets: dict[str, str], gathered: Gathered, dst: str | None, settings: Settings
) -> None:
    """Refuse files to be replaced that another source of this run is read from.

    Only sources that may be read from more than one file, or become more than one, are opened.
    """
    written: list[tuple[str, str]] = []  # (file, the source that it is made from)
    readers: dict[tuple[int, int], set[str]] = {}
    pairs = [(t, s) for t, s in targets.items() if not _is_one_to_one(s, t, settings)]

    def look(number: int) -> tuple[list[str], list[str]]:
        target, source = pairs[number]
        row = registry.target_row(target, settings.to)
        names = [target]
        with open_spec(source, settings) as opened:
            used = [*opened.used]
            if _becomes_many(opened.bundle, row, dst, settings):
                folder = _folder_of_arrays(target, row, gathered, dst, settings)
                names = _names_of_arrays(opened.bundle, folder, row)
        return used, names

    looks = outcomes([source for _, source in pairs], Jobs(look))
    files_of = {source: files for (_, source), files in zip(pairs, looks, strict=True)}
    for target, source in targets.items():
        # An error is raised again when it is the turn of its source.
        files = files_of.get(source)
        used, names = files if isinstance(files, tuple | list) else ([source], [target])
        for name in names:
            written += [(path, source) for path in (name, path_of(name), items_path_of(name))]
        for path in used:
            if file := identity(path):
                readers.setdefault(file, set()).add(source)
    for name, source in written:
        file = identity(name)
        others = readers.get(file, set()) - {source} if file else None
        if others:
            raise TargetExists(
                f"is read by source '{min(others)}', and is left as it was",
                path=name,
                remedy="name another folder as destination",
            )


def _is_one_to_one(source: str, target: str, settings: Settings) -> bool:
    """True if a source is one file, and becomes one, judged by its name."""
    path = file_of(source)
    try:
        row = registry.by_name(settings.from_) if settings.from_ else registry.by_suffix(path)
        if row is None or row.names_files or os.path.isdir(path):
            return False
        return not row.many or registry.target_row(target, settings.to).many
    except RaconvertError:  # it is raised when it is the turn of the source
        return False


def _refuse_destinations_of_others(
    source: str, used: Iterable[str], claimed: dict[str, str]
) -> None:
    """Refuse (`TargetExists`) a source that is read from a file which another source becomes."""
    for path in used:
        other = claimed.get(real_path(path), source)
        if other != source:
            raise TargetExists(
                f"reads '{path}', which source '{other}' becomes",
                path=source,
                remedy="name another folder as destination",
            )


def arrays_of_one(
    opened: Opened,
    folder: str,
    source: str,
    row: Row,
    settings: Settings,
    report: Report,
    claimed: dict[str, str],
) -> None:
    """Write every array of a container that can be read to a file of its own.

    Arrays that cannot be read are refused, or left out if that is allowed.
    """

    def write(whole: Bundle, lost: list[Fit]) -> Report:
        names = _names_of_arrays(whole, folder, row)
        claim(names, source, claimed)
        judge(lost, settings, report)
        return _each_array(opened, whole, folder, names, row, settings, report)

    attempt(opened.bundle, settings, report, write)


def _each_array(
    opened: Opened,
    bundle: Bundle,
    folder: str,
    names: list[str],
    row: Row,
    settings: Settings,
    report: Report,
) -> Report:
    """Write every array of a container to a file of its own."""
    refuse_sources(names, [bundle.path])
    refuse_used(names, opened.used)
    chosen = set(replaceable(names, [bundle.path], settings, report))
    advance = progress_of(settings.progress, sum(array.nbytes for array in bundle.arrays))
    settings_of_each = settings.replace(progress=None, sync=False)
    with Staging(os.path.join(folder, ""), sync=settings.sync) as staging:
        for array, name in zip(bundle.arrays, names, strict=True):
            if name not in chosen:
                continue
            part = Report(report.sources)
            staged = name if settings.dry_run else staging.place(name)
            try:
                run = Conversion(staged, row, settings_of_each, part, opened=opened)
                write_bundle(run, bundle.like([array]))
            except RaconvertError as error:
                error.path = name if error.path == staged else error.path
                raise
            report.absorb(part, paths=False)
            report.arrays += part.arrays
            if not settings.dry_run:
                overwrite = settings.overwrite or settings.update
                staging.add(staged, name, part.written, overwrite=overwrite)
            if advance is not None:
                advance(array.nbytes)
        report.written += staging.publish()
    return report
