"""A header found by its stem: ENVI and NIfTI pairs as plugins of a third party, and hostile folders.

Both have the suffix ``.hdr`` and know their data only by the header beside it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from cases import every

import raconvert
from raconvert.errors import (
    Corrupt,
    RaconvertError,
    ReadFailed,
    TargetExists,
    UnknownFormat,
    Unsafe,
)
from raconvert.files.source import Source
from raconvert.files.target import Target
from raconvert.testing import CHECKS

FOLDER = Path(__file__).resolve().parent / "third_party"
MODULES = {"envi": "envi_pair", "nifti_pair": "nifti_pair"}
VALUES = np.arange(24, dtype="<i2").reshape(2, 3, 4) * 1001


@pytest.fixture(scope="module", autouse=True)
def importable() -> Iterator[None]:
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))
    for name in MODULES.values():
        sys.modules.pop(name, None)


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in, while both formats are known as if installers had put them there."""
    for name, module in MODULES.items():
        info = tmp_path / "site" / f"{module}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[raconvert.formats]\n{name} = {module}\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    raconvert.refresh()
    folder = tmp_path / "work"
    folder.mkdir()
    yield folder
    raconvert.refresh()


def envi(stem: Path, values: np.ndarray, data: str = ".img", header: str = ".hdr") -> None:
    """Write a pair by hand, as the ENVI manual describes it."""
    bands, lines, samples = values.shape
    stem.with_name(stem.name + header).write_text(
        "ENVI\ndescription = {\n  by hand }\n"
        f"samples = {samples}\nlines   = {lines}\nbands   = {bands}\nheader offset = 0\n"
        "file type = ENVI Standard\ndata type = 2\ninterleave = bsq\nbyte order = 0\n"
    )
    values.astype("<i2").tofile(stem.with_name(stem.name + data))


@every("check", CHECKS, ids=lambda check: check.__name__)
@every("name", MODULES.values())
def test_every_check_of_the_kit(name: str, check: Callable[[ModuleType], None]) -> None:
    if (name, check.__name__) == ("nifti_pair", "check_sniff_rejects_others"):
        with pytest.raises(AssertionError, match=r"(?s)1 foreign contents.*nifti one\.hdr"):
            check(import_module(name))  # the built-in format reads these pairs, too
    else:
        check(import_module(name))


@pytest.mark.parametrize("suffix", [".hdr", ".img"])
@pytest.mark.parametrize("to", MODULES)
def test_either_file_may_be_named(to: str, suffix: str, known: Path) -> None:
    report = raconvert.write(known / f"x{suffix}", VALUES, to=to)
    assert {Path(path).name for path in report.written} == {"x.hdr", "x.img"}
    assert sorted(os.listdir(known)) == ["x.hdr", "x.img"]
    for name in ("x.hdr", "x.img"):
        by_content = "nifti" if to == "nifti_pair" and name == "x.hdr" else to
        assert raconvert.info(known / name)["format"] == by_content
        assert np.array_equal(raconvert.read(known / name), VALUES)
    raconvert.convert(known / "x.img", known / "y.npy", verify=True)
    assert np.array_equal(np.load(known / "y.npy"), VALUES)


def test_simpleitk_reads_what_was_written(known: Path) -> None:
    itk = pytest.importorskip("SimpleITK")
    raconvert.write(known / "x.hdr", VALUES, to="nifti_pair")
    image = itk.ReadImage(str(known / "x.hdr"), imageIO="NiftiImageIO")
    assert np.array_equal(itk.GetArrayFromImage(image).T, VALUES)  # it lists the fastest axis last


def test_what_simpleitk_writes_is_read(known: Path) -> None:
    itk = pytest.importorskip("SimpleITK")
    image = itk.GetImageFromArray(np.ascontiguousarray(VALUES.T))
    itk.WriteImage(image, str(known / "x.img"), imageIO="NiftiImageIO")
    assert sorted(os.listdir(known)) == ["x.hdr", "x.img"]
    assert np.array_equal(raconvert.read(known / "x.img"), VALUES)


@pytest.mark.parametrize(
    ("data", "header"),
    [(".img", ".hdr"), (".dat", ".hdr"), ("", ".hdr"), (".img", ".img.hdr"), (".v2", ".v2.hdr")],
)
def test_an_envi_pair_by_all_its_names(data: str, header: str, known: Path) -> None:
    envi(known / "x", VALUES, data, header)
    (known / "other.img").write_bytes(b"of nothing")
    for suffix in (data, header):
        assert np.array_equal(raconvert.read(known / f"x{suffix}"), VALUES)


def test_the_first_suffix_that_is_there(tmp_path: Path) -> None:
    for name in ("x.b", "x.c"):
        (tmp_path / name).write_text(name)
    source = Source(str(tmp_path / "x.a"))
    assert source.beside([".z", ".c", ".b"], "the data").head == b"x.c"
    with pytest.raises(ReadFailed, match=r"the data 'x\.z' does not exist"):
        source.beside([".z", ".y"], "the data")


def test_data_of_which_only_the_target_is_there_yet(tmp_path: Path) -> None:
    """What was written and is not yet renamed is found before an older file of another suffix."""
    (tmp_path / "x.b").write_text("old")
    with Target(str(tmp_path / "x.a")) as target:
        other = target.beside(".c")
        target.open().write(b"header")
        other.open().write(b"new")
        written = {os.path.realpath(other.path): other.temp}
        early = Source(target.temp, stand_ins=written, place=target.place)
        assert early.beside([".c", ".b"], "the data").head == b"new"


# Only under the check ----------------------------------------------------------------------------

PAIRS = {"header": ("x.img", "x.hdr"), "data": ("x.hdr", "x.img")}


@pytest.fixture(params=[(to, which) for to in MODULES for which in PAIRS], ids="-".join)
def pair(request: pytest.FixtureRequest, known: Path) -> tuple[Path, Path]:
    """The file that is opened, and its partner, of which something is wrong."""
    to, which = request.param
    raconvert.write(known / "x.hdr", VALUES, to=to)
    opened, partner = PAIRS[which]
    return known / opened, known / partner


def refused(path: Path) -> str:
    """The error of ours for a file, by content and by name of the format."""
    with pytest.raises((Unsafe, ReadFailed, UnknownFormat, Corrupt)) as caught:
        raconvert.read(path)
    return str(caught.value)


@pytest.mark.parametrize("relative", [False, True])
def test_a_partner_that_is_a_link_out_of_the_folder(
    pair: tuple[Path, Path], relative: bool
) -> None:
    opened, partner = pair
    outside = opened.parent.parent / "outside"
    partner.rename(outside)
    partner.symlink_to("../outside" if relative else outside)
    assert "outside the folder" in refused(opened)
    if partner.suffix == ".img":  # a header is looked for already where the format is detected
        found = raconvert.open(opened, trust=["external"])
        assert np.array_equal(np.asarray(found), VALUES)


def test_a_partner_in_a_linked_folder(pair: tuple[Path, Path]) -> None:
    """The folder itself is a link: both files are where it leads."""
    opened, _ = pair
    link = opened.parent.parent / "link"
    link.symlink_to(opened.parent)
    assert np.array_equal(raconvert.read(link / opened.name), VALUES)


def test_a_link_inside_the_folder_is_followed(pair: tuple[Path, Path]) -> None:
    opened, partner = pair
    partner.rename(partner.with_name("elsewhere"))
    partner.symlink_to("elsewhere")
    assert np.array_equal(raconvert.read(opened), VALUES)


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "nowhere", "device"])
def test_a_partner_that_is_no_regular_file(pair: tuple[Path, Path], kind: str) -> None:
    opened, partner = pair
    partner.unlink()
    make: dict[str, Callable[[], object]] = {
        "pipe": lambda: os.mkfifo(partner),
        "folder": partner.mkdir,
        "loop": lambda: partner.symlink_to(partner.name),
        "nowhere": lambda: partner.symlink_to("nothing"),
        "device": lambda: partner.symlink_to("/dev/zero"),
    }
    make[kind]()
    gone = kind == "nowhere" and partner.suffix == ".hdr"  # then there is no header
    assert ("header" if gone else partner.name) in refused(opened)


def test_a_partner_that_is_the_file_itself(known: Path) -> None:
    """Both names lead to one file: it is not as long as it says of itself."""
    raconvert.write(known / "x.hdr", VALUES, to="nifti_pair")
    (known / "x.img").unlink()
    (known / "x.img").symlink_to("x.hdr")
    with pytest.raises(RaconvertError):
        raconvert.read(known / "x.hdr")


@pytest.mark.parametrize("to", MODULES)
def test_a_link_in_the_place_of_the_partner_is_never_written_through(to: str, known: Path) -> None:
    victim = known.parent / "victim"
    victim.write_bytes(b"mine")
    (known / "x.img").symlink_to(victim)
    with pytest.raises(TargetExists):
        raconvert.write(known / "x.hdr", VALUES, to=to)
    raconvert.write(known / "x.hdr", VALUES, to=to, overwrite=True)
    assert victim.read_bytes() == b"mine"
    assert not (known / "x.img").is_symlink()
    assert np.array_equal(raconvert.read(known / "x.hdr"), VALUES)


@pytest.mark.parametrize("to", MODULES)
def test_a_pair_is_never_written_over_its_own_source(to: str, known: Path) -> None:
    raconvert.write(known / "x.hdr", VALUES, to=to)
    os.rename(known / "x.hdr", known / "y.hdr")
    os.rename(known / "x.img", known / "y.img")
    before = (known / "y.img").read_bytes()
    with pytest.raises(RaconvertError):
        raconvert.convert(known / "y.img", known / "y.hdr", to=to, overwrite=True)
    assert (known / "y.img").read_bytes() == before
