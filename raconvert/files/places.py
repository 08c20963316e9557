"""Names on the disk: which may be written, and how a finished file gets one.

Nothing here replaces what it was not told to replace: the system itself refuses (`link`, or
`renameat2` where a file system has no links), not a look beforehand.
"""

from __future__ import annotations

import errno
import os
import stat
import sys

from raconvert.errors import TargetExists, WriteFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import FileIO

CREATE_FLAGS = (
    os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
)
PERMISSIONS = 0o777  # of a mode; set-uid and its kind are never handed on to other content
# What file systems without links say of `link`.
_NO_LINKS = {
    getattr(errno, name)
    for name in ("EPERM", "EACCES", "ENOSYS", "EOPNOTSUPP", "ENOTSUP", "EMLINK", "EINVAL")
    if hasattr(errno, name)
}
_NOREPLACE, _EXCHANGE = 1, 2  # linux/fs.h, for renameat2


def temporary(path: str) -> str:
    """Return a new hidden name beside a path, that no glob takes.

    Short, so that it fits where the name itself just fits.
    """
    name = f".raconvert-{os.getpid()}-{os.urandom(4).hex()}.tmp"
    return os.path.join(os.path.dirname(path), name)


def is_temporary(name: str) -> bool:
    """True for the names that `temporary` gives."""
    return name.startswith(".raconvert-") and name.endswith(".tmp")


def temporaries_of(folder: str, process: int) -> list[str]:
    """Return the paths of what a process named with `temporary` in a folder and has left there."""
    mine = f".raconvert-{process}-"
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    return [os.path.join(folder, n) for n in names if n.startswith(mine) and is_temporary(n)]


# Which may be written --------------------------------------------------------------------------


def check_target(path: str, *, overwrite: bool) -> None:
    """Refuse a destination that exists (exit 5), or that is not a regular file."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        if not overwrite and os.path.islink(path):
            raise TargetExists(
                "is a link to what is not there, and is left as it was",
                path=path,
                remedy="use --overwrite to create what it names, or remove it",
            ) from None
        return
    except ValueError as error:  # a NUL in the name
        raise WriteFailed(f"cannot be written: {error}", path=path) from error
    if stat.S_ISDIR(mode):
        raise TargetExists("is a folder", path=path, remedy="name a file inside it")
    if not stat.S_ISREG(mode):
        raise TargetExists("is a pipe, device or socket, not a file", path=path)
    if not overwrite:
        raise exists(path)


def exists(path: str, what: str = "exists already") -> TargetExists:
    """Return the error for a destination that is there and may not be replaced."""
    return TargetExists(
        f"{what}, and is left as it was",
        path=path,
        remedy="use --overwrite to replace it, or --skip-existing to keep it",
    )


def refuse_used(paths: Iterable[str], used: Iterable[str]) -> None:
    """Refuse destinations that are read themselves, or folders in which something read lies."""
    there = {identity(path): path for path in paths}
    there.pop(None, None)
    folders = [path for path in there.values() if os.path.isdir(path)]
    inside = tuple(os.path.join(os.path.realpath(path), "") for path in folders)
    for file in used if there else ():
        path = there.get(identity(file))
        if inside and os.path.realpath(file).startswith(inside):
            path = folders[0]
        if path is not None:
            raise TargetExists(
                "is read by the source, and is left as it was",
                path=path,
                remedy="name another destination",
            )


def identity(path: str, *, follow: bool = True) -> tuple[int, int] | None:
    """The identity of a file under all of its names; None for one that is not there."""
    try:
        status = os.stat(path) if follow else os.lstat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def old_mode(path: str) -> int | None:
    """Return the permissions of the file at a path, None where there is no file.

    What is a link still, after links were followed, is a loop: the error of the system says so.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    return stat.S_IMODE(mode) & PERMISSIONS if stat.S_ISREG(mode) else None


def write_failed(path: str, error: OSError | ValueError) -> WriteFailed:
    """Return the error for a refused write, with the system's reason.

    (`ValueError` is what Python says of a path with a NUL byte.)
    """
    return WriteFailed(
        f"cannot be written: {getattr(error, 'strerror', None) or error}",
        path=path,
        remedy="the destination is as it was before",
    )


# How a file gets its name ----------------------------------------------------------------------


def create(path: str, mode: int | None) -> tuple[int, int]:
    """Create a file for its owner alone; return the descriptor and the mode that it is to have.

    `mode` is that of the file which it will replace; a new one gets what the umask leaves.
    """
    if mode is None:
        umask = _umask()
        mode = None if umask is None else 0o666 & ~umask
    if mode is not None:
        return os.open(path, CREATE_FLAGS, 0o600), mode
    descriptor = os.open(path, CREATE_FLAGS, 0o666)  # the system tells, while the file is empty
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode) & PERMISSIONS
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, 0o600)
    return descriptor, mode


def _umask() -> int | None:
    """Return the umask as Linux tells it; asking `os.umask` changes it, for other threads too."""
    try:
        descriptor = os.open("/proc/self/status", os.O_RDONLY)
    except OSError:
        return None
    try:
        _, _, rest = os.read(descriptor, 1024).partition(b"\nUmask:")
    finally:
        os.close(descriptor)
    return int(rest.split()[0], 8) if rest else None


def set_mode(descriptor: int, mode: int) -> None:
    """Give an open file its permissions, if it has others."""
    if hasattr(os, "fchmod") and stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        os.fchmod(descriptor, mode)


def rename_new(temp: str, place: str) -> None:
    """Give a file the name of what is not there; `FileExistsError` if it is, which is not replaced.

    The temporary name may remain beside the new one if it cannot be removed.
    """
    if os.name == "nt":  # where this is what it does
        os.rename(temp, place)
        return
    try:
        os.link(temp, place)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _rename_new_without_links(temp, place)
        return
    remove(temp)


def _rename_new_without_links(temp: str, place: str) -> None:
    code = _renameat2(temp, place, _NOREPLACE)
    if code == errno.EEXIST:
        raise FileExistsError(code, os.strerror(code), place)
    if code:  # the name is taken by an empty file of ours first
        os.close(os.open(place, CREATE_FLAGS, 0o600))
        try:
            os.replace(temp, place)
        except BaseException:
            remove(place)
            raise


def exchanged(a: str, b: str) -> bool:
    """Exchange two paths in one step (Linux); False where that is not possible."""
    return _renameat2(a, b, _EXCHANGE) == 0


def _renameat2(a: str, b: str, flags: int) -> int:
    """Call the system's renameat2; return 0, or the number of its error."""
    import ctypes

    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):  # no Linux, or an old C library
        return errno.ENOSYS
    here = -100  # AT_FDCWD
    failed = call(here, os.fsencode(a), here, os.fsencode(b), flags)
    return ctypes.get_errno() or errno.EIO if failed else 0


def remove(path: str) -> bool:
    """Remove a file; True if it is gone."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def name_of_open(file: FileIO, path: str) -> str:
    """Return a name of an open file for libraries that want one: of the file, not of its place.

    Another file that takes its name meanwhile is not what they open.
    """
    name = f"/proc/self/fd/{file.fileno()}"
    return name if os.path.exists(name) else path


def make_folders(folder: str) -> list[str]:
    """Make a folder and what leads to it; return those that were not there."""
    missing = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        os.mkdir(path)
    return missing[::-1]


def sync_folder(path: str) -> None:
    """Make a rename in the folder of `path` durable, where the system knows how."""
    if os.name != "posix":
        return
    try:
        descriptor = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:  # not readable, or a network file system; the rename itself is done
        pass


def sync_file(path: str) -> None:
    """Wait until the bytes of a closed file are on the disk."""
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


SYNC_EACH = 16  # files: from so many on, one wait for the whole file system is shorter


def sync_tree(folder: str) -> None:
    """Wait until all files in a folder, and the folders in it, are on the disk."""
    found = [(place, names) for place, _, names in os.walk(folder)]
    if sum(len(names) for _, names in found) > SYNC_EACH and _sync_file_system(folder):
        return
    for place, names in found:
        for name in names:
            sync_file(os.path.join(place, name))
        sync_folder(os.path.join(place, "."))


def _sync_file_system(path: str) -> bool:
    """Wait for all that is to be written to a file system; False where no system call does it."""
    if sys.platform != "linux":
        return False
    import ctypes

    try:
        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError):
        return False
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if syncfs(descriptor):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
    finally:
        os.close(descriptor)
    return True
