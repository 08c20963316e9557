"""The header of a netCDF classic file, from its bytes and back, and where the data lies."""

from __future__ import annotations

from math import prod

from raconvert.arrays.dtypes import little, type_name
from raconvert.arrays.memory import MAX_RANK
from raconvert.declared import Record
from raconvert.errors import Corrupt, TooLarge, Unsupported

from .tables import (
    ATTRIBUTE,
    CHAR,
    CLASSIC,
    DIMENSION,
    ELEMENTS,
    MOST_BEGIN,
    MOST_BYTES,
    MOST_LENGTH,
    PADDED,
    UNSAID,
    VARIABLE,
    VERSIONS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from raconvert.plugin import Source

VALUE_BYTES = 32  # of memory that a number of a list takes
WINDOW = 1 << 16  # bytes of the header that are read at once


class Attribute(Record):
    """An attribute as it lies in the header: its values are `length` elements of a type."""

    name: str
    type: int
    length: int
    raw: bytes
    raw_name: bytes


class Dimension(Record):
    """A dimension; a length of None is the unlimited one."""

    name: str
    length: int | None
    raw_name: bytes


class Variable(Record):
    """A variable; `dims` are numbers of dimensions, the slowest first."""

    name: str
    dims: tuple[int, ...]
    attributes: list[Attribute]
    type: int
    begin: int
    raw_name: bytes


class Header(Record):
    """A header; `records` is their number, None if only the size of the file tells it.

    `end` is the offset behind it.
    """

    version: int
    records: int | None
    dims: list[Dimension]
    attributes: list[Attribute]
    variables: list[Variable]
    end: int

    def row_of(self, variable: Variable) -> int:
        """Return the bytes of a variable; for one in the records, those in each record."""
        lengths = [self.dims[number].length for number in variable.dims]
        return prod(n for n in lengths if n is not None) * ELEMENTS[variable.type].nbytes

    def is_record(self, variable: Variable) -> bool:
        """True for a variable with the unlimited dimension."""
        return bool(variable.dims) and self.dims[variable.dims[0]].length is None

    def record_bytes(self) -> int:
        """Return the bytes of a record: its parts are padded, unless there is only one."""
        rows = [self.row_of(variable) for variable in self.variables if self.is_record(variable)]
        return rows[0] if len(rows) == 1 else sum(map(padded, rows))


def padded(nbytes: int) -> int:
    """Return a number of bytes with the padding that follows them."""
    return nbytes + -nbytes % PADDED


# Reading ------------------------------------------------------------------------------------------


class _Cursor:
    """Reads the header front to back; `at` is the offset of the next byte."""

    def __init__(self, source: Source, version: int, notes: list[str]) -> None:
        self.source = source
        self.version = version
        self.notes = notes
        self.at = len(b"CDF\1")
        self.spent = 0  # bytes of memory that the attributes take
        self._window = b""
        self._begin = 0

    def bytes(self, count: int, what: str) -> bytes:
        """Return the next bytes."""
        start = self.at - self._begin
        if start + count > len(self._window):
            if count > self.source.size - self.at:
                self.source.read_exact(self.at, count, what)
            self._window = self.source.read_at(self.at, max(count, WINDOW))
            self._begin, start = self.at, 0
        self.at += count
        return self._window[start : start + count]

    def number(self, what: str, width: int = 0) -> int:
        """Return a number of `width` bytes, else of those that counts have in this version."""
        width = width or (8 if self.version == 5 else 4)
        return int.from_bytes(self.bytes(width, what), "big")

    def count(self, what: str) -> int:
        """Return a number that is not negative."""
        at, number = self.at, self.number(what)
        if number >> (63 if self.version == 5 else 31):
            raise self.wrong(at, f"{what} is negative", "0 or more", number)
        return number

    def entries(self, tag: int, what: str) -> range:
        """Read the head of a list, and return the numbers of its entries."""
        at = self.at
        mark, count = self.number(what, 4), self.count(f"the number of {what}")
        if mark not in (0, tag) or (mark == 0 and count):
            raise self.wrong(at, f"no list of {what}", f"tag {tag}, or 0 for none", mark)
        if count > self.source.limits.nodes:
            raise TooLarge(
                f"has {count} {what}", path=self.source.path, where=f"byte {at}",
                expected=f"at most {self.source.limits.nodes}",
            )  # fmt: skip
        return range(count)

    def padded(self, count: int, what: str) -> bytes:  # type: ignore[valid-type]
        """Return the next bytes, and skip the padding behind them."""
        data = self.bytes(count, what)
        self.bytes(-count % PADDED, what)
        return data

    def name(self, what: str, known: Container[str]) -> tuple[str, bytes]:  # type: ignore[valid-type]
        """Return a name that is not one of `known`, those before it in its list, and its bytes."""
        at, length = self.at, self.count(f"the length of the name of {what}")
        if not 0 < length <= self.source.limits.name_bytes:
            most = self.source.limits.name_bytes
            raise self.wrong(at, f"the name of {what} is too long or empty", f"1 to {most}", length)
        raw = self.padded(length, f"the name of {what}")
        # Old libraries count the NULs that fill a name up; it ends before them for all readers.
        name = text_of(raw.rstrip(b"\0"), f"the name of {what}", self.notes)
        if not name or "/" in name or min(name) < " " or name in (".", "..") or name in known:
            raise self.wrong(
                at, f"the name of {what} is not allowed", "one of its own, without '/'", name
            )
        return name, raw

    def type(self) -> int:
        """Return the number of a type that this version has."""
        at, number = self.at, self.number("a type", 4)
        most = max(ELEMENTS) if self.version == 5 else CLASSIC
        if not 1 <= number <= most:
            raise self.wrong(
                at, "the type is unknown", f"1 to {most} in CDF-{self.version}", number
            )
        return number

    def attributes(self, of: str) -> list[Attribute]:
        """Return the attributes of a variable or of the file."""
        attributes: dict[str, Attribute] = {}
        for _ in self.entries(ATTRIBUTE, f"attributes of {of}"):
            name, raw_name = self.name(f"an attribute of {of}", attributes)
            kind, count = self.type(), self.count(f"the length of attribute '{name}'")
            self.spent += len(name) + count * (1 if kind == CHAR else VALUE_BYTES)
            if self.spent > self.source.limits.attribute_bytes:
                raise TooLarge(
                    "attributes of the file need more memory than allowed", path=self.source.path,
                    where=f"byte {self.at}", expected=f"{self.source.limits.attribute_bytes} bytes",
                    got=self.spent,
                )  # fmt: skip
            raw = self.padded(count * ELEMENTS[kind].nbytes, f"attribute '{name}' of {of}")
            attributes[name] = Attribute(name, kind, count, raw, raw_name)
        return [*attributes.values()]

    def wrong(self, at: int, what: str, expected: str, got: object) -> Corrupt:
        """Return the error for a header that is damaged."""
        return Corrupt(
            f"header: {what}"[:300], path=self.source.path, where=f"byte {at}",
            expected=expected, got=str(got)[:80],
        )  # fmt: skip


def text_of(raw: bytes, what: str, notes: list[str]) -> str:
    """Return text in UTF-8, else, with a note, in Latin-1."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        notes.append(f"{what} is not UTF-8: it is read as Latin-1")
        return raw.decode("latin-1")


def read_header(source: Source, notes: list[str]) -> Header:
    """Return the header of a file. Raises `Corrupt`, `TooLarge` and `Unsupported`."""
    version = VERSIONS.get(source.read_exact(0, 4, "the magic"))
    if version is None:
        raise Corrupt(
            "is not a netCDF classic file", path=source.path, where="byte 0",
            expected="CDF and 1, 2 or 5", got=repr(source.head[:4]),
        )  # fmt: skip
    cursor = _Cursor(source, version, notes)
    streaming = (1 << (64 if version == 5 else 32)) - 1
    records: int | None = cursor.number("the number of records")
    if records == streaming:
        records = None
    dims: dict[str, Dimension] = {}
    unlimited = False
    for _ in cursor.entries(DIMENSION, "dimensions"):
        name, raw = cursor.name("a dimension", dims)
        at, length = cursor.at, cursor.count(f"the length of dimension '{name}'")
        if not length and unlimited:
            raise cursor.wrong(at, "two dimensions are unlimited", "one at most", name)
        unlimited |= not length
        dims[name] = Dimension(name, length or None, raw)
    attributes = cursor.attributes("the file")
    variables: dict[str, Variable] = {}
    listed = [*dims.values()]
    for _ in cursor.entries(VARIABLE, "variables"):
        name, raw = cursor.name("a variable", variables)
        variables[name] = _variable(cursor, name, raw, listed)
    return Header(version, records, listed, attributes, [*variables.values()], cursor.at)


def _variable(cursor: _Cursor, name: str, raw: bytes, dims: list[Dimension]) -> Variable:
    """Read a variable behind its name."""
    at, rank = cursor.at, cursor.count(f"the number of dimensions of '{name}'")
    if rank > MAX_RANK:
        raise Unsupported(
            f"variable '{name}' has {rank} dimensions", path=cursor.source.path,
            where=f"byte {at}", expected=f"at most {MAX_RANK}",
        )  # fmt: skip
    numbers = []
    for axis in range(rank):
        at, number = cursor.at, cursor.count(f"a dimension of '{name}'")
        if number >= len(dims) or (axis and dims[number].length is None):
            expected = f"one of {len(dims)}, the unlimited one only first"
            raise cursor.wrong(at, f"a dimension of '{name}' is wrong", expected, number)
        numbers.append(number)
    attributes = cursor.attributes(f"'{name}'")
    kind = cursor.type()
    cursor.number(f"the size of '{name}'")  # not used: the dimensions say it, without a bound
    begin = cursor.number(f"the place of '{name}'", 4 if cursor.version == 1 else 8)
    return Variable(name, tuple(numbers), attributes, kind, begin, raw)


# Writing ------------------------------------------------------------------------------------------


def encoded(header: Header) -> bytes:
    """Return the bytes of a header in its version."""
    width = 8 if header.version == 5 else 4

    def count(number: int) -> bytes:
        return number.to_bytes(width, "big")

    def text(raw: bytes) -> bytes:
        return count(len(raw)) + raw + bytes(-len(raw) % PADDED)

    def tagged(tag: int, entries: list[bytes]) -> bytes:
        first = tag if entries else 0
        return first.to_bytes(4, "big") + count(len(entries)) + b"".join(entries)

    def attributes(listed: list[Attribute]) -> bytes:
        return tagged(ATTRIBUTE, [
            text(attribute.raw_name) + attribute.type.to_bytes(4, "big") + count(attribute.length)
            + attribute.raw + bytes(-len(attribute.raw) % PADDED)
            for attribute in listed
        ])  # fmt: skip

    def variable(entry: Variable) -> bytes:
        size = padded(header.row_of(entry))
        size = size if header.version == 5 or size < UNSAID else UNSAID
        begin = entry.begin.to_bytes(4 if header.version == 1 else 8, "big")
        dims = count(len(entry.dims)) + b"".join(map(count, entry.dims))
        kind = entry.type.to_bytes(4, "big")
        return (
            text(entry.raw_name) + dims + attributes(entry.attributes) + kind + count(size) + begin
        )

    dims = [text(dim.raw_name) + count(dim.length or 0) for dim in header.dims]
    magic = next(magic for magic, number in VERSIONS.items() if number == header.version)
    return (
        magic + count(header.records or 0) + tagged(DIMENSION, dims)
        + attributes(header.attributes) + tagged(VARIABLE, [*map(variable, header.variables)])
    )  # fmt: skip


def laid_out(header: Header) -> Header:
    """Return a header with the offsets of its variables: those of fixed size, then the records."""
    blank = [variable._replace(begin=0) for variable in header.variables]
    header = header._replace(variables=blank)
    end = offset = len(encoded(header))
    begins: dict[str, int] = {}
    for in_records in (False, True):
        for variable in header.variables:
            if header.is_record(variable) == in_records:
                begins[variable.name] = offset
                offset += padded(header.row_of(variable))
    placed = [variable._replace(begin=begins[variable.name]) for variable in header.variables]
    return header._replace(variables=placed, end=end)


def beyond(header: Header) -> Iterator[tuple[str, str]]:
    """Yield (variable or empty, reason) for each part that the version of a header has no room for.

    Offsets of variables are judged only if all else has room: the header is laid out then.
    """
    unfit = [*_unfit(header)]
    if unfit:
        yield from unfit
        return
    for variable in header.variables:
        if variable.begin > MOST_BEGIN[header.version]:
            yield variable.name, f"no data from byte {variable.begin} on"


def _unfit(header: Header) -> Iterator[tuple[str, str]]:
    """Yield (variable or empty, reason) for what has no room wherever the variables lie."""
    version = header.version
    for dim in header.dims:
        if (dim.length or 0) > MOST_LENGTH[version]:
            yield "", f"no dimension of {dim.length}"
    if (header.records or 0) > MOST_LENGTH[version]:
        yield "", f"no {header.records} records"
    if version != 5:
        yield from _types_of_cdf5(header)
    for variable in _followed(header):
        if header.row_of(variable) > MOST_BYTES[version]:
            yield variable.name, f"no {header.row_of(variable)} bytes that others follow"


def _types_of_cdf5(header: Header) -> Iterator[tuple[str, str]]:
    """Yield (variable or empty, reason) for types that only CDF-5 has."""
    attributes = [*header.attributes]
    for variable in header.variables:
        attributes += variable.attributes
    for attribute in attributes:
        if attribute.type > CLASSIC:
            yield "", f"no {_shown(attribute.type)}, which the attribute '{attribute.name}' is"
    for variable in header.variables:
        if variable.type > CLASSIC:
            yield variable.name, f"no {_shown(variable.type)}"


def _shown(number: int) -> str:
    """Return the name of the element type with this number, for messages."""
    return type_name(little(ELEMENTS[number]))


def _followed(header: Header) -> list[Variable]:
    """Return all variables but the last one: the fields of the header must hold their sizes.

    The last one of the file may be larger.
    """
    fixed = [variable for variable in header.variables if not header.is_record(variable)]
    records = [variable for variable in header.variables if header.is_record(variable)]
    return [*fixed, *records[:-1]] if records else fixed[:-1]


def smallest(header: Header) -> Header:
    """Return a header in the smallest version that has room for it, laid out."""
    for version in (1, 2):
        made = header._replace(version=version)
        if next(_unfit(made), None) is None:
            made = laid_out(made)
            if next(beyond(made), None) is None:
                return made
    return laid_out_if(header._replace(version=5))


def laid_out_if(header: Header) -> Header:
    """Return a header laid out, unless something in it has no room wherever the variables lie."""
    return header if next(_unfit(header), None) is not None else laid_out(header)
