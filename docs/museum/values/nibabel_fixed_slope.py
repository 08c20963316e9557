"""With a fixed slope, floats lose what is behind the point, and negative ones their sign.

library: nibabel
manual: nibabel.Nifti1Header.set_slope_inter | the scaled image data will be ``(arr * slope) + inter``
"""

import nibabel as nib
import numpy as np

given = np.array([[[0.0, 100.5, -3.0]]])
image = nib.Nifti1Image(given, np.eye(4))
image.header.set_slope_inter(1, 0)
image.set_data_dtype(np.uint8)
nib.save(image, "x.nii")
back = np.asarray(nib.load("x.nii").dataobj)

# The safe way: leave the type of the values
nib.save(nib.Nifti1Image(given, np.eye(4)), "safe.nii")
safe = np.asarray(nib.load("safe.nii").dataobj)

# raconvert
import raconvert

raconvert.write("ours.nii", given, dtype="uint8")
