r"""NIfTI: volumes of brain imaging, versions 1 and 2, ``.nii`` and ``.nii.gz``, read and write.

Specification: nifti1.h and nifti2.h of the NIfTI Data Format Working Group (nifti.nimh.nih.gov).
Compared with: nibabel, in both directions.

Layout::

    part        NIfTI-1                           NIfTI-2
    header      348 bytes, magic at 344: n+1\0    540 bytes, magic at 4: n+2\0 CR LF SUB LF
    extender    4 bytes, the first not 0 where extensions follow: int32 size, int32 code, data
    data        from byte vox_offset (352 and more; 544 and more), the first axis the fastest

Byte order is that of the header, little or big, as its first field (348 or 540) tells.

Mapping: column-major, as voxels are counted [i, j, k]; dims are ``dim[1..dim[0]]``. Values are as
they are stored: ``scl_slope`` and ``scl_inter`` are not applied but kept in the namespace
``nifti``, and a note says so. ``pixdim`` and ``xyzt_units`` become spacing and units of the axes (a
spacing of 1 without units says nothing), ``descrip`` the description. The namespace ``nifti`` has
``sform`` and ``qform`` (the affine: three rows of four numbers; quaternion, offset and sign), their
codes, the intent, slices, extensions, and every other field that is not 0; its ``axes`` follow the
axes, so that ``--axes`` permutes the columns of ``sform`` (``qform`` is then dropped, and named).
RGB24 and RGBA32 are structures of bytes R, G, B and A.

Writes: little-endian, NIfTI-1 where lengths are below 32768, else NIfTI-2 (also where the file came
from one); inside gzip where the name ends with ``.gz``.

Refused: pairs ``.hdr`` and ``.img``, long doubles (1536, 2048) and bits (1), lengths below 1, data
that is cut off. Writing: no more than 7 axes, none of length 0; bool becomes uint8; float16,
bfloat16, texts, dates and structures are refused; names, labels and origins of axes and attributes
have no place (named as equivalent).
"""

from __future__ import annotations

from raconvert.arrays.dtypes import needs_swap
from raconvert.files.compressed import GZIP, Part
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

from .header import Start, read_header
from .metadata import metadata_of
from .plan import plan
from .tables import GZIP_MAGIC, MAGIC_1, MAGIC_2, SAMPLES

__all__ = ["FORMAT", "plan", "read", "sniff"]

FORMAT = Format(
    name="nifti",
    title="NIfTI",
    suffixes=(".nii", ".nii.gz"),
    magic=((344, MAGIC_1), (4, MAGIC_2), (0, GZIP_MAGIC)),
    meta="some",
    index_orders="F",
    write_options=(Option("version", "auto", ("auto", "1", "2"), "of the format"),),
    samples=SAMPLES,
    spec="https://nifti.nimh.nih.gov",
    losses="1 to 7 axes; no float16, text or structures; no names, labels or attributes",
)


def sniff(source: Source) -> int:
    """Sure by the magic and the length of the header, decompressed where it is gzip."""
    return SURE if Start(source).version else NO


def read(source: Source) -> Bundle:
    """The one array of a NIfTI file, named after the file's stem, its values as they are stored.

    Shape in F order. Raises `Corrupt` and `Unsupported` before any data is read.
    """
    start = Start(source)
    header = read_header(start)
    notes: list[str] = []
    kind: Element = header.element
    array = Array(
        little(kind) if start.gzip else kind,
        header.dims,
        name=source.stem.removesuffix(".nii"),
        index_order="F",
        meta=metadata_of(header, start, notes),
        storage={"version": f"NIfTI-{header.version}", "byte_order": header.order},
    )
    if start.gzip:
        part = Part(source, 0, header.nbytes, header.offset)
        array.storage["encoding"] = GZIP
        array.data = lambda: _inflated(array, part, needs_swap(kind), notes)
    else:
        array.extent = source.extent(header.offset, header.nbytes, needs_swap(kind))
        behind = source.size - header.offset - header.nbytes
        notes += [trailing_note(behind)] * bool(behind)
    return Bundle([array], notes=notes)


def _inflated(array: Array, part: Part, swap: int, notes: list[str]) -> object:
    from raconvert.arrays.inflated import Inflated  # with numpy

    return Inflated(array, part, swap, encoding=GZIP, notes=notes)
