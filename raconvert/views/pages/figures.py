"""Figures of pages: pictures in their frames, with colour bars, signs, scale bars and titles."""

from __future__ import annotations

from base64 import b64encode

import numpy as np

from raconvert.declared import Record
from raconvert.views.hanging import scale_bar
from raconvert.views.pages.markup import text_of
from raconvert.views.picture import CLASSES, PHASE, SIGNS, Picture, palette_of, png_of
from raconvert.views.terminal import number_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from raconvert.views.filmstrip import Strip
    from raconvert.views.hanging import Hanging
    from raconvert.views.picture import Scale

WIDE = 880  # pixels of the page from margin to margin
_SIDES = (880, 720, 560, 448, 352, 288, 224, 176, 128, 96, 72, 48, 32)  # sides in pixels to try
_MOST_ENLARGED = 24  # pixels of the page that one pixel of a picture takes at most
_MOST_CLASSES = 16  # classes whose colours are named
_LEAST = 112  # pixels of the width of a title below a picture, at least
_FIRST = 128  # side in pixels of the picture by which the bytes of larger ones are guessed


class Coded(Record):
    """Pictures with their PNG files; `nbytes` is the size of all files."""

    pictures: list[Picture]
    files: list[bytes]

    @property
    def nbytes(self) -> int:
        """The bytes of all files."""
        return sum(map(len, self.files))


def coded(pictures: list[Picture]) -> Coded:
    """Return pictures with their PNG files."""
    return Coded(pictures, [png_of(picture) for picture in pictures])


def within(make: Callable[[int], Any], most: int, largest: int) -> Any:
    """Call `make` with sides in pixels; return the largest result of at most `most` bytes.

    A small one is made first: its `nbytes` show which sides are worth a try.
    """
    sides = [side for side in _SIDES if side <= largest]
    first = min(_FIRST, sides[0])
    made = make(first)
    per_pixel = max(1, made.nbytes) / first**2
    for side in sides:
        if side > first and 0.6 * per_pixel * side**2 <= most:
            larger = make(side)
            if larger.nbytes <= most:
                return larger
    smaller = [side for side in sides if side < first]
    while made.nbytes > most and smaller:
        made = make(smaller.pop(0))
    return made


def shown_size(
    shape: tuple[int, ...], *, width: int, height: int, enlarge: bool
) -> tuple[int, int]:
    """The width and height on the page of a picture of so many rows and columns.

    It is as large as fits `width` and `height`; without `enlarge`, not larger than its own pixels.
    """
    rows, columns = shape[:2]
    factor = min(width / columns, height / rows)
    factor = min(factor, float(_MOST_ENLARGED) if enlarge else 1.0)
    return max(1, round(columns * factor)), max(1, round(rows * factor))


def small_size(picture: Picture, side: int, *, enlarge: bool = True) -> tuple[int, int]:
    """The width and height on the page of one of several small pictures."""
    return shown_size(picture.pixels.shape, width=side, height=side, enlarge=enlarge)


def source_of(data: bytes) -> str:
    """The address of a PNG file that is part of the page."""
    return f"data:image/png;base64,{b64encode(data).decode('ascii')}"


def image(
    data: bytes, size: tuple[int, int], title: str, strip: Strip | None = None, *, caption: str = ""
) -> str:
    """A picture with its title below it; with a strip, its edges and scale bar.

    `caption` is shown in place of the title, which stands for the picture where it is not seen.
    """
    width, height = size
    edges = ruler = ""
    if strip is not None:
        edges = edges_of(strip.hanging)
        ruler = ruler_of(strip.hanging, strip.shape[1])
    below = caption or f"<code>{text_of(title)}</code>"
    return (
        f'<div class="cell" style="max-width:{max(width, _LEAST)}px"><span class="hung">'
        f'<img width="{width}" height="{height}" alt="{text_of(title)}" '
        f'src="{source_of(data)}">{edges}</span>{ruler}<span class="title">{below}</span></div>\n'
    )


def edges_of(hanging: Hanging) -> str:
    """The letters of the ends of the body at the edges of its picture."""
    names = zip(("left", "right", "top", "bottom"), hanging.edges, strict=False)
    return "".join(f'<b class="{edge}">{letter}</b>' for edge, letter in names)


def ruler_of(hanging: Hanging, columns: int) -> str:
    """The scale bar of a picture of so many columns; empty without a known unit."""
    bar = scale_bar(hanging, columns)
    if bar is None:
        return ""
    share, length = bar
    return f'<span class="ruler" style="width:{100 * share:.4g}%">{text_of(length)}</span>'


def color_bar(scale: Scale | None, units: str | None = None) -> str:
    """The colours from the least to the largest value that they show, with both, and the unit."""
    if scale is None or scale.colors == CLASSES or not scale.high > scale.low:
        return ""
    colors = palette_of(scale.colors)[len(SIGNS) :: 28].tolist()
    if scale.colors == PHASE:
        return _bar(colors, "\N{MINUS SIGN}π", "π")
    return bar_of(colors, scale, units)


def class_key(strip: Strip, name_of: Callable[[int], str]) -> str:
    """The colours of the classes in some pictures, each with its name."""
    if strip.scale is None or strip.scale.colors != CLASSES:
        return ""
    palette = palette_of(CLASSES)
    used = sorted({int(at) for picture in strip.pictures for at in np.unique(picture.pixels)})
    return "".join(
        f'<span class="key" style="background:rgb({",".join(map(str, palette[at].tolist()))})">'
        f"</span>{text_of(name_of(at - len(SIGNS)))}"
        for at in used[:_MOST_CLASSES]
    )


def bar_of(colors: Sequence[Sequence[float]], scale: Scale, units: str | None) -> str:
    """A bar of colours between the ends of a scale, with ≤ and ≥ if values lie beyond them."""
    below, above = ("≤ ", "≥ ") if scale.clips else ("", "")
    low, high = below + number_text(scale.low), above + number_text(scale.high)
    unit = f" {text_of(units or '')}" * bool(units)
    power = ", by the logarithm" * scale.power
    return _bar(colors, low, high, f"{unit}{power}")


def _bar(colors: Sequence[Sequence[float]], low: str, high: str, more: str = "") -> str:
    """A bar of colours between two texts, with more text behind it."""
    stops = ",".join(f"rgb({red},{green},{blue})" for red, green, blue in colors)
    return (
        f'<span class="bar"><code>{low}</code><i style="background:linear-gradient(90deg,{stops})">'
        f"</i><code>{high}</code>{more}</span> "
    )


def signs_of(strip: Strip) -> str:
    """The colours of NaN and the infinities that are in the pictures, each with its name."""
    keys = []
    for number, sign in enumerate(SIGNS):
        if any(picture.of_sign(number).any() for picture in strip.pictures):
            color = (
                ",".join(map(str, palette_of(strip.scale.colors)[number])) if strip.scale else ""
            )
            name = {"NaN": "missing (NaN)", "-inf": "\N{MINUS SIGN}inf", "inf": "+inf"}[sign]
            keys.append(f'<span class="key" style="background:rgb({color})"></span>{name}')
    return " ".join(keys)


def stretch_text(strip: Strip, width: int) -> str:
    """Describe by how much a picture of a width on the page is larger than its elements."""
    factor = width / strip.shape[1]
    if factor > 1.02:
        return f"each element {factor:.3g} pixels wide"
    return f"reduced to {100 * factor:.3g} %" if factor < 0.98 else ""
