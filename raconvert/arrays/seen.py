"""Arrays whose bytes stay, seen in another shape or as other elements."""

from __future__ import annotations

from raconvert.arrays.dtypes import Element, dtype_of
from raconvert.arrays.indexing import full_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from raconvert.arrays.array import Array


class Reshaped:
    """Array source: the same elements in stored order, seen in another shape."""

    def __init__(self, array: Array, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.dtype: np.dtype[Any] = array.dtype
        self._array = array

    def stream(self, max_bytes: int) -> Any:
        """Yield the blocks of the array behind it."""
        from raconvert.arrays.blocks import blocks

        return blocks(self._array, max_bytes)

    def __getitem__(self, key: Any) -> Any:
        from raconvert.arrays.blocks import as_ndarray

        return as_ndarray(self._array).reshape(self.shape)[key]


class _Paired:
    """Array source: pairs of floats on the last axis, seen as complex numbers."""

    def __init__(self, array: Array, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.dtype = dtype_of(Element("complex", 2 * array.element.nbytes, "<"))
        self._array = array

    def stream(self, max_bytes: int) -> Any:
        """Yield the blocks of the array behind it; half a pair waits for the next block."""
        import numpy as np

        from raconvert.arrays.blocks import blocks

        half = np.empty(0, self._array.dtype)
        for block in blocks(self._array, max_bytes):
            flat = np.concatenate([half, block.reshape(-1)]) if half.size else block.reshape(-1)
            whole = flat.size - flat.size % 2
            half = flat[whole:].copy()
            yield flat[:whole].view(self.dtype)

    def __getitem__(self, key: Any) -> Any:
        from raconvert.arrays.blocks import region_of

        pairs = region_of(self._array, (*full_key(key, len(self.shape)), slice(None)))
        return pairs.view(self.dtype)[..., 0]


def are_pairs(array: Array, element: Element) -> bool:
    """True if the fastest axis holds the real and imaginary parts of numbers of this type."""
    kinds = array.element.kind, element.kind
    widths = 2 * array.element.nbytes, element.nbytes
    return kinds == ("float", "complex") and widths[0] == widths[1] and array.dims[:1] == (2,)


def as_complex(array: Array, element: Element) -> Array:
    """Pairs on the fastest axis as complex numbers of this type: the same bytes."""
    element = element._replace(order=array.element.order)
    dims = array.dims[1:]
    data = None if array.extent else _Paired(array, dims[::-1])
    fastest = 0 if array.index_order == "F" else array.ndim - 1
    meta = array.meta.without_axis(fastest, array.ndim)
    return array.replace(element=element, dims=dims, data=data, meta=meta)


def undescribed(array: Array) -> Array:
    """An array without the description of what is inside user elements."""
    if array.element.kind != "user" or is_void(array.element):
        return array
    return seen_as(array, array.element._replace(descr=None))


def is_void(element: Element) -> bool:
    """True if nothing is known of what is inside an element but its bytes."""
    return element.descr in (None, f"|V{element.nbytes}")


def seen_as(array: Array, element: Element) -> Array:
    """The same bytes as other elements of the same width."""
    from raconvert.arrays.cast import Converted

    dtype = dtype_of(element)
    data = None
    if array.extent is None:
        data = Converted(array, dtype, lambda block, _: block.view(dtype))
    return array.replace(element=element, data=data)
