"""The collector of garbage, which would look at a plan of 80,000 files again and again."""

from __future__ import annotations

import gc
from contextlib import contextmanager

_SELDOM = 20_000  # objects that are made before the new ones are looked at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def left_alone() -> Iterator[Callable[[], object]]:
    """A ``with`` block in which objects that are there before are not looked at.

    What it gives adds, when it is called, those that are there by then. A program that does so
    itself is not disturbed.
    """
    if gc.get_freeze_count():
        yield bool
        return
    gc.freeze()
    try:
        yield gc.freeze
    finally:
        gc.unfreeze()


@contextmanager
def looked_at_seldom() -> Iterator[tuple[int, int, int]]:
    """A ``with`` block for work that makes many objects which stay, and hardly any garbage.

    It gives the thresholds from before.
    """
    before = gc.get_threshold()
    if before[0]:  # else nothing is looked at
        gc.set_threshold(max(before[0], _SELDOM), *before[1:])
    try:
        yield before
    finally:
        gc.set_threshold(*before)
