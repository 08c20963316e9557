"""Map of the bytes of a file: its header, its arrays, the gaps between and the rest behind them.

Chunks are drawn where they lie. Of very many, those with the least room between them are drawn as
one box, so that a picture stays small whatever the file.
"""

from __future__ import annotations

import numpy as np

from raconvert.arrays.blocks import Pieces
from raconvert.arrays.regions import some_rows
from raconvert.declared import Record
from raconvert.errors import RaconvertError
from raconvert.files.source import Extent
from raconvert.views.pages.drawings import BETWEEN, CODED, DATA, END, HEADER, Stretch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle

    Values = np.ndarray[Any, Any]

_MOST_BOXES = 300
_MOST_ROWS = 40
_MOST_PIECES = 1 << 16  # chunks of an array, up to which each is located


class FileMap(Record):
    """The map of a file: boxes to draw, and rows of a table that add up to the whole file.

    The start of a row is the offset of the first byte of its part.
    """

    boxes: list[Stretch]
    rows: list[Stretch]


def file_map_of(bundle: Bundle, size: int) -> FileMap:
    """Map a file of `size` bytes; each byte is in exactly one box and in one row."""
    starts, lengths, owner = _all_stretches(bundle, size)
    rest = _rest(bundle, owner)
    ends = np.minimum(starts + lengths, size)
    order = np.lexsort((owner, starts))
    starts, ends, owner = starts[order], ends[order], owner[order]
    # Arrays may share bytes, which are counted for the first of them.
    starts[1:] = np.maximum(starts[1:], np.maximum.accumulate(ends)[:-1])
    distinct = starts < ends
    starts, ends, owner = starts[distinct], ends[distinct], owner[distinct]
    rows = _rows(bundle, starts, ends, owner, size, rest)
    return FileMap(_boxes(bundle, starts, ends, owner, size, rest), rows)


def _all_stretches(bundle: Bundle, size: int) -> tuple[Values, Values, Values]:
    """The first byte, the length and the number of the array, of each stretch of an array."""
    # Arrays with few parts; there may be many of them.
    single: list[tuple[int, int, int]] = []
    many: list[tuple[Values, Values, Values]] = []
    for number, array in enumerate(bundle.arrays):
        stretches = _stretches(array, bundle.path, size)
        if isinstance(stretches, list):
            single += [(start, nbytes, number) for start, nbytes in stretches]
        else:
            many.append((*stretches, np.full(len(stretches[0]), number)))
    columns = np.array(single, np.int64).reshape(-1, 3).T
    starts, lengths, owner = (np.concatenate(parts) for parts in zip(columns, *many, strict=True))
    return starts, lengths, owner


def _stretches(array: Array, path: str, size: int) -> list[tuple[int, int]] | tuple[Values, Values]:
    """The first bytes and lengths of the parts of a file in which an array is stored.

    They are pairs, or two columns; [] if they are unknown.
    """
    if array.problem is not None or not array.nbytes or some_rows(array) is not None:
        return []
    if array.extent is not None:
        return _of_extents([array.extent], path)
    try:
        stretches = getattr(array.data, "stretches", None)
        if stretches is not None:
            starts, lengths = (np.minimum(column, size).astype(np.int64) for column in stretches())
            return starts, lengths
        in_pieces = getattr(array.data, "in_pieces", None)
        pieces = in_pieces() if in_pieces is not None else ""
    except RaconvertError:
        return []
    if isinstance(pieces, Extent):
        return _of_extents([pieces], path)
    if isinstance(pieces, Pieces) and len(pieces.places) <= _MOST_PIECES:
        return _of_extents([extent for _, extent in pieces.places], path)
    return []


def _of_extents(extents: list[Extent], path: str) -> list[tuple[int, int]]:
    """The first bytes and lengths of the extents in this file."""
    return [(extent.offset, extent.nbytes) for extent in extents if extent.path == path]


def _rest(bundle: Bundle, owner: Values) -> tuple[str, str]:
    """Return the name and the kind of the bytes behind all located parts."""
    owners = set(owner.tolist())
    unknown = [
        array.storage.get("stored_bytes")
        for number, array in enumerate(bundle.arrays)
        if array.extent is None and array.problem is None and number not in owners
    ]
    coded = sum(stored for stored in unknown if isinstance(stored, int))
    if coded:
        first = "the rest" if owners else "the whole file"
        return f"{first}, encoded elements of {coded:,} bytes among it", CODED
    return ("behind the elements", END) if owners else ("the whole file, encoded", CODED)


def _gaps(
    starts: Values, ends: Values, size: int, rest: tuple[str, str], most: int
) -> list[Stretch]:
    """List the stretches outside all arrays; more than `most` gaps between arrays count as one."""
    lows, highs = np.append(0, ends), np.append(starts, size)
    lengths = highs - lows
    filled = np.flatnonzero(lengths > 0)
    inner = filled[(filled > 0) & (filled < len(starts))]
    gaps = []
    if len(inner) > most:
        name = f"between them, in {len(inner):,} places"
        gaps = [Stretch(int(lows[inner[0]]), int(lengths[inner].sum()), BETWEEN, name)]
        filled = np.setdiff1d(filled, inner)
    for number in filled.tolist():
        kind, name = BETWEEN, "between them"
        if number == len(starts):
            name, kind = rest
        elif not number:
            kind, name = HEADER, "header"
        gaps.append(Stretch(int(lows[number]), int(lengths[number]), kind, name))
    return gaps


def _kind_and_name(bundle: Bundle, number: int) -> tuple[str, str]:
    """The kind and the name of the stretches of an array, by its number."""
    array = bundle.arrays[number]
    name = array.name if len(bundle.arrays) > 1 else "elements"
    return (DATA if array.extent is not None else CODED), name


def _boxes(
    bundle: Bundle, starts: Values, ends: Values, owner: Values, size: int, rest: tuple[str, str]
) -> list[Stretch]:
    """Boxes from the first byte to the last; of too many, near neighbours are joined."""
    firsts = np.arange(len(starts))
    if len(starts) > _MOST_BOXES:
        between = (starts[1:] - ends[:-1]).astype(np.float64)
        between[owner[1:] != owner[:-1]] += size  # arrays are kept apart before all else
        splits = np.argpartition(between, -_MOST_BOXES + 1)[-_MOST_BOXES + 1 :] + 1
        firsts = np.concatenate([[0], np.sort(splits)])
    lasts = np.append(firsts[1:], len(starts)).astype(np.int64)[: len(firsts)] - 1
    low, high = starts[firsts], ends[lasts]
    boxes = _gaps(low, high, size, rest, _MOST_BOXES)
    for first, last, start, end in zip(
        firsts.tolist(), lasts.tolist(), low.tolist(), high.tolist(), strict=True
    ):
        kind, name = _kind_and_name(bundle, int(owner[first]))
        if last > first:
            name += f", {last - first + 1} parts" + " and others" * bool(
                (owner[first : last + 1] != owner[first]).any()
            )
        boxes.append(Stretch(start, end - start, kind, name))
    return sorted(boxes)


def _rows(
    bundle: Bundle, starts: Values, ends: Values, owner: Values, size: int, rest: tuple[str, str]
) -> list[Stretch]:
    """One row for each array and for each of a few gaps; small ones share the last row."""
    order = np.argsort(owner, kind="stable")
    numbers, begins, counts = np.unique(owner[order], return_index=True, return_counts=True)
    totals = np.add.reduceat((ends - starts)[order], begins) if len(begins) else counts
    gaps = _gaps(starts, ends, size, rest, _MOST_ROWS // 4)
    # The first byte and the bytes of each row: first of the arrays, then of the gaps.
    first = np.append(starts[order][begins], [gap.start for gap in gaps]).astype(np.int64)
    nbytes = np.append(totals, [gap.nbytes for gap in gaps]).astype(np.int64)
    by_size = np.lexsort((first, -nbytes))
    shown = len(by_size) if len(by_size) <= _MOST_ROWS else _MOST_ROWS - 1
    rows = []
    for at in by_size[:shown].tolist():
        if at >= len(numbers):
            rows.append(gaps[at - len(numbers)])
            continue
        kind, name = _kind_and_name(bundle, int(numbers[at]))
        count = int(counts[at])
        name += f", {count:,} chunks" * (count > 1)
        rows.append(Stretch(int(first[at]), int(nbytes[at]), kind, name))
    small = by_size[shown:]
    if len(small):
        name = f"{len(small):,} smaller parts"
        rows.append(Stretch(int(first[small].min()), int(nbytes[small].sum()), BETWEEN, name))
    return sorted(rows)
