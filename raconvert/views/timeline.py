"""A strip through time: one plane of an array at a few times, in the same colours.

Time is the axis that says so, else the slowest of the axes around the planes of an array of four
axes or more.
"""

from __future__ import annotations

from math import prod

import numpy as np

from raconvert.arrays.layout import COLOR, IMAGE, layout_of
from raconvert.arrays.sources import is_decoded_whole
from raconvert.declared import Record
from raconvert.views.hanging import is_time
from raconvert.views.planes import key_text, middle_key, plane_at
from raconvert.views.sample import DECODED, Frame, Sample, value_at
from raconvert.views.terminal import number_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.layout import Layout
    from raconvert.arrays.metadata import Axis

MOST_TIMES = 6


class Times(Record):
    """A plane at some times: the array of the first, the sample of all, and their titles."""

    array: Array
    sampled: Sample
    titles: list[str]
    text: str


def time_axis(array: Array, layout: Layout) -> int | None:
    """The axis of time around the planes of an array, as it is indexed; None without any."""
    last = array.ndim - 1
    outer = [last - at if array.index_order == "F" else at for at in layout.outer]
    axes = array.axes
    for at in outer:
        if array.shape[at] > 1 and is_time(axes[at]):
            return at
    return outer[0] if len(outer) > 1 and not _is_component(axes[outer[0]]) else None


def _is_component(axis: Axis) -> bool:
    """True for an axis of channels, components or named things, through which nothing moves."""
    return axis.labels is not None or axis.kind in ("list", "vector", "component", "space")


def time_indices(length: int) -> list[int]:
    """The indices of a few times at even distances, the first and the last among them."""
    count = min(length, MOST_TIMES)
    return [round(at) for at in np.linspace(0, length - 1, count).tolist()]


def title_of(axis: Axis, at: int, length: int) -> str:
    """The time at an index: ``t = 30 s``; without coordinates the index alone."""
    value = value_at(axis, at, length)
    name = axis.name or ("t" if is_time(axis) else "")
    if value is None:
        return f"{name} {at}".strip() if name else f"number {at}"
    units = f" {axis.units}" * bool(axis.units)
    return f"{name or 'at'} = {value if isinstance(value, str) else number_text(value)}{units}"


def times_of(array: Array) -> Times | None:
    """The middle plane of an array at some times; None for fewer than four axes, or if it is dear.

    Raises what reading elements raises.
    """
    layout = layout_of(array)
    if layout.form not in (IMAGE, COLOR) or len(layout.outer) < 2:
        return None
    axis = time_axis(array, layout)
    if axis is None:
        return None
    seen = array.ndim - 1 - axis if array.index_order == "F" else axis
    key = middle_key(array, layout)
    if is_decoded_whole(array.data if array.extent is None else None) and array.nbytes > DECODED:
        return _of_front(array, key, axis) if seen == layout.outer[0] else None
    planes, frames = [], []
    times = time_indices(array.shape[axis])
    for at in times:
        key[axis] = at
        plane = plane_at(array, [*key], DECODED // 2 // len(times))
        if plane is None:
            return None
        planes.append(plane)
        frames.append(plane.sampled.frames[0]._replace(key=plane.key, number=at))
    joined = Sample(planes[0].sampled.form, tuple(frames), "", whole=False)
    return _titled(array, axis, planes[0].array, joined, "")


def _of_front(array: Array, key: list[Any], axis: int) -> Times | None:
    """The middle plane at the first times, of an array that is decoded front to back."""
    seen = array.dims[::-1]
    volume = prod(seen[1:])
    count = min(seen[0], DECODED // (volume * array.element.nbytes))
    if count < 2 or any(length == 1 for length in seen):
        return None
    pieces, elements = [], 0
    for piece in array.data.stream(1 << 20):
        pieces.append(np.array(piece.reshape(-1)[: count * volume - elements]))
        elements += len(pieces[-1])
        if elements >= count * volume:
            break
    front = np.concatenate(pieces).reshape(count, *seen[1:])
    column_major = array.index_order == "F"
    frames = []
    for at in time_indices(count):
        key[axis] = at
        plane = front[tuple(key[::-1] if column_major else key)]
        frames.append(Frame(plane.T if column_major else plane, key_text(key), (), at))
    key[axis] = 0
    first = array.slicer[tuple(key)]
    if layout_of(first).form != IMAGE:
        return None
    text = f"of the first {count} of {seen[0]:,}, which are decoded front to back"
    return _titled(array, axis, first, Sample(IMAGE, tuple(frames), "", whole=False), text)


def _titled(array: Array, axis: int, first: Array, sampled: Sample, text: str) -> Times:
    """The frames of a sample with their times as titles."""
    titles = [
        title_of(array.axes[axis], frame.number, array.shape[axis]) for frame in sampled.frames
    ]
    return Times(first, sampled, titles, text)
