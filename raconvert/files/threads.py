"""Pieces that a thread makes while the ones before them are written.

Worth it where both release the interpreter lock for milliseconds: inflating, moving elements,
writing. A conversion then takes as long as the longer of the two, not as both.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from concurrent.futures import Future
    from typing import Any, Self


def ahead(pieces: Generator[Any, None, None], alive: int) -> Iterator[Any]:
    """Yield the pieces of a generator that runs in a thread.

    At most `alive` (2 or more) pieces exist at once: the one in use, those that wait, and the one
    being made. So the generator may fill as many buffers in turn; a piece is valid until the next
    one is asked for. Errors of the generator are raised here. When this generator ends, the other
    one is closed, and the thread has ended.
    """
    from queue import SimpleQueue
    from threading import Semaphore, Thread

    ready: SimpleQueue[Any] = SimpleQueue()
    room = Semaphore(alive)
    wanted = True

    def work() -> None:
        end: BaseException | None = None
        try:
            while room.acquire() and wanted:
                try:
                    ready.put((next(pieces), None))
                except StopIteration:
                    break
            pieces.close()
        except BaseException as error:  # noqa: BLE001 - raised again where the pieces are used
            end = error
        ready.put((None, end or StopIteration()))
        end = None  # breaks the cycle between its traceback and this frame

    thread = Thread(target=work, name="raconvert-ahead", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the system allows no more threads
        yield from pieces
        return
    piece = end = None
    try:
        while True:
            piece, end = ready.get()
            if end is not None:
                break
            yield piece
            piece = None
            room.release()
        if not isinstance(end, StopIteration):
            raise end
    finally:
        piece = end = None
        wanted = False
        room.release()  # it may wait for room; it ends with the piece that it is making
        thread.join()


# Work that two threads share: each takes the next piece as soon as it is done with one -----------
# For copies between memory and memory, which two processors do faster than one. If the system
# allows no further thread, this one does all.


def shared(
    pieces: Iterator[int],
    new_worker: Callable[[], Callable[[int], int]],
    progress: Callable[[int], object],
) -> None:
    """Do the work of all pieces; `progress` is called by this thread with the bytes done.

    `new_worker` returns, for each thread, a function that does one piece and returns its bytes. An
    error of either thread, or an interruption, is raised here when both have ended.
    """
    from threading import Lock, Thread

    lock = Lock()
    done: list[int] = []  # bytes of the pieces that the other thread has done
    failed: list[BaseException] = []
    stopped = False

    def take() -> int | None:
        with lock:
            return None if stopped or failed else next(pieces, None)

    def help_out() -> None:
        try:
            work = new_worker()
            while (piece := take()) is not None:
                done.append(work(piece))
        except BaseException as error:  # noqa: BLE001 - raised by the thread that asked
            failed.append(error)

    other = Thread(target=help_out, daemon=True)
    with suppress(RuntimeError):  # the system may allow fewer threads
        other.start()
    try:
        work = new_worker()
        while (piece := take()) is not None:
            progress(work(piece) + _drained(done))
    finally:
        stopped = True
        if other.ident is not None:
            other.join()
    if failed:
        raise failed[0]
    if left := _drained(done):
        progress(left)


def _drained(done: list[int]) -> int:
    """Empty the list, to which another thread may add, and return the sum of its numbers."""
    total = 0
    while done:
        total += done.pop()
    return total


# Tasks that a few threads carry out --------------------------------------------------------------


class Threads:
    """A few threads for tasks that release the interpreter lock, such as packing of chunks.

    A context manager: when it is left, tasks that have not begun are cancelled, and the others
    are waited for.
    """

    def __init__(self, most: int) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._pool = ThreadPoolExecutor(most)  # starts a thread when there is a task for it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def results(
        self, work: Callable[[Any], Any], tasks: Iterable[Any], waiting: int
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each task with ``work(task)``, in order; at most `waiting` are handed out at once.

        Raises the error of the first task that fails.
        """
        handed_out: deque[tuple[Any, Future[Any]]] = deque()
        for task in tasks:
            if len(handed_out) == waiting:
                first, future = handed_out.popleft()
                yield first, future.result()
            handed_out.append((task, self._pool.submit(work, task)))
        while handed_out:
            first, future = handed_out.popleft()
            yield first, future.result()

    def run(self, work: Callable[[Any], object], tasks: Iterable[Any], waiting: int) -> None:
        """Carry out all tasks; raises the error of the first one that fails."""
        for _ in self.results(work, tasks, waiting):
            pass


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
