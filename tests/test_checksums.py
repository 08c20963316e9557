"""Checksums that an archive holds are compared while its bytes pass: no damage goes on in silence."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import raconvert
from raconvert.conversion.read import open_bundle
from raconvert.errors import Corrupt, RaconvertError, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

ARRAYS = {
    "a": np.arange(600, dtype="<f8").reshape(20, 30),
    "big": np.arange(500, dtype=">i4").reshape(5, 100),
    "empty": np.zeros((0, 4), "<f4"),
    "text": np.array(["x", "yz"]),
}
METHODS = {
    "stored": zipfile.ZIP_STORED,
    "deflated": zipfile.ZIP_DEFLATED,
    "bzip2": zipfile.ZIP_BZIP2,
    "lzma": zipfile.ZIP_LZMA,
}
FLIPS = 400


def npz(path: Path, arrays: dict[str, np.ndarray], method: int) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, values in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, values)
            archive.writestr(f"{name}.npy", buffer.getvalue())
        archive.writestr("README.txt", "no array")
    return path


def damages(data: bytes) -> Iterator[bytes]:
    """Yield the bytes with one bit flipped, in places of which every run has the same."""
    rng = random.Random(9)
    for bit in rng.sample(range(8 * len(data)), FLIPS):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        yield bytes(damaged)


def facts(path: Path) -> dict[str, Any]:
    with open_bundle(path) as bundle:
        return {
            array.name: (array.dtype, array.shape, raconvert.read(path, array.name).tobytes(),
                         array.meta.to_dict(), array.index_order)
            for array in bundle.arrays
        }  # fmt: skip


def survivors(path: Path, read: Any) -> list[Any]:
    """Return what is read from damaged copies of a file that are not refused."""
    found = []
    for number, data in enumerate(damages(path.read_bytes())):
        damaged = path.parent / f"{number}{path.suffix}"
        damaged.write_bytes(data)
        try:
            found.append(read(damaged))
        except RaconvertError as error:
            assert damaged.name in str(error)  # noqa: PT017 - others are no error
        damaged.unlink()
    return found


@pytest.mark.parametrize("method", METHODS)
def test_npz(method: str, tmp_path: Path) -> None:
    """Refused, or all that was there: nothing is left out because it is damaged."""
    path = npz(tmp_path / "x.npz", ARRAYS, METHODS[method])
    expected = facts(path)
    assert set(expected) == set(ARRAYS)
    for name, values in ARRAYS.items():
        assert np.array_equal(raconvert.read(path, name), values)
    found = survivors(path, facts)
    assert len(found) < FLIPS // 2  # dates, modes and the like have no checksum
    assert all(one == expected for one in found)


def converted(path: Path) -> dict[str, Any]:
    out = path.with_suffix(".out.npz")
    raconvert.convert(path, out, overwrite=True)
    with np.load(out) as loaded:
        return {name: loaded[name].tobytes() for name in loaded.files}


@pytest.mark.parametrize("to", ["zip", "npz"])
def test_conversions(to: str, tmp_path: Path) -> None:
    npz(tmp_path / "x.npz", ARRAYS, zipfile.ZIP_STORED)
    path = tmp_path / f"y.{to}"
    raconvert.convert(tmp_path / "x.npz", path)
    expected = converted(path)
    assert all(one == expected for one in survivors(path, converted))


def test_a_bundle(tmp_path: Path) -> None:
    npz(tmp_path / "x.npz", ARRAYS, zipfile.ZIP_STORED)
    raconvert.convert(tmp_path / "x.npz", tmp_path / "x.zip")
    expected = facts(tmp_path / "x.zip")
    found = survivors(tmp_path / "x.zip", facts)
    assert all(one == expected for one in found)


@pytest.mark.parametrize("options", [{}, {"axes": "1,0"}, {"dtype": "float32"}], ids=str)
@pytest.mark.parametrize("to", ["x.ra", "x.npy", "x.h5", "x.nrrd", "x.mat"])
def test_data_of_a_bundle_by_every_way(options: dict[str, Any], to: str, tmp_path: Path) -> None:
    """File to file, by blocks, transposed: also the first and the last byte of the data."""
    np.save(tmp_path / "a.npy", ARRAYS["a"])
    raconvert.convert(tmp_path / "a.npy", tmp_path / "x.zip")
    data = (tmp_path / "x.zip").read_bytes()
    begin = data.index(ARRAYS["a"].tobytes())
    for place in (begin, begin + 2401, begin + 4799):
        damaged = bytearray(data)
        damaged[place] ^= 1
        (tmp_path / "y.zip").write_bytes(damaged)
        with pytest.raises(Corrupt, match=r"data is damaged, at member 'a\.ra'"):
            raconvert.convert(tmp_path / "y.zip", tmp_path / to, **options)
        assert not (tmp_path / to).exists()


@pytest.mark.parametrize("encoding", ["lz4", "leb128"])
def test_encoded_members(encoding: str, tmp_path: Path) -> None:
    raconvert.write(tmp_path / "e.ra", ARRAYS["a"].astype("<i8"), out_opts={"encoding": encoding})
    content = (tmp_path / "e.ra").read_bytes()
    text = b"raconvert_bundle: 1\narrays:\n- {name: e, file: e.ra}\n...\n"
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("bundle.yaml", text)
        archive.writestr("e.ra", content)
    assert np.array_equal(raconvert.read(tmp_path / "x.zip", "e"), ARRAYS["a"].astype("<i8"))
    data = bytearray((tmp_path / "x.zip").read_bytes())
    data[data.index(content) + len(content) - 1] ^= 1
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(Corrupt, match="data is damaged"):
        raconvert.convert(tmp_path / "x.zip", tmp_path / "y.npz")


@pytest.mark.parametrize("place", [0, 1, 5, 7, 40])
def test_a_damaged_member_is_not_left_out(place: int, tmp_path: Path) -> None:
    path = npz(tmp_path / "x.npz", ARRAYS, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[data.index(b"\x93NUMPY", 1000) + place] ^= 4
    path.write_bytes(data)
    with pytest.raises(RaconvertError, match="damaged|big"):
        raconvert.convert(path, tmp_path / "out.h5")


def test_lzma_dictionaries_are_bounded(tmp_path: Path) -> None:
    path = npz(tmp_path / "x.npz", {"a": np.zeros(100_000)}, zipfile.ZIP_LZMA)
    data = bytearray(path.read_bytes())
    head = data.index(bytes([5, 0, 0x5D]))
    data[head + 3 : head + 7] = b"\xff\xff\xff\xff"  # a dictionary of 4 GiB: as large as the data
    path.write_bytes(data)
    assert not raconvert.read(path, "a").any()
    with pytest.raises(TooLarge, match="--max-memory"):
        raconvert.read(path, "a", max_memory=500_000)
