"""Headers written record by record, in bounded memory and with the rules of `layout`."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, prod
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.blocks import block_bytes, blocks
from raconvert.errors import Corrupt, WouldLose
from raconvert.files.copy import write_all
from raconvert.files.places import write_failed

from .layout import (
    DATA_HEAD,
    FULL,
    FULL_LIMIT,
    INTEGER,
    LONG_CHARS,
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
    part_counts,
    strings_limit,
)
from .plan import string_width
from .records import BLANKS, LAHEY, LAHEY_START, byte_order, framed, marks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import FileIO
    from typing import Any

    from raconvert.plugin import Array, Target

    from .plan import Planned, Planning

    Values = np.ndarray[Any, Any]

BUFFER_BYTES = 1 << 20
SPARSE_BELOW = 0.6  # of nonzero values: what the programs of GEMPACK 12.1 store sparse


def write_file(planned: Planned, target: Target) -> None:
    """Write all headers, the hidden ones at their places among the others."""
    try:
        out = _Out(target.open(), planned.framing)
        hidden = sorted(planned.hidden, key=lambda kept: kept.get("before", 0))
        for number, header in enumerate(planned.headers):
            while hidden and hidden[0].get("before", 0) <= number:
                _hidden(out, hidden.pop(0))
            _header(out, header, target)
        for kept in hidden:
            _hidden(out, kept)
        out.flush()
    except OSError as error:
        raise write_failed(target.path, error) from error


class _Out:
    """The file, written through one buffer."""

    def __init__(self, file: FileIO, framing: str) -> None:
        self.framing = framing
        self.order = byte_order(framing)
        self._file = file
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._filled = 0
        self._layouts: dict[int, Struct] = {}
        if framing == LAHEY:
            self._put(LAHEY_START)

    def record(self, *parts: Any) -> None:
        """Write one record made of these parts."""
        for piece in framed(self.framing, parts):
            self._put(piece)

    def begin(self, nbytes: int, head: bytes) -> bytes:
        """Begin a record whose data follows in pieces; return what ends it."""
        lead, trail = marks(self.framing, nbytes)
        self._put(lead)
        self._put(head)
        return trail

    def put(self, values: Values) -> None:
        """Write contiguous values."""
        self._put(values.view(np.uint8).data)

    def end(self, trail: bytes) -> None:
        """End a record."""
        self._put(trail)

    def numbers(self, *values: int) -> bytes:
        """Return int32 numbers as bytes."""
        layout = self._layouts.get(len(values))
        if layout is None:
            layout = self._layouts[len(values)] = Struct(f"{self.order}{len(values)}i")
        return layout.pack(*values)

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


def _counters(total: int, odd: list[list[int]]) -> Iterator[int]:
    """Yield the counters of so many records, down to 1, but for the odd ones of the source."""
    changed = {n: found for n, found in odd if n < total}
    for n in range(total):
        yield changed.get(n, total - n)


def _second(out: _Out, raw: str, kind: str, storage: str, long: str, sizes: Iterable[int]) -> None:
    sizes = list(sizes)
    out.record(_padded(raw, NAME_CHARS))
    out.record(
        BLANKS,
        kind.encode(),
        storage.encode(),
        _padded(long, LONG_CHARS),
        out.numbers(len(sizes), *sizes),
    )


def _hidden(out: _Out, kept: dict[str, Any]) -> None:
    """Write a housekeeping header from what the metadata says of it."""
    name = kept["name"]
    if "text" not in kept:
        out.record(_padded(name, NAME_CHARS))
        for payload in kept.get("records", ()):
            out.record(payload)
        return
    lines, width = kept["text"], kept["width"]
    _second(out, name, TEXT, FULL, kept.get("long", ""), (len(lines), width))
    cells = b"".join(_padded(line, width) for line in lines)
    _strings(out, cells, width, kept.get("split"), kept.get("counters", []))


def _strings(
    out: _Out,
    cells: bytes,
    width: int,
    split: int | None = None,
    odd: list[list[int]] | None = None,
) -> None:
    """Write a list of strings of one width that is in memory whole."""
    count = len(cells) // width
    step = split or strings_limit(width)
    counters = _counters(max(1, ceil(count / step)), odd or [])
    for start, counter in zip(range(0, max(1, count), step), counters, strict=True):
        here = min(step, count - start)
        head = out.numbers(counter, count, here)
        out.record(BLANKS, head, cells[start * width : (start + here) * width])


def _header(out: _Out, header: Planning, target: Target) -> None:
    array = header.array
    feed = _Feed(out, array, target, header)
    if header.type == TEXT:
        width = string_width(array)
        _second(out, header.raw, TEXT, FULL, header.long, (header.dims[0], width))
        _text(out, header, feed, width)
        return
    if header.type not in (REAL, REAL_BARE):
        _second(out, header.raw, header.type, FULL, header.long, header.dims)
        _matrix(out, header, feed)
        return
    nonzero = _nonzero(array, target, header.storage)
    storage = FULL if nonzero is None else SPARSE
    sizes = (*header.dims, *[1] * (MAX_RANK - len(header.dims)))
    _second(out, header.raw, header.type, storage, header.long, sizes)
    if header.type == REAL:
        _label_record(out, header)
    if nonzero is None:
        _full(out, header, feed, sizes)
    else:
        _sparse(out, header, feed, nonzero)


def _label_record(out: _Out, header: Planning) -> None:
    rank = len(header.dims)
    first, second = header.own.get("logical", [1, 1])
    status = header.status
    lists: dict[str, list[str]] = {}
    for (name, labels), letter in zip(header.sets, status, strict=True):
        if letter == "k" and labels is not None:
            lists.setdefault(name, labels)
    elements = header.own.get("elements", [])
    numbers = header.own.get("numbers", [])
    named = []
    second = second or int("k" in status)
    if second:
        numbers = numbers if len(numbers) == rank else [0] * rank
        names = b"".join(_padded(name, WORD_CHARS) for name, _ in header.sets)
        named = [names, status.encode(), out.numbers(*numbers)]
    out.record(
        BLANKS,
        out.numbers(len(lists), first, rank),
        _padded(header.coefficient, WORD_CHARS),
        out.numbers(second),
        *named,
        out.numbers(len(elements)),
        b"".join(_padded(word, WORD_CHARS) for word in elements),
    )
    for labels in lists.values():
        cells = b"".join(_padded(label, WORD_CHARS) for label in labels)
        _strings(out, cells, WORD_CHARS, header.own.get("label_split", None))


# --- data -----------------------------------------------------------------------------------------


class _Feed:
    """The elements of an array in stored order, in the form in which the file holds them."""

    def __init__(self, out: _Out, array: Array, target: Target, header: Planning) -> None:
        self._array = array
        self._dtype = np.dtype(f"{out.order}{'i4' if header.type == INTEGER else 'f4'}")
        self._target = target
        self._header = header
        self._blocks = target.counted(blocks(array, block_bytes(target.max_memory)))
        self._rest: Values = np.empty(0, self._dtype)
        self._strings = 0  # done

    def pieces(self, count: int) -> Iterator[Values]:
        """Yield the next `count` elements in pieces, each valid until the next is asked for."""
        while count:
            if not len(self._rest):
                self._rest = self._converted(self._next())
            piece, self._rest = self._rest[:count], self._rest[count:]
            count -= len(piece)
            yield piece

    def all(self) -> Iterator[Values]:
        """Yield all elements, block by block."""
        for block in self._blocks:
            yield self._converted(block.reshape(-1))

    def _next(self) -> Values:
        block = next(self._blocks, None)
        if block is None:
            raise Corrupt(f"array '{self._array.name}' ended early")
        return block.reshape(-1)

    def _converted(self, block: Values) -> Values:
        if self._header.type == TEXT:
            return self._cells(block)
        return block.astype(self._dtype, copy=False)

    def _cells(self, block: Values) -> Values:
        """Return strings of one-byte characters, blanks behind them."""
        if block.dtype.kind == "U":
            block = _latin(block, self._array.name)
        width = block.dtype.itemsize
        cells = block.view(np.uint8).reshape(-1, width)
        inside = np.maximum.accumulate(cells[:, ::-1] != 0, axis=1)[:, ::-1]
        last = inside.copy()
        last[:, :-1] &= ~inside[:, 1:]
        self._see_blanks(block, (last & (cells == 32)).any(axis=1))
        self._strings += len(block)
        blank = np.where(inside, cells, np.uint8(32))
        return np.ascontiguousarray(blank).view(f"S{width}").reshape(-1)

    def _see_blanks(self, block: Values, odd: Values) -> None:
        """Refuse strings that end with a blank, which is padding here, unless that is allowed."""
        if not odd.any():
            return
        if not self._header.may_cut:
            at = int(np.flatnonzero(odd)[0])
            raise WouldLose(
                f"string {bytes(block[at])!r} of array '{self._array.name}' ends with a blank, "
                "which is padding in HAR and would not come back",
                where=f"[{self._strings + at}]",
                remedy="nothing was written; --allow elements leaves such blanks out; npy, npz "
                "and h5 hold them",
            )
        self._header.cut = True


def _latin(block: Values, name: str) -> Values:
    """Return unicode strings as one-byte characters, all of the same width."""
    width = block.dtype.itemsize // 4
    points = block.astype(f"<U{width}", copy=False).view("<u4")
    if (points > 255).any():
        odd = int(np.flatnonzero(points > 255)[0]) // width
        raise WouldLose(
            f"string {str(block[odd])!r} of array '{name}' has characters beyond Latin-1",
            remedy="nothing was written; npy, npz and h5 hold it",
        )
    return points.astype(np.uint8).view(f"S{width}")


def _text(out: _Out, header: Planning, feed: _Feed, width: int) -> None:
    count = header.dims[0]
    step = header.own.get("split", None) or strings_limit(width)
    odd = header.own.get("counters", [])
    counters = _counters(max(1, ceil(count / step)), odd)
    for start, counter in zip(range(0, max(1, count), step), counters, strict=True):
        here = min(step, count - start)
        trail = out.begin(16 + here * width, BLANKS + out.numbers(counter, count, here))
        for piece in feed.pieces(here):
            out.put(piece)
        out.end(trail)


def _matrix(out: _Out, header: Planning, feed: _Feed) -> None:
    dims = header.dims
    limit = header.own.get("split", MATRIX_LIMIT)
    pattern, repeats = part_counts(dims, limit)
    counters = _counters(len(pattern) * repeats, header.own.get("counters", []))
    for box, counter in zip(boxes(dims, limit), counters, strict=True):
        count = _volume(box)
        trail = out.begin(32 + 4 * count, BLANKS + out.numbers(counter, *dims, *box))
        for piece in feed.pieces(count):
            out.put(piece)
        out.end(trail)


def _volume(box: list[int]) -> int:
    return prod(last - first + 1 for first, last in zip(box[::2], box[1::2], strict=True))


def _full(out: _Out, header: Planning, feed: _Feed, sizes: tuple[int, ...]) -> None:
    limit = header.own.get("split", FULL_LIMIT)
    pattern, repeats = part_counts(sizes, limit)
    odd = header.own.get("counters", [])
    counters = _counters(1 + 2 * len(pattern) * repeats, odd)
    out.record(BLANKS, out.numbers(next(counters), MAX_RANK, *sizes))
    for box in boxes(sizes, limit):
        out.record(BLANKS, out.numbers(next(counters), *box))
        count = _volume(box)
        trail = out.begin(DATA_HEAD + 4 * count, BLANKS + out.numbers(next(counters)))
        for piece in feed.pieces(count):
            out.put(piece)
        out.end(trail)


def _nonzero(array: Array, target: Target, storage: str) -> int | None:
    """Return how many values sparse storage keeps, or None for full storage.

    Every bit pattern but that of +0.0 is kept. Counting ends as soon as the answer is known.
    """
    limit = array.count if storage == "sparse" else array.count * SPARSE_BELOW
    if storage == "full" or (storage == "auto" and (array.count == 0 or array.ndim == 0)):
        return None
    found = 0
    for block in blocks(array, block_bytes(target.max_memory)):
        found += _count(block.reshape(-1))
        if found > limit or (storage == "auto" and found >= limit):
            return None
    return found


def _count(block: Values) -> int:
    values = block.astype("<f4", copy=False)
    return int(np.count_nonzero(values.view("<u4")))


def _sparse(out: _Out, header: Planning, feed: _Feed, total: int) -> None:
    comment = header.own.get("comment", "")
    out.record(BLANKS, out.numbers(total, 4, 4), _padded(comment, 80))
    step = header.own.get("split", SPARSE_LIMIT)
    counters = _counters(max(1, ceil(total / step)), header.own.get("counters", []))
    if total == 0:
        out.record(BLANKS, out.numbers(next(counters), 0, 0))
        return
    done = 0
    for places, values in _in_steps(_stored(feed), step):
        head = out.numbers(next(counters, 0), total, len(places))
        out.record(BLANKS, head, places.astype(f"{out.order}i4").tobytes(), values.tobytes())
        done += len(places)
    if done != total:
        raise Corrupt(f"array '{header.array.name}' changed while it was written")


def _stored(feed: _Feed) -> Iterator[tuple[Values, Values]]:
    """Yield positions, from 1, and values of what is not +0.0."""
    start = 1
    for block in feed.all():
        kept = np.flatnonzero(block.view("u4"))
        yield kept + start, block[kept]
        start += len(block)


def _in_steps(pairs: Iterable[tuple[Values, Values]], step: int) -> Iterator[tuple[Values, Values]]:
    """Yield positions and values in records of `step`, the last one with the rest."""
    held: tuple[Values, Values] | None = None
    for pair in pairs:
        if held is not None and len(held[0]):
            places, values = (np.concatenate(both) for both in zip(held, pair, strict=True))
        else:
            places, values = pair
        whole = len(places) - len(places) % step
        for first, stop in pairwise(range(0, whole + 1, step)):
            yield places[first:stop], values[first:stop]
        held = places[whole:], values[whole:]
    if held is not None and len(held[0]):
        yield held
