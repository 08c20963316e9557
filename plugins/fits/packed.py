"""FITS inside gzip: a source of the inflated bytes, and an array source over a part of them.

Bytes are inflated front to back. Up to `STATES` states of the decoder are stored on the way, and a
later read begins at the nearest one before it; work is in proportion to the inflated bytes.
"""

from __future__ import annotations

import zlib
from math import prod
from threading import Lock
from typing import TYPE_CHECKING

from raconvert.errors import Corrupt, Unsupported
from raconvert.files.inflate import GZIP_WBITS, MAX_RATIO, PIECE_BYTES
from raconvert.files.source import HEAD_BYTES, Source
from raconvert.plugin import trailing_note

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy as np

    from raconvert.plugin import Element

    Values = np.ndarray[Any, Any]

__all__ = ["GZIP_MAGIC", "Packed", "elements_at", "is_packed", "refuse_packed", "unpacked"]

GZIP_MAGIC = b"\x1f\x8b"
STATES = 64  # of the decoder, 40 KB each
APART = 4 << 20  # bytes between two states at first; doubled each time that there are STATES


def is_packed(source: Source) -> bool:
    """True for a file that begins as gzip."""
    return source.head.startswith(GZIP_MAGIC)


def unpacked(source: Source) -> Source:
    """The source itself, or a source of its inflated bytes if it is compressed."""
    return Packed(source) if is_packed(source) else source


class _State:
    """The decoder between two of its pieces, and the positions in its output and input."""

    __slots__ = ("at", "decoder", "next", "tail")

    def __init__(self, decoder: Any, at: int, following: int, tail: bytes) -> None:
        self.decoder = decoder
        self.at = at  # bytes inflated so far
        self.next = following  # offset in the file of the next bytes to read
        self.tail = tail  # bytes read that the decoder has not taken

    def copy(self) -> _State:
        return _State(self.decoder.copy(), self.at, self.next, self.tail)


class Packed(Source):
    """The inflated bytes of a file. Until their end is reached, `size` is an upper bound."""

    __slots__ = ("_apart", "_end", "_lock", "_piece", "_state", "_states", "file", "rest")

    def __init__(self, file: Source) -> None:
        super().__init__(file.path, limits=file.limits, place=file.place)
        self.used, self.seen = file.used, file.seen
        self.file = file
        self.rest = 0  # bytes behind the last member of the file
        self._lock = Lock()
        self._end: int | None = None
        self._apart = APART
        self._piece = 0, b""  # offset and bytes of the last piece
        self._state = _State(zlib.decompressobj(GZIP_WBITS), 0, 0, b"")
        self._states = [self._state.copy()]

    @property
    def head(self) -> bytes:
        """The first 4 KiB of the inflated bytes."""
        if self._head is None:
            self._head = self.read_at(0, HEAD_BYTES)
        return self._head

    @property
    def size(self) -> int:
        """The number of inflated bytes, or an upper bound until their end is reached."""
        return MAX_RATIO * self.file.size if self._end is None else self._end

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Return up to `nbytes` inflated bytes from `offset`; fewer only at their end.

        Raises `Corrupt` if they cannot be inflated.
        """
        parts: list[bytes] = []
        with self._lock:
            while nbytes:
                start, piece = self._piece
                if not start <= offset < start + len(piece):
                    start, piece = self._inflated(offset)
                if not piece:
                    break
                part = piece[offset - start : offset - start + nbytes]
                parts.append(part)
                offset, nbytes = offset + len(part), nbytes - len(part)
        return b"".join(parts)

    def read_exact(self, offset: int, nbytes: int, what: str) -> bytes:
        """Return exactly `nbytes` inflated bytes. Raises `Corrupt`, naming `what`, if fewer."""
        data = self.read_at(offset, nbytes)
        if len(data) < nbytes:
            raise Corrupt(
                f"file ends inside {what}", path=self.path, where=f"byte {offset}, inflated",
                expected=f"{nbytes} bytes", got=len(data),
            )  # fmt: skip
        return data

    def _inflated(self, offset: int) -> tuple[int, bytes]:
        """Offset and bytes of the piece with the byte at `offset`; no bytes behind the end."""
        if offset < self._state.at:
            before = (state for state in self._states if state.at <= offset)
            self._state = max(before, key=lambda state: state.at).copy()
        while True:
            start, piece = self._state.at, self._more()
            if not piece or offset < start + len(piece):
                self._piece = start, piece
                return self._piece

    def _more(self) -> bytes:
        """Inflate the next piece, and store the state behind it if due; empty at the end."""
        state = self._state
        while True:
            if state.decoder.eof and not self._has_member(state):
                self._end = state.at
                return b""
            data = state.tail or self._read(state)
            if not data:
                raise Corrupt("gzip: deflated data is cut off: it has no end", path=self.path)
            try:
                piece: bytes = state.decoder.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise Corrupt(
                    f"gzip: data cannot be inflated ({error})", path=self.path,
                    where=f"byte {state.next}",
                ) from error  # fmt: skip
            state.tail = state.decoder.unconsumed_tail
            state.at += len(piece)
            if piece:
                break
        if state.at - self._states[-1].at >= self._apart:
            self._states.append(state.copy())
            if len(self._states) > STATES:
                self._states = self._states[::2]
                self._apart *= 2
        return piece

    def _read(self, state: _State) -> bytes:
        """The next bytes of the file."""
        data = self.file.read_at(state.next, PIECE_BYTES)
        state.next += len(data)
        return data

    def _has_member(self, state: _State) -> bool:
        """True if another member follows the one that has ended; the decoder then begins it."""
        data = state.decoder.unused_data
        if len(data) < len(GZIP_MAGIC):
            data += self._read(state)
        if not data.startswith(GZIP_MAGIC):
            if data.strip(b"\0"):  # NULs are padding
                self.rest = len(data) + self.file.size - state.next
            return False
        state.decoder, state.tail = zlib.decompressobj(GZIP_WBITS), data
        return True

    def note(self) -> list[str]:
        """A note on bytes behind the compressed data, if there are any."""
        return [trailing_note(self.rest, "the compressed data")] if self.rest else []


def refuse_packed(source: Source, what: str) -> None:
    """Raise `Unsupported` for a file inside gzip; `what` begins the message."""
    if isinstance(source, Packed) or is_packed(source):
        from raconvert.files.quoting import operand

        raise Unsupported(
            f"{what} in a file that is compressed as a whole", path=source.path,
            remedy=f"unpack it first: gunzip {operand(source.path)}",
        )  # fmt: skip


def elements_at(
    source: Source, offset: int, shape: tuple[int, ...], stored: Element
) -> dict[str, Any]:
    """The `extent` or `data` of an array whose elements are at `offset` of the (inflated) file."""
    from raconvert.arrays.dtypes import needs_swap

    nbytes = prod(shape) * stored.nbytes
    if not isinstance(source, Packed):
        return {"extent": source.extent(offset, nbytes, needs_swap(stored))}
    return {"data": lambda: _Inflated(source, offset, shape, stored)}


class _Inflated:
    """Array source over contiguous elements in inflated bytes."""

    by_regions = True

    def __init__(
        self, source: Packed, offset: int, shape: tuple[int, ...], stored: Element
    ) -> None:
        from raconvert.arrays.dtypes import dtype_of, little

        self.shape = shape
        self.dtype: np.dtype[Any] = dtype_of(little(stored))
        self._stored = dtype_of(stored)
        self._source = source
        self._offset = offset

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield elements in their order, in pieces of at most `max_bytes`."""
        import numpy as np

        width, count = self.dtype.itemsize, prod(self.shape)
        step = max(1, max_bytes // width)
        for first in range(0, count, step):
            here = min(step, count - first)
            raw = self._source.read_exact(self._offset + first * width, here * width, "the data")
            yield np.frombuffer(raw, self._stored).astype(self.dtype)

    def __getitem__(self, key: Any) -> Any:
        from raconvert.arrays.memory import check_memory
        from raconvert.arrays.regions import full_key, picked, region

        full = full_key(key, len(self.shape))
        width = self.dtype.itemsize
        lengths = (
            len(range(length)[index]) if isinstance(index, slice) else 1
            for index, length in zip(full, self.shape, strict=True)
        )
        what = f"'{self._source.path}': a region of an image"
        check_memory(prod(lengths) * width, self._source.max_memory, what)
        strides = tuple(width * prod(self.shape[n + 1 :]) for n in range(len(self.shape)))
        path, offset = self._source.path, self._offset
        values = region(
            self, path, offset, self._stored, self.shape, strides, full  # type: ignore[arg-type]
        )  # fmt: skip
        converted = values.astype(self.dtype)
        return picked(converted, ...) if self.shape else converted

    def read_into(self, memory: memoryview, offset: int) -> int:
        """Fill memory with inflated bytes; return their number."""
        data = self._source.read_exact(offset, len(memory), "the data")
        memory[:] = data
        return len(data)
