"""The directories of a TIFF file, as tifffile finds them, within bounds."""

from __future__ import annotations

import io
import logging
import re
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING

import tifffile

from raconvert.errors import Corrupt

from ..reader import guarded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Source

READ_TIMES, LEAST_BUDGET = 8, 1 << 20  # how often the bytes of the file may be read for its tags
WHAT = "the structure of the TIFF file"


class _File(io.BufferedReader):
    """A file of which nothing is asked that it does not have, whatever its tags announce.

    Directories that overlap, or share large values, would be read again and again: there is a
    budget for all that is read of them, in proportion to the file.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source.open())
        self._path, self._size = source.path, source.size
        self._left = READ_TIMES * source.size + LEAST_BUDGET

    def read(self, nbytes: int | None = -1) -> bytes:
        left = max(0, self._size - self.tell())
        nbytes = left if nbytes is None or nbytes < 0 else min(nbytes, left)
        self._left -= nbytes
        if self._left < 0:
            raise Corrupt("its directories overlap, or share their values", path=self._path)
        return super().read(nbytes)

    def readinto(self, buffer: Any) -> int:
        data = self.read(memoryview(buffer).nbytes)
        memoryview(buffer).cast("B")[: len(data)] = data
        return len(data)


class _Errors(logging.Handler):
    """What tifffile logs as an error in this thread; it goes on with a guess, and we do not."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.thread, self.found = get_ident(), list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        # Readers skip tags of an unknown type (section 2).
        if record.thread == self.thread and "invalid data type" not in text:
            text = re.sub(r"<tifffile\.TiffTag (\d+) @(\d+)>", r"tag \1 at byte \2:", text)
            self.found.append(re.sub(r"<[^>]*>|raised|TiffFileError|[()']", "", text).strip())


@contextmanager
def opened(source: Source) -> Iterator[Any]:
    """The file as tifffile has it; what that only logs as an error is `Corrupt` here."""
    errors, log = _Errors(), logging.getLogger("tifffile")
    log.addHandler(errors)
    before, log.propagate = log.propagate, False
    try:
        with _File(source) as file, guarded(source.path, WHAT):
            yield tifffile.TiffFile(file, name="image", _multifile=False)
    except Corrupt as error:
        errors.found.append(error.what)
        if errors.found[0] == error.what:
            raise
    finally:
        log.propagate = before
        log.removeHandler(errors)
    if errors.found:
        raise Corrupt(f"{WHAT} is damaged ({errors.found[0]})", path=source.path)


def chain(file: Any, path: str) -> Iterator[Any]:
    """Tifffile's page of every directory; `Corrupt` if they form a loop."""
    seen: set[int] = set()
    while True:
        try:
            page = file.pages[len(seen)]
        except IndexError:
            return
        if page.offset in seen:
            raise Corrupt("directories form a loop", path=path, where=f"byte {page.offset}")
        seen.add(page.offset)
        yield page
