"""Errors of ours are also those of Python: caught as such, with their attributes, and pickled."""

from __future__ import annotations

import copy
import errno
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert import errors
from raconvert.cli import main
from raconvert.files.places import write_failed
from raconvert.files.source import read_failed


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(6.0))
    return tmp_path


@pytest.mark.parametrize("name", ["none.npy", "none.ra", "none.png", "*.none", "nowhere/none.h5"])
def test_what_is_not_there_is_a_file_not_found_error(name: str) -> None:
    for call in (
        lambda: raconvert.read(name),
        lambda: raconvert.open(name),
        lambda: raconvert.convert(name, "out.ra"),
    ):
        with pytest.raises(FileNotFoundError) as caught:
            call()
        error = caught.value
        assert isinstance(error, raconvert.ReadFailed)
        assert (error.errno, error.filename, error.exit_code) == (errno.ENOENT, name, 1)
        assert name in str(error)
        assert error.strerror == error.what


def test_what_cannot_be_read_is_an_os_error() -> None:
    Path("folder.npy").mkdir()
    with pytest.raises(OSError, match=r"folder\.npy") as caught:
        raconvert.read("folder.npy")
    assert not isinstance(caught.value, FileNotFoundError)


def test_what_exists_is_a_file_exists_error() -> None:
    raconvert.convert("a.npy", "a.ra")
    for call in (
        lambda: raconvert.convert("a.npy", "a.ra"),
        lambda: raconvert.write("a.ra", np.zeros(3)),
        lambda: raconvert.write("a.npy", np.zeros(3)),
    ):
        with pytest.raises(FileExistsError) as caught:
            call()
        assert isinstance(caught.value, raconvert.TargetExists)
        assert caught.value.errno == errno.EEXIST
        assert caught.value.filename in ("a.ra", "a.npy")
        assert caught.value.exit_code == 5


def test_a_wrong_call_is_a_value_error() -> None:
    for call in (
        lambda: raconvert.read("a.npy", meta="all"),
        lambda: raconvert.convert("a.npy", "b.ra", axes="x"),
        lambda: raconvert.convert("a.npy", "b.npy", out_opts={"nothing": 1}),
    ):
        with pytest.raises(ValueError, match=".") as caught:
            call()
        assert isinstance(caught.value, raconvert.UsageError)


def every_error() -> list[errors.RaconvertError]:
    found, left = [], [errors.RaconvertError]
    while left:
        one = left.pop()
        left += one.__subclasses__()
        if not one.__name__.startswith("_"):
            parts = {"path": "x.ra", "where": "byte 3", "expected": 1, "got": 2, "remedy": "do it"}
            found.append(one("is wrong", **parts))
    return found


@pytest.mark.parametrize("error", every_error(), ids=lambda error: type(error).__name__)
def test_errors_survive_pickle_and_copy(error: errors.RaconvertError) -> None:
    if isinstance(error, OSError):
        error.errno = errno.EIO
    error.add_note("a note")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error) == "'x.ra': is wrong, at byte 3; expected 1, got 2\n  do it"
        assert again.__notes__ == ["a note"]
        assert again.exit_code == error.exit_code
        if isinstance(error, OSError):
            facts = (again.errno, again.filename, again.strerror)
            assert facts == (errno.EIO, "x.ra", "is wrong")


def test_errors_of_ours_are_not_wrapped_as_errors_of_the_system() -> None:
    """An `except OSError` around a block that reads and writes sees them as well."""
    for error in every_error():
        if isinstance(error, OSError):
            assert write_failed("target", error) is error
            assert read_failed("source", error) is error


FAILING = """
import sys
import raconvert.arrays.blocks
import raconvert.files.copy
from raconvert import ReadFailed
from raconvert.cli import main

def fail(*args, **more):
    raise ReadFailed("cannot be read: the disk is gone", path="a.npy")

raconvert.files.copy.copy_extent = raconvert.arrays.blocks.blocks = fail
sys.exit(main(["convert", "a.npy", "-o", sys.argv[1], "--dtype", "float32"]))
"""


@pytest.mark.parametrize("target", ["b.npz", "b.h5", "b.nrrd", "b.har", "b.safetensors"])
def test_a_source_that_cannot_be_read_is_no_failure_of_the_destination(target: str) -> None:
    """Reading fails while the destination is written; in a process whose functions are others."""
    done = subprocess.run(
        [sys.executable, "-c", FAILING, target], capture_output=True, text=True, check=False
    )

    assert "cannot be written" not in done.stderr
    assert done.returncode == 0 or (done.returncode, "'a.npy': cannot be read" in done.stderr) == (
        1,
        True,
    )


def test_options_of_the_command_line_keep_their_own_messages(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, message in (
        (["--max-memory", "lots"], "lots"),
        (["--allow", "dtpye"], "did you mean 'dtype'"),
        (["--meta", "al"], "auto"),
        (["--jobs", "-3"], "-3"),
    ):
        assert main(["convert", "a.npy", "-o", "c.ra", *words]) == 2
        said = capsys.readouterr().err
        assert message in said
        assert "invalid" not in said
