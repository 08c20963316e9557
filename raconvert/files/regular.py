"""Regular files, and whether one is still the file that was first opened.

Pipes, devices and folders are refused before anything is read from them. What a file was is its
`Identity`: device, inode, size in bytes, time of change in nanoseconds.
"""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISREG

from raconvert.errors import Changed, ReadFailed, Unsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Identity = tuple[int, int, int, int]

_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def identity_of(status: os.stat_result) -> Identity:
    """The identity of a file: device, inode, size, time of change."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def changed(path: str, *, shorter: bool = False) -> Changed:
    """The error for a file that is not the one any more that was first opened."""
    return Changed(
        f"file {'became shorter' if shorter else 'changed'} while it was read",
        path=path,
        remedy="try again when nothing writes to it",
    )


def refuse_changed(seen: Mapping[str, Identity]) -> None:
    """Refuse (`Changed`) what was read, if any of the files was changed or replaced since."""
    for path, known in seen.items():
        try:
            now = identity_of(os.stat(path))
        except OSError:
            now = None
        if now != known:
            raise changed(path)


def open_file(path: str) -> tuple[int, os.stat_result]:
    """Open a regular file for reading; return its descriptor and status.

    Pipes, devices, sockets and folders are refused before anything is read from them
    (`Unsafe`); `O_NONBLOCK` keeps the open itself from hanging on a pipe without a writer.
    """
    try:
        descriptor = os.open(path, _OPEN_FLAGS | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        raise read_failed(path, error) from error
    status = os.fstat(descriptor)
    if S_ISREG(status.st_mode):
        return descriptor, status
    os.close(descriptor)
    kind = "a folder" if S_ISDIR(status.st_mode) else "a pipe, device or socket"
    raise Unsafe(
        f"{kind} is not a regular file", path=path, remedy="copy its content to a file first"
    )


def open_regular(path: str, known: Identity | None = None) -> int:
    """Open a regular file for reading and return its descriptor.

    With `known` it must be the file that was opened before (`Changed` otherwise).
    """
    descriptor, status = open_file(path)
    if known is not None and identity_of(status) != known:
        os.close(descriptor)
        raise changed(path, shorter=status.st_size < known[2])
    return descriptor


def check_unchanged(descriptor: int, path: str, known: Identity | None) -> None:
    """Refuse (`Changed`) what was read from an open file that was changed meanwhile."""
    if known is not None and identity_of(os.fstat(descriptor)) != known:
        raise changed(path)


def read_failed(path: str, error: Exception) -> ReadFailed:
    """The error for a file that the system does not let us read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ReadFailed(f"cannot be read: {reason}", path=path)
