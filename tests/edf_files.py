"""EDF and BDF byte by byte, for files that no library writes."""

from __future__ import annotations

from typing import Any

WIDTHS = (8, 80, 80, 8, 8, 8, 44, 8, 8, 4)
SIGNAL_WIDTHS = (16, 80, 8, 8, 8, 8, 8, 80, 8, 32)
SIGNAL = ("x", "", "uV", "-100", "100", "-1000", "1000", "", "3", "")
NOTES = ("EDF Annotations", "", "", "-1", "1", "-32768", "32767", "", "8", "")
FIELDS = ("version", "patient", "recording", "date", "time", "nbytes", "reserved", "records",
          "duration", "count")  # fmt: skip
SIGNAL_FIELDS = ("label", "transducer", "unit", "low", "high", "first", "last", "prefilter",
                 "samples", "more")  # fmt: skip


def coded(value: Any, width: int) -> bytes:
    raw = value if isinstance(value, bytes) else str(value).encode("latin-1")
    return raw[:width].ljust(width)


def signal(base: tuple[str, ...] = SIGNAL, **fields: Any) -> tuple[Any, ...]:
    """The fields of a signal, some of which are others."""
    return tuple(fields.get(name, value) for name, value in zip(SIGNAL_FIELDS, base, strict=True))


def edf(
    signals: list[tuple[Any, ...]] | None = None, data: bytes | None = None, **said: Any
) -> bytes:
    """A file: signals, the bytes of its records, and fields of its header."""
    signals = [SIGNAL] if signals is None else signals
    data = bytes(range(12)) if data is None else data
    fields = {
        "version": "0", "date": "02.03.02", "time": "22.33.44", "nbytes": 256 * (1 + len(signals)),
        "records": 2, "duration": 1, "count": len(signals), **said,
    }  # fmt: skip
    head = b"".join(coded(fields.get(f, ""), w) for f, w in zip(FIELDS, WIDTHS, strict=True))
    for n, width in enumerate(SIGNAL_WIDTHS):
        head += b"".join(coded(one[n], width) for one in signals)
    return head + data


def lists(*records: bytes, nbytes: int = 16) -> bytes:
    """Records of annotations alone."""
    return b"".join(record.ljust(nbytes, b"\0") for record in records)
