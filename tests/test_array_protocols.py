"""Arrays among those of other libraries: NumPy's protocols, DLPack, pickles, other processes.

The values are compared with what the program has that wrote the file, or with another reader.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
import scipy.io
from PIL import Image

import raconvert
from raconvert import Array, Bundle, Metadata
from raconvert.arrays.metadata import Axis
from raconvert.errors import Changed, Unsupported, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

VALUES = np.random.default_rng(1).integers(0, 200, (40, 3, 5)).astype("<i4")


def _hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("g/X", data=VALUES, compression="gzip", chunks=(7, 3, 2))


WRITERS: dict[str, Callable[[Path], object]] = {
    "npy": lambda path: np.save(path, VALUES),
    "fortran.npy": lambda path: np.save(path, np.asfortranarray(VALUES)),
    "big.npy": lambda path: np.save(path, VALUES.astype(">i4")),
    "npz": lambda path: np.savez(path, X=VALUES),
    "deflated.npz": lambda path: np.savez_compressed(path, X=VALUES),
    "h5": _hdf5,
    "mat": lambda path: scipy.io.savemat(path, {"X": VALUES}),
    "deflated.mat": lambda path: scipy.io.savemat(path, {"X": VALUES}, do_compression=True),
    "ra": lambda path: raconvert.ra.write(path, VALUES),
}
MAPPED = ("npy", "fortran.npy", "big.npy", "mat", "ra")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """One file of each kind with the same values."""
    found = {kind: tmp_path / f"x.{kind}" for kind in WRITERS}
    for kind, path in found.items():
        WRITERS[kind](path)
    return found


def opened(path: Path, **options: Any) -> Array:
    found = raconvert.open(path, **options)
    array = found[found.names[0]] if isinstance(found, Bundle) else found
    assert isinstance(array, Array)
    return array


@pytest.mark.parametrize("kind", WRITERS)
def test_arrays_do_as_numpy_does(files: dict[str, Path], kind: str) -> None:
    array = opened(files[kind])
    assert (array.size, len(array), array.ndim) == (VALUES.size, 40, 3)
    assert array.itemsize == VALUES.itemsize
    assert np.array_equal(np.asarray(array), VALUES)
    assert np.array_equal(np.from_dlpack(array), VALUES)
    assert np.array_equal(np.stack(list(array)), VALUES)
    assert array.tolist() == VALUES.tolist()
    assert array.tobytes() == VALUES.astype(array.dtype).tobytes()
    assert np.array_equal(array.T, VALUES.T)
    assert np.array_equal(array.T[2, :, 5], VALUES.T[2, :, 5])
    assert np.array_equal(array.T.T, VALUES)
    assert array.T.shape == VALUES.T.shape
    assert np.array_equal(array.astype("f4"), VALUES.astype("f4"))
    assert array.astype("f4").dtype == np.float32
    assert np.array_equal(array.astype("<i2").T[1], VALUES.astype("<i2").T[1])
    own = np.array(array, copy=True)
    own[0] = -1
    assert np.array_equal(np.asarray(array), VALUES)
    with pytest.raises(ValueError, match="copy"):
        np.asarray(array, dtype="f8", copy=False)
    with pytest.raises(TypeError, match="rules"):
        array.astype("i2", casting="safe")


@pytest.mark.parametrize("kind", WRITERS)
def test_converted_arrays_are_written_in_pieces(
    files: dict[str, Path], kind: str, tmp_path: Path
) -> None:
    raconvert.write(tmp_path / "out.npy", opened(files[kind]).astype("f4"))
    assert np.array_equal(np.load(tmp_path / "out.npy"), VALUES.astype("f4"))
    raconvert.write(tmp_path / "t.npy", opened(files[kind]).T)
    assert np.array_equal(np.load(tmp_path / "t.npy"), VALUES.T)


def test_what_is_seen_stays_when_the_array_is_closed(files: dict[str, Path]) -> None:
    for kind in ("npy", "mat", "h5", "fortran.npy"):
        with opened(files[kind]) as array:
            seen, shared = np.asarray(array), np.from_dlpack(array)
        del array
        assert np.array_equal(seen, VALUES)
        assert np.array_equal(shared, VALUES)


def test_pillow_takes_an_array(tmp_path: Path) -> None:
    grey = VALUES[:, 0].astype("u1")
    raconvert.write(tmp_path / "x.png", grey)
    with raconvert.open(tmp_path / "x.png") as array:
        assert np.array_equal(np.asarray(Image.fromarray(array)), grey)
        assert np.array_equal(np.asarray(Image.fromarray(array.T)), grey.T)


def test_types_that_the_interface_cannot_name(tmp_path: Path) -> None:
    import ml_dtypes

    values = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    raconvert.write(tmp_path / "x.ra", values)
    with raconvert.open(tmp_path / "x.ra") as array:
        assert not hasattr(array, "__array_interface__")
        assert np.asarray(array).dtype == values.dtype
        assert np.array_equal(np.asarray(array), values)


def test_arrays_without_axes_and_without_elements(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "a.npy", np.float64(2.5))
    with raconvert.open(tmp_path / "a.npy") as array:
        assert (array.size, array.tolist(), array.T[()]) == (1, 2.5, 2.5)
        for ask in (len, iter):
            with pytest.raises(TypeError, match="without axes"):
                ask(array)
    raconvert.write(tmp_path / "b.npy", np.zeros((0, 3)))
    with raconvert.open(tmp_path / "b.npy") as array:
        assert (array.size, len(array), list(array)) == (0, 0, [])
        assert np.asarray(array).shape == np.from_dlpack(array).shape == (0, 3)


def test_regions_of_a_map_are_views_of_it(files: dict[str, Path]) -> None:
    for kind in WRITERS:
        if kind not in MAPPED:
            for call in (raconvert.open, raconvert.read):
                with pytest.raises(Unsupported, match=r"cannot be mapped[^$]*leave out mmap"):
                    call(files[kind], mmap=True)
            continue
        array = opened(files[kind], mmap=True)
        assert np.shares_memory(array[1:3], np.asarray(array))
        assert np.array_equal(array[1:3], VALUES[1:3])
        whole = raconvert.read(files[kind], mmap=True)
        whole = whole["X"] if isinstance(whole, dict) else whole
        assert not whole.flags.writeable
        assert np.array_equal(whole, VALUES)


# Pickles -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WRITERS)
def test_a_pickle_is_a_path(files: dict[str, Path], kind: str) -> None:
    array = opened(files[kind])
    for one, wanted in (
        (array, VALUES),
        (array.T, VALUES.T),
        (array.astype("f8"), VALUES.astype("f8")),
        (array.replace(name="other"), VALUES),
    ):
        text = pickle.dumps(one)
        assert VALUES[:1].tobytes() not in text
        back = pickle.loads(text)
        assert (back.name, back.shape, back.dtype) == (one.name, one.shape, one.dtype)
        assert np.array_equal(back[5:7], wanted[5:7])
        assert np.array_equal(np.asarray(back), wanted)
        assert np.array_equal(np.asarray(copy.deepcopy(one)), wanted)
        assert np.array_equal(pickle.loads(pickle.dumps(back))[-1], wanted[-1])


def test_large_files_have_small_pickles(tmp_path: Path) -> None:
    shape = (25, 1 << 20)  # 200 MB, of which nothing is on the disk
    np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype="f8", shape=shape)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        data = file.create_dataset("X", shape, "f8", compression="gzip", chunks=(1, 1 << 18))
        data[3, :4] = [1, 2, 3, 4]
    raconvert.convert(tmp_path / "x.npy", tmp_path / "x.ra")
    for name in ("x.npy", "x.ra", "x.h5"):
        array = opened(tmp_path / name)
        assert array.nbytes > 200e6
        assert len(pickle.dumps(array)) < 4096
        assert len(pickle.dumps(array.T)) < 4096
    back = pickle.loads(pickle.dumps(array))
    assert back[3, :5].tolist() == [1, 2, 3, 4, 0]


def test_a_pickle_keeps_what_is_known_and_values_of_its_own(tmp_path: Path) -> None:
    values = np.arange(6.0).reshape(2, 3)
    meta = Metadata(units="m", attributes={"a": 1}, axes=[Axis("row"), Axis(labels=list("xyz"))])
    assert [*meta.axes] == [Axis("row"), Axis(labels=list("xyz"))]
    assert Axis("row") not in (Axis("column"), Axis("row", units="m"), "row", None)
    raconvert.write(tmp_path / "x.ra", values, meta=meta)
    with raconvert.open(tmp_path / "x.ra") as array:
        array.meta = array.meta.replace(attributes={"a": 1, "b": 2})
        for one, wanted in ((array, values), (array.replace(data=values + 1), values + 1)):
            back = pickle.loads(pickle.dumps(one))
            assert np.array_equal(np.asarray(back), wanted)
            assert back.meta.to_dict() == one.meta.to_dict()
            assert back.meta.attributes == {"a": 1, "b": 2}
            assert [axis.name for axis in back.axes] == ["row", None]


@pytest.mark.parametrize("kind", ["npy", "h5", "deflated.mat"])
def test_a_file_that_changed_is_refused(files: dict[str, Path], kind: str) -> None:
    text = pickle.dumps(opened(files[kind]))
    stored = files[kind].stat()
    os.utime(files[kind], ns=(stored.st_atime_ns, stored.st_mtime_ns + 1))
    with pytest.raises(Changed):
        pickle.loads(text)[0]
    files[kind].unlink()
    with pytest.raises(raconvert.RaconvertError):
        pickle.loads(text)[0]


@pytest.mark.parametrize("kind", ["npy", "h5"])
def test_another_program_in_another_folder(
    files: dict[str, Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files[kind].parent)
    array = opened(files[kind].relative_to(files[kind].parent))
    monkeypatch.chdir("/")
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer)[...].sum())"
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(array), capture_output=True, check=True
    )
    assert int(done.stdout) == VALUES.sum()


# A loader of batches in other processes, as PyTorch has one ----------------------------------------


class Dataset:
    """Items of several files at once, all of which the first process has open and has read."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.arrays = arrays

    def __len__(self) -> int:
        return min(map(len, self.arrays.values()))

    def __getitem__(self, index: int) -> list[np.ndarray]:
        return [np.asarray(array[index]) for array in self.arrays.values()]


def work(dataset: Dataset, tasks: Any, results: Any) -> None:
    """Read batches until there is none, as the loop of a worker does."""
    for number, indices in iter(tasks.get, None):
        try:
            results.put((number, [dataset[index] for index in indices]))
        except Exception as error:  # noqa: BLE001 - the test says which
            results.put((number, repr(error)))


def batches(dataset: Dataset, start: str, order: list[int]) -> Iterator[tuple[int, Any]]:
    """Yield numbered batches of four, read by two processes."""
    context = multiprocessing.get_context(start)
    tasks, results = context.Queue(), context.Queue()
    workers = [
        context.Process(target=work, args=(dataset, tasks, results), daemon=True) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    parts = [order[first : first + 4] for first in range(0, len(order), 4)]
    for task in [*enumerate(parts), None, None]:
        tasks.put(task)
    for _ in parts:
        yield results.get(timeout=60)
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_a_loader_reads_in_other_processes(files: dict[str, Path], start: str) -> None:
    arrays = {kind: opened(path) for kind, path in files.items()}
    arrays["converted"] = opened(files["h5"]).astype("f4")
    dataset = Dataset(arrays)
    dataset[0]
    order = np.random.default_rng(2).permutation(np.repeat(np.arange(40), 3)).tolist()
    found = dict(batches(dataset, start, order))
    assert len(found) == 30
    for number, batch in found.items():
        assert not isinstance(batch, str), batch
        for index, item in zip(order[number * 4 :], batch, strict=False):
            assert len(item) == len(arrays)
            assert all(np.array_equal(one, VALUES[index]) for one in item)
    assert all(np.array_equal(one, VALUES[7]) for one in dataset[7])


# Bundles -----------------------------------------------------------------------------------------


@pytest.fixture
def grouped(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("subj/x", data=VALUES, compression="gzip")
        file.create_dataset("subj/deep/y", data=VALUES[0])
        file["z"] = VALUES[:, 0]
        file["subj"].attrs["age"] = 30
    return tmp_path / "x.h5"


def test_a_bundle_is_a_mapping_with_groups(grouped: Path, tmp_path: Path) -> None:
    with raconvert.open(grouped) as bundle, h5py.File(grouped) as file:
        assert isinstance(bundle, Mapping)
        assert set(bundle) == bundle.keys() == {"subj/x", "subj/deep/y", "z"}
        assert [array.name for array in bundle.values()] == list(bundle)
        assert dict(bundle.items()) == {name: bundle[name] for name in bundle}
        assert bundle.get("none", 3) == 3
        assert all(name in bundle for name in ("subj", "subj/deep", "z", "/subj/"))
        assert not any(name in bundle for name in ("sub", "x", "", "subj/deep/z", 5))
        for name in ("x", "deep/y"):
            assert np.array_equal(bundle["subj"][name], file["subj"][name])
        assert np.array_equal(bundle["subj"]["deep"]["y"], file["subj"]["deep"]["y"])
        group = bundle["subj"]
        assert isinstance(group, Mapping)
        assert (list(group), len(group)) == (["deep/y", "x"], 2)
        assert group.attributes == {"age": 30}
        with pytest.raises(KeyError):
            group["none"]
        raconvert.write(tmp_path / "group.npz", group)
    with np.load(tmp_path / "group.npz") as found:
        assert sorted(found) == ["deep/y", "x"]


def test_a_bundle_is_shown_as_a_tree(grouped: Path) -> None:
    with raconvert.open(grouped) as bundle:
        lines = repr(bundle).splitlines()
        assert lines[0] == f"Bundle of 3 arrays, hdf5 file '{grouped}'"
        assert lines[1:] == [
            "├── subj",
            "│   ├── deep",
            "│   │   └── y  int32 (3, 5)",
            "│   └── x  int32 (40, 3, 5)",
            "└── z  int32 (40, 5)",
        ]
        assert repr(bundle["subj"]).splitlines()[0] == "Group 'subj' of 2 arrays"
    many = Bundle([Array(np.zeros(2), name=f"a{n}") for n in range(500)])
    assert len(repr(many).splitlines()) < 100


def test_a_pickled_bundle_opens_its_file_again(grouped: Path) -> None:
    with raconvert.open(grouped) as bundle:
        text = pickle.dumps(bundle)
    assert len(text) < 4096
    back = pickle.loads(text)
    assert np.array_equal(back["subj"]["x"], VALUES)
    assert back.groups["subj"] == {"age": 30}


def test_values_like_an_array(files: dict[str, Path]) -> None:
    for kind in WRITERS:
        array = opened(files[kind])
        made = Array(VALUES * 2, like=array)
        assert np.array_equal(np.asarray(made), VALUES * 2)
        assert (made.name, made.index_order) == (array.name, array.index_order)
        with pytest.raises(UsageError, match="another shape"):
            Array(VALUES.T, like=array)
    assert np.array_equal(np.asarray(Array(VALUES, index_order="F")), VALUES)
    assert Array([[1, 2]], name="x").shape == (1, 2)


@pytest.mark.parametrize(
    ("package", "module", "ask"),
    [("xarray", "datasets", "to_xarray"), ("pandas", "frames", "to_dataframe")],
)
def test_without_the_extra_it_is_said_what_to_install(
    package: str, module: str, ask: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", np.eye(2))
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"raconvert.arrays.{module}", raising=False)

    needed = pytest.raises(raconvert.MissingDependency, match=r"pip install 'raconvert\[xarray\]'")
    with raconvert.open(tmp_path / "x.npy") as array, needed:
        getattr(array, ask)()
