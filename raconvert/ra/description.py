"""`query`: the YAML description of an RA file that the Julia reference tool `raquery` prints."""

from __future__ import annotations

import os

from raconvert.declared import checked
from raconvert.files.source import Source
from raconvert.ra.header import BIG_ENDIAN, BITS, ENCODED
from raconvert.ra.plugin import read_header

# eltype -> the reference tool's word, to which it appends the width in bits
_TYPES = {0: "user", 1: "Int", 2: "UInt", 3: "Float"}


@checked
def query(path: str | os.PathLike[str]) -> str:
    """Return the header of an RA file as YAML: name, endian, compressed, bits, type, size, shape.

    Keys and values are those of `raquery` in RawArray.jl: `compressed` and `bits` show the flag
    bits as numbers (0, 2 and 0, 4), `type` is a Julia type, `shape` lists the dims as the file
    does, fastest axis first. Only the header is read.

    >>> print(raconvert.query("grid.ra"))
    ---
    name: grid.ra
    endian: little
    compressed: 0
    bits: 0
    type: Int32
    size: 48
    dimension: 2
    shape:
      - 4
      - 3
    ...

    Raises `Corrupt` for a file without an RA header, `ReadFailed` if it cannot be read.
    """
    source = Source(os.fspath(path))
    header = read_header(source, unknown_flags=True)
    lines = [
        "---",
        f"name: {source.path}",
        f"endian: {'big' if header.flags & BIG_ENDIAN else 'little'}",
        f"compressed: {header.flags & ENCODED}",
        f"bits: {header.flags & BITS}",
        f"type: {_type_name(header.eltype, header.elbyte)}",
        f"size: {header.size}",
        f"dimension: {len(header.dims)}",
        "shape:",
        *(f"  - {length}" for length in header.dims),
        "...",
    ]
    return "\n".join(lines)


def _type_name(eltype: int, elbyte: int) -> str:
    """Return the Julia type; code 5 of width 2 is bfloat16 (the Rust crate), else Bool."""
    if eltype == 5:
        return "BFloat16" if elbyte == 2 else "Bool"
    if eltype == 4:
        return f"Complex{{Float{4 * elbyte}}}"
    return f"{_TYPES[eltype]}{8 * elbyte}"
