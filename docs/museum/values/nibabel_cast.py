"""Integers saved as uint8 come back as other numbers.

library: nibabel
manual: nibabel.Nifti1Header.set_slope_inter | is a signal to a containing image to set `slope`, `inter` automatically on write
"""

import nibabel as nib
import numpy as np

given = np.array([[[300, -1]]], np.int32)
nib.save(nib.Nifti1Image(given, np.eye(4)), "x.nii", dtype=np.uint8)
back = np.asarray(nib.load("x.nii").dataobj)

# The safe way: leave the type of the values
nib.save(nib.Nifti1Image(given, np.eye(4)), "safe.nii")
safe = np.asarray(nib.load("safe.nii").dataobj)

# raconvert
import raconvert

raconvert.write("ours.nii", given, dtype="uint8")
