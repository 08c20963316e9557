"""A chunk that was lost reads as zeros.

library: zarr
link: https://github.com/zarr-developers/zarr-python/issues/486 | zarr #486, "impossible to distinguish whether the nan's are legit nans in the data, or are a result of missing chunk file"
link: https://github.com/zarr-developers/zarr-python/pull/3748 | zarr #3748, an option that raises instead, for versions to come
"""

import os

import numpy as np
import zarr

given = np.array([1, 2, 3, 4], np.int32)
made = zarr.create_array("x.zarr", shape=(4,), chunks=(2,), dtype="i4", zarr_format=2)
made[:] = given
os.remove("x.zarr/1")
back = zarr.open_array("x.zarr", mode="r")[:]

# The safe way: count the chunks; an array that is complete has all of them
# (write it with `config={"write_empty_chunks": True}`)
found = zarr.open_array("x.zarr", mode="r")
assert found.nchunks_initialized == found.nchunks, "chunks are missing"

# raconvert
import raconvert

report = raconvert.convert("x.zarr", "ours.npy")
ours = raconvert.read("ours.npy")
