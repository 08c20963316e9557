"""Netpbm text and files of several images, piece by piece: against netpbm's own tools."""

from __future__ import annotations

import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert import convert
from raconvert.errors import Corrupt, TooLarge

RNG = np.random.default_rng(4)


@pytest.mark.parametrize(
    ("suffix", "values"),
    [
        (".pgm", RNG.integers(0, 65536, (300, 400), dtype="u2")),
        (".ppm", RNG.integers(0, 256, (200, 300, 3), dtype="u1")),
        (".pbm", RNG.integers(0, 2, (900, 1000), dtype="u1") == 1),
    ],
    ids=["deep_grey", "rgb", "bits"],
)
def test_long_texts_of_netpbm(
    suffix: str, values: np.ndarray, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """Longer than what is read at once."""
    raconvert.write(tmp_path / f"raw{suffix}", values)
    path = tmp_path / f"text{suffix}"
    with path.open("wb") as file:
        command = [tool("pnmtoplainpnm"), tmp_path / f"raw{suffix}"]
        subprocess.run(command, check=True, stdout=file)
    assert path.stat().st_size > 1 << 18

    assert np.array_equal(raconvert.read(path), values)
    with raconvert.open(path) as array:
        assert np.array_equal(array[3], values[3])


@pytest.mark.parametrize("shift", range(12))
def test_pieces_end_between_words_and_comments(shift: int, tmp_path: Path) -> None:
    """Wherever the border of what is read at once falls."""
    values = np.arange(60_000, dtype="u2")
    words = [b"%d" % value + (b" # 9 9\n" if value % 7 == 0 else b"\t") for value in values]
    path = tmp_path / "x.pgm"
    path.write_bytes(b"P2\n#" + b"x" * shift + b"\n60000 1\n65535\n" + b"".join(words))
    assert path.stat().st_size > (1 << 18)

    assert np.array_equal(raconvert.read(path)[0], values)


@pytest.mark.parametrize("suffix", [".pgm", ".pbm"])
def test_what_has_to_be_decoded_is_in_memory_or_refused_before(suffix: str, tmp_path: Path) -> None:
    text = b"P2 2000 5000 65535\n" + (b" ".join(b"%d" % n for n in range(2000)) + b"\n") * 5000
    path = tmp_path / f"x{suffix}"
    path.write_bytes(text if suffix == ".pgm" else b"P4 8001 2000\n" + bytes(1001 * 2000))
    tracemalloc.start()
    with pytest.raises(TooLarge, match="allow it with --max-memory"):
        convert(path, tmp_path / "x.ra", max_memory=8 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 4 << 20
    convert(path, tmp_path / "x.ra")
    got = raconvert.read(tmp_path / "x.ra")
    expected = np.arange(2000) if suffix == ".pgm" else np.ones(8001, bool)
    assert np.array_equal(got[-1], expected)


def test_work_grows_with_the_text(tmp_path: Path) -> None:
    """A plain-text PPM of 7 MB, counted as bytes that are allocated at once."""
    peaks = []
    for rows in (1000, 2000):
        path = tmp_path / f"{rows}.ppm"
        path.write_bytes(b"P3 300 %d 255\n" % rows + b"200 0 17\n" * (300 * rows))
        tracemalloc.start()
        values = raconvert.read(path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (values == [200, 0, 17]).all()

    assert peaks[1] < 2.5 * peaks[0]


@pytest.mark.parametrize(
    ("text", "got"),
    [
        (b"P2 2 1 9\n1 2 3", 3),
        (b"P2 2 1 9\n1 2\nP2 2 1 9\n1 2", None),
        (b"P2 2 1 9\n1  ", 1),
        (b"P1 2 1\n101", 3),
        (b"P1 2 1\n1  ", 1),
        (b"P1 2 1\n1 2", None),
        (b"P2 2 1 9\n1 -2", None),
        (b"P2 2 1 9\n1 2x", None),
    ],
)
def test_texts_of_more_or_less_than_the_header_says(
    text: bytes, got: object, tmp_path: Path
) -> None:
    (tmp_path / "x.pnm").write_bytes(text)
    with pytest.raises(Corrupt, match="expected 2 numbers") as caught:
        raconvert.read(tmp_path / "x.pnm")

    assert caught.value.got == got


def test_a_comment_without_an_end_does_not_pile_up(tmp_path: Path) -> None:
    path = tmp_path / "x.pgm"
    path.write_bytes(b"P2 2 1 9\n1 #" + b"x" * (4 * (1 << 18)))

    with pytest.raises(Corrupt, match="text of the pixels"):
        raconvert.read(path)


def test_behind_the_pixels_there_may_be_comments(tmp_path: Path) -> None:
    (tmp_path / "x.pgm").write_bytes(b"P2 2 1 9\n1 2 # the end\n# 7 8\n\n")

    assert raconvert.read(tmp_path / "x.pgm").tolist() == [[1, 2]]
