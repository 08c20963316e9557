"""Netpbm text and files of several images, piece by piece: against netpbm's own tools."""

from __future__ import annotations

import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from raconvert.plugins.image.netpbm_pixels import TEXT_BYTES

import raconvert
from raconvert import convert
from raconvert.errors import Corrupt

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
    assert path.stat().st_size > 2 * TEXT_BYTES

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
    assert path.stat().st_size > TEXT_BYTES

    assert np.array_equal(raconvert.read(path)[0], values)


def test_a_text_is_converted_in_less_memory_than_its_values(tmp_path: Path) -> None:
    path = tmp_path / "x.pgm"
    row = b" ".join(b"%d" % n for n in range(2000)) + b"\n"
    path.write_bytes(b"P2 2000 5000 65535\n" + row * 5000)
    tracemalloc.start()
    convert(path, tmp_path / "x.ra", max_memory=8 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 16 << 20 < 2 * 2000 * 5000
    assert np.array_equal(raconvert.read(tmp_path / "x.ra")[4999], np.arange(2000))


def test_a_bitmap_larger_than_memory_is_converted(tmp_path: Path) -> None:
    """Eight pixels of a byte become eight bytes."""
    path = tmp_path / "x.pbm"
    path.write_bytes(b"P4 8001 2000\n" + bytes([0xF0]) * (1001 * 2000))
    convert(path, tmp_path / "x.ra", max_memory=4 << 20)

    got = raconvert.read(tmp_path / "x.ra")
    assert got.shape == (2000, 8001)
    assert got[1999, :9].tolist() == [False] * 4 + [True] * 4 + [False]


@pytest.mark.parametrize(
    ("text", "got"),
    [
        (b"P2 2 1 9\n1 2 3", "more"),
        (b"P2 2 1 9\n1 2\nP2 2 1 9\n1 2", None),
        (b"P2 2 1 9\n1  ", 1),
        (b"P1 2 1\n101", "more"),
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
    path.write_bytes(b"P2 2 1 9\n1 #" + b"x" * (4 * TEXT_BYTES))

    with pytest.raises(Corrupt, match="text of the pixels"):
        raconvert.read(path)


def test_behind_the_pixels_there_may_be_comments(tmp_path: Path) -> None:
    (tmp_path / "x.pgm").write_bytes(b"P2 2 1 9\n1 2 # the end\n# 7 8\n\n")

    assert raconvert.read(tmp_path / "x.pgm").tolist() == [[1, 2]]
