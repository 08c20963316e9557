"""Arrays whose bytes are those of big-endian numbers, for formats that have only these."""

from __future__ import annotations

from raconvert.arrays.blocks import blocks
from raconvert.arrays.dtypes import dtype_of, needs_swap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy as np

    from raconvert.arrays.array import Array
    from raconvert.files.source import Extent

__all__ = ["big_endian"]


def big_endian(array: Array) -> Array:
    """An array of which the "little-endian" bytes are the big-endian ones of the given array.

    For writing only: its values mean nothing. What lies big-endian in a file is copied as it is.

    Raises nothing.
    """
    width = needs_swap(array.element._replace(order=">"))
    if width == 1:
        return array
    element = array.element._replace(order="<")
    if array.extent is not None:
        return array.replace(element=element, extent=_turned(array.extent, width), data=None)
    return array.replace(element=element, data=lambda: _Turned(array))


def _turned(extent: Extent, width: int) -> Extent:
    turned = extent.part(0, extent.nbytes)
    turned.swap = width if extent.swap == 1 else 1
    turned.checksum = extent.checksum
    return turned


class _Turned:
    """Array source: the elements of another, each with its bytes reversed."""

    def __init__(self, array: Array) -> None:
        self.shape = array.dims[::-1]
        self.dtype = dtype_of(array.element._replace(order="<"))
        self._array = array

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield pieces in stored order, each valid until the next is asked for."""
        for piece in blocks(self._array, max_bytes):
            yield piece.byteswap()
