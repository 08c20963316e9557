r"""BMP: one image of 1 to 32 bits per pixel, read and write.

Specification: Microsoft, "Bitmap Storage" (BITMAPFILEHEADER, BITMAPINFOHEADER),
https://learn.microsoft.com/windows/win32/gdi/bitmap-storage. Compared with: netpbm's bmptopnm.

Reads, with Pillow: palettes of 1, 4 and 8 bits; 24 and 32 bits; bare DIBs, which have no file
header.

Mapping: shape (height, width) or (height, width, channels), uint8, index order C. A palette that is
black and white gives bool, one of the grey values in order gives grey; any other gives RGB. 24 and
32 bits give RGB; 32 bits with an alpha mask RGBA.

Metadata, in the namespace ``image``: ``resolution``; not written.

Refused: cut files; run-length coded files, and 16 bits per pixel, of which a decoder scales the 5
or 6 bits of a channel to 8 (``bmptopnm`` reads both); 4 and 8 bits with so few greys that Pillow
takes them for fewer or more bits; JPEG and PNG inside a BMP; unusual bit fields; images above
``--max-memory``.

Writes: bool as 1 bit, uint8 (H, W) as 8-bit grey, (H, W, 3) as 24 bits. Alpha is refused: only
headers that most programs do not know have it.
"""

from __future__ import annotations

import struct

from raconvert.conversion.planes import split
from raconvert.errors import Corrupt, Unsupported
from raconvert.plugin import MAYBE, NO, SURE, Bundle, Format, Plan, Source

from .plan import image_plan
from .programs import pillow_programs as programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["FORMAT", "plan", "programs", "read", "sniff", "split"]

MAGIC = b"BM"
# A DIB without its file header begins with the size of its own: version 3 (the usual one), 4 or 5.
BARE = (b"\x28\0\0\0", b"\x6c\0\0\0", b"\x7c\0\0\0")
HEADER_SIZES = (12, 40, 52, 56, 64, 108, 124)
BITS = (1, 4, 8, 16, 24, 32)  # per pixel
BITS_OF = {"1": 1, "P;1": 1, "P;4": 4, "L": 8, "P": 8}  # in Pillow's words; the others have more
MAX_SIDE = 0x7FFFFFFF
INCHES = 39.3701  # in a metre, as Pillow has it

# Two pixels, white and black; written by netpbm's ppmtobmp.
_SAMPLE = bytes.fromhex(
    "424d42000000000000003e00000028000000020000000100000001000100000000000400"
    "00000000000000000000020000000200000000000000ffffff0080000000"
)

FORMAT = Format(
    name="bmp",
    title="BMP image",
    suffixes=(".bmp", ".dib"),
    magic=((0, MAGIC), *((0, size) for size in BARE)),
    needs=(("PIL", "pillow"),),
    samples={"black_white.bmp": _SAMPLE, "bare.dib": _SAMPLE[14:]},
    spec="https://learn.microsoft.com/windows/win32/gdi/bitmap-storage",
    losses="only bool and uint8; 2 axes, or 3 with 3 channels; no metadata",
)


def sniff(source: Source) -> int:
    """Sure by a known header size and one plane behind the magic; a bare DIB by its exact size."""
    head = source.head
    start = 14 if head.startswith(MAGIC) else 0
    if len(head) < start + 16:
        return MAYBE if start and source.size < 30 and b"\n" not in head else NO
    planes, bits, end = _layout(head)
    if int.from_bytes(head[start : start + 4], "little") not in HEADER_SIZES or planes != 1:
        return NO
    return SURE if start or end == source.size else MAYBE if bits in BITS else NO


def _layout(head: bytes) -> tuple[int, int, int]:
    """Planes, bits per pixel, and where the pixels end, if they are not compressed."""
    start = 14 if head.startswith(MAGIC) else 0
    old = head[start] == 12  # OS/2's header has sides of 2 bytes
    width, height, planes, bits = struct.unpack_from("<HHHH" if old else "<IiHH", head, start + 4)
    used = 0 if old else int.from_bytes(head[start + 32 : start + 36], "little")
    colors, size = used or (1 << bits if bits <= 8 else 0), head[start]
    masks = 12 if size == 40 and head[start + 16 : start + 20] == b"\3\0\0\0" else 0
    own = size + masks + (3 if old else 4) * colors
    first = int.from_bytes(head[10:14], "little") if start else own
    return planes, bits, first + (width * bits + 31) // 32 * 4 * abs(height)


def read(source: Source) -> Bundle:
    """One lazy array, named after the file's stem: (height, width[, channels]), bool or uint8."""
    from .reader import read_picture

    return read_picture(source, "BMP" if source.head.startswith(MAGIC) else "DIB", check=_checked)


def _checked(image: Any, source: Source) -> tuple[dict[str, Any], int]:
    """Resolution and end, of a header that Pillow takes on trust."""
    coding, _, _, (mode, *_) = image.tile[0]
    _, bits, end = _layout(source.head)
    if coding != "raw" or bits == 16 or bits != BITS_OF.get(mode, bits):
        remedy = "rewrite it first, for instance with: bmptopnm IN > OUT.pnm"
        what = f"has pixels of {bits} bits per pixel ({coding}) that Pillow takes for {mode}"
        raise Unsupported(what, path=source.path, remedy=remedy)
    if min(image.size) < 1 or end > source.size:
        what = f"declares {image.width} × {image.height} pixels, which the file has no bytes for"
        raise Corrupt(what, path=source.path)
    # A colour profile may follow the pixels; where it ends only the file header says.
    declared = int.from_bytes(source.head[2:6], "little") * source.head.startswith(MAGIC)
    density = [[round(dots * INCHES), 100] for dots in image.info.get("dpi", (0, 0))]
    return {"resolution": [*density, "cm"] if min(density)[0] > 0 else None}, max(end, declared)


def plan(bundle: Bundle) -> Plan:
    """Plan one image of bool or uint8, (H, W) or (H, W, 3)."""
    options = {"dpi": (0, 0)}  # without a resolution Pillow invents 96 dpi
    return image_plan(bundle, "BMP", options, max_side=MAX_SIDE, held="bool and uint8")
