"""A workbook as tables: the range that holds something in each sheet, header and columns."""

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
from .model import Column, Table, check_columns, unique_names
from .reader import missing_value
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

PROPERTY = "raconvert "  # and a number: the pieces of the record
DAY = 86_400_000  # milliseconds
_1970 = date(1970, 1, 1).toordinal()
_EPOCHS = {
    False: date(1899, 12, 30).toordinal() - _1970,
    True: date(1904, 1, 1).toordinal() - _1970,
}


class Workbook(Record):
    """The tables of a workbook, notes about it, and what its record says of the file."""

    tables: list[Table]
    notes: list[str]
    of_file: dict[str, Any]


class SheetTable(Table):
    """The table of a sheet, in memory."""

    cheap = True

    def __init__(self, source: Source, name: str, columns: list[Column], held: list[Piece]) -> None:
        rows = len(held[0][0]) if held else 0
        super().__init__(source, name, columns, rows)
        self._cells = held

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
            held = [self._cells[n] for n in numbers]
            yield [(v[part], None if mask is None else mask[part]) for v, mask in held]


def open_workbook(source: Source, *, header: str, sheet: str) -> Workbook:
    """Read all cells of a workbook. Raises as `xlsx.read`."""
    package = Package(source)
    book = book_of(package)
    texts, styles = texts_of(package), styles_of(package)
    record = _record(package)
    notes = []
    if sheet:
        chosen = [one for one in book.sheets if one[0] == sheet]
        if not chosen:
            raise UsageError(f"`--in-opt sheet={sheet[:40]}`: a sheet of this name does not exist",
                             path=source.path,
                             got=", ".join(one[0] for one in book.sheets[:10]))  # fmt: skip
        book = book._replace(sheets=chosen)
    tables: list[Table] = []
    for name, path, hidden in book.sheets:
        cells = cells_of(package, path, texts, styles)
        said = (record or {}).get("tables", {}).get(name)
        if not cells.columns:
            continue
        notes += [f"sheet '{name}' is hidden, and read as all others"] * hidden
        table = _table(source, name, cells, header, said, from_1904=book.from_1904)
        table.record = said if table.record is None and not table.notes else table.record
        table.notes += _notes(name, cells)
        tables.append(table)
    if not tables:
        raise Unsupported("has no sheet with anything in it", path=source.path)
    return Workbook(tables, notes, (record or {}).get("file", {}))


def _record(package: Package) -> dict[str, Any] | None:
    properties = properties_of(package)
    pieces: list[str] = []
    while (piece := properties.get(f"{PROPERTY}{len(pieces) + 1}")) is not None:
        pieces.append(piece)
    return records.parse("".join(pieces), package.source.limits) if pieces else None


def _notes(name: str, cells: Cells) -> list[str]:
    counts = (
        (cells.formulas - cells.unsaved, "formulas are read as the values saved with them"),
        (cells.unsaved, "formulas have no saved value: they are missing"),
        (cells.errors, "errors, such as #N/A, are missing values"),
        (cells.merged, "merged ranges have their value in their first cell alone"),
    )
    return [f"sheet '{name}': {count} {words}" for count, words in counts if count > 0]


# One sheet ---------------------------------------------------------------------------------------


def _table(
    source: Source, name: str, cells: Cells, header: str, said: dict[str, Any] | None,
    *, from_1904: bool,
) -> SheetTable:  # fmt: skip
    """The table in the rows and columns that hold something."""
    first = min(rows[0] for rows, _, _ in cells.columns.values())
    last = max(max(rows) for rows, _, _ in cells.columns.values())
    left, right = min(cells.columns), max(cells.columns)
    count = right - left + 1
    check_columns(count, source)
    extent = last - first + 1
    what = f"'{source.path}': sheet '{name}' of {extent} rows × {count} columns"
    check_memory(16 * count * extent, source.max_memory, what)
    columns = [cells.columns.get(n, ([], [], [])) for n in range(left, right + 1)]
    top = [_at(column, first) for column in columns]
    names, headed = _header(top, "yes" if said is not None else header, source, name)
    begin = first + headed
    rows = last - begin + 1
    dtypes = _recorded_types(said, names)
    made, held, notes = [], [], []
    for title, column in zip(names, columns, strict=True):
        own, piece, note = _column(source, title, column, begin, rows, dtypes.get(title), from_1904)
        made.append(own)
        held.append(piece)
        notes += [f"sheet '{name}': {note}"] * bool(note)
    table = SheetTable(source, name, made, held)
    table.headed = headed
    table.record = said
    table.notes = notes
    return table


def _at(column: tuple[list[int], list[str], list[Any]], row: int) -> Cell | None:
    rows, kinds, values = column
    return (kinds[0], values[0]) if rows and rows[0] == row else None


def _header(
    top: list[Cell | None], header: str, source: Source, name: str
) -> tuple[list[str], bool]:
    texts = [one is not None and one[0] == "t" for one in top]
    is_header = all(texts) or (len(texts) > 1 and top[0] is None and all(texts[1:]))
    if header == "no" or (header == "auto" and not any(texts)):
        return unique_names([""] * len(top)), False
    if header == "auto" and not is_header:
        raise UsageError(
            "the first row may be a header, or not: some of its cells are text, some are not",
            path=source.path, got=f"sheet '{name}'",
            remedy="say which: `--in-opt header=yes` or `--in-opt header=no`",
        )  # fmt: skip
    return unique_names(["" if one is None else str(one[1]) for one in top]), True


def _recorded_types(
    said: dict[str, Any] | None, names: list[str]
) -> dict[str, tuple[np.dtype[Any], str]]:
    """The types of columns that the record tells, and the encoding of bytes."""
    types: dict[str, tuple[np.dtype[Any], str]] = {}
    for one in said["arrays"] if said is not None else ():
        dtype = records.dtype_in(one)
        if dtype is None or said is None:
            continue
        encoding = "utf-8" if one.get("meta", {}).get("encoding") == "utf-8" else "latin-1"
        if said["form"] == "records":
            types |= {name: (dtype[name], encoding) for name in dtype.names or ()}
        elif said.get("wide") is not None:
            types |= {name: (dtype, encoding) for name in names if name not in said["axes"]}
        else:
            types[one["column"]] = dtype, encoding
    return types


def _column(
    source: Source, name: str, column: tuple[list[int], list[str], list[Any]], begin: int,
    rows: int, known: tuple[np.dtype[Any], str] | None, from_1904: bool,
) -> tuple[Column, Piece, str]:  # fmt: skip
    """A column: its values, which are missing, and what is to be said of it."""
    places = [row - begin for row in column[0]]
    kinds, values = column[1], column[2]
    if places and places[0] < 0:
        places, kinds, values = places[1:], kinds[1:], values[1:]
    if any(b <= a for a, b in pairwise(places)):
        raise Corrupt("a sheet has rows out of order, or a cell twice", path=source.path,
                      where=f"column '{name[:60]}'")  # fmt: skip
    if known is not None:
        typed = _as_type(kinds, values, known, from_1904)
        if typed is not None:
            made, piece = _placed(name, places, typed, rows)
            return made, piece, ""
    typed = _natural(kinds, values, from_1904)
    made, piece = _placed(name, places, typed, rows)
    if known is None:
        return made, piece, ""
    return made, piece, (
        f"column '{name[:60]}' has a value that is not {known[0].name} any more: it is "
        f"{typed.dtype.name}"
    )  # fmt: skip


def _placed(name: str, places: list[int], present: Values, rows: int) -> tuple[Column, Piece]:
    if len(places) == rows:
        return Column(name, present.dtype), (present, None)
    values = np.empty(rows, present.dtype)
    values[...] = missing_value(present.dtype)
    mask = np.ones(rows, np.bool_)
    values[places] = present
    mask[places] = False
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
    """A number that stands in the file in a way of its own, such as ``007`` or ``1E400``."""
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
    """The time that a number of days stands for, to the millisecond; None for any other text."""
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
        if days < 0 or 60 <= days < 61:  # 29 February 1900, which never was
            return None
        steps += DAY if days < 60 else 0
    steps += _EPOCHS[from_1904] * DAY
    for unit, size in (("D", DAY), ("s", 1000), ("ms", 1)):
        if steps % size == 0:
            return np.array([steps // size], np.int64).view(f"M8[{unit}]")
    return None


def _natural(kinds: list[str], values: list[Any], from_1904: bool) -> Values:
    """The values of a column, of the kind that all of them have."""
    kind: str | None = None
    texts = []
    for one, value in zip(kinds, values, strict=True):
        own, text = _text_of(one, value, from_1904)
        kind = common(kind, own)
        texts.append(text)
    if kind == "time":
        kind = "text"
    if kind == "float" and any(len(text) > 15 for text in texts):
        kind = _checked_floats(texts)
    width = max(map(len, texts), default=0)
    return parsed(texts, dtype_of_kind(kind, width))


def _checked_floats(texts: list[str]) -> str:
    """Text for a column of floats with whole numbers that no double is."""
    odd = any(kind_of(text) in ("int", "uint") and int(float(text)) != int(text) for text in texts)
    return "text" if odd else "float"


def _as_type(
    kinds: list[str], values: list[Any], known: tuple[np.dtype[Any], str], from_1904: bool
) -> Values | None:
    """The values as the type that the column had; None if one of them is not of it."""
    dtype, encoding = known
    if not values:
        return np.empty(0, dtype)
    if dtype.kind in "US":
        return _as_text(kinds, values, dtype, encoding)
    texts = []
    for one, value in zip(kinds, values, strict=True):
        text = str(value) if one == "t" else _text_of(one, value, from_1904)[1]
        if dtype.kind in "iu" and one == "n" and text.endswith(".0"):
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
    if made is None or dtype.itemsize == 8:
        return made
    with np.errstate(all="ignore"):
        again = doubles(made if dtype.name != "bfloat16" else made.astype(np.float32))
    odd = np.flatnonzero(again.view(np.uint64) != wide.view(np.uint64))
    # Programs keep 15 digits of a number; of NaN, words keep every bit.
    pairs = zip(again[odd].tolist(), wide[odd].tolist(), strict=True)
    return made if all(_alike(a, b) for a, b in pairs) else None


def _alike(a: float, b: float) -> bool:
    """True for numbers that are equal to 15 digits."""
    return not isnan(a) and f"{a:.15g}" == f"{b:.15g}"


def _bfloat16(wide: Values, dtype: np.dtype[Any]) -> Values | None:
    bits = narrowed(wide, np.dtype("f4")).view(np.uint32)
    made: Values = (bits >> np.uint32(16)).astype(np.uint16).view(dtype)
    return made


def _as_text(
    kinds: list[str], values: list[Any], dtype: np.dtype[Any], encoding: str
) -> Values | None:
    if set(kinds) != {"t"}:
        return None
    try:
        cells = values if dtype.kind == "U" else [text.encode(encoding) for text in values]
    except UnicodeEncodeError:
        return None
    fits = max(map(len, cells)) <= dtype.itemsize // (4 if dtype.kind == "U" else 1)
    return np.array(cells, dtype) if fits else None
