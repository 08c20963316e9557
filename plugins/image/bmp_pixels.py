"""Pixels of a BMP: rows of packed bits, runs, palettes and bit fields.

Rows are read and decoded a band at a time, in either order that the file has; run-length coded
ones are in memory as indices of a byte each.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key, is_basic, range_of
from raconvert.arrays.sources import Decoded
from raconvert.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Source

    from .bmp_header import Header

    Values = np.ndarray[Any, Any]

BAND_BYTES = 1 << 18  # of rows that are read at once
END_OF_ROW, END_OF_IMAGE, MOVE = (
    0,
    1,
    2,
)  # code behind a count of 0; others are the length of a run without repetition


class Rows(Decoded):
    """Rows of a BMP, from the top, as bool, grey, or channels."""

    def __init__(self, source: Source, header: Header, shape: tuple[int, ...], dtype: Any) -> None:
        what = f"'{source.path}'"
        super().__init__(shape, np.dtype(dtype), what=what, max_memory=source.max_memory)
        self._source, self._header = source, header

    @property
    def by_regions(self) -> bool:
        """True: only the rows of a region are read (runs are decoded once, as a whole)."""
        return True

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in stored order."""
        step = max(1, BAND_BYTES // max(1, self._header.row_bytes))
        piece = max(1, max_bytes // self.dtype.itemsize)
        for top in range(0, self.shape[0], step):
            flat = self._rows(top, min(top + step, self.shape[0])).reshape(-1)
            yield from (flat[start : start + piece] for start in range(0, flat.size, piece))

    def __getitem__(self, key: Any) -> Any:
        """Read a region; only its rows are decoded."""
        full = full_key(key, len(self.shape))
        if self.held() is not None or not is_basic(full):
            return super().__getitem__(key)
        top, bottom, inside = range_of(full[0], self.shape[0])
        nbytes = (bottom - top) * prod(self.shape[1:]) * self.dtype.itemsize
        check_memory(nbytes, self.max_memory, f"this part of {self.what}")
        return self._rows(top, bottom)[(inside, *full[1:])]

    @cached_property
    def _runs(self) -> Values:
        """The indices of a run-length coded image, bottom row first."""
        header = self._header
        check_memory(2 * header.width * header.height, self.max_memory, f"{self.what}: its runs")
        out = bytearray(header.width * header.height)
        unpack_runs(self._source, header, out)
        return np.frombuffer(out, np.uint8).reshape(header.height, header.width)

    def _rows(self, top: int, bottom: int) -> Values:
        """Read and decode the rows of a range, counted from the top."""
        header, count = self._header, bottom - top
        if not count:
            return np.empty((0, *self.shape[1:]), self.dtype)
        first = top if header.down else header.height - bottom
        if header.runs:
            raw = self._runs[first : first + count]
        else:
            offset = header.first + first * header.row_bytes
            data = self._source.read_exact(offset, count * header.row_bytes, "the pixels")
            raw = np.frombuffer(data, np.uint8).reshape(count, header.row_bytes)
            raw = _samples(raw, header)
        values = _colours(raw, header, self._source.path).astype(self.dtype, copy=False)
        values = values.reshape(count, *self.shape[1:])
        return values if header.down else values[::-1]


def _samples(rows: Values, header: Header) -> Values:
    """The samples in whole rows: an index, or the packed channels, for each pixel."""
    width, bits = header.width, header.bits
    if bits < 8:
        spread = np.unpackbits(rows, axis=1).reshape(len(rows), -1, bits)[:, :width]
        return np.packbits(spread, axis=2)[..., 0] >> (8 - bits)
    nbytes = bits // 8
    pixels = rows[:, : width * nbytes].reshape(len(rows), width, nbytes)
    if bits == 8 or header.in_bytes:
        return pixels if bits > 8 else pixels[..., 0]
    if nbytes == 3:
        pixels = np.pad(pixels, [(0, 0), (0, 0), (0, 1)])
    return np.ascontiguousarray(pixels).view(f"<u{pixels.shape[2]}")[..., 0]


def _colours(samples: Values, header: Header, path: str) -> Values:
    """The elements of the array: colours or greys of indices, channels of packed samples."""
    if header.in_bytes:
        return samples[..., [_shift(mask) // 8 for mask in header.masks]]
    if header.bits > 8:
        parts = [(samples & mask) >> _shift(mask) for mask in header.masks]
        return np.stack(parts, axis=-1)
    if samples.size and samples.max() >= len(header.palette):
        raise Corrupt("has pixels of colours that its palette does not have", path=path)
    if header.kind == "rgb":
        table: Values = np.array(header.palette, np.uint8)
        return table[samples]
    return samples == 1 if header.kind == "bool" else samples


def _shift(mask: int) -> int:
    """The number of zero bits below a mask."""
    return (mask & -mask).bit_length() - 1


def unpack_runs(source: Source, header: Header, out: bytearray | None) -> tuple[int, int]:
    """Fill `out`, bottom row first; return the offset behind the runs, and the pixels they set.

    Without `out` the runs are only checked. Raises `Corrupt` for runs that leave the image or are
    cut off, `TooLarge` if their bytes are above the memory allowed.
    """
    check_memory(header.data_bytes, source.max_memory, f"'{source.path}': its runs")
    data = source.read_exact(header.first, header.data_bytes, "the runs")
    try:
        nbytes, filled = _unpacked(data, header, out)
    except (IndexError, ValueError):
        what = "has runs that leave the image, or are cut off"
        raise Corrupt(what, path=source.path) from None
    return header.first + nbytes, filled


def _unpacked(data: bytes, header: Header, out: bytearray | None) -> tuple[int, int]:
    """Walk through the runs; return their bytes, and the pixels that they set.

    Raises IndexError or ValueError for runs that are cut off or leave the image.
    """
    width, height, small = header.width, header.height, header.bits == 4
    offset = x = y = filled = 0
    while y < height or offset < len(data):
        count, code = data[offset], data[offset + 1]
        offset += 2
        if count:
            piece = (bytes((code >> 4, code & 15)) if small else bytes((code,))) * count
            piece = piece[:count]
        elif code == END_OF_ROW:
            x, y = 0, y + 1
            continue
        elif code == END_OF_IMAGE:
            break
        elif code == MOVE:
            x, y = x + data[offset], y + data[offset + 1]
            offset += 2
            continue
        else:
            count, nbytes = code, (code + 1) // 2 if small else code
            piece = data[offset : offset + nbytes]
            if len(piece) < nbytes:
                raise IndexError
            if small:
                piece = bytes(half for byte in piece for half in (byte >> 4, byte & 15))[:count]
            offset += nbytes + nbytes % 2
        if x + count > width or y >= height:
            raise ValueError
        if out is not None:
            out[y * width + x : y * width + x + count] = piece
        x, filled = x + count, filled + count
    return offset, filled
