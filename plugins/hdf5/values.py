"""Array sources over HDF5 datasets: slabs of whole chunks, in bounded memory.

Elements are asked for in the file's own datatype, so that the library copies bytes and converts
nothing: paddings, enums, opaque tags and NaN payloads arrive as they are. Only types that NumPy
does not have (31-bit integers) go through the library's conversion.
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
from h5py import h5d, h5p, h5s

from raconvert.arrays.blocks import LARGEST_BLOCK, chunk_slabs
from raconvert.arrays.dtypes import needs_swap
from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key, range_of, slabs
from raconvert.errors import Corrupt, TooLarge
from raconvert.plugin import dtype_of

from .datatypes import element_size, fixed_dtype, texts_of
from .files import guarded
from .paddings import without_padding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from h5py import h5t

    from raconvert.arrays.blocks import Pieces
    from raconvert.plugin import Element, Extent

    from .chunks import Chunks
    from .datatypes import Kind
    from .files import File

    Values = np.ndarray[Any, Any]

CHUNKS_AT_ONCE = 4096  # chunks that libhdf5 reads in one call
NO_PLACES: Values = np.empty(0, np.uint64)
CACHE_SLOTS = 12_421  # a prime above the chunks that a cache may hold


class Dataset:
    """Array source over one dataset: the elements of `kind`, slowest axis first.

    `space` is the shape of the dataset; the axes of an array type come after it. `chunks` decodes
    chunks outside the library, if that is possible. Without `opened` it is opened by `hard`, a path
    of hard links, when it is first read; `place` names it in messages. It is not a `Decoded`: the
    library and `chunks` find any box by themselves, so that a region needs neither the whole
    dataset nor the memory for it.
    """

    def __init__(
        self,
        file: File,
        hard: bytes,
        kind: Kind,
        space: tuple[int, ...],
        chunk: tuple[int, ...] | None,
        element: Element,
        opened: h5d.DatasetID | None = None,
        path: str = "",
    ) -> None:
        self.kind = kind
        self.element = element
        self.shape = space + kind.dims
        self.dtype = dtype_of(element)
        self.space = space
        self.chunk = chunk
        self.chunks: Chunks | None = None
        # Chunks with known offsets, even if libhdf5 decodes them.
        self.indexed: Chunks | None = None
        self.checks: list[Callable[[h5d.DatasetID], None]] = []  # called before libhdf5 reads
        self.stored = 0  # stored bytes in the file
        self.offset: int | None = None  # offset of contiguous data
        self.unwritten = 0  # bytes of memory for elements that are only a fill value in the file
        self.file = file
        self.hard = hard
        self._opened = opened
        # A name for messages.
        self.place = path or f"dataset '{hard.decode('utf-8', 'backslashreplace')}'"

    @property
    def budget(self) -> int:
        """The bytes that a slab of whole chunks may have."""
        return max(1 << 16, self.file.source.max_memory // 4)

    def in_pieces(self) -> Pieces | Extent | str:
        """The chunks as pieces that others can decode, or one extent; a reason if they cannot."""
        is_bool = self.kind.element is not None and self.kind.element.kind == "bool"
        other = self.kind.memory is not None or self.kind.endings
        if other or (self.kind.finish is not None and not is_bool):
            return "its elements are stored in another form"
        swap = needs_swap(self.element)
        if self.chunks is not None:
            return self.chunks.in_pieces(self.kind.dims, swap)
        nbytes = prod(self.shape) * self.dtype.itemsize
        if self.offset is not None and self.stored == nbytes:
            return self.file.source.extent(self.offset, nbytes, swap)
        if self.chunk is None:
            return "it does not lie in one place of this file"
        return "its chunks have filters that zarr has not, or places that nobody is sure of"

    def stretches(self) -> tuple[Values, Values]:
        """The offsets and stored bytes of all chunks; empty if they are not sure."""
        index = self.indexed or self.chunks
        return (NO_PLACES, NO_PLACES) if index is None else index.stretches()

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces in stored order, read in slabs of whole chunks."""
        self._count_unwritten()
        item = max(1, element_size(self.kind), self.dtype.itemsize * prod(self.kind.dims))
        for key in self._slabs(item, max_bytes):
            values = self._box(*_bounds(key, self.space)).reshape(-1)
            step = max(1, max_bytes // self.dtype.itemsize)
            for start in range(0, values.size, step):
                yield values[start : start + step]

    def _count_unwritten(self) -> None:
        """Raise `TooLarge` if datasets of little more than a fill value need too much memory."""
        if not self.unwritten:
            return
        counted = self.file.unwritten
        total = sum(counted.values()) + (0 if self.place in counted else self.unwritten)
        if total > self.file.source.max_memory:
            raise TooLarge(
                f"declares {self.unwritten} bytes that are little more than a fill value, after "
                f"{sum(counted.values())} in other datasets",
                path=self.file.path,
                where=self.place,
                expected=f"at most {self.file.source.max_memory} in all (`--max-memory`)",
                got=f"a file of {self.file.source.size}",
                remedy="choose one of them (FILE#NAME), or allow it with "
                f"`--max-memory {-(-total // (1 << 20))}M`",
            )
        counted[self.place] = self.unwritten

    def _slabs(self, item: int, max_bytes: int) -> Iterator[tuple[int | slice, ...]]:
        """The keys of slabs in stored order, on the borders of chunks if memory allows."""
        if not self.chunk:
            return slabs(self.space, item, max_bytes)
        return chunk_slabs(self.space, self.chunk, item, max_bytes, self.budget)

    def __getitem__(self, key: Any) -> Values:
        """A region: integers, slices and one Ellipsis, as NumPy indexes."""
        keys = full_key(key, len(self.shape))
        first, box, then = [], [], []
        for part, length in zip(keys, self.shape, strict=True):
            start, stop, inner_key = range_of(part, length)
            first.append(start)
            box.append(stop - start)
            then.append(inner_key)
        rank = len(self.space)
        what = f"a region of {self.place}"
        got = f"{self.stored} bytes stored in the file"
        check_memory(prod(box) * self.dtype.itemsize, self.file.source.max_memory, what, got)
        values = self._box(tuple(first[:rank]), tuple(box[:rank]))
        inner = tuple(
            slice(start, start + n) for start, n in zip(first[rank:], box[rank:], strict=True)
        )
        # With an Ellipsis a single element stays an array; as a scalar, bytes would lose their
        # padding, and take no empty index.
        whole: tuple[Any, ...] = (..., *inner)
        picked: tuple[Any, ...] = (*then, ...)
        return values[whole][picked]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        return np.array(self[...], dtype=dtype, copy=copy)

    def _box(self, start: tuple[int, ...], count: tuple[int, ...]) -> Values:
        """The elements of a box of the dataset."""
        kind = self.kind
        shape = count + kind.dims
        if prod(shape) == 0:
            return np.empty(shape, self.dtype)
        with guarded(self.file.path, self.place):
            if self.chunks is not None and kind.memory is None:
                buffer = np.empty(shape, kind.buffer)
                self.chunks.fill(_as_units(buffer, len(count)), start)
            else:
                buffer = self._read(start, count, shape)
            return self._finished(buffer)

    def _read(self, start: tuple[int, ...], count: tuple[int, ...], shape: tuple[int, ...]) -> Any:
        """Let the library read a box."""
        self._check_grid()
        dataset = self.dataset()
        while self.checks:
            self.checks[0](dataset)
            del self.checks[0]
        # Zeros: libhdf5 may leave unwritten elements as they are in the buffer.
        buffer = np.zeros(shape, self.kind.buffer)
        read_box(dataset, start, count, buffer, self.kind.memory or dataset.get_type())
        return buffer

    def _check_grid(self) -> None:
        """Raise `TooLarge` for too many chunks, since the library looks for each of them."""
        pairs = zip(self.space, self.chunk or (), strict=False)
        count = prod(-(-n // high) for n, high in pairs)
        most = self.file.source.limits.unstored_chunks + self.file.source.size
        if self.chunk and count > most:
            raise TooLarge(
                f"is cut into {count} chunks, more than the file has bytes", where=self.place,
                expected=f"at most {most}",
            )  # fmt: skip

    def _finished(self, buffer: Values) -> Values:
        """Turn elements as they were read into those of the array."""
        without_padding(buffer, self.kind.endings)
        values = buffer if self.kind.finish is None else self.kind.finish(buffer)
        if values.dtype.hasobject:
            fixed = np.zeros(values.shape, self.dtype)
            _fix(fixed, values)
            return fixed
        return values if values.dtype == self.dtype else values.view(self.dtype)

    def dataset(self) -> h5d.DatasetID:
        """The open dataset, with a chunk cache of the size that its slabs need."""
        if self._opened is None or not self._opened.valid:
            access = h5p.create(h5p.DATASET_ACCESS)
            if self.chunk is not None:
                row = prod(self.chunk[:1] + self.space[1:]) * element_size(self.kind)
                chunk = prod(self.chunk) * element_size(self.kind)
                size = max(1 << 20, chunk, min(self.budget, row))
                access.set_chunk_cache(CACHE_SLOTS, size, 0.75)
            self._opened = h5d.open(self.file.fid, self.hard, access)
        return self._opened


def read_box(
    dataset: h5d.DatasetID,
    start: tuple[int, ...],
    count: tuple[int, ...],
    buffer: Values,
    memory: h5t.TypeID,
    step: tuple[int, ...] | None = None,
) -> None:
    """Let the library read a box of a dataset into a buffer: every `step` elements on each axis.

    The library needs some 6 kB for each chunk that a call touches: large boxes are read in parts.
    """
    space = dataset.get_space()
    if not count:
        dataset.read(h5s.create(h5s.SCALAR), space, buffer, memory)
        return
    box = h5s.create_simple(count)
    steps = step or (1,) * len(count)
    for offset, part in _parts(count, steps, _chunk(dataset)):
        first = tuple(a + b * n for a, b, n in zip(start, offset, steps, strict=True))
        space.select_hyperslab(first, part, step)
        box.select_hyperslab(offset, part)
        dataset.read(box, space, buffer, memory)


def _chunk(dataset: h5d.DatasetID) -> tuple[int, ...]:
    """The shape of the chunks of a dataset; () for other layouts."""
    created = dataset.get_create_plist()
    chunk: tuple[int, ...] = created.get_chunk() if created.get_layout() == h5d.CHUNKED else ()
    return chunk


def _parts(
    count: tuple[int, ...], step: tuple[int, ...], chunk: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield offset and count of the parts of a box that touch about `CHUNKS_AT_ONCE` chunks."""
    touched = [-(-n * by // high) for n, by, high in zip(count, step, chunk, strict=False)]
    if prod(touched) <= CHUNKS_AT_ONCE:
        yield (0,) * len(count), count
        return
    axis = 0
    while prod(touched[axis + 1 :]) > CHUNKS_AT_ONCE:
        axis += 1
    rows = CHUNKS_AT_ONCE // prod(touched[axis + 1 :])
    widths = [max(1, high // by) for high, by in zip(chunk[:axis], step, strict=False)]
    widths += [max(1, rows * chunk[axis] // step[axis]), *count[axis + 1 :]]
    for offset in product(*(range(0, n, by) for n, by in zip(count, widths, strict=True))):
        ends = zip(count, offset, widths, strict=True)
        yield offset, tuple(min(by, n - at) for n, at, by in ends)


def _as_units(buffer: Values, rank: int) -> Values:
    """View a buffer with each element of the dataset as one opaque unit."""
    shape = buffer.shape[:rank]
    unit = buffer.dtype.itemsize * prod(buffer.shape[rank:])
    return buffer.reshape(-1).view(np.uint8).view(f"V{unit}").reshape(shape)


def _bounds(
    key: tuple[int | slice, ...], space: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Start and count of a key as `slabs` gives it."""
    start, count = [], []
    for index, length in enumerate(space):
        part = key[index] if index < len(key) else slice(None)
        low, high, _ = range_of(part, length)
        start.append(low)
        count.append(high - low)
    return tuple(start), tuple(count)


# --- variable strings -----------------------------------------------------------------------------


def _fix(fixed: Values, values: Values) -> None:
    """Copy elements to those with strings of fixed width. Raises `Corrupt` for longer strings."""
    if values.dtype.names is not None:
        for name in values.dtype.names:
            _fix(fixed[name], values[name])
    elif values.dtype.kind == "O":
        if max(map(len, values.reshape(-1)), default=0) > fixed.dtype.itemsize:
            raise Corrupt("variable strings changed while they were read")
        fixed[...] = values.astype(fixed.dtype)
    else:
        fixed[...] = values


def widest(dataset: Dataset, longest: int, count: int) -> np.dtype[Any]:
    """The dtype that the longest strings need; no string has more than `longest` bytes.

    The strings are read in blocks that cannot need more than a bounded number of bytes. Raises
    `TooLarge` as soon as `count` elements of that dtype are above the limit.
    """
    buffer = dataset.kind.buffer
    step = max(1, min(LARGEST_BLOCK, dataset.budget) // (longest + 64 + buffer.itemsize))
    widths: dict[tuple[str, ...], int] = {}
    dtype = fixed_dtype(buffer, widths)
    for key in slabs(dataset.space, 1, step):
        start, box = _bounds(key, dataset.space)
        with guarded(dataset.file.path, dataset.place):
            values = dataset._read(start, box, box + dataset.kind.dims)
        for path, texts in texts_of(values):
            widths[path] = max([widths.get(path, 1), *map(len, texts)])
        dtype = fixed_dtype(buffer, widths)
        check_width(count, dtype.itemsize, dataset.file.source.max_memory)
    return dtype


def check_width(count: int, width: int, limit: int) -> None:
    """Raise `TooLarge` for strings of variable length that need too many bytes in one width."""
    check_memory(count * width, limit, f"{count} strings of variable length, {width} bytes wide,")
