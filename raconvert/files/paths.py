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
    """Return a path as it is; of a URL the name that it has in messages (`remote.located`)."""
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
    """Close what `raconvert.files.source.opened` has returned. Raises nothing."""
    if isinstance(file, int):
        os.close(file)
    else:
        file.close()


def folders_of(paths: Iterable[str]) -> set[str]:
    """The folders before the names of files, separator included."""
    if os.sep == "/":  # measured: worth it, since a data set has many names
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
    """True if a note lies above a file that a set of files is not whole (`files.unfinished`)."""
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
    """Return a new hidden name beside a path, that no glob takes.

    Short, so that it fits where the name itself just fits.
    """
    return os.path.join(os.path.dirname(path), f"{temporary_prefix()}{os.urandom(4).hex()}.tmp")


_MARK = [""]  # stands in the temporary names of this process


def temporary_prefix() -> str:
    """The beginning of the names that this process gives to temporary files and folders."""
    return f".raconvert-{os.getpid()}-{_MARK[0]}"


def mark_temporaries(text: str) -> str:
    """Put letters into temporary names from now on, by which they are found; return those before.

    Numbers of processes say little where many machines write into one folder.
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


def is_folder(entry: os.DirEntry[str]) -> bool:
    """True if an entry is a folder; a link that leads nowhere is not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


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


def write_failed(path: str, error: OSError | ValueError) -> RaconvertError:
    """Return the error for a refused write, with the system's reason; an error of ours stays.

    (`ValueError` is what Python says of a path with a NUL byte.)
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

    `mode` is that of the file which it will replace; a new one gets what the umask leaves.
    """
    if mode is None:
        mode = mode_of_new()
    if mode is not None:
        return os.open(path, CREATE_FLAGS, 0o600), mode
    descriptor = os.open(path, CREATE_FLAGS, 0o666)  # the system tells, while the file is empty
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode) & PERMISSIONS
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, 0o600)
    return descriptor, mode


def mode_of_new() -> int | None:
    """The mode that the umask leaves to a new file, as Linux shows it.

    Asking `os.umask` changes it, for other threads too.
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
    """Give a file a second name; `OSError` (ENOTSUP) also where the system has no such call."""
    try:
        os.link(path, name, **how)
    except (AttributeError, NotImplementedError) as error:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), path) from error


def rename_new(temp: str, path: str) -> bool:
    """Give a file the name of what is not there; `FileExistsError` if it is, which is not replaced.

    False if the temporary name remains beside the new one, because it cannot be removed.
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
    """Exchange two paths in one step (Linux); False where that is not possible."""
    return _renameat2(a, b, _EXCHANGE) == 0


def _renameat2(a: str, b: str, flags: int) -> int:
    """Call the system's renameat2; return 0, or the number of its error."""
    try:
        import ctypes

        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (ImportError, OSError, AttributeError, TypeError):  # no Linux, or an old C library
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
    """Make a folder and what leads to it; return those that were made."""
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
    """Make a rename in the folder of `path`, unless that is a link, durable, if the system can."""
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
    """A path without its ending, where it has that, else without its last suffix."""
    has = bool(ending) and path.lower().endswith(ending)
    return path[: -len(ending)] if has else os.path.splitext(path)[0]


# Folders: how a finished one takes its place, and what lies in one -------------------------------


def rename_new_folder(new: str, path: str) -> None:
    """Rename a folder to a name that is free or an empty folder; else raises `FileExistsError`."""
    try:
        os.rename(new, path)
    except OSError as error:
        if error.errno not in (ENOTEMPTY, EEXIST, ENOTDIR) or not os.path.lexists(path):
            raise
        raise FileExistsError(EEXIST, os.strerror(EEXIST), path) from error


def rename_by_way_of(new: str, path: str, old: str) -> None:
    """Rename a folder to an existing name, whose old entry is renamed to `old` before."""
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
                    (inner if _is_folder(entry) else names).append(entry.name)
        except OSError:  # gone, not to be read, or its path is too long
            continue
        paths = [os.path.join(above, name) for name in inner]
        yield above, inner, names
        left += [path for path in reversed(paths) if not os.path.islink(path)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


# The closest name in a folder to that of a file which is not there -------------------------------


MOST_NAMES = 2000  # names of a folder that are compared, to suggest a similar one
CLOSE = 0.7  # share of letters that similar names have in common, in order


def did_you_mean_file(path: str, error: Exception | None = None) -> str:
    """Return ``; did you mean 'x'?`` for the closest file beside one that is not there, if any.

    Of a link that leads nowhere it is said where it leads. A name of the same letters with other
    numbers is another file, and not meant. Nothing is said of another `error` than that there is no
    file. Raises nothing.
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
    import re

    return [int(word) for word in re.findall("[0-9]{1,18}", text)]


# Files of fixed names (journal, SHA256SUMS, notes), opened without following links
# Anyone who may write into the folder can have put a link or a pipe in their place, since the
# names are public. Neither is followed, read or written.


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
    if not S_ISREG(os.fstat(descriptor).st_mode):  # it can have been replaced since the check
        os.close(descriptor)
        refuse_other(path)
        raise Unsafe("is not a regular file", path=path)
    return descriptor


# Trees of folders with the links in them, as somebody has asked for who names such a tree --------


def visible(folder: str) -> list[os.DirEntry[str]]:
    """List the entries of a folder whose names do not begin with a dot."""
    with os.scandir(folder) as entries:
        return [entry for entry in entries if not entry.name.startswith(".")]


def entries_below(
    folder: str,
    is_whole: Callable[[str], bool] = lambda path: False,
    limits: Limits | None = None,
) -> Iterator[os.DirEntry[str]]:
    """Yield all below a folder but folders; links are followed, not to a folder that they lie in.

    A folder that `is_whole` is not looked into, but yielded.

    Links that name one another make very many ways of few folders: `Limits.linked_folders` are
    followed.
    """
    linked = 0
    # Each with the folders that links led through.
    left = [(folder, os.path.realpath(folder), frozenset[str]())]
    while left:
        parent, real, above = left.pop()
        for entry in visible(parent):
            there = os.path.join(real, entry.name)
            if not is_folder(entry) or is_whole(entry.path):
                yield entry
            elif not entry.is_symlink():
                left.append((entry.path, there, above))
            elif (there := os.path.realpath(there)) not in above and not _is_in(real, there):
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
                left.append((entry.path, there, above | {there}))


def _is_in(path: str, folder: str) -> bool:
    """True if a path without links is a folder, or lies in it."""
    return os.path.join(path, "").startswith(os.path.join(folder, ""))
