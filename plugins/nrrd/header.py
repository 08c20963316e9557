"""A NRRD header: lines to fields, the checks that fields agree, and fields back to lines.

Rules (format definition, section 2 and 3; where it is silent, Teem's ``parseNrrd.c``):

* Lines end with LF, CRLF or a bare CR, each as it likes; the first empty line ends the header. A
  header that names data files may also end with the file.
* A line that begins with ``#`` is a comment. Else the text before the first ``": "`` decides: if it
  is the name of a field, the line is that field; if not, the line must have ``:=`` and is a
  key/value pair. Neither: an unknown field, kept as a key/value pair with a note.
* `dimension` comes before every field that has one value per axis, `space` or `space dimension`
  before every field that has one per space axis; ``data file: LIST`` is the last field.
* A field occurs once; repeated with the same value, as Slicer has done, it is noted. The last value
  of a repeated key counts.

A header is at most 16 MiB in at most 65536 lines of at most 4 MiB: whatever it says, parsing it
costs little memory and time.

What is written is what unu, ITK, pynrrd and VTK all read: the lowest version that has its fields,
at most 0005; canonical names in lower case; fields in Teem's order; LF; no time stamp.
"""

from __future__ import annotations

import re
from collections import namedtuple
from math import prod

from raconvert.arrays.reinterpret import is_void
from raconvert.errors import Corrupt, Unsupported
from raconvert.files.pairing import MARK
from raconvert.files.source import read_failed
from raconvert.metadata.roundtrip import difference
from raconvert.plugin import Array, Element, element

from .fields import (
    BLANKS,
    DATA_FILE,
    FIELD_OF,
    FIELDS,
    MAX_SKIP,
    BadValue,
    integer,
    parsed,
    rank_of,
    text_of,
)
from .tables import (
    BLOCK,
    ELEMENTS,
    KIND_SIZES,
    LIST,
    MAGIC,
    MAX_ARRAY_BYTES,
    NAME_OF_TYPE,
    SKIPLIST,
    TEXT,
    VERSIONS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

    from raconvert.plugin import Source

MAX_NOTES = 20  # remarks about one header
MAX_NUMBER_WIDTH = 20  # of the %05d in the name of a data file: no file system needs more
FIRST_READ = 1 << 16
SHOWN = 60  # characters of a bad value in a message

# A header. `fields` maps each field that is there to its typed value; `offset` is where attached
# data begins; `charset` is what the bytes of the texts are.
# `seal` is the comment that ties a header to its data file (`raconvert.files.pairing`), if any.
Header = namedtuple(
    "Header",
    "version fields attributes comments files offset charset notes seal",
    defaults=(0, "utf-8", (), ""),
)
# The data files as the header names them. `names` are file names, or a `Pattern`; `skips` are the
# bytes to skip in each (SKIPLIST), or None; `rank` is the number of axes that one file holds.
Files = namedtuple("Files", "names skips rank line")

_LINE_END = re.compile(rb"\r\n|\n|\r")
_PATTERN = re.compile(r"%([0-9]*)d")


def read_header(source: Source) -> Header:
    """Read the header of a file, checked except for the files that it names.

    Raises `Corrupt` and `Unsupported`.
    """
    try:
        with source.open() as file:
            lines, offset, ended = _lines(file, source)
    except OSError as error:
        raise read_failed(source.path, error) from error
    version = _version(lines, source)
    charset = _charset(b"\n".join(lines))
    parser = _Parser(source.path)
    texts = [line.decode(charset) for line in lines]
    for number, text in enumerate(texts[1:], 2):
        parser.line = number
        parser.take(text, charset)
    parser.finish(attached_end=ended)
    return Header(
        version,
        parser.fields,
        parser.attributes,
        parser.comments,
        parser.files,
        offset,
        charset,
        parser.notes,
        parser.seal,
    )


def lowest_version(header: Header) -> str:
    """Return the lowest version that has all fields of a header."""
    fields = header.fields
    return f"{max([1 + bool(header.attributes), *(FIELDS[field].version for field in fields)]):04}"


def header_bytes(header: Header) -> bytes:
    """Return the bytes of a header, its empty line included; `read_header` reads them back."""
    comments = [header.seal, *header.comments] if header.seal else header.comments
    lines = [f"NRRD{header.version}", *(f"#{comment}" for comment in comments)]
    lines += [
        f"{row.spelled or field}: {text_of(field, header.fields[field])}"
        for field, row in FIELDS.items()
        if field in header.fields
    ]
    if header.files is not None:
        lines.append(f"{DATA_FILE}: {_written_name(header)}")
    lines += [f"{escaped(key)}:={escaped(value)}" for key, value in header.attributes.items()]
    return _encoded("\n".join([*lines, "", ""]), header.charset)


def _written_name(header: Header) -> str:
    """Return the name of the one data file, for readers of this version."""
    (name,) = header.files.names
    # Before version 4 a bare name was relative to the folder of the process.
    is_unclear = header.version < "0004" or name.startswith(("-", LIST, SKIPLIST))
    return f"./{name}" if is_unclear else name


def escaped(text: str) -> str:
    r"""Return a text with a newline as ``\n`` and a backslash as two."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _encoded(text: str, charset: str) -> bytes:
    """Return the bytes of a header; in Latin-1 only if a reader will take it for that."""
    raw = text.encode(charset)
    if charset == "utf-8" or _charset(raw) == charset:
        return raw
    return raw if raw.decode() == text else text.encode()


# --- lines ----------------------------------------------------------------------------------------


def _lines(file: Any, source: Source) -> tuple[list[bytes], int, bool]:
    """Return the lines of the header, the offset behind it, and True if an empty line ended it."""
    buffer = file.read(FIRST_READ) or b""
    lines: list[bytes] = []
    offset, whole = 0, False
    if not buffer.startswith(MAGIC):
        return [buffer[: len(MAGIC)]], 0, False
    while True:
        match = _LINE_END.search(buffer, offset)
        end = match.start() if match else len(buffer)
        _check_length(end, offset, source, len(lines))
        # A CR that ends the buffer may be the first half of CRLF.
        if not whole and (match is None or match.end() == len(buffer)):
            more = file.read(max(FIRST_READ, len(buffer)))
            whole = not more
            buffer += more or b""
            continue
        line = buffer[offset:end]
        if not line:
            return lines, match.end() if match else offset, match is not None
        lines.append(line)
        if match is None:
            return lines, len(buffer), False
        offset = match.end()


def _check_length(end: int, offset: int, source: Source, number: int) -> None:
    """Refuse (`Unsupported`) a header beyond the limits; its last line is `offset` to `end`."""
    limits = source.limits
    rows = (
        (
            end - offset > limits.header_line_bytes,
            f"lines of at most {limits.header_line_bytes} bytes",
        ),
        (end > limits.document_bytes, f"at most {limits.document_bytes} bytes"),
        (number >= limits.header_lines, f"at most {limits.header_lines} lines"),
    )
    for beyond, expected in rows:
        if beyond:
            raise Unsupported(
                "header is too long to be read safely",
                path=source.path,
                where=f"line {number + 1}",
                expected=expected,
                got="more",
            )


def _version(lines: list[bytes], source: Source) -> str:
    """Return the version in the first line, without NRRD. Raises `Corrupt`, `Unsupported`."""
    line = lines[0] if lines else b""
    text = line[len(MAGIC) :].decode("latin-1")
    if not line.startswith(MAGIC):
        raise Corrupt(
            "is not a NRRD file", path=source.path, where="byte 0", expected="NRRD", got=line[:8]
        )
    if text not in VERSIONS:
        raise Unsupported(
            "unknown version of the NRRD format",
            path=source.path,
            where="line 1",
            expected=", ".join(f"NRRD{version}" for version in VERSIONS),
            got=_shown("NRRD" + text),
        )
    return text


def _charset(text: bytes) -> str:
    """Return the encoding of a header: UTF-8, or Latin-1, which takes any bytes.

    The format says ASCII; files have both.
    """
    try:
        text.decode()
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


# --- fields ---------------------------------------------------------------------------------------


class _Parser:
    """Collects the fields, pairs, comments and notes of the lines of one header."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.line = 1
        self.fields: dict[str, Any] = {}
        self.attributes: dict[str, str] = {}
        self.comments: list[str] = []
        self.seal = ""
        self.notes: list[str] = []
        self.files: Files | None = None
        self._listed: list[str] | None = None  # the lines after LIST or SKIPLIST
        self._texts: dict[str, str] = {}

    def note(self, text: str) -> None:
        """Add a note, up to `MAX_NOTES` of them."""
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text)
        elif len(self.notes) == MAX_NOTES:
            self.notes.append(f"there are more than {MAX_NOTES} notes, the others are not shown")

    def take(self, text: str, charset: str) -> None:
        """Take in one line."""
        if self._listed is not None:
            self._listed.append(_file_name(text, charset))
        elif text.startswith("#"):
            self._take_comment(text[1:])
        else:
            self._take_field_or_pair(text, charset)

    def _take_comment(self, text: str) -> None:
        if text.startswith(f" {MARK}"):
            self.seal = text
        else:
            self.comments.append(text)

    def _take_field_or_pair(self, text: str, charset: str) -> None:
        name, colon, description = text.partition(": ")
        field = FIELD_OF.get(name.lower()) if colon else None
        if field is None and ":=" in name:
            key, _, value = text.partition(":=")
            if not key:
                self.fail("key/value pair without a key", "key:=value", text)
            self.attributes[_unescaped(key)] = _unescaped(value)
        elif field is None:
            self._take_odd(text, charset)
        else:
            self._take_field(field, description, charset)

    def _take_odd(self, text: str, charset: str) -> None:
        """Take a field without the blank after its colon, or an unknown one."""
        name, colon, description = text.partition(":")
        field = FIELD_OF.get(name.lower()) if colon else None
        if field is not None:
            self.note(f"line {self.line}: no blank after the colon of '{field}'")
            self._take_field(field, description, charset)
        elif colon and name and description.startswith(" "):
            self.note(f"line {self.line}: unknown field '{_shown(name)}', kept as a key/value pair")
            self.attributes[name] = description.lstrip(BLANKS)
        else:
            self.fail(
                "line is neither a field nor a key/value pair nor a comment", "field: ...", text
            )

    def _take_field(self, field: str, description: str, charset: str) -> None:
        description = description.lstrip(BLANKS)
        try:
            if field in self._texts:
                self._take_again(field, description)
            elif field == DATA_FILE:
                self.files = self._files(_file_name(description, charset))
            else:
                self.fields[field] = parsed(field, description, self.fields)
        except BadValue as error:
            what = error.what or f"field '{field}' has a wrong value"
            self.fail(what, error.expected, error.got)
        self._texts.setdefault(field, description)

    def _take_again(self, field: str, description: str) -> None:
        """Note a field that occurs again with the same value; raises `BadValue` for another."""
        before = self._texts[field]
        same = before == description
        if not same and field != DATA_FILE:
            same = parsed(field, description, self.fields) == self.fields[field]
        if not same:
            what = f"field '{field}' is repeated (its values differ)"
            raise BadValue(_shown(before), description, what)
        self.note(f"line {self.line}: field '{field}' is repeated")

    def _files(self, text: str) -> Files:
        """Return the data files that ``data file:`` names."""
        word, *rest = text.split(None, 1) or [""]
        if word in (LIST, SKIPLIST):
            self._listed = []
            rank = integer(rest[0], 1, rank_of(self.fields)) if rest else rank_of(self.fields) - 1
            return Files(self._listed, [] if word == SKIPLIST else None, rank, self.line)
        if _PATTERN.search(text.replace("%%", "")):
            return self._pattern(word, rest[0] if rest else "")
        if not text or text == "-":
            raise BadValue("the name of a file", text or "nothing")
        return Files([text], None, None, self.line)

    def _pattern(self, word: str, numbers: str) -> Files:
        """Return the data files of a pattern with MIN, MAX, STEP and maybe SUBDIM."""
        parts = numbers.split(None, 4)
        if len(parts) not in (3, 4):
            raise BadValue("PATTERN MIN MAX STEP [SUBDIM]", f"{word} {numbers}")
        low, high, step = (integer(part, -(1 << 31), (1 << 31) - 1) for part in parts[:3])
        rank = rank_of(self.fields)
        subrank = integer(parts[3], 1, rank) if len(parts) == 4 else rank - 1
        if step == 0 or (high - low) * step < 0:
            raise BadValue("a step that leads from MIN to MAX", f"{low} {high} {step}")
        names = Pattern(word, low, high, step)
        iter(names)  # raises `BadValue` here, not when the files are opened
        return Files(names, None, subrank, self.line)

    def fail(self, what: str, expected: str, got: object) -> NoReturn:
        """Raise `Corrupt` about the current line."""
        raise Corrupt(
            what,
            path=self.path,
            where=f"line {self.line}",
            expected=expected,
            got=_shown(got),
        )

    def finish(self, *, attached_end: bool) -> None:
        """Check the header as a whole; `attached_end`: an empty line ended it."""
        fields = self.fields
        missing = [
            name for name in ("type", "dimension", "sizes", "encoding") if name not in fields
        ]
        if missing:
            raise Corrupt(
                f"header lacks the field '{missing[0]}'",
                path=self.path,
                where=f"the end of the header, line {self.line}",
            )
        if self.files is None and not attached_end:
            raise Corrupt(
                "header is cut off: no empty line ends it, and it names no data file",
                path=self.path,
                where=f"line {self.line}",
            )
        try:
            self._check_type()
            if self.files is not None:
                self.line = self.files.line
                self._check_files(self.files)
        except BadValue as error:
            self.fail(error.what or "list of data files is wrong", error.expected, error.got)
        self._check_kinds()
        self._check_positions()

    def _check_type(self) -> None:
        """Refuse (`BadValue`) a type without the fields it needs, and sizes beyond any file."""
        fields = self.fields
        name, encoding = fields["type"], fields["encoding"]
        if (name == BLOCK) != ("block size" in fields):
            raise BadValue("both or none", name, "'block size' belongs to type block")
        if name == BLOCK and encoding == TEXT:
            raise BadValue("another encoding", "text", "text cannot hold blocks")
        width = fields["block size"] if name == BLOCK else ELEMENTS[name].nbytes
        if width > 1 and encoding != TEXT and "endian" not in fields:
            what = f"header lacks the field 'endian' for type {name} with encoding {encoding}"
            raise BadValue("little or big", "none", what)
        nbytes = prod(fields["sizes"]) * width
        if nbytes > MAX_ARRAY_BYTES:
            raise BadValue("fewer than 2**63 bytes", nbytes, "sizes are beyond any file")

    def _check_files(self, files: Files) -> None:
        """Check the number of data files against the sizes, and take SKIPLIST apart."""
        sizes = self.fields["sizes"]
        if files.skips is not None:
            self._take_skips(files)
        count = len(files.names)
        if files.rank is None:
            return
        if files.rank < len(sizes):
            needed = prod(sizes[files.rank :])
            if count != needed:
                what = f"number of data files does not fit the sizes (axes in each: {files.rank})"
                raise BadValue(f"{needed} files", count, what)
        elif not count or sizes[-1] % count:
            what = "number of data files does not divide the slowest axis"
            raise BadValue(f"a divisor of {sizes[-1]}", count, what)

    def _take_skips(self, files: Files) -> None:
        """Divide the lines of SKIPLIST into skips and names."""
        if self.fields.get("byte skip"):
            what = "both SKIPLIST and 'byte skip' say what to skip"
            raise BadValue("one of them", "both", what)
        for index, line in enumerate(files.names):
            skip, _, name = line.partition(" ")
            files.skips.append(integer(skip, -MAX_SKIP, MAX_SKIP))
            if not name:
                raise BadValue("SKIP NAME", line)
            files.names[index] = name

    def _check_kinds(self) -> None:
        """Note kinds that are unknown or belong to another size; they stay as they are."""
        sizes = self.fields["sizes"]
        for kind, size in zip(self.fields.get("kinds", ()), sizes, strict=False):
            if kind is not None and KIND_SIZES.get(kind, size) not in (0, size):
                self.note(f"an axis of kind {kind} has {size} samples")
            if kind is not None and kind not in KIND_SIZES:
                self.note(f"unknown kind of an axis: '{_shown(kind)}'")

    def _check_positions(self) -> None:
        """Note axes that have both a direction in space and a spacing or limits of their own."""
        directions = self.fields.get("space directions", ())
        for name in ("spacings", "axis mins", "axis maxs"):
            values = self.fields.get(name, ())
            pairs = zip(directions, values, strict=False)
            if any(vector is not None and value is not None for vector, value in pairs):
                self.note(f"an axis has both a space direction and a value of '{name}'")


class Pattern(namedtuple("Pattern", "word low high step")):
    """The names that a pattern such as ``s%03d.raw`` gives: like a list, but made on demand."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        parts = _PATTERN.split(self.word.replace("%%", "\0"))
        if len(parts) != 3 or "%" in parts[0] + parts[2] or len(parts[1]) > 3:
            raise BadValue("one number such as %03d in the name", self.word)
        width = int(parts[1] or 0)
        if width > MAX_NUMBER_WIDTH:
            raise BadValue(f"a number of at most {MAX_NUMBER_WIDTH} digits", self.word)
        form = f"{'0' if parts[1].startswith('0') else ''}{width or ''}d"
        before, after = (part.replace("\0", "%") for part in (parts[0], parts[2]))
        return (f"{before}{number:{form}}{after}" for number in self._numbers)

    @property
    def _numbers(self) -> range:
        return range(self.low, self.high + (1 if self.step > 0 else -1), self.step)


def _file_name(text: str, charset: str) -> str:
    """Return a file name as the system takes it: the bytes of the header, whatever they are."""
    return text.encode(charset).decode("utf-8", "surrogateescape")


def _unescaped(text: str) -> str:
    r"""Undo ``\n`` and ``\\``; before anything else a backslash stands for itself."""
    return "\\".join(part.replace("\\n", "\n") for part in text.split("\\\\"))


def _shown(value: object) -> str:
    """Return a value as a message shows it."""
    text = value if isinstance(value, str) else repr(value)
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


# The form of an array in NRRD: type, bytes of a block (else 0), sizes, True if an axis of two holds
# the parts of complex numbers, and the record that restores the array.
Form = namedtuple("Form", "type block sizes pairs was")


def form_of(array: Array) -> Form:
    """Return the form in which an array that NRRD can hold is written."""
    kind, nbytes, _, _ = stored = array.element
    sizes, pairs = array.dims, kind == "complex"
    if pairs:
        stored, sizes = element("float", nbytes // 2), (2, *sizes)
    elif kind == "bool":
        stored = element("uint", 1)
    elif kind == "user" and not is_void(stored):
        stored = Element("user", nbytes, "|")
    block = nbytes if kind == "user" else 0
    name = BLOCK if kind == "user" else NAME_OF_TYPE[stored.kind, stored.nbytes]
    sizes = sizes or (1,)
    # Only column-major order is recorded: without an order, dims are read as those of C.
    order = None if array.index_order == "F" and array.ndim > 1 else array.index_order
    back = Array(stored, sizes, name=array.name, index_order=order)
    return Form(name, block, sizes, pairs, difference(array, array, back))
