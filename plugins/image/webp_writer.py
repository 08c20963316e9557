"""Animations of WebP: every frame a whole image without loss, so that each comes back as it is.

libwebp's own encoder of animations leaves frames out that are equal to the one before, and adds
transparency to colours; hence the chunks are put together here.
"""

from __future__ import annotations

import struct
from io import BytesIO
from math import prod
from typing import TYPE_CHECKING

from PIL import Image

from raconvert.arrays.blocks import block_bytes, runs
from raconvert.arrays.memory import check_memory
from raconvert.errors import TooLarge
from raconvert.files.paths import name_of_open

from .frames import CANVAS_BYTES, LOOPS
from .metadata import field
from .reader import guarded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.plugin import Array, Target

ANIMATED, ALPHA, NO_BLENDING = 2, 16, 2
MOST_BYTES = 0xFFFFFFFE  # largest length in the header of RIFF
FIRST, LENGTH_AT = 12, 4  # offsets of the first chunk, and of the length of all


def write_frames(array: Array, durations: Sequence[int], target: Target) -> None:
    """Write an animation of (frames, height, width, channels); one frame at a time is in memory."""
    _, height, width, channels = array.shape
    size, what = (height, width, channels), f"a frame of array '{array.name}'"
    check_memory(CANVAS_BYTES * height * width, target.max_memory, what)
    flags = ANIMATED | (ALPHA if channels == 4 else 0)
    loop = loop_of(array)
    parts = target.counted(runs(array, prod(size), block_bytes(target.max_memory)))
    extent = _three(width - 1) + _three(height - 1)
    with open(name_of_open(target.open(), target.temp), "r+b") as file:
        file.write(b"RIFF\0\0\0\0WEBP")
        file.write(_chunk(b"VP8X", bytes([flags, 0, 0, 0]) + extent))
        file.write(_chunk(b"ANIM", struct.pack("<IH", 0, loop)))
        for values, duration in zip(parts, durations, strict=True):
            header = bytes(6) + extent + _three(duration) + bytes([NO_BLENDING])
            file.write(_chunk(b"ANMF", header + _image(values.reshape(size))))
        nbytes = file.tell() - 8
        if nbytes > MOST_BYTES:
            raise TooLarge(
                "becomes larger than a WebP can be", path=target.path, got=nbytes,
                expected=f"at most {MOST_BYTES} bytes",
                remedy="write the frames as TIFF, or as images with `--planes`",
            )  # fmt: skip
        file.seek(LENGTH_AT)
        file.write(struct.pack("<I", nbytes))


def loop_of(array: Array) -> int:
    """The number of repeats in the metadata; 0 (for ever) if WebP cannot store it."""
    loop = field(array, "loop", int)
    return loop if loop in LOOPS else 0


def _image(values: Any) -> bytes:
    """The chunk of one lossless image, cut out of a WebP that Pillow writes."""
    file = BytesIO()
    with guarded(None, "the frame to write"):
        Image.fromarray(values).save(file, "WEBP", lossless=True, exact=True)
    data = file.getvalue()
    at = FIRST
    while data[at : at + 4] != b"VP8L":
        nbytes = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + nbytes + nbytes % 2
    return _chunk(b"VP8L", data[at + 8 : at + 8 + int.from_bytes(data[at + 4 : at + 8], "little")])


def _chunk(name: bytes, data: bytes) -> bytes:
    """The bytes of a chunk, with its padding."""
    return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


def _three(number: int) -> bytes:
    """A number in three bytes."""
    return number.to_bytes(3, "little")
