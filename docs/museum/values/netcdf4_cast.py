"""An assignment cuts floats, and wraps what does not fit.

library: netCDF4
link: https://github.com/numpy/numpy/issues/6971 | numpy #6971, "we should not silently truncate floats to ints": the cast is NumPy's
"""

import netCDF4
import numpy as np

given = np.array([1.7, 70000.0])
with netCDF4.Dataset("x.nc", "w") as file:
    size = file.createDimension("n", 2)
    file.createVariable("x", "i2", ("n",))[:] = given

with netCDF4.Dataset("x.nc") as file:
    back = np.asarray(file["x"][:])

# The safe way: NumPy casts what surely fits, and raises for the rest
safe = given.astype("i2", casting="safe")

# raconvert
import raconvert

raconvert.write("ours.nc", given, dtype="int16")
