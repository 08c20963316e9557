"""dask arrays out of files, in chunks that follow them, and into files, block by block."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import dask
import dask.array
import h5py
import numpy as np
import pytest
import xarray
from PIL import Image

import raconvert
import raconvert.dask
from raconvert.errors import UsageError

VALUES = np.arange(600 * 40, dtype="i4").reshape(600, 40)


def write_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=VALUES, chunks=(50, 10), compression="gzip")


def write_zarr(path: Path) -> None:
    raconvert.write(path, {"x": VALUES}, out_opts={"chunks": "50,10"})


def write_fortran(path: Path) -> None:
    np.save(path, np.asfortranarray(VALUES))


def write_image(path: Path) -> None:
    Image.fromarray((VALUES % 251).astype("u1")).save(path)


FILES: dict[str, tuple[str, Any, tuple[int, int]]] = {  # what a chunk is a multiple of
    "hdf5": ("x.h5", write_hdf5, (50, 10)),
    "zarr": ("x.zarr", write_zarr, (50, 10)),
    "npy": ("x.npy", lambda path: np.save(path, VALUES), (1, 40)),
    "fortran": ("x.npy", write_fortran, (600, 1)),
    "ra": ("x.ra", lambda path: raconvert.write(path, VALUES), (1, 40)),
    "image": ("x.bmp", write_image, (1, 40)),
}


@pytest.mark.parametrize("name", FILES)
def test_chunks_follow_the_file(name: str, tmp_path: Path) -> None:
    file, write, unit = FILES[name]
    write(tmp_path / file)
    array = raconvert.dask.from_file(tmp_path / file, chunk_bytes=8000)
    expected = VALUES % 251 if name == "image" else VALUES
    assert (array.shape, array.dtype) == (expected.shape, raconvert.read(tmp_path / file)["x"].dtype
            if name in ("hdf5", "zarr") else raconvert.read(tmp_path / file).dtype)  # fmt: skip
    if name != "image":  # which may be decoded as a whole
        assert array.npartitions > 1
        for lengths, high in zip(array.chunks, unit, strict=True):
            assert all(length % high == 0 for length in lengths[:-1])
    with dask.config.set(scheduler="threads"):
        assert np.array_equal(array.compute(), expected)
        assert np.array_equal(array[7:90:3, ::-1].T.compute(), expected[7:90:3, ::-1].T)


def test_a_file_with_a_hash_in_its_name(tmp_path: Path) -> None:
    np.save(tmp_path / "x#1.npy", VALUES)
    array = raconvert.dask.from_file(tmp_path / "x#1.npy")
    assert np.array_equal(array.compute(), VALUES)


@pytest.mark.parametrize("name", ["hdf5", "zarr", "npy"])
def test_tasks_are_small_and_run_elsewhere(name: str, tmp_path: Path) -> None:
    file, write, _ = FILES[name]
    write(tmp_path / file)
    array = raconvert.dask.from_file(tmp_path / file, "x" if name != "npy" else None)
    state = pickle.dumps(dict(array.__dask_graph__()))
    assert len(state) < 8000, len(state)
    code = ("import pickle, sys, dask\n"
            "graph, keys = pickle.loads(sys.stdin.buffer.read())\n"
            "print(int(dask.get(graph, keys)[0][0].sum()))")  # fmt: skip
    sent = pickle.dumps((dict(array.__dask_graph__()), array.__dask_keys__()))
    done = subprocess.run(
        [sys.executable, "-c", code], input=sent, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == VALUES.sum()


@pytest.mark.parametrize("file", ["x.ra", "x.npy", "x.h5", "x.zarr", "x.mat", "x.nrrd"])
def test_a_dask_array_is_written_as_numpy_would(file: str, tmp_path: Path) -> None:
    values = np.arange(120, dtype="f8").reshape(4, 5, 6)
    lazy = dask.array.from_array(values, chunks=(3, 2, 4))
    for n, (a, b) in enumerate(
        [(lazy, values), (lazy.T + 1, values.T + 1), (lazy[1:, 2], values[1:, 2])]
    ):
        path = tmp_path / f"{n}{file}"
        raconvert.write(path, {"x": a} if file not in ("x.ra", "x.npy", "x.nrrd") else a)
        with raconvert.open(path) as opened:
            found = opened["x"] if hasattr(opened, "names") else opened
            assert np.array_equal(np.asarray(found), b)
    raconvert.write(tmp_path / "s.npy", dask.array.asarray(np.float64(2.5)))
    assert np.load(tmp_path / "s.npy") == 2.5


@pytest.mark.parametrize("file", ["x.ra", "x.npy", "x.zarr", "x.h5"])
def test_a_dask_array_is_never_held(file: str, tmp_path: Path) -> None:
    """64 MB in blocks of 1 MB, of which every one is computed once."""
    computed: list[Any] = []

    def block(block_info: Any = None) -> np.ndarray:
        place = block_info[None]["chunk-location"]
        computed.append(place)
        return np.full(block_info[None]["chunk-shape"], place[0] * 4 + place[1], "f4")

    lazy = dask.array.map_blocks(block, chunks=((256,) * 64, (256,) * 4), dtype="f4",
                                 meta=np.empty((0, 0), "f4"))  # fmt: skip
    tracemalloc.start()
    with dask.config.set(scheduler="synchronous"):
        raconvert.write(tmp_path / file, lazy)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 48 << 20, peak
    assert sorted(computed) == [(a, b) for a in range(64) for b in range(4)]
    with raconvert.open(tmp_path / file) as opened:
        array = next(iter(opened.values())) if hasattr(opened, "names") else opened
        assert array[300, 700] == 1 * 4 + 2
        assert array[-1, 0] == 63 * 4


@pytest.mark.parametrize("file", ["x.nc", "x.zarr", "a.ra"])
def test_labelled_dask_arrays_are_never_held(file: str, tmp_path: Path) -> None:
    """64 MB that a DataArray or a Dataset names, as they would be computed at once."""
    lazy = dask.array.ones((64 * 256, 1024), dtype="f4", chunks=(256, 1024)).cumsum(axis=1)
    values: Any = xarray.DataArray(
        lazy, dims=("y", "x"), coords={"x": np.arange(1024) * 0.5}, attrs={"units": "m"}, name="a"
    )
    tracemalloc.start()
    with dask.config.set(scheduler="synchronous"):
        raconvert.write(tmp_path / file, values if file == "a.ra" else values.to_dataset())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 48 << 20, peak
    with xarray.open_dataset(tmp_path / file, engine="raconvert") as found:
        part = next(iter(found.data_vars.values()))[[0, -1]]
        assert part.dims == ("y", "x")
        assert part.attrs["units"] == "m"
        assert part.x.values.tolist() == values.x.values.tolist()
        assert np.array_equal(part.values, [np.arange(1.0, 1025)] * 2)


def test_what_cannot_be_told_is_said(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=VALUES, b=VALUES)
    with pytest.raises(UsageError, match="a, b"):
        raconvert.dask.from_file(tmp_path / "x.npz")
    assert raconvert.dask.from_file(tmp_path / "x.npz", "b").sum().compute() == VALUES.sum()
    lazy = dask.array.from_array(np.arange(9), chunks=3)
    with pytest.raises(UsageError, match="compute_chunk_sizes"):
        raconvert.write(tmp_path / "x.ra", lazy[lazy > 3])
