"""The lines at the beginning of a text, and the possible delimiters of its cells."""

from __future__ import annotations

import re

__all__ = ["WORDS", "delimiters", "lines_of"]

DELIMITERS = ",;\t|"
WORDS = {"tab": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " "}


def lines_of(text: str, *, whole: bool) -> list[str]:
    """The rows in the beginning of a file: lines, joined if they end inside of quotes.

    The last line is left out unless the text is the `whole` file.
    """
    lines: list[str] = []
    pieces = re.split("\r\n|\n|\r", text)
    if not whole or not pieces[-1]:
        pieces = pieces[:-1]
    begun = ""
    for piece in pieces:
        begun = f"{begun}\n{piece}" if begun else piece
        if begun.count('"') % 2 == 0:
            if begun.strip():
                lines.append(begun)
            begun = ""
    return lines


def delimiters(lines: list[str]) -> list[str]:
    """The signs that each line has equally often outside of quotes, at least once."""
    bare = [re.sub('"[^"]*"', "", line) for line in lines]
    counts = {sign: {line.count(sign) for line in bare} for sign in DELIMITERS}
    return [sign for sign, numbers in counts.items() if len(numbers) == 1 and numbers != {0}]
