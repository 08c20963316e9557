"""`loadmat` gives logicals back as uint8.

library: scipy
manual: scipy.io.loadmat | instead of the dtype with which they are saved
link: https://github.com/scipy/scipy/issues/4422 | scipy #4422, "By default scipy loads the data in the type they were saved."
"""

import numpy as np
from scipy.io import loadmat, savemat

given = np.array([[True, False]])
savemat("x.mat", {"x": given})
back = loadmat("x.mat")["x"]

# The safe way: the types of MATLAB
safe = loadmat("x.mat", mat_dtype=True)["x"]

# raconvert
import raconvert

ours = raconvert.read("x.mat", "x")
