"""Writing a PNG: choice of the kind of image, filters, chunks.

The depth follows from the type (bool 1, uint8 8, uint16 16). Metadata can ask for the low depth or
the palette of the source, which is used if it holds every value exactly. Rows are filtered
with numpy, a slab at a time, and compressed with zlib; the bytes are the same every time.
"""

from __future__ import annotations

import zlib
from collections import namedtuple

import numpy as np

from raconvert.arrays.blocks import as_ndarray
from raconvert.arrays.dtypes import dtype_of, little
from raconvert.errors import Unsupported
from raconvert.files.copy import write_all
from raconvert.files.paths import write_failed

from . import metadata
from .header import Header
from .pixels import SCALE
from .tables import (
    CHUNK_HEAD,
    CRC,
    GREY,
    GREY_ALPHA,
    IHDR,
    NAME,
    PALETTE,
    RGB,
    RGBA,
    SIGNATURE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Array, Target

    Samples = np.ndarray[Any, np.dtype[Any]]

COLOR_TYPES = {1: GREY, 2: GREY_ALPHA, 3: RGB, 4: RGBA}  # channels -> colour type
SLAB_BYTES = 1 << 20  # rows that are filtered at once
IDAT_BYTES = 1 << 16  # compressed bytes from which an IDAT chunk is written

# An image to write: IHDR, the samples in the depth of the file, PLTE and tRNS.
Image = namedtuple("Image", "header samples palette trns")


def write_image(array: Array, target: Target, level: int, filter: str) -> None:
    """Write an array as a PNG.

    The image is in memory as a whole (`TooLarge` above ``target.max_memory``); it is filtered and
    compressed a slab of rows at a time.
    """
    fields = array.meta.formats.get(NAME, {})
    if not isinstance(fields, dict):
        raise Unsupported("the metadata of the format png is not a mapping", path=target.path)
    values = as_ndarray(array, target.max_memory)
    pieces = _file(values, fields, level=level, filter=filter, path=target.path)
    file = target.open()
    try:
        write_all(file, pieces)
    except OSError as error:
        raise write_failed(target.path, error) from error
    if target.progress is not None:
        target.progress(array.nbytes)


def file_of(array: Array, elements: bytes, level: int, filter: str) -> bytes:
    """The bytes of the file of an image without metadata, from its elements."""
    values = np.frombuffer(elements, dtype_of(little(array.element))).reshape(array.shape)
    return b"".join(_file(values, {}, level=level, filter=filter, path=""))


def _file(
    values: Samples, fields: dict[str, Any], *, level: int, filter: str, path: str
) -> Iterator[bytes]:
    """Yield the bytes of a PNG file with `values`, shape (height, width[, channels]).

    `fields` is the ``png`` namespace of the metadata.
    """
    image = choose(values, fields, path)
    entries = len(image.palette or b"") // 3
    early, late = metadata.chunks_of(fields, image.header, entries, path)
    yield SIGNATURE
    yield _chunk(b"IHDR", IHDR.pack(*image.header[:4], 0, 0, 0))
    for kind, data in early:
        yield _chunk(kind, data)
    if image.palette is not None:
        yield _chunk(b"PLTE", image.palette)
    if image.trns is not None:
        yield _chunk(b"tRNS", image.trns)
    for kind, data in late:
        yield _chunk(kind, data)
    for data in _compressed(image, level, filter):
        yield _chunk(b"IDAT", data)
    yield _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(data, zlib.crc32(kind))
    return b"".join([CHUNK_HEAD.pack(len(data), kind), data, CRC.pack(checksum)])


# ---------------------------------------------------------------------------- kind of image


def choose(values: Samples, fields: dict[str, Any], path: str) -> Image:
    """The kind of image that holds the values exactly: palette, low depth, or neither."""
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    if values.dtype == np.uint8:
        image = _with_palette(values, fields, path) or _with_low_depth(values, fields, path)
        if image is not None:
            return image
    height, width = values.shape[:2]
    channels = 1 if values.ndim == 2 else values.shape[2]
    depth = {"b": 1, "u": 8 * values.dtype.itemsize}[values.dtype.kind]
    header = Header(width, height, depth, COLOR_TYPES[channels], 0)
    suggested = metadata.palette_of(fields, path) if channels >= 3 else None
    scale = 1 if fields.get("native") else SCALE.get(_wanted_depth(fields), 1)
    trns = metadata.color_key_of(fields, header, scale if depth == 8 else 1, path)
    return Image(header, values, suggested and suggested[0], trns)


def _wanted_depth(fields: dict[str, Any]) -> int:
    """The bit depth that the metadata asks for; 8 if it has no valid one."""
    depth = fields.get("bit_depth", 8)
    return depth if isinstance(depth, int) and depth in SCALE else 8


def _with_palette(values: Samples, fields: dict[str, Any], path: str) -> Image | None:
    """A palette image if the metadata has a palette that holds every pixel exactly."""
    if fields.get("color_type") != PALETTE:
        return None
    colors = metadata.palette_of(fields, path)
    if colors is None:
        return None
    palette, alpha = colors
    table = np.frombuffer(palette, np.uint8).reshape(-1, 3)
    if alpha and any(a < 255 for a in alpha):
        padded = alpha[: len(table)].ljust(len(table), b"\xff")
        table = np.column_stack([table, np.frombuffer(padded, np.uint8)])
    if values.ndim == 2:
        indices = values if values.max() < len(table) else None
    else:
        indices = _indices(values, table)
    if indices is None:
        return None
    depth = next(d for d in (1, 2, 4, 8) if 1 << d >= len(table))
    depth = max(depth, _wanted_depth(fields))
    height, width = indices.shape
    return Image(Header(width, height, depth, PALETTE, 0), indices, palette, alpha)


def _indices(values: Samples, table: Samples) -> Samples | None:
    """The palette index of every pixel, or None if a colour is not in the table."""
    if values.shape[2] != table.shape[1]:
        return None
    colors = _codes(table)
    order = np.argsort(colors, kind="stable")
    pixels = _codes(values)
    positions = np.searchsorted(colors, pixels, sorter=order)
    indices = order[np.minimum(positions, len(colors) - 1)].astype(np.uint8)
    return indices if np.array_equal(colors[indices], pixels) else None


def _codes(colors: Samples) -> Samples:
    """Colours (..., 3 or 4) as one uint32 each."""
    code = np.zeros(colors.shape[:-1], np.uint32)
    for channel in range(colors.shape[-1]):
        code = code << 8 | colors[..., channel]
    return code


def _with_low_depth(values: Samples, fields: dict[str, Any], path: str) -> Image | None:
    """A grey image of 1, 2 or 4 bits if the metadata has that depth and it holds every value."""
    depth = _wanted_depth(fields)
    if depth not in SCALE or values.ndim != 2 or fields.get("color_type") == PALETTE:
        return None
    if fields.get("native"):
        samples = values if values.max() < 1 << depth else None
    else:
        samples, rest = np.divmod(values, np.uint8(SCALE[depth]))
        samples = None if rest.any() else samples
    if samples is None:
        return None
    header = Header(values.shape[1], values.shape[0], depth, GREY, 0)
    return Image(header, samples, None, metadata.color_key_of(fields, header, 1, path))


# -------------------------------------------------------------------------- rows to zlib stream


def packed(samples: Samples, depth: int) -> Samples:
    """Rows of bytes, uint8 (height, row_bytes), from samples in the depth of the file."""
    if depth == 16:
        return samples.astype(">u2").view(np.uint8).reshape(len(samples), -1)
    if depth == 8:
        return samples.reshape(len(samples), -1)
    per_byte = 8 // depth
    short = -samples.shape[1] % per_byte
    padded = np.pad(samples.astype(np.uint8), ((0, 0), (0, short)))
    parts = padded.reshape(len(samples), -1, per_byte)
    shifts = np.arange(8 - depth, -1, -depth, dtype=np.uint8)
    return np.bitwise_or.reduce(parts << shifts, axis=2)


def _compressed(image: Image, level: int, method: str) -> Iterator[bytes]:
    """Yield the zlib stream of the pixels in pieces, a single one for a small image."""
    header = image.header
    if method == "auto" and (header.bit_depth < 8 or header.color_type == PALETTE):
        method = "none"
    stream = zlib.compressobj(level)
    step = max(1, SLAB_BYTES // (header.stream_bytes // header.height))
    above = None
    data = b""
    for start in range(0, header.height, step):
        rows = packed(image.samples[start : start + step], header.bit_depth)
        data += stream.compress(filtered(rows, above, header.pixel_bytes, method).tobytes())
        above = rows[-1]
        if len(data) >= IDAT_BYTES:
            yield data
            data = b""
    yield data + stream.flush()


def filtered(rows: Samples, above: Samples | None, pixel_bytes: int, method: str) -> Samples:
    """Rows with their filter byte, uint8 (rows, 1 + row_bytes); clause 9.

    `above` is the row before the first one, None for zeros. `method` is the name of a filter;
    ``adaptive``: for each row the filter with the least sum of absolute differences; ``auto``: no
    filter if most pixels equal their neighbour, as in drawings and digits, else adaptive.
    """
    if method == "auto":
        equal = np.count_nonzero(rows[:, pixel_bytes:] == rows[:, :-pixel_bytes])
        method = "none" if 2 * equal > rows.size else "adaptive"
    out = np.empty((rows.shape[0], 1 + rows.shape[1]), np.uint8)
    if method == "none":
        out[:, 0] = 0
        out[:, 1:] = rows
        return out
    up = np.zeros_like(rows)
    up[1:] = rows[:-1]
    if above is not None:
        up[0] = above
    left, corner = np.zeros_like(rows), np.zeros_like(rows)
    left[:, pixel_bytes:] = rows[:, :-pixel_bytes]
    corner[:, pixel_bytes:] = up[:, :-pixel_bytes]
    if method != "adaptive":
        out[:, 0] = FILTERS.index(method)
        out[:, 1:] = rows - PREDICTIONS[method](left, up, corner)
        return out
    candidates = np.stack([rows - PREDICTIONS[name](left, up, corner) for name in FILTERS])
    costs = np.minimum(candidates, 0 - candidates).sum(axis=2, dtype=np.uint64)
    best = costs.argmin(axis=0)
    out[:, 0] = best
    out[:, 1:] = candidates[best, np.arange(len(rows))]
    return out


def _none(left: Samples, up: Samples, corner: Samples) -> Samples:
    return np.zeros_like(left)


def _sub(left: Samples, up: Samples, corner: Samples) -> Samples:
    return left


def _up(left: Samples, up: Samples, corner: Samples) -> Samples:
    return up


def _average(left: Samples, up: Samples, corner: Samples) -> Samples:
    return ((left.astype(np.uint16) + up) >> 1).astype(np.uint8)


def _paeth(left: Samples, up: Samples, corner: Samples) -> Samples:
    """The neighbour that is nearest to left + up - corner (clause 9.4)."""
    a, b, c = left.astype(np.int16), up.astype(np.int16), corner.astype(np.int16)
    by_left, by_up = b - c, a - c  # distances of the estimate
    to_left, to_up, to_corner = np.abs(by_left), np.abs(by_up), np.abs(by_left + by_up)
    nearest = np.where(to_up <= to_corner, up, corner)
    return np.where((to_left <= to_up) & (to_left <= to_corner), left, nearest)


# The prediction of a byte by each filter; in the order of their numbers.
PREDICTIONS = {"none": _none, "sub": _sub, "up": _up, "average": _average, "paeth": _paeth}
FILTERS = tuple(PREDICTIONS)
