"""OME-TIFF loses axes of length one.

library: tifffile
manual: tifffile.TiffFile.asarray | By default, all but `"shaped"` series are squeezed.
link: https://github.com/cgohlke/tifffile/issues/155 | tifffile #155, "the single channel is squeezed away"
"""

import numpy as np
import tifffile

given = np.zeros((1, 2, 5, 4), np.uint8)
tifffile.imwrite("x.ome.tif", given)
back = tifffile.imread("x.ome.tif")

# The safe way: all axes of OME-TIFF (its six, in place of our four)
safe = tifffile.imread("x.ome.tif", squeeze=False)

# raconvert
import raconvert

report = raconvert.write("ours.ome.tif", given)
ours = raconvert.read("ours.ome.tif", "ours")
