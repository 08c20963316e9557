"""From a file to a bundle: keys as attributes, tensors as extents."""

from __future__ import annotations

from math import prod
from struct import Struct

from raconvert.arrays.bundle import some_sound
from raconvert.arrays.dtypes import MAX_SPAN, needs_swap, spanned
from raconvert.errors import Corrupt, TooLarge, Unsupported, worded
from raconvert.plugin import Array, Bundle, Source, element

from .tables import (
    ALIGNMENT,
    AXES,
    BLOCKS,
    BYTES,
    DEQUANTISED,
    ELEMENTS,
    LIST,
    MAGIC,
    NUMBERS,
    TEXT,
    VERSIONS,
)  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

__all__ = ["read"]

_SHOWN = 5  # names in a note
_BY_GGUF = " (in Python gguf.dequantize gives their values)"


def read(source: Source) -> Bundle:
    """Read the tensors, each an extent; values of keys become attributes of the file.

    Raises `Corrupt`, `TooLarge` and `Unsupported` before any data is read.
    """
    header = _Header(source)
    if not header.tensors:
        raise Unsupported("holds no tensors", path=source.path)
    arrays = header.arrays()
    bundle = Bundle(some_sound(arrays), attributes=header.attributes, notes=header.notes())
    bundle.decoded = header.dequantised
    return bundle


class _Header:
    """Everything before the data, parsed front to back; `at` is the offset of the next byte."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.at = 0
        self.order = "<"
        self.attributes: dict[str, Any] = {}
        self.tensors: dict[str, tuple[tuple[int, ...], int, int]] = {}  # dims, type, offset
        self._left: list[str] = []
        self._blocks: dict[str, list[str]] = {}
        self._quantised: dict[str, str] = {}  # name -> type, of tensors that can be decoded
        self._values = source.limits.document_values
        self._bytes = source.limits.hierarchy_bytes
        if self.take(4, "the magic") != MAGIC:
            self.wrong("magic is another", MAGIC)
        version = self.take(4, "the version")
        if version[:2] == b"\0\0":
            self.order = ">"
        number = int.from_bytes(version, "big" if self.order == ">" else "little")
        if number not in VERSIONS:
            raise Unsupported(
                f"is GGUF of version {number}", path=source.path, where="byte 4",
                expected="version 2 or 3", remedy="write it anew with a llama.cpp of today",
            )  # fmt: skip
        tensors, pairs = self.number("Q", "the counts"), self.number("Q", "the counts")
        if max(tensors, pairs) > source.limits.nodes:
            raise self.too_much(f"at most {source.limits.nodes} tensors and keys")
        keys: set[str] = set()
        for _ in range(pairs):
            self._pair(keys)
        for _ in range(tensors):
            self._tensor()
        alignment = self.attributes.get(ALIGNMENT, 32)
        if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
            self.wrong("alignment is not a power of two", got=alignment)
        self.alignment: int = alignment
        self.begin = -(-self.at // alignment) * alignment

    # Values ---------------------------------------------------------------------------------------

    def wrong(self, what: str, expected: object = None, got: object = None) -> NoReturn:
        """Raise `Corrupt` at the present offset."""
        raise Corrupt(
            what, path=self.source.path, where=f"byte {self.at}", expected=expected,
            got=None if got is None else repr(got)[:80],
        )  # fmt: skip

    def too_much(self, expected: str) -> TooLarge:
        """Return the error for a header beyond the limits."""
        return TooLarge(
            "header is too large to be read safely", path=self.source.path,
            where=f"byte {self.at}", expected=expected,
        )  # fmt: skip

    def take(self, nbytes: int, what: str) -> bytes:
        """Return the next bytes, which count against the limits."""
        self._bytes -= nbytes
        if self._bytes < 0 and nbytes <= self.source.size:
            raise self.too_much(f"at most {self.source.limits.hierarchy_bytes} bytes")
        raw = self.source.read_exact(self.at, nbytes, what)
        self.at += nbytes
        return raw

    def number(self, code: str, what: str) -> Any:
        """Return the next number, which has this code of `struct`."""
        layout = Struct(self.order + code)
        return layout.unpack(self.take(layout.size, what))[0]

    def text(self, what: str, most: int) -> str:
        """Return the next text, which follows its length."""
        nbytes = self.number("Q", what)
        if nbytes > most:
            self.wrong(f"{what} is too long", f"at most {most} bytes", nbytes)
        raw = self.take(nbytes, what)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.wrong(f"{what} is not UTF-8", got=raw[:40])

    def _pair(self, keys: set[str]) -> None:
        """Read a key and its value into the attributes; `keys` are all those before it."""
        key = self.text("a key", self.source.limits.name_bytes)
        if key in keys:
            self.wrong(f"key '{key[:80]}' is there twice")
        keys.add(key)
        kind = self.number("I", "the type of a value")
        value = self._value(kind, key) if kind != LIST else self._list(key, 0)
        if value is None or (type(value) is int and value.bit_length() > 63):
            self._left.append(key)
        else:
            self.attributes[key] = value

    def _value(self, kind: int, key: str) -> Any:
        """Read a value that is not a list."""
        self._values -= 1
        if self._values < 0:
            raise self.too_much(f"at most {self.source.limits.document_values} values")
        if kind == TEXT:
            return self.text("a text", self.source.limits.document_bytes)
        if kind >= len(NUMBERS) or kind == LIST:
            self.wrong(f"value of '{key[:80]}' has an unknown type", "0 to 12", kind)
        if NUMBERS[kind] != "?":
            return self.number(NUMBERS[kind], "a value")
        raw = self.number("B", "a value")
        if raw > 1:
            self.wrong("truth value is neither 0 nor 1", got=raw)
        return bool(raw)

    def _list(self, key: str, depth: int) -> Any:
        """Read a list of values; None if it is skipped, since no attribute can hold it."""
        kind, count = self.number("I", "the type of a list"), self.number("Q", "a length")
        limits = self.source.limits
        if kind == LIST:
            if depth >= limits.tree_levels:
                raise self.too_much(f"at most {limits.tree_levels} lists inside each other")
            self._values -= count
            if self._values < 0:
                raise self.too_much(f"at most {limits.document_values} values")
            for _ in range(count):
                self._list(key, depth + 1)
            return None
        if count <= limits.axis_labels:
            values = [self._value(kind, key) for _ in range(count)]
            wide = any(type(value) is int and value.bit_length() > 63 for value in values)
            return None if wide or depth or not values else values
        if kind == TEXT:
            self._skip_texts(count)
        elif kind < len(NUMBERS):
            self.at += count * Struct("<" + NUMBERS[kind]).size
        else:
            self.wrong(f"list '{key[:80]}' has an unknown type", "0 to 12", kind)
        if self.at > self.source.size:
            self.wrong("list goes on behind the end of the file", f"{count} values")
        return None

    def _skip_texts(self, count: int) -> None:
        """Skip a long list of texts; their lengths are read in pieces of 64 KiB."""
        layout, size = Struct(self.order + "Q"), self.source.size
        if count > (size - self.at) // 8:
            self.wrong("list goes on behind the end of the file", f"{count} texts")
        begin, piece = self.at, b""
        for _ in range(count):
            if self.at - begin + 8 > len(piece) or self.at < begin:
                begin, piece = self.at, self.source.read_at(self.at, 1 << 16)
            if self.at - begin + 8 > len(piece):
                self.wrong("list goes on behind the end of the file")
            self.at += 8 + layout.unpack_from(piece, self.at - begin)[0]

    # Tensors --------------------------------------------------------------------------------------

    def _tensor(self) -> None:
        """Read the entry of a tensor."""
        name = self.text("the name of a tensor", self.source.limits.name_bytes)
        if name in self.tensors or not name:
            self.wrong(f"tensor '{name[:80]}' is there twice" if name else "tensor has no name")
        rank = self.number("I", "a number of axes")
        if rank > AXES:
            self.wrong(f"tensor '{name[:80]}' has too many axes", f"at most {AXES}", rank)
        dims = tuple(self.number("Q", "a length") for _ in range(rank))
        kind, offset = self.number("I", "a type"), self.number("Q", "an offset")
        self.tensors[name] = dims, kind, offset

    def arrays(self) -> list[Array]:
        """Return the arrays in the order of the header; raises `Corrupt` if two overlap."""
        arrays = [self._array(name, *parts) for name, parts in self.tensors.items()]
        end = self.begin
        for offset, nbytes, name in sorted(
            (array.extent.offset, array.nbytes, array.name) for array in arrays if array.extent
        ):
            if offset < end and nbytes:
                raise Corrupt(
                    f"tensor '{name[:80]}' overlaps what lies before it", path=self.source.path,
                    where=f"byte {offset}", expected=f"byte {end} or later",
                )  # fmt: skip
            end = max(end, offset + nbytes)
        return arrays

    def _array(self, name: str, dims: tuple[int, ...], kind: int, offset: int) -> Array:
        """Return the array of a tensor, checked against the file; unreadable if of unknown type."""
        if kind in ELEMENTS:
            _, word, nbytes = ELEMENTS[kind]
            stored = element(word, nbytes, self.order)
        elif kind in BLOCKS:
            title, count, nbytes = BLOCKS[kind]
            row = dims[0] if dims else 1
            if row % count:
                self._refuse(name, f"a row is not whole blocks of {title}", f"n * {count}", row)
            stored, dims = BYTES, (row // count * nbytes, *dims[1:])
            self._blocks.setdefault(title, []).append(name)
            if title in DEQUANTISED:
                self._quantised[name] = title
        else:
            what = f"elements of type {kind}, which the specification does not have"
            return Array.unreadable(name, Unsupported(what, path=self.source.path))
        if spanned(dims, stored.nbytes) > MAX_SPAN:
            self._refuse(name, "shape is beyond any memory", None, dims)
        if offset % self.alignment:
            self._refuse(name, "data is not aligned", f"n * {self.alignment}", offset)
        begin, nbytes = self.begin + offset, prod(dims) * stored.nbytes
        if begin + nbytes > self.source.size:
            self._refuse(name, "data is cut off", f"{begin + nbytes} bytes", self.source.size)
        return Array(
            stored, dims, name=name, index_order="C",
            extent=self.source.extent(begin, nbytes, needs_swap(stored)),
        )  # fmt: skip

    def dequantised(self, array: Array) -> Array | None:
        """Return the values of a quantised array; None for types that are not decoded here."""
        title = self._quantised.get(array.name)
        if title is None:
            return None
        from .blocks import values_of

        return values_of(array, title, self.order)

    def _refuse(self, name: str, what: str, expected: object, got: object) -> NoReturn:
        raise Corrupt(
            what, path=self.source.path, where=f"tensor '{name[:80]}'", expected=expected, got=got,
        )  # fmt: skip

    def notes(self) -> list[str]:
        """Return a line for each quantised type, and one for what is left out."""
        names_by_fact: dict[str, list[str]] = {}
        for title, names in self._blocks.items():
            hint = " (`--unscale` gives their values)" if title in DEQUANTISED else _BY_GGUF
            names_by_fact[f"blocks of {title}, as uint8{hint}"] = names
        if self._left:
            names_by_fact["left out: values of keys"] = self._left
        lines = []
        for fact, names in names_by_fact.items():
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            lines.append(f"{worded(fact)}: {', '.join(map(repr, names[:_SHOWN]))}{more}")
        return lines
