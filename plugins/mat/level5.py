"""Reading level 5 (v5, v6, v7): tags, matrices, compressed variables.

MathWorks "MAT-File Format", version 5. After the 128 bytes of the header come elements::

    tag     uint32 type, uint32 bytes, then the data, padded to 8 bytes; or, for up to 4 bytes,
            uint16 bytes, uint16 type (as one uint32: bytes << 16 | type) and 4 bytes of data
    14      matrix: array flags (uint32 class | flags << 8, uint32 nzmax), dims (int32 each), name,
            then by class: real part, imaginary part; fields; cells; ir, jc, real, imaginary part
    15      the same, compressed by zlib; not padded

Numbers may be stored in any type that holds them; the class says what they are.
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
from .parts import Compressed, HeldPart, InflatedPart, Inflater, LaterPart, inflated_head
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

    def places(self) -> tuple[Any, Any]:
        """The place of each stored element in column-major order, and the values."""
        from raconvert.arrays.memory import check_memory

        from .sources import column_places, load

        nbytes = 4 * (self.ir.nbytes + self.jc.nbytes + sum(p.nbytes for p in self.parts))
        what = f"'{self.source.path}': sparse variable '{self.path}'"
        check_memory(nbytes, self.source.max_memory, what)
        rows, columns = self.facts.dims
        try:
            stored = min(part.count for part in self.parts)
            places, total = column_places(load(self.ir), load(self.jc), rows, columns, stored)
        except RaconvertError as error:
            in_variable(error, self.path, self.source.path)
            raise
        return places, self._values(total)

    def _values(self, total: int) -> Any:
        from .sources import Numbers

        source, kind = self.source, element_of_class(self.facts) or ELEMENTS["double"]
        numbers = Numbers(
            self.path, source.path, source.max_memory, element=kind, dims=(total,),
            parts=tuple(_First(part, total) for part in self.parts),
        )  # fmt: skip
        return numbers[...]

    def arrays(self, kind: Any) -> list[tuple[str, Any, int, Any]]:
        """The parts as arrays: name, element, count, and what gives the data."""
        whole = element("int", 8)
        return [
            ("data", kind, min(p.count for p in self.parts), lambda: self._values(
                min(p.count for p in self.parts))),
            ("ir", whole, self.ir.count, partial(self._indices, self.ir)),
            ("jc", whole, self.jc.count, partial(self._indices, self.jc)),
        ]  # fmt: skip

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
HELD_SHARE = 32  # and all of them up to this part of the memory


def read(tree: Tree) -> dict[str, Any]:
    """Walk the file; return what its header says."""
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


# An element of a file as it lies: the name of its variable, where it begins and ends, its type.
Lying = namedtuple("Lying", "name begin end code")


def lying(source: Source) -> tuple[Header, list[Lying]]:
    """The header of a file and all its elements. Raises `Corrupt` where one is cut off."""
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
        self.room = tree.source.max_memory // HELD_SHARE
        self.stopped: list[Inflater] = []
        self.variable = ""  # the one that is read; empty until its name was
        self.root: Walker = self  # the one of the whole file
        self.file: FileIO | None = None  # which that one walks through
        self.objects: Objects | None = None  # of the root, if the file refers to any

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
        """The cells of the subsystem; None if there is no file to look in."""
        return None if self.file is None else cells_of(self, self.subsystem, self.file)

    # --- elements ---------------------------------------------------------------------------

    def elements(self, file: FileIO) -> bool:
        """Walk through all variables; True if any was compressed.

        Each has a length of its own, so that what is wrong in one hides none of the others.
        """
        source = self.tree.source
        offset, compressed = HEADER_BYTES, False
        cursor = FileCursor(source, file, offset, source.size)
        self.file = file
        while source.size - offset >= 8:
            cursor.place = offset
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
        self._rest(file, offset)
        return compressed

    def name_in(self, file: FileIO, offset: int, code: int) -> str:
        """The name of a variable that cannot be read, if that much is there."""
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
        if code == MI_COMPRESSED:
            source = self.tree.source
            self._compressed(Compressed(source, offset + 8, nbytes, self.stopped), offset)
        elif nbytes:
            cursor.end = cursor.place + nbytes
            self.matrix(cursor, cursor.end, "", 0, offset)

    def _rest(self, file: FileIO, offset: int) -> None:
        file.seek(offset)
        rest = read_up_to(file, 8)
        if rest.strip(b"\0"):
            error = Corrupt("file ends inside a tag", path=self.tree.source.path,
                            where=f"byte {offset}", expected="8 bytes", got=len(rest))  # fmt: skip
            self.tree.give_up("", error, self.tree.mark(), offset)
        elif rest:
            self.tree.note(f"{len(rest)} zero bytes after the last variable were ignored")

    def _compressed(self, variable: Compressed, offset: int) -> None:
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
        """Refuse a decoded size that no decoder could give, before anything is decoded."""
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
                return  # data of the classes whose variables are named when they are met
            path = self.variable = self.tree.variable(name)
        logical = flags.is_logical and flags.cls != "char"
        facts = Facts(flags.cls, dims, flags.is_complex, logical, flags.is_global)
        self._by_class(cursor, end, path, facts, depth)

    def _by_class(self, cursor: Cursor, end: int, path: str, facts: Facts, depth: int) -> None:
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
        """Leave out the rest of a matrix."""
        if not (isinstance(cursor, InflateCursor) and cursor.lazy):
            cursor.skip(end - cursor.place)

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
        """The reference that an opaque value holds; None if it holds anything else."""
        if cursor.place >= end:
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
        facts = {"stored": getattr(part, "dtype", "")[1:]}
        if isinstance(cursor, InflateCursor):
            facts["compression"] = "zlib"
        return facts

    def _counted(self, cursor: Cursor, end: int, count: int, what: str) -> Any:
        part = self.part(cursor, end, what)
        self._check_count(cursor, part, count, what)
        return part

    def _check_count(self, cursor: Cursor, part: Any, count: int, what: str) -> None:
        if part.count != count:
            raise self.corrupt(cursor, f"{what} has another length than the dims say",
                                f"{count} numbers", part.count)  # fmt: skip

    def _behind(self, cursor: Cursor, offset: int) -> None:
        """Go on behind numbers that were only looked at."""
        if isinstance(cursor, InflateCursor):
            cursor.lazy = False
            cursor.skip(max(0, offset - cursor.place))

    def _numeric(self, cursor: Cursor, end: int, path: str, facts: Facts) -> None:
        count = prod(facts.dims)
        start = cursor.place
        real = self.part(cursor, end, f"'{path}'")
        behind = cursor.place
        if behind == start + 8 and isinstance(real, InflatedPart):  # it was only looked at
            behind += real.nbytes + -real.nbytes % 8
        if facts.logical and real.dtype[1:] == "i4" and end - behind >= 8 and not facts.complex:
            # Octave writes a sparse logical matrix with the class of a full one.
            self._behind(cursor, behind)
            self._sparse(cursor, end, path, facts, real)
            return
        self._check_count(cursor, real, count, f"'{path}'")
        parts = [real]
        if facts.complex:
            if isinstance(real, InflatedPart) and cursor.place < behind:
                parts.append(LaterPart(real.variable, behind, self.order, count))
            else:
                parts.append(self._counted(cursor, end, count, f"imaginary part of '{path}'"))
        self.tree.numeric(path, facts, tuple(parts), self._storage(cursor, real))

    def _char(self, cursor: Cursor, end: int, path: str, facts: Facts) -> None:
        count = prod(facts.dims)
        what, code = f"text of '{path}'", 0
        if cursor.place >= end and not count:
            part: Any = HeldPart(b"", self.order + "u2")  # some writers leave out what is empty
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
        """Read a sparse matrix; `ir` if its rows were read already."""
        if isinstance(cursor, InflateCursor):
            cursor.lazy = False
        if len(facts.dims) != 2:
            raise self.corrupt(cursor, f"sparse '{path}' is not a matrix", "2 dims", facts.dims)
        ir = ir or self.part(cursor, end, f"rows of '{path}'")
        jc = self.part(cursor, end, f"columns of '{path}'")
        short = ir.count if facts.logical else None
        parts = [self.part(cursor, end, f"values of '{path}'", short)]
        if facts.complex:
            parts.append(self.part(cursor, end, f"imaginary part of '{path}'"))
        facts = facts._replace(cls="double")
        matrix = SparseParts(path, facts, ir, jc, tuple(parts), self.tree.source)
        storage = self._storage(cursor, parts[0])
        self.tree.sparse_matrix(path, facts, matrix.places, matrix.arrays, storage)

    # --- containers -------------------------------------------------------------------------

    def _cell(self, cursor: Cursor, end: int, path: str, facts: Facts, depth: int) -> None:
        count = prod(facts.dims)
        self.check_members(cursor, end, path, count)
        self.tree.container(path, facts)
        lost = False
        for index in range(count):
            lost = self._member(cursor, end, f"{path}/{index + 1}", depth, lost)

    def _struct(self, cursor: Cursor, end: int, path: str, facts: Facts, depth: int) -> None:
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
        """Read one member; True if all behind it are lost (`lost`: it is itself).

        A member has a length of its own: what is wrong inside it hides none of the others.
        """
        mark = self.tree.mark()
        stop = -1
        try:
            if lost:
                raise self.corrupt(cursor, f"'{path}' lies behind a member of unknown length")
            stop = self.member_end(cursor, end, path)
            if stop == cursor.place:  # an empty element of a cell: [] in MATLAB
                self.tree.nothing(path, self.order)
                return False
            self.matrix(cursor, stop, path, depth + 1)
        except RaconvertError as error:
            if self.tree.full or cursor.broken:
                raise
            self.tree.unreadable(path, error, mark)
            if not cursor.place <= stop:
                return True
        cursor.skip(stop - cursor.place)
        return False


def _load_text(tree: Tree, path: str, part: Any, dims: tuple[int, ...], code: int) -> Any:
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
