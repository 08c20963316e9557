"""Pictures on pages about several files: as elements of HTML, with the colours that they share."""

from __future__ import annotations

from base64 import b64encode

from raconvert.views.filmstrip import ends_of
from raconvert.views.markup import text_of
from raconvert.views.picture import (
    DEPTH,
    GRAY,
    SIGNS,
    Scale,
    colored,
    palette_of,
    photo,
    png_of,
    scale_of,
)
from raconvert.views.terminal import NONE, looks_of_signs, number_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from raconvert.views.picture import Picture


_STOP = 28  # colours between two of the stops of a colour bar


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
    text = b64encode(png_of(picture)).decode("ascii")
    return (
        f'<div><img {size} alt="{text_of(words)}" src="data:image/png;base64,{text}">'
        f"<br>{below}</div>\n"
    )


def coded(pictures: Iterable[Picture]) -> list[bytes]:
    """Pictures as the bytes of PNG files."""
    return [png_of(picture) for picture in pictures]


def color_bar(scale: Scale) -> str:
    """The colours between the ends of a scale, with the values at both."""
    if not scale.high > scale.low:
        return f'<span class="bar"><code>{number_text(scale.low)}</code></span> '
    colors = palette_of(scale.colors)[len(SIGNS) :: _STOP].tolist()
    stops = ",".join(f"rgb({red},{green},{blue})" for red, green, blue in colors)
    low, high = number_text(scale.low), number_text(scale.high)
    return (
        f'<span class="bar"><code>{low}</code><i style="background:linear-gradient(90deg,{stops})">'
        f"</i><code>{high}</code></span> "
    )


def legend(scale: Scale | None, pictures: list[Picture], *, ends: bool = True) -> str:
    """Describe the colours, those of NaN and the infinities as well if they are there.

    `ends`: the values at both ends, as there is no colour bar.
    """
    if scale is None:
        return "photos as they are"
    parts = [ends_of(scale)] if ends else ["values beyond are clipped"] * scale.clips
    parts += ["by the logarithm"] * (scale.power and not ends)
    for number, (sign, look) in enumerate(zip(SIGNS, looks_of_signs(NONE), strict=True)):
        if any(picture.of_sign(number).any() for picture in pictures):
            parts.append(f"{sign} {look}")
    return ", ".join(parts)
