"""Signals that ask for an end, raised as an exception that cannot get lost.

The first signal is raised, so that temporary files are removed. A second one within `GRACE` (an
impatient Ctrl-C, a SIGTERM after a SIGINT) would interrupt just that, and is ignored. Python raises
the exception in the code at hand, which may be a callback of a library, a ``__del__`` or the
callback of a weak reference: these swallow exceptions and print them, or turn them into others. So
only the frames that it passes through refer to the interruption. If it is freed before `main` has
caught it, it is raised again at the next line of the program.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # what `signal` costs is its enums
import sys
from _thread import get_ident, interrupt_main
from _weakref import ref
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


GRACE = 2.0  # seconds in which an interruption is not interrupted itself
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Interruption(KeyboardInterrupt):
    """A `KeyboardInterrupt` that weak references can refer to."""


class Interrupter:
    """A handler of signals that raises an `Interruption`, and again if it gets lost.

    It is called in the main thread, and made there. After `close` nothing is raised.
    """

    def __init__(self) -> None:
        self.arrived: float | None = None
        self.is_due: bool = False  # an interruption has yet to be raised, or got lost
        self._thread = get_ident()
        self._alive: Any = None  # a weak reference to the interruption on its way
        self._closed = False
        self._usual_hook = sys.unraisablehook
        sys.unraisablehook = self._unraisable

    def __call__(self, _: int, frame: FrameType | None) -> None:
        """Raise an interruption, unless one has just been raised."""
        now = monotonic()
        if not self._closed and (self.arrived is None or now - self.arrived > GRACE):
            self.arrived = now
            if _closes(frame):
                self.is_due = True
            else:
                raise self._another()

    def close(self) -> None:
        """Raise nothing any more."""
        self._closed = True
        sys.unraisablehook = self._usual_hook

    def _another(self) -> Interruption:
        self.is_due = False
        interruption = Interruption()
        self._alive = ref(interruption, self._lost)
        return interruption

    def _unraisable(self, unraisable: Any) -> None:
        """Print exceptions that nobody can catch, except interruptions, which are raised again."""
        if not isinstance(unraisable.exc_value, Interruption):
            self._usual_hook(unraisable)

    def _lost(self, _: object) -> None:
        """Raise the interruption again as soon as a function begins or a line is reached."""
        if self._closed:
            return
        self.is_due = True
        if get_ident() != self._thread:
            self.arrived = None
            interrupt_main()
            return
        sys.settrace(self._traced)
        frame: FrameType | None = sys._getframe().f_back
        while frame is not None:
            frame.f_trace = self._traced
            frame = frame.f_back

    def _traced(self, frame: FrameType, event: str, _: object) -> Any:
        if self._closed or _closes(frame):
            return None
        if event not in ("call", "line"):  # a return, or an exception: its caller has a line
            return self._traced
        sys.settrace(None)
        raise self._another()


class Interruptible:
    """A ``with`` block that SIGINT, SIGTERM and SIGHUP end with `KeyboardInterrupt`.

    The interruption is raised again at the end of the block even if something wrapped it on the
    way, as importing numpy does. `last`: the process ends after the block, so that later signals
    have nothing left to end.
    """

    def __init__(self, *, last: bool) -> None:
        self._last = last
        self._usual: list[tuple[int, Any]] = []
        self._interrupter: Interrupter | None = None

    def __enter__(self) -> None:
        usual = (signal.SIG_DFL, signal.default_int_handler)
        for name in _NAMES:
            number = getattr(signal, name, None)
            if number is None or signal.getsignal(number) not in usual:
                continue
            interrupter = self._interrupter or Interrupter()
            try:
                self._usual.append((number, signal.signal(number, interrupter)))
            except ValueError:  # not in the main thread: whoever is there decides
                interrupter.close()
                break
            self._interrupter = interrupter

    def __exit__(self, kind: type[BaseException] | None, error: object, _: object) -> None:
        if self._interrupter is None:
            return
        self._interrupter.close()
        arrived, is_due = self._interrupter.arrived is not None, self._interrupter.is_due
        for number, handler in self._usual:
            signal.signal(number, signal.SIG_IGN if self._last and arrived else handler)
        failed = kind is not None and not issubclass(kind, SystemExit)
        if is_due or (failed and arrived and not isinstance(error, KeyboardInterrupt)):
            raise KeyboardInterrupt from None


def _closes(frame: FrameType | None) -> bool:
    """True if a frame puts back the usual handlers, which must not be interrupted."""
    return frame is not None and frame.f_code in _CLOSING


_CLOSING = (Interrupter.close.__code__, Interruptible.__exit__.__code__)


def raise_interruption(error: BaseException) -> None:
    """Raise the interruption that became another error on its way, if this is one.

    For code that goes on after an error, such as with the next file.
    """
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop()
        if cause is None or id(cause) in seen:
            continue
        if isinstance(cause, KeyboardInterrupt):
            raise cause
        seen.add(id(cause))
        waiting += cause.__cause__, cause.__context__
