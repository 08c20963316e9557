"""The end of an HDF5 file, as its superblock gives it.

HDF5 File Format Specification 3.0, II.A. Versions 0 and 1 have 24 and 28 bytes before the
addresses: base, free space, end of file, driver. Versions 2 and 3 have 12: base, extension, end of
file, root. Addresses have as many bytes as the field "size of offsets" says.
"""

from __future__ import annotations

from raconvert.plugin import trailing_note

from .tables import SIGNATURE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Source

__all__ = ["notes_of"]

# version -> where the size of offsets is, where the addresses begin
LAYOUTS = {0: (13, 24), 1: (13, 28), 2: (9, 12), 3: (9, 12)}
END = 2  # the place of the end of file among the addresses
FIRST_BLOCK = 512  # user blocks have this length, doubled any number of times
MOST_BYTES = 28 + 4 * 8


def notes_of(source: Source) -> list[str]:
    """The note about bytes behind the end of the file; empty if there are none."""
    begin = _begin(source)
    head = source.read_at(begin, MOST_BYTES)
    if len(head) < MOST_BYTES or head[8] not in LAYOUTS:
        return []
    width_at, at = LAYOUTS[head[8]]
    width = head[width_at]
    if width not in (4, 8):
        return []
    base, end = (
        int.from_bytes(head[at + n * width : at + (n + 1) * width], "little") for n in (0, END)
    )
    # Where a user block was put in front afterwards, the library moves the end, too.
    rest = source.size - (end - base + begin)
    return [trailing_note(rest, "the end of the HDF5 data")] if end >= base and rest > 0 else []


def _begin(source: Source) -> int:
    """The place of the superblock: 0, or after a user block of 512, 1024, 2048, … bytes."""
    begin = 0
    while begin < source.size:
        if source.read_at(begin, len(SIGNATURE)) == SIGNATURE:
            return begin
        begin = 2 * begin or FIRST_BLOCK
    return 0
