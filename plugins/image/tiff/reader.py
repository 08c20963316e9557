"""Reading: the pages of a TIFF file as one lazy array, and the tags as metadata."""

from __future__ import annotations

import io
import logging
import re
from contextlib import contextmanager
from math import prod
from threading import get_ident
from typing import TYPE_CHECKING

import numpy as np
import tifffile

from raconvert.arrays.blocks import check_memory
from raconvert.errors import Corrupt, Unsupported, UsageError
from raconvert.plugin import Array, Axis, Bundle, Metadata, dtype_of, element

from ..metadata import NAMESPACE, lazily
from ..reader import Stack, check_total, guarded
from .axes import imagej_images, noted_shape, view
from .pixels import Page
from .tables import BYTES, KNOWN, PHOTOMETRICS, TEXTS, TYPES, UNITS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import Any

    from raconvert.plugin import Source

REDUCED, MASK = 1, 4  # bits of NewSubfileType (tag 254)
PLANES_OF_STK = 33629  # MetaMorph: as many images as this tag has values, in one directory
MAX_TAG_BYTES = 1 << 20
READ_TIMES, LEAST_BUDGET = 8, 1 << 20  # how often the bytes of the file may be read for its tags
WHAT = "the structure of the TIFF file"


class _File(io.BufferedReader):
    """A file of which nothing is asked that it does not have, whatever its tags announce.

    Directories that overlap, or share large values, would be read again and again: there is a
    budget for all that is read of them, in proportion to the file.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source.open())
        self._path, self._size = source.path, source.size
        self._left = READ_TIMES * source.size + LEAST_BUDGET

    def read(self, nbytes: int | None = -1) -> bytes:
        left = max(0, self._size - self.tell())
        nbytes = left if nbytes is None or nbytes < 0 else min(nbytes, left)
        self._left -= nbytes
        if self._left < 0:
            raise Corrupt("its directories overlap, or share their values", path=self._path)
        return super().read(nbytes)

    def readinto(self, buffer: Any) -> int:
        data = self.read(memoryview(buffer).nbytes)
        memoryview(buffer).cast("B")[: len(data)] = data
        return len(data)


class _Errors(logging.Handler):
    """What tifffile logs as an error in this thread; it goes on with a guess, and we do not."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.thread, self.found = get_ident(), list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        # Readers skip tags of an unknown type (section 2).
        if record.thread == self.thread and "invalid data type" not in record.getMessage():
            text = re.sub(
                r"<tifffile\.TiffTag (\d+) @(\d+)>", r"tag \1 at byte \2:", record.getMessage()
            )
            self.found.append(re.sub(r"<[^>]*>|raised|TiffFileError|[()']", "", text).strip())


class _Tiff:
    """An open file; `page` gives one of its pages as tifffile has it, or None behind the last."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._seen: set[int] = set()
        self._file = _File(source)
        try:
            with self._checked():
                self._pages = tifffile.TiffFile(self._file, name="image").pages
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> _Tiff:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def page(self, number: int) -> Any:
        """A page that was not asked for before."""
        with self._checked():
            try:
                page = self._pages[number]
            except IndexError:
                return None
        if page.offset in self._seen:
            where = f"byte {page.offset}"
            raise Corrupt("directories form a loop", path=self._source.path, where=where)
        self._seen.add(page.offset)
        return page

    def pixels(self, page: Any) -> Page:
        """The same, checked."""
        with self._checked():
            return Page(page, self._source)

    def data(self, page: Any, code: int) -> bytes:
        """The value of a tag as it is in the file; empty if it is not there."""
        tag = page.tags.get(code)
        if tag is None or int(tag.dtype) not in TYPES:
            return b""
        nbytes = tag.count * TYPES[int(tag.dtype)][0]
        return self._source.read_exact(tag.valueoffset, nbytes, f"the value of tag {code}")

    @contextmanager
    def _checked(self) -> Iterator[None]:
        errors, log = _Errors(), logging.getLogger("tifffile")
        log.addHandler(errors)
        try:
            with guarded(self._source.path, WHAT, self._source.max_memory):
                yield
        finally:
            log.removeHandler(errors)
        if errors.found:
            raise Corrupt(f"{WHAT} is damaged ({errors.found[0]})", path=self._source.path)


def read_pages(source: Source, *, palette: str, pages: str) -> Bundle:
    """The bundle that `raconvert.plugins.image.tiff.read` promises."""
    closers: list[Callable[[], None]] = []
    # Guarded as a whole: any tag may be of a type that it never has in an honest file.
    with _Tiff(source) as tiff, guarded(source.path, WHAT, source.max_memory):
        chosen = _chosen(tiff, source, pages)
        text = _text(tiff.data(chosen.page, 270))
        meta = _metadata(tiff, chosen, text)
    table = None
    if palette == "expand" and chosen.first.photometric == 3:
        table = _color_table(source, meta.formats[NAMESPACE].pop("colormap"), chosen.first)
        del meta.formats[NAMESPACE]["photometric"]
    array = _array(source, chosen, text, meta, table, closers)
    return Bundle([array], notes=chosen.notes, closers=closers)


class _Chosen:
    """The pages of the array: all of one kind; their numbers, and whether they lie in a row."""

    def __init__(self, page: Any, first: Page) -> None:
        self.page, self.first = page, first
        self.run = first.run()  # start and end of the pixels of all pages
        self.numbers: list[int] = []
        self.notes: list[str] = []

    def add(self, number: int, page: Page) -> None:
        """Add a page; keep the run as long as the pages lie behind each other."""
        if self.numbers and self.run is not None:
            run = page.run()
            follows = run is not None and run[0] == self.run[1]
            self.run = (self.run[0], run[1]) if follows and run is not None else None
        self.numbers.append(number)


def _chosen(tiff: _Tiff, source: Source, pages: str) -> _Chosen:
    wanted = _range_of(pages, source.path)
    chosen: _Chosen | None = None
    reduced = below = number = texts = 0
    while (page := tiff.page(number + reduced)) is not None:
        if page.subfiletype & (REDUCED | MASK):
            reduced += 1
            continue
        if number in wanted:
            pixels = tiff.pixels(page)
            below += len(page.subifds or ())
            if chosen is None:
                chosen = _Chosen(page, pixels)
            elif pixels.kind != chosen.first.kind:
                raise Unsupported(
                    f"page {number} is not like the first one", path=source.path,
                    expected=chosen.first.kind, got=pixels.kind,
                    remedy="read the pages one by one: --in-opt pages=N, or pages=START:STOP",
                )  # fmt: skip
            texts += page.description not in ("", chosen.page.description)
            chosen.add(number + reduced, pixels)
        number += 1
    if chosen is None:
        if number:
            expected = f"0 to {number - 1}"
            raise UsageError(f"has no page {pages}", path=source.path, expected=expected)
        raise Corrupt("has no page that is not a reduced image or a mask", path=source.path)
    for found, note in (
        (reduced, f"{reduced} reduced images or masks are left out"),
        (below, f"{below} images below others (SubIFDs) are left out"),
        (texts, "pages have descriptions of their own; the first one is kept"),
    ):
        chosen.notes += [note] * bool(found)
    return chosen


def _range_of(pages: str, path: str) -> range:
    """The page numbers that the option names."""
    if pages == "all":
        return range(1 << 62)
    start, colon, stop = pages.partition(":")
    try:
        first = int(start or 0)
        last = (int(stop) if stop else 1 << 62) if colon else first + 1
    except ValueError:
        first, last = 0, 0
    if not 0 <= first < last:
        what = f"pages={pages} is not understood"
        raise UsageError(what, path=path, expected="all, N or START:STOP")
    return range(first, last)


# --------------------------------------------------------------------------------------- arrays


def _array(
    source: Source,
    chosen: _Chosen,
    text: str,
    meta: Metadata,
    table: np.ndarray[Any, Any] | None,
    closers: list[Callable[[], None]],
) -> Array:
    """The array; added to `closers` is what closes its file."""
    page = chosen.first
    (kind, nbytes), whole = page.element, page.bits % 8 == 0
    triple = (page.height, page.width, page.samples)
    count = _hidden(chosen, text, source) or len(chosen.numbers)
    resolution = meta.formats.get(NAMESPACE, {}).get("resolution")
    shape, meta.axes = view(text, count, triple, resolution)
    noted = noted_shape(text)
    if noted and noted[0] != shape and prod(noted[0]) == prod(shape):
        chosen.notes.append(f"the description says {noted[0]}; the pages are read as {shape}")
    in_place = chosen.run is not None and table is None
    stored = element(kind, nbytes, page.order if nbytes > 1 and whole and in_place else "<")
    place: dict[str, Any] = {}
    if in_place and chosen.run is not None:
        swap = 1 if stored.order != ">" else nbytes // (2 if kind == "complex" else 1)
        place["extent"] = source.extent(chosen.run[0], chosen.run[1] - chosen.run[0], swap)
    else:
        if table is not None:
            shape, stored = (*shape, 3), element("uint", 2)
            meta.axes = [Axis(), *meta.axes] if meta.axes else []
        check_total(source, prod(shape) * stored.nbytes)
        need = page.decoded_bytes + 2 * page.nbytes * (1 if table is None else 7)
        what = f"'{source.path}': a page of {page.height} × {page.width}"
        check_memory(need, source.max_memory, what)
        place["data"] = lazily(lambda: _stack(source, chosen, shape, stored, table), closers)
    storage = {"pages": count, "compression": page.compression, "tiled": page.tiled}
    return Array(
        stored, shape[::-1], name=source.stem, index_order="C", meta=meta, storage=storage, **place
    )


def _stack(source: Source, chosen: _Chosen, shape: Any, stored: Any, table: Any) -> Stack:
    def images(first: int) -> Generator[np.ndarray[Any, Any], None, None]:
        with _Tiff(source) as tiff:
            for number in chosen.numbers[first:]:
                page = tiff.pixels(tiff.page(number))
                if page.kind != chosen.first.kind:
                    raise page.corrupt("page changed while the file was read")
                with guarded(source.path, "a page", source.max_memory):
                    values = page.decode()
                yield values if table is None else table[values]

    return Stack(source, shape, dtype_of(stored), len(chosen.numbers), images)


def _hidden(chosen: _Chosen, text: str, source: Source) -> int:
    """The number of images in a file that has one directory for several; 0 for others.

    They lie behind the first one, uncompressed. Where they cannot be there the file is refused:
    silence would lose them.
    """
    noted, planes = noted_shape(text), chosen.page.tags.get(PLANES_OF_STK)
    copied = prod(noted[0]) // prod(chosen.first.shape) if noted else 0
    said = max(imagej_images(text), planes.count if planes else 0)
    count = max(said, copied)
    if len(chosen.numbers) > 1 or count <= 1 or (chosen.run is None and not said):
        return 0
    if chosen.run is None:
        what = f"has one directory for {count} images, and they are compressed"
        raise Unsupported(what, path=source.path)
    start, end = chosen.run
    if start + count * (end - start) > source.size:
        if copied == count and not planes:
            return 0  # a description that was copied from another file
        raise Corrupt(
            "file is shorter than the images that its description announces",
            path=source.path, expected=f"{count} images of {end - start} bytes",
            got=f"{source.size - start} bytes",
        )  # fmt: skip
    chosen.run = (start, start + count * (end - start))
    return count


def _color_table(source: Source, data: bytes, page: Page) -> np.ndarray[Any, Any]:
    """The colours of a palette image: uint16, as the color map of a TIFF has them."""
    if len(data) != 6 << page.bits or page.element[0] != "uint":
        raise Corrupt("color map has the wrong length", path=source.path, expected=6 << page.bits)
    return np.frombuffer(data, "<u2").reshape(3, -1).T


# ------------------------------------------------------------------------------------- metadata


def _metadata(tiff: _Tiff, chosen: _Chosen, text: str) -> Metadata:
    page, first = chosen.page, chosen.first
    fields: dict[str, Any] = {}
    _add_resolution(page.tags.valueof, fields)
    _add_pixels(page.tags.valueof, first, fields)
    for code, name in TEXTS.items():
        if found := _text(tiff.data(page, code)):
            fields[name] = found
    for code, name in BYTES.items():
        if data := tiff.data(page, code):
            fields[name] = data
    if first.photometric == 3:
        fields["colormap"] = _little(page, 320, tiff.data(page, 320))
    tags = [
        [int(tag.code), int(tag.dtype), _little(page, tag.code, data)]
        for tag in sorted(page.tags, key=lambda tag: tag.code)
        if tag.code not in KNOWN and tag.count <= MAX_TAG_BYTES
        if 0 < len(data := tiff.data(page, tag.code)) <= MAX_TAG_BYTES
    ]
    if tags:
        fields["tags"] = tags
    noted = noted_shape(text)
    description: Any = text
    if noted:
        description = noted[1].pop("description", None)
        if noted[1]:
            fields["shaped"] = noted[1]
    return Metadata(
        description=description if isinstance(description, str) else None,
        formats={NAMESPACE: fields} if fields else None,
    )


def _add_resolution(value: Any, fields: dict[str, Any]) -> None:
    x, y, unit = value(282), value(283), UNITS.get(value(296, 2))
    pairs = [list(map(int, pair)) for pair in (x, y) if isinstance(pair, tuple) and len(pair) == 2]
    usual = unit == "none" and all(pair in ([0, 1], [1, 1]) for pair in pairs)
    if len(pairs) == 2 and unit and not usual:
        fields["resolution"] = [*pairs, unit]


def _add_pixels(value: Any, first: Page, fields: dict[str, Any]) -> None:
    """Add what the numbers of the pixels mean, where it is not the usual thing."""
    if value(274) in range(2, 9):
        fields["orientation"] = int(value(274))
    if first.photometric in PHOTOMETRICS:
        fields["photometric"] = PHOTOMETRICS[first.photometric]
    elif first.photometric == 1 and first.samples in (3, 4):
        fields["photometric"] = "minisblack"
    if first.bits % 8 and first.bits > 1:
        fields["bits"] = first.bits
    extra = [int(n) for n in np.atleast_1d(value(338, ()))]
    if extra and (extra != [2] or first.samples > 4):
        fields["extra_samples"] = extra


def _little(page: Any, code: int, data: bytes) -> bytes:
    """The value of a tag in little-endian order."""
    width = TYPES[int(page.tags[code].dtype)][1] if data else 1
    swap = page.parent.byteorder == ">" and width > 1
    return np.frombuffer(data, f"u{width}").byteswap().tobytes() if swap else data


def _text(data: bytes) -> str:
    """The text of an ASCII tag; writers also put UTF-8 and Latin-1 there."""
    data = data.rstrip(b"\0")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
