"""Files of a run, one after the other, so that the crash of a library costs one of them.

Some formats are read by a library of native code, which a damaged file can crash, and the process
with it. From the first file of such a format on, the files of a run are handled in a copy of this
process, which returns its results as JSON, line by line; if it dies, the current file has failed,
and a new copy goes on with the next one. If a process cannot be copied (Windows, or other threads
are running), all is done in this one.
"""

from __future__ import annotations

from functools import partial

from raconvert.conversion.read import is_native
from raconvert.errors import RaconvertError
from raconvert.workers.interrupts import raise_interruption
from raconvert.workers.worker import Worker, answering, can_fork, clear, death, end, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


class Jobs:
    """Jobs on the files of a run: ``do(number)`` carries out the one of that number.

    Besides its result a job only has files as effects; `folders(number)` are the folders in which
    it makes temporary ones. If it is done in another process, `pack` turns its result into values
    of JSON, and `unpack` turns them back; without these methods tuples become lists.
    """

    def __init__(self, do: Callable[[int], Any]) -> None:
        self.do = do

    def folders(self, number: int) -> Sequence[str]:  # noqa: ARG002
        """Return the folders for temporary files."""
        return ()

    def pack(self, value: Any) -> Any:
        """Return the result of a job as values of JSON."""
        return value

    def unpack(self, number: int, values: Any) -> Any:  # noqa: ARG002
        """Return the result of a job that `pack` made values of JSON."""
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
        yield _attempted(partial(jobs.do, number))
        number += 1


def _attempted(do: Callable[[], Any]) -> Any:
    """Return the result of a function, or the error that it raises.

    The error is caught here and not in the generator: clearing the frames of the error's
    traceback would close a generator among them.
    """
    try:
        return do()
    except (RaconvertError, OSError) as error:
        raise_interruption(error)
        return error


def _in_a_copy(paths: Sequence[str], first: int, jobs: Jobs) -> Iterator[Any]:
    """Yield the outcomes from `first` on, to the end or to the file by which the copy dies."""
    number, done = first, False
    copy = Worker(answering(lambda number: jobs.pack(jobs.do(number))))
    try:
        for number in range(first, len(paths)):
            copy.send(number)
            lines = copy.receive()
            if not lines:
                break
            value = _attempted(partial(value_of, lines[0]))
            yield value if isinstance(value, Exception) else jobs.unpack(number, value)
        else:
            done = True
    finally:
        end([copy])
        for folder in () if done else jobs.folders(number):
            clear(folder, copy.pid)
    if not done:
        yield death(paths[number], copy.how)
