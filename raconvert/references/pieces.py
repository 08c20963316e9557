"""Location of an array as equal pieces of files, each a box of elements."""

from __future__ import annotations

from itertools import accumulate, product
from math import prod

from raconvert.arrays.dtypes import Element, needs_swap, swap_unit
from raconvert.declared import Record
from raconvert.errors import RaconvertError, Unsupported
from raconvert.files.paths import is_remote
from raconvert.files.source import Extent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.blocks import Pieces

PIECE_BYTES = 128 << 20  # largest piece, which a reader reads at once, if an array can be cut
MOST_PIECES = 1 << 16  # of one array


class Placed(Record):
    """One array of a view: its description, and the location of its bytes.

    `chunk` are the lengths of a piece, slowest axis first; `pieces` are pairs of an index in the
    grid of pieces, in the same order of axes, and an extent. `filters` are (name, values) in the
    order of writing; `fill` is the value of the elements of absent pieces. `row_major` is True for
    an array of a row-major format that lies in Fortran order.
    """

    name: str
    source: str
    element: Element
    dims: tuple[int, ...]
    index_order: str | None
    row_major: bool
    meta: Any
    chunk: tuple[int, ...]
    pieces: list[tuple[tuple[int, ...], Extent]]
    filters: tuple[tuple[str, dict[str, Any]], ...] = ()
    fill: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape, in the index order of the array."""
        return self.dims if self.index_order == "F" else self.dims[::-1]

    @property
    def ra_axes(self) -> tuple[Any, ...]:
        """The axes in the order of `dims`; empty if there is no metadata."""
        if self.meta is None:
            return ()
        axes: tuple[Any, ...] = self.meta.axes
        return axes if self.index_order == "F" else axes[::-1]

    @property
    def extent(self) -> Extent | None:
        """The bytes as one stretch; None if they are encoded, or in several stretches."""
        if self.filters or not self.pieces:
            return None
        first = self.pieces[0][1]
        total = prod(self.dims) * self.element.nbytes
        offset, path = first.offset, first.path
        for _, piece in self.pieces:
            if (piece.path, piece.offset) != (path, offset):
                return None
            offset += piece.nbytes
        whole = offset - first.offset
        return first.part(0, total) if whole == total else None


def placed(array: Array, name: str, source: str) -> Placed | str:
    """Return an array with the location of its bytes, or a short reason why they have none."""
    if array.problem is not None:
        return f"cannot be read: {array.problem.what}"
    extent, shape = array.extent, array.dims[::-1]
    fields: dict[str, Any] = {"filters": (), "fill": None}
    pieces: list[tuple[tuple[int, ...], Extent]] = []
    if not array.nbytes:
        chunk = tuple(max(1, length) for length in shape)
    elif extent is not None:
        chunk, pieces = cut(shape, array.element.nbytes, extent)
    else:
        stored = _in_pieces(array)
        if isinstance(stored, str):
            return stored
        if isinstance(stored, Extent):
            chunk, pieces = cut(shape, array.element.nbytes, stored)
        else:
            chunk, pieces = stored.chunk, stored.places
            fields = {"filters": stored.filters, "fill": stored.fill}
    if any(_is_outside(piece) for _, piece in pieces):
        return "its bytes lie outside the file"
    element = _as_stored(array.element, {piece.swap for _, piece in pieces})
    if element is None:
        return "its bytes lie in an order that its type does not say"
    if any(is_remote(piece.path) for _, piece in pieces):
        return "it lies at a URL; views are made of local files"
    return Placed(
        name, source, element, array.dims, array.index_order, array.row_major,
        array.meta if array.described else None, chunk, pieces, **fields,
    )  # fmt: skip


def _is_outside(piece: Extent) -> bool:
    """True if a piece ends behind the end of its file, as in a damaged one."""
    return piece.identity is not None and piece.offset + piece.nbytes > piece.identity[2]


def _as_stored(element: Element, swaps: set[int]) -> Element | None:
    """Return the element type in the byte order of its pieces; None if it has no such order."""
    if not swaps or swaps == {needs_swap(element)}:
        return element
    unit = swap_unit(element.kind, element.nbytes)
    if len(swaps) > 1 or not swaps <= {1, unit}:
        return None
    return element._replace(order="<" if swaps == {1} else ">")


def _in_pieces(array: Array) -> Pieces | Extent | str:
    """Return the pieces of the file in which the source of an array lies, or a reason why not."""
    try:
        locate = getattr(array.data, "in_pieces", None)
        pieces: Pieces | Extent | str = locate() if locate is not None else ""
    except RaconvertError as error:
        pieces = error.what
    if isinstance(pieces, str) and not pieces:
        words = [str(array.storage[key]) for key in ("encoding", "layout") if key in array.storage]
        how = f" ({', '.join(words)})" if words else ""
        return f"its elements do not lie in the file as they are{how}"
    return pieces


def cut(
    shape: Sequence[int], itemsize: int, extent: Extent
) -> tuple[tuple[int, ...], list[tuple[tuple[int, ...], Extent]]]:
    """Cut a stretch into equal pieces of about `PIECE_BYTES`, along its slowest axes.

    Returns the shape of a piece, and each piece with its index in the grid; `shape` is slowest axis
    first. Each axis is cut by a divisor of its length: a piece at the end of a zarr array that
    is not whole would reach beyond the data.
    """
    chunk, count = list(shape), 1
    for axis, length in enumerate(shape):
        nbytes = prod(chunk) * itemsize
        if nbytes <= PIECE_BYTES:
            break
        parts = _divisor(length, -(-nbytes // PIECE_BYTES), MOST_PIECES // count)
        chunk[axis] = length // parts
        count *= parts
        if chunk[axis] > 1:
            break
    nbytes = prod(chunk) * itemsize
    grid = product(*(range(n // c) for n, c in zip(shape, chunk, strict=True)))
    return tuple(chunk), [
        (index, extent.part(number * nbytes, nbytes)) for number, index in enumerate(grid)
    ]


def _divisor(length: int, wanted: int, most: int) -> int:
    """Return a divisor of a length next to `wanted`, above it if possible, and at most `most`."""
    if wanted >= length:
        return length if length <= most else _largest_divisor(length, most)
    above = range(wanted, min(length, most, 8 * wanted) + 1)
    divisor = next((n for n in above if length % n == 0), None)
    return divisor or _largest_divisor(length, min(wanted, most))


def _largest_divisor(length: int, most: int) -> int:
    """Return the largest divisor of a length that is at most `most`."""
    return next((n for n in range(min(length, most), 0, -1) if length % n == 0), 1)


def groups_of(arrays: Sequence[Placed]) -> list[str]:
    """Return the paths of the groups in which arrays lie, that of the root (empty) first.

    Raises `Unsupported` if one of them is the name of an array, too.
    """
    groups = {"": None}
    for array in arrays:
        parts = array.name.split("/")[:-1]
        groups.update(dict.fromkeys(accumulate(parts, lambda above, name: f"{above}/{name}")))
    clash = groups.keys() & {array.name for array in arrays}
    if clash:
        raise Unsupported(f"'{min(clash)}' would be an array and a group of arrays")
    return [*groups]


def is_text(text: str) -> bool:
    """True if a text can be encoded: without halves of surrogate pairs, as odd file names have."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def files_of(arrays: Sequence[Placed]) -> Iterator[str]:
    """Yield the paths of the files in which arrays lie, each once."""
    seen: set[str] = set()
    for array in arrays:
        for _, piece in array.pieces:
            if piece.path not in seen:
                seen.add(piece.path)
                yield piece.path
