"""Writing v6 and v7: every variable one element, in v7 compressed.

The layout is that of `level5`. Numbers are stored in the type of their class; in v7 each variable
is compressed by zlib while it streams, its length is filled in afterwards.

`payload` yields pieces of the parts of a variable, as v5 and v7.3 store them: real and imaginary
part of numbers, units of text; rows, column starts and values of a sparse matrix.
For text the first of the dims, the rows, is the fastest axis, so that every string is spread over
the array.
"""

from __future__ import annotations

import struct
from collections import namedtuple
from math import prod
from zlib import compressobj

import numpy as np

from raconvert.arrays.blocks import block_bytes, blocks, recut
from raconvert.arrays.dtypes import dtype_of, little
from raconvert.arrays.memory import check_memory
from raconvert.errors import Corrupt, WouldLose
from raconvert.files.copy import copy_extent, write_all

from .contents import Leaf
from .header import (
    VERSION_5,
    Flags,
    class_number,
    dims_bytes,
    element_bytes,
    flags_bytes,
    header_bytes,
    tag_bytes,
)
from .tables import (
    CODES,
    HIGH,
    LOW,
    MAX_V5_BYTES,
    MI_COMPRESSED,
    MI_INT8,
    MI_INT32,
    MI_MATRIX,
    MI_UTF8,
    MI_UTF16,
    NUMBERS,
    SURROGATE_MASK,
    TYPE_CODES,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.plugin import Target

    from .contents import Box, Contents, Node

    Values = np.ndarray[Any, Any]

# Fixed, without a time, so that equal arrays give equal bytes.
TEXT = b"MATLAB 5.0 MAT-file, written by raconvert"
# A part of the elements of a leaf: number of its storage type, bytes.
_Part = tuple[int, int]
# A piece of a part: index of the part, offset in it, and an array of its bytes.
Piece = namedtuple("Piece", "part offset data")
MAX_CHARACTER = 0x10FFFF
ASCII_END = 0x80


def write(contents: Contents, target: Target, level: int | None) -> None:
    """Write all variables; `level` is that of zlib, None for no compression."""
    file = target.open()
    write_all(file, [header_bytes(TEXT, VERSION_5)])
    for name, node in contents.variables:
        write_variable(file, target, name, node, contents, level)


def write_variable(
    file: FileIO, target: Target, name: str, node: Node, contents: Contents, level: int | None
) -> None:
    """Write one variable at the end of the file. Raises `WouldLose` if it is too large."""
    prepare(node, target, narrow=True)
    if node.nbytes > MAX_V5_BYTES or _size(node, name) >= 1 << 32:
        raise WouldLose(
            f"variable '{name}' has {node.nbytes} bytes",
            expected=f"at most {MAX_V5_BYTES} in version {contents.version}",
            remedy="write it with `--out-opt version=7.3`",
        )
    sink = _Uncompressed(file, target) if level is None else _Deflated(file, target, level)
    _matrix(sink, node, name)
    sink.close()


# --- where bytes go -------------------------------------------------------------------------------


class _Uncompressed:
    """Writes a variable to the file as it is; the pieces of elements may come in any order."""

    def __init__(self, file: FileIO, target: Target) -> None:
        self._file = file
        self._target = target

    def put(self, *pieces: bytes) -> None:
        write_all(self._file, [b"".join(pieces)])

    def elements(self, leaf: Leaf, parts: list[_Part]) -> None:
        """Write all parts of a leaf, each behind its tag."""
        if _is_copied(leaf):
            self.put(tag_bytes(*parts[0]))
            copy_extent(b"", leaf.array.extent, self._file, self._target.progress)  # type: ignore[arg-type]
            self.put(bytes(-parts[0][1] % 8))
            return
        offsets = []
        end = self._file.tell()
        for code, nbytes in parts:
            self._file.seek(end)
            write_all(self._file, [tag_bytes(code, nbytes)])
            offsets.append(end + 8)
            end += 8 + nbytes + -nbytes % 8
        self._file.truncate(end)
        for piece in payload(leaf, self._target):
            self._file.seek(offsets[piece.part] + piece.offset)
            write_all(self._file, [piece.data])
        self._file.seek(end)

    def close(self) -> None:
        """Do nothing: all is written already."""


def _is_copied(leaf: Leaf) -> bool:
    """True if the elements lie in a file as this one stores them, so that bytes are copied."""
    is_unchanged = leaf.form == "numbers" and leaf.change == "same"
    return is_unchanged and leaf.array.extent is not None and not (leaf.complex or leaf.logical)


class _Deflated:
    """Compresses a variable into one element, whose length is filled in at the end."""

    def __init__(self, file: FileIO, target: Target, level: int) -> None:
        self._file = file
        self._target = target
        self._encoder = compressobj(level)
        self._begin = file.tell()
        write_all(file, [tag_bytes(MI_COMPRESSED, 0)])

    def put(self, *pieces: bytes) -> None:
        self._put(b"".join(pieces))

    def _put(self, data: Any) -> None:
        write_all(self._file, [self._encoder.compress(data)])

    def elements(self, leaf: Leaf, parts: list[_Part]) -> None:
        """Write all parts of a leaf, each behind its tag, with one pass over the array for each."""
        for index, (code, nbytes) in enumerate(parts):
            self.put(tag_bytes(code, nbytes))
            for piece in payload(leaf, self._target, index):
                self._put(piece.data)
            self.put(bytes(-nbytes % 8))

    def close(self) -> None:
        """End the element and fill in its length."""
        write_all(self._file, [self._encoder.flush()])
        end = self._file.tell()
        self._file.seek(self._begin)
        write_all(self._file, [tag_bytes(MI_COMPRESSED, end - self._begin - 8)])
        self._file.seek(end)


# --- matrices -------------------------------------------------------------------------------------


def _lead(node: Node, name: str) -> bytes:
    """Return the bytes before the contents of a matrix: flags, dims, name; fields of a struct."""
    number, nzmax = class_number(node.cls), 0
    is_complex = is_logical = False
    if isinstance(node, Leaf):
        is_complex, is_logical = node.complex, node.logical
        if node.form == "sparse":
            number, nzmax = NUMBERS["sparse"], max(1, int(node.jc[-1]))
    flags = Flags(number, node.cls, is_complex, node.is_global, is_logical, nzmax)
    data = flags_bytes(flags) + dims_bytes(node.dims)
    data += element_bytes(MI_INT8, name.encode("ascii"))
    if node.cls == "struct":
        data += _fields(node.fields)  # type: ignore[union-attr]
    return data


def _fields(names: list[str]) -> bytes:
    """The names of fields, each of 32 or 64 bytes, as MATLAB writes them."""
    width = 32 if all(len(name) < 32 for name in names) else 64
    text = b"".join(name.encode("ascii").ljust(width, b"\0") for name in names)
    return element_bytes(MI_INT32, struct.pack("<i", width)) + element_bytes(MI_INT8, text)


def _parts(leaf: Leaf) -> list[_Part]:
    """The storage type and length of every part of the elements."""
    if leaf.form == "char":
        # MATLAB writes ASCII so, too. Octave 7 reads a column of UTF-16 units as a row.
        return [(MI_UTF8 if leaf.unit == 1 else MI_UTF16, leaf.unit * prod(leaf.dims))]
    if leaf.form == "sparse":
        count = int(leaf.jc[-1])
        # MATLAB itself stores logical values as bytes under the type double, which only some
        # readers understand; all that were tried take bytes for bytes.
        kind = "u1" if leaf.logical else "f8"
        values = [(CODES[kind], count * int(kind[1:]))] * (1 + leaf.complex)
        return [(MI_INT32, 4 * count), (MI_INT32, 4 * leaf.jc.size), *values]
    code = TYPE_CODES[leaf.cls]
    return [(CODES[code], prod(leaf.dims) * int(code[1:]))] * (1 + leaf.complex)


def _size(node: Node, name: str) -> int:
    """The bytes of a matrix behind its tag."""
    total = len(_lead(node, name))
    if isinstance(node, Leaf):
        return total + sum(8 + nbytes + -nbytes % 8 for _, nbytes in _parts(node))
    return total + sum(8 + _size(member, "") for member in node.members)


def _matrix(sink: _Uncompressed | _Deflated, node: Node, name: str) -> None:
    """Write a matrix: tag, flags, dims and name, then its elements or members."""
    sink.put(tag_bytes(MI_MATRIX, _size(node, name)), _lead(node, name))
    if isinstance(node, Leaf):
        sink.elements(node, _parts(node))
        return
    for member in node.members:
        _matrix(sink, member, "")


# The bytes of the elements of one variable -------------------------------------------------------


def prepare(node: Leaf | Box, target: Target, *, narrow: bool) -> None:
    """Read the texts and sparse matrices of a value, since their values decide their size.

    With `narrow`, text that is ASCII throughout takes one byte for a unit.
    """
    for leaf in leaves(node):
        if leaf.form == "char" and leaf.change != "units":
            is_ascii = _measure_text(leaf, target)
            leaf.unit = 1 if narrow and is_ascii else 2
        elif leaf.form == "sparse":
            _count_elements(leaf, target)


def leaves(node: Leaf | Box) -> Iterator[Leaf]:
    """Yield all arrays inside a value."""
    members = getattr(node, "members", None)
    if members is None:
        yield node  # type: ignore[misc]
        return
    for member in members:
        yield from leaves(member)


def payload(leaf: Leaf, target: Target, part: int | None = None) -> Iterator[Piece]:
    """Yield the pieces of all parts in any order, or those of one part front to back."""
    forms = {"numbers": _numbers, "char": _text, "sparse": _sparse}
    for index, offset, values in forms[leaf.form](leaf, target, part):
        yield Piece(index, offset, np.ascontiguousarray(values).reshape(-1).view(np.uint8))


def _blocks(leaf: Leaf, target: Target, part: int | None = None) -> Iterator[Values]:
    """Yield the blocks of the array; only the first pass over it counts as progress."""
    pieces = blocks(leaf.array, block_bytes(target.max_memory))
    return target.counted(pieces) if not part else pieces


# --- numbers --------------------------------------------------------------------------------------


def _numbers(leaf: Leaf, target: Target, part: int | None) -> Iterator[tuple[int, int, Values]]:
    """Yield real (part 0) and imaginary (1) numbers, with their offsets in the part."""
    offsets = [0, 0]
    for block in _blocks(leaf, target, part):
        values = elements_of(leaf, block.reshape(-1))
        halves = (values.real, values.imag) if leaf.complex else (values,)
        for index, half in enumerate(halves):
            if part in (None, index):
                numbers = _as_class(leaf, half)
                yield index, offsets[index], numbers
                offsets[index] += numbers.nbytes


def whole_numbers(leaf: Leaf, target: Target) -> Iterator[Values]:
    """Yield the elements as blocks, complex ones whole: real, imaginary, real, ..."""
    for block in _blocks(leaf, target):
        values = elements_of(leaf, block.reshape(-1))
        if leaf.complex and leaf.change == "integers":
            pairs = np.empty((values.size, 2), f"<{TYPE_CODES[leaf.cls]}")
            pairs[:, 0] = _as_class(leaf, values.real)
            pairs[:, 1] = _as_class(leaf, values.imag)
            yield pairs.reshape(-1)
        else:
            yield values if leaf.complex else _as_class(leaf, values)


def elements_of(leaf: Leaf, block: Values) -> Values:
    """A block as numbers: dates as counts, raw elements as bytes."""
    if leaf.change == "count":
        return block.view(f"{block.dtype.byteorder}i8")
    if leaf.change == "bytes":
        return block.view(np.uint8)
    return block


def _as_class(leaf: Leaf, values: Values) -> Values:
    """Numbers in the type of their class, little-endian."""
    dtype = np.dtype(f"<{TYPE_CODES[leaf.cls]}")
    if leaf.logical:
        return (values.view(np.uint8) != 0).view(np.uint8)
    if values.dtype == dtype:
        return values
    with np.errstate(all="ignore"):
        numbers = values.astype(dtype)
        if leaf.change == "integers" and (numbers != values).any():
            wrong = values[np.argmax(numbers != values)]
            raise WouldLose(
                f"array '{leaf.array.name}' was {leaf.cls} in MATLAB and holds {wrong} now",
                remedy="cast it to another complex type, or drop its metadata with `--meta ignore`",
            )
    return numbers


# --- text -----------------------------------------------------------------------------------------


def _points(leaf: Leaf, strings: Values) -> Values:
    """Strings as rows of code points, or of bytes."""
    strings = strings.reshape(-1)
    if _is_utf8(leaf):
        strings = _decoded(leaf, strings)
    elif leaf.change == "S":
        return strings.view(np.uint8).reshape(strings.size, -1)
    order = strings.dtype.byteorder if strings.dtype.byteorder == ">" else "<"
    return strings.view(f"{order}u4").reshape(strings.size, -1)


def _is_utf8(leaf: Leaf) -> bool:
    return leaf.change == "S" and leaf.array.meta.encoding == "utf-8"


def _decoded(leaf: Leaf, strings: Values) -> Values:
    """UTF-8 bytes as text."""
    try:
        return np.char.decode(strings, "utf-8").astype(f"<U{leaf.array.element.nbytes}")
    except UnicodeDecodeError as error:
        raise WouldLose(
            f"array '{leaf.array.name}' holds bytes that are not UTF-8, as its metadata says",
            got=repr(error.object[:40]),
            remedy="write them as the bytes they are with `--meta drop`",
        ) from error


def _measure_text(leaf: Leaf, target: Target) -> bool:
    """Set the units that the longest row needs; return True if all text is ASCII.

    Refuses characters that UTF-16 cannot hold. The declared width of UTF-8 is in bytes, so that it
    does not count here.
    """
    is_utf8 = _is_utf8(leaf)
    columns, done, largest = 0 if is_utf8 else leaf.columns, 0, 0
    for block in blocks(leaf.array, block_bytes(target.max_memory)):
        points = _points(leaf, block)
        highest = int(points.max(initial=0))
        if leaf.change == "U" and highest >= HIGH:
            _check_characters(leaf, points, done)
        # A declared width of 0 is that of text which was empty once, and may be no longer.
        if is_utf8 or highest > 0xFFFF or not leaf.columns:
            columns = max(columns, int(_lengths(points).max(initial=0)))
        largest = max(largest, highest)
        done += len(points)
    if columns != leaf.columns:
        leaf.columns = columns
        leaf.dims = (*leaf.dims[:-1], columns)
    return largest < ASCII_END


def _lengths(points: Values) -> Values:
    """The number of UTF-16 units that each row needs, without the NULs at its end."""
    used = points != 0
    last = points.shape[1] - np.argmax(used[:, ::-1], axis=1)
    return np.where(used.any(axis=1), last, 0) + (points > 0xFFFF).sum(axis=1)


def _check_characters(leaf: Leaf, points: Values, done: int) -> None:
    """Refuse two halves that would become a pair, and numbers beyond Unicode."""
    first = (points[:, :-1] & SURROGATE_MASK == HIGH) & (points[:, :-1] < 0x10000)
    second = (points[:, 1:] & SURROGATE_MASK == LOW) & (points[:, 1:] < 0x10000)
    wrong = points > MAX_CHARACTER
    wrong[:, :-1] |= first & second
    if wrong.any():
        row, column = (int(n) for n in np.argwhere(wrong)[0])
        code = int(points[row, column])
        raise WouldLose(
            f"array '{leaf.array.name}' holds a character that UTF-16 cannot tell from others",
            where=f"element {_index(leaf.array, done + row)}, character {column}",
            got=f"U+{code:04X}",
            remedy="no option allows this; NPY can hold it",
        )


def _index(array: Array, position: int) -> tuple[int, ...]:
    """The logical index of an element, from its position in stored order."""
    index: tuple[int, ...] = ()
    if array.dims:
        index = tuple(int(n) for n in np.unravel_index(position, array.dims[::-1]))
    return index[::-1] if array.index_order == "F" else index


def _units(leaf: Leaf, strings: Values) -> Values:
    """Strings as rows of `columns` units, of UTF-16 or of ASCII."""
    points = _points(leaf, strings)
    extra = points > 0xFFFF
    if points.itemsize < 4 or not extra.any():
        lines = np.zeros((len(points), leaf.columns), f"<u{leaf.unit}")
        width = min(leaf.columns, points.shape[1])
        lines[:, :width] = points[:, :width]
        return lines
    position = np.arange(points.shape[1]) + np.cumsum(extra, axis=1) - extra
    lines = np.zeros((len(points), points.shape[1] + int(extra.sum(axis=1).max())), "<u2")
    rows = np.arange(len(points))[:, None]
    beyond = np.where(extra, points - 0x10000, 0)
    lines[rows, position] = np.where(extra, HIGH + (beyond >> 10), points)
    pairs = np.nonzero(extra)
    lines[pairs[0], position[pairs] + 1] = LOW + (beyond[pairs] & 0x3FF)
    return lines[:, : leaf.columns]


def _text(leaf: Leaf, target: Target, part: int | None) -> Iterator[tuple[int, int, Values]]:
    """Yield the units of a char array; compressed, they must come in order and at once."""
    if leaf.change == "units":
        offset = 0
        for block in _blocks(leaf, target):
            yield 0, offset, block
            offset += block.nbytes
        return
    count, columns = prod(leaf.dims[:-1]), leaf.dims[-1]
    width = leaf.array.element.nbytes + 2 * columns
    if not count:
        return
    step = max(1, block_bytes(target.max_memory) // max(1, width))
    if count > step and part is not None:
        what = f"array '{leaf.array.name}' as compressed text"
        check_memory(2 * count * width, target.max_memory, what)
        step = count
    dtype = dtype_of(little(leaf.array.element))
    done = 0
    for strings in recut(_blocks(leaf, target), step, dtype):
        yield from _columns(leaf, strings, done, count)
        done += strings.size
    if done != count:
        raise Corrupt(f"array '{leaf.array.name}' has {done} strings", expected=count)


def _columns(
    leaf: Leaf, strings: Values, done: int, count: int
) -> Iterator[tuple[int, int, Values]]:
    """Yield strings transposed: in one piece if they are all, else column by column."""
    units = _units(leaf, strings)
    if strings.size == count:
        yield 0, 0, units.T
        return
    for column in range(leaf.dims[-1]):
        yield 0, leaf.unit * (column * count + done), units[:, column]


# --- sparse ---------------------------------------------------------------------------------------


def stored_elements(leaf: Leaf, target: Target) -> Iterator[tuple[Values, Values]]:
    """Yield the column-major indices of the elements that are not zero, and these elements.

    An element is zero if no bit is set, so that -0.0 is written.
    """
    done = 0
    for block in blocks(leaf.array, block_bytes(target.max_memory)):
        values = block.reshape(-1)
        bits = values.view(np.uint8).reshape(values.size, -1).any(axis=1)
        nonzero = np.flatnonzero(bits)
        yield nonzero + done, values[nonzero]
        done += values.size


def _count_elements(leaf: Leaf, target: Target) -> None:
    """Set the index of the first stored element of each column of a sparse matrix."""
    rows, columns = leaf.dims
    check_memory(16 * (columns + 1), target.max_memory, f"columns of array '{leaf.array.name}'")
    counts = np.zeros(columns + 1, np.int64)
    for indices, _ in stored_elements(leaf, target):
        occupied, numbers = np.unique(indices // max(1, rows), return_counts=True)
        counts[occupied + 1] += numbers
    leaf.jc = np.cumsum(counts)


def _sparse(leaf: Leaf, target: Target, part: int | None) -> Iterator[tuple[int, int, Values]]:
    """Yield rows (part 0), column starts (1), real part (2) and imaginary part (3)."""
    written = 0
    dtype = np.dtype("u1" if leaf.logical else "<f8")
    if part in (None, 1):
        yield 1, 0, leaf.jc.astype("<i4")
    for indices, values in stored_elements(leaf, target) if part != 1 else ():
        halves = (values.real, values.imag) if leaf.complex else (values,)
        if part in (None, 0):
            yield 0, 4 * written, (indices % leaf.dims[0]).astype("<i4")
        for index, half in enumerate(halves, 2):
            if part in (None, index):
                yield index, dtype.itemsize * written, half.astype(dtype)
        written += indices.size
