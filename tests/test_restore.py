"""The way back: what a format could only hold in another form is again what it was.

`narrow` stands for such a format. What a sidecar says is checked like anything else that is read:
nonsense is `Corrupt`, and never an array of other values.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import narrow
import numpy as np
import pytest
import yaml
from bundles import column_major, facts, load, save
from cases import every
from hypothesis import given
from hypothesis import strategies as st

import raconvert
from raconvert import Metadata, convert, registry
from raconvert.api import array_of
from raconvert.arrays.array import Array
from raconvert.arrays.blocks import as_ndarray
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import little
from raconvert.conversion.read import open_bundle
from raconvert.errors import Corrupt, RaconvertError, WouldLose
from raconvert.files.limits import DEFAULT, Limits
from raconvert.inspect.diff import diff
from raconvert.metadata.roundtrip import difference, restored


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the narrow format known as an installed one is."""
    monkeypatch.setitem(sys.modules, "narrow", narrow)
    shared = {f: getattr(narrow.FORMAT, f) for f in registry.Row._fields if f != "module"}
    monkeypatch.setattr(registry, "_third_party", (registry.Row(module="narrow", **shared),))
    yield
    registry.refresh()


def bundle_of(*arrays: Array) -> Bundle:
    return Bundle(list(arrays))


def told(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.with_name(path.name + ".yaml").read_bytes())


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the sidecar of a file."""
    fields = told(path)
    change(fields)
    path.with_name(path.name + ".yaml").write_text(yaml.safe_dump(fields, sort_keys=False))


# What comes back ---------------------------------------------------------------------------------

FLOATS = np.array([[0.5, -0.0, np.nan], [np.inf, 1e3, -2.0]])
ARRAYS: dict[str, Callable[[], Array]] = {
    "bool": lambda: array_of(FLOATS > 0, "X"),
    "int8": lambda: array_of(np.arange(-3, 3, dtype="i1").reshape(2, 3), "X"),
    "int16-big-endian": lambda: array_of(np.arange(6, dtype=">i2").reshape(2, 3), "X"),
    "uint32": lambda: array_of(np.full((2, 3), 2**32 - 1, "u4"), "X"),
    "int64-that-fits": lambda: array_of(np.full((2, 3), -(2**53)), "X"),
    "float16": lambda: array_of(FLOATS.astype("f2"), "X"),
    "float32": lambda: array_of(FLOATS.astype("f4"), "X"),
    "float64": lambda: array_of(FLOATS, "X"),
    "complex64": lambda: array_of((FLOATS + 1j).astype("c8"), "X"),
    "text": lambda: array_of(np.array([["ä", "longer"]], "U9"), "X"),
    "text-big-endian": lambda: array_of(np.array([["ä", "longer"]], ">U6"), "X"),
    "text-bytes": lambda: array_of(np.array([[b"a", b"bc"]], "S7"), "X"),
    "scalar": lambda: array_of(np.array(1.5), "X"),
    "scalar-int": lambda: array_of(np.array(7, "i2"), "X"),
    "vector": lambda: array_of(np.arange(5.0), "X"),
    "vector-of-one": lambda: array_of(np.arange(1.0), "X"),
    "empty": lambda: array_of(np.zeros(0, "f4"), "X"),
    "empty-matrix": lambda: array_of(np.zeros((0, 3), "u2"), "X"),
    "rank-4": lambda: array_of(np.arange(24, dtype="i4").reshape(1, 2, 3, 4), "X"),
    "column-major": lambda: column_major(np.arange(6.0).reshape(2, 3), "X"),
    "column-major-vector": lambda: column_major(np.arange(4, dtype="i1"), "X"),
    "name": lambda: array_of(FLOATS, "a/b c"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_the_array_comes_back(tmp_path: Path, case: str) -> None:
    array = ARRAYS[case]()
    save(tmp_path / "a.zip", bundle_of(array))
    report = convert(tmp_path / "a.zip", tmp_path / "b.narrow", meta="sidecar", verify=True)
    assert report.allowed == []
    convert(tmp_path / "b.narrow", tmp_path / "c.zip", verify=True)
    assert diff(tmp_path / "a.zip", tmp_path / "c.zip", bitwise=True)["same"]
    with open_bundle(tmp_path / "c.zip") as bundle:
        (back,) = bundle.arrays
        assert (back.name, back.shape) == (array.name, array.shape)
        assert little(back.element) == little(array.element)
        logical = np.asarray(array)
        assert np.asarray(back).tobytes() == logical.astype(back.dtype).tobytes()
        if array.ndim > 1 and array.index_order == "F":
            assert back.index_order == "F"


@pytest.mark.parametrize("case", ARRAYS)
def test_slices_of_what_comes_back(tmp_path: Path, case: str) -> None:
    """As everything that is open: in parts, without the whole."""
    array = ARRAYS[case]()
    save(tmp_path / "b.narrow", bundle_of(array), to="narrow", meta="sidecar")
    expected = np.asarray(array)
    with raconvert.open(tmp_path / "b.narrow", array.name) as back:
        if expected.size and expected.ndim:
            assert back[-1].tobytes() == expected[-1].astype(back.dtype).tobytes()
            assert back[..., :1].tobytes() == expected[..., :1].astype(back.dtype).tobytes()
        found, wanted = np.asarray(back).dtype, expected.dtype
        assert found.newbyteorder("=") == wanted.newbyteorder("=")


WAS: dict[str, dict[str, Any]] = {
    "bool": {"type": "|b1"},
    "float16": {"type": "<f2"},
    "int16-big-endian": {"type": "<i2"},
    "text": {"type": "<U9"},
    "scalar": {"shape": []},
    "vector": {"shape": [5]},
    "name": {"name": "a/b c"},
    "scalar-int": {"type": "<i2", "shape": []},
}


@pytest.mark.parametrize("case", WAS)
def test_what_the_sidecar_says(tmp_path: Path, case: str) -> None:
    array = ARRAYS[case]()
    save(tmp_path / "b.narrow", bundle_of(array), to="narrow", meta="sidecar")
    (own,) = told(tmp_path / "b.narrow")["arrays"].values()
    was = {key: value for key, value in own["was"].items() if key != "index_order"}
    assert was == WAS[case]


def test_what_did_not_change_is_not_told(tmp_path: Path) -> None:
    save(tmp_path / "b.narrow", bundle_of(column_major(FLOATS, "X")), to="narrow", meta="sidecar")
    assert told(tmp_path / "b.narrow")["arrays"] == {"X": {}}


def test_without_a_sidecar_the_form_stays_what_it_became(tmp_path: Path) -> None:
    bundle = bundle_of(array_of(np.arange(3, dtype="i2"), "X"))
    report = save(tmp_path / "b.narrow", bundle, to="narrow")
    assert [fit.property for fit in report.equivalent] == ["type", "shape"]
    found = raconvert.read(tmp_path / "b.narrow")["X"]
    assert (found.dtype, found.shape) == (np.dtype("f8"), (1, 3))
    with pytest.raises(WouldLose, match=r'allow=\["names"\]'):
        save(tmp_path / "c.narrow", bundle_of(array_of(FLOATS, "a")), to="narrow")


def test_meta_ignore_reads_what_the_file_has(tmp_path: Path) -> None:
    save(tmp_path / "b.narrow", bundle_of(array_of(np.arange(3), "n")), to="narrow", meta="sidecar")
    found = raconvert.read(tmp_path / "b.narrow", meta="ignore")
    assert list(found) == ["N"]
    assert found["N"].shape == (1, 3)


# Containers --------------------------------------------------------------------------------------


def container() -> Bundle:
    arrays = [
        array_of(np.arange(3, dtype="i2"), "z"),
        array_of(FLOATS > 0, "group/b"),
        column_major(FLOATS, "a"),
        array_of(np.array(1.5), "group/deep/a"),
    ]
    arrays[1].meta = Metadata(description="text", attributes={"k": [1, 2]})
    return Bundle(
        arrays,
        attributes={"title": "t", "number": 1},
        groups={"group": {"k": 1}, "empty": {}, "group/deep": {"l": [2]}},
        formats={"hdf5": {"userblock": 512}},
    )


def test_order_names_attributes_and_groups_come_back(tmp_path: Path) -> None:
    save(tmp_path / "a.zip", container())
    report = convert(tmp_path / "a.zip", tmp_path / "b.narrow", meta="sidecar", verify=True)
    assert {fit.property for fit in report.equivalent} == {"type", "shape", "names"}
    with open_bundle(tmp_path / "b.narrow", meta="ignore") as bundle:
        assert bundle.names == ["A", "GROUPXB", "GROUPXDEEPXA", "Z"]
    convert(tmp_path / "b.narrow", tmp_path / "c.zip")
    back, origin = load(tmp_path / "c.zip"), facts(container())
    assert diff(tmp_path / "a.zip", tmp_path / "c.zip", bitwise=True)["same"]
    assert [array[0] for array in back["arrays"]] == [array[0] for array in origin["arrays"]]
    for part in ("attributes", "groups", "formats"):
        assert back[part] == origin[part]


def test_a_complete_sidecar_takes_the_place_of_the_metadata(tmp_path: Path) -> None:
    """What the format made up, or a writer before, does not come back with the array."""
    save(tmp_path / "b.narrow", container(), to="narrow", meta="sidecar")
    assert told(tmp_path / "b.narrow")["complete"] is True
    with open_bundle(tmp_path / "b.narrow") as bundle:
        assert bundle["group/b"].meta.attributes == {"k": [1, 2]}
        assert not bundle["z"].meta.attributes
    with open_bundle(tmp_path / "b.narrow", meta="ignore") as bundle:
        assert bundle["Z"].meta.attributes == {"from the file": True}


def test_a_sidecar_that_is_not_complete_adds_to_the_metadata(tmp_path: Path) -> None:
    save(tmp_path / "b.narrow", container(), to="narrow", meta="sidecar")
    rewrite(tmp_path / "b.narrow", lambda fields: fields.pop("complete"))
    with open_bundle(tmp_path / "b.narrow") as bundle:
        assert bundle["group/b"].meta.attributes == {"k": [1, 2], "from the file": True}
        assert bundle.attributes == {}


def test_a_png_comes_back_without_what_its_writer_added(tmp_path: Path) -> None:
    meta = Metadata(attributes={"Comment": "text"}, units="K")
    raconvert.write(tmp_path / "a.ra", np.arange(6, dtype="u1").reshape(2, 3), meta=meta)
    convert(tmp_path / "a.ra", tmp_path / "b.png", meta="sidecar")
    convert(tmp_path / "b.png", tmp_path / "c.ra")
    assert (tmp_path / "c.ra").read_bytes() == (tmp_path / "a.ra").read_bytes()
    with raconvert.open(tmp_path / "c.ra") as array:
        assert array.meta.attributes == {"Comment": "text"}
        assert array.meta.units == "K"


def test_an_npz_keeps_groups_and_attributes_beside_it(tmp_path: Path) -> None:
    save(tmp_path / "a.zip", container())
    report = convert(tmp_path / "a.zip", tmp_path / "b.npz", meta="sidecar")
    assert report.equivalent == []
    convert(tmp_path / "b.npz", tmp_path / "c.zip")
    assert (tmp_path / "c.zip").read_bytes() == (tmp_path / "a.zip").read_bytes()


# Tampered ----------------------------------------------------------------------------------------

BAD_WAS: dict[str, Any] = {
    "text": "f4",
    "list": [1],
    "number": 1,
    "null": None,
    "type-number": {"type": 7},
    "type-null": {"type": None},
    "type-true": {"type": True},
    "type-mapping": {"type": {"names": ["a"], "formats": ["i4"]}},
    "type-empty-text": {"type": ""},
    "type-empty-list": {"type": []},
    "type-nested": {"type": [[]]},
    "type-field-without-type": {"type": [["a"]]},
    "type-unknown": {"type": "<q9"},
    "type-object": {"type": "|O"},
    "type-object-in-a-field": {"type": [["a", "|O"]]},
    "type-long-double": {"type": "<f16"},
    "type-void": {"type": "|V8"},
    "type-date": {"type": "<M8[s]"},
    "type-text": {"type": "<U2"},
    "type-code": {"type": "__import__('os').system('true')"},
    "type-bomb": {"type": "i4," * 10_000},
    "type-huge-width": {"type": "|S" + "9" * 4000},
    "type-not-utf-8": {"type": "\ud800"},
    "shape-text": {"shape": "2, 3"},
    "shape-number": {"shape": 6},
    "shape-null": {"shape": None},
    "shape-negative": {"shape": [-2, 3]},
    "shape-float": {"shape": [2.0, 3.0]},
    "shape-bool": {"shape": [True, 2, 3]},
    "shape-another": {"shape": [3, 2]},
    "shape-of-as-many": {"shape": [6]},
    "shape-empty": {"shape": []},
    "shape-zero": {"shape": [2, 3, 0]},
    "shape-huge": {"shape": [2**62, 2**62]},
    "shape-of-65-axes": {"shape": [2, 3] + [1] * 63},
    "shape-of-a-million-axes": {"shape": [1] * 1_000_000},
    "shape-mapping": {"shape": {"2": 3}},
    "order-unknown": {"index_order": "K"},
    "order-list": {"index_order": ["F"]},
    "order-number": {"index_order": 1},
    "name-number": {"name": 1},
    "name-null": {"name": None},
    "name-list": {"name": ["x"]},
}


@every("case", BAD_WAS)
def test_nonsense_is_corrupt(case: str) -> None:
    array = array_of(FLOATS, "x")
    with pytest.raises(Corrupt) as caught:
        restored(array, BAD_WAS[case], "x.narrow.yaml", DEFAULT)
    assert "'x.narrow.yaml'" in str(caught.value)
    assert len(str(caught.value)) < 500


TEXTS = array_of(np.array(["ab", "ü"], "U4"), "x")
PROMISES: dict[str, tuple[Array, str]] = {
    "fraction-as-integer": (array_of(np.array([1.0, 1.5]), "x"), "<i4"),
    "large-as-small": (array_of(np.array([1, 300]), "x"), "|u1"),
    "negative-as-unsigned": (array_of(np.array([1, -1]), "x"), "<u8"),
    "nan-as-integer": (array_of(np.array([1.0, np.nan]), "x"), "<i8"),
    "double-as-single": (array_of(np.array([0.1]), "x"), "<f4"),
    "2-to-53-and-1-as-double": (array_of(np.array([2**53 + 1]), "x"), "<f8"),
    "complex-as-real": (array_of(np.array([1 + 1j]), "x"), "<f8"),
    "two-as-bool": (array_of(np.array([0, 1, 2]), "x"), "|b1"),
    "half-as-bool": (array_of(np.array([0.5]), "x"), "|b1"),
    "longer-text": (TEXTS, "<U1"),
    "text-that-is-no-bytes": (array_of(np.array(["日"], "U4"), "x"), "|S4"),
}


@pytest.mark.parametrize("case", PROMISES)
def test_values_that_break_the_promise_are_corrupt(case: str) -> None:
    """Not `WouldLose`: its flags would be for something that the user asked for."""
    array, code = PROMISES[case]
    back = restored(array, {"type": code}, "x.narrow.yaml", DEFAULT)
    with pytest.raises(Corrupt) as caught:
        as_ndarray(back)
    assert "array 'x'" in str(caught.value)
    assert "allow=" not in str(caught.value)
    assert "'x.narrow.yaml'" in str(caught.value)
    with pytest.raises(Corrupt):
        np.asarray(back)


def test_the_width_of_text_allocates_nothing_by_itself() -> None:
    array = array_of(np.full(100_000, "a"), "x")
    wide = restored(array, {"type": f"|S{1 << 20}"}, "x.yaml", DEFAULT)  # 100 GB if it were made
    assert wide.nbytes == 100_000 << 20
    block = next(iter(wide.data.stream(1 << 22)))
    assert block.nbytes <= 1 << 22
    with pytest.raises(Corrupt):
        restored(array, {"type": f"|S{1 << 30}"}, "x.yaml", DEFAULT)
    with pytest.raises(Corrupt):
        restored(array, {"type": f"|S{1 << 20}"}, "x.yaml", Limits(document_bytes=1 << 19))


def test_bytes_without_description_get_their_own_back() -> None:
    values = np.array(["2020-01-01", "NaT"], "M8[s]")
    bare = array_of(values.view("V8"), "x")
    back = restored(bare, {"type": "<M8[s]"}, "", DEFAULT)
    assert np.asarray(back).dtype == values.dtype
    assert np.asarray(back).tobytes() == values.tobytes()
    with pytest.raises(Corrupt):
        restored(bare, {"type": "<U1"}, "", DEFAULT)
    with pytest.raises(Corrupt):
        restored(array_of(values, "x"), {"type": "<m8[s]"}, "", DEFAULT)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
CODES = st.one_of(
    JSON,
    st.sampled_from(["|b1", "<f2", "<f4", "<c8", "|u1", "<i8", "bfloat16", "|S3", "<U3", ">U2", "|V4"]),
    st.builds("{}{}{}".format, st.sampled_from("<>|="), st.sampled_from("iufcbSUVMmOq"), st.integers(0, 99)),
    st.lists(st.tuples(st.text(max_size=3), st.sampled_from(["<i4", "|O", "<f8"])).map(list), max_size=2),
)  # fmt: skip
SHAPES = JSON | st.lists(st.sampled_from([0, 1, 1, 2, 3, -1]), max_size=6)
NONSENSE = st.fixed_dictionaries(
    {},
    optional={
        "type": CODES,
        "shape": SHAPES,
        "name": JSON,
        "index_order": JSON | st.sampled_from("CF"),
        "else": JSON,
    },
)
SUBJECTS = st.sampled_from(
    [
        FLOATS,
        np.arange(6).reshape(2, 1, 3),
        np.array(1, "u1"),
        np.array([[True, False]]),
        np.array(["ab", "日本"]),
        np.array([b"ab", b"c"], "S3"),
        np.zeros((0, 3), "c8"),
        np.array([(1, 2.5)], [("n", "<i4"), ("x", "<f8")]),
        np.array([b"abcd"], "V4"),
    ]
)


@given(values=SUBJECTS, was=NONSENSE | JSON)
def test_whatever_a_sidecar_says(values: np.ndarray, was: Any) -> None:
    """An array with the same values in a form of their own, or `Corrupt`."""
    array = array_of(values, "x")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, about codes of types that it will forget
        try:
            back = restored(array, was, "x.yaml", DEFAULT)
            found = as_ndarray(back)
        except Corrupt:
            return
    assert back.count == array.count
    assert [n for n in back.dims if n != 1] == [n for n in array.dims if n != 1]
    assert isinstance(back.name, str)
    if values.dtype.kind in "biufc" and found.dtype.kind != "b":
        same = (found.reshape(-1) == values.reshape(-1)) | np.isnan(values).reshape(-1)
        assert same.all()
    elif values.dtype.kind == "U" and found.dtype.kind == "U":
        assert found.reshape(-1).tolist() == values.reshape(-1).tolist()
    elif values.dtype.kind == "V":
        assert found.tobytes() == values.tobytes()


@given(values=SUBJECTS, other=SUBJECTS)
def test_the_difference_is_empty_only_for_what_is_alike(
    values: np.ndarray, other: np.ndarray
) -> None:
    a, b = array_of(values, "x"), array_of(other, "x")
    alike = values.dtype == other.dtype and values.shape == other.shape
    assert (difference(a, a, b) == {}) == alike


BAD_FIELDS: dict[str, Callable[[dict[str, Any]], object]] = {
    "arrays-list": lambda f: f.update(arrays=["Z"]),
    "arrays-text": lambda f: f.update(arrays="Z"),
    "array-text": lambda f: f["arrays"].update(Z="text"),
    "array-list": lambda f: f["arrays"].update(Z=[1]),
    "was-text": lambda f: f["arrays"]["Z"].update(was="text"),
    "was-nonsense": lambda f: f["arrays"]["Z"].update(was={"shape": [7]}),
    "name-twice": lambda f: f["arrays"]["Z"]["was"].update(name="a"),
    "name-of-another": lambda f: f["arrays"]["A"].pop("was"),
    "attributes-list": lambda f: f.update(attributes=[1]),
    "attributes-by-number": lambda f: f.update(attributes={1: 2}),
    "groups-list": lambda f: f.update(groups=["group"]),
    "groups-of-text": lambda f: f.update(groups={"group": "k"}),
    "groups-by-number": lambda f: f.update(groups={1: {}}),
    "formats-of-text": lambda f: f.update(formats={"hdf5": "x"}),
    "meta-of-array": lambda f: f["arrays"]["Z"].update(attributes=[1]),
    "axes-too-many": lambda f: f["arrays"]["Z"].update(axes=[{}, {}, {}]),
    "index-order": lambda f: f["arrays"]["Z"].update(index_order="K"),
}


@pytest.mark.parametrize("case", BAD_FIELDS)
def test_tampered_sidecars_of_containers(tmp_path: Path, case: str) -> None:
    path = tmp_path / "b.narrow"
    save(path, container(), to="narrow", meta="sidecar")
    if case == "name-of-another":
        rewrite(path, lambda f: f["arrays"]["Z"]["was"].update(name="A"))
    rewrite(path, BAD_FIELDS[case])
    with pytest.raises(Corrupt) as caught:
        open_bundle(path)
    assert f"{path}.yaml" in str(caught.value)
    with open_bundle(path, meta="ignore") as bundle:
        assert bundle.names == ["A", "GROUPXB", "GROUPXDEEPXA", "Z"]


def test_a_sidecar_may_say_less_and_more_than_there_is(tmp_path: Path) -> None:
    path = tmp_path / "b.narrow"
    save(path, container(), to="narrow", meta="sidecar")

    def change(fields: dict[str, Any]) -> None:
        fields["arrays"]["UNKNOWN"] = {"units": "K"}
        del fields["arrays"]["Z"]
        fields["later"] = "version"

    rewrite(path, change)
    with open_bundle(path) as bundle:
        assert bundle.names == ["group/b", "a", "group/deep/a", "Z"]
        assert bundle["Z"].shape == (1, 3)


def test_the_sidecar_of_another_file_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "b.narrow", container(), to="narrow", meta="sidecar")
    (tmp_path / "b.narrow").write_bytes((tmp_path / "b.narrow").read_bytes() + b"\0")
    with pytest.raises(RaconvertError, match="describes another file"):
        open_bundle(tmp_path / "b.narrow")
