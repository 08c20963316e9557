"""Annotations of EDF+: lists in the records, each with an onset, a duration and texts.

A list is ``+onset``, 21 and the duration if there is one, 20, then texts, each with 20 behind it,
and 0. The first of a record, in the first signal of annotations, has an empty text at first: its
onset is that of the record.
"""

from __future__ import annotations

import re
from array import array
from math import nan

from raconvert.errors import Corrupt, TooLarge

from .values import chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.files.source import Source

    from .header import Header, Signal

_LIST = re.compile(rb"([+-][0-9]+(?:[.][0-9]*)?)(?:\x15([0-9]+(?:[.][0-9]*)?))?\x14(.*)", re.DOTALL)
_ENTRY = re.compile(rb"[^\0]+")
TEXT_COST = 64  # bytes of memory that an annotation counts as
DIGITS = 15  # decimals of so many digits are exact in a double


class Annotations:
    """All annotations of a file, and the onset of each record (NaN: it has none)."""

    def __init__(self) -> None:
        self.onsets = array("d")
        self.durations = array("d")
        self.texts: list[bytes] = []
        self.starts = array("d")
        self.rounded = 0  # numbers with more digits than a double has
        self.latin = 0  # texts that are not UTF-8

    def add(self, onset: bytes, duration: bytes | None, texts: list[bytes]) -> None:
        """Add the texts of a list, each an annotation of its own."""
        count = len(texts)
        begin = self.number(onset, count)
        length = nan if duration is None else self.number(duration, count)
        self.onsets.extend(array("d", [begin]) * count)
        self.durations.extend(array("d", [length]) * count)
        self.texts.extend(map(self._utf8, texts))

    def _utf8(self, text: bytes) -> bytes:
        """Return a text in UTF-8; one that is not is taken for Latin-1, and counted."""
        try:
            text.decode()
        except UnicodeDecodeError:
            self.latin += 1
            return text.decode("latin-1").encode()
        return text

    def number(self, raw: bytes, count: int = 1) -> float:
        """Return the double nearest to a decimal, which is that of `count` annotations.

        Those with too many digits are counted.
        """
        digits = raw.lstrip(b"+-0.")
        self.rounded += count * (len(digits) - digits.count(b".") > DIGITS)
        return float(raw)

    def notes(self) -> list[str]:
        """Return lines about rounded times and texts in another encoding."""
        lines = []
        if self.rounded:
            lines.append(f"{self.rounded} times of annotations have more digits than a double")
        if self.latin:
            lines.append(f"{self.latin} texts of annotations are not UTF-8: read as Latin-1")
        return lines


def read_annotations(source: Source, header: Header) -> Annotations | None:
    """Return the annotations of a file; None if it has no signal of them.

    Raises `Corrupt` for annotations that do not follow EDF+, and `TooLarge`.
    """
    signals = [signal for signal in header.signals if signal.is_annotations]
    if not signals:
        return None
    listed, left = Annotations(), source.limits.document_bytes
    for number, signal in enumerate(signals):
        if header.width * signal.samples > source.limits.document_bytes:
            raise _too_large(source)
        for record, chunk in enumerate(chunks(source, header, signal)):
            raw = chunk.rstrip(b"\0")
            left -= len(raw)
            if left < 0:
                raise _too_large(source)
            _read_record(source, header, signal, record, raw, listed, is_first=not number)
    return listed


def _too_large(source: Source) -> TooLarge:
    """Return the error for more annotations than the limits allow."""
    limits = source.limits
    return TooLarge(
        "has more annotations than are read safely", path=source.path,
        expected=f"at most {limits.document_bytes} bytes, and "
        f"{limits.hierarchy_bytes // TEXT_COST} texts",
        remedy="the signals are read with `--allow arrays`",
    )  # fmt: skip


def _read_record(
    source: Source, header: Header, signal: Signal, record: int, raw: bytes, listed: Annotations,
    *, is_first: bool,
) -> None:  # fmt: skip
    """Add the lists of a record; those of the first signal begin with the onset of the record."""
    start = nan
    most = source.limits.hierarchy_bytes // TEXT_COST
    for number, part in enumerate(_ENTRY.finditer(raw)):
        entry = part.group()
        match = _LIST.fullmatch(entry)
        if match is None or (match[3] and not match[3].endswith(b"\x14")):
            raise Corrupt(
                "annotations do not follow EDF+", path=source.path,
                where=f"byte {header.begin + record * header.record_bytes + signal.offset}",
                expected="an onset, and texts that end with byte 20", got=repr(entry)[:60],
                remedy="the signals are read with `--allow arrays`",
            )  # fmt: skip
        onset, duration, rest = match.groups()
        if len(listed.texts) + rest.count(b"\x14") > most:
            raise _too_large(source)
        texts = rest.split(b"\x14")[:-1]
        if is_first and not number and texts and not texts[0]:
            start, texts = listed.number(onset), texts[1:]
        listed.add(onset, duration, texts)
    if is_first:
        listed.starts.append(start)
