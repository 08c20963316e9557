"""A container as a folder of arrays: a file for each, groups as folders. The folder appears whole.

A container of one array becomes a file, unless a folder is asked for.
"""

from __future__ import annotations

import os
import shutil
from stat import S_IMODE

from raconvert import registry
from raconvert.conversion.batch import convert_stack
from raconvert.conversion.each import arrays_of_one, holds_several
from raconvert.conversion.outputs import last_change, prepare_target
from raconvert.conversion.read import open_spec
from raconvert.conversion.report import Conversion, Report, few
from raconvert.conversion.write import write_bundle
from raconvert.errors import RaconvertError, TargetExists
from raconvert.files.folders import rename_by_way_of, rename_new, walk
from raconvert.files.places import PERMISSIONS, exchanged, exists, temporary

STACK_NAMES = "images", "labels"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from raconvert.catalogue import Row
    from raconvert.conversion.options import Settings
    from raconvert.conversion.read import Opened


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
        mode = S_IMODE(os.stat(temp).st_mode) & PERMISSIONS  # what the umask leaves
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
        rename_new(temp, folder)
    except FileExistsError as error:
        if not replaces:
            raise exists(folder, "appeared while it was written") from error
        strange = _files(folder) - _files(temp)
        if strange:
            raise TargetExists(
                f"holds what is not of its container, such as '{min(strange)}', and is left as it "
                "was",
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
