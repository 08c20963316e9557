"""The fast lane: small files of which the header tells all but the elements.

What a header becomes is planned once, by the usual way without writing; every further file that
begins with the same bytes, and is as long, is then read whole and written whole, with its elements
behind the new header. Where elements are coded, a plugin says how they are decoded of files that
begin and end alike (`Bundle.alike`), and how they become a file (`Plan.whole`). The first file of
each element type, rank and order goes the usual way, and the lane opens only if it would have made
the same bytes of it.

Whatever is not as usual is left to the usual way: a sidecar at either end, a destination that
exists, options with which more is done than writing, files that are large, change or cannot be
read, and everything that a report would have a line about.
"""

from __future__ import annotations

import os
from contextlib import suppress

from raconvert import registry
from raconvert.conversion.read import find, open_found
from raconvert.conversion.report import Conversion, Report
from raconvert.conversion.write import write_bundle
from raconvert.declared import Record
from raconvert.errors import WriteFailed, counted
from raconvert.files import small
from raconvert.files.copy import swap_in_place
from raconvert.files.paths import is_in_doubt, mode_of_new
from raconvert.files.source import HEAD_BYTES
from raconvert.files.target import sync_files_below
from raconvert.files.unfinished import holds_back
from raconvert.metadata import SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.arrays.bundle import Alike, Bundle
    from raconvert.catalogue import Row
    from raconvert.conversion.options import Settings
    from raconvert.conversion.read import Opened


_MOST_KNOWN = 4096  # headers
_LONGEST_PAUSE = 32  # files of a suffix that are not planned after some were in vain
_ANY = -1  # size of a file, where that is not told by the header
_LIKE = 128  # bytes at the beginning: what is alike in them is not planned again in vain


class Known(Record):
    """The conversion of all files that begin with the same header."""

    before: int  # bytes of the header
    after: bytes  # the new header
    swap: int  # width of the numbers to be reversed, else 1
    kind: int  # number of the kind of files; one of a kind is enough as a proof
    report: Report  # of the first such file
    alike: Alike | None  # where the elements are coded
    whole: Callable[[bytes], bytes] | None  # makes the new file, where that is more than a header

    def content(self, data: bytes) -> bytes | None:
        """The new file of an old one that begins with the header; None if something is odd."""
        if self.alike is not None:
            if not data.endswith(self.alike.end):
                return None
            elements = self.alike.elements(data[self.before : len(data) - len(self.alike.end)])
            if elements is None:
                return None
        else:
            elements = data[self.before :]
            if self.swap != 1:
                elements = _swapped(elements, self.swap)
        return self.after + elements if self.whole is None else self.whole(elements)


class Made(Record):
    """A file that the lane has made."""

    content: bytes
    mtime: int  # nanoseconds
    known: Known


class Expected(Record):
    """The file that the lane would write, to compare with the one that the ordinary road writes."""

    path: str
    content: bytes
    known: Known


class Listed(Record):
    """The sidecars that are in a folder."""

    folder: str
    mtime: int  # of the folder, nanoseconds
    sidecars: frozenset[str]


class Folders:
    """A source folder and a destination folder, open while their files are converted.

    `sidecars` are the names of the sidecars in the source folder; None: ask for each.
    """

    def __init__(self, source: str, target: str) -> None:
        self.sidecars: frozenset[str] | None = None
        self.source: str = source
        self.target: str = target
        self.places: tuple[int, int] | None = None  # None: files go the usual way
        mode = mode_of_new()
        self.mode: int = mode or 0  # of new files
        if mode is None or (is_in_doubt([os.path.join(source, "x")]) and holds_back(source)):
            return
        one = small.open_folder(source)
        other = None if one is None else small.open_folder(target)
        if one is not None and other is not None:
            self.places = one, other
        elif one is not None:
            os.close(one)

    def __enter__(self) -> Folders:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def has_sidecar(self, name: str) -> bool:
        """True if there is a sidecar of this source."""
        if self.sidecars is not None:
            return name + SUFFIX in self.sidecars
        return self.places is None or small.is_there(name + SUFFIX, self.places[0])

    def list_sidecars(self, known: Listed | None) -> Listed | None:
        """List the sidecars of the folder; reuse the list while the folder's mtime is the same."""
        if self.places is None:
            return None
        time = os.fstat(self.places[0]).st_mtime_ns
        if known is None or known[:2] != (self.source, time):
            names = os.listdir(self.places[0])
            known = Listed(self.source, time, frozenset(n for n in names if n.endswith(SUFFIX)))
        self.sidecars = known.sidecars
        return known

    def close(self) -> None:
        """Close both."""
        for place in self.places or ():
            os.close(place)
        self.places = None


class Lane:
    """The lane to one format for one set of options, with what it has learned."""

    def __init__(self, row: Row, settings: Settings) -> None:
        self._row = row
        self._settings = settings
        # By suffix and size of a file (-1: any): by length of the header, the headers.
        self._known: dict[tuple[str, int], dict[int, dict[bytes, Known]]] = {}
        self._left = _MOST_KNOWN
        self._kinds: dict[tuple[Any, ...], int] = {}
        self._proven: set[int] = set()
        self._others: set[tuple[str, int, bytes]] = set()  # beginnings of those that do not fit
        self._in_vain: dict[str, int] = {}  # by suffix, how many in a row
        self._pause: dict[str, int] = {}  # by suffix, how many more are not planned
        self._is_open = _is_open(row, settings)
        # What exists is refused when it is its turn; where many may, a look costs less.
        self._looks = settings.overwrite or settings.update or settings.skip_existing

    def tried(self, folders: Folders, name: str, new: str) -> Made | Expected | None:
        """Make the file `new` of `name`, if that is for the lane. Raises nothing.

        What is `Expected` goes the usual way, and `learn` is told of it after that; None goes the
        usual way, too.
        """
        if not self._is_open or folders.places is None:
            return None
        source, target = folders.places
        if self._looks and small.is_there(new, target):
            return None
        suffix = name[name.rfind(".") :]
        data = small.read_small(name, source)
        if data is None or folders.has_sidecar(name):
            return None
        known = self._find(suffix, data) or self._plan(folders, suffix, name, new, data)
        if known is None:
            return None
        content = known.content(data)
        if content is None:
            return None
        if known.kind not in self._proven:
            return Expected(os.path.join(folders.target, new), content, known)
        sync = self._settings.sync
        mtime = small.write_small(new, new + SUFFIX, content, folders.mode, target, sync)
        if mtime is None:
            return None
        if sync:
            with suppress(OSError):  # a network file system; the file itself is there
                os.fsync(target)
        return Made(content, mtime, known)

    def _find(self, suffix: str, data: bytes) -> Known | None:
        """Return the conversion for the header with which a file begins, or None."""
        for size in (len(data), _ANY):
            for length, headers in self._known.get((suffix, size), {}).items():
                known = headers.get(data[:length])
                if known is not None:
                    return known
        return None

    def _plan(
        self, folders: Folders, suffix: str, name: str, new: str, data: bytes
    ) -> Known | None:
        """Plan what becomes of a header, by the usual way without writing."""
        alike = suffix, len(data), data[:_LIKE]
        if alike in self._others:
            return None
        if pause := self._pause.get(suffix, 0):
            self._pause[suffix] = pause - 1
            return None
        if not self._left:
            self._known.clear()
            self._others.clear()
            self._left = _MOST_KNOWN
        self._left -= 1
        known = self._planned(
            os.path.join(folders.source, name), os.path.join(folders.target, new), data
        )
        if known is None:
            self._others.add(alike)
            self._in_vain[suffix] = times = self._in_vain.get(suffix, 0) + 1
            self._pause[suffix] = min(2**times // 2, _LONGEST_PAUSE)
            return None
        self._in_vain.pop(suffix, None)
        size = len(data) if known.alike is None else _ANY
        lengths = self._known.setdefault((suffix, size), {})
        lengths.setdefault(known.before, {})[data[: known.before]] = known
        return known

    def _planned(self, path: str, target: str, data: bytes) -> Known | None:
        report = Report([path])
        settings = self._settings.replace(dry_run=True)
        try:
            found = find(path, settings)
            with open_found(found, settings) as opened:
                run = Conversion(target, self._row, settings, report, opened=opened)
                write_bundle(run, opened.bundle)
                known = _known(run, opened, len(data), self._kinds)
                same = known is not None and found.source.head.startswith(data[: known.before])
                if known is not None and known.alike is not None:
                    same &= data.startswith(known.alike.begin)
                return known if same else None  # else it is another file by now
        except Exception:  # noqa: BLE001 - the usual way will tell
            return None

    def learn(self, expected: Expected) -> None:
        """Admit a kind of files to the lane if the ordinary road made the same file of one.

        To be called if there was nothing to say about that file.
        """
        folder, name = os.path.split(expected.path)
        place = small.open_folder(folder)
        if place is None:
            return
        alone = not small.is_there(name + SUFFIX, place)
        if alone and small.read_small(name, place) == expected.content:
            self._proven.add(expected.known.kind)
        os.close(place)


def _is_open(row: Row, settings: Settings) -> bool:
    """True if a format and options let a file be nothing but a header and elements."""
    more = settings.verify or settings.dry_run or settings.progress is not None
    return small.POSSIBLE and settings.meta == "auto" and not (more or row.folder or row.many)


def _known(
    run: Conversion, opened: Opened, size: int, kinds: dict[tuple[Any, ...], int]
) -> Known | None:
    """Derive the conversion of a header from a file that was planned; None if that is unsafe."""
    bundle, report, plan = opened.bundle, run.report, run.plan
    if report.says_something or (plan.header is None and plan.whole is None):
        return None
    (origin,), (array,) = run.origins, run.bundle.arrays
    if array.source is not origin.source or array.extent is not origin.extent:
        return None
    stem = os.path.splitext(os.path.basename(bundle.path))[0]
    alone = opened.used == {bundle.path} and array.name == stem
    if not (alone and (array.bare or run.row.sidecar != "auto")):
        return None
    alike = bundle.alike() if bundle.alike is not None else None
    before, swap = _elements_of(bundle, size) if alike is None else (len(alike.begin), 1)
    too_large = plan.header is None and array.nbytes > run.settings.max_memory
    if too_large or not 0 < before <= HEAD_BYTES:
        return None
    kind = (bundle.format, origin.element, origin.ndim, origin.index_order, not array.nbytes,
            alike and alike.kind)  # fmt: skip
    number = kinds.setdefault(kind, len(kinds))
    after, whole = (plan.header(), None) if plan.header is not None else (b"", plan.whole)
    return Known(before, after, swap, number, report, alike, whole)


def _elements_of(bundle: Bundle, size: int) -> tuple[int, int]:
    """Return the offset of the elements, which end the file, and the width of numbers to reverse.

    The offset is 0 if the header does not describe everything but the elements.
    """
    extent = bundle.arrays[0].extent
    if not bundle.header_tells or extent is None or extent.checksum is not None:
        return 0, 1
    return (extent.offset if extent.offset + extent.nbytes == size else 0), extent.swap


def _swapped(elements: bytes, width: int) -> bytes:
    """Big-endian elements, little-endian."""
    swapped = bytearray(elements)
    swap_in_place(memoryview(swapped), width)
    return bytes(swapped)


# Files that are converted one after the other in the fast lane, and how the lane learns ----------


_MANY = 4  # files; a call with fewer does not try the lane, whose proof plans one file twice


def either(lane: Lane, path: str, target: str, usual: Callable[[], Report]) -> Report:
    """Convert a file to a file in this lane, else by the usual way, from which the lane learns."""
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
