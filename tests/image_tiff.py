"""Small TIFF files put together byte by byte, for the tests of hostile ones."""

from __future__ import annotations

import struct

SHORT, LONG = 3, 4


def entry(tag: int, value: int, kind: int = LONG, count: int = 1) -> bytes:
    """Return an entry of a little-endian directory; `value` is the number, or its offset."""
    return struct.pack("<HHII", tag, kind, count, value)


def tiff(entries: list[bytes], data: bytes, *, pages: int = 1, loop_to: int | None = None) -> bytes:
    """Return a TIFF of `data` at byte 8 and a chain of equal directories behind it.

    The last one ends the chain, or leads back: to itself (0) or to the first one (1).
    """
    data += b"\0" * (len(data) % 2)
    entries = sorted(entries, key=lambda item: struct.unpack_from("<H", item))
    body = struct.pack("<H", len(entries)) + b"".join(entries)
    size = len(body) + 4
    start = 8 + len(data)
    offsets = [start + number * size for number in range(pages)]
    last = 0 if loop_to is None else offsets[0] if loop_to else offsets[-1]
    chain = b"".join(body + struct.pack("<I", following) for following in [*offsets[1:], last])
    return b"II*\0" + struct.pack("<I", start) + data + chain
