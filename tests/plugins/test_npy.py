"""What is special to NPY: NumPy is the oracle, in both directions and byte for byte."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pairs import Pairs, nothing_said
from raconvert.plugins import npy

import raconvert
from raconvert import registry
from raconvert.arrays.array import Array
from raconvert.arrays.blocks import as_ndarray, blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import dtype_of, element_of, little
from raconvert.arrays.metadata import Metadata
from raconvert.errors import Corrupt, RaconvertError, Unsafe, Unsupported
from raconvert.files.limits import DEFAULT
from raconvert.files.source import Source
from raconvert.files.target import Target
from raconvert.plugin import EQUIVALENT, NO, REFUSED, SURE, Element

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures" / "npy"

TYPES = [
    "|b1", "|i1", "|u1", "<i2", ">u2", "<i4", ">i4", "<u8", ">i8", "<f2", ">f4", "<f8", "<c8",
    ">c16", "|S3", "<U2", ">U2", "<M8[ns]", ">m8[25s]", "<M8", "|V5",
    [("a", "<i4"), ("b", ">f8", (2,)), ("c", [("d", "|S2")])],
]  # fmt: skip
SHAPES = [(), (1,), (7,), (0,), (2, 3), (3, 0, 2), (4, 1), (2, 3, 4, 5)]


def load(path: Path | str) -> np.ndarray:
    """Read with NumPy, never unpickling."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 2's 2L
        return np.load(path, allow_pickle=False, max_header_size=1 << 20)


def read(path: Path | str) -> tuple[Array, list[str]]:
    """Read the one array with the plugin, and the notes."""
    bundle = npy.read(Source(str(path)))
    assert bundle.names == [Path(path).stem]
    return bundle.arrays[0], bundle.notes


def decode(array: Array) -> np.ndarray:
    """Return the array in logical order, little-endian."""
    raw = b"".join(block.tobytes() for block in blocks(array))
    values = np.frombuffer(raw, dtype_of(little(array.element))).reshape(array.dims[::-1])
    return values.T if array.index_order == "F" else values


def assert_same(array: Array, expected: np.ndarray) -> None:
    """Compare type, shape and every byte; numbers in little-endian order."""
    expected = np.asarray(expected)
    dtype = expected.dtype.newbyteorder("<") if expected.dtype.kind in "iufc" else expected.dtype
    got = decode(array)
    assert got.dtype == dtype
    assert got.shape == array.shape == expected.shape
    assert got.tobytes() == expected.astype(dtype, copy=False).tobytes()


def array_of(values: np.ndarray, **fields: Any) -> Array:
    """Return a core array over an ndarray, in Fortran order where its memory is."""
    order = "C" if values.flags.c_contiguous else "F"
    data = values if order == "C" else values.T
    fields = {"name": "x", "index_order": order, "data": data, **fields}
    return Array(element_of(values.dtype), data.shape[::-1], **fields)


def written(array: Array, folder: Path) -> Path:
    """Write one array with the plugin."""
    path = folder / "written.npy"
    path.unlink(missing_ok=True)
    with Target(str(path)) as target:
        npy.plan(Bundle([array])).write(target)
        target.commit(sync=False)
    return path


def saved(values: np.ndarray) -> bytes:
    """Return what numpy.save writes today."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # versions 2.0 and 3.0
        np.save(file, values)
    return file.getvalue()


def filled(dtype: Any, shape: tuple[int, ...], order: str = "C") -> np.ndarray:
    """Return an array of this type with every byte set, as far as the type allows it."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    if dtype.kind == "U":
        return np.resize(["ß", "日a", ""], count).reshape(shape).astype(dtype, order=order)
    step = 1 if dtype.kind == "b" else 37
    raw = (np.arange(count * dtype.itemsize) * step % (2 if dtype.kind == "b" else 251)).astype(
        "u1"
    )
    return np.asarray(raw.view(dtype).reshape(shape), order=order)


# --- reading ------------------------------------------------------------------------------------

GOOD = sorted(p.name for p in (FIXTURES / "good").glob("*.npy"))


def test_fixtures_are_there() -> None:
    assert len(GOOD) > 20


@every("name", [n for n in GOOD if n != "subarray.npy"])
def test_good_fixture_equals_numpy(name: str) -> None:
    path = FIXTURES / "good" / name

    assert_same(read(path)[0], load(path))


def test_subarray_adds_fastest_axes() -> None:
    path = FIXTURES / "good" / "subarray.npy"
    mapped = np.lib.format.open_memmap(path, mode="r")  # numpy.load cannot read it

    array, _ = read(path)

    assert array.shape == (2, 2)
    assert_same(array, np.asarray(mapped))


@every("shape", SHAPES, ids=str)
@every("order", "CF")
@every("dtype", TYPES, ids=lambda t: str(t)[:12])
def test_every_type_order_and_shape(
    dtype: Any, order: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    values = filled(dtype, shape, order)
    path = tmp_path / "x.npy"
    path.write_bytes(saved(values))

    array, notes = read(path)

    assert notes == []
    assert array.index_order == ("C" if values.flags.c_contiguous else "F")
    assert array.dims == (values.shape if array.index_order == "F" else values.shape[::-1])
    assert_same(array, values)


def test_data_is_an_extent_that_is_never_moved(tmp_path: Path) -> None:
    values = np.asfortranarray(np.arange(12, dtype=">c8").reshape(3, 4))
    path = tmp_path / "x.npy"
    np.save(path, values)

    extent = read(path)[0].extent

    assert extent is not None
    assert (extent.path, extent.offset, extent.nbytes) == (str(path), 128, 96)
    assert extent.swap == 4
    assert path.read_bytes()[extent.offset :] == values.tobytes("A")


def test_strings_and_structures_keep_their_byte_order(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(2, [("a", ">i4"), ("b", "<U2")]))

    array, _ = read(path)

    assert array.element == Element("user", 12, "|", (("a", ">i4"), ("b", "<U2")))
    assert array.extent is not None
    assert array.extent.swap == 1


def test_trailing_bytes_are_noted() -> None:
    _, notes = read(FIXTURES / "good" / "trailing_bytes.npy")
    assert notes == ["4 bytes after the data were ignored"]

    _, notes = read(FIXTURES / "good" / "two_arrays_appended.npy")
    assert len(notes) == 1
    assert "another NPY array begins there" in notes[0]


def test_more_than_2_gib(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    head = npy.header.header_of(Array(Element("uint", 1, "|"), (3 << 30,)))
    with path.open("wb") as file:
        file.write(head)
        try:
            file.truncate(len(head) + (3 << 30))
        except OSError:
            pytest.skip("no sparse file of 3 GiB here")

    array, _ = read(path)

    assert array.nbytes == 3 << 30
    assert array.data[-1] == 0


def test_sniff() -> None:
    assert npy.sniff(Source(str(FIXTURES / "good" / "unicode.npy"))) == SURE
    assert npy.sniff(Source(str(FIXTURES / "good" / "stored.npz"))) == NO
    assert npy.sniff(Source(__file__)) == NO


# --- the corpus ---------------------------------------------------------------------------------


def test_corpus_expected_values(corpus: Callable[..., Path]) -> None:
    folder = corpus("mat-hdf5")
    expected = json.loads((folder / "expected.json").read_text())
    cases = {k: v for k, v in expected.items() if k.startswith("npy/") and k.endswith(".npy")}
    assert len(cases) > 30
    for name, facts in cases.items():
        if "error" in facts:
            with pytest.raises(RaconvertError):
                read(folder / name)
            continue
        array, _ = read(folder / name)
        assert str(array.dtype) == str(np.dtype(_dtype_of(facts["dtype"]))), name
        assert list(array.shape) == facts["shape"], name
        values = np.ascontiguousarray(decode(array))
        if "first" in facts:
            assert [str(v) for v in values.ravel()[:4]] == facts["first"], name
            digest = hashlib.sha256(values.tobytes()).hexdigest()
            assert digest.startswith(facts["sha256_C_LE"]), name


def _dtype_of(text: str) -> Any:
    import ast

    return ast.literal_eval(text) if text[0] in "[{" else text


# name: type, shape, index order, first value, last value (MANIFEST.md of the corpus)
MANIFEST = {
    "npy_i4_1d.npy": ("<i4", (1000,), "C", 0, 999),
    "npy_f8_2d_c.npy": ("<f8", (100, 10), "C", 1000.1785424982828, 1000.08718435363),
    "npy_f8_2d_fortran.npy": ("<f8", (100, 10), "F", 1000.0, 1001.0),
    "npy_f8_4d.npy": ("<f8", (2, 5, 10, 10), "C", 1001.5317400643551, 1001.4842333209598),
    "npy_f4_2d.npy": ("<f4", (100, 10), "C", 1000.0, 1001.0),
    "npy_u8_1d.npy": ("<u8", (1000,), "C", 0, 999),
    "npy_bool_3d.npy": ("|b1", (10, 10, 10), "C", None, None),
    "npy_bool_10x11.npy": ("|b1", (10, 11), "C", False, False),
    "npy_datetime64_ns.npy": ("<M8[ns]", (1000,), "C", None, None),
    "npy_unicode_U4_2d.npy": ("<U4", (100, 10), "C", "ßàř", "ßāẑ"),
    "ok_npy_zero_dim.npy": ("<f8", (), "C", 0.0, 0.0),
    "ok_npy_big_endian.npy": ("<i4", (2, 3), "C", 0, 5),
    "ok_npy_trailing_bytes.npy": ("<f8", (6,), "C", 0, 5),
}


@pytest.mark.parametrize("name", MANIFEST)
def test_corpus_manifest(name: str, corpus: Callable[..., Path]) -> None:
    dtype, shape, order, first, last = MANIFEST[name]

    array, notes = read(corpus("npy", name))
    values = decode(array)

    assert (values.dtype.str, array.shape, array.index_order) == (dtype, shape, order)
    if first is not None:
        assert (values.ravel()[0], values.ravel()[-1]) == pytest.approx((first, last), rel=1e-15) \
            if dtype[1] == "f" else (values.ravel()[0], values.ravel()[-1]) == (first, last)  # fmt: skip
    assert bool(notes) == ("trailing" in name)
    assert_same(array, load(corpus("npy", name)))


@pytest.mark.parametrize(
    ("folder", "name", "error"),
    [
        ("npy", "npy_object_py3.npy", Unsafe),
        ("hostile", "bad_npy_truncated_data.npy", Corrupt),
        ("hostile", "bad_npy_negative_dim.npy", Corrupt),
        ("hostile", "bad_npy_unknown_version.npy", Unsupported),
        ("detect", "pickled_object_array.npy", Unsafe),
    ],
)
def test_corpus_refusals(
    folder: str, name: str, error: type[RaconvertError], corpus: Callable[..., Path]
) -> None:
    with pytest.raises(error, match=name):
        npy.read(Source(str(corpus(folder, name))))


# --- hostile files ------------------------------------------------------------------------------

# file name without suffix: the error and words of its message
HOSTILE = {
    "empty_file": (Corrupt, "ends inside the NPY magic"),
    "magic_only": (Corrupt, "ends inside the format version"),
    "magic_wrong": (Corrupt, "not an NPY file"),
    "version_1_1": (Unsupported, "got 1.1"),
    "version_4_0": (Unsupported, "got 4.0"),
    "header_length_beyond_file": (Corrupt, "expected 4000 bytes, got 74"),
    "header_length_4_gib": (Corrupt, "expected 4294967295 bytes, got 74"),
    "header_length_zero": (Corrupt, "not a Python literal"),
    "header_cut_off": (Corrupt, "ends inside the header"),
    "header_not_utf8": (Corrupt, "not utf-8 text, at byte 69"),
    "header_no_dict": (Corrupt, "character 0 is not '{'"),
    "header_no_literal": (Corrupt, "not a Python literal"),
    "header_call": (Corrupt, "not a Python literal"),
    "header_nul": (Corrupt, "not a Python literal"),
    "header_unhashable_key": (Corrupt, "not a Python literal"),
    "header_parentheses": (Corrupt, "not a Python literal"),
    "header_minuses": (Corrupt, "not a Python literal"),
    "header_sums": (Corrupt, "not a Python literal"),
    "header_key_missing": (Corrupt, "wrong keys"),
    "header_key_extra": (Corrupt, "wrong keys"),
    "header_key_repeated": (Corrupt, "'shape' is repeated (the values differ)"),
    "header_key_repeated_alike": (Corrupt, "'shape' is repeated (the values agree)"),
    "fortran_order_number": (Corrupt, "wrong fortran_order"),
    "shape_list": (Corrupt, "expected a tuple of integers, got [2]"),
    "shape_number": (Corrupt, "expected a tuple of integers, got 2"),
    "shape_float": (Corrupt, "not a Python literal"),
    "shape_bool": (Corrupt, "expected a tuple of integers"),
    "shape_negative": (Corrupt, "expected no negative axis, got (-2,)"),
    "shape_7_tib": (Corrupt, "7999999999984 missing"),
    "shape_overflow": (Corrupt, "expected fewer than 2**63 bytes"),
    "shape_beyond_64_bits": (Corrupt, "axes below 2**63"),
    "shape_5000_digits": (Corrupt, "not a Python literal"),
    "shape_4000_digits": (Corrupt, "axes below 2**63"),
    "shape_empty_but_huge": (Corrupt, "expected fewer than 2**63 bytes"),
    "shape_65_axes": (Unsupported, "at most 64, got 65"),
    "descr_none": (Corrupt, "got None"),
    "descr_unknown": (Corrupt, "'<f1'"),
    "descr_empty": (Corrupt, "not an element type"),
    "descr_dict": (Corrupt, "character 10 is not a value"),
    "descr_unit_unknown": (Corrupt, "<M8[xx]"),
    "descr_superscript": (Corrupt, "not an element type"),
    "descr_field_repeated": (Corrupt, "not an element type"),
    "descr_field_odd": (Corrupt, "not an element type"),
    "descr_field_number": (Corrupt, "not an element type"),
    "descr_subarray_negative": (Corrupt, "not an element type"),
    "descr_subarray_fortran": (Unsupported, "sub-array type in Fortran order"),
    "descr_zero_bytes": (Unsupported, "elements of 0 bytes"),
    "descr_no_fields": (Unsupported, "elements of 0 bytes"),
    "descr_wide": (Corrupt, "at most 2147483647 bytes"),
    "descr_long_double": (Unsupported, "long double"),
    "descr_object": (Unsafe, "no option allows this"),
    "descr_object_python2": (Unsafe, "no option allows this"),
    "descr_object_field": (Unsafe, "no option allows this"),
    "descr_object_subarray": (Unsafe, "no option allows this"),
    "pickle_raw": (Unsafe, "is a Python pickle"),
    "pickle_raw_text": (Corrupt, "not an NPY file"),
    "data_missing": (Corrupt, "got 0 (16 missing)"),
    "data_one_byte_short": (Corrupt, "got 15 (1 missing)"),
}


def test_hostile_fixtures_are_all_listed() -> None:
    assert {p.stem for p in (FIXTURES / "hostile").glob("*.npy")} == set(HOSTILE)


@every("name", HOSTILE)
def test_hostile_fixture_is_refused_by_cause(name: str) -> None:
    error, words = HOSTILE[name]
    path = FIXTURES / "hostile" / f"{name}.npy"

    with pytest.raises(error) as raised:
        npy.read(Source(str(path)))

    assert type(raised.value) is error
    assert words in str(raised.value)
    assert str(path) in str(raised.value)
    assert not os.path.exists("/tmp/raconvert_pwned")


def test_header_above_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    length = DEFAULT.header_bytes + 1
    fixed = npy.header.MAGIC + b"\2\0" + length.to_bytes(4, "little")
    path.write_bytes(fixed + b"[" * length)

    with pytest.raises(Unsupported, match=f"at most {DEFAULT.header_bytes} bytes, got {length}"):
        npy.read(Source(str(path)))


@pytest.mark.parametrize("name", ["int16_fortran", "struct_nested", "unicode", "version_3"])
def test_every_cut_is_refused(name: str, tmp_path: Path) -> None:
    whole = (FIXTURES / "good" / f"{name}.npy").read_bytes()
    path = tmp_path / "x.npy"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(Corrupt):
            npy.read(Source(str(path)))


@given(
    name=st.sampled_from(["python2_long_struct", "struct_titled", "datetime_25s", "subarray"]),
    at=st.integers(0, 90),
    piece=st.binary(max_size=6) | st.sampled_from([b"-", b"(", b"L", b"{", b"99", b"\\N", b"'O'"]),
)
def test_damaged_headers_never_let_a_foreign_exception_out(
    name: str, at: int, piece: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = (FIXTURES / "good" / f"{name}.npy").read_bytes()
    path = tmp_path_factory.getbasetemp() / "damaged.npy"
    path.write_bytes(whole[:at] + piece + whole[at + len(piece) :])
    with contextlib.suppress(RaconvertError):
        as_ndarray(read(path)[0])


# --- writing ------------------------------------------------------------------------------------


@every("shape", SHAPES, ids=str)
@every("order", "CF")
@every("dtype", TYPES, ids=lambda t: str(t)[:12])
def test_file_is_byte_for_byte_what_numpy_saves(
    dtype: Any, order: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    values = filled(dtype, shape, order)
    if values.dtype.kind in "mM":  # the core's block writer is not at stake here
        path = tmp_path / "x.npy"
        path.write_bytes(saved(values))
        array = read(path)[0]
    else:
        array = array_of(values)

    path = written(array, tmp_path)

    kept = values.astype(array.dtype.newbyteorder("<")) if values.dtype.kind in "iufc" else values
    assert path.read_bytes() == saved(kept)


def test_version_grows_with_the_header_as_in_numpy() -> None:
    versions = set()
    for length in range(65_380, 65_560):  # around the longest header of version 1.0
        values = np.zeros(1, [("x" * length, "u1")])

        head = npy.header.header_of(array_of(values))

        assert head == saved(values)[: len(head)]
        versions.add(head[6])
    assert versions == {1, 2}


def test_version_3_for_names_beyond_latin_1() -> None:
    for name, version in (("é", 1), ("日", 3)):
        values = np.zeros(2, [(name, "<i4")])

        head = npy.header.header_of(array_of(values))

        assert head == saved(values)[: len(head)]
        assert head[6] == version


def test_unknown_index_order_is_row_major() -> None:
    values = np.arange(6).reshape(2, 3)

    head = npy.header.header_of(array_of(values, index_order=None))

    assert head == saved(values)[:128]


def test_fortran_order_is_kept_where_both_orders_agree() -> None:
    column = Array(Element("uint", 1, "|"), (4, 1), index_order="F")
    vector = Array(Element("uint", 1, "|"), (4,), index_order="F")

    assert b"'fortran_order': True, 'shape': (4, 1)" in npy.header.header_of(column)
    assert b"'fortran_order': False, 'shape': (4,)" in npy.header.header_of(vector)


@given(
    values=hnp.arrays(
        dtype=st.one_of(
            hnp.scalar_dtypes().filter(
                lambda d: d.kind not in "fc" or d.itemsize <= 16 - 8 * (d.kind == "f")
            ),
            hnp.unicode_string_dtypes(max_len=5),
            hnp.byte_string_dtypes(max_len=5),
            hnp.array_dtypes(
                max_size=3, subtype_strategy=hnp.integer_dtypes() | hnp.boolean_dtypes()
            ),
        ),
        shape=hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
        elements=None,
    ),
    fortran=st.booleans(),
)
def test_read_and_write_again_any_array(
    values: np.ndarray, fortran: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    values = np.asfortranarray(values) if fortran else values
    path = folder / "any.npy"
    path.write_bytes(saved(values))
    array, _ = read(path)
    assert_same(array, values)

    back = load(written(array, folder))

    assert back.shape == values.shape
    assert back.flags.f_contiguous == values.flags.f_contiguous
    assert back.dtype == np.dtype(decode(array).dtype)
    assert back.tobytes() == values.astype(back.dtype).tobytes()


@given(st.data())
def test_parse_of_format_is_identity(data: st.DataObject) -> None:
    kinds = [("int", 4), ("uint", 1), ("float", 2), ("complex", 16), ("bool", 1), ("user", 7)]
    kind, nbytes = data.draw(st.sampled_from(kinds))
    order = "|" if nbytes == 1 or kind == "user" else "<"
    descr = "|V7" if kind == "user" else None
    dims = tuple(data.draw(st.lists(st.integers(0, 9), max_size=6)))
    array = Array(
        Element(kind, nbytes, order, descr), dims, index_order=data.draw(st.sampled_from("CF"))
    )
    head = npy.header.header_of(array)

    header = npy.header.read_header(Bytes(head + bytes(array.nbytes)))

    assert header.element == little(array.element)
    assert header.offset == len(head)
    assert len(head) % 64 == 0
    if array.ndim > 1:
        assert (header.dims, header.index_order) == (dims, array.index_order)
    else:
        assert (header.dims, header.index_order) == (dims, "C")


class Bytes:
    """What `read_header` needs, over bytes."""

    path = "in memory"

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)

    limits = DEFAULT

    def read_exact(self, offset: int, nbytes: int, what: str) -> bytes:
        assert offset + nbytes <= self.size, what
        return self.data[offset : offset + nbytes]


# --- what fits ----------------------------------------------------------------------------------

FITTING = [Element("int", 8, "<"), Element("bool", 1, "|"), Element("user", 12, "|", "<U3")]


@pytest.mark.parametrize("index_order", [None, "C", "F"])
@pytest.mark.parametrize("element", FITTING, ids=lambda e: e.kind)
def test_plain_arrays_fit_exactly(element: Element, index_order: str | None) -> None:
    assert npy.plan(Bundle([Array(element, (2, 3), index_order=index_order)])).fits == []


def test_user_elements_without_description_become_void(tmp_path: Path) -> None:
    array = Array(Element("user", 3, "|"), (2,), data=np.array([b"abc", b"def"], "V3"))

    assert npy.plan(Bundle([array])).fits == []
    assert load(written(array, tmp_path)).dtype == np.dtype("V3")


def test_bfloat16_is_refused_unless_allowed_and_then_is_void(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.arange(3).astype(ml_dtypes.bfloat16)
    raw = tmp_path / "raw"
    raw.write_bytes(values.tobytes())
    from raconvert.files.source import Extent

    array = Array(Element("bfloat", 2, "<"), (3,), name="w", extent=Extent(str(raw), 0, 6))

    [fit] = npy.plan(Bundle([array])).fits

    assert (fit.outcome, fit.property, fit.flag) == (REFUSED, "type", "--allow dtype")
    assert written(array, tmp_path).read_bytes() == saved(values)


def test_metadata_is_equivalent() -> None:
    array = Array(FITTING[0], (2,), name="x", meta=Metadata(units="m"))

    [of_array, of_file] = npy.plan(Bundle([array], attributes={"by": "me"})).fits

    assert (of_array.outcome, of_array.array, of_array.property) == (EQUIVALENT, "x", "metadata")
    assert (of_file.outcome, of_file.array, of_file.property) == (EQUIVALENT, "", "metadata")


@pytest.mark.parametrize(
    ("element", "dims", "property_"),
    [
        (FITTING[0], (1,) * 65, "shape"),
        (FITTING[0], (1 << 60, 0, 2), "shape"),
        (Element("user", 1 << 31, "|"), (1,), "type"),
        (Element("user", 0, "|"), (1,), "type"),
        (
            Element("user", 9000, "|", tuple((f"f{i:020}", "|u1") for i in range(9000))),
            (1,),
            "type",
        ),
    ],
    ids=["65 axes", "2**63 bytes", "element of 2 GiB", "element of 0 bytes", "9000 fields"],
)
def test_beyond_numpy_is_refused(element: Element, dims: tuple[int, ...], property_: str) -> None:
    [fit] = npy.plan(Bundle([Array(element, dims)])).fits

    assert (fit.outcome, fit.property, fit.flag) == (REFUSED, property_, None)


def test_64_axes_work(tmp_path: Path) -> None:
    values = np.zeros((1,) * 64, "u1")
    path = tmp_path / "x.npy"
    path.write_bytes(saved(values))

    array, _ = read(path)

    assert npy.plan(Bundle([array])).fits == []
    assert written(array, tmp_path).read_bytes() == path.read_bytes()


# --- end to end ---------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [None, "fortran"])
@pytest.mark.parametrize("order", "CF")
def test_through_ra_and_back_gives_the_same_file(
    order: str, axes: str | None, tmp_path: Path
) -> None:
    """That of the C order, unless the other one is asked for."""
    import raconvert

    source, core, back = (str(tmp_path / name) for name in ("a.npy", "b.ra", "c.npy"))
    np.save(tmp_path / "d.npy", filled("<f8", (3, 4), order))
    np.save(source, filled("<f8", (3, 4), "F" if axes else "C"))
    raconvert.convert(tmp_path / "d.npy", core, axes=axes)
    raconvert.convert(core, back)

    assert Path(back).read_bytes() == Path(source).read_bytes()


@pytest.mark.parametrize("order", "CF")
def test_copies_keep_the_order(order: str, tmp_path: Path) -> None:
    import raconvert

    source, core, back = (str(tmp_path / name) for name in ("a.npy", "b.npz", "c.npy"))
    np.save(source, filled("<f8", (3, 4), order))

    raconvert.convert(source, core)
    raconvert.convert(core, back)

    assert Path(back).read_bytes() == Path(source).read_bytes()


PLAIN = [[c] for c in ("'<f4'", "'|b1'", "'<U1'", "'<M8[ns]'", "'>i4'", "'|V4'")]


@pytest.mark.parametrize("descr", PLAIN, ids=lambda d: d[0])
def test_plain_headers_need_no_numpy(descr: list[str], tmp_path: Path) -> None:
    width = 8 if "M8" in descr[0] else 1 if "b1" in descr[0] else 4
    path = tmp_path / "x.npy"
    text = f"{{'descr': {descr[0]}, 'fortran_order': False, 'shape': (3, 2), }}\n".encode()
    path.write_bytes(
        npy.header.MAGIC + b"\1\0" + len(text).to_bytes(2, "little") + text + bytes(6 * width)
    )
    code = (
        "import sys\n"
        "from raconvert.plugins import npy\n"
        "from raconvert.files.source import Source\n"
        "from raconvert.files.target import Target\n"
        f"bundle = npy.read(Source({str(path)!r}))\n"
        "npy.plan(bundle).fits\n"
        "npy.header.header_of(bundle.arrays[0])\n"
        "if '>' not in sys.argv[1]:\n"
        f"    with Target({str(tmp_path / 'y.npy')!r}) as target:\n"
        "        npy.plan(bundle).write(target)\n"
        "        target.commit(sync=False)\n"
        "print(sorted({'numpy', 'ast', 'inspect', 'zipfile'} & set(sys.modules)))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, descr[0]], capture_output=True, text=True, check=False,
        cwd=ROOT,
    )  # fmt: skip

    assert done.stderr == ""
    assert done.stdout == "[]\n"


# For the suites over all pairs ------------------------------------------------------------------


IN_PAIRS = (
    Pairs(
        name="npy",
        suffix=".npy",
        read=np.load,
        write=np.save,
        can_write=lambda values: values.dtype.isbuiltin != 2,
        order="CF",
        types="= * x bfloat16",  # NumPy makes V2 of it, silently
        shapes="= *",
        law={"npy_C": "C", "npy_F": "F"},
        most_axes={"float32": 64},
        allowed={"bfloat16": ("dtype", lambda values: values.view("V2"))},
        said=nothing_said,
    ),
)


def test_the_magic_alone_is_proof() -> None:
    assert npy.FORMAT.proof
    assert registry.by_name("npy").proof


def test_the_sample_is_what_numpy_writes() -> None:
    made = io.BytesIO()
    np.save(made, np.array([1, 2, 3], "u1"))
    assert npy.FORMAT.samples["three_bytes.npy"] == made.getvalue()


def test_elements_as_long_as_numpy_has_them(tmp_path: Path) -> None:
    values = np.zeros(0, f"V{(1 << 31) - 1}")
    raconvert.write(tmp_path / "x.npy", values)
    assert np.load(tmp_path / "x.npy").dtype == values.dtype


# --- at the ends of ranges ------------------------------------------------------------------------


def headed(path: Path, descr: str, shape: tuple[int, ...], data: bytes = b"") -> Path:
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    path.write_bytes(b"\x93NUMPY\1\0" + (len(text) + 1).to_bytes(2, "little") + text + b"\n" + data)
    return path


@pytest.mark.parametrize(
    ("descr", "shape", "words"),
    [
        ("|V2147483647", (0,), ""), ("|V2147483648", (0,), "at most 2147483647 bytes"),
        ("|u1", (0, 2**63 - 1), ""), ("|u1", (0, 2**63), "axes below 2"),
        ("<u2", (0, 2**62 - 1), ""), ("<u2", (0, 2**62), "fewer than 2"),
        ("|u1", (0, 2**32, 2**31 - 1), ""), ("|u1", (0, 2**32, 2**31), "fewer than 2"),
        ("|u1", (0,) * 64, ""), ("|u1", (0,) * 65, "at most 64"),
        ("|u1", (0, -1), "no negative axis"), ("|u1", (-1,), "no negative axis"),
    ],
)  # fmt: skip
def test_what_numpy_has_a_limit_for(
    descr: str, shape: tuple[int, ...], words: str, tmp_path: Path
) -> None:
    """Types, shapes and numbers of axes that NumPy has are read and written, all others refused."""
    path = headed(tmp_path / "x.npy", descr, shape)
    if words:
        with pytest.raises((Corrupt, Unsupported), match=words):
            read(path)
        with pytest.raises((ValueError, TypeError, SyntaxError, OverflowError, MemoryError)):
            np.empty(shape, descr)
        return
    array, _ = read(path)
    assert array.shape == shape
    assert not npy.plan(Bundle([array])).fits
    assert saved(np.empty(shape, descr)) == written(array, tmp_path).read_bytes()
    for worse in (
        array.replace(element=array.element._replace(nbytes=1 << 31)),
        array.replace(dims=(0,) * 65),
        array.replace(dims=(2**63, *array.dims)),
        array.replace(dims=(*array.dims, 2**62, 2)),
    ):
        assert [fit.outcome for fit in npy.plan(Bundle([worse])).fits][:1] == [REFUSED]


@every("more", range(-70, 75, 5))
def test_the_version_that_numpy_takes(more: int, tmp_path: Path) -> None:
    """1.0 up to 65535 bytes of header, 2.0 above, 3.0 for names that are not Latin-1."""
    for first in ("x", "\xff", "\u0100"):
        name = first * ((65_535 - 100) // (2 if first == "\u0100" else 1) + more)
        values = np.zeros(2, [(name, "<i2")])
        assert written(array_of(values), tmp_path).read_bytes() == saved(values)
        assert_same(read(tmp_path / "written.npy")[0], values)


def test_the_longest_header(tmp_path: Path) -> None:
    """One byte more is refused, if it is there; if not, the file is cut off."""
    most = DEFAULT.header_bytes
    text = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }"
    for length, words in ((most, ""), (most + 1, f"at most {most} bytes")):
        raw = b"\x93NUMPY\2\0" + length.to_bytes(4, "little") + text.ljust(length - 1) + b"\n"
        (tmp_path / "x.npy").write_bytes(raw + b"\7")
        if not words:
            assert decode(read(tmp_path / "x.npy")[0]).tolist() == [7]
            continue
        with pytest.raises(Unsupported, match=f"{words}, got {length}") as caught:
            read(tmp_path / "x.npy")
        assert "byte 8;" in str(caught.value)
        (tmp_path / "x.npy").write_bytes(raw)
        with pytest.raises(Unsupported, match=words):
            read(tmp_path / "x.npy")
        (tmp_path / "x.npy").write_bytes(raw[:-1])
        with pytest.raises(Corrupt):
            read(tmp_path / "x.npy")


def test_how_much_of_a_bad_value_a_message_shows(tmp_path: Path) -> None:
    for length in (77, 78, 79, 100):
        path = headed(tmp_path / "x.npy", "x" * length, (1,))
        shown = repr("x" * length)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        with pytest.raises(Corrupt) as caught:
            read(path)
        assert f"got {shown}" in str(caught.value)


def test_the_sample_is_what_numpy_saves() -> None:
    assert saved(np.array([1, 2, 3], "u1")) == npy.header.SAMPLE


def test_places_in_messages(tmp_path: Path) -> None:
    """The byte that is wrong, or where the header begins."""
    good = headed(tmp_path / "x.npy", "|u1", (3,), b"abc").read_bytes()
    cases = {
        b"\x93NUMPX" + good[6:]: "at byte 0;",
        good[:6] + b"\4\0" + good[8:]: r"at byte 6;.*1\.0, 2\.0, 3\.0, got 4\.0",
        good[:6] + b"\1\1" + good[8:]: r"at byte 6;.*got 1\.1",
        good.replace(b"'|u1'", b"'|q1'"): "at byte 10;",
        good[
            :-1
        ]: f"at byte {len(good) - 1};.*3 bytes of data from byte {len(good) - 3}, got 2 .1 m",
        b"\x93NUMPY\3\0\x10\0\0\0"
        + b"{'descr': \xff'x' }\n": r"utf-8 text, at byte 22; got b'\\xff'",
    }
    for data, words in cases.items():
        (tmp_path / "x.npy").write_bytes(data)
        with pytest.raises(RaconvertError, match=words):
            read(tmp_path / "x.npy")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(1, 1000), (1000, 1), (10, 1, 100), (123456, 0), (7,), (0, 99)])
def test_padding_is_that_of_numpy(order: Any, shape: tuple[int, ...], tmp_path: Path) -> None:
    """Room for the slowest axis to grow, then up to a multiple of 64: at every length of a type."""
    for length in range(1, 65):
        values = np.zeros(shape, [("x" * length, "u1")], order=order)
        assert written(array_of(values), tmp_path).read_bytes() == saved(values)
