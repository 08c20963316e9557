"""Packed integers come back as doubles.

library: netCDF4
manual: netCDF4.Variable.set_auto_scale | The default value of `scale` is `True` (automatic conversions are performed).
"""

import netCDF4
import numpy as np

given = np.array([1, 2, 3], np.int16)
with netCDF4.Dataset("x.nc", "w") as file:
    size = file.createDimension("n", 3)
    variable = file.createVariable("x", "i2", ("n",))
    variable.set_auto_scale(False)
    variable.scale_factor = 0.1
    variable[:] = given

with netCDF4.Dataset("x.nc") as file:
    back = np.asarray(file["x"][:])

# The safe way: ask for the stored values
with netCDF4.Dataset("x.nc") as file:
    file.set_auto_maskandscale(False)
    safe = file["x"][:]

# raconvert
import raconvert

ours = raconvert.read("x.nc", "x")
