"""Pages that are decoded when they are needed, a strip or a row of tiles at a time."""

from __future__ import annotations

from math import prod
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key, is_basic, range_of
from raconvert.arrays.sources import Decoded
from raconvert.errors import Corrupt

from ..reader import guarded
from .codecs import BY_ROWS, CODECS, JPEGS, NONE, REVERSED, check_jpeg
from .fax import check_fax

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from raconvert.plugin import Source

    Values = np.ndarray[Any, Any]


Place = tuple[tuple[int, ...], tuple[int, ...], bytes]  # offsets and bytes of strips; tables
Range = tuple[int, int]

BAND_BYTES = 1 << 18  # of small strips that are decoded at once
REGION_BYTES = 4 << 20  # strips up to this size may be decoded again for the next region
COEFFICIENTS_BYTES = 8  # for a sample: coefficients of libjpeg of an image in several scans
PICTURE_BYTES = 16  # for a sample: memory of other libraries of pictures
SIGNED, PARAMETERS, T4_OPTIONS = 2, 50674, 292  # a sample format; tags of LERC, of group 3


class Grid:
    """The strips or tiles of a page: their positions, sizes and bytes."""

    def __init__(self, page: Any) -> None:
        self.height, self.width = index(page.imagelength), index(page.imagewidth)
        self.samples: int = page.samplesperpixel
        self.planar = bool(self.samples > 1 and page.planarconfig != 1)
        self.planes = self.samples if self.planar else 1
        self.together = self.samples // self.planes  # samples of one strip or tile
        self.rows, self.columns = min(index(page.rowsperstrip), self.height), self.width
        self.tiled = bool(page.is_tiled)
        if self.tiled:
            self.rows, self.columns = index(page.tilelength), index(page.tilewidth)
        # The bytes of a whole strip or tile if it is uncompressed
        self.nbytes: int = self.rows * -(-self.columns * self.together * page.bitspersample // 8)

    def shape(self, planes_first: bool) -> tuple[int, ...]:
        """The shape of a page, slowest axis first; a single sample has no axis."""
        samples = (self.samples,) * (self.samples > 1)
        size = self.height, self.width
        return (*samples, *size) if planes_first else (*size, *samples)

    def down_and_across(self) -> tuple[int, int]:
        """The numbers of strips or tiles below and beside each other."""
        return -(-self.height // self.rows), -(-self.width // self.columns)

    def bytes_of(self, number: int) -> int:
        """The number of decoded bytes of a strip or tile; the last strip is shorter."""
        down, across = self.down_and_across()
        first_row = number // across % down * self.rows
        rows = self.rows if self.tiled else min(self.rows, self.height - first_row)
        return self.nbytes // self.rows * rows

    def band(self, itemsize: int) -> tuple[int, int]:
        """The number of rows that are decoded at once, and their bytes."""
        row = self.width * self.together * itemsize
        rows = self.rows * max(1, BAND_BYTES // max(1, self.rows * row))
        return rows, min(rows, self.height) * row

    def needs(self, itemsize: int, compression: int) -> int:
        """The memory for the pixels of a band, and for decoding one strip or tile."""
        decoded: int = self.rows * self.columns * self.together * itemsize
        more = 0
        if CODECS[compression].picture:
            more = PICTURE_BYTES * decoded
        elif compression in JPEGS:
            more = COEFFICIENTS_BYTES * decoded
        return self.planes * self.band(itemsize)[1] + 3 * decoded + self.nbytes + more


class Pages(Decoded):
    """Pages of one kind; the axis of samples is the first of a page if `planes_first`."""

    def __init__(
        self, source: Source, page: Any, segments: list[Place], shape: Any, planes_first: bool
    ) -> None:
        # Signed samples of odd depths are unpacked here: tifffile only has unsigned ones.
        odd = page.sampleformat == SIGNED and page.dtype.kind == "u"
        self._depth = page.bitspersample if odd else 0
        dtype = page.dtype.newbyteorder("=")
        if self._depth:
            dtype = np.dtype(f"i{dtype.itemsize}")
        super().__init__(shape, dtype, what=f"'{source.path}'", max_memory=source.max_memory)
        self._source, self._page, self._segments = source, page, segments
        self._grid, self._compression = Grid(page), int(page.compression)
        self.planar, self.planes_first = self._grid.planar, planes_first
        codec, parameters = CODECS[self._compression], page.tags.valueof(PARAMETERS)
        self._parameters = parameters if isinstance(parameters, tuple) else ()
        pictures = self._compression in JPEGS or codec.picture is not None
        self._reverse = index(page.fillorder) == 2 and not pictures
        self._absent, options = page.nodata, page.tags.valueof(T4_OPTIONS)
        self._options = options if isinstance(options, int) else 0
        self._unpredict = page.predictor == 3 and page.bitspersample == 24
        if self._unpredict:
            page.predictor = 1  # for tifffile, which does it for the floats of numpy
        if self._compression not in (*JPEGS, *BY_ROWS):
            page.compression = NONE  # for tifffile, which gets the bytes unpacked
        page.fillorder = 1
        page.decode  # noqa: B018 - a cached property; several threads must not make it at once

    @property
    def by_regions(self) -> bool:
        """True if strips or tiles are small enough to be decoded for each region anew."""
        return self._grid.needs(self.dtype.itemsize, self._compression) <= REGION_BYTES

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in stored order."""
        step = max(1, max_bytes // self.dtype.itemsize)
        rows, _ = self._grid.band(self.dtype.itemsize)
        planes = [range(self._grid.planes)]
        if self.planes_first:
            planes = [range(plane, plane + 1) for plane in planes[0]]
        for number in range(len(self._segments)):
            for group in planes:
                for top in range(0, self._grid.height, rows):
                    band = top, min(top + rows, self._grid.height)
                    part = self._part(number, group, band, (0, self._grid.width))
                    flat = part.reshape(-1)
                    yield from (flat[n : n + step] for n in range(0, flat.size, step))

    def __getitem__(self, key: Any) -> Any:
        """Read a region; only the strips or tiles with elements of it are decoded."""
        full = full_key(key, len(self.shape))
        first = self._first_of_page()
        if self.held() is not None or not is_basic(full) or first is None:
            return super().__getitem__(key)
        numbers = np.arange(len(self._segments)).reshape(self.shape[:first])[full[:first]]
        ranges, region = self._ranges(full[first:], self.shape[first:])
        shape = tuple(stop - start for start, stop, _ in ranges)
        check_memory(
            prod(shape) * numbers.size * self.dtype.itemsize, self.max_memory,
            f"this part of {self.what}",
        )  # fmt: skip
        values = np.empty((*numbers.shape, *shape), self.dtype)
        if values.size:
            parts = values.reshape(-1, *shape)
            for n, number in enumerate(numbers.reshape(-1).tolist()):
                parts[n] = self._region(number, *region).reshape(shape)
        whole = (slice(None),) * numbers.ndim
        return values[(*whole, *(inside for _, _, inside in ranges))]

    def _first_of_page(self) -> int | None:
        """The axis at which the shape of a page begins; None if a description cuts it otherwise."""
        count, pages = len(self._segments), 1
        long = [length for length in self._lengths() if length > 1]
        for axis in range(len(self.shape) + 1):
            inner = [length for length in self.shape[axis:] if length > 1]
            if pages == count and inner == long:
                return axis
            pages *= self.shape[axis] if axis < len(self.shape) else 1
        return None

    def _lengths(self) -> tuple[int, ...]:
        """The lengths of a page, slowest axis first, samples included."""
        grid = self._grid
        if self.planes_first:
            return grid.planes, grid.height, grid.width
        return grid.height, grid.width, grid.samples

    def _ranges(self, key: Sequence[Any], shape: Sequence[int]) -> tuple[list[Any], list[Range]]:
        """The range that the key needs of each axis of a page; and of samples, rows, columns."""
        ranges = [range_of(part, length) for part, length in zip(key, shape, strict=True)]
        long = iter([span for span, length in zip(ranges, shape, strict=True) if length > 1])
        lengths = self._lengths()
        parts = [next(long)[:2] if length > 1 else (0, 1) for length in lengths]
        planes, rows, columns = parts if self.planes_first else (parts[2], *parts[:2])
        return ranges, [planes, rows, columns]

    def _region(self, number: int, samples: Range, rows: Range, columns: Range) -> Values:
        """Decode samples, rows and columns of a page."""
        if self.planar:
            return self._part(number, range(*samples), rows, columns)
        return self._part(number, range(1), rows, columns)[..., slice(*samples)]

    def _part(self, number: int, planes: range, rows: Range, columns: Range) -> Values:
        """Decode rows and columns of planes of a page; samples lie as in the array."""
        grid = self._grid
        size = (rows[1] - rows[0], columns[1] - columns[0])
        out = np.empty((len(planes), *size, grid.together), self.dtype)
        down, across = grid.down_and_across()
        lines = range(rows[0] // grid.rows, -(-rows[1] // grid.rows))
        beside = range(columns[0] // grid.columns, -(-columns[1] // grid.columns))
        with guarded(self._source.path, f"page {number}"):
            for plane, pixels in zip(planes, out, strict=True):
                for line in lines:
                    for column in beside:
                        segment = (plane * down + line) * across + column
                        values = self._segment(self._segments[number], segment)
                        corner = line * grid.rows - rows[0], column * grid.columns - columns[0]
                        _copy_inside(pixels, values, corner)
        if self.planes_first:
            return out
        return np.moveaxis(out[..., 0], 0, -1) if self.planar else out[0]

    def _segment(self, segments: Place, number: int) -> Values:
        """Decode a strip or tile of a page: rows, columns, samples."""
        offsets, counts, tables = segments
        grid, codec, words = self._grid, CODECS[self._compression], {}
        down, across = grid.down_and_across()
        top = number // across % down * grid.rows
        left = number % across * grid.columns
        size = min(grid.rows, grid.height - top), min(grid.columns, grid.width - left)
        if not counts[number]:
            return np.full((*size, grid.together), self._absent, self.dtype)
        data: Any = self._source.read_exact(offsets[number], counts[number], "the pixels")
        if codec.picture is not None:
            return self._picture(codec.picture, data, size)
        if self._reverse:
            data = data.translate(REVERSED)
        if codec.decode is not None:
            data = codec.decode(data, grid.bytes_of(number), self._source.limits)
        if self._compression in JPEGS:
            most = grid.rows, grid.columns, grid.together
            check_jpeg(data, self._source.path, most, self._source.limits)
            words = {"jpegtables": tables or None}
        elif self._compression in BY_ROWS:
            rows = grid.rows if grid.tiled else size[0]
            check_fax(
                data, (rows, grid.columns), self._compression, self._options, self._source.path
            )
        else:
            data = data[: grid.nbytes]
            if self._unpredict:
                data = self._unpredicted(data)
        if self._depth:
            return self._signed(data)[: size[0], : size[1]]
        values: Values = self._page.decode(data, number, **words)[0][0, : size[0], : size[1]]
        return values

    def _picture(self, decode: Any, data: bytes, size: tuple[int, int]) -> Values:
        """Decode a strip or tile that is a picture; one at the edge may be cut to the page."""
        grid = self._grid
        samples = (grid.together,) * (grid.together > 1)
        whole = grid.rows if grid.tiled else size[0], grid.columns
        values = np.empty((*whole, *samples), self.dtype)
        try:
            decode(data, values, self._parameters, self._source.path)
        except (ValueError, Corrupt):
            if whole == size:
                raise
            values = np.empty((*size, *samples), self.dtype)
            decode(data, values, self._parameters, self._source.path)
        return values.reshape(*values.shape[:2], grid.together)[: size[0], : size[1]]

    def _unpredicted(self, data: Any) -> bytes:
        """Undo predictor 3 of floats of 24 bits: differences of bytes, the highest ones first."""
        grid = self._grid
        count = grid.columns * grid.together
        rows = np.frombuffer(data, np.uint8).reshape(-1, 3 * grid.columns, grid.together)
        whole = np.cumsum(rows, axis=1, dtype=np.uint8).reshape(-1, 3, count)
        order = -1 if self._page.parent.byteorder == "<" else 1
        return whole.transpose(0, 2, 1)[..., ::order].tobytes()

    def _signed(self, data: Any) -> Values:
        """Unpack samples of an odd depth, whose highest bit is the sign."""
        import imagecodecs

        grid, sign = self._grid, 1 << (self._depth - 1)
        dtype = np.dtype(f"u{self.dtype.itemsize}")
        count = grid.columns * grid.together
        flat = imagecodecs.packints_decode(bytes(data), dtype, self._depth, runlen=count)
        values = ((flat.astype("i8") ^ sign) - sign).astype(self.dtype)
        return values.reshape(-1, grid.columns, grid.together)


def _copy_inside(out: Values, values: Values, corner: tuple[int, int]) -> None:
    """Copy the part of `values` that lies inside `out`; its first element lies at `corner`."""
    inside, copied = [], []
    for start, length, room in zip(corner, values.shape, out.shape, strict=False):
        low, high = max(start, 0), min(start + length, room)
        inside.append(slice(low, high))
        copied.append(slice(low - start, high - start))
    out[tuple(inside)] = values[tuple(copied)]
