"""The walk through the records of a file, and the headers that it fills."""

from __future__ import annotations

from array import array
from collections import namedtuple
from struct import error as struct_error

from raconvert.errors import Corrupt, RaconvertError

from .header import BLANKS, DATA, MOST_BYTES
from .tables import FULL, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from raconvert.plugin import Axis, Source

    from .header import Layout
    from .records import Record, Records

# The location of data: for each part the offset of its values and their count. `boxes` are the
# positions of parts that do not follow each other in Fortran order, else None. A sparse part holds
# `count` positions, then as many values.
Parts = namedtuple("Parts", "offsets counts boxes")


class Header:
    """One header: its type, the extents of its data, and its record for the way back (`own`)."""

    __slots__ = (
        "axes", "dims", "long", "name", "offset", "own", "parts", "problem", "raw", "records",
        "sizes", "start", "stop", "storage", "type",
    )  # fmt: skip

    def __init__(self, raw: str, offset: int) -> None:
        self.raw = raw
        self.name = raw.strip(" ")
        self.offset = offset
        self.type = ""  # empty for a header without records
        self.storage = FULL
        self.long = ""
        self.sizes: tuple[int, ...] = ()
        self.dims: tuple[int, ...] = ()
        self.axes: list[Axis] = []
        self.own: dict[str, Any] = {}
        self.parts = Parts(array("q"), array("q"), None)
        # The reason why it cannot be read; then its name may be made up.
        self.problem: RaconvertError | None = None
        self.records = 0  # count of records behind the name
        self.start = self.stop = offset  # begin and end of those records

    @property
    def hidden(self) -> bool:
        """True if the name marks housekeeping: creation date, history and so on."""
        return self.name[:2].upper() == "XX"


def continues(record: Record) -> bool:
    """True if a record belongs to the header before it: all but names begin with four blanks."""
    return bool(record.head[:4] == BLANKS and record.nbytes >= DATA.nbytes)


class Walk:
    """The records of a file in order, with the header and the record that messages name."""

    def __init__(self, source: Source, records: Records) -> None:
        self.source = source
        self.records = records
        self.order = records.order
        self.offset = records.first
        self.header = ""  # the name of the current header
        self.number = 0  # records passed since that name
        self.labels: dict[bytes, tuple[str, ...]] = {}  # lists are shared by all headers of a file
        self.label_count = 0
        self._next: Record | None = None

    @property
    def where(self) -> str:
        """The header and number of the next record, for messages."""
        return f"header '{self.header}', record {self.number + 1}" if self.header else "a header"

    def peek(self) -> Record | None:
        """The next record, without passing it; None at the end of the file."""
        if self._next is None and self.offset < self.records.size:
            try:
                self._next = self.records.at(self.offset, "")
            except Corrupt as error:
                error.where = f"{self.where}, {error.where}"
                raise
        return self._next

    def more(self) -> bool:
        """True if the next record belongs to this header."""
        record = self.peek()
        return record is not None and continues(record)

    def next(self, what: str, nbytes: int | None = None) -> Record:
        """Return the next record of this header; raises `Corrupt` unless it has `nbytes` bytes."""
        record = self.peek()
        if record is None or not continues(record):
            raise Corrupt(
                f"file ends before {what}" if record is None else f"{what} is missing",
                path=self.source.path,
                where=f"{self.where}, byte {self.offset}",
                expected="a record that begins with four blanks",
                got="the end of the file" if record is None else repr(text(record.head[:4])),
            )
        if nbytes is not None and record.nbytes != nbytes:
            self.refuse(f"{what} has a wrong length", record, f"{nbytes} bytes", record.nbytes)
        self.skip(record)
        return record

    def skip(self, record: Record) -> None:
        """Go on behind a record."""
        self.offset = record.end
        self.number += 1
        self._next = None

    def go_back(self, offset: int) -> None:
        """Return to the records of this header; the first one is at `offset`."""
        self.offset = offset
        self.number = 0
        self._next = None

    def pass_part(self, end: int) -> None:
        """Go on behind a position record and the data record that ends at `end`."""
        self.offset = end
        self.number += 2
        self._next = None

    def refuse(self, what: str, record: Record, expected: object, got: object) -> NoReturn:
        """Raise `Corrupt` about a record of this header."""
        number = self.number + (record.offset == self.offset)
        where = f"header '{self.header}', record {number}, " if self.header else ""
        where += f"byte {record.offset}"
        raise Corrupt(what, path=self.source.path, where=where, expected=expected, got=got)

    def fields(self, layout: Layout, record: Record) -> tuple[Any, int]:
        """The fields of a record, and the offset of their end in its payload."""
        payload = record.head
        if layout.nbytes > len(payload) or layout.grows:
            payload = self.records.bytes_at(record.start, min(record.nbytes, MOST_BYTES))
        try:
            return layout.unpack(self.order, payload)
        except struct_error:
            expected = f"at least {layout.nbytes} bytes"
            self.refuse("a record is too short", record, expected, record.nbytes)
