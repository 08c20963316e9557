"""A small writer of JLD2 files, byte by byte as the Julia package lays them out.

Facts: HDF5 file format specification 3.0 (superblock 2, object headers 2, layout message 4) and the
choices of JLD2.jl 0.6: a user block of 512 bytes, data objects one after the other, arrays with
reversed dims, compact below 8 KiB only for scalars, one chunk with 8 bytes for each length where
data is compressed. h5dump 1.10, which reads these files, is the judge in the tests.
"""

from __future__ import annotations

import zlib
from struct import pack
from typing import Any

import numpy as np

HEADER = b"HDF5-based Julia Data Format, version 0.2.0\0 (Julia 1.11.2 64-bit LE)\0"
OLD_HEADER = b"Julia data file (HDF5), version 0.2.0\0 (Julia 1.0.3 64-bit LE)\0"
BASE = 512
NOWHERE = (1 << 64) - 1
SPACE, LINK_INFO, TYPE, FILL, LINK, LAYOUT, GROUP_INFO, FILTERS, ATTRIBUTE = (
    1, 2, 3, 5, 6, 8, 10, 11, 12)  # fmt: skip
SCALAR, SIMPLE, NULL = 0, 1, 2
COMPACT, CONTIGUOUS, CHUNKED = 0, 1, 2


def lookup3(data: bytes) -> int:
    """Return Bob Jenkins's checksum of 32 bits."""

    def rotated(x: int, k: int) -> int:
        return (x << k | x >> (32 - k)) & 0xFFFFFFFF

    a = b = c = (0xDEADBEEF + len(data)) & 0xFFFFFFFF
    if not data:
        return c
    padded = data + bytes(-len(data) % 12)
    words = np.frombuffer(padded, "<u4").tolist()
    for at in range(0, len(words), 3):
        a, b, c = ((x + y) & 0xFFFFFFFF for x, y in zip((a, b, c), words[at : at + 3], strict=True))
        if at + 3 == len(words):
            break
        for k in (4, 6, 8, 16, 19, 4):
            a = (a - c) & 0xFFFFFFFF ^ rotated(c, k)
            c = (c + b) & 0xFFFFFFFF
            a, b, c = b, c, a
    for k in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - rotated(b, k)) & 0xFFFFFFFF
        a, b, c = b, c, a
    return b


def integer(size: int, signed: bool = True) -> bytes:
    return pack("<BBHIHH", 0x30, 8 * signed, 0, size, 0, 8 * size)


def floating(size: int) -> bytes:
    bits, exponent, bias = {2: (10, 5, 15), 4: (23, 8, 127), 8: (52, 11, 1023)}[size]
    sign = 8 * size - 1
    head = pack("<BBBBIHH", 0x31, 0x20, sign, 0, size, 0, 8 * size)
    return head + pack("<BBBBI", bits, exponent, 0, bits, bias)


def boolean() -> bytes:
    return pack("<BBHIHH", 0x34, 0, 0, 1, 0, 8)


def opaque(size: int) -> bytes:
    return pack("<BBHI", 0x35, 0, 0, size)


def text(size: int) -> bytes:
    return pack("<BBHI", 0x33, 0x11, 0, size)


def compound(size: int, *members: tuple[str, int, bytes]) -> bytes:
    width = {1: "<B", 2: "<H"}[1 if size < 256 else 2]
    return pack("<BHBI", 0x36, len(members), 0, size) + b"".join(
        name.encode() + b"\0" + pack(width, at) + member for name, at, member in members
    )


def complex_of(size: int) -> bytes:
    part = floating(size)
    return compound(2 * size, ("re", 0, part), ("im", size, part))


class Jld2:
    """One file being put together; `done` gives its bytes."""

    def __init__(self, header: bytes = HEADER) -> None:
        self.data = bytearray(header.ljust(BASE, b"\0") + bytes(48))
        self.links: dict[str, int] = {}
        self.types: dict[str, int] = {}

    def put(self, raw: bytes) -> int:
        at = len(self.data)
        self.data += raw
        return at - BASE

    def object(self, *messages: tuple[int, int, bytes]) -> int:
        """Add an object header; return its address."""
        body = b"".join(pack("<BHB", k, len(b), flags) + b for k, flags, b in messages)
        body += pack("<BHB", 0, 16, 0) + bytes(16)  # room for a continuation
        raw = b"OHDR\2\2" + pack("<I", len(body)) + body
        return self.put(raw + pack("<I", lookup3(raw)))

    def commit(self, datatype: bytes, *attributes: bytes) -> int:
        """Add a named datatype in `_types`; return its address."""
        at = self.object((TYPE, 64, datatype), *((ATTRIBUTE, 0, a) for a in attributes))
        self.types[f"{len(self.types) + 1:08d}"] = at
        return at

    def add(
        self,
        name: str,
        datatype: bytes | int,
        shape: tuple[int, ...] | None,
        raw: bytes = b"",
        *,
        filters: tuple[tuple[int, tuple[int, ...]], ...] = (),
        dimensions: tuple[int, ...] | None = None,
        encoded: int = 8,
        chunk: tuple[int, ...] | None = None,
        space: int | None = None,
    ) -> None:
        """Add a dataset: `shape` as HDF5 lists it, () a scalar, None a null space.

        `datatype`: a message, or the address of a named one; `raw` as it is to be stored.
        """
        if space is None:
            space = NULL if shape is None else SIMPLE if shape else SCALAR
        dims = shape or ()
        found: list[tuple[int, int, bytes]] = [
            (FILL, 1, b"\3\x09"),
            (SPACE, 0, pack("<BBBB", 2, len(dims), 0, space) + pack(f"<{len(dims)}Q", *dims)),
        ]
        if dimensions is not None:
            found.append((ATTRIBUTE, 0, dimensions_attribute(dimensions)))
        if isinstance(datatype, int):
            found.append((TYPE, 3, pack("<BBQ", 3, 2, datatype)))
        else:
            found.append((TYPE, 1, datatype))
        if filters:
            unit = self.unit(datatype)
            body = b"".join(
                pack("<HHH", number, 0, len(values)) + pack(f"<{len(values)}I", *values)
                for number, values in filters
            )
            found.append((FILTERS, 0, pack("<BB", 2, len(filters)) + body))
            at = self.put(raw)
            lengths = b"".join(n.to_bytes(encoded, "little") for n in (*(chunk or dims), unit))
            head = pack("<BBBBB", 4, CHUNKED, 2, len(dims) + 1, encoded)
            found.append((LAYOUT, 0, head + lengths + pack("<BQIQ", 1, len(raw), 0, at)))
        elif not raw or (len(raw) < 8192 and not shape):
            found.append((LAYOUT, 0, pack("<BBH", 4, COMPACT, len(raw)) + raw))
        else:
            self.data += bytes(-len(self.data) % 8)
            at = self.put(raw)
            found.append((LAYOUT, 0, pack("<BBQQ", 4, CONTIGUOUS, at, len(raw))))
        self.links[name] = self.object(*found)

    def unit(self, datatype: bytes | int) -> int:
        if isinstance(datatype, bytes):
            return int.from_bytes(datatype[4:8], "little")
        # committed: OHDR, version, flags, length, then type, size, flags of the first message
        at = BASE + datatype + 10 + 4
        return int.from_bytes(self.data[at + 4 : at + 8], "little")

    def deflated(self, name: str, datatype: bytes | int, values: Any, **options: Any) -> None:
        """Add an array as `compress=true` stores it: one chunk."""
        raw = zlib.compress(np.ascontiguousarray(values).tobytes(), 5)
        self.add(name, datatype, values.shape, raw, filters=((1, (5,)),), **options)

    def group(self, links: dict[str, int]) -> int:
        messages = [
            (LINK_INFO, 0, pack("<BBQQ", 0, 0, NOWHERE, NOWHERE)),
            (GROUP_INFO, 0, b"\0\0"),
        ]
        for name, at in links.items():
            text = name.encode()
            messages.append((LINK, 0, pack("<BBBB", 1, 0x10, 1, len(text)) + text + pack("<Q", at)))
        return self.object(*messages)

    def done(self) -> bytes:
        if self.types:
            self.links = {"_types": self.group(self.types), **self.links}
        root = self.group(self.links)
        head = b"\x89HDF\r\n\x1a\n" + pack(
            "<BBBBQQQQ", 2, 8, 8, 0, BASE, NOWHERE, len(self.data), root
        )
        self.data[BASE : BASE + 48] = head + pack("<I", lookup3(head))
        return bytes(self.data)


def heap(*texts: bytes) -> bytes:
    """Return a global heap with these texts as its objects 1, 2, ..."""
    objects = b"".join(
        pack("<HHIQ", number, 1, 0, len(text)) + text + bytes(-len(text) % 8)
        for number, text in enumerate(texts, 1)
    )
    free = 4096 - 16 - len(objects)
    return (
        b"GCOL\1\0\0\0"
        + pack("<Q", 4096)
        + objects
        + pack("<HHIQ", 0, 0, 0, free).ljust(free, b"\0")
    )


def type_attribute(named: int, name: bytes, address: int) -> bytes:
    """Return the attribute `julia_type` of a named type.

    `named`: the address of JLD2's own type for it; `address`: of a heap with `name` first in it.
    """
    own = pack("<BBQ", 3, 2, named)
    space = pack("<BBBB", 2, 0, 0, SCALAR)
    label = b"julia_type\0"
    head = pack("<BBHHHB", 3, 1, len(label), len(own), len(space), 1)
    references = pack("<IQI", len(name), address, 1) + pack("<IQI", 0, 0, 0)
    return head + label + own + space + references


def datatype() -> bytes:
    """Return JLD2's own type of a type: its name and its parameters."""
    text = pack("<BBBBI", 0x39, 0x11, 1, 0, 16) + integer(1, signed=False)
    references = pack("<BBBBI", 0x39, 0, 0, 0, 16) + pack("<BBHI", 0x37, 0, 0, 8)
    return compound(32, ("name", 0, text), ("parameters", 16, references))


def dimensions_attribute(dims: tuple[int, ...]) -> bytes:
    """Return the attribute that tells the dims where the space of the dataset does not."""
    name = b"dimensions\0"
    space = pack("<BBBBQ", 2, 1, 0, SIMPLE, len(dims))
    kind = integer(8)
    head = pack("<BBHHHB", 3, 0, len(name), len(kind), len(space), 1)
    return head + name + kind + space + pack(f"<{len(dims)}q", *dims)
