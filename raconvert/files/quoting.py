r"""Quote names for the languages of printed commands and programs: one function for each of them.

Whatever a file or an array is called, the text that a function returns is one literal of its
language that stands for exactly this name, in printable characters only, so that a line can be
pasted from a terminal or a page. Nothing of a name is ever carried out.
"""

from __future__ import annotations

import os
import re

from raconvert.errors import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_SAFE_WORD = re.compile(r"[A-Za-z0-9_./:@%+=,-]+")  # needs no quotes in any shell
_KEPT_BY_PRINTF = frozenset(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@+=,-"
)
# Relative names that `fopen` of MATLAB and `file` of R take for something else than a file.
_SPECIAL = re.compile(r"[-~|<>&]|all$|stdin$|clipboard|[^/\\]*:")


def path(name: str) -> str:
    """Return a path that no function takes for an option, a URL, a home or a stream: ``./-x``."""
    return f"./{name}" if _SPECIAL.match(name) and not os.path.isabs(name) else name


def shell(word: str) -> str:
    r"""Return a word for POSIX shells and the shells like them (bash, zsh, ksh).

    A name with control characters, or bytes that are not UTF-8, is spelled with `printf`; as a
    command in parentheses loses line breaks at the end of what it prints, a name that ends with
    one is spelled ``$'…'``, which bash, zsh and ksh know.
    """
    if _SAFE_WORD.fullmatch(word):
        return word
    if _is_printable(word):
        return "'" + word.replace("'", "'\"'\"'") + "'"
    spelled = "".join(
        chr(byte) if byte in _KEPT_BY_PRINTF else f"\\{byte:03o}" for byte in os.fsencode(word)
    )
    if word.endswith("\n"):
        return f"$'{spelled}'"
    mark = "-- " * spelled.startswith("-")
    return f"\"$(printf {mark}'{spelled}')\""


def operand(name: str) -> str:
    """Return a path as a word of a shell that is not taken for an option: ``./-x``."""
    return shell(f"./{name}" if name.startswith("-") else name)


def python(text: str) -> str:
    """Return a string literal of Python, in ASCII."""
    return ascii(text)


def julia(text: str) -> str:
    """Return a string literal of Julia."""
    return _in_double_quotes(text, '"\\$')


def r(text: str) -> str:
    """Return a string literal of R."""
    return _in_double_quotes(text, '"\\')


def c(text: str) -> str:
    r"""Return a string literal of C: ``\?`` as well, without which ``??/`` is a backslash."""
    return _in_double_quotes(text, '"\\?')


def matlab(text: str) -> str:
    """Return an expression of MATLAB and Octave for a text; unprintable characters are codes."""
    parts = []
    for odd, part in _split_odd(text) or [(False, "")]:
        if not odd:
            parts.append("'" + part.replace("'", "''") + "'")
        elif part.isascii() or "\udc80" <= part <= "\udcff":
            parts.append(f"char({ord(part) & 0xFF})")
        else:
            codes = " ".join(map(str, part.encode("utf-8", "surrogatepass")))
            parts.append(f"native2unicode(uint8([{codes}]), 'UTF-8')")
    return parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"


QUOTED: dict[str, Callable[[str], str]] = {
    "Python": python,
    "Julia": julia,
    "MATLAB": matlab,
    "R": r,
    "C": c,
}


def _is_printable(text: str) -> bool:
    """True if a text is printed as it is, everywhere where we print."""
    return quoted(text) == text


def _split_odd(text: str) -> list[tuple[bool, str]]:
    """Split a text into (odd, part): unprintable characters one by one, and the texts between."""
    parts: list[tuple[bool, str]] = []
    for letter in text:
        odd = not _is_printable(letter)
        if parts and not odd and not parts[-1][0]:
            parts[-1] = False, parts[-1][1] + letter
        else:
            parts.append((odd, letter))
    return parts


def _in_double_quotes(text: str, escaped: str) -> str:
    """Return a text in double quotes, with unprintable bytes as three octal digits."""
    parts = []
    for odd, part in _split_odd(text):
        if odd:
            data = part.encode(
                "utf-8", "surrogateescape" if "\udc80" <= part <= "\udcff" else "surrogatepass"
            )
            parts.append("".join(f"\\{byte:03o}" for byte in data))
        else:
            parts.append("".join("\\" + char if char in escaped else char for char in part))
    return '"' + "".join(parts) + '"'
