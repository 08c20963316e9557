"""Columns of binary tables: rows of bytes decoded to structures, and structures encoded."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.dtypes import dtype_of, element_of
from raconvert.errors import Corrupt, Unsupported
from raconvert.plugin import Array, Metadata, element, first_of

from .header import card, fits_one_card, text_cards, whole
from .metadata import attributes_of, namespace_of
from .packed import elements_at
from .tables import AS_TEXT, BITS_OF, CODES, MAX_COLUMNS, MAX_RANK, NAMESPACE, OTHER_SIGN, Column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from raconvert.plugin import Element, Source

    from .header import Unit

    Values = np.ndarray[Any, Any]

__all__ = ["Rows", "column_cards", "columns_in", "columns_of", "packer", "table_of"]

_FORM = re.compile(r"(\d*)([LXBIJKAEDCMPQ])(.*)")
_LETTERS = {code: letter for letter, code in CODES.items()}
# Types of fields that a column holds with its highest bit flipped, by TZERO.
_FLIPPED = {"i1": "B", "u2": "I", "u4": "J", "u8": "K"}
# Keywords of a column that the namespace records, by the name of the column.
_KEYWORDS = ("TUNIT", "TNULL", "TDISP", "TSCAL", "TZERO")


# Reading ------------------------------------------------------------------------------------------


def table_of(
    source: Source, unit: Unit, name: str, notes: list[str], where: str, *, texts: bool
) -> list[Array]:
    """The arrays of a binary table: one of structures, and one for each column of variable length.

    With `texts`, logical values become texts of one character, empty for missing values.
    Raises `Corrupt` and `Unsupported`.
    """
    values = unit.values
    if values.get("ZTABLE") is True:
        raise Unsupported(
            "holds a compressed table", path=source.path, where=where,
            remedy="unpack it first: funpack FILE",
        )  # fmt: skip
    if values["BITPIX"] != 8 or values["NAXIS"] != 2:
        raise Corrupt(
            "table is not of bytes in rows", path=source.path, where=where,
            expected="BITPIX 8, NAXIS 2",
            got=f"BITPIX {values['BITPIX']}, NAXIS {values['NAXIS']}",
        )  # fmt: skip
    width, rows = values["NAXIS1"], values["NAXIS2"]
    columns, keywords = columns_in(source, unit, where)
    if texts:
        columns = [_as_text(column) for column in columns]
    used = sum(column.width for column in columns)
    if used != width or not width:
        raise Corrupt(
            "columns do not fill the rows", path=source.path, where=where,
            expected=f"{width} bytes", got=used,
        )  # fmt: skip
    dtype = np.dtype([_field(column) for column in columns if column.cells])
    scaled = [k for k, own in keywords.items() if {"TSCAL", "TZERO"} & own.keys()]
    if scaled:
        notes.append(
            f"array '{name}': columns are as stored, and the header has a scale of them: "
            f"{', '.join(scaled[:6])}{' ...' if len(scaled) > 6 else ''}"
        )
    if empty := [column.name for column in columns if not column.cells]:
        notes.append(f"array '{name}': columns of no width are left out: {first_of(empty)}")
    heaps = [
        _heap(source, unit, column, name, where)
        for column in columns
        if column.form and column.cells
    ]
    if heaps:
        notes.append(
            f"array '{name}': columns of variable length have the lengths of their cells, which "
            f"are {first_of([heap.name for heap in heaps])}"
        )
    own = namespace_of(unit, notes, name) | ({"columns": keywords} if keywords else {})
    meta = Metadata(attributes=attributes_of(unit), formats={NAMESPACE: own} if own else None)
    raw = Array(
        element("uint", 1), (width, rows), name=name, index_order="C",
        **elements_at(source, unit.offset, (rows, width), element("uint", 1)),
    )  # fmt: skip
    table = Array(
        element_of(dtype), (rows,), name=name, index_order="C", meta=meta,
        data=lambda: Rows(raw, dtype, _decoder(columns, dtype, source.path, where)),
    )  # fmt: skip
    return [table, *heaps]


def _as_text(column: Column) -> Column:
    """The column with its logical values as characters."""
    if column.code == "L":
        return column._replace(code="A", shape=(*column.shape, 1))
    return column._replace(form="A" + column.form[1:]) if column.form[:1] == "L" else column


def _heap(source: Source, unit: Unit, column: Column, table: str, where: str) -> Array:
    """The array of the cells of a column of variable length."""
    from .heap import heap_array

    flip = _other_sign if column.flipped else None
    return heap_array(source, unit, column, table, where, flip)


def columns_in(
    source: Source, unit: Unit, where: str
) -> tuple[list[Column], dict[str, dict[str, Any]]]:
    """The columns, and the keywords of each for the namespace. Raises `Corrupt`."""
    values = unit.values
    count = whole(source, values, "TFIELDS", where)
    if not 0 < count <= MAX_COLUMNS:
        raise Corrupt(
            "has no columns, or too many", path=source.path, where=where,
            expected=f"1 to {MAX_COLUMNS}", got=count,
        )  # fmt: skip
    columns: list[Column] = []
    keywords: dict[str, dict[str, Any]] = {}
    names: set[str] = set()
    at = 0
    for n in range(1, count + 1):
        title = values.get(f"TTYPE{n}")
        name = title if isinstance(title, str) and title else f"col{n}"
        name = name if name not in names else f"{name}_{n}"
        names.add(name)
        column, own = _column(source, unit, n, name, at, where)
        columns.append(column)
        if own:
            keywords[name] = own
        at += column.width
        if at > values["NAXIS1"]:
            raise Corrupt(
                "columns do not fill the rows", path=source.path, where=where,
                expected=f"{values['NAXIS1']} bytes", got=f"{at} or more",
            )  # fmt: skip
    return columns, keywords


def _column(
    source: Source, unit: Unit, n: int, name: str, at: int, where: str
) -> tuple[Column, dict[str, Any]]:
    """Column `n`, counted from 1, at byte `at` of a row, and its keywords. Raises `Corrupt`."""
    values = unit.values
    form = values.get(f"TFORM{n}")
    match = _FORM.match(form) if isinstance(form, str) else None
    if match is None or len(match[1]) > 18:
        raise Corrupt(
            f"TFORM{n} is missing or malformed", path=source.path, where=where,
            expected="a count and a letter", got=str(form)[:40],
        )  # fmt: skip
    repeat, code = int(match[1] or 1), match[2]
    heap = match[3] if code in "PQ" else ""
    if code in "PQ" and (repeat > 1 or not heap):
        raise Corrupt(
            f"TFORM{n} of a column of variable length is malformed", path=source.path, where=where,
            expected="0 or 1, P or Q, and the letter of a type", got=str(form)[:40],
        )  # fmt: skip
    slope, zero = values.get(f"TSCAL{n}", 1), values.get(f"TZERO{n}", 0)
    bits = BITS_OF.get(heap[:1] or code)
    flipped = slope == 1 and bits is not None and zero == OTHER_SIGN[bits]
    own = {key: values[f"{key}{n}"] for key in _KEYWORDS if f"{key}{n}" in values}
    if flipped or (slope == 1 and zero == 0):
        own = {key: value for key, value in own.items() if key not in ("TSCAL", "TZERO")}
    if code == "X":
        own["TFORM"] = "X"
    if heap:
        return Column(name, code, at, repeat, (), flipped, heap, own), {"TFORM": code + heap[:1]}
    shape = _dim(values.get(f"TDIM{n}"), repeat, code)
    return Column(name, code, at, repeat, shape, flipped), own


def _dim(text: Any, count: int, code: str) -> tuple[int, ...]:
    """The shape of a cell by TDIM, the slowest axis first; the last of text is its characters."""
    words = re.fullmatch(r"\(([\d, ]{1,200})\)", text.strip()) if isinstance(text, str) else None
    lengths = [int(word) for word in words[1].split(",") if word.strip()][::-1] if words else []
    if lengths and prod(lengths) == count and len(lengths) <= MAX_RANK // 2:
        return tuple(lengths)
    return (count,) if code == "A" or count != 1 else ()


def _field(column: Column) -> tuple[Any, ...]:
    """The field of a structure that a column becomes."""
    shape = column.shape
    if column.code == "A":
        return (column.name, f"S{shape[-1]}", shape[:-1])
    if column.form:
        return (column.name, "<i8", ())
    code = "?" if column.code in "LX" else "<" + CODES[column.code]
    if column.flipped:
        code = "i1" if column.code == "B" else code.replace("i", "u")
    return (column.name, code, shape)


def _decoder(
    columns: list[Column], dtype: np.dtype[Any], path: str, where: str
) -> Callable[[Values], Values]:
    """The function that converts rows of bytes to structures."""

    def decode(rows: Values) -> Values:
        out = np.empty(len(rows), dtype)
        for column in columns:
            if column.cells:
                raw = np.ascontiguousarray(rows[:, column.start : column.start + column.width])
                out[column.name] = _decoded(raw, column, path, where)
        return out

    return decode


def _decoded(raw: Values, column: Column, path: str, where: str) -> Values:
    """The cells of a column from their bytes."""
    shape = (len(raw), *column.shape)
    if column.form:
        return raw.view(">i4" if column.code == "P" else ">i8")[:, 0]
    if column.code == "A":
        return raw.view(f"S{column.shape[-1]}").reshape(shape[:-1])
    if column.code == "X":
        return np.unpackbits(raw, axis=1, count=column.cells).astype("?").reshape(shape)
    if column.code == "L":
        if not np.isin(raw, (84, 70)).all():
            raise Unsupported(
                f"column '{column.name}' has logical values that are neither T nor F",
                path=path, where=where, expected="T or F", got="missing values", remedy=AS_TEXT,
            )  # fmt: skip
        return np.asarray(raw == 84).reshape(shape)
    values: Values = raw.view(">" + CODES[column.code]).reshape(shape)
    return _other_sign(values) if column.flipped else values


def _other_sign(values: Values) -> Values:
    """Integers of the other signedness, with their highest bit flipped."""
    width = values.dtype.itemsize
    unsigned = np.dtype(f"u{width}")
    flipped: Values = values.astype(unsigned) ^ unsigned.type(1 << (8 * width - 1))
    return flipped.view(f"{'u' if values.dtype.kind == 'i' else 'i'}{width}")


class Rows:
    """Array source: rows of a table, decoded from their bytes."""

    def __init__(
        self, raw: Array, dtype: np.dtype[Any], decode: Callable[[Values], Values]
    ) -> None:
        self.shape = (raw.dims[1],)
        self.dtype = dtype
        self._raw = raw
        self._decode = decode

    def stream(self, max_bytes: int) -> Iterator[Any]:
        """Yield rows in order, in pieces of at most `max_bytes`."""
        width = max(self._raw.dims[0], self.dtype.itemsize, 1)
        step = max(1, max_bytes // width)
        for first in range(0, self.shape[0], step):
            yield self[first : first + step]

    def __getitem__(self, key: Any) -> Any:
        key = key[0] if isinstance(key, tuple) and len(key) == 1 else key
        if key is Ellipsis or key == ():
            key = slice(None)
        if isinstance(key, slice):
            return self._decode(self._raw[key])
        return self._decode(self._raw[key][None])[0]


# Writing ------------------------------------------------------------------------------------------


def columns_of(kind: Element, keywords: Mapping[str, Any]) -> list[Column] | str:
    """The columns that hold the fields of structures, or what FITS cannot hold of them."""
    names = dtype_of(kind).names
    if not names:
        return "elements that have no fields"
    if len(names) > MAX_COLUMNS:
        return f"more than {MAX_COLUMNS} fields"
    columns: list[Column] = []
    at = 0
    for name in names:
        own = keywords.get(name)
        bits = isinstance(own, dict) and own.get("TFORM") == "X"
        column = _column_of(name, dtype_of(kind)[name], at, bits=bits)
        if isinstance(column, str):
            return column
        columns.append(column)
        at += column.width
    lowered = {name.lower() for name in names}
    return columns if len(lowered) == len(names) else "names of fields that differ in case alone"


def _column_of(name: str, dtype: np.dtype[Any], at: int, *, bits: bool) -> Column | str:
    """The column for a field of this type at byte `at` of a row, or what cannot be held."""
    base, shape = (dtype.base, dtype.shape) if dtype.subdtype else (dtype, ())
    if not name or not fits_one_card(name):
        return f"a field {name[:40]!r}, whose name TTYPE cannot hold"
    if 0 in shape or not base.itemsize or len(shape) > MAX_RANK // 2:
        return f"a field {name[:40]!r} without elements, or of too many axes"
    code, flipped = base.str[1:], False
    if base.kind == "b":
        letter = "X" if bits else "L"
    elif base.kind == "S":
        letter, shape = "A", (*shape, base.itemsize)
    elif code in _LETTERS:
        letter = _LETTERS[code]
    elif code in _FLIPPED:
        letter, flipped = _FLIPPED[code], True
    else:
        return f"a field {name[:40]!r} of {base.name}"
    return Column(name, letter, at, prod(shape), shape, flipped)


def column_cards(columns: list[Column], keywords: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The cards of the columns of a table, and the names of the `keywords` without a card."""
    cards, lost = [card("TFIELDS", len(columns))], []
    for n, column in enumerate(columns, 1):
        own = keywords.get(column.name)
        own = own if isinstance(own, dict) else {}
        cards.append(card(f"TTYPE{n}", column.name))
        cards.append(card(f"TFORM{n}", f"{column.cells}{column.code}"))
        if len(column.shape) > 1 or (column.shape == (1,) and column.code != "A"):
            lengths = ",".join(map(str, column.shape[::-1]))
            cards.append(card(f"TDIM{n}", f"({lengths})"))
        if column.flipped:
            cards.append(card(f"TZERO{n}", OTHER_SIGN[BITS_OF[column.code]]))
        for key, value in own.items():
            of_keyword = _keyword_card(key, n, value, column)
            cards += of_keyword
            lost += [] if of_keyword or value == "X" else [f"{key} of '{column.name}'"]
    names = {column.name for column in columns}
    lost += [f"columns {name}" for name in keywords if name not in names]
    return cards, lost


def _keyword_card(key: str, n: int, value: Any, column: Column) -> list[str]:
    """The cards of a keyword of column `n`; empty if it has none."""
    if key not in _KEYWORDS or (column.flipped and key in ("TSCAL", "TZERO")):
        return []
    if key in ("TUNIT", "TDISP"):
        return text_cards(f"{key}{n}", value) if isinstance(value, str) else []
    wanted = (int,) if key == "TNULL" else (int, float)
    made = card(f"{key}{n}", value) if type(value) in wanted else ""
    return [made] if 0 < len(made) <= 80 else []


def packer(columns: list[Column]) -> Callable[[Values], Values]:
    """The function that converts a block of structures to rows of bytes."""
    width = sum(column.width for column in columns)

    def pack(block: Values) -> Values:
        rows = np.empty((block.size, width), np.uint8)
        for column in columns:
            values = np.ascontiguousarray(block.reshape(-1)[column.name])
            raw = _bytes_of(values, column).reshape(block.size, column.width)
            rows[:, column.start : column.start + column.width] = raw
        return rows.reshape(-1)

    return pack


def _bytes_of(values: Values, column: Column) -> Values:
    """The bytes of the cells of a column."""
    if column.code == "A":
        return values.view(np.uint8)
    if column.code == "X":
        flags = values.reshape(len(values), column.cells).view(np.uint8)
        return np.packbits(flags != 0, axis=1)
    if column.code == "L":
        return np.where(values.view(np.uint8) != 0, np.uint8(84), np.uint8(70))
    values = _other_sign(values) if column.flipped else values
    return np.ascontiguousarray(values, values.dtype.newbyteorder(">")).view(np.uint8)
