"""Work that two threads share: each takes the next piece as soon as it is done with one.

For copies between memory and memory, which one processor cannot do as fast as two. Where there is
one processor, or no thread to be had, this thread does all.
"""

from __future__ import annotations

import os
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def shared(
    pieces: Iterator[int],
    hand: Callable[[], Callable[[int], int]],
    progress: Callable[[int], object],
) -> None:
    """Do all pieces; `progress` is called here with the bytes of pieces that are done.

    `hand` gives each thread what does a piece of work and returns its bytes. What fails in either
    is raised here, when both have ended; so is an interruption.
    """
    from threading import Lock, Thread

    lock = Lock()
    done: list[int] = []  # bytes of pieces, by the other one
    failed: list[BaseException] = []
    stopped = False

    def take() -> int | None:
        with lock:
            return None if stopped or failed else next(pieces, None)

    def help_out() -> None:
        try:
            work = hand()
            while (piece := take()) is not None:
                done.append(work(piece))
        except BaseException as error:  # noqa: BLE001 - raised by the thread that asked
            failed.append(error)

    other = Thread(target=help_out, daemon=True)
    with suppress(RuntimeError):  # as many as the system allows
        other.start()
    try:
        work = hand()
        while (piece := take()) is not None:
            progress(work(piece) + _taken(done))
    finally:
        stopped = True
        if other.ident is not None:
            other.join()
    if failed:
        raise failed[0]
    if left := _taken(done):
        progress(left)


def _taken(done: list[int]) -> int:
    total = 0
    while done:
        total += done.pop()
    return total


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
