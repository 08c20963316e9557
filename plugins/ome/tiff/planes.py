"""The places of the planes of an image: the runs of pages that TiffData tells of."""

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
    """Pages of one file that follow each other, from `ifd` on: the planes from `first` on.

    `number` is None for as many as there are.
    """

    ifd: int
    first: dict[str, int]
    number: int | None
    file: str
    uuid: str


def runs_of(blocks: Sequence[Block]) -> list[Run]:
    """The runs of pages of an image; without any TiffData all pages, from the first on."""
    runs: list[Run] = []
    for block in blocks:
        alone = len(blocks) == 1 or block.ifd is None
        number = block.number if block.number is not None or alone else 1
        before = runs[-1] if runs else None
        ifd = block.ifd
        if ifd is None:  # where the run before it has ended
            ifd = before.ifd + (before.number or 0) if before and before.file == block.file else 0
        runs.append(Run(ifd, block.first, number, block.file, block.uuid))
    return runs or [Run(0, dict.fromkeys(DIMENSIONS, 0), None, "", "")]


def planes_of(
    pixels: Pixels, letters: str, runs: Sequence[Run], pages: Sequence[int], page: Any, path: str
) -> dict[int, tuple[int, int]]:
    """The run and the page of each plane that is there; `pages` is how many the file of each has.

    Planes are counted in the order of `letters`, the slowest first. Raises `Corrupt` for planes
    that are not in the image, or named twice.
    """
    order = pixels.fields.get("DimensionOrder", "XYCZT")[2:]
    lengths = {**pixels.sizes, "C": _channels(pixels, page, path)}
    planes: dict[int, tuple[int, int]] = {}
    for at, (run, there) in enumerate(zip(runs, pages, strict=True)):
        begin, count = _begin(run, order, lengths, path), there - run.ifd
        left = prod(lengths[one] for one in order) - begin
        if run.number is not None and min(run.number, left) > count:
            raise Corrupt(
                f"{WHAT} tells of more planes than there are pages", path=path,
                expected=f"at most {count}", got=run.number,
            )  # fmt: skip
        count = min(count, left, count if run.number is None else run.number)
        for number in range(count):
            slot = _slot(begin + number, order, lengths, letters)
            if slot in planes:
                raise Corrupt(f"{WHAT} names a plane twice", path=path, got=f"plane {slot}")
            planes[slot] = at, run.ifd + number
    return planes


def _channels(pixels: Pixels, page: Any, path: str) -> int:
    """The channels that are pages, not samples of a pixel."""
    channels, samples = pixels.sizes["C"], int(page.samplesperpixel)
    if channels % samples:
        raise Corrupt(
            f"{WHAT} has {channels} channels, its pages have {samples} samples", path=path
        )
    return channels // samples


def _begin(run: Run, order: str, lengths: dict[str, int], path: str) -> int:
    """The number of the first plane of a run, in the order of the image."""
    number = 0
    for one in reversed(order):
        if run.first[one] >= lengths[one]:
            raise Corrupt(
                f"{WHAT} names a plane outside its image", path=path,
                expected=f"{one} below {lengths[one]}", got=run.first[one],
            )  # fmt: skip
        number = number * lengths[one] + run.first[one]
    return number


def _slot(number: int, order: str, lengths: dict[str, int], letters: str) -> int:
    """The number in the order of the array of the plane that has one in the order of the image."""
    place = {}
    for one in order:
        number, place[one] = divmod(number, lengths[one])
    slot = 0
    for one in letters.upper():
        if one in place:
            slot = slot * lengths[one] + place[one]
    return slot
