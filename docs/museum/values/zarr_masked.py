"""A masked array is written without its mask.

library: zarr
link: https://github.com/zarr-developers/zarr-python/issues/3744 | zarr #3744, "there is no error but the mask is just lost"
"""

import numpy as np
import zarr

given = np.ma.array([1, 2, 3], mask=[False, True, False])
back = zarr.array(given, zarr_format=2)[:]

# The safe way: the mask is an array of its own
values, mask = zarr.array(given.filled()), zarr.array(np.ma.getmaskarray(given))
safe = np.ma.array(values[:], mask=mask[:])

# raconvert
import raconvert

raconvert.write("ours.zarr", given)
