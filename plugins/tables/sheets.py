"""The parts of an XLSX package as XML: workbook, shared texts, styles, and the cells of a sheet.

All are parsed by expat in pieces, front to back; a document type, which entities need, is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.parsers import expat

from raconvert.arrays.memory import check_memory
from raconvert.declared import Record
from raconvert.errors import Corrupt, TooLarge, Unsafe
from raconvert.files import zips

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from raconvert.plugin import Source

MAX_ROWS, MAX_COLUMNS = 1 << 20, 1 << 14
MEMORY_RATIO = 8  # bytes of memory for each byte of XML
DATE, SPAN = "date", "span"
_DATES = {*range(14, 23), *range(27, 37), *range(50, 59)}
_SPANS = {45, 46, 47}
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
_CELL = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,6})").fullmatch
_QUOTED = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?![hmsHMS]+\])[^\]]*\]')


class Package:
    """The members of a package, by their path without a leading slash and in lower case."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.members = {each.filename.lstrip("/").lower(): each for each in zips.members(source)}

    def has(self, path: str) -> bool:
        """True if the package has a part of this path."""
        return path.lower() in self.members

    def parse(self, path: str, start: Callable[..., None], end: Callable[..., None],
              text: Callable[[str], None] | None = None) -> None:  # fmt: skip
        """Parse a part if it exists: call `start(name, attributes)` and `end(name)` for elements.

        Names have no namespace. Raises `Corrupt` for other text than XML, `Unsafe` for a document
        type.
        """
        member = self.members.get(path.lower())
        if member is None:
            return
        parser = expat.ParserCreate(namespace_separator="\n")
        parser.buffer_text = True
        parser.StartElementHandler = lambda name, attributes: start(
            name.rpartition("\n")[2], {k.rpartition("\n")[2]: v for k, v in attributes.items()}
        )
        parser.EndElementHandler = lambda name: end(name.rpartition("\n")[2])
        if text is not None:
            parser.CharacterDataHandler = text
        parser.StartDoctypeDeclHandler = lambda *_: self._refuse(path)
        decoded = zips.Decoded(self.source, member)
        try:
            for piece in _pieces(decoded, member.size):
                parser.Parse(piece, False)
            parser.Parse(b"", True)
            decoded.finish()
        except expat.ExpatError as error:
            raise Corrupt(f"is not XML: {error}", path=self.source.path,
                          where=f"member {path!r}") from error  # fmt: skip
        finally:
            decoded.close()

    def _refuse(self, path: str) -> None:
        """Raise the error for a document type."""
        raise Unsafe(
            "has a document type, which could hold entities", path=self.source.path,
            where=f"member {path!r}",
            remedy="no option allows this; save it anew with a spreadsheet program",
        )  # fmt: skip

    def check_memory(self, path: str) -> None:
        """Raise `TooLarge` if the content of a part is above the memory allowed."""
        member = self.members.get(path.lower())
        if member is not None:
            what = f"'{self.source.path}': member {path!r}"
            need = MEMORY_RATIO * member.size
            check_memory(need, self.source.max_memory, what, f"{member.size} bytes")


def _pieces(decoded: Any, size: int) -> Iterator[bytes]:
    """Yield the bytes of a part."""
    done = 0
    while done < size:
        count = min(1 << 18, size - done)
        buffer = bytearray(count)
        try:
            decoded.read_into(memoryview(buffer))
        except StopIteration:  # it has fewer bytes than it says
            return
        yield bytes(buffer)
        done += count


def unescaped(text: str) -> str:
    """The text of a cell, with ``_x000D_`` replaced by the character that XML cannot hold."""
    if "_x" not in text:
        return text
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


# The workbook ------------------------------------------------------------------------------------


class Book(Record):
    """The content of a workbook: sheets (name, path, hidden), and the epoch of its dates."""

    sheets: list[tuple[str, str, bool]]
    from_1904: bool


def book_of(package: Package) -> Book:
    """The sheets of a workbook, in order. Raises `Corrupt` without one, `TooLarge` above limits."""
    path = package.source.path
    main = "xl/workbook.xml"
    if not package.has(main):
        raise Corrupt("has no workbook", path=path, expected=f"a member {main!r}")
    sheets: list[dict[str, str]] = []
    flags: dict[str, str] = {}

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == "sheet":
            sheets.append(attributes)
        elif name == "workbookPr":
            flags.update(attributes)
        if len(sheets) > package.source.limits.structure_fields:
            raise TooLarge("has too many sheets", path=path)

    package.parse(main, start, _ignore)
    targets = _targets(package)
    listed = []
    for sheet in sheets:
        kind, target = targets.get(sheet.get("id", ""), ("", ""))
        if kind != "worksheet":  # charts, macros
            continue
        inside = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
        if not package.has(inside):
            raise Corrupt("a sheet is absent", path=path, where=f"sheet {sheet.get('name')!r}")
        hidden = sheet.get("state", "visible") != "visible"
        listed.append((sheet.get("name", ""), inside, hidden))
    return Book(listed, flags.get("date1904", "0") in ("1", "true"))


def _targets(package: Package) -> dict[str, tuple[str, str]]:
    """The parts to which the workbook refers: kind and path, by identifier."""
    targets: dict[str, tuple[str, str]] = {}

    def relation(name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship":
            kind = attributes.get("Type", "").rpartition("/")[2]
            targets[attributes.get("Id", "")] = kind, attributes.get("Target", "")

    package.parse("xl/_rels/workbook.xml.rels", relation, _ignore)
    return targets


def _ignore(*_: object) -> None:
    """Do nothing for an element."""


def texts_of(package: Package) -> list[str]:
    """The shared texts. Raises `TooLarge` above the memory allowed."""
    texts: list[str] = []
    parts: list[str] = []
    state = {"in": False, "left_out": 0}

    def start(name: str, _: dict[str, str]) -> None:
        if name == "si":
            parts.clear()
        elif name in ("rPh", "phoneticPr"):
            state["left_out"] += 1
        state["in"] = name == "t" and not state["left_out"]

    def end(name: str) -> None:
        if name == "si":
            texts.append(unescaped("".join(parts)))
        elif name in ("rPh", "phoneticPr"):
            state["left_out"] -= 1
        state["in"] = False

    def text(data: str) -> None:
        if state["in"]:
            parts.append(data)

    package.check_memory("xl/sharedStrings.xml")
    package.parse("xl/sharedStrings.xml", start, end, text)
    return texts


def styles_of(package: Package) -> list[str]:
    """The kind of numbers of each style of cells: `DATE`, `SPAN` or empty."""
    formats: dict[int, str] = {}
    kinds: list[str] = []
    state = {"xfs": False}

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == "numFmt":
            formats[_whole(attributes.get("numFmtId"))] = attributes.get("formatCode", "")
        elif name == "cellXfs":
            state["xfs"] = True
        elif name == "xf" and state["xfs"]:
            number = _whole(attributes.get("numFmtId"))
            kinds.append(kind_of_format(number, formats.get(number)))

    def end(name: str) -> None:
        if name == "cellXfs":
            state["xfs"] = False

    package.check_memory("xl/styles.xml")
    package.parse("xl/styles.xml", start, end)
    return kinds


def _whole(text: str | None) -> int:
    """The whole number in a text; -1 for other texts."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else -1


def kind_of_format(number: int, code: str | None) -> str:
    """The kind of the numbers of a format: `DATE`, `SPAN` or empty.

    >>> kind_of_format(14, None), kind_of_format(164, "yyyy"), kind_of_format(165, "[h]:mm")
    ('date', 'date', 'span')
    """
    if code is None:
        if number in _DATES:
            return DATE
        return SPAN if number in _SPANS else ""
    bare = _QUOTED.sub("", code.partition(";")[0]).lower()
    if "general" in bare:
        return ""
    if re.search(r"\[(h+|m+|s+)\]", bare):
        return SPAN
    is_date = re.search("[ymdhs]", bare) and not re.search("[0#?]", re.sub(r"\.0+", "", bare))
    return DATE if is_date else ""


def properties_of(package: Package) -> dict[str, str]:
    """The texts of the custom properties of the file, by name."""
    properties: dict[str, str] = {}
    state: dict[str, Any] = {"name": None, "parts": []}

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == "property":
            state["name"], state["parts"] = attributes.get("name"), []

    def end(name: str) -> None:
        if name == "property" and state["name"] is not None:
            properties[state["name"]] = "".join(state["parts"])
            state["name"] = None

    def text(data: str) -> None:
        if state["name"] is not None:
            state["parts"].append(data)

    package.check_memory("docProps/custom.xml")
    package.parse("docProps/custom.xml", start, end, text)
    return properties


# The cells of a sheet ----------------------------------------------------------------------------


class Cells:
    """The cells of a sheet, column by column: rows, kinds and values.

    Kinds are ``n`` (number), ``t`` (text), ``b`` (bool) and ``d`` (ISO date) as in the file, ``D``
    (date) and ``S`` (span) by style. `formulas` counts formulas, `unsaved` those without a value,
    `merged` the ranges of merged cells, `errors` the cells with an error.
    """

    def __init__(self) -> None:
        self.columns: dict[int, tuple[list[int], list[str], list[Any]]] = {}
        self.formulas = self.unsaved = self.merged = self.errors = 0

    def add(self, row: int, column: int, kind: str, value: Any) -> None:
        """Add a cell."""
        cells = self.columns.get(column)
        if cells is None:
            cells = self.columns[column] = ([], [], [])
        cells[0].append(row)
        cells[1].append(kind)
        cells[2].append(value)


class _Sheet:
    """The handlers of the elements of a sheet."""

    def __init__(self, cells: Cells, texts: list[str], styles: list[str], source: Source) -> None:
        self.cells, self.texts, self.styles = cells, texts, styles
        self.source = source
        self.row, self.column = -1, -1
        self.kind, self.style = "n", ""
        self.parts: list[str] = []
        self.taking = False
        self.value: str | None = None
        self.formula = False
        self.inline: list[str] = []
        self.in_inline = False
        self.left_out = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        if name == "c":
            self._begin_cell(attributes)
        elif name == "row":
            self.row = _whole(attributes.get("r")) - 1 if "r" in attributes else self.row + 1
            self.column = -1
            if not 0 <= self.row < MAX_ROWS:
                raise self._wrong("a row beyond the last one")
        elif name in ("v", "t"):
            self.parts = []
            self.taking = not self.left_out
        elif name == "f":
            self.formula = True
            self.cells.formulas += 1
        elif name == "is":
            self.inline, self.in_inline = [], True
        elif name == "rPh":
            self.left_out += 1
        elif name == "mergeCell":
            self.cells.merged += 1

    def _begin_cell(self, attributes: dict[str, str]) -> None:
        """Set column, kind and style of a cell that begins."""
        match = _CELL(attributes.get("r", ""))
        if match is not None:
            self.column = _number(match[1])
        elif "r" in attributes:
            raise self._wrong(f"a cell at {attributes['r'][:20]!r}")
        else:
            self.column += 1
        if not 0 <= self.column < MAX_COLUMNS:
            raise self._wrong("a column beyond the last one")
        self.kind = attributes.get("t", "n")
        style = _whole(attributes.get("s", "0"))
        self.style = self.styles[style] if 0 <= style < len(self.styles) else ""
        self.value, self.formula, self.inline, self.in_inline = None, False, [], False

    def text(self, data: str) -> None:
        """Handle text: add it to that of the cell."""
        if self.taking:
            self.parts.append(data)

    def end(self, name: str) -> None:
        """Handle the end of an element."""
        if name == "v":
            self.value, self.taking = "".join(self.parts), False
        elif name == "t":
            if self.in_inline and not self.left_out:
                self.inline.append("".join(self.parts))
            self.taking = False
        elif name == "rPh":
            self.left_out -= 1
        elif name == "is":
            self.value = "".join(self.inline)
            self.in_inline = False
        elif name == "c":
            self._end_cell()

    def _end_cell(self) -> None:
        """Add the cell that ends, or count it if it has no value."""
        if self.value is None or (self.value == "" and self.kind not in ("s", "str", "inlineStr")):
            self.cells.unsaved += self.formula
            return
        kind, value = self._cell(self.kind, self.value)
        if kind == "e":
            self.cells.errors += 1
            return
        self.cells.add(self.row, self.column, kind, value)

    def _cell(self, kind: str, value: str) -> tuple[str, Any]:
        """The kind and the value of a cell, by the kind and the text in the file."""
        if kind == "s":
            number = _whole(value.strip())
            if not 0 <= number < len(self.texts):
                raise self._wrong("a text that is not among the shared ones")
            return "t", self.texts[number]
        if kind in ("str", "inlineStr"):
            return "t", unescaped(value)
        if kind == "b":
            return "b", value.strip() in ("1", "true")
        if kind in ("e", "d"):
            return kind, value.strip()
        if kind != "n":
            raise self._wrong(f"a cell of the type {kind[:20]!r}")
        return {DATE: "D", SPAN: "S"}.get(self.style, "n"), value.strip()

    def _wrong(self, what: str) -> Corrupt:
        """The error for the row that is parsed."""
        return Corrupt(f"a sheet has {what}", path=self.source.path, where=f"row {self.row + 1}")


def _number(letters: str) -> int:
    """The number of a column from its letters, from 0."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number - 1


def letters_of(number: int) -> str:
    """The letters of a column, from 0.

    >>> letters_of(0), letters_of(27)
    ('A', 'AB')
    """
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(65 + rest) + text
    return text


def cells_of(package: Package, path: str, texts: list[str], styles: list[str]) -> Cells:
    """Read the cells of a sheet. Raises `Corrupt`, and `TooLarge` above the memory allowed."""
    package.check_memory(path)
    cells = Cells()
    sheet = _Sheet(cells, texts, styles, package.source)
    package.parse(path, sheet.start, sheet.end, sheet.text)
    return cells
