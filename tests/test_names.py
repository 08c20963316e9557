"""Names from files: whatever they are, a terminal never obeys them, and they stay few and short."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert.cli import main
from raconvert.errors import Corrupt, RaconvertError, Unsupported, quoted

FORMATS = ("npz", "h5", "zip", "tar", "bundle")
ODD = {
    "escape": "a\x1b[31mred",
    "newline": "a\nnothing was written",
    "return": "a\rok",
    "c1": "a\x9b2J",
    "bidi": "a\u202etxt.exe",
    "isolate": "a\u2066b",
    "line": "a\u2028b",
    "bell": "a\x07\x08",
    "tag": "a\U000e0041",
}
RAW = "\x1b\r\x9b\u202e\u2066\u2028\x07\x08\U000e0041"


def safe(output: bytes) -> str:
    text = output.decode("utf-8")
    assert not set(text) & set(RAW), ascii(text)
    return text


def run(*words: object) -> str:
    """Return what a command prints, to both streams."""
    told = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape")
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        main([*map(str, words)])
    told.flush()
    return safe(told.buffer.getvalue())


def made(folder: Path, form: str, names: list[str]) -> Path | None:
    """Return a file with arrays of these names; None where the format cannot hold them."""
    path = folder / (f"x.{form}" if form != "bundle" else "x")
    try:
        raconvert.write(
            path, {name: np.arange(3) for name in names}, to=None if form == "h5" else form
        )
    except RaconvertError as error:
        safe(str(error).encode())
        return None
    return path


@pytest.mark.parametrize("form", FORMATS)
def test_odd_names_are_shown_as_escapes(form: str, tmp_path: Path) -> None:
    kept = 0
    for number, name in enumerate(ODD.values()):
        (tmp_path / str(number)).mkdir()
        path = made(tmp_path / str(number), form, [name, "b"])
        if path is None:
            continue
        kept += 1
        shown = quoted(name)
        assert shown != name
        told = run("info", path)
        assert shown in told
        assert shown in run("digest", path).replace("\\\\", "\\")
        assert len(run("digest", path).splitlines()) == 2
        run("verify", path)
        run("info", "--json", path)
        assert shown in run(path, "-o", tmp_path / "one.ra")
        run(f"{path}#{name}", "-o", tmp_path / "one.png", "--overwrite")
        run(path, "-o", tmp_path / "x.mat", "--overwrite")
        run(path, "-o", tmp_path / "x.nrrd", "--array", "missing")
    assert kept >= 5


def test_a_damaged_member_of_an_odd_name(tmp_path: Path) -> None:
    for number, name in enumerate(ODD.values()):
        path = tmp_path / f"{number}.npz"
        buffer = io.BytesIO()
        np.save(buffer, np.arange(100))
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{name}.npy", buffer.getvalue())
        data = bytearray(path.read_bytes())
        data[data.index(b"NUMPY") + 300] ^= 1
        path.write_bytes(data)
        assert "damaged" in run("verify", path)
        with pytest.raises(Corrupt) as error:
            raconvert.read(path)
        safe(str(error.value).encode())
        assert "\n" not in str(error.value)


def test_odd_names_of_files(tmp_path: Path, tool: object) -> None:
    """A digest keeps the very name, which `sha256sum -c` needs."""
    for name in ODD.values():
        path = tmp_path / f"{name}.ra"
        raconvert.write(path, np.arange(5))
        run("info", path)
        run("verify", path)
        run(path, "-o", tmp_path / "missing" / "x.ra")
        run("info", f"{path}.none")
        command = [sys.executable, "-m", "raconvert", "digest", path]
        manifest = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        checked = [tool("sha256sum"), "-c", "--strict"]  # type: ignore[operator]
        subprocess.run(checked, input=manifest, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("grün 日本 é 👩‍🔬", "grün 日本 é 👩‍🔬"),
        ("a\tb\x7f", r"a\x09b\x7f"),
        ("\udcff\ud800", r"\xff\ud800"),
        ("\u061c\u200f\u2029", r"\u061c\u200f\u2029"),
    ],
)
def test_quoting(text: str, shown: str) -> None:
    assert quoted(text) == shown
    quoted(text).encode()


def test_lists_of_names_are_capped(tmp_path: Path) -> None:
    path = made(tmp_path, "npz", [f"name{n:04}" for n in range(1000)])
    for words in ([path, "-o", tmp_path / "x.ra"], [path, "-o", tmp_path / "x.png"],
                  ["digest", path, "--as", "x.ra"], ["info", f"{path}#none"]):  # fmt: skip
        told = run(*words)
        assert "more" in told
        assert len(told) < 3000


def test_notes_are_capped(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        buffer = io.BytesIO()
        np.save(buffer, np.arange(3))
        archive.writestr("a.npy", buffer.getvalue())
        for number in range(500):
            archive.writestr(f"{number}.txt", "no array")
    for words in (["info"], ["verify"], ["-o", tmp_path / "y.npz", "--from", "npz"]):
        told = run(*words, tmp_path / "x.npz")
        assert "and 480 more" in told
        assert len(told.splitlines()) < 30


# Groups inside groups ----------------------------------------------------------------------------


def npz_of(path: Path, names: list[str]) -> Path:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(3))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(f"{name}.npy", buffer.getvalue())
    return path


@pytest.mark.parametrize(
    "names", [["a/" * 10_000 + "x"], ["a/" * 501 + "x"], [f"{n}/" * 450 + "x" for n in range(200)]]
)
def test_deep_names_are_refused(names: list[str], tmp_path: Path) -> None:
    path = npz_of(tmp_path / "x.npz", names)
    for words in (["info"], ["digest"], ["-o", tmp_path / "x.h5"], ["-o", tmp_path / "x.zip"]):
        told = run(*words, path)
        assert "too many groups" in told
        assert len(told) < 1000


@pytest.mark.parametrize("name", ["deep10000.npz", "deep10000.zip"])
def test_deep_names_of_the_corpus(name: str, corpus: object) -> None:
    with pytest.raises(Unsupported, match="too many groups"):
        raconvert.open(corpus("review", "attack", name))  # type: ignore[operator]


def test_names_as_deep_as_any_real_file(tmp_path: Path) -> None:
    names = ["/".join(f"group{n}" for n in range(100)), *(f"a/b/c/d{n}/e" for n in range(2000))]
    path = npz_of(tmp_path / "x.npz", names)
    with raconvert.open(path) as bundle:
        assert bundle.names == names
