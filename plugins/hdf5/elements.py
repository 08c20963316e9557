"""The elements of arrays on their way into a file: copied, encoded in chunks, or as strings.

Contiguous elements are copied past the library, after it has closed the file. Chunks are encoded in
threads outside it, and handed over as they will stand in the file.
"""

from __future__ import annotations

import os
from functools import partial
from itertools import product
from math import prod

import numpy as np
from h5py import h5d, h5s

from raconvert.arrays.blocks import Feed, block_bytes, blocks
from raconvert.arrays.cast import checked_bools, has_bools
from raconvert.arrays.memory import check_memory
from raconvert.arrays.reinterpret import encoded_block
from raconvert.errors import Corrupt, Unsupported
from raconvert.files.copy import copy_extent_to, reserve, write_all
from raconvert.files.limits import DEFAULT
from raconvert.files.paths import is_remote
from raconvert.files.threads import Threads, processors

from .chunks import deflated, shuffled
from .creating import library
from .datatypes import is_text, kind_of
from .paddings import with_padding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from typing import Any

    from h5py import h5t

    from raconvert.plugin import Array, Extent, Target

    from .paddings import Endings
    from .structure import Options

    Values = np.ndarray[Any, Any]

TASKS = 256  # chunks given to the threads at once


def write_elements(raw: list[tuple[int, Array, Endings]], file: FileIO, target: Target) -> None:
    """Copy the elements of contiguous datasets to their offsets.

    `raw` has (offset, array, endings of its strings) for each.
    """
    size = os.fstat(file.fileno()).st_size
    extents = [array.extent for _, array, _ in raw if array.extent is not None]
    if not any(map(_is_sparse, extents)):
        reserve(file, size)
    for offset, array, endings in raw:
        if array.extent is not None and not (endings or _needs_encoding(array)):
            copy_extent_to(array.extent, file, offset, target.progress)
            continue
        file.seek(offset)
        for block in raw_blocks(array, target, endings):
            write_all(file, [block])


def raw_blocks(array: Array, target: Target, endings: Endings) -> Iterator[Values]:
    """Yield the bytes of an array as they stand in the file."""
    array = checked_bools(array)
    done = 0
    for block in target.counted(blocks(array, block_bytes(target.max_memory))):
        values = _encoded(block, array, done, target.path)
        done += block.size
        if endings:
            values = _padded(values, endings, array.name, target.path)
        yield values.reshape(-1).view(np.uint8)


def _padded(values: Values, endings: Endings, name: str, path: str) -> Values:
    """Give strings the padding of the file; raises `Unsupported` if one would end elsewhere."""
    try:
        return with_padding(values, endings)
    except ValueError as error:
        raise Unsupported(
            f"array '{name}' has strings that its type in the file cannot hold: {error}",
            path=path,
            remedy="write them null-padded with `--out-opt strings=fixed`",
        ) from error


def _needs_encoding(array: Array) -> bool:
    return has_bools(array.dtype) or is_text(array.element)


def _encoded(block: Values, array: Array, done: int, path: str) -> Values:
    """A block with the bytes of the file: text in UTF-8. `done`: number of elements before it."""
    return encoded_block(block, array, done, path) if is_text(array.element) else block


def _is_sparse(extent: Extent) -> bool:
    if is_remote(extent.path):
        return False
    status = os.stat(extent.path)
    blocks = getattr(status, "st_blocks", None)  # Windows has no st_blocks
    return blocks is not None and blocks * 512 < status.st_size


# --- strings of variable length -------------------------------------------------------------------


def write_strings(
    array: Array, dataset: h5d.DatasetID, tid: h5t.TypeID, shape: tuple[int, ...], target: Target
) -> None:
    """Write strings of fixed width as strings of variable length, without their padding."""
    memory = kind_of(tid, DEFAULT).memory
    done = 0
    dims = array.dims[::-1]
    limit = max(1, block_bytes(target.max_memory) // (array.element.nbytes + 64))
    for block in target.counted(blocks(array, limit * array.element.nbytes)):
        values = _encoded(block, array, done, target.path).reshape(-1).astype(object)
        if any(b"\0" in value for value in values):
            raise Unsupported(
                f"array '{array.name}' has strings with a NUL inside, which strings of "
                "variable length cannot hold",
                path=target.path,
                remedy="write them in a fixed width with `--out-opt strings=fixed`",
            )
        with library(target.path):
            for start, count in _boxes(done, len(values), dims):
                space = dataset.get_space()
                if shape:
                    space.select_hyperslab(start, count)
                size = prod(count)
                piece, values = values[:size], values[size:]
                box = h5s.create_simple((size,)) if shape else h5s.create(h5s.SCALAR)
                dataset.write(box, space, np.ascontiguousarray(piece), memory)
                done += size


def _boxes(
    done: int, count: int, shape: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield start and count of boxes that together are `count` elements from element `done`."""
    if not shape:
        yield (), ()
        return
    while count:
        axis = 0
        inner = prod(shape[1:])
        while done % inner or count < inner:
            axis += 1
            inner = prod(shape[axis + 1 :])
        index = np.unravel_index(done, shape)
        high = min(count // inner, shape[axis] - int(index[axis]))
        start = tuple(int(i) for i in index[: axis + 1]) + (0,) * (len(shape) - axis - 1)
        yield start, (1,) * axis + (high,) + shape[axis + 1 :]
        done += high * inner
        count -= high * inner


# --- chunks ---------------------------------------------------------------------------------------


def write_chunks(
    pieces: Iterator[Values],
    name: str,
    dataset: h5d.DatasetID,
    tid: h5t.TypeID,
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    options: Options,
    target: Target,
) -> None:
    """Write a dataset chunk by chunk, in slabs of whole chunks that follow each other in memory.

    `pieces` are the bytes of its elements in stored order; `name` is that of the array, for
    messages. Raises `Corrupt` if there are fewer or more bytes than its shape needs.
    """
    item = tid.get_size()
    budget = block_bytes(target.max_memory)
    axis = _slab_axis(shape, chunk, item, budget)
    inner = prod(shape[axis + 1 :]) * item
    row = chunk[axis] * inner
    check_memory(2 * row, target.max_memory, f"array '{name}': a row of its chunks")
    shuffle = options.shuffle and options.filter is not None and item > 1
    encode = partial(
        _encoded_chunk,
        chunk=chunk,
        shuffle=shuffle,
        level=options.level if options.filter == "gzip" else None,
    )
    feed = Feed(pieces, np.dtype(np.uint8), f"array '{name}'")
    buffer = np.empty(0, np.uint8)
    with Threads(min(4, processors())) as threads:
        for start, count in _slab_boxes(shape, axis, chunk[axis] * max(1, budget // row)):
            nbytes = prod(count) * item
            if nbytes > buffer.size:  # for the first slab, which is the largest
                buffer = np.empty(nbytes, np.uint8)
            slab = feed.into(buffer[:nbytes]).view(f"V{item}").reshape(count)
            if options.filter == "lzf":
                _write_slab(dataset, tid, slab, start, target)
                continue
            corners = _corners(count, chunk)
            with library(target.path):
                for corner, data in threads.results(partial(encode, slab), corners, TASKS):
                    first = tuple(low + n for low, n in zip(start, corner, strict=True))
                    dataset.write_direct_chunk(first, data)
    if feed.more():
        raise Corrupt(f"array '{name}' is longer than its dims say")


def _slab_axis(shape: tuple[int, ...], chunk: tuple[int, ...], item: int, budget: int) -> int:
    """The axis along which slabs are cut: the slowest with rows of chunks within `budget` bytes.

    Along a slower axis the chunks have length 1, so that a slab is still one piece of memory.
    """
    axis = 0
    while axis < len(shape) - 1 and chunk[axis] == 1 and prod(shape[axis + 1 :]) * item > budget:
        axis += 1
    return axis


def _slab_boxes(
    shape: tuple[int, ...], axis: int, high: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield start and lengths of slabs that are at most `high` along an axis, in stored order."""
    rest = shape[axis + 1 :]
    for outer in np.ndindex(*shape[:axis]):
        for low in range(0, shape[axis], high):
            count = min(high, shape[axis] - low)
            yield (*outer, low, *(0 for _ in rest)), ((1,) * axis + (count, *rest))


def _write_slab(
    dataset: h5d.DatasetID, tid: h5t.TypeID, slab: Values, start: tuple[int, ...], target: Target
) -> None:
    """Let the library encode a slab."""
    with library(target.path):
        space = dataset.get_space()
        space.select_hyperslab(start, slab.shape)
        dataset.write(h5s.create_simple(slab.shape), space, slab.copy(), tid)


def _corners(shape: tuple[int, ...], chunk: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the first index of each chunk, in order."""
    return product(*(range(0, n, c) for n, c in zip(shape, chunk, strict=True)))


def _encoded_chunk(
    slab: Values, at: tuple[int, ...], *, chunk: tuple[int, ...], shuffle: bool, level: int | None
) -> Any:
    """The encoded bytes of the chunk of a slab from `at`; zeros beyond the border of the slab."""
    part = slab[tuple(slice(low, low + n) for low, n in zip(at, chunk, strict=True))]
    if part.shape != chunk:
        whole = np.zeros(chunk, slab.dtype)
        whole[tuple(slice(n) for n in part.shape)] = part
        part = whole
    raw = np.ascontiguousarray(part).view(np.uint8).reshape(-1)
    if shuffle:
        raw = shuffled(raw, slab.itemsize)
    return raw.tobytes() if level is None else deflated(raw, level)
