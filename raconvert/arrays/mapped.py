"""Elements that lie in a file as they are in memory: mapped, or regions of them read."""

from __future__ import annotations

import os
from math import prod

import numpy as np

from raconvert.arrays.dtypes import dtype_of, little, needs_swap
from raconvert.arrays.memory import check_memory, check_rank
from raconvert.arrays.strided import region
from raconvert.errors import changed
from raconvert.files.copy import check_extent, extent_slabs
from raconvert.files.places import close_file, is_remote
from raconvert.files.source import DEFAULT_MAX_MEMORY, open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.dtypes import Element
    from raconvert.files.source import Extent

_SLAB = 16 << 20  # bytes that are read at once


def map_extent(
    name: str, element: Element, dims: tuple[int, ...], extent: Extent | None
) -> np.ndarray[Any, Any]:
    """Map an extent read-only, slowest axis first: the same bytes, no copy.

    Bytes in an order that no NumPy type has, and those at a URL, are read into memory instead
    (`TooLarge` above the usual limit).
    """
    check_rank(name, len(dims), extent.path if extent else None)
    shape, dtype = dims[::-1], dtype_of(element)
    if prod(dims) == 0 or element.nbytes == 0:
        return np.zeros(shape, dtype)
    if extent is None:
        raise TypeError(f"array {name!r} has neither data nor an extent")
    if extent.swap != needs_swap(element):
        return _read(name, extent).view(dtype_of(little(element))).reshape(shape)
    # A memmap of its own kind would keep `np.memmap` semantics in every result; an ndarray
    # over the map is what `np.asarray` gives.
    if is_remote(extent.path):
        return _read(name, extent).view(dtype).reshape(shape)
    with open(open_regular(extent.path, extent.identity), "rb") as file:
        if os.fstat(file.fileno()).st_size < extent.offset + extent.nbytes:
            raise changed(extent.path, shorter=True)
        return np.asarray(np.memmap(file, dtype, mode="r", offset=extent.offset, shape=shape))


def read_region(
    element: Element, dims: tuple[int, ...], extent: Extent, key: Any
) -> np.ndarray[Any, Any]:
    """The elements that a basic key picks, slowest axis first, read into memory of their own."""
    check_extent(extent)
    shape, dtype = dims[::-1], dtype_of(element)
    strides = tuple(dtype.itemsize * prod(shape[n + 1 :]) for n in range(len(shape)))
    file = extent.open()
    try:
        found = region(file, extent.path, extent.offset, dtype, shape, strides, key)
    finally:
        close_file(file)
    return np.asarray(found, dtype)  # a scalar has forgotten its byte order


def _read(name: str, extent: Extent) -> np.ndarray[Any, Any]:
    """The bytes of an extent, little-endian, in memory of their own."""
    check_memory(extent.nbytes, DEFAULT_MAX_MEMORY, f"array '{name}' whole in memory")
    raw = np.empty(extent.nbytes, np.uint8)
    done = 0
    for slab in extent_slabs(extent, _SLAB):
        raw[done : done + len(slab)] = slab
        done += len(slab)
    return raw
