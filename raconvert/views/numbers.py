"""Statistics of the values of an array, of a sample or of all of them.

Complex values count by their magnitude, times by what they are, text by its words.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from raconvert.arrays.blocks import blocks
from raconvert.arrays.dtypes import dtype_of, little
from raconvert.arrays.reinterpret import for_showing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from raconvert.arrays.array import Array

    Values = np.ndarray[Any, Any]

BINS = 32  # bins of a histogram
MOST_CLASSES = 24  # up to so many different integers are classes, counted one by one
FULL_BLOCK = 4 << 20  # bytes per block of a full pass
TRACED = 64  # stretches of an array whose extremes are shown one by one
_LARGEST_CLASS = 1 << 16  # larger integers are not class numbers
_MOST_WORDS = 1000  # different texts counted one by one


class Numbers:
    """Counts and extremes of the values that were added.

    `least`, `most` and `mean` are those of the finite ones, None without any. `classes` has the
    counts of whole numbers, bools or texts as long as few are different, else it is None. `trace`
    has the least and the largest finite value of each part, or of each stretch of the array.
    """

    def __init__(self) -> None:
        self.count: int = 0
        self.nan: int = 0
        self.above: int = 0  # count of +inf
        self.below: int = 0
        self.zeros: int = 0
        self.finite: int = 0
        self.least: Any = None
        self.most: Any = None
        self.classes: Counter[Any] | None = None
        self.histogram: list[int] = []
        self.trace: list[tuple[float, float]] = []
        self._sum: float | None = 0.0  # None for times, which have no sum
        self._classes_begun = False  # True once classes were counted, or found to be too many

    @property
    def mean(self) -> float | None:
        """The mean of the finite values; None without any, and for times and text."""
        return self._sum / self.finite if self.finite and self._sum is not None else None

    def add(self, values: Values) -> None:
        """Count the values of an ndarray of any shape."""
        self.count += values.size
        if values.dtype.kind in "SU":
            self._count_classes(values.reshape(-1), _MOST_WORDS)
            return
        values = comparable(values)
        if values.dtype.kind in "mM":
            valid = values[~np.isnat(values)]
            self.nan += values.size - valid.size
            self._extend(valid)
        elif values.dtype.kind == "f":
            valid = values[np.isfinite(values)]
            if valid.size < values.size:
                self.nan += int(np.isnan(values).sum())
                self.above += int(np.isposinf(values).sum())
                self.below += int(np.isneginf(values).sum())
            self._extend(valid)
        elif values.dtype.kind in "iub":
            self._extend(values)
            self._count_classes(values, MOST_CLASSES)

    def _extend(self, values: Values) -> None:
        """Extend the extremes, the sum and the counts by finite values."""
        if not values.size:
            return
        low, high = values.min(), values.max()
        self.least = low if self.least is None else min(self.least, low)
        self.most = high if self.most is None else max(self.most, high)
        self.finite += values.size
        if values.dtype.kind in "mM" or self._sum is None:
            self._sum = None
            return
        with np.errstate(over="ignore"):
            self._sum += float(np.sum(values, dtype=np.float64))
        self.zeros += int(values.size - np.count_nonzero(values))

    def _count_classes(self, values: Values, most: int) -> None:
        """Count the occurrences of each value, unless there are too many different ones."""
        if self.classes is None:
            if self._classes_begun:
                return
            self.classes, self._classes_begun = Counter(), True
        if (
            values.dtype.kind in "iu"
            and values.size
            and (values.min() < -1 or values.max() > _LARGEST_CLASS)
        ):
            self.classes = None
            return
        classes, counts = np.unique(values, return_counts=True)
        self.classes.update(dict(zip(classes.tolist(), counts.tolist(), strict=True)))
        if len(self.classes) > most:
            self.classes = None


def comparable(values: Values) -> Values:
    """The values as numbers that NumPy compares: magnitudes, native byte order, usual floats.

    Empty for records, and for bytes without a meaning.
    """
    if values.dtype.kind == "c":
        magnitude: Values = np.abs(values.astype(values.dtype.newbyteorder("="), copy=False))
        return magnitude
    if values.dtype.names is not None:
        return np.zeros(0, np.uint8)
    if values.dtype.kind == "V":  # bfloat16
        try:
            return values.astype(np.float32)
        except (TypeError, ValueError):  # bytes without a meaning
            return np.zeros(0, np.uint8)
    if values.dtype.kind == "f" and values.dtype.itemsize == 2:
        return values.astype(np.float32)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def thinned(values: Values, most: int) -> Values:
    """About `most` of many values: one of each of as many equal bins, at random by a fixed seed."""
    step = values.size // most
    if step < 2:
        return values
    chance = np.random.default_rng(values.size)
    at = np.arange(0, values.size - step + 1, step)
    some: Values = values[at + chance.integers(0, step, at.size)]
    return some


def numbers_of(parts: Iterable[Values]) -> Numbers:
    """The numbers of the parts of a sample, with their histogram."""
    numbers = Numbers()
    parts = list(parts)
    for part in parts:
        numbers.add(part)
        if part.dtype.kind not in "SUV":
            numbers.trace.append(_extremes(part))
    numbers.histogram = _histogram(parts, numbers)
    return numbers


def _extremes(values: Values) -> tuple[float, float]:
    """The least and the largest finite value; twice NaN without any."""
    numbers = comparable(values).reshape(-1)
    if numbers.dtype.kind in "mM":
        numbers = numbers.view(np.int64)
    with np.errstate(all="ignore"):
        finite = numbers[np.isfinite(numbers)] if numbers.dtype.kind == "f" else numbers
    return (float(finite.min()), float(finite.max())) if finite.size else (float("nan"),) * 2


def _histogram(parts: list[Values], numbers: Numbers) -> list[int]:
    """Count the finite values in ranges of one width, from the least to the largest."""
    low, high = numbers.least, numbers.most
    if low is None or not parts or parts[0].dtype.kind not in "iufcV" or not high > low:
        return []
    low, high = float(low), float(high)
    counts = np.zeros(BINS, np.int64)
    for part in parts:
        values = comparable(part).reshape(-1)
        values = thinned(values, 1 << 20).astype(np.float64)  # a million show the form
        width = high / BINS - low / BINS
        if not np.isfinite(width) or not width > 0:
            return []
        values = values[np.isfinite(values)]
        at = np.clip(((values / width) - low / width).astype(np.int64), 0, BINS - 1)
        counts += np.bincount(at, minlength=BINS)
    return [int(count) for count in counts]


def all_numbers(array: Array) -> Numbers:
    """The numbers of all elements, read block by block; without a histogram.

    Raises what reading elements raises.
    """
    numbers = Numbers()
    dtype = dtype_of(little(array.element))
    step = max(1, array.count // TRACED)
    part: list[tuple[float, float]] = []
    seen = 0
    for block in blocks(array, FULL_BLOCK):
        values = block.reshape(-1).view(dtype) if block.dtype != dtype else block.reshape(-1)
        numbers.add(for_showing(values))
        if values.dtype.kind in "SUV" or not values.size:
            continue
        part += [_extremes(values[at : at + step]) for at in range(0, values.size, step)]
        seen += values.size
        if seen >= step * (len(numbers.trace) + 1):
            numbers.trace.append(_joined(part))
            part = []
    if part:
        numbers.trace.append(_joined(part))
    return numbers


def _joined(parts: list[tuple[float, float]]) -> tuple[float, float]:
    """The least and the largest of some extremes, without those that are NaN."""
    with np.errstate(all="ignore"):
        lows, highs = np.array(parts).T
        finite = ~np.isnan(lows)
        if not finite.any():
            return float("nan"), float("nan")
        return float(lows[finite].min()), float(highs[finite].max())
