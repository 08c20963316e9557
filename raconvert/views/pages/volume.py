"""A volume of a body as three stacks of planes: axial, coronal, sagittal, to be stepped through.

Each stack is one picture of all its planes below each other, of which a frame shows the middle one.
Where scripts run, the arrow keys and the wheel move it; without them the middle one stays.
"""

from __future__ import annotations

from json import dumps
from math import prod

import numpy as np

from raconvert.arrays.layout import IMAGE, Layout
from raconvert.arrays.space import World
from raconvert.declared import Record
from raconvert.views.filmstrip import ends_of
from raconvert.views.hanging import Hanging, hanging_of
from raconvert.views.numbers import comparable
from raconvert.views.pages.figures import color_bar, edges_of, ruler_of, source_of
from raconvert.views.pages.markup import text_of
from raconvert.views.picture import GRAY, Picture, Scale, colored, png_of, resized, scale_of
from raconvert.views.sample import DECODED, region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array

_PLANES = 25  # planes in a stack, an odd number
_SIDES = (160, 128, 96, 64, 48)  # sides in pixels, tried until the stacks fit `_BYTES`
_BYTES = 240_000  # bytes of the three pictures
_SHOWN = 280  # the longer side of a plane on the page, in pixels


MARK = 'class="stack"'  # in the markup of each stack, so that a page adds the script


class Stack(Record):
    """Planes of a volume along one axis: how they are hung, their keys, and their pictures."""

    name: str
    hanging: Hanging
    keys: list[str]
    planes: list[Any]
    shape: tuple[int, ...]


def stacks_of(array: Array) -> list[Stack]:
    """The three stacks of planes of an array with three axes in space; [] for any other array.

    Those of a body are hung and named. An array of more axes shows its first volume. Raises what
    reading raises.
    """
    stored = World.of(array.axes, array.meta.space) if array.described else None
    body = None if stored is None else stored.to("RAS")
    world = body or stored
    if world is None or len(world.spatial) != 3 or array.element.kind in ("user", "complex"):
        return []
    spatial = world.spatial
    lengths = [array.shape[axis] for axis in spatial]
    if min(lengths) < 2 or prod(lengths) * array.element.nbytes > DECODED:
        return []
    rank, column_major = array.ndim, array.index_order == "F"
    key: list[int | slice] = [slice(None) if axis in spatial else 0 for axis in range(rank)]
    volume = region(array, tuple(key[::-1] if column_major else key))
    volume = volume.T if column_major else volume
    stacks = []
    for along in range(3):
        axes = [axis for number, axis in enumerate(spatial) if number != along]
        seen = [rank - 1 - axis if column_major else axis for axis in axes]
        layout = Layout(IMAGE, min(seen), max(seen), -1, ())
        hanging = hanging_of(array, layout)
        if body is not None and not hanging.is_of_body:
            return []
        axis = spatial[along]
        name = hanging.name or f"across {array.axes[axis].name or f'axis {axis}'}"
        chosen = _planes_of(lengths[along])
        planes = [hanging.of(comparable(volume.take(number, axis=along))) for number in chosen]
        keys = [_key(key, axis, number) for number in chosen]
        stacks.append(Stack(name, hanging, keys, planes, planes[0].shape))
    return sorted(stacks, key=lambda stack: stack.name)


def _planes_of(length: int) -> list[int]:
    """The indices of the planes of a stack: all, or some at even distances with the middle one."""
    if length <= _PLANES:
        return list(range(length))
    return [(2 * number + 1) * length // (2 * _PLANES) for number in range(_PLANES)]


def _key(key: list[int | slice], axis: int, number: int) -> str:
    """The key of the plane at an index of an axis, in the words of Python."""
    parts = [number if at == axis else part for at, part in enumerate(key)]
    return f"[{', '.join(':' if isinstance(part, slice) else str(part) for part in parts)}]"


def volume(stacks: list[Stack], units: str | None) -> Iterator[str]:
    """Yield the figure of three stacks."""
    scale = scale_of([plane for stack in stacks for plane in stack.planes], GRAY)
    for side in _SIDES:
        coded = [_coded(stack, scale, side) for stack in stacks]
        if sum(len(data) for _, data in coded) <= _BYTES:
            break
    longest = max(max(_extent(stack)) for stack in stacks)
    yield '<figure>\n<div class="strip">\n'
    for stack, (_, data) in zip(stacks, coded, strict=True):
        high, wide = (max(1, round(_SHOWN * part / longest)) for part in _extent(stack))
        yield _framed(stack, high, wide, data)
    steps = {stack.hanging.text.partition(", elements ")[2] for stack in stacks} - {""}
    legend = [color_bar(scale, units) or text_of(ends_of(scale))]
    legend += [f"elements {text_of(' and '.join(sorted(steps)))}"] if steps else []
    legend += ["as radiologists hang it"] if stacks[0].hanging.is_of_body else []
    yield f"</div>\n<figcaption>{' · '.join(legend)}"
    yield '<span class="steps"> · step with the arrow keys or the wheel</span>'
    yield "</figcaption>\n</figure>\n"


def _extent(stack: Stack) -> tuple[float, float]:
    """The height and width of a plane in the units of its axes, or in elements without steps."""
    rows, columns = stack.shape
    down, right = stack.hanging.steps or (1.0, 1.0)
    return rows * down, columns * right


def _coded(stack: Stack, scale: Scale, side: int) -> tuple[tuple[int, int], bytes]:
    """The rows and columns of one plane, and the PNG of all of them below each other."""
    high, wide = stack.hanging.extent_of(stack.shape)
    factor = min(1.0, side / max(high, wide))
    size = max(1, round(high * factor)), max(1, round(wide * factor))
    pictures = [colored(resized(plane, *size), scale) for plane in stack.planes]
    pixels = np.concatenate([picture.pixels for picture in pictures])
    return size, png_of(Picture(pixels, pictures[0].palette))


def _framed(stack: Stack, high: int, wide: int, data: bytes) -> str:
    """One stack in a frame of `high` × `wide` pixels, which shows the middle plane."""
    count = len(stack.keys)
    middle = count // 2
    name = f"{stack.name} {stack.keys[middle]}"
    letters = edges_of(stack.hanging)
    ruler = ruler_of(stack.hanging, stack.shape[1])
    return (
        f'<div {MARK} style="max-width:{wide}px" role="group" '
        f'aria-label="{text_of(stack.name)}" tabindex="0" '
        f'data-keys="{text_of(dumps(stack.keys))}" data-at="{middle}" data-high="{high}">'
        f'<span class="hung window" style="width:{wide}px;height:{high}px">'
        f'<img alt="{text_of(name)}" width="{wide}" height="{high * count}" '
        f'style="margin-top:{-middle * high}px" src="{source_of(data)}">{letters}</span>{ruler}'
        f'<span class="title">{text_of(stack.name)} '
        f"<code>{text_of(stack.keys[middle])}</code></span></div>\n"
    )


SCRIPT = """
for (const stack of document.querySelectorAll(".stack")) {
  const keys = JSON.parse(stack.dataset.keys), high = Number(stack.dataset.high);
  const image = stack.querySelector("img"), code = stack.querySelector("code");
  let at = Number(stack.dataset.at);
  const step = (by) => {
    at = Math.min(keys.length - 1, Math.max(0, at + by));
    image.style.marginTop = -at * high + "px";
    code.textContent = keys[at];
    image.alt = stack.getAttribute("aria-label") + " " + keys[at];
  };
  stack.addEventListener("wheel", (event) => {
    event.preventDefault(); step(event.deltaY > 0 ? 1 : -1);
  }, { passive: false });
  stack.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (by) { event.preventDefault(); step(by); }
  });
}
"""
