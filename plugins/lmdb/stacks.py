"""Array source over values of one type and shape: value after value along a new first axis."""

from __future__ import annotations

from array import array as numbers
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.blocks import as_ndarray
from raconvert.arrays.dtypes import dtype_of, little, opaque, opaque_dtype
from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key
from raconvert.arrays.sources import Decoded
from raconvert.arrays.transpose import in_order
from raconvert.errors import Corrupt, RaconvertError

from .values import BYTES, DATUM, FLOATS, TEXT, Value, decoded, floats_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from raconvert.plugin import Array, Element, Source

    Elements = np.ndarray[Any, Any]

__all__ = ["Decoder", "KeyTexts", "Members", "Stack", "array_in", "labels_of", "merged"]

AT_ONCE = 1 << 20  # bytes of values that are decoded together
RAW = (BYTES, DATUM, TEXT)  # kinds whose elements lie in the file as they are


class Members:
    """Values of one database that may become one array: their numbers there, kinds and extents."""

    def __init__(self) -> None:
        self.numbers = numbers("Q")
        self._begins, self._nbytes = numbers("Q"), numbers("Q")
        self._kinds = bytearray()
        self.kinds: list[str] = []
        self.shape: tuple[int, ...] | None = None  # of all data of Caffe, if they have one
        self.uniform = True
        self.labels = numbers("i")
        self.unlabelled = 0

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, number: int, value: Value) -> None:
        """Append a value. Raises nothing."""
        if value.kind not in self.kinds:
            self.kinds.append(value.kind)
        self.uniform = self.uniform and self.shape in (None, value.shape)
        self.shape = value.shape
        self.numbers.append(number)
        self._kinds.append(self.kinds.index(value.kind))
        self._begins.append(value.begin)
        self._nbytes.append(value.nbytes)
        if value.label is not None:
            self.labels.append(value.label[0] if value.label else 0)
            self.unlabelled += not value.label

    def value(self, index: int) -> Value:
        """Return a value, without the shape and label of a datum. Raises nothing."""
        kind = self.kinds[self._kinds[index]]
        return Value(kind, self._begins[index], self._nbytes[index])

    @property
    def lengths(self) -> tuple[int, int]:
        """The bytes of the shortest value, and of the longest one."""
        return min(self._nbytes), max(self._nbytes)

    @property
    def nbytes(self) -> int:
        """The bytes of all values together."""
        return sum(self._nbytes)


def merged(first: Members, second: Members) -> Members:
    """Return the values of both, as bytes, in the order of their keys. Raises nothing."""
    both = Members()
    pairs = [
        (number, part.value(index))
        for part in (first, second)
        for index, number in enumerate(part.numbers)
    ]
    for number, value in sorted(pairs):
        both.add(number, value._replace(kind=BYTES))
    return both


def labels_of(members: Members) -> Elements:
    """Return the labels of values as an array of int32. Raises nothing."""
    return np.array(members.labels, np.int32)


def array_in(source: Source, value: Value, key: str) -> tuple[Array, list[str]]:
    """Return the array of a value in row-major order, and notes. Raises what `decoded` raises."""
    array, notes = decoded(source, value, key)
    return in_order(array, "C", source.max_memory), notes


class Decoder:
    """Decoder of one value into elements of a type and shape."""

    def __init__(self, source: Source, element: Element, shape: tuple[int, ...]) -> None:
        self.source = source
        self.element = little(element)
        self.shape = shape
        self.dtype = dtype_of(self.element)

    def elements(self, value: Value, key: str) -> Elements:
        """Return the elements of a value. Raises `Corrupt` if they are others than before."""
        if value.kind == FLOATS:
            values = np.asarray(floats_of(self.source, value))
        elif value.kind in RAW:
            raw = self.source.read_exact(value.begin, value.nbytes, "a value")
            whole = raw.ljust(self.dtype.itemsize, b"\0") if value.kind == TEXT else raw
            values = np.frombuffer(whole, self.dtype)
        else:
            try:
                array, _ = array_in(self.source, value, key)
                values = as_ndarray(array, self.source.max_memory)
            except RaconvertError as error:
                error.where = f"key {key[:80]!r}" + (f", {error.where}" if error.where else "")
                raise
        if values.size != prod(self.shape) or values.dtype != self.dtype:
            raise Corrupt("value is not what it was", path=self.source.path, where=f"key {key!r}")
        return values.reshape(self.shape)


class Stack:
    """Array source of shape (values, *shape of one value); a region decodes its own values only."""

    def __init__(self, decoder: Decoder, members: Members, keys: Sequence[str]) -> None:
        self.shape: tuple[int, ...] = (len(members), *decoder.shape)
        self.dtype: np.dtype[Any] = decoder.dtype
        self._decoder = decoder
        self._members = members
        self._keys = keys
        self._nbytes = max(1, prod(decoder.shape) * decoder.dtype.itemsize)

    def _decoded(self, index: int) -> Elements:
        return self._decoder.elements(self._members.value(index), self._keys[index])

    def stream(self, max_bytes: int) -> Iterator[Elements]:
        """Yield pieces of whole values, or of one, at most `max_bytes` each."""
        most = max(1, max_bytes // max(1, self.dtype.itemsize))
        step = max(1, min(AT_ONCE, max_bytes) // self._nbytes)
        for start in range(0, self.shape[0], step):
            part = self._some(range(start, min(start + step, self.shape[0]))).reshape(-1)
            for begin in range(0, part.size, most):
                yield part[begin : begin + most]

    def _some(self, chosen: Sequence[int]) -> Elements:
        """Return the elements of these values."""
        out = np.empty((len(chosen), *self.shape[1:]), opaque_dtype(self.dtype))
        for row, index in enumerate(chosen):
            out[row] = opaque(self._decoded(index))
        return out.view(self.dtype)

    def __getitem__(self, key: Any) -> Any:
        number, *rest = full_key(key, len(self.shape))
        chosen = range(self.shape[0])[number]
        if isinstance(chosen, int):
            return self._decoded(chosen)[tuple(rest)]
        needed = len(chosen) * self._nbytes
        check_memory(needed, self._decoder.source.max_memory, "this part of the array")
        return self._some(chosen)[(slice(None), *rest)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Elements:
        return np.asarray(self[...], dtype=dtype)


class KeyTexts(Decoded):
    """Array source of the keys of values as texts of one length."""

    def __init__(self, source: Source, keys: Sequence[str], longest: int) -> None:
        dtype = np.dtype(f"S{longest}")
        what = f"'{source.path}': its keys"
        super().__init__((len(keys),), dtype, what=what, max_memory=source.max_memory)
        self._keys = keys

    def stream(self, max_bytes: int) -> Iterator[Elements]:
        """Yield one-dimensional pieces in stored order."""
        step = max(1, min(AT_ONCE, max_bytes) // self.dtype.itemsize)
        for start in range(0, len(self._keys), step):
            part = range(start, min(start + step, len(self._keys)))
            yield np.array([self._keys[index].encode() for index in part], self.dtype)
