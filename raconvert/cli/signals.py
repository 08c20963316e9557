"""Signals that ask for an end: the first one is raised, so that temporary files are removed.

What follows it at once (an impatient second Ctrl-C, a SIGTERM after a SIGINT) would interrupt just
that, and is left aside for a moment.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # what `signal` costs is its enums
import os
import sys
from time import monotonic

from raconvert.errors import RaconvertError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


GRACE = 2.0  # seconds in which an interruption is not interrupted itself
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Interruptible:
    """A ``with`` block that SIGINT, SIGTERM and SIGHUP end with `KeyboardInterrupt`.

    Whatever becomes of that on its way (numpy's import wraps it, for one), it leaves the block as
    it was raised. `last`: the process ends after the block, and signals have nothing left to end.
    """

    def __init__(self, *, last: bool) -> None:
        self._last = last
        self._kept: list[tuple[int, Any]] = []
        self._arrived: float | None = None

    def __enter__(self) -> None:
        usual = (signal.SIG_DFL, signal.default_int_handler)
        for name in _NAMES:
            number = getattr(signal, name, None)
            try:
                if number is not None and signal.getsignal(number) in usual:
                    self._kept.append((number, signal.signal(number, self._interrupt)))
            except ValueError:  # not in the main thread: whoever is there decides
                break

    def _interrupt(self, *_: object) -> None:
        now = monotonic()
        if self._arrived is None or now - self._arrived > GRACE:
            self._arrived = now
            raise KeyboardInterrupt

    def __exit__(self, kind: type[BaseException] | None, error: object, _: object) -> None:
        failed = kind is not None and not issubclass(kind, SystemExit)
        for number, handler in self._kept:
            done = self._last and self._arrived is not None
            signal.signal(number, signal.SIG_IGN if done else handler)
        if failed and self._arrived is not None and not isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt from None


# The standard streams where they are closed, full, or read by nobody any more --------------------


def flush() -> None:
    """Write what waits for the standard output."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise stdout_failed(error) from error


def stdout_failed(error: OSError) -> RaconvertError:
    """Our error for a standard output that cannot be written, and let go of it."""
    silence(sys.stdout)
    return RaconvertError(f"the standard output cannot be written: {error.strerror}")


def silence(stream: Any) -> None:
    """Give the interpreter somewhere to flush to when a stream cannot be written any more."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):  # a stream that is not a file
        pass


def fill_closed() -> None:
    """Give closed standard streams (``>&-``) something, before a file of ours gets their number.

    What is said to the standard error goes nowhere then; results that nobody can get are an error.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        mode = "r" if name == "stdin" else "w"
        stream = open(number, mode, errors="backslashreplace", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
