"""`savemat` cuts extended precision to double.

library: scipy
manual: scipy.io.matlab._mio5 | No matching matlab type, probably complex256 / float128 / float96 Cast data to complex128 / float64.
unsafe: MATLAB has no type for it
"""

import numpy as np
from scipy.io import loadmat, savemat

given = np.array([[np.longdouble(1) / 3]])
savemat("x.mat", {"x": given})
back = loadmat("x.mat")["x"]

# raconvert
import raconvert

raconvert.write("ours.mat", {"x": given})
