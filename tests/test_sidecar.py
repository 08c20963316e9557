"""The metadata sidecar `TARGET.yaml`: what it says, when it is honoured, and what is refused."""

from __future__ import annotations

import datetime
import json
import math
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ra_bytes
import yaml
from cases import every
from hypothesis import given
from hypothesis import strategies as st

import raconvert
from raconvert import Metadata, convert
from raconvert.api import array_of
from raconvert.arrays.metadata import Axis
from raconvert.errors import (
    Corrupt,
    RaconvertError,
    TargetExists,
    TooLarge,
    Unsupported,
    UsageError,
    WouldLose,
)
from raconvert.files.limits import Limits
from raconvert.files.source import Source
from raconvert.metadata.roundtrip import record_of
from raconvert.metadata.sidecar import describe, is_ours, left_over, text_of
from raconvert.metadata.yaml import dump

VALUES = np.arange(12, dtype="i4").reshape(3, 4)
ENDS = 64 << 10


@pytest.fixture
def fortran(tmp_path: Path) -> Path:
    """Return an .ra of a column-major array, with its sidecar."""
    np.save(tmp_path / "f.npy", np.asfortranarray(VALUES))
    convert(tmp_path / "f.npy", tmp_path / "f.ra", axes="fortran")
    return tmp_path / "f.ra"


def sidecar(path: Path) -> Path:
    return path.with_name(path.name + ".yaml")


def load(path: Path) -> dict[str, Any]:
    """Return the sidecar of a file, read with PyYAML alone."""
    return yaml.safe_load(sidecar(path).read_bytes())


def rewrite(path: Path, **changes: Any) -> None:
    """Change fields of the sidecar of a file; None takes one away."""
    fields = {**load(path), **changes}
    fields = {name: value for name, value in fields.items() if value is not None}
    sidecar(path).write_text(yaml.safe_dump(fields, sort_keys=False))


def append(path: Path, text: str) -> None:
    with sidecar(path).open("a") as file:
        file.write(text)


def meta_of(path: Path, **options: Any) -> Metadata:
    with raconvert.open(path, **options) as array:
        return array.meta


# When there is one -------------------------------------------------------------------------------


def test_a_plain_array_needs_none(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    report = convert(tmp_path / "x.npy", tmp_path / "x.ra")
    assert sorted(os.listdir(tmp_path)) == ["x.npy", "x.ra"]
    assert report.written == [str(tmp_path / "x.ra")]


@pytest.mark.parametrize(
    "values",
    [np.arange(3), np.array(1.5), np.zeros((0, 3)), np.arange(6).reshape(2, 3).astype(">i2")],
    ids=["vector", "scalar", "empty", "big-endian"],
)
def test_no_other_plain_array_needs_one(tmp_path: Path, values: np.ndarray) -> None:
    np.save(tmp_path / "x.npy", values)
    convert(tmp_path / "x.npy", tmp_path / "x.ra")
    assert not sidecar(tmp_path / "x.ra").exists()


def test_what_is_a_sidecar(fortran: Path, tmp_path: Path) -> None:
    link, other = tmp_path / "link.yaml", tmp_path / "other.yaml"
    link.symlink_to(sidecar(fortran))
    other.write_text("a: 1\n")
    assert is_ours(str(sidecar(fortran)))
    assert not any(is_ours(str(path)) for path in (link, other, tmp_path, tmp_path / "none.yaml"))


@pytest.mark.parametrize(("beside_ra", "kept"), [(True, ["npy"]), (False, ["npy", "ra"])])
def test_only_ra_holds_its_own_namespace(beside_ra: bool, kept: list[str]) -> None:
    array = array_of(np.zeros(2))
    array.meta = array.meta.replace(formats={"npy": {"a": 1}, "ra": {"b": 2}})
    assert sorted(record_of(array, beside_ra=beside_ra)["formats"]) == kept


def test_column_major_order_needs_one(fortran: Path) -> None:
    assert load(fortran)["index_order"] == "F"
    assert set(load(fortran)) == {"describes", "index_order"}


def test_it_is_listed_among_what_was_written(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.asfortranarray(VALUES))
    report = convert(tmp_path / "f.npy", tmp_path / "f.ra", axes="fortran")
    assert sorted(report.written) == [str(tmp_path / "f.ra"), str(tmp_path / "f.ra.yaml")]


def test_only_ra_gets_one_by_itself(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", VALUES, meta=Metadata(description="text"))
    report = convert(tmp_path / "x.ra", tmp_path / "x.npy")
    assert not sidecar(tmp_path / "x.npy").exists()
    assert [fit.property for fit in report.equivalent] == ["metadata"]


@pytest.mark.parametrize("suffix", ["npy", "npz", "png"])
def test_every_format_gets_one_on_request(tmp_path: Path, suffix: str) -> None:
    values = VALUES.astype("u1")
    raconvert.write(tmp_path / "x.ra", values, meta=Metadata(description="text"))
    report = convert(tmp_path / "x.ra", tmp_path / f"x.{suffix}", meta="sidecar")
    assert report.equivalent == []
    fields = load(tmp_path / f"x.{suffix}")
    size = (tmp_path / f"x.{suffix}").stat().st_size
    assert fields["describes"]["size"] == size
    if suffix == "npz":
        assert fields["arrays"] == {"x": {"description": "text"}}
    else:
        assert fields["description"] == "text"
    convert(tmp_path / f"x.{suffix}", tmp_path / "back.ra")
    assert meta_of(tmp_path / "back.ra").description == "text"


# What it describes -------------------------------------------------------------------------------


def test_it_begins_with_describes(fortran: Path) -> None:
    assert sidecar(fortran).read_bytes().startswith(b"describes:")


def test_what_it_describes_of_a_small_file(fortran: Path) -> None:
    data = fortran.read_bytes()[64:]
    assert load(fortran)["describes"] == {
        "eltype": 1,
        "elbyte": 4,
        "dims": [3, 4],
        "size": 48,
        "crc32_first": f"{zlib.crc32(data):08x}",
        "crc32_last": f"{zlib.crc32(data):08x}",
    }


def test_what_it_describes_of_a_large_file(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 255, (500, 400), "u1")
    np.save(tmp_path / "f.npy", np.asfortranarray(values))
    convert(tmp_path / "f.npy", tmp_path / "f.ra", axes="fortran")
    data = (tmp_path / "f.ra").read_bytes()[64:]
    described = load(tmp_path / "f.ra")["describes"]
    assert described["crc32_first"] == f"{zlib.crc32(data[:ENDS]):08x}"
    assert described["crc32_last"] == f"{zlib.crc32(data[-ENDS:]):08x}"


@every(
    "nbytes", [0, 1, ENDS - 1, ENDS, ENDS + 1, 2 * ENDS - 1, 2 * ENDS, 2 * ENDS + 1, 3 * ENDS, 1 << 20]
)  # fmt: skip
@every("before", [0, 1, 100])
def test_what_is_described_of_any_length(nbytes: int, before: int, tmp_path: Path) -> None:
    """Both ends; samples between where the ends leave something out; here they are all of it."""
    data = np.random.default_rng(nbytes).bytes(nbytes)
    (tmp_path / "x").write_bytes(bytes(before) + data + b"behind")
    source = Source(str(tmp_path / "x"))
    expected = {
        "size": source.size,
        "crc32_first": f"{zlib.crc32(data[:ENDS]):08x}",
        "crc32_last": f"{zlib.crc32(data[-ENDS:]):08x}",
    }
    if nbytes > 2 * ENDS:
        expected["crc32_samples"] = f"{zlib.crc32(data):08x}"
    assert describe(source, lambda _: (before, before + nbytes, {})) == expected
    fields = {"dims": [nbytes]}
    found = describe(source, lambda _: (before, before + nbytes, dict(fields)))
    assert found == {**fields, **{name: expected[name] for name in expected if name != "size"}}
    whole = bytes(before) + data + b"behind"
    assert describe(source)["crc32_first"] == f"{zlib.crc32(whole[:ENDS]):08x}"


@pytest.mark.parametrize(
    "second", ["", "describes: {}\n", "describes: {size: 1}\n", "describes: null\n"]
)
def test_a_sidecar_describes_one_file(fortran: Path, second: str) -> None:
    """A second description behind the right one is a key twice, whatever it says."""
    append(fortran, f"attributes: {{a: 1}}\n{second}")
    if second:
        with pytest.raises(Corrupt, match="twice|repeated|describes"):
            raconvert.read(fortran)
    else:
        assert meta_of(fortran).attributes == {"a": 1}


def test_a_sidecar_of_an_older_version_has_no_samples(tmp_path: Path) -> None:
    """It is believed as far as it goes; one that has them is believed only if they are right."""
    np.save(tmp_path / "f.npy", np.asfortranarray(np.zeros((500, 400), "u1")))
    convert(tmp_path / "f.npy", tmp_path / "f.ra", axes="fortran")
    described = load(tmp_path / "f.ra")["describes"]
    for samples, is_read in (({}, True), ({"crc32_samples": "00000000"}, False)):
        rewrite(tmp_path / "f.ra", describes={**without(described, "crc32_samples"), **samples})
        if is_read:
            assert raconvert.read(tmp_path / "f.ra").shape == (500, 400)
        else:
            with pytest.raises(
                Corrupt, match=r"crc32_samples differs.*expected crc32_samples 0000"
            ):
                raconvert.read(tmp_path / "f.ra")


def without(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name}


def most_bytes(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Let documents have no more bytes, in files that are read and in those that are written."""
    for place in ("raconvert.files.limits.DEFAULT", "raconvert.metadata.sidecar.DEFAULT"):
        monkeypatch.setattr(place, Limits(document_bytes=most))


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_the_largest_sidecar_and_the_largest_trailer(
    more: int, fortran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = sidecar(fortran).read_bytes()
    most_bytes(monkeypatch, len(text) - more)
    if more > 0:
        with pytest.raises(Corrupt, match=f"at most {len(text) - 1} bytes, got {len(text)}"):
            raconvert.read(fortran)
    else:
        assert raconvert.read(fortran).tolist() == VALUES.tolist()
    trailer = b"# raconvert metadata\nattributes: {a: 1}\n"
    most_bytes(monkeypatch, len(trailer) - more)
    data = ra_bytes.ra_file(1, 4, (4, 3), VALUES.tobytes(), trailer=trailer)
    (tmp_path / "t.ra").write_bytes(data)
    if more > 0:
        words = f"byte {len(data) - len(trailer)}; expected at most .* got {len(trailer)}"
        with pytest.raises(Corrupt, match=words):
            raconvert.read(tmp_path / "t.ra")
    else:
        assert meta_of(tmp_path / "t.ra").attributes == {"a": 1}


def test_a_trailer_is_not_part_of_the_data(fortran: Path) -> None:
    with fortran.open("ab") as file:
        file.write(b"anything")
    assert raconvert.read(fortran).tolist() == VALUES.tolist()


# A mismatch is an error --------------------------------------------------------------------------


def replace_header_field(path: Path, offset: int, value: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(struct.pack("<Q", value))


MISMATCHES: dict[str, Callable[[Path], object]] = {
    "eltype": lambda path: replace_header_field(path, 16, 2),
    "elbyte": lambda path: path.write_bytes(ra_bytes.ra_file(1, 2, (3, 8), bytes(48))),
    "dims": lambda path: path.write_bytes(path.read_bytes()[:48] + struct.pack("<QQ", 4, 3)
                                          + path.read_bytes()[64:]),
    "crc32_first": lambda path: path.write_bytes(path.read_bytes()[:64] + bytes(48)),
}  # fmt: skip


@pytest.mark.parametrize("field", MISMATCHES)
def test_a_mismatch_is_an_error_that_names_both_files(fortran: Path, field: str) -> None:
    MISMATCHES[field](fortran)
    with pytest.raises(Corrupt, match=f"{field} differs") as caught:
        raconvert.read(fortran)
    assert f"'{fortran}'" in str(caught.value)
    assert f"'{fortran}.yaml'" in str(caught.value)
    assert 'meta="ignore"' in str(caught.value)


@pytest.mark.parametrize("place", [0, 65_535, 134_464, 199_999], ids=str)
def test_a_changed_byte_at_either_end_is_noticed(tmp_path: Path, place: int) -> None:
    np.save(tmp_path / "f.npy", np.asfortranarray(np.zeros((500, 400), "u1")))
    convert(tmp_path / "f.npy", tmp_path / "f.ra", axes="fortran")
    with (tmp_path / "f.ra").open("r+b") as file:
        file.seek(64 + place)
        file.write(b"\1")
    with pytest.raises(Corrupt, match="describes another file"):
        raconvert.read(tmp_path / "f.ra")


@pytest.mark.parametrize("field", ["eltype", "dims", "crc32_last"])
def test_what_is_not_described_is_a_mismatch(fortran: Path, field: str) -> None:
    described = load(fortran)["describes"]
    del described[field]
    rewrite(fortran, describes=described)
    with pytest.raises(Corrupt, match=f"{field} differs"):
        raconvert.read(fortran)


@pytest.mark.parametrize("described", ["text", [1], 7, True], ids=repr)
def test_a_description_of_another_form_is_a_mismatch(fortran: Path, described: object) -> None:
    rewrite(fortran, describes=described)
    with pytest.raises(Corrupt, match="describes another file"):
        raconvert.read(fortran)


def test_convert_refuses_a_mismatch_and_goes_on_with_meta_ignore(
    fortran: Path, tmp_path: Path
) -> None:
    rewrite(fortran, describes={})
    with pytest.raises(Corrupt):
        convert(fortran, tmp_path / "y.npy")
    assert not (tmp_path / "y.npy").exists()
    convert(fortran, tmp_path / "y.npy", meta="ignore")
    assert np.load(tmp_path / "y.npy").tolist() == VALUES.T.tolist()


def test_the_sidecar_of_a_png_that_was_edited_is_a_mismatch(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", VALUES.astype("u1"), meta=Metadata(description="text"))
    convert(tmp_path / "x.ra", tmp_path / "x.png", meta="sidecar")
    raconvert.write(tmp_path / "y.png", VALUES.astype("u1") + 1)
    os.replace(tmp_path / "y.png", tmp_path / "x.png")
    with pytest.raises(Corrupt, match="describes another file"):
        raconvert.read(tmp_path / "x.png")


def test_a_copy_of_both_files_under_another_name_is_read(fortran: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.ra").write_bytes(fortran.read_bytes())
    (tmp_path / "copy.ra.yaml").write_bytes(sidecar(fortran).read_bytes())
    assert raconvert.read(tmp_path / "copy.ra").tolist() == VALUES.tolist()


# Who honours it ----------------------------------------------------------------------------------


def test_read_open_and_convert_honour_it(fortran: Path, tmp_path: Path) -> None:
    assert raconvert.read(fortran).tolist() == VALUES.tolist()
    with raconvert.open(fortran) as array:
        assert array.shape == (3, 4)
        assert array.index_order == "F"
        assert array[2, 3] == 11
    convert(fortran, tmp_path / "back.npy")
    assert (tmp_path / "back.npy").read_bytes() == (tmp_path / "f.npy").read_bytes()


def test_the_fast_path_never_looks(fortran: Path) -> None:
    sidecar(fortran).write_text("describes: {}\n")
    assert raconvert.ra.read(fortran).tolist() == VALUES.T.tolist()


def test_the_fast_path_writes_none(tmp_path: Path) -> None:
    raconvert.ra.write(tmp_path / "x.ra", np.asfortranarray(VALUES))
    assert os.listdir(tmp_path) == ["x.ra"]


def test_meta_ignore_reads_as_if_there_were_none(fortran: Path) -> None:
    assert raconvert.read(fortran, meta="ignore").tolist() == VALUES.T.tolist()


def test_meta_ignore_never_opens_it(fortran: Path) -> None:
    sidecar(fortran).write_text("describes: [" * 1000)
    assert raconvert.read(fortran, meta="ignore").shape == (4, 3)


def test_it_stays_in_force_from_ra_to_ra(fortran: Path, tmp_path: Path) -> None:
    convert(fortran, tmp_path / "y.ra")
    assert (tmp_path / "y.ra").read_bytes() == fortran.read_bytes()
    assert sidecar(tmp_path / "y.ra").read_bytes() == sidecar(fortran).read_bytes()


def test_index_order_on_request_is_for_files_that_say_nothing(fortran: Path) -> None:
    assert raconvert.read(fortran, index_order="C").tolist() == VALUES.tolist()
    sidecar(fortran).unlink()
    assert raconvert.read(fortran, index_order="F").tolist() == VALUES.tolist()
    assert raconvert.read(fortran, index_order="C").tolist() == VALUES.T.tolist()


# What it keeps: types ----------------------------------------------------------------------------

USER_TYPES = [
    "<M8[ns]", "<m8[15D]", "<U5", ">U5", "S7", "V3",
    [("a", "<i4"), ("b", "<f8", (2, 3))],
    [("outer", [("inner", ">u2"), ("text", "S3")]), ("ä", "?")],
    {"names": ["x", "y"], "formats": ["i1", "<f8"], "offsets": [0, 8], "itemsize": 16},
]  # fmt: skip


@pytest.mark.parametrize("descr", USER_TYPES, ids=lambda descr: str(descr)[:30])
def test_the_dtype_of_user_elements_is_kept(tmp_path: Path, descr: Any) -> None:
    dtype = np.dtype(descr)
    raw = np.random.default_rng(0).integers(1, 100, 6 * dtype.itemsize, "u1")
    if dtype.kind == "U":  # letters, not just any numbers
        raw = np.tile(np.array("Zürich"[:5], dtype).reshape(1).view("u1"), 6)
    values = raw.view(dtype).reshape(2, 3)
    np.save(tmp_path / "x.npy", values)

    convert(tmp_path / "x.npy", tmp_path / "x.ra")
    convert(tmp_path / "x.ra", tmp_path / "back.npy")

    assert sidecar(tmp_path / "x.ra").exists() == (dtype.kind != "V" or dtype.names is not None)
    assert (tmp_path / "back.npy").read_bytes() == (tmp_path / "x.npy").read_bytes()
    assert raconvert.read(tmp_path / "x.ra").dtype == np.load(tmp_path / "x.npy").dtype


def test_without_it_user_elements_are_void(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array(["2020-01-01"], "M8[ns]"))
    convert(tmp_path / "x.npy", tmp_path / "x.ra")
    assert raconvert.read(tmp_path / "x.ra", meta="ignore").dtype == np.dtype("V8")


BAD_DTYPES: dict[str, object] = {
    "object": "|O",
    "object-of-8-bytes": "O8",
    "object-in-a-field": [["a", "|O"]],
    "wider": "<M8[ns]",
    "narrower": "S1",
    "nothing": "nothing at all",
    "number": 7,
    "mapping": {"names": ["a"], "formats": ["i4"]},
    "empty-list": [],
    "no-fields": [[]],
    "field-without-type": [["a"]],
    "field-with-number": [[1, 2]],
    "deep": [["a", [["b", [["c", "|O"]]]]]],
    "huge-shape": [["a", "<i4", [2**62, 2**62]]],
    "negative-shape": [["a", "<i4", [-1]]],
    "text-bomb": "i4," * 100_000,
    "unclosed": "(1,2f4",
    "unopened": "<f4,)",
    "code": "__import__('os').system('true')",
    "twice": [["a", "<i2"], ["a", "<i2"]],
}


@pytest.mark.parametrize("case", BAD_DTYPES)
def test_a_dtype_that_is_none_is_corrupt(tmp_path: Path, case: str) -> None:
    np.save(tmp_path / "x.npy", np.array([b"abcd"] * 3))
    convert(tmp_path / "x.npy", tmp_path / "x.ra")
    assert load(tmp_path / "x.ra")["dtype"] == "|S4"
    rewrite(tmp_path / "x.ra", dtype=BAD_DTYPES[case])
    with pytest.raises(Corrupt) as caught:
        raconvert.read(tmp_path / "x.ra")
    assert f"{tmp_path / 'x.ra.yaml'}" in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_a_dtype_for_numbers_is_corrupt(fortran: Path) -> None:
    rewrite(fortran, dtype="<M8[ns]")
    with pytest.raises(Corrupt, match="other elements"):
        raconvert.read(fortran)


# What it keeps: metadata -------------------------------------------------------------------------

FULL = {
    "description": "a scan",
    "units": "K",
    "axes": [
        {"name": "t", "labels": ["a", "b", 3]},
        {"name": "x", "kind": "space", "units": "mm", "spacing": 0.5, "origin": -1.0},
    ],
    "attributes": {"number": 1, "list": [1, 2.5, "x"], "nested": {"a": {"b": None}}},
    "formats": {"nrrd": {"space": "left-posterior-superior"}},
}


def test_every_field_survives(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", VALUES, meta=Metadata.from_dict(FULL))
    assert meta_of(tmp_path / "x.ra").to_dict() == FULL
    convert(tmp_path / "x.ra", tmp_path / "y.ra")
    assert meta_of(tmp_path / "y.ra").to_dict() == FULL


WORDS = [
    "yes", "no", "on", "off", "true", "null", "~", "", " ", "1e3", "1_000", "0x1f", "0o17", "017",
    "1:30", "12:30:45", "2020-01-01", "2020-01-01T00:00:00Z", ".inf", ".nan", "-", "- a", "? a",
    "a: b", "#a", "a #b", "%a", "@a", "`a", "!a", "!!int 3", "&a", "*a", "|", ">", "{a}", "[a]",
    "'a", '"a', "a\nb", "a\r\nb", "\n", "a\n", "\ta", "a ", "\\n", "<<", "=", "...", "---",
    "a\u0085b", "a\u2028b", "\ufeffa", "\u00a0", "ä", "日本語", "😀", "e\u0301", "\x7f", "\x1b[31m",
    "describes:", "x" * 5000, "a" + " b" * 200,
]  # fmt: skip


@every("word", WORDS, ids=lambda word: ascii(word)[:20])
def test_odd_words_survive_as_values_and_as_keys(tmp_path: Path, word: str) -> None:
    attributes = {"value": word, word: "key", "list": [word, {word: word}]}
    raconvert.write(tmp_path / "x.ra", VALUES, meta=Metadata(word, attributes=attributes))
    meta = meta_of(tmp_path / "x.ra")
    assert meta.attributes == attributes
    assert meta.description == (word or None)


@pytest.mark.parametrize(
    "number",
    [0.1, 1e300, 1e-300, 5e-324, 1e22, 1e16, 123456789012345678.0, 1.0, 1e3, -0.0, 2**70, -(2**63)],
    ids=repr,
)
def test_numbers_survive_with_their_type(tmp_path: Path, number: float) -> None:
    raconvert.write(tmp_path / "x.ra", VALUES, meta=Metadata(attributes={"number": number}))
    got = meta_of(tmp_path / "x.ra").attributes["number"]
    assert (got, type(got)) == (number, type(number))
    assert math.copysign(1, got) == math.copysign(1, number)


def test_nan_and_infinities_survive(tmp_path: Path) -> None:
    numbers = [math.nan, math.inf, -math.inf]
    raconvert.write(tmp_path / "x.ra", VALUES, meta=Metadata(attributes={"numbers": numbers}))
    got = meta_of(tmp_path / "x.ra").attributes["numbers"]
    assert math.isnan(got[0])
    assert got[1:] == [math.inf, -math.inf]


@pytest.mark.parametrize(
    "value",
    [None, True, False, [], {}, [[], [[]]], b"\0\xff", datetime.date(2020, 1, 2),
     datetime.datetime(2020, 1, 2, 3, 4, 5)],
    ids=repr,
)  # fmt: skip
def test_other_values_survive(tmp_path: Path, value: object) -> None:
    raconvert.write(tmp_path / "x.ra", VALUES, meta=Metadata(attributes={"value": value}))
    assert meta_of(tmp_path / "x.ra").attributes == {"value": value}


def test_one_list_used_twice_is_written_twice(tmp_path: Path) -> None:
    """There are no aliases in what is written, since none are read."""
    twice = [1, 2]
    raconvert.write(tmp_path / "x.ra", VALUES, meta=Metadata(attributes={"a": twice, "b": twice}))
    assert meta_of(tmp_path / "x.ra").attributes == {"a": [1, 2], "b": [1, 2]}


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t\r\x85")
)  # fmt: skip


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs", "Cc"])), st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text("abc: #"), inner), max_leaves=8
)))  # fmt: skip
def test_any_attributes_survive(
    tmp_path_factory: pytest.TempPathFactory, attributes: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.ra"
    raconvert.write(path, VALUES, meta=Metadata(attributes=attributes), overwrite=True)
    assert meta_of(path).attributes == attributes


def test_what_yaml_cannot_hold_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(RaconvertError, match='meta="drop"'):
        raconvert.write(tmp_path / "x.ra", VALUES, meta=Metadata(attributes={"x": object()}))
    assert os.listdir(tmp_path) == []


# Hostile sidecars --------------------------------------------------------------------------------

BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
)
HOSTILE: dict[str, str] = {
    "alias-bomb": BOMB,
    "alias-to-itself": "attributes: &a {x: *a}",
    "merge-key": "attributes: &a {x: 1}\nformats: {b: {<<: *a}}",
    "deep-list": "attributes: {x: " + "[" * 5000 + "]" * 5000 + "}",
    "deep-mapping": "attributes: " + "{x: " * 5000 + "}" * 5000,
    "deep-block": "attributes:\n" + "".join(" " * n + " x:\n" for n in range(300)),
    "not-closed": "attributes: {x: [",
    "tab": "attributes:\n\tx: 1",
    "binary": "attributes: \x00\x01",
    "two-documents": "---\nattributes: {}",
    "python-object": "attributes: !!python/object:os.system {}",
    "python-apply": "attributes: !!python/object/apply:os.system ['touch OWNED']",
    "python-new": "attributes: !!python/object/new:subprocess.Popen [['touch', 'OWNED']]",
    "python-name": "attributes: {x: !!python/name:os.system ''}",
    "python-module": "attributes: {x: !!python/module:this ''}",
    "python-tuple": "attributes: {x: !!python/tuple [1, 2]}",
    "own-tag": "attributes: !mine {x: 1}",
    "unhashable-key": "attributes: {[1, 2]: 3}",
    "bad-timestamp": "attributes: {x: 2020-13-45}",
    "bad-int": "attributes: {x: !!int abc}",
    "huge-int": "attributes: {x: " + "9" * 5000 + "}",
    "attributes-list": "attributes: [1]",
    "attributes-text": "attributes: text",
    "description-number": "description: 7",
    "units-list": "units: [m]",
    "axes-mapping": "axes: {x: 1}",
    "axes-of-text": "axes: [x, y]",
    "axes-one-too-few": "axes: [{name: x}]",
    "axes-one-too-many": "axes: [{name: x}, {name: y}, {name: z}]",
    "axis-name-number": "axes: [{name: 1}, {name: y}]",
    "axis-spacing-text": "axes: [{spacing: wide}, {}]",
    "axis-labels-text": "axes: [{labels: abc}, {}]",
    "formats-of-text": "formats: {png: text}",
    "formats-list": "formats: [png]",
    "index-order-unknown": "index_order: Z",
    "index-order-list": "index_order: [F]",
    "index-order-null": "index_order:",
    "items-without-file": "items: true",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_sidecar_is_refused(
    fortran: Path, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rewrite(fortran, index_order=None)
    append(fortran, HOSTILE[case] + "\n")

    with pytest.raises(Corrupt) as caught:
        convert(fortran, tmp_path / "y.ra")

    assert f"{fortran}" in str(caught.value)
    assert len(str(caught.value)) < 2000
    assert not (tmp_path / "OWNED").exists()
    assert not (tmp_path / "y.ra").exists()
    assert raconvert.read(fortran, meta="ignore").shape == (4, 3)


@pytest.mark.parametrize("text", ["describes: [", "describes: *a", "describes:\n- 1\n x"], ids=repr)
def test_a_sidecar_that_is_no_yaml_is_corrupt(fortran: Path, text: str) -> None:
    sidecar(fortran).write_text(text)
    with pytest.raises(Corrupt, match=r"f\.ra\.yaml"):
        raconvert.read(fortran)


def test_a_sidecar_above_the_size_limit_is_not_parsed(fortran: Path) -> None:
    with sidecar(fortran).open("ab") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(Corrupt, match="too large") as caught:
        raconvert.read(fortran)
    assert 'meta="ignore"' in str(caught.value)


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    """Metadata above the limit of the reader is refused by the writer."""
    meta = Metadata(attributes={"x": "y" * (17 << 20)})
    with pytest.raises(RaconvertError, match="too large"):
        raconvert.write(tmp_path / "x.ra", VALUES, meta=meta)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("describes", [None, {"size": 12, "crc32_first": "00000000"}])
def test_text_is_as_long_as_it_may_be_with_what_it_describes(
    describes: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"attributes": {f"key {n}": "value" * n for n in range(20)}}
    whole = text_of(fields, describes)
    assert yaml.safe_load(whole) == {**({"describes": describes} if describes else {}), **fields}
    if describes:
        most_bytes(monkeypatch, len(whole))
        assert text_of(fields, describes) == whole
        most_bytes(monkeypatch, len(whole) - 1)
        with pytest.raises(RaconvertError, match="too large"):
            text_of(fields, describes)


def test_metadata_that_is_nested_too_deep_to_be_read_is_not_written(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(RaconvertError, match="deep"):
        raconvert.write(tmp_path / "x.ra", VALUES, meta=Metadata(attributes={"x": deep}))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "make",
    [os.mkdir, os.mkfifo, lambda path: os.symlink("/dev/zero", path)],
    ids=["folder", "pipe", "device"],
)  # fmt: skip
def test_what_is_no_file_is_no_sidecar(
    fortran: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """It must neither hang nor be read; whether it is ignored or refused is the same to the user."""
    sidecar(fortran).unlink()
    make(sidecar(fortran))
    try:
        assert raconvert.read(fortran).tolist() == VALUES.T.tolist()
    except RaconvertError as error:
        assert f"{fortran}.yaml" in str(error)  # noqa: PT017 - either outcome is right


def test_numbers_to_base_60_are_text(fortran: Path) -> None:
    """YAML 1.1 takes 1:59:59 for 7199; a long one would take minutes to become a number."""
    long = "1" + ":59" * 100_000
    append(fortran, f"attributes: {{time: 1:59:59, long: {long}}}\n")
    assert meta_of(fortran).attributes == {"time": "1:59:59", "long": long}


def test_an_unknown_field_is_no_error(fortran: Path) -> None:
    """A later version may write more."""
    append(fortran, "later: {x: 1}\n")
    assert raconvert.read(fortran).tolist() == VALUES.tolist()


# Modes -------------------------------------------------------------------------------------------


def test_drop_leaves_it_out_and_says_so(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", VALUES, meta=Metadata(description="text", units="K"))
    report = convert(tmp_path / "x.ra", tmp_path / "y.ra", meta="drop")
    assert not sidecar(tmp_path / "y.ra").exists()
    assert [str(fit) for fit in report.equivalent] == [
        "array 'x': metadata: dropped: description, units"
    ]


def test_drop_of_the_index_order_is_named(fortran: Path, tmp_path: Path) -> None:
    report = convert(fortran, tmp_path / "y.ra", meta="drop")
    assert [fit.property for fit in report.equivalent] == ["index order"]
    with pytest.raises(WouldLose):
        convert(fortran, tmp_path / "z.ra", meta="drop", strict=True)


def test_drop_of_a_type_needs_leave(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array(["2020-01-01"], "M8[ns]"))
    with pytest.raises(WouldLose, match=r'allow=\["dtype"\]'):
        convert(tmp_path / "x.npy", tmp_path / "x.ra", meta="drop")
    report = convert(tmp_path / "x.npy", tmp_path / "x.ra", meta="drop", allow=["dtype"])
    assert [fit.property for fit in report.allowed] == ["type"]
    assert os.listdir(tmp_path).count("x.ra.yaml") == 0


def test_drop_takes_a_trailer_away_and_says_so(tmp_path: Path) -> None:
    data = ra_bytes.ra_file(1, 4, (3,), bytes(12), trailer=b"more")
    (tmp_path / "x.ra").write_bytes(data)
    report = convert(tmp_path / "x.ra", tmp_path / "y.ra", meta="drop")
    assert (tmp_path / "y.ra").read_bytes() == data[:-4]
    assert "trailer" in "".join(map(str, report.equivalent))


def test_ignore_when_writing_says_what_is_lost(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.asfortranarray(VALUES))
    report = convert(tmp_path / "f.npy", tmp_path / "f.ra", meta="ignore", axes="fortran")
    assert not sidecar(tmp_path / "f.ra").exists()
    assert [fit.property for fit in report.equivalent] == ["index order"]


@pytest.mark.parametrize("mode", ["drop", "ignore", "trailer"])
def test_other_modes_remove_a_left_over_sidecar(fortran: Path, tmp_path: Path, mode: str) -> None:
    convert(tmp_path / "f.npy", fortran, meta=mode, overwrite=True)
    assert not sidecar(fortran).exists()


# Trailer -----------------------------------------------------------------------------------------


def test_the_trailer_is_opt_in(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", VALUES, meta=Metadata(description="text"))
    assert (tmp_path / "x.ra").stat().st_size == 64 + 48


def test_the_trailer_holds_the_same_fields(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", VALUES, meta=Metadata.from_dict(FULL))
    convert(tmp_path / "x.ra", tmp_path / "y.ra", meta="trailer")
    assert not sidecar(tmp_path / "y.ra").exists()
    assert (tmp_path / "y.ra").read_bytes()[:112] == (tmp_path / "x.ra").read_bytes()
    trailer = (tmp_path / "y.ra").read_bytes()[112:]
    assert yaml.safe_load(trailer) == {**FULL, "axes": FULL["axes"][::-1]}  # as dims are listed
    assert meta_of(tmp_path / "y.ra").to_dict() == FULL


def test_the_trailer_holds_order_and_type(tmp_path: Path) -> None:
    values = np.asfortranarray(np.array([["2020-01-01"] * 3] * 2, "M8[D]"))
    np.save(tmp_path / "x.npy", values)
    convert(tmp_path / "x.npy", tmp_path / "x.ra", meta="trailer", axes="fortran")
    convert(tmp_path / "x.ra", tmp_path / "y.npy")
    assert (tmp_path / "y.npy").read_bytes() == (tmp_path / "x.npy").read_bytes()


def test_a_trailer_becomes_a_sidecar_and_back(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "a.ra", VALUES, meta=Metadata.from_dict(FULL))
    convert(tmp_path / "a.ra", tmp_path / "b.ra", meta="trailer")
    convert(tmp_path / "b.ra", tmp_path / "c.ra", meta="sidecar")
    assert (tmp_path / "c.ra").read_bytes() == (tmp_path / "a.ra").read_bytes()
    assert meta_of(tmp_path / "c.ra").to_dict() == FULL


def test_a_trailer_of_a_stack_holds_what_all_share_and_names_the_rest(
    tmp_path: Path, out: Path
) -> None:
    write_items(tmp_path, *(Metadata("same", attributes={"n": n}) for n in range(3)))
    report = convert(tmp_path / "?.ra", out / "x.ra", meta="trailer")
    assert meta_of(out / "x.ra").description == "same"
    assert [fit.property for fit in report.equivalent] == ["metadata"]
    assert os.listdir(out) == ["x.ra"]
    convert(out / "x.ra", out / "y.ra")


def test_a_trailer_of_a_stack_of_images(tmp_path: Path, out: Path) -> None:
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("Comment", "the same in all")
    for number in range(3):
        Image.fromarray(np.full((2, 3), number, "u1")).save(
            tmp_path / f"{number}.png", pnginfo=info
        )
    convert(tmp_path / "?.png", out / "x.ra", meta="trailer")
    assert "the same in all" in repr(meta_of(out / "x.ra"))


def test_the_trailer_is_for_ra_only(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    with pytest.raises(UsageError, match='meta="sidecar"'):
        convert(tmp_path / "x.npy", tmp_path / "y.npy", meta="trailer")


@pytest.mark.parametrize(
    "trailer", [b"x", b"\0" * 100, b"\n", b"key: value\n", bytes(range(256)) * 1000], ids=len
)
def test_a_foreign_trailer_is_kept_as_bytes(tmp_path: Path, trailer: bytes) -> None:
    data = ra_bytes.ra_file(1, 4, (4, 3), VALUES.tobytes(), trailer=trailer)
    (tmp_path / "x.ra").write_bytes(data)
    report = convert(tmp_path / "x.ra", tmp_path / "y.ra")
    assert (tmp_path / "y.ra").read_bytes() == data
    assert report.equivalent == []
    assert not sidecar(tmp_path / "y.ra").exists()


@pytest.mark.parametrize("description", [None, "text"], ids=["nothing", "metadata"])
def test_a_foreign_trailer_is_not_silently_replaced(
    tmp_path: Path, description: str | None
) -> None:
    data = ra_bytes.ra_file(1, 4, (4, 3), VALUES.tobytes(), trailer=b"more")
    raconvert.write(tmp_path / "x.ra", VALUES, meta=Metadata(description))
    with (tmp_path / "x.ra").open("ab") as file:
        file.write(b"more")
    report = convert(tmp_path / "x.ra", tmp_path / "y.ra", meta="trailer")
    if description is None:
        assert (tmp_path / "y.ra").read_bytes() == data
    else:
        assert meta_of(tmp_path / "y.ra").description == "text"
        assert "trailer" in " ".join([*map(str, report.equivalent), *report.notes])


def test_a_foreign_trailer_is_named_where_it_has_no_place(tmp_path: Path) -> None:
    data = ra_bytes.ra_file(1, 4, (4, 3), VALUES.tobytes(), trailer=b"more")
    (tmp_path / "x.ra").write_bytes(data)
    report = convert(tmp_path / "x.ra", tmp_path / "y.npy")
    assert [fit.property for fit in report.equivalent] == ["metadata"]


@pytest.mark.parametrize("case", ["alias-bomb", "python-apply", "deep-list", "axes-one-too-few"])
def test_a_hostile_trailer_is_refused(tmp_path: Path, case: str) -> None:
    trailer = b"# raconvert metadata\n" + HOSTILE[case].encode()
    data = ra_bytes.ra_file(1, 4, (4, 3), VALUES.tobytes(), trailer=trailer)
    (tmp_path / "x.ra").write_bytes(data)
    with pytest.raises(Corrupt, match=r"x\.ra"):
        raconvert.read(tmp_path / "x.ra")


def test_a_hostile_trailer_is_ignored_on_request(tmp_path: Path) -> None:
    trailer = b"# raconvert metadata\n" + HOSTILE["alias-bomb"].encode()
    data = ra_bytes.ra_file(1, 4, (4, 3), VALUES.tobytes(), trailer=trailer)
    (tmp_path / "x.ra").write_bytes(data)
    assert raconvert.read(tmp_path / "x.ra", meta="ignore").tolist() == VALUES.tolist()


def test_a_huge_trailer_that_claims_to_be_ours_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "x.ra").write_bytes(
        ra_bytes.ra_file(1, 4, (4, 3), VALUES.tobytes(), trailer=b"# raconvert metadata\n")
    )
    os.truncate(tmp_path / "x.ra", 1 << 40)
    with pytest.raises((Corrupt, TooLarge), match="large"):
        raconvert.read(tmp_path / "x.ra")


# Items of a stack --------------------------------------------------------------------------------


def write_items(folder: Path, *metas: Metadata) -> None:
    for number, meta in enumerate(metas):
        raconvert.write(folder / f"{number}.ra", VALUES + number, meta=meta)


def read_items(path: Path) -> list[dict[str, Any]]:
    lines = path.with_name(path.name + ".items.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_what_all_items_share_is_kept_once(tmp_path: Path, out: Path) -> None:
    write_items(tmp_path, *[Metadata("same", "K", attributes={"a": 1})] * 3)
    convert(tmp_path / "?.ra", out / "x.ra")
    assert sorted(os.listdir(out)) == ["x.ra", "x.ra.yaml"]
    fields = load(out / "x.ra")
    assert fields.pop("describes")["dims"] == [4, 3, 3]
    told = {"description": "same", "units": "K", "attributes": {"a": 1}}
    assert fields == {"index_order": "C", **told}


def test_what_differs_goes_to_one_line_per_item(tmp_path: Path, out: Path) -> None:
    write_items(tmp_path, *(Metadata("same", attributes={"n": n, "a": 1}) for n in range(3)))
    report = convert(tmp_path / "?.ra", out / "x.ra")
    assert load(out / "x.ra")["attributes"] == {"a": 1}
    assert load(out / "x.ra")["items"] is True
    assert read_items(out / "x.ra") == [
        {"item": n, "file": f"{n}.ra", "attributes": {"n": n}} for n in range(3)
    ]
    assert str(out / "x.ra.items.jsonl") in report.written


def test_a_field_that_some_items_lack_differs(tmp_path: Path, out: Path) -> None:
    write_items(tmp_path, Metadata("a"), Metadata(), Metadata("a", units="K"))
    convert(tmp_path / "?.ra", out / "x.ra")
    assert [set(item) - {"item", "file"} for item in read_items(out / "x.ra")] == [
        {"description"},
        set(),
        {"description", "units"},
    ]


def test_two_readers_of_the_items_do_not_disturb_each_other(tmp_path: Path) -> None:
    write_items(tmp_path, *(Metadata(attributes={"n": n}) for n in range(3)))
    with raconvert.open(tmp_path / "?.ra") as stack:
        assert stack.meta.items is not None
        first, second = stack.meta.items(), stack.meta.items()
        pairs = [*zip(first, second, strict=True)]

    assert [(a["attributes"]["n"], b["attributes"]["n"]) for a, b in pairs] == [
        (n, n) for n in range(3)
    ]


def test_lone_surrogates_of_items_survive(tmp_path: Path, out: Path) -> None:
    for n in range(2):
        folder = tmp_path / f"{n}.zarr"
        raconvert.write(folder, np.arange(3))
        (folder / ".zattrs").unlink(missing_ok=True)
        description = json.loads((folder / "zarr.json").read_text())
        description["attributes"] = {"t": f"\ud800{n}"}
        (folder / "zarr.json").write_text(json.dumps(description))
    convert([tmp_path / "0.zarr", tmp_path / "1.zarr"], out / "x.ra", stack=True)
    with raconvert.open(out / "x.ra") as stack:
        assert stack.meta.items is not None
        assert [item["attributes"]["t"] for item in stack.meta.items()] == ["\ud8000", "\ud8001"]


def test_values_of_different_types_differ(tmp_path: Path, out: Path) -> None:
    """1, True and 1.0 are equal to Python; they are not the same metadata."""
    write_items(tmp_path, *(Metadata(attributes={"x": x}) for x in (1, True, 1.0)))
    convert(tmp_path / "?.ra", out / "x.ra")
    assert [repr(item["attributes"]["x"]) for item in read_items(out / "x.ra")] == [
        "1",
        "True",
        "1.0",
    ]


def test_nan_is_the_same_in_all_items(tmp_path: Path, out: Path) -> None:
    write_items(tmp_path, *(Metadata(attributes={"x": math.nan}) for _ in range(2)))
    convert(tmp_path / "?.ra", out / "x.ra")
    assert math.isnan(load(out / "x.ra")["attributes"]["x"])
    assert sorted(os.listdir(out)) == ["x.ra", "x.ra.yaml"]


@pytest.mark.parametrize(
    "value",
    [datetime.date(2020, 1, 2), b"\0\xff", math.inf, "ä\n\u2028", {"a": {"b": []}}, {}, None],
    ids=repr,
)
def test_any_value_may_differ(tmp_path: Path, out: Path, value: object) -> None:
    write_items(tmp_path, Metadata(attributes={"x": value}), Metadata(attributes={"x": 1}))
    convert(tmp_path / "?.ra", out / "x.ra")
    convert(out / "x.ra", out / "y.ra")
    with raconvert.open(out / "y.ra") as array:
        items = list(array.meta.items())
    got = items[0]["attributes"]["x"]
    if isinstance(value, bytes | datetime.date):  # JSON has no such values: their text is kept
        assert got is not None
    else:
        assert got == value
    assert items[1]["attributes"]["x"] == 1


def test_items_survive_from_ra_to_ra(tmp_path: Path, out: Path) -> None:
    write_items(tmp_path, *(Metadata(attributes={"n": n}) for n in range(3)))
    convert(tmp_path / "?.ra", out / "x.ra")
    convert(out / "x.ra", out / "y.ra")
    assert read_items(out / "y.ra") == read_items(out / "x.ra")
    with raconvert.open(out / "y.ra") as array:
        assert [item["attributes"]["n"] for item in array.meta.items()] == [0, 1, 2]


@pytest.mark.parametrize(
    "options",
    [{"dtype": "float64"}, {"scale": "0:100"}, {"axes": "0,2,1"}],
    ids=["cast", "scale", "axes"],
)
def test_items_survive_changes(tmp_path: Path, out: Path, options: dict[str, str]) -> None:
    write_items(tmp_path, *(Metadata(attributes={"n": n}) for n in range(3)))
    convert(tmp_path / "?.ra", out / "x.ra")
    convert(out / "x.ra", out / "y.ra", **options)
    assert read_items(out / "y.ra") == read_items(out / "x.ra")


@pytest.mark.parametrize(
    "options",
    [{"dtype": "float64"}, {"scale": "minmax"}, {"axes": "0,2,1"}, {"scale": "0:100"}],
    ids=["cast", "minmax", "axes", "scale"],
)
def test_items_are_kept_when_the_stack_is_changed_at_once(
    tmp_path: Path, out: Path, options: dict[str, str]
) -> None:
    write_items(tmp_path, *(Metadata("same", attributes={"n": n}) for n in range(3)))
    convert(tmp_path / "?.ra", out / "x.ra", **options)
    assert read_items(out / "x.ra") == [
        {"item": n, "file": f"{n}.ra", "attributes": {"n": n}} for n in range(3)
    ]
    assert load(out / "x.ra")["description"] == "same"


def test_items_whose_axis_moved_never_make_the_file_unreadable(tmp_path: Path, out: Path) -> None:
    """They belong to the slowest axis: kept with it, or left out with a word."""
    write_items(tmp_path, *(Metadata(attributes={"n": n}) for n in range(3)))
    convert(tmp_path / "?.ra", out / "x.ra")
    report = convert(out / "x.ra", out / "y.ra", axes="2,1,0")
    convert(out / "y.ra", out / "z.ra")
    assert raconvert.read(out / "z.ra").shape == (4, 3, 3)
    if (out / "y.ra.items.jsonl").exists():
        assert read_items(out / "y.ra") == read_items(out / "x.ra")
    else:
        assert "item" in " ".join([*map(str, report.equivalent), *report.notes])


def test_what_all_files_share_is_kept_when_they_are_concatenated(tmp_path: Path, out: Path) -> None:
    write_items(tmp_path, *[Metadata("same", attributes={"a": 1})] * 3)
    convert(tmp_path / "?.ra", out / "x.ra", stack=("concat", 0))
    assert raconvert.read(out / "x.ra").shape == (9, 4)
    assert meta_of(out / "x.ra").description == "same"


def test_axes_of_the_items_are_the_faster_axes_of_the_stack(tmp_path: Path, out: Path) -> None:
    axes = [Axis(name="x", spacing=0.5), Axis(name="y")]
    write_items(tmp_path, *(Metadata(axes=axes[::-1], attributes={"n": n}) for n in range(2)))
    convert(tmp_path / "?.ra", out / "x.ra")
    with raconvert.open(out / "x.ra") as array:
        assert array.dims == (4, 3, 2)
        assert [axis.name for axis in array.ra_axes] == ["x", "y", None]
        assert array.ra_axes[0].spacing == 0.5


def test_trailers_of_the_items_are_named(tmp_path: Path, out: Path) -> None:
    for number in range(2):
        data = ra_bytes.ra_file(1, 4, (3,), bytes(12), trailer=b"more %d" % number)
        (tmp_path / f"{number}.ra").write_bytes(data)
    report = convert(tmp_path / "?.ra", out / "x.ra")
    assert raconvert.read(out / "x.ra").shape == (2, 3)
    assert "trailer" in " ".join([*map(str, report.equivalent), *report.notes])


@pytest.mark.parametrize("code", [(1, 16), (3, 16), (4, 4)], ids=["int128", "quad", "complex32"])
def test_a_type_that_numpy_lacks_survives_stacking(
    tmp_path: Path, out: Path, code: tuple[int, int]
) -> None:
    for number in range(2):
        data = ra_bytes.ra_file(*code, (3,), bytes(range(3 * code[1])))
        (tmp_path / f"{number}.ra").write_bytes(data)
    convert(tmp_path / "?.ra", out / "x.ra")
    assert (out / "x.ra").read_bytes() == ra_bytes.ra_file(
        *code, (3, 2), bytes(range(3 * code[1])) * 2
    )


def test_png_texts_go_to_the_items(tmp_path: Path, out: Path) -> None:
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    for number in range(3):
        info = PngInfo()
        info.add_text("Comment", f"number {number}")
        Image.fromarray(np.full((2, 3), number, "u1")).save(
            tmp_path / f"{number}.png", pnginfo=info
        )
    convert(tmp_path / "?.png", out / "x.ra")
    items = read_items(out / "x.ra")
    assert [item["file"] for item in items] == ["0.png", "1.png", "2.png"]
    assert all(f"number {n}" in json.dumps(item) for n, item in enumerate(items))


def test_png_texts_go_to_the_items_when_the_stack_is_permuted(tmp_path: Path, out: Path) -> None:
    test_png_texts_go_to_the_items(tmp_path, out)
    convert(tmp_path / "?.png", out / "y.ra", axes="0,2,1")
    assert read_items(out / "y.ra") == read_items(out / "x.ra")


def test_items_come_back_as_planes(tmp_path: Path, out: Path) -> None:
    test_png_texts_go_to_the_items(tmp_path, out)
    convert(out / "x.ra", out / "{}.png")
    from PIL import Image

    for number in range(3):
        with Image.open(out / f"{number}.png") as image:
            assert image.text == {"Comment": f"number {number}"}


@pytest.mark.parametrize(
    "text", ["no json\n", '{"item": 0\n', "[1]\n", "7\n", "", "[" * 100_000 + "\n"],
    ids=["words", "cut", "list", "number", "empty", "deep"],
)  # fmt: skip
def test_damaged_items_are_refused(tmp_path: Path, out: Path, text: str) -> None:
    write_items(tmp_path, *(Metadata(attributes={"n": n}) for n in range(3)))
    convert(tmp_path / "?.ra", out / "x.ra")
    (out / "x.ra.items.jsonl").write_text(text)
    with pytest.raises(Corrupt, match=r"x\.ra\.items\.jsonl"):
        convert(out / "x.ra", out / "y.ra")
    assert not (out / "y.ra").exists()


def test_items_that_are_gone_are_refused(tmp_path: Path, out: Path) -> None:
    write_items(tmp_path, *(Metadata(attributes={"n": n}) for n in range(3)))
    convert(tmp_path / "?.ra", out / "x.ra")
    (out / "x.ra.items.jsonl").unlink()
    with pytest.raises(RaconvertError, match=r"x\.ra\.items\.jsonl"):
        convert(out / "x.ra", out / "y.ra")


def test_left_over_items_go_with_the_sidecar(tmp_path: Path, out: Path) -> None:
    write_items(tmp_path, *(Metadata(attributes={"n": n}) for n in range(3)))
    convert(tmp_path / "?.ra", out / "x.ra")
    convert(tmp_path / "0.ra", out / "x.ra", overwrite=True)
    assert sorted(os.listdir(out)) == ["x.ra", "x.ra.yaml"]
    np.save(tmp_path / "plain.npy", VALUES)
    convert(tmp_path / "plain.npy", out / "x.ra", overwrite=True)
    assert os.listdir(out) == ["x.ra"]


@pytest.mark.parametrize(
    ("text", "kind", "goes"),
    [
        (b"describes: {}\nitems: 3\n", "file", True),
        (b"describes: {}\nitems: 3\nitems_file: {size: 5}\n", "file", True),
        (b"describes: {}\nitems: 3\nitems_file: {size: 4}\n", "file", False),
        (b"describes: {}\nitems: 3\nitems_file: 4\n", "file", True),
        (b"describes: {}\nitems: 3\n", "link", False),
        (b"describes: {}\nitems: 3\n", "folder", False),
        (b"describes: {}\nitems: 3\n", "none", False),
        (b"describes: {}\nitems: [\n", "file", False),
        (b"describes: {}\nother: 3\n", "file", False),
        (b"describes: {items: 3}\n", "file", False),
    ],
)
def test_which_items_are_left_over(
    text: bytes, kind: str, goes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of which the sidecar says that they are its own; never a link, never another size."""
    beside, items = tmp_path / "x.ra.yaml", tmp_path / "x.ra.items.jsonl"
    beside.write_bytes(text)
    (tmp_path / "elsewhere").write_bytes(b"12345")
    if kind == "file":
        items.write_bytes(b"12345")
    elif kind == "link":
        items.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        items.mkdir()
    found = left_over(str(tmp_path / "x.ra"), overwrite=True)
    assert found == [str(beside), *([str(items)] if goes else [])]
    for limit, one in ((len(text), goes), (len(text) - 1, False)):
        most_bytes(monkeypatch, limit)
        assert (str(items) in left_over(str(tmp_path / "x.ra"), overwrite=True)) == one


@pytest.mark.parametrize(
    ("text", "kind", "ours"),
    [
        (b"describes:", "file", True), (b"describes: {}\n", "file", True),
        (b"describe", "file", False), (b"", "file", False), (b" describes:", "file", False),
        (b"describes:", "link", False), (b"", "folder", False), (b"", "none", False),
    ],
)  # fmt: skip
def test_what_lies_beside_a_file_and_is_no_sidecar(
    text: bytes, kind: str, ours: bool, tmp_path: Path
) -> None:
    beside = tmp_path / "x.ra.yaml"
    (tmp_path / "elsewhere").write_bytes(text)
    if kind == "file":
        beside.write_bytes(text)
    elif kind == "link":
        beside.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        beside.mkdir()
    assert is_ours(str(beside)) == ours
    found = left_over(str(tmp_path / "x.ra"), overwrite=True)
    assert found == ([str(beside)] if ours or kind == "link" else [])
    if kind == "link":
        with pytest.raises(TargetExists):
            left_over(str(tmp_path / "x.ra"), overwrite=False)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return an empty folder for destinations, apart from the sources in tmp_path."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


# What metadata may cost --------------------------------------------------------------------------

COLLIDING = [number * (2**61 - 1) for number in range(1, 20_001)]  # every one has the hash 0


@pytest.mark.parametrize(
    "text",
    ["attributes:\n" + "".join(f"  {key}: 1\n" for key in COLLIDING),
     "attributes: {k: {" + ", ".join(f"{key}: 1" for key in COLLIDING) + "}}\n",
     "attributes:\n" + "".join(f"  {-key}: 1\n" for key in COLLIDING)],
    ids=["block", "flow", "negative"],
)  # fmt: skip
def test_integer_keys_of_one_hash_are_refused(
    fortran: Path, refused: Callable[..., str], text: str
) -> None:
    rewrite(fortran, index_order=None)
    append(fortran, text)
    assert "beyond 1152921504606846976 as a key" in refused(fortran)


def test_integer_keys_that_no_other_integer_can_collide_with_are_fine(fortran: Path) -> None:
    largest = 2**60 - 1
    append(fortran, f"attributes: {{k: {{{largest}: 1, {-largest}: 2}}}}")
    assert meta_of(fortran).attributes == {"k": {largest: 1, -largest: 2}}


def test_keys_that_could_not_be_read_are_not_written() -> None:
    with pytest.raises(Unsupported, match="beyond 1152921504606846976 as a key"):
        dump({"attributes": {"k": {2**60: 1}}})
    assert dump({"attributes": {"k": {2**60 - 1: 1}}})


PLAIN = st.recursive(
    SCALARS
    | st.sampled_from(["yes", "1", "a: b", "# x", "a\nb", "x" * 200, "word " * 60, "=", "<<"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc: #1"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abc: #1"), PLAIN, max_size=4))
def test_the_text_is_what_pyyaml_writes(fields: dict[str, Any]) -> None:
    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, _: Any) -> bool:
            return True

    try:
        text = dump(fields)
    except Unsupported:
        return
    assert text == yaml.dump(fields, Dumper=Dumper, sort_keys=False, allow_unicode=True).encode()


def test_a_sidecar_that_does_not_begin_as_one_is_named(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", np.zeros((2, 3)), meta=Metadata(units="K"))
    beside = tmp_path / "x.ra.yaml"
    fields = yaml.safe_load(beside.read_text())
    beside.write_text(yaml.safe_dump(dict(reversed(fields.items())), sort_keys=False))
    (note,) = raconvert.info(tmp_path / "x.ra")["notes"]
    assert note == f"'{beside}' is not read as metadata: a sidecar begins with 'describes:'"
    assert raconvert.info(tmp_path / "x.ra", meta="ignore")["notes"] == []
    beside.write_text("a: file\nof: another program\n")
    assert raconvert.info(tmp_path / "x.ra")["notes"] == []
