"""The footer of a Parquet file, checked before pyarrow looks at it.

For some damaged footers pyarrow ends the process. A footer is a structure of Thrift's compact
protocol. All of it is parsed; the schema and the location of each column in each group of rows are
kept. Lists and texts are checked against the bytes that are left, so that the work is in proportion
to the footer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raconvert.errors import Corrupt, TooLarge, Unsupported

if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Source

__all__ = ["check_footer"]

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
WHOLE = (BYTE, I16, I32, I64)
_LAST_TYPE, _LAST_CODEC, FIXED = 7, 7, 7
# field -> (name, type, type or fields of its items); all others are parsed and dropped
_COLUMN = {
    1: ("type", I32, None), 2: ("encodings", LIST, I32), 3: ("path", LIST, BINARY),
    4: ("codec", I32, None), 5: ("values", I64, None), 6: ("decoded", I64, None),
    7: ("encoded", I64, None), 9: ("data", I64, None), 10: ("index", I64, None),
    11: ("dictionary", I64, None),
}  # fmt: skip
_CHUNK = {1: ("file", BINARY, None), 3: ("column", STRUCT, _COLUMN), 8: ("crypto", STRUCT, {})}
_GROUP = {1: ("columns", LIST, _CHUNK), 3: ("rows", I64, None)}
_ELEMENT = {
    1: ("type", I32, None), 2: ("width", I32, None), 3: ("repetition", I32, None),
    4: ("name", BINARY, None), 5: ("children", I32, None),
}  # fmt: skip
_FILE = {
    1: ("version", I32, None), 2: ("schema", LIST, _ELEMENT), 3: ("rows", I64, None),
    4: ("groups", LIST, _GROUP), 8: ("encryption", STRUCT, {}),
}  # fmt: skip
_NEEDED = {
    "file": ("version", "schema", "rows", "groups"),
    "group": ("columns", "rows"),
    "column": ("type", "encodings", "path", "codec", "values", "decoded", "encoded", "data"),
    "element": ("name",),
}


class _Bytes:
    """The bytes of the footer at an offset of the file; `at` is the number of parsed ones."""

    def __init__(self, data: bytes, source: Source, start: int) -> None:
        self._data = data
        self._source = source
        self._start = start
        self.at = 0

    def wrong(self, what: str) -> Corrupt:
        """The error for wrong data at the current offset."""
        return Corrupt(f"footer is damaged: {what}", path=self._source.path,
                       where=f"byte {self._start + self.at}")  # fmt: skip

    def byte(self) -> int:
        """Read the next byte."""
        if self.at >= len(self._data):
            raise self.wrong("it ends early")
        self.at += 1
        return self._data[self.at - 1]

    def number(self) -> int:
        """Read a number with 7 bits in each byte."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise self.wrong("a number has more than 64 bits")

    def signed(self) -> int:
        """Read a signed number, in zigzag coding."""
        value = self.number()
        return (value >> 1) ^ -(value & 1)

    def take(self, count: int) -> bytes:
        """Read the next `count` bytes."""
        if count > len(self._data) - self.at:
            raise self.wrong("a text is longer than what is left")
        self.at += count
        return self._data[self.at - count : self.at]

    def left(self) -> int:
        """The number of bytes that are left."""
        return len(self._data) - self.at


def _value(data: _Bytes, kind: int, inner: Any, depth: int) -> Any:
    """Parse a value of a type; `inner` is the type or the fields of its items."""
    if depth > 32:
        raise data.wrong("structures are nested too deep")
    if kind in (TRUE, FALSE):
        return kind == TRUE
    if kind == BYTE:
        return data.byte()
    if kind in WHOLE:
        return data.signed()
    if kind == DOUBLE:
        return data.take(8)
    if kind == BINARY:
        return data.take(data.number())
    if kind in (LIST, SET):
        return _list(data, inner, depth)
    if kind == MAP:
        return _map(data, depth)
    if kind == STRUCT:
        return _structure(data, inner if isinstance(inner, dict) else {}, depth)
    raise data.wrong(f"a value has the unknown type {kind}")


def _list(data: _Bytes, inner: Any, depth: int) -> list[Any]:
    """Parse a list; return its items, or nothing if `inner` is None."""
    head = data.byte()
    count, kind = head >> 4, head & 15
    if count == 15:
        count = data.number()
    if count > data.left():
        raise data.wrong("a list is longer than what is left")
    wanted = STRUCT if isinstance(inner, dict) else inner
    if count and inner is not None and kind != wanted:
        raise data.wrong(f"a list of type {kind}, expected {wanted}")
    items = []
    for _ in range(count):
        item = _value(data, BYTE if kind in (TRUE, FALSE) else kind, inner, depth + 1)
        if inner is not None:
            items.append(item)
    return items


def _map(data: _Bytes, depth: int) -> None:
    """Parse a mapping, which is dropped."""
    count = data.number()
    if not count:
        return
    kinds = data.byte()
    if count > data.left():
        raise data.wrong("a mapping is longer than what is left")
    for _ in range(count):
        for kind in (kinds >> 4, kinds & 15):
            _value(data, BYTE if kind in (TRUE, FALSE) else kind, None, depth + 1)


def _structure(data: _Bytes, fields: dict[int, Any], depth: int) -> dict[str, Any]:
    """Parse a structure; return the values of its known fields by name."""
    structure: dict[str, Any] = {}
    number = 0
    while True:
        head = data.byte()
        if head == 0:
            return structure
        step = head >> 4
        number = number + step if step else data.signed()
        kind = head & 15
        name, wanted, inner = fields.get(number, ("", kind, None))
        if kind != wanted:
            raise data.wrong(f"field {number} has type {kind}, expected {wanted}")
        if name in structure:
            raise data.wrong(f"field {number} occurs twice")
        value = _value(data, kind, inner, depth + 1)
        if name:
            structure[name] = value


def check_footer(source: Source, start: int, footer: bytes) -> int:
    """Check the footer, which begins at byte `start`; return the number of rows.

    Raises `Corrupt` for a damaged footer, `TooLarge` for more columns or groups than
    `Limits.nodes`, `Unsupported` for encrypted or external columns.
    """
    data = _Bytes(footer, source, start)
    file = _structure(data, _FILE, 0)
    if data.left():
        raise data.wrong(f"{data.left()} bytes follow it")
    _need(data, "file", file)
    if "encryption" in file:
        raise Unsupported("is encrypted", path=source.path, remedy="decrypt it first")
    leaves = _leaves(data, file["schema"], source)
    if len(leaves) * max(1, len(file["groups"])) > source.limits.nodes:
        raise TooLarge("has too many columns or groups of rows", path=source.path,
                       expected=f"at most {source.limits.nodes} together")  # fmt: skip
    rows = 0
    for number, group in enumerate(file["groups"]):
        _need(data, "group", group)
        if len(group["columns"]) != len(leaves) or group["rows"] < 0:
            raise Corrupt("a group of rows has other columns than the schema", path=source.path,
                          where=f"group {number}", expected=len(leaves),
                          got=len(group["columns"]))  # fmt: skip
        rows += group["rows"]
        for chunk, leaf in zip(group["columns"], leaves, strict=True):
            _check_chunk(data, chunk, leaf, group["rows"], source, start)
    if rows != file["rows"]:
        raise Corrupt("footer has another number of rows than its groups", path=source.path,
                      expected=file["rows"], got=rows)  # fmt: skip
    return rows


def _need(data: _Bytes, what: str, fields: dict[str, Any]) -> None:
    """Raise `Corrupt` for a structure without a field that it needs."""
    for name in _NEEDED[what]:
        if name not in fields:
            raise data.wrong(f"a {what} without its {name}")


class _Leaf:
    """A column of the schema: its path and physical type; `flat` if it has a value in each row."""

    __slots__ = ("flat", "path", "type")

    def __init__(self, path: list[bytes], kind: int, *, flat: bool) -> None:
        self.path, self.type, self.flat = path, kind, flat


def _leaves(data: _Bytes, schema: list[dict[str, Any]], source: Source) -> list[_Leaf]:
    """The columns of a schema."""
    if not schema:
        raise data.wrong("it has no schema")
    _need(data, "element", schema[0])
    leaves: list[_Leaf] = []
    end = _branch(data, schema, 0, _Branch([], True, 0), leaves, source.limits.type_levels)
    if end != len(schema):
        raise data.wrong("the schema goes on behind its last column")
    return leaves


class _Branch:
    """A group of columns: its path, if it has one value in each row, and its depth."""

    __slots__ = ("flat", "level", "path")

    def __init__(self, path: list[bytes], flat: bool, level: int) -> None:
        self.path, self.flat, self.level = path, flat, level


def _branch(
    data: _Bytes, schema: list[dict[str, Any]], at: int, branch: _Branch, leaves: list[_Leaf],
    levels: int,
) -> int:  # fmt: skip
    """Add the columns of the group at an index of the schema; return the index behind it."""
    count = schema[at].get("children", 0)
    if not 0 <= count < len(schema) or "type" in schema[at] or branch.level > levels:
        raise data.wrong("a group of columns has a wrong number of them, or is nested too deep")
    at += 1
    for _ in range(count):
        if at >= len(schema):
            raise data.wrong("columns of the schema are absent")
        element = schema[at]
        _need(data, "element", element)
        if element.get("repetition") not in (0, 1, 2):
            raise data.wrong("a column is neither required, optional nor repeated")
        flat = branch.flat and element["repetition"] != 2
        inner = _Branch([*branch.path, element["name"]], flat, branch.level + 1)
        if "children" in element:
            at = _branch(data, schema, at, inner, leaves, levels)
        else:
            leaves.append(_leaf(data, element, inner.path, flat))
            at += 1
    return at


def _leaf(data: _Bytes, element: dict[str, Any], path: list[bytes], flat: bool) -> _Leaf:
    """The column of an element of the schema. Raises `Corrupt` without a valid type."""
    kind = element.get("type")
    if type(kind) is not int or not 0 <= kind <= _LAST_TYPE:
        raise data.wrong("a column has no type")
    if kind == FIXED and element.get("width", 0) <= 0:
        raise data.wrong("a column of bytes of a fixed width has no width")
    return _Leaf(path, kind, flat=flat)


def _check_chunk(
    data: _Bytes, chunk: dict[str, Any], leaf: _Leaf, rows: int, source: Source, end: int
) -> None:
    """Check the column of a group of rows against the schema and the file, which ends at `end`."""
    column = chunk.get("column")
    if "file" in chunk or "crypto" in chunk or column is None:
        raise Unsupported("has columns in another file, or encrypted ones", path=source.path)
    _need(data, "column", column)
    where = f"column {b'.'.join(leaf.path)[:60]!r}"
    if column["path"] != leaf.path or column["type"] != leaf.type:
        raise Corrupt("a column is not that of the schema", path=source.path, where=where)
    if not 0 <= column["codec"] <= _LAST_CODEC:
        raise Corrupt("a column has an unknown compression", path=source.path, where=where,
                      got=column["codec"])  # fmt: skip
    if column["values"] < 0 or (leaf.flat and column["values"] != rows):
        raise Corrupt("a column has another number of values than rows", path=source.path,
                      where=where, expected=rows, got=column["values"])  # fmt: skip
    first = column["data"]
    if column.get("dictionary", 0) > 0:
        first = min(first, column["dictionary"])
    if first < 4 or column["encoded"] < 0 or first + column["encoded"] > end:
        raise Corrupt("a column does not lie in the file", path=source.path, where=where,
                      got=f"{column['encoded']} bytes from byte {first}")  # fmt: skip
    if column["decoded"] < 0 or column["decoded"] > source.max_memory:
        raise TooLarge("a column of a group of rows needs too much memory", path=source.path,
                       where=where, expected=f"at most {source.max_memory} bytes "
                       "(`--max-memory`)", got=column["decoded"])  # fmt: skip
