"""Draw the pictures of the tutorials and of the start page, from what the pages themselves make.

    python -m docs.pictures [NAME ...]

Each page is run in a folder of its own; its files are read with raconvert, and drawn. Needs what
the pages need: Octave, BART, SciDB-Py, and for the archive a Chromium.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from PIL import Image, ImageDraw, ImageFont

import raconvert
from docs.pages import ROOT, programs, steps
from docs.pictures import terminal
from docs.pictures.start import start

HERE = ROOT / "docs" / "pictures"
MOST = 40_000  # bytes of a picture, as tests/test_docs.py has it
DARK, INK, PALE = (16, 21, 28), (225, 230, 236), (110, 122, 136)
# From low to high: readable without colour, too.
COLOURS = np.array(
    [(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], "float64"
)


def coloured(values: np.ndarray, low: float, high: float) -> Image.Image:
    """Return a matrix as an image, from dark violet to yellow."""
    place = np.clip((values - low) / (high - low), 0, 1) * (len(COLOURS) - 1)
    below = np.minimum(place.astype(int), len(COLOURS) - 2)
    part = (place - below)[..., None]
    return Image.fromarray(
        np.rint(COLOURS[below] * (1 - part) + COLOURS[below + 1] * part).astype("uint8")
    )


def grey(values: np.ndarray, high: float) -> Image.Image:
    """Return a matrix as an image from black to white."""
    return Image.fromarray(np.rint(np.clip(values / high, 0, 1) * 255).astype("uint8"))


def rows(*images: list[Image.Image], width: int, gap: int = 8) -> Image.Image:
    """Return rows of images, each row as wide as the picture."""
    placed, top = [], gap
    for row in images:
        each = (width - gap * (len(row) + 1)) // len(row)
        height = each * row[0].height // row[0].width
        how = Image.Resampling.NEAREST if each >= 2 * row[0].width else Image.Resampling.LANCZOS
        placed += [
            (image.resize((each, height), how), (gap + n * (each + gap), top))
            for n, image in enumerate(row)
        ]
        top += height + gap
    picture = Image.new("RGB", (width, top), DARK)
    for image, place in placed:
        picture.paste(image, place)
    return picture


def machine_learning() -> Image.Image:
    """Four images of each class, and the mean of the class below them."""
    images = raconvert.read("digits-ra/train/images.ra")
    labels = raconvert.read("digits-ra/train/labels.ra")
    some = [[grey(images[labels == kind][n], 255) for kind in range(10)] for n in range(4)]
    means = [coloured(mean, 0, 255) for mean in raconvert.read("means.ra")]
    return rows(*some, means, width=720)


def scans() -> Image.Image:
    """Slices of the head, the coils, planes of the stack."""
    head = raconvert.read("head.nrrd", index_order="F")
    head = head if head.shape == (60, 72, 40) else head.transpose()
    coils = np.abs(raconvert.read("coils.ra").squeeze())
    cells = raconvert.read("cells.ra")
    return rows(
        [grey(head[:, ::-1, k].T, 900) for k in range(8, 33, 4)],
        [grey(np.sqrt(coils[..., n].T), np.sqrt(coils.max())) for n in range(coils.shape[-1])],
        [coloured(plane, 0, 250) for plane in cells[1::2]],
        width=600,
    )


def matlab_and_julia() -> Image.Image:
    """The first channel as a line, and marks at the spikes."""
    trace = raconvert.read("session/trace.ra")[0]
    spikes = raconvert.read("session/spikes.ra").ravel().astype(int) - 1
    large = Image.new("RGB", (1440, 480), DARK)
    pen = ImageDraw.Draw(large)
    points = [(40 + 1360 * n / 999, 250 - 150 * float(v)) for n, v in enumerate(trace)]
    pen.line([(40, 250), (1400, 250)], fill=(60, 70, 82), width=2)
    pen.line(points, fill=(94, 201, 98), width=3)
    for n in spikes:
        x, y = points[n]
        pen.line([(x, 30), (x, 60)], fill=(253, 231, 37), width=3)
        pen.ellipse([x - 6, y - 6, x + 6, y + 6], outline=(253, 231, 37), width=3)
    return large.resize((720, 240), Image.Resampling.LANCZOS)


def gempack() -> Image.Image:
    """The matrix of each commodity, with the names of its sets."""
    with raconvert.open("base.har", "TRAD") as trade:
        values = trade[...]
        goods, regions, _ = (axis.labels for axis in trade.axes)
    cell, left, top = 27, 66, 48
    picture = Image.new("RGB", (left + 4 * (5 * cell + 26), top + 5 * cell + 16), DARK)
    pen = ImageDraw.Draw(picture)
    font, small = ImageFont.load_default(15), ImageFont.load_default(12)
    for n, region in enumerate(regions):
        pen.text((left - 8, top + n * cell + 13), region, INK, small, anchor="rm")
    for k, good in enumerate(goods):
        x = left + k * (5 * cell + 26)
        pen.text((x, 10), good, INK, font)
        for n, region in enumerate(regions):
            pen.text((x + n * cell + 13, 40), region[:2], PALE, small, anchor="mm")
        matrix = coloured(np.sqrt(values[k]), 0, np.sqrt(values.max()))
        picture.paste(matrix.resize((5 * cell, 5 * cell), Image.Resampling.NEAREST), (x, top))
    return picture


def scidb_records() -> Image.Image:
    """The grid of temperatures; nulls are of no colour."""
    bundle = raconvert.open("grid/")
    temp, null = bundle["temp"][...], bundle["temp.null"][...]
    there = null == 255
    map_ = np.asarray(coloured(temp, temp[there].min(), temp[there].max())).copy()
    map_[~there] = (58, 66, 76)
    return rows([Image.fromarray(map_)], width=576)


def archive() -> Image.Image:
    """The certificate in a browser."""
    return browsed("paper.html", 740)


def info_page(*words: str) -> Image.Image:
    """The page about a file in a browser."""
    subprocess.run(["raconvert", "mnist/*.png", "-o", "mnist.ra"], check=True)
    subprocess.run(["raconvert", "info", "mnist.ra", "--html", "-o", "mnist.html"], check=True)
    return browsed("mnist.html", 880, *words).resize((600, 587), Image.Resampling.LANCZOS)


def info_page_dark() -> Image.Image:
    """The same page for those who work in the dark."""
    return info_page("--blink-settings=preferredColorScheme=0")


def walk_peek(*, dark: bool = False) -> Image.Image:
    """A terminal with a contact sheet of digits."""
    subprocess.run(["raconvert", "mnist/*.png", "-o", "mnist.ra"], check=True)
    words = ["peek", "mnist.ra", "--graphics", "blocks", "--color", "always"]
    printed = subprocess.run(
        ["raconvert", *words],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "88", "LINES": "30"},
    ).stdout
    page = terminal.page(printed, "raconvert peek mnist.ra", dark=dark)
    Path("peek.html").write_text(page, encoding="utf-8")
    return browsed("peek.html", 32 + 16 * (printed.count("\n") + 1))


def walk_peek_dark() -> Image.Image:
    """The same terminal in dark."""
    return walk_peek(dark=True)


def walk_view(*words: str) -> Image.Image:
    """A container in the local viewer."""
    raconvert.convert("mnist/*.png", "mnist.ra")
    rng = np.random.default_rng(7)
    down, right = np.mgrid[-1:1:60j, -1.5:1.5:90j]
    drift = np.cumsum(rng.normal(size=400))
    waves = [np.cos(8 * np.hypot(down, right) - n / 4) for n in range(40)]
    with h5py.File("lab.h5", "w") as file:
        file["drift"], file["raw/waves"] = drift, np.array(waves, "f4")
        file["raw/digits"] = raconvert.read("mnist.ra")[:200]
    command = ["raconvert", "view", "lab.h5#raw/waves", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        assert server.stdout is not None
        lines = (line.decode().strip() for line in server.stdout)
        address = next(line for line in lines if line.startswith("http"))
        picture = browsed(address, 640, "--virtual-time-budget=9000", *words)
        server.send_signal(signal.SIGINT)
    return picture


def walk_view_dark() -> Image.Image:
    """The same in dark."""
    return walk_view("--blink-settings=preferredColorScheme=0")


def browsed(path: str, height: int, *more: str) -> Image.Image:
    """The top of a page in a browser, with further words for it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    assert browser, "no Chromium on this machine: name this picture not, or install it"
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *more]
    shot = [f"--window-size=900,{height + 20}", "--screenshot=shot.png"]
    address = path if path.startswith("http") else Path(path).resolve().as_uri()
    subprocess.run([browser, *words, *shot, address], check=True, capture_output=True)
    with Image.open("shot.png") as image:
        top = image.convert("RGB").crop((0, 0, 900, height))
        return top.resize((720, height * 4 // 5), Image.Resampling.LANCZOS)


def main(wanted: list[str]) -> None:
    """Run the pages, draw, and write the pictures beside this file."""
    drawn = [machine_learning, scans, matlab_and_julia, gempack, scidb_records, archive]
    drawn += [info_page, info_page_dark, walk_peek, walk_peek_dark]
    drawn += [walk_view, walk_view_dark]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.update(programs(folder))
        maker = str(ROOT / "docs" / "examples" / "make_digits.py")
        subprocess.run([sys.executable, maker], cwd=folder, check=True)
        for draw in drawn:
            stem = draw.__name__.replace("_", "-")
            if wanted and stem not in wanted:
                continue
            space = folder / stem
            space.mkdir()
            (space / "mnist").symlink_to(folder / "mnist")
            os.chdir(space)
            page = ROOT / "docs" / "tutorials" / f"{stem}.md"
            told = page.read_text(encoding="utf-8") if page.is_file() else ""
            for file, command, text in steps(told):
                if file:
                    Path(file).write_text(text, encoding="utf-8")
                else:
                    subprocess.run(["bash", "-c", command], check=False, capture_output=True)
            picture, path = draw(), HERE / f"{stem}.png"
            for colours in (96, 64, 48):  # as many as the size of a picture allows
                few = picture.quantize(colours, kmeans=1, dither=Image.Dither.NONE)
                few.save(path, optimize=True)
                if path.stat().st_size < MOST:
                    break
            print(stem, (HERE / f"{stem}.png").stat().st_size, "bytes")
        if not wanted or "start" in wanted:
            (HERE / "start.svg").write_text(start(folder / "mnist"), encoding="utf-8")
        os.chdir(ROOT)


if __name__ == "__main__":
    main(sys.argv[1:])
