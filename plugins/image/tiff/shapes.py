"""How axes become pages and samples, and what of it has to be written down."""

from __future__ import annotations

from math import prod

from raconvert.plugin import Axis

from .axes import described_axes, imagej_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_SAMPLES = 4  # a last axis that is longer is never taken for the samples
MAX_JSON_CHARS = 4 << 20
MAX_NOTED_RANK = 64  # as many as numpy has


def page_rank(shape: tuple[int, ...], kind: str) -> int:
    """Return how many of the last axes make a page: 2, or 3 with samples."""
    has_samples = len(shape) > 2 and shape[-1] <= MAX_SAMPLES and kind != "bool"
    return 3 if has_samples else 2


def page_shape(shape: tuple[int, ...], kind: str) -> tuple[int, ...]:
    """Return (height, width, samples) of the pages of an array of this shape."""
    if len(shape) < 2:
        return (1, prod(shape), 1)
    rank = page_rank(shape, kind)
    return shape[-3:] if rank == 3 else (*shape[-2:], 1)


def plain_shape(pages: int, page: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that pages alone give: no axis for one page or for one sample."""
    height, width, samples = page
    return (pages,) * (pages > 1) + (height, width) + (samples,) * (samples > 1)


def noted_shape(text: str) -> tuple[tuple[int, ...], dict[str, Any]] | None:
    """Return the shape that a description of tifffile's kind notes, and what else is in it.

    ``{"shape": [2, 3, 4, 5], ...}``; None for any other text.
    """
    if not text.startswith('{"shape":') or len(text) > MAX_JSON_CHARS:
        return None
    import json

    try:
        fields = json.loads(text)
        shape = fields.pop("shape")
        if len(shape) > MAX_NOTED_RANK or not all(type(n) is int and n > 0 for n in shape):
            return None
    except (ValueError, TypeError, RecursionError, KeyError, AttributeError):
        return None
    return tuple(shape), fields


def view(
    text: str, pages: int, page: tuple[int, ...], resolution: list[Any] | None
) -> tuple[tuple[int, ...], list[Axis]]:
    """Return the shape of all pages, and what is known of its axes, fastest first.

    `page` is (height, width, samples); `text` the description, which may say more of the pages
    than their number: as tifffile notes it, ImageJ or OME. `resolution` is the field of the
    namespace ``image``.
    """
    shape, names = plain_shape(pages, page), ""
    noted = noted_shape(text)
    if noted:
        text = str(noted[1].get("description", ""))
        if fits_pages(noted[0], pages, page):
            shape, names = noted[0], str(noted[1].get("axes", ""))
    samples = page[2]
    said = described_axes(text, pages, samples, _pixels_per_unit(resolution))
    if said:
        lead, last = said.lead, (samples,) * (samples > 1)
        whole = (*(size.size for size in lead), *page[:2], *last)
        if not noted or whole == shape:
            axes = [Axis(name=n, spacing=step, units=units) for n, _, step, units in lead]
            axes += [Axis(name="Y", spacing=said.y[0], units=said.y[1])]
            axes += [Axis(name="X", spacing=said.x[0], units=said.x[1])]
            axes += [Axis(name="S")] * len(last)
            return whole, axes[::-1]
    if len(names) == len(shape):
        return shape, [Axis(name=name) for name in reversed(names)]
    return shape, []


def _pixels_per_unit(resolution: list[Any] | None) -> tuple[float, float] | None:
    """Return the resolution as two positive numbers; None if it is not that."""
    if not isinstance(resolution, list) or len(resolution) != 3:
        return None
    found = []
    for value in resolution[:2]:
        pair = value if isinstance(value, list) and len(value) == 2 else [value, 1]
        if not all(type(n) is int and n > 0 for n in pair):
            return None
        found.append(pair[0] / pair[1])
    return found[0], found[1]


def fits_pages(shape: tuple[int, ...], pages: int, page: tuple[int, ...]) -> bool:
    """Tell whether a noted shape is another view of these pages: same count, same last axes."""
    if prod(shape) != pages * prod(page):
        return False
    plain = [n for n in plain_shape(pages, page)[pages > 1 :] if n > 1]
    tail = [n for n in shape if n > 1]
    return tail[len(tail) - len(plain) :] == plain


def imagej_images(text: str) -> int:
    """Return the number of images in the description of an ImageJ file; 0 if it is none."""
    if not text.startswith("ImageJ="):
        return 0
    value = imagej_fields(text).get("images", "")
    return int(value) if value.isascii() and value.isdecimal() and len(value) < 12 else 0
