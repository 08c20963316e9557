"""bfloat16 with swapped bytes: right in every format that reads it, and in what is made of it."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import h5py
import numpy as np
import pytest
from cases import every

import raconvert
from raconvert.cli import main

pytest.importorskip("ml_dtypes")

# Each value is exact in bfloat16: the upper half of its float32.
VALUES = np.array([1, -2.5, 2.0**-133, np.inf, -0.0, 0, 1.0078125, 3 * 2.0**120], "<f4")
HALVES = (VALUES.view("<u4") >> 16).astype(">u2")


def ra(folder: Path) -> Path:
    path = folder / "x.ra"
    path.write_bytes(struct.pack("<8s6Q", b"rawarray", 1, 5, 2, 16, 1, 8) + HALVES.tobytes())
    return path


def raw(folder: Path) -> Path:
    path = folder / "x.bin"
    path.write_bytes(HALVES.tobytes())
    return path


def hdf5(folder: Path, *, chunked: bool = False) -> Path:
    path = folder / "x.h5"
    own = h5py.h5t.IEEE_F32BE.copy()
    own.set_fields(15, 7, 8, 0, 7)
    own.set_ebias(127)
    own.set_size(2)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chunked:
        plist.set_chunk((3,))
        plist.set_shuffle()
        plist.set_deflate(4)
    with h5py.File(path, "w") as file:
        made = h5py.h5d.create(file.id, b"x", own, h5py.h5s.create_simple((8,)), plist)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, HALVES.view("u1").copy(), own)
        assert np.array_equal(file["x"].astype("f4")[:], VALUES)  # as the library converts it
    return path


def hdf5_chunked(folder: Path) -> Path:
    return hdf5(folder, chunked=True)


def zarr(folder: Path) -> Path:
    path = folder / "x.zarr"
    (path / "c").mkdir(parents=True)
    codecs = [{"name": "bytes", "configuration": {"endian": "big"}}]
    grid = {"name": "regular", "configuration": {"chunk_shape": [8]}}
    document = {
        "zarr_format": 3, "node_type": "array", "shape": [8], "data_type": "bfloat16",
        "chunk_grid": grid, "chunk_key_encoding": {"name": "default"}, "fill_value": 1.0,
        "codecs": codecs, "attributes": {},
    }  # fmt: skip
    (path / "zarr.json").write_text(json.dumps(document))
    (path / "c" / "0").write_bytes(HALVES.tobytes())
    return path


MAKERS = {one.__name__: one for one in (ra, raw, hdf5, hdf5_chunked, zarr)}
OPTIONS = {"raw": ["--from", "raw", "--in-opt", "dtype=>bfloat16"]}


@every("maker", MAKERS)
@every("target", ["y.ra", "y.h5", "y.zarr", "y.safetensors", "y.zip", "y.mat", "y.npy"])
def test_the_values_arrive(tmp_path: Path, maker: str, target: str) -> None:
    path = MAKERS[maker](tmp_path)
    cast = ["--dtype", "float32"] if target == "y.npy" else []
    made = tmp_path / target
    assert main([str(path), *OPTIONS.get(maker, []), *cast, "-o", str(made)]) == 0
    if target == "y.npy":
        assert np.load(made).tobytes() == VALUES.tobytes()
    with raconvert.open(made) as opened:
        array = opened if hasattr(opened, "dtype") else next(iter(opened.values()))
        assert array.dtype.name == {"y.npy": "float32", "y.mat": "float64"}.get(target, "bfloat16")
        row = (0,) * (array.ndim - 1)  # in MATLAB it is one of a matrix
        for key in (slice(None), slice(1, 4), slice(None, None, -2), [5, 0]):
            found = np.asarray(array[(*row, key)]).astype("f4")
            assert found.tobytes() == VALUES[key].tobytes()
        assert np.asarray(array[...]).astype("f4").tobytes() == VALUES.tobytes()


@pytest.mark.parametrize("word", [">bfloat16", "<bfloat16", "=bfloat16", "bfloat16"])
def test_plain_bytes_have_the_order_that_is_named(tmp_path: Path, word: str) -> None:
    order = ">" if word[0] == ">" else "<"
    path = tmp_path / "x.bin"
    path.write_bytes(HALVES.astype(f"{order}u2").tobytes())
    found = raconvert.read(path, from_="raw", in_opts={"dtype": word})
    assert found.astype("f4").tobytes() == VALUES.tobytes()
