"""Array sources: what gives an array its elements, and the base of those that are decoded.

`ArraySource` is all that an `Array` asks of its data. One that can only be decoded front to back
also has `stream`; a subclass of `Decoded` gives that alone, and the base gives regions, the check
of memory, and the whole array while somebody holds a part of it.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Protocol
from weakref import ref

import numpy as np

from raconvert.arrays.blocks import LARGEST_BLOCK, gathered
from raconvert.arrays.dtypes import opaque
from raconvert.arrays.indexing import picked
from raconvert.arrays.memory import check_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array

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
        """The region that integers, slices and one Ellipsis pick."""


class StreamedSource(ArraySource, Protocol):
    """An array source that knows a better way to its elements than slab by slab."""

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces in stored order, each valid until the next is asked for."""


class Decoded:
    """Base of array sources that are decoded front to back.

    `shape` is slowest axis first; `what` names the data in messages, such as ``'a.npz': member
    'x.npy'``; above `max_memory` bytes no region is cut out, since the whole is decoded for it. A
    subclass has `stream`.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], *, what: str, max_memory: int
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.what = what
        self.max_memory = max_memory
        # Kept alive by the regions that were handed out, not by this: a file has many arrays.
        self._owner: ref[Values] | None = None

    @property
    def by_regions(self) -> bool:
        """True if a region is read without the rest; not here."""
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
        # An index of nothing gives a scalar, which has lost the width of a text.
        return picked(self.whole(), ... if isinstance(key, tuple) and not key else key)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        values = self.whole()
        if dtype in (None, values.dtype):
            return np.array(opaque(values), copy=copy).view(values.dtype)
        return np.array(values, dtype=dtype, copy=copy)

    def held(self) -> Values | None:
        """The memory of all elements, as long as anybody looks at a part of them."""
        return self._owner() if self._owner is not None else None

    def whole(self) -> Values:
        """All elements, decoded once as long as anybody looks at them; `TooLarge` if too many."""
        owner = self.held()
        if owner is None:
            check_memory(self.nbytes, self.max_memory, f"{self.what} whole in memory")
            values = self.load()
            # NumPy lets every view refer to the array that owns the memory, not to the view it was
            # cut from.
            owner = values if values.base is None else values.base
            self._owner = ref(owner)
        return owner.view(self.dtype).reshape(self.shape)

    def load(self) -> Values:
        """Decode all elements into contiguous memory of their own."""
        return gathered(self.stream(LARGEST_BLOCK), self.shape, self.dtype, self.what)


LARGE = 64 << 20  # bytes of an array that is not decoded whole for a few of its rows


def some_rows(array: Array) -> Any:
    """What decodes a large array and returns only the rows of a list of indices in order, or None.

    An array source that has not been opened offers it as `some_rows`. Raises nothing.
    """
    if array.extent is not None or array.problem is not None or array.nbytes <= LARGE:
        return None
    return getattr(array.source, "some_rows", None)


def is_decoded_whole(data: Any) -> bool:
    """True for an array source that decodes all of its elements for any region."""
    return not getattr(data, "by_regions", True)
