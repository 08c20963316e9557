"""`savemat` writes 999999 where a mask hides a value.

library: scipy
manual: numpy.ma.default_fill_value | int 999999
"""

import numpy as np
from scipy.io import loadmat, savemat

given = np.ma.array([[1, 2, 3]], mask=[[False, True, False]])
savemat("x.mat", {"x": given})
back = loadmat("x.mat")["x"]

# The safe way: the mask is a variable of its own
savemat("safe.mat", {"x": given.filled(), "mask": np.ma.getmaskarray(given)})
found = loadmat("safe.mat")
safe = np.ma.array(found["x"], mask=found["mask"])

# raconvert
import raconvert

raconvert.write("ours.mat", {"x": given})
