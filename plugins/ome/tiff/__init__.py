"""OME-TIFF: images of microscopy, their axes in OME-XML, in one file or several; read and write.

Specification: https://docs.openmicroscopy.org/ome-model/6.3.1/ome-tiff/, schema 2016-06; the pages
as in the format `tiff`. Compared with: tifffile.

Reads: every image of the document is an array with the axes T, C, Z, Y, X, also those of length 1
(``squeeze=true`` leaves these out), and samples S behind them where a pixel has several. A single
image has the name of the file; several have their own names, or in a plate their well and field:
``A/1/0`` (row, column, field). Planes are located by TiffData, in any order, and in other files of
the folder that it names. Lower levels below the pages (SubIFDs) are left out, with a note, and are
read by name: ``--array NAME.level1``. Adjacent planes are copied or mapped; others are decoded if a
region touches them. Planes that no file has are zeros, with a note. A file is detected as OME-TIFF
by its content and its name, ``.ome.tif``; others are read with ``--from ometiff``.

=============================  =================================================================
OME-XML                        array
=============================  =================================================================
DimensionOrder, Size           shape; names, and kinds (``time``, ``list`` for channels,
                               ``space``, ``RGB-color``)
PhysicalSize, TimeIncrement    spacing and units; of a lower level multiplied by its factor
PositionX, Y, Z of the first   space: origin, and the axes directed along x, y, z of a world
plane                          without a frame, if they are in the unit of the sizes
Channel Name                   labels of the axis of channels, if all have one
Channel Color and optics       namespace ``ome``, with the axis of channels
Image Description              description
Plate, Well                    names, and the namespace ``ome`` of the file
=============================  =================================================================

All else (instruments, regions, times and positions of single planes) is left out, with a note.

Writes: one file with an image for each array; sizes without a unit are in ``reference frame``.
``levels=N`` makes lower levels while it writes, as for `omezarr`, and ``levels=auto`` until the
last one is at most 256 wide, as SubIFDs. Metadata that OME cannot hold is an annotation of ours,
which is read as long as the axes are unchanged. Names of plates are written as a plate again.

An array is not added to a file (`-o FILE#NAME`): one XML in the first page describes all images,
and other programs' parts of it would have to be understood; write all images together.

Refused: types that OME lacks (``--dtype``); fewer than two axes, more than T, C, Z before the
plane; a document type in the XML, and so entities; sizes that the pages do not have; planes named
twice, or outside the image; pages that are not there; a document without images (a companion file);
what the format `tiff` refuses of pages. ``--from tiff`` reads the pages of such a file.
"""

from __future__ import annotations

from raconvert.plugin import NO, SURE, Bundle, Format, Option, Source

from ..options import OPTIONS
from ..sniffing import is_ome_tiff
from .plan import plan

__all__ = ["FORMAT", "plan", "read", "sniff"]

MAGICS = (b"II*\0", b"MM\0*", b"II+\0\x08\0\0\0", b"MM\0+\0\x08\0\0")

_XML = (
    b'<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0"><Pixels '
    b'ID="Pixels:0" DimensionOrder="XYZCT" Type="uint8" SizeX="2" SizeY="1" SizeZ="1" SizeC="1" '
    b'SizeT="1"><TiffData/></Pixels></Image></OME>\0'
)
# Two grey pixels, assembled by hand: the directory at 8, the text at 134, the pixels behind it.
_SAMPLE = (
    bytes.fromhex("49492a0008000000" "0a00")
    + b"".join(
        tag.to_bytes(2, "little") + kind.to_bytes(2, "little") + count.to_bytes(4, "little")
        + value.to_bytes(4, "little")
        for tag, kind, count, value in (
            (256, 3, 1, 2), (257, 3, 1, 1), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1),
            (270, 2, len(_XML), 134), (273, 4, 1, 134 + len(_XML)), (277, 3, 1, 1),
            (278, 3, 1, 1), (279, 4, 1, 2),
        )
    )
    + bytes(4) + _XML + b"\x01\x02"
)  # fmt: skip

FORMAT = Format(
    name="ometiff",
    title="OME-TIFF",
    suffixes=(".ome.tif", ".ome.tiff", ".ome.btf", ".ome.tf8"),
    magic=tuple((0, magic) for magic in MAGICS),
    many=True,
    meta="some",
    holds=("labels", "spacing", "space", "scale", "units", "description", "attributes"),
    needs=(("PIL", "pillow"), ("tifffile", "tifffile")),
    names_files=True,
    read_options=(Option("squeeze", False, bool, "leave out T, C and Z of length 1"),),
    write_options=(
        *OPTIONS,
        Option("compression", "none", ("none", "deflate"), "of the strips"),
    ),
    samples={"pair_2x1.ome.tif": _SAMPLE},
    spec="https://docs.openmicroscopy.org/ome-model/6.3.1/ome-tiff/",
    losses="only numbers and bool; T, C, Z before the plane; attributes of file and groups",
)


def sniff(source: Source) -> int:
    """SURE by OME-XML in the description of the first page."""
    return SURE if source.head.startswith(MAGICS) and is_ome_tiff(source) else NO


def read(source: Source, *, squeeze: bool = False) -> Bundle:
    """The images of the file as lazy arrays; lower levels in `Bundle.more`.

    An image that cannot be read is an array that cannot be read. Raises `RaconvertError` if none
    can.
    """
    from .reader import read_images

    return read_images(source, squeeze=squeeze)
