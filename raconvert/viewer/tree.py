"""The tree that a viewer shows: folders, files, groups and arrays, each with a number.

A browser names nothing but numbers that it was given, so that it cannot name files elsewhere.
Folders are listed when they are asked for, links are followed, as in all trees of the command line.
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
from raconvert.registry import by_suffix, is_one_source, readable
from raconvert.viewer.regions import Wholes
from raconvert.views.folder import is_sidecar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import RLock as _RLock
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.conversion.options import Settings
    from raconvert.conversion.read import Opened

FOLDER, FILE, GROUP, ARRAY = "folder", "file", "group", "array"
OPEN_FILES = 8  # those that were looked at last stay open
PAGE = 200  # rows of one answer
SEARCHED = 50_000  # files of a folder among which names are searched


class Node:
    """A folder, a file, a group of a file or one of its arrays.

    `path` is that of the folder or the file; `inside` are the parts of the name of a group or an
    array in it, `index` is that of an array among those of its file, else -1.
    """

    __slots__ = ("above", "children", "index", "inside", "kind", "number", "path")

    def __init__(
        self, number: int, kind: str, path: str, inside: tuple[str, ...], above: Node | None
    ) -> None:
        self.number: int = number
        self.kind: str = kind
        self.path: str = path
        self.inside: tuple[str, ...] = inside
        self.above: Node | None = above
        self.index: int = -1
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


class OpenFile:
    """A file that is open, or will be: one thread at a time reads from it."""

    def __init__(self, path: str) -> None:
        self.path: str = path
        self.lock: _RLock = RLock()
        self.users: int = 0
        self.looks: dict[int, Any] = {}  # the looks at its arrays, by their index
        self._opened: Opened | None = None

    @property
    def opened(self) -> Opened:
        """The file, inside the block of `Tree.opened`. Raises `Changed` if it is closed."""
        if self._opened is None:
            raise Changed("was closed while it was read", path=self.path)
        return self._opened

    @property
    def bundle(self) -> Bundle | None:
        """The arrays of the file; None if it is not open just now."""
        opened = self._opened
        return None if opened is None else opened.bundle

    def open(self, settings: Settings) -> None:
        """Open the file if it is closed. Raises what opening raises."""
        if self._opened is None:
            self._opened = open_spec(self.path, settings)

    def close(self) -> None:
        """Close the file; the next question opens it again."""
        with self.lock:
            opened, self._opened = self._opened, None
            self.looks.clear()
            if opened is not None:
                opened.bundle.close()


class Tree:
    """All nodes below one source or folder, and the files that are open. Threads may share it."""

    def __init__(self, path: str, settings: Settings) -> None:
        self.settings: Settings = settings
        self.wholes: Wholes = Wholes()
        self._nodes: list[Node] = []
        self._node_of: dict[tuple[Any, ...], Node] = {}
        self._files: OrderedDict[str, OpenFile] = OrderedDict()
        self._guard = Lock()
        whole = is_remote(path) or not os.path.isdir(path) or is_one_source(path)
        self.root: Node = self._node(FILE if whole else FOLDER, path, (), None)
        if whole:
            with self.opened(self.root):  # an error here ends the command, before there is a page
                pass
        self.folder: str = path if not whole else os.path.dirname(os.path.abspath(path))

    def node(self, number: int) -> Node:
        """The node of this number. Raises `UsageError` for a number without a node."""
        with self._guard:
            if 0 <= number < len(self._nodes):
                return self._nodes[number]
        raise UsageError(f"'{number}' is not the number of anything that was listed")

    def _node(
        self, kind: str, path: str, inside: tuple[str, ...], above: Node | None, index: int = -1
    ) -> Node:
        """The node of these fields: the same one, with its number, whenever it is asked for."""
        with self._guard:
            key = (kind, path, inside, index)
            node = self._node_of.get(key)
            if node is None:
                node = self._node_of[key] = Node(len(self._nodes), kind, path, inside, above)
                node.index = index
                self._nodes.append(node)
            return node

    # Files that are open --------------------------------------------------------------------------

    @contextmanager
    def opened(self, node: Node) -> Iterator[OpenFile]:
        """Keep the file of a node open for the length of the block. Raises what opening raises."""
        path = node.file.path
        with self._guard:
            file = self._files.setdefault(path, OpenFile(path))
            self._files.move_to_end(path)
            file.users += 1
            idle = [name for name, other in self._files.items() if not other.users]
            surplus = idle[: max(0, len(self._files) - OPEN_FILES)]
            closed = [self._files.pop(name) for name in surplus]
        for other in closed:
            other.close()
        try:
            with file.lock:
                file.open(self.settings)
                yield file
        except (Changed, ReadFailed):
            file.close()
            node.file.children = None
            raise
        finally:
            with self._guard:
                file.users -= 1

    @contextmanager
    def array(self, node: Node) -> Iterator[tuple[OpenFile, Array]]:
        """Keep the file of an array open, and yield both, for the length of the block.

        Raises `Changed` if the file has another array there now, `UsageError` if the node is not
        an array, and what opening raises.
        """
        with self.opened(node) as file:
            arrays = file.opened.bundle.arrays
            index = node.index if node.kind == ARRAY else 0
            name = "/".join(node.inside)
            if index >= len(arrays) or (node.kind == ARRAY and arrays[index].name != name):
                raise Changed(f"array '{name}' is not where it was", path=node.file.path)
            if node.kind == FILE and len(arrays) != 1:
                raise UsageError("this is not an array", path=node.path)
            yield file, arrays[index]

    def close(self) -> None:
        """Close the files that no thread reads from just now."""
        for file in list(self._files.values()):
            if file.lock.acquire(blocking=False):
                file.close()
                file.lock.release()

    # The children of folders, files and groups ----------------------------------------------------

    def children(self, node: Node, *, anew: bool = False) -> list[Node]:
        """The nodes in a node, in order; with `anew`, a folder is listed again.

        Raises what listing a folder or opening a file raises.
        """
        if node.children is None or (anew and node.kind == FOLDER):
            if node.kind == FOLDER:
                node.children = self._listed(node)
            elif node.kind == FILE:
                with self.opened(node) as file:
                    self._add_arrays(node, file.opened.bundle)
            else:
                node.children = []
        return node.children or []

    def _listed(self, node: Node) -> list[Node]:
        """The folders and files in a folder, folders first, without sidecars."""
        try:
            entries = visible(node.path)
        except OSError as error:
            raise read_failed(node.path, error) from error
        names = {entry.name for entry in entries}
        shown = [entry for entry in entries if not is_sidecar(entry.name, names)]
        folders = {entry.name for entry in shown if is_folder(entry)}
        shown.sort(key=lambda entry: (entry.name not in folders, natural_key(entry.name)))
        return [
            self._node(
                FOLDER if entry.name in folders and not is_whole(entry.path) else FILE,
                entry.path, (), node,
            )
            for entry in shown
        ]  # fmt: skip

    def _add_arrays(self, node: Node, bundle: Bundle) -> None:
        """Set the children of a file, and of the groups in it."""
        node.children = []
        groups: dict[tuple[str, ...], Node] = {(): node}

        def group_of(inside: tuple[str, ...]) -> Node:
            """The node of a group; it is made with those above it, if it is new."""
            known = len(inside)
            while inside[:known] not in groups:
                known -= 1
            for end in range(known + 1, len(inside) + 1):
                parent = groups[inside[: end - 1]]
                group = self._node(GROUP, node.path, inside[:end], parent)
                group.children = []
                groups[inside[:end]] = group
                if parent.children is not None:
                    parent.children.append(group)
            return groups[inside]

        for index, array in enumerate(bundle.arrays):
            inside = tuple(array.name.split("/"))
            parent = group_of(inside[:-1])
            if parent.children is not None:
                parent.children.append(self._node(ARRAY, node.path, inside, parent, index))
        for name in bundle.groups:
            group_of(tuple(name.split("/")))

    def rows(self, nodes: list[Node], start: int) -> list[dict[str, Any]]:
        """A page of nodes as rows of a list, from `start` on: number, kind, name, and a text.

        ``more`` is True if others are in it, ``odd`` if the suffix of a file has no format. Raises
        nothing for a file that is gone.
        """
        formats = readable()
        return [self._row(node, formats) for node in nodes[start : start + PAGE]]

    def _row(self, node: Node, formats: Any) -> dict[str, Any]:
        """The row of a node; `formats` are those that are read."""
        row = {"id": node.number, "kind": node.kind, "name": quoted(node.name), "text": ""}
        row["more"] = node.kind in (FOLDER, GROUP)
        file = self._files.get(node.path)
        bundle = None if file is None else file.bundle
        if node.kind == FILE:
            form = by_suffix(node.path, formats)
            row["odd"] = form is None
            row["more"] = form is not None and form.many
            if bundle is not None:
                row["more"] = len(bundle.arrays) != 1
            if not is_remote(node.path):
                try:
                    status = os.stat(node.path)
                except (OSError, ValueError):
                    return row
                row["text"] = "" if os.path.isdir(node.path) else size(status.st_size)
        elif node.kind == ARRAY and bundle is not None and node.index < len(bundle.arrays):
            row["text"] = array_text(bundle.arrays[node.index])
        return row

    def searched(self, words: str, node: Node) -> tuple[list[Node], str]:
        """The arrays of an open file, or the files below the root, with these letters in the name.

        The text says where was searched, if not everywhere. Raises what listing raises.
        """
        wanted = words.casefold()
        file = node.file
        nodes: list[Node] = []
        if file.kind == FILE:
            with self.opened(file) as open_file:
                if file.children is None:
                    self._add_arrays(file, open_file.opened.bundle)
            nodes = [one for one in arrays_below(file) if wanted in "/".join(one.inside).casefold()]
            if nodes or self.root is file:
                return nodes, f"in {quoted(file.name)}"
        try:
            entries = list(islice(entries_below(self.root.path, is_whole), SEARCHED))
        except OSError as error:
            raise read_failed(self.root.path, error) from error
        names = {entry.path for entry in entries}
        paths = [
            entry.path for entry in entries
            if wanted in os.path.relpath(entry.path, self.root.path).casefold()
            and not is_sidecar(entry.path, names)
        ]  # fmt: skip
        paths.sort(key=natural_key)
        text = f"of the first {SEARCHED:,} files" if len(entries) == SEARCHED else ""
        return [self._node(FILE, path, (), self.root) for path in paths], text


def arrays_below(node: Node) -> Iterator[Node]:
    """Yield the arrays in a node, at any depth; it yields an array itself."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if part.kind == ARRAY:
            yield part
        waiting += (part.children or [])[::-1]


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
