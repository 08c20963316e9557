"""Plots of characters: lines of Braille dots, bars, and rows of small columns."""

from __future__ import annotations

from math import isnan

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Values = np.ndarray[Any, Any]

_STEPS = " ▁▂▃▄▅▆▇█"
_ASCII_STEPS = " .:-=+*#%"
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


def columns_of(heights: Sequence[float], *, unicode: bool = True) -> str:
    """Numbers as columns in one line, the largest as high as the line; what is there is seen."""
    steps = _STEPS if unicode else _ASCII_STEPS
    top = max(heights, default=0.0)
    if top <= 0:
        return steps[1] * len(heights)
    return "".join(
        " " if height <= 0 else steps[max(1, round(height / top * 8))] for height in heights
    )


def sparkline(values: Sequence[float], low: float, high: float, *, unicode: bool = True) -> str:
    """Numbers as columns in one line, between two ends; a gap for NaN."""
    steps = _STEPS if unicode else _ASCII_STEPS
    width = high / 8 - low / 8
    return "".join(
        " "
        if isnan(value)
        else steps[1 + min(7, max(0, int((value / 8 - low / 8) / width * 7.999)))]
        if width > 0
        else steps[4]
        for value in values
    )  # fmt: skip


def envelope(values: Values, count: int) -> tuple[Values, Values]:
    """The least and the largest finite value of each of `count` stretches; NaN where none is."""
    values = values.astype(np.float64)
    count = min(count, values.size)
    starts = np.arange(count) * values.size // count
    there = np.isfinite(values)
    low = np.minimum.reduceat(np.where(there, values, np.inf), starts)
    high = np.maximum.reduceat(np.where(there, values, -np.inf), starts)
    gone = low > high
    low[gone] = high[gone] = np.nan
    return low, high


def line_plot(values: Values, width: int, height: int) -> list[str]:
    """A line through values as lines of Braille dots; of many, the stretch that each column has."""
    low, high = envelope(values, 2 * width)
    there = np.isfinite(low)
    if not there.any():
        return []
    bottom, top = float(low[there].min()), float(high[there].max())
    rows = 4 * height
    span = top / 2 - bottom / 2

    def row_of(value: float) -> int:
        share = (value / 2 - bottom / 2) / span if span > 0 else 0.5
        return rows - 1 - round(share * (rows - 1))

    grid = np.zeros((rows, 2 * width), bool)
    stretch = 2 * width / len(low)
    before = None
    for number in range(len(low)):
        if not there[number]:
            before = None
            continue
        first, last = row_of(float(high[number])), row_of(float(low[number]))
        if before is not None:  # no gap between neighbors
            first, last = min(first, before[1]), max(last, before[0])
        start = int(number * stretch)
        grid[first : last + 1, start : max(start + 1, int((number + 1) * stretch))] = True
        before = row_of(float(high[number])), row_of(float(low[number]))
    cells = grid.reshape(height, 4, width, 2).transpose(0, 2, 1, 3)
    codes = (cells * _DOTS).sum(axis=(2, 3))
    return ["".join(chr(0x2800 + int(code)) for code in line).rstrip("⠀") for line in codes]


def bar(share: float, width: int, *, unicode: bool = True) -> str:
    """A bar of a share of a width; what is not nothing is seen."""
    if not unicode:
        return "#" * max(int(share > 0), round(share * width))
    eighths = max(int(share > 0), round(8 * width * share))
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")


def number_text(value: Any) -> str:
    """A number as people read it: whole ones whole, others with six digits, times with units."""
    if value is None:
        return "none"
    if isinstance(value, (bool, np.bool_)):
        return "True" if value else "False"
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}"
    return str(value)
