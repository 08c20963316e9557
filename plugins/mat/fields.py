"""The attribute MATLAB_fields of a v7.3 struct, read without the HDF5 library.

Its names are sequences of variable length. The library trusts their declared lengths: a damaged
one makes it allocate gigabytes, or crash. Here every length is checked against the file.

HDF5 File Format Specification 3.0: object headers (IV.A.1), attribute message (IV.A.2.m),
continuation message (IV.A.2.q), global heap (III.E). All numbers are little-endian, addresses and
lengths are 8 bytes wide in every file that MATLAB writes.
"""

from __future__ import annotations

from raconvert.errors import Corrupt

from .tables import HDF5_OFFSET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from raconvert.files.source import Source

NAME = b"MATLAB_fields"
ATTRIBUTE, CONTINUATION = 0x0C, 0x10  # types of messages
ENTRY_BYTES = 16  # of a sequence: length (4), address of the heap (8), index in it (4)
MAX_BLOCKS = 64  # parts of one object header
MAX_HEAP_BYTES = 1 << 20
MAX_FIELD_BYTES = 4096


class _Reader:
    """Reads at addresses of HDF5, which count from the end of the user block."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._heaps: dict[int, dict[int, bytes]] = {}

    def bytes_at(self, address: int, nbytes: int) -> bytes:
        if address >= self._source.size or nbytes > MAX_HEAP_BYTES:
            raise Corrupt("HDF5 structure lies outside the file", path=self._source.path,
                          where=f"byte {HDF5_OFFSET + address}", got=f"{nbytes} bytes")  # fmt: skip
        return self._source.read_exact(HDF5_OFFSET + address, nbytes, "an HDF5 structure")

    def heap(self, address: int) -> dict[int, bytes]:
        """Return the objects of a global heap by their index."""
        if address not in self._heaps:
            head = self.bytes_at(address, 16)
            if not head.startswith(b"GCOL\1"):
                raise Corrupt("there is no global heap", path=self._source.path,
                              where=f"byte {HDF5_OFFSET + address}", expected="GCOL")  # fmt: skip
            self._heaps[address] = dict(_objects(self.bytes_at(address, _number(head, 8, 8))))
        return self._heaps[address]


def _number(data: bytes, offset: int, nbytes: int) -> int:
    return int.from_bytes(data[offset : offset + nbytes], "little")


def _objects(heap: bytes) -> Iterator[tuple[int, bytes]]:
    place = 16
    while place + 16 <= len(heap):
        index, size = _number(heap, place, 2), _number(heap, place + 8, 8)
        if not index:  # free space, to the end
            return
        yield index, heap[place + 16 : place + 16 + size]
        place += 16 + size + -size % 8


def field_names(source: Source, address: int) -> list[str]:
    """Return the names in the attribute of the object whose header is at an address.

    Empty where the attribute is kept in a form that MATLAB does not write. Raises `Corrupt` for
    lengths and addresses that cannot be.
    """
    reader = _Reader(source)
    for kind, message in _messages(reader, address):
        data = _attribute(message) if kind == ATTRIBUTE else None
        if data is not None:
            return [_name(reader, data[i : i + ENTRY_BYTES])
                    for i in range(0, len(data) - ENTRY_BYTES + 1, ENTRY_BYTES)]  # fmt: skip
    return []


def _messages(reader: _Reader, address: int) -> Iterator[tuple[int, bytes]]:
    """Yield type and contents of the messages of an object header, of either version."""
    head = reader.bytes_at(address, 16)
    if head.startswith(b"OHDR\2"):
        yield from _messages_2(reader, address, head)
        return
    blocks = [(address + 16, _number(head, 8, 4))]
    for _ in range(MAX_BLOCKS):
        if not blocks:
            return
        block = reader.bytes_at(*blocks.pop(0))
        place = 0
        while place + 8 <= len(block):
            kind, size = _number(block, place, 2), _number(block, place + 2, 2)
            message = block[place + 8 : place + 8 + size]
            if kind == CONTINUATION:
                blocks.append((_number(message, 0, 8), _number(message, 8, 8)))
            yield kind, message
            place += 8 + size


def _messages_2(reader: _Reader, address: int, head: bytes) -> Iterator[tuple[int, bytes]]:
    flags = head[5]
    start = 6 + 16 * bool(flags & 0x20) + 4 * bool(flags & 0x10)  # times; attribute limits
    width = 1 << (flags & 3)
    size = _number(reader.bytes_at(address + start, width), 0, width)
    blocks = [(address + start + width, size)]
    lead = 4 + 2 * bool(flags & 0x04)  # the order of creation
    for _ in range(MAX_BLOCKS):
        if not blocks:
            return
        block = reader.bytes_at(*blocks.pop(0))
        place = 0
        while place + lead <= len(block):
            kind, size = block[place], _number(block, place + 1, 2)
            message = block[place + lead : place + lead + size]
            if kind == CONTINUATION:  # between the mark OCHK and a checksum
                blocks.append((_number(message, 0, 8) + 4, max(0, _number(message, 8, 8) - 8)))
            yield kind, message
            place += lead + size


def _attribute(message: bytes) -> bytes | None:
    """Return the data of the attribute, if a message is the one that is looked for."""
    version = message[0] if message else 0
    if version not in (1, 2, 3):
        return None
    sizes = [_number(message, at, 2) for at in (2, 4, 6)]
    place = 9 if version == 3 else 8
    name = message[place : place + sizes[0]]
    if name.rstrip(b"\0") != NAME:
        return None
    for size in sizes:
        place += size + (-size % 8 if version == 1 else 0)
    return message[place:]


def _name(reader: _Reader, entry: bytes) -> str:
    length, address, index = (_number(entry, *at) for at in ((0, 4), (4, 8), (12, 4)))
    if not length:
        return ""
    found = reader.heap(address).get(index, b"")
    if length > min(len(found), MAX_FIELD_BYTES):
        raise Corrupt("name of a field has a length that cannot be", path=reader._source.path,
                      where=f"byte {HDF5_OFFSET + address}", got=length)  # fmt: skip
    return found[:length].decode("latin-1")
