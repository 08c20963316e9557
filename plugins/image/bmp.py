r"""BMP: one image of 1 to 32 bits per pixel, read and write.

Specification: Microsoft, "Bitmap Storage" (BITMAPFILEHEADER, BITMAPINFOHEADER) and "Bitmap
Compression", https://learn.microsoft.com/windows/win32/gdi/bitmap-storage. Compared with: netpbm's
bmptopnm, Pillow, ImageMagick.

Reads, with nothing but numpy: palettes of 1, 2, 4 and 8 bits, also run-length coded; 16, 24 and 32
bits, with or without bit fields; headers of OS/2; bare DIBs, which have no file header. Rows are
read where they are asked for; run-length coded images are in memory as a whole.

Mapping: shape (height, width) or (height, width, channels), uint8, index order C. A palette that is
black and white gives bool, one of the grey values in order gives grey; any other gives RGB. 24 and
32 bits give RGB; bit fields with one for alpha RGBA. Channels of other than 8 bits have **the values
of the file** (0 to 31 of 5 bits), which other programs scale to 255: a note says so; those of more
than 8 are uint16 or uint32. Pixels that no run sets are of colour 0, and counted in a note.

Metadata, in the namespace ``image``: ``resolution``, and ``channel_bits`` where they are not 8; not
written.

Refused: cut files; runs that leave the image; JPEG and PNG inside a BMP; OS/2's Huffman and 24-bit
runs; bit fields that overlap or have gaps; images above ``--max-memory`` that are run-length coded.

Writes, with Pillow: bool as 1 bit, uint8 (H, W) as 8-bit grey, (H, W, 3) as 24 bits. Alpha is
refused: only headers that most programs do not know have it.
"""

from __future__ import annotations

import struct

from raconvert.arrays.memory import check_memory
from raconvert.conversion.planes import split
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported, listed
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
    trailing_note,
)

from .metadata import metadata_of
from .plan import image_plan
from .programs import pillow_programs as programs

__all__ = ["FORMAT", "plan", "programs", "read", "sniff", "split"]

MAGIC = b"BM"
# A DIB without its file header begins with the size of its own: version 3 (the usual one), 4 or 5.
BARE = (b"\x28\0\0\0", b"\x6c\0\0\0", b"\x7c\0\0\0")
OLD_SIZE = 12  # of OS/2's first header
HEADER_SIZES = (OLD_SIZE, 16, 40, 52, 56, 64, 108, 124)
BITS = (1, 2, 4, 8, 16, 24, 32)  # per pixel
RUNS = (1, 2)
CODINGS = {
    0: "not coded", 1: "runs of 8 bits", 2: "runs of 4 bits", 3: "bit fields", 4: "JPEG", 5: "PNG",
    6: "bit fields with alpha",
}  # fmt: skip
USUAL_MASKS = {
    16: (0x7C00, 0x3E0, 0x1F), 24: (0xFF0000, 0xFF00, 0xFF), 32: (0xFF0000, 0xFF00, 0xFF),
}  # fmt: skip
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
    """Sure by a known header size and one plane behind the magic; a bare DIB by its exact size."""
    head = source.head
    start = 14 if head.startswith(MAGIC) else 0
    if len(head) < start + 16:
        return MAYBE if start and source.size < 30 and b"\n" not in head else NO
    fields = _fields(head)
    if int.from_bytes(head[start : start + 4], "little") not in HEADER_SIZES or fields.planes != 1:
        return NO
    exact = start or _first(head, fields) + fields.nbytes == source.size
    return SURE if exact else MAYBE if fields.bits in BITS else NO


class Fields(Record):
    """The numbers of a header, those that it does not have being 0."""

    size: int
    width: int
    height: int
    planes: int
    bits: int
    compression: int
    data_bytes: int
    resolution: tuple[int, int]
    used: int

    @property
    def row_bytes(self) -> int:
        """The bytes of a row that is not compressed, with its padding."""
        return (self.width * self.bits + 31) // 32 * 4

    @property
    def nbytes(self) -> int:
        """The bytes of all rows that are not compressed."""
        return self.row_bytes * abs(self.height)

    @property
    def colours(self) -> int:
        """The colours of the palette as the header has them."""
        return min(self.used, 256) or (1 << self.bits if self.bits <= 8 else 0)


class Header(Record):
    """Where and how the pixels of a BMP are stored: `masks` of channels, or a palette.

    `kind` is that of the array: ``bool``, ``grey`` or ``rgb``; `down` says that the first row is
    the top; `runs` that they are run-length coded.
    """

    width: int
    height: int
    bits: int
    first: int
    row_bytes: int
    data_bytes: int
    down: bool
    runs: bool
    kind: str
    palette: list[tuple[int, ...]]
    masks: list[int]

    @property
    def in_bytes(self) -> bool:
        """True if each channel is a byte of the pixel."""
        bytes_of = (0xFF, 0xFF00, 0xFF0000, 0xFF000000)
        return bool(self.masks) and all(mask in bytes_of for mask in self.masks)


def _fields(head: bytes) -> Fields:
    start = 14 if head.startswith(MAGIC) else 0
    size = int.from_bytes(head[start : start + 4], "little")
    if size == OLD_SIZE:  # OS/2's header has sides of 2 bytes
        width, height, planes, bits = struct.unpack_from("<HHHH", head, start + 4)
        return Fields(size, width, height, planes, bits, 0, 0, (0, 0), 0)
    own = head[start + 4 : start + min(size, 40)].ljust(36, b"\0")
    width, height, planes, bits, how, nbytes, x, y, used, _ = struct.unpack("<IiHHIIiiII", own)
    return Fields(size, width, height, planes, bits, how, nbytes, (x, y), used)


def _masks_behind(fields: Fields) -> int:
    """The bytes of masks that follow the header, where it has no place for them."""
    return {3: 12, 6: 16}.get(fields.compression, 0) if fields.size == 40 else 0


def _first(head: bytes, fields: Fields) -> int:
    """Where the pixels begin."""
    if head.startswith(MAGIC):
        return int.from_bytes(head[10:14], "little")
    entry = 3 if fields.size == OLD_SIZE else 4
    return fields.size + _masks_behind(fields) + entry * fields.colours


def read(source: Source) -> Bundle:
    """One lazy array, named after the file's stem: (height, width[, channels]), bool or uint."""
    fields, start = _fields(source.head.ljust(56, b"\0")), 14 * source.head.startswith(MAGIC)
    _check(fields, source)
    first, notes = _first(source.head, fields), list[str]()
    palette, masks = _palette(source, fields, start, first), _masks(source, fields, start)
    runs = fields.compression in RUNS
    stored = max(0, source.size - first)
    header = Header(
        fields.width, abs(fields.height), fields.bits, first, fields.row_bytes,
        min(fields.data_bytes or stored, stored) if runs else fields.nbytes,
        fields.height < 0, runs, _kind(palette), palette, masks,
    )  # fmt: skip
    pixels = header.width * header.height
    if min(header.width, header.height) < 1 or (not runs and first + header.data_bytes > source.size):
        what = f"declares {header.width} × {header.height} pixels, which the file has no bytes for"
        raise Corrupt(what, path=source.path)
    from .bmp_pixels import Rows, unpack_runs

    channels = len(masks) or (3 if header.kind == "rgb" else 1)
    depths = [mask.bit_count() for mask in masks]
    deepest = max(depths, default=0)
    nbytes = 1 if deepest <= 8 else 2 if deepest <= 16 else 4
    shape = (header.height, header.width) + (channels,) * (channels > 1)
    end = first + header.data_bytes
    if runs:
        if pixels > MAX_RATIO * source.size:
            what = f"'{source.path}': its {header.width} × {header.height} pixels of few runs"
            check_memory(2 * pixels, source.max_memory, what)
        end, done = unpack_runs(source, header, None)
        end = max(end, first + fields.data_bytes)
        notes += [f"{pixels - done} pixels that no run sets are of colour 0"] * (done < pixels)
    odd = [depth for depth in depths if depth != 8]
    if odd:
        notes.append(f"channels of {listed([*map(str, depths)])} bits keep the values of the file, unscaled")
    x, y = fields.resolution
    meta = metadata_of({
        "resolution": [[x, 100], [y, 100], "cm"] if min(x, y) > 0 else None,
        "channel_bits": depths if odd else None,
    })  # fmt: skip
    stored_type = element("bool" if header.kind == "bool" else "uint", nbytes)
    rows = Rows(source, header, shape, dtype_of(stored_type))
    array = Array(
        stored_type, shape[::-1], data=lambda: rows, name=source.stem, index_order="C", meta=meta
    )
    # A colour profile may follow the pixels; where it ends only the file header says.
    declared = int.from_bytes(source.head[2:6], "little") * source.head.startswith(MAGIC)
    behind = source.size - max(end, declared)
    notes += [trailing_note(behind, "the end of the BMP image")] if behind > 0 else []
    return Bundle([array], notes=notes)


def _check(fields: Fields, source: Source) -> None:
    """Refuse what is not read: other codings, depths and headers."""
    depths = {0: BITS, 1: (8,), 2: (4,), 3: (16, 24, 32), 6: (16, 24, 32)}
    if fields.size not in HEADER_SIZES or fields.planes != 1:
        raise Corrupt("has a header of an unknown size, or several planes", path=source.path)
    of_os2 = fields.size in (16, 64) and fields.compression >= 3
    if fields.bits not in depths.get(fields.compression, ()) or of_os2:
        coding = CODINGS.get(fields.compression, f"coding {fields.compression}")
        coding = "coding of OS/2" if of_os2 else coding
        raise Unsupported(
            f"has pixels of {fields.bits} bits per pixel ({coding}), which are not read here",
            path=source.path, remedy="rewrite it first, for instance with: bmptopnm IN > OUT.pnm",
        )  # fmt: skip
    if fields.compression in RUNS and fields.height < 0:
        raise Corrupt("has runs from the top, which BMP does not allow", path=source.path)


def _palette(source: Source, fields: Fields, start: int, first: int) -> list[tuple[int, ...]]:
    """The colours of a palette, RGB; nothing for pixels that have channels."""
    if fields.bits > 8:
        return []
    entry = 3 if fields.size == OLD_SIZE else 4
    at = start + fields.size
    count = min(fields.colours, 1 << fields.bits, max(0, first - at) // entry)
    data = source.read_exact(at, entry * count, "the palette")
    if not count:
        raise Corrupt("has no palette", path=source.path)
    return [(data[n + 2], data[n + 1], data[n]) for n in range(0, entry * count, entry)]


def _kind(palette: list[tuple[int, ...]]) -> str:
    """The kind of array: a palette of black and white is bool, one of all greys in order grey."""
    if palette == [(0, 0, 0), (255, 255, 255)]:
        return "bool"
    return "grey" if palette and all(one == (n,) * 3 for n, one in enumerate(palette)) else "rgb"


def _masks(source: Source, fields: Fields, start: int) -> list[int]:
    """The masks of red, green and blue, and of alpha if there is one; nothing for a palette."""
    if fields.bits <= 8:
        return []
    if fields.compression == 0:
        return list(USUAL_MASKS[fields.bits])
    alpha = fields.size >= 56 or fields.compression == 6
    data = source.read_exact(start + 40, 16 if alpha else 12, "the masks")
    masks = list(struct.unpack(f"<{len(data) // 4}I", data))
    masks = masks[:3] + [mask for mask in masks[3:] if mask]
    whole = all(
        mask and mask < 1 << fields.bits and "01" not in f"{mask:b}"
        for mask in masks
    )
    if not whole or sum(mask.bit_count() for mask in masks) != _joined(masks).bit_count():
        what = "has bit fields that overlap, have gaps, or are not in a pixel"
        raise Unsupported(what, path=source.path, got=", ".join(f"{mask:#x}" for mask in masks))
    return masks


def _joined(masks: list[int]) -> int:
    total = 0
    for mask in masks:
        total |= mask
    return total


def plan(bundle: Bundle) -> Plan:
    """Plan one image of bool or uint8, (H, W) or (H, W, 3)."""
    options = {"dpi": (0, 0)}  # without a resolution Pillow invents 96 dpi
    return image_plan(bundle, "BMP", options, max_side=MAX_SIDE, held="bool and uint8")
