"""Names of arrays, groups and axes are never paths: no writer writes outside its destination."""

from __future__ import annotations

import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import raconvert
from raconvert import Array, Axis, Metadata
from raconvert.catalogue import ROWS
from raconvert.errors import RaconvertError, Unsafe
from raconvert.files.folder_target import Folder
from raconvert.files.names import check_inside, is_inside, members_of, paths_of
from raconvert.files.zips import Archive

if TYPE_CHECKING:
    from raconvert.catalogue import Row

PARTS = (
    "..", ".", "", "a", "A", "b", "c", "0", "zarr.json", ".zarray", ".zgroup", ".zattrs", "con", "NUL.txt",
    "__MACOSX", "C:", "c:x", "\\", "..\\x", "\\\\host\\x", "x.", "x ", " x", "~", "-rf", "$(id)",
    "a\nb", "\x1b[2J", "\x9b2J", "bundle.yaml", "x.npy", "%2E%2E", "%", "x" * 300, "日" * 100, "é",
    "e\u0301", "a:b", "*", "?", "\u202e",
)  # fmt: skip
NAME = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map("/".join)
NAMES = st.lists(NAME | st.text(max_size=6), min_size=2, max_size=4, unique=True)
AXIS = st.sampled_from((*PARTS, "lat", "Lat", "../up", "/abs")) | NAME
CONTAINERS = [row for row in ROWS if row.many and row.writes]
FOLDERS = {"bundle", "zarr"}


def tree(top: Path) -> set[str]:
    return {str(path.relative_to(top)) for path in top.rglob("*")}


def arrays_of(names: list[str], axis: str) -> dict[str, Array]:
    return {
        name: Array(
            np.arange(3.0), name=name, meta=Metadata(axes=[Axis(name=axis, labels=[1, 2, number])])
        )
        for number, name in enumerate(names)
    }


def options_of(name: str) -> list[dict[str, str]]:
    """The options that change how names become keys."""
    return [{"format": "2"}, {"format": "3"}] if name == "zarr" else [{}]


def members_in(path: Path) -> list[str]:
    """The members of an archive, if the file is one."""
    if path.is_file() and tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            return archive.getnames()
    if path.is_file() and zipfile.is_zipfile(path):
        return zipfile.ZipFile(path).namelist()
    return []


def is_harmless(path: str) -> bool:
    """True for a path that names a file below any folder, on each system, and can be listed."""
    windows, posix = PureWindowsPath(path), PurePosixPath(path)
    rooted = windows.drive or windows.root or posix.is_absolute()
    odd = any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in path)
    return not rooted and not odd and ".." not in (*windows.parts, *posix.parts)


def is_portable(part: str) -> bool:
    """True for a name that a file can have on Windows, too, and that no shell takes for more."""
    return (
        is_harmless(part)
        and not set(part) & set('<>:"\\|?*')
        and part[-1] not in " ."
        and not PureWindowsPath(part).is_reserved()
    )


@pytest.mark.parametrize("row", CONTAINERS, ids=lambda row: row.name)
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@example(names=["../up", "../../../up", "/abs", "a/../../../x"], axis="lat")
@example(names=["", "c", "zarr.json", ".zarray"], axis="zarr.json")
@example(names=["Lat", "lat", "lat/x"], axis="LAT")
@example(names=["..\\x", "C:\\x", "c:x", "NUL"], axis="..")
@given(names=NAMES, axis=AXIS)
def test_nothing_is_written_outside_and_names_come_back(
    row: Row, names: list[str], axis: str
) -> None:
    for options in options_of(row.name):
        with tempfile.TemporaryDirectory() as top:
            home = Path(top, "home", "user")
            home.mkdir(parents=True)
            path = home / f"out{''.join(row.suffixes[:1])}"
            before = tree(Path(top))
            try:
                raconvert.write(str(path), arrays_of(names, axis), to=row.name, out_opts=options)
            except RaconvertError:
                assert tree(Path(top)) == before
                continue
            inside = str(path.relative_to(top))
            written = tree(Path(top)) - before
            assert all(p.startswith(inside) for p in written)  # a schema lies beside its file
            assert all(map(is_harmless, members_in(path)))
            if row.name in FOLDERS:
                found = [p.relative_to(path) for p in path.rglob("*")]
                assert all(
                    part in DOCUMENTS or is_portable(part) for p in found for part in p.parts
                )
                folded = [str(p).casefold() for p in found]
                assert len(set(folded)) == len(folded)
            with raconvert.open(str(path)) as again:
                assert again.names == names
                described = again.arrays if row.meta == "all" else []
                for number, array in enumerate(described):
                    assert array.meta.axes[0].name == axis or not axis
                    assert list(array.meta.axes[0].labels) == [1, 2, number]


DOCUMENTS = {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"}


@settings(deadline=None, max_examples=40)
@given(names=NAMES)
def test_arrays_that_become_files_stay_in_their_folder(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as top:
        home = Path(top, "home", "user")
        home.mkdir(parents=True)
        source = home / "in.zip"
        try:
            raconvert.write(str(source), arrays_of(names, "x"))
        except RaconvertError:
            return
        before = tree(Path(top))
        raconvert.convert(str(source), out_dir=str(home / "out"), to="npy")
        written = tree(Path(top)) - before
        assert all(path.startswith("home/user/out") for path in written)
        assert len([p for p in (home / "out").rglob("*") if p.is_file()]) == len(names)


@given(names=NAMES)
def test_paths_and_members_are_distinct_and_inside(names: list[str]) -> None:
    for made in (paths_of(names, ".x"), members_of(names, ".x"), paths_of(names, "")):
        assert len(set(made)) == len(names)
        assert all(map(is_inside, made))
        assert all(map(is_harmless, made))


@pytest.mark.parametrize("path", ["../x", "/x", "a/../x", "a//b", "", "C:/x", "a\\b", "a\0", "."])
def test_the_writers_themselves_refuse_what_leads_out(path: str, tmp_path: Path) -> None:
    with pytest.raises(Unsafe, match="outside its destination"):
        check_inside(path, "a file")
    folder = Folder(str(tmp_path / "x"))
    with pytest.raises(Unsafe):
        folder.put(path, [b""])
    with pytest.raises(Unsafe):
        folder.member(path)
    with (tmp_path / "x.zip").open("wb", buffering=0) as file, pytest.raises(Unsafe):
        Archive(file).add(path, [b""])
    assert list(tmp_path.iterdir()) == [tmp_path / "x.zip"]
