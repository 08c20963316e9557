"""Reading MAT: files of Octave, scipy and MATLAB, every trap of its classes, names and shapes."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
import scipy.io
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from mat_bytes import tagged, v73
from raconvert.plugins import mat
from raconvert.plugins.mat.header import flags_bytes, header_bytes, parse_flags, parse_header
from raconvert.plugins.mat.tree import _Names

import raconvert
from raconvert.arrays.array import Array
from raconvert.arrays.blocks import as_ndarray, blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import dtype_of, little
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported
from raconvert.files import inflate as inflate_module
from raconvert.files.source import Source
from raconvert.plugin import NO, SURE

if TYPE_CHECKING:
    from collections.abc import Callable

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "mat"


def read(path: Path | str, *, max_memory: int = 1 << 30, **options: Any) -> Bundle:
    """Read with the plugin."""
    return mat.read(Source(str(path), max_memory=max_memory), **options)


def decode(array: Array, max_bytes: int = 1 << 20) -> np.ndarray:
    """Return the array in logical order, little-endian, streamed in blocks of `max_bytes`."""
    raw = b"".join(block.tobytes() for block in blocks(array, max_bytes))
    values = np.frombuffer(raw, dtype_of(little(array.element))).reshape(array.dims[::-1])
    return values.T if array.index_order == "F" else values


def decode_all(path: Path, **options: Any) -> list[np.ndarray]:
    """Return all arrays of a file, and close it."""
    with read(path, **options) as bundle:
        return [decode(array) for array in bundle.arrays]


def assert_same(array: Array, expected: np.ndarray, max_bytes: int = 1 << 20) -> None:
    """Compare type, shape and every bit."""
    got = decode(array, max_bytes)
    assert got.dtype == expected.dtype, array.name
    assert got.shape == array.shape == expected.shape, array.name
    assert got.tobytes() == expected.tobytes(), array.name


# --- files of others ----------------------------------------------------------------------------


def row(*values: Any, dtype: Any = "f8") -> np.ndarray:
    return np.array([values], dtype)


DENSE = np.array([[1.5, -2], [0, 4], [np.nan, np.inf]])
COMPLEX = np.array([[1 + 2j, 3], [complex(-0.0, -4), 0]])
ND = np.arange(1.0, 25).reshape(4, 3, 2).T
OCTAVE = {
    "a/1/name": np.array(["first"]),
    "a/1/value": row(1),
    "a/2/name": np.array(["second"]),
    "a/2/value": row(2, 3),
    "b": np.array([[True, False], [False, True]]),
    "c": COMPLEX,
    "c4": row(1 - 1j, 2, dtype="c8"),
    "d": DENSE,
    "e": np.zeros((0, 3)),
    "f4": np.array([[0.5, 1], [2, -4]], "f4"),
    "i16": row(-(2**15), dtype="i2"),
    "i32": row(-(2**31), 5, dtype="i4"),
    "i64": row(-(2**63), dtype="i8"),
    "i8": row(-128, 127, dtype="i1"),
    "k/1": row(1),
    "k/2": np.array([[3.0], [3.0]]),
    "k/3": np.array(["two"]),
    "k/4/1": row(4),
    "nd": ND,
    "rows": np.array(["one  ", "three"]),
    "s/x": row(1, 2, 3),
    "s/y/z": np.array(["deep"]),
    "s/w/1": row(7),
    "s/w/2": np.array(["seven"]),
    "sp": np.array([[1, 0, 0], [0, 0, -2.5]]),
    "spc": np.array([[0, 1j], [2, 0]]),
    "t": np.array(["hello, world"]),
    "u16": row(65535, dtype="u2"),
    "u32": row(2**32 - 1, dtype="u4"),
    "u64": row(2**64 - 1, dtype="u8"),
    "u8": np.array([[0], [255]], "u1"),
}
SCIPY = {
    "nan": np.array([[0x7FF8000000000123, 1 << 63, 0xFFF0000000000001]], "u8").view("f8"),
    "c": np.array([[complex(np.inf, np.nan), complex(-0.0, 1.5)]]),
    "b": row(True, False, True, dtype="?"),
    "u64": row(2**64 - 1, 2**53 + 1, dtype="u8"),
    "big": np.arange(6, dtype="<i4").reshape(2, 3),
    "text": np.array(["añb", "日本 "]),
    "cell/1": row(1.5),
    "cell/2": np.array(["x"]),
    "cell/3": np.zeros((0, 0)),
    "struct/one": row(1),
    "struct/two/three": row(0, 1, 2, dtype="<i2"),
    "sp": np.array([[0.0, 1], [0, 0], [2, 0]]),
}
VALUES = {
    "octave_v6.mat": OCTAVE,
    "octave_v7.mat": OCTAVE,
    "octave_v4.mat": {  # every number of level 4 is a double
        "c": COMPLEX,
        "d": DENSE,
        "f4": np.array([[0.5, 1], [2, -4]]),
        "rows": np.array(["one  ", "three"]),
        "sp": OCTAVE["sp"],
        "t": np.array(["hello, world"]),
    },
    "scipy_v6.mat": SCIPY,
    "scipy_v7.mat": SCIPY,
}


def test_every_fixture_is_listed() -> None:
    objects = {f"matio_{version}.mat" for version in ("v6", "v7", "v73")}  # test_mat_classes.py
    assert {path.name for path in FIXTURES.glob("*.mat")} == set(VALUES) | objects


@pytest.mark.parametrize("max_bytes", [1, 100, 1 << 20])
@pytest.mark.parametrize("name", VALUES)
def test_fixture(name: str, max_bytes: int) -> None:
    with read(FIXTURES / name) as bundle:
        assert bundle.names == list(VALUES[name])
        assert bundle.notes == []
        for path, expected in VALUES[name].items():
            assert_same(bundle[path], expected, max_bytes)


@pytest.mark.parametrize("name", VALUES)
def test_regions_of_fixtures(name: str) -> None:
    with read(FIXTURES / name) as bundle:
        for path, expected in VALUES[name].items():
            array = bundle[path]
            assert np.asarray(array).tobytes() == expected.tobytes()
            if expected.size:
                last = tuple(n - 1 for n in expected.shape)
                assert np.asarray(array[last]).tobytes() == expected[last].tobytes()
                assert np.array_equal(array[0], expected[0], equal_nan=expected.dtype.kind in "fc")


def test_plain_numbers_have_an_extent() -> None:
    """Then a conversion is a copy from file to file; up to 4 bytes lie in a tag, and are held."""
    with read(FIXTURES / "octave_v6.mat") as bundle:
        copied = {array.name for array in bundle.arrays if array.extent is not None}

    assert copied == {"a/1/value", "a/2/value", "d", "e", "f4", "i32", "i64", "k/1", "k/2",
                      "k/4/1", "nd", "s/x", "s/w/1", "u64"}  # fmt: skip


def test_what_paths_do_not_say_is_in_the_namespace() -> None:
    with read(FIXTURES / "octave_v7.mat") as bundle:
        own = bundle.formats["mat"]

    assert own["version"] == "7"
    assert own["header"].startswith("MATLAB 5.0 MAT-file, written by Octave 7.3.0")
    assert own["values"] == {
        "a": {"class": "struct", "dims": [1, 2], "fields": ["name", "value"]},
        "k": {"class": "cell", "dims": [2, 2]},
        "k/4": {"class": "cell", "dims": [1, 1]},
        "s/w": {"class": "cell", "dims": [1, 2]},
    }


# --- files of MATLAB ----------------------------------------------------------------------------

TYPES = {"double": "f8", "single": "f4", "logical": "?"}
TYPES |= {f"{k}{8 * n}": f"<{k[0]}{n}" for k in ("int", "uint") for n in (1, 2, 4, 8)}

# File of the corpus -> error and words of its message
REFUSED = {
    "mat/matjl_v7_empty_struct_arrays.mat": (Unsupported, "'s00' (empty), 's01' (empty)"),
    "mat/scipy_corrupted_zlib_checksum.mat": (Corrupt, "incorrect data check"),
    "mat/scipy_malformed1.mat": (Corrupt, "variable is cut off, at byte 128"),
    "mat/scipy_testfunc_7.4_GLNX86.mat": (Unsupported, "'testfunc' (function_handle)"),
}


def corpus_facts(corpus: Callable[..., Path], folder: str) -> dict[str, Any]:
    facts = json.loads((corpus("mat-hdf5") / "expected.json").read_text())
    return {name: known for name, known in facts.items() if name.startswith(folder)}


@pytest.mark.parametrize("name", REFUSED)
def test_corpus_refused(name: str, corpus: Callable[..., Path]) -> None:
    error, words = REFUSED[name]
    path = corpus("mat-hdf5") / name

    with pytest.raises(error) as raised:
        decode_all(path)

    assert words in str(raised.value)
    assert str(path) in str(raised.value)


def test_corpus_values_in_the_class_of_matlab(corpus: Callable[..., Path]) -> None:
    """The expected hashes are of what scipy returned, in the type of the storage."""
    known = corpus_facts(corpus, "mat/")
    assert len(known) == 53
    compared = 0
    for name, facts in known.items():
        if name in REFUSED or "error" in facts:
            continue
        with read(corpus("mat-hdf5") / name) as bundle:
            assert {path.split("/")[0] for path in bundle.names} == set(facts), name
            for variable, fact in facts.items():
                compared += compare(bundle, variable, fact)
    assert compared == 121


def compare(bundle: Bundle, variable: str, fact: dict[str, Any]) -> bool:
    """Compare one variable with what scipy returned; False for structs and cells."""
    told = fact.get("scipy_dense") or fact["scipy"]
    if told["dtype"] == "|O" or told["dtype"].startswith("["):
        assert variable not in bundle.names
        return False
    values = decode(bundle[variable])
    if fact["matlab_class"] == "char":
        strings = 1 if told["shape"] == [0] and values.shape == (1,) else told["shape"][0]
        assert values.shape == (strings,)
        assert values.dtype == told["dtype"].replace("U0", "U1")
        return True
    assert list(values.shape) == told["shape"]
    if not fact.get("sparse") and fact["matlab_class"] != "sparse":
        is_complex = np.dtype(told["dtype"]).kind == "c"
        assert values.dtype == (told["dtype"] if is_complex else TYPES[fact["matlab_class"]])
    stored = values.astype(np.dtype(told["dtype"]).newbyteorder("<"))
    digest = hashlib.sha256(np.ascontiguousarray(stored).tobytes()).hexdigest()
    assert digest.startswith(told["sha256_C_LE"]), (bundle.path, variable)
    return True


def test_corpus_values_of_v73(corpus: Callable[..., Path]) -> None:
    """The expected hashes are of the datasets as h5py reads them."""
    known = corpus_facts(corpus, "mat73/")
    assert len(known) == 13
    compared = 0
    for name, facts in known.items():
        if name in REFUSED:
            continue
        with read(corpus("mat-hdf5") / name) as bundle:
            for path, fact in facts.items():
                compared += compare_dataset(bundle, path.strip("/"), fact)
    assert compared == 40


def compare_dataset(bundle: Bundle, name: str, fact: dict[str, Any]) -> bool:
    """Compare one array with its dataset; False for those that are no array here."""
    cls = str(fact.get("matlab_class", ""))[2:-1]
    if name not in bundle or "sha256_C_LE" not in fact or cls == "string":
        return False
    array = bundle[name]
    if cls == "char":
        return array.element.descr.startswith("<U")
    assert dtype_of(little(array.element)) == np.dtype(TYPES[cls])
    if array.count == 0:
        return int(np.prod([int(n) for n in fact["first"]])) == 0
    assert list(array.shape) == fact["matlab_shape"]
    stored = decode(array).T.astype(fact["dtype"])
    digest = hashlib.sha256(np.ascontiguousarray(stored).tobytes()).hexdigest()
    assert digest.startswith(fact["sha256_C_LE"]), name
    return True


def test_v73_and_v7_of_the_same_variables(corpus: Callable[..., Path]) -> None:
    """JuliaIO keeps the same variables, saved by MATLAB in both versions."""
    for pair in ("array", "simple", "sparse", "string"):
        old = read(corpus("mat-hdf5", "mat", f"matjl_v7_{pair}.mat"))
        new = read(corpus("mat-hdf5", "mat73", f"matjl_{pair}.mat"))
        with old, new:
            assert set(old.names) == set(new.names)
            for array in old.arrays:
                if array.name == "sparse_random":  # another matrix in each file
                    continue
                assert_same(new[array.name], decode(array))
                assert new[array.name].meta.formats == array.meta.formats


def test_v73_containers(corpus: Callable[..., Path]) -> None:
    with read(corpus("mat-hdf5", "mat73", "matjl_struct.mat")) as bundle:
        assert bundle.names == ["s/a", "s/b", "s/c", "s2/1/a", "s2/2/a"]
        assert decode(bundle["s2/2/a"]) == 2
        assert bundle.formats["mat"]["values"]["s2"]["dims"] == [1, 2]
    with read(corpus("mat-hdf5", "mat73", "matjl_cell.mat")) as bundle:
        assert bundle.names == ["cell/1", "cell/2", "cell/3", "cell/4/1", "cell/4/2"]
        assert decode(bundle["cell/4/2"]).tolist() == ["string2"]
    with read(corpus("mat-hdf5", "mat73", "matio_test_file_hdf5.mat")) as bundle:
        own = bundle.formats["mat"]["values"]["structure"]
        assert own == {"class": "struct", "dims": [2, 3], "fields": ["name", "data", "data_type"]}


# --- traps --------------------------------------------------------------------------------------


def level5(*variables: bytes, order: str = "<") -> bytes:
    """Return a v5 file of these elements."""
    mark = struct.pack(order + "H", 0x0100) + (b"IM" if order == "<" else b"MI")
    return b"MATLAB 5.0 MAT-file, by hand".ljust(124) + mark + b"".join(variables)


def element(code: int, data: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "2I", code, len(data)) + data + bytes(-len(data) % 8)


def matrix(
    cls: int,
    dims: tuple[int, ...],
    name: bytes,
    *parts: bytes,
    flags: int = 0,
    nzmax: int = 0,
    order: str = "<",
) -> bytes:
    """Return a variable; `parts` are whole elements."""
    body = element(6, struct.pack(order + "2I", cls | flags, nzmax), order)
    body += element(5, struct.pack(f"{order}{len(dims)}i", *dims), order)
    body += element(1, name, order) + b"".join(parts)
    return element(14, body, order)


def deflated(variable: bytes, order: str = "<") -> bytes:
    packed = zlib.compress(variable)
    return struct.pack(order + "2I", 15, len(packed)) + packed


def saved(tmp_path: Path, *variables: bytes, order: str = "<") -> Path:
    path = tmp_path / "x.mat"
    path.write_bytes(level5(*variables, order=order))
    return path


X = matrix(6, (1, 1), b"x", element(9, struct.pack("<d", 1.5)))
STORAGE = {
    "int8": (1, "b"), "uint8": (2, "B"), "int16": (3, "h"), "uint16": (4, "H"), "int32": (5, "i"),
    "uint32": (6, "I"), "single": (7, "f"), "double": (9, "d"),
}  # fmt: skip


@every("packed", [False, True])
@every("order", "<>")
@every("stored", STORAGE)
def test_trap_the_class_decides_and_not_the_storage(
    stored: str, order: str, packed: bool, tmp_path: Path
) -> None:
    code, letter = STORAGE[stored]
    data = struct.pack(f"{order}4{letter}", 1, 2, 3, 100)
    variable = matrix(6, (2, 2), b"x", element(code, data, order), order=order)
    path = saved(tmp_path, deflated(variable, order) if packed else variable, order=order)

    with read(path) as bundle:
        assert_same(bundle["x"], np.array([[1.0, 3], [2, 100]]))
        assert (bundle["x"].extent is None) == (packed or stored != "double")
        assert bundle["x"].storage["class"] == "double"


@pytest.mark.parametrize(
    ("cls", "code", "letter", "values"),
    [
        (8, 9, "d", [-128.0, 127.0]),  # int8 stored as double, to its borders
        (14, 9, "d", [-(2.0**63), 2.0**62]),  # int64 stored as double
        (6, 12, "q", [-(2**53), 2**53]),  # double stored as int64
        (7, 5, "i", [-(2**24), 2**24]),  # single stored as int32
    ],
)
def test_numbers_up_to_the_border_of_their_class(
    cls: int, code: int, letter: str, values: list[float], tmp_path: Path
) -> None:
    path = saved(tmp_path, matrix(cls, (1, 2), b"x", element(code, struct.pack(f"<2{letter}",
                                                                               *values))))  # fmt: skip
    with read(path) as bundle:
        assert decode(bundle["x"]).tolist() == [values]


@pytest.mark.parametrize(
    ("cls", "code", "letter", "value"),
    [
        (6, 12, "q", 2**53 + 1),  # a double would round it
        (6, 12, "q", 2**63 - 1),
        (6, 13, "Q", 2**64 - 1),
        (7, 5, "i", 2**24 + 1),
        (8, 9, "d", 128.0),
        (14, 9, "d", 2.0**63),
        (14, 9, "d", float("nan")),
    ],
)
def test_numbers_that_their_class_would_change_are_refused(
    cls: int, code: int, letter: str, value: float, tmp_path: Path
) -> None:
    data = element(code, struct.pack(f"<{letter}", value))
    with (
        read(saved(tmp_path, matrix(cls, (1, 1), b"x", data))) as bundle,
        pytest.raises(Corrupt, match=r"a value does not fit the class .*, at variable 'x'"),
    ):
        decode(bundle["x"])


def test_signalling_nans_of_another_width_are_nans(tmp_path: Path) -> None:
    """Silently: the processor raises a flag for them that numpy turns into a warning."""
    narrow = matrix(6, (1, 1), b"x", element(7, struct.pack("<I", 0x7F800001)))
    wide = matrix(7, (1, 1), b"y", element(9, struct.pack("<Q", 0x7FF0000000000001)))
    with read(saved(tmp_path, narrow, wide)) as bundle:
        assert np.isnan(decode(bundle["x"])).all()
        assert np.isnan(decode(bundle["y"])).all()


@pytest.mark.parametrize("packed", [False, True])
def test_trap_the_imaginary_part_is_kept(packed: bool, tmp_path: Path) -> None:
    """Also where the two parts are stored in different types, and inside structs."""
    parts = (element(9, struct.pack("<3d", 1.5, 2, 3)), element(1, struct.pack("3b", -1, 0, 9)))
    number = matrix(6, (1, 3), b"x", *parts, flags=0x0800)
    inside = matrix(6, (1, 3), b"", *parts, flags=0x0800)
    names = element(5, struct.pack("<i", 32)) + element(1, b"f".ljust(32, b"\0"))
    variables = (number, matrix(2, (1, 1), b"s", names, inside))
    path = saved(tmp_path, *(deflated(v) if packed else v for v in variables))

    with read(path) as bundle:
        for name in ("x", "s/f"):
            assert_same(bundle[name], row(1.5 - 1j, 2, 3 + 9j, dtype="c16"))
            assert bundle[name][0, 2] == 3 + 9j


def test_complex_of_a_large_compressed_variable(tmp_path: Path) -> None:
    """Its two parts are decoded side by side, in bounded memory."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal((300, 700)) + 1j * rng.standard_normal((300, 700))
    scipy.io.savemat(tmp_path / "x.mat", {"x": values}, do_compression=True)

    with read(tmp_path / "x.mat", max_memory=1 << 20) as bundle:
        assert_same(bundle["x"], values, max_bytes=1000)
        with pytest.raises(TooLarge, match="variable 'x' whole in memory needs 3360000 bytes"):
            bundle["x"].data[0]


@pytest.mark.parametrize("cls", [10, 13])
def test_complex_integers_become_complex_doubles(cls: int, tmp_path: Path) -> None:
    code, letter = {10: (3, "h"), 13: (6, "I")}[cls]
    parts = [element(code, struct.pack(f"<2{letter}", *pair)) for pair in ((1, 2), (3, 4))]
    path = saved(tmp_path, matrix(cls, (1, 2), b"x", *parts, flags=0x0800))

    with read(path) as bundle:
        assert_same(bundle["x"], row(1 + 3j, 2 + 4j, dtype="c16"))
        assert bundle["x"].meta.formats["mat"]["class"] == {10: "int16", 13: "uint32"}[cls]


def test_complex_int64_is_named_and_left_out(tmp_path: Path) -> None:
    parts = [element(12, struct.pack("<q", 1))] * 2
    with read(saved(tmp_path, X, matrix(14, (1, 1), b"y", *parts, flags=0x0800))) as bundle:
        assert bundle.names == ["x"]
        assert "'y' of class complex int64" in bundle.notes[0]


def test_trap_logical_is_bool_whatever_its_bytes(tmp_path: Path) -> None:
    variable = matrix(9, (1, 4), b"x", element(2, bytes((0, 1, 2, 255))), flags=0x0200)
    with read(saved(tmp_path, variable)) as bundle:
        assert_same(bundle["x"], row(False, True, True, True, dtype="?"))


def test_logical_of_matlab_5_is_a_double(tmp_path: Path) -> None:
    data = element(9, struct.pack("<2d", 0, 1))
    with read(saved(tmp_path, matrix(6, (1, 2), b"x", data, flags=0x0200))) as bundle:
        assert_same(bundle["x"], row(False, True, dtype="?"))


def opaque(name: bytes, cls: bytes) -> bytes:
    """Return a variable of a classdef class, as MATLAB writes it."""
    handle = matrix(13, (6, 1), b"", element(6, struct.pack("<6I", 0xDD000000, 2, 1, 1, 1, 1)))
    body = element(6, struct.pack("<2I", 17, 0)) + element(1, name) + element(1, b"MCOS")
    return element(14, body + element(1, cls) + handle)


def test_trap_opaque_variables_are_each_named_and_block_nothing(tmp_path: Path) -> None:
    function = matrix(16, (1, 1), b"f", matrix(2, (1, 1), b""))
    variables = (opaque(b"s", b"Ship"), X, deflated(opaque(b"t", b"my.Tank")), function)

    with read(saved(tmp_path, *variables)) as bundle:
        assert bundle.names == ["x"]
        assert [note.split(" was left out")[0] for note in bundle.notes] == [
            "variable 's' of class Ship",
            "variable 't' of class my.Tank",
            "variable 'f' of class function_handle",
        ]


def test_a_string_without_the_data_of_classes_cannot_be_read(tmp_path: Path) -> None:
    variables = (opaque(b"s", b"string"), X, deflated(opaque(b"t", b"table")))

    with read(saved(tmp_path, *variables)) as bundle:
        assert bundle.names == ["s", "x", "t"]
        for name in "st":
            assert f"has no data of classes, to which a variable refers, at variable '{name}'" in (
                str(bundle[name].problem)
            )


def test_trap_one_opaque_in_a_cell_leaves_the_others(tmp_path: Path) -> None:
    one = matrix(6, (1, 1), b"", element(9, struct.pack("<d", 7)))
    with read(saved(tmp_path, matrix(1, (1, 3), b"c", one, opaque(b"", b"Ship"), one))) as bundle:
        assert bundle.names == ["c/1", "c/3"]
        assert "'c/2' of class Ship was left out" in bundle.notes[0]
        assert bundle.formats["mat"]["values"]["c"]["dims"] == [1, 3]


def test_objects_that_are_structs_are_read_as_such(
    tmp_path: Path, corpus: Callable[..., Path]
) -> None:
    path = corpus("mat-hdf5", "mat", "scipy_testobject_7.4_GLNX86.mat")
    known = scipy.io.loadmat(path)["testobject"]
    with read(path) as bundle:
        assert bundle.names == [f"testobject/{name}" for name in known.dtype.names]
        for name in known.dtype.names:
            assert decode(bundle[f"testobject/{name}"]).tolist() == known[0, 0][name].tolist()
        assert (
            bundle.formats["mat"]["values"]["testobject"]["object"] == known.classname == "inline"
        )
        assert "'testobject' of class inline was read as the struct" in bundle.notes[0]

    field = element(5, struct.pack("<i", 8)) + element(1, b"a".ljust(8, b"\0"))
    body = element(1, b"point") + field
    objects = matrix(3, (1, 2), b"p", body, matrix(6, (1, 1), b"", doubles(1)),
                     matrix(6, (1, 1), b"", doubles(2)))  # fmt: skip
    other = matrix(3, (1, 1), b"q", element(1, b"strange"), element(6, bytes(24)))
    for variables in ((objects, other, X), (deflated(objects), deflated(other), deflated(X))):
        with read(saved(tmp_path, *variables)) as bundle:
            assert bundle.names == ["p/1/a", "p/2/a", "x"]
            assert bundle.formats["mat"]["values"]["p"]["object"] == "point"
            assert "'q' of class strange was left out" in bundle.notes[1]


def test_attributes_of_v73_in_dense_storage(tmp_path: Path) -> None:
    """Other programs write attributes of their own beside MATLAB's, more than a header holds."""
    with h5py.File(tmp_path / "x.mat", "w", userblock_size=512, libver="latest") as file:
        more = {f"Python.{number}": number for number in range(12)}
        x = file.create_dataset("x", data=np.array([[1], [0]], "u1"))
        tagged(x, b"logical", **more, MATLAB_int_decode=np.int32(1))
        empty = file.create_dataset("e", data=np.array([0, 3], "u8"))
        tagged(empty, b"single", **more, MATLAB_empty=np.uint8(1))
        s = tagged(file.create_group("s"), b"struct", **more)
        tagged(s.create_dataset("f", data=[[2.5]]), b"double", **more)
    with (tmp_path / "x.mat").open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM")

    with read(tmp_path / "x.mat") as bundle:
        kinds = {array.name: (array.dtype.name, array.shape) for array in bundle.arrays}
        assert kinds == {
            "x": ("bool", (1, 2)), "e": ("float32", (0, 3)), "s/f": ("float64", (1, 1))
        }  # fmt: skip
        assert as_ndarray(bundle["x"]).tolist() == [[True], [False]]


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"fletcher32": True}])
@pytest.mark.parametrize("pair", [False, True])
def test_compressed_numbers_of_v73(options: dict[str, bool], pair: bool, tmp_path: Path) -> None:
    """Every element as h5py reads it, whole and in regions; some chunks were never written."""
    code = np.dtype([("real", "<f4"), ("imag", "<f4")]) if pair else np.dtype("<i2")
    raw = np.random.default_rng(3).integers(0, 90, (41, 30, code.itemsize), np.uint8)
    numbers = raw.view(code)[..., 0]
    with h5py.File(tmp_path / "x.mat", "w", userblock_size=512) as file:
        x = file.create_dataset("x", (41, 30), code, chunks=(8, 7), compression=3, **options)
        x[:30] = numbers[:30]
        tagged(x, b"single" if pair else b"int16")
    with (tmp_path / "x.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM")
    with h5py.File(tmp_path / "x.mat") as file:
        told = file["x"][...]
    expected = told["real"] + 1j * told["imag"] if pair else told

    with read(tmp_path / "x.mat") as bundle:
        array = bundle["x"]
        assert array.dims == (30, 41)
        assert as_ndarray(array).tobytes() == expected.astype(array.dtype).tobytes()
        for key in ((3, 4), (slice(5, 40, 3), -1), (..., slice(None, None, -2)), 40):
            assert np.array_equal(array.data[key], expected[key])


def test_objects_of_v73_that_are_structs_are_read_as_such(tmp_path: Path) -> None:
    def fill(file: h5py.File) -> None:
        group = tagged(file.create_group("o"), b"inline", MATLAB_object_decode=np.int32(2))
        tagged(group.create_dataset("a", data=[[1.5]]), b"double")
        handle = tagged(file.create_group("f"), b"function_handle", MATLAB_object_decode=1)
        tagged(handle.create_dataset("a", data=[[1.5]]), b"double")

    with read(v73(tmp_path / "x.mat", fill)) as bundle:
        assert bundle.names == ["o/a"]
        assert bundle.formats["mat"]["values"]["o"]["object"] == "inline"
        assert len(bundle.notes) == 2


def test_subsystem_of_classes_is_no_variable(tmp_path: Path) -> None:
    """Unnamed bytes at the place that the header gives hold what opaque variables refer to."""
    data = level5(X, matrix(9, (1, 3), b"", element(2, b"abc")))
    place = 128 + len(X)
    path = tmp_path / "x.mat"
    path.write_bytes(data[:116] + struct.pack("<Q", place) + data[124:])
    with read(path) as bundle:
        assert bundle.names == ["x"]
        assert bundle.notes == []


def test_trap_shapes_are_those_of_matlab(tmp_path: Path) -> None:
    """Two axes at least, trailing ones of length 1 as the file has them, nothing is squeezed."""
    data = element(9, struct.pack("<6d", *range(6)))
    for dims in ((6, 1), (1, 6), (1, 6, 1), (2, 3, 1, 1), (1, 1, 6), (3, 2)):
        with read(saved(tmp_path, matrix(6, dims, b"x", data))) as bundle:
            assert bundle["x"].shape == dims
            assert_same(bundle["x"], np.arange(6.0).reshape(dims, order="F"))


def test_trap_elements_keep_their_index_in_every_version(corpus: Callable[..., Path]) -> None:
    expected = np.array([[[1.0, 7], [3, 9]], [[2, 8], [4, 10]]])
    for name in ("mat/scipy_test3dmatrix_7.4_GLNX86.mat", "mat/scipy_test3dmatrix_6.1_SOL2.mat"):
        with read(corpus("mat-hdf5") / name) as bundle:
            assert np.array_equal(decode(bundle.arrays[0])[:, :2, :2], expected)


def test_trap_names_that_begin_with_an_underscore_are_read(tmp_path: Path) -> None:
    one = element(9, struct.pack("<d", 1))
    names = element(5, struct.pack("<i", 32)) + element(1, b"_f".ljust(32, b"\0"))
    field = matrix(6, (1, 1), b"", one)
    variables = (matrix(6, (1, 1), b"_x", one), matrix(2, (1, 1), b"s", names, field))
    with read(saved(tmp_path, *variables)) as bundle:
        assert bundle.names == ["_x", "s/_f"]


def test_names_that_are_no_part_of_a_path_are_noted(tmp_path: Path) -> None:
    one = element(9, struct.pack("<d", 1))
    variables = [matrix(6, (1, 1), name, one) for name in (b"a/b", b"x", b"x", b"", b"caf\xe9")]
    with read(saved(tmp_path, *variables)) as bundle:
        assert bundle.names == ["a%2Fb", "x", "x~2", "unnamed", "café"]
        assert len(bundle.notes) == 3


def test_names_taken_again_get_the_next_free_number(tmp_path: Path) -> None:
    one = element(9, struct.pack("<d", 1))
    given = (b"x", b"x~3", b"x", b"x", b"x", b"x~3", b"x")
    with read(saved(tmp_path, *(matrix(6, (1, 1), name, one) for name in given))) as bundle:
        assert bundle.names == ["x", "x~3", "x~2", "x~4", "x~5", "x~3~2", "x~6"]


def test_many_variables_of_one_name_ask_once_for_each_number() -> None:
    asked = []

    class Counting(set[str]):
        def __contains__(self, name: object) -> bool:
            asked.append(name)
            return super().__contains__(name)

    names = _Names()
    names._used = Counting()
    assert [names.add("a") for _ in range(1000)][-1] == "a~1000"
    assert len(asked) < 3000


def test_global_variables(tmp_path: Path) -> None:
    variable = matrix(6, (1, 1), b"x", element(9, struct.pack("<d", 1)), flags=0x0400)
    with read(saved(tmp_path, variable)) as bundle:
        assert bundle["x"].meta.formats == {"mat": {"global": True}}


# --- char ---------------------------------------------------------------------------------------


def units(text: str) -> list[int]:
    raw = text.encode("utf-16-le", "surrogatepass")
    return list(struct.unpack(f"<{len(raw) // 2}H", raw))


def char(name: bytes, rows: list[list[int]], code: int = 17) -> bytes:
    """Return a char array of rows of UTF-16 units, stored column by column."""
    flat = [row[i] for i in range(len(rows[0])) for row in rows]
    return matrix(4, (len(rows), len(rows[0])), name, element(code, struct.pack(f"<{len(flat)}H",
                  *flat)))  # fmt: skip


CHARS = {
    "ascii": ["abc"],
    "rows": ["ab ", "x\0\0", "   "],
    "accents": ["é日", "ß "],
    "beyond_16_bits": ["a😀b"],
    "beyond_in_some_rows": ["😀b", "xyz", "c😀"],
    "lone_surrogates": ["a\ud800", "\udc00b"],
    "high_before_a_pair": ["\ud800\U0001f600"],
    "low_then_high": ["\ude00\ud83d"],
}


@pytest.mark.parametrize("code", [4, 17])
@pytest.mark.parametrize("kind", CHARS)
def test_char_rows_become_strings(kind: str, code: int, tmp_path: Path) -> None:
    rows = [units(text) for text in CHARS[kind]]
    with read(saved(tmp_path, char(b"x", rows, code))) as bundle:
        array = bundle["x"]
        got = decode(array)
        assert array.shape == (len(rows),)
        assert array.element.descr == f"<U{len(rows[0])}"
        assert array.meta.formats["mat"] == {"class": "char", "columns": len(rows[0])}
        for text, expected in zip(got, CHARS[kind], strict=True):
            assert text == expected.rstrip("\0")
    with read(saved(tmp_path, char(b"x", rows, code)), char="units") as bundle:
        assert_same(bundle["x"], np.array(rows, "<u2"))
        assert bundle["x"].meta.formats["mat"] == {"class": "char"}


def test_pages_of_char_arrays(tmp_path: Path) -> None:
    """The last axis is the string, as in SciPy: 2 x 2 x 3 is (2, 2) strings of 3."""
    text = np.array([["abc", "ghi"], ["def", "jkl"]])
    flat = [ord(text[r, p][c]) for c in range(3) for p in range(2) for r in range(2)]
    variable = matrix(4, (2, 2, 3), b"x", element(4, struct.pack("<12H", *flat)))
    path = saved(tmp_path, variable)
    with read(path) as bundle:
        assert_same(bundle["x"], text)
    assert scipy.io.loadmat(path)["x"].tolist() == text.tolist()


@pytest.mark.parametrize("shape", [(3,), (1, 2), (2, 2), (1, 2, 1), (2, 3, 4)])
@pytest.mark.parametrize("width", [1, 3])
def test_texts_of_scipy_and_for_scipy(shape: tuple[int, ...], width: int, tmp_path: Path) -> None:
    """Element [i, j] of an array of texts is the same element for both, whatever the width."""
    count = int(np.prod(shape))
    words = ["".join(chr(97 + (5 * n + k) % 23) for k in range(width)) for n in range(count)]
    texts = np.array(words).reshape(shape)
    scipy.io.savemat(tmp_path / "scipy.mat", {"x": texts})
    seen = scipy.io.loadmat(tmp_path / "scipy.mat")["x"]
    assert raconvert.read(tmp_path / "scipy.mat", "x").tolist() == seen.tolist()
    for version in ("6", "7", "7.3"):
        path = tmp_path / f"{version}.mat"
        raconvert.write(path, {"x": texts}, out_opts={"version": version}, verify=True)
        assert raconvert.read(path, "x").tolist() == texts.tolist()
        if version != "7.3":
            assert scipy.io.loadmat(path)["x"].tolist() == texts.tolist()


def test_utf8_text_of_matlab(tmp_path: Path) -> None:
    for text, count in (("thé", 3), ("日本", 2), ("a😀", 3), ("a😀", 2), ("abc", 3)):
        variable = matrix(4, (1, count), b"x", element(16, text.encode()))
        with read(saved(tmp_path, variable)) as bundle:
            assert decode(bundle["x"]).tolist() == [text]


def test_utf8_with_the_width_of_its_bytes(tmp_path: Path) -> None:
    """As matio and Octave write it: every row is decoded, also where another one is longer then."""
    rows = ["é1".encode(), b"abc"]
    flat = bytes(row[i] for i in range(3) for row in rows)
    with read(saved(tmp_path, matrix(4, (2, 3), b"x", element(16, flat)))) as bundle:
        assert decode(bundle["x"]).tolist() == ["é1", "abc"]
    pages = np.frombuffer("aé".encode() + b"xyz", "u1").reshape(2, 3).T
    with read(saved(tmp_path, matrix(4, (1, 2, 3), b"x", element(16, pages.tobytes())))) as bundle:
        assert decode(bundle["x"]).tolist() == [["aé", "xyz"]]
    for data in (b"\xe9t\xe9", b"abc"):  # no UTF-8 as a whole: the units that they are
        with read(saved(tmp_path, matrix(4, (1, 3), b"x", element(16, data)))) as bundle:
            assert decode(bundle["x"]).tolist() == [data.decode("latin-1")]
    for code in (2, 16):
        data = "é1".encode()
        with read(saved(tmp_path, matrix(4, (1, 3), b"x", element(code, data)))) as bundle:
            assert decode(bundle["x"]).tolist() == ["é1" if code == 16 else "Ã©1"]
        with read(saved(tmp_path, matrix(4, (1, 3), b"x", element(code, data))), char="units") as b:
            assert decode(b["x"]).tolist() == [list(data)]


def test_utf8_rows_of_octave(tmp_path: Path, octave: Callable[..., str]) -> None:
    octave("a='thé qüîck'; b=['é1';'abc']; c='日本'; save -v6 x.mat a b c; save -v7 y.mat a b c",
           cwd=tmp_path)  # fmt: skip
    for name in ("x.mat", "y.mat"):
        with read(tmp_path / name) as bundle:
            found = {array.name: decode(array).tolist() for array in bundle.arrays}
        assert found == {"a": ["thé qüîck"], "b": ["é1", "abc"], "c": ["日本"]}


def packed_pairs(text: str) -> list[int]:
    """Return text as MATLAB writes it with -v6: characters of two bytes are the two, as a unit."""
    return [int.from_bytes(character.encode(), "big") for character in text]


def test_pairs_of_utf8_in_one_unit(tmp_path: Path, corpus: Callable[..., Path]) -> None:
    path = corpus("review", "wrong", "mat_v6_accented_string.mat")
    with read(path) as bundle:
        assert decode(bundle["accented_string"]).tolist() == ["thé qüîck browñ fòx"]
        assert decode(bundle["simple_string"]).tolist() == ["the quick brown fox"]
        assert ["UTF-8" in note for note in bundle.notes] == [True]
    with read(path, char="units") as bundle:
        assert decode(bundle["accented_string"])[0, 2] == 0xC3A9
        assert bundle.notes == []


@given(st.text(st.characters(max_codepoint=0x7FF, exclude_characters="\0"), min_size=1))
def test_any_pairs_of_utf8(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    text = "".join(c for c in text if not 0x80 <= ord(c) < 0x100) or "x"  # no unit above 255 tells
    path = saved(tmp_path_factory.mktemp("mat"), char(b"x", [packed_pairs(f"{text}é")], code=4))
    with read(path) as bundle:
        assert decode(bundle["x"]).tolist() == [f"{text}é"]


def test_units_that_are_no_pairs_of_utf8_are_utf16(tmp_path: Path) -> None:
    """One of them tells, as does the type of UTF-16."""
    for text, code in (("쎩日", 4), ("쎩", 17), ("é쎩", 17), ("\uc1a9", 4), ("\uc329", 4)):
        with read(saved(tmp_path, char(b"x", [units(text)], code))) as bundle:
            assert decode(bundle["x"]).tolist() == [text]


def test_text_of_another_length_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Corrupt, match="another length than its dims say, at variable 'x'"):
        decode(read(saved(tmp_path, matrix(4, (1, 5), b"x", element(16, b"abc"))))["x"])
    with pytest.raises(Corrupt, match="another length than the dims say"):
        read(saved(tmp_path, matrix(4, (1, 5), b"x", element(17, b"abcd"))))


@pytest.mark.parametrize(("dims", "strings"), [((0, 0), 0), ((1, 0), 1), ((3, 0), 3), ((0, 4), 0)])
def test_empty_char(dims: tuple[int, int], strings: int, tmp_path: Path) -> None:
    with read(saved(tmp_path, matrix(4, dims, b"x", element(17, b"")))) as bundle:
        assert decode(bundle["x"]).tolist() == [""] * strings
        assert bundle["x"].meta.formats["mat"]["columns"] == dims[1]


# --- sparse -------------------------------------------------------------------------------------


def sparse(
    name: bytes, rows: int, ir: list[int], jc: list[int], *parts: bytes, flags: int = 0
) -> bytes:
    places = [element(5, struct.pack(f"<{len(v)}i", *v)) for v in (ir, jc)]
    dims = (rows, len(jc) - 1)
    return matrix(5, dims, name, *places, *parts, flags=flags, nzmax=len(ir))


def doubles(*values: float) -> bytes:
    return element(9, struct.pack(f"<{len(values)}d", *values))


def test_sparse_is_dense_in_bounded_memory(tmp_path: Path) -> None:
    path = saved(tmp_path, sparse(b"x", 100_000, [5, 99_999], [0, 1, 1, 2], doubles(2, -0.0)))
    with read(path, max_memory=3 << 20) as bundle:
        total = 0
        for block in blocks(bundle["x"], 1 << 16):
            assert block.nbytes <= 1 << 16
            total += block.size
        assert total == 300_000
    with read(path) as bundle:
        expected = np.zeros((100_000, 3))
        expected[5, 0], expected[99_999, 2] = 2, -0.0
        assert_same(bundle["x"], expected)


def test_sparse_beyond_the_memory_is_refused_and_blocks_nothing(tmp_path: Path) -> None:
    path = saved(tmp_path, X, sparse(b"s", 2**31 - 1, [7], [0, *[1] * 1000], doubles(1)))
    with read(path) as bundle:
        assert decode(bundle["x"]) == 1.5
        with pytest.raises(TooLarge, match=r'in_opts=\{"sparse": "parts"\}'):
            decode(bundle["s"])
    with read(path, sparse="parts") as bundle:
        assert bundle.names == ["x", "s/data", "s/ir", "s/jc"]
        assert decode(bundle["s/ir"]).tolist() == [7]
        assert bundle.groups["s"]["shape"] == [2**31 - 1, 1000]


def test_sparse_parts_are_the_same_in_every_version(corpus: Callable[..., Path]) -> None:
    old = read(corpus("mat-hdf5", "mat", "matjl_v7_sparse.mat"), sparse="parts")
    new = read(corpus("mat-hdf5", "mat73", "matjl_sparse.mat"), sparse="parts")
    with old, new:
        for name in ("sparse_eye", "sparse_complex", "sparse_logical", "sparse_zeros"):
            count = int(decode(old[f"{name}/jc"])[-1])
            for part in ("data", "ir", "jc"):
                expected, got = (decode(b[f"{name}/{part}"]) for b in (old, new))
                assert got.dtype == expected.dtype
                stop = count if part != "jc" else None
                assert got[:stop].tolist() == expected[:stop].tolist()


def test_sparse_parts_of_level_4(tmp_path: Path, octave: Callable[..., str]) -> None:
    """Rows, columns and values become compressed columns, as scipy has them."""
    octave("s = sparse([3 1 2 3], [1 4 1 4], [1.5 -2 3 4], 5, 6); c = s * (1 + 2i); save -v4 x.mat",
           cwd=tmp_path)  # fmt: skip
    known = scipy.io.loadmat(tmp_path / "x.mat")
    with read(tmp_path / "x.mat", sparse="parts") as bundle:
        for name in ("s", "c"):
            matrix = known[name].tocsc()
            matrix.sort_indices()
            found = {part: bundle[f"{name}/{part}"] for part in ("data", "ir", "jc")}
            assert found["jc"].shape == (7,)
            assert decode(found["jc"]).tolist() == matrix.indptr.tolist()
            assert decode(found["ir"]).tolist() == matrix.indices.tolist()
            assert decode(found["data"]).tolist() == matrix.data.tolist()


def test_sparse_elements_need_memory_that_is_counted_first(tmp_path: Path) -> None:
    count = 1 << 16
    parts = [element(5, np.arange(count, dtype="<i4").tobytes()),
             element(5, struct.pack("<2i", 0, count)), element(9, bytes(8 * count))]  # fmt: skip
    path = saved(tmp_path, matrix(5, (count, 1), b"s", *parts))
    with read(path, max_memory=2 << 20) as bundle, pytest.raises(TooLarge, match=r"variable 's'"):
        next(iter(blocks(bundle["s"])))
    with read(path, max_memory=8 << 20) as bundle:
        assert not decode(bundle["s"]).any()


def test_names_of_level_4_up_to_their_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    for length, is_read in ((1, True), (4096, True), (4097, False)):
        name = b"n" * (length - 1) + b"\0"
        path.write_bytes(struct.pack("<5i", 0, 1, 1, 0, length) + name + struct.pack("<d", 1.5))
        if not is_read:
            with pytest.raises(Corrupt, match="wrong level 4 header"):
                read(path)
            continue
        with read(path) as bundle:
            assert bundle.names == [name[:-1].decode() or "unnamed"]


def test_sparse_logical_in_the_three_ways_it_is_written(tmp_path: Path) -> None:
    """MATLAB: bytes under the type double; Octave: the class of a full matrix, and doubles."""
    ir, jc = [0, 1, 1], [0, 1, 2, 3]
    places = [element(5, struct.pack(f"<{len(v)}i", *v)) for v in (ir, jc)]
    variables = {
        "matlab": sparse(b"x", 2, ir, jc, element(9, b"\1\1\1"), flags=0x0200),
        "honest": sparse(b"x", 2, ir, jc, element(2, b"\1\1\1"), flags=0x0200),
        "octave": matrix(9, (2, 3), b"x", *places, doubles(1, 1, 1), flags=0x0200, nzmax=3),
    }
    for name, variable in variables.items():
        for packed in (variable, deflated(variable)):
            with read(saved(tmp_path, packed)) as bundle:
                expected = np.array([[True, False, False], [False, True, True]])
                assert_same(bundle["x"], expected)
                assert bundle["x"].meta.formats["mat"] == {"class": "sparse"}, name


def test_sparse_logical_of_octave_with_few_elements(
    tmp_path: Path, octave: Callable[..., str], corpus: Callable[..., Path]
) -> None:
    """A list of one row number lies in its own tag."""
    with read(corpus("review", "wrong", "mat_octave_sparse_logical_one_nonzero.mat")) as bundle:
        assert_same(bundle["x"], row(True, False, dtype="?"))
        assert_same(bundle["y"], row(2))
    octave(
        "for i = 1:40\n rand('seed', i); m = rand(mod(i, 4) + 1, mod(i, 7) + 1) < 0.15 * mod(i, 5);"
        "eval(sprintf('s%d = sparse(m); f%d = double(m);', i, i));\n end\n"
        "save -v6 x.mat s* f*; save -v7 y.mat s* f*",
        cwd=tmp_path,
    )
    for name in ("x.mat", "y.mat"):
        with read(tmp_path / name) as bundle:
            stored = set()
            for number in range(1, 41):
                expected = decode(bundle[f"f{number}"])
                assert_same(bundle[f"s{number}"], expected.astype(bool))
                stored.add(int(expected.sum()))
        assert {0, 1, 2, 3} <= stored


def test_sparse_with_room_for_more(tmp_path: Path) -> None:
    """Nzmax may be above the number of elements; what lies behind them means nothing."""
    path = saved(tmp_path, sparse(b"x", 2, [1, 9, 9], [0, 0, 1], doubles(4, 8, 8)))
    with read(path) as bundle:
        assert_same(bundle["x"], np.array([[0.0, 0], [0, 4]]))


# --- compressed ---------------------------------------------------------------------------------


def test_fields_read_in_order_are_inflated_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever their number: every reader goes on where the last one stopped."""
    rng = np.random.default_rng(1)
    fields = {f"f{i}": rng.standard_normal(8_000) for i in range(50)}
    fields |= {f"z{i}": fields["f0"] + 1j * fields[f"f{i}"] for i in range(20)}
    scipy.io.savemat(tmp_path / "x.mat", {"s": fields}, do_compression=True)
    inflated = []
    inflate = inflate_module.Inflater.read

    def counted(self: inflate_module.Inflater, max_bytes: int) -> bytes:
        found = inflate(self, max_bytes)
        inflated.append(len(found))
        return found

    monkeypatch.setattr(inflate_module.Inflater, "read", counted)
    # So little memory that none of the fields are kept while the file is walked.
    with read(tmp_path / "x.mat", max_memory=1 << 20) as bundle:
        walked = sum(inflated)
        for name, values in fields.items():
            assert_same(bundle[f"s/{name}"], values[None])
        again = sum(inflated) - walked
        assert_same(bundle["s/f3"], fields["f3"][None])  # and back, from the beginning

    # A real and an imaginary part are read side by side, each reader passing over the other part.
    assert walked > 85 * 64_000
    assert again < 2.1 * walked


def test_damage_at_the_end_is_found_before_the_last_piece(tmp_path: Path) -> None:
    values = np.random.default_rng(1).standard_normal((1, 200_000))
    scipy.io.savemat(tmp_path / "x.mat", {"x": values}, do_compression=True)
    data = bytearray((tmp_path / "x.mat").read_bytes())
    data[-1] ^= 1  # of the Adler-32
    (tmp_path / "x.mat").write_bytes(data)

    pieces = blocks(read(tmp_path / "x.mat")["x"], 1_000_000)

    assert next(pieces).size == 125_000
    with pytest.raises(Corrupt, match="incorrect data check"):
        next(pieces)


# --- detection ----------------------------------------------------------------------------------


def test_sniff(tmp_path: Path, corpus: Callable[..., Path]) -> None:
    def verdict(name: str) -> int:
        return mat.sniff(Source(str(corpus("detect", name))))

    assert verdict("matlab_v4_nomagic_bigendian.mat") == SURE
    assert verdict("matlab_v4_sparse.mat") == SURE
    assert verdict("matlab_v5_big_endian.mat") == SURE
    assert verdict("matlab_v7.mat") == SURE
    assert verdict("matlab_v73_userblock512.mat") == SURE
    assert verdict("plain_hdf5_no_extension") == NO
    data = corpus("detect", "matlab_v4_sparse.mat").read_bytes()
    for name, contents in {
        "other_suffix.dat": data,
        "one_byte_more.mat": data + b"\0",
        "cut.mat": data[:-1],
        "zeros.mat": bytes(1000),
        "mark_without_hdf5.mat": b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM" + bytes(600),
    }.items():
        (tmp_path / name).write_bytes(contents)
        assert mat.sniff(Source(str(tmp_path / name))) == NO, name


def test_no_other_suffix_is_needed_above_v4(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(level5(X))
    with raconvert.open(tmp_path / "x.bin") as found:
        assert float(np.asarray(found["x"])[0, 0]) == 1.5


def test_what_is_no_mat_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.mat").write_bytes(b"something else" * 20)
    with pytest.raises(Corrupt, match="is not a MAT file"):
        read(tmp_path / "x.mat")
    with pytest.raises(RaconvertError):
        read(tmp_path / "missing.mat")


def test_whole_arrays_in_memory(tmp_path: Path) -> None:
    with read(FIXTURES / "octave_v7.mat") as bundle:
        assert np.array_equal(as_ndarray(bundle["nd"]).T, ND)


# --- headers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["<", ">"])
def test_headers_and_flags_are_those_of_scipy(order: str, tmp_path: Path) -> None:
    from scipy.io.matlab import _mio5_params as scipy_layout

    kind = np.dtype(scipy_layout.MDTYPES[order]["dtypes"]["file_header"])
    made = np.zeros((), kind)
    made["description"], made["version"] = b"some text", 0x0100
    made["endian_test"] = b"IM" if order == "<" else b"MI"

    assert parse_header(made.tobytes()) == ("some text", 0, 0x0100, order)

    flags = np.zeros((), scipy_layout.MDTYPES[order]["dtypes"]["array_flags"])
    flags["flags_class"] = 6 | 1 << 11 | 1 << 9  # complex and logical doubles
    flags["nzmax"] = 7
    raw = flags.tobytes()[8:]
    assert parse_flags(raw, order) == (6, "double", True, False, True, 7)

    if order == "<":
        assert header_bytes(b"some text", 0x0100)[116:] == made.tobytes()[116:]
        assert header_bytes(b"some text", 0x0100)[:116].rstrip() == b"some text"
        assert flags_bytes(parse_flags(raw, order))[8:] == raw


def test_text_without_its_element(tmp_path: Path) -> None:
    """Some writers leave out what is empty; of what is not, something is missing."""
    assert (
        scipy.io.loadmat(saved(tmp_path, matrix(4, (0, 0), b"x", element(16, b""))))["x"].size == 0
    )
    for parts in ((), (element(16, b""),), (element(4, b""),)):
        with read(saved(tmp_path, matrix(4, (0, 0), b"x", *parts))) as bundle:
            assert bundle["x"].nbytes == 0
    for dims, parts in (
        ((1, 3), ()), ((1, 3), (element(4, b"a\0"),)), ((0, 0), (element(4, b"a\0b\0"),)),
    ):  # fmt: skip
        with pytest.raises(RaconvertError, match="x"):
            decode_all(saved(tmp_path, matrix(4, dims, b"x", *parts)))
