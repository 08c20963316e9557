"""Reading: the pages of a TIFF file as one lazy array, and the tags as metadata."""

from __future__ import annotations

import json
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.blocks import check_memory
from raconvert.arrays.indexing import full_key
from raconvert.arrays.lazy import Decoded
from raconvert.errors import Corrupt, Unsupported, UsageError
from raconvert.files.inflate import MAX_RATIO
from raconvert.plugin import Array, Bundle, element_of

from ..metadata import NAMESPACE, metadata_of
from ..reader import guarded
from . import codecs
from .axes import announced, axes_of, described
from .header import chain, opened
from .tables import KNOWN, UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.metadata import Metadata
    from raconvert.plugin import Source

    from .codecs import Values

REDUCED, MASK = 1, 4  # bits of NewSubfileType (tag 254)
REDUCED_NOTE = "{} reduced images or masks are left out"
BELOW_NOTE = "{} images below others (SubIFDs) are left out"
TEXTS_NOTE = "{} pages have descriptions of their own; the first one is kept"


def read_pages(source: Source, pages: str) -> Bundle:
    """The bundle that `raconvert.plugins.image.tiff.read` promises."""
    if pages != "all" and not (pages.isascii() and pages.isdecimal()):
        raise UsageError(f"pages={pages} is not understood", path=source.path, expected="all or N")
    first, places, run, number = None, [], None, 0
    counts = dict.fromkeys((REDUCED_NOTE, BELOW_NOTE, TEXTS_NOTE), 0)
    with opened(source) as file:
        for page in chain(file, source.path):
            if page.subfiletype & (REDUCED | MASK):
                counts[REDUCED_NOTE] += 1
                continue
            if pages in ("all", str(number)):
                places.append(codecs.checked(page, source))
                first = first or page
                if _kind(page) != _kind(first):
                    _refuse(number, page, first, source)
                run = _longer(run, page, first=page is first)
                counts[BELOW_NOTE] += len(page.subifds or ())
                counts[TEXTS_NOTE] += page.description not in ("", first.description)
            number += 1
        if first is None and number:
            expected = f"0 to {number - 1}"
            raise UsageError(f"has no page {pages}", path=source.path, expected=expected)
        if first is None:
            raise Corrupt("has no page that is not a reduced image or a mask", path=source.path)
        others = ", ".join(str(code) for code in sorted(first.tags.keys()) if code not in KNOWN)
        notes = [f"tags that are left out: {others}"] if others else []
        notes += [note.format(count) for note, count in counts.items() if count]
        whole = file if pages == "all" else None
        array = _array(source, whole, first, places, run, notes)
    return Bundle([array], notes=notes)


def _kind(page: Any) -> tuple[Any, ...]:
    """What the pages of a stack must have in common, and what they are decoded by."""
    return (page.shaped, page.dtype, page.photometric, page.compression, page.predictor,
            page.planarconfig, page.is_tiled, page.hash)  # fmt: skip


def _refuse(number: int, page: Any, first: Any, source: Source) -> None:
    raise Unsupported(
        f"page {number} is not like the first one", path=source.path,
        expected=f"{first.shape} {first.dtype}, compression {int(first.compression)}",
        got=f"{page.shape} {page.dtype}, compression {int(page.compression)}",
        remedy="read the pages one by one: --in-opt pages=N",
    )  # fmt: skip


def _longer(run: tuple[int, int] | None, page: Any, *, first: bool) -> tuple[int, int] | None:
    """Start and end of the pixels of all pages, if this one lies behind the others, verbatim."""
    verbatim = page.is_final and page.planarconfig == 1
    if not verbatim or (not first and (run is None or run[1] != page.dataoffsets[0])):
        return None
    start = page.dataoffsets[0]
    return (run[0] if run else start), start + page.nbytes


def _array(
    source: Source, file: Any, page: Any, places: list[Any], run: Any, notes: list[str]
) -> Array:
    meta = _metadata(page)
    samples, count = page.samplesperpixel, len(places)
    size = (page.imagelength, page.imagewidth) + (samples,) * (samples > 1)
    shape = (count,) * (count > 1) + size
    series = described(file, meta.description or "", count, samples) if file else None
    behind = series.nbytes if series is not None else 0
    # One directory for all images, unless the description was copied from another file.
    if run and run[0] + behind <= source.size and count == 1 < behind // page.nbytes:
        run, count = (run[0], run[0] + behind), behind // page.nbytes
    said = announced(file, series, prod(size)) if file else 1
    if count == 1 < said:
        what = "has one directory for several images that its description announces"
        raise Unsupported(what, path=source.path, expected=f"{said} images behind each other")
    tail = tuple(n for n in size if n > 1)
    if series and prod(series.shape) == count * prod(size) and _ends(series.shape, tail):
        shape = series.shape
    elif series:
        notes.append(f"the description says {series.shape}; the pages are read as {shape}")
    _add_axes(meta, file, series, shape)
    order: dict[str, Any] = {"name": source.stem, "index_order": "C", "meta": meta}
    order["storage"] = {"pages": count, "compression": int(page.compression)}
    if run is not None:
        dtype = page.dtype.newbyteorder(page.parent.byteorder)
        swap = dtype.itemsize // (2 if dtype.kind == "c" else 1) if dtype.byteorder == ">" else 1
        extent = source.extent(run[0], run[1] - run[0], swap)
        return Array(element_of(dtype), shape[::-1], extent=extent, **order)
    stack = _Pages(source, page, places, shape)
    if stack.nbytes > MAX_RATIO * source.size:
        what = f"{stack.what}: all its images together"
        check_memory(stack.nbytes, source.max_memory, what)
    what = f"{stack.what}: a page of {page.imagelength} × {page.imagewidth}"
    need = 4 * page.nbytes + codecs.segment_bytes(page)
    check_memory(need, source.max_memory, what)
    return Array(element_of(stack.dtype), shape[::-1], data=lambda: stack, **order)


def _ends(shape: tuple[int, ...], tail: tuple[int, ...]) -> bool:
    """True if the last axes of a shape are these, but for those of length 1."""
    found = tuple(n for n in shape if n > 1)
    return found[len(found) - len(tail) :] == tail


class _Pages(Decoded):
    """Pages that are decoded one at a time, each when it is asked for."""

    def __init__(self, source: Source, page: Any, places: list[Any], shape: Any) -> None:
        dtype = page.dtype.newbyteorder("=")
        super().__init__(shape, dtype, what=f"'{source.path}'", max_memory=source.max_memory)
        self._source, self._page, self._places = source, page, places
        self._depth = next(n for n in range(len(shape) + 1) if prod(shape[:n]) == len(places))

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in stored order."""
        step = max(1, max_bytes // self.dtype.itemsize)
        for number in range(len(self._places)):
            flat = self._decoded(number).reshape(-1)
            for start in range(0, flat.size, step):
                yield flat[start : start + step]

    def __getitem__(self, key: Any) -> Any:
        """A region; no page outside it is decoded."""
        key = full_key(key, len(self.shape))
        numbers = np.arange(len(self._places)).reshape(self.shape[: self._depth])
        numbers = numbers[key[: self._depth]]
        shape = np.broadcast_to(np.zeros((), self.dtype), self.shape)[key].shape
        what = f"{self.what}: {numbers.size} pages of it"
        check_memory(prod(shape) * self.dtype.itemsize, self.max_memory, what)
        out = np.empty((numbers.size, *shape[numbers.ndim :]), self.dtype)
        for place, number in enumerate(numbers.flat):
            out[place] = self._decoded(number)[key[self._depth :]]
        return out.reshape(shape)[()]

    def _decoded(self, number: int) -> Values:
        with guarded(self._source.path, f"page {number}"):
            offsets, counts = self._places[number]
            page = codecs.decode(self._page, offsets, counts, self._source)
        return page.reshape(self.shape[self._depth :])


# ------------------------------------------------------------------------------------- metadata


def _metadata(page: Any) -> Metadata:
    """What the tags of a page say, the description as it is."""
    value, table = page.tags.valueof, page.colormap
    pairs, unit = [value(282), value(283)], UNITS.get(value(296, 2))
    usual = unit == "none" and set(pairs) <= {(0, 1), (1, 1)}
    resolution = None
    if all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs) and unit and not usual:
        resolution = [*([int(n) for n in pair] for pair in pairs), unit]
    known = page.photometric == (2 if page.samplesperpixel in (3, 4) else 1)
    word = getattr(page.photometric, "name", str(page.photometric)).lower()
    fields = {
        "resolution": resolution,
        "orientation": int(value(274)) if value(274) in range(2, 9) else None,
        "photometric": None if known else word,
        "extra_samples": [int(n) for n in page.extrasamples if page.extrasamples != (2,)],
        "colormap": None if table is None else np.array(table, "<u2").tobytes(),
        "icc": value(34675) if isinstance(value(34675), bytes) else None,
        "xmp": value(700) if isinstance(value(700), bytes) else None,
        "software": value(305) if isinstance(value(305), str) else None,
    }
    return metadata_of(fields, page.description or None)


def _add_axes(meta: Metadata, file: Any, series: Any, shape: tuple[int, ...]) -> None:
    """Add the axes that a description tells; of tifffile's, keep what it notes besides."""
    text, own = meta.description or "", meta.formats.setdefault(NAMESPACE, {})
    names = series.axes if series and series.shape == shape else ""
    if text.startswith('{"shape":') and series:
        said = json.loads(text)
        names = said.get("axes", "") if names else ""
        meta.description = said.pop("description", None)
        own["shaped"] = {name: value for name, value in said.items() if name != "shape"}
    if len(names) == len(shape):
        meta.axes = axes_of(names, text, file.imagej_metadata or {}, own.get("resolution"))
        axes = [axis.to_dict() for axis in meta.axes]
        own["series"] = {"shape": list(shape), "axes": axes}
    meta.formats[NAMESPACE] = {name: value for name, value in own.items() if value}
    if not meta.formats[NAMESPACE]:
        del meta.formats[NAMESPACE]
