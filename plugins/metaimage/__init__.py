"""MetaImage: images of ITK, ``.mha`` with the data inside and ``.mhd`` beside it, read and write.

Specification: "MetaIO" in the documentation of ITK, and ``metaImage.cxx`` (2024). Compared with:
SimpleITK, in both directions.

Layout: lines ``KEY = VALUE``, the last of them ``ElementDataFile``; then the data (``LOCAL``), or
the name of the file that has it.

Reads: ElementType of 1 to 8 bytes, either byte order, ``ElementNumberOfChannels`` (a new fastest
axis), ``HeaderSize`` (-1: the data is the end of the file), data compressed by zlib or gzip, or
written as text (``BinaryData = False``: the numbers exactly as they stand there), in several files
(``LIST``, ``LIST 2``, ``slice%03d.raw 1 10 1``).

Mapping: ``DimSize`` lists the fastest axis first, as RA does, and defines no index order; a field
of our own, ``RaconvertIndexOrder = F``, keeps that an array was column-major (others ignore it).
``ElementSpacing`` and ``DistanceUnits`` become spacing and units of the axes, ``Comment`` the
description. ``TransformMatrix`` and ``Offset`` become directions and the space, in LPS, as ITK has
them whatever ``AnatomicalOrientation`` says; an axis behind the third that runs along an axis of
its own is not spatial and gets spacing and origin. The namespace ``metaimage`` keeps
``CenterOfRotation`` and all other fields as text, whatever their key (ITK writes ``dim[0] = 3``
from the dictionaries of NIfTI and NRRD). Spacings of 1 alone say nothing. As in MetaIO,
``ElementSize`` alone is the spacing, a negative spacing turns its direction, and there are no
comment lines. Text is UTF-8, or Latin-1 if it cannot be that; it is written as UTF-8.

Writes: little-endian, as it is or with ``compress=zlib``; ``.mhd`` gets its data in ``.raw`` or
``.zraw`` beside it, and a field ``RaconvertSeal`` that ties the two together. The fastest axis
becomes channels if it was such in the source, or has a kind of components (vector, colours). Other
frames are turned into LPS, and ``AnatomicalOrientation`` is written as ITK has it. A frame that is
not anatomical is taken for LPS, and named; so is what is unknown of spatial axes.

Refused: data that is cut off, text that is compressed, numbers that the type does not hold, files
outside the folder of the header (``--trust external``). Writing: 1 to 10 axes, none of length
0; bool becomes uint8; float16, bfloat16, complex numbers, texts, dates and structures are refused;
names, labels and origins of axes and attributes have no place (named as equivalent).
"""

from __future__ import annotations

from raconvert.arrays.dtypes import needs_swap
from raconvert.files.inflate import GZIP, ZLIB, Part
from raconvert.plugin import NO, SURE, Array, Bundle, Format, Option, Source, dtype_of, little

from .datafiles import parts_of
from .header import GZIP_MAGIC, MAGICS, ORDER, SAMPLE, TEXT, check_sealed, read_header
from .metadata import metadata_of
from .plan import plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.sources import DecodedParts, RawParts

    from .header import Header

__all__ = ["FORMAT", "plan", "read", "sniff"]

FORMAT = Format(
    name="metaimage",
    title="MetaImage (ITK)",
    suffixes=(".mha", ".mhd"),
    magic=MAGICS,
    meta="some",
    holds=("spacing", "space", "units", "description"),
    index_orders="",
    names_files=True,
    write_options=(Option("compress", "no", ("no", "zlib"), "how the data is stored"),),
    samples={"small.mha": SAMPLE},
    spec="https://docs.itk.org/en/latest/learn/metaio.html",
    losses="1 to 10 axes; no float16, complex, text or structures; no names, labels, attributes",
)


def sniff(source: Source) -> int:
    """Return SURE for a first field of MetaIO, and one that only images have."""
    head = source.head
    begins = any(head.startswith(text) for _, text in MAGICS)
    return SURE if begins and (b"\nDimSize" in head or b"\nElementType" in head) else NO


def read(source: Source) -> Bundle:
    """Read the one array of a MetaImage, named after the file's stem.

    `dims` are the `DimSize` of the header, channels before them; index order None. Raises
    `Corrupt`, `Unsupported`, and `Unsafe` or `ReadFailed` for a data file.
    """
    header = read_header(source)
    notes: list[str] = []
    parts = parts_of(source, header, notes)
    if len(parts) == 1 and parts[0].source is not source:
        check_sealed(source, header, parts[0].source)
    in_place = header.encoding is None and len(parts) == 1
    swap = needs_swap(header.element)
    array = Array(
        header.element if in_place else little(header.element),
        header.dims,
        name=source.stem,
        index_order="F" if header.fields.get(ORDER) == "F" else None,
        meta=metadata_of(header, notes),
        storage=_storage(header, parts),
    )
    if in_place:
        array.extent = parts[0].source.extent(parts[0].offset, array.nbytes, swap)
    else:
        array.data = lambda: _opened(array, parts, header, swap, notes)
    return Bundle([array], notes=notes)


def _storage(header: Header, parts: list[Part]) -> dict[str, Any]:
    """Return the facts of storage that `info` shows."""
    storage: dict[str, Any] = {"type": header.type}
    storage |= {"encoding": header.encoding} if header.encoding else {}
    return storage | ({"data_files": len(parts)} if len(parts) > 1 else {})


def _opened(
    array: Array, parts: list[Part], header: Header, swap: int, notes: list[str]
) -> RawParts | DecodedParts:
    """Return the array source; called late, since it imports NumPy."""
    from raconvert.arrays.numbers_in_text import numbers
    from raconvert.arrays.sources import DecodedParts, RawParts, inflated

    if header.encoding is None:
        return RawParts(array, parts, header.path, swap)

    def decode(file: Any, part: Part) -> Iterator[Any]:
        if header.encoding == TEXT:
            return numbers(file, part.nbytes, dtype_of(array.element), notes, part.source.limits)
        packed = part.source.read_at(part.offset, 2) == GZIP_MAGIC
        return inflated(file, part, GZIP if packed else ZLIB, notes)

    return DecodedParts(array, parts, header.path, swap, encoding=header.encoding, decode=decode)
