"""Pieces that copies of this process make in shared memory while those before them are written.

Worth it where most of the work is done under the interpreter lock, as for many small files.
"""

from __future__ import annotations

import mmap
from collections import deque

import numpy as np

from raconvert.workers.worker import Worker, answering, death, end, ready, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from raconvert.workers.worker import Serve

    Buffer = np.ndarray[Any, np.dtype[np.uint8]]


_AT_ONCE = 2  # pieces that a copy has at a time: one at work, one waiting


def places(jobs: int) -> int:
    """Return the number of pieces at once in the memory of `jobs` copies."""
    return jobs * _AT_ONCE + 1


def made(
    make: Callable[[int, Buffer], Any],
    count: int,
    nbytes: int,
    jobs: int,
    where: Callable[[int], str],
) -> Iterator[tuple[Buffer, Any]]:
    """Yield pieces 0 to `count` - 1 in order: memory that ``make(number, memory)`` has filled.

    With each comes what `make` has returned, as it comes out of JSON. A piece has `nbytes` of
    memory, and is valid until the next one is asked for. What `make` raises is raised in the place
    of its piece; `where(number)` says for messages what a piece is made from.
    """
    copies = _Copies(make, nbytes)
    try:
        copies.start(min(jobs, count))
        yield from copies.pieces(count, where)
    finally:
        copies.end()


def named(paths: list[str]) -> str:
    """The files of a piece, for messages."""
    return paths[0] if len(paths) == 1 else f"{paths[0]}' to '{paths[-1]}"


class _Copies:
    """The copies, and the memory that they share."""

    def __init__(self, make: Callable[[int, Buffer], Any], nbytes: int) -> None:
        self._make = make
        self._nbytes = nbytes
        self._buffers: list[Buffer] = []
        self._free: list[int] = []
        # Slot of memory and answer, by number of the piece.
        self._answers: dict[int, tuple[int, bytes]] = {}
        self._next = 0
        self._copies: list[_Copy] = []

    def start(self, jobs: int) -> None:
        """Make the memory, and the copies."""
        nbytes, count = self._nbytes, places(jobs)
        memory = mmap.mmap(-1, count * nbytes)  # lives as long as the buffers do
        self._buffers = [
            np.frombuffer(memory, np.uint8, nbytes, at * nbytes) for at in range(count)
        ]
        self._free = list(range(count))
        for _ in range(jobs):
            self._copies.append(_Copy(answering(self._piece)))

    def _piece(self, task: tuple[int, int]) -> Any:
        """Make a piece, in a copy."""
        number, slot = task
        return self._make(number, self._buffers[slot])

    def pieces(self, count: int, where: Callable[[int], str]) -> Iterator[tuple[Buffer, Any]]:
        """Yield the memory and the value of each piece, in order; `where` names its files."""
        for number in range(count):
            self._hand_out(count)
            while number not in self._answers:
                self._listen(where)
                self._hand_out(count)
            slot, line = self._answers.pop(number)
            yield self._buffers[slot], value_of(line)
            self._free.append(slot)

    def _hand_out(self, count: int) -> None:
        while self._free and self._next < count:
            copy = min(self._copies, key=lambda copy: len(copy.tasks))
            if len(copy.tasks) >= _AT_ONCE:
                return
            task = self._next, self._free.pop()
            copy.tasks.append(task)
            copy.send(task)
            self._next += 1

    def _listen(self, where: Callable[[int], str]) -> None:
        for copy in ready(self._copies):
            lines = copy.receive()
            for line in lines:
                number, slot = copy.tasks.popleft()
                self._answers[number] = slot, line
            if not lines:
                end([copy])
                raise death(where(copy.tasks[0][0]), copy.how)

    def end(self) -> None:
        """End the copies; their current pieces are dropped."""
        end(self._copies)


class _Copy(Worker):
    """A copy of this process that makes pieces."""

    def __init__(self, serve: Serve) -> None:
        self.tasks: deque[tuple[int, int]] = deque()  # number and slot, in order of the answers
        super().__init__(serve)
