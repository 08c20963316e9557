"""Pages that are decoded where they are asked for, a strip or a row of tiles at a time."""

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


Place = tuple[tuple[int, ...], tuple[int, ...], bytes]  # strips or tiles: offsets, bytes; tables
Range = tuple[int, int]

BAND_BYTES = 1 << 18  # decoded at once of strips that are smaller
REGION_BYTES = 4 << 20  # strips up to this size may be decoded again for the next region
COEFFICIENTS_BYTES = 8  # of a sample: what libjpeg keeps of an image in several scans
PICTURE_BYTES = 16  # of a sample: what other libraries of pictures have besides it
SIGNED, PARAMETERS, T4_OPTIONS = 2, 50674, 292  # of the sample format; tags of LERC, of group 3


class Grid:
    """Strips or tiles of a page: how they lie in it, and the bytes that they take."""

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
        # The bytes of a whole strip or tile: as it is stored if nothing compresses it
        self.nbytes: int = self.rows * -(-self.columns * self.together * page.bitspersample // 8)

    def shape(self, planes_first: bool) -> tuple[int, ...]:
        """The lengths of a page, slowest axis first; one sample has no axis."""
        samples = (self.samples,) * (self.samples > 1)
        size = self.height, self.width
        return (*samples, *size) if planes_first else (*size, *samples)

    def down_and_across(self) -> tuple[int, int]:
        """The numbers of strips or tiles below and beside each other."""
        return -(-self.height // self.rows), -(-self.width // self.columns)

    def bytes_of(self, number: int) -> int:
        """The bytes of a strip or tile that nothing compresses; the last strip is shorter."""
        down, across = self.down_and_across()
        left = self.height - number // across % down * self.rows
        row = self.nbytes // self.rows
        return row * (self.rows if self.tiled else min(self.rows, left))

    def band(self, itemsize: int) -> tuple[int, int]:
        """The rows that are decoded at once, and the bytes of them."""
        row = self.width * self.together * itemsize
        rows = self.rows * max(1, BAND_BYTES // max(1, self.rows * row))
        return rows, min(rows, self.height) * row

    def needs(self, itemsize: int, compression: int) -> int:
        """The memory for the pixels of a band, and for one strip or tile on the way to them."""
        decoded: int = self.rows * self.columns * self.together * itemsize
        more = COEFFICIENTS_BYTES * decoded if compression in JPEGS else 0
        more = PICTURE_BYTES * decoded if CODECS[compression].picture else more
        return self.planes * self.band(itemsize)[1] + 3 * decoded + self.nbytes + more


class Pages(Decoded):
    """Pages of one kind; planes of samples come first, or last."""

    def __init__(
        self, source: Source, page: Any, places: list[Place], shape: Any, planes_first: bool
    ) -> None:
        # Signed samples of odd depths are unpacked here: tifffile has unsigned ones alone.
        odd = page.sampleformat == SIGNED and page.dtype.kind == "u"
        self._depth = page.bitspersample if odd else 0
        dtype = page.dtype.newbyteorder("=")
        if self._depth:
            dtype = np.dtype(f"i{dtype.itemsize}")
        super().__init__(shape, dtype, what=f"'{source.path}'", max_memory=source.max_memory)
        self._source, self._page, self._places = source, page, places
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
        page.decode  # noqa: B018 - made here, not by several threads at once

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
        for number in range(len(self._places)):
            for these in planes:
                for top in range(0, self._grid.height, rows):
                    band = top, min(top + rows, self._grid.height)
                    part = self._part(number, these, band, (0, self._grid.width))
                    flat = part.reshape(-1)
                    yield from (flat[at : at + step] for at in range(0, flat.size, step))

    def __getitem__(self, key: Any) -> Any:
        """A region, for which only the strips or tiles are decoded that hold some of it."""
        full = full_key(key, len(self.shape))
        first = self._first_of_page()
        if self.held() is not None or not is_basic(full) or first is None:
            return super().__getitem__(key)
        numbers = np.arange(len(self._places)).reshape(self.shape[:first])[full[:first]]
        page = self._ranges(full[first:], self.shape[first:])
        shape = tuple(stop - start for start, stop, _ in page[0])
        check_memory(
            prod(shape) * numbers.size * self.dtype.itemsize, self.max_memory,
            f"this part of {self.what}",
        )  # fmt: skip
        values = np.empty((*numbers.shape, *shape), self.dtype)
        if values.size:
            parts = values.reshape(-1, *shape)
            for at, number in enumerate(numbers.reshape(-1).tolist()):
                parts[at] = self._region(number, *page[1]).reshape(shape)
        whole = (slice(None),) * numbers.ndim
        return values[(*whole, *(inside for _, _, inside in page[0]))]

    def _first_of_page(self) -> int | None:
        """The axis at which the shape of a page begins; None if the shape is cut otherwise."""
        count, pages = len(self._places), 1
        long = [length for length in self._lengths() if length > 1]
        for axis in range(len(self.shape) + 1):
            inner = [length for length in self.shape[axis:] if length > 1]
            if pages == count and inner == long:
                return axis
            pages *= self.shape[axis] if axis < len(self.shape) else 1
        return None

    def _lengths(self) -> tuple[int, ...]:
        """The lengths of a page, slowest axis first."""
        grid = self._grid
        if self.planes_first:
            return grid.planes, grid.height, grid.width
        return grid.height, grid.width, grid.samples

    def _ranges(self, key: Sequence[Any], shape: Sequence[int]) -> tuple[list[Any], list[Range]]:
        """For each axis of the page in the shape the range that the key needs; rows and so on."""
        ranges = [range_of(part, length) for part, length in zip(key, shape, strict=True)]
        long = iter([one for one, length in zip(ranges, shape, strict=True) if length > 1])
        lengths = self._lengths()
        parts = [next(long)[:2] if length > 1 else (0, 1) for length in lengths]
        planes, rows, columns = parts if self.planes_first else (parts[2], *parts[:2])
        return ranges, [planes, rows, columns]

    def _region(self, number: int, samples: Range, rows: Range, columns: Range) -> Values:
        """Rows, columns and samples of a page."""
        if self.planar:
            return self._part(number, range(*samples), rows, columns)
        return self._part(number, range(1), rows, columns)[..., slice(*samples)]

    def _part(self, number: int, planes: range, rows: Range, columns: Range) -> Values:
        """Rows and columns of planes of a page, samples where the array has them."""
        grid = self._grid
        size = (rows[1] - rows[0], columns[1] - columns[0])
        out = np.empty((len(planes), *size, grid.together), self.dtype)
        down, across = grid.down_and_across()
        lines = range(rows[0] // grid.rows, -(-rows[1] // grid.rows))
        beside = range(columns[0] // grid.columns, -(-columns[1] // grid.columns))
        with guarded(self._source.path, f"page {number}"):
            for at, plane in enumerate(planes):
                for line in lines:
                    for column in beside:
                        segment = (plane * down + line) * across + column
                        values = self._segment(self._places[number], segment)
                        corner = line * grid.rows - rows[0], column * grid.columns - columns[0]
                        _place(out[at], values, corner)
        if not self.planar or self.planes_first:
            return out if self.planes_first else out[0]
        return np.moveaxis(out[..., 0], 0, -1)

    def _segment(self, place: Place, number: int) -> Values:
        """The pixels of a strip or tile: rows, columns, samples."""
        offsets, counts, tables = place
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
        """The pixels of a strip or tile that is a picture; one at the edge may have them alone."""
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
        """The packed samples of an odd depth, whose highest bit is their sign."""
        import imagecodecs

        grid, sign = self._grid, 1 << (self._depth - 1)
        dtype = np.dtype(f"u{self.dtype.itemsize}")
        count = grid.columns * grid.together
        flat = imagecodecs.packints_decode(bytes(data), dtype, self._depth, runlen=count)
        values = ((flat.astype("i8") ^ sign) - sign).astype(self.dtype)
        return values.reshape(-1, grid.columns, grid.together)


def _place(out: Values, values: Values, corner: tuple[int, int]) -> None:
    """Copy what lies inside `out` of `values`, of which the first lies at `corner`."""
    inside, taken = [], []
    for start, length, room in zip(corner, values.shape, out.shape, strict=False):
        low, high = max(start, 0), min(start + length, room)
        inside.append(slice(low, high))
        taken.append(slice(low - start, high - start))
    out[tuple(inside)] = values[tuple(taken)]
