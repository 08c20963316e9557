"""TIFF structure: header, image file directories, and what one of them says (TIFF 6.0, section 2).

Layout::

    offset  size  meaning
    0       2     II little-endian, MM big-endian
    2       2     42; 43: BigTIFF
    4       4     offset of the first directory (BigTIFF: 8, 0, then 8 bytes of offset)

    directory: number of entries (2; BigTIFF 8), entries, offset of the next directory, or 0
    entry:     tag (2), type (2), count (4; 8), value or its offset (4; 8)

Nothing is trusted: every offset and length is checked against the file, a directory that comes up
twice ends the reading.
"""

from __future__ import annotations

from collections import namedtuple
from struct import Struct

from raconvert.errors import Corrupt, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from typing import Any

# type -> (bytes of one value, bytes that are swapped together, struct letter)
TYPES = {
    1: (1, 1, "B"), 2: (1, 1, "s"), 3: (2, 2, "H"), 4: (4, 4, "I"), 5: (8, 4, "2I"),
    6: (1, 1, "b"), 7: (1, 1, "s"), 8: (2, 2, "h"), 9: (4, 4, "i"), 10: (8, 4, "2i"),
    11: (4, 4, "f"), 12: (8, 8, "d"), 13: (4, 4, "I"), 16: (8, 8, "Q"), 17: (8, 8, "q"),
    18: (8, 8, "Q"),
}  # fmt: skip
NUMBERS = frozenset({1, 3, 4, 6, 8, 9, 13, 16, 17, 18})
MAX_ENTRIES = 4096  # real files have at most some hundred
MAX_VALUE_BYTES = 256 << 20  # of one tag: the offsets of 32 million strips

Entry = namedtuple("Entry", "tag type count offset nbytes")


class Layout(namedtuple("Layout", "order big count entry offset first")):
    """The byte order and the widths of a file, and where its first directory is."""

    __slots__ = ()


class Tiff:
    """An open TIFF file: reads directories and the values of their tags."""

    def __init__(self, file: FileIO, path: str, size: int) -> None:
        self.file = file
        self.path = path
        self.size = size
        self.layout = self._header()

    def _header(self) -> Layout:
        head = self.at(0, min(16, self.size), "the TIFF header")
        order = {b"II": "<", b"MM": ">"}.get(head[:2])
        if order is None or len(head) < 8:
            raise self.corrupt("does not begin as a TIFF file", 0)
        version = Struct(order + "H").unpack_from(head, 2)[0]
        if version == 42:
            first = Struct(order + "I").unpack_from(head, 4)[0]
            return Layout(
                order, False, Struct(order + "H"), Struct(order + "2HI4s"), Struct(order + "I"),
                first,
            )  # fmt: skip
        if (
            version == 43
            and len(head) == 16
            and Struct(order + "2H").unpack_from(head, 4) == (8, 0)
        ):
            first = Struct(order + "Q").unpack_from(head, 8)[0]
            return Layout(
                order, True, Struct(order + "Q"), Struct(order + "2HQ8s"), Struct(order + "Q"),
                first,
            )  # fmt: skip
        raise self.corrupt("does not begin as a TIFF file", 2)

    def at(self, offset: int, nbytes: int, what: str) -> bytes:
        """Return exactly these bytes; `Corrupt` names `what` where the file ends."""
        if nbytes < 0 or offset < 0 or offset + nbytes > self.size:
            raise Corrupt(
                f"file ends inside {what}",
                path=self.path,
                where=f"byte {offset}",
                expected=f"{nbytes} bytes",
                got=max(0, self.size - offset),
            )
        self.file.seek(offset)
        data = self.file.read(nbytes) or b""
        while len(data) < nbytes:
            more = self.file.read(nbytes - len(data))
            if not more:
                raise self.corrupt("file became shorter while it was read", offset)
            data += more
        return data

    def corrupt(self, what: str, offset: int) -> Corrupt:
        """Return an error about this place of the file."""
        return Corrupt(what, path=self.path, where=f"byte {offset}")

    def offsets(self) -> Iterator[int]:
        """Yield the offset of every directory of the chain."""
        seen: set[int] = set()
        offset = self.layout.first
        while offset:
            if offset in seen:
                raise self.corrupt("directories form a loop", offset)
            seen.add(offset)
            yield offset
            count = self._count(offset)
            end = offset + self.layout.count.size + count * self.layout.entry.size
            width = self.layout.offset.size
            # Some writers end the file with the last entry, and mean: no more directories.
            tail = self.at(end, width, "a TIFF directory") if end < self.size else bytes(width)
            offset = self.layout.offset.unpack(tail)[0]

    def _count(self, offset: int) -> int:
        layout = self.layout
        count: int = layout.count.unpack(self.at(offset, layout.count.size, "a TIFF directory"))[0]
        if not 0 < count <= MAX_ENTRIES:
            raise self.corrupt(f"directory has {count} entries", offset)
        return count

    def entries(self, offset: int) -> dict[int, Entry]:
        """Return the entries of a directory by tag; the first of a tag counts."""
        layout = self.layout
        count, width = self._count(offset), layout.entry.size
        start = offset + layout.count.size
        data = self.at(start, count * width, "a TIFF directory")
        inline = layout.offset.size
        found: dict[int, Entry] = {}
        for number, (tag, kind, length, value) in enumerate(layout.entry.iter_unpack(data)):
            if kind not in TYPES or tag in found:  # readers skip unknown types (section 2)
                continue
            nbytes = length * TYPES[kind][0]
            if nbytes <= inline:
                place = start + number * width + width - inline
            else:
                place = layout.offset.unpack(value)[0]
            found[tag] = Entry(tag, kind, length, place, nbytes)
        return found

    def raw(self, entry: Entry) -> bytes:
        """Return the value of an entry as it is in the file."""
        if MAX_VALUE_BYTES < entry.nbytes <= self.size:
            raise Unsupported(f"tag {entry.tag} has {entry.nbytes} bytes", path=self.path)
        return self.at(entry.offset, entry.nbytes, f"the value of tag {entry.tag}")

    def value(self, entry: Entry) -> Any:
        """Return a tuple of numbers (of pairs for fractions), or bytes."""
        data = self.raw(entry)
        _, _, letter = TYPES[entry.type]
        if letter == "s":
            return data
        if letter[0] == "2":
            numbers = Struct(f"{self.layout.order}{2 * entry.count}{letter[1]}").unpack(data)
            return tuple(zip(numbers[::2], numbers[1::2], strict=True))
        return Struct(f"{self.layout.order}{entry.count}{letter}").unpack(data)


class Directory:
    """One directory: its tags, decoded when they are asked for."""

    def __init__(self, tiff: Tiff, offset: int) -> None:
        self.tiff = tiff
        self.offset = offset
        self.entries = tiff.entries(offset)

    def numbers(self, tag: int) -> tuple[int, ...]:
        """Return the whole numbers of a tag; empty if it is not there."""
        entry = self.entries.get(tag)
        if entry is None:
            return ()
        if entry.type not in NUMBERS:
            raise self.tiff.corrupt(f"tag {tag} is no whole number", self.offset)
        value: tuple[int, ...] = self.tiff.value(entry)
        return value

    def number(self, tag: int, default: int | None = None) -> int:
        """Return the one number of a tag, or the default."""
        entry = self.entries.get(tag)
        if entry is not None and entry.count == 1:
            return self.numbers(tag)[0]
        if entry is None and default is not None:
            return default
        raise self.tiff.corrupt(
            f"directory has no tag {tag}" if entry is None else f"tag {tag} is not one number",
            self.offset,
        )

    def data(self, tag: int) -> bytes:
        """Return the bytes of a tag; empty if it is not there."""
        entry = self.entries.get(tag)
        return b"" if entry is None else self.tiff.raw(entry)

    def fraction(self, tag: int) -> list[int] | None:
        """Return numerator and denominator of a tag; None if there is no such fraction."""
        entry = self.entries.get(tag)
        if entry is None or entry.type not in (5, 10) or entry.count != 1:
            return None
        return list(self.tiff.value(entry)[0])
