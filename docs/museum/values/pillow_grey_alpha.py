"""16-bit grey with alpha comes back as four channels of 8 bits.

library: Pillow
link: https://github.com/python-pillow/Pillow/issues/7723 | Pillow #7723, "there's no support for multichannel images with more than 8 bits/channel"
unsafe: Pillow has no mode for 16-bit grey with alpha
"""

import numpy as np
import png
from PIL import Image

given = np.array([[[258, 65535]]], np.uint16)
png.from_array([[258, 65535]], "LA;16").save("x.png")
back = np.asarray(Image.open("x.png"))

# raconvert
import raconvert

ours = raconvert.read("x.png")
