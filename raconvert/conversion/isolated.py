"""Files of a run, one after the other, so that the death of a library costs one of them.

Some formats are read by a library of native code, which a damaged file can crash, and the process
with it. From the first file of such a format on, the files of a run are handled in a copy of this
process, and what it finds comes back as JSON, line by line; when it dies, the file at hand has
failed, and a new copy goes on with the next one. Where a process cannot be copied (Windows, or
there are other threads), all is done in this one.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from raconvert import errors
from raconvert.catalogue import ROWS
from raconvert.errors import Corrupt, RaconvertError
from raconvert.files.places import temporaries_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

_HEAD = 4096
_MAGICS = tuple((at, text) for row in ROWS if row.native for at, text in row.magic)
_PARTS = ("what", "path", "where", "expected", "got", "remedy")


class Jobs:
    """What is to be done with the files of a run, the one of each number by ``do(number)``.

    The only other effect of a job are files; the folders in which it makes temporary ones are
    `folders(number)`. What it returns is made values of JSON by `pack`, and back by `unpack`, if it
    was done in another process; as they are, tuples become lists.
    """

    def __init__(self, do: Callable[[int], Any]) -> None:
        self.do = do

    def folders(self, number: int) -> Sequence[str]:  # noqa: ARG002
        """Return the folders for temporary files."""
        return ()

    def pack(self, value: Any) -> Any:
        """The result of a job as values of JSON."""
        return value

    def unpack(self, number: int, values: Any) -> Any:  # noqa: ARG002
        """The result of a job from values of JSON."""
        return values


def outcomes(paths: Sequence[str], jobs: Jobs, fewest: int = 2) -> Iterator[Any]:
    """Yield for each path, in order, what its job returns, or the error that it raises.

    Runs of less than `fewest` files are done in this process.
    """
    number = 0
    while number < len(paths):
        if len(paths) >= fewest and _is_native(paths[number]) and _can_fork():
            for outcome in _in_a_copy(paths, number, jobs):
                yield outcome
                number += 1
            continue
        yield _attempted(jobs, number)
        number += 1


def _attempted(jobs: Jobs, number: int) -> Any:
    """Run a job in the copy; return its result, or raise its error.

    Not the frame of a generator catches the error: whoever lets go of its frames would end that.
    """
    try:
        return jobs.do(number)
    except (RaconvertError, OSError) as error:
        return error


def _can_fork() -> bool:
    from threading import active_count

    return hasattr(os, "fork") and active_count() == 1


def _is_native(spec: str) -> bool:
    """True for a file of a format that is read by native code, by its first bytes."""
    path = spec
    if not os.path.lexists(spec):
        from raconvert.conversion.inputs import split_spec

        path = split_spec(spec)[0]
    try:
        if not os.path.isfile(path):  # no pipe is read here, and no device
            return False
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except (OSError, ValueError):
        return False
    return any(head[at : at + len(text)] == text for at, text in _MAGICS)


def _in_a_copy(paths: Sequence[str], first: int, jobs: Jobs) -> Iterator[Any]:
    """Yield the outcomes from `first` on, up to the end or to the one that the copy dies of."""
    for stream in (sys.stdout, sys.stderr):  # else what is left in them would be written twice
        if stream is not None:
            stream.flush()
    asked, ask = os.pipe()
    answers, answer = os.pipe()
    child = _fork()
    if child == 0:
        os.close(ask)
        os.close(answers)
        _serve(first, len(paths), jobs, asked, answer)
    os.close(asked)
    os.close(answer)
    alive, number = True, first
    try:
        with open(answers, "rb") as lines:
            for number in range(first, len(paths)):
                line = _one_answer(ask, lines)
                if line is None:
                    alive = False
                    yield _death(paths[number], child, jobs.folders(number))
                    return
                yield _outcome(line, number, jobs)
    finally:
        os.close(ask)
        if alive:
            stop = sys.exc_info()[0] is not None
            _end(child, stop=stop)
            for folder in jobs.folders(number) if stop else ():
                _clear(folder, child)


def _fork() -> int:
    import warnings

    with warnings.catch_warnings():  # of threads of BLAS, which start again in the copy
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _one_answer(ask: int, lines: Any) -> dict[str, Any] | None:
    """Let the copy do one job; None if it has ended."""
    try:
        os.write(ask, b"g")
    except BrokenPipeError:
        return None
    line = lines.readline()
    import json

    return json.loads(line) if line.endswith(b"\n") else None


def _serve(first: int, count: int, jobs: Jobs, asked: int, answer: int) -> None:
    """Do the jobs, each when it is asked for; never returns."""
    import json

    code = 1
    try:
        for number in range(first, count):
            if not os.read(asked, 1):
                break
            try:
                said = json.dumps({"value": jobs.pack(jobs.do(number))})
            except (RaconvertError, OSError) as error:
                said = json.dumps({"error": encoded(error)})
            except Exception:  # noqa: BLE001 - it is raised in the other process
                import traceback

                said = json.dumps({"bug": traceback.format_exc()})
            left = memoryview(said.encode() + b"\n")
            while left:
                left = left[os.write(answer, left) :]
        code = 0
    except BaseException:  # noqa: BLE001 - an interruption, or nobody listens any more
        code = 1
    finally:
        os._exit(code)


def encoded(error: RaconvertError | OSError) -> dict[str, Any]:
    """Return an error as values of JSON."""
    if isinstance(error, RaconvertError):
        found: dict[str, Any] = {
            part: None if getattr(error, part) is None else str(getattr(error, part))
            for part in _PARTS
        }
        return {**found, "class": type(error).__name__, "notes": getattr(error, "__notes__", [])}
    reason = error.strerror if isinstance(error, OSError) else None
    errno = getattr(error, "errno", None)
    return {"class": "OSError", "errno": errno, "what": reason or str(error)}


def _outcome(said: dict[str, Any], number: int, jobs: Jobs) -> Any:
    if "value" in said:
        return jobs.unpack(number, said["value"])
    if "bug" in said:
        raise RuntimeError(f"in the process that reads the files:\n{said['bug']}")
    fields = said["error"]
    if fields["class"] == "OSError":
        return OSError(fields["errno"], fields["what"])
    return decoded(fields)


def decoded(fields: dict[str, Any]) -> RaconvertError:
    """Return the error of ours that `encoded` made plain values of."""
    kind = getattr(errors, fields["class"], RaconvertError)
    error: RaconvertError = kind(fields["what"], **{part: fields[part] for part in _PARTS[1:]})
    for note in fields["notes"]:
        error.add_note(note)
    return error


def _death(path: str, child: int, places: Sequence[str]) -> Corrupt:
    """Return the error for the file that the copy died of; remove what it left."""
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        how = f"signal {name}"
    else:
        how = f"exit code {os.waitstatus_to_exitcode(status)}"
    for folder in places:
        _clear(folder, child)
    return Corrupt(
        "ended the process that read it: the file is damaged, in a way that crashes its library",
        path=path,
        got=how,
        remedy="it was read in a process of its own; nothing was written for it",
    )


def _clear(folder: str, child: int) -> None:
    """Remove the temporary files and folders that the copy has left."""
    import shutil

    for path in temporaries_of(folder, child):
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                os.unlink(path)


def _end(child: int, *, stop: bool) -> None:
    """Wait for the copy, which ends when nobody asks any more; `stop`: in the middle of a job."""
    with suppress(ProcessLookupError, ChildProcessError):
        if stop:
            os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
