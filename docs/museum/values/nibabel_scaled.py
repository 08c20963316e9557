"""`set_data_dtype` rounds floats to 65,536 steps.

library: nibabel
manual: nibabel.Nifti1Header.set_slope_inter | is a signal to a containing image to set `slope`, `inter` automatically on write
"""

import nibabel as nib
import numpy as np

given = np.array([[[0.1, 0.25, 0.5]]])
image = nib.Nifti1Image(given, np.eye(4))
image.set_data_dtype(np.int16)
nib.save(image, "x.nii")
back = np.asarray(nib.load("x.nii").dataobj)

# The safe way: leave the type of the values
nib.save(nib.Nifti1Image(given, np.eye(4)), "safe.nii")
safe = np.asarray(nib.load("safe.nii").dataobj)

# raconvert
import raconvert

raconvert.write("ours.nii", given, dtype="int16")
