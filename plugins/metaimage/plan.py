"""Plan of a MetaImage: whether the arrays fit, and the file itself."""

from __future__ import annotations

import os
import zlib

from raconvert.arrays.dtypes import MAX_SPAN, spanned
from raconvert.errors import Unsupported
from raconvert.files.copy import write_all
from raconvert.files.limits import DEFAULT
from raconvert.files.pairing import seal_of
from raconvert.files.paths import write_failed
from raconvert.plugin import (
    Array,
    Bundle,
    Fit,
    Plan,
    Source,
    equivalent,
    file_fits,
    refused,
    refused_type,
)

from .header import BLANKS, MAX_RANK, NAMES, ORDER, header_bytes, sealed
from .metadata import fields_of, has_channels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO

    from raconvert.plugin import Target

__all__ = ["plan"]

SIZE_DIGITS = 20  # room for the size of compressed data, known when it is written


def plan(bundle: Bundle, *, compress: str = "no") -> Plan:
    """Plan a header with what it can hold of the metadata, and the elements, little-endian."""
    fits = [fit for array in bundle.arrays for fit in _fits(array)]
    return Plan(
        [*fits, *file_fits(bundle, "MetaImage")],
        lambda target: _write(bundle.arrays[0], target, compress == "zlib"),
        names=bundle.names,
    )


def _type_of(array: Array) -> str | None:
    """Return the ElementType of an array, or None. Bools are numbers of a byte."""
    kind = "uint" if array.element.kind == "bool" else array.element.kind
    return NAMES.get((kind, array.element.nbytes))


def _fits(array: Array) -> list[Fit]:
    """List what of an array MetaImage changes, loses or refuses."""
    name, fits = array.name, []
    if _type_of(array) is None:
        fits.append(refused_type(array, "MetaImage", "float32"))
    elif array.element.kind == "bool":
        fits.append(equivalent(name, "type", "bool becomes uint8"))
    rank = array.ndim - (array.described and has_channels(array))
    if 0 in array.dims or rank > MAX_RANK:
        reason = f"MetaImage has 1 to {MAX_RANK} axes, none of length 0"
        fits.append(refused(name, "shape", reason))
    elif spanned(array.dims, array.element.nbytes) > MAX_SPAN:
        fits.append(refused(name, "shape", "2**63 bytes or more"))
    elif not array.dims:
        fits.append(equivalent(name, "shape", "no axes become one of length 1"))
    return [*fits, *_metadata_fits(array)] if array.described else fits


def _metadata_fits(array: Array) -> Iterator[Fit]:
    """Yield what of the metadata is lost, and refuse it if the header would be too long."""
    fields, lost = fields_of(array)
    if len(header_bytes(fields)) > DEFAULT.short_header_bytes // 2:
        yield refused(array.name, "metadata", "the header would be too long")
    if lost:
        yield equivalent(array.name, "metadata", f"not kept: {', '.join(dict.fromkeys(lost))}")


def _fields(array: Array, packed: bool, data_file: str) -> dict[str, str]:
    """Return all fields of a header in order; the size of compressed data is left blank."""
    first = has_channels(array)
    dims = array.dims[first:] or (1,)
    more, _ = fields_of(array)
    fields = {
        "ObjectType": "Image",
        "NDims": str(len(dims)),
        "BinaryData": "True",
        "BinaryDataByteOrderMSB": "False",
        "CompressedData": str(packed),
    }
    fields |= {"CompressedDataSize": " " * SIZE_DIGITS} if packed else {}
    fields |= {key: value for key, value in more.items() if key != "ElementSpacing"}
    # ITK takes the spacing of a header without any for 1, and warns where it is not there.
    fields["ElementSpacing"] = more.get("ElementSpacing", " ".join(["1"] * len(dims)))
    if array.index_order == "F" and array.ndim > 1:
        fields[ORDER] = "F"
    fields["DimSize"] = " ".join(map(str, dims))
    fields |= {"ElementNumberOfChannels": str(array.dims[0])} if first else {}
    fields["ElementType"] = str(_type_of(array))
    fields["ElementDataFile"] = data_file
    return fields


def _write(array: Array, target: Target, packed: bool) -> None:
    if not target.path.lower().endswith(".mhd"):
        _write_data(target, header_bytes(_fields(array, packed, "LOCAL")), array, packed)
        return
    data = target.beside(".zraw" if packed else ".raw")
    name = os.path.basename(data.path)
    text = name.encode("utf-8", "surrogateescape").decode("latin-1")
    if {"\n", "\r", "%"} & {*text} or text.strip(BLANKS) != text or text[:4].upper() == "LIST":
        raise Unsupported(
            "a MetaImage cannot name a data file with such a name", path=data.path, got=repr(name),
            remedy="choose another name, or write a .mha",
        )  # fmt: skip
    size = _write_data(data, b"", array, packed)
    header = header_bytes(_fields(array, packed, text))
    try:
        whole = _sized(header, size) if packed else header
        write_all(target.open(), [sealed(whole, seal_of(whole, Source(data.temp)))])
    except OSError as error:
        raise write_failed(target.path, error) from error


def _sized(header: bytes, size: int) -> bytes:
    """Return a header with the size of the compressed data in the room that was left for it."""
    key = b"CompressedDataSize = "
    return header.replace(key + b" " * SIZE_DIGITS, key + b"%0*d" % (SIZE_DIGITS, size), 1)


def _write_data(target: Target, header: bytes, array: Array, packed: bool) -> int:
    """Write the data behind a header; return the number of compressed bytes, 0 if it is raw."""
    from raconvert.arrays.blocks import write_raw

    if not packed:
        write_raw(target, header, array)
        return 0
    file = target.open()
    try:
        size = _write_packed(target, file, header, array)
        if header:
            file.seek(0)
            write_all(file, [_sized(header, size)])
            file.seek(0, os.SEEK_END)
    except OSError as error:
        raise write_failed(target.path, error) from error
    return size


def _write_packed(target: Target, file: FileIO, header: bytes, array: Array) -> int:
    """Write a header and compressed data; return the number of compressed bytes."""
    from raconvert.arrays.blocks import block_bytes, blocks

    compressor, size = zlib.compressobj(), 0
    write_all(file, [header])
    for block in target.counted(blocks(array, block_bytes(target.max_memory))):
        piece = compressor.compress(block.reshape(-1).view("u1").data)
        size += len(piece)
        write_all(file, [piece])
    rest = compressor.flush()
    write_all(file, [rest])
    return size + len(rest)
