"""Exhibits: names, texts and what describes the values."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from raconvert import Array, Axis, Metadata

from . import Exhibited, exhibit, through


@exhibit(
    "pandas",
    before="U3 (2,) ['001', '1e5']",
    after="float64 (2,) [1.0, 100000.0]",
    ours="exact",
)
def digits(folder: Path) -> Exhibited:
    """`read_csv` takes texts of digits for numbers."""
    import pandas as pd

    given = np.array(["001", "1e5"])
    pd.DataFrame({"x": given}).to_csv(folder / "x.csv", index=False)
    theirs = pd.read_csv(folder / "x.csv")["x"].to_numpy()
    return given, theirs, through(folder / "x.h5", pd.DataFrame({"x": given}))


@exhibit(
    "pandas",
    before="complex128 (1,) [(1+2j)]",
    after="object (1,) ['(1+2j)']",
    ours="exact",
)
def complex_csv(folder: Path) -> Exhibited:
    """Complex numbers come back from CSV as text."""
    import pandas as pd

    given = np.array([1 + 2j])
    pd.DataFrame({"x": given}).to_csv(folder / "x.csv", index=False)
    theirs = pd.read_csv(folder / "x.csv")["x"].to_numpy(object)
    return given, theirs, through(folder / "x.h5", given)


@exhibit(
    "pynrrd",
    before="{'note': 'first\\nsecond: line'}",
    after="{'note': 'first', 'second': 'line'}",
    ours="exact",
)
def line_break(folder: Path) -> Exhibited:
    """A line break in a value makes a second field."""
    import nrrd

    given = {"note": "first\nsecond: line"}
    nrrd.write(str(folder / "x.nrrd"), np.arange(3), dict(given))
    header = nrrd.read_header(str(folder / "x.nrrd"))
    theirs = {key: header[key] for key in ("note", "second")}
    array = Array(np.arange(3), meta=Metadata(attributes=given))
    return given, theirs, through(folder / "ours.nrrd", array, of="attributes")


@exhibit(
    "nibabel",
    before="0.3333333333333333",
    after="0.3333333432674408",
    ours="said: metadata: not kept: every axis (spacing rounded to float32)",
)
def affine(folder: Path) -> Exhibited:
    """The affine is rounded to single precision."""
    import nibabel as nib

    given = 1 / 3
    image = nib.Nifti1Image(np.zeros((2, 2, 2), np.uint8), np.diag([given, given, given, 1]))
    nib.save(image, folder / "x.nii")
    theirs = float(nib.load(folder / "x.nii").affine[0, 0])
    array = Array(np.zeros((2, 2, 2), np.uint8), meta=Metadata(axes=[Axis(spacing=1 / 3)] * 3))
    return given, theirs, through(folder / "ours.nii", array, of="spacing")
