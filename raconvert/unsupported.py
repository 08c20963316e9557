"""Formats that are recognised and not supported: what is said of them."""

from __future__ import annotations

from raconvert.catalogue import FOREIGN, ROWS, WRAPPERS
from raconvert.errors import NotSupportedYet, UnknownFormat, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from raconvert.files.source import Source


def unknown_target(path: str, broken: Sequence[str]) -> UnknownFormat:
    """The error for a destination that no format has the suffix of.

    `broken` are the formats of installed plugins that cannot be loaded: it may be one of theirs.
    """
    plugins = f"{len(broken)} installed plugin{'s' if len(broken) > 1 else ''}"
    what = f"{plugins} cannot be loaded: {listed(broken)} (see `raconvert formats`)"
    others = [what] * bool(broken)
    known = ", ".join(row.suffixes[0] for row in ROWS if row.writes and row.suffixes)
    name = path.lower()
    for foreign in FOREIGN:
        if name.endswith(foreign.suffixes or ("\0",)):
            return NotSupportedYet(
                f"{foreign.title} is not supported yet as a destination",
                path=path,
                remedy="\n".join(
                    filter(None, [foreign.note, f"destinations that are: {known}", *others])
                ),
            )
    for title, _, suffixes in WRAPPERS:
        if name.endswith(suffixes):
            return NotSupportedYet(
                f"a destination inside {title} is not supported yet",
                path=path,
                remedy="\n".join(["write the file itself and compress it afterwards", *others]),
            )
    return UnknownFormat(
        "no format has this suffix",
        path=path,
        expected=f"one of {known}",
        remedy="\n".join(["or name the format with --to", *others]),
    )


def refuse_foreign(source: Source, *, named: bool) -> None:
    """Name a recognised format that has no plugin (`NotSupportedYet`, exit code 3).

    `named`: its suffix is that of a format which somebody has installed.
    """
    head = source.head
    supported = ", ".join(row.name for row in ROWS)
    for foreign in FOREIGN:
        by_name = not foreign.magic and head and source.path.lower().endswith(foreign.suffixes)
        by_name = by_name and not named
        by_content = any(head.startswith(text, at) for at, text in foreign.magic)
        if foreign.read_as is None and (by_content or by_name):
            raise NotSupportedYet(
                f"is {foreign.title}, not supported yet",
                path=source.path,
                remedy=" ".join(filter(None, [foreign.note, f"Supported: {supported}."])),
            )
    for title, magic, suffixes in WRAPPERS:
        if head.startswith(magic):
            name = source.path.lower()
            inner = next((name[: -len(s)] for s in suffixes if name.endswith(s)), name)
            known = [(f.title, f.suffixes) for f in ROWS] + [(f.title, f.suffixes) for f in FOREIGN]
            inside = next((title for title, ends in known if inner.endswith(ends or ("\0",))), None)
            what = f"by its name {inside} inside" if inside else "with unknown content"
            raise NotSupportedYet(
                f"is {title}-compressed ({what}), not supported yet",
                path=source.path,
                remedy="decompress it first",
            )
