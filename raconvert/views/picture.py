"""Pictures of arrays: elements as pixels, and a PNG writer that needs nothing but zlib."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from raconvert.declared import Record
from raconvert.views.numbers import comparable, thinned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Values = np.ndarray[Any, Any]

# NaN and the infinities have colors of their own: the first ones of each palette.
SIGNS = ("NaN", "-inf", "inf")
_NAN, _BELOW, _ABOVE = range(len(SIGNS))
_SIGN_COLORS = ((168, 50, 90), (0, 114, 178), (230, 130, 0))
_COLORS = 256 - len(SIGNS)
# Floats are shown by their logarithm if the largest is `_PEAK` times the 99th percentile, and that
# is `_WIDE` times the median: as in k-space, where few are far larger than most. Images of a body
# have a dark median, but no such peak.
_PEAK, _WIDE = 5.0, 5.0
_LEAST_POWER = 1e-6  # of the largest value: the least of which a logarithmic scale has a color
_SMALL = 1 << 16  # bytes; a smaller picture is packed at the best level, which is slow
_SHARE = 1.0  # percent of the values clipped at each end of the scale
# Coefficients of a polynomial through viridis, by Matt Zucker (public domain).
_VIRIDIS = (
    (0.2777273272234177, 0.005407344544966578, 0.3340998053353061),
    (0.1050930431085774, 1.404613529898575, 1.384590162594685),
    (-0.3308618287255563, 0.214847559468213, 0.09509516302823659),
    (-4.634230498983486, -5.799100973351585, -19.33244095627987),
    (6.228269936347081, 14.17993336680509, 56.69055260068105),
    (4.776384997670288, -13.74514537774601, -65.35303263337234),
    (-5.435455855934631, 4.645852612178535, 26.3124352495832),
)
_CLASSES = (  # of classes, the background first; after Okabe and Ito, readable by the color-blind
    (26, 28, 33), (86, 180, 233), (230, 159, 0), (0, 158, 115), (240, 228, 66), (204, 121, 167),
    (213, 94, 0), (0, 114, 178), (187, 187, 187),
)  # fmt: skip

GRAY, DEPTH, PHASE, CLASSES = "gray", "depth", "phase", "classes"
DIFFERENCE = "difference"  # from blue over white, which is 0, to red
_BELOW_ZERO, _ZERO, _ABOVE_ZERO = (0, 60, 160), (247, 247, 247), (165, 15, 21)


class Scale(Record):
    """The scale of a picture: the values at the ends of the colors, and the name of the colors.

    `power`: the colors are even steps of the decimal logarithm. `clips`: some values lie beyond.
    """

    low: float
    high: float
    colors: str
    power: bool = False
    clips: bool = False


class Picture(Record):
    """Pixels: numbers of colors with their palette, or red, green, blue with None."""

    pixels: Any
    palette: Any

    def of_sign(self, number: int) -> Any:
        """The pixels with one of the `SIGNS`, as an array of bools of the shape of the picture."""
        if self.palette is None:
            return np.zeros(self.pixels.shape[:2], bool)
        return self.pixels == number

    @property
    def rgb(self) -> Any:
        """The pixels as red, green, blue."""
        return self.pixels if self.palette is None else self.palette[self.pixels]


def palette_of(colors: str) -> Values:
    """256 colors, red, green, blue; the first are those of the `SIGNS`."""
    if colors == CLASSES:
        table = np.array(_CLASSES, np.float64)
        table_of_colors = table[
            np.minimum(np.arange(_COLORS), 1 + (np.arange(_COLORS) - 1) % (len(table) - 1))
        ]
        table_of_colors[0] = table[0]
    else:
        share = np.linspace(0, 1, _COLORS)[:, None]
        if colors == GRAY:
            table_of_colors = np.repeat(share * 255, 3, axis=1)
        elif colors == DIFFERENCE:
            ends = np.array([_BELOW_ZERO, _ZERO, _ABOVE_ZERO], np.float64)
            at = share[:, 0]
            table_of_colors = np.stack(
                [np.interp(at, [0, 0.5, 1], ends[:, channel]) for channel in range(3)], axis=-1
            )
        elif colors == PHASE:
            turn = 2 * np.pi * (share - np.array([0, 1 / 3, 2 / 3]))
            table_of_colors = 255 * (0.52 + 0.4 * np.cos(turn))
        else:
            table_of_colors = np.zeros((_COLORS, 3))
            for row in _VIRIDIS[::-1]:
                table_of_colors = table_of_colors * share + np.array(row)
            table_of_colors *= 255
    whole = np.concatenate([np.array(_SIGN_COLORS, np.float64), table_of_colors])
    palette: Values = np.clip(np.rint(whole), 0, 255).astype(np.uint8)
    return palette


def scale_of(parts: list[Values], colors: str) -> Scale:
    """The scale of pictures in these colors: between extremes of bytes and bools, else percentiles.

    Both ends are NaN if no value is finite. Positive numbers of a wide range, as those of k-space,
    are shown by their logarithm.
    """
    finite = []
    for part in parts:
        values = comparable(part).reshape(-1)
        values = thinned(values, 1 << 18)
        finite.append(values[np.isfinite(values)] if values.dtype.kind == "f" else values)
    values = np.concatenate(finite) if finite else np.zeros(0)
    if not values.size:
        return Scale(np.nan, np.nan, colors)
    if values.dtype.kind == "b" or values.dtype.itemsize == 1:
        low, high = float(values.min()), float(values.max())
    elif _is_wide(values):
        high = float(values.max())
        colored_ones = values[values > high * _LEAST_POWER]
        low = float(np.percentile(colored_ones.astype(np.float64), _SHARE))
        return Scale(low, high, colors, power=True, clips=bool(values.min() < low))
    else:
        low, high = map(float, np.percentile(values.astype(np.float64), [_SHARE, 100 - _SHARE]))
        if not high > low:
            low, high = float(values.min()), float(values.max())
        if values.dtype.kind in "iu":
            low, high = float(int(low)), float(int(high + 0.999))
    return Scale(low, high, colors, clips=bool(values.min() < low or values.max() > high))


def _is_wide(values: Values) -> bool:
    """True for floats of at least 0 of which few are far larger than most."""
    if values.dtype.kind != "f" or not values.max() > 0 or values.min() < 0:
        return False
    middle, large = map(float, np.percentile(values.astype(np.float64), [50, 100 - _SHARE]))
    return middle > 0 and large > _WIDE * middle and float(values.max()) > _PEAK * large


def colored(values: Values, scale: Scale) -> Picture:
    """A picture of a plane of numbers."""
    values = comparable(values)
    palette = palette_of(scale.colors)
    if scale.colors == CLASSES:
        numbers = values.astype(np.int64) % _COLORS + len(SIGNS)
        return Picture(numbers.astype(np.uint8), palette)
    values = values.astype(np.float64)
    with np.errstate(all="ignore"):
        share = _shares(np.nan_to_num(values, nan=0), scale)
        at = len(SIGNS) + np.clip(share, 0, 1) * (_COLORS - 1)
    pixels = np.rint(np.nan_to_num(at)).astype(np.uint8)
    for sign, mask in (
        (_NAN, np.isnan(values)), (_BELOW, np.isneginf(values)), (_ABOVE, np.isposinf(values)),
    ):  # fmt: skip
        pixels[mask] = sign
    return Picture(pixels, palette)


def _shares(values: Values, scale: Scale) -> Values:
    """The positions of values between the ends of a scale, as shares of its length."""
    low, high = scale.low, scale.high
    if scale.power:
        low, high = float(np.log10(low)), float(np.log10(high))
        values = np.log10(np.maximum(values, scale.low))
    if not high > low:
        return np.full(values.shape, 0.5)
    share: Values = (values / 2 - low / 2) / (high / 2 - low / 2)
    return share


def photo(values: Values) -> Picture:
    """A picture of pixels of red, green, blue in whole numbers; alpha is laid over grey."""
    bits = 8 * (values.dtype.itemsize - 1)
    if bits:
        values = (comparable(values) >> bits).astype(np.uint8)
    if values.shape[-1] == 4:
        share = values[..., 3:].astype(np.float64) / 255
        values = np.rint(values[..., :3] * share + 128 * (1 - share)).astype(np.uint8)
    return Picture(np.ascontiguousarray(values), None)


def resized(values: Values, rows: int, columns: int, *, mean: bool = True) -> Values:
    """Resize a plane to so many rows and columns: to means of pixels, or to one pixel of each."""
    height, width = values.shape
    if (rows, columns) == (height, width):
        return values
    if rows > height or columns > width:
        values = _shrunk(values, min(rows, height), min(columns, width), mean=mean)
        height, width = values.shape
        down, right = np.arange(rows) * height // rows, np.arange(columns) * width // columns
        larger: Values = values[down][:, right]
        return larger
    return _shrunk(values, rows, columns, mean=mean)


def resized_photo(values: Values, rows: int, columns: int) -> Values:
    """Resize a plane whose colours are its last axis to so many rows and columns, by means."""
    colors = [resized(values[..., at], rows, columns) for at in range(values.shape[-1])]
    return np.stack(colors, axis=-1)


def _shrunk(values: Values, rows: int, columns: int, *, mean: bool) -> Values:
    """Resize a plane to fewer rows and columns; a mean is that of the finite pixels."""
    height, width = values.shape
    tops = np.arange(rows) * height // rows
    lefts = np.arange(columns) * width // columns
    picked: Values = values[tops + (height // rows) // 2][:, lefts + (width // columns) // 2]
    if not mean or values.dtype.kind not in "iuf":
        return picked
    floats = values.astype(np.float32)
    finite = np.isfinite(floats)
    sums = _summed(np.where(finite, floats, 0), tops, lefts)
    counts = _summed(finite.astype(np.float32), tops, lefts)
    with np.errstate(all="ignore"):
        means: Values = np.where(counts, sums / counts, picked)
    return means if values.dtype.kind == "f" else np.rint(means).astype(values.dtype)


def _summed(values: Values, tops: Values, lefts: Values) -> Values:
    """The sums of the boxes of a plane that begin at these rows and columns."""
    return np.add.reduceat(np.add.reduceat(values, tops, axis=0), lefts, axis=1)


def enlarged(picture: Picture, factor: int) -> Picture:
    """The picture with each pixel as a square of `factor` × `factor` pixels."""
    pixels = picture.pixels.repeat(factor, axis=0).repeat(factor, axis=1)
    return picture._replace(pixels=pixels)


def beside(pictures: list[Picture], gap: int) -> Picture:
    """Pictures in one row, with transparent gaps of so many pixels, as red, green, blue, alpha."""
    height = max(picture.pixels.shape[0] for picture in pictures)
    width = sum(picture.pixels.shape[1] for picture in pictures) + gap * (len(pictures) - 1)
    joined = np.zeros((height, width, 4), np.uint8)
    left = 0
    for picture in pictures:
        high, wide = picture.pixels.shape[:2]
        joined[:high, left : left + wide, :3] = picture.rgb
        joined[:high, left : left + wide, 3] = 255
        left += wide + gap
    return Picture(joined, None)


def png_of(picture: Picture) -> bytes:
    """The picture as the bytes of a PNG file."""
    pixels = np.ascontiguousarray(picture.pixels)
    height, width = pixels.shape[:2]
    depth = 1 if pixels.ndim == 2 else pixels.shape[2]
    rows = np.zeros((height, 1 + width * depth), np.uint8)
    rows[:, 1:] = pixels.reshape(height, width * depth)
    parts = [
        _chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, {1: 3, 3: 2, 4: 6}[depth], 0, 0, 0))
    ]
    if picture.palette is not None:
        used = int(pixels.max(initial=0)) + 1
        parts.append(_chunk(b"PLTE", picture.palette[:used].tobytes()))
    else:  # differences from the pixel on the left (filter 1) pack better
        rows[:, 0] = 1
        whole = rows[:, 1:].copy()
        rows[:, 1 + depth :] = whole[:, depth:] - whole[:, :-depth]
    parts += [
        _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9 if rows.size < _SMALL else 6)),
        _chunk(b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(kind: bytes, body: bytes) -> bytes:
    """A chunk of a PNG file: length, kind, body and checksum."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
