"""The pixels of netpbm files that cannot be mapped: bitmaps, texts, several images."""

from __future__ import annotations

import re
from math import prod

import numpy as np

from raconvert.arrays.blocks import check_memory
from raconvert.errors import Corrupt
from raconvert.plugin import dtype_of

from .netpbm import BITMAPS, SPACE, TEXTS
from .stack import Stack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    from raconvert.plugin import Element, Source

    from .netpbm import Header

    Values = np.ndarray[Any, Any]

TEXT_BYTES = 1 << 18  # read at once; the longest comment among the pixels
_COMMENT = re.compile(rb"#[^\n\r]*")
_TOO_LONG = re.compile(rb"[0-9]{10}")


class Pixels(Stack):
    """Array source: every image is decoded in pieces, and whole only for a region of it."""

    def __init__(
        self,
        source: Source,
        header: Header,
        starts: list[int],
        shape: tuple[int, ...],
        stored: Element,
    ) -> None:
        super().__init__(source, shape, dtype_of(stored), len(starts))
        self._header = header
        self._starts = starts
        self._pixels = prod(shape) // len(starts)  # numbers of one image

    def stream(self, max_bytes: int) -> Generator[Values, None, None]:
        """Yield pieces in stored order."""
        step = max(1, max_bytes // self.dtype.itemsize)
        for number in range(self.count):
            for piece in self._pieces(number, max_bytes):
                for start in range(0, piece.size, step):
                    yield piece[start : start + step]

    def images(self, first: int) -> Generator[Values, None, None]:
        """Yield the images from number `first` on."""
        nbytes = self._pixels * self.dtype.itemsize
        check_memory(nbytes, self.source.max_memory, f"'{self.source.path}': an image of it")
        for number in range(first, self.count):
            image = np.empty(self._pixels, self.dtype)
            done = 0
            for piece in self._pieces(number, TEXT_BYTES):
                image[done : done + piece.size] = piece
                done += piece.size
            yield image

    def _pieces(self, number: int, max_bytes: int) -> Iterator[Values]:
        """Yield one image as one-dimensional pieces; exactly as many numbers as it has."""
        magic = self._header.magic[1]
        if magic in TEXTS:
            return self._counted(self._bits() if magic in BITMAPS else self._numbers())
        start = self._starts[number]
        return self._bitmap(start, max_bytes) if magic in BITMAPS else self._raw(start, max_bytes)

    def _raw(self, start: int, max_bytes: int) -> Iterator[Values]:
        step = max(1, max_bytes // self.dtype.itemsize) * self.dtype.itemsize
        end = start + self._pixels * self.dtype.itemsize
        for place in range(start, end, step):
            data = self.source.read_exact(place, min(step, end - place), "the pixels")
            yield np.frombuffer(data, self.dtype)

    def _bitmap(self, start: int, max_bytes: int) -> Iterator[Values]:
        """Yield the pixels of P4, whose rows are padded: several rows, or a part of one."""
        width, height = self._header.width, self._header.height
        row = -(-width // 8)
        rows, columns = max(1, max_bytes // width), max(8, max_bytes // 8 * 8)
        for top in range(0, height, rows):
            count = min(rows, height - top)
            for left in range(0, width, columns):
                pixels = min(columns, width - left)
                nbytes = -(-pixels // 8)
                place = start + top * row + left // 8
                data = self.source.read_exact(place, count * nbytes, "the pixels")
                packed = np.frombuffer(data, np.uint8).reshape(count, nbytes)
                yield np.unpackbits(packed, axis=1, count=pixels).reshape(-1) == 0

    # ------------------------------------------------------------------------------------ text

    def _counted(self, pieces: Iterator[Values]) -> Iterator[Values]:
        done = 0
        for piece in pieces:
            done += piece.size
            if done > self._pixels:
                break
            yield piece
        if done != self._pixels:
            raise self._damaged("more" if done > self._pixels else done)

    def _damaged(self, got: object = None) -> Corrupt:
        return Corrupt(
            "text of the pixels is damaged, cut off, or followed by something else",
            path=self.source.path,
            expected=f"{self._pixels} numbers",
            got=got,
        )

    def _numbers(self) -> Iterator[Values]:
        maxval = self._header.maxval
        for text in self._texts():
            if text.translate(None, SPACE + b"0123456789") or _TOO_LONG.search(text):
                raise self._damaged()
            if not text.strip():  # of which numpy would make a 0
                continue
            values = np.fromstring(text, np.uint32, sep=" ")
            if values.max() > maxval:
                raise Corrupt(
                    "has a value above its maxval",
                    path=self.source.path,
                    expected=f"at most {maxval}",
                    got=int(values.max()),
                )
            yield values.astype(self.dtype)

    def _bits(self) -> Iterator[Values]:
        """Yield the pixels of P1, whose digits need no space between them."""
        for text in self._texts():
            digits = text.translate(None, SPACE)
            if digits.translate(None, b"01"):
                raise self._damaged()
            yield np.frombuffer(digits, np.uint8) == ord("0")

    def _texts(self) -> Iterator[bytes]:
        """Yield the text without comments, in pieces that end between two words."""
        rest = b""
        with self.source.open() as file:
            file.seek(self._starts[0])
            while chunk := file.read(TEXT_BYTES):
                text = rest + chunk
                end = self._last_end(text)
                if not end and len(text) > 2 * TEXT_BYTES:
                    raise self._damaged()
                rest = text[end:]
                yield _COMMENT.sub(b" ", text[:end])
        yield _COMMENT.sub(b" ", rest)

    def _last_end(self, text: bytes) -> int:
        """Return where the text can be cut: no word and no comment goes on behind it."""
        if b"#" in text:
            return max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        if self._header.magic[1] in BITMAPS:
            return len(text)
        return max(text.rfind(SPACE[i : i + 1]) for i in range(len(SPACE))) + 1
