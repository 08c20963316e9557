"""MAT with scipy, and version 7.3 with h5py, for the suites over all pairs of formats."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
from pairs import NAME, Pairs, nothing_said

NUMBERS = {"double": "f8", "single": "f4", "logical": "?"}


def write(path: Path, values: np.ndarray) -> None:
    from scipy.io import savemat

    savemat(path, {NAME: values}, appendmat=False)


def read(path: Path) -> np.ndarray:
    """Return a variable by its class: loadmat gives what numbers are stored in."""
    from scipy.io import loadmat, whosmat

    [(name, shape, cls)] = whosmat(path, appendmat=False)
    assert name == NAME
    values = loadmat(path, mat_dtype=False, chars_as_strings=False, appendmat=False)[NAME]
    if cls == "char":
        return _strings(values)
    assert values.shape == tuple(shape)
    dtype = np.dtype(NUMBERS.get(cls, cls))
    if values.dtype.kind == "c":
        dtype = np.dtype(f"c{2 * dtype.itemsize}")
    return values.astype(dtype)


def read_73(path: Path) -> np.ndarray:
    """Return a variable of a MAT file of version 7.3, which is HDF5, with its dims reversed."""
    import h5py

    assert path.read_bytes().startswith(b"MATLAB 7.3 MAT-file")
    with h5py.File(path) as file:
        dataset = file[NAME]
        cls = dataset.attrs["MATLAB_class"].decode()
        if (
            "MATLAB_empty" in dataset.attrs
        ):  # nothing but dims, of complex numbers too; ours says so
            number = "c8" if "RACONVERT_complex" in dataset.attrs else "f8"
            values = np.zeros(dataset[()], number)
        else:
            values = dataset[()].T
    if cls == "char":
        return _strings(values.astype("<u4").view("<U1"))
    dtype = np.dtype(NUMBERS.get(cls, cls))
    if values.dtype.names:
        assert values.dtype.names == ("real", "imag")
        values = np.ascontiguousarray(values).view(f"c{2 * dtype.itemsize}")
    if values.dtype.kind == "c":
        dtype = np.dtype(f"c{2 * dtype.itemsize}")
    return values.astype(dtype)


def _strings(units: np.ndarray) -> np.ndarray:
    """Return the strings of a char array: the last axis has the characters."""
    units = np.ascontiguousarray(units)
    return units.view(f"<U{units.shape[-1]}")[..., 0]


def can_write(values: np.ndarray) -> bool:
    """True if MATLAB itself has the shape (two axes at least, no 1 at the end of more) and type."""
    shape, dtype = values.shape, values.dtype
    matlab = len(shape) == 2 or (len(shape) > 2 and shape[-1] != 1)
    return dtype.kind in "iufcb" and dtype not in (np.float16, ml_dtypes.bfloat16) and matlab


def counts(values: np.ndarray) -> np.ndarray:
    return values.view("<i8")


def bytes_first(values: np.ndarray) -> np.ndarray:
    """Return the bytes of the elements on a new first axis, as MATLAB counts them."""
    raw = np.frombuffer(values.tobytes(), "u1").reshape(*values.shape, values.itemsize)
    return np.moveaxis(raw, -1, 0)


# No half floats but double, which holds bfloat16, too; strings are rows of char arrays; dates would
# be bare counts. Two axes at least; MATLAB drops axes of one element at the end, from the third on.
IN_PAIRS = (
    Pairs(
        name="mat",
        suffix=".mat",
        read=read,
        write=write,
        can_write=can_write,
        order="F",
        types="""
            = bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64
              complex128 int16_big uint16_big int64_big float32_big complex128_big
            ~ float16 bfloat16 bytes text text_big
            x datetime seconds timedelta structured void
        """,
        shapes="""
            = 4,6 6,4 1,1 4,0 0,4 1,6,4 4,6,2 2,6,4 4,6,3 3,6,4 4,6,5 5,6,4 2,0,3 3,0,2
              2,3,4,3 3,4,3,2
            ~ () 5 0 4,6,1 1,1,3,1 1,3,1,1
        """,
        most_axes={"float32": 64},
        allowed={
            "datetime": ("dtype", counts),
            "timedelta": ("dtype", counts),
            "structured": ("dtype", bytes_first),
            "void": ("dtype", bytes_first),
        },
        said=nothing_said,
    ),
)
