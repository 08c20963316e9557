"""Trees of folders with the links in them, as somebody has asked for who names such a tree."""

from __future__ import annotations

import os

from raconvert.errors import Unsafe
from raconvert.files.places import is_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_LINKED = 10_000  # folders that links lead to


def visible(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder, but for names that begin with a dot."""
    with os.scandir(folder) as entries:
        return [entry for entry in entries if not entry.name.startswith(".")]


def entries_below(
    folder: str, is_whole: Callable[[str], bool] = lambda path: False
) -> Iterator[os.DirEntry[str]]:
    """Yield all below a folder but folders; links are followed, not to a folder that they lie in.

    A folder that `is_whole` is not looked into, but yielded.

    Links that name one another make very many ways of few folders: `_MOST_LINKED` are followed.
    """
    linked = 0
    left = [(folder, os.path.realpath(folder), frozenset[str]())]  # with what links led to
    while left:
        place, real, above = left.pop()
        for entry in visible(place):
            there = os.path.join(real, entry.name)
            if not is_folder(entry) or is_whole(entry.path):
                yield entry
            elif not entry.is_symlink():
                left.append((entry.path, there, above))
            elif (there := os.path.realpath(there)) not in above and not _is_in(real, there):
                linked += 1
                if linked > _MOST_LINKED:
                    raise Unsafe(
                        "links in this folder lead to too many folders",
                        path=folder,
                        expected=f"at most {_MOST_LINKED}",
                        remedy="name the folders that are meant",
                    )
                left.append((entry.path, there, above | {there}))


def _is_in(path: str, folder: str) -> bool:
    """True if a path without links is a folder, or lies in it."""
    return os.path.join(path, "").startswith(os.path.join(folder, ""))
