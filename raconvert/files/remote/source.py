"""An open remote file, used as a descriptor of a local one.

Small reads come from blocks that are kept, so that a header takes few requests and few bytes. Reads
that follow each other grow to ranges of 8 MiB, of which a thread fetches the next one while one is
used. Other large reads are one range each. So at most two ranges and the blocks are in memory.
"""

from __future__ import annotations

from threading import Lock, Thread

from raconvert.files.remote.objects_by_ranges import BLOCK_BYTES, Object, object_at
from raconvert.files.streams import Positioned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Identity = tuple[int, int, int, int]

LARGEST_RANGE = 8 << 20
# Bytes read in sequence before reading ahead starts; more than a header.
SEQUENTIAL_FROM = 256 << 10


class RemoteFile:
    """A file at a URL, open for reads at any offset, from any thread; it has no position.

    Raises `Changed` if its identity is not `known`, `ReadFailed` if it cannot be read.
    """

    __slots__ = (
        "__weakref__", "_end", "_lock", "_next", "_object", "_run", "_window", "ahead", "url",
    )  # fmt: skip

    def __init__(self, url: str, known: Identity | None = None) -> None:
        self.url: str = url
        self.ahead: bool = True  # True if a thread may fetch the next range early
        self._object: Object = object_at(url, known)
        self._lock = Lock()
        self._end = 0  # end of the last read
        self._run = 0  # bytes read in sequence
        self._window: tuple[int, bytes] = 0, self._object.first
        self._next: _Ahead | None = None

    @property
    def identity(self) -> Identity:
        """The identity of the file when it was first opened."""
        return self._object.identity

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self._object.facts.size

    @property
    def copied(self) -> bool:
        """True if the server gave the file as a whole only, and a temporary copy is read."""
        return self._object.whole is not None

    def read_into(self, memory: memoryview, offset: int) -> int:
        """Read from byte `offset` into memory, by one range at most; return the number of bytes.

        It is 0 at the end of the file. Raises `ReadFailed` and `Changed`.
        """
        wanted = min(len(memory), self.size - offset)
        if wanted <= 0:
            return 0
        with self._lock:
            run = self._run if offset == self._end else 0  # bytes just before, in order
            data = self._near(offset)
            if data is None and run and run + wanted >= SEQUENTIAL_FROM:
                data = self._forward(offset, max(run, wanted))
            elif data is None and wanted < BLOCK_BYTES:
                data = self._object.near(offset)
        if data is None:  # outside the lock, so that other threads go on
            data = self._object.fetch(offset, offset + min(wanted, LARGEST_RANGE))
        data = data[:wanted]
        memory[: len(data)] = data
        with self._lock:
            self._run, self._end = run + len(data), offset + len(data)
        return len(data)

    def read(self, nbytes: int, offset: int) -> bytes:
        """Return up to `nbytes` bytes from `offset`: fewer only where the file ends.

        Raises what `read_into` raises.
        """
        data = bytearray(max(0, min(nbytes, self.size - offset)))
        view = memoryview(data)
        done = 0
        while done < len(data):
            done += self.read_into(view[done:], offset + done)
        return bytes(data)

    def close(self) -> None:
        """Free the cached bytes. Raises nothing."""
        with self._lock:
            self._window = 0, self._object.first
            self._next = None

    def _near(self, offset: int) -> Any:
        """Return the cached bytes from an offset on, of the first or last range; None if absent."""
        for begin, data in ((0, self._object.first), self._window):
            if begin <= offset < begin + len(data):
                return memoryview(data)[offset - begin :]
        return None

    def _forward(self, offset: int, length: int) -> Any:
        """Return the next range of a file read front to back; a thread fetches the one behind."""
        if self._next is not None and self._next.begin == offset:
            data = self._next.result()
        else:
            data = self._object.fetch(offset, min(offset + min(length, LARGEST_RANGE), self.size))
        self._window = offset, data
        behind = offset + len(data)
        more = min(2 * len(data), LARGEST_RANGE, self.size - behind) if self.ahead else 0
        self._next = _Ahead(self._object, behind, more) if more > 0 else None
        return memoryview(data)


class _Ahead:
    """A range that a thread fetches."""

    def __init__(self, source: Object, begin: int, length: int) -> None:
        self.begin = begin
        self._source = source
        self._end = begin + length
        self._data = b""
        self._error: BaseException | None = None
        self._thread: Thread | None = Thread(target=self._work, name="raconvert-range", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the system allows no more threads
            self._thread = None

    def _work(self) -> None:
        try:
            self._data = self._source.fetch(self.begin, self._end)
        except BaseException as error:  # noqa: BLE001 - raised again where the bytes are used
            self._error = error

    def result(self) -> bytes:
        """Wait for the bytes."""
        if self._thread is None:
            return self._source.fetch(self.begin, self._end)
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._data


class RemoteReader(Positioned):
    """A remote file with a position, for code that reads files; `handle` is the file itself."""

    def __init__(self, handle: RemoteFile) -> None:
        super().__init__(handle.size)
        self.handle: RemoteFile = handle
        self.name: str = handle.url

    def fill(self, memory: memoryview, offset: int) -> int:
        """Read from byte `offset` into memory, by one range; return the number of bytes."""
        return self.handle.read_into(memory, offset)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self.handle.close()
        super().close()
