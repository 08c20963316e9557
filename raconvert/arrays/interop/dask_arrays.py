"""Arrays whose elements are computed when they are read: those of dask, block by block.

They are recognised by the name of their class, so that dask is not imported here.
"""

from __future__ import annotations

from math import prod

from raconvert.arrays.regions import slabs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy as np

    Values = np.ndarray[Any, Any]


ROOM = 4  # one row of blocks may have as many times the bytes of a piece
SHARE = 4  # small rows are computed together up to this part of a piece: dask copies them twice


def is_delayed(values: Any) -> bool:
    """True for a dask array."""
    return any(
        (cls.__module__.partition(".")[0], cls.__name__) == ("dask", "Array")
        for cls in type(values).__mro__
    )


class Delayed:
    """Array source over a dask array of known shape; nothing is cached."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.shape: tuple[int, ...] = tuple(int(n) for n in values.shape)
        self.dtype: np.dtype[Any] = values.dtype

    def __getitem__(self, key: Any) -> Any:
        return self._computed(self.values[key])

    def _computed(self, part: Any) -> Values:
        import numpy as np

        return np.asarray(part.compute(), self.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        import numpy as np

        return np.array(self[...], dtype=dtype, copy=copy)

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces in stored order, computed in rows of whole blocks.

        A row that is too large is computed in slabs, and its blocks more than once.
        """
        import numpy as np

        from raconvert.arrays.dtypes import opaque

        step = max(1, max_bytes // self.dtype.itemsize)
        for key in self._keys(max_bytes):
            region = self[key]
            piece = np.ascontiguousarray(opaque(region)).view(region.dtype).reshape(-1)
            for start in range(0, piece.size, step):
                yield piece[start : start + step]

    def _keys(self, max_bytes: int) -> Iterator[Any]:
        """Yield the keys of contiguous parts in stored order: rows of blocks, or slabs of one."""
        if not self.shape:
            yield ()
            return
        row = prod(self.shape[1:]) * self.dtype.itemsize
        start = stop = 0
        for length in map(int, self.values.chunks[0]):
            if length * row > ROOM * max_bytes:
                if stop > start:
                    yield slice(start, stop)
                inner = (length, *self.shape[1:])
                for first, *rest in slabs(inner, self.dtype.itemsize, max_bytes):
                    yield (_moved(first, stop), *rest)
                start = stop = stop + length
                continue
            if stop > start and (stop + length - start) * row > max_bytes // SHARE:
                yield slice(start, stop)
                start = stop
            stop += length
        if stop > start:
            yield slice(start, stop)


def _moved(part: Any, low: int) -> Any:
    """Shift a part of a key from a stretch that begins at `low` to the whole axis."""
    if isinstance(part, slice):
        return slice(part.start + low, part.stop + low)
    return part + low
