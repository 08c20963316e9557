"""The header of a safetensors file: bytes to tensors, all checked, and back."""

from __future__ import annotations

import json
from math import prod

from raconvert.arrays.dtypes import float8, is_float8
from raconvert.arrays.memory import check_memory
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported
from raconvert.metadata.json import parsed
from raconvert.plugin import Array, Element, Source, element

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_HEADER_BYTES = 100_000_000  # the library's limit
MAX_RANK = 64  # NumPy's
METADATA = "__metadata__"
_ROWS = (
    ("BOOL", "bool", 1), ("U8", "uint", 1), ("I8", "int", 1), ("U16", "uint", 2), ("I16", "int", 2),
    ("U32", "uint", 4), ("I32", "int", 4), ("U64", "uint", 8), ("I64", "int", 8),
    ("F16", "float", 2), ("F32", "float", 4), ("F64", "float", 8), ("BF16", "bfloat", 2),
    ("C64", "complex", 8),
)  # fmt: skip
ELEMENTS = {name: element(kind, nbytes) for name, kind, nbytes in _ROWS}
NAMES = {(kind, nbytes): name for name, kind, nbytes in _ROWS}
# Floats of one byte.
FLOATS = {
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip
ELEMENTS |= {name: float8(kind) for name, kind in FLOATS.items()}
FLOAT_NAMES = {kind: name for name, kind in FLOATS.items()}
OWN = "safetensors"  # the namespace
ONE_BYTE = Element("user", 1, "|")


class Tensor(Record):
    """One entry of the header; `offset` counts from the beginning of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


def read_header(source: Source) -> tuple[list[Tensor], dict[str, str]]:
    """The tensors in the order of the header, and the metadata of the file.

    Raises `Corrupt` and `Unsupported`.
    """
    length = int.from_bytes(source.read_exact(0, 8, "the length of the header"), "little")
    if length > MAX_HEADER_BYTES:
        raise Corrupt(
            "header is too long", path=source.path, where="byte 0",
            expected=f"at most {MAX_HEADER_BYTES} bytes", got=length,
        )  # fmt: skip
    check_memory(length, source.max_memory, f"'{source.path}': header")
    entries = _parsed(source.read_exact(8, length, "the header"), source)
    metadata = entries.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise _wrong(source, METADATA, "a mapping from text to text", metadata)
    tensors = [_tensor(name, entry, 8 + length, source) for name, entry in entries.items()]
    _check_places(tensors, 8 + length, source)
    return tensors, metadata


def _parsed(raw: bytes, source: Source) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            once = set(found)
            twice = next(name for name, _ in pairs if name not in once or once.discard(name))
            raise ValueError(f"'{twice[:80]}' is there twice")
        return found

    try:
        entries = parsed(raw, source.max_memory, f"'{source.path}': header", unique)
    except ValueError as error:
        raise Corrupt(
            f"header is not JSON as safetensors has it: {error}"[:300], path=source.path,
            where="byte 8",
        ) from error  # fmt: skip
    if not isinstance(entries, dict):
        raise _wrong(source, "the header", "a mapping", entries)
    return entries


def _tensor(name: str, entry: Any, start: int, source: Source) -> Tensor:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise _wrong(source, name, "dtype, shape and data_offsets", entry)
    dtype, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str):
        raise _wrong(source, name, "a dtype that is a text", dtype)
    for numbers in (shape, place):
        if not isinstance(numbers, list) or not all(
            type(number) is int and 0 <= number < 1 << 63 for number in numbers
        ):
            raise _wrong(source, name, "lists of whole numbers", numbers)
    if len(shape) > MAX_RANK:
        raise Unsupported(f"tensor '{name}' has {len(shape)} axes", path=source.path)
    if not name:
        raise Unsupported("a tensor has an empty name", path=source.path)
    if len(place) != 2 or place[0] > place[1]:
        raise _wrong(source, name, "data_offsets that are a beginning and an end", place)
    width = ELEMENTS[dtype].nbytes if dtype in ELEMENTS else 0
    nbytes = place[1] - place[0]
    if width and prod(shape) * width != nbytes:
        raise _wrong(source, name, f"{prod(shape) * width} bytes", nbytes)
    return Tensor(name, dtype, tuple(shape), start + place[0], nbytes)


def _check_places(tensors: list[Tensor], start: int, source: Source) -> None:
    """Refuse holes, overlaps, data that is cut off, and bytes that nobody owns."""
    end = start
    for tensor in sorted(tensors, key=lambda t: (t.offset, t.nbytes)):
        if tensor.offset != end:
            raise _wrong(source, tensor.name, f"data at byte {end}, where that before ends",
                         tensor.offset)  # fmt: skip
        end += tensor.nbytes
    if end != source.size:
        what = "data is cut off" if end > source.size else "file goes on behind the last tensor"
        raise Corrupt(what, path=source.path, where=f"byte {min(end, source.size)}",
                      expected=f"{end} bytes", got=source.size)  # fmt: skip


def _wrong(source: Source, name: str, expected: str, got: object) -> Corrupt:
    shown = repr(got)[:80]
    return Corrupt(
        f"header is wrong for '{name[:80]}'", path=source.path, where="the header",
        expected=expected, got=shown,
    )  # fmt: skip


def dtype_of_array(array: Array) -> str | None:
    """The type that a tensor of these elements has; None if there is none."""
    if array.element == ONE_BYTE:
        own = array.meta.formats.get(OWN)
        named = own.get("dtype") if isinstance(own, dict) else None
        return named if named in FLOATS else None  # as it was read before version 2
    if is_float8(array.element):
        return FLOAT_NAMES.get(array.element.descr)
    return NAMES.get((array.element.kind, array.element.nbytes))


def header_bytes(arrays: list[Array], attributes: dict[str, str]) -> tuple[bytes, list[Array]]:
    """Everything before the data, and the arrays in the order in which their data follows.

    Raises nothing for what `plan` lets pass.
    """
    ordered = sorted(arrays, key=lambda array: -array.element.nbytes)
    places, end = {}, 0
    for array in ordered:
        places[array.name] = [end, end + array.nbytes]
        end += array.nbytes
    entries: dict[str, Any] = {METADATA: attributes} if attributes else {}
    for array in arrays:
        entries[array.name] = {
            "dtype": dtype_of_array(array),
            "shape": list(array.dims[::-1]),
            "data_offsets": places[array.name],
        }
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, ordered


def header_with(
    raw: bytes, tensors: list[Tensor], arrays: list[Array]
) -> tuple[bytes, list[Tensor | Array]]:
    """The header `raw` with entries for further arrays, or other ones; and whose data follows.

    A new tensor lies behind all that are as
    wide as its elements, or wider, so that the others stay aligned.
    """
    entries: dict[str, Any] = json.loads(raw)
    new = {array.name: array for array in arrays}
    order: list[Tensor | Array] = sorted(
        (tensor for tensor in tensors if tensor.name not in new), key=lambda t: (t.offset, t.nbytes)
    )
    for array in arrays:
        width = array.element.nbytes
        at = next((i for i, one in enumerate(order) if _width(one) < width), len(order))
        order.insert(at, array)
        entries[array.name] = {"dtype": dtype_of_array(array), "shape": list(array.dims[::-1])}
    end = 0
    for one in order:
        entries[one.name]["data_offsets"] = [end, end + one.nbytes]
        end += one.nbytes
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, order


def _width(one: Tensor | Array) -> int:
    """The bytes of an element of a tensor that is there, or of an array."""
    if not isinstance(one, Tensor):
        return one.element.nbytes
    return ELEMENTS[one.dtype].nbytes if one.dtype in ELEMENTS else 1


_TEXT = (
    b'{"x":{"dtype":"I16","shape":[2,3],"data_offsets":[0,12]},'
    b'"y":{"dtype":"BOOL","shape":[],"data_offsets":[12,13]}}  '
)
SAMPLE = len(_TEXT).to_bytes(8, "little") + _TEXT + bytes(range(12)) + b"\1"
