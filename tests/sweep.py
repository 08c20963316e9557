"""Compare what raconvert reads of the files in a folder with what other libraries read.

    python -m tests.sweep FOLDER [--verbose]

prints a table: for each format the files, and of these how many are equal (every array that the
other library reads has the same shape and the same bits), different, refused by raconvert, not read
by the other library, and without another reader here. Exit code 1 if any file is different.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import raconvert
from raconvert import Bundle
from raconvert.errors import RaconvertError
from raconvert.registry import row_of_folder

Arrays = dict[str, np.ndarray]
OUTCOMES = ("equal", "different", "refused", "not read by the other", "no other reader")
ONE = ""  # the name of the one array of a file
FRAMES = "frames"  # of an animation, RGBA, transparent pixels of any colour


def by_numpy(path: Path) -> Arrays:
    found = np.load(path)
    arrays = (
        {name: found[name] for name in found.files} if hasattr(found, "files") else {ONE: found}
    )
    return {name: values for name, values in arrays.items() if values.dtype.kind in "iufcb"}


def by_h5py(path: Path) -> Arrays:
    import h5py

    found: Arrays = {}

    def visit(name: str, item: Any) -> None:
        if (
            not isinstance(item, h5py.Dataset)
            or item.shape is None
            or item.dtype.kind not in "iufcb"
        ):
            return
        if not bytes(item.attrs.get("NAME", b"")).startswith(b"This is a netCDF dimension but"):
            found[name] = item[()]

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


def by_scipy(path: Path) -> Arrays:
    from scipy.io import loadmat

    found = loadmat(path, struct_as_record=True)
    return {
        name: values for name, values in found.items()
        if not name.startswith("__") and isinstance(values, np.ndarray)
        and values.dtype.kind in "iufcb"
    }  # fmt: skip


def by_pynrrd(path: Path) -> Arrays:
    import nrrd

    return {ONE: nrrd.read(str(path), index_order="F")[0].T}


def by_nibabel(path: Path) -> Arrays:
    import nibabel

    return {ONE: np.asarray(nibabel.load(path).dataobj.get_unscaled())}


def by_simpleitk(path: Path) -> Arrays:
    import SimpleITK

    return {ONE: SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(path)))}


def by_tifffile(path: Path) -> Arrays:
    import tifffile

    with tifffile.TiffFile(path) as file:
        return {ONE: file.series[0].asarray()}


def by_pillow(path: Path) -> Arrays:
    from PIL import Image

    if path.suffix == ".png" and path.read_bytes()[24:26] in (
        b"\x10\x02",
        b"\x10\x04",
        b"\x10\x06",
    ):
        raise ValueError("Pillow has no colours of 16 bits")
    with Image.open(path) as image:
        clear = "transparency" in image.info
        still = image.format == "PNG"  # of which the default image is read
        if (
            getattr(image, "n_frames", 1) > 1 and not still
        ):  # whatever its channels are, all of its frames
            frames = [np.asarray(image.convert("RGBA")) for _ in seeking(image)]
            return {FRAMES: np.stack(frames)}
        if image.mode == "P":
            return {ONE: np.asarray(image.convert("RGBA" if clear else "RGB"))}
        if image.mode not in ("1", "L", "RGB", "RGBA", "LA"):
            raise ValueError(f"mode {image.mode}")
        values = np.asarray(image)
        return {ONE: values * np.uint8(255) if still and image.mode == "1" else values}


def seeking(image: Any) -> Iterator[int]:
    """Yield the numbers of the frames, each when the image is at it."""
    for number in range(image.n_frames):
        image.seek(number)
        yield number


def by_safetensors(path: Path) -> Arrays:
    from safetensors.numpy import load_file

    return dict(load_file(path))


def by_zarr(path: Path) -> Arrays:
    import zarr

    opened = zarr.open(path, mode="r")
    if isinstance(opened, zarr.Array):
        return {ONE: opened[...]}
    return {
        name: item[...] for name, item in opened.members(max_depth=None)
        if isinstance(item, zarr.Array) and item.dtype.kind in "iufcb"
    }  # fmt: skip


def by_zarr_of_ome(path: Path) -> Arrays:
    """The first level of each image."""
    import zarr

    top = zarr.open_group(path, mode="r")
    groups = {ONE: top}
    groups |= {n: g for n, g in top.members(max_depth=None) if isinstance(g, zarr.Group)}
    found: Arrays = {}
    for name, group in groups.items():
        said = group.attrs.get("ome", group.attrs)
        for image in said.get("multiscales", []) if isinstance(said, Mapping) else []:
            level = group[image["datasets"][0]["path"]]
            found[name or path.name.removesuffix(".zarr").removesuffix(".ome")] = level[...]
    return found


def by_harpy(path: Path) -> Arrays:
    from harpy import HarFileIO

    with contextlib.redirect_stderr(io.StringIO()):  # it prints where it was
        found = HarFileIO.readHeaderArraysFromFile(str(path))
    arrays = {one["name"]: np.asarray(one["array"]) for one in found}
    return {
        name: values for name, values in arrays.items()
        if values.dtype.kind in "iuf" and not name.startswith("XX")  # of programs, not of people
    }  # fmt: skip


def by_netcdf4(path: Path) -> Arrays:
    import netCDF4

    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        found = {name: np.asarray(one[...]) for name, one in file.variables.items()}
    return {name: values for name, values in found.items() if values.dtype.kind in "iuf"}


def by_astropy(path: Path) -> Arrays:
    """The stored numbers of the images; unsigned integers as such."""
    from astropy.io import fits

    found: Arrays = {}
    with fits.open(path, memmap=False, do_not_scale_image_data=True) as file:
        for number, one in enumerate(file):
            if one.is_image and one.data is not None and not isinstance(one, fits.CompImageHDU):
                values, card = np.asarray(one.data), one.header.get("BZERO")
                bits = 8 * values.itemsize
                if values.dtype.kind == "i" and card == 1 << (bits - 1):
                    values = (values.astype("i8") + (1 << (bits - 1))).astype(f"u{bits // 8}")
                version = f",{one.ver}" if one.name and one.ver != 1 else ""
                found[(one.name or f"HDU{number}") + version] = values
    return found


def by_mrcfile(path: Path) -> Arrays:
    import mrcfile

    with mrcfile.open(path, permissive=True) as file:
        return {ONE: np.array(file.data)}


def by_pydicom(path: Path) -> Arrays:
    """The frames by position and what else tells them apart, tiles of a mosaic as slices."""
    import pydicom

    ds = pydicom.dcmread(path)
    # Decoders of lossy JPEG differ in the last bits: the one that is taken here, too.
    with contextlib.suppress(Exception):
        decoder = pydicom.pixels.get_decoder(ds.file_meta.TransferSyntaxUID)
        if "pylibjpeg" in decoder.available_plugins:
            ds.pixel_array_options(decoding_plugin="pylibjpeg")
    values = np.asarray(ds.pixel_array)
    tiles = ds.get((0x0019, 0x100A))  # Siemens: NumberOfImagesInMosaic, beside the CSA header
    if tiles is not None and "MOSAIC" in ds.ImageType:
        count = int(tiles.value)
        across = int(np.ceil(np.sqrt(count)))
        rows, columns = (length // across for length in values.shape)
        cut = values.reshape(across, rows, across, columns).swapaxes(1, 2)
        return {ONE: cut.reshape(-1, rows, columns)[:count]}
    order = _order_of_frames(ds)
    return {ONE: values if order is None else values[order]}


def _order_of_frames(ds: Any) -> Any:
    """The order of frames by time, b-value, further indices and place; None if nothing says it."""
    groups = ds.get("PerFrameFunctionalGroupsSequence") or []
    shared = (ds.get("SharedFunctionalGroupsSequence") or [None])[0]
    if len(groups) < 2 or any("PlanePositionSequence" not in group for group in groups):
        return None
    plane = groups[0] if "PlaneOrientationSequence" in groups[0] else shared
    cosines = np.array(plane.PlaneOrientationSequence[0].ImageOrientationPatient, float)
    normal = np.cross(cosines[:3], cosines[3:])
    places = [group.PlanePositionSequence[0].ImagePositionPatient for group in groups]
    contents = [group.FrameContentSequence[0] for group in groups]
    weights = [group.MRDiffusionSequence[0].get("DiffusionBValue", 0)
               if "MRDiffusionSequence" in group else 0 for group in groups]  # fmt: skip
    slices = np.array([one.get("InStackPositionNumber", 0) for one in contents])
    indices = np.array([np.ravel(one.get("DimensionIndexValues", 0)) for one in contents])
    further = [column for column in indices.T if not np.array_equal(column, slices)]
    times = [one.get("TemporalPositionIndex", 0) for one in contents]
    along = np.round(np.array(places, float) @ normal, 3)
    return np.lexsort((along, *reversed(further), weights, times))


def by_tifffile_of_ome(path: Path) -> Arrays:
    import tifffile

    with tifffile.TiffFile(path) as file:
        return {ONE: np.asarray(file.series[0].asarray(level=0))}


def by_edfio(path: Path) -> Arrays:
    """The digital numbers by label, of those that are there once."""
    import edfio

    reader = edfio.read_bdf if path.read_bytes()[:1] == b"\xff" else edfio.read_edf
    signals = reader(path).signals
    labels = [one.label.replace("/", "_") for one in signals]
    return {
        label: one.digital
        for label, one in zip(labels, signals, strict=True)
        if labels.count(label) == 1
    }


def by_tfrecord(path: Path) -> Arrays:
    """Features that are numbers, as many in each record."""
    from tfrecord import tfrecord_loader

    found: dict[str, list[Any]] = {}
    for one in tfrecord_loader(str(path), None):
        for name, value in one.items():
            found.setdefault(name, []).append(value)
    shapes = {name: {np.shape(one) for one in rows} for name, rows in found.items()}
    arrays = {name: np.array(rows) for name, rows in found.items() if len(shapes[name]) == 1}
    return {
        name: np.squeeze(values, 1) if values.shape[1:] == (1,) else values
        for name, values in arrays.items()
        if values.dtype.kind in "if"
    }


READERS: dict[str, Callable[[Path], Arrays]] = {
    "npy": by_numpy, "npz": by_numpy, "hdf5": by_h5py, "mat": by_scipy, "nrrd": by_pynrrd,
    "nifti": by_nibabel, "metaimage": by_simpleitk, "tiff": by_tifffile, "png": by_pillow,
    "gif": by_pillow, "bmp": by_pillow, "jpeg": by_pillow, "netpbm": by_pillow,
    "webp": by_pillow, "safetensors": by_safetensors, "zarr": by_zarr, "omezarr": by_zarr_of_ome, "har": by_harpy,
    "netcdf3": by_netcdf4, "fits": by_astropy, "mrc": by_mrcfile,
    "dicom": by_pydicom, "edf": by_edfio, "tfrecord": by_tfrecord, "ometiff": by_tifffile_of_ome,
}  # fmt: skip

SQUEEZED = ("ometiff",)  # whose other reader leaves out axes of length 1
STACKED = ("dicom",)  # whose other reader knows no axes but that of all frames


def files_below(folder: Path) -> list[Path]:
    """The files, and the Zarr stores as one each."""
    found = []
    for root, folders, names in os.walk(folder):
        stores = [one for one in folders if one.endswith(".zarr")]
        folders[:] = sorted(set(folders) - set(stores))
        found += [Path(root, one) for one in (*stores, *names)]
    return sorted(found)


def compared(path: Path) -> tuple[str, str, str]:
    """Format, outcome and reason for one file."""
    try:
        row = row_of_folder(str(path)) if path.is_dir() else None
        name = row.name if row else raconvert.probe(path).format or "unknown"
    except RaconvertError as error:
        return "unknown", "refused", str(error).splitlines()[0]
    reader = READERS.get(name)
    if reader is None:
        return name, "no other reader", ""
    try:
        ours = _ours(path)
    except RaconvertError as error:
        return name, "refused", str(error).splitlines()[0]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = reader(path)
    except Exception as error:  # noqa: BLE001 - whatever another library raises
        return name, "not read by the other", f"{type(error).__name__}: {error}"[:100]
    ours, theirs = _alike(ours, theirs)
    if theirs.keys() == {ONE} and len(ours) == 1:  # of a container with a name of its own
        ours = {ONE: next(iter(ours.values()))}
    for key, values in theirs.items():
        own = _as_the_other(name, ours.get(key), values)
        if own is None or not _is_same(own, values):
            shape = None if own is None else own.shape
            return name, "different", f"array '{key}': {shape} here, {values.shape} there"
    return name, "equal", ""


def _alike(ours: Arrays, theirs: Arrays) -> tuple[Arrays, Arrays]:
    """Animations as pixels that are shown, whatever channels they have; others as they are."""
    if FRAMES not in theirs:
        return ours, theirs
    return {ONE: _shown(ours[ONE])}, {ONE: _shown(theirs[FRAMES])}


def _shown(values: np.ndarray) -> np.ndarray:
    """Frames as RGBA; of transparent pixels the colour does not count."""
    opaque = np.full((*values.shape[:-1], 4 - values.shape[-1]), 255, values.dtype)
    whole = np.concatenate([values, opaque], axis=-1)
    return np.where(whole[..., 3:] > 0, whole, 0)


def _ours(path: Path) -> Arrays:
    """What raconvert reads of a file; raises the problem of one of which no array is read."""
    with raconvert.open(path) as opened:
        if not isinstance(opened, Bundle):
            return {ONE: np.asarray(opened)}
        problems = [one.problem for one in opened.values() if one.problem is not None]
        if len(problems) == len(opened):
            raise problems[0]
        return {key: np.asarray(one) for key, one in opened.items() if one.problem is None}


def _as_the_other(name: str, own: np.ndarray | None, other: np.ndarray) -> np.ndarray | None:
    """The array without what the other reader of a format has no axes for."""
    if own is not None and name in SQUEEZED:
        return np.squeeze(own)
    frame = other.shape[1:]
    if own is not None and name in STACKED and own.shape[own.ndim - len(frame) :] == frame:
        return own.reshape(-1, *frame)
    return own


def _is_same(own: np.ndarray, other: np.ndarray) -> bool:
    """True for the same shape and bits, in whatever order of bytes."""
    if own.shape not in (other.shape, other.T.shape):
        return False
    if own.shape != other.shape:
        other = other.T  # a reader that lists axes the other way
    if own.dtype.kind != other.dtype.kind:
        return bool(np.array_equal(own, other))
    return bool(np.array_equal(own, other, equal_nan=own.dtype.kind in "fc"))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sweep", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--verbose", action="store_true", help="a line for each file that differs")
    args = parser.parse_args(arguments)
    table: dict[str, Counter[str]] = {}
    for path in files_below(args.folder):
        name, outcome, reason = compared(path)
        table.setdefault(name, Counter())[outcome] += 1
        if outcome == "different" or (args.verbose and reason):
            print(f"{path}: {outcome}: {reason}")
    print("format".ljust(14), "files".rjust(6), *(one.rjust(len(one) + 2) for one in OUTCOMES))
    for name in sorted(table):
        counts = [str(table[name][one]).rjust(len(one) + 2) for one in OUTCOMES]
        print(name.ljust(14), str(table[name].total()).rjust(6), *counts)
    return 1 if any(row["different"] for row in table.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
