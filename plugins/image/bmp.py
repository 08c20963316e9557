r"""BMP: one image of 1 to 32 bits per pixel, read and write.

Specification: Microsoft, "Bitmap Storage" (BITMAPFILEHEADER, BITMAPINFOHEADER),
https://learn.microsoft.com/windows/win32/gdi/bitmap-storage. Compared with: netpbm's bmptopnm.

Reads, with Pillow: palettes of 1, 4 and 8 bits, run-length coded too; 24 and 32 bits; bare DIBs,
which have no file header.

Mapping: shape (height, width) or (height, width, channels), uint8, index order C. A palette that is
black and white gives bool, one of the grey values in order gives grey; any other gives RGB. 24 and
32 bits give RGB; 32 bits with an alpha mask RGBA.

Metadata, in the namespace ``image``: ``resolution`` in pixels per metre.

Refused: cut files; run-length coded files of more pixels than their runs can have; 16 bits per
pixel, of which a decoder scales the 5 or 6 bits of a channel to 8; JPEG and PNG inside a BMP,
unusual bit fields; images above ``--max-memory``.

Writes: bool as 1 bit, uint8 (H, W) as 8-bit grey, (H, W, 3) as 24 bits. Alpha is refused: only
headers that most programs do not know have it.
"""

from __future__ import annotations

import struct
from struct import Struct

from raconvert.errors import Corrupt, Unsupported
from raconvert.plugin import MAYBE, NO, SURE, Bundle, Format, Plan, Source, trailing_note

from .metadata import fields_of, resolution_in
from .plan import image_plan, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Target

__all__ = ["FORMAT", "plan", "read", "sniff", "split"]

MAGIC = b"BM"
BARE = b"\x28\0\0\0"  # a DIB without its file header: the size of its own, the usual one
HEADER_SIZES = (12, 40, 52, 56, 64, 108, 124)
BITS = (1, 4, 8, 16, 24, 32)  # per pixel
MAX_SIDE = 0x7FFFFFFF
RUN_PIXELS = 128  # for each byte: a run has two bytes and at most 255 pixels
INCHES = 39.3701  # in a metre, as Pillow has it
_FILE = Struct("<I4sI")  # after the magic: file size, reserved, place of pixels
_PROFILE = Struct("<2I")  # of a V5 header: where the colour profile is, its bytes
_CORE = Struct("<HH2H")  # of the 12-byte header: width, height, planes, bits
_INFO = Struct("<ii2HIIii")  # the others: and compression, bytes, resolution x, y

# Two pixels, white and black; written by netpbm's ppmtobmp.
_SAMPLE = bytes.fromhex(
    "424d42000000000000003e00000028000000020000000100000001000100000000000400"
    "00000000000000000000020000000200000000000000ffffff0080000000"
)

FORMAT = Format(
    name="bmp",
    title="BMP image",
    suffixes=(".bmp", ".dib"),
    magic=((0, MAGIC), (0, BARE)),
    meta="some",
    index_orders="C",
    needs=(("imageio", "imageio"), ("PIL", "pillow")),
    samples={"black_white.bmp": _SAMPLE, "bare.dib": _SAMPLE[14:]},
    spec="https://learn.microsoft.com/windows/win32/gdi/bitmap-storage",
    losses="only bool and uint8; 2 axes, or 3 with 3 channels; common metadata",
)


def sniff(source: Source) -> int:
    """Sure by a known header size and one plane behind the magic; a bare DIB by its exact size."""
    head = source.head
    start = 14 if head.startswith(MAGIC) else 0
    if len(head) < start + 16:
        return MAYBE if start and source.size < 30 and b"\n" not in head else NO
    size = int.from_bytes(head[start : start + 4], "little")
    at = start + (8 if size == 12 else 12)
    if size not in HEADER_SIZES or head[at : at + 2] != b"\1\0":
        return NO
    if start or source.size == _bare_bytes(head):
        return SURE
    return MAYBE if head[at + 2] in BITS else NO


def _bare_bytes(head: bytes) -> int:
    """The size of the file that a bare, uncompressed DIB makes; -1 for any other header."""
    if len(head) < 40 or not head.startswith(BARE):
        return -1
    _, width, height, _, bits, compression = struct.unpack_from("<IiiHHI", head)
    (colors,) = struct.unpack_from("<I", head, 32)
    if compression or width <= 0 or height == 0 or bits not in BITS:
        return -1
    palette = 4 * (colors or (1 << bits if bits <= 8 else 0))
    return 40 + palette + (width * bits + 31) // 32 * 4 * abs(height)


def read(source: Source) -> Bundle:
    """One lazy array, named after the file's stem: (height, width[, channels]), bool or uint8.

    The header is checked here, against the file, too; Pillow takes its sizes on trust.
    """
    from .reader import read_picture

    at = 14 if source.head.startswith(MAGIC) else 0
    size = int.from_bytes(source.read_exact(at, 4, "the BMP header"), "little")
    if size not in HEADER_SIZES:
        raise Corrupt("has no BMP header", path=source.path, where=f"byte {at}", got=size)
    layout = _CORE if size == 12 else _INFO
    values = layout.unpack(source.read_exact(at + 4, layout.size, "the BMP header"))
    width, height, _, bits = values[:4]
    compression, coded, x, y = values[4:] or (0, 0, 0, 0)
    if width <= 0 or height == 0:
        raise Corrupt("has no pixels", path=source.path, where="byte 18", got=f"{width} × {height}")
    if bits == 16:
        remedy = "convert it to 24 bits first, for instance with: bmptopnm"
        raise Unsupported("has 16 bits per pixel, to be scaled", path=source.path, remedy=remedy)
    if compression in (1, 2):
        fault = width * abs(height) > RUN_PIXELS * source.size
    else:
        fault = (width * bits + 31) // 32 * 4 * abs(height) > source.size
    if fault:
        raise Corrupt(
            "declares more pixels than the file has bytes for, or its runs can hold",
            path=source.path, got=f"{width} × {height} of {bits} bits in {source.size} bytes",
        )  # fmt: skip
    fields = {"resolution": [x, y, "m"]} if x > 0 and y > 0 else {}
    rows = coded if compression in (1, 2) else (width * bits + 31) // 32 * 4 * abs(height)
    behind = _behind(source, size, rows) if at and rows else 0
    notes = [trailing_note(behind, "the end of the BMP")] if behind > 0 else []
    return read_picture(source, "BMP" if at else "DIB", fields=fields, notes=notes)


def _behind(source: Source, size: int, rows: int) -> int:
    """The bytes behind the end: that of the file by its own length, or that of its pixels."""
    declared, _, begin = _FILE.unpack(source.read_exact(2, _FILE.size, "the BMP header"))
    end = max(begin + rows, declared)
    if size == 124:  # V5: a colour profile may follow
        at, nbytes = _PROFILE.unpack(source.read_exact(14 + 112, _PROFILE.size, "the BMP header"))
        end = max(end, 14 + at + nbytes)
    return source.size - end


def plan(bundle: Bundle) -> Plan:
    """One image of bool or uint8, (H, W) or (H, W, 3)."""

    def encode(values: Any, _: Target) -> bytes:
        from .writer import encoded

        # Without a resolution Pillow invents 96 dpi.
        x, y = resolution_in(fields_of(bundle.arrays[0]), "m") or (0, 0)
        return encoded(values, ".bmp", dpi=(x / INCHES, y / INCHES))

    held: Any = {"channels": (3,), "max_side": MAX_SIDE, "held": "bool and uint8"}
    return image_plan(bundle, "BMP", encode, kept=set(), unit="m", **held)
