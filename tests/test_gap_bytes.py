"""Bytes between the fields of a structure: those of the file, never what lay in memory.

NumPy copies structures field by field into memory that it does not clear, so that every copy of
one's own must be made of whole elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from cases import every

import raconvert

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHAPE = (60, 20)
LAYOUTS = {
    "gaps inside and behind": (["<f8", "<i2", "S3"], [0, 12, 20], 40),
    "a gap in front": ([">i4", "u1", "<c8"], [4, 9, 16], 24),
    "nested": ([np.dtype({"names": ["x"], "formats": ["<i2"], "itemsize": 6}), "<f4"], [2, 12], 20),
}
KEYS: dict[str, Any] = {
    "all": ...,
    "part": (slice(3, 50), slice(None, 7)),
    "steps": (slice(None, None, 3), slice(1, None, 2)),
    "backwards": (slice(None, None, -1), slice(None)),
    "row": 5,
    "element": (5, 6),
    "list": [1, 5, 9],
    "mask": np.arange(60) % 3 == 0,
}
WRITERS: dict[str, Callable[[Any, Any], None]] = {}


def writer(suffix: str) -> Any:
    """Return a decorator for what writes an array as array "x" of a file of this suffix."""

    def kept(function: Any) -> Any:
        WRITERS[suffix] = function
        return function

    return kept


@writer("contiguous.h5")
def contiguous(path: Path, values: Any) -> None:
    with h5py.File(path, "w") as file:
        write(file.create_dataset("x", values.shape, values.dtype), values)


@writer("chunked.h5")
def chunked(path: Path, values: Any) -> None:
    with h5py.File(path, "w") as file:
        write(file.create_dataset("x", values.shape, values.dtype, chunks=(7, 6)), values)


@writer("lzf.h5")
def lzf(path: Path, values: Any) -> None:
    """Write chunks that only the library decodes."""
    with h5py.File(path, "w") as file:
        options = {"chunks": (7, 6), "compression": "lzf"}
        write(file.create_dataset("x", values.shape, values.dtype, **options), values)


@writer("virtual.h5")
def virtual(path: Path, values: Any) -> None:
    with h5py.File(path.with_name("source.h5"), "w") as file:
        write(file.create_dataset("s", values.shape, values.dtype), values)
    layout = h5py.VirtualLayout(values.shape, values.dtype)
    layout[:] = h5py.VirtualSource("source.h5", "s", values.shape)
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("x", layout)


@writer("npy")
def npy(path: Path, values: Any) -> None:
    np.save(path, values)


@writer("npz")
def npz(path: Path, values: Any) -> None:
    np.savez_compressed(path, x=values)


@writer("ra")
def ra(path: Path, values: Any) -> None:
    raconvert.write(path, values)


def write(dataset: h5py.Dataset, values: Any) -> None:
    """Write with the bytes between the fields, which h5py's own way clears."""
    dataset.id.write(
        h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(values), dataset.id.get_type()
    )


def made(layout: str) -> Any:
    """Return an array whose gaps have bytes of their own."""
    formats, offsets, itemsize = LAYOUTS[layout]
    names = [f"f{number}" for number in range(len(formats))]
    dtype = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize})
    raw = np.random.default_rng(5).integers(1, 100, (*SHAPE, itemsize), np.uint8)
    return raw.view(dtype)[..., 0]


def raw(values: Any) -> Any:
    """Return the bytes of each element."""
    values = np.asarray(values)
    return values.view(f"V{values.dtype.itemsize}")


def fill_the_heap() -> None:
    """Leave memory full of a byte that no array has."""
    sizes = [64 << n for n in range(12) for _ in range(8)]
    held = [np.full(n, 0xEE, np.uint8) for n in [*sizes, *[60 * 20 * 40] * 30]]
    del held


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("suffix", WRITERS)
def test_gap_bytes_are_those_of_the_file(tmp_path: Path, suffix: str, layout: str) -> None:
    values = made(layout)
    path = tmp_path / f"a.{suffix}"
    WRITERS[suffix](path, values)
    whole = raw(values)
    with raconvert.open(path) as opened:
        array = opened["x"] if hasattr(opened, "keys") else opened
        for name, key in KEYS.items():
            fill_the_heap()
            try:
                got = array[key]
            except (IndexError, TypeError, raconvert.errors.RaconvertError):
                assert name in ("list", "mask")
                continue
            assert np.array_equal(raw(got), whole[key]), name
        for name, copy in {
            "array": lambda: np.array(array),
            "asarray": lambda: np.asarray(array),
            "copy": lambda: np.array(array, copy=True),
            "transposed": lambda: np.array(array.T).T,
        }.items():
            fill_the_heap()
            assert np.array_equal(raw(copy()), whole), name
        fill_the_heap()
        assert array.tobytes() == whole.tobytes()
        fill_the_heap()
        assert array.tobytes("F") == whole.tobytes("F")
    fill_the_heap()
    read = raconvert.read(path)
    assert np.array_equal(raw(read["x"] if isinstance(read, dict) else read), whole)


@every("layout", LAYOUTS)
@every("suffix", ["ra", "h5", "npy", "zarr"])
@every("way", ["whole", "apart", "turned", "fortran"])
def test_gap_bytes_are_written_as_they_are(
    tmp_path: Path, suffix: str, layout: str, way: str
) -> None:
    values = made(layout)
    values = {
        "whole": values, "apart": values[::2, 1::3], "turned": values.T,
        "fortran": np.asfortranarray(raw(values)).view(values.dtype),
    }[way]  # fmt: skip
    whole = raw(values)
    fill_the_heap()
    path = tmp_path / f"a.{suffix}"
    try:
        raconvert.write(path, values)
    except raconvert.errors.WouldLose:
        assert suffix == "zarr"
        return
    fill_the_heap()
    read = raconvert.read(path)
    read = next(iter(read.values())) if isinstance(read, dict) else read
    if read.shape != whole.shape:  # a bare .ra has no order of indices
        read = read.T
    assert np.array_equal(raw(read), whole)
