"""Indices at which two arrays differ, and sizes of the differences, counted block by block.

All counts are exact. Memory is bounded by `_PLANES`, whatever the number of elements.
"""

from __future__ import annotations

from math import prod

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    Values = np.ndarray[Any, Any]


_PIECE = 1 << 16  # elements that are counted at once
_PLANES = 1 << 20  # planes that are counted one by one; more are not counted
_EXAMPLES = 10  # examples of elements that differ: the first ones
# The ends of the ranges of a histogram: powers of ten, as far as float64 has them.
_POWERS = tuple(range(-323, 309))
_EDGES = np.array([float(f"1e{power}") for power in _POWERS])


class Where:
    """The indices of the elements that differ, and statistics of the differences.

    `low` and `high` are the first and the last index along each axis, both included, None without a
    difference. `planes` are the counts of the planes of the `outer` axes, in C order; None if
    there are too many. `sizes` are counts by power: p is for sizes from 10**p up to 10**(p + 1).
    `larger` and `smaller` count the elements that are larger and smaller in b; `total` is the sum
    of all finite b - a, `finite` their number.
    """

    def __init__(
        self, shape: Sequence[int], order: Literal["C", "F"], outer: Sequence[int] = ()
    ) -> None:
        self.shape: tuple[int, ...] = tuple(shape)
        self.outer: tuple[int, ...] = tuple(outer)
        self.order: Literal["C", "F"] = order
        self.count: int = 0
        self.low: list[int] | None = None
        self.high: list[int] | None = None
        self.larger: int = 0
        self.smaller: int = 0
        self.finite: int = 0
        self.total: float = 0.0
        self.sizes: dict[int, int] = {}
        self.examples: list[tuple[tuple[int, ...], Any, Any]] = []
        lengths = [self.shape[axis] for axis in self.outer]
        self.planes: Values | None = None
        if prod(lengths) <= _PLANES:
            self.planes = np.zeros(prod(lengths), np.int64)

    def add(self, flat: Values, x: Values, y: Values, distance: Values | None) -> None:
        """Count elements that differ, by their flat indices in the compared order.

        `distance` is the size of each difference; None if they are not numbers.
        """
        self.count += flat.size
        for at in range(0, flat.size, _PIECE):
            piece = slice(at, at + _PIECE)
            self._locate(flat[piece], x[piece], y[piece])
            if distance is not None:
                self._measure(x[piece], y[piece], distance[piece])

    def _locate(self, flat: Values, x: Values, y: Values) -> None:
        """Extend the bounds, the examples and the counts of planes."""
        index: tuple[Any, ...] = ()
        if self.shape:
            index = np.unravel_index(flat, self.shape, order=self.order)
        low, high = [int(along.min()) for along in index], [int(along.max()) for along in index]
        if self.low is None or self.high is None:
            self.low, self.high = low, high
        self.low = list(map(min, self.low, low))
        self.high = list(map(max, self.high, high))
        for number in range(min(flat.size, _EXAMPLES - len(self.examples))):
            example = tuple(int(along[number]) for along in index)
            self.examples.append((example, x[number], y[number]))
        if self.planes is None:
            return
        if self.outer:
            lengths = [self.shape[axis] for axis in self.outer]
            numbers = np.ravel_multi_index([index[axis] for axis in self.outer], lengths)
            self.planes += np.bincount(numbers, minlength=self.planes.size)
        else:
            self.planes[0] += flat.size

    def _measure(self, x: Values, y: Values, distance: Values) -> None:
        """Count the differences by sign and by size."""
        real = x.dtype.kind != "c" and y.dtype.kind != "c"
        with np.errstate(all="ignore"):
            if real:
                self.larger += int((y > x).sum())
                self.smaller += int((y < x).sum())
            finite = np.isfinite(distance)
            self.finite += int(finite.sum())
            if real:
                signs = np.where(y > x, 1.0, -1.0)
                self.total += float((distance * signs)[finite].sum())
        sizes = distance[finite & (distance > 0)]
        powers, counts = np.unique(np.searchsorted(_EDGES, sizes, "right"), return_counts=True)
        for at, count in zip(powers.tolist(), counts.tolist(), strict=True):
            power = _POWERS[max(0, at - 1)]
            self.sizes[power] = self.sizes.get(power, 0) + count

    @property
    def most(self) -> list[tuple[tuple[int, ...], int]]:
        """The planes with most differences, each as its outer indices and their number."""
        if self.planes is None or not self.count:
            return []
        lengths = [self.shape[axis] for axis in self.outer]
        order = np.argsort(-self.planes, kind="stable")[:_EXAMPLES]
        return [
            (tuple(map(int, np.unravel_index(number, lengths))), int(self.planes[number]))
            for number in order.tolist()
            if self.planes[number]
        ]
