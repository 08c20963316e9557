"""Regions of an array for a screen: of any array, in bounded bytes and bounded reads.

Elements that are stored plainly are read from their offsets: row by row, or one by one in long
rows. Of an array in chunks, those around the middle of the region are decoded. An array that can
only be decoded front to back is decoded once, if it is not too large.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import product
from math import ceil, prod
from threading import Lock

import numpy as np

from raconvert.arrays.dtypes import dtype_of, needs_swap, opaque
from raconvert.arrays.regions import SPAN_BYTES, fill, slice_of
from raconvert.arrays.sources import is_decoded_whole
from raconvert.declared import Record
from raconvert.errors import TooLarge
from raconvert.files.copy import check_extent, read_at
from raconvert.files.paths import close_file, is_remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.files.source import Extent

    Values = np.ndarray[Any, Any]
    Part = int | range  # the index of an axis, or the indices that are shown of it

BYTES = 64 << 20  # bytes read or decoded for one answer
REMOTE_BYTES = 4 << 20  # the same for an array at a URL
READS = 1 << 14  # reads of a file for one answer
DECODED = 512 << 20  # bytes of all arrays that are decoded whole and cached
CHUNKS = 1024  # chunks decoded for one answer
_READ_COST = 8 << 10  # bytes that are read in the time of one more read


class Region(Record):
    """Elements of an array, and their indices along each axis, in the order of its shape."""

    values: Any
    parts: tuple[Part, ...]


class Wholes:
    """The cache of arrays that are decoded as a whole: the last used ones, in `DECODED` bytes.

    Threads may share it.
    """

    def __init__(self) -> None:
        # By identity, with the array itself, so that no other array can have it.
        self._cached: OrderedDict[int, tuple[Array, Values]] = OrderedDict()
        self._guard = Lock()

    def of(self, array: Array) -> Values:
        """All elements, in logical order. Raises `TooLarge` and what decoding raises."""
        with self._guard:
            if id(array) in self._cached:
                self._cached.move_to_end(id(array))
                return self._cached[id(array)][1]
        if array.nbytes > DECODED:
            raise TooLarge(
                f"array '{array.name}' can only be decoded as a whole",
                expected=f"at most {DECODED} bytes to look at any part of it",
                got=array.nbytes,
                remedy="convert it to a format with regions, such as .ra or .npy, and look at that",
            )
        values = np.asarray(array[...])
        with self._guard:
            self._cached[id(array)] = array, values
            while sum(decoded.nbytes for _, decoded in self._cached.values()) > DECODED:
                self._cached.popitem(last=False)
        return values


def region_of(array: Array, parts: Sequence[Part], wholes: Wholes) -> Region:
    """Read the elements at these parts of the axes of `shape`, or at fewer of each.

    `wholes` caches the arrays that are decoded whole. Raises what reading raises, and `TooLarge` if
    even a few elements cost too much.
    """
    if array.problem is not None:
        raise array.problem
    extent = array.extent
    is_local = extent is not None and not is_remote(extent.path)
    if extent is not None and is_local and extent.swap == needs_swap(array.element):
        return _picked(array, extent, parts)
    if extent is None and is_decoded_whole(array.data):
        return Region(wholes.of(array)[_key(parts)], tuple(parts))
    return _cropped(array, parts)


def _key(parts: Sequence[Part]) -> tuple[int | slice, ...]:
    """The key that picks parts of all axes."""
    return tuple(part if isinstance(part, int) else slice_of(part) for part in parts)


# Elements that are stored plainly ----------------------------------------------------------------


def _picked(array: Array, extent: Extent, parts: Sequence[Part]) -> Region:
    """Read parts of a plain array; every other index is left out until they are cheap enough."""
    parts = list(parts)
    check_extent(extent)
    item = array.element.nbytes
    lengths = array.shape
    strides = [item] * array.ndim
    order = range(array.ndim) if array.index_order == "F" else range(array.ndim)[::-1]
    step = item
    for axis in order:
        strides[axis], step = step, step * lengths[axis]
    plan = _cheapest(parts, strides, item)
    while plan.nbytes > BYTES or plan.reads > READS:
        ranges = {axis: part for axis, part in enumerate(parts) if isinstance(part, range)}
        longest = max(ranges, key=lambda axis: len(ranges[axis]), default=-1)
        if longest < 0 or len(ranges[longest]) < 2:
            break
        parts[longest] = ranges[longest][::2]
        plan = _cheapest(parts, strides, item)
    counts = [1 if isinstance(part, int) else len(part) for part in parts]
    values = np.empty(counts, dtype_of(array.element))
    if values.size:
        _read_parts(values, extent, parts, strides, plan.alone)
    dropped = tuple(0 if isinstance(part, int) else slice(None) for part in parts)
    return Region(np.asarray(opaque(values)[(*dropped, ...)]).view(values.dtype), tuple(parts))


def _read_parts(
    values: Values,
    extent: Extent,
    parts: Sequence[Part],
    strides: Sequence[int],
    alone: Sequence[int],
) -> None:
    """Fill `values` with the elements at some parts, each index of the axes `alone` by itself."""
    begin = extent.offset + sum(
        stride * (part if isinstance(part, int) else part.start)
        for part, stride in zip(parts, strides, strict=True)
    )
    # Bytes between the elements at two neighbouring indices of a part
    apart = tuple(
        0 if isinstance(part, int) else stride * part.step
        for part, stride in zip(parts, strides, strict=True)
    )
    offsets = [[at * apart[axis] for at in range(values.shape[axis])] for axis in alone]
    item = values.itemsize
    # One element in each read: `fill` would cost more than the reads.
    singly = item * prod(values.shape[axis] for axis in alone) == values.nbytes
    raw = memoryview(bytearray(values.nbytes if singly else 0))
    file = extent.open()
    try:
        for number, steps in enumerate(product(*offsets)):
            at = begin + sum(steps)
            if singly and read_at(file, raw[number * item : (number + 1) * item], at) == item:
                continue
            inner: list[Any] = [slice(None)] * len(parts)
            for axis, step in zip(alone, steps, strict=True):
                inner[axis] = slice(step // apart[axis], step // apart[axis] + 1)
            part = opaque(values)[(*inner, ...)]
            fill(part, file, at, apart, extent.path)  # raises if the file ends before
            if singly:
                raw[number * item : (number + 1) * item] = part.tobytes()
    finally:
        close_file(file)
    if singly:
        opaque(values)[...] = np.frombuffer(raw, opaque(values).dtype).reshape(values.shape)


class _Plan(Record):
    """A way of reading a region: the axes whose indices are read one by one, bytes and reads."""

    alone: tuple[int, ...]
    nbytes: int
    reads: int


def _cheapest(parts: Sequence[Part], strides: Sequence[int], item: int) -> _Plan:
    """The cheapest plan among all at once, row by row, and element by element."""
    apart = {
        axis: (len(part), strides[axis] * part.step)
        for axis, part in enumerate(parts)
        if isinstance(part, range) and len(part) > 1
    }
    axes = sorted(apart, key=lambda axis: -apart[axis][1])
    plans = []
    for count in range(len(axes) + 1):
        times = prod(apart[axis][0] for axis in axes[:count])
        nbytes, reads = _cost([apart[axis] for axis in axes[count:]], item)
        plans.append(_Plan(tuple(sorted(axes[:count])), times * nbytes, times * reads))
    return min(plans, key=lambda plan: plan.nbytes + plan.reads * _READ_COST)


def _cost(apart: list[tuple[int, int]], item: int) -> tuple[int, int]:
    """The bytes and reads that `fill` takes for axes of (length, stride), gaps included."""
    ends = [(length - 1) * stride for length, stride in apart]
    span = sum(ends) + item
    if span <= SPAN_BYTES or not apart:
        return span, 1
    axis = ends.index(max(ends))
    length, stride = apart[axis]
    step = max(1, min(length - 1, SPAN_BYTES // stride))
    inner = [*apart]
    inner[axis] = (step, stride)
    nbytes, reads = _cost([(length, stride) for length, stride in inner if length > 1], item)
    pieces = ceil(length / step)
    return pieces * nbytes, pieces * reads


# Elements that are decoded in pieces, or read from a URL -----------------------------------------


def _cropped(array: Array, parts: Sequence[Part]) -> Region:
    """Read the middle of parts in whole chunks, as much as the budget allows."""
    remote = array.extent is not None and is_remote(array.extent.path)
    budget = REMOTE_BYTES if remote else BYTES
    chunk = _chunk_of(array, remote=remote)
    item = array.element.nbytes
    wanted = {axis: part for axis, part in enumerate(parts) if isinstance(part, range) and part}

    def chunks() -> int:
        """The number of chunks that the wanted parts touch, at most."""
        return prod(ceil(len(_span(part)) / chunk[axis]) + 1 * (chunk[axis] > 1)
                    for axis, part in wanted.items())  # fmt: skip

    fixed = prod(chunk) * item
    decoded = prod(chunk) > 1
    while wanted and (chunks() * fixed > budget or (decoded and chunks() > CHUNKS)):
        axis = max(wanted, key=lambda axis: len(_span(wanted[axis])) / chunk[axis])
        span = _span(wanted[axis])
        if len(span) <= chunk[axis] or len(wanted[axis]) < 2:
            if fixed <= DECODED // 4:
                break
            raise TooLarge(
                f"one chunk of array '{array.name}' has {fixed} bytes",
                expected=f"at most {DECODED // 4} to look at a part of it",
            )
        wanted[axis] = _middle(wanted[axis], chunk[axis])
    key = tuple(
        part if isinstance(part, int) else slice_of(_span(wanted.get(axis, part)))
        for axis, part in enumerate(parts)
    )
    used = tuple(wanted.get(axis, part) for axis, part in enumerate(parts))
    steps = tuple(slice(None, None, part.step) for part in used if isinstance(part, range))
    return Region(np.asarray(array[key])[steps], used)


def _span(part: range) -> range:
    """All indices from the first to the last of a part."""
    return range(part.start, part[-1] + 1) if part else part


def _middle(part: range, chunk: int) -> range:
    """About the middle half of a part, from the border of a chunk on, if there is one near."""
    quarter = max(1, len(part) // 4)
    half = part[quarter : quarter + max(1, len(part) // 2)]
    start = half.start // chunk * chunk
    return range(start, start + len(half) * part.step, part.step) if start >= part.start else half


def _chunk_of(array: Array, *, remote: bool) -> list[int]:
    """The lengths of the pieces that are decoded or fetched whole, in the order of `shape`."""
    chunks = array.storage.get("chunks")
    lengths = array.dims[::-1]
    chunk = [1] * array.ndim
    if array.extent is None and isinstance(chunks, list | tuple) and len(chunks) == array.ndim:
        if all(isinstance(n, int) and n > 0 for n in chunks):
            chunk = [min(n, max(1, length)) for n, length in zip(chunks, lengths, strict=True)]
    elif remote and chunk:
        chunk[-1] = max(1, lengths[-1])
    return chunk[::-1] if array.index_order == "F" else chunk
