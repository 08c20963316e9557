"""Values below `valid_min` are gone.

library: netCDF4
manual: netCDF4.Variable.set_auto_mask | data outside the specified range will be masked
"""

import netCDF4
import numpy as np

given = np.array([1, 10], np.uint8)
with netCDF4.Dataset("x.nc", "w") as file:
    size = file.createDimension("n", 2)
    variable = file.createVariable("x", "u1", ("n",))
    variable.valid_min = np.uint8(5)
    variable[:] = given

with netCDF4.Dataset("x.nc") as file:
    back = file["x"][:]

# The safe way: ask for the stored values
with netCDF4.Dataset("x.nc") as file:
    file.set_auto_maskandscale(False)
    safe = file["x"][:]

# raconvert
import raconvert

ours = raconvert.read("x.nc", "x")
