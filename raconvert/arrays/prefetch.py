"""Pieces that a thread makes while the ones before them are written.

Worth it where both release the interpreter lock for milliseconds: inflating, moving elements,
writing. A conversion then takes as long as the longer of the two, not as both.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any


def ahead(pieces: Generator[Any, None, None], alive: int) -> Iterator[Any]:
    """Yield the pieces of a generator that runs in a thread.

    At most `alive` (2 or more) pieces are there at once: the one in use, those that wait, and the
    one being made. So the generator may fill as many buffers in turn; a piece is valid until the
    next one is asked for. Errors of the generator are raised here, and it is closed, and the
    thread ended, before this generator ends.
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
        end = None  # its traceback leads to this frame: they would keep each other

    thread = Thread(target=work, name="raconvert-ahead", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no more threads are to be had
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
