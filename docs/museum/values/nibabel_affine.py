"""The affine is rounded to single precision.

library: nibabel
link: https://github.com/SimpleITK/SimpleITK/issues/1276 | SimpleITK #1276, the same in another library: "The nifti-1 header stores data in float"
unsafe: the format has four bytes for each number of the affine
"""

import nibabel as nib
import numpy as np

given = 1 / 3
image = nib.Nifti1Image(np.zeros((2, 2, 2), np.uint8), np.diag([given, given, given, 1]))
nib.save(image, "x.nii")
back = float(nib.load("x.nii").affine[0, 0])

# raconvert
import raconvert

axes = [raconvert.Axis(spacing=given)] * 3
values = np.zeros((2, 2, 2), np.uint8)
report = raconvert.write("ours.nii", values, meta=raconvert.Metadata(axes=axes))
ours = raconvert.open("ours.nii").axes[0].spacing
