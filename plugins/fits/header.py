"""Headers of FITS: cards of 80 characters to keywords and back, and the offsets of HDUs."""

from __future__ import annotations

import re
from math import isfinite, prod

from raconvert.declared import Record
from raconvert.errors import Corrupt, TooLarge, Unsupported
from raconvert.plugin import trailing_note

from .tables import BLOCK, CARD, ELEMENTS, MAX_RANK, MAX_TEXT, TEXTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from raconvert.plugin import Source

__all__ = [
    "Cards", "Unit", "card", "commentary", "fits_one_card", "is_text", "keyword_cards",
    "text_cards", "units",
    "whole",
]  # fmt: skip

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([ED][+-]?\d+)?")
_STRING = re.compile(r"'((?:[^']|'')*)'")
_KEYWORD = re.compile(r"[A-Z0-9_-]{1,8}")
_LONG_KEYWORD = re.compile(r"[A-Z0-9_-]+(?: [A-Z0-9_-]+)*")
_KEYWORD_WIDTH = 40


class Cards:
    """The keywords of a header.

    `values` are those of the keywords; `comments` stand behind them in the cards; `words` are the
    values that are neither text, number nor truth, verbatim; `lines` are the cards without a value,
    by keyword; `twice` names the keywords that are repeated: the first card counts.
    """

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.comments: dict[str, str] = {}
        self.words: dict[str, str] = {}
        self.lines: dict[str, list[str]] = {}
        self.twice: list[str] = []
        self._parts: dict[str, list[str]] = {}
        self._last = ""

    def take(self, text: str) -> None:
        """Parse the text of a card, and add it to the keywords."""
        name, rest = text[:8].rstrip(), None
        if name == "CONTINUE" and self._continued(text[8:]):
            return
        if name == "HIERARCH" and "=" in text:
            name, _, rest = text[9:].partition("=")
            name = name.strip()
        elif text[8:10] == "= " and name not in TEXTS.values():
            rest = text[10:]
        self._last = ""
        if rest is None:
            if line := text[8:].rstrip():
                self.lines.setdefault(name, []).append(line)
            return
        if name in self.values:
            self.twice.append(name)
            return
        value, comment, word = _value(rest)
        self.values[name] = value
        if comment:
            self.comments[name] = comment
        if word is not None:
            self.words[name] = word
        self._last = name

    def _continued(self, text: str) -> bool:
        """Add a CONTINUE card to the text before it; False if that text does not end with an &."""
        last = self._last
        before = self._parts[last][-1] if last in self._parts else self.values.get(last)
        if not isinstance(before, str) or not before.endswith("&") or last in self.words:
            return False
        value, comment, _ = _value(text)
        self._parts.setdefault(last, [before]).append(str(value or ""))
        if comment:
            self.comments[last] = f"{self.comments.get(last, '')} {comment}".strip()
        return True

    def finish(self) -> None:
        """Join the parts of long texts; all parts but the last end with an &."""
        for name, pieces in self._parts.items():
            self.values[name] = "".join(piece[:-1] for piece in pieces[:-1]) + pieces[-1]


def _value(text: str) -> tuple[Any, str, str | None]:
    """The value of a card, its comment, and the verbatim word if it has no type, else None."""
    text = text.strip()
    if match := _STRING.match(text):
        _, _, comment = text[match.end() :].partition("/")
        return match[1].replace("''", "'").rstrip(), comment.strip(), None
    word, _, comment = text.partition("/")
    word, comment = word.strip(), comment.strip()
    if word in ("T", "F"):
        return word == "T", comment, None
    if _NUMBER.fullmatch(word):
        if word.lstrip("+-").isdigit():
            return int(word), comment, None
        number = float(word.replace("D", "E"))
        if isfinite(number):
            return number, comment, None
    return word or None, comment, word or None


class Unit(Record):
    """A header and data unit: number, keywords, offsets of header and data, bytes of data."""

    number: int
    cards: Cards
    start: int
    offset: int
    nbytes: int

    @property
    def values(self) -> dict[str, Any]:
        """The values of the keywords."""
        return self.cards.values

    @property
    def end(self) -> int:
        """The offset of the next HDU."""
        return self.offset + -(-self.nbytes // BLOCK) * BLOCK

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes, the slowest first."""
        return tuple(self.values[f"NAXIS{n}"] for n in range(self.values["NAXIS"], 0, -1))

    @property
    def kind(self) -> str:
        """IMAGE, GROUPS, BINTABLE, TABLE, TILES for an image in tiles, or another extension."""
        if _has_groups(self.values, self.number):
            return "GROUPS"
        kind = str(self.values.get("XTENSION", "IMAGE")) if self.number else "IMAGE"
        return "TILES" if kind == "BINTABLE" and self.values.get("ZIMAGE") is True else kind


def units(source: Source, notes: list[str]) -> Iterator[Unit]:
    """Yield the HDUs of a file; only headers are read. Raises `Corrupt` and `TooLarge`."""
    at = number = 0
    while at < source.size:
        start = source.read_at(at, 8) if number else b"SIMPLE"
        if not start:
            return
        if number and start != b"XTENSION":
            notes.append(trailing_note(source.size - at, "the last HDU"))
            return
        if number >= source.limits.nodes:
            what = f"has more than {source.limits.nodes} HDUs"
            raise TooLarge(what, path=source.path, where=f"byte {at}")
        unit = _unit(source, at, number)
        yield unit
        at, number = unit.end, number + 1


def _unit(source: Source, start: int, number: int) -> Unit:
    """The HDU whose header begins at `start`. Raises `Corrupt` and `Unsupported`."""
    cards, at = Cards(), start
    while not _take_block(source, cards, at):
        at += BLOCK
        if at - start >= source.limits.record_bytes:
            raise Corrupt("header has no end", path=source.path, where=f"byte {start}")
    cards.finish()
    values = cards.values
    where = f"byte {start}, the header of HDU {number}"
    rank = whole(source, values, "NAXIS", where)
    if not 0 <= rank <= MAX_RANK:
        raise Unsupported(
            "has too many axes", path=source.path, where=where, expected=f"0 to {MAX_RANK}",
            got=rank,
        )  # fmt: skip
    lengths = [whole(source, values, f"NAXIS{n}", where) for n in range(1, rank + 1)]
    bits = whole(source, values, "BITPIX", where)
    if bits not in ELEMENTS:
        raise Corrupt(
            "has elements of no type", path=source.path, where=where,
            expected=f"BITPIX of {', '.join(map(str, ELEMENTS))}", got=bits,
        )  # fmt: skip
    more = whole(source, values, "PCOUNT", where) if "PCOUNT" in values else 0
    groups = whole(source, values, "GCOUNT", where) if "GCOUNT" in values else 1
    elements = prod(lengths[1:] if _has_groups(values, number) else lengths)
    nbytes = (elements + more) * groups * abs(bits) // 8 if rank else 0
    return Unit(number, cards, start, at + BLOCK, nbytes)


def _has_groups(values: Mapping[str, Any], number: int) -> bool:
    """True for a primary HDU of random groups, whose first length is 0 and is not an axis."""
    groups = values.get("GROUPS") is True and values.get("NAXIS1") == 0
    return groups and number == 0 and values["NAXIS"] > 1


def _take_block(source: Source, cards: Cards, at: int) -> bool:
    """Parse the cards of a block; True if END is among them."""
    block = source.read_exact(at, BLOCK, "a header").decode("latin-1")
    for start in range(0, BLOCK, CARD):
        text = block[start : start + CARD]
        if text[:8] == "END     ":
            return True
        cards.take(text)
    return False


def whole(source: Source, values: Mapping[str, Any], name: str, where: str) -> int:
    """The whole number of a keyword, 0 or more, of either sign for BITPIX. Raises `Corrupt`."""
    value = values.get(name)
    if type(value) is not int or (value < 0 and name != "BITPIX"):
        raise Corrupt(
            f"{name} is missing or not a number", path=source.path, where=where,
            expected="a whole number", got=str(value)[:40],
        )  # fmt: skip
    return value


# From keywords to cards --------------------------------------------------------------------------


def is_text(text: str) -> bool:
    """True for text that a card can hold and readers give back unchanged."""
    return text.isascii() and (text.isprintable() or not text) and text == text.rstrip()


def fits_one_card(text: str) -> bool:
    """True for a text that one card holds."""
    return is_text(text) and len(text.replace("'", "''")) <= MAX_TEXT


def card(name: str, value: Any, comment: str = "") -> str:
    """A card with a value, which numbers keep exactly; too long if the value does not fit.

    The comment is left out if it does not fit.
    """
    if isinstance(value, str):
        word = "'" + value.replace("'", "''").ljust(8) + "'"
    elif isinstance(value, bool):
        word = "T" if value else "F"
    elif value is None:
        word = ""
    else:
        word = repr(value).upper()
        mantissa, exponent, power = word.partition("E")
        word = word if "." in mantissa or not exponent else f"{mantissa}.0E{power}"
    aligned = f"{name:8}= {word:20}" if isinstance(value, str) else f"{name:8}= {word:>20}"
    short = f"{name:8}= {word}"
    for line in (aligned, short) if comment else ():
        if len(commented := f"{line} / {comment}") <= CARD:
            return commented
    return (aligned if len(aligned) <= CARD else short).rstrip()


def keyword_cards(name: str, value: Any, comment: str = "") -> list[str]:
    """The cards of a keyword with a value; empty if FITS cannot hold one of them."""
    if _KEYWORD.fullmatch(name):
        if isinstance(value, str):
            return text_cards(name, value, comment)
    elif _LONG_KEYWORD.fullmatch(name) and len(name) < _KEYWORD_WIDTH:
        name = f"HIERARCH {name}"
    else:
        return []
    if isinstance(value, str):
        holds = is_text(value) and not value.endswith("&")
    else:
        holds = value is None or type(value) in (bool, int)
        holds |= type(value) is float and isfinite(value)
    line = card(name, value, comment) if holds else ""
    return [line] if 0 < len(line) <= CARD else []


def text_cards(name: str, text: str, comment: str = "") -> list[str]:
    """A text in as many cards as it needs; empty if FITS cannot hold it."""
    if not is_text(text) or text.endswith("&"):
        return []
    if len(alone := card(name, text, comment)) <= CARD:
        return [alone]
    pieces, length = [""], 0
    for letter in text:
        width = 2 if letter == "'" else 1
        if length + width > MAX_TEXT:
            pieces.append("")
            length = 0
        pieces[-1] += letter
        length += width
    texts = [f"{piece}&" for piece in pieces[:-1]] + pieces[-1:]
    first, *others = ["'" + part.replace("'", "''") + "'" for part in texts]
    cards = [f"{name:8}= {first}", *(f"CONTINUE  {part}" for part in others)]
    commented = f"{cards[-1]} / {comment}"
    return [*cards[:-1], commented] if comment and len(commented) <= CARD else cards


def commentary(keyword: str, text: str) -> list[str]:
    """A card without a value for each line of a text; empty if a line does not fit."""
    lines = text.split("\n")
    if not all(is_text(line) and 0 < len(line) <= CARD - 8 for line in lines):
        return []
    return [f"{keyword:8}{line}" for line in lines]
