"""An assignment clips integers to the type of the dataset.

library: h5py
link: https://support.hdfgroup.org/HDF5/doc/Supplements/dtype_conversion/Overflow.html | "the destination value is set to either the maximum or minimum destination value"
link: https://github.com/h5py/h5py/issues/2773 | h5py #2773, downcasting rules
"""

import h5py
import numpy as np

given = np.array([300, -200])
with h5py.File("x.h5", "w") as file:
    file.create_dataset("x", (2,), "i1")[...] = given
    back = file["x"][...]

# The safe way: NumPy casts what surely fits, and raises for the rest
safe = given.astype("i1", casting="safe")

# raconvert
import raconvert

raconvert.write("ours.h5", given, dtype="int8")
