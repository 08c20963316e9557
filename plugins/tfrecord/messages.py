"""Protocol buffers of examples, walked by hand: nothing but what `example.proto` has.

A message is a run of fields: a number and a wire type in a varint, then a varint (0), 8 bytes (1),
a length and as many bytes (2), or 4 bytes (5). Integers and floats of a list are packed, or not.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

BYTES, FLOATS, INTEGERS = 1, 2, 3  # the kinds of a feature, by the numbers of their fields
VARINT, LONG, RUN, SHORT = 0, 1, 2, 5  # wire types
VARINT_BYTES = 10
_HIGH = bytes(range(128, 256))  # all bytes of a varint but the last one
_PIECE = 1 << 18  # bytes of varints that are decoded at once


class Malformed(Exception):
    """Bytes are not a message of the expected type."""


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the number at an offset, and the offset behind it. Raises `Malformed`."""
    value = 0
    for shift in range(0, 7 * VARINT_BYTES, 7):
        if at >= end:
            raise Malformed("a number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise Malformed(f"a number has more than {VARINT_BYTES} bytes")


def fields(data: bytes, at: int, end: int) -> list[tuple[int, int, int, int]]:
    """Return number, wire type, begin and end of each field; a varint is not decoded.

    Raises `Malformed`.
    """
    entries = []
    while at < end:
        key = data[at]
        at += 1
        if key > 127:
            key, at = varint(data, at - 1, end)
        number, wire = key >> 3, key & 7
        nbytes, at = _extent(data, at, end, wire)
        if nbytes > end - at or not number:
            raise Malformed("a field is cut off" if number else "a field has number 0")
        entries.append((number, wire, at, at + nbytes))
        at += nbytes
    return entries


def _extent(data: bytes, at: int, end: int, wire: int) -> tuple[int, int]:
    """Return the number of bytes of a field, and their offset."""
    if wire == RUN:
        if at < end and data[at] < 128:
            return data[at], at + 1
        return varint(data, at, end)
    if wire == VARINT:
        return varint(data, at, end)[1] - at, at
    if wire in (LONG, SHORT):
        return 8 if wire == LONG else 4, at
    raise Malformed(f"a field has wire type {wire}")


def _runs(data: bytes, at: int, end: int, most: int, what: str) -> list[tuple[int, int, int, int]]:
    """Return the fields of a message whose fields are messages with numbers from 1 to `most`."""
    entries = fields(data, at, end)
    for number, wire, _, _ in entries:
        if wire != RUN or number > most:
            raise Malformed(f"{what} has no field {number} of wire type {wire}")
    return entries


def _entries(data: bytes, at: int, end: int, what: str) -> Iterator[tuple[str, int, int]]:
    """Yield the keys of a map, with begin and end of their values."""
    for _, _, begin, stop in _runs(data, at, end, 1, what):
        key, value = b"", (stop, stop)
        for number, _, first, last in _runs(data, begin, stop, 2, "an entry of a map"):
            if number == 1:
                key = data[first:last]
            else:
                value = first, last
        try:
            yield key.decode(), *value
        except UnicodeDecodeError as error:
            raise Malformed("a name is not UTF-8") from error


def features_of(data: bytes) -> Iterator[tuple[str, bool, int, int]]:
    """Yield name, True if it has steps, begin and end of each feature of a record."""
    for number, _, at, end in _runs(data, 0, len(data), 2, "a record"):
        for key, begin, stop in _entries(data, at, end, ("Features", "FeatureLists")[number - 1]):
            yield key, number == 2, begin, stop


def steps_of(data: bytes, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each feature of a `FeatureList`."""
    for _, _, begin, stop in _runs(data, at, end, 1, "FeatureList"):
        yield begin, stop


def lists_of(data: bytes, at: int, end: int) -> tuple[int, list[tuple[int, int, int]]]:
    """Return the kind of a feature (0: it has no values), and its runs of values.

    A run is wire type, begin and end.
    """
    kind, lists = 0, []
    for number, _, begin, stop in _runs(data, at, end, INTEGERS, "Feature"):
        if kind not in (0, number):
            raise Malformed("a feature has two kinds of values")
        kind = number
        single = (RUN, SHORT, VARINT)[kind - 1]
        for field, wire, first, last in fields(data, begin, stop):
            if field != 1 or wire not in (RUN, single):
                raise Malformed(f"a list of values has no field {field} of wire type {wire}")
            if kind == FLOATS and (last - first) % 4:
                raise Malformed("floats are not whole")
            lists.append((wire, first, last))
    return kind, lists


def count_of(data: bytes, kind: int, lists: list[tuple[int, int, int]]) -> int:
    """Return the number of values of a feature."""
    if kind == BYTES:
        return len(lists)
    if kind == FLOATS:
        return sum(last - first for _, first, last in lists) // 4
    # Each varint of a run has one byte below 128, its last one.
    return sum(
        len(data[first:last].translate(None, _HIGH)) if wire == RUN else 1
        for wire, first, last in lists
    )


def bytes_of(data: bytes, kind: int, lists: list[tuple[int, int, int]]) -> list[bytes]:
    """Return the bytes of the values of a feature: of each value, or of each run of numbers."""
    runs = [data[first:last] for _, first, last in lists]
    if kind == INTEGERS and any(run and run[-1] > 127 for run in runs):
        raise Malformed("a number is cut off")
    return runs


def numbers_of(kind: int, raw: bytes) -> Any:
    """Return the floats or integers in the bytes of whole runs as an array."""
    import numpy as np

    if kind == FLOATS:
        return np.frombuffer(raw, "<f4")
    values = np.empty(len(raw.translate(None, _HIGH)), "<i8")
    done, at = 0, 0
    while at < len(raw):
        part = np.frombuffer(raw, np.uint8, min(_PIECE, len(raw) - at), at)
        ends = np.flatnonzero(part < 128)
        if not ends.size:
            raise Malformed(f"a number has more than {VARINT_BYTES} bytes")
        _decode(part, ends, values[done : done + ends.size].view("<u8"))
        done += ends.size
        at += int(ends[-1]) + 1
    return values


def _decode(raw: Any, last: Any, values: Any) -> None:
    """Fill in the numbers of varints that end at the offsets `last`."""
    import numpy as np

    if last[-1] == last.size - 1:  # each of one byte
        values[...] = raw[: last.size]
        return
    first = np.concatenate([[0], last[:-1] + 1])
    lengths = last - first + 1
    if lengths.max() > VARINT_BYTES:
        raise Malformed(f"a number has more than {VARINT_BYTES} bytes")
    values[...] = raw[first] & np.uint8(127)
    for n in range(1, int(lengths.max())):
        longer = np.flatnonzero(lengths > n)
        more = (raw[first[longer] + n] & np.uint8(127)).astype("<u8")
        values[longer] |= more << np.uint64(7 * n)
