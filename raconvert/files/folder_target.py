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
    """Raise `TargetExists` if a destination exists, unless it is an empty folder.

    With `overwrite` a folder may be replaced if `strangers` returns None for it: nothing in it is
    of another kind. `what` names such a folder in messages. Raises `UsageError` for a path without
    a name of its own.
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
    """Return the error for a folder in which the file `strange` is not part of `what`."""
    return TargetExists(
        f"holds files that are not part of {what}, such as '{strange}', and is left as it was",
        path=path,
        remedy="move that elsewhere, or name another folder",
    )


class Folder(Target):
    """A folder to be written: as `temp` beside `path`, then renamed to it.

    `WHAT` names such a folder in messages; `strangers` looks for files that are not part of one.
    """

    __slots__ = ("_before",)
    WHAT = "a folder"
    _before: dict[str, tuple[int, ...]] | None

    def strangers(self, folder: str) -> str | None:
        """Return the path of an entry that is not part of the format, or None. Raises nothing."""
        raise NotImplementedError

    def __init__(self, path: str, **named: Any) -> None:
        super().__init__(path, **named)
        self._before = None  # after `keep`: the identity of each file of the old folder, by path

    def keep(self) -> None:
        """Begin with everything that is in the folder now: further names of the same files.

        Files are copied if the system has no links. A file that is put into the new folder replaces
        a name, never the content that the old folder has under it. The old folder is compared when
        it is replaced: if a file is new or changed in it, it comes back. Raises `WriteFailed`.
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
        """Remove a file, or a folder with all in it, that `keep` has taken over; it may be absent.

        Raises `Unsafe` for a path that leads out of the folder, and `WriteFailed`.
        """
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
        """Write one new file of the folder, which appears with all the others.

        Raises `Unsafe` for a path that leads out of the folder, and `WriteFailed`.
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
        """Make the folder itself, for its owner alone, but not its parents."""
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
        """Rename the folder to its destination, and then remove the folder that it replaces.

        Raises `TargetExists` for what appeared meanwhile, `Changed` for a kept file that was
        changed, and `WriteFailed`; the destination is then as it was.
        """
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
        for old_folder in (self.temp, self._aside):  # one of the two paths is that of the old one
            shutil.rmtree(old_folder, ignore_errors=True)

    @property
    def _aside(self) -> str:
        """The path of the old folder while the new one is renamed."""
        return f"{self.temp.removesuffix('.tmp')}-old.tmp"

    def _replace(self) -> None:
        """Replace a folder: in one step if the system can, else by way of `_aside`.

        (A process that is killed between two steps leaves nothing at the destination.) If somebody
        has put a file into the old folder meanwhile, it comes back, and the error names the file.
        """
        in_one_step = exchanged(self.temp, self.place)
        if not in_one_step:
            rename_by_way_of(self.temp, self.place, self._aside)
        old = self.temp if in_one_step else self._aside
        strange = self._strange_in(old) if os.listdir(old) else None
        if strange is None:
            return
        if in_one_step:
            exchanged(old, self.place)
        else:
            os.rename(self.place, self.temp)
            os.rename(old, self.place)
        if self._before is not None:
            raise changed(os.path.join(self.path, strange))
        raise _strange(self.path, strange, self.WHAT)

    def _strange_in(self, folder: str) -> str | None:
        """Return the path of a file for which the old folder must not be removed, or None."""
        if self._before is None:
            return self.strangers(folder)
        now = _files_of(folder)
        files = {*now, *self._before}
        return min(
            (file for file in files if now.get(file) != self._before.get(file)), default=None
        )

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
    """Give a file a further name; copy it if the system has no links."""
    os.makedirs(os.path.dirname(new), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), new)
        return
    try:
        os.link(path, new)
    except (OSError, NotImplementedError, AttributeError):  # a file system without links
        shutil.copy2(path, new)
