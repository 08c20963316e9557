"""Elements moved to another axis order, blockwise, in bounded memory.

A slab of the result is read from a file as the runs of bytes that it consists of there, moved, and
written while the next one is filled. The elements move through a tile that fits the second-level
cache: copied as it lies, with a pitch that is not a power of two (rows a power of two apart would
all meet in one set of the cache), and written out transposed, one cache line of elements at a time.
Measured with 1 GiB, in times of copying the bytes in memory: numpy alone 13 to 15 (float32) and 40
(uint8), tiles 4 and 7.

Nothing is mapped: around short runs the system maps much more than is needed, which counts as
memory of this process, and a process that reads a map of a file that became shorter is killed.
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from raconvert.arrays.array import Array
from raconvert.arrays.blocks import LARGEST_BLOCK, blocks, region_of
from raconvert.arrays.dtypes import dtype_of, little, needs_swap, opaque, opaque_dtype
from raconvert.arrays.metadata import RA, without_pairs
from raconvert.arrays.regions import full_key, slabs
from raconvert.arrays.sources import Decoded
from raconvert.errors import UsageError
from raconvert.files.copy import check_extent, read_at, read_extent_into
from raconvert.files.paths import close_file, is_remote
from raconvert.files.source import DEFAULT_MAX_MEMORY, read_failed
from raconvert.files.threads import ahead

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    from raconvert.arrays.metadata import Metadata
    from raconvert.files.paths import Handle
    from raconvert.files.source import Extent

    Values = np.ndarray[Any, Any]


LINE_BYTES = 64  # of a cache
TILE_ROWS = 512
TILE_ROW_BYTES = 4096
# Runs are bytes that lie together in the source; each is one read.
WANTED_RUN = 48 << 10  # slabs are made so large that their runs have as many bytes
SHORT_RUN = 1 << 10  # the transfer of as many bytes takes as long as the system call
LEAST_RUN = 256  # for runs that would be shorter, slabs may exceed `LARGEST_SLAB`
WIDE_RUN = 16 << 10  # reading as many bytes at once is as fast as a few short runs
LARGEST_SLAB = 40 << 20  # except for very short runs, and then as --max-memory allows
RUNS_AT_ONCE = 1 << 16
BUFFERS = 2  # of slabs: one is written while the other one is filled


class Transposed:
    """Array source: another one with its axes in another order, moved in bounded memory."""

    def __init__(self, array: Array, axes: tuple[int, ...], max_memory: int) -> None:
        self._array = array
        self._axes = axes
        self._max_memory = max_memory
        self.shape: tuple[int, ...] = tuple(array.dims[::-1][axis] for axis in axes)
        self.dtype: np.dtype[Any] = dtype_of(little(array.element))

    def is_scattered(self, axis: int) -> bool | None:
        """True if neighbours along an axis lie apart in a local file; None without such a file."""
        extent = self._array.extent
        if extent is None or is_remote(extent.path):
            return None
        return self._axes[axis] != len(self._axes) - 1

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield slabs in stored order, whole or in parts of at most `max_bytes`."""
        step = max(1, max_bytes // self.dtype.itemsize)
        largest = max(max_bytes, self._slab_bytes())
        moved = self._slabs(largest)
        for flat in moved if self._array.nbytes <= largest else ahead(moved, BUFFERS):
            for start in range(0, flat.size, step):
                yield flat[start : start + step]

    def _slabs(self, largest: int) -> Generator[Values, None, None]:
        """Yield slabs in stored order, in `BUFFERS` buffers by turns."""
        buffers = [np.empty(0, self.dtype)] * BUFFERS
        decodes_anew = _must_decode_anew(self._array, self._max_memory)
        with _Regions(self._array, largest, decodes_anew=decodes_anew) as regions:
            for key in slabs(self.shape, self.dtype.itemsize, largest):
                region = self._region(key)
                shape = tuple(region[axis].stop - region[axis].start for axis in self._axes)
                buffer = buffers.pop(0)
                if buffer.size < prod(shape):
                    buffer = np.empty(prod(shape), self.dtype)
                buffers.append(buffer)
                flat = buffer[: prod(shape)]
                regions.fill(opaque(flat.reshape(shape)), region, self._axes)
                yield flat

    def _slab_bytes(self) -> int:
        """Return a size of slabs whose runs in the source are worth reading."""
        length = max(1, self._array.dims[0] if self._array.dims else 1)
        rows = self._array.count // length
        if _must_decode_anew(self._array, self._max_memory):  # for each slab: few, large ones
            return max(1, self._max_memory // 4)
        wanted = min(max(LARGEST_BLOCK, rows * WANTED_RUN), LARGEST_SLAB)
        return min(max(wanted, rows * LEAST_RUN), self._max_memory // 8)

    def __getitem__(self, key: Any) -> Values:
        key = full_key(key, len(self.shape))
        values = region_of(self._array, self._region(key)).transpose(self._axes)
        picked = tuple(0 if isinstance(k, int | np.integer) else slice(None) for k in key)
        return values[picked]

    def _region(self, key: tuple[Any, ...]) -> tuple[slice, ...]:
        """Return the region of the source for a key of this array; integers keep their axis."""
        parts = []
        for part, length in zip(key, self.shape, strict=False):
            if isinstance(part, slice):
                parts.append(part)
            else:
                index = range(length)[part]
                parts.append(slice(index, index + 1))
        parts += [slice(0, length) for length in self.shape[len(parts) :]]
        return tuple(parts[self._axes.index(axis)] for axis in range(len(self.shape)))


def _must_decode_anew(array: Array, max_memory: int) -> bool:
    """True if data can only be decoded front to back, and does not fit into memory as a whole."""
    return array.extent is None and array.nbytes > max_memory and isinstance(array.data, Decoded)


class _Regions:
    """Regions of an array, each moved to another axis order; at most `largest` bytes are read.

    `decodes_anew`: the whole is decoded for each region, so that only the region is in memory.
    """

    def __init__(self, array: Array, largest: int, *, decodes_anew: bool = False) -> None:
        self._decodes_anew = decodes_anew
        self._array = array
        self._shape = array.dims[::-1]
        self._largest = largest
        extent = array.extent
        if extent is not None and extent.swap != needs_swap(array.element):
            extent = None  # reversing each element does not give numpy's bytes
        self._extent = extent
        if extent is not None:
            check_extent(extent)
        self._file: Handle = extent.open() if extent is not None else -1
        self._room = np.empty(0, np.uint8)
        self._whole: Values | None = None

    def __enter__(self) -> _Regions:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file != -1:
            close_file(self._file)

    def fill(self, out: Values, region: tuple[slice, ...], axes: tuple[int, ...]) -> None:
        """Fill `out` with a region, its axes in another order."""
        if self._decodes_anew:
            step = min(self._largest, LARGEST_BLOCK)
            self._fill(out, region, axes, _decoded_boxes(self._array, step))
            return
        if self._extent is None:
            values = region_of(self._array, region)
            transpose_into(out, opaque(values).transpose(axes))
            # A view keeps data that was decoded as a whole alive for the next regions.
            self._whole = values if values.base is not None else None
            return
        self._fill(out, region, axes, self._boxes(self._extent, region, out.itemsize))

    @staticmethod
    def _fill(
        out: Values,
        region: tuple[slice, ...],
        axes: tuple[int, ...],
        boxes: Iterator[tuple[tuple[slice, ...], Values]],
    ) -> None:
        """Fill `out` with the parts of a region that lie in boxes of the array."""
        for box, values in boxes:
            both = tuple(map(_overlap, box, region))
            if any(_length(overlap) <= 0 for overlap in both):
                continue
            target = tuple(map(_relative, both, region))
            part = values[tuple(map(_relative, both, box))]
            transpose_into(out[tuple(target[axis] for axis in axes)], part.transpose(axes))

    def _boxes(
        self, extent: Extent, region: tuple[slice, ...], itemsize: int
    ) -> Iterator[tuple[tuple[slice, ...], Values]]:
        """Yield boxes that cover a region, with their elements, valid until the next one."""
        whole = self._widened(region)
        for key in slabs(tuple(map(_length, whole)), itemsize, self._largest):
            box = _boxed(whole, key)
            if all(_length(_overlap(*pair)) > 0 for pair in zip(box, region, strict=True)):
                yield box, self._read(extent, box)

    def _widened(self, region: tuple[slice, ...]) -> tuple[slice, ...]:
        """Return the region with whole axes instead of parts of them that make very short runs."""
        box = list(region)
        run = self._array.element.nbytes
        for axis in range(len(box) - 1, -1, -1):
            whole = run * self._shape[axis]
            if run * _length(box[axis]) >= SHORT_RUN or whole > WIDE_RUN:
                break
            box[axis] = slice(0, self._shape[axis])
            run = whole
        return tuple(box)

    def _read(self, extent: Extent, box: tuple[slice, ...]) -> Values:
        """Return the elements of a box, as they are in the file, valid until the next call."""
        dtype = opaque_dtype(self._array.dtype)
        lengths = [_length(part) for part in box]
        # A run goes over the last axes as long as they are whole, and the part of one more.
        axis = len(box)
        while axis > 1 and lengths[axis - 1] == self._shape[axis - 1]:
            axis -= 1
        axis -= 1
        run = prod(lengths[axis:]) * dtype.itemsize
        nbytes = prod(lengths) * dtype.itemsize
        if self._room.size < nbytes:
            self._room = np.empty(nbytes, np.uint8)
        strides = [dtype.itemsize * prod(self._shape[n + 1 :]) for n in range(len(box))]
        first = sum(part.start * stride for part, stride in zip(box, strides, strict=True))
        room, done = self._room.data, 0
        try:
            for start in _starts(lengths[:axis], strides[:axis]):
                piece = room[done : done + run]
                if read_at(self._file, piece, extent.offset + first + start) != run:
                    read_extent_into(self._file, piece, extent, first + start)
                done += run
        except OSError as error:
            raise read_failed(extent.path, error) from error
        return self._room[:nbytes].view(dtype).reshape(lengths)


def _decoded_boxes(array: Array, step: int) -> Iterator[tuple[tuple[slice, ...], Values]]:
    """Yield boxes of a decoded array in stored order, each with its elements."""
    shape = array.dims[::-1]
    whole = tuple(slice(0, length) for length in shape)
    pieces = iter(blocks(array, step))
    rest = np.empty(0, opaque_dtype(dtype_of(little(array.element))))
    room = np.empty(max(1, step // rest.itemsize), rest.dtype)
    for key in slabs(shape, rest.itemsize, step):
        box = _boxed(whole, key)
        lengths = list(map(_length, box))
        filled, count = 0, prod(lengths)
        while filled < count:
            if not rest.size:
                rest = opaque(next(pieces).reshape(-1))
            take = min(count - filled, rest.size)
            room[filled : filled + take] = rest[:take]
            filled, rest = filled + take, rest[take:]
        yield box, room[:count].reshape(lengths)
    for _ in pieces:  # to the end, where checksums are verified
        pass


def _starts(lengths: list[int], strides: list[int]) -> Iterator[int]:
    """Yield the offset of each run of a box, in bytes from the first one."""
    count = prod(lengths)
    for low in range(0, count, RUNS_AT_ONCE):
        numbers = np.arange(low, min(count, low + RUNS_AT_ONCE))
        starts = np.zeros(len(numbers), np.int64)
        for length, stride in zip(lengths[::-1], strides[::-1], strict=True):
            numbers, index = np.divmod(numbers, length)
            starts += index * stride
        yield from starts.tolist()


def _length(part: slice) -> int:
    length: int = part.stop - part.start
    return length


def _within(whole: slice, part: int | slice) -> slice:
    """Return the part of an axis that a key picks which is relative to the part `whole`."""
    key = part if isinstance(part, slice) else slice(part, part + 1)
    low, high, _ = key.indices(_length(whole))
    return slice(whole.start + low, whole.start + high)


def _boxed(whole: tuple[slice, ...], key: tuple[int | slice, ...]) -> tuple[slice, ...]:
    """Return the box that a key of `slabs` picks which is relative to the box `whole`."""
    return (*map(_within, whole, key), *whole[len(key) :])


def _overlap(a: slice, b: slice) -> slice:
    return slice(max(a.start, b.start), min(a.stop, b.stop))


def _relative(part: slice, whole: slice) -> slice:
    return slice(part.start - whole.start, part.stop - whole.start)


def transpose_into(out: Values, moved: Values) -> None:
    """Fill `out` with `moved`, a view of the same shape whose memory runs along another axis."""
    steps = zip(moved.strides, moved.shape, strict=True)
    strides = [abs(step) if length > 1 else 1 << 62 for step, length in steps]
    fastest = strides.index(min(strides))
    if fastest == out.ndim - 1 or moved.size < TILE_ROWS:
        out[...] = moved
        return
    # Planes of the last axis and the one that is fastest in the source are transposed one by one.
    planes, sources = np.moveaxis(out, fastest, -2), np.moveaxis(moved, fastest, -2)
    width = max(1, TILE_ROW_BYTES // out.itemsize)
    buffer = np.empty((TILE_ROWS, width + max(1, LINE_BYTES // out.itemsize)), out.dtype)
    for index in product(*map(range, planes.shape[:-2])):
        _transpose_plane(planes[index], sources[index].T, buffer, width)


def _transpose_plane(out: Values, source: Values, buffer: Values, width: int) -> None:
    """Fill `out` with ``source.T`` by tiles of the buffer's rows and `width` columns."""
    line = max(1, LINE_BYTES // out.itemsize)
    for column in range(0, source.shape[1], width):
        for row in range(0, source.shape[0], TILE_ROWS):
            part = source[row : row + TILE_ROWS, column : column + width]
            tile = buffer[: part.shape[0], : part.shape[1]]
            tile[...] = part
            turned = tile.T
            corner = out[column : column + width, row : row + TILE_ROWS]
            for start in range(0, len(turned), line):
                corner[start : start + line] = turned[start : start + line]


# Axes in another order: transposed, permuted or listed anew, each as a lazy array ----------------


def check_axes(axes: str) -> tuple[int, ...]:
    """Return the numbers in a value of ``--axes``, () for its words; `UsageError` for others."""
    if axes in ("c", "fortran", "keep-memory"):
        return ()
    try:
        return tuple(int(part) for part in axes.split(","))
    except ValueError as error:
        raise UsageError(
            f"`--axes {axes}` is not understood", expected="c | fortran | keep-memory | 2,0,1"
        ) from error


def in_order(array: Array, order: str, max_memory: int = DEFAULT_MAX_MEMORY) -> Array:
    """Return the array with its elements stored in this index order (C or F), [i,j,k] kept.

    No element moves if they are already, if the index order is unknown, or below two dimensions.
    """
    if array.index_order == order and array.ndim > 1 and not array.row_major:
        return array
    if array.index_order in (order, None) or array.ndim < 2:
        return array.listed(order, row_major=False)
    reverse = tuple(range(array.ndim))[::-1]
    return _moved(array, reverse, max_memory, order, array.meta)


def permuted(array: Array, axes: tuple[int, ...], max_memory: int = DEFAULT_MAX_MEMORY) -> Array:
    """Return the array with its logical axes in the order `axes` (as numpy.transpose)."""
    if sorted(axes) != list(range(array.ndim)):
        raise UsageError(
            f"`--axes {','.join(map(str, axes))}` does not permute the axes of '{array.name}'",
            expected=f"each of 0 to {array.ndim - 1} once",
        )
    if list(axes) == sorted(axes):
        return array
    if array.row_major:
        array = array.listed("C")
        axes = tuple(array.ndim - 1 - axis for axis in axes)
        if list(axes) == sorted(axes):
            return array
        return _moved(array, axes, max_memory, "C", array.meta.permuted(axes))
    meta, moved = array.meta.permuted(axes), axes
    if array.index_order == "F":
        # The data is seen with its axes reversed: logical axis i is data axis n-1-i.
        last = array.ndim - 1
        moved = tuple(last - axes[last - i] for i in range(array.ndim))
    return _moved(array, moved, max_memory, array.index_order, meta)


def relisted(array: Array) -> Array:
    """Return the array with its axes listed in reverse; no element moves (keep-memory)."""
    order = {"C": "F", "F": "C", None: "F"}[array.index_order]
    return array.listed(order)


def _moved(
    array: Array,
    axes: tuple[int, ...],
    max_memory: int,
    index_order: str | None,
    meta: Metadata,
) -> Array:
    """Return the array with its data axes (slowest first) in another order, and this metadata."""
    shape = array.dims[::-1]
    new_shape = tuple(shape[axis] for axis in axes)
    if axes[-1] != len(axes) - 1 and RA in meta.formats:
        meta = without_pairs(meta)
    return array.replace(
        element=little(array.element),
        dims=new_shape[::-1],
        index_order=index_order,
        row_major=array.row_major and index_order == "F",
        meta=meta,
        extent=None,
        data=lambda: Transposed(array, axes, max_memory),
    )


def as_listed(array: Array, max_memory: int = DEFAULT_MAX_MEMORY) -> Array:
    """Return the array for formats that list axes without an index order.

    They list an array of a row-major format as row-major, even if it lies in Fortran order.
    """
    return in_order(array, "C", max_memory) if array.row_major else array
