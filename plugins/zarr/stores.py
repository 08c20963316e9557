"""Stores of a hierarchy: the files by key of a folder, or of one at a URL; never outside of it.

A key is a path below the root of the store. Links are followed only to files in the same folder
tree, and links to folders are not followed.
"""

from __future__ import annotations

import os
from itertools import islice

from raconvert.errors import Corrupt, RaconvertError, ReadFailed, Unsafe, Unsupported
from raconvert.files.folder_target import Folder, check_folder
from raconvert.files.paths import is_remote
from raconvert.files.source import Source

from .header import document, grid_of
from .tables import (
    MARKS,
    MAX_RANK,
    V2_ALL,
    V2_ARRAY,
    V2_ATTRIBUTES,
    V2_GROUP,
    V3_FILE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .header import Node

    Entry = tuple[str, os.DirEntry[str]]

WHAT = "a Zarr hierarchy"
DOCUMENTS = frozenset((V3_FILE, V2_ARRAY, V2_GROUP, V2_ATTRIBUTES, V2_ALL))


class Store:
    """The files of one hierarchy: `root` is its folder, or the URL of that."""

    def __init__(self, source: Source, root: str) -> None:
        self.root = root.rstrip("/") or root
        self.remote = is_remote(root)
        self.source = source
        self.listed: list[str] = []  # keys of nodes in the order of consolidated metadata
        # Files are named from here: the rules of `Source.named` keep them in its folder.
        self._listing = source.at(self.root + "/" + V3_FILE)
        if not self.remote:
            self._refuse_link(V3_FILE)

    def _refuse_link(self, key: str) -> None:
        """Raise `Unsafe` for a link: other files would be looked for beside its target."""
        if os.path.islink(self.path(key)) and not self.source.trust_external:
            raise Unsafe(
                "metadata is a link, which may lead out of the folder", path=self.path(key),
                remedy="copy the file, or follow links with `--trust external`",
            )  # fmt: skip

    def path(self, key: str) -> str:
        """The path, or URL, of a key; for the root, the path that the user named."""
        return f"{self.root}/{key}" if key else self.source.path

    def _folder(self, key: str) -> str:
        return f"{self.root}/{key}" if key else self.root

    def find(self, key: str, what: str) -> Source | None:
        """The source of a key; None if it does not exist. The caller closes it.

        Raises `Unsafe` for a file outside the folder, and for one that is not a regular file.
        """
        if self.remote:
            return self._find_at_url(key, what)
        return self._listing.named(key, what) if os.path.lexists(self.path(key)) else None

    def _find_at_url(self, key: str, what: str) -> Source | None:
        """`find` at a URL, with one request: that for the first bytes."""
        from raconvert.files.remote.listing import is_missing, place_of_partner

        source = self._listing.at(place_of_partner(self._listing.path, key, what))
        try:
            _ = source.size
        except ReadFailed as error:
            if is_missing(error):
                return None
            raise
        return source

    def text(self, key: str, most: int | None = None) -> bytes | None:
        """Read a whole metadata file; None if it does not exist. Raises `Corrupt` above `most`."""
        most = self.source.limits.document_bytes if most is None else most
        source = self.find(key, f"file '{key[-200:]}'")
        if source is None:
            return None
        try:
            if source.size > most:
                raise Corrupt(
                    "metadata is too long", path=source.path, expected=f"at most {most} bytes",
                    got=source.size,
                )  # fmt: skip
            return source.read_exact(0, source.size, "the metadata")
        finally:
            source.close()

    def folders(self, key: str) -> tuple[list[str], list[str]]:
        """The names of the folders in that of a key, sorted, and of links to folders."""
        if self.remote:
            return self._folders_at_url(key), []
        inner, links = [], []
        with os.scandir(self._folder(key)) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    inner.append(entry.name)
                elif entry.is_symlink() and entry.is_dir():
                    links.append(entry.name)
        return sorted(inner), sorted(links)

    def _folders_at_url(self, key: str) -> list[str]:
        from raconvert.files.remote.listing import folders_in, is_listed

        if not is_listed(self.root):
            raise Unsupported(
                "a web server does not tell which arrays a group has", path=self.path(key),
                expected="consolidated metadata",
                remedy="name an array in it, or write it with consolidated metadata",
            )  # fmt: skip
        return folders_in(self._folder(key))

    def count(self, key: str, node: Node) -> int | None:
        """Count the chunks of an array that exist; None at a URL, and for too many to count."""
        if self.remote:
            return None
        most = self.source.limits.counted_files
        number = sum(1 for _ in islice(self._keys(key, node), most + 1))
        return number if number <= most else None

    def chunks(self, key: str, node: Node) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yield the index in the grid and the bytes of each chunk of an array in a folder."""
        for index, entry in self._keys(key, node):
            try:
                yield index, entry.stat(follow_symlinks=False).st_size
            except OSError:
                continue

    def _keys(self, key: str, node: Node) -> Iterator[tuple[tuple[int, ...], os.DirEntry[str]]]:
        for name, entry in files_below(self._folder(key)):
            index = node.index_of(name)
            if index is not None:
                yield index, entry


def files_below(folder: str, above: str = "", depth: int = MAX_RANK) -> Iterator[Entry]:
    """Yield the path below a folder, with ``/``, and the entry of each file; no link is followed.

    Folders that cannot be listed have no files, nor have those more than `depth` inside each other.
    """
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield above + entry.name, entry
                elif depth:
                    yield from files_below(entry.path, f"{above}{entry.name}/", depth - 1)
    except OSError:
        return


# Targets ------------------------------------------------------------------------------------------


def _strangers(folder: str) -> str | None:
    """The path of a file in a folder that is neither metadata nor a chunk; None if all are."""
    if not any(os.path.isfile(os.path.join(folder, mark)) for mark in MARKS):
        return next(iter(os.listdir(folder)))
    left = [folder]
    while left:
        below = left.pop()
        array = _array_in(below)
        for name in sorted(os.listdir(below)):
            path = os.path.join(below, name)
            strange: str | None = name  # all but what follows
            if os.path.islink(path):
                pass
            elif name in DOCUMENTS and os.path.isfile(path):
                strange = None
            elif array is not None:
                strange = _not_a_chunk(array, path, name)
            elif any(os.path.isfile(os.path.join(path, mark)) for mark in MARKS):
                strange = None
                left.append(path)
            if strange is not None:
                return os.path.relpath(os.path.join(below, strange), folder).replace(os.sep, "/")
    return None


def _array_in(folder: str) -> Node | None:
    """The array whose metadata a folder has; None for a group, and if it cannot be read."""
    try:
        for name in (V3_FILE, V2_ARRAY):
            path = os.path.join(folder, name)
            if os.path.lexists(path):
                source = Source(path)
                try:
                    nbytes = min(source.size, source.limits.document_bytes)
                    fields = document(source.read_at(0, nbytes), path, source.limits)
                finally:
                    source.close()
                return grid_of(fields, path)
    except RaconvertError:
        return None
    return None


def _not_a_chunk(array: Node, path: str, name: str) -> str | None:
    """The first file, in a folder or itself, that is not a chunk of an array; None if all are."""
    if not os.path.isdir(path):
        return None if array.index_of(name) is not None else name
    count = 0
    for file, entry in files_below(path, f"{name}/"):
        count += 1
        if array.index_of(file) is None or entry.is_symlink():
            return file
    return None if count or array.separator == "/" else name


def check_target(path: str, *, overwrite: bool) -> None:
    """Raise `TargetExists` if a destination exists, unless it is an empty folder.

    With `overwrite`, a folder with nothing but a hierarchy may be replaced.
    """
    check_folder(path, overwrite=overwrite, strangers=_strangers, what=WHAT)


class ZarrTarget(Folder):
    """A hierarchy to be written: as `temp` beside `path`, then renamed to it."""

    __slots__ = ()
    WHAT = WHAT

    def strangers(self, folder: str) -> str | None:
        """The path of a file in a folder that is not part of a hierarchy, or None."""
        return _strangers(folder)


def target(path: str, **named: Any) -> ZarrTarget:
    """The target for a destination."""
    return ZarrTarget(path.rstrip("/" + os.sep) or path, **named)
