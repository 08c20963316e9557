"""An int64 variable with a `_FillValue` comes back as double.

library: xarray
manual: xarray.open_dataset | If True, replace array values equal to `_FillValue` with NA
link: https://docs.xarray.dev/en/v0.14.0/generated/xarray.open_dataset.html | the manual of `open_dataset`, "mask_and_scale defaults to True"
"""

import numpy as np
import xarray as xr

given = np.array([2**60 + 1, 5])
xr.Dataset({"x": ("n", given, {"_FillValue": -1})}).to_netcdf("x.nc")
with xr.open_dataset("x.nc") as dataset:
    back = dataset["x"].values

# The safe way: no decoding
with xr.open_dataset("x.nc", mask_and_scale=False) as dataset:
    safe = dataset["x"].values

# raconvert
import raconvert

ours = raconvert.read("x.nc", "x")
