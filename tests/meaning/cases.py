"""Arrays with a meaning, and what becomes of it when they are moved, cut or stacked."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import raconvert
from raconvert import Axis, Metadata, Space

TYPES = ["u1", "i2", "u2", "i4", "f4", "f8", "?", "i8", "c8", "f2", "i1", "u4"]
NAMES = ["time", "row", "column", "depth", "REG", "COM"]
UNITS = [None, "mm", "s", "m"]
ATTRIBUTES = {
    "by": "hand", "count": 3, "gain": 2.5, "history": "größer\nals zuvor", "flags": [1, 2, 3],
    "who": ["a", "bb"], "steps": [0.5, 1.5], "done": True, "nobody": None, "empty": "",
    "nested": {"a": 1},
}  # fmt: skip
IMAGE, IMAGE_WITH_LABELS = (3, 32, 32), ("labels", "images")  # of CIFAR
OF_AXES = ("name", "labels", "spacing", "origin", "units")  # and the direction, with the space
SLOPE, OFFSET, FILL = OF_SCALE = ("scale_factor", "add_offset", "_FillValue")


@dataclass(frozen=True)
class Holds:
    """The types and shapes of a format that has few: images of so many channels, 0 for (H, W)."""

    types: Sequence[str]
    channels: Sequence[int] = ()


ANY = Holds(TYPES)
HOLDS = {
    "cfl": Holds(["c8"]),
    "idx": Holds(["u1", "i1", "i2", "i4", "f4", "f8"]),
    "rds": Holds(["i1", "i2", "u2", "i4", "f4", "f8", "?", "c8", "f2"]),
    "mrc": Holds(["i1", "i2", "u2", "f2", "f4", "c8"]),
    "fits": Holds(["u1", "i1", "i2", "u2", "i4", "u4", "i8", "f4", "f8", "?"]),
    "xlsx": Holds([one for one in TYPES if one not in ("i8", "c8")]),
    "ome.tif": Holds(["u1", "i1", "i2", "u2", "i4", "u4", "f4", "f8", "?", "c8"]),
    "png": Holds(["u1", "u2", "?"], [0, 1, 2, 3, 4]),
    "bmp": Holds(["u1", "?"], [0, 3]),
    "gif": Holds(["u1"], [0]),
    "jpg": Holds(["u1"], [0, 3]),
    "pnm": Holds(["u1", "u2", "?"], [0, 2, 3, 4]),
    "webp": Holds(["u1"], [3]),
    "cifar.bin": Holds(["u1"]),
}


@dataclass(frozen=True)
class Known:
    """What is known of an array: its values, and the facts about each axis and the whole.

    `ids` tells the axes apart when they move; `named` are the facts that a report has said are
    gone, those of an axis with its id; `decoded` is True if xarray may have applied the scale.
    """

    values: np.ndarray
    axes: tuple[Axis, ...]
    space: Space | None = None
    description: str | None = None
    units: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    ids: tuple[int, ...] = ()
    named: frozenset[tuple[str, Any]] = frozenset()
    decoded: bool = False

    @property
    def meta(self) -> Metadata:
        return Metadata(self.description, self.units, self.axes, self.attributes, space=self.space)

    @property
    def scale(self) -> dict[str, Any]:
        """The attributes that say what the stored values stand for, without those that are gone."""
        return {
            key: self.attributes[key]
            for key in OF_SCALE
            if key in self.attributes and ("attribute", key) not in self.named
        }

    def physical(self) -> np.ndarray | None:
        """The values that the stored ones stand for; None if they stand for themselves."""
        scale = self.scale
        if not scale:
            return None
        found = self.values.astype("f8") * scale.get(SLOPE, 1) + scale.get(OFFSET, 0)
        return np.where(self.values == scale.get(FILL, np.nan), np.nan, found)

    def bare(self) -> Known:
        """The values alone."""
        return Known(self.values, (Axis(),) * self.values.ndim, ids=tuple(range(self.values.ndim)))

    def with_three_axes(self) -> Known:
        """With axes of length 1 behind those of space, as NIfTI has it; whatever they say is fine."""
        of_space = [axis.direction is not None for axis in self.axes]
        count = sum(of_space)
        at = count if of_space[0] else len(self.axes) - count
        new = tuple(range(max(self.ids) + 1, max(self.ids) + 4 - count))
        return replace(
            self,
            values=np.expand_dims(self.values, tuple(range(at, at + len(new)))),
            axes=(*self.axes[:at], *(Axis() for _ in new), *self.axes[at:]),
            ids=(*self.ids[:at], *new, *self.ids[at:]),
            named=self.named | {(fact, key) for fact in OF_AXES for key in new},
        )

    def with_one_row(self) -> Known:
        """With a first axis of length 1, as formats of images have it; whatever it says is fine."""
        new = max(self.ids) + 1
        return replace(
            self,
            values=self.values[None],
            axes=(Axis(), *self.axes),
            ids=(new, *self.ids),
            named=self.named | {(fact, new) for fact in OF_AXES},
        )

    def unscaled(self) -> Known:
        values = self.physical()
        if values is None:
            return self
        rest = {key: value for key, value in self.attributes.items() if key not in self.scale}
        return replace(self, values=values, attributes=rest)

    def moved(self, order: tuple[int, ...]) -> Known:
        axes = tuple(self.axes[axis] for axis in order)
        ids = tuple(self.ids[axis] for axis in order)
        return replace(self, values=self.values.transpose(order), axes=axes, ids=ids)

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
        ids = [one for one, part in zip(self.ids, key, strict=True) if not isinstance(part, int)]
        # Where a spacing is gone, so is the origin that it would have led to.
        named = self.named | {("origin", one) for one in ids if ("spacing", one) in self.named}
        return replace(
            self, values=self.values[key], axes=tuple(axes), space=space, ids=tuple(ids),
            named=named,
        )  # fmt: skip

    def stacked(self, count: int) -> Known:
        values = np.stack([self.values] * count)
        return replace(self, values=values, axes=(Axis(), *self.axes), ids=(-1, *self.ids))

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


def several(chance: random.Random, form: str = "") -> dict[str, Known]:
    """One array, or a few by their names; those may share axes, as in a file of netCDF.

    `form` is a format that they are to be for, if it is one of those that hold few types.
    """
    if form == "cifar.bin":
        return _cifar(chance)
    holds = HOLDS.get(form, ANY)
    first = made(chance, holds)
    found = {"X": first}
    for name in chance.choice([(), (), (), ("Y",), ("Y", "LVL")]):
        beside = chance.random() < 0.6
        found[name] = _beside(chance, first, holds) if beside else made(chance, holds)
    return found


def _cifar(chance: random.Random) -> dict[str, Known]:
    """Labels and images."""
    count = chance.randrange(1, 4)
    found = {}
    for name, shape in zip(IMAGE_WITH_LABELS, ((count,), (count, *IMAGE)), strict=True):
        size = int(np.prod(shape))
        numbers = np.frombuffer(chance.randbytes(size), "u1") % 10
        found[name] = _with_axes(chance, numbers.reshape(shape))
    return found


def _beside(chance: random.Random, first: Known, holds: Holds) -> Known:
    """An array over some of the axes of another one, with facts of its own."""
    rank = chance.randint(1, first.values.ndim)
    kept = sorted(chance.sample(range(first.values.ndim), rank))
    shape = tuple(first.values.shape[axis] for axis in kept)
    axes = tuple(first.axes[axis] for axis in kept)
    whole = rank == first.values.ndim
    if not whole:
        axes = tuple(axis if axis.direction is None else Axis(axis.name) for axis in axes)
    values = _values(chance, shape, holds)
    return _described(chance, values, axes, first.space if whole else None)


def _values(chance: random.Random, shape: tuple[int, ...], holds: Holds) -> np.ndarray:
    dtype = chance.choice(holds.types)
    count = int(np.prod(shape))
    numbers = np.array([chance.randrange(2 if dtype == "?" else 120) for _ in range(count)])
    return numbers.astype(dtype).reshape(shape)


def made(chance: random.Random, holds: Holds = ANY) -> Known:
    """An array of a random type and shape, with random facts."""
    rank = chance.choice([1, 2, 2, 3, 3, 3, 4])
    shape = tuple(chance.choice([1, 2, 3, 4, 5]) for _ in range(rank))
    if holds.channels:
        channels = chance.choice(holds.channels)
        shape = tuple(chance.choice([1, 2, 3, 4, 5]) for _ in range(2))
        shape += (channels,) if channels else ()
    return _with_axes(chance, _values(chance, shape, holds))


def _with_axes(chance: random.Random, values: np.ndarray) -> Known:
    shape, rank = values.shape, values.ndim
    spatial = rank >= 2 and chance.random() < 0.4
    names = chance.sample(NAMES, rank)
    directions = _directions(chance, min(rank, 3)) if spatial else []
    axes = []
    for number, (name, length) in enumerate(zip(names, shape, strict=True)):
        facts: dict[str, Any] = {}
        if chance.random() < 0.7:
            facts["name"] = name
        if spatial and number >= rank - len(directions):
            facts["spacing"] = chance.choice([0.5, 1.0, 1.25, 2.0, 3.0])
            facts["direction"] = directions[number - (rank - len(directions))]
            facts["units"] = "mm"
        elif chance.random() < 0.35:
            facts["labels"] = [f"{name[:2]}{n}" for n in range(length)]
        elif chance.random() < 0.5:
            facts["spacing"] = chance.choice([0.5, 1.0, 2.0, 3.0])
            if chance.random() < 0.7:
                facts["origin"] = float(chance.randrange(-4, 9))
            facts["units"] = chance.choice(UNITS)
        axes.append(Axis(**facts))
    space = None
    if spatial:
        world = len(directions[0])
        origin = tuple(float(chance.randrange(-40, 40)) / 2 for _ in range(world))
        space = Space(chance.choice(["LPS", "RAS"]), origin)
    return _described(chance, values, tuple(axes), space)


def _described(
    chance: random.Random, values: np.ndarray, axes: tuple[Axis, ...], space: Space | None
) -> Known:
    """The array with facts about the whole."""
    attributes: dict[str, Any] = {}
    if chance.random() < 0.4:
        names = chance.sample(list(ATTRIBUTES), chance.randrange(1, 4))
        attributes = {name: ATTRIBUTES[name] for name in names}
    if values.dtype.kind in "iuf" and chance.random() < 0.25:
        scale = {SLOPE: 0.5, OFFSET: -2.0, FILL: values.flat[0].item()}
        kept = chance.choice([(SLOPE,), (SLOPE, OFFSET), (FILL,), (SLOPE, OFFSET, FILL)])
        attributes |= {name: scale[name] for name in kept}
    return Known(
        values,
        axes,
        space,
        description="a scan" if chance.random() < 0.4 else None,
        units="K" if chance.random() < 0.3 else None,
        attributes=attributes,
        ids=tuple(range(len(axes))),
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


def array_of(known: Known, name: str = "X") -> raconvert.Array:
    return raconvert.Array(known.values, name=name, meta=known.meta)
