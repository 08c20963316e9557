"""Reading SciDB binary: corpus, grammars, layouts, and what is refused."""

from __future__ import annotations

import json
import math
import os
import random
import struct
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scidb_records
from cases import every, rounds
from damage import changed
from hypothesis import given
from hypothesis import strategies as st
from raconvert.plugins import scidb
from raconvert.plugins.scidb import scan as scan_module
from raconvert.plugins.scidb import together as together_module
from raconvert.plugins.scidb.schema import Fault, in_c_order, parse_format, parse_schema
from scidb_records import CORPUS

import raconvert
from raconvert.arrays.array import Array
from raconvert.arrays.blocks import blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import dtype_of, type_name
from raconvert.errors import (
    Corrupt,
    RaconvertError,
    TooLarge,
    Unsafe,
    Unsupported,
    UsageError,
    WouldLose,
)
from raconvert.files.limits import DEFAULT
from raconvert.files.source import Source
from raconvert.plugin import MAYBE, NO, SURE

if TYPE_CHECKING:
    from collections.abc import Callable

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "scidb" / "good"


def read(path: Path, max_memory: int = 1 << 26, **options: str) -> Bundle:
    """Read with the plugin."""
    return scidb.read(Source(str(path), max_memory=max_memory), **options)


def made(tmp_path: Path, data: bytes, name: str = "x.scidb") -> Path:
    """Write a file."""
    path = tmp_path / name
    path.write_bytes(data)
    return path


def streamed(array: Array, max_bytes: int = 1 << 20) -> np.ndarray:
    """Return the array decoded in blocks of at most `max_bytes`."""
    raw = b"".join(block.tobytes() for block in blocks(array, max_bytes))
    return np.frombuffer(raw, dtype_of(array.element)).reshape(array.shape)


def values_of(bundle: Bundle, name: str) -> list[tuple[int | None, bytes]]:
    """Return prefix and bytes of every value of an attribute, from the arrays as a reader would."""
    if name in bundle:
        array = bundle[name]
        own = array.meta.formats["scidb"]
        pair = own["type"] == "datetimetz"
        whole = streamed(array).tobytes()
        size = array.element.nbytes * (2 if pair else 1)
        parts = [whole[n : n + size] for n in range(0, len(whole), size)]
    else:
        ends = streamed(bundle[f"{name}.offsets"]).tolist()
        whole = streamed(bundle[f"{name}.bytes"]).tobytes()
        parts = [whole[a:b] for a, b in pairwise(ends)]
        assert ends[0] == 0
        assert ends[-1] == len(whole)
    null = f"{name}.null"
    prefixes = streamed(bundle[null]).ravel().tolist() if null in bundle else [None] * len(parts)
    return list(zip(prefixes, parts, strict=True))


def columns_of(bundle: Bundle) -> list[str]:
    """Return the names of the columns in the order of the file."""
    own = [array.meta.formats["scidb"] for array in bundle.arrays]
    names = {mark["column"]: mark["attribute"] for mark in own if "column" in mark}
    return [names[n] for n in sorted(names)]


# --- the corpus ---------------------------------------------------------------------------------

CUT_FORMAT = "(int32, string null, double)"
# Every file of the corpus that is refused, why, and what the message says.
REFUSED = {
    "text_v4.scidb": (Unsupported, "is SciDB text", "byte 0"),
    "truncated_in_fixed.scidb": (Corrupt, "inside record 0", "byte 0 "),
    "truncated_in_length.scidb": (Corrupt, "inside record 0", "byte 5 "),
    "truncated_before_last_byte.scidb": (Corrupt, "inside record 2", "byte 48 "),
}


def corpus_case(folder: Path, name: str) -> tuple[Path, dict[str, Any], dict[str, str]]:
    """Return path, expected facts and options of a file of the corpus."""
    facts = json.loads((folder / f"{name}.expected.json").read_text())
    options = {"schema": facts["schema"], "format": facts["format"], **CORPUS[name]}
    return folder / name, facts, options


def expected_value(fact: Any) -> Any:
    """Return a value of the expected JSON: ("missing", code), bytes, or a number or text."""
    if isinstance(fact, dict):
        [(kind, held)] = fact.items()
        return {
            "missing": lambda: ("missing", held),
            "hex": lambda: bytes.fromhex(held),
            "float": lambda: float(held),
        }[kind]()
    return fact


def same_value(got: Any, expected: Any) -> bool:
    """Compare values; NaN equals NaN, and -0.0 does not equal 0.0."""
    if isinstance(expected, float) and isinstance(got, float):
        return (math.isnan(got) and math.isnan(expected)) or (
            got == expected and math.copysign(1, got) == math.copysign(1, expected)
        )
    return bool(got == expected and type(got) is type(expected))


def test_corpus_files_are_all_listed(corpus: Callable[..., Path]) -> None:
    files = {path.name for path in corpus("scidb").iterdir() if path.suffix in (".scidb", ".bin")}

    assert files == set(CORPUS) | set(REFUSED)


@pytest.mark.parametrize("name", CORPUS)
def test_corpus_values(name: str, corpus: Callable[..., Path]) -> None:
    path, facts, options = corpus_case(corpus("scidb"), name)

    bundle = read(path, **options)

    kinds = [c for c in scidb_records.columns(facts["format"]) if c[0] != "skip"]
    names = [n for n in columns_of(bundle) if not n.startswith("skip.")]
    assert len(names) == len(kinds)
    columns = [values_of(bundle, one) for one in names]
    assert [len(column) for column in columns] == [len(facts["records"])] * len(columns)
    for number, record in enumerate(facts["records"]):
        for one, (kind, _, null), column, fact in zip(names, kinds, columns, record, strict=True):
            prefix, raw = column[number]
            assert (prefix is not None) == null
            there = prefix is None or prefix > 127
            got = scidb_records.value(kind, raw) if there else ("missing", prefix)
            assert same_value(got, expected_value(fact)), (number, one)


@pytest.mark.parametrize("name", CORPUS)
def test_corpus_bytes_are_in_the_arrays(name: str, corpus: Callable[..., Path]) -> None:
    """The file can be put together again from the arrays alone, by another writer."""
    path, facts, options = corpus_case(corpus("scidb"), name)

    bundle = read(path, **options)

    columns = [values_of(bundle, one) for one in columns_of(bundle)]
    records = [list(record) for record in zip(*columns, strict=True)]
    assert scidb_records.encode(records, facts["format"]) == path.read_bytes()


def test_corpus_types_and_dims(corpus: Callable[..., Path]) -> None:
    path, facts, options = corpus_case(corpus("scidb"), "dense_2d_3x4_int32.scidb")
    [array] = read(path, **options).arrays

    assert (array.name, type_name(array.element), array.dims) == ("v", "int32", (4, 3))
    assert array.index_order == "C"
    assert [axis.name for axis in array.ra_axes] == ["j", "i"]
    assert array.extent is not None
    assert np.asarray(array).tolist() == facts["array"]

    path, _, options = corpus_case(corpus("scidb"), "all_types_nullable.scidb")
    types = [type_name(array.element) for array in read(path, **options).arrays]
    assert types[::2][:13] == [
        "uint8", "uint8", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float32", "float64", "int64",
    ]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_corpus_refusals(name: str, corpus: Callable[..., Path]) -> None:
    error, words, place = REFUSED[name]
    path = corpus("scidb", name)
    options = {} if name.startswith("text") else {"format": CUT_FORMAT}

    with pytest.raises(error) as raised:
        read(path, **options)

    assert words in str(raised.value)
    assert place in str(raised.value) + " "
    assert str(path) in str(raised.value)


def test_corpus_vendor_file_under_other_formats(corpus: Callable[..., Path]) -> None:
    path = corpus("scidb", "vendor_intensity_data.bin")
    skipped = read(path, format="(string, skip(8), skip(8) null)")

    assert skipped.names == [
        "a0.offsets", "a0.bytes", "skip.1", "skip.2", "skip.2.null",
    ]  # fmt: skip
    payload = {raw for prefix, raw in values_of(skipped, "skip.2") if prefix == 0}
    assert payload == {bytes.fromhex("000000008e63ca10")}

    times = read(path, format="(skip, int64, int64 null)")
    assert streamed(times["a0"]).tolist()[:3] == [0, 1, 2]


# --- SciDB-Py's files ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fixed_4x5", "texts"])
def test_fixture_equals_what_scidbpy_reads(name: str) -> None:
    facts = json.loads((FIXTURES / f"{name}.json").read_text())

    bundle = read(FIXTURES / f"{name}.scidb")

    kinds = [array.meta.formats["scidb"]["type"] for array in bundle.arrays]
    types = dict(zip(bundle.names, kinds, strict=True))
    for n, one in enumerate(columns_of(bundle)):
        kind = types.get(one) or types[f"{one}.bytes"]
        got = []
        for prefix, raw in values_of(bundle, one):
            held = scidb_records.value(kind, raw)
            held = held.hex() if isinstance(held, bytes) else held
            got.append(held if prefix is None else [prefix, held])
        assert got == [record[n] for record in facts["records"]]


def test_fixture_is_shaped_and_named() -> None:
    bundle = read(FIXTURES / "fixed_4x5.scidb")

    assert bundle.names == ["a", "b", "b.null", "c", "c.null", "d", "e", "t"]
    assert all(array.shape == (4, 5) for array in bundle.arrays)
    axes = bundle["a"].ra_axes
    assert [(axis.name, axis.origin) for axis in axes] == [("j", -2), ("i", None)]
    assert bundle["t"].meta.units == "seconds since 1970-01-01"


# --- format strings ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(int64)", [("int64", 8, False)]),
        (" ( INT64\n, Double NULL ) ", [("int64", 8, False), ("double", 8, True)]),
        ("(string,binary null)", [("string", None, False), ("binary", None, True)]),
        ("(string(8), binary ( 4 ) null)", [("string", 8, False), ("binary", 4, True)]),
        ("(Skip, skip(3), SKIP(2) Null, skip null, bool)",
         [("skip", None, False), ("skip", 3, False), ("skip", 2, True), ("skip", None, True),
          ("bool", 1, False)]),
        ("(dummy, void(4), char)", [("skip", None, False), ("skip", 4, False), ("char", 1, False)]),
        ("(point null)", [("point", 16, True)]),
        ("(string(2147483647))", [("string", 2147483647, False)]),
        ("(datetimetz)", [("datetimetz", 16, False)]),
    ],
)  # fmt: skip
def test_format_string(text: str, expected: list[tuple[Any, ...]]) -> None:
    assert [tuple(column) for column in parse_format(text, {"point": 16}, DEFAULT)] == expected


# text: where the fault is, counted from 0, and words of the message
BAD_FORMATS = {
    "": (0, "not complete"),
    "int64": (0, "not complete"),
    "()": (1, "empty"),
    "(int64": (6, "not understood"),
    "(int64,)": (7, "empty"),
    "(int64,,double)": (7, "empty"),
    "(int64 double)": (7, "not understood"),
    "(int64) x": (8, "goes on after its end"),
    "(int64)(int64)": (7, "goes on after its end"),
    "(int64(8))": (6, "width of its own"),
    "(skip null(4))": (10, "not understood"),
    "(int64 null null)": (12, "not understood"),
    "(int64 not null)": (7, "'not null' is what"),
    "(x:int64)": (1, "unknown"),
    "(int64:x)": (6, "no names"),
    "(string())": (8, "not a whole number"),
    "(string(0))": (8, "out of range"),
    "(string(-1))": (8, "not a whole number"),
    "(string(1.5))": (8, "not a whole number"),
    "(string(2147483648))": (8, "out of range"),
    "(string(4294967297))": (8, "out of range"),
    "(string(99999999999999999999999))": (8, "out of range"),
    "(in64)": (1, "did you mean 'int64'"),
    "(timestamp)": (1, "plug-in"),
    "(point)": (1, "types=point=16"),
    "(int64 ; int64)": (7, "no meaning"),
    "(string('a'))": (8, "not a whole number"),
    "(3)": (1, "no type"),
}


@every("text", BAD_FORMATS)
def test_bad_format_string_is_refused_where_it_is_wrong(text: str) -> None:
    at, words = BAD_FORMATS[text]

    with pytest.raises(Fault) as raised:
        parse_format(text.replace(";", "&"), {}, DEFAULT)

    assert raised.value.at == at
    assert words in f"{raised.value.what} {raised.value.expected}"


def test_place_of_a_fault_reaches_the_user(tmp_path: Path) -> None:
    path = made(tmp_path, b"")

    with pytest.raises(UsageError, match="format.* is wrong.*line 2, column 2"):
        read(path, format="(int64,\n in64)")
    with pytest.raises(UsageError, match="schema.* is wrong.*line 1, column 4"):
        read(path, schema="<a:in64>[i]")
    (tmp_path / "x.scidb.schema").write_text("-- a comment\n<a:int64>[i=0:]\n")
    with pytest.raises(Corrupt, match=r"x\.scidb\.schema': schema is wrong.*line 2, column 15"):
        read(path)


# --- schemas -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("<a:int8>[i]", [("i", 0, None, None)]),
        ("<a:int8>", []),
        ("<a:int8>[i=0:9]", [("i", 0, 9, None)]),
        ("<a:int8>[i=-5:*]", [("i", -5, None, None)]),
        ("<a:int8>[i=0:9:2]", [("i", 0, 9, None)]),
        ("<a:int8>[i=0:9:2:4]", [("i", 0, 9, 4)]),
        ("<a:int8>[i=0:9:?:*]", [("i", 0, 9, None)]),
        ("<a:int8>[i=?:?:?:?]", [("i", None, None, None)]),
        ("<a:int8>[i=*:*; j=0:1]", [("i", None, None, None), ("j", 0, 1, None)]),
        ("<a:int8>[i=0:9,4,1]", [("i", 0, 9, 4)]),
        ("<a:int8>[x=0:3,4,0,y=0:3,4,0]", [("x", 0, 3, 4), ("y", 0, 3, 4)]),
        ("<a:int8>[x=0:*,100000,0]", [("x", 0, None, 100000)]),
        (
            "<a:int8>[x=0:3,4,0;y=0:5,z=1:2:0:2]",
            [("x", 0, 3, 4), ("y", 0, 5, None), ("z", 1, 2, 2)],
        ),
        ("<a:int8>[x,y=0:3,4,0,z]", [("x", 0, None, None), ("y", 0, 3, 4), ("z", 0, None, None)]),
        ("<a:int8>[x=0:3,?,?]", [("x", 0, 3, None)]),
        ("<a:int8>[i=2*3-1:(4+1)*2]", [("i", 5, 10, None)]),
        ("<a:int8>[i=0:-1]", [("i", 0, -1, None)]),
        ('<a:int8>["my dim"=0:1]', [("my dim", 0, 1, None)]),
    ],
)
def test_dimensions(text: str, dims: list[tuple[Any, ...]]) -> None:
    schema, stop = parse_schema(text, DEFAULT)

    assert [tuple(dim) for dim in schema.dims] == dims
    assert stop == len(text)


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("<a:int8,b:string NULL,c:double NOT NULL>", [("a", None), ("b", True), ("c", False)]),
        ("not empty A<a:int8>[i]", [("a", None)]),
        ("ns.sub.A@3<a:int8>[i]", [("a", None)]),
        ('"odd name"<"b c":int8, $d_1:int8>[i]', [("b c", None), ("$d_1", None)]),
        ("<a:string DEFAULT 'x,y>z'>", [("a", None)]),
        ("<a:string not null default 'it\\'s', b:int8>", [("a", False), ("b", None)]),
        ("<a:int8 default missing(30), b:int64 null default null>", [("a", None), ("b", True)]),
        ("<a:double default f(1, g(2>1)) compression 'zlib' reserve 3,b:bool>",
         [("a", None), ("b", None)]),
        ("<a:double default -1.5e3 reserve 10>", [("a", None)]),
        ("-- one\n<a /* two\n */ : int8 // three\n,b:int8>[i]", [("a", None), ("b", None)]),
        ("< A : INT8 Not Null >[ I ]", [("A", False)]),
    ],
)  # fmt: skip
def test_attributes(text: str, attributes: list[tuple[Any, ...]]) -> None:
    schema, _ = parse_schema(text, DEFAULT)

    assert [(attribute.name, attribute.null) for attribute in schema.attributes] == attributes


BAD_SCHEMAS = {
    "": (0, "not complete"),
    "A": (1, "not complete"),
    "<>": (1, "name of an attribute"),
    "<a>": (2, "'a' is not complete"),
    "<a:>": (3, "type of attribute 'a'"),
    "<a:int8": (7, "not understood"),
    "<a:int8,>": (8, "name of an attribute"),
    "<a:int8 not>": (11, "not understood"),
    "<a:int8 null not null>": (13, "not understood"),
    "<a:int8 compression zlib>": (20, "compression"),
    "<a:int8 reserve x>": (16, "reserve"),
    "<a:int8 default>": (15, "default value is missing"),
    "<a:int8 default (1>": (19, "does not end"),
    "<a:int8 default 1)>": (17, "do not match"),
    "<a:int8>[": (9, "name of a dimension"),
    "<a:int8>[i=]": (11, "number is missing"),
    "<a:int8>[i=0]": (12, "'i' is not complete"),
    "<a:int8>[i=0:]": (13, "number is missing"),
    "<a:int8>[i=0:9,4]": (16, "old syntax"),
    "<a:int8>[i=0:9:0:4:1]": (18, "list of dimensions"),
    "<a:int8>[i=0:9 j=0:9]": (15, "list of dimensions"),
    "<a:int8>[i=5:3]": (11, "ends before it begins"),
    "<a:int8>[i=0:9:0:0]": (11, "empty"),
    "<a:int8>[i=0:99999999999999999999]": (13, "not understood"),
    "<a:int8>[i=0:4611686018427387904]": (13, "out of range"),
    "<a:int8>[i=0:1e5]": (13, "not understood"),
    "<a:int8,a:int8>": (15, "used twice"),
    "<i:int8>[i=0:1]": (15, "used twice"),
    "ra(float)=1000,100,0": (2, "typed dimensions"),
    "<a:int8>[i(int64)=0:1]": (10, "typed dimensions"),
    "/* <a:int8>": (0, "not closed"),
    "<a:int8>[i=" + "(" * 60 + "1": (62, "nested too deep"),
    "<a:int8>[i=" + "- " * 60 + "1": (113, "nested too deep"),
    "not full <a:int8>": (4, "not understood"),
}


@every("text", BAD_SCHEMAS)
def test_bad_schema_is_refused_where_it_is_wrong(text: str) -> None:
    at, words = BAD_SCHEMAS[text]

    with pytest.raises(Fault) as raised:
        parse_schema(text, DEFAULT)

    assert words in raised.value.what
    assert raised.value.at == at


@pytest.mark.parametrize(("before", "behind"), [("(", ")"), ("- ", ""), ("+ ", ""), ("-(", ")")])
def test_how_deep_numbers_may_be_nested(before: str, behind: str) -> None:
    """Fifty signs or brackets around a number, whichever they are."""
    step = len(before.strip())
    for count in (49 // step, 50 // step, 50 // step + 1, 60):
        text = f"<a:int8>[i={before * count}0{behind * count}:7]"
        if step * count <= 50:
            assert parse_schema(text, DEFAULT)[0].dims[0][1:3] == (0, 7)
        else:
            with pytest.raises(Fault, match="nested too deep"):
                parse_schema(text, DEFAULT)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1+2*3", 7), ("2*3+1", 7), ("(1+2)*3", 9), ("-3+5", 2), ("- 3-4", -7), ("8-2-3", 3),
        ("2*-3", -6), ("- -4", 4), ("+4", 4), ("-+4", -4), ("2*(3-(4-6))", 10), ("0", 0),
        ("4611686018427387903", (1 << 62) - 1), ("-4611686018427387903", 1 - (1 << 62)),
        ("2305843009213693952*2", None), ("4611686018427387904", None),
        ("2305843009213693951*2", (1 << 62) - 2), ("0000000000000000007", 7),
        ("00000000000000000007", None), ("1*4611686018427387904", None),
    ],
)  # fmt: skip
def test_numbers_of_schemas(text: str, value: int | None) -> None:
    """Sums and products within 62 bits, each number of 19 digits at most."""
    if value is not None:
        schema, _ = parse_schema(f"<a:int8>[i={text}:4611686018427387903]", DEFAULT)
        assert schema.dims[0].lo == value
    else:
        with pytest.raises(Fault, match="out of range|not understood"):
            parse_schema(f"<a:int8>[i={text}:4611686018427387903]", DEFAULT)


WORDS = [*"<>[](),:;=*?-+@.\"'ai01 \n", "null", "not ", "default ", "<a:int8>[i=0:", "/*", "--"]


@given(parts=st.lists(st.sampled_from(WORDS), max_size=30))
def test_any_text_is_parsed_or_refused(parts: list[str]) -> None:
    text = "".join(parts)
    for parse in (parse_schema, partial(parse_format, sizes={})):
        fault = fault_of(partial(parse, limits=DEFAULT), text)
        assert fault is None or 0 <= fault.at <= len(text)


def fault_of(parse: Callable[[str], object], text: str) -> Fault | None:
    """Parse a text; return its fault, if it has one."""
    try:
        parse(text)
    except Fault as fault:
        return fault
    return None


def test_types_of_the_schema_are_the_columns(tmp_path: Path) -> None:
    path = made(tmp_path, b"\x07\xff\x09")

    assert read(path, schema="<a:int8 not null, b:int8>[i]").names == ["a", "b", "b.null"]
    data = made(tmp_path, b"\x07\x09")
    old = read(data, schema="<a:int8, b:int8>[i]", nullable_default="not null")
    assert old.names == ["a", "b"]
    explicit = read(made(tmp_path, b"\xff\x07\xff\x09"), schema="<a:int8, b:int8 null>[i]")
    assert "before 15.12" in explicit.notes[0]


def test_the_format_string_decides_about_nulls(tmp_path: Path) -> None:
    bundle = read(made(tmp_path, b"\x07"), schema="<a:int8>[i]", format="(int8)")

    assert bundle.names == ["a"]


def test_user_defined_types_are_opaque(tmp_path: Path) -> None:
    path = made(tmp_path, bytes(range(34)))
    options = {"format": "(Point null)", "types": "point=16, rational=16"}

    bundle = read(path, **options)

    assert type_name(bundle["a0"].element) == "V16"
    assert streamed(bundle["a0"])[1].tobytes() == bytes(range(18, 34))
    assert read(path, schema="<p:point>[i]", types="point=16").names == ["p", "p.null"]
    with pytest.raises(UsageError, match="types.* is wrong"):
        read(path, format="(point)", types="point=x")
    with pytest.raises(UsageError, match="int64 has a size already"):
        read(path, format="(point)", types="int64=16")


# --- where the schema comes from -----------------------------------------------------------------


def test_without_a_schema_the_option_to_add_is_printed(tmp_path: Path) -> None:
    path = made(tmp_path, b"\x01\x02")

    with pytest.raises(UsageError) as raised:
        read(path)

    text = str(raised.value)
    assert str(path) in text
    for remedy in (
        'in_opts={"schema": "<',
        'in_opts={"format": "(',
        "'x.scidb.schema'",
        "_schema.scidb-",
    ):
        assert remedy in text


def test_schema_beside_the_file_and_of_its_folder(tmp_path: Path) -> None:
    path = made(tmp_path, b"\x01\x02")
    (tmp_path / "_schema.scidb-schema").write_text("<of_folder:int16 not null>[i]")
    assert read(path).names == ["of_folder"]

    (tmp_path / "x.scidb.schema").write_text(
        "\ufeffA<of_file:int8>\n  [i=0:*] -- one\n// two\nformat: (int8)\nlayout: flat\n"
    )
    assert read(path).names == ["of_file"]
    assert read(path, format="(int16)")["of_file"].count == 1
    assert read(path, schema="<given:int16 not null>[i]").names == ["given"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<a:int8>[i] format: (int8)", None),
        ("<a:int8>[i]\nfrmat: (int8)", "line is not understood"),
        ("<a:int8>[i]\nlayout: round", "layout is not understood"),
        ("<a:int8>[i]\nformat: (int8", "format is wrong"),
        ("", "not complete"),
        ("-- nothing", "not complete"),
        ("\xff", "UTF-8"),
    ],
)
def test_schema_files(text: str, words: str | None, tmp_path: Path) -> None:
    path = made(tmp_path, b"\x01")
    (tmp_path / "x.scidb.schema").write_bytes(text.encode("latin-1"))
    if words is None:
        assert read(path).names == ["a"]
        return
    with pytest.raises(Corrupt, match=words) as raised:
        read(path)
    assert "x.scidb.schema" in str(raised.value)


def test_schema_file_with_a_format_only(tmp_path: Path) -> None:
    path = made(tmp_path, b"\x01")
    (tmp_path / "x.scidb.schema").write_text("format: (int8)\n")

    assert read(path).names == ["a0"]


def test_schema_file_that_is_too_large(tmp_path: Path) -> None:
    path = made(tmp_path, b"\x01")
    (tmp_path / "x.scidb.schema").write_bytes(b" " * (1 << 19))

    with pytest.raises(Corrupt, match="too large"):
        read(path)


def test_schema_file_outside_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret").write_text("pass:word")
    path = made(tmp_path / "inside", b"\x01")
    (tmp_path / "inside" / "x.scidb.schema").symlink_to(tmp_path / "secret")

    with pytest.raises(Unsafe) as raised:
        read(path)
    assert "pass" not in str(raised.value)
    assert scidb.sniff(Source(str(path))) == MAYBE


def test_schema_and_format_that_do_not_belong_together(tmp_path: Path) -> None:
    path = made(tmp_path, bytes(24))
    schema = "<v:double>[i=0:3; j=0:4]"

    with pytest.raises(UsageError, match='"after".*"before"'):
        read(path, schema=schema, format="(double, int64, int64)")
    with pytest.raises(UsageError, match="expected 1 columns, got 2"):
        read(path, schema=schema, format="(double, int64)")
    with pytest.raises(UsageError, match="holds no coordinates; expected int64, got 'double'"):
        read(path, schema=schema, format="(double, int64, int64)", coords="before")
    with pytest.raises(UsageError, match="names the dimensions"):
        read(path, format="(double, int64, int64)", coords="before")


# --- layouts -------------------------------------------------------------------------------------


def in_chunks(values: np.ndarray, chunks: tuple[int, ...]) -> np.ndarray:
    """Return the cells in the order of SciDB: chunk after chunk, each row-major."""
    pieces = []
    grid = [range(0, n, c) for n, c in zip(values.shape, chunks, strict=True)]
    for corner in np.ndindex(*[len(steps) for steps in grid]):
        key = tuple(slice(c * size, (c + 1) * size) for c, size in zip(corner, chunks, strict=True))
        pieces.append(values[key].ravel())
    return np.concatenate(pieces)


@given(data=st.data())
def test_chunk_order(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    values = np.arange(math.prod(shape), dtype="<i4").reshape(shape)
    other = np.zeros(values.size, [("n", "u1"), ("v", "<i4"), ("w", "<u2")])
    other["n"], other["v"], other["w"] = 255, in_chunks(values, chunks), in_chunks(values, chunks)
    path = made(tmp_path_factory.getbasetemp(), other.tobytes(), "chunks.scidb")
    dims = "; ".join(
        f"d{k}=0:{n - 1}:0:{c}" for k, (n, c) in enumerate(zip(shape, chunks, strict=True))
    )

    bundle = read(path, schema=f"<v:int32,w:uint16 not null>[{dims}]")

    assert np.array_equal(in_chunks(values, chunks), values.ravel()) == in_c_order(shape, chunks)
    assert np.array_equal(bundle["v"][...], values)
    assert np.array_equal(streamed(bundle["v"], data.draw(st.integers(1, 99))), values)
    key = tuple(
        data.draw(st.integers(-n, n - 1) | st.slices(n))
        for n in shape[: data.draw(st.integers(0, 4))]
    )
    assert np.array_equal(bundle["w"][key], values[key])
    flat = read(path, schema=f"<v:int32,w:uint16 not null>[{dims}]", layout="flat")
    assert np.array_equal(flat["v"][:], other["v"])
    in_c = read(path, schema=f"<v:int32,w:uint16 not null>[{dims}]", order="C")
    assert np.array_equal(in_c["v"][:].ravel(), other["v"])


def test_recorded_order_of_the_server(tmp_path: Path) -> None:
    """A 10 x 10 array in chunks of 5 x 5: cell (0, 5) is the 26th, as SciDB's own tests record."""
    path = made(tmp_path, np.arange(100, dtype="<i8").tobytes())

    values = read(path, schema="<v:int64 not null>[i=0:9:0:5; j=0:9:0:5]")["v"][...]

    assert values[0, 4:6].tolist() == [4, 25]
    assert values[5, 0] == 50


def test_chunks_of_variable_records_stay_in_the_order_of_the_file(tmp_path: Path) -> None:
    data = b"".join(struct.pack("<I", 2) + bytes([65 + n, 0]) for n in range(4))
    path = made(tmp_path, data)
    schema = "<s:string not null>[i=0:1:0:1; j=0:1:0:1]"
    assert read(path, schema=schema).arrays[0].shape == (5,)
    schema = "<s:string not null>[i=0:1:0:2; j=0:1:0:1]"

    bundle = read(path, schema=schema)

    assert "in the order of the file" in bundle.notes[0]
    assert streamed(bundle["s.bytes"]).tobytes() == b"A\0B\0C\0D\0"
    with pytest.raises(Unsupported, match='"layout": "flat"'):
        read(path, schema=schema, layout="dense")


def test_count_that_is_not_that_of_the_cells(tmp_path: Path) -> None:
    schema = "<v:int32 not null>[i=0:2; j=0:3]"
    for count in (0, 11, 13):
        with pytest.raises(Corrupt) as raised:
            read(made(tmp_path, bytes(4 * count)), schema=schema)
        text = str(raised.value)
        assert f"holds {count} records" in text
        assert "(i=3 x j=4)" in text
        assert "empty cells" in text
        assert f"byte {4 * count}" in text
    assert read(made(tmp_path, bytes(44)), schema=schema, layout="flat")["v"].shape == (11,)


def coordinates(rows: list[tuple[int, ...]], values: list[float], *, before: bool) -> bytes:
    """Return records of a double and its coordinates."""
    out = b""
    for row, value in zip(rows, values, strict=True):
        parts = struct.pack("<d", value), struct.pack(f"<{len(row)}q", *row)
        out += b"".join(reversed(parts) if before else parts)
    return out


@pytest.mark.parametrize("coords", ["after", "before"])
def test_coordinates(coords: str, tmp_path: Path) -> None:
    rows = [(3, -1), (2, 1), (3, 0)]
    path = made(tmp_path, coordinates(rows, [1.5, 2.5, 3.5], before=coords == "before"))
    form = "(double, int64, int64)" if coords == "after" else "(int64, int64, double)"
    options = {"schema": "<v:double>[i=2:3; j=-1:1]", "format": form, "coords": coords}

    table = read(path, **options)
    assert sorted(table.names) == ["i", "j", "v"]
    assert table["j"][:].tolist() == [-1, 1, 0]

    dense = read(path, **options, layout="dense")
    assert dense.names == ["v", "cells"]
    assert dense["v"][...].tolist() == [[0, 0, 2.5], [1.5, 3.5, 0]]
    assert np.array_equal(streamed(dense["v"], 7), dense["v"][...])
    assert dense["cells"][:].tolist() == [3, 2, 4]


def test_coordinates_of_all_cells_in_order_need_no_cells(tmp_path: Path) -> None:
    rows = [(i, j) for i in range(300) for j in range(200)]
    path = made(tmp_path, coordinates(rows, list(range(60_000)), before=False))
    schema = {"schema": "<v:double>[i=0:299; j=0:199]", "format": "(double, int64, int64)"}

    bundle = read(path, **schema, coords="after", layout="dense")

    assert bundle.names == ["v"]
    assert np.array_equal(bundle["v"][...].ravel(), np.arange(60_000.0))

    rows[50_000:50_002] = rows[50_001], rows[50_000]
    path = made(tmp_path, coordinates(rows, list(range(60_000)), before=False))
    bundle = read(path, **schema, coords="after", layout="dense")
    assert bundle.names == ["v", "cells"]
    assert bundle["v"][250, 0:2].tolist() == [50_001, 50_000]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(0, 0), (2, 0)], "coordinate i of record 1 .* outside.*byte 24; expected 0 to 1, got 2"),
        ([(0, 0), (0, -1)], "coordinate j of record 1"),
        ([(0, 0), (1, 1), (0, 0)], "records 0 and 2 .* same coordinates.*byte 48"),
        ([(0, 0), (1 << 62, 1 << 62)], "coordinate i of record 1"),
    ],
)
def test_coordinates_that_are_wrong(rows: list[Any], words: str, tmp_path: Path) -> None:
    path = made(tmp_path, coordinates(rows, [0.0] * len(rows), before=False))

    with pytest.raises(Corrupt, match=words):
        read(
            path,
            schema="<v:double>[i=0:1; j=0:1]",
            format="(double, int64, int64)",
            coords="after",
            layout="dense",
        )


def test_options_that_need_bounds(tmp_path: Path) -> None:
    path = made(tmp_path, bytes(8))
    for option in ({"layout": "dense"}, {"order": "chunk"}):
        with pytest.raises(UsageError, match="both bounds"):
            read(path, schema="<v:int64 not null>[i=0:*]", **option)
    with pytest.raises(UsageError, match="both bounds"):
        read(path, format="(int64)", layout="dense")


def test_dimensions_beyond_numpy(tmp_path: Path) -> None:
    dims = "; ".join(f"d{n}=0:0" for n in range(70))
    with pytest.raises(Unsupported, match=r'70 dimensions(.|\n)*"layout": "flat"'):
        read(made(tmp_path, b"\0"), schema=f"<v:int8 not null>[{dims}]")
    with pytest.raises(Unsupported, match=r"2\*\*63"):
        read(
            made(tmp_path, b""),
            schema="<v:int64 not null>[i=0:-1; j=0:4611686018427387000; k=0:9]",
        )


def test_records_verbatim(tmp_path: Path) -> None:
    raw = bytes(range(60))
    path = made(tmp_path, raw)
    schema = "<a:int64 not null,b:double,z:int8 not null,t:binary>[i=0:2]"

    [array] = read(path, schema=schema, format="(int16, double null, int8, binary(8))",
                   records="raw").arrays  # fmt: skip

    assert (array.element.kind, array.element.nbytes, array.shape) == ("user", 20, (3,))
    assert array.extent is not None
    got = streamed(array)
    assert got.tobytes() == raw
    assert got["b"]["null"].tolist() == [raw[2], raw[22], raw[42]]
    assert got["a"].tolist() == [256, 5396, 10536]

    [array] = read(FIXTURES / "texts.scidb", records="raw").arrays
    assert (array.element.kind, array.element.nbytes, array.shape) == ("user", 1, (520,))
    assert streamed(array).tobytes() == (FIXTURES / "texts.scidb").read_bytes()


def test_names_that_look_like_companions(tmp_path: Path) -> None:
    path = made(tmp_path, b"\xff\x01\x02")

    bundle = read(path, schema='<a:int8,"a.null":int8 not null>[i]')

    assert bundle.names == ["a", "a.null", "a.null_"]
    assert [array.meta.formats["scidb"]["role"] for array in bundle.arrays] == [
        "values", "null", "values",
    ]  # fmt: skip


def test_prefixes_that_readers_disagree_about_are_noted(tmp_path: Path) -> None:
    path = made(tmp_path, b"\x80\x01\xff\x02\x05\x03")

    bundle = read(path, schema="<a:int8>[i]")

    assert streamed(bundle["a.null"]).tolist() == [0x80, 0xFF, 5]
    assert "SciDB-Py takes them as missing" in bundle.notes[-1]


def test_datetimetz_is_a_pair(tmp_path: Path) -> None:
    path = made(tmp_path, struct.pack("<4q", 10, -3600, 20, 7200))

    array = read(path, format="(datetimetz)")["a0"]

    assert array.dims == (2, 2)
    assert streamed(array).tolist() == [[10, -3600], [20, 7200]]
    assert len(array.ra_axes) == 2


# --- arrays chosen without their companions ------------------------------------------------------

NULLABLE = "<n:int16, t:string, z:int8 NOT NULL>[i=0:2]"
# n: 7, missing for reason 3, 9; t: "a", missing, ""
NULLABLE_BYTES = (
    b"\xff\x07\x00\xff\x02\x00\x00\x00a\x00\x01"
    b"\x03\x00\x00\x00\x00\x00\x00\x00\x02"
    b"\xff\x09\x00\xff\x01\x00\x00\x00\x00\x03"
)
# chosen arrays: what is refused, as (array, property, the companion that is not there)
LEFT_BEHIND = {
    "n": [("n", "nulls", "n.null")],
    "n n.null": [],
    "n.null": [],
    "n*": [],
    "z": [],
    "t.offsets": [],
    "t.bytes": [("t.bytes", "elements", "t.offsets"), ("t.bytes", "nulls", "t.null")],
    "t.bytes t.offsets": [("t.bytes", "nulls", "t.null")],
    "t.*": [],
    "n z": [("n", "nulls", "n.null")],
}


@every("names", LEFT_BEHIND)
@every("form", ["x.scidb", "x.zip", "x.h5"])
def test_an_array_without_its_companions_is_refused(names: str, form: str, tmp_path: Path) -> None:
    """Also when it is chosen from another format that keeps the metadata."""
    path = made(tmp_path, NULLABLE_BYTES)
    (tmp_path / "x.scidb.schema").write_text(NULLABLE)
    if form != "x.scidb":
        raconvert.convert(path, tmp_path / form)
    arrays, expected = names.split(), LEFT_BEHIND[names]
    target = tmp_path / "y.npz"
    if expected:
        with pytest.raises(WouldLose) as caught:
            raconvert.convert(tmp_path / form, target, arrays=arrays)
        said = caught.value.remedy.splitlines()
        for (array, loss, companion), line in zip(expected, said, strict=False):
            assert line.strip().startswith(f"array '{array}': {loss}: ")
            assert f"'{companion}' says" in line
            assert "was not selected" in line
            assert line.endswith(f'(allow with allow=["{loss}"])')
        assert len(said) == len(expected) + 1
        assert not target.exists()
    report = raconvert.convert(tmp_path / form, target, arrays=arrays, allow=["nulls", "elements"])

    assert [(fit.array, fit.property) for fit in report.allowed] == [e[:2] for e in expected]


def test_chosen_by_name_in_a_stack_and_among_many_files(tmp_path: Path) -> None:
    for name in ("x.scidb", "y.scidb"):
        made(tmp_path, NULLABLE_BYTES, name)
        (tmp_path / f"{name}.schema").write_text(NULLABLE)
    files = [tmp_path / "x.scidb", tmp_path / "y.scidb"]

    with pytest.raises(WouldLose, match="'n.null' says which .* was not selected"):
        raconvert.convert(files, tmp_path / "stack.npy", arrays=["n"])
    with pytest.raises(WouldLose, match="'n.null' says which .* was not selected"):
        raconvert.convert(files, tmp_path / "both.npz", arrays=["n"])
    raconvert.convert(files, tmp_path / "both.zip")
    with pytest.raises(WouldLose, match="'y/n.null' says which .* was not selected"):
        raconvert.convert(tmp_path / "both.zip", tmp_path / "one.npz", arrays=["y/n", "x/n.null"])
    raconvert.convert(tmp_path / "both.zip", tmp_path / "one.npz", arrays=["y/n", "y/n.null"])


def test_every_array_in_a_file_of_its_own_leaves_nothing_behind(tmp_path: Path) -> None:
    path = made(tmp_path, NULLABLE_BYTES)
    (tmp_path / "x.scidb.schema").write_text(NULLABLE)
    report = raconvert.convert(path, out_dir=tmp_path / "out", to="npy")

    assert report.allowed == []
    assert len(report.arrays) == 6


def test_an_allowed_loss_is_not_brought_up_again(tmp_path: Path) -> None:
    path = made(tmp_path, NULLABLE_BYTES)
    (tmp_path / "x.scidb.schema").write_text(NULLABLE)
    raconvert.convert(f"{path}#n", tmp_path / "n.ra", allow=["nulls"])
    report = raconvert.convert(tmp_path / "n.ra", tmp_path / "n.npy")

    assert report.allowed == []
    assert raconvert.read(tmp_path / "n.npy").tolist() == [7, 0, 9]
    assert raconvert.read(path, "n").tolist() == [7, 0, 9]


def test_values_in_place_without_the_cells_that_have_a_record(tmp_path: Path) -> None:
    records = [(1.5, 0, 1), (2.5, 1, 0)]
    path = made(tmp_path, b"".join(struct.pack("<dqq", *record) for record in records))
    options = {"schema": "<v:double NOT NULL>[i=0:1;j=0:1]", "coords": "after", "layout": "dense"}

    with pytest.raises(WouldLose, match="'cells' says which .* was not selected"):
        raconvert.convert(path, tmp_path / "v.npy", arrays=["v"], in_opts=options)
    all_cells = [(4.0, 1, 1), (3.0, 0, 0), *records]
    path = made(tmp_path, b"".join(struct.pack("<dqq", *record) for record in all_cells))
    raconvert.convert(path, tmp_path / "v.npy", arrays=["v"], in_opts=options)

    assert np.load(tmp_path / "v.npy").tolist() == [[3, 1.5], [2.5, 4]]


# --- coordinates without a format string ---------------------------------------------------------


@pytest.mark.parametrize("coords", ["after", "before"])
@pytest.mark.parametrize("beside", [False, True])
def test_the_dimensions_are_columns_of_a_schema_alone(
    coords: str, beside: bool, tmp_path: Path
) -> None:
    records = [(1.5, 0, 3), (2.5, 3, 1)]
    layout, order = ("<dqq", [0, 1, 2]) if coords == "after" else ("<qqd", [1, 2, 0])
    rows = [[record[n] for n in order] for record in records]
    path = made(tmp_path, b"".join(struct.pack(layout, *row) for row in rows))
    schema = "<v:double NOT NULL>[i=0:3;j=0:3]"
    if beside:
        (tmp_path / "x.scidb.schema").write_text(f"{schema}\ncoords: {coords}\n")
        bundle = read(path)
    else:
        bundle = read(path, schema=schema, coords=coords)

    found = {array.name: streamed(array).tolist() for array in bundle.arrays}
    assert found == {"v": [1.5, 2.5], "i": [0, 3], "j": [3, 1]}
    assert bundle.formats["scidb"]["format"] in ("(double, int64, int64)", "(int64, int64, double)")


def test_chunk_order_that_is_undone_is_noted(tmp_path: Path) -> None:
    path = made(tmp_path, np.arange(16, dtype="<i4").tobytes())
    schema = "<v:int32 NOT NULL>[i=0:3:0:2;j=0:3:0:{}]"
    parted = read(path, schema=schema.format(2))
    whole = read(path, schema=schema.format(4))

    assert streamed(parted.arrays[0])[0].tolist() == [0, 1, 4, 5]
    assert parted.notes == [
        "the cells lie chunk after chunk (2 x 2) in the file, as the schema says, and are put into "
        'row-major order; in_opts={"order": "C"} takes them as they lie'
    ]
    assert whole.notes == []
    assert read(path, schema=schema.format(2), order="C").notes == []


# --- records at random ---------------------------------------------------------------------------

KINDS = [*scidb_records.SIZES, "string", "binary", "skip", "string(5)", "binary(3)", "skip(7)"]


@st.composite
def files(draw: st.DrawFn) -> tuple[str, list[list[tuple[int | None, bytes]]]]:
    """A format string and records of any bytes: any prefixes, counts, and payloads behind nulls."""
    parts = draw(st.lists(st.tuples(st.sampled_from(KINDS), st.booleans()), min_size=1, max_size=6))
    text = "(" + ", ".join(kind + " null" * null for kind, null in parts) + ")"
    record = []
    for _, size, null in scidb_records.columns(text):
        least, most = (0, 12) if size is None else (size, size)
        value = st.binary(min_size=least, max_size=most)
        record.append(st.tuples(st.integers(0, 255) if null else st.none(), value))
    return text, draw(st.lists(st.tuples(*record).map(list), max_size=8))


@given(made_file=files(), block=st.integers(1, 40), max_bytes=st.integers(1, 60))
def test_any_records(
    made_file: Any, block: int, max_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Every value arrives, whatever the blocks are, mapped or read, streamed or sliced."""
    text, records = made_file
    data = scidb_records.encode(records, text)
    path = made(tmp_path_factory.getbasetemp(), data, "any.scidb")
    with pytest.MonkeyPatch.context() as patch:
        for module in (scan_module, together_module):
            patch.setattr(module, "READ_BYTES", block)
        for max_memory in (1 << 20, 1 << 30):
            bundle = read(path, format=text, max_memory=max_memory)
            columns = [values_of(bundle, name) for name in columns_of(bundle)]
            assert [list(r) for r in zip(*columns, strict=True)] == records
            for array in bundle.arrays:
                assert np.asarray(array[...]).tobytes() == streamed(array, max_bytes).tobytes()


def test_records_longer_than_a_block(tmp_path: Path) -> None:
    long = bytes(range(256)) * 5000
    data = b"".join(struct.pack("<I", len(v)) + v + b"!" for v in (b"", long, b"x", long[:-1]))
    path = made(tmp_path, data)

    bundle = read(path, format="(binary, char)")

    assert [raw for _, raw in values_of(bundle, "a0")] == [b"", long, b"x", long[:-1]]
    with pytest.raises(TooLarge, match="record 1 at byte 5"):
        read(path, format="(binary, char)", max_memory=1 << 20)


def test_counts_that_are_not_kept_are_found_again(tmp_path: Path) -> None:
    data = b"".join(struct.pack("<I", n % 7) + bytes(n % 7) for n in range(100_000))
    path = made(tmp_path, data)

    small = read(path, format="(binary)", max_memory=1 << 20)["a0.offsets"]
    large = read(path, format="(binary)")["a0.offsets"]

    assert np.array_equal(streamed(small), streamed(large))
    assert streamed(large)[-1] == sum(n % 7 for n in range(100_000))


def records_of_random_width(
    rng: random.Random, spans: list[int]
) -> tuple[bytearray, list[int], list[list[int]]]:
    """Some records, where each begins and the last ends, and the places of their counts."""
    data, borders, places = bytearray(), [0], []
    for _ in range(rng.randint(1, 4)):
        row = []
        for span in spans[:-1]:
            data += b"\xff" * span
            row.append(len(data))
            count = rng.randint(0, 4)
            data += count.to_bytes(4, "little") + b"\xff" * count
        data += b"\xff" * spans[-1]
        borders.append(len(data))
        places.append(row)
    return data, borders, places


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_places_of_counts_in_data_cut_anywhere(columns: int) -> None:
    """Those of whole records; and the bytes that the first one needs, as far as its counts show."""
    rng = random.Random(columns)
    for _ in range(20):
        spans = [rng.randint(0, 3) for _ in range(columns + 1)]
        data, borders, places = records_of_random_width(rng, spans)
        for cut in range(len(data) + 1):
            whole = sum(end <= cut for end in borders[1:])
            assert scan_module.counts_at(data[:cut], spans).tolist() == places[:whole]
            shown = sum(at + 4 <= cut for at in places[0])
            need = borders[1] if shown == columns else places[0][shown] + 4
            assert scan_module.needed(data[:cut], spans) == need


def test_a_file_that_changes_meanwhile(tmp_path: Path) -> None:
    path = made(tmp_path, struct.pack("<I", 3) + b"abc" + struct.pack("<I", 1) + b"d")
    bundle = read(path, format="(binary)")
    path.write_bytes(struct.pack("<I", 1) + b"d" + struct.pack("<I", 3) + b"abc")
    assert streamed(read(path, format="(binary)")["a0.bytes"]).tobytes() == b"dabc"
    path.write_bytes(struct.pack("<I", 9) + b"abc" + struct.pack("<I", 1) + b"d")
    for name in bundle.names:
        with pytest.raises(Corrupt, match="changed|shorter"):
            streamed(bundle[name])
    fixed = read(made(tmp_path, bytes(24), "y"), format="(int64, int16, int16)", max_memory=90)
    (tmp_path / "y").write_bytes(bytes(5))
    with pytest.raises(Corrupt, match="shorter"):
        streamed(fixed["a1"])
    with pytest.raises(Corrupt, match="shorter"):
        _ = fixed["a1"][0]


# --- damage --------------------------------------------------------------------------------------


def every_column(bundle: Bundle) -> None:
    """Decode everything."""
    with bundle:
        for array in bundle.arrays:
            for _ in blocks(array, 1 << 16):
                pass


@pytest.mark.parametrize("name", [name for name in CORPUS if name != "empty.scidb"])
def test_every_cut_of_a_file_with_bounds_is_refused(
    name: str, corpus: Callable[..., Path], tmp_path: Path
) -> None:
    """Record boundaries included: the schema says how many records there are."""
    path, facts, options = corpus_case(corpus("scidb"), name)
    whole = path.read_bytes()
    schema = facts["schema"].partition("[")[0] + f"[row=0:{len(facts['records']) - 1}]"
    options = {"schema": schema, "format": facts["format"]}
    if CORPUS[name]:  # the coordinates become attributes: a table of as many records
        kinds = [c[0] for c in scidb_records.columns(facts["format"])]
        named = ", ".join(f"c{n}:{kind}" for n, kind in enumerate(kinds))
        options["schema"] = f"<{named}>[row=0:{len(facts['records']) - 1}]"
    every_column(read(path, **options))
    ends = boundaries(whole, facts["format"])
    for length in range(len(whole)):
        cut = made(tmp_path, whole[:length])
        with pytest.raises(Corrupt) as raised:
            read(cut, **options)
        text = str(raised.value)
        assert str(cut) in text
        assert "record " in text
        assert "byte " in text
        assert ("dimensions of its schema" in text) == (length in ends)


def boundaries(data: bytes, text: str) -> set[int]:
    """Return where records end."""
    ends = {0}
    for record in scidb_records.decode(data, text):
        ends.add(max(ends) + len(scidb_records.encode([record], text)))
    return ends


@pytest.mark.parametrize("name", ["all_types_nullable.scidb", "vendor_intensity_data.bin"])
def test_cuts_of_a_file_without_bounds(
    name: str, corpus: Callable[..., Path], tmp_path: Path
) -> None:
    """On a record boundary nobody can tell; anywhere else it is refused."""
    path, facts, options = corpus_case(corpus("scidb"), name)
    whole = path.read_bytes()
    ends = boundaries(whole, facts["format"])
    for length in range(len(whole)):
        cut = made(tmp_path, whole[:length])
        if length in ends:
            every_column(read(cut, **options))
        else:
            with pytest.raises(Corrupt, match="file ends inside record"):
                read(cut, **options)


def test_flipped_bytes_are_decoded_or_refused(corpus: Callable[..., Path], tmp_path: Path) -> None:
    """No foreign error, no hang, and no more than the file can hold."""
    done = 0
    for name in CORPUS:
        path, _, options = corpus_case(corpus("scidb"), name)
        whole = path.read_bytes()
        for damaged in changed([whole], rounds(300, 40) if whole else 0, name):
            flipped = made(tmp_path, damaged.data)
            message = refusal(flipped, options)
            assert message is None or str(flipped) in message
            done += 1
    assert done == rounds(3600, 480)


def refusal(path: Path, options: dict[str, str]) -> str | None:
    """Decode a file; return the message of the error of ours, if it is refused."""
    try:
        every_column(read(path, **options))
    except RaconvertError as error:
        return str(error)
    return None


HUGE = {
    "count_4_gib": (b"\xff\xff\xff\xff" + bytes(100), "(binary)"),
    "null_count_4_gib": (b"\x00\xff\xff\xff\xff" + bytes(100), "(string null)"),
    "second_count": (bytes(4) + b"\xff\xff\xff\x7f", "(string, string)"),
    "skip_count": (b"\xff\xff\xff\xff", "(skip, int8)"),
    "width_2_gib": (bytes(100), "(string(2147483647))"),
    "widths_many": (bytes(100), "(" + ", ".join(["string(2147483647)"] * 9000) + ")"),
    "columns_many": (bytes(100_000), "(" + ", ".join(["string"] * 9000) + ")"),
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_lengths_are_refused_before_anything_is_allocated(name: str, tmp_path: Path) -> None:
    import tracemalloc

    data, text = HUGE[name]
    path = made(tmp_path, data)
    tracemalloc.start()
    try:
        with pytest.raises(Corrupt, match="file ends inside record"):
            read(path, format=text)
        assert tracemalloc.get_traced_memory()[1] < 60 << 20
    finally:
        tracemalloc.stop()


def test_too_many_columns(tmp_path: Path) -> None:
    path = made(tmp_path, b"")
    many = ",".join(["int8"] * 10_001)
    with pytest.raises(UsageError, match="more than 10000 columns"):
        read(path, format=f"({many})")
    named = ",".join(f"a{n}:int8" for n in range(10_001))
    with pytest.raises(UsageError, match="more than 10000 attributes"):
        read(path, schema=f"<{named}>")


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """64 MB of records in the memory of a few blocks."""
    import tracemalloc

    path = tmp_path / "x.scidb"
    record = struct.pack("<qBd", 1, 255, 0.5)
    with open(path, "wb") as file:
        file.writelines([record * ((1 << 20) // len(record))] * 64)
    bundle = read(path, schema="<a:int64 not null,b:double>[i]", max_memory=32 << 20)
    tracemalloc.start()
    try:
        every_column(bundle)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


# --- recognition ---------------------------------------------------------------------------------

FOREIGN = {
    "text_dense": (b"[(1,'a'),(2,'b')]", "SciDB text"),
    "text_nested": (b"\n [[(1),(2)],[(3),()]]", "SciDB text"),
    "text_place": (b"{0,-4}[[(1),(2)]]", "SciDB text"),
    "text_sparse": (b"[[{0,0}(1),{1,1}(2)]]", "SciDB text"),
    "opaque": (bytes.fromhex("0ec05a00") + bytes(60), "opaque SciDB dump"),
    "opaque_old": (bytes.fromhex("acec0a00") + bytes(60), "opaque SciDB dump of an old version"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_scidb_files_are_named(name: str, tmp_path: Path) -> None:
    data, words = FOREIGN[name]
    for suffix in ("scidb", "dat"):
        path = made(tmp_path, data, f"x.{suffix}")
        assert scidb.sniff(Source(str(path))) == SURE
        with pytest.raises(Unsupported, match=words) as raised:
            raconvert.convert(path, tmp_path / "x.ra")
        assert str(path) in str(raised.value)
    assert read(path, format="(int8)")["a0"].count == len(data)


@pytest.mark.parametrize(
    "data", [b"", b"[1, 2]", b"{}", b"(1)", b"[(\x00\x01", b"[[", b'{"a": [(1)]}']
)
def test_others_are_not_claimed(data: bytes, tmp_path: Path) -> None:
    assert scidb.sniff(Source(str(made(tmp_path, data)))) == NO


def test_sniff_beside_a_schema(tmp_path: Path) -> None:
    path = made(tmp_path, b"\x01", "x.bin")
    (tmp_path / "_schema.scidb-schema").write_text("<a:int8 not null>[i]")
    assert scidb.sniff(Source(str(path))) == MAYBE

    (tmp_path / "x.bin.schema").write_text("<a:int8 not null>[i]")
    assert scidb.sniff(Source(str(path))) == SURE
    assert list(raconvert.read(path)) == ["a"]

    (tmp_path / "x.bin.schema").write_text("create table x;")
    assert scidb.sniff(Source(str(path))) == MAYBE


def test_error_says_that_it_looks_like_text(tmp_path: Path) -> None:
    path = made(tmp_path, b"[(1),(2),(3)]")

    with pytest.raises(Corrupt, match="looks like SciDB text"):
        read(path, format="(int64)")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(RaconvertError, match="x.scidb"):
        read(tmp_path / "x.scidb", format="(int8)")
    assert not os.listdir(tmp_path)
