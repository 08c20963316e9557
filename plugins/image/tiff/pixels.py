"""One page of a TIFF file: what tifffile finds in its tags, checked, and its pixels.

Strips and tiles are decompressed to exactly the bytes that they must have: deflate by zlib with a
limit, others by libtiff, which Pillow brings along. It gets all segments of a page, as they are, in
a small 8-bit (CCITT: 1-bit, JPEG: the same) TIFF in memory. Predictors, bit depths, tiles and
planes are numpy's part.
"""

from __future__ import annotations

import zlib
from operator import index
from struct import pack
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from raconvert.errors import Corrupt, Unsupported

from ..reader import decoded, silent_stderr
from .tables import COMPRESSIONS

if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Source

    Values = np.ndarray[Any, Any]

NONE, CCITT_G3, CCITT_G4, JPEG, DEFLATE = 1, 3, 4, 7, (8, 32946)
CCITT = (2, CCITT_G3, CCITT_G4)
# How many bytes one compressed byte can become at most (none, LZW, JPEG, deflate, PackBits, LZMA,
# Zstandard); rounded up for the last two, whose shortest block is 4 bytes for 128 KiB.
RATIOS = {
    1: 1, 5: 4096, 7: 8 * 64 * 4, 8: 1032, 32946: 1032, 32773: 64, 34925: 1 << 14, 50000: 1 << 15,
}  # fmt: skip
RGB, YCBCR = 2, 6
JPEG_COLORS = ((RGB, 3), (YCBCR, 3), (5, 4))  # photometric and number of samples
KINDS = {1: "uint", 2: "int", 3: "float", 4: "uint", 6: "complex"}
WIDTHS = {"uint": (8, 16, 32, 64), "int": (8, 16, 32, 64), "float": (16, 32, 64),
          "complex": (64, 128)}  # fmt: skip
MAX_BYTES = 0xFFFF0000  # of a classic TIFF
_LETTERS = {3: "H", 4: "I", 7: "B"}
_lock = Lock()


class Page:
    """The pixels of one page: kind, and where and how they are stored."""

    def __init__(self, page: Any, source: Source) -> None:
        self.source, self.where = source, f"directory at byte {page.offset}"
        self.height, self.width = index(page.imagelength), index(page.imagewidth)
        self.samples = index(page.samplesperpixel)
        self.compression, self.predictor = index(page.compression), index(page.predictor)
        self.photometric = self.stored_photometric = index(page.tags.valueof(262, 1))
        self.reversed_bits = index(page.fillorder) == 2
        self.planar = index(page.planarconfig) == 2 and self.samples > 1
        self.order = page.parent.byteorder
        self.tables = page.jpegtables or b""
        self.sampling = page.tags.valueof(530, (2, 2))
        fax = self.compression in (CCITT_G3, CCITT_G4)
        self.fax = index(page.tags.valueof(289 + self.compression, 0)) if fax else 0
        self.tiled = bool(page.is_tiled)
        size = (page.tilelength, page.tilewidth) if self.tiled else (page.rowsperstrip, self.width)
        self.rows, self.columns = index(size[0]), index(size[1])
        if min(self.height, self.width, self.samples, self.rows, self.columns) < 1:
            raise self.corrupt("page, strips or tiles have no pixels")
        self.bits, self.element = self._type(page.bitspersample, page.sampleformat)
        self._check_supported(index(page.imagedepth), index(page.tiledepth))
        if self.compression == JPEG and self.photometric == YCBCR:
            self.photometric = RGB  # as libtiff decodes it
        self.across, self.down = -(-self.width // self.columns), -(-self.height // self.rows)
        self.planes = self.samples if self.planar else 1
        self.row_samples = self.columns * (1 if self.planar else self.samples)
        self.row_bytes = -(-self.row_samples * self.bits // 8)
        count = self.across * self.down * self.planes
        last = self.rows if self.tiled else self.height - (self.down - 1) * self.rows
        self.offsets = tuple(map(index, page.dataoffsets))
        self.counts = tuple(map(index, page.databytecounts))
        if len(self.offsets) != count or len(self.counts) != count:
            raise self.corrupt(f"has {len(self.offsets)} strips or tiles, not {count}")
        plane = [*[self.rows] * ((self.down - 1) * self.across), *[last] * self.across]
        self.segment_rows = plane * self.planes
        self.nbytes = self.height * self.width * self.samples * self.element[1]
        self.decoded_bytes = self.row_bytes * sum(self.segment_rows)
        self._check_segments()

    @property
    def kind(self) -> tuple[Any, ...]:
        """What the pages of a stack must have in common."""
        return (self.shape, f"{self.bits}-bit {self.element[0]}", f"photometric {self.photometric}")

    @property
    def shape(self) -> tuple[int, ...]:
        """(height, width[, samples])."""
        return (self.height, self.width) + (self.samples,) * (self.samples > 1)

    def corrupt(self, what: str) -> Corrupt:
        """The error of a page that contradicts itself."""
        return Corrupt(what, path=self.source.path, where=self.where)

    def refused(self, what: str, remedy: str | None = None) -> Unsupported:
        """The error of a page that is not read here."""
        return Unsupported(f"has {what}", path=self.source.path, where=self.where, remedy=remedy)

    def _type(self, bits: object, form: object) -> tuple[int, tuple[str, int]]:
        """The bits of a sample, and kind and bytes of the element that holds it."""
        kind = KINDS.get(int(form)) if isinstance(form, int) else None
        if isinstance(bits, int) and kind is not None:
            if bits in WIDTHS[kind]:
                return bits, (kind, bits // 8)
            if kind == "uint" and 1 <= bits < 16:
                return bits, ("bool", 1) if bits == 1 else ("uint", 1 if bits < 8 else 2)
        raise self.refused(f"samples of {bits} bits in format {form}")

    def _check_supported(self, *depths: int) -> None:
        compressed = self.compression != NONE
        whole, kind = self.bits % 8 == 0, self.element[0]
        predictable = {1: True, 2: whole and kind != "complex", 3: whole and kind == "float"}
        grey = self.planar or self.samples == 1
        jpeg = (
            self.photometric != YCBCR if grey else (self.photometric, self.samples) in JPEG_COLORS
        )
        name = COMPRESSIONS.get(self.compression, f"unknown compression {self.compression}")
        faults = {
            f"pixels compressed as {name}":
                self.compression not in RATIOS and self.compression not in CCITT,
            "compressed pixels in reversed bit order":
                self.reversed_bits and compressed and self.compression not in CCITT,
            "CCITT compression of tiles, or of more than one bit":
                self.compression in CCITT and (self.tiled or (self.bits, self.samples) != (1, 1)),
            "images with a depth": max(depths) > 1,
            f"JPEG of {self.bits} bits, or in unusual colours (photometric {self.photometric})":
                self.compression == JPEG
                and not (jpeg and (self.bits, kind, self.predictor) == (8, "uint", 1)),
            "colour at a lower resolution (YCbCr subsampling)":
                self.photometric == YCBCR and self.compression != JPEG
                and set(np.atleast_1d(self.sampling).tolist()) != {1},
            f"predictor {self.predictor} with {self.bits} bits":
                not predictable.get(self.predictor),
        }  # fmt: skip
        for what, found in faults.items():
            if found:
                raise self.refused(what, "rewrite it, for instance with: tiffcp -c none IN OUT")

    def _check_segments(self) -> None:
        total = 0
        for offset, count in zip(self.offsets, self.counts, strict=True):
            if offset <= 0 or count <= 0:
                what = "strips or tiles without data (a sparse file)"
                raise self.refused(what, "fill them first: gdal_translate")
            if offset + count > self.source.size:
                raise self.corrupt("file ends inside its pixels")
            total += count
        if total > self.source.size:
            raise self.corrupt("strips or tiles overlap")
        ratio = RATIOS.get(self.compression, 1 << 62)
        if self.decoded_bytes > ratio * total + (64 if ratio > 1 else 0):
            raise self.corrupt("declares more pixels than its compressed bytes can hold")

    def run(self) -> tuple[int, int] | None:
        """Start and end of the pixels in the file if they lie there in order, verbatim."""
        shuffled = self.planar or self.reversed_bits or self.bits % 8 or self.predictor != 1
        if self.compression != NONE or shuffled or self.columns != self.width:
            return None
        start = end = self.offsets[0]
        for rows, offset, count in zip(self.segment_rows, self.offsets, self.counts, strict=True):
            if offset != end or count < rows * self.row_bytes:
                return None
            end += rows * self.row_bytes
        return start, start + self.nbytes  # the last tile may have rows below the image

    # --------------------------------------------------------------------------------- pixels

    def decode(self) -> Values:
        """The pixels, (height, width[, samples]), in the byte order of the machine."""
        count = self.across * self.down
        planes = [range(at, at + count) for at in range(0, count * self.planes, count)]
        if self.compression == JPEG:
            images = [self._through_libtiff(plane) for plane in planes]
            return np.stack(images, axis=-1) if self.planar else images[0]
        own = self.compression in (NONE, *DEFLATE)
        data = b"".join((self._plain if own else self._through_libtiff)(p) for p in planes)
        if len(data) != self.decoded_bytes:
            raise self.corrupt("strips or tiles have too few pixels")
        rows = np.frombuffer(data, np.uint8).reshape(-1, self.row_bytes)
        if self.reversed_bits and self.compression == NONE:
            rows = np.packbits(np.unpackbits(rows).reshape(-1, 8)[:, ::-1]).reshape(rows.shape)
        values = self._samples(rows).reshape(-1, self.columns, self.row_samples // self.columns)
        if self.predictor == 2:  # every sample is the difference to its left neighbour
            plain = values.view(f"u{values.itemsize}")
            values = np.cumsum(plain, axis=1, dtype=plain.dtype).view(values.dtype)
        image = values.reshape(
            self.planes, self.height if not self.tiled else -1, *values.shape[1:]
        )
        if self.tiled:
            tiles = values.reshape(self.planes, self.down, self.across, self.rows, self.columns, -1)
            image = tiles.transpose(0, 1, 3, 2, 4, 5).reshape(
                self.planes, self.down * self.rows, self.across * self.columns, -1
            )[:, : self.height, : self.width]
        image = image.transpose(3, 1, 2, 0) if self.planar else image
        return np.ascontiguousarray(image[0]).reshape(self.shape)

    def _plain(self, segments: range) -> bytes:
        """The bytes of these strips or tiles."""
        out = []
        for number in segments:
            expected = self.segment_rows[number] * self.row_bytes
            data = self._stored(number)[: expected if self.compression == NONE else None]
            if self.compression != NONE:
                try:  # a byte more than there may be, so that zlib comes to the checksum at the end
                    data = zlib.decompressobj().decompress(data, expected + 1)[:expected]
                except zlib.error as error:
                    raise self.corrupt(f"damaged deflate data ({error})") from error
            if len(data) < expected:
                raise self.corrupt("strip or tile has too few pixels")
            out.append(data)
        return b"".join(out)

    def _stored(self, number: int) -> bytes:
        return self.source.read_exact(self.offsets[number], self.counts[number], "the pixels")

    def _samples(self, data: Values) -> Values:
        """Rows of bytes as rows of samples."""
        (kind, nbytes), samples = self.element, self.row_samples // self.columns
        if self.predictor == 3:
            # Byte planes, the most significant first, each byte the difference to the one before
            # (Adobe Photoshop TIFF technical note 3).
            plain = np.cumsum(data.reshape(len(data), -1, samples), axis=1, dtype=np.uint8)
            planes = plain.reshape(len(data), nbytes, -1).transpose(0, 2, 1)
            return np.ascontiguousarray(planes).view(f">f{nbytes}")[..., 0].astype(f"f{nbytes}")
        if self.bits % 8 == 0:
            code = {"uint": "u", "int": "i", "float": "f", "complex": "c"}[kind]
            dtype = np.dtype(f"{self.order}{code}{nbytes}")
            return data.view(dtype).astype(dtype.newbyteorder("="), copy=False)
        bits = np.unpackbits(data, axis=1)[:, : self.row_samples * self.bits]
        if self.bits == 1:
            return bits.view(np.bool_)
        out = np.zeros((len(data), self.row_samples), f"u{nbytes}")
        for place in range(self.bits):
            out = (out << 1) | bits[:, place :: self.bits]
        return out

    def _through_libtiff(self, segments: range) -> Any:
        """What libtiff makes of these strips or tiles: bytes; of JPEG an image without YCbCr."""
        jpeg, fax = self.compression == JPEG, self.compression in CCITT
        samples = self.row_samples // self.columns if jpeg else 1
        rows = self.height if jpeg else sum(self.segment_rows[n] for n in segments)
        tags: dict[int, tuple[int, tuple[int, ...]]] = {
            256: (4, (self.width if jpeg or fax else self.row_bytes,)),
            257: (4, (rows,)),
            258: (3, (1 if fax else 8,) * samples),
            259: (3, (self.compression,)),
            # Where white is zero Pillow would invert the values of grey.
            262: (3, (1 if samples == 1 else self.stored_photometric,)),
            266: (3, (2 if self.reversed_bits and fax else 1,)),
            277: (3, (samples,)),
            278: (4, (self.rows,)),
        }  # fmt: skip
        if jpeg and samples == 3:
            tags[530] = (3, tuple(np.atleast_1d(self.sampling).tolist()))
        if jpeg and self.tiled:
            tags |= {322: (4, (self.columns,)), 323: (4, (self.rows,))}
            del tags[278]
        if jpeg and self.tables:
            tags[347] = (7, tuple(self.tables))
        if self.compression in (CCITT_G3, CCITT_G4):
            tags[289 + self.compression] = (4, (self.fax,))
        data = _classic_tiff(tags, [self._stored(number) for number in segments])
        if len(data) > MAX_BYTES:
            raise self.refused("more than 4 GiB of compressed pixels in a page")
        with _lock, silent_stderr():
            values = decoded(data, self.source.path, f"the compressed data of the {self.where}")
        if not jpeg:
            return (np.packbits(values, axis=1) if fax else values).tobytes()
        if values.shape != (rows, self.width, samples)[: 2 + (samples > 1)] or values.dtype != "u1":
            raise self.corrupt("page is not what its JPEG data say")
        return values


def _classic_tiff(tags: dict[int, tuple[int, tuple[int, ...]]], pieces: list[bytes]) -> bytes:
    """A little-endian TIFF of one page with these tags, number: (type, values), and pieces.

    The pieces are tiles if the tags say their size, else strips.
    """
    body = b"".join(pieces)
    body += b"\0" * (len(body) % 2)
    sizes = [len(piece) for piece in pieces]
    offsets = (8 + np.cumsum([0, *sizes[:-1]])).tolist()
    at, size = (324, 325) if 322 in tags else (273, 279)
    tags = {**tags, at: (4, tuple(offsets)), size: (4, tuple(sizes))}
    start = 8 + len(body)
    directory, extra = pack("<H", len(tags)), b""
    for tag, (kind, values) in sorted(tags.items()):
        data = pack(f"<{len(values)}{_LETTERS[kind]}", *values)
        if len(data) > 4:
            data, extra = pack("<I", start + 6 + 12 * len(tags) + len(extra)), extra + data
        directory += pack("<HHI4s", tag, kind, len(values), data)
    return pack("<2sHI", b"II", 42, min(start, 0xFFFFFFFF)) + body + directory + bytes(4) + extra
