"""Files that a file names: only regular files in its own folder tree, unless one trusts it."""

from __future__ import annotations

import ntpath
import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from raconvert.conversion.options import Settings
from raconvert.errors import ReadFailed, Unsafe
from raconvert.files import named
from raconvert.files.named import resolve
from raconvert.files.source import Source


@pytest.fixture
def header(tmp_path: Path) -> Path:
    """Return a header in a folder of its own, with data in the folder, below it and above it."""
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    for place in (folder, folder / "sub", tmp_path):
        (place / "data.raw").write_bytes(b"data")
    (folder / "x.hdr").write_text("header")
    return folder / "x.hdr"


def find(header: Path, name: str, **options: object) -> str:
    return resolve(Source(str(header), **options), name, "the data file")


# What may be read --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "data.raw",
        "./data.raw",
        "sub/data.raw",
        "sub/../data.raw",
        "../folder/sub/data.raw",
        "x.hdr",
    ],
)
def test_files_of_the_own_tree(header: Path, name: str) -> None:
    assert find(header, name) == os.path.realpath(header.parent / name)
    assert find(header, name, trust_external=True) == os.path.realpath(header.parent / name)


def test_an_absolute_path_into_the_own_tree(header: Path) -> None:
    place = str(header.parent / "sub" / "data.raw")
    assert find(header, place) == os.path.realpath(place)


def test_a_header_named_relative_to_the_working_folder(
    header: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(header.parent)
    assert find(Path("x.hdr"), "data.raw") == os.path.realpath("data.raw")
    with pytest.raises(Unsafe):
        find(Path("x.hdr"), "../data.raw")


def test_a_header_below_a_link_to_its_folder(header: Path, tmp_path: Path) -> None:
    os.symlink(header.parent, tmp_path / "link")
    assert find(tmp_path / "link" / "x.hdr", "data.raw") == os.path.realpath(
        header.parent / "data.raw"
    )


def test_a_link_that_stays_inside(header: Path) -> None:
    os.symlink("sub/data.raw", header.parent / "link.raw")
    assert find(header, "link.raw") == os.path.realpath(header.parent / "sub" / "data.raw")


def test_odd_names_are_names(header: Path) -> None:
    for name in ("~", "$HOME", "a\nb", "*.raw", "data.raw ", "ä", "..."):
        (header.parent / name).write_bytes(b"data")
        assert find(header, name) == os.path.realpath(header.parent / name)


def test_what_is_not_yet_renamed_is_read_in_its_place(header: Path, tmp_path: Path) -> None:
    final = os.path.realpath(header.parent / "new.raw")
    source = Source(str(header), stand_ins={final: str(tmp_path / "temporary")})
    assert resolve(source, "new.raw", "the data file") == str(tmp_path / "temporary")
    with pytest.raises(ReadFailed):
        resolve(source, "newer.raw", "the data file")


# What may not ------------------------------------------------------------------------------------


OUTSIDE = ["../data.raw", "/etc/passwd", "sub/../../data.raw", "../folder2/data.raw", "..", ".", "",
           "/", "link-out", "sub/link-out", "link-up/data.raw", "/proc/self/environ"]  # fmt: skip


@pytest.fixture
def surrounded(header: Path, tmp_path: Path) -> Path:
    """Return a header whose folder has links that lead out of it, and a neighbor of like name."""
    (tmp_path / "folder2").mkdir()
    (tmp_path / "folder2" / "data.raw").write_bytes(b"data")
    os.symlink(tmp_path / "data.raw", header.parent / "link-out")
    os.symlink("../../data.raw", header.parent / "sub" / "link-out")
    os.symlink("..", header.parent / "link-up")
    return header


@pytest.mark.parametrize("name", OUTSIDE)
def test_outside_is_refused(surrounded: Path, name: str) -> None:
    with pytest.raises(Unsafe, match="lies outside the folder of the file that names it") as caught:
        find(surrounded, name)
    assert f"'{surrounded}'" in str(caught.value)
    assert f"got '{name}'" in str(caught.value)
    assert 'trust=["external"]' in str(caught.value)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize(
    "name", ["../data.raw", "../folder2/data.raw", "link-out", "link-up/data.raw"]
)
def test_outside_is_read_from_those_one_trusts(surrounded: Path, name: str) -> None:
    assert find(surrounded, name, trust_external=True) == os.path.realpath(surrounded.parent / name)


def test_outside_is_refused_before_it_is_known_to_exist(header: Path) -> None:
    """Otherwise a header could ask which files there are."""
    with pytest.raises(Unsafe) as there:
        find(header, "../data.raw")
    with pytest.raises(Unsafe) as missing:
        find(header, "../missing.raw")
    assert there.value.what == missing.value.what


@pytest.mark.parametrize("trust", [False, True])
def test_what_is_missing(header: Path, trust: bool) -> None:
    os.symlink("nowhere", header.parent / "dangling")
    for name in (
        "missing.raw",
        "sub/missing.raw",
        "data.raw/below",
        "dangling",
        "x" * 300,
        "x/" * 3000,
    ):
        with pytest.raises(ReadFailed, match="does not exist") as caught:
            find(header, name, trust_external=trust)
        assert caught.value.what.startswith("the data file '")
        assert caught.value.path == str(header)


@pytest.mark.parametrize("trust", [False, True])
def test_what_is_no_regular_file_is_never_read(header: Path, trust: bool, tmp_path: Path) -> None:
    os.mkfifo(header.parent / "pipe")
    os.symlink("loop", header.parent / "loop")
    os.symlink("pipe", header.parent / "to-pipe")
    (header.parent / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(header.parent / "socket"))
        for name in ("pipe", "to-pipe", "folder", "sub", "loop", "socket"):
            with pytest.raises(Unsafe, match="is not a regular file"):
                find(header, name, trust_external=trust)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty", "/sys", "/"])
def test_devices_are_never_read(header: Path, device: str) -> None:
    os.symlink(device, header.parent / "device")
    for name in (device, "device"):
        with pytest.raises(Unsafe, match="lies outside"):
            find(header, name)
        with pytest.raises(Unsafe, match="is not a regular file"):
            find(header, name, trust_external=True)


@pytest.mark.parametrize("name", ["data.raw\0", "\0", "a\0/../../data.raw", "\ud800"], ids=ascii)
@pytest.mark.parametrize("trust", [False, True])
def test_names_that_no_file_can_have(header: Path, name: str, trust: bool) -> None:
    with pytest.raises(Unsafe, match="a name that no file can have") as caught:
        find(header, name, trust_external=trust)
    str(caught.value).encode()  # can be printed


def test_a_name_in_bytes_of_no_encoding(header: Path) -> None:
    name = os.fsdecode(b"\xff.raw")
    (header.parent / name).write_bytes(b"data")
    assert find(header, name) == os.path.realpath(header.parent / name)


# Trust -------------------------------------------------------------------------------------------


def test_nothing_but_trust_gives_trust() -> None:
    assert not Settings(allow=["all"]).trust
    assert Settings(trust="external").trust == ["external"]


def test_a_source_trusts_nobody_by_default(header: Path) -> None:
    assert not Source(str(header)).trust_external


# Windows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        r"\\host\share\data.raw",
        "//host/share/data.raw",
        r"\\?\UNC\host\share\data.raw",
        r"\\.\pipe\data",
        "D:data.raw",
        r"D:\data.raw",
    ],
)
def test_other_hosts_and_drives_are_not_even_looked_at(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What a look at a share of another host alone would do is done to nobody."""
    looked = []

    def realpath(path: str) -> str:
        looked.append(path)
        return ntpath.normpath(path)

    paths = SimpleNamespace(
        **{n: getattr(ntpath, n) for n in ("join", "splitdrive", "normcase", "dirname")},
        realpath=realpath,
        islink=lambda _: False,
    )
    monkeypatch.setattr(named, "os", SimpleNamespace(path=paths, fsencode=os.fsencode))
    with pytest.raises(Unsafe, match="outside the folder"):
        resolve(Source(r"C:\scans\x.nhdr"), name, "the data file")
    assert looked == [r"C:\scans\x.nhdr"]


# The path without links --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "data.raw", "sub/data.raw", "./data.raw", "sub//data.raw", "sub/", "sub/..", "..", "",
        "../data.raw", "link", "link/data.raw", "sub/link/data.raw", "loop", "loop/x", "gone",
        "gone/x", "data.raw/x", "sub/gone", "out/x", "/", "a\\b", "x" * 300,
    ],
)  # fmt: skip
def test_a_real_path_is_the_one_of_the_system(header: Path, name: str) -> None:
    folder = header.parent
    (folder / "link").symlink_to("sub")
    (folder / "sub" / "link").symlink_to(folder)
    (folder / "loop").symlink_to("loop")
    (folder / "out").symlink_to(folder.parent)
    real = os.path.realpath(folder)

    assert named.real_path(real, name) == os.path.realpath(os.path.join(real, name))


def test_a_file_that_became_a_link_outwards_is_refused_when_it_is_opened(
    header: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(str(header))
    resolve(source, "data.raw", "the data file")  # its folder is known from now on
    real = named.real_path

    def replaced(folder: str, name: str) -> str:
        path = real(folder, name)
        (header.parent / "sub" / "data.raw").unlink()
        (header.parent / "sub" / "data.raw").symlink_to(header.parent.parent / "data.raw")
        return path

    monkeypatch.setattr(named, "real_path", replaced)
    with pytest.raises(Unsafe, match="outside the folder"):
        resolve(source, "sub/data.raw", "the data file")
