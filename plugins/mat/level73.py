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

import numpy as np

from raconvert.arrays.dtypes import dtype_of
from raconvert.errors import Corrupt, RaconvertError, Unsupported

from ..hdf5.files import File, end_notes, guarded
from ..hdf5.objects import Link, Object, linked, referred, root
from ..hdf5.storage import extent_of
from ..hdf5.tables import FILTERS
from . import classes
from .header import element_of_class
from .mcos import Objects, reference_of
from .subsystem73 import cells_of
from .tables import (
    ELEMENTS,
    EMPTY_COMPLEX,
    HDF5_OFFSET,
    TYPE_CODES,
    WIDE_COMPLEX,
    WIDEST,
    Facts,
)
from .values73 import (
    REFERENCES,
    UNREADABLE,
    ClassNumbers,
    SparseDatasets,
    Stored,
    code_of,
    matlab_dims,
    type_of,
    whole,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .tree import Tree

    Values = np.ndarray[Any, Any]

HIDDEN = frozenset(("#refs#", "#subsystem#"))
CACHE_BYTES = 64 << 20  # of decoded chunks; a row of chunks larger than this is decoded repeatedly
MCOS = 3  # of MATLAB_object_decode: a reference into the subsystem (`mcos`)
OLD_OBJECT = 2  # of MATLAB_object_decode: a struct with the name of a class
FIELDS = b"MATLAB_fields"
WORDS = {"deflate": "gzip", "lzf": "lzf", "szip": "szip"}  # usual names of compressions
CLASSES = {code: cls for cls, code in TYPE_CODES.items() if cls != "logical"}


def read(tree: Tree) -> tuple[dict[str, Any], Any]:
    """Walk the file; return version and header text, and the function that closes the file."""
    source = tree.source
    header = source.read_exact(0, 128, "the MAT header")
    source.read_exact(HDF5_OFFSET, 8, "the HDF5 signature")
    file = File(source, max(1 << 20, min(CACHE_BYTES, source.max_memory // 8)))
    tree.notes += end_notes(file)
    walker = Walker(tree, file)
    try:
        with guarded(source.path, what=UNREADABLE):
            walker.variables()
    except BaseException:
        file.close()
        raise
    finally:
        walker.adders.clear()  # they refer to the walker and keep the file open
        walker.objects.forget()
    text = header[:116].rstrip(b"\0 ").decode("latin-1")
    return {"version": "7.3", "header": text}, file.close


class Walker:
    """Reads the structure of one file into a `Tree`."""

    def __init__(self, tree: Tree, file: File) -> None:
        self.tree = tree
        self.file = file
        # By address of a dataset: the function that adds it again if other references lead to it.
        self.adders: dict[int, Callable[[str], None]] = {}
        self._walked: set[int] = set()  # addresses of structs and cells
        self._inside: set[int] = set()  # addresses of those around the current value
        self.objects = Objects(tree.source, lambda: cells_of(self), classes.CLASSES)

    def variables(self) -> None:
        """Add every variable; hidden groups, to which the variables refer, are not variables."""
        top = root(self.file)
        mark = self.tree.mark()
        try:
            top.check_links()
        except RaconvertError as error:
            self.tree.give_up("/", error, mark)
        for name, link in self.members(top).items():
            if name in HIDDEN:
                continue
            mark = self.tree.mark()
            path = self.tree.variable(name)
            try:
                self._value(self._linked(link), path, 0)
            except RaconvertError as error:
                self.tree.give_up(path, error, mark)

    def _linked(self, link: Link) -> Any:
        """Open the object of a hard link, or return the error; None for other links."""
        try:
            with self.guarded(link.name.decode("latin-1")):
                return linked(self.file, link)
        except RaconvertError as error:
            return error

    def into(self, tree: Tree) -> Walker:
        """A walker that adds to another tree."""
        other = Walker(tree, self.file)
        other.objects = self.objects
        return other

    def guarded(self, path: str) -> Any:
        """Return a context in which errors of HDF5 become ours, with the name of a variable."""
        return guarded(self.tree.source.path, f"variable '{path}'", UNREADABLE)

    def members(self, group: Object) -> dict[str, Link]:
        """The links of a group by name."""
        return {
            name.decode("utf-8", "surrogateescape"): link for name, link in group.links().items()
        }

    # --- values -----------------------------------------------------------------------------

    def _value(self, item: Any, path: str, depth: int) -> None:
        """Add one value; `item` is its object, None for a link to another file, or an error.

        Damage in it does not hide the other values.
        """
        mark = self.tree.mark()
        try:
            if isinstance(item, RaconvertError):
                raise item
            if item is None:
                self.tree.leave_out(path, "a link", "is not in this file")
                return
            self.tree.check_depth(depth, f"variable '{path}'")
            with self.guarded(path):
                self.object(item, path, depth)
        except RaconvertError as error:
            if self.tree.full:
                raise
            self.tree.unreadable(path, error, mark)

    def object(self, item: Any, path: str, depth: int) -> None:
        """Add an object of the file: a group, a dataset, or a note for anything else."""
        if item.is_group:
            self._group(item, path, depth)
        elif item.is_dataset:
            self._dataset(item, path, depth)
        else:
            self.tree.leave_out(path, "datatype")

    def _group(self, group: Object, path: str, depth: int) -> None:
        """Add a group as a sparse matrix or a struct, or leave out any other object."""
        cls = group.word(b"MATLAB_class")
        if group.has(b"MATLAB_sparse"):
            self._sparse(group, path, cls)
        elif group.number(b"MATLAB_object_decode") == OLD_OBJECT:
            self._struct(group, path, depth)
            self.tree.was_object(path, cls or "object")
        elif group.number(b"MATLAB_object_decode") or cls not in ("", "struct"):
            self.tree.leave_out(path, cls or "object")
        else:
            self._struct(group, path, depth)

    @contextmanager
    def _members_of(self, item: Object, path: str) -> Iterator[None]:
        """Return a context for the members of a struct or cell; refuse too many repeated ones.

        MATLAB writes each of them once. References that lead to a few of them over and over again
        would be walked for hours.
        """
        address = item.address
        if address in self._inside:
            raise Corrupt("struct or cell lies inside itself", path=self.tree.source.path,
                          where=f"variable '{path}'")  # fmt: skip
        self.tree.again += address in self._walked
        if self.tree.again > self.tree.limits.repeated_uses:
            self.tree.full = True
            raise Unsupported(
                "the same structs and cells are used too often",
                path=self.tree.source.path,
                where=f"variable '{path}'",
                expected=f"at most {self.tree.limits.repeated_uses} uses after the first",
            )
        self._walked.add(address)
        self._inside.add(address)
        try:
            yield
        finally:
            self._inside.discard(address)

    def _dataset(self, item: Object, path: str, depth: int) -> None:
        """Add a dataset by its class."""
        add_again = self.adders.get(item.address)
        if add_again is not None:
            add_again(path)
            return
        cls = item.word(b"MATLAB_class")
        decode = item.number(b"MATLAB_object_decode")
        if decode:
            self._opaque(item, path, cls, decode)
            return
        storage = item.storage
        if storage.pieces or storage.layout == "virtual":
            self.tree.leave_out(path, cls or "data", "keeps its data in other files")
            return
        kind = type_of(item.oid.get_type(), self.tree.limits)
        if kind is None:
            self.tree.leave_out(path, cls or "data", "has an HDF5 type that MATLAB does not write")
            return
        stored = Stored(path, self.file, item.oid, kind, storage, item.shape)
        is_empty = bool(item.number(b"MATLAB_empty"))
        bare = cls == "struct" and not item.has(FIELDS)
        dims = self._empty_dims(stored, bare=bare) if is_empty else matlab_dims(stored.shape)
        facts = Facts(cls or _class_of(kind), dims, is_global=bool(item.number(b"MATLAB_global")))
        if facts.cls == "canonical empty":
            facts = facts._replace(cls="double")
        if facts.cls == "cell":
            self._cell(item, stored, facts, depth, is_empty)
        elif facts.cls == "struct":
            self._empty_struct(item, path, facts, is_empty)
        elif facts.cls == "char" or facts.cls in ELEMENTS:
            if facts.cls == "char":
                add = self._char(stored, facts, is_empty)
            else:
                add = self._numeric(item, stored, facts, is_empty)
            self.adders[item.address] = add
            add(path)
        else:
            self.tree.leave_out(path, facts.cls or "HDF5 references")

    def _opaque(self, item: Object, path: str, cls: str, decode: int) -> None:
        """Follow an object of MATLAB's own classes; name any other opaque value."""
        kind = type_of(item.oid.get_type(), self.tree.limits)
        shape = item.shape or ()
        reference = None
        numbers = decode == MCOS and kind not in (None, REFERENCES) and code_of(kind) == "u4"
        if numbers and 4 * prod(shape) <= self.tree.limits.record_bytes:
            stored = Stored(path, self.file, item.oid, kind, item.storage, shape)
            reference = reference_of(whole(stored).tolist())
        if reference is None or not cls:
            self.tree.leave_out(path, cls or "object")
        else:
            self.objects.add(self.tree, path, reference, cls)

    def facts(self, item: Object) -> tuple[str, tuple[int, ...]]:
        """The class and the dims of a value; 1 x 1 for values without a shape."""
        cls = item.word(b"MATLAB_class")
        if item.is_group:
            return ("sparse" if item.has(b"MATLAB_sparse") else cls or "struct"), (1, 1)
        if not item.is_dataset:
            return "datatype", (1, 1)
        if item.number(b"MATLAB_object_decode"):
            return "opaque", (1, 1)
        shape = item.shape
        if item.number(b"MATLAB_empty"):
            kind = type_of(item.oid.get_type(), self.tree.limits)
            stored = Stored("", self.file, item.oid, kind, item.storage, shape)
            return cls, self._empty_dims(stored, bare=cls == "struct")
        return cls, matlab_dims(shape)

    def _empty_dims(self, stored: Stored, *, bare: bool) -> tuple[int, ...]:
        """Read the dims of an empty value; only a `bare` one (no fields) may have elements."""
        shape: tuple[int, ...] = stored.shape or ()
        is_whole = stored.kind is not REFERENCES and stored.kind.buffer.kind in "iu"
        if len(shape) != 1 or not 2 <= shape[0] <= 64 or not is_whole:
            raise Corrupt("wrong dims of an empty value", path=self.file.path,
                          where=stored.where, got=shape)  # fmt: skip
        dims = tuple(int(n) for n in whole(stored))
        if prod(dims) and not bare:
            raise Corrupt("an empty value has elements", path=self.file.path,
                          where=stored.where, got=dims)  # fmt: skip
        self.tree.check_dims(dims, WIDEST, stored.where)
        return dims

    def _numeric(
        self, item: Object, stored: Stored, facts: Facts, is_empty: bool
    ) -> Callable[[str], None]:
        """Return the function that adds the numbers under a path."""
        is_complex = item.has(EMPTY_COMPLEX) if is_empty else stored.is_complex
        facts = facts._replace(complex=is_complex)
        element = element_of_class(facts)
        if element is None or (not is_empty and stored.kind is REFERENCES):
            name = self.tree.class_name(facts)
            return lambda path: self.tree.leave_out(path, name, "has no element type")
        self.tree.check_dims(facts.dims, element.nbytes, stored.where)
        if is_empty:
            zeros: Any = np.zeros(facts.dims[::-1], dtype_of(element))
            lazy = self.tree.lazy
            return partial(lazy, facts=facts, element=element, data=lambda: zeros, storage={})
        is_stored_as_class = stored.code == TYPE_CODES[facts.cls] and facts.cls != "logical"
        is_complex_integer = is_complex and facts.cls in WIDE_COMPLEX
        extent = None
        if is_stored_as_class and not is_complex_integer:
            element = stored.kind.element
            nbytes = prod(stored.shape) * element.nbytes
            extent = extent_of(stored.kind, element, stored.storage, [], nbytes, self.file)
            if extent is not None and extent.offset + nbytes > self.tree.source.size:
                raise Corrupt(
                    "data is cut off",
                    path=self.file.path,
                    where=f"byte {extent.offset}",
                    expected=f"{nbytes} bytes",
                )
        words = _storage(stored)

        def add(path: str) -> None:
            load = partial(ClassNumbers, stored._replace(path=path), dtype_of(element))
            self.tree.lazy(path, facts, element, load, words, extent)

        return add

    def _char(self, stored: Stored, facts: Facts, is_empty: bool) -> Callable[[str], None]:
        """Return the function that adds the text under a path."""
        if not is_empty and (stored.kind is REFERENCES or stored.kind.buffer.kind not in "iu"):
            raise ValueError("char of a type that is not a whole number")
        self.tree.check_dims(facts.dims, 4, stored.where)
        words = {} if is_empty else _storage(stored)

        def add(path: str) -> None:
            load: Any = partial(np.zeros, 0, "<u2")
            if not is_empty:
                load = partial(_units, stored._replace(path=path))
            self.tree.text(path, facts, load, words)

        return add

    def _cell(self, item: Object, stored: Stored, facts: Facts, depth: int, is_empty: bool) -> None:
        """Add the values to which the references of a cell lead."""
        first = len(self.tree.arrays)
        path = stored.path
        self.tree.container(path, facts)
        if not is_empty:
            with self._members_of(item, path):
                for index, member in enumerate(self._referred(item, path)):
                    self._value(member, f"{path}/{index + 1}", depth + 1)
        self.tree.close_container(path, first, facts)

    def _referred(self, item: Object, path: str) -> Iterator[Any]:
        """Yield the object of each reference of a dataset, in MATLAB's order, or its error."""
        if type_of(item.oid.get_type(), self.tree.limits) is not REFERENCES:
            raise ValueError("references expected")
        storage = item.storage
        shape = item.shape
        self.tree.count(prod(shape or ()))
        for reference in whole(Stored(path, self.file, item.oid, REFERENCES, storage, shape)):
            try:
                with self.guarded(path):
                    member = referred(self.file, reference)
            except RaconvertError as error:
                yield error
            else:
                yield member

    def _empty_struct(self, item: Object, path: str, facts: Facts, is_empty: bool) -> None:
        """Add a struct without elements or without fields."""
        if not is_empty:
            raise ValueError("a struct that is not a group")
        self.tree.container(path, facts, self.tree.fields(item.words(FIELDS), path))

    def _struct(self, group: Object, path: str, depth: int) -> None:
        with self._members_of(group, path):
            self._fields_of(group, path, depth)

    def _fields_of(self, group: Object, path: str, depth: int) -> None:
        """Add the fields of a struct; those of an array of structs are datasets of references."""
        names, items = self.fields(group)
        fields = self.tree.fields(names, path)
        is_global = bool(group.number(b"MATLAB_global"))
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

    def fields(self, group: Object) -> tuple[list[str], list[Any]]:
        """The names of the fields of a struct, and the result of `_linked` for each."""
        names = group.words(FIELDS)
        group.check_links()
        members = self.members(group)
        names = names if sorted(names) == sorted(members) else list(members)
        self.tree.count(len(names))
        return names, [self._linked(members[name]) for name in names]

    def _struct_array(
        self, items: list[Any], fields: list[str], path: str, depth: int, is_global: bool
    ) -> None:
        """Add the elements of an array of structs; `items` hold the references of each field."""
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

    def _sparse(self, group: Object, path: str, cls: str) -> None:
        """Add a sparse matrix."""
        if cls not in ELEMENTS:
            self.tree.leave_out(path, cls or "sparse")
            return
        group.check_links()
        links = self.members(group)
        parts = {
            name: self._part(links[name], path) for name in ("data", "ir", "jc") if name in links
        }
        jc, data = parts.get("jc"), parts.get("data")
        if jc is None:
            raise ValueError("a sparse matrix without its parts")
        dims = (group.number(b"MATLAB_sparse"), prod(jc.shape) - 1)
        self.tree.check_dims(dims, WIDEST, jc.where)
        is_complex = group.has(EMPTY_COMPLEX) if data is None else data.is_complex
        facts = Facts(cls, dims, is_complex, is_global=bool(group.number(b"MATLAB_global")))
        matrix = SparseDatasets(facts, data, parts.get("ir"), jc)
        storage = {} if data is None else _storage(data)
        self.tree.sparse_matrix(path, facts, matrix.elements, matrix.arrays, storage)

    def _part(self, link: Link, path: str) -> Stored:
        """A dataset of a sparse matrix."""
        item = linked(self.file, link)
        if item is None or not item.is_dataset:
            raise ValueError("a sparse matrix without its parts")
        storage = item.storage
        kind = type_of(item.oid.get_type(), self.tree.limits)
        if kind in (None, REFERENCES) or storage.pieces or storage.layout == "virtual":
            raise ValueError("a sparse matrix of types that MATLAB does not write")
        return Stored(path, self.file, item.oid, kind, storage, item.shape or ())


def _units(stored: Stored) -> Any:
    """Read the units of a char array."""
    from .sources import as_units

    return as_units(whole(stored))


def _class_of(kind: Any) -> str:
    """The class of a dataset that does not name one."""
    return "" if kind is REFERENCES else CLASSES.get(code_of(kind), "")


def _is_references(item: Any) -> bool:
    """True for the datasets of a struct array, which have no class of their own."""
    return (
        isinstance(item, Object)
        and item.is_dataset
        and not item.has(b"MATLAB_class")
        and type_of(item.oid.get_type(), item.file.source.limits) is REFERENCES
    )


def _storage(stored: Stored) -> dict[str, Any]:
    """The storage of a dataset, for `info`."""
    storage = stored.storage
    facts: dict[str, Any] = {"layout": storage.layout}
    if storage.chunk is not None:
        facts["chunks"] = list(storage.chunk[::-1])
        words = [
            WORDS[FILTERS[number]] for number, _ in storage.filters if FILTERS.get(number) in WORDS
        ]
        if words:
            facts["compression"] = words[0]
    facts["stored_bytes"] = storage.stored
    return facts
