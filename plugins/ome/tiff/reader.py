"""The images that OME-XML describes, each plane a page of one of the files.

The pages are read as in the format `tiff`: structure by tifffile, offsets and sizes checked there.
"""

from __future__ import annotations

from copy import copy  # `Pages` changes the page that it gets
from itertools import islice
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.bundle import some_sound
from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key, range_of
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported
from raconvert.plugin import Array, Bundle, element_of, first_of

from ...image.metadata import NAMESPACE as IMAGE
from ...image.tiff import reader as tiff
from ...image.tiff.codecs import CODECS
from ...image.tiff.metadata import KNOWN, metadata_of_page
from ...image.tiff.pages import Grid, Pages
from ...image.tiff.stack import storage_of
from ..axes import NAMESPACE
from ..record import applied, record_in
from .metadata import form_of, metadata_of, named
from .planes import planes_of, runs_of
from .xml import WHAT, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Metadata, Source

    from ...image.tiff.pages import Place
    from .metadata import Form
    from .xml import Document, Pixels

    Values = np.ndarray[Any, Any]


class File:
    """A TIFF file of the set: its pages, and the offsets of their strips or tiles."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.pages: list[Any] = []
        self.places: dict[int, Place] = {}  # by the offset of the directory
        self.levels: dict[int, list[Any]] = {}
        self.seen: set[int] = set()
        self.description = ""
        with tiff.opened(source) as opened:
            for page in opened.pages:
                self._add(page)
                self.pages.append(page)
                for level in self.below(page):
                    self._add(level)
            if not self.pages:
                raise Corrupt("has no page", path=source.path)
            self.description = self.pages[0].description
            self.meta = metadata_of_page(self.pages[0])
            self.tags = sorted(
                code for code in list(self.pages[0].tags.keys()) if code not in KNOWN
            )

    def _add(self, page: Any) -> None:
        """Check a page, and record its offsets. Raises `Corrupt` for a loop of directories."""
        if page.offset in self.seen:
            where = f"byte {page.offset}"
            raise Corrupt("directories form a loop", path=self.source.path, where=where)
        self.seen.add(page.offset)
        self.places[page.offset] = tiff.checked(page, self.source)

    def below(self, page: Any) -> list[Any]:
        """The images below a page: the lower levels of its pyramid. Raises `TooLarge`."""
        if page.offset in self.levels:
            return self.levels[page.offset]
        count = len(page.subifds or ())
        if count > self.source.limits.nesting_levels:
            raise TooLarge(
                "has too many images below a page", path=self.source.path, got=count,
                expected=f"at most {self.source.limits.nesting_levels}",
            )  # fmt: skip
        levels = list(islice(page.pages, count)) if count else []
        self.levels[page.offset] = levels
        return levels


def read_images(source: Source, *, squeeze: bool) -> Bundle:
    """The bundle of all images; see the plugin's `read`."""
    file = File(source)
    document = parsed(file.description, source.path, source.limits)
    return _Images(file, document, squeeze=squeeze).bundle()


class _Images:
    """The images of a document, and the files of their planes, while the bundle is made."""

    def __init__(self, file: File, document: Document, *, squeeze: bool) -> None:
        self.file, self.document, self.squeeze = file, document, squeeze
        self.source = file.source
        self.files: dict[str, File] = {}
        self.notes: list[str] = []
        self.more: list[Array] = []
        self.names = named(document, self.source)
        listed = {block.file for pixels in document.images for block in pixels.blocks}
        self.single: bool = len(listed) < 2  # then it is this file, even if it was renamed
        blockless = (pixels.number for pixels in document.images if not pixels.blocks)
        self.first_blockless = next(blockless, len(document.images))

    def bundle(self) -> Bundle:
        """All images as arrays, with notes on all that is left out."""
        arrays: list[Array] = []
        for pixels, name in zip(self.document.images, self.names, strict=True):
            try:
                arrays += self._image(pixels, name)
            except RaconvertError as error:
                arrays.append(Array.unreadable(name, error))
        arrays = some_sound(arrays)
        left = sorted(self.document.left_out)
        own = self.document.images[0].name
        if len(self.names) == 1 and own not in ("", "Image0", self.names[0]):  # 0: of tifffile
            left.append(f"the name '{own[:80]}'")
        if left:
            self.notes.append(f"OME-XML that is left out: {first_of(left, 8)}")
        if self.file.tags:
            codes = ", ".join(map(str, self.file.tags))
            self.notes.append(f"tags that are left out: {codes}")
        if self.more:
            shown = ", ".join(array.name for array in self.more[:5])
            shown += ", ..." if len(self.more) > 5 else ""
            self.notes.append(
                f"lower levels of pyramids are left out, `--array NAME` takes them: {shown}"
            )
        bundle = Bundle(arrays, notes=self.notes)
        bundle.more = self.more
        for file in self.files.values():
            bundle.close_with(file.source.close)
        if self.document.plates and self.document.wells:
            title = self.document.plates[0].get("Name")
            bundle.formats = {NAMESPACE: {"plate": {"name": title} if title else {}}}
        return bundle

    def _file(self, name: str, uuid: str) -> File:
        """The file of a block, by its name and UUID. Raises `TooLarge` for too many files."""
        if not name or self.single or (uuid and uuid == self.document.uuid):
            return self.file
        if name == self.source.name:
            return self.file
        if name not in self.files:
            if len(self.files) >= self.source.limits.external_files:
                raise TooLarge(
                    f"{WHAT} names too many files", path=self.source.path,
                    expected=f"at most {self.source.limits.external_files}",
                )  # fmt: skip
            self.files[name] = File(self.source.named(name, "a file of the OME-TIFF"))
        return self.files[name]

    def _image(self, pixels: Pixels, name: str) -> list[Array]:
        """The array of an image; its lower levels go to `more`. Raises `RaconvertError`."""
        if pixels.external:
            raise Unsupported(
                f"image '{name}' has metadata only: its elements are in other files",
                path=self.source.path,
            )
        form, planes = self._planes(pixels)
        count = prod(form.pages)
        absent = count - len(planes)
        self._check_absent(name, absent, len(planes), next(iter(planes.values()))[1])
        if absent:
            self.notes.append(f"{absent} of {count} planes of image '{name}' are absent: zeros")
        meta = self._metadata(pixels, form)
        array = self._array(name, form, planes, meta)
        levels = {len(file.below(page)) for file, page in planes.values()}
        if len(levels) > 1:
            self.notes.append(f"planes of image '{name}' have different numbers of levels")
        for level in range(min(levels)):
            lower = {at: (file, file.below(page)[level]) for at, (file, page) in planes.items()}
            try:
                self.more.append(self._level(pixels, name, form, lower, level + 1))
            except RaconvertError as error:
                self.notes.append(f"level {level + 1} of image '{name}' is left out: {error.what}")
        return [array]

    def _level(
        self, pixels: Pixels, name: str, form: Form, planes: dict[int, tuple[File, Any]],
        level: int,
    ) -> Array:  # fmt: skip
        """The array of a lower level. Raises `Corrupt` if it is larger than the image."""
        first = next(iter(planes.values()))[1]
        plane = (first.imagelength, first.imagewidth)
        if any(a > b for a, b in zip(plane, form.plane, strict=True)):
            raise Corrupt("is larger than the image", path=self.source.path)
        scaled = form._replace(plane=plane)
        meta = metadata_of(pixels, form, scaled, [], level)
        return self._array(f"{name}.level{level}", scaled, planes, meta)

    def _planes(self, pixels: Pixels) -> tuple[Form, dict[int, tuple[File, Any]]]:
        """The form of an image; file and page of each plane, by number. Raises `Corrupt`."""
        if not pixels.blocks and self.first_blockless < pixels.number:
            raise Corrupt(f"{WHAT} names no page of an image", path=self.source.path)
        runs = runs_of(pixels.blocks)
        pages = [self._file(run.file, run.uuid).pages for run in runs]
        for run, of_file in zip(runs, pages, strict=True):
            if run.ifd >= len(of_file):
                raise Corrupt(
                    f"{WHAT} names a page that is not there", path=self.source.path,
                    expected=f"below {len(of_file)}", got=run.ifd,
                )  # fmt: skip
        first = pages[0][runs[0].ifd]
        form = form_of(pixels, self.document, first, self.source, squeeze=self.squeeze)
        counts = list(map(len, pages))
        numbered = planes_of(pixels, form.letters, runs, counts, first, self.source.path)
        planes = {
            plane: (self._file(runs[run].file, runs[run].uuid), pages[run][ifd])
            for plane, (run, ifd) in numbered.items()
        }
        if not planes:
            raise Corrupt(f"{WHAT} names no plane of an image", path=self.source.path)
        return form, planes

    def _check_absent(self, name: str, absent: int, present: int, page: Any) -> None:
        """Raise `TooLarge` for far more declared planes than the file has."""
        limits = self.source.limits
        if absent > limits.absent_ratio * present or (
            absent * page.nbytes > limits.memory and absent > present
        ):
            raise TooLarge(
                f"image '{name}' declares planes that are not in the file",
                path=self.source.path, expected=f"{absent + present} pages", got=present,
                remedy="read its pages as those of any TIFF, with `--from tiff`",
            )  # fmt: skip

    def _metadata(self, pixels: Pixels, form: Form) -> Metadata:
        """The metadata of an image by OME-XML, the first page, and our record."""
        in_file = metadata_of(pixels, form, form, self.notes)
        meta = in_file.replace(description=pixels.description or None)
        own = self.file.meta.formats.get(IMAGE) if pixels.number == 0 else None
        meta = meta.with_format(IMAGE, **own) if own else meta
        text = self.document.notes.get(f"Annotation:Record:{pixels.number}")
        record = record_in(text, self.source.limits, self.source.path)
        return applied(meta, in_file, record, self.source.path)

    def _array(
        self, name: str, form: Form, planes: dict[int, tuple[File, Any]], meta: Metadata
    ) -> Array:
        """The planes of an image as one array: an extent if they are adjacent. Raises `Corrupt`."""
        numbers = sorted(planes)
        file, page = planes[numbers[0]]
        if (page.imagelength, page.imagewidth) != form.plane:
            raise Corrupt(
                f"image '{name}' has pages of another size than in {WHAT}",
                path=self.source.path, expected=f"{form.plane[0]} × {form.plane[1]}",
                got=f"{page.imagelength} × {page.imagewidth}",
                remedy="read its pages as those of any TIFF, with `--from tiff`",
            )  # fmt: skip
        for other_file, other in planes.values():
            alike = (other.hash, other.planarconfig) == (page.hash, page.planarconfig)
            alike = alike and other.parent.byteorder == page.parent.byteorder
            if not alike:
                raise Unsupported(
                    f"image '{name}' has pages that are not alike", path=other_file.source.path,
                    expected=f"{page.shape} {page.dtype}", got=f"{other.shape} {other.dtype}",
                )  # fmt: skip
        dtype, step = page.dtype.newbyteorder(page.parent.byteorder), page.nbytes
        places = {n: (of, of.places[plane.offset]) for n, (of, plane) in planes.items()}
        shape = form.shape
        order: dict[str, Any] = {"name": name, "index_order": "C", "meta": meta}
        order["storage"] = storage_of(page, len(planes))
        start = places[numbers[0]][1][0][0]
        adjacent = len(planes) == prod(form.pages) and all(
            of is file and place[0][0] == start + n * step and planes[n][1].is_final
            for n, (of, place) in places.items()
        )
        if adjacent and page.planarconfig == 1:
            swap = 1
            if dtype.byteorder == ">":
                swap = dtype.itemsize // (2 if dtype.kind == "c" else 1)
            extent = file.source.extent(start, len(planes) * step, swap)
            return Array(element_of(dtype), shape[::-1], extent=extent, **order)
        stack = Planes(self.source, page, places, form)
        largest = max(max(place[1]) for _, place in places.values())
        needs = Grid(page).needs(page.dtype.itemsize, page.compression) + largest
        what = f"'{self.source.path}': a strip or a row of tiles"
        check_memory(needs, self.source.max_memory, what)
        codec = CODECS[page.compression]
        if codec.library:
            how = f"{codec.name}: as {codec.library} decodes it"
            self.notes.append(f"image '{name}' is compressed by {how}")
        return Array(element_of(stack.dtype), shape[::-1], data=lambda: stack, **order)


class Planes:
    """Array source over planes; a plane is decoded when a region touches it.

    A plane that no file has is zeros.
    """

    def __init__(
        self, source: Source, page: Any, places: dict[int, tuple[File, Place]], form: Form
    ) -> None:
        self.shape = form.shape
        file, place = next(iter(places.values()))
        self.dtype = Pages(
            file.source, copy(page), [place], form.shape[len(form.pages) :], False
        ).dtype
        self.max_memory = source.max_memory
        self._page, self._places, self._form = page, places, form
        self._rank = len(form.pages)

    def plane(self, number: int) -> Any:
        """The array source of a plane."""
        shape = self.shape[self._rank :]
        location = self._places.get(number)
        if location is None:
            return np.broadcast_to(np.zeros((), self.dtype), shape)
        file, place = location
        return Pages(file.source, copy(self._page), [place], shape, False)

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in stored order."""
        step = max(1, max_bytes // self.dtype.itemsize)
        for number in range(prod(self._form.pages)):
            plane = self.plane(number)
            if hasattr(plane, "stream"):
                yield from plane.stream(max_bytes)
                continue
            flat = np.zeros(min(step, plane.size), self.dtype)
            yield from (flat[: min(step, plane.size - at)] for at in range(0, plane.size, step))

    def __getitem__(self, key: Any) -> Any:
        """Read a region: integers, slices and one Ellipsis."""
        full = full_key(key, len(self.shape))
        box, then = [], []
        for part, length in zip(full[: self._rank], self.shape, strict=False):
            low, end, rest = range_of(part, length)
            box.append(range(low, end))
            then.append(rest)
        inside = [range_of(p, n) for p, n in zip(
            full[self._rank :], self.shape[self._rank :], strict=True)]  # fmt: skip
        cut = tuple(slice(low, end) for low, end, _ in inside)
        lengths = (*map(len, box), *(end - low for low, end, _ in inside))
        nbytes = prod(lengths) * self.dtype.itemsize
        check_memory(nbytes, self.max_memory, "a region of an image")
        out = np.empty(lengths, self.dtype)
        for at in np.ndindex(*map(len, box)) if out.size else ():
            number = 0
            for indices, index, length in zip(box, at, self._form.pages, strict=True):
                number = number * length + indices[index]
            out[at] = np.asarray(self.plane(number)[cut])
        return out[(*then, *(rest for _, _, rest in inside), ...)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        return np.array(self[...], dtype=dtype, copy=copy)
