"""Bools of other bytes than 0 and 1: kept where any byte may stand, else refused, at any depth."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from cases import every

import raconvert
from raconvert.errors import Corrupt, WouldLose

if TYPE_CHECKING:
    from pathlib import Path

ODD_BOOLS = np.array([[0, 1, 2], [255, 1, 0]], "u1")


@pytest.mark.parametrize(
    "suffix", ["h5", "mat", "nrrd", "har", "png", "tif", "pbm", "bmp", "scidb"]
)
def test_bools_that_are_no_bools_are_refused_where_they_would_become_1(
    tmp_path: Path, suffix: str
) -> None:
    np.save(tmp_path / "odd.npy", ODD_BOOLS.view(bool))
    with pytest.raises(WouldLose, match=r"neither 0 nor 1, at index \[(0, 2|1, 0)\]; got (2|255)"):
        raconvert.convert(tmp_path / "odd.npy", tmp_path / f"odd.{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == ["odd.npy"]
    np.save(tmp_path / "fine.npy", ODD_BOOLS > 0)
    raconvert.convert(tmp_path / "fine.npy", tmp_path / f"fine.{suffix}", verify=True)


@pytest.mark.parametrize("suffix", ["npy", "npz", "ra", "ra.zip"])
def test_bytes_of_bools_are_kept_where_any_may_stand(tmp_path: Path, suffix: str) -> None:
    np.save(tmp_path / "odd.npy", ODD_BOOLS.view(bool))
    raconvert.convert(tmp_path / "odd.npy", tmp_path / f"to.{suffix}")
    raconvert.convert(tmp_path / f"to.{suffix}", tmp_path / "back.npy")
    assert np.load(tmp_path / "back.npy").tobytes() == ODD_BOOLS.tobytes()


def test_bools_cast_to_numbers_are_their_bytes(tmp_path: Path) -> None:
    np.save(tmp_path / "odd.npy", ODD_BOOLS.view(bool))
    raconvert.convert(tmp_path / "odd.npy", tmp_path / "to.npy", dtype="uint8")
    assert np.array_equal(np.load(tmp_path / "to.npy"), ODD_BOOLS)


# --- inside structures ----------------------------------------------------------------------------


def structure(chance: random.Random, depth: int = 0) -> tuple[np.dtype[Any], list[int]]:
    """A random structured type, and where in an element its bools are."""
    fields, bools, at = [], [], 0
    for number in range(chance.randint(1, 3)):
        shape = tuple(chance.randint(1, 3) for _ in range(chance.choice([0, 0, 1, 2])))
        kind: Any = chance.choice(["?", "?", "<i2", ">f4", "S3", "nested"])
        inside = [0] if kind == "?" else []
        if kind == "nested":
            kind, inside = structure(chance, depth + 1) if depth < 3 else ("u1", [])
        base = np.dtype(kind)
        count = int(np.prod(shape, dtype=int))
        bools += [at + n * base.itemsize + place for n in range(count) for place in inside]
        at += count * base.itemsize
        fields.append((f"f{number}", base, shape))
    return np.dtype(fields), bools


def structures(count: int) -> list[tuple[np.dtype[Any], list[int], int]]:
    found = [(*structure(random.Random(seed)), seed) for seed in range(3 * count)]
    return [case for case in found if case[1]][:count]


@every("dtype, bools, seed", structures(40))
@every("order", ["C", "F"])
def test_odd_bools_in_structures(
    tmp_path: Path, dtype: np.dtype[Any], bools: list[int], seed: int, order: str
) -> None:
    """HDF5 gets them only when each is 0 or 1; as bytes they are kept."""
    chance = random.Random(seed)
    raw = np.zeros((2, 3, dtype.itemsize), "u1")
    raw[..., bools] = 1
    fine = raw.copy().view(dtype).reshape(2, 3)
    row, column, place = chance.randrange(2), chance.randrange(3), chance.choice(bools)
    raw[row, column, place] = odd = chance.randint(2, 255)
    values = raw.view(dtype).reshape(2, 3)
    np.save(tmp_path / "fine.npy", np.asarray(fine, order=order))  # type: ignore[call-overload]
    np.save(tmp_path / "odd.npy", np.asarray(values, order=order))  # type: ignore[call-overload]
    before = sorted(path.name for path in tmp_path.iterdir())
    for options in ({}, {"out_opts": {"compress": "gzip"}}):
        with pytest.raises(WouldLose, match=rf"neither 0 nor 1, at index .*; got {odd}") as info:
            raconvert.convert(tmp_path / "odd.npy", tmp_path / "odd.h5", **options)
        assert f"index [{row}, {column}]" in str(info.value)
        assert ".npy, .npz and .ra keep it" in str(info.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    for suffix in ("npz", "ra", "zip", "nrrd"):
        raconvert.convert(tmp_path / "odd.npy", tmp_path / f"to.{suffix}")
        raconvert.convert(tmp_path / f"to.{suffix}", tmp_path / "back.npy", overwrite=True)
        assert np.load(tmp_path / "back.npy").tobytes() == raw.tobytes()
    raconvert.convert(tmp_path / "fine.npy", tmp_path / "fine.h5", verify=True)
    with h5py.File(tmp_path / "fine.h5") as file:
        assert file["fine"][...].tobytes() == fine.tobytes()


def test_odd_bools_in_an_array_of_structures_in_hdf5(tmp_path: Path) -> None:
    dtype = np.dtype([("inner", [("flag", "?"), ("n", "u1")], (2,))])
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = np.arange(12, dtype="u1").view(dtype)
    with pytest.raises(Corrupt, match='"bools": "integers"'):
        raconvert.read(tmp_path / "x.h5")
    read = raconvert.read(tmp_path / "x.h5", "x", in_opts={"bools": "integers"})
    assert read["inner"]["flag"].tolist() == [[0, 2], [4, 6], [8, 10]]
