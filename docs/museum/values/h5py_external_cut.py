"""External storage that was cut reads as zeros.

library: h5py
link: https://github.com/HDFGroup/hdf5/blob/048ae59d2970dd21810577c999f756c028b6faaf/src/H5Defl.c | "reading past the end of any particular member of the external file list results in zeros"
"""

import h5py
import numpy as np

given = np.array([1, 2, 3, 4])
given.tofile("x.raw")
with h5py.File("x.h5", "w") as file:
    made = file.create_dataset("x", (4,), "i8", external=[("x.raw", 0, 32)])

with open("x.raw", "r+b") as raw:
    size = raw.truncate(16)

with h5py.File("x.h5") as file:
    back = file["x"][...]

# The safe way: compare with the sizes of the files
import os

with h5py.File("x.h5") as file:
    for name, offset, size in file["x"].external:
        assert os.path.getsize(name) >= offset + size, f"{name} was cut"

# raconvert
import raconvert

raconvert.read("x.h5")
