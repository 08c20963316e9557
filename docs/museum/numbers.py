"""Exhibits: elements whose type or value changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from . import Exhibited, exhibit, reading, through


@exhibit(
    "numpy",
    before="int64 (1,) [1152921504606846977]",
    after="int64 (1,) [1152921504606846976]",
    ours="exact",
)
def savetxt(folder: Path) -> Exhibited:
    """`savetxt` writes 19 digits of an int64 as a double has them."""
    given = np.array([2**60 + 1])
    np.savetxt(folder / "x.txt", given)
    theirs = np.atleast_1d(np.loadtxt(folder / "x.txt")).astype(np.int64)
    return given, theirs, through(folder / "x.npy", given)


@exhibit(
    "scipy",
    before="int64 (1, 1) [[1152921504606846977]]",
    after="float64 (1, 1) [[1.152921504606847e+18]]",
    ours="exact",
)
def level4(folder: Path) -> Exhibited:
    """`savemat` in format 4 turns int64 into double."""
    from scipy.io import loadmat, savemat

    given = np.array([[2**60 + 1]])
    savemat(folder / "x.mat", {"x": given}, format="4")
    theirs = loadmat(folder / "x.mat")["x"]
    return given, theirs, through(folder / "ours.mat", given)


@exhibit(
    "scipy",
    before="float16 (1, 2) [[0.5, 2.0]]",
    after="float64 (1, 2) [[0.5, 2.0]]",
    ours="said: type: float16 becomes double",
)
def half(folder: Path) -> Exhibited:
    """`savemat` turns float16 into double."""
    from scipy.io import loadmat, savemat

    given = np.array([[0.5, 2]], np.float16)
    savemat(folder / "x.mat", {"x": given})
    theirs = loadmat(folder / "x.mat")["x"]
    return given, theirs, through(folder / "ours.mat", given)


@exhibit(
    "scipy",
    before="float128 (1, 2) [[1. 2.]]",
    after="float64 (1, 2) [[1.0, 2.0]]",
    ours="refused: type float128 (16 bytes) has no faithful form in RA",
)
def extended(folder: Path) -> Exhibited:
    """`savemat` cuts extended precision to double."""
    from scipy.io import loadmat, savemat

    given = np.array([[1, 2]], np.longdouble)
    savemat(folder / "x.mat", {"x": given})
    theirs = loadmat(folder / "x.mat")["x"]
    return given, theirs, through(folder / "ours.mat", given)


@exhibit(
    "scipy",
    before="bool (1, 2) [[True, False]]",
    after="uint8 (1, 2) [[1, 0]]",
    ours="exact",
)
def logicals(folder: Path) -> Exhibited:
    """`savemat` writes logicals that `loadmat` gives back as uint8."""
    from scipy.io import loadmat, savemat

    given = np.array([[True, False]])
    savemat(folder / "x.mat", {"x": given})
    theirs = loadmat(folder / "x.mat")["x"]
    return given, theirs, reading(folder / "x.mat")


@exhibit(
    "scipy",
    before="datetime64[D] (1, 1) [['2020-01-01']]",
    after="float64 (1, 1) [[18262.0]]",
    ours="refused: type: <M8[D] would become a count without its unit (int64)",
)
def dates(folder: Path) -> Exhibited:
    """`savemat` turns dates into bare numbers."""
    from scipy.io import loadmat, savemat

    given = np.array([["2020-01-01"]], "M8[D]")
    savemat(folder / "x.mat", {"x": given})
    theirs = loadmat(folder / "x.mat")["x"]
    return given, theirs, through(folder / "ours.mat", given)


@exhibit(
    "Pillow",
    before="uint16 (1, 1, 3) [[[258, 513, 65535]]]",
    after="uint8 (1, 1, 3) [[[1, 2, 255]]]",
    ours="exact",
)
def colour(folder: Path) -> Exhibited:
    """16-bit colour of a PNG comes back in 8 bits."""
    import png
    from PIL import Image

    given = np.array([[[258, 513, 65535]]], np.uint16)
    png.from_array([[258, 513, 65535]], "RGB;16").save(folder / "x.png")
    theirs = np.asarray(Image.open(folder / "x.png"))
    return given, theirs, reading(folder / "x.png")


@exhibit(
    "Pillow",
    before="uint16 (1, 1, 2) [[[258, 65535]]]",
    after="uint8 (1, 1, 4) [[[1, 1, 1, 255]]]",
    ours="exact",
)
def grey_with_alpha(folder: Path) -> Exhibited:
    """16-bit grey with alpha comes back as four channels of 8 bits."""
    import png
    from PIL import Image

    given = np.array([[[258, 65535]]], np.uint16)
    png.from_array([[258, 65535]], "LA;16").save(folder / "x.png")
    theirs = np.asarray(Image.open(folder / "x.png"))
    return given, theirs, reading(folder / "x.png")


@exhibit(
    "Pillow",
    before="uint32 (1, 2) [[4294967295, 7]]",
    after="int32 (1, 2) [[-1, 7]]",
    ours="exact",
)
def unsigned(folder: Path) -> Exhibited:
    """`fromarray` takes uint32 for int32."""
    from PIL import Image

    given = np.array([[2**32 - 1, 7]], np.uint32)
    theirs = np.asarray(Image.fromarray(given))
    return given, theirs, through(folder / "x.tif", given)


@exhibit(
    "imageio",
    before="uint16 (1, 1, 3) [[[258, 513, 65535]]]",
    after="uint8 (1, 1, 3) [[[1, 2, 255]]]",
    ours="exact",
)
def imread(folder: Path) -> Exhibited:
    """`imread` halves the bits of 16-bit colour."""
    import imageio.v3 as iio
    import png

    given = np.array([[[258, 513, 65535]]], np.uint16)
    png.from_array([[258, 513, 65535]], "RGB;16").save(folder / "x.png")
    theirs = iio.imread(folder / "x.png")
    return given, theirs, reading(folder / "x.png")


@exhibit(
    "SimpleITK",
    before="complex64 (1, 2) [[(1+2j), (3+0j)]]",
    after="float32 (1, 2, 2) [[[1.0, 2.0], [3.0, 0.0]]]",
    ours="refused: type: MetaImage has no complex64",
)
def complex_mha(folder: Path) -> Exhibited:
    """Complex numbers in MetaImage come back as pairs of floats."""
    import SimpleITK

    given = np.array([[1 + 2j, 3]], np.complex64)
    SimpleITK.WriteImage(SimpleITK.GetImageFromArray(given), folder / "x.mha")
    theirs = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(folder / "x.mha"))
    return given, theirs, through(folder / "ours.mha", given)


@exhibit(
    "SimpleITK",
    before="complex64 (1, 2) [[(1+2j), (3+0j)]]",
    after="float32 (1, 2, 2) [[[1.0, 2.0], [3.0, 0.0]]]",
    ours="exact",
)
def complex_tiff(folder: Path) -> Exhibited:
    """Complex numbers in TIFF come back as two floats each."""
    import SimpleITK

    given = np.array([[1 + 2j, 3]], np.complex64)
    SimpleITK.WriteImage(SimpleITK.GetImageFromArray(given), folder / "x.tif")
    theirs = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(folder / "x.tif"))
    return given, theirs, through(folder / "ours.tif", given)


@exhibit(
    "nibabel",
    before="int64 (1, 1, 1) [[[1152921504606846977]]]",
    after="int64 (1, 1, 1) [[[1152921504606846976]]]",
    ours="exact",
)
def get_fdata(folder: Path) -> Exhibited:
    """`get_fdata` rounds int64 to double."""
    import nibabel as nib

    given = np.array([[[2**60 + 1]]])
    nib.save(nib.Nifti1Image(given, np.eye(4), dtype="int64"), folder / "x.nii")
    theirs = nib.load(folder / "x.nii").get_fdata().astype(np.int64)
    return given, theirs, reading(folder / "x.nii")


@exhibit(
    "nibabel",
    before="float64 (1, 1, 3) [[[0.1, 0.25, 0.5]]]",
    after="float64 (1, 1, 3) [[[0.09999999403953552, 0.25000228732824326, 0.5000000058671503]]]",
    ours="refused: value 0.1 of array 'origin' does not fit int16, at index [0, 0, 0]",
)
def set_data_dtype(folder: Path) -> Exhibited:
    """`set_data_dtype` rounds floats to 65,536 steps."""
    import nibabel as nib

    given = np.array([[[0.1, 0.25, 0.5]]])
    image = nib.Nifti1Image(given, np.eye(4))
    image.set_data_dtype(np.int16)
    nib.save(image, folder / "x.nii")
    theirs = np.asarray(nib.load(folder / "x.nii").dataobj)
    return given, theirs, through(folder / "ours.nii", given, dtype="int16")


@exhibit(
    "nibabel",
    before="float64 (1, 1, 3) [[[0.0, 100.5, -3.0]]]",
    after="uint8 (1, 1, 3) [[[0, 100, 0]]]",
    ours="refused: value 100.5 of array 'origin' does not fit uint8, at index [0, 0, 1]",
)
def fixed_slope(folder: Path) -> Exhibited:
    """With a fixed slope, floats lose what is behind the point."""
    import nibabel as nib

    given = np.array([[[0.0, 100.5, -3.0]]])
    image = nib.Nifti1Image(given, np.eye(4))
    image.header.set_slope_inter(1, 0)
    image.set_data_dtype(np.uint8)
    nib.save(image, folder / "x.nii")
    theirs = np.asarray(nib.load(folder / "x.nii").dataobj)
    return given, theirs, through(folder / "ours.nii", given, dtype="uint8")


@exhibit(
    "mrcfile",
    before="uint8 (1, 2) [[1, 2]]",
    after="uint16 (1, 2) [[1, 2]]",
    ours="exact",
)
def mrc(folder: Path) -> Exhibited:
    """Uint8 becomes uint16."""
    import mrcfile

    given = np.array([[1, 2]], np.uint8)
    with mrcfile.new(folder / "x.mrc") as file:
        file.set_data(given)
    with mrcfile.open(folder / "x.mrc") as file:
        theirs = np.array(file.data)
    return given, theirs, through(folder / "x.ra", given)


@exhibit(
    "h5py",
    before="int64 (2,) [300, -200]",
    after="int8 (2,) [127, -128]",
    ours="refused: value 300 of array 'origin' does not fit int8, at index [0]",
)
def clipped(folder: Path) -> Exhibited:
    """An assignment clips integers to the type of the dataset."""
    import h5py

    given = np.array([300, -200])
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("x", (2,), "i1")[...] = given
        theirs = file["x"][...]
    return given, theirs, through(folder / "ours.h5", given, dtype="int8")


@exhibit(
    "h5py",
    before="float64 (2,) [1.7, nan]",
    after="int32 (2,) [1, -2147483648]",
    ours="refused: value 1.7 of array 'origin' does not fit int32, at index [0]",
)
def truncated(folder: Path) -> Exhibited:
    """An assignment cuts floats to integers, NaN too."""
    import h5py

    given = np.array([1.7, np.nan])
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("x", (2,), "i4")[...] = given
        theirs = file["x"][...]
    return given, theirs, through(folder / "ours.h5", given, dtype="int32")


@exhibit(
    "h5py",
    before="S6 (2,) [b'abcdef', b'x']",
    after="S3 (2,) [b'abc', b'x']",
    ours="exact",
)
def cut_strings(folder: Path) -> Exhibited:
    """An assignment cuts strings to the length of the dataset."""
    import h5py

    given = np.array([b"abcdef", b"x"])
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("x", (2,), "S3")[...] = given
        theirs = file["x"][...]
    return given, theirs, through(folder / "ours.h5", given)


@exhibit(
    "netCDF4",
    before="int16 (3,) [1, 2, 3]",
    after="float64 (3,) [0.1, 0.2, 0.30000000000000004]",
    ours="exact",
)
def packed(folder: Path) -> Exhibited:
    """Packed integers come back as doubles."""
    import netCDF4

    given = np.array([1, 2, 3], np.int16)
    with netCDF4.Dataset(folder / "x.nc", "w") as file:
        file.createDimension("n", 3)
        variable = file.createVariable("x", "i2", ("n",))
        variable.set_auto_scale(False)
        variable.scale_factor = 0.1
        variable[:] = given
    with netCDF4.Dataset(folder / "x.nc") as file:
        theirs = np.asarray(file["x"][:])
    return given, theirs, reading(folder / "x.nc")


@exhibit(
    "xarray",
    before="int64 (2,) [1152921504606846977, 5]",
    after="float64 (2,) [1.152921504606847e+18, 5.0]",
    ours="exact",
)
def fill_value(folder: Path) -> Exhibited:
    """An int64 variable with a `_FillValue` comes back as double."""
    import xarray as xr

    given = np.array([2**60 + 1, 5])
    xr.Dataset({"x": ("n", given, {"_FillValue": -1})}).to_netcdf(folder / "x.nc")
    with xr.open_dataset(folder / "x.nc") as dataset:
        theirs = dataset["x"].values
    return given, theirs, reading(folder / "x.nc")


@exhibit(
    "pandas",
    before="int64 (1,) [1152921504606846977]",
    after="int64 (1,) [1152921504606846976]",
    ours="refused: the missing values in 'x' of the DataFrame would be lost",
)
def empty_cell(folder: Path) -> Exhibited:
    """A table with one empty cell rounds the integers of its column."""
    import pandas as pd

    given = np.array([2**60 + 1])
    pd.DataFrame({"x": pd.array([2**60 + 1, None], "Int64")}).to_csv(folder / "x.csv", index=False)
    theirs = pd.read_csv(folder / "x.csv")["x"].to_numpy()[:1].astype(np.int64)
    frame = pd.DataFrame({"x": pd.array([2**60 + 1, None], "Int64")})
    return given, theirs, through(folder / "x.h5", frame)


@exhibit(
    "pandas",
    before="float64 (2,) [0.3333333333333333, 2e-11]",
    after="float64 (2,) [0.33333333330000003, 0.0]",
    ours="exact",
)
def ten_digits(folder: Path) -> Exhibited:
    """`to_json` keeps ten digits behind the point."""
    import pandas as pd

    given = np.array([1 / 3, 2e-11])
    pd.DataFrame({"x": given}).to_json(folder / "x.json")
    theirs = pd.read_json(folder / "x.json")["x"].to_numpy()
    return given, theirs, through(folder / "x.h5", given)
