"""Images that are opened when they are first needed, and closed with the bundle."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .stack import Stack


def lazily(images: Callable[[], Stack], closers: list[Callable[[], None]]) -> Callable[[], Stack]:
    """Return what opens the images, as `Array` wants it; `closers` are those of their bundle."""

    def opened() -> Stack:
        stack = images()
        closers.append(stack.close)
        return stack

    return opened
