"""MetaImage: images of ITK, ``.mha`` with the data inside and ``.mhd`` beside it, read and write.

Specification: "MetaIO" in the documentation of ITK, and ``metaImage.cxx`` (2024). Compared with:
SimpleITK, in both directions.

Layout: lines ``KEY = VALUE``, the last of them ``ElementDataFile``; then the data (``LOCAL``), or
the name of the file that has it.

Reads: ElementType of 1 to 8 bytes, either byte order, ``ElementNumberOfChannels`` (a new fastest
axis), ``HeaderSize`` (-1: the data is the end of the file), data compressed by zlib or gzip.

Mapping: ``DimSize`` lists the fastest axis first, as RA does, and defines no index order; a field
of our own, ``RaconvertIndexOrder = F``, keeps that an array was column-major (others ignore it).
``ElementSpacing`` and ``DistanceUnits`` become spacing and units of the axes, ``Comment`` the
description. The namespace ``metaimage`` keeps ``Offset``, ``CenterOfRotation``, the rows of
``TransformMatrix`` (in ``axes``, which follow the axes), and all other fields as text. Spacings of
1, offsets of 0 and the identity say nothing.

Writes: little-endian, as it is or with ``compress=zlib``; ``.mhd`` gets its data in ``.raw`` or
``.zraw`` beside it. The fastest axis becomes channels where it was such in the source.

Refused: text (``BinaryData = False``), lists and patterns of data files, data that is cut off,
files outside the folder of the header (``--trust external``). Writing: 1 to 10 axes, none of length
0; bool becomes uint8; float16, bfloat16, complex numbers, texts, dates and structures are refused;
names, labels and origins of axes and attributes have no place (named as equivalent).
"""

from __future__ import annotations

from raconvert.arrays.dtypes import needs_swap
from raconvert.files.compressed import GZIP, ZLIB, Part
from raconvert.plugin import NO, SURE, Array, Bundle, Format, Option, Source, little, trailing_note

from .header import read_header
from .metadata import metadata_of
from .plan import plan
from .tables import GZIP_MAGIC, MAGICS, ORDER, SAMPLE

__all__ = ["FORMAT", "plan", "read", "sniff"]

FORMAT = Format(
    name="metaimage",
    title="MetaImage (ITK)",
    suffixes=(".mha", ".mhd"),
    magic=MAGICS,
    meta="some",
    index_orders="",
    names_files=True,
    write_options=(Option("compress", "no", ("no", "zlib"), "how the data is stored"),),
    samples={"small.mha": SAMPLE},
    spec="https://docs.itk.org/en/latest/learn/metaio.html",
    losses="1 to 10 axes; no float16, complex, text or structures; no names, labels, attributes",
)


def sniff(source: Source) -> int:
    """Sure by the first field, and by one that only images have."""
    head = source.head
    known = any(head.startswith(text) for _, text in MAGICS)
    return SURE if known and (b"\nDimSize" in head or b"\nElementType" in head) else NO


def read(source: Source) -> Bundle:
    """The one array of a MetaImage, named after the file's stem.

    `dims` are the `DimSize` of the header, channels before them; index order None. Raises
    `Corrupt`, `Unsupported`, and `Unsafe` or `ReadFailed` for a data file.
    """
    header = read_header(source)
    notes: list[str] = []
    data = source.named(header.data_file, "the data file") if header.data_file else source
    packed = header.compressed
    swap = needs_swap(header.element)
    array = Array(
        little(header.element) if packed else header.element,
        header.dims,
        name=source.stem,
        index_order="F" if header.fields.get(ORDER) == "F" else None,
        meta=metadata_of(header),
        storage={"type": header.type} | ({"encoding": ZLIB} if packed else {}),
    )
    offset = header.place_in(data)
    if packed:
        encoding = GZIP if data.read_at(offset, 2) == GZIP_MAGIC else ZLIB
        part = Part(data, offset, array.nbytes, 0)
        array.data = lambda: _inflated(array, part, swap, encoding, notes)
    else:
        array.extent = data.extent(offset, array.nbytes, swap)
        behind = data.size - offset - array.nbytes
        notes += [trailing_note(behind)] * bool(behind)
    return Bundle([array], notes=notes)


def _inflated(array: Array, part: Part, swap: int, encoding: str, notes: list[str]) -> object:
    from raconvert.arrays.inflated import Inflated  # with numpy

    return Inflated(array, part, swap, encoding=encoding, notes=notes)
