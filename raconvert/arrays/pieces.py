"""Where the elements of an array source lie in files: what its method `in_pieces` returns.

An array source has `in_pieces` if its elements lie in a file, as they are or encoded in ways that
other programs know by name. It returns `Pieces`, or one `Extent`, or in a few words why there is
nothing of the kind; it reads no element.
"""

from __future__ import annotations

from math import prod

from raconvert.declared import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.files.source import Extent


class Pieces(Record):
    """Equal boxes of elements, each a stretch of a file.

    `chunk` is the shape of a box, slowest axis first; at the end of an axis it may reach beyond the
    array. `places` has the place of each box in the grid and its stretch. `filters` are (name,
    options) in the order of writing, as numcodecs calls them. `fill` is the value of elements in
    boxes that are not there; None if all are.
    """

    chunk: tuple[int, ...]
    places: list[tuple[tuple[int, ...], Extent]]
    filters: tuple[tuple[str, dict[str, Any]], ...] = ()
    fill: Any = None


def runs(shape: Sequence[int], itemsize: int, extents: Sequence[Extent]) -> Pieces | Extent | str:
    """Stretches that follow each other in stored order as pieces; `shape` is slowest axis first."""
    if len(extents) == 1:
        return extents[0]
    count = extents[0].nbytes // itemsize if extents else 0
    if not count or any(extent.nbytes != count * itemsize for extent in extents):
        return "it lies in parts of several lengths"
    chunk = [1] * len(shape)
    for axis in reversed(range(len(shape))):
        inside = prod(shape[axis + 1 :])
        chunk[axis] = min(shape[axis], count // inside) or 1
        if count <= inside * shape[axis]:
            break
    grid = [-(-n // c) for n, c in zip(shape, chunk, strict=True)]
    whole = all(n % c == 0 for n, c in zip(shape, chunk, strict=True))
    if prod(chunk) != count or not whole or prod(grid) != len(extents):
        return "it lies in parts that are not equal boxes of it"
    return Pieces(tuple(chunk), [(_place(n, grid), one) for n, one in enumerate(extents)])


def _place(number: int, grid: Sequence[int]) -> tuple[int, ...]:
    """The place with this number, the last axis fastest."""
    found = []
    for length in reversed(grid):
        number, index = divmod(number, length)
        found.append(index)
    return tuple(reversed(found))
