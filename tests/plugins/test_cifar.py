"""What is special to CIFAR: NumPy, after the words of the page of the data sets, is the oracle."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from pairs import Pairs

import raconvert
from raconvert.errors import Corrupt, UnknownFormat, Unsafe, WouldLose

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "learning"

RNG = np.random.default_rng(10)
IMAGES = RNG.integers(0, 256, (300, 3, 32, 32), "u1")


def save(path: Path, images: np.ndarray, *labels: np.ndarray) -> None:
    """Records, as the page says: the labels, then red, green and blue."""
    columns = [column.reshape(-1, 1) for column in labels]
    path.write_bytes(np.hstack([*columns, images.reshape(len(images), 3072)]).tobytes())


def load(path: Path, labels: int) -> tuple[np.ndarray, ...]:
    rows = np.fromfile(path, "u1").reshape(-1, labels + 3072)
    return (*rows.T[:labels], rows[:, labels:].reshape(-1, 3, 32, 32))


IN_PAIRS = (
    Pairs(
        name="cifar",
        suffix=".cifar.bin",
        read=lambda path: load(path, 1)[-1],
        images={("uint8", (4, 6)): "x", ("uint8", (4, 6, 3)): "x"},
    ),
)

TEN = (RNG.integers(0, 10, 300).astype("u1"),)
HUNDRED = (RNG.integers(0, 20, 300).astype("u1"), RNG.integers(0, 100, 300).astype("u1"))
SETS = {
    "data_batch_1.bin": (TEN, ("labels",)),
    "train.bin": (HUNDRED, ("coarse_labels", "fine_labels")),
}


@pytest.mark.parametrize("name", SETS)
def test_both_ways(name: str, tmp_path: Path) -> None:
    labels, names = SETS[name]
    save(tmp_path / name, IMAGES, *labels)
    raconvert.convert(tmp_path / name, tmp_path / "x.npz", strict=True)
    with np.load(tmp_path / "x.npz") as got:
        assert got.files == [*names, "images"]
        assert np.array_equal(got["images"], IMAGES)
        assert all(np.array_equal(got[n], column) for n, column in zip(names, labels, strict=True))
    raconvert.convert(tmp_path / "x.npz", tmp_path / "y.cifar.bin", strict=True)
    assert (tmp_path / "y.cifar.bin").read_bytes() == (tmp_path / name).read_bytes()
    back = load(tmp_path / "y.cifar.bin", len(names))
    assert np.array_equal(back[-1], IMAGES)


def test_regions_and_colours_last(tmp_path: Path) -> None:
    save(tmp_path / "test_batch.bin", IMAGES, *TEN)
    with raconvert.open(tmp_path / "test_batch.bin") as bundle:
        assert np.array_equal(bundle["images"][-3:, 1, ::2], IMAGES[-3:, 1, ::2])
        assert bundle["labels"][299] == TEN[0][299]
    raconvert.convert(f"{tmp_path}/test_batch.bin#images", tmp_path / "x.npy", axes="0,2,3,1")
    assert np.array_equal(np.load(tmp_path / "x.npy"), IMAGES.transpose(0, 2, 3, 1))


def test_the_pickled_version_is_refused_with_the_way_to_the_other(tmp_path: Path) -> None:
    batch = {b"batch_label": b"one of 5", b"labels": [1], b"data": IMAGES[:1].reshape(1, -1)}
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(batch, protocol=2))
    (tmp_path / "train").write_bytes(pickle.dumps({b"filenames": [b"x"]}, protocol=2))
    for name in ("data_batch_1", "train"):
        with pytest.raises(Unsafe, match="cifar-10-binary.tar.gz"):
            raconvert.read(tmp_path / name)


def test_other_files_of_that_length_are_not_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(bytes([200]) * 3073)
    (tmp_path / "y.bin").write_bytes(bytes([1]) * 3073)
    for name in ("x.bin", "y.bin"):
        with pytest.raises(UnknownFormat):
            raconvert.read(tmp_path / name)
    assert raconvert.read(tmp_path / "y.bin", "images", from_="cifar").shape == (1, 3, 32, 32)
    (tmp_path / "z.cifar.bin").write_bytes(bytes(3072))
    with pytest.raises(Corrupt, match="CIFAR records"):
        raconvert.read(tmp_path / "z.cifar.bin")


def test_other_arrays_are_refused(tmp_path: Path) -> None:
    good = {"labels": TEN[0], "images": IMAGES}
    odd = {
        "names": {**good, "more": TEN[0]}, "type": {**good, "labels": TEN[0].astype("i8")},
        "shape": {**good, "images": IMAGES.transpose(0, 2, 3, 1)},
        "same N": {**good, "labels": TEN[0][1:]},
    }  # fmt: skip
    for what, arrays in odd.items():
        np.savez(tmp_path / "x.npz", **arrays)
        with pytest.raises(WouldLose, match=what):
            raconvert.convert(tmp_path / "x.npz", tmp_path / "x.cifar.bin")
    assert not (tmp_path / "x.cifar.bin").exists()


def test_fixtures() -> None:
    images = (np.arange(6144) * 5 % 256).reshape(2, 3, 32, 32)
    got = raconvert.read(FIXTURES / "ten.cifar.bin")
    assert got["labels"].tolist() == [7, 8]
    assert np.array_equal(got["images"], images)
    got = raconvert.read(FIXTURES / "hundred.cifar.bin")
    assert (got["coarse_labels"].tolist(), got["fine_labels"].tolist()) == ([19], [99])
    assert np.array_equal(got["images"], images[1:])
