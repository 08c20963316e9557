"""The files of a folder and of all folders in it: those that hold arrays, and the others by count.

The format of a file is that of its suffix. Files with another suffix, or none, are detected by the
content of two of each ending, and belong to a format if both do. Nothing else is opened.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from stat import S_ISREG

from raconvert import registry
from raconvert.conversion.inputs import is_whole, natural_key, natural_sorted, wanted
from raconvert.declared import Record
from raconvert.errors import RaconvertError, ReadFailed
from raconvert.files.paths import identity, is_folder, visible
from raconvert.files.source import Source
from raconvert.metadata import ITEMS_SUFFIX, SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


MOST_FILES = 200_000  # files whose names are kept; more are counted
_SORTED = 50_000  # names of one folder; more are sorted as texts, which needs no key for each
_DETECTED = 2  # files of an ending without a format that are detected
_ENDINGS = 40  # such endings that are looked at
SIDECARS, PARTNERS = "sidecars", "read with another file"
SPECIAL = "neither files nor folders"


class Entry(Record):
    """A file with arrays, or a folder that is one source: path below the root, bytes, format.

    The size is -1 if it cannot be known.
    """

    path: str
    size: int
    format: str


class Listing(Record):
    """The files of a folder. `others` are counts of files without arrays by their ending.

    `groups` are counts of files with arrays by the folder in the root that they are in, "" for the
    root itself; `unread` are folders that cannot be listed, with the reason. `beyond` is the number
    of files after the first `MOST_FILES`: they are in no count but this one.
    """

    root: str
    files: list[Entry]
    others: dict[str, int]
    groups: dict[str, int]
    unread: list[tuple[str, str]]
    beyond: int


def listing_of(root: str, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> Listing:
    """List a folder, of its files those that match the globs.

    Raises `ReadFailed` if it is not a folder that can be listed.
    """
    unread: list[tuple[str, str]] = []
    files: list[Entry] = []
    others: dict[str, list[Entry]] = {}
    apart: Counter[str] = Counter()
    known: dict[str, str] = {}
    count = 0
    for folder, name, entry in _entries(root, unread, lambda name: wanted(name, include, exclude)):
        count += 1
        if count > MOST_FILES:
            continue
        found = name if entry is None else _entry(folder, entry, known)
        if isinstance(found, str):
            apart[found] += 1
        elif found.format:
            files.append(found)
        else:
            others.setdefault(ending_of(name), []).append(found)
    if unread and unread[0][0] == "":
        raise ReadFailed(f"cannot be listed: {unread[0][1]}", path=root)
    left = {**_without_format(root, others, files), **apart}
    return Listing(root, files, left, groups_of(files), unread, max(0, count - MOST_FILES))


def _entries(
    root: str, unread: list[tuple[str, str]], is_wanted: Callable[[str], bool]
) -> Iterator[tuple[str, str, os.DirEntry[str] | None]]:
    """Yield folder, name and entry of each file; of a sidecar only what it is."""
    for folder, entries in _folders(root, unread):
        names = {entry.name for entry in entries}
        for entry in _in_order(entries):
            if _is_sidecar(entry.name, names):
                yield folder, SIDECARS, None
            elif is_wanted(entry.name):
                yield folder, entry.name, entry


def _without_format(
    root: str, others: dict[str, list[Entry]], files: list[Entry]
) -> dict[str, int]:
    """The counts of files by their ending; those whose content has a format join the `files`."""
    left = {}
    for number, (ending, some) in enumerate(sorted(others.items(), key=lambda one: -len(one[1]))):
        row = _detected(root, some) if number < _ENDINGS else ""
        if row:
            files += [one._replace(format=row) for one in some]
        else:
            left[ending] = len(some)
    return left


def groups_of(files: Iterable[Entry]) -> dict[str, int]:
    """The number of files in each folder of the root, and in the root itself, in order."""
    counts = Counter(group_of(one.path) for one in files)
    return {name: counts[name] for name in natural_sorted(counts)}


def group_of(path: str) -> str:
    """The folder in the root that a path below it is in; "" for the root itself."""
    folder, slash, _ = path.partition("/")
    return folder if slash else ""


def ending_of(name: str) -> str:
    """The part of a name from its last dot on; empty without one."""
    return os.path.splitext(name)[1].lower()


def without(listing: Listing, partners: set[str]) -> Listing:
    """The listing without files that are read with another one, which are counted as that."""
    files = [one for one in listing.files if one.path not in partners]
    count = len(listing.files) - len(files)
    others = {**listing.others, PARTNERS: count} if count else listing.others
    return listing._replace(files=files, others=others, groups=groups_of(files))


def _folders(
    root: str, unread: list[tuple[str, str]]
) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """Yield each folder, as its path below the root with a slash, and its files, in natural order.

    Links are followed, to each folder once.
    """
    seen = {identity(root)}
    left = [""]
    while left:
        below = left.pop()
        try:
            entries = visible(os.path.join(root, below))
        except OSError as error:
            unread.append((below.rstrip("/"), error.strerror or "unknown reason"))
            continue
        inside = []
        here = []
        for entry in entries:
            if not is_folder(entry) or is_whole(entry.path):
                here.append(entry)
            elif (one := identity(entry.path)) not in seen:
                seen.add(one)
                inside.append(f"{below}{entry.name}/")
        yield below, here
        left += sorted(inside, key=natural_key, reverse=True)


def _in_order(entries: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    if len(entries) > _SORTED:
        return sorted(entries, key=lambda entry: entry.name)
    return sorted(entries, key=lambda entry: natural_key(entry.name))


def _is_sidecar(name: str, names: set[str]) -> bool:
    return any(
        name.endswith(suffix) and name.removesuffix(suffix) in names
        for suffix in (SUFFIX, ITEMS_SUFFIX)
    )


def _entry(folder: str, entry: os.DirEntry[str], known: dict[str, str]) -> Entry | str:
    """A file with the format of its suffix, if it has one that is read; a folder with its own.

    `SPECIAL` for a pipe, a device or the like, which is never opened.
    """
    path = folder + entry.name
    if is_folder(entry):
        row = registry.row_of_folder(entry.path)
        return Entry(path, -1, "" if row is None else row.name)
    size = -1
    with suppress(OSError):  # a link that leads nowhere
        status = entry.stat()
        if not S_ISREG(status.st_mode):
            return SPECIAL
        size = status.st_size
    ending = entry.name[entry.name.find(".", 1) :] if "." in entry.name[1:] else ""
    if ending not in known:
        row = registry.by_suffix(f"x{ending}") if ending else None
        known[ending] = row.name if row is not None and row.reads else ""
    return Entry(path, size, known[ending])


def _detected(root: str, some: list[Entry]) -> str:
    """The format that the content of the first files of an ending shows; empty without one."""
    formats = set()
    for one in some[:_DETECTED]:
        try:
            formats.add(registry.detect(Source(os.path.join(root, one.path))).row.name)
        except (RaconvertError, OSError):
            return ""
    return formats.pop() if len(formats) == 1 else ""
