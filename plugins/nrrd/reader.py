"""Reading a NRRD file: its header, the location of its data, and the array as it was before."""

from __future__ import annotations

import os
import re

from raconvert.arrays.dtypes import needs_swap
from raconvert.files.pairing import check_seal
from raconvert.files.quoting import path, python
from raconvert.plugin import (
    Array,
    Bundle,
    Element,
    Source,
    dtype_of,
    element,
    little,
    raw_alike,
)

from .tables import BLOCK, BZIP2, ELEMENTS, GZIP, HEX, PROGRAMS, RAW, TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.sources import DecodedParts

    from .header import Header


def read(source: Source, *, complex: str = "auto", restore: bool = True) -> Bundle:
    """Read the one array of a NRRD file, named after the file's stem.

    `dims` are the `sizes` of the header, index order None; elements of one raw piece keep their
    byte order, others are little-endian. The data is not decoded here, but files, offsets and
    lengths are checked. Raises `Corrupt`, `Unsupported` and `Unsafe`.
    """
    from . import pair
    from .datafiles import extent_of, parts_of
    from .header import read_header
    from .metadata import metadata_of

    header = read_header(source)
    fields, notes = header.fields, header.notes
    stored = _stored_element(fields)
    swap = needs_swap(stored)
    parts = parts_of(source, header, stored, notes)
    if header.seal and header.files and len(parts) == 1:
        _check_seal(header, source, parts[0].source)

    def open_data() -> Any:
        """Return the array source; called late, since it imports NumPy."""
        from raconvert.arrays.sources import DecodedParts, RawParts

        from .sources import decoder

        encoding = fields["encoding"]
        if encoding == RAW:
            return RawParts(numbers, parts, source.path, swap)
        decode = decoder(encoding, dtype_of(little(stored)), notes)
        return DecodedParts(numbers, parts, source.path, swap, encoding=encoding, decode=decode)

    bundle = Bundle([], notes=notes)
    meta = metadata_of(header)
    meta, record = pair.taken(header, meta, notes, source.limits, restore=restore)
    is_extent = len(parts) == 1 and fields["encoding"] == RAW
    numbers = Array(
        stored if is_extent else little(stored),
        fields["sizes"],
        name=source.stem,
        meta=meta,
        data=None if is_extent else open_data,
        extent=extent_of(parts[0], swap) if is_extent else None,
        storage=_storage(header, len(parts)),
    )
    bundle.arrays.append(pair.restore(numbers, record, bundle, complex, source.path, source.limits))
    # If the empty line ends with CR, the first byte of the data decides whether it is CRLF.
    attached = is_extent and header.files is None
    if attached and source.read_at(header.offset - 1, 1) == b"\n":
        bundle.alike = raw_alike(source, bundle.arrays[0])
    return bundle


def _check_seal(header: Header, source: Source, data: Source) -> None:
    """Refuse (`Corrupt`) a data file that is not that which the header was written with."""
    text = source.read_at(0, min(source.size, source.limits.document_bytes))
    line = f"#{header.seal}\n".encode()
    check_seal(header.seal, text.replace(line, b"", 1), data, source.path)


def _stored_element(fields: dict[str, Any]) -> Element:
    """Return the element type as it lies in the file."""
    if fields["type"] == BLOCK:
        return Element("user", fields["block size"], "|")
    kind, nbytes, *_ = ELEMENTS[fields["type"]]
    is_big = fields.get("endian") == "big" and fields["encoding"] != TEXT
    return element(kind, nbytes, ">" if is_big else "<")


def _storage(header: Header, files: int) -> dict[str, Any]:
    """Return the facts of storage that `info` shows; `files` is the number of data files."""
    storage = {
        "version": f"NRRD{header.version}",
        "type": header.fields["type"],
        "encoding": header.fields["encoding"],
    }
    if "endian" in header.fields:
        storage["endian"] = header.fields["endian"]
    if header.files is not None:
        storage["data_files"] = files
    return storage


# How an encoded NRRD file is read without raconvert: programs that are true for this very file ---


# Module and expression that read the bytes of an open file at its data; `{nbytes}` is their number.
_BYTES = {
    GZIP: ("gzip", "gzip.open(file).read({nbytes})"),
    BZIP2: ("bz2", "bz2.open(file).read({nbytes})"),
    HEX: ("", "bytes.fromhex(file.read().decode())[:{nbytes}]"),
}
# The types that nat reads into numbers of R. NRRD.jl and nat both read gzip.
_IN_R = {("int", 1), ("int", 2), ("int", 4), ("uint", 1), ("uint", 2), ("float", 4), ("float", 8)}


def programs_of(array: Array, data: DecodedParts) -> dict[str, str]:
    """Return programs for NumPy, NRRD.jl, nat of R and Teem, for an array of numbers in `data`.

    Python uses its own modules: pynrrd reads neither `hex`, nor commas in text, nor data that is
    compressed in several pieces. Raises nothing.
    """
    encoding = data.encoding
    # Teem reads one piece of bzip2 only, and counting the pieces would mean to read all.
    lines = {} if encoding == BZIP2 else {"C": PROGRAMS["C"]}
    if len(data.parts) > 1:
        return lines
    python = _python(array, data)
    if python:
        lines["Python"] = python
    if encoding == GZIP:
        lines["Julia"] = PROGRAMS["Julia"]
        if (array.element.kind, array.element.nbytes) in _IN_R:
            lines["R"] = PROGRAMS["R"]
    return lines


def _python(array: Array, data: DecodedParts) -> str:
    """Return the program for Python; empty if bytes have to be skipped, or for an odd file name."""
    part = data.parts[0]
    file = "FILE"
    if part.source.path != data.header:
        name = os.path.relpath(part.source.path, os.path.dirname(data.header) or ".")
        file = python(path(name))
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
        [*heads, f'with open({file}, "rb") as file:', f"    file.seek({part.offset})", *lines]
    )
