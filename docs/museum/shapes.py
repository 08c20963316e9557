"""Exhibits: axes and orders that change, and values that land elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from . import Exhibited, exhibit, reading, through


@exhibit(
    "safetensors",
    before="int64 (2, 3) [[0, 1, 2], [3, 4, 5]]",
    after="int64 (2, 3) [[0, 3, 1], [4, 2, 5]]",
    ours="exact",
)
def fortran(folder: Path) -> Exhibited:
    """An array in Fortran order comes back scrambled."""
    from safetensors.numpy import load_file, save_file

    given = np.asfortranarray(np.arange(6).reshape(2, 3))
    save_file({"x": given}, folder / "x.safetensors")
    theirs = load_file(folder / "x.safetensors")["x"]
    return given, theirs, through(folder / "ours.safetensors", given)


@exhibit(
    "safetensors",
    before="int64 (3,) [0, 2, 4]",
    after="int64 (3,) [0, 1, 2]",
    ours="exact",
)
def strided(folder: Path) -> Exhibited:
    """Every second element of an array comes back as the first half."""
    from safetensors.numpy import load_file, save_file

    given = np.arange(6)[::2]
    save_file({"x": given}, folder / "x.safetensors")
    theirs = load_file(folder / "x.safetensors")["x"]
    return given, theirs, through(folder / "ours.safetensors", given)


@exhibit(
    "tifffile",
    before="uint8 (1, 2, 5, 4)",
    after="uint8 (2, 5, 4)",
    ours="exact",
)
def ome(folder: Path) -> Exhibited:
    """OME-TIFF loses axes of length one."""
    import tifffile

    given = np.zeros((1, 2, 5, 4), np.uint8)
    tifffile.imwrite(folder / "x.ome.tif", given)
    theirs = tifffile.imread(folder / "x.ome.tif")
    return given, theirs, through(folder / "ours.tif", given)


@exhibit(
    "tifffile",
    before="uint8 (1, 2, 5, 4)",
    after="uint8 (2, 5, 4)",
    ours="exact",
)
def imagej(folder: Path) -> Exhibited:
    """TIFF for ImageJ loses axes of length one."""
    import tifffile

    given = np.zeros((1, 2, 5, 4), np.uint8)
    tifffile.imwrite(folder / "x.tif", given, imagej=True)
    theirs = tifffile.imread(folder / "x.tif")
    return given, theirs, through(folder / "ours.tif", given)


@exhibit(
    "scipy",
    before="int64 (3,) [0, 1, 2]",
    after="int64 (1, 3) [[0, 1, 2]]",
    ours="said: shape: one axis of 3 becomes 1 x 3",
)
def row(folder: Path) -> Exhibited:
    """`savemat` turns an array with one axis into a row."""
    from scipy.io import loadmat, savemat

    given = np.arange(3)
    savemat(folder / "x.mat", {"x": given})
    theirs = loadmat(folder / "x.mat")["x"]
    return given, theirs, through(folder / "ours.mat", given)


@exhibit(
    "pynrrd",
    before="int16 (2, 3) [[0, 1, 2], [3, 4, 5]]",
    after="int16 (3, 2) [[0, 3], [1, 4], [2, 5]]",
    ours="exact",
)
def reversed_axes(folder: Path) -> Exhibited:
    """A file of raw data is read with its axes reversed, unless one asks."""
    import nrrd

    given = np.arange(6, dtype=np.int16).reshape(2, 3)
    nrrd.write(str(folder / "x.nrrd"), given, index_order="C")
    theirs, _ = nrrd.read(str(folder / "x.nrrd"))
    return given, theirs, reading(folder / "x.nrrd", index_order="C")
