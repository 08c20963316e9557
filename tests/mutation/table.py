"""What is changed and which tests judge it, and the changes that make no difference."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Area(NamedTuple):
    """Modules and the tests of their own; patterns, so that a module may be cut in two."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]

    def sources(self) -> list[Path]:
        return _matching(self.modules)

    def judges(self) -> list[Path]:
        return _matching(self.tests)


def _matching(patterns: tuple[str, ...]) -> list[Path]:
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def _plugin(name: str, *modules: str, tests: str | None = None) -> Area:
    judges = f"tests/plugins/test_{tests or name}*.py"
    return Area(tuple(f"plugins/{name}/{module}.py" for module in modules), (judges,))


AREAS = {
    "har": _plugin("har", "header*", "records"),
    "mat5": _plugin("mat", "level5", tests="mat"),
    "mat4": _plugin("mat", "level4", tests="mat"),
    "nrrd-header": _plugin("nrrd", "header"),
    "nrrd-fields": _plugin("nrrd", "fields"),
    "png": Area(
        ("plugins/png/chunks.py",),
        ("tests/plugins/test_png.py", "tests/plugins/test_png_hostile.py"),
    ),
    "npy": Area(("plugins/npy.py", "plugins/npy/*.py"), ("tests/plugins/test_npy.py",)),
    "ra": Area(("raconvert/ra/header.py",), ("tests/test_ra.py",)),
    "scidb": _plugin("scidb", "records", "schema"),
    "hdf5-chunks": Area(
        ("plugins/hdf5/chunks.py", "plugins/hdf5/indexes.py"),
        ("tests/plugins/test_hdf5_chunks.py", "tests/plugins/test_hdf5_flips.py"),
    ),
    "hdf5-walk": Area(("plugins/hdf5/walk.py",), ("tests/plugins/test_hdf5*.py",)),
    "diff": Area(("raconvert/inspect/diff.py",), ("tests/test_compare.py",)),
    "sidecar": Area(("raconvert/metadata/sidecar.py",), ("tests/test_sidecar.py",)),
    "zips": Area(
        ("raconvert/files/zips.py", "raconvert/files/unzip.py"),
        ("tests/plugins/test_npz.py", "tests/test_bundle_hostile.py", "tests/test_bundle.py"),
    ),
}

# (module, the changed line): why no file can show the difference. tests/test_mutation.py says
# which entries belong to lines that are not there any more.
EQUIVALENT: dict[tuple[str, str], str] = {
    ("raconvert/files/unzip.py", "if length != 5 or code > 9 * 5 * 5:"):
        "the decoder refuses 225 itself, and that is caught",
    ("raconvert/files/zips.py",
     "DEFLATE_RATIO = 1033  # deflate's limit: 258 bytes for two bits"):
        "a bound above what any stream reaches; what it yields is counted again",
    ("plugins/png/chunks.py", "if compressed * MAX_INFLATION <= header.stream_bytes:"):
        "a bound above what any stream reaches",
    ("plugins/png/chunks.py", "elif png.ancillary_bytes >= MAX_METADATA_BYTES:"):
        "a limit of ours: one byte more or less would do as well",
}  # fmt: skip
