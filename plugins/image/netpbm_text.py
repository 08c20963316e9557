"""Samples of plain netpbm: numbers in text, parsed a piece at a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.sources import Decoded
from raconvert.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Source

    Values = np.ndarray[Any, Any]

PIECE_BYTES = 1 << 18
BLANKS = b" \t\n\v\f\r"
DIGITS = 10  # most in a number: the largest has five, zeros may stand before it
_COMMENT = re.compile(rb"#[^\n\r]*")
_OTHER = re.compile(rb"[^0-9 \t\n\v\f\r]")
_OTHER_BIT = re.compile(rb"[^01]")


class Text(Decoded):
    """Samples of plain text from byte `start`; those of a bitmap (P1) are single digits."""

    def __init__(self, source: Source, start: int, shape: tuple[int, ...], maxval: int) -> None:
        self._bits = source.head.startswith(b"P1")
        dtype = np.dtype("?" if self._bits else "u1" if maxval < 256 else "u2")
        super().__init__(shape, dtype, what=f"'{source.path}'", max_memory=source.max_memory)
        self._source, self._start, self._maxval = source, start, maxval

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in stored order. Raises `Corrupt` for a wrong number of samples."""
        left, step = self.count, max(1, max_bytes // self.dtype.itemsize)
        for text in self._pieces():
            values = self._samples(text)
            left -= len(values)
            if left < 0:
                raise Corrupt("has more samples than its header says", path=self._source.path)
            yield from (values[n : n + step] for n in range(0, len(values), step))
        if left:
            raise Corrupt("is cut off: samples are missing", path=self._source.path, got=left)

    def _pieces(self) -> Iterator[bytes]:
        """Yield the text without comments, in pieces that end between numbers."""
        rest, offset, comment = b"", self._start, False
        while offset < self._source.size:
            text = self._source.read_at(offset, PIECE_BYTES)
            offset += len(text)
            at_end = offset >= self._source.size
            if not text:
                raise Corrupt("is cut off", path=self._source.path)
            if comment:  # it began in the piece before
                end = re.search(rb"[\n\r]", text)
                text, comment = (text[end.start() :], False) if end else (b"", True)
            last = text.rfind(b"#")
            comment = comment or (last >= 0 and not re.search(rb"[\n\r]", text[last:]))
            text = rest + _COMMENT.sub(b" ", text)
            cut = 1 + max(text.rfind(blank) for blank in (b" ", b"\n", b"\t", b"\r", b"\v", b"\f"))
            cut = len(text) if self._bits or at_end else cut
            rest = text[cut:]
            if at_end and not self._bits and text[-1:].strip():
                what = "is cut off, or has no end of line behind its last sample"
                raise Corrupt(what, path=self._source.path)
            if len(rest) > DIGITS:
                raise Corrupt("has a number of too many digits", path=self._source.path)
            yield text[:cut]

    def _samples(self, text: bytes) -> Values:
        """Parse the samples in a piece of text."""
        path = self._source.path
        if self._bits:
            digits = text.translate(None, BLANKS)
            if _OTHER_BIT.search(digits):
                raise Corrupt("has text that is not pixels", path=path)
            white: Values = np.frombuffer(digits, np.uint8) == ord("0")
            return white
        words = text.split()
        if _OTHER.search(text) or max(map(len, words), default=0) > DIGITS:
            raise Corrupt("has text that is not a number, or too long for one", path=path)
        values = np.array([int(word) for word in words], np.int64)
        if len(values) and values.max() > self._maxval:
            raise Corrupt("has a sample above its maxval", path=path, expected=self._maxval)
        return values.astype(self.dtype)
