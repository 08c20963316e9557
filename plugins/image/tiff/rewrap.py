"""Compressed segments through libtiff: a small TIFF in memory that imageio reads with Pillow."""

from __future__ import annotations

import os
from contextlib import contextmanager
from struct import pack
from threading import Lock

import numpy as np

from raconvert.errors import Unsupported

from ..backend import decoded
from .page import CCITT, CCITT_G3, CCITT_G4

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .page import Page

MAX_BYTES = 0xFFFF0000  # of a classic TIFF


def libtiff_bytes(page: Page, segments: list[bytes], rows: int) -> bytes:
    """Return the decompressed bytes of one plane's segments, `rows` rows of `row_bytes` each.

    Raises `Corrupt` for whatever libtiff does not take.
    """
    bilevel = page.compression in CCITT
    tags: list[tuple[int, int, tuple[int, ...]]] = [
        (256, 4, (page.width if bilevel else page.row_bytes,)),
        (257, 4, (rows,)),
        (258, 3, (1 if bilevel else 8,)),
        (259, 3, (page.compression,)),
        (262, 3, (1,)),
        (266, 3, (2 if page.reversed_bits and bilevel else 1,)),
        (277, 3, (1,)),
        (278, 4, (page.segment_height,)),
    ]
    option = {CCITT_G3: 292, CCITT_G4: 293}.get(page.compression)
    if option is not None:
        tags.append((option, 4, (page.directory.number(option, 0),)))
    values = _decoded(page, tags, segments)
    if bilevel:
        return np.packbits(values, axis=1).tobytes()
    return values.tobytes()


def jpeg_values(page: Page, segments: list[bytes]) -> np.ndarray[Any, Any]:
    """Return the values of one plane's JPEG segments: (height, width[, samples]), no YCbCr."""
    directory = page.directory
    samples = page.segment_samples
    grey = samples == 1  # where white is zero Pillow would invert the values
    tags: list[tuple[int, int, tuple[int, ...]]] = [
        (256, 4, (page.width,)),
        (257, 4, (page.height,)),
        (258, 3, (8,) * samples),
        (259, 3, (page.compression,)),
        (262, 3, (1 if grey else directory.number(262),)),
        (277, 3, (samples,)),
    ]
    if page.tiled:
        tags += [(322, 4, (page.segment_width,)), (323, 4, (page.segment_height,))]
    else:
        tags.append((278, 4, (page.segment_height,)))
    if tables := directory.data(347):
        tags.append((347, 7, tuple(tables)))
    if not grey and (sampling := directory.numbers(530)):
        tags.append((530, 3, sampling))
    values = _decoded(page, tags, segments)
    expected = (page.height, page.width) + (samples,) * (not grey)
    if values.shape != expected or values.dtype != np.uint8:
        raise page.tiff.corrupt("page is not what its JPEG data say", page.offset)
    return values


def _decoded(
    page: Page, tags: list[tuple[int, int, tuple[int, ...]]], segments: list[bytes]
) -> np.ndarray[Any, Any]:
    if sum(map(len, segments)) > MAX_BYTES:
        raise Unsupported("page has more than 4 GiB of compressed pixels", path=page.tiff.path)
    what = f"the compressed data of the page at byte {page.offset}"
    with _silent_libtiff():
        return decoded(_classic_tiff(tags, segments), page.tiff.path, what)


_lock = Lock()


@contextmanager
def _silent_libtiff() -> Iterator[None]:
    """Keep libtiff's own words about damaged data from the terminal: Pillow raises an error, too.

    libtiff writes them to file descriptor 2, past everything that Python could redirect.
    """
    with _lock:
        try:
            kept = os.dup(2)
        except OSError:  # there is no standard error
            yield
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, 2)
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            os.close(nowhere)


_LETTERS = {3: "H", 4: "I", 7: "B"}


def _classic_tiff(tags: list[tuple[int, int, tuple[int, ...]]], pieces: list[bytes]) -> bytes:
    """Return a little-endian TIFF of one page with these tags (number, type, values) and pieces.

    The pieces are tiles if the tags say their size, else strips.
    """
    body = b"".join(pieces)
    body += b"\0" * (len(body) % 2)
    sizes = [len(piece) for piece in pieces]
    offsets = (8 + np.cumsum([0, *sizes[:-1]])).tolist()
    places = (324, 325) if any(tag == 322 for tag, _, _ in tags) else (273, 279)
    tags = sorted([*tags, (places[0], 4, tuple(offsets)), (places[1], 4, tuple(sizes))])
    start = 8 + len(body)
    extra_at = start + 2 + 12 * len(tags) + 4
    directory, extra = pack("<H", len(tags)), b""
    for tag, kind, values in tags:
        data = pack(f"<{len(values)}{_LETTERS[kind]}", *values)
        place = data if len(data) <= 4 else pack("<I", extra_at + len(extra))
        directory += pack("<HHI4s", tag, kind, len(values), place)
        extra += data if len(data) > 4 else b""
    return pack("<2sHI", b"II", 42, start) + body + directory + bytes(4) + extra
