"""CSV: what pandas, the csv module, pyarrow and R read and write, and what must be refused."""

from __future__ import annotations

import csv
import io
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import quiet

import raconvert
from raconvert import Array, Bundle, Metadata
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported, UsageError, WouldLose
from raconvert.files.limits import Limits
from raconvert.files.source import Source
from raconvert.plugin import Axis
from raconvert.registry import by_name, load

CSV = load(by_name("csv"))


def written(path: Path, values: Any, meta: Metadata | None = None, **out: Any) -> str:
    raconvert.write(path, values, meta=meta or Metadata(), overwrite=True, out_opts=out)
    return path.read_text(encoding="utf-8")


def arrays(path: Path, **options: Any) -> dict[str, np.ndarray]:
    with raconvert.open_bundle(path, in_opts=options) as bundle:
        return {array.name: np.array(array) for array in bundle.arrays}


def decode(source: Source, **options: Any) -> None:
    """Read every element of a file."""
    for array in CSV.read(source, **options).arrays:
        np.asarray(array)


def of(path: Path, text: str | bytes, **options: Any) -> dict[str, np.ndarray]:
    """The arrays of a file of this text."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return arrays(path, **options)


# Tables -------------------------------------------------------------------------------------------

TRADE = np.arange(12, dtype="f8").reshape(2, 3, 2) / 8
AXES = [Axis("COMM", labels=["steel", "food"]), Axis("REG", labels=["US", "EU", "ROW"]),
        Axis("YEAR", labels=[2020, 2025])]  # fmt: skip


def test_labels_are_columns_in_their_order(tmp_path: Path) -> None:
    text = written(tmp_path / "x.csv", TRADE, Metadata(axes=AXES))
    table = pd.read_csv(tmp_path / "x.csv")

    assert text.splitlines()[:3] == [
        "COMM,REG,YEAR,x",
        '"steel","US",2020,0.0',
        '"steel","US",2025,0.125',
    ]
    assert list(table.columns) == ["COMM", "REG", "YEAR", "x"]
    assert np.array_equal(table["x"].to_numpy().reshape(2, 3, 2), TRADE)
    with raconvert.open_bundle(tmp_path / "x.csv") as bundle:
        (array,) = bundle.arrays
        assert np.array_equal(array, TRADE)
        assert [axis.name for axis in array.axes] == ["COMM", "REG", "YEAR"]
        assert array.axes[0].labels == ("steel", "food")
        assert array.axes[2].values(2).tolist() == [2020, 2025]
        assert any("COMM, REG, YEAR are read as axes (2 × 3 × 2)" in note for note in bundle.notes)


def test_rows_in_any_order_give_the_array(tmp_path: Path) -> None:
    written(tmp_path / "x.csv", TRADE, Metadata(axes=AXES))
    table = pd.read_csv(tmp_path / "x.csv").sample(frac=1, random_state=5)
    table.to_csv(tmp_path / "y.csv", index=False)

    with raconvert.open_bundle(tmp_path / "y.csv") as bundle:
        (array,) = bundle.arrays
        regions = list(dict.fromkeys(table["REG"]))
        assert list(array.axes[1].labels or ()) == regions
        for row in table.itertuples():
            at = [list(axis.values(n)).index(label) for axis, n, label in
                  zip(array.axes, array.shape, (row.COMM, row.REG, row.YEAR), strict=True)]  # fmt: skip
            assert array[tuple(at)] == row.x


def test_wide_and_back(tmp_path: Path) -> None:
    meta = Metadata(axes=AXES)
    text = written(tmp_path / "x.csv", TRADE, meta, wide="REG")
    table = pd.read_csv(tmp_path / "x.csv")

    assert text.splitlines()[0] == "COMM,YEAR,US,EU,ROW"
    assert np.array_equal(table["EU"].to_numpy().reshape(2, 2), TRADE[:, 1])
    back = arrays(tmp_path / "x.csv", wide="REG")["x"]
    assert np.array_equal(back, TRADE.transpose(0, 2, 1))
    with pytest.raises(WouldLose, match="its axes are"):
        written(tmp_path / "y.csv", TRADE, meta, wide="what")
    labels = written(tmp_path / "x.csv", TRADE, meta, wide="YEAR").splitlines()[0]
    assert labels == 'COMM,REG,"2020","2025"'
    with raconvert.open_bundle(tmp_path / "x.csv", in_opts={"wide": "YEAR"}) as bundle:
        assert bundle.arrays[0].axes[-1].labels == (2020, 2025)
        assert np.array_equal(bundle.arrays[0], TRADE)


def test_several_arrays_are_columns(tmp_path: Path) -> None:
    meta = Metadata(axes=AXES)
    made = [Array(TRADE, name="value", meta=meta), Array(TRADE > 0.5, name="large", meta=meta)]
    raconvert.write(tmp_path / "x.csv", Bundle(made))
    table = pd.read_csv(tmp_path / "x.csv")

    assert list(table.columns)[3:] == ["value", "large"]
    assert table["large"].dtype == bool
    back = arrays(tmp_path / "x.csv")
    assert np.array_equal(back["value"], TRADE)
    assert np.array_equal(back["large"], TRADE > 0.5)
    with pytest.raises(WouldLose, match="over the same axes"):
        raconvert.write(tmp_path / "y.csv", Bundle([*made, Array(np.zeros(3), name="other")]))


RECORDS = np.array(
    [(1, 2.5, "a,b", True, "2020-01-31"), (-5, np.inf, 'q"q', False, "1999-12-31"),
     (1 << 62, -0.0, "é\n", True, "NaT")],
    dtype=[("n", "i8"), ("x", "f8"), ("t", "U3"), ("b", "?"), ("d", "M8[D]")],
)  # fmt: skip


def test_structures_are_tables_of_their_fields(tmp_path: Path) -> None:
    written(tmp_path / "x.csv", RECORDS)
    with (tmp_path / "x.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))

    assert rows[0] == ["n", "x", "t", "b", "d"]
    assert rows[1] == ["1", "2.5", "a,b", "true", "2020-01-31"]
    assert rows[3][2] == "é\n"
    back = arrays(tmp_path / "x.csv")["x"]
    assert back.dtype == RECORDS.dtype
    assert back.tobytes() == RECORDS.tobytes()


@every(
    "kind",
    ["f8", "f4", "f2", "c16", "c8", "i8", "u8", "i1", "?", "M8[ns]", "M8[D]", "m8[us]", "m8[D]"],
)
def test_values_come_back_with_every_bit(kind: str, tmp_path: Path) -> None:
    dtype = np.dtype(kind)
    rng = np.random.default_rng(7)
    values = np.frombuffer(rng.bytes(200 * dtype.itemsize), dtype).copy()
    if kind == "?":
        values = rng.integers(0, 2, 200).astype("?")
    if kind == "f8":
        values[:3] = [-0.0, np.nan, 5e-324]
    written(tmp_path / "x.csv", values)
    back = arrays(tmp_path / "x.csv", types=f"x:{dtype.name}")["x"]

    assert back.dtype == dtype
    assert back.tobytes() == values.tobytes()


def test_pandas_and_pyarrow_read_the_numbers(tmp_path: Path) -> None:
    arrow_csv = pytest.importorskip("pyarrow.csv")
    values = np.random.default_rng(3).normal(size=500) * 10.0 ** np.arange(-250, 250)
    written(tmp_path / "x.csv", values)
    with quiet():  # newer versions do it by default
        table = pd.read_csv(tmp_path / "x.csv", float_precision="round_trip")
    by_pandas = table["x"].to_numpy()
    by_arrow = arrow_csv.read_csv(tmp_path / "x.csv")["x"].to_numpy()

    assert by_pandas.tobytes() == values.tobytes()
    assert by_arrow.tobytes() == values.tobytes()


def test_r_reads_and_writes_the_table(tool: Callable[..., str], tmp_path: Path) -> None:
    written(tmp_path / "x.csv", TRADE, Metadata(axes=AXES))
    code = ("t <- read.csv('x.csv'); t$x[2] <- NA; t$logical <- t$YEAR > 2020; "
            "write.csv(t, 'y.csv', row.names = FALSE)")  # fmt: skip
    subprocess.run([tool("Rscript"), "--vanilla", "-e", code], cwd=tmp_path, check=True)
    back = arrays(tmp_path / "y.csv")

    expected = TRADE.copy()
    expected[0, 0, 1] = np.nan
    assert np.array_equal(back["x"], expected, equal_nan=True)
    assert np.argwhere(back["x.null"]).tolist() == [[0, 0, 1]]
    assert back["logical"].all(axis=(0, 1)).tolist() == [False, True]


# Reading what others write -------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(-(1 << 63), (1 << 63) - 1),
            st.floats(allow_nan=False, allow_infinity=False),
            st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=12),
        ),
        min_size=2, max_size=30,
    ),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    delimiter=st.sampled_from(",;\t|"),
    line=st.sampled_from(["\n", "\r\n"]),
)  # fmt: skip
def test_any_table_of_the_csv_module(
    rows: list[tuple[int, float, str]], quoting: int, delimiter: str, line: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=quoting, delimiter=delimiter, lineterminator=line)  # type: ignore[arg-type]
    writer.writerow(["n", "x", "t"])
    writer.writerows(rows)
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    path.write_bytes(file.getvalue().encode())
    back = arrays(path, delimiter=delimiter, axes="none", types="t:text,n:int64")["x"]

    assert back["n"].tolist() == [row[0] for row in rows]
    assert back["x"].tolist() == [row[1] for row in rows]
    assert back["t"].tolist() == [row[2] for row in rows]


KINDS = {  # cells of a column -> type, values
    ("1", "2"): ("i8", [1, 2]),
    ("1", "2.5"): ("f8", [1.0, 2.5]),
    ("-0", "1"): ("f8", [-0.0, 1.0]),
    ("007", "1"): ("U3", ["007", "1"]),
    ("18446744073709551615", "0"): ("u8", [(1 << 64) - 1, 0]),
    ("18446744073709551616", "0"): ("U20", ["18446744073709551616", "0"]),
    ("9223372036854775808", "-1"): ("U19", ["9223372036854775808", "-1"]),
    ("1e400", "1"): ("U5", ["1e400", "1"]),
    ("1e-400", "1"): ("U6", ["1e-400", "1"]),
    ("true", "FALSE"): ("?", [True, False]),
    ("inf", "-inf"): ("f8", [np.inf, -np.inf]),
    ("2020-01-31", "2020-02-01T12:30"): ("M8[m]", ["2020-01-31T00:00", "2020-02-01T12:30"]),
    ("2020-02-30", "2020-01-01"): ("U10", ["2020-02-30", "2020-01-01"]),
    ("PT1.5S", "P1D"): ("m8[ms]", [1500, 86400000]),
    ("1+2j", "-1.5j"): ("c16", [1 + 2j, complex(0, -1.5)]),
    ("5-3", "1"): ("U3", ["5-3", "1"]),
    ("1_000", "1"): ("U5", ["1_000", "1"]),
    (" 1", "2"): ("U2", [" 1", "2"]),
    ("0x10", "1"): ("U4", ["0x10", "1"]),
    ("NaN", "1.5"): ("f8", [np.nan, 1.5]),
}  # fmt: skip


@every("cells", KINDS)
def test_the_type_of_a_column_holds_all_of_its_cells(
    cells: tuple[str, ...], tmp_path: Path
) -> None:
    kind, values = KINDS[cells]
    found = of(tmp_path / "x.csv", "k,v\n1,{}\n2,{}\n".format(*cells), layout="columns")["v"]

    assert found.dtype == np.dtype(kind)
    expected = np.array(values, "i8").view(kind) if kind[0] == "m" else np.array(values, kind)
    assert found.tobytes() == expected.tobytes()


def test_cells_in_quotes_are_text_unless_all_are(tmp_path: Path) -> None:
    assert of(tmp_path / "x.csv", 'a,b\n"1",2\n"3",4\n', layout="columns")["a"].tolist() == [
        "1",
        "3",
    ]
    found = of(tmp_path / "x.csv", '"a","b"\n"1","x"\n"3","y"\n', layout="columns")
    assert found["a"].tolist() == [1, 3]


def test_nothing_is_missing_and_quotes_with_nothing_are_a_text(tmp_path: Path) -> None:
    found = of(tmp_path / "x.csv", 'a,b,c\n1,"",x\n,,""\n3,"z",\n', layout="columns")

    assert found["a"].tolist() == [1, 0, 3]
    assert found["a.null"].tolist() == [False, True, False]
    assert found["b"].tolist() == ["", "", "z"]
    assert found["b.null"].tolist() == [False, True, False]
    assert found["c.null"].tolist() == [False, False, True]


def test_missing_is_not_nan_and_comes_back(tmp_path: Path) -> None:
    text = "dim_0,x\n0,1.5\n1,\n2,nan\n"
    found = of(tmp_path / "x.csv", text)

    assert np.isnan(found["x"]).tolist() == [False, True, True]
    assert found["x.null"].tolist() == [False, True, False]
    raconvert.convert(tmp_path / "x.csv", tmp_path / "y.csv")
    assert (tmp_path / "y.csv").read_text() == text
    with pytest.raises(WouldLose, match="missing"):
        raconvert.convert(tmp_path / "x.csv", tmp_path / "x.npy", arrays=["x"])
    raconvert.convert(tmp_path / "x.csv", tmp_path / "x.npy", in_opts={"missing": "nan"})
    assert np.isnan(np.load(tmp_path / "x.npy")).sum() == 2


DIALECTS = {
    "semicolons and commas": (b"a;b\n1,5;2\n2,5;3\n", {"decimal": ","}),
    "tabs": (b"a\tb\n1.5\t2\n2.5\t3\n", {}),
    "bars": (b"a|b\n1.5|2\n2.5|3\n", {}),
    "CR LF": (b"a,b\r\n1.5,2\r\n2.5,3\r\n", {}),
    "CR": (b"a,b\r1.5,2\r2.5,3\r", {}),
    "no last line end": (b"a,b\n1.5,2\n2.5,3", {}),
    "a BOM": (b"\xef\xbb\xbfa,b\n1.5,2\n2.5,3\n", {}),
    "UTF-16": ("\ufeffa,b\n1.5,2\n2.5,3\n".encode("utf-16-le"), {}),
    "UTF-16 of the other order": ("\ufeffa,b\n1.5,2\n2.5,3\n".encode("utf-16-be"), {}),
    "UTF-32": ("\ufeffa,b\n1.5,2\n2.5,3\n".encode("utf-32-le"), {}),
    "blank lines": (b"a,b\n\n1.5,2\n\n2.5,3\n\n\n", {}),
    "asked delimiter": (b"a:b\n1.5:2\n2.5:3\n", {"delimiter": ":"}),
}


@every("name", DIALECTS)
def test_dialects(name: str, tmp_path: Path) -> None:
    text, options = DIALECTS[name]
    found = of(tmp_path / "x.csv", text, layout="columns", **options)

    assert list(found) == ["a", "b"]
    assert found["a"].tolist() == [1.5, 2.5]
    assert found["b"].tolist() == [2, 3]


def test_encodings_are_asked_for(tmp_path: Path) -> None:
    text = "n,t\n1,größer\n2,é\n"
    with pytest.raises(Corrupt, match="utf-8") as refusal:
        of(tmp_path / "x.csv", text.encode("latin-1"))
    assert "encoding" in str(refusal.value)
    found = of(tmp_path / "x.csv", text.encode("latin-1"), encoding="latin-1")
    assert found["x"]["t"].tolist() == ["größer", "é"]


def test_a_header_is_text_and_what_may_be_one_is_asked(tmp_path: Path) -> None:
    matrix = of(tmp_path / "x.csv", "1,2\n3,4\n")["x"]
    assert matrix.tolist() == [[1, 2], [3, 4]]
    assert matrix.dtype == np.dtype("i8")
    with pytest.raises(UsageError, match="may be a header"):
        of(tmp_path / "x.csv", "region,2020,2021\nEU,1.5,2.5\nUS,3.5,4.5\n")
    found = of(tmp_path / "x.csv", "region,2020,2021\nEU,1.5,2.5\nUS,3.5,4.5\n", wide="year")
    assert found["x"].tolist() == [[1.5, 2.5], [3.5, 4.5]]
    found = of(tmp_path / "x.csv", "a,1\nb,2\n", header="no", layout="columns")
    assert found["column_2"].tolist() == [1, 2]
    assert of(tmp_path / "x.csv", ",x\n0,1.5\n1,2.5\n", layout="columns")["x"].tolist() == [
        1.5,
        2.5,
    ]
    twice = of(tmp_path / "x.csv", "a,a,a_2\n1,2,3\n4,5,6\n", layout="columns")
    assert list(twice) == ["a", "a_2", "a_2_2"]


GRIDS = {  # text -> shapes of arrays, and options
    "two axes": ("r,y,v\na,1,5\na,2,6\nb,1,7\nb,2,8\n", {}, {"v": (2, 2)}),
    "one axis of text": ("r,v,w\na,1,5\nb,2,6\n", {}, {"v": (2,), "w": (2,)}),
    "a number is not an axis by itself": ("id,v\n5,1.5\n7,2.5\n", {}, {"x": (2,)}),
    "names beside ages": ("name,city,age\nA,X,1\nB,Y,2\n", {}, {"x": (2,)}),
    "a gap": ("r,y,v\na,1,5\na,2,6\nb,1,7\n", {}, {"x": (3,)}),
    "a row twice": ("r,y,v\na,1,5\na,2,6\nb,1,7\nb,1,8\n", {}, {"x": (4,)}),
    "axes that are asked for": ("id,v\n5,1.5\n7,2.5\n", {"axes": "id"}, {"v": (2,)}),
    "columns in another order": ("v,y,r\n5,1,a\n6,2,a\n7,1,b\n8,2,b\n", {"axes": "r,y"}, {"v": (2, 2)}),
    "no axes": ("r,y,v\na,1,5\na,2,6\nb,1,7\nb,2,8\n", {"axes": "none"}, {"x": (4,)}),
    "fractions as an axis": ("t,v\n0.5,1\n1.0,2\n", {"axes": "t"}, {"v": (2,)}),
    "indices": ("dim_0,dim_1,v\n0,0,1\n0,1,2\n", {}, {"v": (1, 2)}),
    "indices that are none": ("dim_0,v\n5,1\n7,2\n", {}, {"x": (2,)}),
    "no rows": ("r,y,v\n", {}, {"x": (0,)}),
    "one column": ("v\n1\n2\n", {}, {"v": (2,)}),
}  # fmt: skip


@every("name", GRIDS)
def test_which_columns_are_axes(name: str, tmp_path: Path) -> None:
    text, options, shapes = GRIDS[name]
    found = of(tmp_path / "x.csv", text, **options)

    assert {key: values.shape for key, values in found.items()} == shapes


def test_gaps_are_refused_or_filled(tmp_path: Path) -> None:
    text = "r,y,v\na,1,5\na,2,6\nb,1,7\n"
    with pytest.raises(WouldLose, match="no row for r=b, y=2") as refusal:
        of(tmp_path / "x.csv", text, axes="r,y")
    assert "fill" in str(refusal.value)
    assert of(tmp_path / "x.csv", text, axes="r,y", fill="0")["v"].tolist() == [[5, 6], [7, 0]]
    found = of(tmp_path / "x.csv", text, axes="r,y", fill="missing")
    assert found["v.null"].tolist() == [[False, False], [False, True]]
    with pytest.raises(WouldLose, match="two rows for r=a"):
        of(tmp_path / "x.csv", text, axes="r")
    with pytest.raises(UsageError, match="no column 'z'"):
        of(tmp_path / "x.csv", text, axes="z")
    with pytest.raises(UsageError, match="not a value of the type"):
        of(tmp_path / "x.csv", text, axes="r,y", fill="x")


def test_regular_numbers_are_spacing_and_come_back(tmp_path: Path) -> None:
    meta = Metadata(axes=[Axis("t", origin=1.0, spacing=0.5)])
    text = written(tmp_path / "x.csv", np.arange(3.0), meta)

    assert text == "t,x\n1.0,0.0\n1.5,1.0\n2.0,2.0\n"
    with raconvert.open_bundle(tmp_path / "x.csv", in_opts={"axes": "t"}) as bundle:
        (axis,) = bundle.arrays[0].axes
        assert (axis.name, axis.origin, axis.spacing) == ("t", 1.0, 0.5)


def test_digits_that_are_rounded_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("k,v\n1,0.1234567890123456789\n2,2.5\n")
    with raconvert.open_bundle(tmp_path / "x.csv") as bundle:
        assert any("more digits" in note for note in bundle.notes)
    found = arrays(tmp_path / "x.csv", types="v:text", layout="columns")
    assert found["v"][0] == "0.1234567890123456789"


def test_a_type_that_a_cell_does_not_have_is_an_error(tmp_path: Path) -> None:
    for cell, kind in (("300", "uint8"), ("x", "float32"), ("1.5", "int64"), ("1e300", "float32"),
                       ("2020-01-01T00:00:01", "datetime64[D]"), ("maybe", "bool")):  # fmt: skip
        with pytest.raises(Corrupt, match="row 2"):
            of(tmp_path / "x.csv", f"k,v\n1,{cell}\n", types=f"v:{kind}", layout="columns")
    with pytest.raises(UsageError, match="not a type of a column"):
        of(tmp_path / "x.csv", "k,v\n1,2\n", types="v:object")


def test_options_of_writing(tmp_path: Path) -> None:
    values = np.array([1.5, -2.25])
    assert written(tmp_path / "x.csv", values, decimal=",") == "dim_0;x\n0;1,5\n1;-2,25\n"
    back = arrays(tmp_path / "x.csv", decimal=",")
    assert back["x"].tolist() == [1.5, -2.25]
    assert written(tmp_path / "x.tsv", values) == "dim_0\tx\n0\t1.5\n1\t-2.25\n"
    assert arrays(tmp_path / "x.tsv")["x"].tolist() == [1.5, -2.25]
    assert written(tmp_path / "y.csv", values, delimiter="|").startswith("dim_0|y\n")
    with pytest.raises(WouldLose, match="between cells"):
        written(tmp_path / "z.csv", values, delimiter="5")


def test_what_has_no_place_is_named_or_refused(tmp_path: Path) -> None:
    meta = Metadata("text", units="m", axes=[Axis("t", units="s"), Axis()])
    report = raconvert.write(tmp_path / "x.csv", np.zeros((2, 3), "f4"), meta=meta)
    said = " ".join(map(str, report.equivalent))
    for words in ("description", "units", "axis 0 (units)", "float32 is read as float64",
                  "does not say where it ends"):  # fmt: skip
        assert words in said
    for values, words in ((np.zeros((2, 0)), "no row"), (np.zeros(2, "V3"), "V3"),
                          (np.zeros(2, [("a", "f4", (2,))]), "field"),
                          (np.zeros(2, "m8[25s]"), "25s")):  # fmt: skip
        with pytest.raises(WouldLose, match=words):
            raconvert.write(tmp_path / "y.csv", values)


def test_a_file_larger_than_memory_is_read_block_by_block(tmp_path: Path) -> None:
    count = 300_000
    path = tmp_path / "x.csv"
    path.write_text("dim_0,x\n" + "".join(f"{n},{n}.5\n" for n in range(count)))
    raconvert.convert(path, tmp_path / "x.ra", max_memory=4 << 20)
    assert np.array_equal(raconvert.read(tmp_path / "x.ra"), np.arange(count) + 0.5)
    shuffled = tmp_path / "y.csv"
    shuffled.write_text("dim_0,x\n" + "".join(f"{n},{n}.5\n" for n in range(count)[::-1]))
    with pytest.raises(TooLarge, match="bytes"):
        raconvert.convert(shuffled, tmp_path / "y.ra", max_memory=2 << 20)


# Hostile -------------------------------------------------------------------------------------------

HOSTILE: dict[str, tuple[bytes, dict[str, Any], type[RaconvertError] | tuple[Any, ...]]] = {
    "nothing": (b"", {}, Corrupt),
    "only a BOM": (b"\xef\xbb\xbf", {}, Corrupt),
    "a quote that never ends": (b'a,b\n1,"2\n3,4\n' + b"5,6\n" * 1000, {}, Corrupt),
    "a quote that never ends in a large file": (b'a,b\n"' + b"5,6\n" * 2_000_000, {}, Corrupt),
    "a quote in the middle": (b'a,b\n1,2"3\n4,"5\n', {}, (Unsupported, Corrupt)),
    "a quote behind quotes": (b'a,b\n1,"2"3"\n4,5\n', {}, (Unsupported, Corrupt)),
    "a short row": (b"a,b,c\n1,2,3\n4,5\n6,7,8\n", {}, Corrupt),
    "a long row": (b"a,b\n1,2\n3,4,5\n", {}, Corrupt),
    "a row of 20 MB": (b"a,b\n1," + b"x" * (20 << 20) + b"\n", {}, TooLarge),
    "a million columns": (b",".join([b"a"] * 1_000_000) + b"\n", {}, TooLarge),
    "a million columns of numbers": (b",".join([b"1"] * 1_000_000) + b"\n", {}, TooLarge),
    "commas alone": (b"," * 3_000_000, {}, TooLarge),
    "texts as wide as one": (b"a,b\n" + b"1,x\n" * 300_000 + b"2," + b"y" * 100_000 + b"\n", {}, TooLarge),
    "no UTF-8": (b"a,b\n1,\xff\xfe\n", {}, Corrupt),
    "half a letter": (b"a,b\n1,\xc3", {}, Corrupt),
    "UTF-16 cut off": ("\ufeffa,b\n1,2\n".encode("utf-16-le")[:-1], {}, Corrupt),
    "UTF-16 with half a pair": (b"\xff\xfea\0,\0b\0\n\0\x00\xd81\0,\x002\0\n\0", {}, Corrupt),
    "an unknown encoding": (b"a,b\n1,2\n", {"encoding": "klingon"}, UsageError),
    "an encoding of bytes": (b"a,b\n1,2\n", {"encoding": "zlib"}, (UsageError, Corrupt)),
    "a header cut off": (b"region,year", {}, Corrupt),
    "a name of 5000 letters": (b"a" * 5000 + b",b\n1,2\n", {}, TooLarge),
    "two delimiters": (b"a,b;c\n1,2;3\n", {}, UsageError),
    "a delimiter of a digit": (b"a,b\n1,2\n", {"delimiter": "1"}, UsageError),
    "a million labels": (b"k,j,v\n" + b"".join(b"%d,1,1\n" % n for n in range(300_000)), {"axes": "k"}, WouldLose),
    "a row of NUL": (bytes(4096), {}, (Corrupt, Unsupported, TooLarge)),
}  # fmt: skip


@every("name", HOSTILE)
def test_hostile_files_are_refused(name: str, tmp_path: Path) -> None:
    data, options, kinds = HOSTILE[name]
    path = tmp_path / "x.csv"
    path.write_bytes(data)
    with pytest.raises(kinds) as caught:
        decode(Source(str(path), max_memory=256 << 20), **options)
    assert "x.csv" in str(caught.value) or isinstance(caught.value, UsageError)


def test_bounds_are_those_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("r,a,b\nx,1,2\ny,3,4\n")
    for limits, words in ((Limits(table_columns=2), "columns"), (Limits(name_bytes=0), "name"),
                          (Limits(structure_fields=1), "structure")):  # fmt: skip
        with pytest.raises(TooLarge, match=words):
            CSV.read(Source(str(tmp_path / "x.csv"), limits=limits), axes="none")
    with raconvert.open_bundle(tmp_path / "x.csv") as bundle:
        assert bundle.names == ["a", "b"]
    few = CSV.read(Source(str(tmp_path / "x.csv"), limits=Limits(table_labels=1)))
    assert few.names == ["x"]


def test_a_table_beyond_memory_is_read_a_few_times_only(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n" + "1.5,2.5,3.5\n" * 2000)
    source = Source(str(path), limits=Limits(memory=60_000, table_passes=2))
    with pytest.raises(TooLarge, match="again for each column"):
        decode(source, layout="columns")


@every("name", ["x.txt", "x", "x.dat"])
def test_text_without_the_name_of_a_table_is_not_taken_for_one(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(RaconvertError) as refusal:
        raconvert.info(tmp_path / name)
    assert "csv" in str(refusal.value).lower()
    assert raconvert.read(tmp_path / name, from_="csv") is not None


@every(
    "text",
    ["<html>\n<a,b>\n<c,d>\n", '{"a": 1,\n"b": 2,\n}', "%PDF,1\nx,2\n", "plain words\nand more\n"],
)
def test_other_texts_are_no_tables(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(text)
    assert CSV.sniff(Source(str(tmp_path / "x.csv"))) == 0


@every("axis, lost", [
    (Axis("t", spacing=0.1, origin=1e6), ""),
    (Axis("t", spacing=0.1, origin=0.3), ""),
    (Axis("t", spacing=2, origin=1900), ""),
    (Axis("t", spacing=1), "spacing"),  # as indices are
    (Axis("t", spacing=1.0), ""),
    (Axis("t", spacing=1 / 3, origin=1e6), "spacing, origin"),
    (Axis("t", spacing=0.5, direction=(1.0, 0.0), units="mm"), "units, spacing, direction"),
    (Axis("t", labels=["a", "b", "c"], spacing=0.5), "spacing"),
    (Axis("t", labels=[2020, 2021, 2022]), "labels"),
])  # fmt: skip
def test_what_a_column_does_not_say_of_its_axis_is_named(
    axis: Axis, lost: str, tmp_path: Path
) -> None:
    array = Array(np.arange(6.0).reshape(3, 2), name="v", meta=Metadata(axes=[axis, Axis("row")]))
    report = raconvert.write(tmp_path / "a.csv", array)
    said = [fit.reason for fit in report.equivalent if fit.property == "metadata"]
    assert said == ([f"CSV has no place for it: axis 0 ({lost})"] if lost else [])
    with raconvert.open(tmp_path / "a.csv", "v", in_opts={"axes": "t,row"}) as back:
        if not lost:
            assert back.axes == (axis.replace(origin=axis.origin or 0.0), Axis("row"))


def test_one_number_tells_no_spacing(tmp_path: Path) -> None:
    meta = Metadata(axes=[Axis("t", spacing=0.5, origin=8.0), Axis("row")])
    report = raconvert.write(tmp_path / "a.csv", Array(np.ones((1, 2)), name="v", meta=meta))
    assert "axis 0 (spacing, origin)" in str(report.equivalent)
    assert (tmp_path / "a.csv").read_text() == "t,row,v\n0,0,1.0\n0,1,1.0\n"
