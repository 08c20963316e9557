"""The pages of the planes of an image, by the runs of pages that TiffData names."""

from __future__ import annotations

from math import prod

from raconvert.declared import Record
from raconvert.errors import Corrupt

from .xml import DIMENSIONS, WHAT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .xml import Block, Pixels


class Run(Record):
    """Consecutive pages of one file, from `ifd` on, for the planes from `first` on.

    `number` is None for all further pages.
    """

    ifd: int
    first: dict[str, int]
    number: int | None
    file: str
    uuid: str


def runs_of(blocks: Sequence[Block]) -> list[Run]:
    """The runs of pages of an image; without any TiffData, all pages are one run."""
    runs: list[Run] = []
    for block in blocks:
        alone = len(blocks) == 1 or block.ifd is None
        number = block.number if block.number is not None or alone else 1
        before = runs[-1] if runs else None
        ifd = block.ifd
        if ifd is None:  # behind the run before it
            ifd = before.ifd + (before.number or 0) if before and before.file == block.file else 0
        runs.append(Run(ifd, block.first, number, block.file, block.uuid))
    return runs or [Run(0, dict.fromkeys(DIMENSIONS, 0), None, "", "")]


def planes_of(
    pixels: Pixels, letters: str, runs: Sequence[Run], pages: Sequence[int], page: Any, path: str
) -> dict[int, tuple[int, int]]:
    """Index of the run, and page, of each plane; `pages` has the number of pages for each run.

    Planes are numbered in the order of `letters`, the slowest first. Raises `Corrupt` for planes
    that are not in the image, or named twice.
    """
    order = pixels.fields.get("DimensionOrder", "XYCZT")[2:]
    lengths = {**pixels.sizes, "C": _channels(pixels, page, path)}
    planes: dict[int, tuple[int, int]] = {}
    for at, (run, of_file) in enumerate(zip(runs, pages, strict=True)):
        begin, count = _begin(run, order, lengths, path), of_file - run.ifd
        left = prod(lengths[axis] for axis in order) - begin
        if run.number is not None and min(run.number, left) > count:
            raise Corrupt(
                f"{WHAT} names more planes than there are pages", path=path,
                expected=f"at most {count}", got=run.number,
            )  # fmt: skip
        count = min(count, left, count if run.number is None else run.number)
        for number in range(count):
            plane = _plane_of(begin + number, order, lengths, letters)
            if plane in planes:
                raise Corrupt(f"{WHAT} names a plane twice", path=path, got=f"plane {plane}")
            planes[plane] = at, run.ifd + number
    return planes


def _channels(pixels: Pixels, page: Any, path: str) -> int:
    """The number of channels that are pages, not samples of a pixel. Raises `Corrupt`."""
    channels, samples = pixels.sizes["C"], int(page.samplesperpixel)
    if channels % samples:
        raise Corrupt(
            f"{WHAT} has {channels} channels, its pages have {samples} samples", path=path
        )
    return channels // samples


def _begin(run: Run, order: str, lengths: dict[str, int], path: str) -> int:
    """The number of the first plane of a run, in the order of the file. Raises `Corrupt`."""
    number = 0
    for axis in reversed(order):
        if run.first[axis] >= lengths[axis]:
            raise Corrupt(
                f"{WHAT} names a plane outside its image", path=path,
                expected=f"{axis} below {lengths[axis]}", got=run.first[axis],
            )  # fmt: skip
        number = number * lengths[axis] + run.first[axis]
    return number


def _plane_of(number: int, order: str, lengths: dict[str, int], letters: str) -> int:
    """The number of a plane in the order of the array, from that in the order of the file."""
    indices = {}
    for axis in order:
        number, indices[axis] = divmod(number, lengths[axis])
    plane = 0
    for axis in letters.upper():
        if axis in indices:
            plane = plane * lengths[axis] + indices[axis]
    return plane
