"""Reading: the directories by tifffile, within bounds; their pages as one lazy array.

tifffile puts strips and tiles in their place; they are checked against the file and inflated here,
with limits that it does not have.
"""

from __future__ import annotations

import io
import logging
import re
from collections import Counter
from contextlib import contextmanager
from math import prod
from operator import index
from threading import get_ident
from typing import TYPE_CHECKING

import tifffile

from raconvert.arrays.memory import check_memory
from raconvert.errors import Corrupt, Unsupported
from raconvert.files.inflate import MAX_RATIO
from raconvert.plugin import Array, Bundle, element_of

from ..reader import guarded
from .codecs import BY_ROWS, CODECS, JPEG, REMEDY, check_extra
from .metadata import KNOWN, described, metadata_of_page, planar_axes, with_axes
from .pages import Grid, Pages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Source

    from .pages import Place

REDUCED, MASK = 1, 4  # bits of NewSubfileType (tag 254)
WHAT = "the structure of the TIFF file"
FORMATS = {1: "u", 2: "i", 3: "f", 4: "u", 5: "c", 6: "c"}  # tag 339, as the kind of a dtype
WHOLE = (8, 16, 32, 64, 128)  # bits of samples that numpy has
COMPLEX_INTEGERS, YCBCR = 5, 6  # of the sample format; photometric


class _File(io.BufferedReader):
    """A file of which nothing is asked that it does not have, whatever its tags announce.

    Directories that overlap, or share large values, would be read again and again: there is a
    budget for all that is read of them, in proportion to the file.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source.open())
        self._path, self._size = source.path, source.size
        self._left = source.limits.directory_passes * source.size + source.limits.record_bytes

    def read(self, nbytes: int | None = -1) -> bytes:
        left = max(0, self._size - self.tell())
        nbytes = left if nbytes is None or nbytes < 0 else min(nbytes, left)
        self._left -= nbytes
        if self._left < 0:
            raise Corrupt("its directories overlap, or share their values", path=self._path)
        return super().read(nbytes)


class _Strict(logging.Handler):
    """Log handler that raises `Corrupt` for an error of tifffile, which would guess instead."""

    def __init__(self, path: str) -> None:
        super().__init__(logging.ERROR)
        self.path, self.thread = path, get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.thread == self.thread:
            text = re.sub(r"<tifffile\.TiffTag (\d+) @(\d+)>", r"tag \1 at byte \2:", text)
            text = re.sub(r"<[^>]*>|raised|TiffFileError|[()']", "", text).strip()
            raise Corrupt(f"{WHAT} is damaged ({text})", path=self.path)


@contextmanager
def opened(source: Source) -> Iterator[Any]:
    """Open the file with tifffile."""
    strict, log = _Strict(source.path), logging.getLogger("tifffile")
    log.addHandler(strict)
    before, log.propagate = log.propagate, False
    try:
        with _File(source) as file, guarded(source.path, WHAT):
            yield tifffile.TiffFile(file, name="image", _multifile=False)
    finally:
        log.propagate = before
        log.removeHandler(strict)


def read_pages(source: Source) -> Bundle:
    """The bundle that `raconvert.plugins.image.tiff.read` promises."""
    first, places, verbatim = None, list["Place"](), True
    seen: set[int] = set()
    left_out: Counter[str] = Counter()
    with opened(source) as file:
        for number, page in enumerate(file.pages):
            if page.offset in seen:
                where = f"byte {page.offset}"
                raise Corrupt("directories form a loop", path=source.path, where=where)
            seen.add(page.offset)
            alike = first and (page.hash, page.planarconfig) == (first.hash, first.planarconfig)
            if page.subfiletype & (REDUCED | MASK) and not alike:
                left_out["reduced images or masks"] += 1
                continue
            places.append(checked(page, source))
            if first and not alike:
                raise Unsupported(
                    f"page {number} is not like the first one", path=source.path,
                    expected=f"{first.shape} {first.dtype}, compression {int(first.compression)}",
                    got=f"{page.shape} {page.dtype}, compression {int(page.compression)}",
                    remedy=f"take the pages apart, for instance with: tiffcp IN,{number} OUT",
                )  # fmt: skip
            verbatim = verbatim and page.is_final
            left_out["images below others (SubIFDs)"] += len(page.subifds or ())
            first = first or page
            other = page.description not in ("", first.description)
            left_out["descriptions of pages behind the first"] += other
        if first is None:
            raise Corrupt("has no page that is not a reduced image or a mask", path=source.path)
        others = ", ".join(str(code) for code in sorted(first.tags.keys()) if code not in KNOWN)
        notes = [f"tags that are left out: {others}"] if others else []
        notes += [f"{count} {what} are left out" for what, count in left_out.items() if count]
        array = _array(source, file, first, places, verbatim, notes)
    return Bundle([array], notes=notes)


def checked(page: Any, source: Source) -> Place:
    """Check a page, and return the offsets and lengths of its strips or tiles, and JPEG's tables.

    Raises `Unsupported` for a page that is not read here, `Corrupt` for one that cannot be.
    """
    where, bits = f"directory at byte {page.offset}", page.bitspersample
    offsets, counts = tuple(map(index, page.dataoffsets)), tuple(map(index, page.databytecounts))
    list(map(index, (page.imagelength, page.imagewidth, page.samplesperpixel, page.rowsperstrip)))
    faults = _faults(page) | {
        "strips or tiles without data (a sparse file)": 0 in offsets or 0 in counts,
    }  # fmt: skip
    for fault in (what for what, faulty in faults.items() if faulty):
        raise Unsupported(f"has {fault}", path=source.path, where=where, remedy=REMEDY)
    grid = Grid(page) if page.nbytes else None
    ratio = CODECS[page.compression].ratio or (grid.columns if grid else 1)
    damage = {
        "page, strips or tiles have no pixels": not grid or not grid.nbytes,
        f"has {len(offsets)} strips or tiles":
            not len(offsets) == len(counts) == prod(page.chunked),
        "file ends inside its pixels":
            max(map(sum, zip(offsets, counts, strict=False)), default=0) > source.size,
        "strips or tiles overlap": sum(counts) > source.size,
        "declares more pixels than its compressed bytes can hold":
            prod(page.shape) * bits // 8 > ratio * sum(counts) + (64 if ratio > 1 else 0),
    }  # fmt: skip
    for fault in (what for what, faulty in damage.items() if faulty):
        raise Corrupt(fault, path=source.path, where=where)
    for need in (what for what, needed in _extras(page).items() if needed):
        check_extra(need, source.path)
    return offsets, counts, _tables(page, source)


def _faults(page: Any) -> dict[str, bool]:
    """Reasons not to read a page, and whether it has them."""
    bits, compression, predictor = page.bitspersample, page.compression, page.predictor
    kind = "b" if bits == 1 else FORMATS.get(page.sampleformat)
    known = page.dtype is not None and page.dtype.kind == kind and isinstance(bits, int)
    own = known and bits in WHOLE and page.sampleformat != COMPLEX_INTEGERS
    predicted = {1: known, 2: own and kind in ("u", "i", "f"), 3: own and kind == "f"}
    pictures = (JPEG, *BY_ROWS)
    return {
        f"pixels compressed as {getattr(compression, 'name', compression)}":
            compression not in CODECS,
        f"samples of {bits} bits in format {page.sampleformat}": not known,
        f"pixels of {bits} bits compressed as {getattr(compression, 'name', compression)}":
            compression in BY_ROWS and (bits != 1 or page.samplesperpixel != 1),
        "colour at a lower resolution (YCbCr subsampling)":
            page.photometric == YCBCR and page.tags.valueof(530, (2, 2)) != (1, 1)
            and (compression != JPEG or page.planarconfig != 1),
        "images with a depth": max(index(page.imagedepth), index(page.tiledepth)) > 1,
        f"predictor {predictor} of samples of {bits} bits":
            not predicted.get(predictor) or (predictor != 1 and compression in pictures),
    }  # fmt: skip


def _extras(page: Any) -> dict[str, bool]:
    """The kinds of pixels that imagecodecs is needed for, and whether a page has them."""
    bits, codec = page.bitspersample, CODECS[page.compression]
    return {
        f"pixels compressed by {codec.name}": codec.extra,
        f"predictor {page.predictor}": page.predictor == 3,
        f"samples of {bits} bits": bits not in (1, *WHOLE),
    }


def _tables(page: Any, source: Source) -> bytes:
    """The tables that all strips or tiles of JPEG share."""
    tables = page.tags.valueof(347) if page.compression == JPEG else None
    if tables is not None and not (
        isinstance(tables, bytes) and len(tables) <= source.limits.record_bytes
    ):
        raise Corrupt("tables of JPEG are damaged", path=source.path)
    return tables or b""


def _array(
    source: Source, file: Any, page: Any, places: list[Place], verbatim: bool, notes: list[str]
) -> Array:
    """The pages as one array: as the file has them if they lie behind each other, or decoded."""
    meta, grid, count = metadata_of_page(page), Grid(page), len(places)
    size = grid.shape(grid.planar)
    start, step = places[0][0][0], page.nbytes
    verbatim &= all(segment[0][0] == start + n * step for n, segment in enumerate(places))
    series = described(file, meta.description or "", count, page, source.limits)
    images = (file.imagej_metadata or {}).get("images", 1)
    said = max(series.nbytes // step if series else 1, images if type(images) is int else 1)
    if count == 1 < said:  # one directory for all images
        if not (verbatim and series and said * step <= series.nbytes <= source.size - start):
            what = "has one directory for several images that its description announces"
            expected = f"{said} images behind each other"
            raise Unsupported(what, path=source.path, expected=expected)
        count = said
    shape = (count,) * (count > 1) + size
    planes_first = grid.planar
    if series:
        if (order := _order_of_planes(page, series, count, source)) is None:
            notes.append(f"the description says {series.shape}; the pages are read as {shape}")
        else:
            shape, planes_first = series.shape, order
        meta = with_axes(meta, file, series, shape)
    if planes_first and not meta.axes and shape[-3:] == size:
        meta = meta.replace(axes=planar_axes(page, len(shape)))
    words: dict[str, Any] = {"name": source.stem, "index_order": "C", "meta": meta}
    words["storage"] = {"pages": len(places), "compression": int(page.compression)}
    if verbatim and planes_first == grid.planar:
        dtype = page.dtype.newbyteorder(page.parent.byteorder)
        swap = dtype.itemsize // (2 if dtype.kind == "c" else 1) if dtype.byteorder == ">" else 1
        extent = source.extent(start, count * step, swap)
        return Array(element_of(dtype), shape[::-1], extent=extent, **words)
    if page.compression == JPEG:
        notes.append("pixels are compressed by JPEG: they are those that libjpeg-turbo decodes")
    if page.sampleformat == COMPLEX_INTEGERS:
        notes.append("complex numbers of two integers are read as complex floats, exactly")
    needs = grid.needs(page.dtype.itemsize, page.compression) + max(map(max, _counts(places)))
    stack = Pages(source, page, places, shape, planes_first)
    if stack.nbytes > MAX_RATIO * source.size:
        what = f"{stack.what}: all its images together"
        check_memory(stack.nbytes, source.max_memory, what)
    check_memory(needs, source.max_memory, f"{stack.what}: a strip or a row of tiles")
    return Array(element_of(stack.dtype), shape[::-1], data=lambda: stack, **words)


def _counts(places: list[Place]) -> Iterator[tuple[int, ...]]:
    """The bytes of the strips or tiles of each page."""
    return (counts for _, counts, _ in places)


def _fits(series: Any, count: int, size: tuple[int, ...]) -> bool:
    """Return if the shape that a description tells ends with that of a page, and has all pages."""
    long, tail = ([n for n in lengths if n > 1] for lengths in (series.shape, size))
    return long[len(long) - len(tail) :] == tail and prod(series.shape) == count * prod(size)


def _order_of_planes(page: Any, series: Any, count: int, source: Source) -> bool | None:
    """Return if the described shape has the samples before rows and columns; None if it fits not.

    tifffile describes elements in the order of the file, so planes of samples come first in what it
    wrote. The description of a file whose samples another program took apart tells the order from
    before.
    """
    grid = Grid(page)
    first = grid.planar and _fits(series, count, grid.shape(True))
    after = _fits(series, count, grid.shape(False))
    if not first:
        return False if after else None
    by_tifffile = str(page.tags.valueof(305, "")).startswith("tifffile") or series.kind
    if after and grid.height * grid.width > 1 and not by_tifffile:
        raise Unsupported(
            f"has each sample in a plane of its own, and a description whose shape {series.shape} "
            "can mean samples before or after rows and columns", path=source.path,
            remedy="put the samples of a pixel together: tiffcp -p contig IN OUT",
        )  # fmt: skip
    return True
