"""The array `vals` of a file of any format in logical order, not read by the code under test.

NumPy, pypng, h5py, scipy, pynrrd, harpy3, tifffile and Pillow read what they read well. Where they
do not, the place says so: harpy3 has no scalars, pynrrd no blocks, scipy takes the last axis of
char arrays for the characters.
"""

from __future__ import annotations

import io
import json
import re
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import yaml
from pairs import collected
from writers import NAME, RA_CODES, SCIDB_TYPES, quiet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

RA_DTYPES = {(1, 5): "?", (2, 5): ml_dtypes.bfloat16}


# RA, and bundles of it ---------------------------------------------------------------------------


def sidecar(path: Path) -> dict[str, Any]:
    beside = Path(f"{path}.yaml")
    return yaml.safe_load(beside.read_text(encoding="utf-8")) if beside.exists() else {}


def ra(path: Path) -> np.ndarray:
    return _ra_values(path.read_bytes(), sidecar(path))


def _ra_values(contents: bytes, told: dict[str, Any]) -> np.ndarray:
    """Return a plain .ra: dims reversed, or as they stand where the sidecar says F."""
    magic, flags, eltype, elbyte, size, ndims = struct.unpack_from("<8s5Q", contents)
    dims = struct.unpack_from(f"<{ndims}Q", contents, 48)
    data = contents[48 + 8 * ndims :]
    assert (magic, flags, size) == (b"rawarray", 0, len(data))
    kind = {code: kind for kind, code in RA_CODES.items()}.get(eltype)
    dtype = RA_DTYPES.get((elbyte, eltype)) or f"<{kind}{elbyte}"
    if eltype == 0:
        dtype = told.get("dtype", f"V{elbyte}")
        if isinstance(dtype, list):
            dtype = [tuple(tuple(x) if isinstance(x, list) else x for x in f) for f in dtype]
    values = np.frombuffer(data, np.dtype(dtype)).reshape(dims[::-1])
    return values.T if told.get("index_order") == "F" else values


def _bundle_values(members: Mapping[str, bytes]) -> np.ndarray:
    [entry] = yaml.safe_load(members["bundle.yaml"])["arrays"]
    assert entry["name"] == NAME
    beside = yaml.safe_load(members.get(f"{entry['file']}.yaml", b"{}"))
    order = entry.get("index_order", "C")
    assert beside.get("index_order", order) == order
    return _ra_values(members[entry["file"]], {**beside, "index_order": order})


def bundle(path: Path) -> np.ndarray:
    return _bundle_values({file.name: file.read_bytes() for file in path.iterdir()})


def zipped(path: Path) -> np.ndarray:
    with zipfile.ZipFile(path) as archive:
        return _bundle_values({name: archive.read(name) for name in archive.namelist()})


def tarred(path: Path) -> np.ndarray:
    with tarfile.open(path) as archive:
        files = {one.name: archive.extractfile(one) for one in archive.getmembers()}
        return _bundle_values({name: file.read() for name, file in files.items() if file})


# Images ------------------------------------------------------------------------------------------


def png(path: Path) -> np.ndarray:
    import png as pypng

    with path.open("rb") as file:
        width, height, rows, facts = pypng.Reader(file).read()
        values = np.array([list(row) for row in rows])
    if facts["bitdepth"] == 1:
        return values.astype("?")
    shape = (height, width) if facts["planes"] == 1 else (height, width, facts["planes"])
    return values.reshape(shape).astype(f"u{facts['bitdepth'] // 8}")


def tiff(path: Path) -> np.ndarray:
    import tifffile

    with quiet():
        return tifffile.imread(path)


def pillow(path: Path) -> np.ndarray:
    from PIL import Image

    with Image.open(path) as image:
        return np.array(image)


def netpbm(path: Path) -> np.ndarray:
    """Return a binary PGM or PPM, of which Pillow gives 16-bit colours as 8-bit ones."""
    magic, width, height, top, data = re.match(
        rb"P([56])\s+(\d+)\s+(\d+)\s+(\d+)\s(.*)", path.read_bytes(), re.DOTALL
    ).groups()  # type: ignore[union-attr]
    shape = (int(height), int(width), *([3] if magic == b"6" else []))
    return np.frombuffer(data, "u1" if int(top) < 256 else ">u2").reshape(shape)


# Containers and the rest -------------------------------------------------------------------------


def hdf5(path: Path) -> np.ndarray:
    import h5py

    with h5py.File(path) as file:
        dataset = file[NAME]
        stored = dataset.id.get_type()
        if (stored.get_class(), stored.get_size()) == (h5py.h5t.FLOAT, 2):
            return _halves(dataset)
        values = np.array(dataset)
        text = h5py.check_string_dtype(dataset.dtype)
        if text is not None and text.encoding == "utf-8":
            return np.char.decode(values, "utf-8")
        # h5py notes in the dtype what it was in the file
        return values if values.dtype.names else values.view(values.dtype.str)


def _halves(dataset: Any) -> np.ndarray:
    """Return 16-bit floats: IEEE's, or bfloat16 as the library widens it, which loses no bit."""
    import h5py

    exponent_bits = dataset.id.get_type().get_fields()[2]
    if exponent_bits == 5:
        return np.array(dataset)
    assert exponent_bits == 8
    wide = np.empty(dataset.shape, "<f4")
    dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, wide, h5py.h5t.IEEE_F32LE)
    return (wide.view("<u4") >> 16).astype("<u2").view(ml_dtypes.bfloat16)


MAT_TYPES = {"double": "f8", "single": "f4", "logical": "?"}


def mat(path: Path) -> np.ndarray:
    """Return a variable by its class: loadmat gives what numbers are stored in."""
    from scipy.io import loadmat, whosmat

    [(name, shape, cls)] = whosmat(path, appendmat=False)
    assert name == NAME
    values = loadmat(path, mat_dtype=False, chars_as_strings=False, appendmat=False)[NAME]
    if cls == "char":
        return _strings(values)
    assert values.shape == tuple(shape)
    dtype = np.dtype(MAT_TYPES.get(cls, cls))
    if values.dtype.kind == "c":
        dtype = np.dtype(f"c{2 * dtype.itemsize}")
    return values.astype(dtype)


def mat_73(path: Path) -> np.ndarray:
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
    dtype = np.dtype(MAT_TYPES.get(cls, cls))
    if values.dtype.names:
        assert values.dtype.names == ("real", "imag")
        values = np.ascontiguousarray(values).view(f"c{2 * dtype.itemsize}")
    if values.dtype.kind == "c":
        dtype = np.dtype(f"c{2 * dtype.itemsize}")
    return values.astype(dtype)


def _strings(units: np.ndarray) -> np.ndarray:
    """Return the rows of a char array: the second axis has the characters."""
    units = np.ascontiguousarray(np.moveaxis(units, 1, -1))
    return units.view(f"<U{units.shape[-1]}")[..., 0]


def nrrd(path: Path) -> np.ndarray:
    """Return an array with its axes reversed, or as they stand where a pair of ours says F."""
    import nrrd as pynrrd

    contents = path.read_bytes()
    header, _, data = contents.partition(b"\n\n")
    fields = dict(line.split(": ", 1) for line in header.decode().splitlines()[1:] if ": " in line)
    ours = re.search(rb"^raconvert:=(.*)$", header, re.MULTILINE)
    told = json.loads(ours[1].replace(b"\\\\", b"\\")) if ours else {}
    if fields["type"] == "block":  # pynrrd has no blocks
        sizes = [int(size) for size in fields["sizes"].split()]
        values = np.frombuffer(data, f"V{fields['block size']}").reshape(sizes[::-1])
    else:
        with quiet():
            values, _ = pynrrd.read(str(path), index_order="C")
    pairs = fields.get("kinds", "").startswith("complex")
    if told.get("index_order") == "F":
        axes = tuple(range(values.ndim - pairs))[::-1]
        values = values.transpose((*axes, values.ndim - 1) if pairs else axes)
    return values


def scidb(path: Path) -> np.ndarray:
    """Return the records in the shape of the schema: one chunk, so in row-major order."""
    schema = Path(f"{path}.schema").read_text(encoding="utf-8")
    name, dims, kind, width = re.match(
        r"<(\w+):[^>]*>\[(.*)\]\nformat: \((\w+)(?:\((\d+)\))?\)\n", schema
    ).groups()  # type: ignore[union-attr]
    assert name == NAME
    shape = []
    for dim in dims.split("; "):
        _, low, high, overlap, chunk = re.match(
            r"(\w+)=(-?\d+):(-?\d+)(?::(\d+):(\d+))?$", dim
        ).groups()  # type: ignore[union-attr]
        shape.append(int(high) - int(low) + 1)
        assert overlap in (None, "0")
        assert chunk in (None, str(max(1, shape[-1])))
    codes = {word: code for code, word in SCIDB_TYPES.items()} | {"bool": "u1", "datetime": "M8[s]"}
    dtype = np.dtype(f"V{width}" if width else codes[kind])
    return np.frombuffer(path.read_bytes(), dtype).reshape(shape)


def har(path: Path) -> np.ndarray:
    """Return an array as harpy3 gives it, which has no scalars, and no signalling NaNs."""
    from harpy import HarFileIO

    with quiet():
        [found] = HarFileIO.readHeaderArraysFromFile(str(path))
    assert found["name"].strip() == NAME
    values = found["array"]
    if found["data_type"] != "RE":
        return values
    records = _har_records(path)
    if struct.unpack_from("<i", records[2], 12) == (0,):
        values = values.reshape(())
    if found["storage_type"] == "FULL":  # in one part: its numbers end the file
        bits = np.frombuffer(records[-1][8:], "<f4").reshape(values.shape, order="F")
        assert np.array_equal(bits, values, equal_nan=True)
        return bits
    return values


def _har_records(path: Path) -> list[bytes]:
    """Return the records of a file, without their marks."""
    file, records = io.BytesIO(path.read_bytes()), []
    while mark := file.read(4):
        records.append(file.read(struct.unpack("<i", mark)[0]))
        assert file.read(4) == mark
    return records


READERS: dict[str, Callable[[Path], np.ndarray]] = {
    "ra": ra, "bundle": bundle, "zip": zipped, "tar": tarred, "png": png,
    "tiff": tiff, "hdf5": hdf5, "mat": mat, "nrrd": nrrd, "scidb": scidb, "har": har,
    "gif": pillow, "webp": pillow, "bmp": pillow, "netpbm": netpbm,
    **{name: pairs.read for name, pairs in collected().items()},
}  # fmt: skip


# Comparing ---------------------------------------------------------------------------------------


def keeps_values(expected: np.ndarray, got: np.ndarray) -> bool:
    """Tell whether all values are there, in another form than the exact one.

    Axes of length 1 may come and go, complex numbers be pairs on a new last axis, elements their
    bare bytes, byte strings characters, bools two numbers, and numbers those of a wider type.
    """
    expected, got = np.squeeze(expected), np.squeeze(got)
    if expected.dtype.kind == "c" and got.shape == (*expected.shape, 2):
        expected = np.stack([expected.real, expected.imag], axis=-1)
    if expected.shape != got.shape:
        return False
    if got.dtype.kind == "V" and (not got.dtype.names or got.dtype == expected.dtype):
        return expected.tobytes() == got.tobytes()
    if expected.dtype.kind == "S" and got.dtype.kind == "U":
        expected = np.char.decode(expected, "latin-1")
    if expected.dtype.kind in "mM" and expected.dtype == got.dtype:  # NaT, too
        expected, got = expected.view("<i8"), got.view("<i8")
    if expected.dtype.kind == "b" and got.dtype.kind in "iuf":
        return np.array_equal(expected, got != 0) and np.unique(got[expected]).size <= 1
    with np.errstate(all="ignore"):
        if expected.dtype == ml_dtypes.bfloat16:
            expected = expected.astype("<f4")
        return np.array_equal(expected, got, equal_nan=expected.dtype.kind in "fc")
