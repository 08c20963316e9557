"""Array names as relative file paths: groups become folders, odd characters are percent-escaped.

The escapes need not be undone: ``bundle.yaml`` says which name each file has. They must be valid
names on every system, and different where the array names are, also where case does not count.
"""

from __future__ import annotations

import re

from raconvert.metadata import ITEMS_SUFFIX, SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Windows, "Naming Files, Paths, and Namespaces": characters and names that files cannot have there;
# besides, what a shell, a URL or an archive tool might take for something else.
_ODD = re.compile(r'[\x00-\x1f\x7f<>:"\\|?*%\ud800-\udfff]|^[. ~-]|[. ]$')
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$) *(\.|$)")
_LONGEST = 180  # bytes of one part: with suffixes and a counter it stays below 255
MANIFEST = "bundle.yaml"


def files_of(names: Iterable[str], suffix: str) -> list[str]:
    """Return one relative path for each name, with ``/`` between folders; no two are alike.

    Each leaves room for the sidecar and the per-item metadata of its file.
    """
    folders: dict[tuple[str, ...], str] = {(): ""}
    taken = _Taken()
    besides = ("", SUFFIX, ITEMS_SUFFIX)
    found = []
    for name in names:
        *groups, last = name.split("/")
        for depth in range(1, len(groups) + 1):
            path = tuple(groups[:depth])
            if path not in folders:
                above = folders[path[:-1]]
                folders[path] = _free(above + escaped(groups[depth - 1]), "", taken) + "/"
        found.append(_free(folders[tuple(groups)] + escaped(last), suffix, taken, besides))
    return found


class _Taken:
    """The paths that are files already, and the last counter that each stem was given."""

    def __init__(self) -> None:
        self.paths = {MANIFEST}
        self.numbers: dict[tuple[str, str], int] = {}


def _free(stem: str, suffix: str, taken: _Taken, besides: tuple[str, ...] = ("",)) -> str:
    """Return the path, with a counter where another one would be the same file.

    `besides` are the ends of all files that will lie there. Counting goes on where it ended for
    this stem, since what was taken stays so.
    """
    key = folded(stem), suffix
    number = taken.numbers.get(key, 1)
    path = f"{stem}%{number}{suffix}" if number > 1 else stem + suffix
    while not taken.paths.isdisjoint(places := [folded(path + end) for end in besides]):
        number += 1
        path = f"{stem}%{number}{suffix}"
    taken.paths.update(places)
    taken.numbers[key] = number
    return path


def folded(path: str) -> str:
    """The key that paths share if they are one file somewhere: macOS composes letters itself."""
    if path.isascii():
        return path.casefold()
    from unicodedata import normalize

    return normalize("NFC", normalize("NFD", path).casefold())


def escaped(part: str) -> str:
    """Return one part of a name as a file name without its suffix."""
    text = _ODD.sub(lambda match: f"%{ord(match.group()):02X}", part)
    if _RESERVED.match(text):
        text = f"%{ord(text[0]):02X}{text[1:]}"
    raw = text.encode()
    if len(raw) > _LONGEST:
        from hashlib import sha256

        mark = sha256(part.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        text = raw[:_LONGEST].decode("utf-8", "ignore").rstrip(". ") + f"%{mark}"
    return text or "%"


def is_inside(path: str) -> bool:
    """True if a relative path from a manifest stays below the folder it is relative to."""
    parts = path.split("/")
    portable = "\\" not in path and "\0" not in path and not re.match(r"[A-Za-z]:", path)
    return portable and all(part not in ("", ".", "..") for part in parts)
