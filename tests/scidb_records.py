"""A second reader and writer of SciDB binary records, one struct call per value, for the tests.

Written from the description of the format alone; nothing of the plugin is used.
"""

from __future__ import annotations

import re
import struct
from typing import Any

CODES = {
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H",
    "uint32": "I", "uint64": "Q", "float": "f", "double": "d", "bool": "B", "char": "B",
    "datetime": "q",
}  # fmt: skip
SIZES = {kind: struct.calcsize(code) for kind, code in CODES.items()} | {"datetimetz": 16}


def columns(text: str) -> list[tuple[str, int | None, bool]]:
    """Return type, width (None: counted) and nullable of the columns of a format string."""
    found = []
    for part in text.strip()[1:-1].split(","):
        kind, width, null = re.fullmatch(r"\s*(\w+)(?:\((\d+)\))?(\s+null)?\s*", part).groups()  # type: ignore[union-attr]
        found.append((kind, int(width) if width else SIZES.get(kind), null is not None))
    return found


def decode(data: bytes, text: str) -> list[list[tuple[int | None, bytes]]]:
    """Return the records: for every column its prefix (None: has none) and its bytes."""
    records, at = [], 0
    while at < len(data):
        record = []
        for _, size, null in columns(text):
            prefix = data[at] if null else None
            at += null
            width = size
            if width is None:
                (width,) = struct.unpack_from("<I", data, at)
                at += 4
            assert at + width <= len(data)
            record.append((prefix, data[at : at + width]))
            at += width
        records.append(record)
    return records


def encode(records: list[list[tuple[int | None, bytes]]], text: str) -> bytes:
    """Return the bytes of records of that form."""
    out = bytearray()
    for record in records:
        for (prefix, value), (_, size, null) in zip(record, columns(text), strict=True):
            if null:
                assert prefix is not None
                out.append(prefix)
            if size is None:
                out += struct.pack("<I", len(value))
            assert size in (None, len(value))
            out += value
    return bytes(out)


def value(kind: str, raw: bytes) -> Any:
    """Return the bytes of a value as the number, text or bytes that it is."""
    if kind == "string":
        return raw.split(b"\0")[0].decode()
    if kind == "datetimetz":
        return list(struct.unpack("<2q", raw))
    if kind == "bool":
        return raw != b"\0"
    if kind in CODES and kind != "char":
        return struct.unpack("<" + CODES[kind], raw)[0]
    return raw


# The valid files of the corpus, and what their expected JSON does not say in options: where the coordinates are.
CORPUS = {
    "all_types_notnull.scidb": {},
    "all_types_nullable.scidb": {},
    "bool_bytes.scidb": {},
    "c_struct_padding_skip.scidb": {},
    "dense_2d_3x4_int32.scidb": {},
    "empty.scidb": {},
    "fixed_width_var_types.scidb": {},
    "flat_array_seed.scidb": {},
    "p4_generator_20rec.bin": {},
    "skip_forms.scidb": {},
    "sparse_2d_coords_after.scidb": {"coords": "after"},
    "sparse_3d_coords_first.scidb": {"coords": "before"},
    "vendor_intensity_data.bin": {},
}
