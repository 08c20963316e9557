"""Chunks decoded outside the library: stored, shuffled, deflated, with a checksum, in any order.

File format specification 3.0, IV.A.2.l "The Filter Pipeline Message"; filters 1 (deflate: one zlib
stream), 2 (shuffle: all first bytes of the elements, then all second ones, ...) and 3 (fletcher32).

The library decodes one chunk at a time behind a lock, and lets a deflated chunk grow to whatever
size it has. Here several threads decode, and no chunk becomes larger than it may be.

The library lists the offsets of chunks, and is wrong about some of them. B-trees store the position
of each chunk. The other indexes are arrays, in which positions are counted, and the library counts
wrong (up to HDF5 2.0 at least) if an axis other than the first is unlimited, older ones also if
such an axis may still grow. Permuted chunks look sound, so such indexes are not used here.
"""

from __future__ import annotations

import os
import zlib
from array import array
from contextlib import suppress
from math import prod
from threading import Lock

import numpy as np

from raconvert.arrays.blocks import Pieces
from raconvert.errors import Corrupt
from raconvert.files.copy import handle_of
from raconvert.files.inflate import MAX_RATIO, ZLIB_WBITS, Inflater, inflater
from raconvert.files.threads import Threads, processors

from .tables import DEFLATE, FLETCHER32, SHUFFLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from h5py import h5d

    from raconvert.files.paths import Handle
    from raconvert.files.source import Source

    Values = np.ndarray[Any, Any]


# Filters of chunks, in both directions: deflate, shuffle, fletcher32 -----------------------------
# File format specification 3.0, IV.A.2.l "The Filter Pipeline Message". Fletcher32, as the
# library computes it, is two sums modulo 65535 over 16-bit words: of the words, and of the first
# sum after each word. It stands behind the chunk, little-endian; libraries before 1.6.3 wrote it
# with the bytes of each half swapped, and the library takes both.


CHECKSUM_BYTES = 4
_MODULUS = 65535
_ROW = 4096  # words; the sums over rows and columns of so many need no larger numbers


# --- deflate: one zlib stream --------------------------------------------------------------------


def deflated(raw: Values, level: int) -> bytes:
    """The bytes as a zlib stream."""
    try:
        import deflate
    except ImportError:  # not built for this machine; zlib is slower
        return zlib.compress(raw.data, level)
    return bytes(deflate.zlib_compress(raw.data, level))


# --- shuffle: all first bytes of the elements, then all second ones, ... --------------------------


def shuffled(raw: Values, width: int) -> Values:
    """The bytes of elements with all first bytes in front, then all second bytes, ..."""
    units = raw.reshape(-1, width)
    planes = np.empty(units.shape[::-1], np.uint8)
    for index in range(width):  # plane by plane: half the time of a transposed copy
        planes[index] = units[:, index]
    return planes.reshape(-1)


def unshuffled(raw: Any, width: int) -> Any:
    """The bytes of elements from `shuffled` ones: all first bytes, then all second bytes, ..."""
    count = len(raw) // width
    if width == 1 or count < 2:
        return raw
    planes = np.frombuffer(raw, np.uint8, count * width).reshape(width, count)
    result = np.empty((count, width), np.uint8)
    for index in range(width):
        result[:, index] = planes[index]
    rest = bytes(raw[count * width :])
    return result.reshape(-1) if not rest else result.tobytes() + rest


# --- fletcher32 -----------------------------------------------------------------------------------


def fletcher32(raw: Any) -> int:
    """The checksum of bytes, as the library computes it."""
    view = memoryview(raw).cast("B")
    odd = bytes(view[len(view) & ~1 :])
    words = np.frombuffer(view, "<u2", len(view) // 2)
    count = len(words) + len(odd)
    whole = len(words) // _ROW
    rows = words[: whole * _ROW].reshape(whole, _ROW)
    last = np.zeros(_ROW, "<u2")
    last[: len(words) - whole * _ROW] = words[whole * _ROW :]
    if odd:
        last[len(words) - whole * _ROW] = odd[0]
    down = rows.sum(axis=0, dtype=np.uint64) + last
    across = np.append(rows.sum(axis=1, dtype=np.uint64), last.sum(dtype=np.uint64))
    if not across.any():
        return 0
    # Word number i counts (count - i) times in the second sum; 256: the words are big-endian.
    left = (count - _ROW * np.arange(len(across), dtype=np.int64)) % _MODULUS
    before = np.arange(_ROW, dtype=np.int64)
    second = int((left * (across % _MODULUS).astype(np.int64)).sum())
    second -= int((before * (down % _MODULUS).astype(np.int64)).sum())
    first = int(across.sum())
    return _folded(256 * second) << 16 | _folded(256 * first)


def _folded(total: int) -> int:
    """A sum other than 0, modulo 65535 as the library folds it: 65535 instead of 0."""
    return (total - 1) % _MODULUS + 1


def checks_out(raw: Any) -> bool:
    """True if the last four bytes are the checksum of those before them."""
    if len(raw) < CHECKSUM_BYTES:
        return False
    view = memoryview(raw).cast("B")
    stored = bytes(view[-CHECKSUM_BYTES:])
    computed = fletcher32(view[:-CHECKSUM_BYTES]).to_bytes(CHECKSUM_BYTES, "little")
    return stored in (computed, bytes((computed[1], computed[0], computed[3], computed[2])))


_DECODED = frozenset((DEFLATE, SHUFFLE, FLETCHER32))
# Bytes; of larger unfiltered chunks libhdf5 reads only the part needed.
LARGEST_UNFILTERED = 64 << 20
PARALLEL_BYTES = 1 << 18  # boxes below this are not worth a thread
LARGEST_UNCHECKED = 32 << 20  # bytes; a larger chunk is checked before it is inflated
PIECE_BYTES = 1 << 16
_NONE: Values = np.empty(0, np.uint64)


def is_decoded(filters: tuple[int, ...]) -> bool:
    """True if chunks with these filters are decoded here: each of ours, once at most."""
    return len(set(filters)) == len(filters) and _DECODED.issuperset(filters)


def are_places_sure(
    space: tuple[int, ...], limits: tuple[int, ...], chunk: tuple[int, ...], *, stored: bool
) -> bool:
    """True if the addresses of chunks that the library gives are right.

    They are if the index has `stored` the positions of chunks, or if counting them gives the same
    whether the axes are as long as `space` or as the `limits` that they may grow to.
    """
    grown = zip(space[1:], limits[1:], chunk[1:], strict=True)
    return stored or all(-(-most // high) == -(-n // high) for n, most, high in grown)


class Chunks:
    """Index of the chunks of one dataset, and their decoder.

    `unit` is the width of an element in bytes; `fill` are the bytes of an element without a chunk.
    """

    def __init__(
        self,
        source: Source,
        size: int,
        space: tuple[int, ...],
        chunk: tuple[int, ...],
        unit: int,
        filters: tuple[int, ...],
        fill: bytes,
    ) -> None:
        self._source = source
        self._size = size
        self._space = space
        self._chunk = chunk
        self._unit = unit
        self._filters = filters
        self._fill = np.frombuffer(fill, f"V{unit}")
        self._grid = [-(-n // c) for n, c in zip(space, chunk, strict=True)]
        self._bytes = prod(chunk) * unit  # bytes of a decoded chunk
        checked = FLETCHER32 in filters
        self._inflate = inflater(self._bytes + CHECKSUM_BYTES * checked, strict=checked)
        self._numbers = self._offsets = self._lengths = self._masks = _NONE

    def in_pieces(self, axes: tuple[int, ...], swap: int) -> Pieces | str:
        """Locate the chunks, with the filters by which others decode them; or return a reason.

        `axes` are those of an element, which are whole in each chunk; numbers of `swap` bytes are
        big-endian.
        """
        if self._masks.any():
            return "some of its chunks are stored without its filters"
        positions = np.stack(np.unravel_index(self._numbers, self._grid), axis=1).tolist()
        zeros = (0,) * len(axes)
        pieces = [
            ((*index, *zeros), self._source.extent(int(offset), int(length), swap))
            for index, offset, length in zip(positions, self._offsets, self._lengths, strict=True)
        ]
        fill = None
        if len(pieces) < prod(self._grid):
            if self._fill.tobytes().strip(b"\0"):
                return "elements that were never written have a fill value"
            fill = 0
        names: dict[int, tuple[str, dict[str, Any]]] = {
            DEFLATE: ("zlib", {}),
            SHUFFLE: ("shuffle", {"elementsize": self._unit}),
            FLETCHER32: ("fletcher32", {}),
        }
        filters = tuple(names[number] for number in self._filters)
        return Pieces((*self._chunk, *axes), pieces, filters, fill)

    def stretches(self) -> tuple[Values, Values]:
        """The offsets and the stored bytes of all chunks."""
        return self._offsets, self._lengths

    def set_single(self, offset: int, length: int, mask: int) -> None:
        """Make an index of one chunk: its offset, stored bytes and filter mask."""
        self._numbers = np.zeros(1, np.int64)
        self._offsets, self._lengths, self._masks = (
            np.array([value], np.uint64) for value in (offset, length, mask)
        )

    def index(self, dataset: h5d.DatasetID) -> bool:
        """Read the index of all chunks; False if the library counts another number of them.

        Raises `Corrupt` for chunks that lie off the grid, outside the dataset, or twice in it.
        """
        numbers = self._numbered(self._list(dataset))
        order = np.argsort(numbers)
        self._numbers = numbers[order]
        self._offsets, self._lengths, self._masks = (
            column[order] for column in (self._offsets, self._lengths, self._masks)
        )
        if (np.diff(self._numbers) == 0).any():
            raise Corrupt("chunk index lists one chunk twice")
        return len(numbers) == int(dataset.get_num_chunks())

    def _list(self, dataset: h5d.DatasetID) -> Values:
        """Store offset, length and filter mask of each chunk; return the first index of each."""
        corners, offsets, lengths, masks = array("Q"), array("Q"), array("Q"), array("Q")

        def note(info: Any) -> None:
            corners.extend(info.chunk_offset)
            offsets.append(info.byte_offset)
            lengths.append(info.size)
            masks.append(info.filter_mask)

        dataset.chunk_iter(note)
        self._offsets, self._lengths, self._masks, starts = (
            np.frombuffer(column, np.uint64) if column else _NONE
            for column in (offsets, lengths, masks, corners)
        )
        return starts

    def check_inflation(self, dataset: h5d.DatasetID, userblock: int) -> None:
        """Refuse (`Corrupt`) deflated chunks that grow larger than a chunk is.

        For datasets that the library reads, since it does not bound them. The positions of chunks,
        which the library may give wrong, do not matter here.
        """
        if [number for number in self._filters if number != FLETCHER32][-1:] != [DEFLATE]:
            return
        self._list(dataset)
        bit = self._filters.index(DEFLATE)
        large = self._lengths * MAX_RATIO > max(LARGEST_UNCHECKED, self._bytes)
        with self._source.open() as file:
            for row in np.flatnonzero(large & (self._masks >> bit & 1 == 0)).tolist():
                offset, length = int(self._offsets[row]), int(self._lengths[row])
                for at in {offset, offset + userblock}:  # some versions leave out the user block
                    if at + length <= self._size:
                        raw = _read_at(handle_of(file), length, at)
                        self._check_inflated(raw, f"chunk at byte {at}")

    def _check_inflated(self, raw: bytes, where: str) -> None:
        """Raise `Corrupt` if a stream inflates to more bytes than a chunk has."""
        parts = (raw[n : n + PIECE_BYTES] for n in range(0, len(raw), PIECE_BYTES))
        total = 0
        with suppress(Corrupt):  # libhdf5 reports a damaged stream itself
            for piece in Inflater(parts, ZLIB_WBITS, "").pieces(LARGEST_UNCHECKED):
                total += len(piece)
                if total > self._bytes + CHECKSUM_BYTES:
                    break
        if total > self._bytes + CHECKSUM_BYTES:
            raise Corrupt(f"chunk inflates to more than {self._bytes} bytes", where=where)

    def check_found(self, dataset: h5d.DatasetID) -> None:
        """Raise `Corrupt` if the library does not find a listed chunk by its position.

        If a key of its B-tree is damaged, it would read the fill value instead.
        """
        for row, index in zip(*self._stored_in((0,) * len(self._space), self._space), strict=True):
            start = tuple(at * high for at, high in zip(index, self._chunk, strict=True))
            try:
                dataset.read_direct_chunk(start, out=bytearray(1))
            except ValueError:  # it is larger than one byte, so libhdf5 has found it
                continue
            except RuntimeError as error:
                where = f"chunk {index}, byte {self._offsets[row]}"
                raise Corrupt("chunk index leads to a chunk only in part", where=where) from error

    def _numbered(self, corners: Values) -> Values:
        """The number of each chunk in row-major order, from the first indices of all of them."""
        first = corners.reshape(-1, len(self._chunk))
        chunk, space = np.array(self._chunk, np.uint64), np.array(self._space, np.uint64)
        misplaced = np.flatnonzero((first % chunk).any(axis=1) | (first >= space).any(axis=1))
        if misplaced.size:
            raise Corrupt(
                "chunk index lists a chunk that the dataset has no place for",
                expected=f"multiples of {self._chunk} below {self._space}",
                got=tuple(first[misplaced[0]].tolist()),
            )
        steps = [prod(self._grid[axis + 1 :]) for axis in range(len(self._grid))]
        return ((first // chunk) @ np.array(steps, np.uint64)).astype(np.int64)

    def fill(self, out: Values, start: tuple[int, ...]) -> None:
        """Fill `out`, elements as opaque units, with the box of the dataset from `start`."""
        rows, indices = self._stored_in(start, out.shape)
        if len(rows) < prod(
            -(-(low + n) // high) - low // high
            for low, n, high in zip(start, out.shape, self._chunk, strict=True)
        ):
            out[...] = self._fill[0]  # the stored chunks are written over it
        opened = self._source.open()
        file = handle_of(opened)
        try:
            if out.nbytes < PARALLEL_BYTES or len(rows) < 2:
                for row, index in zip(rows, indices, strict=True):
                    self._copy(file, row, index, out, start)
            else:

                def copy_some(first: int) -> None:
                    for n in range(first, min(first + step, len(rows))):
                        self._copy(file, rows[n], indices[n], out, start)

                # Many small chunks in a job, since a job costs more than one of them.
                step = max(1, min(len(rows) // 16, PARALLEL_BYTES // self._bytes))
                with Threads(min(4, processors())) as threads:
                    threads.run(copy_some, range(0, len(rows), step), len(rows))
        finally:
            opened.close()

    def _stored_in(
        self, start: tuple[int, ...], count: tuple[int, ...]
    ) -> tuple[list[int], list[tuple[int, ...]]]:
        """The rows of the index, and the positions in the grid, of the stored chunks in a box."""
        if not count:
            return list(range(len(self._numbers))), [()] * len(self._numbers)
        first = [low // high for low, high in zip(start, self._chunk, strict=True)]
        last = [
            (low + n - 1) // high for low, n, high in zip(start, count, self._chunk, strict=True)
        ]
        ends = [int(np.ravel_multi_index(corner, self._grid)) for corner in (first, last)]
        low = int(np.searchsorted(self._numbers, ends[0]))
        high = int(np.searchsorted(self._numbers, ends[1], "right"))
        at = np.stack(np.unravel_index(self._numbers[low:high], self._grid), axis=1)
        inside = np.flatnonzero(((at >= first) & (at <= last)).all(axis=1))
        return (low + inside).tolist(), [tuple(corner) for corner in at[inside].tolist()]

    def _copy(
        self, file: Handle, row: int, index: tuple[int, ...], out: Values, start: Any
    ) -> None:
        """Copy the part of a chunk, by its grid `index`, that lies in the box from `start`."""
        inside, target = [], []
        for at, high, low, n in zip(index, self._chunk, start, out.shape, strict=True):
            first, last = max(low, at * high), min(low + n, (at + 1) * high)
            inside.append(slice(first - at * high, last - at * high))
            target.append(slice(first - low, last - low))
        units = np.frombuffer(self._decoded(file, row, index), f"V{self._unit}")
        out[tuple(target)] = units.reshape(self._chunk)[tuple(inside)]

    def _decoded(self, file: Handle, row: int, chunk_index: tuple[int, ...]) -> Any:
        """The decoded bytes of one chunk. Raises `Corrupt`."""
        offset, length = int(self._offsets[row]), int(self._lengths[row])
        where = f"chunk {chunk_index}, byte {offset}"
        if offset + length > self._size:
            raise Corrupt("chunk lies outside the file", where=where)
        raw: Any = _read_at(file, length, offset)
        if len(raw) != length:
            raise Corrupt("file became shorter while it was read", where=where)
        mask = int(self._masks[row])
        for index in reversed(range(len(self._filters))):
            skipped = bool(mask >> index & 1)
            if self._filters[index] == FLETCHER32:
                raw = self._checked(raw, where, skipped=skipped)
            elif not skipped:
                raw = self._undo(self._filters[index], raw, where)
        if len(raw) != self._bytes:
            raise Corrupt("chunk has another size", where=where, expected=f"{self._bytes} bytes",
                          got=len(raw))  # fmt: skip
        return raw

    def _checked(self, raw: Any, where: str, *, skipped: bool) -> Any:
        """Return a chunk without its checksum, which is verified if the chunk has one."""
        if skipped and len(raw) == self._bytes:
            return raw
        if checks_out(raw):
            return raw[:-CHECKSUM_BYTES]
        if not skipped:
            raise Corrupt("checksum of a chunk is wrong (fletcher32)", where=where)
        return raw

    def _undo(self, number: int, raw: Any, where: str) -> Any:
        if number == DEFLATE:
            try:
                return self._inflate(raw)
            except ValueError as error:
                raise Corrupt(f"chunk cannot be inflated: {error}", where=where) from error
        return unshuffled(raw, self._unit)


_SEEKING = Lock()


def _read_at(file: Handle, nbytes: int, offset: int) -> bytes:
    """Read the bytes at an offset, fewer at the end of the file; safe with threads."""
    if not isinstance(file, int):
        return file.read(nbytes, offset)
    if hasattr(os, "pread"):
        return os.pread(file, nbytes, offset)
    with _SEEKING:  # on Windows all threads share the position in the file
        os.lseek(file, offset, os.SEEK_SET)
        return os.read(file, nbytes)
