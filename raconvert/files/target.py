"""Output files: written beside their destination, which they take when they are whole.

A `Target` is written under a temporary name, for its owner alone; until it is whole the destination
is as it was. What appears at the destination meanwhile is replaced only with `overwrite`.
"""

from __future__ import annotations

import os
import stat
import sys

from raconvert.errors import WriteFailed
from raconvert.files.paths import (
    check_target,
    create,
    exists,
    identity,
    link,
    old_mode,
    refuse_used,
    remove,
    rename_new,
    set_mode,
    sync_folder,
    temporary,
    walk,
    without_ending,
    write_failed,
)
from raconvert.files.source import DEFAULT_MAX_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from io import FileIO
    from typing import Any

    from raconvert.files.source import Extent


class Target:
    """One output file: written as `temp` beside `path`, then renamed to it by `commit`.

    `progress` is called with the number of bytes just written; `max_memory` is what encoding may
    hold at once. `partners` are further files that belong to this one, finished, renamed and
    removed together with it (before it, so that what it names is there); `series` is True if no
    content shows that one of them is missing, so that a note does until all are there. `place` is
    the file itself: `path`, or the file to which a link of that name leads (with `follow=False` the
    link itself is replaced); partners lie beside it. `used` are files that no partner may replace.
    Without `overwrite` a file that appears at the destination meanwhile is never replaced; None is
    for callers that decide for themselves: the file is replaced, partners are not. `allow`
    are the losses that may happen while data is written, `lost` those that did (`Fit`), `notes`
    what the user is to know. With `sync` the disk begins while a large file is still written, since
    `commit` will wait for it. Leaving a ``with`` block without `commit` removes temporary files.

    >>> with Target("note.txt") as target:
    ...     count = target.open().write(b"done")
    ...     target.commit()
    >>> Path("note.txt").read_bytes()
    b'done'
    """

    __slots__ = (
        "_absent", "_files", "_identity", "_kept", "_mode", "_replaces", "_streams", "_sync",
        "_used",
        "allow", "follow", "lost", "max_memory", "notes", "overwrite", "partners", "path", "place",
        "progress", "series", "temp", "used",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        *,
        max_memory: int = DEFAULT_MAX_MEMORY,
        progress: Callable[[int], object] | None = None,
        overwrite: bool | None = None,
        used: Iterable[str] = (),
        follow: bool = True,
        allow: Iterable[str] = (),
        sync: bool = False,
    ) -> None:
        self.path: str = os.fspath(path)
        link, self._absent = _look(self.path)
        self.follow: bool = follow and link
        # A link is written through, as every other tool does; the folder of its end holds `temp`.
        self.place: str = os.path.realpath(self.path) if self.follow else self.path
        self.temp: str = temporary(self.place)
        self.max_memory: int = max_memory
        self.progress: Callable[[int], object] | None = progress
        self.overwrite: bool = bool(overwrite)
        self._replaces = overwrite is not False
        self.used: Iterable[str] = used
        self.allow: frozenset[str] = frozenset(allow)
        self.lost: list[Any] = []
        self.notes: list[str] = []
        self.partners: list[Target] = []
        self.series: bool = False
        self._files: list[FileIO] = []
        self._streams: list[Any] = []
        self._used = False
        self._kept = ""
        self._mode = 0o600
        self._sync = sync
        self._identity: tuple[int, int] | None = None

    def open(self) -> FileIO:
        """Create the temporary file and return it: raw, unbuffered, readable and seekable.

        Raises `WriteFailed` where the system refuses.
        """
        import io

        try:
            if self.follow and os.path.islink(self.place):
                os.stat(self.place)  # raises the error of the system for a loop of links
            mode = None if self._absent else old_mode(self.place)
            self._used = True
            descriptor, self._mode = create(self.temp, mode)
        except (OSError, ValueError) as error:
            self._used = self._used and not isinstance(error, FileExistsError)
            raise write_failed(self.path, error) from error
        file = io.FileIO(descriptor, "r+b", closefd=True)
        self._files.append(file)
        status = os.fstat(descriptor)
        self._identity = status.st_dev, status.st_ino
        if self._sync:
            self.progress = WriteBack(file, self.progress)
        return file

    def copied(self, header: bytes, extent: Extent, trailer: bytes = b"") -> FileIO:
        """Create the file from a header, a stretch of another file and a trailer; return it open.

        Numbers become little-endian; memory is bounded. Raises `WriteFailed`, and what reading the
        other file raises.
        """
        from raconvert.files.copy import copy_extent, write_all

        file = self.open()
        try:
            copy_extent(header, extent, file, self.progress)
            if trailer:
                write_all(file, [trailer])
        except OSError as error:
            raise write_failed(self.path, error) from error
        return file

    def allows(self, loss: str) -> bool:
        """True if ``--allow`` names this loss. Raises nothing."""
        return loss in self.allow or "all" in self.allow

    def beside(self, suffix: str, *, appended: bool = False, ending: str = "") -> Target:
        """Return the target of the partner of this file: its name with another suffix.

        `appended`: the suffix follows the whole name; `ending`: the suffix replaces this ending, if
        that is more than the last suffix. `Source.beside` finds it again. Raises `TargetExists` if
        such a file exists and may not be replaced.
        """
        path = (self.place if appended else without_ending(self.place, ending)) + suffix
        refuse_used([path], self.used)
        check_target(path, overwrite=self.overwrite)
        other = Target(
            path,
            max_memory=self.max_memory,
            progress=self.progress,
            overwrite=self.overwrite,
            follow=False,
        )
        self.partners.append(other)
        return other

    def counted(self, blocks: Iterable[Any]) -> Iterator[Any]:
        """Yield blocks, and report the bytes of each as progress when the next one is asked for.

        If writing fails, `abort` closes the iterator `blocks` with its threads and files, which the
        error would keep alive. Raises what reading the blocks raises.
        """
        self._streams.append(blocks)
        for block in blocks:
            yield block
            if self.progress is not None:
                self.progress(block.nbytes)

    def finish(self, *, sync: bool = True) -> None:
        """Put the bytes of the temporary file on the disk, ready for `rename`.

        Raises `WriteFailed` where the system refuses.
        """
        for partner in self.partners:
            partner.finish(sync=sync)
        try:
            for file in self._files if sync else ():
                if not file.closed:
                    os.fsync(file.fileno())
        except OSError as error:
            raise write_failed(self.path, error) from error

    def written(self) -> FileIO:
        """Return the file that `open` has opened, even if another one has its name by now.

        Raises `IndexError` if none is open.
        """
        return self._files[0]

    def rename(self) -> None:
        """Rename all finished files to their destinations, or none; modes of old files are kept.

        Raises `WriteFailed`, or `TargetExists` for a file that appeared meanwhile; the destination
        is then as it was.
        """
        if not self.series:
            self._rename_all()
            return
        from raconvert.files.unfinished import Unfinished

        with Unfinished((target.place for target in self._all()), single=True) as unfinished:
            unfinished.begin()
            self._rename_all()

    def _rename_all(self) -> None:
        """Rename the file and its partners; if one fails, undo the others."""
        together = [*self._all()]
        done: list[Target] = []
        try:
            for target in together:
                target._close()
            for target in together:
                done.append(target)
                target._take_place(keep=len(together) > 1)
        except BaseException:
            for target in reversed(done) if len(together) > 1 else ():
                target._put_back()
            raise
        for target in done:
            target._forget()

    def _all(self) -> Iterator[Target]:
        """Yield the targets of all partners, and this one last."""
        for partner in self.partners:
            yield from partner._all()
        yield self

    def _close(self) -> None:
        """Give the file its permissions and close it, if it is still the one at `temp`."""
        try:
            mode = old_mode(self.place)
            mode = self._mode if mode is None else mode
            open_files = [file for file in self._files if not file.closed]
            if open_files:
                set_mode(open_files[0].fileno(), mode)
            status = os.lstat(self.temp)
            if self._identity not in (None, (status.st_dev, status.st_ino)):
                raise WriteFailed(
                    "another file took the place of its temporary file while it was written",
                    path=self.path,
                    where=f"'{self.temp}'",
                    remedy="the destination is as it was before",
                )
            for file in open_files:
                file.close()
            if not open_files and stat.S_IMODE(status.st_mode) != mode:
                os.chmod(self.temp, mode)
        except OSError as error:
            raise write_failed(self.path, error) from error
        self._files.clear()

    def _take_place(self, *, keep: bool) -> None:
        """Rename one file to its destination; `keep`: an old file gets a second name before."""
        try:
            if self._replaces:
                if keep and os.path.lexists(self.place):
                    self._keep()
                os.replace(self.temp, self.place)
                self._used = False
            else:
                self._used = not rename_new(self.temp, self.place)
        except FileExistsError as error:
            raise exists(self.path, "appeared while it was written") from error
        except OSError as error:
            raise write_failed(self.path, error) from error

    def _keep(self) -> None:
        """Give the old file at the destination a second name, until all files are renamed."""
        self._kept = f"{self.temp.removesuffix('.tmp')}-old.tmp"
        try:
            link(self.place, self._kept, follow_symlinks=False)
        except OSError:  # a file system without links
            os.replace(self.place, self._kept)

    def _put_back(self) -> None:
        """Undo `_take_place` with `keep`, however far that got."""
        try:
            if self._kept:
                if os.path.lexists(self._kept):
                    os.replace(self._kept, self.place)
                self._forget()  # renaming does nothing if both names are of one file
            elif self._identity and identity(self.place, follow=False) == self._identity:
                os.unlink(self.place)  # it was renamed to a free name
        except OSError:  # the disk is failing: the old file stays under its second name
            pass

    def _forget(self) -> None:
        """Remove the second name of the old file."""
        if self._kept and remove(self._kept):
            self._kept = ""

    def commit(self, *, sync: bool = True) -> None:
        """Finish and rename the file. Raises what `finish` and `rename` raise."""
        self.finish(sync=sync)
        self.rename()
        if sync:
            sync_folder(self.place)

    def abort(self) -> None:
        """Remove what was written; the destination is as it was. Raises nothing."""
        for partner in self.partners:
            partner.abort()
        for stream in self._streams:
            if hasattr(stream, "close"):
                stream.close()
        self._streams.clear()
        for file in self._files:
            try:
                file.close()
            except OSError:  # unwritten bytes are discarded
                pass
        self._files.clear()
        if self._used:
            self._used = False
            remove(self.temp)
        self._forget()

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()


def _look(path: str) -> tuple[bool, bool]:
    """Return two bools: if the path is a link, and if nothing exists at it."""
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode), False
    except FileNotFoundError:
        return False, True
    except (OSError, ValueError):  # the writer gets the error
        return False, False


# Staging folders of uploads, and the uploader that may skip the local file -----------------------


# By folder, a function that sends the file of a `Conversion` while it is made; it returns False if
# the file must be made locally first.
SENDERS: dict[str, Callable[[Any], bool]] = {}


def sender_of(path: str) -> Callable[[Any], bool] | None:
    """Return the uploader of a path's staging folder; None for a local file. Raises nothing."""
    for folder, send in SENDERS.items():
        if path.startswith(folder):
            return send
    return None


# Waiting until files, and folders of them, are on the disk ---------------------------------------


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
    folders = [(above, names) for above, _, names in walk(folder)]
    if sum(len(names) for _, names in folders) > SYNC_EACH and _sync_file_system(folder):
        return
    for above, names in folders:
        for name in names:
            sync_file(os.path.join(above, name))
        sync_folder(os.path.join(above, "."))


def sync_files_below(folder: str, names: list[str]) -> None:
    """Wait until these files and folders below a folder, and their parents, are on the disk."""
    if len(names) > SYNC_EACH and _sync_file_system(folder):
        return
    paths = [os.path.join(folder, name) for name in names]
    for path in paths:
        if os.path.isdir(path):
            sync_tree(path)
        else:
            sync_file(path)
    for parent in {os.path.dirname(path) for path in paths}:
        sync_folder(os.path.join(parent, "."))


def _sync_file_system(path: str) -> bool:
    """Wait until the file system of a path has written everything; False without such a call."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes

        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (ImportError, OSError, AttributeError):
        return False
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if syncfs(descriptor):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
    finally:
        os.close(descriptor)
    return True


# Large files on their way to the disk: the system begins to write while more is still copied -----
# Without that all of a file waits in memory until `fsync`, and the disk stands still meanwhile.
# With it a synced copy of 512 MiB on ext4 took 0.6 of the time of ``cp`` followed by ``sync``
# (`benchmarks/large_copy.py --sync`).


EVERY = 8 << 20  # bytes between two calls; with fewer the disk gets pieces that are too small
_WRITE = 2  # linux/fs.h: SYNC_FILE_RANGE_WRITE, begin to write what is not being written yet


class WriteBack:
    """A progress callback that has the disk begin with what was written to `file`.

    It is called with the number of bytes just written, and calls `progress` in turn. Without
    `sync_file_range`, which only Linux has, the disk begins with `fsync`.
    """

    def __init__(self, file: FileIO, progress: Callable[[int], object] | None) -> None:
        self._file = file
        self._progress = progress
        self._waiting = 0  # bytes written since the last call
        self._begin: Callable[[int, int, int, int], int] | None = None
        self._looked_up = False  # True once `_begin` is determined

    def __call__(self, nbytes: int) -> None:
        """Note that so many bytes were written."""
        self._waiting += nbytes
        if self._waiting >= EVERY:
            self._waiting = 0
            if not self._looked_up:
                self._looked_up, self._begin = True, _sync_file_range()
            if self._begin is not None:
                self._begin(self._file.fileno(), 0, 0, _WRITE)  # a hint: an error shows in fsync
        if self._progress is not None:
            self._progress(nbytes)


def _sync_file_range() -> Callable[[int, int, int, int], int] | None:
    """Return the system call of this name; None if the system has none."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes

        call = ctypes.CDLL(None).sync_file_range
    except (ImportError, OSError, AttributeError):
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return call
