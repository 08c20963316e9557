"""Attributes in dense storage, read past the library from where it reads them.

File format specification 3.0, III.G "Disk Format: Level 1G - Fractal Heap", III.A.2 "Disk Format:
Level 1A2 - Version 2 B-trees" (records of type 8, 1 and 7), III.I "Disk Format: Level 1I - Shared
Object Header Message Table" and IV.A.2.v "The Attribute Info Message".

An object with more than eight attributes, or with large ones, has their messages in a fractal heap,
and a B-tree has the heap ID of each. Only bytes of the heap that a record of the tree leads to are
used: deleted and replaced messages are still in it.
"""

from __future__ import annotations

from collections import namedtuple
from struct import Struct

from raconvert.errors import Corrupt, TooLarge, Unsupported

from .ondisk.btrees import ATTRIBUTE_NAMES, HUGE_PLACES, check_tree
from .ondisk.header import (
    ADDRESS_BYTES,
    ATTRIBUTE,
    ATTRIBUTE_INFO,
    NOWHERE,
    SHARED,
    attribute_of,
    messages,
    shared_attributes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .files import File
    from .ondisk.header import Attribute

MANAGED, HUGE, TINY = 0, 1, 2  # kinds of heap objects, in the first byte of their IDs
SHARED_TABLE = 0x0F  # message in the superblock extension
_EXTENSION_FROM = 2  # the first version of the superblock with an extension
_EXTENSION_AT = 20
MAX_INDIRECT = 64  # nested indirect blocks; the library needs one per bit of a size

# Signature, version, bytes of a heap ID, of filters, flags, most bytes of a managed object, number
# and tree of huge objects, ten sizes and counts, width of the table, bytes of the first and of the
# largest block, bits of the heap, rows at first, root, its rows.
_HEAP = Struct("<4sBHHBIQQ10QHQQHHQH")
_BLOCK = Struct("<4sBQ")  # signature, version, address of the heap
_HUGE = Struct("<QQQ")  # address, bytes and number of a huge object
_TABLE_ENTRY = Struct("<BBHIHHHQQ")  # (unused), flags of messages, (unused), index, heap

# An attribute: its heap ID, and True if that is of the heap of shared messages.
Named = namedtuple("Named", "id shared")


class Dense:
    """The attributes of one object that are not in its header, by name."""

    __slots__ = ("_file", "_heap", "_names", "_shared")

    def __init__(self, file: File, heap: int, tree: int) -> None:
        self._file = file
        self._heap = Heap(file, heap)
        self._shared: Heap | None = None
        records: list[bytes] = []
        check_tree(file, tree, ATTRIBUTE_NAMES, records=records)
        self._names = {}
        # Messages of a sound file share no bytes, so that they are not longer than the file.
        left = file.source.size
        for record in records:
            named = Named(record[:8], bool(record[8] & SHARED))
            message = self._message(named)
            left -= len(message)
            file.dense_bytes += len(record) + len(message)
            most = file.source.limits.attribute_passes  # since objects may share a heap
            if file.dense_bytes > most * file.source.size:
                raise TooLarge(
                    "attributes in dense storage are those of very many objects", path=file.path,
                    expected=f"at most {most} times the bytes of the file",
                )  # fmt: skip
            if left < 0:
                raise Corrupt(
                    "attributes in dense storage are larger than the file", path=file.path,
                    expected=f"at most {file.source.size} bytes",
                )  # fmt: skip
            attribute = attribute_of(message)
            if attribute is not None:
                self._names[attribute[0]] = named

    def get(self, name: bytes) -> Attribute | None:
        """Return the attribute of this name, or None."""
        named = self._names.get(name)
        attribute = attribute_of(self._message(named)) if named is not None else None
        return None if attribute is None else attribute[1]

    def _message(self, named: Named) -> bytes:
        if not named.shared:
            return self._heap.get(named.id)
        if self._shared is None:
            self._shared = shared_heap(self._file)
        return self._shared.get(named.id)


def dense_attribute(file: File, address: int, name: bytes) -> Attribute | None:
    """Return an attribute that is not in the header of its object; None if there is none.

    Raises `Corrupt` if the library could not find it either.
    """
    for raw in shared_attributes(file, address):  # heap IDs in the header
        message = shared_heap(file).get(raw)
        attribute = attribute_of(message)
        if attribute is not None and attribute[0] == name:
            return attribute[1]
    for kind, body in messages(file, address):
        if kind == ATTRIBUTE_INFO and len(body) > 1:
            at = 4 if body[1] & 1 else 2
            heap, tree = (
                int.from_bytes(body[at + n : at + n + ADDRESS_BYTES], "little") for n in (0, 8)
            )
            if NOWHERE not in (heap, tree):
                # The last one is cached, since objects are read one after the other.
                if (heap, tree) not in file.dense:
                    file.dense = {(heap, tree): Dense(file, heap, tree)}
                return file.dense[heap, tree].get(name)
    return None


def shared_heap(file: File) -> Heap:
    """The heap of the attributes that objects of a file share."""
    for address, size in _shared_tables(file):
        raw = file.source.read_exact(file.userblock + address, 4 + size, "the shared messages")
        if not raw.startswith(b"SMTB"):
            break
        for entry in _TABLE_ENTRY.iter_unpack(raw[4:]):
            if entry[2] >> ATTRIBUTE & 1 and entry[8] != NOWHERE:
                return Heap(file, entry[8])
    raise Corrupt("an attribute is shared, but the file has no shared ones", path=file.path)


def _shared_tables(file: File) -> Iterator[tuple[int, int]]:
    """Address and bytes of the entries of the table of shared messages."""
    head = file.source.read_at(file.userblock, _EXTENSION_AT + ADDRESS_BYTES)
    if len(head) < _EXTENSION_AT + ADDRESS_BYTES or head[8] < _EXTENSION_FROM:
        return
    extension = int.from_bytes(head[_EXTENSION_AT:], "little")
    for kind, body in messages(file, extension) if extension != NOWHERE else ():
        if kind == SHARED_TABLE and len(body) >= 2 + ADDRESS_BYTES:
            yield int.from_bytes(body[1:9], "little"), body[9] * _TABLE_ENTRY.size


class Heap:
    """A fractal heap, whose objects are read by their heap IDs."""

    __slots__ = (
        "_first", "_huge", "_huge_tree", "_largest", "_length_bytes", "_offset_bytes", "_root",
        "_root_rows", "_width", "address", "file",
    )  # fmt: skip

    def __init__(self, file: File, address: int) -> None:
        self.file, self.address = file, address
        raw = file.source.read_at(file.userblock + address, _HEAP.size)
        if len(raw) < _HEAP.size:
            raise self._damaged("lies outside the file")
        mark, version, _, filters, _, most, _, self._huge_tree, *rest = _HEAP.unpack(raw)
        self._width, self._first, self._largest, bits, _, self._root, self._root_rows = rest[10:]
        powers = (self._first, self._largest, self._width)
        if (mark, version) != (b"FRHP", 0) or not all(n and n & n - 1 == 0 for n in powers):
            raise self._damaged("has a header of another kind")
        if filters:
            raise Unsupported("attributes in dense storage have filters", path=file.path)
        self._offset_bytes = -(-bits // 8)
        largest = -(-(self._largest.bit_length() - 1) // 8)
        self._length_bytes = min(largest, -(-most.bit_length() // 8) or 1)
        self._huge: dict[int, tuple[int, int]] | None = None

    def get(self, heap_id: bytes) -> bytes:
        """Read the bytes of an object. Raises `Corrupt` if it does not exist."""
        kind = heap_id[0] >> 4 & 3
        if kind == TINY:
            return heap_id[1:][: (heap_id[0] & 15) + 1]
        if kind == HUGE:
            return self._read(*self._huge_object(int.from_bytes(heap_id[1:], "little")))
        end = 1 + self._offset_bytes
        offset = int.from_bytes(heap_id[1:end], "little")
        nbytes = int.from_bytes(heap_id[end : end + self._length_bytes], "little")
        if kind != MANAGED or not nbytes:
            raise self._damaged("has an object of an unknown kind")
        block, start, size = self._block(offset)
        if offset - start + nbytes > size:
            raise self._damaged("has an object that is longer than its block")
        self._check(block, b"FHDB")
        return self._read(block + offset - start, nbytes)

    def _huge_object(self, number: int) -> tuple[int, int]:
        """Address and bytes of a huge object."""
        if self._huge is None:
            records: list[bytes] = []
            check_tree(self.file, self._huge_tree, HUGE_PLACES, records=records)
            rows = map(_HUGE.unpack, records)
            self._huge = {own: (address, nbytes) for address, nbytes, own in rows}
        if number not in self._huge:
            raise self._damaged("has no object of this number")
        return self._huge[number]

    def _block(self, offset: int) -> tuple[int, int, int]:
        """The direct block that contains an offset: its address, its own offset, its bytes.

        The blocks of the first two rows of a table are of one size, and those of each further row
        are twice as large; up to the largest size they hold objects, then further tables.
        """
        if not self._root_rows:
            if offset >= self._first:
                raise self._damaged("has an object behind its end")
            return self._root, 0, self._first
        table, start, rows = self._root, 0, self._root_rows
        for _ in range(MAX_INDIRECT):
            inside = offset - start
            row = max(0, (inside // (self._first * self._width)).bit_length())
            size = self._first << max(0, row - 1)
            before = self._first * self._width << row - 1 if row else 0
            column = (inside - before) // size
            if row >= rows:
                raise self._damaged("has an object behind its end")
            self._check(table, b"FHIB")
            entry = ADDRESS_BYTES * (row * self._width + column)
            begin = table + _BLOCK.size + self._offset_bytes + entry
            address = int.from_bytes(self._read(begin, ADDRESS_BYTES), "little")
            start += before + column * size
            if size <= self._largest:
                return address, start, size
            table, rows = address, (size // (self._first * self._width)).bit_length()
        raise self._damaged("has too many tables inside each other")

    def _check(self, address: int, mark: bytes) -> None:
        fields = _BLOCK.unpack(self._read(address, _BLOCK.size))
        if fields != (mark, 0, self.address):
            raise self._damaged("has a block of another kind")

    def _read(self, address: int, nbytes: int) -> bytes:
        if address + nbytes > self.file.source.size - self.file.userblock:
            raise self._damaged("lies outside the file")
        return self.file.source.read_at(self.file.userblock + address, nbytes)

    def _damaged(self, what: str) -> Corrupt:
        where = f"address {self.address}"
        return Corrupt(f"the heap of the attributes {what}", path=self.file.path, where=where)
