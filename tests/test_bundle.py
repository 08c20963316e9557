"""Bundles: a folder, a .zip or a .tar of .ra files, written exactly, read in place, by any name."""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import shutil
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
import pytest
import ra_bytes
import yaml
from bundles import FORMS, column_major, facts, load, place, rich, save, small
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import raconvert
from raconvert import convert
from raconvert.api import array_of
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.metadata import Metadata
from raconvert.bundle.members import MANIFEST, files_of
from raconvert.cli import main
from raconvert.conversion.read import open_bundle
from raconvert.errors import (
    Corrupt,
    TargetExists,
    UnknownFormat,
    Unsupported,
    UsageError,
    WouldLose,
)
from raconvert.files.names import is_inside
from raconvert.inspect.diff import diff
from raconvert.inspect.info import info
from raconvert.inspect.verify import verify

EACH_FORM = pytest.mark.parametrize("form", FORMS)
ARCHIVES = pytest.mark.parametrize("form", ["zip", "tar"])


def tree(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def members(path: Path) -> dict[str, bytes]:
    """Return the files of a bundle, in the order of the archive, with Python's own libraries."""
    if path.is_dir():
        return tree(path)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(path) as archive:
        return {m.name: archive.extractfile(m).read() for m in archive.getmembers()}


def cli(*words: object) -> int:
    return main([str(word) for word in words])


# What is written ---------------------------------------------------------------------------------

SMALL_MANIFEST = b"""raconvert_bundle: 1
arrays:
- name: x
  file: x.ra
  index_order: C
- name: g/y
  file: g/y.ra
  index_order: F
groups:
  g:
    k: 1
attributes:
  title: t
...
"""


@EACH_FORM
def test_the_files_of_a_small_bundle(tmp_path: Path, form: str) -> None:
    path = place(tmp_path, form)
    report = save(path, small())
    found = members(path)
    assert set(found) == {"bundle.yaml", "x.ra", "g/y.ra", "g/y.ra.yaml"}
    assert found["bundle.yaml"] == SMALL_MANIFEST
    assert found["x.ra"] == ra_bytes.ra_file(2, 1, (3,), b"\0\1\2")
    assert found["g/y.ra"] == ra_bytes.ra_file(3, 8, (2, 2), np.eye(2).tobytes())
    assert yaml.safe_load(found["g/y.ra.yaml"])["index_order"] == "F"
    assert report.written == [str(path)]
    assert os.listdir(tmp_path) == [path.name]
    if form != "bundle":  # the manifest first, each array before its sidecar
        assert list(found) == ["bundle.yaml", "x.ra", "g/y.ra", "g/y.ra.yaml"]


def test_the_three_forms_hold_the_same_files(tmp_path: Path) -> None:
    for form in FORMS:
        save(place(tmp_path, form), rich())
    folder, zipped, tarred = (members(place(tmp_path, form)) for form in FORMS)
    assert folder == zipped == tarred
    assert list(zipped) == list(tarred)


@ARCHIVES
def test_archives_are_the_same_every_time(tmp_path: Path, form: str) -> None:
    for number, moment in enumerate((1_000_000_000, 1_700_000_000)):
        save(tmp_path / "source", rich(), overwrite=True)
        for file in (tmp_path / "source").rglob("*"):
            os.utime(file, (moment, moment))
            file.chmod(0o700 if number else 0o755)
        convert(tmp_path / "source", place(tmp_path, form, str(number)))
    first, second = (place(tmp_path, form, str(number)).read_bytes() for number in range(2))
    assert first == second


def test_a_zip_is_stored_aligned_and_without_traces(tmp_path: Path) -> None:
    save(tmp_path / "scan.zip", rich())
    raw = (tmp_path / "scan.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "scan.zip") as archive:
        assert archive.testzip() is None
        for info_ in archive.infolist():
            assert info_.compress_type == zipfile.ZIP_STORED
            assert info_.date_time == (1980, 1, 1, 0, 0, 0)
            assert stat.S_IMODE(info_.external_attr >> 16) == 0o644
            assert not info_.comment
        for name in archive.namelist():
            if name.endswith(".ra"):
                data = raw.index(b"rawarray", archive.getinfo(name).header_offset)
                rank = int.from_bytes(raw[data + 40 : data + 48], "little")
                assert (data + 48 + 8 * rank) % 64 == 0, name


def test_a_zip_begins_with_its_manifest(tmp_path: Path) -> None:
    """So that its first bytes tell what it is, under any name."""
    for form in ("zip", "tar"):
        save(place(tmp_path, form), small())
        os.rename(place(tmp_path, form), tmp_path / f"{form}.bin")
        assert info(tmp_path / f"{form}.bin")["format"] == form


def test_a_tar_has_no_traces_of_its_writer(tmp_path: Path) -> None:
    save(tmp_path / "scan.tar", rich())
    with tarfile.open(tmp_path / "scan.tar") as archive:
        for member in archive.getmembers():
            assert member.isreg()
            assert (member.mtime, member.uid, member.gid, member.uname, member.gname) == (
                0, 0, 0, "", "",
            )  # fmt: skip
            assert member.mode == 0o644
            assert member.offset_data % 512 == 0


def test_the_tools_of_the_system_unpack_the_folder(
    tmp_path: Path, tool: Callable[..., str]
) -> None:
    for form in FORMS:
        save(place(tmp_path, form), rich())
    subprocess.run([tool("unzip"), "-tq", "scan.zip"], cwd=tmp_path, check=True)
    unpack = {
        "zip": [tool("unzip"), "-q", tmp_path / "scan.zip"],
        "tar": [tool("tar"), "-xf", tmp_path / "scan.tar"],
    }
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    for form, command in unpack.items():
        (tmp_path / form).mkdir()
        subprocess.run(command, cwd=tmp_path / form, env=environment, check=True)
        assert tree(tmp_path / form) == tree(tmp_path / "scan")


def test_sha256sum_of_the_members_is_the_digest(
    tmp_path: Path, tool: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path / "scan", rich())
    files = files_of(rich().names, ".ra")
    done = subprocess.run(
        [tool("sha256sum"), *files],
        cwd=tmp_path / "scan",
        capture_output=True,
        text=True,
        check=True,
    )
    sums = [line.split()[0].lstrip("\\") for line in done.stdout.splitlines()]
    for form in FORMS:
        path = place(tmp_path, form)
        if form != "bundle":
            save(path, rich())
        assert cli("digest", path) == 0
        assert capsys.readouterr().out.splitlines() == [
            f"{digest}  {path}#{name}" for digest, name in zip(sums, rich().names, strict=True)
        ]
        assert [hashlib.sha256(members(path)[file]).hexdigest() for file in files] == sums


# Round trips -------------------------------------------------------------------------------------


@EACH_FORM
def test_everything_survives(tmp_path: Path, form: str) -> None:
    save(place(tmp_path, form), rich())
    assert load(place(tmp_path, form)) == facts(rich())


def test_everything_survives_a_journey_through_all_forms(tmp_path: Path) -> None:
    save(tmp_path / "a", rich())
    journey = ["a", "b.zip", "c.tar", "d.zip", "e.tar", "f"]
    for source, target in pairwise(journey):
        report = convert(
            tmp_path / source, tmp_path / target, to="bundle" if target == "f" else None
        )
        assert report.equivalent == report.allowed == []
    assert load(tmp_path / "f") == facts(rich())
    assert tree(tmp_path / "a") == tree(tmp_path / "f")
    assert (tmp_path / "b.zip").read_bytes() == (tmp_path / "d.zip").read_bytes()
    assert (tmp_path / "c.tar").read_bytes() == (tmp_path / "e.tar").read_bytes()


@EACH_FORM
def test_bfloat16(tmp_path: Path, form: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.arange(5).astype(ml_dtypes.bfloat16)
    save(place(tmp_path, form), Bundle([array_of(values, "x"), array_of(np.ones(1), "y")]))
    found = raconvert.read(place(tmp_path, form))["x"]
    assert found.dtype == values.dtype
    assert found.tobytes() == values.tobytes()


@EACH_FORM
def test_values_as_numpy_sees_them(tmp_path: Path, form: str) -> None:
    save(place(tmp_path, form), rich())
    found = raconvert.read(place(tmp_path, form))
    assert list(found) == rich().names
    for name, array in rich().items():
        expected = np.asarray(array)
        assert found[name].shape == expected.shape
        assert found[name].dtype == expected.dtype.newbyteorder("<")
        assert found[name].tobytes() == expected.astype(found[name].dtype).tobytes()


@EACH_FORM
@pytest.mark.parametrize("order", ["C", "F"])
def test_indices_stay_what_they_are(tmp_path: Path, form: str, order: str) -> None:
    """A bare .ra would only list the axes; a bundle says how its arrays are indexed."""
    np.savez(tmp_path / "in.npz", x=np.arange(24).reshape(2, 3, 4), y=np.ones(2))
    path = place(tmp_path, form)
    convert(tmp_path / "in.npz", path, to=form, axes="fortran" if order == "F" else None)
    with open_bundle(path) as bundle:
        assert bundle["x"].index_order == order
        assert bundle["x"].shape == (2, 3, 4)
    convert(path, tmp_path / "out.npz")
    assert np.array_equal(np.load(tmp_path / "out.npz")["x"], np.load(tmp_path / "in.npz")["x"])
    assert np.load(tmp_path / "out.npz")["x"].flags[f"{order}_CONTIGUOUS"]


@EACH_FORM
def test_arrays_without_index_order_stay_so(tmp_path: Path, form: str) -> None:
    raconvert.ra.write(tmp_path / "x.ra", np.zeros((2, 3)))
    convert([tmp_path / "x.ra"], place(tmp_path, form), to=form)
    assert b"index_order" not in members(place(tmp_path, form))["bundle.yaml"]
    with open_bundle(place(tmp_path, form)) as bundle:
        assert bundle["x"].index_order is None
    with open_bundle(place(tmp_path, form), index_order="F") as bundle:
        assert bundle["x"].shape == (3, 2)


@EACH_FORM
def test_groups_without_arrays_and_their_attributes(tmp_path: Path, form: str) -> None:
    bundle = Bundle([array_of(np.ones(2), "x")], groups={"a/b": {}, "": {"root": 1}, "c": {"n": 2}})
    save(place(tmp_path, form), bundle)
    assert load(place(tmp_path, form))["groups"] == {"a/b": {}, "": {"root": 1}, "c": {"n": 2}}


@EACH_FORM
def test_trailers_survive(tmp_path: Path, form: str) -> None:
    (tmp_path / "x.ra").write_bytes(ra_bytes.ra_file(2, 1, (3,), b"abc", trailer=b"more of it"))
    convert(tmp_path / "x.ra", place(tmp_path, form), to=form)
    assert members(place(tmp_path, form))["x.ra"].endswith(b"abcmore of it")
    convert(place(tmp_path, form), tmp_path / "y.ra")
    assert (tmp_path / "y.ra").read_bytes() == (tmp_path / "x.ra").read_bytes()


@EACH_FORM
def test_a_single_array_is_still_a_container(tmp_path: Path, form: str) -> None:
    save(place(tmp_path, form), Bundle([array_of(np.arange(3), "only")]))
    assert list(raconvert.read(place(tmp_path, form))) == ["only"]
    with raconvert.open(place(tmp_path, form), "only") as array:
        assert array.shape == (3,)


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    """Return a folder of images, each with a text of its own."""
    folder = tmp_path / "x"
    folder.mkdir()
    for number in range(3):
        text = PngInfo()
        text.add_text("Comment", f"number {number}")
        Image.fromarray(np.full((2, 4), number, "u1")).save(folder / f"{number}.png", pnginfo=text)
    return folder


@EACH_FORM
def test_a_stack_keeps_what_its_items_have_of_their_own(
    tmp_path: Path, stack: Path, form: str
) -> None:
    path = place(tmp_path, form)
    assert cli(stack / "*.png", "--stack", "--to", form, "-o", path, "-q") == 0
    lines = members(path)["x.ra.items.jsonl"].splitlines()
    assert len(lines) == 3
    assert all(b"number %d" % number in line for number, line in enumerate(lines))
    with open_bundle(path) as bundle:
        assert bundle.names == ["x"]
        assert [str(item).count("number") for item in bundle["x"].meta.items()] == [1, 1, 1]
    assert verify(path)["same"]
    again = place(tmp_path, "zip" if form == "tar" else "tar", "again")
    convert(path, again)
    assert members(again) == members(path)
    convert(path, tmp_path / "alone.ra")
    assert (tmp_path / "alone.ra.items.jsonl").read_bytes() == b"\n".join(lines) + b"\n"


@EACH_FORM
def test_items_that_are_gone_are_an_error(tmp_path: Path, stack: Path, form: str) -> None:
    convert(str(stack / "*.png"), tmp_path / "whole", stack=True, to="bundle")
    (tmp_path / "whole" / "x.ra.items.jsonl").unlink()
    path = packed(tmp_path / "whole", place(tmp_path, form, "cut"))
    with pytest.raises(Corrupt, match=r"x\.ra\.items\.jsonl.*missing"):
        open_bundle(path)
    with open_bundle(path, meta="ignore") as bundle:
        assert bundle["x"].shape == (3, 2, 4)


def packed(folder: Path, path: Path) -> Path:
    """Put the files of a folder into an archive with Python's own libraries, or copy the folder."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in tree(folder).items():
                archive.writestr(name, data)
    elif path.suffix == ".tar":
        with tarfile.open(path, "w") as archive:
            for name in tree(folder):
                archive.add(folder / name, name)
    else:
        shutil.copytree(folder, path)
    return path


# Names -------------------------------------------------------------------------------------------

# name -> file
FILES = {
    "x": "x.ra",
    "x.ra": "x.ra.ra",
    "a b": "a b.ra",
    "ä": "ä.ra",
    "日本/語": "日本/語.ra",
    "con": "%63on.ra",
    "CON/x": "%43ON/x.ra",
    "nul.txt": "%6Eul.txt.ra",
    "COM1": "%43OM1.ra",
    "com10": "com10.ra",
    "console": "console.ra",
    "lpt¹": "%6Cpt¹.ra",
    "x.": "x%2E.ra",
    "x ": "x%20.ra",
    " x": "%20x.ra",
    ".hidden": "%2Ehidden.ra",
    "..": "%2E%2E.ra",
    "../../x": "%2E%2E/%2E%2E/x.ra",
    "/x": "%/x.ra",
    "x/": "x/%.ra",
    "a//b": "a/%/b.ra",
    "": "%.ra",
    "-x": "%2Dx.ra",
    "~": "%7E.ra",
    "C:\\x": "C%3A%5Cx.ra",
    'a"b*c?d<e>f|g': "a%22b%2Ac%3Fd%3Ce%3Ef%7Cg.ra",
    "100%": "100%25.ra",
    "%41": "%2541.ra",
    "a\0b\nc\x7f": "a%00b%0Ac%7F.ra",
    "\ud800": "%D800.ra",
    "bundle.yaml": "bundle.yaml.ra",
    "bundle.yaml/x": "bundle.yaml%2/x.ra",
}


@every("name", FILES, ids=ascii)
def test_the_file_of_a_name(name: str) -> None:
    assert files_of([name], ".ra") == [FILES[name]]


@pytest.mark.parametrize(
    ("names", "files"),
    [
        (["x", "X"], ["x.ra", "X%2.ra"]),
        (["x", "X", "x%2"], ["x.ra", "X%2.ra", "x%252.ra"]),
        (["straße", "STRASSE"], ["straße.ra", "STRASSE%2.ra"]),
        (["\u00e9", "e\u0301"], ["\u00e9.ra", "e\u0301%2.ra"]),
        (["a", "a/b"], ["a.ra", "a/b.ra"]),
        (["a.ra/b", "a"], ["a.ra/b.ra", "a%2.ra"]),
        (["a", "a.ra/b"], ["a.ra", "a.ra%2/b.ra"]),
        (["a", "a.ra.yaml/b"], ["a.ra", "a.ra.yaml%2/b.ra"]),
        (["a.ra.items.jsonl/b", "a"], ["a.ra.items.jsonl/b.ra", "a%2.ra"]),
        (["G/a", "g/b", "G/c"], ["G/a.ra", "g%2/b.ra", "G/c.ra"]),
    ],
)
def test_names_that_would_be_one_file(names: list[str], files: list[str]) -> None:
    assert files_of(names, ".ra") == files


def test_long_names_are_cut_and_stay_apart() -> None:
    names = ["x" * 500 + "a", "x" * 500 + "b", "日" * 200, "日" * 200 + "本", "g" * 300 + "/x"]
    files = files_of(names, ".ra")
    assert len(set(files)) == len(names)
    assert all(len(part.encode()) < 230 for file in files for part in file.split("/"))


NAMES = st.lists(
    st.one_of(
        st.text(st.characters(codec=None), max_size=8),
        st.text("aAbB./%~ ", max_size=6),
        st.lists(st.sampled_from(["a", "A", "a.ra", "con", "", ".", "..", "x.ra.yaml"]), max_size=4)
        .map("/".join),
    ),
    max_size=12,
    unique=True,
)  # fmt: skip


@given(names=NAMES, suffix=st.sampled_from([".ra", ".npy"]))
def test_files_are_distinct_safe_and_relative(names: list[str], suffix: str) -> None:
    files = files_of(names, suffix)
    assert len(files) == len(names)
    besides = [file + end for file in files for end in ("", ".yaml", ".items.jsonl")]
    folders = {
        "/".join(file.split("/")[:n]) for file in files for n in range(1, file.count("/") + 1)
    }
    taken = [path.casefold() for path in [MANIFEST, *besides, *folders]]
    assert len(set(taken)) == len(taken), "two would be one file"
    for name, file in zip(names, files, strict=True):
        assert is_inside(file)
        assert file.endswith(suffix)
        assert file.count("/") == name.count("/")
        file.encode()
        for part in file.split("/"):
            assert len(part.encode()) < 255
            assert part not in ("", ".", "..")
            assert (not set(part) & set('<>:"\\|?*') and part.isprintable()) or not part.isascii()
            assert part[0] not in " .~-"
            assert part[-1] not in " ."
            assert not re.match(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)", part)


@given(names=NAMES)
def test_one_name_more_changes_no_other_file(names: list[str]) -> None:
    assert files_of(names, ".ra")[:-1] == files_of(names[:-1], ".ra")


@EACH_FORM
def test_all_names_survive(tmp_path: Path, form: str) -> None:
    names = [name for name in FILES if "\ud800" not in name]
    names += [
        "X",
        "a/b",
        "a",
        "A",
        "x" * 500,
        "日" * 200,
        "g/" * 30 + "deep",
        "null",
        "1",
        "1.0",
        "~x",
    ]
    names = list(dict.fromkeys(names))
    bundle = Bundle([array_of(np.full(2, n), name) for n, name in enumerate(names)])
    save(place(tmp_path, form), bundle)
    found = raconvert.read(place(tmp_path, form))
    assert list(found) == names
    assert [int(values[0]) for values in found.values()] == list(range(len(names)))
    with raconvert.open(f"{place(tmp_path, form)}#日本/語") as array:
        assert array[0] == names.index("日本/語")


@EACH_FORM
def test_names_that_are_no_text_or_used_twice_are_refused(tmp_path: Path, form: str) -> None:
    for names, reason in ((["x", "\ud800"], "not valid text"), (["x", "x"], "used twice")):
        bundle = Bundle([array_of(np.ones(1), name) for name in names])
        with pytest.raises(WouldLose, match=reason):
            save(place(tmp_path, form), bundle)
    assert os.listdir(tmp_path) == []


@EACH_FORM
def test_a_path_that_is_too_long_is_refused(tmp_path: Path, form: str) -> None:
    bundle = Bundle([array_of(np.ones(1), "/".join(["g" * 100] * 1000))])
    with pytest.raises(WouldLose, match="longer than 2048 bytes"):
        save(place(tmp_path, form), bundle)
    bundle.arrays[0].name = "/".join(["g" * 100] * 20)
    save(place(tmp_path, form), bundle)
    assert load(place(tmp_path, form)) == facts(bundle)


# Reading in place --------------------------------------------------------------------------------


@EACH_FORM
def test_members_are_mapped_and_not_unpacked(tmp_path: Path, form: str) -> None:
    path = place(tmp_path, form)
    save(path, rich())
    with open_bundle(path) as bundle:
        array = bundle["g/x"]
        assert array.extent is not None
        assert Path(array.extent.path) == (path / "g" / "x.ra" if form == "bundle" else path)
        assert array.extent.offset % {"zip": 64, "tar": 8, "bundle": 8}[form] == 0
        values = np.asarray(array)
        base: object = values
        while not isinstance(base, mmap.mmap | None):
            base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
        assert isinstance(base, mmap.mmap)
        raw = Path(array.extent.path).read_bytes()
        assert raw[array.extent.offset :][: array.extent.nbytes] == values.tobytes("F")
    assert os.listdir(tmp_path) == [path.name]


@EACH_FORM
def test_slices_and_blocks_of_a_member(tmp_path: Path, form: str) -> None:
    save(place(tmp_path, form), rich())
    with raconvert.open(f"{place(tmp_path, form)}#g/x") as array:
        assert array[1, 2].tolist() == np.asarray(rich()["g/x"])[1, 2].tolist()
        assert array[..., -1].shape == (3, 4)


@EACH_FORM
@pytest.mark.parametrize("encoding", ["lz4", "leb128"])
def test_encoded_members(tmp_path: Path, form: str, encoding: str) -> None:
    """As other programs write .ra files; raconvert writes plain ones."""
    values = np.arange(5000, dtype="i4").reshape(50, 100) // 7
    save(tmp_path / "whole", Bundle([array_of(values, "x"), array_of(np.ones(3), "y")]))
    (tmp_path / "whole" / "x.ra").unlink()
    np.save(tmp_path / "x.npy", values)
    convert(tmp_path / "x.npy", tmp_path / "whole" / "x.ra", out_opts={"encoding": encoding})
    path = packed(tmp_path / "whole", place(tmp_path, form))
    assert raconvert.read(path)["x"].tolist() == values.tolist()
    convert(path, tmp_path / "plain.zip", overwrite=True)
    assert raconvert.read(tmp_path / "plain.zip")["x"].tolist() == values.tolist()


REPACKED: dict[str, list[str]] = {
    "zip-r": ["zip -0 -q -r ../new.zip .", "new.zip"],
    "zip-r-no-folders": ["zip -0 -q -r -D ../new.zip .", "new.zip"],
    "zip-top-folder": ["cd .. && zip -0 -q -r new.zip scan", "new.zip"],
    "zip-reversed": ["find . -type f | sort -r | zip -0 -q -@ ../new.zip", "new.zip"],
    "zip-streamed": ["zip -0 -q -r - . | cat > ../new.zip", "new.zip"],
    "tar": ["tar -cf ../new.tar *", "new.tar"],
    "tar-dot": ["tar -cf ../new.tar .", "new.tar"],
    "tar-top-folder": ["cd .. && tar -cf new.tar scan", "new.tar"],
    "tar-reversed": ["find . -type f | sort -r | tar -cf ../new.tar -T -", "new.tar"],
    "tar-ustar": ["tar -cf ../new.tar --format=ustar .", "new.tar"],
    "tar-pax": ["tar -cf ../new.tar --format=pax --xattrs .", "new.tar"],
    "tar-appended": ["tar -cf ../new.tar x.ra && tar -rf ../new.tar bundle.yaml g", "new.tar"],
    "tar-updated": ["echo old > x.ra.old; tar -cf ../new.tar x.ra.old --transform s/.old//; "
                    "tar -rf ../new.tar bundle.yaml g x.ra; rm x.ra.old", "new.tar"],
}  # fmt: skip


@pytest.mark.parametrize("case", REPACKED)
def test_what_real_tools_packed(tmp_path: Path, tool: Callable[..., str], case: str) -> None:
    tool(case.split("-", maxsplit=1)[0])
    command, name = REPACKED[case]
    save(tmp_path / "scan", small())
    subprocess.run([tool("bash"), "-ec", command], cwd=tmp_path / "scan", check=True)
    assert load(tmp_path / name) == facts(small())
    with open_bundle(tmp_path / name) as bundle:
        assert all(array.extent.path == str(tmp_path / name) for array in bundle.arrays)
    assert verify(tmp_path / name)["same"]
    convert(f"{tmp_path / name}#g/y", tmp_path / "y.npy")
    assert np.load(tmp_path / "y.npy").tolist() == np.eye(2).tolist()


def test_compressed_members_are_refused_with_a_way_out(
    tmp_path: Path, tool: Callable[..., str]
) -> None:
    save(tmp_path / "scan", Bundle([array_of(np.zeros(1000), "x")]))
    subprocess.run([tool("zip"), "-qr", "../scan.zip", "."], cwd=tmp_path / "scan", check=True)
    with pytest.raises(Unsupported, match="is compressed") as caught:
        open_bundle(tmp_path / "scan.zip")
    assert "unpack the archive and convert the folder" in str(caught.value)
    assert "stored" in str(caught.value)


@pytest.mark.parametrize("suffix", [".tar.gz", ".tgz", ".tar.xz"])
def test_compressed_tars_are_named(tmp_path: Path, suffix: str) -> None:
    save(tmp_path / "scan", small())
    with tarfile.open(
        tmp_path / f"scan{suffix}", f"w:{'xz' if 'xz' in suffix else 'gz'}"
    ) as archive:
        archive.add(tmp_path / "scan", "scan")
    with pytest.raises(UnknownFormat, match="xz" if "xz" in suffix else "gzip"):
        open_bundle(tmp_path / f"scan{suffix}")


@ARCHIVES
def test_archives_that_are_no_bundle(tmp_path: Path, form: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "readme.txt").write_text("text")
    path = packed(tmp_path / "other", place(tmp_path, form))
    with pytest.raises(Unsupported, match=r"holds no bundle\.yaml") as caught:
        open_bundle(path)
    assert str(path) in str(caught.value)


@ARCHIVES
def test_several_bundles_in_one_archive(tmp_path: Path, form: str) -> None:
    (tmp_path / "all").mkdir()
    save(tmp_path / "all" / "a", small())
    save(tmp_path / "all" / "b", small())
    with pytest.raises(Unsupported, match="several bundles"):
        open_bundle(packed(tmp_path / "all", place(tmp_path, form)))


# Naming arrays -----------------------------------------------------------------------------------


@EACH_FORM
def test_one_array_by_its_name(tmp_path: Path, form: str) -> None:
    path = place(tmp_path, form)
    save(path, rich())
    for spec in (f"{path}#g/deep/er", f"{path}#/g/deep/er", f"{path}#g/deep"):
        assert cli(spec, "-o", tmp_path / "er.npy", "--overwrite", "-q") == 0
        assert np.load(tmp_path / "er.npy").tobytes() == np.asarray(rich()["g/deep/er"]).tobytes()


def test_the_manifest_stands_for_its_folder(tmp_path: Path) -> None:
    save(tmp_path / "scan", rich())
    assert load(tmp_path / "scan" / "bundle.yaml") == load(tmp_path / "scan")
    assert load(f"{tmp_path}/scan/") == load(tmp_path / "scan")
    convert(f"{tmp_path}/scan/bundle.yaml#a", tmp_path / "a.npy")
    assert np.load(tmp_path / "a.npy").tolist() == np.asarray(rich()["a"]).tolist()


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["g/*"], ["g/x", "g/deep/er"]),
        (["g"], ["g/x", "g/deep/er"]),
        (["g/deep/*", "a*"], ["g/deep/er", "a", "a/b"]),
        (["a"], ["a"]),
        (["A", "scalar", "a"], ["a", "A", "scalar"]),
        (["*"], None),
        (["[!a-z]*"], ["A", "Zürich/日本"]),
    ],
    ids=str,
)
@EACH_FORM
def test_arrays_by_pattern(
    tmp_path: Path, form: str, patterns: list[str], names: list[str] | None
) -> None:
    save(place(tmp_path, form), rich())
    options = [word for pattern in patterns for word in ("--array", pattern)]
    assert cli(place(tmp_path, form), *options, "-o", tmp_path / "out.zip", "-q") == 0
    assert list(raconvert.read(tmp_path / "out.zip")) == (names or rich().names)


@EACH_FORM
def test_a_name_that_is_not_there(
    tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save(place(tmp_path, form), small())
    for name in ("g/z", "X", "g/", ""):
        assert cli(f"{place(tmp_path, form)}#{name}", "-o", tmp_path / "y.npy") == 2
        assert "x, g/y" in capsys.readouterr().err
    assert not (tmp_path / "y.npy").exists()


@EACH_FORM
def test_several_arrays_are_too_many_for_one(
    tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save(place(tmp_path, form), small())
    assert cli(place(tmp_path, form), "-o", tmp_path / "y.npy") == 2
    err = capsys.readouterr().err
    assert "2 arrays" in err
    assert "x, g/y" in err


# Every verb --------------------------------------------------------------------------------------


def test_the_forms_are_equal_to_each_other_and_to_what_they_came_from(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "in.npz", **{"x": np.arange(6).reshape(2, 3), "g/y": np.ones((2, 2), ">f4")}
    )
    for form in FORMS:
        convert(tmp_path / "in.npz", place(tmp_path, form), to=form)
    places = [tmp_path / "in.npz", *(place(tmp_path, form) for form in FORMS)]
    for a in places:
        for b in places:
            assert diff(a, b)["same"], (a, b)


@EACH_FORM
def test_diff_sees_attributes_of_files_and_groups(tmp_path: Path, form: str) -> None:
    save(tmp_path / "a.zip", small())
    other = small()
    other.attributes, other.groups = {"title": "u"}, {"g": {"k": 2}}
    save(place(tmp_path, form, "b"), other)
    found = diff(tmp_path / "a.zip", place(tmp_path, form, "b"))
    assert [item["field"] for item in found["metadata"]] == ["title"]
    assert [item["field"] for item in found["groups"]] == ["groups.g.k"]


@EACH_FORM
def test_info_verify_and_digest(
    tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = place(tmp_path, form)
    save(path, small())
    facts_ = info(path)
    assert (facts_["format"], facts_["container"], facts_["sidecar"]) == (form, True, None)
    if form == "bundle":
        assert facts_["stored_bytes"] == sum(map(len, members(path).values()))
    else:
        assert facts_["stored_bytes"] == path.stat().st_size
    assert facts_["groups"] == {"g": {"k": 1}}
    assert cli("info", path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("  x     uint8     shape (3,) C · dims 3")
    assert lines[2:4] == ["  g/", "      k = 1"]
    assert lines[4].startswith("    y   float64   shape (2, 2) F · dims 2 × 2")
    assert lines[5] == "  attributes: title = 't'"
    assert lines[-1].endswith("; to the YAML sidecar: index_order")
    assert cli("verify", path) == 0
    assert capsys.readouterr().out.count("ok ") == 2


def test_info_shows_an_array_and_a_group_of_one_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays = [array_of(np.ones(1), name) for name in ("a", "a/b", "", "c//d")]
    save(tmp_path / "x.zip", Bundle(arrays, groups={"a": {"k": 1}, "e/f": {}}))
    assert cli("info", tmp_path / "x.zip") == 0
    lines = capsys.readouterr().out.splitlines()[1:-1]
    assert [line.partition("float64")[0].rstrip() for line in lines] == [
        "  a", "  a/", "      k = 1", "    b", "", "  c/", "    /", "      d", "  e/", "    f/",
    ]  # fmt: skip
    assert len({line.index("float64") for line in lines if "float64" in line}) == 1


@EACH_FORM
def test_verify_against_the_source(tmp_path: Path, form: str) -> None:
    np.savez(tmp_path / "in.npz", x=np.arange(6), y=np.ones(2))
    convert(tmp_path / "in.npz", place(tmp_path, form), to=form, verify=True)
    assert verify(place(tmp_path, form), [str(tmp_path / "in.npz")])["same"]
    np.savez(tmp_path / "in.npz", x=np.arange(6), y=np.zeros(2))
    assert not verify(place(tmp_path, form), [str(tmp_path / "in.npz")])["same"]


@EACH_FORM
def test_verify_while_writing(tmp_path: Path, form: str) -> None:
    save(place(tmp_path, form), rich(), verify=True)
    save(place(tmp_path, form), rich(), verify=True, meta="drop", allow=["dtype"], overwrite=True)
    assert verify(place(tmp_path, form))["same"]


# Destinations ------------------------------------------------------------------------------------


@pytest.fixture
def npz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A container `in.npz` of two arrays in the working folder, one of them in a group."""
    monkeypatch.chdir(tmp_path)
    np.savez("in.npz", **{"x": np.arange(6).reshape(2, 3), "g/y": np.ones((2, 2), order="F")})
    return "in.npz"


def test_a_folder_of_a_container_is_a_bundle(npz: str) -> None:
    os.mkdir("there")
    for words in (["-o", "new/"], ["-o", "there"], ["-o", "plain", "--to", "bundle"]):
        assert main([npz, *words, "-q"]) == 0
        assert sorted(os.listdir(words[1])) == ["bundle.yaml", "g", "x.ra"]


def test_a_folder_of_one_array_needs_a_format(npz: str, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("a.npy", np.ones(2))
    assert main(["a.npy", "-o", "new/"]) == 2
    assert "bundle for one folder of all" in capsys.readouterr().err
    assert main(["a.npy", "-o", "new/", "--to", "bundle", "-q"]) == 0
    assert list(raconvert.read("new")) == ["a"]


def test_one_file_for_each_array(npz: str) -> None:
    assert main([npz, "-o", "files/", "--to", "npy", "-q"]) == 0
    assert sorted(tree(Path("files"))) == ["g/y.npy", "x.npy"]
    assert main([npz, "--out-dir", "more", "--to", "ra", "-q"]) == 0
    assert sorted(tree(Path("more"))) == ["g/y.ra", "x.ra"]
    assert main(["in.npz", "in.npz", "--out-dir", "once", "--to", "ra"]) == 1
    assert sorted(name for name in tree(Path("once")) if name.endswith(".ra")) == [
        "in/g/y.ra",
        "in/x.ra",
    ]
    shutil.copy("in.npz", "two.npz")
    assert main(["in.npz", "two.npz", "--out-dir", "both", "--to", "ra", "-q"]) == 0
    files = [name for name in tree(Path("both")) if name.endswith(".ra")]
    assert sorted(files) == ["in/g/y.ra", "in/x.ra", "two/g/y.ra", "two/x.ra"]


def test_one_file_for_each_array_is_all_or_nothing(
    npz: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.makedirs("files/g")
    Path("files/g/y.npy").write_bytes(b"old")
    assert main([npz, "-o", "files/", "--to", "npy"]) == 5
    assert tree(Path("files")) == {"g/y.npy": b"old"}
    assert main([npz, "-o", "png/", "--to", "png"]) == 4
    assert not os.path.exists("png")
    assert main([npz, "-o", "files/", "--to", "npy", "--overwrite", "-q"]) == 0
    assert len(tree(Path("files"))["g/y.npy"]) > 3


def test_a_bundle_is_written_with_what_it_says_of_itself(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.attrs["title"] = "survey"
        file["g/x"] = np.arange(3)
        file["g"].attrs["part"] = 2
        file.create_group("empty")
        file.create_group("g/deep").attrs["k"] = "v"
        file["g/same"] = file["g/x"]
    with raconvert.open(tmp_path / "x.h5") as bundle:
        raconvert.write(tmp_path / "y.h5", bundle)
        raconvert.write(tmp_path / "g.h5", bundle["g"])
        lost = raconvert.write(tmp_path / "y.npz", bundle).equivalent

    assert raconvert.diff(tmp_path / "x.h5", tmp_path / "y.h5")["same"]
    assert any("title" in str(said) for said in lost)
    with h5py.File(tmp_path / "y.h5") as file:
        assert file.attrs["title"] == "survey"
        assert file["g"].attrs["part"] == 2
        assert file["g/same"] == file["g/x"]
        assert list(file["empty"]) == []
    with h5py.File(tmp_path / "g.h5") as file:
        assert file.attrs["part"] == 2
        assert file["x"] == file["same"]
        assert file["deep"].attrs["k"] == "v"


def test_several_files_become_one_container(npz: str) -> None:
    np.save("a.npy", np.ones(2))
    raconvert.ra.write("b.ra", np.zeros((2, 3)))
    for target in ("out.zip", "out.tar", "out.npz"):
        assert main(["a.npy", "b.ra", npz, "-o", target, "-q"]) == 0
        assert list(raconvert.read(target)) == ["a", "b", "in/x", "in/g/y"]
    assert main(["a.npy", "b.ra", "-o", "out/", "--to", "bundle", "-q"]) == 0
    assert main(["a.npy", "out", "-o", "out2.zip", "-q"]) == 0
    assert list(raconvert.read("out2.zip")) == ["a", "out/a", "out/b"]
    assert main(["a.npy", "out/", "-o", "out3.zip", "-q"]) == 0
    assert list(raconvert.read("out3.zip")) == ["a", "out/a", "out/b"]


def test_colliding_stems_are_an_error(npz: str, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("a.npy", np.ones(2))
    os.mkdir("sub")
    np.save("sub/a.npy", np.ones(2))
    assert main(["a.npy", "sub/a.npy", "-o", "out.zip"]) == 2
    assert "two sources would both become array 'a'" in capsys.readouterr().err
    assert not os.path.exists("out.zip")


@pytest.mark.parametrize("source", ["scan", "scan/", "./scan/", "scan/bundle.yaml"])
def test_a_bundle_among_many_is_named_after_its_folder(npz: str, source: str) -> None:
    convert(npz, "scan", to="bundle")
    assert main([source, "--out-dir", "out", "--to", "zip", "-q"]) == 0
    name = "bundle.zip" if source.endswith("yaml") else "scan.zip"
    assert os.listdir("out") == [name]
    assert main([source, "-o", "out/{stem}.tar", "-q"]) == 0
    assert sorted(os.listdir("out")) == [name.replace("zip", "tar"), name]


def test_one_array_of_a_destination(npz: str) -> None:
    np.save("a.npy", np.ones(2))
    assert main(["a.npy", "-o", "out.zip#g/renamed", "-q"]) == 0
    assert list(raconvert.read("out.zip")) == ["g/renamed"]
    assert main(["a.npy", "-o", "out.zip#more", "-q"]) == 0
    assert list(raconvert.read("out.zip")) == ["g/renamed", "more"]
    assert main(["a.npy", "-o", "out.zip#more"]) == 5


def test_the_standard_output(npz: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main([npz, "-o", "-", "--to", "zip"]) == 0
    Path("piped.zip").write_bytes(capfdbinary.readouterr().out)
    assert diff(npz, "piped.zip")["same"]
    assert main([npz, "-o", "-", "--to", "bundle"]) == 2
    assert capfdbinary.readouterr().out == b""


def test_dry_run(npz: str) -> None:
    for words in (["-o", "scan/"], ["-o", "s.zip"], ["-o", "s.tar"], ["-o", "f/", "--to", "npy"]):
        assert main([npz, *words, "--dry-run", "-q"]) == 0
    assert os.listdir() == [npz]


# Existing destinations ---------------------------------------------------------------------------


def test_an_empty_folder_may_be_filled(npz: str) -> None:
    os.mkdir("scan")
    os.chmod("scan", 0o750)
    assert main([npz, "-o", "scan", "-q"]) == 0
    assert list(raconvert.read("scan")) == ["x", "g/y"]
    assert stat.S_IMODE(os.stat("scan").st_mode) == 0o750


@pytest.mark.parametrize("words", [["-o", "there/"], ["-o", "there", "--to", "bundle"]])
def test_what_exists_is_left_as_it_was(
    npz: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    save(Path("there"), small())
    before = tree(Path("there"))
    assert main([npz, *words]) == 5
    assert "--overwrite" in capsys.readouterr().err
    assert tree(Path("there")) == before
    assert main([npz, *words, "--skip-existing", "-q"]) == 0
    assert tree(Path("there")) == before
    assert sorted(os.listdir()) == [npz, "there"]


def test_overwriting_replaces_a_bundle_whole(npz: str) -> None:
    save(Path("there"), rich())
    os.chmod("there", 0o700)
    assert main([npz, "-o", "there/", "--overwrite", "-q"]) == 0
    assert sorted(tree(Path("there"))) == ["bundle.yaml", "g/y.ra", "x.ra"]
    assert stat.S_IMODE(os.stat("there").st_mode) == 0o700
    assert sorted(os.listdir()) == [npz, "there"]


STRANGERS: dict[str, Callable[[Path], object]] = {
    "file": lambda path: (path / "notes.txt").write_text("mine"),
    "hidden-file": lambda path: (path / ".git").write_text("mine"),
    "file-in-a-group": lambda path: (path / "g" / "notes.txt").write_text("mine"),
    "another-array": lambda path: (path / "y.ra").write_text("mine"),
    "link": lambda path: os.symlink("/etc/passwd", path / "link"),
    "dangling-link": lambda path: os.symlink("nowhere", path / "link"),
    "pipe": lambda path: os.mkfifo(path / "pipe"),
    "manifest-of-something-else": lambda path: (path / "bundle.yaml").write_text("a: 1\n"),
    "manifest-cut-off": lambda path: os.truncate(path / "bundle.yaml", 60),
    "no-manifest": lambda path: (path / "bundle.yaml").unlink(),
    "folder-with-a-file": lambda path: ((path / "sub").mkdir(), (path / "sub" / "f").touch()),
    "empty-folder": lambda path: (path / "sub").mkdir(),
    "empty-folder-in-a-group": lambda path: (path / "g" / "sub").mkdir(),
    "link-to-a-folder": lambda path: os.symlink("/etc", path / "link"),
    "folder-named-as-a-file": lambda path: ((path / "x.ra").unlink(), (path / "x.ra").mkdir()),
}


@pytest.mark.parametrize("case", STRANGERS)
def test_nothing_but_a_bundle_is_replaced(npz: str, case: str) -> None:
    save(Path("there"), small())
    STRANGERS[case](Path("there"))
    before = {path: os.lstat(path).st_ino for path in sorted(Path("there").rglob("*"))}
    for options in ({"overwrite": True}, {"update": True}):
        os.utime(npz)  # newer than the bundle
        with pytest.raises(TargetExists) as caught:
            convert(npz, "there", to="bundle", **options)
        assert caught.value.exit_code == 5
    assert {path: os.lstat(path).st_ino for path in sorted(Path("there").rglob("*"))} == before
    assert sorted(os.listdir()) == [npz, "there"]


def test_a_folder_of_strangers_is_never_replaced(npz: str) -> None:
    os.mkdir("home")
    Path("home/letter.txt").write_text("dear")
    for target in ("home", "home/", str(Path("home").resolve())):
        assert main([npz, "-o", target, "--to", "bundle", "--overwrite"]) == 5
    assert tree(Path("home")) == {"letter.txt": b"dear"}


@pytest.mark.parametrize("target", [".", "./", "sub/..", "../work/."])
def test_a_folder_must_be_named_by_its_name(
    npz: str, target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    os.makedirs("work/sub")
    monkeypatch.chdir("work")
    assert main([f"../{npz}", "-o", target, "--to", "bundle", "--overwrite"]) == 2
    assert "by its own name" in capsys.readouterr().err
    assert os.listdir() == ["sub"]
    assert os.listdir("sub") == []


def test_the_folders_that_the_source_lies_in_are_never_replaced(
    npz: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.makedirs("work/sub")
    monkeypatch.chdir("work")
    for target in ("..", "/", "../", os.path.dirname(os.getcwd())):
        assert main([f"../{npz}", "-o", target, "--to", "bundle", "--overwrite"]) == 5
    assert os.listdir() == ["sub"]


def test_a_file_in_the_place_of_the_folder(npz: str) -> None:
    Path("there").write_text("mine")
    assert main([npz, "-o", "there", "--to", "bundle", "--overwrite"]) == 5
    assert Path("there").read_text() == "mine"


def test_a_link_to_a_folder_is_written_through(npz: str) -> None:
    save(Path("real"), small())
    os.symlink("real", "link")
    assert main([npz, "-o", "link/", "--overwrite", "-q"]) == 0
    assert os.readlink("link") == "real"
    assert list(raconvert.read("real")) == ["x", "g/y"]
    assert sorted(os.listdir()) == [npz, "link", "real"]


def test_a_bundle_is_not_written_onto_its_source(npz: str) -> None:
    save(Path("scan"), small())
    np.save("scan/g/more.npy", np.ones(2))
    before = tree(Path("scan"))
    for source in ("scan", "scan/", "scan#x", "scan/bundle.yaml", "scan/x.ra", "scan/g/more.npy",
                   "scan/g/../x.ra"):  # fmt: skip
        assert main([source, "-o", "scan/", "--to", "bundle", "--overwrite"]) == 5, source
    os.symlink("scan", "link")
    assert main(["link/x.ra", "-o", "scan", "--to", "bundle", "--overwrite"]) == 5
    assert main(["scan/x.ra", "-o", "link", "--to", "bundle", "--overwrite"]) == 5
    assert tree(Path("scan")) == before


@ARCHIVES
def test_an_archive_is_not_written_onto_its_source(npz: str, form: str) -> None:
    path = place(Path(), form)
    save(path, small())
    before = path.read_bytes()
    assert main([f"{path}#x", "-o", str(path), "--overwrite"]) == 5
    assert path.read_bytes() == before


def test_update_replaces_only_older_bundles(npz: str) -> None:
    save(Path("there"), small())
    os.utime(npz, (1_000, 1_000))
    assert convert(npz, "there", to="bundle", update=True).written == []
    os.utime("there", (500, 500))
    assert convert(npz, "there", to="bundle", update=True).written == ["there"]
    assert list(raconvert.read("there")) == ["x", "g/y"]


# Metadata modes ----------------------------------------------------------------------------------


@EACH_FORM
@pytest.mark.parametrize("mode", ["drop", "ignore"])
def test_metadata_can_be_left_out(tmp_path: Path, form: str, mode: str) -> None:
    bundle = rich()
    bundle.arrays = [array for array in bundle.arrays if array.element.kind != "user"]
    report = save(place(tmp_path, form), bundle, meta=mode)
    found = members(place(tmp_path, form))
    assert set(yaml.safe_load(found["bundle.yaml"])) == {"raconvert_bundle", "arrays"}
    assert all(
        set(entry) == {"name", "file"} for entry in yaml.safe_load(found["bundle.yaml"])["arrays"]
    )
    assert not [name for name in found if not name.endswith((".ra", "bundle.yaml"))]
    told = {(fit.array, fit.property) for fit in report.equivalent}
    assert {
        ("g/x", "index order"),
        ("g/x", "metadata"),
        ("z-first", "metadata"),
        ("", "metadata"),
    } <= told
    assert [array.name for array in rich().arrays if array.element.kind != "user"] == list(
        raconvert.read(place(tmp_path, form))
    )


@EACH_FORM
def test_dropping_the_dtype_must_be_allowed(tmp_path: Path, form: str) -> None:
    bundle = Bundle([array_of(np.array(["2020"], "M8[Y]"), "x")])
    with pytest.raises(WouldLose, match=r'allow=\["dtype"\]'):
        save(place(tmp_path, form), bundle, meta="drop")
    save(place(tmp_path, form), bundle, meta="drop", allow=["dtype"])
    assert raconvert.read(place(tmp_path, form))["x"].dtype == np.dtype("V8")


@EACH_FORM
def test_dropping_also_drops_what_a_stack_learns_late(
    tmp_path: Path, stack: Path, form: str
) -> None:
    path = place(tmp_path, form)
    convert(str(stack / "*.png"), path, stack=True, to=form, meta="drop")
    assert set(members(path)) == {"bundle.yaml", "x.ra"}


@EACH_FORM
def test_sidecars_are_not_looked_at_with_meta_ignore(tmp_path: Path, form: str) -> None:
    save(tmp_path / "whole", small())
    (tmp_path / "whole" / "g" / "y.ra.yaml").write_text("describes: [" * 10)
    path = packed(tmp_path / "whole", place(tmp_path, form))
    with open_bundle(path) as bundle:
        assert [array.name for array in bundle.unreadable] == ["g/y"]
        with pytest.raises(Corrupt):
            _ = bundle["g/y"].data
    with open_bundle(path, meta="ignore") as bundle:
        assert bundle["g/y"].index_order == "F"  # which bundle.yaml says
        assert not bundle["g/y"].meta


@EACH_FORM
def test_a_sidecar_of_its_own_is_never_written_beside_a_bundle(tmp_path: Path, form: str) -> None:
    report = save(place(tmp_path, form), rich(), meta="sidecar")
    assert os.listdir(tmp_path) == [place(tmp_path, form).name]
    assert report.equivalent == []
    assert load(place(tmp_path, form)) == facts(rich())


def test_a_trailer_is_for_single_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="trailer"):
        save(tmp_path / "x.zip", small(), meta="trailer")


@EACH_FORM
def test_a_changed_array_is_noticed_by_its_sidecar(tmp_path: Path, form: str) -> None:
    save(tmp_path / "whole", small())
    file = tmp_path / "whole" / "g" / "y.ra"
    file.write_bytes(file.read_bytes()[:-1] + b"\1")
    path = packed(tmp_path / "whole", place(tmp_path, form))
    with (
        open_bundle(path) as bundle,
        pytest.raises(Corrupt, match="describes another file") as caught,
    ):
        _ = bundle["g/y"].data
    assert "y.ra" in str(caught.value)


@EACH_FORM
def test_metadata_too_large_to_be_read_is_not_written(tmp_path: Path, form: str) -> None:
    bundle = small()
    bundle["x"].meta = Metadata(attributes={"x": "y" * (17 << 20)})
    with pytest.raises(Unsupported, match='meta="drop"'):
        save(place(tmp_path, form), bundle)
    assert os.listdir(tmp_path) == []


@EACH_FORM
def test_metadata_that_yaml_cannot_hold_is_refused(tmp_path: Path, form: str) -> None:
    bundle = small()
    bundle.attributes = {"x": object()}
    with pytest.raises(Unsupported, match="YAML"):
        save(place(tmp_path, form), bundle)
    assert os.listdir(tmp_path) == []


def test_column_major_helper() -> None:
    """The helper of these tests stores what it says."""
    array = column_major(np.arange(6).reshape(2, 3), "x")
    assert array.shape == (2, 3)
    assert np.asarray(array).tolist() == [[0, 1, 2], [3, 4, 5]]


# Further names --------------------------------------------------------------------------------


ALIASES = {"first": "x", "folder": "g", "g/again": "x", "g/self": "g"}


@EACH_FORM
def test_further_names_survive_and_stand_for_their_arrays(tmp_path: Path, form: str) -> None:
    bundle = small()
    bundle.aliases = dict(ALIASES)
    path = place(tmp_path, form)
    save(path, bundle, form)

    with raconvert.open(path) as back:
        assert back.aliases == ALIASES
        assert back.names == ["x", "g/y"]
        assert back["first"].name == back["folder/again"].name == "x"
        assert back["folder/y"].name == back["g/self/self/y"].name == "g/y"
        assert "first" in back
        assert "second" not in back
        assert list(back["folder"]) == ["y"]
    assert raconvert.read(f"{path}#folder/y").shape == (2, 2)


def test_only_the_names_of_chosen_arrays_stay(tmp_path: Path) -> None:
    bundle = small()
    bundle.aliases = dict(ALIASES)
    save(tmp_path / "a.zip", bundle)
    convert(tmp_path / "a.zip", tmp_path / "b.zip", arrays=["x"])
    with open_bundle(tmp_path / "b.zip") as back:
        assert back.aliases == {"first": "x", "g/again": "x"}
    convert(tmp_path / "a.zip", f"{tmp_path}/c.zip#z", arrays=["x"])
    with open_bundle(tmp_path / "c.zip") as back:
        assert (back.names, back.aliases) == (["z"], {})


def test_further_names_that_have_no_place_are_told(tmp_path: Path) -> None:
    bundle = small()
    bundle.aliases = dict(ALIASES)
    save(tmp_path / "a.zip", bundle)

    report = convert(tmp_path / "a.zip", tmp_path / "a.npz")
    assert any("further names: 'first' of 'x'" in fit.reason for fit in report.equivalent)
    found = diff(tmp_path / "a.zip", tmp_path / "a.npz")
    assert [item["field"] for item in found["aliases"]] == list(ALIASES)
    assert not found["same"]
    with pytest.raises(WouldLose, match="further names"):
        convert(tmp_path / "a.zip", tmp_path / "b.npz", strict=True)

    report = convert(tmp_path / "a.zip", tmp_path / "c.npz", meta="sidecar")
    assert not report.equivalent
    assert diff(tmp_path / "a.zip", tmp_path / "c.npz")["same"]


def test_several_containers_keep_their_names_apart(tmp_path: Path) -> None:
    bundle = small()
    bundle.aliases = dict(ALIASES)
    for name in ("a", "b"):
        save(tmp_path / f"{name}.zip", bundle)
    convert([str(tmp_path / "a.zip"), str(tmp_path / "b.zip")], tmp_path / "c.zip")
    with open_bundle(tmp_path / "c.zip") as both:
        assert both["b/folder/y"].name == "b/g/y"
        assert both["a/first"].name == "a/x"


def test_groups_chosen_from_files_keep_their_names(tmp_path: Path) -> None:
    groups = {"g": {"k": 1}}
    for name, letters in (("a", "xy"), ("b", "zw")):
        arrays = [array_of(np.arange(3), f"g/{letter}") for letter in letters]
        save(tmp_path / f"{name}.zip", Bundle(arrays, groups=groups))
    sources = [f"{tmp_path}/a.zip#g", f"{tmp_path}/b.zip#g"]
    convert(sources, tmp_path / "c.zip")
    with open_bundle(tmp_path / "c.zip") as both:
        assert both.names == ["g/x", "g/y", "g/z", "g/w"]
        assert both.groups == groups

    groups["g"]["k"] = 2
    save(tmp_path / "b.zip", Bundle(arrays, groups=groups), overwrite=True)
    with pytest.raises(UsageError, match="different attributes of group 'g'"):
        convert(sources, tmp_path / "d.zip")
    assert not (tmp_path / "d.zip").exists()


def test_an_array_keeps_its_name(tmp_path: Path) -> None:
    array = raconvert.Array(np.arange(3), name="group/V")
    raconvert.write(tmp_path / "x.h5", array)
    raconvert.write(tmp_path / "y.h5#W", array)

    with h5py.File(tmp_path / "x.h5") as file:
        assert file["group/V"][...].tolist() == [0, 1, 2]
    with h5py.File(tmp_path / "y.h5") as file:
        assert list(file) == ["W"]
