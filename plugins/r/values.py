"""Array sources over vectors of R: numbers, marks of missing values, texts, factors and times."""

from __future__ import annotations

import numpy as np

from raconvert.arrays.sources import Decoded
from raconvert.errors import Corrupt

from .items import Parser
from .tables import NA_INTEGER, NA_INTEGER64, STR, UNITS, WIDTHS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .items import Node
    from .streams import Stream

    Values = np.ndarray[Any, Any]

STEP = 1 << 18  # bytes decoded at once
TABLE_BYTES = 1 << 16  # the most padding of the labels of a factor in one table
FACTORS = {unit: factor for rows in UNITS.values() for unit, factor in rows}


class File:
    """The parts that all vectors of a file share: decoded bytes, byte order, encoding."""

    def __init__(self, stream: Stream, order: str, native: str | None) -> None:
        self.stream = stream
        self.order = order
        self.native = native

    def raw(self, node: Node) -> Iterator[bytes]:
        """Yield the bytes of the elements of a vector, in pieces of whole elements."""
        if node.held is not None:
            yield node.held
            return
        cursor = self.stream.cursor(node.at)
        try:
            yield from cursor.pieces(node.count * WIDTHS[node.kind])
        finally:
            self.stream.keep(cursor)

    def numbers(self, node: Node, code: str) -> Iterator[Values]:
        """Yield the numbers of a vector, as they are stored."""
        if node.sequence is None:
            for piece in self.raw(node):
                yield np.frombuffer(piece, self.order + code)
            return
        first, step = node.sequence
        for begin in range(0, node.count, STEP >> 3):
            end = min(node.count, begin + (STEP >> 3))
            yield (np.arange(begin, end, dtype=np.int64) * step + first).astype(self.order + code)

    def strings(self, node: Node) -> Iterator[tuple[int, bytes | None]]:
        """Yield flags and bytes of all strings of a vector."""
        cursor = self.stream.cursor(node.at)
        parser = self.parser(cursor)
        try:
            for _ in range(node.count):
                yield parser.string()
        finally:
            self.stream.keep(cursor)

    def parser(self, cursor: Any) -> Parser:
        """Return a parser of the objects at a cursor."""
        parser = Parser(cursor, self.stream.source, self.native)
        parser.set_order(self.order)
        return parser

    def texts(self, node: Node) -> Iterator[str | bytes | None]:
        """Yield all strings of a vector, None for NA; bytes, if some of them are not text."""
        if node.deferred is not None:
            for piece in self.numbers(node.deferred, "i4"):
                yield from (None if n == NA_INTEGER else str(n) for n in piece.tolist())
        elif "bytes" in node.codings:
            yield from (raw for _, raw in self.strings(node))
        elif node.texts is not None:
            yield from node.texts
        else:
            parser = self.parser(None)
            for flags, raw in self.strings(node):
                yield None if raw is None else parser.text(flags, raw)


class Vector(Decoded):
    """An array source that makes its pieces anew whenever it is read."""

    def __init__(
        self,
        file: File,
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        pieces: Callable[[], Iterator[Values]],
    ) -> None:
        source = file.stream.source
        what = f"'{source.path}': '{name}'"
        super().__init__(shape, dtype, what=what, max_memory=source.max_memory)
        self._pieces = pieces

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces in stored order."""
        step = max(1, max_bytes // self.dtype.itemsize)
        for piece in self._pieces():
            for first in range(0, piece.size, step):
                yield piece[first : first + step]


def logicals(file: File, node: Node) -> Iterator[Values]:
    """Yield truth values, False where one is missing."""
    for piece in file.numbers(node, "i4"):
        yield piece == 1


def missing(file: File, node: Node) -> Iterator[Values]:
    """Yield True for each element that is NA."""
    if node.kind == STR:
        yield from _batches((text is None for text in file.texts(node)), np.dtype("?"))
        return
    code, na = ("i8", NA_INTEGER64) if WIDTHS[node.kind] == 8 else ("i4", NA_INTEGER)
    for piece in file.numbers(node, code):
        yield piece == na


def texts(file: File, node: Node, dtype: np.dtype[Any]) -> Iterator[Values]:
    """Yield texts, or bytes, empty where one is missing."""
    empty: str | bytes = "" if dtype.kind == "U" else b""
    all_texts = (empty if text is None else text for text in file.texts(node))
    yield from _batches(all_texts, dtype)


def labels(file: File, node: Node, levels: list[str], dtype: np.dtype[Any]) -> Iterator[Values]:
    """Yield the labels of a factor, empty where one is missing."""
    few = (len(levels) + 1) * dtype.itemsize <= TABLE_BYTES + 8 * sum(map(len, levels))
    table = np.array(["", *levels], dtype) if few else None
    for piece in file.numbers(node, "i4"):
        codes = np.where(piece == NA_INTEGER, 0, piece)
        if ((codes < 0) | (codes > len(levels)) | (piece == 0)).any():
            raise Corrupt("a factor has a code without a level", path=file.stream.source.path,
                          expected=f"1 to {len(levels)}")  # fmt: skip
        step = max(1, STEP // dtype.itemsize)
        for first in range(0, codes.size, step):
            part = codes[first : first + step]
            if table is not None:
                yield table[part]
            else:
                yield np.array([levels[code - 1] if code else "" for code in part], dtype)


def times(file: File, node: Node, unit: str) -> Iterator[Values]:
    """Yield exact dates or times, NaT where one is missing."""
    code = "i4" if WIDTHS[node.kind] == 4 else "f8"
    for piece in file.numbers(node, code):
        missing = piece == NA_INTEGER if code == "i4" else np.isnan(piece)
        counts = np.rint(np.where(missing, 0, piece) * FACTORS[unit]).astype("<i8")
        counts[missing] = np.iinfo(np.int64).min
        yield counts.view(f"<M8[{unit}]")


def _batches(values: Iterator[Any], dtype: np.dtype[Any]) -> Iterator[Values]:
    """Yield the values as arrays of about `STEP` bytes."""
    step = max(1, STEP // dtype.itemsize)
    batch: list[Any] = []
    for value in values:
        batch.append(value)
        if len(batch) >= step:
            yield np.array(batch, dtype)
            batch = []
    if batch:
        yield np.array(batch, dtype)
