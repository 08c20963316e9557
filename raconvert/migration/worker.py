"""A worker process of the pool: takes batches line by line, and answers with their outcomes.

Lines are JSON. To the worker goes ``[number, max_memory, deaths, since, units]``; from it comes
``{}`` when it is ready, ``{"within": [done, all]}`` now and then with the bytes of a large file,
``{"at": number}`` for each unit of a batch if the job is timed, and for each batch ``{"seconds": …,
"outcomes": …}``. It ends when its driver closes the pipe or dies, also in the middle of a batch, of
which it then removes the temporary files.
"""

from __future__ import annotations

import json
import os
from time import perf_counter

from raconvert.migration.records import Batch, Job, Unit, text_of
from raconvert.migration.work import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queue import SimpleQueue
    from typing import Any

_NOW_AND_THEN = 0.2  # seconds between two remarks on the file at hand
_BUFFER = 1 << 20
BEFORE = ',"outcomes":'  # what stands before them in an answer
_PATIENCE = 60  # seconds that a library gets to come back, once the driver is gone


def main(asked: int, answers: int) -> None:
    """Serve in a new process, whose first line is the job; never returns."""
    with os.fdopen(os.dup(asked), "rb", buffering=0) as first:  # nothing of what follows is read
        job = Job(*json.loads(_line(first)))
    end_after(job, asked, answers)


def end_after(job: Job, asked: int, answers: int) -> None:
    """Serve, and end this process; never returns."""
    code = 1
    try:
        _serve(job, _arriving(asked), answers)
    except (KeyboardInterrupt, BrokenPipeError):
        code = 0
    except BaseException:  # noqa: BLE001 - the driver knows it from the exit code
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _line(file: Any) -> bytes:
    """One line, read byte by byte."""
    found = bytearray()
    while (byte := file.read(1)) not in (b"\n", b""):
        found += byte
    return bytes(found)


def _arriving(asked: int) -> SimpleQueue[bytes]:
    """The lines of the driver as they arrive; when there are no more, this process is last to end.

    An interruption from the terminal reaches driver and workers at once: the driver decides.
    """
    import signal
    from queue import SimpleQueue
    from threading import Thread, main_thread

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: what follows is cleaning up
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, interrupt)
    lines: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        from time import sleep

        with open(asked, "rb", buffering=_BUFFER) as file:
            for line in file:
                lines.put(line)
        signal.pthread_kill(main_thread().ident or 0, signal.SIGTERM)  # wakes it up
        sleep(_PATIENCE)
        os._exit(1)

    Thread(target=listen, daemon=True).start()
    return lines


def _serve(job: Job, lines: SimpleQueue[bytes], answers: int) -> None:
    """Carry out batches as they arrive, with as much memory as is said with each."""
    workers: dict[int, Worker] = {}
    last = 0.0

    def within(done: int, total: int) -> None:
        nonlocal last
        now = perf_counter()
        if now - last > _NOW_AND_THEN:
            last = now
            _answer(answers, {"within": [done, total]})

    def at(number: int) -> None:
        _answer(answers, {"at": number})

    _answer(answers, {})
    while True:
        number, max_memory, deaths, since, units = json.loads(lines.get())
        worker = workers.get(max_memory)
        if worker is None:
            options = {**job.options, "max_memory": max_memory}
            listeners = (within, at) if job.timed else (within,)
            worker = workers[max_memory] = Worker(job._replace(options=options), *listeners)
        batch = Batch(number, [Unit(*unit) for unit in units], deaths, since)
        begin = perf_counter()
        outcomes = worker.carry_out(batch)
        seconds = perf_counter() - begin
        _tell(answers, f'{{"seconds":{seconds!r}{BEFORE}{text_of(outcomes)}}}')


def _answer(answers: int, values: dict[str, Any]) -> None:
    _tell(answers, json.dumps(values, separators=(",", ":")))


def _tell(answers: int, text: str) -> None:
    left = memoryview(text.encode() + b"\n")
    while left:
        left = left[os.write(answers, left) :]
