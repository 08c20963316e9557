"""A virtual dataset whose source is gone reads as zeros.

library: h5py
link: https://support.hdfgroup.org/documentation/hdf5/latest/_v_d_s.html | "If a source file is missing the fill value will be displayed."
link: https://github.com/European-XFEL/hdf5-vds-check | a program that only checks this
"""

import os

import h5py
import numpy as np

given = np.array([1, 2, 3, 4])
with h5py.File("source.h5", "w") as file:
    file["x"] = given

layout = h5py.VirtualLayout((4,), "i8")
layout[:] = h5py.VirtualSource("source.h5", "x", (4,))
with h5py.File("x.h5", "w") as file:
    made = file.create_virtual_dataset("x", layout)

os.remove("source.h5")
with h5py.File("x.h5") as file:
    back = file["x"][...]

# The safe way: look whether the sources are there
with h5py.File("x.h5") as file:
    for source in file["x"].virtual_sources():
        assert os.path.exists(source.file_name), f"{source.file_name} is gone"

# raconvert
import raconvert

raconvert.read("x.h5")
