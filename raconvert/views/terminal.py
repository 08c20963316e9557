"""Pictures in a terminal: by the graphics that it has, else by half blocks, else by characters."""

from __future__ import annotations

import base64
from math import isnan

import numpy as np

from raconvert.views.picture import beside, enlarged, png_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from raconvert.views.picture import Picture

    Values = np.ndarray[Any, Any]


KITTY, ITERM2, SIXEL = "kitty", "iterm2", "sixel"
BLOCKS, CHARACTERS, NONE = "blocks", "plain", "none"
WAYS = (KITTY, ITERM2, SIXEL, BLOCKS, CHARACTERS, NONE)
CELL = (8, 16)  # width and height of a character in pixels, roughly
ROWS = 18  # rows of characters of a picture, where no window bounds them
_SIDE = 320  # the longest side of a picture in pixels, where pixels are shown
_KITTY_BYTES = 4096  # the most that kitty takes in one escape sequence
_SIXEL_COLORS = 256  # most terminals have 256 color registers
_SIXEL_LEVELS = 6  # levels per channel if a picture has more colors: 6³ = 216 fit
# Packs percents (0 to 100) of red, green and blue into one number.
_DIGITS = np.array([101**2, 101, 1])
_RAMP = " .:-=+*#%@"
# The looks of the signs of NaN, -inf and inf: characters that are not in the ramp, and colors.
_SIGN_CHARACTERS = "xv^"
_SIGN_COLORS = ("red", "blue", "orange")
_CHARACTERS = np.array([*_RAMP, *_SIGN_CHARACTERS])
_RESET = "\x1b[0m"


def way_of(environment: Mapping[str, str], *, terminal: bool, unicode: bool, color: bool) -> str:
    """Choose the way of showing pictures by the environment variables of the terminal."""
    if not terminal or not color:
        return CHARACTERS
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if environment.get("TMUX") or environment.get("STY") or term.startswith(("screen", "tmux")):
        return BLOCKS if unicode else CHARACTERS  # multiplexers such as tmux drop pictures
    if "kitty" in term or environment.get("KITTY_WINDOW_ID") or program.lower() == "ghostty":
        return KITTY
    if program in ("iTerm.app", "WezTerm") or environment.get("LC_TERMINAL") == "iTerm2":
        return ITERM2
    if term.startswith(("foot", "mlterm", "contour")) or "sixel" in term:
        return SIXEL
    return BLOCKS if unicode else CHARACTERS


def room(columns: int, count: int, *, way: str, rows: int = ROWS) -> tuple[int, int]:
    """The height and width in pixels that each of `count` pictures in a row may have."""
    cells = max(4, (columns - 2 - 2 * (count - 1)) // count)
    if way in (KITTY, ITERM2, SIXEL):
        return min(_SIDE, rows * CELL[1]), min(_SIDE, cells * CELL[0])
    return 2 * rows, cells


def drawn(
    pictures: list[Picture], way: str, *, columns: int, true_color: bool, rows: int = ROWS
) -> list[str]:
    """Draw pictures side by side, in at most `columns` and `rows` of characters; return lines."""
    if way in (KITTY, ITERM2, SIXEL):
        return _graphics(pictures, way, columns, rows)
    if way == BLOCKS:
        blocks = [_half_blocks(picture, true_color=true_color) for picture in pictures]
    else:
        blocks = [_characters(picture) for picture in pictures]
    widths = [picture.pixels.shape[1] for picture in pictures]
    lines = []
    for number in range(max(map(len, blocks))):
        parts = [
            block[number] if number < len(block) else " " * width
            for block, width in zip(blocks, widths, strict=True)
        ]
        lines.append("  ".join(parts).rstrip() if way == CHARACTERS else "  ".join(parts))
    return lines


def looks_of_signs(way: str) -> tuple[str, ...]:
    """The characters or the names of the colors that stand for NaN, -inf and inf in a picture."""
    return tuple(_SIGN_CHARACTERS) if way == CHARACTERS else _SIGN_COLORS


def pitch(pictures: list[Picture], way: str, columns: int, rows: int = ROWS) -> float:
    """Return the distance in characters between the left edges of pictures in a row."""
    width = pictures[0].pixels.shape[1]
    if way in (KITTY, ITERM2, SIXEL):
        return float(_factor(pictures, columns, rows) * width / CELL[0] + 1)
    return float(width + 2)


def _factor(pictures: list[Picture], columns: int, rows: int) -> int:
    """Return the scale of a row of pictures: pixels of the screen per pixel."""
    widest = max(picture.pixels.shape[1] for picture in pictures)
    free = (columns - 2 - (len(pictures) - 1)) * CELL[0]
    highest = max(picture.pixels.shape[0] for picture in pictures)
    most = min(8, free // (len(pictures) * widest), 288 // widest, rows * CELL[1] // highest)
    return int(max(1, most))


def _graphics(pictures: list[Picture], way: str, columns: int, rows: int) -> list[str]:
    """Draw pictures in a row, as large as fits, by one escape sequence of the terminal."""
    factor = _factor(pictures, columns, rows)
    whole = beside([enlarged(picture, factor) for picture in pictures], CELL[0])
    if way == SIXEL:
        return [_sixel(whole.pixels)]
    png = base64.b64encode(png_of(whole)).decode("ascii")
    if way == ITERM2:
        size = len(png) * 3 // 4 - png.count("=")
        return [f"\x1b]1337;File=inline=1;size={size};preserveAspectRatio=1:{png}\x07"]
    parts = [png[at : at + _KITTY_BYTES] for at in range(0, len(png), _KITTY_BYTES)]
    more = [int(number < len(parts)) for number in range(1, len(parts) + 1)]
    keys = ["a=T,f=100,q=2,", *[""] * (len(parts) - 1)]
    return [
        "".join(
            f"\x1b_G{key}m={left};{part}\x1b\\"
            for key, left, part in zip(keys, more, parts, strict=True)
        )
    ]


def _sixel(pixels: Any) -> str:
    """Encode pixels of red, green, blue, alpha as a sixel picture, without transparent ones."""
    height, width = pixels.shape[:2]
    visible = pixels[..., 3] > 0
    colors, indices = _sixel_colors(pixels[..., :3][visible])
    numbers = np.full((height, width), -1)
    numbers[visible] = indices
    parts = [f'\x1bP0;1q"1;1;{width};{height}']
    for number, color in enumerate(colors.tolist()):
        parts.append(f"#{number};2;{';'.join(map(str, color))}")
    for start in range(0, height, 6):
        band = numbers[start : start + 6]
        bits = 1 << np.arange(len(band))[:, None]
        for number in np.unique(band[band >= 0]):
            row = ((band == number) * bits).sum(axis=0)
            parts.append(f"#{number}{_runs(row)}$")
        parts.append("-")
    return "".join(parts) + "\x1b\\"


def _sixel_colors(pixels: Any) -> tuple[Any, Any]:
    """The different colors of pixels in percent, and the index of the color of each pixel.

    More colors than a terminal has registers are rounded to 216.
    """
    percent = np.rint(pixels.astype(np.float64) * (100 / 255)).astype(np.int64)
    if len(np.unique(percent @ _DIGITS)) > _SIXEL_COLORS:
        top = _SIXEL_LEVELS - 1
        percent = (pixels.astype(np.int64) * top + 127) // 255 * (100 // top)
    codes, indices = np.unique(percent @ _DIGITS, return_inverse=True)
    colors = np.stack([codes // 101**2, codes // 101 % 101, codes % 101], axis=-1)
    return colors, indices.reshape(-1)


def _runs(row: Any) -> str:
    """Encode the sixels of a color in one band; more than 3 alike are a count and one of them."""
    edges = np.flatnonzero(np.diff(row, prepend=row[0] + 1))
    lengths = np.diff(edges, append=len(row))
    runs = []
    for at, length in zip(edges, lengths, strict=True):
        sign = chr(63 + int(row[at]))
        runs.append(f"!{length}{sign}" if length > 3 else sign * int(length))
    return "".join(runs)


def _half_blocks(picture: Picture, *, true_color: bool) -> list[str]:
    """The lines of a picture, two rows in each: the upper in front, the lower as background.

    The last row of an odd number has no background.
    """
    pixels = picture.rgb
    is_odd = len(pixels) % 2 == 1
    if is_odd:
        pixels = np.concatenate([pixels, pixels[-1:]])
    lines = []
    for number in range(0, len(pixels), 2):
        parts: list[str] = []
        before: object = None
        alone = is_odd and number == len(pixels) - 2
        for upper, lower in zip(pixels[number].tolist(), pixels[number + 1].tolist(), strict=True):
            colors = (tuple(upper), () if alone else tuple(lower))
            if colors != before:
                parts.append(_RESET * bool(alone) + _color(38, upper, true_color))
                parts.append("" if alone else _color(48, lower, true_color))
                before = colors
            parts.append("▀")
        lines.append("".join(parts) + _RESET)
    return lines


def _color(ground: int, color: list[int], true_color: bool) -> str:
    """The escape sequence of a color; `ground` is 38 for characters, 48 for their background."""
    red, green, blue = color
    if true_color:
        return f"\x1b[{ground};2;{red};{green};{blue}m"
    if max(color) - min(color) < 10:
        number = 232 + min(23, sum(color) // 3 * 24 // 256)
    else:
        number = 16 + sum(
            weight * ((level * 5 + 127) // 255)
            for weight, level in zip((36, 6, 1), color, strict=True)
        )
    return f"\x1b[{ground};5;{number}m"


def _characters(picture: Picture) -> list[str]:
    """The lines of a picture as characters, of every other row; brighter pixels have more ink."""
    light = picture.rgb.astype(np.float64) @ np.array([0.299, 0.587, 0.114])
    steps = np.minimum((light * len(_RAMP) / 256).astype(int), len(_RAMP) - 1)
    for number in range(len(_SIGN_CHARACTERS)):
        steps[picture.of_sign(number)] = len(_RAMP) + number
    return ["".join(row) for row in _CHARACTERS[steps[::2]].tolist()]


def has_true_color(environment: Mapping[str, str]) -> bool:
    """True if the environment variables of a terminal promise colors of 24 bits."""
    return environment.get("COLORTERM", "") in ("truecolor", "24bit") or "direct" in (
        environment.get("TERM", "")
    )


# Plots of characters: lines of Braille dots, bars, and rows of small columns ---------------------


_STEPS = " ▁▂▃▄▅▆▇█"
_ASCII_STEPS = " .:-=+*#%"
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


def bars_of(heights: Sequence[float], *, unicode: bool = True) -> str:
    """Draw numbers as columns in one line, scaled to the largest; nonzero ones stay visible."""
    steps = _STEPS if unicode else _ASCII_STEPS
    top = max(heights, default=0.0)
    if top <= 0:
        return steps[1] * len(heights)
    return "".join(
        " " if height <= 0 else steps[max(1, round(height / top * 8))] for height in heights
    )


def sparkline(values: Sequence[float], low: float, high: float, *, unicode: bool = True) -> str:
    """Draw numbers as columns in one line, from `low` to `high`; a gap for NaN."""
    steps = _STEPS if unicode else _ASCII_STEPS
    width = high / 8 - low / 8

    def column_of(value: float) -> str:
        if isnan(value):
            return " "
        if not width > 0:
            return steps[4]
        return steps[1 + min(7, max(0, int((value / 8 - low / 8) / width * 7.999)))]

    return "".join(map(column_of, values))


def envelope(values: Values, count: int) -> tuple[Values, Values]:
    """The least and the largest finite value of each of `count` stretches; NaN without any."""
    values = values.astype(np.float64)
    count = min(count, values.size)
    starts = np.arange(count) * values.size // count
    finite = np.isfinite(values)
    low = np.minimum.reduceat(np.where(finite, values, np.inf), starts)
    high = np.maximum.reduceat(np.where(finite, values, -np.inf), starts)
    empty = low > high
    low[empty] = high[empty] = np.nan
    return low, high


def line_plot(values: Values, width: int, height: int) -> list[str]:
    """Draw a line through values as `height` lines of Braille dots; [] if no value is finite.

    If there are more values than columns, each column has the range of its values.
    """
    low, high = envelope(values, 2 * width)
    finite = np.isfinite(low)
    if not finite.any():
        return []
    bottom, top = float(low[finite].min()), float(high[finite].max())
    rows = 4 * height
    span = top / 2 - bottom / 2

    def row_of(value: float) -> int:
        share = (value / 2 - bottom / 2) / span if span > 0 else 0.5
        return rows - 1 - round(share * (rows - 1))

    grid = np.zeros((rows, 2 * width), bool)
    stretch = 2 * width / len(low)
    before = None
    for number in range(len(low)):
        if not finite[number]:
            before = None
            continue
        first, last = row_of(float(high[number])), row_of(float(low[number]))
        if before is not None:  # the line has no gap between neighbors
            first, last = min(first, before[1]), max(last, before[0])
        start = int(number * stretch)
        grid[first : last + 1, start : max(start + 1, int((number + 1) * stretch))] = True
        before = row_of(float(high[number])), row_of(float(low[number]))
    cells = grid.reshape(height, 4, width, 2).transpose(0, 2, 1, 3)
    codes = (cells * _DOTS).sum(axis=(2, 3))
    return ["".join(chr(0x2800 + int(code)) for code in line).rstrip("⠀") for line in codes]


def bar(share: float, width: int, *, unicode: bool = True) -> str:
    """Draw a share of a width as a bar; a share above 0 is always visible."""
    if not unicode:
        return "#" * max(int(share > 0), round(share * width))
    eighths = max(int(share > 0), round(8 * width * share))
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")


def number_text(value: Any) -> str:
    """A number as people read it: integers in full, others with six digits, times with units."""
    if value is None:
        return "none"
    if isinstance(value, (bool, np.bool_)):
        return "True" if value else "False"
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}"
    return str(value)
