"""Lines that fit a window: folded at its width, counted in its rows, and cut to them."""

from __future__ import annotations

import os
import re
from unicodedata import combining, east_asian_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


_CODE = re.compile(r"\x1b\[\d*m")
_GAP = re.compile(r" {2,}(?=[(\w])")
# A space inside a shape, a size, a range, or between a number and the word that it belongs to.
_INSIDE = re.compile(
    r"(?<=[\d:],) (?=[\d:])| (?=×)|(?<=×) | (?=…)|(?<=…) (?=-?\d)|(?<=\d) (?=[▁-█])"
    r"|(?<=[▁-█]) (?=-?\d)"
    r"|(?<=\b(?:min|max|NaN|inf)) (?=-?\d)|(?<=\bmean) (?=-?\d)|(?<=\bzeros) (?=\d)"
    r"|(?<=\d) (?=(?:%|bytes|[kMGT]B)(?!\w))"
)
_GLUE = "\0"


def without_codes(text: str) -> str:
    """A text without the escape sequences of bold and plain characters."""
    return _CODE.sub("", text)


def cells(text: str) -> int:
    """The columns of a terminal that a text takes: two for CJK, none for combining marks."""
    text = without_codes(text)
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


def is_drawn(text: str) -> bool:
    """True for a line of a picture, which fits as it is: it has more codes than those of bold."""
    return "\x1b" in without_codes(text)


def folded(line: str, width: int) -> list[str]:
    """Fold a line at its wide gaps into parts no wider than `width`; 0 means no limit.

    Numbers, shapes and sizes stay whole; so does a word that is wider.
    """
    if not width or cells(line) <= width or is_drawn(line):
        return [line]
    indent = len(line) - len(line.lstrip())
    parts: list[str] = []
    for part in _GAP.split(line.strip()):
        if parts and cells(f"{parts[-1]}   {part}") <= width:
            parts[-1] += f"   {part}"
            continue
        words = _INSIDE.sub(_GLUE, part).split(" ")
        words = [word.replace(_GLUE, " ") for word in words]
        parts.append(" " * (indent + 4 * bool(parts)) + words[0])
        for word in words[1:]:
            if cells(f"{parts[-1]} {word}") > width:
                parts.append(" " * (indent + 4) + word)
            else:
                parts[-1] += f" {word}"
    return parts


def folded_all(lines: Iterable[str], width: int) -> list[str]:
    """Fold each of some lines at `width`, as `folded` does."""
    return [part for line in lines for part in folded(line, width)]


def rows_of(lines: Iterable[str], width: int) -> int:
    """The rows that lines take in a window, which breaks those that are wider."""
    return sum(
        1 if not width or is_drawn(line) else max(1, -(-cells(line) // width)) for line in lines
    )


def within(lines: list[str], rows: int, width: int) -> list[str]:
    """Cut lines to those that fit, with a last one that counts the others; 0 rows mean no limit."""
    if not rows or rows_of(lines, width) <= rows:
        return lines
    left = lines[:]
    while len(left) > 1 and rows_of(left, width) > rows - 1:
        left.pop()
    return [*left, f"  … {len(lines) - len(left)} more lines (a pipe has all)"]


def cut_to(text: str, width: int, *, unicode: bool = True) -> str:
    """The beginning of a text, at most `width` columns wide; 0 means no limit."""
    if not width or cells(text) <= width:
        return text
    while text and cells(text) > width - 1:
        text = text[:-1]
    return f"{text}{'…' if unicode else '.'}"


def columns_of(stream: Any) -> int:
    """The width of a terminal in characters; 80 if it is not a terminal."""
    try:
        return int(os.environ.get("COLUMNS", "")) or 80
    except ValueError:
        pass
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def height_of(stream: Any) -> int:
    """The height of a terminal in characters; 0, no limit, if it is not a terminal."""
    try:
        return max(0, int(os.environ.get("LINES", "")))
    except ValueError:
        pass
    try:
        return os.get_terminal_size(stream.fileno()).lines
    except (OSError, ValueError):
        return 0
