"""AFL array schemas: ``name<attributes>[dimensions]``, old and new dimension syntax.

Grammar of SciDB 19.11 (the parts in square brackets are optional)::

    schema := [not empty] [name] < attr {, attr} > [ "[" dim {(,|;) dim} "]" ]
    name   := ident {. ident} [@ version]
    attr   := ident : type [null | not null] [default value] [compression 'x'] [reserve n]
    dim    := ident  |  ident = lo : hi [: overlap [: chunk]]  |  ident = lo : hi , chunk , overlap

`hi` may be ``*``; overlap and chunk ``?``; chunk ``*``. Since commas also separate dimensions, the
two numbers after an old ``lo:hi`` belong to it. No dimensions at all: a data frame. Attributes are
nullable unless they say ``not null``, since 15.12; before, the other way round.
"""

from __future__ import annotations

import re
from collections import namedtuple
from math import prod

from raconvert.errors import did_you_mean

from .columns import MAX_SIZE, NATIVE, OPAQUE_SIZE_UNKNOWN, SKIP, SKIP_SYNONYMS, VARIABLE, Column

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from raconvert.files.limits import Limits


# Tokens of AFL schemas and binary format strings, and errors with their position -----------------
# AFL as the scanner of SciDB 19.11 has it: identifiers ``[A-Za-z_$][A-Za-z0-9_$]*`` or anything in
# double quotes, numbers, texts in single quotes, comments ``--``, ``//`` and ``/* */``.


IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_SPACE = re.compile(r"(?:\s+|--[^\n]*|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
       |(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)
       |"(?P<quoted>[^"\n]+)"
       |(?P<text>'(?:[^'\\]|\\.)*')
       |(?P<mark>[<>\[\](),:;=*?@.+/-])""",
    re.VERBOSE | re.DOTALL,
)

# `kind` is name, quoted, number, text, mark or end; `value` is without double quotes.
Token = namedtuple("Token", "kind value start stop")


class Fault(Exception):
    """A fault of grammar in `text`, at the index `at`."""

    def __init__(self, what: str, text: str, at: int, expected: str = "", got: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.text = text
        self.at = at
        self.expected = expected or None
        self.got = got or None

    @property
    def position(self) -> str:
        """The line and column of the fault, both from 1, for messages."""
        before = self.text[: self.at]
        return f"line {before.count(chr(10)) + 1}, column {self.at - before.rfind(chr(10))}"


def past_space(text: str, at: int) -> int:
    """The index behind white space and comments."""
    space = _SPACE.match(text, at)
    return space.end() if space else at


class Scanner:
    """The tokens of a text, one by one; `token` is the next one."""

    def __init__(self, text: str, limits: Limits, at: int = 0) -> None:
        self.text = text
        self.limits = limits
        self.stop = at  # end of the last token that was taken
        self.token = self._scan(at)

    def _scan(self, at: int) -> Token:
        at = past_space(self.text, at)
        if at == len(self.text):
            return Token("end", "", at, at)
        match = _TOKEN.match(self.text, at)
        if match is None or self.text.startswith("/*", at):
            open_comment = self.text.startswith("/*", at)
            what = "comment is not closed" if open_comment else "character has no meaning here"
            raise Fault(what, self.text, at, got=repr(self.text[at : at + 1]))
        kind = str(match.lastgroup)
        return Token(kind, match.group(kind), at, match.end())

    def take(self) -> Token:
        """Return the token, and go on to the next."""
        token = self.token
        self.stop = token.stop
        self.token = self._scan(token.stop)
        return token

    def is_mark(self, *marks: str) -> bool:
        """True if the next token is one of these marks."""
        return self.token.kind == "mark" and self.token.value in marks

    def is_word(self, *words: str) -> bool:
        """True if the next token is one of these words, in any case."""
        return self.token.kind == "name" and self.token.value.lower() in words

    def accept(self, mark: str) -> bool:
        """Take the mark if it comes next; True if it did."""
        if self.is_mark(mark):
            self.take()
            return True
        return False

    def accept_word(self, word: str) -> bool:
        """Take the word if it comes next; True if it did."""
        if self.is_word(word):
            self.take()
            return True
        return False

    def expect(self, mark: str, what: str) -> None:
        """Take the mark. Raises `Fault`, which names `what` is not complete."""
        if not self.accept(mark):
            self.fail(f"{what} is not complete", f"'{mark}'")

    def name(self, what: str) -> str:
        """Take an identifier, quoted or not."""
        if self.token.kind not in ("name", "quoted"):
            self.fail(f"{what} is missing", "an identifier")
        return str(self.take().value)

    def fail(self, what: str, expected: str = "") -> NoReturn:
        """Raise the fault at the next token."""
        token = self.token
        got = "the end" if token.kind == "end" else repr(self.text[token.start : token.stop][:40])
        raise Fault(what, self.text, token.start, expected, got)


def quoted(name: str, reserved: tuple[str, ...] = ()) -> str:
    """An identifier as AFL needs it, in double quotes if it needs them."""
    bare = IDENTIFIER.match(name) and name.lower() not in reserved
    return name if bare else f'"{name}"'


RESERVED = ("null", "not", "default", "compression", "reserve", "empty")
MAX_COORDINATE = (1 << 62) - 1  # SciDB's CoordinateBounds
_MAX_DIGITS = 19

# `at` is the index of the type in the text; `null` is True or False if it is stated, else None.
Attribute = namedtuple("Attribute", "name type at null")
# Inclusive bounds, None if unbounded; `chunk` is None if absent or automatic.
Dimension = namedtuple("Dimension", "name lo hi chunk")


class Schema(namedtuple("Schema", "name attributes dims")):
    """A parsed schema; `dims` slowest first, empty for a data frame."""

    __slots__ = ()

    @property
    def bounded(self) -> bool:
        """True if there are dimensions, and each has both bounds."""
        return bool(self.dims) and all(d.lo is not None and d.hi is not None for d in self.dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions of a bounded schema, slowest first."""
        return tuple(dim.hi - dim.lo + 1 for dim in self.dims)

    @property
    def chunks(self) -> tuple[int, ...]:
        """The chunk lengths of a bounded schema; the whole dimension if it has none."""
        return tuple(
            min(dim.chunk or length, length) or 1
            for dim, length in zip(self.dims, self.shape, strict=True)
        )


def in_c_order(shape: tuple[int, ...], chunks: tuple[int, ...]) -> bool:
    """True if cells, chunk after chunk, are in row-major order of the whole array.

    They are if, from the slowest axis, chunks are one cell thick, then of any length on one axis,
    then as long as their axes.
    """
    sizes = [(n, c) for n, c in zip(shape, chunks, strict=True) if n > 1]
    while sizes and sizes[0][1] == 1:
        sizes.pop(0)
    return prod(shape) == 0 or all(chunk >= length for length, chunk in sizes[1:])


def schema_text(attributes: Sequence[tuple[str, str, bool]], dims: Sequence[Dimension]) -> str:
    """The schema of attributes (name, type, nullable), in the new syntax.

    Attributes that are not nullable have ``NOT NULL``, the others nothing, as SciDB prints them
    since 15.12.
    """
    parts = [f"{quoted(n, RESERVED)}:{t}{'' if null else ' NOT NULL'}" for n, t, null in attributes]
    text = f"<{', '.join(parts)}>"
    return text + (f"[{'; '.join(map(dimension_text, dims))}]" if dims else "")


def dimension_text(dim: Dimension) -> str:
    """One dimension in the new syntax."""
    lo, hi = ("*" if bound is None else bound for bound in (dim.lo, dim.hi))
    chunk = "" if dim.chunk is None else f":0:{dim.chunk}"
    return f"{quoted(dim.name, RESERVED)}={lo}:{hi}{chunk}"


def parse_schema(text: str, limits: Limits) -> tuple[Schema, int]:
    """Parse the schema at the beginning of a text; return it and its end. Raises `Fault`."""
    scanner = Scanner(text, limits)
    if scanner.accept_word("not") and not scanner.accept_word("empty"):
        scanner.fail("schema is not understood", "'empty' after 'not'")
    name = _array_name(scanner)
    if scanner.is_mark("("):
        scanner.fail("typed dimensions are of SciDB before 13; write them as [i=0:*]", "'<'")
    scanner.expect("<", "schema")
    attributes = [_attribute(scanner)]
    while scanner.accept(","):
        if len(attributes) == scanner.limits.structure_fields:
            scanner.fail(f"schema has more than {scanner.limits.structure_fields} attributes")
        attributes.append(_attribute(scanner))
    scanner.expect(">", "list of attributes")
    dims = _dimensions(scanner) if scanner.is_mark("[") else []
    seen: set[str] = set()
    for used in [part.name for part in attributes] + [dim.name for dim in dims]:
        if used in seen:
            raise Fault(f"name '{used}' is used twice in the schema", text, scanner.stop)
        seen.add(used)
    return Schema(name, attributes, dims), scanner.stop


def _array_name(scanner: Scanner) -> str:
    if scanner.token.kind not in ("name", "quoted"):
        return ""
    name = scanner.name("name")
    while scanner.accept("."):
        name = scanner.name("name after '.'")
    if scanner.accept("@"):
        if scanner.token.kind != "number":
            scanner.fail("version is missing", "a number")
        scanner.take()
    return name


def _attribute(scanner: Scanner) -> Attribute:
    name = scanner.name("name of an attribute")
    scanner.expect(":", f"attribute '{name}'")
    if scanner.token.kind != "name":
        scanner.fail(f"type of attribute '{name}' is missing", "a type")
    kind = scanner.take()
    null = None
    if scanner.accept_word("null"):
        null = True
    elif scanner.accept_word("not"):
        null = False
        if not scanner.accept_word("null"):
            scanner.fail(f"attribute '{name}' is not understood", "'null' after 'not'")
    _rest_of_attribute(scanner, name)
    return Attribute(name, kind.value.lower(), kind.start, null)


def _rest_of_attribute(scanner: Scanner, name: str) -> None:
    """Skip default, compression and reserve, which do not concern the bytes."""
    if scanner.accept_word("default"):
        _pass_value(scanner)
    if scanner.accept_word("compression"):
        if scanner.token.kind != "text":
            scanner.fail(f"compression of attribute '{name}' is missing", "a text in quotes")
        scanner.take()
    if scanner.accept_word("reserve"):
        if scanner.token.kind != "number":
            scanner.fail(f"reserve of attribute '{name}' is missing", "a number")
        scanner.take()
    if not scanner.is_mark(",", ">"):
        scanner.fail(f"attribute '{name}' is not understood", "',' or '>'")


def _pass_value(scanner: Scanner) -> None:
    """Skip an expression: to the comma, '>' or keyword outside all parentheses."""
    depth = taken = 0
    while depth or not (scanner.is_mark(",", ">") or scanner.is_word("compression", "reserve")):
        if scanner.token.kind == "end":
            scanner.fail("default value does not end", "',' or '>'")
        depth += scanner.is_mark("(", "[") - scanner.is_mark(")", "]")
        if depth < 0:
            scanner.fail("parentheses do not match")
        scanner.take()
        taken += 1
    if not taken:
        scanner.fail("default value is missing", "a value")


def _dimensions(scanner: Scanner) -> list[Dimension]:
    scanner.take()
    dims = [_dimension(scanner)]
    while scanner.accept(",") or scanner.accept(";"):
        if len(dims) == scanner.limits.structure_fields:
            scanner.fail(f"schema has more than {scanner.limits.structure_fields} dimensions")
        dims.append(_dimension(scanner))
    scanner.expect("]", "list of dimensions")
    return dims


def _dimension(scanner: Scanner) -> Dimension:
    name = scanner.name("name of a dimension")
    if scanner.is_mark("("):
        scanner.fail("typed dimensions are of SciDB before 13; write them as [i=0:*]", "'='")
    if not scanner.accept("="):
        return Dimension(name, 0, None, None)
    at = scanner.token.start
    lo = _bound(scanner)
    scanner.expect(":", f"dimension '{name}'")
    hi = _bound(scanner)
    chunk = None
    if scanner.accept(":"):
        _bound(scanner)  # overlap: such cells are not in the file
        if scanner.accept(":"):
            chunk = _bound(scanner)
    elif scanner.is_mark(",") and _old_style_follows(scanner):
        scanner.take()
        chunk = _bound(scanner)
        scanner.expect(",", f"dimension '{name}' in the old syntax lo:hi,chunk,overlap")
        _bound(scanner)
    _check_dimension(scanner, at, Dimension(name, lo, hi, chunk))
    return Dimension(name, lo, hi, chunk)


def _old_style_follows(scanner: Scanner) -> bool:
    """True if a number, and no further dimension, comes after the comma."""
    ahead = Scanner(scanner.text, scanner.limits, scanner.token.stop)
    return ahead.token.kind == "number" or ahead.is_mark("*", "?", "(", "-", "+")


def _check_dimension(scanner: Scanner, at: int, dim: Dimension) -> None:
    if dim.lo is not None and dim.hi is not None and dim.hi < dim.lo - 1:
        raise Fault(
            f"dimension '{dim.name}' ends before it begins",
            scanner.text,
            at,
            f"at least {dim.lo - 1}",
            str(dim.hi),
        )
    if dim.chunk is not None and dim.chunk < 1:
        raise Fault(f"chunks of dimension '{dim.name}' are empty", scanner.text, at, "at least 1")


def _bound(scanner: Scanner) -> int | None:
    """Take a bound or length; None for ``*`` and ``?``."""
    if scanner.accept("*") or scanner.accept("?"):
        return None
    at = scanner.token.start
    value = _sum(scanner, 0)
    if abs(value) > MAX_COORDINATE:
        raise Fault(
            "number is out of range", scanner.text, at, f"at most {MAX_COORDINATE} either way"
        )
    return value


def _sum(scanner: Scanner, depth: int) -> int:
    value = _product(scanner, depth)
    while scanner.is_mark("+", "-"):
        sign = 1 if scanner.take().value == "+" else -1
        value += sign * _product(scanner, depth)
    return value


def _product(scanner: Scanner, depth: int) -> int:
    value = _atom(scanner, depth)
    while scanner.accept("*"):
        value *= _atom(scanner, depth)
        if abs(value) > MAX_COORDINATE:
            scanner.fail("number is out of range", f"at most {MAX_COORDINATE} either way")
    return value


def _atom(scanner: Scanner, depth: int) -> int:
    if depth > scanner.limits.expression_levels:
        scanner.fail("expression is nested too deep")
    if scanner.accept("-"):
        return -_atom(scanner, depth + 1)
    if scanner.accept("+"):
        return _atom(scanner, depth + 1)
    if scanner.accept("("):
        value = _sum(scanner, depth + 1)
        scanner.expect(")", "expression")
        return value
    token = scanner.token
    if token.kind != "number" or not token.value.isdecimal() or len(token.value) > _MAX_DIGITS:
        scanner.fail("number is missing or not understood", "a whole number, '*' or '?'")
    return int(scanner.take().value)


# The format string of SciDB's binary load and save: ``(int64, double null, skip(4), string)`` ----
# Grammar (server 19.11, `TemplateParser`)::
#
#     template := "(" column { "," column } ")"
#     column   := type [ "(" N ")" ] [ "null" ]   |   "skip" [ "(" N ")" ] [ "null" ]
#
# Words are case-insensitive; nothing is nullable unless it says so, the opposite of a schema.


def parse_format(text: str, sizes: dict[str, int], limits: Limits) -> list[Column]:
    """The columns of a format string; `sizes` are those of user-defined types. Raises `Fault`."""
    scanner = Scanner(text, limits)
    scanner.expect("(", "format string")
    columns = [_column(scanner, sizes)]
    while scanner.accept(","):
        if len(columns) == limits.structure_fields:
            scanner.fail(f"format string has more than {limits.structure_fields} columns")
        columns.append(_column(scanner, sizes))
    scanner.expect(")", "format string")
    if scanner.token.kind != "end":
        scanner.fail("format string goes on after its end", "nothing after ')'")
    return columns


def _column(scanner: Scanner, sizes: dict[str, int]) -> Column:
    if scanner.is_mark(",", ")"):
        scanner.fail("column is empty (SciDB 14.8 read that as 'skip'; write skip)", "a type")
    if scanner.token.kind != "name":
        scanner.fail("column has no type", "a type")
    at = scanner.token.start
    word = scanner.take().value.lower()
    kind = SKIP if word in SKIP_SYNONYMS else word
    size = _width(scanner, kind) if scanner.is_mark("(") else None
    if size is None and kind not in VARIABLE and kind != SKIP:
        size = size_of(kind, sizes, scanner.text, at)
    if scanner.is_mark(":"):
        scanner.fail("format strings hold no names, only types", "',' or ')'")
    if scanner.is_word("not"):
        scanner.fail("'not null' is what a column is without 'null'", "',' or ')'")
    nullable = scanner.accept_word("null")
    if not scanner.is_mark(",", ")"):
        scanner.fail("column is not understood", "'null', ',' or ')'")
    return Column(kind, size, nullable)


def _width(scanner: Scanner, kind: str) -> int:
    """Take ``(N)`` and return N."""
    if kind not in VARIABLE and kind != SKIP:
        scanner.fail(f"type {kind} has a width of its own", "(N) after string, binary or skip only")
    scanner.take()
    at, value = scanner.token.start, scanner.token.value
    if scanner.token.kind != "number" or not value.isdecimal():
        scanner.fail("width is not a whole number", f"1 to {MAX_SIZE}")
    scanner.take()
    if len(value) > 10 or not 1 <= int(value) <= MAX_SIZE:
        raise Fault("width is out of range", scanner.text, at, f"1 to {MAX_SIZE}", value[:40])
    scanner.expect(")", "width")
    return int(value)


def size_of(kind: str, sizes: dict[str, int], text: str, at: int) -> int:
    """The bytes of a fixed type. Raises `Fault` at index `at` of `text` if it is unknown."""
    if kind in NATIVE:
        native = NATIVE[kind]
        return int(native.element.nbytes * native.items)
    if kind in sizes:
        return sizes[kind]
    known = [*NATIVE, *VARIABLE]
    hint = "a plug-in type; its size" if kind in OPAQUE_SIZE_UNKNOWN else "a type of a plug-in"
    raise Fault(
        f"type '{kind}' is unknown{did_you_mean(kind, known)}",
        text,
        at,
        f"one of {', '.join(known)}; or, if it is {hint}, its bytes: `--in-opt types={kind}=16`",
    )


def parse_sizes(text: str, limits: Limits) -> dict[str, int]:
    """The sizes in ``point=16, rational=16``; raises `Fault`."""
    scanner = Scanner(text, limits)
    sizes: dict[str, int] = {}
    while scanner.token.kind != "end":
        at = scanner.token.start
        name = scanner.name("name of a type").lower()
        if name in NATIVE or name in VARIABLE or name == SKIP or name in SKIP_SYNONYMS:
            raise Fault(f"type {name} has a size already", text, at)
        scanner.expect("=", "size of a type")
        value = scanner.token.value
        if not value.isdecimal() or len(value) > 10 or not 1 <= int(value) <= MAX_SIZE:
            scanner.fail("size is out of range", f"1 to {MAX_SIZE}")
        sizes[name] = int(value)
        scanner.take()
        if not scanner.accept(",") and scanner.token.kind != "end":
            scanner.fail("sizes are not understood", "point=16,rational=16")
    return sizes
