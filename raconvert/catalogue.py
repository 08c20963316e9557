"""The static table of formats: what is known without importing any plugin.

`ROWS` are the built-in formats. Each row repeats what its plugin's `FORMAT` says; the conformance
suite keeps the two equal, and refuses a plugin file without a row. `FOREIGN` are formats that are
recognised by content only to be named in the refusal.
"""

from __future__ import annotations

from raconvert.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Row(Record):
    """A format as far as it is known without its plugin: fields of `raconvert.plugin.Format`."""

    name: str
    module: str  # the dotted path of the plugin
    title: str
    suffixes: tuple[str, ...]
    magic: tuple[tuple[int, bytes], ...]
    proof: bool
    reads: bool
    writes: bool
    many: bool
    lazy: bool
    stream: bool
    meta: str
    index_orders: str
    needs: tuple[tuple[str, str], ...]
    native: bool = False


# Formats made of .ra files, each with its own sidecar, and a manifest.
BUNDLES = ("bundle", "zip", "tar")
_FROM_RA: dict[str, Any] = {
    "many": True, "reads": True, "writes": True, "lazy": True, "stream": False, "needs": (),
}  # fmt: skip
_IMAGEIO = ("imageio", "imageio")
_PILLOW = ("PIL", "pillow")
# Byte 124: v5 and v7.3. The first word of v4 is decimal: byte order, 0, storage (0 to 5), kind (0
# to 2).
_MAT4_WORDS = tuple(10 * storage + kind for storage in range(6) for kind in range(3))
_MAT_MAGICS = (
    *((124, mark) for mark in (b"\0\1IM", b"\1\0MI", b"\0\2IM", b"\2\0MI")),
    *((0, word.to_bytes(4, "little")) for word in _MAT4_WORDS),
    *((0, (1000 + word).to_bytes(4, "big")) for word in _MAT4_WORDS),
)
_TIFF_MAGICS = ((0, b"II*\x00"), (0, b"MM\x00*"), (0, b"II+\x00\x08\x00\x00\x00"),
                (0, b"MM\x00+\x00\x08\x00\x00"))  # fmt: skip

ROWS: tuple[Row, ...] = (
    Row(
        name="ra",
        module="raconvert.ra.plugin",
        title="RA (RawArray)",
        suffixes=(".ra",),
        magic=((0, b"rawarray"),),
        proof=True,
        reads=True,
        writes=True,
        many=False,
        lazy=True,
        stream=True,
        meta="all",
        index_orders="",
        needs=(),
    ),
    Row(
        name="bundle",
        module="raconvert.bundle.folder",
        title="Bundle: a folder of .ra files with bundle.yaml",
        suffixes=(),
        magic=((0, b"raconvert_bundle: "),),
        proof=True,
        meta="all",
        index_orders="",
        **_FROM_RA,
    ),
    Row(
        name="zip",
        module="raconvert.bundle.zipped",
        title="Bundle of .ra files in a ZIP archive",
        suffixes=(".zip",),
        magic=((0, b"PK\x03\x04"), (0, b"PK\x05\x06")),
        proof=False,
        meta="all",
        index_orders="",
        **_FROM_RA,
    ),
    Row(
        name="tar",
        module="raconvert.bundle.tarred",
        title="Bundle of .ra files in a tar archive",
        suffixes=(".tar",),
        magic=((257, b"ustar"),),
        proof=False,
        meta="all",
        index_orders="",
        **_FROM_RA,
    ),
    Row(
        name="npy",
        module="raconvert.plugins.npy",
        title="NumPy NPY",
        suffixes=(".npy",),
        magic=((0, b"\x93NUMPY"),),
        proof=True,
        reads=True,
        writes=True,
        many=False,
        lazy=True,
        stream=True,
        meta="none",
        index_orders="CF",
        needs=(),
    ),
    Row(
        name="npz",
        module="raconvert.plugins.npz",
        title="NumPy NPZ",
        suffixes=(".npz",),
        magic=((0, b"PK\x03\x04"), (0, b"PK\x05\x06")),
        proof=False,
        reads=True,
        writes=True,
        many=True,
        lazy=True,
        stream=False,
        meta="none",
        index_orders="CF",
        needs=(),
    ),
    Row(
        name="png",
        module="raconvert.plugins.png",
        title="PNG image",
        suffixes=(".png", ".apng"),
        magic=((0, b"\x89PNG\r\n\x1a\n"),),
        proof=True,
        reads=True,
        writes=True,
        many=False,
        lazy=True,
        stream=True,
        meta="some",
        index_orders="C",
        needs=(_PILLOW,),
    ),
    Row(
        name="mat",
        module="raconvert.plugins.mat",
        title="MATLAB MAT",
        suffixes=(".mat",),
        magic=_MAT_MAGICS,
        proof=False,
        reads=True,
        writes=True,
        many=True,
        lazy=True,
        stream=False,
        meta="none",
        index_orders="F",
        needs=(("h5py", "h5py"),),
    ),
    Row(
        name="har",
        module="raconvert.plugins.har",
        title="GEMPACK HAR",
        suffixes=(".har", ".prm", ".upd", ".shk", ".sl4"),
        magic=(),
        proof=False,
        reads=True,
        writes=True,
        many=True,
        lazy=True,
        stream=False,
        meta="some",
        index_orders="F",
        needs=(),
    ),
    Row(
        name="tiff",
        module="raconvert.plugins.image.tiff",
        title="TIFF image or stack",
        suffixes=(".tif", ".tiff", ".btf", ".tf8"),
        magic=_TIFF_MAGICS,
        proof=True,
        reads=True,
        writes=True,
        many=False,
        lazy=True,
        stream=False,
        meta="some",
        index_orders="C",
        needs=(_IMAGEIO, _PILLOW, ("tifffile", "tifffile")),
    ),
    Row(
        name="jpeg",
        module="raconvert.plugins.image.jpeg",
        title="JPEG image",
        suffixes=(".jpg", ".jpeg", ".jpe", ".jfif"),
        magic=((0, b"\xff\xd8\xff"),),
        proof=True,
        reads=True,
        writes=True,
        many=False,
        lazy=True,
        stream=False,
        meta="some",
        index_orders="C",
        needs=(_IMAGEIO, _PILLOW),
    ),
    Row(
        name="gif",
        module="raconvert.plugins.image.gif",
        title="GIF image",
        suffixes=(".gif",),
        magic=((0, b"GIF87a"), (0, b"GIF89a")),
        proof=True,
        reads=True,
        writes=True,
        many=False,
        lazy=True,
        stream=False,
        meta="some",
        index_orders="C",
        needs=(_IMAGEIO, _PILLOW),
    ),
    Row(
        name="webp",
        module="raconvert.plugins.image.webp",
        title="WebP image",
        suffixes=(".webp",),
        magic=((8, b"WEBP"),),
        proof=False,
        reads=True,
        writes=True,
        many=False,
        lazy=True,
        stream=False,
        meta="some",
        index_orders="C",
        needs=(_IMAGEIO, _PILLOW),
    ),
    Row(
        name="bmp",
        module="raconvert.plugins.image.bmp",
        title="BMP image",
        suffixes=(".bmp", ".dib"),
        magic=((0, b"BM"),),
        proof=False,
        reads=True,
        writes=True,
        many=False,
        lazy=True,
        stream=False,
        meta="some",
        index_orders="C",
        needs=(_IMAGEIO, _PILLOW),
    ),
    Row(
        name="netpbm",
        module="raconvert.plugins.image.netpbm",
        title="netpbm image (PBM, PGM, PPM, PAM)",
        suffixes=(".pnm", ".pbm", ".pgm", ".ppm", ".pam"),
        magic=tuple((0, b"P%d" % n) for n in range(1, 8)),
        proof=False,
        reads=True,
        writes=True,
        many=False,
        lazy=True,
        stream=False,
        meta="some",
        index_orders="C",
        needs=(),
    ),
    Row(
        name="nrrd",
        module="raconvert.plugins.nrrd",
        title="NRRD",
        suffixes=(".nrrd", ".nhdr"),
        magic=tuple(
            (0, b"NRRD" + version)
            for version in (b"00.01", b"0001", b"0002", b"0003", b"0004", b"0005", b"0006")
        ),
        proof=False,
        reads=True,
        writes=True,
        many=False,
        lazy=True,
        stream=True,
        meta="all",
        index_orders="",
        needs=(),
    ),
    Row(
        name="scidb",
        module="raconvert.plugins.scidb",
        title="SciDB binary",
        suffixes=(".scidb", ".sdbbin"),
        magic=(),
        proof=False,
        reads=True,
        writes=True,
        many=True,
        lazy=True,
        stream=False,
        meta="some",
        index_orders="C",
        needs=(),
    ),
    Row(
        name="hdf5",
        module="raconvert.plugins.hdf5",
        title="HDF5",
        suffixes=(".h5", ".hdf5", ".he5"),
        magic=tuple((at, b"\x89HDF\r\n\x1a\n") for at in (0, 512, 1024, 2048)),
        proof=False,
        reads=True,
        writes=True,
        many=True,
        lazy=True,
        stream=False,
        meta="all",
        index_orders="C",
        needs=(("h5py", "h5py"),),
        native=True,
    ),
)

# Recognised, and named when met. `magic` as above; `note` is one sentence for the error message;
# `read_as` is the format whose plugin reads it: such a name is refused as a destination only.


class Foreign(Record):
    """A format that is recognised to be named."""

    title: str
    magic: tuple[tuple[int, bytes], ...]
    suffixes: tuple[str, ...]
    note: str = ""
    read_as: str | None = None


FOREIGN: tuple[Foreign, ...] = (
    Foreign(
        "RawArray with a byte-swapped magic",
        ((0, b"arawrrya"),),
        (),
        "A well-known registry lists the magic of RA in this wrong form since 2017 (it is what "
        "`od -x` prints for 'rawarray'); a real RA file begins with 'rawarray'.",
    ),
    Foreign(
        "RawArray with its magic spelled backwards",
        ((0, b"yarrawar"),),
        (),
        "The 64-bit magic was written big-endian; a real RA file begins with 'rawarray'.",
    ),
    Foreign("RealAudio", ((0, b".ra\xfd"), (0, b".RMF")), (), "It only shares the suffix with RA."),
    Foreign("JLD2", (), (".jld2",), "Only Julia writes it; Julia reads .h5, too.", "hdf5"),
    Foreign(
        "netCDF classic",
        ((0, b"CDF\x01"), (0, b"CDF\x02"), (0, b"CDF\x05")),
        (".nc", ".cdf"),
        "Only netCDF-4 files are HDF5 inside.",
    ),
    Foreign(
        "HDF4",
        ((0, b"\x0e\x03\x13\x01"),),
        (".h4", ".hdf4"),
        "It is not HDF5 and shares nothing with it but the name; h4toh5 converts it to HDF5.",
    ),
    Foreign("NIfTI-1", ((344, b"n+1\x00"), (344, b"ni1\x00")), (".nii", ".hdr")),
    Foreign("CFL", (), (".cfl",)),
)

# Compression wrappers are named together with what their name says is inside.
WRAPPERS: tuple[tuple[str, bytes, tuple[str, ...]], ...] = (
    ("gzip", b"\x1f\x8b", (".gz", ".rda", ".rds")),
    ("bzip2", b"BZh", (".bz2",)),
    ("xz", b"\xfd7zXZ\x00", (".xz",)),
    ("zstandard", b"\x28\xb5\x2f\xfd", (".zst",)),
)


def matches(magic: tuple[tuple[int, bytes], ...], head: bytes) -> bool:
    """True if any of the (offset, bytes) pairs is found in the head of a file."""
    return any(head[offset : offset + len(text)] == text for offset, text in magic)
