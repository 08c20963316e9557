"""Programs and C libraries from outside that tests need, each probed by using it.

A program counts as there when it prints its version and ends with exit code 0; a C library when a
program of one line that calls it is compiled, linked and run. Tests ask through the fixtures
`tool`, `library` and `mounting` of conftest.py, and nowhere else: each test that uses one of them
gets the marker `outside`, and no other test may start a program that not every system has.

    python tests/needs.py             # the Debian packages that are missing here, one a line
    python -m pytest -m outside       # every test that needs something from outside
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

# What POSIX asks of every system, as far as tests start it.
EVERYWHERE = frozenset(
    [
        "[",
        "awk",
        "basename",
        "cat",
        "chmod",
        "cmp",
        "cp",
        "cut",
        "date",
        "diff",
        "dirname",
        "echo",
        "env",
        "expr",
        "false",
        "find",
        "grep",
        "head",
        "id",
        "kill",
        "ln",
        "ls",
        "mkdir",
        "mkfifo",
        "mktemp",
        "mv",
        "printf",
        "ps",
        "pwd",
        "rm",
        "rmdir",
        "sed",
        "sh",
        "sleep",
        "sort",
        "tail",
        "tee",
        "test",
        "touch",
        "tr",
        "true",
        "uname",
        "uniq",
        "wc",
        "xargs",
    ]
)

TIMEOUT = 60  # seconds for one probe: a Java machine starts slowly on a machine that is busy

_CLASSIC = str(Path(__file__).resolve().parents[1] / "fixtures" / "netcdf3" / "cdf1.nc")

# The words after which a program prints its version, where they are not `--version`; strace and
# sha256sum do a piece of their work, which a container may forbid.
VERSION = {
    "bart": ("version",),
    "dash": ("-c", "true"),
    "dcm2niix": ("-h",),
    "djpeg": ("-version",),
    "dwebp": ("-version",),
    "fitsverify": (),
    "funpack": ("-V",),
    "java": ("-version",),
    "mkfs.vfat": ("--help",),
    "nccopy": (_CLASSIC, os.devnull),
    "ncdump": ("-h", _CLASSIC),
    "sha256sum": (os.devnull,),
    "strace": ("-f", "-o", os.devnull, "true"),
    "tiffcp": ("-h",),
    "tiffinfo": ("-h",),
    "unzip": ("-v",),
    "webpmux": ("-version",),
    "zip": ("-v",),
}

# The package of Debian and Ubuntu that has a program, where it is not called like the program.
PACKAGES = {
    "Rscript": "r-base-core",
    "bmptopnm": "netpbm",
    "djpeg": "libjpeg-turbo-progs",
    "dwebp": "webp",
    "funpack": "libcfitsio-bin",
    "giftopnm": "netpbm",
    "h5diff": "hdf5-tools",
    "h5dump": "hdf5-tools",
    "java": "default-jre-headless",  # runs the Nu Html Checker
    "man": "man-db",
    "matdump": "matio-tools",
    "mkfs.vfat": "dosfstools",
    "nccopy": "netcdf-bin",
    "ncdump": "netcdf-bin",
    "ncks": "nco",
    "ncrcat": "nco",
    "mount": "mount",
    "mrconvert": "mrtrix3",
    "mrinfo": "mrtrix3",
    "octave-cli": "octave",
    "od": "coreutils",
    "pamfile": "netpbm",
    "pamtopng": "netpbm",
    "pngtopam": "netpbm",
    "pnmtopnm": "netpbm",
    "pnmtoplainpnm": "netpbm",
    "readelf": "binutils",
    "sha256sum": "coreutils",
    "stat": "coreutils",
    "teem-unu": "teem-apps",
    "tiffcp": "libtiff-tools",
    "tiffinfo": "libtiff-tools",
    "unshare": "util-linux",
    "webpmux": "webp",
}
SAME_NAME = (
    "bart",
    "bash",
    "cdo",
    "dcm2niix",
    "chromium",
    "faketime",
    "fish",
    "fitsverify",
    "gcc",
    "gifsicle",
    "jq",
    "strace",
    "tar",
    "unzip",
    "zip",
    "zsh",
)


class OtherPython(NamedTuple):
    """A Python of its own for a package that cannot be installed beside the others."""

    module: str
    variable: str  # of the environment: the path of that Python
    install: str  # what pip installs, as words of a shell


OTHER_PYTHONS = {
    "scidbpy": OtherPython("scidbpy", "RACONVERT_SCIDBPY", "scidb-py 'numpy<2' setuptools"),
    "anndata": OtherPython("anndata", "RACONVERT_ANNDATA", "'anndata>=0.12'"),
    "napari": OtherPython("napari_ome_zarr", "RACONVERT_NAPARI", "'napari-ome-zarr>=0.10'"),
}


class Library(NamedTuple):
    """A C library: how a program that uses it is compiled, and one that shows that it is there."""

    package: str
    header: str
    call: str
    """A statement that needs the header and the library."""
    flags: tuple[str, ...] = ()
    """What follows the source on the command line."""
    compiler: str = "gcc"


_PYTHON = sysconfig.get_path("include")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
LIBRARIES = {
    "c": Library("libc6-dev", "stdio.h", 'printf("here");'),
    "hdf5": Library("libhdf5-dev", "hdf5.h", "if (H5open() < 0) return 1;", (), "h5cc"),
    "matio": Library(
        "libmatio-dev", "matio.h", "int v[3]; Mat_GetLibraryVersion(v, v + 1, v + 2);", ("-lmatio",)
    ),
    "png": Library(
        "libpng-dev", "png.h", "if (!png_access_version_number()) return 1;", ("-lpng",)
    ),
    "python": Library("python3-dev", "Python.h", "(void)sizeof(PyObject);", (f"-I{_PYTHON}",)),
    "sanitizers": Library("libc6-dev", "stdio.h", 'printf("here");', SANITIZERS),
    "teem": Library("libteem-dev", "teem/nrrd.h", "if (!nrrdNew()) return 1;", ("-lteem",)),
}


@cache
def program(name: str) -> str | None:
    """Return the path of a program that works here, or None."""
    path = shutil.which(name)
    if path is None:
        return None
    if name == "gcc":  # a compiler that links nothing is of no use
        return path if _compiles(path, LIBRARIES["c"]) else None
    return path if _works([path, *VERSION.get(name, ("--version",))]) else None


@cache
def library(name: str) -> str | None:
    """Return the path of the compiler with which a C library can be used here, or None."""
    found = LIBRARIES[name]
    path = shutil.which(found.compiler)
    return path if path is not None and _compiles(path, found) else None


@cache
def python_with(name: str) -> str | None:
    """Return the path of the Python of `OTHER_PYTHONS` that imports its package, or None.

    A variable of the environment names it, else it is in a folder `.NAME` of the checkout.
    """
    other = OTHER_PYTHONS[name]
    root = Path(__file__).resolve().parents[1]
    path = os.environ.get(other.variable) or str(root / f".{name}" / "bin" / "python")
    return path if _works([path, "-c", f"import {other.module}"]) else None


@cache
def mounting() -> tuple[str, ...] | None:
    """Return the words that run a command as root in a mount namespace of its own, or None."""
    words = (shutil.which("unshare") or "unshare", "--mount")
    if os.geteuid():
        words += ("--map-root-user",)
    with tempfile.TemporaryDirectory() as folder:
        mount = ("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder)
        return words if _works([*words, *mount]) else None


@cache
def mounting_here() -> bool:
    """Return if a file system can be mounted for all to see, and be taken away again."""
    with tempfile.TemporaryDirectory() as folder:
        mounted = _works(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder])
        return mounted and _works(["umount", folder])


def missing() -> list[str]:
    """Return the Debian packages of all programs and libraries that do not work here."""
    packages = {PACKAGES[name] for name in PACKAGES if program(name) is None}
    packages |= {name for name in SAME_NAME if program(name) is None}
    packages |= {one.package for name, one in LIBRARIES.items() if library(name) is None}
    return sorted(packages)


def is_everywhere(executable: str, path: str | None = None) -> bool:
    """Return if every system has a program, or Python or this project made it.

    A name without a folder is looked up in `path`, as the process does that starts it.
    """
    folder, name = os.path.split(executable)
    if folder in ("", "/bin", "/usr/bin") and name in EVERYWHERE:
        return True
    whole = executable if folder else shutil.which(executable, path=path) or os.sep + name
    roots = (
        sys.prefix, tempfile.gettempdir(), "/dev/shm", "/var/tmp",
        str(Path(__file__).resolve().parents[1]),
    )  # fmt: skip
    whole = os.path.abspath(whole)
    return name.startswith("python") or any(whole.startswith(root + os.sep) for root in roots)


def _works(words: Sequence[str], folder: str | None = None) -> bool:
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _compiles(compiler: str, one: Library) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "probe.c"), Path(folder, "probe")
        lines = f"#include <{one.header}>\nint main(void) {{ {one.call} return 0; }}\n"
        source.write_text(lines, encoding="ascii")
        command = [compiler, "-Werror", str(source), "-o", str(made), *one.flags]
        return _works(command, folder) and _works(
            [str(made)]
        )  # what an empty header leaves out, too


if __name__ == "__main__":
    print("\n".join(missing()))
