"""What is known of an axis stays with it, or the write is refused: names, labels, spacings.

An array is read, its values are taken into numpy, and written again with the same metadata, as
anybody would do to change them. What was written is read by an independent reader.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml
from cases import every
from pairs import quiet

import raconvert
from raconvert import Array, Bundle
from raconvert.api import array_of
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.errors import UsageError
from raconvert.inspect.diff import diff

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    # What a reader says of each logical axis: name, labels, spacing; None where it says nothing.
    Told = list[dict[str, Any]]

SHAPES = [(2, 2), (1, 3), (3, 1), (2, 3), (2, 2, 2), (3, 1, 2), (2, 3, 4, 2)]
NAMES = ["COM", "REG", "TIME", "LAST"]


def values_of(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(np.prod(shape), dtype="<f4").reshape(shape)


def axes_of(shape: tuple[int, ...], fields: tuple[str, ...]) -> list[Axis]:
    """Return axes in logical order, each unlike the others."""
    found = []
    for number, length in enumerate(shape):
        facts = {
            "name": NAMES[number],
            "labels": [f"{NAMES[number].lower()}{n}" for n in range(length)],
            "spacing": 0.5 + number,
        }
        found.append(Axis(**{field: facts[field] for field in facts if field in fields}))
    return found


def har(path: Path) -> tuple[np.ndarray, Told]:
    from harpy import HarFileIO

    with quiet():
        [array] = HarFileIO.readHeaderArraysFromFile(str(path))
    told = [{"name": one["name"], "labels": one["dim_desc"]} for one in array["sets"]]
    return array["array"], told


def hdf5(path: Path) -> tuple[np.ndarray, Told]:
    import h5py

    with h5py.File(path) as file:
        dims = file["X"].dims
        return file["X"][()], [{"name": dim.label} for dim in dims]


def nrrd(path: Path) -> tuple[np.ndarray, Told]:
    import nrrd as pynrrd

    values, header = pynrrd.read(str(path), index_order="F")
    spacings = header.get("spacings", [None] * values.ndim)
    names = header.get("labels", [None] * values.ndim)
    told = [{"name": a, "spacing": b} for a, b in zip(names, spacings, strict=True)]
    return values.T, told[::-1]  # fastest first: the last axis of a row-major array


def sidecar(path: Path) -> tuple[np.ndarray, Told]:
    fields = yaml.safe_load(path.with_name(f"{path.name}.yaml").read_text())
    data = path.read_bytes()
    dims = np.frombuffer(data[48 : 48 + 8 * data[40]], "<u8")
    values = np.frombuffer(data[48 + 8 * data[40] :], "<f4").reshape(dims[::-1])
    told = [{name: axis.get(name) for name in FIELDS["ra"]} for axis in fields["axes"]]
    if fields.get("index_order") == "F":
        return values.T, told
    return values, told[::-1]


def scidb(path: Path) -> tuple[np.ndarray, Told]:
    dims = re.findall(r"(\w+)=0:(\d+)", scidb_schema(path).partition("[")[2].partition("]")[0])
    values = np.frombuffer(path.read_bytes(), "<f4")
    return values.reshape([int(last) + 1 for _, last in dims]), [{"name": one} for one, _ in dims]


def nifti(path: Path) -> tuple[np.ndarray, Told]:
    import nibabel

    image = nibabel.load(path)
    told = [{"spacing": float(zoom)} for zoom in image.header.get_zooms()]
    return np.asarray(image.dataobj), told


def bundle(path: Path) -> tuple[np.ndarray, Told]:
    return sidecar(path / "X.ra")


def metaimage(path: Path) -> tuple[np.ndarray, Told]:
    import SimpleITK

    image = SimpleITK.ReadImage(str(path))
    told = [{"spacing": one} for one in image.GetSpacing()]
    return SimpleITK.GetArrayFromImage(image), told[::-1]  # fastest first there


def beside(path: Path) -> Told:
    """What the sidecar of a file says, in the order in which it lists axes: fastest first."""
    fields = yaml.safe_load(path.with_name(f"{path.name}.yaml").read_text())
    return [{name: axis.get(name) for name in FIELDS["ra"]} for axis in fields["axes"]]


def tiff(path: Path) -> tuple[np.ndarray, Told]:
    import tifffile

    return tifffile.imread(path), beside(path)[::-1]


def cfl(path: Path) -> tuple[np.ndarray, Told]:
    dims = [int(n) for n in path.with_suffix(".hdr").read_text().splitlines()[1].split()]
    values = np.fromfile(path, "<c8").reshape(dims, order="F")
    return values, beside(path)  # column-major: fastest first is the order of indices


READERS: dict[str, Callable[[Path], tuple[np.ndarray, Told]]] = {
    "har": har, "h5": hdf5, "nrrd": nrrd, "ra": sidecar, "bundle": bundle, "scidb": scidb,
    "nii": nifti, "mha": metaimage, "tif": tiff, "cfl": cfl,
}  # fmt: skip
FIELDS = {
    "har": ("name", "labels"),
    "h5": ("name",),
    "nrrd": ("name", "spacing"),
    "ra": ("name", "labels", "spacing"),
    "bundle": ("name", "labels", "spacing"),
    "scidb": ("name",),
    "nii": ("spacing",),
    "mha": ("spacing",),
    "tif": ("name", "labels", "spacing"),
    "cfl": ("name", "labels", "spacing"),
}
SIDECARS = ("tif", "cfl")  # which have no place for axes that are not those of microscopes
MANY = ("har", "h5", "bundle")


def place(folder: Path, format: str, stem: str) -> Path:
    return folder / (stem if format == "bundle" else f"{stem}.{format}")


def save(path: Path, format: str, values: Any, meta: Metadata) -> None:
    to = "bundle" if format == "bundle" else None
    if format in SIDECARS:
        values = values.astype("<c8") if format == "cfl" else values
        first = path.with_name(f"{path.stem}_of_{format}.ra")
        raconvert.write(first, values, meta=meta)
        raconvert.convert(first, path, meta="sidecar", index_order="C")
        return
    raconvert.write(path, {"X": values} if format in MANY else values, meta=meta, to=to)


# All pairs; those with one of the simple formats in fewer shapes.
SIMPLE = ("mha", *SIDECARS)
TRIPLES = [
    (first, second, shape)
    for first, second in product(READERS, READERS)
    for shape in (SHAPES if {first, second}.isdisjoint(SIMPLE) else [(2, 2), (1, 3), (3, 1, 2)])
]


@every("first, second, shape", TRIPLES, ids=str)
def test_labels_stay_on_their_axis(
    tmp_path: Path, first: str, second: str, shape: tuple[int, ...]
) -> None:
    """From any format with labels to any, through numpy, in both orders in memory."""
    values, axes = values_of(shape), axes_of(shape, FIELDS[first])
    save(place(tmp_path, first, "in"), first, values, Metadata(axes=axes))
    with raconvert.open(place(tmp_path, first, "in")) as opened:
        array = next(iter(opened.values())) if isinstance(opened, Bundle) else opened
        taken, meta = np.array(array).real, array.meta
    assert np.array_equal(taken, values)
    for order in "CF":
        target = place(tmp_path, second, f"out{order}")
        save(target, second, np.asarray(taken, order=order), meta)
        got, told = READERS[second](target)
        assert np.array_equal(got, values)
        common = set(FIELDS[first]) & set(FIELDS[second])
        found = [{name: one[name] for name in common} for one in told]
        assert found == [{name: axis.to_dict()[name] for name in common} for axis in axes]


@pytest.mark.parametrize("axes", ["ZYX", "TYX", "TZYX", "CYX"])
@pytest.mark.parametrize("kind", ["imagej", "ome"])
def test_axes_that_a_microscope_names_stay(tmp_path: Path, kind: str, axes: str) -> None:
    """As tifffile writes them, and tells them afterwards, also where all are of one length."""
    import tifffile

    values = values_of((2,) * len(axes))
    tifffile.imwrite(tmp_path / f"in.{kind}.tif", values, metadata={"axes": axes}, **{kind: True})
    options = {"squeeze": "yes"} if kind == "ome" else {}  # OME has five axes, tifffile drops some
    with raconvert.open_array(tmp_path / f"in.{kind}.tif", in_opts=options) as array:
        assert [axis.name for axis in array.axes] == list(axes)
        taken, meta = np.array(array), array.meta
    for order in "CF":
        path = tmp_path / f"out{order}.{kind}.tif"
        raconvert.write(path, np.asarray(taken * 2, order=order), meta=meta)
        with tifffile.TiffFile(path) as file:
            assert file.series[0].axes == axes
            assert np.array_equal(file.series[0].asarray(), values * 2)


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 1, 2)], ids=str)
@pytest.mark.parametrize("source", ["har", "mat", "npy", "ra", "h5"])
def test_new_values_are_taken_in_the_order_of_the_shape(
    tmp_path: Path, source: str, shape: tuple[int, ...]
) -> None:
    """They are what numpy shows, in whatever order the file has them."""
    values = values_of(shape)
    path = tmp_path / f"in.{source}"
    many = source in ("har", "mat", "h5")
    np.save(path, np.asfortranarray(values)) if source == "npy" else raconvert.write(
        path, {"X": values} if many else values
    )
    with raconvert.open(path, "X" if many else None) as array:
        wanted = np.array(array) * 2
        for changes in ({"extent": None}, {}):
            made = array.replace(data=wanted, **changes)
            assert np.array_equal(np.asarray(made), wanted)
            for suffix in ("npy", "ra", "har")[: 2 if source == "ra" else 3]:  # bare: as listed
                raconvert.write(tmp_path / f"out.{suffix}", made, overwrite=True)
                found = raconvert.read(tmp_path / f"out.{suffix}")
                found = next(iter(found.values())) if suffix == "har" else found
                assert np.array_equal(found, wanted)
        with pytest.raises(UsageError, match="another shape"):
            array.replace(data=wanted.reshape(-1))
        assert array.replace(data=wanted.astype("f8")).dtype == np.float64
        with pytest.raises(UsageError, match="another type"):
            array.replace(data=wanted.astype("f8"), element=array.element)
        if shape != shape[::-1]:
            with pytest.raises(UsageError, match="another shape"):
                array.replace(data=wanted.T)
        with pytest.raises(UsageError, match="mask"):
            array.replace(data=np.ma.masked_equal(wanted, 2))


def test_names_labels_and_namespaces_of_what_does_not_fit_are_refused(tmp_path: Path) -> None:
    values = values_of((2, 3))
    save(tmp_path / "in.har", "har", values, Metadata(axes=axes_of((2, 3), FIELDS["har"])))
    with raconvert.open(tmp_path / "in.har", "X") as array:
        meta = array.meta
    for other in (values.T, values[:1], values[0], values[None], np.zeros((3, 3), "f4")):
        for suffix in ("har", "ra", "npy"):
            with pytest.raises(UsageError, match="the metadata for array"):
                raconvert.write(tmp_path / f"out.{suffix}", other, meta=meta)
            assert not (tmp_path / f"out.{suffix}").exists()
    meta = meta.replace(axes=[])
    raconvert.write(tmp_path / "out.har", values.T, meta=meta)


def test_metadata_made_by_hand_is_in_the_order_of_the_shape(tmp_path: Path) -> None:
    """Of whatever index order the array is that gets it; what is given stays as it is."""
    meta = Metadata(axes=[Axis(name="y"), Axis(name="x")])
    column = Array(values_of((2, 2)), index_order="F")
    raconvert.write(tmp_path / "a.ra", values_of((2, 2)), meta=meta)
    raconvert.write(tmp_path / "b.ra", column, meta=meta)
    raconvert.write(tmp_path / "c.ra", Array(values_of((2, 2)), meta=meta))
    raconvert.write(tmp_path / "d.ra", Array(values_of((2, 2)), index_order="F", meta=meta))
    column.axes = meta.axes
    raconvert.write(tmp_path / "e.ra", column)
    column.axes, column.meta = [], meta
    raconvert.write(tmp_path / "f.ra", column)
    for name in "abcdef":
        values, told = sidecar(tmp_path / f"{name}.ra")
        assert [one["name"] for one in told] == ["y", "x"], name
        assert np.array_equal(values, values_of((2, 2)))
    assert [axis.name for axis in meta.axes] == ["y", "x"]
    assert [axis.name for axis in meta.axes[::-1]] == ["x", "y"]


def labelled(index_order: str, shape: tuple[int, ...] = (2, 2)) -> Array:
    axes = axes_of(shape, FIELDS["ra"])
    return Array(values_of(shape), name="X", index_order=index_order, meta=Metadata(axes=axes))


@pytest.mark.parametrize("shape", [(2, 2), (1, 3), (2, 2, 2)], ids=str)
@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
def test_no_way_to_give_values_or_metadata_moves_a_label(
    tmp_path: Path, orders: str, shape: tuple[int, ...]
) -> None:
    one, other = (labelled(order, shape) for order in orders)
    values = np.asarray(one) * 2
    plain = Array(np.asarray(other), index_order=orders[1])
    plain.meta = one.meta
    made = {
        "like": Array(values, like=one),
        "like-order": Array(values, like=one, index_order=orders[1]),
        "like-meta": Array(values, like=other, meta=one.meta),
        "data": one.replace(data=values),
        "data-order": one.replace(data=values, index_order=orders[1]),
        "meta": other.replace(meta=one.meta, data=values),
        "setter": plain.replace(data=values),
        "fortran": one.replace(data=np.asfortranarray(values)),
        "closed": Array(values, like=one.astype("f8")).astype("f4"),
    }
    for way, array in made.items():
        raconvert.write(tmp_path / f"{way}.ra", array)
        found, told = sidecar(tmp_path / f"{way}.ra")
        assert np.array_equal(found, values), way
        assert told == [axis.to_dict() for axis in axes_of(shape, FIELDS["ra"])], way
    turned = one.T
    raconvert.write(tmp_path / "t.ra", turned)
    found, told = sidecar(tmp_path / "t.ra")
    assert np.array_equal(found, values.T / 2)
    assert told == [axis.to_dict() for axis in axes_of(shape, FIELDS["ra"])][::-1]
    if orders[0] != orders[1]:
        with pytest.raises(UsageError, match="transposed"):
            one.replace(index_order=orders[1])


def test_labels_of_another_length_are_refused_where_they_are_given() -> None:
    array = labelled("F", (2, 3))
    for axes in ([Axis(labels=["a", "b", "c"]), Axis()], [Axis("a")], [Axis("a")] * 3):
        with pytest.raises(UsageError, match="the metadata for array 'X'"):
            array.axes = axes
        with pytest.raises(UsageError, match="the metadata for array 'X'"):
            Array(values_of((2, 3)), name="X", meta=Metadata(axes=axes))
    with pytest.raises(UsageError, match="3 labels for axis 0 'row'; expected 2"):
        array.axes = [Axis("row", labels=["a", "b", "c"]), Axis()]
    assert [axis.name for axis in array.axes] == ["COM", "REG"]


@pytest.mark.parametrize("format", ["har", "h5", "nrrd", "ra", "bundle"])
@pytest.mark.parametrize("shape", [(2, 2), (1, 3), (2, 3, 4, 2)], ids=str)
def test_axes_are_in_the_order_of_the_shape(
    tmp_path: Path, format: str, shape: tuple[int, ...]
) -> None:
    """In Python and in `info`; an RA header and a sidecar list them the other way round."""
    wanted = axes_of(shape, FIELDS[format])
    path = place(tmp_path, format, "in")
    save(path, format, values_of(shape), Metadata(axes=wanted))
    with raconvert.open(path, "X" if format in MANY else None) as array:
        assert array.shape == shape
        for axes in (array.axes, array.meta.axes):
            assert [axis.to_dict().items() >= want.to_dict().items()
                    for axis, want in zip(axes, wanted, strict=True)] == [True] * len(shape)  # fmt: skip
        listed = [axis.name for axis in array.ra_axes]
        assert listed == [axis.name for axis in wanted][:: 1 if array.index_order == "F" else -1]
        text = repr(array)
        assert ", ".join(f"{a.name}: {n}" for a, n in zip(wanted, shape, strict=True)) in text
        if "labels" in FIELDS[format]:
            assert f"axis {len(shape) - 1}: {NAMES[len(shape) - 1]!r}, " in text
    [told] = raconvert.info(path)["arrays"]
    assert told["shape"] == list(shape)
    assert [one["name"] for one in told["metadata"]["axes"]] == [axis.name for axis in wanted]


def test_labels_on_the_other_axis_are_a_difference(tmp_path: Path) -> None:
    """Of an array of each index order; what is the same says so."""
    for name, order, turn in (("a", "C", 1), ("b", "F", 1), ("c", "F", -1)):
        array = labelled(order)
        array.axes = array.axes[::turn]
        raconvert.write(tmp_path / f"{name}.ra", array)
    assert diff(tmp_path / "a.ra", tmp_path / "b.ra")["same"]
    assert not diff(tmp_path / "b.ra", tmp_path / "c.ra")["same"]
    assert not diff(tmp_path / "a.ra", tmp_path / "c.ra")["same"]


def test_axes_are_shown_short() -> None:
    axis = Axis("REG", units="t", labels=[f"r{n}" for n in range(99)])
    assert repr(axis) == "Axis('REG', units='t', labels=['r0', 'r1', 'r2', 'r3', … 'r98': 99])"
    assert repr(Axis(spacing=0.5)) == "Axis(spacing=0.5)"
    assert len(repr(Axis(labels=["x" * 1000] * 3))) < 100
    assert repr(Array(np.zeros((2, 3)), name="x")) == "<Array 'x' float64 (2, 3)>"
    lines = repr(labelled("F")).splitlines()
    assert lines == [
        "<Array 'X' float32 (COM: 2, REG: 2)",
        "  axis 0: 'COM', spacing=0.5, labels=['com0', 'com1']",
        "  axis 1: 'REG', spacing=1.5, labels=['reg0', 'reg1']>",
    ]


def test_metadata_that_was_taken_stays_that_of_its_array(tmp_path: Path) -> None:
    """Though the array has been written to a format of another order since."""
    axes = axes_of((2, 2), ("name",))
    raconvert.write(tmp_path / "a.ra", values_of((2, 2)), meta=Metadata(axes=axes))
    with raconvert.open(tmp_path / "a.ra") as array:
        meta = array.meta
        raconvert.write(tmp_path / "a.har", array)
        array.listed("F")
        raconvert.write(tmp_path / "b.ra", np.asarray(array), meta=meta)
    assert [one["name"] for one in sidecar(tmp_path / "b.ra")[1]] == ["COM", "REG"]


def test_lists_of_axes_in_a_namespace_follow(tmp_path: Path) -> None:
    """NRRD keeps a centre for each axis; the array is Fortran-ordered in between."""
    import nrrd as pynrrd

    header = {"centerings": ["cell", "node"], "labels": ["a", "b"]}
    pynrrd.write(str(tmp_path / "in.nrrd"), values_of((2, 2)), header)
    raconvert.convert(tmp_path / "in.nrrd", tmp_path / "f.ra", index_order="F")
    with raconvert.open(tmp_path / "f.ra") as array:
        assert array.index_order == "F"
        raconvert.write(tmp_path / "out.nrrd", np.asarray(array), meta=array.meta)
    values, found = pynrrd.read(str(tmp_path / "out.nrrd"))
    named = dict(zip(found["labels"], found.get("centerings", found.get("centers")), strict=True))
    assert named == {"a": "cell", "b": "node"}
    assert found["labels"] == ["b", "a"]
    assert np.array_equal(values.T, values_of((2, 2)))


def test_items_of_a_stack_stay_on_the_first_axis(tmp_path: Path) -> None:
    array = array_of(values_of((2, 3)), "x")
    items = [{"description": "a"}, {"description": "b"}]
    array.meta = array.meta.replace(items=lambda: iter(items))
    raconvert.write(tmp_path / "a.ra", np.asarray(array), meta=array.meta)
    assert (tmp_path / "a.ra.items.jsonl").read_text().count("\n") == 2
    assert array.listed("F").meta.items is None  # another axis is the first
    assert array.meta.items is not None


def scidb_schema(path: Path) -> str:
    return path.with_name(f"{path.name}.schema").read_text()


def test_dimensions_of_scidb_without_a_name_stay_without_one(tmp_path: Path) -> None:
    """SciDB wants a name for every dimension; one that was made up does not spread."""
    meta = Metadata(axes=[Axis(), Axis(name="y")][::-1])
    raconvert.write(tmp_path / "a.scidb", values_of((2, 3)))
    raconvert.write(tmp_path / "b.scidb", values_of((2, 3)), meta=meta)
    assert "[i=0:1:0:2; j=0:2:0:3]" in scidb_schema(tmp_path / "a.scidb")
    for stem, names in (("a", [None, None]), ("b", [None, "y"])):
        raconvert.convert(tmp_path / f"{stem}.scidb", tmp_path / f"{stem}.ra")
        raconvert.convert(tmp_path / f"{stem}.ra", tmp_path / f"{stem}2.scidb")
        for path in (f"{stem}.scidb", f"{stem}.ra", f"{stem}2.scidb"):
            with raconvert.open(tmp_path / path) as found:
                array = found if hasattr(found, "dims") else found[found.names[0]]
                axes = array.ra_axes or [Axis(), Axis()]
                assert [axis.name for axis in axes] == names


def test_dimensions_of_a_schema_are_names(tmp_path: Path) -> None:
    """Also the letters that are usual: somebody wrote them."""
    (tmp_path / "a.scidb").write_bytes(values_of((2, 3)).tobytes())
    (tmp_path / "a.scidb.schema").write_text("<v:float NOT NULL>[i=0:1:0:2; j=0:2:0:3]")
    with raconvert.open(tmp_path / "a.scidb", "v") as array:
        assert [axis.name for axis in array.ra_axes] == ["j", "i"]
    (tmp_path / "b.scidb").write_bytes(values_of((6,)).tobytes())
    with raconvert.open(tmp_path / "b.scidb", "a0", in_opts={"format": "(float)"}) as array:
        assert not any(axis.name for axis in array.ra_axes)


@pytest.mark.parametrize("meta", [{"axes": []}, {}, [Axis()], "keep", 3])
def test_metadata_of_another_type_is_refused(tmp_path: Path, meta: Any) -> None:
    words = "meta does not know 'keep'" if meta == "keep" else f"got {type(meta).__name__}"
    with pytest.raises(UsageError, match=words):
        raconvert.write(tmp_path / "x.ra", np.zeros((2, 2)), meta=meta)
    assert not list(tmp_path.iterdir())


def test_names_of_arrays_are_texts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="names of arrays are texts"):
        raconvert.write(tmp_path / "x.npz", {1: np.zeros(2)})  # type: ignore[dict-item]
    assert not list(tmp_path.iterdir())
