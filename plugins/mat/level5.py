"""Reading level 5 (v5, v6, v7): tags, matrices, compressed variables.

MathWorks "MAT-File Format", version 5. After the 128 bytes of the header come elements::

    tag     uint32 type, uint32 bytes, then the data, padded to 8 bytes; or, for up to 4 bytes,
            uint16 bytes, uint16 type (as one uint32: bytes << 16 | type) and 4 bytes of data
    14      matrix: array flags (uint32 class | flags << 8, uint32 nzmax), dims (int32 each), name,
            then by class: real part, imaginary part; fields; cells; ir, jc, real, imaginary part
    15      the same, compressed by zlib; not padded

Numbers may be stored in any type that holds them; their type is that of the class.
"""

from __future__ import annotations

from collections import namedtuple
from functools import partial
from io import BytesIO
from math import prod

from raconvert.arrays.dtypes import element
from raconvert.errors import Corrupt, RaconvertError, worded
from raconvert.files.inflate import MAX_RATIO
from raconvert.files.source import read_up_to
from raconvert.plugin import Source

from .classes import CLASSES
from .elements5 import (
    EAGER_BYTES,
    Cursor,
    DecodedCursor,
    Elements5,
    FileCursor,
    InflateCursor,
    text_of,
)
from .header import HEADER_BYTES, element_of_class, parse_flags, parse_header, parse_words
from .mcos import Objects, reference_of
from .parts import Compressed, InflatedPart, Inflater, LaterPart, MemoryPart, inflated_head
from .subsystem5 import cells_of
from .tables import (
    ELEMENTS,
    MI_COMPRESSED,
    MI_MATRIX,
    MI_UINT16,
    MI_UTF8,
    Facts,
    in_variable,
)
from .tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from typing import Any

    from .header import Header
    from .mcos import Reference


# Sparse matrices of level 5: compressed columns --------------------------------------------------


class SparseParts:
    """A sparse matrix in compressed columns: row of each element, start of each column, values."""

    def __init__(
        self, path: str, facts: Facts, ir: Any, jc: Any, parts: tuple[Any, ...], source: Source
    ) -> None:
        self.path = path
        self.facts = facts
        self.ir = ir
        self.jc = jc
        self.parts = parts
        self.source = source

    def elements(self) -> tuple[Any, Any]:
        """Read the column-major index of each stored element, and the values."""
        from raconvert.arrays.memory import check_memory

        from .sources import column_major_indices, load

        nbytes = 4 * (self.ir.nbytes + self.jc.nbytes + sum(p.nbytes for p in self.parts))
        what = f"'{self.source.path}': sparse variable '{self.path}'"
        check_memory(nbytes, self.source.max_memory, what)
        rows, columns = self.facts.dims
        try:
            stored = min(part.count for part in self.parts)
            indices, total = column_major_indices(
                load(self.ir), load(self.jc), rows, columns, stored
            )
        except RaconvertError as error:
            in_variable(error, self.path, self.source.path)
            raise
        return indices, self._values(total)

    def _values(self, total: int) -> Any:
        from .sources import Numbers

        source, kind = self.source, element_of_class(self.facts) or ELEMENTS["double"]
        numbers = Numbers(
            self.path, source.path, source.max_memory, element=kind, dims=(total,),
            parts=tuple(_First(part, total) for part in self.parts),
        )  # fmt: skip
        return numbers[...]

    def arrays(self, kind: Any) -> list[tuple[str, Any, int, Any]]:
        """The parts as arrays: name, element, count, and how to read it."""
        whole = element("int", 8)
        stored = min(part.count for part in self.parts)
        return [
            ("data", kind, stored, partial(self._values, stored)),
            ("ir", whole, self.ir.count, partial(self._indices, self.ir)),
            ("jc", whole, self.jc.count, partial(self._indices, self.jc)),
        ]

    def _indices(self, part: Any) -> Any:
        from .sources import Numbers

        source = self.source
        return Numbers(self.path, source.path, source.max_memory, element=element("int", 8),
                       dims=(part.count,), parts=(part,))  # fmt: skip


class _First:
    """The first numbers of a part."""

    def __init__(self, part: Any, count: int) -> None:
        self.dtype = part.dtype
        self.count = count
        self.nbytes = count * int(part.dtype[2:])
        self.open = part.open
        self.region = part.region


MCOS = "MCOS"  # MATLAB's type system of classes
CACHED_SHARE = 32  # the part of the memory that numbers of all variables may stay in


def read(tree: Tree) -> dict[str, Any]:
    """Walk the file; return version, header text and byte order for the namespace."""
    source = tree.source
    header = parse_header(source.read_exact(0, HEADER_BYTES, "the MAT header"))
    walker = Walker(tree, header.order, header.subsystem)
    with source.open() as file:
        compressed = walker.elements(file)
    if walker.objects is not None:
        walker.objects.forget()
    return {
        "version": "7" if compressed else "6",
        "header": header.text,
        **({"byte_order": "big"} if header.order == ">" else {}),
    }


# An element of a file: the name of its variable, the offsets of its begin and end, its type.
Lying = namedtuple("Lying", "name begin end code")


def lying(source: Source) -> tuple[Header, list[Lying]]:
    """The header of a file and all its elements. Raises `Corrupt` if one is cut off."""
    header = parse_header(source.read_exact(0, HEADER_BYTES, "the MAT header"))
    walker = Walker(Tree(source, char="strings", sparse="dense"), header.order, header.subsystem)
    spans, offset = [], HEADER_BYTES
    with source.open() as file:
        while source.size - offset >= 8:
            cursor = FileCursor(source, file, offset, source.size)
            code, nbytes = parse_words(cursor.take(8), header.order)
            walker.check_element(offset, code, nbytes)
            name = walker.name_in(file, offset, code)
            spans.append(Lying(name, offset, offset + 8 + nbytes, code))
            offset += 8 + nbytes
    return header, spans


class Walker(Elements5):
    """Reads the structure of one file into a `Tree`."""

    def __init__(self, tree: Tree, order: str, subsystem: int) -> None:
        super().__init__(tree, order)
        self.subsystem = subsystem
        self.room = tree.source.max_memory // CACHED_SHARE
        self.stopped: list[Inflater] = []
        self.variable = ""  # path of the variable that is read; empty before its name is read
        self.root: Walker = self  # the walker of the whole file
        self.file: FileIO | None = None  # set only in the root
        self.objects: Objects | None = None  # set only in the root, once a variable refers to one

    def into(self, tree: Tree, order: str = "") -> Walker:
        """A walker that adds to another tree, or reads another byte order, in the same file."""
        other = Walker(tree, order or self.order, self.subsystem)
        other.stopped, other.room, other.root = self.stopped, self.room, self.root
        return other

    def _objects(self) -> Objects:
        """The objects of the file, which all walkers of it share."""
        root = self.root
        if root.objects is None:
            root.objects = Objects(root.tree.source, root._cells, CLASSES)
        return root.objects

    def _cells(self) -> Any:
        """The cells of the subsystem; None outside the walk, when no file is open."""
        return None if self.file is None else cells_of(self, self.subsystem, self.file)

    # --- elements ---------------------------------------------------------------------------

    def elements(self, file: FileIO) -> bool:
        """Walk through all variables; return True if any is compressed.

        Each has a length of its own, so that damage in one does not hide the others.
        """
        source = self.tree.source
        offset, compressed = HEADER_BYTES, False
        cursor = FileCursor(source, file, offset, source.size)
        self.file = file
        while source.size - offset >= 8:
            cursor.position = offset
            code, nbytes = parse_words(cursor.take(8), self.order)
            compressed |= code == MI_COMPRESSED
            mark = self.tree.mark()
            self.variable = ""
            try:
                self.check_element(offset, code, nbytes)
                self._variable(cursor, offset, code, nbytes)
            except RaconvertError as error:
                if not self.variable and (name := self.name_in(file, offset, code)):
                    self.variable = self.tree.variable(name)
                self.tree.give_up(self.variable, error, mark, offset)
                if not self.framed:
                    return compressed
            offset += 8 + nbytes
        self._check_rest(file, offset)
        return compressed

    def name_in(self, file: FileIO, offset: int, code: int) -> str:
        """The name of the variable at an offset; empty if its header cannot be read."""
        source = self.tree.source
        cursor = FileCursor(source, file, offset + 8, source.size)
        if code == MI_COMPRESSED:
            most = source.limits.name_bytes
            data = inflated_head(source.read_at(offset + 8, most), most)
            cursor = FileCursor(source, BytesIO(data), 8, len(data))  # type: ignore[arg-type]
        try:
            _, raw = self.data(cursor, cursor.end, "the array flags", 8)
            opaque = len(raw) == 8 and parse_flags(raw, self.order).cls == "opaque"
            for what in ("the name",) if opaque else ("the dims", "the name"):
                data = self.data(cursor, cursor.end, what, self.tree.limits.shape_bytes)[1]
        except RaconvertError:
            return ""
        return text_of(data)

    def _variable(self, cursor: FileCursor, offset: int, code: int, nbytes: int) -> None:
        """Read the variable behind a tag, compressed or not."""
        if code == MI_COMPRESSED:
            source = self.tree.source
            self._compressed(Compressed(source, offset + 8, nbytes, self.stopped), offset)
        elif nbytes:
            cursor.end = cursor.position + nbytes
            self.matrix(cursor, cursor.end, "", 0, offset)

    def _check_rest(self, file: FileIO, offset: int) -> None:
        """Note the bytes behind the last variable if they are zero, else report them as damage."""
        file.seek(offset)
        rest = read_up_to(file, 8)
        if rest.strip(b"\0"):
            error = Corrupt("file ends inside a tag", path=self.tree.source.path,
                            where=f"byte {offset}", expected="8 bytes", got=len(rest))  # fmt: skip
            self.tree.give_up("", error, self.tree.mark(), offset)
        elif rest:
            self.tree.note(f"{len(rest)} zero bytes after the last variable were ignored")

    def _compressed(self, variable: Compressed, offset: int) -> None:
        """Read a compressed variable: a small one as a whole, a large one up to its numbers."""
        inflater = variable.inflater()
        try:
            tag = inflater.read(8)
            code, nbytes = parse_words(tag, self.order)
            variable.total = 8 + nbytes
            cursor = InflateCursor(inflater, self.room)
            self.check_decoded(cursor, variable, code, nbytes)
            if nbytes <= EAGER_BYTES:
                cursor = DecodedCursor(inflater, tag + inflater.everything(), self.room)
                cursor.skip(8)
            if nbytes:
                self.matrix(cursor, 8 + nbytes, "", 0, offset)
            if not cursor.lazy:
                inflater.finish()
            self.room = cursor.room
        finally:
            inflater.close()

    def check_decoded(
        self, cursor: InflateCursor, variable: Compressed, code: int, nbytes: int
    ) -> None:
        """Refuse a tag of another type, or with more bytes than the variable can decode to."""
        if code != MI_MATRIX:
            raise self.corrupt(cursor, "compressed element is not a variable", 14, code)
        if nbytes > variable.nbytes * MAX_RATIO:
            limit = f"at most {variable.nbytes * MAX_RATIO} bytes"
            raise self.corrupt(cursor, "compressed variable cannot be so long", limit, nbytes)

    # --- matrices ---------------------------------------------------------------------------

    def matrix(self, cursor: Cursor, end: int, path: str, depth: int, offset: int = -1) -> None:
        """Read one matrix; `path` is empty for a variable, which has a name of its own."""
        self.tree.check_depth(depth, cursor.where)
        flags = self.flags(cursor, end)
        if flags.cls == "opaque":
            self._opaque(cursor, end, path)
            return
        dims = self.dims(cursor, end)
        name = self.name(cursor, end, "the name")
        if not path:
            if not name and offset == self.subsystem:
                self._leave(cursor, end)
                return  # the subsystem is read when a variable refers to it
            path = self.variable = self.tree.variable(name)
        logical = flags.is_logical and flags.cls != "char"
        facts = Facts(flags.cls, dims, flags.is_complex, logical, flags.is_global)
        self._by_class(cursor, end, path, facts, depth)

    def _by_class(self, cursor: Cursor, end: int, path: str, facts: Facts, depth: int) -> None:
        """Read the contents of a matrix, by its class."""
        cls = facts.cls
        if cls in ("struct", "cell"):
            if isinstance(cursor, InflateCursor):
                cursor.lazy = False
            first = len(self.tree.arrays)
            members = self._struct if cls == "struct" else self._cell
            members(cursor, end, path, facts, depth)
            self.tree.close_container(path, first, facts)
        elif cls == "object":
            self._object(cursor, end, path, facts, depth)
        elif cls == "function_handle":
            self.tree.leave_out(path, cls)
            self._leave(cursor, end)
        elif cls == "sparse":
            self._sparse(cursor, end, path, facts)
        elif cls == "char":
            self._char(cursor, end, path, facts)
        else:
            self._numeric(cursor, end, path, facts)

    def _leave(self, cursor: Cursor, end: int) -> None:
        """Skip the rest of a matrix; behind a lazy cursor nothing is read."""
        if not (isinstance(cursor, InflateCursor) and cursor.lazy):
            cursor.skip(end - cursor.position)

    def _opaque(self, cursor: Cursor, end: int, path: str) -> None:
        """Follow an object of MATLAB's own classes; name any other opaque value.

        Name, type system and class come before its data.
        """
        name, system, cls = (self.name(cursor, end, w) for w in ("a name", "a type", "a class"))
        if not path:
            path = self.variable = self.tree.variable(name)
        reference = self._reference(cursor, end, path) if system == MCOS else None
        self._leave(cursor, end)
        if reference is None:
            self.tree.leave_out(path, f"{cls} ({system})" if system not in ("", MCOS) else cls)
            return
        self._objects().add(self.tree, path, reference, cls)

    def _reference(self, cursor: Cursor, end: int, path: str) -> Reference | None:
        """Read the reference in an opaque value; None if it holds anything else."""
        if cursor.position >= end:
            return None
        if isinstance(cursor, InflateCursor):
            cursor.lazy = False
        stop = self.member_end(cursor, end, path)
        facts = self.facts(cursor, stop)
        if facts.cls != "uint32" or 4 * prod(facts.dims) > self.tree.limits.record_bytes:
            return None
        from .sources import load

        part = self._counted(cursor, stop, prod(facts.dims), f"the reference of '{path}'")
        return reference_of(load(part).tolist())

    def _object(self, cursor: Cursor, end: int, path: str, facts: Facts, depth: int) -> None:
        """Read an object of an old class as the struct of its fields; leave out any other one."""
        if isinstance(cursor, InflateCursor):
            cursor.lazy = False
        cls = self.name(cursor, end, "the name of a class") or "object"
        first = len(self.tree.arrays)
        try:
            self._struct(cursor, end, path, facts._replace(cls="struct"), depth)
        except Corrupt:
            if cursor.broken:
                raise
            del self.tree.arrays[first:]
            self.tree.leave_out(path, cls)
            self._leave(cursor, end)
            return
        self.tree.was_object(path, cls)
        self.tree.close_container(path, first)

    # --- numbers ----------------------------------------------------------------------------

    def _storage(self, cursor: Cursor, part: Any) -> dict[str, Any]:
        """The storage of numbers, for `info`: their stored type, and the compression."""
        facts = {"stored": getattr(part, "dtype", "")[1:]}
        if isinstance(cursor, InflateCursor):
            facts["compression"] = "zlib"
        return facts

    def _counted(self, cursor: Cursor, end: int, count: int, what: str) -> Any:
        """Return the next numbers as a part; raises `Corrupt` if they are not `count`."""
        part = self.part(cursor, end, what)
        self._check_count(cursor, part, count, what)
        return part

    def _check_count(self, cursor: Cursor, part: Any, count: int, what: str) -> None:
        if part.count != count:
            raise self.corrupt(cursor, f"{what} has another length than the dims say",
                                f"{count} numbers", part.count)  # fmt: skip

    def _go_behind(self, cursor: Cursor, position: int) -> None:
        """Decode on to a position behind numbers that were not decoded."""
        if isinstance(cursor, InflateCursor):
            cursor.lazy = False
            cursor.skip(max(0, position - cursor.position))

    def _numeric(self, cursor: Cursor, end: int, path: str, facts: Facts) -> None:
        """Read an array of numbers."""
        count = prod(facts.dims)
        start = cursor.position
        real = self.part(cursor, end, f"'{path}'")
        behind = cursor.position
        if behind == start + 8 and isinstance(real, InflatedPart):  # only the tag was decoded
            behind += real.nbytes + -real.nbytes % 8
        if facts.logical and real.dtype[1:] == "i4" and end - behind >= 8 and not facts.complex:
            # Octave writes a sparse logical matrix with the class of a full one.
            self._go_behind(cursor, behind)
            self._sparse(cursor, end, path, facts, real)
            return
        self._check_count(cursor, real, count, f"'{path}'")
        parts = [real]
        if facts.complex:
            if isinstance(real, InflatedPart) and cursor.position < behind:
                parts.append(LaterPart(real.variable, behind, self.order, count))
            else:
                parts.append(self._counted(cursor, end, count, f"imaginary part of '{path}'"))
        self.tree.numeric(path, facts, tuple(parts), self._storage(cursor, real))

    def _char(self, cursor: Cursor, end: int, path: str, facts: Facts) -> None:
        """Read a char array."""
        count = prod(facts.dims)
        what, code = f"text of '{path}'", 0
        if cursor.position >= end and not count:
            part: Any = MemoryPart(b"", self.order + "u2")  # some writers leave out what is empty
        else:
            tag = self.tag(cursor, end, what)
            part, code = self.stored(cursor, end, what, tag), tag.code
        is_utf8 = part.dtype[1:] == "u1"
        if part.count != count and not is_utf8:
            raise self.corrupt(cursor, f"{what} has another length than the dims say",
                                f"{count} units", part.count)  # fmt: skip
        load = partial(_load_text, self.tree, path, part, facts.dims, code)
        self.tree.text(path, facts, load, self._storage(cursor, part))

    def _sparse(self, cursor: Cursor, end: int, path: str, facts: Facts, ir: Any = None) -> None:
        """Read a sparse matrix; `ir` are its rows if they were read already."""
        if isinstance(cursor, InflateCursor):
            cursor.lazy = False
        if len(facts.dims) != 2:
            raise self.corrupt(cursor, f"sparse '{path}' is not a matrix", "2 dims", facts.dims)
        ir = ir or self.part(cursor, end, f"rows of '{path}'")
        jc = self.part(cursor, end, f"columns of '{path}'")
        as_bytes = ir.count if facts.logical else None
        parts = [self.part(cursor, end, f"values of '{path}'", as_bytes)]
        if facts.complex:
            parts.append(self.part(cursor, end, f"imaginary part of '{path}'"))
        facts = facts._replace(cls="double")
        matrix = SparseParts(path, facts, ir, jc, tuple(parts), self.tree.source)
        storage = self._storage(cursor, parts[0])
        self.tree.sparse_matrix(path, facts, matrix.elements, matrix.arrays, storage)

    # --- containers -------------------------------------------------------------------------

    def _cell(self, cursor: Cursor, end: int, path: str, facts: Facts, depth: int) -> None:
        """Read the elements of a cell."""
        count = prod(facts.dims)
        self.check_members(cursor, end, path, count)
        self.tree.container(path, facts)
        lost = False
        for index in range(count):
            lost = self._member(cursor, end, f"{path}/{index + 1}", depth, lost)

    def _struct(self, cursor: Cursor, end: int, path: str, facts: Facts, depth: int) -> None:
        """Read the fields of a struct, or of each element of an array of structs."""
        names = self.field_names(cursor, end, path)
        fields = self.tree.fields(names, path)
        count = prod(facts.dims)
        self.check_members(cursor, end, path, count * len(fields))
        self.tree.container(path, facts, fields)
        if not fields:
            return
        lost = False
        for index in range(count):
            inside = path if facts.dims == (1, 1) else f"{path}/{index + 1}"
            first = len(self.tree.arrays)
            for field in fields:
                lost = self._member(cursor, end, f"{inside}/{field}", depth, lost)
            self.tree.close_container(inside, first)

    def _member(self, cursor: Cursor, end: int, path: str, depth: int, lost: bool) -> bool:
        """Read one member, or report it as unreadable if it is `lost`; return True if the next is.

        A member has a length of its own, so that damage inside it does not hide the others.
        """
        mark = self.tree.mark()
        stop = -1
        try:
            if lost:
                raise self.corrupt(cursor, f"'{path}' lies behind a member of unknown length")
            stop = self.member_end(cursor, end, path)
            if stop == cursor.position:  # an empty element of a cell: [] in MATLAB
                self.tree.nothing(path, self.order)
                return False
            self.matrix(cursor, stop, path, depth + 1)
        except RaconvertError as error:
            if self.tree.full or cursor.broken:
                raise
            self.tree.unreadable(path, error, mark)
            if cursor.position > stop:
                return True
        cursor.skip(stop - cursor.position)
        return False


def _load_text(tree: Tree, path: str, part: Any, dims: tuple[int, ...], code: int) -> Any:
    """Read the units of a char array; note UTF-8 bytes that were packed into units."""
    from .sources import is_packed, text_units, unpacked

    try:
        units = text_units(part, dims, as_rows=code == MI_UTF8 and tree.char == "strings")
    except UnicodeDecodeError as error:
        raise Corrupt(f"text is not UTF-8 ({error.reason})") from error
    if code == MI_UINT16 and tree.char == "strings" and is_packed(units):
        tree.note(worded(
            f"text of '{path}' has two bytes of UTF-8 in one unit of 16 bits, as MATLAB writes it "
            "with -v6, and was read as UTF-8; `--in-opt char=units` gives the units"
        ))  # fmt: skip
        return unpacked(units)
    return units
