"""The picture of the start page: formats on the left, RA in the middle, formats on the right."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
from PIL import Image

import raconvert

LEFT = ["PNG · TIFF", "NIfTI · NRRD", "MAT · NPY", "HDF5 · Zarr", "HAR · SciDB"]
RIGHT = ["HDF5 · netCDF", "safetensors", "MAT · NPZ", "NIfTI · NRRD", "and back"]
HEADER = [
    ("rawarray", "magic"), ("0", "flags"), ("2", "type"), ("1", "bytes"), ("1568000", "size"),
    ("3", "axes"), ("28", ""), ("28", "dims"), ("2000", ""),
]  # fmt: skip
OUTCOMES = [
    ("#5ec962", "exact", "bit for bit, and nothing to say"),
    ("#fde725", "equivalent", "every value kept; one line says what changed in form"),
    ("#ff8a6b", "refused", "a loss needs your word; nothing is written without it"),
]
# colour on dark pages -> the one on light pages
LIGHT = {
    "#10151c": "#f6f8fa", "#18212c": "#ffffff", "#3b4a5c": "#c3ccd7", "#e1e6ec": "#17202b",
    "#8b98a8": "#566374", "#35b779": "#1f9d63", "#5ec962": "#1a7f37", "#fde725": "#7d6200",
    "#ff8a6b": "#b8391f",
}  # fmt: skip


def start(images: Path) -> str:
    """Return the picture as SVG, with some of the images in it."""
    stack = raconvert.read([images / f"{n}.png" for n in range(40)])
    sheet = stack.reshape(5, 8, 28, 28).swapaxes(1, 2).reshape(140, 224)
    strip = stack[:20].swapaxes(0, 1).reshape(28, 560)
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="18 14 924 412" '
        'font-family="DejaVu Sans, Verdana, sans-serif" fill="#e1e6ec">',
        _style(),
        '<rect x="18" y="14" width="924" height="412" rx="14" fill="#10151c"/>',
        _text(40, 44, "your files", "#8b98a8"),
        _text(480, 44, "RA: a header of numbers, then the data", "#8b98a8", "middle"),
        _text(920, 44, "the files you need", "#8b98a8", "end"),
        _image(sheet, 40, 60, 168, 105),
    ]
    for n, name in enumerate(LEFT):
        parts.append(_chip(40, 176 + n * 32, name))
        parts.append(_line(208, 189 + n * 32, 262, 180))
    for n, name in enumerate(RIGHT):
        parts.append(_chip(752, 96 + n * 42, name))
        parts.append(_line(698, 180, 752, 109 + n * 42))
    parts.append(_line(208, 112, 262, 180))
    parts.append(
        '<rect x="262" y="72" width="436" height="230" rx="10" fill="#18212c" stroke="#3b4a5c"/>'
    )
    parts += _header()
    parts.append(_image(strip, 278, 166, 404, 20))
    for n in range(1, 4):
        parts.append(_image(np.roll(strip, -140 * n, axis=1), 278, 166 + n * 22, 404, 20))
    parts.append(_text(480, 285, "read in five lines of any language", "#8b98a8", "middle"))
    for n, (colour, word, meaning) in enumerate(OUTCOMES):
        y = 362 + n * 25
        parts.append(f'<circle cx="268" cy="{y - 5}" r="6" fill="{colour}"/>')
        parts.append(_text(284, y, word, colour))
        parts.append(_text(400, y, meaning))
    parts.append(_text(60, 387, "every conversion is", "#8b98a8"))
    return "\n".join([*parts, "</svg>", ""])


def _style() -> str:
    """The colours of light pages, in the place of the dark ones that the attributes name."""
    rules = "".join(
        f'[{what}="{dark}"]{{{what}:{light}}}'
        for dark, light in LIGHT.items()
        for what in ("fill", "stroke")
    )
    return f"<style>@media (prefers-color-scheme:light){{{rules}}}</style>"


def _header() -> list[str]:
    parts, x = [], 278
    for value, meaning in HEADER:
        width = 74 if len(value) > 6 else 38
        parts.append(
            f'<rect x="{x}" y="98" width="{width - 3}" height="30" rx="3" fill="#31688e"/>'
        )
        parts.append(_text(x + (width - 3) / 2, 118, value, "#ffffff", "middle", 14))
        parts.append(_text(x + (width - 3) / 2, 146, meaning, "#8b98a8", "middle", 13))
        x += width
    return parts


def _text(
    x: float, y: float, words: str, colour: str = "#e1e6ec", anchor: str = "start", size: int = 18
) -> str:
    return (
        f'<text x="{x:g}" y="{y}" fill="{colour}" text-anchor="{anchor}" font-size="{size}">'
        f"{words}</text>"
    )


def _chip(x: int, y: int, words: str) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="168" height="26" rx="13" fill="#18212c" stroke="#3b4a5c"/>'
        + _text(x + 84, y + 19, words, anchor="middle", size=18)
    )


def _line(x: int, y: int, to_x: int, to_y: int) -> str:
    middle = (x + to_x) // 2
    way = f"M{x} {y} C{middle} {y} {middle} {to_y} {to_x} {to_y}"
    return f'<path d="{way}" fill="none" stroke="#35b779" stroke-width="1.5" opacity=".7"/>'


def _image(pixels: np.ndarray, x: int, y: int, width: int, height: int) -> str:
    file = io.BytesIO()
    Image.fromarray(pixels // 17).point(lambda v: v * 17).quantize(16).save(
        file, "PNG", optimize=True
    )
    data = base64.b64encode(file.getvalue()).decode()
    return (
        f'<image x="{x}" y="{y}" width="{width}" height="{height}" preserveAspectRatio="none" '
        f'href="data:image/png;base64,{data}"/>'
    )
