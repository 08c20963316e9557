"""Files beside a file, in both directions: BART's CFL as the plugin of a third party."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import raconvert
from raconvert.errors import Corrupt, RaconvertError, ReadFailed, TargetExists, Unsafe, WouldLose
from raconvert.files.source import Source
from raconvert.files.target import Target
from raconvert.testing import CHECKS

CFL = Path(__file__).resolve().parent / "third_party" / "raconvert-cfl"
VALUES = (np.arange(24) + 1j * np.arange(24)[::-1]).astype("<c8").reshape(2, 3, 4)


@pytest.fixture(scope="module")
def plugin() -> Iterator[ModuleType]:
    """The module of the plugin, from its folder."""
    sys.path.insert(0, str(CFL))
    yield import_module("raconvert_cfl")
    sys.path.remove(str(CFL))
    sys.modules.pop("raconvert_cfl")


@pytest.fixture
def known(plugin: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in, while the format is known as if an installer had put it there."""
    info = tmp_path / "site" / "raconvert_cfl-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: raconvert-cfl\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[raconvert.formats]\ncfl = raconvert_cfl\n")
    monkeypatch.syspath_prepend(info.parent)
    raconvert.refresh()
    folder = tmp_path / "work"
    folder.mkdir()
    yield folder
    raconvert.refresh()


def readcfl(stem: Path) -> np.ndarray:
    """What BART's own cfl.py does."""
    lines = stem.with_suffix(".hdr").read_text().splitlines()
    dims = [int(word) for word in lines[1].split()]
    return np.fromfile(stem.with_suffix(".cfl"), "<c8").reshape(dims, order="F")


def test_it_is_small() -> None:
    assert len((CFL / "raconvert_cfl.py").read_text().splitlines()) <= 90


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_check_of_the_kit(check: Callable[[ModuleType], None], plugin: ModuleType) -> None:
    check(plugin)


@pytest.mark.parametrize("suffix", [".hdr", ".cfl"])
def test_either_file_may_be_named(suffix: str, known: Path) -> None:
    report = raconvert.write(known / f"x{suffix}", VALUES, to="cfl")
    assert {Path(path).name for path in report.written} == {"x.hdr", "x.cfl"}
    assert sorted(os.listdir(known)) == ["x.cfl", "x.hdr"]
    assert np.array_equal(readcfl(known / "x"), VALUES)
    for name in ("x.hdr", "x.cfl"):
        assert np.array_equal(raconvert.read(known / name), VALUES)
    raconvert.convert(known / "x.cfl", known / "y.npy", verify=True)
    assert np.array_equal(np.load(known / "y.npy"), VALUES)


def test_a_file_of_bart(known: Path) -> None:
    """Its header has 16 axes, a space at the end of the line, and sections that follow."""
    text = "# Dimensions\n2 3 4 1 1 1 1 1 1 1 1 1 1 1 1 1 \n# Command\nphantom x\n"
    (known / "x.hdr").write_text(text)
    VALUES.T.tofile(known / "x.cfl")
    values = raconvert.read(known / "x.cfl")
    assert np.array_equal(np.squeeze(values), VALUES)


def test_all_or_nothing(known: Path) -> None:
    (known / "x.cfl").write_bytes(b"mine")
    with pytest.raises(TargetExists):
        raconvert.write(known / "x.hdr", VALUES)
    assert os.listdir(known) == ["x.cfl"]
    with pytest.raises(WouldLose):
        raconvert.write(known / "y.hdr", VALUES.real)
    assert os.listdir(known) == ["x.cfl"]
    raconvert.write(known / "x.hdr", VALUES, overwrite=True)
    assert np.array_equal(readcfl(known / "x"), VALUES)


def test_a_partner_that_is_missing_cut_or_elsewhere(known: Path) -> None:
    raconvert.write(known / "x.hdr", VALUES)
    data = (known / "x.cfl").read_bytes()
    (known / "x.cfl").write_bytes(data[:-8])
    with pytest.raises(Corrupt, match="as long as its header"):
        raconvert.read(known / "x.hdr")
    (known / "x.cfl").unlink()
    with pytest.raises(ReadFailed, match="data of the header"):
        raconvert.read(known / "x.hdr")
    outside = known.parent / "secret"
    outside.write_bytes(data)
    (known / "x.cfl").symlink_to(outside)
    with pytest.raises(Unsafe, match="outside"):
        raconvert.read(known / "x.hdr")
    opened = raconvert.open(known / "x.hdr", trust=["external"])
    assert np.array_equal(np.asarray(opened), VALUES)


@pytest.mark.parametrize("appended", [False, True])
def test_source_and_target_agree(appended: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.b.c"
    with Target(str(path)) as target:
        other = target.beside(".d", appended=appended)
        target.open().write(b"one")
        other.open().write(b"two")
        written = {os.path.realpath(other.path): other.temp}
        early = Source(target.temp, stand_ins=written, place=target.place)
        assert early.beside(".d", "the partner", appended=appended).head == b"two"
        target.commit()
    found = Source(str(path)).beside(".d", "the partner", appended=appended)
    assert found.head == b"two"
    assert found.name == ("a.b.c.d" if appended else "a.b.d")


def test_without_the_plugin_the_name_is_refused(tmp_path: Path) -> None:
    VALUES.T.tofile(tmp_path / "x.cfl")
    with pytest.raises(RaconvertError, match="CFL, not supported"):
        raconvert.read(tmp_path / "x.cfl")
