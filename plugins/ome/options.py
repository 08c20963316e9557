"""The options of both formats for writing pyramids."""

from __future__ import annotations

from raconvert.errors import UsageError
from raconvert.plugin import Option

MOST_LEVELS = 32
ONE = "1"  # the option for an image without lower levels
SMALL = 256  # elements: greatest width and height of the last level with levels=auto
OPTIONS = (
    Option("levels", ONE, str, "of the pyramid: a number, or auto (the last one 256 wide)"),
    Option("filter", "mean", ("mean", "nearest"), "of lower levels, of 2 × 2 elements"),
)


def check_levels(levels: str) -> None:
    """Raise `UsageError` unless the option is a number of levels or ``auto``."""
    number = levels.isascii() and levels.isdecimal() and len(levels) < 3
    if levels != "auto" and not (number and 1 <= int(levels) <= MOST_LEVELS):
        raise UsageError(
            f"option levels={levels} is not understood", expected=f"1 to {MOST_LEVELS}, or auto"
        )


def count_of(levels: str, shape: tuple[int, ...], plane: int) -> int:
    """The number of levels that the option asks for; `plane` is the index of the axis of rows."""
    if levels != "auto":
        return int(levels)
    side, count = max(shape[plane : plane + 2]), 1
    while side > SMALL:
        side, count = -(-side // 2), count + 1
    return count
