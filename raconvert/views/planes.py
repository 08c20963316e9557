"""A plane at an index of the other axes, read within bounds, as an array and its sample."""

from __future__ import annotations

from math import ceil, prod

from raconvert.arrays.sources import is_decoded_whole
from raconvert.declared import Record
from raconvert.views.sample import DECODED, covered, is_coded, sample

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.layout import Layout
    from raconvert.views.sample import Sample

_MOST_CHUNKS = 64  # chunks decoded for a plane


class Plane(Record):
    """A plane of an array: as an array of two axes, its sample, and the key that Python takes."""

    array: Array
    sampled: Sample
    key: str


def plane_at(array: Array, key: list[Any], budget: int) -> Plane | None:
    """Read the plane at a key of integers and two full slices; None if it costs too much.

    Of a plane in chunks that exceeds the budget, the part around the middle is read. Raises what
    reading elements raises.
    """
    key = _cropped(
        array, [0 if n == 1 else k for k, n in zip(key, array.shape, strict=True)], budget
    )
    if not key:
        return None
    part = array.slicer[tuple(key)]
    return Plane(part, sample(part, budget=budget, frames=1), key_text(key))


def middle_key(array: Array, layout: Layout) -> list[Any]:
    """The key of the plane of an array in the middle of all other axes."""
    key: list[Any] = [0 if length == 1 else slice(None) for length in array.shape]
    for slowest_first in layout.outer:
        axis = array.ndim - 1 - slowest_first if array.index_order == "F" else slowest_first
        key[axis] = array.shape[axis] // 2
    return key


def key_text(key: list[Any]) -> str:
    """A key of integers and slices as Python takes it."""
    return f"[{', '.join(_part_text(part) for part in key)}]"


def _part_text(part: Any) -> str:
    """An index or a slice as it stands in a key."""
    if not isinstance(part, slice):
        return str(part)
    return ":" if part == slice(None) else f"{part.start}:{part.stop}"


def _cropped(array: Array, key: list[Any], budget: int) -> list[Any]:
    """Cut a key to the rows and columns around the middle that cost at most `budget` bytes.

    Empty if any of them cost more.
    """
    data = array.data if array.extent is None else None
    if data is not None and is_decoded_whole(data):
        return key if array.nbytes <= DECODED else []
    chunks = None if data is None else _chunks_of(array)
    if chunks is None:
        lengths = [n for part, n in zip(key, array.shape, strict=True) if isinstance(part, slice)]
        costly = is_coded(array) and prod(lengths) * array.element.nbytes > budget
        return [] if costly else key
    axes = [at for at, part in enumerate(key) if isinstance(part, slice)]
    inner = [min(chunks[at], n) for at, n in enumerate(array.shape) if at not in axes]
    each = prod(inner) * array.element.nbytes
    cut = _within(array, chunks, axes, each, budget)
    decoded = each * prod(covered(cut[at], chunks[at]) for at in axes)
    if decoded > max(budget, DECODED // 4):
        return []
    for at in axes:
        if cut[at] < array.shape[at]:
            start = (array.shape[at] - cut[at]) // 2 // chunks[at] * chunks[at]
            key[at] = slice(start, start + cut[at])
    return key


def _chunks_of(array: Array) -> list[int] | None:
    """The lengths of the chunks of an array, in the order of its shape; None without any."""
    chunks = array.storage.get("chunks")
    if not isinstance(chunks, list | tuple) or len(chunks) != array.ndim:
        return None
    if not all(isinstance(chunk, int) and chunk > 0 for chunk in chunks):
        return None
    return [*chunks][::-1] if array.index_order == "F" else [*chunks]


def _within(
    array: Array, chunks: list[int], axes: list[int], each: int, budget: int
) -> dict[int, int]:
    """The lengths by axis of a part of a plane: of at most `_MOST_CHUNKS` chunks, within a budget.

    For each element of the plane, `each` bytes are decoded.
    """
    lengths = {at: array.shape[at] for at in axes}
    while (
        each * prod(covered(lengths[at], chunks[at]) for at in axes) > budget
        or prod(ceil(lengths[at] / chunks[at]) for at in axes) > _MOST_CHUNKS
    ):
        longest = max(axes, key=lambda at: lengths[at] / chunks[at])
        if lengths[longest] <= chunks[longest]:
            break
        lengths[longest] = max(chunks[longest], lengths[longest] // 2)
    return lengths
