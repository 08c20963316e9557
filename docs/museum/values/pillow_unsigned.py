"""A TIFF of uint32 becomes one of int32.

library: Pillow
manual: PIL.Image.fromarray | be aware that Pillow modes do not always correspond to NumPy dtypes
link: https://github.com/python-pillow/Pillow/issues/5850 | Pillow #5850, incorrect SampleFormat
unsafe: Pillow has no mode for uint32
"""

import numpy as np
from PIL import Image

given = np.array([[2**32 - 1, 7]], np.uint32)
Image.fromarray(given).save("x.tif")
back = np.asarray(Image.open("x.tif"))

# raconvert
import raconvert

report = raconvert.write("ours.tif", given)
ours = raconvert.read("ours.tif")
