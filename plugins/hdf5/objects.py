"""Objects of an open file, for formats that are HDF5 with rules of their own (MAT v7.3).

Such a format opens a `File`, follows the hard links of its groups, and asks each `Object` for
attributes that are one number or one text, which are read without the library; `numbers_of` is the
source of the elements of a dataset.
"""

from __future__ import annotations

from collections import namedtuple
from math import prod

from h5py import h5a, h5d, h5g, h5l, h5o, h5r

from raconvert.errors import Corrupt

from .attributes import value_of
from .datatypes import element_size
from .direct import chunks_of
from .files import File, info_of
from .ondisk.btrees import check_links, check_trees
from .ondisk.chunk_indexes import check_index
from .ondisk.header import attributes_in, count_of, sequences, single_value, total_length
from .storage import (
    Storage,
    check_filters,
    check_size,
    declared_bytes,
    space_of,
    storage_of,
    stored_bytes,
    unwritten_bytes,
)
from .values import Dataset
from .walk import links_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .datatypes import Kind

# A link of a group: its kind, and the address where a hard one leads.
Link = namedtuple("Link", "group name kind address")


class Object:
    """A group, a dataset or a named type: its identifier, its address, its attributes."""

    __slots__ = ("_attributes", "_dense", "address", "file", "oid")

    def __init__(self, file: File, oid: Any, address: int) -> None:
        self.file = file
        self.oid = oid
        self.address = address
        self._attributes, self._dense = attributes_in(file, address)

    @property
    def is_group(self) -> bool:
        """True if the object is a group."""
        return isinstance(self.oid, h5g.GroupID)

    @property
    def is_dataset(self) -> bool:
        """True if the object is a dataset."""
        return isinstance(self.oid, h5d.DatasetID)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of a dataset that is not virtual; None for a null space."""
        return space_of(self.oid)

    @property
    def storage(self) -> Storage:
        """The storage of a dataset; opens no other file."""
        return storage_of(self.oid, self.oid.get_create_plist(), self.file.userblock)

    def check_links(self) -> None:
        """Raise `Corrupt` if links of a group are hidden."""
        check_links(self.file, self.address)

    def links(self) -> dict[bytes, Link]:
        """The links of a group by name, in creation order if the file has it, else sorted."""
        check_trees(self.file, self.address)
        return {
            link[0]: Link(self.oid, *link) for link in links_in(self.file, self.oid, self.address)
        }

    def has(self, name: bytes) -> bool:
        """True if the object has an attribute of this name."""
        return name in self._attributes or (self._dense and bool(h5a.exists(self.oid, name)))

    def number(self, name: bytes) -> int:
        """An attribute that is one whole number; 0 if it does not exist, TypeError for others."""
        value = self._attribute(name)
        if isinstance(value, bytes):
            raise TypeError(f"attribute {name.decode()} is a text, not a number")
        return 0 if value is None else int(value)

    def word(self, name: bytes) -> str:
        """An attribute that is a text; empty if it does not exist, TypeError for others."""
        value = self._attribute(name)
        if value is None:
            return ""
        if not isinstance(value, bytes):
            raise TypeError(f"attribute {name.decode()} is a number, not a text")
        return value.decode("latin-1")

    def _attribute(self, name: bytes) -> Any:
        if name in self._attributes:
            try:
                return single_value(self._attributes[name])
            except ValueError as error:
                raise ValueError(f"attribute {name.decode()}: {error}") from error
        value = value_of(self.oid, self.file, name) if self.has(name) else None
        return value.encode() if isinstance(value, str) else value

    def words(self, name: bytes) -> list[str]:
        """The texts of an attribute that holds sequences of letters, of variable length.

        Each length is checked before it is read. Empty if the header does not have it.
        """
        value = self._attributes.get(name)
        if value is None:
            return []
        count = count_of(value.space)
        if total_length(value.data, count) > self.file.source.size:
            what = f"texts of attribute {name.decode()} are longer than the file"
            raise Corrupt(what, path=self.file.path)
        return [text.decode("latin-1") for text in sequences(value.data, count, self.file, 1)]


def root(file: File) -> Object:
    """The group that holds all others."""
    oid = h5o.open(file.fid, b"/")
    return Object(file, oid, info_of(oid).address)


def linked(file: File, link: Link) -> Object | None:
    """Open the object of a hard link; None for other links, which are not followed."""
    if link.kind != h5l.TYPE_HARD:
        return None
    return Object(file, h5o.open(link.group, link.name), link.address)


def referred(file: File, reference: Any) -> Object:
    """Open the object of a reference; ValueError if the reference is null."""
    if not reference:
        raise ValueError("a reference leads nowhere")
    oid = h5r.dereference(reference, file.fid)
    return Object(file, oid, info_of(oid).address)


def numbers_of(
    file: File, dataset: h5d.DatasetID, kind: Kind, storage: Storage, path: str
) -> Dataset:
    """The elements of a dataset that is neither virtual nor in other files, slowest axis first.

    `kind` is that of its type and has an element; `path` names it in messages. Raises `Corrupt`,
    `TooLarge` or `MissingDependency` if they cannot be read.
    """
    shape = space_of(dataset) or ()
    item = stored_bytes(dataset.get_type(), file.source.limits)
    nbytes = declared_bytes(shape, item)
    check_index(dataset, file)
    check_filters(storage, file.path)
    check_size(storage, nbytes, max(item, element_size(kind)), file)
    chunk = storage.chunk if prod(shape) else None
    values = Dataset(file, b"", kind, shape, chunk, kind.element, dataset, path)
    values.chunks = chunks_of(values, dataset, dataset.get_create_plist(), storage)
    values.stored = storage.stored
    values.unwritten = unwritten_bytes(storage, nbytes, file)
    return values
