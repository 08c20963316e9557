"""`Source`: one input file as importers see it, and `Extent`, a stretch of one.

The first 4 KiB (`head`), the size and `read_at` are what a sniffer needs; `open` gives the whole.
Only regular files are opened: pipes, devices and folders are refused before anything is read from
them. A source is opened once and stays open until it is closed; whatever is opened again by its
name is compared with its `Identity` (device, inode, size in bytes, time of change in nanoseconds)
and refused when it is not the same file any more.
"""

from __future__ import annotations

import io
import os
from stat import S_ISDIR, S_ISREG

from raconvert.declared import Record
from raconvert.errors import Corrupt, NotFound, RaconvertError, ReadFailed, Unsafe, changed
from raconvert.files.paths import close_file, is_remote, without_ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import ExitStack
    from io import FileIO

    from raconvert.declared import Readable
    from raconvert.files.limits import Limits
    from raconvert.files.paths import Handle

    Identity = tuple[int, int, int, int]

HEAD_BYTES = 4096  # enough for every magic and for most headers, in one page
DEFAULT_MAX_MEMORY = 1 << 30  # bytes; the default of `Limits.memory`
HELD_AT_MOST = 64  # open descriptors: systems allow 256 to 1024, and stacks have many files
_held: set[Handle] = set()  # descriptors that sources keep open
# `O_NONBLOCK` keeps the open itself from hanging on a pipe without a writer.
OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
)


class Checksum(Record):
    """The CRC-32 of the bytes `begin` to `end` of a file, in which an extent lies."""

    begin: int
    end: int
    expected: int
    where: str  # names the bytes in messages


class Extent:
    """The location of an array's bytes in one local file, contiguous and in stored order.

    `offset` and `nbytes` are bytes; `swap` is the width of the numbers that must be reversed to
    become little-endian (1: none). `identity` is that of the file when it was first opened;
    `checksum` is compared by code that reads all of the bytes. Made by `Source.extent`.
    """

    __slots__ = ("checksum", "identity", "nbytes", "offset", "path", "swap")

    def __init__(
        self,
        path: str,
        offset: int,
        nbytes: int,
        swap: int = 1,
        identity: Identity | None = None,
        checksum: Checksum | None = None,
    ) -> None:
        self.path: str = path
        self.offset: int = offset
        self.nbytes: int = nbytes
        self.swap: int = swap
        self.identity: Identity | None = identity
        self.checksum: Checksum | None = checksum

    def part(self, start: int, nbytes: int) -> Extent:
        """Return a stretch of this extent that begins `start` bytes into it. Raises nothing."""
        return Extent(self.path, self.offset + start, nbytes, self.swap, self.identity)

    def open(self) -> Handle:
        """Open the file; `close_file` closes it. Raises `Changed` if its identity is another."""
        return opened(self.path, self.identity)[0]


class Source:
    """A local file to read: `path`, `name` for messages, and bounded access to its bytes.

    `limits` bound what a parser may take; `max_memory` is one of them, the number of bytes that
    decoding may hold at once. `trust_external` allows the file to name others outside its own
    folder; `stand_ins` maps the real path of a file that it names to that of a file which is read
    instead (one that was written and is not yet renamed). Both are for `raconvert.files.named`,
    which adds to `used` the path of every other file. `place` is the final path of a file that has
    a temporary name still: `beside` looks for partners there. `seen` maps the path of every file
    that was opened to its `Identity`.

    >>> source = Source("grid.ra")
    >>> source.name, source.stem, source.size, source.head[:8]
    ('grid.ra', 'grid', 112, b'rawarray')
    """

    __slots__ = (
        "_file", "_head", "_limits", "base", "folders", "max_memory", "path", "place", "seen",
        "stand_ins", "trust_external", "used",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        *,
        max_memory: int = DEFAULT_MAX_MEMORY,
        trust_external: bool = False,
        stand_ins: dict[str, str] | None = None,
        place: str | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._file: Handle = -1
        self.place: str = place or os.fspath(path)
        self.path: str = os.fspath(path)
        self.max_memory: int = max_memory if limits is None else limits.memory
        self._limits: Limits | None = limits
        self.trust_external: bool = trust_external
        self.stand_ins: dict[str, str] = stand_ins or {}
        self.used: set[str] = set()
        self.seen: dict[str, Identity] = {}
        self.folders: list[str] = []  # the folders it lies in, for `raconvert.files.named`
        self.base: int = 0  # offset of byte 0 in the file at `path`
        self._head: bytes | None = None

    @property
    def limits(self) -> Limits:
        """The bounds for parsers of this source."""
        if self._limits is None:
            from raconvert.files import limits

            usual = limits.DEFAULT
            same = self.max_memory == usual.memory
            self._limits = usual if same else usual._replace(memory=self.max_memory)
        return self._limits

    @property
    def name(self) -> str:
        """The last part of the path."""
        return os.path.basename(self.path)

    @property
    def stem(self) -> str:
        """The last part of the path without its suffix: the natural name of a single array."""
        return os.path.splitext(self.name)[0]

    def beside(
        self, suffix: str | Sequence[str], what: str, *, appended: bool = False, ending: str = ""
    ) -> Source:
        """Return the partner of this file, in the same folder: its name with another suffix.

        Of several suffixes, the first one counts with which there is a file. `appended`: the suffix
        follows the whole name; `ending`: the suffix replaces this ending. `what` names the file in
        messages: "the header". Raises what `named` does.
        """
        from raconvert.files.named import first_there

        name = os.path.basename(self.place)
        own = name if appended else without_ending(name, ending)
        suffixes = [suffix] if isinstance(suffix, str) else suffix
        names = [own + suffix for suffix in suffixes]
        return self.named(first_there(self, names) or names[0], what)

    def named(self, name: str, what: str) -> Source:
        """Return the source of a file that this one names, relative to its folder.

        Raises `Unsafe` and `ReadFailed` as `raconvert.files.named.resolve` does.
        """
        from raconvert.files.named import resolve

        return self.at(resolve(self, name, what))

    def at(self, path: str) -> Source:
        """Return the source of another file, with the same rules and `used`. Raises nothing."""
        other = Source(
            path, max_memory=self.max_memory, stand_ins=self.stand_ins, limits=self._limits
        )
        other.trust_external = self.trust_external
        other.used, other.seen = self.used, self.seen
        return other

    @property
    def head(self) -> bytes:
        """The first 4 KiB of the file (all of it, if it is shorter)."""
        if self._head is None:
            self._look()
        return self._head or b""

    @property
    def size(self) -> int:
        """The file's size in bytes."""
        return self.seen[self.path][2] if self.path in self.seen else self.identity[2]

    @property
    def identity(self) -> Identity:
        """The identity of the file when it was first opened."""
        if self.path not in self.seen:
            self._look()
        return self.seen[self.path]

    def extent(self, offset: int, nbytes: int, swap: int = 1) -> Extent:
        """Return a stretch of this file as an extent that is refused once the file changed.

        `offset` and `nbytes` are bytes; `swap` is the width of big-endian numbers, else 1.

        >>> Source("grid.ra").extent(64, 48).offset
        64

        Raises what `read_at` does, if the file was not looked at before.
        """
        return Extent(self.path, self.base + offset, nbytes, swap, self.identity)

    def _look(self) -> None:
        """Fill `head` and `identity` with one open, one fstat and one read; keep the file open."""
        descriptor = self._open()
        try:
            self._head = _pread(descriptor, min(HEAD_BYTES, self.seen[self.path][2]), 0)
        except OSError as error:
            raise read_failed(self.path, error) from error
        finally:
            self._keep(descriptor)

    def _open(self) -> Handle:
        """Open the file anew; it must be the one that was first opened."""
        file, identity = opened(self.path, self.seen.get(self.path))
        self.seen.setdefault(self.path, identity)
        return file

    def _keep(self, file: Handle) -> None:
        """Keep a file open for `read_at`; close it if one is open, or too many sources have one."""
        if self._file == -1 and len(_held) < HELD_AT_MOST:
            _held.add(file)
            self._file = file
        else:
            close_file(file)

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Return up to `nbytes` bytes from `offset`: fewer only where the file ends.

        >>> Source("grid.ra").read_at(108, 8).hex()
        '0b000000'

        Raises `ReadFailed`, or `Changed` if the file was changed since it was first opened.
        """
        head = self.head
        if offset + nbytes <= len(head):
            return head[offset : offset + nbytes]
        wanted = min(nbytes, max(0, self.size - offset))
        descriptor = self._file
        try:
            if descriptor == -1:
                descriptor = self._open()
            return _pread(descriptor, wanted, offset)
        except OSError as error:
            raise read_failed(self.path, error) from error
        finally:
            if descriptor not in (-1, self._file):
                self._keep(descriptor)

    def read_exact(self, offset: int, nbytes: int, what: str) -> bytes:
        """Return exactly `nbytes` bytes from `offset`.

        Raises what `read_at` does, and `Corrupt`, which names `what`, if the file ends before.

        >>> Source("grid.ra").read_exact(108, 8, "the last row")
        Traceback (most recent call last):
        raconvert.errors.Corrupt: 'grid.ra': file ends inside the last row, at byte 108...
        """
        if nbytes > self.size - offset:
            raise Corrupt(
                f"file ends inside {what}",
                path=self.path,
                where=f"byte {offset}",
                expected=f"{nbytes} bytes",
                got=f"{max(0, self.size - offset)}",
            )
        data = self.read_at(offset, nbytes)
        if len(data) < nbytes:
            raise changed(self.path, shorter=True)
        return data

    def open(self) -> FileIO:
        """Open the file, unbuffered; the caller closes it. Raises what `read_at` does."""
        file = self._open()
        if isinstance(file, int):
            return io.FileIO(file, "rb", closefd=True)
        from raconvert.files.remote.source import RemoteReader

        return RemoteReader(file)  # type: ignore[return-value] # it has what is used of a FileIO

    def close(self) -> None:
        """Close the descriptor; a later read reopens the file and checks its identity.

        Raises nothing.
        """
        file, self._file = self._file, -1
        if file != -1:
            _held.discard(file)
            close_file(file)

    def __del__(
        self, held: set[Handle] = _held, close: Callable[[Handle], None] = close_file
    ) -> None:  # bound here: at the end of the interpreter modules are empty
        if self._file != -1:
            held.discard(self._file)
            close(self._file)


def path_of(source: Readable, stack: ExitStack) -> str:
    """Return the path under which a source can be read while `stack` is open."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    from raconvert.files.streams import kept

    return stack.enter_context(kept(source))


def _pread(descriptor: Handle, nbytes: int, offset: int) -> bytes:
    """Return `nbytes` bytes from `offset`, looping over short reads; fewer only at the end."""
    if not isinstance(descriptor, int):
        return descriptor.read(nbytes, offset)
    if not hasattr(os, "pread"):  # Windows: one reader at a time
        os.lseek(descriptor, offset, os.SEEK_SET)
        return read_up_to(io.FileIO(descriptor, "rb", closefd=False), nbytes)
    data = os.pread(descriptor, nbytes, offset)
    while len(data) < nbytes and (
        more := os.pread(descriptor, nbytes - len(data), offset + len(data))
    ):
        data += more
    return data


def read_up_to(file: FileIO, nbytes: int) -> bytes:
    """Return `nbytes` bytes, looping over short reads; fewer only at the end of the file."""
    data = file.read(nbytes) or b""
    while len(data) < nbytes:
        more = file.read(nbytes - len(data))
        if not more:
            break
        data += more
    return data


def identity_of(status: os.stat_result) -> Identity:
    """Return the identity of a file: device, inode, size, time of change."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def refuse_changed(seen: Mapping[str, Identity]) -> None:
    """Raise `Changed` if a file was changed or replaced since it had its identity in `seen`."""
    for path, known in seen.items():
        if is_remote(path):  # every range was read from one version
            continue
        try:
            now = identity_of(os.stat(path))
        except OSError:
            now = None
        if now != known:
            raise changed(path)


def read_failed(path: str, error: Exception) -> RaconvertError:
    """Return the `ReadFailed` for an error of the system; an error of ours stays."""
    if isinstance(error, RaconvertError):
        return error
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    kind = NotFound if isinstance(error, FileNotFoundError) else ReadFailed
    from raconvert.files.paths import did_you_mean_file

    failed = kind(f"cannot be read: {reason}{did_you_mean_file(path, error)}", path=path)
    failed.errno = getattr(error, "errno", None)
    return failed


def open_file(path: str) -> tuple[int, os.stat_result]:
    """Open a regular file for reading; return its descriptor and status.

    Raises `Unsafe` for anything else than a regular file, `ReadFailed` if the system refuses.
    """
    try:
        descriptor = os.open(path, OPEN_FLAGS)
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


def opened(path: str, known: Identity | None = None) -> tuple[Handle, Identity]:
    """Open a file, local or at a URL; return it with its identity.

    Raises `Changed` if that is not `known`, and what `open_file` raises.
    """
    if is_remote(path):
        from raconvert.files.remote.source import RemoteFile

        file = RemoteFile(path, known)
        return file, file.identity
    return _opened_here(path, known)


def open_regular(path: str, known: Identity | None = None) -> int:
    """Open a regular file; return its descriptor. Raises what `opened` raises."""
    return _opened_here(path, known)[0]


def _opened_here(path: str, known: Identity | None) -> tuple[int, Identity]:
    """Open a local file as `opened` does."""
    descriptor, status = open_file(path)
    identity = identity_of(status)
    if known is not None and identity != known:
        os.close(descriptor)
        raise changed(path, shorter=identity[2] < known[2])
    return descriptor, identity


def check_unchanged(file: Handle, path: str, known: Identity | None) -> None:
    """Raise `Changed` if an open file has not the identity `known` any more."""
    if known is not None and isinstance(file, int) and identity_of(os.fstat(file)) != known:
        raise changed(path)
