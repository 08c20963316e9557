"""Reading v7.3: MATLAB's classes on top of HDF5, through h5py.

No document of MathWorks defines v7.3; the facts are those of real files, and of matio's mat73.c::

    class      attribute MATLAB_class, a fixed ASCII string
    dims       reversed: MATLAB's 2 x 3 x 4 is an HDF5 dataset of (4, 3, 2)
    complex    compound of `real` and `imag`
    logical    uint8 with MATLAB_int_decode 1
    char       uint16 (UTF-16 code units) with MATLAB_int_decode 2
    empty      MATLAB_empty 1; the dataset holds the dims, not reversed; structs without fields
               are written so, too, whatever their dims
    cell       references into the group ``#refs#``
    struct     group; MATLAB_fields gives the order; an array of structs: its datasets are
               references, one per element, and have no class of their own
    sparse     group with MATLAB_sparse, the number of rows; datasets data, ir, jc
    object     MATLAB_object_decode 2 and the name of its class: a struct
    opaque     MATLAB_object_decode, other numbers

The file is HDF5 behind a user block of 512 bytes, which begins with the header of v5.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from math import prod

import h5py
import numpy as np

from raconvert.arrays.dtypes import dtype_of, needs_swap
from raconvert.errors import Corrupt, RaconvertError, ReadFailed, Unsupported
from raconvert.files.extent import Extent
from raconvert.files.regular import check_unchanged

from ..hdf5 import superblock
from ..hdf5.errors import guarded
from ..hdf5.files import info_of
from .fields import NAME, field_names
from .tables import (
    ELEMENTS,
    EMPTY_COMPLEX,
    HDF5_OFFSET,
    TYPE_CODES,
    WIDE_COMPLEX,
    Facts,
    element_of_class,
)
from .values73 import UNREADABLE, DatasetNumbers, SparseDatasets, matlab_dims, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .tree import Tree

    Values = np.ndarray[Any, Any]

HIDDEN = frozenset(("#refs#", "#subsystem#"))
CACHE_BYTES = 64 << 20  # of decoded chunks; a row of chunks larger than this is decoded repeatedly
MAX_TEXT_BYTES = 256
MAX_AGAIN = 1000  # uses of structs and cells after the first one of each
OLD_OBJECT = 2  # of MATLAB_object_decode: a struct with the name of a class
OBJECTS = {h5py.h5g.GroupID: h5py.Group, h5py.h5d.DatasetID: h5py.Dataset}


def read(tree: Tree) -> tuple[dict[str, Any], Any]:
    """Walk the file; return what it says of itself, and what closes it."""
    source = tree.source
    header = source.read_exact(0, 128, "the MAT header")
    file = _opened(tree)
    tree.notes += superblock.notes_of(source)
    try:
        with guarded(source.path, what=UNREADABLE):
            _Walker(tree, file).variables()
    except BaseException:
        file.close()
        raise
    text = header[:116].rstrip(b"\0 ").decode("latin-1")
    return {"version": "7.3", "header": text}, file.close


def _opened(tree: Tree) -> h5py.File:
    source = tree.source
    cache = max(1 << 20, min(CACHE_BYTES, source.max_memory // 8))
    source.read_exact(HDF5_OFFSET, 8, "the HDF5 signature")
    with guarded(source.path, what=UNREADABLE):
        try:
            file = h5py.File(source.path, "r", rdcc_nbytes=cache, locking="best-effort")
        except BlockingIOError as error:
            raise ReadFailed("is open for writing in another program", path=source.path,
                             remedy="close it there first") from error  # fmt: skip
        check_unchanged(file.id.get_vfd_handle(), source.path, source.identity)
        return file


def _attribute(item: Any, name: str) -> Any:
    """Return an attribute that is one number or one fixed string; None if it is not there.

    Others are not read: the library trusts the lengths inside those of variable length.
    """
    key = name.encode("ascii")
    if not h5py.h5a.exists(item.id, key):
        return None
    found = h5py.h5a.open(item.id, key)
    kind = found.get_type()
    is_text = isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str()
    known = is_text or isinstance(kind, h5py.h5t.TypeIntegerID)
    if (
        not known
        or kind.get_size() > MAX_TEXT_BYTES
        or found.get_space().get_simple_extent_npoints() != 1
    ):
        raise ValueError(f"attribute {name} is no single number or text")
    value = np.zeros(found.shape, f"S{kind.get_size()}" if is_text else kind.dtype)
    if is_text:
        found.read(value, mtype=kind)
    else:
        found.read(value)
    return value.reshape(-1)[0]


def _number(item: Any, name: str) -> int:
    """Return an attribute that is one whole number; 0 if it is not there."""
    value = _attribute(item, name)
    if isinstance(value, bytes):
        raise TypeError(f"attribute {name} is no number")
    return 0 if value is None else int(value)


def _word(item: Any, name: str) -> str:
    """Return an attribute that is a text; empty if it is not there."""
    value = _attribute(item, name)
    if value is None:
        return ""
    if not isinstance(value, bytes):
        raise TypeError(f"attribute {name} is no text")
    return value.decode("latin-1")


class _Walker:
    """Reads the structure of one file into a `Tree`."""

    def __init__(self, tree: Tree, file: h5py.File) -> None:
        self.tree = tree
        self.file = file
        # By address: how to add a dataset again that others refer to, too (as to the empty one).
        self._known: dict[int, Callable[[str], None]] = {}
        self._walked: set[int] = set()  # structs and cells
        self._inside: set[int] = set()  # those around the value that is read

    def variables(self) -> None:
        """Add every variable; the groups that hold what others refer to are none."""
        for name in self._members(self.file):
            if name in HIDDEN:
                continue
            mark = self.tree.mark()
            path = self.tree.variable(name)
            try:
                self._value(self._linked(self.file, name), path, 0)
            except RaconvertError as error:
                self.tree.give_up(path, error, mark)

    def _linked(self, group: Any, name: str) -> Any:
        """Return what `_hard` returns, or the error why it cannot be had."""
        try:
            with self._guarded(name):
                return self._hard(group, name)
        except RaconvertError as error:
            return error

    def _guarded(self, path: str) -> Any:
        return guarded(self.tree.source.path, f"variable '{path}'", UNREADABLE)

    def _members(self, group: Any) -> list[str]:
        """Return the names of the links, in the order of writing where that was kept."""
        info = group.id.get_create_plist().get_link_creation_order()
        if not info & h5py.h5p.CRT_ORDER_TRACKED:
            return list(group)
        names: list[bytes] = []
        group.id.links.iterate(names.append, idx_type=h5py.h5.INDEX_CRT_ORDER)
        return [name.decode("utf-8", "surrogateescape") for name in names]

    def _hard(self, group: Any, name: str) -> Any:
        """Return what a hard link leads to; None for links to elsewhere, which are not followed."""
        key = name.encode("utf-8", "surrogateescape")
        if group.id.links.get_info(key).type != h5py.h5l.TYPE_HARD:
            return None
        return _of_id(h5py.h5o.open(group.id, key))

    # --- values -----------------------------------------------------------------------------

    def _value(self, item: Any, path: str, depth: int) -> None:
        """Add one value; `item` is None for a link to elsewhere, an error if it cannot be had.

        What is wrong with it hides none of the others.
        """
        mark = self.tree.mark()
        try:
            if isinstance(item, RaconvertError):
                raise item
            if item is None:
                self.tree.leave_out(path, "a link", "is not in this file")
                return
            self.tree.check_depth(depth, f"variable '{path}'")
            with self._guarded(path):
                self._object(item, path, depth)
        except RaconvertError as error:
            if self.tree.full:
                raise
            self.tree.unreadable(path, error, mark)

    def _object(self, item: Any, path: str, depth: int) -> None:
        if isinstance(item, h5py.Group):
            self._group(item, path, depth)
        elif isinstance(item, h5py.Dataset):
            self._dataset(item, path, depth)
        else:
            self.tree.leave_out(path, type(item).__name__.lower())

    def _group(self, group: Any, path: str, depth: int) -> None:
        cls = _word(group, "MATLAB_class")
        if h5py.h5a.exists(group.id, b"MATLAB_sparse"):
            self._sparse(group, path, cls)
        elif _number(group, "MATLAB_object_decode") == OLD_OBJECT:
            self._struct(group, path, depth)
            self.tree.was_object(path, cls or "object")
        elif _number(group, "MATLAB_object_decode") or cls not in ("", "struct"):
            self.tree.leave_out(path, cls or "object")
        else:
            self._struct(group, path, depth)

    @contextmanager
    def _members_of(self, item: Any, path: str) -> Iterator[None]:
        """Walk through a struct or cell; refuse what a file of its size cannot hold.

        MATLAB writes every one once. References that lead to a few of them over and over again
        would be walked for hours.
        """
        address = _address(item)
        if address in self._inside:
            raise Corrupt("struct or cell lies inside itself", path=self.tree.source.path,
                          where=f"variable '{path}'")  # fmt: skip
        self.tree.again += address in self._walked
        if self.tree.again > MAX_AGAIN:
            self.tree.full = True
            raise Unsupported(
                "the same structs and cells are used too often",
                path=self.tree.source.path,
                where=f"variable '{path}'",
                expected=f"at most {MAX_AGAIN} uses after the first",
            )
        self._walked.add(address)
        self._inside.add(address)
        try:
            yield
        finally:
            self._inside.discard(address)

    def _dataset(self, dataset: Any, path: str, depth: int) -> None:
        known = self._known.get(_address(dataset))
        if known is not None:
            known(path)
            return
        cls = _word(dataset, "MATLAB_class")
        if _number(dataset, "MATLAB_object_decode"):
            self.tree.leave_out(path, cls or "object")
            return
        if dataset.external is not None or dataset.is_virtual:
            self.tree.leave_out(path, cls or "data", "keeps its data in other files")
            return
        if not _is_known(dataset.id.get_type()):
            self.tree.leave_out(path, cls or "data", "has an HDF5 type that MATLAB does not write")
            return
        is_empty = bool(_number(dataset, "MATLAB_empty"))
        bare = cls == "struct" and not h5py.h5a.exists(dataset.id, NAME)
        dims = (self._empty_dims(dataset, path, bare=bare) if is_empty
                else matlab_dims(dataset.shape))  # fmt: skip
        facts = Facts(cls or _class_of(dataset.dtype), dims,
                      is_global=bool(_number(dataset, "MATLAB_global")))  # fmt: skip
        if facts.cls == "canonical empty":
            facts = facts._replace(cls="double")
        if facts.cls == "cell":
            self._cell(dataset, path, facts, depth, is_empty)
        elif facts.cls == "struct":
            self._empty_struct(dataset, path, facts, is_empty)
        elif facts.cls == "char" or facts.cls in ELEMENTS:
            read = self._char if facts.cls == "char" else self._numeric
            add = read(dataset, path, facts, is_empty)
            self._known[_address(dataset)] = add
            add(path)
        else:
            self.tree.leave_out(path, facts.cls or f"HDF5 {dataset.dtype}")

    def _empty_dims(self, dataset: Any, path: str, *, bare: bool) -> tuple[int, ...]:
        """Return the dims that are the contents; only structs without fields have elements."""
        shape: tuple[int, ...] = dataset.shape or ()
        if len(shape) != 1 or not 2 <= shape[0] <= 64 or dataset.dtype.kind not in "iu":
            raise Corrupt("wrong dims of an empty value", path=self.tree.source.path,
                          where=f"variable '{path}'", got=shape)  # fmt: skip
        dims = tuple(int(n) for n in dataset[()])
        if prod(dims) and not bare:
            raise Corrupt("an empty value has elements", path=self.tree.source.path,
                          where=f"variable '{path}'", got=dims)  # fmt: skip
        self.tree.check_dims(dims, 16, f"variable '{path}'")
        return dims

    def _numeric(
        self, dataset: Any, path: str, facts: Facts, is_empty: bool
    ) -> Callable[[str], None]:
        """Return what adds the numbers under a path."""
        dtype = dataset.dtype  # made anew each time that it is asked for
        is_complex = dtype.names is not None
        if is_empty:
            is_complex = h5py.h5a.exists(dataset.id, EMPTY_COMPLEX)
        facts = facts._replace(complex=is_complex)
        kind = element_of_class(facts)
        if kind is None or (not is_empty and dtype.kind not in "iufbV"):
            name = self.tree.class_name(facts)
            return lambda path: self.tree.leave_out(path, name, "has no element type")
        self.tree.check_dims(facts.dims, kind.nbytes, f"variable '{path}'")
        if is_empty:
            zeros: Any = np.zeros(facts.dims[::-1], dtype_of(kind))
            lazy = self.tree.lazy
            return partial(lazy, facts=facts, element=kind, data=lambda: zeros, storage={})
        stored = dtype["real"] if is_complex else dtype
        order = ">" if stored.byteorder == ">" else "<"
        same = stored.str[1:] == TYPE_CODES[facts.cls] and facts.cls != "logical"
        if same and kind.order != "|" and not (is_complex and facts.cls in WIDE_COMPLEX):
            kind = kind._replace(order=order)
        extent = self._extent(dataset, dtype, kind, is_complex) if same else None
        storage = _storage(dataset)

        def add(path: str) -> None:
            load = partial(DatasetNumbers, path, self.tree.source, dataset, kind)
            self.tree.lazy(path, facts, kind, load, storage, extent)

        return add

    def _extent(
        self, dataset: Any, dtype: np.dtype[Any], kind: Any, is_complex: bool
    ) -> Extent | None:
        """Return where the elements lie in the file as they are, if they do."""
        if is_complex and kind.kind == "complex":
            half = kind.nbytes // 2
            fields: Any = dtype.fields
            packed = fields["real"][1] == 0 and fields["imag"][1] == half
            alike = fields["real"][0] == fields["imag"][0] and fields["real"][0].itemsize == half
            if not (packed and alike and dtype.itemsize == kind.nbytes):
                return None
        elif h5py.h5t.py_create(dtype) != dataset.id.get_type():
            return None  # for instance integers of fewer bits than their bytes
        offset = dataset.id.get_offset()
        nbytes = prod(dataset.shape) * kind.nbytes
        if offset is None or dataset.id.get_storage_size() != nbytes:
            return None
        if offset + nbytes > self.tree.source.size:
            raise Corrupt("data is cut off", path=self.tree.source.path, where=f"byte {offset}",
                          expected=f"{nbytes} bytes")  # fmt: skip
        return self.tree.source.extent(offset, nbytes, needs_swap(kind))

    def _char(self, dataset: Any, path: str, facts: Facts, is_empty: bool) -> Callable[[str], None]:
        """Return what adds the text under a path."""
        if not is_empty and dataset.dtype.kind not in "iu":
            raise ValueError(f"char of type {dataset.dtype}")
        self.tree.check_dims(facts.dims, 4, f"variable '{path}'")
        storage = {} if is_empty else _storage(dataset)

        def add(path: str) -> None:
            load: Any = partial(np.zeros, 0, "<u2")
            if not is_empty:
                load = partial(self._units, dataset, path)
            self.tree.text(path, facts, load, storage)

        return add

    def _units(self, dataset: Any, path: str) -> Any:
        from .sources import as_units

        return as_units(whole(self.tree.source, dataset, path).reshape(-1))

    def _cell(self, dataset: Any, path: str, facts: Facts, depth: int, is_empty: bool) -> None:
        first = len(self.tree.arrays)
        self.tree.container(path, facts)
        if not is_empty:
            with self._members_of(dataset, path):
                for index, item in enumerate(self._referred(dataset, path)):
                    self._value(item, f"{path}/{index + 1}", depth + 1)
        self.tree.close_container(path, first, facts)

    def _referred(self, dataset: Any, path: str) -> Iterator[Any]:
        """Yield what the references of a dataset lead to, in MATLAB's order, or why they do not."""
        if not dataset.id.get_type() == h5py.h5t.STD_REF_OBJ:
            raise ValueError("references expected")
        self.tree.count(prod(dataset.shape))
        for reference in whole(self.tree.source, dataset, path).reshape(-1):
            try:
                with self._guarded(path):
                    item = self._at(reference)
            except RaconvertError as error:
                yield error
            else:
                yield item

    def _at(self, reference: Any) -> Any:
        if not reference:
            raise ValueError("a reference leads nowhere")
        return _of_id(h5py.h5r.dereference(reference, self.file.id))

    def _empty_struct(self, dataset: Any, path: str, facts: Facts, is_empty: bool) -> None:
        if not is_empty:
            raise ValueError("a struct that is no group")
        self.tree.container(path, facts, self.tree.fields(self._field_names(dataset), path))

    def _struct(self, group: Any, path: str, depth: int) -> None:
        with self._members_of(group, path):
            self._fields_of(group, path, depth)

    def _fields_of(self, group: Any, path: str, depth: int) -> None:
        names = self._field_names(group)
        found = self._members(group)
        names = names if sorted(names) == sorted(found) else found
        self.tree.count(len(names))
        items = [self._linked(group, name) for name in names]
        fields = self.tree.fields(names, path)
        is_global = bool(_number(group, "MATLAB_global"))
        references = [item for item in items if _is_references(item)]
        if references and len(references) == len(items):
            self._struct_array(items, fields, path, depth, is_global)
            return
        facts = Facts("struct", (1, 1), is_global=is_global)
        first = len(self.tree.arrays)
        self.tree.container(path, facts, fields)
        for field, item in zip(fields, items, strict=True):
            self._value(item, f"{path}/{field}", depth + 1)
        self.tree.close_container(path, first)

    def _field_names(self, item: Any) -> list[str]:
        """Return the fields in their order, as far as the attribute MATLAB_fields tells."""
        if not h5py.h5a.exists(item.id, NAME):
            return []
        return field_names(self.tree.source, _address(item))

    def _struct_array(
        self, items: list[Any], fields: list[str], path: str, depth: int, is_global: bool
    ) -> None:
        shapes = {item.shape for item in items}
        if len(shapes) != 1:
            raise ValueError("fields of a struct array differ in shape")
        dims = matlab_dims(shapes.pop())
        facts = Facts("struct", dims, is_global=is_global)
        self.tree.count(prod(dims) * len(fields))
        self.tree.container(path, facts, fields)
        columns = [self._referred(item, path) for item in items]
        for index, row in enumerate(zip(*columns, strict=True)):
            first = len(self.tree.arrays)
            inside = f"{path}/{index + 1}"
            for field, item in zip(fields, row, strict=True):
                self._value(item, f"{inside}/{field}", depth + 1)
            self.tree.close_container(inside, first)

    def _sparse(self, group: Any, path: str, cls: str) -> None:
        if cls not in ELEMENTS:
            self.tree.leave_out(path, cls or "sparse")
            return
        parts = {name: self._hard(group, name) for name in ("data", "ir", "jc") if name in group}
        jc = parts.get("jc")
        if jc is None or any(not isinstance(part, h5py.Dataset) for part in parts.values()):
            raise ValueError("a sparse matrix without its parts")
        data = parts.get("data")
        if not all(_is_known(part.id.get_type()) for part in parts.values()):
            raise ValueError("a sparse matrix of types that MATLAB does not write")
        dims = (_number(group, "MATLAB_sparse"), prod(jc.shape) - 1)
        self.tree.check_dims(dims, 16, f"variable '{path}'")
        is_complex = h5py.h5a.exists(group.id, EMPTY_COMPLEX)
        if data is not None:
            is_complex = data.dtype.names is not None
        facts = Facts(cls, dims, is_complex, is_global=bool(_number(group, "MATLAB_global")))
        matrix = SparseDatasets(path, self.tree.source, facts, data, parts.get("ir"), jc)
        storage = {} if data is None else _storage(data)
        self.tree.sparse_matrix(path, facts, matrix.places, matrix.arrays, storage)


def _of_id(found: Any) -> Any:
    """Return an object; h5py's own `group[name]` takes three times as long."""
    return OBJECTS.get(type(found), h5py.Datatype)(found)


def _address(item: Any) -> int:
    """Return where the header of an object lies, by which it is told from others."""
    return info_of(item.id).address


def _is_known(kind: Any) -> bool:
    """Tell a type that MATLAB writes: plain numbers, pairs of them, references.

    The library hands out floats of any layout, and h5py is not made for all of them.
    """
    if isinstance(kind, h5py.h5t.TypeCompoundID):
        names = sorted(kind.get_member_name(i) for i in range(min(3, kind.get_nmembers())))
        halves = [kind.get_member_type(i) for i in range(len(names))]
        sizes = sum(half.get_size() for half in halves)
        return (
            names == [b"imag", b"real"]
            and all(_is_plain_number(half) for half in halves)
            and sizes <= kind.get_size() <= 4 * sizes
        )
    return _is_plain_number(kind) or bool(kind == h5py.h5t.STD_REF_OBJ)


def _is_plain_number(kind: Any) -> bool:
    if isinstance(kind, h5py.h5t.TypeFloatID):
        return any(kind == known for known in _FLOATS)
    if not isinstance(kind, h5py.h5t.TypeIntegerID):
        return False
    size = kind.get_size()
    return size in (1, 2, 4, 8) and kind.get_precision() == 8 * size and kind.get_offset() == 0


_FLOATS = (h5py.h5t.IEEE_F32LE, h5py.h5t.IEEE_F32BE, h5py.h5t.IEEE_F64LE, h5py.h5t.IEEE_F64BE)


def _class_of(dtype: np.dtype[Any]) -> str:
    """Return the class of a dataset that does not name one."""
    if dtype.names is not None and set(dtype.names) == {"real", "imag"}:
        dtype = dtype["real"]
    found = {code: cls for cls, code in TYPE_CODES.items() if cls != "logical"}
    return found.get(dtype.str[1:], "")


def _is_references(item: Any) -> bool:
    """Tell the datasets of a struct array, which have no class of their own."""
    return (
        isinstance(item, h5py.Dataset)
        and not h5py.h5a.exists(item.id, b"MATLAB_class")
        and bool(item.id.get_type() == h5py.h5t.STD_REF_OBJ)
    )


def _storage(dataset: Any) -> dict[str, Any]:
    layouts = {h5py.h5d.COMPACT: "compact", h5py.h5d.CHUNKED: "chunked"}
    kind = layouts.get(dataset.id.get_create_plist().get_layout(), "contiguous")
    found: dict[str, Any] = {"layout": kind}
    if kind == "chunked":
        found["chunks"] = list(dataset.chunks[::-1])
        if dataset.compression:
            found["compression"] = dataset.compression
    found["stored_bytes"] = dataset.id.get_storage_size()
    return found
