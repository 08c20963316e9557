"""Names on the disk: which may be written, and how a finished file gets one.

Nothing here replaces what it was not told to replace: the system itself refuses (`link`, or
`renameat2` where a file system has no links), not a look beforehand.

A file at a URL is opened, read and closed by the same functions; only its name and its handle
differ.
"""

from __future__ import annotations

import errno
import os
import stat
from errno import EEXIST, ENOTDIR, ENOTEMPTY
from itertools import islice
from stat import S_ISREG

from raconvert.errors import RaconvertError, TargetExists, Unsafe, WriteFailed
from raconvert.files import UNFINISHED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from io import FileIO
    from typing import Any

    from raconvert.files.limits import Limits
    from raconvert.files.remote.source import RemoteFile

    Handle = int | RemoteFile  # an open file: a descriptor, or what is one to a file at a URL


CREATE_FLAGS = (
    os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
)
PERMISSIONS = 0o777  # a mask; set-uid and its kind are never copied to other content
# What file systems without links say of `link`.
_NO_LINKS = {
    getattr(errno, name)
    for name in ("EPERM", "EACCES", "ENOSYS", "EOPNOTSUPP", "ENOTSUP", "EMLINK", "EINVAL")
    if hasattr(errno, name)
}
_NOREPLACE, _EXCHANGE = 1, 2  # linux/fs.h, for renameat2


def is_remote(path: str) -> bool:
    """True if a path is a URL (`raconvert.files.remote`)."""
    if "://" not in path:
        return False
    from raconvert.files.remote import is_url

    return is_url(path)


def public_name(word: str) -> str:
    """Return the name of a file for messages: a path as it is, a URL without its secrets."""
    if "://" not in word:
        return word
    from raconvert.files.remote import located

    return located(word)


def is_there(path: str) -> bool:
    """True if there is a file at a URL, or anything of that name at a path.

    Raises `ReadFailed` if a server does not say.
    """
    if is_remote(path):
        from raconvert.files.remote.listing import is_file

        return is_file(path)
    return os.path.exists(path)


def close_file(file: Handle) -> None:
    """Close a file that `raconvert.files.source.opened` has opened. Raises nothing."""
    if isinstance(file, int):
        os.close(file)
    else:
        file.close()


def folders_of(paths: Iterable[str]) -> set[str]:
    """Return the folders in which files lie, with the separator at the end of each."""
    if os.sep == "/":  # faster, which counts for the many files of a data set
        paths = list(paths)
        if paths:
            # Whatever sorts between two names shares the folder that both lie in.
            low, high = min(paths), max(paths)
            folder = low[: low.rfind("/") + 1]
            deep = len(paths) * folder.count("/")
            if high.startswith(folder) and "".join(paths).count("/") == deep:
                return {folder}
        return {path[: path.rfind("/") + 1] for path in paths}
    return {path[: len(path) - len(os.path.basename(path))] for path in paths}


def is_in_doubt(paths: Iterable[str]) -> bool:
    """True if the folder of a file, or one above it, has notes on unfinished sets of files.

    `raconvert.files.unfinished` writes and reads them.
    """
    seen: set[str] = set()
    for folder in folders_of(paths):  # one or few, of many files
        if is_remote(folder):
            continue
        above = os.path.abspath(folder)
        while above not in seen:
            seen.add(above)
            if os.access(f"{above}{os.sep}{UNFINISHED}", os.F_OK):
                return True
            above = os.path.dirname(above)
    return False


def temporary(path: str) -> str:
    """Return a new hidden path beside a path, which no glob takes.

    Its name is short, so that it fits even if the name of the path just fits.
    """
    return os.path.join(os.path.dirname(path), f"{temporary_prefix()}{os.urandom(4).hex()}.tmp")


_MARK = [""]  # letters in the temporary names of this process


def temporary_prefix() -> str:
    """The beginning of the names that this process gives to temporary files and folders."""
    return f".raconvert-{os.getpid()}-{_MARK[0]}"


def mark_temporaries(text: str) -> str:
    """Put letters into temporary names from now on, to find them by; return the letters before.

    The number of the process is not enough if many machines write into one folder.
    """
    before, _MARK[0] = _MARK[0], text
    return before


def marked_temporaries(folder: str, mark: str) -> list[str]:
    """Return the paths of the temporary files and folders in a folder whose names have a mark."""
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    return [
        os.path.join(folder, name)
        for name in names
        if is_temporary(name) and name.split("-", 2)[-1].startswith(mark)
    ]


def is_temporary(name: str) -> bool:
    """True for the names that `temporary` gives."""
    return name.startswith(".raconvert-") and name.endswith(".tmp")


def temporaries_of(folder: str, process: int) -> list[str]:
    """Return the paths of the temporary files and folders that a process has left in a folder."""
    start = f".raconvert-{process}-"
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    return [
        os.path.join(folder, name)
        for name in names
        if name.startswith(start) and is_temporary(name)
    ]


# Which may be written --------------------------------------------------------------------------


def check_target(path: str, *, overwrite: bool) -> None:
    """Raise `TargetExists` for a destination that exists, unless `overwrite` allows to replace it.

    Anything but a regular file is never replaced. Raises `WriteFailed` for a path with a NUL.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        if not overwrite and os.path.islink(path):
            raise TargetExists(
                "is a link to a missing file, and is left as it was",
                path=path,
                remedy="use `--overwrite` to create what it names, or remove it",
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
    """Return the error for an existing destination that may not be replaced."""
    return TargetExists(
        f"{what}, and is left as it was",
        path=path,
        remedy="use `--overwrite` to replace it, or `--skip-existing` to keep it",
    )


def refuse_used(paths: Iterable[str], used: Iterable[str]) -> None:
    """Raise `TargetExists` for a destination that is read itself, or holds a file that is read."""
    existing = {identity(path): path for path in paths}
    existing.pop(None, None)
    folders = {
        os.path.join(os.path.realpath(path), ""): path
        for path in existing.values()
        if os.path.isdir(path)
    }
    for file in used if existing else ():
        path = existing.get(identity(file))
        if folders:
            real = os.path.realpath(file)
            path = next((folders[start] for start in folders if real.startswith(start)), path)
        if path is not None:
            raise TargetExists(
                "is read by the source, and is left as it was",
                path=path,
                remedy="name another destination",
            )


def is_folder(entry: os.DirEntry[str]) -> bool:
    """True if an entry is a folder; a link that leads nowhere is not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def identity(path: str, *, follow: bool = True) -> tuple[int, int] | None:
    """Return the identity of a file, the same under all of its names; None if it does not exist."""
    try:
        status = os.stat(path) if follow else os.lstat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def old_mode(path: str) -> int | None:
    """Return the permissions of the regular file at a path, None if there is none.

    Raises `OSError` if the system does not tell.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    return stat.S_IMODE(mode) & PERMISSIONS if stat.S_ISREG(mode) else None


def write_failed(path: str, error: OSError | ValueError) -> RaconvertError:
    """Return the error for a refused write, with the system's reason; an error of ours stays.

    (Python raises `ValueError` for a path with a NUL byte.)
    """
    if isinstance(error, RaconvertError):
        return error
    reason = getattr(error, "strerror", None) or str(error)
    remedy, folder = "the destination is as it was before", os.path.dirname(path)
    if getattr(error, "errno", 0) == errno.ENOENT and folder and not os.path.lexists(folder):
        from raconvert.files.quoting import operand

        reason, remedy = f"folder '{folder}' does not exist", f"mkdir -p {operand(folder)}"
    failed = WriteFailed(f"cannot be written: {reason}", path=path, remedy=remedy)
    failed.errno = getattr(error, "errno", None)
    return failed


# How a file gets its name ----------------------------------------------------------------------


def create(path: str, mode: int | None) -> tuple[int, int]:
    """Create a file for its owner alone; return the descriptor and the mode that it is to have.

    `mode` is that of the file which it will replace, None for a new one: the umask decides.
    """
    if mode is None:
        mode = mode_of_new()
    if mode is not None:
        return os.open(path, CREATE_FLAGS, 0o600), mode
    descriptor = os.open(path, CREATE_FLAGS, 0o666)  # shows the umask; the file is empty
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode) & PERMISSIONS
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, 0o600)
    return descriptor, mode


def mode_of_new() -> int | None:
    """Return the mode that the umask leaves to a new file; None if the system does not show it.

    (`os.umask` would change it, for other threads too.)
    """
    try:
        descriptor = os.open("/proc/self/status", os.O_RDONLY)
    except OSError:
        return None
    try:
        _, _, rest = os.read(descriptor, 1024).partition(b"\nUmask:")
    finally:
        os.close(descriptor)
    return 0o666 & ~int(rest.partition(b"\n")[0], 8) if rest else None


def set_mode(descriptor: int, mode: int) -> None:
    """Give an open file its permissions, if it has others."""
    if hasattr(os, "fchmod") and stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        os.fchmod(descriptor, mode)


def link(path: str, name: str, **how: Any) -> None:
    """Give a file a second name; raises `OSError`, ENOTSUP if the system has no such call."""
    try:
        os.link(path, name, **how)
    except (AttributeError, NotImplementedError) as error:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), path) from error


def rename_new(temp: str, path: str) -> bool:
    """Rename a file to a name that is free; raises `FileExistsError` otherwise.

    Returns False if the temporary name remains beside the new one, because it cannot be removed.
    """
    if os.name == "nt":  # on Windows os.rename refuses to replace
        os.rename(temp, path)
        return True
    try:
        link(temp, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _rename_new_without_links(temp, path)
        return True
    return remove(temp)


def _rename_new_without_links(temp: str, path: str) -> None:
    """Rename a file to a name that is free, on a file system without links."""
    code = _renameat2(temp, path, _NOREPLACE)
    if code == errno.EEXIST:
        raise FileExistsError(code, os.strerror(code), path)
    if code:  # the name is taken by an empty file of ours first
        os.close(os.open(path, CREATE_FLAGS, 0o600))
        try:
            os.replace(temp, path)
        except BaseException:
            remove(path)
            raise


def exchanged(a: str, b: str) -> bool:
    """Exchange two paths in one step (Linux); return False if that is not possible."""
    return _renameat2(a, b, _EXCHANGE) == 0


def _renameat2(a: str, b: str, flags: int) -> int:
    """Call renameat2 of Linux; return 0, or the number of its error."""
    try:
        import ctypes

        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (ImportError, OSError, AttributeError, TypeError):  # no Linux, or an old C library
        return errno.ENOSYS
    current = -100  # AT_FDCWD: relative paths begin in the current folder
    failed = call(current, os.fsencode(a), current, os.fsencode(b), flags)
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
    """Return a path by which libraries that want one open the file that is open already.

    If the system has such paths, they open this file even if another one takes its name meanwhile.
    """
    name = f"/proc/self/fd/{file.fileno()}"
    return name if os.path.exists(name) else path


def make_folders(folder: str) -> list[str]:
    """Make a folder and its parents; return those that did not exist, the outermost first."""
    missing = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    made = []
    for path in reversed(missing):
        try:
            os.mkdir(path)
        except FileExistsError:  # another process has made it meanwhile
            if not os.path.isdir(path):
                raise
        else:
            made.append(path)
    return made


def sync_folder(path: str) -> None:
    """Make a rename in the folder of `path` durable, if the system can. Raises nothing."""
    if os.name != "posix":
        return
    try:
        descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:  # not readable, or a network file system; the rename itself is done
        pass


def without_ending(path: str, ending: str) -> str:
    """Return a path without `ending`, if it has that (in any case), else without its suffix."""
    has = bool(ending) and path.lower().endswith(ending)
    return path[: -len(ending)] if has else os.path.splitext(path)[0]


# Folders: how a finished one takes its place, and what lies in one -------------------------------


def rename_new_folder(new: str, path: str) -> None:
    """Rename a folder to a name that is free or an empty folder; raises `FileExistsError` else."""
    try:
        os.rename(new, path)
    except OSError as error:
        if error.errno not in (ENOTEMPTY, EEXIST, ENOTDIR) or not os.path.lexists(path):
            raise
        raise FileExistsError(EEXIST, os.strerror(EEXIST), path) from error


def rename_by_way_of(new: str, path: str, old: str) -> None:
    """Rename a folder to an existing path, after that has been renamed to `old`."""
    try:
        os.rename(path, old)
        os.rename(new, path)
    except BaseException:
        if os.path.isdir(old) and not os.path.lexists(path):
            os.rename(old, path)
        raise


def walk(folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield what `os.walk` yields: each folder with the names of its folders and of its files.

    Any depth works, while `os.walk` of Python 3.11 calls itself for each level.
    """
    left = [folder]
    while left:
        above = left.pop()
        inner: list[str] = []
        names: list[str] = []
        try:
            with os.scandir(above) as entries:
                for entry in entries:
                    (inner if is_folder(entry) else names).append(entry.name)
        except OSError:  # gone, not to be read, or its path is too long
            continue
        paths = [os.path.join(above, name) for name in inner]
        yield above, inner, names
        left += [path for path in reversed(paths) if not os.path.islink(path)]


# The closest name in a folder to that of a file which is not there -------------------------------


MOST_NAMES = 2000  # names of a folder that are compared, to suggest a similar one
CLOSE = 0.7  # share of letters that similar names have in common, in order


def did_you_mean_file(path: str, error: Exception | None = None) -> str:
    """Return ``; did you mean 'x'?`` for the closest file beside one that is not there, if any.

    For a link that leads nowhere, the text has its destination instead. A name of the same letters
    with other numbers is another file, and not suggested. The text is empty if `error` is any other
    than that the file does not exist. Raises nothing.
    """
    if is_remote(path) or not (error is None or isinstance(error, FileNotFoundError)):
        return ""
    folder, name = os.path.split(path)
    try:
        if os.path.islink(path):
            return f"; it is a link to '{os.readlink(path)}'"
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in islice(entries, MOST_NAMES)]
    except (OSError, ValueError):
        return ""
    close = [(_likeness(name, other), other) for other in sorted(names) if other[0] != "."]
    likeness, best = max(close, default=(0.0, ""))
    return f"; did you mean '{os.path.join(folder, best)}'?" if likeness >= CLOSE else ""


def _likeness(name: str, other: str) -> float:
    """Return the likeness of two names, from 0 to 1; their suffixes count half as much."""
    from difflib import SequenceMatcher

    (stem, ending), (stem2, ending2) = map(os.path.splitext, (name.lower(), other.lower()))
    if abs(len(stem) - len(stem2)) > 3 or _numbers(stem) != _numbers(stem2):
        return 0.0
    stems = SequenceMatcher(None, stem, stem2)
    if stem != stem2 and stems.quick_ratio() < CLOSE - 0.1:
        return 0.0
    endings = SequenceMatcher(None, ending, ending2).ratio()
    return (2 * stems.ratio() + endings) / 3


def _numbers(text: str) -> list[int]:
    """Return the numbers in a text, in order."""
    import re

    return [int(word) for word in re.findall("[0-9]{1,18}", text)]


# Files of fixed names (journal, SHA256SUMS, notes), opened without following links --------------
# Anyone who may write into the folder can put a link or a pipe under these names, which are public.
# Neither is followed, read or written.


_FLAGS = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def refuse_other(path: str) -> None:
    """Raise `Unsafe` if the path is a link, or exists and is not a regular file."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:  # it does not exist, or opening it raises the error
        return
    if not S_ISREG(mode):
        raise Unsafe(
            "is a link, or not a regular file, where raconvert keeps a file of its own",
            path=path,
            remedy="remove it, if nothing else needs it",
        )


def open_own(path: str, flags: int = os.O_RDONLY) -> int:
    """Open a file of a fixed name; return its descriptor. Raises `Unsafe` and `OSError`."""
    refuse_other(path)
    descriptor = os.open(path, flags | _FLAGS, 0o666)
    if not S_ISREG(os.fstat(descriptor).st_mode):  # it can have been replaced since the check
        os.close(descriptor)
        refuse_other(path)
        raise Unsafe("is not a regular file", path=path)
    return descriptor


# Trees of folders, whose links are followed: who names a tree asks for that ---------------------


def visible(folder: str) -> list[os.DirEntry[str]]:
    """List the entries of a folder whose names do not begin with a dot."""
    with os.scandir(folder) as entries:
        return [entry for entry in entries if not entry.name.startswith(".")]


def entries_below(
    folder: str,
    is_whole: Callable[[str], bool] = lambda path: False,
    limits: Limits | None = None,
) -> Iterator[os.DirEntry[str]]:
    """Yield the visible entries below a folder that are not folders, in folders of any depth.

    A folder for which `is_whole` is true for its path is yielded, and not its entries. Links are
    followed, unless they lead to a folder that they lie in. Links that name one another make very
    many ways of few folders: raises `Unsafe` for more than `Limits.linked_folders`.
    """
    linked = 0
    # Path, real path, and the real paths of the folders that links on the way led to.
    left = [(folder, os.path.realpath(folder), frozenset[str]())]
    while left:
        parent, real, passed = left.pop()
        for entry in visible(parent):
            inner = os.path.join(real, entry.name)
            if not is_folder(entry) or is_whole(entry.path):
                yield entry
            elif not entry.is_symlink():
                left.append((entry.path, inner, passed))
            elif (inner := os.path.realpath(inner)) not in passed and not _is_in(real, inner):
                linked += 1
                if limits is None:
                    from raconvert.files.limits import DEFAULT  # only where there are links

                    limits = DEFAULT
                if linked > limits.linked_folders:
                    raise Unsafe(
                        "links in this folder lead to too many folders",
                        path=folder,
                        expected=f"at most {limits.linked_folders}",
                        remedy="name the folders that are meant",
                    )
                left.append((entry.path, inner, passed | {inner}))


def _is_in(path: str, folder: str) -> bool:
    """True if a path without links is a folder, or lies in it."""
    return os.path.join(path, "").startswith(os.path.join(folder, ""))
