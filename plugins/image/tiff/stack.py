"""Pages of one kind as one array: an extent of the file if nothing is to decode, else `Pages`."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from raconvert.arrays.memory import check_memory
from raconvert.errors import Unsupported
from raconvert.files.inflate import MAX_RATIO
from raconvert.plugin import Array, element_of

from .checks import COMPLEX_INTEGERS, checked
from .codecs import CODECS
from .metadata import described, metadata_of_page, planar_axes, with_axes
from .pages import Grid, Pages

if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Source


class Stack:
    """Pages of one kind; `page` is the first of them, `number` its number in the file."""

    def __init__(self, page: Any, number: int) -> None:
        self.page, self.number = page, number
        self.pages: list[Any] = []

    def __str__(self) -> str:
        page = self.page
        return f"{page.shape} {page.dtype}, compression {int(page.compression)}"


def storage_of(page: Any, pages: int) -> dict[str, Any]:
    """The storage of an image, for `info`: number of pages, and name of the compression if any."""
    code = int(page.compression)
    name = getattr(page.compression, "name", f"code {code}").lower().replace("_", " ")
    name = name.removeprefix("adobe ")
    return {"pages": pages} | ({"compression": name} if code != 1 else {})


def array_of(stack: Stack, name: str, source: Source, file: Any, notes: list[str]) -> Array:
    """The array of the pages of a stack; adds notes. `file` is None if it has other pages, too.

    Raises `Unsupported` for pages that are not read here, `Corrupt` for damaged ones.
    """
    page, segments = stack.page, [checked(each, source) for each in stack.pages]
    meta, grid, count = metadata_of_page(page), Grid(page), len(segments)
    size = grid.shape(grid.planar)
    start, step = segments[0][0][0], page.nbytes
    # The pages are an extent if nothing is to decode and each lies right behind the one before.
    verbatim = all(each.is_final for each in stack.pages)
    verbatim &= not any(0 in counts for _, counts, _ in segments)
    verbatim &= all(offsets[0] == start + n * step for n, (offsets, *_) in enumerate(segments))
    series = described(file, meta.description or "", count, page, source.limits)
    if count == 1:
        count = _count_in_one(series, file, page, source, start if verbatim else None)
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
    words: dict[str, Any] = {"name": name, "index_order": "C", "meta": meta}
    words["storage"] = storage_of(page, len(segments))
    if verbatim and planes_first == grid.planar:
        dtype = page.dtype.newbyteorder(page.parent.byteorder)
        number_bytes = dtype.itemsize // (2 if dtype.kind == "c" else 1)
        swap = number_bytes if dtype.byteorder == ">" else 1
        extent = source.extent(start, count * step, swap)
        return Array(element_of(dtype), shape[::-1], extent=extent, **words)
    notes += _notes(page, segments)
    needs = grid.needs(page.dtype.itemsize, page.compression)
    needs += max(max(counts) for _, counts, _ in segments)
    pages = Pages(source, page, segments, shape, planes_first)
    if pages.nbytes > MAX_RATIO * source.size:
        what = f"{pages.what}: all its images together"
        check_memory(pages.nbytes, source.max_memory, what)
    check_memory(needs, source.max_memory, f"{pages.what}: a strip or a row of tiles")
    return Array(element_of(pages.dtype), shape[::-1], data=lambda: pages, **words)


def _count_in_one(series: Any, file: Any, page: Any, source: Source, start: int | None) -> int:
    """The number of images of a single directory, by its description.

    `start` is their offset if they lie behind each other as they are, else None. Raises
    `Unsupported` for more images than the file can have.
    """
    step = page.nbytes
    images = ((file.imagej_metadata if file else None) or {}).get("images", 1)
    count: int = max(series.nbytes // step if series else 1, images if type(images) is int else 1)
    if count <= 1:
        return count
    if start is None or not series or not count * step <= series.nbytes <= source.size - start:
        what = "has one directory for several images that its description announces"
        expected = f"{count} images behind each other"
        raise Unsupported(what, path=source.path, expected=expected)
    return count


def _notes(page: Any, segments: list[Any]) -> list[str]:
    """The notes about pixels that are not stored as they are read."""
    codec, notes = CODECS[page.compression], []
    if codec.library:
        how = f"they are those that {codec.library} decodes"
        notes.append(f"pixels are compressed by {codec.name}: {how}")
    if page.sampleformat == COMPLEX_INTEGERS:
        notes.append("complex numbers of two integers are read as complex floats, exactly")
    absent = sum(counts.count(0) for _, counts, _ in segments)
    if absent:
        what = f"{absent} of {len(segments) * len(segments[0][1])} strips or tiles are absent"
        notes.append(f"{what} (a sparse file): their pixels are {page.nodata}")
    return notes


def _fits(series: Any, count: int, size: tuple[int, ...]) -> bool:
    """True if the shape in a description ends with that of a page, and has all pages."""
    long, tail = ([n for n in lengths if n > 1] for lengths in (series.shape, size))
    return long[len(long) - len(tail) :] == tail and prod(series.shape) == count * prod(size)


def _order_of_planes(page: Any, series: Any, count: int, source: Source) -> bool | None:
    """True if the described shape has samples before rows and columns; None if it does not fit.

    tifffile describes elements in the order of the file, so that planes of samples come first in
    its descriptions. If another program took the samples apart later, the description still has
    the order of before. Raises `Unsupported` for a shape that can mean both.
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
