"""Reading level 4: a chain of matrices without a file header.

MathWorks "MAT-File Format", level 4. Each matrix::

    offset  size  type   meaning
    0       4     int32  type, decimal MOPT: M 0 little-endian, 1 big-endian, 2 and 3 VAX, 4 Cray;
                         O always 0; P storage, see `STORED`; T 0 numbers, 1 text, 2 sparse
    4       4     int32  rows
    8       4     int32  columns
    12      4     int32  1 if there is an imaginary part, else 0
    16      4     int32  length of the name, its NUL included
    20      ...   bytes  name; then the real part and the imaginary part, column by column

The class of all numbers is double, whatever they are stored in: that is what MATLAB loads.
A sparse matrix is three columns (row, column, value; counted from 1), or four if
complex, whose last row holds the dims.
"""

from __future__ import annotations

from collections import namedtuple
from functools import partial

from raconvert.errors import Corrupt, RaconvertError, Unsupported

from .header import element_of_class
from .parts import FilePart
from .tables import ELEMENTS, ORDERS, WIDEST, Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.source import Source

    from .tree import Tree

HEADER_BYTES = 20
STORED = ("f8", "f4", "i4", "i2", "u2", "u1")  # by P
NUMBERS, TEXT, SPARSE = 0, 1, 2  # T

# All first four bytes that a file of IEEE numbers can have.
MAGIC = tuple(
    (0, (1000 * machine + 10 * stored + kind).to_bytes(4, ORDERS[order]))
    for machine, order in enumerate("<>")
    for stored in range(len(STORED))
    for kind in (NUMBERS, TEXT, SPARSE)
)

# The header of one matrix; its data lies from `offset` to `end`.
_Matrix = namedtuple("_Matrix", "order stored kind rows columns complex name offset end")


def order_of(head: bytes) -> str | None:
    """The byte order of a file that begins like level 4, else None."""
    for order in "<>":
        word = int.from_bytes(head[:4], ORDERS[order])
        known = (0, word.to_bytes(4, ORDERS[order])) in MAGIC
        if len(head) >= HEADER_BYTES and known and word // 1000 == "<>".index(order):
            return order
    return None


def is_chain(source: Source) -> bool:
    """True if the first headers are valid, and no matrix goes beyond the end of the file."""
    offset = 0
    for _ in range(source.limits.probed_headers):
        try:
            matrix = _header(source, offset)
        except RaconvertError:
            return False
        offset = matrix.end
        if offset == source.size:
            return True
    return True


def read(tree: Tree) -> dict[str, Any]:
    """Walk the file; return version and byte order for the namespace."""
    source = tree.source
    order = order_of(source.head)
    offset = 0
    while offset < source.size:
        mark = tree.mark()
        try:
            matrix = _header(source, offset)
        except RaconvertError as error:  # nor can the offset of the next one be computed
            tree.give_up("", error, mark, offset)
            break
        order = matrix.order
        path = tree.variable(_text(matrix.name))
        try:
            _add(tree, path, matrix)
        except RaconvertError as error:
            tree.give_up(path, error, mark)
        offset = matrix.end
    return {"version": "4", **({"byte_order": "big"} if order == ">" else {})}


def _header(source: Source, start: int) -> _Matrix:
    """Read the header at an offset, checked against the size of the file."""
    where = f"byte {start}"
    raw = source.read_exact(start, HEADER_BYTES, "a level 4 header")
    order = "<" if int.from_bytes(raw[:4], "little") < 5000 else ">"
    word, rows, columns, imaginary, length = (
        int.from_bytes(raw[i : i + 4], ORDERS[order], signed=True)
        for i in range(0, HEADER_BYTES, 4)
    )
    machine, zero, stored, kind = word // 1000, word // 100 % 10, word // 10 % 10, word % 10
    if machine in (2, 3, 4) and not zero:
        raise Unsupported("numbers of a VAX or a Cray", path=source.path, where=where,
                          expected="IEEE numbers", got=f"machine type {machine}")  # fmt: skip
    known = 0 <= machine < 2 and not zero and stored < len(STORED) and kind <= SPARSE
    if not known or order != "<>"[machine]:
        raise Corrupt("is not a level 4 header", path=source.path, where=where, got=f"type {word}")
    if (
        min(rows, columns) < 0
        or imaginary not in (0, 1)
        or not 0 < length <= source.limits.name_bytes
    ):
        raise Corrupt("wrong level 4 header", path=source.path, where=where,
                      got=(rows, columns, imaginary, length))  # fmt: skip
    offset = start + HEADER_BYTES + length
    name = source.read_exact(start + HEADER_BYTES, length, "a variable's name")
    nbytes = rows * columns * int(STORED[stored][1:]) * (1 + imaginary)
    if nbytes > source.size - offset:
        raise Corrupt("variable is cut off", path=source.path, where=where,
                      expected=f"{nbytes} bytes", got=max(0, source.size - offset))  # fmt: skip
    return _Matrix(order, STORED[stored], kind, rows, columns, bool(imaginary), name, offset,
                   offset + nbytes)  # fmt: skip


def _text(name: bytes) -> str:
    return name.split(b"\0", 1)[0].decode("latin-1")


def _add(tree: Tree, path: str, matrix: _Matrix) -> None:
    """Add a matrix as numbers, text or a sparse matrix."""
    count = matrix.rows * matrix.columns
    dtype = matrix.order + matrix.stored
    parts = [FilePart(tree.source, matrix.offset, dtype, count)]
    if matrix.complex:
        parts.append(FilePart(tree.source, matrix.offset + parts[0].nbytes, dtype, count))
    storage = {"stored": matrix.stored}
    facts = Facts("double", (matrix.rows, matrix.columns), matrix.complex)
    if matrix.kind == TEXT:
        tree.text(path, facts._replace(cls="char"), partial(_units, parts[0]), storage)
    elif matrix.kind == SPARSE:
        _add_sparse(tree, path, matrix, parts, storage)
    else:
        tree.numeric(path, facts, tuple(parts), storage)


def _units(part: FilePart) -> Any:
    """Read the characters of a text, which may be stored as any type of number."""
    from .sources import text_units

    return text_units(part, (part.count, 1))


def _add_sparse(
    tree: Tree, path: str, matrix: _Matrix, parts: list[FilePart], storage: dict[str, Any]
) -> None:
    """Add a sparse matrix; its last row, which has the dims, is read now."""
    if matrix.columns not in (3, 4) or matrix.rows < 1 or matrix.complex:
        raise Corrupt("wrong sparse matrix", path=tree.source.path, where=f"variable '{path}'",
                      got=(matrix.rows, matrix.columns))  # fmt: skip
    columns = [_column(parts[0], matrix.rows, i) for i in range(matrix.columns)]
    rows, width = (_last(tree.source, column) for column in columns[:2])
    if rows is None or width is None:
        raise Corrupt("sparse matrix has no dims", path=tree.source.path,
                      where=f"variable '{path}'", got=(rows, width))  # fmt: skip
    dims = (rows, width)
    tree.check_dims(dims, WIDEST, f"variable '{path}'")
    facts = Facts("double", dims, matrix.columns == 4)
    coordinates = Coordinates(path, facts, columns, matrix.rows - 1, tree.source)
    tree.sparse_matrix(path, facts, coordinates.elements, coordinates.arrays, storage)


def _column(part: FilePart, rows: int, index: int) -> FilePart:
    """One column of a matrix of `rows` rows."""
    width = int(part.dtype[2:])
    return FilePart(part.source, part.offset + index * rows * width, part.dtype, rows)


def _last(source: Source, column: FilePart) -> int | None:
    """Read the last number of a column; None if it is not a whole number from 0."""
    import struct

    width = int(column.dtype[2:])
    offset = column.offset + column.nbytes - width
    data = source.read_exact(offset, width, "the dims of a sparse matrix")
    letter = {"f8": "d", "f4": "f", "i4": "i", "i2": "h", "u2": "H", "u1": "B"}[column.dtype[1:]]
    value = struct.unpack(column.dtype[0] + letter, data)[0]
    return int(value) if 0 <= value < 2**53 and value == int(value) else None


class Coordinates:
    """A sparse matrix of level 4: row, column and value of each element, counted from 1."""

    def __init__(
        self, path: str, facts: Facts, columns: list[FilePart], count: int, source: Source
    ) -> None:
        self.path = path
        self.facts = facts
        self.count = count
        self.columns = [FilePart(part.source, part.offset, part.dtype, count) for part in columns]
        self.source = source

    def elements(self) -> tuple[Any, Any]:
        """Read the column-major index of each listed element, and the values."""
        import numpy as np

        from .sources import load

        self._check()
        rows, columns = self.facts.dims
        indices = []
        for part, limit in zip(self.columns[:2], (rows, columns), strict=True):
            stored = load(part)
            with np.errstate(all="ignore"):
                whole = stored.astype(np.int64)
            if (whole != stored).any() or (whole < 1).any() or (whole > limit).any():
                raise Corrupt("sparse matrix has an index outside its dims",
                              path=self.source.path, where=f"variable '{self.path}'",
                              expected=f"1 to {limit}")  # fmt: skip
            indices.append(whole - 1)
        values = self._values()[...]
        row, column = indices  # zeros among the values stay: MATLAB pads with them
        return column * rows + row, values

    def _check(self) -> None:
        from raconvert.arrays.memory import check_memory

        what = f"'{self.source.path}': sparse variable '{self.path}'"
        check_memory(64 * self.count, self.source.max_memory, what)

    def _values(self) -> Any:
        from .sources import Numbers

        source, kind = self.source, element_of_class(self.facts) or ELEMENTS["double"]
        return Numbers(self.path, source.path, source.max_memory, element=kind,
                       dims=(self.count,), parts=tuple(self.columns[2:]))  # fmt: skip

    def arrays(self, kind: Any) -> list[tuple[str, Any, int, Any]]:
        """The parts of compressed columns, from 0: name, element, count, and how to read it."""
        from raconvert.arrays.dtypes import element

        whole = element("int", 8)
        return [
            ("data", kind, self.count, lambda: self._compressed()[0]),
            ("ir", whole, self.count, lambda: self._compressed()[1]),
            ("jc", whole, self.facts.dims[1] + 1, lambda: self._compressed()[2]),
        ]

    def _compressed(self) -> tuple[Any, Any, Any]:
        """Read the values, their rows, and the start of each column."""
        import numpy as np

        from raconvert.arrays.memory import check_memory

        rows, columns = self.facts.dims
        what = f"'{self.source.path}': columns of sparse variable '{self.path}'"
        check_memory(24 * columns, self.source.max_memory, what)
        indices, values = self.elements()
        order = np.argsort(indices, kind="stable")
        column, row = np.divmod(indices[order], max(1, rows))
        starts = np.searchsorted(column, np.arange(columns + 1))
        return values[order], row, starts
