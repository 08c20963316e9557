"""The fields of a header about its space as a `World`, both ways.

``space`` names the frame (or ``space dimension`` the number of its axes), ``space directions`` are
the steps of the axes, ``space origin`` is the centre of the first sample. Spaces with ``-time``,
and those of four axes without a name, have a step for time as well: it becomes spacing and origin
of its axis, which is not spatial.
"""

from __future__ import annotations

from raconvert.arrays.space import (
    FRAMES,
    World,
    directed,
    is_component,
    not_kept,
    orientation,
)
from raconvert.plugin import Axis

from .tables import SPACE_RANKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from raconvert.arrays.metadata import Space

# Frame -> space; other frames that NRRD names have the name of the space
SPACES = {
    "RAS": "right-anterior-superior", "LAS": "left-anterior-superior",
    "LPS": "left-posterior-superior",
}  # fmt: skip
FRAME_OF = {space: frame for frame, space in SPACES.items()}
TIME = "-time"
OF_SPACE = ("space", "space_dimension", "space_origin", "space_units")  # in the namespace
ITK = "LPS"  # the frame that ITK takes a space without a name for


def axes_in(
    own: Mapping[str, Any], directions: Sequence[Any]
) -> tuple[list[Axis], Space | None, World | None]:
    """Return the axes that the fields describe, fastest first, the space, and the world.

    Raises `TypeError`, `ValueError` or `LookupError` for fields of a wrong form.
    """
    name, units = own.get("space"), own.get("space_units") or []
    rank = SPACE_RANKS[name] if name is not None else own.get("space_dimension")
    axes = [Axis() for _ in directions]
    if rank is None:
        return axes, None, None
    origin = own.get("space_origin")
    vectors = [None if v is None else tuple(float(part) for part in v) for v in directions]
    if origin is not None:
        origin = tuple(float(part) for part in origin)
    if any(vector is not None and len(vector) != rank for vector in (*vectors, origin)):
        raise ValueError(f"{rank} numbers in each vector were expected")
    frame = name and name.removesuffix(TIME)
    world = World(
        tuple(vector if vector and any(vector) else None for vector in vectors), origin, None
    )
    without_time, others = world.without_time() if rank > 3 else (world, {})
    if origin is not None and not others and rank == 4 and frame and not world.spatial:
        without_time = without_time.first(3)
    world = World(without_time.vectors, without_time.origin, FRAME_OF.get(frame or "", frame))
    for number, vector in enumerate(vectors):
        unit = _unit_of(vector, units)
        if number in others:
            step, start = others[number]
            spacing = step if step != 1 or unit is not None else None  # 1 stands for unknown
            axes[number] = Axis(spacing=spacing, origin=start or None, units=unit)
        else:
            axes[number] = directed(Axis(units=unit), world.vectors[number])
    return axes, world.space, world


def _unit_of(vector: Any, units: Sequence[Any]) -> str | None:
    """Return the unit of the axis of the world along which an axis runs; None without one.

    For an oblique axis, the unit that all axes of the world have.
    """
    if vector is None or not units:
        return None
    along = [number for number, part in enumerate(vector) if part]
    if len(along) == 1:
        return units[along[0]] or None
    is_shared = len(set(units)) == 1
    return (units[0] or None) if is_shared else None


def fields_of(
    axes: Sequence[Axis], space: Space | None
) -> tuple[dict[str, Any], list[Any], str | None, list[str]]:
    """Return fields of the namespace, the directions of axes, the frame, and what is lost.

    The frame is that of the metadata if the fields do not name it, else None. Three axes of space
    and one of another sort are written as ITK does and reads it: in a space with time, as LPS; two
    axes, and components, in a plane of LPS in a space of two axes.
    """
    world = World.of(axes, space)
    blank = [None] * len(axes)
    if world is None:
        return {}, blank, None, not_kept(world, axes, space)
    if not world.spatial and world.origin is None:
        if space is None or space.frame is None:
            return {}, blank, None, []
        name = _name_of(world.frame)
        written = {"space": name} if name else {}
        return written, blank, None if _frame_of(name) == world.frame else world.frame, []
    count, is_anatomical = len(world.spatial), orientation(world.frame) is not None
    others = [axis for axis in axes if axis.direction is None]
    if is_anatomical and count == 2 and all(map(is_component, others)):
        turned = world.to(ITK) or world
        if turned.is_flat(2) and not any((turned.origin or (0.0,) * 3)[2:]):
            return _named(turned.first(2), None, axes, world.frame)
    if count == 3 == world.rank and len(others) == 1 and not is_component(others[0]):
        turned = (world.to(ITK) or world) if is_anatomical else world
        name = _name_of(turned.frame)
        name = f"{name}{TIME}" if f"{name}{TIME}" in SPACE_RANKS else None
        return _named(turned.joined(axes), name, axes, world.frame)
    return _named(world, _name_of(world.frame), axes, world.frame)


def _name_of(frame: str | None) -> str | None:
    """Return the name of the space of a frame; None if NRRD has none."""
    name = SPACES.get(FRAMES.get(frame or "", ""), frame)
    return name if name in SPACE_RANKS else None


def _frame_of(name: str | None) -> str | None:
    """Return the frame that a name of a space stands for."""
    frame = name and name.removesuffix(TIME)
    return FRAME_OF.get(frame or "", frame)


def _named(
    world: World, name: str | None, axes: Sequence[Axis], frame: str | None
) -> tuple[dict[str, Any], list[Any], str | None, list[str]]:
    """Return the same as `fields_of` for a world; `name` of its space is used if the rank fits."""
    if name is not None and SPACE_RANKS[name] != world.rank:
        name = None
    fields: dict[str, Any] = {"space": name} if name else {"space_dimension": world.rank}
    if world.origin is not None:
        fields["space_origin"] = list(world.origin)
    units = _units(world, axes)
    if units:
        fields["space_units"] = units
    directions = [None if vector is None else list(vector) for vector in world.vectors]
    return fields, directions, None if _frame_of(name) == frame else frame, []


def _units(world: World, axes: Sequence[Axis]) -> list[str] | None:
    """Return the units of the axes of the world, if those of all axes follow from them."""
    units = [""] * world.rank
    for axis, vector in zip(axes, world.vectors, strict=True):
        for number, part in enumerate(vector or ()):
            if part and axis.units:
                units[number] = axis.units
    if not any(units):
        return None
    implied = [_unit_of(vector, units) for vector in world.vectors]
    for axis, vector, unit in zip(axes, world.vectors, implied, strict=True):
        if vector is not None and unit != (axis.units or None):
            return None
    return units


def is_said_by(
    own: Mapping[str, Any], directions: Sequence[Any], axes: Sequence[Axis], space: Space | None
) -> bool:
    """True if the fields of the namespace mean the same as the common metadata.

    Raises as `axes_in` does.
    """
    own_axes, own_space, _ = axes_in(own, directions)
    world, other = World.of(own_axes, own_space), World.of(axes, space)
    if world is None or other is None or not world.is_same(other):
        return False
    for number, axis in enumerate(own_axes):
        if directions[number] is not None and axis.direction is None:
            common = axes[number]
            if (axis.origin or 0) != (common.origin or 0):
                return False
            if axis.spacing is not None and axis.spacing != common.spacing:
                return False
    return True


def reframed(axes: Sequence[Axis], space: Space, frame: str) -> tuple[list[Axis], Space] | None:
    """Return axes and space of a header in the frame that they had; None if that is impossible."""
    world = World.of(axes, space)
    if world is None:
        return None
    if world.rank == 2:
        world = world.padded(3)
    turned = World(world.vectors, world.origin, world.frame or ITK).to(frame)
    if turned is None:
        return None
    axes_of_frame = [
        directed(axis, vector, axis.spacing)
        for axis, vector in zip(axes, turned.vectors, strict=True)
    ]
    made = turned.space
    return None if made is None else (axes_of_frame, made)
