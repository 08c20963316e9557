"""Animations: frames that are composed front to back, as one array with a time axis.

The frames are (frames, height, width, channels). Their durations are the spacing of the time axis,
in milliseconds, if all are equal; else its labels are the times at which the frames begin, and the
namespace ``image`` has the list ``durations``. ``loop`` is how often the file says to repeat it, 0
for ever.
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
CANVAS_BYTES = 24  # of a pixel: the canvas, the frame on it, and what a library keeps of both


class Frames(Decoded):
    """Frames of bytes, in order; `compose` yields those of a range."""

    def __init__(self, shape: tuple[int, ...], source: Source, compose: Compose) -> None:
        what = f"'{source.path}'"
        super().__init__(shape, np.dtype("u1"), what=what, max_memory=source.max_memory)
        self._compose = compose

    @property
    def by_regions(self) -> bool:
        """True if there is no memory for all frames: then those before a region are passed."""
        return self.nbytes > self.max_memory

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in stored order."""
        for frame in self._compose(0, self.shape[0]):
            flat = frame.reshape(-1)
            yield from (flat[at : at + max_bytes] for at in range(0, flat.size, max_bytes))

    def __getitem__(self, key: Any) -> Any:
        """Read a region, and compose no frame behind it."""
        full = full_key(key, len(self.shape))
        if self.held() is not None or not is_basic(full):
            return super().__getitem__(key)
        start, stop, inside = range_of(full[0], self.shape[0])
        shape = (stop - start, *self.shape[1:])
        check_memory(prod(shape), self.max_memory, f"this part of {self.what}")
        values = np.empty(shape, self.dtype)
        for at, frame in enumerate(self._compose(start, stop) if stop > start else ()):
            values[at] = frame
        return values[(inside, *full[1:])]


def animation(
    source: Source, form: str, size: tuple[int, int, int], durations: Sequence[int],
    compose: Compose, *, fields: dict[str, Any], notes: Sequence[str] = (), end: int = 0,
) -> Bundle:  # fmt: skip
    """The bundle of an animation of frames of one size: height, width, channels.

    One frame has no axis of time. `durations` are in milliseconds, one for each frame; `end` is
    where the animation ends in the file. Raises `TooLarge` for frames that need more memory than
    there may be, one at a time, or all together for a file of a few bytes.
    """
    frames = Frames((len(durations), *size), source, compose)
    pixels, what = size[0] * size[1], f"{frames.what}: a frame of {size[0]} × {size[1]} pixels"
    check_memory(CANVAS_BYTES * pixels, source.max_memory, what)
    if frames.nbytes > MAX_RATIO * source.size:
        check_memory(frames.nbytes, source.max_memory, f"{frames.what}: all its frames together")
    axis, said = time_axis(durations, source.limits.axis_labels)
    meta = metadata_of({**fields, **said})
    many = len(durations) > 1
    shape = frames.shape if many else size
    meta = meta.replace(axes=[axis, *[Axis()] * 3]) if many else meta
    behind = source.size - end
    after = [trailing_note(behind, f"the end of the {form} animation")] if behind > 0 else []
    order: dict[str, Any] = {"name": source.stem, "index_order": "C", "meta": meta}
    order["storage"] = {"frames": len(durations)}
    array = Array(
        element("uint", 1), shape[::-1], data=lambda: frames if many else frames[0], **order
    )
    return Bundle([array], notes=[*notes, *after])


def time_axis(durations: Sequence[int], most: int) -> tuple[Axis, dict[str, Any]]:
    """The axis of frames of these durations in milliseconds, and fields that it has no word for.

    At most `most` frames have their times as labels.
    """
    if len({*durations}) == 1:
        step = durations[0] or None
        return Axis("time", kind="time", units="ms" if step else None, spacing=step), {}
    labels = [*accumulate(durations[:-1], initial=0)] if len(durations) <= most else None
    return Axis("time", kind="time", units="ms", labels=labels), {"durations": [*durations]}


def durations_of(array: Array) -> list[int] | None:
    """The durations in milliseconds of frames along a first axis of time; None if there is none.

    They are zeros if nothing tells them: then an animation has times, but no steps.
    """
    axis = array.axes[0] if array.ndim == RANK and array.described and array.axes else None
    if axis is None or not (axis.kind == "time" or axis.units in MILLISECONDS):
        return None
    count = array.shape[0]
    said: list[int] | None = field(array, "durations", list)
    if said and len(said) == count and all(type(one) is int for one in said):
        starts = [*accumulate(said[:-1], initial=0)]
        if axis.labels is None or list(axis.labels) == starts:
            return said
    step = (axis.spacing or 0) * MILLISECONDS.get(axis.units or "", 0)
    return [int(step) if step == int(step) else 0] * count


def lost_of(array: Array, durations: Sequence[int], most: int) -> list[str]:
    """The facts about the axes that frames of these durations do not tell when they are read."""
    back = [*[Axis()] * 3, time_axis(durations, most)[0]]
    return facts_of_axes(array, [
        [name for name in Axis.FIELDS if getattr(axis, name) not in (None, getattr(one, name))]
        for axis, one in zip(array.ra_axes, back, strict=True)
    ])  # fmt: skip
