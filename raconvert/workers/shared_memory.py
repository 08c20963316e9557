"""Pieces that copies of this process make in shared memory while those before them are written.

Worth it where most of the work is done under the interpreter lock, as for many small files.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import struct
import sys
from contextlib import suppress

import numpy as np

from raconvert.errors import RaconvertError
from raconvert.workers.processes import death, encoded, fork, how_ended, raised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Buffer = np.ndarray[Any, np.dtype[np.uint8]]


_TASK = struct.Struct("<QQ")  # the number of a piece, and the place in the memory for it
_AT_ONCE = 2  # pieces that a copy has been told of
_PIECE = 1 << 16


def places(jobs: int) -> int:
    """How many pieces there are at once in the memory of so many copies."""
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
        self._found: dict[int, tuple[int, dict[str, Any]]] = {}  # by number: place, what was said
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
        for stream in (sys.stdout, sys.stderr):  # else what is left in them would be written twice
            if stream is not None:
                stream.flush()
        for _ in range(jobs):
            self._copies.append(_Copy(self._make, self._buffers, self._copies))

    def pieces(self, count: int, where: Callable[[int], str]) -> Iterator[tuple[Buffer, Any]]:
        for number in range(count):
            self._hand_out(count)
            while number not in self._found:
                self._listen(where)
                self._hand_out(count)
            place, said = self._found.pop(number)
            if "error" in said:
                raise raised(said["error"])
            if "bug" in said:
                raise RuntimeError(f"in the process that reads the files:\n{said['bug']}")
            yield self._buffers[place], said["value"]
            self._free.append(place)

    def _hand_out(self, count: int) -> None:
        while self._free and self._next < count:
            copy = min(self._copies, key=lambda copy: len(copy.tasks))
            if len(copy.tasks) >= _AT_ONCE:
                return
            copy.give(self._next, self._free.pop())
            self._next += 1

    def _listen(self, where: Callable[[int], str]) -> None:
        ready, _, _ = select.select([copy.answers for copy in self._copies], [], [])
        for copy in self._copies:
            if copy.answers not in ready:
                continue
            for said in copy.hear():
                if said is None:
                    number, _ = copy.tasks[0]
                    raise death(where(number), how_ended(copy.wait()))
                number, place = copy.tasks.pop(0)
                self._found[number] = place, said

    def end(self) -> None:
        """End the copies; what they are at is given up."""
        for copy in self._copies:
            copy.let_go()
        for copy in self._copies:
            copy.wait()


class _Copy:
    """A copy of this process that makes pieces, each when it is told to."""

    def __init__(
        self, make: Callable[[int, Buffer], Any], buffers: list[Buffer], others: list[_Copy]
    ) -> None:
        asked, self._ask = os.pipe()
        self.answers, answer = os.pipe()
        self.tasks: list[tuple[int, int]] = []  # number and place, in the order of the answers
        self._heard = b""
        self._code: int | None = None
        self._child = fork()
        if self._child == 0:
            try:
                for end in (self._ask, self.answers, *(o._ask for o in others)):
                    os.close(end)
                _serve(make, buffers, asked, answer)
            finally:
                os._exit(0)
        os.close(asked)
        os.close(answer)

    def give(self, number: int, place: int) -> None:
        """Have it make a piece; if it has died meanwhile, `hear` says so."""
        self.tasks.append((number, place))
        with suppress(BrokenPipeError):
            os.write(self._ask, _TASK.pack(number, place))

    def hear(self) -> list[dict[str, Any] | None]:
        """Read its answers so far; the last is None if the process has ended."""
        piece = os.read(self.answers, _PIECE)
        if not piece:
            return [None]
        *lines, self._heard = (self._heard + piece).split(b"\n")
        return [json.loads(line) for line in lines]

    def let_go(self) -> None:
        """Have it end after the piece that it is at."""
        os.close(self._ask)
        os.close(self.answers)

    def wait(self) -> int:
        """Wait for its end; its exit code, or the negative number of its signal."""
        if self._code is None:
            try:
                self._code = os.waitstatus_to_exitcode(os.waitpid(self._child, 0)[1])
            except ChildProcessError:  # somebody else has waited for it
                self._code = 0
        return self._code


def _serve(
    make: Callable[[int, Buffer], Any], buffers: list[Buffer], asked: int, answer: int
) -> None:
    """Make pieces until nobody asks any more.

    An interruption from the terminal reaches all processes at once: the first one decides.
    """
    import gc
    import signal

    gc.freeze()  # memory that nobody writes to stays shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    while task := os.read(asked, _TASK.size):
        number, place = _TASK.unpack(task)
        said: dict[str, Any]
        try:
            said = {"value": make(number, buffers[place])}
        except (RaconvertError, OSError) as error:
            said = {"error": encoded(error)}
        except Exception:  # noqa: BLE001 - it is raised in the other process
            import traceback

            said = {"bug": traceback.format_exc()}
        left = memoryview(json.dumps(said).encode() + b"\n")
        with suppress(BrokenPipeError):  # nobody listens any more
            while left:
                left = left[os.write(answer, left) :]
