r"""BMP: one image of 1 to 32 bits per pixel, read and write.

Specification: Microsoft, "Bitmap Storage" (BITMAPFILEHEADER, BITMAPINFOHEADER, BITMAPV4HEADER),
https://learn.microsoft.com/windows/win32/gdi/bitmap-storage. Compared with: netpbm's bmptopnm
(reading and what is written here).

Layout, little-endian::

    offset  size  meaning
    0       2     magic BM
    2       4     size of the file; often wrong, not looked at
    10      4     offset of the pixels
    14      4     size of the header that follows: 12 (OS/2), 40, 52, 56, 64, 108 (V4), 124 (V5)
    18      4+4   width, height; a negative height means that the rows go from top to bottom
    28      2     bits per pixel: 1, 4, 8 (palette), 16, 24, 32
    30      4     compression: 0 none, 1 RLE8, 2 RLE4, 3 bit fields

Reads, through imageio with Pillow pinned: all of these; 16-bit pixels (5-5-5, 5-6-5) are scaled to
8 bits for each channel, as Pillow does it.

Mapping: shape (height, width) or (height, width, channels), index order C. A palette that is
black and white gives bool, one of the grey values in order gives uint8 grey; any other gives RGB,
or with ``palette=indices`` the uint8 indices; the palette is kept. 24 and 32 bits give RGB; 32 bits
with an alpha mask RGBA.

Metadata, in the namespace ``image`` (see `meta`): ``palette``, ``resolution`` in pixels per metre.

Refused: cut files; run-length coded files of more pixels than their runs can have; JPEG and PNG
inside a BMP, unusual bit fields; images above ``--max-memory``.

Writes: bool as 1 bit, uint8 (H, W) as 8-bit grey, (H, W, 3) as 24 bits, (H, W, 4) as 32 bits under
a V4 header, which is the oldest one that knows of alpha.
"""

from __future__ import annotations

from struct import Struct

from raconvert.errors import Corrupt
from raconvert.plugin import (
    MAYBE,
    NO,
    SURE,
    Array,
    Bundle,
    Fit,
    Format,
    Metadata,
    Option,
    Source,
    element,
)

from .lazy import lazily
from .meta import NAMESPACE, fields_of, metadata_fits, part
from .planes import image_fits, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.plugin import Target

__all__ = ["FORMAT", "fits", "read", "sniff", "split", "write"]

MAGIC = b"BM"
WHAT = "the BMP image"
HEADER_SIZES = (12, 40, 52, 56, 64, 108, 124)
MAX_SIDE = 0x7FFFFFFF
_CORE = Struct("<HH")  # of the 12-byte header: width, height
_INFO = Struct("<ii2HI")  # of the others: width, height, planes, bits, compression
_RESOLUTION = Struct("<2i")  # pixels per metre, x and y
_RESOLUTION_AT = 38
_RLE = (1, 2)
RUN_PIXELS = 128  # for each byte: a run has two bytes and at most 255 pixels
_V4 = Struct("<2sIHHI IiiHHIIiiII IIII4s48x")

# Two pixels, white and black, of 8-bit grey; written by netpbm's ppmtobmp.
_SAMPLE = bytes.fromhex(
    "424d4200000000000000"
    "3e0000002800000002000000010000000100010000000000040000000000000000000000"
    "020000000200000000000000ffffff0080000000"
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
    """Sure by the magic, a known header size and one plane; two letters alone prove nothing."""
    head = source.head
    if not head.startswith(MAGIC):
        return NO
    if len(head) < 30:
        return MAYBE if source.size < 30 and b"\n" not in head else NO
    size = int.from_bytes(head[14:18], "little")
    at = 22 if size == 12 else 26
    return SURE if size in HEADER_SIZES and head[at : at + 2] == b"\1\0" else NO


def read(source: Source, *, palette: str = "expand") -> Bundle:
    """Return the image as one lazy array, named after the file's stem.

    Shape (height, width[, channels]); bool or uint8. The header is checked here, the pixels are
    decoded when they are asked for.
    """
    from .backend import Images, check_need, probed

    compression = _check_header(source)
    shape, mode = probed(source, WHAT)
    indices = palette == "indices" and mode == "P"
    if indices:
        shape = shape[:2]
    channels = shape[2] if len(shape) == 3 else 1
    check_need(source, shape[0] * shape[1], channels)
    if compression in _RLE and shape[0] * shape[1] > RUN_PIXELS * source.size:
        raise Corrupt(
            "declares more pixels than its runs can hold",
            path=source.path,
            got=f"{shape[1]} × {shape[0]} in {source.size} bytes",
        )
    fields: dict[str, Any] = {}
    if mode == "P":
        fields["palette"] = _palette(source)
    fields |= _resolution(source)

    def images() -> Images:
        import numpy as np

        dtype = np.dtype("?" if mode == "1" else "u1")
        return Images(source, WHAT, shape, dtype, "P" if indices else None)

    closers: list[Callable[[], None]] = []
    array = Array(
        element("bool" if mode == "1" else "uint", 1),
        shape[::-1],
        name=source.stem,
        index_order="C",
        meta=Metadata(formats={NAMESPACE: fields} if fields else None),
        data=lazily(images, closers),
    )
    return Bundle([array], closers=closers)


def _check_header(source: Source) -> int:
    """Check what Pillow takes on trust, sizes, before anything is allocated for them.

    Returns the kind of compression.
    """
    size = int.from_bytes(source.read_exact(14, 4, "the BMP header"), "little")
    if not source.head.startswith(MAGIC) or size not in HEADER_SIZES:
        raise Corrupt("has no BMP header", path=source.path, where="byte 14", got=size)
    if size == 12:
        width, height = _CORE.unpack(source.read_exact(18, _CORE.size, "the BMP header"))
        bits = int.from_bytes(source.read_exact(24, 2, "the BMP header"), "little")
        compression = 0
    else:
        head = source.read_exact(18, _INFO.size, "the BMP header")
        width, height, _, bits, compression = _INFO.unpack(head)
    if width <= 0 or height == 0:
        raise Corrupt("has no pixels", path=source.path, where="byte 18", got=f"{width} × {height}")
    nbytes = (width * bits + 31) // 32 * 4 * abs(height)
    if compression not in _RLE and nbytes > source.size:
        raise Corrupt(
            "file is shorter than its pixels",
            path=source.path,
            expected=f"{nbytes} bytes of pixels",
            got=f"{source.size} bytes in all",
        )
    return compression


def _palette(source: Source) -> bytes:
    """Return the colours as R, G, B: in the file they are B, G, R and (but for OS/2) a pad byte."""
    size = int.from_bytes(source.head[14:18], "little")
    bits = int.from_bytes(source.head[24:26] if size == 12 else source.head[28:30], "little")
    count = 0 if size == 12 else int.from_bytes(source.head[46:50], "little")
    width = 3 if size == 12 else 4
    count = min(count or 1 << bits, 1 << bits)
    data = source.read_at(14 + size, width * count)
    return b"".join(data[at + 2 : at + 3] + data[at + 1 : at + 2] + data[at : at + 1]
                    for at in range(0, len(data), width))  # fmt: skip


def _resolution(source: Source) -> dict[str, Any]:
    if int.from_bytes(source.head[14:18], "little") == 12:
        return {}
    x, y = _RESOLUTION.unpack(source.read_exact(_RESOLUTION_AT, 8, "the BMP header"))
    return {"resolution": [x, y, "m"]} if x > 0 and y > 0 else {}


# ------------------------------------------------------------------------------------- writing


def fits(bundle: Bundle, options: dict[str, Any]) -> list[Fit]:
    """Return what BMP would change or cannot hold of each array."""
    found = []
    for array in bundle.arrays:
        found += image_fits(array, "BMP", channels=(3, 4), bools=True, max_side=MAX_SIDE)
    return found + metadata_fits(bundle, "BMP", frozenset({"resolution"}))


def write(bundle: Bundle, target: Target) -> None:
    """Write the one array of the bundle; the image is in memory as a whole."""
    from raconvert.arrays.blocks import as_ndarray
    from raconvert.files.copy import write_all

    from .backend import encoded

    array = bundle.arrays[0]
    values = as_ndarray(array, target.max_memory)
    if values.ndim == 3 and values.shape[2] == 4:
        pieces = [_v4_header(values.shape), values[::-1, :, [2, 1, 0, 3]].tobytes()]
    else:
        pieces = [encoded(values, ".bmp")]
    pieces[0] = _with_resolution(pieces[0], fields_of(array))
    write_all(target.open(), pieces)
    if target.progress is not None:
        target.progress(array.nbytes)


def _v4_header(shape: tuple[int, ...]) -> bytes:
    """Return a file header and a BITMAPV4HEADER with masks for blue, green, red, alpha bytes."""
    height, width, _ = shape
    nbytes = height * width * 4
    return _V4.pack(
        MAGIC, _V4.size + nbytes, 0, 0, _V4.size,
        108, width, height, 1, 32, 3, nbytes, 0, 0, 0, 0,
        0xFF0000, 0xFF00, 0xFF, 0xFF000000, b"BGRs",
    )  # fmt: skip


def _with_resolution(data: bytes, fields: dict[str, Any]) -> bytes:
    """Return the file with the resolution of the metadata, or none: Pillow invents 96 dpi."""
    x, y = 0, 0
    resolution = part(fields, "resolution", list)
    if resolution and len(resolution) == 3 and resolution[2] == "m":
        numbers = [n for n in resolution[:2] if type(n) is int and 0 < n <= MAX_SIDE]
        if len(numbers) == 2:
            x, y = numbers
    end = _RESOLUTION_AT + _RESOLUTION.size
    return data[:_RESOLUTION_AT] + _RESOLUTION.pack(x, y) + data[end:]
