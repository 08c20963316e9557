"""Tables of the modality (Modality LUT): a physical value for each stored value.

PS3.3 C.11.1.1: the descriptor has the number of entries (0 for 65536), the stored value of the
first one, and the bits of an entry. Smaller values have the first entry, larger ones the last.
Entries are words of 16 bits; those of 8 bits may be bytes.
"""

from __future__ import annotations

from raconvert.declared import Record
from raconvert.errors import worded

from .tables import LUT_DATA, LUT_DESCRIPTOR, LUT_TYPE, MODALITY_LUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy as np

    from raconvert.plugin import Array

    from .form import Form
    from .header import Header

    Values = np.ndarray[Any, Any]

APPLIES = worded("`--unscale` applies it")
UNITS_OF = {"OD": "1e-3", "US": None, "MGML": "mg/ml", "Z_EFF": None, "ED": "1e23/ml",
            "EDW": None, "HU_MOD": "HU", "PCT": "%"}  # fmt: skip


class Lut(Record):
    """A table: the stored value of its first entry, bytes of an entry, the entries, their unit."""

    first: int
    width: int
    entries: bytes  # little-endian
    units: str | None


def lut_of(header: Header, form: Form) -> Lut | None:
    """The table of a file; None without one, and for floats and colours. Raises `Corrupt`."""
    item = header.item(MODALITY_LUT)
    if item is None or form.floats or form.samples > 1:
        return None
    descriptor = item.numbers(LUT_DESCRIPTOR)
    if len(descriptor) != 3:
        raise item.wrong(LUT_DESCRIPTOR, "is not three numbers", list(descriptor))
    count, first, bits = map(int, descriptor)
    count %= 1 << 16
    count = count or 1 << 16
    if not 8 <= bits <= 16:
        raise item.wrong(LUT_DESCRIPTOR, "has entries of no size", bits, "8 to 16 bits")
    if form.signed and first >= 1 << 15:  # implicit: its sign is not stored
        first -= 1 << 16
    _, raw = item.values.get(LUT_DATA, (b"", b""))
    raw = bytes(raw)
    words = len(raw) >= 2 * count
    if not words and (bits > 8 or len(raw) < count):
        raise item.wrong(LUT_DATA, "is too short", len(raw), f"{2 * count} bytes")
    raw = raw[: 2 * count if words else count]
    if words and item.big:
        raw = _swapped(raw)
    if words and bits == 8:
        if any(raw[1::2]):
            raise item.wrong(LUT_DATA, "has entries of more bits than it says", max(raw[1::2]))
        raw = raw[::2]
    word = item.text(LUT_TYPE)[:16]
    return Lut(first, 1 if bits == 8 else 2, raw, UNITS_OF.get(word, word or None))


def note_of(lut: Lut) -> str:
    """The note on an array that has a table."""
    what = f"{len(lut.entries) // lut.width} entries from {lut.first} on"
    return f"a table of the modality ({what}) says what values stand for: {APPLIES}"


def _swapped(raw: bytes) -> bytes:
    swapped = bytearray(raw)
    swapped[::2], swapped[1::2] = raw[1::2], raw[::2]
    return bytes(swapped)


def applied(array: Array, lut: Lut) -> Array:
    """The array of the physical values that a table gives for the elements of an array."""
    from raconvert.plugin import element

    return array.replace(
        element=element("uint", lut.width), extent=None, storage={},
        meta=array.meta.replace(units=lut.units), data=lambda: _Applied(array, lut),
    )  # fmt: skip


class _Applied:
    """Array source over the entries of a table for the elements of another array."""

    def __init__(self, array: Array, lut: Lut) -> None:
        import numpy as np

        self.shape: tuple[int, ...] = array.dims[::-1]
        self.dtype = np.dtype(f"<u{lut.width}")
        self._array = array
        self._first = lut.first
        self._entries = np.frombuffer(lut.entries, self.dtype)

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield entries in stored order."""
        from raconvert.arrays.blocks import blocks

        for block in blocks(self._array, max(1, max_bytes // 8)):
            yield self._of(block.reshape(-1))

    def __getitem__(self, key: Any) -> Any:
        import numpy as np

        from raconvert.arrays.blocks import region_of

        return self._of(np.asarray(region_of(self._array, key)))

    def _of(self, stored: Values) -> Values:
        """The entries for stored values; those outside the table have its first or last entry."""
        import numpy as np

        indices = np.clip(stored.astype(np.int64) - self._first, 0, len(self._entries) - 1)
        entries: Values = self._entries[indices]
        return entries
