"""Arrays in files, moved to another axis order: every order, every size of what is read at once."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert import convert
from raconvert.arrays import transpose as transposing
from raconvert.errors import Corrupt

SHAPES = [
    (7, 5),
    (64, 3),
    (3, 64),
    (1, 9, 1),
    (6, 5, 4),
    (40, 30, 3),
    (3, 2, 5, 4),
    (2, 1, 3, 2, 4),
]
TYPES = ["u1", "<f4", ">f8", "<c8", "S3", [("a", "u1"), ("b", "<f4")]]


def values_of(shape: tuple[int, ...], dtype: object) -> np.ndarray:
    raw = np.random.default_rng(0).integers(0, 256, np.prod(shape) * np.dtype(dtype).itemsize, "u1")
    if dtype == "S3":
        raw |= 1
    return raw.view(dtype).reshape(shape)


def moved(tmp_path: Path, values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    np.save(tmp_path / "x.npy", values)
    convert(tmp_path / "x.npy", tmp_path / "y.npy", axes=",".join(map(str, axes)), overwrite=True)
    return np.load(tmp_path / "y.npy")


@pytest.fixture(params=["as-it-is", "short-runs", "wide-runs", "little-memory", "no-preadv"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make small arrays take the ways of large ones."""
    if request.param == "short-runs":
        monkeypatch.setattr(transposing, "SHORT_RUN", 1)
    if request.param == "wide-runs":
        monkeypatch.setattr(transposing, "SHORT_RUN", 1 << 20)
        monkeypatch.setattr(transposing, "WIDE_RUN", 1 << 20)
    if request.param == "no-preadv":
        monkeypatch.delattr(os, "preadv", raising=False)
    if request.param != "as-it-is":
        for name in ("LARGEST_SLAB", "LARGEST_BLOCK", "WANTED_RUN"):
            monkeypatch.setattr(transposing, name, 64)
        monkeypatch.setattr("raconvert.arrays.blocks.LARGEST_BLOCK", 64)
        monkeypatch.setattr("raconvert.arrays.blocks.block_bytes", lambda _: 64)
    return str(request.param)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("fortran", [False, True], ids=["C", "F"])
def test_every_order_of_the_axes(
    tmp_path: Path, shape: tuple[int, ...], fortran: bool, way: str
) -> None:
    values = values_of(shape, "<u2")
    values = np.asfortranarray(values) if fortran else values
    orders = list(itertools.permutations(range(len(shape))))
    for axes in orders[:: max(1, len(orders) // 8)]:
        assert np.array_equal(moved(tmp_path, values, axes), values.transpose(axes)), axes


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_kind_of_element(tmp_path: Path, dtype: object, way: str) -> None:
    values = values_of((9, 4, 5), dtype)
    found = moved(tmp_path, values, (2, 0, 1))
    expected = values.transpose(2, 0, 1)
    if np.dtype(dtype).byteorder == ">":
        expected = expected.astype(np.dtype(dtype).newbyteorder("<"))
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


def test_a_file_that_becomes_shorter_is_an_error(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((4096, 2048), "f4"))
    with raconvert.open(tmp_path / "x.npy") as array:
        source = transposing.Transposed(array, (1, 0), 1 << 30)
        os.truncate(tmp_path / "x.npy", 1 << 20)
        with pytest.raises(Corrupt, match="became shorter"):
            list(source.stream(1 << 20))
