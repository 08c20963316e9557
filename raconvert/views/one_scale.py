"""Pictures of several files by the one scale that they share, and what its colours mean."""

from __future__ import annotations

from raconvert.views.filmstrip import ends_of
from raconvert.views.pages.figures import source_of
from raconvert.views.pages.markup import text_of
from raconvert.views.picture import (
    DEPTH,
    GRAY,
    SIGNS,
    Scale,
    colored,
    photo,
    png_of,
    scale_of,
)
from raconvert.views.terminal import NONE, looks_of_signs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.views.picture import Picture


def shared_scale(planes: list[Any]) -> Scale | None:
    """The one scale of several planes; None for photos."""
    if planes[0].ndim == 3:
        return None
    return scale_of(planes, DEPTH if planes[0].dtype.kind == "f" else GRAY)


def picture_of(values: Any, scale: Scale | None) -> Picture:
    """A picture of a plane by a scale, or of a photo without one."""
    return photo(values) if scale is None else colored(values, scale)


def figure(picture: Picture, words: str, side: int, below: str) -> str:
    """A picture as an element whose longer side has so many pixels, with markup below it."""
    height, width = picture.pixels.shape[:2]
    factor = side / max(height, width)
    size = f'width="{max(1, round(width * factor))}" height="{max(1, round(height * factor))}"'
    return (
        f'<div><img {size} alt="{text_of(words)}" src="{source_of(png_of(picture))}">'
        f"{below}</div>\n"
    )


def legend(scale: Scale | None, pictures: list[Picture], *, ends: bool = True) -> str:
    """Describe the colours of pictures, with those of NaN and infinities that are in them.

    `ends`: also the values at both ends of the scale, for pictures without a colour bar.
    """
    if scale is None:
        return "photos as they are"
    parts = [ends_of(scale)] if ends or not scale.high > scale.low else []
    for number, (sign, look) in enumerate(zip(SIGNS, looks_of_signs(NONE), strict=True)):
        if any(picture.of_sign(number).any() for picture in pictures):
            parts.append(f"{sign} {look}")
    return ", ".join(parts)
