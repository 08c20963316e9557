"""Many files that appear together: written into a hidden folder, then renamed, all or none."""

from __future__ import annotations

import os
from contextlib import suppress

from raconvert.declared import Record
from raconvert.files.paths import (
    check_target,
    exists,
    identity,
    link,
    make_folders,
    old_mode,
    rename_new,
    sync_folder,
    temporary_prefix,
    write_failed,
)
from raconvert.files.target import sync_file
from raconvert.files.unfinished import Unfinished
from raconvert.metadata.sidecar import left_over


class Staged(Record):
    """One finished file: its path in the hidden folder, and its destination."""

    path: str
    name: str
    overwrite: bool  # True: it may replace an existing file


class Step(Record):
    """A step of the transaction, to be undone if another file fails."""

    path: str  # of the destination
    backup: str  # the second path of the file that was there
    new: tuple[int, int] | None  # the identity of the new file; None: a file was removed


class Staging:
    """A folder near the destinations in which all files are written before any appears."""

    def __init__(self, template: str, *, sync: bool) -> None:
        self._template = template
        self._sync = sync
        self._folder = ""
        self._files: list[Staged] = []
        self._left_over: list[str] = []  # sidecars of replaced files, to be removed
        self._made: list[str] = []  # folders
        self._done: list[Step] = []

    def __enter__(self) -> Staging:
        return self

    def place(self, name: str, *, same_name: bool = False) -> str:
        """Return the path in the hidden folder for the file of this destination.

        `same_name`: it has the same name, for formats whose files contain it.
        """
        if not self._folder:
            self._folder = self._make()
        if same_name:
            return os.path.join(self._folder, os.path.basename(name))
        return os.path.join(self._folder, f"{len(self._files)}{os.path.splitext(name)[1]}")

    def add(self, staged: str, name: str, written: list[str], *, overwrite: bool) -> None:
        """Add a finished file for the destination `name`, and all that was written with it."""
        left = left_over(name, overwrite=overwrite)
        destinations = [_destination(path, staged, name) for path in written]
        for path, destination in zip(written, destinations, strict=True):
            replaces = overwrite or destination in left
            if destination != name:
                check_target(destination, overwrite=replaces)
            elif os.path.islink(name):  # its target is written, as by `Target`
                destination = os.path.realpath(name)  # noqa: PLW2901
            self._files.append(Staged(path, destination, replaces))
        self._left_over += [path for path in left if path not in destinations]

    def _make(self) -> str:
        """Make the folder in the existing folder nearest to the destinations."""
        from tempfile import mkdtemp

        parent = os.path.dirname(self._template.split("{", maxsplit=1)[0])
        while parent and not os.path.isdir(parent):
            parent = os.path.dirname(parent)
        try:
            return mkdtemp(prefix=temporary_prefix(), suffix=".tmp", dir=parent or ".")
        except OSError as error:
            raise write_failed(self._template, error) from error

    def publish(self) -> list[str]:
        """Rename all files to their destinations, or none; return the destinations."""
        try:
            for file in self._files if self._sync else ():
                sync_file(file.path)
            with Unfinished(file.name for file in self._files) as unfinished:
                unfinished.begin()
                self._publish_all()
        except BaseException as error:
            self.undo(error)
            if isinstance(error, OSError):
                raise write_failed(self._template, error) from error
            raise
        folders = {os.path.dirname(file.name): file.name for file in self._files}
        for name in folders.values() if self._sync else ():
            sync_folder(name)
        return [file.name for file in self._files]

    def _publish_all(self) -> None:
        for folder in sorted({os.path.dirname(file.name) for file in self._files}):
            self._made += make_folders(folder)
        for file in self._files:
            self._done.append(Step(file.name, f"{file.path}.old", identity(file.path)))
            _publish_one(file, self._done[-1].backup)
        for number, path in enumerate(self._left_over):
            self._done.append(Step(path, os.path.join(self._folder, f"{number}.left"), None))
            with suppress(FileNotFoundError):
                os.replace(path, self._done[-1].backup)  # it is removed with the folder

    def undo(self, error: BaseException) -> None:
        """Put everything back as before `publish`; if that fails, `error` names the backups."""
        if not _roll_back(self._made, self._done):
            error.add_note(f"what was there before is kept in '{self._folder}'")
            self._folder = ""

    def __exit__(self, *_: object) -> None:
        if self._folder:
            import shutil

            shutil.rmtree(self._folder, ignore_errors=True)


def _destination(path: str, staged: str, name: str) -> str:
    """Return the destination of a file that was written with a staged file, that of `name`."""
    if path.startswith(staged):
        return name + path.removeprefix(staged)
    return os.path.join(os.path.dirname(name), os.path.basename(path))


def _publish_one(file: Staged, backup: str) -> None:
    """Rename a staged file; it gets the mode of the file that it replaces, which `backup` keeps."""
    if not file.overwrite:
        try:
            rename_new(file.path, file.name)
        except FileExistsError as error:
            raise exists(file.name, "appeared while it was written") from error
        return
    if os.path.lexists(file.name):
        mode = old_mode(file.name)
        if mode is not None:
            os.chmod(file.path, mode)
        try:
            link(file.name, backup, follow_symlinks=False)
        except OSError:  # a file system without links
            os.replace(file.name, backup)
    os.replace(file.path, file.name)


def _roll_back(made: list[str], done: list[Step]) -> bool:
    """Put back replaced files, remove new files and folders; True if all files are as before."""
    whole = True
    for path, backup, new in reversed(done):
        try:
            if os.path.lexists(backup):
                os.replace(backup, path)
            elif new is not None and identity(path, follow=False) == new:
                os.unlink(path)
        except OSError:
            whole = False
    for folder in reversed(made):
        with suppress(OSError):  # not empty: somebody else uses it
            os.rmdir(folder)
    return whole
