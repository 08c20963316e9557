"""Array sources of samples: numbers, texts and raw bytes, read member by member.

Only the members are read that are asked for; a piece holds as many as fit into its bytes. Images,
and arrays whose headers differ, are stacked by `raconvert.arrays.stack`.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.dtypes import dtype_of, little, needs_swap
from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key, range_of
from raconvert.errors import Corrupt, Unsupported
from raconvert.files.copy import swap_in_place

from .tables import INT64, text_element

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Element

    from .samples import Column

    Values = np.ndarray[Any, Any]

_INTEGER = re.compile(rb"\s*[+-]?[0-9]+\s*")
RUN_BYTES = 1 << 20  # bytes of samples, or of one member, that are read at once


class Rows:
    """Base of array sources with the samples along the first axis; a subclass fills one row."""

    def __init__(self, column: Column, inner: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape: tuple[int, ...] = (len(column.sizes), *inner)
        self.dtype: np.dtype[Any] = dtype
        self.column: Column = column

    @property
    def by_regions(self) -> bool:
        """True: samples are read without the others."""
        return True

    @property
    def row_bytes(self) -> int:
        """Return the bytes of one sample."""
        return prod(self.shape[1:]) * self.dtype.itemsize

    def fill(self, number: int, memory: memoryview) -> None:
        """Put the elements of a sample, little-endian, into memory that is zero."""
        raise NotImplementedError

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces of whole samples, each valid until the next one."""
        step = max(1, min(max_bytes, RUN_BYTES) // max(1, self.row_bytes))
        for start in range(0, self.shape[0], step):
            yield self.rows(start, min(start + step, self.shape[0])).reshape(-1)

    def rows(self, start: int, stop: int) -> Values:
        """Return the samples from `start` to `stop`. Raises `Corrupt` for one that is damaged."""
        nbytes = (stop - start) * self.row_bytes
        check_memory(nbytes, self.column.shard(0).max_memory, "this part of the array")
        raw = np.zeros(nbytes, np.uint8)
        if nbytes:
            memory = raw.data
            for row, number in enumerate(range(start, stop)):
                offset = row * self.row_bytes
                self.fill(number, memory[offset : offset + self.row_bytes])
        return raw.view(self.dtype).reshape(stop - start, *self.shape[1:])

    def __getitem__(self, key: Any) -> Any:
        first, *rest = full_key(key, len(self.shape))
        start, stop, inside = range_of(first, self.shape[0])
        return self.rows(start, stop)[(inside, *rest)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        return np.array(self[...], dtype=dtype, copy=copy)


class Numbers(Rows):
    """Integers in decimal digits, as int64."""

    def __init__(self, column: Column) -> None:
        super().__init__(column, (), dtype_of(INT64))

    def fill(self, number: int, memory: memoryview) -> None:
        """Put the number of a sample into memory."""
        text = self.column.read(number)
        value = int(text) if _INTEGER.fullmatch(text) else None
        if value is None or not -(1 << 63) <= value < 1 << 63:
            raise Corrupt(
                f"member '{self.column.member(number)}' is not an integer of 8 bytes",
                path=self.column.shard(number).path,
                got=ascii(text)[1:],
                remedy=raw_remedy(self.column.word),
            )
        memory[:] = value.to_bytes(8, "little", signed=True)


class Texts(Rows):
    """Texts in UTF-8, filled up with zeros to the length of the longest one."""

    def __init__(self, column: Column) -> None:
        super().__init__(column, (), dtype_of(text_element(max(column.sizes))))

    def fill(self, number: int, memory: memoryview) -> None:
        """Put the text of a sample into memory."""
        text = self.column.read(number)
        try:
            text.decode()
            fault = "ends in a NUL" if text.endswith(b"\0") else ""
        except UnicodeDecodeError:
            fault = "is not UTF-8"
        if fault:
            raise Corrupt(
                f"member '{self.column.member(number)}' {fault}, and is not read as text",
                path=self.column.shard(number).path,
                remedy=raw_remedy(self.column.word),
            )
        memory[: len(text)] = text


class Alike(Rows):
    """Elements that lie in every member behind a header of the same length."""

    def __init__(
        self, column: Column, inner: tuple[int, ...], element: Element, offset: int
    ) -> None:
        super().__init__(column, inner, dtype_of(little(element)))
        self._offset = offset
        self._swap = needs_swap(element)

    def fill(self, number: int, memory: memoryview) -> None:
        """Copy the elements of a sample into memory."""
        for start in range(0, len(memory), RUN_BYTES):
            self._fill_run(number, start, memory[start : start + RUN_BYTES])

    def _fill_run(self, number: int, start: int, memory: memoryview) -> None:
        """Copy the elements of a sample from byte `start` of them on, little-endian."""
        column = self.column
        offset = column.offsets[number] + self._offset + start
        what = f"member '{column.member(number)}'"
        memory[:] = column.shard(number).read_exact(offset, len(memory), what)
        if self._swap > 1:
            swap_in_place(memory, self._swap)

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces; of a sample that is larger than a piece, parts."""
        if self.row_bytes <= max_bytes:
            yield from super().stream(max_bytes)
            return
        step = max(1, min(max_bytes, RUN_BYTES) // self.dtype.itemsize) * self.dtype.itemsize
        for number in range(self.shape[0]):
            for start in range(0, self.row_bytes, step):
                raw = np.empty(min(step, self.row_bytes - start), np.uint8)
                self._fill_run(number, start, raw.data)
                yield raw.view(self.dtype)


def raw_remedy(word: str) -> str:
    """Return the remedy that reads members as bytes."""
    return f"read their bytes with `--in-opt raw={word} --in-opt apart={word}`"


def check_text(column: Column, number: int) -> None:
    """Refuse (`Unsupported`) a text above the limit."""
    most = column.shard(number).limits.text_bytes
    if column.sizes[number] > most:
        raise Unsupported(
            f"member '{column.member(number)}' is too long a text", path=column.shard(number).path,
            expected=f"at most {most} bytes", got=column.sizes[number],
            remedy=raw_remedy(column.word),
        )  # fmt: skip
