"""What pandas, pyarrow and openpyxl make of tables, and the tables that they write, for the pairs."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
from openpyxl.utils.escape import unescape
from pairs import NAME, Pairs
from pyarrow import feather, parquet

TIME = re.compile(r"-?\d+-\d\d-\d\d|NaT")
DURATION = re.compile(r"-?P|NaT")


def of_columns(table: pd.DataFrame, of_cells: Callable[[Any], np.ndarray]) -> np.ndarray:
    """The array of a long table: the columns before the last are its axes."""
    *axes, last = table.columns
    assert last == NAME
    shape = [table[axis].nunique() for axis in axes]
    return of_cells(table[last]).reshape(shape)


def from_csv(path: Path) -> np.ndarray:
    return of_columns(pd.read_csv(path, dtype=str, keep_default_na=False), _of_text)


def _of_text(cells: pd.Series) -> np.ndarray:
    """The values of the cells of a column, which pandas leaves as text."""
    texts = [str(one) for one in cells]
    if {*texts} <= {"true", "false"}:
        return np.array([one == "true" for one in texts])
    for of in (int, _real, _complex):
        try:
            return np.array([of(one) for one in texts])
        except (ValueError, OverflowError):
            continue
    if all(map(TIME.match, texts)):
        return np.array(texts, "M8")
    if all(map(DURATION.match, texts)):
        return np.array([_days(one) for one in texts], "m8[D]")
    return np.array(texts)


def _real(text: str) -> float:
    """A number; a NaN of bits of its own has them behind a colon."""
    word, _, bits = text.partition(":")
    if not bits:
        return float(text)
    payload = int(bits, 16) | 0x7FF8 << 48 | (0x8000 << 48 if word.startswith("-") else 0)
    return struct.unpack("<d", struct.pack("<Q", payload))[0]


def _complex(text: str) -> complex:
    return complex(re.sub(r"nan:0x[0-9a-f]+", "nan", text))


def _days(text: str) -> int:
    sign, days = re.fullmatch(r"(-?)P(\d+)D", text).groups()
    return int(sign + days)


def from_xlsx(path: Path) -> np.ndarray:
    book = openpyxl.load_workbook(path)
    headers, *rows = book.active.iter_rows(values_only=True)
    book.close()
    return of_columns(pd.DataFrame(rows, columns=headers, dtype=object), _of_cells)


def _of_cells(cells: pd.Series) -> np.ndarray:
    """The values of cells: a number is a double, and what is none of Excel's a word."""
    values = ["" if one is None else one for one in cells]
    if {type(one) for one in values} <= {bool}:
        return np.array(values, bool)
    if any(type(one) in (int, float) for one in values):
        return np.array([_real(one) if isinstance(one, str) else one for one in values], float)
    return _of_text(pd.Series([unescape(str(one)) for one in values], dtype=object))


def from_arrow(path: Path) -> np.ndarray:
    read = parquet.read_table if path.suffix == ".parquet" else feather.read_table
    table = read(path)
    *axes, last = table.column_names
    assert last == NAME
    column = table.column(NAME).combine_chunks()
    rows, inner = [len(table)], []
    if isinstance(column.type, pa.FixedShapeTensorType):
        inner, column = column.type.shape, column.storage
    while pa.types.is_fixed_size_list(column.type):
        inner = inner or [column.type.list_size]
        column = column.flatten()
    shape = [*([len(set(table.column(axis).to_pylist())) for axis in axes] or rows), *inner]
    if pa.types.is_fixed_size_binary(column.type):
        return np.frombuffer(b"".join(column.to_pylist()), f"V{column.type.byte_width}").reshape(
            shape
        )
    if pa.types.is_string(column.type):
        return np.array(column.to_pylist(), str).reshape(shape)
    return column.to_numpy(zero_copy_only=False).reshape(shape)


def long(values: np.ndarray) -> pd.DataFrame:
    """A long table of an array."""
    axes = {f"dim_{n}": axis.ravel() for n, axis in enumerate(np.indices(values.shape))}
    return pd.DataFrame({**axes, NAME: values.ravel()})


def to_csv(path: Path, values: np.ndarray) -> None:
    long(values).to_csv(path, index=False)


def to_xlsx(path: Path, values: np.ndarray) -> None:
    long(values).to_excel(path, index=False, engine="openpyxl")


def to_arrow(path: Path, values: np.ndarray) -> None:
    """Rows of numbers, or of tensors of them."""
    flat: Any = pa.array(values.reshape(-1))
    for length in values.shape[:0:-1][:1] if values.ndim == 2 else ():
        flat = pa.FixedSizeListArray.from_arrays(flat, length)
    if values.ndim > 2:
        flat = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(values))
    table = pa.table({NAME: flat})
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path, compression="uncompressed")


def as_arrow(values: np.ndarray) -> bool:
    """True for numbers that pyarrow has as such, in its byte order."""
    known = values.dtype.kind in "iuf" and values.dtype.isnative and values.dtype.isbuiltin == 1
    return known and values.ndim > 0 and 0 not in values.shape[1:]


def as_cells(values: np.ndarray) -> bool:
    """True for what a cell has a type for, and a table without a record has the shape of."""
    whole = values.dtype in ("f8", "?") and values.size > 0 and values.ndim > 0
    return whole and bool(np.isfinite(values).all())  # pandas has no words for NaN of all bits


_SHAPES = "= * ~ () x 4,0 2,0,3 3,0,2"
_EXACT = """
    = bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
      int16_big uint16_big int64_big float32_big datetime void
"""
_FORMS = "complex64 complex128 complex128_big bfloat16 timedelta bytes text text_big x structured"
_LONG = "x 0,4 4,0 2,0,3 3,0,2 ~ *"

IN_PAIRS = (
    Pairs(
        name="parquet", suffix=".parquet", read=from_arrow, write=to_arrow, can_write=as_arrow,
        order="C", guest=True, keeps=True, types=f"{_EXACT} ~ seconds {_FORMS}", shapes=_SHAPES,
    ),
    Pairs(
        name="arrow", suffix=".arrow", read=from_arrow, write=to_arrow, can_write=as_arrow,
        order="C", guest=True, keeps=True, types=f"{_EXACT} seconds ~ {_FORMS}", shapes=_SHAPES,
    ),
    Pairs(
        name="csv", suffix=".csv", read=from_csv, write=to_csv, can_write=as_cells,
        order="C", guest=True, usual="bool", types="x void structured ~ *", shapes=_LONG,
    ),
    Pairs(
        name="xlsx", suffix=".xlsx", read=from_xlsx, write=to_xlsx,
        can_write=as_cells,
        order="C", guest=True, usual="bool", keeps=True,
        types="""
            = bool float64
            ~ text text_big int8 int16 int32 uint8 uint16 uint32 float16 bfloat16 float32 int16_big uint16_big
              float32_big bytes datetime seconds timedelta
            x int64 uint64 int64_big complex64 complex128 complex128_big void structured
        """,
        shapes="x 0,4 4,0 2,0,3 3,0,2 ~ () = *",
    ),
)  # fmt: skip
