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
# LZW: the string of a 12-bit code has at most 4096 pixels, and there are 2/3 of a code in a byte.
PIXELS_PER_BYTE = 4096
REMEDY = "write whole images first, for instance with ImageMagick: -coalesce +adjoin"
LOOP = b"\x0bNETSCAPE2.0\x03\x01"
DISPOSALS = NOT_SAID, KEEP, CLEAR, RESTORE = 0, 1, 2, 3
HEAD = 13  # bytes of the header and the description of the screen
OPAQUE = 255


class Frame(Record):
    """The place of a frame in the file, and on the screen.

    `control` is the place and the length of the block with the control of the frame, if it has one;
    `first` and `stop` are where its compressed bytes begin and end.
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
    fills: bool


def blocks_of(source: Source) -> tuple[int, list[Frame], int, int, int | None]:
    """The bytes before the blocks, the frames, the offset of the end block, and two counts.

    The first count is that of the blocks that are left out, the second that of the repeats, None if
    the file does not say it. Raises `Corrupt` and `Unsupported` for blocks that no GIF has.
    """
    try:
        return _blocks(contents(source), source)
    except (IndexError, struct.error):
        raise Corrupt("is cut off", path=source.path, where=f"byte {source.size}") from None


def _blocks(data: bytes, source: Source) -> tuple[int, list[Frame], int, int, int | None]:
    path, frames, left_out = source.path, list[Frame](), 0
    at = screen = 13 + _table_bytes(data[10])
    control, loop = (0, 0), None
    while (label := data[at]) != END:
        start, at = at, at + {EXTENSION: 2, FRAME: 11}.get(label, 0)
        if label == FRAME:
            at += _table_bytes(data[start + 9])
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
    data: bytes, place: tuple[int, int, int], control: tuple[int, int], source: Source
) -> Frame:
    """A frame, checked against its screen and its bytes."""
    start, first, stop = place
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
        start, first, stop, control, left, top, width, height, _table_bytes(data[start + 9]),
        disposal, 10 * delay, clear if flags & 1 else -1, (width, height) == (wide, high),
    )  # fmt: skip


def _table_bytes(flags: int) -> int:
    """The bytes of a colour table."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


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
        whole = (number for number in range(begin, 0, -1) if _is_whole(frames[number]))
        start = next(whole, 0)
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
        where = f"byte {frame.start}"
        raise Corrupt("has a frame without a palette", path=source.path, where=where)
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
