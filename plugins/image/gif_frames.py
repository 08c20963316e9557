"""Frames of a GIF, composed on its screen as browsers do."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from raconvert.errors import Corrupt

from .frames import animation
from .gif import CLEAR, END, FRAME, RESTORE
from .reader import guarded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from raconvert.plugin import Bundle, Source

    from .gif import Frame

    Values = np.ndarray[Any, Any]

HEAD = 13  # bytes of the header and the description of the screen
OPAQUE = 255


def read_frames(
    source: Source, screen: int, frames: list[Frame], *, end: int, loop: int | None,
    notes: Sequence[str],
) -> Bundle:  # fmt: skip
    """The bundle of frames that are composed; `screen` are the bytes before the first block."""
    head = source.read_exact(0, screen, "the header")
    width, height = (int.from_bytes(head[at : at + 2], "little") for at in (6, 8))
    first = frames[0]
    covered = first.fills and first.clear < 0 and first.disposal != RESTORE
    opaque = covered and all(frame.disposal != CLEAR for frame in frames[:-1])
    size = height, width, 3 if opaque else 4

    def compose(begin: int, stop: int) -> Iterator[Values]:
        start = max((n for n, frame in enumerate(frames[: begin + 1]) if _is_whole(frame)), default=0)
        canvas = np.zeros((height, width, 4), np.uint8)
        for number in range(start, stop):
            frame = frames[number]
            rows, columns = (slice(frame.top, frame.top + frame.height),
                             slice(frame.left, frame.left + frame.width))  # fmt: skip
            region = canvas[rows, columns]
            before = region.copy() if frame.disposal == RESTORE else 0
            indices, colours = _decoded(source, head, frame, number)
            region[indices != frame.clear] = colours[indices[indices != frame.clear]]
            if number >= begin:
                yield np.ascontiguousarray(canvas[..., : size[2]])
            if frame.disposal in (CLEAR, RESTORE):
                region[...] = before

    durations = [frame.duration for frame in frames]
    fields = {"loop": loop}
    return animation(
        source, "GIF", size, durations, compose, fields=fields, notes=notes, end=end
    )  # fmt: skip


def _is_whole(frame: Frame) -> bool:
    """True if nothing of the frames before is left once this one is drawn."""
    return frame.fills and frame.clear < 0 and frame.disposal != RESTORE


def _decoded(source: Source, head: bytes, frame: Frame, number: int) -> tuple[Values, Values]:
    """The indices of a frame, and the colours that they stand for, RGBA."""
    start = frame.start + 10
    local = source.read_exact(start, frame.palette_bytes, "a palette")
    palette = local or head[HEAD:]
    colours = np.full((len(palette) // 3, 4), OPAQUE, np.uint8)
    colours[:, :3] = np.frombuffer(palette, np.uint8).reshape(-1, 3)
    if not len(colours):
        raise Corrupt("has a frame without a palette", path=source.path, where=f"byte {frame.start}")
    place = source.read_exact(frame.start, 10, "a frame")
    coded = source.read_exact(frame.first - 1, frame.stop - frame.first + 1, "a frame")
    parts = (
        head[:6], place[5:9], head[10:], bytes([FRAME]), bytes(4), place[5:], local, coded,
        bytes([END]),
    )  # fmt: skip
    with (
        guarded(source.path, f"frame {number}"),
        Image.open(BytesIO(b"".join(parts)), formats=("GIF",)) as image,
    ):
        # A palette of the grey values in order gives grey, which is the indices then.
        indices = np.array(image)
        if image.mode not in ("P", "L") or indices.shape != (frame.height, frame.width):
            raise Corrupt("frame is not what its header says", path=source.path)
    if indices.max() >= len(colours):
        raise Corrupt("has pixels of colours that its palette has not", path=source.path)
    return indices, colours
