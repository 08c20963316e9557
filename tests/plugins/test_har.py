"""What is special to HAR: records, sets, storage, names, byte-exact rewriting; harpy3 is a client."""

from __future__ import annotations

import hashlib
import json
import struct
import warnings
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml
from cases import every, some
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from raconvert.plugins import har
from raconvert.plugins.har.tables import boxes, part_counts

import raconvert
from raconvert.arrays.array import Array
from raconvert.arrays.blocks import blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import dtype_of, element_of, little
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.errors import (
    Corrupt,
    NotSupportedYet,
    RaconvertError,
    TooLarge,
    Unsupported,
    WouldLose,
)
from raconvert.files.source import Source
from raconvert.files.target import Target
from raconvert.plugin import EQUIVALENT, MAYBE, NO, REFUSED, SURE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "har"

# The files of the corpus, all of which decode to their expected JSON and are written back byte for
# byte. None is refused, and none differs.
CORPUS = [
    "SJSUB.sl4",
    "gtap7_15x10_basedata.har",
    "gtap7_3x3_basedata.har",
    "gtap_example.har",
    "gtapw_extradata.har",
    "gtapw_sets.har",
    "harplus_baserate.har",
    "harpy_test.har",
    "nus333_baserate.har",
    "nus333_default.prm",
    "nus333_sets.har",
    "oranig_summary.har",
    "synthetic_RL.har",
    "synthetic_lahey_of_harpy_test.har",
    "test_Forenew7.shk",
    "test_read.har",
    "test_timedim.har",
]
# Good fixtures that are not written back byte for byte, and why.
NOT_EXACT = {
    "parts_out_of_order.har": "its parts are in no order, which is not kept",
    "parts_of_rows.har": "its parts are no runs in Fortran order, which is not kept",
    "nul_padding.har": "the NULs behind its strings are padding, and become blanks",
}


def read(path: Path | str, **options: Any) -> Bundle:
    """Read with the plugin: headers, of a solution file too."""
    return har.read(Source(str(path)), **{"solution": "headers", **options})


def decode(array: Array, max_bytes: int = 1 << 20) -> np.ndarray:
    """Return the array in logical order, little-endian, streamed in blocks of `max_bytes`."""
    raw = b"".join(block.tobytes() for block in blocks(array, max_bytes))
    values = np.frombuffer(raw, dtype_of(little(array.element))).reshape(array.dims[::-1])
    return values.T if array.index_order == "F" else values


def array_of(values: np.ndarray, name: str = "ARR1", meta: Metadata | None = None) -> Array:
    """Return an array in Fortran order, as the core hands it to this format."""
    data = np.ascontiguousarray(values.T).reshape(values.shape[::-1])
    element = element_of(values.dtype)
    return Array(element, values.shape, name=name, index_order="F", data=data, meta=meta)


def write(bundle: Bundle, path: Path, **options: Any) -> Path:
    """Write with the plugin, replacing what is there."""
    with Target(str(path)) as target:
        har.plan(bundle, **options).write(target)
        target.commit(sync=False)
    return path


def through_yaml(bundle: Bundle) -> Bundle:
    """Return the bundle with its metadata written as YAML and read again, as bundles do on disk."""

    def again(value: Any) -> Any:
        return yaml.safe_load(yaml.safe_dump(value, allow_unicode=True))

    arrays = [
        array.replace(meta=Metadata.from_dict(again(array.meta.to_dict())))
        for array in bundle.arrays
    ]
    return Bundle(arrays, formats=again(bundle.formats), notes=bundle.notes)


def records(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield begin, end and payload of the records of a file, in any of its framings."""
    at = 0
    if data[:1] == b"\xfd":
        at = 1
        while at < len(data):
            lead = (data[at] & 3) + 1
            nbytes = int.from_bytes(data[at : at + lead], "little") >> 2
            start = at + lead
            trail = next(k for k in range(4) if nbytes + lead < 1 << (6 + 8 * k)) + 1
            yield at, start + nbytes + trail, data[start : start + nbytes]
            at = start + nbytes + trail
        return
    order = "<" if data[0] else ">"
    while at < len(data):
        (nbytes,) = struct.unpack_from(f"{order}i", data, at)
        yield at, at + 8 + nbytes, data[at + 4 : at + 4 + nbytes]
        at += 8 + nbytes


def texts(fits: list[Any], outcome: str) -> list[str]:
    return [str(fit) for fit in fits if fit.outcome == outcome]


# --- real files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CORPUS)
def test_corpus_decodes_to_its_expected_json(name: str, corpus: Callable[..., Path]) -> None:
    expected = json.loads(corpus("har", "expected", f"{name}.json").read_text())
    bundle = read(corpus("har", name), housekeeping="show")

    assert har.sniff(Source(str(corpus("har", name)))) == SURE
    assert (
        bundle.formats["har"].get("framing") == {"le4": None, "lahey": "lahey"}[expected["framing"]]
    )
    assert bundle.names == [header["name"].strip() for header in expected["headers"]]
    for array, header in zip(bundle.arrays, expected["headers"], strict=True):
        assert_as_expected(array, header)


def assert_as_expected(array: Array, header: dict[str, Any]) -> None:
    own = array.meta.formats["har"]
    values = decode(array)
    if header["type"] == "1C":  # the sums are of the cells with their padding, which are blanks
        assert not any(text.endswith((b" ", b"\0")) for text in values.tolist())
        width = header["dims"][1]
        values = np.array([text.ljust(width) for text in values.tolist()], f"S{width}")
    raw = values.tobytes("F")
    assert own.get("name", array.name.ljust(4)) == header["name"]
    assert (own["type"], array.storage["storage"]) == (header["type"], header["storage"])
    assert (array.meta.description or "").ljust(70) == header["long"]
    assert hashlib.sha256(raw).hexdigest()[:16] == header["sha256"]
    assert values.size == header["n"]
    if header["type"] == "1C":
        assert (len(values), values.dtype.itemsize) == tuple(header["dims"])
        return
    rank = len(header["sets"]) if "sets" in header else array.ndim
    assert array.shape == tuple(header["dims"][:rank])
    assert np.prod(header["dims"][rank:]) == 1
    if values.size:
        assert float(values.sum(dtype="f8")) == header["sum"]
        assert np.count_nonzero(values) == header["nnz"]
    if "sets" in header:
        assert own["coefficient"].ljust(12) == header["coeff"]
        assert own.get("logical", [1, 1])[0] == header["logical_true"]
        assert_sets(array, header)


def assert_sets(array: Array, header: dict[str, Any]) -> None:
    """The expected JSON holds each label list once, in order of first appearance."""
    known = zip(header["sets"], header["status"], strict=True)
    distinct = dict.fromkeys(name for name, status in known if status == "k")
    lists = dict(zip(distinct, header["elements"], strict=True))
    axes = array.ra_axes or [Axis() for _ in header["sets"]]
    for axis, name, status in zip(axes, header["sets"], header["status"], strict=True):
        if status == "u":
            assert axis.labels is None
            continue
        assert axis.name == name.strip()
        assert axis.labels is not None
        if len(axis.labels) > 12:
            assert [len(axis.labels), axis.labels[0], axis.labels[-1]] == lists[name]
        else:
            assert [*axis.labels] == lists[name]


@pytest.mark.parametrize("name", CORPUS)
def test_corpus_is_written_back_byte_for_byte(
    name: str, corpus: Callable[..., Path], tmp_path: Path
) -> None:
    bundle = through_yaml(read(corpus("har", name)))

    assert har.plan(bundle).fits == []
    written = write(bundle, tmp_path / name)

    assert written.read_bytes() == corpus("har", name).read_bytes()


@pytest.mark.parametrize("name", ["test_Forenew7.shk", "SJSUB.sl4"])
def test_corpus_by_way_of_a_bundle_folder(
    name: str, corpus: Callable[..., Path], tmp_path: Path
) -> None:
    headers = {"solution": "headers"}
    raconvert.convert(corpus("har", name), tmp_path / "folder", to="bundle", in_opts=headers)
    raconvert.convert(tmp_path / "folder", tmp_path / name)

    assert (tmp_path / name).read_bytes() == corpus("har", name).read_bytes()


@pytest.mark.parametrize("name", ["harplus_baserate.har", "synthetic_lahey_of_harpy_test.har"])
def test_corpus_by_way_of_hdf5(name: str, corpus: Callable[..., Path], tmp_path: Path) -> None:
    raconvert.convert(corpus("har", name), tmp_path / "x.h5")
    raconvert.convert(tmp_path / "x.h5", tmp_path / name)

    assert (tmp_path / name).read_bytes() == corpus("har", name).read_bytes()


def test_metadata_of_a_large_array_is_small(corpus: Callable[..., Path]) -> None:
    bundle = read(corpus("har", "gtap7_15x10_basedata.har"))
    own = [array.meta.to_dict()["formats"]["har"] for array in bundle.arrays]

    assert len(yaml.safe_dump([bundle.formats, own])) < 100 * len(bundle.arrays) + 1000


def test_the_http_archive_of_a_browser_is_named(corpus: Callable[..., Path]) -> None:
    path = corpus("har", "not_gempack_http_archive.har")

    with pytest.raises(NotSupportedYet, match="HTTP archive of a browser") as caught:
        raconvert.convert(path, path.with_suffix(".npz"))

    assert str(path) in str(caught.value)


def test_the_same_headers_in_lahey_framing(corpus: Callable[..., Path]) -> None:
    modern = read(corpus("har", "harpy_test.har"))
    lahey = read(corpus("har", "synthetic_lahey_of_harpy_test.har"))

    assert modern.names == lahey.names
    for a, b in zip(modern.arrays, lahey.arrays, strict=True):
        assert decode(a).tobytes() == decode(b).tobytes()
        assert a.meta.to_dict() == b.meta.to_dict()


# --- files made by hand -------------------------------------------------------------------------

GOOD = sorted(path.name for path in (FIXTURES / "good").iterdir())
FRAMINGS = {"little": "", "big": "_big_endian", "lahey": "_lahey"}


@every("name", GOOD)
@every("max_bytes", [4, 1000, 1 << 20])
def test_good_fixture(name: str, max_bytes: int) -> None:
    """Value number n in Fortran order is n: what `fixtures/har/make.py` says."""
    bundle = read(FIXTURES / "good" / name)

    for array in bundle.arrays:
        if name == "harpy.har" or array.name in ("INT1", "MAT1", "SPA1", "RLS1", "SPRT"):
            continue
        if array.element.kind == "float":
            values = decode(array, max_bytes)
            assert values.ravel("F").tolist() == list(range(1, array.count + 1))
            assert np.array_equal(np.asarray(array), values)


@pytest.mark.parametrize("name", sorted(set(GOOD) - set(NOT_EXACT)))
def test_good_fixture_is_written_back_byte_for_byte(name: str, tmp_path: Path) -> None:
    written = write(through_yaml(read(FIXTURES / "good" / name)), tmp_path / "x.har")

    assert written.read_bytes() == (FIXTURES / "good" / name).read_bytes()


@pytest.mark.parametrize("name", NOT_EXACT)
def test_what_is_not_kept_byte_for_byte_keeps_its_values(name: str, tmp_path: Path) -> None:
    bundle = read(FIXTURES / "good" / name)
    again = read(write(bundle, tmp_path / "x.har"))

    assert (tmp_path / "x.har").read_bytes() != (FIXTURES / "good" / name).read_bytes()
    assert decode(again.arrays[0]).tobytes() == decode(bundle.arrays[0]).tobytes()


@pytest.mark.parametrize("framing", FRAMINGS)
def test_every_type_in_every_framing(framing: str) -> None:
    bundle = read(FIXTURES / "good" / f"every_type{FRAMINGS[framing]}.har")

    assert bundle.formats.get("har", {}).get("framing", "little") == framing
    shapes = {array.name: array.shape for array in bundle.arrays}
    assert shapes == {
        "TXT1": (3,), "INT1": (2, 3), "MAT1": (2, 2), "LAB1": (3, 2), "SPA1": (3, 2),
        "RLF1": (2, 1, 3), "RLS1": (2, 2), "SCAL": (),
    }  # fmt: skip
    assert decode(bundle["TXT1"]).tolist() == [b"EU", b" USA", b"Row"]
    assert decode(bundle["INT1"]).tolist() == [[1, 3, 5], [-2, -4, -(2**31)]]
    assert decode(bundle["MAT1"]).tolist() == [[1.5, float(np.float32(3e30))], [-0.0, -4.25]]
    assert np.signbit(decode(bundle["MAT1"])[1, 0])
    assert decode(bundle["SPA1"]).tolist() == [[0, 0], [2.5, 0], [0, -1]]
    assert decode(bundle["RLS1"]).tolist() == [[0, 0], [0, 7]]
    meta = bundle["LAB1"].meta
    assert meta.description == "over two sets"
    assert [axis.to_dict() for axis in meta.axes] == [
        {"name": "REG", "labels": ["EU", "USA", "Row"]},
        {"name": "COM", "labels": ["food", "Mnfc"]},
    ]
    assert meta.formats["har"]["coefficient"] == "Coef"


@pytest.mark.parametrize("framing", FRAMINGS)
def test_one_framing_written_as_another(framing: str, tmp_path: Path) -> None:
    for source in FRAMINGS.values():
        bundle = read(FIXTURES / "good" / f"every_type{source}.har")
        written = write(bundle, tmp_path / "x.har", framing=framing)
        expected = FIXTURES / "good" / f"every_type{FRAMINGS[framing]}.har"
        assert written.read_bytes() == expected.read_bytes()
        written.unlink()


def test_single_parts_lie_in_the_file_as_they_are() -> None:
    for suffix in FRAMINGS.values():
        path = FIXTURES / "good" / f"every_type{suffix}.har"
        for array in read(path).arrays:
            extent = array.extent
            assert (extent is None) == (array.name in ("SPA1", "RLS1", "TXT1"))
            if extent is not None:
                raw = path.read_bytes()[extent.offset : extent.offset + extent.nbytes]
                values = np.frombuffer(raw, array.dtype).reshape(array.shape, order="F")
                assert np.array_equal(values, decode(array))


def test_sets_and_status() -> None:
    unlabelled = read(FIXTURES / "good" / "unlabelled_and_labelled.har").arrays[0]
    repeated = read(FIXTURES / "good" / "repeated_set.har").arrays[0]
    empty = read(FIXTURES / "good" / "empty_set.har")["ZLAB"]
    element = read(FIXTURES / "good" / "explicit_element.har").arrays[0]
    many = read(FIXTURES / "good" / "many_labels.har").arrays[0]

    assert unlabelled.shape == (3, 4, 1)
    assert [(axis.name, axis.labels and [*axis.labels]) for axis in unlabelled.ra_axes] == [
        ("REG", ["EU", "USA", "Row"]), (None, None), ("TIME", None),
    ]  # fmt: skip
    assert [axis.name for axis in repeated.ra_axes] == ["REG", "COM", "REG"]
    assert repeated.ra_axes[0].labels == repeated.ra_axes[2].labels == ("EU", "USA", "Row")
    assert (empty.shape, empty.ra_axes[0].labels) == ((0,), ())
    assert [*element.ra_axes[1].labels] == ["food"]
    assert [*many.ra_axes[0].labels] == [f"e{n}" for n in range(3000)]


def test_names_keep_their_case_and_doubles_are_noted() -> None:
    bundle = read(FIXTURES / "good" / "names.har")

    assert bundle.names == ["A", "rTo", "RTO"]
    assert bundle.notes == ["headers 'rTo' and 'RTO' are one name to GEMPACK"]


def test_wrong_counters_are_kept_and_do_no_harm() -> None:
    array = read(FIXTURES / "good" / "wrong_counters.har").arrays[0]

    assert decode(array).tolist() == [1, 2, 3, 4]
    assert array.meta.formats["har"]["counters"] == [[0, 1], [1, 9], [2, 7], [3, 0], [4, 5]]


def test_housekeeping_is_hidden_unless_asked_for() -> None:
    path = FIXTURES / "good" / "housekeeping.har"
    hidden = read(path)
    shown = read(path, housekeeping="show")

    assert hidden.names == ["DATA"]
    kept = hidden.formats["har"]["hidden"]
    assert [(header["name"].strip(), header["before"]) for header in kept] == [
        ("XXCR", 0), ("XXNB", 0), ("xxhs", 1),
    ]  # fmt: skip
    assert kept[2]["text"] == ["  history", "ends"]
    assert shown.names == ["XXCR", "XXNB", "DATA", "xxhs"]
    assert decode(shown["XXNB"]).tolist() == [[4]]


def test_housekeeping_shown_is_written_under_its_name_only_from_file_to_file(
    tmp_path: Path,
) -> None:
    path = FIXTURES / "good" / "housekeeping.har"
    raconvert.convert(path, tmp_path / "same.har", in_opts={"housekeeping": "show"})
    raconvert.convert(path, tmp_path / "x.npz", in_opts={"housekeeping": "show"})
    raconvert.convert(tmp_path / "x.npz", tmp_path / "y.har")

    assert (tmp_path / "same.har").read_bytes() == path.read_bytes()
    assert read(tmp_path / "y.har").names == ["AXXC", "AXXN", "DATA", "AXXH"]


def test_a_header_without_data_is_noted_and_kept(tmp_path: Path) -> None:
    path = FIXTURES / "good" / "header_without_data.har"
    bundle = read(path)

    assert bundle.names == ["DATA"]
    assert bundle.notes == ["header 'VOID' at byte 0 has no data and was left out"]
    assert write(bundle, tmp_path / "x.har").read_bytes() == path.read_bytes()


# --- refusals -----------------------------------------------------------------------------------

REFUSED_FILES = {
    "dimensions_differ.har": (Corrupt, "dimension record tells of another array.*'BAD1', record 2"),
    "empty.har": (Corrupt, "is not a GEMPACK header array file"),
    "gempack_text.har": (NotSupportedYet, "GEMPACK's text form"),
    "http_archive.har": (NotSupportedYet, "an HTTP archive of a browser in JSON"),
    "label_count_differs.har": (Corrupt, "label list of set 'REG' is one of another length"),
    "label_list_missing.har": (Corrupt, "wrong number of label lists.*expected 1, got 0"),
    "label_record_long.har": (Corrupt, "label record has a wrong length.*'BAD1', record 2"),
    "lahey_mark_of_a_gigabyte.har": (Corrupt, "a record has an impossible length.*byte 285"),
    "lahey_mark_wrong.har": (Corrupt, "two marks of a record differ.*'LAH1', record 5, byte 271"),
    "length_beyond_file.har": (Corrupt, "file ends inside a record.*'CUT1', record 5, byte 313"),
    "length_negative.har": (Corrupt, "impossible length.*'NEG1', record 5.*got -16"),
    "marks_differ.har": (Corrupt, "file ends inside a record.*'MRK1', record 5, byte 313"),
    "matrix_of_other_size.har": (Corrupt, "another matrix.*expected 2 x 1, got 3 x 1"),
    "matrix_part_outside.har": (Corrupt, "a part lies outside the array"),
    "name_later_too_long.har": (Corrupt, "damaged name of.*byte 337.*5 bytes"),
    "name_repeated.har": (Corrupt, "two headers are called 'SAME'.*bytes 0 and 337"),
    "name_too_long.har": (Corrupt, "is not a GEMPACK header array file"),
    "name_unprintable.har": (Corrupt, "damaged name of"),
    "name_with_slash.har": (Corrupt, "damaged name of.*'A/B '"),
    "one_byte.har": (Corrupt, "is not a GEMPACK header array file"),
    "other_json.har": (NotSupportedYet, "in JSON"),
    "part_backwards.har": (Corrupt, "a part lies outside the array.*'BAD1', record 3"),
    "part_length_wrong.har": (Corrupt, "part of the data has a wrong length.*24 bytes, got 20"),
    "part_missing.har": (Corrupt, "file ends before the position of a part.*record 5, byte 276"),
    "part_outside.har": (Corrupt, "a part lies outside the array.*'BAD1', record 3"),
    "parts_overlap.har": (Corrupt, "two parts hold the same values.*'BAD1', byte 360"),
    "rank_eight.har": (Corrupt, "wrong number of dimensions.*got 8"),
    "rank_too_small.har": (Corrupt, "wrong number of dimensions.*got 1"),
    "record_before_header.har": (Corrupt, "is not a GEMPACK header array file"),
    "record_too_many.har": (Corrupt, "a record too many.*'MORE', record 6, byte 337"),
    "second_record_missing.har": (Corrupt, "file ends before the second record.*byte 12"),
    "second_record_short.har": (Corrupt, "a record is too short.*at least 84 bytes, got 10"),
    "size_negative.har": (Corrupt, "negative size"),
    "sizes_wrong_number.har": (Corrupt, "wrong number of sizes.*expected 7, got 2"),
    "sparse_gigabytes.har": (TooLarge, "promises 8589934588 bytes of zeros in 24 bytes"),
    "sparse_more_than_cells.har": (Corrupt, "more nonzero values than the array has"),
    "sparse_part_missing.har": (Corrupt, "file ends before a part of the sparse data"),
    "sparse_position_outside.har": (Corrupt, "outside the array.*expected 1 to 4, got 5"),
    "sparse_position_repeated.har": (Corrupt, "do not increase.*more than 2, got 2"),
    "sparse_position_zero.har": (Corrupt, "do not increase.*more than 0, got 0"),
    "sparse_positions_down.har": (Corrupt, "do not increase.*more than 3, got 2"),
    "sparse_terabytes.har": (Corrupt, "without a position for every value"),
    "sparse_width_eight.har": (Corrupt, "unknown widths"),
    "status_unknown.har": (Corrupt, "unknown status of a dimension.*got 'x'"),
    "storage_sparse_matrix.har": (Corrupt, "unknown storage of a 2R header"),
    "storage_unknown.har": (Corrupt, "unknown storage.*got 'HALF'"),
    "text_length_wrong.har": (Corrupt, "list of strings has a wrong length"),
    "text_none_here.har": (Corrupt, "wrong number of strings in a record"),
    "text_too_few.har": (Corrupt, "file ends before the list of strings"),
    "text_total_differs.har": (Corrupt, "list of strings is one of another length"),
    "text_width_zero.har": (Unsupported, "'BAD1' holds strings of 0 characters"),
    "type_de.har": (Unsupported, "header 'BAD1' has the data type 'DE'.*byte 0"),
    "type_dl.har": (Unsupported, "header 'BAD1' has the data type 'DL'.*byte 0"),
    "type_unknown.har": (Unsupported, "header 'BAD1' has the data type 'ZZ'.*byte 0"),
    "zeros.har": (Corrupt, "is not a GEMPACK header array file"),
}


def test_every_hostile_file_has_an_expected_error() -> None:
    assert sorted(REFUSED_FILES) == sorted(path.name for path in (FIXTURES / "hostile").iterdir())


@every("name", REFUSED_FILES)
def test_hostile_file_is_refused(name: str) -> None:
    kind, words = REFUSED_FILES[name]
    path = FIXTURES / "hostile" / name

    with pytest.raises(kind, match=rf"(?s){words}") as caught:
        [decode(array) for array in read(path).arrays]

    assert type(caught.value) is kind
    assert f"'{path}'" in str(caught.value)


def test_unknown_types_are_left_out_when_asked() -> None:
    bundle = read(FIXTURES / "hostile" / "type_unknown.har", unknown="skip")

    assert bundle.names == ["GOOD"]
    assert bundle.notes == ["header 'BAD1' was left out: unknown data type 'ZZ'"]


def attempt(path: Path) -> list[tuple[str, bytes]] | None:
    """Return names and elements of a file, or None where it is refused by an error of ours."""
    source = Source(str(path), max_memory=64 << 20)
    try:
        with har.read(source, solution="headers") as bundle:
            found = [
                (a.name, decode(a).tobytes() if a.nbytes <= 64 << 20 else b"")
                for a in bundle.arrays
            ]
    except RaconvertError as error:
        if str(path) not in str(error):
            pytest.fail(f"the message does not name the file: {error}")
        return None
    return found


@pytest.mark.parametrize("name", GOOD)
def test_cut_at_every_record_boundary_and_beside_it(name: str, tmp_path: Path) -> None:
    """A cut file is refused, or holds the first headers whole: the format has no end mark."""
    contents = (FIXTURES / "good" / name).read_bytes()
    assert_cuts(contents, attempt(FIXTURES / "good" / name), tmp_path / "cut.har")


@pytest.mark.parametrize("name", ["SJSUB.sl4", "test_Forenew7.shk", "harpy_test.har"])
def test_cut_real_files(name: str, corpus: Callable[..., Path], tmp_path: Path) -> None:
    path = corpus("har", name)
    assert_cuts(path.read_bytes(), attempt(path), tmp_path / "cut.har")


def assert_cuts(contents: bytes, whole: list[tuple[str, bytes]] | None, path: Path) -> None:
    assert whole is not None
    # A header begins where the payload of a record does not begin with four blanks.
    ends = [at for at, _, payload in records(contents) if payload[:4] != b"    "]
    for at, end, payload in some(records(contents), 80, path.parent):
        for length in {at, at + 1, at + 4, end - 1, end}:
            path.write_bytes(contents[:length])
            found = attempt(path)
            if length in (*ends[1:], len(contents)) and found is not None:
                assert found == whole[: len(found)]
            elif length not in (*ends[1:], len(contents)):
                assert found is None, f"cut to {length} bytes, in {payload[:20]!r}"


def test_a_file_that_changed_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    path.write_bytes((FIXTURES / "good" / "harpy.har").read_bytes())
    array = read(path)["FULL"]
    path.write_bytes(path.read_bytes()[:-100])

    with pytest.raises(Corrupt, match="became shorter while it was read"):
        decode(array)


def test_the_whole_of_a_large_array_needs_its_memory() -> None:
    source = Source(str(FIXTURES / "good" / "harpy.har"), max_memory=40_000)
    array = har.read(source)["FULL"]

    with pytest.raises(TooLarge, match="header 'FULL' whole in memory needs 43200 bytes"):
        array.data[0]
    assert decode(array, 1000).size == 10_800


def test_regions_keep_the_whole_alive_and_nothing_else_does() -> None:
    array = read(FIXTURES / "good" / "harpy.har")["FULL"]
    region = array.data[1:3]
    whole = region.base

    assert array.data[5:6].base is whole
    left = weakref.ref(whole)
    del region, whole
    assert left() is None


def test_mat_files_are_not_claimed(tmp_path: Path) -> None:
    """MAT v4 has no magic either: five integers, of which the first may be 4 in old files."""
    files = {
        "mat4": struct.pack("<5i", 0, 2, 1, 0, 2) + b"x\0" + struct.pack("<2d", 1, 2),
        "four": struct.pack("<5i", 4, 4, 4, 4, 4) + bytes(100),
        "name_only_blank": struct.pack("<i4si", 4, b"    ", 4) + bytes(100),
        "other_fortran": struct.pack("<i4si", 4, b"ABCD", 4) + struct.pack("<i8si", 8, b"x" * 8, 8),
        "text": b"fdsa fdsa fdsa fdsa",
    }
    for name, contents in files.items():
        (tmp_path / name).write_bytes(contents)
        assert har.sniff(Source(str(tmp_path / name))) == NO, name
    (tmp_path / "cut").write_bytes((FIXTURES / "good" / "names.har").read_bytes()[:12])
    assert har.sniff(Source(str(tmp_path / "cut"))) == MAYBE


# --- selecting ----------------------------------------------------------------------------------


class _CountingFile:
    def __init__(self, file: Any, count: list[int]) -> None:
        self._file, self._count = file, count

    def __enter__(self) -> _CountingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def seek(self, *place: int) -> int:
        return self._file.seek(*place)

    def read(self, nbytes: int) -> bytes:
        data = self._file.read(nbytes)
        self._count[0] += len(data)
        return data

    def readinto(self, view: Any) -> int:
        got = self._file.readinto(view)
        self._count[0] += got
        return got


def test_selecting_headers_reads_only_those(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = [0]
    really = Source.open
    monkeypatch.setattr(Source, "open", lambda self: _CountingFile(really(self), count))
    values = np.arange(1, 250_001, dtype="f4").reshape(500, 500)
    path = tmp_path / "x.har"
    write(Bundle([array_of(values, name) for name in ("A", "B", "C")]), path)

    bundle = read(path)
    indexed = count[0]
    one = decode(bundle["B"])

    assert np.array_equal(one, values)
    assert indexed < path.stat().st_size / 20
    assert count[0] - indexed == values.nbytes


# --- writing ------------------------------------------------------------------------------------


def sets_of(*axes: Axis, **fields: Any) -> Metadata:
    return Metadata(axes=list(axes), **fields)


def test_axes_become_sets(tmp_path: Path) -> None:
    meta = sets_of(
        Axis(name="REG", labels=["EU", "USA"]), Axis(name="year"), Axis(labels=["a", "b", "c"]),
        description="Élan of regions",
    )  # fmt: skip
    array = array_of(np.arange(24, dtype="f4").reshape(2, 4, 3), meta=meta)
    bundle = Bundle([array])

    assert har.plan(bundle).fits == []
    back = read(write(bundle, tmp_path / "x.har")).arrays[0]

    assert [axis.to_dict() for axis in back.ra_axes] == [axis.to_dict() for axis in meta.axes]
    assert back.meta.description == "Élan of regions"
    assert back.meta.formats["har"]["coefficient"] == "ARR1"
    data = (tmp_path / "x.har").read_bytes()
    label_record = [payload for _, _, payload in records(data)][2]
    assert label_record[32:71] == b"REG         year        Unk3        kuk"


def test_a_repeated_set_is_stored_once(tmp_path: Path) -> None:
    reg = Axis(name="REG", labels=["EU", "USA"])
    array = array_of(np.ones((2, 2), "f4"), meta=sets_of(reg, reg))
    write(Bundle([array]), tmp_path / "x.har")

    assert (tmp_path / "x.har").read_bytes().count(b"USA") == 1
    assert [*read(tmp_path / "x.har").arrays[0].ra_axes[1].labels] == ["EU", "USA"]


def test_one_name_with_two_label_lists_becomes_two_sets(tmp_path: Path) -> None:
    meta = sets_of(Axis(name="REG", labels=["a", "b"]), Axis(name="REG", labels=["c", "d"]))
    bundle = Bundle([array_of(np.ones((2, 2), "f4"), meta=meta)])

    assert texts(har.plan(bundle).fits, EQUIVALENT) == [
        "array 'ARR1': metadata: axis 'REG' becomes the set 'REG2'"
    ]
    axes = read(write(bundle, tmp_path / "x.har")).arrays[0].ra_axes
    assert [(axis.name, axis.labels and [*axis.labels]) for axis in axes] == [
        ("REG", ["a", "b"]),
        ("REG2", ["c", "d"]),
    ]


def test_labels_that_do_not_fit_are_shortened_and_said(tmp_path: Path) -> None:
    labels = ["United Kingdom", "United Kingsland", 2007, 1.5, "日本", "United Kingd"]
    meta = sets_of(Axis(name="a very long name of an axis", labels=labels))
    bundle = Bundle([array_of(np.ones(6, "f4"), meta=meta)])

    said = texts(har.plan(bundle).fits, EQUIVALENT)
    [axis] = read(write(bundle, tmp_path / "x.har")).arrays[0].ra_axes

    assert [*axis.labels] == ["United King2", "United Kings", "2007", "1.5", "??", "United Kingd"]
    assert axis.name == "a very long"
    assert "'United Kingdom' is 'United King2', 'United Kingsland' is 'United Kings', " in said[0]
    assert "and 2 more" in said[0]
    assert said[1].endswith("axis 'a very long name of an axis' becomes the set 'a very long'")


def test_labels_of_another_number_are_left_out() -> None:
    meta = sets_of(Axis(name="X", labels=["a"]))
    [fit] = har.plan(Bundle([array_of(np.ones(3, "f4"), meta=meta)])).fits

    assert str(fit) == ("array 'ARR1': metadata: 1 labels of axis 'X' are left out: it has 3")


def test_what_is_lost_of_metadata_is_named() -> None:
    meta = sets_of(
        Axis(name="X", units="m", spacing=0.5), units="K", attributes={"a": 1},
        description="d" * 71, formats={"png": {"gama": 1}, "nrrd": {}},
    )  # fmt: skip
    bundle = Bundle([array_of(np.ones(3, "f4"), meta=meta)], attributes={"b": 2}, groups={"g": {}})
    said = texts(har.plan(bundle).fits, EQUIVALENT)

    assert [text.partition("metadata: ")[2] for text in said] == [
        f"description becomes 70 Latin-1 characters: {'d' * 70!r}",
        "left out: units, attributes (a), namespace png, axis 0 'X' (units, spacing)",
        "HAR has no place for attributes of the file: b",
        "HAR has no place for groups without arrays: g/",
    ]


def test_names_are_made_unique_without_regard_to_case(tmp_path: Path) -> None:
    given_names = [
        "temperature", "TEMP", "temp", "Tempo", "g/h/data", "é", "xxcr", "", "a b", "X1", "x1",
        "group/temperature of the long sea water",
    ]  # fmt: skip
    bundle = Bundle([array_of(np.ones(2, "f4"), name) for name in given_names])

    names = har.plan(bundle).names
    fits = har.plan(bundle).fits
    back = read(write(bundle, tmp_path / "x.har"))

    assert names == [
        "TEM1", "TEMP", "TEM2", "TEM3", "DATA", "A", "AXXC", "A1", "AB", "X1", "X11", "TEM4",
    ]  # fmt: skip
    assert back.names == names
    assert [fit.array for fit in fits] == [
        n for n, m in zip(given_names, names, strict=True) if n != m
    ]
    assert {(fit.outcome, fit.property) for fit in fits} == {(EQUIVALENT, "names")}
    assert str(fits[0]) == "array 'temperature': names: becomes the header 'TEM1'"
    assert back["TEM1"].meta.description == "temperature"
    assert back["TEM1"].meta.formats["har"]["coefficient"] == "temperature"
    assert back["TEM4"].meta.formats["har"]["coefficient"] == "temperature_"


def test_many_arrays_of_one_long_name() -> None:
    bundle = Bundle([array_of(np.ones(1, "f4"), f"variable_{n}") for n in range(3000)])
    names = har.plan(bundle).names

    assert len({name.upper() for name in names}) == 3000
    assert all(len(name) == 4 and name.isalnum() for name in names)


TYPES = [
    ("f4", (2, 3), "RE", []),
    ("f4", (), "RE", []),
    (">f4", (2,), "RE", []),
    ("f2", (2,), "RE", ["equivalent type"]),
    ("f8", (2,), None, ["refused type --dtype float32"]),
    ("c8", (2,), None, ["refused type --dtype float32"]),
    ("i4", (2, 3), "2I", []),
    ("i4", (2,), "2I", ["equivalent shape"]),
    ("i4", (), "2I", ["equivalent shape"]),
    ("i4", (2, 3, 4), None, ["refused shape --dtype float32"]),
    ("i8", (2, 3), None, ["refused type --dtype int32"]),
    ("i8", (2, 3, 4), None, ["refused type --dtype float32"]),
    ("u4", (2,), None, ["refused type --dtype int32"]),
    ("u1", (2, 3), "2I", ["equivalent type"]),
    ("i2", (2, 3, 4), "RE", ["equivalent type"]),
    ("?", (2,), "2I", ["equivalent type", "equivalent shape"]),
    ("S3", (2,), "1C", ["equivalent type"]),
    ("U3", (2,), "1C", ["refused type --allow dtype"]),
    ("S3", (2, 2), None, ["equivalent type", "refused shape None"]),
    ("M8[s]", (2,), None, ["refused type None"]),
    ("f4", (1,) * 8, None, ["refused shape None"]),
    ("f4", (1, 1, 1, 1, 1, 1, 2), "RE", []),
    ("f4", (0, 3), "RE", []),
]


@pytest.mark.parametrize(("dtype", "shape", "kind", "expected"), TYPES)
def test_types(
    dtype: str, shape: tuple[int, ...], kind: str | None, expected: list[str], tmp_path: Path
) -> None:
    values = np.zeros(shape, dtype)
    bundle = Bundle([array_of(values)])
    fits = har.plan(bundle).fits

    said = [
        f"{fit.outcome} {fit.property}" + (f" {fit.flag}" if fit.outcome == REFUSED else "")
        for fit in fits
    ]
    assert said == expected
    if kind:
        back = read(write(bundle, tmp_path / "x.har")).arrays[0]
        assert back.meta.formats["har"]["type"] == kind
        assert decode(back).size == values.size


def test_small_integers_with_labels_become_reals(tmp_path: Path) -> None:
    meta = sets_of(Axis(name="REG", labels=["a", "b"]))
    bundle = Bundle([array_of(np.array([1, 255], "u1"), meta=meta)])
    back = read(write(bundle, tmp_path / "x.har")).arrays[0]

    assert back.meta.formats["har"]["type"] == "RE"
    assert decode(back).tolist() == [1, 255]
    assert [*back.ra_axes[0].labels] == ["a", "b"]


def test_strings_are_padded_with_blanks_and_come_back(tmp_path: Path) -> None:
    arrays = [
        array_of(np.array([b"ab", b"", b"c\0d", b" all"], "S4"), "BYTS"),
        array_of(np.array(["ab", "é", ""], "U4"), "UNIC"),
    ]
    fits = har.plan(Bundle(arrays)).fits
    path = write(Bundle(arrays), tmp_path / "x.har")
    back = read(path)

    assert str(fits[0]) == "array 'BYTS': type: strings are padded with blanks"
    assert b"ab      c\0d  all" in path.read_bytes()
    assert b"ab  \xe9       " in path.read_bytes()
    for max_bytes in (4, 1000):
        assert decode(back["BYTS"], max_bytes).tolist() == [b"ab", b"", b"c\0d", b" all"]
        assert decode(back["UNIC"], max_bytes).tolist() == [b"ab", b"\xe9", b""]
    assert np.asarray(back["BYTS"]).tolist() == [b"ab", b"", b"c\0d", b" all"]


@pytest.mark.parametrize("odd", [b"ab ", b" ", b"abc ", b"a\0 "])
def test_a_string_that_ends_with_a_blank_is_refused_unless_allowed(
    odd: bytes, tmp_path: Path
) -> None:
    values = np.full(20_000, b"fine", "S4")
    values[12_345] = odd
    np.save(tmp_path / "x.npy", values)
    with pytest.raises(WouldLose, match="ends with a blank") as caught:
        raconvert.convert(tmp_path / "x.npy", tmp_path / "x.har", max_memory=1 << 16)
    assert caught.value.where == "[12345]"
    assert repr(odd) in caught.value.what
    assert not (tmp_path / "x.har").exists()

    report = raconvert.convert(
        tmp_path / "x.npy", tmp_path / "x.har", allow=["elements"], verify=True
    )
    assert [(fit.array, fit.property) for fit in report.allowed] == [("x", "elements")]
    back = decode(read(tmp_path / "x.har").arrays[0])
    values[12_345] = odd.rstrip(b" \0")
    assert np.array_equal(back, values)


def test_nothing_is_lost_by_an_allowance_that_was_not_needed(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([b"a", b" b"]))
    report = raconvert.convert(
        tmp_path / "x.npy", tmp_path / "x.har", allow=["elements"], verify=True
    )
    assert report.allowed == []


def test_strings_by_way_of_npz_come_back_without_metadata(tmp_path: Path) -> None:
    source = FIXTURES / "good" / "every_type.har"
    report = raconvert.convert(source, tmp_path / "x.npz", arrays=["TXT1"])
    assert report.allowed == []
    raconvert.convert(tmp_path / "x.npz", tmp_path / "y.har", verify=True)
    back = read(tmp_path / "y.har")["TXT1"]

    assert decode(back).tolist() == [b"EU", b" USA", b"Row"]
    assert back.element.nbytes == 5


def test_dimension_scales_of_hdf5_become_sets(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    sets = {"reg": [b"EU", b"ROW"], "com": [b"food", b"mnfc", b"x"]}
    with h5py.File(tmp_path / "x.h5", "w") as file:
        flow = file.create_dataset("flow", data=np.arange(6, dtype="f4").reshape(2, 3))
        for axis, (name, labels) in enumerate(sets.items()):
            scale = file.create_dataset(name, data=np.array(labels, "S4"))
            scale.make_scale(name)
            flow.dims[axis].attach_scale(scale)

    report = raconvert.convert(tmp_path / "x.h5", tmp_path / "x.har", verify=True)
    back = read(tmp_path / "x.har")

    assert report.allowed == []
    assert [(axis.name, axis.labels and [*axis.labels]) for axis in back["flow"].ra_axes] == [
        (name, [label.decode() for label in labels]) for name, labels in sets.items()
    ]
    assert decode(back["flow"]).tolist() == [[0, 1, 2], [3, 4, 5]]
    for name, labels in sets.items():
        assert decode(back[name]).tolist() == labels


def test_strings_beyond_latin_1_are_refused(tmp_path: Path) -> None:
    array = array_of(np.array(["ok", "日本"], "U4"))

    with pytest.raises(WouldLose, match="'日本' of array 'ARR1' has characters beyond Latin-1"):
        write(Bundle([array]), tmp_path / "x.har")


def test_a_coordinate_of_strings_becomes_a_set(tmp_path: Path) -> None:
    array = array_of(np.array([b"EU", b"US"]), "REG", sets_of(Axis(name="REG")))
    back = read(write(Bundle([array]), tmp_path / "x.har")).arrays[0]

    assert back.meta.description == "Set REG"


@pytest.mark.parametrize(
    ("nonzero", "storage", "expected"),
    [
        (59, "auto", "SPSE"), (60, "auto", "FULL"), (0, "auto", "SPSE"), (100, "full", "FULL"),
        (0, "full", "FULL"), (100, "sparse", "SPSE"), (100, "auto", "FULL"),
    ],
)  # fmt: skip
def test_storage(nonzero: int, storage: str, expected: str, tmp_path: Path) -> None:
    values = np.zeros(100, "f4")
    values[:nonzero] = 2.5
    back = read(write(Bundle([array_of(values)]), tmp_path / "x.har", storage=storage)).arrays[0]

    assert back.storage["storage"] == expected
    assert decode(back).tobytes() == values.tobytes()


def test_sparse_storage_keeps_minus_zero_and_nan(tmp_path: Path) -> None:
    values = np.frombuffer(struct.pack("<4I", 0, 0x80000000, 0x7FC00001, 0), "<f4")
    back = read(write(Bundle([array_of(values)]), tmp_path / "x.har", storage="sparse")).arrays[0]

    assert decode(back).tobytes() == values.tobytes()


def test_a_changed_storage_is_not_the_kept_one(tmp_path: Path) -> None:
    bundle = read(FIXTURES / "good" / "sparse_parts.har")
    full = read(write(bundle, tmp_path / "x.har", storage="full")).arrays[0]

    assert full.storage["storage"] == "FULL"
    assert decode(full).tobytes() == decode(bundle.arrays[0]).tobytes()


def test_a_scalar_is_full(tmp_path: Path) -> None:
    back = read(write(Bundle([array_of(np.zeros((), "f4"))]), tmp_path / "x.har")).arrays[0]

    assert (back.shape, back.storage["storage"]) == ((), "FULL")


def test_invalid_fields_of_the_namespace_are_said_and_ignored(tmp_path: Path) -> None:
    odd = {
        "type": "DE", "storage": 3, "split": -1, "counters": [1], "logical": ["a"], "sets": [5],
        "coefficient": "x" * 13, "name": "toolong", "status": "kq", "label_split": 0,
    }  # fmt: skip
    hidden = [
        {"name": "XXCR", "text": ["x" * 80], "width": 70},
        {"name": "XXCD", "records": [b"bad"]},
        {"name": 5},
        "text",
    ]
    array = array_of(np.ones(3, "f4"), meta=Metadata(formats={"har": odd}))
    bundle = Bundle([array], formats={"har": {"hidden": hidden, "framing": "odd"}})
    said = texts(har.plan(bundle).fits, EQUIVALENT)

    assert len(said) == 5
    assert all(field in said[0] for field in odd)
    assert read(write(bundle, tmp_path / "x.har")).formats == {}


def test_the_rules_of_parts() -> None:
    """The example of the format's description, and the same rule counted another way."""
    assert part_counts((20, 20, 41, 2), 7996) == ([7600, 7600, 1200], 2)
    for dims in [(20, 20, 41, 2), (3, 5, 4, 2), (1, 1), (7,), (2, 0, 3), (9, 2)]:
        for limit in (1, 3, 6, 7, 8, 7996):
            pattern, repeats = part_counts(dims, limit)
            found = [
                int(np.prod([b - a + 1 for a, b in zip(box[::2], box[1::2], strict=True)]))
                for box in (list(box) for box in boxes(dims, limit))
            ]
            assert found == pattern * repeats


NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=14)
SETS = st.sampled_from(["REG", "COM", "Unk2", "a b", "é", "too long to be a set"])


@given(
    values=hnp.arrays(
        st.sampled_from(["<f4", ">f4"]),
        hnp.array_shapes(min_dims=0, max_dims=7, min_side=0, max_side=4),
    ),
    storage=st.sampled_from(["auto", "full", "sparse"]),
    framing=st.sampled_from(["little", "big", "lahey"]),
    name=NAMES,
    data=st.data(),
)
def test_any_array_comes_back(
    values: np.ndarray, storage: str, framing: str, name: str, data: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    axes = []
    for size in values.shape:
        labels = st.lists(NAMES, min_size=size, max_size=size)
        axes.append(Axis(name=data.draw(SETS), labels=data.draw(st.none() | labels)))
    bundle = Bundle([array_of(values, name, Metadata(axes=axes))])
    said = har.plan(bundle).fits
    path = tmp_path_factory.mktemp("har") / "x.har"

    back = read(write(bundle, path, storage=storage, framing=framing))

    assert not texts(said, REFUSED)
    assert back.names == har.plan(bundle).names
    assert back.arrays[0].shape == values.shape
    assert decode(back.arrays[0]).tobytes() == values.astype("<f4").tobytes()
    if not any(fit.property == "metadata" for fit in said) and values.ndim:
        got = [(axis.name, axis.labels and [*axis.labels]) for axis in back.arrays[0].ra_axes]
        expected = [(None if a.name == "Unk2" else a.name, a.labels and [*a.labels]) for a in axes]
        assert (got or [(None, None)] * len(axes)) == expected
    again = write(through_yaml(back), path.with_name("y.har"))
    assert again.read_bytes() == path.read_bytes()


# --- harpy3 -------------------------------------------------------------------------------------


@pytest.fixture
def harpy() -> Iterator[Any]:
    """Return harpy3's reader and writer; what numpy deprecates of it is no concern here."""
    import harpy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield harpy


def test_harpy3_reads_what_is_written(harpy: Any, tmp_path: Path) -> None:
    reg = Axis(name="REG", labels=["EU", "USA", "Row"])
    goods = Axis(name="COM", labels=[f"c{n}" for n in range(3000)])
    rng = np.random.default_rng(7)
    full = rng.random((3, 3000, 3), dtype="f4") + 1
    thin = np.where(full > 1.9, full, 0).astype("f4")
    meta = sets_of(reg, goods, reg, description="described")
    arrays = [
        array_of(full, "FULL", meta),
        array_of(thin, "THIN", meta),
        array_of(np.arange(12_000, dtype="i4").reshape(60, 200), "INTS"),
        array_of(rng.random(20_000, dtype="f4"), "UNLA"),
        array_of(np.array([b"one", b"two"], "S5"), "TEXT"),
    ]
    write(Bundle(arrays), tmp_path / "x.har")

    found = {
        h["name"]: h for h in harpy.HarFileIO.readHeaderArraysFromFile(str(tmp_path / "x.har"))
    }

    assert list(found) == ["FULL", "THIN", "INTS", "UNLA", "TEXT"]
    assert [h["storage_type"] for h in found.values()] == ["FULL", "SPSE", "FULL", "FULL", "FULL"]
    for array in arrays[:4]:
        assert np.array_equal(found[array.name]["array"], np.asarray(array))
    assert [str(text).rstrip() for text in found["TEXT"]["array"]] == ["one", "two"]
    assert [one["name"] for one in found["FULL"]["sets"]] == ["REG", "COM", "REG"]
    assert found["FULL"]["sets"][1]["dim_desc"] == [*goods.labels]
    assert found["FULL"]["sets"][2]["dim_desc"] == [*reg.labels]
    assert found["FULL"]["coeff_name"] == "FULL".ljust(12)
    assert found["FULL"]["long_name"] == "described".ljust(70)
    assert found["UNLA"]["sets"][0]["status"] == "u"


def test_what_harpy3_wrote_is_read(harpy: Any) -> None:
    path = FIXTURES / "good" / "harpy.har"
    expected = {h["name"]: h for h in harpy.HarFileIO.readHeaderArraysFromFile(str(path))}
    bundle = read(path)

    full = np.arange(1, 10_801, dtype="f4").reshape((3, 90, 40), order="F")
    assert np.array_equal(decode(bundle["FULL"]), full)
    assert np.array_equal(decode(bundle["THIN"]), np.where(full % 7 == 0, full, 0))
    assert np.array_equal(decode(bundle["INTS"]).ravel("F"), np.arange(9000))
    for name in ("FULL", "THIN", "INTS"):
        assert np.array_equal(decode(bundle[name]), expected[name]["array"])
    for axis, one in zip(bundle["FULL"].ra_axes, expected["FULL"]["sets"], strict=True):
        assert (axis.name, axis.labels and [*axis.labels]) == (one["name"], one["dim_desc"])


# harpy3 raises ValueError at RL, and reads no other framing than the modern one.
HARPY_READS = [
    n for n in CORPUS if n not in ("synthetic_RL.har", "synthetic_lahey_of_harpy_test.har")
]


@pytest.mark.parametrize("name", HARPY_READS)
def test_harpy3_agrees_where_the_corpus_says_so(
    name: str, corpus: Callable[..., Path], harpy: Any
) -> None:
    expected = json.loads(corpus("har", "expected", f"{name}.json").read_text())
    agreeing = {h["name"].strip() for h in expected["headers"] if h["harpy3_agrees"]}
    bundle = read(corpus("har", name), housekeeping="show")
    info = harpy.HarFileIO.readHarFileInfo(str(corpus("har", name)))

    assert agreeing
    for array in bundle.arrays:
        if array.name in agreeing and array.element.kind != "user":
            found = harpy.HarFileIO.readHeader(hfi=info, header_name=array.name)["array"]
            assert decode(array).tobytes() == found.reshape(array.shape).tobytes()
