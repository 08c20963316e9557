"""Write a folder of images: 2,000 digits of 28 x 28 pixels as if by hand, one PNG file each.

    python docs/examples/make_digits.py [FOLDER]

Each digit is drawn with a round pen along a few lines, bent a little differently each time; the
same ones on every machine. The files are named 0.png to 1999.png; digit N is of class N % 10.
"""

from __future__ import annotations

import random
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from PIL import Image

COUNT = 2000
SIZE = 28
PEN = 1.3  # half the width of a line, in pixels
# The points that the pen goes through, in a square of 0 to 6, down and to the right.
STROKES = [
    [[(3, 0), (1, 1), (0, 3), (1, 5), (3, 6), (5, 5), (6, 3), (5, 1), (3, 0)]],
    [[(2, 1), (4, 0), (4, 6)]],
    [[(0, 1), (2, 0), (4, 0), (5, 2), (3, 4), (0, 6), (5, 6)]],
    [[(0, 0), (4, 0), (5, 1), (4, 3), (2, 3)], [(4, 3), (5, 5), (3, 6), (0, 6)]],
    [[(3, 0), (0, 4), (6, 4)], [(4, 2), (4, 6)]],
    [[(5, 0), (1, 0), (1, 3), (4, 3), (5, 4), (4, 6), (0, 6)]],
    [[(5, 0), (2, 1), (1, 4), (2, 6), (4, 6), (5, 4), (4, 3), (1, 4)]],
    [[(0, 0), (5, 0), (2, 6)], [(1, 3), (5, 3)]],
    [[(3, 0), (1, 1), (2, 3), (5, 5), (3, 6), (1, 5), (4, 3), (5, 1), (3, 0)]],
    [[(5, 2), (3, 3), (1, 2), (2, 0), (4, 0), (5, 2), (4, 6)]],
]


def drawn(digit: int, chance: random.Random) -> np.ndarray:
    """Return one digit: uint8 of shape (SIZE, SIZE), rows first, 255 where the pen was."""
    width, height, slant = chance.uniform(2, 3), chance.uniform(3, 3.5), chance.uniform(-0.5, 0.5)
    down, across = np.mgrid[0:SIZE, 0:SIZE] + 0.5
    nearest = np.full((SIZE, SIZE), np.inf)  # squared distance of each pixel to a line
    for stroke in STROKES[digit]:
        points = []
        for x, y in stroke:
            right, below = (place - 3 + chance.uniform(-0.3, 0.3) for place in (x, y))
            points.append((SIZE / 2 + width * right - slant * below, SIZE / 2 + height * below))
        for (x, y), (to_x, to_y) in pairwise(points):
            dx, dy = to_x - x, to_y - y
            along = ((across - x) * dx + (down - y) * dy) / (dx * dx + dy * dy + 1e-9)
            along = np.clip(along, 0, 1)
            distance = (across - x - along * dx) ** 2 + (down - y - along * dy) ** 2
            nearest = np.minimum(nearest, distance)
    ink = np.clip(PEN + 0.5 - np.sqrt(nearest), 0, 1)
    return np.rint(ink * 255).astype(np.uint8)


def main(folder: Path) -> None:
    """Write the digits in their order."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(7)
    for number in range(COUNT):
        Image.fromarray(drawn(number % 10, chance)).save(folder / f"{number}.png")
    print(f"wrote {COUNT} files to {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "mnist"))
