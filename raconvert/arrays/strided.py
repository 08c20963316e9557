"""Regions of a file by offset and strides, read and not mapped.

A map of a file that another program cuts short ends the process; a read ends in an error.
"""

from __future__ import annotations

import numpy as np

from raconvert.arrays.dtypes import opaque
from raconvert.arrays.indexing import full_key
from raconvert.errors import changed
from raconvert.files.copy import read_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.places import Handle

SPAN_BYTES = 1 << 20  # read at once, gaps included: it stays in the cache of a processor


def region(
    file: Handle,
    path: str,
    offset: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    key: Any,
) -> Any:
    """The elements that a key picks of an array which lies in an open file by strides."""
    begins, lengths, steps, rest = _box(key, shape)
    values = np.empty(lengths, dtype)
    offset += sum(n * stride for n, stride in zip(begins, strides, strict=True))
    apart = tuple(step * stride for step, stride in zip(steps, strides, strict=True))
    fill(values, file, offset, apart, path)
    if dtype.names is None:
        return values[rest]
    return opaque(values)[(*rest, ...) if isinstance(rest, tuple) else rest].view(dtype)


def _box(key: Any, shape: tuple[int, ...]) -> tuple[list[int], list[int], list[int], Any]:
    """The begins, lengths and steps of what a key needs, and the key relative to that."""
    full = full_key(key, len(shape))
    if not all(isinstance(part, slice | int | np.integer) for part in full):
        return [0] * len(shape), list(shape), [1] * len(shape), key
    parts = [_stepped(part, length) for part, length in zip(full, shape, strict=True)]
    begins, lengths, steps = ([part[n] for part in parts] for n in range(3))
    return begins, lengths, steps, tuple(rest for *_, rest in parts)


def _stepped(part: Any, length: int) -> tuple[int, int, int, Any]:
    """Begin, count and step of the indices of an axis that a key picks, and the key among these."""
    if not isinstance(part, slice):
        return range(length)[part], 1, 1, 0  # IndexError as numpy
    chosen = range(*part.indices(length))
    if not chosen:
        return 0, 0, 1, slice(None)
    low = min(chosen[0], chosen[-1])
    return low, len(chosen), abs(chosen.step), slice(None, None, -1 if chosen.step < 0 else 1)


def range_of(part: Any, length: int) -> tuple[int, int, Any]:
    """Return the range of an axis that a key needs, and the key relative to it."""
    if isinstance(part, slice):
        begin, end, step = part.indices(length)
        chosen = range(begin, end, step)
        if not chosen:
            return 0, 0, slice(None)
        low, high = min(chosen[0], chosen[-1]), max(chosen[0], chosen[-1])
        return low, high + 1, slice(None, None, step)
    index = range(length)[part]  # IndexError as numpy
    return index, index + 1, 0


def fill(
    out: np.ndarray[Any, Any], file: Handle, offset: int, strides: tuple[int, ...], path: str
) -> None:
    """Fill `out` with the elements at `offset` plus index times `strides` of an open file.

    `Corrupt` where the file ends before the last of them.
    """
    if not out.size:
        return
    ends = [(length - 1) * stride for length, stride in zip(out.shape, strides, strict=True)]
    span = sum(ends) + out.itemsize
    if span <= SPAN_BYTES or out.size == 1:
        data = _read(file, offset, span, path)
        whole = opaque(out)
        whole[...] = np.ndarray(out.shape, whole.dtype, data, 0, strides)
        return
    axis = ends.index(max(ends))
    stride = strides[axis]
    step = max(1, min(out.shape[axis] - 1, SPAN_BYTES // stride))
    for start in range(0, out.shape[axis], step):
        part = out[(slice(None),) * axis + (slice(start, start + step),)]
        fill(part, file, offset + start * stride, strides, path)


def _read(file: Handle, offset: int, nbytes: int, path: str) -> bytearray:
    data = bytearray(nbytes)
    view = memoryview(data)
    done = 0
    while done < nbytes:
        got = read_at(file, view[done:], offset + done)
        if not got:
            raise changed(path, shorter=True)
        done += got
    return data
