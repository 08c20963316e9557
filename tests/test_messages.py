"""Messages that lead on: wrong options, mixtures of formats, values told before files are read."""

from __future__ import annotations

import os
import re
from pathlib import Path

import nibabel
import numpy as np
import pytest
from PIL import Image

import raconvert
from raconvert.cli import main
from raconvert.errors import counted
from raconvert.files import paths


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(6.0))
    Path("bad.npy").write_bytes(b"x" * 99)
    for name in ("7.png", "8.png"):
        Image.fromarray(np.zeros((4, 4), "u1")).save(name)
    nibabel.save(nibabel.Nifti1Image(np.zeros((4, 4), "f4"), np.eye(4)), "t1.nii.gz")
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(list(words))
    found = capsys.readouterr()
    return code, found.out + found.err


# Options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("a.npy -o b.ra --compress", "--out-opt"),
        ("a.npy -o b.ra --crop 1:2", "no option '--crop'"),
        ("a.npy -o b.ra --format npy", "did you mean '--to npy' or '--from npy'?"),
        ("info --format npy a.npy", "did you mean '--from npy'?"),
        ("a.npy -o b.ra --overwite", "did you mean '--overwrite'?"),
        ("peek -o page.html a.npy", "raconvert info FILE --html -o PAGE"),
        ("a.npy \u2013o b.ra", "did you mean '-o'?"),
        ("convert a.npy \u2013o b.ra", "did you mean '-o'?"),
        ("a.npy -o b.ra \u2014overwrite", "did you mean '--overwrite'?"),
        ("a.npy -o b.ra \u2013\u2013dtype=uint8", "did you mean '--dtype=uint8'?"),
        ("info \u2212s a.npy", "did you mean '-s'?"),
    ],
)
def test_unknown_options(words: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, *words.split())

    assert code == 2
    assert hint in text
    assert "--progress" not in text
    assert not Path("b.ra").exists()


def test_a_file_whose_name_begins_with_a_dash_of_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("\u2013o", np.zeros(3))
    os.rename("\u2013o.npy", "\u2013o")

    assert said(capsys, "info", "\u2013o")[0] == 0


@pytest.mark.parametrize("sources", [["bad.npy"], ["bad.npy", "a.npy"], ["*.npy"], ["."]])
@pytest.mark.parametrize(
    ("option", "hint"),
    [
        (["--out-opt", "nothing=1"], "no write option 'nothing'"),
        (["--dtype", "flaot"], "unknown element type 'flaot'"),
        (["--axes", "1,x"], "is not understood"),
        (["--scale", "q"], "unknown scale 'q'"),
        (["--scale", "3:1"], "empty or endless"),
    ],
)
def test_wrong_values_are_told_before_a_source_is_read(
    sources: list[str], option: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first source is damaged, which nobody comes to see."""
    ways = [["-o", "x.npz"]] if sources != ["."] else []
    for way in [*ways, ["--to", "npy", "--out-dir", "out"]]:
        code, text = said(capsys, *sources, *way, *option)
        assert (code, hint in text) == (2, True), text
        assert "NPY file" not in text


def test_wrong_values_of_a_migration(capsys: pytest.CaptureFixture[str]) -> None:
    for option in (["--out-opt", "nothing=1"], ["--dtype", "flaot"], ["--axes", "1,x"]):
        code, text = said(capsys, "migrate", ".", "../out", "--to", "npy", *option)
        assert (code, "plan:" in text) == (2, False), text


# Formats -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["7.png t1.nii.gz", "7.png 8.png a.npy", "a.npy 7.png"])
def test_a_stack_needs_one_format(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, *words.split(), "-o", "out.ra")

    assert code == 2
    assert "a stack needs one format" in text
    assert not Path("out.ra").exists()


def test_a_damaged_file_of_a_stack_is_still_damaged(capsys: pytest.CaptureFixture[str]) -> None:
    data = Path("8.png").read_bytes()
    Path("8.png").write_bytes(data[:40])
    code, text = said(capsys, "7.png", "8.png", "-o", "out.ra")

    assert (code, "8.png" in text, "one format" in text) == (1, True, False)


def test_videos_are_no_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    for brand, title in (
        (b"isom", "a video"), (b"mp42", "a video"), (b"qt  ", "a video"), (b"avif", "AVIF"),
        (b"heic", "AVIF or HEIF"), (b"mif1", "AVIF or HEIF"),
    ):  # fmt: skip
        Path("v.bin").write_bytes(b"\0\0\0\x20ftyp" + brand + bytes(40))
        assert title in said(capsys, "info", "v.bin")[1]
    text = said(capsys, "a.npy", "-o", "x.mp4")[1]
    assert "video" in text
    assert ".bmp'?" not in text


# Counts ------------------------------------------------------------------------------------------

NOUNS = "array|file|name|member|element|byte|axe|value|image|source|plane|row|item|record|line"


def assert_counts_fit(text: str) -> None:
    assert not re.search(rf"\b1 (more )?({NOUNS})s\b", text), text
    assert not re.search(rf"\b(?:0|[2-9]|\d\d+) (more )?({NOUNS})\b", text), text


@pytest.mark.parametrize("count", [0, 1, 2])
def test_counts_and_nouns(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    for noun in ("array", "file"):
        assert counted(count, noun) == f"{count} {noun}" + "s" * (count != 1)
    bundle = raconvert.Bundle([raconvert.Array(np.zeros(2), name=f"n{i}") for i in range(count)])
    assert_counts_fit(repr(bundle))
    folder = Path("in")
    folder.mkdir()
    for number in range(count):
        np.save(folder / f"{number}.npy", np.zeros(1 + number))
    np.savez("some.npz", **{f"x{i}": np.zeros(2) for i in range(count)})
    for words in (
        ["info", "in"],
        ["info", "some.npz"],
        ["diff", "in", "."],
        ["verify", "some.npz", "--against", "a.npy"],
        ["some.npz", "-o", "out.ra"],
        ["digest", "--as", "x.ra", "some.npz"],
        ["in", "--to", "ra", "--out-dir", "out"],
        ["in", "--to", "ra", "--out-dir", "out"],
        ["in", "--to", "ra", "--out-dir", "out", "--skip-existing"],
        ["migrate", "in", "tree", "--to", "ra"],
        ["migrate", "in", "tree", "--to", "ra"],
        ["migrate", "--status", "tree"],
        ["verify", "tree", "--against", "in"],
        ["some.npz", "-o", "some.h5", "-v"],
    ):
        assert_counts_fit(said(capsys, *words)[1])


# Systems -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("refuse", ["missing", "not implemented"])
def test_writing_without_links(refuse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pyodide has no `os.link`; other systems have one that says so."""
    if refuse == "missing":
        monkeypatch.delattr("os.link")
    else:

        def link(*_: object, **__: object) -> None:
            raise NotImplementedError

        monkeypatch.setattr("os.link", link)
    with pytest.raises(OSError, match="not supported"):
        paths.link("a.npy", "b.npy")
    for target in ("b.ra", "b.npz", "b.h5", "b.nhdr", "b.zarr"):
        raconvert.convert("a.npy", target)
        with pytest.raises(FileExistsError):
            raconvert.convert("a.npy", target)
        raconvert.convert("a.npy", target, overwrite=True)
        found = raconvert.read(target)
        values = found if isinstance(found, np.ndarray) else next(iter(found.values()))
        assert np.array_equal(values, np.arange(6.0))
    raconvert.convert("7.png", "{i:03d}.png", planes=True, overwrite=True)
