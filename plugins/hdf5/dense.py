"""Attributes in dense storage: where an object has more than eight of them, or large ones.

File format specification 3.0, IV.A.2.v "The Attribute Info Message", III.A.2 "Version 2 B-trees",
kinds 1 and 8, and III.G "Fractal Heap". A tree lists the identifiers of the attributes; a fractal
heap holds their messages, in blocks that double from row to row, or apart from it if they are
large. Earlier versions of a message stay in the file behind the one that counts, so that no search
can tell them apart.
"""

from __future__ import annotations

from contextlib import suppress
from struct import Struct
from struct import error as struct_error

from raconvert.errors import Corrupt, Unsupported

from . import header
from .header import (
    ADDRESS_BYTES,
    ATTRIBUTE_INFO,
    NOWHERE,
    SHARED,
    Attribute,
    attribute_of,
    attributes_in,
    messages,
)
from .trees import ATTRIBUTE_NAMES, HUGE_OBJECTS, records_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .files import File

# signature, version, bytes of an identifier, of what filters need; flags, most bytes of an object,
# next identifier, tree of large objects, ten numbers of room and objects; blocks in a row, bytes of
# the first, of the largest that holds objects, bits of an offset, rows at first, root, its rows
_HEAP = Struct("<4sBHHBIQQ80xHQQHHQH")
_RECORD = Struct("<8sBII")  # identifier, flags of the message, order of creation, hash
_HUGE = Struct("<QQQ")  # address, bytes, number
_NUMBER = Struct("<Q")
_BLOCK_START = 5 + ADDRESS_BYTES  # of a block: signature, version, address of the heap
MANAGED, HUGE = 0, 1  # kinds of objects
MAX_LEVELS = 64
MOST_READ = 32  # times that the bytes of a file may be read as attributes: an object is asked often


def stored_attributes(file: File, address: int) -> dict[bytes, bytes]:
    """The stored bytes of each attribute of an object that can be seen without the library."""
    found, dense = attributes_in(file, address)
    if dense and file.last_dense[0] != address:
        file.last_dense = address, {}
        with suppress(Corrupt, struct_error, ValueError):  # the library has the last word
            file.last_dense[1].update(_dense(file, address))
    if dense:
        found = {**found, **file.last_dense[1]}
    return {name: one.data for name, one in found.items()}


def _dense(file: File, address: int) -> Iterator[tuple[bytes, Attribute]]:
    """Yield the attributes in the heap of an object; Corrupt for what is not as it must be."""
    for kind, body in messages(file, address):
        if kind != ATTRIBUTE_INFO or len(body) < 2:
            continue
        at = 4 if body[1] & 1 else 2  # behind the largest order of creation
        heap, tree = (_NUMBER.unpack_from(body, at + step)[0] for step in (0, ADDRESS_BYTES))
        if NOWHERE in (heap, tree):
            continue
        held = _Heap(file, heap)
        records = records_of(file, tree, ATTRIBUTE_NAMES)
        if len(records) > header.MAX_DENSE:
            raise Unsupported(f"an object has more than {header.MAX_DENSE} attributes")
        for record in records:
            identifier, flags, _, _ = _RECORD.unpack(record)
            message = (None if flags & SHARED else held.object(identifier)) or b""
            file.dense_bytes += _RECORD.size + len(message)
            if file.dense_bytes > MOST_READ * file.source.size:
                return
            found = attribute_of(message)
            if found is not None:
                yield found


class _Heap:
    """A fractal heap whose blocks go through no filters."""

    def __init__(self, file: File, address: int) -> None:
        raw = file.source.read_at(file.userblock + address, _HEAP.size)
        (mark, version, _, filters, _, most, _, tree, width, first, largest, bits, _, root,
         rows) = _HEAP.unpack(raw)  # fmt: skip
        blocks = first and not first & (first - 1) and first <= largest <= 1 << 32
        if mark != b"FRHP" or version or filters or not (width and blocks and 0 < bits <= 64):
            raise Corrupt("its attributes lie in a heap of another kind")
        self.file, self.address, self.tree = file, address, tree
        self.width, self.first, self.root, self.rows = width, first, root, rows
        self.direct = largest.bit_length() - first.bit_length() + 2  # rows of blocks of objects
        self.offset_bytes = (bits + 7) // 8
        self.length_bytes = 1 + (min(largest, most or 1).bit_length() - 1) // 8
        self.huge: dict[int, tuple[int, int]] | None = None
        self.starts: dict[int, bytes] = {}  # of indirect blocks, by address

    def object(self, identifier: bytes) -> bytes | None:
        """The bytes of an object; None for a kind that is not read here."""
        kind = identifier[0] >> 4
        if kind == MANAGED:
            middle = 1 + self.offset_bytes
            offset = int.from_bytes(identifier[1:middle], "little")
            length = int.from_bytes(identifier[middle : middle + self.length_bytes], "little")
            return self._read(self._place(offset), length)
        if kind == HUGE:
            if self.huge is None:
                large = records_of(self.file, self.tree, HUGE_OBJECTS)
                parts = (_HUGE.unpack(record) for record in large)
                self.huge = {number: (place, length) for place, length, number in parts}
            found = self.huge.get(int.from_bytes(identifier[1:], "little"))
            return None if found is None else self._read(*found)
        return None

    def _read(self, place: int, length: int) -> bytes:
        raw = self.file.source.read_at(self.file.userblock + place, length)
        if len(raw) < length:
            raise Corrupt("an attribute reaches beyond the file")
        return raw

    def _place(self, offset: int) -> int:
        """The address of an offset into the blocks of the heap."""
        block, rows, start = self.root, self.rows, 0
        for _ in range(MAX_LEVELS):
            if not rows:
                self._check(block, b"FHDB")
                return block + offset - start
            inside = offset - start
            row = max(0, (inside // (self.width * self.first)).bit_length())
            if row >= rows:
                break
            size = self.first << max(0, row - 1)
            before = self.width * size if row else 0
            column = (inside - before) // size
            start += before + column * size
            at = _BLOCK_START + self.offset_bytes + ADDRESS_BYTES * (row * self.width + column)
            self._check(block, b"FHIB")
            block = _NUMBER.unpack(self._read(block + at, ADDRESS_BYTES))[0]
            rows = 0
            if row >= self.direct:
                rows = (size // (self.width * self.first)).bit_length()
        raise Corrupt("an attribute lies outside its heap")

    def _check(self, block: int, mark: bytes) -> None:
        """Compare the beginning of a block with what it is to be."""
        if block not in self.starts:
            self.starts[block] = self._read(block, _BLOCK_START)
        wanted = mark + b"\0" + _NUMBER.pack(self.address)
        if block == NOWHERE or self.starts[block] != wanted:
            raise Corrupt("the attributes lie in a damaged heap")
