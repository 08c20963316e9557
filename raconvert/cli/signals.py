"""Signals that ask for an end: the first one is raised, so that temporary files are removed.

What follows it at once (an impatient second Ctrl-C, a SIGTERM after a SIGINT) would interrupt just
that, and is left aside for a moment.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # what `signal` costs is its enums
from time import monotonic

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
