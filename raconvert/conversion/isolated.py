"""Files of a run, one after the other, so that the death of a library costs one of them.

Some formats are read by a library of native code, which a damaged file can crash, and the process
with it. From the first file of such a format on, the files of a run are handled in a copy of this
process, and what it finds comes back as JSON, line by line; when it dies, the file at hand has
failed, and a new copy goes on with the next one. Where a process cannot be copied (Windows, or
there are other threads), all is done in this one.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from raconvert.conversion.read import is_native
from raconvert.errors import Corrupt, RaconvertError
from raconvert.workers.processes import can_fork, clear, death, encoded, fork, how_ended, raised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


class Jobs:
    """Jobs on the files of a run: ``do(number)`` carries out the one of that number.

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
        if len(paths) >= fewest and is_native(paths[number]) and can_fork():
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


def _in_a_copy(paths: Sequence[str], first: int, jobs: Jobs) -> Iterator[Any]:
    """Yield the outcomes from `first` on, up to the end or to the one that the copy dies of."""
    for stream in (sys.stdout, sys.stderr):  # else what is left in them would be written twice
        if stream is not None:
            stream.flush()
    asked, ask = os.pipe()
    answers, answer = os.pipe()
    child = fork()
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
                clear(folder, child)


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


def _outcome(said: dict[str, Any], number: int, jobs: Jobs) -> Any:
    if "value" in said:
        return jobs.unpack(number, said["value"])
    if "bug" in said:
        raise RuntimeError(f"in the process that reads the files:\n{said['bug']}")
    return raised(said["error"])


def _death(path: str, child: int, places: Sequence[str]) -> Corrupt:
    """Return the error for the file that the copy died of; remove what it left."""
    _, status = os.waitpid(child, 0)
    for folder in places:
        clear(folder, child)
    return death(path, how_ended(os.waitstatus_to_exitcode(status)))


def _end(child: int, *, stop: bool) -> None:
    """Wait for the copy, which ends when nobody asks any more; `stop`: in the middle of a job."""
    from signal import SIGTERM

    with suppress(ProcessLookupError, ChildProcessError):
        if stop:
            os.kill(child, SIGTERM)
        os.waitpid(child, 0)
