"""ASCII tables (XTENSION TABLE): columns of characters, which are text or decimal numbers."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.dtypes import element_of
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported
from raconvert.plugin import Array, Metadata, element

from .columns import Rows
from .header import whole
from .metadata import attributes_of, namespace_of
from .packed import elements_at
from .tables import MAX_COLUMNS, NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.plugin import Source

    from .header import Unit

    Values = np.ndarray[Any, Any]

__all__ = ["ascii_table_of"]

_FORM = re.compile(r"([AIFED])([1-9]\d{0,8})(?:\.(\d{1,4}))?")
_WHOLE = re.compile(rb"[+-]?\d{1,19}")
_REAL = re.compile(rb"[+-]?(?:\d+\.\d*|\.\d+)(?:[ED]?[+-]\d+|[ED]\d+)?|[+-]?\d+[ED][+-]?\d+")
_KEYWORDS = ("TUNIT", "TNULL", "TDISP", "TSCAL", "TZERO", "TFORM")


class _Column(Record):
    """A column: its name, the letter of its format, its first character in a row and its width."""

    name: str
    letter: str
    start: int
    width: int

    @property
    def field(self) -> tuple[str, str]:
        """The field of a structure that the column becomes."""
        return self.name, {"A": f"S{self.width}", "I": "<i8"}.get(self.letter, "<f8")


def ascii_table_of(source: Source, unit: Unit, name: str, notes: list[str], where: str) -> Array:
    """The array of structures of a table of characters. Raises `Corrupt` and `Unsupported`."""
    values = unit.values
    if values["BITPIX"] != 8 or values["NAXIS"] != 2:
        raise Corrupt(
            "table is not of characters in rows", path=source.path, where=where,
            expected="BITPIX 8, NAXIS 2",
            got=f"BITPIX {values['BITPIX']}, NAXIS {values['NAXIS']}",
        )  # fmt: skip
    width, rows = values["NAXIS1"], values["NAXIS2"]
    count = whole(source, values, "TFIELDS", where)
    if not 0 < count <= MAX_COLUMNS or not width:
        raise Corrupt(
            "has no columns, or too many", path=source.path, where=where,
            expected=f"1 to {MAX_COLUMNS}", got=count,
        )  # fmt: skip
    columns, keywords = [], {}
    names: set[str] = set()
    for n in range(1, count + 1):
        column = _column(source, unit, n, names, where)
        columns.append(column)
        keywords[column.name] = {k: values[f"{k}{n}"] for k in _KEYWORDS if f"{k}{n}" in values}
    dtype = np.dtype([column.field for column in columns])
    own = namespace_of(unit, notes, name) | {"columns": keywords, "kind": "TABLE"}
    raw = Array(
        element("uint", 1), (width, rows), name=name, index_order="C",
        **elements_at(source, unit.offset, (rows, width), element("uint", 1)),
    )  # fmt: skip
    return Array(
        element_of(dtype), (rows,), name=name, index_order="C",
        meta=Metadata(attributes=attributes_of(unit), formats={NAMESPACE: own}),
        data=lambda: Rows(raw, dtype, _decoder(columns, dtype, source.path, where)),
    )  # fmt: skip


def _column(source: Source, unit: Unit, n: int, names: set[str], where: str) -> _Column:
    """Column `n`, counted from 1; its name is added to `names`. Raises `Corrupt`."""
    values = unit.values
    form = values.get(f"TFORM{n}")
    match = _FORM.fullmatch(form.strip()) if isinstance(form, str) else None
    if match is None:
        raise Corrupt(
            f"TFORM{n} is missing or malformed", path=source.path, where=where,
            expected="A, I, F, E or D with a width", got=str(form)[:40],
        )  # fmt: skip
    begin, width = whole(source, values, f"TBCOL{n}", where) - 1, int(match[2])
    if not 0 <= begin <= values["NAXIS1"] - width:
        raise Corrupt(
            f"column {n} lies outside the rows", path=source.path, where=where,
            expected=f"within {values['NAXIS1']} characters", got=f"{width} at {begin + 1}",
        )  # fmt: skip
    title = values.get(f"TTYPE{n}")
    name = title if isinstance(title, str) and title else f"col{n}"
    name = name if name not in names else f"{name}_{n}"
    names.add(name)
    return _Column(name, match[1], begin, width)


def _decoder(
    columns: list[_Column], dtype: np.dtype[Any], path: str, where: str
) -> Callable[[Values], Values]:
    """The function that converts rows of characters to structures."""

    def decode(rows: Values) -> Values:
        out = np.empty(len(rows), dtype)
        for column in columns:
            raw = np.ascontiguousarray(rows[:, column.start : column.start + column.width])
            cells = raw.view(f"S{column.width}")[:, 0]
            out[column.name] = cells if column.letter == "A" else _numbers(cells, column, where)
        return out

    def _numbers(cells: Values, column: _Column, where: str) -> list[int | float]:
        words = [bytes(cell).strip() for cell in cells]
        pattern = _WHOLE if column.letter == "I" else _REAL
        for word in words:
            if pattern.fullmatch(word) is None:
                raise Unsupported(
                    f"column '{column.name[:80]}' has a cell without a number",
                    path=path, where=where, expected="decimal numbers with a point"
                    if column.letter != "I" else "whole numbers", got=repr(word[:40]),
                )  # fmt: skip
        try:
            if column.letter == "I":
                return list(np.array([int(word) for word in words], np.int64))
            return [_real(word) for word in words]
        except OverflowError as error:
            raise Corrupt(
                f"column '{column.name[:80]}' has a number of more than 64 bits", path=path,
                where=where,
            ) from error  # fmt: skip

    return decode


def _real(word: bytes) -> float:
    """A number of Fortran, whose exponent may be D, or a sign alone. Raises `OverflowError`."""
    text = word.decode("ascii").replace("D", "E")
    if "E" not in text:
        text = re.sub(r"(?<=[\d.])([+-]\d+)$", r"E\1", text)
    number = float(text)
    if not isfinite(number):
        raise OverflowError(text)
    return number
