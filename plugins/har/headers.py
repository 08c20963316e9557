"""The index of a file: every header parsed and checked, none of its data read.

Marks, counters and positions of all records are looked at, so that a cut or damaged file is found
when it is opened. What deviates from the rules by which this package writes goes into `own`, the
header's namespace in the metadata, so that the file can be written back byte for byte.
"""

from __future__ import annotations

import re
from array import array
from collections import namedtuple
from math import prod
from struct import Struct

from raconvert.errors import Corrupt, TooLarge, Unsupported
from raconvert.plugin import Axis

from .layout import (
    DATA_HEAD,
    DELPHI_LIMIT,
    DIMENSION_BYTES,
    DOUBLES,
    FULL,
    FULL_LIMIT,
    INTEGER,
    LABEL_BYTES,
    LONG_CHARS,
    MATRIX_HEAD,
    MATRIX_LIMIT,
    MAX_INT32,
    MAX_RANK,
    NAME_CHARS,
    POSITION_BYTES,
    REAL,
    REAL_BARE,
    REAL_MATRIX,
    SECOND_BYTES,
    SIZES,
    SPARSE,
    SPARSE_BYTES,
    SPARSE_HEAD,
    SPARSE_LIMIT,
    STRINGS_HEAD,
    TEXT,
    WORD_CHARS,
    part_counts,
    strings_limit,
    text,
)
from .records import BLANKS, Record, Records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from raconvert.plugin import Source

# Where data lies: `offsets` of the values of each part and how many `counts` there are. `boxes`
# are the positions of parts that do not follow each other in Fortran order, else None. Sparse
# parts hold `counts` positions, then as many values.
Parts = namedtuple("Parts", "offsets counts boxes")

MAX_EMPTY = 100  # headers without records, which a file may have but hardly does
MAX_DEVIATIONS = 64  # counters kept one by one; more are not worth their place in the metadata
LABEL_MEMORY = 100  # bytes that one label takes as a Python text
# Zeros that a sparse header need not store are bounded where nothing else bounds them.
SPARSE_RATIO = 1000  # bytes of the array for each byte in the file, above --max-memory
PLACEHOLDER = re.compile(r"((?i:unk)[0-9]*)?")  # the set name of a dimension without a set


class Header:
    """One header: what it is, where its data lies, and what is peculiar about it (`own`)."""

    __slots__ = (
        "axes", "dims", "long", "name", "offset", "own", "parts", "raw", "records", "sizes",
        "start", "stop", "storage", "type",
    )  # fmt: skip

    def __init__(self, raw: str, offset: int) -> None:
        self.raw = raw
        self.name = raw.strip(" ")
        self.offset = offset
        self.type = ""  # none: a header without records
        self.storage = FULL
        self.long = ""
        self.sizes: tuple[int, ...] = ()
        self.dims: tuple[int, ...] = ()
        self.axes: list[Axis] = []
        self.own: dict[str, Any] = {}
        self.parts = Parts(array("q"), array("q"), None)
        self.records = 0  # how many follow the name
        self.start = self.stop = offset  # of those records

    @property
    def hidden(self) -> bool:
        """Whether the name marks housekeeping: creation date, history and so on."""
        return self.name[:2].upper() == "XX"


class Walk:
    """The records of a file in order, with the words for messages about them."""

    def __init__(self, source: Source, records: Records) -> None:
        self.source = source
        self.records = records
        self.order = records.order
        self.offset = records.first
        self.header = ""  # the name of the header at work
        self.number = 0  # of the record after that name
        self.labels: dict[bytes, list[str]] = {}  # lists are shared by all headers of a file
        self.label_count = 0
        self._next: Record | None = None
        self._layouts: dict[str, Struct] = {}

    @property
    def where(self) -> str:
        """The place of the next record, for messages."""
        return f"header '{self.header}', record {self.number + 1}" if self.header else "a header"

    def peek(self) -> Record | None:
        """Return the next record without passing it; None at the end of the file."""
        if self._next is None and self.offset < self.records.size:
            self._next = self.records.at(self.offset, self.where)
        return self._next

    def more(self) -> bool:
        """Tell whether the next record belongs to this header."""
        record = self.peek()
        return record is not None and record.head[:4] == BLANKS

    def next(self, what: str, nbytes: int | None = None) -> Record:
        """Return the next record of this header; it has `nbytes` bytes, or is refused."""
        record = self.peek()
        if record is None or record.head[:4] != BLANKS:
            raise Corrupt(
                f"file ends before {what}" if record is None else f"{what} is missing",
                path=self.source.path,
                where=f"{self.where}, byte {self.offset}",
                expected="a record that begins with four blanks",
                got="the end of the file" if record is None else repr(text(record.head[:4])),
            )
        if nbytes is not None and record.nbytes != nbytes:
            self.refuse(f"{what} has a wrong length", record, f"{nbytes} bytes", record.nbytes)
        self.skip(record)
        return record

    def skip(self, record: Record) -> None:
        """Go on behind a record."""
        self.offset = record.end
        self.number += 1
        self._next = None

    def pass_part(self, count: int) -> int:
        """Go on behind a position record and `count` values; return where those begin."""
        start = self.offset + 84
        self.offset = start + 4 * count + 4
        self.number += 2
        self._next = None
        return start

    def refuse(self, what: str, record: Record, expected: object, got: object) -> NoReturn:
        """Raise `Corrupt` about a record of this header."""
        number = self.number + (record.offset == self.offset)
        place = f"header '{self.header}', record {number}, " if self.header else ""
        place += f"byte {record.offset}"
        raise Corrupt(what, path=self.source.path, where=place, expected=expected, got=got)

    def integers(self, record: Record, offset: int, count: int) -> tuple[int, ...]:
        """Return int32 numbers of a payload."""
        layout = self._layouts.get(f"{count}")
        if layout is None:
            layout = self._layouts[f"{count}"] = Struct(f"{self.order}{count}i")
        end = offset + layout.size
        if record.nbytes < end:
            self.refuse("a record is too short", record, f"{end} bytes", record.nbytes)
        head = record.head
        if end > len(head):
            head, offset = self.records.bytes_at(record.start + offset, layout.size), 0
        return layout.unpack_from(head, offset)

    def payload(self, record: Record, offset: int = 0, nbytes: int | None = None) -> bytes:
        """Return the bytes of a record from `offset`."""
        left = record.nbytes - offset
        return self.records.bytes_at(record.start + offset, left if nbytes is None else nbytes)


def index(source: Source, framing: str, file: Any, *, skip_unknown: bool) -> list[Header]:
    """Return all headers of a file in its order; `Corrupt` names header, record and byte.

    Headers of a type that nobody can read are refused, or left out as headers whose `type` is
    neither empty nor one of `layout.TYPES`.
    """
    walk = Walk(source, Records(source, file, framing))
    headers: list[Header] = []
    empty = 0
    while walk.offset < source.size:
        headers.append(_header(walk, skip_unknown=skip_unknown))
        empty += not headers[-1].type
        if empty > MAX_EMPTY:
            raise Corrupt(
                f"more than {MAX_EMPTY} headers hold nothing",
                path=source.path,
                where=f"byte {headers[-1].offset}",
            )
    _check_names(source, headers)
    return headers


def _check_names(source: Source, headers: list[Header]) -> None:
    seen: dict[str, Header] = {}
    for header in headers:
        first = seen.setdefault(header.name, header)
        if first is not header:
            raise Corrupt(
                f"two headers are called '{header.name}'",
                path=source.path,
                where=f"bytes {first.offset} and {header.offset}",
                remedy="readers differ in which one they take; rename one of them",
            )


def _header(walk: Walk, *, skip_unknown: bool) -> Header:
    walk.header, walk.number = "", -1
    record = walk.peek()
    if record is None:
        raise AssertionError("only called before the end of the file")
    raw = text(record.head[:NAME_CHARS])
    if record.nbytes != NAME_CHARS or not raw.strip(" ") or not _is_name(raw):
        what = "a record that belongs to no header, or a damaged name of one"
        walk.refuse(what, record, f"a name of {NAME_CHARS} characters",
                    f"{record.nbytes} bytes, {raw!r}")  # fmt: skip
    walk.skip(record)
    header = Header(raw, record.offset)
    walk.header = header.name
    header.start = walk.offset
    if raw != header.name.ljust(NAME_CHARS):
        header.own["name"] = raw
    if walk.more():
        _second_record(walk, header)
        if header.type not in _BY_TYPE:
            _leave_out(walk, header, skip_unknown=skip_unknown)
        else:
            _BY_TYPE[header.type](walk, header)
            if walk.more():
                extra = walk.next("data")
                walk.refuse("a record too many", extra, "the next header", f"{extra.nbytes} bytes")
    elif walk.offset == walk.source.size:
        walk.next("the second record of the last header")
    header.stop = walk.offset
    header.records = walk.number
    return header


def _is_name(raw: str) -> bool:
    """Tell whether the characters can be a name: printable, and no path."""
    return raw.isprintable() and "/" not in raw


def _second_record(walk: Walk, header: Header) -> None:
    record = walk.next("the second record")
    (count,) = walk.integers(record, SECOND_BYTES - 4, 1)
    raw = walk.payload(record, 4, SECOND_BYTES - 8)
    header.type, header.storage = text(raw[:2]), text(raw[2:6])
    header.long = text(raw[6 : 6 + LONG_CHARS])
    header.own["type"] = header.type
    if header.type not in SIZES:
        return
    if header.storage not in (FULL, SPARSE) or (
        header.storage == SPARSE and header.type not in (REAL, REAL_BARE)
    ):
        allowed = f"{FULL} or {SPARSE}" if header.type in (REAL, REAL_BARE) else FULL
        walk.refuse(
            f"unknown storage of a {header.type} header", record, allowed, repr(header.storage)
        )
    if count != SIZES[header.type]:
        what = f"wrong number of sizes of a {header.type} header"
        walk.refuse(what, record, SIZES[header.type], count)
    if record.nbytes != SECOND_BYTES + 4 * count:
        walk.refuse("the second record has a wrong length", record,
                    f"{SECOND_BYTES + 4 * count} bytes", record.nbytes)  # fmt: skip
    header.sizes = walk.integers(record, SECOND_BYTES, count)
    if min(header.sizes) < 0:
        walk.refuse("negative size", record, "sizes of 0 and more", list(header.sizes))


def _leave_out(walk: Walk, header: Header, *, skip_unknown: bool) -> None:
    """Refuse a header of a type that nobody can read, or go on behind it."""
    if not skip_unknown:
        known = ", ".join(_BY_TYPE)
        double = " (8-byte reals, of which no sample is known)" if header.type in DOUBLES else ""
        raise Unsupported(
            f"header '{header.name}' has the data type {header.type!r}{double}",
            path=walk.source.path,
            where=f"byte {header.offset}",
            expected=known,
            remedy="leave such headers out with --in-opt unknown=skip",
        )
    while walk.more():
        walk.next("data")


# --- 1C: strings ----------------------------------------------------------------------------------


def _strings(walk: Walk, count: int, width: int, what: str) -> tuple[Parts, array[int]]:
    """Pass the records of a list of strings; return where they are, and their counters."""
    offsets, counts, counters = array("q"), array("q"), array("i")
    done = 0
    while True:
        record = walk.next(what)
        counter, total, here = walk.integers(record, 4, 3)
        if total != count:
            walk.refuse(f"{what} is one of another length", record, count, total)
        if not (0 if done == count else 1) <= here <= count - done:
            walk.refuse(f"{what} has a wrong number of strings in a record", record,
                        f"1 to {count - done}", here)  # fmt: skip
        if record.nbytes != STRINGS_HEAD + here * width:
            walk.refuse(f"{what} has a wrong length", record,
                        f"{STRINGS_HEAD + here * width} bytes", record.nbytes)  # fmt: skip
        offsets.append(record.start + STRINGS_HEAD)
        counts.append(here)
        counters.append(counter)
        done += here
        if done == count:
            return Parts(offsets, counts, None), counters


def _text(walk: Walk, header: Header) -> None:
    count, width = header.sizes
    if width == 0:
        raise Unsupported(
            f"header '{header.name}' holds strings of 0 characters",
            path=walk.source.path,
            where=f"byte {header.offset}",
        )
    header.dims = (count,)
    header.parts, counters = _strings(walk, count, width, "the list of strings")
    _note_counters(header, counters)
    _note_split(header, header.parts.counts, (count,), [strings_limit(width), 29])


# --- 2I, 2R: matrices -----------------------------------------------------------------------------


def _matrix(walk: Walk, header: Header) -> None:
    header.dims = header.sizes
    total, done = prod(header.dims), 0
    found = _Boxes(header.dims)
    counters = array("i")
    while True:
        record = walk.next("a part of the matrix")
        counter, rows, columns, *box = walk.integers(record, 4, 7)
        if (rows, columns) != header.dims:
            walk.refuse("a part is of another matrix", record,
                        f"{header.dims[0]} x {header.dims[1]}", f"{rows} x {columns}")  # fmt: skip
        count = found.checked(walk, record, box)
        if record.nbytes != MATRIX_HEAD + 4 * count:
            walk.refuse("a part of the matrix has a wrong length", record,
                        f"{MATRIX_HEAD + 4 * count} bytes", record.nbytes)  # fmt: skip
        found.add(box, record.start + MATRIX_HEAD)
        counters.append(counter)
        done += count
        if done >= total:
            break
    header.parts = found.parts(walk, record, total)
    _note_counters(header, counters)
    if found.in_order:
        _note_split(header, header.parts.counts, header.dims, [MATRIX_LIMIT, 7991])


class _Boxes:
    """Parts of an array by their positions; most files hold them in Fortran order, gapless."""

    def __init__(self, dims: tuple[int, ...]) -> None:
        self.in_order = True
        self._dims = dims
        self._empty = prod(dims) == 0
        self._offsets = array("q")
        self._counts = array("q")
        self._boxes = array("i")
        self._done = 0
        self._count = 0  # of the box last looked at, and whether it follows what was added
        self._follows = True

    def volume(self, box: Sequence[int]) -> int:
        """Return how many values lie between these first and last indices; -1 if any is wrong."""
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
        """Return the number of values of a part; refuse one that lies outside the array."""
        count = self.volume(box)
        if count < 0:
            size = " x ".join(map(str, self._dims))
            walk.refuse("a part lies outside the array", record, size, list(box))
        return count

    def add(self, box: Sequence[int], offset: int) -> None:
        """Take the part last looked at, whose values begin at `offset`."""
        self.in_order &= self._follows
        self._offsets.append(offset)
        self._counts.append(self._count)
        self._boxes.extend(box)
        self._done += self._count

    def parts(self, walk: Walk, record: Record, total: int) -> Parts:
        """Return where the data lies; as many values as the array has, or it is refused."""
        if self._done != total:
            walk.refuse("the parts hold more values than the array", record, total, self._done)
        return Parts(self._offsets, self._counts, None if self.in_order else self._boxes)


# --- RE, RL: reals of up to seven dimensions ------------------------------------------------------


def _real(walk: Walk, header: Header) -> None:
    sizes = header.sizes
    if header.type == REAL:
        _label_record(walk, header)
    else:  # how many dimensions were meant is not told: trailing ones of size 1 are dropped
        rank = max((n for n, size in enumerate(sizes, 1) if size != 1), default=0)
        header.dims = sizes[:rank]
    (_full if header.storage == FULL else _sparse)(walk, header)
    header.own["storage"] = "full" if header.storage == FULL else "sparse"


def _label_record(walk: Walk, header: Header) -> None:
    record = walk.next("the label record")
    lists, first, rank = walk.integers(record, 4, 3)
    if not 0 <= rank <= MAX_RANK or any(size != 1 for size in header.sizes[max(0, rank) :]):
        walk.refuse("wrong number of dimensions", record,
                    f"0 to {MAX_RANK}, all others of size 1", rank)  # fmt: skip
    header.dims = header.sizes[:rank]
    (second,) = walk.integers(record, 28, 1)
    named = rank if second else 0  # without: neither names nor status
    (extra,) = walk.integers(record, 32 + 17 * named, 1)
    if not 0 <= extra <= MAX_RANK or record.nbytes != LABEL_BYTES + 17 * named + WORD_CHARS * extra:
        walk.refuse("the label record has a wrong length", record,
                    f"{LABEL_BYTES + 17 * named} bytes and {extra} element names",
                    f"{record.nbytes} bytes")  # fmt: skip
    raw = walk.payload(record)
    own = header.own
    own["coefficient"] = text(raw[16:28]).rstrip(" ")
    if (first, second) != (1, 1):
        own["logical"] = [first, second]
    names = _words(raw[32 : 32 + WORD_CHARS * named])
    status = text(raw[32 + WORD_CHARS * named : 32 + 13 * named])
    numbers = list(walk.integers(record, 32 + 13 * named, named)) if named else []
    if any(numbers):
        own["numbers"] = numbers
    if extra:
        own["elements"] = _words(raw[LABEL_BYTES + 17 * named :])
    if set(status) - set("kue"):
        walk.refuse("unknown status of a dimension", record, "k, u or e", repr(status))
    kept = list(dict.fromkeys(n for n, letter in zip(names, status, strict=True) if letter == "k"))
    if lists != len(kept):
        walk.refuse("wrong number of label lists", record, len(kept), lists)
    _axes(walk, header, names, status)


def _words(raw: bytes) -> list[str]:
    """Return words of 12 characters without the blanks behind them."""
    whole = text(raw)
    return [whole[i : i + WORD_CHARS].rstrip(" ") for i in range(0, len(whole), WORD_CHARS)]


def _axes(walk: Walk, header: Header, names: list[str], status: str) -> None:
    """Read the label lists and name the axes; keep what cannot be told from those."""
    known: dict[str, list[str]] = {}
    explicit = iter(header.own.get("elements", ()))
    splits: list[int] = []
    axes = []
    for name, letter, size in zip(names, status, header.dims, strict=False):
        shown = None if PLACEHOLDER.fullmatch(name) else name
        if letter == "k":
            if name not in known:
                known[name] = _labels(walk, size, name, splits)
            labels: list[str] | None = known[name]
        else:
            labels = [word for word in [next(explicit, None)] if word] if letter == "e" else None
            labels = labels if labels and size == 1 else None
        if labels is not None and len(labels) != size:
            record = walk.peek()
            place = record.offset if record else walk.offset
            raise Corrupt(
                f"set '{name}' has {len(labels)} labels for a dimension of {size}",
                path=walk.source.path,
                where=f"header '{header.name}', byte {place}",
            )
        axes.append(Axis(name=shown, labels=labels))
    header.axes = axes if any(axis.to_dict() for axis in axes) else []
    if names != set_names([axis.name for axis in axes]):
        header.own["sets"] = names
    if status != "".join("u" if axis.labels is None else "k" for axis in axes):
        header.own["status"] = status
    if splits:
        header.own["label_split"] = max(splits)


def set_names(names: list[str | None]) -> list[str]:
    """Return the set names of axes: their own, and the usual placeholders for the others."""
    return [name or f"Unk{number}" for number, name in enumerate(names, 1)]


def _labels(walk: Walk, size: int, name: str, splits: list[int]) -> list[str]:
    parts, _ = _strings(walk, size, WORD_CHARS, f"the label list of set '{name}'")
    walk.label_count += size
    if walk.label_count * LABEL_MEMORY > walk.source.max_memory:
        raise TooLarge(
            f"labels need more than {walk.label_count * LABEL_MEMORY} bytes",
            path=walk.source.path,
            where=f"header '{walk.header}'",
            expected=f"at most {walk.source.max_memory} (--max-memory)",
        )
    pieces = [
        walk.records.bytes_at(offset, WORD_CHARS * count)
        for offset, count in zip(parts.offsets, parts.counts, strict=True)
    ]
    raw = b"".join(pieces)
    if parts.counts[0] != min(size, strings_limit(WORD_CHARS)):
        splits.append(parts.counts[0])
    found = walk.labels.get(raw)
    if found is None:
        found = walk.labels[raw] = _words(raw)
    else:
        walk.label_count -= size
    return found


def _full(walk: Walk, header: Header) -> None:
    sizes = header.sizes
    record = walk.next("the dimension record", DIMENSION_BYTES)
    counter, rank, *found = walk.integers(record, 4, 2 + MAX_RANK)
    if rank != MAX_RANK or tuple(found) != sizes:
        walk.refuse("the dimension record tells of another array", record, list(sizes), found)
    total, done = prod(sizes), 0
    counters = array("i", [counter])
    parts = _Boxes(sizes)
    while done < total or len(counters) == 1:  # an array without values has one part, too
        done += _usual_part(walk, parts, counters) or _part(walk, parts, counters)
    header.parts = parts.parts(walk, record, total)
    _note_counters(header, counters)
    if parts.in_order:
        _note_split(header, header.parts.counts, sizes, [FULL_LIMIT, DELPHI_LIMIT])


def _usual_part(walk: Walk, parts: _Boxes, counters: array[int]) -> int:
    """Pass the two records of a part in which nothing is unusual; return its values, else 0."""
    found = walk.records.part(walk.offset)
    if found is None:
        return 0
    first, *box, second, count = found
    if parts.volume(box) != count or not count:
        return 0
    counters.append(first)
    counters.append(second)
    parts.add(box, walk.pass_part(count))
    return count


def _part(walk: Walk, parts: _Boxes, counters: array[int]) -> int:
    """Pass the two records of a part, and refuse whatever is wrong with them."""
    record = walk.next("the position of a part", POSITION_BYTES)
    counter, *box = walk.integers(record, 4, 1 + 2 * MAX_RANK)
    count = parts.checked(walk, record, box)
    record = walk.next("a part of the data", DATA_HEAD + 4 * count)
    counters.append(counter)
    counters.append(walk.integers(record, 4, 1)[0])
    parts.add(box, record.start + DATA_HEAD)
    return count


def _sparse(walk: Walk, header: Header) -> None:
    record = walk.next("the first record of sparse data", SPARSE_BYTES)
    total, *widths = walk.integers(record, 4, 3)
    if widths != [4, 4]:
        walk.refuse("sparse data of unknown widths", record, "4 bytes each", widths)
    comment = text(walk.payload(record, 16)).rstrip(" ")
    if comment:
        header.own["comment"] = comment
    cells = prod(header.sizes)
    if cells > MAX_INT32:
        walk.refuse("sparse data without a position for every value", record,
                    f"at most {MAX_INT32} values", cells)  # fmt: skip
    if not 0 <= total <= cells:
        walk.refuse("more nonzero values than the array has", record, f"at most {cells}", total)
    start = walk.offset
    offsets, counts, counters = array("q"), array("q"), array("i")
    done = 0
    while True:
        record = walk.next("a part of the sparse data")
        counter, whole, here = walk.integers(record, 4, 3)
        if whole != total:
            walk.refuse("a part is of other sparse data", record, f"{total} values", whole)
        if not (0 if done == total else 1) <= here <= total - done:
            walk.refuse("wrong number of values in a record", record, f"1 to {total - done}", here)
        if record.nbytes != SPARSE_HEAD + 8 * here:
            walk.refuse("a part of the sparse data has a wrong length", record,
                        f"{SPARSE_HEAD + 8 * here} bytes", record.nbytes)  # fmt: skip
        offsets.append(record.start + SPARSE_HEAD)
        counts.append(here)
        counters.append(counter)
        done += here
        if done == total:
            break
    header.parts = Parts(offsets, counts, None)
    _check_ratio(walk, header, 4 * cells, walk.offset - start)
    _note_counters(header, counters)
    _note_split(header, counts, (total,), [SPARSE_LIMIT])


def _check_ratio(walk: Walk, header: Header, nbytes: int, stored: int) -> None:
    """Refuse an array far larger than its file, of which a few bytes can promise any size."""
    if nbytes > max(walk.source.max_memory, SPARSE_RATIO * stored):
        raise TooLarge(
            f"header '{header.name}' promises {nbytes} bytes of zeros in {stored} bytes",
            path=walk.source.path,
            where=f"byte {header.offset}",
            expected=f"at most {walk.source.max_memory} (--max-memory)",
            remedy=f"if that is right, allow it with --max-memory {-(-nbytes // (1 << 20))}M",
        )


# --- what deviates from the canonical form --------------------------------------------------------


def _note_counters(header: Header, counters: array[int]) -> None:
    count = len(counters)
    if counters == array("i", range(count, 0, -1)):
        return
    odd = [[n, found] for n, found in enumerate(counters) if found != count - n]
    header.own["counters"] = odd[:MAX_DEVIATIONS]


def _note_split(
    header: Header, counts: array[int], dims: tuple[int, ...], limits: list[int]
) -> None:
    """Keep the limit by which data was split, where it is another than the first of `limits`."""
    for limit in [*limits, counts[0] if counts else 0]:
        if limit > 0:
            pattern, repeats = part_counts(dims, limit)
            if len(counts) == len(pattern) * repeats and counts == array("q", pattern * repeats):
                if limit != limits[0]:
                    header.own["split"] = limit
                return


_BY_TYPE: dict[str, Callable[[Walk, Header], None]] = {
    TEXT: _text,
    INTEGER: _matrix,
    REAL_MATRIX: _matrix,
    REAL: _real,
    REAL_BARE: _real,
}
