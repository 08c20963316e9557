"""Progress of a conversion, as its listener gets it."""

from __future__ import annotations

from time import monotonic

from raconvert.declared import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Progress(Record):
    """Progress of a conversion: the argument of the `progress` callback of `raconvert.convert`.

    file: the current source
    done: bytes of it that are written
    total: bytes of it in all
    count: sources that are finished
    files: sources in all
    seconds: time since the run began
    rate: bytes written per second, of all sources

    >>> seen = []
    >>> report = raconvert.convert("grid.ra", "watched.npy", progress=seen.append)
    >>> seen[-1].file, seen[-1].done, seen[-1].total, seen[-1].count
    ('grid.ra', 48, 48, 1)
    """

    file: str
    done: int
    total: int
    count: int  # type: ignore[assignment]
    files: int
    seconds: float
    rate: float


class Listener:
    """Turns bytes done, and bytes in all, of the current source into calls with a `Progress`."""

    def __init__(self, tell: Callable[[Progress], object]) -> None:
        self.tell = tell
        self._begin = monotonic()
        self._file, self._count, self._files = "", 0, 1
        self._before = self._done = 0  # bytes of earlier sources, and of the current one

    def begin(self, file: str, count: int = 0, files: int = 1) -> None:
        """Go on to the next source."""
        self._file, self._count, self._files = file, count, files
        self._before += self._done
        self._done = 0

    def __call__(self, done: int, total: int) -> None:
        """Call the listener: `done` of `total` bytes of the current source are written."""
        self._done = done
        seconds = monotonic() - self._begin
        rate = (self._before + done) / max(seconds, 1e-9)
        last = done == total and self._count + 1 == self._files
        count = self._files if last else self._count
        self.tell(Progress(self._file, done, total, count, self._files, seconds, rate))
