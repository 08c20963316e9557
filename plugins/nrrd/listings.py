"""How an encoded NRRD file is read without raconvert: programs that are true for this very file."""

from __future__ import annotations

import re
from os.path import dirname, relpath

from raconvert.files.quoting import path, python

from .tables import BZIP2, GZIP, HEX, PROGRAMS, TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.parts import DecodedParts

# What makes bytes of a file open at its data; `{nbytes}` are those of the elements.
_BYTES = {
    GZIP: ("gzip", "gzip.open(file).read({nbytes})"),
    BZIP2: ("bz2", "bz2.open(file).read({nbytes})"),
    HEX: ("", "bytes.fromhex(file.read().decode())[:{nbytes}]"),
}
# The types that nat reads into numbers of R; of encodings, NRRD.jl and nat both know gzip.
_IN_R = {("int", 1), ("int", 2), ("int", 4), ("uint", 1), ("uint", 2), ("float", 4), ("float", 8)}


def programs_of(array: Array, data: DecodedParts) -> dict[str, str]:
    """NumPy, NRRD.jl, nat of R and Teem itself, for an array of numbers; `data` holds it.

    Python takes what it brings: pynrrd knows neither `hex`, nor commas in text, nor what is
    compressed in several pieces. Raises nothing.
    """
    encoding = data.encoding
    # Teem takes one piece of bzip2 only, and how many there are is not known without reading all.
    found = {} if encoding == BZIP2 else {"C": PROGRAMS["C"]}
    if len(data.parts) > 1:
        return found
    python = _python(array, data)
    if python:
        found["Python"] = python
    if encoding == GZIP:
        found["Julia"] = PROGRAMS["Julia"]
        if (array.element.kind, array.element.nbytes) in _IN_R:
            found["R"] = PROGRAMS["R"]
    return found


def _python(array: Array, data: DecodedParts) -> str:
    """The program for Python; an empty text where bytes are to be skipped, or by an odd name."""
    part = data.parts[0]
    place = "FILE"
    if part.source.path != data.header:
        name = relpath(part.source.path, dirname(data.header) or ".")
        place = python(path(name))
        if not name.isprintable() or re.search(r"\b(FILE|NAME|PATH)\b", name):
            return ""
    if part.skip:
        return ""
    dtype: Any = data.dtype.newbyteorder(">") if data.swap > 1 else data.dtype
    if data.encoding == TEXT:
        module = ""
        lines = [
            '    words = file.read().replace(b",", b" ").split()',
            f"x = np.array(words[:{array.count}]).astype({data.dtype.str!r})",
        ]
    else:
        module, code = _BYTES[data.encoding]
        lines = [
            f"    data = {code.format(nbytes=array.nbytes)}",
            f"x = np.frombuffer(data, {dtype.str!r})",
        ]
    lines[-1] += f".reshape({array.dims[::-1]})"
    heads = [f"import {module}"] * bool(module) + ["import numpy as np"]
    return "\n".join(
        [*heads, f'with open({place}, "rb") as file:', f"    file.seek({part.offset})", *lines]
    )
