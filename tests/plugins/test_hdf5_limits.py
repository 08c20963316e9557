"""Work and memory in proportion to the file: links, names, notes, attributes, fill values, chunks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from raconvert.plugins import hdf5
from raconvert.plugins.hdf5 import attributes, header, walk
from raconvert.plugins.hdf5 import values as hdf5_values
from raconvert.plugins.hdf5.reader import MAX_NOTES

from raconvert.arrays.blocks import as_ndarray
from raconvert.errors import TooLarge
from raconvert.files.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable


def read(path: Path, **options: Any) -> Any:
    return hdf5.read(Source(str(path), **options))


def chain(path: Path, count: int) -> Path:
    """Write links of which each leads to the next one, the last of them to a dataset."""
    with h5py.File(path, "w") as file:
        file["x"] = 1
        for n in range(count):
            file[f"l{n}"] = h5py.SoftLink(f"/l{n + 1}" if n < count - 1 else "/x")
    return path


def lookups(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often the library is asked for a link."""
    counted = 0
    real = walk.link_of

    def counting(*parts: Any) -> Any:
        nonlocal counted
        counted += 1
        return real(*parts)

    monkeypatch.setattr(walk, "link_of", counting)
    read(path).close()
    monkeypatch.setattr(walk, "link_of", real)
    return counted


def test_chains_of_links_take_work_in_proportion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = lookups(chain(tmp_path / "x.h5", 200), monkeypatch)
    large = lookups(chain(tmp_path / "y.h5", 400), monkeypatch)
    assert small <= 2 * 200
    assert large <= 2.5 * small


def test_chains_of_links(tmp_path: Path) -> None:
    with read(chain(tmp_path / "x.h5", 60)) as bundle:
        names = [f"l{n}" for n in range(59 - walk.MAX_STEPS, 60)]  # itself, and those on its way
        assert sorted(bundle.aliases) == sorted(names)
        assert any("'l0' was left out: links lead in a circle" in note for note in bundle.notes)


def test_the_links_of_the_review(corpus: Callable[..., Path]) -> None:
    with read(corpus("review", "attack", "soft2000.h5")) as bundle:
        assert bundle.names == ["x"]
        assert len(bundle.notes) == MAX_NOTES + 1
        assert "more notes" in bundle.notes[-1]


def test_long_ways_of_many_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = 1
        file["a"] = h5py.SoftLink("./" * 1000 + "x")
        for n in range(50):
            file[f"l{n}"] = h5py.SoftLink("/a")
    with read(tmp_path / "x.h5") as bundle:
        assert len(bundle.aliases) == 51
    monkeypatch.setattr(walk, "MAX_PARTS", 10_000)
    with read(tmp_path / "x.h5") as bundle:
        assert len(bundle.aliases) == 9
        assert any("more than 10000 names" in note for note in bundle.notes)


@pytest.mark.parametrize(
    ("limit", "most", "words"),
    [
        ("MAX_OBJECTS", 5, "more than 5 objects"),
        ("MAX_LINKS", 5, "more than 5 links"),
        ("MAX_NAMES", 50, "more than 50 characters"),
    ],
)
def test_totals_of_a_file(
    limit: str, most: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for n in range(8):
            file[f"some name {n}"] = n
            file[f"link {n}"] = h5py.SoftLink("/some name 0")
    with read(tmp_path / "x.h5") as bundle:
        assert len(bundle) == 8
    monkeypatch.setattr(walk, limit, most)
    with pytest.raises(TooLarge, match=words):
        read(tmp_path / "x.h5")


# --- fill values ----------------------------------------------------------------------------------


def unwritten(path: Path, count: int, **options: Any) -> Path:
    with h5py.File(path, "w") as file:
        for n in range(count):
            file.create_dataset(f"x{n}", (1 << 20,), "u1", fillvalue=7, **options)
    return path


def test_fill_values_have_a_total(tmp_path: Path) -> None:
    path = unwritten(tmp_path / "x.h5", 4, chunks=(1024,))
    with read(path, max_memory=3 << 20) as bundle:
        for name in ("x3", "x0", "x3", "x1"):  # each counts once
            assert np.unique(as_ndarray(bundle[name])).tolist() == [7]
        with pytest.raises(TooLarge, match="1048576 bytes .* after 3145728 in other datasets"):
            as_ndarray(bundle["x2"])
        assert bundle["x2"].data[:3].tolist() == [7, 7, 7]
        assert as_ndarray(bundle["x0"]).size == 1 << 20
    with read(path, max_memory=4 << 20) as bundle:
        assert all(as_ndarray(array).size == 1 << 20 for array in bundle.arrays)


def test_written_data_is_no_fill_value(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for n in range(4):
            file.create_dataset(f"x{n}", data=np.zeros(1 << 20, "u1"), chunks=True, compression=1)
    with read(tmp_path / "x.h5", max_memory=2 << 20) as bundle:
        assert all(as_ndarray(array).size == 1 << 20 for array in bundle.arrays)


def test_empty_chunks_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only chunks that are there are visited, however many the dataset is cut into."""
    from raconvert.plugins.hdf5.chunks import Chunks

    visited = []
    real = Chunks._place
    monkeypatch.setattr(
        Chunks, "_place", lambda self, *parts: (visited.append(parts), real(self, *parts))
    )
    with h5py.File(tmp_path / "x.h5", "w") as file:
        x = file.create_dataset("x", (1 << 22,), "u1", chunks=(2,), fillvalue=7)
        x[5] = 1
        x[4_000_000] = 2
    with read(tmp_path / "x.h5") as bundle:
        found = as_ndarray(bundle["x"])
    assert (found[5], found[4_000_000]) == (1, 2)
    assert np.count_nonzero(found == 7) == (1 << 22) - 2
    assert len(visited) == 2


def test_chunks_without_number_for_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unwritten(tmp_path / "x.h5", 1, chunks=(2,), compression="lzf")
    with read(path) as bundle:
        assert as_ndarray(bundle["x0"]).size == 1 << 20
    monkeypatch.setattr(hdf5_values, "LARGEST_GRID", 1000)
    with read(path) as bundle, pytest.raises(TooLarge, match="524288 chunks"):
        as_ndarray(bundle["x0"])


def test_the_fill_values_of_the_review(corpus: Callable[..., Path]) -> None:
    with read(corpus("review", "attack", "fillmany.h5"), max_memory=1 << 30) as bundle:
        assert len(bundle) == 200
        assert bundle["x7"].data[5:8].tolist() == [1.5, 1.5, 1.5]
        bundle["x7"].data.unwritten = 1 << 30
        next(bundle["x7"].data.stream(1 << 20))
        with pytest.raises(TooLarge, match="in other datasets"):
            next(bundle["x8"].data.stream(1 << 20))


# --- attributes -----------------------------------------------------------------------------------


def texts(path: Path, count: int) -> Path:
    with h5py.File(path, "w", libver="latest") as file:
        x = file.create_dataset("x", data=[1])
        for n in range(count):
            x.attrs[f"a{n}"] = f"text {n}"
    return path


def bytes_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    total = 0
    real = Source.read_at

    def counting(self: Source, *parts: Any, **options: Any) -> Any:
        nonlocal total
        found = real(self, *parts, **options)
        total += len(found)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Source, "read_at", counting)
        with read(path) as bundle:
            assert len(bundle["x"].meta.attributes) > 100
    return total


def test_attributes_take_work_in_proportion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = bytes_read(texts(tmp_path / "x.h5", 300), monkeypatch)
    large = bytes_read(texts(tmp_path / "y.h5", 600), monkeypatch)
    assert large <= 2.5 * small


def test_attributes_of_many_objects_take_work_in_proportion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same name again and again, which every object of the file may have."""

    def made(path: Path, count: int) -> Path:
        with h5py.File(path, "w", libver="latest") as file:
            for n in range(count):
                x = file.create_dataset("x" if n == 0 else f"x{n}", data=[1])
                for m in range(101 if n == 0 else 9):
                    x.attrs[f"a{m}"] = f"text {n}"
        return path

    small = bytes_read(made(tmp_path / "x.h5", 40), monkeypatch)
    large = bytes_read(made(tmp_path / "y.h5", 80), monkeypatch)
    assert large <= 2.5 * small


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_attributes_have_a_total(
    libver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with h5py.File(tmp_path / "x.h5", "w", libver=(libver, "latest")) as file:
        x = file.create_dataset("x", data=[1, 2])
        for n in range(30):
            x.attrs[f"a{n:02}"] = np.arange(500.0)
        x.attrs["text"] = "t" * 1000
    with read(tmp_path / "x.h5") as bundle:
        assert len(bundle["x"].meta.attributes) == 31
    monkeypatch.setattr(attributes, "MAX_ATTRIBUTES_BYTES", 10 * (512 + 40 * 500))
    with read(tmp_path / "x.h5") as bundle:
        assert list(bundle["x"].meta.attributes) == [f"a{n:02}" for n in range(10)]
        assert sum("the attributes of the file need more" in note for note in bundle.notes) == 21
        assert as_ndarray(bundle["x"]).tolist() == [1, 2]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_one_text_many_times_has_a_total(
    libver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """References of 16 bytes can lead to the same text; each counts what it leads to."""
    with h5py.File(tmp_path / "x.h5", "w", libver=(libver, "latest")) as file:
        x = file.create_dataset("x", data=[1, 2])
        for n in range(10):
            x.attrs[f"a{n}"] = np.array(["t" * 1000] * 20, object)
    monkeypatch.setattr(attributes, "MAX_ATTRIBUTES_BYTES", 150_000)
    with read(tmp_path / "x.h5") as bundle:
        assert 0 < len(bundle["x"].meta.attributes) < 10
        assert any("the attributes of the file need more" in note for note in bundle.notes)


def test_dense_attributes_have_a_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = texts(tmp_path / "x.h5", 50)
    monkeypatch.setattr(header, "MAX_DENSE", 20)
    with read(path) as bundle:
        assert any("more than 20 attributes" in note for note in bundle.notes)
        assert bundle["x"].meta.attributes == {}
