"""Writing v6 and v7: every variable one element, in v7 compressed.

The layout is that of `level5`. Numbers are stored in the type of their class; in v7 each variable
is compressed by zlib while it streams, its length is filled in afterwards.
"""

from __future__ import annotations

import struct
from math import prod
from zlib import compressobj

from raconvert.errors import WouldLose
from raconvert.files.copy import copy_extent, write_all

from .header import (
    VERSION_5,
    Flags,
    class_number,
    dims_bytes,
    element_bytes,
    flags_bytes,
    header_bytes,
    tag_bytes,
)
from .payload import payload, prepare
from .tables import (
    CODES,
    MAX_V5_BYTES,
    MI_COMPRESSED,
    MI_INT8,
    MI_INT32,
    MI_MATRIX,
    MI_UTF8,
    MI_UTF16,
    NUMBERS,
    TYPE_CODES,
)
from .variables import Leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from typing import Any

    from raconvert.plugin import Target

    from .contents import Contents
    from .variables import Node

# Fixed, without a time, so that equal arrays give equal bytes.
TEXT = b"MATLAB 5.0 MAT-file, written by raconvert"
# A part of the elements of a leaf: storage type and bytes.
_Part = tuple[int, int]


def write(contents: Contents, target: Target, level: int | None) -> None:
    """Write all variables; `level` is that of zlib, None for no compression."""
    file = target.open()
    write_all(file, [header_bytes(TEXT, VERSION_5)])
    for name, node in contents.variables:
        prepare(node, target, narrow=True)
        if node.nbytes > MAX_V5_BYTES or _size(node, name) >= 1 << 32:
            raise WouldLose(
                f"variable '{name}' has {node.nbytes} bytes",
                expected=f"at most {MAX_V5_BYTES} in version {contents.version}",
                remedy="write it with --out-opt version=7.3",
            )
        sink = _Uncompressed(file, target) if level is None else _Deflated(file, target, level)
        _matrix(sink, node, name)
        sink.close()


# --- where bytes go -------------------------------------------------------------------------------


class _Uncompressed:
    """Writes to the file: elements wherever they belong, all else one after the other."""

    def __init__(self, file: FileIO, target: Target) -> None:
        self._file = file
        self._target = target

    def put(self, *pieces: bytes) -> None:
        write_all(self._file, [b"".join(pieces)])

    def elements(self, leaf: Leaf, parts: list[_Part]) -> None:
        """Write all parts of a leaf, each behind its tag."""
        if _is_copied(leaf):
            self.put(tag_bytes(*parts[0]))
            copy_extent(b"", leaf.array.extent, self._file, self._target.progress)  # type: ignore[arg-type]
            self.put(bytes(-parts[0][1] % 8))
            return
        places = []
        end = self._file.tell()
        for code, nbytes in parts:
            self._file.seek(end)
            write_all(self._file, [tag_bytes(code, nbytes)])
            places.append(end + 8)
            end += 8 + nbytes + -nbytes % 8
        self._file.truncate(end)
        for piece in payload(leaf, self._target):
            self._file.seek(places[piece.part] + piece.offset)
            write_all(self._file, [piece.data])
        self._file.seek(end)

    def close(self) -> None:
        """Nothing is left to write."""


def _is_copied(leaf: Leaf) -> bool:
    """True if the elements lie in a file as they will lie in this one."""
    same = leaf.form == "numbers" and leaf.change == "same"
    return same and leaf.array.extent is not None and not (leaf.complex or leaf.logical)


class _Deflated:
    """Compresses what is put, in one element; its length is known at the end."""

    def __init__(self, file: FileIO, target: Target, level: int) -> None:
        self._file = file
        self._target = target
        self._encoder = compressobj(level)
        self._begin = file.tell()
        write_all(file, [tag_bytes(MI_COMPRESSED, 0)])

    def put(self, *pieces: bytes) -> None:
        self._put(b"".join(pieces))

    def _put(self, data: Any) -> None:
        write_all(self._file, [self._encoder.compress(data)])

    def elements(self, leaf: Leaf, parts: list[_Part]) -> None:
        """Write all parts of a leaf, each behind its tag; each is a pass over the array."""
        for index, (code, nbytes) in enumerate(parts):
            self.put(tag_bytes(code, nbytes))
            for piece in payload(leaf, self._target, index):
                self._put(piece.data)
            self.put(bytes(-nbytes % 8))

    def close(self) -> None:
        """End the element and fill in its length."""
        write_all(self._file, [self._encoder.flush()])
        end = self._file.tell()
        self._file.seek(self._begin)
        write_all(self._file, [tag_bytes(MI_COMPRESSED, end - self._begin - 8)])
        self._file.seek(end)


# --- matrices -------------------------------------------------------------------------------------


def _lead(node: Node, name: str) -> bytes:
    """What comes before the contents of a matrix: flags, dims, name; fields of a struct."""
    number, nzmax = class_number(node.cls), 0
    is_complex = is_logical = False
    if isinstance(node, Leaf):
        is_complex, is_logical = node.complex, node.logical
        if node.form == "sparse":
            number, nzmax = NUMBERS["sparse"], max(1, int(node.jc[-1]))
    flags = Flags(number, node.cls, is_complex, node.is_global, is_logical, nzmax)
    found = flags_bytes(flags) + dims_bytes(node.dims)
    found += element_bytes(MI_INT8, name.encode("ascii"))
    if node.cls == "struct":
        found += _fields(node.fields)  # type: ignore[union-attr]
    return found


def _fields(names: list[str]) -> bytes:
    """The names of fields, each of 32 or 64 bytes, as MATLAB writes them."""
    width = 32 if all(len(name) < 32 for name in names) else 64
    text = b"".join(name.encode("ascii").ljust(width, b"\0") for name in names)
    return element_bytes(MI_INT32, struct.pack("<i", width)) + element_bytes(MI_INT8, text)


def _parts(leaf: Leaf) -> list[_Part]:
    """The storage type and length of every part of the elements."""
    if leaf.form == "char":
        # MATLAB writes ASCII so, too. Octave 7 reads a column of UTF-16 units as a row.
        return [(MI_UTF8 if leaf.unit == 1 else MI_UTF16, leaf.unit * prod(leaf.dims))]
    if leaf.form == "sparse":
        count = int(leaf.jc[-1])
        # MATLAB itself stores logical values as bytes under the type double, which only some
        # readers understand; all that were tried take bytes for bytes.
        kind = "u1" if leaf.logical else "f8"
        values = [(CODES[kind], count * int(kind[1:]))] * (1 + leaf.complex)
        return [(MI_INT32, 4 * count), (MI_INT32, 4 * leaf.jc.size), *values]
    code = TYPE_CODES[leaf.cls]
    return [(CODES[code], prod(leaf.dims) * int(code[1:]))] * (1 + leaf.complex)


def _size(node: Node, name: str) -> int:
    """The bytes of a matrix behind its tag."""
    total = len(_lead(node, name))
    if isinstance(node, Leaf):
        return total + sum(8 + nbytes + -nbytes % 8 for _, nbytes in _parts(node))
    return total + sum(8 + _size(member, "") for member in node.members)


def _matrix(sink: _Uncompressed | _Deflated, node: Node, name: str) -> None:
    sink.put(tag_bytes(MI_MATRIX, _size(node, name)), _lead(node, name))
    if isinstance(node, Leaf):
        sink.elements(node, _parts(node))
        return
    for member in node.members:
        _matrix(sink, member, "")
