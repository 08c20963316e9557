"""Array sources over the features of records, by their offsets."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.blocks import recut
from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import chosen
from raconvert.arrays.sources import Decoded
from raconvert.errors import Corrupt

from .messages import (
    BYTES,
    FLOATS,
    RUN,
    Malformed,
    bytes_of,
    count_of,
    lists_of,
    numbers_of,
    steps_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .features import Feature
    from .records import Content

    Values = np.ndarray[Any, Any]
    Lists = list[tuple[int, int, int]]


PIECE_BYTES = 1 << 20  # bytes of values that are decoded at once


def _steps(content: Content, feature: Feature, entry: int) -> Iterator[tuple[bytes, Lists]]:
    """Yield the bytes of each step of a feature in a record, and the runs of values in them."""
    begin, nbytes = feature.begins[entry], feature.nbytes[entry]
    if feature.whole:
        yield content.verified(entry, begin, nbytes), [(RUN, 0, nbytes)]
        return
    data = content.read(begin, nbytes)
    for first, last in steps_of(data, 0, nbytes) if feature.has_steps else [(0, nbytes)]:
        yield data, lists_of(data, first, last)[1]


class Rows:
    """Array source of a feature whose records have the same number of values."""

    by_regions = True

    def __init__(
        self, content: Content, feature: Feature, name: str, shape: tuple[int, ...], width: int
    ) -> None:
        self.shape = shape
        self._is_text = feature.kind == BYTES and feature.is_padded
        types = {BYTES: f"|S{width}" if self._is_text else "|u1", FLOATS: "<f4"}
        self.dtype: np.dtype[Any] = np.dtype(types.get(feature.kind, "<i8"))
        self._content = content
        self._feature = feature
        self._what = f"'{content.path}': feature '{name}'"
        self._row = prod(shape[1:])

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield whole rows in stored order, even one that is longer than `max_bytes`."""
        step = self._rows_of(min(max_bytes, PIECE_BYTES))
        for first in range(0, self.shape[0], step):
            yield self._values(range(first, min(first + step, self.shape[0])))

    def _rows_of(self, nbytes: int) -> int:
        """Return the number of rows, at least one, that are decoded at once in so many bytes."""
        row_bytes = max(1, self._row * self.dtype.itemsize)
        check_memory(row_bytes, self._content.source.max_memory, f"a record of {self._what}")
        return max(1, nbytes // row_bytes)

    def _values(self, entries: range) -> Values:
        """Return all values of some records, in one run."""
        kind, runs = self._feature.kind, list[bytes]()
        try:
            for entry in entries:
                for data, lists in _steps(self._content, self._feature, entry):
                    runs += bytes_of(data, kind, lists)
            if self._is_text:
                values = np.array(runs, self.dtype)
            elif kind == BYTES:
                values = np.frombuffer(b"".join(runs), self.dtype)
            else:
                values = numbers_of(kind, b"".join(runs))
        except Malformed as error:
            raise Corrupt(f"{self._what}: {error}") from error
        return values

    def __getitem__(self, key: Any) -> Any:
        return chosen(self.shape, self.dtype, key, self._region)

    def _region(self, key: tuple[slice, ...]) -> Values:
        """Return the values of slices with steps above 0."""
        rows, rest = range(self.shape[0])[key[0]], key[1:]
        inner = [len(range(n)[part]) for n, part in zip(self.shape[1:], rest, strict=True)]
        nbytes = (len(rows) * prod(inner) + self._row) * self.dtype.itemsize
        check_memory(nbytes, self._content.source.max_memory, f"this part of {self._what}")
        out = np.empty((len(rows), *inner), self.dtype)
        step = self._rows_of(PIECE_BYTES)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            values = self._values(some).reshape(len(some), *self.shape[1:])
            out[start : start + step] = values[(slice(None), *rest)]
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        return np.array(self[...], dtype=dtype, copy=copy)


class Flat(Decoded):
    """Array source of all values of a feature, or of their counts at a level.

    `level` is ``values``, or the counts ``bytes`` (of each value), ``values of steps``, ``values of
    records`` or ``steps of records``, which are 0 for a record without the feature.
    """

    def __init__(
        self, content: Content, feature: Feature, level: str, shape: tuple[int, ...], name: str,
        records: int,
    ) -> None:  # fmt: skip
        kinds = {BYTES: "|u1", FLOATS: "<f4"}
        dtype = kinds.get(feature.kind, "<i8") if level == "values" else "<i8"
        super().__init__(
            shape, np.dtype(dtype), what=f"'{content.path}': '{name}'",
            max_memory=content.source.max_memory,
        )  # fmt: skip
        self._content = content
        self._feature = feature
        self._level = level
        self._records = records

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield values in stored order."""
        yield from recut(self._runs(), max(1, max_bytes // self.dtype.itemsize), self.dtype)

    def _runs(self) -> Iterator[Values]:
        """Yield the values or counts of each record."""
        done, by_record = 0, self._level.endswith("of records")
        for entry, record in enumerate(self._feature.records):
            if by_record and record > done:
                yield np.zeros(record - done, self.dtype)
            try:
                yield self._entry(entry)
            except Malformed as error:
                raise Corrupt(f"{self.what}, record {record}: {error}") from error
            done = record + 1
        if by_record and done < self._records:
            yield np.zeros(self._records - done, self.dtype)

    def _entry(self, entry: int) -> Values:
        """Return the values or counts of a record that has the feature."""
        kind = self._feature.kind
        steps = [*_steps(self._content, self._feature, entry)]
        if self._level == "steps of records":
            return np.array([len(steps)], self.dtype)
        if self._level == "values of steps":
            counts = [count_of(data, kind, lists) for data, lists in steps]
            return np.array(counts, self.dtype)
        if self._level == "values of records":
            total = sum(count_of(data, kind, lists) for data, lists in steps)
            return np.array([total], self.dtype)
        runs = [run for data, lists in steps for run in bytes_of(data, kind, lists)]
        if self._level == "bytes":
            return np.array([len(run) for run in runs], self.dtype)
        whole = b"".join(runs)
        return np.frombuffer(whole, self.dtype) if kind == BYTES else numbers_of(kind, whole)
