"""Frames of an animated WebP, composed by libwebp on a canvas that is transparent."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported

from .frames import animation
from .reader import contents, fields_of, guarded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Bundle, Source

    Values = np.ndarray[Any, Any]

FLAGS_AT, ALPHA = 20, 16  # offset of the flags of the canvas, and the bit of alpha
FIRST_CHUNK = 12  # its offset
DISPOSE = 1  # bit of the flags of a frame
FRAME = struct.Struct("<3s3s3s3s3sB")  # left and top in pairs, width and height less one, ms, flags


class Frame(Record):
    """A frame: if it fills the canvas, if it is cleared afterwards, and its duration in ms."""

    fills: bool
    cleared: bool
    duration: int


def read_frames(source: Source, end: int) -> Bundle:
    """The bundle of an animation; `end` is the offset of the end of its last chunk."""
    data = contents(source)
    height, width, frames, loop = _walk(data, end, source)
    alpha = bool(data[FLAGS_AT] & ALPHA)
    covered = frames[0].fills and not any(frame.cleared for frame in frames[:-1])
    size = height, width, 4 if alpha or not covered else 3
    # libwebp shows the pixels that no frame sets only on a canvas with alpha.
    with_alpha = data[:FLAGS_AT] + bytes([data[FLAGS_AT] | ALPHA]) + data[FLAGS_AT + 1 : end]

    def compose(begin: int, stop: int) -> Iterator[Values]:
        with BytesIO(with_alpha) as file:
            with guarded(source.path, "the WebP animation"):
                image = Image.open(file, formats=("WEBP",))
            for number in range(begin, stop):
                with guarded(source.path, f"frame {number}"):
                    yield _frame(image, number, (height, width), size[2], source.path)

    with BytesIO(with_alpha) as file, guarded(source.path, "the WebP animation"):
        image = Image.open(file, formats=("WEBP",))
        if getattr(image, "n_frames", 1) != len(frames) or image.size != (width, height):
            raise Corrupt("does not have the frames that its chunks announce", path=source.path)
        fields = fields_of({str(key): image.info[key] for key in image.info if key != "loop"})
    durations = [frame.duration for frame in frames]
    return animation(
        source, "WebP", size, durations, compose, fields={**fields, "loop": loop}, end=end
    )


def _frame(image: Any, number: int, size: tuple[int, int], channels: int, path: str) -> Values:
    """Decode one composed frame of 3 or 4 channels."""
    image.seek(number)
    values = np.array(image)
    if image.mode != "RGBA" or values.shape[:2] != size:
        raise Corrupt("frame is not what its header says", path=path)
    if channels == 3 and values[..., 3].min() < 255:
        raise Corrupt("has transparent pixels that its header does not announce", path=path)
    return np.ascontiguousarray(values[..., :channels])


def _walk(data: bytes, end: int, source: Source) -> tuple[int, int, list[Frame], int]:
    """Walk through the chunks: height and width of the canvas, the frames, number of repeats."""
    path, at, frames, loop = source.path, FIRST_CHUNK, list[Frame](), 0
    width, height = (1 + int.from_bytes(data[n : n + 3], "little") for n in (24, 27))
    while at + 8 <= end:
        name, nbytes = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if at + 8 + nbytes > end:
            raise Corrupt("has a chunk that is cut off", path=path, where=f"byte {at}")
        if name == b"ANIM" and nbytes >= 6:
            loop = int.from_bytes(data[at + 12 : at + 14], "little")
        elif name == b"ANMF":
            frames.append(_parsed_frame(data[at + 8 : at + 8 + nbytes], (width, height), at, path))
        if len(frames) > source.limits.image_frames:
            expected = f"at most {source.limits.image_frames} frames"
            raise Unsupported("has very many frames", path=path, expected=expected)
        at += 8 + nbytes + nbytes % 2
    if not frames:
        raise Corrupt("is an animation without frames", path=path)
    return height, width, frames, loop


def _parsed_frame(data: bytes, canvas: tuple[int, int], offset: int, path: str) -> Frame:
    """The frame in a chunk. Raises `Corrupt` if it leaves the canvas or has another size."""
    where = f"byte {offset}"
    if len(data) < FRAME.size:
        raise Corrupt("has a frame without its header", path=path, where=where)
    *numbers, flags = FRAME.unpack_from(data)
    left, top, width, height, duration = (int.from_bytes(number, "little") for number in numbers)
    left, top, width, height = 2 * left, 2 * top, width + 1, height + 1
    if left + width > canvas[0] or top + height > canvas[1]:
        raise Corrupt("has a frame that is not inside its canvas", path=path, where=where)
    if _image_size(data) != (width, height):
        raise Corrupt("has a frame without an image of its size", path=path, where=where)
    return Frame((width, height) == canvas, bool(flags & DISPOSE), duration)


def _image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of the first image among the chunks of a frame."""
    at = FRAME.size
    while at + 18 <= len(data) or data[at : at + 4] == b"VP8L":
        name, head = data[at : at + 4], data[at + 8 : at + 18]
        if name == b"VP8L":
            bits = int.from_bytes(head[1:5], "little")
            return (1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
        if name == b"VP8 ":
            width, height = struct.unpack_from("<HH", head, 6)
            return width & 0x3FFF, height & 0x3FFF
        nbytes = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + nbytes + nbytes % 2
    return None
