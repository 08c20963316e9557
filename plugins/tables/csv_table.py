"""A CSV file as a table: its dialect and header, the types of its columns, and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.dtypes import dtype_of, element_from
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported, UsageError

from .cells import Block, Dialect, DoubledError, blocks_of, encoding_of, kind_in, pointed
from .dialect import WORDS, delimiters, lines_of
from .model import Column, Table, check_columns, missing_value, no_column, unique_names
from .words import NAT_ALONE, common, dtype_of_kind, kind_of, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from raconvert.plugin import Source

    from .model import Piece

    Values = np.ndarray[Any, Any]

NA = "NA"
LOOK_BYTES = 1 << 16  # of the beginning that are read for the delimiter
TEXT_RATIO = 64  # bytes of texts of one width for each byte of the file, above --max-memory


class _Seen:
    """The facts about the cells of a column that were read so far."""

    __slots__ = ("bare", "kind", "missing", "na", "quoted", "rounded", "width")

    def __init__(self) -> None:
        self.kind: str | None = None  # of cells without quotes, except NA
        self.quoted: str | None = None  # of cells in quotes, without the quotes
        self.bare = 0  # number of cells without quotes, except NA
        self.width = 0
        self.missing = self.na = self.rounded = 0


class CsvTable(Table):
    """The table of a CSV file."""

    def __init__(
        self, source: Source, columns: list[Column], rows: int, dialect: Dialect, first: int
    ) -> None:
        super().__init__(source, source.stem, columns, rows)
        self._dialect = dialect
        self._first = first  # number of rows before the data

    def pieces(self, numbers: Sequence[int], max_bytes: int) -> Iterator[list[Piece]]:
        """Yield the values of columns, block by block."""
        width = sum(self.columns[n].nbytes + 16 for n in numbers)
        step = max(1, max_bytes // max(1, width))
        row = 1 + self._first
        for block in _blocks(self.source, self._dialect, len(self.columns), self._first):
            for start in range(0, block.rows, step):
                part = block.part(start, start + step)
                yield [self._values(part, n, row + start) for n in numbers]
            row += block.rows

    def _values(self, block: Block, number: int, row: int) -> Piece:
        """The values and the mask of a column in a block, whose first row has the number `row`."""
        column = self.columns[number]
        absent = block.empty(number)
        if column.nullable and column.dtype.kind not in "US":
            absent = absent | _are_na(block, number)
        present = ~absent
        try:
            values = _converted(block, number, present, column.dtype, self._dialect)
        except ValueError as error:
            index, reason = error.args if len(error.args) == 2 else (0, str(error))
            wrong = int(np.flatnonzero(present)[index]) if present.any() else 0
            raise Corrupt(
                f"column '{column.name[:60]}': {reason}", path=self.source.path,
                where=f"row {row + wrong}",
                remedy="say its type: `--in-opt types=NAME:text`",
            ) from error  # fmt: skip
        if absent.any():
            filled = np.empty(block.rows, column.dtype)
            filled[absent] = missing_value(column.dtype)
            filled[present] = values
            values = filled
        return values, absent if column.nullable else None


def _converted(
    block: Block, number: int, chosen: Values, dtype: np.dtype[Any], dialect: Dialect
) -> Values:
    """The chosen cells of a column in a type. Raises ValueError with the index of a wrong one."""
    is_usual = dtype.str in ("<i8", "<f8") and dialect.decimal == "."
    cells = block.short(number, chosen) if is_usual else None
    if cells is not None:
        from .cells import fast_kind

        kind = fast_kind(cells)
        if kind in ("int", "negative") or (kind == "float" and dtype.kind == "f"):
            return cells.astype(dtype)
    texts = _texts(block, number, chosen)
    if dtype.kind == "S":
        return np.array([text.encode("latin-1", "strict") for text in texts] or [], dtype)
    if dtype.kind != "U":
        texts = [pointed(text, dialect.decimal) for text in texts]
    return parsed(texts, dtype)


def _texts(block: Block, number: int, chosen: Values) -> list[str]:
    """The texts of the chosen cells. Raises ValueError for a quote that is not doubled."""
    try:
        return block.texts(number, chosen)
    except DoubledError as error:
        raise ValueError(0, f"a quote in quotes is not doubled: {error}") from error


def _are_na(block: Block, number: int) -> Values:
    """The mask of the cells that are NA without quotes."""
    lengths = block.ends[:, number] - block.starts[:, number]
    mask: Values = (lengths == 2) & ~block.is_quoted(number)
    rows = np.flatnonzero(mask)
    starts = block.starts[rows, number]
    mask[rows] = (block.values[starts] == ord("N")) & (block.values[starts + 1] == ord("A"))
    return mask


def _blocks(source: Source, dialect: Dialect, columns: int | None, skipped: int) -> Iterator[Block]:
    """Yield the blocks of a file without its first `skipped` rows."""
    row = 1
    for data in blocks_of(source, dialect):
        block = Block(data, dialect, columns, source, row)
        columns = block.starts.shape[1]
        row += block.rows
        if skipped:
            left = min(skipped, block.rows)
            skipped -= left
            block = block.part(left, block.rows)
        if block.rows:
            yield block


# The types of the columns -------------------------------------------------------------------------


def open_table(
    source: Source, *, delimiter: str, decimal: str, header: str, encoding: str, quotes: bool,
    types: str,
) -> CsvTable:  # fmt: skip
    """Read a whole file once for dialect, header, and types of columns. Raises as `csv.read`."""
    dialect = _dialect(source, delimiter, decimal, encoding, quotes)
    first = next(_blocks(source, dialect, None, 0), None)
    if first is None:
        raise Corrupt("has no rows", path=source.path)
    count = first.starts.shape[1]
    check_columns(count, source)
    names, headed = _header(first, count, header, dialect, source)
    seen = [_Seen() for _ in range(count)]
    rows = 0
    row = 1 + headed
    for block in _blocks(source, dialect, count, int(headed)):
        for number, column in enumerate(seen):
            _look(block, number, column, dialect, source, row)
        rows += block.rows
        row += block.rows
    all_quoted = not any(column.bare for column in seen) and rows > 0
    all_quoted = all_quoted and (not headed or bool(first.is_quoted(0)[:1].all()))
    notes = ["all cells are in quotes, which say nothing of types then"] if all_quoted else []
    columns = [
        _column(name, facts, all_quoted=all_quoted) for name, facts in zip(names, seen, strict=True)
    ]
    is_words = seen[0].quoted is None and columns[0].dtype.kind == "U" and seen[0].kind != "time"
    if count == 1 and delimiter == "auto" and is_words and rows:
        raise Unsupported(
            "is one column of words: it may be any text", path=source.path,
            remedy="say that it is a table, with any sign between cells: `--in-opt delimiter=,`",
        )  # fmt: skip
    table = CsvTable(source, columns, rows, dialect, int(headed))
    table.headed = headed
    table.notes += notes
    table.notes += [
        f"column '{name[:60]}' holds NaT alone, of a time or a duration: it is taken for times"
        for name, facts in zip(names, seen, strict=True)
        if facts.kind == "time"
    ]
    if types:
        table.columns = _typed(table, types, seen)
    table.notes += [
        f"column '{name[:60]}' has {facts.rounded} numbers of more digits than float64 has: the "
        "nearest are taken; types=text keeps them"
        for name, facts, column in zip(names, seen, table.columns, strict=True)
        if facts.rounded and column.dtype.kind == "f"
    ]
    _check_texts(table)
    return table


def _dialect(source: Source, delimiter: str, decimal: str, encoding: str, quotes: bool) -> Dialect:
    """The dialect of a file: by the options, else by its first lines. Raises `UsageError`."""
    encoding = encoding_of(source, encoding)
    dialect = Dialect(",", decimal, encoding, quotes)
    decoded = source.read_at(0, LOOK_BYTES).decode(encoding, "ignore").lstrip("\ufeff")
    if "\n" not in decoded and "\r" in decoded:
        dialect = dialect._replace(line=13)
    if delimiter != "auto":
        sign = WORDS.get(delimiter, delimiter)
        if len(sign) != 1 or not sign.isascii() or sign in '"\r\n\0' or sign.isalnum():
            raise UsageError(
                f"`--in-opt delimiter={delimiter[:20]}` is not one sign",
                expected=f"such as , ; | or one of {', '.join(WORDS)}",
            )
        return dialect._replace(delimiter=sign)
    lines = lines_of(decoded if quotes else decoded.replace('"', "'"),
                   whole=source.size <= LOOK_BYTES)  # fmt: skip
    signs = delimiters(lines)
    if decimal == ",":
        signs = [sign for sign in signs if sign != ","]
    if len(signs) > 1:
        raise UsageError(
            "several signs may be between its cells", path=source.path,
            got=" ".join(map(repr, signs)),
            remedy="say which: `--in-opt delimiter=;`, and `--in-opt decimal=,` for 1,5",
        )  # fmt: skip
    if signs:
        return dialect._replace(delimiter=signs[0])
    # The rows differ, which is an error of the first one that does, or there is one column.
    in_first = [sign for sign in ",;\t|" if lines and sign in lines[0]]
    sign = in_first[0] if in_first else ";" if decimal == "," else ","
    is_tabbed = source.path.lower().endswith((".tsv", ".tab"))
    return dialect._replace(delimiter="\t" if is_tabbed else sign)


def _header(
    block: Block, count: int, header: str, dialect: Dialect, source: Source
) -> tuple[list[str], bool]:
    """The names of the columns, and True if the first row has them."""
    top = block.part(0, 1)
    try:
        cells = [top.texts(number)[0] for number in range(count)]
    except DoubledError as error:
        raise Corrupt("a quote in quotes is not doubled", path=source.path, where="row 1",
                      got=str(error)) from error  # fmt: skip
    quoted = [bool(top.is_quoted(number)[0]) for number in range(count)]
    are_words = [
        is_quoted or (kind_of(pointed(cell, dialect.decimal)) == "text" and bool(cell))
        for cell, is_quoted in zip(cells, quoted, strict=True)
    ]
    are_words[0] = are_words[0] or (not cells[0] and count > 1 and all(are_words[1:]))
    if header == "no" or (header == "auto" and not any(are_words)):
        return unique_names([""] * count), False
    if header == "auto" and not all(are_words):
        raise UsageError(
            "the first row may be a header, or not: some of its cells are text, some are not",
            path=source.path, got=", ".join(cells[:6]),
            remedy="say which: `--in-opt header=yes` or `--in-opt header=no`",
        )  # fmt: skip
    most = source.limits.name_bytes
    if max(map(len, cells)) > most:
        raise TooLarge("a column has too long a name", path=source.path,
                       expected=f"at most {most} characters")  # fmt: skip
    if block.rows == 1 and source.size and not _ends_with_line(source, dialect):
        raise Corrupt("ends inside of its header", path=source.path)
    return unique_names(cells), True


def _ends_with_line(source: Source, dialect: Dialect) -> bool:
    """True if a file ends with an end of line."""
    tail = source.read_at(max(0, source.size - 4), 4)
    return tail.rstrip(b"\0").endswith((b"\n", bytes([dialect.line])))


def _look(
    block: Block, number: int, facts: _Seen, dialect: Dialect, source: Source, row: int
) -> None:
    """Add the cells of a column in a block to its facts."""
    empty = block.empty(number)
    facts.missing += int(np.count_nonzero(empty))
    quoted = block.is_quoted(number)
    na = _are_na(block, number)
    facts.na += int(np.count_nonzero(na))
    bare = ~(empty | quoted | na)
    facts.bare += int(np.count_nonzero(bare))
    try:
        if facts.kind != "text":
            facts.kind = common(facts.kind, kind_in(block, number, bare, dialect))
        if quoted.any() and facts.quoted != "text":
            facts.quoted = common(facts.quoted, kind_in(block, number, quoted, dialect))
        facts.width = max(facts.width, block.width(number))
    except DoubledError as error:
        where = f"row {row} or below, column {number + 1}"
        raise Corrupt("a quote in quotes is not doubled", path=source.path, where=where,
                      got=str(error)) from error  # fmt: skip
    if facts.kind == "float" and facts.width > 15:
        facts.rounded += _rounded(block, number, bare, dialect)


def _rounded(block: Block, number: int, chosen: Values, dialect: Dialect) -> int:
    """The number of cells with more digits than their float64 has."""
    from decimal import Decimal

    wide = block.ends[:, number] - block.starts[:, number] > 15
    count = 0
    for text in block.texts(number, chosen & wide):
        cell = pointed(text, dialect.decimal)
        kind = kind_of(cell)
        if kind in ("int", "negative", "uint"):
            count += int(float(cell)) != int(cell)
        elif kind == "float" and _digits(cell) > 17 and cell[-1].isdigit():
            count += Decimal(float(cell)) != Decimal(cell)
    return count


def _digits(text: str) -> int:
    """The number of digits in a number, without its exponent and zeros in front."""
    mantissa = text.lower().partition("e")[0].lstrip("+-0.")
    return sum(letter.isdigit() for letter in mantissa)


def _column(name: str, facts: _Seen, *, all_quoted: bool) -> Column:
    """The column with the type that fits all of its cells."""
    kind = facts.quoted if all_quoted else facts.kind
    if not all_quoted and facts.quoted is not None:
        kind = "text"
    if kind is None and facts.na:
        kind = "text"
    if kind == "time":
        kind = NAT_ALONE
    nullable = facts.missing > 0 if kind == "text" else bool(facts.missing or facts.na)
    return Column(name, dtype_of_kind(kind, facts.width), nullable)


def _typed(table: CsvTable, types: str, seen: list[_Seen]) -> list[Column]:
    """The columns with the types of the option `types`. Raises `UsageError`."""
    columns = [*table.columns]
    numbers = {column.name: number for number, column in enumerate(columns)}
    for word in types.split(","):
        name, colon, kind = word.rpartition(":")
        if colon:
            if name not in numbers:
                raise no_column(table, name, "types")
            chosen = [numbers[name]]
        else:
            chosen = [
                n for n, column in enumerate(columns)
                if not column.name.startswith("dim_") and column.dtype.kind not in "US"
            ] or [len(columns) - 1]  # fmt: skip
        for number in chosen:
            facts = seen[number]
            dtype = type_named(kind.strip(), facts.width)
            nullable = facts.missing > 0 or (facts.na > 0 and dtype.kind not in "US")
            columns[number] = columns[number]._replace(dtype=dtype, nullable=nullable)
    return columns


def type_named(word: str, width: int) -> np.dtype[Any]:
    """The type of a word: float32, datetime64[ms], text, U12. Raises `UsageError` for others."""
    if word in ("text", "str"):
        return np.dtype(f"U{max(1, width)}")
    try:
        dtype = dtype_of(element_from("bfloat16")) if word == "bfloat16" else np.dtype(word)
    except (TypeError, ValueError, SyntaxError, RaconvertError):
        dtype = np.dtype("V1")
    if dtype.kind not in "biufcUSMm" and dtype.name != "bfloat16":
        raise UsageError(
            f"`--in-opt types={word[:40]}` is not a type of a column",
            expected="int64, float32, bool, complex64, datetime64[s], text, ...",
        )
    if dtype.kind in "mM" and np.datetime_data(dtype)[1] != 1:
        raise UsageError(f"`--in-opt types={word[:40]}`: only steps of one unit")
    if dtype.kind in "US" and not dtype.itemsize:
        dtype = np.dtype(f"{dtype.kind}{max(1, width)}")
    return dtype.newbyteorder("<") if dtype.itemsize > 1 else dtype


def _check_texts(table: CsvTable) -> None:
    """Raise `TooLarge` if texts of one width are above the memory, and far above the file."""
    source = table.source
    nbytes = table.rows * sum(c.nbytes for c in table.columns if c.dtype.kind in "US")
    if nbytes > max(source.max_memory, TEXT_RATIO * source.size):
        raise TooLarge(
            "texts that are all as wide as the longest would need more than memory",
            path=source.path, expected=f"at most {source.max_memory} bytes (`--max-memory`)",
            got=nbytes, remedy=f"allow it with `--max-memory {-(-nbytes // (1 << 20))}M`",
        )  # fmt: skip
