"""Array sources over the features of records, of which the places are known."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.blocks import recut
from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import chosen
from raconvert.arrays.sources import Decoded
from raconvert.errors import Corrupt

from .messages import BYTES, FLOATS, Malformed, bytes_of, count_of, lists_of, numbers_of, steps_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .features import Feature
    from .records import Content

    Values = np.ndarray[Any, Any]
    Lists = list[tuple[int, int, int]]


PIECE_BYTES = 1 << 20  # of values that are decoded at once


def _steps(content: Content, feature: Feature, entry: int) -> Iterator[tuple[bytes, Lists]]:
    """Yield the bytes, and the places in them, of each step of a feature in a record."""
    begin, nbytes = feature.at[entry], feature.nbytes[entry]
    if feature.whole:
        yield content.verified(entry, begin, nbytes), [(2, 0, nbytes)]
        return
    data = content.read(begin, nbytes)
    for first, last in steps_of(data, 0, nbytes) if feature.has_steps else [(0, nbytes)]:
        yield data, lists_of(data, first, last)[1]


class Rows:
    """Array source of a feature of which every record has as many values."""

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
            yield self._of(range(first, min(first + step, self.shape[0])))

    def _rows_of(self, nbytes: int) -> int:
        """The number of rows, at least one, that are decoded at once."""
        row_bytes = max(1, self._row * self.dtype.itemsize)
        check_memory(row_bytes, self._content.source.max_memory, f"a record of {self._what}")
        return max(1, nbytes // row_bytes)

    def _of(self, entries: range) -> Values:
        """All values of some records, in one run."""
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
        rows, rest = range(self.shape[0])[key[0]], key[1:]
        inner = [len(range(n)[part]) for n, part in zip(self.shape[1:], rest, strict=True)]
        nbytes = (len(rows) * prod(inner) + self._row) * self.dtype.itemsize
        check_memory(nbytes, self._content.source.max_memory, f"this part of {self._what}")
        out = np.empty((len(rows), *inner), self.dtype)
        step = self._rows_of(PIECE_BYTES)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            values = self._of(some).reshape(len(some), *self.shape[1:])
            out[start : start + step] = values[(slice(None), *rest)]
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        return np.array(self[...], dtype=dtype, copy=copy)


class Flat(Decoded):
    """Array source of all values of a feature, or of how many there are at a level.

    `level` is ``values``, or counts: ``bytes`` of each value, ``values of steps``, ``values of
    records`` or ``steps of records``; of a record without the feature 0.
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
        done, by_record = 0, self._level.endswith("of records")
        for entry, record in enumerate(self._feature.records):
            if by_record and record > done:
                yield np.zeros(record - done, self.dtype)
            try:
                yield self._of(entry)
            except Malformed as error:
                raise Corrupt(f"{self.what}, record {record}: {error}") from error
            done = record + 1
        if by_record and done < self._records:
            yield np.zeros(self._records - done, self.dtype)

    def _of(self, entry: int) -> Values:
        kind = self._feature.kind
        steps = [*_steps(self._content, self._feature, entry)]
        if self._level == "steps of records":
            return np.array([len(steps)], self.dtype)
        if self._level == "values of steps":
            return np.array([count_of(*_counted(kind, step)) for step in steps], self.dtype)
        if self._level == "values of records":
            total = sum(count_of(*_counted(kind, step)) for step in steps)
            return np.array([total], self.dtype)
        runs = [run for data, lists in steps for run in bytes_of(data, kind, lists)]
        if self._level == "bytes":
            return np.array([len(run) for run in runs], self.dtype)
        whole = b"".join(runs)
        return np.frombuffer(whole, self.dtype) if kind == BYTES else numbers_of(kind, whole)


def _counted(kind: int, step: tuple[bytes, Lists]) -> tuple[bytes, int, Lists]:
    data, lists = step
    return data, kind, lists
