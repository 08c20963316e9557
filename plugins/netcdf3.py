"""netCDF classic (CDF-1, CDF-2 and CDF-5): the variables of climate and ocean files, read.

Specification: "The NetCDF Classic Format Specification" and "64-bit offset format" (Unidata); the
CDF-5 format of PnetCDF. Compared with: netCDF4 and scipy, which write the files of the tests.

Layout, all big-endian::

    magic        CDF and 1, 2 (offsets of 8 bytes) or 5 (counts of 8 bytes, too)
    numrecs      records of the unlimited dimension; all bits set: as many as the file has
    dimensions   name, length (0: the unlimited one)
    attributes   of the file: name, type, values
    variables    name, dimensions, attributes, type, size, place
    data         of variables without the unlimited dimension, then the records

Reads: byte, char, short, int, float, double, and ubyte, ushort, uint, int64, uint64 of CDF-5.
Variables of fixed size are extents of the file. Those with the unlimited dimension are read where
they lie, a stretch in each record; the parts of a record are padded to 4 bytes, unless there is
only one. netCDF-4 files are HDF5 inside, see there: `.nc` is either, told apart by content.

Mapping: as for netCDF-4. Dimensions name the axes; the variable of the name of a dimension gives
its axis units, and spacing and origin where its values are exactly regular, else labels. It stays
an array, too. `units` and `long_name` are the units and the description; all other attributes
(CF: scale_factor, _FillValue, bounds, coordinates) are kept, and applied by ``--unscale`` only.
An attribute of one value is that value; text loses NUL at its end. Attributes have no type here:
a float is a double of the same value. Elements of type char are texts of one byte.

Noted: dimensions that no variable has, text that is not UTF-8 (read as Latin-1), records that are
counted by the size of the file.

An array that cannot be read, by name: a variable whose data is cut off.

Refused: headers that are damaged, variables that overlap each other or the header, more than 64
dimensions, files without variables. Not written: ``--to hdf5`` makes netCDF-4.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import prod

from raconvert.arrays.bundle import some_sound
from raconvert.arrays.dtypes import MAX_SPAN, needs_swap, spanned
from raconvert.arrays.memory import MAX_RANK
from raconvert.declared import Record
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported
from raconvert.metadata.attributes import FIELDS
from raconvert.plugin import (
    NO,
    SURE,
    Array,
    Axis,
    Bundle,
    Element,
    Format,
    Metadata,
    Source,
    element,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["FORMAT", "read", "sniff"]

VERSIONS = {b"CDF\x01": 1, b"CDF\x02": 2, b"CDF\x05": 5}
DIMENSION, VARIABLE, ATTRIBUTE = 10, 11, 12  # tags of lists; 0 with a count of 0: none
CHAR = 2
CLASSIC = 6  # the last type that CDF-1 and CDF-2 have
PADDED = 4  # bytes of which names, attributes and parts of records are multiples
ELEMENTS = {
    1: element("int", 1), CHAR: Element("user", 1, "|", "|S1"), 3: element("int", 2, ">"),
    4: element("int", 4, ">"), 5: element("float", 4, ">"), 6: element("float", 8, ">"),
    7: element("uint", 1), 8: element("uint", 2, ">"), 9: element("uint", 4, ">"),
    10: element("int", 8, ">"), 11: element("uint", 8, ">"),
}  # fmt: skip
LETTERS = {1: "i1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8",
           7: "u1", 8: ">u2", 9: ">u4", 10: ">i8", 11: ">u8"}  # fmt: skip
VALUE_BYTES = 32  # of memory for a number of a list
WINDOW = 1 << 16  # bytes of the header that are read at once

# CDF-1: int x(n = 2) = 1, 2
SAMPLE = (
    b"CDF\1" + bytes(4) + b"\0\0\0\x0a\0\0\0\1\0\0\0\1n\0\0\0\0\0\0\2" + bytes(8)
    + b"\0\0\0\x0b\0\0\0\1\0\0\0\1x\0\0\0\0\0\0\1\0\0\0\0" + bytes(8)
    + b"\0\0\0\4\0\0\0\x08\0\0\0\x50\0\0\0\1\0\0\0\2"
)  # fmt: skip
# CDF-2: short r(t = 2 records, n = 3), without padding, with units = "m"
RECORDS = (
    b"CDF\2\0\0\0\2\0\0\0\x0a\0\0\0\2\0\0\0\1t\0\0\0\0\0\0\0\0\0\0\1n\0\0\0\0\0\0\3"
    + bytes(8) + b"\0\0\0\x0b\0\0\0\1\0\0\0\1r\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1"
    + b"\0\0\0\x0c\0\0\0\1\0\0\0\5units\0\0\0\0\0\0\2\0\0\0\1m\0\0\0"
    + b"\0\0\0\3\0\0\0\x08\0\0\0\0\0\0\0\x7c\0\1\0\2\0\3\0\4\0\5\0\6"
)  # fmt: skip

FORMAT = Format(
    name="netcdf3",
    title="netCDF classic",
    suffixes=(".nc3", ".cdf"),
    magic=tuple((0, magic) for magic in VERSIONS),
    proof=True,
    many=True,
    writes=False,
    samples={"x.cdf": SAMPLE, "records.nc3": RECORDS},
    spec="https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html",
    losses="it is read, not written; .nc is written as netCDF-4",
)


def sniff(source: Source) -> int:
    """Sure of any file that begins with the magic of one of the versions."""
    return SURE if source.head[:4] in VERSIONS else NO


# The header --------------------------------------------------------------------------------------


class Variable(Record):
    """A variable as the header has it; `dims` are numbers of dimensions, the slowest first."""

    name: str
    dims: tuple[int, ...]
    attributes: dict[str, Any]
    type: int
    begin: int


class Header(Record):
    """The header; a length of None is the unlimited dimension."""

    records: int | None
    dims: list[tuple[str, int | None]]
    attributes: dict[str, Any]
    variables: list[Variable]
    end: int


class _Cursor:
    """Reads the header front to back."""

    def __init__(self, source: Source, version: int, notes: list[str]) -> None:
        self.source = source
        self.version = version
        self.notes = notes
        self.at = len(b"CDF\1")
        self.spent = 0  # bytes of memory of attributes
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
        """Return the numbers of the entries of a list, each of which takes some bytes."""
        at = self.at
        found, count = self.number(what, 4), self.count(f"the number of {what}")
        if found not in (0, tag) or (found == 0 and count):
            raise self.wrong(at, f"no list of {what}", f"tag {tag}, or 0 for none", found)
        if count > self.source.limits.nodes:
            raise TooLarge(
                f"has {count} {what}", path=self.source.path, where=f"byte {at}",
                expected=f"at most {self.source.limits.nodes}",
            )  # fmt: skip
        return range(count)

    def padded(self, count: int, what: str) -> bytes:  # type: ignore[valid-type]
        """Return bytes that are followed by padding."""
        found = self.bytes(count, what)
        self.bytes(-count % PADDED, what)
        return found

    def name(self, what: str, known: Any) -> str:
        """Return a name that no other one of its list has."""
        at, length = self.at, self.count(f"the length of the name of {what}")
        if not 0 < length <= self.source.limits.name_bytes:
            most = self.source.limits.name_bytes
            raise self.wrong(at, f"the name of {what} is too long or empty", f"1 to {most}", length)
        raw = self.padded(length, f"the name of {what}")
        name = self.text(raw, f"the name of {what}")
        if "/" in name or min(name) < " " or name in (".", "..") or name in known:
            raise self.wrong(at, f"the name of {what} is none", "another one, without '/'", name)
        return name

    def text(self, raw: bytes, what: str) -> str:  # type: ignore[valid-type]
        """Return text in UTF-8, else in Latin-1."""
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.notes.append(f"{what} is not UTF-8: it is read as Latin-1")
            return raw.decode("latin-1")

    def type(self) -> int:
        """Return the number of a type that this version has."""
        at, found = self.at, self.number("a type", 4)
        most = max(ELEMENTS) if self.version == 5 else CLASSIC
        if not 1 <= found <= most:
            raise self.wrong(at, "the type is unknown", f"1 to {most} in CDF-{self.version}", found)
        return found

    def attributes(self, of: str) -> dict[str, Any]:
        """Return the attributes of a variable or of the file."""
        found: dict[str, Any] = {}
        for _ in self.entries(ATTRIBUTE, f"attributes of {of}"):
            name = self.name(f"an attribute of {of}", found)
            kind, count = self.type(), self.count(f"the length of attribute '{name}'")
            self.spent += len(name) + count * (1 if kind == CHAR else VALUE_BYTES)
            if self.spent > self.source.limits.attribute_bytes:
                raise TooLarge(
                    "attributes of the file need more memory than allowed", path=self.source.path,
                    where=f"byte {self.at}", expected=f"{self.source.limits.attribute_bytes} bytes",
                    got=self.spent,
                )  # fmt: skip
            raw = self.padded(count * ELEMENTS[kind].nbytes, f"attribute '{name}' of {of}")
            found[name] = self._values(raw, kind, f"attribute '{name}' of {of}")
        return found

    def _values(self, raw: bytes, kind: int, what: str) -> Any:  # type: ignore[valid-type]
        if kind == CHAR:
            return self.text(raw.rstrip(b"\0"), what)
        import numpy as np

        from raconvert.metadata.reals import doubles

        values = np.frombuffer(raw, LETTERS[kind])
        listed = (doubles(values) if values.dtype.kind == "f" else values).tolist()
        return listed[0] if len(listed) == 1 else listed

    def wrong(self, at: int, what: str, expected: str, got: object) -> Corrupt:
        """Return the error for a header that is damaged."""
        return Corrupt(
            f"header: {what}"[:300], path=self.source.path, where=f"byte {at}",
            expected=expected, got=str(got)[:80],
        )  # fmt: skip


def _read_header(source: Source, notes: list[str]) -> Header:
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
    dims: dict[str, int | None] = {}
    for _ in cursor.entries(DIMENSION, "dimensions"):
        name = cursor.name("a dimension", dims)
        at, length = cursor.at, cursor.count(f"the length of dimension '{name}'")
        if not length and None in dims.values():
            raise cursor.wrong(at, "two dimensions are unlimited", "one at most", name)
        dims[name] = length or None
    attributes = cursor.attributes("the file")
    variables: dict[str, Variable] = {}
    listed = list(dims.items())
    for _ in cursor.entries(VARIABLE, "variables"):
        name = cursor.name("a variable", variables)
        variables[name] = _variable(cursor, name, listed)
    return Header(records, listed, attributes, list(variables.values()), cursor.at)


def _variable(cursor: _Cursor, name: str, dims: list[tuple[str, int | None]]) -> Variable:
    at, rank = cursor.at, cursor.count(f"the number of dimensions of '{name}'")
    if rank > MAX_RANK:
        raise Unsupported(
            f"variable '{name}' has {rank} dimensions", path=cursor.source.path,
            where=f"byte {at}", expected=f"at most {MAX_RANK}",
        )  # fmt: skip
    numbers = []
    for axis in range(rank):
        at, number = cursor.at, cursor.count(f"a dimension of '{name}'")
        if number >= len(dims) or (axis and dims[number][1] is None):
            expected = f"one of {len(dims)}, the unlimited one only first"
            raise cursor.wrong(at, f"a dimension of '{name}' is wrong", expected, number)
        numbers.append(number)
    attributes = cursor.attributes(f"'{name}'")
    kind = cursor.type()
    cursor.number(f"the size of '{name}'")  # which the dimensions say, too, and without a bound
    begin = cursor.number(f"the place of '{name}'", 4 if cursor.version == 1 else 8)
    return Variable(name, tuple(numbers), attributes, kind, begin)


# The data ----------------------------------------------------------------------------------------


class _Part(Record):
    """The place of a variable: `row` bytes, once or in each record; lengths of all its axes."""

    variable: Variable
    shape: tuple[int, ...]
    row: int
    is_record: bool


def _placed(source: Source, header: Header, notes: list[str]) -> tuple[list[_Part], int]:
    """The places of all variables, checked against each other, and the bytes of a record."""
    parts = []
    for variable in header.variables:
        lengths = [header.dims[number][1] for number in variable.dims]
        is_record = bool(lengths) and lengths[0] is None
        inner = [length for length in lengths if length is not None]
        row = prod(inner) * ELEMENTS[variable.type].nbytes
        parts.append(_Part(variable, tuple(inner), row, is_record))
    inside = [part for part in parts if part.is_record]
    alone = len(inside) == 1
    record = sum(part.row if alone else part.row + -part.row % PADDED for part in inside)
    first = min((part.variable.begin for part in inside), default=0)
    records = header.records
    if records is None:
        records = max(0, source.size - first) // record if record else 0
        notes.append(f"the header does not count the records: {records} are in the file")
    made = [
        _Part(part.variable, (records, *part.shape), part.row, True) if part.is_record else part
        for part in parts
    ]
    _check_apart(source, header, made, first, record, records)
    return made, record


def _check_apart(
    source: Source, header: Header, parts: list[_Part], first: int, record: int, records: int
) -> None:
    """Refuse variables that lie in the header, or in each other."""
    spans = [(p.variable.begin, p.variable.begin + p.row, p.variable.name) for p in parts
             if not p.is_record]  # fmt: skip
    rows = [(p.variable.begin, p.variable.begin + p.row, p.variable.name) for p in parts
            if p.is_record]  # fmt: skip
    if rows and records:
        rows.append((first + record, first + record, "the next record"))
        last = max(stop for _, stop, _ in rows[:-1])
        spans.append((first, last + record * (records - 1), "the records"))
    for listed in (sorted(spans), sorted(rows) if records else []):
        end, before = header.end, "the header"
        for begin, stop, name in listed:
            if begin < end:
                raise Corrupt(
                    f"'{name}' lies in '{before}'", path=source.path, where=f"byte {begin}",
                    expected=f"byte {end} or later", got=begin,
                )  # fmt: skip
            end, before = stop, name


def read(source: Source) -> Bundle:
    """The variables of a file in C order: extents, or stretches in the records.

    Raises `Corrupt`, `Unsupported` and `TooLarge` before any data is read.
    """
    notes: list[str] = []
    header = _read_header(source, notes)
    if not header.variables:
        raise Unsupported("holds no array", path=source.path, expected="a variable")
    parts, record = _placed(source, header, notes)
    arrays = [_array(source, part, record) for part in parts]
    _name_axes(arrays, parts, header, source)
    used = {number for part in parts for number in part.variable.dims}
    unused = [f"'{name}'" for n, (name, _) in enumerate(header.dims) if n not in used]
    if unused:
        more = f" and {len(unused) - 5} more" if len(unused) > 5 else ""
        notes.append(f"no variable has the dimensions {', '.join(unused[:5])}{more}: left out")
    return Bundle(some_sound(arrays), attributes=header.attributes, notes=notes)


def _array(source: Source, part: _Part, record: int) -> Array:
    variable, shape = part.variable, part.shape
    kind = ELEMENTS[variable.type]
    if spanned(shape, kind.nbytes) > MAX_SPAN:
        raise Corrupt(
            f"variable '{variable.name}' is too large", path=source.path,
            expected="less than 2**63 bytes", got=str(shape)[:80],
        )  # fmt: skip
    attributes = dict(variable.attributes)
    common = {}
    for name, field in FIELDS.items():
        if isinstance(attributes.get(name), str) and attributes[name]:
            common[field] = attributes.pop(name)
    fields: dict[str, Any] = {"name": variable.name, "index_order": "C"}
    fields["meta"] = Metadata(attributes=attributes, **common)
    nbytes = prod(shape) * kind.nbytes
    steps = shape[0] - 1 if part.is_record else 0
    end = variable.begin + record * steps + part.row if nbytes else 0
    if end <= source.size and (not part.is_record or record == part.row):
        begin = variable.begin if nbytes else 0
        fields["extent"] = source.extent(begin, nbytes, needs_swap(kind))
    elif end <= source.size:
        fields["data"] = lambda: _records(source, part, record)
    array = Array(kind, shape[::-1], **fields)
    array.storage["layout"] = "records" if part.is_record else "contiguous"
    if end > source.size:
        array.problem = Corrupt(
            f"data of '{variable.name}' is cut off", path=source.path,
            where=f"byte {source.size}", expected=f"{end} bytes", got=source.size,
        )  # fmt: skip
    return array


def _records(source: Source, part: _Part, record: int) -> Any:
    """Array source of a variable that has a stretch in each record."""
    import numpy as np

    from raconvert.arrays.regions import full_key, is_basic, region, slabs
    from raconvert.arrays.sources import InPlace
    from raconvert.files.paths import close_file
    from raconvert.plugin import dtype_of

    kind, shape = ELEMENTS[part.variable.type], part.shape
    inner = [kind.nbytes * prod(shape[axis + 1 :]) for axis in range(1, len(shape))]
    extent = source.extent(part.variable.begin, record * (shape[0] - 1) + part.row)

    class Records(InPlace):
        path = source.path

        @contextmanager
        def located(self) -> Iterator[tuple[Any, int]]:
            file = extent.open()
            try:
                yield file, extent.offset
            finally:
                close_file(file)

        def part(self, key: Any) -> Any:
            full = full_key(key, len(self.shape))
            if self.held() is not None or not is_basic(full) or not self._is_less(full):
                return self[key]
            return self._region(full)

        def _region(self, key: Any) -> Any:
            with self.located() as (file, offset):
                return region(
                    file, self.path, offset, self.dtype, self.shape, (record, *inner), key
                )

        def stream(self, max_bytes: int) -> Iterator[Any]:
            for key in slabs(self.shape, self.dtype.itemsize, max_bytes):
                yield np.ascontiguousarray(self._region(key)).reshape(-1)

    return Records(
        shape, dtype_of(kind), what=f"'{source.path}': variable '{part.variable.name}'",
        max_memory=source.max_memory,
    )  # fmt: skip


# Axes --------------------------------------------------------------------------------------------


def _name_axes(arrays: list[Array], parts: list[_Part], header: Header, source: Source) -> None:
    """Give arrays the axes that dimensions, and the variables of their names, say."""
    by_name = {array.name: array for array in arrays}
    known: dict[str, dict[str, Any]] = {}
    for array, part in zip(arrays, parts, strict=True):
        axes = []
        for number, length in zip(part.variable.dims, part.shape, strict=True):
            name = header.dims[number][0]
            scale = by_name.get(name)
            facts: dict[str, Any] = {}
            if scale is not None and scale is not array and scale.dims == (length,):
                if name not in known:
                    known[name] = _facts(scale, source)
                facts = {"units": scale.meta.units, **known[name]}
            axes.append(Axis(name, **facts))
        if axes:
            array.meta = array.meta.replace(axes=axes)


def _facts(scale: Array, source: Source) -> dict[str, Any]:
    """Spacing and origin, or labels, of the values of a coordinate variable."""
    from raconvert.arrays.interop.conventions import facts_of

    try:
        return {} if scale.problem is not None else facts_of(scale, source.limits)
    except (RaconvertError, OSError):  # reading it later reports the error
        return {}
