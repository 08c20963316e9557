"""XLSX: what openpyxl and pandas read and write, an economist's day, and what must be refused."""

from __future__ import annotations

import datetime
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import openpyxl
import pandas as pd
import pytest
from cases import every
from pairs import quiet

import raconvert
from raconvert import Array, Bundle, Metadata
from raconvert.errors import (
    Corrupt,
    RaconvertError,
    TooLarge,
    Unsafe,
    Unsupported,
    UsageError,
    WouldLose,
)
from raconvert.files.limits import Limits
from raconvert.files.source import Source
from raconvert.plugin import Axis
from raconvert.registry import by_name, load

XLSX = load(by_name("xlsx"))


def book(path: Path, *sheets: tuple[str, list[list[Any]]]) -> Path:
    """Write a workbook by openpyxl."""
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, rows in sheets:
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path


def arrays(path: Path, **options: Any) -> dict[str, np.ndarray]:
    with raconvert.open_bundle(path, in_opts=options) as bundle:
        return {array.name: np.array(array) for array in bundle.arrays}


def rows_of(path: Path, sheet: str | None = None) -> list[tuple[Any, ...]]:
    made = openpyxl.load_workbook(path)
    return list((made[sheet] if sheet else made.worksheets[0]).values)


# Writing ---------------------------------------------------------------------------------------------

AXES = [Axis("COMM", labels=["steel", "food"]), Axis("REG", labels=["US", "EU", "ROW"]),
        Axis("YEAR", labels=[2020, 2025])]  # fmt: skip
TRADE = np.arange(12, dtype="f8").reshape(2, 3, 2) / 8


def test_a_labelled_array_is_a_sheet_and_comes_back(tmp_path: Path) -> None:
    meta = Metadata("exports", units="USD", axes=AXES, attributes={"by": ["hand", 1.5]})
    raconvert.write(tmp_path / "x.xlsx", TRADE, meta=meta)
    rows = rows_of(tmp_path / "x.xlsx", "x")

    assert rows[:3] == [
        ("COMM", "REG", "YEAR", "x"),
        ("steel", "US", 2020, 0),
        ("steel", "US", 2025, 0.125),
    ]
    frame = pd.read_excel(tmp_path / "x.xlsx")
    assert np.array_equal(frame["x"].to_numpy().reshape(2, 3, 2), TRADE)
    with raconvert.open_bundle(tmp_path / "x.xlsx") as bundle:
        (array,) = bundle.arrays
        assert array.meta == meta
        assert np.array_equal(array, TRADE)


def test_wide_and_back(tmp_path: Path) -> None:
    meta = Metadata("exports", axes=AXES)
    raconvert.write(tmp_path / "x.xlsx", TRADE, meta=meta, out_opts={"wide": "REG"})
    assert rows_of(tmp_path / "x.xlsx")[:2] == [
        ("COMM", "YEAR", "US", "EU", "ROW"),
        ("steel", 2020, 0, 0.25, 0.5),
    ]
    with raconvert.open_bundle(tmp_path / "x.xlsx") as bundle:
        (array,) = bundle.arrays
        assert np.array_equal(array, TRADE)
        assert array.meta == meta


def test_arrays_of_different_axes_are_sheets(tmp_path: Path) -> None:
    made = [
        Array(TRADE, name="trade/2020", meta=Metadata(axes=AXES)),
        Array(np.array([1.5, 2.5]), name="trade?2020"),
        Array(np.array([True, False]), name="flag"),
        Array(np.array(7.5), name="x" * 40),
    ]
    raconvert.write(tmp_path / "x.xlsx", Bundle(made))
    names = openpyxl.load_workbook(tmp_path / "x.xlsx").sheetnames

    assert names == ["trade_2020", "trade_2020_2", "x" * 31]
    found = arrays(tmp_path / "x.xlsx")
    assert list(found) == [array.name for array in sorted(made, key=lambda a: [*"0123"].index("0"))]
    for array in made:
        assert found[array.name].tolist() == np.asarray(array).tolist()


@every(
    "kind",
    [
        "f8",
        "f4",
        "f2",
        "i4",
        "u4",
        "i1",
        "?",
        "M8[ns]",
        "M8[ms]",
        "M8[D]",
        "M8[s]",
        "m8[us]",
        "S4",
        "U3",
    ],
)
def test_values_come_back_with_every_bit(kind: str, tmp_path: Path) -> None:
    dtype, rng = np.dtype(kind), np.random.default_rng(7)
    values = np.frombuffer(rng.bytes(200 * dtype.itemsize), "u1").view(f"V{dtype.itemsize}")
    values = values.view(dtype).copy() if dtype.kind not in "?bUS" else values
    if kind == "?":
        values = rng.integers(0, 2, 200).astype("?")
    if dtype.kind in "US":
        values = np.array(["a", " b", "é\n", "", "_x0041_", "<&>", "1", "a\0b"] * 9).astype(dtype) \
            if dtype.kind == "U" else np.array([b"a\xff", b"\0b", b"", b"xyzw"] * 9, dtype)  # fmt: skip
    if kind == "f8":
        values[:5] = [-0.0, np.nan, 5e-324, np.inf, 0.1]
    if dtype.kind == "M":
        values[:50] = (values[:50].view("i8") % 10**11).view(dtype) if kind != "M8[D]" else (
            values[:50].view("i8") % 20000).view(dtype)  # fmt: skip
        values[3] = "NaT"
    raconvert.write(tmp_path / "x.xlsx", values)
    back = arrays(tmp_path / "x.xlsx")["x"]

    assert back.dtype == dtype
    assert back.tobytes() == values.tobytes()


def test_numbers_and_dates_are_those_of_openpyxl(tmp_path: Path) -> None:
    values = np.random.default_rng(3).normal(size=500) * 10.0 ** np.arange(-250, 250)
    raconvert.write(tmp_path / "x.xlsx", values)
    assert [row[1] for row in rows_of(tmp_path / "x.xlsx")[1:]] == values.tolist()
    days = np.array(["1900-03-01", "1970-01-01", "2026-11-28", "9999-12-31"], "M8[D]")
    raconvert.write(tmp_path / "d.xlsx", days)
    cells = [row[1] for row in rows_of(tmp_path / "d.xlsx")[1:]]
    assert [cell.date() for cell in cells] == days.tolist()
    times = np.array(["2026-11-28T12:34:56.789", "1950-01-01T00:00:00.001"], "M8[ms]")
    raconvert.write(tmp_path / "t.xlsx", times)
    cells = [row[1] for row in rows_of(tmp_path / "t.xlsx")[1:]]
    assert [
        cell.replace(microsecond=round(cell.microsecond, -3)) for cell in cells
    ] == times.tolist()
    raconvert.write(tmp_path / "b.xlsx", np.zeros(2, ml_dtypes.bfloat16) + 1)
    assert arrays(tmp_path / "b.xlsx")["b"].dtype == ml_dtypes.bfloat16


def test_integers_that_no_double_is(tmp_path: Path) -> None:
    large = np.array([1, (1 << 53) + 1, -(1 << 63)])
    with pytest.raises(WouldLose, match="integers=checked|integers"):
        raconvert.write(tmp_path / "x.xlsx", large)
    with pytest.raises(WouldLose, match="9007199254740993.*index \\[1\\]"):
        raconvert.write(tmp_path / "x.xlsx", large, out_opts={"integers": "checked"})
    with pytest.raises(RaconvertError, match="9007199254740993"):
        raconvert.write(tmp_path / "x.xlsx", large, dtype="float64")
    assert not list(tmp_path.iterdir())
    raconvert.write(tmp_path / "x.xlsx", large, out_opts={"integers": "text"})
    assert arrays(tmp_path / "x.xlsx")["x"].tolist() == large.tolist()
    assert rows_of(tmp_path / "x.xlsx")[2] == (1, "9007199254740993")
    small = np.array([5, -(1 << 53)])
    raconvert.write(tmp_path / "y.xlsx", small, out_opts={"integers": "checked"})
    back = arrays(tmp_path / "y.xlsx")["y"]
    assert back.dtype == np.dtype("i8")
    assert back.tolist() == small.tolist()


def test_masks_are_empty_cells(tmp_path: Path) -> None:
    meta = Metadata(formats={"table": {"companions": {"x.null": "nulls"}}})
    made = [Array(np.array([1.5, np.nan, 7]), name="x", meta=meta),
            Array(np.array([False, False, True]), name="x.null")]  # fmt: skip
    raconvert.write(tmp_path / "x.xlsx", Bundle(made))
    assert [row[1] for row in rows_of(tmp_path / "x.xlsx")] == ["x", 1.5, "nan", None]
    found = arrays(tmp_path / "x.xlsx")
    assert found["x.null"].tolist() == [False, False, True]
    assert np.isnan(found["x"]).tolist() == [False, True, True]


# An economist's day ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wide", ["", "REG"])
def test_har_to_xlsx_edited_and_back(wide: str, tmp_path: Path) -> None:
    harpy = pytest.importorskip("harpy")
    regions = Axis("REG", labels=["USA", "EU", "ROW"])
    goods, dest = Axis("COMM", labels=["steel", "food"]), Axis("DEST", labels=regions.labels)
    trade = np.arange(18, dtype="f4").reshape(2, 3, 3) / 3
    made = [Array(trade, name="TRAD", meta=Metadata("exports", axes=[goods, regions, dest])),
            Array(np.array([7, 5, 3], "f4"), name="INCM", meta=Metadata("income", axes=[regions]))]  # fmt: skip
    if wide:
        made = made[:1]
    raconvert.write(tmp_path / "base.har", Bundle(made))
    out = {"wide": wide} if wide else {}
    report = raconvert.convert(tmp_path / "base.har", tmp_path / "base.xlsx", out_opts=out)
    said = {fit.reason for fit in report.equivalent}
    assert said == {"float32 is a double for other programs"}

    sheets = openpyxl.load_workbook(tmp_path / "base.xlsx")
    header, *rows = sheets["TRAD"].iter_rows()
    names = [cell.value for cell in header]
    for row in rows:
        at = dict(zip(names, row, strict=True))
        if at["COMM"].value == "food" and at["DEST"].value == "ROW":
            if wide:
                at["EU"].value = 99.5
            elif at["REG"].value == "EU":
                at["TRAD"].value = 99.5
    sheets.save(tmp_path / "edited.xlsx")
    raconvert.convert(tmp_path / "edited.xlsx", tmp_path / "back.har")

    expected = trade.copy()
    expected[1, 1, 2] = 99.5
    with quiet():
        file = harpy.HarFileObj.loadFromDisk(str(tmp_path / "back.har"))
    found = file.getHeaderArrayObj("TRAD")
    assert np.array_equal(found["array"], expected)
    assert [(one["name"], one["dim_desc"]) for one in found["sets"]] == [
        ("COMM", ["steel", "food"]), ("REG", ["USA", "EU", "ROW"]), ("DEST", ["USA", "EU", "ROW"]),
    ]  # fmt: skip
    assert found["long_name"].strip() == "exports"


def test_a_number_that_is_no_float32_is_said(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.xlsx", np.array([1.5, 2.5], "f4"))
    sheets = openpyxl.load_workbook(tmp_path / "x.xlsx")
    sheets["x"]["B2"].value = 0.1
    sheets.save(tmp_path / "y.xlsx")
    with raconvert.open_bundle(tmp_path / "y.xlsx") as bundle:
        assert bundle.arrays[0].dtype == np.dtype("f8")
        assert np.asarray(bundle.arrays[0]).tolist() == [0.1, 2.5]
        assert any("not float32 any more" in note for note in bundle.notes)


# Reading what others write ---------------------------------------------------------------------------


def test_cells_of_every_kind(tmp_path: Path) -> None:
    when = datetime.datetime(2026, 11, 28, 12, 30)
    rows = [
        ["n", "x", "t", "b", "d", "w", "s", "mixed"],
        [1, 1.5, "a", True, datetime.date(2026, 1, 31), when, datetime.timedelta(hours=30), 1],
        [2, 2, "é\n", False, datetime.date(1900, 1, 1), when, datetime.timedelta(seconds=1.5), "x"],
        [None, 3, "", True, datetime.date(2026, 2, 1), when, datetime.timedelta(0), True],
    ]
    path = book(tmp_path / "x.xlsx", ("S", rows))
    found = arrays(path, layout="columns")

    assert found["n"].tolist() == [1, 2, 0]
    assert found["n.null"].tolist() == [False, False, True]
    assert found["x"].dtype == np.dtype("f8")
    assert found["b"].dtype == np.dtype("?")
    assert found["d"].astype("M8[D]").tolist()[0] == datetime.date(2026, 1, 31)
    assert found["d"].astype("M8[D]").tolist()[1] == datetime.date(1900, 1, 1)
    assert found["w"].tolist() == [when] * 3
    assert found["s"].tolist() == [row[6] for row in rows[1:]]
    assert found["mixed"].tolist() == ["1", "x", "true"]


def test_pandas_frames(tmp_path: Path) -> None:
    frame = pd.DataFrame({"r": ["b", "b", "a", "a"], "y": [1, 2, 1, 2], "v": [1.5, 2.5, 3.5, 4.5]})
    frame.to_excel(tmp_path / "x.xlsx", index=False)
    with raconvert.open_bundle(tmp_path / "x.xlsx") as bundle:
        (array,) = bundle.arrays
        assert array.axes[0].labels == ("b", "a")
        assert np.asarray(array).tolist() == [[1.5, 2.5], [3.5, 4.5]]


def test_several_sheets_are_groups(tmp_path: Path) -> None:
    path = book(tmp_path / "x.xlsx", ("one", [["a", "b"], [1, 2], [3, 4.5]]), ("empty", []),
                ("two", [["r", "v"], ["x", 1], ["y", 2]]))  # fmt: skip
    found = arrays(path)
    assert list(found) == ["one", "two/v"]
    assert list(arrays(path, sheet="two")) == ["v"]
    with pytest.raises(UsageError, match="does not exist"):
        arrays(path, sheet="three")


def test_formulas_merged_cells_errors_and_hidden_sheets_are_named(tmp_path: Path) -> None:
    made = openpyxl.Workbook()
    sheet = made.active
    for row in (["a", "b", "c"], [1, 2, "=A2+B2"], [3, 4, "#N/A"], [5, 6, 7]):
        sheet.append(row)
    sheet["C3"].data_type = "e"
    sheet.merge_cells("A4:B4")
    other = made.create_sheet("more")
    other.append(["z"])
    other.append([1])
    other.sheet_state = "hidden"
    made.save(tmp_path / "x.xlsx")
    data = _with(tmp_path / "x.xlsx", "xl/worksheets/sheet1.xml",
                 lambda xml: xml.replace(b"<v></v>", b"<v>3</v>").replace(b"<v />", b"<v>3</v>"))  # fmt: skip
    (tmp_path / "x.xlsx").write_bytes(data)
    with raconvert.open_bundle(tmp_path / "x.xlsx", in_opts={"layout": "columns"}) as bundle:
        notes = " ".join(bundle.notes)
        for words in ("1 formulas are read as the values", "1 merged", "1 errors", "hidden"):
            assert words in notes
        assert np.asarray(bundle["Sheet/c"]).tolist()[0] == 3
        assert np.asarray(bundle["Sheet/c.null"]).tolist() == [False, True, False]
        assert np.asarray(bundle["Sheet/b.null"]).tolist() == [False, False, True]


def test_tables_begin_anywhere(tmp_path: Path) -> None:
    path = book(
        tmp_path / "x.xlsx",
        ("S", [[], [None, None, "a", "b"], [None, None, 1, 2], [None, None, 3, 4]]),
    )
    assert arrays(path, layout="columns")["b"].tolist() == [2, 4]


def test_headers_that_may_be_data_are_asked_for(tmp_path: Path) -> None:
    path = book(tmp_path / "x.xlsx", ("S", [["r", 2020, 2021], ["EU", 1.5, 2.5], ["US", 3.5, 4.5]]))
    with pytest.raises(UsageError, match="may be a header"):
        arrays(path)
    with raconvert.open_bundle(path, in_opts={"wide": "year"}) as bundle:
        assert bundle.arrays[0].axes[1].labels == (2020, 2021)
        assert np.asarray(bundle.arrays[0]).tolist() == [[1.5, 2.5], [3.5, 4.5]]
    path = book(tmp_path / "y.xlsx", ("S", [[1, 2], [3, 4]]))
    assert arrays(path)["S"].tolist() == [[1, 2], [3, 4]]


def test_dates_of_1904(tmp_path: Path) -> None:
    from openpyxl.utils.datetime import CALENDAR_MAC_1904

    made = openpyxl.Workbook()
    made.epoch = CALENDAR_MAC_1904
    made.active.append(["d"])
    made.active.append([datetime.datetime(2026, 1, 31)])
    made.save(tmp_path / "x.xlsx")
    assert arrays(tmp_path / "x.xlsx")["d"].astype("M8[D]").tolist() == [datetime.date(2026, 1, 31)]


# Hostile ---------------------------------------------------------------------------------------------


def _with(path: Path, member: str, change: Callable[[bytes], bytes | None]) -> bytes:
    """A package with another content of a member, or without it."""
    made = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        names = old.namelist()
        for name in [*names, *([member] if member not in names else [])]:
            data = old.read(name) if name in names else b""
            changed = change(data) if name == member else data
            if changed is not None:
                new.writestr(name, changed)
    return made.getvalue()


SHEET = "xl/worksheets/sheet1.xml"
MAIN = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
END = b"</sheetData></worksheet>"
LOL = (b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
       b'<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><worksheet>&c;</worksheet>')  # fmt: skip


def cells(*listed: bytes) -> Callable[[bytes], bytes]:
    return lambda _: MAIN + b"".join(listed) + END


HOSTILE: dict[str, tuple[str, Callable[[bytes], bytes | None], type[RaconvertError]]] = {
    "no workbook": ("xl/workbook.xml", lambda _: None, Unsupported),
    "no sheet": (SHEET, lambda _: None, Corrupt),
    "an empty sheet": (SHEET, cells(), Unsupported),
    "no XML": (SHEET, lambda _: b"hello", Corrupt),
    "XML cut off": (SHEET, lambda xml: xml[:-30], Corrupt),
    "entities": (SHEET, lambda _: LOL, Unsafe),
    "an external entity": (SHEET, lambda _: b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>', Unsafe),
    "entities in the workbook": ("xl/workbook.xml", lambda _: LOL, Unsafe),
    "entities in shared texts": ("xl/sharedStrings.xml", lambda _: LOL, Unsafe),
    "entities in styles": ("xl/styles.xml", lambda _: LOL, Unsafe),
    "entities in properties": ("docProps/custom.xml", lambda _: LOL, Unsafe),
    "a bomb of zeros": (SHEET, lambda _: bytes(400 << 20), TooLarge),
    "a bomb of cells": (SHEET, lambda _: MAIN + b"<row>" + b"<c><v>1</v></c>" * 12_000_000, TooLarge),
    "a bomb of shared texts": ("xl/sharedStrings.xml", lambda _: b"<sst>" + b"<si><t>x</t></si>" * 9_000_000, TooLarge),
    "a row beyond the last": (SHEET, cells(b'<row r="1048577"><c r="A1048577"><v>1</v></c></row>'), Corrupt),
    "a row of 2**63": (SHEET, cells(b'<row r="9223372036854775808"><c><v>1</v></c></row>'), Corrupt),
    "a column beyond the last": (SHEET, cells(b'<row r="1"><c r="XFE1"><v>1</v></c></row>'), Corrupt),
    "a cell at no place": (SHEET, cells(b'<row r="1"><c r="1A"><v>1</v></c></row>'), Corrupt),
    "corners of the largest sheet": (
        SHEET, cells(b'<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'), TooLarge,
    ),
    "a shared text that is absent": (SHEET, cells(b'<row r="1"><c r="A1" t="s"><v>5</v></c></row>'), Corrupt),
    "a shared text of -1": (SHEET, cells(b'<row r="1"><c r="A1" t="s"><v>-1</v></c></row>'), Corrupt),
    "an unknown type of cells": (SHEET, cells(b'<row r="1"><c r="A1" t="q"><v>5</v></c></row>'), Corrupt),
    "rows out of order": (
        SHEET, cells(b'<row r="5"><c r="A5"><v>1</v></c></row><row r="2"><c r="A2"><v>1</v></c></row>'), Corrupt,
    ),
    "a cell twice": (SHEET, cells(b'<row r="1"><c r="A1"><v>1</v></c><c r="A1"><v>2</v></c></row>'), Corrupt),
    "a million elements inside each other": (SHEET, lambda _: b"<a>" * 1_000_000, Corrupt),
    "a sheet that leads out": (
        "xl/_rels/workbook.xml.rels", lambda xml: xml.replace(b"worksheets/sheet1.xml", b"../../etc/passwd"), Corrupt,
    ),
}  # fmt: skip


@every("name", HOSTILE)
def test_hostile_files_are_refused(name: str, tmp_path: Path) -> None:
    member, change, kind = HOSTILE[name]
    good = book(tmp_path / "good.xlsx", ("S", [["a", "b"], [1, 2]]))
    path = tmp_path / "x.xlsx"
    path.write_bytes(_with(good, member, change))
    with pytest.raises(RaconvertError) as caught:
        XLSX.read(Source(str(path))).close()
    assert isinstance(caught.value, (kind, Corrupt) if kind is Unsupported else kind)
    assert "x.xlsx" in str(caught.value)


def test_other_packages_are_no_workbooks(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.docx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", "<w/>")
    assert XLSX.sniff(Source(str(tmp_path / "x.docx"))) == 0
    (tmp_path / "old.xlsx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(RaconvertError):
        raconvert.info(tmp_path / "old.xlsx")


def test_bounds_are_those_of_the_source(tmp_path: Path) -> None:
    path = book(tmp_path / "x.xlsx", ("S", [["a", "b"], [1, 2]]), ("T", [["a"], [1]]))
    for limits in (Limits(table_columns=1), Limits(structure_fields=1), Limits(memory=500)):
        with pytest.raises(TooLarge):
            XLSX.read(Source(str(path), limits=limits)).close()


def test_what_has_no_place_is_refused(tmp_path: Path) -> None:
    for values, words in ((np.zeros(2, "c8"), "complex64"), (np.zeros(2, "V3"), "V3"),
                          (np.zeros(1 << 20), "1,048,575 rows"), (np.zeros(2, "U40000"), "U40000"),
                          (np.zeros(2, "M8[7D]"), "7D")):  # fmt: skip
        with pytest.raises(WouldLose, match=words):
            raconvert.write(tmp_path / "x.xlsx", values)
    assert not list(tmp_path.iterdir())


def test_metadata_that_is_too_much_is_named(tmp_path: Path) -> None:
    meta = Metadata("x" * 70_000)
    report = raconvert.write(tmp_path / "x.xlsx", np.zeros(2), meta=meta)
    assert any("has no place for it" in str(fit) for fit in report.equivalent)
    assert arrays(tmp_path / "x.xlsx")["x"].tolist() == [0, 0]


def with_record(path: Path, change: Callable[[str], str]) -> None:
    """Change the XML of the properties that have the record."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    before = parts["docProps/custom.xml"].decode()
    after = change(before)
    assert after != before
    parts["docProps/custom.xml"] = after.encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


@every("labelled", ["5", "null", "true", "[1]", '{"a": 1}'])
def test_a_record_of_a_wrong_form_is_ignored(labelled: str, tmp_path: Path) -> None:
    path = tmp_path / "x.xlsx"
    meta = Metadata(axes=[Axis("t", labels=["a", "b"])])
    raconvert.write(path, np.array([1.5, 2.5]), meta=meta)
    with_record(path, lambda xml: xml.replace('"labelled":[true]', f'"labelled":{labelled}'))

    with raconvert.open_bundle(path) as bundle:
        assert bundle.arrays[0].shape == (2,)


def test_a_sheet_larger_than_a_member_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 3000)

    with pytest.raises(TooLarge, match="sheet 'x' becomes too large"):
        raconvert.write(tmp_path / "x.xlsx", np.arange(1000.0))
    assert list(tmp_path.iterdir()) == []
