r"""TIFF: one page, or a stack of pages, of numbers of any size, read and write.

Specification: Adobe, TIFF Revision 6.0, 3 June 1992; Adobe Photoshop TIFF technical notes 1 and 2
(deflate); BigTIFF, https://www.awaresystems.be/imaging/tiff/bigtiff.html; the shape in
ImageDescription as tifffile writes it. Compared with: tifffile, libtiff's tools, Pillow.

Reads, the structure with tifffile: TIFF and BigTIFF in both byte orders; strips and tiles; both
planar configurations; no compression, deflate, LZMA, and with imagecodecs (``raconvert[tiff]``)
LZW, PackBits, zstd, CCITT (modified Huffman, groups 3 and 4), JPEG, WebP, JPEG XL, JPEG 2000 and
LERC; predictors 1, 2 and 3; both orders of bits. Uncompressed pages that lie behind each other are
copied or mapped; others are decoded by strips or rows of tiles, and of a region those that hold
some of it.

Mapping, index order C, shape, order and type as tifffile has them: a page is (height, width), or
(height, width, samples) where the samples of a pixel lie together (PlanarConfiguration 1), or
(samples, height, width) where each sample has a plane of its own (2), which the axes S, Y, X say;
more than one page give (pages, …), one page has no leading axis. Values are those of the file:
nothing is inverted, converted or looked up (a palette image gives its indices: in microscopy they
are the data).

* 1 bit gives bool; 8, 16, 32, 64 bits int and uint; 16, 32, 64 bits float; 64, 128 bits complex.
  Samples of 2 to 31 bits are read into the smallest type that holds them, signed or not, floats of
  24 bits into 32, complex integers into complex floats, all exactly.
* JPEG gives what libjpeg-turbo in imagecodecs decodes, colours as RGB, which a note says; 12 bits
  and lossless JPEG (2 to 16 bits) too, and the old JPEG (compression 6) where its one strip, or
  what its tags lead to, is a whole stream. WebP, JPEG XL, JPEG 2000 and LERC give what libwebp,
  libjxl, OpenJPEG and Esri's library decode, which a note says.
* CCITT data and JPEG have no checksum. Every code of CCITT data is passed, each row has to end at
  its width, and there have to be as many rows as the strip has; JPEG has to have an end, and its
  restart markers, if it has any, all of them in order. Other damage in JPEG can go unseen, and so
  can damage in JPEG 2000.
* Strips and tiles without data (a sparse file) have the value of GDAL's tag 42113, or zeros; a note
  counts them.
* Pages marked as reduced images or as masks (NewSubfileType) that are not like the first page, and
  those below others (SubIFDs), are arrays that ``--array`` takes, which a note lists: ``x.page1``
  by the number of the page, ``x.sub0`` by the place among those below it; those alike are one
  array. Without it they are left out.
* Pages of several kinds (size, samples, type, compression) are an error that lists them; each kind
  is an array that ``--array`` takes, ``x.series0`` and so on, in the order of tifffile's series.
* A shape that tifffile (or this plugin) noted in the description is given to the whole, where it
  fits the pages. Planes that another program than tifffile made of the samples of a described image
  have the order that the description tells; a shape that can mean either order is refused. Stacks
  of ImageJ and OME get the axes that their description tells, with names, spacing and units. A
  single directory of which the description says that more images follow (ImageJ above 4 GiB,
  ``tifffile.imwrite(truncate=True)``) gives them all.

Metadata: the description in `Metadata.description`; in the namespace ``image`` (see `metadata`)
``resolution icc xmp orientation``, and what only TIFF has: ``software``, ``photometric`` where it
is not the usual one (black is zero, or RGB), ``extra_samples`` (numbers of tag 338), ``colormap``
(tag 320, little-endian). Of a stack they are those of the first page. Other tags are left out, with
a note.

Refused: directories in a loop, or that overlap; strips or tiles outside the file, that overlap, are
too few; damaged CCITT data; whatever tifffile would only guess at; sizes that the compressed bytes
cannot fill; other compressions (LogLuv, JPEG XR, JBIG, …: ``tiffcp -c none``); old JPEG in parts,
and subsampled colour that JPEG does not undo (``tiff2rgba``); predictors of samples of odd depths;
LERC with pixels that are not valid; strips and rows of tiles above ``--max-memory`` that have to be
decoded, and stacks above it, a thousand times the file.

Writes, with tifffile: every number type exactly; bool with 1 bit. The last axis is the samples if
it has 1 to 4 elements and there are three axes or more (not of bool): 3 and 4 are RGB(A), others
grey, where black is zero. Axes S, Y, X as planes of samples have them are written as such planes.
All axes before the image are pages. A shape that pages alone would not
give back is noted in the description the way tifffile does. A description of tifffile, ImageJ or
OME is written as it was where it still tells the axes; what is not written is named as lost.

Axes that are known otherwise are written as OME-XML (see `ome`): the last two are the plane, with
a physical size in units of length, or ``reference frame`` where the unit is not known; those before
are Z, time with its increment, or channels. The field that OME has no word for is named: names but
its letters, labels, directions, origins, the frame of the space. Lengths of 1 come back.
"""

from __future__ import annotations

from raconvert.arrays.dtypes import FLOATS
from raconvert.plugin import (
    NO,
    SURE,
    Bundle,
    Format,
    Option,
    Plan,
    Source,
    refused,
    split,
    type_name,
)

from ...ome.sniffing import is_ome_tiff
from ..plan import metadata_fits
from ..programs import tiff_programs as programs

__all__ = ["FORMAT", "plan", "programs", "read", "sniff", "split"]

MAGICS = (b"II*\0", b"MM\0*", b"II+\0\x08\0\0\0", b"MM\0+\0\x08\0\0")

# One grey pixel; laid out by hand.
_SAMPLE = bytes.fromhex(
    "49492a000a000000070007000001030001000000010000000101030001000000010000000201030001000000"
    "0800000006010300010000000100000011010300010000000800000015010300010000000100000017010300"
    "010000000100000000000000"
)

FORMAT = Format(
    name="tiff",
    title="TIFF image or stack",
    suffixes=(".tif", ".tiff", ".btf", ".tf8"),
    magic=tuple((0, magic) for magic in MAGICS),
    proof=True,
    meta="some",
    holds=("spacing", "units", "description"),
    needs=(("PIL", "pillow"), ("tifffile", "tifffile")),
    write_options=(Option("compression", "none", ("none", "deflate"), "of the strips"),),
    samples={"grey_1x1.tif": _SAMPLE},
    spec="https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf",
    losses="only numbers and bool; of axes what OME says: sizes, units, time",
)


def sniff(source: Source) -> int:
    """Return SURE for byte order mark and version 42 or 43; NO for OME-TIFF, another format."""
    if not source.head.startswith(MAGICS):
        return NO
    return NO if is_ome_tiff(source) else SURE


def read(source: Source) -> Bundle:
    """Read the page or the stack of pages as one lazy array, named after the file's stem."""
    from .reader import read_pages

    return read_pages(source)


def plan(bundle: Bundle, *, compression: str = "none") -> Plan:
    """Plan the one array of the bundle as pages; the same bytes every time."""
    from .writer import write_pages, written_fields

    array, fits = bundle.arrays[0], []
    if array.element.kind not in ("bool", "uint", "int", "float", "complex"):
        reason = f"TIFF holds bool, integers, floats and complex, not {type_name(array.element)}"
        flag = "--dtype float32" if array.element.kind in FLOATS else None
        fits.append(refused(array.name, "type", reason, flag))
    if 0 in array.dims:
        reason = f"TIFF has no image without pixels: {array.shape}"
        fits.append(refused(array.name, "shape", reason))
    elif max(array.shape[-3:] if array.ndim > 1 else (array.count,)) > 0xFFFFFFFF:
        fits.append(refused(array.name, "shape", "a side is above TIFF's 4294967295"))
    fits += metadata_fits(bundle, "TIFF", *(written_fields(array) if array.described else ()))
    return Plan(fits, lambda target: write_pages(array, target, compression), names=bundle.names)
