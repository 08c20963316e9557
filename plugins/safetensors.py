"""safetensors: named tensors in one file, without code in it, read and write.

Specification: the README of github.com/huggingface/safetensors ("Format"). Compared with: the
`safetensors` library, which reads what is written here and writes what is read. Nothing here uses
it: it writes an array in Fortran order as if it were in C order, which exchanges its elements.

Layout::

    offset  size  type       meaning
    0       8     uint64 LE  N, the length of the header
    8       N     JSON       {"NAME": {"dtype": ..., "shape": [...], "data_offsets": [a, b]}, ...,
                             "__metadata__": {"KEY": "TEXT", ...}}, spaces behind it
    8 + N         bytes      the elements of all tensors, little-endian, in C order

Types: BOOL U8 I8 U16 I16 U32 I32 U64 I64 F16 BF16 F32 F64 C64 are those of RA. Floats of one byte
(F8_E4M3, F8_E5M2, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ) are those of the ml_dtypes package; F8_E4M3 is
``float8_e4m3fn``.

Reads: every tensor as an extent, in the order in which the header names them. ``__metadata__``
becomes the attributes of the file.

Writes: the header in the order of the arrays, padded to a multiple of 8; data in descending size of
the elements, as the library does it, so that each tensor lies aligned; attributes of the file whose
values are text.

A tensor is added (``-o FILE#NAME``) behind those whose elements are as wide; the header is written
anew, with ``__metadata__`` and the order that it had, and the data of the others is copied.

Refused: headers above 100 MB, as by the library; a name twice; data that does not begin at 0, ends
before the file does, overlaps or has holes; shapes that do not fit their bytes; types of less than
eight bits (an array that cannot be read). Writing refuses complex128, texts, dates and structures,
and the name ``__metadata__``. Metadata of the arrays has no place (named as equivalent).
"""

from __future__ import annotations

import json
from collections import Counter
from math import prod

from raconvert.arrays.bundle import some_sound
from raconvert.arrays.dtypes import MAX_SPAN, float8, is_float8, spanned
from raconvert.arrays.memory import check_memory
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported
from raconvert.files.copy import copy_extent, write_all
from raconvert.files.paths import write_failed
from raconvert.metadata.json import parsed
from raconvert.plugin import (
    MAYBE,
    NO,
    SURE,
    Array,
    Bundle,
    Element,
    Fit,
    Format,
    Plan,
    Source,
    array_exists,
    element,
    equivalent,
    facts_of,
    file_fits,
    refused,
    refused_type,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from typing import Any

    from raconvert.plugin import Target


# The header of a safetensors file: bytes to tensors, all checked, and back -----------------------


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
    """Parse the header: return its tensors in order, and the metadata of the file.

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
    """Parse the JSON of the header. Raises `Corrupt` for a name that occurs twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(pairs)
        if len(mapping) != len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice = next(name for name, count in counts.items() if count > 1)
            raise ValueError(f"'{twice[:80]}' is there twice")
        return mapping

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
    """Return the tensor of an entry, checked; `start` is the offset of the data of the file."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise _wrong(source, name, "dtype, shape and data_offsets", entry)
    dtype, shape, span = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str):
        raise _wrong(source, name, "a dtype that is a text", dtype)
    for numbers in (shape, span):
        if not isinstance(numbers, list) or not all(
            type(number) is int and 0 <= number < 1 << 63 for number in numbers
        ):
            raise _wrong(source, name, "lists of whole numbers", numbers)
    if len(shape) > MAX_RANK:
        raise Unsupported(f"tensor '{name}' has {len(shape)} axes", path=source.path)
    if not name:
        raise Unsupported("a tensor has an empty name", path=source.path)
    if len(span) != 2 or span[0] > span[1]:
        raise _wrong(source, name, "data_offsets that are a beginning and an end", span)
    width = ELEMENTS[dtype].nbytes if dtype in ELEMENTS else 0
    nbytes = span[1] - span[0]
    if width and prod(shape) * width != nbytes:
        raise _wrong(source, name, f"{prod(shape) * width} bytes", nbytes)
    return Tensor(name, dtype, tuple(shape), start + span[0], nbytes)


def _check_places(tensors: list[Tensor], start: int, source: Source) -> None:
    """Refuse holes, overlaps, data that is cut off, and bytes that belong to no tensor."""
    end = start
    for tensor in sorted(tensors, key=lambda t: (t.offset, t.nbytes)):
        if tensor.offset != end:
            raise _wrong(source, tensor.name, f"data at byte {end}, where the tensor before ends",
                         tensor.offset)  # fmt: skip
        end += tensor.nbytes
    if end != source.size:
        problem = "data is cut off" if end > source.size else "file goes on behind the last tensor"
        raise Corrupt(problem, path=source.path, where=f"byte {min(end, source.size)}",
                      expected=f"{end} bytes", got=source.size)  # fmt: skip


def _wrong(source: Source, name: str, expected: str, got: object) -> Corrupt:
    return Corrupt(
        f"header is wrong for '{name[:80]}'", path=source.path, where="the header",
        expected=expected, got=repr(got)[:80],
    )  # fmt: skip


def dtype_of_array(array: Array) -> str | None:
    """Return the name of the type that a tensor of these elements has, or None."""
    if array.element == ONE_BYTE:  # a float of one byte, as raconvert 1 read it
        own = array.meta.formats.get(OWN)
        named = own.get("dtype") if isinstance(own, dict) else None
        return named if named in FLOATS else None
    if is_float8(array.element):
        return FLOAT_NAMES.get(array.element.descr)
    return NAMES.get((array.element.kind, array.element.nbytes))


def header_bytes(arrays: list[Array], attributes: dict[str, str]) -> tuple[bytes, list[Array]]:
    """Return everything before the data, and the arrays in the order in which their data follows.

    Raises nothing for what `plan` lets pass.
    """
    ordered = sorted(arrays, key=lambda array: -array.element.nbytes)
    offsets, end = {}, 0
    for array in ordered:
        offsets[array.name] = [end, end + array.nbytes]
        end += array.nbytes
    entries: dict[str, Any] = {METADATA: attributes} if attributes else {}
    for array in arrays:
        entries[array.name] = {
            "dtype": dtype_of_array(array),
            "shape": list(array.dims[::-1]),
            "data_offsets": offsets[array.name],
        }
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, ordered


def header_with(
    raw: bytes, tensors: list[Tensor], arrays: list[Array]
) -> tuple[bytes, list[Tensor | Array]]:
    """Add or replace entries in the header `raw`; return it, and what follows, in order.

    A new tensor lies behind all tensors with elements as wide as its own, or wider, so that the
    others stay aligned.
    """
    entries: dict[str, Any] = json.loads(raw)
    new = {array.name: array for array in arrays}
    order: list[Tensor | Array] = sorted(
        (tensor for tensor in tensors if tensor.name not in new), key=lambda t: (t.offset, t.nbytes)
    )
    for array in arrays:
        width = array.element.nbytes
        narrower = (index for index, tensor in enumerate(order) if _width(tensor) < width)
        order.insert(next(narrower, len(order)), array)
        entries[array.name] = {"dtype": dtype_of_array(array), "shape": list(array.dims[::-1])}
    end = 0
    for tensor in order:
        entries[tensor.name]["data_offsets"] = [end, end + tensor.nbytes]
        end += tensor.nbytes
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, order


def _width(tensor: Tensor | Array) -> int:
    """Return the bytes of an element of an existing tensor, or of an array."""
    if not isinstance(tensor, Tensor):
        return tensor.element.nbytes
    return ELEMENTS[tensor.dtype].nbytes if tensor.dtype in ELEMENTS else 1


_TEXT = (
    b'{"x":{"dtype":"I16","shape":[2,3],"data_offsets":[0,12]},'
    b'"y":{"dtype":"BOOL","shape":[],"data_offsets":[12,13]}}  '
)
SAMPLE = len(_TEXT).to_bytes(8, "little") + _TEXT + bytes(range(12)) + b"\1"


# Whether arrays fit a safetensors file, and the file itself --------------------------------------


def plan(bundle: Bundle) -> Plan:
    """Plan a header and the elements of all arrays; names must differ, their metadata is lost."""
    fits: list[Fit] = []
    names: set[str] = set()
    for array in bundle.arrays:
        reason = _name_problem(array.name, names)
        fits += [refused(array.name, "names", reason)] if reason else []
        fits += _fits(array)
        names.add(array.name)
    texts = {k: v for k, v in bundle.attributes.items() if isinstance(v, str) and _is_text(k + v)}
    others = {k: v for k, v in bundle.attributes.items() if k not in texts}
    rest = bundle.like(bundle.arrays)
    rest.attributes = others
    fits += file_fits(rest, "safetensors")
    whole = not any(fit.outcome == "refused" for fit in fits)
    if whole and len(header_bytes(bundle.arrays, texts)[0]) > MAX_HEADER_BYTES:
        fits.append(refused("", "metadata", f"a header above {MAX_HEADER_BYTES} bytes"))
    return Plan(fits, lambda target: _write(bundle, texts, target), names=bundle.names)


def add(bundle: Bundle, source: Source, held: Bundle, *, overwrite: bool) -> Plan:
    """Plan the tensors of a file, copied, with the arrays among them; see `Add`."""
    tensors = read_header(source)[0]
    for name in bundle.names:
        if name in (tensor.name for tensor in tensors) and not overwrite:
            raise array_exists(source.path, name)
    alone = plan(bundle)
    if any(fit.outcome == "refused" for fit in alone.fits):
        return alone
    length = int.from_bytes(source.read_exact(0, 8, "the length of the header"), "little")
    raw = source.read_exact(8, length, "the header")
    header, order = header_with(raw, tensors, bundle.arrays)
    if len(header) > MAX_HEADER_BYTES:
        alone.fits.append(refused("", "metadata", f"a header above {MAX_HEADER_BYTES} bytes"))

    def write(target: Target) -> None:
        file = target.open()
        try:
            write_all(file, [header])
            for tensor in order:
                if not isinstance(tensor, Tensor):
                    _write_data(file, tensor, target)
                elif tensor.nbytes:
                    copy_extent(b"", source.extent(tensor.offset, tensor.nbytes), file)
        except OSError as error:
            raise write_failed(target.path, error) from error

    return Plan(alone.fits, write, names=bundle.names)


def _name_problem(name: str, before: set[str]) -> str | None:
    """Return the reason why a name cannot be that of a tensor, or None."""
    if not name:
        return "an empty name"
    if name == METADATA:
        return f"{METADATA} has a meaning of its own"
    if name in before:
        return "the name is used twice"
    return None if _is_text(name) else "the name is not valid text"


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fits(array: Array) -> list[Fit]:
    """List what of an array safetensors loses or refuses."""
    name, fits = array.name, []
    if dtype_of_array(array) is None:
        dtype = "complex64" if array.element.kind == "complex" else "float64"
        fits.append(refused_type(array, "safetensors", dtype))
    if array.ndim > MAX_RANK or spanned(array.dims, array.element.nbytes) > MAX_SPAN:
        fits.append(refused(name, "shape", "more than 64 axes, or 2**63 bytes"))
    if array.described and array.meta:
        own = array.meta.formats.get(OWN)
        lost = facts_of(array, OWN)
        lost += [OWN] if own and (own.keys() != {"dtype"} or array.element.kind != "user") else []
        if lost:
            reason = f"safetensors has no place for it: {', '.join(lost)}"
            fits.append(equivalent(name, "metadata", reason))
    return fits


def _write(bundle: Bundle, attributes: dict[str, str], target: Target) -> None:
    header, ordered = header_bytes(bundle.arrays, attributes)
    file = target.open()
    try:
        write_all(file, [header])
        for array in ordered:
            _write_data(file, array, target)
    except OSError as error:
        raise write_failed(target.path, error) from error


def _write_data(file: FileIO, array: Array, target: Target) -> None:
    from raconvert.arrays.blocks import block_bytes, blocks

    for block in target.counted(blocks(array, block_bytes(target.max_memory))):
        write_all(file, [block.reshape(-1).view("u1")])


__all__ = ["FORMAT", "add", "plan", "read", "sniff"]

FORMAT = Format(
    name="safetensors",
    title="safetensors",
    suffixes=(".safetensors",),
    magic=((8, b"{"),),
    many=True,
    float8=tuple(FLOATS.values()),
    samples={"two.safetensors": SAMPLE},
    spec="https://github.com/huggingface/safetensors",
    losses="no metadata of arrays; no complex128, text, dates or structures",
)


def sniff(source: Source) -> int:
    """Return SURE if a plausible header length and the words of a first entry follow.

    MAYBE for any other text in braces behind such a length.
    """
    length, text = int.from_bytes(source.head[:8], "little"), source.head[8:]
    if not 2 <= length <= MAX_HEADER_BYTES or not text.startswith(b"{"):
        return NO
    named = any(word in text for word in (b'"dtype"', b'"__metadata__"'))
    is_empty = not text[:length].strip(b"{} ")
    return SURE if named or is_empty else MAYBE


def read(source: Source) -> Bundle:
    """Read the tensors of a file, each an extent; shapes in C order.

    Raises `Corrupt` and `Unsupported` before any data is read.
    """
    tensors, attributes = read_header(source)
    if not tensors:
        raise Unsupported("holds no tensors", path=source.path)
    arrays = [_array(source, tensor) for tensor in tensors]
    return Bundle(some_sound(arrays), attributes=dict(attributes))


def _array(source: Source, tensor: Tensor) -> Array:
    kind = ELEMENTS.get(tensor.dtype)
    if kind is None:
        what = f"elements of type {tensor.dtype}, which are less than a byte or unknown"
        return Array.unreadable(tensor.name, Unsupported(what, path=source.path))
    return Array(
        kind,
        tensor.shape[::-1],
        name=tensor.name,
        index_order="C",
        extent=source.extent(tensor.offset, tensor.nbytes),
    )
