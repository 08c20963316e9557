"""Answers to the questions of the page: lists, facts, planes, tables, outcomes, conversions."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from threading import Lock

from raconvert.arrays.dtypes import few_lengths, size
from raconvert.arrays.layout import EMPTY
from raconvert.arrays.scales import scale_notes
from raconvert.conversion.options import LOSSES
from raconvert.conversion.pipeline import convert
from raconvert.declared import Record
from raconvert.errors import UsageError, quoted
from raconvert.files.paths import is_remote, remove, temporaries_of
from raconvert.files.quoting import operand
from raconvert.inspect.info import describe_array, plain
from raconvert.registry import by_name
from raconvert.viewer import looks
from raconvert.viewer.looks import Chosen, Look
from raconvert.viewer.tree import ARRAY, FILE, FOLDER, PAGE, Tree, array_text, arrays_below
from raconvert.views.pages.file import passport
from raconvert.views.picture import CLASSES, DEPTH, GRAY, PHASE, SIGNS, palette_of
from raconvert.views.roles import main_array
from raconvert.views.sample import values_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.viewer.tree import Node, OpenFile

MOST_FIELDS = 1000  # fields of metadata in one answer
MOST_TEXT = 400  # characters of a value of metadata
_ODD = "/\\\0{}#:"  # not in the name of a new file: they make folders, templates, arrays, streams
TICKED = tuple(loss for loss in LOSSES if loss != "all")  # losses that can be allowed, one by one
_LOOKS = 4  # arrays of a file whose looks are cached


class Answer(Record):
    """The type and the bytes of an answer."""

    kind: str
    body: bytes


def of_json(value: Any) -> Answer:
    """An answer of JSON."""
    return Answer("application/json", json.dumps(value, allow_nan=False).encode())


class Desk:
    """Answers to questions about a tree. Threads may share it; files are converted one by one."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._converting = Lock()
        self._folders: set[str] = set()  # folders of conversions that run just now

    def close(self) -> None:
        """Close all files, and remove the temporary files of an unfinished conversion."""
        for folder in list(self._folders):
            for path in temporaries_of(folder, os.getpid()):
                with suppress(OSError):
                    remove(path)
        self.tree.close()

    def asked(self, what: str, words: Mapping[str, str]) -> Answer | None:
        """The answer to a question; None for an unknown one. Raises `RaconvertError`."""
        ask = _QUESTIONS.get(what)
        return None if ask is None else ask(self.tree, words)

    def convert(self, words: Mapping[str, str]) -> Answer:
        """Convert a file, or one of its arrays, to a file beside it; never over another one."""
        node = self.tree.node(_whole(words, "id"))
        file = node.file
        if is_remote(file.path):
            raise UsageError("what is at a URL is not converted from here")
        folder = os.path.dirname(os.path.abspath(file.path))
        name = _checked_name(words.get("name", ""))
        _check_inside(folder, self.tree.folder)
        spec = file.path
        with self.tree.opened(file) as open_file:
            if len(open_file.opened.bundle.arrays) > 1 and words.get("whole") != "1":
                spec = f"{file.path}#{'/'.join(node.inside)}"
        with self._converting:
            self._folders.add(folder)
            try:
                options = _reading(self.tree) | {"allow": _allowed(words)}
                report = convert(spec, os.path.join(folder, name), **options)
            finally:
                self._folders.discard(folder)
        lines = [str(report).replace(f"{folder}/", "")]
        lines += [f"lost: {fit}" for fit in report.allowed]
        lines += [f"changed form: {fit}" for fit in report.equivalent]
        lines += [str(note) for note in report.notes]
        return of_json({"lines": [quoted(line) for line in lines], "name": quoted(name)})


# Questions: lists -----------------------------------------------------------------------------


def _start(tree: Tree, words: Mapping[str, str]) -> Answer:
    """The row of the root, and the colours of pictures."""
    colors = {name: palette_of(name).tobytes().hex() for name in (GRAY, DEPTH, PHASE, CLASSES)}
    (row,) = tree.rows([tree.root], 0)
    return of_json({"root": row, "palettes": colors, "signs": list(SIGNS), "page": PAGE})


def _list(tree: Tree, words: Mapping[str, str]) -> Answer:
    """A page of the children of a folder, a file or a group, or of the results of a search."""
    node, start = tree.node(_whole(words, "id")), max(0, _whole(words, "start", 0))
    text = ""
    if words.get("find"):
        nodes, text = tree.searched(words["find"], node)
    else:
        nodes = tree.children(node, anew=start == 0 and words.get("anew") == "1")
    rows = tree.rows(nodes, start)
    if words.get("find"):
        for row, result in zip(rows, nodes[start:], strict=False):
            row["name"] = _name_of(tree, result)
    return of_json({"total": len(nodes), "start": start, "rows": rows, "text": text})


def _name_of(tree: Tree, node: Node) -> str:
    """The whole name of an array in its file, or of a file below the root."""
    if node.inside:
        return quoted("/".join(node.inside))
    root = tree.root.path
    return quoted(os.path.relpath(node.path, root) if node.kind == FILE else node.name)


# Questions: facts -----------------------------------------------------------------------------


def _about(tree: Tree, words: Mapping[str, str]) -> Answer:
    """The facts about a file and about one of its arrays: the named one, or the main one."""
    node = tree.node(_whole(words, "id"))
    if node.kind == FOLDER:
        raise UsageError("a folder is not an array", path=node.path)
    with tree.opened(node) as open_file:
        opened = open_file.opened
        bundle = opened.bundle
        row = by_name(bundle.format)
        stored = scale_notes(bundle.arrays)  # the page describes the values that it shows
        file = node.file
        tree.children(file)
        chosen = node if node.kind == ARRAY else _main_of(bundle, list(arrays_below(node)))
        facts: dict[str, Any] = {
            "file": {"id": file.number, "name": quoted(file.name), "title": row.title,
                     "reason": quoted(opened.reason), "arrays": len(bundle.arrays)},
            "notes": [quoted(note) for note in bundle.notes if note not in stored][:20],
            "attributes": _fields(plain(bundle.attributes)),
            "array": None, "folder": _folder_name_of(tree, file),
        }  # fmt: skip
        if node.kind != ARRAY and node.inside:
            own = bundle.groups.get("/".join(node.inside), {})
            facts["attributes"] = _fields(plain(own))
        if chosen is not None:
            with tree.array(chosen) as (_, array):
                facts["array"] = _array_of(tree, chosen, open_file, array, many=row.many)
        return of_json(facts)


def _main_of(bundle: Bundle, nodes: list[Node]) -> Node | None:
    """The node of the array that is shown for a file or a group; None without arrays."""
    part = bundle.like([bundle.arrays[node.index] for node in nodes])
    array = main_array(part)
    if array is None and part.arrays:  # all are damaged, and the page shows why
        array = part.arrays[0]
    return next((node for node in nodes if bundle.arrays[node.index] is array), None)


def _array_of(
    tree: Tree, node: Node, file: OpenFile, array: Array, *, many: bool
) -> dict[str, Any]:
    """The facts about an array: its axes, the form in which it is shown, and its metadata."""
    facts: dict[str, Any] = {
        "id": node.number, "name": quoted(array.name) if many else "",
        "short": quoted(node.name), "text": array_text(array), "problem": None,
        "lineage": _lineage(node), "command": quoted(_spec_of(tree, node)),
    }  # fmt: skip
    if array.problem is not None:
        return facts | {"problem": str(array.problem), "form": EMPTY, "facts": [], "fields": []}
    array.settle()
    row = describe_array(array, file.opened.bundle)
    look = _look(tree, file, node, array)
    down, right = look.usual_axes()
    return facts | {
        "form": look.form, "shape": list(array.shape), "axes": looks.axes_of(look),
        "down": down, "right": right, "color": look.color, "index": looks.middle_of(look),
        "parts": look.parts, "channels": -1 if look.channels is None else look.channels,
        "rows": looks.ROWS, "cells": looks.COLUMNS, "facts": _facts(array, row),
        "fields": _fields(row["metadata"]),
    }  # fmt: skip


def _spec_of(tree: Tree, node: Node) -> str:
    """The array in the words of the command line: ``FILE#NAME`` if the file has several."""
    name = os.path.basename(node.path.rstrip("/"))
    with tree.opened(node) as file:
        many = len(file.opened.bundle.arrays) > 1
    return operand(f"{name}#{'/'.join(node.inside)}" if many and node.inside else name)


def _folder_name_of(tree: Tree, file: Node) -> str:
    """The folder for the result of a conversion, below the root; a dot is the root itself."""
    if is_remote(file.path):
        return ""
    folder = os.path.dirname(os.path.abspath(file.path))
    return quoted(os.path.relpath(folder, os.path.abspath(tree.folder)))


# Questions: elements --------------------------------------------------------------------------


def _plane(tree: Tree, words: Mapping[str, str]) -> Answer:
    """The numbers of a plane."""
    top, bottom, left, end = (_whole(words, name) for name in ("top", "bottom", "left", "end"))
    with _looking(tree, words) as look:
        chosen = Chosen(
            _whole(words, "down"), _whole(words, "right"), _index(words),
            (top, bottom, left, end), words.get("part", ""),
        )  # fmt: skip
        return Answer("application/octet-stream", looks.packed(*looks.plane_of(look, chosen)))


def _line(tree: Tree, words: Mapping[str, str]) -> Answer:
    """The course of the values along an axis."""
    numbers = (_whole(words, "start"), _whole(words, "stop"))
    with _looking(tree, words) as look:
        return of_json(looks.line_of(look, _whole(words, "down"), _index(words), *numbers))


def _table(tree: Tree, words: Mapping[str, str]) -> Answer:
    """A page of a table."""
    axes = (_whole(words, "down"), _whole(words, "right"))
    start, first = _whole(words, "start", 0), _whole(words, "first", 0)
    with _looking(tree, words) as look:
        return of_json(looks.table_of(look, axes, _index(words), start, first))


def _value(tree: Tree, words: Mapping[str, str]) -> Answer:
    """The only element."""
    with _looking(tree, words) as look:
        return of_json(looks.value_of(look))


@contextmanager
def _looking(tree: Tree, words: Mapping[str, str]) -> Iterator[Look]:
    """Keep the file of the array that is asked for open, and yield the look at the array."""
    node = tree.node(_whole(words, "id"))
    with tree.array(node) as (file, array):
        yield _look(tree, file, node, array)


def _look(tree: Tree, file: OpenFile, node: Node, array: Array) -> Look:
    """The look at an array: the cached one if it is one of the last few of its file."""
    index = max(node.index, 0)
    if index not in file.looks:
        while len(file.looks) >= _LOOKS:
            del file.looks[next(iter(file.looks))]
        file.looks[index] = Look(array, tree.wholes)
    look: Look = file.looks[index]
    return look


def _becomes(tree: Tree, words: Mapping[str, str]) -> Answer:
    """The outcome of writing a file, or one of its arrays, in each format."""
    node = tree.node(_whole(words, "id"))
    with tree.array(node) as (file, array):
        visas = passport(file.opened, array)
    rows = [
        {"format": visa.format, "title": visa.title, "suffix": visa.suffix,
         "outcome": visa.outcome, "reasons": [quoted(reason) for reason in visa.reasons],
         "flags": list(visa.flags)}
        for visa in visas
    ]  # fmt: skip
    return of_json({"rows": rows, "stem": quoted(_stem(node))})


_QUESTIONS = {
    "about": _about, "becomes": _becomes, "line": _line, "list": _list, "plane": _plane,
    "start": _start, "table": _table, "value": _value,
}  # fmt: skip


# Facts as values of JSON -----------------------------------------------------------------------


def _lineage(node: Node) -> list[dict[str, Any]]:
    """The nodes from the root to this one, each as number, kind and name."""
    line: list[dict[str, Any]] = []
    above: Node | None = node
    while above is not None:
        line.append({"id": above.number, "kind": above.kind, "name": quoted(above.name)})
        above = above.above
    return line[::-1]


def _facts(array: Array, row: dict[str, Any]) -> list[list[str]]:
    """The facts about an array as rows of name and text."""
    shape = f"({few_lengths(array.shape, ', ')}{',' * (array.ndim == 1)})"
    facts = [["type", f"{row['type']}{', big-endian' * (row['byte_order'] == 'big')}"]]
    if array.ndim:
        facts.append(["shape in Python", shape])
        if array.ndim > 1:
            facts.append(["dims in Julia", few_lengths(array.dims, " × ")])
    stored = row["storage"].get("stored_bytes")
    packed = f", {size(stored)} in the file" if isinstance(stored, int) else ""
    facts.append(["elements", f"{array.count:,}, {size(array.nbytes)}{packed}"])
    values = values_text(array)
    if values:
        facts.append(["values", values])
    elif array.meta.units:
        facts.append(["units", array.meta.units])
    if array.meta.description:
        facts.append(["description", array.meta.description[:MOST_TEXT]])
    return [[name, quoted(text)] for name, text in facts]


def _fields(value: Any) -> list[list[str]]:
    """Nested metadata as rows of name and text."""
    rows: list[list[str]] = []
    waiting = [("", value)]
    while waiting and len(rows) < MOST_FIELDS:
        name, field = waiting.pop()
        if isinstance(field, dict) and field:
            waiting += [
                (f"{name}.{key}" if name else str(key), item)
                for key, item in [*field.items()][::-1]
            ]
        elif isinstance(field, list) and any(isinstance(item, dict) for item in field):
            waiting += [(f"{name}[{at}]", item) for at, item in [*enumerate(field)][::-1]]
        elif name:
            text = ", ".join(map(str, field[:100])) if isinstance(field, list) else str(field)
            rows.append([quoted(name[:MOST_TEXT]), quoted(text[:MOST_TEXT])])
    return rows


def _stem(node: Node) -> str:
    """A name for a new file, without what `_checked_name` refuses."""
    name = node.name if node.inside else node.name.partition(".")[0]
    words = "".join(c if c.isprintable() and c not in _ODD else "_" for c in name[:80])
    return words.lstrip(".-") or "array"


def _reading(tree: Tree) -> dict[str, Any]:
    """The options by which sources are read, as `convert` takes them."""
    settings = tree.settings
    names = ("from_", "in_opts", "index_order", "trust", "max_memory")
    return {name: value for name in names if (value := getattr(settings, name))}


def _allowed(words: Mapping[str, str]) -> list[str]:
    """The losses that the user has ticked, one by one. Raises `UsageError` for unknown ones."""
    ticked = [word for word in words.get("allow", "").split(",") if word]
    if odd := [word for word in ticked if word not in TICKED]:
        raise UsageError(f"'{odd[0]}' is not a loss that is allowed here")
    return ticked


def _checked_name(name: str) -> str:
    """Return the name of a new file. Raises `UsageError` if it is not that of one visible file."""
    odd = next((mark for mark in _ODD if mark in name), None)
    if not name.strip() or name in (".", ".."):
        raise UsageError("the new file has no name")
    if odd is not None or name.startswith((".", "-")):
        flaw = f"with {odd!r} in it" if odd is not None else f"that begins with '{name[0]}'"
        raise UsageError(
            f"'{name}' is a name {flaw}", expected="the name of a file beside this one"
        )
    return name


def _check_inside(folder: str, root: str) -> None:
    """Refuse a folder outside the one that is shown, to which a link leads."""
    real, top = os.path.realpath(folder), os.path.realpath(root)
    if not os.path.join(real, "").startswith(os.path.join(top, "")):
        raise UsageError(
            "the file lies outside the folder that is shown, and nothing is written there"
        )


def _whole(words: Mapping[str, str], name: str, usual: int | None = None) -> int:
    """The whole number of a word, or the usual one. Raises `UsageError` for any other text."""
    text = words.get(name)
    if text is None and usual is not None:
        return usual
    if text is None or len(text) > 20 or not text.removeprefix("-").isdecimal():
        raise UsageError(f"'{name}' is not a whole number")
    return int(text)


def _index(words: Mapping[str, str]) -> tuple[int, ...]:
    """The index in the words: numbers that are divided by commas."""
    text = words.get("index", "")
    parts = text.split(",") if text else []
    if len(parts) > 64:
        raise UsageError("'index' has too many numbers")
    return tuple(_whole({"index": part}, "index") for part in parts)
