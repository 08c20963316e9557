"""TFRecord byte by byte, for files that no library writes."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import google_crc32c


def varint(number: int) -> bytes:
    number %= 1 << 64
    made = b""
    while number > 127:
        made += bytes([number & 127 | 128])
        number >>= 7
    return made + bytes([number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def ints(*values: int) -> bytes:
    """A feature of integers."""
    return field(3, field(1, b"".join(map(varint, values))))


def floats(*values: float) -> bytes:
    return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))


def texts(*values: bytes) -> bytes:
    return field(1, b"".join(field(1, value) for value in values))


def features(**named: bytes) -> bytes:
    return b"".join(
        field(1, field(1, name.encode()) + field(2, feature)) for name, feature in named.items()
    )


def example(**named: bytes) -> bytes:
    return field(1, features(**named))


def masked(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes, *, length: int | None = None) -> bytes:
    """A record, of which the length may be another, with its right checksum."""
    head = struct.pack("<Q", len(data) if length is None else length)
    return head + masked(head) + data + masked(data)


def file(examples: Iterable[bytes]) -> bytes:
    return b"".join(map(record, examples))
