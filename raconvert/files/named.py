"""Files that a file names: read only inside the folder tree of the file that names them.

NRRD headers name data files, HDF5 files name external links, external storage and the sources of
virtual datasets. Whoever made such a file chose those names; following them anywhere would hand out
whatever the reader may read. ``--trust external`` lifts the rule about the folder, never the rule
that only regular files are read. A file at a URL may name files below its own folder there, and
nothing lifts that; no file, wherever it is, makes us go to a URL that it names.
"""

from __future__ import annotations

import os
from stat import S_ISLNK

from raconvert.errors import RaconvertError, ReadFailed, Unsafe, changed
from raconvert.files.paths import is_remote, is_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import FileIO
    from typing import Protocol

    class Source(Protocol):
        """A source that names files: a `raconvert.files.source.Source`."""

        path: str
        trust_external: bool
        stand_ins: dict[str, str]
        used: set[str]
        folders: list[str]

        def at(self, path: str) -> Source:
            """Return the source of another file, by the same rules."""

        def open(self) -> FileIO:
            """Open the file, which must be the one that was opened first."""


def first_there(source: Source, names: Iterable[str]) -> str | None:
    """Return the first name that a file in a folder of the source has, or None."""
    if is_remote(source.path):
        folder = source.path.rpartition("/")[0]
        return next((name for name in names if is_there(f"{folder}/{name}")), None)
    folders = source_folders(source)
    for name in names:
        for path in (os.path.join(folder, name) for folder in folders):
            if os.path.realpath(path) in source.stand_ins or os.path.lexists(path):
                return name
    return None


def resolve(source: Source, name: str, what: str) -> str:
    """Return the path of the file that `source` names, relative to its folder, and note it as used.

    The folder of a source that is a link is that of the file it leads to, or, if the named file is
    not there, that of the link. Links are followed before the folder is compared. `what` tells in
    messages what the file is: "the data file". Raises `Unsafe` for a file outside the folder tree
    of the source and for anything but a regular file, `ReadFailed` for one that is not there.
    """
    if is_remote(source.path):
        return _resolve_url(source, name, what)
    if _is_odd(name):
        raise Unsafe(f"{what} has a name that no file can have", path=source.path, got=ascii(name))
    shown = name if len(name) <= 200 else name[:197] + "..."
    folders = source_folders(source)
    if not source.trust_external and not any(_is_on_drive(folder, name) for folder in folders):
        raise _outside(source, what, folders[0], shown)
    candidates = [(folder, real_path(folder, name)) for folder in folders]
    for _, path in candidates:
        if path in source.stand_ins:
            return source.stand_ins[path]
    folder, path = _best_of(candidates)
    if not source.trust_external and not _is_below(folder, path):
        raise _outside(source, what, folder, shown)
    if not os.path.isfile(path):
        if os.path.lexists(path):
            raise Unsafe(f"{what} is not a regular file", path=source.path, got=f"'{shown}'")
        raise ReadFailed(
            f"{what} '{shown}' does not exist", path=source.path, where=f"'{path[:200]}'"
        )
    source.used.add(path)
    if not source.trust_external:
        _check_opened(source, folder, path, what, shown)
    return path


def _best_of(candidates: list[tuple[str, str]]) -> tuple[str, str]:
    """Return the first (folder, path) that exists and is allowed, else any that exists."""
    if len(candidates) == 1:
        return candidates[0]

    def rank(candidate: tuple[str, str]) -> tuple[bool, bool]:
        folder, path = candidate
        return not os.path.lexists(path), not _is_below(folder, path)

    return min(candidates, key=rank)


def real_path(folder: str, name: str) -> str:
    """Return `os.path.realpath` of a name in a folder whose own path has no links in it.

    If no part of the name is a link either, only these parts are looked at, not the whole path: it
    is asked for many thousands of files of a folder. Raises nothing.
    """
    path = folder
    for part in name.split("/") if os.name == "posix" else ("..",):
        path += f"/{part}"
        try:
            is_link = part in ("", ".", "..") or S_ISLNK(os.lstat(path).st_mode)
        except (OSError, ValueError):
            is_link = True  # missing or unreadable: `realpath` decides
        if is_link:
            return os.path.realpath(os.path.join(folder, name))
    return path


def _is_odd(name: str) -> bool:
    """True for a name that no file of this system can have."""
    try:
        return b"\0" in os.fsencode(name)
    except UnicodeEncodeError:
        return True


def _resolve_url(source: Source, name: str, what: str) -> str:
    """Return the URL of the file that a source at a URL names, and note it as used."""
    from raconvert.files.remote.listing import partner

    url = partner(source.path, name, what)
    source.used.add(url)
    return url


def _check_opened(source: Source, folder: str, path: str, what: str, shown: str) -> None:
    """Check the real path of the file once it is open: its identity holds for later openings.

    A folder on the way may have become a link since the path was looked at.
    """
    with source.at(path).open() as file:
        if not _is_below(folder, _path_of_open(file.fileno(), path)):
            raise _outside(source, what, folder, shown)


def _path_of_open(descriptor: int, path: str) -> str:
    """Return the real path of an open file, which was opened as `path`.

    If the system does not tell, it is that of `path`; raises `Changed` if another file is there.
    """
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:  # another system, or no /proc
        real = os.path.realpath(path)
        if not os.path.samestat(os.stat(real), os.fstat(descriptor)):
            raise changed(path) from None
        return real


def _outside(source: Source, what: str, folder: str, shown: str) -> Unsafe:
    """Return the error for a named file outside the folder of the file that names it."""
    return Unsafe(
        f"{what} lies outside the folder of the file that names it",
        path=source.path,
        expected=f"a file below '{folder}'",
        got=f"'{shown}'",
        remedy="read it nevertheless with `--trust external`, if you know who made this file",
    )


def _is_on_drive(folder: str, name: str) -> bool:
    """True if a name leads to the drive, or share, of a folder: always, except on Windows.

    On Windows, a mere look at a share of another host sends it the user's credentials.
    """
    drives = [os.path.splitdrive(path)[0] for path in (folder, os.path.join(folder, name))]
    return os.path.normcase(drives[0]) == os.path.normcase(drives[1])


def source_folders(source: Source) -> list[str]:
    """Return the folders in which a source lies: that of the file, then that of a link to it.

    They are determined once for each source.
    """
    if not source.folders:
        real = os.path.dirname(os.path.realpath(source.path))
        source.folders = [real]
        if os.path.islink(source.path):
            linked = os.path.realpath(os.path.dirname(source.path) or ".")
            source.folders += [linked] * (linked != real)
    return source.folders


def _is_below(folder: str, path: str) -> bool:
    return path.startswith(os.path.join(folder, ""))


def of_header(error: RaconvertError, header: str) -> RaconvertError:
    """Add to an error about a data file the path of the header that names it; return the error."""
    if error.path not in (None, header):
        error.what += f" (a data file of '{header}')"
    return error
