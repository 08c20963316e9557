"""Reading: the pages of a TIFF file as one lazy array, and the tags as metadata."""

from __future__ import annotations

from math import prod

import numpy as np

from raconvert.arrays.blocks import check_memory
from raconvert.errors import Corrupt, RaconvertError, Unsupported, UsageError
from raconvert.plugin import Array, Axis, Bundle, Metadata, dtype_of, element

from ..lazy import lazily
from ..meta import NAMESPACE
from ..stack import Stack, check_total
from .directory import TYPES, Directory, Tiff
from .page import PHOTOMETRICS, Page
from .shapes import imagej_images, noted_shape, view
from .tags import BYTES, KNOWN, TEXTS, UNITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from raconvert.plugin import Element, Source

REDUCED, MASK = 1, 4  # bits of NewSubfileType (tag 254)
PLANES_OF_STK = 33629  # MetaMorph: as many images as this tag has values, in one directory
MAX_TAG_BYTES = 1 << 20


def read_pages(source: Source, *, palette: str, pages: str) -> Bundle:
    """Return the bundle that `raconvert.plugins.image.tiff.read` promises."""
    with source.open() as file:
        tiff = Tiff(file, source.path, source.size)
        chosen = _Chosen(tiff, pages)
        first, notes = chosen.first, chosen.notes
        text = _text(first.directory.data(270))
        meta = _metadata(first, text)
        fields = meta.formats.get(NAMESPACE, {})
        closers: list[Callable[[], None]] = []
        array, meta.axes = _array(source, chosen, text, fields.get("resolution"), closers)
        if palette == "expand" and first.photometric == 3:
            array = _expanded(source, array, first)
            fields.pop("photometric")
            meta.axes = [Axis(), *meta.axes] if meta.axes else []
    array.meta = meta
    return Bundle([array], notes=notes, closers=closers)


class _Chosen:
    """The pages of the array: all of one kind; their directories, and whether they lie in a row."""

    def __init__(self, tiff: Tiff, pages: str) -> None:
        self.tiff = tiff
        self.notes: list[str] = []
        self.offsets: list[int] = []
        self.run: tuple[int, int] | None = None  # start and end of the pixels of all pages
        wanted = _range_of(pages, tiff.path)
        found: Page | None = None
        reduced = below = number = 0
        several_texts = False
        for offset in tiff.offsets():
            directory = Directory(tiff, offset)
            if directory.number(254, 0) & (REDUCED | MASK):
                reduced += 1
                continue
            if number in wanted:
                page = Page(directory)
                below += page.below
                if found is None:
                    found = page
                    description = directory.data(270)
                elif page.kind != found.kind:
                    raise self._odd(page, found, number)
                else:
                    several_texts |= directory.data(270) not in (b"", description)
                self._extend(page)
            number += 1
        if found is None:
            raise self._none(number, reduced, pages)
        self.first = found
        if reduced:
            self.notes.append(f"{reduced} reduced images or masks are left out")
        if below:
            self.notes.append(f"{below} images below others (SubIFDs) are left out")
        if several_texts:
            self.notes.append("pages have descriptions of their own; the first one is kept")

    def _extend(self, page: Page) -> None:
        """Add a page; keep the run as long as the pages lie behind each other."""
        run = page.run()
        if not self.offsets:
            self.run = run
        elif self.run is not None:
            follows = run is not None and run[0] == self.run[1]
            self.run = (self.run[0], run[1]) if follows and run is not None else None
        self.offsets.append(page.offset)

    def _odd(self, page: Page, first: Page, number: int) -> Unsupported:
        return Unsupported(
            f"page {number} is not like the first one",
            path=self.tiff.path,
            expected=_words(first),
            got=_words(page),
            remedy="read the pages one by one with --in-opt pages=N, or a range pages=START:STOP",
        )

    def _none(self, number: int, reduced: int, pages: str) -> RaconvertError:
        if number:
            return UsageError(
                f"has no page {pages}", path=self.tiff.path, expected=f"0 to {number - 1}"
            )
        what = "has only reduced images or masks" if reduced else "has no page"
        return Corrupt(what, path=self.tiff.path)


def _words(page: Page) -> str:
    kind = page.kind
    name = PHOTOMETRICS.get(kind.photometric, "grey" if kind.photometric == 1 else "RGB")
    return f"{kind.bits}-bit {page.element[0]} {page.shape}, {name}"


def _range_of(pages: str, path: str) -> range:
    """Return the page numbers that the option names."""
    if pages == "all":
        return range(1 << 62)
    start, colon, stop = pages.partition(":")
    try:
        first = int(start or 0)
        last = (int(stop) if stop else 1 << 62) if colon else first + 1
    except ValueError:
        first, last = 0, 0
    if not 0 <= first < last:
        raise UsageError(
            f"pages={pages} is not understood", path=path, expected="all, N or START:STOP"
        )
    return range(first, last)


# --------------------------------------------------------------------------------------- arrays


def _array(
    source: Source,
    chosen: _Chosen,
    text: str,
    resolution: list[Any] | None,
    closers: list[Callable[[], None]],
) -> tuple[Array, list[Axis]]:
    """Return the array without metadata, and its axes; add to `closers` what closes its file."""
    page = chosen.first
    kind, nbytes = page.element
    triple = (page.height, page.width, page.samples)
    noted = noted_shape(text)
    hidden = _hidden(chosen, text, prod(noted[0]) // prod(triple) if noted else 0)
    count = hidden or len(chosen.offsets)
    shape, axes = view(text, count, triple, resolution)
    if noted and noted[0] != shape and prod(noted[0]) == prod(shape):
        chosen.notes.append(f"the description says {noted[0]}; the pages are read as {shape}")
    order = page.tiff.layout.order if nbytes > 1 and page.bits % 8 == 0 and chosen.run else "<"
    stored = element(kind, nbytes, order)
    fields: dict[str, Any] = {"index_order": "C", "name": source.stem}
    if chosen.run is not None:
        start, end = chosen.run
        swap = 1 if stored.order != ">" else nbytes // (2 if kind == "complex" else 1)
        fields["extent"] = source.extent(start, end - start, swap)
    else:
        check_total(source, prod(shape) * nbytes)
        check_memory(
            page.decoded_bytes + 2 * page.nbytes,
            source.max_memory,
            f"'{source.path}': a page of {page.height} × {page.width}",
        )
        fields["data"] = lazily(lambda: Pages(source, chosen.offsets, page, shape, stored), closers)
    storage = {"pages": count, "compression": page.compression, "tiled": page.tiled}
    return Array(stored, shape[::-1], storage=storage, **fields), axes


def _hidden(chosen: _Chosen, text: str, noted: int) -> int:
    """Return the number of images in a file that has one directory for several; 0 for others.

    They lie behind the first one, uncompressed. Where they cannot be there the file is refused:
    silence would lose them.
    """
    page = chosen.first
    planes = page.directory.entries.get(PLANES_OF_STK)
    count = max(imagej_images(text), noted, planes.count if planes else 0)
    if len(chosen.offsets) > 1 or count <= 1:
        return 0
    if chosen.run is None:
        if planes or imagej_images(text):
            raise Unsupported(
                f"has one directory for {count} images, and they are compressed",
                path=page.tiff.path,
            )
        return 0
    start, end = chosen.run
    if start + count * (end - start) > page.tiff.size:
        if noted == count and not planes:
            return 0  # a description that was copied from another file
        raise Corrupt(
            "file is shorter than the images that its description announces",
            path=page.tiff.path,
            expected=f"{count} images of {end - start} bytes",
            got=f"{page.tiff.size - start} bytes",
        )
    chosen.run = (start, start + count * (end - start))
    return count


class Pages(Stack):
    """Array source: the pages of a file."""

    def __init__(
        self,
        source: Source,
        offsets: list[int],
        first: Page,
        shape: tuple[int, ...],
        stored: Element,
    ) -> None:
        super().__init__(source, shape, dtype_of(stored), len(offsets))
        self._offsets = offsets
        self._kind = first.kind

    def images(self, first: int) -> Generator[np.ndarray[Any, Any], None, None]:
        """Yield the pages from number `first` on."""
        with self.source.open() as file:
            tiff = Tiff(file, self.source.path, self.source.size)
            for offset in self._offsets[first:]:
                page = Page(Directory(tiff, offset))
                if page.kind != self._kind:
                    raise tiff.corrupt("page changed while the file was read", offset)
                yield page.decode()


class Colors:
    """Array source: indices of another one, looked up in a table of colours."""

    def __init__(self, source: Any, table: np.ndarray[Any, Any]) -> None:
        self.shape = (*source.shape, 3)
        self.dtype = table.dtype
        self._source = source
        self._table = table

    def __getitem__(self, key: Any) -> Any:
        key = key if isinstance(key, tuple) else (key,)
        if any(part is Ellipsis for part in key):
            at = next(i for i, part in enumerate(key) if part is Ellipsis)
            missing = len(self.shape) - len(key) + 1
            key = (*key[:at], *[slice(None)] * missing, *key[at + 1 :])
        inner, last = key[: len(self.shape) - 1], key[len(self.shape) - 1 :]
        return self._table[np.asarray(self._source[inner])][(..., *last)]


def _expanded(source: Source, array: Array, page: Page) -> Array:
    """Return the colours of a palette image: uint16, as the color map of a TIFF has them."""
    numbers = page.directory.numbers(320)
    if len(numbers) != 3 << page.bits or page.element[0] != "uint":
        raise Corrupt(
            "color map has the wrong length", path=source.path, expected=3 << page.bits,
            got=len(numbers),
        )  # fmt: skip
    table = np.array(numbers, np.uint16).reshape(3, -1).T
    return array.replace(
        element=element("uint", 2),
        dims=(3, *array.dims),
        extent=None,
        data=lambda: Colors(array.data, table),
    )


# ------------------------------------------------------------------------------------- metadata


def _metadata(page: Page, text: str) -> Metadata:
    directory = page.directory
    fields: dict[str, Any] = {}
    _add_resolution(directory, fields)
    _add_pixels(page, fields)
    for tag, name in TEXTS.items():
        if value := _text(directory.data(tag)):
            fields[name] = value
    for tag, name in BYTES.items():
        if data := directory.data(tag):
            fields[name] = data
    if tags := _other_tags(directory):
        fields["tags"] = tags
    noted = noted_shape(text)
    description: str | None = text
    if noted:
        description = noted[1].pop("description", None)
        if noted[1]:
            fields["shaped"] = noted[1]
    return Metadata(
        description=description if isinstance(description, str) else None,
        formats={NAMESPACE: fields} if fields else None,
    )


def _add_pixels(page: Page, fields: dict[str, Any]) -> None:
    """Add what the numbers of the pixels mean, where it is not the usual thing."""
    directory = page.directory
    orientation = directory.number(274, 1)
    if 1 < orientation <= 8:
        fields["orientation"] = orientation
    if page.photometric in PHOTOMETRICS:
        fields["photometric"] = PHOTOMETRICS[page.photometric]
    elif page.photometric == 1 and page.samples in (3, 4):
        fields["photometric"] = "minisblack"
    if page.bits % 8 and page.bits > 1:
        fields["bits"] = page.bits
    extra = directory.numbers(338)
    if extra and (list(extra) != [2] or page.samples > 4):
        fields["extra_samples"] = list(extra)
    if page.photometric == 3:
        fields["colormap"] = np.array(directory.numbers(320), "<u2").tobytes()


def _add_resolution(directory: Directory, fields: dict[str, Any]) -> None:
    x, y = directory.fraction(282), directory.fraction(283)
    unit = UNITS.get(directory.number(296, 2))
    plain = [[0, 1], [1, 1]]
    if x and y and unit and not (x in plain and y in plain and unit == "none"):
        fields["resolution"] = [x, y, unit]


def _other_tags(directory: Directory) -> list[list[Any]]:
    """Return [tag, type, little-endian bytes] of everything that is not understood here."""
    found = []
    swap = directory.tiff.layout.order == ">"
    for tag, entry in sorted(directory.entries.items()):
        if tag in KNOWN or entry.nbytes > MAX_TAG_BYTES or entry.type in (13, 18):
            continue
        data = directory.tiff.raw(entry)
        width = TYPES[entry.type][1]
        if swap and width > 1:
            data = np.frombuffer(data, f"u{width}").byteswap().tobytes()
        found.append([tag, entry.type, data])
    return found


def _text(data: bytes) -> str:
    """Return the text of an ASCII tag; writers also put UTF-8 and Latin-1 there."""
    data = data.rstrip(b"\0")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
