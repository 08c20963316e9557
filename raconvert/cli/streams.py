"""The standard streams where they are closed, full, or read by nobody any more."""

from __future__ import annotations

import os
import sys

from raconvert.errors import RaconvertError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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
