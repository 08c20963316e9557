"""`savemat` turns dates into bare numbers.

library: scipy
manual: scipy.io.matlab._mio5 | No matching matlab type, probably complex256 / float128 / float96 Cast data to complex128 / float64.
"""

import numpy as np
from scipy.io import loadmat, savemat

given = np.array([["2020-01-01"]], "M8[D]")
savemat("x.mat", {"x": given})
back = loadmat("x.mat")["x"]

# The safe way: dates as text
savemat("safe.mat", {"x": given.astype("U10")})
safe = loadmat("safe.mat")["x"].reshape(1, 1).astype("M8[D]")

# raconvert
import raconvert

raconvert.write("ours.mat", {"x": given})
