"""The source tree: which of its files hold arrays, and which are left out.

A file is taken by its suffix; one whose suffix no format has is opened and taken by content. Links
to files are followed, links to folders are not (a tree may name itself). Names that begin with a
dot are not looked at. A folder that is a bundle is one source. Files that belong to another one
(sidecars, and what a header names) go with it and are not sources of their own.
"""

from __future__ import annotations

import os
from contextlib import suppress
from stat import S_ISDIR, S_ISLNK, S_ISREG

from raconvert import registry
from raconvert.bundle.members import MANIFEST
from raconvert.conversion.inputs import marks_of_whole, natural_key, natural_sorted
from raconvert.conversion.isolated import Jobs, outcomes
from raconvert.conversion.options import Settings
from raconvert.conversion.read import open_spec
from raconvert.declared import Record
from raconvert.errors import NotSupportedYet, RaconvertError, ReadFailed, UsageError
from raconvert.files import small
from raconvert.files.paths import identity, is_remote
from raconvert.files.paths import walk as walk_folders
from raconvert.files.quoting import operand
from raconvert.files.source import Source
from raconvert.metadata import ITEMS_SUFFIX, SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from raconvert.catalogue import Row
    from raconvert.files.remote.listing import Entry


# What a source tree holds ------------------------------------------------------------------------


# Start of the reason why a file or folder that may hold arrays is left out.
UNREADABLE = "cannot be read"


class Found(Record):
    """One file of the tree."""

    path: str  # path below the root, with "/"
    size: int
    mtime: int  # nanoseconds
    format: str = ""  # name of the format, if the suffix does not decide it


class Tree(Record):
    """Contents of a source tree."""

    files: list[Found]  # in the order of their folders and, inside one, natural order of names
    left_out: list[tuple[str, str]]  # path below the root, and why
    folders: set[tuple[int, int]] = set()  # noqa: RUF012 - never changed; identities of its folders


# Files of a tree that go with another one: sidecars, and what headers name -----------------------


NOT_ASKED = "not asked for"
_MOST = 1000  # files opened per tree to look for names of other files
_SMALL = 64 << 10  # bytes; a header with its data in other files is smaller


def without_partners(root: str, files: list[Found], left_out: list[tuple[str, str]]) -> Tree:
    """Leave out files that belong to other files of the tree; the reason names those."""
    # A file without a suffix of ours may be the data of a header beside it.
    candidates = {path for path, why in left_out if why != NOT_ASKED}
    candidates |= {file.path for file in files if file.format}
    candidates |= {file.path for file in files if file.path.endswith((SUFFIX, ITEMS_SUFFIX))}
    if not candidates:
        return Tree(files, left_out)
    owner = dict(_sidecars({file.path for file in files}, candidates))
    candidates -= owner.keys()
    owner.update(_named(root, [file for file in files if file.path not in owner], candidates))
    kept = [file for file in files if file.path not in owner]
    left_out = [(path, why) for path, why in left_out if path not in owner]
    left_out += [(path, f"goes with {file}") for path, file in owner.items()]
    return Tree(kept, left_out)


def _sidecars(files: set[str], candidates: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the metadata files among `candidates`, each with the file that it describes."""
    for path in candidates:
        for suffix in (SUFFIX, ITEMS_SUFFIX):
            if path.endswith(suffix) and path.removesuffix(suffix) in files:
                yield path, path.removesuffix(suffix)


def _named(root: str, files: list[Found], candidates: set[str]) -> Iterator[tuple[str, str]]:
    """Yield each of the `candidates` that another file names, with that file.

    At most `_MOST` files are opened: those with the same stem as a candidate in their folder, and
    small ones of a format that names files. The others are judged by their suffixes: if one .nhdr
    names its .raw, all others name theirs.
    """
    stems: dict[str, list[str]] = {}
    for path in candidates:
        stems.setdefault(_stem(path), []).append(path)
    above = {folder for path in candidates for folder in _folders(path)}
    beside = [file for file in files if _stem(file.path) in stems and _is_single(file)]
    others = [f for f in files if _may_name(f, above) and _stem(f.path) not in stems]
    opened = [*beside, *others][:_MOST]
    sources = {file.path for file in files}  # only a header removes a file from these
    pairs: set[tuple[str, str]] = set()
    for path, header in _used(root, opened, candidates):
        pairs.add((_ending(header), _ending(path)))
        yield path, header
    for file in beside[_MOST:]:
        for path in stems[_stem(file.path)]:
            if path not in sources and (_ending(file.path), _ending(path)) in pairs:
                yield path, file.path


def _used(root: str, files: list[Found], candidates: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the candidates that are read when one of the files is opened, with that file."""

    def paths_read(number: int) -> list[str]:
        with open_spec(os.path.join(root, files[number].path), Settings()) as opened:
            return sorted(opened.used)

    paths = [os.path.join(root, file.path) for file in files]
    for file, answer in zip(files, outcomes(paths, Jobs(paths_read), fewest=1), strict=True):
        if isinstance(answer, RaconvertError | OSError):
            continue  # reported when the file is converted
        for path in answer:
            below = os.path.relpath(path, root).replace(os.sep, "/")
            if below in candidates and below != file.path:
                yield below, file.path


def _stem(path: str) -> str:
    """A path up to the first dot of its name."""
    folder, slash, name = path.rpartition("/")
    return folder + slash + name.partition(".")[0]


def _ending(path: str) -> str:
    """Return the part of a file's name behind its first dot."""
    return path.rpartition("/")[2].partition(".")[2]


def _folders(path: str) -> Iterator[str]:
    """Yield all folders that a file lies in, up to the root (an empty text)."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def _is_single(file: Found) -> bool:
    return not (file.format and registry.by_name(file.format).folder)


def _may_name(file: Found, above: set[str]) -> bool:
    """True if a file may name others; `above` are the folders above all candidates."""
    if file.size > _SMALL or file.path.rpartition("/")[0] not in above:
        return False
    row = registry.by_name(file.format) if file.format else registry.by_suffix(file.path)
    return row is not None and row.names_files and not row.folder


def walk(
    root: str,
    *,
    from_: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Tree:
    """List the files of a tree that hold arrays, and the others.

    `include` and `exclude` are globs over names, or, if they have a ``/``, over paths below the
    root. Raises `ReadFailed` if the root is not a folder that can be read, `UsageError` if it is
    one source.
    """
    at_url = is_remote(root)
    if not at_url and not os.path.isdir(root):
        raise ReadFailed("is not a folder", path=root, remedy="name the root of a tree")
    if not at_url and (row := _row_of_whole(root)) is not None:
        raise UsageError(
            f"is {_a(row)}, which is one source and not a tree", path=root,
            remedy=f"raconvert {operand(root)} -o DST, or name the folder that it is in",
        )  # fmt: skip
    wanted = _wanted(include, exclude)
    files: list[Found] = []
    left_out: list[tuple[str, str]] = []
    takes = _Suffixes(from_)
    folders: set[tuple[int, int]] = set()
    for entry, problem in _entries_at_url(root) if at_url else _entries(root, folders):
        path = entry[0]
        if problem:
            left_out.append((path, problem))
        elif wanted and not wanted(path, path[path.rfind("/") + 1 :]):
            left_out.append((path, NOT_ASKED))
        elif takes(path) or entry.format or include:
            files.append(entry)
        else:
            name, why = _by_content(root, entry, from_)
            if name:
                files.append(entry._replace(format=name))
            else:
                left_out.append((path, why))
    return without_partners(root, files, left_out)._replace(folders=folders)


class _Suffixes:
    """Predicate: True if a file has the suffix of a format that is read; cached for each suffix."""

    def __init__(self, from_: str | None) -> None:
        self._rows: tuple[Row, ...] = (
            registry.readable() if from_ is None else (registry.by_name(from_),)
        )
        self._cached: dict[str, bool] = {}

    def __call__(self, path: str) -> bool:
        dot = path.find(".", path.rfind("/") + 2)
        if dot < 0:
            return False
        read = self._cached.get(path[dot:])
        if read is None:
            ending = path[dot:].lower()
            read = registry.by_suffix("x" + ending, self._rows) is not None
            self._cached[path[dot:]] = read
        return read


def _entries(root: str, seen: set[tuple[int, int]]) -> Iterator[tuple[Found, str]]:
    """Yield every file of a tree with its problem, if it has one; folders in order of name.

    The identity of each folder is added to `seen`. A stack, not recursion: folders may be nested as
    deep as a path is long.
    """
    stack = [""]
    while stack:
        below = stack.pop()
        folders: list[str] = []
        yield from _of_folder(os.path.join(root, below), below, folders, seen)
        stack += [f"{below}{name}/" for name in reversed(folders)]


def _of_folder(
    folder: str, below: str, folders: list[str], seen: set[tuple[int, int]]
) -> Iterator[tuple[Found, str]]:
    """Yield the files of one folder, with problems; the names of its folders go to `folders`."""
    if own := identity(folder):
        seen.add(own)
    try:
        entries = dict(_looked_at(folder))
    except OSError as error:
        yield Found(below.rstrip("/") or ".", 0, 0), f"{UNREADABLE}: {error.strerror}"
        return
    if below and (row := _row_of_whole(folder)) is not None:
        yield _folder_as_source(folder, below.rstrip("/"), row), ""
        return
    new = tuple.__new__  # faster than calling the class, for very many files
    for name in natural_sorted(entries):
        facts = entries[name]
        if facts is not None:
            yield new(Found, (below + name, *facts, "")), ""
        elif (other := _not_regular(os.path.join(folder, name))) is None:
            folders.append(name)
        else:
            size, mtime, problem = other
            yield Found(below + name, size, mtime), problem


def _looked_at(folder: str) -> Iterable[tuple[str, tuple[int, int] | None]]:
    """Pair each name in a folder with size and time of a regular file; with None for others."""
    if os.stat not in os.supports_dir_fd or os.listdir not in os.supports_fd:
        return [(name, None) for name in os.listdir(folder) if name[0] != "."]
    handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        names = [name for name in os.listdir(handle) if name[0] != "."]
        return zip(names, small.look_at_all(names, handle), strict=True)
    finally:
        os.close(handle)


def _not_regular(path: str) -> tuple[int, int, str] | None:
    """Size, time of change and problem of a link or special file; None for a folder."""
    try:
        link = S_ISLNK(os.lstat(path).st_mode)
        status = os.stat(path)
    except FileNotFoundError:
        return 0, 0, "is a link that leads nowhere"
    except OSError as error:
        return 0, 0, f"{UNREADABLE}: {error.strerror}"
    problem = "" if S_ISREG(status.st_mode) else "is not a regular file"
    if S_ISDIR(status.st_mode):
        if not link:
            return None
        problem = "is a link to a folder"
    return status.st_size, status.st_mtime_ns, problem


def _entries_at_url(root: str) -> Iterator[tuple[Found, str]]:
    """Yield every file below a URL with its problem, in the order in which local ones come."""
    from raconvert.files.remote.listing import entries, is_safe, path_below

    listed = {entry: path_below(root, entry.url) for entry in entries(root, recursive=True)}
    if not listed:
        raise ReadFailed("is not a folder with files", path=root, remedy="name the root of a tree")
    bundles = {p.rpartition("/")[0] for p in listed.values() if p.rpartition("/")[2] == MANIFEST}
    for whole in _whole_at_url(listed):
        yield whole, "" if is_safe(whole.path) else "has a name that would lead out of a folder"
    for entry in sorted(listed, key=lambda entry: _order(listed[entry])):
        path, problem = listed[entry], ""
        if not is_safe(path):
            problem = "has a name that would lead out of a folder"
        elif any(path.startswith(f"{folder}/") for folder in bundles):
            problem = "is in a bundle, which is not read from a URL"
        elif "/." in f"/{path}":
            continue
        yield Found(path, entry.facts.size, entry.facts.mark), problem


def _whole_at_url(paths: dict[Entry, str]) -> list[Found]:
    """List the folders that are one source, except bundles; remove their files from `paths`."""
    from raconvert.files.remote.listing import folders_with

    marks = marks_of_whole()
    inside = folders_with(marks, paths.values())
    entries_in: dict[str, list[Entry]] = {}
    rows: dict[str, Row] = {}
    for entry, path in paths.items():
        if path in inside:
            entries_in.setdefault(inside[path], []).append(entry)
            folder, _, name = path.rpartition("/")
            if folder == inside[path] and name in marks:
                rows[folder] = marks[name]
    sources = []
    for folder, entries in sorted(entries_in.items(), key=lambda pair: _order(pair[0])):
        size = sum(entry.facts.size for entry in entries)
        mark = sum(entry.facts.mark for entry in entries) % (1 << 63)
        sources.append(Found(folder, size, mark, rows[folder].name))
        for entry in entries:
            del paths[entry]
    return sources


def _order(path: str) -> list[tuple[int, list[Any]]]:
    """A key that sorts the files of a folder before the folders in it, each in natural order."""
    *folders, name = path.split("/")
    return [*((1, natural_key(folder)) for folder in folders), (0, natural_key(name))]


def _row_of_whole(folder: str) -> Row | None:
    """The format of a folder that is one source; None for others.

    Names of files are not enough, since other programs use the same: one must have the magic.
    """
    row = registry.row_of_folder(folder)
    if row is None:
        return None
    if row.together:
        return row
    for mark in row.marks:
        with suppress(RaconvertError, OSError):
            if registry.matches(row.magic, Source(os.path.join(folder, mark)).head):
                return row
    return None


def _a(row: Row) -> str:
    """Name a folder of a format in a message, with its article."""
    return f"a {row.name}" if not row.suffixes else f"a folder of {row.title}"


def _folder_as_source(folder: str, path: str, row: Row) -> Found:
    """The entry of a folder that is one source: the bytes of all its files, the newest time."""
    size = newest = 0
    for above, _, names in walk_folders(folder):
        for name in names:
            with suppress(OSError):  # reported when the folder is converted
                status = os.stat(os.path.join(above, name))
                size, newest = size + status.st_size, max(newest, status.st_mtime_ns)
    return Found(path, size, newest, row.name)


def _by_content(root: str, entry: Found, from_: str | None) -> tuple[str, str]:
    """Return the format of a file by its content, or the reason why it has none."""
    if from_ is not None:
        return "", f"has not the suffix of {from_}"
    try:
        detection = registry.detect(Source(os.path.join(root, entry.path)))
    except NotSupportedYet as error:
        return "", error.what
    except (RaconvertError, OSError):
        return "", "no format claims it"
    return detection.row.name, ""


def _wanted(include: Sequence[str], exclude: Sequence[str]) -> Callable[[str, str], bool] | None:
    """Return a predicate of path and name for the globs; None if all files are wanted."""
    if not include and not exclude:
        return None
    from fnmatch import fnmatch

    def matches(patterns: Sequence[str], path: str, name: str) -> bool:
        return any(fnmatch(path if "/" in glob else name, glob) for glob in patterns)

    def wanted(path: str, name: str) -> bool:
        return not matches(exclude, path, name) and (not include or matches(include, path, name))

    return wanted
