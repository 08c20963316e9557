"""Files that raconvert keeps in a folder under names that everybody knows: journals, lists, notes.

Whoever may write there can have put something else in their place: a link that leads elsewhere, or
a pipe that nobody answers. Neither is followed, read or written.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from raconvert.errors import Unsafe

_FLAGS = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def refuse_other(path: str) -> None:
    """Raise `Unsafe` for what is there and is not a regular file, or is a link."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:  # not there; if it cannot be looked at, opening it tells
        return
    if not S_ISREG(mode):
        raise Unsafe(
            "is a link, or not a regular file, where raconvert keeps a file of its own",
            path=path,
            remedy="remove it, if nothing else needs it",
        )


def open_own(path: str, flags: int = os.O_RDONLY) -> int:
    """Open such a file; return its descriptor. Raises `Unsafe` and `OSError`."""
    refuse_other(path)
    descriptor = os.open(path, flags | _FLAGS, 0o666)
    if not S_ISREG(os.fstat(descriptor).st_mode):  # since it was looked at
        os.close(descriptor)
        refuse_other(path)
        raise Unsafe("is not a regular file", path=path)
    return descriptor
