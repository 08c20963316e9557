"""Drawings of pages, as SVG: the cube of an array's axes, the ribbon of a file's bytes, lines."""

from __future__ import annotations

from html import escape
from math import log10

import numpy as np

from raconvert.declared import Record
from raconvert.errors import quoted
from raconvert.views.terminal import envelope, number_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_SIDES = ("front", "side", "top")
# The looks of drawings that stand outside of a page, without its style sheet.
_OPACITIES = (1, 0.7, 0.45)  # of the three sides of a box
_COLORS = {"header": "#d69e2e", "data": "#2b6cb0", "coded": "#6b98c8"}  # of the parts of a file
_OTHER = "#9b4d96"  # of the other parts
_WIDE = 720  # width of a ribbon or a plot, in pixels
_MOST_TITLES = 60  # parts of a file with a tooltip; a table lists all of them
HEADER, DATA, BETWEEN, END, CODED = "header", "data", "between", "end", "coded"


class Stretch(Record):
    """A stretch of a file: its first byte, its length, its kind, and its name."""

    start: int
    nbytes: int
    kind: str
    name: str


class Side(Record):
    """An axis as it is drawn: its length, in elements or in the world, and its label."""

    length: float
    text: str


def cube(sides: Sequence[Side]) -> str:
    """Draw the box of up to three axes: the fastest to the right, the next down, the third behind.

    Empty without axes.
    """
    if not sides:
        return ""
    longest = max(side.length for side in sides)
    width = _drawn(sides[0].length, longest)
    height = _drawn(sides[1].length, longest) if len(sides) > 1 else 22.0
    depth = 0.5 * _drawn(sides[2].length, longest) if len(sides) > 2 else 0.0
    left, top = 230.0 if len(sides) > 1 else 60.0, 24.0 + depth * 0.7
    dx, dy = depth, -depth * 0.7
    front = _face([(left, top), (left + width, top), (left + width, top + height),
                   (left, top + height)], 0)  # fmt: skip
    parts = [front]
    if depth:
        parts.append(_face([(left + width, top), (left + width + dx, top + dy),
                            (left + width + dx, top + height + dy), (left + width, top + height)],
                           1))  # fmt: skip
        parts.append(_face([(left, top), (left + dx, top + dy), (left + width + dx, top + dy),
                            (left + width, top)], 2))  # fmt: skip
    parts.append(_label(left + width / 2, top + height + 20, "middle", sides[0].text))
    if len(sides) > 1:
        parts.append(_label(left - 10, top + height / 2 + 5, "end", sides[1].text))
    if depth:  # placed beside the lower edge that leads to the back
        x, y = left + width + dx / 2 + 6, top + height + dy / 2 + 14
        parts.append(_label(x, y, "start", sides[2].text, pad=True))
    lower = top + height + 46
    words = "; ".join(side.text for side in sides)
    return _svg("cube", left + width + dx + 250, lower, words, parts)


def _drawn(length: float, longest: float) -> float:
    """Return the drawn length of an edge; short edges are longer than their share, to be seen."""
    share = length / longest if longest else 1.0
    return 8 + 192 * max(share, 0.3 * log10(1 + 9 * share))


def _face(points: list[tuple[float, float]], number: int) -> str:
    """A side of the box with these corners; `number` is its index in `_SIDES`."""
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    fill = f'fill="{_COLORS["data"]}" fill-opacity="{_OPACITIES[number]}"'
    return f'<polygon class="{_SIDES[number]}" {fill} points="{text}"/>'


def _label(x: float, y: float, anchor: str, text: str, *, pad: bool = False) -> str:
    """A label of two lines, which are divided by a colon in its text."""
    first, _, rest = text.partition(": ")
    left = x + 6 if pad else x
    second = f'<tspan class="soft" x="{left:.1f}" dy="1.25em">{_text(rest)}</tspan>'
    lift = 0 if anchor == "middle" else -7
    return (
        f'<text x="{left:.1f}" y="{y + lift:.1f}" text-anchor="{anchor}">{_text(first)}{second}'
        "</text>"
    )


def ribbon(stretches: Sequence[Stretch], size: int) -> str:
    """Draw the bytes of a file from left to right, to scale; a small part is a line."""
    parts = []
    few = len(stretches) <= _MOST_TITLES
    for stretch in stretches:
        x = stretch.start / size * _WIDE
        width = max(1.0, stretch.nbytes / size * _WIDE)
        x = min(x, _WIDE - width)
        title = f"{stretch.name}: {stretch.nbytes} bytes from byte {stretch.start}"
        inside = f"<title>{_text(title)}</title>" if few else ""
        fill = f'fill="{_COLORS.get(stretch.kind, _OTHER)}" ' if few else ""
        parts.append(
            f'<rect class="{stretch.kind}" {fill}x="{x:.2f}" y="4" width="{width:.2f}" '
            f'height="40">{inside}</rect>'
        )
    parts.append(_small(0, "start", "byte 0"))
    parts.append(_small(_WIDE, "end", f"{size:,}"))
    return _svg("ribbon", _WIDE, 64, "the bytes of the file, to scale; listed below", parts)


def _small(x: float, anchor: str, text: str) -> str:
    """A small text below the ribbon."""
    return f'<text class="soft" x="{x}" y="60" text-anchor="{anchor}">{_text(text)}</text>'


def line(values: Any, words_of: Callable[[float], str] | None = None) -> str:
    """Draw a line through values; a column that has many shows their range. Empty without any.

    `words_of` writes the least and the largest value; else they are written as numbers.
    """
    words_of = words_of or number_text
    low, high = envelope(values, _WIDE // 2)
    finite = np.isfinite(low)
    if not finite.any():
        return ""
    bottom, top = float(low[finite].min()), float(high[finite].max())
    span = top / 2 - bottom / 2

    def y_of(value: float) -> float:
        share = (value / 2 - bottom / 2) / span if span > 0 else 0.5
        return 130 - 120 * share

    step = _WIDE / max(1, len(low) - 1)
    parts = []
    edges = np.flatnonzero(np.diff(np.concatenate([[False], finite, [False]]).astype(np.int8)))
    for first, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        columns = range(first, stop)
        upper = [f"{at * step:.1f},{y_of(float(high[at])):.1f}" for at in columns]
        lower = [f"{at * step:.1f},{y_of(float(low[at])):.1f}" for at in reversed(columns)]
        parts.append(f'<polygon class="line" points="{" ".join([*upper, *lower])}"/>')
    low_text, high_text = words_of(bottom), words_of(top)
    parts.append(f'<text class="soft" x="2" y="12">{_text(high_text)}</text>')
    parts.append(f'<text class="soft" x="2" y="146">{_text(low_text)}</text>')
    return _svg("plot", _WIDE, 150, f"a line between {low_text} and {high_text}", parts)


_SPARK = (120, 26)  # width and height of a small line, in pixels


def spark(values: Any) -> str:
    """Draw a small line through values; a column that has many shows their range.

    Empty if no value is finite.
    """
    wide, high = _SPARK
    low, top = envelope(values, wide // 2)
    columns = np.flatnonzero(np.isfinite(low))
    if not columns.size:
        return ""
    least, most = float(low[columns].min()), float(top[columns].max())
    span = most / 2 - least / 2

    def y_of(value: float) -> float:
        share = (value / 2 - least / 2) / span if span > 0 else 0.5
        return high - 2 - (high - 4) * share

    step = wide / max(1, len(low) - 1)
    above = [f"{at * step:.0f},{y_of(float(top[at])):.0f}" for at in columns.tolist()]
    below = [f"{at * step:.0f},{y_of(float(low[at])):.0f}" for at in columns[::-1].tolist()]
    points = " ".join([*above, *below] if above != below[::-1] else above)
    words = f"a line between {number_text(least)} and {number_text(most)}"
    return (
        f'<svg class="spark" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img" '
        f'aria-label="{_text(words)}"><polygon class="line" points="{points}"/></svg>'
    )


def _svg(kind: str, width: float, height: float, words: str, parts: list[str]) -> str:
    """A drawing of some parts; `words` stand for it where it is not seen."""
    head = f'<svg class="{kind}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-size="13" '
    return f'{head}aria-label="{_text(words)}">\n' + "\n".join(parts) + "\n</svg>\n"


def _text(text: str) -> str:
    """A text as it may stand in a drawing."""
    return escape(quoted(text))
