"""16-bit colour of a PNG comes back in 8 bits.

library: Pillow
link: https://github.com/python-pillow/Pillow/issues/7723 | Pillow #7723, "always results in an uint8 array"
unsafe: Pillow has no mode for 16-bit colour
"""

import numpy as np
import png
from PIL import Image

given = np.array([[[258, 513, 65535]]], np.uint16)
png.from_array([[258, 513, 65535]], "RGB;16").save("x.png")
back = np.asarray(Image.open("x.png"))

# raconvert
import raconvert

ours = raconvert.read("x.png")
