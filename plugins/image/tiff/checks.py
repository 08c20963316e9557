"""Checks of a page before it is decoded: if its kind is read here, and fits its bytes."""

from __future__ import annotations

from math import prod
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from raconvert.errors import Corrupt, Unsupported

from .codecs import BY_ROWS, CODECS, JPEG, JPEGS, OLD_JPEG, check_extra
from .pages import Grid

if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Source

    from .pages import Place

FORMATS = {1: "u", 2: "i", 3: "f", 4: "u", 5: "c", 6: "c"}  # tag 339, as the kind of a dtype
WHOLE = (8, 16, 32, 64, 128)  # bits of samples with a type in numpy
ODD = [bits for bits in range(2, 32) if bits not in WHOLE]
INTEGER, COMPLEX_INTEGERS, YCBCR = 2, 5, 6  # two sample formats; a photometric
SUBSAMPLING, LERC_PARAMETERS, JPEG_TABLES, STREAM, STREAM_BYTES = 530, 50674, 347, 513, 514
SOI, EOI = b"\xff\xd8", b"\xff\xd9"  # the first and the last marker of JPEG
PARTIAL = "pixels compressed as OJPEG that are not a whole stream of JPEG"
UNPACKED = "rewrite it, for instance with: tiffcp -c none IN OUT"
AS_COLOURS = "make RGB of it, for instance with: tiff2rgba IN OUT"


def checked(page: Any, source: Source) -> Place:
    """Check a page; return the offsets and lengths of its strips or tiles, and JPEG's tables.

    A strip or tile without data, of a sparse file, has the offset 0 and no bytes. Raises
    `Unsupported` for a page that is not read here, `Corrupt` for a damaged one,
    `MissingDependency` if it needs imagecodecs.
    """
    where = f"directory at byte {page.offset}"
    if page.photometric != YCBCR:
        page.subsampling = None  # it has no meaning for other colours
    for number in (page.imagelength, page.imagewidth, page.samplesperpixel, page.rowsperstrip):
        index(number)  # raises TypeError for a tag of another type
    _take_as_unsigned(page)
    offsets, counts = _offsets_of(page)
    partial = page.compression == OLD_JPEG and source.read_at(offsets[0], 2) != SOI
    for what, faulty, remedy in [*_faults(page), (PARTIAL, partial, AS_COLOURS)]:
        if faulty:
            raise Unsupported(f"has {what}", path=source.path, where=where, remedy=remedy)
    damage = _damage(page, offsets, counts, source)
    for what, is_damaged in damage.items():
        if is_damaged:
            raise Corrupt(what, path=source.path, where=where)
    for what, is_needed in _extras(page).items():
        if is_needed:
            check_extra(what, source.path)
    return offsets, counts, _tables(page, source)


def kind_of(page: Any) -> tuple[Any, ...]:
    """The properties that all pages of one stack share."""
    return page.hash, page.planarconfig, page.sampleformat == INTEGER


def _take_as_unsigned(page: Any) -> None:
    """Give a page of signed samples of another depth than numpy's the type of unsigned ones.

    tifffile does not decode such samples, and has no type for them; `Pages` does.
    """
    bits = page.bitspersample
    if page.sampleformat == INTEGER and isinstance(bits, int) and bits in ODD:
        page.dtype = np.dtype(f"u{1 if bits < 8 else 2 if bits < 16 else 4}")


def _offsets_of(page: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The offsets and lengths of the strips or tiles; (0, 0) for those without data."""
    offsets, counts = tuple(map(index, page.dataoffsets)), tuple(map(index, page.databytecounts))
    if page.compression == OLD_JPEG and len(offsets) == len(counts) == 1:
        stream, nbytes = (page.tags.valueof(code) for code in (STREAM, STREAM_BYTES))
        match stream, nbytes:
            case (int(), int()) | ((int(),), (int(),)) if _is_whole(page, stream, nbytes):
                return (_first(stream),), (_first(nbytes),)
    if len(offsets) != len(counts):
        return offsets, counts
    pairs = [pair if all(pair) else (0, 0) for pair in zip(offsets, counts, strict=True)]
    return tuple(offset for offset, _ in pairs), tuple(count for _, count in pairs)


def _first(value: Any) -> int:
    """The only number of a tag, which may be in a tuple."""
    return int(value[0] if isinstance(value, tuple) else value)


def _is_whole(page: Any, stream: Any, nbytes: Any) -> bool:
    """True if the tags of the old JPEG lead to a whole stream, with its first and last markers."""
    file, offset, size = page.parent.filehandle, _first(stream), _first(nbytes)
    if size < 4 or offset + size > file.size:
        return False
    file.seek(offset)
    first = file.read(2)
    file.seek(offset + size - 2)
    return bool(first == SOI and file.read(2) == EOI)


def _damage(
    page: Any, offsets: tuple[int, ...], counts: tuple[int, ...], source: Source
) -> dict[str, bool]:
    """The kinds of damage to offsets and sizes of a page, and if it has them."""
    grid = Grid(page) if page.nbytes else None
    ratio = CODECS[page.compression].ratio or (grid.columns if grid else 1)
    sparse = 0 in counts
    return {
        "page, strips or tiles have no pixels": not grid or not grid.nbytes,
        f"has {len(offsets)} strips or tiles":
            not len(offsets) == len(counts) == prod(page.chunked),
        "file ends inside its pixels":
            max(map(sum, zip(offsets, counts, strict=False)), default=0) > source.size,
        "strips or tiles overlap": sum(counts) > source.size,
        "declares more pixels than its compressed bytes can hold":
            not sparse and prod(page.shape) * page.bitspersample // 8
            > ratio * sum(counts) + (64 if ratio > 1 else 0),
    }  # fmt: skip


def _faults(page: Any) -> list[tuple[str, bool, str]]:
    """The reasons not to read a page, if they hold, and a remedy for each."""
    bits, compression, predictor = page.bitspersample, page.compression, page.predictor
    name = getattr(compression, "name", compression)
    signed = page.sampleformat == INTEGER and bits not in WHOLE
    kind = "b" if bits == 1 else "u" if signed else FORMATS.get(page.sampleformat)
    known = page.dtype is not None and page.dtype.kind == kind and isinstance(bits, int)
    own = known and bits in WHOLE and page.sampleformat != COMPLEX_INTEGERS
    floats = known and kind == "f"
    predicted = {1: known, 2: own and kind in ("u", "i", "f"), 3: floats}
    together = page.samplesperpixel if page.planarconfig == 1 else 1
    fax, codec = compression in BY_ROWS, CODECS.get(compression)
    picture = codec is not None and (fax or compression in JPEGS or codec.picture is not None)
    colour = page.photometric == YCBCR and page.tags.valueof(SUBSAMPLING, (2, 2)) != (1, 1)
    undone = compression in JPEGS and page.planarconfig == 1
    return [
        (f"pixels compressed as {name}", codec is None, UNPACKED),
        (f"pixels compressed as {name} in several strips or tiles",
         compression == OLD_JPEG and prod(page.chunked) > 1, AS_COLOURS),
        (f"samples of {bits} bits in format {page.sampleformat}", not known, UNPACKED),
        (f"pixels of {bits} bits compressed as {name}", fax and bits != 1, UNPACKED),
        (f"pixels of {together} samples compressed as {name}", fax and together > 1, UNPACKED),
        ("colour at a lower resolution (YCbCr subsampling)", colour and not undone, AS_COLOURS),
        ("images with a depth", max(index(page.imagedepth), index(page.tiledepth)) > 1, UNPACKED),
        (f"predictor {predictor} of samples of {bits} bits",
         not predicted.get(predictor) or (predictor != 1 and picture), UNPACKED),
        (f"signed samples of {bits} bits compressed as {name}", signed and picture, UNPACKED),
    ]  # fmt: skip


def _extras(page: Any) -> dict[str, bool]:
    """The kinds of pixels that need imagecodecs, and if a page has them."""
    bits, codec = page.bitspersample, CODECS[page.compression]
    return {
        f"pixels compressed by {codec.name}": codec.extra,
        f"predictor {page.predictor}": page.predictor == 3,
        f"samples of {bits} bits": bits not in (1, *WHOLE),
    }


def _tables(page: Any, source: Source) -> bytes:
    """The tables that all strips or tiles of JPEG share."""
    tables = page.tags.valueof(JPEG_TABLES) if page.compression == JPEG else None
    if tables is None:
        return b""
    if not isinstance(tables, bytes) or len(tables) > source.limits.record_bytes:
        raise Corrupt("tables of JPEG are damaged", path=source.path)
    return tables
