"""Chunks decoded outside the library: plain, deflated, or shuffled and deflated.

File format specification 3.0, IV.A.2.l "The Filter Pipeline Message"; filters 1 (deflate: one zlib
stream) and 2 (shuffle: all first bytes of the elements, then all second ones, ...).

The library decodes one chunk at a time behind a lock, and lets a deflated chunk grow to whatever
size it has. Here several threads decode, and no chunk becomes larger than it may be.
"""

from __future__ import annotations

import os
import zlib
from array import array
from itertools import product
from math import prod
from threading import Lock

import numpy as np

from raconvert.errors import Corrupt
from raconvert.source import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from h5py import h5d

    Values = np.ndarray[Any, Any]

DEFLATE, SHUFFLE = 1, 2
DECODED = ((), (DEFLATE,), (SHUFFLE, DEFLATE))  # pipelines, in the order of writing
LARGEST_PLAIN = 64 << 20  # of larger chunks without filters the library reads only what is needed
PARALLEL_BYTES = 1 << 18  # boxes below this are not worth a thread


class Chunks:
    """Where the chunks of one dataset are, and what is inside them.

    `unit` is the width of an element in bytes; `fill` those of one element where nothing is stored.
    """

    def __init__(
        self,
        path: str,
        size: int,
        space: tuple[int, ...],
        chunk: tuple[int, ...],
        unit: int,
        filters: tuple[int, ...],
        fill: bytes,
    ) -> None:
        self._path = path
        self._size = size
        self._space = space
        self._chunk = chunk
        self._unit = unit
        self._filters = filters
        self._fill = np.frombuffer(fill, f"V{unit}")
        self._grid = [-(-n // c) for n, c in zip(space, chunk, strict=True)]
        self._bytes = prod(chunk) * unit
        self._inflate = _inflater(self._bytes)
        none: Values = np.empty(0, np.int64)
        self._numbers = self._offsets = self._lengths = self._masks = none

    def one(self, offset: int, length: int, mask: int) -> None:
        """Take it that there is one chunk, and where."""
        self._numbers = np.zeros(1, np.int64)
        self._offsets, self._lengths, self._masks = (
            np.array([value], np.uint64) for value in (offset, length, mask)
        )

    def index(self, dataset: h5d.DatasetID) -> None:
        """Find out where every chunk is."""
        numbers, offsets, lengths, masks = array("q"), array("q"), array("q"), array("q")
        steps = [prod(self._grid[axis + 1 :]) for axis in range(len(self._grid))]

        def note(info: Any) -> None:
            place = zip(info.chunk_offset, self._chunk, steps, strict=True)
            numbers.append(sum(at // high * step for at, high, step in place))
            offsets.append(info.byte_offset)
            lengths.append(info.size)
            masks.append(info.filter_mask)

        dataset.chunk_iter(note)
        order = np.argsort(np.frombuffer(numbers, np.int64)) if numbers else np.empty(0, np.int64)
        self._numbers, self._offsets, self._lengths, self._masks = (
            np.frombuffer(column, np.int64)[order] if column else np.empty(0, np.int64)
            for column in (numbers, offsets, lengths, masks)
        )
        if len(self._numbers) and (np.diff(self._numbers) == 0).any():
            raise Corrupt("chunk index lists one chunk twice")

    def fill(self, out: Values, start: tuple[int, ...]) -> None:
        """Fill `out`, elements as opaque units, with the box of the dataset from `start`."""
        ranges = [
            range(low // high, -(-(low + n) // high))
            for low, n, high in zip(start, out.shape, self._chunk, strict=True)
        ]
        tasks = product(*ranges)
        file = open_regular(self._path)
        try:
            if out.nbytes < PARALLEL_BYTES or prod(map(len, ranges)) == 1:
                for place in tasks:
                    self._place(file, place, out, start)
            else:
                from concurrent.futures import ThreadPoolExecutor

                with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
                    for _ in pool.map(lambda place: self._place(file, place, out, start), tasks):
                        pass
        finally:
            os.close(file)

    def _place(self, file: int, place: tuple[int, ...], out: Values, start: Any) -> None:
        """Put what one chunk has of the box into its place."""
        inside, target = [], []
        for at, high, low, n in zip(place, self._chunk, start, out.shape, strict=True):
            first, last = max(low, at * high), min(low + n, (at + 1) * high)
            inside.append(slice(first - at * high, last - at * high))
            target.append(slice(first - low, last - low))
        raw = self._decoded(file, place)
        if raw is None:
            out[tuple(target)] = self._fill[0]
        else:
            units = np.frombuffer(raw, f"V{self._unit}").reshape(self._chunk)
            out[tuple(target)] = units[tuple(inside)]

    def _decoded(self, file: int, place: tuple[int, ...]) -> Any:
        """Return the bytes of one chunk; None if it was never written."""
        number = 0
        for at, n in zip(place, self._grid, strict=True):
            number = number * n + at
        row = int(np.searchsorted(self._numbers, number))
        if row == len(self._numbers) or self._numbers[row] != number:
            return None
        offset, length = int(self._offsets[row]), int(self._lengths[row])
        where = f"chunk {place}, byte {offset}"
        if offset < 0 or offset + length > self._size:
            raise Corrupt("chunk lies outside the file", where=where)
        raw: Any = _read_at(file, length, offset)
        if len(raw) != length:
            raise Corrupt("file became shorter while it was read", where=where)
        mask = int(self._masks[row])
        for index in reversed(range(len(self._filters))):
            if not mask >> index & 1:
                raw = self._undo(self._filters[index], raw, where)
        if len(raw) != self._bytes:
            raise Corrupt("chunk has another size", where=where, expected=f"{self._bytes} bytes",
                          got=len(raw))  # fmt: skip
        return raw

    def _undo(self, number: int, raw: Any, where: str) -> Any:
        if number == DEFLATE:
            try:
                return self._inflate(raw)
            except ValueError as error:
                raise Corrupt(f"chunk cannot be inflated: {error}", where=where) from error
        return unshuffled(raw, self._unit)


_SEEKING = Lock()


def _read_at(file: int, nbytes: int, offset: int) -> bytes:
    """Return the bytes at a place, fewer where the file ends; safe with threads."""
    if hasattr(os, "pread"):
        return os.pread(file, nbytes, offset)
    with _SEEKING:  # Windows: the position belongs to all threads
        os.lseek(file, offset, os.SEEK_SET)
        return os.read(file, nbytes)


def _inflater(size: int) -> Callable[[bytes], Any]:
    """Return a function that inflates to at most `size` bytes, or raises ValueError."""
    try:
        import deflate
    except ImportError:  # not built for this machine; zlib does the same, more slowly
        return lambda raw: _inflated(raw, size)

    def inflate(raw: bytes) -> Any:
        try:
            return deflate.zlib_decompress(raw, size)
        except deflate.DeflateError:  # a bad checksum, more bytes, or bytes behind the stream
            return _inflated(raw, size)

    return inflate


def _inflated(raw: bytes, size: int) -> bytes:
    """Inflate with zlib, which says what is wrong; bytes behind the stream are nothing wrong."""
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(raw, size + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(data) > size:
        raise ValueError(f"it inflates to more than {size} bytes")
    if not stream.eof:
        raise ValueError("it is cut off")
    return data


def unshuffled(raw: Any, width: int) -> Any:
    """Return the bytes of elements whose first bytes come first, then their second bytes, ..."""
    count = len(raw) // width
    if width == 1 or count < 2:
        return raw
    planes = np.frombuffer(raw, np.uint8, count * width).reshape(width, count)
    result = np.empty((count, width), np.uint8)
    for index in range(width):
        result[:, index] = planes[index]
    rest = bytes(raw[count * width :])
    return result.reshape(-1) if not rest else result.tobytes() + rest
