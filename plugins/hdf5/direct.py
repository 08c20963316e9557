"""Choice of the datasets whose chunks are decoded here, past the library, and their chunk index."""

from __future__ import annotations

from math import prod

import numpy as np
from h5py import h5, h5d

from .chunks import LARGEST_UNFILTERED, Chunks, are_places_sure, is_decoded
from .datatypes import element_size
from .files import info_of
from .ondisk.header import chunk_layout
from .storage import stored_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from h5py import h5p

    from .datatypes import Kind
    from .storage import Storage
    from .values import Dataset

# Older libraries leave the user block out of the offsets of chunks.
COUNTS_USER_BLOCKS = (2, 0, 0)


def chunks_of(
    values: Dataset, dataset: h5d.DatasetID, plist: h5p.PropDCID, storage: Storage
) -> Chunks | None:
    """The decoder of the chunks of a dataset; None if the library must read it.

    The index is checked in either case: if its B-tree has no checksum, the library takes a chunk
    at an impossible position for one that was never written.
    """
    # Files of Julia may have chunks of another rank.
    if storage.chunk is None or len(storage.chunk) != len(values.space):
        return None
    kind, file = values.kind, values.file
    numbers = tuple(number for number, _ in storage.filters)
    unit = element_size(kind)
    fill = _fill_bytes(plist, kind, unit)
    size, empty = file.source.size, bytes(unit)
    chunks = Chunks(file.source, size, values.space, storage.chunk, unit, numbers, fill or empty)
    values.checks = [lambda opened: chunks.check_inflation(opened, file.userblock)]
    limits = dataset.get_space().get_simple_extent_dims(maxdims=1)
    stored, partial_unfiltered = chunk_layout(file, info_of(dataset).address) or (False, True)
    sure = are_places_sure(values.space, limits, storage.chunk, stored=stored)
    if not sure or not chunks.index(dataset):
        return None
    misplaced = file.userblock and h5.get_libversion() < COUNTS_USER_BLOCKS
    if not misplaced:
        values.indexed = chunks
    if stored:
        values.checks.insert(0, chunks.check_found)
    if fill is None or (numbers and partial_unfiltered):
        return None
    if not is_decoded(numbers) or kind.memory is not None or misplaced:
        return None
    too_large = not numbers and prod(storage.chunk) * unit > LARGEST_UNFILTERED
    shuffled = dict(storage.filters).get(2, (unit,))
    item = stored_bytes(dataset.get_type(), file.source.limits)
    if too_large or shuffled[:1] != (unit,) or unit != item:
        return None
    return chunks


def _fill_bytes(plist: h5p.PropDCID, kind: Kind, unit: int) -> bytes | None:
    """The bytes of an element that was never written; None if only the library can tell them."""
    if plist.fill_value_defined() != h5d.FILL_VALUE_USER_DEFINED:
        return bytes(unit)
    kinds = ("int", "uint", "float")
    if kind.buffer.kind not in "iuf" or kind.dims or kind.element.kind not in kinds:
        return None
    value = np.zeros((), kind.buffer)
    plist.get_fill_value(value)
    return value.tobytes()
