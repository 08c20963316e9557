"""What is special to NPZ: names, members, ZIP damage; NumPy is the oracle in both directions."""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pairs import NAME, Pairs, nothing_said
from raconvert.plugins import npz

import raconvert
from raconvert.arrays.array import Array
from raconvert.arrays.blocks import as_ndarray, blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import dtype_of, element_of, little
from raconvert.arrays.metadata import Metadata
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsafe, Unsupported
from raconvert.files.limits import DEFAULT
from raconvert.files.source import Source
from raconvert.files.target import Target
from raconvert.plugin import EQUIVALENT, MAYBE, NO, REFUSED, SURE

if TYPE_CHECKING:
    from collections.abc import Callable

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "npy"


def read(path: Path | str, **options: Any) -> Bundle:
    """Read with the plugin."""
    return npz.read(Source(str(path), **options))


def decode(array: Array, max_bytes: int = 1 << 20) -> np.ndarray:
    """Return the array in logical order, little-endian, streamed in blocks of `max_bytes`."""
    raw = b"".join(block.tobytes() for block in blocks(array, max_bytes))
    values = np.frombuffer(raw, dtype_of(little(array.element))).reshape(array.dims[::-1])
    return values.T if array.index_order == "F" else values


def decode_all(path: Path) -> list[bytes]:
    """Return the bytes of all arrays of a file."""
    return [decode(array).tobytes() for array in read(path).arrays]


def assert_same(array: Array, expected: np.ndarray, max_bytes: int = 1 << 20) -> None:
    """Compare type, shape and every byte; numbers in little-endian order."""
    dtype = expected.dtype.newbyteorder("<") if expected.dtype.kind in "iufc" else expected.dtype
    got = decode(array, max_bytes)
    assert got.dtype == dtype
    assert got.shape == array.shape == expected.shape
    assert got.tobytes() == expected.astype(dtype, copy=False).tobytes()


def bundle_of(**arrays: np.ndarray) -> Bundle:
    """Return a bundle over ndarrays, in Fortran order where their memory is."""
    made = []
    for name, values in arrays.items():
        order = "C" if values.flags.c_contiguous else "F"
        data = values if order == "C" else values.T
        element = element_of(values.dtype)
        made.append(Array(element, data.shape[::-1], name=name, index_order=order, data=data))
    return Bundle(made)


def written(bundle: Bundle, path: Path, **options: Any) -> Path:
    """Write with the plugin, replacing what is there."""
    with Target(str(path)) as target:
        npz.plan(bundle, **options).write(target)
        target.commit(sync=False)
    return path


MANY = {
    "bool": np.array([True, False]),
    "big": np.arange(5, dtype=">i8"),
    "complex": (np.arange(6) - 2j).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
    "text": np.array(["ß", "日本"]),
    "when": np.array(["2001-02-03", "NaT"], "M8[D]"),
    "void": np.array([b"\0\1\2"], "V3"),
    "zero_dim": np.array(-0.0),
    "empty": np.zeros((0, 3), "f4"),
    "struct": np.zeros(3, [("a", "<i4"), ("b", ">f8", (2,))]),
    "padded": np.frombuffer(bytes(range(32)), np.dtype([("a", "u1"), ("b", "<f8")], align=True)),
}


# --- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_every_type_as_numpy_saves_it(save: Callable[..., None], tmp_path: Path) -> None:
    save(tmp_path / "x.npz", **MANY)

    bundle = read(tmp_path / "x.npz")

    assert bundle.names == list(MANY)
    assert bundle.notes == []
    for name, expected in MANY.items():
        assert_same(bundle[name], expected)
        assert_same(bundle[name], expected, max_bytes=1)


GOOD = sorted(p.name for p in (FIXTURES / "good").glob("*.npz"))


@pytest.mark.parametrize("name", GOOD)
def test_good_fixture_equals_numpy(name: str) -> None:
    bundle = read(FIXTURES / "good" / name)

    with np.load(FIXTURES / "good" / name, allow_pickle=False) as expected:
        known = [n for n in expected.files if n not in ("README.txt", "bad")]
        assert bundle.names == known
        for one in known:
            assert_same(bundle[one], expected[one])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("with_text.npz", "'README.txt' is not an NPY file"),
        ("with_pickle.npz", "'bad.npy' was left out: holds Python objects"),
        ("with_trailing.npz", "'x.npy': 4 bytes after the data were ignored"),
    ],
)
def test_what_is_left_out_is_noted(name: str, words: str) -> None:
    [note] = read(FIXTURES / "good" / name).notes

    assert words in note


def test_names_are_only_names() -> None:
    assert read(FIXTURES / "good" / "parent_folder_name.npz").names == ["../../evil"]


def test_data_flows_in_the_order_of_the_file_and_regions_can_be_asked_for(tmp_path: Path) -> None:
    values = np.asfortranarray(np.arange(600.0).reshape(20, 30))
    np.savez_compressed(tmp_path / "x.npz", x=values)

    array = read(tmp_path / "x.npz")["x"]

    assert array.extent is None
    assert array.data.shape == (30, 20)
    assert np.array_equal(array.data[3, 2:4], values.T[3, 2:4])
    assert np.array_equal(np.asarray(array), values)
    assert array[4, 5] == values[4, 5]


def test_signalling_nans_survive_byte_order(tmp_path: Path) -> None:
    bits = np.array([0x7FF0000000000BAD, 1 << 63], ">u8")
    np.savez(tmp_path / "x.npz", x=bits.view(">f8"))

    got = decode(read(tmp_path / "x.npz")["x"])

    assert got.view("<u8").tolist() == bits.tolist()


def test_a_region_above_the_memory_limit_is_refused_but_streamed(tmp_path: Path) -> None:
    values = np.zeros(1_000_000)
    np.savez_compressed(tmp_path / "x.npz", x=values)

    array = read(tmp_path / "x.npz", max_memory=1 << 20)["x"]

    with pytest.raises(TooLarge, match="needs 8000000 bytes"):
        array.data[0]
    assert sum(block.size for block in array.data.stream(1 << 16)) == values.size


def test_members_with_sizes_behind_the_data(tmp_path: Path) -> None:
    """Written to a pipe: the local header knows neither CRC nor sizes."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise io.UnsupportedOperation

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        data = io.BytesIO()
        np.save(data, MANY["big"])
        archive.writestr("big.npy", data.getvalue())
    (tmp_path / "x.npz").write_bytes(pipe.getvalue())

    assert_same(read(tmp_path / "x.npz")["big"], MANY["big"])


def test_archive_behind_other_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(b"#!/bin/sh\n" + (FIXTURES / "good" / "stored.npz").read_bytes())

    assert read(path).names == ["first", "second", "third"]


def test_sniff(tmp_path: Path) -> None:
    def verdict(path: Path) -> int:
        return npz.sniff(Source(str(path)))

    text = tmp_path / "text.zip"
    with zipfile.ZipFile(text, "w") as archive:
        archive.writestr("README.txt", "hello")
    cut = tmp_path / "cut.zip"
    cut.write_bytes(b"PK\3\4")
    assert verdict(FIXTURES / "good" / "deflated.npz") == SURE
    assert verdict(FIXTURES / "good" / "no_suffix.npz") == SURE
    assert verdict(FIXTURES / "hostile" / "archive_empty.npz") == MAYBE
    assert verdict(text) == MAYBE
    assert verdict(cut) == MAYBE
    assert verdict(FIXTURES / "good" / "unicode.npy") == NO


# --- the corpus ---------------------------------------------------------------------------------


def test_corpus_expected_values(corpus: Callable[..., Path]) -> None:
    folder = corpus("mat-hdf5")
    expected = json.loads((folder / "expected.json").read_text())
    cases = {k: v for k, v in expected.items() if k.startswith("npy/") and k.endswith(".npz")}
    assert len(cases) == 4
    for name, facts in cases.items():
        if "error" in facts:
            with pytest.raises(Unsafe):
                read(folder / name)
            continue
        bundle = read(folder / name)
        assert bundle.names == list(facts)
        for array in bundle.arrays:
            values = np.ascontiguousarray(decode(array))
            fact = facts[array.name]
            assert values.dtype.str == fact["dtype"]
            assert list(values.shape) == fact["shape"]
            assert [str(v) for v in values.ravel()[:4]] == fact["first"]
            digest = hashlib.sha256(values.tobytes()).hexdigest()
            assert digest.startswith(fact["sha256_C_LE"])


def test_corpus_pickle_is_refused(corpus: Callable[..., Path]) -> None:
    with pytest.raises(Unsafe, match="no option allows this"):
        read(corpus("detect", "pickled_object_array.npz"))


# --- hostile files ------------------------------------------------------------------------------

# file name without suffix: the error and words of its message
HOSTILE = {
    "no_zip": (Corrupt, "no readable ZIP directory"),
    "archive_empty": (Unsupported, "holds no array"),
    "archive_without_array": (Unsupported, "2 others: 'README.txt', 'folder/'"),
    "archive_of_pickles": (Unsafe, "no option allows this"),
    "directory_cut_off": (Corrupt, "no readable ZIP directory"),
    "directory_offset_beyond": (Corrupt, ""),
    "directory_size_wrong": (Corrupt, "ZIP directory"),
    "directory_name_not_utf8": (Corrupt, "ZIP directory"),
    "start_cut_off": (Corrupt, ""),
    "names_repeated": (Corrupt, "the name 'x': 'x.npy' and 'x.npy'"),
    "names_collapse": (Corrupt, "the name 'x': 'x' and 'x.npy'"),
    "member_encrypted": (Unsupported, "encrypted, at member 'x.npy'"),
    "method_unknown": (Unsupported, "an unknown method (ZIP method 99)"),
    "local_name_differs": (Corrupt, "differ in the name"),
    "local_crc_differs": (Corrupt, "differ in the CRC-32"),
    "local_size_differs": (Corrupt, "differ in the size"),
    "local_method_differs": (Corrupt, "differ in the compression"),
    "local_header_missing": (Corrupt, "local header is missing"),
    "members_overlap": (Corrupt, "member 'a.npy' and member 'b.npy' overlap"),
    "member_runs_into_directory": (Corrupt, "and the central directory overlap"),
    "member_header_lies": (Corrupt, "7999999999984 missing"),
    "member_cut_off": (Corrupt, "data is cut off, at member 'x.npy'"),
    "member_of_4_gib": (Corrupt, "a size that its bytes in the archive cannot have"),
    "stored_sizes_differ": (Corrupt, "a size that its bytes in the archive cannot have"),
    "stored_byte_flipped": (Corrupt, "expected CRC-32"),
    "stored_no_data_byte_flipped": (Corrupt, "expected CRC-32"),
    "deflated_byte_flipped": (Corrupt, "at member 'x.npy'"),
    "deflated_crc_wrong": (Corrupt, "expected CRC-32 00000000"),
    "deflated_shorter_than_declared": (Corrupt, "expected 936 bytes, got 928"),
    "deflated_longer_than_declared": (Corrupt, "expected 920 bytes, got more"),
    "deflated_then_more": (Corrupt, "does not end where its member ends"),
}


def test_hostile_fixtures_are_all_listed() -> None:
    assert {p.stem for p in (FIXTURES / "hostile").glob("*.npz")} == set(HOSTILE)


@every("name", HOSTILE)
def test_hostile_fixture_is_refused_by_cause(name: str) -> None:
    error, words = HOSTILE[name]
    path = FIXTURES / "hostile" / f"{name}.npz"

    with pytest.raises(error) as raised:
        decode_all(path)

    assert type(raised.value) is error
    assert words in str(raised.value)
    assert str(path) in str(raised.value)
    assert not os.path.exists("/tmp/raconvert_pwned")


def test_damage_is_found_before_the_last_piece_is_handed_out() -> None:
    array = read(FIXTURES / "hostile" / "stored_byte_flipped.npz")["x"]
    pieces = array.data.stream(400)

    assert next(pieces).size == 50
    with pytest.raises(Corrupt, match="CRC-32"):
        next(pieces)


def test_bomb_behind_a_small_array(tmp_path: Path) -> None:
    data = io.BytesIO()
    np.save(data, np.arange(3))
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", data.getvalue() + bytes(50 << 20))

    with pytest.raises(Corrupt, match=r"far longer than the array in it, at member 'x\.npy'"):
        read(path)


def test_directory_above_the_limit(tmp_path: Path) -> None:
    size = DEFAULT.directory_bytes + 1
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, size, 0, 0)
    path = tmp_path / "x.npz"
    path.write_bytes(b"PK\1\2" + bytes(size - 4) + end)

    with pytest.raises(Unsupported, match=f"at most {DEFAULT.directory_bytes} bytes"):
        read(path)


@pytest.mark.parametrize("name", ["stored.npz", "deflated.npz"])
def test_every_cut_is_refused(name: str, tmp_path: Path) -> None:
    whole = (FIXTURES / "good" / name).read_bytes()
    path = tmp_path / "x.npz"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(RaconvertError):
            read(path)


@given(
    name=st.sampled_from(["stored.npz", "deflated.npz"]),
    part=st.floats(0, 1),
    piece=st.binary(min_size=1, max_size=4),
)
def test_damage_is_refused_or_harmless(
    name: str, part: float, piece: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Damage to dates, versions and the like is harmless; no other value ever comes out."""
    good = FIXTURES / "good" / name
    whole = good.read_bytes()
    at = int(part * (len(whole) - len(piece)))
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(whole[:at] + piece + whole[at + len(piece) :])
    expected = decode_all(good)
    try:
        got = decode_all(path)
    except RaconvertError:
        return
    assert got == expected or len(got) < len(expected)


# --- writing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", ["none", "deflate"])
def test_numpy_reads_what_is_written(compress: str, tmp_path: Path) -> None:
    path = written(bundle_of(**MANY), tmp_path / "x.npz", compress=compress)

    with np.load(path, allow_pickle=False) as got:
        assert got.files == list(MANY)
        for name, expected in MANY.items():
            assert got[name].shape == expected.shape
            assert got[name].flags.f_contiguous == expected.flags.f_contiguous
            same = got[name].astype(expected.dtype, copy=False)
            if name == "padded":  # numpy.load leaves the padding of archive members unset
                assert (same == expected).all()
            else:
                assert same.tobytes() == expected.tobytes()
    assert zipfile.ZipFile(path).testzip() is None


def test_the_zip_program_finds_no_fault(tmp_path: Path, tool: Callable[..., str]) -> None:
    import subprocess

    path = written(bundle_of(**MANY), tmp_path / "x.npz")

    done = subprocess.run([tool("unzip"), "-t", str(path)], capture_output=True, check=False)

    assert done.returncode == 0, done.stdout


def test_members_hold_what_numpy_saves(tmp_path: Path) -> None:
    path = written(bundle_of(x=MANY["fortran"], é=MANY["text"]), tmp_path / "x.npz")

    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["x.npy", "é.npy"]
        for name, values in (("x.npy", MANY["fortran"]), ("é.npy", MANY["text"])):
            expected = io.BytesIO()
            np.save(expected, values)
            assert archive.read(name) == expected.getvalue()


@given(
    names=st.lists(st.text("ab/é日", min_size=1, max_size=70), min_size=1, max_size=4, unique=True)
)
def test_stored_data_is_aligned_and_can_be_mapped(
    names: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    values = np.arange(3.0)
    bundle = bundle_of(**dict.fromkeys(names, values))
    path = tmp_path_factory.getbasetemp() / "aligned.npz"

    written(bundle, path)

    raw = path.read_bytes()
    place = -1
    for _ in names:
        place = raw.index(values.tobytes(), place + 1)
        assert place % 64 == 0
    assert zipfile.ZipFile(path).testzip() is None
    assert read(path).names == names


def test_equal_arrays_give_equal_bytes(tmp_path: Path) -> None:
    for compress in ("none", "deflate"):
        one = written(bundle_of(**MANY), tmp_path / "1.npz", compress=compress).read_bytes()
        two = written(bundle_of(**MANY), tmp_path / "2.npz", compress=compress).read_bytes()

        assert one == two


def test_written_in_blocks(tmp_path: Path) -> None:
    values = np.arange(100_000.0)
    progress: list[int] = []
    path = tmp_path / "x.npz"
    with Target(str(path), max_memory=1 << 19, progress=progress.append) as target:
        npz.plan(bundle_of(x=values)).write(target)
        target.commit(sync=False)

    assert len(progress) > 10
    assert sum(progress) == values.nbytes
    assert_same(read(path)["x"], values)


@given(
    values=hnp.arrays(
        dtype=hnp.integer_dtypes() | hnp.complex_number_dtypes(sizes=(64, 128)),
        shape=hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    ),
    fortran=st.booleans(),
    compress=st.sampled_from(["none", "deflate"]),
)
def test_write_and_read_again_any_array(
    values: np.ndarray, fortran: bool, compress: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    values = np.asfortranarray(values) if fortran else values
    path = tmp_path_factory.getbasetemp() / "any.npz"

    written(bundle_of(x=values), path, compress=compress)

    assert_same(read(path)["x"], values)


def test_archive_copied_member_by_member(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", **MANY)

    path = written(read(tmp_path / "a.npz"), tmp_path / "b.npz")

    again = read(path)
    assert again.names == list(MANY)
    for name, expected in MANY.items():
        assert_same(again[name], expected)


# --- what fits ----------------------------------------------------------------------------------


def fits_of(*names: str) -> list[tuple[str, str, str, str | None]]:
    """Return outcome, array, property and flag of what writing arrays of these names would lose."""
    element = element_of(np.dtype("<f4"))
    bundle = Bundle([Array(element, (1,), name=name) for name in names])
    return [(fit.outcome, fit.array, fit.property, fit.flag) for fit in npz.plan(bundle).fits]


def test_ordinary_names_fit() -> None:
    assert fits_of("a", "b c", "é/日", "a..b/..c", "x.npy", "a.npz", "w/kernel:0", "..", "%") == []


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("../x", "%2E%2E/x.npy"),
        ("a/../../x", "a/%2E%2E/%2E%2E/x.npy"),
        ("/etc/x", "%/etc/x.npy"),
        ("a//b", "a/%/b.npy"),
        ("C:x", "C%3Ax.npy"),
        ("a\\..\\b", "a%5C..%5Cb.npy"),
        ("a\x1b[31m\x9b", "a%1B[31m%9B.npy"),
    ],
)
def test_names_that_lead_elsewhere_are_escaped_and_come_back(
    name: str, member: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.npz"
    report = raconvert.write(
        str(path), {name: np.arange(3), member.removesuffix(".npy"): np.ones(2)}
    )

    first, second = zipfile.ZipFile(path).namelist()
    assert first == member
    assert second == f"{member.removesuffix('.npy')}%2.npy"
    assert raconvert.open(str(path)).names == [name, member.removesuffix(".npy")]
    assert [fit.array for fit in report.equivalent] == [name, member.removesuffix(".npy")]
    assert np.load(path)[member.removesuffix(".npy")].tolist() == [0, 1, 2]


def test_a_comment_that_does_not_belong_to_its_member_is_no_name(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    raconvert.write(str(path), {"../x": np.arange(3)})
    path.write_bytes(path.read_bytes().replace(b"name: ../x", b"name: ../y"))

    assert raconvert.open(str(path)).names == ["%2E%2E/x"]


@pytest.mark.parametrize("name", ["", "a\0b", "a\udc80", "é" * 32_800])
def test_names_that_zip_cannot_hold_are_refused(name: str) -> None:
    assert fits_of("ok", name) == [(REFUSED, name, "names", None)]


def test_names_that_numpy_cannot_tell_apart_are_refused() -> None:
    assert fits_of("a", "a") == [(REFUSED, "a", "names", None)]
    assert fits_of("a", "a.npy") == [(REFUSED, "a", "names", None)]
    assert fits_of("a.npy", "a") == [(REFUSED, "a", "names", None)]


def test_what_npy_cannot_hold_is_named_per_array() -> None:
    element = element_of(np.dtype("<f4"))
    arrays = [
        Array(element, (1,), name="a", meta=Metadata(units="m")),
        Array(element._replace(kind="bfloat", nbytes=2), (1,), name="b"),
    ]

    of_meta, of_type, of_file = npz.plan(Bundle(arrays, attributes={"by": "me"})).fits

    assert (of_meta.outcome, of_meta.array) == (EQUIVALENT, "a")
    assert (of_type.outcome, of_type.array, of_type.flag) == (REFUSED, "b", "--allow dtype")
    assert (of_file.outcome, of_file.array) == (EQUIVALENT, "")


# --- end to end ---------------------------------------------------------------------------------


def test_one_array_through_ra_and_back(tmp_path: Path) -> None:
    import raconvert

    source, core, back = (str(tmp_path / name) for name in ("a.npz", "b.ra", "c.npz"))
    np.savez_compressed(source, x=MANY["fortran"])

    raconvert.convert(source, core)
    raconvert.convert(core, back)

    with np.load(back) as got:
        assert got.files == ["b"]
        assert got["b"].tobytes() == MANY["fortran"].tobytes()
        assert got["b"].shape == MANY["fortran"].shape


def test_a_damaged_member_leaves_nothing_behind(tmp_path: Path) -> None:
    import raconvert

    with pytest.raises(Corrupt, match="CRC-32"):
        raconvert.convert(
            str(FIXTURES / "hostile" / "deflated_crc_wrong.npz"), str(tmp_path / "x.ra")
        )

    assert list(tmp_path.iterdir()) == []
    assert as_ndarray(read(FIXTURES / "good" / "stored.npz")["third"]) == 1.5


@pytest.mark.parametrize("shape", [(512, 384, 11), (1_100_001, 2)])
def test_fortran_order_above_the_limit(shape: tuple[int, ...], tmp_path: Path) -> None:
    """A member is decoded once for each slab of the result, and never held as a whole."""
    limit = 4 << 20
    values = np.random.default_rng(5).integers(0, 99, shape).astype("<u4")
    np.savez_compressed(tmp_path / "x.npz", x=np.asfortranarray(values))

    tracemalloc.start()
    try:
        raconvert.convert(tmp_path / "x.npz", tmp_path / "x.ra", max_memory=limit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (tmp_path / "x.ra").read_bytes().endswith(values.tobytes())
    assert peak < 2 * limit < values.nbytes


def test_damage_behind_a_slab_of_fortran_order(tmp_path: Path) -> None:
    values = np.asfortranarray(np.arange(1 << 19).reshape(512, 1024))
    path = tmp_path / "x.npz"
    np.savez(path, x=values)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(Corrupt, match="damaged"):
        raconvert.convert(path, tmp_path / "x.ra", max_memory=1 << 20)
    assert not (tmp_path / "x.ra").exists()


# For the suites over all pairs ------------------------------------------------------------------


def _only_array(path: Path) -> np.ndarray:
    with np.load(path) as archive:
        assert archive.files == [NAME]
        return archive[NAME]


IN_PAIRS = (
    Pairs(
        name="npz",
        suffix=".npz",
        read=_only_array,
        write=lambda path, values: np.savez(path, **{NAME: values}),
        can_write=lambda values: values.dtype.isbuiltin != 2,
        order="CF",
        few=True,
        types="= * x bfloat16",  # NumPy makes V2 of it, silently
        shapes="= *",
        law={"npz_C": "C", "npz_F": "F"},
        most_axes={"float32": 64},
        allowed={"bfloat16": ("dtype", lambda values: values.view("V2"))},
        said=nothing_said,
    ),
)


@pytest.mark.parametrize(
    ("method", "name"), [(9, "Deflate64"), (93, "Zstandard"), (95, "XZ"), (97, "an unknown method")]
)
def test_methods_that_are_not_decoded_are_named(method: int, name: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.arange(3))
    data = bytearray((tmp_path / "x.npz").read_bytes())
    struct.pack_into("<H", data, 8, method)
    struct.pack_into("<H", data, data.index(b"PK\1\2") + 10, method)
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(Unsupported) as raised:
        read(tmp_path / "x.npz")
    assert f"compressed by {name} (ZIP method {method})" in str(raised.value)


def with_end64(data: bytes, count: int) -> bytes:
    """The archive with its number of members in a ZIP64 end record (APPNOTE 4.3.14, 4.3.15)."""
    end = data.rindex(b"PK\5\6")
    nbytes, start = struct.unpack_from("<2I", data, end + 12)
    record = struct.pack(
        "<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, nbytes, start
    ) + struct.pack("<4sIQI", b"PK\6\7", 0, end, 1)
    return data[:end] + record + data[end : end + 8] + b"\xff" * 4 + data[end + 12 :]


def test_members_are_counted_by_the_end_record_of_zip64(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=np.arange(3), b=np.arange(4), c=np.arange(5))
    plain = path.read_bytes()
    path.write_bytes(with_end64(plain, 3))
    with np.load(path) as known, read(path) as bundle:
        assert sorted(bundle.names) == sorted(known.files) == ["a", "b", "c"]
    for count in (2, 4, 3 + (1 << 16), 65535):
        path.write_bytes(with_end64(plain, count))
        with pytest.raises(Corrupt, match=f"expected {count} members.*got 3"):
            read(path)
