"""`savetxt` writes 19 digits of an int64 as a double has them.

library: numpy
manual: numpy.savetxt | fmt='%.18e'
"""

import numpy as np

given = np.array([2**60 + 1])
np.savetxt("x.csv", given)
back = np.loadtxt("x.csv", ndmin=1).astype(np.int64)

# The safe way: a format for integers, and a type for reading
np.savetxt("safe.csv", given, fmt="%d")
safe = np.loadtxt("safe.csv", ndmin=1, dtype=np.int64)

# raconvert
import raconvert

report = raconvert.write("ours.csv", given)
ours = raconvert.read("ours.csv", "ours")
