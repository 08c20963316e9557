"""What all pages are made of: their beginning and end, and texts from elsewhere as they may stand.

Such texts are escaped, in one line, nothing odd in them; nothing is loaded and nothing is obeyed.
"""

from __future__ import annotations

from html import escape
from re import sub

from raconvert import __version__
from raconvert.errors import quoted
from raconvert.views.style import STYLE

_MOST = 200  # characters of a value


def text_of(words: str) -> str:
    """A text as it may stand between tags, or in an attribute."""
    return escape(quoted(words))


def reason_of(words: str) -> str:
    """A reason as it may stand between tags; a flag in it stays in one line."""
    return sub(r"--[a-z][a-z-]*( [a-z]+\d*\b)?", r'<span class="flag">\g<0></span>', text_of(words))


def cut(words: str) -> str:
    """The beginning of a long text."""
    return words if len(words) <= _MOST else f"{words[:_MOST]}…"


def name_of(words: str) -> str:
    """The beginning of a name in an element of its own, which keeps its direction of writing."""
    return whole_name(cut(words))


def whole_name(words: str) -> str:
    """A name in an element of its own, however long."""
    return f"<bdi><code>{text_of(words)}</code></bdi>"


def lines_of(words: str) -> str:
    """A text of several lines, as it may stand between tags."""
    return "<br>\n".join(text_of(line) for line in words.splitlines())


def head_of(kind: str) -> str:
    """The first characters of a page, by which a page of a kind is known again."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="generator" content="raconvert {kind} '
    )


def opening(kind: str, title: str) -> str:
    """The beginning of a page: its head with the style, and the start of what is shown."""
    return (
        f'{head_of(kind)}{escape(__version__)}">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text_of(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
    )


def closing() -> str:
    """The end of a page."""
    return (
        f"</main>\n<footer>Made by raconvert {text_of(__version__)}. Nothing is loaded from "
        "elsewhere.</footer>\n</body>\n</html>\n"
    )


def table_head(*names: str, kind: str = "") -> str:
    """The first row of a table and the start of its body; a name after `>` is of numbers."""
    cells = "".join(
        f'<th scope="col" class="n">{name[1:]}</th>'
        if name.startswith(">")
        else f'<th scope="col">{name}</th>'
        for name in names
    )
    mark = f' class="{kind}"' if kind else ""
    return f"<table{mark}>\n<thead><tr>{cells}</tr></thead>\n<tbody>\n"


TABLE_END = "</tbody>\n</table>\n"
