r"""Fortran sequential records in three framings: read by their marks, and written.

little, big::

    int32 N | N bytes | int32 N           in that byte order, which is also that of all numbers

lahey (F77L3, LF90; GEMPACK up to release 7; an option of ViewHAR), numbers little-endian::

    one byte FD at the start of the file, then for every record
    mark(N) | N bytes | the bytes of mark(N + bytes of the leading mark) in reverse
    mark(n): (n << 2) | k, little-endian in k+1 bytes, smallest k in 0..3 with n < 2^(6+8k)

Records of 2 GiB and more would be split by some compilers under negative lengths; GEMPACK never
writes such, and a negative length is refused.
"""

from __future__ import annotations

from collections import namedtuple
from struct import Struct

from raconvert.errors import Corrupt
from raconvert.files.source import read_failed, read_up_to

from .header import BLANKS, DATA, POSITION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Literal, NoReturn

    from raconvert.plugin import Source

LITTLE, BIG, LAHEY = "little", "big", "lahey"
LAHEY_START = b"\xfd"
HEAD_BYTES = POSITION.nbytes  # bytes read of every record
WINDOW_BYTES = 512  # bytes read at once; more would read the data that indexing skips
# A position record with its marks, the mark and the fields of the data record behind it.
_PART = f"i{POSITION.code}2i{DATA.code}"
_MARK = slice(-DATA.nbytes - 4, -DATA.nbytes)  # the slice of the data record's leading mark
_INT32 = {LITTLE: Struct("<i"), BIG: Struct(">i")}

# The first length that a mark cannot hold; a Lahey mark also counts the leading mark.
_MAX_BYTES = {LITTLE: 1 << 31, BIG: 1 << 31, LAHEY: (1 << 30) - 4}

# One record: its payload of `nbytes` begins at `start`; `end` is where the next record begins,
# `head` the first bytes of the payload.
Record = namedtuple("Record", "offset start nbytes end head")


def byte_order(framing: str) -> str:
    """The byte order, ``<`` or ``>``, of all numbers in the payloads."""
    return ">" if framing == BIG else "<"


def mark(nbytes: int) -> bytes:
    """The Lahey mark of a length."""
    more = next((k for k in range(3) if nbytes < 1 << (6 + 8 * k)), 3)
    return (nbytes << 2 | more).to_bytes(more + 1, "little")


def marks(framing: str, nbytes: int) -> tuple[bytes, bytes]:
    """The marks before and behind a payload of this length."""
    if framing == LAHEY:
        lead = mark(nbytes)
        return lead, mark(nbytes + len(lead))[::-1]
    both = _INT32[framing].pack(nbytes)
    return both, both


def framed(framing: str, parts: Iterable[Any]) -> list[Any]:
    """The pieces of one record whose payload is made of `parts`."""
    payload = list(parts)
    lead, trail = marks(framing, sum(memoryview(part).nbytes for part in payload))
    return [lead, *payload, trail]


def framing_of(head: bytes) -> str | None:
    """The framing in which these first bytes are the name of a header, or None."""
    if head[:2] == LAHEY_START + mark(4) and head[6:7] == mark(5):
        return LAHEY
    for framing in (LITTLE, BIG):
        four = _INT32[framing].pack(4)
        if head[:4] == four == head[8:12]:
            return framing
    return None


class Records:
    """The records of an open file, one after the other; only marks and heads are read."""

    def __init__(self, source: Source, file: Any, framing: str) -> None:
        self.path = source.path
        self.size = source.size
        self.framing = framing
        self.order = byte_order(framing)
        self._bytes_order: Literal["big", "little"] = "big" if self.order == ">" else "little"
        self.first = len(LAHEY_START) if framing == LAHEY else 0
        self.window = WINDOW_BYTES
        self._part = Struct(self.order + _PART)
        self._file = file
        self._data = b""
        self._start = 0

    def bytes_at(self, offset: int, nbytes: int) -> bytes:
        """Read up to `nbytes` bytes from `offset`; fewer only at the end of the file."""
        begin = offset - self._start
        if begin < 0 or begin + nbytes > len(self._data):
            try:
                self._file.seek(offset)
                wanted = min(max(nbytes, self.window), max(0, self.size - offset))
                self._data = read_up_to(self._file, wanted)
            except OSError as error:
                raise read_failed(self.path, error) from error
            self._start, begin = offset, 0
        return self._data[begin : begin + nbytes]

    def at(self, offset: int, where: str) -> Record:
        """The record at `offset`, both marks checked. Raises `Corrupt`, which names `where`."""
        head = self.bytes_at(offset, HEAD_BYTES + 4)
        lead, nbytes = self._lead(head, offset, where)
        start = offset + lead
        trail = head[:4] if self.framing != LAHEY else marks(LAHEY, nbytes)[1]
        end = start + nbytes + len(trail)
        if end > self.size:
            self._refuse(
                "file ends inside a record", offset, where,
                f"{nbytes} bytes and their mark", max(0, self.size - start),
            )  # fmt: skip
        head = head[lead : lead + min(nbytes, HEAD_BYTES)]
        stored = self.bytes_at(start + nbytes, len(trail))
        if stored != trail:
            self._refuse(
                "the two marks of a record differ", offset, where,
                f"{trail.hex()} at byte {start + nbytes}", stored.hex(),
            )  # fmt: skip
        return Record(offset, start, nbytes, end, head)

    def behind(self, offset: int) -> int | None:
        """The end of the record at `offset`, by its leading mark; None if it is beyond the file."""
        try:
            lead, nbytes = self._lead(self.bytes_at(offset, HEAD_BYTES + 4), offset, "")
        except Corrupt:
            return None
        end = offset + lead + nbytes + len(marks(self.framing, nbytes)[1])
        return end if end <= self.size else None

    def begins(self, end: int) -> list[int]:
        """The possible offsets of the record that ends at `end`, by its trailing mark."""
        if self.framing != LAHEY:
            nbytes = _INT32[self.framing].unpack(self.bytes_at(end - 4, 4))[0] if end >= 4 else -1
            return [end - 8 - nbytes] if len(BLANKS) <= nbytes <= end - 8 - self.first else []
        trail = (self.bytes_at(end - 1, 1)[0] & 3) + 1
        total = int.from_bytes(self.bytes_at(end - trail, trail)[::-1], "little") >> 2
        starts = [  # the trailing mark counts the leading one, whose length it does not give
            end - trail - total
            for lead in range(1, 5)
            if total - lead >= len(BLANKS) and len(mark(total - lead)) == lead
        ]
        return [start for start in starts if start >= self.first]

    def before(self, end: int) -> int | None:
        """The offset of the record that ends at `end`; None if its marks do not agree."""
        return next((start for start in self.begins(end) if self.behind(start) == end), None)

    def part(self, offset: int) -> tuple[int, ...] | None:
        """The fields of a usual part of full data: a position record and a data record.

        The fields are the counter and 14 ends of the position, the counter of the data, its number
        of values, their offset, and the end of the part; the marks are checked. None if anything is
        unusual, which `at` then names. So indexing a file of thousands of parts takes no longer
        than reading it.
        """
        if self.framing == LAHEY:
            return None
        raw = self.bytes_at(offset, self._part.size)
        if len(raw) < self._part.size:
            return None
        lead, blanks, *numbers, trail, nbytes, more, counter = self._part.unpack(raw)
        usual = lead == trail == POSITION.nbytes and blanks == more == BLANKS
        count, rest = divmod(nbytes - DATA.nbytes, 4)
        start = offset + self._part.size
        end = start + 4 * count
        if not usual or count < 0 or rest or self.bytes_at(end, 4) != raw[_MARK]:
            return None
        return (*numbers, counter, count, start, end + 4)

    def _lead(self, head: bytes, offset: int, where: str) -> tuple[int, int]:
        """The bytes of the leading mark, and the length that it gives."""
        if self.framing == LAHEY:
            lead = (head[0] & 3) + 1 if head else 1
            nbytes = int.from_bytes(head[:lead], "little") >> 2
        else:
            lead = 4
            nbytes = int.from_bytes(head[:4], self._bytes_order, signed=True)
        if len(head) < lead:
            self._refuse("file ends inside the mark of a record", offset, where, lead, len(head))
        if not len(BLANKS) <= nbytes < _MAX_BYTES[self.framing]:
            self._refuse(
                "a record has an impossible length", offset, where,
                f"{len(BLANKS)} to {_MAX_BYTES[self.framing]} bytes", nbytes,
            )  # fmt: skip
        return lead, nbytes

    def _refuse(self, what: str, offset: int, where: str, expected: Any, got: Any) -> NoReturn:
        where_at = f"{where}, byte {offset}" if where else f"byte {offset}"
        raise Corrupt(what, path=self.path, where=where_at, expected=expected, got=got)
