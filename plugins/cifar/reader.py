"""An array source over one column of the records."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.indexing import full_key
from raconvert.arrays.memory import check_memory
from raconvert.arrays.strided import range_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Source

    from .tables import Layout

    Values = np.ndarray[Any, Any]

READ_BYTES = 1 << 20  # of records at once


class Column:
    """The labels, or the images, of all records: bytes from `place` of each, in this shape."""

    def __init__(self, source: Source, layout: Layout, place: int, shape: tuple[int, ...]) -> None:
        self.shape: tuple[int, ...] = (source.size // layout.nbytes, *shape)
        self.dtype = np.dtype(np.uint8)
        self._source, self._record, self._place = source, layout.nbytes, place

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in stored order, at most `max_bytes` each."""
        for start, stop in self._pieces(0, self.shape[0]):
            values = self._records(start, stop).reshape(-1)
            for at in range(0, values.size, max(1, max_bytes)):
                yield values[at : at + max(1, max_bytes)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        return np.array(self[...], dtype=dtype, copy=copy)

    def __getitem__(self, key: Any) -> Any:
        first, *rest = full_key(key, len(self.shape))
        start, stop, inside = range_of(first, self.shape[0])
        inner = self.shape[1:]
        check_memory(
            (stop - start) * prod(inner), self._source.max_memory, "this part of the array"
        )
        out = np.empty((stop - start, *inner), self.dtype)
        for begin, end in self._pieces(start, stop):
            out[begin - start : end - start] = self._records(begin, end)
        return out[(inside, *rest)]

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        step = max(1, READ_BYTES // self._record)
        for begin in range(start, stop, step):
            yield begin, min(begin + step, stop)

    def _records(self, start: int, stop: int) -> Values:
        count, record = stop - start, self._record
        raw = self._source.read_exact(start * record, count * record, "the records")
        width = prod(self.shape[1:])
        rows = np.frombuffer(raw, np.uint8).reshape(count, record)
        return rows[:, self._place : self._place + width].reshape(count, *self.shape[1:])
