"""Files of every format, each with one array `vals`, not written by the code under test.

NumPy, pypng, h5py, scipy, pynrrd, harpy3, tifffile and Pillow write what they can; RA is written
from its layout table, bundles of it with PyYAML and the standard library, SciDB from its schema
language.
"""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import ra_bytes
import yaml
from pairs import NAME, collected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RA_CODES = {"i": 1, "u": 2, "f": 3, "c": 4, "b": 5}
SCIDB_TYPES = {"f4": "float", "f8": "double"} | {
    f"{kind[0]}{n}": f"{kind}{8 * n}" for kind in ("int", "uint") for n in (1, 2, 4, 8)
}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Let clients use what is deprecated elsewhere; that is no concern here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# RA, and bundles of it ---------------------------------------------------------------------------


def little(values: np.ndarray) -> np.ndarray:
    """Return numbers in little-endian order; everything else as it is."""
    if values.dtype.kind in "iufc":
        return values.astype(values.dtype.newbyteorder("<"))
    return values


def ra_code(dtype: np.dtype[Any]) -> int:
    return 5 if dtype == ml_dtypes.bfloat16 else RA_CODES.get(dtype.kind, 0)


def ra_contents(values: np.ndarray, *, big: bool = False) -> bytes:
    """Return the plain .ra file of values in C order: dims reversed; big-endian behind flag 1."""
    data = values.astype(values.dtype.newbyteorder(">")) if big else little(values)
    dims = values.shape[::-1]
    return ra_bytes.ra_file(
        ra_code(values.dtype), values.itemsize, dims, data.tobytes(), flags=int(big)
    )


def ra(path: Path, values: np.ndarray) -> None:
    path.write_bytes(ra_contents(values, big=values.dtype.byteorder == ">"))


def column_major_ra(path: Path, values: np.ndarray) -> None:
    """Write an .ra with the dims as they stand, and by hand the sidecar that says so."""
    data = little(values).tobytes(order="F")
    code = ra_code(values.dtype)
    path.write_bytes(ra_bytes.ra_file(code, values.itemsize, values.shape, data))
    Path(f"{path}.yaml").write_bytes(_sidecar(values, data, values.shape, "F"))


def _sidecar(values: np.ndarray, data: bytes, dims: tuple[int, ...], order: str = "") -> bytes:
    """Return what belongs beside an .ra of this data."""
    code = ra_code(values.dtype)
    crc = f"{zlib.crc32(data):08x}"  # of the first and of the last 64 KiB, here the same
    lines = [
        "describes:",
        f"  eltype: {code}",
        f"  elbyte: {values.itemsize}",
        f"  dims: {list(dims)}",
        f"  size: {len(data)}",
        f"  crc32_first: '{crc}'",
        f"  crc32_last: '{crc}'",
    ]
    if order:
        lines.append(f"index_order: {order}")
    if code == 0:
        descr = np.lib.format.dtype_to_descr(values.dtype)
        lines.append(f"dtype: {json.dumps(descr)}")
    return ("\n".join(lines) + "\n").encode()


def _members(values: np.ndarray) -> dict[str, bytes]:
    """Return the files of a bundle of one row-major array."""
    entry = {"name": NAME, "file": f"{NAME}.ra", "index_order": "C"}
    index = yaml.safe_dump({"raconvert_bundle": 1, "arrays": [entry]}, sort_keys=False)
    members = {"bundle.yaml": f"{index}...\n".encode(), f"{NAME}.ra": ra_contents(values)}
    if ra_code(values.dtype) == 0:
        members[f"{NAME}.ra.yaml"] = _sidecar(values, values.tobytes(), values.shape[::-1])
    return members


def bundle(path: Path, values: np.ndarray) -> None:
    path.mkdir()
    for name, contents in _members(values).items():
        (path / name).write_bytes(contents)


def zipped(path: Path, values: np.ndarray) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, contents in _members(values).items():
            archive.writestr(name, contents)


def tarred(path: Path, values: np.ndarray) -> None:
    with tarfile.open(path, "w") as archive:
        for name, contents in _members(values).items():
            member = tarfile.TarInfo(name)
            member.size = len(contents)
            archive.addfile(member, io.BytesIO(contents))


# Images ------------------------------------------------------------------------------------------


def png(path: Path, values: np.ndarray) -> None:
    import png as pypng

    height, width, *channels = values.shape
    planes = channels[0] if channels else 1
    writer = pypng.Writer(
        width,
        height,
        greyscale=planes < 3,
        alpha=planes in (2, 4),
        bitdepth=8 * values.itemsize,
    )
    with path.open("wb") as file:
        writer.write(file, values.reshape(height, -1).tolist())


def tiff(path: Path, values: np.ndarray) -> None:
    """Write with tifffile, which notes the shape and, unless told otherwise, its own name."""
    import tifffile

    photometric = "rgb" if values.ndim == 3 and values.shape[-1] in (3, 4) else "minisblack"
    with quiet():
        tifffile.imwrite(path, values, photometric=photometric, software=False)


# Containers and the rest -------------------------------------------------------------------------


def hdf5(path: Path, values: np.ndarray) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        if values.dtype.kind in "mM":  # opaque, with h5py's tag
            file[NAME] = values.astype(h5py.opaque_dtype(values.dtype))
        else:
            file[NAME] = values


def mat(path: Path, values: np.ndarray) -> None:
    from scipy.io import savemat

    savemat(path, {NAME: values}, appendmat=False)


def nrrd(path: Path, values: np.ndarray) -> None:
    """Write with pynrrd; the comments, with the time, are left out."""
    import nrrd as pynrrd

    with quiet():
        pynrrd.write(str(path), values, {"encoding": "raw"}, index_order="C")
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(line for line in lines if line[:1] != b"#" or b"\0" in line))


def scidb(path: Path, values: np.ndarray) -> None:
    """Write the records as they lie in memory, and a schema of one chunk beside them."""
    dtype = values.dtype
    kind = SCIDB_TYPES.get(f"{dtype.kind}{dtype.itemsize}") or f"binary({dtype.itemsize})"
    dims = "; ".join(f"d{n}=0:{length - 1}" for n, length in enumerate(values.shape))
    path.write_bytes(little(values).tobytes())
    schema = f"<{NAME}:{kind.partition('(')[0]} NOT NULL>[{dims}]\nformat: ({kind})\n"
    Path(f"{path}.schema").write_text(schema, encoding="utf-8")


def har(path: Path, values: np.ndarray) -> None:
    """Write with harpy3: real numbers over sets, whose labels it needs, or a matrix of integers."""
    from harpy import HarFileIO, HeaderArrayObj

    sets = [
        {"name": f"S{n}", "status": "k", "dim_type": "Set",
         "dim_desc": [f"e{i}" for i in range(length)]}
        for n, length in enumerate(values.shape)
    ]  # fmt: skip
    more = {"sets": sets} if values.dtype.kind == "f" else {}
    with quiet():
        made = HeaderArrayObj.HeaderArrayFromData(NAME, values, NAME, "", **more)
        HarFileIO.writeHeaders(str(path), [made])
    if values.dtype.kind == "f":  # harpy3 moves numbers through doubles: no signalling NaNs
        contents, data = path.read_bytes(), little(values).tobytes("F")
        path.write_bytes(contents[: -4 - len(data)] + data + contents[-4:])


WRITERS: dict[str, Callable[[Path, np.ndarray], None]] = {
    "ra": ra, "bundle": bundle, "zip": zipped, "tar": tarred, "png": png,
    "tiff": tiff, "hdf5": hdf5, "mat": mat, "nrrd": nrrd, "scidb": scidb, "har": har,
    **{name: pairs.write for name, pairs in collected().items()},
}  # fmt: skip


def can_write(source: str, values: np.ndarray) -> bool:
    """Tell whether the writer of a format can make a file of these values, of this type."""
    if source in collected():
        return collected()[source].can_write(values)
    kind, size = values.dtype.kind, values.dtype.itemsize
    shape, bfloat = values.shape, values.dtype == ml_dtypes.bfloat16
    number = kind in "iufc" and not bfloat
    full = 0 not in shape
    return {
        "ra": number or kind == "b" or bfloat,  # a bare file does not say what is inside others
        "bundle": values.dtype.byteorder != ">",
        "zip": values.dtype.byteorder != ">",
        "tar": values.dtype.byteorder != ">",
        "png": kind == "u" and size < 3 and full and _is_image(shape),
        "tiff": (number or kind == "b") and full and len(shape) > 1,
        "hdf5": kind != "U" and not bfloat,
        "mat": (number or kind == "b") and (kind, size) != ("f", 2) and _is_matlab(shape),
        "nrrd": kind in "iuf" and not bfloat and (kind, size) != ("f", 2) and full and bool(shape),
        "scidb": (f"{kind}{size}" in SCIDB_TYPES or (kind == "V" and not values.dtype.names))
        and bool(shape) and not bfloat,
        "har": full and bool(shape) and values.dtype.byteorder != ">" and ((kind, size) == ("f", 4) or
                                         (kind, size, len(shape)) == ("i", 4, 2)),
    }[source]  # fmt: skip


def _is_image(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 or (len(shape) == 3 and shape[2] in (2, 3, 4))


def _is_matlab(shape: tuple[int, ...]) -> bool:
    """Tell shapes as MATLAB itself has them: two axes at least, no 1 at the end of more."""
    return len(shape) == 2 or (len(shape) > 2 and shape[-1] != 1)
