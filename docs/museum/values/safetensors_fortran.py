"""An array in Fortran order comes back scrambled.

library: safetensors
manual: safetensors.numpy.save_file | Tensors need to be contiguous and dense.
link: https://github.com/safetensors/safetensors/issues/825 | safetensors #825, "silently produces garbage on read in 0.8.0"
"""

import numpy as np
from safetensors.numpy import load_file, save_file

given = np.asfortranarray(np.arange(6).reshape(2, 3))
save_file({"x": given}, "x.safetensors")
back = load_file("x.safetensors")["x"]

# The safe way: make it contiguous
save_file({"x": np.ascontiguousarray(given)}, "safe.safetensors")
safe = load_file("safe.safetensors")["x"]

# raconvert
import raconvert

report = raconvert.write("ours.safetensors", {"x": given})
ours = raconvert.read("ours.safetensors", "x")
