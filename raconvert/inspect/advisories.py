"""Known faults of the libraries that read files here: which versions have them, and the sources.

Only faults that touch a format or a function that is used here, and only from public sources: words
of the project itself (announcement, advisory, release notes), an issue or a change in its
repository, or an entry in the tracker of others. An entry is not the end of trust in a library, nor
is its lack a reason for it: SECURITY.md says what is done in any case.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Advisory(NamedTuple):
    """A fault of a library and the versions that have it."""

    library: str  # a distribution, or HDF5, the library inside h5py
    versions: str  # "<VERSION" or "<=VERSION"
    names: str
    what: str
    source: str  # the page about it, of the project itself if it has one


HDF5 = "HDF5"
ADVISORIES = (
    Advisory(
        HDF5, "<1.14.4", "CVE-2024-29157 CVE-2024-29164 CVE-2024-29165 and others",
        "a crafted file writes beyond buffers (global heaps, references, fletcher32)",
        "https://www.hdfgroup.org/2024/05/new-hdf5-cve-issues-fixed-in-1-14-4/",
    ),
    Advisory(
        HDF5, "<1.14.4", "HDFGroup/hdf5#3003",
        "addresses of chunks are given without the user block before the file",
        "https://github.com/HDFGroup/hdf5/pull/4236",
    ),
    Advisory(
        HDF5, "<1.14.4", "CVE-2026-26200",
        "a crafted compound type writes beyond a buffer",
        "https://github.com/HDFGroup/hdf5/security/advisories/GHSA-5p2m-j456-9mr2",
    ),
    Advisory(
        HDF5, "<2.0.0", "CVE-2025-2914 CVE-2025-2915 CVE-2025-2924",
        "a crafted file writes beyond buffers of the cache of metadata and of local heaps",
        "https://security-tracker.debian.org/tracker/CVE-2025-2924",
    ),
    Advisory(
        HDF5, "<=2.3.0", "CVE-2026-19024 CVE-2026-19025 CVE-2026-19026",
        "a crafted fill value, layout of chunks or n-bit filter ends the process",
        "https://github.com/HDFGroup/hdf5/issues/6491",
    ),
    Advisory(
        "pillow", "<10.0.1", "CVE-2023-4863",
        "a crafted WebP file writes beyond a buffer (libwebp)",
        "https://pillow.readthedocs.io/en/stable/releasenotes/10.0.1.html",
    ),
    Advisory(
        "pillow", "<12.3.0", "CVE-2026-59199",
        "coordinates near 2**31 write beyond a buffer when frames are put together",
        "https://osv.dev/vulnerability/UBUNTU-CVE-2026-59199",
    ),
    Advisory(
        "pillow", "<13.0.0", "CVE-2026-96639 GHSA-5x8w-8jj5-q52h GHSA-462x-pgg6-55fp",
        "crafted files of several frames, JPEG and TIFF files read and write beyond buffers",
        "https://pillow.readthedocs.io/en/stable/releasenotes/13.0.0.html",
    ),
)  # fmt: skip


def known_faults(distributions: Iterable[str]) -> list[dict[str, Any]]:
    """List known faults of the installed distributions, and of the libhdf5 inside h5py."""
    versions = {name: installed(name) for name in distributions}
    if versions.get("h5py"):
        versions[HDF5] = hdf5_version()
    return [
        {**advisory._asdict(), "version": version}
        for advisory in ADVISORIES
        if (version := versions.get(advisory.library)) and concerns(advisory, version)
    ]


def concerns(advisory: Advisory, version: str) -> bool:
    """True if a version has the fault of the advisory."""
    bound = advisory.versions.lstrip("<=")
    ours, theirs = _numbers(version), _numbers(bound)
    return ours < theirs or (ours == theirs and advisory.versions.startswith("<="))


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version without zeros at its end; 2.1.0rc1 counts as 2.1.0."""
    match = re.match(r"\d+(?:[.-]\d+)*", version)
    numbers = [int(part) for part in re.split("[.-]", match[0])] if match else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def installed(distribution: str) -> str | None:
    """The version of a distribution; None if it is not installed as one."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def hdf5_version() -> str | None:
    """The version of the HDF5 library of h5py; a wheel has a library that is asked without NumPy.

    None if h5py is not installed.
    """
    from importlib.util import find_spec

    spec = find_spec("h5py")
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).parent
    beside = package.parent / "h5py.libs"
    for path in (*beside.glob("libhdf5-*.so*"), *package.glob(".dylibs/libhdf5.*dylib")):
        with suppress(ImportError):  # of ctypes, which a Python may lack
            return _version_of_library(str(path))
    try:
        from h5py.version import hdf5_version as version
    except ImportError:
        return None
    return str(version)


def _version_of_library(path: str) -> str:
    """The version that the HDF5 library at this path answers, without h5py."""
    from ctypes import CDLL, byref, c_uint

    numbers = c_uint(), c_uint(), c_uint()
    CDLL(path).H5get_libversion(*map(byref, numbers))
    return ".".join(str(number.value) for number in numbers)
