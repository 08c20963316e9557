"""Where the bytes of a file are: its header, its arrays, what lies between and behind them.

Chunks are drawn where they lie. Of very many, those with the least room between them are drawn as
one box, so that a picture stays small whatever the file.
"""

from __future__ import annotations

import numpy as np

from raconvert.arrays.pieces import Pieces
from raconvert.declared import Record
from raconvert.errors import RaconvertError
from raconvert.files.source import Extent
from raconvert.views.drawings import BETWEEN, CODED, DATA, END, HEADER, Stretch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle

    Values = np.ndarray[Any, Any]

_MOST_BOXES = 300
_MOST_ROWS = 40
_MOST_PIECES = 1 << 16  # of one array, whose places are asked for one by one


class Places(Record):
    """Where everything is: boxes to draw, and rows of a table that add up to the whole file.

    The start of a row is where the first byte of its part lies.
    """

    boxes: list[Stretch]
    rows: list[Stretch]


def places_of(bundle: Bundle, size: int) -> Places:
    """Where the bytes of a file of `size` bytes are; each of them is in one box and in one row."""
    found = [_stretches(array, bundle.path, size) for array in bundle.arrays]
    owner = np.repeat(np.arange(len(found)), [len(starts) for starts, _ in found])
    starts = np.concatenate([_NONE, *(one for one, _ in found)])
    ends = np.minimum(starts + np.concatenate([_NONE, *(many for _, many in found)]), size)
    order = np.argsort(starts, kind="stable")
    starts, ends, owner = starts[order], ends[order], owner[order]
    # Several arrays may be of the same bytes: what is taken already is not counted again.
    starts[1:] = np.maximum(starts[1:], np.maximum.accumulate(ends)[:-1])
    there = starts < ends
    starts, ends, owner = starts[there], ends[there], owner[there]
    rest = _rest(bundle, found)
    rows = _rows(bundle, starts, ends, owner, size, rest)
    return Places(_boxes(bundle, starts, ends, owner, size, rest), rows)


_NONE: Values = np.empty(0, np.int64)


def _stretches(array: Array, path: str, size: int) -> tuple[Values, Values]:
    """The first bytes and the lengths of the parts of a file that an array is stored in."""
    nothing = _NONE, _NONE
    if array.problem is not None or not array.nbytes:
        return nothing
    if array.extent is not None:
        return _of_extents([array.extent], path)
    try:
        asked = getattr(array.data, "stretches", None)
        if asked is not None:
            starts, lengths = (np.minimum(column, size).astype(np.int64) for column in asked())
            return starts, lengths
        asked = getattr(array.data, "in_pieces", None)
        found = asked() if asked is not None else ""
    except RaconvertError:
        return nothing
    if isinstance(found, Extent):
        return _of_extents([found], path)
    if isinstance(found, Pieces) and len(found.places) <= _MOST_PIECES:
        return _of_extents([extent for _, extent in found.places], path)
    return nothing


def _of_extents(extents: list[Extent], path: str) -> tuple[Values, Values]:
    here = [extent for extent in extents if extent.path == path]
    return (
        np.array([extent.offset for extent in here], np.int64),
        np.array([extent.nbytes for extent in here], np.int64),
    )


def _rest(bundle: Bundle, found: list[tuple[Values, Values]]) -> tuple[str, str]:
    """The name and the kind of what lies behind all that is known."""
    unknown = [
        array.storage.get("stored_bytes")
        for array, (starts, _) in zip(bundle.arrays, found, strict=True)
        if array.extent is None and array.problem is None and not len(starts)
    ]
    coded = sum(stored for stored in unknown if isinstance(stored, int))
    known = any(len(starts) for starts, _ in found)
    if coded:
        first = "the rest" if known else "the whole file"
        return f"{first}, encoded elements of {coded:,} bytes among it", CODED
    return ("behind the elements", END) if known else ("the whole file, encoded", CODED)


def _gaps(
    starts: Values, ends: Values, size: int, rest: tuple[str, str]
) -> list[tuple[int, int, str, str]]:
    """What no array is in: (first byte, length, kind, name)."""
    found = []
    edges = [0, *ends.tolist()]
    for number, (low, high) in enumerate(zip(edges, [*starts.tolist(), size], strict=True)):
        if high > low:
            kind, name = BETWEEN, "between them"
            if number == len(starts):
                name, kind = rest
            elif not number:
                kind, name = HEADER, "header"
            found.append((low, high - low, kind, name))
    return found


def _kind_and_name(bundle: Bundle, number: int) -> tuple[str, str]:
    array = bundle.arrays[number]
    name = array.name if len(bundle.arrays) > 1 else "elements"
    return (DATA if array.extent is not None else CODED), name


def _boxes(
    bundle: Bundle, starts: Values, ends: Values, owner: Values, size: int, rest: tuple[str, str]
) -> list[Stretch]:
    """Boxes from the first byte to the last; neighbours are one where there are too many."""
    firsts = np.arange(len(starts))
    if len(starts) > _MOST_BOXES:
        between = (starts[1:] - ends[:-1]).astype(np.float64)
        between[owner[1:] != owner[:-1]] += size  # arrays are kept apart before all else
        splits = np.argpartition(between, -_MOST_BOXES + 1)[-_MOST_BOXES + 1 :] + 1
        firsts = np.concatenate([[0], np.sort(splits)])
    lasts = np.append(firsts[1:], len(starts)).astype(np.int64)[: len(firsts)] - 1
    low, high = starts[firsts], ends[lasts]
    found = [Stretch(*gap) for gap in _gaps(low, high, size, rest)]
    for first, last, start, end in zip(
        firsts.tolist(), lasts.tolist(), low.tolist(), high.tolist(), strict=True
    ):
        kind, name = _kind_and_name(bundle, int(owner[first]))
        if last > first:
            name += f", {last - first + 1} parts" + " and others" * bool(
                (owner[first : last + 1] != owner[first]).any()
            )
        found.append(Stretch(start, end - start, kind, name))
    return sorted(found)


def _rows(
    bundle: Bundle, starts: Values, ends: Values, owner: Values, size: int, rest: tuple[str, str]
) -> list[Stretch]:
    """One row for each array and for each of a few gaps; of many the largest."""
    rows = []
    for number in np.unique(owner).tolist():
        mine = owner == number
        kind, name = _kind_and_name(bundle, number)
        count = int(mine.sum())
        name += f", {count:,} chunks" * (count > 1)
        rows.append(Stretch(int(starts[mine][0]), int((ends - starts)[mine].sum()), kind, name))
    gaps = [Stretch(*gap) for gap in _gaps(starts, ends, size, rest)]
    between = [gap for gap in gaps if gap.kind == BETWEEN]
    if len(between) > _MOST_ROWS // 4:
        gaps = [gap for gap in gaps if gap.kind != BETWEEN]
        gaps.append(_together(between, f"between them, in {len(between):,} places"))
    rows = sorted(rows + gaps)
    if len(rows) > _MOST_ROWS:
        by_size = sorted(rows, key=lambda row: -row.nbytes)
        kept, small = by_size[: _MOST_ROWS - 1], by_size[_MOST_ROWS - 1 :]
        rows = sorted([*kept, _together(small, f"{len(small):,} smaller parts")])
    return rows


def _together(parts: list[Stretch], name: str) -> Stretch:
    first = min(part.start for part in parts)
    return Stretch(first, sum(part.nbytes for part in parts), BETWEEN, name)
