"""Animations of GIF: every frame a whole image with a palette of its own colours, all of them."""

from __future__ import annotations

import struct
from io import BytesIO
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from raconvert.arrays.blocks import block_bytes, runs
from raconvert.arrays.memory import check_memory
from raconvert.errors import WouldLose
from raconvert.files.copy import write_all

from .frames import CANVAS_BYTES, LOOPS
from .gif_frames import CONTROL, END, EXTENSION, FRAME, HEAD, KEEP, LOOP, table_bytes
from .metadata import field
from .reader import guarded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from raconvert.plugin import Array, Target

COLOURS = 256  # most in a palette
LOCAL_PALETTE = 0x87  # flags of a frame with a palette of its own, of 256 colours
NO_PALETTE = 0x70  # flags of a screen without a palette
STEP = 10  # milliseconds in a unit of durations


def write_frames(array: Array, durations: Sequence[int], target: Target) -> None:
    """Write an animation of (frames, height, width, 3); one frame at a time is in memory."""
    height, width = array.shape[1:3]
    what = f"a frame of array '{array.name}'"
    check_memory(CANVAS_BYTES * height * width, target.max_memory, what)
    write_all(target.open(), _pieces(array, durations, target))


def _pieces(array: Array, durations: Sequence[int], target: Target) -> Iterator[bytes]:
    """Yield the bytes of the file, frame by frame."""
    height, width = size = array.shape[1:3]
    yield b"GIF89a" + struct.pack("<HHBBB", width, height, NO_PALETTE, 0, 0)
    loop = field(array, "loop", int)
    if loop in LOOPS:
        yield bytes([EXTENSION, 0xFF]) + LOOP + struct.pack("<HB", loop, 0)
    frames = target.counted(runs(array, prod(size) * 3, block_bytes(target.max_memory)))
    for number, (values, duration) in enumerate(zip(frames, durations, strict=True)):
        indices, palette = _indexed(values.reshape(*size, 3), number, array.name, target.path)
        control = struct.pack("<BBBBHBB", EXTENSION, CONTROL, 4, KEEP << 2, duration // STEP, 0, 0)
        descriptor = struct.pack("<B4HB", FRAME, 0, 0, width, height, LOCAL_PALETTE)
        yield control + descriptor + palette + _coded(indices)
    yield bytes([END])


def _indexed(values: Any, number: int, name: str, path: str) -> tuple[Any, bytes]:
    """The indices of the pixels, and their palette. Raises `WouldLose` above 256 colours."""
    packed = values.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    colours, indices = np.unique(packed, return_inverse=True)
    if len(colours) > COLOURS:
        raise WouldLose(
            f"array '{name}' has a frame of {len(colours)} colours, and GIF has no more than 256",
            path=path, where=f"frame {number}",
            remedy="WebP, TIFF and NPY hold it; nothing was written",
        )  # fmt: skip
    palette = colours.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 1:].tobytes()
    return indices.reshape(values.shape[:2]).astype(np.uint8), palette.ljust(3 * COLOURS, b"\0")


def _coded(indices: Any) -> bytes:
    """The LZW data of a frame, cut out of a GIF that Pillow writes."""
    file = BytesIO()
    with guarded(None, "the frame to write"):
        Image.fromarray(indices).save(file, "GIF", optimize=False, interlace=0)
    data = file.getvalue()
    offset = HEAD + table_bytes(data[10])
    while data[offset] == EXTENSION:
        offset += 2
        while data[offset]:
            offset += 1 + data[offset]
        offset += 1
    return data[offset + 10 + table_bytes(data[offset + 9]) : -1]
