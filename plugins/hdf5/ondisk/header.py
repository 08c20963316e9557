"""Object headers, and references to data of variable length, checked before the library reads.

File format specification 3.0, III.E "Disk Format: Level 1E - Global Heap", IV.A.1 "Data Object
Headers", IV.A.2.i "The Data Layout Message" and IV.A.2.m "The Attribute Message".

An element of variable length is a reference of 16 bytes: its length (4), the address of a heap (8),
a number in it (4). The library allocates, and clears, as much memory as the length says before it
looks whether the heap has it, and it runs in circles in a heap with an empty piece of free space;
one damaged bit costs gigabytes, or takes forever. So references and heaps are checked first.

If only the library can find the references (chunks with filters that only it has, or in other
files), the whole file is searched for heaps, unless it is too large for that. Bytes that look like
a damaged heap need not be one, and no reference need lead there: they may be a deleted heap, or
elements. So the error is not `Corrupt` then, but `Unsafe`: the data is not read.
"""

from __future__ import annotations

from collections import namedtuple
from contextlib import suppress
from itertools import chain
from math import prod
from struct import Struct
from struct import error as struct_error

import numpy as np

from raconvert.errors import Corrupt, Unsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ...files import File


ADDRESS_BYTES = 8  # bytes of an address in nearly all files
REFERENCE_BYTES = 4 + ADDRESS_BYTES + 4
# Message types.
DATASPACE, DATATYPE, OLD_FILL, FILL = 0x01, 0x03, 0x04, 0x05
LAYOUT, FILTERS, ATTRIBUTE, CONTINUATION, ATTRIBUTE_INFO = 0x08, 0x0B, 0x0C, 0x10, 0x15
INTEGER, STRING, VARIABLE = 0, 3, 9  # datatype classes
SIGNED = 8  # flag of an integer
NULL = b"\2"  # the dataspace without elements
CONTIGUOUS, CHUNKED, VIRTUAL = 1, 2, 3  # layout classes
BTREE = 5  # the chunk index that is a B-tree of version 2
PARTIAL_UNFILTERED = 1  # flag of a chunked layout
SHARED = 0x02  # message flag: the body is elsewhere
IN_HEAP, IN_OBJECT = 1, 2  # the message is in a heap of the file, or in another header


HEAP_SIGNATURE = b"GCOL\1\0\0\0"  # signature and version 1
_HEAP = Struct("<8sQ")  # signature, bytes in all
_HEAP_OBJECT = Struct("<H6xQ")  # number (0: free space), bytes
_REFERENCE = np.dtype([("length", "<u4"), ("heap", "<u8"), ("index", "<u4")])

_CHUNKED = Struct("<BBBBB")  # version, class, flags, rank, width of a length
_HEAP_ID = Struct("<QI")
_SELECTION = Struct("<II")  # kind, version
NOWHERE = (1 << 64) - 1  # the undefined address
MAX_RANK = 32

# Offset of the address of the other header, by the version of the shared message.
_SHARED_AT = {1: 8, 2: 2, 3: 2}
_SHARED_LENGTH = 10

_V1 = Struct("<BxHIIxxxx")  # version, messages, references, bytes of messages
_V1_MESSAGE = Struct("<HHBxxx")  # type, size, flags
_V2_MESSAGE = Struct("<BHB")
SECOND = b"OHDR"  # the signature of version 2
_V2_START = 6  # signature, version, flags
_DATATYPE = Struct("<BB2xI")  # version and class, flags, bytes of an element
_BLOCK = Struct("<QQ")  # address, length
_ATTRIBUTE = Struct("<BBHHH")  # version, flags, bytes of name, datatype and dataspace
SHARED_TYPE = 1  # flag of an attribute: its datatype is a named one
HEAD_BYTES = 512  # bytes; most headers are not longer
KEPT_BYTES = 1 << 16  # bytes; a header up to this length is cached: it is read several times

# The parts of an attribute in a header; the datatype is empty if it is a named one.
Attribute = namedtuple("Attribute", "datatype space data")
# A chunked layout: its flags, the lengths of a chunk, the kind of its index, and what follows that.
Chunked = namedtuple("Chunked", "flags lengths index rest")


def messages(file: File, address: int) -> Iterable[tuple[int, bytes]]:
    """(type, body) of each message of an object header, except shared ones; ends at damage."""
    return ((kind, body) for kind, shared, body in _messages(file, address) if not shared)


def datatype_of(file: File, address: int) -> bytes | None:
    """The datatype message of an object, or of the named datatype that it has; None without."""
    for kind, shared, body in _messages(file, address):
        if kind == DATATYPE and shared:
            named = named_type(file, address)
            inside = messages(file, named) if named is not None else ()
            return next((inner for kind, inner in inside if kind == DATATYPE), None)
        if kind == DATATYPE:
            return body
    return None


def named_type(file: File, address: int) -> int | None:
    """The address of the named datatype of an object; None if it has another type."""
    for kind, shared, body in _messages(file, address):
        if kind == DATATYPE and shared and len(body) >= _SHARED_LENGTH:
            version, where = body[0], body[1]
            at = _SHARED_AT.get(version)
            if at is not None and (version < 3 or where == IN_OBJECT):
                return int.from_bytes(body[at : at + 8], "little")
    return None


def _messages(file: File, address: int) -> Iterable[tuple[int, bool, bytes]]:
    """(type, shared, body) of each message; the body of a shared one is its address or heap ID."""
    if file.last is not None and file.last[0] == address:
        return file.last[1]
    read, nbytes = [], 0
    further = _all_messages(file, address)
    for message in further:
        read.append(message)
        nbytes += 64 + len(message[2])
        if nbytes > KEPT_BYTES:
            return chain(read, further)
    file.last = address, read
    return read


def _all_messages(file: File, address: int) -> Iterator[tuple[int, bool, bytes]]:
    """Yield the messages of `_messages`, read from the file, block by block."""
    head = file.source.read_at(file.userblock + address, HEAD_BYTES)
    second = head.startswith(SECOND)
    with suppress(struct_error):  # a header of another version, which the library reads alone
        if second:
            flags = head[5]
            offset = _V2_START + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
            width = 1 << (flags & 3)
            length = int.from_bytes(head[offset : offset + width], "little")
            blocks = [(address + offset + width, length)]
        else:
            flags = 0
            blocks = [(address + _V1.size, _V1.unpack_from(head)[3])]
        ordered = bool(flags & 4)
        limits = file.source.limits
        for count, (at, length) in enumerate(blocks):  # `blocks` grows during the loop
            if count > limits.header_blocks or length > limits.record_bytes:
                return
            raw = head[at - address :][:length] if not count else b""
            if len(raw) < length:
                raw = file.source.read_at(file.userblock + at, length)
            if second and count:
                raw = raw[4:-4]  # without the signature OCHK and the checksum
            for kind, shared, begin, size in _places(
                raw, 0, len(raw), second=second, ordered=ordered
            ):
                body = raw[begin : begin + size]
                if kind == CONTINUATION:
                    blocks.append(_BLOCK.unpack_from(body))
                yield kind, shared, body


def header_bytes(file: File, address: int) -> int:
    """The bytes of the first block of the header of an object; of version 2, the least."""
    head = file.source.read_at(file.userblock + address, _V1.size)
    if len(head) == _V1.size and head[0] == 1:
        return _V1.size + min(int(_V1.unpack(head)[3]), file.source.limits.record_bytes)
    return _V1.size


def message_places(head: bytes) -> tuple[int, list[tuple[int, bool, int, int]]] | None:
    """Return the end of a header's messages, and (type, shared, offset, bytes) of each.

    None if the header has several blocks, or is longer than these bytes.
    """
    second = head.startswith(SECOND)
    if len(head) < 2 * _V1.size or not (second or head[0] == 1):
        return None
    flags = head[5] if second else 0
    if second:
        begin = _V2_START + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
        width = 1 << (flags & 3)
        end = begin + width + int.from_bytes(head[begin : begin + width], "little")
        begin += width
    else:
        begin = _V1.size
        end = begin + _V1.unpack_from(head)[3]
    if end > len(head):
        return None
    inside = list(_places(head, begin, end, second=second, ordered=bool(flags & 4)))
    if any(kind == CONTINUATION for kind, _, _, _ in inside):
        return None
    return end, inside


def _places(
    raw: bytes, offset: int, end: int, *, second: bool, ordered: bool
) -> Iterator[tuple[int, bool, int, int]]:
    """Yield (type, shared, offset, bytes) of each message between two offsets.

    `second`: the header is of version 2; `ordered`: its messages have creation orders.
    """
    head = _V2_MESSAGE if second else _V1_MESSAGE
    while offset + head.size <= end:
        kind, size, flags = head.unpack_from(raw, offset)
        offset += head.size + (2 if ordered else 0)
        yield kind, bool(flags & SHARED), offset, size
        offset += size


def attribute_data(file: File, address: int) -> dict[bytes, bytes]:
    """The stored bytes of each attribute in the header of an object, by name."""
    attributes, _ = attributes_in(file, address)
    return {name: attribute.data for name, attribute in attributes.items()}


def attributes_in(file: File, address: int) -> tuple[dict[bytes, Attribute], bool]:
    """The attributes in the header of an object by name; and True if it has others elsewhere."""
    attributes = {}
    dense = False
    for kind, shared, body in _messages(file, address):
        if kind == ATTRIBUTE:
            dense |= shared
            pair = None if shared else attribute_of(body)
            if pair is not None:
                attributes[pair[0]] = pair[1]
        elif kind == ATTRIBUTE_INFO and len(body) > 1:
            heap = body[4 if body[1] & 1 else 2 :][:ADDRESS_BYTES]
            dense |= int.from_bytes(heap, "little") != NOWHERE
    return attributes, dense


def attribute_of(body: bytes) -> tuple[bytes, Attribute] | None:
    """The name and the attribute of a message; None if it is not whole. IV.A.2.m."""
    if len(body) <= _ATTRIBUTE.size:
        return None
    version, flags, *sizes = _ATTRIBUTE.unpack_from(body)
    at = _ATTRIBUTE.size + (1 if version == 3 else 0)  # version 3 has a character set
    step = 8 if version == 1 else 1  # in version 1 each part is padded
    parts = []
    for size in sizes:
        parts.append(body[at : at + size])
        at += size + -size % step
    name, datatype, space = parts
    own = not (version > 1 and flags & SHARED_TYPE)
    return name.split(b"\0")[0], Attribute(datatype if own else b"", space, body[at:])


def shared_attributes(file: File, address: int) -> Iterator[bytes]:
    """Yield the heap IDs of the attributes that a header has in the heap of shared messages.

    IV.A.2, "Shared Message", version 3.
    """
    for kind, shared, body in _messages(file, address):
        if kind == ATTRIBUTE and shared and len(body) >= 10 and body[:2] == bytes((3, IN_HEAP)):
            yield body[2:10]


def single_value(attribute: Attribute) -> int | bytes:
    """The value of an attribute that is one whole number, or one text of fixed length.

    Texts have no NULs at their end. Raises ValueError for other attributes. IV.A.2.d "The Datatype
    Message", classes 0 and 3.
    """
    datatype, space, data = attribute
    if len(datatype) >= _DATATYPE.size and count_of(space) == 1:
        kind, bits, size = _DATATYPE.unpack_from(datatype)
        if kind & 15 == STRING and size <= len(data):
            return data[:size].rstrip(b"\0")
        if kind & 15 == INTEGER and 0 < size <= len(data):
            order = "big" if bits & 1 else "little"
            return int.from_bytes(data[:size], order, signed=bool(bits & SIGNED))  # type: ignore[arg-type]
    raise ValueError("it is not a single number or text")


def lengths_of(space: bytes) -> tuple[int, ...] | None:
    """The lengths of a dataspace; None if it is null or of another version. IV.A.2.b."""
    version, rank = (*space[:2], 0, 0)[:2]
    start = {1: 8, 2: 4}.get(version, len(space))
    lengths = space[start : start + 8 * rank]
    if version not in (1, 2) or len(lengths) < 8 * rank or (version == 2 and space[3:4] == NULL):
        return None
    return tuple(int.from_bytes(lengths[at : at + 8], "little") for at in range(0, 8 * rank, 8))


def count_of(space: bytes) -> int:
    """The number of elements of a dataspace."""
    lengths = lengths_of(space)
    return 0 if lengths is None else prod(lengths)


def compact_data(file: File, address: int) -> bytes | None:
    """The bytes of the elements of a dataset in its header; None if they are elsewhere."""
    for kind, body in messages(file, address):
        if kind == LAYOUT and body[:1] in (b"\3", b"\4") and body[1:2] == b"\0":
            return body[4 : 4 + int.from_bytes(body[2:4], "little")]
    return None


def chunk_layout(file: File, address: int) -> tuple[bool, bool] | None:
    """Two facts of a chunked dataset; None if its header is of another version.

    True if the index stores the position of each chunk (B-trees do, arrays count); True if chunks
    that the border of the dataset cuts off have no filters.
    """
    if file.address_bytes != ADDRESS_BYTES:
        return None
    body = next((body for kind, body in messages(file, address) if kind == LAYOUT), b"")
    if body[:1] in (b"\1", b"\2", b"\3"):
        return True, False
    layout = chunked(body)
    return layout and (layout.index == BTREE, bool(layout.flags & PARTIAL_UNFILTERED))


def chunked(body: bytes) -> Chunked | None:
    """The layout message of a chunked dataset, version 4 or 5; None if it is another one.

    IV.A.2.i; the last length is the width of an element.
    """
    if len(body) < _CHUNKED.size or body[0] not in (4, 5) or body[1] != CHUNKED:
        return None
    _, _, flags, count, width = _CHUNKED.unpack_from(body)
    end = _CHUNKED.size + count * width
    if len(body) <= end:
        return None
    places = range(_CHUNKED.size, end, width or 1)
    lengths = tuple(int.from_bytes(body[at : at + width], "little") for at in places)
    return Chunked(flags, lengths, body[end], body[end + 1 :])


def check_references(raw: Any, file: File, width: int = 1) -> int:
    """Check references and the heaps that they lead to; return the largest length.

    `width` is that of one element in bytes. Raises `Corrupt` for references and heaps with which
    the library would allocate without bound, or never return.
    """
    view = memoryview(raw).cast("B") if len(raw) else memoryview(b"")
    parts = np.frombuffer(view, _REFERENCE, len(view) // REFERENCE_BYTES)
    # A length counts without an address, too: the library allocates it before it looks there.
    parts = parts[(parts["heap"] != 0) | (parts["length"] != 0)]
    longest = int(parts["length"].max(initial=0))
    if longest * width > file.source.size:
        raise Corrupt(
            "declares an element of variable length that is longer than the file",
            path=file.path,
            expected=f"at most {file.source.size} bytes",
            got=longest * width,
        )
    for address in np.unique(parts["heap"]).tolist():
        if address in (0, NOWHERE):
            nowhere = parts[(parts["heap"] == address) & (parts["length"] != 0)]
            if nowhere.size:
                raise Corrupt(
                    "declares an element of variable length that lies nowhere",
                    path=file.path,
                    got=f"{int(nowhere['length'][0])} elements",
                )
            continue
        if address not in file.heaps:
            _check_heap(file, address)
            file.heaps.add(address)
    return longest


def total_length(raw: bytes, count: int) -> int:
    """The sum of the lengths in the first `count` references."""
    raw = raw[: count * REFERENCE_BYTES]
    parts = np.frombuffer(raw, _REFERENCE, len(raw) // REFERENCE_BYTES)
    return int(parts["length"].sum(dtype=np.uint64))


def sequences(raw: bytes, count: int, file: File, width: int) -> list[bytes]:
    """Return the bytes that each of `count` references points to; elements are `width` bytes."""
    raw = raw[: count * REFERENCE_BYTES]
    check_references(raw, file, width)
    heaps: dict[int, dict[int, memoryview]] = {}
    values = []
    for part in np.frombuffer(raw, _REFERENCE, len(raw) // REFERENCE_BYTES):
        length, heap = int(part["length"]) * width, int(part["heap"])
        if length and heap not in heaps:
            heaps[heap] = dict(_heap_objects(file, heap))
        inside = heaps[heap].get(int(part["index"]), b"") if length else b""
        if len(inside) < length:
            raise Corrupt(
                "declares an element of variable length that is longer than its stored bytes",
                path=file.path,
                where=f"global heap at {heap}",
                expected=f"at most {len(inside)} bytes",
                got=length,
            )
        values.append(bytes(inside[:length]))
    return values


def _heap_objects(file: File, address: int) -> Iterator[tuple[int, memoryview]]:
    """Yield number and content of the objects of a global heap, walking as the library does."""
    offset = file.userblock + address
    signature, size = _HEAP.unpack(file.source.read_exact(offset, _HEAP.size, "a global heap"))
    if signature != HEAP_SIGNATURE or not _HEAP.size <= size <= file.source.size - offset:
        raise Corrupt("global heap is damaged", path=file.path, where=f"byte {offset}")
    raw = memoryview(file.source.read_at(offset, size))
    at = _HEAP.size
    while size - at >= _HEAP_OBJECT.size:
        number, length = _HEAP_OBJECT.unpack_from(raw, at)
        start = at + _HEAP_OBJECT.size if number else at  # free space counts its own head
        step = start - at + length + (-length % 8 if number else 0)
        if step == 0 or step > size - at:
            raise Corrupt("global heap is damaged", path=file.path, where=f"byte {offset + at}")
        yield number, raw[start : start + length]
        at += step


def _check_heap(file: File, address: int) -> None:
    """Walk over all objects of a global heap, which checks them."""
    for _ in _heap_objects(file, address):
        pass


def check_all_heaps(file: File) -> None:
    """Check all bytes of a file that look like a heap, once, since references cannot be found.

    Raises `Unsafe` if the library might be led into one that is damaged.
    """
    if file.searched or file.source.size > file.source.limits.searched_bytes:
        return
    whole = file.source.read_at(0, file.source.size)
    at = whole.find(HEAP_SIGNATURE)
    while at >= 0:
        try:
            _check_heap(file, at - file.userblock)
        except Corrupt as error:
            raise Unsafe(
                "has data of variable length at addresses that only the HDF5 library knows, "
                "and bytes that it could take for a damaged heap of such data",
                path=file.path,
                where=error.where,
                remedy="`h5repack -f NONE` writes the data without its filter",
            ) from error
        at = whole.find(HEAP_SIGNATURE, at + 1)
    file.searched = True


# --- datasets, before they are opened -------------------------------------------------------------


def check_dataset_header(file: File, address: int) -> None:
    """Check the parts of a header that the library trusts as soon as it opens a dataset.

    These are fill values of variable length, and the list of sources of a virtual dataset.
    """
    if file.address_bytes != ADDRESS_BYTES:
        return
    datatype = datatype_of(file, address) or b"\0"
    variable = datatype[0] & 15 == VARIABLE
    for kind, body in messages(file, address):
        if kind in (OLD_FILL, FILL) and variable:
            check_references(_fill_data(kind, body), file)
        elif kind == LAYOUT and body[:2] == bytes((4, VIRTUAL)):
            _check_mappings(file, *_HEAP_ID.unpack_from(body, 2))
        elif kind == LAYOUT and body[1:2] == bytes((CONTIGUOUS,)) and len(body) >= 2 + _BLOCK.size:
            block, nbytes = _BLOCK.unpack_from(body, 2)
            if body[0] in (3, 4) and block != NOWHERE:
                file.places[block] = min(nbytes, file.source.size)


def fills(file: File, address: int) -> list[bytes]:
    """The bytes of the fill value of a dataset in each message that has one."""
    inside = messages(file, address)
    values = [_fill_data(kind, body) for kind, body in inside if kind in (OLD_FILL, FILL)]
    return [data for data in values if data]


def _fill_data(kind: int, body: bytes) -> bytes:
    """The bytes of a fill value, as its message of any version has them."""
    if kind == OLD_FILL:
        at = 0
    elif body[:1] == b"\3":
        if not body[1] & 0x20:
            return b""
        at = 2
    else:
        at = 4
    size = int.from_bytes(body[at : at + 4], "little")
    return body[at + 4 : at + 4 + size]


def _check_mappings(file: File, address: int, index: int) -> None:
    """Walk over the list of sources of a virtual dataset. Raises `Corrupt` if it is damaged."""
    if address == NOWHERE:
        return
    raw = bytes(dict(_heap_objects(file, address)).get(index, b""))
    try:
        version = (0, 1).index(int.from_bytes(raw[:1], "little"))  # ValueError for others
        entries = int.from_bytes(raw[1:9], "little")
        at = 9
        # Numbers of the entries with names of their own.
        named: tuple[set[int], set[int]] = set(), set()
        for number in range(entries):
            flags = 0
            if version:
                flags, at = raw[at], at + 1
            at = _after_names(raw, at, flags, number, named)
            for _ in ("source", "virtual"):
                at = _after_selection(raw, at)
    except (ValueError, IndexError, struct_error) as error:
        raise Corrupt(
            "list of sources of a virtual dataset is damaged",
            path=file.path,
            where=f"global heap at {address}, object {index}",
        ) from error


SHARED_FILE, SHARED_DATASET, SAME_FILE = 1, 2, 4  # flags of a source of a virtual dataset


def _after_names(
    raw: bytes, at: int, flags: int, number: int, named: tuple[set[int], set[int]]
) -> int:
    """Return the offset behind the names of file and dataset of an entry; ValueError if malformed.

    HDF5 2.0 writes a second version of the list, where an entry may have the names of an earlier
    one (its number, 8 bytes), or no name of a file: that of the virtual dataset.
    """
    if flags & ~(SHARED_FILE | SHARED_DATASET | SAME_FILE) or flags & 5 == 5:
        raise ValueError("unknown flags")
    for names, shared in zip(named, (SHARED_FILE, SHARED_DATASET), strict=True):
        if flags & shared:
            if int.from_bytes(raw[at : at + 8], "little") not in names:
                raise ValueError("the name of an entry that has none")
            at += 8
        elif shared == SHARED_DATASET or not flags & SAME_FILE:
            at = raw.index(b"\0", at) + 1
            names.add(number)
    return at


def _after_selection(raw: bytes, at: int) -> int:
    """Return the offset behind a serialized selection; ValueError if it is malformed.

    File format specification 3.0, VIII.A "Data Space Encoding"; the library does not look at the
    rank before it uses it.
    """
    kind, version = _SELECTION.unpack_from(raw, at)
    at += _SELECTION.size
    if kind in (0, 3):  # none, all
        return at + 8
    if kind not in (1, 2) or version not in (1, 2, 3):
        raise ValueError("an unknown selection")
    points = kind == 1
    width, regular = 4, False
    if version == 1 or (version == 2 and not points):
        if version == 2:
            width, regular = 8, bool(raw[at] & 1)
            at += 5  # flags, length
        else:
            at += 8  # reserved, length
    else:
        if not points:
            regular = bool(raw[at] & 1)
            at += 1
        width = raw[at]
        at += 1
    rank = int.from_bytes(raw[at : at + 4], "little")
    at += 4
    if not 1 <= rank <= MAX_RANK or width not in (2, 4, 8):
        raise ValueError("an impossible rank")
    if regular:
        return _inside(raw, at + 4 * rank * width)
    count = int.from_bytes(raw[at : at + width], "little")
    return _inside(raw, at + width + (1 if points else 2) * count * rank * width)


def _inside(raw: bytes, at: int) -> int:
    """Return an offset; raises ValueError if it is behind the end of the bytes."""
    if at > len(raw):
        raise ValueError("a selection that is cut off")
    return at
