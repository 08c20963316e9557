"""Decoding of rows to samples: inflate, unfilter, unpack, expand (PNG 3, clauses 7 to 10).

Row filters are undone by compiled loops where they were built (`engine`), else by Pillow. Pillow is
given rows that were inflated and checked here, as a stored zlib stream: its ZIP decoder runs in C
over any number of rows, so many small images go through it in one call. An all-zero row in front of
each image resets the "row above" that the filters look at (`unfilter`).

Filters work on bytes at the distance of a pixel. Pillow has modes for pixels of 1 to 4 bytes; the
6 and 8 bytes of 16-bit RGB and RGBA are split into two lanes, all first and all second bytes, which
do not depend on each other.
"""

from __future__ import annotations

from math import prod
from struct import Struct

import numpy as np

from raconvert.arrays.memory import check_memory
from raconvert.errors import Corrupt, MissingDependency, TooLarge
from raconvert.files.inflate import ZLIB_WBITS, Inflater

from . import engine
from .header import Header, Png, payload
from .tables import PALETTE, Pass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, BinaryIO

    from .tables import Span

    Samples = np.ndarray[Any, np.dtype[Any]]

SLAB_BYTES = 4 << 20  # filtered bytes that are inflated and unfiltered at once in a large image
PILLOW_MODES = {1: "L", 2: "I;16", 3: "RGB", 4: "RGBA"}  # bytes per pixel -> a mode of that width
SCALE = {1: 255, 2: 85, 4: 17}  # bit depth -> the integer factor from 0..2^d-1 to 0..255
LAST_FILTER = 4  # Paeth
ZLIB_HEAD = b"\x78\x01"  # RFC 1950: deflate, 32 KiB window, fastest
STORED_HEAD = Struct("<BHH")  # RFC 1951: last block or not, length, its complement
MAX_STORED_BYTES = 0xFFFF
ADLER = Struct(">I")  # Adler-32 of the content, the end of a zlib stream
SLAB_COPIES = 8  # copies of a slab at the same time, for any kind of pixels


class PixelStream:
    """The inflated pixels of some chunks, read in pieces of exact lengths."""

    def __init__(self, file: BinaryIO, spans: list[Span], png: Png) -> None:
        self._pieces = payload(file, spans, png.path)
        self._inflater = Inflater(self._pieces, ZLIB_WBITS, png.path)
        self._png = png
        self._done = 0

    def read(self, nbytes: int) -> bytes:
        """The next `nbytes` bytes. Raises `Corrupt` if they are missing or damaged."""
        parts = []
        missing = nbytes
        while missing:
            part = self._some(missing)
            if not part:
                raise Corrupt(
                    "the pixel data ends early",
                    path=self._png.path,
                    where=f"inflated byte {self._done}",
                    expected=f"{missing} more bytes",
                    got="the end of the zlib stream",
                )
            parts.append(part)
            missing -= len(part)
            self._done += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def finish(self) -> None:
        """Raise `Corrupt` if more pixels follow; note bytes behind the zlib stream."""
        if self._some(1):
            raise Corrupt(
                "the pixel data is longer than the image",
                path=self._png.path,
                expected=f"{self._done} inflated bytes",
                got="more",
            )
        extra = len(self._inflater.behind) + sum(map(len, self._pieces))
        if extra:
            self._png.note(f"{extra} bytes behind the zlib stream of the pixels were ignored")

    def _some(self, most: int) -> bytes:
        """Up to `most` of the next bytes; empty at the end of the stream. Raises `Corrupt`."""
        try:
            return self._inflater.read(most)
        except Corrupt as error:
            if error.where is None:  # else it is a chunk's checksum
                error.what = f"the compressed pixels are damaged: {error.what}"
                error.where = f"inflated byte {self._done}"
            raise


# ----------------------------------------------------------------------------------- unfilter


def unfilter(rows: bytes, row_bytes: int, pixel_bytes: int) -> Samples:
    """Undo the filters of consecutive rows, each a filter byte and `row_bytes` bytes.

    The first row must have filter 0. Returns uint8 of shape (rows, row_bytes). An unknown filter
    raises `BadFilter` with the number of the row.
    """
    filtered = np.frombuffer(rows, np.uint8).reshape(-1, 1 + row_bytes)
    filters = filtered[:, 0]
    if filters.max() > LAST_FILTER:
        row = int(np.argmax(filters > LAST_FILTER))
        raise BadFilter(row, int(filters[row]))
    if engine.fast is not None:
        unfiltered = np.empty((1, len(filtered), row_bytes), np.uint8)
        engine.fast.unfilter([rows], 0, pixel_bytes, unfiltered)
        return unfiltered[0]
    # Only filtered rows need the decoder, each together with the row above it.
    needed = filters != 0
    needed[:-1] |= needed[1:]
    if np.count_nonzero(needed) > len(needed) // 2:
        return _unfilter_all(filtered, pixel_bytes)
    unfiltered = filtered[:, 1:].copy()
    if needed.any():
        unfiltered[needed] = _unfilter_all(filtered[needed], pixel_bytes)
    return unfiltered


def _unfilter_all(filtered: Samples, pixel_bytes: int) -> Samples:
    """Undo the filters with Pillow's ZIP decoder, fed with a stored zlib stream."""
    height, row_bytes = filtered.shape[0], filtered.shape[1] - 1
    if pixel_bytes in PILLOW_MODES:
        mode = PILLOW_MODES[pixel_bytes]
        stored = _stored(filtered.tobytes())
        image = _pillow().frombytes(
            mode, (row_bytes // pixel_bytes, height), stored, "zip", mode, 0
        )
        return np.frombuffer(image.tobytes(), np.uint8).reshape(height, row_bytes)
    lanes = np.empty((2, height, 1 + row_bytes // 2), np.uint8)
    lanes[:, :, 0] = filtered[:, 0]
    lanes[0, :, 1:] = filtered[:, 1::2]
    lanes[1, :, 1:] = filtered[:, 2::2]
    both = _unfilter_all(lanes.reshape(2 * height, -1), pixel_bytes // 2)
    return both.reshape(2, -1).T.reshape(height, row_bytes)


def _stored(data: bytes) -> bytes:
    """A zlib stream of uncompressed blocks, much faster than level 0 of zlib."""
    parts = [ZLIB_HEAD]
    for start in range(0, len(data), MAX_STORED_BYTES):
        piece = data[start : start + MAX_STORED_BYTES]
        final = start + MAX_STORED_BYTES >= len(data)
        parts += [STORED_HEAD.pack(final, len(piece), len(piece) ^ 0xFFFF), piece]
    parts.append(ADLER.pack(engine.adler32(data)))
    return b"".join(parts)


class BadFilter(Exception):
    """Row `args[0]` has the unknown filter `args[1]`."""


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependency(
            "reading PNG needs the Pillow package", remedy="pip install pillow"
        ) from error
    return Image


def unfilter_images(streams: list[bytes], start: int, part: Pass, pixel_bytes: int) -> Samples:
    """Undo the filters of many images of one size at once.

    Their filtered rows of pass `part` begin at byte `start` of each stream. Returns uint8 of shape
    (images, height, row_bytes).
    """
    shape = (len(streams), part.height, part.row_bytes)
    if engine.fast is not None:
        unfiltered = np.empty(shape, np.uint8)
        if not engine.fast.unfilter(streams, start, pixel_bytes, unfiltered):
            raise BadFilter
        return unfiltered
    stop = start + part.height * (1 + part.row_bytes)
    reset = bytes(1 + part.row_bytes)
    rows = reset.join([b"", *[stream[start:stop] for stream in streams]])
    unfiltered = unfilter(rows, part.row_bytes, pixel_bytes)
    return unfiltered.reshape(len(streams), -1, part.row_bytes)[:, 1:]


# ------------------------------------------------------------------------------------- decode


def decode(
    file: BinaryIO,
    spans: list[Span],
    header: Header,
    expansion: Expansion,
    *,
    png: Png,
    max_memory: int,
    rows: Sequence[int] | None = None,
) -> Samples:
    """One image, expanded: shape (height, width[, channels]), uint8 or uint16.

    Large images are decoded in slabs of rows. With `rows` (ascending; not if interlaced) the result
    has these rows only. Remarks are added to the notes of `png`, the file of the image.
    Raises `Corrupt`, and `TooLarge` before anything is allocated.
    """
    path = png.path
    check_need(header, expansion, path=path, max_memory=max_memory)
    try:
        height = header.height if rows is None else len(rows)
        image = np.empty(expansion.shape(header.width, height), expansion.dtype)
        stream = PixelStream(file, spans, png)
        for part in header.passes():
            target: Any = image[part.y :: part.dy, part.x :: part.dx]
            if rows is not None:
                target = _SomeRows(image, rows)
            _decode_pass(stream, header, part, expansion, target, path)
        stream.finish()
    except MemoryError as error:
        raise TooLarge(
            f"no memory for an image of {header.width} x {header.height}", path=path
        ) from error
    return image


class _SomeRows:
    """Image that takes some of the rows of each slab that is assigned to it."""

    def __init__(self, image: Samples, rows: Sequence[int]) -> None:
        self._image = image
        self._rows = np.asarray(rows)

    def __setitem__(self, slab: slice, values: Samples) -> None:
        first, end = np.searchsorted(self._rows, (slab.start, slab.stop))
        self._image[first:end] = values[self._rows[first:end] - slab.start]


def check_need(header: Header, expansion: Expansion, *, path: str, max_memory: int) -> None:
    """Raise `TooLarge` if decoding an image needs more than `max_memory` bytes."""
    what = f"'{path}': decoding an image of {header.width} x {header.height}"
    check_memory(need_of(header, expansion), max_memory, what)


def need_of(header: Header, expansion: Expansion) -> int:
    """The bytes that decoding an image needs."""
    row = _row_memory(header, expansion)
    slab = max(row, min(SLAB_BYTES, row * header.height))
    need = prod(expansion.shape(header.width, header.height)) * expansion.dtype.itemsize
    return need + SLAB_COPIES * slab


def _row_memory(header: Header, expansion: Expansion) -> int:
    """The bytes of one row, filtered or expanded, whichever is more."""
    filtered = 1 + (header.width * header.channels * header.bit_depth + 7) // 8
    return max(filtered, header.width * max(1, expansion.channels) * expansion.dtype.itemsize)


def _decode_pass(
    stream: PixelStream,
    header: Header,
    part: Pass,
    expansion: Expansion,
    target: Samples | _SomeRows,
    path: str,
) -> None:
    """Decode one pass (the whole image, or one of Adam7's) into `target`, slab by slab."""
    above = bytes(part.row_bytes)
    step = max(1, SLAB_BYTES // _row_memory(header, expansion))
    for start in range(0, part.height, step):
        stop = min(start + step, part.height)
        rows = b"\0" + above + stream.read((stop - start) * (1 + part.row_bytes))
        try:
            unfiltered = unfilter(rows, part.row_bytes, header.pixel_bytes)[1:]
            target[start:stop] = expansion(unpack(unfiltered, header, part.width))
        except BadFilter as error:
            row, code = error.args
            where = f"row {start + row - 1}" + (f" of pass {part[:4]}" if header.interlace else "")
            raise Corrupt(
                "unknown row filter", path=path, where=where, expected="0 to 4", got=code
            ) from None
        except BadIndex as error:
            index, entries = error.args
            raise Corrupt(
                "a pixel is outside the palette",
                path=path,
                where=f"rows {start} to {stop - 1}",
                expected=f"an index below {entries}",
                got=index,
            ) from None
        above = unfiltered[-1].tobytes()


# ------------------------------------------------------------------------------------ samples


def unpack(rows: Samples, header: Header, width: int) -> Samples:
    """The samples of unfiltered rows, as stored (clause 7.2).

    `rows` is uint8 of shape (..., row_bytes). The result has shape (..., width) for one channel,
    else (..., width, channels); uint8 or little-endian uint16.
    """
    depth, channels = header.bit_depth, header.channels
    if depth == 16:
        rows = np.ascontiguousarray(rows).view(">u2").astype("<u2")
    elif depth < 8:
        shifts = np.arange(8 - depth, -1, -depth, dtype=np.uint8)
        parts = (rows[..., None] >> shifts) & np.uint8((1 << depth) - 1)
        rows = parts.reshape(*rows.shape[:-1], -1)[..., :width]
    return rows if channels == 1 else rows.reshape(*rows.shape[:-1], width, channels)


class Expansion:
    """Conversion of the samples of the file to the values of the array, by options.

    `channels` is 0 for grey without a channel axis; `key` is equal for equal expansions, so that
    images can be expanded together.
    """

    __slots__ = ("channels", "dtype", "key", "scale", "table", "transparent")

    def __init__(self, png: Png, *, palette: str, depth: str, trns: str) -> None:
        header = png.header
        self.dtype = np.dtype("<u2" if header.sample_bytes == 2 else np.uint8)
        self.channels = png.array_channels(palette=palette, trns=trns)
        self.scale = 1
        self.table: Samples | None = None  # palette entries, uint8 (entries, 3 or 4)
        self.transparent: Samples | None = None  # the colour key, one sample per channel
        if header.color_type == PALETTE:
            self.table = palette_table(png)
        else:
            if depth == "expand":
                self.scale = SCALE.get(header.bit_depth, 1)
            if trns == "alpha" and png.trns is not None:
                self.transparent = color_key(png)
        colors = None if self.table is None else (self.table.shape, self.table.tobytes())
        alpha = None if self.transparent is None else self.transparent.tobytes()
        self.key = (header, self.channels, colors, alpha, self.scale)

    def shape(self, width: int, height: int) -> tuple[int, ...]:
        """The shape of an image of this size."""
        return (height, width, self.channels) if self.channels else (height, width)

    def __call__(self, samples: Samples) -> Samples:
        """Expand samples (..., width[, channels]) as `unpack` returns them."""
        if self.table is not None:
            _check_indices(samples, len(self.table))
            return self.table[samples] if self.channels else samples
        values = samples if self.scale == 1 else samples * np.uint8(self.scale)
        return values if self.transparent is None else self._with_alpha(samples, values)

    def _with_alpha(self, samples: Samples, values: Samples) -> Samples:
        """Append an alpha plane: 0 where all samples of a pixel equal the colour key."""
        if self.channels == 2:
            samples, values = samples[..., None], values[..., None]
        visible = (samples != self.transparent).any(axis=-1, keepdims=True)
        alpha = visible.astype(self.dtype) * self.dtype.type(np.iinfo(self.dtype).max)
        return np.concatenate([values, alpha], axis=-1)


def _check_indices(samples: Samples, entries: int) -> None:
    """Raise `BadIndex` for a sample that is not an index of the palette."""
    if entries < 256 and samples.max() >= entries:
        raise BadIndex(int(samples.max()), entries)


class BadIndex(Exception):
    """Palette index `args[0]` is used, but there are only `args[1]` entries."""


def palette_table(png: Png) -> Samples:
    """The palette as uint8 (entries, 3), or (entries, 4) if any of it is transparent."""
    colors = np.frombuffer(png.palette or b"", np.uint8).reshape(-1, 3)
    if png.trns is None or png.opaque:
        return colors
    alpha = png.trns.ljust(len(colors), b"\xff")
    return np.column_stack([colors, np.frombuffer(alpha, np.uint8)])


def color_key(png: Png) -> Samples:
    """The transparent colour of tRNS: one sample per channel, as in the pixels."""
    mask = (1 << png.header.bit_depth) - 1
    return (np.frombuffer(png.trns or b"", ">u2") & mask).astype(np.uint16)
