"""Values of metadata that are real numbers, as the headers of images have them."""

from __future__ import annotations

from math import isfinite

LARGEST = 1 << 1000  # of integers: what is below is finite as a double


def is_real(value: object) -> bool:
    """True if a value is a finite real number, and not a bool. Raises nothing."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return isfinite(value) if isinstance(value, float) else abs(value) < LARGEST


def are_reals(value: object, count: int) -> bool:
    """True if a value is a list of so many finite real numbers. Raises nothing."""
    return isinstance(value, list) and len(value) == count and all(map(is_real, value))
