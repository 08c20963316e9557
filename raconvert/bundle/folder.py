"""A bundle as a folder: ``bundle.yaml``, one .ra file for each array, sidecars beside them.

The folder appears whole: everything is written into a hidden folder beside the destination, which
is renamed at the end. An existing bundle is replaced only with ``--overwrite``, and only if there
is nothing else in it.
"""

from __future__ import annotations

import os
import shutil
from stat import S_IMODE

from raconvert.bundle import manifest, members
from raconvert.bundle.names import MANIFEST
from raconvert.errors import RaconvertError, TargetExists, Unsupported, UsageError
from raconvert.files.copy import write_all
from raconvert.files.folders import rename_by_way_of, rename_new, walk
from raconvert.files.places import PERMISSIONS, exchanged, exists, identity, write_failed
from raconvert.files.syncing import sync_tree
from raconvert.files.target import Target
from raconvert.metadata import sidecar
from raconvert.plugin import NO, SURE, Bundle, Format, Plan, Source, first_of
from raconvert.ra import plugin as ra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["FORMAT", "check_target", "plan", "read", "sniff", "target"]

FORMAT = Format(
    name="bundle",
    title="Bundle: a folder of .ra files with bundle.yaml",
    raw_bools=True,
    names_files=True,
    suffixes=(),
    magic=((0, manifest.MARK),),
    proof=True,
    many=True,
    meta="all",
    index_orders="",
    sidecar="never",
    folder=True,
    read_options=members.READ_OPTIONS,
    samples={MANIFEST: manifest.MARK + b"1\narrays: []\n...\n"},
    spec=members.SPEC,
    losses=members.LOSSES,
)


def sniff(source: Source) -> int:
    """Sure by the first words of ``bundle.yaml``."""
    return SURE if source.head.startswith(manifest.MARK) else NO


def is_bundle(path: str) -> bool:
    """True if a folder is a bundle."""
    return os.path.isfile(os.path.join(path, MANIFEST))


def folder_of(names: Iterable[str], path: str) -> str:
    """The path before ``bundle.yaml`` in an archive: nothing, or one folder and ``/``."""
    listed = [name for name in names if name.split("/")[-1] == MANIFEST and name.count("/") < 2]
    if len(listed) > 1 and MANIFEST not in listed:
        raise Unsupported(f"holds several bundles: {first_of(listed)}", path=path)
    return "" if MANIFEST in listed or not listed else listed[0].removesuffix(MANIFEST)


# Reading ---------------------------------------------------------------------------------------


def read(source: Source, *, metadata: bool = True) -> Bundle:
    """Return the arrays of the bundle whose folder, or ``bundle.yaml``, is named."""
    folder = source.path if os.path.isdir(source.path) else os.path.dirname(source.path)
    listing = Source(
        os.path.join(folder, MANIFEST),
        max_memory=source.max_memory,
        trust_external=source.trust_external,
    )
    listing.used = source.used
    source.used.add(listing.path)

    def find(file: str) -> Source | None:
        if not os.path.lexists(os.path.join(folder, file)):
            return None
        return listing.named(file, f"file '{file}' of the bundle")

    return members.read(find, source.path, metadata=metadata)


# Writing ---------------------------------------------------------------------------------------


def check_target(path: str, *, overwrite: bool) -> None:
    """Refuse (`TargetExists`) a destination that is there, unless it is an empty folder.

    With `overwrite` a bundle may be replaced, if every file in it is one of the bundle's.
    """
    if os.path.basename(path.rstrip("/" + os.sep)) in ("", os.curdir, os.pardir):
        raise UsageError(
            "a bundle takes the place of a folder, which must be named by its own name", path=path
        )
    if not os.path.lexists(path):
        return
    if not os.path.isdir(path):
        raise TargetExists("is a file, where a folder is to be written", path=path)
    if not os.listdir(path):
        return
    if not overwrite:
        raise TargetExists(
            "exists already, and is left as it was",
            path=path,
            remedy="use --overwrite to replace a bundle, or name another folder",
        )
    strange = _strangers(path)
    if strange:
        raise _strange(path, strange)


def _strange(path: str, strange: str) -> TargetExists:
    return TargetExists(
        f"holds what is not part of a bundle, such as '{strange}', and is left as it was",
        path=path,
        remedy="move that elsewhere, or name another folder",
    )


def _strangers(folder: str) -> str | None:
    """Return the path of a file or folder in a folder that is not part of its bundle, or None."""
    if not is_bundle(folder):
        return next(iter(os.listdir(folder)))
    try:
        entries = manifest.load(Source(os.path.join(folder, MANIFEST))).entries
    except RaconvertError:
        return MANIFEST
    own = {MANIFEST}
    for entry in entries:
        own |= {entry.file, sidecar.path_of(entry.file), sidecar.items_path_of(entry.file)}
    folders = {file[:at] for file in own for at, letter in enumerate(file) if letter == "/"}
    for place, inner, names in walk(folder):
        above = "" if place == folder else os.path.relpath(place, folder).replace(os.sep, "/") + "/"
        links = [name for name in inner if os.path.islink(os.path.join(place, name))]
        strange = {above + name for name in (*names, *links)} - own
        strange |= {above + name for name in {*inner} - {*links}} - folders
        if strange:
            return min(strange)
    return None


class FolderTarget(Target):
    """A folder to be written: as `temp` beside `path`, then renamed to it."""

    __slots__ = ()

    def member(self, file: str) -> Target:
        """Return the target of one file in the folder."""
        path = os.path.join(self.temp, *file.split("/"))
        try:
            if not self._used:
                self._used = True
                self._make()
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except OSError as error:
            raise write_failed(self.path, error) from error
        return Target(path, max_memory=self.max_memory, progress=self.progress)

    def _make(self) -> None:
        """Make the folder itself, for its owner alone; not what leads to it."""
        os.mkdir(self.temp)
        status = os.stat(self.temp)
        self._mode = S_IMODE(status.st_mode) & PERMISSIONS  # what the umask leaves
        self._identity = status.st_dev, status.st_ino
        os.chmod(self.temp, 0o700)

    def finish(self, *, sync: bool = True) -> None:
        """Wait until all files are on the disk, ready for `rename`."""
        try:
            if sync:
                sync_tree(self.temp)
        except OSError as error:
            raise write_failed(self.path, error) from error

    def rename(self) -> None:
        """Put the folder in its place; what was there goes when the new one is."""
        check_target(self.path, overwrite=self.overwrite)
        try:
            old = S_IMODE(os.stat(self.place).st_mode) if os.path.isdir(self.place) else None
            os.chmod(self.temp, self._mode if old is None else old & PERMISSIONS)
            if old is None or not self.overwrite:
                rename_new(self.temp, self.place)
            else:
                self._replace()
        except FileExistsError as error:
            raise exists(self.path, "appeared while it was written") from error
        except OSError as error:
            raise write_failed(self.path, error) from error
        self._used = False
        for left in (self.temp, self._aside):  # one of them is what was there
            shutil.rmtree(left, ignore_errors=True)

    @property
    def _aside(self) -> str:
        return f"{self.temp.removesuffix('.tmp')}-old.tmp"

    def _replace(self) -> None:
        """Take the place of a folder: in one step where the system can, else by way of `_aside`.

        A process that is killed between two steps would leave nothing in the place. What somebody
        put into the old folder meanwhile brings it back.
        """
        if exchanged(self.temp, self.place):
            there, back = self.temp, self.place
        else:
            rename_by_way_of(self.temp, self.place, self._aside)
            there, back = self._aside, self.place
        strange = _strangers(there) if os.listdir(there) else None
        if strange is None:
            return
        if there == self.temp:
            exchanged(there, back)
        else:
            os.rename(back, self.temp)
            os.rename(there, back)
        raise _strange(self.path, strange)

    def abort(self) -> None:
        """Remove what was written; the destination is as it was."""
        if self._used:
            self._used = False
            if self._identity is None or identity(self.place) != self._identity:
                shutil.rmtree(self.temp, ignore_errors=True)


def target(path: str, **named: Any) -> FolderTarget:
    """Return the target for a destination."""
    return FolderTarget(path.rstrip("/" + os.sep) or path, **named)


def plan(bundle: Bundle) -> Plan:
    """Everything fits into a bundle: each array with its sidecar, and the manifest."""
    files = members.paths_of(bundle)
    return Plan(
        members.fits(bundle, files),
        lambda target: _write(bundle, files, target),
        names=bundle.names,
    )


def _write(bundle: Bundle, files: list[str], target: FolderTarget) -> None:
    for array, file in zip(bundle.arrays, files, strict=True):
        place = target.member(file)
        with place:
            ra.write(bundle.like([array]), place)
            place.commit(sync=False)
        written = Source(place.path, max_memory=target.max_memory)
        for beside, content in members.sidecars_of(array, file, written):
            _write_file(target, beside, content)
    _write_file(target, MANIFEST, [manifest.text_of(bundle, files)])


def _write_file(target: FolderTarget, file: str, content: Iterable[bytes]) -> None:
    with target.member(file) as place:
        try:
            write_all(place.open(), content)
        except OSError as error:
            raise write_failed(target.path, error) from error
        place.commit(sync=False)
