"""Texts from elsewhere as they may stand on a page: escaped, in one line, nothing odd in them."""

from __future__ import annotations

from html import escape

from raconvert.errors import quoted

_MOST = 200  # characters of a value


def text_of(words: str) -> str:
    """A text as it may stand between tags, or in an attribute."""
    return escape(quoted(words))


def cut(words: str) -> str:
    """The beginning of a long text."""
    return words if len(words) <= _MOST else f"{words[:_MOST]}…"


def name_of(words: str) -> str:
    """A name in an element of its own, which keeps its direction of writing."""
    return f"<bdi><code>{text_of(cut(words))}</code></bdi>"
