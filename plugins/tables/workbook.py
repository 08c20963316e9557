"""A workbook as tables: the used range of each sheet, its header and columns."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.memory import check_memory
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported, UsageError
from raconvert.metadata.reals import doubles, narrowed

from . import record as records
from .model import Column, Table, check_columns, missing_value, unique_names
from .sheets import Package, book_of, cells_of, properties_of, styles_of, texts_of
from .words import common, dtype_of_kind, kind_of, parsed, spelled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from raconvert.plugin import Source

    from .model import Piece
    from .sheets import Cells

    Values = np.ndarray[Any, Any]
    Cell = tuple[str, Any]

PROPERTY = "raconvert "  # with a number behind it: the pieces of the record
DAY = 86_400_000  # milliseconds
_1970 = date(1970, 1, 1).toordinal()
_EPOCHS = {
    False: date(1899, 12, 30).toordinal() - _1970,
    True: date(1904, 1, 1).toordinal() - _1970,
}


class Workbook(Record):
    """The tables of a workbook, notes about it, and the facts of the file in its record."""

    tables: list[Table]
    notes: list[str]
    of_file: dict[str, Any]


class SheetTable(Table):
    """The table of a sheet, in memory."""

    cheap = True

    def __init__(
        self, source: Source, name: str, columns: list[Column], cells: list[Piece]
    ) -> None:
        rows = len(cells[0][0]) if cells else 0
        super().__init__(source, name, columns, rows)
        self._cells = cells

    @property
    def label(self) -> str:
        """The sheet in messages."""
        return f"'{self.source.path}': sheet '{self.name}'"

    def pieces(self, numbers: Sequence[int], max_bytes: int) -> Iterator[list[Piece]]:
        """Yield slices of the columns."""
        width = sum(self.columns[n].nbytes for n in numbers)
        step = max(1, max_bytes // max(1, width))
        for start in range(0, self.rows, step):
            part = slice(start, start + step)
            cells = [self._cells[n] for n in numbers]
            yield [(v[part], None if mask is None else mask[part]) for v, mask in cells]


def open_workbook(source: Source, *, header: str, sheet: str) -> Workbook:
    """Read all cells of a workbook. Raises as `xlsx.read`."""
    package = Package(source)
    book = book_of(package)
    texts, styles = texts_of(package), styles_of(package)
    record = _record(package)
    notes = []
    if sheet:
        chosen = [row for row in book.sheets if row[0] == sheet]
        if not chosen:
            raise UsageError(f"`--in-opt sheet={sheet[:40]}`: a sheet of this name does not exist",
                             path=source.path,
                             got=", ".join(name for name, *_ in book.sheets[:10]))  # fmt: skip
        book = book._replace(sheets=chosen)
    tables: list[Table] = []
    for name, path, hidden in book.sheets:
        cells = cells_of(package, path, texts, styles)
        recorded = (record or {}).get("tables", {}).get(name)
        if not cells.columns:
            continue
        if hidden:
            notes.append(f"sheet '{name}' is hidden, and read as all others")
        table = _table(source, name, cells, header, recorded, from_1904=book.from_1904)
        table.notes += _notes(name, cells)
        tables.append(table)
    if not tables:
        raise Unsupported("has no sheet with anything in it", path=source.path)
    return Workbook(tables, notes, (record or {}).get("file", {}))


def _record(package: Package) -> dict[str, Any] | None:
    """The record in the properties of the file; None without a valid one."""
    properties = properties_of(package)
    pieces: list[str] = []
    while (piece := properties.get(f"{PROPERTY}{len(pieces) + 1}")) is not None:
        pieces.append(piece)
    return records.parse("".join(pieces), package.source.limits) if pieces else None


def _notes(name: str, cells: Cells) -> list[str]:
    """The notes about formulas, errors and merged cells of a sheet."""
    counts = (
        (cells.formulas - cells.unsaved, "formulas are read as the values saved with them"),
        (cells.unsaved, "formulas have no saved value: they are missing"),
        (cells.errors, "errors, such as #N/A, are missing values"),
        (cells.merged, "merged ranges have their value in their first cell alone"),
    )
    return [f"sheet '{name}': {count} {words}" for count, words in counts if count > 0]


# One sheet ---------------------------------------------------------------------------------------


def _table(
    source: Source, name: str, cells: Cells, header: str, recorded: dict[str, Any] | None,
    *, from_1904: bool,
) -> SheetTable:  # fmt: skip
    """The table in the used rows and columns of a sheet."""
    first = min(rows[0] for rows, _, _ in cells.columns.values())
    last = max(max(rows) for rows, _, _ in cells.columns.values())
    left, right = min(cells.columns), max(cells.columns)
    count = right - left + 1
    check_columns(count, source)
    extent = last - first + 1
    what = f"'{source.path}': sheet '{name}' of {extent} rows × {count} columns"
    check_memory(16 * count * extent, source.max_memory, what)
    columns = [cells.columns.get(n, ([], [], [])) for n in range(left, right + 1)]
    top = [_first_cell(column, first) for column in columns]
    names, headed = _header(top, "yes" if recorded is not None else header, source, name)
    begin = first + headed
    rows = last - begin + 1
    dtypes = _recorded_types(recorded, names)
    made, pieces, notes = [], [], []
    for title, column in zip(names, columns, strict=True):
        own, piece, note = _column(source, title, column, begin, rows, dtypes.get(title), from_1904)
        made.append(own)
        pieces.append(piece)
        if note:
            notes.append(f"sheet '{name}': {note}")
    table = SheetTable(source, name, made, pieces)
    table.headed = headed
    table.record = recorded
    table.notes = notes
    return table


def _first_cell(column: tuple[list[int], list[str], list[Any]], row: int) -> Cell | None:
    """The first cell of a column if it is in this row, else None."""
    rows, kinds, values = column
    return (kinds[0], values[0]) if rows and rows[0] == row else None


def _header(
    top: list[Cell | None], header: str, source: Source, name: str
) -> tuple[list[str], bool]:
    """The names of the columns, and True if the first row has them. Raises `UsageError`."""
    are_text = [cell is not None and cell[0] == "t" for cell in top]
    is_header = all(are_text) or (len(top) > 1 and top[0] is None and all(are_text[1:]))
    if header == "no" or (header == "auto" and not any(are_text)):
        return unique_names([""] * len(top)), False
    if header == "auto" and not is_header:
        raise UsageError(
            "the first row may be a header, or not: some of its cells are text, some are not",
            path=source.path, got=f"sheet '{name}'",
            remedy="say which: `--in-opt header=yes` or `--in-opt header=no`",
        )  # fmt: skip
    return unique_names(["" if cell is None else str(cell[1]) for cell in top]), True


def _recorded_types(
    recorded: dict[str, Any] | None, names: list[str]
) -> dict[str, tuple[np.dtype[Any], str]]:
    """The types of columns in the record, and the encoding of bytes, by name."""
    types: dict[str, tuple[np.dtype[Any], str]] = {}
    if recorded is None:
        return types
    for array in recorded["arrays"]:
        dtype = records.dtype_in(array)
        if dtype is None:
            continue
        encoding = "utf-8" if array.get("meta", {}).get("encoding") == "utf-8" else "latin-1"
        if recorded["form"] == "records":
            types |= {name: (dtype[name], encoding) for name in dtype.names or ()}
        elif recorded.get("wide") is not None:
            types |= {name: (dtype, encoding) for name in names if name not in recorded["axes"]}
        else:
            types[array["column"]] = dtype, encoding
    return types


def _column(
    source: Source, name: str, column: tuple[list[int], list[str], list[Any]], begin: int,
    rows: int, former: tuple[np.dtype[Any], str] | None, from_1904: bool,
) -> tuple[Column, Piece, str]:  # fmt: skip
    """A column, its values and mask, and a note; `former` is its type in the record."""
    indices = [row - begin for row in column[0]]
    kinds, values = column[1], column[2]
    if indices and indices[0] < 0:
        indices, kinds, values = indices[1:], kinds[1:], values[1:]
    if any(b <= a for a, b in pairwise(indices)):
        raise Corrupt("a sheet has rows out of order, or a cell twice", path=source.path,
                      where=f"column '{name[:60]}'")  # fmt: skip
    typed, note = None, ""
    if former is not None:
        typed = _as_type(kinds, values, former, from_1904)
    if typed is None:
        typed = _natural(kinds, values, from_1904)
        if former is not None:
            note = f"column '{name[:60]}' has a value that is not {former[0].name} any more: it is "
            note += typed.dtype.name
    return *_with_gaps(name, indices, typed, rows), note


def _with_gaps(name: str, indices: list[int], present: Values, rows: int) -> tuple[Column, Piece]:
    """A column of `rows` values, with the present ones at these indices, the others missing."""
    if len(indices) == rows:
        return Column(name, present.dtype), (present, None)
    values = np.empty(rows, present.dtype)
    values[...] = missing_value(present.dtype)
    mask = np.ones(rows, np.bool_)
    values[indices] = present
    mask[indices] = False
    return Column(name, present.dtype, nullable=True), (values, mask)


def _text_of(kind: str, value: Any, from_1904: bool) -> tuple[str, str]:
    """The kind of a cell as in `words`, and its text."""
    if kind == "t":
        return "text", value
    if kind == "b":
        return "bool", "true" if value else "false"
    if kind == "d":
        return kind_of(value), value
    if kind in "DS":
        time = _time(value, from_1904, span=kind == "S")
        if time is not None:
            text = spelled(time)[0]
            return kind_of(text), text
    own = kind_of(value)
    return (own, value) if own != "text" else _number(value)


def _number(value: str) -> tuple[str, str]:
    """The kind and the text of a number in an unusual notation, such as ``007`` or ``1E400``."""
    try:
        number = float(value)
    except ValueError:
        return "text", value
    if abs(number) == float("inf"):
        return "text", value
    if number == int(number) and abs(number) < 1 << 53 and "." not in value:
        return "int", str(int(number))
    return "float", repr(number)


def _time(value: str, from_1904: bool, *, span: bool) -> Values | None:
    """The time of a number of days, to the millisecond; None for another text or time."""
    try:
        days = float(value)
    except ValueError:
        return None
    if not -1e6 < days < 3e6:
        return None
    steps = round(days * DAY)
    if span:
        unit, size = ("s", 1000) if steps % 1000 == 0 else ("ms", 1)
        return np.array([steps // size], np.int64).view(f"m8[{unit}]")
    if not from_1904:
        if days < 0 or 60 <= days < 61:  # 29 February 1900, which did not exist
            return None
        steps += DAY if days < 60 else 0
    steps += _EPOCHS[from_1904] * DAY
    for unit, size in (("D", DAY), ("s", 1000), ("ms", 1)):
        if steps % size == 0:
            return np.array([steps // size], np.int64).view(f"M8[{unit}]")
    return None


def _natural(kinds: list[str], values: list[Any], from_1904: bool) -> Values:
    """The values of a column, in the type that holds all of them."""
    kind: str | None = None
    texts = []
    for cell_kind, value in zip(kinds, values, strict=True):
        own, text = _text_of(cell_kind, value, from_1904)
        kind = common(kind, own)
        texts.append(text)
    if kind == "time":
        kind = "text"
    if kind == "float" and any(len(text) > 15 for text in texts):
        kind = _checked_floats(texts)
    width = max(map(len, texts), default=0)
    return parsed(texts, dtype_of_kind(kind, width))


def _checked_floats(texts: list[str]) -> str:
    """The kind of a column of floats: ``text`` if it has whole numbers that no double holds."""
    whole = [text for text in texts if kind_of(text) in ("int", "uint")]
    return "text" if any(int(float(text)) != int(text) for text in whole) else "float"


def _as_type(
    kinds: list[str], values: list[Any], former: tuple[np.dtype[Any], str], from_1904: bool
) -> Values | None:
    """The values in the former type of the column; None if one of them does not fit it."""
    dtype, encoding = former
    if not values:
        return np.empty(0, dtype)
    if dtype.kind in "US":
        return _as_text(kinds, values, dtype, encoding)
    texts = []
    for kind, value in zip(kinds, values, strict=True):
        text = str(value) if kind == "t" else _text_of(kind, value, from_1904)[1]
        if dtype.kind in "iu" and kind == "n" and text.endswith(".0"):
            text = text[:-2]
        texts.append(text)
    if dtype.kind == "b" and not set(kinds) <= {"b", "t"}:
        return None
    try:
        if dtype.kind in "iubMm":
            return parsed(texts, dtype)
        wide = parsed(texts, np.dtype("f8"))
    except ValueError:
        return None
    made = _bfloat16(wide, dtype) if dtype.name == "bfloat16" else narrowed(wide, dtype)
    if dtype.itemsize == 8:
        return made
    with np.errstate(all="ignore"):
        back = doubles(made if dtype.name != "bfloat16" else made.astype(np.float32))
    changed = np.flatnonzero(back.view(np.uint64) != wide.view(np.uint64))
    # Programs keep 15 digits of a number; NaN is a word with every bit.
    pairs = zip(back[changed].tolist(), wide[changed].tolist(), strict=True)
    return made if all(_alike(a, b) for a, b in pairs) else None


def _alike(a: float, b: float) -> bool:
    """True for numbers with the same 15 digits."""
    return not isnan(a) and f"{a:.15g}" == f"{b:.15g}"


def _bfloat16(wide: Values, dtype: np.dtype[Any]) -> Values:
    """Doubles as bfloat16, cut off."""
    bits = narrowed(wide, np.dtype("f4")).view(np.uint32)
    made: Values = (bits >> np.uint32(16)).astype(np.uint16).view(dtype)
    return made


def _as_text(
    kinds: list[str], values: list[Any], dtype: np.dtype[Any], encoding: str
) -> Values | None:
    """The values as text or bytes of a width; None if one of them does not fit it."""
    if set(kinds) != {"t"}:
        return None
    try:
        cells = values if dtype.kind == "U" else [text.encode(encoding) for text in values]
    except UnicodeEncodeError:
        return None
    fits = max(map(len, cells)) <= dtype.itemsize // (4 if dtype.kind == "U" else 1)
    return np.array(cells, dtype) if fits else None
