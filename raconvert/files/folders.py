"""Folders: how a finished one takes its place, and what lies in one."""

from __future__ import annotations

import os
from errno import EEXIST, ENOTDIR, ENOTEMPTY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def rename_new(new: str, place: str) -> None:
    """Rename a folder to what is not there, or is empty; `FileExistsError` for all else."""
    try:
        os.rename(new, place)
    except OSError as error:
        if error.errno not in (ENOTEMPTY, EEXIST, ENOTDIR) or not os.path.lexists(place):
            raise
        raise FileExistsError(EEXIST, os.strerror(EEXIST), place) from error


def rename_by_way_of(new: str, place: str, old: str) -> None:
    """Rename a folder to what is there, which is renamed to `old` before."""
    try:
        os.rename(place, old)
        os.rename(new, place)
    except BaseException:
        if os.path.isdir(old) and not os.path.lexists(place):
            os.rename(old, place)
        raise


def walk(folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """As `os.walk`: each folder with the names of the folders and of the files in it.

    However deep they lie: that of Python 3.11 calls itself for each level.
    """
    left = [folder]
    while left:
        place = left.pop()
        inner: list[str] = []
        names: list[str] = []
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    (inner if _is_folder(entry) else names).append(entry.name)
        except OSError:  # gone, not to be read, or its path is too long
            continue
        paths = [os.path.join(place, name) for name in inner]
        yield place, inner, names
        left += [path for path in reversed(paths) if not os.path.islink(path)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
