"""Folders as output: written beside their destination, which they take when they are whole."""

from __future__ import annotations

import os
import shutil
from stat import S_IMODE

from raconvert.errors import TargetExists, UsageError, changed
from raconvert.files.copy import write_all
from raconvert.files.names import check_inside
from raconvert.files.paths import (
    PERMISSIONS,
    exchanged,
    exists,
    identity,
    rename_by_way_of,
    rename_new_folder,
    walk,
    write_failed,
)
from raconvert.files.target import Target, sync_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


def check_folder(
    path: str, *, overwrite: bool, strangers: Callable[[str], str | None], what: str
) -> None:
    """Refuse (`TargetExists`) a destination that is there, unless it is an empty folder.

    With `overwrite` a folder may be replaced if `strangers` finds nothing in it that is not ours.
    `what` names it in messages.
    """
    if os.path.basename(path.rstrip("/" + os.sep)) in ("", os.curdir, os.pardir):
        raise UsageError(
            f"{what} takes the place of a folder, which must be named by its own name", path=path
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
            remedy=f"use `--overwrite` to replace {what}, or name another folder",
        )
    strange = strangers(path)
    if strange:
        raise _strange(path, strange, what)


def _strange(path: str, strange: str, what: str) -> TargetExists:
    return TargetExists(
        f"holds files that are not part of {what}, such as '{strange}', and is left as it was",
        path=path,
        remedy="move that elsewhere, or name another folder",
    )


class Folder(Target):
    """A folder to be written: as `temp` beside `path`, then renamed to it.

    `WHAT` a folder of the format is called in messages; `strangers` finds what is not part of one.
    """

    __slots__ = ("_before",)
    WHAT = "a folder"
    _before: dict[str, tuple[int, ...]] | None

    def strangers(self, folder: str) -> str | None:
        """The path of what is not part of the format in a folder, or None. Raises nothing."""
        raise NotImplementedError

    def __init__(self, path: str, **named: Any) -> None:
        super().__init__(path, **named)
        self._before = None  # unless all that is there is kept: its files, and what each was

    def keep(self) -> None:
        """Begin with everything that is in the folder now: further names of the same files.

        Files are copied where the system has no links. What is put into the new folder takes the
        place of a name, never of the content that it has in the old one. The folder that it was
        is compared when it is replaced: a file that is new or changed there brings it back.
        """
        try:
            self._used = True
            self._make()
            self._before = _files_of(self.place)
            for file in self._before:
                _copy_name(os.path.join(self.place, file), os.path.join(self.temp, file))
            for above, inner, _ in walk(self.place):
                below = os.path.join(self.temp, os.path.relpath(above, self.place))
                for name in inner:
                    if not os.path.islink(os.path.join(above, name)):
                        os.makedirs(os.path.join(below, name), exist_ok=True)
                if above != self.place:
                    shutil.copystat(above, below)
        except OSError as error:
            raise write_failed(self.path, error) from error

    def discard(self, file: str) -> None:
        """Remove a file, or a folder with all in it, of those that were kept; it may be absent."""
        path = self._path_of(file)
        try:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            elif os.path.lexists(path):
                os.unlink(path)
        except OSError as error:
            raise write_failed(self.path, error) from error

    def member(self, file: str) -> Target:
        """Return the target of one file in the folder; `Unsafe` for a path that leads out of it."""
        path = self._path_of(file)
        try:
            if not self._used:
                self._used = True
                self._make()
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except OSError as error:
            raise write_failed(self.path, error) from error
        return Target(path, max_memory=self.max_memory, progress=self.progress)

    def put(self, file: str, pieces: Iterable[Any]) -> None:
        """Write one file of the folder, which nobody sees before all of it is there.

        Raises `Unsafe` for a path that leads out of the folder, `WriteFailed` as all writing does.
        """
        path = self._path_of(file)
        try:
            if not self._used:
                self._used = True
                self._make()
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "xb", buffering=0) as out:
                write_all(out, pieces)
        except OSError as error:
            raise write_failed(self.path, error) from error

    def _path_of(self, file: str) -> str:
        """Return the path to write one file of the folder at; `Unsafe` if outside the folder."""
        check_inside(file, "a file")
        return os.path.join(self.temp, *file.split("/"))

    def _make(self) -> None:
        """Make the folder itself, for its owner alone; not what leads to it."""
        os.mkdir(self.temp)
        status = os.stat(self.temp)
        self._mode = S_IMODE(status.st_mode) & PERMISSIONS  # the mode that the umask leaves
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
        if self._before is None:
            check_folder(
                self.path, overwrite=self.overwrite, strangers=self.strangers, what=self.WHAT
            )
        try:
            old = S_IMODE(os.stat(self.place).st_mode) if os.path.isdir(self.place) else None
            os.chmod(self.temp, self._mode if old is None else old & PERMISSIONS)
            if old is None or not self.overwrite:
                rename_new_folder(self.temp, self.place)
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
        strange = self._odd_in(there) if os.listdir(there) else None
        if strange is None:
            return
        if there == self.temp:
            exchanged(there, back)
        else:
            os.rename(back, self.temp)
            os.rename(there, back)
        if self._before is not None:
            raise changed(os.path.join(self.path, strange))
        raise _strange(self.path, strange, self.WHAT)

    def _odd_in(self, folder: str) -> str | None:
        """The path of what keeps the old folder from being removed, or None."""
        if self._before is None:
            return self.strangers(folder)
        now = _files_of(folder)
        odd = {file for file in (*now, *self._before) if now.get(file) != self._before.get(file)}
        return min(odd, default=None)

    def abort(self) -> None:
        """Remove what was written; the destination is as it was."""
        if self._used:
            self._used = False
            if self._identity is None or identity(self.place) != self._identity:
                shutil.rmtree(self.temp, ignore_errors=True)


def _files_of(folder: str) -> dict[str, tuple[int, ...]]:
    """Map the relative path of each file below a folder to its identity; links count as files."""
    files: dict[str, tuple[int, ...]] = {}
    for above, inner, names in walk(folder):
        links = [name for name in inner if os.path.islink(os.path.join(above, name))]
        for name in (*names, *links):
            path = os.path.join(above, name)
            status = os.lstat(path)
            files[os.path.relpath(path, folder)] = (
                status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
            )  # fmt: skip
    return files


def _copy_name(path: str, new: str) -> None:
    """Give a file a further name; a copy of it where the system does not."""
    os.makedirs(os.path.dirname(new), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), new)
        return
    try:
        os.link(path, new)
    except (OSError, NotImplementedError, AttributeError):  # a file system without links
        shutil.copy2(path, new)
