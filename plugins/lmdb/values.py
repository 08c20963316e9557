"""Recognised values: images, arrays of NumPy, data of Caffe, text, pickles; else bytes."""

from __future__ import annotations

import re
from math import prod
from typing import NamedTuple

from raconvert import registry
from raconvert.arrays.memory import check_memory
from raconvert.catalogue import ROWS
from raconvert.errors import Corrupt
from raconvert.files.window import Window
from raconvert.plugin import SURE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from raconvert.catalogue import Row
    from raconvert.plugin import Array, Plugin, Source

__all__ = [
    "BYTES", "DATUM", "FLOATS", "PICKLE", "TEXT", "Value", "beginning_of", "decoded", "floats_of",
    "value_at",
]  # fmt: skip

# Formats of values, read by their own plugins: each file of them has one array, and no partner.
READ = ("png", "jpeg", "webp", "bmp", "gif", "npy")
BYTES, TEXT, PICKLE, DATUM, FLOATS = "bytes", "text", "pickle", "datum", "floats"
TEXT_BYTES = 1 << 16  # longer values are not taken for text
PICKLES = re.compile(rb"\x80[\x02-\x05]")

# Fields of a datum: number -> name and the kind on the wire (0: a number, 2: bytes, 5: float32)
FIELDS = {
    1: ("channels", 0), 2: ("height", 0), 3: ("width", 0), 4: ("data", 2), 5: ("label", 0),
    6: ("floats", 5), 7: ("encoded", 0),
}  # fmt: skip
PACKED = 2  # the kind of a packed list of floats
MOST_FIELDS = 64  # of a datum, its floats aside
FLOAT_TAG = 6 << 3 | 5
PIECE = 256  # bytes of a datum around its data


class Value(NamedTuple):
    """A value: its kind, the extent that is read of it, and the shape that a datum has.

    `kind` is the name of a format, or one of the words above; `label` is that of a datum: None if
    the value is not a datum, an empty tuple if it does not say one.
    """

    kind: str
    begin: int
    nbytes: int
    shape: tuple[int, ...] = ()
    label: tuple[int, ...] | None = None


_ROWS = [row for row in ROWS if row.name in READ]
_plugins: dict[str, Plugin] = {}  # loaded ones by name, since a value is quickly read


def value_at(source: Source, begin: int, nbytes: int) -> Value:
    """Return the value at an offset, with its kind. Raises `ReadFailed`."""
    window = Window(source, "value", begin, nbytes)
    row = _row_of(window)
    if row is not None:
        return Value(row.name, begin, nbytes)
    head = window.head
    if PICKLES.match(head) and window.read_at(nbytes - 1, 1) == b".":
        return Value(PICKLE, begin, nbytes)
    datum = _datum(window)
    if datum is not None:
        return datum
    if nbytes <= TEXT_BYTES and _is_text(window.read_at(0, nbytes)):
        return Value(TEXT, begin, nbytes)
    return Value(BYTES, begin, nbytes)


def _row_of(window: Window) -> Row | None:
    """Return the format of a value, if its plugin is sure of it."""
    for row in _ROWS:
        if registry.matches(row.magic, window.head):
            return row if _plugin(row).sniff(window) == SURE else None
    return None


def _plugin(row: Row) -> Plugin:
    """Return the plugin of a format, loaded once."""
    if row.name not in _plugins:
        _plugins[row.name] = registry.load(row)
    return _plugins[row.name]


def _is_text(raw: bytes) -> bool:
    """True for UTF-8 whose lines can be shown."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return False
    return all(part.isprintable() for part in re.split("[\t\r\n]", text))


def decoded(source: Source, value: Value, key: str) -> tuple[Array, list[str]]:
    """Return the array of a value in a format of its own, and the notes of its plugin.

    Raises what that plugin raises; the errors name the key.
    """
    window = Window(source, key, value.begin, value.nbytes)
    row = next(row for row in _ROWS if row.name == value.kind)
    bundle = _plugin(row).read(window)
    if len(bundle.arrays) != 1:
        raise Corrupt("value is not one array", path=source.path, where=f"key {key[:80]!r}")
    return bundle.arrays[0], bundle.notes


# Images that begin and end as another one ---------------------------------------------------------

_END_OF_PNG = b"\0\0\0\0IEND\xaeB`\x82"
_END_OF_JPEG = b"\xff\xd9"
_SCAN, _DATA = 0xDA, b"IDAT"


def beginning_of(source: Source, value: Value) -> bytes | None:
    """Return all of an image before its data, if only the usual end follows the data.

    Images with the same beginning have one type, shape and metadata. None for other images, which
    have to be parsed. Raises `ReadFailed`.
    """
    cut = {"png": _before_data, "jpeg": _before_scan}.get(value.kind)
    if cut is None:
        return None
    window = Window(source, "value", value.begin, value.nbytes)
    end = window.read_at(max(0, value.nbytes - len(_END_OF_PNG)), len(_END_OF_PNG))
    return cut(window.head, value.nbytes, end)


def _before_data(head: bytes, nbytes: int, end: bytes) -> bytes | None:
    """Return the chunks of a PNG before its one chunk of data."""
    at = head.find(_DATA) - 4
    stored = int.from_bytes(head[max(0, at) : at + 4], "big")
    whole = at >= 0 and at + 12 + stored + len(_END_OF_PNG) == nbytes
    return head[:at] if whole and end == _END_OF_PNG else None


def _before_scan(head: bytes, nbytes: int, end: bytes) -> bytes | None:
    """Return the segments of a JPEG before its first scan."""
    at = 2
    while head[at : at + 1] == b"\xff" and head[at + 1 : at + 2] != bytes([_SCAN]):
        at += 2 + max(2, int.from_bytes(head[at + 2 : at + 4], "big"))
    return head[:at] if head[at : at + 1] and end.endswith(_END_OF_JPEG) else None


# Data of Caffe: messages of Protocol Buffers ------------------------------------------------------


def _datum(window: Window) -> Value | None:
    """Return the datum that a value is; None for anything that is not exactly one."""
    head = window.head[:1]
    if not head or head[0] >> 3 not in FIELDS:
        return None
    fields: dict[str, tuple[int, int]] = {}
    floats = 0
    for name, at, nbytes in _fields(window):
        if not name:
            return None
        fields[name] = at, nbytes
        floats += nbytes if name in ("floats", "packed") else 0
    lengths = [fields.get(name, (0, 0))[0] for name in ("channels", "height", "width")]
    at, nbytes = fields.get("data", (0, 0))
    label = (_int32(fields["label"][0]),) if "label" in fields else ()
    begin = window.base + at
    if fields.get("encoded", (0, 0))[0]:
        row = _row_of(Window(window, "data", at, nbytes)) if nbytes else None
        return Value(row.name, begin, nbytes, (), label) if row is not None else None
    if min(lengths) < 1 or prod(lengths) != (nbytes or floats) or (nbytes and floats):
        return None
    if floats:
        return Value(FLOATS, window.base, window.size, tuple(lengths), label)
    return Value(DATUM, begin, nbytes, tuple(lengths), label)


def _int32(number: int) -> int:
    """Return the signed integer in the lower 32 bits of a number."""
    low = number & 0xFFFFFFFF
    return low - (low >> 31 << 32)


def _fields(window: Window) -> Iterator[tuple[str, int, int]]:
    """Yield the fields of a message: name, and a number, or the offset and bytes of data.

    For floats, their offset and count: ``floats`` have a tag each, ``packed`` ones do not. An empty
    name ends a value that is not a datum.
    """
    at, size, count, start, piece = 0, window.size, 0, 0, b""
    while at < size:
        if not start <= at <= start + len(piece) - 24:  # two numbers and what is between
            start, piece = at, window.read_at(at, PIECE)
        tag, after = _number(piece, at - start)
        name, kind = FIELDS.get(tag >> 3, ("", -1))
        count += name != "floats" or tag & 7 == PACKED
        if count > MOST_FIELDS:
            yield "", 0, 0
            return
        if tag == FLOAT_TAG:
            floats = _run_of_floats(window, at)
            yield name, at, floats
            at += 5 * floats
            ends = at if floats else size + 1
        elif tag & 7 == 0 and kind == 0:
            number, after = _number(piece, after)
            yield name, number, 0
            ends = start + after
        elif tag & 7 == 2 and kind in (2, 5):
            nbytes, after = _number(piece, after)
            packed = name == "floats"
            yield "packed" if packed else name, start + after, nbytes // 4 if packed else nbytes
            ends = start + after + nbytes if kind == 2 or nbytes % 4 == 0 else size + 1
        else:
            ends = size + 1
        if after < 0 or ends > size:
            yield "", 0, 0
            return
        at = ends


def _number(piece: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length and the offset behind it, negative if it has no end."""
    if at < 0:
        return 0, -1
    number = 0
    for shift, byte in enumerate(piece[at : at + 10]):
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return number, at + shift + 1
    return 0, -1


def _run_of_floats(window: Window, at: int) -> int:
    """Count the floats that follow each other from an offset, each behind its tag."""
    import numpy as np

    run, step = 0, 5 << 16
    while at < window.size:
        raw = np.frombuffer(window.read_at(at, step), np.uint8)
        tags = raw[: raw.size // 5 * 5 : 5] == FLOAT_TAG
        whole = int(tags.size if tags.all() else tags.argmin())
        run += whole
        if whole < step // 5:
            break
        at += step
    return run


def floats_of(source: Source, value: Value) -> object:
    """Return the floats of a datum, in order, little-endian. Raises `TooLarge`."""
    import numpy as np

    check_memory(3 * value.nbytes, source.max_memory, f"'{source.path}': one datum")
    window = Window(source, "value", value.begin, value.nbytes)
    parts, raw = [], window.read_exact(0, value.nbytes, "a datum")
    for name, at, count in _fields(window):
        if name == "floats":
            rows = np.frombuffer(raw, np.uint8, 5 * count, at).reshape(-1, 5)
            parts.append(rows[:, 1:].copy().view("<f4").reshape(-1))
        elif name == "packed":
            parts.append(np.frombuffer(raw, "<f4", count, at))
    return np.concatenate(parts)
