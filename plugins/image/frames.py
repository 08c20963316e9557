"""Animations: frames that are composed front to back, as one array with a time axis.

The frames are (frames, height, width, channels). Their durations are the spacing of the time axis,
in milliseconds, if all are equal; else its labels are the times at which the frames begin, and the
namespace ``image`` has the list ``durations``. ``loop`` is the number of repeats in the file, 0 for
ever.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key, is_basic, range_of
from raconvert.arrays.sources import Decoded
from raconvert.files.inflate import MAX_RATIO
from raconvert.plugin import Array, Axis, Bundle, element, facts_of_axes, trailing_note

from .metadata import field, metadata_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from raconvert.plugin import Source

    Values = np.ndarray[Any, Any]
    Compose = Callable[[int, int], Iterator[Values]]  # the frames from one number to another

RANK = 4  # frames, height, width, channels
MILLISECONDS = {"s": 1000, "ms": 1}
CANVAS_BYTES = 24  # for a pixel: the canvas, the frame on it, and the copies of a library
LOOPS = range(1 << 16)  # numbers of repeats that GIF and WebP can store


class Frames(Decoded):
    """Frames of bytes, in order; `compose` yields those of a range."""

    def __init__(self, shape: tuple[int, ...], source: Source, compose: Compose) -> None:
        what = f"'{source.path}'"
        super().__init__(shape, np.dtype("u1"), what=what, max_memory=source.max_memory)
        self._compose = compose

    @property
    def by_regions(self) -> bool:
        """True if all frames together are above the memory allowed."""
        return self.nbytes > self.max_memory

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in stored order."""
        for frame in self._compose(0, self.shape[0]):
            flat = frame.reshape(-1)
            yield from (flat[n : n + max_bytes] for n in range(0, flat.size, max_bytes))

    def __getitem__(self, key: Any) -> Any:
        """Read a region; frames behind it are not composed."""
        full = full_key(key, len(self.shape))
        if self.held() is not None or not is_basic(full):
            return super().__getitem__(key)
        start, stop, inside = range_of(full[0], self.shape[0])
        shape = (stop - start, *self.shape[1:])
        check_memory(prod(shape), self.max_memory, f"this part of {self.what}")
        values = np.empty(shape, self.dtype)
        for index, frame in enumerate(self._compose(start, stop) if stop > start else ()):
            values[index] = frame
        return values[(inside, *full[1:])]


def animation(
    source: Source, form: str, size: tuple[int, int, int], durations: Sequence[int],
    compose: Compose, *, fields: dict[str, Any], notes: Sequence[str] = (), end: int = 0,
) -> Bundle:  # fmt: skip
    """The bundle of an animation whose frames have one `size`: height, width, channels.

    A single frame has no axis of time. `durations` are in milliseconds, one for each frame; `end`
    is the offset of the end of the animation. Raises `TooLarge` if one frame is above the memory
    allowed, or all of them together if they are a thousand times the file.
    """
    frames = Frames((len(durations), *size), source, compose)
    pixels, what = size[0] * size[1], f"{frames.what}: a frame of {size[0]} × {size[1]} pixels"
    check_memory(CANVAS_BYTES * pixels, source.max_memory, what)
    if frames.nbytes > MAX_RATIO * source.size:
        check_memory(frames.nbytes, source.max_memory, f"{frames.what}: all its frames together")
    axis, more = time_axis(durations, source.limits.axis_labels)
    meta = metadata_of({**fields, **more})
    many = len(durations) > 1
    shape = frames.shape if many else size
    meta = meta.replace(axes=[axis, *[Axis()] * 3]) if many else meta
    behind = source.size - end
    after = [trailing_note(behind, f"the end of the {form} animation")] if behind > 0 else []
    array = Array(
        element("uint", 1), shape[::-1], data=lambda: frames if many else frames[0],
        name=source.stem, index_order="C", meta=meta, storage={"frames": len(durations)},
    )  # fmt: skip
    return Bundle([array], notes=[*notes, *after])


def time_axis(durations: Sequence[int], most: int) -> tuple[Axis, dict[str, Any]]:
    """The axis of frames with these durations in milliseconds, and further fields for them.

    The times become labels if there are at most `most` frames.
    """
    if len({*durations}) == 1:
        step = durations[0] or None
        return Axis("time", kind="time", units="ms" if step else None, spacing=step), {}
    labels = [*accumulate(durations[:-1], initial=0)] if len(durations) <= most else None
    return Axis("time", kind="time", units="ms", labels=labels), {"durations": [*durations]}


def durations_of(array: Array) -> list[int] | None:
    """The durations of frames in milliseconds; None if the first axis is not one of time.

    They are zeros if neither the namespace nor the spacing of the axis tells them.
    """
    axis = array.axes[0] if array.ndim == RANK and array.described and array.axes else None
    if axis is None or not (axis.kind == "time" or axis.units in MILLISECONDS):
        return None
    count = array.shape[0]
    listed: list[int] | None = field(array, "durations", list)
    if listed and len(listed) == count and all(type(duration) is int for duration in listed):
        starts = [*accumulate(listed[:-1], initial=0)]
        if axis.labels is None or list(axis.labels) == starts:
            return listed
    step = (axis.spacing or 0) * MILLISECONDS.get(axis.units or "", 0)
    return [int(step) if step == int(step) else 0] * count


def lost_of(array: Array, durations: Sequence[int], most: int) -> list[str]:
    """The facts about the axes that are lost if they are written as frames with these durations."""
    if not array.ra_axes:
        return []
    read_back = [*[Axis()] * 3, time_axis(durations, most)[0]]
    return facts_of_axes(array, [
        [name for name in Axis.FIELDS if getattr(axis, name) not in (None, getattr(other, name))]
        for axis, other in zip(array.ra_axes, read_back, strict=True)
    ])  # fmt: skip
