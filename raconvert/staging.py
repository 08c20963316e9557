"""Many files that appear together: written in a hidden folder first, then renamed, all or none."""

from __future__ import annotations

import os
from contextlib import suppress
from stat import S_IMODE

from raconvert.sidecar import is_ours, items_path_of, path_of
from raconvert.transfer import check_target, sync_file, sync_folder, write_failed


class Staging:
    """A folder beside the destinations in which all planes are written before any appears."""

    def __init__(self, template: str, *, sync: bool) -> None:
        self._template = template
        self._sync = sync
        self._folder = ""
        self._pairs: list[tuple[str, str]] = []
        self._left_over: list[str] = []

    def __enter__(self) -> Staging:
        return self

    def place(self, name: str) -> str:
        """Return where the file of this final name is to be written for now."""
        if not self._folder:
            self._folder = self._make()
        return os.path.join(self._folder, f"{len(self._pairs)}{os.path.splitext(name)[1]}")

    def add(self, staged: str, name: str, written: list[str], *, overwrite: bool) -> None:
        """Take in the file of a plane, and the sidecar that was written with it."""
        places = [name + path.removeprefix(staged) for path in written]
        for place in places:
            if place != name and not is_ours(place):
                check_target(place, overwrite=overwrite)
        self._pairs += zip(written, places, strict=True)
        if path_of(name) not in places and is_ours(path_of(name)):
            self._left_over += [path_of(name), items_path_of(name)]

    def _make(self) -> str:
        """Make the folder, as near to the destinations as there is one already."""
        from tempfile import mkdtemp

        parent = os.path.dirname(self._template.split("{", maxsplit=1)[0])
        while parent and not os.path.isdir(parent):
            parent = os.path.dirname(parent)
        try:
            return mkdtemp(prefix=".raconvert-", suffix=".tmp", dir=parent or ".")
        except OSError as error:
            raise write_failed(self._template, error) from error

    def publish(self) -> list[str]:
        """Rename all files to their places, or none; return the places."""
        made: list[str] = []
        done: list[tuple[str, str | None]] = []
        try:
            for staged, _ in self._pairs if self._sync else ():
                sync_file(staged)
            for folder in sorted({os.path.dirname(name) for _, name in self._pairs}):
                made += make_folders(folder)
            for staged, name in self._pairs:
                place = os.path.realpath(name) if os.path.islink(name) else name
                done.append((place, self._keep(place, staged)))
                os.replace(staged, place)
            for number, path in enumerate(self._left_over):
                kept = os.path.join(self._folder, f"{number}.left")
                with suppress(FileNotFoundError):
                    os.replace(path, kept)  # it goes with the folder
                    done.append((path, kept))
        except BaseException as error:
            _roll_back(made, done)
            if isinstance(error, OSError):
                raise write_failed(self._template, error) from error
            raise
        folders = {os.path.dirname(name): name for _, name in self._pairs}
        for name in folders.values() if self._sync else ():
            sync_folder(name)
        return [name for _, name in self._pairs]

    def _keep(self, place: str, staged: str) -> str | None:
        """Keep a second name of a file that is to be replaced, and give its mode to the new one."""
        if not os.path.exists(place):
            return None
        os.chmod(staged, S_IMODE(os.stat(place).st_mode))
        kept = f"{staged}.old"
        try:
            os.link(place, kept)
        except OSError:  # a file system without links
            os.replace(place, kept)
        return kept

    def __exit__(self, *_: object) -> None:
        if self._folder:
            import shutil

            shutil.rmtree(self._folder, ignore_errors=True)


def _roll_back(made: list[str], done: list[tuple[str, str | None]]) -> None:
    """Put back what was replaced, and remove the folders that were made."""
    for place, kept in reversed(done):
        with suppress(OSError):
            os.replace(kept, place) if kept else os.unlink(place)
    for folder in reversed(made):
        with suppress(OSError):  # not empty: something of it is in use
            os.rmdir(folder)


def make_folders(folder: str) -> list[str]:
    """Make a folder and what leads to it; return those that were not there."""
    missing = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        os.mkdir(path)
    return missing[::-1]
