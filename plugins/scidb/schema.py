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

from collections import namedtuple
from math import prod

from raconvert.files.limits import DEFAULT

from .syntax import Fault, Scanner, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from raconvert.files.limits import Limits

RESERVED = ("null", "not", "default", "compression", "reserve", "empty")
MAX_COORDINATE = (1 << 62) - 1  # SciDB's CoordinateBounds
_MAX_DIGITS = 19

# `at` is where the type stands in the text; `null` is True or False where it says so, else None.
Attribute = namedtuple("Attribute", "name type at null")
# Inclusive bounds, None where unbounded; `chunk` None where not given or automatic.
Dimension = namedtuple("Dimension", "name lo hi chunk")


class Schema(namedtuple("Schema", "name attributes dims")):
    """A parsed schema; `dims` slowest first, empty for a data frame."""

    __slots__ = ()

    @property
    def bounded(self) -> bool:
        """True if every dimension has both bounds, and there is one."""
        return bool(self.dims) and all(d.lo is not None and d.hi is not None for d in self.dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions of a bounded schema, slowest first."""
        return tuple(dim.hi - dim.lo + 1 for dim in self.dims)

    @property
    def chunks(self) -> tuple[int, ...]:
        """The chunk lengths of a bounded schema; the whole dimension where none is given."""
        return tuple(
            min(dim.chunk or length, length) or 1
            for dim, length in zip(self.dims, self.shape, strict=True)
        )


def in_c_order(shape: tuple[int, ...], chunks: tuple[int, ...]) -> bool:
    """True if cells chunk after chunk are in row-major order of the whole array.

    They are if, from the slowest axis, chunks are one cell thick, then of any length on one axis,
    then as long as their axes.
    """
    sizes = [(n, c) for n, c in zip(shape, chunks, strict=True) if n > 1]
    while sizes and sizes[0][1] == 1:
        sizes.pop(0)
    return prod(shape) == 0 or all(chunk >= length for length, chunk in sizes[1:])


def schema_text(attributes: Sequence[tuple[str, str, bool]], dims: Sequence[Dimension]) -> str:
    """The schema of attributes (name, type, nullable), in the new syntax, nulls spelt out.

    ``NOT NULL`` or nothing: as SciDB since 15.12 prints it.
    """
    parts = [f"{quoted(n, RESERVED)}:{t}{'' if null else ' NOT NULL'}" for n, t, null in attributes]
    text = f"<{', '.join(parts)}>"
    return text + (f"[{'; '.join(map(dimension_text, dims))}]" if dims else "")


def dimension_text(dim: Dimension) -> str:
    """One dimension in the new syntax."""
    lo, hi = ("*" if bound is None else bound for bound in (dim.lo, dim.hi))
    chunk = "" if dim.chunk is None else f":0:{dim.chunk}"
    return f"{quoted(dim.name, RESERVED)}={lo}:{hi}{chunk}"


def parse_schema(text: str, limits: Limits = DEFAULT) -> tuple[Schema, int]:
    """The schema at the beginning of a text and where it ends; raises `Fault`."""
    scanner = Scanner(text, limits=limits)
    if scanner.accept_word("not") and not scanner.accept_word("empty"):
        scanner.fail("schema is not understood", "'empty' after 'not'")
    name = _array_name(scanner)
    if scanner.is_mark("("):
        scanner.fail("typed dimensions are of SciDB before 13; write them as [i=0:*]", "'<'")
    scanner.expect("<", "schema")
    attributes = [_attribute(scanner)]
    while scanner.accept(","):
        if len(attributes) == scanner.limits.fields:
            scanner.fail(f"schema has more than {scanner.limits.fields} attributes")
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
    """Pass over default, compression and reserve, which say nothing about the bytes."""
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
    """Pass over an expression: to the comma, '>' or keyword outside all parentheses."""
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
        if len(dims) == scanner.limits.fields:
            scanner.fail(f"schema has more than {scanner.limits.fields} dimensions")
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
    ahead = Scanner(scanner.text, scanner.token.stop)
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
    """A bound or length; None for ``*`` and ``?``."""
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
    if depth > scanner.limits.brackets:
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
