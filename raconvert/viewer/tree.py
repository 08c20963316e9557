"""The tree of what is looked at: folders, files, groups and arrays, each with a number.

A browser names nothing but numbers that it was given, so that it cannot name what lies elsewhere.
Folders are listed when they are asked for, links are followed, as wherever somebody names a tree.
A few files are open at once, those that were looked at last.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import contextmanager
from itertools import islice
from threading import Lock, RLock

from raconvert.arrays.dtypes import few_lengths, size
from raconvert.conversion.inputs import is_whole, natural_key
from raconvert.conversion.read import open_spec
from raconvert.errors import Changed, RaconvertError, ReadFailed, UsageError, quoted
from raconvert.files.paths import entries_below, is_folder, is_remote, visible
from raconvert.files.source import read_failed
from raconvert.inspect.info import type_text
from raconvert.metadata import ITEMS_SUFFIX, SUFFIX
from raconvert.registry import by_suffix, is_one_source, readable
from raconvert.viewer.regions import Wholes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import RLock as _RLock
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.conversion.options import Settings
    from raconvert.conversion.read import Opened

FOLDER, FILE, GROUP, ARRAY = "folder", "file", "group", "array"
OPEN_FILES = 8  # those that were looked at last stay open
PAGE = 200  # rows of one answer
SEARCHED = 50_000  # files of a folder among which names are searched


class Node:
    """A folder, a file, a group of a file or one of its arrays.

    `path` is what opens it or its file; `inside` are the parts of its name in that.
    """

    __slots__ = ("above", "children", "inside", "kind", "number", "path", "place")

    def __init__(
        self, number: int, kind: str, path: str, inside: tuple[str, ...], above: Node | None
    ) -> None:
        self.number: int = number
        self.kind: str = kind
        self.path: str = path
        self.inside: tuple[str, ...] = inside
        self.above: Node | None = above
        self.place: int = -1  # of an array in its file
        self.children: list[Node] | None = None

    @property
    def name(self) -> str:
        """The last part of the name."""
        if self.inside:
            return self.inside[-1]
        return os.path.basename(self.path.rstrip("/")) or self.path

    @property
    def file(self) -> Node:
        """The node of the file that it is, or lies in."""
        node = self
        while node.above is not None and node.kind in (GROUP, ARRAY):
            node = node.above
        return node


class Held:
    """A file that is open, or will be: one at a time reads from it."""

    def __init__(self) -> None:
        self.lock: _RLock = RLock()
        self.opened: Opened | None = None
        self.users: int = 0
        self.looks: dict[int, Any] = {}  # what was found out about its arrays, by place

    def close(self) -> None:
        """Close the file; whoever asks next opens it again."""
        with self.lock:
            opened, self.opened = self.opened, None
            self.looks.clear()
            if opened is not None:
                opened.bundle.close()


class Tree:
    """All nodes below one source or folder, and the files that are open. Threads may share it."""

    def __init__(self, path: str, settings: Settings) -> None:
        self.settings: Settings = settings
        self.wholes: Wholes = Wholes()
        self._nodes: list[Node] = []
        self._known: dict[tuple[Any, ...], Node] = {}
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._guard = Lock()
        whole = is_remote(path) or not os.path.isdir(path) or is_one_source(path)
        self.root: Node = self._node(FILE if whole else FOLDER, path, (), None)
        if whole:
            with self.opened(self.root):  # an error is of the command, before there is a page
                pass
        self.folder: str = path if not whole else os.path.dirname(os.path.abspath(path))

    def node(self, number: int) -> Node:
        """The node of this number; `UsageError` for any other."""
        with self._guard:
            if 0 <= number < len(self._nodes):
                return self._nodes[number]
        raise UsageError(f"'{number}' is not the number of anything that was listed")

    def _node(
        self, kind: str, path: str, inside: tuple[str, ...], above: Node | None, place: int = -1
    ) -> Node:
        with self._guard:
            key = (kind, path, inside, place)
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = Node(len(self._nodes), kind, path, inside, above)
                found.place = place
                self._nodes.append(found)
            return found

    # Files that are open --------------------------------------------------------------------------

    @contextmanager
    def opened(self, node: Node) -> Iterator[Held]:
        """Hold the file of a node open for the length of the block. Raises what opening raises."""
        path = node.file.path
        with self._guard:
            held = self._held.setdefault(path, Held())
            self._held.move_to_end(path)
            held.users += 1
            idle = [name for name, one in self._held.items() if not one.users]
            surplus = idle[: max(0, len(self._held) - OPEN_FILES)]
            left = [self._held.pop(name) for name in surplus]
        for one in left:
            one.close()
        try:
            with held.lock:
                if held.opened is None:
                    held.opened = open_spec(path, self.settings)
                yield held
        except (Changed, ReadFailed):
            held.close()
            node.file.children = None
            raise
        finally:
            with self._guard:
                held.users -= 1

    @contextmanager
    def array(self, node: Node) -> Iterator[tuple[Held, Array]]:
        """Hold the file of an array open, and give the array, for the length of the block."""
        with self.opened(node) as held:
            assert held.opened is not None  # noqa: S101 - `opened` has opened it
            arrays = held.opened.bundle.arrays
            place = node.place if node.kind == ARRAY else 0
            name = "/".join(node.inside)
            if place >= len(arrays) or (node.kind == ARRAY and arrays[place].name != name):
                raise Changed(f"array '{name}' is not where it was", path=node.file.path)
            if node.kind == FILE and len(arrays) != 1:
                raise UsageError("this is not an array", path=node.path)
            yield held, arrays[place]

    def close(self) -> None:
        """Close the files that nobody reads from just now."""
        for held in list(self._held.values()):
            if held.lock.acquire(blocking=False):
                held.close()
                held.lock.release()

    # What lies in folders, files and groups -------------------------------------------------------

    def children(self, node: Node, *, anew: bool = False) -> list[Node]:
        """The nodes in a node, in order. Raises what listing a folder or opening a file raises."""
        if node.children is None or (anew and node.kind == FOLDER):
            if node.kind == FOLDER:
                node.children = self._files(node)
            elif node.kind == FILE:
                with self.opened(node) as held:
                    self._arrays(node, held)
            else:
                node.children = []
        return node.children or []

    def _files(self, node: Node) -> list[Node]:
        try:
            entries = visible(node.path)
        except OSError as error:
            raise read_failed(node.path, error) from error
        names = {entry.name for entry in entries}
        shown = [entry for entry in entries if not _is_sidecar(entry.name, names)]
        folders = {entry.name for entry in shown if is_folder(entry)}
        shown.sort(key=lambda entry: (entry.name not in folders, natural_key(entry.name)))
        return [
            self._node(
                FOLDER if entry.name in folders and not is_whole(entry.path) else FILE,
                entry.path, (), node,
            )
            for entry in shown
        ]  # fmt: skip

    def _arrays(self, node: Node, held: Held) -> None:
        """Give a file, and the groups in it, the nodes that lie in them."""
        assert held.opened is not None  # noqa: S101 - who calls has opened it
        bundle = held.opened.bundle
        node.children = []
        above: dict[tuple[str, ...], Node] = {(): node}

        def group_of(inside: tuple[str, ...]) -> Node:
            at = len(inside)
            while inside[:at] not in above:
                at -= 1
            for end in range(at + 1, len(inside) + 1):
                parent = above[inside[: end - 1]]
                group = self._node(GROUP, node.path, inside[:end], parent)
                group.children = []
                above[inside[:end]] = group
                if parent.children is not None:
                    parent.children.append(group)
            return above[inside]

        for place, array in enumerate(bundle.arrays):
            inside = tuple(array.name.split("/"))
            parent = group_of(inside[:-1])
            if parent.children is not None:
                parent.children.append(self._node(ARRAY, node.path, inside, parent, place))
        for name in bundle.groups:
            group_of(tuple(name.split("/")))

    def rows(self, nodes: list[Node], start: int) -> list[dict[str, Any]]:
        """Some nodes as rows of a list: number, kind, name, whether something is in it, and a text.

        Raises nothing for a file that is gone.
        """
        known = readable()
        return [self._row(node, known) for node in nodes[start : start + PAGE]]

    def _row(self, node: Node, known: Any) -> dict[str, Any]:
        row = {"id": node.number, "kind": node.kind, "name": quoted(node.name), "text": ""}
        row["more"] = node.kind in (FOLDER, GROUP)
        if node.kind == FILE:
            held = self._held.get(node.path)
            opened = None if held is None else held.opened
            named = by_suffix(node.path, known)
            row["odd"] = named is None
            row["more"] = named is not None and named.many
            if opened is not None:
                row["more"] = len(opened.bundle.arrays) != 1
            if not is_remote(node.path):
                try:
                    status = os.stat(node.path)
                except (OSError, ValueError):
                    return row
                row["text"] = "" if os.path.isdir(node.path) else size(status.st_size)
        elif node.kind == ARRAY:
            held = self._held.get(node.path)
            opened = None if held is None else held.opened
            if opened is not None and node.place < len(opened.bundle.arrays):
                row["text"] = array_text(opened.bundle.arrays[node.place])
        return row

    def found(self, words: str, node: Node) -> tuple[list[Node], str]:
        """The arrays of an open file, or the files below the root, with these letters in the name.

        With a text on what was not searched. Raises what listing raises.
        """
        wanted = words.casefold()
        file = node.file
        nodes: list[Node] = []
        if file.kind == FILE:
            with self.opened(file) as held:
                if file.children is None:
                    self._arrays(file, held)
            nodes = [one for one in _below(file) if wanted in "/".join(one.inside).casefold()]
            if nodes or self.root is file:
                return nodes, f"in {quoted(file.name)}"
        try:
            entries = list(islice(entries_below(self.root.path, is_whole), SEARCHED))
        except OSError as error:
            raise read_failed(self.root.path, error) from error
        names = {entry.path for entry in entries}
        hits = [
            entry.path for entry in entries
            if wanted in os.path.relpath(entry.path, self.root.path).casefold()
            and not _is_sidecar(entry.path, names)
        ]  # fmt: skip
        hits.sort(key=natural_key)
        text = f"of the first {SEARCHED:,} files" if len(entries) == SEARCHED else ""
        return [self._node(FILE, path, (), self.root) for path in hits], text


def _below(node: Node) -> Iterator[Node]:
    """Yield the arrays in a node, at any depth."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.kind == ARRAY:
            yield one
        waiting += (one.children or [])[::-1]


def _is_sidecar(name: str, names: set[str]) -> bool:
    """True for a file that belongs to another one of the same folder."""
    return any(
        name.endswith(suffix) and name.removesuffix(suffix) in names
        for suffix in (SUFFIX, ITEMS_SUFFIX)
    )


def array_text(array: Array) -> str:
    """The type and the shape of an array in a few words."""
    if array.problem is not None:
        return "cannot be read"
    if array.pending:
        return str(array.pending)
    shape = few_lengths(array.shape, ", ")
    return f"{quoted(type_text(array.element))} ({shape}{',' * (array.ndim == 1)})"


def reason_of(error: RaconvertError, folder: str) -> str:
    """The message of an error, with the names of files as they are below the folder."""
    text = str(error)
    return text.replace(f"{folder}/", "") if folder not in ("", "/") else text
