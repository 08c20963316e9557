"""Declaration of a file of records: from options, the schema beside it, or one for its folder.

Binary SciDB files say nothing about themselves. In this order:

1. the options ``schema=``, ``format=`` and the others;
2. ``FILE.schema``: one AFL schema, then optional lines ``format: (...)`` and further options by
   the same names, ``layout: flat``, and ``unnamed: i, j``, the dimensions whose names were made up
   since SciDB wants one for each; comments as in AFL;
3. ``_schema.scidb-schema``, the same for all files of its folder.

An option wins over the file; a schema given as an option leaves the files alone. The format string
decides what the bytes are, the schema names them and gives dimensions. Without a format string the
schema's own types are it, and one int64 for every dimension where ``coords`` says so.
"""

from __future__ import annotations

import os
import re
from collections import namedtuple

from raconvert.errors import Corrupt, RaconvertError, Unsupported, UsageError, worded
from raconvert.files.named import first_there
from raconvert.files.pairing import MARK, check_seal
from raconvert.files.source import Source

from .columns import NATIVE, SKIP, VARIABLE, Column
from .schema import (
    Attribute,
    Dimension,
    Fault,
    Scanner,
    Schema,
    in_c_order,
    parse_format,
    parse_schema,
    parse_sizes,
    past_space,
    schema_text,
    size_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.limits import Limits

SUFFIX = ".schema"
FOLDER_FILE = "_schema.scidb-schema"
LARGEST_SHOWN = 3  # names in messages

# The words of every option; `auto` takes the line of the schema file, or what the schema suggests.
CHOICES = {
    "layout": ("auto", "dense", "flat"),
    "order": ("auto", "C", "chunk"),
    "coords": ("auto", "none", "before", "after"),
    "records": ("auto", "attributes", "raw"),
    "nullable_default": ("auto", "null", "not null"),
}
_TEXTS = ("format", "types", "unnamed")
_LINE = re.compile(rf"({'|'.join((*CHOICES, *_TEXTS))})[ \t]*:[ \t]*([^\n]*)")

# `names` has one for each of `columns`; `coordinates` are the indices of the columns of dimensions.
# `schema_text` is the text that was parsed, `origin` the path of its file ("" for options);
# `unnamed` are the dimensions that have a name only because SciDB wants one.
Declaration = namedtuple(
    "Declaration",
    "schema schema_text columns names coordinates layout order coords raw sizes notes origin "
    "unnamed",
)


class Text(namedtuple("Text", "value name path")):
    """The text of one option: its value, the name of the option, and the path of its file or ""."""

    __slots__ = ()

    def refuse(self, fault: Fault) -> RaconvertError:
        """The error for a fault in this text: `Corrupt` about its file, or `UsageError`."""
        if self.path:
            what = f"{self.name} is wrong: {fault.what}"
            return Corrupt(
                what, path=self.path, where=fault.position, expected=fault.expected, got=fault.got
            )
        what = f"`--in-opt {self.name}` is wrong: {fault.what}"
        return UsageError(what, where=fault.position, expected=fault.expected, got=fault.got)


def declare(source: Source, options: dict[str, str]) -> Declaration:
    """The declaration of a file of records; `options` are those of `read`, by name."""
    given = {name: value for name, value in options.items() if value not in ("", "auto")}
    texts = {name: Text(value, name, "") for name, value in given.items()}
    if "schema" not in given:
        file = find_schema_file(source)
        if file is not None:
            texts = load_schema_file(file) | texts
            _check_seal(file, source)
    if "schema" not in texts and "format" not in texts:
        _refuse_by_name(source)
        raise _undeclared(source)
    return combine(source.path, texts, source.limits)


def find_schema_file(source: Source) -> Source | None:
    """The schema file of the source, or None."""
    own = os.path.realpath(source.path)
    names = [os.path.basename(path) + SUFFIX for path in (own, source.place)]
    name = first_there(source, [*names, FOLDER_FILE])
    return None if name is None else source.named(name, "the schema file")


def _check_seal(file: Source, records: Source) -> None:
    """Raise `Corrupt` for a schema file that was written with another file of records."""
    text, mark, line = file.read_at(0, file.size).rpartition(f"-- {MARK}".encode())
    if mark and file.name != FOLDER_FILE:
        check_seal(line.decode(errors="replace"), text, records, file.path)


def load_schema_file(file: Source) -> dict[str, Text]:
    """The texts of a schema file by option: its schema and its lines. Raises `Corrupt`."""
    path = file.path
    if file.size > file.limits.header_bytes:
        raise Corrupt(
            "schema file is too large",
            path=path,
            expected=f"at most {file.limits.header_bytes} bytes",
            got=file.size,
        )
    try:
        text = file.read_at(0, file.size).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Corrupt("schema file is not UTF-8", path=path, where=f"byte {error.start}") from error
    try:
        return _texts_in(text, path, file.limits)
    except Fault as fault:
        raise Text(text, "schema", path).refuse(fault) from fault


def _texts_in(text: str, path: str, limits: Limits) -> dict[str, Text]:
    """The texts by option in the text of a schema file. Raises `Fault`."""
    texts: dict[str, Text] = {}
    at = past_space(text, 0)
    if not _LINE.match(text, at):
        _, at = parse_schema(text, limits)
        texts["schema"] = Text(text[:at].strip(), "schema", path)
        at = past_space(text, at)
    while at < len(text):
        line = _LINE.match(text, at)
        if line is None:
            expected, got = "'format: (...)' or another option", repr(text[at : at + 40])
            raise Fault("line is not understood", text, at, expected, got)
        name, value = line.group(1), line.group(2).strip()
        if name in CHOICES and value not in CHOICES[name]:
            expected = " | ".join(CHOICES[name])
            raise Fault(f"{name} is not understood", text, line.start(2), expected, value[:40])
        texts[name] = Text(value, name, path)
        at = past_space(text, line.end())
    return texts


def _refuse_by_name(source: Source) -> None:
    """Raise `Unsupported` for SciDB text and dumps."""
    kind = foreign_kind(source.head)
    if kind is not None:
        raise Unsupported(
            f"is {kind}, no binary file of records",
            path=source.path,
            where="byte 0",
            remedy="save it anew in SciDB: save(ARRAY, '/path/x.scidb', -2, '(double null, int64)')"
            "; if it is binary nevertheless, give its `--in-opt schema=` or `--in-opt format=`",
        )


def _undeclared(source: Source) -> UsageError:
    """The error for a file without schema and format string."""
    name = source.name
    return UsageError(
        "SciDB binary files do not say what they hold, and no schema was given",
        path=source.path,
        remedy="add for instance `--in-opt 'schema=<a:double NOT NULL, b:string>[i=0:*]'` or "
        f"`--in-opt 'format=(double, string null)'`; or write such a schema to '{name}{SUFFIX}' "
        f"beside it, or to '{FOLDER_FILE}' for all files of the folder",
    )


def combine(path: str, texts: dict[str, Text], limits: Limits) -> Declaration:
    """The declaration of the file at `path` from the texts of options. Raises `RaconvertError`."""

    def word(name: str) -> str:
        return str(texts[name].value) if name in texts else "auto"

    notes: list[str] = []
    sizes = _parsed(texts.get("types"), lambda text: parse_sizes(text, limits), default={})
    schema, origin = None, ""
    if "schema" in texts:
        schema = _only_schema(texts["schema"], limits)
        origin = texts["schema"].path
    if "format" in texts:
        columns = _parsed(texts["format"], lambda text: parse_format(text, sizes, limits))
    elif schema is None:
        raise UsageError("neither schema nor format string is given", path=path)
    else:
        columns = _columns_of(texts["schema"], schema, sizes, word("nullable_default"), notes)
    coords = word("coords").replace("auto", "none")
    if schema is not None and "format" not in texts:
        columns = _with_coordinates(columns, schema, coords)
    unnamed = []
    if "unnamed" in texts:
        unnamed = [name.strip() for name in str(texts["unnamed"].value).split(",")]
    if schema is None:
        schema = _unnamed(columns, coords)
        unnamed = [dim.name for dim in schema.dims]
    names, coordinates = _named(path, schema, columns, coords)
    text = texts["schema"].value if "schema" in texts else _text_of(columns, names, coordinates)
    layout = word("layout")
    order = _order(path, schema, word("order"), layout)
    return Declaration(
        schema, text, columns, names, coordinates, layout, order, coords,
        word("records") == "raw", {k: v for k, v in sizes.items() if _used(k, columns)}, notes,
        origin, unnamed,
    )  # fmt: skip


def _used(kind: str, columns: list[Column]) -> bool:
    return any(column.type == kind for column in columns)


def _parsed(text: Text | None, parse: Any, default: Any = None) -> Any:
    """A text parsed, or `default` if there is none; a `Fault` becomes the error of the text."""
    if text is None:
        return default
    try:
        return parse(text.value)
    except Fault as fault:
        raise text.refuse(fault) from fault


def _only_schema(text: Text, limits: Limits) -> Schema:
    """Parse a text that is one schema and nothing else."""

    def parse(value: str) -> Schema:
        schema, stop = parse_schema(value, limits)
        scanner = Scanner(value, limits, stop)
        if scanner.token.kind != "end":
            scanner.fail("schema goes on after its end", "nothing")
        return schema

    schema: Schema = _parsed(text, parse)
    return schema


def _columns_of(
    text: Text, schema: Schema, sizes: dict[str, int], default: str, notes: list[str]
) -> list[Column]:
    """The columns of a schema without a format string; a note names doubtful nulls."""
    columns = []
    for attribute in schema.attributes:
        kind, null = attribute.type, attribute.null
        try:
            size = None if kind in VARIABLE else size_of(kind, sizes, text.value, attribute.at)
        except Fault as fault:
            raise text.refuse(fault) from fault
        if kind in ("void", SKIP):
            raise text.refuse(Fault(f"no attribute has type {kind}", text.value, attribute.at))
        columns.append(Column(kind, size, default != "not null" if null is None else null))
    stated = {attribute.null for attribute in schema.attributes}
    if default == "auto" and stated == {True, None}:
        bare = [a.name for a in schema.attributes if a.null is None]
        notes.append(worded(
            f"the schema says NULL but never NOT NULL, as those of SciDB before 15.12, in which "
            f"{_listed(bare)} would not be nullable; if so, add "
            "`--in-opt 'nullable_default=not null'`"
        ))  # fmt: skip
    return columns


def _with_coordinates(columns: list[Column], schema: Schema, coords: str) -> list[Column]:
    """The columns of the attributes, with columns of the dimensions before or behind them."""
    size = NATIVE["int64"].element.nbytes
    coordinates = [Column("int64", size, False)] * len(schema.dims) if coords != "none" else []
    return [*coordinates, *columns] if coords == "before" else [*columns, *coordinates]


def _listed(names: list[str]) -> str:
    """The first names in quotes, and the number of the others."""
    shown = ", ".join(f"'{name}'" for name in names[:LARGEST_SHOWN])
    return shown + (f" and {len(names) - LARGEST_SHOWN} more" if len(names) > LARGEST_SHOWN else "")


def _unnamed(columns: list[Column], coords: str) -> Schema:
    """The schema of a format string alone: attributes a0, a1, …, one open dimension."""
    if coords != "none":
        raise UsageError(
            f"`--in-opt coords={coords}` needs a schema that names the dimensions",
            remedy="add `--in-opt 'schema=<a:double>[i=0:*; j=0:*]'`",
        )
    kinds = [column for column in columns if not column.is_skip]
    attributes = [Attribute(f"a{n}", c.type, 0, c.nullable) for n, c in enumerate(kinds)]
    return Schema("", attributes, [Dimension("i", 0, None, None)])


def _text_of(columns: list[Column], names: list[str], coordinates: list[int]) -> str:
    """The schema of a format string alone, as text; empty if it has only skipped columns."""
    attributes = [
        (name, column.type, column.nullable)
        for n, (name, column) in enumerate(zip(names, columns, strict=True))
        if not column.is_skip and n not in coordinates
    ]
    return schema_text(attributes, [Dimension("i", 0, None, None)]) if attributes else ""


def _named(
    path: str, schema: Schema, columns: list[Column], coords: str
) -> tuple[list[str], list[int]]:
    """A name for every column, and the indices of the columns that are coordinates."""
    attributes = [attribute.name for attribute in schema.attributes]
    dims = [dim.name for dim in schema.dims]
    values = [n for n, column in enumerate(columns) if not column.is_skip]
    if coords == "none":
        expected, coordinates = attributes, []
    elif coords == "before":
        expected, coordinates = dims + attributes, values[: len(dims)]
    else:
        expected, coordinates = attributes + dims, values[len(attributes) :]
    if len(values) != len(expected):
        raise _counts_differ(path, schema, len(values), len(expected), coords)
    for n in coordinates:
        if columns[n] != Column("int64", NATIVE["int64"].element.nbytes, False):
            raise UsageError(
                f"column {n} holds no coordinates", expected="int64", got=f"'{columns[n]}'",
                path=path,
            )  # fmt: skip
    names, skips, others = [], 0, iter(expected)
    for column in columns:
        skips += column.is_skip
        names.append(f"{SKIP}.{skips}" if column.is_skip else next(others))
    return names, coordinates


def _counts_differ(
    path: str, schema: Schema, columns: int, expected: int, coords: str
) -> UsageError:
    remedy = "name an attribute in the schema for every column but skip in the format string"
    if coords == "none" and columns == len(schema.attributes) + len(schema.dims):
        remedy = (
            "if the dimensions are columns too, add `--in-opt coords=after` (behind the "
            "attributes: aio_save, SciDB-R) or `--in-opt coords=before` (SciDB-Py)"
        )
    return UsageError(
        "format string and schema do not belong together",
        path=path,
        expected=f"{expected} columns",
        got=str(columns),
        remedy=remedy,
    )


def _order(path: str, schema: Schema, order: str, layout: str) -> str:
    """C or chunk: the order of the cells of a bounded array in the file."""
    if not schema.bounded:
        if order == "chunk" or layout == "dense":
            what = "order=chunk" if order == "chunk" else "layout=dense"
            raise UsageError(
                f"{what} needs a schema whose dimensions all have both bounds",
                path=path,
                remedy="write for instance [i=0:99; j=0:199]",
            )
        return "C"
    if order == "auto":
        return "C" if in_c_order(schema.shape, schema.chunks) else "chunk"
    return order


# Other files of SciDB, named by their first bytes ------------------------------------------------

# SciDB text: an optional place {0,4}, brackets, then a cell (1,'x'), an empty one (), or {1}(2).
_PLACE = rb"\{ *-?[0-9]+(?: *, *-?[0-9]+)* *\}"
_TEXT = re.compile(rb"\s*(?:" + _PLACE + rb"\s*)?(?:\[\s*)+(?:" + _PLACE + rb"\s*)?\(")
_PRINTABLE = bytes(range(32, 127)) + b"\t\n\r"
_HEAD = 256

OPAQUE = bytes.fromhex("0ec05a00")  # OPAQUE_MAGIC of 19.11
OPAQUE_OLD = bytes.fromhex("acec0a00")


def foreign_kind(head: bytes) -> str | None:
    """The kind of a SciDB file that is not binary records, by its first bytes; else None."""
    if head.startswith(OPAQUE):
        return "an opaque SciDB dump"
    if head.startswith(OPAQUE_OLD):
        return "an opaque SciDB dump of an old version"
    start = head[:_HEAD]
    is_text = not start.translate(None, _PRINTABLE + bytes(range(128, 256)))
    return "SciDB text" if is_text and _TEXT.match(start) else None
