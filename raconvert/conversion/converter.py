"""`Converter`: one set of options, resolved once; each call converts one file to one file.

`convert`, ``--out-dir`` (`each`), `migrate` and its workers all convert by it. A file is opened,
planned, written, read back and committed (`ordinary`). From a small file for which that was done
without a note the converter learns: it caches the new header by the old one, if the new header with
the elements behind it is byte for byte the file that was written. If the elements lie in the file
as they are, that also proves the kind of file (format, element type, number of axes, index order):
the new header for another old one of the kind is then planned, without writing.

There is one shortcut, `tried`, which every call takes first: a small file that begins with a cached
header is read whole and written whole, by few system calls. `Bundle.alike` of a plugin finds the
elements in such a file, `Plan.header` or `Plan.whole` of another make a file of them. Anything
else goes the ordinary way: a sidecar at either end, a destination that exists, options by which
more is done than writing, files that are large, change or cannot be read, and everything about
which a report would have a line. `benchmarks/migrate.py --shortcut` measures its gain.
"""

from __future__ import annotations

import os
from contextlib import suppress

from raconvert import registry
from raconvert.conversion.outputs import prepare_target
from raconvert.conversion.read import open_spec
from raconvert.conversion.report import Conversion, Report
from raconvert.conversion.write import write_bundle
from raconvert.declared import Record
from raconvert.files.paths import is_in_doubt, mode_of_new
from raconvert.files.source import HEAD_BYTES, Source
from raconvert.metadata import SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from raconvert.arrays.bundle import Alike
    from raconvert.catalogue import Row
    from raconvert.conversion.options import Settings
    from raconvert.conversion.read import Opened

_MOST_KNOWN = 4096  # headers
_MOST_CONVERTERS = 16  # cached by `resolved`
_LONGEST_PAUSE = 32  # files that are not planned after plans failed


class Known(Record):
    """The conversion of all files that begin with one header."""

    alike: Alike  # finds the elements
    after: bytes  # the new header, if the new file is only that and the elements
    whole: Callable[[bytes], bytes] | None  # makes the new file of the elements in any other case
    facts: tuple[str, str, str, tuple[int, ...], str, int]  # formats, type, shape, axes, bytes
    kind: tuple[Any, ...] | None  # one file proves its whole kind; None: it proves its header only

    def content(self, data: bytes) -> bytes | None:
        """Return the new file for the content of an old one; None if anything in it is odd."""
        alike = self.alike
        if not data.endswith(alike.end):
            return None
        elements = alike.elements(data[len(alike.begin) : len(data) - len(alike.end)])
        if elements is None:
            return None
        return self.after + elements if self.whole is None else self.whole(elements)


class Made(Record):
    """A file that was made by the shortcut."""

    content: bytes
    mtime: int  # nanoseconds
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
        from raconvert.files import small  # late: a command that converts one file needs none

        self.small: ModuleType = small
        self.sidecars: frozenset[str] | None = None
        self.source: str = source
        self.target: str = target
        self.opened: tuple[int, int] | None = None  # None: files go the ordinary way
        mode = mode_of_new()
        self.mode: int = mode or 0  # of new files
        if mode is None:
            return
        if is_in_doubt([os.path.join(source, "x")]):
            from raconvert.files.unfinished import holds_back

            if holds_back(source):
                return
        source_folder = small.open_folder(source)
        if source_folder is None:
            return
        target_folder = small.open_folder(target)
        if target_folder is None:
            os.close(source_folder)
        else:
            self.opened = source_folder, target_folder

    def __enter__(self) -> Folders:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def has_sidecar(self, name: str) -> bool:
        """True if there is a sidecar of this source."""
        if self.sidecars is not None:
            return name + SUFFIX in self.sidecars
        return self.opened is None or self.small.is_there(name + SUFFIX, self.opened[0])

    def list_sidecars(self, known: Listed | None) -> Listed | None:
        """List the sidecars of the folder; reuse the list while the folder's mtime is the same."""
        if self.opened is None:
            return None
        time = os.fstat(self.opened[0]).st_mtime_ns
        if known is None or known[:2] != (self.source, time):
            names = os.listdir(self.opened[0])
            known = Listed(self.source, time, frozenset(n for n in names if n.endswith(SUFFIX)))
        self.sidecars = known.sidecars
        return known

    def close(self) -> None:
        """Close both folders."""
        for descriptor in self.opened or ():
            os.close(descriptor)
        self.opened = None


class Converter:
    """Conversions with one set of options.

    `learns`: later files may take the shortcut; `sync`: a file that the shortcut makes is on the
    disk when it is reported (default: as the options say).
    """

    def __init__(self, settings: Settings, *, learns: bool = True, sync: bool | None = None):
        self.settings: Settings = settings
        self.learns: bool = learns
        self._sync = settings.sync if sync is None else sync
        more_than_written = settings.verify or settings.dry_run or settings.meta != "auto"
        self._may_learn = not more_than_written
        # A destination that exists is refused by the write itself; if it may be replaced, asking
        # first costs less.
        self._asks_first = settings.overwrite or settings.update or settings.skip_existing
        # By suffixes of source and destination, then length of the header, then the header.
        self._known: dict[tuple[str, str], dict[int, dict[bytes, Known]]] = {}
        self._count = 0  # number of headers in `_known`
        self._proven: dict[tuple[str, str], set[tuple[Any, ...]]] = {}  # kinds, by suffixes
        self._in_vain: dict[tuple[str, str], int] = {}  # number of plans in a row without use
        self._pause: dict[tuple[str, str], int] = {}  # number of files until the next plan

    def __call__(
        self,
        source: str,
        target: str,
        row: Row | None = None,
        ordinary: Callable[[], Report] | None = None,
    ) -> Report:
        """Convert a file to a file; `ordinary` does that where the shortcut does not apply."""
        if self._known:
            source_folder, name = os.path.split(source)
            target_folder, new = os.path.split(target)
            if _suffixes(name, new) in self._known:
                with Folders(source_folder, target_folder) as folders:
                    made = self.tried(folders, name, new)
                if made is not None:
                    return self._report(source, target, made)
        return self.ordinary(source, target, row) if ordinary is None else ordinary()

    def ordinary(
        self,
        source: str,
        target: str,
        row: Row | None = None,
        *,
        name: str | None = None,
        settings: Settings | None = None,
    ) -> Report:
        """Convert a file to a file, or to the array `name` in a container, step by step.

        `settings` differ from those of this converter in progress and in what may be replaced.
        """
        settings = settings or self.settings
        row = row or registry.target_row(target, settings.to)
        report = Report([source])
        if prepare_target(target, row, [source], settings, report, name):
            with open_spec(source, settings) as opened:
                run = Conversion(target, row, settings, report, name=name, opened=opened)
                self.write(run, opened)
        return report

    def write(self, run: Conversion, opened: Opened) -> None:
        """Write an opened source, and learn from the result."""
        write_bundle(run, opened.bundle)
        if self.learns and self._may_learn:
            self._learn(run, opened)

    # The shortcut, and its learning ---------------------------------------------------------------

    def tried(self, folders: Folders, name: str, new: str) -> Made | None:
        """Make the file `new` of `name`, if its header is known; raises nothing.

        Returns None, and has done nothing, if the file must go the ordinary way.
        """
        suffixes = _suffixes(name, new)
        known = self._known.get(suffixes)
        if known is None or folders.opened is None:
            return None
        (source, target), small = folders.opened, folders.small
        if self._asks_first and small.is_there(new, target):
            return None
        data = small.read_small(name, source)
        if data is None or folders.has_sidecar(name):
            return None
        for length, headers in tuple(known.items()):
            header = headers.get(data[:length])
            if header is not None:
                break
        else:
            header = self._planned(suffixes, folders, name, new, data)
            if header is None:
                return None
        content = header.content(data)
        if content is None:
            return None
        sync = self._sync
        mtime = small.write_small(new, new + SUFFIX, content, folders.mode, target, sync)
        if mtime is None:
            return None
        if sync:
            with suppress(OSError):  # network file systems refuse; the file itself is synced
                os.fsync(target)
        return Made(content, mtime, header)

    def _planned(
        self, suffixes: tuple[str, str], folders: Folders, name: str, new: str, data: bytes
    ) -> Known | None:
        """Plan a file with a new header of a proven kind, and cache that; else return None."""
        if suffixes not in self._proven:
            return None
        if pause := self._pause.get(suffixes, 0):
            self._pause[suffixes] = pause - 1
            return None
        source, target = os.path.join(folders.source, name), os.path.join(folders.target, new)
        known = None
        try:
            settings = self.settings.replace(dry_run=True, progress=None)
            row = registry.target_row(target, settings.to)
            with open_spec(source, settings) as opened:
                run = Conversion(target, row, settings, Report([source]), opened=opened)
                write_bundle(run, opened.bundle)
                known = _known(run, opened)
        except Exception:  # noqa: BLE001 - the ordinary way will raise it
            known = None
        if (
            known is None
            or known.kind not in self._proven[suffixes]
            or not data.startswith(known.alike.begin)  # another file by now
        ):
            self._in_vain[suffixes] = times = self._in_vain.get(suffixes, 0) + 1
            self._pause[suffixes] = min(2**times // 2, _LONGEST_PAUSE)
            return None
        self._in_vain.pop(suffixes, None)
        self._keep(suffixes, known)
        return known

    def _learn(self, run: Conversion, opened: Opened) -> None:
        """Cache the conversion of a header, if that makes the very file that was written."""
        alone = run.report.written == [run.path] and not os.path.lexists(run.path + SUFFIX)
        try:
            known = _known(run, opened) if alone else None
            if known is None:
                return
            source, target = opened.bundle.path, run.path
            data = _content(opened.source)
            if data is None or not data.startswith(known.alike.begin):
                return
            content, written = known.content(data), Source(target)
            try:
                if content is None or content != _content(written):
                    return
            finally:
                written.close()
        except Exception:  # noqa: BLE001 - the file is written, and nothing is wrong with it
            return
        suffixes = _suffixes(os.path.basename(source), os.path.basename(target))
        self._keep(suffixes, known)
        if known.kind is not None:
            self._proven.setdefault(suffixes, set()).add(known.kind)

    def _keep(self, suffixes: tuple[str, str], known: Known) -> None:
        """Cache the conversion of a header; empty the cache when it is full."""
        if self._count >= _MOST_KNOWN:
            self._known.clear()
            self._count = 0
        self._count += 1
        begin = known.alike.begin
        self._known.setdefault(suffixes, {}).setdefault(len(begin), {})[begin] = known

    def _report(self, path: str, target: str, made: Made) -> Report:
        """Return the report about a file that the shortcut has made."""
        report, facts = Report([path]), made.known.facts
        report.source_format, report.target_format, kind, shape, axes, report.nbytes = facts
        stem = os.path.splitext(os.path.basename(path))[0]
        report.arrays = [(stem, kind, shape, axes)]
        report.files = 1
        report.target, report.written, report.by_shortcut = target, [target], True
        if self.settings.progress is not None and report.nbytes:
            self.settings.progress(report.nbytes, report.nbytes)
        return report


def _suffixes(name: str, new: str) -> tuple[str, str]:
    """Return the suffixes of a source and a destination; other ones may mean other formats."""
    return name[name.rfind(".") :], new[new.rfind(".") :]


def _known(run: Conversion, opened: Opened) -> Known | None:
    """Derive the conversion of files with the same header from one; None if unsafe."""
    from raconvert.files.small import POSSIBLE

    bundle, report, row = opened.bundle, run.report, run.row
    if not POSSIBLE:
        return None
    if row.folder or row.many or report.says_something:
        return None
    plan = run.plan
    raw = plan.header is not None
    if bundle.alike is None or not (raw or plan.whole) or report.sources != [bundle.path]:
        return None
    (origin,), (array,) = run.origins, run.bundle.arrays
    if array.source is not origin.source or array.extent is not origin.extent:
        return None
    stem = os.path.splitext(os.path.basename(bundle.path))[0]
    alone = opened.used == {bundle.path} and array.name == stem
    too_large = not raw and array.nbytes > run.settings.max_memory
    if too_large or not (alone and (array.bare or row.sidecar != "auto")):
        return None
    alike = bundle.alike()
    if alike is None or not 0 < len(alike.begin) <= HEAD_BYTES:
        return None
    _, type_text, shape, axes = report.arrays[0]
    facts = report.source_format, report.target_format, type_text, shape, axes, report.nbytes
    kind: tuple[Any, ...] | None = None  # encoded elements differ in more than the kind
    if origin.extent is not None:
        kind = bundle.format, origin.element, origin.ndim, origin.index_order, not array.nbytes
    if plan.header is not None:
        return Known(alike, plan.header(), None, facts, kind)
    return Known(alike, b"", plan.whole, facts, kind)


def _content(source: Source | None) -> bytes | None:
    """Return the bytes of a small file; None for any other."""
    from raconvert.files.small import MOST

    return None if source is None or source.size > MOST else source.read_at(0, source.size)


# The converters of calls with the same options, one after the other -----------------------------


_converters: dict[tuple[Any, ...], Converter] = {}


def resolved(settings: Settings) -> Converter:
    """Return the cached converter for these options; it learns from the second call on."""
    key = _key(settings)
    if key is None:
        return Converter(settings, learns=False)
    converter = _converters.get(key)
    if converter is None:
        if len(_converters) >= _MOST_CONVERTERS:
            forget()
        _converters[key] = converter = Converter(settings, learns=False)
    else:
        converter.learns = True
    return converter


def forget() -> None:
    """Empty the cache of `resolved`."""
    _converters.clear()


def _key(settings: Settings) -> tuple[Any, ...] | None:
    """Return the values of options as the key of a converter; None if it is not to be cached."""
    if settings.in_opts or settings.out_opts or settings.progress is not None:
        return None
    key = tuple(
        (name, tuple(value) if isinstance(value, list) else value)
        for name, value in settings.__dict__.items()
        if name not in ("in_opts", "out_opts")
    )
    try:
        hash(key)
    except TypeError:  # a list of lists, which is refused later
        return None
    return key
