"""Reading a file of R: one pass over all objects, then arrays that are read when asked for."""

from __future__ import annotations

import os

from raconvert.errors import Corrupt, Unsafe, Unsupported
from raconvert.files.inflate import note_once
from raconvert.plugin import Bundle, Source, trailing_note

from .items import Parser
from .streams import Stream
from .tables import LIST, NATIVE, OWN, RDATA, RDATA_OLD
from .tree import GROUPS, Names, Tree, check_any_array
from .values import File

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .items import Node


def read_rds(source: Source, encoding: str) -> Bundle:
    """Read the one object of a file; arrays of a list have the names of its members."""
    return _read(source, encoding, named=False)


def read_rdata(source: Source, encoding: str) -> Bundle:
    """Read the objects of a workspace, by name."""
    return _read(source, encoding, named=True)


def _read(source: Source, encoding: str, *, named: bool) -> Bundle:
    """Read a file; `named`: it is a workspace. The stream is closed if an error is raised."""
    stream = Stream(source)
    try:
        native = _native(encoding)
        cursor = stream.cursor()
        try:
            parser = Parser(cursor, source, native)
            if named:
                _workspace(cursor.take(5), source)
            parser.header()
            node = parser.item(keep=False)
            behind = cursor.rest(source.limits.surplus_bytes)
        finally:
            cursor.close()
        _check_behind(stream, behind)
        return _bundle(source, stream, parser, node, named=named)
    except BaseException:
        stream.close()
        raise


def _check_behind(stream: Stream, behind: int) -> None:
    """Note bytes behind the object; refuse (`Unsafe`) very many that were compressed."""
    most = stream.source.limits.surplus_bytes
    if behind > most and stream.packing:
        raise Unsafe(
            "goes on for much longer than its object (a decompression bomb?)",
            path=stream.source.path, expected=f"at most {most} bytes more",
        )  # fmt: skip
    if behind:
        note_once(stream.notes, trailing_note(behind, "the object"))


def _native(encoding: str) -> str | None:
    """Return Python's name of the encoding that was asked for; None for ``auto``."""
    if encoding == "auto":
        return None
    import codecs

    from raconvert.errors import UsageError

    name = NATIVE.get(encoding.upper(), encoding.lower())
    if name not in NATIVE.values():
        raise UsageError(
            f"'{encoding}' is not an encoding of R", expected="such as latin-1 or UTF-8"
        )
    return codecs.lookup(name).name


def _workspace(head: bytes, source: Source) -> None:
    """Check the first bytes of a workspace. Raises `Corrupt` and `Unsupported`."""
    if head in RDATA_OLD:
        raise Unsupported("is a workspace of version 1, of R before 1.4", path=source.path,
                          remedy="in R: load(FILE); save.image('x.RData')")  # fmt: skip
    if head not in RDATA:
        raise Corrupt("is not a workspace of R", path=source.path, where="byte 0",
                      expected="RDX2 or RDX3", got=head)  # fmt: skip
    if head.startswith(b"RDA"):
        raise Unsupported(
            "is a workspace saved as text (form A), which is not read", path=source.path,
            expected="the binary forms X or B",
            remedy="in R: load(FILE); save.image('x.RData')",
        )  # fmt: skip


def _bundle(source: Source, stream: Stream, parser: Parser, node: Node, *, named: bool) -> Bundle:
    """Return the arrays and groups of an object; `named`: it is the list of a workspace."""
    tree = Tree(source, File(stream, parser.order, parser.native), parser.cursor.position)
    own: dict[str, object] = {}
    if node.kind in GROUPS and not node.what:
        tree.group("", node)
        own["root"] = "list"
    elif named:
        raise Corrupt("is not a list of named objects", path=source.path, expected=f"type {LIST}",
                      got=f"type {node.kind}")  # fmt: skip
    else:
        file_name = os.path.basename(source.place)
        name = os.path.splitext(file_name)[0] or file_name
        tree.add(name, node, Names(), "")
    check_any_array(tree)
    attributes = tree.groups.pop("", {})
    if tree.own:
        own["groups"] = tree.own
    if tree.forms:
        own["forms"] = tree.forms
    notes = stream.notes + tree.notes
    return Bundle(
        tree.arrays, attributes=attributes, groups=tree.groups, notes=notes,
        formats={OWN: own} if own else {}, closers=[stream.close],
    )  # fmt: skip
