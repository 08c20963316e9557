"""Channels of a micrograph, each in its colour, and all of them together.

A channel has the colour that its file says, else that of the wavelength of its light, else the
next one of a usual order; which of these it was is said.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from raconvert.arrays.layout import IMAGE
from raconvert.declared import Record
from raconvert.views.filmstrip import Strip, strips_of
from raconvert.views.numbers import comparable, thinned
from raconvert.views.picture import GRAY, SIGNS, Picture, Scale
from raconvert.views.planes import key_text, plane_at
from raconvert.views.sample import DECODED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.views.planes import Plane

    Color = tuple[int, int, int]

MOST_CHANNELS = 8  # shown; of more, the first
_NAMES = ("c", "ch", "channel", "channels")  # of an axis of channels, beside axes named x and y
_SHARES = (0.5, 99.8)  # percent of the values below the ends of the colours of a channel
_ORDER: tuple[Color, ...] = (
    (0, 255, 0), (255, 0, 255), (0, 160, 255), (255, 160, 0), (255, 255, 0), (0, 255, 255),
    (255, 0, 0), (255, 255, 255),
)  # fmt: skip
# Wavelengths in nm from which light is shown in a colour, as in fluorescence.
_LIGHT: tuple[tuple[float, Color], ...] = (
    (640.0, (255, 0, 255)), (580.0, (255, 0, 0)), (555.0, (255, 200, 0)), (495.0, (0, 255, 0)),
    (470.0, (0, 255, 255)), (200.0, (0, 96, 255)),
)  # fmt: skip
OF_FILE, BY_LIGHT, IN_ORDER = "of the file", "by the wavelength", "in a usual order"


class Channel(Record):
    """A channel: its name, its colour as red, green, blue, and where the colour is from."""

    name: str
    color: Color
    origin: str


class Mixed(Record):
    """A plane of a micrograph: all channels in one picture, and each alone."""

    together: Strip
    alone: list[Strip]
    channels: list[Channel]
    key: str

    @property
    def origin(self) -> str:
        """The words for where the colours are from."""
        origins = list(dict.fromkeys(channel.origin for channel in self.channels))
        return f"colours {' and '.join(origins)}"


def channel_axis(array: Array) -> int | None:
    """The axis of the channels of a micrograph, as it is indexed; None for any other array."""
    if not array.described or array.element.kind not in ("int", "uint", "float", "bool"):
        return None
    names = [(axis.name or "").lower() for axis in array.axes]
    long = [at for at, length in enumerate(array.shape) if length > 1]
    for at, axis in enumerate(array.axes):
        known = _said_of(array, at)
        named = names[at] in _NAMES and {"x", "y"} <= set(names)
        color = (axis.kind or "").endswith("-color")
        if (known or named) and not color and array.shape[at] > 1:
            plane = [other for other in long if other != at][-2:]
            return at if len(plane) == 2 and min(array.shape[one] for one in plane) > 1 else None
    return None


def channels_of(array: Array, axis: int) -> list[Channel]:
    """The names and colours of the channels of an axis. Raises nothing."""
    said, labels = _said_of(array, axis), array.axes[axis].labels
    found: list[Channel] = []
    for at in range(min(array.shape[axis], MOST_CHANNELS)):
        own = said[at] if at < len(said) else {}
        color, origin = _color_of(own)
        if color is None or (origin == BY_LIGHT and color in [one.color for one in found]):
            used = [one.color for one in found]
            color = next((one for one in _ORDER if one not in used), _ORDER[-1])
            origin = IN_ORDER
        name = str(labels[at]) if labels is not None and at < len(labels) else ""
        found.append(Channel(name or str(own.get("Fluor") or f"channel {at}"), color, origin))
    return found


def _said_of(array: Array, axis: int) -> list[dict[str, Any]]:
    """The fields of each channel that some format keeps with the axis."""
    for own in array.meta.formats.values():
        axes = own.get("axes")
        entry = axes[axis] if isinstance(axes, list | tuple) and len(axes) == array.ndim else None
        channels = entry.get("channels") if isinstance(entry, dict) else None
        if isinstance(channels, list | tuple):
            return [one if isinstance(one, dict) else {} for one in channels]
    return []


def _color_of(own: dict[str, Any]) -> tuple[Color | None, str]:
    """The colour that the fields of a channel say, and where it is from."""
    text = own.get("color", own.get("Color"))
    if isinstance(text, str):
        color = _color_named(text)
        if color is not None and any(color):
            return color, OF_FILE
    for field in ("EmissionWavelength", "ExcitationWavelength"):
        if own.get(f"{field}Unit", "nm") not in ("nm", "nanometer"):
            continue
        try:
            length = float(own.get(field, "nan"))
        except (TypeError, ValueError):
            continue
        if isfinite(length):
            return next((color for least, color in _LIGHT if length >= least), None), BY_LIGHT
    return None, ""


def _color_named(text: str) -> Color | None:
    """The colour of six digits, or of the signed number of 32 bits that OME writes."""
    digits = text.removeprefix("#")
    try:
        number = int(digits, 16) << 8 if len(digits) == 6 else int(text) & 0xFFFFFFFF
    except ValueError:
        return None
    return number >> 24 & 255, number >> 16 & 255, number >> 8 & 255


# Pictures -----------------------------------------------------------------------------------------


class Seen(Record):
    """One plane of a micrograph: a sample of each channel, and the key of the plane."""

    planes: list[Plane]
    channels: list[Channel]
    key: str


def seen_at(
    array: Array, axis: int, chosen: dict[int, int] | None = None, *, budget: int = DECODED
) -> Seen | None:
    """Read one plane of each channel: the middle one of all other axes, unless they are chosen.

    None if that costs too much. Raises what reading elements raises.
    """
    channels = channels_of(array, axis)
    long = [at for at, length in enumerate(array.shape) if length > 1 and at != axis]
    across = long[-2:] if array.index_order != "F" else long[:2]
    key: list[Any] = [length // 2 for length in array.shape]
    for at, number in (chosen or {}).items():
        key[at] = number
    for at in across:
        key[at] = slice(None)
    planes = []
    for number in range(len(channels)):
        key[axis] = number
        plane = plane_at(array, [*key], budget // len(channels))
        if plane is None:
            return None
        planes.append(plane)
    key[axis] = slice(None)
    shown = [0 if length == 1 else part for part, length in zip(key, array.shape, strict=True)]
    return Seen(planes, channels, key_text(shown))


def scales_of(seen: list[Seen]) -> list[Scale]:
    """The scale of each channel in all of some planes: few of the values lie beyond its ends."""
    return [
        _scale_of([one.planes[number].sampled.values[0] for one in seen])
        for number in range(len(seen[0].channels))
    ]


def mixed(seen: Seen, scales: list[Scale], side: int) -> Mixed | None:
    """The pictures of a plane of at most so many pixels; None if it is not a picture."""
    alone, shares = [], []
    for plane, scale, channel in zip(seen.planes, scales, seen.channels, strict=True):
        if plane.sampled.form != IMAGE:
            return None
        (strip,) = strips_of(plane.array, plane.sampled, side, side, scale=scale)
        (picture,) = strip.pictures
        palette = _palette_of(channel.color)
        picture = picture._replace(palette=palette)
        alone.append(strip._replace(title=channel.name, pictures=[picture]))
        shares.append(palette[picture.pixels].astype(np.uint16))
    whole = np.minimum(sum(shares), 255).astype(np.uint8)
    together = alone[0]._replace(pictures=[Picture(whole, None)], title="", scale=None)
    return Mixed(together, alone, seen.channels, seen.key)


def ramp_of(color: Color) -> list[list[float]]:
    """Black to a colour, in a few steps."""
    return [[round(part * step / 4) for part in color] for step in range(5)]


def _palette_of(color: Color) -> Any:
    """The colours of a channel; what is not a number is black, so that it adds nothing."""
    share = np.linspace(0, 1, 256 - len(SIGNS))[:, None]
    ramp = np.concatenate([np.zeros((len(SIGNS), 3)), share * np.array(color)])
    return np.rint(ramp).astype(np.uint8)


def _scale_of(parts: list[Any]) -> Scale:
    values = np.concatenate([thinned(comparable(part).reshape(-1), 1 << 17) for part in parts])
    values = values[np.isfinite(values)].astype(np.float64)
    if not values.size:
        return Scale(0.0, 1.0, GRAY)
    low, high = map(float, np.percentile(values, _SHARES))
    least, most = float(values.min()), float(values.max())
    if not high > low:
        low, high = least, most
    return Scale(low, high, GRAY, clips=least < low or most > high)
