r"""GIF: one image of at most 256 colours, read; written in grey.

Specification: CompuServe, "Graphics Interchange Format", version 89a, 31 July 1990,
https://www.w3.org/Graphics/GIF/spec-gif89a.txt. Compared with: giftopnm of netpbm.

Reads the only frame of a file. The blocks are checked here; Pillow gets its screen, transparency
and frame, and decodes the LZW data.

Mapping: uint8, index order C. RGB (height, width, 3), or RGBA where the frame has a transparent
colour; grey (height, width) where the palette is the grey values in order, (0,0,0), (1,1,1), ….

Metadata: none. Comments, text and data of applications are left out, with a note.

Refused: animations, of which a decoder composes the frames; a frame that does not fill the screen;
cut files, the end block included; sizes that the compressed bytes cannot fill; images above
``--max-memory``.

Writes: uint8 grey (H, W). Colour is refused: nothing is ever quantised.
"""

from __future__ import annotations

from raconvert.conversion.planes import split
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
    losses="only one image of uint8, (H, W); no metadata",
)


def sniff(source: Source) -> int:
    """Sure by the magic ``GIF87a`` or ``GIF89a``."""
    return SURE if source.head.startswith(MAGICS) else NO


def read(source: Source) -> Bundle:
    """One lazy array, named after the file's stem: (height, width[, 3 or 4]), uint8."""
    from .reader import contents, read_picture

    try:
        spans, most, left_out = _blocks(contents(source), source.path)
    except IndexError:
        raise Corrupt("is cut off", path=source.path, where=f"byte {source.size}") from None
    notes = [f"{left_out} blocks (comments, text, applications) are left out"] if left_out else []
    return read_picture(source, "GIF", end=sum(spans[-1]), notes=notes, spans=spans, most=most)


def _blocks(data: bytes, path: str) -> tuple[list[tuple[int, int]], int, int]:
    """Places and lengths of what Pillow gets to see: screen, control of the frame, frame, end.

    Then the most pixels that the frame can have, and the number of blocks that are left out.
    """
    at = screen = 13 + _table_bytes(data[10])
    control, frames, left_out = (0, 0), [], 0
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
            frames = [*frames[:1], (start, first, at)]
        elif label == EXTENSION and data[start + 1] == CONTROL:
            control = (start, at - start) if not frames else control
        else:
            left_out += label == EXTENSION
    if len(frames) > 1:
        raise Unsupported("is an animation, not one image", path=path, remedy=REMEDY)
    start, first, stop = frames[0] if frames else (0, 0, 0)
    if not (frames and data.startswith(MAGICS) and 1 <= data[first - 1] <= 8):
        raise Corrupt("has no image, or a code size that GIF does not allow", path=path)
    # Left, top, width and height; for a frame that is larger Pillow would make the screen larger.
    if data[start + 1 : start + 9] != bytes(4) + data[6:10]:
        raise Unsupported("has a frame that does not fill its screen", path=path, remedy=REMEDY)
    spans = [(0, screen), control, (start, stop - start), (at, 1)]
    return spans, PIXELS_PER_BYTE * (stop - first), left_out


def _table_bytes(flags: int) -> int:
    """The bytes of a colour table."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def plan(bundle: Bundle) -> Plan:
    """Plan one image of uint8, grey: (H, W)."""
    options = {"optimize": False, "interlace": 0}
    return image_plan(bundle, "GIF", options, max_side=MAX_SIDE, forms=(GREY,))
