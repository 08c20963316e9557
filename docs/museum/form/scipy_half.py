"""`savemat` turns float16 into double.

library: scipy
manual: scipy.io.matlab._mio5 | No matching matlab type, probably complex256 / float128 / float96 Cast data to complex128 / float64.
"""

import numpy as np
from scipy.io import loadmat, savemat

given = np.array([[0.5, 2]], np.float16)
savemat("x.mat", {"x": given})
back = loadmat("x.mat")["x"]

# The safe way: the type goes along as text
savemat("safe.mat", {"x": given, "dtype": str(given.dtype)})
found = loadmat("safe.mat")
safe = found["x"].astype(found["dtype"][0])

# raconvert
import raconvert

report = raconvert.write("ours.mat", {"x": given})
ours = raconvert.read("ours.mat", "x")
