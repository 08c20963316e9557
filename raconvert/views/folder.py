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

    The size is -1 for folders, and for links that lead nowhere.
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
    """List the files of a folder that match the globs.

    Raises `ReadFailed` if it is not a folder that can be listed.
    """
    unread: list[tuple[str, str]] = []
    files: list[Entry] = []
    others: dict[str, list[Entry]] = {}
    special: Counter[str] = Counter()  # sidecars, pipes and the like
    formats: dict[str, str] = {}
    count = 0
    for folder, name, entry in _entries(root, unread, lambda name: wanted(name, include, exclude)):
        count += 1
        if count > MOST_FILES:
            continue
        listed = name if entry is None else _entry(folder, entry, formats)
        if isinstance(listed, str):
            special[listed] += 1
        elif listed.format:
            files.append(listed)
        else:
            others.setdefault(ending_of(name), []).append(listed)
    if unread and unread[0][0] == "":
        raise ReadFailed(f"cannot be listed: {unread[0][1]}", path=root)
    counts = {**_without_format(root, others, files), **special}
    return Listing(root, files, counts, groups_of(files), unread, max(0, count - MOST_FILES))


def _entries(
    root: str, unread: list[tuple[str, str]], is_wanted: Callable[[str], bool]
) -> Iterator[tuple[str, str, os.DirEntry[str] | None]]:
    """Yield folder, name and entry of each file; for a sidecar, `SIDECARS` and no entry."""
    for folder, entries in _folders(root, unread):
        names = {entry.name for entry in entries}
        for entry in _in_order(entries):
            if is_sidecar(entry.name, names):
                yield folder, SIDECARS, None
            elif is_wanted(entry.name):
                yield folder, entry.name, entry


def _without_format(
    root: str, others: dict[str, list[Entry]], files: list[Entry]
) -> dict[str, int]:
    """The counts of files by their ending; those whose content has a format join the `files`."""
    counts = {}
    frequent_first = sorted(others.items(), key=lambda item: -len(item[1]))
    for number, (ending, some) in enumerate(frequent_first):
        name = _detected(root, some) if number < _ENDINGS else ""
        if name:
            files += [entry._replace(format=name) for entry in some]
        else:
            counts[ending] = len(some)
    return counts


def groups_of(files: Iterable[Entry]) -> dict[str, int]:
    """The number of files in each folder of the root, and in the root itself, in order."""
    counts = Counter(group_of(file.path) for file in files)
    return {name: counts[name] for name in natural_sorted(counts)}


def group_of(path: str) -> str:
    """The folder in the root that a path below it is in; "" for the root itself."""
    folder, slash, _ = path.partition("/")
    return folder if slash else ""


def ending_of(name: str) -> str:
    """The part of a name from its last dot on; empty without one."""
    return os.path.splitext(name)[1].lower()


def without(listing: Listing, partners: set[str]) -> Listing:
    """The listing without files that are read with another one; `PARTNERS` is their count."""
    files = [file for file in listing.files if file.path not in partners]
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
    waiting = [""]
    while waiting:
        below = waiting.pop()
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
            elif (folder := identity(entry.path)) not in seen:
                seen.add(folder)
                inside.append(f"{below}{entry.name}/")
        yield below, here
        waiting += sorted(inside, key=natural_key, reverse=True)


def _in_order(entries: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """Sort entries in natural order; very many of them as texts."""
    if len(entries) > _SORTED:
        return sorted(entries, key=lambda entry: entry.name)
    return sorted(entries, key=lambda entry: natural_key(entry.name))


def is_sidecar(name: str, names: set[str]) -> bool:
    """True for a file of metadata that belongs to another one of the same folder."""
    return any(
        name.endswith(suffix) and name.removesuffix(suffix) in names
        for suffix in (SUFFIX, ITEMS_SUFFIX)
    )


def _entry(folder: str, entry: os.DirEntry[str], formats: dict[str, str]) -> Entry | str:
    """A file with the format of its suffix, if that is read; a folder with its own format.

    `SPECIAL` for a pipe, a device or the like, which is never opened. `formats` caches the names
    of formats by suffix.
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
    if ending not in formats:
        row = registry.by_suffix(f"x{ending}") if ending else None
        formats[ending] = row.name if row is not None and row.reads else ""
    return Entry(path, size, formats[ending])


def _detected(root: str, some: list[Entry]) -> str:
    """The format that the content of the first files of an ending shows; empty without one."""
    formats = set()
    for entry in some[:_DETECTED]:
        try:
            formats.add(registry.detect(Source(os.path.join(root, entry.path))).row.name)
        except (RaconvertError, OSError):
            return ""
    return formats.pop() if len(formats) == 1 else ""
