"""Array sources, from which arrays have their elements, and the base of those that are decoded.

`ArraySource` is all that an `Array` asks of its data. One that can only be decoded front to back
also has `stream`; a subclass of `Decoded` gives that alone, and the base gives regions, the check
of memory, and the whole array while somebody holds a part of it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from math import prod
from typing import TYPE_CHECKING, Protocol
from weakref import ref
from zlib import DEFLATED, compressobj

import numpy as np

from raconvert.arrays.array import UNKNOWN, Array
from raconvert.arrays.blocks import (
    LARGEST_BLOCK,
    block_bytes,
    blocks,
    gathered,
    pieces_of_runs,
    recut,
)
from raconvert.arrays.dtypes import dtype_of, little, opaque
from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key, is_basic, picked, range_of, region
from raconvert.errors import RaconvertError
from raconvert.files import inflate
from raconvert.files.copy import extent_slabs, swap_in_place, write_all
from raconvert.files.inflate import CHUNK_BYTES, MEMBERS, decompressed
from raconvert.files.named import of_header
from raconvert.files.paths import write_failed
from raconvert.files.source import read_failed
from raconvert.files.threads import ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from raconvert.arrays.blocks import Pieces
    from raconvert.arrays.dtypes import Element
    from raconvert.files.inflate import Part
    from raconvert.files.source import Extent
    from raconvert.files.target import Target

    Values = np.ndarray[Any, Any]


class ArraySource(Protocol):
    """Elements seen slowest axis first, in C order: an ndarray, a memmap, an `h5py.Dataset`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes, slowest first."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements, byte order included."""

    def __getitem__(self, key: Any) -> Any:
        """Return the region that integers, slices and one Ellipsis pick."""


class Decoded:
    """Base of array sources that are decoded front to back.

    `shape` is slowest axis first; `what` names the data in messages, such as ``'a.npz': member
    'x.npy'``. A region is cut out of the whole, which is decoded for it, and refused above
    `max_memory` bytes. A subclass has `stream`.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], *, what: str, max_memory: int
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.what = what
        self.max_memory = max_memory
        # Weak: the regions that were handed out keep the whole alive, since a file has many arrays.
        self._owner: ref[Values] | None = None

    @property
    def by_regions(self) -> bool:
        """True if a region is read without the rest: False, unless a subclass can."""
        return False

    @property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes of the elements, decoded."""
        return self.count * self.dtype.itemsize

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces in stored order, each valid until the next is asked for."""
        raise NotImplementedError

    def __getitem__(self, key: Any) -> Any:
        # The key () would give a scalar, which has lost the width of a text.
        return picked(self.whole(), ... if isinstance(key, tuple) and not key else key)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        values = self.whole()
        if dtype in (None, values.dtype):
            return np.array(opaque(values), copy=copy).view(values.dtype)
        return np.array(values, dtype=dtype, copy=copy)

    def held(self) -> Values | None:
        """Return all decoded elements as long as somebody holds a part of them, else None."""
        return self._owner() if self._owner is not None else None

    def whole(self) -> Values:
        """Return all elements, decoded once as long as somebody holds them.

        Raises `TooLarge` for more than `max_memory` bytes.
        """
        owner = self.held()
        if owner is None:
            check_memory(self.nbytes, self.max_memory, f"{self.what} whole in memory")
            values = self.load()
            # Every view refers to the array that owns the memory, not to the view it was cut from.
            owner = values if values.base is None else values.base
            self._owner = ref(owner)
        return owner.view(self.dtype).reshape(self.shape)

    def load(self) -> Values:
        """Decode all elements into contiguous memory of their own."""
        return gathered(self.stream(LARGEST_BLOCK), self.shape, self.dtype, self.what)


def is_decoded_whole(data: Any) -> bool:
    """True for an array source that decodes all of its elements for any region."""
    return not getattr(data, "by_regions", True)


# Array sources over data in many files, or encoded in one or several: piece after piece ----------
# Of raw parts only the regions that are needed are read. Encoded ones are decoded front to back, in
# pieces of `CHUNK_BYTES` whatever the size of the array, and never further than the array needs.
# `shape` is slowest axis first; elements are little-endian.


class RawParts:
    """Array source: raw parts in many files, of which only those that are needed are read.

    `header` is the path of the file that names them; numbers of `swap` bytes are reversed.
    """

    def __init__(self, array: Array, parts: list[Part], header: str, swap: int) -> None:
        self.shape: tuple[int, ...] = array.dims[::-1]
        self.dtype: np.dtype[Any] = dtype_of(little(array.element))
        self._header = header
        self._max_memory = parts[0].source.max_memory
        self._extents = [part.source.extent(part.offset, part.nbytes, swap) for part in parts]

    def in_pieces(self) -> Pieces | Extent | str:
        """Return the location of the elements in equal pieces, or the reason (str) why not."""
        return pieces_of_runs(self.shape, self.dtype.itemsize, self._extents)

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces of at most `max_bytes`, file after file."""
        step = max(1, max_bytes // self.dtype.itemsize) * self.dtype.itemsize
        for extent in self._extents:
            for slab in self._slabs(extent, step):
                yield np.frombuffer(slab, self.dtype)

    def _slabs(self, extent: Extent, step: int) -> Iterator[memoryview]:
        try:
            yield from extent_slabs(extent, step)
        except RaconvertError as error:
            raise of_header(error, self._header) from error.__cause__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        return np.array(self[...], dtype=dtype, copy=copy)

    def __getitem__(self, key: Any) -> Any:
        first, *rest = full_key(key, len(self.shape))
        start, stop, inside = range_of(first, self.shape[0])
        return self._rows(start, stop)[(inside, *rest)]

    def _rows(self, start: int, stop: int) -> Values:
        """Read these indices of the slowest axis, from the files that hold some of them."""
        row_bytes = prod(self.shape[1:]) * self.dtype.itemsize
        begin, nbytes = start * row_bytes, (stop - start) * row_bytes
        check_memory(nbytes, self._max_memory, "this part of the array")
        raw = np.empty(nbytes, np.uint8)
        offset = 0
        for extent in self._extents:
            low, high = max(begin - offset, 0), min(begin + nbytes - offset, extent.nbytes)
            if low < high:
                piece = extent.part(low, high - low)
                done = offset + low - begin
                for slab in self._slabs(piece, CHUNK_BYTES):
                    raw[done : done + len(slab)] = slab
                    done += len(slab)
            offset += extent.nbytes
        return raw.view(self.dtype).reshape(stop - start, *self.shape[1:])


class DecodedParts(Decoded):
    """Array source: encoded parts, decoded one after the other.

    `header` is the path of the file that names them, `encoding` the name of their encoding.
    `decode` takes an open file, at the offset of a part, and that part, and yields its bytes in
    pieces of any size. Numbers of `swap` bytes are reversed.
    """

    def __init__(
        self, array: Array, parts: list[Part], header: str, swap: int, *, encoding: str,
        decode: Callable[[Any, Part], Iterator[Any]],
    ) -> None:  # fmt: skip
        source = parts[0].source
        super().__init__(
            array.dims[::-1],
            dtype_of(little(array.element)),
            what=f"'{source.path}': the array, encoded by {encoding},",
            max_memory=source.max_memory,
        )
        self.parts: list[Part] = parts
        self.header: str = header
        self.swap: int = swap
        self.encoding: str = encoding
        self._decode = decode

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces of at most `max_bytes`, each valid until the next one."""
        width = self.dtype.itemsize
        step = max(1, min(max_bytes, CHUNK_BYTES) // width) * width
        for part in self.parts:
            chunks = (np.frombuffer(chunk, np.uint8) for chunk in self._decoded(part))
            for piece in recut(chunks, min(step, part.nbytes), np.dtype(np.uint8)):
                yield (self._swapped(piece) if self.swap > 1 else piece).view(self.dtype)

    def _swapped(self, piece: Values) -> Values:
        writable = piece if piece.flags.writeable else piece.copy()
        swap_in_place(writable.data, self.swap)
        return writable

    def _decoded(self, part: Part) -> Iterator[Any]:
        """Yield the bytes of a part, in pieces of any size; errors name its file and the header."""
        with part.source.open() as file:
            file.seek(part.offset)
            try:
                yield from self._decode(file, part)
            except RaconvertError as error:
                error.path = error.path or part.source.path
                raise of_header(error, self.header) from error.__cause__


# Array sources over data in one compressed stream, and how such data is written -------------------
# Data is decoded front to back, in pieces of a bounded size, and never further than the array
# needs.


AHEAD_BYTES = 8 << 20  # data below this is decompressed without a thread
AHEAD_CHUNKS = 8
LEVEL = 6  # of zlib: its default


class Inflated(DecodedParts):
    """Array source: the elements of `array` in a stream encoded by gzip, bzip2 or zlib.

    `part` is its location; numbers of `swap` bytes are reversed. `notes` gets a note about bytes
    behind the stream.
    """

    def __init__(
        self, array: Array, part: Part, swap: int, *, encoding: str, notes: list[str]
    ) -> None:
        super().__init__(
            array, [part], part.source.path, swap, encoding=encoding,
            decode=lambda file, part: inflated(file, part, encoding, notes),
        )  # fmt: skip


def inflated(file: Any, part: Part, encoding: str, notes: list[str]) -> Iterator[Any]:
    """Yield the bytes of a part encoded by gzip, bzip2 or zlib, in pieces of any size."""
    chunks = decompressed(file, MEMBERS[encoding], part, notes)
    return ahead(chunks, AHEAD_CHUNKS) if part.nbytes >= AHEAD_BYTES else chunks


def write_deflated(
    target: Target,
    header: bytes,
    array: Array,
    wrapping: int = inflate.GZIP_WBITS,
    level: int = LEVEL,
) -> None:
    """Write `header` and the elements, as `write_raw` does, in one gzip member or zlib stream.

    Equal arrays give equal files: a member has neither time nor name. Raises what `write_raw` does.
    """
    compressor = compressobj(level, DEFLATED, wrapping)
    file = target.open()
    try:
        write_all(file, [compressor.compress(header)])
        for block in target.counted(blocks(array, block_bytes(target.max_memory))):
            write_all(file, [compressor.compress(block.reshape(-1).view("u1").data)])
        write_all(file, [compressor.flush()])
    except OSError as error:
        raise write_failed(target.path, error) from error


# Base of array sources whose elements lie in the file as they are, though not as one extent ------
# The whole is decoded front to back with all checks that the file allows, as by `Decoded`; a region
# is read by itself.


LEAST_RUN = 1 << 12  # bytes in one piece that are worth a read of their own


class Placed:
    """An open file that is read at any offset."""

    def __init__(self, path: str, file: Any) -> None:
        self._path = path
        self._file = file

    def read_into(self, memory: memoryview, offset: int) -> int:
        """Read from byte `offset` into memory, once; return the number of bytes read."""
        try:
            self._file.seek(offset)
            return int(self._file.readinto(memory))
        except OSError as error:
            raise read_failed(self._path, error) from error


class InPlace(Decoded):
    """Base of array sources of which a region can be read without the rest.

    A subclass has `stream`, and `located`.
    """

    path: str

    @property
    def by_regions(self) -> bool:
        """True if `part` reads a region without the rest."""
        return True

    def located(self) -> AbstractContextManager[tuple[Any, int]]:
        """Open the file; the handle, and the offset at which the elements lie in stored order."""
        raise NotImplementedError

    def part(self, key: Any) -> Any:
        """Read the region that a key picks: only that region if that is cheaper than everything.

        A checksum of the whole is not verified then.
        """
        full = full_key(key, len(self.shape))
        if self.held() is not None or not is_basic(full) or not self._is_less(full):
            return self[key]
        width = self.dtype.itemsize
        strides = tuple(width * prod(self.shape[n + 1 :]) for n in range(len(self.shape)))
        with self.located() as (file, offset):
            return region(file, self.path, offset, self.dtype, self.shape, strides, full)

    def _is_less(self, full: tuple[Any, ...]) -> bool:
        """True if a region is worth reading by itself: at most half, and not in tiny pieces.

        If the whole has more than `max_memory` bytes, any region is. Raises `TooLarge` for a region
        that has more itself.
        """
        ranges = [range_of(part, length) for part, length in zip(full, self.shape, strict=True)]
        count = prod(
            len(range(length)[part]) if isinstance(part, slice) else 1
            for part, length in zip(full, self.shape, strict=True)
        )
        if self.nbytes > self.max_memory:
            what = f"this part of {self.what}"
            check_memory(count * self.dtype.itemsize, self.max_memory, what)
            return True
        run = self.dtype.itemsize
        for (begin, end, _), length in zip(ranges[::-1], self.shape[::-1], strict=True):
            run *= end - begin
            if end - begin < length:
                break
        spread = bool(ranges) and 2 * (ranges[0][1] - ranges[0][0]) > self.shape[0]
        return 2 * count <= self.count and (run >= LEAST_RUN or not spread)


# `LateArray`: an array of texts whose width is known after all of its elements have been read -----
# They are read when the element type is first asked for; until then `Array.pending` names it.


class LateArray(Array):
    """An array whose element type `look` finds when it is first asked for.

    `words` name the type until then. An error that `look` raises becomes the array's `problem`.
    """

    __slots__ = ("_element", "_look", "_words")

    def __init__(
        self, words: str, look: Callable[[], Element], dims: tuple[int, ...], **fields: Any
    ) -> None:
        self._words = words
        self._look: Callable[[], Element] | None = look
        super().__init__(UNKNOWN, dims, **fields)

    @property
    def pending(self) -> str:  # type: ignore[override] # plain arrays have nothing pending
        """The type in words, until it is looked up."""
        return self._words if self._look is not None else ""

    @property
    def element(self) -> Element:
        """The element type; `UNKNOWN` if it cannot be found, which `problem` then explains."""
        self.settle()
        return self._element

    @element.setter
    def element(self, element: Element) -> None:
        self._element = element

    def settle(self) -> None:
        """Find the element type, once; an error becomes the `problem`."""
        look, self._look = self._look, None
        if look is None:
            return
        try:
            self._element = look()
        except RaconvertError as error:
            self.problem: RaconvertError | None = error

    def __reduce__(self) -> Any:
        """Pickle it as a plain array, whose type is known."""
        return _itself, (self.replace(),)


def _itself(array: Array) -> Array:
    """Return the array: the function that an unpickled `LateArray` is made by."""
    return array
