"""CHECKSUM and DATASUM: the ones' complement sum of an HDU, for writing and for verifying."""

from __future__ import annotations

from raconvert.errors import Corrupt

from .header import units
from .packed import unpacked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Source

__all__ = ["added", "check", "encoded"]


def added(total: int, rest: bytes, data: Any) -> tuple[int, bytes]:
    """The sum with the whole words of `rest` and `data`, and the bytes left; None ends the data."""
    import numpy as np

    if data is None:
        words = np.frombuffer(rest, ">u4")
        return _folded(total + int(words.sum(dtype=np.uint64))), b""
    if rest:
        missing = min(4 - len(rest), data.size)
        rest, data = rest + data[:missing].tobytes(), data[missing:]
        if len(rest) < 4:
            return total, rest
        total = _folded(total + int.from_bytes(rest, "big"))
    whole = data.size // 4 * 4
    total = _folded(total + int(data[:whole].view(">u4").sum(dtype=np.uint64)))
    return total, data[whole:].tobytes()


def encoded(value: int) -> str:
    """A sum as 16 letters and digits whose own sum, as of the card, is the value."""
    letters = [0] * 16
    for index in range(4):
        byte = value >> (24 - 8 * index) & 0xFF
        four = [byte // 4 + 48 + (byte % 4 if n == 0 else 0) for n in range(4)]
        while any(map(_is_punctuation, four)):
            for n in (0, 2):
                if any(map(_is_punctuation, four[n : n + 2])):
                    four[n], four[n + 1] = four[n] + 1, four[n + 1] - 1
        for n, letter in enumerate(four):
            letters[4 * n + index] = letter
    return "".join(map(chr, [letters[-1], *letters[:-1]]))


def _is_punctuation(letter: int) -> bool:
    """True for codes between the digits, capitals and small letters."""
    return 58 <= letter <= 64 or 91 <= letter <= 96


def check(source: Source) -> None:
    """Compare DATASUM and CHECKSUM of every HDU with its bytes. Raises `Corrupt`."""
    source = unpacked(source)
    for unit in units(source, []):
        values = unit.values
        where = f"byte {unit.start}, HDU {unit.number}"
        if not {"DATASUM", "CHECKSUM"} & values.keys() or unit.end > source.size:
            continue
        of_header = _sum(source, unit.start, unit.offset)  # front to back, as gzip is inflated
        of_data = _sum(source, unit.offset, unit.end)
        stated = str(values.get("DATASUM", "")).strip()
        if stated.isdecimal() and int(stated) != of_data:
            raise Corrupt(
                "data has another sum than DATASUM says", path=source.path, where=where,
                expected=stated, got=of_data,
                remedy="get the file anew from its origin",
            )  # fmt: skip
        if str(values.get("CHECKSUM", "")).strip():
            whole = _folded(of_header + of_data)
            if whole not in (0, 0xFFFFFFFF):
                raise Corrupt(
                    "HDU has another sum than CHECKSUM says", path=source.path, where=where,
                    expected="a sum of -0", got=f"{whole:#x}",
                    remedy="get the file anew from its origin",
                )  # fmt: skip


def _sum(source: Source, start: int, end: int) -> int:
    """The ones' complement sum of the words of 4 bytes."""
    import numpy as np

    total, step = 0, 1 << 20
    for at in range(start, end, step):
        data = source.read_exact(at, min(step, end - at), "an HDU")
        total = _folded(total + int(np.frombuffer(data, ">u4").sum(dtype=np.uint64)))
    return total


def _folded(total: int) -> int:
    """A sum in 32 bits, with the carries added."""
    while total >> 32:
        total = (total & 0xFFFFFFFF) + (total >> 32)
    return total
