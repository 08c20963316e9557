"""Write a folder of real images: 1,797 handwritten digits of 8 x 8 pixels, one PNG file each.

    python docs/examples/make_digits.py [FOLDER]

The digits come with scikit-learn; nothing is downloaded. Their values 0 to 16 are multiplied by 15,
so that they become 0 to 240 exactly. The files are named 0.png to 1796.png and written by Pillow.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image
from sklearn.datasets import load_digits

SCALE = 15


def main(folder: Path) -> None:
    """Write the digits in their order."""
    folder.mkdir(parents=True, exist_ok=True)
    images = (load_digits().images * SCALE).astype("uint8")
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{number}.png")
    print(f"wrote {len(images)} files to {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "mnist"))
