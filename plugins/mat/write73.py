"""Writing v7.3 through h5py, as MATLAB lays it out (see `level73`).

Attributes are written as fixed strings that end nowhere: padding NULLTERM with the exact length,
and that type in memory too. h5py's own strings (NULLPAD) are not a class to matio, and conversion
between the two cuts off the last letter. The file is that of HDF5 1.10 or older, so that every
MATLAB can read it; dates of objects are left out, so that equal arrays give equal bytes.

Elements that are not compressed are written to the file itself, once HDF5 has laid it out.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5p, h5r, h5s, h5t

from raconvert.files.copy import copy_extent, write_all
from raconvert.files.paths import name_of_open

from ..hdf5.creating import closing, create, library, reopen
from ..hdf5.elements import write_chunks
from ..hdf5.structure import Options, chunk_of
from .contents import Leaf
from .header import VERSION_73, header_bytes
from .tables import EMPTY_COMPLEX, HDF5_OFFSET, TYPE_CODES
from .writer import payload, prepare, stored_elements, whole_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from typing import Any

    from raconvert.plugin import Source, Target

    from .contents import Box, Contents, Node

    Values = np.ndarray[Any, Any]

TEXT = b"MATLAB 7.3 MAT-file, written by raconvert HDF5 schema 1.00 ."
MIN_CHUNKED = 1 << 14  # bytes; smaller arrays are not worth a chunk
DECODE = {"logical": 1, "char": 2}  # MATLAB_int_decode


def names_in(source: Source) -> list[str]:
    """The names of all variables of a file, and of the hidden groups beside them."""
    with h5py.File(source.path, "r") as file:
        return [*file]


def write(
    contents: Contents, target: Target, level: int | None, original: Source | None = None
) -> None:
    """Write all variables; `level` is that of gzip, None for no compression.

    With `original`, its contents are copied, and variables of the same name are replaced.
    """
    file = target.open()
    if original is None:
        file.truncate(0)
    else:
        copy_extent(b"", original.extent(0, original.size), file)
    for _, node in contents.variables:
        prepare(node, target, narrow=False)
    with library(target.path):
        name = name_of_open(file, target.temp)
        fid = create(name, HDF5_OFFSET) if original is None else reopen(name)
        writer = _Writer(target, level, fid)
        with closing(writer.file, target.path):
            for variable, node in contents.variables:
                path = variable.encode("ascii")
                if original is not None and writer.root.links.exists(path):
                    writer.root.unlink(path)
                writer.value(writer.root, path, node)
    if original is None:
        file.seek(0)
        write_all(file, [header_bytes(TEXT, VERSION_73)])
    for leaf, offset, part in writer.later:
        _fill(file, target, leaf, offset, part)


def _fill(file: FileIO, target: Target, leaf: Leaf, offset: int, part: int | None) -> None:
    """Write the elements of a leaf into the room at an offset; `part` of a sparse matrix."""
    for start, data in _pieces(leaf, target, part):
        file.seek(offset + start)
        write_all(file, [data])


def _pieces(leaf: Leaf, target: Target, part: int | None) -> Iterator[tuple[int, Values]]:
    """Yield pieces of the elements as bytes, each with its offset among them."""
    if leaf.form == "numbers":
        start = 0
        for block in whole_numbers(leaf, target):
            data = np.ascontiguousarray(block).view(np.uint8)
            yield start, data
            start += data.nbytes
    elif leaf.form == "sparse":
        yield from _sparse_pieces(leaf, target, part)
    else:
        for piece in payload(leaf, target):
            yield piece.offset, piece.data


def _sparse_pieces(leaf: Leaf, target: Target, part: int | None) -> Iterator[tuple[int, Values]]:
    """Yield the rows (part 0), the column starts (1) or the values (2) of a sparse matrix."""
    if part == 1:
        yield 0, leaf.jc.astype("<u8").view(np.uint8)
        return
    start = 0
    for indices, values in stored_elements(leaf, target):
        numbers = (indices % leaf.dims[0]).astype("<u8") if part == 0 else values
        data = np.ascontiguousarray(numbers).view(np.uint8)
        yield start, data
        start += data.nbytes


class _Writer:
    """One open HDF5 file; `later` are leaf, offset and part of elements to write at the end."""

    def __init__(self, target: Target, level: int | None, file: Any) -> None:
        self.target = target
        self.level = level
        self.later: list[tuple[Leaf, int, int | None]] = []
        self.file = file
        self.root: Any = h5g.open(self.file, b"/")
        self._references: Any = None
        self._referred = 0

    # --- values -----------------------------------------------------------------------------

    def value(self, group: Any, name: bytes, node: Node) -> Any:
        """Write one value; return its dataset or group."""
        if _is_empty(node):
            item = self._empty(group, name, node)
        elif isinstance(node, Leaf):
            item = self._leaf(group, name, node)
        elif node.cls == "cell":
            item = self._cell(group, name, node)
        else:
            item = self._struct(group, name, node)
        if node.is_global:
            _number(item, b"MATLAB_global", h5t.STD_I32LE, 1)
        return item

    def _empty(self, group: Any, name: bytes, node: Node) -> Any:
        """Write a value without elements, or structs without fields: its dims, not reversed."""
        space = h5s.create_simple((len(node.dims),))
        item = h5d.create(group, name, h5t.STD_U64LE, space, _dataset_properties())
        item.write(h5s.ALL, h5s.ALL, np.array(node.dims, "<u8"))
        self._class(item, node)
        _number(item, b"MATLAB_empty", h5t.STD_U8LE, 1)
        if isinstance(node, Leaf) and node.complex:
            _number(item, EMPTY_COMPLEX, h5t.STD_U8LE, 1)
        if not isinstance(node, Leaf) and node.cls == "struct":
            _fields(item, node.fields)
        return item

    def _class(self, item: Any, node: Node) -> None:
        """Write the attributes with the class of a value."""
        text = node.cls.encode("ascii")
        kind = h5t.C_S1.copy()
        kind.set_size(len(text))
        kind.set_strpad(h5t.STR_NULLTERM)
        space = h5s.create(h5s.SCALAR)
        attribute = h5a.create(item, b"MATLAB_class", kind, space)
        attribute.write(np.array(text, f"S{len(text)}"), mtype=kind)
        if node.cls in DECODE:
            _number(item, b"MATLAB_int_decode", h5t.STD_I32LE, DECODE[node.cls])

    def _leaf(self, group: Any, name: bytes, leaf: Leaf) -> Any:
        if leaf.form == "sparse":
            return self._sparse(group, name, leaf)
        kind = _number_type(leaf)
        shape = leaf.dims[::-1]
        is_large = prod(shape) * kind.get_size() >= MIN_CHUNKED
        if self.level is not None and leaf.form == "numbers" and is_large:
            item = self._chunked(group, name, leaf, kind)
        else:
            item = self._room(group, name, kind, shape, leaf, 0)
        self._class(item, leaf)
        return item

    def _room(
        self, group: Any, name: bytes, kind: Any, shape: tuple[int, ...], leaf: Leaf, part: int
    ) -> Any:
        """Create a dataset with room for elements that are written later."""
        properties = _dataset_properties()
        properties.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        properties.set_fill_time(h5d.FILL_TIME_NEVER)
        dataset = h5d.create(group, name, kind, h5s.create_simple(shape), properties)
        self.later.append((leaf, dataset.get_offset(), part if leaf.form == "sparse" else None))
        return dataset

    def _chunked(self, group: Any, name: bytes, leaf: Leaf, kind: Any) -> Any:
        """Write compressed chunks, each a run of elements in stored order."""
        shape = leaf.dims[::-1]
        options = Options("gzip", self.level, "auto", shuffle=True, strings="auto")
        chunk = chunk_of(shape, kind.get_size(), options, self.target.max_memory)
        properties = _dataset_properties()
        properties.set_chunk(chunk)
        properties.set_shuffle()
        properties.set_deflate(self.level)
        dataset = h5d.create(group, name, kind, h5s.create_simple(shape), properties)
        pieces = (
            np.ascontiguousarray(block).view(np.uint8).reshape(-1)
            for block in whole_numbers(leaf, self.target)
        )
        write_chunks(pieces, leaf.array.name, dataset, kind, shape, chunk, options, self.target)  # type: ignore[arg-type]
        return dataset

    def _sparse(self, group: Any, name: bytes, leaf: Leaf) -> Any:
        created = h5g.create(group, name, gcpl=_group_properties())
        self._class(created, leaf)
        _number(created, b"MATLAB_sparse", h5t.STD_U64LE, leaf.dims[0])
        count = int(leaf.jc[-1])
        if count:
            self._room(created, b"data", _number_type(leaf), (count,), leaf, 2)
            self._room(created, b"ir", h5t.STD_U64LE, (count,), leaf, 0)
        elif leaf.complex:
            _number(created, EMPTY_COMPLEX, h5t.STD_U8LE, 1)
        self._room(created, b"jc", h5t.STD_U64LE, (leaf.jc.size,), leaf, 1)
        return created

    def _cell(self, group: Any, name: bytes, box: Box) -> Any:
        dataset = self._reference_dataset(group, name, box.dims, box.members)
        self._class(dataset, box)
        return dataset

    def _reference_dataset(
        self, group: Any, name: bytes, dims: tuple[int, ...], members: list[Node]
    ) -> Any:
        """Write members into the hidden group, and a dataset of references to them."""
        references = np.empty(len(members), h5py.ref_dtype)
        for index, member in enumerate(members):
            hidden = self._hidden_name()
            self.value(self._references, hidden, member)
            references[index] = h5r.create(self._references, hidden, h5r.OBJECT)
        space = h5s.create_simple(dims[::-1])
        dataset = h5d.create(group, name, h5t.STD_REF_OBJ, space, _dataset_properties())
        dataset.write(h5s.ALL, h5s.ALL, references.reshape(dims[::-1]))
        return dataset

    def _hidden_name(self) -> bytes:
        """The next name in ``#refs#``: a, b, ..., z, ba, bb, ..."""
        if self._references is None:
            if self.root.links.exists(_REFERENCES):
                self._references = h5g.open(self.root, _REFERENCES)
            else:
                self._references = h5g.create(self.root, _REFERENCES, gcpl=_group_properties())
        while True:
            letters = _letters(self._referred)
            self._referred += 1
            if not self._references.links.exists(letters):
                return letters

    def _struct(self, group: Any, name: bytes, box: Box) -> Any:
        created = h5g.create(group, name, gcpl=_group_properties())
        self._class(created, box)
        _fields(created, box.fields)
        for index, field in enumerate(box.fields):
            if box.dims == (1, 1):
                self.value(created, field.encode("ascii"), box.members[index])
            else:
                column = box.members[index :: len(box.fields)]
                self._reference_dataset(created, field.encode("ascii"), box.dims, column)
        return created


_REFERENCES = b"#refs#"


def _letters(number: int) -> bytes:
    """A number as letters: a, b, ..., z, ba, bb, ..."""
    letters = b""
    while True:
        number, rest = divmod(number, 26)
        letters = bytes([97 + rest]) + letters
        if not number:
            return letters


# --- pieces of HDF5 -------------------------------------------------------------------------------


def _dataset_properties() -> Any:
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_obj_track_times(False)
    return properties


def _group_properties() -> Any:
    return h5p.create(h5p.GROUP_CREATE)


def _number(item: Any, name: bytes, kind: Any, value: int) -> None:
    """Write an attribute with one number."""
    attribute = h5a.create(item, name, kind, h5s.create(h5s.SCALAR))
    attribute.write(np.array(value, kind.dtype))


def _fields(item: Any, names: list[str]) -> None:
    """Write the attribute MATLAB_fields: each name is a list of letters."""
    if not names:
        return
    letters = np.empty(len(names), object)
    for index, name in enumerate(names):
        letters[index] = np.array(list(name.encode("ascii")), np.uint8).view("S1")
    owner = h5py.Group(item) if isinstance(item, h5g.GroupID) else h5py.Dataset(item)
    attributes = h5py.AttributeManager(owner)
    attributes.create("MATLAB_fields", letters, dtype=h5py.vlen_dtype(np.dtype("S1")))


def _is_empty(node: Node) -> bool:
    """True if a value is written as its dims alone: it has no elements, or no fields."""
    if isinstance(node, Leaf):
        return not prod(node.dims) and node.form != "sparse"
    return not prod(node.dims) or (node.cls == "struct" and not node.fields)


def _number_type(leaf: Leaf) -> Any:
    """The HDF5 type of the elements."""
    if leaf.form == "char":
        return h5t.STD_U16LE
    number = h5t.py_create(np.dtype(f"<{TYPE_CODES[leaf.cls]}"))
    if not leaf.complex:
        return number
    width = number.get_size()
    tid = h5t.create(h5t.COMPOUND, 2 * width)
    tid.insert(b"real", 0, number)
    tid.insert(b"imag", width, number)
    return tid
