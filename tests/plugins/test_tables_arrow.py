"""Parquet and Arrow: what pandas and pyarrow read and write, exactly, and what must be refused."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st

import raconvert
from raconvert import Array, Bundle, Metadata
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported, WouldLose
from raconvert.files.limits import Limits
from raconvert.files.source import Source
from raconvert.plugin import Axis
from raconvert.registry import by_name, load

FORMATS = ("parquet", "arrow")
PLUGINS = {name: load(by_name(name)) for name in FORMATS}


def save(path: Path, table: pa.Table, **options: Any) -> Path:
    """Write a table by pyarrow, in the format of the suffix."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, **options)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, **options)
    return path


def loaded(path: Path) -> pa.Table:
    """Read a table by pyarrow."""
    if path.suffix == ".parquet":
        return pq.read_table(path)
    with pa.ipc.open_file(path) as file:
        return file.read_all()


def arrays(path: Path, **options: Any) -> dict[str, np.ndarray]:
    with raconvert.open_bundle(path, in_opts=options) as bundle:
        return {array.name: np.array(array) for array in bundle.arrays}


def decode(plugin: Any, path: Path, limits: Limits | None = None, **options: Any) -> None:
    """Read every element of a file."""
    source = Source(str(path), max_memory=64 << 20, limits=limits)
    with plugin.read(source, **options) as bundle:
        for array in bundle.arrays:
            np.asarray(array)


def values_of(column: pa.ChunkedArray) -> np.ndarray:
    """The values of a column by pyarrow's own conversions, tensors by `to_numpy_ndarray`."""
    cells = column.combine_chunks()
    if isinstance(cells.type, pa.FixedShapeTensorType):
        if pa.types.is_boolean(cells.type.value_type):
            flat = cells.storage.flatten().to_numpy(zero_copy_only=False)
            return flat.reshape(len(cells), *cells.type.shape)
        return cells.to_numpy_ndarray()
    if pa.types.is_fixed_size_list(cells.type):
        return cells.flatten().to_numpy(zero_copy_only=False).reshape(len(cells), -1)
    return cells.to_numpy(zero_copy_only=False)


BOTH = every("name", FORMATS)
RNG = np.random.default_rng(11)


def some(dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape))
    if dtype.kind == "b":
        return RNG.integers(0, 2, shape).astype(bool)
    if dtype.kind == "U":
        return np.array(["é" * n for n in RNG.integers(0, 4, count)], dtype).reshape(shape)
    values = np.frombuffer(RNG.bytes(count * dtype.itemsize), dtype).reshape(shape).copy()
    if dtype.kind in "mM":
        return (values.view("i8") % 10**6).view(dtype)
    return values


# Writing: what pyarrow and pandas see --------------------------------------------------------------

NUMBERS = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")


@BOTH
def test_numbers_are_columns_of_their_type(name: str, tmp_path: Path) -> None:
    for kind in NUMBERS:
        values = some(np.dtype(kind), (50,))
        path = tmp_path / f"{np.dtype(kind).name}.{name}"
        raconvert.write(path, values)
        (column,) = loaded(path).columns
        assert column.type == pa.from_numpy_dtype(values.dtype)
        assert column.null_count == 0
        assert values_of(column).tobytes() == values.tobytes()


@BOTH
def test_tensors_are_those_of_arrow(name: str, tmp_path: Path) -> None:
    values = some(np.dtype("f4"), (5, 2, 3, 4))
    meta = Metadata(axes=[Axis("n"), Axis("z"), Axis("y"), Axis("x")])
    raconvert.write(tmp_path / f"x.{name}", values, meta=meta)
    column = loaded(tmp_path / f"x.{name}")["x"]

    assert isinstance(column.type, pa.FixedShapeTensorType)
    assert (column.type.shape, column.type.dim_names) == ([2, 3, 4], ["z", "y", "x"])
    assert values_of(column).tobytes() == values.tobytes()
    with raconvert.open_bundle(tmp_path / f"x.{name}") as bundle:
        assert bundle.arrays[0].meta == meta


@BOTH
def test_labels_are_dictionaries_in_a_long_table(name: str, tmp_path: Path) -> None:
    values = np.arange(12, dtype="f4").reshape(2, 3, 2)
    axes = [Axis("COMM", labels=["steel", "food"]), Axis("REG", labels=["US", "EU", "ROW"]),
            Axis("YEAR", labels=[2020, 2025])]  # fmt: skip
    meta = Metadata("exports", units="USD", axes=axes, attributes={"by": ["hand", 1.5]})
    raconvert.write(tmp_path / f"x.{name}", values, meta=meta)
    table = loaded(tmp_path / f"x.{name}")

    assert table.column_names == ["COMM", "REG", "YEAR", "x"]
    assert pa.types.is_dictionary(table.schema.field("REG").type)
    frame = table.to_pandas()
    assert frame["REG"].tolist()[:4] == ["US", "US", "EU", "EU"]
    assert np.array_equal(frame["x"].to_numpy().reshape(2, 3, 2), values)
    with raconvert.open_bundle(tmp_path / f"x.{name}") as bundle:
        (array,) = bundle.arrays
        assert array.meta == meta
        assert np.array_equal(array, values)
    # As anybody else reads it, and would write it.
    save(tmp_path / f"y.{name}", pa.Table.from_pandas(frame).replace_schema_metadata())
    with raconvert.open_bundle(tmp_path / f"y.{name}") as bundle:
        (array,) = bundle.arrays
        assert [axis.labels for axis in array.axes[:2]] == [("steel", "food"), ("US", "EU", "ROW")]
        assert np.array_equal(array, values)


@BOTH
def test_wide_and_back(name: str, tmp_path: Path) -> None:
    values = np.arange(12, dtype="f4").reshape(2, 3, 2)
    axes = [
        Axis("COMM", labels=["steel", "food"]),
        Axis("REG", labels=["US", "EU", "ROW"]),
        Axis("t"),
    ]
    meta = Metadata("exports", axes=axes)
    raconvert.write(tmp_path / f"x.{name}", values, meta=meta, out_opts={"wide": "REG"})
    table = loaded(tmp_path / f"x.{name}")

    assert table.column_names == ["COMM", "t", "US", "EU", "ROW"]
    assert np.array_equal(values_of(table["EU"]).reshape(2, 2), values[:, 1])
    with raconvert.open_bundle(tmp_path / f"x.{name}") as bundle:
        (array,) = bundle.arrays
        assert array.shape == (2, 3, 2)
        assert np.array_equal(array, values)
        assert array.meta == meta


@BOTH
def test_days_beyond_dates_are_named(name: str, tmp_path: Path) -> None:
    """Days of 32 bits are dates; others are int64 for other programs, which a note says."""
    for last, of in ((2**31 - 1, pa.date32()), (2**31, pa.int64())):
        days = np.array([-5, last], "M8[D]")
        records = np.array([(days[1], 1)], [("d", "M8[D]"), ("n", "i4")])
        for values, said in ((days, "'x'"), (records, "'x.d'")):
            report = raconvert.write(tmp_path / f"x.{name}", values, overwrite=True)
            assert loaded(tmp_path / f"x.{name}").columns[0].type == of
            named = [note for note in report.notes if "whole numbers for other programs" in note]
            assert len(named) == (of == pa.int64())
            assert all(said in note for note in named)
            (back,) = raconvert.read(tmp_path / f"x.{name}").values()
            assert np.array_equal(back, values)


@BOTH
def test_times_are_timestamps(name: str, tmp_path: Path) -> None:
    for kind, of in (("M8[ns]", pa.timestamp("ns")), ("M8[us]", pa.timestamp("us")),
                     ("M8[ms]", pa.timestamp("ms")), ("M8[D]", pa.date32()),
                     ("m8[s]", pa.duration("s")), ("m8[ns]", pa.duration("ns"))):  # fmt: skip
        values = some(np.dtype(kind), (20,))
        values[3] = "NaT"
        path = tmp_path / f"{kind[0]}{kind[3:-1]}.{name}"
        raconvert.write(path, values)
        (column,) = loaded(path).columns
        assert column.type == of
        assert column.null_count == 1
        with raconvert.open_bundle(path) as bundle:
            (array,) = bundle.arrays
            assert array.dtype == np.dtype(kind)
            assert np.asarray(array).tobytes() == values.tobytes()


@BOTH
def test_masks_are_nulls(name: str, tmp_path: Path) -> None:
    values, mask = np.array([1.5, np.nan, 7.0]), np.array([False, False, True])
    meta = Metadata(formats={"table": {"companions": {"x.null": "nulls"}}})
    made = [Array(values, name="x", meta=meta), Array(mask, name="x.null")]
    raconvert.write(tmp_path / f"x.{name}", Bundle(made))
    table = loaded(tmp_path / f"x.{name}")

    assert table.column_names == ["x"]
    assert table["x"].is_null().to_pylist() == [False, False, True]
    found = arrays(tmp_path / f"x.{name}")
    assert found["x.null"].tolist() == mask.tolist()
    assert np.isnan(found["x"]).tolist() == [False, True, True]
    with pytest.raises(WouldLose, match="missing"):
        raconvert.convert(tmp_path / f"x.{name}", tmp_path / "y.npy", arrays=["x"])


@BOTH
def test_structures_are_tables(name: str, tmp_path: Path) -> None:
    values = np.array([(1, 2.5, "é"), (-3, np.nan, "")], [("n", "i2"), ("x", "f4"), ("t", "U3")])
    raconvert.write(tmp_path / f"x.{name}", values)
    table = loaded(tmp_path / f"x.{name}")

    assert [field.type for field in table.schema] == [pa.int16(), pa.float32(), pa.string()]
    assert table["t"].to_pylist() == ["é", ""]
    assert arrays(tmp_path / f"x.{name}")["x"].tobytes() == values.tobytes()
    save(tmp_path / f"y.{name}", table.replace_schema_metadata())
    back = arrays(tmp_path / f"y.{name}")["y"]
    assert back.dtype == np.dtype([("n", "i2"), ("x", "f4"), ("t", "U1")])


@BOTH
def test_complex_and_bfloat16_come_back(name: str, tmp_path: Path) -> None:
    for kind in (np.dtype("c8"), np.dtype("c16"), np.dtype(ml_dtypes.bfloat16)):
        for shape in ((6,), (3, 4)):
            values = some(kind, shape)
            path = tmp_path / f"{kind.name}{len(shape)}.{name}"
            raconvert.write(path, values)
            back = next(iter(arrays(path).values()))
            assert back.dtype == kind
            assert back.tobytes() == values.tobytes()


# Reading what others write --------------------------------------------------------------------------

OTHERS: dict[str, tuple[pa.Array, str, Any]] = {  # column -> type, values
    "large_string": (pa.array(["a", "bcd"], pa.large_string()), "U3", ["a", "bcd"]),
    "binary": (pa.array([b"a\xff", b"b"]), "S2", [b"a\xff", b"b"]),
    "uuid": (pa.array([b"a" * 16, b"\0" * 16], pa.binary(16)), "V16", None),
    "date64": (pa.array([0, 86400000], pa.date64()), "M8[ms]", None),
    "time": (pa.array([1, 2], pa.time64("us")), "m8[us]", None),
    "zone": (pa.array([0, 1], pa.timestamp("ms", "Europe/Oslo")), "M8[ms]", None),
    "dictionary": (pa.array(["b", "a"]).dictionary_encode(), "U1", ["b", "a"]),
    "nothing": (pa.nulls(2), "f8", None),
    "uint64": (pa.array([(1 << 64) - 1, 0], pa.uint64()), "u8", [(1 << 64) - 1, 0]),
    "int with nulls": (pa.array([1, None]), "i8", [1, 0]),
    "slice": (pa.array([9, 5, 6, 7])[1:3], "i8", [5, 6]),
    "bool with nulls": (pa.array([None, True]), "?", [False, True]),
}


@BOTH
def test_columns_of_others(name: str, tmp_path: Path) -> None:
    for what, (column, kind, values) in OTHERS.items():
        path = save(tmp_path / f"{what.replace(' ', '_')}.{name}", pa.table({"v": column}))
        found = arrays(path, layout="columns")["v"]
        if not (name == "parquet" and what == "date64"):  # Parquet has days only
            assert found.dtype == np.dtype(kind), what
        if values is not None:
            assert found.tolist() == values, what


@BOTH
def test_zones_are_kept_as_metadata(name: str, tmp_path: Path) -> None:
    path = save(tmp_path / f"x.{name}", pa.table({"v": OTHERS["zone"][0]}))
    with raconvert.open_bundle(path) as bundle:
        assert bundle.arrays[0].meta.attributes == {"timezone": "Europe/Oslo"}


@BOTH
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0, 2), (2, 1, 0)])
def test_permuted_tensors(name: str, order: tuple[int, ...], tmp_path: Path) -> None:
    physical = np.arange(2 * 3 * 4 * 5, dtype="i4").reshape(2, 3, 4, 5)
    of = pa.fixed_shape_tensor(pa.int32(), (3, 4, 5), permutation=order, dim_names=["a", "b", "c"])
    cells = pa.FixedSizeListArray.from_arrays(pa.array(physical.reshape(-1)), 60)
    path = save(tmp_path / f"x.{name}", pa.table({"v": pa.ExtensionArray.from_storage(of, cells)}))
    with raconvert.open_bundle(path) as bundle:
        (array,) = bundle.arrays
        logical = physical.transpose(0, *(n + 1 for n in order))
        assert array.shape == logical.shape
        assert np.array_equal(array, logical)
        assert [axis.name for axis in array.axes] == [None, *("abc"[n] for n in order)]


@BOTH
def test_columns_that_no_type_holds_have_their_place(name: str, tmp_path: Path) -> None:
    from decimal import Decimal

    columns = {
        "list": pa.array([[1], [2, 3]]), "struct": pa.array([{"a": 1}, {"a": 2}]),
        "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        "decimal": pa.array([Decimal("1.50"), Decimal("-2.25")]),
        "nul": pa.array(["a\0", "b"]), "fine": pa.array([1, 2]),
    }  # fmt: skip
    path = save(tmp_path / f"x.{name}", pa.table(columns))
    with raconvert.open_bundle(path) as bundle:
        problems = {array.name: array.problem for array in bundle.arrays}
        assert [key for key, problem in problems.items() if problem is None] == ["fine"]
        assert "decimal" in str(problems["decimal"])
    with pytest.raises(WouldLose, match="list<"):
        raconvert.convert(path, tmp_path / "y.npz")
    found = arrays(
        save(tmp_path / f"d.{name}", pa.table({"decimal": columns["decimal"]})), decimals="text"
    )
    assert found["decimal"].tolist() == ["1.50", "-2.25"]


@BOTH
def test_pandas_and_polars_like_frames(name: str, tmp_path: Path) -> None:
    index = pd.MultiIndex.from_product([["b", "a"], [2001, 2003]], names=["r", "y"])
    frame = pd.DataFrame({"v": [1.5, 2.5, np.nan, 4.5]}, index=index).reset_index()
    path = tmp_path / f"x.{name}"
    frame.to_parquet(path) if name == "parquet" else frame.to_feather(path)
    found = arrays(path)

    assert found["v"].shape == (2, 2)
    assert "v.null" in found  # pandas writes NaN as null
    back = tmp_path / f"y.{name}"
    raconvert.convert(path, back)
    again = pd.read_parquet(back) if name == "parquet" else pd.read_feather(back)
    assert again["v"].isna().tolist() == [False, False, True, False]
    assert again["r"].tolist() == frame["r"].tolist()


@settings(max_examples=30, deadline=None)
@given(
    kind=st.sampled_from(NUMBERS),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    groups=st.integers(1, 5),
    name=st.sampled_from(FORMATS),
)
def test_any_tensor_of_pyarrow(
    kind: str, shape: list[int], groups: int, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    values = some(np.dtype(kind), tuple(shape))
    flat = pa.array(values.reshape(-1))
    column: Any = flat
    if len(shape) > 1:
        inner = tuple(shape[1:])
        lists = pa.FixedSizeListArray.from_arrays(flat, int(np.prod(inner)))
        column = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(flat.type, inner), lists)
    path = tmp_path_factory.mktemp("arrow") / f"x.{name}"
    options = {"row_group_size": groups} if name == "parquet" else {"max_chunksize": groups}
    save(path, pa.table({"v": column}), **options)
    with raconvert.open_bundle(path) as bundle:
        (array,) = bundle.arrays
        assert array.dtype == values.dtype
        assert np.asarray(array).tobytes() == values.tobytes()
    raconvert.convert(path, path.with_name(f"y.{name}"))
    assert values_of(loaded(path.with_name(f"y.{name}"))["v"]).tobytes() == values.tobytes()


def test_a_file_larger_than_memory_goes_through(tmp_path: Path) -> None:
    values = np.arange(3_000_000, dtype="f8").reshape(-1, 3)
    raconvert.write(tmp_path / "x.npy", values)
    raconvert.convert(tmp_path / "x.npy", tmp_path / "x.parquet", max_memory=16 << 20)
    raconvert.convert(tmp_path / "x.parquet", tmp_path / "y.npy", max_memory=16 << 20)
    assert np.array_equal(np.load(tmp_path / "y.npy"), values)
    assert pq.ParquetFile(tmp_path / "x.parquet").num_row_groups > 1


@BOTH
def test_an_edited_table_is_read_anew(name: str, tmp_path: Path) -> None:
    raconvert.write(
        tmp_path / f"x.{name}", np.arange(6.0).reshape(2, 3), out_opts={"layout": "long"}
    )
    table = loaded(tmp_path / f"x.{name}")
    save(tmp_path / f"y.{name}", table.slice(0, 5))
    with raconvert.open_bundle(tmp_path / f"y.{name}") as bundle:
        assert any("not so any more" in note for note in bundle.notes)
        assert bundle.arrays[0].shape == (5,)
    said = table.schema.metadata[b"raconvert"]
    for text in (b"{}", b"x", said[:-2], said.replace(b"long", b"lang"), said.replace(b"2,3", b"-2,3"),
                 said.replace(b'"<f8"', b'"|O"'), said.replace(b'"axes":[', b'"axes":[1,', 1),
                 b'{"raconvert":1,"tables":{"x":' + b"[" * 5000 + b"]" * 5000 + b"}}"):  # fmt: skip
        save(tmp_path / f"z.{name}", table.replace_schema_metadata({b"raconvert": text}))
        found = arrays(tmp_path / f"z.{name}")
        assert sum(values.size for values in found.values()) == 6


# Hostile --------------------------------------------------------------------------------------------


def parquet_file(**options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}), sink, **options)
    return sink.getvalue().to_pybytes()


def arrow_file() -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def with_footer(footer: bytes) -> bytes:
    return b"PAR1" + bytes(64) + footer + struct.pack("<I", len(footer)) + b"PAR1"


def footer_of(data: bytes) -> bytes:
    length = struct.unpack("<I", data[-8:-4])[0]
    return data[-8 - length : -8]


def changed_footer(old: bytes, new: bytes) -> bytes:
    data = parquet_file(store_schema=False)
    footer = footer_of(data)
    assert old in footer
    replaced = footer.replace(old, new, 1)
    return data[: -8 - len(footer)] + replaced + struct.pack("<I", len(replaced)) + b"PAR1"


SCHEMA = b"\x15\x04\x19\x2c\x48\x06schema\x15\x02"  # version 2, two elements, the root of one
BOMB = b"\x15\x04\x19\xfc" + b"\xff\xff\x03" + b"\x00" * 65535  # 65,535 empty elements
HOSTILE_PARQUET: dict[str, bytes] = {
    "only the magic": b"PAR1",
    "both magics": b"PAR1PAR1",
    "no magic at the end": parquet_file()[:-4] + b"PAR2",
    "half a file": parquet_file()[:200],
    "a footer of 4 GB": parquet_file()[:-8] + b"\xff\xff\xff\xffPAR1",
    "a footer longer than the file": parquet_file()[:-8] + struct.pack("<I", 100_000) + b"PAR1",
    "a footer of no bytes": with_footer(b""),
    "a footer of zeros": with_footer(bytes(1000)),
    "a footer of ones": with_footer(b"\xff" * 1000),
    "an encrypted footer": parquet_file()[:-4] + b"PARE",
    "nothing but a version": with_footer(b"\x15\x04\x00"),
    "a list of 2**31 elements": with_footer(b"\x15\x04\x19\xfc\xff\xff\xff\xff\x07"),
    "a list of 65,535 empty elements": with_footer(BOMB),
    "empty structures by the million": with_footer(b"\x15\x04\x19\xfc\x80\x89\x7a" + bytes(2_000_000)),
    "structures inside structures": with_footer(b"\x1c" * 100_000),
    "lists inside lists": with_footer(b"\x15\x04\x29" + b"\x19" * 100_000),
    "a text of 2**31 bytes": with_footer(b"\x15\x04\x68\xff\xff\xff\xff\x07"),
    "a number of 20 bytes": with_footer(b"\x15" + b"\xff" * 20 + b"\x00"),
    "a schema of one root": with_footer(SCHEMA + b"\x00" + b"\x16\x00\x19\x0c\x00"),
    "another number of rows": changed_footer(b"\x16\x06\x19\x1c", b"\x16\x08\x19\x1c"),
    "the column of another name": changed_footer(b"\x18\x01a", b"\x18\x01c"),
    "a mapping of 2**31 pairs": with_footer(b"\x15\x04\x1b\xff\xff\xff\xff\x07\x88"),
}  # fmt: skip


@every("name", HOSTILE_PARQUET)
def test_hostile_parquet_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(HOSTILE_PARQUET[name])
    with pytest.raises((Corrupt, TooLarge, Unsupported)) as caught:
        decode(PLUGINS["parquet"], path)
    assert "x.parquet" in str(caught.value)


def changed_arrow(at: int, new: bytes) -> bytes:
    data = bytearray(arrow_file())
    data[at if at >= 0 else len(data) + at :][: len(new)] = new
    start = at if at >= 0 else len(data) + at
    data[start : start + len(new)] = new
    return bytes(data)


BATCH = arrow_file().rindex(struct.pack("<q", 184))  # in the footer: place and lengths of the batch
HOSTILE_ARROW: dict[str, bytes] = {
    "only the magic": b"ARROW1\0\0",
    "both magics": b"ARROW1\0\0ARROW1",
    "no magic at the end": arrow_file()[:-1] + b"2",
    "half a file": arrow_file()[:300],
    "a footer of 2**31 - 1": changed_arrow(-10, b"\xff\xff\xff\x7f"),
    "a footer below 0": changed_arrow(-10, b"\xff\xff\xff\xff"),
    "a footer of no bytes": changed_arrow(-10, bytes(4)),
    "a footer of zeros": arrow_file()[:-110] + bytes(100) + arrow_file()[-10:],
    "a footer of ones": arrow_file()[:-110] + b"\xff" * 100 + arrow_file()[-10:],
    "a stream": b"\xff\xff\xff\xff" + arrow_file()[12:],
    "no batches where they are": arrow_file()[:8] + bytes(len(arrow_file()) - 300) + arrow_file()[-292:],
    "a batch behind the end": changed_arrow(BATCH, struct.pack("<q", 1 << 40)),
    "a batch before the file": changed_arrow(BATCH, struct.pack("<q", -8)),
    "a batch described by 2**31 - 1 bytes": changed_arrow(BATCH + 8, b"\xff\xff\xff\x7f"),
    "a batch of an exabyte": changed_arrow(BATCH + 16, struct.pack("<q", 1 << 60)),
    "a batch of 2**62 rows": changed_arrow(256, struct.pack("<q", 1 << 62)),
    "a column of 2**62 rows": changed_arrow(360, struct.pack("<q", 1 << 62)),
    "elements behind their batch": changed_arrow(296, struct.pack("<q", 1 << 40)),
    "a text that ends before it begins": changed_arrow(420, struct.pack("<i", -5)),
    "a text behind all letters": changed_arrow(428, struct.pack("<i", 1 << 30)),
    "a type of nobody": changed_arrow(555, b"\x7f"),
}  # fmt: skip


@every("name", HOSTILE_ARROW)
def test_hostile_arrow_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    path.write_bytes(HOSTILE_ARROW[name])
    with pytest.raises((Corrupt, TooLarge, Unsupported)) as caught:
        decode(PLUGINS["arrow"], path)
    assert "x.arrow" in str(caught.value)


@BOTH
def test_any_damage_is_an_error_of_ours_or_none(name: str, tmp_path: Path) -> None:
    data = parquet_file(compression="zstd") if name == "parquet" else arrow_file()
    rng = np.random.default_rng(5)
    path = tmp_path / f"x.{name}"
    refused = fine = 0
    for _ in range(300):
        damaged = bytearray(data)
        for place in rng.integers(0, len(data), rng.integers(1, 4)).tolist():
            damaged[place] ^= 1 << int(rng.integers(0, 8))
        path.write_bytes(damaged)
        try:
            decode(PLUGINS[name], path)
            fine += 1
        except RaconvertError as error:
            refused += str(path) in str(error)
    assert refused + fine == 300
    assert refused > 30


@BOTH
def test_bounds_are_those_of_the_source(name: str, tmp_path: Path) -> None:
    path = save(tmp_path / f"x.{name}", pa.table({"a": ["x" * 100] * 50, "b": range(50)}))
    for limits in (Limits(table_columns=1), Limits(memory=1000)):
        with pytest.raises(TooLarge):
            decode(PLUGINS[name], path, limits, layout="columns")


@BOTH
def test_refusals_of_writing(name: str, tmp_path: Path) -> None:
    made = [Array(np.zeros(3), name="a"), Array(np.zeros(4), name="b")]
    with pytest.raises(WouldLose, match="over the same axes"):
        raconvert.write(tmp_path / f"x.{name}", Bundle(made))
    nested = np.zeros(2, [("a", [("b", "i4")])])
    with pytest.raises(WouldLose, match="a structure"):
        raconvert.write(tmp_path / f"x.{name}", nested)
    with pytest.raises(WouldLose, match="its axes are"):
        raconvert.write(tmp_path / f"x.{name}", np.zeros((2, 3)), out_opts={"wide": "y"})
    half = np.array(["\ud800"])
    with pytest.raises(WouldLose, match="surrogate"):
        raconvert.write(tmp_path / f"x.{name}", half)
    assert not list(tmp_path.iterdir())


@BOTH
def test_attributes_that_json_cannot_hold_are_named(name: str) -> None:
    array = Array(np.arange(3.0), name="x")
    bundle = Bundle([array], attributes={"deep": nested(100)})

    fits = load(by_name(name)).plan(bundle).fits

    assert any("attributes of the file" in str(fit) for fit in fits)
    assert not any("array 'x'" in str(fit) for fit in fits)


def nested(levels: int) -> list[Any]:
    return [nested(levels - 1)] if levels else []


@every("suffix", FORMATS)
def test_arrays_of_other_inner_shapes_are_columns_of_one_table(suffix: str, tmp_path: Path) -> None:
    held = {"x": np.arange(24).reshape(2, 3, 4), "y": np.arange(4.0).reshape(2, 2), "z": np.ones(2)}
    raconvert.write(tmp_path / f"a.{suffix}", held)
    found = arrays(tmp_path / f"a.{suffix}")
    assert {name: one.tolist() for name, one in found.items()} == {
        name: one.tolist() for name, one in held.items()
    }
    assert len(loaded(tmp_path / f"a.{suffix}")) == 2


@every("axis", [
    Axis("depth", spacing=0.5, direction=(1.0, 0.0), units="mm"),
    Axis("depth", labels=["a", "b", "c"], spacing=0.5, origin=2.0),
])  # fmt: skip
def test_an_axis_is_what_it_was_unless_its_cells_are_others(axis: Axis, tmp_path: Path) -> None:
    axes = [axis, Axis("place", labels=["x", "y"])]
    array = Array(np.arange(6.0).reshape(3, 2), name="v", meta=Metadata(axes=axes))
    raconvert.write(tmp_path / "a.parquet", array)
    with raconvert.open(tmp_path / "a.parquet", "v") as back:
        assert list(back.axes) == axes
    table = loaded(tmp_path / "a.parquet")
    save(tmp_path / "b.parquet", table.take([4, 5, 0, 1, 2, 3]))  # pyarrow keeps the record
    with raconvert.open(tmp_path / "b.parquet", "v") as back:
        assert np.array(back).tolist() == [[4, 5], [0, 1], [2, 3]]
        assert back.axes[0].spacing is None
        assert back.axes[0].direction is None
        assert back.axes[0].labels == (("c", "a", "b") if axis.labels else (2, 0, 1))
