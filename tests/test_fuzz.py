"""The fuzzer's findings, judged again; and that the fuzzer itself works."""

from __future__ import annotations

import io
import os
import random
import signal
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from fuzz import mutate, run
from fuzz.judge import judge, place
from fuzz.parsers import PARSERS, SPLIT, seeds

from raconvert.catalogue import ROWS

REGRESSIONS = sorted(path for path in run.REGRESSIONS.iterdir() if path.suffix != ".md")


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "room").mkdir()
    return tmp_path / "room"


@pytest.fixture
def bounded() -> Iterator[None]:
    """Bound the CPU time of a test, as the fuzzer does for an input."""

    def stop(number: int, frame: object) -> None:
        pytest.fail(f"more than {run.SECONDS} seconds of CPU")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, run.SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("bounded")
def test_what_was_found_once_holds(path: Path, room: Path) -> None:
    why, _ = judge(path.name.split("-")[0], path.read_bytes(), room)
    assert why is None, why


# Formats without a row of their own name, and what is fuzzed of them.
OTHERWISE = {
    "bundle": "its parts are `ra`, `sidecar` and `items`",
    "raw": "it has no header",
    "zarr": "`zarr-2`, `zarr-3` and the chunks of both",
}


def test_every_format_is_fuzzed() -> None:
    assert {row.name for row in ROWS if row.reads} - PARSERS.keys() == OTHERWISE.keys()


def test_a_few_inputs_of_every_parser(tmp_path: Path) -> None:
    """Each parser in a child of one process, where the limit of memory is not the one of pytest."""
    words = ["--all", "--minutes", str(len(PARSERS)), "--inputs", "40", "--seed", "9"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *words, "--keep", str(tmp_path / "findings")],
        cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.stdout.splitlines()[1:] == [f"{name}: 40 inputs, 0 findings" for name in PARSERS], (
        done.stdout + done.stderr
    )
    assert done.returncode == 0


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.filterwarnings("ignore")
def test_seeds_are_read(name: str, room: Path) -> None:
    outcomes = [judge(name, seed, room)[1] for seed in seeds(name)]
    assert outcomes.count("read") >= 2


def test_a_foreign_error_and_a_crash_are_findings(
    tmp_path: Path, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuzz.judge.open_bundle", lambda path, **_: int("x"))
    why, _ = judge("npy", b"x", room)
    assert "ValueError" in str(why)
    monkeypatch.setattr("fuzz.run.judge", lambda *_: _die())
    ran = run.fuzz("npy", 1, 1, 0, tmp_path / "findings")
    assert len(ran.findings) == 1
    assert "SIGKILL" in ran.findings[0].with_suffix(".txt").read_text()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_files_that_are_written_and_other_values_are_findings(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([["a"], ["b"]])
    monkeypatch.setattr("fuzz.judge.told", lambda *_: next(answers))
    assert "something else" in str(judge("npy", b"x", room)[0])

    def writing(path: Path, *_: object) -> str:
        (path.parent / "more").touch()
        return "Corrupt: x"

    monkeypatch.setattr("fuzz.judge.told", writing)
    assert "['more']" in str(judge("npy", b"x", room)[0])


def test_an_input_of_two_files(room: Path) -> None:
    path = place("scidb", b"schema" + SPLIT + b"data", room)
    assert path.read_bytes() == b"data"
    assert (room / "x.scidb.schema").read_bytes() == b"schema"


# The changes that know a format: what they make passes the checks of a reader that is not ours ---


def some(change: mutate.Change, seed: bytes, count: int = 60) -> list[bytes]:
    found = []
    for number in range(count):
        try:
            found.append(change(seed, random.Random(number), [seed]))
        except (ValueError, zlib.error, UnicodeError, struct.error, zipfile.BadZipFile):
            continue
    assert len(set(found)) > count // 2
    return found


@pytest.mark.filterwarnings("ignore")
def test_changed_pngs_have_right_checksums() -> None:
    seed = next(data for data in seeds("png") if b"tEXt" in data)
    for data in some(mutate.png, seed):
        at = 8
        while at < len(data):
            (length,) = struct.unpack_from(">I", data, at)
            end = at + 8 + length
            assert struct.unpack_from(">I", data, end)[0] == zlib.crc32(data[at + 4 : end])
            at = end + 4


@pytest.mark.filterwarnings("ignore")
def test_changed_zips_have_right_checksums() -> None:
    room = io.BytesIO()
    np.savez(room, a=np.arange(3), b=np.zeros((2, 2)))
    for data in some(mutate.archive, room.getvalue()):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            assert archive.testzip() is None


def test_changed_tars_have_right_checksums() -> None:
    seed = next(data for data in seeds("tar") if len(data) > 5000)
    for data in some(mutate.tar, seed):
        for at in range(0, len(data) - 511, 512):
            block = data[at : at + 512]
            if block[257:262] == b"ustar":
                assert int(block[148:154], 8) == sum(block) - sum(block[148:156]) + 8 * 32


@pytest.mark.parametrize(("change", "name"), [(mutate.har, "har"), (mutate.mat, "mat")])
def test_changed_records_fit_their_marks(change: Callable[..., bytes], name: str) -> None:
    seed = next(data for data in seeds(name) if len(data) > 600 and (data[0] or name == "mat"))
    for data in some(change, seed):
        at = 128 if name == "mat" else 0
        while at < len(data):
            first, second = struct.unpack_from("<II", data, at)
            if name == "har":
                assert data[at : at + 4] == data[at + 4 + first : at + 8 + first]
            elif first == 15:
                assert zlib.decompress(data[at + 8 : at + 8 + second])
            at += 8 + (first if name == "har" else second)
        assert at == len(data)
