"""`Source`: one input file as importers see it, opened only if it is a regular file.

The first 4 KiB (`head`), the size and `read_at` are what a sniffer needs; `open` gives the whole.
A source is opened once and stays open until it is closed; whatever is opened again by its name is
compared (device, inode, size, time of change) and refused when it is not the same file any more.
"""

from __future__ import annotations

import io
import os
from functools import cache

from raconvert.errors import Corrupt
from raconvert.files.extent import Checksum, Extent
from raconvert.files.references import resolve
from raconvert.files.regular import changed, identity_of, open_file, read_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from io import FileIO
    from typing import Any

    from raconvert.files.regular import Identity

HEAD_BYTES = 4096  # enough for every magic and for most headers, in one page
DEFAULT_MAX_MEMORY = 1 << 30  # 1 GiB, the default of --max-memory
CGROUP_LIMIT = "/sys/fs/cgroup/memory.max"  # of a container, on Linux
HELD_AT_MOST = 64  # descriptors at once: systems allow 256 to 1024, and stacks have many files
_held: set[int] = set()  # the descriptors of sources that are open


class Source:
    """A local file to read: `path`, `name` for messages, and bounded access to its bytes.

    `max_memory` is the number of bytes that decoding may hold at once; `trust_external` allows
    the file to name others outside its own folder; `stand_ins` maps the real path of a file that
    it names to another that is read in its place (what was written and is not yet renamed). Both
    are for `raconvert.files.references`, which adds to `used` the path of every file that is read
    besides. `place` is where the file will be, if it has not its name yet: there `beside` looks for
    partners. `seen` maps the path of every file that was opened to what it was (`Identity`).

    >>> source = Source("grid.ra")
    >>> source.name, source.stem, source.size, source.head[:8]
    ('grid.ra', 'grid', 112, b'rawarray')
    """

    __slots__ = (
        "_file", "_head", "base", "max_memory", "path", "place", "seen", "stand_ins",
        "trust_external", "used",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        *,
        max_memory: int = DEFAULT_MAX_MEMORY,
        trust_external: bool = False,
        stand_ins: dict[str, str] | None = None,
        place: str | None = None,
    ) -> None:
        self._file = -1
        self.place: str = place or os.fspath(path)
        self.path: str = os.fspath(path)
        self.max_memory: int = max_memory
        self.trust_external: bool = trust_external
        self.stand_ins: dict[str, str] = stand_ins or {}
        self.used: set[str] = set()
        self.seen: dict[str, Identity] = {}
        self.base: int = 0  # where byte 0 is in the file at `path`
        self._head: bytes | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return os.path.basename(self.path)

    @property
    def stem(self) -> str:
        """The last part of the path without its suffix: the natural name of a single array."""
        return os.path.splitext(self.name)[0]

    def beside(self, suffix: str, what: str, *, appended: bool = False) -> Source:
        """The partner of this file: of the same name but for the suffix, in the same folder.

        `appended`: the suffix follows the whole name. `what` is in messages what the file is:
        "the header". Raises what `raconvert.files.references.resolve` raises.
        """
        name = os.path.basename(self.place)
        own = name if appended else os.path.splitext(name)[0]
        return self.named(resolve(self, own + suffix, what))

    def named(self, path: str) -> Source:
        """Return a file that this one names: under the same rules, with the same `used`."""
        other = Source(
            path,
            max_memory=self.max_memory,
            trust_external=self.trust_external,
            stand_ins=self.stand_ins,
        )
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
        return self.identity[2]

    @property
    def identity(self) -> Identity:
        """What the file was when it was first opened."""
        if self.path not in self.seen:
            self._look()
        return self.seen[self.path]

    def extent(self, offset: int, nbytes: int, swap: int = 1) -> Extent:
        """Return a stretch of this file as an extent that is refused once the file changed.

        `offset` and `nbytes` are bytes; `swap` is the width of big-endian numbers, else 1.

        >>> Source("grid.ra").extent(64, 48).offset
        64
        """
        return Extent(self.path, self.base + offset, nbytes, swap, self.identity)

    def _look(self) -> None:
        """Fill `head` and `identity` with one open, one fstat and one read; keep the file open."""
        descriptor = self._open()
        try:
            self._head = _pread(descriptor, HEAD_BYTES, 0)
        except OSError as error:
            raise read_failed(self.path, error) from error
        finally:
            self._keep(descriptor)

    def _open(self) -> int:
        """Return a new descriptor of the file, which must be the one that was first opened."""
        descriptor, status = open_file(self.path)
        known = self.seen.get(self.path)
        if known is None:
            self.seen[self.path] = identity_of(status)
        elif known != identity_of(status):
            os.close(descriptor)
            raise changed(self.path, shorter=status.st_size < known[2])
        return descriptor

    def _keep(self, descriptor: int) -> None:
        """Keep a descriptor for `read_at`, unless there is one, or too many sources keep theirs."""
        if self._file < 0 and len(_held) < HELD_AT_MOST:
            _held.add(descriptor)
            self._file = descriptor
        else:
            os.close(descriptor)

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Return up to `nbytes` bytes from `offset`: fewer only where the file ends.

        >>> Source("grid.ra").read_at(108, 8).hex()
        '0b000000'

        Raises `ReadFailed`, or `Changed` if the file is not what it was when it was first opened.
        """
        head = self.head
        if offset + nbytes <= len(head):
            return head[offset : offset + nbytes]
        wanted = min(nbytes, max(0, self.size - offset))
        descriptor = self._file
        try:
            if descriptor < 0:
                descriptor = self._open()
            return _pread(descriptor, wanted, offset)
        except OSError as error:
            raise read_failed(self.path, error) from error
        finally:
            if descriptor not in (-1, self._file):
                self._keep(descriptor)

    def read_exact(self, offset: int, nbytes: int, what: str) -> bytes:
        """Return exactly `nbytes` bytes from `offset`; `Corrupt` names `what` if the file ends.

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
        """Open the file for reading, unbuffered; the caller closes it."""
        return io.FileIO(self._open(), "rb", closefd=True)

    def close(self) -> None:
        """Let go of the file; it can still be read, if it is then the same."""
        descriptor, self._file = self._file, -1
        if descriptor >= 0:
            _held.discard(descriptor)
            os.close(descriptor)

    def __del__(
        self, held: set[int] = _held, close: Callable[[int], None] = os.close
    ) -> None:  # bound here: at the end of the interpreter modules are empty
        if self._file >= 0:
            held.discard(self._file)
            close(self._file)


class Window(Source):
    """A stretch of a file seen as a file of its own: a stored member of an archive.

    `path` is the archive's, so that data can be copied and mapped out of it; `name` the member's.
    """

    __slots__ = ("_crc", "_name", "_size", "_whole")

    def __init__(
        self, whole: Source, name: str, base: int, size: int, crc: int | None = None
    ) -> None:
        super().__init__(whole.path, max_memory=whole.max_memory)
        self.seen: dict[str, Identity] = whole.seen
        self.used: set[str] = whole.used
        self._whole = whole
        self._name = name
        self._size = size
        self._crc = crc  # of all its bytes
        self.base = base

    def extent(self, offset: int, nbytes: int, swap: int = 1) -> Extent:
        """Return a stretch of the member, under its checksum if it has one."""
        found = super().extent(offset, nbytes, swap)
        if self._crc is not None:
            end, where = self.base + self._size, f"member '{self._name}'"
            found.checksum = Checksum(self.base, end, self._crc, where)
        return found

    @property
    def name(self) -> str:
        """The last part of the member's path."""
        return self._name.rsplit("/", 1)[-1]

    @property
    def size(self) -> int:
        """The member's size in bytes."""
        return self._size

    @property
    def identity(self) -> Identity:
        """What the archive was when it was first opened."""
        return self._whole.identity

    @property
    def head(self) -> bytes:
        """The first 4 KiB of the member."""
        if self._head is None:
            self._head = self._whole.read_at(self.base, min(HEAD_BYTES, self._size))
        return self._head

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Return up to `nbytes` bytes from `offset`: fewer only where the member ends."""
        return self._whole.read_at(self.base + offset, max(0, min(nbytes, self._size - offset)))

    def open(self) -> Any:
        """Open the member for reading, unbuffered; it ends where the member does."""
        return io.BufferedReader(_Part(self._whole.open(), self.base, self._size))


class _Part(io.RawIOBase):
    """The bytes of a window, as a file."""

    def __init__(self, file: FileIO, base: int, size: int) -> None:
        self._file = file
        self._base = base
        self._size = size
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        self._place = max(0, start + offset)
        return self._place

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)[: max(0, self._size - self._place)]
        self._file.seek(self._base + self._place)
        got = self._file.readinto(view) or 0
        self._place += got
        return got

    def close(self) -> None:
        self._file.close()
        super().close()


@cache
def machine_memory() -> int:
    """Return the bytes of memory that this machine or container has; 2^62 where nobody says so."""
    known = [1 << 62]
    try:
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        with open(CGROUP_LIMIT, encoding="ascii") as file:
            known.append(int(file.read(32)))
    except (AttributeError, OSError, ValueError):  # Windows; no container, or one without a limit
        pass
    return min(number for number in known if number > 0)


def _pread(descriptor: int, nbytes: int, offset: int) -> bytes:
    """Return `nbytes` bytes from `offset`, looping over short reads; fewer only at the end."""
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
