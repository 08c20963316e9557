"""Stacks that several processes read: what comes out is what one process makes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert.errors import Corrupt, RaconvertError, UsageError
from raconvert.workers import shared_memory, worker
from tests.chaos.trees import eventually, is_gone

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be copied here")


@pytest.fixture(autouse=True)
def _copies_may_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner of the tests has threads, which do nothing while a test runs."""
    for name in ("raconvert.arrays.stack", "raconvert.plugins.png.stack",
                 "raconvert.conversion.batch"):  # fmt: skip
        monkeypatch.setattr(import_module(name), "can_fork", lambda: True)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many copies were asked for, each time."""
    found: list[int] = []
    before = shared_memory.pieces
    monkeypatch.setattr(
        shared_memory, "pieces", lambda *words: (found.append(words[3]), before(*words))[1]
    )
    return found


def images(folder: Path, suffix: str, count: int = 300, dtype: str = "u1") -> np.ndarray:
    """Small images of noise; those of PNG have texts of their own now and then."""
    rng = np.random.default_rng(5)
    values = rng.integers(0, 1 << 8 * np.dtype(dtype).itemsize, (count, 40, 60), dtype)
    folder.mkdir()
    for number, one in enumerate(values):
        if suffix == ".npy":
            np.save(folder / f"{number}.npy", one)
            continue
        text = f"image {number}" if number % 50 == 7 else None
        meta = raconvert.Metadata(description=text) if text else None
        raconvert.write(folder / f"{number}{suffix}", one, meta=meta)
    return values


@pytest.mark.parametrize("dtype", ["u1", "u2"])
@pytest.mark.parametrize("suffix", [".png", ".npy", ".nrrd"])
@pytest.mark.parametrize("to", [".ra", ".npy", ".h5"])
def test_the_bytes_are_those_of_one_process(
    suffix: str, dtype: str, to: str, tmp_path: Path, asked: list[int]
) -> None:
    values = images(tmp_path / "x", suffix, dtype=dtype)
    words = f"{tmp_path / 'x'}/*{suffix}"

    one = raconvert.convert(words, tmp_path / f"one{to}", stack=True)
    two = raconvert.convert(words, tmp_path / f"two{to}", stack=True, jobs=2)
    four = raconvert.convert(words, tmp_path / f"four{to}", stack=True, jobs=4)

    assert asked == [2, 4]
    found = raconvert.read(tmp_path / f"two{to}")
    assert np.array_equal(next(iter(found.values())) if to == ".h5" else found, values)
    if to != ".h5":  # where h5py writes is its own affair
        for beside in ("", ".yaml", ".items.jsonl"):
            wanted = tmp_path / f"one{to}{beside}"
            for name in ("two", "four"):
                found = tmp_path / f"{name}{to}{beside}"
                assert found.exists() == wanted.exists()
                if found.exists():
                    assert found.read_bytes() == wanted.read_bytes()
    assert two.notes == four.notes == one.notes


def odd(folder: Path, suffix: str) -> None:
    """Two files of another shape, of which the first one is to be named."""
    for number in (290, 150):
        (folder / f"{number}{suffix}").unlink()
        raconvert.write(folder / f"{number}{suffix}", np.zeros((3, 3), "u1"))


def cut(folder: Path, suffix: str) -> None:
    """Two files that end too early."""
    for number in (290, 150):
        path = folder / f"{number}{suffix}"
        path.write_bytes(path.read_bytes()[:-700])


@pytest.mark.parametrize("spoil", [odd, cut])
@pytest.mark.parametrize("suffix", [".png", ".npy"])
def test_the_first_odd_file_is_named_as_by_one_process(
    spoil: object, suffix: str, tmp_path: Path
) -> None:
    images(tmp_path / "x", suffix)
    spoil(tmp_path / "x", suffix)  # type: ignore[operator]
    words = f"{tmp_path / 'x'}/*{suffix}"

    with pytest.raises((UsageError, Corrupt)) as one:
        raconvert.convert(words, tmp_path / "y.ra")
    with pytest.raises((UsageError, Corrupt)) as two:
        raconvert.convert(words, tmp_path / "y.ra", jobs=3)

    assert f"150{suffix}" in str(two.value)
    assert (type(two.value), str(two.value)) == (type(one.value), str(one.value))
    assert os.listdir(tmp_path) == ["x"]


def test_a_pattern_that_matches_nothing_is_the_same_error(tmp_path: Path) -> None:
    with pytest.raises(RaconvertError, match="matches no file") as found:
        raconvert.convert(str(tmp_path / "*.png"), tmp_path / "y.ra", jobs=2)
    assert found.value.exit_code == 1


def test_sidecars_are_honoured(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    for number in range(6):
        meta = raconvert.Metadata(description=f"mine {number}")
        raconvert.write(tmp_path / "one.ra", np.full((2, 2), number, "u1"), meta=meta)
        raconvert.convert(tmp_path / "one.ra", tmp_path / f"x/{number}.png", meta="sidecar")
        (tmp_path / "one.ra").unlink()
        (tmp_path / "one.ra.yaml").unlink()
    words = f"{tmp_path / 'x'}/*.png"

    outcomes: list[object] = []
    for jobs in (1, 2):
        try:
            raconvert.convert(words, tmp_path / f"y{jobs}.ra", jobs=jobs)
            made = sorted(tmp_path.glob(f"y{jobs}.ra*"))
            outcomes.append([(path.name[2:], path.read_bytes()) for path in made])
        except RaconvertError as error:
            outcomes.append(str(error).replace(f"y{jobs}.ra", "y.ra"))

    assert outcomes[0] == outcomes[1]
    assert b"mine" in str(outcomes[0]).encode()


def test_a_copy_that_dies_ends_the_run_with_the_files_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images(tmp_path / "x", ".npy")
    from raconvert.arrays.stack import Stack

    same = Stack._same_item

    def dies(self: Stack, opened: object, number: int) -> object:
        if number == 200:
            os.kill(os.getpid(), signal.SIGSEGV)
        return same(self, opened, number)  # type: ignore[arg-type]

    monkeypatch.setattr(Stack, "_same_item", dies)
    with pytest.raises(Corrupt, match="SIGSEGV") as found:
        raconvert.convert(f"{tmp_path / 'x'}/*.npy", tmp_path / "y.ra", jobs=2)

    assert ".npy' to '" in str(found.value)
    assert os.listdir(tmp_path) == ["x"]


def test_ctrl_c_ends_all_processes_and_leaves_nothing(tmp_path: Path) -> None:
    images(tmp_path / "x", ".png", 3000)
    process = subprocess.Popen(
        [sys.executable, "-m", "raconvert", f"{tmp_path / 'x'}/*.png", "-o", str(tmp_path / "y.ra"),
         "--jobs", "2"], start_new_session=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert eventually(lambda: process.poll() is not None or any(tmp_path.glob(".raconvert-*")))
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=30)

    assert process.returncode == 130
    assert os.listdir(tmp_path) == ["x"]
    assert eventually(lambda: is_gone(process.pid))


def test_large_items_are_read_by_as_many_as_the_memory_is_for(
    tmp_path: Path, asked: list[int]
) -> None:
    for number in range(4):
        raconvert.write(tmp_path / f"{number}.png", np.full((3000, 1000), number, "u1"))

    raconvert.convert(f"{tmp_path}/*.png", tmp_path / "y.ra", jobs=2, max_memory=40 << 20)
    assert asked == []
    raconvert.convert(
        f"{tmp_path}/*.png", tmp_path / "y.ra", jobs=2, max_memory=128 << 20, overwrite=True
    )
    assert asked == [2]
    assert raconvert.read(tmp_path / "y.ra")[:, 7, 7].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("jobs", [0, -1])
def test_a_number_of_processes_is_at_least_one(jobs: int, tmp_path: Path) -> None:
    images(tmp_path / "x", ".npy", 3)

    with pytest.raises(UsageError, match="jobs is not a valid number"):
        raconvert.convert(f"{tmp_path / 'x'}/*.npy", tmp_path / "y.ra", jobs=jobs)
    with pytest.raises(UsageError, match="jobs is not a valid number"):
        raconvert.migrate(tmp_path / "x", tmp_path / "y", to="ra", jobs=jobs)
    assert os.listdir(tmp_path) == ["x"]


def test_an_interruption_while_files_are_looked_for_stays_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images(tmp_path / "x", ".npy", 3)
    batch = import_module("raconvert.conversion.batch")

    def interrupted(row: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(batch.registry, "missing_needs", interrupted)
    copied: list[int] = []
    monkeypatch.setattr(worker, "fork", lambda: (copied.append(os.fork()), copied[-1])[1])
    with pytest.raises(KeyboardInterrupt):
        raconvert.convert(f"{tmp_path / 'x'}/*.npy", tmp_path / "y.ra", jobs=2)
    assert copied
    for child in copied:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)
