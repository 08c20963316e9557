"""Location of the data of a header: the records of every type and storage, passed and checked.

None of the values is read. Counters and splits that deviate from the rules by which this package
writes go into `own`, the header's namespace in the metadata.
"""

from __future__ import annotations

from array import array
from itertools import islice
from math import prod

from raconvert.errors import TooLarge, Unsupported

from .header import DATA, DIMENSIONS, MATRIX, POSITION, SPARSE_PART, SPARSE_START, STRINGS
from .tables import (
    DELPHI_LIMIT,
    FULL_LIMIT,
    MATRIX_LIMIT,
    MAX_INT32,
    MAX_RANK,
    SPARSE_LIMIT,
    number_of_parts,
    part_counts,
    strings_limit,
)
from .walk import Parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .records import Record
    from .walk import Header, Walk

MAX_DEVIATIONS = 64  # counters recorded one by one; more would swell the metadata


# --- 1C: strings ----------------------------------------------------------------------------------


def strings(walk: Walk, count: int, width: int, what: str) -> tuple[Parts, array[int]]:
    """Pass the records of a list of strings; return the location of its data, and the counters."""
    offsets, counts, counters = array("q"), array("q"), array("i")
    done = 0
    while True:
        record = walk.next(what)
        fields, start = walk.fields(STRINGS, record)
        here = fields.here
        if fields.total != count:
            walk.refuse(f"{what} is one of another length", record, count, fields.total)
        if not (0 if done == count else 1) <= here <= count - done:
            walk.refuse(f"{what} has a wrong number of strings in a record", record,
                        f"1 to {count - done}", here)  # fmt: skip
        if record.nbytes != start + here * width:
            walk.refuse(f"{what} has a wrong length", record,
                        f"{start + here * width} bytes", record.nbytes)  # fmt: skip
        offsets.append(record.start + start)
        counts.append(here)
        counters.append(fields.counter)
        done += here
        if done == count:
            return Parts(offsets, counts, None), counters


def read_text(walk: Walk, header: Header) -> None:
    """Pass the list of strings of a 1C header."""
    count, width = header.sizes
    if width == 0:
        raise Unsupported(
            f"header '{header.name}' holds strings of 0 characters",
            path=walk.source.path,
            where=f"byte {header.offset}",
        )
    header.dims = (count,)
    header.parts, counters = strings(walk, count, width, "the list of strings")
    _note_counters(header, counters)
    _note_split(header, header.parts.counts, (count,), [strings_limit(width), 29])


# --- 2I, 2R: matrices -----------------------------------------------------------------------------


def read_matrix(walk: Walk, header: Header) -> None:
    """Pass the parts of a 2I or 2R header."""
    header.dims = header.sizes
    total, done = prod(header.dims), 0
    boxes = _Boxes(header.dims)
    counters = array("i")
    while True:
        record = walk.next("a part of the matrix")
        fields, start = walk.fields(MATRIX, record)
        if fields.sizes != header.dims:
            walk.refuse("a part is of another matrix", record, " x ".join(map(str, header.dims)),
                        " x ".join(map(str, fields.sizes)))  # fmt: skip
        count = boxes.checked(walk, record, fields.box)
        if record.nbytes != start + 4 * count:
            walk.refuse("a part of the matrix has a wrong length", record,
                        f"{start + 4 * count} bytes", record.nbytes)  # fmt: skip
        boxes.add(fields.box, record.start + start)
        counters.append(fields.counter)
        done += count
        if done >= total:
            break
    header.parts = boxes.parts(walk, record, total)
    _note_counters(header, counters)
    if boxes.in_order:
        _note_split(header, header.parts.counts, header.dims, [MATRIX_LIMIT, 7991])


class _Boxes:
    """The parts of an array with their positions, which in most files follow each other."""

    def __init__(self, dims: tuple[int, ...]) -> None:
        self.in_order = True
        self._dims = dims
        self._empty = prod(dims) == 0
        self._offsets = array("q")
        self._counts = array("q")
        self._boxes = array("i")
        self._done = 0
        # Values of the last box that `volume` saw, and whether it follows the one before.
        self._count, self._follows = 0, True

    def volume(self, box: Sequence[int]) -> int:
        """The number of values between these first and last indices; -1 if any is wrong."""
        if self._empty:
            return 0
        count, start, stride, cut, follows = 1, 0, 1, False, True
        ends = iter(box)
        for size, first, last in zip(self._dims, ends, ends, strict=False):
            if not 1 <= first <= last <= size:
                return -1
            length = last - first + 1
            if cut and length != 1:
                follows = False
            cut = cut or length != size
            start += (first - 1) * stride
            stride *= size
            count *= length
        self._count, self._follows = count, follows and start == self._done
        return count

    def checked(self, walk: Walk, record: Record, box: Sequence[int]) -> int:
        """The number of values of a part. Raises `Corrupt` if it lies outside the array."""
        count = self.volume(box)
        if count < 0:
            size = " x ".join(map(str, self._dims))
            walk.refuse("a part lies outside the array", record, size, list(box))
        return count

    def add(self, box: Sequence[int], offset: int) -> None:
        """Add the part whose box `volume` saw last; its values begin at `offset`."""
        self.in_order &= self._follows
        self._offsets.append(offset)
        self._counts.append(self._count)
        self._boxes.extend(box)
        self._done += self._count

    def parts(self, walk: Walk, record: Record, total: int) -> Parts:
        """The location of the data. Raises `Corrupt` unless it has as many values as the array."""
        if self._done != total:
            walk.refuse("the parts hold more values than the array", record, total, self._done)
        return Parts(self._offsets, self._counts, None if self.in_order else self._boxes)


# --- RE, RL: reals of up to seven dimensions ------------------------------------------------------


def read_full(walk: Walk, header: Header) -> None:
    """Pass the dimension record and the parts of a RE or RL header of full storage."""
    sizes = header.sizes
    record = walk.next("the dimension record", DIMENSIONS.nbytes)
    fields, _ = walk.fields(DIMENSIONS, record)
    if fields.rank != MAX_RANK or fields.sizes != sizes:
        walk.refuse("the dimension record tells of another array", record, list(sizes),
                    list(fields.sizes))  # fmt: skip
    total, done = prod(sizes), 0
    counters = array("i", [fields.counter])
    boxes = _Boxes(sizes)
    while done < total or len(counters) == 1:  # an array without values has one part, too
        done += _usual_part(walk, boxes, counters) or _part(walk, boxes, counters)
    header.parts = boxes.parts(walk, record, total)
    _note_counters(header, counters)
    if boxes.in_order:
        _note_split(header, header.parts.counts, sizes, [FULL_LIMIT, DELPHI_LIMIT])


def _usual_part(walk: Walk, boxes: _Boxes, counters: array[int]) -> int:
    """Pass the two records of a usual part and return its number of values; else 0, none passed."""
    part = walk.records.part(walk.offset)
    if part is None:
        return 0
    position_counter, *box, data_counter, count, start, end = part
    if boxes.volume(box) != count or not count:
        return 0
    counters.append(position_counter)
    counters.append(data_counter)
    boxes.add(box, start)
    walk.pass_part(end)
    return count


def _part(walk: Walk, boxes: _Boxes, counters: array[int]) -> int:
    """Pass the two records of any part. Raises `Corrupt` if something is wrong with them."""
    record = walk.next("the position of a part", POSITION.nbytes)
    position, _ = walk.fields(POSITION, record)
    count = boxes.checked(walk, record, position.box)
    record = walk.next("a part of the data", DATA.nbytes + 4 * count)
    fields, start = walk.fields(DATA, record)
    counters.append(position.counter)
    counters.append(fields.counter)
    boxes.add(position.box, record.start + start)
    return count


def read_sparse(walk: Walk, header: Header) -> None:
    """Pass the records of a RE or RL header of sparse storage."""
    record = walk.next("the first record of sparse data", SPARSE_START.nbytes)
    opening, _ = walk.fields(SPARSE_START, record)
    total = opening.total
    widths = [opening.position_bytes, opening.value_bytes]
    if widths != [4, 4]:
        walk.refuse("sparse data of unknown widths", record, "4 bytes each", widths)
    comment = opening.comment.rstrip(" ")
    if comment:
        header.own["comment"] = comment
    cells = prod(header.sizes)
    if cells > MAX_INT32:
        walk.refuse("sparse data without a position for every value", record,
                    f"at most {MAX_INT32} values", cells)  # fmt: skip
    if not 0 <= total <= cells:
        walk.refuse("more nonzero values than the array has", record, f"at most {cells}", total)
    begin = walk.offset
    offsets, counts, counters = array("q"), array("q"), array("i")
    done = 0
    while True:
        record = walk.next("a part of the sparse data")
        fields, start = walk.fields(SPARSE_PART, record)
        here = fields.here
        if fields.total != total:
            walk.refuse("a part is of other sparse data", record, f"{total} values", fields.total)
        if not (0 if done == total else 1) <= here <= total - done:
            walk.refuse("wrong number of values in a record", record, f"1 to {total - done}", here)
        if record.nbytes != start + 8 * here:
            walk.refuse("a part of the sparse data has a wrong length", record,
                        f"{start + 8 * here} bytes", record.nbytes)  # fmt: skip
        offsets.append(record.start + start)
        counts.append(here)
        counters.append(fields.counter)
        done += here
        if done == total:
            break
    header.parts = Parts(offsets, counts, None)
    _check_ratio(walk, header, 4 * cells, walk.offset - begin)
    _note_counters(header, counters)
    _note_split(header, counts, (total,), [SPARSE_LIMIT])


def _check_ratio(walk: Walk, header: Header, nbytes: int, stored: int) -> None:
    """Raise `TooLarge` for an array far larger than its data, since zeros take no bytes in it."""
    if nbytes > max(walk.source.max_memory, walk.source.limits.absent_ratio * stored):
        raise TooLarge(
            f"header '{header.name}' promises {nbytes} bytes of zeros in {stored} bytes",
            path=walk.source.path,
            where=f"byte {header.offset}",
            expected=f"at most {walk.source.max_memory} (`--max-memory`)",
            remedy=f"if that is right, allow it with `--max-memory {-(-nbytes // (1 << 20))}M`",
        )


# --- what deviates from the canonical form --------------------------------------------------------


def _note_counters(header: Header, counters: array[int]) -> None:
    """Record the counters that deviate from counting down to 1."""
    count = len(counters)
    if counters == array("i", range(count, 0, -1)):
        return
    deviating = ([n, counter] for n, counter in enumerate(counters) if counter != count - n)
    header.own["counters"] = list(islice(deviating, MAX_DEVIATIONS))


def _note_split(
    header: Header, counts: array[int], dims: tuple[int, ...], limits: list[int]
) -> None:
    """Record the limit by which data was split, unless it is the usual one, first of `limits`."""
    for limit in [*limits, counts[0] if counts else 0]:
        # The number is compared first: a first part of one value asks for a pattern of millions.
        if limit > 0 and len(counts) == number_of_parts(dims, limit):
            pattern, repeats = part_counts(dims, limit)
            if counts == array("q", pattern * repeats):
                if limit != limits[0]:
                    header.own["split"] = limit
                return
