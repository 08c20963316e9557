"""The static table of formats: their facts, without importing any plugin.

`ROWS` are the built-in formats, written from what each plugin's `FORMAT` says; the tests keep the
two equal. Formats that are only recognised, to be named in the refusal, are in `raconvert.foreign`.
"""

from __future__ import annotations

from raconvert.declared import Record


class Row(Record):
    """A format as far as it is known without its plugin: fields of `raconvert.plugin.Format`."""

    name: str
    module: str  # the dotted path of the plugin
    title: str
    suffixes: tuple[str, ...]
    magic: tuple[tuple[int, bytes], ...] = ()
    proof: bool = False
    bare: bool = False
    reads: bool = True
    writes: bool = True
    many: bool = False
    lazy: bool = True
    stream: bool = False
    meta: str = "none"
    holds: tuple[str, ...] = ()
    index_orders: str = "C"
    needs: tuple[tuple[str, str], ...] = ()
    sidecar: str = "asked"
    trailer: bool = False
    folder: bool = False
    marks: tuple[str, ...] = ()
    together: bool = False
    raw_bools: bool = False
    names_files: bool = False
    native: bool = False
    float8: tuple[str, ...] = ()


# rows: begin (written by `python -m docs.generate` from the `FORMAT` of each plugin)
# fmt: off
ROWS: tuple[Row, ...] = (
    Row(
        name="ra",
        module="raconvert.ra.plugin",
        title="RA (RawArray)",
        suffixes=(".ra",),
        magic=((0, b"rawarray"),),
        proof=True,
        stream=True,
        meta="all",
        holds=(
            "names", "labels", "spacing", "space", "scale", "units", "description",
            "attributes",
        ),
        index_orders="",
        sidecar="auto",
        trailer=True,
        raw_bools=True,
        float8=(
            "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
            "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
        ),
    ),
    Row(
        name="bundle",
        module="raconvert.bundle.folder",
        title="Bundle: a folder of .ra files with bundle.yaml",
        suffixes=(),
        magic=((0, b"raconvert_bundle: "),),
        proof=True,
        many=True,
        meta="all",
        holds=(
            "names", "labels", "spacing", "space", "scale", "units", "description",
            "attributes",
        ),
        index_orders="",
        sidecar="never",
        folder=True,
        marks=("bundle.yaml",),
        raw_bools=True,
        names_files=True,
        float8=(
            "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
            "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
        ),
    ),
    Row(
        name="tar",
        module="raconvert.bundle.tarred",
        title="Bundle of .ra files in a tar archive",
        suffixes=(".tar",),
        magic=((257, b"ustar"),),
        many=True,
        meta="all",
        holds=(
            "names", "labels", "spacing", "space", "scale", "units", "description",
            "attributes",
        ),
        index_orders="",
        sidecar="never",
        raw_bools=True,
        float8=(
            "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
            "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
        ),
    ),
    Row(
        name="zip",
        module="raconvert.bundle.zipped",
        title="Bundle of .ra files in a ZIP archive",
        suffixes=(".zip",),
        magic=((0, b"PK\x03\x04"), (0, b"PK\x05\x06")),
        many=True,
        meta="all",
        holds=(
            "names", "labels", "spacing", "space", "scale", "units", "description",
            "attributes",
        ),
        index_orders="",
        sidecar="never",
        raw_bools=True,
        float8=(
            "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
            "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
        ),
    ),
    Row(
        name="arrow",
        module="raconvert.plugins.tables.arrow",
        title="Arrow (Feather) table",
        suffixes=(".arrow", ".feather", ".ipc"),
        magic=((0, b"ARROW1\x00\x00"),),
        many=True,
        meta="some",
        holds=(
            "names", "labels", "spacing", "space", "scale", "units", "description",
            "attributes",
        ),
        needs=(("pyarrow", "pyarrow>=18"),),
        native=True,
    ),
    Row(
        name="bmp",
        module="raconvert.plugins.image.bmp",
        title="BMP image",
        suffixes=(".bmp", ".dib"),
        magic=(
            (0, b"BM"), (0, b"(\x00\x00\x00"), (0, b"l\x00\x00\x00"), (0, b"|\x00\x00\x00"),
        ),
        needs=(("PIL", "pillow"),),
    ),
    Row(
        name="cfl",
        module="raconvert.plugins.cfl",
        title="BART CFL",
        suffixes=(".cfl", ".hdr"),
        magic=((0, b"# Dimensions"),),
        index_orders="F",
    ),
    Row(
        name="cifar",
        module="raconvert.plugins.cifar",
        title="CIFAR-10/100 (binary)",
        suffixes=(".cifar.bin",),
        many=True,
    ),
    Row(
        name="csv",
        module="raconvert.plugins.tables.csv",
        title="CSV table",
        suffixes=(".csv", ".tsv", ".tab"),
        many=True,
        stream=True,
        meta="some",
        holds=("names", "labels", "spacing"),
    ),
    Row(
        name="dicom",
        module="raconvert.plugins.dicom",
        title="DICOM series",
        suffixes=(".dcm", ".dicom", ".ima"),
        magic=((128, b"DICM"),),
        proof=True,
        bare=True,
        writes=False,
        many=True,
        holds=("spacing", "space", "scale", "units", "attributes"),
        index_orders="",
        marks=("DICOMDIR",),
        together=True,
    ),
    Row(
        name="edf",
        module="raconvert.plugins.edf",
        title="EDF and BDF recordings",
        suffixes=(".edf", ".bdf"),
        magic=((0, b"0       "), (0, b"\xffBIOSEMI")),
        writes=False,
        many=True,
        holds=("names", "labels", "spacing", "scale", "units", "attributes"),
    ),
    Row(
        name="fits",
        module="raconvert.plugins.fits",
        title="FITS",
        suffixes=(".fits", ".fit", ".fts", ".fz"),
        magic=((0, b"SIMPLE  ="),),
        proof=True,
        many=True,
        meta="some",
        holds=("names", "spacing", "scale", "units"),
    ),
    Row(
        name="gguf",
        module="raconvert.plugins.gguf",
        title="GGUF model",
        suffixes=(".gguf",),
        magic=((0, b"GGUF"),),
        proof=True,
        writes=False,
        many=True,
    ),
    Row(
        name="gif",
        module="raconvert.plugins.image.gif",
        title="GIF image",
        suffixes=(".gif",),
        magic=((0, b"GIF87a"), (0, b"GIF89a")),
        proof=True,
        needs=(("PIL", "pillow"),),
    ),
    Row(
        name="har",
        module="raconvert.plugins.har",
        title="GEMPACK HAR",
        suffixes=(".har", ".prm", ".upd", ".shk", ".sl4"),
        many=True,
        meta="some",
        holds=("names", "labels", "description"),
        index_orders="F",
    ),
    Row(
        name="hdf5",
        module="raconvert.plugins.hdf5",
        title="HDF5",
        suffixes=(".h5", ".hdf5", ".he5", ".nc"),
        magic=(
            (0, b"\x89HDF\r\n\x1a\n"), (512, b"\x89HDF\r\n\x1a\n"),
            (1024, b"\x89HDF\r\n\x1a\n"), (2048, b"\x89HDF\r\n\x1a\n"),
        ),
        many=True,
        meta="all",
        holds=(
            "names", "labels", "spacing", "space", "scale", "units", "description",
            "attributes",
        ),
        needs=(("h5py", "h5py"),),
        names_files=True,
        native=True,
        float8=(
            "float8_e4m3fn", "float8_e4m3", "float8_e4m3fnuz", "float8_e4m3b11fnuz",
            "float8_e5m2", "float8_e5m2fnuz", "float8_e3m4",
        ),
    ),
    Row(
        name="idx",
        module="raconvert.plugins.idx",
        title="IDX (MNIST)",
        suffixes=(
            ".idx", ".idx1-ubyte", ".idx2-ubyte", ".idx3-ubyte", ".idx4-ubyte", ".idx.gz",
            ".idx1-ubyte.gz", ".idx2-ubyte.gz", ".idx3-ubyte.gz", ".idx4-ubyte.gz",
            "-idx1-ubyte", "-idx3-ubyte", "-idx1-ubyte.gz", "-idx3-ubyte.gz",
        ),
        magic=(
            (0, b"\x00\x00\x08"), (0, b"\x00\x00\t"), (0, b"\x00\x00\x0b"),
            (0, b"\x00\x00\x0c"), (0, b"\x00\x00\r"), (0, b"\x00\x00\x0e"),
            (0, b"\x1f\x8b\x08"),
        ),
    ),
    Row(
        name="jpeg",
        module="raconvert.plugins.image.jpeg",
        title="JPEG image",
        suffixes=(".jpg", ".jpeg", ".jpe", ".jfif"),
        magic=((0, b"\xff\xd8\xff"),),
        proof=True,
        needs=(("PIL", "pillow"),),
    ),
    Row(
        name="mat",
        module="raconvert.plugins.mat",
        title="MATLAB MAT",
        suffixes=(".mat",),
        magic=(
            (124, b"\x00\x01IM"), (124, b"\x01\x00MI"), (124, b"\x00\x02IM"),
            (124, b"\x02\x00MI"), (0, b"\x00\x00\x00\x00"), (0, b"\x01\x00\x00\x00"),
            (0, b"\x02\x00\x00\x00"), (0, b"\n\x00\x00\x00"), (0, b"\x0b\x00\x00\x00"),
            (0, b"\x0c\x00\x00\x00"), (0, b"\x14\x00\x00\x00"), (0, b"\x15\x00\x00\x00"),
            (0, b"\x16\x00\x00\x00"), (0, b"\x1e\x00\x00\x00"), (0, b"\x1f\x00\x00\x00"),
            (0, b" \x00\x00\x00"), (0, b"(\x00\x00\x00"), (0, b")\x00\x00\x00"),
            (0, b"*\x00\x00\x00"), (0, b"2\x00\x00\x00"), (0, b"3\x00\x00\x00"),
            (0, b"4\x00\x00\x00"), (0, b"\x00\x00\x03\xe8"), (0, b"\x00\x00\x03\xe9"),
            (0, b"\x00\x00\x03\xea"), (0, b"\x00\x00\x03\xf2"), (0, b"\x00\x00\x03\xf3"),
            (0, b"\x00\x00\x03\xf4"), (0, b"\x00\x00\x03\xfc"), (0, b"\x00\x00\x03\xfd"),
            (0, b"\x00\x00\x03\xfe"), (0, b"\x00\x00\x04\x06"), (0, b"\x00\x00\x04\x07"),
            (0, b"\x00\x00\x04\x08"), (0, b"\x00\x00\x04\x10"), (0, b"\x00\x00\x04\x11"),
            (0, b"\x00\x00\x04\x12"), (0, b"\x00\x00\x04\x1a"), (0, b"\x00\x00\x04\x1b"),
            (0, b"\x00\x00\x04\x1c"),
        ),
        many=True,
        index_orders="F",
        needs=(("h5py", "h5py"),),
        names_files=True,
    ),
    Row(
        name="metaimage",
        module="raconvert.plugins.metaimage",
        title="MetaImage (ITK)",
        suffixes=(".mha", ".mhd"),
        magic=((0, b"ObjectType"), (0, b"NDims"), (0, b"Comment")),
        meta="some",
        holds=("spacing", "space", "units", "description"),
        index_orders="",
        names_files=True,
    ),
    Row(
        name="mrc",
        module="raconvert.plugins.mrc",
        title="MRC (MRC2014, CCP4 map)",
        suffixes=(".mrc", ".mrcs", ".map", ".ccp4", ".rec", ".st"),
        magic=((208, b"MAP "), (208, b"MAP\x00")),
        meta="some",
        holds=("spacing", "description"),
    ),
    Row(
        name="netcdf3",
        module="raconvert.plugins.netcdf3",
        title="netCDF classic",
        suffixes=(".nc3", ".cdf"),
        magic=((0, b"CDF\x01"), (0, b"CDF\x02"), (0, b"CDF\x05")),
        proof=True,
        many=True,
        meta="all",
        holds=(
            "names", "labels", "spacing", "space", "scale", "units", "description",
            "attributes",
        ),
    ),
    Row(
        name="netpbm",
        module="raconvert.plugins.image.netpbm",
        title="netpbm image (PBM, PGM, PPM, PAM)",
        suffixes=(".pnm", ".pbm", ".pgm", ".ppm"),
        magic=(
            (0, b"P1"), (0, b"P2"), (0, b"P3"), (0, b"P4"), (0, b"P5"), (0, b"P6"),
            (0, b"P7"),
        ),
    ),
    Row(
        name="nifti",
        module="raconvert.plugins.nifti",
        title="NIfTI",
        suffixes=(".nii", ".nii.gz", ".img", ".img.gz", ".hdr", ".hdr.gz"),
        magic=(
            (344, b"n+1\x00"), (4, b"n+2\x00\r\n\x1a\n"), (344, b"ni1\x00"),
            (4, b"ni2\x00\r\n\x1a\n"), (0, b"\x1f\x8b\x08"), (0, b"\\\x01\x00\x00"),
            (0, b"\x00\x00\x01\\"),
        ),
        meta="some",
        holds=("spacing", "space", "units", "description"),
        index_orders="F",
        names_files=True,
    ),
    Row(
        name="npy",
        module="raconvert.plugins.npy",
        title="NumPy NPY",
        suffixes=(".npy",),
        magic=((0, b"\x93NUMPY"),),
        proof=True,
        stream=True,
        index_orders="CF",
        raw_bools=True,
    ),
    Row(
        name="npz",
        module="raconvert.plugins.npz",
        title="NumPy NPZ",
        suffixes=(".npz",),
        magic=((0, b"PK\x03\x04"), (0, b"PK\x05\x06")),
        many=True,
        index_orders="CF",
        raw_bools=True,
    ),
    Row(
        name="nrrd",
        module="raconvert.plugins.nrrd",
        title="NRRD",
        suffixes=(".nrrd", ".nhdr"),
        magic=(
            (0, b"NRRD00.01"), (0, b"NRRD0001"), (0, b"NRRD0002"), (0, b"NRRD0003"),
            (0, b"NRRD0004"), (0, b"NRRD0005"), (0, b"NRRD0006"),
        ),
        stream=True,
        meta="all",
        holds=(
            "names", "labels", "spacing", "space", "scale", "units", "description",
            "attributes",
        ),
        index_orders="",
        names_files=True,
    ),
    Row(
        name="ometiff",
        module="raconvert.plugins.ome.tiff",
        title="OME-TIFF",
        suffixes=(".ome.tif", ".ome.tiff", ".ome.btf", ".ome.tf8"),
        magic=(
            (0, b"II*\x00"), (0, b"MM\x00*"), (0, b"II+\x00\x08\x00\x00\x00"),
            (0, b"MM\x00+\x00\x08\x00\x00"),
        ),
        many=True,
        meta="some",
        holds=("labels", "spacing", "space", "scale", "units", "description", "attributes"),
        needs=(("PIL", "pillow"), ("tifffile", "tifffile")),
        names_files=True,
    ),
    Row(
        name="omezarr",
        module="raconvert.plugins.ome.zarr",
        title="OME-Zarr",
        suffixes=(".ome.zarr",),
        magic=((0, b"{"),),
        many=True,
        meta="all",
        holds=("labels", "spacing", "space", "scale", "units", "description", "attributes"),
        needs=(("numcodecs", "numcodecs"), ("google_crc32c", "google-crc32c")),
        sidecar="never",
        folder=True,
        marks=("zarr.json", ".zgroup", ".zarray"),
        names_files=True,
        float8=(
            "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
            "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
        ),
    ),
    Row(
        name="parquet",
        module="raconvert.plugins.tables.parquet",
        title="Parquet table",
        suffixes=(".parquet", ".pq"),
        magic=((0, b"PAR1"),),
        many=True,
        meta="some",
        holds=(
            "names", "labels", "spacing", "space", "scale", "units", "description",
            "attributes",
        ),
        needs=(("pyarrow", "pyarrow>=18"),),
        native=True,
    ),
    Row(
        name="png",
        module="raconvert.plugins.png",
        title="PNG image",
        suffixes=(".png", ".apng"),
        magic=((0, b"\x89PNG\r\n\x1a\n"),),
        proof=True,
        stream=True,
        meta="some",
        needs=(("PIL", "pillow"),),
    ),
    Row(
        name="raw",
        module="raconvert.plugins.raw",
        title="Plain bytes without a header",
        suffixes=(),
        writes=False,
        index_orders="CF",
    ),
    Row(
        name="rdata",
        module="raconvert.plugins.r.rdata",
        title="R workspace (RData)",
        suffixes=(".rdata", ".rda"),
        magic=(
            (0, b"RDX2\n"), (0, b"RDX3\n"), (0, b"RDA2\n"), (0, b"RDA3\n"), (0, b"RDB2\n"),
            (0, b"RDB3\n"), (0, b"RDX1\n"), (0, b"RDA1\n"), (0, b"RDB1\n"), (0, b"\x1f\x8b"),
            (0, b"BZh"), (0, b"\xfd7zXZ\x00"),
        ),
        writes=False,
        many=True,
        meta="some",
        holds=("names", "labels", "scale", "units", "description", "attributes"),
        index_orders="F",
    ),
    Row(
        name="rds",
        module="raconvert.plugins.r.rds",
        title="R object (RDS)",
        suffixes=(".rds",),
        magic=(
            (0, b"X\n"), (0, b"B\n"), (0, b"A\n"), (0, b"\x1f\x8b"), (0, b"BZh"),
            (0, b"\xfd7zXZ\x00"),
        ),
        many=True,
        stream=True,
        meta="some",
        holds=("names", "labels", "scale", "units", "description", "attributes"),
        index_orders="F",
    ),
    Row(
        name="safetensors",
        module="raconvert.plugins.safetensors",
        title="safetensors",
        suffixes=(".safetensors",),
        magic=((8, b"{"),),
        many=True,
        float8=(
            "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz",
            "float8_e5m2fnuz",
        ),
    ),
    Row(
        name="scidb",
        module="raconvert.plugins.scidb",
        title="SciDB binary",
        suffixes=(".scidb", ".sdbbin"),
        many=True,
        meta="some",
        holds=("names", "spacing"),
        names_files=True,
    ),
    Row(
        name="tfrecord",
        module="raconvert.plugins.tfrecord",
        title="TFRecord of examples",
        suffixes=(".tfrecord", ".tfrecords", ".tfrecord.gz", ".tfrecords.gz"),
        writes=False,
        many=True,
        holds=("names",),
        needs=(("google_crc32c", "google-crc32c"),),
    ),
    Row(
        name="tiff",
        module="raconvert.plugins.image.tiff",
        title="TIFF image or stack",
        suffixes=(".tif", ".tiff", ".btf", ".tf8"),
        magic=(
            (0, b"II*\x00"), (0, b"MM\x00*"), (0, b"II+\x00\x08\x00\x00\x00"),
            (0, b"MM\x00+\x00\x08\x00\x00"),
        ),
        proof=True,
        meta="some",
        holds=("spacing", "units", "description"),
        needs=(("PIL", "pillow"), ("tifffile", "tifffile")),
    ),
    Row(
        name="torch",
        module="raconvert.plugins.pytorch",
        title="PyTorch checkpoint",
        suffixes=(".pt", ".pth"),
        magic=(
            (0, b"PK\x03\x04"), (0, b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."),
            (257, b"ustar"),
        ),
        writes=False,
        many=True,
        index_orders="CF",
    ),
    Row(
        name="webp",
        module="raconvert.plugins.image.webp",
        title="WebP image",
        suffixes=(".webp",),
        magic=((8, b"WEBP"),),
        needs=(("PIL", "pillow"),),
    ),
    Row(
        name="xlsx",
        module="raconvert.plugins.tables.xlsx",
        title="XLSX workbook",
        suffixes=(".xlsx", ".xlsm"),
        magic=((0, b"PK\x03\x04"),),
        many=True,
        lazy=False,
        meta="some",
        holds=(
            "names", "labels", "spacing", "space", "scale", "units", "description",
            "attributes",
        ),
    ),
    Row(
        name="zarr",
        module="raconvert.plugins.zarr",
        title="Zarr",
        suffixes=(".zarr",),
        magic=((0, b"{"),),
        many=True,
        meta="all",
        holds=(
            "names", "labels", "spacing", "space", "scale", "units", "description",
            "attributes",
        ),
        needs=(("numcodecs", "numcodecs"), ("google_crc32c", "google-crc32c")),
        sidecar="never",
        folder=True,
        marks=("zarr.json", ".zgroup", ".zarray"),
        names_files=True,
        float8=(
            "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
            "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
        ),
    ),
)
# fmt: on
# rows: end

# Words for a format that are neither its name nor a suffix of its files.
ALSO_CALLED = {"hdf": "hdf5", "matlab": "mat", "numpy": "npy", "rawarray": "ra"}
