"""One open dataset as a source of numbers, for formats that are HDF5 with rules of their own."""

from __future__ import annotations

from math import prod

from .direct import chunks_of
from .indexes import check_index
from .storage import (
    check_filters,
    check_size,
    declared_bytes,
    space_of,
    stored_bytes,
    unwritten_bytes,
)
from .types import element_size
from .values import Dataset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from h5py import h5d

    from .files import File
    from .storage import Storage
    from .types import Kind


def numbers_of(
    file: File, dataset: h5d.DatasetID, kind: Kind, storage: Storage, place: str
) -> Dataset:
    """The elements of a dataset that is neither virtual nor in other files, slowest axis first.

    `kind` is that of its type and has an element; `place` names it in messages. Raises `Corrupt`,
    `TooLarge` or `MissingDependency` for what cannot be read.
    """
    shape = space_of(dataset) or ()
    item = stored_bytes(dataset.get_type())
    nbytes = declared_bytes(shape, item)
    check_index(dataset, file)
    check_filters(storage, file.path)
    check_size(storage, nbytes, max(item, element_size(kind)), file)
    chunk = storage.chunk if prod(shape) else None
    values = Dataset(file, b"", kind, shape, chunk, kind.element, dataset, place)
    values.chunks = chunks_of(values, dataset, dataset.get_create_plist(), storage)
    values.stored = storage.stored
    values.unwritten = unwritten_bytes(storage, nbytes, file)
    return values
