"""What a source tree holds."""

from __future__ import annotations

from raconvert.declared import Record

UNREADABLE = "cannot be read"  # begins the reason why a file or folder was left out, and is wanted


class Found(Record):
    """One file of the tree."""

    path: str  # below the root, with "/"
    size: int
    mtime: int  # nanoseconds
    format: str = ""  # its name, where that does not follow from the suffix


class Tree(Record):
    """What a source tree holds."""

    files: list[Found]  # in the order of their folders and, inside one, natural order of names
    left_out: list[tuple[str, str]]  # path below the root, and why
    folders: set[tuple[int, int]] = set()  # noqa: RUF012 - never changed; identities of its folders
