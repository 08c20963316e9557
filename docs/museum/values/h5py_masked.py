"""A masked array is written without its mask.

library: h5py
link: https://github.com/h5py/h5py/issues/2537 | h5py #2537, support for masked arrays
"""

import h5py
import numpy as np

given = np.ma.array([1, 2, 3], mask=[False, True, False])
with h5py.File("x.h5", "w") as file:
    file["x"] = given
    back = file["x"][...]

# The safe way: the mask is a dataset of its own
with h5py.File("safe.h5", "w") as file:
    file["x"], file["x.mask"] = given.filled(), np.ma.getmaskarray(given)
    safe = np.ma.array(file["x"][...], mask=file["x.mask"][...])

# raconvert
import raconvert

raconvert.write("ours.h5", given)
