"""Sources that are not files with a name: bytes, open files, the standard input.

Readers go to and fro in a file, so what comes as a stream is kept in a temporary file until its
arrays are closed; a file that is open from its beginning, and has a name, is read where it is.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager

from raconvert.errors import RaconvertError, ReadFailed, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any


_NAMELESS = "data"  # the name of a stream without one, and of its array
_PIECE = 1 << 20
_NAME_BYTES = 200  # bytes of the name of a temporary file; systems take 255


def is_given(source: object) -> bool:
    """True for bytes and for open files, which are given without a path."""
    return isinstance(source, (bytes, bytearray, memoryview)) or (
        hasattr(source, "read") and not isinstance(source, os.PathLike)
    )


class Kept:
    """A path under which the content of a source can be read, until this is closed.

    `shown` is the name of the source in messages. Raises what `kept` raises.
    """

    def __init__(self, source: Any) -> None:
        self.path: str = _path_of(source)
        self.shown: str = shown(source)
        self._folder: Any = None
        if self.path:
            return
        import tempfile

        # If nobody closes it, the folder is removed at the end of the process.
        self._folder = tempfile.TemporaryDirectory(prefix="raconvert-")
        self.path = os.path.join(self._folder.name, _file_name(self.shown))
        try:
            with open(self.path, "xb") as file:
                _fill(file, source, self.shown)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove the temporary file."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def rename(self, error: RaconvertError) -> None:
        """Let an error name the source, and not the temporary file."""
        if error.path is not None and self._folder is not None:
            error.path = error.path.replace(self.path, self.shown)
        if error.remedy is not None and self._folder is not None:
            error.remedy = error.remedy.replace(self.path, "FILE")


@contextmanager
def kept(source: Any) -> Iterator[str]:
    """Give a path under which the content of a source can be read inside a ``with`` block.

    Raises `ReadFailed` for a stream that cannot be read, `UsageError` for one of text.
    """
    content = Kept(source)
    try:
        yield content.path
    except RaconvertError as error:
        content.rename(error)
        raise
    finally:
        content.close()


def standard_input() -> Any:
    """Return the standard input as a file of bytes; raises `UsageError` for a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            "the standard input is a terminal", remedy="send it a file: raconvert - -o DST < FILE"
        )
    return sys.stdin.buffer


def _path_of(source: Any) -> str:
    """Return the path of a local file that is open at its beginning; empty for any other source."""
    name = getattr(source, "name", None)
    if not isinstance(name, str) or not hasattr(source, "fileno"):
        return ""
    try:
        same_file = os.path.samestat(os.fstat(source.fileno()), os.stat(name))
        return name if same_file and source.tell() == 0 else ""
    except (OSError, ValueError):
        return ""


def shown(source: Any) -> str:
    """Return the name of a source for messages."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    name = getattr(source, "name", None)
    if isinstance(name, str):
        return name.strip("<>")
    return _NAMELESS


def _file_name(shown: str) -> str:
    """Return the name of the temporary file for a source: its own name, if a file can have that.

    It is cut on the left if it is too long, so that the suffix stays.
    """
    name = os.path.basename(shown)
    try:
        raw = os.fsencode(name)
    except UnicodeEncodeError:
        return _NAMELESS
    if name in ("", os.curdir, os.pardir) or "\0" in name:
        return _NAMELESS
    return name if len(raw) <= _NAME_BYTES else raw[-_NAME_BYTES:].decode(errors="ignore")


def _fill(file: IO[bytes], source: Any, shown: str) -> None:
    """Write the content of a source, named `shown` in messages, into a file."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        file.write(source)
        return
    try:
        while piece := source.read(_PIECE):
            if not isinstance(piece, (bytes, bytearray, memoryview)):
                raise UsageError(
                    "is open as text", path=shown, expected="a file that is open for bytes ('rb')"
                )
            file.write(piece)
    except OSError as error:
        if isinstance(error, RaconvertError):
            raise
        raise ReadFailed(f"cannot be read: {error.strerror or error}", path=shown) from error


# Readable files over bytes that can be read from any offset: the position of such a file --------


class Positioned(io.RawIOBase):
    """Base of files of `nbytes` bytes with a position; a subclass has `fill`, and `close`."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes: int = nbytes
        self._position = 0

    def fill(self, memory: memoryview, offset: int) -> int:
        """Read from byte `offset` into memory, by one read; return the number of bytes."""
        raise NotImplementedError

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.nbytes}[whence]
        self._position = max(0, start + offset)
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer by one read, and move the position by the bytes read."""
        count = self.fill(memoryview(buffer).cast("B"), self._position)
        self._position += count
        return count
