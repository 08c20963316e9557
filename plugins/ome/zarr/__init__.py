"""OME-Zarr: images of microscopy as pyramids of arrays in Zarr, 0.4 and 0.5; read and write.

Specification: "Next-generation file formats (NGFF)" 0.4 and 0.5, https://ngff.openmicroscopy.org;
the arrays as in the format `zarr`: version 0.4 is Zarr 2, 0.5 is Zarr 3. Compared with:
ome-zarr-py, ome-zarr-models (the validator), zarr-python, the reader of napari.

Reads: a group with ``multiscales`` is an image. Its first level is an array; lower levels are left
out, with a note, and are read by name: ``--array NAME.level1``. The image of the root has the name
of the folder, or its own if raconvert wrote it; all others have the path of their group: in a plate
``A/1/0`` (row, column, field), of a collection (bioformats2raw) ``0``, labels ``labels/nuclei``.
Arrays that belong to no image are read as in `zarr`.

==========================  ====================================================================
OME-Zarr                    array
==========================  ====================================================================
``axes``: name, type, unit  name, kind (``time``, ``list`` for channels, ``space``), units (um, s)
``scale``                   spacing, of each level its own; that of the whole image multiplied
``translation``             space: origin, and the axes directed along x, y, z of a world without
                            a frame; along other axes their origin
``omero`` channels: label   labels of the axis of channels
colour, window, the rest    namespace ``ome``, with the axis of channels; ``image`` for the rest
``plate``                   namespace ``ome`` of the file
==========================  ====================================================================

A scale of 1 without a unit means that the spacing is unknown, since OME-Zarr needs a scale; so
does 0 or less. Without a translation the position of the image is unknown. Axes of length 1 stay.

Writes: one array, with its labels if there are any, is the image of the root; several are a
collection (``bioformats2raw.layout``), or a plate again if they were read from one and all lie in
wells. Options: ``version=0.4``; ``levels=N`` makes lower levels while it writes, each half as high
and wide as the one before (rounded up), or ``levels=auto``, until the last one is at most 256 wide.
The filter ``mean`` takes the mean of 2 × 2 elements (integers rounded, halves up; at an odd end the
mean of the existing ones), and the first element of a block of bools; ``filter=nearest`` always
takes the first one, as labels need it. Each level has its scale, and a translation to the centre of
its first block. A channel without a window gets the range of its type. Metadata that OME cannot
hold is a text ``raconvert_image`` beside it, which is read as long as the axes are unchanged.

An array is not added to a folder (`-o FOLDER#NAME`), labels are not either: the image of the root
is alone in the specification, and a collection lists all of its images; write them together.

Refused: fewer than 2 or more than 5 axes; axes that are known to be in another order than T, C, Z,
Y, X (``--axes`` moves them; also samples of colour behind the plane); more than one of a sort.
Read, these are errors of the image: a first level that is missing, axes without names, scales that
are not numbers, paths that lead out of the group, levels that grow, other transformations, versions
before 0.4 (``--from zarr`` reads the arrays alone).
"""

from __future__ import annotations

from raconvert.arrays.dtypes import FLOAT8
from raconvert.plugin import NO, SURE, Bundle, Format, Option, Source

from ...zarr.stores import check_target, target
from ...zarr.tables import MARKS
from ..options import OPTIONS
from ..sniffing import is_ome_zarr
from .plan import plan

__all__ = ["FORMAT", "check_target", "plan", "read", "sniff", "target"]

# A group and, consolidated, its one array, of which no chunk is there.
_SAMPLE = (
    b'{"zarr_format":3,"node_type":"group","attributes":{"ome":{"version":"0.5","multiscales":['
    b'{"axes":[{"name":"y","type":"space"},{"name":"x","type":"space"}],"datasets":[{"path":"0",'
    b'"coordinateTransformations":[{"type":"scale","scale":[1,1]}]}]}]}},"consolidated_metadata":{'
    b'"kind":"inline","must_understand":false,"metadata":{"0":{"zarr_format":3,"node_type":"array",'
    b'"shape":[2,3],"data_type":"uint8","chunk_grid":{"name":"regular","configuration":{'
    b'"chunk_shape":[2,3]}},"chunk_key_encoding":{"name":"default","configuration":{"separator":'
    b'"/"}},"codecs":[{"name":"bytes"}],"fill_value":7,"attributes":{}}}}}'
)

FORMAT = Format(
    name="omezarr",
    title="OME-Zarr",
    suffixes=(".ome.zarr",),
    magic=((0, b"{"),),
    many=True,
    float8=FLOAT8,
    meta="all",
    holds=("labels", "spacing", "space", "scale", "units", "description", "attributes"),
    folder=True,
    marks=MARKS,
    needs=(("numcodecs", "numcodecs"), ("google_crc32c", "google-crc32c")),
    names_files=True,
    sidecar="never",
    read_options=(Option("metadata", True, bool, "read what we keep beside the attributes"),),
    write_options=(
        Option("version", "0.5", ("0.5", "0.4"), "of OME-Zarr: 0.5 in Zarr 3, 0.4 in Zarr 2"),
        *OPTIONS,
        Option("chunks", "auto", str, "auto, none, or a length for each axis as 1,1,64,64"),
        Option("compress", "zstd", str, "none, zstd, gzip, blosc; with :LEVEL, blosc:lz4:LEVEL"),
    ),
    samples={"image.ome.zarr": _SAMPLE},
    spec="https://ngff.openmicroscopy.org",
    losses="2 to 5 axes in the order T, C, Z, Y, X",
)


def sniff(source: Source) -> int:
    """SURE by the words of OME in the attributes of a group."""
    return SURE if is_ome_zarr(source) else NO


def read(source: Source, *, metadata: bool = True) -> Bundle:
    """The first levels of the images of a hierarchy as lazy arrays; the others in `Bundle.more`.

    Images that cannot be read are arrays that cannot be read. Raises `RaconvertError` if none can.
    """
    from .reader import read_images

    return read_images(source, metadata=metadata)
