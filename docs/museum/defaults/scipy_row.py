"""`savemat` turns an array with one axis into a row.

library: scipy
manual: scipy.io.savemat | If 'row', write 1-D NumPy arrays as row vectors.
link: https://docs.scipy.org/doc/scipy-1.9.2/reference/generated/scipy.io.savemat.html | the manual of `savemat`
"""

import numpy as np
from scipy.io import loadmat, savemat

given = np.arange(3)
savemat("x.mat", {"x": given})
back = loadmat("x.mat")["x"]

# The safe way: take the axis away again
safe = loadmat("x.mat", squeeze_me=True)["x"]

# raconvert
import raconvert

report = raconvert.write("ours.mat", {"x": given})
ours = raconvert.read("ours.mat", "x")
