r"""TIFF: one page, or a stack of pages, of numbers of any size, read and write.

Specification: Adobe, TIFF Revision 6.0, 3 June 1992; Adobe Photoshop TIFF technical notes 1 to 3
(deflate, predictor 3); BigTIFF, https://www.awaresystems.be/imaging/tiff/bigtiff.html; the shape
in ImageDescription as tifffile writes it. Compared with: tifffile, libtiff's tools, Pillow.

Reads, the structure with tifffile: TIFF and BigTIFF in both byte orders; strips and tiles; both
planar configurations; no
compression, deflate, LZW, PackBits, LZMA, Zstandard, for one bit CCITT, and for 8 bits JPEG (the
values are those of the libjpeg in Pillow, YCbCr becomes RGB); predictors 2 and 3; both bit orders.
Uncompressed pages that lie behind each other are not decoded at all, but copied or mapped.

Mapping, index order C: a page is (height, width) or (height, width, samples), whatever its planar
configuration; more than one page give (pages, height, width[, samples]), one page has no leading
axis. Values are those of the file: nothing is inverted, converted or looked up (an 8-bit palette
image gives its indices: in microscopy they are the data; ``palette=expand`` gives uint16 RGB).

* 1 bit gives bool; 2 to 7 bits uint8, 9 to 15 bits uint16, as they are; 8, 16, 32, 64 bits int and
  uint; 16, 32, 64 bits float; 64, 128 bits complex. Bit for bit, NaN payloads included.
* Pages marked as reduced images or as masks (NewSubfileType), and those below others (SubIFDs), are
  left out, with a note. All others
  must agree in size, samples and type. ``pages=N`` or ``pages=START:STOP`` picks among them.
* A shape that tifffile (or this plugin) noted in the description is given to the whole, where it
  fits the pages. Stacks of ImageJ and OME get the axes that their description tells, (frames,
  slices, channels, height, width) without those of length 1 or in the order of ``DimensionOrder``,
  with names, spacing and units (see `axes`); OME only of one image in one file, its pages in order.
  A single directory of which the description says that more images follow (ImageJ
  above 4 GiB, ``tifffile.imwrite(truncate=True)``) gives them all.

Metadata: the description in `Metadata.description`; in the namespace ``image`` (see `metadata`)
``resolution icc xmp orientation``, and what only TIFF has: ``photometric`` where it is not the
usual one (black is zero, or RGB), ``extra_samples`` (numbers of tag 338), ``colormap`` (bytes of
tag 320, little-endian), ``software artist datetime copyright`` and others as text, and ``tags``,
a list of [tag, type, little-endian bytes] with everything unknown, GeoTIFF's included. Of a stack
they are those of the first page; differences are noted.

Refused: directories in a loop; offsets outside the file; too few strips or tiles, or ones that
overlap, have no data (sparse files) or too little; directories that overlap, and whatever tifffile
would only guess at; sizes that the compressed bytes cannot fill;
other compressions; 24-bit floats; subsampled YCbCr that is not JPEG; pages above ``--max-memory``
that have to be decoded, and stacks above it that are more than a thousand times the file.

Writes, through imageio with tifffile pinned: every number type exactly; bool with 1 bit. The last
axis is the samples if it has 1 to 4 elements and there are three axes or more (not of bool): 3 and
4 are RGB(A) unless the metadata say otherwise. All axes before the image are pages. A shape that
pages alone would not give back (axes of length 1, more than one axis of pages, less than two axes)
is noted in the description the way tifffile does. A description of ImageJ or OME is written as it
was where it still tells the axes, so that other readers find them, too; axes that no description
tells are named as lost. BigTIFF above 4 GiB.
"""

from __future__ import annotations

from raconvert.plugin import NO, SURE, Bundle, Fit, Format, Option, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Array, Target

__all__ = ["FORMAT", "fits", "read", "sniff", "split", "write"]

MAGICS = (b"II*\0", b"MM\0*", b"II+\0\x08\0\0\0", b"MM\0+\0\x08\0\0")

# One grey pixel; written by Pillow.
_SAMPLE = bytes.fromhex(
    "49492a0008000000090000010400010000000100000001010400010000000100000002010300"
    "0100000008000000030103000100000001000000060103000100000001000000110104000100"
    "00007a0000001601040001000000010000001701040001000000010000001c01030001000000"
    "010000000000000007"
)

FORMAT = Format(
    name="tiff",
    title="TIFF image or stack",
    suffixes=(".tif", ".tiff", ".btf", ".tf8"),
    magic=tuple((0, magic) for magic in MAGICS),
    proof=True,
    meta="some",
    index_orders="C",
    needs=(("imageio", "imageio"), ("PIL", "pillow"), ("tifffile", "tifffile")),
    read_options=(
        Option("palette", "indices", ("indices", "expand"), "palette images as indices or colours"),
        Option("pages", "all", str, "all, the number of a page, or START:STOP"),
    ),
    write_options=(Option("compression", "none", ("none", "deflate"), "of the strips"),),
    samples={"grey_1x1.tif": _SAMPLE},
    spec="https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf",
    losses="only numbers and bool; metadata of axes",
)


def sniff(source: Source) -> int:
    """Sure by byte order mark and version 42 or 43."""
    return SURE if source.head.startswith(MAGICS) else NO


def read(source: Source, *, palette: str = "indices", pages: str = "all") -> Bundle:
    """Return the page or the stack of pages as one lazy array, named after the file's stem.

    All directories are checked here; pixels that do not lie in the file as they are get decoded
    page by page when they are asked for.
    """
    from .reader import read_pages

    return read_pages(source, palette=palette, pages=pages)


def fits(bundle: Bundle, options: dict[str, Any]) -> list[Fit]:
    """Return what TIFF would change or cannot hold of each array."""
    from .writer import array_fits

    return array_fits(bundle)


def split(array: Array) -> int:
    """Return how many leading axes become separate files with ``--planes``."""
    from .axes import MAX_SAMPLES

    samples = array.ndim > 2 and array.shape[-1] <= MAX_SAMPLES and array.element.kind != "bool"
    return max(0, array.ndim - (3 if samples else 2))


def write(bundle: Bundle, target: Target, *, compression: str = "none") -> None:
    """Write the one array of the bundle, page by page; the same bytes every time."""
    from .writer import write_pages

    write_pages(bundle.arrays[0], target, compression=compression)
