r"""GIF: images and animations of at most 256 colours a frame, read; one image written in grey.

Specification: CompuServe, "Graphics Interchange Format", version 89a, 31 July 1990,
https://www.w3.org/Graphics/GIF/spec-gif89a.txt. Compared with: giftopnm of netpbm, gifsicle,
ImageMagick.

Reads: the blocks are checked here, and the frames composed; Pillow gets one frame at a time, and
decodes the LZW data.

Mapping: uint8, index order C. A file of one frame that fills its screen is RGB (height, width, 3),
or RGBA where the frame has a transparent colour; grey (height, width) where the palette is the grey
values in order, (0,0,0), (1,1,1), …. Any other is composed (see `frames`): (frames, height, width,
3), or (height, width, 3) for one frame; 4 channels if there may be pixels that no frame has set,
which are 0 and transparent, as browsers have them, whatever background colour the file names.

Metadata: durations as the axis of time, and in the namespace ``image`` ``durations loop``.
Comments, text and data of applications are left out, with a note.

Refused: a frame that is not inside its screen; disposal methods that GIF does not define; cut files,
the end block included; sizes that the compressed bytes cannot fill; screens above ``--max-memory``,
and frames that are together above it, a thousand times the file.

Writes: uint8 grey (H, W). Colour is refused: nothing is ever quantised.
"""

from __future__ import annotations

import struct

from raconvert.conversion.planes import split
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported
from raconvert.plugin import NO, SURE, Bundle, Format, Plan, Source

from .plan import GREY, image_plan
from .programs import pillow_programs as programs

__all__ = ["FORMAT", "plan", "programs", "read", "sniff", "split"]

MAGICS = (b"GIF87a", b"GIF89a")
EXTENSION, FRAME, END, CONTROL = b"!,;\xf9"
MAX_SIDE = 0xFFFF
# LZW: the string of a 12-bit code has at most 4096 pixels, and there are 2/3 of a code in a byte.
PIXELS_PER_BYTE = 4096
REMEDY = "write whole images first, for instance with ImageMagick: -coalesce +adjoin"
LOOP = b"\x0bNETSCAPE2.0\x03\x01"
DISPOSALS = NOT_SAID, KEEP, CLEAR, RESTORE = 0, 1, 2, 3

# One grey pixel; written by netpbm's pamtogif.
_SAMPLE = bytes.fromhex("474946383761010001008000008080800000002c00000000010001000002024401003b")

FORMAT = Format(
    name="gif",
    title="GIF image",
    suffixes=(".gif",),
    magic=tuple((0, magic) for magic in MAGICS),
    proof=True,
    needs=(("PIL", "pillow"),),
    samples={"grey_1x1.gif": _SAMPLE},
    spec="https://www.w3.org/Graphics/GIF/spec-gif89a.txt",
    losses="written: one image of uint8, (H, W); no metadata",
)


def sniff(source: Source) -> int:
    """Sure by the magic ``GIF87a`` or ``GIF89a``."""
    return SURE if source.head.startswith(MAGICS) else NO


def read(source: Source) -> Bundle:
    """One lazy array, named after the file's stem, of uint8: see the mapping."""
    from .reader import contents, read_picture

    try:
        data = contents(source)
        screen, frames, end, left_out, loop = _blocks(data, source)
    except IndexError:
        raise Corrupt("is cut off", path=source.path, where=f"byte {source.size}") from None
    notes = [f"{left_out} blocks (comments, text, applications) are left out"] if left_out else []
    first = frames[0]
    if len(frames) > 1 or not first.fills:
        from .gif_frames import read_frames

        return read_frames(source, screen, frames, end=end + 1, loop=loop, notes=notes)
    spans = [(0, screen), first.control, (first.start, first.stop - first.start), (end, 1)]
    most = PIXELS_PER_BYTE * (first.stop - first.first)
    return read_picture(source, "GIF", end=end + 1, notes=notes, spans=spans, most=most)


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


def _blocks(data: bytes, source: Source) -> tuple[int, list[Frame], int, int, int | None]:
    """The bytes of the screen, the frames, where the end block is, and what is left out.

    Then how often the file says that it is repeated.
    """
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
    flags, delay, clear = struct.unpack_from("<BHB", data, control[0] + 3) if control[1] else (0,) * 3
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


def plan(bundle: Bundle) -> Plan:
    """Plan one image of uint8, grey: (H, W)."""
    options = {"optimize": False, "interlace": 0}
    return image_plan(bundle, "GIF", options, max_side=MAX_SIDE, forms=(GREY,))
