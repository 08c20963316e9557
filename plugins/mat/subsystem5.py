"""The subsystem of level 5: a MAT file in a variable without a name, to which the header points.

It has a header of 8 bytes (version, ``IM`` or ``MI``, 4 unused bytes), then a struct with the field
``MCOS``, an opaque value of the class ``FileWrapper__`` around a cell. If it is compressed, it is
decoded as a whole while the file is walked through; only what is large stays in the file.
"""

from __future__ import annotations

from math import prod

from raconvert.arrays.memory import check_memory
from raconvert.errors import Corrupt

from .elements5 import Cursor, DecodedCursor, FileCursor, InflateCursor
from .header import parse_words
from .parts import Compressed
from .tables import MI_COMPRESSED, MI_INT8, MI_MATRIX, MI_UINT8, MI_UINT16, MI_UTF8, MI_UTF16, Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .tree import Tree

    Walker = Any  # that of `level5`

HEADER = 8
NOWHERE = (0, int.from_bytes(b" " * 8))  # offsets that programs write without data of classes
ORDERS = {b"IM": "<", b"MI": ">"}
FIELD, CLASS = "MCOS", "FileWrapper__"
TEXT_BYTES = 128  # memory of a short text, about
LATIN = {MI_INT8, MI_UINT8}
DECODERS = {MI_UTF8: "utf-8", MI_UTF16: "utf-16", MI_UINT16: "utf-16"}


class Cells5:
    """The cells of ``FileWrapper__``, and where they lie."""

    def __init__(self, walker: Walker, cursor: Cursor, spans: list[tuple[int, int]]) -> None:
        self._walker = walker
        self._cursor = cursor
        self._spans = spans
        self.order = walker.order
        self.count = len(spans)

    def head(self) -> bytes:
        """Read the bytes of the first cell."""
        node = self.node(0)
        limit = self._walker.tree.limits.document_bytes
        what = "the list of objects of classes"
        if node.cls != "uint8" or prod(node.dims) > limit:
            raise self._walker.corrupt(self._cursor, f"{what} is not uint8, or too long",
                                       f"at most {limit}", node.dims)  # fmt: skip
        return node.data(what, limit)

    def node(self, index: int) -> Node5:
        """The value in one of the cells, counted from 0."""
        return Node5(self._walker, self._cursor, *self._spans[index])


class Node5:
    """A value inside the subsystem, from the position of its array flags to its end."""

    def __init__(self, walker: Walker, cursor: Cursor, begin: int, end: int) -> None:
        self._walker = walker
        self._cursor = cursor
        self._begin = begin
        self._end = end
        self._inside = end
        facts = Facts("double", (0, 0))
        if begin != end:
            cursor.position = begin  # type: ignore[misc] # never an InflateCursor
            facts = walker.facts(cursor, end)
            self._inside = cursor.position
        self.cls: str = "logical" if facts.logical else facts.cls
        self.dims: tuple[int, ...] = facts.dims

    def _at_contents(self) -> Cursor:
        """Move the cursor behind the name of the value; return it."""
        self._cursor.position = self._inside  # type: ignore[misc]
        return self._cursor

    def data(self, what: str, limit: int) -> bytes:
        """Read the bytes of the real part."""
        return self._walker.data(self._at_contents(), self._end, what, limit)[1]

    def wrapped(self) -> Cells5:
        """The cells of an opaque value of the class ``FileWrapper__``."""
        walker, cursor = self._walker, self._cursor
        cursor.position = self._begin  # type: ignore[misc]
        walker.flags(cursor, self._end)
        *_, cls = (walker.name(cursor, self._end, w) for w in ("a name", "a type", "a class"))
        if self.cls != "opaque" or cls != CLASS:
            raise walker.corrupt(cursor, "the data of classes has no objects", CLASS, cls)
        stop = walker.member_end(cursor, self._end, CLASS)
        cells = Node5(walker, cursor, cursor.position, stop)
        if cells.cls != "cell":
            raise walker.corrupt(cursor, "the data of classes is not a cell", "cell", cells.cls)
        count = prod(cells.dims)
        if not count:
            raise walker.corrupt(cursor, "the data of classes is empty")
        return Cells5(walker, cursor, cells.spans(count, "the data of classes"))

    def spans(self, count: int, path: str) -> list[tuple[int, int]]:
        """Return the begin and the end of each member of a cell."""
        self._at_contents()
        return self._next_spans(count, path)

    def _next_spans(self, count: int, path: str) -> list[tuple[int, int]]:
        """Return the begin and the end of each of the next members, from the cursor on."""
        cursor, spans = self._cursor, []
        self._walker.check_members(cursor, self._end, path, count)
        for _ in range(count):
            stop = self._walker.member_end(cursor, self._end, path)
            spans.append((cursor.position, stop))
            cursor.position = stop  # type: ignore[misc]
        return spans

    def _nodes(self, spans: list[tuple[int, int]]) -> list[Node5]:
        return [Node5(self._walker, self._cursor, *span) for span in spans]

    def members(self) -> list[Node5]:
        """The elements of a cell, in MATLAB's order."""
        return self._nodes(self.spans(prod(self.dims), "a cell in the data of classes"))

    def fields(self) -> dict[str, Node5]:
        """The fields of a struct of 1 x 1, in order."""
        what = "a struct in the data of classes"
        names = self._walker.field_names(self._at_contents(), self._end, what)
        if self.cls != "struct" or self.dims != (1, 1):
            raise self._walker.corrupt(self._cursor, f"{what} is not 1 x 1", "1 x 1", self.dims)
        return dict(zip(names, self._nodes(self._next_spans(len(names), what)), strict=True))

    def texts(self) -> list[str] | None:
        """The rows of text that a cell holds; None if it holds anything else."""
        walker, cursor = self._walker, self._at_contents()
        texts: list[str] = []
        count = prod(self.dims)
        source = walker.tree.source
        check_memory(TEXT_BYTES * count, source.max_memory, f"'{source.path}': {count} texts")
        for _ in range(count):
            stop = walker.member_end(cursor, self._end, "a text")
            text = self._text(cursor, stop)
            if text is None:
                return None
            texts.append(text)
            cursor.position = stop  # type: ignore[misc]
        return texts

    def _text(self, cursor: Cursor, stop: int) -> str | None:
        """Read one row of text; None for anything else."""
        if cursor.position == stop:
            return None
        facts = self._walker.facts(cursor, stop)
        rows, columns = facts.dims[0], prod(facts.dims[1:])
        if facts.cls != "char":
            return None
        if rows != 1 and columns:
            return None if rows else ""
        if cursor.position >= stop:
            return None if columns else ""
        limit = self._walker.tree.limits.document_bytes
        code, raw = self._walker.data(cursor, stop, "a text", limit)
        return self._decoded(cursor, code, raw, columns)

    def _decoded(self, cursor: Cursor, code: int, raw: bytes, columns: int) -> str:
        """Decode a text of `columns` bytes, characters or UTF-16 units. Raises `Corrupt`."""
        encoding = "latin-1" if code in LATIN else DECODERS.get(code, "")
        if encoding == "utf-16":
            encoding += "-le" if self._walker.order == "<" else "-be"
        try:
            if encoding:
                text = raw.decode(encoding, *["surrogatepass"] * (encoding != "latin-1"))
                units = len(text.encode("utf-16-le", "surrogatepass")) // 2
                if columns in (len(raw), len(text), units):
                    return text
        except UnicodeDecodeError:
            pass
        what = "a text has another length than its dims say"
        got = f"{len(raw)} bytes of type {code}"
        raise self._walker.corrupt(cursor, what, f"{columns} units", got)

    def add(self, tree: Tree, path: str) -> None:
        """Add the value to a tree as any other one."""
        depth = path.count("/")
        if self._begin == self._end:
            tree.nothing(path, self._walker.order)
            return
        self._cursor.position = self._begin  # type: ignore[misc]
        self._walker.into(tree).matrix(self._cursor, self._end, path, depth)


def cells_of(walker: Walker, offset: int, file: Any) -> Cells5 | None:
    """The cells of the subsystem at an offset of the file; None if it has no objects.

    Raises `Corrupt` if it is damaged, `TooLarge` if it needs more than the memory allowed.
    """
    walker = walker.into(walker.tree)  # damage here does not end the walk of the variables
    source = walker.tree.source
    if offset in NOWHERE:
        return None
    if not HEADER <= offset <= source.size - 8:
        raise Corrupt("the data of classes lies outside the file", path=source.path,
                      expected=f"below {source.size}", got=offset)  # fmt: skip
    outer = FileCursor(source, file, offset, source.size)
    code, nbytes = parse_words(outer.take(8), walker.order)
    walker.check_element(offset, code, nbytes)
    cursor: Cursor = outer
    end = offset + 8 + nbytes
    if code == MI_COMPRESSED:
        cursor, end = _decoded(walker, Compressed(source, offset + 8, nbytes, walker.stopped))
    facts = walker.facts(cursor, end)
    if facts.cls != "uint8":
        raise walker.corrupt(cursor, "the data of classes is not bytes", "uint8", facts.cls)
    tag = walker.tag(cursor, end, "the data of classes")
    if tag.small is not None or tag.nbytes < HEADER:
        raise walker.corrupt(cursor, "the data of classes is too short", "8 bytes", tag.nbytes)
    end = cursor.position + tag.nbytes
    order = ORDERS.get(cursor.take(HEADER)[2:4])
    if order is None:
        raise walker.corrupt(cursor, "the data of classes has no byte order", "IM or MI")
    return _wrapped(walker.into(walker.tree, order), cursor, end)


def _decoded(walker: Walker, variable: Compressed) -> tuple[DecodedCursor, int]:
    """Decode the subsystem; return a cursor behind its tag, and its end."""
    source = walker.tree.source
    inflater = variable.inflater()
    try:
        words = inflater.read(8)
        code, nbytes = parse_words(words, walker.order)
        variable.total = 8 + nbytes
        what = f"'{source.path}': the data of classes"
        check_memory(2 * nbytes, source.max_memory, what)
        walker.check_decoded(InflateCursor(inflater, 0), variable, code, nbytes)
        cursor = DecodedCursor(inflater, words + inflater.everything(), walker.room)
    finally:
        inflater.close()
    cursor.skip(8)
    return cursor, 8 + nbytes


def _wrapped(walker: Walker, cursor: Cursor, end: int) -> Cells5 | None:
    """The cells inside the struct of the subsystem; None if it has no field ``MCOS``."""
    tag = walker.tag(cursor, end, "the data of classes")
    if tag.code != MI_MATRIX or tag.small is not None:
        raise walker.corrupt(cursor, "the data of classes is not a struct", MI_MATRIX, tag.code)
    fields = Node5(walker, cursor, cursor.position, cursor.position + tag.nbytes).fields()
    if FIELD not in fields:
        return None
    return fields[FIELD].wrapped()
