"""One record of what an array was, kept in three places; files of earlier versions give it, too."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from bundles import save

import raconvert
from raconvert.api import array_of
from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import element
from raconvert.arrays.metadata import Axis
from raconvert.conversion.read import open_bundle
from raconvert.errors import Corrupt
from raconvert.files.limits import DEFAULT
from raconvert.metadata import roundtrip

ROOT = Path(__file__).resolve().parents[1]
COMPLEX = (np.arange(6) + 1j * np.arange(6)[::-1]).astype("<c8").reshape(2, 3)
ARRAYS: dict[str, Any] = {
    "bool": np.array([[True, False, True]]),
    "complex64": COMPLEX,
    "complex128": COMPLEX.astype("<c16"),
    "text": np.array(["aä", "日本", ""], "<U3"),
    "text-big-endian": np.array(["aä", "日本", ""], ">U3"),
    "surrogates": np.array(["\ud800x"], "<U2"),
    "bytes": np.array([b"a", b"bc"], "S3"),
    "dates": np.array([1, 2], "<M8[s]"),
    "structure": np.array([(1, True)], [("a", "<i4"), ("b", "?")]),
    "titles": np.zeros(2, [(("T", "a"), "<i4")]),
    "scalar": np.array(1.5),
    "scalar-complex": np.array(1 + 2j, "<c8"),
}
PLACES = {
    "sidecar": ("x.npz", {"meta": "sidecar"}),
    "nrrd": ("x.nrrd", {}),
    "nrrd-gzip": ("x.nrrd", {"out_opts": {"encoding": "gzip"}}),
    "nhdr": ("x.nhdr", {}),
    "hdf5": ("x.h5", {}),
    "hdf5-chunked": ("x.h5", {"out_opts": {"chunks": "auto", "compress": "gzip"}}),
}


def held(path: Path) -> np.ndarray:
    with open_bundle(path) as bundle:
        (array,) = bundle.arrays
        return np.asarray(array)


@pytest.mark.parametrize("case", ARRAYS)
@pytest.mark.parametrize("place", PLACES)
def test_every_place_gives_every_array_back(place: str, case: str, tmp_path: Path) -> None:
    name, options = PLACES[place]
    values = ARRAYS[case]
    if place == "hdf5-chunked" and not values.ndim:
        pytest.skip("HDF5 has no chunks of a scalar")
    np.save(tmp_path / "a.npy", values)
    raconvert.convert(tmp_path / "a.npy", tmp_path / name, verify=True, **options)
    back = held(tmp_path / name)
    assert (back.shape, back.dtype) == (values.shape, values.dtype)
    assert back.tobytes() == values.tobytes()


@pytest.mark.parametrize("place", ["nrrd-gzip", "nhdr", "hdf5-chunked"])
@pytest.mark.parametrize("case", ["bool", "complex64", "text"])
def test_parts_of_what_comes_back(place: str, case: str, tmp_path: Path) -> None:
    name, options = PLACES[place]
    values = np.concatenate([np.atleast_2d(ARRAYS[case])] * 4)
    raconvert.write(tmp_path / name, values, **options)
    with open_bundle(tmp_path / name) as bundle:
        (array,) = bundle.arrays
        for key in [0, -1, ..., (1, 2), (slice(None), 0), (slice(3, 0, -2), slice(0, 2))]:
            assert np.array_equal(array[key], values[key]), key


def said_by(path: Path) -> dict[str, Any]:
    """The record that a file keeps, read by tools that know nothing of us."""
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            return roundtrip.record_in(next(iter(file.values())).attrs["raconvert"], DEFAULT)
    head = path.read_bytes().partition(b"\n\n")[0].decode()
    (line,) = [line for line in head.splitlines() if line.startswith("raconvert:=")]
    return roundtrip.record_in(line.partition(":=")[2].replace("\\\\", "\\"), DEFAULT)


@pytest.mark.parametrize("name", ["x.nrrd", "x.h5"])
def test_the_type_is_said_in_the_same_words(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ARRAYS["text"])
    raconvert.convert(tmp_path / "a.npy", tmp_path / name)
    assert said_by(tmp_path / name)["was"]["type"] == "<U3"


def test_a_name_that_no_link_can_have(tmp_path: Path) -> None:
    save(tmp_path / "x.h5", Bundle([array_of(np.array(["ab"], "U2"), "a/./b")]), to="hdf5")
    with open_bundle(tmp_path / "x.h5") as found:
        assert found.names == ["a/./b"]


# Earlier versions --------------------------------------------------------------------------------

OLD_PAIRS: dict[str, tuple[list[str], str, np.ndarray]] = {
    "bool": (
        ["type: uint8", "dimension: 1", "sizes: 3"],
        '{"type":"uint8","sizes":[3],"element":"bool"}',
        np.array([True, False, True]),
    ),
    "complex": (
        ["type: float", "dimension: 3", "sizes: 2 3 2", "kinds: complex ??? ???"],
        '{"type":"float","sizes":[2,3,2],"element":"complex","index_order":"F"}',
        COMPLEX.reshape(3, 2, order="F"),
    ),
    "complex128": (
        ["type: double", "dimension: 1", "sizes: 2", "kinds: complex"],
        '{"type":"double","sizes":[2],"element":"complex","dims":[]}',
        np.array(1 - 2j),
    ),
    "text": (
        ["type: block", "block size: 12", "dimension: 1", "sizes: 2"],
        '{"type":"block","sizes":[2],"element":"<U3"}',
        np.array(["aä", "日本"], "<U3"),
    ),
    "structure": (
        ["type: block", "block size: 5", "dimension: 1", "sizes: 1"],
        '{"type":"block","sizes":[1],"element":[["a","<i4"],["b","|b1"]]}',
        ARRAYS["structure"],
    ),
    "scalar": (
        ["type: double", "dimension: 1", "sizes: 1"],
        '{"type":"double","sizes":[1],"dims":[]}',
        np.array(1.5),
    ),
}


@pytest.mark.parametrize("case", OLD_PAIRS)
def test_pairs_of_nrrd_files_of_before(case: str, tmp_path: Path) -> None:
    lines, pair, values = OLD_PAIRS[case]
    head = ["NRRD0004", *lines, "endian: little", "encoding: raw", f"raconvert:={pair}", "", ""]
    (tmp_path / "x.nrrd").write_bytes("\n".join(head).encode() + values.tobytes("A"))
    with open_bundle(tmp_path / "x.nrrd") as bundle:
        assert bundle.notes == []
        back = np.asarray(bundle.arrays[0])
        assert (back.dtype, back.shape) == (values.dtype, values.shape)
        assert np.array_equal(back, values)


def test_metadata_in_a_pair_of_before(tmp_path: Path) -> None:
    pair = (
        '{"type":"uint8","sizes":[2,1],"axes":[{"labels":["a","b"]},{}],"attributes":{"n":5},'
        '"formats":{"hdf5":{"k":1}},"file":{"attributes":{"title":"t"},"groups":{"g":{}}}}'
    )
    head = ["NRRD0004", "type: uint8", "dimension: 2", "sizes: 2 1", 'labels: "x" "y"']
    text = "\n".join([*head, "encoding: raw", f"raconvert:={pair}", "", "ab"])
    (tmp_path / "x.nrrd").write_text(text)
    with open_bundle(tmp_path / "x.nrrd") as bundle:
        meta = bundle.arrays[0].meta
        assert [axis.to_dict() for axis in meta.axes[::-1]] == [
            {"name": "x", "labels": ["a", "b"]}, {"name": "y"},
        ]  # fmt: skip
        assert (meta.attributes, meta.formats["hdf5"]) == ({"n": 5}, {"k": 1})
        assert (bundle.attributes, bundle.groups) == ({"title": "t"}, {"g": {}})


def test_attributes_of_hdf5_files_of_before(tmp_path: Path) -> None:
    texts = np.array(["aä", "日本"], "<U3")
    utf8 = h5py.string_dtype("utf-8", 12)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        encoded = [text.encode() for text in texts]
        kept = file.create_dataset("t", data=np.array(encoded, utf8))
        kept.attrs["raconvert"] = '{"raconvert":1,"dtype":"<U3","name":"a/./t","units":"m"}'
        plain = file.create_dataset("z", data=np.zeros(2, [("a", "<i4")]))
        plain.attrs["raconvert"] = '{"raconvert":1,"dtype":[[["T","a"],"<i4"]]}'
        file.attrs["raconvert"] = '{"raconvert":1,"formats":{"nrrd":{"k":1}},"groups":{"g/.":{}}}'
    with open_bundle(tmp_path / "x.h5") as bundle:
        assert bundle.names == ["a/./t", "z"]
        assert np.asarray(bundle["a/./t"]).tobytes() == texts.tobytes()
        assert bundle["a/./t"].meta.units == "m"
        assert np.asarray(bundle["z"]).dtype.fields["T"][0] == "<i4"
        assert bundle.formats["nrrd"] == {"k": 1}
        assert "g/." in bundle.groups


def test_later_versions_are_not_guessed_at(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = np.arange(3)
        file["x"].attrs["raconvert"] = '{"raconvert":3,"was":{}}'
    with pytest.raises(Corrupt, match="another version, 3"):
        raconvert.read(tmp_path / "x.h5")


# What a record may not do ------------------------------------------------------------------------


def nrrd_with(tmp_path: Path, was: str, values: bytes, type: str = "uint8") -> Bundle:
    head = ["NRRD0004", f"type: {type}", "dimension: 1", f"sizes: {len(values)}", "encoding: raw"]
    facts = f'"describes":{{"type":"{type}","sizes":[{len(values)}]}}'
    head.append(f'raconvert:={{"raconvert":2,{facts},"was":{was}}}')
    (tmp_path / "x.nrrd").write_bytes("\n".join([*head, "", ""]).encode() + values)
    return open_bundle(tmp_path / "x.nrrd")


@pytest.mark.parametrize("was", ['{"type":"<f8"}', '{"type":"<c8"}', '{"type":"|S1"}',
    '{"shape":[3,1]}', '{"shape":[]}', '{"type":"|O"}', '{"index_order":"K"}'])  # fmt: skip
def test_a_pair_that_nrrd_could_not_have_got(was: str, tmp_path: Path) -> None:
    with nrrd_with(tmp_path, was, b"abc") as bundle:
        (array,) = bundle.arrays
        assert (array.element, array.dims) == (element("uint", 1), (3,))
        assert np.asarray(array).tobytes() == b"abc"
        assert len(bundle.notes) == 1
        assert "not used" in bundle.notes[0] or "no complex numbers" in bundle.notes[0]


@pytest.mark.parametrize("values", [b"\0\1\2", b"\0\1\xff"])
def test_bools_of_nrrd_are_0_and_1_only(values: bytes, tmp_path: Path) -> None:
    """Images have 255 for true; here another tool has changed the numbers."""
    with (
        nrrd_with(tmp_path, '{"type":"|b1"}', values) as bundle,
        pytest.raises(Corrupt, match=r'not a bool(.*\n)*.*"restore": "no"'),
    ):
        np.asarray(bundle.arrays[0])


def test_a_structure_with_pointers_is_no_promise() -> None:
    array = Array(element("uint", 1), (8,))
    bare = array_of(np.zeros(2, "V8"), "x")
    for one in (array, bare):
        with pytest.raises(Corrupt):
            roundtrip.restored(one, {"type": [["a", "|O"]]}, "x.yaml", DEFAULT)


@pytest.mark.parametrize("folder", ["nrrd", "hdf5"])
def test_plugins_read_and_write_no_json_of_their_own(folder: str) -> None:
    """A plugin gives the text of a record, and gets it; what is in it is said in one place."""
    for path in sorted((ROOT / "plugins" / folder).glob("*.py")):
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
        assert not {n for n in names if "json" in n.split(".") or n.endswith("sidecar")}, path.name


def test_axes_of_a_record_add_to_those_of_the_file() -> None:
    array = array_of(np.zeros((2, 3)), "x")
    array.axes = [Axis(name="y"), Axis(name="x")]
    record = {"axes": [{"units": "m"}, {"name": "z"}]}
    back = roundtrip.apply(record, array, "", DEFAULT)
    assert [axis.to_dict() for axis in back.ra_axes] == [
        {"name": "x", "units": "m"}, {"name": "z"},
    ]  # fmt: skip
