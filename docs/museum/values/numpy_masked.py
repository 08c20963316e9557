"""`savez` forgets which values a mask hides.

library: numpy
link: https://github.com/numpy/numpy/issues/18134 | numpy #18134, "after loading it, the mask is gone"
"""

import numpy as np

given = np.ma.array([1, 2, 3], mask=[False, True, False])
np.savez("x.npz", x=given)
back = np.load("x.npz")["x"]

# The safe way: the mask is an array of its own
np.savez("safe.npz", x=given.filled(), mask=np.ma.getmaskarray(given))
with np.load("safe.npz") as file:
    safe = np.ma.array(file["x"], mask=file["mask"])

# raconvert
import raconvert

raconvert.write("ours.npz", {"x": given})
