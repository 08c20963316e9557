"""Copies of this process, what they tell each other, and how they end."""

from __future__ import annotations

import os
from contextlib import suppress

from raconvert import errors
from raconvert.errors import Corrupt, RaconvertError, worded
from raconvert.files.paths import temporaries_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


_PIPE = 1 << 20  # bytes
_PARTS = ("what", "path", "where", "expected", "got", "remedy")


def can_fork() -> bool:
    """True if this process can be copied: nothing else goes on in it."""
    from threading import active_count

    return hasattr(os, "fork") and active_count() == 1


def fork() -> int:
    """Copy this process."""
    import warnings

    with warnings.catch_warnings():  # of threads of BLAS, which start again in the copy
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def encoded(error: RaconvertError | OSError) -> dict[str, Any]:
    """Return an error as values of JSON."""
    if isinstance(error, RaconvertError):
        found: dict[str, Any] = {
            part: error.path if part == "path" else error.as_written(part) for part in _PARTS
        }
        return {**found, "class": type(error).__name__, "notes": getattr(error, "__notes__", [])}
    reason = error.strerror if isinstance(error, OSError) else None
    errno = getattr(error, "errno", None)
    return {"class": "OSError", "errno": errno, "what": reason or str(error)}


def shown(fields: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an error as values of JSON with options as this process names them."""
    if fields is None:
        return None
    return {name: worded(part) if isinstance(part, str) else part for name, part in fields.items()}


def decoded(fields: dict[str, Any]) -> RaconvertError:
    """Return the error of ours that `encoded` made plain values of."""
    kind = getattr(errors, fields["class"], RaconvertError)
    error: RaconvertError = kind(fields["what"], **{part: fields[part] for part in _PARTS[1:]})
    for note in fields["notes"]:
        error.add_note(note)
    return error


def raised(fields: dict[str, Any]) -> RaconvertError | OSError:
    """Return the error that `encoded` made plain values of."""
    if fields["class"] == "OSError":
        return OSError(fields["errno"], fields["what"])
    return decoded(fields)


def how_ended(code: int) -> str:
    """How a process ended, by its exit code or the negative number of its signal."""
    import signal

    if code >= 0:
        return f"exit code {code}"
    known = {number.value: number.name for number in signal.Signals}
    return f"signal {known.get(-code, -code)}"


def death(path: str, how: str) -> Corrupt:
    """The error for a file that ended the process which read it."""
    return Corrupt(
        "ended the process that read it: the file is damaged, in a way that crashes its library",
        path=path,
        got=how,
        remedy="it was read in a process of its own; nothing was written for it",
    )


def clear(folder: str, child: int) -> None:
    """Remove the temporary files and folders that the copy has left."""
    import shutil

    for path in temporaries_of(folder, child):
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                os.unlink(path)


def wide_pipe() -> tuple[int, int]:
    """A pipe that takes a whole batch, where the system has such."""
    ends = os.pipe()
    with suppress(ImportError, OSError, AttributeError):
        import fcntl

        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, _PIPE)
    return ends


class Aside:
    """Work that a copy of this process does while this one does something else.

    What `work` returns is made of JSON; an error of ours is raised by `result`.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self._answers, answer = wide_pipe()
        self._child = fork()
        if self._child == 0:
            try:
                os.close(self._answers)
                _answer(work, answer)
            finally:
                os._exit(0)
        os.close(answer)

    def give_up(self) -> None:
        """End without the result."""
        os.close(self._answers)
        os.waitpid(self._child, 0)

    def result(self) -> Any:
        """Wait for the end of the work; what it has returned."""
        import json

        try:
            with open(self._answers, "rb") as file:
                text = file.read()
        finally:
            _, status = os.waitpid(self._child, 0)
        if not text:
            how = how_ended(os.waitstatus_to_exitcode(status))
            raise RaconvertError("a process of ours has ended before its work", got=how)
        said = json.loads(text)
        if "error" in said:
            raise raised(said["error"])
        return said["value"]


def _answer(work: Callable[[], Any], answer: int) -> None:
    import json

    try:
        text = json.dumps({"value": work()})
    except (RaconvertError, OSError) as error:
        text = json.dumps({"error": encoded(error)})
    with os.fdopen(answer, "wb") as file:
        file.write(text.encode())
