"""The bytes of the elements of one variable, as v5 and v7.3 store them.

`payload` yields pieces of the parts of a variable: of numbers the real and the imaginary part, of
text the units, of a sparse matrix its rows, its columns and the values. For text the first of the
dims, the rows, is the fastest axis, so that every string is spread over the array.
"""

from __future__ import annotations

from collections import namedtuple
from math import prod

import numpy as np

from raconvert.arrays.blocks import block_bytes, blocks, check_memory, recut
from raconvert.arrays.dtypes import dtype_of, little
from raconvert.errors import Corrupt, WouldLose

from .tables import HIGH, LOW, SURROGATE_MASK, TYPE_CODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.plugin import Target

    from .variables import Box, Leaf

    Values = np.ndarray[Any, Any]

# A piece of a part: which part, where in it, and an array whose memory are the bytes.
Piece = namedtuple("Piece", "part offset data")
MAX_CHARACTER = 0x10FFFF
ASCII_END = 0x80


def prepare(node: Leaf | Box, target: Target, *, narrow: bool) -> None:
    """Look at the elements of which the size in the file depends on their values.

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
    """Yield the pieces of all parts, wherever they lie, or those of one part front to back."""
    forms = {"numbers": _numbers, "char": _text, "sparse": _sparse}
    for piece in forms[leaf.form](leaf, target, part):
        yield Piece(piece[0], piece[1], np.ascontiguousarray(piece[2]).reshape(-1).view(np.uint8))


def _blocks(leaf: Leaf, target: Target, part: int | None = None) -> Iterator[Values]:
    found = blocks(leaf.array, block_bytes(target.max_memory))
    return target.counted(found) if not part else found


# --- numbers --------------------------------------------------------------------------------------


def _numbers(leaf: Leaf, target: Target, part: int | None) -> Iterator[tuple[int, int, Values]]:
    place = [0, 0]
    for block in _blocks(leaf, target, part):
        values = elements_of(leaf, block.reshape(-1))
        halves = (values.real, values.imag) if leaf.complex else (values,)
        for index, half in enumerate(halves):
            if part in (None, index):
                found = _as_class(leaf, half)
                yield index, place[index], found
                place[index] += found.nbytes


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
        found = values.astype(dtype)
        if leaf.change == "integers" and (found != values).any():
            wrong = values[np.argmax(found != values)]
            raise WouldLose(
                f"array '{leaf.array.name}' was {leaf.cls} in MATLAB and holds {wrong} now",
                remedy="cast it to another complex type, or drop its metadata with --meta ignore",
            )
    return found


# --- text -----------------------------------------------------------------------------------------


def _points(leaf: Leaf, strings: Values) -> Values:
    """Strings as rows of code points, bytes or units."""
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
            remedy="write them as the bytes they are with --meta drop",
        ) from error


def _measure_text(leaf: Leaf, target: Target) -> bool:
    """Find how many units the longest row needs, and if all text is ASCII.

    Refuses characters that no unit can be. Of UTF-8 the width in bytes says nothing about that in
    characters, so that it is not kept.
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
        leaf.dims = (leaf.dims[0], columns, *leaf.dims[2:])
    return largest < ASCII_END


def _lengths(points: Values) -> Values:
    """The number of UTF-16 units that each row needs, the NULs at its end left out."""
    used = points != 0
    last = points.shape[1] - np.argmax(used[:, ::-1], axis=1)
    return np.where(used.any(axis=1), last, 0) + (points > 0xFFFF).sum(axis=1)


def _check_characters(leaf: Leaf, points: Values, done: int) -> None:
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
            remedy="no flag allows this; NPY can hold it",
        )


def _index(array: Array, place: int) -> tuple[int, ...]:
    """The logical index of an element, from its place in stored order."""
    index = tuple(int(n) for n in np.unravel_index(place, array.dims[::-1])) if array.dims else ()
    return index[::-1] if array.index_order == "F" else index


def _units(leaf: Leaf, strings: Values) -> Values:
    """Strings as rows of `columns` units, of UTF-16 or of ASCII."""
    points = _points(leaf, strings)
    extra = points > 0xFFFF
    if points.itemsize < 4 or not extra.any():
        found = np.zeros((len(points), leaf.columns), f"<u{leaf.unit}")
        width = min(leaf.columns, points.shape[1])
        found[:, :width] = points[:, :width]
        return found
    place = np.arange(points.shape[1]) + np.cumsum(extra, axis=1) - extra
    found = np.zeros((len(points), points.shape[1] + int(extra.sum(axis=1).max())), "<u2")
    rows = np.arange(len(points))[:, None]
    beyond = np.where(extra, points - 0x10000, 0)
    found[rows, place] = np.where(extra, HIGH + (beyond >> 10), points)
    at = np.nonzero(extra)
    found[at[0], place[at] + 1] = LOW + (beyond[at] & 0x3FF)
    return found[:, : leaf.columns]


def _text(leaf: Leaf, target: Target, part: int | None) -> Iterator[tuple[int, int, Values]]:
    if leaf.change == "units":
        place = 0
        for block in _blocks(leaf, target):
            yield 0, place, block
            place += block.nbytes
        return
    rows, columns, *more = leaf.dims
    pages, width = prod(more), leaf.array.element.nbytes + 2 * columns
    if not rows * pages:
        return
    step = max(1, block_bytes(target.max_memory) // max(1, width))
    if rows > step and part is not None:
        what = f"array '{leaf.array.name}' as compressed text"
        check_memory(2 * rows * width, target.max_memory, what)
        step = rows
    together = max(1, step // rows) * rows
    dtype = dtype_of(little(leaf.array.element))
    done = 0
    for strings in recut(_blocks(leaf, target), min(step, together), dtype):
        yield from _columns(leaf, strings, done)
        done += strings.size
    if done != rows * pages:
        raise Corrupt(f"array '{leaf.array.name}' has {done} strings", expected=rows * pages)


def _columns(leaf: Leaf, strings: Values, done: int) -> Iterator[tuple[int, int, Values]]:
    """Yield strings transposed: whole pages in one piece, columns of a part of a page."""
    rows, columns = leaf.dims[:2]
    if not done % rows and not strings.size % rows:
        units = _units(leaf, strings).reshape(strings.size // rows, rows, columns)
        yield 0, leaf.unit * done * columns, units.transpose(0, 2, 1)
        return
    while strings.size:
        page, row = divmod(done, rows)
        units = _units(leaf, strings[: rows - row])
        for column in range(columns):
            place = (page * columns + column) * rows + row
            yield 0, leaf.unit * place, units[:, column]
        done += len(units)
        strings = strings[len(units) :]


# --- sparse ---------------------------------------------------------------------------------------


def stored_elements(leaf: Leaf, target: Target) -> Iterator[tuple[Values, Values]]:
    """Yield the places of elements that are not zero, in column-major order, and the elements.

    Zero is what has no bit set: -0.0 is kept.
    """
    done = 0
    for block in blocks(leaf.array, block_bytes(target.max_memory)):
        values = block.reshape(-1)
        bits = values.view(np.uint8).reshape(values.size, -1).any(axis=1)
        at = np.flatnonzero(bits)
        yield at + done, values[at]
        done += values.size


def _count_elements(leaf: Leaf, target: Target) -> None:
    """Find where every column of a sparse matrix begins among its stored elements."""
    rows, columns = leaf.dims
    check_memory(16 * (columns + 1), target.max_memory, f"columns of array '{leaf.array.name}'")
    counts = np.zeros(columns + 1, np.int64)
    for places, _ in stored_elements(leaf, target):
        found, many = np.unique(places // max(1, rows), return_counts=True)
        counts[found + 1] += many
    leaf.jc = np.cumsum(counts)


def _sparse(leaf: Leaf, target: Target, part: int | None) -> Iterator[tuple[int, int, Values]]:
    """Yield rows (part 0), column starts (1), real part (2) and imaginary part (3)."""
    done = 0
    dtype = np.dtype("u1" if leaf.logical else "<f8")
    if part in (None, 1):
        yield 1, 0, leaf.jc.astype("<i4")
    for places, values in stored_elements(leaf, target) if part != 1 else ():
        halves = (values.real, values.imag) if leaf.complex else (values,)
        if part in (None, 0):
            yield 0, 4 * done, (places % leaf.dims[0]).astype("<i4")
        for index, half in enumerate(halves, 2):
            if part in (None, index):
                yield index, dtype.itemsize * done, half.astype(dtype)
        done += places.size
