r"""GIF: one image of at most 256 colours, read and write.

Specification: CompuServe, "Graphics Interchange Format", version 89a, 31 July 1990,
https://www.w3.org/Graphics/GIF/spec-gif89a.txt. Compared with: giftopnm of netpbm.

Reads the only frame of a file. The blocks are checked here; Pillow gets its screen, transparency
and frame, and decodes the LZW data.

Mapping: uint8, index order C. RGB (height, width, 3), or RGBA where the frame has a transparent
colour; grey (height, width) where the palette is the grey values in order, (0,0,0), (1,1,1), ….

Metadata, in the namespace ``image``: ``comment``.

Refused: animations, of which a decoder composes the frames; a frame that does not fill the screen;
cut files, the end block included; sizes that the compressed bytes cannot fill; images above
``--max-memory``.

Writes: uint8 grey (H, W) or RGB (H, W, 3). More than 256 colours, found while writing, end it
without output: nothing is ever quantised.
"""

from __future__ import annotations

from io import BufferedReader, BytesIO
from struct import Struct

from raconvert.errors import Corrupt, Unsupported, WouldLose
from raconvert.plugin import NO, SURE, Bundle, Format, Plan, Source, trailing_note

from .metadata import fields_of, part
from .plan import image_plan, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Target

__all__ = ["FORMAT", "plan", "read", "sniff", "split"]

MAGICS = (b"GIF87a", b"GIF89a")
MAX_SIDE = 0xFFFF
MAX_COLORS = 256
# LZW: the string of a 12-bit code has at most 4096 pixels, and there are 2/3 of a code in a byte.
PIXELS_PER_BYTE = 4096
MAX_COMMENT_BYTES = 1 << 20
REMEDY = "write whole images first, for instance with ImageMagick: -coalesce +adjoin"
_SCREEN = Struct("<6sHHBBB")
_IMAGE = Struct("<HHHHB")
GREY = bytes(value for grey in range(MAX_COLORS) for value in (grey, grey, grey))

# One grey pixel; written by netpbm's pamtogif.
_SAMPLE = bytes.fromhex("474946383761010001008000008080800000002c00000000010001000002024401003b")

FORMAT = Format(
    name="gif",
    title="GIF image",
    suffixes=(".gif",),
    magic=tuple((0, magic) for magic in MAGICS),
    proof=True,
    meta="some",
    index_orders="C",
    needs=(("imageio", "imageio"), ("PIL", "pillow")),
    samples={"grey_1x1.gif": _SAMPLE},
    spec="https://www.w3.org/Graphics/GIF/spec-gif89a.txt",
    losses="only one image of uint8, grey or RGB of at most 256 colours, no alpha; common metadata",
)


def sniff(source: Source) -> int:
    """Sure by the magic ``GIF87a`` or ``GIF89a``."""
    return SURE if source.head.startswith(MAGICS) else NO


def read(source: Source) -> Bundle:
    """One lazy array, named after the file's stem: (height, width[, 3 or 4]), uint8."""
    from .reader import read_picture

    with BufferedReader(source.open()) as file:
        spans, comment = _blocks(source, file)
        behind = source.size - file.tell()

    def picture() -> BytesIO:
        return BytesIO(b"".join(source.read_exact(*span, "the frame") for span in spans) + b";")

    fields = {"comment": comment.decode("utf-8", "replace")}
    notes = [trailing_note(behind, "the end of the GIF")] if behind else []
    return read_picture(source, "GIF", fields=fields, notes=notes, file=picture)


def _blocks(source: Source, file: Any) -> tuple[list[tuple[int, int]], bytes]:
    """Place and length of the screen, of what is said of its frame, and of the frame; a comment."""
    head = _read(source, file, _SCREEN.size)
    magic, width, height, flags, _, _ = _SCREEN.unpack(head)
    if magic not in MAGICS:
        raise Corrupt("does not begin as a GIF file", path=source.path)
    _read(source, file, 3 << (flags & 7) + 1 if flags & 0x80 else 0)
    control: list[tuple[int, int]] = []
    spans, comment = [(0, file.tell())], bytearray()
    while (code := _read(source, file, 1)) != b";":
        start = file.tell() - 1
        if code == b"," and len(spans) > 1:
            raise Unsupported("is an animation, not one image", path=source.path, remedy=REMEDY)
        if code == b",":
            _check_frame(source, file, (width, height))
            spans += [*control, (start, file.tell() - start)]
        elif code == b"!":
            label = _read(source, file, 1)
            _skip(source, file, comment if label == b"\xfe" else None)
            control = [(start, file.tell() - start)] if label == b"\xf9" else control
        elif code != b"\0":  # some writers leave an extra end of data
            raise Corrupt("unknown block", path=source.path, where=f"byte {start}")
    if len(spans) == 1:
        raise Corrupt("has no image", path=source.path)
    return spans, bytes(comment)


def _check_frame(source: Source, file: BufferedReader, screen: tuple[int, int]) -> None:
    """Go behind a frame, which fills the screen, and has data enough for its pixels."""
    left, top, width, height, flags = _IMAGE.unpack(_read(source, file, _IMAGE.size))
    _read(source, file, 3 << (flags & 7) + 1 if flags & 0x80 else 0)
    bits = _read(source, file, 1)[0]
    nbytes = _skip(source, file)
    if not 1 <= bits <= 8 or not 0 < width * height <= PIXELS_PER_BYTE * nbytes:
        what = "frame has no pixels, more than its data can hold, or no code size"
        raise Corrupt(what, path=source.path)
    if (left, top, width, height) != (0, 0, *screen):
        what = "has a frame that does not fill its screen"
        raise Unsupported(what, path=source.path, remedy=REMEDY)


def _skip(source: Source, file: BufferedReader, kept: bytearray | None = None) -> int:
    """Go behind sub-blocks, with what is in them added to `kept`; the number of their bytes."""
    total = 0
    while length := _read(source, file, 1)[0]:
        total += length
        data = _read(source, file, length)
        if kept is not None:
            kept += data
            if len(kept) > MAX_COMMENT_BYTES:
                raise Corrupt("comment is above 1 MiB", path=source.path)
    return total


def _read(source: Source, file: BufferedReader, nbytes: int) -> bytes:
    data = file.read(nbytes)
    if len(data) != nbytes:
        raise Corrupt("is cut off", path=source.path, where=f"byte {source.size}")
    return data


def plan(bundle: Bundle) -> Plan:
    """One image of uint8, (H, W) or (H, W, 3); its colours are counted while it is written."""
    array = bundle.arrays[0]

    def encode(values: Any, target: Target) -> bytes:
        from PIL import Image

        from .reader import guarded

        indices, palette = _indexed(values, f"array '{array.name}'", target.path)
        comment = (part(fields_of(array), "comment", str) or "").encode()[:MAX_COMMENT_BYTES]
        file = BytesIO()
        with guarded(None, "the image to write"):
            image = Image.fromarray(indices)
            image.putpalette(palette)
            image.save(file, "GIF", optimize=False, interlace=0, comment=comment)
        return file.getvalue()

    held: Any = {"channels": (3,), "max_side": MAX_SIDE}
    return image_plan(bundle, "GIF", encode, kept={"comment"}, **held)


def _indexed(values: Any, what: str, path: str) -> tuple[Any, bytes]:
    """The indices of an image, and its palette of 256 colours, padded with the last one."""
    import numpy as np

    if values.ndim == 2:
        return values, GREY
    packed = np.dot(values.astype(np.uint32), np.array([1 << 16, 1 << 8, 1], np.uint32))
    colors, inverse = np.unique(packed, return_inverse=True)
    if len(colors) > MAX_COLORS:
        raise WouldLose(
            f"{what} has {len(colors)} colours", path=path, expected=f"at most {MAX_COLORS}",
            remedy="nothing was written; PNG, WebP and TIFF hold them",
        )  # fmt: skip
    # Backwards: all greys in order would be read as grey.
    colors, inverse = colors[::-1], len(colors) - 1 - inverse.reshape(values.shape[:2])
    padded = np.pad(colors, (0, MAX_COLORS - len(colors)), mode="edge").astype(">u4")
    return inverse.astype(np.uint8), padded.view("u1").reshape(-1, 4)[:, 1:].tobytes()
