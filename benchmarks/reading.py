"""One array of each format, read whole in one process: raconvert and the libraries people use.

    python benchmarks/reading.py [--mib 16] [--rounds 5] [--dir /dev/shm]

Each file is made by another program than raconvert where there is one. What is read is compared
with what was written, for every library; libraries that are not installed take no part. The base
is `raconvert.read`: a library with a ratio below 1 is faster than that.
"""

from __future__ import annotations

import argparse
import os
import sys
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from _measure import heading, in_process, interleave, machine, table, workspace

import raconvert

# `nrrd` is a library here, not the program beside this one.
sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]

Reader = Callable[[str], Any]
OURS = "raconvert"
SMALL_BYTES = 1 << 16  # a file below this is read so often that its time can be measured:
SMALL_CALLS = 200
# Modules of the libraries, of which every one may be missing.
PEERS = (
    "h5py", "hidefix", "imagecodecs", "imageio", "mat73", "nrrd", "pillow", "safetensors", "scipy",
    "SimpleITK", "tensorstore", "zarr",
)  # fmt: skip


def main() -> None:
    """Make a file of each format, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mib", type=int, default=16, help="size of each array in MiB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    options = parser.parse_args()
    print(f"arrays of {options.mib} MiB")
    machine("numpy", *("pynrrd" if peer == "nrrd" else peer for peer in PEERS))
    rng = np.random.default_rng(1)
    walk = np.cumsum(rng.standard_normal((options.mib * 128, 1024)), axis=0).round(3)
    for title, suffix, make, readers in CASES:
        with workspace(options.dir) as space:
            path = os.path.join(space, f"x{suffix}")
            try:
                truth = make(path, walk)
            except ImportError as error:
                print(f"{title}: left out, {error.name} is not installed\n")
                continue
            measure(title, path, truth, readers, options.rounds)


def measure(title: str, path: str, truth: Any, readers: dict[str, Reader], rounds: int) -> None:
    """Compare what each reads with the truth, then measure it."""
    found: dict[str, Callable[[], object]] = {}
    for name, read in {OURS: ours, **readers}.items():
        try:
            values = np.asarray(read(path))
        except ImportError as error:
            print(f"{name}: left out, {error.name} is not installed")
            continue
        same = values if values.shape == truth.shape else values.T
        assert np.array_equal(same, truth), (title, name)
        del values, same
        calls = SMALL_CALLS if os.path.isfile(path) and os.path.getsize(path) < SMALL_BYTES else 1
        found[name] = lambda read=read, calls=calls: [  # type: ignore[misc]
            read(path) for _ in range(calls)
        ]
    heading(title)
    contenders = {name: in_process(function) for name, function in found.items()}
    table(interleave(contenders, rounds), OURS, memory=False, by="cpu")


def ours(path: str) -> Any:
    """What `raconvert.read` gives: of a container, its only array."""
    found = raconvert.read(path)
    return next(iter(found.values())) if isinstance(found, dict) else found


# Files ------------------------------------------------------------------------------------------


def make_npy(path: str, x: Any) -> Any:
    """Written by numpy."""
    np.save(path, x)
    return x


def make_h5(path: str, x: Any, **how: Any) -> Any:
    """Written by h5py, as it is told."""
    h5py = import_module("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=x, **how)
    return x


def make_mat73(path: str, x: Any, **how: Any) -> Any:
    """As MATLAB writes a double, by h5py."""
    h5py = import_module("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        made = file.create_dataset("x", data=x.T, **how)
        made.attrs["MATLAB_class"] = np.bytes_("double")
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, made for a benchmark".ljust(116) + bytes(8) + b"\0\2IM")
    return x


def make_mat73_tiny(path: str, x: Any) -> Any:
    """One variable of a kB."""
    return make_mat73(path, x[:8, :16])


def make_mat73_cell(path: str, x: Any) -> Any:
    """A struct of 1,000 small matrices, of which the first counts as the truth."""
    h5py = import_module("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        group = file.create_group("s")
        group.attrs["MATLAB_class"] = np.bytes_("struct")
        for number in range(1000):
            made = group.create_dataset(f"x{number:03}", data=x[number % len(x), :12].reshape(3, 4))
            made.attrs["MATLAB_class"] = np.bytes_("double")
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, made for a benchmark".ljust(116) + bytes(8) + b"\0\2IM")
    return x[0, :12].reshape(3, 4).T


def make_mat7(path: str, x: Any) -> Any:
    """Written by scipy, compressed."""
    import_module("scipy.io").savemat(path, {"x": x}, do_compression=True)
    return x


def make_nrrd(path: str, x: Any, encoding: str) -> Any:
    """Raw, or gzip of the level that people have by default."""
    head = f"NRRD0004\ntype: double\ndimension: 2\nsizes: {x.shape[1]} {x.shape[0]}\n"
    data = x.tobytes()
    if encoding == "gzip":
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        data = packer.compress(data) + packer.flush()
    with open(path, "wb") as file:
        file.write(f"{head}endian: little\nencoding: {encoding}\n\n".encode() + data)
    return x


def make_png(path: str, x: Any) -> Any:
    """Written by Pillow."""
    image = (x - x.min(axis=0)).astype("u1")
    import_module("PIL.Image").fromarray(image).save(path)
    return image


def make_safetensors(path: str, x: Any) -> Any:
    """Written by safetensors."""
    import_module("safetensors.numpy").save_file({"x": x}, path)
    return x


def make_zarr(path: str, x: Any) -> Any:
    """Written by zarr, version 3, with its default codec."""
    zarr = import_module("zarr")
    zarr.create_array(path, data=x, chunks=(512, 1024))
    return x


# Libraries --------------------------------------------------------------------------------------


def with_h5py(path: str) -> Any:
    """A dataset, whole."""
    with import_module("h5py").File(path) as file:
        return file["x"][()]


def with_hidefix(path: str) -> Any:
    """A dataset, by threads of its own."""
    return import_module("hidefix").Index(path).dataset("x")[()]


def with_simpleitk(path: str) -> Any:
    """An image of any format that ITK knows."""
    itk = import_module("SimpleITK")
    return itk.GetArrayFromImage(itk.ReadImage(path))


def with_pillow(path: str) -> Any:
    """An image."""
    with import_module("PIL.Image").open(path) as image:
        return np.asarray(image)


def with_imagecodecs(path: str) -> Any:
    """The pixels of a PNG."""
    with open(path, "rb") as file:
        return import_module("imagecodecs").png_decode(file.read())


def with_tensorstore(path: str) -> Any:
    """An array of Zarr, version 3."""
    store = {"driver": "zarr3", "kvstore": {"driver": "file", "path": os.path.abspath(path)}}
    return import_module("tensorstore").open(store).result().read().result()


H5PY = {"h5py": with_h5py, "hidefix": with_hidefix}
MAT73 = {"mat73": lambda path: import_module("mat73").loadmat(path)["x"]}
NRRD = {
    "pynrrd": lambda path: import_module("nrrd").read(path, index_order="C")[0],
    "SimpleITK": with_simpleitk,
}
# title, suffix, what makes the file and returns the truth, who reads it
CASES: list[tuple[str, str, Callable[[str, Any], Any], dict[str, Reader]]] = [
    ("NPY", ".npy", make_npy, {"numpy": np.load}),
    ("HDF5, contiguous", ".h5", make_h5, H5PY),
    (
        "HDF5, gzip",
        ".h5",
        lambda path, x: make_h5(path, x, compression=4, chunks=(min(128, len(x)), 1024)),
        H5PY,
    ),
    ("MAT v7.3", ".mat", make_mat73, MAT73),
    (
        "MAT v7.3, gzip",
        ".mat",
        lambda path, x: make_mat73(path, x, compression=3, chunks=(128, min(512, len(x)))),
        MAT73,
    ),
    ("MAT v7.3, one variable of 1 kB, 200 times", ".mat", make_mat73_tiny, MAT73),
    (
        "MAT v7.3, a struct of 1,000 matrices",
        ".mat",
        make_mat73_cell,
        {"mat73": lambda path: import_module("mat73").loadmat(path)["s"]["x000"]},
    ),
    (
        "MAT v7",
        ".mat",
        make_mat7,
        {"scipy": lambda path: import_module("scipy.io").loadmat(path)["x"]},
    ),
    ("NRRD, raw", ".nrrd", lambda path, x: make_nrrd(path, x, "raw"), NRRD),
    ("NRRD, gzip", ".nrrd", lambda path, x: make_nrrd(path, x, "gzip"), NRRD),
    (
        "PNG, 8 bits in the place of 64",
        ".png",
        make_png,
        {
            "Pillow": with_pillow,
            "imageio": lambda path: import_module("imageio.v3").imread(path),
            "imagecodecs": with_imagecodecs,
        },
    ),
    (
        "safetensors",
        ".safetensors",
        make_safetensors,
        {"safetensors": lambda path: import_module("safetensors.numpy").load_file(path)["x"]},
    ),
    (
        "Zarr",
        ".zarr",
        make_zarr,
        {
            "zarr": lambda path: import_module("zarr").open_array(path, mode="r")[...],
            "tensorstore": with_tensorstore,
        },
    ),
]


if __name__ == "__main__":
    main()
