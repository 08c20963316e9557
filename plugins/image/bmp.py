r"""BMP: one image of 1 to 32 bits per pixel, read and write.

Specification: Microsoft, "Bitmap Storage" (BITMAPFILEHEADER, BITMAPINFOHEADER, BITMAPV4HEADER),
https://learn.microsoft.com/windows/win32/gdi/bitmap-storage. Compared with: netpbm's bmptopnm.

Layout, little-endian; a bare DIB has no file header and begins at byte 14 of this::

    offset  size  meaning
    0       2     magic BM
    10      4     offset of the pixels
    14      4     size of the header that follows: 12 (OS/2), 40, 52, 56, 64, 108 (V4), 124 (V5)
    18      4+4   width, height; a negative height means that the rows go from top to bottom
    28      2     bits per pixel: 1, 4, 8 (palette), 16, 24, 32
    30      4     compression: 0 none, 1 RLE8, 2 RLE4, 3 bit fields

Reads, through imageio with Pillow pinned: all of these, bare DIBs too; 16-bit pixels (5-5-5, 5-6-5)
are scaled to 8 bits for each channel, with a note.

Mapping: shape (height, width) or (height, width, channels), index order C. A palette that is black
and white gives bool, one of the grey values in order gives uint8 grey; any other gives RGB, or with
``palette=indices`` the uint8 indices; the palette is kept. 24 and 32 bits give RGB; 32 bits with an
alpha mask RGBA.

Metadata, in the namespace ``image``: ``palette``, ``resolution`` in pixels per metre.

Refused: cut files; run-length coded files of more pixels than their runs can have; JPEG and PNG
inside a BMP, unusual bit fields; images above ``--max-memory``.

Writes: bool as 1 bit, uint8 (H, W) as 8-bit grey, (H, W, 3) as 24 bits, (H, W, 4) as 32 bits under
a V4 header, which is the oldest one that knows of alpha.
"""

from __future__ import annotations

from struct import Struct

from raconvert.errors import Corrupt
from raconvert.plugin import MAYBE, NO, SURE, Bundle, Fit, Format, Option, Source, trailing_note

from .metadata import fields_of, image_bundle, metadata_fits, whole_resolution
from .plan import image_fits, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from raconvert.plugin import Target

__all__ = ["FORMAT", "fits", "read", "sniff", "split", "write"]

MAGIC = b"BM"
WHAT = "the BMP image"
HEADER_SIZES = (12, 40, 52, 56, 64, 108, 124)
MAX_SIDE = 0x7FFFFFFF
RUN_PIXELS = 128  # for each byte: a run has two bytes and at most 255 pixels
_CORE = Struct("<HH2H")  # of the 12-byte header: width, height, planes, bits
_INFO = Struct("<ii2HIIiiI")  # the others: and compression, bytes, resolution x, y, colours
_FILE = Struct("<I4sII")  # after the magic: file size, reserved, place of pixels, header size
_PROFILE = Struct("<2I")  # of a V5 header: where the colour profile is, its bytes
_RESOLUTION = Struct("<2i")  # pixels per metre, x and y
_RESOLUTION_AT = 38
_V4 = Struct("<2sIHHI IiiHHIIiiII IIII4s48x")

# Two pixels, white and black, of 8-bit grey; written by netpbm's ppmtobmp.
_SAMPLE = bytes.fromhex(
    "424d42000000000000003e00000028000000020000000100000001000100000000000400"
    "00000000000000000000020000000200000000000000ffffff0080000000"
)

FORMAT = Format(
    name="bmp",
    title="BMP image",
    suffixes=(".bmp", ".dib"),
    magic=((0, MAGIC),),
    meta="some",
    index_orders="C",
    needs=(("imageio", "imageio"), ("PIL", "pillow")),
    read_options=(
        Option("palette", "expand", ("expand", "indices"), "palette images as colours or indices"),
    ),
    samples={"black_white.bmp": _SAMPLE},
    spec="https://learn.microsoft.com/windows/win32/gdi/bitmap-storage",
    losses="only bool and uint8; 2 axes, or 3 with 3 or 4 channels; common metadata",
)


def sniff(source: Source) -> int:
    """Sure by the magic, a known header size and one plane; a bare DIB has no magic."""
    head = source.head
    start = 14 if head.startswith(MAGIC) else 0
    if len(head) < start + 16:
        return MAYBE if start and source.size < 30 and b"\n" not in head else NO
    size = int.from_bytes(head[start : start + 4], "little")
    at = start + (8 if size == 12 else 12)
    if size not in HEADER_SIZES or head[at : at + 2] != b"\1\0":
        return NO
    return SURE if start else MAYBE if head[at + 2] in (1, 4, 8, 16, 24, 32) else NO


def read(source: Source, *, palette: str = "expand") -> Bundle:
    """Return the image as one lazy array, named after the file's stem.

    Shape (height, width[, channels]); bool or uint8. The header is checked here, the pixels are
    decoded when they are asked for.
    """
    from PIL import Image

    from .reader import UNLIMITED, check_need, guarded, pillow_images

    bits, fields = _header(source)
    with (
        source.open() as file,
        guarded(source.path, WHAT, UNLIMITED),
        Image.open(file, formats=("BMP", "DIB")) as opened,
    ):
        mode, (width, height) = opened.mode, opened.size
        if mode == "P":
            own: Any = opened.palette  # in the order of the file: B, G, R[, pad]
            stored, width_of = own.palette, len(own.rawmode)
            colors = bytearray(len(stored) // width_of * 3)
            for place in range(3):
                colors[place::3] = stored[2 - place :: width_of]
            fields = {"palette": bytes(colors), **fields}
    if mode == "P" and palette == "expand":
        mode = "RGB"
    channels = {"RGB": 3, "RGBA": 4}.get(mode, 1)
    check_need(source, height * width, channels)
    shape = (height, width) + (channels,) * (channels > 1)
    notes = ["16-bit pixels are scaled to 8 bits for each channel"] if bits == 16 else []
    if behind := source.size - _end(source):
        notes.append(trailing_note(behind, "the end of the BMP"))
    kind = "bool" if mode == "1" else "uint"
    return image_bundle(
        source, kind, shape, fields, pillow_images(source, WHAT, shape, mode), notes
    )


def _header(source: Source) -> tuple[int, dict[str, Any]]:
    """The bits of a pixel and the resolution; checks the sizes, which Pillow takes on trust."""
    at = 14 if source.head.startswith(MAGIC) else 0
    size = int.from_bytes(source.read_exact(at, 4, "the BMP header"), "little")
    if size not in HEADER_SIZES:
        raise Corrupt("has no BMP header", path=source.path, where=f"byte {at}", got=size)
    layout = _CORE if size == 12 else _INFO
    values = layout.unpack(source.read_exact(at + 4, layout.size, "the BMP header"))
    width, height, _, bits = values[:4]
    compression, _, x, y, _ = values[4:] or (0, 0, 0, 0, 0)
    if width <= 0 or height == 0:
        raise Corrupt("has no pixels", path=source.path, where="byte 18", got=f"{width} × {height}")
    if compression in (1, 2):
        fault = width * abs(height) > RUN_PIXELS * source.size
    else:
        fault = (width * bits + 31) // 32 * 4 * abs(height) > source.size
    if fault:
        raise Corrupt(
            "declares more pixels than the file has bytes for, or its runs can hold",
            path=source.path, got=f"{width} × {height} of {bits} bits in {source.size} bytes",
        )  # fmt: skip
    return bits, {"resolution": [x, y, "m"]} if x > 0 and y > 0 else {}


def _end(source: Source) -> int:
    """The place where the file should end: by its own length, or that of headers and pixels."""
    if not source.head.startswith(MAGIC):
        return source.size  # a bare DIB does not say where its pixels begin
    declared, _, begin, size = _FILE.unpack(source.read_exact(2, _FILE.size, "the BMP header"))
    layout = _CORE if size == 12 else _INFO
    values = layout.unpack(source.read_exact(18, layout.size, "the BMP header"))
    width, height, _, bits = values[:4]
    compression, coded = values[4:6] or (0, 0)
    rows = coded if compression in (1, 2) else (width * bits + 31) // 32 * 4 * abs(height)
    end = begin + rows
    if size == 124:  # V5: a colour profile may follow
        at, nbytes = _PROFILE.unpack(source.read_exact(14 + 112, _PROFILE.size, "the BMP header"))
        end = max(end, 14 + at + nbytes)
    return min(max(end, declared), source.size) if rows else source.size


# ------------------------------------------------------------------------------------- writing


def fits(bundle: Bundle, options: dict[str, Any]) -> list[Fit]:
    """Return what BMP would change or cannot hold of each array."""
    found = []
    for array in bundle.arrays:
        found += image_fits(array, "BMP", channels=(3, 4), bools=True, max_side=MAX_SIDE)
    return found + metadata_fits(bundle, "BMP", frozenset({"resolution"}))


def write(bundle: Bundle, target: Target) -> None:
    """Write the one array of the bundle; the image is in memory as a whole."""
    from .writer import encoded, write_image

    def pieces(values: np.ndarray[Any, Any]) -> list[bytes]:
        if values.ndim == 3 and values.shape[2] == 4:
            found = [_v4_header(values.shape), values[::-1, :, [2, 1, 0, 3]].tobytes()]
        else:
            found = [encoded(values, ".bmp")]
        # The resolution of the metadata, or none: Pillow invents 96 dpi.
        per_metre = whole_resolution(fields_of(bundle.arrays[0]), ("m",), MAX_SIDE) or (0, 0, 0)
        end = _RESOLUTION_AT + _RESOLUTION.size
        found[0] = found[0][:_RESOLUTION_AT] + _RESOLUTION.pack(*per_metre[1:]) + found[0][end:]
        return found

    write_image(bundle, target, pieces)


def _v4_header(shape: tuple[int, ...]) -> bytes:
    """A file header and a BITMAPV4HEADER with masks for blue, green, red, alpha bytes."""
    height, width, _ = shape
    nbytes = height * width * 4
    return _V4.pack(
        MAGIC, _V4.size + nbytes, 0, 0, _V4.size,
        108, width, height, 1, 32, 3, nbytes, 0, 0, 0, 0,
        0xFF0000, 0xFF00, 0xFF, 0xFF000000, b"BGRs",
    )  # fmt: skip
