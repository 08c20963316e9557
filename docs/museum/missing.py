"""Exhibits: values that were missing and are there now, or the other way round."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from . import Exhibited, exhibit, reading, through


@exhibit(
    "numpy",
    before="int64 (3,) [1 -- 3]",
    after="int64 (3,) [1, 2, 3]",
    ours="refused: a masked array would lose its mask",
)
def masked_into_npz(folder: Path) -> Exhibited:
    """`savez` forgets which values a mask hides."""
    given = np.ma.array([1, 2, 3], mask=[False, True, False])
    np.savez(folder / "x.npz", x=given)
    theirs = np.load(folder / "x.npz")["x"]
    return given, theirs, through(folder / "ours.npz", {"x": given})


@exhibit(
    "scipy",
    before="int64 (1, 3) [[1 -- 3]]",
    after="int64 (1, 3) [[1, 999999, 3]]",
    ours="refused: a masked array would lose its mask",
)
def masked_into_mat(folder: Path) -> Exhibited:
    """`savemat` writes 999999 where a mask hides a value."""
    from scipy.io import loadmat, savemat

    given = np.ma.array([[1, 2, 3]], mask=[[False, True, False]])
    savemat(folder / "x.mat", {"x": given})
    theirs = loadmat(folder / "x.mat")["x"]
    return given, theirs, through(folder / "ours.mat", given)


@exhibit(
    "h5py",
    before="int64 (3,) [1 -- 3]",
    after="int64 (3,) [1, 2, 3]",
    ours="refused: a masked array would lose its mask",
)
def masked_into_hdf5(folder: Path) -> Exhibited:
    """A masked array is written without its mask."""
    import h5py

    given = np.ma.array([1, 2, 3], mask=[False, True, False])
    with h5py.File(folder / "x.h5", "w") as file:
        file["x"] = given
        theirs = file["x"][...]
    return given, theirs, through(folder / "ours.h5", given)


@exhibit(
    "tifffile",
    before="int64 (1, 3) [[1 -- 3]]",
    after="int64 (1, 3) [[1, 2, 3]]",
    ours="refused: a masked array would lose its mask",
)
def masked_into_tiff(folder: Path) -> Exhibited:
    """A masked array is written without its mask."""
    import tifffile

    given = np.ma.array([[1, 2, 3]], mask=[[False, True, False]])
    tifffile.imwrite(folder / "x.tif", given)
    theirs = tifffile.imread(folder / "x.tif")
    return given, theirs, through(folder / "ours.tif", given)


@exhibit(
    "safetensors",
    before="int64 (3,) [1 -- 3]",
    after="int64 (3,) [1, 2, 3]",
    ours="refused: a masked array would lose its mask",
)
def masked_into_safetensors(folder: Path) -> Exhibited:
    """A masked array is written without its mask."""
    from safetensors.numpy import load_file, save_file

    given = np.ma.array([1, 2, 3], mask=[False, True, False])
    save_file({"x": given}, folder / "x.safetensors")
    theirs = load_file(folder / "x.safetensors")["x"]
    return given, theirs, through(folder / "ours.safetensors", given)


@exhibit(
    "nibabel",
    before="float64 (1, 1, 3) [[[nan, 1.0, 2.0]]]",
    after="int16 (1, 1, 3) [[[0, 1, 2]]]",
    ours="refused: value nan of array 'origin' does not fit int16, at index [0, 0, 0]",
)
def nan_to_integer(folder: Path) -> Exhibited:
    """NaN becomes 0 in an image of integers."""
    import nibabel as nib

    given = np.array([[[np.nan, 1.0, 2.0]]])
    image = nib.Nifti1Image(given, np.eye(4))
    image.header.set_slope_inter(1, 0)
    image.set_data_dtype(np.int16)
    nib.save(image, folder / "x.nii")
    theirs = np.asarray(nib.load(folder / "x.nii").dataobj)
    return given, theirs, through(folder / "ours.nii", given, dtype="int16")


@exhibit(
    "netCDF4",
    before="int64 (2,) [-9223372036854775806, 1]",
    after="int64 (2,) [-- 1]",
    ours="exact",
)
def default_fill(folder: Path) -> Exhibited:
    """A value that happens to be the default fill value is gone."""
    import netCDF4

    given = np.array([-9223372036854775806, 1])
    with netCDF4.Dataset(folder / "x.nc", "w") as file:
        file.createDimension("n", 2)
        file.createVariable("x", "i8", ("n",))[:] = given
    with netCDF4.Dataset(folder / "x.nc") as file:
        theirs = file["x"][:]
    return given, theirs, reading(folder / "x.nc")


@exhibit(
    "netCDF4",
    before="uint8 (2,) [1, 10]",
    after="uint8 (2,) [-- 10]",
    ours="exact",
)
def valid_min(folder: Path) -> Exhibited:
    """Values below `valid_min` are gone."""
    import netCDF4

    given = np.array([1, 10], np.uint8)
    with netCDF4.Dataset(folder / "x.nc", "w") as file:
        file.createDimension("n", 2)
        variable = file.createVariable("x", "u1", ("n",))
        variable.valid_min = np.uint8(5)
        variable[:] = given
    with netCDF4.Dataset(folder / "x.nc") as file:
        theirs = file["x"][:]
    return given, theirs, reading(folder / "x.nc")


@exhibit(
    "pandas",
    before="U4 (3,) ['NA', 'null', 'a']",
    after="object (3,) [nan, nan, 'a']",
    ours="exact",
)
def texts_as_missing(folder: Path) -> Exhibited:
    """`read_csv` takes the texts NA and null for missing."""
    import pandas as pd

    given = np.array(["NA", "null", "a"])
    pd.DataFrame({"x": given}).to_csv(folder / "x.csv", index=False)
    theirs = pd.read_csv(folder / "x.csv")["x"].to_numpy(object)
    return given, theirs, through(folder / "x.h5", pd.DataFrame({"x": given}))


@exhibit(
    "h5py",
    before="int64 (4,) [1, 2, 3, 4]",
    after="int64 (4,) [1, 2, 0, 0]",
    ours="refused: external storage 'x.raw' is shorter than the dataset in it, at dataset '/x'; "
    "expected 32 bytes from 0, got a file of 16",
)
def external_cut(folder: Path) -> Exhibited:
    """External storage that was cut reads as zeros."""
    import h5py

    given = np.array([1, 2, 3, 4])
    given.tofile(folder / "x.raw")
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("x", (4,), "i8", external=[(str(folder / "x.raw"), 0, 32)])
    with open(folder / "x.raw", "r+b") as raw:
        raw.truncate(16)
    with h5py.File(folder / "x.h5") as file:
        theirs = file["x"][...]
    return given, theirs, reading(folder / "x.h5")


@exhibit(
    "h5py",
    before="int64 (4,) [1, 2, 3, 4]",
    after="int64 (4,) [0, 0, 0, 0]",
    ours="refused: the source of a virtual dataset 'source.h5' does not exist, at 'source.h5'",
)
def virtual_source_gone(folder: Path) -> Exhibited:
    """A virtual dataset whose source is gone reads as zeros."""
    import h5py

    given = np.array([1, 2, 3, 4])
    with h5py.File(folder / "source.h5", "w") as file:
        file["x"] = given
    with h5py.File(folder / "x.h5", "w") as file:
        layout = h5py.VirtualLayout((4,), "i8")
        layout[:] = h5py.VirtualSource("source.h5", "x", (4,))
        file.create_virtual_dataset("x", layout)
    (folder / "source.h5").unlink()
    with h5py.File(folder / "x.h5") as file:
        theirs = file["x"][...]
    return given, theirs, reading(folder / "x.h5")
