"""Blocks of a GIF, and its frames, composed on its screen as browsers do."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported

from .frames import animation
from .reader import contents, guarded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from raconvert.plugin import Bundle, Source

    Values = np.ndarray[Any, Any]

MAGICS = (b"GIF87a", b"GIF89a")
EXTENSION, FRAME, END, CONTROL = b"!,;\xf9"
# LZW: the string of a 12-bit code has at most 4096 pixels, and a byte holds 2/3 of a code.
PIXELS_PER_BYTE = 4096
REMEDY = "write whole images first, for instance with ImageMagick: -coalesce +adjoin"
LOOP = b"\x0bNETSCAPE2.0\x03\x01"
DISPOSALS = NOT_SAID, KEEP, CLEAR, RESTORE = 0, 1, 2, 3
HEAD = 13  # bytes of the header and of the screen descriptor
OPAQUE = 255


class Frame(Record):
    """A frame: its offsets in the file, and its position on the screen.

    `start` is the offset of its block, `first` and `stop` are those of its compressed bytes.
    `control` is the offset and the length of its control block, (0, 0) without one.
    """

    start: int
    first: int
    stop: int
    control: tuple[int, int]
    left: int
    top: int
    width: int
    height: int
    palette_bytes: int
    disposal: int
    duration: int  # milliseconds
    clear: int  # the transparent index, or -1
    fills: bool  # True if it is as large as the screen


def blocks_of(source: Source) -> tuple[int, list[Frame], int, int, int | None]:
    """The bytes before the blocks, the frames, the offset of the end block, and two counts.

    The counts are those of the blocks that are left out, and of the repeats (None if the file has
    no such block). Raises `Corrupt` for blocks that no GIF has and for a cut file, `Unsupported`
    for frames that are not read here.
    """
    try:
        return _blocks(contents(source), source)
    except (IndexError, struct.error):
        raise Corrupt("is cut off", path=source.path, where=f"byte {source.size}") from None


def _blocks(data: bytes, source: Source) -> tuple[int, list[Frame], int, int, int | None]:
    """Walk through the blocks; see `blocks_of`. Raises IndexError if the data is cut off."""
    path, frames, left_out = source.path, list[Frame](), 0
    at = screen = 13 + table_bytes(data[10])
    control, loop = (0, 0), None
    while (label := data[at]) != END:
        start, at = at, at + {EXTENSION: 2, FRAME: 11}.get(label, 0)
        if label == FRAME:
            at += table_bytes(data[start + 9])
        elif label not in (EXTENSION, 0):  # some writers leave an extra end of data
            raise Corrupt("unknown block", path=path, where=f"byte {start}")
        first = at
        while data[at]:
            at += 1 + data[at]
        at += 1
        if label == FRAME:
            frames.append(_frame(data, (start, first, at), control, source))
            control = (0, 0)
        elif label == EXTENSION and data[start + 1] == CONTROL:
            control = (start, at - start)
        elif label == EXTENSION and data[first : first + 14] == LOOP:
            loop = int.from_bytes(data[first + 14 : first + 16], "little")
        else:
            left_out += label == EXTENSION
        if len(frames) > source.limits.image_frames:
            expected = f"at most {source.limits.image_frames} frames"
            raise Unsupported("has very many frames", path=path, expected=expected)
    if not (frames and data.startswith(MAGICS)):
        raise Corrupt("has no image", path=path)
    return screen, frames, at, left_out, loop


def _frame(
    data: bytes, offsets: tuple[int, int, int], control: tuple[int, int], source: Source
) -> Frame:
    """A frame, checked against its screen and its bytes; `offsets` are start, first and stop."""
    start, first, stop = offsets
    left, top, width, height = struct.unpack_from("<4H", data, start + 1)
    wide, high = struct.unpack_from("<HH", data, 6)
    flags, delay, clear = 0, 0, 0
    if control[1]:
        flags, delay, clear = struct.unpack_from("<BHB", data, control[0] + 3)
    path, where = source.path, f"byte {start}"
    if not 1 <= data[first - 1] <= 8:
        raise Corrupt("has a code size that GIF does not allow", path=path, where=where)
    if left + width > wide or top + height > high:
        what = "has a frame that is not inside its screen"
        raise Unsupported(what, path=path, where=where, remedy=REMEDY)
    if width * height > PIXELS_PER_BYTE * (stop - first) or not width * height:
        what = f"declares {width} × {height} pixels, more than its compressed bytes can hold"
        raise Corrupt(what, path=path, where=where)
    disposal = flags >> 2 & 7
    if disposal not in DISPOSALS:
        what = f"has disposal method {disposal}, which GIF does not define"
        raise Unsupported(what, path=path, where=where, remedy=REMEDY)
    return Frame(
        start, first, stop, control, left, top, width, height, table_bytes(data[start + 9]),
        disposal, 10 * delay, clear if flags & 1 else -1, (width, height) == (wide, high),
    )  # fmt: skip


def table_bytes(flags: int) -> int:
    """The bytes of the colour table that these flags announce."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def read_frames(
    source: Source, screen: int, frames: list[Frame], *, end: int, loop: int | None,
    notes: Sequence[str],
) -> Bundle:  # fmt: skip
    """The bundle of composed frames; `screen` is the number of bytes before the first block."""
    head = source.read_exact(0, screen, "the header")
    width, height = (int.from_bytes(head[n : n + 2], "little") for n in (6, 8))
    first = frames[0]
    opaque = _is_whole(first) and all(frame.disposal != CLEAR for frame in frames[:-1])
    size = height, width, 3 if opaque else 4

    def compose(begin: int, stop: int) -> Iterator[Values]:
        whole = (number for number in range(begin, 0, -1) if _is_whole(frames[number]))
        start = next(whole, 0)  # the last frame that does not need those before it
        canvas = np.zeros((height, width, 4), np.uint8)
        for number in range(start, stop):
            frame = frames[number]
            rows, columns = (slice(frame.top, frame.top + frame.height),
                             slice(frame.left, frame.left + frame.width))  # fmt: skip
            region = canvas[rows, columns]
            before = region.copy() if frame.disposal == RESTORE else 0
            indices, colours = _decoded(source, head, frame, number)
            drawn = indices != frame.clear
            region[drawn] = colours[indices[drawn]]
            if number >= begin:
                yield np.ascontiguousarray(canvas[..., : size[2]])
            if frame.disposal in (CLEAR, RESTORE):
                region[...] = before

    durations = [frame.duration for frame in frames]
    fields = {"loop": loop}
    return animation(source, "GIF", size, durations, compose, fields=fields, notes=notes, end=end)


def _is_whole(frame: Frame) -> bool:
    """True if a frame covers the screen, so that those before it are not needed."""
    return frame.fills and frame.clear < 0 and frame.disposal != RESTORE


def _decoded(source: Source, head: bytes, frame: Frame, number: int) -> tuple[Values, Values]:
    """Decode a frame; return its indices, and the colours of its palette, RGBA."""
    start = frame.start + 10
    local = source.read_exact(start, frame.palette_bytes, "a palette")
    palette = local or head[HEAD:]
    colours = np.full((len(palette) // 3, 4), OPAQUE, np.uint8)
    colours[:, :3] = np.frombuffer(palette, np.uint8).reshape(-1, 3)
    if not len(colours):
        where = f"byte {frame.start}"
        raise Corrupt("has a frame without a palette", path=source.path, where=where)
    descriptor = source.read_exact(frame.start, 10, "a frame")
    coded = source.read_exact(frame.first - 1, frame.stop - frame.first + 1, "a frame")
    parts = (
        head[:6], descriptor[5:9], head[10:], bytes([FRAME]), bytes(4), descriptor[5:], local,
        coded, bytes([END]),
    )  # fmt: skip
    with (
        guarded(source.path, f"frame {number}"),
        Image.open(BytesIO(b"".join(parts)), formats=("GIF",)) as image,
    ):
        # A palette of the grey values in order gives grey, which is the indices then.
        indices = np.array(image)
        if image.mode not in ("P", "L") or indices.shape != (frame.height, frame.width):
            raise Corrupt("frame is not what its header says", path=source.path)
    drawn = indices[indices != frame.clear]  # Pillow writes a transparent index above the palette
    if drawn.max(initial=0) >= len(colours):
        raise Corrupt("has pixels of colours that its palette does not have", path=source.path)
    return indices, colours
