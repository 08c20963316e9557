"""`imread` reads 16-bit colour in 8 bits.

library: imageio
link: https://github.com/imageio/imageio/issues/204 | imageio #204, 16-bit PNG
link: https://github.com/python-pillow/Pillow/issues/7723 | Pillow #7723, "always results in an uint8 array"
unsafe: the plugins of PNG that are installed read 8 bits
"""

import imageio.v3 as iio
import numpy as np
import png

given = np.array([[[258, 513, 65535]]], np.uint16)
png.from_array([[258, 513, 65535]], "RGB;16").save("x.png")
back = iio.imread("x.png")

# raconvert
import raconvert

ours = raconvert.read("x.png")
