"""A terminal as a page: the colours and half blocks that a command prints, as HTML."""

from __future__ import annotations

import re
from html import escape
from typing import NamedTuple

# Background, words.
LIGHT, DARK = ("#ffffff", "#1f2328"), ("#10151c", "#e1e6ec")
_CODE = re.compile(r"\x1b\[([0-9;]*)m")
_BLOCK = "\N{UPPER HALF BLOCK}"


class Ink(NamedTuple):
    """What the codes so far say: colours as CSS has them, none as the terminal has them."""

    front: str = ""
    back: str = ""
    bold: bool = False

    def after(self, code: str) -> Ink:
        """The ink after one more code."""
        if code in ("", "0"):
            return Ink()
        if code == "1":
            return self._replace(bold=True)
        kind, _, rest = code.partition(";2;")
        colour = f"rgb({rest.replace(';', ',')})"
        return self._replace(**{"38": {"front": colour}, "48": {"back": colour}}.get(kind, {}))


def page(printed: str, command: str, *, dark: bool) -> str:
    """The page of a terminal in which a command was given, and what it printed."""
    back, words = DARK if dark else LIGHT
    style = (
        f"body {{ margin: 0; background: {back}; color: {words} }}"
        "pre { margin: 14px; font: 13px/16px 'DejaVu Sans Mono', monospace }"
        "i { display: inline-block; width: 1ch; height: 16px; vertical-align: top }"
    )
    body = "".join(pieces(printed))
    return (
        f"<!DOCTYPE html><meta charset=utf-8><style>{style}</style>"
        f"<pre>$ <b>{escape(command)}</b>\n{body}</pre>"
    )


def pieces(printed: str) -> list[str]:
    """The HTML of each run of letters in one ink."""
    found, ink = [], Ink()
    for n, part in enumerate(_CODE.split(printed)):
        if n % 2:
            ink = ink.after(part)
        elif ink.front and ink.back:
            cell = f'<i style="background: linear-gradient({ink.front} 50%, {ink.back} 50%)"></i>'
            found.append(escape(part).replace(_BLOCK, cell))
        else:
            weight = "font-weight: bold" if ink.bold else ""
            colour = f"color: {ink.front}" if ink.front else ""
            found.append(f'<span style="{weight}{colour}">{escape(part)}</span>')
    return found
