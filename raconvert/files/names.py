"""Names of arrays as paths of files and as members of archives: the only place that makes them.

A path of a file is a valid name on every system: groups become folders, other characters are
percent-escaped, and paths differ where the names do, also where case does not count. The members of
an archive that programs read by name (NPZ) keep their names, except what would lead out of the
folder where somebody unpacks them. Who writes the paths keeps the names beside them, so that no
escape has to be undone: in ``bundle.yaml``, in an attribute, or in the comment of a member.
"""

from __future__ import annotations

import re

from raconvert.errors import Unsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

# Windows, "Naming Files, Paths, and Namespaces": characters and names that files cannot have there;
# besides, what a shell, a URL or an archive tool might take for something else.
_ODD = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"\\|?*%\ud800-\udfff]|^[. ~-]|[. ]$')
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$) *(\.|$)")
# What a program that unpacks an archive, or a terminal that lists it, may take for a command.
_ODD_IN_ARCHIVES = re.compile(r"[\x00-\x1f\x7f-\x9f\\\ud800-\udfff]|^\.{1,2}$")
_DRIVE = re.compile(r"[A-Za-z]:")
_LONGEST = 180  # bytes of one part: with suffixes and a counter it stays below 255


def paths_of(
    names: Iterable[str],
    suffix: str,
    *,
    beside: tuple[str, ...] = (),
    reserved: Iterable[str] = (),
    known: Mapping[str, str] | None = None,
) -> list[str]:
    """Return one relative path for each name, with ``/`` between folders; no two are alike.

    `beside` are the suffixes of further files that will lie next to each one, `reserved` the paths
    of other files in the same folder: none of them is given to an array. `known` maps names that
    have a path already to it: their groups keep their folders.
    """
    folders: dict[tuple[str, ...], str] = {(): ""}
    for name, file in (known or {}).items():
        above, parts = name.split("/")[:-1], file.split("/")[:-1]
        if len(above) == len(parts):
            for depth in range(1, len(parts) + 1):
                folders.setdefault(tuple(above[:depth]), "/".join(parts[:depth]) + "/")
    taken = _Taken(reserved, folded)
    ends = ("", *beside)
    paths = []
    for name in names:
        *groups, last = name.split("/")
        for depth in range(1, len(groups) + 1):
            group = tuple(groups[:depth])
            if group not in folders:
                stem = folders[group[:-1]] + escaped(groups[depth - 1])
                folders[group] = _free(stem, "", taken) + "/"
        paths.append(_free(folders[tuple(groups)] + escaped(last), suffix, taken, ends))
    return paths


def members_of(names: Iterable[str], suffix: str, *, reserved: Iterable[str] = ()) -> list[str]:
    """Return the member of an archive for each name: the name, if no part of it is dangerous.

    `reserved` are members that are there already.
    """
    taken = _Taken(reserved, str)
    members = []
    for name in names:
        parts = f"{name}{suffix}".split("/")
        path = "/".join(_escaped_in_archives(part, first=not at) for at, part in enumerate(parts))
        members.append(_free(path.removesuffix(suffix), suffix, taken))
    return members


class _Taken:
    """The paths that are files already, and the last counter that each stem was given.

    `key` maps paths to one value if they are the same file.
    """

    def __init__(self, reserved: Iterable[str], key: Callable[[str], str]) -> None:
        self.key = key
        self.paths = {key(path) for path in reserved}
        self.numbers: dict[tuple[str, str], int] = {}


def _free(stem: str, suffix: str, taken: _Taken, ends: tuple[str, ...] = ("",)) -> str:
    """Return a path that no other file has: stem and suffix, with a counter between if need be.

    `ends` are the ends of all files that will have this path. Counting goes on from the last
    counter of this stem, since no path becomes free again.
    """
    key = taken.key(stem), suffix
    number = taken.numbers.get(key, 1)
    path = f"{stem}%{number}{suffix}" if number > 1 else stem + suffix
    while not taken.paths.isdisjoint(keys := [taken.key(path + end) for end in ends]):
        number += 1
        path = f"{stem}%{number}{suffix}"
    taken.paths.update(keys)
    taken.numbers[key] = number
    return path


def folded(path: str) -> str:
    """Return a key that paths share if some system takes them for one file.

    Case may not count, and macOS composes letters itself.
    """
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


def _escaped_in_archives(part: str, *, first: bool) -> str:
    """Return one part of a name as a part of a member; `first`: it is the first one."""
    text = _ODD_IN_ARCHIVES.sub(
        lambda match: "".join(f"%{ord(letter):02X}" for letter in match.group()), part
    )
    if first and _DRIVE.match(text):
        text = f"{text[0]}%3A{text[2:]}"
    return text or "%"


def is_inside(path: str) -> bool:
    """True if a relative path stays below the folder it is relative to."""
    parts = path.split("/")
    portable = "\\" not in path and "\0" not in path and not _DRIVE.match(path)
    return portable and all(part not in ("", ".", "..") for part in parts)


def check_inside(path: str, what: str) -> None:
    """Raise `Unsafe` for a file or member (`what`) whose path leads out of its destination."""
    if not is_inside(path):
        raise Unsafe(
            f"would write {what} outside its destination", expected="a relative path without '..'",
            got=path[:200],
        )  # fmt: skip
