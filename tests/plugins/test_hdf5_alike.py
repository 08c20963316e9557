"""Datasets whose headers say the same are what h5py says; what is odd about one of them is seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from cases import some
from raconvert.plugins import hdf5
from raconvert.plugins.hdf5 import reader, walk

from raconvert.errors import RaconvertError
from raconvert.files.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

VERSIONS = [("earliest", False), ("earliest", True), ("latest", False), ("latest", True)]
PLAIN = 40


def mixed(path: Path, libver: str, track: bool, block: int) -> Path:
    """Write many plain datasets of few kinds, and one of each that is not what it looks like."""
    with h5py.File(path, "w", libver=libver, track_order=track, userblock_size=block) as file:
        for n in range(PLAIN):
            file[f"f/{n}"] = np.arange(3.0) + n
            file[f"i/{n}"] = np.full((2, 5), n, ">i4")
            file[f"scalar/{n}"] = n
            file[f"complex/{n}"] = np.full(2, n + 1j)
        file.create_dataset("never written", (3,), "f8")
        file.create_dataset("filled", data=np.arange(3.0), fillvalue=7)
        file.create_dataset("growing", data=np.arange(3.0), maxshape=(None,))
        file.create_dataset("packed", data=np.arange(3.0), compression="gzip")
        file["described"] = np.arange(3.0)
        file["described"].attrs["units"] = "mm"
        file["bool"] = np.array([True, False, True])
        file["text"] = ["a", "longer", "c"]
        file["null"] = h5py.Empty("f8")
        file["again"] = file["f/3"]
        file["soft"] = h5py.SoftLink("/f/4")
    return path


def all_of(path: Path) -> Any:
    """All that is read from a file, or the error."""
    found = []
    try:
        bundle = hdf5.read(Source(str(path)))
    except RaconvertError as error:
        return str(error)
    with bundle:
        for array in bundle.arrays:
            extent = array.extent
            where = extent and (extent.path, extent.offset, extent.nbytes, extent.swap)
            try:
                values = array[...].tobytes()
            except RaconvertError as error:
                values = str(error)
            said = array.storage, array.meta.to_dict(), str(array.problem)
            found.append((array.name, array.element, array.dims, where, values, *said))
        return found, bundle.notes, bundle.aliases, bundle.groups, bundle.formats


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Any]:
    """What is read where the library is asked about every dataset."""

    def read(path: Path) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(reader, "_array_like", lambda *_: None)
            patch.setattr(walk.Headers, "known", lambda *_: None)
            return all_of(path)

    return read


@pytest.mark.parametrize("block", [0, 1024])
@pytest.mark.parametrize(("libver", "track"), VERSIONS)
def test_they_are_what_h5py_says(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    one_by_one: Callable[[Path], Any],
    libver: str,
    track: bool,
    block: int,
) -> None:
    path = mixed(tmp_path / "x.h5", libver, track, block)
    expected = one_by_one(path)
    asked = []
    real = reader._take_dataset
    monkeypatch.setattr(
        reader, "_take_dataset", lambda found, *rest: asked.append(found) or real(found, *rest)
    )
    assert all_of(path) == expected
    assert len(asked) < PLAIN  # of more than 4 times as many
    with hdf5.read(Source(str(path))) as bundle, h5py.File(path) as file:
        for array in bundle.arrays:
            values = file[array.name][()]
            if array.element.kind != "user":
                np.testing.assert_array_equal(array[...], values)
                assert (
                    array.extent is None or array.extent.offset == file[array.name].id.get_offset()
                )


@pytest.mark.parametrize(("libver", "track"), VERSIONS)
def test_each_byte_of_a_header_counts(
    tmp_path: Path, one_by_one: Callable[[Path], Any], libver: str, track: bool
) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver=libver, track_order=track) as file:
        for n in range(4):
            file[f"a{n}"] = np.arange(3.0) + n
        place = h5py.h5o.get_info(file["a2"].id).addr
    whole = path.read_bytes()
    for at in some(range(place, place + 288), 72, libver):
        path.write_bytes(whole[:at] + bytes((whole[at] ^ 1 << at % 8,)) + whole[at + 1 :])
        assert all_of(path) == one_by_one(path), at - place


def test_elements_behind_the_end_of_the_library(
    tmp_path: Path, one_by_one: Callable[[Path], Any]
) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        for n in range(4):
            file[f"a{n}"] = np.arange(3.0) + n
        place = file["a2"].id.get_offset()
    whole = path.read_bytes()
    assert whole.count(place.to_bytes(8, "little")) == 1
    for end in (len(whole) + 8, len(whole), len(whole) - 8, len(whole) + 100):
        moved = whole.replace(place.to_bytes(8, "little"), end.to_bytes(8, "little"))
        path.write_bytes(moved + bytes(64))
        assert all_of(path) == one_by_one(path)
