"""Animated PNG: the images of a file, and their composition (clauses 11.3.2, 13.1).

A default image outside the animation is image 0, as in Pillow, imageio and libpng.
Frames are composed in the channels of the file; without an alpha plane, pixels that no frame covers
are 0.
"""

from __future__ import annotations

from math import prod
from struct import Struct

import numpy as np

from raconvert.arrays.memory import check_memory
from raconvert.errors import Corrupt

from .header import check_inflation
from .pixels import Expansion, color_key, decode
from .tables import PALETTE, Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from .header import Header, Png
    from .pixels import Samples
    from .tables import Control

ACTL = Struct(">II")  # number of frames, number of plays
SEQUENCE = Struct(">I")
KEEP, BACKGROUND, PREVIOUS = 0, 1, 2  # dispose: of a frame's region once it was shown
SOURCE, OVER = 0, 1  # blend: of a frame's pixels with the canvas


def images_of(png: Png) -> list[Frame]:
    """The images of a file in order, checked; a still image has no control. Raises `Corrupt`."""
    control = png.first(b"acTL")
    count = 0 if control is None else ACTL.unpack(control)[0]
    if count == 0:
        return [Frame(None, png.idat)]
    if len(png.frames) < count:
        raise Corrupt(
            "the animation is not complete",
            path=png.path,
            expected=f"{count} frames (acTL)",
            got=len(png.frames),
        )
    frames = png.frames[:count]
    beyond = len(png.frames) - count
    if beyond:
        png.note(f"{beyond} frames beyond the {count} of acTL were ignored")
    _check_sequence(png, frames)
    for number, frame in enumerate(frames):
        _check_frame(png, number, frame)
    if frames[0].spans is png.idat:
        return frames
    png.note("image 0 is the default image, which does not belong to the animation")
    return [Frame(None, png.idat), *frames]


def animation_fields(png: Png, images: list[Frame]) -> dict[str, Any]:
    """The field ``animation``: the number of plays, and each frame's delay in seconds."""
    control = png.first(b"acTL")
    if control is None:
        return {}
    delays = [[f.control.delay_num, f.control.delay_den or 100] for f in images if f.control]
    return {"animation": {"plays": ACTL.unpack(control)[1], "delays": delays}}


def _check_sequence(png: Png, frames: list[Frame]) -> None:
    """Raise `Corrupt` unless fcTL and fdAT chunks are numbered without gaps in file order."""
    numbers: list[Any] = []
    for control, spans in frames:
        numbers.append(None if control is None else control.sequence)
        numbers += [SEQUENCE.unpack(span.lead)[0] for span in spans if span.lead]
    for expected, number in enumerate(numbers):
        if number != expected:
            raise Corrupt(
                "the animation's chunks are out of order",
                path=png.path,
                expected=f"sequence number {expected}",
                got="a frame without control" if number is None else number,
            )


def _check_frame(png: Png, number: int, frame: Frame) -> None:
    """Raise `Corrupt` for a frame without pixels, outside the image, or of unknown operations."""
    control, spans = frame
    header = png.header
    fault = None
    if not spans or (number > 0 and spans is png.idat):
        fault = "has no pixels of its own"
    elif not (
        0 < control.width <= header.width - control.x
        and 0 < control.height <= header.height - control.y
    ):
        fault = f"lies outside the image: {control.width} x {control.height} at {control[3:5]}"
    elif spans is png.idat and control[1:3] != header[:2]:
        fault = "is the default image, but not as large"
    elif control.dispose > PREVIOUS or control.blend > OVER:
        fault = f"has an unknown operation: dispose {control.dispose}, blend {control.blend}"
    if fault is not None:
        raise Corrupt(f"frame {number} of the animation {fault}", path=png.path)
    check_inflation(spans, _frame_header(header, control), png.path)


def _frame_header(header: Header, control: Control | None) -> Header:
    """The header of a frame: that of the file in the size of the frame."""
    if control is None:
        return header
    return header._replace(width=control.width, height=control.height)


def compose(
    file: BinaryIO,
    png: Png,
    images: list[Frame],
    expansion: Expansion,
    *,
    path: str,
    max_memory: int,
) -> Samples:
    """Decode all images, composed: shape (images, height, width[, channels]). Raises `TooLarge`."""
    shape = expansion.shape(png.header.width, png.header.height)
    need = (len(images) + 3) * prod(shape) * expansion.dtype.itemsize
    check_memory(need, max_memory, f"'{path}' with all frames")
    out = np.empty((len(images), *shape), expansion.dtype)
    canvas = np.zeros(shape, expansion.dtype)
    for image, (control, spans) in zip(out, images, strict=True):
        header = _frame_header(png.header, control)
        pixels = decode(file, spans, header, expansion, png=png, max_memory=max_memory)
        if control is None:
            image[:] = pixels
            continue
        region = canvas[control.y :, control.x :][: control.height, : control.width]
        before = region.copy()
        region[:] = pixels if control.blend == SOURCE else _over(region, pixels, png, expansion)
        image[:] = canvas
        if control.dispose == BACKGROUND:
            region[:] = 0
        elif control.dispose == PREVIOUS:
            region[:] = before
    return out


def _over(below: Samples, above: Samples, png: Png, expansion: Expansion) -> Samples:
    """The pixels of `above` over `below` (clause 13.16), exact in integers, rounded to nearest."""
    if expansion.channels in (2, 4):
        return _blended(below, above)
    if png.trns is None or png.header.color_type == PALETTE:
        return above
    key = color_key(png) * expansion.scale
    colors = above if expansion.channels else above[..., None]
    visible = (colors != key).any(axis=-1, keepdims=expansion.channels > 0)
    return np.where(visible, above, below)


def _blended(below: Samples, above: Samples) -> Samples:
    """The pixels of `above` over `below`, both with an alpha plane."""
    full = int(np.iinfo(above.dtype).max)
    above_alpha = above[..., -1:].astype(np.uint64)
    below_alpha = below[..., -1:].astype(np.uint64) * (full - above_alpha)
    alpha = above_alpha * full + below_alpha  # in units of 1 / full^2
    colors = above[..., :-1] * (above_alpha * full) + below[..., :-1] * below_alpha
    visible = np.maximum(alpha, 1)
    blended = np.concatenate([(colors + visible // 2) // visible, (alpha + full // 2) // full], -1)
    return blended.astype(above.dtype)
