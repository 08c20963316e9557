"""`Source`: one input file as importers see it, opened only if it is a regular file.

The first 4 KiB (`head`), the size and `read_at` are what a sniffer needs; `open` gives the whole.
"""

from __future__ import annotations

import io
import os
from stat import S_ISDIR, S_ISREG

from raconvert.errors import Corrupt, ReadFailed, Unsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from typing import Any

HEAD_BYTES = 4096  # enough for every magic and for most headers, in one page
DEFAULT_MAX_MEMORY = 1 << 30  # 1 GiB, the default of --max-memory
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class Source:
    """A local file to read: `path`, `name` for messages, and bounded access to its bytes.

    `max_memory` is the number of bytes that decoding may hold at once; `trust_external` allows
    the file to name others outside its own folder; `stand_ins` maps the real path of a file that
    it names to another that is read in its place (what was written and is not yet renamed). Both
    are for `raconvert.external`, which adds to `used` the path of every file that is read besides.
    """

    __slots__ = (
        "_head", "_size", "base", "max_memory", "path", "stand_ins", "trust_external", "used"
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        *,
        max_memory: int = DEFAULT_MAX_MEMORY,
        trust_external: bool = False,
        stand_ins: dict[str, str] | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self.max_memory = max_memory
        self.trust_external = trust_external
        self.stand_ins = stand_ins or {}
        self.used: set[str] = set()
        self.base = 0  # where byte 0 is in the file at `path`
        self._head: bytes | None = None
        self._size = -1

    @property
    def name(self) -> str:
        """The last part of the path."""
        return os.path.basename(self.path)

    @property
    def stem(self) -> str:
        """The last part of the path without its suffix: the natural name of a single array."""
        return os.path.splitext(self.name)[0]

    def named(self, path: str) -> Source:
        """Return a file that this one names: under the same rules, with the same `used`."""
        other = Source(
            path,
            max_memory=self.max_memory,
            trust_external=self.trust_external,
            stand_ins=self.stand_ins,
        )
        other.used = self.used
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
        if self._size < 0:
            self._look()
        return self._size

    def _look(self) -> None:
        """Fill `head` and `size` with one open, one fstat and one read."""
        descriptor = open_regular(self.path)
        try:
            self._size = os.fstat(descriptor).st_size
            self._head = os.read(descriptor, HEAD_BYTES)
        except OSError as error:
            raise _read_failed(self.path, error) from error
        finally:
            os.close(descriptor)

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Return up to `nbytes` bytes from `offset`: fewer only where the file ends."""
        head = self.head
        if offset + nbytes <= len(head):
            return head[offset : offset + nbytes]
        try:
            with self.open() as file:
                file.seek(offset)
                return read_up_to(file, min(nbytes, max(0, self.size - offset)))
        except OSError as error:
            raise _read_failed(self.path, error) from error

    def read_exact(self, offset: int, nbytes: int, what: str) -> bytes:
        """Return exactly `nbytes` bytes from `offset`; `Corrupt` names `what` if the file ends."""
        if nbytes > self.size - offset:
            raise Corrupt(
                f"file ends inside {what}",
                path=self.path,
                where=f"byte {offset}",
                expected=f"{nbytes} bytes",
                got=f"{max(0, self.size - offset)}",
            )
        return self.read_at(offset, nbytes)

    def open(self) -> FileIO:
        """Open the file for reading, unbuffered; the caller closes it."""
        descriptor = open_regular(self.path)
        return io.FileIO(descriptor, "rb", closefd=True)


class Window(Source):
    """A stretch of a file seen as a file of its own: a stored member of an archive.

    `path` is the archive's, so that data can be copied and mapped out of it; `name` the member's.
    """

    __slots__ = ("_name",)

    def __init__(self, path: str, name: str, base: int, size: int, max_memory: int) -> None:
        super().__init__(path, max_memory=max_memory)
        self._name = name
        self._size = size
        self.base = base

    @property
    def name(self) -> str:
        """The last part of the member's path."""
        return self._name.rsplit("/", 1)[-1]

    @property
    def head(self) -> bytes:
        """The first 4 KiB of the member."""
        if self._head is None:
            self._head = self._read(0, min(HEAD_BYTES, self._size))
        return self._head

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Return up to `nbytes` bytes from `offset`: fewer only where the member ends."""
        return self._read(offset, max(0, min(nbytes, self._size - offset)))

    def _read(self, offset: int, nbytes: int) -> bytes:
        try:
            with Source.open(self) as file:
                file.seek(self.base + offset)
                return read_up_to(file, nbytes)
        except OSError as error:
            raise _read_failed(self.path, error) from error

    def open(self) -> Any:
        """Open the member for reading, unbuffered; it ends where the member does."""
        return io.BufferedReader(_Part(Source.open(self), self.base, self._size))


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


def open_regular(path: str) -> int:
    """Open a regular file for reading and return its descriptor.

    Pipes, devices, sockets and folders are refused before anything is read from them
    (`Unsafe`); `O_NONBLOCK` keeps the open itself from hanging on a pipe without a writer.
    """
    try:
        descriptor = os.open(path, _OPEN_FLAGS | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        raise _read_failed(path, error) from error
    mode = os.fstat(descriptor).st_mode
    if S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    kind = "a folder" if S_ISDIR(mode) else "a pipe, device or socket"
    raise Unsafe(f"{kind} is no regular file", path=path, remedy="copy its content to a file first")


def read_up_to(file: FileIO, nbytes: int) -> bytes:
    """Return `nbytes` bytes, looping over short reads; fewer only at the end of the file."""
    data = file.read(nbytes) or b""
    while len(data) < nbytes:
        more = file.read(nbytes - len(data))
        if not more:
            break
        data += more
    return data


def _read_failed(path: str, error: Exception) -> ReadFailed:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ReadFailed(f"cannot be read: {reason}", path=path)
