"""Structures of which a field is an array of arrays: NumPy and HDF5 have them; one array here."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from cases import every

import raconvert
import raconvert.ra
from raconvert.errors import Unsupported

if TYPE_CHECKING:
    from pathlib import Path

LEAVES = ["<i4", ">i2", "u1", ">f8", "<f2", "S3", "V3", "<c8", [("a", "<i2"), ("é", ">f4")]]


def nested(random: Random) -> Any:
    """A type with fields that are arrays of arrays, one to three deep."""
    fields: list[Any] = [("key", "u1")]
    for number in range(random.randint(1, 3)):
        spec: Any = random.choice(LEAVES)
        for _ in range(random.randint(1, 3)):
            spec = (spec, tuple(random.randint(1, 3) for _ in range(random.randint(1, 2))))
        fields.append((f"f{number}", *spec))
    return np.dtype(fields, align=random.random() < 0.3)


def same(got: Any, want: Any) -> bool:
    got, want = np.atleast_1d(got), np.atleast_1d(want)  # NumPy's scalars keep arrays of arrays
    if want.dtype.names:
        return all(same(got[name], want[name]) for name in want.dtype.names)
    want = np.ascontiguousarray(want)
    return got.shape == want.shape and got.astype(want.dtype).tobytes() == want.tobytes()


@every("seed", range(40))
def test_fields_of_arrays_of_arrays(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    dtype = nested(random)
    shape = random.choice([(), (3,), (2, 3)])
    count = int(np.prod(shape))
    raw = np.random.default_rng(seed).bytes(count * dtype.itemsize)
    values = np.frombuffer(raw, dtype).reshape(shape)
    if random.random() < 0.5 and len(shape) == 2:
        values = values[:, ::2]
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "x.npz", x=values)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=values, dtype=dtype)
    raconvert.ra.write(tmp_path / "fast.ra", values)
    written = (tmp_path / "fast.ra").read_bytes()[-values.nbytes :]
    assert same(np.frombuffer(written, dtype).reshape(values.shape), values)  # not the padding
    assert same(raconvert.read(tmp_path / "x.npy"), np.load(tmp_path / "x.npy"))
    with h5py.File(tmp_path / "x.h5") as file:
        assert same(raconvert.read(tmp_path / "x.h5", "x"), file["x"][()])
    for source in ("x.npy", "x.npz", "x.h5"):
        raconvert.convert(tmp_path / source, tmp_path / f"{source}.ra")
        assert same(raconvert.read(tmp_path / f"{source}.ra"), values), source
    for suffix in ("ra", "npy", "npz", "h5", "zip"):
        raconvert.write(tmp_path / f"y.{suffix}", values)
        got = raconvert.read(tmp_path / f"y.{suffix}")
        assert same(next(iter(got.values())) if isinstance(got, dict) else got, values), suffix
    with raconvert.open(tmp_path / "x.npy") as array:
        raconvert.write(tmp_path / "z.ra", array.replace(data=values))
    assert same(raconvert.read(tmp_path / "z.ra"), values)


def test_elements_of_arrays_of_arrays(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    text = repr({"descr": (("<f4", (2, 2)), (3,)), "fortran_order": False, "shape": (2,)})
    data = np.arange(24, dtype="<f4")
    head = text.ljust(117).encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + data.tobytes())
    assert np.array_equal(raconvert.read(path), data.reshape(2, 3, 2, 2))


def test_too_many_axes_are_refused(tmp_path: Path) -> None:
    spec: Any = "u1"
    for _ in range(40):
        spec = (spec, (1,))
    values = np.zeros(2, [("a", *spec)])
    np.save(tmp_path / "x.npy", values)
    with pytest.raises(Unsupported, match="array of arrays"):
        raconvert.read(tmp_path / "x.npy")
    with pytest.raises(Unsupported, match="array of arrays"):
        raconvert.write(tmp_path / "y.npy", values)
    assert not (tmp_path / "y.npy").exists()
