"""Bars as SVG, written by hand: no library for drawing is needed, and the text stays text.

A picture is a dark card, as that of the start page, so that it looks the same on light and on dark
pages. It is narrow, and a name stands above its bar, so that nothing is cut off and a telephone
shows it in a size that can be read.
"""

from __future__ import annotations

from html import escape
from textwrap import wrap
from typing import NamedTuple

WIDTH, MARGIN = 560, 22
LINE, ROW, GAP, BAR = 18, 36, 30, 10  # heights: of a line of text, a row, between groups, a bar
LETTER = 0.56  # the widest mean of a letter, of the size of the text
PALE, INK = "#9aa7b6", "#e1e6ec"
# kind of a row -> colour of its bar, and what the legend calls it
KINDS = {
    "ours": ("#35b779", "raconvert"),
    "other": ("#4f8fc0", "others"),
    "floor": ("#5a6675", "does less than the whole work"),
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


def bars(title: str, groups: list[Group], foot: list[str]) -> str:
    """Draw groups of ratios, each with a scale of its own that begins at 0."""
    parts: list[str] = []
    y = _lines(parts, title, MARGIN + 14, 16, INK, bold=True)
    y = _legend(parts, {row.kind for group in groups for row in group.rows}, y)
    shared = {group.measured for group in groups}
    if len(shared) == 1:  # said once
        y = _lines(parts, *shared, y, 12, PALE)
    for group in groups:
        y = _group(parts, group if len(shared) > 1 else group._replace(measured=""), y + GAP)
    y += GAP
    for line in foot:
        y = _lines(parts, line, y, 12, PALE)
    y += MARGIN - LINE
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" '
        f'height="{y}" font-family="DejaVu Sans, Verdana, sans-serif" role="img">'
    )
    card = f'<rect width="{WIDTH}" height="{y}" rx="14" fill="#10151c"/>'
    return "\n".join([opening, f"<title>{escape(title)}</title>", card, *parts, "</svg>\n"])


def _group(parts: list[str], group: Group, y: int) -> int:
    y = _lines(parts, group.title, y, 14, INK, bold=True)
    if group.measured:
        y = _lines(parts, group.measured, y, 12, PALE)
    scale = (WIDTH - 2 * MARGIN) / max(row.high for row in group.rows)
    for row in group.rows:
        y = _bar(parts, row, y, scale)
    return y - 16


def _bar(parts: list[str], row: Row, y: int, scale: float) -> int:
    value = f"{ratio(row.middle)} ×"
    if row.took:
        value = f"{row.took} · {value}"
    room = WIDTH - 2 * MARGIN - _width(value, 13) - 12
    end = WIDTH - MARGIN
    parts.append(_text(end, y, value, 13, INK, anchor="end"))
    y = _lines(parts, row.name, y, 13, INK, room=room) - LINE
    colour, _ = KINDS[row.kind]
    # A bar that would not be seen is a stroke.
    long, top = max(row.middle * scale, 1), y + 6
    parts.append(
        f'<rect x="{MARGIN}" y="{top}" width="{long:.1f}" height="{BAR}" rx="2" fill="{colour}"/>'
    )
    parts.append(
        f'<path d="M{MARGIN + scale:.1f} {top - 3}v{BAR + 6}" stroke="{INK}" opacity=".7"/>'
    )
    if row.high > row.low:
        low, high = (MARGIN + each * scale for each in (row.low, row.high))
        parts.append(
            f'<path d="M{low:.1f} {top + BAR // 2}H{high:.1f}" stroke="#ffffff" '
            'stroke-width="1.5" opacity=".8"/>'
        )
    return y + ROW


def _legend(parts: list[str], kinds: set[str], y: int) -> int:
    x = MARGIN
    for kind, (colour, name) in KINDS.items():
        if kind in kinds:
            parts.append(
                f'<rect x="{x}" y="{y - 9}" width="10" height="{BAR}" rx="2" fill="{colour}"/>'
            )
            parts.append(_text(x + 16, y, name, 12, PALE))
            x += 16 + _width(name, 12) + 14
    return _lines(
        parts,
        "A white line along a bar: the least to the most of the rounds; across it: 1.",
        y + LINE,
        12,
        PALE,
    )


def _lines(
    parts: list[str], text: str, y: int, size: int, colour: str, *, bold: bool = False,
    room: int = WIDTH - 2 * MARGIN,
) -> int:  # fmt: skip
    """Draw a text in as many lines as it takes; return where the next one begins."""
    for line in wrap(text, int(room / (size * LETTER * (1.1 if bold else 1)))) or [""]:
        parts.append(_text(MARGIN, y, line, size, colour, bold=bold))
        y += LINE
    return y


def _text(
    x: int, y: int, text: str, size: int, colour: str, *, anchor: str = "start", bold: bool = False
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"{weight}>'
        f"{escape(text)}</text>"
    )


def _width(text: str, size: int) -> int:
    return int(len(text) * size * LETTER)


def ratio(value: float) -> str:
    """A ratio with three digits that count."""
    if value < 0.005:
        return f"{value:.1g}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
