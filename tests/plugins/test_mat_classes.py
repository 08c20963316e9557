"""Objects of MATLAB's classes: read as matio reads them, exact or said, damaged ones refused."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from cases import every
from mat_bytes import (
    MAGIC,
    classes_data,
    deflated,
    doubles,
    element,
    fields,
    listed,
    matrix,
    numbers,
    opaque,
    string_list,
    string_record,
    subsystem,
    uint64s,
    with_classes,
)
from raconvert.plugins import mat
from raconvert.plugins.mat.sources_of_classes import counts

import raconvert
from raconvert.arrays.blocks import blocks
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported, WouldLose
from raconvert.files.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from raconvert.plugin import Bundle

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "mat"
FILES = ("matio_v6.mat", "matio_v7.mat", "matio_v73.mat")
X = matrix(6, (1, 1), b"x", doubles(1.5))


def opened(path: Path, **options: Any) -> Bundle:
    return mat.read(Source(str(path)), **options)


def values(array: Any) -> np.ndarray[Any, Any]:
    """The elements in logical order, by blocks and by a region, which must agree."""
    stored = np.concatenate([b.reshape(-1) for b in blocks(array, 64)] or [np.zeros(0)])
    whole = np.asarray(array)
    assert stored.tobytes() == whole.reshape(-1, order="F").tobytes() or not whole.size
    return whole


# What the fixtures hold, typed in by hand: values, and what is said beside them.
DAYS = np.array(["2026-01-01", "2026-01-02", "2026-01-03"], "M8[ms]")
ROWS = ("r1", "r2", "r3")
VALUES: dict[str, Any] = {
    "words": np.array([["north", "süd"], ["", "𝄞 east"]], "U7"),
    "when": np.array([["2026-11-28T12:00:00.250", "NaT"]], "M8[ms]"),
    "zoned": np.array([["2025-04-01T12:00:00.123456789"], ["1969-12-31T23:59:59.999"]], "M8[ns]"),
    "lag": np.array([[90_000, 1000]], "m8[ms]"),
    "kind": np.array([[0, -1, 1]], "i1"),
    "table/Row": np.array(ROWS),
    "table/depth": np.array([0.5, 1.5, 2.5]),
    "table/site": np.array(["a", "bb", "ccc"]),
    "table/when": DAYS,
    "table/kind": np.array([0, 2, 0], "i1"),
    "table/lag": np.array([1000, 2000, 3000], "m8[ms]"),
    "times/Time": DAYS,
    "times/flow": np.array([1.0, 2.0, 3.0]),
    "map/keys": np.array(["one", "two"]),
    "map/values/1": np.array([[1.0]]),
    "map/values/2": np.array([[2.0]]),
}
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "zoned": {"time_zone": "Europe/Berlin"},
    "kind": {"levels": ["lo", "hi"], "ordered": False},
    "table/kind": {"levels": ["low", "mid", "high"], "ordered": True},
}


@pytest.mark.parametrize("name", FILES)
def test_fixtures_hold_what_was_written(name: str) -> None:
    with opened(FIXTURES / name) as bundle:
        assert set(bundle.names) == set(VALUES)
        for path, expected in VALUES.items():
            found = values(bundle[path])
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape), path
            assert np.array_equal(found, expected, equal_nan=expected.dtype.kind in "mM"), path
            assert bundle[path].meta.attributes == ATTRIBUTES.get(path, {}), path
        for path in ("depth", "site", "when", "kind", "lag"):
            assert bundle[f"table/{path}"].meta.axes[0].labels == ROWS
        assert bundle["times/flow"].meta.axes[0].name == "Time"
        assert [" read as a group of " in note for note in bundle.notes] == [True] * 3


@pytest.mark.parametrize("name", FILES)
def test_matio_reads_the_same(name: str) -> None:
    """The judge of the fixtures themselves, as far as its own types hold the values."""
    pandas = pytest.importorskip("pandas")
    option = "future.infer_string"  # which importing matio changes for the whole process
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pandas.option_context(option, pandas.get_option(option)):
            matio = pytest.importorskip("matio")
            known = matio.load_from_mat(str(FIXTURES / name))

    with opened(FIXTURES / name) as bundle:
        assert np.asarray(bundle["words"]).tolist() == known["words"].tolist()
        assert np.array_equal(np.asarray(bundle["lag"]), known["lag"])
        codes = np.asarray(bundle["kind"]).reshape(-1)
        assert codes.tolist() == known["kind"].codes.reshape(-1).tolist()
        table = known["table"]
        for column in ("depth", "site", "when", "lag"):
            found = np.asarray(bundle[f"table/{column}"])
            assert np.array_equal(found, table[column].to_numpy().astype(found.dtype)), column
        assert list(bundle["table/kind"].meta.attributes["levels"]) == [
            *table["kind"].cat.categories
        ]
        assert list(table.index) == np.asarray(bundle["table/Row"]).tolist()
        assert np.array_equal(np.asarray(bundle["times/Time"]), known["times"].index.to_numpy())


def test_strings_of_matlab(corpus: Callable[..., Path]) -> None:
    """Files that MATLAB itself wrote."""
    for name in ("mat/mcos_test_string_v7.mat", "mat73/mcos_test_string_v73.mat"):
        with opened(corpus("mat-hdf5") / name) as bundle:
            found = {array.name: values(array).tolist() for array in bundle.arrays}
        assert found == {
            "string_scalar": [["Hello"]],
            "string_array": [["Apple", "Banana", "Cherry"], ["Date", "Fig", "Grapes"]],
            "string_empty": [[""]],
        }


# --- strings ------------------------------------------------------------------------------------


def strings(tmp_path: Path, record: bytes, **options: Any) -> Bundle:
    data = subsystem(classes_data(string_list(), uint64s(record)))
    return opened(with_classes(tmp_path, opaque(b"s", b"string"), data), **options)


@pytest.mark.parametrize("packed", [False, True])
def test_missing_strings_have_a_mask(packed: bool, tmp_path: Path) -> None:
    record = string_record("a", None, "", "four", dims=(2, 2))
    data = subsystem(classes_data(string_list(), uint64s(record)))
    variable = opaque(b"s", b"string")
    if packed:
        data, variable = deflated(data), deflated(variable)
    with opened(with_classes(tmp_path, variable, data)) as bundle:
        assert bundle.names == ["s", "s.missing"]
        assert values(bundle["s"]).tolist() == [["a", ""], ["", "four"]]
        assert values(bundle["s.missing"]).tolist() == [[False, False], [True, False]]
        assert bundle["s"].meta.companions == {"s.missing": "nulls"}

    with pytest.raises(WouldLose, match="which of its values are missing"):
        raconvert.convert(f"{tmp_path}/x.mat#s", tmp_path / "s.npy")


@pytest.mark.parametrize("text", ["\ud800", "x\0y", "𝄞𝄞", "é" * 70_000])
def test_any_text_is_kept(text: str, tmp_path: Path) -> None:
    with strings(tmp_path, string_record(text, "b")) as bundle:
        assert values(bundle["s"]).tolist() == [[text], ["b"]]


def test_a_text_that_ends_with_nul_is_refused(tmp_path: Path) -> None:
    with (
        strings(tmp_path, string_record("a\0")) as bundle,
        pytest.raises(Unsupported, match="ends with NUL"),
    ):
        np.asarray(bundle["s"])


def test_big_endian_strings_are_refused(tmp_path: Path) -> None:
    """MATLAB had no strings any more on machines on which it wrote such files."""
    path = tmp_path / "x.mat"
    path.write_bytes((FIXTURES / "matio_v73.mat").read_bytes())
    with h5py.File(path, "r+") as file:
        found = [item for item in file["#refs#"].values()
                 if getattr(item, "dtype", None) == "<u8" and item.size == 12]  # fmt: skip
        for item in found:
            values_, attributes, name = item[()], dict(item.attrs), item.name
            order = [n for n, ref in enumerate(file["#subsystem#/MCOS"][0]) if file[ref] == item]
            del file[name]
            other = file.create_dataset(name, data=values_, dtype=">u8")
            other.attrs.update(attributes)
            for n in order:
                file["#subsystem#/MCOS"][0, n] = other.ref
    with opened(path) as bundle:
        assert isinstance(bundle["words"].problem, Unsupported)
        assert "big-endian" in str(bundle["words"].problem)


def test_many_strings_stream_in_small_blocks(tmp_path: Path) -> None:
    texts = [f"{n}" * (n % 7) for n in range(3000)]
    with strings(tmp_path, string_record(*texts)) as bundle:
        assert values(bundle["s"]).reshape(-1).tolist() == texts


def test_one_long_string_does_not_widen_a_million(tmp_path: Path) -> None:
    record = string_record("x" * 5000, *[""] * 60_000)
    data = subsystem(classes_data(string_list(), uint64s(record)))
    with opened(with_classes(tmp_path, X + opaque(b"s", b"string"), data)) as bundle:
        problem = bundle["s"].problem
        assert isinstance(problem, TooLarge)
        assert "60001 strings of variable length, 20000 bytes wide" in str(problem)


# --- times --------------------------------------------------------------------------------------


def times(
    tmp_path: Path, cls: str, stored: list[complex], *, zone: str = "", **options: Any
) -> Bundle:
    """A file with one datetime or duration; `stored` are milliseconds."""
    name = b"data" if cls == "datetime" else b"millis"
    count = len(stored)
    parts = [doubles(*[one.real for one in stored])]
    if any(isinstance(one, complex) for one in stored):
        parts.append(doubles(*[one.imag for one in stored]))
    flags = 0x800 if len(parts) == 2 else 0
    value = matrix(6, (count, 1), b"", *parts, flags=flags)
    text = matrix(4, (1, len(zone)), b"", element(16, zone.encode()))
    head = listed([name, cls.encode(), b"tz"], [2], [[1, 0, 1]], [[2, 1, 1, 0, 3, 1, 1]])
    data = subsystem(classes_data(head, value, text))
    return opened(with_classes(tmp_path, opaque(b"t", cls.encode()), data), **options)


T = 1743508800000.0  # 2025-04-01T12:00
PAIR = complex(1743508800123.4568, 1743508800123.456789 - 1743508800123.4568)


def pair(nanoseconds: int) -> complex:
    """A time as MATLAB keeps it: the double next to it, and the rest."""
    from fractions import Fraction

    exact = Fraction(nanoseconds, 1_000_000)
    real = float(exact)
    return complex(real, float(exact - Fraction(real)))


# Stored milliseconds -> dtype, counts (None: NaT)
EXACT: dict[str, tuple[str, list[complex], str, list[int | None]]] = {
    "whole": ("datetime", [T, -1.0], "M8[ms]", [1743508800000, -1]),
    "nothing": ("datetime", [], "M8[ms]", []),
    "not_a_time": ("datetime", [np.nan, T], "M8[ms]", [None, 1743508800000]),
    "one_part_of_microseconds": (
        "datetime", [1743508800123.456, T], "M8[us]", [1743508800123456, 1743508800000000]),
    "two_parts_of_nanoseconds": (
        "datetime", [pair(1743508800123456789), T], "M8[ns]",
        [1743508800123456789, 1743508800000000000]),
    "before_1970": ("datetime", [pair(-1743508800123456789)], "M8[ns]", [-1743508800123456789]),
    "the_year_10000": ("datetime", [253402300800000.0], "M8[ms]", [253402300800000]),
    "duration": ("duration", [0.1, 90_000.0], "m8[us]", [100, 90_000_000]),
    "short_duration": ("duration", [1e-6], "m8[ns]", [1]),
    "long_duration": ("duration", [1e15], "m8[ms]", [10**15]),
}  # fmt: skip


@every("name", EXACT)
def test_times_arrive_in_a_unit_that_holds_them(name: str, tmp_path: Path) -> None:
    cls, stored, dtype, ticks = EXACT[name]
    with times(tmp_path, cls, stored) as bundle:
        found = values(bundle["t"])
    assert found.dtype == f"<{dtype}"
    nat = np.iinfo("i8").min
    assert found.reshape(-1).view("i8").tolist() == [nat if n is None else n for n in ticks]


INEXACT: dict[str, tuple[str, list[complex]]] = {
    "a_third_of_a_second": ("duration", [1000 / 3]),
    "infinite": ("duration", [np.inf]),
    "infinite_time": ("datetime", [-np.inf, T]),
    "a_fraction_of_a_nanosecond": ("datetime", [complex(T, 2.5e-7)]),
    "parts_that_are_no_sum": ("datetime", [complex(T, 123.0)]),
    "no_first_part": ("datetime", [complex(0, 1e-9)]),
    "too_far_for_nanoseconds": ("datetime", [pair(10**19 + 1)]),
}


@every("name", INEXACT)
def test_times_that_no_unit_holds_stay_milliseconds(name: str, tmp_path: Path) -> None:
    cls, stored = INEXACT[name]
    with times(tmp_path, cls, stored) as bundle:
        found = values(bundle["t"]).reshape(-1)
        assert found.tolist() == stored
        since = "milliseconds since 1970-01-01 00:00:00"
        assert bundle["t"].meta.units == (since if cls == "datetime" else "ms")
        assert "that no unit from ms to ns holds exactly" in bundle.notes[0]
        assert "times" in bundle.notes[0]


def test_nearest_rounds_and_says_so(tmp_path: Path) -> None:
    with times(tmp_path, "duration", [1000 / 3], times="nearest") as bundle:
        assert values(bundle["t"]).view("i8").tolist() == [[333333333]]
        assert bundle.notes == ["'t': times were rounded to ns"]
    with times(tmp_path, "duration", [np.inf], times="nearest") as bundle:
        assert values(bundle["t"]).tolist() == [[np.inf]]
    with times(tmp_path, "duration", [5.0], times="milliseconds") as bundle:
        assert values(bundle["t"]).tolist() == [[5.0]]
        assert bundle["t"].meta.units == "ms"
        assert not bundle.notes


def test_zones_are_named_and_leap_seconds_are_not_counted(tmp_path: Path) -> None:
    with times(tmp_path, "datetime", [T], zone="America/New_York") as bundle:
        assert values(bundle["t"]).tolist()[0][0].isoformat() == "2025-04-01T12:00:00"
        assert bundle["t"].meta.attributes == {"time_zone": "America/New_York"}
    with times(tmp_path, "datetime", [T], zone="UTCLeapSeconds") as bundle:
        assert values(bundle["t"]).dtype == "f8"
        assert "in the zone UTCLeapSeconds" in bundle.notes[0]


def test_every_nanosecond_is_exact_and_no_other_time_is() -> None:
    """Random times: those of MATLAB's form are found, moved ones are not."""
    random = np.random.default_rng(7)
    ticks = random.integers(-(1 << 61), 1 << 61, 2000)
    stored = np.array([pair(int(n)) for n in ticks])
    found, ok = counts(stored, "ns")
    assert ok.all()
    assert np.array_equal(found, ticks)
    moved = stored + 1j * 1e-10  # a tenth of a picosecond
    assert not counts(moved[stored.imag != 0], "ns")[1].any()
    assert not counts(stored.real, "us")[1].all()


# --- other classes ------------------------------------------------------------------------------


def test_classes_of_users_are_named_and_left_out(tmp_path: Path) -> None:
    data = subsystem(classes_data(string_list(), uint64s(string_record("a"))))
    variables = opaque(b"a", b"Ship") + X + opaque(b"s", b"string")
    with opened(with_classes(tmp_path, variables, data)) as bundle:
        assert bundle.names == ["x", "s"]
        assert bundle.notes == ["variable 'a' of class Ship was left out: it is not an array"]


def table_file(tmp_path: Path, *columns: bytes, rows: float = 2, **more: Any) -> Path:
    names = [b"data", b"varnames", b"nrows", b"table", b"any", b"string"]
    count = more.get("names", len(columns))
    cells = [
        matrix(1, (1, len(columns)), b"", *columns),
        matrix(1, (1, count), b"", *(
            matrix(4, (1, 2), b"", element(16, b"v%d" % n)) for n in range(count))),
        matrix(6, (1, 1), b"", doubles(rows)),
        uint64s(string_record("a", "b")),
    ]  # fmt: skip
    head = listed(
        names, [4, 6], [[1, 0, 1], [2, 1, 0]], [[3, 1, 1, 0, 2, 1, 1, 3, 1, 2]], [[1, 5, 1, 3]]
    )
    data = subsystem(classes_data(head, *cells))
    return with_classes(tmp_path, opaque(b"t", b"table"), data)


COLUMN = matrix(6, (2, 1), b"", doubles(1, 2))
STRING = matrix(13, (6, 1), b"", numbers(MAGIC, 2, 1, 1, 2, 2))
SELF = matrix(13, (6, 1), b"", numbers(MAGIC, 2, 1, 1, 1, 1))


def test_columns_with_text_and_numbers(tmp_path: Path) -> None:
    word = matrix(4, (1, 1), b"", element(16, b"w"))
    nothing = matrix(4, (0, 0), b"", element(16, b""))
    wide = matrix(6, (2, 2), b"", doubles(1, 2, 3, 4))
    mixed = matrix(1, (2, 1), b"", word, COLUMN)
    path = table_file(tmp_path, COLUMN, STRING, matrix(1, (2, 1), b"", word, nothing), wide, mixed)
    with opened(path) as bundle:
        found = {array.name: values(array).tolist() for array in bundle.arrays}
    assert found == {
        "t/v0": [1, 2], "t/v1": ["a", "b"], "t/v2": ["w", ""], "t/v3": [[1, 3], [2, 4]],
        "t/v4/1": ["w"], "t/v4/2": [[1], [2]],
    }  # fmt: skip


def test_a_damaged_column_hides_none_of_the_others(tmp_path: Path) -> None:
    short = matrix(6, (3, 1), b"", doubles(1, 2, 3))
    with opened(table_file(tmp_path, COLUMN, short, SELF, STRING)) as bundle:
        assert values(bundle["t/v0"]).tolist() == [1, 2]
        assert values(bundle["t/v3"]).tolist() == ["a", "b"]
        assert "has a variable 't/v1' with another number of rows" in str(bundle["t/v1"].problem)
        assert "an object lies inside itself" in str(bundle["t/v2"].problem)


def test_numbers_that_begin_as_a_reference_are_numbers(tmp_path: Path) -> None:
    column = matrix(13, (2, 1), b"", numbers(MAGIC, 7))
    with opened(table_file(tmp_path, column)) as bundle:
        assert values(bundle["t/v0"]).tolist() == [MAGIC, 7]


@pytest.mark.parametrize("target", ["x.h5", "x.npz", "x.zarr", "out/", "x.tar", "y.mat"])
@pytest.mark.parametrize("name", FILES)
def test_conversions_keep_every_value(name: str, target: str, tmp_path: Path) -> None:
    source = str(FIXTURES / name)
    allow = ["dtype", "names"] if target == "y.mat" else []
    report = raconvert.convert(source, f"{tmp_path}/{target}", allow=allow)
    assert len(report.arrays) == len(VALUES)
    with raconvert.open(f"{tmp_path}/{target}") as bundle:
        for path, expected in VALUES.items():
            found = np.asarray(bundle[path])
            if target != "y.mat":
                is_time = expected.dtype.kind in "mM"
                assert np.array_equal(found, expected, equal_nan=is_time), path
            elif expected.dtype.kind in "mM":
                assert found.reshape(-1).tolist() == expected.reshape(-1).view("i8").tolist()
            else:
                assert found.reshape(-1).tolist() == expected.reshape(-1).tolist()


def test_tables_are_written_as_structs_and_the_report_says_so(tmp_path: Path) -> None:
    source = FIXTURES / "matio_v7.mat"
    reason = "objects are written as structs: 'table' (table)"
    report = raconvert.convert(f"{source}#table/site", tmp_path / "x.mat")
    assert [fit.reason for fit in report.equivalent if "structs" in fit.reason] == [reason]
    report = raconvert.convert(f"{source}#words", tmp_path / "y.mat")
    assert not any("structs" in fit.reason for fit in report.equivalent)


# --- hostile files ------------------------------------------------------------------------------

VALUE = uint64s(string_record("a"))
NAMES = [b"any", b"string"]
SAVED = [[1, 1, 1, 0]]


def hostile(head: bytes, *cells: bytes, **more: Any) -> bytes:
    return subsystem(classes_data(head, *(cells or (VALUE,))), **more)


def raw_record(*values: int) -> bytes:
    return hostile(string_list(), uint64s(struct.pack(f"<{len(values)}Q", *values)))


# What is wrong -> the data of classes, the error, words of its message
HOSTILE: dict[str, tuple[Callable[[], bytes], type[RaconvertError], str]] = {
    "no_data": (lambda: b"", Corrupt, "lies outside the file"),
    "numbers_for_data": (lambda: matrix(6, (1, 1), b"", doubles(1)), Corrupt, "is not bytes"),
    "data_too_short": (
        lambda: matrix(9, (1, 3), b"", element(2, b"abc")), Corrupt, "is too short"),
    "data_without_a_byte_order": (
        lambda: hostile(string_list(), mark=b"XX"), Corrupt, "has no byte order"),
    "data_of_another_class": (
        lambda: hostile(string_list(), cls=b"Wrapper"), Corrupt, "has no objects"),
    "data_that_is_no_struct": (
        lambda: matrix(9, (1, 24), b"", element(2, b"\0\1IM" + bytes(4) + doubles(1))),
        Corrupt, "is not a struct"),
    "data_cut_off": (lambda: hostile(string_list())[:-40], Corrupt, "variable is cut off"),
    "data_that_does_not_inflate": (
        lambda: element(15, b"no zlib data here"), Corrupt, "cannot be inflated"),
    "data_of_more_cells_than_there_are": (
        lambda: subsystem(matrix(1, (10**6, 1), b"")), Corrupt, "more members than there are"),
    "data_that_is_no_cell": (
        lambda: subsystem(matrix(6, (1, 1), b"", doubles(1))), Corrupt, "is not a cell"),
    "no_cells": (lambda: subsystem(matrix(1, (0, 0), b"")), Corrupt, "is empty"),
    "list_too_short": (lambda: hostile(b"\4\0\0\0"), Corrupt, "is too short"),
    "list_of_doubles": (
        lambda: subsystem(matrix(1, (1, 1), b"", matrix(6, (1, 1), b"", doubles(1)))),
        Corrupt, "is not uint8, or too long"),
    "list_of_an_unknown_version": (
        lambda: hostile(listed(NAMES, [2], [[1, 1, 0]], [], SAVED, version=9)),
        Unsupported, "unknown version"),
    "list_with_offsets_going_back": (
        lambda: hostile(listed(NAMES, [2], [[1, 1, 0]], [], SAVED, offsets={2: 8})),
        Corrupt, "at impossible offsets"),
    "list_with_offsets_beyond_it": (
        lambda: hostile(listed(NAMES, [2], [[1, 1, 0]], [], SAVED, offsets={4: 1 << 30})),
        Corrupt, "at impossible offsets"),
    "list_with_negative_offsets": (
        lambda: hostile(listed(NAMES, [2], [[1, 1, 0]], [], SAVED, offsets={0: -8})),
        Corrupt, "at impossible offsets"),
    "class_beyond_the_list": (
        lambda: hostile(listed(NAMES, [], [[1, 1, 0]], [], SAVED)), Corrupt, "has no class 1"),
    "name_beyond_the_list": (
        lambda: hostile(listed(NAMES, [77], [[1, 1, 0]], [], SAVED)), Corrupt, "has no name 77"),
    "fewer_names_than_used": (
        lambda: hostile(listed(NAMES, [2], [[1, 1, 0]], [], SAVED, count=1)), Corrupt,
        "has no name 2"),
    "object_beyond_the_list": (
        lambda: hostile(listed(NAMES, [2], [], [], SAVED)), Corrupt, "has no object 1"),
    "object_of_another_class": (
        lambda: hostile(listed(NAMES, [2, 2], [[2, 1, 0]], [], SAVED)), Corrupt,
        "has object 1 in another class"),
    "class_that_is_not_that_of_the_variable": (
        lambda: hostile(listed([b"any", b"table"], [2], [[1, 1, 0]], [], SAVED)), Corrupt,
        "has another class than the variable"),
    "block_beyond_the_list": (
        lambda: hostile(listed(NAMES, [2], [[1, 9, 0]], [], SAVED)), Corrupt, "has no block 9"),
    "block_with_a_huge_count": (
        lambda: hostile(listed(NAMES, [2], [[1, 1, 0]], [], [[1 << 30, 1, 1, 0]])), Corrupt,
        "has no block 1"),
    "block_with_a_negative_count": (
        lambda: hostile(listed(NAMES, [2], [[1, 1, 0]], [], [[-5, 1, 1, 0]])), Corrupt,
        "has no block 1"),
    "value_beyond_the_cells": (
        lambda: hostile(listed(NAMES, [2], [[1, 1, 0]], [], [[1, 1, 1, 99]])), Corrupt,
        "has no value 99"),
    "value_before_the_cells": (
        lambda: hostile(listed(NAMES, [2], [[1, 1, 0]], [], [[1, 1, 1, -2]])), Corrupt,
        "has no value -2"),
    "string_without_its_text": (
        lambda: hostile(listed(NAMES, [2], [[1, 1, 0]], [], [[0]])), Corrupt, "has no text"),
    "string_of_doubles": (
        lambda: hostile(string_list(), matrix(6, (1, 1), b"", doubles(1))), Corrupt,
        "not stored as uint64"),
    "string_of_a_cell": (
        lambda: hostile(string_list(), matrix(1, (1, 1), b"", VALUE)), Corrupt,
        "that is not an array"),
    "string_of_an_unknown_version": (
        lambda: raw_record(2, 2, 1, 1, 0), Unsupported, "unknown version"),
    "string_of_too_many_axes": (
        lambda: raw_record(1, 1 << 40, 1, 1), Corrupt, "impossible number of dims"),
    "string_of_huge_dims": (
        lambda: raw_record(1, 2, 1 << 40, 1 << 40), Corrupt, "impossible dims"),
    "more_strings_than_lengths": (
        lambda: raw_record(1, 2, 5, 5, 1), Corrupt, "fewer lengths of strings"),
    "very_many_strings": (
        lambda: raw_record(1, 2, 1 << 40, 1, 1), TooLarge, "strings of 's' needs"),
    "string_longer_than_its_data": (
        lambda: raw_record(1, 2, 1, 1, 1 << 40, 0), Corrupt, "longer than their data"),
    "lengths_that_overflow": (
        lambda: raw_record(1, 2, 2, 1, (1 << 64) - 2, 3, 0), Corrupt, "longer than their data"),
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
@every("name", HOSTILE)
def test_hostile_data_of_classes_is_refused_by_cause(
    name: str, packed: bool, tmp_path: Path
) -> None:
    """The variable is named, and all others are read."""
    make, error, words = HOSTILE[name]
    data = make()
    if packed and name not in ("no_data", "data_cut_off", "data_that_does_not_inflate"):
        data = deflated(data)
    variables = X + opaque(b"s", b"string") + opaque(b"s2", b"string")
    path = with_classes(tmp_path, variables, data)

    with opened(path) as bundle:
        assert bundle["x"].problem is None
        for variable in ("s", "s2"):
            problem = bundle[variable].problem
            assert type(problem) is error, problem
            assert words.replace("'s'", f"'{variable}'") in str(problem)
            assert f"'{variable}'" in str(problem)


REFERENCES: dict[str, tuple[int, ...]] = {
    "of_other_numbers": (1, 2, 3, 4, 5, 6),
    "of_a_huge_rank": (MAGIC, 1 << 31, 1, 1, 1, 1),
    "of_nothing": (MAGIC,),
    "of_many_objects": (MAGIC, 2, 2, 1, 1, 1, 1),
}


@every("name", REFERENCES)
def test_references_that_are_none_are_left_out(name: str, tmp_path: Path) -> None:
    data = hostile(string_list())
    variables = X + opaque(b"s", b"string", *REFERENCES[name])
    with opened(with_classes(tmp_path, variables, data)) as bundle:
        assert bundle.names == ["x"]
        assert "'s' of class string" in bundle.notes[0]


def test_places_of_the_data_that_cannot_be(tmp_path: Path) -> None:
    variables = X + opaque(b"s", b"string")
    for place in (8, 127, 1 << 62, (1 << 64) - 8):
        path = with_classes(tmp_path, variables, hostile(string_list()), place=place)
        with opened(path) as bundle:
            assert isinstance(bundle["s"].problem, Corrupt)


def test_objects_in_each_other_are_used_a_bounded_number_of_times(tmp_path: Path) -> None:
    """Dictionaries of which each refers to the next one three times: 3^12 uses in a small file."""
    count = 12
    names = [b"data", b"dictionary", b"Key"]
    blocks_, cells = [], []
    for number in range(count):
        following = number + 2 if number + 1 < count else 1
        inner = matrix(13, (6, 1), b"", numbers(MAGIC, 2, 1, 1, following, 1))
        if number + 1 == count:
            inner = matrix(6, (1, 1), b"", doubles(1))
        keys = matrix(1, (1, 3), b"", *[inner] * 3)
        cells.append(matrix(2, (1, 1), b"", fields(b"Key"), keys))
        blocks_.append([1, 1, 1, number])
    head = listed(names, [2], [[1, 0, n + 1] for n in range(count)], blocks_)
    data = subsystem(classes_data(head, *cells))
    path = with_classes(tmp_path, X + opaque(b"d", b"dictionary"), data)
    with opened(path) as bundle:
        assert bundle["x"].problem is None
        assert "used too often" in str(bundle["d"].problem)


def test_default_values_stand_for_what_is_not_saved(tmp_path: Path) -> None:
    zero = matrix(6, (1, 1), b"", doubles(0))
    struct_ = matrix(2, (1, 1), b"", fields(b"millis"), zero)
    nothing = matrix(1, (0, 0), b"")
    defaults = matrix(1, (2, 1), b"", nothing, struct_)
    head = listed([b"millis", b"duration"], [2], [[1, 0, 1]], [[0]])
    data = subsystem(classes_data(head, zero, defaults=defaults))
    with opened(with_classes(tmp_path, opaque(b"t", b"duration"), data)) as bundle:
        assert values(bundle["t"]).view("i8").tolist() == [[0]]


# --- v7.3 ---------------------------------------------------------------------------------------


def _replaced(file: h5py.File, value: Any) -> None:
    """Put numbers in the place of the cells, or (a shape) references that lead nowhere."""
    del file["#subsystem#/MCOS"]
    if isinstance(value, tuple):
        file.create_dataset("#subsystem#/MCOS", value, h5py.ref_dtype)
    else:
        file["#subsystem#/MCOS"] = value


def _first(file: h5py.File, value: Any) -> None:
    """Put another value in the place of the list of objects."""
    cells = file["#subsystem#/MCOS"]
    other = file.create_dataset("#refs#/other", data=value)
    other.attrs["MATLAB_class"] = np.bytes_("uint8")
    cells[0, 0] = other.ref


def _itself(file: h5py.File) -> None:
    cells = file["#subsystem#/MCOS"]
    for index in range(1, cells.shape[1]):
        cells[0, index] = cells.ref


DAMAGED: dict[str, Callable[[h5py.File], object]] = {
    "no_subsystem": lambda file: file.pop("#subsystem#"),
    "subsystem_without_cells": lambda file: file["#subsystem#"].pop("MCOS"),
    "subsystem_of_numbers": lambda file: _replaced(file, np.zeros((1, 9))),
    "subsystem_that_is_a_group": lambda file: (
        file["#subsystem#"].pop("MCOS"), file.create_group("#subsystem#/MCOS")),
    "null_references": lambda file: _replaced(file, (1, 9)),
    "no_references": lambda file: _replaced(file, (0, 9)),
    "list_of_zeros": lambda file: _first(file, np.zeros((1, 400), "u1")),
    "list_of_noise": lambda file: _first(file, np.full((1, 400), 255, "u1")),
    "list_that_is_short": lambda file: _first(file, np.full((1, 4), 4, "u1")),
    "values_that_are_the_cells_themselves": _itself,
}  # fmt: skip


@every("name", DAMAGED)
def test_damaged_subsystems_of_v73(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    path.write_bytes((FIXTURES / "matio_v73.mat").read_bytes())
    with h5py.File(path, "r+") as file:
        DAMAGED[name](file)
        file.create_dataset("x", data=[[1.5]]).attrs["MATLAB_class"] = np.bytes_("double")
    with opened(path) as bundle:
        assert values(bundle["x"]).tolist() == [[1.5]]
        assert {array.name for array in bundle.arrays} >= {"words", "when", "kind", "table"}
        for array in bundle.arrays:
            if array.name != "x":
                assert isinstance(array.problem, (Corrupt, Unsupported)), array.name


def flips(data: bytes) -> Iterator[bytes]:
    """Copies of which a byte differs, at places that are spread over the file."""
    random = np.random.default_rng(3)
    for place in random.integers(128, len(data), 300):
        other = bytearray(data)
        other[place] ^= 1 << int(random.integers(8))
        yield bytes(other)


@pytest.mark.parametrize("name", FILES[:2])
def test_flipped_bytes_raise_nothing_else(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    for data in flips((FIXTURES / name).read_bytes()):
        path.write_bytes(data)
        try:
            with opened(path) as bundle:
                for array in bundle.arrays:
                    try:
                        for _ in blocks(array):
                            pass
                    except RaconvertError:
                        pass
        except RaconvertError:
            pass
