"""One page of a TIFF file: what its directory says of the pixels, and the pixels themselves.

Strips and tiles are decompressed one after the other to exactly the bytes that they must have.
Deflate goes through zlib with a limit, all others through libtiff, which Pillow brings along: all
segments of a page are put, as they are, into a small 8-bit (CCITT: 1-bit) TIFF in memory that
imageio reads with Pillow pinned. Predictors, bit depths, tiles and planes are numpy's part; of JPEG
libtiff does it all, the conversion of YCbCr to RGB included.
"""

from __future__ import annotations

import zlib
from collections import namedtuple
from math import prod

import numpy as np

from raconvert.errors import Corrupt, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .directory import Directory

    Values = np.ndarray[Any, Any]

NONE, CCITT_RLE, CCITT_G3, CCITT_G4, LZW, DEFLATE, PACKBITS, OLD_DEFLATE, LZMA, ZSTD, JPEG = (
    1, 2, 3, 4, 5, 8, 32773, 32946, 34925, 50000, 7,
)  # fmt: skip
CCITT = (CCITT_RLE, CCITT_G3, CCITT_G4)
LIBTIFF = (LZW, PACKBITS, LZMA, ZSTD, *CCITT)
# How many bytes one compressed byte can become at most; rounded up for LZMA and Zstandard, whose
# shortest block is 4 bytes for 128 KiB. A block of JPEG has 64 pixels, and at least a bit.
RATIOS = {
    NONE: 1, LZW: 4096, DEFLATE: 1032, OLD_DEFLATE: 1032, PACKBITS: 64, LZMA: 1 << 14,
    ZSTD: 1 << 15, JPEG: 8 * 64 * 4,
}  # fmt: skip
OTHERS = {
    6: "old-style JPEG", 34712: "JPEG 2000", 34887: "LERC",
    34933: "PNG", 50001: "WebP", 50002: "JPEG XL", 33003: "JPEG 2000",
    33005: "JPEG 2000", 34676: "SGI LogL", 34677: "SGI LogL", 32809: "ThunderScan",
}  # fmt: skip
# Photometric interpretation (tag 262) in words; the usual ones need none.
PHOTOMETRICS = {0: "miniswhite", 3: "palette", 4: "mask", 5: "separated", 6: "ycbcr", 8: "cielab",
                9: "icclab", 10: "itulab", 32803: "cfa", 34892: "linear raw"}  # fmt: skip
RGB, YCBCR = 2, 6
# Photometric interpretation and number of samples that JPEG is read of.
JPEG_COLORS = {(0, 1), (1, 1), (RGB, 3), (YCBCR, 3), (5, 4)}
_KINDS = {1: "uint", 2: "int", 3: "float", 4: "uint", 6: "complex"}
_WIDTHS = {"uint": (8, 16, 32, 64), "int": (8, 16, 32, 64), "float": (16, 32, 64),
           "complex": (64, 128)}  # fmt: skip

# What pages of one stack must have in common.
Kind = namedtuple("Kind", "height width samples bits element photometric")


class Page:
    """The pixels of one directory: kind, and where and how they are stored."""

    def __init__(self, directory: Directory) -> None:
        self.tiff = directory.tiff
        self.directory = directory
        self.offset = directory.offset
        number = directory.number
        self.width, self.height = number(256), number(257)
        self.samples = number(277, 1)
        if min(self.width, self.height, self.samples) < 1 or self.samples > 0xFFFF:
            raise self.tiff.corrupt("page has no pixels", self.offset)
        self.compression = number(259, 1)
        self.photometric = number(262, 1)
        self.predictor = number(317, 1)
        self.reversed_bits = number(266, 1) == 2
        self.planar = number(284, 1) == 2 and self.samples > 1
        self.bits, self.element = self._type()
        self.tiled = 322 in directory.entries
        self._check_supported()
        if self.compression == JPEG and self.photometric == YCBCR:
            self.photometric = RGB  # as libtiff decodes it
        self._set_segments()

    @property
    def kind(self) -> Kind:
        """What the pages of a stack must have in common."""
        return Kind(
            self.height, self.width, self.samples, self.bits, self.element, self.photometric
        )

    @property
    def below(self) -> int:
        """The number of images that belong to this one (SubIFDs, tag 330): reduced ones, mostly."""
        entry = self.directory.entries.get(330)
        return entry.count if entry else 0

    @property
    def shape(self) -> tuple[int, ...]:
        """(height, width[, samples])."""
        return (self.height, self.width) + (self.samples,) * (self.samples > 1)

    @property
    def nbytes(self) -> int:
        """Bytes of the decoded pixels."""
        return prod(self.shape) * self.element[1]

    def _type(self) -> tuple[int, tuple[str, int]]:
        """Return the bits of a sample, and kind and bytes of the element that holds it."""
        widths = self._equal(258, 1)
        kind = _KINDS.get(self._equal(339, 1))
        if kind is not None and widths in _WIDTHS[kind]:
            return widths, (kind, widths // 8)
        if kind == "uint" and 1 <= widths < 16:
            if widths == 1:
                return 1, ("bool", 1)
            return widths, ("uint", 1 if widths < 8 else 2)
        raise self._unsupported(f"samples of {widths} bits in format {self._equal(339, 1)}")

    def _equal(self, tag: int, default: int) -> int:
        """Return the number that all samples share in a tag."""
        values = set(self.directory.numbers(tag)[: self.samples]) or {default}
        if len(values) > 1:
            raise self._unsupported(f"samples that differ in tag {tag}: {sorted(values)}")
        return values.pop()

    def _unsupported(self, what: str, remedy: str | None = None) -> Unsupported:
        return Unsupported(
            f"has {what}", path=self.tiff.path, where=f"directory at byte {self.offset}",
            remedy=remedy,
        )  # fmt: skip

    def _check_supported(self) -> None:
        if self.compression not in RATIOS and self.compression not in CCITT:
            name = OTHERS.get(self.compression, f"the unknown compression {self.compression}")
            remedy = "decompress it first, for instance with: tiffcp -c none IN OUT"
            raise self._unsupported(f"pixels compressed as {name}", remedy)
        if self.reversed_bits and self.compression not in (NONE, *CCITT):
            raise self._unsupported("compressed pixels in reversed bit order")
        if self.compression in CCITT and (self.bits, self.samples) != (1, 1):
            raise self._unsupported("CCITT compression for more than one bit")
        if self.compression in CCITT and self.tiled:
            raise self._unsupported("tiles in CCITT compression")
        if self.directory.number(32997, 1) > 1 or self.directory.number(32998, 1) > 1:
            raise self._unsupported("images with a depth")
        if self.compression == JPEG:
            self._check_jpeg()
        elif self.photometric == YCBCR and set(self.directory.numbers(530) or (2, 2)) != {1}:
            raise self._unsupported("colour at a lower resolution (YCbCr subsampling)")
        self._check_predictor()

    def _check_predictor(self) -> None:
        whole = self.bits % 8 == 0
        if self.predictor == 2:
            allowed = whole and self.element[0] in ("uint", "int", "float")
        elif self.predictor == 3:
            allowed = whole and self.element[0] == "float"
        else:
            allowed = self.predictor == 1
        if not allowed:
            raise self._unsupported(f"predictor {self.predictor} with {self.bits} bits")

    def _check_jpeg(self) -> None:
        colors = (1, 1) if self.planar else (self.photometric, self.samples)
        if (self.bits, self.element[0], self.predictor) != (8, "uint", 1):
            raise self._unsupported(f"JPEG of {self.bits} bits")
        if colors not in JPEG_COLORS or (self.planar and self.photometric == YCBCR):
            raise self._unsupported(
                f"JPEG of {self.samples} samples in photometric {self.photometric}"
            )

    def _set_segments(self) -> None:
        """Find the sizes of strips or tiles, and check their number, places and bytes."""
        number = self.directory.number
        if self.tiled:
            self.segment_width, self.segment_height = number(322), number(323)
        else:
            self.segment_width = self.width
            self.segment_height = min(number(278, 0xFFFFFFFF), self.height)
        if self.segment_width < 1 or self.segment_height < 1:
            raise self.tiff.corrupt("strips or tiles have no pixels", self.offset)
        self.across = -(-self.width // self.segment_width)
        self.down = -(-self.height // self.segment_height)
        self.planes = self.samples if self.planar else 1
        self.segment_samples = 1 if self.planar else self.samples
        self.row_bytes = -(-self.segment_width * self.segment_samples * self.bits // 8)
        count = self.across * self.down * self.planes
        tags = (324, 325) if self.tiled and 324 in self.directory.entries else (273, 279)
        for tag in tags[: 1 if self._may_guess(tags) else 2]:
            entry = self.directory.entries.get(tag)
            if entry is None or entry.count < count:
                raise Corrupt(
                    "page has too few strips or tiles",
                    path=self.tiff.path,
                    where=f"tag {tag} of the directory at byte {self.offset}",
                    expected=count,
                    got=0 if entry is None else entry.count,
                )
        self.offsets = self.directory.numbers(tags[0])[:count]
        self.counts = self.directory.numbers(tags[1])[:count]
        if not self.counts:
            self.counts = tuple(rows * self.row_bytes for rows in self.segment_rows())
        self._check_segments()

    def _may_guess(self, tags: tuple[int, int]) -> bool:
        """Tell whether byte counts are missing and not needed (old writers)."""
        return tags[1] not in self.directory.entries and self.compression == NONE

    def segment_rows(self) -> Iterator[int]:
        """Yield the number of rows of each segment; the last strip of a plane may be shorter."""
        last = self.height - (self.down - 1) * self.segment_height
        for _ in range(self.planes):
            for row in range(self.down):
                short = not self.tiled and row == self.down - 1
                for _ in range(self.across):
                    yield last if short else self.segment_height

    def _check_segments(self) -> None:
        tiff, total = self.tiff, 0
        for offset, count in zip(self.offsets, self.counts, strict=True):
            if offset <= 0 or count <= 0:
                raise self._unsupported(
                    "strips or tiles without data (a sparse file)",
                    "fill them first: gdal_translate",
                )
            if offset + count > tiff.size:
                raise tiff.corrupt("file ends inside its pixels", offset)
            total += count
        if total > tiff.size:
            raise tiff.corrupt("strips or tiles overlap", self.offset)
        ratio = RATIOS.get(self.compression)
        need = self.row_bytes * self.down * self.segment_height * self.across * self.planes
        if not self.tiled:
            need = self.row_bytes * self.height * self.planes
        if ratio is not None and need > ratio * total + (64 if ratio > 1 else 0):
            raise Corrupt(
                "declares more pixels than its compressed bytes can hold",
                path=tiff.path,
                where=f"directory at byte {self.offset}",
                expected=f"at most {ratio * total} bytes",
                got=need,
            )
        self.decoded_bytes = need

    # ------------------------------------------------------------------------------- in place

    def run(self) -> tuple[int, int] | None:
        """Return start and end of the pixels in the file if they lie there in order, verbatim."""
        plain = (
            self.compression == NONE
            and self.predictor == 1
            and not self.reversed_bits
            and not self.planar
            and self.bits % 8 == 0
            and (self.across == 1 and self.segment_width == self.width)
        )
        if not plain:
            return None
        start = end = self.offsets[0]
        pieces = zip(self.segment_rows(), self.offsets, self.counts, strict=True)
        for rows, offset, count in pieces:
            if offset != end or count < rows * self.row_bytes:
                return None
            end += rows * self.row_bytes
        return start, start + self.nbytes  # the last tile may have rows below the image

    # --------------------------------------------------------------------------------- pixels

    def decode(self) -> Values:
        """Return the pixels, (height, width[, samples]), in the byte order of the machine."""
        if self.compression == JPEG:
            return self._through_libjpeg()
        data = np.frombuffer(self._decompressed(), np.uint8).reshape(-1, self.row_bytes)
        if self.reversed_bits and self.compression not in CCITT:
            data = _REVERSED[data]
        values = self._samples(data)  # (rows of all segments, samples of a row)
        values = values.reshape(-1, self.segment_width, self.segment_samples)
        if self.predictor == 2:
            values = _undifferenced(values)
        return self._joined(values)

    def _decompressed(self) -> bytes | bytearray:
        """Return the bytes of all segments, one after the other."""
        if self.compression in LIBTIFF:
            return self._through_libtiff()
        out = bytearray(self.decoded_bytes)
        done = 0
        pieces = zip(self.segment_rows(), self.offsets, self.counts, strict=True)
        for rows, offset, count in pieces:
            expected = rows * self.row_bytes
            data = self.tiff.at(offset, min(count, self._most(expected)), "the pixels")
            if self.compression != NONE:
                data = self._inflated(data, expected, offset)
            if len(data) < expected:
                raise self._short(offset, expected, len(data))
            out[done : done + expected] = memoryview(data)[:expected]
            done += expected
        return out

    def _most(self, expected: int) -> int:
        return expected if self.compression == NONE else 1 << 62

    def _inflated(self, data: bytes, expected: int, offset: int) -> bytes:
        try:
            # One byte more than there may be, so that zlib comes to the checksum at the end.
            return zlib.decompressobj().decompress(data, expected + 1)
        except zlib.error as error:
            raise Corrupt(
                f"damaged deflate data ({error})", path=self.tiff.path, where=f"byte {offset}"
            ) from error

    def _short(self, offset: int, expected: int, got: int) -> Corrupt:
        return Corrupt(
            "strip or tile has too few pixels", path=self.tiff.path, where=f"byte {offset}",
            expected=f"{expected} bytes", got=got,
        )  # fmt: skip

    def _through_libtiff(self) -> bytearray:
        """Decompress all segments with libtiff: plane by plane, as strips of bytes."""
        from .rewrap import libtiff_bytes

        out = bytearray()
        rows = self.down * self.segment_height * self.across if self.tiled else self.height
        for segments in self._segments_of_planes():
            out += libtiff_bytes(self, segments, rows)
        return out

    def _through_libjpeg(self) -> Values:
        from .rewrap import jpeg_values

        planes = [jpeg_values(self, segments) for segments in self._segments_of_planes()]
        image = np.stack(planes, axis=-1) if self.planar else planes[0]
        return image.reshape(self.shape)

    def _segments_of_planes(self) -> Iterator[list[bytes]]:
        """Yield the compressed strips or tiles of each plane."""
        per_plane = self.across * self.down
        for start in range(0, per_plane * self.planes, per_plane):
            part = slice(start, start + per_plane)
            yield [
                self.tiff.at(offset, count, "the pixels")
                for offset, count in zip(self.offsets[part], self.counts[part], strict=True)
            ]

    def _samples(self, data: Values) -> Values:
        """Return rows of bytes as rows of samples."""
        kind, nbytes = self.element
        count = self.segment_width * self.segment_samples
        if self.predictor == 3:
            return _float_undifferenced(data, self.segment_samples, nbytes)
        if self.bits % 8 == 0:
            code = {"uint": "u", "int": "i", "float": "f", "complex": "c"}[kind]
            dtype = np.dtype(f"{self.tiff.layout.order}{code}{nbytes}")
            return data.view(dtype).astype(dtype.newbyteorder("="), copy=False)
        bits = np.unpackbits(data, axis=1)[:, : count * self.bits]
        if self.bits == 1:
            return bits.view(np.bool_)
        out = np.zeros((len(data), count), f"u{nbytes}")
        for place in range(self.bits):
            out = (out << 1) | bits[:, place :: self.bits]
        return out

    def _joined(self, values: Values) -> Values:
        """Put strips or tiles, and planes, in their places."""
        if not self.tiled:
            image = values.reshape(self.planes, self.height, self.width, -1)
        else:
            tiles = values.reshape(
                self.planes, self.down, self.across, self.segment_height, self.segment_width, -1
            )
            image = tiles.transpose(0, 1, 3, 2, 4, 5).reshape(
                self.planes, self.down * self.segment_height, self.across * self.segment_width, -1
            )[:, : self.height, : self.width]
        if self.planar:
            image = image.transpose(3, 1, 2, 0)
        return np.ascontiguousarray(image[0]).reshape(self.shape)


_REVERSED = np.packbits(
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)[:, ::-1], axis=1
)[:, 0]


def _undifferenced(values: Values) -> Values:
    """Undo predictor 2: every sample is the difference to its left neighbour (section 14)."""
    plain = values.view(f"u{values.itemsize}")
    return np.cumsum(plain, axis=1, dtype=plain.dtype).view(values.dtype)


def _float_undifferenced(data: Values, samples: int, nbytes: int) -> Values:
    """Undo predictor 3 (Adobe Photoshop TIFF technical note 3).

    A row is a sequence of byte planes, the most significant first, each byte the difference to the
    one `samples` before it.
    """
    rows, row_bytes = data.shape
    plain = np.cumsum(data.reshape(rows, -1, samples), axis=1, dtype=np.uint8)
    planes = plain.reshape(rows, nbytes, row_bytes // nbytes)
    values = np.ascontiguousarray(planes.transpose(0, 2, 1))
    return values.view(f">f{nbytes}")[..., 0].astype(f"f{nbytes}")
