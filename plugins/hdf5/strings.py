"""Strings of variable length as strings of a fixed width: as wide as the longest of them.

Before the library reads any, the references to them are looked at as they lie in the file.
"""

from __future__ import annotations

from math import prod

import numpy as np

from raconvert.arrays.dtypes import element_of
from raconvert.files.copy import extent_slabs

from .datatypes import cannot, in_file
from .direct import chunks_of
from .files import info_of
from .header import (
    ADDRESS_BYTES,
    REFERENCE_BYTES,
    check_all_heaps,
    check_references,
    compact_data,
)
from .values import Dataset, check_width, widest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from h5py import h5d, h5p

    from raconvert.arrays.dtypes import Element

    from .files import File
    from .storage import Storage
    from .virtual import Virtual


def fixed_width(
    values: Dataset,
    dataset: h5d.DatasetID,
    plist: h5p.PropDCID,
    storage: Storage,
    virtual: Virtual | None,
) -> Element:
    """The element in which variable strings are read, alone or in structures."""
    kind, file = values.kind, values.file
    count = prod(values.shape)
    if kind.buffer.names and (virtual is not None or storage.pieces):
        raise cannot("its structures hold strings of variable length that lie in other files")
    longest = _longest(values, dataset, plist, storage, count)
    if longest is None:
        check_all_heaps(file)
        longest = int(file.source.size) if virtual is None else virtual.longest
    elif not kind.buffer.names:
        check_width(count, longest, file.source.max_memory)
    if storage.layout in ("contiguous", "chunked") and not storage.stored:
        values.space = (1,) * len(values.space)  # all of them are the fill value
    return element_of(widest(values, longest, count))


def _longest(
    values: Dataset,
    dataset: h5d.DatasetID,
    plist: h5p.PropDCID,
    storage: Storage,
    count: int,
) -> int | None:
    """The largest length in the references of a dataset; None if they cannot be seen."""
    file = values.file
    if file.address_bytes != ADDRESS_BYTES or values.kind.dims:
        return None
    size, places = in_file(dataset.get_type())
    compact = compact_data(file, info_of(dataset).address)
    if compact is not None:
        return _largest(compact, size, places, file)
    step = max(1, (1 << 20) // size)
    if storage.offset is not None and not storage.filters:
        extent = file.source.extent(storage.offset, count * size)
        slabs = extent_slabs(extent, step * size)
        return max(_largest(slab, size, places, file) for slab in slabs)
    references = values.kind._replace(
        buffer=np.dtype(f"V{size}"), memory=None, finish=None, endings=()
    )
    raw = Dataset(file, b"", references, values.space, storage.chunk, element_of(references.buffer))
    raw.chunks = chunks_of(raw, dataset, plist, storage)
    if raw.chunks is None:
        return None
    pieces = raw.stream(step * size)
    return max(_largest(piece.view(np.uint8), size, places, file) for piece in pieces)


def _largest(raw: Any, size: int, places: tuple[int, ...], file: File) -> int:
    """The largest length in the references at these places of each element."""
    if size == REFERENCE_BYTES:
        return check_references(raw, file)
    parts = np.frombuffer(raw, np.uint8, len(raw) // size * size).reshape(-1, size)
    return max(
        check_references(parts[:, at : at + REFERENCE_BYTES].tobytes(), file) for at in places
    )
