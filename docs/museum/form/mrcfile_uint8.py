"""Uint8 becomes uint16.

library: mrcfile
manual: mrcfile.utils.mode_from_dtype | uint8 -> mode 6 (data will be widened to 16 bits in the file)
unsafe: MRC has no uint8; int8, if the values fit
"""

import mrcfile
import numpy as np

given = np.array([[1, 2]], np.uint8)
with mrcfile.new("x.mrc") as file:
    file.set_data(given)

with mrcfile.open("x.mrc") as file:
    back = np.array(file.data)

# raconvert
import raconvert

raconvert.write("ours.mrc", given)
