"""`array[key]` is what NumPy gives for every key it takes, from every format and index order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import every

import raconvert
from raconvert import Array, UsageError

SHAPE = (4, 3, 5)
VALUES = np.arange(60, dtype="<f4").reshape(SHAPE)
# Named, since several formats are written in several ways.
FILES: dict[str, dict[str, Any]] = {
    "x.npy": {}, "f.npy": {}, "x.ra": {}, "x.mat": {}, "x.h5": {}, "gz.h5": {"compress": "gzip:1"},
    "x.zarr": {}, "v2.zarr": {"format": "2"}, "x.npz": {}, "x.nrrd": {}, "x.nii": {}, "x.mha": {}, "x.mrc": {},
    "x.parquet": {}, "x.arrow": {}, "x.xlsx": {},
    "x.rds": {"object": "list"}, "plain.rds": {"object": "list", "compress": "none"},
    "x.wds.tar": {}, "x.har": {}, "x.safetensors": {}, "x.tif": {}, "x.zip": {}, "x.scidb": {}, "x.cfl": {},
}  # fmt: skip
KEYS: list[Any] = [
    (), ..., 0, -1, np.int64(2), slice(None, None, -1), (..., None), (None, ...), (..., None, 0),
    (0, ..., None), (None, 0, None, 1), (slice(3, 0, -2), None, 1), None, (None, None),
    [0, 2], [2, 0, 2], [-1], [], (slice(None), [2, 0]), ([0, 1], [1, 2]), ([0, 1], slice(None), [4, 0]),
    ([[0], [1]], [0, 2]), (0, slice(None), [1, 2]), (0, [1, 2]), ([1, 2], 0), (..., [0, 3]),
    ([0, 3], ...), ([0, 3], ..., [1, 1]), ([1, 3], None, 1), (None, [1, 3]), True, False, (True, 0),
    (slice(None), True), np.array([True, False, True, True]), VALUES > 30, VALUES[:, :, 0] > 25,
    (1, VALUES[0] > 5), (slice(None), np.array([True, False, True])),
    (np.array([True, False, True, True]), slice(None), np.array([1, 0, 1, 1, 0], bool)),
    np.array([[0, 1], [3, 2]]), (slice(None, None, 2), [0, 2], slice(None, None, -1)),
    ([3, 3, 0], [2, 1, 0], [4, 0, 2]),
]  # fmt: skip
WRONG: list[Any] = [
    4, -5, (0, 0, 0, 0), (..., ...), [4], [[0, 1], [2]], [0.5], "name", 1.0, (slice(None), [3]),
    np.ones((4, 4), bool), [True, False], ([0, 1], [0, 1, 2]), slice(0, 1, 0), ([0], "a"),
]  # fmt: skip


@pytest.fixture(scope="module", params=FILES)
def array(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    name = request.param
    path = tmp_path_factory.mktemp("keys") / name
    values = np.asfortranarray(VALUES) if name.startswith("f") else VALUES
    values = values.astype("c8") if name.endswith("cfl") else values
    many = name.rpartition(".")[2] in (
        "mat",
        "h5",
        "zarr",
        "npz",
        "rds",
        "har",
        "safetensors",
        "zip",
        "tar",
        "scidb",
        "parquet",
        "arrow",
        "xlsx",
    )
    if name == "f.npy":
        np.save(path, values)
    else:
        raconvert.write(path, {"X": values} if many else values, out_opts=FILES[name] or None)
    with raconvert.open(path, "X" if many else None) as opened:
        assert opened.shape == SHAPE
        yield opened


def same(got: Any, wanted: Any) -> None:
    assert isinstance(got, np.ndarray)
    assert got.shape == np.asarray(wanted).shape
    assert np.array_equal(got, wanted)


@every("key", KEYS, ids=lambda key: repr(key).replace("\n", "")[:60])
def test_a_key_picks_what_numpy_picks(array: Array, key: Any) -> None:
    same(array[key], VALUES[key])


@every("key", WRONG, ids=lambda key: repr(key).replace("\n", "")[:60])
def test_a_key_that_numpy_refuses_is_refused_alike(array: Array, key: Any) -> None:
    with pytest.raises((IndexError, ValueError)) as caught:
        VALUES[key]
    with pytest.raises(caught.type):
        array[key]


def random_key(chance: random.Random, shape: tuple[int, ...]) -> Any:
    parts: list[Any] = []
    length = chance.choice([1, 2, 7])
    for size in shape[: chance.randrange(len(shape) + 1)]:
        kind = chance.randrange(6)
        ends = [chance.choice([None, *range(-size - 1, size + 2)]) for _ in range(2)]
        if kind == 0:
            parts.append(chance.randrange(-size, size))
        elif kind == 1:
            parts.append(slice(*ends, chance.choice([None, 1, 2, -1, -3])))
        elif kind == 2:
            parts.append([chance.randrange(-size, size) for _ in range(length)])
        elif kind == 3:
            parts.append(np.array([chance.random() < 0.5 for _ in range(size)]))
        elif kind == 4:
            parts.append(np.array([[chance.randrange(size)] for _ in range(length)]))
        else:
            parts.append(slice(None))
    for _ in range(chance.randrange(3)):
        parts.insert(chance.randrange(len(parts) + 1), None)
    if chance.random() < 0.5:
        parts.insert(chance.randrange(len(parts) + 1), ...)
    return tuple(parts) if chance.random() < 0.9 or len(parts) != 1 else parts[0]


def test_random_keys(array: Array) -> None:
    chance = random.Random(19)
    for _ in range(150):
        key = random_key(chance, SHAPE)
        try:
            wanted = VALUES[key]
        except (IndexError, ValueError) as error:
            with pytest.raises(type(error)):
                array[key]
            continue
        same(array[key], wanted)


@pytest.mark.parametrize("kind", ["structure", "text", "bytes", "0-d", "empty", "big-endian"])
def test_keys_of_other_elements(tmp_path: Path, kind: str) -> None:
    values = {
        "structure": np.array([(1, 2.5, b"a"), (3, 4.5, b"b"), (5, 6.5, b"c")], "i4,f8,S3"),
        "text": np.array([["é", "bc"], ["", "d"]]),
        "bytes": np.array([b"a", b"bc", b""]),
        "0-d": np.array(3.5),
        "empty": np.zeros((0, 3)),
        "big-endian": np.arange(12, dtype=">i2").reshape(3, 4),
    }[kind]
    np.save(tmp_path / "x.npy", values)
    with raconvert.open(tmp_path / "x.npy") as array:
        for key in ((), ..., None, (..., None), True, [0], [-1, 0], ([0, 0], ...)):
            try:
                wanted = values[key]
            except IndexError as error:
                with pytest.raises(type(error)):
                    array[key]
                continue
            same(array[key], wanted)
        if kind == "structure":
            same(array["f1"], values["f1"])
            assert array[["f0", "f2"]].tolist() == values[["f0", "f2"]].tolist()


def test_few_of_many_are_read_as_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In proportion to what is picked: rows far apart, and points of a large array."""
    from raconvert.arrays import regions

    values = np.arange(3000 * 1000, dtype="<i4").reshape(3000, 1000)
    np.save(tmp_path / "x.npy", values)
    read: list[int] = []
    whole = regions.read_region

    def counted(*arguments: Any) -> Any:
        found = whole(*arguments)
        read.append(found.nbytes)
        return found

    monkeypatch.setattr(regions, "read_region", counted)
    chance = random.Random(3)
    rows = chance.sample(range(3000), 64)
    columns = [chance.randrange(1000) for _ in rows]
    with raconvert.open(tmp_path / "x.npy") as array:
        same(array[rows], values[rows])
        assert sum(read) <= 64 * 4000 * 3
        read.clear()
        same(array[rows, columns], values[rows, columns])
        assert sum(read) <= 64 * 4 * 100
        read.clear()
        same(array[values == 1_234_567], values[values == 1_234_567])
        assert sum(read) <= 4000


class Items:
    """What a DataLoader asks for: a length, and a batch of indices at once."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __getitems__(self, indices: list[int]) -> np.ndarray:
        return self.array[indices]


def test_batches(array: Array) -> None:
    same(Items(array).__getitems__([3, 0, 3, 1]), VALUES[[3, 0, 3, 1]])


# Operators ----------------------------------------------------------------------------------------


def test_operators_are_those_of_numpy(array: Array) -> None:
    import operator as of

    two = of.add, of.sub, of.mul, of.eq, of.ne, of.lt, of.ge
    values = np.asarray(array)
    for function in two if values.dtype.kind == "f" else (of.add, of.eq, of.mul):
        same(function(array, 2), function(values, 2))
        same(function(2, array), function(2, values))
        same(function(array, array), function(values, values))
        same(function(values, array), function(values, values))
    same(-array, -values)
    same(abs(array), abs(values))
    assert 7 in array
    assert 1e9 not in array
    assert np.sum(array) == values.sum()


def test_truth_is_that_of_numpy(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "zero.ra", np.zeros(1))
    raconvert.write(tmp_path / "two.ra", np.zeros(2))
    with raconvert.open(tmp_path / "zero.ra") as zero, raconvert.open(tmp_path / "two.ra") as two:
        assert not zero
        assert (float(zero[0]), int(zero[0])) == (0.0, 0)
        with pytest.raises(ValueError, match="ambiguous"):
            bool(two)
        with pytest.raises(TypeError, match="unhashable"):
            hash(two)
        with pytest.raises(AttributeError, match=r"np\.asarray\(array\)\.mean"):
            two.mean()
        assert (two.device, two.to_device("cpu") is two) == ("cpu", True)
        with pytest.raises(ValueError, match="cpu"):
            two.to_device("cuda")


def test_a_bundle_is_no_array(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.zarr", {"a": np.zeros(2), "b": np.ones(2)})
    with raconvert.open(tmp_path / "x.zarr") as bundle:
        with pytest.raises(TypeError, match=r"2 arrays.*bundle\['a'\]"):
            np.asarray(bundle)
        with pytest.raises(TypeError, match="names, not int: 'a', 'b'"):
            bundle[0]
        array = bundle["a"]
    with pytest.raises(UsageError, match="'a' is closed"):
        array[0]
