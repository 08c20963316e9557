"""Hanging of planes: the axis that runs down, the one to the right, and from which end each does.

Images of a body stand as radiologists hang them, whatever the order of their axes: in axial planes
anterior at the top, in coronal and sagittal ones superior at the top; the right of the body on the
left of the picture, in sagittal planes anterior on the left. All other planes stand as they are
indexed: the first index down, the second to the right.
"""

from __future__ import annotations

from math import floor, log10

from raconvert.arrays.layout import COLOR, IMAGE
from raconvert.arrays.space import World
from raconvert.declared import Record
from raconvert.views.terminal import number_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.layout import Layout
    from raconvert.arrays.metadata import Axis

# The two lines of the body in a plane -> its name, and the letters at its left, right, top, bottom.
_PLANES = {
    frozenset("RA"): ("axial", "RLAP"), frozenset("RS"): ("coronal", "RLSI"),
    frozenset("AS"): ("sagittal", "APSI"),
}  # fmt: skip
_NORTH, _EAST = ("lat", "latitude"), ("lon", "longitude")  # axes of maps, by the CF conventions
_MAP = "map"
_TIMES = ("t", "time", "times", "frame", "frames")
_UNITS_OF_TIME = (
    "s", "ms", "us", "ns", "min", "h", "d", "days", "hours", "minutes", "seconds", "years",
)  # fmt: skip
_POSITIVE = "RAS"  # the ends of the lines of the body, to which coordinates grow
_NEGATIVE = "LPI"
MOST_STRETCHED = 50.0  # a larger ratio of the steps of two axes is not drawn
_LEAST_STEP, _LARGEST_STEP = 1e-100, 1e100  # lengths made of others overflow, or are 0
BAR_SHARE = 0.34  # the most that a scale bar takes of the width of a picture


class Hanging(Record):
    """The way a plane is hung.

    `turned`: the second index runs down; `upward`, `leftward`: the axes run from their ends.
    `edges` are the letters at the left, right, top, bottom of a plane of a body, `name` is its
    name; both are empty for others. `steps` is the size of an element, down and to the right, in
    `units`; None if it is not known of both, or in the same units.
    """

    turned: bool = False
    upward: bool = False
    leftward: bool = False
    edges: str = ""
    name: str = ""
    steps: tuple[float, float] | None = None
    units: str | None = None

    def of(self, values: Any) -> Any:
        """Return a plane, as it is indexed, in the way it is hung; colours stay behind."""
        values = values.swapaxes(0, 1) if self.turned else values
        values = values[::-1] if self.upward else values
        return values[:, ::-1] if self.leftward else values

    def size_of(self, size: tuple[int, ...]) -> tuple[int, ...]:
        """Return rows and columns of a plane as it is hung."""
        return size[1::-1] if self.turned else size[:2]

    def extent_of(self, size: tuple[int, ...]) -> tuple[float, float]:
        """Return the proportions of a plane of so many rows and columns, as it is hung."""
        rows, columns = size[:2]
        if self.steps is None:
            return float(rows), float(columns)
        down, right = self.steps
        least = min(down, right)
        return rows * down / least, columns * right / least

    @property
    def is_of_body(self) -> bool:
        """True for a plane of a body."""
        return self.name not in ("", _MAP)

    @property
    def text(self) -> str:
        """Describe the plane: its name, its edges, and the size of elements that are not square."""
        parts = []
        if self.name:
            parts.append(f"{self.name}, {self.edges[0]} on the left, {self.edges[2]} at the top")
        if self.steps is not None and self.steps[0] != self.steps[1]:
            down, right = (f"{step:.4g}" for step in self.steps)
            parts.append(f"elements {right} × {down}{f' {self.units}' * bool(self.units)}")
        return ", ".join(parts)


def hanging_of(array: Array, layout: Layout) -> Hanging:
    """Return the way in which the planes of an array are hung. Raises nothing."""
    if layout.form not in (IMAGE, COLOR) or not array.described:
        return Hanging()
    column_major = array.index_order == "F"
    numbers = [
        array.ndim - 1 - axis if column_major else axis for axis in (layout.rows, layout.columns)
    ]
    numbers.sort()  # the first index runs down
    axes = array.axes
    hanging = _of_body(array, numbers) or _of_map([axes[number] for number in numbers])
    hanging = hanging or Hanging()
    steps, units = _steps([axes[number] for number in numbers])
    if steps is not None and hanging.turned:
        steps = steps[::-1]
    return hanging._replace(steps=steps, units=units)


def _of_map(axes: list[Axis]) -> Hanging | None:
    """Return the way in which the plane of a latitude and a longitude is hung; None for others."""
    turned = _is_called(axes[0], _EAST)
    north, east = axes[::-1] if turned else axes
    if not (_is_called(north, _NORTH) and _is_called(east, _EAST)):
        return None
    return Hanging(turned, _grows(north), not _grows(east), "WENS", _MAP)


def _is_called(axis: Axis, names: tuple[str, str]) -> bool:
    """True if an axis has one of these names, in any case."""
    return (axis.name or "").lower() in names


def _grows(axis: Axis) -> bool:
    """True if the coordinates along an axis grow, or it has none."""
    if axis.spacing is not None:
        return axis.spacing > 0
    labels = axis.labels or ()
    ends = [label for label in (labels[:1] + labels[-1:]) if isinstance(label, int | float)]
    return len(ends) < 2 or ends[-1] >= ends[0]


def _of_body(array: Array, numbers: list[int]) -> Hanging | None:
    """Return the way in which radiologists hang the plane of two axes; None for any other."""
    world = World.of(array.axes, array.meta.space)
    world = None if world is None else world.to("RAS")
    if world is None or world.rank != len(_POSITIVE):
        return None
    lines = [_line_of(world.vectors[number]) for number in numbers]
    plane = _PLANES.get(frozenset(line.upper() for line, _ in lines if line))
    if plane is None:
        return None
    name, edges = plane
    # The line that runs across is that of the letter on the left.
    turned = lines[0][0] == _line_named(edges[0])
    down, right = lines[::-1] if turned else lines
    return Hanging(turned, down[1] == edges[2], right[1] == edges[0], edges, name)


def _line_named(letter: str) -> str:
    """The line of the body that ends at a letter, by the letter of its positive end."""
    return letter if letter in _POSITIVE else _POSITIVE[_NEGATIVE.index(letter)]


def _line_of(vector: tuple[float, ...] | None) -> tuple[str, str]:
    """The line of the body nearest to the step of an axis: its positive end, and the axis's end.

    Both are letters; both are empty without a step.
    """
    if vector is None or not any(vector):
        return "", ""
    at = max(range(len(vector)), key=lambda axis: abs(vector[axis]))
    return _POSITIVE[at], (_POSITIVE if vector[at] > 0 else _NEGATIVE)[at]


def _steps(axes: list[Axis]) -> tuple[tuple[float, float] | None, str | None]:
    """The steps of two axes and their unit; None if they lack one, differ in units or too much."""
    first, second = axes
    down, right = (abs(axis.spacing) if axis.spacing else 0.0 for axis in axes)
    if not (_is_usual(down) and _is_usual(right)):
        return None, None
    if first.units != second.units or max(down, right) > MOST_STRETCHED * min(down, right):
        return None, None
    return (down, right), first.units


def steps_text(array: Array) -> str:
    """Describe the size of an element in space and the step in time: ``2 × 2 × 3 mm``.

    Empty for an array without them. Raises nothing.
    """
    if not array.described:
        return ""
    axes = [axis for axis in array.axes if axis.direction is not None or axis.kind == "space"]
    axes = [axis for axis in axes if axis.spacing is not None]
    steps = [abs(axis.spacing or 0) for axis in axes]
    parts = []
    if len(axes) > 1 and len({axis.units for axis in axes}) == 1 and all(map(_is_usual, steps)):
        text = " × ".join(map(number_text, steps))
        if axes[0].units:
            parts.append(f"{text} {axes[0].units}")
        elif set(steps) != {1.0}:
            parts.append(f"{text}, in a unit that the file does not name")
    parts += [
        f"every {number_text(abs(axis.spacing or 0))} {axis.units}"
        for axis, length in zip(array.axes, array.shape, strict=True)
        if length > 1 and axis.units and is_time(axis) and _is_usual(abs(axis.spacing or 0))
        if " since " not in axis.units
    ]
    return ", ".join(parts)


def _is_usual(step: float) -> bool:
    """True for a step of an axis that is neither 0 nor too small or large to compute with."""
    return _LEAST_STEP <= step <= _LARGEST_STEP


def is_time(axis: Axis) -> bool:
    """True if the name, the kind or the units of an axis are those of a time."""
    units = axis.units or ""
    named = (axis.name or "").lower() in _TIMES or axis.kind == "time"
    return named or units in _UNITS_OF_TIME or " since " in units


def scale_bar(hanging: Hanging, columns: int) -> tuple[float, str] | None:
    """The scale bar of a picture of so many columns: its share of the width, and its length.

    The length is round and has the unit; None without a unit.
    """
    if hanging.steps is None or not hanging.units:
        return None
    whole = columns * hanging.steps[1]
    most = whole * BAR_SHARE
    power = 10.0 ** floor(log10(most))
    length = max(step * power for step in (1, 2, 5) if step * power <= most)
    return length / whole, f"{length:g} {hanging.units}"
