"""Selections of virtual datasets: which elements of a source are which of the whole.

"HDF5 User's Guide", 7.4.2 "Selecting a subset of a dataspace". A selection is an ordered list of
elements: those of a grid (on each axis blocks at equal distances), or any others by their places.
Nothing here is longer than what is asked for.
"""

from __future__ import annotations

from collections import namedtuple
from math import prod

import numpy as np
from h5py import h5s

from raconvert.arrays.memory import check_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Places = np.ndarray[Any, np.dtype[np.int64]]

UNLIMITED = (1 << 64) - 1


class Run(namedtuple("Run", "start stride block length")):
    """What a grid has on one axis: `length` positions, in blocks of `block` every `stride`."""

    __slots__ = ()

    def inside(self, low: int, high: int) -> tuple[Places, Places]:
        """The indices from `low` to `high` that are selected, and which ones these are."""
        found = np.arange(max(low, self.start), min(high, self.end), dtype=np.int64)
        whole, rest = np.divmod(found - self.start, self.stride)
        which = whole * self.block + rest
        chosen = (rest < self.block) & (which < self.length)
        return found[chosen], which[chosen]

    def at(self, which: Places) -> Places:
        """The indices of these positions."""
        whole, rest = np.divmod(which, self.block)
        return self.start + whole * self.stride + rest

    @property
    def end(self) -> int:
        """The index behind the last one."""
        if not self.length:
            return self.start
        last = self.length - 1
        return self.start + last // self.block * self.stride + last % self.block + 1


class Grid:
    """The elements at all combinations of selected indices, the last axis fastest."""

    def __init__(self, runs: list[Run]) -> None:
        self.runs = runs
        self.lengths = tuple(run.length for run in runs)
        self.size = prod(self.lengths)
        self.ends = tuple(run.end for run in runs)

    def inside(self, start: tuple[int, ...], count: tuple[int, ...]) -> tuple[Any, Places]:
        """The coordinates of the elements in a box, and which ones these are."""
        parts = [r.inside(s, s + n) for r, s, n in zip(self.runs, start, count, strict=True)]
        if not parts:
            return (), np.zeros(1, np.int64)
        places = np.meshgrid(*(found for found, _ in parts), indexing="ij")
        which = np.meshgrid(*(number for _, number in parts), indexing="ij")
        flat = np.ravel_multi_index([w.reshape(-1) for w in which], self.lengths) \
            if which[0].size else np.zeros(0, np.int64)  # fmt: skip
        return tuple(place.reshape(-1) for place in places), flat

    def at(self, which: Places) -> tuple[Places, ...]:
        """The coordinates of these elements of the selection."""
        if not self.runs:
            return ()
        parts = np.unravel_index(which, self.lengths)
        return tuple(r.at(part) for r, part in zip(self.runs, parts, strict=True))


class Scattered:
    """Any elements, in the order of their places in the whole."""

    def __init__(self, places: Places, shape: tuple[int, ...]) -> None:
        self.coordinates = np.unravel_index(places, shape)
        self.size = places.size
        self.ends = tuple(int(c.max()) + 1 if c.size else 0 for c in self.coordinates)

    def inside(self, start: tuple[int, ...], count: tuple[int, ...]) -> tuple[Any, Places]:
        """The coordinates of the elements in a box, and which ones these are."""
        chosen = np.ones(self.size, bool)
        for places, low, n in zip(self.coordinates, start, count, strict=True):
            chosen &= (places >= low) & (places < low + n)
        which = np.flatnonzero(chosen)
        return self.at(which), which

    def at(self, which: Places) -> tuple[Places, ...]:
        """The coordinates of these elements of the selection."""
        return tuple(places[which] for places in self.coordinates)


Selection = Grid | Scattered


def regular(space: h5s.SpaceID) -> list[tuple[int, int, int, int]] | None:
    """Return (start, stride, count, block) of each axis of a grid; None for other selections."""
    if space.get_select_type() == h5s.SEL_ALL:
        return [(0, 1, 1, int(n)) for n in space.get_simple_extent_dims()]
    if space.get_select_type() != h5s.SEL_HYPERSLABS or not space.is_regular_hyperslab():
        return None
    parts = space.get_regular_hyperslab()
    return [tuple(int(n) for n in part) for part in zip(*parts, strict=True)]  # type: ignore[misc]


def unlimited_axis(axes: list[tuple[int, int, int, int]] | None) -> int | None:
    """The axis on which a grid has no end; None if there is none."""
    return next((k for k, part in enumerate(axes or ()) if UNLIMITED in part[2:]), None)


def grid(axes: list[tuple[int, int, int, int]], axis: int | None = None, length: int = 0) -> Grid:
    """A grid; on the `axis` without an end it has `length` positions."""
    runs = []
    for number, (start, stride, count, block) in enumerate(axes):
        endless = number == axis
        each = length if block == UNLIMITED else block
        several = endless and block != UNLIMITED
        step = stride if several or UNLIMITED > count > 1 else each
        positions = length if endless else count * block
        runs.append(Run(start, max(1, step), max(1, each), positions))
    return Grid(runs)


def block_at(axes: list[tuple[int, int, int, int]], axis: int, number: int) -> Grid:
    """One block of a grid without an end."""
    start, stride, _, block = axes[axis]
    one = list(axes)
    one[axis] = (start + number * stride, 1, 1, block)
    return grid(one)


def positions_up_to(part: tuple[int, int, int, int], end: int) -> int:
    """How many positions an axis without an end has below the index `end`."""
    start, stride, _, block = part
    if end <= start:
        return 0
    if block in (UNLIMITED, stride):
        return end - start
    whole, rest = divmod(end - start, stride)
    return whole * block + min(rest, block)


def end_of(part: tuple[int, int, int, int], length: int) -> int:
    """The index behind the last of `length` positions of an axis without an end."""
    start, stride, _, block = part
    if not length:
        return 0
    if block in (UNLIMITED, stride):
        return start + length
    return Run(start, stride, block, length).end


def scattered(space: h5s.SpaceID, limit: int) -> Scattered:
    """A selection that is not a grid, in at most `limit` bytes."""
    shape = tuple(int(n) for n in space.get_simple_extent_dims())
    count = int(space.get_select_npoints())
    check_memory(32 * count * (len(shape) + 1), limit, "a selection of a virtual dataset")
    places = [np.zeros(0, np.int64)]
    for first, last in space.get_select_hyper_blocklist():
        ranges = [np.arange(a, b + 1, dtype=np.int64) for a, b in zip(first, last, strict=True)]
        mesh = np.meshgrid(*ranges, indexing="ij")
        places.append(np.ravel_multi_index([part.reshape(-1) for part in mesh], shape))
    return Scattered(np.sort(np.concatenate(places)), shape)
