"""AnnData in HDF5 and Zarr: levels, masks and labels arrive, and AnnData reads what is written."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from cases import every
from raconvert.plugins import hdf5, zarr

import raconvert
from raconvert.errors import WouldLose
from raconvert.files.limits import Limits
from raconvert.files.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from raconvert.plugin import Bundle

CELLS, GENES = ("c1", "c2", "c3"), ("g1", "g2")
X = np.array([[0, 1], [2, 0], [0, 0]], "f4")


MAKE = Path(__file__).resolve().parents[2] / "fixtures" / "anndata" / "make.py"
FIXTURE = MAKE.parent / "x.h5ad"
COMPARE = """
import sys, warnings
warnings.simplefilter("ignore")
import anndata, numpy as np
was, now = (
    (anndata.read_zarr if path.endswith(".zarr") else anndata.read_h5ad)(path)
    for path in sys.argv[1:]
)
assert np.array_equal(was.X, now.X)
for layer in was.layers:
    assert type(was.layers[layer]) is type(now.layers[layer])
    assert (was.layers[layer] != now.layers[layer]).nnz == 0
for name in ("obs", "var"):
    assert getattr(was, name).equals(getattr(now, name)), name
    assert [*getattr(was, name).dtypes] == [*getattr(now, name).dtypes], name
assert {key: one.tolist() for key, one in was.obsm.items()} == {
    key: one.tolist() for key, one in now.obsm.items()
}
print(was.obs["kind"].tolist(), was.obs["kind"].cat.ordered)
"""


@pytest.fixture(scope="module")
def files(anndata_python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same AnnData as the package writes it, in each of its forms."""
    folder = tmp_path_factory.mktemp("anndata")
    subprocess.run([anndata_python, str(MAKE), str(folder)], check=True)
    return {name: folder / name for name in FORMS}


FORMS = ("x.h5ad", "x2.zarr", "x3.zarr")


def opened(path: Path, **options: Any) -> Bundle:
    plugin = zarr if path.suffix == ".zarr" else hdf5
    return plugin.read(Source(str(path)), **options)


def compared(python: str, was: Path, now: Path) -> str:
    """Return what the package anndata prints of two files, after it found them equal."""
    words = [python, "-c", COMPARE, str(was), str(now)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("name", FORMS)
def test_levels_masks_and_sparse_matrices(name: str, files: dict[str, Path]) -> None:
    check(files[name])


def test_the_fixture_says_the_same() -> None:
    check(FIXTURE)


def check(path: Path) -> None:
    with opened(path) as bundle:
        codes = bundle["obs/kind/codes"]
        assert np.asarray(codes).tolist() == [0, -1, 1]
        assert codes.meta.attributes["levels"] == ["B", "T", "NK"]
        assert codes.meta.attributes["ordered"] is True
        assert bundle["obs/dose/codes"].meta.attributes["levels"] == [0.5, 1.5]
        assert bundle["obs/dose/codes"].meta.attributes["ordered"] is False
        assert bundle["obs/depth/values"].meta.companions == {"obs/depth/mask": "nulls"}
        assert bundle["obs/good/values"].meta.companions == {"obs/good/mask": "nulls"}
        assert bundle["X"].meta.axes == ()
        assert "sparse matrices, kept as their parts: 'layers/counts', 'layers/other'" in (
            bundle.notes
        )
        batch = np.asarray(bundle["obs/batch"]).tolist()
        assert [t.decode() if isinstance(t, bytes) else t for t in batch] == ["x", "y", "z"]


@pytest.mark.parametrize("name", FORMS)
def test_axes_of_x_have_labels_when_asked_for(name: str, files: dict[str, Path]) -> None:
    with opened(files[name], anndata="labels") as bundle:
        axes = bundle["X"].meta.axes
        assert [(axis.name, axis.labels) for axis in axes] == [("obs", CELLS), ("var", GENES)]
        axes = bundle["obsm/pca"].meta.axes
        assert [(axis.name, axis.labels) for axis in axes] == [("obs", CELLS), (None, None)]
        assert bundle["obs/count"].meta.axes == ()


@pytest.mark.parametrize("target", ["y.h5", "y.zarr"])
@pytest.mark.parametrize("name", FORMS)
def test_anndata_reads_what_was_written(
    name: str, target: str, files: dict[str, Path], tmp_path: Path, anndata_python: str
) -> None:
    raconvert.convert(files[name], tmp_path / target)

    found = compared(anndata_python, files[name], tmp_path / target)
    assert found == "['B', nan, 'T'] True"
    with opened(files[name]) as before, opened(tmp_path / target) as after:
        for array in before.arrays:
            levels = array.meta.attributes.get("levels")
            assert after[array.name].meta.attributes.get("levels") == levels, array.name


@pytest.mark.parametrize("name", FORMS)
def test_values_without_their_mask_are_refused(
    name: str, files: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(WouldLose, match="which of its values are missing"):
        raconvert.convert(f"{files[name]}#obs/depth/values", tmp_path / "y.npy")
    raconvert.convert(f"{files[name]}#obs/depth/values", tmp_path / "y.npy", allow="nulls")


# --- version 0.7: categories by reference --------------------------------------------------------


def old(path: Path, change: Callable[[h5py.File], object] = lambda _: None) -> Path:
    """A file in the form of version 0.7, by h5py, since no new package writes it."""
    text = h5py.string_dtype()
    with h5py.File(path, "w") as file:
        file["X"] = X
        for name, labels in (("obs", CELLS), ("var", GENES)):
            group = file.create_group(name)
            group.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.1.0"})
            group.attrs["_index"] = "index"
            group.attrs["column-order"] = np.array(["kind"] if name == "obs" else [], text)
            group.create_dataset("index", data=labels, dtype=text)
        levels = file.create_dataset("obs/__categories/kind", data=["B", "T"], dtype=text)
        levels.attrs["ordered"] = True
        file["obs/kind"] = np.array([0, 1, -1], "i1")
        file["obs/kind"].attrs["categories"] = levels.ref
        change(file)
    return path


def test_categories_by_reference(tmp_path: Path) -> None:
    """The levels arrive, and what is written says them as the package takes it (a path)."""
    path = old(tmp_path / "old.h5ad")
    expected = {"categories": "__categories/kind", "levels": ["B", "T"], "ordered": True}

    with opened(path, anndata="labels") as bundle:
        assert bundle["obs/kind"].meta.attributes == expected
        assert bundle["X"].meta.axes[0].labels == CELLS
        assert "is read as its path: __categories/kind" in bundle.notes[0]

    raconvert.convert(path, tmp_path / "new.h5")
    with opened(tmp_path / "new.h5") as bundle:
        assert bundle["obs/kind"].meta.attributes == expected


def test_anndata_reads_the_form_of_old_files(tmp_path: Path, anndata_python: str) -> None:
    path = old(tmp_path / "old.h5ad")
    raconvert.convert(path, tmp_path / "new.h5")
    assert compared(anndata_python, path, tmp_path / "new.h5") == "['B', 'T', nan] True"


# --- files that say what is not so ---------------------------------------------------------------


def _kind(file: h5py.File, **attributes: Any) -> h5py.Group:
    group = file.create_group("k")
    for name, value in {"encoding-type": "categorical", **attributes}.items():
        group.attrs[name] = value
    return group


def _codes(file: h5py.File, codes: Any, levels: Any) -> None:
    group = _kind(file)
    for name, data in (("codes", codes), ("categories", levels)):
        if data is not None:
            group[name] = data


ODD: dict[str, Callable[[h5py.File], object]] = {
    "type_that_is_a_number": lambda file: _kind(file, **{"encoding-type": 7}),
    "type_that_is_a_list": lambda file: _kind(file, **{"encoding-type": ["a", "b"]}),
    "nothing_in_the_group": _kind,
    "no_categories": lambda file: _codes(file, [1, 2], None),
    "no_codes": lambda file: _codes(file, None, ["a"]),
    "codes_of_floats": lambda file: _codes(file, [0.5], ["a"]),
    "categories_of_two_axes": lambda file: _codes(file, [1], [[1, 2]]),
    "categories_that_are_a_scalar": lambda file: _codes(file, [1], 1),
    "categories_that_are_a_group": lambda file: _kind(file).create_group("categories"),
    "categories_of_bytes": lambda file: _codes(file, [1], np.array([b"\xff\xfe"])),
    "nullable_without_mask": lambda file: (
        file.create_group("n").attrs.create("encoding-type", "nullable-integer"),
        file["n"].create_dataset("values", data=[1])),
    "sparse_without_parts": lambda file: file.create_group("s").attrs.create(
        "encoding-type", "csr_matrix"),
    "index_that_is_not_there": lambda file: file["obs"].attrs.modify("_index", "nowhere"),
    "index_that_is_a_number": lambda file: file["obs"].attrs.create("_index", 3),
    "index_that_is_a_group": lambda file: file["obs"].attrs.create("_index", "__categories"),
    "index_of_another_length": lambda file: (
        file["obs"].pop("index"), file["obs"].create_dataset("index", data=[b"a"])),
    "reference_to_itself": lambda file: file["obs/kind"].attrs.create(
        "categories", file["obs/kind"].ref, dtype=h5py.ref_dtype),
    "reference_to_a_group": lambda file: file["obs/kind"].attrs.create(
        "categories", file["obs"].ref, dtype=h5py.ref_dtype),
    "reference_to_nothing": lambda file: file["obs/kind"].attrs.create(
        "categories", h5py.Reference(), dtype=h5py.ref_dtype),
    "path_to_nothing": lambda file: file["obs/kind"].attrs.create("categories", "../../x"),
    "path_to_itself": lambda file: file["obs/kind"].attrs.create("categories", "kind"),
    "x_is_a_group": lambda file: (file.pop("X"), file.create_group("X")),
}  # fmt: skip


@every("name", ODD)
def test_odd_files_are_read_as_plain_arrays(name: str, tmp_path: Path) -> None:
    path = old(tmp_path / "x.h5ad", ODD[name])
    for labels in ("plain", "labels"):
        with opened(path, anndata=labels) as bundle:
            assert np.asarray(bundle["obs/kind"]).tolist() == [0, 1, -1]
            for array in bundle.arrays:
                assert array.problem is None
                if array.name.startswith("k/"):
                    assert "levels" not in array.meta.attributes


def test_many_categories_and_rows_are_no_metadata(tmp_path: Path) -> None:
    def more(file: h5py.File) -> None:
        _codes(file, [0, 1], [f"{n}" for n in range(11)])

    path = old(tmp_path / "x.h5ad", more)
    for limits, known in (
        (Limits(axis_labels=11), (True, True)),
        (Limits(axis_labels=10), (False, True)),
        (Limits(scale_values=12), (True, False)),  # 11 texts were read, and 2 are too many
    ):
        with hdf5.read(Source(str(path), limits=limits)) as bundle:
            found = ["levels" in bundle[name].meta.attributes for name in ("k/codes", "obs/kind")]
            assert found == [*known]
