"""Arrays that a small file declares and no memory holds: our error, before anything is allocated."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest

import raconvert
from raconvert.arrays import memory
from raconvert.arrays.memory import machine_memory
from raconvert.errors import RaconvertError, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable

HUGE = 1 << 43  # bytes


def hdf5(path: Path, **options: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (HUGE // 8,), "f8", **options)
    return path


def chunked(folder: Path) -> Path:
    return hdf5(folder / "x.h5", chunks=(1 << 16,))


def contiguous(folder: Path) -> Path:
    return hdf5(folder / "x.h5")


def deflated(folder: Path) -> Path:
    return hdf5(folder / "x.h5", chunks=(1 << 16,), compression=1)


def mat73(folder: Path) -> Path:
    path = folder / "x.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        x = file.create_dataset("x", (HUGE // 8, 1), "f8", chunks=(1 << 16, 1))
        x.attrs["MATLAB_class"] = np.bytes_("double")
    head = b"MATLAB 7.3 MAT-file".ljust(116) + bytes(8) + b"\0\2IM"
    path.write_bytes(head + path.read_bytes()[128:])
    return path


def nrrd(folder: Path) -> Path:
    head = f"NRRD0004\ntype: double\ndimension: 1\nsizes: {HUGE // 8}\nencoding: gzip\n"
    head += "endian: little\n\n"
    (folder / "x.nrrd").write_bytes(head.encode() + gzip.compress(bytes(1000)))
    return folder / "x.nrrd"


def npz(folder: Path) -> Path:
    member = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (HUGE // 8,)}
    np.lib.format.write_array_header_1_0(member, shape)
    with zipfile.ZipFile(folder / "x.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.npy", member.getvalue() + bytes(1000))
    return folder / "x.npz"


def npy(folder: Path) -> Path:
    with open(folder / "x.npy", "wb") as file:
        shape = {"descr": "<f8", "fortran_order": False, "shape": (HUGE // 8,)}
        np.lib.format.write_array_header_1_0(file, shape)
    return folder / "x.npy"


FILES: list[Callable[[Path], Path]] = [chunked, contiguous, deflated, mat73, nrrd, npz, npy]
WAYS: dict[str, Callable[[Path], Any]] = {
    "read": raconvert.read,
    "asarray": lambda path: np.asarray(only(path)),
    "region": lambda path: only(path)[...],
    "all the memory": lambda path: only(path, max_memory=1 << 62)[...],
    "a copy": lambda path: np.array(only(path, max_memory=1 << 62)),
}


def only(path: Path, **options: Any) -> Any:
    opened = raconvert.open(path, **options)
    return opened if not hasattr(opened, "only") else opened.only()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", FILES)
def test_what_no_memory_holds(make: Callable[[Path], Path], way: str, tmp_path: Path) -> None:
    path = make(tmp_path)
    with pytest.raises(RaconvertError):
        WAYS[way](path)


@pytest.mark.parametrize("make", [chunked, contiguous, deflated])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_declared_and_stored_is_named(
    make: Callable[[Path], Path], way: str, tmp_path: Path
) -> None:
    path = make(tmp_path)
    with pytest.raises(TooLarge) as caught:
        WAYS[way](path)
    assert str(HUGE) in str(caught.value)
    assert "stores 0" in str(caught.value) or "0 bytes stored" in str(caught.value)


def test_a_part_can_be_read_all_the_same(tmp_path: Path) -> None:
    assert only(chunked(tmp_path), max_memory=1 << 62)[5:8].tolist() == [0, 0, 0]


def test_all_arrays_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "machine_memory", lambda: 1000)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"] = file["b"] = np.zeros(100, "u1")
        for n in range(10):
            file[f"x{n}"] = np.zeros(100, "u1")
    with pytest.raises(TooLarge, match="1200 bytes.*the memory of this machine"):
        raconvert.read(tmp_path / "x.h5")
    assert raconvert.read(tmp_path / "x.h5", "x3").size == 100  # type: ignore[union-attr]


def test_a_system_that_gives_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any) -> None:
        raise MemoryError

    np.save(tmp_path / "x.npy", np.zeros(10))
    with raconvert.open(tmp_path / "x.npy") as array:
        monkeypatch.setattr(type(array), "_region", nothing)
        monkeypatch.setattr(type(array), "_whole", nothing)
        for way in (np.asarray, lambda a: a[...]):
            with pytest.raises(TooLarge, match="80 bytes, more than the system gives"):
                way(array)
    monkeypatch.setattr(np, "empty", nothing)
    with pytest.raises(TooLarge, match="80 bytes, more than the system gives"):
        raconvert.read(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("text", "expected"), [("4096\n", 4096), ("max\n", None), ("", None), (None, None)]
)
def test_the_memory_of_a_container(
    text: str | None, expected: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        (tmp_path / "limit").write_text(text)
    monkeypatch.setattr(memory, "CGROUP_LIMIT", str(tmp_path / "limit"))
    found = machine_memory.__wrapped__()
    assert found == expected if expected else found > 1 << 28
