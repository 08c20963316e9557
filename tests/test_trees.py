"""Folders to be read with all below them: deep ones, and links that lead in circles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert.errors import Unsafe
from raconvert.files import paths
from raconvert.files.paths import walk
from raconvert.files.unfinished import refuse_unfinished

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links of POSIX")

LEVELS = 1100


@pytest.fixture
def deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "deep"
    folder.mkdir()
    monkeypatch.chdir(folder)
    np.save("0.npy", np.arange(3))
    for _ in range(LEVELS):
        os.mkdir("d")
        os.chdir("d")
    np.save("1.npy", np.arange(3, 6))
    os.chdir(tmp_path)
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)  # too deep for those who clean up


def test_folders_in_one_another(deep: Path) -> None:
    assert sys.getrecursionlimit() < LEVELS
    raconvert.convert("deep", "x.npy", recursive=True)

    assert np.load("x.npy").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert sum(len(names) for _, _, names in walk("deep")) == 2
    assert sum(len(inner) for _, inner, _ in walk("deep")) == LEVELS


def test_walk_is_that_of_python(tmp_path: Path) -> None:
    for path in ("a/b/c", "a/d", "e"):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "f").touch()
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "none").symlink_to("nobody")
    os.mkfifo(tmp_path / "e" / "pipe")

    def sorted_(found: Iterator[tuple[str, list[str], list[str]]]) -> list[object]:
        return sorted((place, sorted(inner), sorted(names)) for place, inner, names in found)

    assert sorted_(walk(str(tmp_path))) == sorted_(os.walk(tmp_path))


def test_links_that_lead_in_circles_are_followed_once(tmp_path: Path) -> None:
    for here, there in ("ab", "ba"):
        (tmp_path / here).mkdir()
        np.save(tmp_path / here / f"{here}.npy", np.arange(3))
        for name in ("x", "y", "z"):
            (tmp_path / here / name).symlink_to(tmp_path / there)

    found = [os.path.relpath(entry.path, tmp_path) for entry in paths.entries_below(str(tmp_path))]

    assert set(found) >= {"a/a.npy", "b/b.npy", "a/x/b.npy", "b/z/a.npy"}
    assert len(found) < 40


def test_links_that_make_too_many_ways(tmp_path: Path) -> None:
    """Forty folders, of which each leads to the next one in two ways: 2^40 ways to the last."""
    for number in range(40):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in ("x", "y") if number else ():
            (folder / name).symlink_to(tmp_path / str(number - 1))
    np.save(tmp_path / "0" / "a.npy", np.arange(3))

    with pytest.raises(Unsafe, match="lead to too many folders"):
        raconvert.convert(tmp_path / "39", tmp_path / "x.npy", recursive=True)


@pytest.mark.parametrize("count", ["Infinity", "1e999", "NaN", "null", '"x"', "[1]", "-1"])
def test_a_note_that_cannot_be_meant(count: str, tmp_path: Path) -> None:
    notes = tmp_path / ".raconvert-unfinished.tmp"
    notes.mkdir()
    (notes / "1-x.json").write_text(f'{{"single": false, "count": {count}}}\n"a.npy"\n')

    refuse_unfinished([str(tmp_path / "a.npy"), str(tmp_path / "b.npy")])


def test_a_note_is_not_written_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "two.npz", a=np.arange(3), b=np.arange(4))
    for place in ("out", "elsewhere"):
        (tmp_path / place).mkdir()
    (tmp_path / "out" / ".raconvert-unfinished.tmp").symlink_to(tmp_path / "elsewhere")
    seen: list[str] = []
    rename = os.link
    monkeypatch.setattr(
        os, "link", lambda *args, **more: (seen.extend(os.listdir(tmp_path / "elsewhere")),
                                           rename(*args, **more))[1],
    )  # fmt: skip

    with pytest.raises(raconvert.RaconvertError, match="is a link"):
        raconvert.convert(tmp_path / "two.npz", out_dir=tmp_path / "out", to="npy")

    assert seen == []
    assert sorted(os.listdir(tmp_path / "out")) == [".raconvert-unfinished.tmp"]
    assert json.dumps(os.listdir(tmp_path / "elsewhere")) == "[]"
