"""Channels of a micrograph, each in its colour, and all of them together.

A channel has the colour that its file names, else that of the wavelength of its light, else the
next one of a usual order; `Channel.origin` has which of these it was.
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
_COLOR_NAMES: dict[str, Color] = {
    "green": (0, 255, 0), "magenta": (255, 0, 255), "blue": (0, 0, 255), "sky blue": (0, 160, 255),
    "orange": (255, 160, 0), "yellow": (255, 255, 0), "cyan": (0, 255, 255), "red": (255, 0, 0),
    "white": (255, 255, 255),
}  # fmt: skip
# Wavelengths in nm from which light is shown in a colour, as in fluorescence.
_LIGHT: tuple[tuple[float, Color], ...] = (
    (640.0, (255, 0, 255)), (580.0, (255, 0, 0)), (555.0, (255, 200, 0)), (495.0, (0, 255, 0)),
    (470.0, (0, 255, 255)), (200.0, (0, 96, 255)),
)  # fmt: skip
OF_FILE, BY_LIGHT, IN_ORDER = "of the file", "by the wavelength", "in a usual order"


class Channel(Record):
    """A channel: its name, its colour as red, green, blue, and the origin of that in words."""

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
        """Describe the origins of the colours."""
        return origin_of(self.channels)


def names_of(channels: list[Channel]) -> str:
    """The names of channels with those of their colours: ``DAPI (blue), GFP (green)``."""
    return ", ".join(f"{channel.name} ({_color_name(channel.color)})" for channel in channels)


def _color_name(color: Color) -> str:
    """The name of the nearest of the colours that have names here, a dark one as a bright one."""
    most = max(color) or 1
    bright = [255 * part / most for part in color]
    return min(
        _COLOR_NAMES,
        key=lambda name: sum(
            (one - other) ** 2 for one, other in zip(bright, _COLOR_NAMES[name], strict=True)
        ),
    )


def origin_of(channels: list[Channel]) -> str:
    """Describe the origins of the colours of channels."""
    origins = list(dict.fromkeys(channel.origin for channel in channels))
    return f"colours {' and '.join(origins)}"


def channel_axis(array: Array) -> int | None:
    """The axis of the channels of a micrograph, as it is indexed; None for any other array."""
    if not array.described or array.element.kind not in ("int", "uint", "float", "bool"):
        return None
    names = [(axis.name or "").lower() for axis in array.axes]
    long = [at for at, length in enumerate(array.shape) if length > 1]
    for at, axis in enumerate(array.axes):
        has_fields = bool(_channel_fields(array, at))
        is_named = names[at] in _NAMES and {"x", "y"} <= set(names)
        is_color = (axis.kind or "").endswith("-color")
        if (has_fields or is_named) and not is_color and array.shape[at] > 1:
            others = [other for other in long if other != at]
            return at if len(others) >= 2 else None
    return None


def channels_of(array: Array, axis: int) -> list[Channel]:
    """The names and colours of the channels of an axis. Raises nothing."""
    all_fields, labels = _channel_fields(array, axis), array.axes[axis].labels
    channels: list[Channel] = []
    for at in range(min(array.shape[axis], MOST_CHANNELS)):
        fields = all_fields[at] if at < len(all_fields) else {}
        color, origin = _color_of(fields)
        used = [channel.color for channel in channels]
        if color is None or (origin == BY_LIGHT and color in used):
            color = next((usual for usual in _ORDER if usual not in used), _ORDER[-1])
            origin = IN_ORDER
        name = str(labels[at]) if labels is not None and at < len(labels) else ""
        name = name or str(fields.get("Fluor") or f"channel {at}")
        channels.append(Channel(name, color, origin))
    return channels


def _channel_fields(array: Array, axis: int) -> list[dict[str, Any]]:
    """The fields of each channel in the metadata of some format for the axis; [] without any."""
    for own in array.meta.formats.values():
        axes = own.get("axes")
        entry = axes[axis] if isinstance(axes, list | tuple) and len(axes) == array.ndim else None
        channels = entry.get("channels") if isinstance(entry, dict) else None
        if isinstance(channels, list | tuple):
            return [fields if isinstance(fields, dict) else {} for fields in channels]
    return []


def _color_of(own: dict[str, Any]) -> tuple[Color | None, str]:
    """The colour in the fields of a channel, or that of its wavelength, and its origin in words."""
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
    """The scale of each channel for some planes: few of the values lie beyond its ends."""
    return [
        scale_of_channel([one.planes[number].sampled.values[0] for one in seen])
        for number in range(len(seen[0].channels))
    ]


def mixed(seen: Seen, scales: list[Scale], side: int) -> Mixed | None:
    """The pictures of a plane, at most `side` pixels long; None if it is not a picture."""
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
    """The colours of a bar from black to a colour, in five steps."""
    return [[round(part * step / 4) for part in color] for step in range(5)]


def _palette_of(color: Color) -> Any:
    """The palette of a channel; NaN and the infinities are black, so that they add nothing."""
    share = np.linspace(0, 1, 256 - len(SIGNS))[:, None]
    ramp = np.concatenate([np.zeros((len(SIGNS), 3)), share * np.array(color)])
    return np.rint(ramp).astype(np.uint8)


def scale_of_channel(parts: list[Any]) -> Scale:
    """The scale of one channel, between percentiles of all its values."""
    values = np.concatenate([thinned(comparable(part).reshape(-1), 1 << 17) for part in parts])
    values = values[np.isfinite(values)].astype(np.float64)
    if not values.size:
        return Scale(0.0, 1.0, GRAY)
    low, high = map(float, np.percentile(values, _SHARES))
    least, most = float(values.min()), float(values.max())
    if not high > low:
        low, high = least, most
    return Scale(low, high, GRAY, clips=least < low or most > high)
