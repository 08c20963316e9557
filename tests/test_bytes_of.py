"""Where the bytes of files are, on their pages: compared with what h5py says of each chunk."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
import pytest

from raconvert.conversion.options import Settings
from raconvert.conversion.read import open_spec
from raconvert.views.pages.bytes_of import FileMap, file_map_of
from raconvert.views.pages.drawings import BETWEEN, CODED, DATA, HEADER, Stretch

RNG = np.random.default_rng(3)


def found_in(path: Path) -> FileMap:
    """The places, which together are the whole file, each byte once."""
    size = path.stat().st_size
    with open_spec(str(path), Settings()) as opened:
        found = file_map_of(opened.bundle, size)
    at = 0
    for box in found.boxes:
        assert box.start == at
        at += box.nbytes
    assert at == size
    assert sum(row.nbytes for row in found.rows) == size
    return found


def chunks_of(path: Path, name: str) -> list[tuple[int, int]]:
    """First byte and length of each chunk, by h5py."""
    with h5py.File(path) as file:
        dataset = file[name].id
        infos = [dataset.get_chunk_info(n) for n in range(dataset.get_num_chunks())]
    return sorted((info.byte_offset, info.size) for info in infos)


@pytest.mark.parametrize(
    "options",
    [{"compression": "gzip", "shuffle": True}, {"compression": "lzf"}, {"fletcher32": True}, {}],
    ids=str,
)
def test_chunks_are_drawn_where_they_lie(tmp_path: Path, options: dict[str, object]) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["first"] = np.arange(100.0)
        values = RNG.normal(size=(40, 60))
        for name in ("a", "b"):  # their chunks in turns
            file.create_dataset(name, shape=(40, 60), chunks=(10, 30), dtype="f8", **options)
        for row in range(0, 40, 10):
            for name in ("a", "b"):
                file[name][row : row + 10] = values[row : row + 10]
    found = found_in(path)

    for name in ("a", "b"):
        boxes = [(box.start, box.nbytes) for box in found.boxes if box.name == name]
        assert boxes == chunks_of(path, name)
        (row,) = [row for row in found.rows if row.name == f"{name}, 8 chunks"]
        assert row.kind == CODED
        assert row.nbytes == sum(nbytes for _, nbytes in chunks_of(path, name))
        assert row.start == boxes[0][0]
    assert [box.nbytes for box in found.boxes if box.name == "first"] == [800]
    assert found.boxes[0].kind == HEADER


def test_many_chunks_are_few_boxes_and_the_widest_gaps_stay(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", shape=(20000,), chunks=(10,), dtype="f8", fletcher32=True)
        file["x"][:10000] = RNG.normal(size=10000)
        file["large"] = np.zeros(100_000)  # between the chunks
        file["x"][10000:] = RNG.normal(size=10000)
    found = found_in(path)

    assert 2 < len(found.boxes) < 700
    places = chunks_of(path, "x")
    gap = max(b[0] - a[0] - a[1] for a, b in pairwise(places))
    assert gap >= 800_000
    assert [box.nbytes for box in found.boxes if box.kind == DATA] == [800_000]
    inside = [box for box in found.boxes if box.kind == CODED]
    for start, nbytes in places:
        assert any(one.start <= start <= start + nbytes <= one.start + one.nbytes for one in inside)
    (row,) = [row for row in found.rows if row.name == "x, 2,000 chunks"]
    assert row.nbytes == sum(nbytes for _, nbytes in places)


def test_many_arrays_have_few_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        for number in range(120):
            file[f"{number:03}"] = RNG.normal(size=number + 1)
    found = found_in(path)

    assert len(found.rows) <= 40
    assert found.rows[-1].kind in (BETWEEN, DATA, "end")
    assert max(found.rows, key=lambda row: row.nbytes * (row.kind == DATA)).name == "119"


def test_bytes_of_several_arrays_are_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(900.0), chunks=(100,))
        file["same"] = file["x"]
    found_in(path)


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=np.arange(900))
    assert found_in(path).rows == [
        Stretch(0, path.stat().st_size, CODED, "the whole file, encoded")
    ]
