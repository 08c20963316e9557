"""Strings of variable length as strings of a fixed width: as wide as the longest of them.

Before the library reads any, the references to them are checked as the file stores them.
"""

from __future__ import annotations

from math import prod

import numpy as np
from h5py import h5p

from raconvert.arrays.dtypes import element_of
from raconvert.files.copy import extent_slabs

from .datatypes import cannot, in_file
from .direct import chunks_of
from .files import info_of
from .ondisk.header import (
    ADDRESS_BYTES,
    REFERENCE_BYTES,
    check_all_heaps,
    check_references,
    compact_data,
    fills,
)
from .storage import space_of
from .values import Dataset, check_width, widest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from h5py import h5d

    from raconvert.arrays.dtypes import Element

    from .datatypes import Kind
    from .files import File
    from .storage import Storage


def fixed_width(
    values: Dataset,
    dataset: h5d.DatasetID,
    plist: h5p.PropDCID,
    storage: Storage,
    mapped: int | None = None,
) -> Element:
    """The element in which variable strings are read, alone or in structures.

    `mapped`: for a virtual dataset, the bytes of the longest string in its checked sources.
    """
    kind, file = values.kind, values.file
    count = prod(values.shape)
    if kind.buffer.names and (mapped is not None or storage.pieces):
        raise cannot("its structures hold strings of variable length that lie in other files")
    longest = mapped
    if longest is None and (longest := longest_of(file, kind, dataset, plist, storage)) is None:
        check_all_heaps(file)
        longest = int(file.source.size)
    elif mapped is None and not kind.buffer.names:
        check_width(count, longest, file.source.max_memory)
    if _is_unwritten(storage):
        values.space = (1,) * len(values.space)  # all elements are the fill value
    return element_of(widest(values, longest, count))


def _is_unwritten(storage: Storage) -> bool:
    """True if no element of a dataset was written: all are the fill value."""
    return storage.layout in ("contiguous", "chunked") and not storage.stored


def longest_of(
    file: File, kind: Kind, dataset: h5d.DatasetID, plist: h5p.PropDCID, storage: Storage
) -> int | None:
    """The largest length in the references of a dataset; None if only the library can find them.

    All references are checked, and the heaps that they lead to.
    """
    if file.address_bytes != ADDRESS_BYTES:
        return None
    address = info_of(dataset).address
    size, offsets = in_file(dataset.get_type(), file.source.limits)
    filled = max((_largest(raw, size, offsets, file) for raw in fills(file, address)), default=0)
    compact = compact_data(file, address)
    if compact is not None:
        return max(filled, _largest(compact, size, offsets, file))
    if _is_unwritten(storage):
        return filled
    space = space_of(dataset) or ()
    step = max(1, (1 << 20) // size)
    if storage.offset is not None and not storage.filters:
        extent = file.source.extent(storage.offset, prod(space) * size)
        slabs = extent_slabs(extent, step * size)
        return max(filled, *(_largest(slab, size, offsets, file) for slab in slabs))
    references = kind._replace(
        buffer=np.dtype(f"V{size}"), memory=None, finish=None, endings=(), dims=()
    )
    raw = Dataset(file, b"", references, space, storage.chunk, element_of(references.buffer))
    # Without a fill value: a chunk that was never written has null references.
    unfilled = h5p.create(h5p.DATASET_CREATE)
    raw.chunks = chunks_of(raw, dataset, unfilled, storage)
    if raw.chunks is None:
        return None
    pieces = raw.stream(step * size)
    return max(filled, *(_largest(piece.view(np.uint8), size, offsets, file) for piece in pieces))


def _largest(raw: Any, size: int, offsets: tuple[int, ...], file: File) -> int:
    """The largest length in the references at these offsets of each element."""
    if size == REFERENCE_BYTES:
        return check_references(raw, file)
    parts = np.frombuffer(raw, np.uint8, len(raw) // size * size).reshape(-1, size)
    return max(
        check_references(parts[:, offset : offset + REFERENCE_BYTES].tobytes(), file)
        for offset in offsets
    )
