"""Reading a NRRD file: its header, where its data is, and the array as it was before."""

from __future__ import annotations

from raconvert.arrays.dtypes import needs_swap
from raconvert.files.seal import check_seal
from raconvert.plugin import Array, Bundle, Element, Source, dtype_of, element, little

from .tables import BLOCK, ELEMENTS, RAW, TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .header import Header


def read(source: Source, *, complex: str = "auto", restore: bool = True) -> Bundle:
    """The one array of a NRRD file, named after the file's stem.

    `dims` are the `sizes` of the header, index order None; elements of one raw piece keep their
    byte order, others are little-endian. Nothing of the data is decoded here, but files, places and
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
        """The array source: opened late, as it takes NumPy."""
        from raconvert.arrays.parts import DecodedParts, RawParts

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
    bundle.arrays.append(pair.restore(numbers, record, bundle, complex, source.path))
    # Of an empty line that ends with CR only the data tells that it does.
    attached = is_extent and header.files is None
    bundle.header_tells = attached and source.read_at(header.offset - 1, 1) == b"\n"
    return bundle


def _check_seal(header: Header, source: Source, data: Source) -> None:
    """Refuse (`Corrupt`) a data file that is not the one that the header was written with."""
    text = source.read_at(0, min(source.size, source.limits.document))
    line = f"#{header.seal}\n".encode()
    check_seal(header.seal, text.replace(line, b"", 1), data, source.path)


def _stored_element(fields: dict[str, Any]) -> Element:
    """The elements as they lie in the file."""
    if fields["type"] == BLOCK:
        return Element("user", fields["block size"], "|")
    known = ELEMENTS[fields["type"]]
    big = fields.get("endian") == "big" and fields["encoding"] != TEXT
    return element(known.kind, known.nbytes, ">" if big else "<")


def _storage(header: Header, files: int) -> dict[str, Any]:
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
