"""Files that are converted one after the other in the fast lane, and how the lane learns."""

from __future__ import annotations

import os
from contextlib import suppress

from raconvert import registry
from raconvert.conversion.report import Report
from raconvert.errors import WriteFailed, counted
from raconvert.files.syncing import sync_files_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from raconvert.conversion.lane import Lane, Made
    from raconvert.conversion.options import Settings

_MANY = 4  # files of one call: of fewer, one that is planned besides is too many


def either(lane: Lane, path: str, target: str, usual: Callable[[], Report]) -> Report:
    """Convert a file to a file in this lane, else by the usual way, from which the lane learns."""
    from raconvert.conversion.lane import Expected, Folders, Made

    source, name = os.path.split(path)
    folder, new = os.path.split(target)
    with Folders(source, folder) as folders:
        found = lane.tried(folders, name, new)
    if isinstance(found, Made):
        return _report(path, target, found)
    report = usual()
    if isinstance(found, Expected) and report.written == [target] and not report.says_something:
        lane.learn(found)
    return report


class LaneOfMany:
    """The lane of one call that converts each of many files; it waits once for the disk."""

    def __init__(self, count: int, settings: Settings) -> None:
        self._many = count >= _MANY
        self._settings = settings
        self._lane: Lane | None = None
        self._made: list[str] = []

    def convert(self, path: str, target: str, usual: Callable[[], Report]) -> Report:
        """Convert a file in the lane, else by the usual way."""
        settings = self._settings
        if not self._many or os.path.isdir(path):
            return usual()
        if self._lane is None:
            from raconvert.conversion.lane import Lane

            row = registry.target_row(target, settings.to)
            self._lane = Lane(row, settings.replace(sync=False, progress=None))
        report = either(self._lane, path, target, usual)
        if report.by_lane:
            self._made.append(target)
            if settings.progress is not None and report.nbytes:
                settings.progress(report.nbytes, report.nbytes)
        return report

    def __enter__(self) -> LaneOfMany:
        return self

    def __exit__(self, *_: object) -> None:
        """Wait until all that the lane has made is on the disk, where that is asked for."""
        disks: dict[int, list[str]] = {}
        for path in self._made if self._settings.sync else ():
            with suppress(OSError):  # somebody has taken it away already
                disks.setdefault(os.stat(path).st_dev, []).append(os.path.abspath(path))
        for paths in disks.values():
            try:
                sync_files_below(os.path.dirname(paths[0]), paths)
            except OSError as error:
                raise WriteFailed(
                    f"cannot be written to the disk: {error.strerror}; the new data is in its "
                    "place, as long as this system runs",
                    path=paths[0],
                    got=counted(len(paths), "file"),
                    remedy="write them again with `--overwrite`",
                ) from error


def _report(path: str, target: str, made: Made) -> Report:
    """The report of a file that the lane has made."""
    report, like = Report([path]), made.known.report
    report.source_format, report.target_format = like.source_format, like.target_format
    stem = os.path.splitext(os.path.basename(path))[0]
    report.arrays = [(stem, kind, shape, text) for _, kind, shape, text in like.arrays]
    report.nbytes, report.files = like.nbytes, 1
    report.target, report.written, report.by_lane = target, [target], True
    return report
