"""`Array.astype`: elements converted as NumPy does, when they are read."""

from __future__ import annotations

from math import prod

import numpy as np

from raconvert.arrays.dtypes import element_of
from raconvert.arrays.regions import full_key
from raconvert.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Values = np.ndarray[Any, Any]


class Reconversion:
    """The origin of a converted array: converts it again in a process that gets its pickle."""

    def __init__(self, array: Any, dtype: np.dtype[Any], casting: str) -> None:
        self.array: Any = array
        self.dtype: np.dtype[Any] = dtype
        self.casting: str = casting

    def __call__(self) -> Any:
        """Return the array, converted."""
        return self.array.astype(self.dtype, casting=self.casting)


class AsType:
    """Array source: an array with its elements converted, seen slowest axis first."""

    def __init__(self, array: Any, dtype: np.dtype[Any], casting: Any) -> None:
        self.shape: tuple[int, ...] = array.dims[::-1]
        self.dtype = dtype
        self._array, self._casting = array, casting

    def __getitem__(self, key: Any) -> Values:
        key = full_key(key, len(self.shape))
        if self._array.index_order == "F":
            return self._converted(self._array[key[::-1]].T)
        return self._converted(self._array[key])

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield converted pieces in stored order, as the array itself is decoded."""
        data = self._array.data
        if hasattr(data, "stream"):
            for piece in data.stream(max_bytes):
                yield self._converted(piece)
            return
        for key in _slabs(self.shape, max(1, max_bytes // max(1, self.dtype.itemsize))):
            yield self[key].reshape(-1)

    def _converted(self, values: Values) -> Values:
        return np.asarray(values).astype(self.dtype, casting=self._casting, copy=False)


def _slabs(shape: tuple[int, ...], most: int) -> Iterator[tuple[slice, ...]]:
    """Yield the keys of contiguous parts of at most `most` elements, in order."""
    if prod(shape) <= most:
        yield ()
        return
    rest = prod(shape[1:])
    if rest <= most:
        step = most // rest
        yield from ((slice(start, start + step),) for start in range(0, shape[0], step))
        return
    for index in range(shape[0]):
        for key in _slabs(shape[1:], most):
            yield (slice(index, index + 1), *key)


def as_type(array: Any, dtype: Any, casting: Any) -> dict[str, Any]:
    """Return the fields that conversion changes: the element, and the data, converted when read."""
    dtype = np.dtype(dtype)
    if dtype.names is not None or not dtype.itemsize:
        raise UsageError(
            f"array '{array.name}' cannot be converted to {dtype}",
            expected="numbers, bools, or texts of a given width, such as 'U8'",
        )
    if not np.can_cast(array.dtype, dtype, casting):
        raise TypeError(
            f"array '{array.name}' of {array.dtype} cannot become {dtype} by '{casting}' rules"
        )
    return {
        "element": element_of(dtype),
        "extent": None,
        "data": lambda: AsType(array, dtype, casting),
    }
