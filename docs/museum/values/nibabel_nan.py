"""NaN becomes 0 in an image of integers.

library: nibabel
manual: nibabel.volumeutils.array_to_file | Whether to set NaN values to 0 when writing integer output. Defaults to True.
"""

import nibabel as nib
import numpy as np

given = np.array([[[np.nan, 1.0, 2.0]]])
image = nib.Nifti1Image(given, np.eye(4))
image.header.set_slope_inter(1, 0)
image.set_data_dtype(np.int16)
nib.save(image, "x.nii")
back = np.asarray(nib.load("x.nii").dataobj)

# The safe way: leave the type of the values
nib.save(nib.Nifti1Image(given, np.eye(4)), "safe.nii")
safe = np.asarray(nib.load("safe.nii").dataobj)

# raconvert
import raconvert

raconvert.write("ours.nii", given, dtype="int16")
