"""Files that differ in nothing but elements, which are not in them as they are in memory."""

from __future__ import annotations

from raconvert.declared import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class Alike(Record):
    """What files have in common that begin and end as one that was read (`Bundle.alike`).

    `elements` is given the bytes between the two ends, and returns the elements, slowest axis first
    and little-endian; None if anything is odd, so that reading the file has more to say. It raises
    nothing, and never needs more memory than reading does.
    """

    begin: bytes
    end: bytes
    kind: Hashable  # of two files of one kind the same code reads the elements
    elements: Callable[[bytes], bytes | None]
