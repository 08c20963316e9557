"""Show 32 files in the six ways in which people see them, in pictures for somebody to look at.

`python -m tests.looks FOLDER [NAME ...]` writes a picture for each file of `tests/looks/files.py`:
its page at 1280 pixels, dark, at 375 pixels (a phone), on paper, `peek` in a terminal of 80 × 24
characters, and the cell of a notebook. Needs Chromium.
"""

from __future__ import annotations

import html
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

import raconvert
from raconvert.errors import RaconvertError

from .. import needs
from ..browsing import chromium
from .files import FILES

WAYS = {  # name: (width of the window, color scheme, medium)
    "page": (1280, "light", "screen"),
    "dark": (1280, "dark", "screen"),
    "phone": (375, "light", "screen"),
    "paper": (794, "light", "print"),
}
TALL = 1700  # pixels of a page that are shown: two screens


def in_a_terminal(words: list[str], rows: int = 24, columns: int = 80) -> str:
    """Everything that a command prints where standard output is a terminal of that size."""
    import fcntl
    import struct
    import termios

    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    surroundings = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "raconvert", *words]
    with subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env=surroundings):
        os.close(child)
        text = b""
        while True:
            try:
                more = os.read(parent, 65536)
            except OSError:  # the end of a pseudo-terminal on Linux
                break
            text += more
    os.close(parent)
    return text.decode("utf-8", "replace").replace("\r\n", "\n")


def as_a_page(body: str) -> str:
    return f"<!doctype html><meta charset=utf-8><title>x</title>{body}"


def shown_terminal(path: Path) -> str:
    lines = in_a_terminal(["peek", str(path)]).split("\n")
    rows = "".join(
        f"<span style='color:{'#999' if n < len(lines) - 24 else '#000'}'>{html.escape(line)}\n</span>"
        for n, line in enumerate(lines)
    )
    return as_a_page(
        f"<pre style='font:14px/1.2 monospace;width:80ch;border:1px solid'>{rows}</pre>"
    )


def shown_notebook(path: Path) -> str:
    made: Any = raconvert.open(path)
    return as_a_page(made._repr_html_())


def pictures(path: Path, folder: Path, browser: Any) -> dict[str, Path]:
    """A picture for each way."""
    page = folder / f"{path.name}.html"
    command = [
        sys.executable,
        "-m",
        "raconvert",
        "info",
        str(path),
        "--html",
        "-o",
        str(page),
        "--overwrite",
    ]
    subprocess.run(command, check=False)
    pages = {way: page for way in WAYS if page.exists()}
    for way, make in (("terminal", shown_terminal), ("notebook", shown_notebook)):
        pages[way] = folder / f"{path.name}.{way}.html"
        try:
            pages[way].write_text(make(path), encoding="utf-8")
        except RaconvertError as error:
            pages[way].write_text(as_a_page(html.escape(str(error))), encoding="utf-8")
    shots = {}
    for way, source in pages.items():
        width, scheme, medium = WAYS.get(way, (800, "light", "screen"))
        tab = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
        tab.emulate_media(media=medium)
        tab.goto(source.as_uri())
        shots[way] = folder / f"{path.name}.{way}.png"
        tall = min(TALL, tab.evaluate("document.documentElement.scrollHeight"))
        clip = {"x": 0, "y": 0, "width": width, "height": tall}
        tab.screenshot(path=str(shots[way]), full_page=True, clip=clip)
        tab.close()
    return shots


def sheet(shots: dict[str, Path], target: Path) -> None:
    """All ways of a file side by side, at half of their size, cut at `TALL`."""
    shown = []
    for way, shot in shots.items():
        image = Image.open(shot).convert("RGB")
        shown.append((way, image.resize((image.width // 2, image.height // 2))))
    width = sum(image.width + 8 for _, image in shown)
    whole = Image.new("RGB", (width, 20 + max(image.height for _, image in shown)), "#888")
    left = 0
    for way, image in shown:
        ImageDraw.Draw(whole).text((left + 4, 4), way, fill="#fff")
        whole.paste(image, (left, 20))
        left += image.width + 8
    whole.save(target)


def main(words: list[str]) -> int:
    path_of_chromium = needs.program("chromium")
    if not words or path_of_chromium is None:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    folder = Path(words[0]).resolve()
    files, out = folder / "files", folder / "shots"
    files.mkdir(parents=True, exist_ok=True)
    out.mkdir(exist_ok=True)
    with chromium(path_of_chromium) as browser:
        for name in words[1:] or FILES:
            path = FILES[name](files)
            sheet(pictures(path, out, browser), folder / f"{name}.png")
            sys.stdout.write(f"{folder / name}.png\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
