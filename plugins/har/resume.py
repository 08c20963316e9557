"""Recovery: the offset at which reading goes on behind damaged records, or at a cut.

Both marks of a record say how long it is. Where they differ one of them is damaged, as a rule, and
the other shows where the next record begins: the leading one, if a sound record follows there; the
trailing one, if the records from the end of the file backwards lead to it. Otherwise the bytes up
to the next sound record are lost: nobody knows which headers they held, and they are an entry of
their own.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

from raconvert.errors import Corrupt

from .header import DATA, SECOND
from .records import BIG, LITTLE, Records, marks
from .tables import FULL, NAME_CHARS, SPARSE, text
from .walk import Header, continues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.errors import RaconvertError
    from raconvert.plugin import Source

    from .records import Record
    from .walk import Walk


def is_name(record: Record) -> bool:
    """True if the record can be the name of a header: four characters, printable, and no path."""
    raw = text(record.head[:NAME_CHARS])
    usable = raw.strip(" ") != "" and raw.isprintable() and "/" not in raw
    return bool(record.nbytes == NAME_CHARS and usable)


def framing_of_damaged(source: Source) -> str | None:
    """The framing of a file whose first record has one damaged mark, or None."""
    for framing in (LITTLE, BIG):
        name, other = marks(framing, NAME_CHARS)
        begin = len(name) + NAME_CHARS
        head = source.head
        if name in (head[:4], head[begin : begin + 4]):
            with source.open() as file:
                records = Records(source, file, framing)
                if is_second(record_at(records, begin + len(other))):
                    return framing
    return None


def record_at(records: Records, offset: int) -> Record | None:
    """The record at `offset`; None if it is damaged, or the file ends."""
    try:
        return records.at(offset, "")
    except Corrupt:
        return None


def is_second(record: Record | None) -> bool:
    """True if a record can be the one behind the name of a header."""
    if record is None or not continues(record) or record.nbytes < SECOND.nbytes:
        return False
    return text(record.head[6:10]) in (FULL, SPARSE)


def unreadable_part(name: str, offset: int, problem: RaconvertError) -> Header:
    """The entry of a part of the file that cannot be read, under a name that no header can have."""
    header = Header(name, offset)
    header.problem = problem
    return header


class Resume:
    """Recovery behind damage; `lost` has the stretches that may hold headers, `notes` the jumps."""

    def __init__(self, walk: Walk) -> None:
        self.lost: list[Header] = []
        self.notes: list[str] = []
        self._walk = walk
        self._sound: array[int] | None = None  # offsets of the sound records at the end of the file

    def pass_all(self, start: int) -> None:
        """Skip from `start` to the beginning of the next header, or to the end of the file."""
        walk = self._walk
        walk.go_back(start)
        while True:
            try:
                record = walk.peek()
            except Corrupt:
                end, sure = self._behind(walk.offset)
                if walk.offset > start and sure and self._is_short(end - walk.offset):
                    return  # it is the damaged name of another header
                self._pass_damage(end, sure=sure)
                continue
            if record is None or record.nbytes < DATA.nbytes:
                return
            walk.skip(record)

    def lose(self, start: int, end: int) -> None:
        """Add the stretch from `start` to `end` to `lost`, and go on behind it."""
        size = self._walk.source.size
        problem = Corrupt(
            f"{end - start} bytes cannot be told apart into records; they may hold headers",
            path=self._walk.source.path,
            where=f"bytes {start} to {end}",
            remedy="the file is cut off or damaged: get it anew",
        )
        name = f"from byte {start}" if end == size else f"bytes {start} to {end}"
        self.lost.append(unreadable_part(name, start, problem))
        self._walk.go_back(end)

    def _behind(self, offset: int) -> tuple[int, bool]:
        """The offset behind the damaged record at `offset`, and True if it surely ends there."""
        records = self._walk.records
        by_lead = records.behind(offset)
        if by_lead is not None and not self._is_sound(by_lead):
            by_lead = None
        end = self._next_sound(offset)
        if end is not None and (by_lead is None or end <= by_lead):
            return end, end == by_lead or offset in records.begins(end)
        return (records.size, False) if by_lead is None else (by_lead, True)

    def _is_short(self, nbytes: int) -> bool:
        """True if a record with its marks is as short as only names are."""
        framing = self._walk.records.framing
        return nbytes - sum(map(len, marks(framing, NAME_CHARS))) < DATA.nbytes

    def _pass_damage(self, end: int, *, sure: bool) -> None:
        """Go on at `end`, behind a damaged record."""
        walk = self._walk
        if not sure:
            self.lose(walk.offset, end)
            return
        what = f"header '{walk.header}'" if walk.header else "the name of a header"
        self.notes.append(f"{what} is damaged at byte {walk.offset}; reading goes on at byte {end}")
        walk.go_back(end)

    def _next_sound(self, offset: int) -> int | None:
        """The first offset behind `offset` from which all records are sound, or None."""
        records = self._walk.records
        if self._sound is None:
            offsets = array("q")
            start = records.before(records.size)
            while start is not None and start > offset:
                offsets.append(start)
                start = records.before(start)
            offsets.reverse()
            self._sound = offsets
        index = bisect_right(self._sound, offset)
        return self._sound[index] if index < len(self._sound) else None

    def _is_sound(self, offset: int) -> bool:
        """True if a sound record that can follow another one begins here, or the file ends."""
        records = self._walk.records
        record = record_at(records, offset)
        if record is None:
            return offset == records.size
        return continues(record) or (is_name(record) and is_second(record_at(records, record.end)))
