"""A file that was written in C order is read with its axes reversed.

library: pynrrd
manual: nrrd.read | reading an array with `index_order='F'` will result in a transposed version of the original data
"""

import nrrd
import numpy as np

given = np.arange(6, dtype=np.int16).reshape(2, 3)
nrrd.write("x.nrrd", given, index_order="C")
back, header = nrrd.read("x.nrrd")

# The safe way: the same order for both
safe, header = nrrd.read("x.nrrd", index_order="C")

# raconvert
import raconvert

ours = raconvert.read("x.nrrd")
