"""A process that works for this one: started, asked in lines of JSON, watched, and ended.

A worker is a copy of this process (`fork`), so that it knows all that this one knows, or a new one
(`spawn`). It takes lines and answers with lines. It ends when its input is closed or this process
dies, also in the middle of its work: it is interrupted, and removes its temporary files. Those of a
worker that died or was killed are removed by `clear`. Windows, where pipes cannot be waited for,
has no workers.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import suppress
from time import monotonic

from raconvert import errors
from raconvert.errors import Corrupt, RaconvertError, worded
from raconvert.files.paths import temporaries_of
from raconvert.workers.interrupts import Interrupter, raise_interruption

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from queue import SimpleQueue
    from subprocess import Popen
    from typing import Any, BinaryIO, NoReturn, TypeVar

    Tell = Callable[[str], None]
    Serve = Callable[..., None]  # of the requests, of `Tell` for the answers, and of more

    AnyWorker = TypeVar("AnyWorker", bound="Worker")


_PIPE = 1 << 20  # bytes: a pipe takes a whole batch, where the system has such
_PATIENCE = 2.0  # seconds that a worker gets to remove what it began, before it is killed
_DISK_PATIENCE = 10.0  # seconds that a killed one gets: a disk that does not answer may hold it
_LIBRARY_PATIENCE = 60  # seconds that a call of a library gets to return once the driver is gone
_PARTS = ("what", "path", "where", "expected", "got", "remedy")
_driver_ends: set[int] = set()  # of pipes: the workers close their copies of them


def can_fork() -> bool:
    """True if this process can be forked: it has one thread."""
    from threading import active_count

    return hasattr(os, "fork") and active_count() == 1


class Worker:
    """A process that does ``serve(requests, tell, *arguments)``.

    `requests` are the values that it is asked with, as they arrive; ``tell(text)`` answers with a
    line of JSON. `spawn`: as a new process, which imports `serve` by its name, and is given the
    arguments as JSON; else as a copy of this one.
    """

    answers: int  # can be waited for by `select`

    def __init__(self, serve: Serve, *arguments: Any, spawn: bool = False) -> None:
        asked, self._ask = _pipe()
        self.answers, answer = _pipe()
        _driver_ends.update((self._ask, self.answers))
        self.asked: deque[Any] = deque()  # requests without an answer, for those who send several
        self._code = 0
        self._received = bytearray()
        self._last = monotonic()
        self._process: Popen[bytes] | None = None
        try:
            if spawn:
                self._process = _spawned(asked, answer)
                self.pid: int = self._process.pid
                self.send([serve.__module__, serve.__qualname__, arguments])
            else:
                self.pid = _forked(serve, arguments, asked, answer)
        finally:
            os.close(asked)
            os.close(answer)

    def send(self, values: Any) -> None:
        """Send a request; if the process has died, `receive` returns no lines."""
        import json

        self.send_text(json.dumps(values, separators=(",", ":")))

    def send_text(self, text: str) -> None:
        """Send it a request that is JSON already."""
        with suppress(BrokenPipeError):
            _write_line(self._ask, text)

    def receive(self) -> list[bytes]:
        """Wait for the next lines of the process; empty if it has ended."""
        while piece := os.read(self.answers, _PIPE):
            self._received += piece
            if b"\n" in piece:
                self._last = monotonic()
                *lines, self._received = self._received.split(b"\n")
                return [bytes(line) for line in lines]
        return []

    @property
    def quiet(self) -> float:
        """The seconds since its last message."""
        return monotonic() - self._last

    @property
    def how(self) -> str:
        """The way it ended: an exit code or a signal."""
        import signal

        if self._code >= 0:
            return f"exit code {self._code}"
        known = {number.value: number.name for number in signal.Signals}
        return f"signal {known.get(-self._code, -self._code)}"

    def close(self) -> None:
        """Close its input, so that it exits."""
        if self._ask >= 0:
            _driver_ends.discard(self._ask)
            os.close(self._ask)
            self._ask = -1

    def has_ended(self, until: float) -> bool:
        """Wait for the end of the process, no longer than `until`; True if it has ended."""
        from select import select

        if self.answers < 0:
            return True
        while select([self.answers], [], [], max(0.0, until - monotonic()))[0]:
            if not os.read(self.answers, _PIPE):  # end of file: all its descriptors are closed
                self._wait()
                self._forget()
                return True
        return False

    def kill(self) -> None:
        """Kill the process; wait for its end, but not for ever."""
        import signal

        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if not self.has_ended(monotonic() + _DISK_PATIENCE):
            self._forget()

    def _wait(self) -> None:
        if self._process is not None:
            self._code = self._process.wait()
            return
        with suppress(ChildProcessError):  # other code has collected its exit code
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _forget(self) -> None:
        _driver_ends.discard(self.answers)
        os.close(self.answers)
        self.answers = -1


def end(workers: Iterable[AnyWorker]) -> list[AnyWorker]:
    """End workers, whatever they do; return those that had to be killed."""
    workers = list(workers)
    for worker in workers:
        worker.close()
    until = monotonic() + _PATIENCE
    late = [worker for worker in workers if not worker.has_ended(until)]
    for worker in late:
        worker.kill()
    return late


def ready(workers: Sequence[AnyWorker], seconds: float | None = None) -> list[AnyWorker]:
    """Wait, with a time limit, for workers that have sent something or ended; return them."""
    from select import select

    pipes = select([worker.answers for worker in workers], [], [], seconds)[0]
    return [worker for worker in workers if worker.answers in pipes]


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    with suppress(ImportError, OSError, AttributeError):
        import fcntl

        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, _PIPE)
    return ends


def _write_line(pipe: int, text: str) -> None:
    left = memoryview(text.encode() + b"\n")
    while left:
        left = left[os.write(pipe, left) :]


def _forked(serve: Serve, arguments: Sequence[Any], asked: int, answer: int) -> int:
    """Start a copy of this process; return its process ID."""
    import gc

    for stream in (sys.stdout, sys.stderr):  # otherwise buffered output would be written twice
        if stream is not None:
            stream.flush()
    child = fork()
    if child:
        return child
    try:
        gc.freeze()  # memory that nobody writes to stays shared
        for pipe in _driver_ends:
            os.close(pipe)
        _driver_ends.clear()
    finally:
        _work(serve, arguments, open(asked, "rb", buffering=_PIPE), answer)  # noqa: SIM115
    return 0


def fork() -> int:
    """Copy this process; return 0 in the copy, and its process ID here."""
    import warnings

    with warnings.catch_warnings():  # fork warns of BLAS's threads, which start again in the copy
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _spawned(asked: int, answer: int) -> Popen[bytes]:
    """Start a new process, which imports from where this one does."""
    import subprocess

    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        f"from raconvert.workers.worker import begin; begin({asked}, {answer})"
    )
    return subprocess.Popen(  # noqa: S603 - this Python
        [sys.executable, "-c", code], pass_fds=(asked, answer), stdin=subprocess.DEVNULL
    )


# In the worker -----------------------------------------------------------------------------------


def begin(asked: int, answer: int) -> NoReturn:
    """Serve in a new process; its first line names the function, and has the arguments."""
    import json
    from importlib import import_module

    requests = open(asked, "rb", buffering=_PIPE)  # noqa: SIM115
    module, name, arguments = json.loads(requests.readline())
    _work(getattr(import_module(module), name), arguments, requests, answer)


def _work(serve: Serve, arguments: Sequence[Any], requests: BinaryIO, answer: int) -> NoReturn:
    """Run `serve` until the requests end, then end this process."""
    import json

    try:
        lines = _arriving(requests)
        values = (json.loads(line) for line in iter(lines.get, b""))
        serve(values, lambda text: _write_line(answer, text), *arguments)
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(0)  # at once: an interruption that is dropped is raised again
    except BaseException:  # noqa: BLE001 - the driver sees the exit code
        import traceback

        traceback.print_exc()
    finally:
        os._exit(1)


def _arriving(requests: BinaryIO) -> SimpleQueue[bytes]:
    """Return the queue of the lines that arrive; when there are no more, this process ends.

    An interruption from the terminal reaches all processes at once: the first one decides.
    """
    import signal
    from queue import SimpleQueue
    from threading import Thread, main_thread

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, Interrupter())
    lines: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        from time import sleep

        for line in requests:
            lines.put(line)
        signal.pthread_kill(main_thread().ident or 0, signal.SIGTERM)  # wakes it up
        sleep(_LIBRARY_PATIENCE)
        os._exit(1)

    Thread(target=listen, daemon=True).start()
    return lines


def answering(do: Callable[[Any], Any]) -> Serve:
    """Make a `serve` that answers each request with the value of ``do(request)``, or its error."""
    import json

    def serve(requests: Iterator[Any], tell: Tell) -> None:
        for request in requests:
            try:
                text = json.dumps({"value": do(request)})
            except (RaconvertError, OSError) as error:
                text = json.dumps({"error": encoded(error)})
            except Exception as error:  # noqa: BLE001 - it is raised in the other process
                import traceback

                raise_interruption(error)
                text = json.dumps({"bug": traceback.format_exc()})
            tell(text)

    return serve


def value_of(line: bytes) -> Any:
    """Return the value of an answer by `answering`, or raise its error."""
    import json

    answer = json.loads(line)
    if "error" in answer:
        raise raised(answer["error"])
    if "bug" in answer:
        raise RuntimeError(f"in the process that reads the files:\n{answer['bug']}")
    return answer["value"]


class Aside:
    """Work that a copy of this process does while this one does something else.

    `work` returns values of JSON; an error of raconvert that it raises is raised by `result`.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self._worker = Worker(answering(lambda _: work()))
        self._worker.send(None)

    def give_up(self) -> None:
        """End the work without its result."""
        end([self._worker])

    def result(self) -> Any:
        """Wait for the end of the work; return its result."""
        try:
            lines = self._worker.receive()
        finally:
            end([self._worker])
        if not lines:
            raise RaconvertError(
                "a worker process has ended before its work was done", got=self._worker.how
            )
        return value_of(lines[0])


# Errors on their way from a worker to its driver, and the death of a worker -----------------------


def encoded(error: RaconvertError | OSError) -> dict[str, Any]:
    """Return an error as values of JSON; raises KeyboardInterrupt if that caused it."""
    raise_interruption(error)
    if isinstance(error, RaconvertError):
        fields: dict[str, Any] = {
            part: error.path if part == "path" else error.as_written(part) for part in _PARTS
        }
        return {**fields, "class": type(error).__name__, "notes": getattr(error, "__notes__", [])}
    reason = error.strerror if isinstance(error, OSError) else None
    errno = getattr(error, "errno", None)
    return {"class": "OSError", "errno": errno, "what": reason or str(error)}


def shown(fields: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an error as values of JSON with options as this process names them."""
    if fields is None:
        return None
    return {name: worded(part) if isinstance(part, str) else part for name, part in fields.items()}


def decoded(fields: dict[str, Any]) -> RaconvertError:
    """Restore the error that `encoded` turned into plain values."""
    kind = getattr(errors, fields["class"], RaconvertError)
    error: RaconvertError = kind(fields["what"], **{part: fields[part] for part in _PARTS[1:]})
    for note in fields["notes"]:
        error.add_note(note)
    return error


def raised(fields: dict[str, Any]) -> RaconvertError | OSError:
    """Rebuild the error from the plain values that `encoded` made of it."""
    if fields["class"] == "OSError":
        return OSError(fields["errno"], fields["what"])
    return decoded(fields)


def death(path: str, how: str) -> Corrupt:
    """Return the error for a file that ended the process which read it."""
    return Corrupt(
        "ended the process that read it: the file is damaged, in a way that crashes its library",
        path=path,
        got=how,
        remedy="it was read in a process of its own; nothing was written for it",
    )


def clear(folder: str, child: int) -> None:
    """Remove the temporary files and folders that process `child` has left in a folder."""
    import shutil

    for path in temporaries_of(folder, child):
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                os.unlink(path)
