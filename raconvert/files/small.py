"""Small files: read whole and written whole by few system calls, by their names in open folders.

Nothing raises here. For whatever is not as usual (no regular file, one that changes, a name that is
taken, a full disk) the result is None, and nothing has changed: the caller takes the usual way,
which raises the error.
"""

from __future__ import annotations

import os
from stat import S_IMODE, S_ISREG

from raconvert.files.paths import link
from raconvert.files.source import OPEN_FLAGS

MOST = 1 << 20  # bytes: above, a copy file to file costs less than reading the whole
_DENSE = 1 << 16  # bytes: a larger file may have holes, which a copy is to keep
_UNNAMED = getattr(os, "O_TMPFILE", 0) | os.O_RDWR | getattr(os, "O_CLOEXEC", 0)
_FOLDER = getattr(os, "O_DIRECTORY", 0) | os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
POSSIBLE = hasattr(os, "O_TMPFILE")  # Linux has files without a name


def open_folder(path: str) -> int | None:
    """Open a folder; return its descriptor, None if the system refuses."""
    try:
        return os.open(path or ".", _FOLDER)
    except (OSError, ValueError):
        return None


def read_small(name: str, folder: int) -> bytes | None:
    """Read a small regular file; None for any other, or if it changed meanwhile."""
    try:
        descriptor = os.open(name, OPEN_FLAGS, dir_fd=folder)
    except (OSError, ValueError):
        return None
    data = None
    try:
        before = os.fstat(descriptor)
        size = before.st_size
        dense = size <= _DENSE or before.st_blocks * 512 >= size
        if S_ISREG(before.st_mode) and 0 < size <= MOST and dense:
            data = os.read(descriptor, size + 1)
            after = os.fstat(descriptor)
            if not len(data) == size == after.st_size or after.st_mtime_ns != before.st_mtime_ns:
                data = None
    except OSError:
        data = None
    finally:
        os.close(descriptor)
    return data


def write_small(
    name: str, beside: str, data: bytes, mode: int, folder: int, sync: int
) -> int | None:
    """Write a new file of this mode; return its time of change (ns), None if it was not written.

    It gets its name when it is whole. It is not written if that name is taken, or if there is a
    file `beside`. With `sync` its bytes are on the disk when this returns, but its name may not be.
    """
    try:
        if os.access(beside, os.F_OK, dir_fd=folder, follow_symlinks=False):
            return None
        descriptor = os.open(".", _UNNAMED, mode, dir_fd=folder)
    except (OSError, ValueError):
        return None
    mtime = None
    try:
        if os.write(descriptor, data) == len(data):
            status = os.fstat(descriptor)
            if S_IMODE(status.st_mode) != mode:
                os.fchmod(descriptor, mode)
            if sync:
                os.fsync(descriptor)
            link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder)
            mtime = status.st_mtime_ns
    except (OSError, ValueError):
        pass
    finally:
        mtime = _close_new(descriptor, name, mtime, folder)
    return mtime


def _close_new(descriptor: int, name: str, mtime: int | None, folder: int) -> int | None:
    """Close a new file; return `mtime`, or None, with the file removed, if closing it fails."""
    try:
        os.close(descriptor)
    except OSError:
        if mtime is not None:
            os.unlink(name, dir_fd=folder)
        return None
    return mtime


def is_there(name: str, folder: int) -> bool:
    """True if a file or a link has this name."""
    try:
        return os.access(name, os.F_OK, dir_fd=folder, follow_symlinks=False)
    except ValueError:
        return False


def look_at_all(names: list[str], folder: int) -> list[tuple[int, int] | None]:
    """Return size and time of change (ns) of each file in a folder; None unless it is regular."""
    sizes: list[tuple[int, int] | None] = []
    for name in names:
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            regular = S_ISREG(status.st_mode)
        except (OSError, ValueError):
            regular = False
        sizes.append((status.st_size, status.st_mtime_ns) if regular else None)
    return sizes


IN_PYTHON = read_small, write_small, look_at_all
try:  # the compiled function does the same in one call
    from raconvert.files._small import look_at_all, read_small, write_small
except ImportError:
    pass
