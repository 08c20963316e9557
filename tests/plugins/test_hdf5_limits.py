"""Work and memory in proportion to the file: links, names, notes, attributes, fill values, chunks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import h5py
import numpy as np
import pytest
import shapes
from h5py import h5t
from raconvert.plugins import hdf5
from raconvert.plugins.hdf5 import values as hdf5_values
from raconvert.plugins.hdf5 import walk
from raconvert.plugins.hdf5.ondisk import btrees
from raconvert.plugins.hdf5.reader import MAX_NOTES

from raconvert.arrays.blocks import as_ndarray
from raconvert.errors import Corrupt, RaconvertError, TooLarge
from raconvert.files.limits import DEFAULT, Limits
from raconvert.files.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

PLACE = "raconvert.files.limits.DEFAULT"  # of what each source has


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
        names = [
            f"l{n}" for n in range(59 - DEFAULT.path_links, 60)
        ]  # itself, and those on its way
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
    monkeypatch.setattr(PLACE, Limits(link_steps=10_000))
    with read(tmp_path / "x.h5") as bundle:
        assert len(bundle.aliases) == 9
        assert any("more than 10000 names" in note for note in bundle.notes)


@pytest.mark.parametrize(
    ("limit", "most", "words"),
    [
        ("nodes", 5, "more than 5 objects"),
        ("links", 5, "more than 5 links"),
        ("path_characters", 50, "more than 50 characters"),
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
    monkeypatch.setattr(PLACE, Limits(**{limit: most}))
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
    real = Chunks._copy
    monkeypatch.setattr(
        Chunks, "_copy", lambda self, *parts: (visited.append(parts), real(self, *parts))
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
    monkeypatch.setattr(PLACE, DEFAULT._replace(unstored_chunks=1000))
    with read(path) as bundle, pytest.raises(TooLarge, match="524288 chunks"):
        as_ndarray(bundle["x0"])


# Not ru_maxrss, which may begin at the parent's.
PEAK = """
import sys
import raconvert
raconvert.convert(sys.argv[1], sys.argv[2])
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) >> 10)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_the_library_gets_few_chunks_at_a_time(tmp_path: Path) -> None:
    """It would keep 3.2 GB for the 524,288 chunks of this megabyte."""
    path = unwritten(tmp_path / "x.h5", 1, chunks=(2,), compression="lzf")
    done = subprocess.run(
        [sys.executable, "-c", PEAK, path, tmp_path / "x.npy"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert np.load(tmp_path / "x.npy").tobytes() == bytes([7]) * (1 << 20)
    assert int(done.stdout) < 200


def test_boxes_read_in_parts_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    for case in range(150):
        rank = int(rng.integers(1, 5))
        shape, chunk = rng.integers(1, 9, rank), rng.integers(1, 5, rank)
        values = rng.integers(0, 255, shape, "u1")
        monkeypatch.setattr(hdf5_values, "CHUNKS_AT_ONCE", int(rng.integers(1, 12)))
        with h5py.File(tmp_path / f"{case}.h5", "w") as file:
            dataset = file.create_dataset("x", data=values, chunks=tuple(np.minimum(chunk, shape)))
            start = tuple(map(int, rng.integers(0, shape)))
            step = tuple(map(int, rng.integers(1, 4, rank)))
            picked = values[tuple(slice(a, None, by) for a, by in zip(start, step, strict=True))]
            got = np.full(picked.shape, 255, "u1")
            hdf5_values.read_box(dataset.id, start, got.shape, got, h5t.NATIVE_UINT8, step)
        assert np.array_equal(got, picked), (shape, chunk, start, step)


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
    monkeypatch.setattr(PLACE, Limits(attribute_bytes=10 * (512 + 40 * 500)))
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
    monkeypatch.setattr(PLACE, Limits(attribute_bytes=150_000))
    with read(tmp_path / "x.h5") as bundle:
        assert 0 < len(bundle["x"].meta.attributes) < 10
        assert any("the attributes of the file need more" in note for note in bundle.notes)


def test_many_datasets_are_not_kept_open_while_they_are_written(tmp_path: Path) -> None:
    """Each of 5,000 open ones takes 13 KB in the library."""
    code = (
        "import resource, sys, numpy as np, raconvert\n"
        "arrays = {f'd{n}': np.zeros(2, 'u1') for n in range(int(sys.argv[2]))}\n"
        "raconvert.write(sys.argv[1], arrays)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    peaks = [
        int(
            subprocess.run(
                [sys.executable, "-c", code, tmp_path / f"{count}.h5", str(count)],
                capture_output=True, text=True, check=True,
            ).stdout
        )
        for count in (100, 5100)
    ]  # fmt: skip
    assert (peaks[1] - peaks[0]) / 5000 < 10  # KB each; 17 where they are kept open


# --- the walk at its limits -----------------------------------------------------------------------


def three_names(file: h5py.File) -> None:
    """Three datasets: three objects, and 4 + 3 * 3 characters with the root."""
    for name in "abc":
        file[name] = 1


def three_links(file: h5py.File) -> None:
    """Three links that come before a dataset."""
    for name in "abc":
        file[name] = h5py.SoftLink("/z")
    file["z"] = 1


def three_groups(file: h5py.File) -> None:
    file["a/b/c/x"] = 1


def way_of_three(file: h5py.File) -> None:
    """One link over three names, the first of them empty."""
    file["d/z"] = 1
    file["a"] = h5py.SoftLink("/d/z")


def chain_of_three(file: h5py.File) -> None:
    """The link to a leads over three others."""
    file["z"] = 1
    for name, target in ("dz", "cd", "bc", "ab"):
        file[name] = h5py.SoftLink(f"/{target}")


LIMITS = {
    "nodes": (three_names, 3, "more than 2 objects"),
    "path_characters": (three_names, 1 + 3 * 3, "more than 9 characters"),
    "links": (three_links, 3, "more than 2 links"),
    "group_levels": (three_groups, 4, "nested more than 3 deep"),
    "link_steps": (way_of_three, 3, "more than 2 names"),
    "path_links": (chain_of_three, 3, "more than 2 others"),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_each_limit_is_what_its_message_says(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill, most, words = LIMITS[limit]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        fill(file)
    monkeypatch.setattr(PLACE, Limits(**{limit: most}))
    with read(tmp_path / "x.h5") as bundle:
        assert not any("more than" in note for note in bundle.notes)
        assert not any(array.problem for array in bundle.arrays)
    monkeypatch.setattr(PLACE, Limits(**{limit: most - 1}))
    if limit in ("nodes", "path_characters", "links"):
        with pytest.raises(TooLarge, match=words):
            read(tmp_path / "x.h5")
        return
    try:
        with read(tmp_path / "x.h5") as bundle:
            told = [*bundle.notes, *(str(array.problem) for array in bundle.arrays)]
            told += [str(array.problem) for array in bundle.unreadable]
    except RaconvertError as error:
        told = [str(error)]
    assert any(words in text for text in told), told


# --- what is found through links ------------------------------------------------------------------


def test_what_links_find_stands_where_they_do(tmp_path: Path) -> None:
    """And nothing is lost of what was found before, the attributes of the root least of all."""
    with h5py.File(tmp_path / "other.h5", "w", track_order=True) as file:
        file["p/q"] = 10
        file["p/deep"] = h5py.ExternalLink("third.h5", "/r")
        file["p/s"] = 12
    with h5py.File(tmp_path / "third.h5", "w") as file:
        file["r/t"] = 11
    with h5py.File(tmp_path / "x.h5", "w", track_order=True) as file:
        file.attrs["about"] = "the root"
        file["one"] = 1
        file["two"] = h5py.ExternalLink("other.h5", "/p")
        file["three"] = 3
        file["four"] = h5py.SoftLink("/one")
        file["five"] = h5py.ExternalLink("third.h5", "/r/t")
        file["six"] = 6
        file["six"].attrs["about"] = "the last"
    with read(tmp_path / "x.h5") as bundle:
        assert bundle.attributes == {"about": "the root"}
        found = {array.name: int(as_ndarray(array)) for array in bundle.arrays}
        assert list(found.items()) == [
            ("one", 1), ("two/q", 10), ("two/s", 12), ("three", 3), ("five", 11), ("six", 6),
        ]  # fmt: skip
        assert bundle.aliases["four"] == "one"
        assert bundle.aliases["two/deep/t"] == "five"
        assert bundle["six"].meta.attributes == {"about": "the last"}


def test_datasets_that_share_a_chunk_index_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    path.write_bytes(shapes.hdf5_of_a_shared_index(1 << 15))

    bundle = read(path)

    reasons = [str(array.problem or "") for array in bundle.arrays]
    bundle.close()
    assert reasons[0] == ""
    assert "objects share indexes" in reasons[-1]
    assert 1 < sum(not reason for reason in reasons) < 20


@pytest.mark.parametrize(
    ("text", "names"),
    [(b"a" * 64, [8]), (b"a" * 63 + b"\0", [8, 16, 24]), (b"a" * 63 + b"\0", [24, 16, 8])],
)
def test_names_of_a_group_end_and_do_not_overlap(text: bytes, names: list[int]) -> None:
    """Else their length in all would be the square of the bytes of the heap."""
    head = btrees._HEAP.pack(b"HEAP", 0, len(text), btrees.LAST_FREE, btrees._HEAP.size)
    source = Mock(size=1 << 10, read_at=lambda offset, n: (head + text)[offset : offset + n])
    file = Mock(source=source, userblock=0, places={}, path="x.h5")

    with pytest.raises(Corrupt, match="not whole, each once, and in order"):
        btrees._check_names(file, 0, names, [], [], Mock())


def test_taken_bytes_of_a_heap_with_texts_and_blocks_in_each_other() -> None:
    text = b"a" * 30 + b"\0" + b"b" * 33

    taken = btrees._taken(text, [8, 16, 8, 40, 48], {1: 3, 48: 90, 56: 60})

    assert taken.tolist() == [True, True, True, True, False, True, True, True, True]
