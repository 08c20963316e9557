"""The header of a BMP: offset and storage of its pixels."""

from __future__ import annotations

import struct
from functools import reduce
from operator import or_

from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Source

MAGIC = b"BM"
# A DIB without its file header begins with the size of its own: version 3 (the usual one), 4 or 5.
BARE = (b"\x28\0\0\0", b"\x6c\0\0\0", b"\x7c\0\0\0")
OLD_SIZE = 12  # bytes of OS/2's first header
HEADER_SIZES = (OLD_SIZE, 16, 40, 52, 56, 64, 108, 124)
BITS = (1, 2, 4, 8, 16, 24, 32)  # per pixel
RUNS = (1, 2)  # codings by runs
CODINGS = {
    0: "not coded", 1: "runs of 8 bits", 2: "runs of 4 bits", 3: "bit fields", 4: "JPEG", 5: "PNG",
    6: "bit fields with alpha",
}  # fmt: skip
USUAL_MASKS = {
    16: (0x7C00, 0x3E0, 0x1F), 24: (0xFF0000, 0xFF00, 0xFF), 32: (0xFF0000, 0xFF00, 0xFF),
}  # fmt: skip


class Fields(Record):
    """The numbers of a header; 0 for those that it does not have."""

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
        """The bytes of an uncompressed row, with its padding."""
        return (self.width * self.bits + 31) // 32 * 4

    @property
    def nbytes(self) -> int:
        """The bytes of all rows if they are uncompressed."""
        return self.row_bytes * abs(self.height)

    @property
    def colours(self) -> int:
        """The number of colours in the palette, at most 256; 0 without a palette."""
        return min(self.used, 256) or (1 << self.bits if self.bits <= 8 else 0)


class Header(Record):
    """Storage of the pixels of a BMP: `masks` of channels, or a palette.

    `first` is the offset of the pixels. `kind` is that of the array: ``bool``, ``grey`` or ``rgb``.
    `down` is True if the first row is the top, `runs` if the pixels are run-length coded.
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
    def depths(self) -> list[int]:
        """The bits of each channel that has a mask."""
        return [mask.bit_count() for mask in self.masks]

    @property
    def channels(self) -> int:
        """The number of channels of the array."""
        return len(self.masks) or (3 if self.kind == "rgb" else 1)

    @property
    def in_bytes(self) -> bool:
        """True if each channel is a byte of the pixel."""
        bytes_of = (0xFF, 0xFF00, 0xFF0000, 0xFF000000)
        return bool(self.masks) and all(mask in bytes_of for mask in self.masks)


def fields_of(head: bytes) -> Fields:
    """The numbers of the header in the first bytes of a file."""
    start = 14 if head.startswith(MAGIC) else 0
    size = int.from_bytes(head[start : start + 4], "little")
    if size == OLD_SIZE:  # OS/2's header has sides of 2 bytes
        width, height, planes, bits = struct.unpack_from("<HHHH", head, start + 4)
        return Fields(size, width, height, planes, bits, 0, 0, (0, 0), 0)
    own = head[start + 4 : start + min(size, 40)].ljust(36, b"\0")
    width, height, planes, bits, how, nbytes, x, y, used, _ = struct.unpack("<IiHHIIiiII", own)
    return Fields(size, width, height, planes, bits, how, nbytes, (x, y), used)


def _masks_behind(fields: Fields) -> int:
    """The bytes of masks behind the header; 0 if there are none, or the header has them."""
    return {3: 12, 6: 16}.get(fields.compression, 0) if fields.size == 40 else 0


def first_of(head: bytes, fields: Fields) -> int:
    """The offset of the pixels."""
    if head.startswith(MAGIC):
        return int.from_bytes(head[10:14], "little")
    entry = 3 if fields.size == OLD_SIZE else 4
    return fields.size + _masks_behind(fields) + entry * fields.colours


def header_of(source: Source) -> tuple[Header, Fields]:
    """The header of a file, checked against its size, and the numbers in it."""
    fields, start = fields_of(source.head.ljust(56, b"\0")), 14 * source.head.startswith(MAGIC)
    _check(fields, source)
    first = first_of(source.head, fields)
    palette, masks = _palette(source, fields, start, first), _masks(source, fields, start)
    runs, stored = fields.compression in RUNS, max(0, source.size - first)
    header = Header(
        fields.width, abs(fields.height), fields.bits, first, fields.row_bytes,
        min(fields.data_bytes or stored, stored) if runs else fields.nbytes,
        fields.height < 0, runs, _kind(palette), palette, masks,
    )  # fmt: skip
    is_cut = not runs and first + header.data_bytes > source.size
    if min(header.width, header.height) < 1 or is_cut:
        what = f"declares {header.width} × {header.height} pixels, which the file has no bytes for"
        raise Corrupt(what, path=source.path)
    return header, fields


def _check(fields: Fields, source: Source) -> None:
    """Refuse codings, depths and headers that are not read here."""
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
    """The colours of the palette, RGB; empty for pixels with channels."""
    if fields.bits > 8:
        return []
    entry = 3 if fields.size == OLD_SIZE else 4
    offset = start + fields.size
    count = min(fields.colours, 1 << fields.bits, max(0, first - offset) // entry)
    data = source.read_exact(offset, entry * count, "the palette")
    if not count:
        raise Corrupt("has no palette", path=source.path)
    return [(data[n + 2], data[n + 1], data[n]) for n in range(0, entry * count, entry)]


def _kind(palette: list[tuple[int, ...]]) -> str:
    """The kind of array: a palette of black and white is bool, one of all greys in order grey."""
    if palette == [(0, 0, 0), (255, 255, 255)]:
        return "bool"
    in_order = all(colour == (n, n, n) for n, colour in enumerate(palette))
    return "grey" if palette and in_order else "rgb"


def _masks(source: Source, fields: Fields, start: int) -> list[int]:
    """The masks of red, green, blue and, if it exists, alpha; empty for a palette."""
    if fields.bits <= 8:
        return []
    if fields.compression == 0:
        return list(USUAL_MASKS[fields.bits])
    has_alpha = fields.size >= 56 or fields.compression == 6
    data = source.read_exact(start + 40, 16 if has_alpha else 12, "the masks")
    masks = list(struct.unpack(f"<{len(data) // 4}I", data))
    masks = masks[:3] + [mask for mask in masks[3:] if mask]
    # A mask has no gap if no 0 stands before a 1 in its binary digits.
    is_whole = all(mask and mask < 1 << fields.bits and "01" not in f"{mask:b}" for mask in masks)
    overlap = sum(mask.bit_count() for mask in masks) != reduce(or_, masks).bit_count()
    if not is_whole or overlap:
        what = "has bit fields that overlap, have gaps, or are not in a pixel"
        raise Unsupported(what, path=source.path, got=", ".join(f"{mask:#x}" for mask in masks))
    return masks
