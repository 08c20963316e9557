"""Netpbm bitmaps, headers and what is refused: against netpbm's own tools."""

from __future__ import annotations

import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert import convert
from raconvert.arrays.blocks import blocks
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported

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
def test_plain_text(
    suffix: str, values: np.ndarray, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """Written by netpbm; comments between the samples are passed."""
    raconvert.write(tmp_path / f"raw{suffix}", values)
    path = tmp_path / f"text{suffix}"
    with path.open("wb") as file:
        subprocess.run([tool("pnmtoplainpnm"), tmp_path / f"raw{suffix}"], check=True, stdout=file)

    assert np.array_equal(raconvert.read(path), values)
    with raconvert.open(path) as array:
        flat = np.concatenate([block.reshape(-1) for block in blocks(array, 1000)])
    assert np.array_equal(flat, values.reshape(-1))
    head, *lines = path.read_bytes().split(b"\n")
    path.write_bytes(head + b"\n" + b" # 9 9 9\n".join(lines))
    assert np.array_equal(raconvert.read(path), values)


def test_a_bitmap_is_in_memory_or_refused_before(tmp_path: Path) -> None:
    path = tmp_path / "x.pbm"
    path.write_bytes(b"P4\n8001 2000\n" + bytes(1001 * 2000))
    tracemalloc.start()
    with pytest.raises(TooLarge, match="allow it with max_memory="):
        convert(path, tmp_path / "x.ra", max_memory=8 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 4 << 20
    convert(path, tmp_path / "x.ra")
    assert np.array_equal(raconvert.read(tmp_path / "x.ra")[-1], np.ones(8001, bool))


@pytest.mark.parametrize(
    "header",
    [b"P5 2 1 255\n", b"P5\n#c\n2#c\n1\t\r255 ", b"P5#c\n2 # 9 9\n 1\n255\n", b"P5\v2\f1 255\r"],
)
def test_blanks_and_comments_of_headers(header: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.pgm").write_bytes(header + bytes([7, 8]))

    assert raconvert.read(tmp_path / "x.pgm").tolist() == [[7, 8]]


def test_what_a_header_says_besides_is_noted(tmp_path: Path) -> None:
    (tmp_path / "x.pgm").write_bytes(b"P5 # by hand\n2 1\n255\n\1\2")
    with raconvert.open(tmp_path / "x.pgm") as image:
        assert image[0].tolist() == [1, 2]
    assert raconvert.info(tmp_path / "x.pgm")["notes"] == ["comments of the header are left out"]
