"""Arrays with a meaning, and what becomes of it when they are moved, cut or stacked."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import raconvert
from raconvert import Axis, Metadata, Space

TYPES = ["u1", "i2", "u2", "i4", "f4", "f8", "?", "i8", "c8", "f2", "i1", "u4"]
NAMES = ["time", "row", "column", "depth", "REG", "COM"]
UNITS = [None, "mm", "s", "m"]


@dataclass(frozen=True)
class Known:
    """What is known of an array: its values, and the facts about each axis and the whole."""

    values: np.ndarray
    axes: tuple[Axis, ...]
    space: Space | None = None
    description: str | None = None
    units: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def meta(self) -> Metadata:
        return Metadata(self.description, self.units, self.axes, self.attributes, space=self.space)

    def moved(self, order: tuple[int, ...]) -> Known:
        axes = tuple(self.axes[axis] for axis in order)
        return replace(self, values=self.values.transpose(order), axes=axes)

    def cut(self, key: tuple[Any, ...]) -> Known:
        """The part at integers and slices, one for each axis; by hand, not by `Metadata.sliced`."""
        axes, space = [], self.space
        for axis, part, length in zip(self.axes, key, self.values.shape, strict=True):
            indices = [range(length)[part]] if isinstance(part, int) else range(length)[part]
            first = indices[0] if len(indices) else 0
            if space is not None and space.origin is not None and axis.vector is not None:
                at = [o + first * v for o, v in zip(space.origin, axis.vector, strict=True)]
                space = Space(space.frame, tuple(at))
            if isinstance(part, int):
                continue
            step = indices.step if len(indices) else 1
            labels = None if axis.labels is None else [axis.labels[n] for n in indices]
            spacing, origin, direction = axis.spacing, axis.origin, axis.direction
            if direction is not None and step < 0:
                direction, step = tuple(-one for one in direction), -step
            if spacing is not None:
                if axis.direction is None:
                    origin = (
                        (origin or 0) + first * spacing if origin is not None or first else None
                    )
                spacing = spacing * step
            axes.append(axis.replace(
                labels=labels, spacing=spacing, origin=origin, direction=direction
            ))  # fmt: skip
        return replace(self, values=self.values[key], axes=tuple(axes), space=space)

    def stacked(self, count: int) -> Known:
        values = np.stack([self.values] * count)
        return replace(self, values=values, axes=(Axis(), *self.axes))

    def cast(self, dtype: str) -> Known:
        return replace(self, values=self.values.astype(dtype))

    def positions(self) -> dict[tuple[int, ...], tuple[float, ...]] | None:
        """Where the corners lie in the world, left-posterior-superior; None if it is not known."""
        vectors = [axis.vector for axis in self.axes]
        if self.space is None or self.space.origin is None or not any(vectors):
            return None
        found = {}
        for corner in np.ndindex(*[min(2, n) for n in self.values.shape]):
            index = tuple(n - 1 if c else 0 for c, n in zip(corner, self.values.shape, strict=True))
            at = np.array(self.space.origin)
            for k, vector in zip(index, vectors, strict=True):
                at = at if vector is None else at + k * np.array(vector)
            found[index] = tuple(in_lps(at, self.space.frame).tolist())
        return found


def in_lps(at: np.ndarray, frame: str | None) -> np.ndarray:
    """A position as ITK counts it: x to the left, y to the back."""
    ras = frame is not None and "RAS" in frame
    return at * np.array([-1.0, -1.0, 1.0][: len(at)]) if ras else at


def made(chance: random.Random) -> Known:
    """An array of a random type and shape, with random facts."""
    rank = chance.choice([1, 2, 2, 3, 3, 3, 4])
    shape = tuple(chance.choice([1, 2, 3, 4, 5]) for _ in range(rank))
    dtype = chance.choice(TYPES)
    count = int(np.prod(shape))
    numbers = np.array([chance.randrange(2 if dtype == "?" else 120) for _ in range(count)])
    values = numbers.astype(dtype).reshape(shape)
    spatial = rank >= 2 and chance.random() < 0.4
    names = chance.sample(NAMES, rank)
    directions = _directions(chance, min(rank, 3)) if spatial else []
    axes = []
    for number, (name, length) in enumerate(zip(names, shape, strict=True)):
        facts: dict[str, Any] = {}
        if chance.random() < 0.7:
            facts["name"] = name
        if spatial and number >= rank - len(directions):
            facts["spacing"] = chance.choice([0.5, 1.0, 2.0, 3.0])
            facts["direction"] = directions[number - (rank - len(directions))]
            facts["units"] = "mm"
        elif chance.random() < 0.35:
            facts["labels"] = [f"{name[:2]}{n}" for n in range(length)]
        elif chance.random() < 0.5:
            facts["spacing"] = chance.choice([0.5, 1.0, 3.0])
            if chance.random() < 0.7:
                facts["origin"] = float(chance.randrange(-4, 9))
            facts["units"] = chance.choice(UNITS)
        axes.append(Axis(**facts))
    space = None
    if spatial:
        world = len(directions[0])
        origin = tuple(float(chance.randrange(-40, 40)) / 2 for _ in range(world))
        space = Space(chance.choice(["LPS", "RAS"]), origin)
    return Known(
        values,
        tuple(axes),
        space,
        description="a scan" if chance.random() < 0.4 else None,
        units="K" if chance.random() < 0.3 else None,
        attributes={"by": "hand", "count": 3} if chance.random() < 0.4 else {},
    )


def _directions(chance: random.Random, rank: int) -> list[tuple[float, ...]]:
    """Unit vectors at right angles: turned, oblique and mirrored; the world has as many axes."""
    found = np.eye(rank)[chance.sample(range(rank), rank)]
    for _ in range(chance.randrange(3)):
        a, b = chance.sample(range(rank), 2)
        turn = np.eye(rank)
        turn[a, a] = turn[b, b] = 0.8
        turn[a, b], turn[b, a] = -0.6, 0.6
        found = found @ turn
    signs = [chance.choice([1.0, -1.0]) for _ in range(rank)]
    return [
        tuple(float(x) + 0.0 for x in row * sign) for row, sign in zip(found, signs, strict=True)
    ]


def array_of(known: Known) -> raconvert.Array:
    return raconvert.Array(known.values, name="X", meta=known.meta)
