"""Samples of large images, of which only some rows are kept: compared with all pixels by Pillow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from raconvert.plugins.png import pixels

import raconvert
from raconvert.arrays import regions
from raconvert.conversion.options import Settings
from raconvert.conversion.read import open_spec
from raconvert.errors import Corrupt
from raconvert.views.pages.bytes_of import file_map_of
from raconvert.views.sample import sample, spread

RNG = np.random.default_rng(5)
IMAGES = {
    "L": RNG.integers(0, 255, (700, 90), "u1"),
    "I;16": RNG.integers(0, 65535, (700, 90), "u2"),
    "RGB": RNG.integers(0, 255, (700, 90, 3), "u1"),
    "RGBA": RNG.integers(0, 255, (90, 700, 4), "u1"),
    "1": RNG.integers(0, 2, (700, 900)).astype(bool),
}


def written(path: Path, mode: str) -> Path:
    image = Image.fromarray(IMAGES[mode])
    assert image.mode == mode
    image.save(path)
    return path


@pytest.mark.parametrize("slab", [1000, 1 << 22])
@pytest.mark.parametrize("budget", [2000, 20_000])
@pytest.mark.parametrize("mode", IMAGES)
def test_rows_of_a_sample_are_those_of_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, budget: int, slab: int
) -> None:
    path = written(tmp_path / "x.png", mode)
    with raconvert.open(path) as array:
        expected = sample(array, budget=budget)
    monkeypatch.setattr(regions, "LARGE", 0)
    monkeypatch.setattr(pixels, "SLAB_BYTES", slab)
    with raconvert.open(path) as array:
        found = sample(array, budget=budget)
        assert callable(array.source)  # it was not decoded whole
        whole = np.asarray(Image.open(path)).astype(array.dtype) * (255 if mode == "1" else 1)
        rows, columns = whole.shape[:2]
        assert (found.text, found.whole) == (expected.text, False)
        ((values, other),) = [(a, b) for a, b in zip(found.values, expected.values, strict=True)]
        np.testing.assert_array_equal(values, other)
        assert values.dtype == other.dtype
        picked = [
            spread(length, most)
            for length, most in zip((rows, columns), values.shape, strict=False)
        ]
        np.testing.assert_array_equal(values, whole[np.ix_(*picked)])
        np.testing.assert_array_equal(np.asarray(array), whole)


def test_all_of_an_image_is_checked_for_some_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "x.png", "L")
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)
    monkeypatch.setattr(regions, "LARGE", 0)
    with raconvert.open(path) as array, pytest.raises(Corrupt):
        sample(array, budget=2000)


def test_where_its_bytes_are_is_told_without_decoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "x.png", "L")
    with open_spec(str(path), Settings()) as opened:
        expected = file_map_of(opened.bundle, path.stat().st_size)
    monkeypatch.setattr(regions, "LARGE", 0)
    with open_spec(str(path), Settings()) as opened:
        assert file_map_of(opened.bundle, path.stat().st_size) == expected
        assert callable(opened.bundle.arrays[0].source)
