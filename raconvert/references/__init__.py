"""Views of arrays where they lie: small files for other programs that name bytes of files.

The size of a view depends on the descriptions of the arrays, not on their data. With it goes a
proof: size and time of change of each file that it names, so that `verify` finds changed files.
"""

from __future__ import annotations

import os

from raconvert.files.paths import is_remote

PROOF_SUFFIX = ".refs.json"  # of the proof beside a view that has no room for it
KEY = "raconvert"  # of the proof in its file
VERSION = 1
_PROOF = b'{"version":1,"raconvert":'  # how a file with a proof begins, without spaces
_OWN = (  # how references begin that are a view themselves
    _PROOF + b'{"references":1,"kind":"kerchunk",', b'{"version":1,"refs":', b'{"refs":',
)  # fmt: skip
KINDS: dict[str, tuple[tuple[str, ...], str]] = {  # --as: usual suffixes, and what the view is
    "kerchunk": ((".json",), "references for fsspec, zarr and xarray"),
    "nrrd": ((".nhdr",), "a header of NRRD for 3D Slicer, SimpleITK, pynrrd, unu"),
    "mhd": ((".mhd",), "a header of MetaImage for ITK"),
    "envi": ((".hdr",), "a header of ENVI for GDAL and spectral"),
    "vrt": ((".vrt",), "a virtual raster of GDAL"),
    "hdf5": ((".h5", ".hdf5"), "datasets of HDF5 in external storage"),
}


def kind_of_suffix(path: str) -> str | None:
    """Return the kind of view by the suffix of its name; None for any other suffix."""
    for kind, (suffixes, _) in KINDS.items():
        if path.lower().endswith(suffixes):
            return kind
    return None


def proof_beside(path: str) -> str | None:
    """Return the path of the proof of a view: the view itself, or the file beside it, or None.

    References that are a view of their own, such as those in ``x.npy.refs.json``, are
    not the proof of ``x.npy``.
    """
    if is_remote(path):
        return None
    if path.endswith(PROOF_SUFFIX):
        return path if os.path.isfile(path) else None
    if os.path.isfile(path + PROOF_SUFFIX) and not _begin(path + PROOF_SUFFIX).startswith(_OWN):
        return path + PROOF_SUFFIX
    if not path.endswith(".json") or not os.path.isfile(path):
        return None
    return path if _begin(path).startswith(_PROOF) else None


def _begin(path: str) -> bytes:
    """Return the first bytes of a file without blanks; none if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return b"".join(file.read(256).split())
    except OSError:  # reading the proof raises the error
        return b""
