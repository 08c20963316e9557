"""A value that happens to be the default fill value is gone.

library: netCDF4
manual: netCDF4.Variable.set_auto_mask | The default value of `mask` is `True` (automatic conversions are performed).
link: https://github.com/Unidata/netcdf4-python/issues/209 | netcdf4-python #209
"""

import netCDF4
import numpy as np

given = np.array([-9223372036854775806, 1])
with netCDF4.Dataset("x.nc", "w") as file:
    size = file.createDimension("n", 2)
    file.createVariable("x", "i8", ("n",))[:] = given

with netCDF4.Dataset("x.nc") as file:
    back = file["x"][:]

# The safe way: ask for the stored values
with netCDF4.Dataset("x.nc") as file:
    file.set_auto_maskandscale(False)
    safe = file["x"][:]

# raconvert
import raconvert

ours = raconvert.read("x.nc", "x")
