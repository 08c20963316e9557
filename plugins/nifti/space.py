"""The position of an image in the world: sform, qform and pixdim as a `World`, both ways.

Of the three methods of nifti1.h the first that the header has is the one that counts: sform
(``sform_code`` above 0), qform (``qform_code`` above 0), spacings alone. Coordinates grow to the
right, anterior and superior; the codes say in whose frame.
"""

from __future__ import annotations

import struct
from math import hypot, isfinite, sqrt

from raconvert.arrays.space import World, directed, not_kept, orientation
from raconvert.plugin import Axis

from .tables import CODE_OF_FRAME, FRAME_OF_CODE, MAX_RANK, Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.arrays.metadata import Space
    from raconvert.plugin import Array

FIELDS = ("sform_code", "srow", "qform_code", "quatern", "qoffset")
NOT_FIRST = (
    "space (NIfTI's first three axes are those of space, no other is; `--axes` can move them)"
)
SKEW = 1e-5  # the largest cosine of two axes that a qform still describes
_NO_SCALAR = 1e-7  # nifti1_io.h: below it the square of the first part of a quaternion is 0


def world_of(fields: dict[str, Any], rank: int) -> World | None:
    """Return the world of a header; None if it has spacings only. Raises nothing."""
    for code, columns in ((fields.get("sform_code", 0), _of_sform),
                          (fields.get("qform_code", 0), _of_qform)):  # fmt: skip
        directions = columns(fields) if code > 0 else None
        if directions is not None:
            vectors = tuple(v if any(v) else None for v in directions[:3][:rank])
            if not any(vectors):
                continue
            more = (None,) * (rank - len(vectors))
            return World((*vectors, *more), directions[3], FRAME_OF_CODE.get(code, "RAS"))
    return None


def placed(axes: Sequence[Axis], world: World | None) -> list[Axis]:
    """Return axes with the directions of a world; spacings of headers stay if they fit."""
    if world is None:
        return list(axes)
    return [directed(a, v, a.spacing) for a, v in zip(axes, world.vectors, strict=True)]


def _of_sform(fields: dict[str, Any]) -> list[tuple[float, ...]] | None:
    """Return the three columns and the offset of the sform; None if a number is not finite."""
    rows = list(fields.get("srow") or [0.0] * 12)
    if not all(map(isfinite, rows)):
        return None
    return [tuple(float(rows[4 * row + column]) for row in range(3)) for column in range(4)]


def _of_qform(fields: dict[str, Any]) -> list[tuple[float, ...]] | None:
    """Return the three columns and the offset of the qform; None if a number is not finite."""
    pixdim = fields.get("pixdim") or [1.0] * 8
    quaternion = list(fields.get("quatern") or [0.0] * 3)
    offset = list(fields.get("qoffset") or [0.0] * 3)
    if not all(map(isfinite, (*quaternion, *offset, *pixdim[1:4]))):
        return None
    steps = [step if step > 0 else 1.0 for step in pixdim[1:4]]
    steps[2] *= -1.0 if pixdim[0] < 0 else 1.0
    rows = _rotation(*quaternion)
    columns = [tuple(rows[row][k] * steps[k] + 0.0 for row in range(3)) for k in range(3)]
    return [*columns, tuple(offset)]


def _rotation(b: float, c: float, d: float) -> list[list[float]]:
    """Return the rows of the matrix of a quaternion, as nifti1_io.c works it out."""
    square = 1.0 - (b * b + c * c + d * d)  # of the first part
    if square < _NO_SCALAR:
        length = hypot(b, c, d)
        a, b, c, d = 0.0, b / length, c / length, d / length
    else:
        a = sqrt(square)
    return [
        [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
        [2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)],
        [2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - c * c - b * b],
    ]


# --- writing --------------------------------------------------------------------------------------


def with_three_axes(array: Array) -> Array:
    """Return an array with axes of length 1 behind its one or two axes of space, before others.

    So the others, such as time, are where NIfTI has them. Other arrays are returned as they are.
    """
    axes = array.ra_axes if array.described else ()
    world = World.of(axes, array.meta.space) if any(axes) else None
    count = len(world.spatial) if world is not None else 0
    missing = 3 - count
    if world is None or count not in (1, 2) or not count < array.ndim <= MAX_RANK - missing:
        return array
    if world.spatial != list(range(count)) or world.rank > 3:
        return array
    wide = world.padded(3)
    columns = _three([vector for vector in wide.vectors if vector is not None])
    meta, ndim = array.meta, array.ndim
    # A world of two axes has become one of three, so that its vectors have three parts.
    own = [directed(axis, vector) for axis, vector in zip(axes, wide.vectors, strict=True)]
    meta = meta.replace(axes=own if array.index_order == "F" else own[::-1], space=wide.space)
    for number in range(count, 3):
        more = directed(Axis(units=axes[0].units), columns[number])
        index = number if array.index_order == "F" else ndim - number
        meta, ndim = meta.with_axis(index, more, ndim), ndim + 1
    dims = (*array.dims[:count], *(1,) * missing, *array.dims[count:])
    made = array.replace(dims=dims, meta=meta, extent=array.extent)
    made.data = array.source
    return made


def fields_of_space(
    axes: Sequence[Axis], space: Space | None, rank: int, layout: Layout
) -> tuple[dict[str, Any], float, list[str]]:
    """Return sform and, if it has no skew, an equal qform; qfac; and names of what is lost.

    `rank` is that of the array, whose first three axes are those of space. Numbers are not rounded.
    """
    world, lost = World.of(axes, space), []
    if world is None or not world.spatial:
        return {}, 1.0, not_kept(world, axes, space)
    if world.spatial != list(range(min(rank, 3))):
        return {}, 1.0, [NOT_FIRST]
    if world.rank < 3 and orientation(world.frame) is None:
        world = world.padded(3)
    if world.rank != 3:
        return {}, 1.0, [f"space (of {world.rank} axes)"]
    code = CODE_OF_FRAME.get(world.frame or "", CODE_OF_FRAME["RAS"])
    if orientation(world.frame) is None:
        lost.append(f"frame of the space ({world.frame or 'unknown'}: taken for LPS, as ITK does)")
        world = World(world.vectors, world.origin, "LPS")
    if world.origin is None:
        lost.append("origin (unknown: written as 0)")
    turned = world.to("RAS") or world
    columns = _three([vector for vector in turned.vectors if vector is not None])
    origin = turned.origin or (0.0,) * 3
    rows = [n for row in range(3) for n in (*(column[row] for column in columns), origin[row])]
    fields: dict[str, Any] = {"sform_code": code, "srow": rows}
    quaternion, qfac = _quaternion(columns)
    if quaternion is not None and _is_precise(quaternion, columns, qfac, layout):
        fields |= {"qform_code": code, "quatern": quaternion, "qoffset": list(origin)}
    else:
        qfac = 1.0
    return fields, qfac, lost


def _three(columns: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Return three columns: those given, and steps of 1 at right angles for missing axes."""
    if len(columns) == 1:
        (x, y, z) = columns[0]
        small = min(range(3), key=lambda at: abs((x, y, z)[at]))
        helper = tuple(float(at == small) for at in range(3))
        columns = [columns[0], _unit(_cross(_cross(columns[0], helper), columns[0]))]
    if len(columns) == 2:
        columns = [*columns, _unit(_cross(*columns))]
    return columns


def _cross(a: Sequence[float], b: Sequence[float]) -> tuple[float, ...]:
    """Return the cross product of two vectors, without a -0."""
    return (
        a[1] * b[2] - a[2] * b[1] + 0.0,
        a[2] * b[0] - a[0] * b[2] + 0.0,
        a[0] * b[1] - a[1] * b[0] + 0.0,
    )


def _unit(vector: Sequence[float]) -> tuple[float, ...]:
    """Return a vector of length 1 in the same direction; one of zeros stays."""
    length = hypot(*vector)
    return tuple(part / length for part in vector) if length else tuple(vector)


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _quaternion(columns: list[tuple[float, ...]]) -> tuple[list[float] | None, float]:
    """Return the quaternion of columns at right angles, and 1 or -1 for their handedness.

    None in its place for other columns.
    """
    one, two, three = map(_unit, columns)
    for first, second in ((one, two), (one, three), (two, three)):
        if not any(first) or not any(second) or abs(_dot(first, second)) > SKEW:
            return None, 1.0
    qfac = 1.0 if _dot(_cross(one, two), three) > 0 else -1.0
    three = tuple(qfac * part for part in three)
    # From the largest of the four parts, so that no small number is divided by.
    traces = (
        one[0] + two[1] + three[2], one[0] - two[1] - three[2],
        two[1] - one[0] - three[2], three[2] - one[0] - two[1],
    )  # fmt: skip
    largest = max(range(4), key=lambda at: traces[at])
    root = sqrt(max(0.0, 1.0 + traces[largest])) * 2  # four times the part
    if not root or not isfinite(root):  # not a rotation, since a number overflows
        return [0.0, 0.0, 0.0], qfac
    xy, xz, yz = one[1] + two[0], one[2] + three[0], two[2] + three[1]
    u, v, w = two[2] - three[1], three[0] - one[2], one[1] - two[0]
    parts = [[root * root / 4, u, v, w], [u, root * root / 4, xy, xz],
             [v, xy, root * root / 4, yz], [w, xz, yz, root * root / 4]][largest]  # fmt: skip
    a, b, c, d = (part / root for part in parts)
    factor = -1.0 if a < 0 else 1.0
    return [factor * b + 0.0, factor * c + 0.0, factor * d + 0.0], qfac


def _is_precise(
    quaternion: list[float], columns: list[tuple[float, ...]], qfac: float, layout: Layout
) -> bool:
    """True if the quaternion gives the same columns after rounding to the header's precision."""
    real = layout.real
    rounded = [struct.unpack(real, struct.pack(real, part))[0] for part in quaternion]
    rows = _rotation(*rounded)
    for number, column in enumerate(map(_unit, columns)):
        sign = qfac if number == 2 else 1.0
        if any(abs(sign * rows[row][number] - column[row]) > 1e-3 for row in range(3)):
            return False
    return True
