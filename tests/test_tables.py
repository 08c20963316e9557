"""Tables of pages and notebooks: records, texts, times and metadata, as html5lib reads them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import html5lib
import numpy as np
import pytest

import raconvert
from raconvert.cli import main
from raconvert.plugin import Axis, Metadata
from raconvert.views.pages.fields import Fields
from raconvert.views.pages.table import value_text

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any
    from xml.etree.ElementTree import Element

SVG = "{http://www.w3.org/2000/svg}svg"
HEBREW, ARABIC = "ירושלים", "القاهرة"


def tree_of(text: str) -> Element:
    found: Element = html5lib.parse(text, namespaceHTMLElements=False)
    return found


def page(path: Path) -> Element:
    out = path.with_suffix(".html")
    assert main(["info", str(path), "--html", "-o", str(out), "--overwrite"]) == 0
    return tree_of(out.read_text(encoding="utf-8"))


def words(element: Element) -> str:
    return " ".join(" ".join(element.itertext()).split())


def rows_of(root: Element) -> list[list[str]]:
    """The cells of the first table of rows, as text."""
    table = next(one for one in root.iter("table") if one.get("class") == "rows")
    return [[words(cell) for cell in row if cell.tag in ("td", "th")] for row in table.iter("tr")]


def records(count: int) -> np.ndarray:
    kinds = [
        ("time", "M8[s]"), ("place", "U8"), ("name", "S8"), ("heat", "f4"), ("sound", "?"),
        ("position", "f4", (3,)), ("z", "c16"), ("inner", [("a", "i2"), ("b", "S2")]),
    ]  # fmt: skip
    made = np.zeros(count, kinds)
    made["time"] = np.datetime64("2024-01-01") + np.arange(count).astype("m8[h]")
    made["time"][2] = np.datetime64("NaT")
    made["place"] = np.array([HEBREW, "Graz"])[np.arange(count) % 2]
    made["name"] = np.array([b"alpha", b"beta", b"beta"])[np.arange(count) % 3]
    made["heat"] = np.arange(count) / 4
    made["sound"] = np.arange(count) % 4 > 0
    made["position"] = [1, 2.5, -3]
    made["z"] = 1.5 - 2j
    made["inner"]["a"] = np.arange(count)
    made["inner"]["b"] = b"xy"
    return made


@pytest.mark.parametrize("shown", ["page", "notebook"])
def test_records_are_a_table(tmp_path: Path, shown: str) -> None:
    values = records(600)
    np.save(tmp_path / "x.npy", values)
    if shown == "page":
        root = page(tmp_path / "x.npy")
    else:
        root = tree_of(raconvert.open(tmp_path / "x.npy")._repr_html_())  # type: ignore[union-attr]
    head, summary, *rows = rows_of(root)
    assert [name.split()[0] for name in head] == [
        "row", "time", "place", "name", "heat", "sound", "position", "z", "inner.a", "inner.b",
    ]  # fmt: skip
    assert summary[1] == "2024-01-01 00:00:00 to 2024-01-25 23:00:00"
    assert summary[2] == f"{HEBREW} 300 Graz 300"
    assert summary[3] == "beta 400 alpha 200"
    assert summary[5] == "True 75 %"
    assert [row[0] for row in rows] == [
        "0", "1", "2", "3", "4", "5", "…", "596", "597", "598", "599",
    ]  # fmt: skip
    assert rows[1] == [
        "1", "2024-01-01 01:00:00", "Graz", "beta", "0.25", "True", "[1, 2.5, -3]",
        "1.5 \N{MINUS SIGN} 2i", "1", "xy",
    ]  # fmt: skip
    assert rows[2][1] == "missing"
    assert rows[-1][1:5] == [
        str(values["time"][-1]).replace("T", " "), "Graz", "beta", "149.75",
    ]  # fmt: skip
    table = next(one for one in root.iter("table") if one.get("class") == "rows")
    assert len([*table.iter(SVG)]) >= 3
    assert "b'alpha'" not in words(root)


def test_few_records_are_all_shown(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", records(4))
    _, _, *rows = rows_of(page(tmp_path / "x.npy"))
    assert [row[0] for row in rows] == ["0", "1", "2", "3"]


def test_the_ends_of_a_large_table_are_its_ends(tmp_path: Path) -> None:
    """Of a file that is not read whole."""
    values = np.lib.format.open_memmap(
        tmp_path / "x.npy", mode="w+", dtype=[("n", "i8"), ("x", "f8")], shape=(2_000_000,)
    )
    values["n"] = np.arange(2_000_000)
    values.flush()
    root = page(tmp_path / "x.npy")
    _, _, *rows = rows_of(root)
    assert [row[1] for row in rows if row[0] != "…"] == [
        *map(str, range(6)), *map(str, range(1_999_996, 2_000_000)),
    ]  # fmt: skip
    assert "lines and counts are of a sample of" in words(root)


def test_texts_stand_in_their_shape_and_direction(tmp_path: Path) -> None:
    values = np.array([[HEBREW, ARABIC, "x"], ["<b>y</b>", "", "z"]])
    np.save(tmp_path / "x.npy", values)
    root = page(tmp_path / "x.npy")
    head, *rows = rows_of(root)
    assert head == ["", "0", "1", "2"]
    assert [row[1:] for row in rows] == [[HEBREW, ARABIC, "x"], ["<b>y</b>", "empty", "z"]]
    table = next(one for one in root.iter("table") if one.get("class") == "rows")
    directions = {words(one): one.get("dir") for one in table.iter("bdi")}
    assert directions == dict.fromkeys([HEBREW, ARABIC, "x", "<b>y</b>", "z"], "auto")


def test_texts_that_repeat_are_counted(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([HEBREW, "Graz", "Graz"] * 20))
    root = page(tmp_path / "x.npy")
    counts = next(one for one in root.iter("table") if one.get("class") == "counts")
    assert [words(row) for row in counts.iter("tr")] == ["Graz 40", f"{HEBREW} 20"]
    assert [row[0] for row in rows_of(root)][-1] == "59"


def test_times_are_written_as_dates(tmp_path: Path) -> None:
    days = np.datetime64("2020-02-28") + np.arange(50)
    np.save(tmp_path / "x.npy", days)
    root = page(tmp_path / "x.npy")
    assert rows_of(root)[1] == ["1", "2020-02-29"]
    (line,) = [one for one in root.iter(SVG) if one.get("class") == "plot"]
    assert line.get("aria-label") == "a line between 2020-02-28 and 2020-04-17"


def test_few_numbers_can_be_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[1.5, 0], [0, -2]]))
    _, *rows = rows_of(page(tmp_path / "x.npy"))
    assert rows == [["0", "1.5", "0"], ["1", "0", "-2"]]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"alpha\0\0", "alpha"), (b"\xff", "\N{REPLACEMENT CHARACTER}"), ("é", "é"),
        (np.datetime64("2020-01-01T05", "h"), "2020-01-01 05"), (np.timedelta64("NaT"), "missing"),
        (np.complex64(1 + 2j), "1 + 2i"), (np.bool_(True), "True"), (np.float32(0.1), "0.1"),
        (np.uint64(2**64 - 1), str(2**64 - 1)), ((1, b"a"), "(1, a)"), (np.void(b"\1\2"), "01 02"),
    ],
)  # fmt: skip
def test_values_are_written_as_people_do(value: Any, text: str) -> None:
    assert value_text(value) == text


# Metadata -----------------------------------------------------------------------------------------

ODD = {
    "plain": "text", "number": 2.5, "yes": True, "none": None, "bytes": {"hex": "00ff" * 20},
    "nested": {"inner": {"deep": "<i>"}, "empty": {}}, "list": list(range(40)), "matrix": [[1, 2], [3, 4]],
    "records": [{"name": "a", "size": 1}, {"name": "b"}], "mixed": [{"a": {"b": 1}}, 5], "void": "",
    "lines": "one\ntwo",
}  # fmt: skip


def test_metadata_are_lists_and_tables() -> None:
    text = "".join(Fields().listed(ODD))
    root = tree_of(f"<!DOCTYPE html><title>x</title>{text}")
    said = words(root)
    for odd in ("{'", "[{", "': ", "None", "True"):
        assert odd not in said, odd
    names = [words(one) for one in root.iter("dt")]
    assert {"inner", "deep", "b", *ODD} <= set(names)
    values = dict(zip(names, map(words, root.iter("dd")), strict=True))
    assert values["number"] == "2.5"
    assert values["bytes"] == "40 bytes: 00 ff 00 ff 00 ff 00 ff 00 ff 00 ff 00 ff 00 ff …"
    assert values["deep"] == "<i>"
    assert values["list"] == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … 39 (40)"
    assert values["void"] == "empty"
    tables = [[words(row) for row in one.iter("tr")] for one in root.iter("table")]
    assert ["at name size", "0 a 1", "1 b"] in tables
    assert ["1 2", "3 4"] in tables


def test_metadata_of_thousands_of_fields_are_bounded() -> None:
    fields = Fields()
    text = "".join(fields.listed({f"f{number}": number for number in range(9000)}))
    assert len(text) < 40_000
    assert fields.omitted + text.count("<dt>") == 9000
    deep: Any = 1
    for _ in range(500):
        deep = {"a": deep}
    assert len("".join(Fields().listed({"deep": deep}))) < 5000


def test_metadata_of_an_array_are_on_its_page(tmp_path: Path) -> None:
    meta = Metadata(attributes={"setup": {"lens": "63x", "gain": [1.5, 2]}, "by": HEBREW})
    raconvert.write(tmp_path / "x.h5", {"x": np.eye(9)}, meta=meta, allow=["all"])
    root = page(tmp_path / "x.h5")
    said = words(root)
    assert "{'" not in said
    assert HEBREW in said


def test_numbers_stand_beside_their_labels(tmp_path: Path) -> None:
    """Each number of the table is that of its labels, whatever the order of the axes."""
    goods, regions = ["food", "steel", "cars"], ["EU", "USA"]
    values = np.arange(12, dtype="f8").reshape(3, 2, 2) * 1.5
    axes = [Axis("COMM", labels=goods), Axis("REG", labels=regions), Axis("DST", labels=regions)]
    for suffix in ("h5", "har", "mat"):
        path = tmp_path / f"x.{suffix}"
        made = raconvert.Array(values, name="VX", meta=Metadata(axes=axes, description="exports"))
        raconvert.write(path, {"VX": made}, allow=["all"], dtype="float32", meta="sidecar")
        root = page(path)
        (table,) = [one for one in root.iter("table") if " / " in words(one.find(".//th"))]
        rows = [[words(cell) for cell in row] for row in table.iter("tr")]
        (key,) = re.findall(r"The numbers of plane \[(.*?)\]", words(root))
        at = tuple(slice(None) if part == ":" else int(part) for part in key.split(", "))
        down, right = (axis for axis, part in zip(axes, at, strict=True) if part == slice(None))
        assert rows[0] == [f"{down.name} / {right.name}", *right.labels]
        assert [row[0] for row in rows[1:]] == list(down.labels)
        assert [[float(cell) for cell in row[1:]] for row in rows[1:]] == values[at].tolist()
