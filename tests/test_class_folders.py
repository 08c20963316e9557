"""Class folders in one container, and stacks without the files that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import png as pypng
import pytest

import raconvert
from raconvert.cli import main
from raconvert.errors import Corrupt, TargetExists, UsageError, WouldLose


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three classes of four images, written by pypng."""
    monkeypatch.chdir(tmp_path)
    for place, kind in enumerate(("cat", "dog", "eel")):
        folder = tmp_path / "train" / kind
        folder.mkdir(parents=True)
        for number in range(4):
            with (folder / f"{number}.png").open("wb") as file:
                pypng.Writer(3, 2, greyscale=True).write(file, [[10 * place + number] * 3] * 2)
    return tmp_path / "train"


def test_images_labels_and_classes_in_one_container(train: Path) -> None:
    assert main(["train/", "-r", "-o", "train.h5", "--labels", "labels"]) == 0
    with h5py.File("train.h5") as file:
        assert sorted(file) == ["classes", "images", "labels"]
        images, labels, classes = file["images"][:], file["labels"][:], file["classes"].asstr()[:]
    assert images.shape == (12, 2, 3)
    assert labels.dtype == np.uint8
    assert labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert classes.tolist() == ["cat", "dog", "eel"]
    assert images[:, 0, 0].tolist() == [10 * label + n % 4 for n, label in enumerate(labels)]


@pytest.mark.parametrize("options", [{"dtype": "float32"}, {"scale": "0:23"}, {"axes": "1,2,0"}])
def test_options_of_the_images_leave_the_labels_as_they_are(
    options: dict[str, str], train: Path
) -> None:
    raconvert.convert("train", "x.npz", recursive=True, labels="y", name="x", **options)
    with np.load("x.npz") as got:
        assert got.files == ["x", "y", "classes"]
        assert got["y"].dtype == np.uint8
        assert got["y"].tolist() == [0] * 4 + [1] * 4 + [2] * 4
        assert got["x"].shape == ((2, 3, 12) if "axes" in options else (12, 2, 3))
        assert got["x"].dtype == ("f4" if "dtype" in options else "u1")


def test_folders_of_numbers_are_the_labels(train: Path) -> None:
    """They have classes where they count from 0, so that a label finds its class."""
    for old, new in (("cat", "0"), ("dog", "1"), ("eel", "2")):
        (train / old).rename(train / new)
    raconvert.convert("train", "a.npz", recursive=True, labels="labels")
    (train / "2").rename(train / "7")
    raconvert.convert("train", "b.npz", recursive=True, labels="labels")
    with np.load("a.npz") as a, np.load("b.npz") as b:
        assert a["classes"].tolist() == ["0", "1", "2"]
        assert b.files == ["images", "labels"]
        assert b["labels"].tolist() == [0] * 4 + [1] * 4 + [7] * 4


def test_names(train: Path) -> None:
    raconvert.convert("train/*/*.png", "x.npz#pixels", labels="labels")
    with np.load("x.npz") as got:
        assert got.files == ["pixels", "labels", "classes"]
    for named in ({"labels": "images"}, {"labels": "classes"}, {"labels": "y", "name": "y"}):
        with pytest.raises(UsageError, match="two arrays"):
            raconvert.convert("train/*/*.png", "y.npz", **named)
    with pytest.raises(TargetExists):
        raconvert.convert("train/*/*.png", "x.npz", labels="labels")
    raconvert.convert("train/cat/0.png", "one.npz", name="pixels")
    with np.load("one.npz") as got:
        assert got.files == ["pixels"]
    with pytest.raises(UsageError, match="name names an array"):
        raconvert.convert("train/cat/0.png", "one.npy", name="pixels")
    with pytest.raises(UsageError, match="two names"):
        raconvert.convert("train/cat/0.png", "two.npz#a", name="b")
    with pytest.raises(WouldLose, match="classes"):  # safetensors has no text
        raconvert.convert("train", "x.safetensors", recursive=True, labels="labels")
    assert sorted(p.name for p in train.parent.iterdir()) == ["one.npz", "train", "x.npz"]


def damage(train: Path) -> dict[str, str]:
    """Spoil four of the twelve: cut, a wrong checksum, empty, another content."""
    data = bytearray((train / "cat" / "1.png").read_bytes())
    (train / "cat" / "1.png").write_bytes(data[:-20])
    data[data.index(b"IDAT") + 8] ^= 1
    (train / "dog" / "0.png").write_bytes(data)
    (train / "dog" / "3.png").write_bytes(b"")
    (train / "eel" / "2.png").write_bytes(b"not an image")
    return {"cat/1": "cut", "dog/0": "sum", "dog/3": "empty", "eel/2": "content"}


def test_bad_files_are_left_out_of_a_stack(train: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The labels are those of the files that are there."""
    bad = damage(train)
    words = ["train/", "-r", "-o", "train.h5", "--labels", "labels"]
    assert main(words) != 0
    assert not Path("train.h5").exists()
    told = capsys.readouterr().err
    assert "--skip-bad leaves such files out" in told
    assert "--allow" not in told

    assert main([*words, "--skip-bad", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    left_out = {Path(one["path"]).with_suffix("").as_posix()[6:] for one in report["left_out"]}
    assert left_out == set(bad)
    assert all(one["reason"] for one in report["left_out"])
    with h5py.File("train.h5") as file:
        images, labels = file["images"][:], file["labels"][:]
    assert labels.tolist() == [0] * 3 + [1] * 2 + [2] * 3
    assert images[:, 0, 0].tolist() == [0, 2, 3, 11, 12, 20, 21, 23]

    assert main(["train/", "-r", "-o", "x.npy", "--skip-bad"]) == 0
    told = capsys.readouterr().err
    assert told.count("left out train/") == 4
    assert "from 8 files" in told
    assert np.load("x.npy").shape == (8, 2, 3)


def test_nothing_is_left_and_one_file_for_each(train: Path) -> None:
    for path in train.glob("cat/*.png"):
        path.write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(Corrupt):
        raconvert.convert("train/cat", "x.npy", skip_bad=True)
    with pytest.raises(UsageError, match="skip_bad=True"):
        raconvert.convert("train/*/*.png", out_dir="out", to="npy", skip_bad=True)
    with (train / "dog" / "9.png").open("wb") as file:
        pypng.Writer(5, 5, greyscale=True).write(file, [[0] * 5] * 5)
    with pytest.raises(UsageError, match="differ"):  # no fault of a file: it is another image
        raconvert.convert("train/dog", "x.npy", skip_bad=True)


# Parts of a data set ----------------------------------------------------------------------------


@pytest.fixture
def pets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Parts with classes of the same names; one class is in one part only."""
    monkeypatch.chdir(tmp_path)
    for part, kinds in (("test", ("cat", "eel")), ("train", ("cat", "dog", "eel"))):
        for kind in kinds:
            folder = tmp_path / "pets" / part / kind
            folder.mkdir(parents=True)
            for number in range(2):
                gray = 10 * ["cat", "dog", "eel"].index(kind) + number + 100 * (part == "test")
                with (folder / f"{number}.png").open("wb") as file:
                    pypng.Writer(3, 2, greyscale=True).write(file, [[gray] * 3] * 2)
    return tmp_path / "pets"


@pytest.mark.parametrize("words", [["pets/", "-r"], ["pets/*/*/*.png"]])
def test_equal_classes_of_several_parts_become_a_split(words: list[str], pets: Path) -> None:
    """Each part has images and labels of its own; a label is the same class in all of them."""
    assert main([*words, "-o", "pets.h5", "--labels", "labels", "--name", "x"]) == 0
    with h5py.File("pets.h5") as file:
        assert sorted(file) == ["classes", "test", "train"]
        classes = file["classes"].asstr()[:].tolist()
        assert classes == ["cat", "dog", "eel"]
        assert file["test/labels"][:].tolist() == [0, 0, 2, 2]
        assert file["train/labels"][:].tolist() == [0, 0, 1, 1, 2, 2]
        assert file["test/x"][:, 0, 0].tolist() == [100, 101, 120, 121]
        assert file["train/x"][:, 0, 0].tolist() == [0, 1, 10, 11, 20, 21]


@pytest.mark.parametrize("more", [["--labels", "labels.npy"], ["--labels", "labels.ra"]])
def test_equal_classes_of_several_parts_are_never_merged(
    more: list[str], pets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pets/", "-r", "-o", "x.npy", *more]) == 2
    assert "below several folders: test, train" in capsys.readouterr().err
    assert main(["pets/", "-r", "-o", "out/{label}/{}.png"]) == 2
    assert sorted(path.name for path in pets.parent.iterdir()) == ["pets"]


def test_different_classes_of_several_folders_are_one_set(pets: Path) -> None:
    (pets / "train" / "cat").rename(pets / "train" / "ape")
    (pets / "test" / "eel").rename(pets / "test" / "fox")
    raconvert.convert("pets", "pets.npz", recursive=True, labels="labels")
    with np.load("pets.npz") as got:
        assert got.files == ["images", "labels", "classes"]
        assert got["classes"].tolist() == ["ape", "cat", "dog", "eel", "fox"]


def test_parts_named_by_numbers_keep_them(pets: Path) -> None:
    for part in ("train", "test"):
        for kind, number in (("cat", "3"), ("dog", "5"), ("eel", "7")):
            if (pets / part / kind).exists():
                (pets / part / kind).rename(pets / part / number)
    raconvert.convert("pets", "pets.npz", recursive=True, labels="labels")
    with np.load("pets.npz") as got:
        assert "classes" not in got.files
        assert got["test/labels"].tolist() == [3, 3, 7, 7]


# Names of stacks, and a hint ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "name"),
    [
        ("train/cat", "x.h5", "cat"), ("train/cat/*.png", "x.npz", "cat"),
        ("train/*/*.png", "x.h5", "train"), ("*.png", "flat.h5", "flat"),
        ("no name", "x.mat", "x"), ("no name", "no target.h5", "no name"),
    ],
)  # fmt: skip
def test_a_stack_is_named_after_its_folder_or_its_destination(
    source: str, target: str, name: str, train: Path
) -> None:
    (train / "eel").rename("no name")
    for number in range(2):
        (Path("no name") / f"{number}.png").rename(f"{number}.png")
    report = raconvert.convert(source, target, stack=True)
    assert [array[0] for array in report.arrays] == [name]
    with raconvert.open(source) as array:
        assert array.name == (name if source != "*.png" else "0") or source == "no name"


def test_many_arrays_alike_hint_at_a_stack(train: Path) -> None:
    folder = Path("many")
    folder.mkdir()
    for number in range(100):
        np.save(folder / f"{number}.npy", np.zeros(3))
    notes = raconvert.convert("many", "many.npz").notes
    assert any("100 arrays" in note and "stack=True" in note for note in notes)
    assert raconvert.convert("many", "one.npz", stack=True).arrays[0][2] == (100, 3)
    np.save(folder / "5.npy", np.zeros(4))
    assert not raconvert.convert("many", "other.npz").notes
    assert not raconvert.convert("train/cat", "few.npz").notes
