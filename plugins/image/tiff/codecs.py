"""The pixels of a page: checked against the file before any of them is decoded.

tifffile puts strips and tiles in their place; they are inflated here, with a limit that it does not
have.
"""

from __future__ import annotations

import zlib
from math import prod
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from raconvert.errors import Corrupt, Unsupported
from raconvert.files.inflate import MAX_RATIO

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.plugin import Source

    Values = np.ndarray[Any, Any]

NONE, DEFLATE = 1, (8, 32946)
RATIOS = {NONE: 1, **dict.fromkeys(DEFLATE, MAX_RATIO)}
FORMATS = {1: "u", 2: "i", 3: "f", 4: "u", 6: "c"}  # tag 339, as the kind of a dtype


def checked(page: Any, source: Source) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where the strips or tiles of a page are, and their bytes.

    Raises `Unsupported` for a page that is not read here, `Corrupt` for one that cannot be.
    """
    where, bits = f"directory at byte {page.offset}", page.bitspersample
    offsets, counts = tuple(map(index, page.dataoffsets)), tuple(map(index, page.databytecounts))
    for number in (page.imagelength, page.imagewidth, page.samplesperpixel, page.rowsperstrip):
        index(number)
    kind = "b" if bits == 1 else FORMATS.get(page.sampleformat)
    whole = page.dtype is not None and page.dtype.kind == kind
    faults = {
        f"pixels compressed as {getattr(page.compression, 'name', page.compression)}":
            page.compression not in RATIOS,
        f"samples of {bits} bits in format {page.sampleformat}":
            not whole or bits not in (1, 8 * page.dtype.itemsize),
        "colour at a lower resolution (YCbCr subsampling)":
            page.photometric == 6 and page.tags.valueof(530, (2, 2)) != (1, 1),
        "pixels in reversed bit order": index(page.fillorder) != 1,
        "images with a depth": max(index(page.imagedepth), index(page.tiledepth)) > 1,
        f"predictor {page.predictor} of samples of {bits} bits":
            page.predictor != 1 and (page.predictor != 2 or kind not in ("u", "i")),
        "strips or tiles without data (a sparse file)": 0 in offsets or 0 in counts,
    }  # fmt: skip
    for fault in (what for what, found in faults.items() if found):
        remedy = "rewrite it, for instance with: tiffcp -c none IN OUT"
        raise Unsupported(f"has {fault}", path=source.path, where=where, remedy=remedy)
    ratio = RATIOS[page.compression]
    damage = {
        "page, strips or tiles have no pixels": not page.nbytes or not segment_bytes(page),
        f"has {len(offsets)} strips or tiles":
            not len(offsets) == len(counts) == prod(page.chunked),
        "file ends inside its pixels":
            max(map(sum, zip(offsets, counts, strict=False)), default=0) > source.size,
        "strips or tiles overlap": sum(counts) > source.size,
        "declares more pixels than its compressed bytes can hold":
            prod(page.shape) * bits // 8 > ratio * sum(counts) + (64 if ratio > 1 else 0),
    }  # fmt: skip
    for fault in (what for what, found in damage.items() if found):
        raise Corrupt(fault, path=source.path, where=where)
    return offsets, counts


def segment_bytes(page: Any) -> int:
    """The bytes of a whole strip or tile."""
    rows, columns = min(index(page.rowsperstrip), page.imagelength), page.imagewidth
    rows, columns = (page.tilelength, page.tilewidth) if page.is_tiled else (rows, columns)
    samples = page.samplesperpixel if page.planarconfig == 1 else 1
    return index(rows) * -(-index(columns) * samples * page.bitspersample // 8)


def decode(page: Any, offsets: Sequence[int], counts: Sequence[int], source: Source) -> Values:
    """The pixels of a page like `page` that has its strips or tiles at `offsets`."""
    packed, page.compression = page.compression, NONE  # for tifffile, which gets it unpacked
    out = np.empty(page.shaped, page.dtype.newbyteorder("="))
    limit = segment_bytes(page)
    try:
        for segment, (offset, nbytes) in enumerate(zip(offsets, counts, strict=True)):
            data = source.read_exact(offset, nbytes, "the pixels")
            if packed != NONE:
                # A byte more than there may be, so that zlib comes to the checksum at the end.
                data = zlib.decompressobj().decompress(data, limit + 1)
            values, (s, d, h, w, _), size = page.decode(data[:limit], segment)
            values = values[:, : page.imagelength - h, : page.imagewidth - w]
            out[s, d : d + size[0], h : h + size[1], w : w + size[2]] = values
    finally:
        page.compression = packed
    # Planes of samples come last, as in files that have them in each pixel.
    return np.ascontiguousarray(np.moveaxis(out[..., 0], 0, -1) if len(out) > 1 else out)
