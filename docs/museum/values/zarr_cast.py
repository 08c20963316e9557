"""An assignment cuts floats to integers, and wraps what does not fit.

library: zarr
link: https://github.com/numpy/numpy/issues/6971 | numpy #6971, "we should not silently truncate floats to ints": the cast is NumPy's
"""

import numpy as np
import zarr

given = np.array([300.7, -1.5])
made = zarr.create_array("x.zarr", shape=(2,), dtype="i1")
made[:] = given
back = made[:]

# The safe way: NumPy casts what surely fits, and raises for the rest
safe = given.astype("i1", casting="safe")

# raconvert
import raconvert

raconvert.write("ours.zarr", given, dtype="int8")
