"""Tokens of AFL schemas and binary format strings, and errors that know their position.

AFL as the scanner of SciDB 19.11 has it: identifiers ``[A-Za-z_$][A-Za-z0-9_$]*`` or anything in
double quotes, numbers, texts in single quotes, comments ``--``, ``//`` and ``/* */``.
"""

from __future__ import annotations

import re
from collections import namedtuple

from raconvert.files.limits import DEFAULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from raconvert.files.limits import Limits

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
    """A text does not follow its grammar; `at` is where, as an index into `text`."""

    def __init__(self, what: str, text: str, at: int, expected: str = "", got: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.text = text
        self.at = at
        self.expected = expected or None
        self.got = got or None

    @property
    def place(self) -> str:
        """Where it is: line and column, both from 1."""
        before = self.text[: self.at]
        return f"line {before.count(chr(10)) + 1}, column {self.at - before.rfind(chr(10))}"


def past_space(text: str, at: int) -> int:
    """The place of the next thing but white space and comments."""
    space = _SPACE.match(text, at)
    return space.end() if space else at


class Scanner:
    """One token ahead in a text."""

    def __init__(self, text: str, at: int = 0, limits: Limits = DEFAULT) -> None:
        self.text = text
        self.limits = limits
        self.stop = at  # where the last token that was taken ends
        self.token = self._scan(at)

    def _scan(self, at: int) -> Token:
        at = past_space(self.text, at)
        if at == len(self.text):
            return Token("end", "", at, at)
        found = _TOKEN.match(self.text, at)
        if found is None or self.text.startswith("/*", at):
            open_comment = self.text.startswith("/*", at)
            what = "comment is not closed" if open_comment else "character has no meaning here"
            raise Fault(what, self.text, at, got=repr(self.text[at : at + 1]))
        kind = str(found.lastgroup)
        return Token(kind, found.group(kind), at, found.end())

    def take(self) -> Token:
        """The token and go on to the next."""
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
        """Take the mark if it comes next."""
        if self.is_mark(mark):
            self.take()
            return True
        return False

    def accept_word(self, word: str) -> bool:
        """Take the word if it comes next."""
        if self.is_word(word):
            self.take()
            return True
        return False

    def expect(self, mark: str, what: str) -> None:
        """Take the mark; a fault names `what` was being read."""
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
