r"""NIfTI: volumes of brain imaging, ``.nii`` or a pair ``.hdr`` and ``.img``, read and write.

Specification: nifti1.h and nifti2.h of the NIfTI Data Format Working Group (nifti.nimh.nih.gov).
Compared with: nibabel, in both directions.

Layout::

    part        NIfTI-1                           NIfTI-2
    header      348 bytes, magic at 344: n+1\0    540 bytes, magic at 4: n+2\0 CR LF SUB LF
    extender    4 bytes, the first not 0 where extensions follow: int32 size, int32 code, data
    data        from byte vox_offset (352 and more; 544 and more), the first axis the fastest

In a pair the magic is ``ni1`` or ``ni2``, and the data is in ``x.img`` beside ``x.hdr``, mostly
from byte 0. Either file may be named, either may be compressed (``.hdr.gz``, ``.img.gz``).

Byte order is that of the header, little or big, as its first field (348 or 540) tells.

Mapping: column-major, as voxels are counted [i, j, k]; dims are ``dim[1..dim[0]]``. Values are as
they are stored: ``scl_slope`` and ``scl_inter`` are not applied, unless ``--unscale`` asks for it;
they become the attributes ``scale_factor`` and ``add_offset``, and a note says so.
``pixdim`` and ``xyzt_units`` become spacing and units of the axes (a
spacing of 1 without units says nothing), ``toffset`` the origin of the fourth axis, ``descrip`` the
description. The place of the image becomes directions of the first three axes and the space: sform
if its code is above 0, else qform if its code is, else spacings only. The code names the frame:
scanner-RAS, aligned-RAS, talairach-RAS, MNI-RAS, template-RAS (1 to 5). The namespace ``nifti`` has
the intent, slices, extensions, and every other field that is not 0. Its ``form`` keeps the fields
whose bytes differ from those we write for the same meaning: a qform beside a sform, text behind
a NUL, trailing blanks, spacings of 0, a slope of 0, NaN. So each field of a header comes back with
the bytes it had, as long as the array lies where it lay, but for those that say how the file lies
(``vox_offset``, ``bitpix``).
RGB24 and RGBA32 are structures of bytes R, G, B and A.

Writes: little-endian, NIfTI-1 where lengths are below 32768, else NIfTI-2 (also where the file came
from one); inside gzip where the name ends with ``.gz``; a pair where the name is that of one
(``x.img``, or ``x.hdr`` with ``--to nifti``), with a comment ``raconvert seal: …`` as the last
extension, which ties the two together. LPS and LAS are turned into RAS; the frames of the codes
keep theirs, others get code 2. sform is written, and an equal qform unless the axes are skewed.
A frame that is not anatomical is taken for LPS, as ITK does, and named. One or two axes of space
before others, as a slice over time has them, get axes of length 1 behind them, which is named; if
another axis comes before those of space, the space is named as lost.

Refused: ANALYZE 7.5, which has no magic and no sure axes, long doubles (1536, 2048) and bits (1),
lengths below 1, data that is cut off. Writing: no more than 7 axes, none of length 0; bool becomes
uint8; float16, bfloat16, texts, dates and structures are refused; names, labels and origins of axes
and attributes have no place (named as equivalent). The attributes ``scale_factor`` and
``add_offset`` become ``scl_slope`` and ``scl_inter``, but for elements of the other signedness
(``_Unsigned``) and a slope of 0; NIfTI-1 rounds them to float32, which is named.
"""

from __future__ import annotations

import os

from raconvert.arrays.dtypes import needs_swap
from raconvert.errors import Corrupt, RaconvertError
from raconvert.files.inflate import GZIP, Part
from raconvert.plugin import (
    NO,
    SURE,
    Array,
    Bundle,
    Element,
    Format,
    Option,
    Source,
    little,
    trailing_note,
)

from .header import Start, check_sealed, read_header
from .metadata import metadata_of
from .plan import plan
from .tables import (
    DATA,
    GZ,
    GZIP_MAGIC,
    HEADER,
    MAGIC_1,
    MAGIC_2,
    OLD_BIG,
    OLD_LITTLE,
    PAIR_1,
    PAIR_2,
    PROGRAMS,
    SAMPLES,
)  # fmt: skip

__all__ = ["FORMAT", "plan", "programs", "read", "sniff"]

HEADERS = (HEADER, HEADER + GZ)

FORMAT = Format(
    name="nifti",
    title="NIfTI",
    suffixes=(".nii", ".nii.gz", ".img", ".img.gz", ".hdr", ".hdr.gz"),
    magic=(
        (344, MAGIC_1),
        (4, MAGIC_2),
        (344, PAIR_1),
        (4, PAIR_2),
        (0, GZIP_MAGIC),
        (0, OLD_LITTLE),
        (0, OLD_BIG),
    ),
    meta="some",
    holds=("spacing", "space", "scale", "units", "description"),
    index_orders="F",
    names_files=True,
    write_options=(Option("version", "auto", ("auto", "1", "2"), "of the format"),),
    samples=SAMPLES,
    spec="https://nifti.nimh.nih.gov",
    losses="1 to 7 axes; no float16, text or structures; no names, labels or attributes",
)


def sniff(source: Source) -> int:
    """Return SURE for the magic and the length of the header, decompressed if it is gzip.

    Compressed data of a pair is recognised by the header beside it. SURE also for a header of
    ANALYZE, which `read` refuses by name.
    """
    start = Start(source)
    if start.version:
        return SURE
    name = os.path.basename(source.place).lower()
    if name.endswith(DATA + GZ):
        try:
            start = Start(source.beside(HEADERS, "the header", ending=DATA + GZ))
        except RaconvertError:
            return NO
        return SURE if start.pair or start.analyze else NO
    return SURE if start.analyze and name.removesuffix(GZ).endswith(HEADER) else NO


def read(source: Source) -> Bundle:
    """Read the one array of a NIfTI file, or pair, named after the file's stem, as it is stored.

    Its shape is in F order. Raises `Corrupt` and `Unsupported` before any data is read,
    `ReadFailed` and `Unsafe` for the other file of a pair.
    """
    start, data, gzip = _files(source)
    header = read_header(start, data, gzip=gzip)
    if start.pair:
        check_sealed(start, data)
    notes: list[str] = []
    kind: Element = header.element
    array = Array(
        little(kind) if gzip else kind,
        header.dims,
        name=source.stem.removesuffix(".nii").removesuffix(HEADER).removesuffix(DATA),
        index_order="F",
        meta=metadata_of(header, start, notes),
        storage={"version": f"NIfTI-{header.version}", "byte_order": header.order},
    )
    if gzip:
        part = Part(data, 0, header.nbytes, header.offset)
        array.storage["encoding"] = GZIP
        array.data = lambda: _inflated(array, part, needs_swap(kind), notes)
    else:
        array.extent = data.extent(header.offset, header.nbytes, needs_swap(kind))
        behind = data.size - header.offset - header.nbytes
        notes += [trailing_note(behind)] * bool(behind)
    return Bundle([array], notes=notes)


def _files(source: Source) -> tuple[Start, Source, bool]:
    """Return the header, the file of the data (it may be the same), and True if that is gzip."""
    start, data = Start(source), source
    name = os.path.basename(source.place).lower()
    if start.pair or start.analyze:
        if start.pair:
            names = (DATA, DATA + GZ)
            data = source.beside(names, "the data of the header", ending=HEADER + GZ)
    elif not start.version and name.removesuffix(GZ).endswith(DATA):
        start = Start(source.beside(HEADERS, "the header of the data", ending=DATA + GZ))
        if start.version and not start.pair:
            raise Corrupt("is beside a header that has its own data", path=source.path,
                          expected="a header of a pair", got=start.path)  # fmt: skip
    else:
        return start, source, start.gzip
    if start.source.identity[:2] == data.identity[:2] and start.pair:
        raise Corrupt("header and data of a pair are the same file", path=source.path)
    # Numbers may begin as gzip does. A temporary file has no suffix, but its header has one.
    path = data.path.lower()
    named = path.endswith(GZ) or (start.gzip and not path.endswith(DATA))
    return start, data, named and data.head.startswith(GZIP_MAGIC)


def _inflated(array: Array, part: Part, swap: int, notes: list[str]) -> object:
    from raconvert.arrays.sources import Inflated  # which imports numpy

    return Inflated(array, part, swap, encoding=GZIP, notes=notes)


def programs(array: Array) -> dict[str, str]:
    """Return programs for NiBabel, NIfTI.jl and MATLAB: numbers as stored. Raises nothing."""
    from raconvert.arrays.sources import Inflated  # which imports numpy

    is_number = array.element.kind in ("int", "uint", "float", "complex")
    whole = isinstance(array.data, Inflated) and array.index_order == "F"
    return dict(PROGRAMS) if is_number and whole else {}
