"""Bars as SVG, written by hand: no library for drawing is needed, and the text stays text.

A picture is a card, light or dark as the page around it is (`prefers-color-scheme`). It is narrow,
and a name stands above its bar, so that nothing is cut off and a telephone shows it in a size that
can be read. All bars of a picture have one scale: linear from 0, or logarithmic where a ratio is
large, and then a bar leads from 1 to its ratio.
"""

from __future__ import annotations

from html import escape
from math import floor, log10
from textwrap import wrap
from typing import NamedTuple

WIDTH, MARGIN = 560, 22
LINE, ROW, GAP, BAR = 18, 36, 30, 10  # heights: of a line of text, a row, between groups, a bar
LETTER = 0.56  # the widest mean of a letter, of the size of the text
LONGEST = 20  # the largest ratio of a linear scale: beside more, what is near 1 cannot be seen
MOST_TICKS = 9
# kind of a row -> its colour on light and on dark, and what the legend calls it
KINDS = {
    "ours": ("#1f9d63", "#35b779", "raconvert"),
    "other": ("#3576ad", "#4f8fc0", "others"),
    "floor": ("#98a4b3", "#5a6675", "does less than the whole work, or other work"),
}
# class -> what it sets, its value on light and on dark
INK = {
    "card": ("fill", "#ffffff", "#10151c"),
    "ink": ("fill", "#17202b", "#e1e6ec"),
    "pale": ("fill", "#566374", "#9aa7b6"),
    "one": ("stroke", "#17202b", "#e1e6ec"),
    "grid": ("stroke", "#d5dbe3", "#2a3441"),
    "range": ("stroke", "#000000", "#ffffff"),
    **{kind: ("fill", light, dark) for kind, (light, dark, _) in KINDS.items()},
}


class Row(NamedTuple):
    """A contender: its ratio to the base in the rounds, what it took, and the kind of its bar."""

    name: str
    low: float
    middle: float
    high: float
    took: str
    kind: str


class Group(NamedTuple):
    """Rows with one base, and what the bars stand for."""

    title: str
    measured: str
    rows: list[Row]


class Scale:
    """Where a ratio lies on the width of a picture."""

    def __init__(self, found: list[float]) -> None:
        """Begin at 0, or at a power of ten below all where a ratio is large."""
        least = min(one for one in found if one > 0)
        most = max(*found, 1)
        self.logarithmic = most > LONGEST
        self.low = min(floor(log10(least)), 0) if self.logarithmic else 0
        self.high = max(log10(most), self.low + 1) if self.logarithmic else most

    def __call__(self, value: float) -> float:
        """The place of a ratio, in pixels."""
        at = log10(max(value, 10**self.low)) if self.logarithmic else value
        return MARGIN + (at - self.low) / (self.high - self.low) * (WIDTH - 2 * MARGIN)

    def ticks(self) -> list[float]:
        """The ratios at which lines are drawn."""
        if self.logarithmic:
            return [10.0**power for power in range(self.low, floor(self.high) + 1)]
        step = next(one for one in (0.5, 1, 2, 5) if self.high / one < MOST_TICKS)
        return [number * step for number in range(floor(self.high / step) + 1)]

    def told(self) -> str:
        """How it is to be read, in a sentence."""
        if self.logarithmic:
            return "One scale for all bars, by powers of ten; a bar leads from 1 to its ratio."
        return "One scale for all bars, from 0."


def bars(title: str, groups: list[Group], foot: list[str]) -> str:
    """Draw groups of ratios, all on one scale."""
    parts: list[str] = []
    scale = Scale([each for group in groups for row in group.rows for each in (row.low, row.high)])
    y = _lines(parts, title, MARGIN + 14, 16, "ink", bold=True)
    y = _legend(parts, {row.kind for group in groups for row in group.rows}, scale, y)
    shared = {group.measured for group in groups}
    if len(shared) == 1:  # said once
        y = _lines(parts, *shared, y, 12, "pale")
    for group in groups:
        text = group.measured if len(shared) > 1 else ""
        y = _group(parts, group._replace(measured=text), scale, y + GAP)
    y += GAP
    for line in foot:
        y = _lines(parts, line, y, 12, "pale")
    y += MARGIN - LINE
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" '
        f'height="{y}" font-family="DejaVu Sans, Verdana, sans-serif" role="img">'
    )
    card = f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{y - 1}" rx="14" class="card grid"/>'
    head = [opening, f"<title>{escape(title)}</title>", _style(), card]
    return "\n".join([*head, *parts, "</svg>\n"])


def _style() -> str:
    """The colours, of light pages and of dark ones."""
    light = "".join(f".{name}{{{what}:{one}}}" for name, (what, one, _) in INK.items())
    dark = "".join(f".{name}{{{what}:{other}}}" for name, (what, _, other) in INK.items())
    light += f".name{{paint-order:stroke;stroke-width:4px;stroke:{INK['card'][1]}}}"
    dark += f".name{{stroke:{INK['card'][2]}}}"
    return f"<style>{light}@media (prefers-color-scheme:dark){{{dark}}}</style>"


def _group(parts: list[str], group: Group, scale: Scale, y: int) -> int:
    y = _lines(parts, group.title, y, 14, "ink", bold=True)
    if group.measured:
        y = _lines(parts, group.measured, y, 12, "pale")
    top = y - 4
    here = len(parts)
    y += LINE
    for row in group.rows:
        y = _bar(parts, row, y, scale)
    bottom = y - 22
    lines = []
    for tick in scale.ticks():
        x = scale(tick)
        style = "one" if tick == 1 else "grid"
        lines.append(f'<path d="M{x:.1f} {top + 6}V{bottom}" class="{style}" opacity=".6"/>')
        anchor = "start" if x < MARGIN + 20 else "end" if x > WIDTH - MARGIN - 20 else "middle"
        lines.append(_text(round(x), top + 2, f"{tick:g} ×", 11, "pale", anchor=anchor))
    parts[here:here] = lines  # behind the bars
    return y - 16


def _bar(parts: list[str], row: Row, y: int, scale: Scale) -> int:
    value = f"{ratio(row.middle)} ×"
    if row.took:
        value = f"{row.took} · {value}"
    room = WIDTH - 2 * MARGIN - _width(value, 13) - 12
    end = WIDTH - MARGIN
    parts.append(_text(end, y, value, 13, "ink name", anchor="end"))
    y = _lines(parts, row.name, y, 13, "ink name", room=room) - LINE
    start, stop = sorted((scale(1 if scale.logarithmic else 0), scale(row.middle)))
    # A bar that would not be seen is a stroke.
    long, top = max(stop - start, 2), y + 6
    parts.append(
        f'<rect x="{start:.1f}" y="{top}" width="{long:.1f}" height="{BAR}" rx="2" '
        f'class="{row.kind}"/>'
    )
    if row.high > row.low:
        parts.append(
            f'<path d="M{scale(row.low):.1f} {top + BAR // 2}H{scale(row.high):.1f}" '
            'class="range" stroke-width="1.5" opacity=".8"/>'
        )
    return y + ROW


def _legend(parts: list[str], kinds: set[str], scale: Scale, y: int) -> int:
    x = MARGIN
    for kind, (*_, name) in KINDS.items():
        if kind in kinds:
            parts.append(
                f'<rect x="{x}" y="{y - 9}" width="10" height="{BAR}" rx="2" class="{kind}"/>'
            )
            parts.append(_text(x + 16, y, name, 12, "pale"))
            x += 16 + _width(name, 12) + 14
    text = f"{scale.told()} A thin line along a bar: the least to the most of the rounds."
    return _lines(parts, text, y + LINE, 12, "pale")


def _lines(
    parts: list[str], text: str, y: int, size: int, ink: str, *, bold: bool = False,
    room: int = WIDTH - 2 * MARGIN,
) -> int:  # fmt: skip
    """Draw a text in as many lines as it takes; return where the next one begins."""
    for line in wrap(text, int(room / (size * LETTER * (1.1 if bold else 1)))) or [""]:
        parts.append(_text(MARGIN, y, line, size, ink, bold=bold))
        y += LINE
    return y


def _text(
    x: int, y: int, text: str, size: int, ink: str, *, anchor: str = "start", bold: bool = False
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" class="{ink}" text-anchor="{anchor}"{weight}>'
        f"{escape(text)}</text>"
    )


def _width(text: str, size: int) -> int:
    return int(len(text) * size * LETTER)


def ratio(value: float) -> str:
    """A ratio with two or three digits that count."""
    if value < 0.1:
        return f"{value:.2g}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
