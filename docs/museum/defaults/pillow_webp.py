"""WebP is lossy unless one asks.

library: Pillow
link: https://github.com/python-pillow/Pillow/blob/c2ddcbfde938a779f0537c05343ade76daaf025b/docs/handbook/image-file-formats.rst | "Defaults to 80. Sets the quality level for lossy compression."
"""

import numpy as np
from PIL import Image

given = np.array([[[255, 0, 0], [0, 0, 255]]], np.uint8)
Image.fromarray(given).save("x.webp")
back = np.asarray(Image.open("x.webp"))

# The safe way: ask for lossless compression
Image.fromarray(given).save("safe.webp", lossless=True)
safe = np.asarray(Image.open("safe.webp"))

# raconvert
import raconvert

report = raconvert.write("ours.webp", given)
ours = raconvert.read("ours.webp")
