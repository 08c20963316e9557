r"""BMP: one image of 1 to 32 bits per pixel, read and write.

Specification: Microsoft, "Bitmap Storage" (BITMAPFILEHEADER, BITMAPINFOHEADER) and "Bitmap
Compression", https://learn.microsoft.com/windows/win32/gdi/bitmap-storage. Compared with: netpbm's
bmptopnm, Pillow, ImageMagick.

Reads, with nothing but numpy: palettes of 1, 2, 4 and 8 bits, also run-length coded; 16, 24 and 32
bits, with or without bit fields; headers of OS/2; bare DIBs, which have no file header. Rows are
read where they are asked for; run-length coded images are in memory as a whole.

Mapping: shape (height, width) or (height, width, channels), uint8, index order C. A palette that
is black and white gives bool, one of the grey values in order gives grey; any other gives RGB. 24
and 32 bits give RGB; bit fields with one for alpha RGBA. Channels of other than 8 bits have **the
values of the file** (0 to 31 of 5 bits), which other programs scale to 255: a note says so; those
of more than 8 are uint16 or uint32. Pixels that no run sets are of colour 0, and counted in a note.

Metadata, in the namespace ``image``: ``resolution``, and ``channel_bits`` where they are not 8; not
written.

Refused: cut files; runs that leave the image; JPEG and PNG inside a BMP; OS/2's Huffman and 24-bit
runs; bit fields that overlap or have gaps; images above ``--max-memory`` that are run-length coded.

Writes, with Pillow: bool as 1 bit, uint8 (H, W) as 8-bit grey, (H, W, 3) as 24 bits. Alpha is
refused: only headers that most programs do not know have it.
"""

from __future__ import annotations

from raconvert.arrays.memory import check_memory
from raconvert.files.inflate import MAX_RATIO
from raconvert.plugin import (
    MAYBE,
    NO,
    SURE,
    Array,
    Bundle,
    Format,
    Plan,
    Source,
    dtype_of,
    element,
    split,
    trailing_note,
)

from .bmp_header import BARE, BITS, HEADER_SIZES, MAGIC, fields_of, first_of, header_of
from .metadata import metadata_of
from .plan import image_plan
from .programs import pillow_programs as programs

__all__ = ["FORMAT", "plan", "programs", "read", "sniff", "split"]

MAX_SIDE = 0x7FFFFFFF

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
    """Return SURE for a known header size and one plane; a bare DIB also needs its exact size.

    MAYBE for a bare DIB of another size, and for a file that ends inside its header.
    """
    head = source.head
    start = 14 if head.startswith(MAGIC) else 0
    if len(head) < start + 16:
        return MAYBE if start and source.size < 30 and b"\n" not in head else NO
    fields = fields_of(head)
    if fields.size not in HEADER_SIZES or fields.planes != 1:
        return NO
    if start or first_of(head, fields) + fields.nbytes == source.size:
        return SURE
    return MAYBE if fields.bits in BITS else NO


def read(source: Source) -> Bundle:
    """Read one lazy array, named after the file's stem: (height, width[, channels]), bool or uint.

    Raises `Corrupt` for a damaged file, `Unsupported` for pixels that are not read here.
    """
    from .bmp_pixels import Rows, unpack_runs

    header, fields = header_of(source)
    notes = list[str]()
    pixels, end = header.width * header.height, header.first + header.data_bytes
    if header.runs:
        if pixels > MAX_RATIO * source.size:
            what = f"'{source.path}': its {header.width} × {header.height} pixels of few runs"
            check_memory(2 * pixels, source.max_memory, what)
        end, filled = unpack_runs(source, header, None)
        end = max(end, header.first + fields.data_bytes)
        if filled < pixels:
            notes.append(f"{pixels - filled} pixels that no run sets are of colour 0")
    is_odd = any(depth != 8 for depth in header.depths)
    if is_odd:
        depths = ", ".join(map(str, header.depths))
        notes.append(f"channels of {depths} bits keep the values of the file, unscaled")
    x, y = fields.resolution
    meta = metadata_of({
        "resolution": [[x, 100], [y, 100], "cm"] if min(x, y) > 0 else None,
        "channel_bits": header.depths if is_odd else None,
    })  # fmt: skip
    deepest = max(header.depths, default=0)
    nbytes = 1 if deepest <= 8 else 2 if deepest <= 16 else 4
    stored = element("bool" if header.kind == "bool" else "uint", nbytes)
    shape = (header.height, header.width) + (header.channels,) * (header.channels > 1)
    rows = Rows(source, header, shape, dtype_of(stored))
    array = Array(
        stored, shape[::-1], data=lambda: rows, name=source.stem, index_order="C", meta=meta
    )
    if source.head.startswith(MAGIC):  # a colour profile may lie behind the pixels
        end = max(end, int.from_bytes(source.head[2:6], "little"))
    if source.size > end:
        notes.append(trailing_note(source.size - end, "the end of the BMP image"))
    return Bundle([array], notes=notes)


def plan(bundle: Bundle) -> Plan:
    """Plan one image of bool or uint8, (H, W) or (H, W, 3)."""
    options = {"dpi": (0, 0)}  # without a resolution Pillow invents 96 dpi
    return image_plan(bundle, "BMP", options, max_side=MAX_SIDE, types="bool and uint8")
