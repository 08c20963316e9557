"""The header text of an NPY file: one Python literal, read in one pass and never run.

It takes mappings with text keys, lists, tuples, texts, integers, True, False and None: all that
NumPy has written since Python 2 (``2L``, ``u'x'``). Time and memory grow with the text alone. Other
literals of Python are refused, since nothing writes them and readers would differ.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

    from raconvert.files.limits import Limits

# The strings are atomic groups: an unterminated one fails once and is not tried in pieces.
_TOKEN = re.compile(
    r"""[ \t\r\n\f]*(?:
      (?P<mark> [{}\[\](),:] )
    | (?P<text> [uU]?(?: '(?>(?:[^'\\\n]|\\.)*)' | "(?>(?:[^"\\\n]|\\.)*)" ) )
    | (?P<number> [-+]?(?:0|[1-9][0-9]*) )[lL]?(?!\w)
    | (?P<word> True|False|None )(?!\w)
    | (?P<end> \Z )
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_ESCAPED = {
    "\n": "", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n",
    "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip
_WORDS = {"True": True, "False": False, "None": None}
_CLOSING = {"[": "]", "(": ")"}


def parse(text: str, limits: Limits) -> list[tuple[str, Any]]:
    """Return the keys and values of a mapping, in order; ValueError for any other text."""
    tokens = _Tokens(text, limits)
    tokens.expect("{")
    pairs = []
    while not tokens.take("}"):
        kind, key = tokens.next()
        if kind != "text":
            tokens.fail("a key that is a text")
        tokens.expect(":")
        pairs.append((_text(key), _value(tokens, 1)))
        if not tokens.take(","):
            tokens.expect("}")
            break
    if tokens.next()[0] != "end":
        tokens.fail("the end")
    return pairs


class _Tokens:
    """The tokens of a text, one of them read ahead."""

    def __init__(self, text: str, limits: Limits) -> None:
        self.limits = limits
        self._tokens = _scan(text)
        self._ahead = next(self._tokens)
        self._offset = 0  # of the last token taken

    def next(self) -> tuple[str, str]:
        """Return the kind and text of the next token; after the end, the end again."""
        kind, text, self._offset = self._ahead
        if kind != "end":
            self._ahead = next(self._tokens)
        return kind, text

    def take(self, mark: str) -> bool:
        """Take the next token and return True if it is this mark; else return False."""
        if self._ahead[:2] == ("mark", mark):
            self.next()
            return True
        return False

    def expect(self, mark: str) -> None:
        """Take this mark; raise `ValueError` for any other token."""
        if not self.take(mark):
            self.next()
            self.fail(f"'{mark}'")

    def fail(self, expected: str) -> NoReturn:
        """Raise `ValueError` about the last token."""
        raise ValueError(f"character {self._offset} is not {expected}")


def _scan(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield kind, text and offset of each token, the end last."""
    offset = 0
    while True:
        match = _TOKEN.match(text, offset)
        if match is None or match.lastgroup is None:
            raise ValueError(f"character {offset} does not begin a literal")
        yield match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)
        offset = match.end()


def _value(tokens: _Tokens, depth: int) -> Any:
    """Return the next value, inside `depth` brackets."""
    kind, text = tokens.next()
    if kind == "text":
        return _text(text)
    if kind == "number":
        if len(text) > tokens.limits.literal_digits:
            raise ValueError(f"a number of {len(text)} digits")
        return int(text)
    if kind == "word":
        return _WORDS[text]
    if text not in _CLOSING:
        tokens.fail("a value")
    most = tokens.limits.literal_levels
    if depth >= most:
        raise ValueError(f"more than {most} brackets inside each other")
    return _row(tokens, text, depth)


def _row(tokens: _Tokens, opening: str, depth: int) -> Any:
    """Return a list, a tuple, or the one value that a pair of brackets without commas holds."""
    items: list[Any] = []
    closing = _CLOSING[opening]
    comma = False
    while not tokens.take(closing):
        items.append(_value(tokens, depth + 1))
        comma = tokens.take(",")
        if not comma:
            tokens.expect(closing)
            break
    if opening == "[":
        return items
    return items[0] if len(items) == 1 and not comma else tuple(items)


def _text(token: str) -> str:
    """Return the text that a token with quotes, and maybe a prefix, stands for."""
    text = token[token.index(token[-1]) + 1 : -1]
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    octal, *numbers, other = match.groups()
    if octal:
        return chr(int(octal, 8))
    number = next(filter(None, numbers), None)
    if number:
        return chr(int(number, 16))
    if other in "xuUN":  # x, u and U without enough digits; N, which needs the table of names
        raise ValueError(f"an unreadable escape \\{other}")
    return _ESCAPED.get(other, "\\" + other)
