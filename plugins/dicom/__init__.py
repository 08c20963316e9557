"""DICOM: the images of a file, or of a folder of files, as one array for each series; read only.

Specification: DICOM PS3.3, PS3.5 and PS3.10 (dicom.nema.org). Compared with: pydicom, SimpleITK
(GDCM) and dcm2niix.

Layout::

    0    preamble   128 bytes of anything, then ``DICM``; or nothing of both
         group 0002 elements about the file: (0002,0010) is the transfer syntax
         elements   tag, value representation unless implicit, length, value
         (7FE0,0010) the pixels: of all frames one after the other, or in fragments

A folder, or several files, are one source: an array for each series. Its frames are sorted by their
positions along the normal of their planes, never by name or number; frames at one position become
an axis of time, echoes, b-values or segments, if one element tells them apart in one way, or two
do, as b-value and gradient. Multi-frame objects are read frame by frame, by their functional
groups; mosaics of Siemens tile by tile, by the CSA header, else as images without a position.
A folder with a DICOMDIR is read with all below it; files that are not DICOM, or hold no image, are
left out and named.

Names are modality and number of the series: ``MR_3``. Axes are (time, slice, row, column, sample),
those of length 1 before the rows left out. Directions, spacings and origin are those of the frame
LPS, in millimetres, skewed if the gantry was tilted.

Elements are as stored, without the bits that are not part of a value (Bits Stored), signs extended.
Rescale slope and intercept are the attributes scale_factor and add_offset if all frames have the
same; else the array is only read with ``--unscale``, which applies each. A table of the modality
(Modality LUT) is applied by ``--unscale``, else a note names it. MONOCHROME1 and indices of
palettes stay as they are, with a note; overlays and curves are left out and named. The colours of
JPEG and JPEG 2000 are RGB; others in YBR are refused unless ``colours`` says what to do.

Nothing of a header leaves the file that may say who a patient is; a note says which kinds were left
out. ``keep-tags`` names elements that become attributes: ``SeriesDescription,0018,0081``.

Reads: implicit and explicit, little- and big-endian, deflated; 1, 8, 16, 32 and 64 bits, floats;
what pydicom decodes: RLE, JPEG, JPEG-LS, JPEG 2000 (the extra ``dicom``).

Refused: slices with gaps, several at a position that nothing tells apart (``grid=volumes`` lets
their InstanceNumber do so), slices side by side (``grid=any`` stacks them, without positions). A
series with several sizes, types or orientations becomes an array of each. Video, JPIP, JPEG XL,
pixels that are packed without regard to bytes; elements that end behind the file, contradict each
other, or are missing.
"""

from __future__ import annotations

import struct

from raconvert.plugin import NO, SURE, Bundle, Format, Option, Source

from .reader import is_dicom, read_files
from .tables import EXPLICIT, MAGIC, PREAMBLE

__all__ = ["FORMAT", "read", "read_together", "sniff"]


def _element(tag: int, vr: bytes, value: bytes) -> bytes:
    nbytes = struct.pack("<2xI" if vr in (b"OB", b"OW") else "<H", len(value))
    return struct.pack("<HH", tag >> 16, tag & 0xFFFF) + vr + nbytes + value


def _sample(*more: tuple[int, bytes, bytes], pixels: bytes) -> bytes:
    """A file of two rows and three columns."""
    syntax = _element(0x00020010, b"UI", EXPLICIT.encode() + b"\0")
    elements = {0x00080060: (b"CS", b"MR"), 0x00280002: (b"US", b"\x01\0"),
                0x00280004: (b"CS", b"MONOCHROME2 "), 0x00280010: (b"US", b"\x02\0"),
                0x00280011: (b"US", b"\x03\0"), 0x00280100: (b"US", b"\x10\0"),
                0x00280101: (b"US", b"\x10\0"), 0x00280102: (b"US", b"\x0f\0"),
                0x00280103: (b"US", b"\0\0")}  # fmt: skip
    elements |= {tag: (vr, value) for tag, vr, value in more}
    data = b"".join(_element(tag, *elements[tag]) for tag in sorted(elements))
    return bytes(PREAMBLE) + MAGIC + syntax + data + _element(0x7FE00010, b"OW", pixels)


FORMAT = Format(
    name="dicom",
    title="DICOM series",
    suffixes=(".dcm", ".dicom", ".ima"),
    magic=((PREAMBLE, MAGIC),),
    proof=True,
    bare=True,
    holds=("spacing", "space", "scale", "units", "attributes"),
    index_orders="",
    writes=False,
    many=True,
    marks=("DICOMDIR",),
    together=True,
    read_options=(
        Option("keep_tags", "", str, "elements to keep: SeriesDescription,0018,0081"),
        Option("grid", "even", ("even", "volumes", "any"),
               "volumes: numbers tell times apart; any: slices on no even grid, too"),
        Option("colours", "auto", ("auto", "rgb", "stored"), "of YBR: RGB, rounded, or as stored"),
    ),
    samples={
        "two_by_three.dcm": _sample(pixels=struct.pack("<6H", *range(6))),
        "placed.dcm": _sample(
            (0x00200032, b"DS", b"1\\2\\3 "), (0x00200037, b"DS", b"1\\0\\0\\0\\1\\0 "),
            (0x00280030, b"DS", b"2\\3 "), (0x00281053, b"DS", b"2 "),
            (0x00280101, b"US", b"\x0c\0"), (0x00280102, b"US", b"\x0b\0"),
            (0x00280103, b"US", b"\x01\0"), pixels=struct.pack("<6H", *range(4093, 4099)),
        ),
    },
    spec="https://dicom.nema.org/medical/dicom/current/output/html/part05.html",
    losses="it is read only",
)  # fmt: skip


def sniff(source: Source) -> int:
    """SURE by the word behind the preamble, or by three elements in order without one."""
    return SURE if is_dicom(source) else NO


def read(
    source: Source, *, keep_tags: str = "", grid: str = "even", colours: str = "auto"
) -> Bundle:
    """The image or the frames of one file, named by modality and number of the series.

    Raises `Corrupt`, `Unsupported`, `TooLarge`, and `MissingDependency` if pydicom has to decode.
    """
    return read_files([source], None, keep_tags=keep_tags, grid=grid, colours=colours)


def read_together(
    sources: list[Source],
    *,
    folder: str | None,
    keep_tags: str = "",
    grid: str = "even",
    colours: str = "auto",
) -> Bundle:
    """The images of several files: an array for each series. Raises what `read` raises."""
    return read_files(sources, folder, keep_tags=keep_tags, grid=grid, colours=colours)
