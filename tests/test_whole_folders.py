"""Trees with folders of Zarr in them: each is one source for every command, and no chunk is one."""

from __future__ import annotations

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr

import raconvert
from raconvert.cli import main
from raconvert.errors import UsageError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
X, Y = np.arange(24.0).reshape(4, 6), np.arange(5)
ARRAYS = ["a/n.npy", "a/plain#s/y", "a/plain#x", "a/two.zarr#s/y", "a/two.zarr#x",
          "three.zarr#s/y", "three.zarr#x"]  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of version 2 and 3, one without a suffix, and a file that is like a chunk."""
    for name, version in (("three.zarr", 3), ("a/two.zarr", 2), ("a/plain", 3)):
        group = zarr.open_group(tmp_path / "t" / name, mode="w", zarr_format=version)
        group.create_array("x", data=X, chunks=(2, 3))
        group.create_array("s/y", data=Y, chunks=(2,))
    np.save(tmp_path / "t/a/n.npy", Y)
    (tmp_path / "t/notes.txt").write_text("of the tree")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "t"


def names_told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    lines = capsys.readouterr().out.splitlines()
    return sorted(line.split("  ")[0].removeprefix("t/") for line in lines)


@pytest.mark.parametrize("words", [["-r", "t"], ["t/**"], ["t/three.zarr", "t/a/*"], ["t/a", "t"]])
def test_info_shows_each_folder_once(
    words: list[str], tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["info", "--short", *words])
    if words == ["t/**"]:  # which takes what no format claims, too
        assert code == 3
    else:
        assert code == 0
    assert names_told(capsys) == ARRAYS


def test_digest_and_diff_take_each_folder_once(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["digest", "-r", "t"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line[66:].removeprefix("t/") for line in lines) == ARRAYS
    shutil.copytree("t", "u")
    assert main(["diff", "-r", "t", "u"]) == 0
    zarr.open_array("u/a/two.zarr/x", mode="r+")[0, 0] = 9
    assert main(["diff", "-r", "t", "u"]) == 1
    assert "two.zarr" in "".join(capsys.readouterr())


def check(folder: Path) -> None:
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.h5")}
    assert files == {"three.h5", "a/two.h5", "a/plain.h5", "a/n.h5"}
    for name in sorted(files - {"a/n.h5"}):
        with h5py.File(folder / name) as file:
            assert np.array_equal(file["x"], X)
            assert np.array_equal(file["s/y"], Y)


def test_a_tree_is_converted_folder_by_folder(tree: Path, tmp_path: Path) -> None:
    report = raconvert.convert("t", out_dir="out", to="h5", recursive=True)
    assert report.source_count == 4
    check(tmp_path / "out")
    raconvert.convert("t/*.zarr", out_dir="some", to="h5")
    assert [path.name for path in (tmp_path / "some").iterdir()] == ["three.h5"]
    raconvert.convert("t", out_dir="npy", to="npy", recursive=True)
    assert np.array_equal(np.load("npy/a/two/s/y.npy"), Y)
    assert np.array_equal(np.load("npy/three/x.npy"), X)


def test_a_tree_is_migrated_folder_by_folder(tree: Path, tmp_path: Path) -> None:
    result = raconvert.migrate("t", "out", to="h5")
    assert (result.done, result.failed) == (4, [])
    check(tmp_path / "out")
    zarr.open_array("t/a/two.zarr/x", mode="r+")[0, 0] = 9
    assert raconvert.migrate("t", "out", to="h5", overwrite=True).failed == []
    with h5py.File("out/a/two.h5") as file:
        assert file["x"][0, 0] == 9
    with pytest.raises(UsageError, match="one source and not a tree"):
        raconvert.migrate("t/three.zarr", "other", to="h5")
