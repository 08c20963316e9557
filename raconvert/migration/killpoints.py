"""Places at which a test ends this process, as a power cut would; without a test nothing happens.

``RACONVERT_TEST_KILL=PHASE:BATCH`` ends the process by SIGKILL the first time that it reaches the
phase with the batch of that number; with ``:FILE`` behind it, only if that file does not exist (it
is made first), so that a resumed run does not end there again.

``RACONVERT_TEST_POISON=NAME`` or ``NAME:SIGNAL`` ends the process that is about to read a source of
that name, as a damaged file ends it that crashes a library.
"""

from __future__ import annotations

import os

_ASKED = os.environ.get("RACONVERT_TEST_KILL", "")
_POISON = os.environ.get("RACONVERT_TEST_POISON", "")


def reached(phase: str, number: int) -> None:
    """End the process if a test asks for it here."""
    if _ASKED:
        _end(phase, number)


def reading(source: str) -> None:
    """End the process if a test names this source as one that crashes its reader."""
    if _POISON:
        _die_of(source)


def _die_of(source: str) -> None:
    import signal

    name, _, kind = _POISON.partition(":")
    if os.path.basename(source) == name:
        os.kill(os.getpid(), getattr(signal, kind or "SIGKILL"))


def _end(phase: str, number: int) -> None:
    import signal

    asked, at, once = (_ASKED + "::").split(":")[:3]
    if (asked, at) != (phase, str(number)):
        return
    if once:
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
