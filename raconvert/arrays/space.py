"""World coordinates: the frames that have names, steps of axes as vectors, and their exact parts.

An index moves through the world by the vectors of its axes, from the origin: the world coordinates
of element [i, j, k] are ``origin + i*v0 + j*v1 + k*v2``. `Axis` and `Space` hold them; formats read
and write them as a `World`, which can be converted from one frame to another.
"""

from __future__ import annotations

from math import hypot, inf, isfinite, nextafter

from raconvert.arrays.metadata import Axis, Space
from raconvert.declared import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Vector = tuple[float, ...]

# Frame -> the directions in which its axes grow: Left or Right, Anterior or Posterior, Superior or
# Inferior. The frames with longer names are the anatomical ones of NIfTI.
FRAMES = {
    "RAS": "RAS", "LAS": "LAS", "LPS": "LPS",
    "scanner-RAS": "RAS", "aligned-RAS": "RAS", "talairach-RAS": "RAS", "MNI-RAS": "RAS",
    "template-RAS": "RAS",
}  # fmt: skip
_OPPOSITE = {"R": "L", "A": "P", "S": "I", "L": "R", "P": "A", "I": "S"}
# Kinds of axes that count components of a sample, in the words of NRRD; the others are places or
# times.
PLACES = frozenset(["space", "domain", "time"])
TOLERANCE = 1e-12  # of numbers that are the same but for their last digits
NEAR_UNIT = 1e-6  # how far the spacing of a header may be from the length of its vector
# Phrases of reports about an axis.
OF_ONE = "spacing of 1 without units"  # in formats that write the same for an unknown spacing
UNKNOWN = "spacing unknown: written as 1"
IN_SPACE = "not spatial: ITK takes it for such"
_UNKNOWN = Space()
_STEPS = 24  # neighbouring doubles that `split` tries


def orientation(frame: str | None) -> str | None:
    """Return the three letters of a frame; None if its axes are not anatomical."""
    return FRAMES.get(frame or "")


def signs(frame: str | None, wanted: str) -> tuple[int, ...] | None:
    """Return 1 or -1 for each axis of the world, from one frame to another; None if unknown.

    >>> signs("LPS", "RAS")
    (-1, -1, 1)
    """
    have, want = orientation(frame), orientation(wanted)
    if have is None or want is None:
        return (1, 1, 1) if frame == wanted else None
    return tuple(
        1 if a == b else -1 for a, b in zip(have, want, strict=True) if b in (a, _OPPOSITE[a])
    )


def is_component(axis: Axis) -> bool:
    """True if an axis counts the components of a sample, as vectors and colours have them."""
    return axis.kind is not None and axis.kind not in PLACES


def split(vector: Sequence[float], spacing: float | None = None) -> tuple[float, Vector] | None:
    """Return the spacing and the unit vector of a step; None if it has no length.

    Their product is the step exactly, in float64, if any doubles have that product. A `spacing`
    that a header gives besides is taken if it is the length of the vector but for rounding.

    >>> split((0, 0, -2.5))
    (2.5, (0.0, 0.0, -1.0))
    """
    length = hypot(*vector)
    if not (length and isfinite(length)):
        return None
    if spacing is not None and abs(spacing - length) <= NEAR_UNIT * length:
        length = float(spacing)
    up = down = length
    for _ in range(_STEPS):
        for candidate in {up, down}:
            parts = tuple(_factor(part, candidate) for part in vector)
            if None not in parts:
                return candidate, parts  # type: ignore[return-value]
        up, down = nextafter(up, inf), nextafter(down, 0.0)
        if spacing is not None and length == spacing:
            break
    return length, tuple(part / length for part in vector)


def _factor(part: float, length: float) -> float | None:
    """Return the number whose product with a length is a part of a vector; None without one."""
    if not part:
        return 0.0
    near = part / length
    for candidate in (near, nextafter(near, inf), nextafter(near, -inf)):
        if candidate * length == part:
            return candidate
    return None


def is_vector(value: Any, rank: int | None = None) -> bool:
    """True for a list of finite numbers, of this length if one is given."""
    return (
        isinstance(value, list | tuple)
        and (rank is None or len(value) == rank)
        and all(isinstance(number, int | float) and isfinite(number) for number in value)
    )


def same(first: Any, second: Any) -> bool:
    """True if two vectors, or None, are the same but for their last digits."""
    if first is None or second is None:
        return first is second
    scale = max(map(abs, (*first, *second)), default=0.0)
    return len(first) == len(second) and all(
        abs(a - b) <= TOLERANCE * scale for a, b in zip(first, second, strict=True)
    )


class World(Record):
    """The steps of the axes of an array in a frame, and where its first element lies.

    `vectors` has an entry for each axis: a step, or None for an axis that is not spatial. All
    steps and `origin` have a number for each axis of the world; an unknown origin is None.
    """

    vectors: tuple[tuple[float, ...] | None, ...]
    origin: tuple[float, ...] | None
    frame: str | None

    @classmethod
    def of(cls, axes: Sequence[Axis], space: Space | None) -> World | None:
        """Return the world that axes and space describe; None if they contradict each other.

        >>> World.of([Axis(spacing=2.0, direction=(1, 0, 0))], Space("LPS")).vectors
        ((2.0, 0.0, 0.0),)
        """
        space = _UNKNOWN if space is None else space
        vectors = []
        for axis in axes:
            numeric = is_vector(axis.direction) and is_vector([axis.spacing or 0])
            if axis.direction is not None and not numeric:
                return None
            vectors.append(axis.vector)
        known = [vector for vector in (*vectors, space.origin) if vector is not None]
        if not all(is_vector(vector, len(known[0])) for vector in known):
            return None
        if orientation(space.frame) and any(len(vector) != 3 for vector in known):
            return None
        return cls(tuple(vectors), space.origin, space.frame)

    @property
    def rank(self) -> int:
        """The number of axes of the world; 0 if nothing is known of it."""
        known = [vector for vector in (*self.vectors, self.origin) if vector is not None]
        return len(known[0]) if known else 0

    @property
    def spatial(self) -> list[int]:
        """The indices of the axes that have a step."""
        return [axis for axis, vector in enumerate(self.vectors) if vector is not None]

    def to(self, frame: str) -> World | None:
        """Return the same positions in another frame; None if either is not anatomical."""
        factors = signs(self.frame, frame)
        if factors is None or (self.rank and len(factors) != self.rank):
            return None

        def turned(vector: tuple[float, ...] | None) -> tuple[float, ...] | None:
            if vector is None:
                return None
            return tuple(
                part if factor > 0 else 0.0 - part
                for part, factor in zip(vector, factors, strict=True)
            )

        return World(tuple(map(turned, self.vectors)), turned(self.origin), frame)

    def padded(self, rank: int) -> World:
        """Return the same steps in a world of more axes, along which nothing moves."""
        more = (0.0,) * (rank - self.rank)
        return World(
            tuple(None if vector is None else (*vector, *more) for vector in self.vectors),
            None if self.origin is None else (*self.origin, *more),
            self.frame,
        )

    def is_flat(self, rank: int) -> bool:
        """True if no step leaves the first axes of the world."""
        return not any(any(vector[rank:]) for vector in self.vectors if vector is not None)

    def first(self, rank: int) -> World:
        """Return the world reduced to its first `rank` axes."""
        return World(
            tuple(None if vector is None else vector[:rank] for vector in self.vectors),
            None if self.origin is None else self.origin[:rank],
            self.frame,
        )

    def joined(self, axes: Sequence[Axis]) -> World:
        """Return a world with one more axis for each axis that is not spatial, as ITK has it.

        The step of such an axis is its spacing, or 1; its origin is its own, or 0.
        """
        others = [axis for axis, vector in enumerate(self.vectors) if vector is None]
        rank = self.rank
        wide = self.padded(rank + len(others))
        vectors, origin = list(wide.vectors), list(wide.origin or (0.0,) * wide.rank)
        for number, axis in enumerate(others):
            step, start = axes[axis].spacing, axes[axis].origin
            row = [0.0] * (rank + len(others))
            row[rank + number] = float(step) if is_vector([step]) and step else 1.0
            vectors[axis] = tuple(row)
            origin[rank + number] = float(start or 0) if is_vector([start or 0]) else 0.0
        known = self.origin is not None or any(origin)
        return World(tuple(vectors), tuple(origin) if known else None, self.frame)

    def without_time(self) -> tuple[World, dict[int, tuple[float, float]]]:
        """Split off the axes of the world beyond three: the reverse of `joined`.

        Returned with the world: step and origin along such an axis, by the index of the axis of the
        array. If a step mixes both kinds of axes, the world is returned as it is.
        """
        rank = self.rank
        times: dict[int, tuple[float, float]] = {}
        for world_axis in range(3, rank):
            along = [
                axis for axis, vector in enumerate(self.vectors)
                if vector is not None and vector[world_axis]
            ]  # fmt: skip
            if len(along) != 1 or along[0] in times:
                return self, {}
            vector = self.vectors[along[0]] or ()
            if any(part for number, part in enumerate(vector) if number != world_axis):
                return self, {}
            times[along[0]] = vector[world_axis], self.origin[world_axis] if self.origin else 0.0
        vectors = [None if axis in times else vector for axis, vector in enumerate(self.vectors)]
        return World(tuple(vectors), self.origin, self.frame).first(3), times

    def is_same(self, other: World | None) -> bool:
        """True if both have the same positions, but for the last digits of numbers."""
        return (
            other is not None
            and self.frame == other.frame
            and len(self.vectors) == len(other.vectors)
            and all(map(same, self.vectors, other.vectors))
            and same(self.origin, other.origin)
        )

    @property
    def space(self) -> Space | None:
        """Frame and origin as metadata has them; None if both are unknown."""
        if self.frame is None and self.origin is None:
            return None
        return Space(self.frame, self.origin)


def directed(axis: Axis, vector: Sequence[float] | None, spacing: float | None = None) -> Axis:
    """Return an axis with a step in the world; `spacing` as in `split`. Without one, as it was."""
    parts = None if vector is None else split(vector, spacing)
    if parts is None:
        return axis
    return axis.replace(spacing=parts[0], direction=parts[1], origin=None)


def as_itk(axes: Sequence[Axis], space: Space | None) -> tuple[World | None, list[str], list[int]]:
    """Return the world of an array as ITK has it: in LPS, with as many axes as the array.

    It is None if the array has no position, or one that ITK cannot express. The first list names
    what is lost, the second has the indices of axes that are not spatial, but are so to ITK.
    """
    world = World.of(axes, space)
    if world is None or not world.spatial:
        return None, not_kept(world, axes, space), []
    lost = []
    if orientation(world.frame) is None:
        lost.append(f"frame of the space ({world.frame or 'unknown'}: taken for LPS, as ITK does)")
    world = world.to("LPS") or world
    count = len(world.spatial)
    if not world.is_flat(count):
        keeps = "a slice of length 1, as 3:4, keeps them"
        lost.append(f"space (its axes do not lie in the first {count} of the world; {keeps})")
        return None, lost, []
    if world.origin is not None and any(world.origin[count:]):
        lost.append(f"origin beyond the first {count} axes of the world")
    others = [index for index, axis in enumerate(axes) if axis.direction is None]
    taken = others if len(axes) > count < 3 else []
    return world.padded(max(count, world.rank)).first(count).joined(axes), lost, taken


def not_kept(world: World | None, axes: Sequence[Axis], space: Space | None) -> list[str]:
    """Return ``["space"]`` if a format without world coordinates loses any, else no names."""
    if world is None or world.spatial or any(axis.direction is not None for axis in axes):
        return ["space"]
    return ["space"] if space is not None and (space.frame or space.origin) else []


def coordinates(axes: Sequence[Axis], space: Space | None) -> list[Axis]:
    """Return axes with the origin and the signed spacing of the numbers along them.

    An axis along one axis of the world has that component of the origin as its first number, so
    that formats with coordinates for each axis, as CF has them, can say where it lies. An oblique
    axis, and one of an unknown origin, has no such numbers.
    """
    world = World.of(axes, space)
    if world is None or not world.spatial:
        return list(axes)
    placed_axes = []
    for axis, vector in zip(axes, world.vectors, strict=True):
        along = [number for number, part in enumerate(vector or ()) if part]
        if vector is None:
            placed_axes.append(axis)
        elif len(along) == 1 and world.origin is not None:
            spacing, origin = vector[along[0]], world.origin[along[0]]
            placed_axes.append(axis.replace(spacing=spacing, origin=origin))
        else:
            placed_axes.append(axis.replace(spacing=None, origin=None))
    return placed_axes


def shown_along(axes: Sequence[Axis], space: Space | None) -> list[Axis]:
    """Return axes with the numbers along them: those of `coordinates`, else as they are."""
    return [
        axis if along.spacing is None else along
        for axis, along in zip(axes, coordinates(axes, space), strict=True)
    ]


def part_of(numbers: Sequence[Any], axis: Axis, length: int) -> range | None:
    """Return the indices of an axis whose values are these numbers; None unless they are regular.

    >>> part_of([1.5, 0.5], Axis(spacing=0.5), 4)
    range(3, -1, -2)
    """
    whole = axis.values(length)
    values = [] if whole is None else whole.tolist()
    index_of = {value: index for index, value in enumerate(values)}
    indices = [index_of.get(number, -1) for number in numbers]
    if not indices:
        return range(0)
    if min(indices) < 0:
        return None
    step = indices[1] - indices[0] if len(indices) > 1 else 1
    part = range(indices[0], indices[-1] + (1 if step > 0 else -1), step) if step else range(0)
    return part if [*part] == indices else None
