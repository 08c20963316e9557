"""Bars as SVG, written by hand: no library for drawing is needed, and the text stays text."""

from __future__ import annotations

from html import escape

LABEL, WIDTH, VALUE = 250, 360, 70  # pixels: names, bars, values
HEAD, ROW, GAP = 24, 22, 10  # of a title, a row, and between groups
STYLE = """
text { font: 13px sans-serif; fill: #1f2328 } .title { font-weight: bold }
.ours { fill: #0969da } .other { fill: #8c959f } line { stroke: #1f2328 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .ours { fill: #4493f8 } .other { fill: #6e7681 } line { stroke: #e6edf3 }
}"""

Row = tuple[str, float, float, float]  # name; least, middle and largest ratio


def bars(title: str, groups: list[tuple[str, list[Row]]]) -> str:
    """Draw groups of ratios, each with a title and a scale of its own; shorter is faster."""
    parts: list[str] = []
    y = 4
    for head, rows in groups:
        parts.append(f'<text class="title" x="4" y="{y + 16}">{escape(head)}</text>')
        y += HEAD
        most = max(high for _, _, _, high in rows)
        for row in rows:
            parts += _bar(row, y, WIDTH / most)
            y += ROW
        y += GAP
    size = f"{LABEL + WIDTH + VALUE} {y}"
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img">'
    told = f"<title>{escape(title)}</title>\n<style>{STYLE}</style>"
    return "\n".join([opening, told, *parts, "</svg>\n"])


def _bar(row: Row, y: int, scale: float) -> list[str]:
    name, low, middle, high = row
    kind = "ours" if "raconvert" in name or name.startswith(("migrate", "convert")) else "other"
    center = y + ROW // 2
    return [
        f'<text x="{LABEL - 6}" y="{center + 5}" text-anchor="end">{escape(name)}</text>',
        f'<rect class="{kind}" x="{LABEL}" y="{y + 3}" width="{middle * scale:.1f}" height="16"/>',
        f'<line x1="{LABEL + low * scale:.1f}" x2="{LABEL + high * scale:.1f}" '
        f'y1="{center}" y2="{center}"/>',
        f'<text x="{LABEL + WIDTH + 6}" y="{center + 5}">{middle:.2f}</text>',
    ]
