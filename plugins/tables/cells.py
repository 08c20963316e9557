"""The cells of a CSV file: its blocks in UTF-8, the offsets of cells in them, and their kinds.

A block ends where a row does, so that every cell is whole. NumPy finds all cells of a block at
once: a delimiter or an end of line counts if the number of quotes before it is even. Columns of
numbers are classified and converted at once, too; texts of other columns one by one.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

import numpy as np

from raconvert.declared import Record
from raconvert.errors import Corrupt, TooLarge, Unsupported, UsageError

from .words import common, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Source

    Values = np.ndarray[Any, Any]

BLOCK_BYTES = 1 << 20  # of the file that are read at once
QUOTE, LINE, RETURN = ord('"'), ord("\n"), ord("\r")
BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"), (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"))  # fmt: skip
SHORT = 32  # bytes of cells that are classified all at once
_DIGIT, _SIGN, _DOT, _EXP, _OTHER = 1, 2, 4, 8, 16
_CLASS = np.full(256, _OTHER, np.uint8)
_CLASS[0] = 0
_CLASS[list(b"0123456789")] = _DIGIT
_CLASS[list(b"+-")] = _SIGN
_CLASS[list(b".")] = _DOT
_CLASS[list(b"eE")] = _EXP
_COMMA_NUMBER = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?").fullmatch
_POINT_NUMBER = re.compile(r"[+-]?[0-9]*\.[0-9]*(?:[eE][+-]?[0-9]+)?").fullmatch


class Dialect(Record):
    """The syntax of a file: delimiter, decimal sign, encoding, if quotes count, end of lines."""

    delimiter: str
    decimal: str
    encoding: str
    quotes: bool
    line: int = LINE


# Blocks ------------------------------------------------------------------------------------------


def encoding_of(source: Source, asked: str) -> str:
    """The encoding of a file: that of its BOM, else the `asked` one. Raises `UsageError`."""
    for mark, name in BOMS:
        if source.head.startswith(mark):
            return name
    try:
        name = codecs.lookup(asked).name
        "".encode(name)
    except LookupError:
        raise UsageError(
            f"`--in-opt encoding={asked[:40]}` is not an encoding that Python knows",
            expected="utf-8, latin-1, cp1252, utf-16, ...",
        ) from None
    return name


def blocks_of(source: Source, dialect: Dialect) -> Iterator[bytes]:
    """Yield the text in UTF-8 in blocks of whole rows, the last with its end of line.

    Raises `Corrupt` for a quote without an end and text in another encoding, `TooLarge` for a row
    above `Limits.document_bytes`.
    """
    carry, most = b"", source.limits.document_bytes
    for text in _decoded(source, dialect.encoding):
        whole = carry + text if carry else text
        end = _last_end(whole, dialect)
        if end:
            yield whole[:end]
        carry = whole[end:]
        if len(carry) > most:
            raise _endless(carry, source, dialect, most)
    if carry:
        data = np.frombuffer(carry, np.uint8)
        if dialect.quotes and int(np.count_nonzero(data == QUOTE)) % 2:
            raise _endless(carry, source, dialect, most)
        yield carry + bytes([dialect.line])


def _endless(carry: bytes, source: Source, dialect: Dialect, most: int) -> Corrupt | TooLarge:
    """The error for a row without an end: by a quote, or by its length."""
    if dialect.quotes and carry.count(b'"') % 2:
        return Corrupt(
            "a quote begins that never ends", path=source.path,
            got=carry[carry.rfind(b'"') :][:40].decode("utf-8", "replace"),
            remedy="read quotes as they stand: `--in-opt quotes=no`",
        )  # fmt: skip
    return TooLarge("a row is too long", path=source.path, expected=f"at most {most} bytes")


def _decoded(source: Source, encoding: str) -> Iterator[bytes]:
    """Yield the text of a file in UTF-8, in pieces. Raises `Corrupt` for another encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    start = next((len(m) for m, name in BOMS if source.head.startswith(m) and name == encoding), 0)
    with source.open() as file:
        file.seek(start)
        offset = start
        while piece := file.read(BLOCK_BYTES):
            if encoding == "utf-8" and piece.isascii() and not decoder.getstate()[0]:
                yield piece
            else:
                yield _to_utf8(decoder, piece, False, source, encoding, offset)
            offset += len(piece)
        rest = _to_utf8(decoder, b"", True, source, encoding, offset)
        if rest:
            yield rest


def _to_utf8(
    decoder: Any, piece: bytes, final: bool, source: Source, encoding: str, offset: int
) -> bytes:
    """The piece at an offset of the file in UTF-8."""
    try:
        return bytes(decoder.decode(piece, final).encode("utf-8"))
    except (UnicodeError, ValueError) as error:
        start = getattr(error, "start", 0)
        raise Corrupt(
            f"is not text in {encoding}", path=source.path, where=f"byte {offset + start}",
            remedy="name its encoding: `--in-opt encoding=latin-1`, cp1252, utf-16, ...",
        ) from error  # fmt: skip


def _last_end(data: bytes, dialect: Dialect) -> int:
    """The offset behind the last whole row; 0 without one."""
    if not dialect.quotes or b'"' not in data:
        return data.rfind(bytes([dialect.line])) + 1
    values = np.frombuffer(data, np.uint8)
    inside = np.bitwise_xor.accumulate(values == QUOTE)
    ends = np.flatnonzero((values == dialect.line) & ~inside)
    return int(ends[-1]) + 1 if len(ends) else 0


# Cells -------------------------------------------------------------------------------------------


class Block:
    """The cells of a block: `starts` and `ends` by row and column, without quotes around them.

    `columns` is None for the first block; `row` is the number of its first row, for messages.
    Raises `Corrupt` for rows of different numbers of cells.
    """

    __slots__ = ("ascii", "data", "ends", "quoted", "starts", "values")

    def __init__(
        self, data: bytes, dialect: Dialect, columns: int | None, source: Source, row: int
    ) -> None:
        self.data = data
        self.values = np.frombuffer(data, np.uint8)
        self.ascii = data.isascii()
        quotes = self.values == QUOTE if dialect.quotes and b'"' in data else None
        breaks = (self.values == ord(dialect.delimiter)) | (self.values == dialect.line)
        if quotes is not None:
            breaks &= ~np.bitwise_xor.accumulate(quotes)
        ends = np.flatnonzero(breaks)
        starts = np.empty_like(ends)
        starts[0], starts[1:] = 0, ends[:-1] + 1
        last = np.flatnonzero(self.values[ends] == dialect.line)
        if dialect.line == LINE:
            returns = last[(ends[last] > starts[last]) & (self.values[ends[last] - 1] == RETURN)]
            ends[returns] -= 1
        widths = np.diff(last, prepend=-1)
        count = columns if columns is not None else int(widths[0])
        if count > 1:
            blank = (widths == 1) & (starts[last] == ends[last])
            if blank.any():
                keep = np.ones(len(ends), np.bool_)
                keep[last[blank]] = False
                starts, ends, widths = starts[keep], ends[keep], widths[~blank]
        odd = np.flatnonzero(widths != count)
        if len(odd):
            raise Corrupt(
                "rows have different numbers of cells", path=source.path,
                where=f"row {row + int(odd[0])}", expected=count, got=int(widths[odd[0]]),
                remedy="name the delimiter, as in `--in-opt delimiter=;`, or repair the row",
            )  # fmt: skip
        self.starts, self.ends = starts.reshape(-1, count), ends.reshape(-1, count)
        self.quoted: Values | None = None
        if quotes is not None:
            self._unquote(quotes, source, row)

    def _unquote(self, quotes: Values, source: Source, row: int) -> None:
        """Leave out the quotes around cells. Raises `Unsupported` for quotes inside of others."""
        starts, ends = self.starts, self.ends
        counts = np.concatenate(([0], np.cumsum(quotes)))
        inside = counts[ends] - counts[starts]
        filled = ends - starts >= 2
        first = np.minimum(starts, len(self.values) - 1)
        self.quoted = filled & (self.values[first] == QUOTE) & (self.values[ends - 1] == QUOTE)
        odd = np.argwhere((inside > 0) & ~self.quoted)
        if len(odd):
            raise Unsupported(
                "a quote stands inside of a cell that has none around it", path=source.path,
                where=f"row {row + int(odd[0][0])}, column {int(odd[0][1]) + 1}",
                remedy="read quotes as they stand: `--in-opt quotes=no`",
            )  # fmt: skip
        self.starts, self.ends = starts + self.quoted, ends - self.quoted

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.starts)

    def part(self, start: int, stop: int) -> Block:
        """The block of some of the rows."""
        other = Block.__new__(Block)
        other.data, other.values, other.ascii = self.data, self.values, self.ascii
        other.starts, other.ends = self.starts[start:stop], self.ends[start:stop]
        other.quoted = None if self.quoted is None else self.quoted[start:stop]
        return other

    def empty(self, column: int) -> Values:
        """The mask of cells with nothing in them, not even quotes."""
        blank: Values = self.starts[:, column] == self.ends[:, column]
        return blank if self.quoted is None else blank & ~self.quoted[:, column]

    def is_quoted(self, column: int) -> Values:
        """The mask of cells with quotes around them."""
        if self.quoted is None:
            return np.zeros(self.rows, np.bool_)
        quoted: Values = self.quoted[:, column]
        return quoted

    def texts(self, column: int, chosen: Values | None = None) -> list[str]:
        """The texts of a column, or of its `chosen` rows, with doubled quotes made single."""
        starts, ends = self.starts[:, column], self.ends[:, column]
        quoted = None if self.quoted is None else self.quoted[:, column]
        if chosen is not None:
            starts, ends = starts[chosen], ends[chosen]
            quoted = None if quoted is None else quoted[chosen]
        data = self.data
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        texts = [data[start:end].decode() for start, end in pairs]
        if quoted is not None:
            for row in np.flatnonzero(quoted).tolist():
                if '"' in texts[row]:
                    texts[row] = _single(texts[row])
        return texts

    def short(self, column: int, chosen: Values) -> Values | None:
        """The chosen cells of a column as byte strings of one width; None if any is long."""
        starts, ends = self.starts[chosen, column], self.ends[chosen, column]
        lengths = ends - starts
        width = int(lengths.max(initial=1))
        if width > SHORT or not len(starts):
            return None
        offsets = starts[:, None] + np.arange(max(1, width))
        letters = self.values[np.minimum(offsets, len(self.values) - 1)]
        letters[np.arange(max(1, width)) >= lengths[:, None]] = 0
        return np.ascontiguousarray(letters).view(f"S{max(1, width)}").reshape(-1)

    def width(self, column: int) -> int:
        """The number of characters of the longest cell."""
        if self.ascii and self.quoted is None:
            return int((self.ends[:, column] - self.starts[:, column]).max(initial=0))
        return max(map(len, self.texts(column)), default=0)


class DoubledError(Exception):
    """A quote inside of quotes that is not doubled."""


def _single(text: str) -> str:
    """A text with its doubled quotes made single. Raises `DoubledError` for other quotes."""
    halves = text.split('""')
    if any('"' in half for half in halves):
        raise DoubledError(text[:60])
    return '"'.join(halves)


# Kinds -------------------------------------------------------------------------------------------


def fast_kind(cells: Values) -> str | None:
    """The kind of short cells if all are plain numbers; None if each has to be parsed."""
    letters = cells.view(np.uint8).reshape(len(cells), -1)
    classes = _CLASS[letters]
    present = int(np.bitwise_or.reduce(classes, axis=None))
    if present & _OTHER or (present & _EXP and not present & _DIGIT):
        return None
    signed = (classes[:, 0] == _SIGN).astype(np.int64)
    lines = np.arange(len(cells))
    wide = letters.shape[1]
    first = letters[lines, np.minimum(signed, wide - 1)]
    second = classes[lines, np.minimum(signed + 1, wide - 1)] * (signed + 1 < wide)
    if ((first == ord("0")) & (second == _DIGIT)).any():  # a zero in front of a number makes text
        return None
    if not present & (_DOT | _EXP):
        if wide > 18 or (classes[:, 1:] == _SIGN).any():
            return None
        if not present & _DIGIT or (classes[lines, np.minimum(signed, wide - 1)] != _DIGIT).any():
            return None
        minus_zero = (letters[:, 0] == ord("-")) & (first == ord("0")) & (second == 0)
        if minus_zero.any():
            return None
        return "negative" if (letters[:, 0] == ord("-")).any() else "int"
    try:
        values = cells.astype(np.float64)
    except ValueError:
        return None
    return None if np.isinf(values).any() or (values == 0).any() else "float"


def kind_in(block: Block, column: int, chosen: Values, dialect: Dialect) -> str | None:
    """The kind that the chosen cells of a column have in common; None if there are none."""
    if not chosen.any():
        return None
    cells = block.short(column, chosen) if dialect.decimal == "." else None
    kind = fast_kind(cells) if cells is not None else None
    if kind is not None:
        return kind
    for text in dict.fromkeys(block.texts(column, chosen)):
        kind = common(kind, kind_of(pointed(text, dialect.decimal)))
        if kind == "text":
            break
    return kind


def pointed(text: str, decimal: str) -> str:
    """The text of a number with a point instead of its comma; a number with a point becomes text.

    >>> pointed("1,5", ","), pointed("1.5", ",")
    ('1.5', '1.5 ')
    """
    if decimal == ".":
        return text
    if _COMMA_NUMBER(text):
        return text.replace(",", ".")
    return text + " " if _POINT_NUMBER(text) else text
