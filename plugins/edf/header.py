"""The header: bytes to fields, checked against the length of the file."""

from __future__ import annotations

import re
from fractions import Fraction

from raconvert.declared import Record
from raconvert.errors import Corrupt, counted, listed
from raconvert.plugin import trailing_note

from .tables import ANNOTATIONS, BDF, BLOCK, EDF, FIELDS, SIGNAL_FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.files.source import Source

    Range = tuple[Fraction, Fraction]

_ESRF = "it seems to be in the ESRF data format, which has the same suffix; fabio reads it"
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]{1,2})?")


class Signal(Record):
    """One signal: its fields in the header, and where its samples lie in a record."""

    label: str
    transducer: str
    unit: str
    prefilter: str
    physical: Range | None
    digital: Range | None
    samples: int
    offset: int  # bytes in the record before it

    @property
    def is_annotations(self) -> bool:
        """True for a signal that holds text in place of samples."""
        return self.label in ANNOTATIONS


class Header(Record):
    """The fields of a file; `width` is the number of bytes of a sample."""

    kind: str  # EDF, EDF+C, EDF+D, and the same of BDF
    width: int
    patient: str
    recording: str
    date: str
    time: str
    begin: int
    records: int
    record_bytes: int
    duration: Fraction
    signals: list[Signal]
    notes: list[str]

    @property
    def is_discontinuous(self) -> bool:
        """True if records may have gaps between them."""
        return self.kind.endswith("+D")


class Texts:
    """Reader of the texts of fields; it counts what is odd about them for notes."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.strange: list[str] = []  # fields with letters that are not ASCII
        self.commas: list[str] = []

    def text(self, raw: bytes, field: str) -> str:
        """Return the text of a field without blanks around it."""
        raw = raw.strip(b" \0")
        if raw.isascii():
            return raw.decode("ascii")
        self.strange.append(field)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw.decode("latin-1")

    def number(self, raw: bytes, field: str) -> Fraction | None:
        """Return a decimal exactly; None for anything else."""
        text = raw.strip(b" \0").decode("latin-1")
        if "," in text:
            self.commas.append(field)
            text = text.replace(",", ".")
        return Fraction(text) if _DECIMAL.fullmatch(text) else None

    def whole(self, raw: bytes, field: str, at: int, least: int = 0) -> int:
        """Return an integer; raises `Corrupt` for anything else, or one below the least."""
        number = self.number(raw, field)
        if number is None or number.denominator != 1 or number < least:
            raise Corrupt(
                f"{field} is not a number", path=self.source.path, where=f"byte {at}",
                expected=f"an integer of at least {least}", got=repr(bytes(raw))[:40],
            )  # fmt: skip
        return int(number)

    def notes(self) -> list[str]:
        """Return lines about what is odd."""
        lines = []
        if self.strange:
            lines.append(f"letters that are not ASCII in the header: {listed(self.strange)}")
        if self.commas:
            lines.append(f"a comma stands for the point of decimals: {listed(self.commas)}")
        return lines


def read_header(source: Source, records: str) -> Header:
    """Read the header of a file. Raises `Corrupt`; `records` is the option of that name."""
    head = source.read_exact(0, BLOCK, "the header")
    raw, at = {}, {}
    offset = 0
    for field, nbytes in FIELDS:
        raw[field], at[field] = head[offset : offset + nbytes], offset
        offset += nbytes
    is_bdf = raw["version"] == BDF
    if not is_bdf and raw["version"].strip(b" \0") != EDF.strip():
        raise Corrupt(
            "is neither EDF nor BDF", path=source.path, where="byte 0",
            expected="'0' and blanks, or 255 and 'BIOSEMI'", got=repr(raw["version"]),
            remedy=_ESRF if raw["version"].lstrip().startswith(b"{") else None,
        )  # fmt: skip
    texts, width = Texts(source), 3 if is_bdf else 2
    count = texts.whole(raw["signals"], "number of signals", at["signals"], 1)
    signals = _signals(source, texts, count, width)
    record_bytes = width * sum(signal.samples for signal in signals)
    if not record_bytes:
        raise Corrupt("has records without samples", path=source.path, expected="1 or more")
    duration = texts.number(raw["duration"], "duration of a record")
    if duration is None or duration < 0:
        raise Corrupt(
            "duration of a record is not a number of seconds", path=source.path,
            where=f"byte {at['duration']}", expected="0 or more", got=repr(raw["duration"]),
        )  # fmt: skip
    count_of_records = texts.whole(raw["records"], "number of records", at["records"], -1)
    header_bytes = texts.number(raw["header bytes"], "length of the header")
    notes: list[str] = []
    begin = _begin(source, header_bytes, count, count_of_records, record_bytes, notes)
    count_of_records = _records(source, begin, count_of_records, record_bytes, records, notes)
    reserved = texts.text(raw["reserved"], "reserved")
    is_plus = reserved[:3] in ("EDF", "BDF") and reserved[3:5] in ("+C", "+D")
    plus = reserved[3:5] if is_plus else ""
    header = Header(
        ("BDF" if is_bdf else "EDF") + plus, width,
        texts.text(raw["patient"], "patient"), texts.text(raw["recording"], "recording"),
        texts.text(raw["date"], "date"), texts.text(raw["time"], "time"),
        begin, count_of_records, record_bytes, duration, signals, notes,
    )  # fmt: skip
    notes += texts.notes()
    return header


def _signals(source: Source, texts: Texts, count: int, width: int) -> list[Signal]:
    """Read the fields of all signals; `width` is the number of bytes of a sample."""
    block = source.read_exact(BLOCK, BLOCK * count, f"the headers of {counted(count, 'signal')}")
    begin, raw = 0, {}
    for field, nbytes in SIGNAL_FIELDS:
        raw[field] = [block[begin + n * nbytes : begin + (n + 1) * nbytes] for n in range(count)]
        begin += nbytes * count
    samples_at = BLOCK + count * sum(nbytes for _, nbytes in SIGNAL_FIELDS[:8])
    signals, offset = [], 0
    for n in range(count):
        label = texts.text(raw["label"][n], f"label of signal {n + 1}")
        samples = texts.whole(
            raw["samples"][n], f"number of samples of signal {n + 1}", samples_at + 8 * n
        )
        ranges: list[Range | None] = []
        for which in ("physical", "digital"):
            low, high = (
                texts.number(raw[f"{which} {end}"][n], f"{which} {end} of signal {n + 1}")
                for end in ("minimum", "maximum")
            )
            ranges.append(None if low is None or high is None else (low, high))
        transducer, unit, prefilter = (
            texts.text(raw[field][n], f"{field} of signal {n + 1}")
            for field in ("transducer", "unit", "prefilter")
        )
        physical, digital = ranges
        signals.append(
            Signal(label, transducer, unit, prefilter, physical, digital, samples, offset)
        )
        offset += width * samples
    return signals


def _begin(
    source: Source, said: Fraction | None, count: int, records: int, record_bytes: int,
    notes: list[str],
) -> int:  # fmt: skip
    """Return the offset of the records: as the header has it, if that fits the file.

    Else the length that a header of `count` signals has. Raises `Corrupt` if neither fits.
    """
    own = BLOCK * (1 + count)
    if said == own:
        return own

    def fits(begin: int) -> bool:
        rest = source.size - begin
        return rest == records * record_bytes if records >= 0 else rest % record_bytes == 0

    if said is not None and said.denominator == 1 and said >= own and fits(int(said)):
        notes.append(f"the header has {said} bytes, {said - own} more than {count} signals take")
        return int(said)
    if fits(own):
        shown = "nothing" if said is None else str(said)
        notes.append(f"the header says {shown} of its length, and has {own} bytes")
        return own
    raise Corrupt(
        "length of the header is wrong, and the length of the file fits none", path=source.path,
        where="byte 184", expected=f"{own} bytes", got="no number" if said is None else str(said),
    )  # fmt: skip


def _records(
    source: Source, begin: int, said: int, record_bytes: int, rule: str, notes: list[str]
) -> int:
    """Return the number of whole records in the file. Raises `Corrupt` if too few are there."""
    rest = max(0, source.size - begin)
    whole, over = divmod(rest, record_bytes)
    if said < 0:
        notes.append(f"the header does not say how many records there are (-1): {whole} were found")
        if over:
            notes.append(f"the last {over} bytes are less than a record, and left out")
        return whole
    if said > whole:
        if rule != "found":
            raise Corrupt(
                "data is cut off", path=source.path, where=f"byte {source.size}",
                expected=f"{counted(said, 'record')} of {record_bytes} bytes", got=whole,
                remedy="copy the file again; `--in-opt records=found` reads the whole records",
            )  # fmt: skip
        notes.append(f"the header says {said} records, of which {whole} are there")
        if over:
            notes.append(f"the last {over} bytes are less than a record, and left out")
        return whole
    if over or said < whole:
        notes.append(trailing_note(rest - said * record_bytes))
    return said
