"""The subsystem of v7.3: ``#subsystem#/MCOS``, references to the cells of ``FileWrapper__``."""

from __future__ import annotations

from math import prod

from raconvert.arrays.memory import check_memory
from raconvert.errors import Corrupt

from ..hdf5.objects import Object, linked, referred, root
from .values73 import REFERENCES, Stored, type_of, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .tree import Tree

    Walker = Any  # that of `level73`

GROUP, DATASET = "#subsystem#", "MCOS"
WHERE = f"{GROUP}/{DATASET}"
TEXT_BYTES = 128  # memory of a short text, about


class Cells73:
    """The cells of ``FileWrapper__``, by references."""

    order = "<"

    def __init__(self, walker: Walker, references: Any) -> None:
        self._walker = walker
        self._references = references
        self.count = len(references)

    def head(self) -> bytes:
        """Read the bytes of the first cell."""
        node = self.node(0)
        limit = self._walker.tree.limits.document_bytes
        if node.cls != "uint8" or prod(node.dims) > limit:
            raise Corrupt("the list of objects of classes is not uint8, or too long",
                          path=self._walker.file.path, expected=f"at most {limit}",
                          got=node.dims)  # fmt: skip
        return node.bytes()

    def node(self, index: int) -> Node73:
        """The value in one of the cells, counted from 0."""
        with self._walker.guarded(WHERE):
            return Node73(self._walker, referred(self._walker.file, self._references[index]))


class Node73:
    """A value inside the subsystem: an object of the file."""

    def __init__(self, walker: Walker, item: Object) -> None:
        self._walker = walker
        self._item = item
        with walker.guarded(WHERE):
            self.cls, self.dims = walker.facts(item)

    def bytes(self) -> bytes:
        """Read the elements of a matrix of bytes."""
        return bytes(whole(self._stored()).astype("u1", copy=False))

    def _stored(self) -> Stored:
        item = self._item
        with self._walker.guarded(WHERE):
            kind = type_of(item.oid.get_type(), self._walker.tree.limits)
            if kind is None:
                raise ValueError("a type that MATLAB does not write")
            return Stored(WHERE, self._walker.file, item.oid, kind, item.storage, item.shape or ())

    def _items(self) -> Iterator[Object]:
        """Yield the objects to which the references of a cell lead."""
        stored = self._stored()
        if stored.kind is not REFERENCES:
            raise Corrupt("a cell does not hold references", path=self._walker.file.path,
                          where=WHERE)  # fmt: skip
        for reference in whole(stored):
            with self._walker.guarded(WHERE):
                item = referred(self._walker.file, reference)
            yield item

    def members(self) -> list[Node73]:
        """The elements of a cell, in MATLAB's order."""
        count = prod(self.dims)
        self._walker.tree.count(count)
        return [Node73(self._walker, item) for item in self._items()] if count else []

    def fields(self) -> dict[str, Node73]:
        """The fields of a struct of 1 x 1, in order."""
        if not self._item.is_group:
            return {}
        walker = self._walker
        with walker.guarded(WHERE):
            names, items = walker.fields(self._item)
        for item in items:
            if not isinstance(item, Object):
                raise item or Corrupt("a field is not in the file", path=walker.file.path)
        return {name: Node73(walker, item) for name, item in zip(names, items, strict=True)}

    def texts(self) -> list[str] | None:
        """The rows of text that a cell holds; None if it holds anything else."""
        count = prod(self.dims)
        source = self._walker.tree.source
        check_memory(TEXT_BYTES * count, source.max_memory, f"'{source.path}': {count} texts")
        texts: list[str] = []
        for item in self._items() if count else ():
            node = Node73(self._walker, item)
            text = node.text() if node.cls == "char" else None
            if text is None:
                return None
            texts.append(text)
        return texts

    def text(self) -> str | None:
        """Read one row of text; None for several rows."""
        if 0 in self.dims:
            return ""
        if self.dims[0] != 1:
            return None
        units = whole(self._stored())
        if units.dtype.kind not in "iu":
            raise Corrupt("a text is not stored as whole numbers", path=self._walker.file.path)
        return units.astype("<u2").tobytes().decode("utf-16-le", "surrogatepass")

    def add(self, tree: Tree, path: str) -> None:
        """Add the value to a tree as any other one."""
        walker = self._walker.into(tree)
        with walker.guarded(path):
            walker.object(self._item, path, path.count("/"))


def cells_of(walker: Walker) -> Cells73 | None:
    """The cells of the subsystem; None if the file has no objects."""
    item: Any = root(walker.file)
    for name in (GROUP, DATASET):
        with walker.guarded(WHERE):
            link = walker.members(item).get(name) if item.is_group else None
            item = None if link is None else linked(walker.file, link)
        if item is None:
            return None
    if not item.is_dataset:
        raise Corrupt("the data of classes is not a dataset", path=walker.file.path, where=WHERE)
    with walker.guarded(WHERE):
        if type_of(item.oid.get_type(), walker.tree.limits) is not REFERENCES:
            raise ValueError("the data of classes does not hold references")
        shape = item.shape or ()
        limit = walker.tree.source.max_memory // 64
        if prod(shape) > limit or not prod(shape):
            raise Corrupt("the data of classes has an impossible number of values",
                          path=walker.file.path, expected=f"1 to {limit}", got=shape)  # fmt: skip
        stored = Stored(WHERE, walker.file, item.oid, REFERENCES, item.storage, shape)
        return Cells73(walker, whole(stored))
