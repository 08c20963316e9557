"""What lies in folders, and what patterns match: files, and folders that are one source each."""

from __future__ import annotations

import os

from raconvert.catalogue import ROWS, Row
from raconvert.files.places import is_folder, is_there
from raconvert.files.trees import entries_below, visible
from raconvert.registry import by_suffix, names_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def marks_of_whole() -> dict[str, Row]:
    """The files by which a folder is one source in a tree, too: of a format that has a suffix."""
    return {mark: row for row in ROWS if row.suffixes for mark in row.marks}


def is_whole(path: str) -> bool:
    """True if a folder is one source, in a tree of sources, too."""
    return any(os.path.isfile(os.path.join(path, mark)) for mark in marks_of_whole())


def row_of_url(url: str) -> Row | None:
    """The format of which a folder at a URL is one source, by its suffix or the files in it."""
    if names_folder(url):
        return by_suffix(url)
    return next((row for mark, row in marks_of_whole().items() if is_there(f"{url}/{mark}")), None)


def files_in(
    folder: str, recursive: bool, include: Sequence[str], exclude: Sequence[str]
) -> Iterable[str]:
    """Yield what is in a folder and has the suffix of a readable format, or is one source."""
    readable = tuple(row for row in ROWS if row.reads)
    for entry in entries_below(folder, is_whole) if recursive else visible(folder):
        known = include or by_suffix(entry.name, readable) or is_folder(entry)
        if known and wanted(entry.name, include, exclude) and is_source(entry):
            yield entry.path


def is_source(entry: os.DirEntry[str]) -> bool:
    """True for a file, and for a folder that is one source."""
    return not is_folder(entry) or is_whole(entry.path)


def with_whole(found: list[str]) -> list[str]:
    """What a pattern matches, without folders but those that are one source, without its files."""
    whole = {path for path in found if os.path.isdir(path) and is_whole(path)}
    inside = tuple(os.path.join(path, "") for path in whole)
    files = [path for path in found if not os.path.isdir(path) or path in whole]
    return [path for path in files if not path.startswith(inside)] if inside else files


def wanted(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """True for a name that a glob of `include` takes, or there is none, and none of `exclude`."""
    if not include and not exclude:
        return True
    from fnmatch import fnmatch

    if any(fnmatch(name, pattern) for pattern in exclude):
        return False
    return not include or any(fnmatch(name, pattern) for pattern in include)
