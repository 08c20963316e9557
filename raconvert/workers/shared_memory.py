"""Pieces that copies of this process make in shared memory while those before them are written.

Worth it where most of the work is done under the interpreter lock, as for many small files.
"""

from __future__ import annotations

import mmap

import numpy as np

from raconvert.workers.worker import Worker, answering, death, end, ready, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Buffer = np.ndarray[Any, np.dtype[np.uint8]]


_AT_ONCE = 2  # pieces that a copy has at a time: one at work, one waiting


def slot_count(jobs: int) -> int:
    """Return the number of pieces that have memory at once, if `jobs` copies work."""
    return jobs * _AT_ONCE + 1


def pieces(
    make: Callable[[int, Buffer], Any],
    count: int,
    nbytes: int,
    jobs: int,
    files_of: Callable[[int], str],
) -> Iterator[tuple[Buffer, Any]]:
    """Yield pieces 0 to `count` - 1 in order: memory that ``make(number, memory)`` has filled.

    With each comes what `make` has returned, as it comes out of JSON. A piece has `nbytes` of
    memory, and is valid until the next one is asked for. What `make` raises for a piece is raised
    when it is that piece's turn; `files_of(number)` names for messages the files of a piece.
    """
    jobs = min(jobs, count)
    slots = range(slot_count(jobs))
    memory = mmap.mmap(-1, len(slots) * nbytes)  # lives as long as the buffers do
    buffers = [np.frombuffer(memory, np.uint8, nbytes, slot * nbytes) for slot in slots]
    serve = answering(lambda task: make(task[0], buffers[task[1]]))  # number and slot
    free = [*slots]
    numbers = iter(range(count))
    arrived: dict[int, tuple[int, bytes]] = {}  # slot and answer, by the number of the piece
    copies: list[Worker] = []
    try:
        copies += [Worker(serve) for _ in range(jobs)]
        for number in range(count):
            _hand_out(copies, numbers, free)
            while number not in arrived:
                _listen(copies, arrived, files_of)
                _hand_out(copies, numbers, free)
            slot, line = arrived.pop(number)
            yield buffers[slot], value_of(line)
            free.append(slot)
    finally:
        end(copies)


def _hand_out(copies: list[Worker], numbers: Iterator[int], free: list[int]) -> None:
    """Give pieces to the copies that have the fewest, as long as there is free memory."""
    while free:
        copy = min(copies, key=lambda copy: len(copy.asked))
        number = next(numbers, None) if len(copy.asked) < _AT_ONCE else None
        if number is None:
            return
        copy.asked.append((number, free.pop()))
        copy.send(copy.asked[-1])


def _listen(
    copies: list[Worker], arrived: dict[int, tuple[int, bytes]], files_of: Callable[[int], str]
) -> None:
    """Wait for answers, which come in the order in which a copy was asked."""
    for copy in ready(copies):
        lines = copy.receive()
        for line in lines:
            number, slot = copy.asked.popleft()
            arrived[number] = slot, line
        if not lines:
            end([copy])
            raise death(files_of(copy.asked[0][0]), copy.how)


def first_to_last(paths: list[str]) -> str:
    """Return the first and the last path of a piece, for messages."""
    return paths[0] if len(paths) == 1 else f"{paths[0]}' to '{paths[-1]}"
