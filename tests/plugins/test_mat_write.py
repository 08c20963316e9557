"""Writing MAT: Octave, scipy, matio and h5py read it; what is refused; mat to ra to mat is exact."""

from __future__ import annotations

import itertools
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import ml_dtypes
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from raconvert.plugins import mat
from raconvert.plugins.mat.contents import is_name

import raconvert
from raconvert.arrays.array import Array
from raconvert.arrays.blocks import blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import Element, dtype_of, element_of, little
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.errors import RaconvertError, TooLarge, Unsupported, UsageError, WouldLose
from raconvert.files.source import Source
from raconvert.files.target import Target
from raconvert.inspect.diff import diff
from raconvert.plugin import EQUIVALENT, REFUSED

if TYPE_CHECKING:
    from collections.abc import Callable

VERSIONS = [("6", "auto"), ("7", "auto"), ("7", "none"), ("7.3", "auto"), ("7.3", "9")]


def array_of(name: str, values: np.ndarray, **own: Any) -> Array:
    """Return an array in column-major order, as the core hands it to this plugin."""
    data = np.ascontiguousarray(values.T).reshape(values.shape[::-1])
    order = "F" if values.ndim > 1 else "C"
    meta = Metadata(formats={"mat": own}) if own else Metadata()
    element = element_of(values.dtype)
    return Array(element, values.shape, name=name, index_order=order, data=data, meta=meta)


def bundle_of(arrays: dict[str, np.ndarray], **rest: Any) -> Bundle:
    return Bundle([array_of(name, values) for name, values in arrays.items()], **rest)


def written(bundle: Bundle, path: Path, *, max_memory: int = 1 << 30, **options: Any) -> Path:
    """Write with the plugin, replacing what is there."""
    with Target(str(path), max_memory=max_memory) as target:
        mat.plan(bundle, **options).write(target)
        target.commit(sync=False)
    return path


def read(path: Path, **options: Any) -> Bundle:
    return mat.read(Source(str(path)), **options)


def decode(array: Array) -> np.ndarray:
    raw = b"".join(block.tobytes() for block in blocks(array))
    values = np.frombuffer(raw, dtype_of(little(array.element))).reshape(array.dims[::-1])
    return values.T if array.index_order == "F" else values


def assert_same(array: Array, expected: np.ndarray) -> None:
    got = decode(array)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), array.name
    assert got.tobytes() == expected.tobytes(), array.name


def said(bundle: Bundle, **options: Any) -> list[tuple[str, str, str, str | None]]:
    """Return outcome, array, property and flag of all that `fits` says."""
    return [(f.outcome, f.array, f.property, f.flag) for f in mat.plan(bundle, **options).fits]


NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16", "?"]
PAYLOADS = np.array([0x7FF8000000000123, 1 << 63, 0x7FF0000000000001, 0, 1, 0xFFF0000000000000],
                    "u8")  # fmt: skip
EVERY = {
    **{f"x_{code.replace('?', 'b')}": np.resize(PAYLOADS.view(code), (2, 3)) for code in
       NUMBERS[:-1]},
    "x_b": np.array([[True, False, True], [False, False, True]]),
    "nd": np.arange(24.0).reshape(2, 3, 4),
    "trailing": np.arange(6.0).reshape(2, 3, 1),
    "empty": np.zeros((0, 3), "i4"),
    "none": np.zeros((0, 0)),
    "s/one": np.array([[1.0]]),
    "s/two/three": np.array([[2, 3]], "u1"),
    "c/1": np.array([[4.0, 5]]),
    "c/2/inside": np.array([[6.0]]),
    "c/3/1": np.array([[7.0]]),
}  # fmt: skip


@pytest.mark.parametrize(("version", "compress"), VERSIONS)
def test_every_class_comes_back_bit_for_bit(version: str, compress: str, tmp_path: Path) -> None:
    bundle = bundle_of(EVERY)

    path = written(bundle, tmp_path / "x.mat", version=version, compress=compress)

    assert {f.property for f in mat.plan(bundle, version=version).fits} == {"shape"}
    with read(path) as back:
        assert back.names == list(EVERY) == mat.plan(bundle, version=version).names
        assert back.notes == []
        for name, values in EVERY.items():
            assert_same(back[name], values)


@given(
    values=hnp.arrays(
        dtype=st.sampled_from(NUMBERS).map(np.dtype),
        shape=hnp.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=4),
    ),
    version=st.sampled_from(VERSIONS),
)
def test_any_array(
    values: np.ndarray, version: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.mat"
    written(bundle_of({"x": values}), path, version=version[0], compress=version[1])
    with read(path) as back:
        assert_same(back["x"], values)


@given(
    rows=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=1, max_size=5
    ),
    version=st.sampled_from(VERSIONS),
    order=st.sampled_from("<>"),
)
def test_any_text(
    rows: list[str],
    version: tuple[str, str],
    order: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    values = np.array(rows, f"{order}U{max(1, *map(len, rows))}")
    path = tmp_path_factory.getbasetemp() / "text.mat"
    written(bundle_of({"x": values}), path, version=version[0], compress=version[1])
    with read(path) as back:
        assert decode(back["x"]).tolist() == values.tolist()


@given(
    values=hnp.arrays(
        dtype="S4", shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
    )
)
def test_any_bytes_are_units_of_their_value(
    values: np.ndarray, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.mat"
    written(bundle_of({"x": values}), path)
    with read(path) as back:
        got = decode(back["x"]).reshape(values.shape)
        expected = [text.decode("latin-1") for text in values.ravel().tolist()]
        assert got.ravel().tolist() == expected


# --- real clients -------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "compress"), VERSIONS[:3])
def test_scipy_reads_it(version: str, compress: str, tmp_path: Path) -> None:
    path = written(bundle_of(EVERY), tmp_path / "x.mat", version=version, compress=compress)

    found = scipy.io.loadmat(path, spmatrix=False)

    for name, values in EVERY.items():
        if "/" not in name:
            expected = values.astype("u1") if values.dtype == bool else values
            assert found[name].dtype == expected.dtype
            assert found[name].shape == expected.shape
            assert found[name].tobytes() == expected.tobytes(), name
    assert dict(zip(*np.unique([c for _, _, c in scipy.io.whosmat(path)], return_counts=True),
                    strict=True))["logical"] == 1  # fmt: skip
    assert found["s"]["two"][0, 0]["three"][0, 0].tolist() == [[2, 3]]
    assert found["c"][0, 0].tolist() == [[4, 5]]


OCTAVE_CHECKS = """
load('x.mat');
assert(isequal(size(nd), [2 3 4])); assert(nd(2, 3, 4) == 23); assert(nd(1, 2, 3) == 6);
assert(isequal(class(x_i1), 'int8')); assert(isequal(class(x_u8), 'uint64'));
assert(x_u8(1, 1) == bitshift(uint64(1), 63) - bitshift(uint64(1), 51) + uint64(291));
assert(isequal(class(x_f4), 'single')); assert(isequal(class(x_b), 'logical'));
assert(isequal(x_b, logical([1 0 1; 0 0 1]))); assert(iscomplex(x_c16));
assert(isequal(size(empty), [0 3])); assert(isequal(class(empty), 'int32'));
assert(isequal(size(trailing), [2 3]));
assert(s.one == 1); assert(isequal(s.two.three, uint8([2 3])));
assert(isequal(size(c), [1 3])); assert(isequal(c{1}, [4 5])); assert(c{2}.inside == 6);
assert(c{3}{1} == 7);
assert(isequal(text, ['one  '; 'three'])); assert(isequal(class(text), 'char'));
assert(issparse(sp)); assert(isequal(full(sp), [0 1 0; 2 0 0])); assert(iscomplex(spc));
assert(full(spc)(2, 2) == 3 - 1i); assert(isequal(full(spl), [1 0; 1 1]));
assert(isequal(fieldnames(nothing), cell(0, 1)));
disp('all is well')
"""


def client_bundle() -> Bundle:
    bundle = bundle_of(EVERY | {"text": np.array(["one  ", "three"])}, groups={"nothing": {}})
    bundle.arrays += [
        array_of("sp", np.array([[0.0, 1, 0], [2, 0, 0]]), **{"class": "sparse"}),
        array_of("spc", np.array([[0, 1j], [0, 3 - 1j]]), **{"class": "sparse"}),
        array_of("spl", np.array([[True, False], [True, True]]), **{"class": "sparse"}),
    ]
    return bundle


@pytest.mark.parametrize(("version", "compress"), VERSIONS[:3])
def test_octave_reads_it(
    version: str, compress: str, tmp_path: Path, octave: Callable[..., str]
) -> None:
    written(client_bundle(), tmp_path / "x.mat", version=version, compress=compress)

    assert "all is well" in octave(OCTAVE_CHECKS, cwd=tmp_path)


@pytest.mark.parametrize("flag", ["-v4", "-v6", "-v7"])
def test_octave_writes_and_reads_back(
    flag: str, tmp_path: Path, octave: Callable[..., str]
) -> None:
    """Octave to raconvert to Octave."""
    octave(f"x = [1.5 NaN; -0 4]; z = [1+2i 3]; save('{flag}', 'a.mat', 'x', 'z');", cwd=tmp_path)
    raconvert.convert(str(tmp_path / "a.mat"), str(tmp_path / "b.mat"), out_opts={"version": "7"})
    code = "a = load('a.mat'); b = load('b.mat'); assert(isequaln(a, b)); assert(1/b.x(2) == -Inf);"
    assert "same" in octave(f"{code} disp('same')", cwd=tmp_path)


ORDERED = """
early = {}; number = 1; s.none = {}; s.a = 1; s.t = struct('q', {}); s.b = 2; s.c = struct();
late = struct('x', {1, 2}, 'hole', {{}, 1}, 'y', 3); column = ['a'; 'b'; 'c']; pages = cat(3, 'ab', 'cd');
save('-v7', 'a.mat');
"""


@pytest.mark.parametrize("way", ["", "7.3", "x.zip", "x.h5"])
def test_octave_finds_members_in_their_order_and_text_in_its_shape(
    way: str, tmp_path: Path, octave: Callable[..., str]
) -> None:
    """Also where structs and cells without arrays lie before others."""
    octave(ORDERED, cwd=tmp_path)
    source = str(tmp_path / "a.mat")
    if way:
        between = str(tmp_path / (f"{way}.mat" if way == "7.3" else way))
        options = {"version": way} if way == "7.3" else {}
        raconvert.convert(source, between, out_opts=options)
        source = between
    raconvert.convert(source, str(tmp_path / "b.mat"))

    found = octave(
        "a = load('a.mat'); b = load('b.mat'); assert(isequal(a, b));"
        "assert(isequal(fieldnames(a), fieldnames(b)));"
        "assert(isequal(fieldnames(a.s), fieldnames(b.s)));"
        "assert(isequal(size(b.column), [3 1])); assert(isequal(size(b.pages), [1 2 2]));"
        "disp('same')",
        cwd=tmp_path,
    )
    assert "same" in found


def test_utf8_text_has_the_width_of_its_characters(
    tmp_path: Path, octave: Callable[..., str]
) -> None:
    """And not of its bytes: MATLAB would find NULs behind it."""
    values = {
        "u": np.array("Gr\u00fc\u00dfe \u20ac".encode()),
        "v": np.array(["\u00e9".encode(), b"ab", b""]),
        "w": np.array([b"", b""]),
        "x": np.array("\U0001f600".encode()),
    }
    arrays = [array_of(name, v.astype(f"S{v.itemsize}")) for name, v in values.items()]
    for array in arrays:
        array.meta = array.meta.replace(encoding="utf-8")
    bundle = Bundle(arrays)
    assert not [f for f in mat.plan(bundle).fits if f.property == "metadata"]
    assert mat.plan(bundle).fits[1].reason == "a single element becomes one row"

    for version in ("7.3", "6"):
        path = written(bundle, tmp_path / "x.mat", version=version)
        with read(path) as back:
            assert decode(back["u"]).tolist() == ["Gr\u00fc\u00dfe \u20ac"]
            assert decode(back["v"]).tolist() == ["\u00e9", "ab", ""]
            assert back["v"].element.descr == "<U2"
            assert decode(back["w"]).tolist() == ["", ""]
            assert decode(back["x"]).tolist() == ["\U0001f600"]
    assert scipy.io.loadmat(path, variable_names="u")["u"].tolist() == ["Gr\u00fc\u00dfe \u20ac"]
    code = "load('x.mat'); assert(strcmp(u, 'Gr\u00fc\u00dfe \u20ac')); disp(size(w))"
    assert octave(code, cwd=tmp_path).split() == ["2", "0"]


CLASSES = {  # what matdump says: dims, class
    "x_i1": ("2x3", "mxINT8_CLASS"),
    "x_i2": ("2x3", "mxINT16_CLASS"),
    "x_i4": ("2x3", "mxINT32_CLASS"),
    "x_i8": ("2x3", "mxINT64_CLASS"),
    "x_u1": ("2x3", "mxUINT8_CLASS"),
    "x_u2": ("2x3", "mxUINT16_CLASS"),
    "x_u4": ("2x3", "mxUINT32_CLASS"),
    "x_u8": ("2x3", "mxUINT64_CLASS"),
    "x_f4": ("2x3", "mxSINGLE_CLASS"),
    "x_f8": ("2x3", "mxDOUBLE_CLASS"),
    "x_c8": ("2x3", "mxSINGLE_CLASS"),
    "x_c16": ("2x3", "mxDOUBLE_CLASS"),
    "x_b": ("2x3", "mxUINT8_CLASS"),  # and a flag
    "nd": ("2x3x4", "mxDOUBLE_CLASS"),
    "empty": ("0x3", "mxINT32_CLASS"),
    "text": ("2x5", "mxCHAR_CLASS"),
    "sp": ("2x3", "mxSPARSE_CLASS"),
    "spc": ("2x2", "mxSPARSE_CLASS"),
    "spl": ("2x2", "mxSPARSE_CLASS"),
    "s": ("1x1", "mxSTRUCT_CLASS"),
    "c": ("1x3", "mxCELL_CLASS"),
    "nothing": ("1x1", "mxSTRUCT_CLASS"),
}


def matdump(path: Path, tool: Callable[..., str], *options: str) -> str:
    command = [tool("matdump"), *options, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("version", "compress"), VERSIONS)
def test_matio_sees_the_right_classes(
    version: str, compress: str, tmp_path: Path, tool: Callable[..., str]
) -> None:
    path = written(client_bundle(), tmp_path / "x.mat", version=version, compress=compress)

    lines = [line.split() for line in matdump(path, tool, "-f", "whos").splitlines()[1:] if line]

    found = {name: (dims, cls) for name, dims, _, cls in lines}
    assert {name: found[name] for name in CLASSES} == CLASSES
    text = matdump(path, tool, "-d")
    assert text.count("Sparse Array (complex)") == 1
    assert text.count("Sparse Array (logical)") == 1


def test_matio_reads_the_values_of_v73(tmp_path: Path, tool: Callable[..., str]) -> None:
    values = {"x": np.array([[1.5, 2.5], [3.5, 4.5]]), "i": np.array([[7, 8]], "i2"),
              "z": np.array([[1 + 2j, 3]])}  # fmt: skip
    path = written(bundle_of(values), tmp_path / "x.mat", version="7.3")

    text = matdump(path, tool, "-d")

    assert "1.5 2.5 \n3.5 4.5 " in text
    assert "7 8 " in text
    assert "1 + 2i" in text


def test_attributes_of_v73_are_those_of_matlab(tmp_path: Path, tool: Callable[..., str]) -> None:
    """NULLTERM of the exact length; h5dump is HDF5 1.10, so the file is old enough for MATLAB."""
    path = written(bundle_of({"x": np.ones((2, 3)), "b": EVERY["x_b"]}), tmp_path / "x.mat",
                   version="7.3")  # fmt: skip

    command = [tool("h5dump"), "-A", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.strip() for line in text.splitlines()]

    at = lines.index('(0): "double"')
    assert lines[at - 7 : at - 2] == ["STRSIZE 6;", "STRPAD H5T_STR_NULLTERM;",
                                      "CSET H5T_CSET_ASCII;", "CTYPE H5T_C_S1;", "}"]  # fmt: skip
    assert "DATASPACE  SIMPLE { ( 3, 2 ) / ( 3, 2 ) }" in lines
    data = path.read_bytes()
    assert data[:19] == b"MATLAB 7.3 MAT-file"
    assert data[124:128] == b"\0\2IM"
    assert data[512:520] == b"\x89HDF\r\n\x1a\n"
    with h5py.File(path) as file:
        assert file["b"].attrs["MATLAB_int_decode"] == 1
        assert file.userblock_size == 512
        assert list(file) == ["x", "b"]  # in the order of writing
    with read(path) as back:
        assert back.names == ["x", "b"]


def test_v73_is_compressed_along_chunks(tmp_path: Path) -> None:
    values = np.arange(600_000.0).reshape(200, 1000, 3)
    path = written(bundle_of({"x": values}), tmp_path / "x.mat", version="7.3", compress="4")

    with h5py.File(path) as file:
        assert file["x"].compression == "gzip"
        assert file["x"].chunks == (1, 655, 200)
        assert np.array_equal(file["x"][()], values.T)
    assert path.stat().st_size < values.nbytes // 3
    with read(path) as back:
        assert_same(back["x"], values)
        assert back["x"].storage["compression"] == "gzip"
        assert back["x"][5, 7, 2] == values[5, 7, 2]


# --- mat to ra to mat ---------------------------------------------------------------------------


BACK = [
    "mat/matio_test_le.mat", "mat/gen_savemat_mixed.mat", "mat/matjl_v7_sparse.mat",
    "mat/matjl_v7_string.mat", "mat/scipy_testcell_7.4_GLNX86.mat", "mat/scipy_testunicode_7.4_GLNX86.mat",
    "mat/scipy_teststructnest_7.1_GLNX86.mat", "mat/scipy_one_by_zero_char.mat",
    "mat/scipy_testemptycell_5.3_SOL2.mat", "mat/scipy_testbool_8_WIN64.mat",
    "mat73/matio_test_file_hdf5.mat", "mat73/matjl_struct.mat", "mat73/matjl_sparse.mat",
    "mat73/matjl_empty_cells.mat", "mat73/matjl_string.mat",
]  # fmt: skip


@every("version", ["6", "7", "7.3"])
@every("name", BACK)
def test_mat_to_a_bundle_and_back(
    name: str, version: str, tmp_path: Path, corpus: Callable[..., Path]
) -> None:
    """Classes, shapes, order and what is empty are as they were."""
    first, between, last = corpus("mat-hdf5") / name, tmp_path / "b.zip", tmp_path / "b.mat"

    raconvert.convert(str(first), str(between), sync=False)
    report = raconvert.convert(str(between), str(last), out_opts={"version": version}, sync=False)

    assert [str(f) for f in report.equivalent if "trailing axes" not in f.reason] == []
    with read(first) as a, read(last) as b:
        assert b.names == a.names
        assert b.groups == a.groups
        assert b.formats["mat"].get("values") == a.formats["mat"].get("values")
        for array in a.arrays:
            assert_same(b[array.name], decode(array))
            assert b[array.name].meta.formats == array.meta.formats
            assert b[array.name].storage["class"] == array.storage["class"]


@pytest.mark.parametrize("version", ["6", "7", "7.3"])
def test_files_of_matlab_and_their_copies_look_the_same_to_matio(
    version: str, tmp_path: Path, corpus: Callable[..., Path], tool: Callable[..., str]
) -> None:
    """But for the types in which MATLAB stores small numbers."""
    last = tmp_path / "b.mat"
    for name in ("scipy_testcell_7.4_GLNX86", "scipy_teststruct_7.4_GLNX86", "matjl_v7_array"):
        first = corpus("mat-hdf5", "mat", f"{name}.mat")
        raconvert.convert(str(first), str(last), out_opts={"version": version}, overwrite=True,
                          sync=False)  # fmt: skip

        one, two = (
            sorted(line for line in matdump(path, tool, *options).splitlines()
                   if "Data Type" not in line)
            for path in (first, last) for options in [("-d",)]
        )  # fmt: skip
        assert one == two


def test_arrays_of_structs_keep_shape_and_fields(tmp_path: Path) -> None:
    values = {"s": {"class": "struct", "dims": [2, 2], "fields": ["b", "a"]}}
    arrays = {f"s/{i}/{f}": np.array([[float(i)]]) for i in range(1, 5) for f in "ba"}
    for version in ("6", "7.3"):
        bundle = bundle_of(arrays, formats={"mat": {"values": values}})
        with read(written(bundle, tmp_path / "x.mat", version=version)) as back:
            assert back.names == list(arrays)
            assert back.formats["mat"]["values"] == values


def test_what_is_missing_in_a_cell_is_an_empty_cell(tmp_path: Path) -> None:
    """For instance a function handle that was left out, or arrays that were not chosen."""
    values = {"c": {"class": "cell", "dims": [1, 4]}}
    for version in ("6", "7.3"):
        bundle = bundle_of({"c/3": np.ones((1, 1))}, formats={"mat": {"values": values}})
        with read(written(bundle, tmp_path / "x.mat", version=version)) as back:
            assert back.names == ["c/3"]
            assert back.formats["mat"]["values"]["c"] == values["c"]
            assert list(back.groups) == []
        if version == "6":
            cell = scipy.io.loadmat(tmp_path / "x.mat")["c"]
            assert [inside.shape for inside in cell[0]] == [(0, 0), (0, 0), (1, 1), (0, 0)]
            assert [inside.dtype for inside in cell[0]] == [object, object, float, object]


STRUCTURES = """
a = struct('x', {1, 2}); c = {1, {}, 3}; d = {1, 2; 3, 4}; e = {1, {}}; f = struct('x', {});
g = cell(0, 3); h = struct(); i = struct('p', {{}}, 'q', 1); k = {1, 2}; l = {{}, {}}; m = {};
n = {struct('z', {5, 6})}; o = struct('y', {{}, {7}}); p = cell(3, 2); q = {cell(1, 0), 8};
save -v7 x.mat a c d e f g h i k l m n o p q
"""
SHOW = "s = load('{}'); for v = fieldnames(s)'; v = v{{1}}; disp(v); disp(class(s.(v))); " \
    "disp(size(s.(v))); disp(s.(v)); end"  # fmt: skip


def test_forms_of_structs_and_cells_survive(tmp_path: Path, octave: Callable[..., str]) -> None:
    """Through the formats that keep what is said of a file; Octave is the judge."""
    octave(STRUCTURES, cwd=tmp_path)
    shown = octave(SHOW.format("x.mat"), cwd=tmp_path)
    for number, between in enumerate(("y.h5", "y.zip", "y.npz", "y73.mat", "y6.mat")):
        options = {"out_opts": {"version": "7.3"}} if between == "y73.mat" else {}
        meta = "sidecar" if between == "y.npz" else "auto"
        back = f"back{number}.mat"
        raconvert.convert(str(tmp_path / "x.mat"), str(tmp_path / between), meta=meta, **options)
        raconvert.convert(str(tmp_path / between), str(tmp_path / back))
        assert octave(SHOW.format(back), cwd=tmp_path) == shown, between
        assert diff(tmp_path / "x.mat", tmp_path / between)["same"], between
        assert diff(tmp_path / "x.mat", tmp_path / back)["same"], between


def test_forms_that_npz_does_not_keep_are_named(tmp_path: Path, octave: Callable[..., str]) -> None:
    octave("s=struct('x',{1,2}); k={1,2}; save -v6 x.mat s k; save -v6 y.mat k", cwd=tmp_path)
    source, target = str(tmp_path / "x.mat"), str(tmp_path / "x.npz")
    with pytest.raises(WouldLose, match=r"forms of groups: s \(struct 1 x 2\)"):
        raconvert.convert(source, target, strict=True)
    report = raconvert.convert(source, target)
    assert ["s (struct 1 x 2)" in fit.reason for fit in report.equivalent] == [True]
    found = diff(source, target)
    assert not found["same"]
    assert [item["field"] for item in found["forms"]] == ["s"]
    back = str(tmp_path / "back.mat")
    raconvert.convert(target, back)
    assert not diff(source, back)["same"]
    # A cell of one row is told by its members, and a member alone says nothing of those around.
    for plain in (str(tmp_path / "y.mat"), f"{source}#s/1/x"):
        raconvert.convert(plain, str(tmp_path / "y.npz"), strict=True, overwrite=True)


def test_groups_of_numbered_members_come_back_without_new_ones(
    tmp_path: Path, tool: Callable[..., str]
) -> None:
    """What is missing between them is ``{}`` in the cell, and nothing in HDF5."""
    source, between, back = (str(tmp_path / name) for name in ("x.h5", "x.mat", "back.h5"))
    with h5py.File(source, "w") as file:
        for number in (1, 3, 7):
            file[f"g/{number}"] = np.full((2, 2), number)
        file["h/a"] = np.ones((1, 1))
        file.create_group("empty/inside")
    for version in ("6", "7.3"):
        options = {"out_opts": {"version": version}, "overwrite": True}
        raconvert.convert(source, between, **options)
        raconvert.convert(between, back, overwrite=True)
        listed = [
            subprocess.run([tool("h5dump"), "-n", path], capture_output=True, text=True, check=True)
            .stdout.split("{", 1)[1]
            for path in (source, back)
        ]  # fmt: skip
        assert listed[0] == listed[1]
        assert diff(source, back)["same"]


def test_structs_without_fields_keep_their_dims_in_v73(
    tmp_path: Path, tool: Callable[..., str]
) -> None:
    values = {"s": {"class": "struct", "dims": [2, 3], "fields": []}}
    bundle = bundle_of(
        {"x": np.ones((1, 1))}, groups={"s": {}}, formats={"mat": {"values": values}}
    )
    assert said(bundle, version="7.3") == []
    path = written(bundle, tmp_path / "x.mat", version="7.3")
    with read(path) as back:
        assert back.formats["mat"]["values"]["s"] == values["s"]
        assert back.forms == {"s": "struct 2 x 3"}
        assert "'s'" in back.notes[0]
    with h5py.File(path) as file:  # as MATLAB writes one of 1 x 1
        assert file["s"][()].tolist() == [2, 3]
        assert file["s"].attrs["MATLAB_empty"] == 1
    done = subprocess.run([tool("matdump"), str(path)], capture_output=True, text=True, check=True)
    assert "Class Type: Structure" in done.stdout


def test_numbered_members_become_a_cell(tmp_path: Path) -> None:
    arrays = {"c/1": np.ones((1, 1)), "c/2/1": np.ones((1, 2)), "c/2/2": np.ones((1, 3))}
    with read(written(bundle_of(arrays), tmp_path / "x.mat")) as back:
        assert back.names == list(arrays)
        assert back.formats["mat"]["values"]["c/2"]["class"] == "cell"
    far = bundle_of({"c/1000": np.ones((1, 1))})
    assert said(far) == [(REFUSED, "c/1000", "names", "--allow names")]


@pytest.mark.parametrize(
    "values",
    [
        {"c": {"class": "cell", "dims": [1, 10**9]}},
        {"c": {"class": "cell", "dims": "many"}},
        {"c": {"class": "struct", "dims": [1, 2], "fields": 5}},
        {"c": {"class": "struct", "dims": [-1, 2], "fields": ["a"]}},
        {"c": []},
        {"c": {"class": "cell", "dims": [1, 1]}},
        "nothing",
    ],
)
def test_namespaces_that_do_not_fit_the_arrays_are_ignored(values: Any, tmp_path: Path) -> None:
    arrays = {"c/a": np.ones((1, 1)), "c/b": np.ones((1, 2))}
    bundle = bundle_of(arrays, formats={"mat": {"values": values}})
    with read(written(bundle, tmp_path / "x.mat")) as back:
        assert back.names == list(arrays)


def test_global_and_complex_integers_are_written_as_they_were(tmp_path: Path) -> None:
    number = array_of("x", np.array([[1 + 2j, -3]]), **{"class": "int16", "global": True})
    for version in ("6", "7", "7.3"):
        with read(written(Bundle([number]), tmp_path / "x.mat", version=version)) as back:
            assert back["x"].meta.formats == {"mat": {"class": "int16", "global": True}}
            assert_same(back["x"], np.array([[1 + 2j, -3]]))
    changed = array_of("x", np.array([[1.5 + 2j]]), **{"class": "int16"})
    with pytest.raises(WouldLose, match=r"was int16 in MATLAB and holds 1\.5 now"):
        written(Bundle([changed]), tmp_path / "x.mat", version="7.3")


# --- char ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["6", "7", "7.3"])
@pytest.mark.parametrize(
    "rows", [["a\ud800", "\udc00b"], ["ab\0\0", "    "], ["😀b", "xyz"], ["\udc00\ud800"]]
)
def test_text_of_matlab_goes_back_unit_by_unit(
    rows: list[str], version: str, tmp_path: Path
) -> None:
    columns = max(len(row.encode("utf-16-le", "surrogatepass")) // 2 for row in rows)
    text = array_of("x", np.array(rows, f"<U{columns}"), **{"class": "char", "columns": columns})
    assert said(Bundle([text]), version=version) == []

    path = written(Bundle([text]), tmp_path / "x.mat", version=version)

    with read(path, char="units") as back:
        raw = [row.encode("utf-16-le", "surrogatepass").ljust(2 * columns, b"\0") for row in rows]
        assert decode(back["x"]).tolist() == [np.frombuffer(r, "<u2").tolist() for r in raw]
        again = written(Bundle(back.arrays), tmp_path / "y.mat", version=version)
    with read(again) as back:
        assert_same(back["x"], np.array(rows, f"<U{columns}"))


@pytest.mark.parametrize("dims", [(0, 0), (1, 0), (3, 0)])
def test_empty_text_keeps_its_dims(dims: tuple[int, int], tmp_path: Path) -> None:
    text = array_of("x", np.zeros(dims[0], "<U1"), **{"class": "char", "columns": 0})
    for version in ("6", "7.3"):
        path = written(Bundle([text]), tmp_path / "x.mat", version=version)
        with read(path, char="units") as back:
            assert back["x"].shape == dims


def test_text_that_was_empty_and_is_no_longer(tmp_path: Path) -> None:
    text = array_of("x", np.array(["y"]), **{"class": "char", "columns": 0})
    with read(written(Bundle([text]), tmp_path / "x.mat")) as back:
        assert decode(back["x"]).tolist() == ["y"]


@pytest.mark.parametrize(
    ("bits", "code"), [([97, 0x110000], "U\\+110000"), ([0xD800, 0xDC00], "U\\+D800")]
)
def test_characters_that_utf16_cannot_tell_abort_with_their_index(
    bits: list[int], code: str, tmp_path: Path
) -> None:
    values = np.array([[0x61, 0], bits], "<u4").view("<U2")[:, 0]
    with pytest.raises(WouldLose, match=rf"got {code}") as raised:
        written(bundle_of({"x": values}), tmp_path / "x.mat")
    assert "element (1,)" in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_long_lists_of_strings_in_little_memory(tmp_path: Path) -> None:
    """A char array is the strings transposed: rows are written wherever they belong."""
    rng = np.random.default_rng(1)
    values = rng.integers(97, 123, (40_000, 6)).astype("<u4").view("<U6")[:, 0]
    for version in ("6", "7.3"):
        path = written(bundle_of({"x": values}), tmp_path / "x.mat", version=version,
                       max_memory=1 << 19)  # fmt: skip
        with read(path) as back:
            assert_same(back["x"], values)
    pages = np.array([["ab", "cd", "ef"], ["gh", "ij", "kl"]])
    with read(written(bundle_of({"x": pages}), tmp_path / "x.mat", max_memory=1 << 19)) as back:
        assert_same(back["x"], pages)
    with pytest.raises(TooLarge, match="as compressed text needs"):
        written(bundle_of({"x": values}), tmp_path / "y.mat", version="7", max_memory=1 << 19)
    with read(written(bundle_of({"x": values}), tmp_path / "z.mat", version="7")) as back:
        assert_same(back["x"], values)


# --- sparse -------------------------------------------------------------------------------------


@given(
    values=hnp.arrays(
        dtype=st.sampled_from(["f8", "c16", "?"]).map(np.dtype),
        shape=hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=5),
    ),
    version=st.sampled_from(["6", "7", "7.3"]),
)
def test_any_sparse_matrix(
    values: np.ndarray, version: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "sparse.mat"
    array = array_of("x", values, **{"class": "sparse"})
    written(Bundle([array]), path, version=version)
    with read(path) as back:
        assert_same(back["x"], values)
        assert back["x"].meta.formats == {"mat": {"class": "sparse"}}


@pytest.mark.parametrize("version", ["6", "7"])
def test_scipy_reads_sparse_matrices(version: str, tmp_path: Path) -> None:
    path = written(client_bundle(), tmp_path / "x.mat", version=version)
    found = scipy.io.loadmat(path, spmatrix=False)
    for name in ("sp", "spc", "spl"):
        assert scipy.sparse.issparse(found[name])
        expected = np.asarray(client_bundle()[name])
        assert np.array_equal(found[name].toarray(), expected)


def test_sparse_in_parts_becomes_a_struct(tmp_path: Path) -> None:
    array = array_of("x", np.eye(3), **{"class": "sparse"})
    path = written(Bundle([array]), tmp_path / "x.mat")
    with read(path, sparse="parts") as parts:
        assert said(parts)[-1][2] == "metadata"
        with read(written(parts, tmp_path / "y.mat")) as back:
            assert back.names == ["x/data", "x/ir", "x/jc"]


def test_sparse_of_another_type_is_written_full(tmp_path: Path) -> None:
    array = array_of("x", np.eye(3, dtype="i4"), **{"class": "sparse"})
    with read(written(Bundle([array]), tmp_path / "x.mat")) as back:
        assert_same(back["x"], np.eye(3, dtype="i4"))


# --- what fits ----------------------------------------------------------------------------------


def test_plain_matrices_fit_exactly() -> None:
    assert said(bundle_of({"x": np.ones((2, 3)), "s/y": np.ones((2, 3, 4), "c8")})) == []


def test_shapes_below_two_axes_and_trailing_ones() -> None:
    shapes = {"a": (), "b": (3,), "c": (0,), "d": (2, 3, 1), "e": (1, 1)}
    bundle = bundle_of({name: np.ones(shape) for name, shape in shapes.items()})
    assert said(bundle) == [(EQUIVALENT, name, "shape", None) for name in "abcd"]


@pytest.mark.parametrize("version", ["6", "7", "7.3"])
def test_small_floats_become_larger_ones(version: str, tmp_path: Path) -> None:
    half = np.array([[1.5, -0.0], [np.inf, 6e-8]], "f2")
    wide = "f4" if version == "7.3" else "f8"
    bundle = bundle_of({"x": half})
    assert said(bundle, version=version) == [(EQUIVALENT, "x", "type", None)]
    with read(written(bundle, tmp_path / "x.mat", version=version)) as back:
        assert_same(back["x"], half.astype(wide))


def test_bfloat16_is_a_double_or_refused(tmp_path: Path) -> None:
    values = np.array([[1.5, -2]], ml_dtypes.bfloat16)
    bundle = bundle_of({"x": values})
    assert said(bundle) == [(EQUIVALENT, "x", "type", None)]
    with read(written(bundle, tmp_path / "x.mat")) as back:
        assert_same(back["x"], np.array([[1.5, -2]]))
    assert said(bundle, version="7.3") == [(REFUSED, "x", "type", "--dtype float32")]


def test_types_that_matlab_has_not_are_refused_or_written_as_documented(tmp_path: Path) -> None:
    values = {
        "dates": np.array([["2001-02-03", "NaT"]], "M8[D]"),
        "spans": np.array([[5, -1]], ">m8[s]"),
        "records": np.array([[(1, 2.5)] * 2], [("a", "u1"), ("b", ">f8")]),
        "raw": np.array([[b"\1\2\3", b"\4\5\6"]], "V3"),
    }
    bundle = bundle_of(values)
    assert said(bundle) == [(REFUSED, name, "type", "--allow dtype") for name in values]
    with read(written(bundle, tmp_path / "x.mat")) as back:
        assert decode(back["dates"]).tolist() == [[11356, -(2**63)]]
        assert decode(back["spans"]).tolist() == [[5, -1]]
        assert decode(back["records"])[:, 0, 0].tolist() == list(b"\1\x40\4\0\0\0\0\0\0")
        assert decode(back["raw"]).T.tobytes() == b"\1\2\3\4\5\6"


def test_metadata_is_named() -> None:
    array = array_of("x", np.ones((2, 3)))
    array.meta = Metadata(
        units="m", axes=[Axis(name="r"), Axis()][::-1], formats={"mat": {}, "png": {"a": 1}}
    )
    bundle = Bundle([array], attributes={"by": "me"}, groups={"g": {"a": 1}, "h": {}})
    fits = mat.plan(bundle).fits
    assert [(f.array, f.property) for f in fits] == [("x", "metadata"), ("", "metadata"),
                                                     ("", "metadata")]  # fmt: skip
    assert fits[0].reason.endswith("units, axis 1 'r' (name), namespace png")
    assert fits[2].reason.endswith("of groups: g")


def huge(name: str, dims: tuple[int, ...], kind: str = "uint", nbytes: int = 1) -> Array:
    return Array(Element(kind, nbytes, "<"), dims, name=name, index_order="F")


def test_trap_the_limit_of_two_gib_names_v73() -> None:
    flag = "--out-opt version=7.3"
    assert said(Bundle([huge("x", (1, 2**31 - 1))])) == []
    assert said(Bundle([huge("x", (2, 2**30))])) == [(REFUSED, "x", "storage", flag)]
    assert said(Bundle([huge("x", (2, 2**30))]), version="7.3") == []
    assert said(Bundle([huge("x", (2**13, 2**14), "complex", 16)])) == [
        (REFUSED, "x", "storage", flag)
    ]
    together = Bundle([huge("s/a", (2, 2**29)), huge("s/b", (2, 2**29))])
    assert said(together) == [(REFUSED, "", "storage", flag)]
    apart = Bundle([huge("a", (2, 2**29)), huge("b", (2, 2**29))])
    assert said(apart) == []
    assert said(Bundle([huge("x", (0, 2**31))])) == [(REFUSED, "x", "shape", flag)]


def test_many_axes() -> None:
    assert said(Bundle([huge("x", (1,) * 32 + (2,))]), version="7.3") == [
        (REFUSED, "x", "shape", "--out-opt version=7")
    ]
    assert said(Bundle([huge("x", (1,) * 64 + (2,))])) == [(REFUSED, "x", "shape", None)]


# --- names --------------------------------------------------------------------------------------

BAD_NAMES = ["1a", "a b", "a-b", "é", "_x", "", "end", "parfor", "x" * 64, "a.b", "a\n", "..", "ａ"]


def test_names_of_matlab_fit() -> None:
    names = ["a", "A", "x1", "a_b", "x" * 63, "End", "s/f", "s/a1/z_"]
    assert said(bundle_of({name: np.ones((2, 2)) for name in names})) == []


@pytest.mark.parametrize("name", BAD_NAMES)
def test_trap_other_names_are_refused(name: str) -> None:
    assert said(bundle_of({name: np.ones((2, 2))})) == [(REFUSED, name, "names", "--allow names")]
    inside = f"s/{name}"
    assert said(bundle_of({inside: np.ones((2, 2))})) == [
        (REFUSED, inside, "names", "--allow names")
    ]


@pytest.mark.parametrize("version", ["6", "7.3"])
def test_names_changed_as_allowed_are_good_and_different(version: str, tmp_path: Path) -> None:
    names = [*BAD_NAMES, "a_b", "s/1a", "s/x1a", "x" * 63, "a b/c", "a-b/c", "x" * 70]
    bundle = bundle_of({name: np.full((1, 1), float(i)) for i, name in enumerate(names)})

    changed = mat.plan(bundle, version=version).names

    assert len(set(changed)) == len(names)
    assert all(is_name(part) for name in changed for part in name.split("/"))
    assert {"a_b", "s/x1a", "x" * 63} <= set(changed)
    with read(written(bundle, tmp_path / "x.mat", version=version)) as back:
        for index, name in enumerate(changed):
            assert decode(back[name]) == index


def test_a_name_used_twice_or_as_a_group_too() -> None:
    values = np.ones((2, 2))
    twice = Bundle([array_of("a", values), array_of("a", values)])
    both = Bundle([array_of("a", values), array_of("a/b", values)])
    assert said(twice) == [(REFUSED, "a", "names", "--allow names")]
    assert said(both) == [(REFUSED, "a/b", "names", "--allow names")]
    assert mat.plan(twice).names == ["a", "a_2"]
    assert mat.plan(both).names == ["a", "a_2/b"]


def test_groups_gather_their_arrays(tmp_path: Path) -> None:
    bundle = bundle_of({n: np.full((1, 1), i) for i, n in enumerate(["s/a", "x", "s/b", "t/c"])})
    assert said(bundle) == [(EQUIVALENT, "", "names", None)]
    assert mat.plan(bundle).names == bundle.names
    for version in ("6", "7.3"):
        with read(written(bundle, tmp_path / "x.mat", version=version)) as back:
            assert back.names == ["s/a", "s/b", "x", "t/c"]


def test_empty_groups_are_structs_without_fields(tmp_path: Path) -> None:
    bundle = bundle_of({"a/x": np.ones((1, 1))}, groups={"a/g": {}, "h/i": {}})
    for version in ("6", "7.3"):
        with read(written(bundle, tmp_path / "x.mat", version=version)) as back:
            assert back.names == ["a/x"]
            assert set(back.groups) == {"a/g", "h", "h/i"}


# --- files --------------------------------------------------------------------------------------


def test_equal_arrays_give_equal_bytes(tmp_path: Path) -> None:
    """Also a second later: HDF5 would note the time of every object."""
    first = [written(client_bundle(), tmp_path / f"a{i}.mat", version=v, compress=c).read_bytes()
             for i, (v, c) in enumerate(VERSIONS)]  # fmt: skip
    time.sleep(1.1)
    again = [written(client_bundle(), tmp_path / f"b{i}.mat", version=v, compress=c).read_bytes()
             for i, (v, c) in enumerate(VERSIONS)]  # fmt: skip
    assert first == again


def test_compression_without_a_version_that_has_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='"version": "7"'):
        written(bundle_of({"x": np.ones((1, 1))}), tmp_path / "x.mat", compress="5")


def test_written_in_blocks(tmp_path: Path) -> None:
    values = np.arange(200_000.0).reshape(400, 500)
    for version, compress in VERSIONS:
        progress: list[int] = []
        with Target(
            str(tmp_path / "x.mat"), max_memory=1 << 19, progress=progress.append
        ) as target:
            bundle = bundle_of({"x": values, "z": values + 1j})
            mat.plan(bundle, version=version, compress=compress).write(target)
            target.commit(sync=False)
        assert len(progress) > 10
        assert sum(progress) == 3 * values.nbytes
        with read(tmp_path / "x.mat") as back:
            assert_same(back["x"], values)
            assert_same(back["z"], values + 1j)


def test_extents_are_copied_whatever_their_byte_order(tmp_path: Path) -> None:
    values = np.arange(12, dtype=">i4").reshape(3, 4)
    np.save(tmp_path / "x.npy", np.asfortranarray(values))
    for version in ("6", "7", "7.3"):
        path = tmp_path / f"x{version}.mat"
        raconvert.convert(str(tmp_path / "x.npy"), str(path), out_opts={"version": version},
                          sync=False)  # fmt: skip
        with read(path) as back:
            assert_same(back["x"], values.astype("<i4"))
            assert (back["x"].extent is None) == (version == "7")


# --- end to end: element [i,j,k] stays [i,j,k] --------------------------------------------------


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".ra", ".zip"])
@pytest.mark.parametrize("version", ["6", "7", "7.3"])
def test_elements_keep_their_index_through_other_formats(
    suffix: str, version: str, tmp_path: Path, octave: Callable[..., str]
) -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    for order in "CF":
        np.save(tmp_path / "a.npy", np.asarray(values, order=order))
        first, between, last = (str(tmp_path / n) for n in ("a.mat", f"a{suffix}", "b.mat"))
        for source, target in itertools.pairwise([str(tmp_path / "a.npy"), first, between, last]):
            options = {"version": version} if target.endswith(".mat") else {}
            raconvert.convert(source, target, overwrite=True, out_opts=options, sync=False)
        with read(Path(last)) as back:
            assert_same(back["a"], values)
    if version != "7.3":
        assert "6 23" in octave("load b.mat; printf('%d %d', a(1,2,3), a(2,3,4))", cwd=tmp_path)


def test_refused_on_the_command_line_and_allowed(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **{"a b": np.ones((2, 2)), "ok": np.ones((2, 2))})
    source, target = str(tmp_path / "x.npz"), str(tmp_path / "x.mat")
    with pytest.raises(WouldLose, match=r'allow=\["names"\]'):
        raconvert.convert(source, target, sync=False)
    raconvert.convert(source, target, allow=["names"], sync=False)
    assert set(scipy.io.loadmat(target)) >= {"a_b", "ok"}


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    class Broken:
        shape, dtype = (3, 4), np.dtype("f8")

        def __getitem__(self, key: object) -> np.ndarray:
            raise RaconvertError("broken on purpose")

    array = Array(element_of(np.dtype("f8")), (4, 3), name="x", index_order="F", data=Broken())
    for version, compress in VERSIONS:
        with pytest.raises(RaconvertError, match="on purpose"):
            written(Bundle([array]), tmp_path / "x.mat", version=version, compress=compress)
        assert list(tmp_path.iterdir()) == []


def test_a_plan_of_version_6_with_a_level_is_refused() -> None:
    """So that a dry run refuses it, too."""
    array = Array(element_of(np.dtype("f8")), (3,), data=lambda: np.zeros(3), name="x")

    with pytest.raises(UsageError, match="version 6 of MAT is not compressed"):
        mat.plan(Bundle([array]), version="6", compress="5")


def test_a_variable_that_occurs_twice_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, {"x": np.arange(3.0)})
    contents = path.read_bytes()
    path.write_bytes(contents + contents[128:])

    with pytest.raises(Unsupported, match="more than one variable 'x'"):
        raconvert.write(f"{path}#x", np.arange(4.0), overwrite=True)
    assert path.read_bytes() == contents + contents[128:]
