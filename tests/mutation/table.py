"""What is changed and which tests judge it, and the changes that make no difference."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Area(NamedTuple):
    """Modules and the tests of their own; patterns, so that a module may be cut in two."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]

    def sources(self, root: Path = ROOT) -> list[Path]:
        return _matching(self.modules, root)

    def judges(self, root: Path = ROOT) -> list[Path]:
        return _matching(self.tests, root)


def _matching(patterns: tuple[str, ...], root: Path) -> list[Path]:
    return [path for pattern in patterns for path in sorted(root.glob(pattern))]


def _plugin(name: str, *modules: str) -> Area:
    judges = f"tests/plugins/test_{name}*.py"
    return Area(tuple(f"plugins/{name}/{module}.py" for module in modules), (judges,))


def _file(name: str) -> Area:
    return Area((f"plugins/{name}.py",), (f"tests/plugins/test_{name}*.py",))


AREAS = {
    "har": _plugin("har", "header", "records", "index", "walk"),
    "mat5": _plugin("mat", "level5", "elements5"),
    "mat-classes": _plugin("mat", "mcos", "subsystem5", "sources_of_classes"),
    "mat4": _plugin("mat", "level4"),
    "nrrd-header": _plugin("nrrd", "header"),
    "nrrd-fields": _plugin("nrrd", "fields"),
    "png": Area(
        ("plugins/png/header.py",),
        ("tests/plugins/test_png.py", "tests/plugins/test_png_hostile.py"),
    ),
    "npy": Area(("plugins/npy/*.py",), ("tests/plugins/test_npy.py",)),
    "ra": Area(("raconvert/ra/header.py",), ("tests/test_ra.py",)),
    "scidb": _plugin("scidb", "record", "scan", "schema"),
    "hdf5-chunks": Area(
        ("plugins/hdf5/chunks.py", "plugins/hdf5/ondisk/chunk_indexes.py"),
        (
            "tests/plugins/test_hdf5_chunks.py",
            "tests/plugins/test_hdf5_flips.py",
            "tests/plugins/test_hdf5_indexes.py",
        ),
    ),
    "hdf5-walk": Area(("plugins/hdf5/walk.py",), ("tests/plugins/test_hdf5*.py",)),
    "idx": _file("idx"),
    "safetensors": _file("safetensors"),
    "nifti": _plugin("nifti", "header", "metadata"),
    "cfl": _file("cfl"),
    "metaimage": _plugin("metaimage", "header", "metadata"),
    "cifar": _file("cifar"),
    "dicom": _plugin("dicom", "header", "form", "frames", "series", "mosaic"),
    "edf": _plugin("edf", "header", "annotations", "values", "reader"),
    "tfrecord": _plugin("tfrecord", "records", "messages", "values", "reader"),
    "fits": _plugin("fits", "header", "columns", "heap"),
    "r": Area(("plugins/r/items.py", "plugins/r/tree.py"), ("tests/plugins/test_rds.py",)),
    "lmdb": _plugin("lmdb", "tree", "values"),
    "mrc": _file("mrc"),
    "webdataset": _plugin("webdataset", "samples", "tables"),
    "netcdf3": _plugin("netcdf3", "header", "reader"),
    "tables": _plugin("tables", "words", "cells", "footer", "sheets"),
    "tiff-fax": Area(("plugins/image/tiff/fax.py",), ("tests/plugins/test_image_damage.py",)),
    "ome-tiff": Area(
        ("plugins/ome/tiff/xml.py", "plugins/ome/tiff/planes.py"),
        ("tests/plugins/test_ometiff.py", "tests/plugins/test_ome_hostile.py"),
    ),
    "ome-zarr": Area(
        ("plugins/ome/zarr/metadata.py",),
        ("tests/plugins/test_omezarr.py", "tests/plugins/test_ome_hostile.py"),
    ),
    "raw": _file("raw"),
    "zarr": _plugin("zarr", "header", "metadata"),
    "diff": Area(
        ("raconvert/inspect/diff.py", "raconvert/inspect/elements.py"), ("tests/test_compare.py",)
    ),
    "sidecar": Area(("raconvert/metadata/sidecar.py",), ("tests/test_sidecar.py",)),
    "zips": Area(
        ("raconvert/files/zips.py", "raconvert/files/inflate.py"),
        (
            "tests/plugins/test_npz.py",
            "tests/test_bundle_hostile.py",
            "tests/test_bundle.py",
            "tests/test_checksums.py",
        ),
    ),
}

MEMORY = "an estimate of the memory that is needed: a little more or less would do as well"
LIMIT = "a limit of ours: a little more or less would do as well"
NEVER = "records with variable columns never come here, and others have a width"
SPEED = "a choice of speed: what is read is the same"
POSITIVE = "h5py says no limit as 2**64 - 1 today, and as -1 in other versions"
BARE = "of no metadata: looked for, and not found; no depth is 5, 6 or 7"
KIND = "the kind of an object is set when it is looked at"
MEMBER = "only of a variable does it matter where it lies"
INT32 = "an int32 is always below"

# (module, the changed line): why no file can show the difference. tests/test_mutation.py says
# which entries belong to lines that are not there any more.
EQUIVALENT: dict[tuple[str, str], str] = {
    ("plugins/png/header.py", "if compressed * MAX_RATIO <= header.stream_bytes:"):
        "a bound above what any stream reaches",
    ("plugins/png/header.py", "elif png.ancillary_bytes >= png.limits.metadata_bytes:"):
        "a limit of ours: one byte more or less would do as well",
    ("plugins/png/header.py",
     "return not (self.ancillary or colors or self.header.bit_depth <= 8)"): BARE,
    ("plugins/png/header.py",
     "return not (self.ancillary or colors or self.header.bit_depth < 9)"): BARE,
    ("plugins/png/header.py",
     "return not (self.ancillary or colors or self.header.bit_depth < 7)"): BARE,
    ("plugins/webdataset/samples.py", "end = 1"):
        "an archive without members is refused, whatever follows its end",
    ("plugins/har/records.py",
     "_MAX_BYTES = {LITTLE: 1 << 32, BIG: 1 << 31, LAHEY: (1 << 30) - 4}"): INT32,
    ("plugins/har/records.py",
     "_MAX_BYTES = {LITTLE: 2 << 31, BIG: 1 << 31, LAHEY: (1 << 30) - 4}"): INT32,
    ("plugins/har/records.py",
     "_MAX_BYTES = {LITTLE: 1 << 31, BIG: 1 << 32, LAHEY: (1 << 30) - 4}"): INT32,
    ("plugins/har/records.py",
     "_MAX_BYTES = {LITTLE: 1 << 31, BIG: 2 << 31, LAHEY: (1 << 30) - 4}"): INT32,
    ("plugins/har/header.py",
     "group = self._groups[counts] = itemgetter(*self._indices(counts), slice(1))"):
        "makes one field a tuple, too, and is thrown away",
    ("plugins/har/tables.py",
     "LABEL_MEMORY = 99  # bytes that one label takes as a Python text"): MEMORY,
    ("plugins/har/tables.py",
     "LABEL_MEMORY = 101  # bytes that one label takes as a Python text"): MEMORY,
    ("plugins/har/walk.py", "self.records = 1  # count of records behind the name"):
        "always set once the header was walked",
    ("plugins/mat/level4.py", "check_memory(65 * self.count, self.source.max_memory, what)"):
        MEMORY,
    ("plugins/mat/level4.py", "check_memory(63 * self.count, self.source.max_memory, what)"):
        MEMORY,
    ("plugins/mat/level4.py", "check_memory(25 * columns, self.source.max_memory, what)"): MEMORY,
    ("plugins/mat/level4.py", "check_memory(23 * columns, self.source.max_memory, what)"): MEMORY,
    ("plugins/mat/level4.py",
     "known = 0 <= machine <= 2 and not zero and stored < len(STORED) and kind <= SPARSE"):
        "machine 2 with a zero behind it was refused before",
    ("plugins/mat/level4.py",
     "known = 0 <= machine < 3 and not zero and stored < len(STORED) and kind <= SPARSE"):
        "machine 2 with a zero behind it was refused before",
    ("plugins/mat/level5.py", "rest = read_up_to(file, 7)"): "no more than 7 bytes are left",
    ("plugins/mat/level5.py", "rest = read_up_to(file, 9)"): "no more than 7 bytes are left",
    ("plugins/mat/level5.py", "if nbytes < EAGER_BYTES:"):
        SPEED,
    ("plugins/mat/elements5.py", "if nbytes < min(CACHED_BYTES, self.room):"): SPEED,
    ("plugins/mat/elements5.py", "if nbytes < self.room:"): SPEED,
    ("plugins/mat/elements5.py", "if start < 0 or start + nbytes >= len(self._window):"): SPEED,
    ("plugins/mat/elements5.py", 'self._window, self._window_position = b"", 1'):
        "from an empty window nothing is taken",
    ("plugins/mat/level5.py",
     "CACHED_SHARE = 31  # the part of the memory that numbers of all variables may stay in"): MEMORY,
    ("plugins/mat/level5.py",
     "CACHED_SHARE = 33  # the part of the memory that numbers of all variables may stay in"): MEMORY,
    ("plugins/mat/level5.py",
     "def matrix(self, cursor: Cursor, end: int, path: str, depth: int, offset: int = -0) "
     "-> None:"): MEMBER,
    ("plugins/mat/level5.py",
     "def matrix(self, cursor: Cursor, end: int, path: str, depth: int, offset: int = -2) "
     "-> None:"): MEMBER,
    ("plugins/mat/level5.py", "stop = -0"): "nothing lies at the beginning of a file",
    ("plugins/mat/level5.py", "stop = -2"): "nothing lies before the beginning of a file",
    ("raconvert/ra/header.py",
     'bits = ", ".join(str(bit) for bit in range(3, 65) if flags >> bit & 1)'):
        "flags have 64 bits",
    ("raconvert/inspect/elements.py",
     'if x.dtype.kind in "mM" or y.dtype.kind in "mM":'):
        "arrays of which only one has dates are refused before",
    ("raconvert/inspect/elements.py",
     "return whole & (np.where(whole, real, 1).astype(wide) == integers) & (floats.imag == 0)"):
        "where it is not whole, the values do not count",
    ("plugins/scidb/scan.py", "return max(need, 2 + len(data))"): SPEED,
    ("plugins/scidb/record.py",
     "return Field(layout.width or 1, field.value, *numpy_type(layout.columns[number]))"): NEVER,
    ("plugins/scidb/record.py",
     "return Field(layout.width or 1, layout.locations[number].prefix, np.dtype(np.uint8), ())"): NEVER,
    ("raconvert/files/zips.py", "left = max(1, self._source.size - self.tell())"):
        "behind the end of a file nothing is read anyway",
    ("plugins/nrrd/fields.py",
     'Field = namedtuple("Field", "parse write version spelled", defaults=(0, ""))'):
        "the version is 1 at least, whatever the fields",
    ("plugins/hdf5/chunks.py", "if out.nbytes < PARALLEL_BYTES and len(rows) < 2:"): SPEED,
    ("plugins/hdf5/chunks.py", "if out.nbytes < PARALLEL_BYTES or len(rows) < 3:"): SPEED,
    ("plugins/hdf5/chunks.py", "if out.nbytes < PARALLEL_BYTES or len(rows) < 1:"): SPEED,
    ("plugins/hdf5/chunks.py", "if out.nbytes < PARALLEL_BYTES or len(rows) <= 2:"): SPEED,
    ("plugins/hdf5/chunks.py", "if out.nbytes <= PARALLEL_BYTES or len(rows) < 2:"): SPEED,
    ("plugins/hdf5/ondisk/chunk_indexes.py",
     "if count != len(shape) or 0 in chunk and kind not in _UNLIMITED_AXES:"):
        "h5py refuses chunks without length before, other versions of it do not",
    ("plugins/hdf5/ondisk/chunk_indexes.py",
     "limits = [int(n) % (1 << 65) for n in space.get_simple_extent_dims(maxdims=1)]"): POSITIVE,
    ("plugins/hdf5/ondisk/chunk_indexes.py",
     "limits = [int(n) % (2 << 64) for n in space.get_simple_extent_dims(maxdims=1)]"): POSITIVE,
    ("plugins/hdf5/walk.py", "inside.append(Member(path, -0, group.file, hard, value))"): KIND,
    ("plugins/hdf5/walk.py", "inside.append(Member(path, -2, group.file, hard, value))"): KIND,
    ("plugins/hdf5/chunks.py", "dataset.read_direct_chunk(start, out=bytearray(0))"):
        "any room that is too small will do, and enough for the chunk as well",
    ("plugins/hdf5/chunks.py", "dataset.read_direct_chunk(start, out=bytearray(2))"):
        "any room that is too small will do, and enough for the chunk as well",
}  # fmt: skip
