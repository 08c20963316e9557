"""Reading: the directories by tifffile, within bounds; their pages as one lazy array.

tifffile puts strips and tiles at their positions; they are checked against the file and inflated
here, with limits that it does not have.
"""

from __future__ import annotations

import io
import logging
import re
from collections import Counter
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING

import tifffile

from raconvert.errors import Corrupt, RaconvertError, Unsupported, worded
from raconvert.plugin import Array, Bundle, first_of

from ..reader import guarded
from .checks import checked, kind_of
from .metadata import KNOWN
from .stack import Stack, array_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Source

__all__ = ["checked", "opened", "read_pages"]

REDUCED, MASK = 1, 4  # bits of NewSubfileType (tag 254)
REDUCED_IMAGES, BELOW = "reduced images or masks are", "images below others (SubIFDs) are"
WHAT = "the structure of the TIFF file"


class _File(io.BufferedReader):
    """A file whose reads end at its end, whatever lengths its tags announce.

    Directories that overlap, or share large values, would be read again and again, so that all
    reads of them have a budget in proportion to the file. Raises `Corrupt` above it.
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
    """Open a file with tifffile. Raises `Corrupt` where tifffile would guess or log an error."""
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
    """Read the pages of a file as a bundle; see `raconvert.plugins.image.tiff.read`."""
    with opened(source) as file:
        stacks = _Stacks(source, file)
        if not stacks.images:
            raise Corrupt("has no page that is not a reduced image or a mask", path=source.path)
        if len(stacks.images) > 1:
            return _several(stacks)
        (first,) = stacks.images
        others = [str(code) for code in sorted(first.page.tags.keys()) if code not in KNOWN]
        notes = [f"tags that are left out: {', '.join(others)}"] if others else []
        notes += [
            f"{count} {what} are left out" for what, count in stacks.left_out.items() if count
        ]
        bundle = Bundle([array_of(first, source.stem, source, file, notes)], notes=notes)
        _add(bundle, stacks.others, source, "{count} {what} left out, `--array NAME` takes them: ")
    return bundle


class _Stacks:
    """The pages of a file, in stacks of one kind.

    `images` are the stacks of full pages; `others` those of reduced images, masks, and images below
    others, by `REDUCED_IMAGES` or `BELOW` and the end of their name. `left_out` counts the rest.
    """

    def __init__(self, source: Source, file: Any) -> None:
        self.source, self.file, self.seen = source, file, set[int]()
        self.images: list[Stack] = []
        self.others: dict[str, dict[str, Stack]] = {REDUCED_IMAGES: {}, BELOW: {}}
        self.left_out: Counter[str] = Counter()
        self.kinds: dict[Any, Stack] = {}
        kinds = self.kinds
        for number, page in enumerate(file.pages):
            self._check_new(page)
            kind = kind_of(page)
            if page.subfiletype & (REDUCED | MASK) and kind not in kinds:
                self._add(REDUCED_IMAGES, (*kind, page.subfiletype), page, f"page{number}")
                continue
            if kind not in kinds:
                kinds[kind] = Stack(page, number)
                self.images.append(kinds[kind])
            stack = kinds[kind]
            stack.pages.append(page)
            is_other = page.description not in ("", stack.page.description)
            self.left_out["descriptions of pages behind the first"] += is_other
            for index in range(self._count_below(page)):
                self._add_below(page, index)

    def _check_new(self, page: Any) -> None:
        """Raise `Corrupt` for a directory that was seen before."""
        if page.offset in self.seen:
            where = f"byte {page.offset}"
            raise Corrupt("directories form a loop", path=self.source.path, where=where)
        self.seen.add(page.offset)

    def _count_below(self, page: Any) -> int:
        """The number of images below a page that are read; the others are counted as left out."""
        most, count = self.source.limits.nesting_levels, len(page.subifds or ())
        self.left_out["images far below others (SubIFDs)"] += max(0, count - most)
        return min(most, count)

    def _add_below(self, page: Any, index: int) -> None:
        """Add an image below a page to its stack."""
        below = page.pages[index]
        self._check_new(below)
        self.left_out["images far below others (SubIFDs)"] += len(below.subifds or ())
        self._add(BELOW, (index, *kind_of(below)), below, f"sub{index}")

    def _add(self, what: str, kind: Any, page: Any, name: str) -> None:
        """Add a page to the stack of its kind among `others`; `name` is the end of a new one's."""
        stack = self.kinds.get((what, kind))
        if stack is None:
            stacks = self.others[what]
            name = name if name not in stacks else f"{name}.{page.offset}"
            stack = self.kinds[what, kind] = stacks[name] = Stack(page, page.index)
        stack.pages.append(page)


def _several(stacks: _Stacks) -> Bundle:
    """The bundle of a file with pages of several kinds: each of them is an array in `more`.

    The bundle's own array is unreadable, since no array has all of the pages.
    """
    source, (first, second, *_) = stacks.source, stacks.images
    names = [f"{source.stem}.series{number}" for number in range(len(stacks.images))]
    problem = Unsupported(
        f"page {second.number} is not like the first one", path=source.path,
        expected=str(first), got=str(second),
        remedy=f"take pages of one kind with `--array NAME`: {first_of(names, 8)}",
    )  # fmt: skip
    bundle = Bundle([Array.unreadable(source.stem, problem)])
    for name, stack in zip(names, stacks.images, strict=True):
        try:
            bundle.more.append(array_of(stack, name, source, None, bundle.notes))
        except RaconvertError as error:
            bundle.more.append(Array.unreadable(name, error))
    _add(bundle, stacks.others, source, "{count} {what} left out: ")
    return bundle


def _add(bundle: Bundle, others: dict[str, dict[str, Stack]], source: Source, note: str) -> None:
    """Add arrays that only `--array` takes, and a note for each sort of them."""
    for what, stacks in others.items():
        names, count = [], 0
        for ending, stack in stacks.items():
            count += len(stack.pages)
            names.append(f"{source.stem}.{ending}")
            try:
                array = array_of(stack, names[-1], source, None, [])
            except RaconvertError as error:
                array = Array.unreadable(names[-1], error)
            bundle.more.append(array)
        if names:
            line = note.format(count=count, what=what) + first_of(names, 8)
            bundle.notes.append(worded(line))
