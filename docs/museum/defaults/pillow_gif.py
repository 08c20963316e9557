"""A GIF keeps 256 colours, and changes the others.

library: Pillow
link: https://github.com/python-pillow/Pillow/issues/6461 | Pillow #6461, "the GIF format can only save 256 colours per frame, and `quantize()` converts an image to have no more than 256 colors"
unsafe: none for colours in GIF; PNG keeps them
"""

import numpy as np
from PIL import Image

given = np.arange(768, dtype=np.uint16).reshape(16, 16, 3).astype(np.uint8)
given = np.concatenate([given, given[::-1, ::-1, ::-1]])
Image.fromarray(given).save("x.gif")
back = np.asarray(Image.open("x.gif").convert("RGB"))

# raconvert
import raconvert

raconvert.write("ours.gif", given)
