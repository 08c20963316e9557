"""Headers written record by record, in bounded memory, split by the rules of `tables`."""

from __future__ import annotations

from itertools import tee
from math import ceil, prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.blocks import Feed, block_bytes, blocks
from raconvert.errors import Corrupt, WouldLose
from raconvert.files.copy import write_all
from raconvert.files.paths import write_failed
from raconvert.plugin import refused

from .header import (
    DATA,
    DIMENSIONS,
    LABELS,
    MATRIX,
    POSITION,
    SECOND,
    SPARSE_PART,
    SPARSE_START,
    STRINGS,
)
from .records import LAHEY, LAHEY_START, byte_order, framed, marks
from .tables import (
    FULL,
    FULL_LIMIT,
    INTEGER,
    MATRIX_LIMIT,
    MAX_RANK,
    NAME_CHARS,
    REAL,
    REAL_BARE,
    SPARSE,
    SPARSE_LIMIT,
    TEXT,
    WORD_CHARS,
    boxes,
    number_of_parts,
    strings_limit,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from io import FileIO
    from typing import Any

    from raconvert.plugin import Array, Target

    from .header import Layout
    from .metadata import FilePlan, HeaderPlan

    Values = np.ndarray[Any, Any]

BUFFER_BYTES = 1 << 20
SPARSE_BELOW = 0.6  # share of nonzero values, below which GEMPACK 12.1 stores sparse


def write_file(planned: FilePlan, target: Target) -> None:
    """Write all headers, with the hidden ones in their former order among them."""
    try:
        out = Out(target.open(), planned.framing)
        hidden = sorted(planned.hidden, key=lambda entry: entry.get("before", 0))
        for number, header in enumerate(planned.headers):
            while hidden and hidden[0].get("before", 0) <= number:
                _write_hidden(out, hidden.pop(0))
            write_header(out, header, target)
        for entry in hidden:
            _write_hidden(out, entry)
        out.flush()
    except OSError as error:
        raise write_failed(target.path, error) from error


class Out:
    """The file, written through one buffer; `begins` if its first record is written, too."""

    def __init__(self, file: FileIO, framing: str, *, begins: bool = True) -> None:
        self.framing = framing
        self.order = byte_order(framing)
        self._file = file
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._filled = 0
        if framing == LAHEY and begins:
            self._put(LAHEY_START)

    def name(self, raw: str) -> None:
        """Write the record that begins a header."""
        self.raw(_padded(raw, NAME_CHARS))

    def record(self, layout: Layout, *values: Any, data: bytes = b"") -> None:
        """Write one record: a value for each row of its layout, and `data` behind them."""
        self.raw(layout.pack(self.order, *values), data)

    def raw(self, *parts: bytes) -> None:
        """Write one record made of these parts."""
        for piece in framed(self.framing, parts):
            self._put(piece)

    def stream(self, layout: Layout, *values: Any, pieces: Iterable[Values], nbytes: int) -> None:
        """Write one record whose data of `nbytes` comes in contiguous pieces."""
        lead, trail = marks(self.framing, layout.nbytes + nbytes)
        self._put(lead)
        self._put(layout.pack(self.order, *values))
        for piece in pieces:
            self._put(piece.view(np.uint8).data)
        self._put(trail)

    def _put(self, piece: Any) -> None:
        end = self._filled + len(piece)
        if end > BUFFER_BYTES:
            self.flush()
            end = len(piece)
            if end > BUFFER_BYTES:
                write_all(self._file, [piece])
                return
        self._buffer[self._filled : end] = piece
        self._filled = end

    def flush(self) -> None:
        """Write what is buffered."""
        write_all(self._file, [self._buffer[: self._filled]])
        self._filled = 0


def _padded(words: str, length: int) -> bytes:
    return words.encode("latin-1").ljust(length)


def _counters(total: int, odd: Sequence[list[int]]) -> Iterator[int]:
    """Yield the counters of `total` records, down to 1; `odd` lists index and counter of others."""
    changed = {n: counter for n, counter in odd if n < total}
    for n in range(total):
        yield changed.get(n, total - n)


def _write_hidden(out: Out, entry: dict[str, Any]) -> None:
    """Write a housekeeping header from its entry in the metadata."""
    out.name(entry["name"])
    if "text" not in entry:
        for payload in entry.get("records", ()):
            out.raw(payload)
        return
    lines, width = entry["text"], entry["width"]
    sizes = (len(lines), width)
    out.record(SECOND, TEXT, FULL, entry.get("long", ""), len(sizes), sizes)
    _strings(out, lines, width, entry.get("split"), entry.get("counters", []))


def _strings(
    out: Out,
    words: Sequence[str],
    width: int,
    split: int | None = None,
    odd: Sequence[list[int]] = (),
) -> None:
    """Write a list of strings of one width, which is in memory.

    `odd` lists index and counter of the records whose counter is not the usual one.
    """
    count = len(words)
    cells = b"".join(_padded(word, width) for word in words)
    for start, here, counter in _list_parts(count, split or strings_limit(width), odd):
        data = cells[start * width : (start + here) * width]
        out.record(STRINGS, counter, count, here, data=data)


def _list_parts(count: int, step: int, odd: Sequence[list[int]]) -> Iterator[tuple[int, int, int]]:
    """Yield first element, number of elements and counter of the records of a list."""
    counters = _counters(max(1, ceil(count / step)), odd)
    for start, counter in zip(range(0, max(1, count), step), counters, strict=True):
        yield start, min(step, count - start), counter


def write_header(out: Out, header: HeaderPlan, target: Target) -> None:
    """Write all records of one header."""
    array, real = header.array, header.type in (REAL, REAL_BARE)
    nonzero = _nonzero(array, target, header.storage) if real else None
    storage, sizes = FULL, header.dims
    if real:
        storage = FULL if nonzero is None else SPARSE
        sizes = (*header.dims, *[1] * (MAX_RANK - len(header.dims)))
    elif header.type == TEXT:
        sizes = (header.dims[0], header.width)
    out.name(header.raw)
    out.record(SECOND, header.type, storage, header.long, len(sizes), sizes)
    if header.type == REAL:
        _labels(out, header)
    data = _Elements(out, header, target)
    if header.type == TEXT:
        _text(out, header, data.feed)
    elif not real:
        _matrix(out, header, data.feed)
    elif nonzero is None:
        _full(out, header, data.feed, sizes)
    else:
        _sparse(out, header, data, nonzero)


def _labels(out: Out, header: HeaderPlan) -> None:
    """Write the label record and the label lists."""
    rank, own = len(header.dims), header.own
    first, second = own.get("logical", [1, 1])
    lists: dict[str, list[str]] = {}
    for (name, labels), letter in zip(header.sets, header.status, strict=True):
        if letter == "k" and labels is not None:
            lists.setdefault(name, labels)
    second = second or int("k" in header.status)
    elements = own.get("elements", [])
    numbers = own.get("numbers", [])
    numbers = numbers if len(numbers) == rank else [0] * rank
    names = [name for name, _ in header.sets]
    sets = (names, header.status, numbers) if second else ([], "", [])
    out.record(
        LABELS, len(lists), first, rank, header.coefficient, second, *sets, len(elements), elements
    )
    for labels in lists.values():
        _strings(out, labels, WORD_CHARS, own.get("label_split"))


# --- data -----------------------------------------------------------------------------------------


class _Elements:
    """The elements of an array in stored order, in the form in which the file holds them."""

    def __init__(self, out: Out, header: HeaderPlan, target: Target) -> None:
        self.header = header
        self.dtype = np.dtype(f"{out.order}{'i4' if header.type == INTEGER else 'f4'}")
        self._may_cut = target.allows("elements")
        self._target = target
        self._cut = False  # True once blanks at the end of a string were lost
        self._strings = 0  # strings written so far
        self._blocks = target.counted(blocks(header.array, block_bytes(target.max_memory)))
        dtype = np.dtype(f"S{header.width}") if header.type == TEXT else self.dtype
        self.feed = Feed(self.converted(), dtype, f"array '{header.array.name}'")

    def converted(self) -> Iterator[Values]:
        """Yield all elements, block by block."""
        for block in self._blocks:
            values = block.reshape(-1)
            if self.header.type == TEXT:
                yield self._cells(values)
            else:
                yield values.astype(self.dtype, copy=False)

    def _cells(self, block: Values) -> Values:
        """The strings of a block in one-byte characters, padded with blanks."""
        if block.dtype.kind == "U":
            block = _latin(block, self.header.array.name)
        width = block.dtype.itemsize
        cells = block.view(np.uint8).reshape(-1, width)
        inside = np.maximum.accumulate(cells[:, ::-1] != 0, axis=1)[:, ::-1]
        last = inside.copy()
        last[:, :-1] &= ~inside[:, 1:]
        self._check_blanks(block, (last & (cells == 32)).any(axis=1))
        self._strings += len(block)
        blank = np.where(inside, cells, np.uint8(32))
        return np.ascontiguousarray(blank).view(f"S{width}").reshape(-1)

    def _check_blanks(self, block: Values, end_blank: Values) -> None:
        """Raise `WouldLose` if a string ends with a blank; if that is allowed, report a loss."""
        if not end_blank.any():
            return
        if not self._may_cut:
            at = int(np.flatnonzero(end_blank)[0])
            raise WouldLose(
                f"string {bytes(block[at])!r} of array '{self.header.array.name}' ends with a "
                "blank, which is padding in HAR and would not come back",
                where=f"[{self._strings + at}]",
                remedy="nothing was written; `--allow elements` leaves such blanks out; npy, npz "
                "and h5 hold them",
            )
        if not self._cut:
            self._cut = True
            reason = "blanks at the end of some strings are left out"
            lost = refused(self.header.array.name, "elements", reason, "--allow elements")
            self._target.lost.append(lost)


def _latin(block: Values, name: str) -> Values:
    """Unicode strings as Latin-1 bytes. Raises `WouldLose` for other characters."""
    width = block.dtype.itemsize // 4
    points = block.astype(f"<U{width}", copy=False).view("<u4")
    if (points > 255).any():
        first = int(np.flatnonzero(points > 255)[0]) // width
        raise WouldLose(
            f"string {str(block[first])!r} of array '{name}' has characters beyond Latin-1",
            remedy="nothing was written; npy, npz and h5 hold it",
        )
    return points.astype(np.uint8).view(f"S{width}")


def _text(out: Out, header: HeaderPlan, feed: Feed) -> None:
    count, width, own = header.dims[0], header.width, header.own
    step = own.get("split") or strings_limit(width)
    for _, here, counter in _list_parts(count, step, own.get("counters", [])):
        pieces = feed.pieces(here)
        out.stream(STRINGS, counter, count, here, pieces=pieces, nbytes=here * width)


def _matrix(out: Out, header: HeaderPlan, feed: Feed) -> None:
    dims = header.dims
    limit = header.own.get("split", MATRIX_LIMIT)
    counters = _counters(number_of_parts(dims, limit), header.own.get("counters", []))
    for box, counter in zip(boxes(dims, limit), counters, strict=True):
        count = _volume(box)
        out.stream(MATRIX, counter, dims, box, pieces=feed.pieces(count), nbytes=4 * count)


def _volume(box: list[int]) -> int:
    return prod(last - first + 1 for first, last in zip(box[::2], box[1::2], strict=True))


def _full(out: Out, header: HeaderPlan, feed: Feed, sizes: tuple[int, ...]) -> None:
    limit = header.own.get("split", FULL_LIMIT)
    counters = _counters(1 + 2 * number_of_parts(sizes, limit), header.own.get("counters", []))
    out.record(DIMENSIONS, next(counters), MAX_RANK, sizes)
    for box in boxes(sizes, limit):
        out.record(POSITION, next(counters), box)
        count = _volume(box)
        out.stream(DATA, next(counters), pieces=feed.pieces(count), nbytes=4 * count)


def _nonzero(array: Array, target: Target, storage: str) -> int | None:
    """The number of values to store in sparse storage, or None for full storage.

    All values but +0.0 are stored, so -0.0 is. Counting ends as soon as full storage is decided.
    """
    limit = array.count if storage == "sparse" else array.count * SPARSE_BELOW
    if storage == "full" or (storage == "auto" and (array.count == 0 or array.ndim == 0)):
        return None
    count = 0
    for block in blocks(array, block_bytes(target.max_memory)):
        count += _count(block.reshape(-1))
        if count > limit or (storage == "auto" and count >= limit):
            return None
    return count


def _count(block: Values) -> int:
    values = block.astype("<f4", copy=False)
    return int(np.count_nonzero(values.view("<u4")))


def _sparse(out: Out, header: HeaderPlan, data: _Elements, total: int) -> None:
    own, what = header.own, f"array '{header.array.name}'"
    out.record(SPARSE_START, total, 4, 4, own.get("comment", ""))
    pairs = tee(_nonzeros(data.converted()))
    int32 = np.dtype(f"{out.order}i4")
    positions = Feed((indices.astype(int32) for indices, _ in pairs[0]), int32, what)
    values = Feed((block for _, block in pairs[1]), data.dtype, what)
    for _, here, counter in _list_parts(
        total, own.get("split", SPARSE_LIMIT), own.get("counters", [])
    ):
        both = positions.take(here).tobytes() + values.take(here).tobytes()
        out.record(SPARSE_PART, counter, total, here, data=both)
    if values.more():
        raise Corrupt(f"{what} changed while it was written")


def _nonzeros(blocks: Iterable[Values]) -> Iterator[tuple[Values, Values]]:
    """Yield, for each block, the positions (from 1) and the values that are not +0.0."""
    start = 1
    for block in blocks:
        indices = np.flatnonzero(block.view("u4"))
        yield indices + start, block[indices]
        start += len(block)
