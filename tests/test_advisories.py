"""Known faults of libraries: which versions have them, and that `formats` shows those that are here."""

from __future__ import annotations

import re

import h5py
import pytest

from raconvert.cli import main
from raconvert.inspect import advisories
from raconvert.inspect.advisories import (
    ADVISORIES,
    HDF5,
    Advisory,
    concerns,
    hdf5_version,
    known_faults,
)


@pytest.mark.parametrize(
    ("versions", "version", "expected"),
    [("<1.14.4", "1.14.3", True), ("<1.14.4", "1.14.4", False), ("<1.14.4", "1.14.10", False),
     ("<1.14.4", "1.14.4-3", False), ("<2.0.0", "2.0", False), ("<2.0.0", "1.99", True),
     ("<=2.3.0", "2.3.0", True), ("<=2.3.0", "2.3", True), ("<=2.3.0", "2.3.1", False),
     ("<=2.3.0", "10.0", False), ("<12.3.0", "9.5.0", True), ("<12.3.0", "13.0.0", False),
     ("<2024.8.10", "2024.8.9", True)],
)  # fmt: skip
def test_versions_are_compared_as_numbers(versions: str, version: str, expected: bool) -> None:
    assert concerns(Advisory("x", versions, "", "", ""), version) is expected


@pytest.mark.parametrize("advisory", ADVISORIES, ids=lambda advisory: advisory.names)
def test_entries_are_whole(advisory: Advisory) -> None:
    assert advisory.library in (HDF5, "pillow", "tifffile", "h5py", "imageio")
    assert re.fullmatch(r"<=?\d+(\.\d+)+", advisory.versions)
    assert advisory.source.startswith("https://")
    assert advisory.what
    assert advisory.names


def test_the_library_is_the_one_of_h5py() -> None:
    assert hdf5_version() == h5py.version.hdf5_version


def test_formats_shows_the_faults_of_what_is_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(advisories, "hdf5_version", lambda: "1.14.3")
    monkeypatch.setattr(advisories, "installed", lambda name: "12.3.0")
    assert main(["formats"]) == 0
    out = capsys.readouterr().out
    assert "HDF5 1.14.3 (<1.14.4): " in out
    assert "pillow 12.3.0 (<13.0.0): " in out
    assert "CVE-2026-59199" not in out
    assert main(["formats", "hdf5"]) == 0
    out = capsys.readouterr().out
    assert "CVE-2026-19025" in out
    assert "pillow" not in out


def test_formats_says_nothing_of_what_has_no_faults(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(advisories, "hdf5_version", lambda: "99.0")
    monkeypatch.setattr(advisories, "installed", lambda name: "99.0")
    assert main(["formats"]) == 0
    assert "known faults" not in capsys.readouterr().out


def test_what_is_not_installed_has_no_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advisories, "installed", lambda name: None)
    assert known_faults(["h5py", "pillow"]) == []
