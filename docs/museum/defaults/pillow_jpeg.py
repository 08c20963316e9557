"""JPEG changes values at any quality.

library: Pillow
link: https://github.com/python-pillow/Pillow/blob/c2ddcbfde938a779f0537c05343ade76daaf025b/docs/handbook/image-file-formats.rst | "The image quality, on a scale from 1 (worst) to 95 (best). The default is 75."
unsafe: none in JPEG; PNG keeps values
"""

import numpy as np
from PIL import Image

given = np.array([[0, 255, 7]], np.uint8)
Image.fromarray(given).save("x.jpg")
back = np.asarray(Image.open("x.jpg"))

# raconvert
import raconvert

raconvert.write("ours.jpg", given)
