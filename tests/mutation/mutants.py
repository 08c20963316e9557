"""Every change of one token that a module could have: comparisons, constants, operators, and/or/not.

Left out is what is no behaviour: annotations, texts, `strict=` of zip (which guards our own code),
and how much is allowed or done at once (MAX_…, …_BYTES): one more or less would do as well.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    Place = tuple[int, int]  # line from 1, column of the character from 0

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
               "in": "not in", "is": "is not"}  # fmt: skip
OPERATORS = {"+": "-", "-": "+", "*": "+", "//": "*", "/": "*", "%": "//", "<<": ">>", ">>": "<<",
             "&": "|", "|": "&", "^": "|", "**": "*"}  # fmt: skip
WORDS = {"and": "or", "or": "and"}
AMOUNT = re.compile(r"_?(MAX_|LARGEST_|SMALLEST_|MOST_)\w+|\w+_(BYTES|SHOWN|AT_ONCE)")


class Mutant(NamedTuple):
    """One change of one line."""

    line: int
    start: int
    end: int
    new: str
    old_line: str
    new_line: str

    def applied(self, source: str) -> str:
        lines = source.splitlines(keepends=True)
        text = lines[self.line - 1]
        lines[self.line - 1] = text[: self.start] + self.new + text[self.end :]
        return "".join(lines)


def mutants(source: str) -> list[Mutant]:
    """All changes of a module that still compile, in the order of its lines."""
    return sorted({mutant for mutant in candidates(source) if compiles(mutant, source)})


def candidates(source: str) -> Iterator[Mutant]:
    """All changes of a module, of which some may not compile."""
    return _Finder(source).all()


def compiles(mutant: Mutant, source: str) -> bool:
    """True if the module with this change can be compiled."""
    try:
        compile(mutant.applied(source), "mutant", "exec")
    except (SyntaxError, SyntaxWarning):
        return False
    return True


class _Finder:
    def __init__(self, source: str) -> None:
        self.lines = source.splitlines()
        self.tree = ast.parse(source)
        self.tokens = [
            token
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type in (tokenize.OP, tokenize.NAME)
        ]

    def all(self) -> Iterator[Mutant]:
        for node in _code(self.tree):
            match node:
                case ast.Compare():
                    yield from self._between([node.left, *node.comparators], COMPARISONS)
                case ast.BoolOp():
                    yield from self._between(node.values, WORDS)
                case ast.BinOp():
                    yield from self._between([node.left, node.right], OPERATORS)
                case ast.UnaryOp(op=ast.Not()):
                    line, column = self._start(node)
                    yield self._change((line, column), column + len("not "), "")
                case ast.Constant(value=bool() as value):
                    yield from self._constant(node, str(not value))
                case ast.Constant(value=int() as value):
                    yield from self._constant(node, str(value + 1))
                    if value:
                        yield from self._constant(node, str(value - 1))
                case _:
                    pass

    def _between(self, operands: list[ast.expr], table: dict[str, str]) -> Iterator[Mutant]:
        for left, right in pairwise(operands):
            gap = [
                t for t in self.tokens if self._end(left) <= t.start and t.end <= self._start(right)
            ]
            words = [t for t in gap if t.string in table or t.string == "not"]
            if not words:
                continue
            (line, column), end = words[0].start, words[0].end[1]
            texts = [t.string for t in words[:2]]
            if texts == ["not", "in"]:
                yield self._change((line, column), end + 1, "")
            elif texts == ["is", "not"]:
                yield self._change((line, column), words[1].end[1], "is")
            else:
                yield self._change((line, column), end, table[texts[0]])

    def _constant(self, node: ast.Constant, new: str) -> Iterator[Mutant]:
        if node.end_lineno == node.lineno:
            yield self._change(self._start(node), self._end(node)[1], new)

    def _change(self, start: Place, end: int, new: str) -> Mutant:
        line, column = start
        old = self.lines[line - 1]
        return Mutant(line, column, end, new, old.strip(), (old[:column] + new + old[end:]).strip())

    def _start(self, node: ast.expr) -> Place:
        return node.lineno, self._column(node.lineno, node.col_offset)

    def _end(self, node: ast.expr) -> Place:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return node.end_lineno, self._column(node.end_lineno, node.end_col_offset)

    def _column(self, line: int, offset: int) -> int:
        return len(self.lines[line - 1].encode()[:offset].decode())


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below a node but annotations and what is only for type checkers."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        if name == "body" and isinstance(node, ast.If) and _for_types(node.test):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _left_out(child):
                yield child
                yield from _code(child)


def _for_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _left_out(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id="TYPE_CHECKING")]) | ast.JoinedStr():
            return True
        case ast.Call(func=ast.Name(id="cast")) | ast.keyword(arg="strict"):
            return True
        case ast.Assign(
            targets=[ast.Name(id=name)], value=ast.Constant() | ast.BinOp(op=ast.LShift())
        ):
            return AMOUNT.fullmatch(name) is not None
        case _:
            return False
