"""The format string of SciDB's binary load and save: ``(int64, double null, skip(4), string)``.

Grammar (server 19.11, `TemplateParser`)::

    template := "(" column { "," column } ")"
    column   := type [ "(" N ")" ] [ "null" ]   |   "skip" [ "(" N ")" ] [ "null" ]

Words are case-insensitive; nothing is nullable unless it says so, the opposite of a schema.
"""

from __future__ import annotations

from raconvert.errors import did_you_mean
from raconvert.files.limits import DEFAULT

from .syntax import Fault, Scanner
from .tables import MAX_SIZE, NATIVE, OPAQUE_SIZE_UNKNOWN, SKIP, SKIP_SYNONYMS, VARIABLE, Column

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.files.limits import Limits


def parse_format(text: str, sizes: dict[str, int], limits: Limits = DEFAULT) -> list[Column]:
    """The columns of a format string; `sizes` are those of user-defined types.

    Raises `Fault`.
    """
    scanner = Scanner(text)
    scanner.expect("(", "format string")
    columns = [_column(scanner, sizes)]
    while scanner.accept(","):
        if len(columns) == limits.fields:
            scanner.fail(f"format string has more than {limits.fields} columns")
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
    """N of ``(N)``."""
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
    """The bytes of a fixed type; a `Fault` at index `at` of `text` if it is unknown."""
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


def parse_sizes(text: str) -> dict[str, int]:
    """The sizes in ``point=16, rational=16``; raises `Fault`."""
    scanner = Scanner(text)
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
