"""Sources that are not one file with a name: bytes, open files, the standard input, lists, patterns."""

from __future__ import annotations

import contextlib
import io
import os
import pydoc
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from PIL import Image

import raconvert
from raconvert import Array, Corrupt, Progress, ReadFailed, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VALUES = np.arange(12, dtype="u1").reshape(3, 4)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a folder with a.npy, c.h5 and p.png; nothing temporary stays."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", VALUES)
    Image.fromarray(VALUES).save("p.png")
    with h5py.File("c.h5", "w") as file:
        file["group/x"] = VALUES
    yield tmp_path
    assert os.listdir(place) == []


FORMS: dict[str, Callable[[bytes], Any]] = {
    "bytes": bytes,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "BytesIO": io.BytesIO,
    "a stream that cannot seek": lambda data: io.BufferedReader(Pipe(data)),
}


class Pipe(io.RawIOBase):
    """A stream without a position, that gives few bytes at once."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._left = data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece, self._left = self._left[:7], self._left[7:]
        buffer[: len(piece)] = piece
        return len(piece)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["a.npy", "p.png", "c.h5"])
def test_content_is_read_as_the_file_is(form: str, name: str) -> None:
    data = Path(name).read_bytes()

    found = raconvert.read(FORMS[form](data))

    values = found["group/x"] if isinstance(found, dict) else found
    assert values.tolist() == VALUES.tolist()
    assert raconvert.info(FORMS[form](data))["arrays"][0]["shape"] == [3, 4]
    assert raconvert.digest(FORMS[form](data)) == raconvert.digest(name)
    assert raconvert.probe(FORMS[form](data)).format == raconvert.probe(name).format
    assert raconvert.diff(FORMS[form](data), name, ignore_meta=True)["same"]
    raconvert.convert(FORMS[form](data), "out.npy", overwrite=True)
    assert np.load("out.npy").tolist() == VALUES.tolist()


class Named(io.BytesIO):
    """Content that has a name without being a file of that name, as members of archives have."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("x.npy", "x"),
        ("..", "data"),
        (".", "data"),
        ("x\0.npy", "data"),
        ("\ud800.npy", "data"),
        ("folder/" + "x" * 300 + ".npy", "x" * 196),
        ("é" * 150 + ".npy", "é" * 98),
    ],
)
def test_content_whose_name_no_file_can_have(name: str, array: str) -> None:
    np.save("x.npy", np.arange(3))
    with raconvert.open_array(Named(Path("x.npy").read_bytes(), name)) as opened:
        assert opened.name == array
        assert np.array_equal(opened, [0, 1, 2])


def test_an_open_array_reads_until_it_is_closed() -> None:
    with raconvert.open(Path("a.npy").read_bytes()) as opened:
        assert isinstance(opened, Array)
        assert opened[1, 2] == 6
        assert np.asarray(opened).tolist() == VALUES.tolist()


def test_a_file_that_is_open_from_its_beginning_is_read_where_it_is() -> None:
    with open("a.npy", "rb") as file, raconvert.open(file) as opened:
        assert os.listdir("temporary") == []
        assert np.asarray(opened).tolist() == VALUES.tolist()
    Path("behind").write_bytes(b"12345" + Path("a.npy").read_bytes())
    with Path("behind").open("rb") as file:
        file.seek(5)
        assert raconvert.read(file).tolist() == VALUES.tolist()  # type: ignore[union-attr]


def test_damage_is_our_error_and_names_no_temporary_file() -> None:
    for call in (raconvert.read, raconvert.open, raconvert.info, raconvert.digest):
        with pytest.raises(Corrupt) as error:
            call(Path("a.npy").read_bytes()[:-3])
        assert error.value.path == "data"
    with pytest.raises(UsageError, match="open as text"):
        raconvert.read(io.StringIO("text"))  # type: ignore[arg-type]
    with pytest.raises(ReadFailed, match="broken"):
        raconvert.read(io.BufferedReader(Broken(b"")))


class Broken(Pipe):
    def readinto(self, buffer: Any) -> int:  # noqa: ARG002
        raise OSError(5, "broken")


def test_lists_and_patterns_are_stacked() -> None:
    for number in (10, 9):
        np.save(f"s{number}.npy", VALUES + number)
    stack = [(VALUES + 9).tolist(), (VALUES + 10).tolist()]

    for source in (["s9.npy", Path("s10.npy")], "s*.npy"):
        assert raconvert.read(source).tolist() == stack  # type: ignore[union-attr]
        with raconvert.open(source) as opened:
            assert isinstance(opened, Array)
            assert opened[1, 0, 0] == 10
    os.mkdir("d")
    os.rename("s9.npy", "d/1.npy")
    assert raconvert.read("d").shape == (1, 3, 4)  # type: ignore[union-attr]
    raconvert.convert([Path("a.npy").read_bytes(), "a.npy"], "two.npy")
    assert np.load("two.npy").shape == (2, 3, 4)


@pytest.mark.parametrize("line", ["- -o out.npy", "convert - -o out.npy", "- --to npy -o -"])
@pytest.mark.parametrize("piped", [True, False])
def test_the_standard_input_is_a_source(line: str, piped: bool) -> None:
    command = [sys.executable, "-m", "raconvert", *line.split()]
    data = Path("c.h5").read_bytes()
    root = str(Path(__file__).resolve().parents[1])
    env = {**os.environ, "PYTHONPATH": root}
    with contextlib.ExitStack() as stack:
        how: dict[str, Any] = {"input": data}
        if not piped:
            how = {"stdin": stack.enter_context(Path("c.h5").open("rb"))}
        done = subprocess.run(command, capture_output=True, env=env, check=False, **how)

    assert done.returncode == 0, done.stderr
    written = done.stdout if line.endswith("-o -") else Path("out.npy").read_bytes()
    assert np.load(io.BytesIO(written)).tolist() == VALUES.tolist()
    assert b"temporary" not in done.stderr


@pytest.mark.parametrize("verb", ["info", "digest", "verify", "diff a.npy"])
def test_the_other_verbs_take_the_standard_input(verb: str) -> None:
    command = [sys.executable, "-m", "raconvert", *verb.split(), "-"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    data = Path("a.npy").read_bytes()

    done = subprocess.run(command, capture_output=True, env=env, check=False, input=data)

    assert (done.returncode, done.stderr) == (0, b"")
    assert b"temporary" not in done.stdout
    assert done.stdout


def test_a_listener_is_told_of_every_file() -> None:
    os.mkdir("in")
    for number in range(3):
        np.save(f"in/{number}.npy", np.zeros((number + 1) << 10))
    seen: list[Progress] = []

    raconvert.convert("in", out_dir="out", to="npz", progress=seen.append)

    ends = [now for now in seen if now.done == now.total]
    assert [(now.file, now.total, now.files) for now in ends] == [
        (f"in/{number}.npy", (number + 1) << 13, 3) for number in range(3)
    ]
    assert [now.count for now in ends] == [0, 1, 3]
    assert all(now.rate > 0 and now.seconds > 0 for now in ends)


def test_help_and_dir_show_what_is_public() -> None:
    manual = pydoc.render_doc(raconvert, renderer=pydoc.plaintext)

    assert set(dir(raconvert)) == {*raconvert.__all__, "ra", "__doc__", "__version__"}
    assert {"diff", "probe", "migrate", "Corrupt", "WouldLose", "TargetExists"} <= set(
        dir(raconvert)
    )
    for name in raconvert.__all__:
        assert name in manual
        value = getattr(raconvert, name)
        assert value.__doc__
        if callable(value) and not isinstance(value, type) and name != "refresh":
            assert ">>>" in value.__doc__, f"{name} shows no example"
            assert f"    {name}(" in manual
    functions = manual[manual.index("FUNCTIONS") :]
    assert "**options" not in functions
    assert set(dir(raconvert.ra)) == {*raconvert.ra.__all__, "__doc__"}
