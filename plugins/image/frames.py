"""The frames of a GIF file, composed on the screen as viewers do it."""

from __future__ import annotations

from contextlib import closing

import numpy as np

from raconvert.errors import Corrupt

from .backend import decoded
from .gif import DISPOSED, GREY, MAX_COLORS, RESTORED, Blocks, single_frame
from .stack import Stack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from raconvert.plugin import Source

    from .gif import Frame

    Values = np.ndarray[Any, Any]

BAND_PIXELS = 1 << 16  # drawn at once: numpy has about 16 bytes for each of them


class Frames(Stack):
    """Array source: what the screen shows after each frame, or the `indices` of the only one.

    A frame can be seen only after all those before it have been drawn.
    """

    def __init__(
        self,
        source: Source,
        shape: tuple[int, ...],
        count: int,
        *,
        indices: bool,
    ) -> None:
        super().__init__(source, shape, np.dtype("u1"), count)
        self._indices = indices

    def images(self, first: int) -> Generator[Values, None, None]:
        """Yield what is seen from frame `first` on."""
        screen = np.zeros((0, 0), np.uint32)  # R, G, B, A in the order of the bytes
        blocks = Blocks(self.source)
        with closing(blocks.frames()) as frames:
            for number, frame in enumerate(frames):
                values = self._decoded(frame, number)
                if self._indices:
                    yield _alone(frame, values, blocks)
                    return
                if not number:
                    screen = np.zeros(blocks.size[::-1], np.uint32)
                place = screen[
                    frame.top : frame.top + frame.height, frame.left : frame.left + frame.width
                ]
                below = place.copy() if frame.disposal == RESTORED else None
                _draw(place, values, frame, number)
                del values
                if number >= first:
                    yield self._seen(screen)
                if below is not None:
                    place[:] = below
                    del below
                elif frame.disposal == DISPOSED:
                    place[:] = 0

    def _decoded(self, frame: Frame, number: int) -> Values:
        """Return the indices of a frame, (height, width)."""
        start, nbytes = frame.data
        what = f"frame {number} of the GIF image"
        data = self.source.read_exact(start, nbytes, what)
        file = single_frame(frame.width, frame.height, frame.interlaced, data)
        values = decoded(file, self.source.path, what)
        if values.shape != (frame.height, frame.width) or values.dtype != np.uint8:
            raise Corrupt(f"{what} cannot be decoded", path=self.source.path, where=f"byte {start}")
        return values

    def _seen(self, screen: Values) -> Values:
        """Return a copy of the screen with as many channels as the array has."""
        channels = self.shape[-1] if len(self.shape) - (self.count > 1) == 3 else 1
        pixels = screen.view(np.uint8).reshape(*screen.shape, 4)
        return pixels[..., :channels].copy().reshape(self.shape[self.count > 1 :])


def _draw(place: Values, values: Values, frame: Frame, number: int) -> None:
    """Draw the indices of a frame on its place, band by band."""
    table = _table(frame)
    rows = max(1, BAND_PIXELS // frame.width)
    for top in range(0, frame.height, rows):
        band = values[top : top + rows]
        # Where nothing is below, the colour that the file has for transparent pixels is kept.
        visible = True if frame.clear is None or not number else band != frame.clear
        np.copyto(place[top : top + rows], table[band], where=visible)


def _alone(frame: Frame, values: Values, blocks: Blocks) -> Values:
    """Return the indices on the whole screen: beside the frame it is transparent, or background."""
    beside = blocks.background if frame.clear is None else frame.clear
    screen = np.full(blocks.size[::-1], beside, np.uint8)
    screen[frame.top : frame.top + frame.height, frame.left : frame.left + frame.width] = values
    return screen


def _table(frame: Frame) -> Values:
    """Return the colours of a frame as uint32; black where its palette ends."""
    table = np.zeros((MAX_COLORS, 4), np.uint8)
    palette = np.frombuffer(frame.palette or GREY, np.uint8).reshape(-1, 3)
    table[: len(palette), :3] = palette
    table[:, 3] = 255
    if frame.clear is not None:
        table[frame.clear, 3] = 0
    return table.view(np.uint32)[:, 0]
