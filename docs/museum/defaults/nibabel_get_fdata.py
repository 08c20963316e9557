"""`get_fdata` rounds int64 to double.

library: nibabel
manual: nibabel.Nifti1Image.get_fdata | Default is ``np.float64``.
"""

import nibabel as nib
import numpy as np

given = np.array([[[2**60 + 1]]])
nib.save(nib.Nifti1Image(given, np.eye(4), dtype="int64"), "x.nii")
back = nib.load("x.nii").get_fdata().astype(np.int64)

# The safe way: the array as it is stored
safe = np.asarray(nib.load("x.nii").dataobj)

# raconvert
import raconvert

ours = raconvert.read("x.nii")
