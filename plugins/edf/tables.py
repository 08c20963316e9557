"""Tables of EDF and BDF: fields of the header, and sample files."""

from __future__ import annotations

__all__ = [
    "ANNOTATIONS", "BDF", "BLOCK", "EDF", "FIELDS", "KINDS", "MONTHS", "NAMESPACE", "OF_PATIENT",
    "OF_RECORDING", "SAMPLES", "SIGNAL_FIELDS",
]  # fmt: skip

NAMESPACE = "edf"
EDF, BDF = b"0       ", b"\xffBIOSEMI"
BLOCK = 256  # bytes of the header, and of that of each signal
ANNOTATIONS = ("EDF Annotations", "BDF Annotations")
# Fields and their widths, in order.
FIELDS = (
    ("version", 8), ("patient", 80), ("recording", 80), ("date", 8), ("time", 8),
    ("header bytes", 8), ("reserved", 44), ("records", 8), ("duration", 8), ("signals", 4),
)  # fmt: skip
SIGNAL_FIELDS = (
    ("label", 16), ("transducer", 80), ("unit", 8), ("physical minimum", 8),
    ("physical maximum", 8), ("digital minimum", 8), ("digital maximum", 8), ("prefilter", 80),
    ("samples", 8), ("reserved", 32),
)  # fmt: skip
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
# Words of the two texts about people, in the order of EDF+; without the date that begins a
# recording, since the header has it, too.
OF_PATIENT = ("code", "sex", "birthdate", "name")
OF_RECORDING = ("admincode", "technician", "equipment")
KINDS = ("patient", "recording", *OF_PATIENT, *OF_RECORDING)


def _sample(version: bytes, plus: str, width: int, records: list[bytes], *signals: object) -> bytes:
    """Return a file of signals (label, samples) without anything about a person."""
    labels, counts = signals[::2], signals[1::2]
    texts = ["", "", "01.01.85", "00.00.00", str(BLOCK * (1 + len(labels))), plus,
             str(len(records)), "1", str(len(labels))]  # fmt: skip
    head = version + b"".join(
        text.encode().ljust(nbytes) for text, (_, nbytes) in zip(texts, FIELDS[1:], strict=True)
    )
    low = -(1 << (8 * width - 1))
    fields = [labels, "", "", str(low), str(-low - 1), str(low), str(-low - 1), "", counts, ""]
    for values, (_, nbytes) in zip(fields, SIGNAL_FIELDS, strict=True):
        for n in range(len(labels)):
            text = values if isinstance(values, str) else str(values[n])
            head += text.encode().ljust(nbytes)
    return head + b"".join(records)


SAMPLES = {
    "two_by_three.edf": _sample(
        EDF, "EDF+D", 2,
        [b"\1\0\2\0\3\0+0\x14\x14\0\0\0\0", b"\4\0\5\0\6\0+5\x14\x14Hm\x14\0"],
        "x", 3, ANNOTATIONS[0], 4,
    ),
    "four.bdf": _sample(
        BDF, "24BIT", 3, [b"\1\0\0\2\0\0\3\0\0", b"\4\0\0\5\0\0\xff\xff\xff"], "x", 2, "y", 1
    ),
}  # fmt: skip
