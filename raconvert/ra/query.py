"""`query`: the YAML description of an RA file that the Julia reference tool `raquery` prints."""

from __future__ import annotations

import os

from raconvert.ra.header import BIG_ENDIAN, BITS, ENCODED
from raconvert.ra.plugin import read_header
from raconvert.source import Source

# eltype -> the reference tool's word; the width in bits is appended where it has one
_TYPES = {0: "User", 1: "Int", 2: "UInt", 3: "Float", 4: "Complex", 5: "Bool"}


def query(path: str | os.PathLike[str]) -> str:
    """Return the header of an RA file as YAML: name, endian, compressed, bits, type, size, …

    The keys are those of the reference tools (RawArray.jl, `raquery`); `shape` is the dims as
    listed in the file, fastest axis first, as Julia prints them. Only the header is read.
    """
    source = Source(os.fspath(path))
    header = read_header(source, unknown_flags=True)
    dims = header.dims
    bits = bool(header.flags & BITS)
    lines = [
        "---",
        f"name: {source.name}",
        f"endian: {'big' if header.flags & BIG_ENDIAN else 'little'}",
        f"compressed: {1 if header.flags & ENCODED else 0}",
        f"bits: {1 if bits else 0}",
        f"type: {_type_name(header.eltype, header.elbyte, bits)}",
        f"size: {header.size}",
        f"dimension: {len(dims)}",
        "shape:",
        *(f"  - {length}" for length in dims),
        "...",
    ]
    return "\n".join(lines) + "\n"


def _type_name(eltype: int, elbyte: int, bits: bool) -> str:
    if eltype == 5 and not bits and elbyte == 2:
        return "BFloat16"
    word = _TYPES[eltype]
    if eltype == 4:
        return f"ComplexF{8 * elbyte // 2}"
    return word if eltype == 5 else f"{word}{8 * elbyte}"
